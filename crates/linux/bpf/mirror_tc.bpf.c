/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Mirrors forwarded packets to the daemon where the kernel has no BPF programs at netfilter's hooks, or
 * where flow tables lead packets around these: at the interfaces, by tc. Needs Linux 5.12 and no BTF of
 * the kernel: only fields of __sk_buff and bytes of the packet are read.
 *
 * Read first: mirror.h; docs/internals/datapath.md, on what is seen where.
 *
 * One program is attached to the ingress of each interface, one to the egress. A mobile's packets are
 * taken at its own side of this host, where they have the addresses that it knows, whatever this host
 * translates them to: those from it at ingress, those to it at egress. All packets go on.
 */
#include "ip.h"
#include "kernel.h"

char license_of_program[] SEC("license") = "Dual MIT/GPL";

struct packet {
	struct __sk_buff *skb;
	/* Offset of the IP header. */
	__u32 at;
	/* Length from there on, without padding of the frame. */
	__u32 length;
};

static inline_always __u32 length_of(const struct packet *packet)
{
	return packet->length;
}

/* Copies `len` bytes from the beginning of a packet; not 0 if that fails. */
static inline_always long copy_packet(const struct packet *packet, void *to, __u64 len)
{
	/* The verifier has to know that there is something to copy. Older ones (Linux 6.1) do not learn from a
	   comparison with 0 that a number is above it. */
	return len < sizeof(struct ipv4_header) || bpf_skb_load_bytes(packet->skb, packet->at, to, len);
}

/* Reads words of a packet; not 0 if it is shorter. */
static inline_always long read_words(const struct packet *packet, __u32 at, __u32 *to, __u32 count)
{
	if (at + 4 * count > packet->length)
		return -1;
	return bpf_skb_load_bytes(packet->skb, packet->at + at, to, 4 * count);
}

static inline_always __u32 datagram_size(const struct packet *packet)
{
	return packet->skb->gso_size;
}

static inline_always __u32 segments(const struct packet *packet)
{
	__u32 count = packet->skb->gso_segs;

	return count ? count : 1;
}

struct sighting;

/* What a program is called with, by the name that the kernel has for it. */
#define context __sk_buff

static inline_always struct packet packet_of(struct context *ctx, const struct sighting *of);
static inline_always __u32 checksums_of(const struct packet *packet);

#include "mirror.h"

static inline_always struct packet packet_of(struct context *ctx, const struct sighting *of)
{
	struct packet packet = { .skb = ctx, .at = of->at, .length = of->length };

	return packet;
}

/* A program does not learn whether an offload has to make a checksum. It has to for super-packets. */
static inline_always __u32 checksums_of(const struct packet *packet)
{
	if (packet->skb->gso_size || bpf_csum_level(packet->skb, CSUM_LEVEL_QUERY) >= 0)
		return CHECKSUMS_GOOD;
	return CHECKSUMS_UNKNOWN_OR_UNFINISHED;
}

/* An interface on which frames with this VLAN tag (0: without) arrive or leave. */
struct link_key {
	__u32 index;
	__u32 vlan;
};

/* What the daemon says of it: crates/linux/src/datapath/tc/links.rs. */
struct link {
	/* Index of the interface that IP knows: the bridge of a port, the VLAN of a tag; 0: unknown. */
	__u32 interface;
	/* Length of the link's header before that of IP. */
	__u32 header;
	/* Flags IS_… */
	__u32 is;
};

enum {
	/* Mobiles may be behind it. */
	IS_OF_MOBILES = 1,
	/* It is a port of a bridge, which forwards frames itself. */
	IS_PORT = 2,
};

struct {
	uint_field(type, BPF_MAP_TYPE_HASH);
	uint_field(max_entries, 4096);
	type_field(key, struct link_key);
	type_field(value, struct link);
} links SEC(".maps");

static inline_always const struct link *link_of(__u32 index, __u32 vlan)
{
	struct link_key key = { .index = index, .vlan = vlan };

	return bpf_map_lookup_elem(&links, &key);
}

/* Begins to read a packet; 0 if it is none of IP. */
static inline_always int begin(struct __sk_buff *skb, const struct link *link, struct packet *packet,
			       int *is_ipv4)
{
	__u32 words[2];

	*is_ipv4 = skb->protocol == ntoh16(ETH_P_IP);
	if (!*is_ipv4 && skb->protocol != ntoh16(ETH_P_IPV6))
		return 0;
	if (skb->len <= link->header)
		return 0;
	packet->skb = skb;
	packet->at = link->header;
	packet->length = skb->len - link->header;
	if (read_words(packet, 0, words, 2))
		return 0;

	/* Short frames are padded, which a pure ACK would take for payload. Super-packets may have a length
	   of 0. */
	__u32 length = *is_ipv4 ? ntoh32(words[0]) & 0xffff : (ntoh32(words[1]) >> 16) + 40;
	int has_length = *is_ipv4 ? length != 0 : length != 40;

	if (has_length && length < packet->length)
		packet->length = length;
	return ntoh32(words[0]) >> 28 == (*is_ipv4 ? 4 : 6);
}

/* Index of the interface by which a packet that has just arrived is forwarded, as far as the routes tell;
   0: it is not forwarded. */
