/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Copies of what the kernel forwards, for the mechanisms that only watch while a mobile is in reach
 * (M-TCP+, holdover), or always (wake, which is about all protocols and needs only what goes to
 * mobiles that do not answer).
 *
 * Read first: crates/linux/src/datapath/copies.rs, on how copies and queued packets go together.
 *
 * The programs are attached to netfilter's hooks (Linux 6.4), before table mangle, where the
 * gateway's queue is: one to FORWARD, and for uplinks another to LOCAL_IN and LOCAL_OUT. They see
 * the packets that would be queued, each once, with a mobile's own address in both directions, or
 * that of a host on board. They let all of them pass.
 *
 * It copies what may be of interest; the daemon looks closer. Packets above 64 KiB are not copied.
 * For a gateway that only observes it counts packets, too.
 */
#include "ip.h"
#include "kernel.h"

char license_of_program[] SEC("license") = "Dual MIT/GPL";

/* ---- Maps. The daemon knows these layouts: crates/linux/src/datapath/copies.rs. ---- */

/* What is copied of a mobile's packets. */
enum {
	OF_TCP,
	OF_ALL_PROTOCOLS,
	/* Of all protocols, and only what is sent into a silence: to a mobile that does not answer, or
	   from a mobile that gets no answers. And what ends the silence. */
	TO_SILENT_MOBILE,
	FROM_UNANSWERED_MOBILE,
	/* In this program alone: it is no mobile. */
	NO_MOBILE,
};

struct treatment {
	__u32 what;
	/* In which group the mobile is: its place in `traffic`. */
	__u32 group;
};

/* By the mobiles' addresses. */
struct {
	uint_field(type, BPF_MAP_TYPE_LPM_TRIE);
	uint_field(map_flags, BPF_F_NO_PREALLOC);
	uint_field(max_entries, 65536);
	type_field(key, struct prefix);
	type_field(value, struct treatment);
} mobiles SEC(".maps");

/* What is copied of an uplink's packets, by its index. */
struct uplink {
	struct treatment treatment;
	/* Stands for a mobile's address in other maps. */
	struct address name;
};

struct {
	uint_field(type, BPF_MAP_TYPE_HASH);
	uint_field(max_entries, 256);
	type_field(key, __u32);
	type_field(value, struct uplink);
} uplinks SEC(".maps");

struct settings {
	/* Packets of other protocols than TCP are copied of any mobile. */
	__u64 any_protocol;
	/* There are uplinks. */
	__u64 any_uplink;
	/* Firewall mark of the gateway's own packets, and which of its bits count. */
	__u64 mark;
	__u64 mark_mask;
	/* Nobody can choose flows that share a place in `seen` or `flows`. */
	__u64 secret;
	/* Packets are counted. */
	__u64 observes;
	/* How long the kernel's ticks are, in nanoseconds. */
	__u64 tick;
};

struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, struct settings);
} settings SEC(".maps");

/* Another number whenever `mobiles` or `watched` has changed. */
struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, __u64);
} generation SEC(".maps");

/* Mobiles that are treated otherwise for now. */
enum {
	/* Their packets come to the daemon themselves. */
	QUEUED,
	/* All of their packets are copied. */
	COPIED,
	/* In this program alone: as the others. */
	NOT_WATCHED,
};

struct {
	uint_field(type, BPF_MAP_TYPE_HASH);
	uint_field(map_flags, BPF_F_NO_PREALLOC);
	uint_field(max_entries, 65536);
	type_field(key, struct address);
	type_field(value, __u32);
} watched SEC(".maps");

/*
 * What is known of a mobile that was heard. Times in nanoseconds of CLOCK_MONOTONIC. Processors may
 * write at the same time: what is lost then is a packet's copy, or a copy is made that was not
 * needed.
 */
struct presence {
	/* When the first packet went over the link since an answer came last; 0: none did. */
	__u64 waits_since;
	/* When the last one did, give or take SHORTEST_SILENCE: processors need not write it each time. */
	__u64 last_sent;
	/* How long answers took; the longest of late. */
	__u64 response;
	/* The longest that one took. */
	__u64 round_trip;
	/* The daemon got copies since an answer came last. */
	__u64 is_told;
};

