//! The scenario file's schema: every table, key, type, default, meaning and source, once.
//!
//! [`super::reader`] reads files by it (so a key or a default that is not here does not exist),
//! [`super::document`] turns it into `docs/scenario.md` and JSON Schema.

use airtcp_core::Duration;

/// A table of the file.
#[derive(Debug)]
pub(super) struct TableSchema {
    /// Heading in the documentation, and the definition's name in JSON Schema.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) fields: &'static [Field],
}

/// A key of a table.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) key: &'static str,
    pub(super) kind: Kind,
    pub(super) fallback: Fallback,
    pub(super) meaning: &'static str,
    /// Where the rule or the default comes from.
    pub(super) source: &'static str,
    /// The key is refused unless another key of the table has one of these values.
    pub(super) only: Option<Only>,
    /// The end of a connection the key matters to (keys of `tcp` only).
    pub(super) end: End,
}

/// `key` must have one of `values`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Only {
    pub(super) key: &'static str,
    pub(super) values: &'static [&'static str],
}

/// Which end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Both,
    Sender,
    Receiver,
}

/// What holds when a key is absent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fallback {
    /// The key must be there.
    Required,
    /// As if this had been written (strings without their quotes).
    Is(&'static str),
    /// Nothing; the text says what that means.
    Absent(&'static str),
}

/// What a value may be.
#[derive(Debug)]
pub(super) enum Kind {
    /// A name: letters, digits, `-` and `_`.
    Name,
    /// The name of a node or of a group of nodes.
    Node,
    /// Several of them.
    Nodes,
    /// Exactly two of them.
    NodePair,
    Bool,
    Integer {
        min: u64,
        max: u64,
    },
    Number {
        min: f64,
        max: f64,
        /// `min` itself is refused.
        above: bool,
    },
    Duration {
        min: Duration,
        max: Duration,
    },
    Rate,
    Size {
        min: u64,
        max: u64,
    },
    /// Packets, perhaps a fraction (an average).
    Packets,
    /// A queue's size: packets or bytes.
    QueueLimit,
    /// One of some words.
    Choice(&'static [(&'static str, &'static str)]),
    /// One of some words, or a number of segments.
    ChoiceOrSegments(&'static [(&'static str, &'static str)]),
    /// The word, or the kind; the word means "absent".
    WordOr(&'static str, &'static Kind),
    /// Two durations, low and high.
    DurationPair,
    /// `[start, end]` pairs, ascending and disjoint.
    Intervals,
    /// Distinct whole numbers.
    Ordinals,
    Table(&'static TableSchema),
    /// A duration, or a table.
    DurationOrTable(&'static TableSchema),
    /// An array of tables with at least one element.
    Tables(&'static TableSchema),
}

const fn field(key: &'static str, kind: Kind, fallback: Fallback, meaning: &'static str) -> Field {
    Field { key, kind, fallback, meaning, source: "", only: None, end: End::Both }
}

impl Field {
    const fn source(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }
    const fn only(mut self, key: &'static str, values: &'static [&'static str]) -> Self {
        self.only = Some(Only { key, values });
        self
    }
    const fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

use Fallback::{Absent, Is, Required};

const TIME: Kind = Kind::Duration { min: Duration::ZERO, max: Duration::MAX };
const POSITIVE_TIME: Kind = Kind::Duration { min: Duration::from_nanos(1), max: Duration::MAX };
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
        field("link", Kind::Tables(&LINK), Required, "Duplex links between nodes."),
        field("tcp", Kind::Table(&TCP), Absent("the defaults"), "Both ends of every flow."),
        field("flow", Kind::Tables(&FLOW), Required, "TCP connections."),
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
            "Outage above the MAC: while down, the node's IP layer drops every TCP packet \
             in both directions except SYN and FIN.",
        )
        .source("M-TCP §3.3"),
    ],
};

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
            Kind::Nodes,
            Required,
            "Nodes on the wireless side; the mechanism works on segments from and to them.",
        )
        .only("kind", &["packet-control"]),
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
    about: "When a node's IP layer is down: either `listed`, or `period` with `end`.",
    fields: &[LISTED, PERIOD, CYCLE_START, CYCLE_END, ORIGIN],
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
            Kind::NodePair,
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

const fn optional(mut f: Field) -> Field {
    f.fallback = Absent("as the link");
    f
}

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
            Kind::QueueLimit,
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
        .end(End::Receiver),
        field(
            "send-buffer",
            Kind::Size { min: 1, max: MAX_WINDOW },
            Is("262144 B"),
            "Bytes accepted from the application and not yet acknowledged; at least an \
             MSS.",
        )
        .end(End::Sender),
        field("window-scaling", Kind::Bool, Is("false"), "Offer window scaling.")
            .source("RFC 7323 §2"),
        field("timestamps", Kind::Bool, Is("false"), "Offer timestamps.").source("RFC 7323 §3"),
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
        .end(End::Sender),
        field(
            "newreno",
            Kind::Table(&NEWRENO),
            Absent("its defaults"),
            "The choices RFC 6582 leaves.",
        )
        .only("recovery", &["newreno"])
        .end(End::Sender),
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
        .end(End::Sender),
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
        .end(End::Sender),
        field(
            "initial-ssthresh",
            Kind::WordOr("unlimited", &Kind::Size { min: 1, max: MAX_WINDOW }),
            Is("unlimited"),
            "Initial slow-start threshold.",
        )
        .source("RFC 5681 §3.1")
        .end(End::Sender),
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
        .end(End::Sender),
        field(
            "grow-on-recovery-exit",
            Kind::Bool,
            Is("false"),
            "The ACK that ends fast recovery without SACK also grows cwnd, as in ns-2.",
        )
        .end(End::Sender),
        field(
            "cwnd-limit",
            Kind::WordOr("unlimited", &Kind::Size { min: 1, max: MAX_WINDOW }),
            Is("unlimited"),
            "Upper bound of the congestion window (ns-2 `window_`, CWL); at least an MSS.",
        )
        .end(End::Sender),
        field(
            "duplicate-ack-threshold",
            Kind::Integer { min: 1, max: 1_000_000 },
            Is("3"),
            "Duplicate ACKs that trigger fast retransmit.",
        )
        .source("RFC 5681 §3.2")
        .end(End::Sender),
        field(
            "limited-transmit",
            Kind::Bool,
            Is("false"),
            "Send a new segment on each of the first duplicate ACKs.",
        )
        .source("RFC 3042")
        .end(End::Sender),
        field(
            "abc",
            Kind::WordOr("off", &Kind::Integer { min: 1, max: 1_000_000 }),
            Is("off"),
            "Appropriate Byte Counting: the limit L, in segments.",
        )
        .source("RFC 3465")
        .end(End::Sender),
        field(
            "slow-start-after-idle",
            Kind::Bool,
            Is("true"),
            "Restart from the initial window after an idle RTO.",
        )
        .source("RFC 5681 §4.1")
        .end(End::Sender),
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
        .end(End::Sender),
        field("rto", Kind::Table(&RTO), Absent("its defaults"), "Retransmission timer."),
        field("persist", Kind::Table(&PERSIST), Absent("its defaults"), "Zero windows.")
            .end(End::Sender),
        field("ack", Kind::Table(&ACK), Absent("its defaults"), "When to acknowledge.")
            .end(End::Receiver),
        field(
            "nagle",
            Kind::Bool,
            Is("true"),
            "Hold a small segment while data is unacknowledged.",
        )
        .source("RFC 9293 §3.7.4")
        .end(End::Sender),
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
            Kind::Node,
            Required,
            "Data sender; it opens the connection. Two groups of one size are \
             connected pair by pair.",
        ),
        field("to", Kind::Node, Required, "Data receiver."),
        field("count", COUNT, Absent("one flow"), "So many flows (between each pair)."),
        field("start", TIME, Is("0 s"), "When the application opens the connection."),
        field(
            "stagger",
            TIME,
            Is("0 s"),
            "Each further flow of this entry starts later by this much.",
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
