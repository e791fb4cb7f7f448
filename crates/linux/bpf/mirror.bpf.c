/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Mirrors forwarded packets to the daemon, for mechanisms that only watch while a mobile is in reach
 * (M-TCP+, holdover) or always (wake, which handles all protocols and needs only packets to mobiles
 * that do not answer).
 *
 * Read first: crates/linux/src/datapath/mirror.rs, on mirrored and queued packets.
 *
 * The programs are attached to netfilter's hooks (Linux 6.4), before table mangle, which holds the
 * gateway's queue: one to FORWARD, and for uplinks another to LOCAL_IN and LOCAL_OUT. They see the
 * packets that would be queued, each once, with the mobile's own address, or that of a host on
 * board, in both directions. They accept every packet.
 *
 * The programs select packets coarsely; the daemon looks closer. Packets above 64 KiB are not
 * mirrored. For a gateway that only observes, the programs also count packets.
 */
#include "ip.h"
#include "kernel.h"

char license_of_program[] SEC("license") = "Dual MIT/GPL";

/* ---- Maps. The daemon knows these layouts: crates/linux/src/datapath/mirror.rs. ---- */

/* Packets of a mobile that are mirrored. */
enum {
	OF_TCP,
	OF_ALL_PROTOCOLS,
	/* All protocols, but only packets sent while answers are overdue (to a mobile that does not
	   answer, or from a mobile that gets no answers), and the packet that ends the silence. */
	TO_SILENT_MOBILE,
	FROM_UNANSWERED_MOBILE,
	/* Internal to this program: not a mobile's address. */
	NO_MOBILE,
};

struct policy {
	__u32 selection;
	/* Index of the mobile's group, as in `traffic`. */
	__u32 group;
};

/* By address prefix of the mobiles. */
struct {
	uint_field(type, BPF_MAP_TYPE_LPM_TRIE);
	uint_field(map_flags, BPF_F_NO_PREALLOC);
	uint_field(max_entries, 65536);
	type_field(key, struct prefix);
	type_field(value, struct policy);
} mobiles SEC(".maps");

/* Policy of an uplink, by its interface index. */
struct uplink {
	struct policy policy;
	/* Replaces a mobile's address in other maps. */
	struct address name;
};

struct {
	uint_field(type, BPF_MAP_TYPE_HASH);
	uint_field(max_entries, 256);
	type_field(key, __u32);
	type_field(value, struct uplink);
} uplinks SEC(".maps");

struct settings {
	/* Some mobile has packets of other protocols than TCP mirrored. */
	__u64 any_protocol;
	/* `uplinks` is not empty. */
	__u64 any_uplink;
	/* Firewall mark of the gateway's own packets, and the mask of its bits. */
	__u64 mark;
	__u64 mark_mask;
	/* Key of the hashes, so that nobody can choose flows that collide in `seen` or `flows`. */
	__u64 secret;
	/* Packets are counted. */
	__u64 observes;
	/* Length of the kernel's tick in nanoseconds. */
	__u64 tick;
};

struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, struct settings);
} settings SEC(".maps");

/* Changes whenever `mobiles` or `watched` has changed: entries of `mobile_cache` of another
   generation are stale. */
struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, __u64);
} generation SEC(".maps");

/* Temporary override of a mobile's policy. */
enum {
	/* Not mirrored: its packets are queued to the daemon. */
	QUEUED,
	/* All of its packets are mirrored. */
	MIRRORED,
	/* Internal to this program: the policy applies. */
	NO_OVERRIDE,
};

struct {
	uint_field(type, BPF_MAP_TYPE_HASH);
	uint_field(map_flags, BPF_F_NO_PREALLOC);
	uint_field(max_entries, 65536);
	type_field(key, struct address);
	type_field(value, __u32);
} watched SEC(".maps");

/*
 * Liveness of a mobile that has been seen. Times are CLOCK_MONOTONIC in nanoseconds. Processors may
 * write at the same time: then a packet may not be mirrored, or be mirrored needlessly.
 */
