//! `airtcp delack`: delayed cumulative ACKs (TCP-DCA) of this host's own connections, for
//! applications and a kernel that know nothing of it.
//!
//! Read in this order: [`airtcp_gateway::delack`] (which ACKs wait, and until when), [`tap`] (which
//! data arrive), [`cwnd`] (how the other end's cwnd gets here), [`daemon`] (the loop).
//!
//! How the parts play together: a packet socket gives the headers of the data that arrive, as
//! copies, so data are never held up. Rules of [`AckRules`](crate::datapath::rules::AckRules) make
//! the kernel hold each pure ACK until its verdict. The loop feeds both to the holder, which
//! decides by the policy of the simulator's endpoint. Nothing is ever written to a packet that
//! exists: ACKs leave as the kernel made them, or a newer one does; the option with cwnd is the
//! kernel's work, while it makes the packet.

pub mod cwnd;
pub mod daemon;
pub mod tap;
