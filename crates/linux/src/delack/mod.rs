//! `airtcp delack`: delayed cumulative ACKs (TCP-DCA) of this host's own connections, for an
//! unmodified kernel and unmodified applications.
//!
//! Read in this order: [`airtcp_gateway::delack`] (the policy: which ACKs wait, and until when),
//! [`tap`] (arriving data), [`cwnd`] (the peer's cwnd), [`daemon`] (the loop).
//!
//! A packet socket copies the headers of arriving data, so data are never delayed. Rules of
//! [`AckRules`](crate::datapath::rules::AckRules) make the kernel hold each pure ACK until its
//! verdict. The loop passes both to the holder, which decides by the policy of the simulator's
//! endpoint. No packet is modified: ACKs leave as the kernel made them, or a newer one replaces
//! them; the kernel adds the option with cwnd when it builds a segment.

pub mod cwnd;
pub mod daemon;
pub mod tap;
