//! The schemas of the scenario file and of the emulated link: every table, key, type, default, meaning and
//! source, once.

use super::units::{FREQUENCY, POWER};
use airtcp_config::mechanism::{NUDGE, RETRANSMIT};
use airtcp_config::schema::Fallback::{Absent, Is, Required};
use airtcp_config::schema::{
    Count, Field, Kind, POSITIVE_TIME, TIME, TableSchema, TextKind, field,
};
use airtcp_config::units::LENGTH;
use airtcp_core::Duration;

/// The name of a node or of a group of nodes.
static NODE_NAME: TextKind = TextKind {
    name: "node",
    plural: "nodes",
    expected: "the name of a node",
    expected_plural: "names of nodes",
};
const A_NODE: Kind = Kind::Text(&NODE_NAME);
const NODES: Kind = Kind::Texts { of: &NODE_NAME, count: Count::Some };
const TWO_NODES: Kind = Kind::Texts { of: &NODE_NAME, count: Count::Two };

/// The end of a flow that keys of `tcp` matter to, when that is one.
pub(super) const SENDER: &str = "a flow's sender";
/// The other one.
pub(super) const RECEIVER: &str = "a flow's receiver";

const PROBABILITY: Kind = Kind::Number { min: 0.0, max: 1.0, above: false };
/// The most nodes or flows one scenario may have: 10.0.0.0/8 holds them, and a slip of the finger does not
/// exhaust memory.
pub(super) const MAX_ELEMENTS: u64 = 1_000_000;
const COUNT: Kind = Kind::Integer { min: 1, max: MAX_ELEMENTS };
/// RFC 7323 §2.3: the largest window, 65,535 · 2^14.
const MAX_WINDOW: u64 = 65_535 << 14;
/// The largest payload of an IPv4 packet without TCP options.
pub(super) const MAX_MSS: u64 = 65_495;

pub(super) static SCENARIO: TableSchema = TableSchema {
    name: "scenario",
    about: "The top level of the file.",
    fields: &[
        field(
            "name",
            Kind::Name,
            Absent("the file's name without `.toml`"),
            "Short name, shown in results.",
        ),
        field("duration", POSITIVE_TIME, Required, "Simulated time of a run."),
        field("node", Kind::Tables(&NODE), Required, "Hosts, routers and edge nodes."),
        field(
            "link",
            Kind::Tables(&LINK),
            Absent("none; then there must be a `wlan`"),
            "Duplex links between nodes.",
        )
        .named_by(&["between"]),
        field("wlan", Kind::Tables(&WLAN), Absent("none"), "Wireless cells (802.11)."),
        field("tcp", Kind::Table(&TCP), Absent("the defaults"), "Both ends of every flow."),
        field(
            "flow",
            Kind::Tables(&FLOW),
            Absent("none; then there must be a `cbr`"),
            "TCP connections.",
        )
        .named_by(&["from", "to"]),
        field("cbr", Kind::Tables(&CBR), Absent("none"), "UDP cross traffic."),
    ],
};

static NODE: TableSchema = TableSchema {
    name: "node",
    about: "A host, a router, or an edge node with a mechanism. Packets take a path with the \
            fewest hops.",
    fields: &[
        field("name", Kind::Name, Required, "Unique name."),
        field(
            "count",
            COUNT,
            Absent("one node"),
            "Makes a group: `name = \"s\"`, `count = 3` are the nodes s0, s1 and s2. A \
             link or flow that names the group is made once for each member.",
        ),
        field(
            "middlebox",
            Kind::Table(&MIDDLEBOX),
            Absent("plain forwarding"),
            "Mechanism this node runs on the segments it forwards.",
        ),
        field(
            "outage",
            Kind::Table(&NODE_OUTAGE),
            Absent("none"),
            "When the node is out of reach.",
        ),
        field(
            "position",
            Kind::Point,
            Absent("a cell none of whose stations has one has them on a line, 1 m apart"),
            "Where the node's radios are, `[x, y]`.",
        ),
        field(
            "spacing",
            Kind::Point,
            Absent("a group is in one place"),
            "From the position of each node of a group to that of the next.",
        ),
    ],
};

const FIFO_KINDS: &[&str] = &["m-tcp", "m-tcp-plus", "holdover", "snoop"];

