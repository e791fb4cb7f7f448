//! `[[udp]]`: sources of datagrams.

use super::names::{A_NODE, fits};
use super::node::NodeId;
use super::traffic::{Network, ends, is_new, name_by_ends};
use airtcp_config::Section;
use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_settings::schema::Fallback::{Absent, Is, Required};
use airtcp_settings::schema::{Key, Kind, POSITIVE_TIME, TIME, Table, field};
use airtcp_settings::{Name, Value, choice};
use std::collections::BTreeSet;

/// A source of UDP datagrams of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct UdpSpec {
    /// Unique name; also names its random stream ("cbr/noise").
    pub name: String,
    /// The sending node.
    pub from: NodeId,
    /// The receiving node.
    pub to: NodeId,
    /// Time at which it starts.
    pub start: Instant,
    /// Time at which it stops; `None`: at the end of the run.
    pub stop: Option<Instant>,
    /// Size of the IP packet.
    pub size: Bytes,
    /// The rate; `None`: saturated, a packet always waits in front of the first hop.
    pub rate: Option<DataRate>,
    /// Pauses; `None`: it sends all the time.
    pub on_off: Option<OnOff>,
}

airtcp_core::ids! {
    /// A source of datagrams, by its index in [`Scenario::udp`](super::Scenario::udp).
    pub struct UdpId;
}

/// Alternating periods of sending and of silence, sending first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOff {
    /// Mean length of a period of sending.
    pub on: Duration,
    /// Mean length of a pause.
    pub off: Duration,
    /// True if lengths are exponentially distributed; otherwise all are equal.
    pub exponential: bool,
}

choice! {
    /// Distribution of the lengths of periods.
    pub enum Periods {
        /// their lengths are exponentially distributed
        Exponential = "exponential",
        /// all have the mean length
        Constant = "constant",
    }
}

pub(super) static UDP: Table = Table::new(
    "udp",
    "UDP cross traffic: datagrams of one size at a constant rate, perhaps with pauses, or as fast as the first hop accepts them.",
    &[Key::Fields(&[
        field(
            "name",
            Kind::Name,
            Absent("`A-B` for a source on A that sends to B"),
            "Unique name. A source made several times (groups) gets its number appended.",
        ),
        field("from", A_NODE, Required, "The sending node."),
        field("to", A_NODE, Required, "The receiving node; paired with `from` as for a flow."),
        field(
            "rate",
            Kind::WordOr("saturated", &Kind::Rate),
            Required,
            "IP packets, while sending. `saturated`: one always waits in front of \
             the first hop.",
        ),
        field(
            "size",
            Kind::Size { min: 28, max: 65_535 },
            Is("1500 B"),
            "IP packet, headers (28 B) included.",
        ),
        field("start", TIME, Is("0 s"), "Time of the first datagram."),
        field(
            "stop",
            POSITIVE_TIME,
            Absent("the end of the run"),
            "Time from which nothing more is sent.",
        ),
        field(
            "on",
            POSITIVE_TIME,
            Absent("no pauses"),
            "Mean length of a sending period; needs `off`.",
        ),
        field("off", POSITIVE_TIME, Absent("no pauses"), "Mean length of a pause; needs `on`."),
        field(
            "periods",
            Periods::KIND,
            Is("exponential"),
            "Distribution of the lengths of `on` and `off`.",
        ),
    ])],
);

/// Reads the sources.
pub(super) fn sources(sections: &[Section<'_>], network: &Network<'_>) -> Vec<UdpSpec> {
    let mut sources: Vec<UdpSpec> = Vec::new();
    let mut taken = BTreeSet::new();
    for section in sections {
        let name = section.get::<Option<Name>>("name");
        let rate = section.get::<Option<DataRate>>("rate");
        let size = section.get::<Bytes>("size");
        let start = section.get::<Instant>("start");
        let stop = section.get::<Option<Instant>>("stop");
        let on_off = on_off(section);
        let pairs = ends(section, network);
        let (Some(name), Some(rate), Some(size)) = (name, rate, size) else { continue };
        let (Some(start), Some(stop), Some(on_off)) = (start, stop, on_off) else { continue };
        let Some(pairs) = pairs else { continue };
        if network.duration.is_some_and(|d| start.since_start() >= d) {
            let message = format!("starts at {}, after the end of the run", start.since_start());
            section.push(section.problem("start", message).expected("a start before `duration`"));
        }
        if stop.is_some_and(|stop| stop <= start) {
            let message = format!("not after the start at {}", start.since_start());
            section.push(section.problem("stop", message).expected("a stop after `start`"));
        }
        if rate.is_none() && on_off.is_some() {
            let problem = section.problem("on", "has no effect with rate = \"saturated\"");
            section.push(problem.expected("a rate such as \"250 kbit/s\""));
        }
        if !fits(section, "from", "sources", (sources.len() + pairs.len()) as u64) {
            continue;
        }
        let several = pairs.len() > 1;
        for (k, (from, to)) in pairs.into_iter().enumerate() {
            let name = match &name {
                Some(name) if several => format!("{}{k}", name.text),
                Some(name) => name.text.clone(),
                None => name_by_ends(network.nodes, from, to, None),
            };
            if !is_new(section, "source", &name, &mut taken) {
                break;
            }
            sources.push(UdpSpec { name, from, to, start, stop, size, rate, on_off });
        }
    }
    sources
}

/// The pauses of a source; `None` if they are wrong.
fn on_off(section: &Section<'_>) -> Option<Option<OnOff>> {
    let (on, off) = (section.get::<Option<Duration>>("on"), section.get::<Option<Duration>>("off"));
    let periods = section.get::<Periods>("periods");
    match (on?, off?) {
        (Some(on), Some(off)) => {
            Some(Some(OnOff { on, off, exponential: periods? == Periods::Exponential }))
        }
        (None, None) => {
            if section.has("periods") {
                let problem = section.problem("periods", "has no effect without on and off");
                section.push(problem.expected("on and off, whose lengths it describes"));
            }
            Some(None)
        }
        (on, _) => {
            let missing = if on.is_none() { "on" } else { "off" };
            section.push(section.problem(missing, "missing").expected("both on and off, or none"));
            None
        }
    }
}
