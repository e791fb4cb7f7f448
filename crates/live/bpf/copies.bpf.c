/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies of what the kernel forwards, for the mechanisms that only watch while a mobile is in reach
 * (M-TCP+, holdover), or always (wake, which is about all protocols).
 *
 * Read first: crates/live/src/gateway/copies.rs, on how copies and queued packets go together.
 *
 * The program is attached to netfilter's FORWARD hook (Linux 6.4), before table mangle, where the
 * gateway's queue is. It sees the packets that would be queued, each once, with a mobile's own
 * address in both directions. It lets all of them pass.
 *
 * It copies what may be of interest; the daemon looks closer. Packets above 64 KiB are not copied.
 */
#include "ip.h"
#include "kernel.h"

char license_of_program[] SEC("license") = "GPL";

/* ---- Maps. The daemon knows these layouts: crates/live/src/gateway/copies.rs. ---- */

/* Of the mobiles; the value says whether packets of all protocols are copied, or TCP's alone. */
struct {
	uint_field(type, BPF_MAP_TYPE_LPM_TRIE);
	uint_field(map_flags, BPF_F_NO_PREALLOC);
	uint_field(max_entries, 65536);
	type_field(key, struct prefix);
	type_field(value, __u32);
} mobiles SEC(".maps");

/* Whether that is so for any. */
struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, __u32);
} any_protocol SEC(".maps");

/* Mobiles whose packets come to the daemon themselves. */
struct {
	uint_field(type, BPF_MAP_TYPE_HASH);
	uint_field(map_flags, BPF_F_NO_PREALLOC);
	uint_field(max_entries, 65536);
	type_field(key, struct address);
	type_field(value, __u32);
} queued SEC(".maps");

/* In front of each copy. */
struct copy {
	__u32 len;
	__u32 input;
	__u32 output;
	/* Whether the daemon has to verify the checksums. */
	__u32 verify;
	/* Payload bytes of each datagram, where offloads made one packet of several; else 0. */
	__u32 datagram;
};

/* What a fast connection brings within some ten milliseconds. */
struct {
	uint_field(type, BPF_MAP_TYPE_RINGBUF);
	uint_field(max_entries, 32 * 1024 * 1024);
} copies SEC(".maps");

/* Packets for which `copies` had no room. */
struct {
	uint_field(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, __u64);
} missed SEC(".maps");

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
} __attribute__((preserve_access_index));

struct sk_buff {
	unsigned int len;
	/* Of the skb_shared_info, from `head` on. */
	unsigned int end;
	unsigned char *head;
	__u8 ip_summed : 2;
	__u8 csum_valid : 1;
} __attribute__((preserve_access_index));

struct bpf_nf_ctx {
	const struct nf_hook_state *state;
	struct sk_buff *skb;
};

extern int bpf_dynptr_from_skb(struct __sk_buff *skb, __u64 flags,
			       struct bpf_dynptr *dynptr) __attribute__((section(".ksyms")));

enum {
	/* linux/skbuff.h */
	CHECKSUM_UNNECESSARY = 1,
	CHECKSUM_PARTIAL = 3,
};

/* ---- */

/* What is copied of a mobile's packets: 1 all, 0 TCP's, -1 none, for it is no mobile. */
static inline_always int of_mobile(const struct address *address)
{
	struct prefix prefix = { .bits = 128, .address = *address };
	__u32 *all = bpf_map_lookup_elem(&mobiles, &prefix);

	return all ? (int)*all : -1;
}

static inline_always int are_all_protocols_copied(void)
{
	__u32 only = 0;
	__u32 *any = bpf_map_lookup_elem(&any_protocol, &only);

	return any && *any;
}

static inline_always __u32 datagram_size(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = (const void *)(skb->head + skb->end);
	__u16 size = 0;

	bpf_probe_read_kernel(&size, sizeof(size), &info->gso_size);
	return size;
}

/* TCP may be behind extension headers. */
static inline_always int may_be_tcp(__u8 next_header)
{
	return next_header == PROTOCOL_TCP || next_header == PROTOCOL_HOP_BY_HOP ||
	       next_header == PROTOCOL_ROUTING || next_header == PROTOCOL_DESTINATION;
}

/* The copy in a record with room for `most` bytes. Whoever has read all before it is woken. */
#define copy_within(most)                                                                            \
	do {                                                                                         \
		struct {                                                                             \
			struct copy head;                                                            \
			__u8 packet[most];                                                           \
		} *record = bpf_ringbuf_reserve(&copies, sizeof(*record), 0);                        \
		if (!record)                                                                         \
			return miss();                                                               \
		record->head = head;                                                                 \
		if (bpf_dynptr_read(record->packet, head.len, packet, 0, 0)) {                       \
			bpf_ringbuf_discard(record, 0);                                              \
			return miss();                                                               \
		}                                                                                    \
		bpf_ringbuf_submit(record, 0);                                                       \
		return NF_ACCEPT;                                                                    \
	} while (0)

static int miss(void)
{
	__u32 only = 0;
	__u64 *count = bpf_map_lookup_elem(&missed, &only);

	if (count)
		*count += 1;
	return NF_ACCEPT;
}

SEC("netfilter")
int copy_forwarded(struct bpf_nf_ctx *ctx)
{
	const struct nf_hook_state *state = ctx->state;
	struct sk_buff *skb = ctx->skb;
	struct address source, target;
	struct bpf_dynptr whole;
	struct bpf_dynptr *packet = &whole;
	int is_tcp;
	union {
		struct ipv4_header v4;
		struct ipv6_header v6;
	} ip;

	if (bpf_dynptr_from_skb((struct __sk_buff *)skb, 0, packet))
		return NF_ACCEPT;
	if (state->pf == NFPROTO_IPV4) {
		if (bpf_dynptr_read(&ip.v4, sizeof(ip.v4), packet, 0, 0))
			return NF_ACCEPT;
		is_tcp = ip.v4.protocol == PROTOCOL_TCP;
		source = mapped(ip.v4.src);
		target = mapped(ip.v4.dst);
	} else {
		if (bpf_dynptr_read(&ip.v6, sizeof(ip.v6), packet, 0, 0))
			return NF_ACCEPT;
		is_tcp = may_be_tcp(ip.v6.next_header);
		source = ip.v6.src;
		target = ip.v6.dst;
	}
	if (!is_tcp && !are_all_protocols_copied())
		return NF_ACCEPT;

	int of_target = of_mobile(&target);
	int of_either = of_target < 0 ? of_mobile(&source) : of_target;

	if (of_either < !is_tcp || bpf_map_lookup_elem(&queued, of_target < 0 ? &source : &target))
		return NF_ACCEPT;

	__u8 summed = bit_field(skb, ip_summed);
	struct copy head = {
		.len = skb->len,
		.input = state->in ? state->in->ifindex : 0,
		.output = state->out ? state->out->ifindex : 0,
		.verify = summed != CHECKSUM_UNNECESSARY && summed != CHECKSUM_PARTIAL &&
			  !bit_field(skb, csum_valid),
		.datagram = is_tcp ? 0 : datagram_size(skb),
	};

	if (head.len <= 112)
		copy_within(112);
	if (head.len <= 1520)
		copy_within(1520);
	if (head.len <= 9200)
		copy_within(9200);
	if (head.len <= 32 * 1024)
		copy_within(32 * 1024);
	if (head.len <= 64 * 1024)
		copy_within(64 * 1024);
	return NF_ACCEPT;
}
