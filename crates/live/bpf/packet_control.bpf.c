/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TCP Packet Control as TCX programs: the fast path of `airtcp gateway`.
 *
 * Read first: crates/edge/src/packet_control.rs, which says what the two filters are and why; this file decides exactly as
 * it does, which crates/live/src/gateway/fast_path/tests.rs checks. Names are the same there and here. Beside it:
 * crates/edge/src/flow_table.rs, mobile_end.rs, and crates/live/src/gateway/shell.rs, for what passes untouched.
 *
 * The programs are attached to an interface behind which mobiles are: from_mobile at its ingress (ACK filter), to_mobile
 * at its egress (data filter). There, a mobile has its own address in both directions, whatever this host translates it
 * to. One set of programs and maps serves one group of mobiles.
 *
 * What differs from the reference:
 * - Flows are entered by the fixed host's segments only: the filters do nothing before one, and connections of the
 *   mobiles with this host itself take no room.
 * - A full table stays full until the daemon has swept it.
 * - The daemon, not this program, makes and sends the answers. While it does not listen, what would be answered passes.
 * - Retransmissions are remembered for all flows together, the longest unused ones making room.
 * - Untouched pass IPv6 packets above 64 KiB, and TCP behind more than MAX_EXTENSIONS extension headers, a header of IPsec
 *   or that of a fragment that is whole.
 * - What a checksum would show of the fixed host's segments does not matter here: a damaged one misleads neither filter.
 */
#include "ip.h"
#include "kernel.h"

char license_of_program[] SEC("license") = "GPL";

/* Retransmissions further behind last_ack than this are forgotten when it advances. */
#define REMEMBERED_BYTES (64 * 1024)
/* Of the number of a processor (CONFIG_NR_CPUS is at most 8192). */
#define PROCESSOR_BITS 13
/* IPv6 extension headers in front of TCP. */
#define MAX_EXTENSIONS 4
#define MAX_OPTIONS 40
/* Of timestamps, padded. */
#define TIMESTAMPS_LEN 12
/* Summed up at once; a multiple of four. */
#define CHUNK 512
/* Of the largest packet. */
#define MAX_CHUNKS (65536 / CHUNK + 1)

enum {
	FIN = 0x01,
	SYN = 0x02,
	RST = 0x04,
	ACK = 0x10,
	ECE = 0x40,
};

/* ---- Maps. The daemon knows these layouts: crates/live/src/gateway/fast_path/layout.rs. ---- */

/* Settings of the group. */
struct settings {
	__u64 idle_ns;
	__u32 threshold;
	/* Another one whenever `mobiles` has changed. */
	__u32 generation;
};

struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, struct settings);
} settings SEC(".maps");

/* Whose packets: interface, IP version and prefix of the mobile's address. */
struct prefix {
	__u32 bits;
	__u32 ifindex;
	__u32 version;
	struct address address;
};

/* Bits of a prefix in front of the address. */
#define PREFIX_HEAD 64

enum {
	/* The addresses belong to another group, though a shorter prefix does not. */
	NOT_OURS = 0,
	OURS = 1,
};

struct {
	uint_field(type, BPF_MAP_TYPE_LPM_TRIE);
	uint_field(map_flags, BPF_F_NO_PREALLOC);
	uint_field(max_entries, 65536);
	type_field(key, struct prefix);
	type_field(value, __u32);
} mobiles SEC(".maps");

/* From the fixed to the mobile host. Ports are in the network's byte order. */
struct flow_key {
	struct address fixed;
	struct address mobile;
	__u16 fixed_port;
	__u16 mobile_port;
};

enum {
	/* sent_end is known. */
	SENT = 1 << 0,
	/* The fixed host's last segment had the ACK flag. */
	FIXED_ACKED = 1 << 1,
	/* It was not the first. */
	ACKS = 1 << 2,
	TIMESTAMPS = 1 << 3,
	ECHO = 1 << 4,
	FIXED_FINISHED = 1 << 5,
	MOBILE_FINISHED = 1 << 6,
	CLOSED = 1 << 7,
	/* Nobody else can speak for this connection. */
	FOREIGN = 1 << 8,
};

