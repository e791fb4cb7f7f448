//! All mechanisms behind one type, for drivers that run the one that a configuration names.

pub mod ack_timing;
pub mod away;
pub mod holdover;
pub mod m_tcp;
pub mod m_tcp_plus;
pub mod observe;
pub mod packet_control;
pub mod snoop;
pub mod wake;

use crate::connection::Connection;
use crate::conntrack::flow_table::{FlowReport, FlowTableConfig};
use crate::conntrack::validate::{Conntracked, InvalidPackets};
use crate::hold::journal::{self, Input};
use crate::hold::store::Store;
use crate::mechanisms::holdover::{Holdover, HoldoverConfig, HoldoverCounters};
use crate::mechanisms::m_tcp::{Detect, MTcp, MTcpConfig, MTcpCounters};
use crate::mechanisms::m_tcp_plus::{MTcpPlus, MTcpPlusConfig, MTcpPlusCounters};
use crate::mechanisms::packet_control::{
    PacketControl, PacketControlCounters, SENDER_THRESHOLD, ThresholdTooSmall,
};
use crate::mechanisms::snoop::{Snoop, SnoopConfig, SnoopCounters};
use crate::mechanisms::wake::{Wake, WakeConfig, WakeCounters};
use crate::middlebox::{Actions, Middlebox, MobileId, Side};
use airtcp_core::documented::Documented;
use airtcp_core::{Bytes, Duration, Flow, Instant, LinkSignal, Payload, Segment, SeqNum};
use airtcp_settings::alternatives;
use airtcp_settings::schema::{Conditions, Kind, Only};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use thiserror::Error;

alternatives! {
    /// A mechanism with its settings.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[choice("mechanism", "Which mechanism.")]
    pub enum MechanismConfig {
        /// TCP Packet Control: filters ACKs and data against delay variation; holds nothing
        "packet-control" => PacketControl {
            /// R: duplicate ACKs that stand for a loss at the base station.
            #[kind = Kind::Integer { min: SENDER_THRESHOLD, max: 1_000_000 }]
            #[source = "Packet Control §V"]
            threshold: u32,
        },
        /// M-TCP's supervisor host: withholds a byte, closes the sender's window by it when the
        /// mobile falls silent
        "m-tcp" => MTcp(..MTcpConfig),
        /// M-TCP+: on a disconnection signal acknowledges what it has copies of and closes the
        /// sender's window; replays the copies when the mobile is back
        "m-tcp-plus" => MTcpPlus(..MTcpPlusConfig),
        /// keeps the sender alive in an outage without acknowledging anything; replays copies when
        /// it is over (docs/holdover.md)
        "holdover" => Holdover(..HoldoverConfig),
        /// retransmits from a cache on duplicate ACKs and hides these
        "snoop" => Snoop(..SnoopConfig),
        /// keeps two packets of each flow and sends them once more when an outage is over
        "wake" => Wake(..WakeConfig),
    }
}

const MECHANISM: &str = "mechanism";
const M_TCP: Only = Only { choice: MECHANISM, words: &["m-tcp"] };

/// Capabilities of a mechanism with its settings, for drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Payload bytes that one connection may hold; `None`: it holds no copies.
    pub fifo: Option<Bytes>,
    /// Its use of link signals.
    pub signals: SignalUse,
    /// It keeps a [journal]: what it holds must survive the driver.
    pub journal: bool,
    /// It only watches while a mobile is in reach, so copies of packets will do.
    pub passive: bool,
    /// It is about packets of all protocols, not TCP alone; the side of the node on which the link
    /// is.
    pub all_protocols: Option<Side>,
}

/// A mechanism's use of link signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalUse {
    /// Signals have no effect.
    Ignored,
    /// It acts on them, and notices silence by itself.
    Heeded,
    /// Without them it does nothing in an outage.
    Needed,
}

