//! Mechanisms that run between a fixed and a mobile host, at the edge of the wireless network,
//! without I/O.
//!
//! [`middlebox`] is the contract with the driver that carries segments (simulator or gateway), and
//! [`connection`] the state machine for one connection. [`per_connection`] makes a middlebox of
//! many. Below them stand three layers, each of which uses only those before it:
//! - [`conntrack`]: the bounded table of connections, both peers of each, and which packets are
//!   valid;
//! - [`hold`]: copies of segments, their replay at the mobile's pace, and the journal, which
//!   survives the driver;
//! - [`mechanisms`]: a file for each, and [`Mechanism`] for any of them.
//!
//! The same code sees simulated and live traffic. So nothing here assumes that a segment is one
//! MSS, sequence numbers are compared only modulo 2^32, and state is soft: where it is missing,
//! full or forgotten, segments are forwarded as if the mechanism were absent.
//!
//! # Example
//!
//! The mobile is about to go. M-TCP+ acknowledges what it has a copy of, with a window of zero, so that
//! the sender waits with its own window intact.
//!
//! ```
//! use airtcp_core::{Addr, Bytes, Flags, Flow, Instant, Length, LinkSignal, Segment, SeqNum};
//! use airtcp_edge::{
//!     Action, Actions, FlowTableConfig, MTcpPlusConfig, Mechanism, MechanismConfig, Middlebox,
//!     MobileId, Side,
//! };
//!
//! let config = MechanismConfig::MTcpPlus(MTcpPlusConfig::default());
//! let mut node = Mechanism::new(&config, FlowTableConfig::default(), Bytes(1_000_000))?;
//! let mut out = Actions::new();
//!
//! let addr = |last, port| Addr::new([10, 0, 0, last].into(), port);
//! let (server, mobile) = (addr(1, 80), addr(3, 5001));
//! let down = Flow { src: server, dst: mobile };
//! let segment = |flow, seq, ack| Segment::<Length> {
//!     flow,
//!     seq: SeqNum(seq),
//!     ack,
//!     window: 8760,
//!     ..Segment::default()
//! };
//! let syn = Segment { flags: Flags::SYN, ..segment(down.reversed(), 500, None) };
//! let syn_ack = Segment { flags: Flags::SYN, ..segment(down, 100, Some(SeqNum(501))) };
//! let data = Segment { payload: Length(1000), ..segment(down, 101, Some(SeqNum(501))) };
//! node.on_segment(Instant::ZERO, Side::Mobile, syn, &mut out);
//! node.on_segment(Instant::ZERO, Side::Fixed, syn_ack, &mut out);
//! node.on_segment(Instant::ZERO, Side::Mobile, segment(down.reversed(), 501, Some(SeqNum(101))), &mut out);
//! node.on_segment(Instant::ZERO, Side::Fixed, data, &mut out);
//! // So far everything passes.
//! assert!(out.drain().all(|action| matches!(action, Action::Forward { .. })));
//!
//! node.on_link(Instant::from_secs(1), MobileId::Host(mobile.ip), LinkSignal::Down, &mut out);
//! let Some(Action::Inject { to: Side::Fixed, segment: ack }) = out.drain().last() else {
//!     panic!("an acknowledgement for the server");
//! };
//! assert_eq!((ack.ack, ack.window), (Some(SeqNum(1101)), 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod connection;
pub mod conntrack;
pub mod hold;
pub mod interface;
pub mod mechanisms;
pub mod middlebox;
pub mod per_connection;
mod probing;

pub use connection::{Connection, Context};
pub use conntrack::flow_table::{FlowPhase, FlowReport, FlowState, FlowTable, FlowTableConfig};
pub use conntrack::mobile_peer::MobilePeer;
pub use conntrack::validate::{InvalidPacket, InvalidPackets, ValidPacket};
pub use hold::cache::SegmentCache;
pub use hold::journal::{Call, Input};
pub use interface::{InterfaceName, NotAnInterface};
pub use mechanisms::away::Resume;
pub use mechanisms::holdover::{Holdover, HoldoverConfig, HoldoverCounters, HoldoverState};
pub use mechanisms::m_tcp::{Detect, MTcp, MTcpConfig, MTcpCounters, MTcpState, Retransmit};
pub use mechanisms::m_tcp_plus::{
    Acknowledge, MTcpPlus, MTcpPlusConfig, MTcpPlusCounters, MTcpPlusNote, MTcpPlusSnapshot,
    MTcpPlusState, Open,
};
pub use mechanisms::observe::{Class, ObserveConfig, Observed, Observer, Stalls};
pub use mechanisms::packet_control::{PacketControl, PacketControlCounters, ThresholdTooSmall};
pub use mechanisms::snoop::{Snoop, SnoopConfig, SnoopCounters, SnoopState};
pub use mechanisms::wake::{FlowId, Packet, Silence, Towards, Wake, WakeConfig, WakeCounters};
pub use mechanisms::{
    Capabilities, Mechanism, MechanismConfig, MechanismNote, MechanismSnapshot, ReconfigureError,
    SignalUse,
};
pub use middlebox::{Action, Actions, Middlebox, MobileId, Side};
pub use per_connection::{PerConnection, TURN};