/* What the mobile acknowledged last; `struct MobileEnd`. */
struct mobile_end {
	__u32 ack;
	__u32 next_seq;
	__u32 ts_value;
	__u32 ts_echo;
	__u16 window;
	__u16 padding;
};

struct flow {
	struct bpf_spin_lock lock;
	/* Of the enum above: which of the other fields count, and what is known besides. */
	__u32 flags;
	/* Of this connection in the map of retransmissions; no two have the same. */
	__u64 id;
	__u64 last_segment_ns;
	__u32 sent_end;
	__u32 fixed_ack;
	struct mobile_end mobile;
	__u32 duplicate;
	__u16 fixed_window;
	__u16 padding;
	/* Of the settings, and of the interface, for which the mobile was found in `mobiles`. */
	__u32 generation;
	__u32 ifindex;
	__u32 padding_too;
};

/* The daemon sets its size. */
struct {
	uint_field(type, BPF_MAP_TYPE_HASH);
	uint_field(map_flags, BPF_F_NO_PREALLOC);
	uint_field(max_entries, 1);
	type_field(key, struct flow_key);
	type_field(value, struct flow);
} flows SEC(".maps");

struct retransmission_key {
	__u64 flow;
	__u32 seq;
	__u32 padding;
};

struct retransmission {
	__u32 count;
	/* last_ack when it was counted last. */
	__u32 last_ack;
};

struct {
	uint_field(type, BPF_MAP_TYPE_LRU_HASH);
	uint_field(max_entries, 16384);
	type_field(key, struct retransmission_key);
	type_field(value, struct retransmission);
} retransmissions SEC(".maps");

/* For the daemon to answer in the mobile's name. */
struct answer {
	struct flow_key key;
	__u32 flags;
	struct mobile_end mobile;
};

struct {
	uint_field(type, BPF_MAP_TYPE_RINGBUF);
	uint_field(max_entries, 262144);
} answers SEC(".maps");

struct counters {
	__u64 acks_old_dropped;
	__u64 acks_duplicate_dropped;
	__u64 acks_forwarded;
	__u64 data_dropped;
	__u64 acks_generated;
	__u64 segments_refused;
	__u64 packets_passed;
	__u64 packets_dropped;
	__u64 packets_undecodable;
	__u64 packets_foreign;
	/* Entries of `flows` that this program made and removed. */
	__u64 flows_added;
	__u64 flows_removed;
	/* Identifiers given to connections on this processor. */
	__u64 ids;
};

struct {
	uint_field(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, struct counters);
} counters SEC(".maps");

/* Room for a part of a packet. What is in a map the verifier takes for any value: it need not follow each way through the
 * options. */
struct scratch {
	__u8 bytes[CHUNK];
	/* What was summed up, where the rest is, and its length. */
	volatile __u64 sum;
	volatile __u32 rest;
	volatile __u32 left;
	/* Of the next option. */
	volatile __u32 at;
	volatile __u32 ts_value;
	volatile __u32 ts_echo;
	volatile __u8 has_timestamps;
	volatile __u8 has_sack;
	volatile __u8 is_foreign;
};

struct {
	uint_field(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, struct scratch);
} scratches SEC(".maps");

/* ---- Sequence numbers, on the circle (crates/core/src/seq.rs). ---- */

static inline_always __s32 offset(__u32 from, __u32 to)
{
	return (__s32)(to - from);
}

static inline_always int is_after(__u32 a, __u32 b)
{
	return offset(b, a) > 0;
}

static inline_always __u32 later(__u32 a, __u32 b)
{
	return is_after(a, b) ? a : b;
}

/* ---- A segment, from the bytes of a packet (crates/wire/src/decode.rs). ---- */

struct packet {
	struct address src;
	struct address dst;
	__u32 version;
	/* Offset of the TCP header behind the IP header's beginning, and bytes from there on. */
	__u32 tcp;
	__u32 tcp_len;
};

struct segment {
	__u16 src_port;
	__u16 dst_port;
	__u32 seq;
	__u32 seq_end;
	__u32 ack;
	__u32 payload;
	__u32 ts_value;
	__u32 ts_echo;
	__u16 window;
	__u8 flags;
	__u8 has_timestamps;
	__u8 has_sack;
	__u8 is_foreign;
};