impl MechanismConfig {
    /// Capabilities with these settings.
    pub const fn capabilities(&self) -> Capabilities {
        let (signals, journal, passive) = (SignalUse::Ignored, false, false);
        let none = Capabilities { fifo: None, signals, journal, passive, all_protocols: None };
        match self {
            Self::PacketControl { .. } => none,
            Self::MTcp(config) => match config.detect {
                Detect::Timer => Capabilities { fifo: Some(config.fifo), ..none },
                Detect::Signal => Capabilities { signals: SignalUse::Needed, ..none },
            },
            Self::MTcpPlus(MTcpPlusConfig { fifo, .. })
            | Self::Holdover(HoldoverConfig { fifo, .. }) => Capabilities {
                fifo: Some(*fifo),
                signals: SignalUse::Needed,
                journal: true,
                passive: true,
                ..none
            },
            Self::Snoop(config) => Capabilities { fifo: Some(config.fifo), ..none },
            Self::Wake(config) => Capabilities {
                signals: SignalUse::Heeded,
                passive: true,
                all_protocols: Some(config.towards.side()),
                ..none
            },
        }
    }

    /// Conditions for keys about copies: [`Capabilities::fifo`]. Declare the key once for each.
    pub const WITH_COPIES: [Conditions; 2] = [
        Conditions::one(MECHANISM, &["m-tcp-plus", "holdover", "snoop"]),
        Conditions::two(M_TCP, Only { choice: "detect", words: Detect::BY_TIMER }),
    ];

    /// Conditions for keys about signals: [`Capabilities::signals`]. Declare the key once for each.
    pub const WITH_SIGNALS: [Conditions; 2] = [
        Conditions::one(MECHANISM, &["m-tcp-plus", "holdover", "wake"]),
        Conditions::two(M_TCP, Only { choice: "detect", words: Detect::BY_SIGNAL }),
    ];

    /// Condition for keys about how a mechanism for TCP watches: [`Capabilities::passive`].
    pub const WATCHING: Conditions = Conditions::one(MECHANISM, &["m-tcp-plus", "holdover"]);

    /// The counters of each mechanism, by its word.
    pub const COUNTERS: &'static [(&'static str, &'static [Documented])] = &[
        ("packet-control", PacketControlCounters::FIELDS),
        ("m-tcp", MTcpCounters::FIELDS),
        ("m-tcp-plus", MTcpPlusCounters::FIELDS),
        ("holdover", HoldoverCounters::FIELDS),
        ("snoop", SnoopCounters::FIELDS),
        ("wake", WakeCounters::FIELDS),
    ];

    /// The counters that all have but wake, which looks at segments only to see connections end.
    pub const INVALID_PACKETS: &'static [Documented] = InvalidPackets::FIELDS;

    /// Wake's settings, if it is wake.
    pub const fn wake(&self) -> Option<WakeConfig> {
        match self {
            Self::Wake(config) => Some(*config),
            _ => None,
        }
    }

    /// The longest absence of a mobile before its connections are reset; `None`: for ever.
    pub const fn max_down(&self) -> Option<Duration> {
        match self {
            Self::MTcp(config) => config.max_down,
            Self::MTcpPlus(config) => config.max_down,
            Self::Holdover(config) => config.max_down,
            Self::PacketControl { .. } | Self::Snoop(_) | Self::Wake(_) => None,
        }
    }

    /// Interval of keep-alive probes to a mobile whose link is down; `None`: no probes.
    pub const fn probe_interval(&self) -> Option<Duration> {
        match self {
            Self::MTcpPlus(config) => config.probe_interval,
            Self::Holdover(config) => config.probe_interval,
            Self::PacketControl { .. } | Self::MTcp(_) | Self::Snoop(_) | Self::Wake(_) => None,
        }
    }
}

/// A journal note on a connection of any mechanism, for the driver to write down.
pub type MechanismNote<P> = journal::JournalNote<P, MechanismSnapshot<P>>;

/// A connection of any mechanism that keeps a journal, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(
    serialize = "P: Payload + Serialize",
    deserialize = "P: Payload + Deserialize<'de>"
))]
pub enum MechanismSnapshot<P> {
    /// A connection under M-TCP+, with its settings.
    MTcpPlus(m_tcp_plus::MTcpPlusSnapshot<P>),
    /// A connection under holdover, with its settings.
    Holdover(holdover::HoldoverSnapshot<P>),
}

