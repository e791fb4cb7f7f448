/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * TCP Karak (Almobaideen and Al-maitah, "TCP Karak: A New TCP AIMD Algorithm Based on Duplicated
 * Acknowledgement for MANET", 2014, section 3, table 1) as a congestion control of Linux.
 *
 * Read first: crates/tcp/src/congestion/karak.rs, the rule and the decisions where the paper is
 * silent; crates/linux/src/cc.rs, the loader. The hooks are called by tcp_input.c of Linux.
 *
 * Same as Linux's reno except for the time-out. One or two duplicate ACKs before a time-out indicate
 * a broken link or a bit error, so slow start begins at an eighth or a quarter of cwnd, rounded up to
 * a power of two. On a time-out Linux calls ssthresh (unless it has called it in this window), sets
 * cwnd to 1 (plus the segments that it considers in flight), and calls set_state.
 *
 * With SACK, Linux often begins fast recovery before the third duplicate (RFC 8985) and calls
 * ssthresh then. The cwnd that is divided is the one from before that recovery, unless SND.UNA moved
 * during the recovery.
 */
#include "kernel.h"

char license_of_program[] SEC("license") = "Dual MIT/GPL";

/* ---- The map. The loader knows its layout: crates/linux/src/cc.rs. ---- */

struct state {
	/* Version of the airtcp that loaded the program; ends with 0. */
	char version[32];
	/* Connections begun and ended since the program was loaded. */
	__u64 begun;
	__u64 ended;
	/* Time-outs after zero, one, two, and more duplicate ACKs. */
	__u64 timeouts[4];
	/* Time-outs after which cwnd is larger than reno's. */
	__u64 raised;
	/* Changes of the congestion state for which the kernel did not call the program. */
	__u64 skipped;
};

struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, struct state);
} state SEC(".maps");

/* ---- Structures of the kernel; libbpf finds where the fields are (CO-RE). ---- */

/* libbpf needs a definition; no field is used. */
struct sock {
};

struct inet_connection_sock {
	__u8 icsk_ca_state : 5;
	__u64 icsk_ca_priv[13];
} __attribute__((preserve_access_index));

struct tcp_options_received {
	__u16 sack_ok : 3;
} __attribute__((preserve_access_index));

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct tcp_options_received rx_opt;
	__u32 snd_una;
	__u32 snd_wnd;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 packets_out;
	__u32 sacked_out;
	__u32 data_segs_in;
} __attribute__((preserve_access_index));

struct ack_sample;

/* libbpf finds the members by their names. */
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[16];
	__u32 flags;
};

enum {
	/* linux/tcp.h */
	TCP_CA_Loss = 4,
	/*
	 * net/tcp.h: any user may choose the algorithm. Without this flag, making it the default of a
	 * network namespace fails and leaks a reference.
	 */
	TCP_CONG_NON_RESTRICTED = 1,
};

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked)
	__attribute__((section(".ksyms")));
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __attribute__((section(".ksyms")));

/* ---- */

/* State of a connection. */
struct karak {
	/* Values at the last ACK. */
	__u32 snd_una;
	__u32 snd_wnd;
	__u32 sacked_out;
	__u32 data_segs_in;
	/* SND.UNA for which `sacked_out` was read. */
	__u32 settled;
	/* Duplicate ACKs since SND.UNA moved or a time-out. */
	__u32 duplicates;
	/* cwnd before it was last reduced; 0 if SND.UNA moved since. */
	__u32 cwnd;
	/* Congestion state as of the kernel's last call. */
	__u32 ca_state;
};

static inline_always struct karak *karak_of(struct tcp_sock *tp)
{
	return (struct karak *)tp->inet_conn.icsk_ca_priv;
}

static inline_always struct state *the_state(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&state, &only);
}

/*
 * Counts changes of the congestion state for which the kernel did not run the program. Linux always
 * runs it; the kernels of some hosted machines do not while process 1 has the processor, and then
 * ssthresh is whatever was on the stack. The count is a lower bound: a skipped ACK that changes no
 * state, such as the second duplicate, goes unnoticed.
 */
static inline_always void notice_what_was_skipped(struct tcp_sock *tp)
{
	struct karak *karak = karak_of(tp);
	struct state *state = the_state();
	__u32 ca_state = bit_field(tp, inet_conn.icsk_ca_state);

	if (karak->ca_state == ca_state)
		return;
	karak->ca_state = ca_state;
	if (state)
		__sync_fetch_and_add(&state->skipped, 1);
}

