/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs need of the kernel's interface, written by hand: no vmlinux.h, no header files of the build machine.
 * Layouts and numbers are those of linux/bpf.h, linux/if_ether.h and linux/netfilter.h; none of them can change.
 */
#ifndef AIRTCP_KERNEL_H
#define AIRTCP_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;

/* The packet, as a program sees it: struct __sk_buff up to the last field used. */
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
};

/* The kernel knows it by this name (BTF). */
struct bpf_spin_lock {
	__u32 val;
};

/* A part of memory or of a packet. */
struct bpf_dynptr {
	__u64 opaque[2];
} __attribute__((aligned(8)));

enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_HDR_START_NET = 1,
	BPF_CSUM_LEVEL_QUERY = 0,
};

/* Verdicts of TCX programs. */
enum {
	TCX_NEXT = -1,
	TCX_DROP = 2,
};

/* Verdict of netfilter programs. */
enum {
	NF_ACCEPT = 1,
};

enum {
	NFPROTO_IPV4 = 2,
};

/* In the byte order of the network on every machine that BPF runs on in little-endian mode. */
#define bswap16(x) __builtin_bswap16(x)
#define bswap32(x) __builtin_bswap32(x)
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ntoh16(x) bswap16(x)
#define ntoh32(x) bswap32(x)
#else
#define ntoh16(x) (x)
#define ntoh32(x) (x)
#endif

enum {
	ETH_P_IP = 0x0800,
	ETH_P_IPV6 = 0x86dd,
};

/* Helpers, by their numbers in linux/bpf.h. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
					 __u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static __u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static __s64 (*const bpf_csum_diff)(void *from, __u32 from_size, void *to, __u32 to_size,
				    __u32 seed) = (void *)28;
static long (*const bpf_skb_load_bytes_relative)(const struct __sk_buff *skb, __u32 offset,
						 void *to, __u32 len,
						 __u32 start) = (void *)68;
static long (*const bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*const bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static void *(*const bpf_ringbuf_reserve)(void *ringbuf, __u64 size, __u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)132;
static void (*const bpf_ringbuf_discard)(void *data, __u64 flags) = (void *)133;
static long (*const bpf_csum_level)(struct __sk_buff *skb, __u64 level) = (void *)135;
static __u64 (*const bpf_ktime_get_coarse_ns)(void) = (void *)160;
static long (*const bpf_dynptr_read)(void *to, __u32 len, const struct bpf_dynptr *from, __u32 offset,
				     __u64 flags) = (void *)201;

/* Functions of BPF programs take five arguments at most, and may not be called under a lock. */
#define inline_always inline __attribute__((always_inline))
#define SEC(name) __attribute__((section(name), used))
/* How libbpf reads the definition of a map. */
#define uint_field(name, value) int(*name)[value]
#define type_field(name, type) type *name

#endif