struct presence {
	/* Time of the first packet over the link since the last answer; 0 if there was none. */
	__u64 waits_since;
	/* Time of the last packet over the link, to within SHORTEST_SILENCE, so that processors need not
	   write it for each packet. */
	__u64 last_sent;
	/* Response time of answers: a maximum that decays. */
	__u64 response;
	/* Longest response time so far. */
	__u64 round_trip;
	/* Packets were mirrored since the last answer. */
	__u64 is_notified;
};

/* Presence of mobiles that have been seen. Packets to any other address were never answered, and are
   mirrored. An entry in `mobile_cache` is newer than the one here. */
struct {
	uint_field(type, BPF_MAP_TYPE_LRU_HASH);
	uint_field(max_entries, 65536);
	type_field(key, struct address);
	type_field(value, struct presence);
} presences SEC(".maps");

/*
 * Cache of the other maps for an address, indexed by a hash of it. The kernel's map lookups, and its
 * clock, would otherwise take most of the time of this program. Of addresses that collide, the
 * latest has the entry, but only a mobile that has been seen replaces another one: scans do not.
 */
struct cached_mobile {
	struct address address;
	/* `generation` at which the entry was filled; 0: invalid. */
	__u64 generation;
	struct policy policy;
	__u32 override;
	__u32 is_seen;
	/* Lock of a processor that fills the entry. */
	__u64 is_taken;
	/* The kernel's tick of the latest packet. */
	__u64 tick;
	/* Time of the first packet in that tick, used as the time throughout the tick. */
	__u64 time;
	/* Valid if `is_seen`. */
	struct presence presence;
};

#define CACHE_BITS 14

struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1 << CACHE_BITS);
	type_field(key, __u32);
	type_field(value, struct cached_mobile);
} mobile_cache SEC(".maps");

#define SEEN_BITS 18

/* Last time that a flow sent something while answers arrived, in units of SEEN_SHIFT, recorded if it
   was the first to send after an answer. By a hash of the flow; flows may collide. */
struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1 << SEEN_BITS);
	type_field(key, __u32);
	type_field(value, __u32);
} seen SEC(".maps");

/* Units of 2^30 ns, about a second. */
#define SEEN_SHIFT 30

#define MILLISECOND 1000000ull
/* A shorter silence means nothing. Linux sends a tail loss probe two ticks after two round trips; it
   must not be missed. */
#define SHORTEST_SILENCE (5 * MILLISECOND)
/* A longer response time is an outage, and does not count. */
#define LONGEST_RESPONSE (1000 * MILLISECOND)
/* After this time without a packet no answer is expected any more, from a mobile or for a flow. */
#define IDLE (5000 * MILLISECOND)

enum {
	FLOW_UNKNOWN,
	FLOW_KNOWN,
	FLOW_NEW,
};

/* Header of each mirrored packet in the ring buffers. */
struct mirror_header {
	__u32 len;
	__u32 input;
	__u32 output;
	/* The daemon has to verify the checksums. */
	__u32 verify;
	/* Payload bytes of each segment of a super-packet (GRO, GSO); 0 if it is none. */
	__u32 datagram;
	/* FLOW_KNOWN if the flow sent something before the silence. FLOW_UNKNOWN: the fields below are
	   not valid. */
	__u32 flow;
	/* Fields of the mobile's `presence`. */
	__u64 waits_since;
	__u64 response;
	__u64 round_trip;
};

/*
 * Small enough to stay in the processor's caches, which halves the time of a copy (benches/gateway).
 * Holds one millisecond of 30 Gbit/s; the daemon reads every half millisecond.
 */
struct {
	uint_field(type, BPF_MAP_TYPE_RINGBUF);
	uint_field(max_entries, 4 * 1024 * 1024);
} mirrored SEC(".maps");

/* Takes packets once `mirrored` is full, until the daemon has read all of it: the daemon reads
   `mirrored` first, so the order stays. Holds nine milliseconds of 30 Gbit/s. */
struct {
	uint_field(type, BPF_MAP_TYPE_RINGBUF);
	uint_field(max_entries, 32 * 1024 * 1024);
} backlog SEC(".maps");