/* What goes to mobiles that are not there was never answered, and is copied. While a mobile has a place
   in `known`, its presence is there, and what is here is old. */
struct {
	uint_field(type, BPF_MAP_TYPE_LRU_HASH);
	uint_field(max_entries, 65536);
	type_field(key, struct address);
	type_field(value, struct presence);
} presences SEC(".maps");

/*
 * What the maps say of an address, at a place that is found without calling the kernel: its searches,
 * and its clock, would take most of the time that a packet takes here. The place is a hash of the
 * address. Of several addresses with the same place the latest has it, but only a mobile that was
 * heard displaces another: scans do not.
 */
struct known {
	struct address address;
	/* As of which `generation`; 0: of none. */
	__u64 generation;
	struct treatment treatment;
	__u32 how;
	__u32 is_heard;
	/* A processor is writing here. */
	__u64 is_taken;
	/* The kernel's tick in which the latest packet came. */
	__u64 tick;
	/* When the first packet in that tick came, which stands for the time throughout the tick. */
	__u64 time;
	/* If it was heard. */
	struct presence presence;
};

#define KNOWN_BITS 14

struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1 << KNOWN_BITS);
	type_field(key, __u32);
	type_field(value, struct known);
} known SEC(".maps");

#define SEEN_BITS 18

/* When a flow sent something while answers came, in units of SEEN_SHIFT, if it was the first to do so
   after an answer; by a hash of the flow, of which several may share a place. */
struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1 << SEEN_BITS);
	type_field(key, __u32);
	type_field(value, __u32);
} seen SEC(".maps");

/* About a second. */
#define SEEN_SHIFT 30

#define MILLISECOND 1000000ull
/* A shorter silence means nothing. A probe of the tail comes two ticks of the sender's clock after
   two round trips (Linux), and is not to be missed. */
#define SHORTEST_SILENCE (5 * MILLISECOND)
/* What takes longer is an outage, and no measure for answers. */
#define LONGEST_RESPONSE (1000 * MILLISECOND)
/* Whoever was sent nothing for so long owes no answer, and a flow that sent nothing for so long
   waits for none. */
#define IDLE (5000 * MILLISECOND)

enum {
	FLOW_UNKNOWN,
	FLOW_KNOWN,
	FLOW_NEW,
};

/* In front of each copy. */
struct copy {
	__u32 len;
	__u32 input;
	__u32 output;
	/* Whether the daemon has to verify the checksums. */
	__u32 verify;
	/* Payload bytes of each packet, where offloads made one of several; else 0. */
	__u32 datagram;
	/* Whether its flow sent something before the silence. FLOW_UNKNOWN: nor is the rest known. */
	__u32 flow;
	/* As of the mobile's `presence`. */
	__u64 waits_since;
	__u64 response;
	__u64 round_trip;
};

/*
 * Small enough to stay in the processor's caches, where a copy takes half the time (benches/gateway).
 * Room for what 30 Gbit/s bring in a millisecond; the daemon looks every half a millisecond.
 */
struct {
	uint_field(type, BPF_MAP_TYPE_RINGBUF);
	uint_field(max_entries, 4 * 1024 * 1024);
} copies SEC(".maps");

/* What comes when `copies` is full, and from then on until the daemon has read all: it reads `copies`
   first. Room for what 30 Gbit/s bring in nine milliseconds. */
struct {
	uint_field(type, BPF_MAP_TYPE_RINGBUF);
	uint_field(max_entries, 32 * 1024 * 1024);
} backlog SEC(".maps");

/* Packets for which neither had room. */
struct {
	uint_field(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, __u64);
} missed SEC(".maps");

/* What is counted of a group's packets, by protocol. */
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

/* By group and class. The daemon makes it as large as it has to be. */
struct {
	uint_field(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, struct traffic);
} traffic SEC(".maps");

/* When a flow was seen last, in either direction, in units of SEEN_SHIFT, 0: never; by a hash of the
   flow, of which several may share a place. As large as `seen`, or one element if nothing counts. */
struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1);
	type_field(key, __u32);
	type_field(value, __u32);
} flows SEC(".maps");

/* A flow that was not seen for so long, in those units, has ended (RFC 4787 section 4.3: 5 minutes). */
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
	/* Of that, not at `data`. */
	unsigned int data_len;
	/* From the IP header on. */
	unsigned char *data;
	/* Of the skb_shared_info, from `head` on. */
	unsigned int end;
	unsigned char *head;
	__u32 mark;
	__u8 ip_summed : 2;
	__u8 csum_valid : 1;
} __attribute__((preserve_access_index));

/* Sixteen bytes of a packet, by a type that the kernel has. */
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

/* What is done with a mobile's packets; NULL: it is no mobile. */
static inline_always struct treatment *of_mobile(const struct address *address)
{
	struct prefix prefix = { .bits = 128, .address = *address };

	return bpf_map_lookup_elem(&mobiles, &prefix);
}

/* Of an interface, 0 for none; NULL: it is no uplink. */
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

/* Words of a packet; not 0: it is shorter. Where they are in one piece they are read in place: a helper
   or a dynptr takes longer than the rest of this program. */
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

/* TCP may be behind extension headers. */
static inline_always int may_be_tcp(__u8 next_header)
{
	return next_header == PROTOCOL_TCP || next_header == PROTOCOL_HOP_BY_HOP ||
	       next_header == PROTOCOL_ROUTING || next_header == PROTOCOL_DESTINATION;
}

/* Room for a record; NULL: there is none. */
static inline_always void *reserve(__u64 size)
{
	void *record = 0;

	if (!bpf_ringbuf_query(&backlog, UNREAD_BYTES))
		record = bpf_ringbuf_reserve(&copies, size, 0);
	if (!record)
		record = bpf_ringbuf_reserve(&backlog, size, 0);
	return record;
}