static MIDDLEBOX: TableSchema = TableSchema {
    name: "middlebox",
    about: "A mechanism of an edge node.",
    fields: &[
        field(
            "kind",
            Kind::Choice(&[
                ("none", "plain forwarding"),
                (
                    "packet-control",
                    "TCP Packet Control: filters ACKs and data against delay variation",
                ),
                (
                    "m-tcp",
                    "M-TCP's supervisor host: withholds a byte, closes the sender's window by \
                     it when the mobile falls silent",
                ),
                (
                    "m-tcp-plus",
                    "M-TCP+: on a disconnection signal acknowledges what it has copies of and \
                     closes the sender's window; replays the copies",
                ),
                (
                    "holdover",
                    "keeps the sender alive in an outage without acknowledging anything; \
                     replays copies when it is over",
                ),
                ("snoop", "retransmits from a cache on duplicate ACKs and hides these"),
            ]),
            Required,
            "Which mechanism.",
        ),
        field(
            "threshold",
            Kind::Integer { min: 3, max: 1_000_000 },
            Required,
            "R: duplicate ACKs that stand for a loss at the base station.",
        )
        .only("kind", &["packet-control"])
        .source("Packet Control §V"),
        field(
            "mobiles",
            NODES,
            Required,
            "Nodes on the wireless side; the mechanism works on segments from and to them.",
        )
        .only("kind", &["packet-control", "m-tcp", "m-tcp-plus", "holdover", "snoop"]),
        field(
            "fifo",
            Kind::Size { min: 1, max: u64::MAX },
            Is("64 KiB"),
            "Copies kept for one connection, bytes of user data; at least a segment.",
        )
        .only("kind", FIFO_KINDS)
        .source("M-TCP+ §3"),
        field(
            "memory",
            Kind::Size { min: 1, max: u64::MAX },
            Is("64 MiB"),
            "Copies kept for all connections together.",
        )
        .only("kind", FIFO_KINDS),
        field(
            "timer",
            POSITIVE_TIME,
            Is("400 ms"),
            "Silence of the mobile after which it is taken for disconnected, and the \
             interval of local retransmission; constant.",
        )
        .only("kind", &["m-tcp"])
        .source("M-TCP §2.2"),
        field(
            "retransmit",
            RETRANSMIT,
            Is("head"),
            "What the timer sends again to a disconnected mobile.",
        )
        .only("kind", &["m-tcp"]),
        field(
            "release",
            POSITIVE_TIME,
            Is("100 ms"),
            "The withheld byte is acknowledged when nothing was outstanding for so long.",
        )
        .only("kind", &["m-tcp"]),
        field(
            "min-timeout",
            POSITIVE_TIME,
            Is("100 ms"),
            "Lower bound of the local retransmission time-out.",
        )
        .only("kind", &["snoop"]),
        field(
            "attempts",
            Kind::Integer { min: 1, max: 1_000 },
            Is("6"),
            "Local retransmissions of one segment before it is left to the sender.",
        )
        .only("kind", &["snoop"]),
        field(
            "resume",
            Kind::Choice(&[
                ("flush", "the mobile's ACK of the last copy opens the sender's window"),
                ("probe", "only the answer to the sender's next window probe does"),
            ]),
            Is("flush"),
            "How the sender learns that the mobile is back.",
        )
        .only("kind", &["m-tcp-plus"])
        .source("M-TCP+ §3"),
        field(
            "max-down",
            Kind::WordOr("never", &POSITIVE_TIME),
            Is("never"),
            "A connection whose mobile has been away so long is reset.",
        )
        .only("kind", &["m-tcp", "m-tcp-plus", "holdover"]),
        field(
            "nudge",
            NUDGE,
            Is("never"),
            "How often a mobile whose link is down is asked, by a keep-alive for each connection, whether it is back.",
        )
        .only("kind", &["m-tcp-plus", "holdover"])
        .source("RFC 9293 §3.8.4"),
        field(
            "signal",
            Kind::WordOrTable("none", &SIGNAL),
            Absent("its defaults"),
            "What the node learns of its mobiles' outages; `none`: nothing.",
        )
        .only("kind", &["m-tcp-plus", "holdover"]),
    ],
};

static SIGNAL: TableSchema = TableSchema {
    name: "middlebox.signal",
    about: "The disconnection feedback about each mobile, made from its `outage`: *fading* ahead \
            of an outage, *down* at its beginning, *up* at its end. A signal that the link's next \
            change overtakes is not sent.",
    fields: &[
        field(
            "lead",
            TIME,
            Absent("50 ms; without `late` only"),
            "How long before an outage the mobile is reported as fading; 0: not at all.",
        )
        .source("M-TCP+ §3"),
        field(
            "late",
            TIME,
            Is("0 s"),
            "How long after the beginning of an outage it is reported. Not together with `lead`.",
        ),
        field("delay", TIME, Is("0 s"), "How long after its end the end is reported."),
        field("missing", PROBABILITY, Is("0"), "Probability that a signal is lost."),
    ],
};

const LISTED: Field = field(
    "listed",
    Kind::Intervals,
    Absent("no listed outages"),
    "`[[start, end], …]`, ascending and disjoint; down from each start up to its end. \
     Not together with `period`.",
);
const PERIOD: Field =
    field("period", POSITIVE_TIME, Absent("not periodic"), "Cycle time of a periodic outage.")
        .source("M-TCP §3.3 (CycleTime)");
const CYCLE_START: Field = field("start", TIME, Is("0 s"), "Start of the outage in each cycle.")
    .source("M-TCP §3.3 (BrokenStartTime)");
const CYCLE_END: Field = field(
    "end",
    POSITIVE_TIME,
    Absent("required with `period`"),
    "End of the outage in each cycle; after `start`, at most `period`.",
)
.source("M-TCP §3.3 (BrokenEndTime)");
const ORIGIN: Field = field("origin", TIME, Is("0 s"), "Start of the first cycle.");

static NODE_OUTAGE: TableSchema = TableSchema {
    name: "node.outage",
    about: "When a node is out of reach: either `listed`, or `period` with `end`.",
    fields: &[
        LISTED,
        PERIOD,
        CYCLE_START,
        CYCLE_END,
        ORIGIN,
        field(
            "layer",
            Kind::Choice(&[
                (
                    "above-mac",
                    "the node's IP layer drops every packet in both directions except TCP SYN \
                     and FIN; its radio goes on acknowledging frames",
                ),
                (
                    "phy",
                    "the node's radios neither send nor hear, so that the others' MACs retry, \
                     give up, and their queues build",
                ),
            ]),
            Is("above-mac"),
            "Where it happens.",
        )
        .source("M-TCP §3.3"),
        field(
            "warning",
            TIME,
            Is("50 ms"),
            "How long before an outage the node's own radio foretells it to the endpoints on \
             the node; 0: not at all. See `tcp.on-link`.",
        )
        .source("Freeze-TCP (Goff et al. 2000)"),
    ],
};

