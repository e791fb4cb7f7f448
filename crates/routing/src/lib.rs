//! Routing without I/O: which neighbour a packet goes to next.
//!
//! [`router`] is the contract between a routing protocol and its host, the simulator or a live node
//! that carries packets. There is one file per protocol:
//!
//! - [`shortest_path`]: static routes, over wired and wireless links alike. They never change, so
//!   they are computed before the run and kept as [`next_hops`]: forwarding is a table lookup
//!   without a [`Router`].
//! - [`aodv`]: routes on demand, hop by hop.
//! - [`dsr`]: routes on demand, written into the packets by their source.
//! - [`gpsr`]: by the positions of neighbours and destination, without routes.
//!
//! [`arp`] is no router: it stands between one and an interface.
//!
//! # How protocols with changing routes fit [`Router`]
//!
//! | it needs | it has |
//! |---|---|
//! | buffering while it discovers a route | it keeps the [`Data`](router::Data) it was given and sends it later |
//! | control packets (RREQ, RREP, RERR, HELLO, beacons) | [`Packet::Control`](router::Packet), sent to a neighbour or to all |
//! | jitter, ring search, rate limits, lifetimes of routes | [`Router::next_deadline`] and [`Router::on_timer`] |
//! | a broken link and what was to cross it | [`Router::on_link_failure`] |
//! | to drop what waits for a neighbour | [`Action::Clear`](router::Action) |
//! | to notify transport that a route is gone or back | [`Action::Notify`](router::Action) |
//!
//! **AODV** (RFC 3561). Routing table, precursor lists and sequence numbers belong to the router.
//! Every data packet passes [`Router::on_packet`], at its destination too, with the neighbour it
//! came from, which renews the lifetimes of §6.2. The TTL of an RREQ (§6.4) is a field of the
//! message, because a router sends each RREQ anew. A failed link (§6.11) returns the packets for
//! local repair (§6.12); a unicast RREP among them puts a neighbour on the blacklist (§6.8).
//!
//! **DSR** (RFC 4728). The source route is the [`header`](router::Data::header) of the data packet.
//! A hop replaces it only to salvage the packet (§3.4.1). A router that returns true from
//! [`Router::overhears`] sees what others send, for learning (§3.3.1) and automatic route
//! shortening (§3.4.3).
//!
//! **GPSR** (Karp and Kung, MobiCom 2000). [`Context::position_of`](router::Context) gives a node's
//! own position, and serves as the ideal location service for the destination. The neighbours'
//! positions are in their beacons, or overheard (§2.3). Mode, entry point and face of the perimeter
//! mode (table 1) are the header of the data packet.
//!
//! # Example
//!
//! Three nodes in a row. The node in the middle forwards.
//!
//! ```
//! use airtcp_routing::shortest_path::{Link, shortest_paths};
//! use airtcp_routing::{LinkId, NodeId};
//!
//! let [a, b, c] = [0, 1, 2].map(NodeId);
//! let link = |from, to| Link { from, to };
//! let links = [link(a, b), link(b, a), link(b, c), link(c, b)];
//! let routes = shortest_paths(3, &links, &[(a, c)]);
//! assert_eq!(routes.link(a, c), Some(LinkId(0)));
//! assert_eq!(routes.link(b, c), Some(LinkId(2)));
//! // No pair asked for the way back.
//! assert_eq!(routes.link(c, a), None);
//! ```

pub mod aodv;
pub mod arp;
mod buffer;
pub mod config;
pub mod dsr;
pub mod gpsr;
pub mod next_hops;
mod node_map;
pub mod router;
mod seen;
pub mod shortest_path;

pub use aodv::{Aodv, AodvConfig};
pub use config::RoutingConfig;
pub use dsr::{Dsr, DsrConfig};
pub use gpsr::{Gpsr, GpsrConfig};
pub use next_hops::NextHops;
pub use router::{Actions, LinkFailure, Router};

airtcp_core::ids! {
    /// A node, by a number that the host of its router assigns.
    pub struct NodeId;

    /// A link, by a number that the host assigns: its place in the list of links for
    /// [`shortest_path`], until [`NextHops::renumber`].
    pub struct LinkId;
}
