//! [`Segment`](airtcp_core::Segment) to and from the bytes of an IPv4 or IPv6 packet.
//!
//! Read first: RFC 9293 §3.1 (TCP header), RFC 2018 §3 (SACK), RFC 7323 §2-3 (window scale,
//! timestamps), RFC 791 and RFC 8200 (IP).
//!
//! [`encode`] writes a packet with valid checksums; [`encode_udp`] writes one of cross traffic,
//! [`encode_aodv`] and [`encode_dsr`] write those of routing protocols, [`encode_echo_request`] an
//! echo request.
//! [`decode`] reads a captured packet and refuses, with a typed error, whatever is not one whole
//! TCP segment. [`decode_with`] does the same on live traffic without copying the user data, and
//! reports connections that a gateway must leave alone. [`decode_headers`] makes do with a packet
//! that was cut off behind its headers.
//!
//! [`outline`], [`piece`] and [`checksummed`] are for packets of any protocol that a gateway sends
//! again, [`mark_ce`] is for those that a queue marks. [`too_big`] reads routers' reports of
//! segments larger than the next link's MTU.
//!
//! A segment keeps only what TCP mechanisms look at: it has no IP header beyond the addresses, no
//! urgent pointer, no reserved bits and no unknown options. A gateway that forwards a packet
//! unchanged therefore forwards the original bytes, and encodes only the segments it makes itself.
//!
//! # Example
//!
//! ```
//! use airtcp_core::{Addr, Flow, Length, Segment, SeqNum};
//! use airtcp_wire::{Checksums, decode, encode};
//!
//! let addr = |last, port| Addr::new([10, 0, 0, last].into(), port);
//! let segment = Segment {
//!     flow: Flow { src: addr(1, 80), dst: addr(3, 5001) },
//!     seq: SeqNum(1000),
//!     ack: Some(SeqNum(1)),
//!     window: 8760,
//!     payload: Length(100),
//!     ..Segment::default()
//! };
//! let mut packet = Vec::new();
//! encode(&segment, &mut packet)?;
//! assert_eq!(packet.len(), 20 + 20 + 100);
//!
//! let decoded = decode(&packet, Checksums::Verify)?;
//! assert_eq!((decoded.flow, decoded.seq), (segment.flow, segment.seq));
//! packet[30] ^= 1;
//! assert!(decode(&packet, Checksums::Verify).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aodv;
mod checksum;
mod datagram;
mod decode;
mod dsr;
mod ecn;
mod encode;
mod offload;
mod options;
mod too_big;

pub use aodv::encode_aodv;
pub use datagram::{outline, piece};
pub use decode::{Checksums, DecodeError, Decoded, Headers, decode, decode_headers, decode_with};
pub use dsr::{encode_dsr, insert_source_route};
pub use ecn::{dscp, ecn, mark_ce, set_dscp, set_ecn};
pub use encode::{EncodeError, encode, encode_echo_request, encode_udp, set_hop_limit};
pub use offload::{checksummed, is_unfinished};
pub use too_big::{TooBig, too_big};