const RATE: Field = field("rate", Kind::Rate, Required, "Serialisation rate.");
const DELAY: Field = field(
    "delay",
    Kind::DurationOrTable(&DELAY_TABLE),
    Required,
    "One-way propagation delay: constant, or a table with a distribution.",
);
const LOSS: Field =
    field("loss", Kind::Table(&LOSS_TABLE), Absent("no losses"), "Random or listed losses.");
const OUTAGE: Field = field(
    "outage",
    Kind::Table(&LINK_OUTAGE),
    Absent("always up"),
    "When the link itself is down.",
);
const QUEUE: Field = field(
    "queue",
    Kind::Table(&QUEUE_TABLE),
    Absent("drop-tail, 50 packets"),
    "The queue in front of the link, one in each direction.",
);

static LINK: TableSchema = TableSchema {
    name: "link",
    about: "A duplex link: a link in each direction, which differ only in what `forward` and \
            `backward` override. The one from A to B is called `A>B`.",
    fields: &[
        field(
            "between",
            TWO_NODES,
            Required,
            "The two nodes (or groups; two groups of one size are linked pair by pair).",
        ),
        field(
            "name",
            Kind::Name,
            Absent("`A-B` for `between = [\"A\", \"B\"]`"),
            "Unique name, for `--set link.NAME…`.",
        ),
        RATE,
        DELAY,
        LOSS,
        OUTAGE,
        QUEUE,
        field(
            "forward",
            Kind::Table(&DIRECTION),
            Absent("as the link"),
            "What differs from the first node of `between` to the second.",
        ),
        field(
            "backward",
            Kind::Table(&DIRECTION),
            Absent("as the link"),
            "What differs from the second node to the first.",
        ),
    ],
};

static TRACE_FILE: TextKind = TextKind {
    name: "path",
    plural: "paths",
    expected: "the path of a Mahimahi trace",
    expected_plural: "paths of Mahimahi traces",
};
const TRACE: Field = field(
    "trace",
    Kind::Text(&TRACE_FILE),
    Absent("the rate is constant"),
    "File with a Mahimahi trace that takes the place of `rate`; relative to the link file.",
);

pub(super) static EMULATED_LINK: TableSchema = TableSchema {
    name: "emulated link",
    about: "The top level of the file of `airtcp link --config`: a link in each direction, which \
            differ only in what `up` and `down` override. Times count from the start of the \
            emulator.",
    fields: &[
        Field { fallback: Is("100 Gbit/s"), ..RATE },
        TRACE,
        Field { fallback: Is("0 s"), ..DELAY },
        LOSS,
        OUTAGE,
        QUEUE,
        field(
            "up",
            Kind::Table(&EMULATED_DIRECTION),
            Absent("as the link"),
            "What differs from the command to the network outside.",
        ),
        field(
            "down",
            Kind::Table(&EMULATED_DIRECTION),
            Absent("as the link"),
            "What differs from the network outside to the command.",
        ),
    ],
};

/// A key whose default depends on the preset.
const fn by_preset(key: &'static str, kind: Kind, meaning: &'static str) -> Field {
    field(key, kind, Absent("as the preset"), meaning)
}

const WINDOW: Kind = Kind::Integer { min: 1, max: 65_535 };
const ANY_SIZE: Kind = Kind::Size { min: 0, max: 65_535 };

