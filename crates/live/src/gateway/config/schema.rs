//! The schema of the gateway's file: every table, key, type, default, meaning and source, once.

use airtcp_config::mechanism::{NUDGE, RETRANSMIT};
use airtcp_config::schema::Fallback::{Absent, Is, Required};
use airtcp_config::schema::{Count, Kind, POSITIVE_TIME, TIME, TableSchema, TextKind, field};
use airtcp_core::Duration;

static PATH: TextKind = TextKind {
    name: "path",
    plural: "paths",
    expected: "an absolute path, such as \"/run/airtcp\"",
    expected_plural: "absolute paths",
};
static LISTEN: TextKind = TextKind {
    name: "address and port",
    plural: "addresses and ports",
    expected: "an address and a port from 1 to 65535, such as \"127.0.0.1:9000\" or \"[::1]:9000\"",
    expected_plural: "addresses with ports",
};
static ADDRESS: TextKind = TextKind {
    name: "IP address",
    plural: "IP addresses",
    expected: "an IP address, such as \"10.0.0.7\" or \"2001:db8::7\"",
    expected_plural: "IP addresses",
};
static PREFIX: TextKind = TextKind {
    name: "IP prefix or address",
    plural: "IP prefixes or addresses",
    expected: "an IP prefix or address, such as \"10.0.0.0/24\" or \"2001:db8::7\"",
    expected_plural: "IP prefixes or addresses, such as [\"10.0.0.0/24\", \"2001:db8::7\"]",
};
static INTERFACE: TextKind = TextKind {
    name: "interface",
    plural: "interfaces",
    expected: "the name of an interface: 1 to 15 letters, digits, `-`, `_` or `.`",
    expected_plural: "names of interfaces, such as [\"wlan0\"]",
};
/// The longest that Linux delays an ACK: an answer may take that long without the mobile being
/// away.
const SILENCE: Kind = Kind::Duration { min: Duration::from_millis(200), max: Duration::MAX };

pub(super) static GATEWAY: TableSchema = TableSchema {
    name: "gateway",
    about: "The top level of the file.",
    fields: &[
        field(
            "mobile",
            Kind::Tables(&MOBILE),
            Required,
            "Groups of mobiles that are treated alike.",
        ),
        field(
            "signals",
            Kind::Table(&SIGNALS),
            Absent("its defaults"),
            "Who says when a mobile is out of reach.",
        ),
        field("limits", Kind::Table(&LIMITS), Absent("its defaults"), "Bounds on what is kept."),
        field("nfqueue", Kind::Table(&NFQUEUE), Absent("its defaults"), "The netfilter queue."),
        field("metrics", Kind::Table(&METRICS), Absent("not served"), "Prometheus' metrics."),
        field(
            "record",
            Kind::Text(&PATH),
            Absent("nothing is recorded"),
            "Writes what was seen and done to this file (pcapng).",
        ),
        field(
            "state",
            Kind::Text(&PATH),
            Is("/run/airtcp"),
            "Folder for what must survive a crash of the gateway. It should be in memory (tmpfs); what is held for connections in \
             an outage takes up to four times `limits.memory` of each group there.",
        ),
        field(
            "control",
            Kind::Text(&PATH),
            Is("/run/airtcp/gateway.sock"),
            "Unix socket of `airtcp gateway status` and `signal`.",
        ),
    ],
};

const FIFO_MECHANISMS: &[&str] = &["m-tcp", "m-tcp-plus", "holdover"];