impl<P: Payload> MechanismSnapshot<P> {
    /// Moves on by one input, as the connection itself did.
    pub fn apply(&mut self, input: Input<P>) {
        match self {
            Self::MTcpPlus(known) => known.apply(input),
            Self::Holdover(known) => known.apply(input),
        }
    }

    /// The settings that the connection worked by.
    pub fn config(&self) -> MechanismConfig {
        match self {
            Self::MTcpPlus(known) => MechanismConfig::MTcpPlus(known.config),
            Self::Holdover(known) => MechanismConfig::Holdover(known.config),
        }
    }

    /// Time since which the mobile's link is down, as signals said; `None`: it is not.
    pub fn down_since(&self) -> Option<Instant> {
        match self {
            Self::MTcpPlus(known) => Connection::<P>::down_since(&known.connection),
            Self::Holdover(known) => Connection::<P>::down_since(&known.connection),
        }
    }

    /// Resets that both hosts accept, if the connection is established: the fixed one's comes
    /// first.
    pub fn resets(mut self) -> Option<[Segment<P>; 2]> {
        match &mut self {
            Self::MTcpPlus(known) => resets(&mut known.connection),
            Self::Holdover(known) => resets(&mut known.connection),
        }
    }
}

fn resets<P: Payload, C: Conntracked<P, Established = Store<P>>>(
    connection: &mut C,
) -> Option<[Segment<P>; 2]> {
    let ack_sent = connection.last_ack_sent();
    let peers = connection.conntrack().established.as_ref()?.peers;
    let ack_sent = ack_sent.unwrap_or(peers.mobile_ack());
    Some([peers.reset_fixed(ack_sent), peers.reset_mobile()])
}

/// A mechanism could not go on with other settings; it goes on with those it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReconfigureError {
    /// They are of another mechanism, which knows nothing of the flows at work.
    #[error("a mechanism cannot become another while it has flows")]
    OtherMechanism,
    /// Packet Control's threshold is below the sender's: see [`ThresholdTooSmall`].
    #[error(transparent)]
    ThresholdTooSmall(#[from] ThresholdTooSmall),
}

/// A mechanism at work.
#[derive(Clone, Debug)]
pub enum Mechanism<P: Payload> {
    /// TCP Packet Control.
    PacketControl(PacketControl),
    /// M-TCP's supervisor host.
    MTcp(MTcp<P>),
    /// M-TCP+'s intelligent host.
    MTcpPlus(MTcpPlus<P>),
    /// airtcp's own holdover.
    Holdover(Holdover<P>),
    /// Snoop's base station.
    Snoop(Snoop<P>),
    /// Wake, on TCP segments.
    Wake(Wake<Segment<P>>),
}

/// The same expression for whichever mechanism it is.
macro_rules! each {
    ($mechanism:expr, $machine:ident => $result:expr) => {
        match $mechanism {
            Mechanism::PacketControl($machine) => $result,
            Mechanism::MTcp($machine) => $result,
            Mechanism::MTcpPlus($machine) => $result,
            Mechanism::Holdover($machine) => $result,
            Mechanism::Snoop($machine) => $result,
            Mechanism::Wake($machine) => $result,
        }
    };
}

impl<P: Payload> Mechanism<P> {
    /// Without connections; all together they will hold at most `memory` payload bytes.
    ///
    /// # Errors
    /// Packet Control's threshold is below 3.
    pub fn new(
        config: &MechanismConfig,
        table: FlowTableConfig,
        memory: Bytes,
    ) -> Result<Self, ThresholdTooSmall> {
        let memory = memory.get();
        Ok(match *config {
            MechanismConfig::PacketControl { threshold } => {
                Self::PacketControl(PacketControl::new(threshold, table)?)
            }
            MechanismConfig::MTcp(config) => Self::MTcp(MTcp::new(config, table, memory)),
            MechanismConfig::MTcpPlus(config) => {
                Self::MTcpPlus(MTcpPlus::new(config, table, memory))
            }
            MechanismConfig::Holdover(config) => {
                Self::Holdover(Holdover::new(config, table, memory))
            }
            MechanismConfig::Snoop(config) => Self::Snoop(Snoop::new(config, table, memory)),
            MechanismConfig::Wake(config) => Self::Wake(Wake::new(config, table)),
        })
    }