pub(super) static WLAN: TableSchema = TableSchema {
    name: "wlan",
    about: "A wireless cell: an 802.11 channel that its stations share. Stations that can receive \
            each other are neighbours; a packet may take several such hops. Every choice in which \
            simulators depart from the standard is a key; a `preset` sets them all.",
    fields: &[
        field("name", Kind::Name, Required, "Unique name."),
        field("stations", NODES, Required, "The nodes (or groups) that take part."),
        field(
            "preset",
            Kind::Choice(&[
                ("ieee", "802.11b as the standard has it, 11 Mbit/s"),
                ("ns2", "ns-2.35 at 2 Mbit/s, RTS always"),
                ("glomosim", "GloMoSim 2.03 at 2 Mbit/s, RTS always"),
                ("opnet", "the standard, with what is known of OPNET's node models"),
            ]),
            Is("ieee"),
            "Values of the keys that are not set.",
        ),
        by_preset(
            "preamble",
            Kind::Choice(&[
                ("long", "192 us in front of each frame"),
                ("short", "96 us; frames at 1 Mbit/s keep the long one"),
            ]),
            "PLCP preamble and header.",
        )
        .source("802.11b §18.2.2"),
        by_preset("data-rate", Kind::Rate, "Rate of unicast data: 1, 2, 5.5 or 11 Mbit/s."),
        by_preset("control-rate", Kind::Rate, "Rate of RTS, CTS and ACK."),
        by_preset("broadcast-rate", Kind::Rate, "Rate of broadcast frames."),
        by_preset("slot", POSITIVE_TIME, "aSlotTime."),
        by_preset("sifs", POSITIVE_TIME, "aSIFSTime; shorter than `difs`."),
        by_preset("difs", POSITIVE_TIME, "Interframe space in front of data and RTS."),
        by_preset(
            "whole-microseconds",
            Kind::Bool,
            "A frame takes a whole number of microseconds, rounded up.",
        )
        .source("802.11b §18.3.4"),
        by_preset("mac-header", ANY_SIZE, "MAC header and FCS of a data frame."),
        by_preset("llc", ANY_SIZE, "LLC and SNAP headers in front of the packet."),
        by_preset(
            "rts-threshold",
            ANY_SIZE,
            "Unicast frames longer than this, MAC header and FCS included, use RTS and CTS.",
        ),
        by_preset("cw-min", WINDOW, "Smallest contention window, slots; 2^k - 1."),
        by_preset("cw-max", WINDOW, "Largest contention window, slots; 2^k - 1."),
        by_preset(
            "backoff-draw",
            Kind::Choice(&[
                ("inclusive", "0 to CW slots"),
                ("exclusive", "0 to CW - 1 slots (ns-2, GloMoSim)"),
            ]),
            "How a back-off is drawn.",
        )
        .source("802.11 §9.2.4"),
        by_preset(
            "repeat-interrupted-slot",
            Kind::Bool,
            "A back-off interrupted within a slot repeats that slot; GloMoSim continues it.",
        ),
        by_preset(
            "short-retry-limit",
            Kind::Integer { min: 1, max: 1_000_000 },
            "For RTS, and for data that need none.",
        ),
        by_preset(
            "long-retry-limit",
            Kind::Integer { min: 1, max: 1_000_000 },
            "For data longer than `rts-threshold`.",
        ),
        by_preset(
            "attempts",
            Kind::Choice(&[
                ("limit", "so many attempts in all"),
                ("limit-plus-one", "so many retries after the first attempt (GloMoSim)"),
            ]),
            "What a retry limit means.",
        )
        .source("802.11 §9.2.5.3"),
        by_preset(
            "first-access",
            Kind::Choice(&[
                ("immediate", "at once, or as soon as the medium has been idle for DIFS"),
                ("after-difs", "DIFS after its arrival (GloMoSim)"),
                ("backoff", "a random back-off and DIFS after its arrival (ns-2)"),
            ]),
            "When a packet is sent that finds the medium idle and no back-off in progress.",
        )
        .source("802.11 §9.2.5.1"),
        by_preset(
            "post-backoff",
            Kind::Bool,
            "A back-off follows every success and drop even if no packet waits.",
        )
        .source("802.11 §9.2.5.2"),
        by_preset(
            "eifs",
            Kind::Choice(&[
                ("interval", "EIFS replaces DIFS until a frame is received"),
                ("nav", "EIFS is added to the NAV and DIFS follows it (ns-2)"),
            ]),
            "What follows a frame received in error.",
        )
        .source("802.11 §9.2.3.4"),
        by_preset("eifs-ack-rate", Kind::Rate, "Rate at which the ACK within EIFS is reckoned."),
        by_preset(
            "response-timeout",
            Kind::Choice(&[
                ("reception-start", "if its reception has not begun a slot late"),
                ("whole-frame", "if it is not received by its end and `response-margin`"),
            ]),
            "When a missing CTS or ACK is noticed.",
        )
        .source("802.11 §9.2.8"),
        field(
            "response-margin",
            TIME,
            Absent("as the preset, or 4 us"),
            "Allowance for propagation. Only with `response-timeout = \"whole-frame\"`.",
        ),
        by_preset(
            "difs-after-timeout",
            Kind::Bool,
            "After a missing response DIFS begins when that is noticed, not when the medium \
             became idle.",
        ),
        by_preset(
            "cts",
            Kind::Choice(&[
                ("nav-idle", "if the NAV is idle at the end of the RTS"),
                ("medium-idle", "if NAV and medium are idle when the CTS is due (ns-2)"),
            ]),
            "When an RTS is answered.",
        )
        .source("802.11 §9.2.5.7"),
        by_preset(
            "wait-for-data",
            Kind::Bool,
            "After its CTS, a station does nothing else until the data should have come.",
        ),
        by_preset(
            "sense-before-data",
            Kind::Bool,
            "Data that follow a CTS are sent only if medium and NAV are idle (ns-2).",
        ),
        by_preset("nav-from-data", Kind::Bool, "The NAV is set from data frames too."),
        by_preset(
            "nav-reset",
            Kind::Bool,
            "A NAV set by an RTS ends early if no frame follows where the data should begin.",
        )
        .source("802.11 §9.2.5.4"),
        by_preset(
            "queue",
            Kind::PacketsOrSize,
            "Capacity of each station's interface queue, drop-tail; the packet the MAC works \
             on is not counted.",
        ),
        by_preset("tx-power", Kind::Measure(&POWER), "Transmitted power."),
        by_preset(
            "frequency",
            Kind::Measure(&FREQUENCY),
            "Carrier frequency, for two-ray ground propagation.",
        ),
        by_preset("antenna-height", Kind::Measure(&LENGTH), "Height of all antennas."),
        by_preset("rx-threshold", Kind::Measure(&POWER), "A weaker frame cannot be received."),
        by_preset("cs-threshold", Kind::Measure(&POWER), "A weaker signal is not noticed."),
        by_preset(
            "reception",
            Kind::Choice(&[
                (
                    "first-lock",
                    "the first frame takes the receiver; a later one much weaker is \
                  ignored, any other destroys both (ns-2)",
                ),
                (
                    "cumulative-sinr",
                    "a frame well above noise and the sum of all others is \
                  received, also a later one",
                ),
            ]),
            "Which of overlapping frames is received.",
        ),
        field(
            "capture-ratio",
            Kind::Number { min: 1.0, max: 1e6, above: false },
            Absent("as the preset, or 10"),
            "Ratio of powers above which a later, weaker frame is ignored. Only with \
             `reception = \"first-lock\"`.",
        ),
        field(
            "ignored-frame-sets-nav",
            Kind::Bool,
            Absent("as the preset, or true"),
            "The NAV is set to EIFS after the end of an ignored frame (ns-2). Only with \
             `reception = \"first-lock\"`.",
        ),
        field(
            "min-sinr",
            Kind::Number { min: 1.0, max: 1e6, above: false },
            Absent("as the preset, or 10"),
            "Least ratio of a frame's power to noise and interference. Only with \
             `reception = \"cumulative-sinr\"`.",
        ),
        field(
            "noise",
            Kind::Measure(&POWER),
            Absent("as the preset, or -101 dBm"),
            "Thermal noise. Only with `reception = \"cumulative-sinr\"`.",
        ),
        field(
            "interference-floor",
            Kind::Measure(&POWER),
            Absent("as the preset, or -111 dBm"),
            "Weaker signals are left out of the sum. Only with `reception = \
             \"cumulative-sinr\"`.",
        ),
        by_preset(
            "bit-error-rate",
            Kind::Number { min: 0.0, max: 1.0, above: false },
            "Probability that a received bit is wrong; one makes the frame useless.",
        ),
    ],
};

