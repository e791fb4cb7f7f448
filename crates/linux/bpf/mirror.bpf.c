/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Mirrors forwarded packets to the daemon, for mechanisms that only watch while a mobile is in reach
 * (M-TCP+, holdover) or always (wake, which handles all protocols and needs only packets to mobiles
 * that do not answer).
 *
 * Read first: crates/linux/src/datapath/mirror.rs, on mirrored and queued packets; mirror.h.
 *
 * The programs are attached to netfilter's hooks (Linux 6.4), before table mangle, which holds the
 * gateway's queue: one to FORWARD, and for uplinks another to LOCAL_IN and LOCAL_OUT. They see the
 * packets that would be queued, each once, with the mobile's own address, or that of a host on
 * board, in both directions. They accept every packet.
 */
#include "ip.h"
#include "kernel.h"

char license_of_program[] SEC("license") = "Dual MIT/GPL";

/* ---- Structures of the kernel; libbpf finds where the fields are (CO-RE). ---- */

struct net_device {
	int ifindex;
} __attribute__((preserve_access_index));

struct nf_hook_state {
	__u8 pf;
	struct net_device *in;
	struct net_device *out;
} __attribute__((preserve_access_index));

struct skb_shared_info {
	__u16 gso_size;
	__u16 gso_segs;
} __attribute__((preserve_access_index));

struct sk_buff {
	unsigned int len;
	/* Bytes in fragments, not at `data`. */
	unsigned int data_len;
	/* Begins with the IP header. */
	unsigned char *data;
	/* Offset of the skb_shared_info from `head`. */
	unsigned int end;
	unsigned char *head;
	__u32 mark;
	__u8 ip_summed : 2;
	__u8 csum_valid : 1;
} __attribute__((preserve_access_index));

/* A type of the kernel that spans 16 bytes, to read a packet in place. */
struct in6_addr {
	union {
		__u32 u6_addr32[4];
	} in6_u;
} __attribute__((preserve_access_index));

struct bpf_nf_ctx {
	const struct nf_hook_state *state;
	struct sk_buff *skb;
};

extern int bpf_dynptr_from_skb(struct __sk_buff *skb, __u64 flags,
			       struct bpf_dynptr *dynptr) __attribute__((section(".ksyms")));
extern const void *bpf_rdonly_cast(const void *object, __u32 type)
	__attribute__((section(".ksyms")));

enum {
	/* linux/skbuff.h */
	CHECKSUM_UNNECESSARY = 1,
	CHECKSUM_PARTIAL = 3,
};

/* ---- */
struct packet {
	struct sk_buff *skb;
};

static inline_always __u32 length_of(const struct packet *packet)
{
	return packet->skb->len;
}

/* Copies `len` bytes from the beginning of a packet; not 0 if that fails. */
static inline_always long copy_packet(const struct packet *packet, void *to, __u32 len)
{
	struct bpf_dynptr whole;

	return bpf_dynptr_from_skb((struct __sk_buff *)packet->skb, 0, &whole) ||
	       bpf_dynptr_read(to, len, &whole, 0, 0);
}

/* Reads words of a packet; not 0 if it is shorter. Linear data are read in place: a helper or a dynptr
   takes longer than the rest of this program. */
static inline_always long read_words(const struct packet *packet, __u32 at, __u32 *to, __u32 count)
{
	struct sk_buff *skb = packet->skb;
	struct bpf_dynptr whole;

	if (at + 4 * count <= skb->len - skb->data_len) {
		const struct in6_addr *four = 0;

		for (__u32 i = 0; i < count; i++) {
			if (i % 4 == 0)
				four = bpf_rdonly_cast(skb->data + at + 4 * i,
						       kernel_type(struct in6_addr));
			to[i] = four->in6_u.u6_addr32[i % 4];
		}
		return 0;
	}
	return bpf_dynptr_from_skb((struct __sk_buff *)skb, 0, &whole) ||
	       bpf_dynptr_read(to, 4 * count, &whole, at, 0);
}