static MOBILE: TableSchema = TableSchema {
    name: "mobile",
    about: "A group of mobiles that are treated alike. A mobile belongs to the first group that has its address: exceptions stand before the rule.",
    fields: &[
        field("name", Kind::Name, Required, "Unique name, in status and metrics."),
        field(
            "addresses",
            Kind::Texts { of: &PREFIX, count: Count::Some },
            Required,
            "Addresses of the mobiles, behind any translation: as the mobiles know them.",
        ),
        field(
            "interfaces",
            Kind::Texts { of: &INTERFACE, count: Count::Some },
            Absent("any"),
            "Interfaces of this host behind which they are.",
        ),
        field(
            "mechanism",
            Kind::Choice(&[
                (
                    "m-tcp-plus",
                    "on a signal acknowledges what it has copies of and closes the sender's window; replays the \
                     copies when the mobile is back",
                ),
                (
                    "holdover",
                    "keeps the sender alive in an outage without acknowledging anything; replays copies when it \
                     is over",
                ),
                (
                    "m-tcp",
                    "withholds a byte and closes the sender's window by it when the mobile falls silent; Linux \
                     senders shrink their congestion window all the same",
                ),
                ("packet-control", "filters ACKs and data against delay variation; holds nothing"),
            ]),
            Is("m-tcp-plus"),
            "What to do for them.",
        ),
        field(
            "copy",
            Kind::Choice(&[
                ("always", "an outage needs no warning"),
                (
                    "when-fading",
                    "from a fading (or down) signal until the mobile is back; costs nothing while the radio is good, \
                     but the warning must come a round trip before the outage",
                ),
            ]),
            Is("always"),
            "When to take copies.",
        )
        .only("mechanism", &["m-tcp-plus", "holdover"]),
        field(
            "fifo",
            // An IP packet, as large as offloads make them.
            Kind::Size { min: 1 << 16, max: u64::MAX },
            Is("4 MiB"),
            "Copies kept for one connection, bytes of user data. What does not fit stays in the sender's charge, so it should \
             hold the largest window that a mobile opens: with window scaling some megabytes (on Linux a part of the \
             largest `tcp_rmem`, by default 6 MiB), where a scenario's 64 KiB hold every window without it.",
        )
        .only("mechanism", FIFO_MECHANISMS)
        .source("M-TCP+ §3; RFC 7323 §2"),
        field(
            "max-down",
            Kind::WordOr("never", &POSITIVE_TIME),
            Is("never"),
            "A connection whose mobile has been away so long is reset, at both ends.",
        )
        .only("mechanism", FIFO_MECHANISMS),
        field(
            "nudge",
            NUDGE,
            Is("100 ms"),
            "How often a mobile whose link has been down for half a second is asked, by a keep-alive of 40 to 72 bytes for \
             each connection, whether it is back: so long may it take to notice if nobody says that it is up. A group asks \
             10,000 times a second at most: where more than 1000 connections wait, less often.",
        )
        .only("mechanism", &["m-tcp-plus", "holdover"])
        .source("RFC 9293 §3.8.4"),
        field(
            "timer",
            SILENCE,
            Is("400 ms"),
            "Silence of the mobile after which it is taken for disconnected, and the interval of local \
             retransmission; constant.",
        )
        .only("mechanism", &["m-tcp"])
        .source("M-TCP §2.2"),
        field(
            "retransmit",
            RETRANSMIT,
            Is("head"),
            "What the timer sends again to a disconnected mobile.",
        )
        .only("mechanism", &["m-tcp"]),
        field(
            "release",
            POSITIVE_TIME,
            Is("100 ms"),
            "The withheld byte is acknowledged when nothing was outstanding for so long.",
        )
        .only("mechanism", &["m-tcp"]),
        field(
            "threshold",
            Kind::Integer { min: 3, max: 1_000_000 },
            Required,
            "R: duplicate ACKs that stand for a loss.",
        )
        .only("mechanism", &["packet-control"])
        .source("Packet Control §V"),
        field(
            "fast-path",
            Kind::Choice(&[
                (
                    "auto",
                    "with `copy = \"always\"` packets of a mobile in reach go on at once, and the gateway gets copies, where \
                     the kernel can (Linux 6.4, CAP_BPF and CAP_PERFMON)",
                ),
                ("off", "all packets wait for the gateway"),
            ]),
            Is("auto"),
            "Whether packets go on without waiting for the gateway.",
        )
        .only("mechanism", &["m-tcp-plus", "holdover"]),
    ],
};

