/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A TCP option in which a Linux sender reports its cwnd to the receiver, for TCP-DCA (Chen, Lee, Gerla
 * and Sanadidi, "TCP with Delayed Ack for Wireless Networks", section VI).
 *
 * Read first: crates/linux/src/delack/cwnd.rs, the loader; crates/wire/src/options.rs, the option.
 *
 * The program is attached to the root of the cgroup hierarchy and sees the connections of the whole
 * machine; it acts on those of one network namespace. A receiver requests the cwnd: its first segments
 * have the option without a value, 4 bytes. A sender that got a request reports its cwnd: its data
 * segments have the option with the value, 8 bytes. So only receivers that ask get the option, and the
 * SYN, which goes to any listener, is not changed.
 *
 * Flags of a connection are set and never cleared, because another program may have set them, too.
 */
#include "ip.h"
#include "kernel.h"

char license_of_program[] SEC("license") = "Dual MIT/GPL";

/* ---- Maps. The loader knows these layouts: crates/linux/src/delack/cwnd.rs. ---- */

struct role {
	/* Cookie of the network namespace (SO_NETNS_COOKIE). */
	__u64 namespace;
	__u32 requests;
	__u32 reports;
	/* Only connections with the hosts in `peers`, or with the ports in `ports`, are selected. */
	__u32 some_peers;
	__u32 some_ports;
};

struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, struct role);
} role SEC(".maps");

struct {
	uint_field(type, BPF_MAP_TYPE_LPM_TRIE);
	uint_field(map_flags, BPF_F_NO_PREALLOC);
	uint_field(max_entries, 65536);
	type_field(key, struct prefix);
	type_field(value, __u32);
} peers SEC(".maps");

struct {
	uint_field(type, BPF_MAP_TYPE_HASH);
	uint_field(max_entries, 16);
	type_field(key, __u32);
	type_field(value, __u32);
} ports SEC(".maps");

/* Connections in which this host requests cwnd, and in which it reports it. */
struct counts {
	__u64 requesting;
	__u64 reporting;
};

struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, struct counts);
} counts SEC(".maps");

/* State of a connection when the peer's request arrived. */
struct request {
	__u32 snd_nxt;
	__u32 total_retrans;
	/* cwnd is no longer reported. */
	__u32 is_over;
};

/* Requests of the connections in which this host reports cwnd. */
struct {
	uint_field(type, BPF_MAP_TYPE_SK_STORAGE);
	uint_field(map_flags, BPF_F_NO_PREALLOC);
	type_field(key, int);
	type_field(value, struct request);
} requests SEC(".maps");

/* ---- The kernel's interface (linux/bpf.h), which is stable. ---- */

struct bpf_sock;

struct bpf_sock_ops {
	__u32 op;
	__u32 args[4];
	__u32 family;
	/* Volatile, so that the compiler does not merge the loads of both: the verifier refuses that. */
	volatile __u32 remote_ip4;
	__u32 local_ip4;
	volatile __u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 is_fullsock;
	__u32 snd_cwnd;
	__u32 srtt_us;
	__u32 bpf_sock_ops_cb_flags;
	__u32 state;
	__u32 rtt_min;
	__u32 snd_ssthresh;
	__u32 rcv_nxt;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 mss_cache;
	__u32 ecn_flags;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 total_retrans;
	__u32 segs_in;
	__u32 data_segs_in;
	__u32 segs_out;
	__u32 data_segs_out;
	__u32 lost_out;
	__u32 sacked_out;
	__u32 sk_txhash;
	__u64 bytes_received;
	__u64 bytes_acked;
	struct bpf_sock *sk;
	void *skb_data;
	void *skb_data_end;
	__u32 skb_len;
};

enum {
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_PARSE_HDR_OPT_CB = 13,
	BPF_SOCK_OPS_HDR_OPT_LEN_CB = 14,
	BPF_SOCK_OPS_WRITE_HDR_OPT_CB = 15,

	BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG = 1 << 5,
	BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG = 1 << 6,

	/* The kernel computes the MSS, not a segment. */
	BPF_WRITE_HDR_TCP_CURRENT_MSS = 1,

	BPF_SK_STORAGE_GET_F_CREATE = 1,
};

static long (*const bpf_sock_ops_cb_flags_set)(struct bpf_sock_ops *ctx, int flags) = (void *)59;
static void *(*const bpf_sk_storage_get)(void *map, struct bpf_sock *sk, void *value,
					 __u64 flags) = (void *)107;
static __u64 (*const bpf_get_netns_cookie)(void *ctx) = (void *)122;
static long (*const bpf_load_hdr_opt)(struct bpf_sock_ops *ctx, void *option, __u32 len,
				      __u64 flags) = (void *)142;
static long (*const bpf_store_hdr_opt)(struct bpf_sock_ops *ctx, const void *option, __u32 len,
				       __u64 flags) = (void *)143;
static long (*const bpf_reserve_hdr_opt)(struct bpf_sock_ops *ctx, __u32 len,
					 __u64 flags) = (void *)144;

/* ---- The option (RFC 6994). ---- */

enum {
	KIND = 253,
	REQUEST = 4,
	REPORT = 8,
};

struct option {
	__u8 kind;
	__u8 length;
	__u8 experiment[2];
	__u32 cwnd;
};

