//! `[[udp]]` and `[[call]]`: sources of datagrams.

use super::distribution::{SIZES, Sizes, TIMES, Times};
use super::names::{A_NODE, fits};
use super::node::NodeId;
use super::traffic::{Network, ends, is_new, name_by_ends};
use airtcp_config::Section;
use airtcp_core::{Bytes, DataRate, Dscp, Duration, Instant};
use airtcp_settings::schema::Fallback::{Absent, Is, Required};
use airtcp_settings::schema::{Field, Key, Kind, POSITIVE_TIME, TIME, Table, field};
use airtcp_settings::{Name, Settings, Value, choice, settings};
use std::collections::BTreeSet;

/// A source of UDP datagrams.
#[derive(Clone, Debug, PartialEq)]
pub struct UdpSpec {
    /// Unique name; also names its random stream ("cbr/noise").
    pub name: String,
    /// The sending node.
    pub from: NodeId,
    /// The receiving node.
    pub to: NodeId,
    /// The DSCP of its packets.
    pub dscp: Dscp,
    /// Time at which it starts.
    pub start: Instant,
    /// Time at which it stops; `None`: at the end of the run.
    pub stop: Option<Instant>,
    /// What it sends.
    pub datagrams: Datagrams,
}

/// The datagrams of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum Datagrams {
    /// One always waits in front of the first hop.
    Saturated {
        /// Size of the IP packets.
        size: Sizes,
    },
    /// At a rate.
    Paced {
        /// The rate, while sending.
        rate: DataRate,
        /// Size of the IP packets.
        size: Sizes,
        /// Times of the packets at this rate.
        arrivals: DatagramArrivals,
        /// Pauses; `None`: it sends all the time.
        on_off: Option<OnOff>,
    },
    /// The frames of a call.
    Call(Call),
}

airtcp_core::ids! {
    /// A source of datagrams, by its index in [`Scenario::udp`](super::Scenario::udp).
    pub struct UdpId;
}

/// Alternating periods of sending and of silence, sending first.
#[derive(Clone, Debug, PartialEq)]
pub struct OnOff {
    /// Lengths of periods of sending.
    pub on: Times,
    /// Lengths of pauses.
    pub off: Times,
}

choice! {
    /// Times of a source's packets.
    #[default(Constant)]
    pub enum DatagramArrivals {
        /// at equal intervals
        Constant = "constant",
        /// at random, independently: a Poisson process
        Poisson = "poisson",
    }
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

/// The DSCP of a source's packets.
const DSCP: Field = field(
    "dscp",
    Dscp::KIND,
    Is("CS0"),
    "DSCP in the IP headers of its packets. In a cell with `access-categories`, their category \
     follows from it.",
)
.source("RFC 2474");

pub(super) static UDP: Table = Table::new(
    "udp",
    "UDP cross traffic: datagrams at a rate, perhaps with pauses, or as fast as the first hop accepts them.",
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
            Kind::OrTable(&Kind::Size { min: 28, max: 65_535 }, &SIZES),
            Is("1500 B"),
            "IP packet, headers (28 B) included: 28 B to 65535 B. What a distribution draws below or \
             above has the next of these sizes.",
        ),
        field(
            "arrivals",
            DatagramArrivals::KIND,
            Is("constant"),
            "Times of the packets: so far apart, on average, that mean-sized packets make `rate`.",
        ),
        DSCP,
        field("start", TIME, Is("0 s"), "Time of the first datagram."),
        field(
            "stop",
            POSITIVE_TIME,
            Absent("the end of the run"),
            "Time from which nothing more is sent.",
        ),
        field(
            "on",
            Kind::OrTable(&POSITIVE_TIME, &TIMES),
            Absent("no pauses"),
            "Length of a sending period: the mean, or a table with a distribution; needs `off`.",
        ),
        field(
            "off",
            Kind::OrTable(&POSITIVE_TIME, &TIMES),
            Absent("no pauses"),
            "Length of a pause, likewise; needs `on`.",
        ),
        field(
            "periods",
            Periods::KIND,
            Is("exponential"),
            "Distribution of `on` and `off` where they are means.",
        ),
    ])],
);

choice! {
    /// A codec of a call.
    #[default(G711)]
    pub enum Codec {
        /// G.711 with the packet loss concealment of its Appendix I: 64 kbit/s
        G711 = "g711",
        /// G.729 Annex A: 8 kbit/s
        G729a = "g729a",
    }
}

settings! {
    /// The frames of a call, and its listener.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Call {
        /// Codec; its frames take 20 ms each and go out in RTP (RFC 3550).
        pub codec: Codec = Codec::G711,
        /// Time by which the listener plays a frame later than if it had come with the least
        /// delay so far. A frame that comes later than that is late, and is concealed as a lost
        /// one.
        #[kind = POSITIVE_TIME]
        pub jitter_buffer: Duration = Duration::from_millis(60),
    }
}

