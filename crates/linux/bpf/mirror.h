/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the programs that mirror packets have in common: the daemon's maps, which mobiles are silent,
 * and which packets the daemon has to see.
 *
 * Included by mirror.bpf.c (netfilter's hooks) and mirror_tc.bpf.c (tc), which define how a packet is
 * read: `struct context`, `struct packet`, `packet_of`, `length_of`, `read_words`, `copy_packet`,
 * `datagram_size`, `segments`, `checksums_of`.
 *
 * Packets are selected coarsely; the daemon looks closer. Those above 64 KiB are not mirrored. For a
 * gateway that only observes, the programs also count packets.
 */
#ifndef AIRTCP_MIRROR_H
#define AIRTCP_MIRROR_H

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
	/* tc: packets between ports of a bridge count, as netfilter sees them, too. */
	__u64 bridged;
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
	/* Time of the last FIN over the link (`closing`). */
	__u64 fin_sent;
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

/*
 * Connections of which the daemon may keep packets, because they were mirrored. It has to learn when
 * they end, even while the mobile answers: so it is shown the FIN, its acknowledgement, and resets.
 */
enum {
	/* The daemon has nothing of it. */
	NOT_KEPT,
	KEPT,
	/* A FIN was sent over the link, and not acknowledged. */
	FIN_SENT,
};

struct closing {
	__u8 state;
	/* Several connections with this place were kept: from then on all that have it count as kept. */
	__u8 is_shared;
	/* More of the hash of the connection that is kept. */
	__u16 tag;
	/* The number that acknowledges the latest FIN. */
	__u32 fin_end;
	/* Time of the last mirrored packet, in units of SEEN_SHIFT. */
	__u32 time;
};

/* Time without a mirrored packet after which an entry is free again, in units of SEEN_SHIFT: about an
   hour. Otherwise connections that end unseen would sooner or later leave every entry shared. */
#define CLOSING_AGE 3600

#define CLOSING_BITS 16

/* By a hash of the connection, from the host whose packets go over the link. Where two have the same
   place, an end is missed only if both send their FINs within a round trip, or become kept at the same
   moment on two processors. */
struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY);
	uint_field(max_entries, 1 << CLOSING_BITS);
	type_field(key, __u32);
	type_field(value, struct closing);
} closing SEC(".maps");

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
	/* It may end with this packet, and those before it may not have been mirrored. */
	FLOW_CLOSING,
};

enum {
	/* Verified, or to be made by an offload. */
	CHECKSUMS_GOOD,
	/* To be verified by the daemon. */
	CHECKSUMS_UNKNOWN,
	/* To be verified, unless an offload has to make them: then they are of the pseudo-header only. */
	CHECKSUMS_UNKNOWN_OR_UNFINISHED,
};

/* Header of each mirrored packet in the ring buffers. */
struct mirror_header {
	__u32 len;
	__u32 input;
	__u32 output;
	/* A CHECKSUMS_… */
	__u32 checksums;
	/* Payload bytes of each segment of a super-packet (GRO, GSO); 0 if it is none. */
	__u32 datagram;
	/* FLOW_KNOWN if the flow sent something before the silence. FLOW_UNKNOWN, FLOW_CLOSING: the fields
	   below are not valid. */
	__u32 flow;
	/* Fields of the mobile's `presence`. */
	__u64 waits_since;
	__u64 response;
	__u64 round_trip;
};

/* A ring buffer, for the verifier. The daemon makes them, in the sizes that it wants. */
struct ring {
	uint_field(type, BPF_MAP_TYPE_RINGBUF);
	uint_field(max_entries, 4096);
};

/* Places of the ring buffers in use. */
enum {
	/* Takes the packets. */
	RING_FIRST,
	/* Takes packets once the first is full, until the daemon has read all of it: the daemon reads the first
	   one first, so the order stays. Absent while little is mirrored. */
	RING_BACKLOG,
	RINGS,
};