#define EXPERIMENT { 0xa1, 0xdc }

/*
 * Segments that carry the request. One may be lost, and the last ACK of a handshake may be another
 * host's.
 */
static const __u32 REQUESTS = 5;

/* ---- */

static inline_always struct role *role_in(struct bpf_sock_ops *ctx)
{
	__u32 only = 0;
	struct role *found = bpf_map_lookup_elem(&role, &only);

	return found && found->namespace == bpf_get_netns_cookie(ctx) ? found : 0;
}

static inline_always struct counts *the_counts(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&counts, &only);
}

/* True if `role` selects the connection. */
static inline_always int is_selected(struct bpf_sock_ops *ctx, const struct role *role)
{
	if (role->some_peers) {
		struct prefix peer = { .bits = 128, .address = mapped(ctx->remote_ip4) };

		if (ctx->family != AF_INET) {
			peer.address.words[0] = ctx->remote_ip6[0];
			peer.address.words[1] = ctx->remote_ip6[1];
			peer.address.words[2] = ctx->remote_ip6[2];
			peer.address.words[3] = ctx->remote_ip6[3];
		}
		if (!bpf_map_lookup_elem(&peers, &peer))
			return 0;
	}
	if (role->some_ports) {
		__u32 local = ctx->local_port;
		__u32 remote = ntoh32(ctx->remote_port);

		if (!bpf_map_lookup_elem(&ports, &local) && !bpf_map_lookup_elem(&ports, &remote))
			return 0;
	}
	return 1;
}

/* True if the segment that arrived has a request. */
static inline_always int has_request(struct bpf_sock_ops *ctx)
{
	/* Search pattern: kind, length, experiment. */
	struct option option = { .kind = KIND, .length = REQUEST, .experiment = EXPERIMENT };

	return bpf_load_hdr_opt(ctx, &option, sizeof(option), 0) == REQUEST;
}

static inline_always void remember(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct counts *counts = the_counts();
	struct request now = { .snd_nxt = ctx->snd_nxt, .total_retrans = ctx->total_retrans };

	if (!sk || bpf_sk_storage_get(&requests, sk, 0, 0))
		return;
	if (bpf_sk_storage_get(&requests, sk, &now, BPF_SK_STORAGE_GET_F_CREATE) && counts)
		__sync_fetch_and_add(&counts->reporting, 1);
}

/*
 * True if cwnd is reported to the peer. If the first segments with the option are lost, the path may
 * drop segments because of it; then the option is left out.
 */
static inline_always int is_reporting(struct bpf_sock_ops *ctx, struct bpf_sock *sk)
{
	struct request *request = bpf_sk_storage_get(&requests, sk, 0, 0);

	if (!request)
		return 0;
	if (ctx->total_retrans != request->total_retrans &&
	    (int)(ctx->snd_una - request->snd_nxt) <= 0)
		request->is_over = 1;
	return !request->is_over;
}

static inline_always void begin(struct bpf_sock_ops *ctx, const struct role *role)
{
	struct counts *counts = the_counts();

	if (!is_selected(ctx, role))
		return;

	int flags = ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;

	if (role->reports)
		flags |= BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG;
	if (bpf_sock_ops_cb_flags_set(ctx, flags))
		return;
	if (role->requests && counts)
		__sync_fetch_and_add(&counts->requesting, 1);
	if (role->reports && has_request(ctx))
		remember(ctx);
}

/* Bytes of the option in the next segment. */
static inline_always __u32 length(struct bpf_sock_ops *ctx, const struct role *role)
{
	struct bpf_sock *sk = ctx->sk;

	if (!sk)
		return 0;
	if (role->requests && ctx->segs_out < REQUESTS)
		return REQUEST;
	return role->reports && is_reporting(ctx, sk) ? REPORT : 0;
}

static inline_always void reserve(struct bpf_sock_ops *ctx, const struct role *role)
{
	__u32 bytes = length(ctx, role);

	/* cwnd is reported in data segments only. */
	if (bytes == REPORT && ctx->args[0] != BPF_WRITE_HDR_TCP_CURRENT_MSS && !ctx->skb_len)
		return;
	if (bytes)
		bpf_reserve_hdr_opt(ctx, bytes, 0);
}

static inline_always void write(struct bpf_sock_ops *ctx, const struct role *role)
{
	__u32 bytes = length(ctx, role);
	struct option option = {
		.kind = KIND,
		.length = bytes,
		.experiment = EXPERIMENT,
		.cwnd = ntoh32(ctx->snd_cwnd * ctx->mss_cache),
	};

	/* The kernel refuses this if nothing was reserved. */
	if (bytes == REQUEST)
		bpf_store_hdr_opt(ctx, &option, REQUEST, 0);
	else if (bytes == REPORT)
		bpf_store_hdr_opt(ctx, &option, REPORT, 0);
}

SEC("sockops")
int report_cwnd(struct bpf_sock_ops *ctx)
{
	const struct role *role = role_in(ctx);

	if (!role)
		return 1;
	switch (ctx->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		begin(ctx, role);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		if (role->reports && has_request(ctx))
			remember(ctx);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		reserve(ctx, role);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		write(ctx, role);
		break;
	}
	return 1;
}
