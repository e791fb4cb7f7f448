/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The part of the kernel's interface that the programs use, written by hand: no vmlinux.h, no header
 * files of the build machine. Layouts and numbers are those of linux/bpf.h and linux/netfilter.h; they
 * are stable.
 */
#ifndef AIRTCP_KERNEL_H
#define AIRTCP_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;

/* A packet, as a program of tc sees it (linux/bpf.h), up to the last field that is used. */
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 ingress_ifindex;
	__u32 ifindex;
	__u32 unused[30];
	__u32 gso_segs;
	__u64 socket;
	__u32 gso_size;
};

/* Arguments of bpf_fib_lookup, and its result (linux/bpf.h). */
struct bpf_fib_lookup {
	__u8 family;
	__u8 protocol;
	__u16 source_port;
	__u16 target_port;
	__u16 length;
	__u32 ifindex;
	__u32 class_or_flow;
	__u32 source[4];
	__u32 target[4];
	__u32 unused[4];
};

/* Handle of a range of memory or of a packet. */
struct bpf_dynptr {
	__u64 opaque[2];
} __attribute__((aligned(8)));

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_F_NO_PREALLOC = 1,
};

/* Verdict of netfilter programs. */
enum {
	NF_ACCEPT = 1,
};

enum {
	NFPROTO_IPV4 = 2,
};

enum {
	AF_INET = 2,
	AF_INET6 = 10,
};

/* linux/if_ether.h */
enum {
	ETH_P_IP = 0x0800,
	ETH_P_IPV6 = 0x86dd,
};

/* linux/if_packet.h: the frame is addressed to this host. */
enum {
	PACKET_HOST = 0,
};

/* Verdict of programs of tc: the next filter decides. */
enum {
	TC_ACT_UNSPEC = -1,
};

/* Results of bpf_fib_lookup for packets that are forwarded. */
enum {
	FIB_SUCCESS = 0,
	FIB_FORWARDING_DISABLED = 5,
	FIB_LIGHTWEIGHT_TUNNEL = 6,
	FIB_NO_NEIGHBOUR = 7,
	FIB_FRAGMENTATION_NEEDED = 8,
};

/* Converts between network and host byte order. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ntoh32(x) __builtin_bswap32(x)
#define ntoh16(x) __builtin_bswap16(x)
#else
#define ntoh32(x) (x)
#define ntoh16(x) (x)
#endif

/* Helpers, by their numbers in linux/bpf.h. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
					  __u64 flags) = (void *)2;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_skb_load_bytes)(const struct __sk_buff *skb, __u32 offset, void *to,
					__u32 len) = (void *)26;
static long (*const bpf_fib_lookup)(struct __sk_buff *skb, struct bpf_fib_lookup *params, int size,
				    __u32 flags) = (void *)69;
static __u64 (*const bpf_jiffies64)(void) = (void *)118;
static long (*const bpf_probe_read_kernel)(void *to, __u32 size, const void *from) = (void *)113;
static void *(*const bpf_ringbuf_reserve)(void *ringbuf, __u64 size, __u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)132;
static void (*const bpf_ringbuf_discard)(void *data, __u64 flags) = (void *)133;
static __u64 (*const bpf_ringbuf_query)(void *ringbuf, __u64 what) = (void *)134;
static long (*const bpf_csum_level)(struct __sk_buff *skb, __u64 how) = (void *)135;
static long (*const bpf_dynptr_read)(void *to, __u32 len, const struct bpf_dynptr *from, __u32 offset,
				     __u64 flags) = (void *)201;

/* Flag of bpf_ringbuf_query: BPF_RB_AVAIL_DATA. */
#define UNREAD_BYTES 0
/* Argument of bpf_csum_level: BPF_CSUM_LEVEL_QUERY. Negative if the checksum is not known to be good. */
#define CSUM_LEVEL_QUERY 0

/* Field information that libbpf fills in (enum bpf_field_info_kind). */
enum {
	BYTE_OFFSET = 0,
	LEFT_SHIFT = 4,
	RIGHT_SHIFT = 5,
};

/* BTF id of a type in the running kernel. */
#define kernel_type(type) __builtin_btf_type_id(*(type *)0, 1)

#define field_info(object, field, kind) __builtin_preserve_field_info((object)->field, kind)

/* Reads a bit field that lies within one byte. */
#define bit_field(object, field)                                                                     \
	({                                                                                           \
		const __u8 *at = (const __u8 *)(object) + field_info(object, field, BYTE_OFFSET);    \
		/* Keeps the compiler from folding the offset into another expression. */            \
		asm volatile("" : "+r"(at));                                                         \
		__u64 bits = (__u64)*at << field_info(object, field, LEFT_SHIFT);                    \
		bits >> field_info(object, field, RIGHT_SHIFT);                                      \
	})

#define inline_always inline __attribute__((always_inline))
#define SEC(name) __attribute__((section(name), used))
/* Encoding of map attributes that libbpf reads (BTF-defined maps). */
#define uint_field(name, value) int(*name)[value]
#define type_field(name, type) type *name
#define maps_field(name, type) type *name[]

#endif