static inline_always __u32 least(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

SEC("struct_ops")
void karak_init(__u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct karak *karak = karak_of(tp);
	struct state *state = the_state();

	karak->snd_una = karak->settled = tp->snd_una;
	karak->snd_wnd = tp->snd_wnd;
	karak->sacked_out = tp->sacked_out;
	karak->data_segs_in = tp->data_segs_in;
	karak->duplicates = 0;
	karak->cwnd = 0;
	karak->ca_state = bit_field(tp, inet_conn.icsk_ca_state);
	if (state)
		__sync_fetch_and_add(&state->begun, 1);
}

SEC("struct_ops")
void karak_release(__u64 *arguments)
{
	struct state *state = the_state();

	(void)arguments;
	if (state)
		__sync_fetch_and_add(&state->ended, 1);
}

SEC("struct_ops")
void karak_cong_avoid(__u64 *arguments)
{
	tcp_reno_cong_avoid((struct sock *)arguments[0], arguments[1], arguments[2]);
}

SEC("struct_ops")
__u32 karak_undo_cwnd(__u64 *arguments)
{
	return tcp_reno_undo_cwnd((struct sock *)arguments[0]);
}

/*
 * Called after the kernel's bookkeeping of an ACK. If SND.UNA moved, `sacked_out` is read here: Linux
 * before 6.16 calls in_ack_event earlier, when segments that the ACK covers are still included.
 */
SEC("struct_ops")
void karak_pkts_acked(__u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct karak *karak = karak_of(tp);

	if (karak->settled == tp->snd_una)
		return;
	karak->settled = tp->snd_una;
	karak->sacked_out = tp->sacked_out;
}

/* Duplicate ACKs by RFC 5681 section 2; with SACK, ACKs with new SACK information (RFC 6675
   section 2). */
SEC("struct_ops")
void karak_in_ack_event(__u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct karak *karak = karak_of(tp);

	notice_what_was_skipped(tp);
	if (karak->snd_una != tp->snd_una) {
		karak->duplicates = 0;
		karak->cwnd = 0;
	} else {
		int is_duplicate = bit_field(tp, rx_opt.sack_ok) ?
					   tp->sacked_out > karak->sacked_out :
					   karak->snd_wnd == tp->snd_wnd &&
						   karak->data_segs_in == tp->data_segs_in;

		if (tp->packets_out && is_duplicate)
			karak->duplicates += 1;
		karak->sacked_out = tp->sacked_out;
	}
	karak->snd_una = tp->snd_una;
	karak->snd_wnd = tp->snd_wnd;
	karak->data_segs_in = tp->data_segs_in;
}

/* Half of the flight size (RFC 5681 section 3.1, equation 4), at the beginning of any reduction. */
SEC("struct_ops")
__u32 karak_ssthresh(__u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	__u32 half = least(tp->snd_cwnd, tp->packets_out) / 2;

	karak_of(tp)->cwnd = tp->snd_cwnd;
	return half < 2 ? 2 : half;
}

SEC("struct_ops")
void karak_set_state(__u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct karak *karak = karak_of(tp);
	struct state *state = the_state();
	__u32 duplicates = karak->duplicates;

	notice_what_was_skipped(tp);
	karak->ca_state = (__u8)arguments[1];
	if (karak->ca_state != TCP_CA_Loss)
		return;
	if (state)
		__sync_fetch_and_add(&state->timeouts[least(duplicates, 3)], 1);
	if (duplicates == 1 || duplicates == 2) {
		__u32 divisor = duplicates == 1 ? 8 : 4;
		/* Once SND.UNA has moved in a recovery, cwnd is ssthresh (RFC 6675 section 5). */
		__u32 cwnd = karak->cwnd ? karak->cwnd : tp->snd_ssthresh;
		__u32 used = least(cwnd, tp->packets_out);
		__u32 restart = 1;

		for (int i = 0; i < 24 && restart * divisor < used; i++)
			restart *= 2;
		restart = least(restart, tp->snd_ssthresh);
		if (restart > tp->snd_cwnd) {
			tp->snd_cwnd = restart;
			if (state)
				__sync_fetch_and_add(&state->raised, 1);
		}
	}
	karak->duplicates = 0;
	karak->cwnd = tp->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops karak = {
	.init = (void *)karak_init,
	.release = (void *)karak_release,
	.ssthresh = (void *)karak_ssthresh,
	.cong_avoid = (void *)karak_cong_avoid,
	.set_state = (void *)karak_set_state,
	.in_ack_event = (void *)karak_in_ack_event,
	.pkts_acked = (void *)karak_pkts_acked,
	.undo_cwnd = (void *)karak_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "karak",
};