struct tcp_header {
	__u16 src_port;
	__u16 dst_port;
	__u32 seq;
	__u32 ack;
	__u8 data_offset;
	__u8 flags;
	__u16 window;
	__u16 checksum;
	__u16 urgent;
};

static inline_always long load(const struct __sk_buff *skb, __u32 at, void *to, __u32 len)
{
	return bpf_skb_load_bytes_relative(skb, at, to, len, BPF_HDR_START_NET);
}

static inline_always int read_ipv4(const struct ipv4_header *ip, struct packet *packet)
{
	packet->version = 4;
	packet->tcp = (ip->version_ihl & 0x0f) * 4;
	if (ip->version_ihl >> 4 != 4 || packet->tcp < sizeof(*ip))
		return 0;
	/* More fragments, or an offset. */
	if (ip->protocol != PROTOCOL_TCP || (ntoh16(ip->fragment) & 0x3fff))
		return 0;
	if (ntoh16(ip->total_length) < packet->tcp)
		return 0;
	packet->tcp_len = ntoh16(ip->total_length) - packet->tcp;
	packet->src = mapped(ip->src);
	packet->dst = mapped(ip->dst);
	return 1;
}

static inline_always int read_ipv6(const struct __sk_buff *skb, struct packet *packet)
{
	struct ipv6_header ip;
	__u8 extension[2];
	__u32 end;
	__u8 next;

	if (load(skb, 0, &ip, sizeof(ip)))
		return 0;
	if (ntoh32(ip.version_class_flow) >> 28 != 6)
		return 0;
	packet->version = 6;
	packet->src = ip.src;
	packet->dst = ip.dst;
	packet->tcp = sizeof(ip);
	/* Of a packet above 64 KiB, where zero stands, the length is not to be had without the link's header. */
	if (!ip.payload_length)
		return 0;
	end = sizeof(ip) + ntoh16(ip.payload_length);
	next = ip.next_header;
	for (int i = 0; i < MAX_EXTENSIONS; i++) {
		if (next != PROTOCOL_HOP_BY_HOP && next != PROTOCOL_ROUTING &&
		    next != PROTOCOL_DESTINATION)
			break;
		if (load(skb, packet->tcp, extension, sizeof(extension)))
			return 0;
		next = extension[0];
		packet->tcp += (extension[1] + 1) * 8;
	}
	if (next != PROTOCOL_TCP || packet->tcp > end)
		return 0;
	packet->tcp_len = end - packet->tcp;
	return 1;
}

/* Reads the IP header; false: no TCP, or a fragment. */
static inline_always int read_ip(const struct __sk_buff *skb, struct packet *packet)
{
	struct ipv4_header ip;

	if (skb->protocol == ntoh16(ETH_P_IP))
		return !load(skb, 0, &ip, sizeof(ip)) && read_ipv4(&ip, packet);
	return skb->protocol == ntoh16(ETH_P_IPV6) && read_ipv6(skb, packet);
}

/* Four bytes in the network's order. */
static inline_always __u32 number(const __u8 *bytes)
{
	return (__u32)bytes[0] << 24 | (__u32)bytes[1] << 16 | (__u32)bytes[2] << 8 | bytes[3];
}

/* The option at `at` of `len` bytes: its size, or 0 if it is malformed. */
static inline_always __u32 read_option(struct scratch *scratch, __u32 at, __u32 len)
{
	__u8 kind = scratch->bytes[at];
	__u8 size = scratch->bytes[at + 1];

	if (kind == 1)
		return 1;
	if (size < 2 || at + size > len)
		return 0;
	switch (kind) {
	case 2:
		return size == 4 ? size : 0;
	case 3:
		return size == 3 ? size : 0;
	case 4:
		return size == 2 ? size : 0;
	case 5:
		scratch->has_sack = 1;
		return size == 10 || size == 18 || size == 26 || size == 34 ? size : 0;
	case 8:
		scratch->has_timestamps = 1;
		scratch->ts_value = number(&scratch->bytes[at + 2]);
		scratch->ts_echo = number(&scratch->bytes[at + 6]);
		return size == 10 ? size : 0;
	/* Experiments (RFC 6994), which may be missing from any segment. */
	case 253:
	case 254:
		return size;
	default:
		scratch->is_foreign = 1;
		return size;
	}
}