/* Packets for which neither ring buffer had room. */
struct {
	uint_field(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, __u64);
} missed SEC(".maps");

/* Protocol classes by which a group's packets are counted. */
enum {
	CLASS_TCP,
	/* UDP port 443. */
	CLASS_QUIC,
	CLASS_OTHER,
	CLASSES,
};

struct traffic {
	__u64 packets;
	__u64 bytes;
	__u64 flows;
};

/* By group and class. The daemon sets its size. */
struct {
	uint_field(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, struct traffic);
} traffic SEC(".maps");

/* Last time that a flow was seen in either direction, in units of SEEN_SHIFT; 0: never. By a hash of
   the flow; flows may collide. As large as `seen`, or one element if packets are not counted. */
struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, __u32);
} flows SEC(".maps");

/* Idle time after which a flow has ended, in units of SEEN_SHIFT (RFC 4787 section 4.3: 5 minutes). */
#define FLOW_IDLE 280

#define HTTPS 443

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

/* Policy of a mobile; NULL if the address is not a mobile's. */
static inline_always struct policy *of_mobile(const struct address *address)
{
	struct prefix prefix = { .bits = 128, .address = *address };

	return bpf_map_lookup_elem(&mobiles, &prefix);
}

/* The uplink with this interface index (0: no interface); NULL if it is not an uplink. */
static inline_always const struct uplink *of_uplink(__u32 index)
{
	return index ? bpf_map_lookup_elem(&uplinks, &index) : 0;
}

/* Multicast, broadcast or link-local. */
static inline_always int is_of_link(const struct address *address)
{
	__u32 ipv4 = ntoh32(address->words[3]), first = ntoh32(address->words[0]);

	if (!first && !address->words[1] && address->words[2] == ntoh32(0x0000ffff))
		return ipv4 >= 0xe0000000 || ipv4 >> 16 == 0xa9fe;
	return first >> 24 == 0xff || first >> 22 == 0xfe80 >> 6;
}

/* Reads words of a packet; not 0 if it is shorter. Linear data are read in place: a helper or a dynptr
   takes longer than the rest of this program. */
