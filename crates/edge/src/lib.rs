//! Mechanisms that run between a fixed and a mobile host, at the edge of the wireless network,
//! without I/O.
//!
//! [`middlebox`] is the contract with the driver that carries segments (simulator or gateway).
//! [`flow_table`] is the bounded memory of connections, [`connection`] the state machine for one of
//! them, [`journal`] what survives of it when the driver dies, and [`per_connection`] makes a
//! middlebox of the three. [`belief`] tells which segments count. Mechanisms share [`cache`]
//! (copies of segments), [`mobile_end`] (ACKs on the mobile's behalf), [`ends`] (both ends),
//! [`store`] (copies and ends), [`away`] (is the mobile back?) and [`replay`] (sending it copies at
//! its pace). Each has a file of its own: [`packet_control`], [`m_tcp`], [`m_tcp_plus`],
//! [`holdover`], [`snoop`]; [`mechanism`] is any of them.
//!
//! The same code sees simulated and live traffic. So nothing here assumes that a segment is one
//! MSS, sequence numbers are compared only modulo 2^32, and state is soft: where it is missing,
//! full or forgotten, segments are forwarded as if the mechanism were absent.

pub mod ace;
pub mod ack_clock;
pub mod away;
pub mod belief;
pub mod cache;
pub mod connection;
mod counters;
pub mod ends;
pub mod flow_table;
pub mod holdover;
pub mod interface;
pub mod journal;
pub mod m_tcp;
pub mod m_tcp_plus;
pub mod mechanism;
pub mod middlebox;
pub mod mobile_end;
pub mod observe;
pub mod packet_control;
pub mod per_connection;
pub mod replay;
pub mod snoop;
pub mod store;
mod unanswered;
pub mod wake;

pub use belief::{Believed, Doubt, Doubts};
pub use cache::SegmentCache;
pub use connection::{Connection, Context};
pub use flow_table::{FlowPhase, FlowReport, FlowState, FlowTable, FlowTableConfig};
pub use holdover::{Holdover, HoldoverConfig, HoldoverCounters};
pub use interface::{InterfaceName, NotAnInterface};
pub use journal::{Call, Input};
pub use m_tcp::{Detect, MTcp, MTcpConfig, MTcpCounters, Retransmit};
pub use m_tcp_plus::{Acknowledge, MTcpPlus, MTcpPlusConfig, MTcpPlusCounters, Resume};
pub use mechanism::{
    Capabilities, Mechanism, MechanismConfig, Note, ReconfigureError, SignalUse, Snapshot,
};
pub use middlebox::{Action, Actions, Middlebox, MobileId, Side};
pub use mobile_end::MobileEnd;
pub use observe::{Class, ObserveConfig, Observed, Observer, Stalls};
pub use packet_control::{PacketControl, PacketControlCounters, ThresholdTooSmall};
pub use per_connection::PerConnection;
pub use snoop::{Snoop, SnoopConfig, SnoopCounters};
pub use wake::{FlowId, Packet, Silence, Towards, Wake, WakeConfig, WakeCounters};