/* The copy in a record with room for `most` bytes. Whoever has read all before it is woken. */
#define copy_within(most)                                                                            \
	do {                                                                                         \
		struct {                                                                             \
			struct copy head;                                                            \
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

/* Whether there was room for it. */
static inline_always int copy(const struct copy *head, const struct bpf_dynptr *packet)
{
	if (head->len <= 112)
		copy_within(112);
	if (head->len <= 1520)
		copy_within(1520);
	if (head->len <= 9200)
		copy_within(9200);
	if (head->len <= 32 * 1024)
		copy_within(32 * 1024);
	if (head->len <= 64 * 1024)
		copy_within(64 * 1024);
	return 1;
}

/* From one time to another; 0 if it is earlier, for it may be another processor's. */
static inline_always __u64 elapsed(__u64 since, __u64 now)
{
	return now > since ? now - since : 0;
}

/* An answer came. Whether the daemon has to know. */
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
	return presence->is_told != 0;
}

/* An answer is due and not late: where most packets of fast connections end. */
static inline_always int is_answer_due(const struct presence *presence, __u64 now)
{
	__u64 since = presence->waits_since;

	return since && !presence->is_told && elapsed(since, now) <= SHORTEST_SILENCE;
}

/* A packet over the link, from its protocol's header on. */
struct outgoing {
	struct tcp_header tcp;
	__u8 protocol;
	/* It is answered, if it arrives. Pure ACKs are not. */
	__u8 asks;
	/* Shorter than its headers, which the daemon counts. */
	__u8 is_short;
};

static inline_always struct outgoing read_outgoing(struct sk_buff *skb, __u32 header,
						   __u8 protocol)
{
	struct outgoing read = { .protocol = protocol, .asks = 1 };

	if (protocol == PROTOCOL_TCP) {
		if (read_words(skb, header, (__u32 *)&read.tcp, sizeof(read.tcp) / 4))
			read.is_short = 1;
		else
			read.asks = skb->len != header + (read.tcp.offset >> 4) * 4 ||
				    read.tcp.flags & TCP_FIN_SYN;
	} else if (protocol == PROTOCOL_UDP) {
		if (read_words(skb, header, &read.tcp.ports, 1))
			read.is_short = 1;
	}
	return read;
}

/* A place in `seen` or `flows`. */
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

/* Counts a packet between a mobile and another host, whose transport header begins there. */
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
		/* The mobile's is the first in either direction. */
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
 * A packet goes over the link to or from a mobile with this presence. Whether it goes into a silence
 * and is to be copied; what is known of the silence is then in `head`.
 */
static inline_always int on_question(struct presence *presence, __u64 now, __u64 tick, __u32 *seen,
				     int is_watched, struct copy *head)
{
	__u64 since = presence->waits_since, idle = elapsed(presence->last_sent, now);

	if (idle > MILLISECOND)
		presence->last_sent = now;
	if (!since || (!presence->is_told && idle > IDLE))
		presence->waits_since = since = now;
	head->waits_since = since;
	head->response = presence->response;
	head->round_trip = presence->round_trip;

	__u64 waited = elapsed(since, now);
	__u32 time = now >> SEEN_SHIFT, earliest = (since - IDLE) >> SEEN_SHIFT;
	/* Each time that was noted may be early by a tick. */
	int is_silent = waited > SHORTEST_SILENCE &&
			waited > presence->response + presence->response / 4 + tick;

	/* Times wrap. */
	head->flow = *seen && (int)(*seen - earliest) >= 0 ? FLOW_KNOWN : FLOW_NEW;
	if (is_silent || presence->is_told)
		return 1;
	if (!is_watched && *seen != time)
		*seen = time;
	return 0;
}

/* Only what is sent into a silence is copied, and what ends it. */
static inline_always int is_partial(__u32 what)
{
	return what == TO_SILENT_MOBILE || what == FROM_UNANSWERED_MOBILE;
}

/* The mobile of a packet, and what is to be done. */
struct party {
	struct treatment treatment;
	/* Where it is known. NULL: another address is there. */
	struct known *known;
	__u32 how;
	/* NULL: it was never heard, or need not be. */
	struct presence *presence;
	__u64 now;
};

static inline_always __u32 how_of(const struct address *mobile)
{
	const __u32 *how = bpf_map_lookup_elem(&watched, mobile);

	return how ? *how : NOT_WATCHED;
}

/* NULL: it was never heard, or need not be. */
static inline_always struct presence *presence_of(const struct treatment *treatment,
						  const struct address *mobile)
{
	return is_partial(treatment->what) ? bpf_map_lookup_elem(&presences, mobile) : 0;
}

/* Looks the address up in the maps. NULL: there is no place for it. */
static __attribute__((noinline)) struct known *learn(struct known *known, __u64 as_of,
						     const struct address *address)
{
	const struct treatment *treatment = of_mobile(address);
	const struct presence *presence = treatment ? presence_of(treatment, address) : 0;
	int is_same = is_equal(&known->address, address);

	if (!is_same && known->is_heard && !presence)
		return 0;
	if (__sync_lock_test_and_set(&known->is_taken, 1))
		return 0;
	known->generation = 0;
	if (!is_same) {
		if (known->is_heard)
			bpf_map_update_elem(&presences, &known->address, &known->presence, 0);
		known->address = *address;
		known->is_heard = 0;
		known->tick = 0;
	}
	if (presence && !known->is_heard) {
		known->presence = *presence;
		known->is_heard = 1;
	}
	known->treatment.what = treatment ? treatment->what : NO_MOBILE;
	known->treatment.group = treatment ? treatment->group : 0;
	known->how = how_of(address);
	known->generation = as_of;
	known->is_taken = 0;
	return known;
}

/* What is known of an address. NULL: there is no place for it. */
static inline_always struct known *known_of(__u64 secret, __u64 as_of,
					    const struct address *address)
{
	const __u64 odd = 0x9e3779b97f4a7c15;
	const __u32 *words = address->words;
	__u64 hash = (secret ^ words[0] ^ ((__u64)words[1] << 32)) * odd;

	hash = (hash ^ (hash >> 32) ^ words[2] ^ ((__u64)words[3] << 32)) * odd;

	__u32 at = hash >> (64 - KNOWN_BITS);
	struct known *place = bpf_map_lookup_elem(&known, &at);

	if (!place || (place->generation == as_of && is_equal(&place->address, address)))
		return place;
	return learn(place, as_of, address);
}

/* A clock that is read once a tick. */
static inline_always __u64 time_of(struct known *known)
{
	__u64 tick = bpf_jiffies64();

	if (known->tick != tick) {
		known->time = bpf_ktime_get_ns();
		known->tick = tick;
	}
	return known->time;
}

/* What the maps say of a mobile, by its address or an uplink's name. */
static inline_always void look_up(struct party *party, const struct treatment *treatment,
				  const struct address *mobile)
{
	party->treatment = *treatment;
	party->known = 0;
	party->how = how_of(mobile);
	party->presence = presence_of(treatment, mobile);
	party->now = bpf_ktime_get_ns();
}

/* Whether it is a mobile's. */
static inline_always int find(struct party *party, __u64 secret, __u64 as_of,
			      const struct address *address)
{
	struct known *known = known_of(secret, as_of, address);

	if (!known) {
		const struct treatment *treatment = of_mobile(address);

		if (treatment)
			look_up(party, treatment, address);
		return treatment != 0;
	}
	if (known->treatment.what == NO_MOBILE)
		return 0;
	party->treatment = known->treatment;
	party->known = known;
	party->how = known->how;
	party->presence = known->is_heard && is_partial(known->treatment.what) ? &known->presence : 0;
	party->now = time_of(known);
	return 1;
}

/* It is heard for the first time. */
static inline_always void note_first_answer(const struct party *party, const struct address *mobile)
{
	struct presence first = { .response = 0 };

	if (party->known) {
		party->known->presence = first;
		party->known->is_heard = 1;
	} else {
		bpf_map_update_elem(&presences, mobile, &first, 0);
	}
}

static inline_always int copy_one(struct bpf_nf_ctx *ctx, int is_local)
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

	/* Read here, before the program branches: each time the verifier meets a load of a pointer like
	   these, it searches all types of the kernel. */
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

		/* Nobody on board sends what goes from one to the other, and what stays on the link
		   says nothing about what is beyond it. */
		if (!uplink || (to && from) || is_of_link(&source) || is_of_link(&target))
			return NF_ACCEPT;
		look_up(&party, &uplink->treatment, &uplink->name);
		mobile = &uplink->name;
		is_to_mobile = to != 0;
	}

	__u32 what = party.treatment.what;

	if (what == OF_TCP && !is_tcp)
		return NF_ACCEPT;
	if (wanted->observes)
		count(skb, wanted->secret, party.treatment.group, header, protocol,
		      is_to_mobile ? &target : &source, is_to_mobile ? &source : &target,
		      is_to_mobile);

	struct presence *presence = party.presence, *answered = 0;
	int is_answer = is_to_mobile != (what == TO_SILENT_MOBILE);
	int is_watched = party.how != NOT_WATCHED;

	if (presence && !is_answer && is_answer_due(presence, party.now))
		return NF_ACCEPT;
	if (party.how == QUEUED)
		return NF_ACCEPT;

	struct copy head = { .len = skb->len, .flow = FLOW_UNKNOWN };

	if (is_partial(what)) {
		int is_needed = 1;

		if (is_answer) {
			if (presence)
				is_needed = on_answer(presence, party.now);
			else
				note_first_answer(&party, mobile);
			answered = presence;
		} else if (presence) {
			struct outgoing read = read_outgoing(skb, header, protocol);

			if (!read.asks)
				is_needed = presence->is_told != 0;
			else if (!read.is_short) {
				__u32 *at = seen_of(wanted->secret, &source, &target, &read);

				if (!at)
					return NF_ACCEPT;
				is_needed = on_question(presence, party.now, wanted->tick, at,
							is_watched, &head);
				if (is_needed || is_watched)
					presence->is_told = 1;
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
	if (copy(&head, &packet) && answered)
		answered->is_told = 0;
	return NF_ACCEPT;
}

SEC("netfilter")
int copy_forwarded(struct bpf_nf_ctx *ctx)
{
	return copy_one(ctx, 0);
}

/* Of this host's own connections. */
SEC("netfilter")
int copy_local(struct bpf_nf_ctx *ctx)
{
	return copy_one(ctx, 1);
}