/* Two times nothing, timestamps (RFC 7323 appendix A): mostly all there is. */
static inline_always int read_timestamps(const __u8 *options, struct segment *segment)
{
	if (number(options) != 0x0101080a)
		return 0;
	segment->has_timestamps = 1;
	segment->ts_value = number(&options[4]);
	segment->ts_echo = number(&options[8]);
	return 1;
}

/* Whether the segment's options, of `len` bytes, are well formed; notes what matters of them. */
static inline_always int read_options(const struct __sk_buff *skb, const struct packet *packet,
				      __u32 len, struct segment *segment)
{
	struct scratch *scratch;
	__u32 zero = 0;

	if (len == 0)
		return 1;
	scratch = bpf_map_lookup_elem(&scratches, &zero);
	/* The verifier needs the bound. */
	if (!scratch || len > MAX_OPTIONS)
		return 0;
	if (load(skb, packet->tcp + sizeof(struct tcp_header), scratch->bytes, len))
		return 0;
	if (len == TIMESTAMPS_LEN && read_timestamps(scratch->bytes, segment))
		return 1;
	scratch->at = 0;
	scratch->has_timestamps = scratch->has_sack = scratch->is_foreign = 0;
	for (int i = 0; i < MAX_OPTIONS; i++) {
		__u32 at = scratch->at, size;

		/* The end of the list. */
		if (at >= len || at >= MAX_OPTIONS || scratch->bytes[at] == 0)
			break;
		size = read_option(scratch, at, len);
		if (!size)
			return 0;
		scratch->at = at + size;
	}
	segment->has_timestamps = scratch->has_timestamps;
	segment->ts_value = scratch->ts_value;
	segment->ts_echo = scratch->ts_echo;
	segment->has_sack = scratch->has_sack;
	segment->is_foreign = scratch->is_foreign;
	return 1;
}

/* Reads the TCP header but for its options; their length, or less than 0: malformed. */
static inline_always __s32 read_tcp(const struct tcp_header *tcp, const struct packet *packet,
				    struct segment *segment, __u16 *checksum)
{
	__u32 header = (tcp->data_offset >> 4) * 4;

	if (header < sizeof(*tcp) || header > packet->tcp_len)
		return -1;
	segment->src_port = tcp->src_port;
	segment->dst_port = tcp->dst_port;
	segment->seq = ntoh32(tcp->seq);
	segment->ack = ntoh32(tcp->ack);
	segment->window = ntoh16(tcp->window);
	segment->flags = tcp->flags;
	segment->payload = packet->tcp_len - header;
	segment->seq_end =
		segment->seq + segment->payload + !!(tcp->flags & SYN) + !!(tcp->flags & FIN);
	*checksum = tcp->checksum;
	return header - sizeof(*tcp);
}

/* Reads the TCP header; false: malformed. */
static inline_always int read_segment(const struct __sk_buff *skb, const struct packet *packet,
				 struct segment *segment, __u16 *checksum)
{
	struct tcp_header tcp;
	__s32 options;

	if (packet->tcp_len < sizeof(tcp) || load(skb, packet->tcp, &tcp, sizeof(tcp)))
		return 0;
	options = read_tcp(&tcp, packet, segment, checksum);
	if (options < 0 || !read_options(skb, packet, options, segment))
		return 0;
	/* On a SYN, options are offers. */
	if (tcp.flags & SYN)
		segment->is_foreign = 0;
	return 1;
}

/* What most packets begin with. */
struct common_headers {
	struct ipv4_header ip;
	struct tcp_header tcp;
	__u8 options[TIMESTAMPS_LEN];
};

/* Reads both headers and the options in one go, if they are the most common ones; else false. */
static inline_always int read_common(const struct __sk_buff *skb, struct packet *packet,
				     struct segment *segment, __u16 *checksum)
{
	struct common_headers headers;

	return skb->protocol == ntoh16(ETH_P_IP) && !load(skb, 0, &headers, sizeof(headers)) &&
	       read_ipv4(&headers.ip, packet) && packet->tcp == sizeof(headers.ip) &&
	       read_tcp(&headers.tcp, packet, segment, checksum) == sizeof(headers.options) &&
	       read_timestamps(headers.options, segment);
}

