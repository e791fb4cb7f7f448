//! What sources of link signals say: that a mobile fades, is down, is up again.
//!
//! A mobile's agent makes reports ([`outbox`], [`message`], [`keys`]), and the gateway decides
//! which of them count ([`gate`]). A [`timetable`] knows outages beforehand.

pub mod gate;
pub mod keys;
pub mod message;
pub mod outbox;
pub mod timetable;

use airtcp_core::LinkSignal;
use airtcp_edge::MobileId;

/// A report of a source on a mobile or an uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MobileSignal {
    /// About which mobile.
    pub mobile: MobileId,
    /// State of its link.
    pub signal: LinkSignal,
    /// The source.
    pub source: SignalSource,
}

/// A source of link signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignalSource {
    /// A person or a program, by the control socket.
    Control,
    /// `airtcp agent` on the mobile.
    Agent,
    /// Carrier of an interface.
    Carrier,
    /// The neighbour table.
    Neighbour,
    /// ModemManager, about the modem of an uplink.
    ModemManager,
    /// The signal level of an uplink's Wi-Fi interface.
    Wifi,
    /// A timetable of outages.
    Timetable,
    /// The mobile is not heard.
    Silence,
    /// A record that an earlier gateway left of connections which an outage interrupts. Whom it had
    /// that from is not recorded.
    EarlierGateway,
}

impl SignalSource {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Control,
        Self::Agent,
        Self::Carrier,
        Self::Neighbour,
        Self::ModemManager,
        Self::Wifi,
        Self::Timetable,
        Self::Silence,
        Self::EarlierGateway,
    ];

    /// Its name in status and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Agent => "agent",
            Self::Carrier => "carrier",
            Self::Neighbour => "neighbour",
            Self::ModemManager => "modem-manager",
            Self::Wifi => "wifi",
            Self::Timetable => "timetable",
            Self::Silence => "silence",
            Self::EarlierGateway => "earlier-gateway",
        }
    }
}