static inline_always long read_words(struct sk_buff *skb, __u32 at, __u32 *to, __u32 count)
{
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

static inline_always __u32 datagram_size(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = (const void *)(skb->head + skb->end);
	__u16 size = 0;

	bpf_probe_read_kernel(&size, sizeof(size), &info->gso_size);
	return size;
}

/* TCP may follow extension headers. */
static inline_always int may_be_tcp(__u8 next_header)
{
	return next_header == PROTOCOL_TCP || next_header == PROTOCOL_HOP_BY_HOP ||
	       next_header == PROTOCOL_ROUTING || next_header == PROTOCOL_DESTINATION;
}

/* Reserves a record; NULL if neither ring buffer has room. */
static inline_always void *reserve(__u64 size)
{
	void *record = 0;

	if (!bpf_ringbuf_query(&backlog, UNREAD_BYTES))
		record = bpf_ringbuf_reserve(&mirrored, size, 0);
	if (!record)
		record = bpf_ringbuf_reserve(&backlog, size, 0);
	return record;
}

/* Copies the packet to a record with room for `most` bytes. A reader that has read all earlier records
   is woken. The size must be constant for the verifier. */
#define mirror_within(most)                                                                          \
	do {                                                                                         \
		struct {                                                                             \
			struct mirror_header head;                                                   \
			__u8 packet[most];                                                           \
		} *record = reserve(sizeof(*record));                                                \
		if (!record)                                                                         \
			return miss();                                                               \
		record->head = *head;                                                                \
		if (bpf_dynptr_read(record->packet, head->len, packet, 0, 0)) {                      \
			bpf_ringbuf_discard(record, 0);                                              \
			return miss();                                                               \
		}                                                                                    \
		bpf_ringbuf_submit(record, 0);                                                       \
		return 1;                                                                            \
	} while (0)

static int miss(void)
{
	__u32 only = 0;
	__u64 *count = bpf_map_lookup_elem(&missed, &only);

	if (count)
		*count += 1;
	return 0;
}

/* True if there was room for the packet. */
static inline_always int mirror(const struct mirror_header *head, const struct bpf_dynptr *packet)
{
	if (head->len <= 112)
		mirror_within(112);
	if (head->len <= 1520)
		mirror_within(1520);
	if (head->len <= 9200)
		mirror_within(9200);
	if (head->len <= 32 * 1024)
		mirror_within(32 * 1024);
	if (head->len <= 64 * 1024)
		mirror_within(64 * 1024);
	return 1;
}

/* Time from `since` to `now`; 0 if `now` is earlier, as it may be another processor's. */
static inline_always __u64 elapsed(__u64 since, __u64 now)
{
	return now > since ? now - since : 0;
}

/* Handles an answer; true if the daemon has to see it. */
static inline_always int on_answer(struct presence *presence, __u64 now)
{
	if (presence->waits_since) {
		__u64 waited = elapsed(presence->waits_since, now);
		__u64 lately = presence->response - presence->response / 8;

		presence->waits_since = 0;
		if (waited <= LONGEST_RESPONSE) {
			presence->response = waited > lately ? waited : lately;
			if (waited > presence->round_trip)
				presence->round_trip = waited;
		}
	}
	return presence->is_notified != 0;
}

/* True if an answer is expected and not late, as for most packets of fast connections. */
static inline_always int is_answer_due(const struct presence *presence, __u64 now)
{
	__u64 since = presence->waits_since;

	return since && !presence->is_notified && elapsed(since, now) <= SHORTEST_SILENCE;
}

/* A packet over the link, from its transport header on. */
struct outgoing {
	struct tcp_header tcp;
	__u8 protocol;
	/* The receiver will answer it. Pure ACKs are not answered. */
	__u8 expects_answer;
	/* Shorter than its headers; the daemon counts such packets. */
	__u8 is_short;
};

static inline_always struct outgoing read_outgoing(struct sk_buff *skb, __u32 header,
						   __u8 protocol)
{
	struct outgoing read = { .protocol = protocol, .expects_answer = 1 };

	if (protocol == PROTOCOL_TCP) {
		if (read_words(skb, header, (__u32 *)&read.tcp, sizeof(read.tcp) / 4))
			read.is_short = 1;
		else
			read.expects_answer = skb->len != header + (read.tcp.offset >> 4) * 4 ||
				    read.tcp.flags & TCP_FIN_SYN;
	} else if (protocol == PROTOCOL_UDP) {
		if (read_words(skb, header, &read.tcp.ports, 1))
			read.is_short = 1;
	}
	return read;
}

/* Index of a flow in `seen` or `flows`. */
static inline_always __u32 place_of(__u64 secret, const struct address *source,
				    const struct address *target, __u32 ports, __u8 protocol)
{
	const __u64 odd = 0x9e3779b97f4a7c15;
	__u64 hash = (secret ^ protocol) * odd;

	for (int i = 0; i < 4; i++) {
		hash = (hash ^ source->words[i]) * odd;
		hash = (hash ^ target->words[i]) * odd;
	}
	hash = (hash ^ (hash >> 32) ^ ports) * odd;
	return hash >> (64 - SEEN_BITS);
}

static inline_always __u32 *seen_of(__u64 secret, const struct address *source,
				    const struct address *target, const struct outgoing *read)
{
	__u32 at = place_of(secret, source, target, read->tcp.ports, read->protocol);

	return bpf_map_lookup_elem(&seen, &at);
}

static inline_always __u32 segments(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = (const void *)(skb->head + skb->end);
	__u16 count = 0;

	bpf_probe_read_kernel(&count, sizeof(count), &info->gso_segs);
	return count ? count : 1;
}

/* Counts a packet between a mobile and another host; its transport header begins at `header`. */
static inline_always void count(struct sk_buff *skb, __u64 secret, __u32 group, __u32 header,
				__u8 protocol, const struct address *mobile,
				const struct address *other, int is_to_mobile)
{
	__u32 ports = 0, class = CLASS_OTHER;

	if (protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP) {
		read_words(skb, header, &ports, 1);
		ports = ntoh32(ports);
		if (protocol == PROTOCOL_TCP)
			class = CLASS_TCP;
		else if (ports >> 16 == HTTPS || (ports & 0xffff) == HTTPS)
			class = CLASS_QUIC;
		/* The mobile's port first, in either direction. */
		if (is_to_mobile)
			ports = ports << 16 | ports >> 16;
	}

	__u32 at = group * CLASSES + class;
	struct traffic *traffic_of = bpf_map_lookup_elem(&traffic, &at);

	if (!traffic_of)
		return;
	traffic_of->packets += segments(skb);
	traffic_of->bytes += skb->len;

	__u32 place = place_of(secret, mobile, other, ports, protocol);
	__u32 *last = bpf_map_lookup_elem(&flows, &place);
	__u32 time = (bpf_ktime_get_ns() >> SEEN_SHIFT) + 1;

	if (!last || *last == time)
		return;
	if (!*last || time - *last > FLOW_IDLE)
		traffic_of->flows += 1;
	*last = time;
}

/*
 * Handles a packet over the link, to or from a mobile with this presence. True if answers are overdue,
 * so the packet has to be mirrored; `head` then describes the silence.
 */
static inline_always int on_outgoing(struct presence *presence, __u64 now, __u64 tick, __u32 *seen,
				     int is_watched, struct mirror_header *head)
{
	__u64 since = presence->waits_since, idle = elapsed(presence->last_sent, now);

	if (idle > MILLISECOND)
		presence->last_sent = now;
	if (!since || (!presence->is_notified && idle > IDLE))
		presence->waits_since = since = now;
	head->waits_since = since;
	head->response = presence->response;
	head->round_trip = presence->round_trip;

	__u64 waited = elapsed(since, now);
	__u32 time = now >> SEEN_SHIFT, earliest = (since - IDLE) >> SEEN_SHIFT;
	/* Recorded times may be early by a tick. */
	int is_silent = waited > SHORTEST_SILENCE &&
			waited > presence->response + presence->response / 4 + tick;

	/* Times wrap. */
	head->flow = *seen && (int)(*seen - earliest) >= 0 ? FLOW_KNOWN : FLOW_NEW;
	if (is_silent || presence->is_notified)
		return 1;
	if (!is_watched && *seen != time)
		*seen = time;
	return 0;
}

/* True if only packets sent into a silence, and the packet that ends it, are mirrored. */
static inline_always int is_partial(__u32 selection)
{
	return selection == TO_SILENT_MOBILE || selection == FROM_UNANSWERED_MOBILE;
}

/* The mobile of a packet, and its policy. */
struct party {
	struct policy policy;
	/* Its entry in `mobile_cache`; NULL if another address has it. */
	struct cached_mobile *cached;
	__u32 override;
	/* NULL if it was never seen, or if its presence is not tracked. */
	struct presence *presence;
	__u64 now;
};

static inline_always __u32 override_of(const struct address *mobile)
{
	const __u32 *override = bpf_map_lookup_elem(&watched, mobile);

	return override ? *override : NO_OVERRIDE;
}

/* NULL if the mobile was never seen, or if its presence is not tracked. */
static inline_always struct presence *presence_of(const struct policy *policy,
						  const struct address *mobile)
{
	return is_partial(policy->selection) ? bpf_map_lookup_elem(&presences, mobile) : 0;
}

/* Fills a cache entry from the maps. NULL if the entry stays with another address. */
static __attribute__((noinline)) struct cached_mobile *cache_fill(struct cached_mobile *cached, __u64 as_of,
						     const struct address *address)
{
	const struct policy *policy = of_mobile(address);
	const struct presence *presence = policy ? presence_of(policy, address) : 0;
	int is_same = is_equal(&cached->address, address);

	if (!is_same && cached->is_seen && !presence)
		return 0;
	if (__sync_lock_test_and_set(&cached->is_taken, 1))
		return 0;
	cached->generation = 0;
	if (!is_same) {
		if (cached->is_seen)
			bpf_map_update_elem(&presences, &cached->address, &cached->presence, 0);
		cached->address = *address;
		cached->is_seen = 0;
		cached->tick = 0;
	}
	if (presence && !cached->is_seen) {
		cached->presence = *presence;
		cached->is_seen = 1;
	}
	cached->policy.selection = policy ? policy->selection : NO_MOBILE;
	cached->policy.group = policy ? policy->group : 0;
	cached->override = override_of(address);
	cached->generation = as_of;
	cached->is_taken = 0;
	return cached;
}

/* Cache entry of an address, filled if necessary. NULL if another address has it. */
static inline_always struct cached_mobile *cache_lookup(__u64 secret, __u64 as_of,
					    const struct address *address)
{
	const __u64 odd = 0x9e3779b97f4a7c15;
	const __u32 *words = address->words;
	__u64 hash = (secret ^ words[0] ^ ((__u64)words[1] << 32)) * odd;

	hash = (hash ^ (hash >> 32) ^ words[2] ^ ((__u64)words[3] << 32)) * odd;

	__u32 at = hash >> (64 - CACHE_BITS);
	struct cached_mobile *place = bpf_map_lookup_elem(&mobile_cache, &at);

	if (!place || (place->generation == as_of && is_equal(&place->address, address)))
		return place;
	return cache_fill(place, as_of, address);
}

/* Current time, read once a tick. */
static inline_always __u64 time_of(struct cached_mobile *cached)
{
	__u64 tick = bpf_jiffies64();

	if (cached->tick != tick) {
		cached->time = bpf_ktime_get_ns();
		cached->tick = tick;
	}
	return cached->time;
}

/* Looks a mobile up in the maps, by its address or an uplink's name. */
static inline_always void look_up(struct party *party, const struct policy *policy,
				  const struct address *mobile)
{
	party->policy = *policy;
	party->cached = 0;
	party->override = override_of(mobile);
	party->presence = presence_of(policy, mobile);
	party->now = bpf_ktime_get_ns();
}

/* Looks an address up; true if it is a mobile's. */
static inline_always int find(struct party *party, __u64 secret, __u64 as_of,
			      const struct address *address)
{
	struct cached_mobile *cached = cache_lookup(secret, as_of, address);

	if (!cached) {
		const struct policy *policy = of_mobile(address);

		if (policy)
			look_up(party, policy, address);
		return policy != 0;
	}
	if (cached->policy.selection == NO_MOBILE)
		return 0;
	party->policy = cached->policy;
	party->cached = cached;
	party->override = cached->override;
	party->presence = cached->is_seen && is_partial(cached->policy.selection) ? &cached->presence : 0;
	party->now = time_of(cached);
	return 1;
}

/* Begins to track a mobile with its first answer. */
static inline_always void note_first_answer(const struct party *party, const struct address *mobile)
{
	struct presence first = { .response = 0 };

	if (party->cached) {
		party->cached->presence = first;
		party->cached->is_seen = 1;
	} else {
		bpf_map_update_elem(&presences, mobile, &first, 0);
	}
}

static inline_always int mirror_one(struct bpf_nf_ctx *ctx, int is_local)
{
	const struct nf_hook_state *state = ctx->state;
	struct sk_buff *skb = ctx->skb;
	struct address source, target;
	struct bpf_dynptr packet;
	__u32 only = 0;
	const struct settings *wanted = bpf_map_lookup_elem(&settings, &only);
	const __u64 *as_of = bpf_map_lookup_elem(&generation, &only);
	__u32 header;
	__u8 protocol;
	int is_tcp;
	union {
		struct ipv4_header v4;
		struct ipv6_header v6;
	} ip;

	if (!wanted || !as_of || (is_local && (skb->mark & wanted->mark_mask) == wanted->mark))
		return NF_ACCEPT;

	/* Read before the program branches: for each load of such a pointer that the verifier meets, it
	   searches all types of the kernel. */
	__u32 input = state->in ? state->in->ifindex : 0;
	__u32 output = state->out ? state->out->ifindex : 0;

	if (state->pf == NFPROTO_IPV4) {
		if (read_words(skb, 0, (__u32 *)&ip.v4, sizeof(ip.v4) / 4))
			return NF_ACCEPT;
		protocol = ip.v4.protocol;
		is_tcp = protocol == PROTOCOL_TCP;
		header = (ip.v4.version_ihl & 15) * 4;
		source = mapped(ip.v4.src);
		target = mapped(ip.v4.dst);
	} else {
		if (read_words(skb, 0, (__u32 *)&ip.v6, sizeof(ip.v6) / 4))
			return NF_ACCEPT;
		protocol = ip.v6.next_header;
		is_tcp = may_be_tcp(protocol);
		header = sizeof(ip.v6);
		source = ip.v6.src;
		target = ip.v6.dst;
	}
	if (!is_tcp && !wanted->any_protocol)
		return NF_ACCEPT;

	struct party party;
	int is_to_mobile = !is_local && find(&party, wanted->secret, *as_of, &target);
	int is_of_mobile = is_to_mobile ||
			   (!is_local && find(&party, wanted->secret, *as_of, &source));
	const struct address *mobile = is_to_mobile ? &target : &source;

	if (!is_of_mobile) {
		if (!wanted->any_uplink)
			return NF_ACCEPT;

		const struct uplink *to = of_uplink(output);
		const struct uplink *from = of_uplink(input);
		const struct uplink *uplink = to ? to : from;

		/* Packets from one uplink to another are not from hosts on board, and link-local
		   packets say nothing about the path beyond the link. */
		if (!uplink || (to && from) || is_of_link(&source) || is_of_link(&target))
			return NF_ACCEPT;
		look_up(&party, &uplink->policy, &uplink->name);
		mobile = &uplink->name;
		is_to_mobile = to != 0;
	}

	__u32 selection = party.policy.selection;

	if (selection == OF_TCP && !is_tcp)
		return NF_ACCEPT;
	if (wanted->observes)
		count(skb, wanted->secret, party.policy.group, header, protocol,
		      is_to_mobile ? &target : &source, is_to_mobile ? &source : &target,
		      is_to_mobile);

	struct presence *presence = party.presence, *answered = 0;
	int is_answer = is_to_mobile != (selection == TO_SILENT_MOBILE);
	int is_watched = party.override != NO_OVERRIDE;

	if (presence && !is_answer && is_answer_due(presence, party.now))
		return NF_ACCEPT;
	if (party.override == QUEUED)
		return NF_ACCEPT;

	struct mirror_header head = { .len = skb->len, .flow = FLOW_UNKNOWN };

	if (is_partial(selection)) {
		int is_needed = 1;

		if (is_answer) {
			if (presence)
				is_needed = on_answer(presence, party.now);
			else
				note_first_answer(&party, mobile);
			answered = presence;
		} else if (presence) {
			struct outgoing read = read_outgoing(skb, header, protocol);

			if (!read.expects_answer)
				is_needed = presence->is_notified != 0;
			else if (!read.is_short) {
				__u32 *at = seen_of(wanted->secret, &source, &target, &read);

				if (!at)
					return NF_ACCEPT;
				is_needed = on_outgoing(presence, party.now, wanted->tick, at,
							is_watched, &head);
				if (is_needed || is_watched)
					presence->is_notified = 1;
			}
		}
		if (!is_needed && !is_watched)
			return NF_ACCEPT;
	}

	__u8 summed = bit_field(skb, ip_summed);

	head.input = input;
	head.output = output;
	head.verify = summed != CHECKSUM_UNNECESSARY && summed != CHECKSUM_PARTIAL &&
		      !bit_field(skb, csum_valid);
	head.datagram = datagram_size(skb);
	if (bpf_dynptr_from_skb((struct __sk_buff *)skb, 0, &packet))
		return NF_ACCEPT;
	if (mirror(&head, &packet) && answered)
		answered->is_notified = 0;
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
