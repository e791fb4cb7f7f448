//! Packets from the kernel to the gateway, and back.
//!
//! Read first: docs/internals/datapath.md. Then in this order: [`nfqueue`] (packets that wait for a verdict), [`mirror`] (copies of packets
//! that the kernel forwards by itself), `rings` (their buffers), `tc` and [`flow_tables`], `buffers` (memory of packets), `inject` (packets that the
//! gateway makes), [`rules`] (firewall rules that select packets).
//!
//! # Connection tracking
//! The gateway sees packets in FORWARD, where a mobile has its own address in both directions,
//! whatever this host translates it to. Injected packets leave through OUTPUT:
//! - One to the fixed host, from the mobile's own address, belongs to the connection of the
//!   mobile's packets, and must be translated like them. So it must be tracked.
//! - One to the mobile, from the fixed host's address, must not be tracked. Connection tracking
//!   knows a translated connection on that side by the *translated* address, which this packet no
//!   longer has. It would begin a new connection whose replies clash with the old one's packets,
//!   and get another port. A firewall mark exempts it.
//!
//! On board it is the opposite: the hosts on board, which are fixed, may be translated towards the
//! uplink. A packet over the uplink has the mark, too, so that it is not taken for one of this
//! host's own connections, but it is tracked. It leaves by that interface whatever the routes say,
//! because the marks and rules that route other packets there are not known here.
//!
//! # Bridges
//! With `br_netfilter`, packets of a bridge pass through FORWARD, too. Their interface is the
//! bridge, not its port. The bridge needs an address and routes to both sides for injected packets.

mod buffers;
pub mod flow_tables;
mod inject;
pub mod mirror;
pub mod nfqueue;
mod rings;
pub mod rules;
pub(crate) mod tc;
