//! [`Segment`](airtcp_core::Segment) to and from the bytes of an IPv4 or IPv6 packet.
//!
//! Read first: RFC 9293 §3.1 (TCP header), RFC 2018 §3 (SACK), RFC 7323 §2-3 (window scale, timestamps),
//! RFC 791 and RFC 8200 (IP).
//!
//! [`encode`] writes a packet with valid checksums ([`encode_udp`] one of cross traffic). [`decode`] reads one from
//! a capture and refuses with a typed error whatever is not one whole TCP segment; [`decode_with`] does so on live
//! traffic without copying the user data, and tells connections that a gateway must leave alone.
//!
//! A segment keeps what TCP mechanisms look at and no more: the IP header beyond the addresses, the urgent
//! pointer, reserved bits and unknown options are not in it. So a gateway that forwards a packet unchanged
//! forwards the original bytes; only segments of its own making are encoded.

mod checksum;
mod decode;
mod encode;
mod options;

pub use decode::{Checksums, DecodeError, Decoded, decode, decode_with};
pub use encode::{EncodeError, encode, encode_udp};