    /// Goes on with other settings of the same mechanism; connections stay.
    ///
    /// # Errors
    /// The settings are of another mechanism, or wrong. Nothing has changed then.
    pub fn reconfigure(
        &mut self,
        config: &MechanismConfig,
        table: FlowTableConfig,
        memory: Bytes,
    ) -> Result<(), ReconfigureError> {
        let memory = memory.get();
        match (self, *config) {
            (Self::PacketControl(machine), MechanismConfig::PacketControl { threshold }) => {
                machine.reconfigure(threshold, table)?;
            }
            (Self::MTcp(machine), MechanismConfig::MTcp(config)) => {
                machine.reconfigure(config, table, memory);
            }
            (Self::MTcpPlus(machine), MechanismConfig::MTcpPlus(config)) => {
                machine.reconfigure(config, table, memory);
            }
            (Self::Holdover(machine), MechanismConfig::Holdover(config)) => {
                machine.reconfigure(config, table, memory);
            }
            (Self::Snoop(machine), MechanismConfig::Snoop(config)) => {
                machine.reconfigure(config, table, memory);
            }
            (Self::Wake(machine), MechanismConfig::Wake(config)) => {
                machine.reconfigure(config, table);
            }
            _ => return Err(ReconfigureError::OtherMechanism),
        }
        Ok(())
    }

    /// Number of connections known.
    pub fn flows(&self) -> usize {
        each!(self, machine => machine.flows())
    }

    /// Payload bytes held for all connections.
    pub fn held(&self) -> u64 {
        each!(self, machine => machine.held())
    }

