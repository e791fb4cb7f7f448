//! The schema of the gateway's file: every table, key, type, default, meaning and source, once.

use super::{CopyMode, DataPath, FastPathMode, Limits, Mark, Mode, NfqueueConfig};
use airtcp_core::Duration;
use airtcp_edge::{Acknowledge, MechanismConfig, Open};
use airtcp_settings::schema::Fallback::{Absent, Is, Required};
use airtcp_settings::schema::{
    Count, Field, Key, Kind, POSITIVE_TIME, TIME, Table, TextKind, Word, at_least, choose, field,
};
use airtcp_settings::{InTable, Settings, Value};

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
static MARK: TextKind = TextKind {
    name: "firewall mark",
    plural: "firewall marks",
    expected: "a value above 0, perhaps with a mask that covers it, such as \"0x10\" or \"0x10/0xf0\"",
    expected_plural: "firewall marks",
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
static INTERFACES: TextKind = TextKind {
    name: "interface",
    plural: "interfaces",
    expected: "the name of an interface, or its beginning with `*`: 1 to 15 letters, digits, `-`, `_` or `.`",
    expected_plural: "names of interfaces, such as [\"wlan0\", \"ppp*\"]",
};
static PERCENTAGE: TextKind = TextKind {
    name: "percentage",
    plural: "percentages",
    expected: "a percentage from 1 to 100, such as \"20 %\"",
    expected_plural: "percentages",
};
/// The longest that Linux delays an ACK: a mobile may owe an answer for so long without being away.
const SILENCE: Kind = at_least(Duration::from_millis(200));

pub(super) static GATEWAY: Table = Table::new(
    "gateway",
    "The top level of the file.",
    &[Key::Fields(&[
        field("mode", Mode::KIND, Is("protect"), "Whether the gateway acts on what it sees."),
        field(
            "data-path",
            DataPath::KIND,
            Is("auto"),
            "How packets are copied beside the kernel's forwarding, for `wake`, for `fast-path = \"auto\"` and for \
             `mode = \"observe\"`.",
        ),
        field(
            "mobile",
            Kind::Tables(&MOBILE),
            Absent("none"),
            "Groups of mobiles that are treated alike.",
        ),
        field(
            "uplink",
            Kind::Tables(&UPLINK),
            Absent("none"),
            "The wireless links of the vehicle that this host is on board of.",
        )
        .named_by(&["interface"]),
        field(
            "signals",
            Kind::Table(&SIGNALS),
            Absent("its defaults"),
            "Who says when a mobile is out of reach.",
        ),
        field(
            "limits",
            Kind::Table(Limits::TABLE),
            Absent("its defaults"),
            "Bounds on what is kept.",
        ),
        field(
            "nfqueue",
            Kind::Table(NfqueueConfig::TABLE),
            Absent("its defaults"),
            "The netfilter queue.",
        ),
        field(
            "mark",
            Kind::Text(&MARK),
            Is(Mark::DEFAULT),
            "Firewall mark of the packets that the gateway itself sends to mobiles or over uplinks, by which they are exempted from \
             connection tracking or from its own queue. Choose another if rules of yours use some of its bits; those of the gateway \
             look only at the bits of the mask.",
        ),
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
    ])],
);

/// The mechanisms that are offered for live traffic.
const MECHANISMS: [Word; 5] =
    choose(MechanismConfig::WORDS, ["wake", "holdover", "m-tcp-plus", "m-tcp", "packet-control"]);

/// Settings of mechanisms that exist only on live traffic.
const LIVE: &[Field] = &[
    field("mechanism", Kind::Choice(&MECHANISMS), Is("wake"), "What to do for them."),
    field(
        "fifo",
        // An IP packet, as large as offloads make them.
        Kind::Size { min: 1 << 16, max: u64::MAX },
        Is("4 MiB"),
        "Copies kept for one connection, bytes of user data. What does not fit stays in the sender's charge, \
         so it should hold the largest window that a mobile opens: with window scaling some megabytes (on \
         Linux a part of the largest `tcp_rmem`, by default 32 MiB since 6.16, before 6 MiB), where a scenario's 64 KiB hold every \
         window without it.",
    )
    .source("M-TCP+ §3; RFC 7323 §2"),
    field(
        "probe-interval",
        Kind::WordOr("never", &at_least(Duration::from_millis(100))),
        Is("100 ms"),
        "Interval of keep-alive probes of 40 to 72 bytes to a mobile whose link has been down for half a second. \
         Its connections take turns; an answer on one counts for all. Without an `up` signal, so long may it take \
         to notice that the mobile is back. A group sends 10,000 probes a second at most: where more than 1000 \
         mobiles are away, the interval is longer.",
    )
    .source("RFC 9293 §3.8.4"),
    field(
        "acknowledge",
        Kind::Choice(Acknowledge::WORDS),
        Is("in-time"),
        "Timing of the acknowledgements on the mobile's behalf.",
    )
    .source("M-TCP+ §3; RFC 9406 §4.2"),
    field(
        "open",
        Open::KIND,
        Is("in-steps"),
        "Opening of the sender's window when the mobile is back.",
    )
    .source("M-TCP+ §3; RFC 5681 §3.1"),
    field(
        "max-down",
        Kind::WordOr("never", &POSITIVE_TIME),
        Is("24 h"),
        "A connection whose mobile has been away for this long is reset, at both ends: a mobile that never \
         comes back keeps its servers waiting no longer.",
    ),
    field(
        "timer",
        SILENCE,
        Is("400 ms"),
        "Silence of the mobile after which it is taken for disconnected, and the interval of local \
         retransmission; constant.",
    )
    .source("M-TCP §2.2"),
];

static MOBILE: Table = Table::new(
    "mobile",
    "A group of mobiles that are treated alike. A mobile belongs to the first group that has its address: \
     exceptions stand before the rule.",
    &[
        Key::Fields(&[
            field("name", Kind::Name, Required, "Unique name, in status and metrics."),
            field(
                "addresses",
                Kind::Texts { of: &PREFIX, count: Count::Some },
                Required,
                "Addresses of the mobiles, behind any translation: as the mobiles know them.",
            ),
            field(
                "interfaces",
                Kind::Texts { of: &INTERFACES, count: Count::Some },
                Absent("any"),
                "Interfaces of this host behind which they are; a `*` at the end stands for any ending (`ppp*`). They may come and go.",
            ),
        ]),
        // A probe of the sender may be as far off as the outage was long. Mechanisms that listen to
        // signals and keep copies do more than M-TCP that only listens.
        Key::Without(
            &["resume", "detect"],
            &[Key::Instead { fields: LIVE, keys: MechanismConfig::KEYS }],
        ),
        Key::Fields(WATCHED),
    ],
);

/// For mechanisms that only watch while a mobile is in reach.
const WATCHED: &[Field] = &[
    field("copy", CopyMode::KIND, Is("always"), "When to take copies.")
        .under(MechanismConfig::WATCHING),
    field(
        "fast-path",
        FastPathMode::KIND,
        Is("auto"),
        "Whether packets go on without waiting for the gateway.",
    )
    .under(MechanismConfig::WATCHING),
];

/// The mechanisms that are offered for uplinks: against outages.
const UPLINK_MECHANISMS: [Word; 3] =
    choose(MechanismConfig::WORDS, ["wake", "holdover", "m-tcp-plus"]);

static UPLINK: Table = Table::new(
    "uplink",
    "A wireless link by which a vehicle, a robot or a till reaches the network; the gateway is on board, in its router or in \
     the sender itself. All hosts behind the interface go away together, and are to status and signals as one mobile; \
     `limits.flows-per-mobile` does not bound them. Connections of hosts on board and of this host are served alike. \
     Those of a mobile of a group are that group's.",
    &[
        Key::Fields(&[field(
            "interface",
            Kind::Text(&INTERFACE),
            Required,
            "Interface of this host. It may come and go: while there is none of the name, the link is down.",
        )]),
        Key::Without(
            // What is towards the link is kept here as everywhere.
            &["resume", "detect", "towards"],
            &[Key::Instead {
                fields: &[field(
                    "mechanism",
                    Kind::Choice(&UPLINK_MECHANISMS),
                    Is("wake"),
                    "What to do for the hosts on board.",
                )],
                keys: &[Key::Instead { fields: LIVE, keys: MechanismConfig::KEYS }],
            }],
        ),
        Key::Fields(WATCHED),
    ],
);

static SIGNALS: Table = Table::new(
    "signals",
    "Who says when a mobile is fading, down, or up again. `airtcp gateway signal` always may.",
    &[Key::Fields(&[
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
            "An interface of a group without carrier: all its mobiles are down. An uplink without carrier is down; it is up again when it has one, and the routes it had.",
        ),
        field(
            "neighbour",
            Kind::Bool,
            Is("false"),
            "A mobile that the neighbour table calls unreachable is down.",
        ),
        field(
            "modem-manager",
            Kind::Bool,
            Is("true"),
            "Where ModemManager runs, it is asked about uplinks that are network ports of its modems. An uplink is down while its \
             modem has no network, or while none of the connections is active that were requested of ModemManager. Where it does \
             not run, or does not have the modem, it says nothing.",
        )
        .source("MMModemState"),
        field(
            "fading-below",
            Kind::Text(&PERCENTAGE),
            Absent("the signal means nothing"),
            "An uplink fades while ModemManager's signal quality of its modem is below this, or the level of its Wi-Fi interface in \
             /proc/net/wireless (each second; -100 dBm is 0 %, -50 dBm 100 %), and until it is higher by 5 points. For `copy = \"when-fading\"`. `holdover` and `m-tcp-plus` stop the senders for as long as the uplink fades: the level \
             should be one at which hardly anything gets through.",
        )
        .source("ModemManager, SignalQuality; Linux, wireless extensions"),
        field(
            "silence",
            SILENCE,
            Absent("silence means nothing"),
            "A mobile that owes an answer and is not heard for so long is down until it is heard. The least is what Linux may \
             delay an ACK; it should be well above the mobiles' round-trip time.",
        )
        .source("M-TCP §2.2"),
    ])],
);