static inline_always __u32 route_of(struct __sk_buff *skb, __u32 interface, int is_ipv4,
				    const struct outline *outline, int is_bridged)
{
	struct bpf_fib_lookup lookup = {
		.family = is_ipv4 ? AF_INET : AF_INET6,
		.protocol = outline->protocol,
		.ifindex = interface ? interface : skb->ifindex,
	};

	for (int i = 0; i < (is_ipv4 ? 1 : 4); i++) {
		lookup.source[i] = outline->source.words[is_ipv4 ? 3 : i];
		lookup.target[i] = outline->target.words[is_ipv4 ? 3 : i];
	}

	long result = bpf_fib_lookup(skb, &lookup, sizeof(lookup), 0);
	int is_forwarded = result == FIB_SUCCESS || result == FIB_LIGHTWEIGHT_TUNNEL ||
			   result == FIB_NO_NEIGHBOUR || result == FIB_FRAGMENTATION_NEEDED;

	if (result == FIB_FORWARDING_DISABLED && is_bridged)
		return skb->ifindex;
	return is_forwarded ? lookup.ifindex : 0;
}

static inline_always void hand_over(const struct packet *packet, const struct settings *wanted,
				    struct sighting *seen, const struct record *record)
{
	seen->at = packet->at;
	seen->length = packet->length;
	on_packet(packet->skb, wanted, seen, record->cached, record->presence);
}

/* True for a packet from one mobile to another, which is seen once: at egress. */
static inline_always int is_to_other_mobile(__u32 output, const struct address *target)
{
	const struct link *next = link_of(output, 0);

	return next && next->is & IS_OF_MOBILES && of_mobile(target);
}

static inline_always void arrived(struct __sk_buff *skb)
{
	__u32 only = 0;
	const struct settings *wanted = bpf_map_lookup_elem(&settings, &only);
	const __u64 *as_of = bpf_map_lookup_elem(&generation, &only);
	const struct link *link =
		link_of(skb->ifindex, skb->vlan_present ? skb->vlan_tci & 0xfff : 0);
	struct sighting seen;
	struct record record = { .cached = 0 };
	struct packet packet;
	int is_ipv4;

	/* A port of a bridge sees frames whose address is the bridge's. */
	if (!wanted || !as_of || !link || (skb->pkt_type != PACKET_HOST && !(link->is & IS_PORT)))
		return;
	if (!begin(skb, link, &packet, &is_ipv4) || read_outline(&packet, is_ipv4, &seen.outline))
		return;

	const struct address *source = &seen.outline.source, *target = &seen.outline.target;
	__u32 interface = link->interface;

	if ((!seen.outline.is_tcp && !wanted->any_protocol) || is_of_link(source) || is_of_link(target))
		return;

	const struct uplink *uplink = wanted->any_uplink ? of_uplink(interface) : 0;
	int is_of_mobile = link->is & IS_OF_MOBILES && find(&seen, &record, wanted->secret, *as_of, source);
	__u32 output = 0;

	/* Whatever comes over an uplink shows that it works, whoever it is for. */
	if (is_of_mobile || !uplink) {
		if (!is_of_mobile && !wanted->any_uplink)
			return;
		output = route_of(skb, interface, is_ipv4, &seen.outline, wanted->bridged != 0);
		/* What a bridge forwards itself is no concern of IP's, unless netfilter sees it. */
		if (!output || (output == interface && link->is & IS_PORT && !wanted->bridged))
			return;
		uplink = 0;
		if (!is_of_mobile) {
			uplink = of_uplink(output);
			if (!uplink)
				return;
		} else if (is_to_other_mobile(output, target)) {
			return;
		}
	}

	if (uplink)
		record = look_up(&seen, &uplink->policy, &uplink->name);
	seen.is_to_mobile = output && uplink;
	seen.input = interface;
	seen.output = output;
	hand_over(&packet, wanted, &seen, &record);
}

static inline_always void leaves(struct __sk_buff *skb)
{
	__u32 only = 0;
	const struct settings *wanted = bpf_map_lookup_elem(&settings, &only);
	const __u64 *as_of = bpf_map_lookup_elem(&generation, &only);
	const struct link *link =
		link_of(skb->ifindex, skb->vlan_present ? skb->vlan_tci & 0xfff : 0);
	__u32 came_by = skb->ingress_ifindex;
	int is_own = !came_by;
	struct sighting seen;
	struct record record = { .cached = 0 };
	struct packet packet;
	int is_ipv4;

	/* Keeps the compiler from reading the field later by an address that the verifier refuses. */
	asm volatile("" : "+r"(came_by));
	if (!wanted || !as_of || !link)
		return;

	__u32 output = link->interface;
	const struct uplink *uplink = is_own && wanted->any_uplink ? of_uplink(output) : 0;

	/* Of this host's own packets only those over an uplink count, without those of the gateway. */
	if (is_own && (!uplink || (skb->mark & wanted->mark_mask) == wanted->mark))
		return;
	if (!is_own && !(link->is & IS_OF_MOBILES))
		return;
	if (!begin(skb, link, &packet, &is_ipv4) || read_outline(&packet, is_ipv4, &seen.outline))
		return;

	const struct address *target = &seen.outline.target;

	if ((!seen.outline.is_tcp && !wanted->any_protocol) || is_of_link(target))
		return;
	__u32 input = 0;

	if (uplink) {
		if (is_of_link(&seen.outline.source))
			return;
		record = look_up(&seen, &uplink->policy, &uplink->name);
	} else {
		const struct link *before = link_of(came_by, 0);

		input = before ? before->interface : came_by;
		if (input == output && link->is & IS_PORT && !wanted->bridged)
			return;
		if (!find(&seen, &record, wanted->secret, *as_of, target))
			return;
	}
	seen.is_to_mobile = 1;
	seen.input = input;
	seen.output = output;
	hand_over(&packet, wanted, &seen, &record);
}

SEC("tc")
int mirror_ingress(struct __sk_buff *skb)
{
	arrived(skb);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int mirror_egress(struct __sk_buff *skb)
{
	leaves(skb);
	return TC_ACT_UNSPEC;
}
