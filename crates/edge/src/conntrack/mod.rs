//! Connection tracking: the table of connections, where both directions of each are, and which
//! packets are valid.

pub mod ace;
pub mod flow_table;
pub(crate) mod half;
pub mod mobile_peer;
pub mod peers;
pub(crate) mod unreplied;
pub mod validate;
