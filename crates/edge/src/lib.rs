//! Mechanisms that run between a fixed and a mobile host, at the edge of the wireless network, without I/O.
//!
//! [`middlebox`] is the contract with the shell that carries segments (simulator or gateway), [`flow_table`]
//! the bounded memory of connections, and each mechanism has a file of its own: [`packet_control`].
//!
//! The same code sees simulated and live traffic. So nothing here takes a segment for one MSS, sequence
//! numbers are compared on the circle only, and state is soft: when it is missing, full or forgotten, segments
//! are forwarded as if the mechanism were absent.

pub mod flow_table;
pub mod middlebox;
pub mod packet_control;

pub use flow_table::{FlowTable, FlowTableConfig};
pub use middlebox::{Action, Actions, LinkSignal, Middlebox, MobileId, Side};
pub use packet_control::{PacketControl, PacketControlCounters, ThresholdTooSmall};