    /// Reports on all connections.
    pub fn reports(&self) -> Box<dyn Iterator<Item = FlowReport> + '_> {
        each!(self, machine => Box::new(machine.reports()))
    }

    /// The mechanism does more for connections of this mobile than forward them: they are not
    /// [`FlowPhase::Connected`](crate::FlowPhase::Connected).
    pub fn is_interrupted(&self, mobile: MobileId) -> bool {
        each!(self, machine => machine.is_interrupted(mobile))
    }

    /// Number of its connections that are not [`FlowPhase::Connected`](crate::FlowPhase::Connected).
    pub fn interrupted(&self, mobile: MobileId) -> usize {
        each!(self, machine => machine.interrupted(mobile))
    }

    /// The mobile host of this connection has sent a segment. Wake knows no connections.
    pub fn is_mobile_heard(&self, flow: &Flow) -> bool {
        match self {
            Self::PacketControl(machine) => machine.is_mobile_heard(flow),
            Self::MTcp(machine) => machine.is_mobile_heard(flow),
            Self::MTcpPlus(machine) => machine.is_mobile_heard(flow),
            Self::Holdover(machine) => machine.is_mobile_heard(flow),
            Self::Snoop(machine) => machine.is_mobile_heard(flow),
            Self::Wake(_) => false,
        }
    }

    /// As [`PerConnection::in_flight`](crate::PerConnection::in_flight), of mechanisms that replay.
    pub fn in_flight(&self, flow: &Flow) -> Option<Range<SeqNum>> {
        match self {
            Self::MTcp(machine) => machine.in_flight(flow),
            Self::MTcpPlus(machine) => machine.in_flight(flow),
            Self::Holdover(machine) => machine.in_flight(flow),
            Self::Snoop(machine) => machine.in_flight(flow),
            Self::PacketControl(_) | Self::Wake(_) => None,
        }
    }

    /// Acknowledged bytes of this connection exist only here.
    pub fn is_committed(&self, flow: &Flow) -> bool {
        matches!(self, Self::MTcpPlus(machine) if machine.is_committed(flow))
    }

    /// As [`PerConnection::on_copy`](crate::PerConnection::on_copy). Only mechanisms that forward
    /// everything while a mobile is in reach (M-TCP+, holdover) tell copies from other segments.
    pub fn on_copy(&mut self, now: Instant, from: Side, segment: Segment<P>, out: &mut Actions<P>) {
        match self {
            Self::MTcpPlus(machine) => machine.on_copy(now, from, segment, out),
            Self::Holdover(machine) => machine.on_copy(now, from, segment, out),
            _ => self.on_segment(now, from, segment, out),
        }
    }

    /// As [`PerConnection::keep_journal`](crate::PerConnection::keep_journal). M-TCP+ and holdover
    /// have a journal; this and what follows does nothing for the others.
    pub fn keep_journal(&mut self) {
        match self {
            Self::MTcpPlus(machine) => machine.keep_journal(),
            Self::Holdover(machine) => machine.keep_journal(),
            _ => {}
        }
    }

    /// As [`PerConnection::drain_journal`](crate::PerConnection::drain_journal).
    pub fn drain_journal(&mut self) -> Box<dyn Iterator<Item = MechanismNote<P>> + '_> {
        match self {
            Self::MTcpPlus(machine) => {
                Box::new(machine.drain_journal().map(|note| note.map(MechanismSnapshot::MTcpPlus)))
            }
            Self::Holdover(machine) => {
                Box::new(machine.drain_journal().map(|note| note.map(MechanismSnapshot::Holdover)))
            }
            _ => Box::new(std::iter::empty()),
        }
    }

    /// As [`PerConnection::withhold`](crate::PerConnection::withhold).
    pub fn withhold(&mut self, flow: &Flow, out: &mut Actions<P>) -> bool {
        match self {
            Self::MTcpPlus(machine) => machine.withhold(flow, out),
            Self::Holdover(machine) => machine.withhold(flow, out),
            _ => false,
        }
    }

    /// As [`PerConnection::note_anew`](crate::PerConnection::note_anew).
    pub fn note_anew(&mut self, flow: &Flow) {
        match self {
            Self::MTcpPlus(machine) => machine.note_anew(flow),
            Self::Holdover(machine) => machine.note_anew(flow),
            _ => {}
        }
    }

    /// As [`PerConnection::restore`](crate::PerConnection::restore); false when this mechanism is
    /// another.
    pub fn restore(&mut self, now: Instant, flow: Flow, snapshot: MechanismSnapshot<P>) -> bool {
        match (self, snapshot) {
            (Self::MTcpPlus(machine), MechanismSnapshot::MTcpPlus(known)) => {
                machine.restore(now, flow, known.connection);
            }
            (Self::Holdover(machine), MechanismSnapshot::Holdover(known)) => {
                machine.restore(now, flow, known.connection);
            }
            _ => return false,
        }
        true
    }

    /// Segments forwarded untouched because the flow table was full.
    pub fn segments_refused(&self) -> u64 {
        each!(self, machine => machine.segments_refused())
    }

    /// Counters since the start by name, those of [`InvalidPackets`] among them.
    pub fn counters(&self) -> BTreeMap<&'static str, u64> {
        let mut counters = each!(self, machine => machine.counters().by_name());
        let invalid_packets = match self {
            Self::PacketControl(machine) => machine.invalid_packets(),
            Self::MTcp(machine) => machine.invalid_packets(),
            Self::MTcpPlus(machine) => machine.invalid_packets(),
            Self::Holdover(machine) => machine.invalid_packets(),
            Self::Snoop(machine) => machine.invalid_packets(),
            // It copies packets and validates none.
            Self::Wake(_) => return counters,
        };
        counters.extend(invalid_packets.by_name());
        counters
    }
}

impl<P: Payload> Middlebox<P> for Mechanism<P> {
    fn on_segment(&mut self, now: Instant, from: Side, segment: Segment<P>, out: &mut Actions<P>) {
        each!(self, machine => machine.on_segment(now, from, segment, out));
    }

    fn on_link(
        &mut self,
        now: Instant,
        mobile: MobileId,
        signal: LinkSignal,
        out: &mut Actions<P>,
    ) {
        each!(self, machine => Middlebox::<P>::on_link(machine, now, mobile, signal, out));
    }

    fn on_timer(&mut self, now: Instant, out: &mut Actions<P>) {
        each!(self, machine => machine.on_timer(now, out));
    }

    fn next_deadline(&self) -> Option<Instant> {
        each!(self, machine => Middlebox::<P>::next_deadline(machine))
    }
}