static CBR: TableSchema = TableSchema {
    name: "cbr",
    about: "UDP cross traffic: datagrams of one size at a constant rate, perhaps with pauses.",
    fields: &[
        field(
            "name",
            Kind::Name,
            Absent("`A-B` for a source on A that sends to B"),
            "Unique name. A source made several times (groups) gets its number behind it.",
        ),
        field("from", A_NODE, Required, "Where the datagrams come from."),
        field("to", A_NODE, Required, "Where they go; paired with `from` as a flow's ends."),
        field(
            "rate",
            Kind::WordOr("saturated", &Kind::Rate),
            Required,
            "IP packets, while sending. `saturated`: there is always one waiting in front of \
             the first hop.",
        ),
        field(
            "size",
            Kind::Size { min: 28, max: 65_535 },
            Is("1500 B"),
            "IP packet, headers (28 B) included.",
        ),
        field("start", TIME, Is("0 s"), "When it starts."),
        field("stop", POSITIVE_TIME, Absent("with the run"), "When it stops."),
        field(
            "on",
            POSITIVE_TIME,
            Absent("no pauses"),
            "Mean length of a period of sending; needs `off`.",
        ),
        field("off", POSITIVE_TIME, Absent("no pauses"), "Mean length of a pause; needs `on`."),
        field(
            "periods",
            Kind::Choice(&[
                ("exponential", "their lengths are exponentially distributed"),
                ("constant", "all are of the mean length"),
            ]),
            Is("exponential"),
            "How the lengths of `on` and `off` vary.",
        ),
    ],
};

const fn optional(mut f: Field) -> Field {
    f.fallback = Absent("as the link");
    f
}

static EMULATED_DIRECTION: TableSchema = TableSchema {
    name: "emulated link: up, down",
    about: "Replaces keys of the emulated link in one direction.",
    fields: &[
        optional(RATE),
        TRACE,
        optional(DELAY),
        optional(LOSS),
        optional(OUTAGE),
        optional(QUEUE),
    ],
};

static DIRECTION: TableSchema = TableSchema {
    name: "link.forward, link.backward",
    about: "Replaces keys of the link in one direction.",
    fields: &[optional(RATE), optional(DELAY), optional(LOSS), optional(OUTAGE), optional(QUEUE)],
};

const UNIFORM: Field = field(
    "uniform",
    Kind::DurationPair,
    Absent("not uniform"),
    "`[low, high]`: uniform from low up to high.",
);
const NORMAL: Field = field(
    "normal",
    Kind::Table(&NORMAL_TABLE),
    Absent("not normal"),
    "Normal, cut off below at zero.",
);
const EXPONENTIAL: Field = field(
    "exponential",
    Kind::Table(&EXPONENTIAL_TABLE),
    Absent("not exponential"),
    "An offset plus an exponential.",
);
const CONSTANT: Field = field("constant", TIME, Absent("not constant"), "Always the same.");

static DELAY_TABLE: TableSchema = TableSchema {
    name: "link.delay",
    about: "A one-way delay that varies from packet to packet: at most one of `constant`, \
            `uniform`, `normal`, `exponential`, `mixture`. The distribution gives the whole \
            delay, not an addition to `base`.",
    fields: &[
        field(
            "base",
            TIME,
            Absent("required when there is no distribution or `from` is not 0"),
            "Constant delay, in force before `from`.",
        ),
        field("from", TIME, Is("0 s"), "When the variation starts."),
        field(
            "fifo",
            Kind::Bool,
            Is("true"),
            "Packets keep their order (a packet never arrives before its predecessor); \
             `false` lets them overtake.",
        ),
        CONSTANT,
        UNIFORM,
        NORMAL,
        EXPONENTIAL,
        field(
            "mixture",
            Kind::Tables(&MIXTURE),
            Absent("not a mixture"),
            "One of several distributions, drawn for each packet.",
        ),
    ],
};

static MIXTURE: TableSchema = TableSchema {
    name: "link.delay.mixture",
    about: "A part of a mixture: its weight and exactly one distribution.",
    fields: &[
        field(
            "weight",
            Kind::Number { min: 0.0, max: 1e9, above: true },
            Required,
            "Relative frequency; the weights need not sum to one.",
        ),
        CONSTANT,
        UNIFORM,
        NORMAL,
        EXPONENTIAL,
    ],
};

static NORMAL_TABLE: TableSchema = TableSchema {
    name: "normal",
    about: "A normal distribution of delays, cut off below at zero.",
    fields: &[
        field("mean", TIME, Required, "Mean before the cut."),
        field("deviation", TIME, Required, "Standard deviation before the cut."),
    ],
};

static EXPONENTIAL_TABLE: TableSchema = TableSchema {
    name: "exponential",
    about: "A shifted exponential distribution of delays.",
    fields: &[
        field("offset", TIME, Is("0 s"), "Smallest value."),
        field("mean", POSITIVE_TIME, Required, "Mean of the exponential part."),
    ],
};

