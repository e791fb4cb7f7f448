//! How packets reach the gateway and go on.
//!
//! Read in this order: [`nfqueue`] (packets that wait for a verdict), [`copies`] (of what the
//! kernel forwards by itself), `buffers` (where packets are), `inject` (packets of the gateway's
//! own), [`rules`] (which packets come).
//!
//! # Connection tracking
//! The gateway sees packets in FORWARD, where a mobile has its own address on either way, whatever
//! this host translates it to. Injected packets leave by OUTPUT, and there:
//! - One to the fixed host, from the mobile's own address, belongs to the connection that the
//!   mobile's packets made: it is translated like them. So it must be tracked.
//! - One to the mobile, from the fixed host's address, must not be. Translated connections are
//!   known on that side by the *translated* address, which this packet no longer has: it would be
//!   taken for the first of a new connection whose answers clash with the old one's packets, and be
//!   given another port. A firewall mark exempts it.
//!
//! On board it is the other way round: the hosts on board, which are fixed, may be translated
//! towards the uplink. A packet over the uplink has the mark too, by which it is not taken for one
//! of this host's own connections, and it is tracked all the same. It leaves by that interface
//! whatever the routes say: marks and rules that lead others there are not known here.
//!
//! # Bridges
//! With `br_netfilter` a bridge's packets pass through FORWARD too. Their interfaces are the
//! bridge, not its ports, and the bridge needs an address and routes to both sides, for the
//! injected packets.

mod buffers;
mod inject;
pub mod mirror;
pub mod nfqueue;
pub mod rules;