static inline_always __u16 folded(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Whether a segment is as it was sent: by what the network card or GRO found, or by the sum over it. One whose checksum is
 * still to be made (the mobile is on this machine) has that of the pseudo-header in its place. */
static inline_always int is_intact(struct __sk_buff *skb, const struct packet *packet, __u16 checksum)
{
	__u32 zero = 0;
	struct scratch *scratch;
	__u64 sum = 0;

	if (bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY) >= 0)
		return 1;
	/* Of a mapped address the prefix is no part of it. */
	for (int i = packet->version == 4 ? 3 : 0; i < 4; i++)
		sum += (__u64)packet->src.words[i] + packet->dst.words[i];
	sum += ntoh32(packet->tcp_len) + (__u64)ntoh32((__u32)PROTOCOL_TCP);
	if (checksum == folded(sum))
		return 1;
	scratch = bpf_map_lookup_elem(&scratches, &zero);
	if (!scratch)
		return 0;
	scratch->sum = sum;
	scratch->rest = packet->tcp;
	scratch->left = packet->tcp_len;
	for (int i = 0; i < MAX_CHUNKS; i++) {
		__u32 left = scratch->left, len = left < CHUNK ? left : CHUNK;

		if (!len)
			return folded(scratch->sum) == 0xffff;
		if (len < CHUNK)
			__builtin_memset(scratch->bytes, 0, CHUNK);
		if (load(skb, scratch->rest, scratch->bytes, len))
			return 0;
		scratch->sum += (__u32)bpf_csum_diff(0, 0, scratch->bytes, CHUNK, 0);
		scratch->rest += len;
		scratch->left = left - len;
	}
	return 0;
}

/* ---- The two filters. ---- */