static LOSS_TABLE: TableSchema = TableSchema {
    name: "link.loss",
    about: "Random or listed losses of a link.",
    fields: &[
        field(
            "kind",
            Kind::Choice(&[
                ("none", "no losses"),
                ("bernoulli", "each packet independently"),
                ("gilbert-elliott", "a two-state Markov chain, one step a packet"),
                ("list", "exactly these packets"),
            ]),
            Required,
            "Which model.",
        )
        .source("Gilbert 1960, Elliott 1963"),
        field("p", PROBABILITY, Required, "Loss probability.").only("kind", &["bernoulli"]),
        field("good-to-bad", PROBABILITY, Required, "Probability of a step from good to bad.")
            .only("kind", &["gilbert-elliott"]),
        field("bad-to-good", PROBABILITY, Required, "Probability of a step from bad to good.")
            .only("kind", &["gilbert-elliott"]),
        field("loss-good", PROBABILITY, Is("0"), "Loss probability in the good state.")
            .only("kind", &["gilbert-elliott"]),
        field("loss-bad", PROBABILITY, Is("1"), "Loss probability in the bad state.")
            .only("kind", &["gilbert-elliott"]),
        field(
            "packets",
            Kind::Ordinals,
            Required,
            "Numbers, from 0, among the data-carrying packets sent over the link; a \
             retransmission counts as a further packet.",
        )
        .only("kind", &["list"]),
        field(
            "place",
            Kind::Choice(&[
                ("medium", "on the medium: a lost packet has used its transmission time"),
                ("before-queue", "in front of the queue: it uses nothing (ns-2 `lossmodel`)"),
            ]),
            Is("medium"),
            "Where the losses happen.",
        )
        .only("kind", &["bernoulli", "gilbert-elliott", "list"]),
    ],
};

static LINK_OUTAGE: TableSchema = TableSchema {
    name: "link.outage",
    about: "When a link is down: either `listed`, or `period` with `end`.",
    fields: &[
        field(
            "mode",
            Kind::Choice(&[
                ("drop", "a packet whose serialisation overlaps the outage is lost"),
                (
                    "hold",
                    "packets wait in the queue and leave back to back at its end: a delay spike",
                ),
            ]),
            Is("drop"),
            "What happens to packets.",
        ),
        LISTED,
        PERIOD,
        CYCLE_START,
        CYCLE_END,
        ORIGIN,
    ],
};

static QUEUE_TABLE: TableSchema = TableSchema {
    name: "link.queue",
    about: "The queue in front of a link.",
    fields: &[
        field(
            "kind",
            Kind::Choice(&[
                ("drop-tail", "first in, first out; arrivals to a full queue are dropped"),
                ("red", "Random Early Detection, dropping"),
            ]),
            Is("drop-tail"),
            "Queue discipline.",
        ),
        field(
            "limit",
            Kind::PacketsOrSize,
            Is("50 packets"),
            "Capacity, the packet in service not counted. RED: packets only.",
        ),
        field(
            "min-threshold",
            Kind::Packets,
            Is("5 packets"),
            "Average queue at which dropping begins.",
        )
        .only("kind", &["red"])
        .source("Floyd, Jacobson 1993"),
        field(
            "max-threshold",
            Kind::Packets,
            Is("15 packets"),
            "Average queue at which every packet is dropped.",
        )
        .only("kind", &["red"])
        .source("Floyd, Jacobson 1993"),
        field(
            "max-p",
            PROBABILITY,
            Is("0.02"),
            "Drop probability when the average reaches `max-threshold`.",
        )
        .only("kind", &["red"])
        .source("Floyd, Jacobson 1993"),
        field(
            "weight",
            Kind::Number { min: 0.0, max: 1.0, above: true },
            Is("0.002"),
            "Weight of a sample in the moving average.",
        )
        .only("kind", &["red"])
        .source("Floyd, Jacobson 1993"),
        field(
            "gentle",
            Kind::Bool,
            Is("false"),
            "Raise the probability from `max-p` to 1 between `max-threshold` and twice \
             that, instead of a jump.",
        )
        .only("kind", &["red"]),
    ],
};

