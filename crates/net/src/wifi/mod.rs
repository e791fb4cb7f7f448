//! IEEE 802.11 (DSSS and 802.11b) on one shared medium, without I/O.
//!
//! Read first: IEEE Std 802.11-1999, clause 9.2 (DCF) and 802.11b-1999, clause 18 (high-rate PHY).
//! Then here: [`config`] (every choice, and who makes which), [`preset`] (the choices of the
//! standard and of the simulators the papers used), [`channel`] (the machine). Its parts can be
//! read alone, from the bottom up: `station` and `frame` (the vocabulary), `phy` (how long a frame
//! takes), `dsss` (its bit errors), `radio` (which frame a station receives), `dcf` (one station's
//! MAC), `audience` (who senses whom), `agenda` (what comes next), `air` (frames on the air),
//! `faint` (interference from afar), `terminal` (one whole station).
//!
//! A frame leaves the MAC of one station, reaches every station in range after distance/c, is
//! received or destroyed by that station's radio, and enters its MAC. The MAC knows no radio, the
//! radio no MAC; only the terminal knows both. Fragmentation, power saving, beacons and association
//! are not modelled.

mod agenda;
mod air;
mod audience;
pub mod channel;
pub mod config;
mod dcf;
mod dsss;
mod faint;
mod frame;
mod phy;
pub mod preset;
mod radio;
mod station;
mod terminal;

pub use airtcp_core::Position;
pub use channel::{Channel, Output};
pub use config::{
    Attempts, BackoffDraw, ChannelConfig, CtsRule, EifsRule, FirstAccess, FrameErrors, MacConfig,
    PhyConfig, Power, Preamble, Propagation, RadioConfig, Reception, ResponseTimeout,
    StationConfig, WifiError,
};
pub use frame::{FrameKind, Monitored, ReceivedFrame, SentFrame};
pub use station::{Receiver, StationCounters, StationId, StationStreams};