static AGENT: Table = Table::new(
    "signals.agent",
    "How the messages of `airtcp agent` come.",
    &[Key::Fields(&[
        field("listen", Kind::Text(&LISTEN), Required, "UDP address to listen on."),
        field(
            "keys",
            Kind::Text(&PATH),
            Required,
            "File with the keys of the mobiles (`airtcp agent keygen`); not everybody may read it.",
        ),
    ])],
);

static PLANNED: Table = Table::new(
    "signals.planned",
    "An outage known beforehand: a tunnel, a satellite below the horizon.",
    &[Key::Fields(&[
        field("mobile", Kind::Text(&ADDRESS), Absent("of an `uplink`"), "Of which mobile."),
        field("uplink", Kind::Text(&INTERFACE), Absent("of a `mobile`"), "Of which uplink: its interface."),
        field("begin", Kind::Moment, Required, "When it begins, the first time.")
            .source("RFC 3339"),
        field("length", POSITIVE_TIME, Required, "How long it lasts."),
        field("every", POSITIVE_TIME, Absent("once"), "It comes again after so long, for ever."),
        field(
            "lead",
            TIME,
            Is("200 ms"),
            "How long before it the mobile (or uplink) is reported as fading; 0: not at all. More than a round trip, and no more than \
             needed: a sender that is frozen waits.",
        )
        .source("M-TCP+ §3"),
    ])],
);

static METRICS: Table = Table::new(
    "metrics",
    "Prometheus' metrics, by HTTP.",
    &[Key::Fields(&[field("listen", Kind::Text(&LISTEN), Required, "TCP address to listen on.")])],
);