pub(super) static TCP: TableSchema = TableSchema {
    name: "tcp",
    about: "An endpoint. `[tcp]` holds for both ends of every flow; a flow's `sender` and \
            `receiver` override single keys of it.",
    fields: &[
        field(
            "mss",
            Kind::Size { min: 1, max: MAX_MSS },
            Is("1460 B"),
            "Largest payload sent and announced; options do not count. A 1040-byte ns-2 \
             packet is `1000 B`.",
        )
        .source("RFC 9293 §3.7.1, RFC 6691"),
        field(
            "receive-buffer",
            Kind::Size { min: 1, max: MAX_WINDOW },
            Is("65535 B"),
            "Largest window advertised; above 65,535 B it needs `window-scaling`.",
        )
        .source("RFC 9293 §3.8")
        .matters_to(RECEIVER),
        field(
            "send-buffer",
            Kind::Size { min: 1, max: MAX_WINDOW },
            Is("262144 B"),
            "Bytes accepted from the application and not yet acknowledged; at least an \
             MSS.",
        )
        .matters_to(SENDER),
        field("window-scaling", Kind::Bool, Is("false"), "Offer window scaling.")
            .source("RFC 7323 §2"),
        field("timestamps", Kind::Bool, Is("false"), "Offer timestamps.").source("RFC 7323 §3"),
        field(
            "congestion",
            Kind::Choice(&[("reno", "slow start, congestion avoidance, halving (RFC 5681)")]),
            Is("reno"),
            "Congestion control: how the congestion window moves.",
        )
        .source("RFC 5681 §3.1")
        .matters_to(SENDER),
        field(
            "recovery",
            Kind::Choice(&[
                ("tahoe", "fast retransmit, then slow start"),
                ("reno", "fast recovery ended by any new ACK"),
                ("newreno", "RFC 6582"),
                ("sack", "RFC 6675; both ends must offer it"),
            ]),
            Is("newreno"),
            "Loss recovery.",
        )
        .source("RFC 5681 §3.2"),
        field(
            "avoid-multi-fr",
            Kind::Bool,
            Is("false"),
            "Guard against several fast retransmits in one window (ns-2 `bugFix_`).",
        )
        .only("recovery", &["tahoe", "reno"])
        .source("RFC 2582 §5")
        .matters_to(SENDER),
        field(
            "newreno",
            Kind::Table(&NEWRENO),
            Absent("its defaults"),
            "The choices RFC 6582 leaves.",
        )
        .only("recovery", &["newreno"])
        .matters_to(SENDER),
        field(
            "sack-pipe",
            Kind::Choice(&[
                (
                    "rfc6675",
                    "a hole counts as lost once the duplicate-ACK threshold of segments \
                     above it has arrived",
                ),
                ("fall-floyd", "the counter of Fall and Floyd 1996, as in ns-2's Sack1"),
            ]),
            Is("rfc6675"),
            "How SACK recovery estimates what is in the network.",
        )
        .only("recovery", &["sack"])
        .source("RFC 6675 §4")
        .matters_to(SENDER),
        field(
            "initial-window",
            Kind::ChoiceOrSegments(&[
                ("rfc5681", "2 to 4 segments by their size"),
                ("rfc6928", "10 segments"),
            ]),
            Is("rfc5681"),
            "Initial congestion window.",
        )
        .source("RFC 5681 §3.1, RFC 6928")
        .matters_to(SENDER),
        field(
            "initial-ssthresh",
            Kind::WordOr("unlimited", &Kind::Size { min: 1, max: MAX_WINDOW }),
            Is("unlimited"),
            "Initial slow-start threshold.",
        )
        .source("RFC 5681 §3.1")
        .matters_to(SENDER),
        field(
            "loss-window",
            Kind::Choice(&[
                ("flight-size", "FlightSize, in bytes"),
                (
                    "send-window",
                    "the smaller of cwnd and the peer's window, in whole segments (RFC \
                     2001, ns-2)",
                ),
            ]),
            Is("flight-size"),
            "What a loss halves.",
        )
        .source("RFC 5681 §3.1 eq. 4")
        .matters_to(SENDER),
        field(
            "grow-on-recovery-exit",
            Kind::Bool,
            Is("false"),
            "The ACK that ends fast recovery without SACK also grows cwnd, as in ns-2.",
        )
        .matters_to(SENDER),
        field(
            "cwnd-limit",
            Kind::WordOr("unlimited", &Kind::Size { min: 1, max: MAX_WINDOW }),
            Is("unlimited"),
            "Upper bound of the congestion window (ns-2 `window_`, CWL); at least an MSS.",
        )
        .matters_to(SENDER),
        field(
            "duplicate-ack-threshold",
            Kind::Integer { min: 1, max: 1_000_000 },
            Is("3"),
            "Duplicate ACKs that trigger fast retransmit.",
        )
        .source("RFC 5681 §3.2")
        .matters_to(SENDER),
        field(
            "limited-transmit",
            Kind::Bool,
            Is("false"),
            "Send a new segment on each of the first duplicate ACKs.",
        )
        .source("RFC 3042")
        .matters_to(SENDER),
        field(
            "abc",
            Kind::WordOr("off", &Kind::Integer { min: 1, max: 1_000_000 }),
            Is("off"),
            "Appropriate Byte Counting: the limit L, in segments.",
        )
        .source("RFC 3465")
        .matters_to(SENDER),
        field(
            "slow-start-after-idle",
            Kind::Bool,
            Is("true"),
            "Restart from the initial window after an idle RTO.",
        )
        .source("RFC 5681 §4.1")
        .matters_to(SENDER),
        field(
            "spurious",
            Kind::Choice(&[
                ("none", "no detection"),
                ("eifel", "by timestamps, which both ends must offer (RFC 3522)"),
                ("f-rto", "by the ACKs after a time-out (RFC 5682)"),
            ]),
            Is("none"),
            "Detection of spurious retransmissions; the response is RFC 4015's.",
        )
        .source("RFC 3522, RFC 5682, RFC 4015")
        .matters_to(SENDER),
        field("rto", Kind::Table(&RTO), Absent("its defaults"), "Retransmission timer."),
        field("persist", Kind::Table(&PERSIST), Absent("its defaults"), "Zero windows.")
            .matters_to(SENDER),
        field("ack", Kind::Table(&ACK), Absent("its defaults"), "When to acknowledge.")
            .matters_to(RECEIVER),
        field(
            "nagle",
            Kind::Bool,
            Is("true"),
            "Hold a small segment while data is unacknowledged.",
        )
        .source("RFC 9293 §3.7.4")
        .matters_to(SENDER),
        field(
            "on-link",
            Kind::Choice(&[
                ("none", "as a fixed host"),
                ("recovery-ack", "an ACK when the link is up again (M-TCP)"),
                (
                    "freeze",
                    "window 0 when the link fades, three ACKs when it is up again (Freeze-TCP)",
                ),
            ]),
            Is("none"),
            "What this end does when its node's radio reports an outage of the node.",
        )
        .source("M-TCP §3.3; Freeze-TCP (Goff et al. 2000)"),
        field("time-wait", TIME, Is("60 s"), "TIME-WAIT: twice the maximum segment lifetime.")
            .source("RFC 9293 §3.4.2"),
    ],
};