/// Time that a frame of a call takes.
pub const FRAME: Duration = Duration::from_millis(20);

impl Call {
    /// Size of a frame's IP packet: with RTP (RFC 3550 §5.1), UDP and IPv4.
    pub const fn packet(&self) -> Bytes {
        const HEADERS: u64 = 12 + 28;
        match self.codec {
            Codec::G711 => Bytes(160 + HEADERS),
            Codec::G729a => Bytes(20 + HEADERS),
        }
    }
}

pub(super) static CALL: Table = Table::new(
    "call",
    "One direction of a voice call; another one in the other direction makes a conversation. It is \
     among the UDP sources of the results, too.",
    &[
        Key::Fields(&[
            field(
                "name",
                Kind::Name,
                Absent("`A-B` for a call from A to B"),
                "Unique name, also among UDP sources. A call made several times (groups) gets its \
                 number appended.",
            ),
            field("from", A_NODE, Required, "The node of the speaker."),
            field("to", A_NODE, Required, "The node of the listener; paired as for a flow."),
            DSCP,
            field("start", TIME, Is("0 s"), "Time of the first frame."),
            field(
                "stop",
                POSITIVE_TIME,
                Absent("the end of the run"),
                "Time from which nothing more is sent.",
            ),
        ]),
        Key::All(Call::KEYS),
    ],
);

/// Reads the sources: those of `[[udp]]`, then those of `[[call]]`.
pub(super) fn sources(
    udp: &[Section<'_>],
    calls: &[Section<'_>],
    network: &Network<'_>,
) -> Vec<UdpSpec> {
    let mut sources: Vec<UdpSpec> = Vec::new();
    let mut taken = BTreeSet::new();
    let calls =
        calls.iter().map(|section| (section, Call::read(section, None).map(Datagrams::Call)));
    for (section, datagrams) in udp.iter().map(|section| (section, datagrams(section))).chain(calls)
    {
        let name = section.get::<Option<Name>>("name");
        let start = section.get::<Instant>("start");
        let stop = section.get::<Option<Instant>>("stop");
        let dscp = section.get::<Dscp>("dscp");
        let pairs = ends(section, network);
        let (Some(name), Some(start), Some(stop)) = (name, start, stop) else { continue };
        let Some(dscp) = dscp else { continue };
        let (Some(datagrams), Some(pairs)) = (datagrams, pairs) else { continue };
        if network.duration.is_some_and(|d| start.since_start() >= d) {
            let message = format!("starts at {}, after the end of the run", start.since_start());
            section.push(section.problem("start", message).expected("a start before `duration`"));
        }
        if stop.is_some_and(|stop| stop <= start) {
            let message = format!("not after the start at {}", start.since_start());
            section.push(section.problem("stop", message).expected("a stop after `start`"));
        }
        let in_cell = |(from, _): &(NodeId, NodeId)| {
            network.links.iter().any(|link| link.from == *from && link.cell().is_some())
        };
        if matches!(datagrams, Datagrams::Saturated { .. }) && pairs.iter().any(in_cell) {
            let message = "saturated: a link in a cell sends by intervals, not packet by packet";
            section.push(section.problem("rate", message).expected("a rate above the link's"));
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
            let datagrams = datagrams.clone();
            sources.push(UdpSpec { name, from, to, dscp, start, stop, datagrams });
        }
    }
    sources
}

/// What a source of `[[udp]]` sends.
fn datagrams(section: &Section<'_>) -> Option<Datagrams> {
    let rate = section.get::<Option<DataRate>>("rate");
    let size = Sizes::read(section, "size", None);
    let arrivals = section.get::<DatagramArrivals>("arrivals");
    let on_off = on_off(section);
    let (rate, size, arrivals, on_off) = (rate?, size?, arrivals?, on_off?);
    if let Some(rate) = rate {
        return Some(Datagrams::Paced { rate, size, arrivals, on_off });
    }
    for key in ["on", "arrivals"].into_iter().filter(|key| section.has(key)) {
        let problem = section.problem(key, "has no effect with rate = \"saturated\"");
        section.push(problem.expected("a rate such as \"250 kbit/s\""));
    }
    Some(Datagrams::Saturated { size })
}

/// The pauses of a source; `None` if they are wrong.
fn on_off(section: &Section<'_>) -> Option<Option<OnOff>> {
    let periods = section.get::<Periods>("periods");
    let read = |key| section.has(key).then(|| Times::read(section, key, None));
    match (read("on"), read("off")) {
        (Some(on), Some(off)) => {
            let is_mean = |key| section.chosen(key).is_none();
            if section.has("periods") && !is_mean("on") && !is_mean("off") {
                let problem = section.problem("periods", "has no effect on distributions");
                section.push(problem.expected("on or off as a mean"));
            }
            let [on, off] = match periods? {
                Periods::Exponential => [on?.or_exponential(), off?.or_exponential()],
                Periods::Constant => [on?, off?],
            };
            Some(Some(OnOff { on, off }))
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
