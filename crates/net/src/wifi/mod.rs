//! IEEE 802.11 (802.11b, a, g, n, ac and ax) on one shared medium, without I/O.
//!
//! Read first: IEEE Std 802.11-1999, clause 9.2 (DCF) and 802.11b-1999, clause 18 (high-rate PHY);
//! for what came later IEEE Std 802.11-2020, §10.23.2 (EDCA), §10.25 (block ACK), §17, §19 and §21.
//! Then here: [`config`] (every choice, and who makes which), [`preset`] (the choices of the
//! standard and of the simulators the papers used), [`standard`] (the physical layers), [`channel`]
//! (the machine). Its parts can be read alone, from the bottom up: `station` and `frame` (the
//! vocabulary), `phy` and `ofdm` (how long a frame takes), `dsss`, `convolutional` and `exposure`
//! (its bit errors), `radio` (which frame a station receives), `dcf` (one station's MAC),
//! `rules` (its times), [`category`] (which of its access functions a packet goes through),
//! `aggregate` (its A-MPDUs), `minstrel` (its choice of rates), [`level`] (when a level crosses thresholds), `audience` (who senses
//! whom), `agenda` (what comes next), `air` (frames on the air), `faint` (interference from afar),
//! `terminal` (one whole station).
//!
//! A frame leaves the MAC of one station, reaches every station in range after distance/c, is
//! received or destroyed by that station's radio, and enters its MAC. The MAC knows no radio, the
//! radio no MAC; only the terminal knows both. Fragmentation, power saving, beacons and association
//! are not modelled.

mod agenda;
mod aggregate;
mod air;
mod audience;
pub mod category;
pub mod channel;
pub mod config;
mod convolutional;
mod dcf;
mod dsss;
mod exposure;
mod faint;
mod frame;
pub mod level;
mod minstrel;
mod ofdm;
mod phy;
pub mod preset;
mod radio;
mod rules;
pub mod standard;
mod station;
mod terminal;

pub use airtcp_core::Position;
pub use category::{AccessCategories, AccessCategory, CategoryConfig, UserPriority};
pub use channel::{Channel, Output};
pub use config::{
    Attempts, BackoffDraw, ChannelConfig, CtsRule, EifsRule, FirstAccess, FrameErrors, MacConfig,
    MimoError, Power, Propagation, RadioConfig, Reception, ResponseTimeout, StationConfig,
    WifiError,
};
pub use frame::{BlockAck, Content, FrameKind, Monitored, ReceivedFrame, SentFrame, SentMpdu};
pub use ofdm::{Format, TxVector, Width};
pub use standard::{
    Band, DsssConfig, MimoConfig, OfdmConfig, PhyConfig, Preamble, RateControl, SentAt,
};
pub use station::{Receiver, StationCounters, StationId, StationStreams};