static NEWRENO: TableSchema = TableSchema {
    name: "tcp.newreno",
    about: "The choices RFC 6582 leaves.",
    fields: &[
        field(
            "deflate",
            Kind::Bool,
            Is("true"),
            "Partial window deflation on a partial ACK and the conservative exit; `false`: \
             cwnd = ssthresh at both, as in ns-2.",
        )
        .source("RFC 6582 §3.2 step 3"),
        field(
            "impatient",
            Kind::Bool,
            Is("true"),
            "Reset the retransmission timer on the first partial ACK only. ns-2 resets it \
             on each (\"slow but steady\").",
        )
        .source("RFC 6582 §4"),
    ],
};

static RTO: TableSchema = TableSchema {
    name: "tcp.rto",
    about: "The retransmission timer.",
    fields: &[
        field("initial", POSITIVE_TIME, Is("1 s"), "Before the first sample.")
            .source("RFC 6298 §2.1"),
        field(
            "after-syn-loss",
            POSITIVE_TIME,
            Is("3 s"),
            "For data when the SYN had to be retransmitted.",
        )
        .source("RFC 6298 §5.7"),
        field("min", POSITIVE_TIME, Is("1 s"), "Lower bound.").source("RFC 6298 §2.4"),
        field("max", POSITIVE_TIME, Is("60 s"), "Upper bound, back-off included.")
            .source("RFC 6298 §2.5"),
        field("granularity", TIME, Is("0 s"), "Clock granularity G.").source("RFC 6298 §2"),
        field(
            "tick",
            TIME,
            Is("0 s"),
            "Coarse timer: samples and time-outs are counted in ticks of this length; 0: \
             exact.",
        ),
        field(
            "max-retransmissions",
            Kind::Integer { min: 0, max: 1_000_000 },
            Is("15"),
            "Retransmissions of one segment before the connection is aborted when the \
             timer expires once more.",
        )
        .source("RFC 9293 §3.8.3"),
    ],
};

static PERSIST: TableSchema = TableSchema {
    name: "tcp.persist",
    about: "What a sender does when the peer closes its window.",
    fields: &[
        field(
            "on-shrink",
            Kind::Choice(&[
                (
                    "strict",
                    "persist only with nothing outstanding; otherwise the retransmission \
                     timer runs on",
                ),
                (
                    "bsd",
                    "cancel the retransmission timer, go back to the first unacknowledged \
                     byte, persist",
                ),
                (
                    "linux",
                    "keep retransmitting with back-off, but never abort while the peer \
                     answers",
                ),
            ]),
            Is("strict"),
            "A window that closes while data is outstanding.",
        )
        .source("M-TCP+ §1"),
        field(
            "initial",
            Kind::WordOr("rto", &POSITIVE_TIME),
            Is("rto"),
            "Time to the first probe; `rto`: the retransmission time-out then in force.",
        ),
        field(
            "backoff",
            Kind::Number { min: 1.0, max: 1e6, above: false },
            Is("2"),
            "Factor from one probe interval to the next.",
        )
        .source("RFC 9293 §3.8.6.1"),
        field("max", POSITIVE_TIME, Is("60 s"), "Longest interval."),
    ],
};

static ACK: TableSchema = TableSchema {
    name: "tcp.ack",
    about: "The receiver's acknowledgement policy.",
    fields: &[
        field(
            "policy",
            Kind::Choice(&[
                ("every", "each segment"),
                (
                    "delayed",
                    "every `segments`-th full-sized segment or after `timeout`; at once on \
                     out-of-order data or a filled gap",
                ),
            ]),
            Is("every"),
            "When the receiver acknowledges.",
        )
        .source("RFC 1122 §4.2.3.2, RFC 5681 §4.2"),
        field(
            "segments",
            Kind::Integer { min: 2, max: 1_000_000 },
            Is("2"),
            "Full-sized segments an ACK.",
        )
        .only("policy", &["delayed"])
        .source("RFC 5681 §4.2"),
        field(
            "timeout",
            Kind::Duration { min: Duration::from_nanos(1), max: Duration::from_millis(500) },
            Is("200 ms"),
            "Longest delay.",
        )
        .only("policy", &["delayed"])
        .source("RFC 1122 §4.2.3.2"),
    ],
};

static FLOW: TableSchema = TableSchema {
    name: "flow",
    about: "A TCP connection and its application: a transfer from `from` to `to`.",
    fields: &[
        field(
            "name",
            Kind::Name,
            Absent("`A-B` for a flow from A to B"),
            "Unique name. A flow made several times (groups, `count`) gets its number \
             behind the name: `ftp0`, `ftp1`, …; without a name it is `s0-d0`, `s1-d1`, \
             …, with `count` `s0-d0-0`, `s0-d0-1`, …",
        ),
        field(
            "from",
            A_NODE,
            Required,
            "Data sender; it opens the connection. Two groups of one size are \
             connected pair by pair.",
        ),
        field("to", A_NODE, Required, "Data receiver."),
        field("count", COUNT, Absent("one flow"), "So many flows (between each pair)."),
        field("start", TIME, Is("0 s"), "When the application opens the connection."),
        field(
            "stagger",
            TIME,
            Is("0 s"),
            "Each further flow of this entry starts later by this much.",
        ),
        field(
            "jitter",
            TIME,
            Is("0 s"),
            "Each flow starts later by a random time, uniform up to this much.",
        ),
        field(
            "bytes",
            Kind::WordOr("endless", &Kind::Size { min: 1, max: u64::MAX }),
            Is("endless"),
            "Bytes to transfer, then the connection is closed.",
        ),
        field(
            "sender",
            Kind::Table(&TCP),
            Absent("as `[tcp]`"),
            "What differs from `[tcp]` at the data sender.",
        ),
        field(
            "receiver",
            Kind::Table(&TCP),
            Absent("as `[tcp]`"),
            "What differs from `[tcp]` at the data receiver.",
        ),
    ],
};