static SIGNALS: TableSchema = TableSchema {
    name: "signals",
    about: "Who says when a mobile is fading, down, or up again. `airtcp gateway signal` always may.",
    fields: &[
        field("agent", Kind::Table(&AGENT), Absent("none is listened to"), "`airtcp agent` on the mobiles."),
        field(
            "planned",
            Kind::Tables(&PLANNED),
            Absent("none"),
            "Outages known beforehand.",
        ),
        field(
            "carrier",
            Kind::Bool,
            Is("false"),
            "An interface of a group without carrier: all its mobiles are down.",
        ),
        field(
            "neighbour",
            Kind::Bool,
            Is("false"),
            "A mobile that the neighbour table calls unreachable is down.",
        ),
        field(
            "silence",
            SILENCE,
            Absent("silence means nothing"),
            "A mobile that owes an answer and is not heard for so long is down until it is heard. The least is what Linux may \
             delay an ACK; it should be well above the mobiles' round-trip time.",
        )
        .source("M-TCP §2.2"),
    ],
};

static AGENT: TableSchema = TableSchema {
    name: "signals.agent",
    about: "How the messages of `airtcp agent` come.",
    fields: &[
        field("listen", Kind::Text(&LISTEN), Required, "UDP address to listen on."),
        field(
            "keys",
            Kind::Text(&PATH),
            Required,
            "File with the keys of the mobiles (`airtcp agent keygen`); not everybody may read it.",
        ),
    ],
};

static PLANNED: TableSchema = TableSchema {
    name: "signals.planned",
    about: "An outage known beforehand: a tunnel, a satellite below the horizon.",
    fields: &[
        field("mobile", Kind::Text(&ADDRESS), Required, "Of which mobile."),
        field("begin", Kind::Moment, Required, "When it begins, the first time.")
            .source("RFC 3339"),
        field("length", POSITIVE_TIME, Required, "How long it lasts."),
        field("every", POSITIVE_TIME, Absent("once"), "It comes again after so long, for ever."),
        field(
            "lead",
            TIME,
            Is("200 ms"),
            "How long before it the mobile is reported as fading; 0: not at all. More than a round trip, and no more than \
             needed: a sender that is frozen waits.",
        )
        .source("M-TCP+ §3"),
    ],
};

static LIMITS: TableSchema = TableSchema {
    name: "limits",
    about: "Bounds on what is kept, for each group; beyond them, new connections are forwarded untouched.",
    fields: &[
        field(
            "memory",
            Kind::Size { min: 1 << 16, max: u64::MAX },
            Is("128 MiB"),
            "Copies of all connections together, bytes of user data.",
        ),
        field(
            "flows",
            Kind::Integer { min: 1, max: 10_000_000 },
            Is("100000"),
            "Connections known.",
        ),
        field(
            "idle",
            POSITIVE_TIME,
            Is("124 min"),
            "A connection without a segment for so long may be forgotten.",
        )
        .source("RFC 5382 §5"),
    ],
};

static NFQUEUE: TableSchema = TableSchema {
    name: "nfqueue",
    about: "The netfilter queue that forwarded packets wait in.",
    fields: &[
        field(
            "queue",
            Kind::Integer { min: 0, max: 65_535 },
            Is("77"),
            "Its number; no other program of this network namespace may use it. Most take 0.",
        ),
        field(
            "length",
            Kind::Integer { min: 1, max: 65_536 },
            Is("1024"),
            "Packets that may wait; further ones pass untouched. A long queue delays traffic when the gateway falls behind.",
        )
        .source("Linux, nfnetlink_queue"),
    ],
};

static METRICS: TableSchema = TableSchema {
    name: "metrics",
    about: "Prometheus' metrics, by HTTP.",
    fields: &[field("listen", Kind::Text(&LISTEN), Required, "TCP address to listen on.")],
};