static inline_always struct counters *counted(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

/* An identifier that no other packet gets, on whichever processor. */
static inline_always __u64 fresh_id(struct counters *counters)
{
	return ++counters->ids << PROCESSOR_BITS | bpf_get_smp_processor_id();
}

/* Whether the mobile with this address belongs to the group. */
static inline_always int is_ours(struct __sk_buff *skb, __u32 version, const struct address *address)
{
	struct prefix prefix = {
		.bits = PREFIX_HEAD + 128,
		.ifindex = skb->ifindex,
		.version = version,
		.address = *address,
	};
	__u32 *found = bpf_map_lookup_elem(&mobiles, &prefix);

	return found && *found == OURS;
}

/* The same, remembered in what is known of the connection, so that the trie is walked once for it. */
static inline_always int is_known_as_ours(struct __sk_buff *skb, const struct settings *settings,
					  struct flow *flow, __u32 version,
					  const struct address *address)
{
	if (flow && flow->generation == settings->generation && flow->ifindex == skb->ifindex)
		return 1;
	if (!is_ours(skb, version, address))
		return 0;
	if (flow) {
		flow->ifindex = skb->ifindex;
		flow->generation = settings->generation;
	}
	return 1;
}

static inline_always int is_pure_ack(const struct segment *segment)
{
	return (segment->flags & (ACK | SYN | FIN | RST)) == ACK && segment->payload == 0;
}

static inline_always int pass(struct counters *counters, const struct segment *segment, int is_ack)
{
	counters->packets_passed++;
	if (is_ack && is_pure_ack(segment))
		counters->acks_forwarded++;
	return TCX_NEXT;
}

/* Another processor may have been here later than `now`. */
static inline_always int is_idle(const volatile struct flow *flow, const struct settings *settings,
				 __u64 now)
{
	__s64 since = now - flow->last_segment_ns;

	return since >= 0 && (__u64)since >= settings->idle_ns;
}

/* A connection that comes back after the idle time starts afresh. */
static inline_always void take_account(struct flow *flow, const struct settings *settings, __u64 now,
				  __u64 fresh_id, __u8 flags, __u32 finished)
{
	if (is_idle(flow, settings, now)) {
		/* But not to whom it belongs. */
		flow->flags &= FOREIGN;
		flow->duplicate = 0;
		flow->id = fresh_id;
	}
	flow->last_segment_ns = now;
	if (flags & FIN)
		flow->flags |= finished;
	if ((flags & RST) ||
	    (flow->flags & (FIXED_FINISHED | MOBILE_FINISHED)) == (FIXED_FINISHED | MOBILE_FINISHED))
		flow->flags |= CLOSED;
}

/* A SYN on a known connection opens a new one: what was known is forgotten. But the answer to one does not tell what the
 * segments behind it will be like. */
static inline_always int on_syn(struct counters *counters, const struct flow *flow,
				const struct flow_key *key, const struct segment *segment)
{
	if (flow && (segment->flags & ACK) && (flow->flags & FOREIGN)) {
		counters->packets_foreign++;
		return TCX_NEXT;
	}
	if (flow && !bpf_map_delete_elem(&flows, key))
		counters->flows_removed++;
	return pass(counters, segment, 0);
}

static inline_always void note_ack(struct flow *flow, const struct segment *segment)
{
	flow->mobile.ack = segment->ack;
	flow->mobile.window = segment->window;
	flow->flags &= ~ECHO;
	if (segment->flags & ECE)
		flow->flags |= ECHO;
}

static inline_always void note_timestamps(struct flow *flow, const struct segment *segment)
{
	flow->flags |= TIMESTAMPS;
	flow->mobile.ts_value = segment->ts_value;
	flow->mobile.ts_echo = segment->ts_echo;
}

/* MobileEnd::note */
static inline_always void note(struct flow *flow, const struct segment *segment)
{
	flow->mobile.next_seq = later(flow->mobile.next_seq, segment->seq_end);
	if (segment->has_timestamps &&
	    (!(flow->flags & TIMESTAMPS) ||
	     offset(flow->mobile.ts_value, segment->ts_value) >= 0))
		note_timestamps(flow, segment);
	if (offset(flow->mobile.ack, segment->ack) >= 0)
		note_ack(flow, segment);
}

enum verdict {
	FORWARD,
	DROP_OLD,
	DROP_DUPLICATE,
};

/* Duplicates to have been forwarded after n came. */
static inline_always __u64 forwarded(__u32 n, __u32 threshold)
{
	return 3 * (__u64)n / threshold;
}

/* The ACK filter (paper section V.B.1); `flow` is locked. */
static inline_always enum verdict on_mobile(struct flow *flow, const struct segment *segment,
				       __u32 threshold)
{
	__u32 known = flow->mobile.ack;
	__u16 known_window = flow->mobile.window;
	__u32 known_echo = flow->flags & ECHO;

	if (!(segment->flags & ACK) || !(flow->flags & SENT) || (segment->flags & RST) ||
	    is_after(segment->ack, flow->sent_end))
		return FORWARD;
	if (!(flow->flags & ACKS)) {
		flow->flags = (flow->flags | ACKS) & ~TIMESTAMPS;
		flow->mobile.next_seq = segment->seq_end;
		flow->duplicate = 0;
		note_ack(flow, segment);
		if (segment->has_timestamps)
			note_timestamps(flow, segment);
		return FORWARD;
	}
	note(flow, segment);
	if (is_after(segment->ack, known)) {
		flow->duplicate = 0;
		return FORWARD;
	}
	if (!is_pure_ack(segment) || segment->window != known_window ||
	    !(segment->flags & ECE) != !known_echo)
		return FORWARD;
	if (segment->ack != known)
		return DROP_OLD;
	/* Nothing is outstanding, or the window is held at zero. */
	if (!is_after(flow->sent_end, known) || segment->window == 0)
		return FORWARD;
	flow->duplicate = flow->duplicate % threshold + 1;
	return forwarded(flow->duplicate, threshold) > forwarded(flow->duplicate - 1, threshold) ?
		       FORWARD :
		       DROP_DUPLICATE;
}

/* The data filter (paper section V.B.2) but for the count of retransmissions; `flow` is locked. Whether the segment is
 * to be dropped. */
static inline_always int on_fixed(struct flow *flow, const struct segment *segment)
{
	int is_news;

	if (segment->flags & RST)
		return 0;
	flow->sent_end = flow->flags & SENT ? later(flow->sent_end, segment->seq_end) :
					      segment->seq_end;
	/* A first segment is always news. */
	is_news = !(flow->flags & SENT) || segment->has_sack ||
		  !(flow->flags & FIXED_ACKED) != !(segment->flags & ACK) ||
		  ((segment->flags & ACK) && (flow->fixed_ack != segment->ack ||
					      flow->fixed_window != segment->window));
	flow->flags |= SENT;
	if (segment->flags & ACK) {
		flow->flags |= FIXED_ACKED;
		flow->fixed_ack = segment->ack;
		flow->fixed_window = segment->window;
	} else {
		flow->flags &= ~FIXED_ACKED;
	}
	return (flow->flags & ACKS) && !is_after(segment->seq_end, flow->mobile.ack) && !is_news &&
	       segment->payload > 1 && !(segment->flags & FIN);
}

/* New data on a connection that is at work changes nothing but how far the fixed host has sent and what it acknowledged.
 * That needs no lock, which took a quarter of the program's time: to be behind for a moment by a segment that passes on
 * another processor is what a network that lets segments overtake each other does, too. False: it may be more than that. */
static inline_always int is_plain_news(struct flow *flow, const struct settings *settings, __u64 now,
				       const struct segment *segment)
{
	volatile struct flow *shared = flow;

	if ((segment->flags & (SYN | FIN | RST | ACK)) != ACK || segment->is_foreign ||
	    (shared->flags & (SENT | FIXED_ACKED | FOREIGN)) != (SENT | FIXED_ACKED) ||
	    is_idle(shared, settings, now) ||
	    !is_after(segment->seq_end, shared->sent_end))
		return 0;
	shared->sent_end = segment->seq_end;
	shared->fixed_ack = segment->ack;
	shared->fixed_window = segment->window;
	shared->last_segment_ns = now;
	return 1;
}

/* How often an acknowledged segment came, this time included. */
static inline_always __u32 count_retransmission(__u64 flow, __u32 seq, __u32 last_ack)
{
	struct retransmission_key key = { .flow = flow, .seq = seq };
	struct retransmission first = { .count = 1, .last_ack = last_ack };
	struct retransmission *known = bpf_map_lookup_elem(&retransmissions, &key);

	if (!known) {
		bpf_map_update_elem(&retransmissions, &key, &first, BPF_ANY);
		return 1;
	}
	/* The reference forgets when last_ack advances; to forget now comes to the same. */
	if (known->last_ack != last_ack && offset(seq, last_ack) > REMEMBERED_BYTES)
		known->count = 0;
	known->last_ack = last_ack;
	return ++known->count;
}

/* What the daemon needs for an answer; false: nobody listens. */
static inline_always int answer(const struct flow_key *key, __u32 flags, const struct mobile_end *mobile)
{
	struct answer *answer = bpf_ringbuf_reserve(&answers, sizeof(*answer), 0);

	if (!answer)
		return 0;
	answer->key = *key;
	answer->flags = flags;
	answer->mobile = *mobile;
	bpf_ringbuf_submit(answer, 0);
	return 1;
}

/* A packet of the group, and what is known of its connection. */
struct seen {
	struct packet packet;
	struct segment segment;
	struct flow_key key;
	struct flow *flow;
	struct settings *settings;
	__u16 checksum;
};

/* Looks at a packet; false: it is none of the group's, or undecodable. */
static inline_always int look(struct __sk_buff *skb, struct counters *counters, int from_mobile,
			      struct seen *seen)
{
	struct packet *packet = &seen->packet;
	struct segment *segment = &seen->segment;
	struct flow_key *key = &seen->key;
	__u32 zero = 0;
	int is_common;

	is_common = read_common(skb, packet, segment, &seen->checksum);
	if (!is_common && !read_ip(skb, packet))
		return 0;
	key->fixed = from_mobile ? packet->dst : packet->src;
	key->mobile = from_mobile ? packet->src : packet->dst;
	if (!is_common && !read_segment(skb, packet, segment, &seen->checksum)) {
		if (is_ours(skb, packet->version, &key->mobile))
			counters->packets_undecodable++;
		return 0;
	}
	key->fixed_port = from_mobile ? segment->dst_port : segment->src_port;
	key->mobile_port = from_mobile ? segment->src_port : segment->dst_port;
	seen->flow = bpf_map_lookup_elem(&flows, key);
	seen->settings = bpf_map_lookup_elem(&settings, &zero);
	return seen->settings && is_known_as_ours(skb, seen->settings, seen->flow, packet->version,
						  &key->mobile);
}

SEC("tcx/ingress") int from_mobile(struct __sk_buff *skb)
{
	struct counters *counters = counted();
	struct seen seen = {};
	enum verdict verdict;
	struct flow *flow;
	__u32 threshold, is_foreign;
	__u64 now, id;

	if (!counters || !look(skb, counters, 1, &seen))
		return TCX_NEXT;
	flow = seen.flow;
	if (!is_intact(skb, &seen.packet, seen.checksum)) {
		counters->packets_undecodable++;
		return TCX_NEXT;
	}
	if (seen.segment.flags & SYN)
		return on_syn(counters, flow, &seen.key, &seen.segment);
	if (!flow)
		return pass(counters, &seen.segment, 1);
	threshold = seen.settings->threshold;
	if (threshold < 3)
		return pass(counters, &seen.segment, 1);
	now = bpf_ktime_get_coarse_ns();
	id = fresh_id(counters);
	bpf_spin_lock(&flow->lock);
	take_account(flow, seen.settings, now, id, seen.segment.flags, MOBILE_FINISHED);
	if (seen.segment.is_foreign)
		flow->flags |= FOREIGN;
	is_foreign = flow->flags & FOREIGN;
	verdict = is_foreign ? FORWARD : on_mobile(flow, &seen.segment, threshold);
	bpf_spin_unlock(&flow->lock);
	if (is_foreign) {
		counters->packets_foreign++;
		return TCX_NEXT;
	}
	if (verdict == FORWARD)
		return pass(counters, &seen.segment, 1);
	if (verdict == DROP_OLD)
		counters->acks_old_dropped++;
	else
		counters->acks_duplicate_dropped++;
	counters->packets_dropped++;
	return TCX_DROP;
}

SEC("tcx/egress") int to_mobile(struct __sk_buff *skb)
{
	struct counters *counters = counted();
	struct seen seen = {};
	struct mobile_end mobile;
	struct flow *flow;
	__u64 now, id, flow_id;
	__u32 flags;
	int is_old = 0;

	/* Of this host's own making. */
	if (!counters || !skb->ingress_ifindex)
		return TCX_NEXT;
	if (!look(skb, counters, 0, &seen))
		return TCX_NEXT;
	flow = seen.flow;
	if (seen.segment.flags & SYN)
		return on_syn(counters, flow, &seen.key, &seen.segment);
	now = bpf_ktime_get_coarse_ns();
	if (flow && is_plain_news(flow, seen.settings, now, &seen.segment))
		return pass(counters, &seen.segment, 0);
	id = fresh_id(counters);
	if (!flow) {
		struct flow entry = {
			.last_segment_ns = now,
			.id = id,
			.generation = seen.settings->generation,
			.ifindex = skb->ifindex,
		};

		if ((seen.segment.flags & RST) || !(seen.segment.flags & ACK))
			return pass(counters, &seen.segment, 0);
		if (!bpf_map_update_elem(&flows, &seen.key, &entry, BPF_NOEXIST))
			counters->flows_added++;
		/* Another processor may have been faster. */
		flow = bpf_map_lookup_elem(&flows, &seen.key);
		if (!flow) {
			counters->segments_refused++;
			return pass(counters, &seen.segment, 0);
		}
	}
	bpf_spin_lock(&flow->lock);
	take_account(flow, seen.settings, now, id, seen.segment.flags, FIXED_FINISHED);
	if (seen.segment.is_foreign)
		flow->flags |= FOREIGN;
	if (!(flow->flags & FOREIGN))
		is_old = on_fixed(flow, &seen.segment);
	flags = flow->flags;
	mobile = flow->mobile;
	flow_id = flow->id;
	bpf_spin_unlock(&flow->lock);
	if (flags & FOREIGN) {
		counters->packets_foreign++;
		return TCX_NEXT;
	}
	if (!is_old)
		return pass(counters, &seen.segment, 0);
	if (count_retransmission(flow_id, seen.segment.seq, mobile.ack) % 2 == 0) {
		if (!answer(&seen.key, flags, &mobile))
			return pass(counters, &seen.segment, 0);
		counters->acks_generated++;
	}
	counters->data_dropped++;
	counters->packets_dropped++;
	return TCX_DROP;
}