static inline_always const struct skb_shared_info *shared_info(const struct packet *packet)
{
	return (const void *)(packet->skb->head + packet->skb->end);
}

static inline_always __u32 datagram_size(const struct packet *packet)
{
	__u16 size = 0;

	bpf_probe_read_kernel(&size, sizeof(size), &shared_info(packet)->gso_size);
	return size;
}

static inline_always __u32 segments(const struct packet *packet)
{
	__u16 count = 0;

	bpf_probe_read_kernel(&count, sizeof(count), &shared_info(packet)->gso_segs);
	return count ? count : 1;
}

struct sighting;

/* What a program is called with, by the name that the kernel has for it. */
#define context bpf_nf_ctx

static inline_always struct packet packet_of(struct context *ctx, const struct sighting *of)
{
	struct packet packet = { .skb = ctx->skb };

	(void)of;
	return packet;
}

static inline_always __u32 checksums_of(const struct packet *packet);

#include "mirror.h"

static inline_always __u32 checksums_of(const struct packet *packet)
{
	__u8 summed = bit_field(packet->skb, ip_summed);
	int is_good = summed == CHECKSUM_UNNECESSARY || summed == CHECKSUM_PARTIAL ||
		      bit_field(packet->skb, csum_valid);

	return is_good ? CHECKSUMS_GOOD : CHECKSUMS_UNKNOWN;
}

static inline_always int mirror_one(struct bpf_nf_ctx *ctx, int is_local)
{
	const struct nf_hook_state *state = ctx->state;
	struct packet packet = { .skb = ctx->skb };
	__u32 only = 0;
	const struct settings *wanted = bpf_map_lookup_elem(&settings, &only);
	const __u64 *as_of = bpf_map_lookup_elem(&generation, &only);
	struct sighting seen;
	struct record record = { .cached = 0 };

	if (!wanted || !as_of ||
	    (is_local && (packet.skb->mark & wanted->mark_mask) == wanted->mark))
		return NF_ACCEPT;

	/* Read before the program branches: for each load of such a pointer that the verifier meets, it
	   searches all types of the kernel. */
	seen.input = state->in ? state->in->ifindex : 0;
	seen.output = state->out ? state->out->ifindex : 0;

	if (read_outline(&packet, state->pf == NFPROTO_IPV4, &seen.outline))
		return NF_ACCEPT;
	if (!seen.outline.is_tcp && !wanted->any_protocol)
		return NF_ACCEPT;

	const struct address *source = &seen.outline.source, *target = &seen.outline.target;
	int is_to_mobile = !is_local && find(&seen, &record, wanted->secret, *as_of, target);
	int is_of_mobile =
		is_to_mobile || (!is_local && find(&seen, &record, wanted->secret, *as_of, source));

	if (!is_of_mobile) {
		if (!wanted->any_uplink)
			return NF_ACCEPT;

		const struct uplink *to = of_uplink(seen.output);
		const struct uplink *from = of_uplink(seen.input);
		const struct uplink *uplink = to ? to : from;

		/* Packets from one uplink to another are not from hosts on board, and link-local
		   packets say nothing about the path beyond the link. */
		if (!uplink || (to && from) || is_of_link(source) || is_of_link(target))
			return NF_ACCEPT;
		record = look_up(&seen, &uplink->policy, &uplink->name);
		is_to_mobile = to != 0;
	}
	seen.is_to_mobile = is_to_mobile;
	seen.at = seen.length = 0;
	on_packet(ctx, wanted, &seen, record.cached, record.presence);
	return NF_ACCEPT;
}

SEC("netfilter")
int mirror_forwarded(struct bpf_nf_ctx *ctx)
{
	return mirror_one(ctx, 0);
}

/* Packets of this host's own connections. */
SEC("netfilter")
int mirror_local(struct bpf_nf_ctx *ctx)
{
	return mirror_one(ctx, 1);
}
