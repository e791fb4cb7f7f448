/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Headers of IP (RFC 791, RFC 8200), and addresses as keys of maps. */
#ifndef AIRTCP_IP_H
#define AIRTCP_IP_H

#include "kernel.h"

/* In network byte order. An IPv4 address is mapped to IPv6 (RFC 4291 section 2.5.5.2). */
struct address {
	__u32 words[4];
};

static inline_always int is_equal(const struct address *a, const struct address *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1] &&
	       a->words[2] == b->words[2] && a->words[3] == b->words[3];
}

static inline_always struct address mapped(__u32 ipv4)
{
	struct address address = { .words = { 0, 0, ntoh32(0x0000ffff), ipv4 } };

	return address;
}

/* Key of an LPM trie. An IPv4 prefix of n bits has n + 96. */
struct prefix {
	__u32 bits;
	struct address address;
};

enum {
	PROTOCOL_HOP_BY_HOP = 0,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PROTOCOL_ROUTING = 43,
	PROTOCOL_DESTINATION = 60,
};

struct ipv4_header {
	__u8 version_ihl;
	__u8 tos;
	__u16 total_length;
	__u16 id;
	__u16 fragment;
	__u8 ttl;
	__u8 protocol;
	__u16 checksum;
	__u32 src;
	__u32 dst;
};

struct ipv6_header {
	__u32 version_class_flow;
	__u16 payload_length;
	__u8 next_header;
	__u8 hop_limit;
	struct address src;
	struct address dst;
};

/* TCP header (RFC 9293) up to the window. */
struct tcp_header {
	__u32 ports;
	__u32 seq;
	__u32 ack;
	__u8 offset;
	__u8 flags;
	__u16 window;
};

enum {
	TCP_FIN = 0x01,
	TCP_FIN_SYN = 0x03,
	TCP_RST = 0x04,
	TCP_FIN_RST = 0x05,
	TCP_ACK = 0x10,
};

/* Offset and MF flag of a fragment (RFC 791). */
#define IPV4_FRAGMENT 0x3fff

#endif