struct {
	uint_field(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	uint_field(max_entries, RINGS);
	type_field(key, __u32);
	maps_field(values, struct ring);
} rings SEC(".maps");

/* Packets for which no ring buffer had room. */
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

/* TCP may follow extension headers. */
static inline_always int may_be_tcp(__u8 next_header)
{
	return next_header == PROTOCOL_TCP || next_header == PROTOCOL_HOP_BY_HOP ||
	       next_header == PROTOCOL_ROUTING || next_header == PROTOCOL_DESTINATION;
}

/* A ring buffer in use; NULL if there is none. */
static inline_always void *ring_at(__u32 place)
{
	return bpf_map_lookup_elem(&rings, &place);
}

/* Place of the first ring buffer to try. */
static inline_always __u32 first_place(void)
{
	void *backlog = ring_at(RING_BACKLOG);

	return backlog && bpf_ringbuf_query(backlog, UNREAD_BYTES) ? RING_BACKLOG : RING_FIRST;
}

/* Copies the packet to a record with room for `most` bytes. A reader that has read all earlier records
   is woken. The record's size must be constant for the verifier. Older ones (Linux 6.1) want more. A record
   is compared with NULL once: the second time they believe again that it may be NULL. The length is
   compared right before the copy: they do not know that a value on the stack is the one in a register. */
#define mirror_within(most)                                                                          \
	do {                                                                                         \
		_Pragma("clang loop unroll(disable)")                                                \
		for (__u32 place = first_place(); place < RINGS; place++) {                          \
			struct {                                                                     \
				struct mirror_header head;                                           \
				__u8 bytes[most];                                                    \
			} *record;                                                                   \
			void *ring = ring_at(place);                                                 \
			if (!ring)                                                                   \
				continue;                                                            \
			record = bpf_ringbuf_reserve(ring, sizeof(*record), 0);                      \
			if (!record)                                                                 \
				continue;                                                            \
			record->head = *head;                                                        \
			__u64 size = len;                                                            \
			asm volatile("" : "+r"(size));                                               \
			int is_copied = size <= (most);                                              \
			if (is_copied) {                                                             \
				/* Keeps the comparison with another limit apart. */                 \
				asm volatile("" : "+r"(size));                                       \
				is_copied = !copy_packet(packet, record->bytes, size);               \
			}                                                                            \
			if (!is_copied) {                                                            \
				bpf_ringbuf_discard(record, 0);                                      \
				return miss();                                                       \
			}                                                                            \
			bpf_ringbuf_submit(record, 0);                                               \
			return 1;                                                                    \
		}                                                                                    \
		return miss();                                                                       \
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
static inline_always int mirror(const struct mirror_header *head, const struct packet *packet)
{
	__u64 len = head->len;

	/* Keeps all 64 bits known to older verifiers (Linux 6.1). */
	asm volatile("" : "+r"(len));
	if (len <= 112)
		mirror_within(112);
	if (len <= 1520)
		mirror_within(1520);
	if (len <= 9200)
		mirror_within(9200);
	if (len <= 32 * 1024)
		mirror_within(32 * 1024);
	if (len <= 64 * 1024)
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

/* Addresses of a packet, and where its transport header is. */
struct outline {
	struct address source, target;
	__u32 header;
	__u8 protocol;
	/* TCP may follow extension headers. */
	__u8 is_tcp;
	/* Of IPv4; those of IPv6 are not taken for TCP. */
	__u16 is_fragment;
};

/* A packet from its transport header on. */
struct transport {
	struct tcp_header tcp;
	__u8 protocol;
	/* The receiver will answer it. Pure ACKs are not answered. */
	__u8 expects_answer;
	/* Shorter than its headers; the daemon counts such packets. */
	__u8 is_short;
	/* TCP: flags; 0 of a fragment. */
	__u8 flags;
	/* TCP: the number that acknowledges all of it. */
	__u32 end;
};

static inline_always struct transport read_tcp(const struct packet *packet,
					       const struct outline *outline)
{
	struct transport read = { .protocol = PROTOCOL_TCP };

	if (read_words(packet, outline->header, (__u32 *)&read.tcp, sizeof(read.tcp) / 4)) {
		read.expects_answer = read.is_short = 1;
		return read;
	}

	__u32 payload = length_of(packet) - outline->header - (read.tcp.offset >> 4) * 4;

	read.expects_answer = payload || read.tcp.flags & TCP_FIN_SYN;
	read.flags = outline->is_fragment ? 0 : read.tcp.flags;
	read.end = ntoh32(read.tcp.seq) + payload + (read.tcp.flags & TCP_FIN);
	return read;
}

/* Hash of a flow; its high bits are the best. */
static inline_always __u64 hash_of(__u64 secret, const struct address *source,
				   const struct address *target, __u32 ports, __u8 protocol)
{
	const __u64 odd = 0x9e3779b97f4a7c15;
	__u64 hash = (secret ^ protocol) * odd;

	for (int i = 0; i < 4; i++) {
		hash = (hash ^ source->words[i]) * odd;
		hash = (hash ^ target->words[i]) * odd;
	}
	return (hash ^ (hash >> 32) ^ ports) * odd;
}

/* Index of a flow in `seen` or `flows`. */
static inline_always __u32 place_of(__u64 secret, const struct address *source,
				    const struct address *target, __u32 ports, __u8 protocol)
{
	return hash_of(secret, source, target, ports, protocol) >> (64 - SEEN_BITS);
}

static inline_always __u32 *seen_of(__u64 secret, const struct address *source,
				    const struct address *target, const struct transport *read)
{
	__u32 at = place_of(secret, source, target, read->tcp.ports, read->protocol);

	return bpf_map_lookup_elem(&seen, &at);
}

/* Entry of the connection with this hash. */
static inline_always struct closing *closing_of(__u64 connection, __u32 time)
{
	__u32 at = connection >> (64 - CLOSING_BITS);
	struct closing *entry = bpf_map_lookup_elem(&closing, &at);

	if (!entry)
		return 0;

	/* Below 0 if another processor was a little ahead. */
	int age = time - entry->time;

	if (age > CLOSING_AGE) {
		entry->state = NOT_KEPT;
		entry->is_shared = 0;
	}
	return entry;
}

static inline_always __u16 tag_of(__u64 connection)
{
	return connection >> (48 - CLOSING_BITS);
}

/* True if the daemon may have something of the connection, whose entry this is. */
static inline_always int is_kept(const struct closing *entry, __u64 connection)
{
	return entry->state != NOT_KEPT && (entry->is_shared || entry->tag == tag_of(connection));
}

/* A packet of the connection is mirrored, of which the daemon may keep something. */
static inline_always void keep(struct closing *entry, __u64 connection, __u32 time)
{
	entry->time = time;
	if (entry->state == NOT_KEPT) {
		entry->tag = tag_of(connection);
		entry->state = KEPT;
	} else if (!is_kept(entry, connection)) {
		entry->is_shared = 1;
	}
}

/* A connection is over. In a shared entry the last FIN may be another's, so a reset leaves it. */
static inline_always void forget(struct closing *entry, int is_reset)
{
	if (!entry->is_shared)
		entry->state = NOT_KEPT;
	else if (!is_reset)
		entry->state = KEPT;
}

/* Handles a segment over the link that is mirrored anyway, or has FIN or RST. True if the daemon may have
   something of its connection, which may end with it. */
static inline_always int on_sent(struct closing *entry, __u64 connection,
				 const struct transport *read, int is_mirrored, __u32 time)
{
	if (is_mirrored && read->expects_answer)
		keep(entry, connection, time);
	if (!is_kept(entry, connection))
		return 0;
	if (read->flags & TCP_FIN) {
		entry->fin_end = read->end;
		entry->state = FIN_SENT;
	} else if (read->flags & TCP_RST && !is_mirrored) {
		forget(entry, 1);
	}
	return 1;
}

/* True if a segment that came over the link shows the end of a connection of which the daemon may have
   something. A reset that is mirrored anyway, in a silence, may not be one: then the daemon goes by its
   number. */
static inline_always int is_end(struct closing *entry, __u64 connection,
				const struct transport *read, int is_mirrored)
{
	int is_acked = read->flags & TCP_ACK && entry->state == FIN_SENT &&
		       ntoh32(read->tcp.ack) == entry->fin_end;

	if (!is_kept(entry, connection) || !(read->flags & TCP_RST || is_acked))
		return 0;
	if (is_acked || !is_mirrored)
		forget(entry, !is_acked);
	return 1;
}

/* Counts a packet between a mobile and another host; its transport header begins at `header`. */
static inline_always void count(const struct packet *packet, __u64 secret, __u32 group, __u32 header,
				__u8 protocol, const struct address *mobile,
				const struct address *other, int is_to_mobile)
{
	__u32 ports = 0, class = CLASS_OTHER;

	if (protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP) {
		read_words(packet, header, &ports, 1);
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
	traffic_of->packets += segments(packet);
	traffic_of->bytes += length_of(packet);

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

/* A packet to or from a mobile, and what the maps say of the mobile. Without pointers: the function that
   the kernel verifies by itself, `on_packet`, could not use them. Every byte is written: it refuses others. */
struct sighting {
	struct outline outline;
	/* The mobile's address, or an uplink's name. */
	struct address mobile;
	struct policy policy;
	__u32 override;
	__u32 is_to_mobile;
	/* Indices of interfaces; 0: none. */
	__u32 input;
	__u32 output;
	/* tc: offset of the IP header, and the packet's length from there on. */
	__u32 at;
	__u32 length;
	__u64 now;
};

/* What is kept of a mobile. */
struct record {
	/* Its entry in `mobile_cache`; NULL if another address has it. */
	struct cached_mobile *cached;
	/* NULL if it was never seen, or if its presence is not tracked. */
	struct presence *presence;
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
static inline_always struct record look_up(struct sighting *of, const struct policy *policy,
					   const struct address *mobile)
{
	struct record record = { .presence = presence_of(policy, mobile) };

	of->mobile = *mobile;
	of->policy = *policy;
	of->override = override_of(mobile);
	of->now = bpf_ktime_get_ns();
	return record;
}

/* Looks an address up; true if it is a mobile's. */
static inline_always int find(struct sighting *of, struct record *record, __u64 secret, __u64 as_of,
			      const struct address *address)
{
	struct cached_mobile *cached = cache_lookup(secret, as_of, address);

	if (!cached) {
		const struct policy *policy = of_mobile(address);

		if (policy)
			*record = look_up(of, policy, address);
		return policy != 0;
	}
	if (cached->policy.selection == NO_MOBILE)
		return 0;
	of->mobile = *address;
	of->policy = cached->policy;
	of->override = cached->override;
	of->now = time_of(cached);
	record->cached = cached;
	record->presence = cached->is_seen && is_partial(cached->policy.selection) ? &cached->presence : 0;
	return 1;
}

/* Begins to track a mobile with its first answer. */
static inline_always void note_first_answer(const struct sighting *of, struct cached_mobile *cached)
{
	/* A FIN may have been its first packet. */
	struct presence first = { .fin_sent = of->now };

	if (cached) {
		cached->presence = first;
		cached->is_seen = 1;
	} else {
		/* Older kernels take no other key than one on the stack. */
		struct address mobile = of->mobile;

		bpf_map_update_elem(&presences, &mobile, &first, 0);
	}
}

/* Reads the header of IP; not 0 if the packet is shorter. */
static inline_always int read_outline(const struct packet *packet, int is_ipv4, struct outline *to)
{
	union {
		struct ipv4_header v4;
		struct ipv6_header v6;
	} ip;

	if (is_ipv4) {
		if (read_words(packet, 0, (__u32 *)&ip.v4, sizeof(ip.v4) / 4))
			return -1;
		to->protocol = ip.v4.protocol;
		to->is_tcp = to->protocol == PROTOCOL_TCP;
		to->is_fragment = (ip.v4.fragment & ntoh16(IPV4_FRAGMENT)) != 0;
		to->header = (ip.v4.version_ihl & 15) * 4;
		to->source = mapped(ip.v4.src);
		to->target = mapped(ip.v4.dst);
	} else {
		if (read_words(packet, 0, (__u32 *)&ip.v6, sizeof(ip.v6) / 4))
			return -1;
		to->protocol = ip.v6.next_header;
		to->is_tcp = may_be_tcp(to->protocol);
		to->is_fragment = 0;
		to->header = sizeof(ip.v6);
		to->source = ip.v6.src;
		to->target = ip.v6.dst;
	}
	return 0;
}

/*
 * Counts a packet to or from a mobile, and mirrors it if the daemon has to see it.
 *
 * A global function: the kernel verifies it once, for any arguments. Inlined, it would be followed again
 * from each state in which a program may come here.
 */
__attribute__((noinline)) int on_packet(struct context *ctx, const struct settings *wanted,
					const struct sighting *of, struct cached_mobile *cached,
					struct presence *presence)
{
	if (!wanted || !of)
		return 0;

	struct packet read_from = packet_of(ctx, of), *packet = &read_from;
	const struct outline *outline = &of->outline;
	const struct address *source = &outline->source, *target = &outline->target;
	__u32 selection = of->policy.selection, header = outline->header;
	__u8 protocol = outline->protocol;
	int is_to_mobile = of->is_to_mobile != 0;

	if (selection == OF_TCP && !outline->is_tcp)
		return 0;
	if (wanted->observes)
		count(packet, wanted->secret, of->policy.group, header, protocol,
		      is_to_mobile ? target : source, is_to_mobile ? source : target,
		      is_to_mobile);

	struct presence *answered = 0;
	int is_answer = is_to_mobile != (selection == TO_SILENT_MOBILE);
	int is_watched = of->override != NO_OVERRIDE;
	struct transport read = { .protocol = protocol, .expects_answer = 1 };

	if (is_partial(selection) && protocol == PROTOCOL_TCP)
		read = read_tcp(packet, outline);

	/* A gateway that only observes keeps nothing. */
	__u8 flags = wanted->observes ? 0 : read.flags;

	if (presence && !is_answer && !(flags & TCP_FIN_RST) &&
	    is_answer_due(presence, of->now))
		return 0;
	if (of->override == QUEUED)
		return 0;

	struct mirror_header head = { .len = length_of(packet), .flow = FLOW_UNKNOWN };

	if (is_partial(selection)) {
		int is_needed = 1, is_closing = 0;

		if (is_answer) {
			if (presence)
				is_needed = on_answer(presence, of->now);
			else
				note_first_answer(of, cached);
			answered = presence;
		} else if (presence) {
			if (protocol == PROTOCOL_UDP)
				read.is_short = read_words(packet, header, &read.tcp.ports, 1) != 0;
			if (!read.expects_answer)
				is_needed = presence->is_notified != 0;
			else if (!read.is_short) {
				__u32 *at = seen_of(wanted->secret, source, target, &read);

				if (!at)
					return 0;
				is_needed = on_outgoing(presence, of->now, wanted->tick, at,
							is_watched, &head);
				if (is_needed || is_watched)
					presence->is_notified = 1;
			}
		}
		is_needed |= is_watched;

		__u32 time = of->now >> SEEN_SHIFT;

		if (flags && !is_answer && (is_needed || flags & TCP_FIN_RST)) {
			__u64 connection = hash_of(wanted->secret, source, target, read.tcp.ports,
						   PROTOCOL_TCP);
			struct closing *entry = closing_of(connection, time);

			is_closing = entry &&
				     on_sent(entry, connection, &read, is_needed, time);
			if (presence && flags & TCP_FIN)
				presence->fin_sent = of->now;
		} else if (flags && answered &&
			   (flags & TCP_RST || elapsed(answered->fin_sent, of->now) < IDLE)) {
			__u32 ports = read.tcp.ports << 16 | read.tcp.ports >> 16;
			__u64 connection =
				hash_of(wanted->secret, target, source, ports, PROTOCOL_TCP);
			struct closing *entry = closing_of(connection, time);

			is_closing = entry && is_end(entry, connection, &read, is_needed);
		}
		if (!is_needed && !is_closing)
			return 0;
		/* A reset that is mirrored anyway, in a short silence, is no different. */
		if (is_closing && (!is_needed || flags & TCP_RST))
			head.flow = FLOW_CLOSING;
	}
	head.input = of->input;
	head.output = of->output;
	head.checksums = checksums_of(packet);
	head.datagram = datagram_size(packet);
	if (mirror(&head, packet) && answered)
		answered->is_notified = 0;
	return 0;
}

#endif
