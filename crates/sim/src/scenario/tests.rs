//! The exact diagnostics for each kind of mistake, and the meaning of correct files.

use super::{
    Application, ConfigError, DatagramArrivals, Datagrams, LinkSender, MechanismSpec, NodeId,
    OnOff, OutageLayer, Scenario, SignalSpec, Sizes, Times, UdpSpec,
};
use airtcp_core::{Bytes, DataRate, Dscp, Duration, Instant, Position};
use airtcp_edge::{
    Acknowledge, HoldoverConfig, MTcpConfig, MTcpPlusConfig, MechanismConfig, Open, Resume,
    SnoopConfig,
};
use airtcp_net::CellConfig;
use airtcp_net::cell::SchedulerConfig;
use airtcp_net::config::{
    Cell, Distribution, HandoverConfig, HandoverData, HandoverTimes, LinkRate, LossConfig,
    OutageMode, QueueConfig, QueueLimit, Schedule,
};
use airtcp_net::fading::{Efficiency, FadingConfig};
use airtcp_net::mobility::MobilityConfig;
use airtcp_net::wifi::level::LevelThresholds;
use airtcp_net::wifi::preset::Preset;
use airtcp_net::wifi::{PhyConfig, Power, Reception, preset};
use airtcp_routing::config::{ByPreset, Preset as _};
use airtcp_routing::{RoutingConfig, aodv};
use airtcp_settings::Settings;
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{
    AckConfig, AdaConfig, AdaptivePacingConfig, Congestion, CubicConfig, CubicVariant, CwndIn,
    DaaConfig, DcaConfig, HyStartConfig, InitialWindow, Recovery, SackPipe, SpuriousDetection,
};
use std::collections::BTreeSet;
use std::sync::Arc;

const BASE: &str = r#"duration = "20 s"
[[node]]
name = "FH"
[[node]]
name = "BS"
[[node]]
name = "MH"
[[link]]
between = ["FH", "BS"]
rate = "1 Mbit/s"
delay = "5 ms"
[[link]]
between = ["BS", "MH"]
rate = "250 kbit/s"
delay = "170 ms"
[tcp]
mss = "1000 B"
[[flow]]
from = "FH"
to = "MH"
"#;

fn parse(text: &str) -> Result<Scenario, ConfigError> {
    Scenario::parse("t.toml", text, &[])
}

/// The diagnostics of BASE with `old` replaced by `new`.
fn errors(old: &str, new: &str) -> String {
    assert_eq!(BASE.matches(old).count(), 1, "{old:?} must occur in BASE once");
    parse(&BASE.replace(old, new)).expect_err(new).to_string()
}

fn with(set: &[(&str, &str)]) -> Result<Scenario, super::ConfigError> {
    let set: Vec<(String, String)> =
        set.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect();
    Scenario::parse("t.toml", BASE, &set)
}

/// BASE with `old` replaced by `new` gives exactly these diagnostics.
#[track_caller]
fn refuses(old: &str, new: &str, expected: &[&str]) {
    let found = errors(old, new);
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
}

const DURATION: &str = "duration = \"20 s\"";
const RATE: &str = "\"250 kbit/s\"";
const DELAY: &str = "delay = \"170 ms\"";
const MSS: &str = "mss = \"1000 B\"";
const TO: &str = "to = \"MH\"";

#[test]
fn unknown_keys_are_refused_with_the_nearest_known_one() {
    refuses(
        DELAY,
        "delay = \"170 ms\"\nrat = \"1 Mbit/s\"",
        &["t.toml:16:1: link.BS-MH.rat: unknown key (did you mean `rate`?)"],
    );
    refuses("[tcp]", "[tpc]", &["t.toml:16:2: tpc: unknown key (did you mean `tcp`?)"]);
    refuses(
        DELAY,
        "delay = \"170 ms\"\nwibble = 1",
        &[
            "t.toml:16:1: link.BS-MH.wibble: unknown key (expected one of between, name, rate, delay, \
             loss, duplicate, policer, outage, reconfiguration, handover, rlc, queue, mobile, forward, \
             backward)",
        ],
    );
}

#[test]
fn quantities_need_a_known_unit() {
    let expected = "(expected a duration above zero with its unit, such as \"170 ms\")";
    for (value, message) in [
        ("20", "20 has no unit"),
        ("20.5", "20.5 has no unit"),
        ("\"20\"", "\"20\" has no unit"),
        ("\"soon\"", "\"soon\" does not begin with a number"),
        ("\"-1 s\"", "\"-1 s\" is negative"),
        ("\"0 s\"", "\"0 s\" is out of range"),
        ("\"0.1 ns\"", "\"0.1 ns\" is finer than the smallest unit"),
        ("\"99999999999999 s\"", "\"99999999999999 s\" is too large"),
        ("true", "found true"),
        ("[]", "found an array"),
        ("2026-01-01", "found a date or time"),
    ] {
        let line = format!("t.toml:1:12: duration: {message} {expected}");
        refuses(DURATION, &format!("duration = {value}"), &[&line]);
    }
    refuses(
        DURATION,
        "duration = \"20 S\"",
        &[
            "t.toml:1:12: duration: \"20 S\" has an unknown unit (expected a unit of ns, us, µs, ms, s, \
             min or h; did you mean `s`?)",
        ],
    );
    refuses(
        RATE,
        "\"250 kbits\"",
        &[
            "t.toml:14:8: link.BS-MH.rate: \"250 kbits\" has an unknown unit (expected a unit of bit/s, \
             kbit/s, Mbit/s, Gbit/s, bps, kbps, Mbps, Gbps, kbit, mbit or gbit; did you mean `kbit/s`?)",
        ],
    );
    refuses(
        RATE,
        "250",
        &[
            "t.toml:14:8: link.BS-MH.rate: 250 has no unit (expected a rate above zero with its unit, \
             such as \"250 kbit/s\", or a table)",
        ],
    );
}

#[test]
fn missing_keys_are_named() {
    refuses(
        DURATION,
        "",
        &["t.toml:1:1: duration: missing (expected a duration above zero with its unit, such as \
             \"170 ms\")"],
    );
    refuses(
        "\nrate = \"250 kbit/s\"",
        "",
        &[
            "t.toml:12:1: link.BS-MH.rate: missing (expected a rate above zero with its unit, such as \
             \"250 kbit/s\", or a table)",
        ],
    );
    refuses(
        DELAY,
        "delay = \"1 ms\"\nloss = { p = 0.5 }",
        &["t.toml:16:8: link.BS-MH.loss.kind: missing (expected \"none\", \"bernoulli\", \
             \"gilbert-elliott\", \"schedule\" or \"list\")"],
    );
    assert_eq!(
        parse("duration = \"1 s\"").unwrap_err().to_string(),
        "t.toml:1:1: node: missing (expected at least one [[node]] table)\n\
         t.toml:1:1: link: missing (expected at least one [[link]] or [[wlan]] table)\n\
         t.toml:1:1: flow: missing (expected at least one [[flow]], [[udp]] or [[call]] table)"
    );
}

#[test]
fn of_text_that_is_hardly_toml_one_syntax_error_is_shown() {
    let error = parse(&"# A page\n\nof prose\n".repeat(10)).unwrap_err().to_string();
    let expected =
        "t.toml:3:4: not valid TOML: key with no value, expected `=` (and 9 more mistakes)";
    assert_eq!(error, expected);
}

#[test]
fn text_that_is_not_toml_is_refused_with_every_syntax_error() {
    refuses(
        TO,
        "to = \"MH\"\nto = \"BS\"\nx = = 3",
        &[
            "t.toml:21:1: not valid TOML: duplicate key",
            "t.toml:22:5: not valid TOML: extra `=`, expected nothing",
            "t.toml:22:7: not valid TOML: unexpected key or value, expected newline, `#`",
        ],
    );
    refuses(
        "[[flow]]",
        "[flow]",
        &["t.toml:18:1: flow: found a table (expected [[flow]], in two brackets)"],
    );
}

#[test]
fn impossible_values_of_links_are_refused() {
    refuses(
        RATE,
        "\"0 bit/s\"",
        &[
            "t.toml:14:8: link.BS-MH.rate: \"0 bit/s\" is out of range (expected a rate above zero with \
             its unit, such as \"250 kbit/s\", or a table)",
        ],
    );
    refuses(
        DELAY,
        "delay = \"-5 ms\"",
        &[
            "t.toml:15:9: link.BS-MH.delay: \"-5 ms\" is negative (expected a duration with its unit, \
             such as \"170 ms\", or a table)",
        ],
    );
    refuses(
        DELAY,
        "delay = { uniform = [\"5 s\", \"1 s\"] }",
        &[
            "t.toml:15:21: link.BS-MH.delay.uniform: low end 5 s is above high end 1 s (expected [low, \
             high], such as [\"153 ms\", \"195 ms\"])",
        ],
    );
    refuses(
        DELAY,
        "delay = { mixture = [{ weight = 0, uniform = [\"1 s\", \"5 s\"] }, { weight = 1 }] }",
        &[
            "t.toml:15:33: link.BS-MH.delay.mixture.0.weight: 0 is out of range (expected a number \
             above 0, at most 1000000000)",
            "t.toml:15:64: link.BS-MH.delay.mixture.1: has no distribution (expected constant, uniform, \
             normal or exponential)",
        ],
    );
    for p in ["1.5", "-0.1", "nan", "inf"] {
        let p_as_read = p.replace("nan", "NaN");
        let line = format!(
            "t.toml:16:34: link.BS-MH.loss.p: {p_as_read} is out of range (expected a number from 0 to \
             1)"
        );
        let new = format!("delay = \"1 ms\"\nloss = {{ kind = \"bernoulli\", p = {p} }}");
        refuses(DELAY, &new, &[&line]);
    }
    refuses(
        DELAY,
        "delay = \"1 ms\"\nloss = { kind = \"list\", packets = [1, 4, 1] }",
        &[
            "t.toml:16:35: link.BS-MH.loss.packets: lists 1 twice (expected an array of distinct whole \
             numbers, such as [3, 7])",
        ],
    );
    refuses(
        DELAY,
        "delay = \"1 ms\"\nqueue = { limit = \"0 packets\" }",
        &[
            "t.toml:16:19: link.BS-MH.queue.limit: \"0 packets\" is out of range (expected packets or a \
             size above zero, such as \"50 packets\")",
        ],
    );
    refuses(
        DELAY,
        "delay = \"1 ms\"\nqueue = { kind = \"red\", min-threshold = \"20 packets\" }",
        &["t.toml:16:41: link.BS-MH.queue.min-threshold: 20 packets is not below max-threshold \
             (expected less than 15 packets)"],
    );
}

#[test]
fn outages_are_ordered_and_fit_their_cycle() {
    let outage = |o: &str| format!("delay = \"1 ms\"\noutage = {o}");
    for listed in
        ["[[\"5 s\", \"11 s\"], [\"10 s\", \"12 s\"]]", "[[\"5 s\", \"11 s\"], [\"1 s\", \"2 s\"]]"]
    {
        refuses(
            DELAY,
            &outage(&format!("{{ listed = {listed} }}")),
            &[
                "t.toml:16:39: link.BS-MH.outage.listed: overlaps or precedes the one before it (expected \
                 [[start, end], …], ascending and disjoint, such as [[\"5 s\", \"11 s\"]])",
            ],
        );
    }
    refuses(
        DELAY,
        &outage("{ listed = [[\"5 s\", \"5 s\"]] }"),
        &[
            "t.toml:16:22: link.BS-MH.outage.listed: ends at 5 s, not after its start at 5 s (expected \
             [[start, end], …], ascending and disjoint, such as [[\"5 s\", \"11 s\"]])",
        ],
    );
    refuses(
        DELAY,
        &outage("{ period = \"60 s\", start = \"50 s\", end = \"70 s\" }"),
        &[
            "t.toml:16:51: link.BS-MH.outage.end: the outage from 50 s to 70 s does not fit a cycle of \
             60 s (expected start < end, end at most period)",
        ],
    );
    refuses(
        DELAY,
        &outage("{ period = \"60 s\" }"),
        &[
            "t.toml:16:10: link.BS-MH.outage.end: missing (expected the end of the outage in each cycle)",
        ],
    );
    refuses(
        DELAY,
        &outage("{ mode = \"hold\" }"),
        &["t.toml:16:10: link.BS-MH.outage: has no times (expected listed = [[start, end], …] or \
             period and end)"],
    );
}

#[test]
fn handovers_are_read_with_their_cells() {
    let keys = "mobile = \"MH\"\ndelay = \"9 ms\"\n[link.handover]\ninterruption = \"50 ms\"\n\
                data = \"forward\"\nforwarding-delay = \"10 ms\"\ncells = [{ at = \"5 s\" }, \
                { at = \"7 s\", rate = \"1 Mbit/s\", delay = \"4 ms\" }]";
    let scenario = parse(&BASE.replace(DELAY, keys)).unwrap();
    let [down, up] = [2, 3].map(|i| &scenario.links[i]);
    assert_eq!((down.sender, up.sender), (LinkSender::Plain, LinkSender::Mobile));
    let (at, delay) = (Instant::from_secs, Some(Duration::from_millis(4)));
    let cells = vec![
        Cell { at: at(5), rate: None, delay: None },
        Cell { at: at(7), rate: Some(DataRate::mbps(1)), delay },
    ];
    let expected = HandoverConfig {
        times: HandoverTimes::Listed(cells),
        interruption: Duration::from_millis(50),
        data: HandoverData::Forward {
            forwarding_delay: Duration::from_millis(10),
            end_marker: true,
        },
    };
    assert_eq!(down.config.handover.as_deref(), Some(&expected));
    let interruption = |at: u64| (Instant::from_millis(at), Instant::from_millis(at + 50));
    let listed = Schedule::Listed([5000, 7000].map(interruption).to_vec());
    assert_eq!(up.config.interruptions(), Some(listed));
    assert_eq!(down.config.least_delay(), Duration::from_millis(4));

    let keys = "mobile = \"MH\"\ndelay = \"9 ms\"\nhandover = { interval = \"4 s\", interruption \
                = \"30 ms\", data = \"discard\" }";
    let scenario = parse(&BASE.replace(DELAY, keys)).unwrap();
    let schedule = Schedule::Periodic {
        origin: Instant::from_secs(4),
        period: Duration::from_secs(4),
        start: Duration::ZERO,
        end: Duration::from_millis(30),
    };
    assert_eq!(scenario.links[2].config.interruptions(), Some(schedule));
}

#[test]
fn a_handover_that_cannot_be_is_refused() {
    const HANDOVER: &str = "interruption = \"50 ms\", data = \"forward\"";
    let link = |keys: &str| format!("delay = \"9 ms\"\nmobile = \"MH\"\nhandover = {{ {keys} }}");
    for (keys, expected) in [
        (
            HANDOVER.to_owned(),
            "t.toml:17:12: link.BS-MH.handover: has no times (expected interval or cells)",
        ),
        (
            format!("{HANDOVER}, interval = \"4 s\", end-marker = false"),
            "t.toml:17:87: link.BS-MH.handover.end-marker: has no effect without a forwarding-delay \
             (expected `forwarding-delay` beside it)",
        ),
        (
            "interruption = \"50 ms\", data = \"discard\", interval = \"4 s\", forwarding-delay = \
             \"10 ms\""
                .to_owned(),
            "t.toml:17:74: link.BS-MH.handover.forwarding-delay: has no effect with data = \
             \"discard\" (expected data = \"forward\")",
        ),
        (
            format!("{HANDOVER}, forwarding-delay = \"10 ms\", interval = \"60 ms\""),
            "t.toml:17:95: link.BS-MH.handover.interval: a handover takes 60 ms, and the next begins \
             after 60 ms (expected handovers more than 60 ms apart)",
        ),
        (
            format!("{HANDOVER}, cells = [{{ at = \"5 s\" }}, {{ at = \"5 s\" }}]"),
            "t.toml:17:88: link.BS-MH.handover.cells.1.at: 5 s does not come after 5 s (expected a \
             time after 5 s)",
        ),
        (
            format!("{HANDOVER}, interval = \"4 s\", cells = [{{ at = \"5 s\" }}]"),
            "t.toml:17:82: link.BS-MH.handover.cells: contradicts interval (expected either interval \
             or cells)",
        ),
        (
            format!("{HANDOVER}, cells = [{{ at = \"5 s\" }}], offset = \"1 s\""),
            "t.toml:17:91: link.BS-MH.handover.offset: has no effect without interval (expected \
             `interval` beside it)",
        ),
    ] {
        assert_eq!(errors(DELAY, &link(&keys)), expected);
    }
    let keys = |handover: &str, others: &str| format!("{}\n{others}", link(handover));
    for (text, expected) in [
        (
            keys(
                &format!("{HANDOVER}, interval = \"4 s\""),
                "outage = { period = \"9 s\", end = \"1 s\" }",
            ),
            "t.toml:17:12: link.BS-MH.handover: contradicts the link's other outages (expected either \
             handovers or outages)",
        ),
        (
            keys(&format!("{HANDOVER}, cells = [{{ at = \"5 s\", delay = \"1 ms\" }}]"), "")
                .replace("\"9 ms\"", "{ uniform = [\"1 ms\", \"2 ms\"] }"),
            "t.toml:17:12: link.BS-MH.handover: has a delay of a cell, and the link's changes by itself \
             (expected a constant delay of the link, or cells without)",
        ),
        (
            keys(
                &format!("{HANDOVER}, cells = [{{ at = \"5 s\", rate = \"10 bit/s\" }}]"),
                "rlc = { bler = 0.1 }",
            ),
            "t.toml:17:12: link.BS-MH.handover: at 10 bit/s, a block of 1 ms has less than a bit \
             (expected a higher rate)",
        ),
        (
            keys(&format!("{HANDOVER}, interval = \"4 s\""), "").replace("\"MH\"", "\"FH\""),
            "t.toml:16:10: link.BS-MH.mobile: \"FH\" is not an end of the link (expected BS or MH)",
        ),
        (
            keys(&format!("{HANDOVER}, interval = \"4 s\""), "").replace("mobile = \"MH\"", ""),
            "t.toml:12:1: link.BS-MH.mobile: missing (expected BS or MH)",
        ),
        (
            "delay = \"9 ms\"\nmobile = \"MH\"".to_owned(),
            "t.toml:16:10: link.BS-MH.mobile: has no effect without handover (expected `handover` \
             beside it)",
        ),
    ] {
        assert_eq!(errors(DELAY, &text), expected);
    }
}

#[test]
fn a_reconfiguration_is_read_and_fits_its_slots() {
    let link = |keys: &str| format!("delay = \"1 ms\"\nreconfiguration = {keys}");
    let read = BASE.replace(
        DELAY,
        &link("{ delay = { uniform = [\"10 ms\", \"30 ms\"] }, interruption = \"100 ms\" }"),
    );
    let scenario = parse(&read).unwrap();
    let config = &scenario.links[2].config;
    let slots = config.reconfiguration.as_ref().unwrap();
    assert_eq!((slots.interval, slots.offset), (Duration::from_secs(15), Duration::from_secs(12)));
    assert_eq!(config.least_delay(), Duration::from_millis(11));
    let schedule = Schedule::Periodic {
        origin: Instant::from_secs(12),
        period: Duration::from_secs(15),
        start: Duration::ZERO,
        end: Duration::from_millis(100),
    };
    assert_eq!(config.outages().unwrap().schedule, schedule);
    assert_eq!(
        (scenario.links[2].path(), scenario.links[3].path()),
        ("BS-MH".into(), "BS-MH".into())
    );
    for (keys, expected) in [
        (
            "{ }",
            "t.toml:16:19: link.BS-MH.reconfiguration: changes nothing (expected delay, loss or \
             interruption)",
        ),
        (
            "{ loss = 0.1, mode = \"hold\" }",
            "t.toml:16:40: link.BS-MH.reconfiguration.mode: has no effect without interruption \
             (expected `interruption` beside it)",
        ),
        (
            "{ loss = 0.1, offset = \"16 s\" }",
            "t.toml:16:42: link.BS-MH.reconfiguration.offset: the first slot, to 16 s, is longer \
             than a slot of 15 s (expected at most the interval)",
        ),
        (
            "{ interruption = \"15 s\" }",
            "t.toml:16:36: link.BS-MH.reconfiguration.interruption: an outage of 15 s in each slot \
             of 15 s never ends (expected less than the interval)",
        ),
        (
            "{ delay = \"20 ms\" }",
            "t.toml:16:29: link.BS-MH.reconfiguration.delay: found \"20 ms\" (expected a table \
             of constant, uniform, normal, exponential, mixture)",
        ),
        (
            "{ delay = { normal = \"20 ms\" } }",
            "t.toml:16:40: link.BS-MH.reconfiguration.delay.normal: found \"20 ms\" (expected \
             a table of mean, deviation)",
        ),
        (
            "{ delay = { } }",
            "t.toml:16:29: link.BS-MH.reconfiguration.delay: has no distribution (expected constant, \
             uniform, normal, exponential or mixture)",
        ),
        (
            "{ interruption = \"1 s\" }\noutage = { listed = [[\"5 s\", \"6 s\"]] }",
            "t.toml:17:10: link.BS-MH.outage: contradicts the interruptions of `reconfiguration` \
             (expected either outage or interruption)",
        ),
    ] {
        refuses(DELAY, &link(keys), &[expected]);
    }
}

#[test]
fn contradictions_are_refused() {
    refuses(
        DELAY,
        "delay = \"1 ms\"\noutage = { listed = [[\"5 s\", \"6 s\"]], period = \"9 s\", end = \"1 s\" }",
        &[
            "t.toml:16:21: link.BS-MH.outage.listed: contradicts period (expected either listed or period)",
        ],
    );
    refuses(
        DELAY,
        "delay = { uniform = [\"1 s\", \"2 s\"], constant = \"1 s\" }",
        &[
            "t.toml:15:21: link.BS-MH.delay.uniform: a second distribution beside `constant` (expected \
             one distribution)",
        ],
    );
}

#[test]
fn keys_without_effect_are_refused() {
    refuses(
        MSS,
        "recovery = \"newreno\"\navoid-multi-fr = true",
        &["t.toml:18:1: tcp.avoid-multi-fr: has no effect with recovery = \"newreno\" (expected \
             recovery = \"tahoe\" or \"reno\")"],
    );
    refuses(
        MSS,
        "recovery = \"sack\"\nnewreno = { deflate = true }",
        &["t.toml:18:1: tcp.newreno: has no effect with recovery = \"sack\" (expected recovery = \
             \"newreno\")"],
    );
    // Also when the policy is the default.
    for ack in ["policy = \"every\", segments = 2", "segments = 2"] {
        let found = errors(MSS, &format!("preset = \"rfc\"\nack = {{ {ack} }}"));
        let message = "tcp.ack.segments: has no effect with policy = \"every\" (expected policy = \
                       \"delayed\")";
        assert!(found.ends_with(message), "{found}");
    }
    refuses(
        DELAY,
        "delay = \"1 ms\"\nloss = { kind = \"bernoulli\", p = 0.1, loss-bad = 0.5 }",
        &[
            "t.toml:16:39: link.BS-MH.loss.loss-bad: has no effect with kind = \"bernoulli\" (expected \
             kind = \"gilbert-elliott\")",
        ],
    );
    refuses(
        DELAY,
        "delay = { base = \"5 ms\", fifo = true }",
        &["t.toml:15:33: link.BS-MH.delay.fifo: has no effect without a distribution (expected \
             uniform, normal, exponential, constant, mixture, steps or file)"],
    );
    refuses(
        TO,
        "to = \"MH\"\nsender = { ack = { policy = \"delayed\" } }\nreceiver = { nagle = \"off\" }",
        &[
            "t.toml:21:12: flow.FH-MH.sender.ack: has no effect at a flow's sender (expected \
             receiver.ack)",
            "t.toml:22:14: flow.FH-MH.receiver.nagle: has no effect at a flow's receiver (expected \
             sender.nagle)",
        ],
    );
}

#[test]
fn impossible_endpoints_are_refused() {
    refuses(
        MSS,
        "mss = \"65496 B\"\nsend-buffer = \"1 MB\"",
        &[
            "t.toml:17:7: tcp.mss: \"65496 B\" is out of range (expected a size from 1 B to 65495 B with \
             its unit, such as \"1000 B\")",
        ],
    );
    refuses(
        MSS,
        "mss = \"65490 B\"\ntimestamps = true",
        &[
            "t.toml:17:7: tcp.mss: 65490 B and timestamps exceed an IP packet (expected at most 65483 B \
             with timestamps)",
        ],
    );
    refuses(
        MSS,
        "mss = \"1000 B\"\nsend-buffer = \"500 B\"\ncwnd-limit = \"999 B\"",
        &[
            "t.toml:17:7: tcp.mss: 1000 B is larger than the send buffer of 500 B (expected at most \
             send-buffer)",
            "t.toml:19:14: tcp.cwnd-limit: 999 B is smaller than a segment of 1000 B (expected at least \
             mss)",
        ],
    );
    refuses(
        MSS,
        "window-scaling = false\nreceive-buffer = \"65536 B\"",
        &[
            "t.toml:18:18: tcp.receive-buffer: a window of 65536 B needs window scaling (expected at \
             most 65535 B, or window-scaling = true at both ends)",
        ],
    );
    refuses(
        MSS,
        "timestamps = false\nspurious = \"eifel\"",
        &[
            "t.toml:18:12: tcp.spurious: Eifel needs timestamps (expected timestamps = true at both \
             ends, such as in [tcp])",
        ],
    );
    refuses(
        MSS,
        "recovery = \"rack\"\ncongestion = \"bbr\"\npacing = true",
        &["t.toml:19:10: tcp.pacing: the congestion control has a pace of its own (expected no \
             pacing)"],
    );
    refuses(
        TO,
        "to = \"MH\"\nsender.recovery = \"sack\"\nreceiver.recovery = \"newreno\"",
        &["t.toml:21:19: flow.FH-MH.sender.recovery: the receiver does not offer SACK (expected \
             recovery = \"sack\" at both ends, such as in [tcp])"],
    );
    refuses(
        MSS,
        "rto = { min = \"2 s\", max = \"1 s\" }\npersist = { max = \"60 s\", initial = \"90 s\" }",
        &[
            "t.toml:17:15: tcp.rto.min: the lower bound 2 s is above the upper bound 1 s (expected min \
             at most max)",
            "t.toml:18:37: tcp.persist.initial: the first interval 90 s is above the longest, 60 s \
             (expected initial at most max)",
        ],
    );
    refuses(
        MSS,
        "recovery = \"neureno\"\ninitial-window = \"0 segments\"\nduplicate-ack-threshold = 0\nabc = 0\npersist.backoff = 0.5",
        &[
            "t.toml:17:12: tcp.recovery: \"neureno\" is not a choice here (expected \"tahoe\", \"reno\", \
             \"newreno\", \"sack\" or \"rack\"; did you mean `newreno`?)",
            "t.toml:18:18: tcp.initial-window: \"0 segments\" is out of range (expected \"rfc5681\", \
             \"rfc6928\" or segments, such as \"2 segments\")",
            "t.toml:19:27: tcp.duplicate-ack-threshold: 0 is out of range (expected a whole number from \
             1 to 1000000)",
            "t.toml:20:7: tcp.abc: 0 is out of range (expected \"off\" or a whole number from 1 to \
             1000000)",
            "t.toml:21:19: tcp.persist.backoff: 0.5 is out of range (expected a number from 1 to \
             1000000)",
        ],
    );
    refuses(
        MSS,
        "ack = { policy = \"delayed\", timeout = \"501 ms\" }",
        &[
            "t.toml:17:39: tcp.ack.timeout: \"501 ms\" is out of range (expected a duration above zero, \
             at most 500 ms with its unit, such as \"170 ms\")",
        ],
    );
}

#[test]
fn strategies_need_what_both_ends_agree_on() {
    refuses(
        TO,
        "to = \"MH\"\nreceiver.ack = { policy = \"dca\" }",
        &[
            "t.toml:21:16: flow.FH-MH.receiver.ack: the sender does not tell its cwnd (expected TCP-DCA \
             with the same cwnd-in at both ends: in [tcp])",
        ],
    );
    refuses(
        MSS,
        "timestamps = false\nack = { policy = \"dca\", repeat-acks = true }",
        &[
            "t.toml:18:7: tcp.ack: the delay rule and repeated ACKs need timestamps (expected timestamps \
             = true at both ends, such as in [tcp])",
        ],
    );
    refuses(
        MSS,
        "timestamps = false\nrecovery = \"sack\"\ncongestion = \"cubic\"\ncubic.hystart = \"hystart++\"",
        &["t.toml:20:1: tcp.cubic: HyStart needs timestamps (expected timestamps = true at both \
             ends, such as in [tcp])"],
    );
    for good in [
        "ack.policy = \"dca\"",
        "timestamps = true\nack = { policy = \"dca\", delay-rule = true, repeat-acks = true }",
        "timestamps = true\ncongestion = \"cubic\"\ncubic.hystart = \"hystart\"",
    ] {
        parse(&BASE.replace(MSS, good)).expect(good);
    }
}

#[test]
fn every_key_of_a_strategy_arrives() {
    let tcp = |tcp: &str| parse(&BASE.replace(MSS, tcp)).unwrap().flows.remove(0).sender;
    let dca = "timestamps = true\nack = { policy = \"dca\", hop-rule = false, delay-rule = true, \
               window-limit = 7, cwnd-in = \"option\", repeat-acks = true }";
    assert_eq!(
        tcp(dca).ack,
        AckConfig::Dca(DcaConfig {
            hop_rule: false,
            delay_rule: true,
            window_limit: Some(7),
            cwnd_in: CwndIn::Option,
            repeat_acks: true,
        })
    );
    let daa = tcp("ack = { policy = \"daa\", spacing-factor = 2.2 }");
    assert_eq!(daa.ack, AckConfig::Daa(DaaConfig { spacing_factor: 2.2 }));
    let ada = tcp("ack = { policy = \"ada\", spacing-factor = 2 }");
    assert_eq!(ada.ack, AckConfig::Ada(AdaConfig { spacing_factor: 2.0 }));
    let cubic = "timestamps = true\ncongestion = \"cubic\"\ncubic.fast-convergence = false\n\
                 cubic.hystart = \"hystart++\"";
    assert_eq!(
        tcp(cubic).congestion,
        Congestion::Cubic(CubicConfig {
            variant: CubicVariant::Linux,
            fast_convergence: false,
            hystart: HyStartConfig::PlusPlus
        })
    );
    assert_eq!(tcp("congestion = \"westwood\"").congestion, Congestion::Westwood);
    assert_eq!(tcp("congestion = \"veno\"").congestion, Congestion::Veno);
    let pacing = "congestion = \"adaptive-pacing\"\nadaptive-pacing.link-rate = \"11 Mbit/s\"";
    assert_eq!(
        tcp(pacing).congestion,
        Congestion::AdaptivePacing(AdaptivePacingConfig { link_rate: DataRate::mbps(11) })
    );
}

#[test]
fn bbr_needs_rack() {
    for control in ["bbr", "bbr3"] {
        let tcp = |recovery| format!("recovery = \"{recovery}\"\ncongestion = \"{control}\"");
        refuses(
            MSS,
            &tcp("sack"),
            &[
                "t.toml:18:14: tcp.congestion: BBR needs delivery rates, which RACK measures (expected \
               recovery = \"rack\")",
            ],
        );
        assert!(parse(&BASE.replace(MSS, &tcp("rack"))).is_ok());
    }
}

#[test]
fn a_key_of_several_policies_has_the_default_of_the_one_chosen() {
    let ack = |policy: &str| {
        let tcp = format!("preset = \"rfc\"\nack.policy = \"{policy}\"");
        parse(&BASE.replace(MSS, &tcp)).unwrap().flows.remove(0).receiver.ack
    };
    let millis = Duration::from_millis;
    assert_eq!(ack("delayed"), AckConfig::Delayed { segments: 2, timeout: millis(200), quick: 0 });
    assert_eq!(ack("altman"), AckConfig::Altman { timeout: millis(100) });
    assert_eq!(ack("daa"), AckConfig::Daa(DaaConfig { spacing_factor: 1.0 }));
    assert_eq!(ack("ada"), AckConfig::Ada(AdaConfig { spacing_factor: 1.5 }));
}

// RFC 8257 §3.2, RFC 9768: both echo each mark.
#[test]
fn controls_that_live_on_marks_need_a_receiver_that_tells_each() {
    for control in ["dctcp", "prague"] {
        for ecn in ["dctcp", "accecn"] {
            let tcp = format!("preset = \"linux\"\ncongestion = \"{control}\"\necn = \"{ecn}\"");
            assert!(parse(&BASE.replace(MSS, &tcp)).is_ok(), "{tcp}");
        }
    }
    refuses(
        MSS,
        "preset = \"linux\"\ncongestion = \"prague\"\necn = \"rfc3168\"",
        &["t.toml:18:14: tcp.congestion: the congestion control lives on marks (expected ecn = \
           \"dctcp\" or \"accecn\")"],
    );
    refuses(
        MSS,
        "preset = \"linux\"\necn = \"rfc3168\"\naccecn-option = \"never\"",
        &[
            "t.toml:19:17: tcp.accecn-option: has no effect without AccECN (expected ecn = \"accecn\")",
        ],
    );
    refuses(
        MSS,
        "preset = \"linux\"\ntimer-hz = \"exact\"\nuptime = \"1 s\"",
        &["t.toml:19:10: tcp.uptime: has no effect on exact timers (expected timer-hz = 250)"],
    );
}

#[test]
fn strategies_have_words_and_keys_of_their_own() {
    refuses(
        MSS,
        "congestion = \"cubik\"\nrto.policy = \"fix\"\non-route-failure = \"efln\"",
        &[
            "t.toml:17:14: tcp.congestion: \"cubik\" is not a choice here (expected \"reno\", \
             \"karak\", \"westwood\", \"veno\", \"cubic\", \"bbr\", \"bbr3\", \"dctcp\", \"prague\", \
             \"adaptive-pacing\" or \"custom\"; did you mean `cubic`?)",
            "t.toml:18:14: tcp.rto.policy: \"fix\" is not a choice here (expected \"exponential\", \
             \"fixed\" or \"constant\")",
            "t.toml:19:20: tcp.on-route-failure: \"efln\" is not a choice here (expected \"ignore\" or \
             \"elfn\"; did you mean `elfn`?)",
        ],
    );
    refuses(
        MSS,
        "ack = { policy = \"dca\", segments = 2, cwnd-in = \"options\", spacing-factor = 2 }",
        &[
            "t.toml:17:25: tcp.ack.segments: has no effect with policy = \"dca\" (expected policy = \
             \"delayed\")",
            "t.toml:17:49: tcp.ack.cwnd-in: \"options\" is not a choice here (expected \
             \"window-field\" or \"option\"; did you mean `option`?)",
            "t.toml:17:60: tcp.ack.spacing-factor: has no effect with policy = \"dca\" (expected policy \
             = \"daa\" or \"ada\")",
        ],
    );
    refuses(
        MSS,
        "elfn = { probe-interval = \"0 s\" }\non-route-failure = \"elfn\"",
        &[
            "t.toml:17:27: tcp.elfn.probe-interval: \"0 s\" is out of range (expected a duration above \
             zero with its unit, such as \"170 ms\")",
        ],
    );
}

#[test]
fn names_must_be_known_and_unique() {
    refuses(
        TO,
        "to = \"HM\"",
        &["t.toml:20:6: flow.FH-HM.to: no node is called \"HM\" (did you mean `MH`?)"],
    );
    refuses(
        "name = \"MH\"",
        "name = \"BS\"",
        &[
            "t.toml:7:8: node.BS.name: a second node \"BS\"",
            "t.toml:13:18: link.BS-MH.between: no node is called \"MH\" (did you mean `FH`?)",
            "t.toml:20:6: flow.FH-MH.to: no node is called \"MH\" (did you mean `FH`?)",
        ],
    );
    refuses(
        "name = \"MH\"",
        "name = \"M H\"",
        &[
            "t.toml:7:8: node.M H.name: \"M H\" is not a name (expected 1 to 64 letters, digits, - or _)",
            "t.toml:13:18: link.BS-MH.between: no node is called \"MH\" (did you mean `FH`?)",
            "t.toml:20:6: flow.FH-MH.to: no node is called \"MH\" (did you mean `FH`?)",
        ],
    );
    refuses(
        "[tcp]",
        "[[flow]]\nfrom = \"FH\"\nto = \"MH\"\n[tcp]",
        &[
            "t.toml:22:8: flow.FH-MH.from: a second flow \"FH-MH\" (expected a unique name for each \
             flow)",
        ],
    );
    refuses(
        "name = \"BS\"",
        "name = \"BS\"\nmiddlebox = { mechanism = \"packet-control\", threshold = 2, mobiles = [\"MN\"] }",
        &[
            "t.toml:6:57: node.BS.middlebox.threshold: 2 is out of range (expected a whole number from 3 \
             to 1000000)",
            "t.toml:6:71: node.BS.middlebox.mobiles: no node is called \"MN\" (did you mean `MH`?)",
        ],
    );
}

/// Two nodes and all that refers to them.
const REFERRED: &str = r#"duration = "20 s"
[[node]]
name = "FH"
count = 1
[[node]]
name = "BS"
middlebox = { mechanism = "split", mobiles = ["FH"] }
[[link]]
between = ["FH", "BS"]
rate = "1 Mbit/s"
delay = "5 ms"
[[wlan]]
name = "cell"
stations = ["BS", "FH0"]
[[flow]]
from = "FH"
to = "BS"
[[udp]]
from = "FH0"
to = "BS"
rate = "1 Mbit/s"
"#;

/// REFERRED with `old` replaced by `new` gives exactly these diagnostics.
#[track_caller]
fn referred_refuses(old: &str, new: &str, expected: &[&str]) {
    assert_eq!(REFERRED.matches(old).count(), 1, "{old:?} must occur in REFERRED once");
    let found = parse(&REFERRED.replace(old, new)).expect_err(new).to_string();
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn what_refers_to_a_refused_node_is_not_reported() {
    assert!(parse(REFERRED).is_ok(), "{}", parse(REFERRED).unwrap_err());
    referred_refuses(
        "count = 1",
        "count = 0",
        &[
            "t.toml:4:9: node.FH.count: 0 is out of range (expected a whole number from 1 to 1000000)",
        ],
    );
    referred_refuses(
        "count = 1",
        "count = \"2\"",
        &["t.toml:4:9: node.FH.count: found \"2\" (expected a whole number from 1 to 1000000)"],
    );
    // Without readable names, what refers to them comes after the cause.
    referred_refuses(
        "name = \"FH\"",
        "name = 5",
        &[
            "t.toml:3:8: node.0.name: found 5 (expected 1 to 64 letters, digits, - or _)",
            "t.toml:7:47: node.BS.middlebox.mobiles: no node is called \"FH\" (expected one of BS)",
            "t.toml:9:12: link.FH-BS.between: no node is called \"FH\" (expected one of BS)",
            "t.toml:14:19: wlan.cell.stations: no node is called \"FH0\" (expected one of BS)",
            "t.toml:16:8: flow.FH-BS.from: no node is called \"FH\" (expected one of BS)",
            "t.toml:19:8: udp.0.from: no node is called \"FH0\" (expected one of BS)",
        ],
    );
}

#[test]
fn what_refers_to_nodes_that_cannot_be_read_is_not_reported() {
    let nodes = "[[node]]\nname = \"FH\"\ncount = 1\n[[node]]\nname = \"BS\"\n\
                 middlebox = { mechanism = \"split\", mobiles = [\"FH\"] }\n";
    referred_refuses(
        nodes,
        "[node]\nname = \"FH\"\n",
        &["t.toml:2:1: node: found a table (expected [[node]], in two brackets)"],
    );
    referred_refuses(
        nodes,
        "node = 5\n",
        &["t.toml:2:8: node: found 5 (expected an array of at least one table)"],
    );
    referred_refuses(
        nodes,
        &nodes.replace("[[node]]", "[[hosts]]"),
        &[
            "t.toml:2:3: hosts: unknown key (expected one of name, duration, node, link, cell, wlan, \
             routing, tcp, flow, udp, call)",
            "t.toml:1:1: node: missing (expected at least one [[node]] table)",
        ],
    );
}

#[test]
fn misspelt_tables_are_read_as_those_that_were_meant() {
    let misspelt = REFERRED
        .replace("[[node]]", "[[nodes]]")
        .replace("[[link]]", "[[links]]")
        .replace("[[wlan]]", "[[wlans]]")
        .replace("[[flow]]", "[[flows]]")
        .replace("\"1 Mbit/s\"\ndelay", "1\ndelay");
    let found = parse(&misspelt).unwrap_err().to_string();
    assert_eq!(
        found.lines().collect::<Vec<_>>(),
        [
            "t.toml:2:3: nodes: unknown key (did you mean `node`?)",
            "t.toml:8:3: links: unknown key (did you mean `link`?)",
            "t.toml:10:8: link.FH-BS.rate: 1 has no unit (expected a rate above zero with its unit, \
             such as \"250 kbit/s\", or a table)",
            "t.toml:12:3: wlans: unknown key (did you mean `wlan`?)",
            "t.toml:15:3: flows: unknown key (did you mean `flow`?)",
        ]
    );
}

#[test]
fn keys_of_a_refused_choice_are_not_refused_too() {
    refuses(
        MSS,
        "recovry = \"newreno\"\nnewreno = { deflate = true }",
        &["t.toml:17:1: tcp.recovry: unknown key (did you mean `recovery`?)"],
    );
    refuses(
        MSS,
        "preset = \"rfd\"\nnewreno = { deflate = true }",
        &[
            "t.toml:17:10: tcp.preset: \"rfd\" is not a choice here (expected \"linux\", \"rfc\" or \"ns2\"; did you mean `rfc`?)",
        ],
    );
    refuses(
        "name = \"BS\"",
        "name = \"BS\"\nmiddlebox = { mechanim = \"m-tcp-plus\", mobiles = [\"MH\"], memory = \"1 MB\" }",
        &["t.toml:6:15: node.BS.middlebox.mechanim: unknown key (did you mean `mechanism`?)"],
    );
    refuses(
        "name = \"BS\"",
        "name = \"BS\"\nmiddlebox = { mechanism = \"m-tcp-pls\", signal = \"none\" }",
        &[
            "t.toml:6:27: node.BS.middlebox.mechanism: \"m-tcp-pls\" is not a choice here (expected \"none\", \
             \"packet-control\", \"m-tcp\", \"m-tcp-plus\", \"holdover\", \"snoop\", \"wake\" or \"split\"; did you mean \
             `m-tcp-plus`?)",
        ],
    );
}

#[test]
fn what_depends_on_a_refused_table_is_not_reported() {
    // `[tcp]` might have turned RACK off, and might come after the flow.
    refuses(
        "[tcp]\nmss = \"1000 B\"\n[[flow]]\nfrom = \"FH\"\n",
        "[[flow]]\nfrom = \"FH\"\nsender = { newreno = { deflate = true } }\n",
        &[
            "t.toml:18:12: flow.FH-MH.sender.newreno: has no effect with recovery = \"rack\" (expected \
           recovery = \"newreno\")",
        ],
    );
    let text = BASE
        .replace("[tcp]\nmss = \"1000 B\"\n", "")
        .replace("duration", "tcp = \"newreno\"\nduration")
        .replace(TO, "to = \"MH\"\nsender = { congestion = \"bbr\", recovery = \"newreno\" }");
    assert_eq!(
        parse(&text).unwrap_err().to_string(),
        "t.toml:1:7: tcp: found \"newreno\" (expected a table of preset, mss, receive-buffer, autotuning, \
         send-buffer, window-scaling, …)"
    );
    // A cell that cannot be read may have the node.
    let walking = "name = \"MH\"\nmobility = { model = \"stationary\" }";
    for (cell, expected) in [
        ("wlan = 3\n", "t.toml:1:8: wlan: found 3 (expected an array of at least one table)"),
        (
            "wlan = [3]\n",
            "t.toml:1:9: wlan.0: found 3 (expected a table of name, stations, arp, preset, preamble, \
             data-rate, …)",
        ),
    ] {
        let text = format!("{cell}{}", BASE.replace("name = \"MH\"", walking));
        assert_eq!(parse(&text).unwrap_err().to_string(), expected);
    }
    // A position that is wrong is no absent position.
    let cell = "[[wlan]]\nname = \"cell\"\nstations = [\"BS\", \"MH\"]\n";
    let text = BASE
        .replace("[[flow]]", &format!("{cell}[[flow]]"))
        .replace("name = \"BS\"", "name = \"BS\"\nposition = [\"0 m\", \"0 m\"]")
        .replace("name = \"MH\"", "name = \"MH\"\nposition = [\"0 m\", 5]");
    assert_eq!(
        parse(&text).unwrap_err().to_string(),
        "t.toml:9:20: node.MH.position: found 5 (expected [x, y], such as [\"0 m\", \"200 m\"])"
    );
}

#[test]
fn links_and_flows_have_two_ends() {
    refuses(
        "[\"BS\", \"MH\"]",
        "[\"BS\", \"BS\"]",
        &["t.toml:13:11: link.BS-BS.between: both ends are the same node (expected two nodes)"],
    );
    refuses(
        "[\"BS\", \"MH\"]",
        "[\"BS\", \"FH\"]",
        &["t.toml:13:11: link.BS-FH.between: BS and FH are linked already"],
    );
    refuses(
        TO,
        "to = \"FH\"",
        &["t.toml:20:6: flow.FH-FH.to: both ends are the same node (expected two nodes)"],
    );
    refuses(
        TO,
        "to = \"MH\"\nstart = \"20 s\"",
        &[
            "t.toml:21:9: flow.FH-MH.start: a flow starts at 20 s, after the end of the run (expected a \
             start before `duration`)",
        ],
    );
    refuses(
        TO,
        "to = \"MH\"\njitter = \"20 s\"",
        &[
            "t.toml:21:10: flow.FH-MH.jitter: a flow starts at 20 s, after the end of the run (expected a \
             start before `duration`)",
        ],
    );
    refuses(
        "name = \"BS\"",
        "name = \"BS\"\n[[node]]\nname = \"s\"\ncount = 3\n[[node]]\nname = \"d\"\ncount = 2\n\
         [[link]]\nbetween = [\"s\", \"d\"]\nrate = \"1 bps\"\ndelay = \"1 s\"",
        &[
            "t.toml:13:11: link.s-d.between: a group of 3 and a group of 2 (expected groups of equal size, \
             or a single node at one end)",
        ],
    );
}

#[test]
fn overrides_are_checked_like_the_file_and_shown_as_set() {
    let told = |set: &[(&str, &str)]| with(set).unwrap_err().to_string();
    assert_eq!(
        told(&[("link.BS-MH.loss", "{ kind = \"bernoulli\", p = 2 }")]),
        "--set:1:43: link.BS-MH.loss.p: 2 is out of range (expected a number from 0 to 1)"
    );
    assert_eq!(
        told(&[("link.BS-MX.rate", "1 Mbit/s")]),
        "--set:1:1: link: has no element `BS-MX` (did you mean `BS-MH`?)"
    );
    assert_eq!(
        told(&[("flow.3.bytes", "1 MB")]),
        "--set:1:1: flow: has no element `3` (expected one of FH-MH)"
    );
    assert_eq!(
        told(&[("link.BS-MH.delay.base", "1 ms")]),
        "--set:1:1: link.BS-MH.delay: is \"170 ms\", which has no keys (expected link.BS-MH.delay to be \
         set as a whole)"
    );
    assert_eq!(
        told(&[("tcp.recovry", "reno")]),
        "--set:1:1: tcp.recovry: unknown key (did you mean `recovery`?)"
    );
    assert_eq!(
        told(&[("tcp..x", "reno")]),
        "--set:1:1: not a path (expected dotted keys, such as link.BS-MH.loss.p)"
    );
    assert_eq!(
        told(&[("tcp.recovery", "reno"), ("tcp.rto.min", "2")]),
        "--set:1:13: tcp.rto.min: 2 has no unit (expected a duration above zero with its unit, such as \
         \"170 ms\")"
    );
}

#[test]
fn a_rendered_diagnostic_shows_the_line_and_points_at_the_value() {
    let error = parse(&BASE.replace("\"250 kbit/s\"", "\"250\"")).unwrap_err();
    assert_eq!(
        error.render(),
        "t.toml:14:8: link.BS-MH.rate: \"250\" has no unit (expected a rate above zero with its unit, \
         such as \"250 kbit/s\", or a table)\n\
         \x20  |\n\
         14 | rate = \"250\"\n\
         \x20  |        ^^^^^"
    );
}

#[test]
fn a_rendering_is_short_whatever_the_file() {
    let long = format!("{}delay = 1", " ".repeat(5000));
    let rendered = parse(&BASE.replace(DELAY, &long)).unwrap_err().render();
    assert!(
        rendered.ends_with("delay = 1\n   |                                         ^"),
        "{rendered}"
    );
    let many = "x = 1\n".replace('x', "[[flow]]\nx").repeat(50);
    let rendered = parse(&format!("{BASE}{many}")).unwrap_err().render();
    assert!(rendered.ends_with("\n\nand 130 more"), "{rendered}");
}

#[test]
fn absent_keys_have_the_defaults_of_the_endpoint() {
    let scenario = parse(&BASE.replace(MSS, "preset = \"rfc\"")).unwrap();
    assert_eq!(*scenario.flows[0].sender, TcpConfig::default());
    assert_eq!(*scenario.flows[0].receiver, TcpConfig::default());
    assert_eq!(scenario.name, "t");
    let queue = QueueConfig::DropTail { limit: QueueLimit::Packets(50) };
    assert_eq!(scenario.links[3].config.queue, queue);
    assert_eq!(scenario.links[3].config.loss.model, LossConfig::None);
    assert_eq!(*scenario.flows[0].application, Application::Bulk(None));
}

#[test]
fn every_key_of_an_endpoint_arrives() {
    let tcp = r#"mss = "900 B"
        receive-buffer = "128 KiB"
        autotuning = false
        uptime = "90 s"
        send-buffer = "1 MB"
        window-scaling = true
        timestamps = true
        congestion = "karak"
        karak = { strict = true, limit = 3 }
        recovery = "tahoe"
        avoid-multi-fr = true
        initial-window = "2 segments"
        initial-ssthresh = "20 kB"
        loss-window = "send-window"
        repeated-timeout = "cut"
        grow-on-recovery-exit = true
        cwnd-limit = "18 kB"
        cwnd-limit-by-hops = true
        duplicate-ack-threshold = 6
        limited-transmit = true
        abc = 2
        slow-start-after-idle = false
        spurious = "f-rto"
        pacing = true
        nagle = "off"
        time-wait = "2 min"
        on-link = "freeze"
        on-route-failure = "elfn"
        [tcp.elfn]
        probe-interval = "3 s"
        window = "initial"
        rto = "initial"
        resume-on-route = true
        [tcp.rto]
        initial = "6 s"
        after-syn-loss = "5 s"
        min = "200 ms"
        max = "64 s"
        factor = 5
        granularity = "10 ms"
        tick = "500 ms"
        max-retransmissions = 6
        linear-syn-timeouts = 2
        policy = "fixed"
        [tcp.persist]
        on-shrink = "bsd"
        initial = "1 s"
        backoff = 1.5
        max = "30 s"
        [tcp.ack]
        policy = "delayed"
        segments = 4
        timeout = "100 ms""#;
    let sack = "recovery = \"sack\"\nsack-pipe = \"fall-floyd\"";
    let sack = parse(&BASE.replace(MSS, sack)).unwrap().flows.remove(0).sender;
    assert_eq!((sack.recovery, sack.sack_pipe), (Recovery::Sack, SackPipe::FallFloyd));
    let sender = parse(&BASE.replace(MSS, tcp)).unwrap().flows.remove(0).sender;
    insta::assert_debug_snapshot!(sender);
}

#[test]
fn ends_of_a_flow_override_single_keys_of_tcp() {
    let text = BASE.replace(
        TO,
        "to = \"MH\"\nsender = { rto = { min = \"2 s\" }, recovery = \"newreno\" }\n\
         receiver = { ack = { policy = \"delayed\" } }\n\
         [tcp.rto]\nmax = \"64 s\"",
    );
    // `avoid-multi-fr` belongs to the choice of [tcp], which the sender replaces.
    let tcp = "preset = \"rfc\"\nrecovery = \"reno\"\navoid-multi-fr = true";
    let text = text.replace(MSS, tcp);
    let flow = parse(&text).unwrap().flows.remove(0);
    assert_eq!(flow.sender.rto.min, Duration::from_secs(2));
    assert_eq!(flow.sender.rto.max, Duration::from_secs(64));
    assert_eq!(flow.sender.recovery, Recovery::NewReno);
    assert_eq!(flow.receiver.rto.min, Duration::from_secs(1));
    assert_eq!(flow.receiver.recovery, Recovery::Reno { avoid_multi_fr: true });
    let timeout = Duration::from_millis(200);
    assert_eq!(flow.receiver.ack, AckConfig::Delayed { segments: 2, timeout, quick: 0 });
    assert_eq!(flow.sender.ack, AckConfig::Every);
}

#[test]
fn links_carry_the_models_of_the_file() {
    let link = r#"delay = { base = "170 ms", from = "0.5 s", fifo = false, mixture = [
            { weight = 80, uniform = ["153 ms", "195 ms"] },
            { weight = 20, normal = { mean = "1 s", deviation = "1 ms" } },
            { weight = 1, exponential = { mean = "3 ms" } }] }
        loss = { kind = "gilbert-elliott", good-to-bad = 0.01, bad-to-good = 0.5 }
        outage = { mode = "hold", listed = [["5 s", "11 s"]] }
        queue = { kind = "red", limit = "60 packets" }
        forward = { rate = "384 kbit/s", loss = { kind = "list", packets = [9, 3] } }
        backward = { outage = { period = "60 s", end = "10 s", origin = "5 s" }, queue = { limit = "64 kB" } }"#;
    let scenario = parse(&BASE.replace(DELAY, link)).unwrap();
    let [_, _, down, up] = scenario.links.as_slice() else { panic!("{:?}", scenario.links) };
    assert_eq!((down.name.as_str(), down.from, down.to), ("BS>MH", NodeId(1), NodeId(2)));
    assert_eq!((up.name.as_str(), up.from, up.to), ("MH>BS", NodeId(2), NodeId(1)));
    assert_eq!(down.config.rate, DataRate::kbps(384).into());
    assert_eq!(up.config.rate, DataRate::kbps(250).into());
    let variation = down.config.delay.variation.as_ref().unwrap();
    assert_eq!((variation.from, variation.fifo), (Instant::from_millis(500), false));
    let Distribution::Mixture(parts) = &variation.distribution else { panic!() };
    let (low, high) = (Duration::from_millis(153), Duration::from_millis(195));
    assert_eq!(parts[0], (80.0, Distribution::Uniform { low, high }));
    assert_eq!(parts.len(), 3);
    assert_eq!(up.config.delay, down.config.delay);
    assert_eq!(down.config.loss.model, LossConfig::List(vec![3, 9]));
    let elliott = LossConfig::GilbertElliott {
        good_to_bad: 0.01,
        bad_to_good: 0.5,
        loss_good: 0.0,
        loss_bad: 1.0,
    };
    assert_eq!(up.config.loss.model, elliott);
    let held = down.config.outage.as_ref().unwrap();
    assert_eq!(held.mode, OutageMode::Hold);
    assert_eq!(
        held.schedule,
        Schedule::Listed(vec![(Instant::from_secs(5), Instant::from_secs(11))])
    );
    let cycle = Schedule::Periodic {
        origin: Instant::from_secs(5),
        period: Duration::from_secs(60),
        start: Duration::ZERO,
        end: Duration::from_secs(10),
    };
    assert_eq!(up.config.outage.as_ref().unwrap().schedule, cycle);
    let QueueConfig::Red(red) = &down.config.queue else { panic!("{:?}", down.config.queue) };
    assert_eq!((red.limit, red.gentle, red.ecn), (60, false, false));
    let limit = QueueLimit::Bytes(Bytes(64_000));
    assert_eq!(up.config.queue, QueueConfig::DropTail { limit });
}

/// Two groups and flows between random pairs of their nodes.
fn random_pairs(flow: &str) -> Result<Scenario, ConfigError> {
    parse(&format!(
        r#"
        duration = "1 s"
        node = [{{ name = "n", count = 6 }}, {{ name = "d" }}]
        wlan = [{{ name = "field", stations = ["n", "d"] }}]
        [[flow]]
        name = "ftp"
        from = "n"
        {flow}
        "#
    ))
}

/// The ends of the flows in a run with `seed`.
fn drawn(scenario: &Scenario, seed: u64) -> Vec<(u32, u32)> {
    scenario.drawn(seed).flows.iter().map(|flow| (flow.from.0, flow.to.0)).collect()
}

#[test]
fn random_pairs_are_different_senders_each_with_another_node() {
    let scenario = random_pairs("to = \"n\"\nrandom-pairs = 4").unwrap();
    let names: Vec<&str> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["ftp0", "ftp1", "ftp2", "ftp3"]);
    let mut seen = BTreeSet::new();
    for seed in 1..=1000 {
        let ends = drawn(&scenario, seed);
        let senders: BTreeSet<u32> = ends.iter().map(|ends| ends.0).collect();
        assert_eq!(senders.len(), 4, "seed {seed}: {ends:?}");
        seen.extend(ends);
    }
    // All pairs of the group, and no node with itself.
    let pairs = (0..6).flat_map(|from| (0..6).map(move |to| (from, to)));
    assert!(seen.into_iter().eq(pairs.filter(|(from, to)| from != to)));
}

#[test]
fn random_pairs_depend_on_the_seed_alone() {
    let scenario = random_pairs("to = \"n\"\nrandom-pairs = 6").unwrap();
    assert_eq!(drawn(&scenario, 7), drawn(&scenario, 7));
    assert_ne!(drawn(&scenario, 7), drawn(&scenario, 8));
}

#[test]
fn flows_of_a_random_pair_share_its_ends() {
    let scenario = random_pairs("to = \"d\"\nrandom-pairs = 2\ncount = 2").unwrap();
    let ends = drawn(&scenario, 3);
    assert_eq!((ends[0], ends[2]), (ends[1], ends[3]));
    assert_ne!(ends[0].0, ends[2].0);
    assert!(ends.iter().all(|ends| ends.1 == 6));
}

#[test]
fn impossible_random_pairs_are_refused() {
    let refused = |flow: &str| random_pairs(flow).unwrap_err().to_string();
    assert_eq!(
        refused("to = \"n\"\nrandom-pairs = 7"),
        "t.toml:9:16: flow.ftp.random-pairs: 7 different senders (expected at most 6, the nodes of \
         `from`)"
    );
    assert_eq!(
        refused("to = \"n0\"\nrandom-pairs = 2"),
        "t.toml:8:14: flow.ftp.to: the only receiver may be drawn as a sender (expected another node, \
         or a group)"
    );
}

#[test]
fn groups_and_counts_are_expanded() {
    let text = r#"
        duration = "1 s"
        node = [{ name = "s", count = 2 }, { name = "R" }, { name = "d", count = 2, outage = { listed = [] } }]
        [[link]]
        between = ["s", "R"]
        rate = "1 Gbit/s"
        delay = "1 ms"
        [[link]]
        between = ["R", "d"]
        rate = "1 Gbit/s"
        delay = "1 ms"
        [[flow]]
        name = "ftp"
        from = "s"
        to = "d"
        stagger = "10 ms"
        [[flow]]
        from = "s1"
        to = "R"
        count = 2
        bytes = "1 MB"
        [[flow]]
        from = "s"
        to = "R"
    "#;
    let scenario = parse(text).unwrap();
    let nodes: Vec<&str> = scenario.nodes.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(nodes, ["s0", "s1", "R", "d0", "d1"]);
    let links: Vec<&str> = scenario.links.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(links, ["s0>R", "R>s0", "s1>R", "R>s1", "R>d0", "d0>R", "R>d1", "d1>R"]);
    let flows: Vec<(&str, u32, u32, u64)> = (scenario.flows.iter())
        .map(|f| (f.name.as_str(), f.from.0, f.to.0, f.start.as_nanos() / 1_000_000))
        .collect();
    assert_eq!(
        flows,
        [
            ("ftp0", 0, 3, 0),
            ("ftp1", 1, 4, 10),
            ("s1-R-0", 1, 2, 0),
            ("s1-R-1", 1, 2, 0),
            ("s0-R", 0, 2, 0),
            ("s1-R", 1, 2, 0)
        ]
    );
    assert_eq!(scenario.nodes[NodeId(3)].outage, None);
}

#[test]
fn a_middlebox_serves_its_mobiles() {
    let text = BASE.replace(
        "name = \"BS\"",
        "name = \"BS\"\nmiddlebox = { mechanism = \"packet-control\", threshold = 6, mobiles = [\"MH\"] }",
    );
    let set = |value: &str| vec![("node.BS.middlebox.mechanism".to_owned(), value.to_owned())];
    let scenario = parse(&text).unwrap();
    let spec = scenario.nodes[NodeId(1)].middlebox.clone().unwrap();
    let expected = MechanismSpec::Edge(MechanismConfig::PacketControl { threshold: 6 });
    assert_eq!(spec.mechanism, expected);
    assert_eq!(spec.mobiles, [NodeId(2)]);
    // A later choice disables the keys of the earlier one.
    let without = Scenario::parse("t.toml", &text, &set("none")).unwrap();
    assert_eq!(without.nodes[NodeId(1)].middlebox, None);
}

#[test]
fn overrides_reach_every_part_of_the_file() {
    let scenario = with(&[
        ("duration", "30 s"),
        ("link.BS-MH.loss", "{ kind = \"bernoulli\", p = 0.01 }"),
        ("link.BS-MH.loss.p", "0.02"),
        ("link.0.rate", "2 Mbit/s"),
        ("tcp.spurious", "eifel"),
        ("tcp.timestamps", "true"),
        ("tcp.initial-window", "2 segments"),
        ("flow.FH-MH.bytes", "\"1 MB\""),
        ("tcp.rto.min", "200 ms"),
    ])
    .unwrap();
    assert_eq!(scenario.duration, Duration::from_secs(30));
    assert_eq!(scenario.links[2].config.loss.model, LossConfig::Bernoulli { p: 0.02 });
    assert_eq!(scenario.links[0].config.rate, DataRate::mbps(2).into());
    let flow = &scenario.flows[0];
    assert_eq!(flow.sender.spurious, SpuriousDetection::Eifel);
    assert_eq!(flow.sender.initial_window, InitialWindow::Segments(2));
    assert_eq!(*flow.application, Application::Bulk(Some(Bytes(1_000_000))));
    assert_eq!(flow.receiver.rto.min, Duration::from_millis(200));
}

proptest::proptest! {
    /// No text and no override makes the parser panic.
    #[test]
    fn any_text_is_read_or_refused(text: String, path in "[a-z.\\-\"0-9]{0,20}", value: String) {
        let _ = Scenario::parse("t.toml", &text, &[]);
        let _ = Scenario::parse("t.toml", BASE, &[(path, value)]);
    }

    /// Whatever a known key is set to, the result is a scenario or a diagnostic with a position.
    #[test]
    fn any_value_is_read_or_refused(
        key in proptest::sample::select(&[
            "duration", "node", "node.BS.count", "node.BS.outage", "node.BS.middlebox", "link.BS-MH",
            "link.BS-MH.rate", "link.BS-MH.delay", "link.BS-MH.loss", "link.BS-MH.outage",
            "link.BS-MH.queue", "link.BS-MH.between", "tcp", "tcp.mss", "tcp.rto", "tcp.abc", "flow",
            "flow.0.from", "flow.0.count", "flow.0.sender", "flow.0.stagger",
        ][..]),
        value in proptest::sample::select(&[
            "", "0", "-1", "1e400", "nan", "99999999999999999999", "true", "[]", "{}", "[[]]", "[{}]",
            "[[\"1 s\"]]", "[\"MH\", \"MH\"]", "\"1 s\"", "\"999999999 s\"", "\"1 B\"", "\"64 KiB\"",
            "{ kind = 1 }", "{ kind = \"red\" }", "{ kind = \"list\", packets = [-1] }", "{ mixture = [] }",
            "{ mixture = [1] }", "{ period = \"1 s\", end = \"1 s\" }", "1000000",
        ][..]),
    ) {
        if let Err(error) = with(&[(key, value)]) {
            proptest::prop_assert!(!error.diagnostics.is_empty());
            proptest::prop_assert!(error.diagnostics.iter().all(|d| d.line >= 1 && d.column >= 1));
            let _ = error.render();
        }
    }
}

#[test]
fn the_documentation_is_the_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
    let docs = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        docs == super::markdown(),
        "docs/scenario.md is stale; regenerate it: \
         cargo run -p airtcp-cli -- schema --markdown > docs/scenario.md"
    );
}

#[test]
fn the_example_in_the_documentation_is_right() {
    let markdown = super::markdown();
    let example = markdown.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(parse(example).unwrap().flows.len(), 1);
}

#[test]
fn the_json_schema_describes_every_table() {
    let schema = super::json_schema();
    let definitions = schema["$defs"].as_object().unwrap();
    assert_eq!(definitions["scenario"]["required"], serde_json::json!(["duration", "node"]));
    assert_eq!(definitions["tcp"]["properties"]["preset"]["default"], "linux");
    // A default that a preset may replace is none.
    for table in ["tcp", "tcp.rto"] {
        let text = definitions[table]["properties"].to_string();
        assert_eq!(text.matches("\"default\"").count(), usize::from(table == "tcp"), "{table}");
    }
    assert_eq!(definitions["link.queue"]["properties"]["gentle"]["default"], false);
    assert_eq!(definitions["link.loss"]["additionalProperties"], false);
    // Every reference resolves.
    let text = schema.to_string();
    for reference in text.split("\"$ref\":\"#/$defs/").skip(1) {
        let name = reference.split('"').next().unwrap().replace("%20", " ");
        assert!(definitions.contains_key(&name), "{name}");
    }
}

/// A cell with a flow across it.
const CELL: &str = r#"duration = "20 s"
[[node]]
name = "AP"
middlebox = { mechanism = "m-tcp-plus", mobiles = ["MH"] }
[[node]]
name = "MH"
outage = { listed = [["5 s", "6 s"]] }
[[wlan]]
name = "cell"
stations = ["AP", "MH"]
[[flow]]
from = "FH"
to = "MH"
[[node]]
name = "FH"
[[link]]
between = ["FH", "AP"]
rate = "100 Mbit/s"
delay = "1 ms"
"#;

fn cell(set: &[(&str, &str)]) -> Result<Scenario, super::ConfigError> {
    let set: Vec<(String, String)> =
        set.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect();
    Scenario::parse("t.toml", CELL, &set)
}

/// CELL with `old` replaced by `new` gives exactly these diagnostics.
#[track_caller]
fn cell_refuses(old: &str, new: &str, expected: &[&str]) {
    assert_eq!(CELL.matches(old).count(), 1, "{old:?} must occur in CELL once");
    let found = parse(&CELL.replace(old, new)).expect_err(new).to_string();
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
}

const STATIONS: &str = "stations = [\"AP\", \"MH\"]";
const LISTED: &str = "listed = [[\"5 s\", \"6 s\"]]";

#[test]
fn a_cell_is_its_preset_with_the_keys_of_the_file() {
    assert_eq!(cell(&[]).unwrap().wlans[0].config, preset::ieee());
    for (name, expected) in
        [("ns2", preset::ns2()), ("glomosim", preset::glomosim()), ("opnet", preset::opnet())]
    {
        assert_eq!(cell(&[("wlan.cell.preset", name)]).unwrap().wlans[0].config, expected);
    }
    // Every key, each with a value other than `ieee`'s.
    let keys = [
        ("preamble", "short"),
        ("data-rate", "5.5 Mbit/s"),
        ("control-rate", "1 Mbit/s"),
        ("broadcast-rate", "2 Mbit/s"),
        ("slot", "9 us"),
        ("sifs", "16 us"),
        ("difs", "34 us"),
        ("whole-microseconds", "false"),
        ("mac-header", "34 B"),
        ("llc", "0 B"),
        ("rts-threshold", "256 B"),
        ("cw-min", "15"),
        ("cw-max", "255"),
        ("backoff-draw", "exclusive"),
        ("repeat-interrupted-slot", "false"),
        ("short-retry-limit", "8"),
        ("long-retry-limit", "5"),
        ("attempts", "limit-plus-one"),
        ("first-access", "after-difs"),
        ("post-backoff", "false"),
        ("eifs", "nav"),
        ("eifs-ack-rate", "2 Mbit/s"),
        ("response-timeout", "whole-frame"),
        ("response-margin", "7 us"),
        ("difs-after-timeout", "true"),
        ("cts", "medium-idle"),
        ("wait-for-data", "true"),
        ("sense-before-data", "true"),
        ("nav-from-data", "false"),
        ("nav-reset", "false"),
        ("next-before-report", "true"),
        ("queue", "32000 B"),
        ("tx-power", "20 dBm"),
        ("frequency", "2.4 GHz"),
        ("antenna-height", "2 m"),
        ("rx-threshold", "-81 dBm"),
        ("cs-threshold", "-91 dBm"),
        ("reception", "first-lock"),
        ("capture-ratio", "5"),
        ("ignored-frame-sets-nav", "false"),
        ("bit-error-rate", "1e-5"),
    ];
    let set: Vec<_> = keys.map(|(key, value)| (format!("wlan.cell.{key}"), value)).into();
    let set: Vec<_> = set.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    insta::assert_debug_snapshot!(cell(&set).unwrap().wlans[0].config);
    let sinr = [
        ("wlan.cell.min-sinr", "4"),
        ("wlan.cell.noise", "-100 dBm"),
        ("wlan.cell.interference-floor", "-110 dBm"),
    ];
    let Reception::CumulativeSinr { noise, min_sinr, interference_floor, .. } =
        cell(&sinr).unwrap().wlans[0].config.radio.reception
    else {
        panic!("another model")
    };
    assert_eq!((noise, min_sinr), (Power::from_dbm(-100.0), 4.0));
    assert_eq!(interference_floor, Power::from_dbm(-110.0));
}

/// The documented values of a preset, written over another preset, give that preset.
#[test]
fn the_documented_values_of_a_preset_make_it() {
    for preset in Preset::ALL {
        let (name, config) = (preset.word(), preset.config());
        let mut keys = Vec::new();
        config.write(&mut keys);
        let set: Vec<_> =
            keys.into_iter().map(|(key, value)| (format!("wlan.cell.{key}"), value)).collect();
        let set: Vec<_> = set.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        // Only the preset says which standard it is, and so which rates there are.
        let others = match config.phy {
            PhyConfig::Dsss(_) => &["ieee", "ns2"][..],
            _ => &[name],
        };
        for other in others {
            let set = [&[("wlan.cell.preset", *other)], &set[..]].concat();
            assert_eq!(cell(&set).unwrap().wlans[0].config, config, "{name} over {other}");
        }
    }
}

#[test]
fn impossible_radio_settings_are_refused() {
    for (line, expected) in [
        (
            "data-rate = \"54 Mbit/s\"",
            "t.toml:11:13: wlan.cell.data-rate: data-rate is 54 Mbit/s: 802.11b has 1, 2, 5.5 and 11 Mbit/s",
        ),
        (
            "cw-max = 1000",
            "t.toml:11:10: wlan.cell.cw-max: cw-max is 1000: a contention window is 2^k - 1 slots (31, \
             63, ... 1023)",
        ),
        ("cw-min = 2047", "t.toml:11:10: wlan.cell.cw-min: cw-min is 2047, above cw-max, 1023"),
        (
            "sifs = \"50 us\"",
            "t.toml:11:8: wlan.cell.sifs: sifs is 50 us, difs is 50 us: sifs must be shorter, or \
             responses lose the medium",
        ),
        (
            "rx-threshold = \"1 W\"",
            "t.toml:11:16: wlan.cell.rx-threshold: rx-threshold is 1e0 W, tx-power is 2.8183815e-1 W: no \
             frame reaches the threshold at any distance",
        ),
        (
            "cs-threshold = \"1 mW\"",
            "t.toml:11:16: wlan.cell.cs-threshold: cs-threshold is 1e-3 W, above rx-threshold, 3.652e-10 \
             W: a station would receive frames it does not sense",
        ),
        (
            "frequency = \"0 Hz\"",
            "t.toml:11:13: wlan.cell.frequency: frequency is 0: expected a positive number of hertz",
        ),
        (
            "tx-power = \"20 dB\"",
            "t.toml:11:12: wlan.cell.tx-power: \"20 dB\" has an unknown unit (expected a unit of W, mW \
             or dBm; did you mean `dBm`?)",
        ),
        (
            "short-retry-limit = 0",
            "t.toml:11:21: wlan.cell.short-retry-limit: 0 is out of range (expected a whole number from \
             1 to 1000000)",
        ),
        (
            "capture-ratio = 5",
            "t.toml:11:1: wlan.cell.capture-ratio: has no effect with reception = \"cumulative-sinr\" \
             (expected reception = \"first-lock\")",
        ),
    ] {
        cell_refuses(STATIONS, &format!("{STATIONS}\n{line}"), &[expected]);
    }
}

#[test]
fn stations_stand_apart_or_where_the_file_says() {
    let positions = |text: &str| -> Vec<(f64, f64)> {
        let stations = parse(text).unwrap().wlans.remove(0).stations;
        stations.iter().map(|s| (s.config.position.x, s.config.position.y)).collect()
    };
    assert_eq!(positions(CELL), [(0.0, 0.0), (1.0, 0.0)]);
    let placed = CELL.replace("name = \"AP\"", "name = \"AP\"\nposition = [\"0 m\", \"0.1 km\"]");
    let placed = placed.replace("name = \"MH\"", "name = \"MH\"\nposition = [\"-20 m\", \"30 m\"]");
    assert_eq!(positions(&placed), [(0.0, 100.0), (-20.0, 30.0)]);
    let group = r#"duration = "1 s"
        node = [{ name = "n", count = 3, position = ["5 m", "0 m"], spacing = ["200 m", "1 m"] }]
        wlan = [{ name = "chain", stations = ["n"] }]
        flow = [{ from = "n0", to = "n2" }]"#;
    assert_eq!(positions(group), [(5.0, 0.0), (205.0, 1.0), (405.0, 2.0)]);
}

#[test]
fn a_cell_needs_its_stations() {
    cell_refuses(
        STATIONS,
        "stations = [\"AP\"]",
        &[
            "t.toml:10:12: wlan.cell.stations: a cell of one station (expected at least two stations)",
        ],
    );
    cell_refuses(
        STATIONS,
        "stations = [\"AP\", \"MH\", \"AP\"]",
        &["t.toml:10:12: wlan.cell.stations: \"AP\" takes part twice (expected each node once)"],
    );
    cell_refuses(
        STATIONS,
        "stations = [\"AP\", \"MS\"]",
        &["t.toml:10:19: wlan.cell.stations: no node is called \"MS\" (did you mean `MH`?)"],
    );
    cell_refuses(
        "name = \"MH\"",
        "name = \"MH\"\nposition = [\"0 m\", \"1 m\"]",
        &[
            "t.toml:11:12: wlan.cell.stations: \"AP\" has no position, but others have one (expected a position \
             for each of the nodes, or for none)",
        ],
    );
    cell_refuses(
        "name = \"MH\"",
        "name = \"MH\"\nposition = [\"0 m\"]",
        &["t.toml:7:12: node.MH.position: found an array (expected [x, y], such as [\"0 m\", \
             \"200 m\"])"],
    );
}

#[test]
fn outages_of_nodes_are_checked() {
    cell_refuses(
        LISTED,
        "listed = [[\"5 s\", \"8 s\"], [\"7 s\", \"9 s\"]]",
        &[
            "t.toml:7:38: node.MH.outage.listed: overlaps or precedes the one before it (expected [[start, \
             end], …], ascending and disjoint, such as [[\"5 s\", \"11 s\"]])",
        ],
    );
    cell_refuses(
        LISTED,
        "period = \"10 s\", end = \"11 s\"",
        &[
            "t.toml:7:35: node.MH.outage.end: the outage from 0 s to 11 s does not fit a cycle of 10 s \
             (expected start < end, end at most period)",
        ],
    );
    let outage = cell(&[("node.MH.outage.layer", "phy"), ("node.MH.outage.warning", "1 s")]);
    let outage = outage.unwrap().nodes[NodeId(1)].outage.clone().unwrap();
    assert_eq!((outage.layer, outage.warning), (OutageLayer::Phy, Duration::from_secs(1)));
    refuses(
        "name = \"MH\"",
        "name = \"MH\"\noutage = { listed = [[\"5 s\", \"6 s\"]], layer = \"phy\" }",
        &[
            "t.toml:8:47: node.MH.outage.layer: the node is in no cell (expected \"above-mac\", or a wlan \
             with this node)",
        ],
    );
}

#[test]
fn nodes_move() {
    let two =
        [("node.AP.position", "[\"0 m\", \"0 m\"]"), ("node.MH.position", "[\"9 m\", \"0 m\"]")];
    let moving = |mobility: &str| {
        let scenario = cell(&[&two[..], &[("node.MH.mobility", mobility)]].concat()).unwrap();
        scenario.nodes[NodeId(1)].mobility.clone()
    };
    assert_eq!(moving("{ model = \"stationary\" }"), MobilityConfig::Stationary);
    let there = Position { x: 100.0, y: 0.0 };
    assert_eq!(
        moving("{ model = \"path\", waypoints = [[\"5 s\", \"0.1 km\", \"0 m\"]] }"),
        MobilityConfig::Path(vec![(Instant::from_secs(5), there)])
    );
    let random = "{ model = \"random-waypoint\", area = [\"1 km\", \"1 km\"], speed = \"36 km/h\", \
                  start = \"position\" }";
    let MobilityConfig::RandomWaypoint(model) = moving(random) else { panic!("{random}") };
    assert_eq!((model.speed, model.min_speed, model.pause), (10.0, None, Duration::ZERO));
}

#[test]
fn movements_are_checked() {
    let mobility = |table: &str, expected: &str| {
        let error = cell(&[("node.MH.mobility", table)]).expect_err(table).to_string();
        assert!(error.contains(expected) && !error.contains("in no cell"), "{error}");
    };
    mobility(
        "{ model = \"random-waypiont\" }",
        "node.MH.mobility.model: \"random-waypiont\" is not a choice here (expected \"stationary\", \
         \"path\", \"random-waypoint\" or \"trace\"; did you mean `random-waypoint`?)",
    );
    mobility(
        "{ model = \"path\", waypoints = [[\"5 s\", \"1 m\", \"0 m\"], [\"4 s\", \"1 m\", \"0 m\"]] }",
        "node.MH.mobility.waypoints: is earlier than the one before it",
    );
    mobility("{ model = \"path\", waypoints = [] }", "node.MH.mobility.waypoints: found an array");
    mobility(
        "{ model = \"path\", waypoints = [[\"5 s\", \"1 m\", \"0 m\"]], speed = \"1 m/s\" }",
        "node.MH.mobility.speed: has no effect with model = \"path\"",
    );
    let area = "model = \"random-waypoint\", area = [\"9 m\", \"9 m\"]";
    mobility(
        &format!("{{ {area}, speed = \"2 m/s\", min-speed = \"3 m/s\" }}"),
        "node.MH.mobility.min-speed: does not fit `speed`",
    );
    mobility(
        &format!("{{ {area}, speed = \"0 m/s\" }}"),
        "node.MH.mobility.speed: is not above zero",
    );
    let placed = [("node.MH.position", "[\"0 m\", \"0 m\"]")];
    let random = format!("{{ {area}, speed = \"2 m/s\" }}");
    let error = cell(&[placed[0], ("node.MH.mobility", &random)]).expect_err("placed twice");
    assert!(error.to_string().contains("node.MH.position: has no effect"), "{error}");
    refuses(
        "name = \"MH\"",
        "name = \"MH\"\nmobility = { model = \"stationary\" }",
        &[
            "t.toml:8:12: node.MH.mobility: has no effect: the node is in no cell (expected a [[wlan]] with \
             this node among its stations)",
        ],
    );
}

/// A cell whose stations are the [[node]] table; `tracks.tcl` moves the nodes 1, 2 and 4, node 1 from
/// 10 m at 1 m/s.
fn tracked(node: &str, stations: &str) -> Result<Scenario, ConfigError> {
    let text = format!(
        "duration = \"9 s\"\n[[node]]\n{node}\n[[node]]\nname = \"AP\"\nmobility = {{ model = \"path\", \
         waypoints = [[\"1 s\", \"0 m\", \"5 m\"]] }}\nposition = [\"0 m\", \"0 m\"]\n[[wlan]]\n\
         name = \"cell\"\nstations = [\"AP\", {stations}]\n[[udp]]\nfrom = \"AP\"\nto = {stations}\n\
         rate = \"1 kbit/s\""
    );
    let files = |path: &str| match path {
        "tracks.tcl" | "tracks" => Ok("$node_(1) set X_ 10\n\
             $ns_ at 2 \"$node_(1) setdest 20 0 1\"\n\
             $node_(2) set Y_ 3\n$node_(4) set X_ 1\n"
            .to_owned()),
        "one.movements" => Ok("0 1 2\n".to_owned()),
        _ => Err(format!("{path}: no such file")),
    };
    Scenario::parse_with_files("t.toml", &text, &[], None, &files)
}

#[test]
fn a_node_follows_a_trace() {
    let place = |node: &str, second: u64| {
        let scenario = tracked(node, "\"MH\"").expect(node);
        let station = &scenario.wlans[0].stations[1];
        scenario.movement(station, 1).position(Instant::from_secs(second))
    };
    let track = "name = \"MH\"\nmobility = { file = \"tracks.tcl\", node = 1 }";
    assert_eq!(place(track, 0), Position { x: 10.0, y: 0.0 });
    assert_eq!(place(track, 7), Position { x: 15.0, y: 0.0 });
    let said = "name = \"MH\"\nmobility = { model = \"trace\", file = \"tracks\", format = \"setdest\", node = 2 }";
    assert_eq!(place(said, 7), Position { x: 0.0, y: 3.0 });
    let only = "name = \"MH\"\nmobility = { file = \"one.movements\" }";
    assert_eq!(place(only, 7), Position { x: 1.0, y: 2.0 });
}

#[test]
fn a_group_follows_a_trace_node_by_node() {
    // The trace has no node 3.
    let group = "name = \"s\"\ncount = 3\nmobility = { file = \"tracks.tcl\" }";
    let scenario = tracked(group, "\"s\"").expect("a group of three");
    let places: Vec<Position> = scenario.wlans[0].stations[1..]
        .iter()
        .map(|station| scenario.movement(station, 1).position(Instant::ZERO))
        .collect();
    assert_eq!(places, [(10.0, 0.0), (0.0, 3.0), (1.0, 0.0)].map(|(x, y)| Position { x, y }));
}

#[test]
fn a_trace_that_does_not_fit_is_refused() {
    let refused = |node: &str, expected: &str| {
        let error =
            tracked(&format!("name = \"MH\"\n{node}"), "\"MH\"").expect_err(node).to_string();
        assert_eq!(error, expected);
    };
    refused(
        "mobility = { file = \"tracks.tcl\" }",
        "t.toml:4:12: node.MH.mobility.node: missing: the trace has several nodes (expected one of the nodes 1 \
         to 2, 4)",
    );
    refused(
        "mobility = { file = \"tracks.tcl\", node = 3 }",
        "t.toml:4:42: node.MH.mobility.node: the trace has no node 3 (expected one of the nodes 1 to 2, 4)",
    );
    refused(
        "count = 4\nmobility = { file = \"tracks.tcl\" }",
        "t.toml:5:21: node.MH.mobility.file: the trace has 3 nodes for a group of 4 (expected one of the \
         nodes 1 to 2, 4)",
    );
    refused(
        "mobility = { file = \"tracks\" }",
        "t.toml:4:12: node.MH.mobility.format: missing: the file's name does not say it (expected \"setdest\", \
         \"bonnmotion\", \"bonnmotion-2d\" or \"bonnmotion-3d\")",
    );
    refused(
        "mobility = { file = \"tracks\", format = \"bonnmotion\" }",
        "t.toml:4:21: node.MH.mobility.file: tracks: line 1: \"$node_(1)\" (expected `time x y` for each \
         waypoint, in seconds and metres)",
    );
    refused(
        "mobility = { file = \"no.tcl\", node = 1 }",
        "t.toml:4:21: node.MH.mobility.file: no.tcl: no such file",
    );
    refused(
        "mobility = { file = \"tracks.tcl\", node = 1 }\nposition = [\"0 m\", \"0 m\"]",
        "t.toml:5:12: node.MH.position: has no effect: `mobility` says where (expected no position)",
    );
}

/// The base with a rate and a delay of its second link, and some files.
fn recorded(rate: &str, delay: &str) -> Result<Scenario, ConfigError> {
    let text = BASE.replace("\"250 kbit/s\"", rate).replace("\"170 ms\"", delay);
    let files = |path: &str| match path {
        "lte" => Ok("1\n2\n10\n".to_owned()),
        "rate.csv" => Ok("time (s),rate (kbit/s)\n0,250\n10,0\n12,500\n".to_owned()),
        "loss.csv" => Ok("time (s),loss (%)\n0,0\n5,100\n10,0\n".to_owned()),
        "delay.csv" => Ok("time (s),delay (ms)\n0,170\n5,20\n".to_owned()),
        _ => Err(format!("{path}: no such file")),
    };
    Scenario::parse_with_files("t.toml", &text, &[], None, &files)
}

#[test]
fn rates_and_delays_follow_files() {
    let goodput = |rate: &str, delay: &str| {
        let scenario = recorded(rate, delay).expect(rate);
        let mut world = crate::World::new(&scenario, 1);
        world.run(&mut crate::Observers::default());
        let metrics = world.metrics();
        metrics.links.iter().map(|link| link.bytes_sent).sum::<u64>()
    };
    let constant = goodput("\"250 kbit/s\"", "\"170 ms\"");
    let table = goodput("{ file = \"rate.csv\" }", "\"170 ms\"");
    // 8 s of 20 have twice the rate, 2 s have none.
    assert!((1.2..1.5).contains(&(table as f64 / constant as f64)), "{constant} {table}");
    let mahimahi = goodput("{ file = \"lte\" }", "\"170 ms\"");
    assert!(mahimahi > 2 * constant, "{constant} {mahimahi}");
    let delay = goodput("\"250 kbit/s\"", "{ file = \"delay.csv\" }");
    assert!((0.9..1.2).contains(&(delay as f64 / constant as f64)), "{constant} {delay}");
}

#[test]
fn a_file_of_a_link_that_is_wrong_is_refused() {
    let refused = |rate: &str, delay: &str, expected: &str| {
        let error = recorded(rate, delay).expect_err(expected).to_string();
        assert_eq!(error, expected);
    };
    refused(
        "{ file = \"delay.csv\" }",
        "\"170 ms\"",
        "t.toml:14:17: link.BS-MH.rate.file: delay.csv: line 1: \"time (s),delay (ms)\" is no header (expected \
         `time (UNIT),rate (UNIT)`, such as `time (s),rate (Mbit/s)`)",
    );
    refused(
        "\"250 kbit/s\"",
        "{ file = \"lte\", uniform = [\"1 ms\", \"2 ms\"] }",
        "t.toml:15:18: link.BS-MH.delay.file: a second distribution beside `uniform` (expected one distribution)",
    );
    refused(
        "{ file = \"none\" }",
        "\"170 ms\"",
        "t.toml:14:17: link.BS-MH.rate.file: none: no such file",
    );
}

/// Steps in the scenario do the same as a file.
#[test]
fn rates_delays_and_losses_follow_steps_as_files() {
    let steps = |key: &str, values: [(u32, &str); 3]| {
        let steps = values.map(|(at, value)| format!("{{ at = \"{at} s\", {key} = {value} }}"));
        format!("{{ steps = [{}] }}", steps.join(", "))
    };
    let same = |(rate, delay): (&str, &str), (rate_file, delay_file): (&str, &str)| {
        let [inline, file] = [(rate, delay), (rate_file, delay_file)]
            .map(|(rate, delay)| recorded(rate, delay).expect(rate).links[2].config.clone());
        assert_eq!(inline, file);
    };
    let rate = steps("rate", [(0, "\"250 kbit/s\""), (10, "\"none\""), (12, "\"500 kbit/s\"")]);
    same((&rate, "\"170 ms\""), ("{ file = \"rate.csv\" }", "\"170 ms\""));
    let delay =
        "{ steps = [{ at = \"0 s\", delay = \"170 ms\" }, { at = \"5 s\", delay = \"20 ms\" }] }";
    same(("\"250 kbit/s\"", delay), ("\"250 kbit/s\"", "{ file = \"delay.csv\" }"));
    let lossy = |loss: &str| {
        let loss = format!("\"170 ms\"\nloss = {{ kind = \"schedule\", {loss} }}");
        recorded("\"250 kbit/s\"", &loss).expect(&loss)
    };
    let file = lossy("file = \"loss.csv\"");
    let p = steps("p", [(0, "0"), (5, "1"), (10, "0")]);
    let p = p.trim_start_matches("{ ").trim_end_matches(" }");
    assert_eq!(lossy(p).links[2].config, file.links[2].config);
    let mut world = crate::World::new(&file, 1);
    world.run_until(Instant::from_secs(5), &mut crate::Observers::default());
    assert_eq!(world.metrics().links[2].loss_drops, 0);
    world.run_until(Instant::from_secs(10), &mut crate::Observers::default());
    let lost = world.metrics().links[2].loss_drops;
    world.run(&mut crate::Observers::default());
    let link = &world.metrics().links[2];
    assert!(lost > 0 && link.loss_drops == lost && link.packets_sent > 2 * lost, "{link:?}");
}

#[test]
fn steps_that_are_wrong_are_refused() {
    for (rate, expected) in [
        (
            "{ steps = [{ at = \"1 s\", rate = \"1 Mbit/s\" }] }",
            "link.BS-MH.rate.steps.0.at: nothing holds until 1 s (expected 0 s)",
        ),
        (
            "{ steps = [{ at = \"0 s\", rate = \"1 Mbit/s\" }, { at = \"5 s\", rate = \"2 Mbit/s\" }, \
             { at = \"4 s\", rate = \"3 Mbit/s\" }] }",
            "link.BS-MH.rate.steps.2.at: 4 s does not come after 5 s (expected a time after 5 s)",
        ),
        (
            "{ steps = [{ at = \"0 s\", rate = \"none\" }] }",
            "link.BS-MH.rate.steps: the last rate is none, and packets would wait for ever \
             (expected a last rate)",
        ),
        (
            "{ steps = [{ at = \"0 s\", rate = \"-1 Mbit/s\" }] }",
            "link.BS-MH.rate.steps.0.rate: \"-1 Mbit/s\" is negative (expected \"none\" or a rate \
             above zero with its unit, such as \"250 kbit/s\")",
        ),
        (
            "{ steps = [{ at = \"0 s\", rate = \"1 Mbit/s\" }], file = \"rate.csv\" }",
            "link.BS-MH.rate.file: contradicts `steps` (expected either steps or file)",
        ),
        ("{ }", "link.BS-MH.rate: says nothing (expected steps, file or fading)"),
    ] {
        let error = recorded(rate, "\"170 ms\"").expect_err(rate).to_string();
        let (line, told) = error.split_once(": ").expect("a position");
        assert!(line.starts_with("t.toml:14:"), "{error}");
        assert_eq!(told, expected);
    }
}

/// BASE with this `traffic` of its flow.
fn of_traffic(traffic: &str) -> Result<Application, ConfigError> {
    let text = format!("{BASE}\ntraffic = {traffic}\n");
    let files = |path: &str| match path {
        "web.cdf" => Ok("0 0\n1000 0.5\n5000 1\n".to_owned()),
        "bad.cdf" => Ok("0 0\n1000 0.5\n".to_owned()),
        _ => Err(format!("{path}: no such file")),
    };
    let scenario = Scenario::parse_with_files("t.toml", &text, &[], None, &files)?;
    Ok(Application::clone(&scenario.flows[0].application))
}

#[test]
fn what_the_application_of_a_flow_does_is_read() {
    let arrivals = of_traffic(
        "{ kind = \"arrivals\", load = 0.5, link = \"BS>MH\", size = { file = \"web.cdf\" } }",
    );
    let Ok(Application::Arrivals(arrivals)) = arrivals else { panic!("{arrivals:?}") };
    // Half of 250 kbit/s, in transfers of 1750 B.
    assert!((arrivals.per_second - 125e3 / (8.0 * 1750.0)).abs() < 1e-9, "{arrivals:?}");
    let video = of_traffic("{ kind = \"video\", ladder = [\"1 Mbit/s\", \"2.5 Mbit/s\"] }");
    let Ok(Application::Video(video)) = video else { panic!("{video:?}") };
    let rates: Vec<u64> = video.ladder.rates().iter().map(|rate| rate.bits_per_sec()).collect();
    assert_eq!((rates, video.start_at), (vec![1_000_000, 2_500_000], Duration::from_secs(8)));
}

#[test]
fn a_load_on_a_link_with_mistakes_is_no_mistake() {
    let load = |link: &str| {
        let traffic =
            format!("{{ kind = \"arrivals\", load = 0.5, link = \"{link}\", size = \"1 kB\" }}");
        let text = BASE.replace("rate = \"250 kbit/s\"", "rate = \"250\"");
        parse(&format!("{text}traffic = {traffic}\n")).expect_err(link).to_string()
    };
    let rate = "link.BS-MH.rate: \"250\" has no unit";
    let error = load("BS>MH");
    assert!(error.contains(rate) && !error.contains("no link"), "{error}");
    let error = load("BS>MX");
    assert!(error.contains(rate) && error.contains("no link \"BS>MX\""), "{error}");
}

#[test]
fn mistakes_in_traffic_are_refused() {
    for (traffic, expected) in [
        (
            "{ kind = \"request\" }",
            "\"request\" is not a choice here (expected \"requests\", \"arrivals\", \"on-off\" or \"video\"; did you mean `requests`?)",
        ),
        ("{ kind = \"requests\" }", "answer: missing"),
        (
            "{ kind = \"requests\", answer = { } }",
            "has no distribution (expected exponential or pareto or file)",
        ),
        (
            "{ kind = \"requests\", answer = { pareto = { shape = 1.5, min = \"2 kB\", max = \"1 kB\" } } }",
            "answer.pareto.max: is below `min` (expected at least `min`)",
        ),
        (
            "{ kind = \"arrivals\", per-second = 1, size = { file = \"bad.cdf\" } }",
            "size.file: bad.cdf: line 2: the last probability is 0.5 (expected 1, or 100 for percentages)",
        ),
        (
            "{ kind = \"arrivals\", load = 0.5, link = \"BS>MX\", size = \"1 kB\" }",
            "link: no link \"BS>MX\" (did you mean `BS>MH`?)",
        ),
        ("{ kind = \"arrivals\", load = 0.5, size = \"1 kB\" }", "link: missing"),
        ("{ kind = \"arrivals\", size = \"1 kB\" }", "per-second: missing"),
        (
            "{ kind = \"arrivals\", per-second = 1, load = 0.5, link = \"BS>MH\", size = \"1 kB\" }",
            "load: contradicts `per-second`",
        ),
        (
            "{ kind = \"arrivals\", per-second = 1, size = \"1 kB\", stop = \"0.000000001 s\" }\n\
             start = \"1 s\"",
            "traffic: nothing begins after the start at 1 s (expected a stop after `start`)",
        ),
        (
            "{ kind = \"video\", ladder = [\"2 Mbit/s\", \"1 Mbit/s\"] }",
            "ladder: 1 Mbit/s does not come after 2 Mbit/s (expected ascending bitrates)",
        ),
        ("{ kind = \"video\", ladder = [\"2 Mbits\"] }", "ladder: \"2 Mbits\" is no rate"),
        (
            "{ kind = \"video\", ladder = [\"2 Mbit/s\"], buffer = \"6 s\" }",
            "buffer: a buffer of 6 s does not hold 8 s (expected a buffer of at least 8 s)",
        ),
        ("{ kind = \"on-off\", rate = \"1 Mbit/s\", on = \"1 s\" }", "off: missing"),
        (
            "{ kind = \"requests\", answer = \"1 kB\" }\nbytes = \"1 MB\"",
            "bytes: has no effect beside traffic (expected either bytes or traffic)",
        ),
        (
            "{ kind = \"requests\", answer = \"1 kB\" }\nopens = \"sender\"",
            "opens: with this traffic the receiver opens the connection (expected \"receiver\")",
        ),
        (
            "{ kind = \"arrivals\", per-second = 1, size = \"1 kB\" }\nreceiver = { on-link = \"freeze\" }",
            "traffic: connections that come and go are not told of the link (expected on-link = \"none\")",
        ),
    ] {
        let error = of_traffic(traffic).expect_err(traffic).to_string();
        assert!(error.contains(expected), "{traffic}: {error}");
    }
}

#[test]
fn a_call_is_read_among_the_sources_and_checked() {
    let call = |keys: &str| parse(&format!("{CELL}[[call]]\nfrom = \"AP\"\nto = \"MH\"\n{keys}"));
    let scenario = call("codec = \"g729a\"\njitter-buffer = \"40 ms\"").expect("a right call");
    let Datagrams::Call(spec) = &scenario.udp[0].datagrams else { panic!("{scenario:?}") };
    assert_eq!((spec.jitter_buffer, spec.packet()), (Duration::from_millis(40), Bytes(60)));
    let error = call("codec = \"g771\"").expect_err("no such codec").to_string();
    assert!(
        error.contains("codec: \"g771\" is not a choice here (expected \"g711\" or \"g729a\"; did you mean `g711`?)"),
        "{error}"
    );
    let error = call("start = \"20 s\"").expect_err("too late").to_string();
    assert!(error.contains("after the end of the run"), "{error}");
}

#[test]
fn files_are_read_from_the_folder_of_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cell.toml");
    let text = "duration = \"1 s\"\nnode = [{ name = \"A\", position = [\"0 m\", \"0 m\"] }, { name = \"B\", mobility = { file = \
                \"b.movements.gz\" } }]\nwlan = [{ name = \"w\", stations = [\"A\", \"B\"] }]\n\
                udp = [{ from = \"A\", to = \"B\", rate = \"1 kbit/s\" }]";
    let parse = || Scenario::parse(path.to_str().unwrap(), text, &[]);
    let missing = parse().expect_err("there is no file").to_string();
    assert!(missing.contains("b.movements.gz: there is no such file"), "{missing}");
    let file = std::fs::File::create(folder.path().join("b.movements.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    std::io::Write::write_all(&mut packed, b"0 4 2\n").unwrap();
    packed.finish().unwrap();
    let scenario = parse().expect("with the file");
    let station = &scenario.wlans[0].stations[1];
    let place = scenario.movement(station, 1).position(Instant::ZERO);
    assert_eq!(place, Position { x: 4.0, y: 2.0 });
}

#[test]
fn a_routing_protocol_that_does_not_exist_is_refused() {
    let routing = |set: &[(&str, &str)], expected: &str| {
        assert_eq!(with(set).expect_err(expected).to_string(), expected);
    };
    routing(
        &[("routing.protocol", "aovd")],
        "--set:1:18: routing.protocol: \"aovd\" is not a choice here (expected \"shortest-path\", \"aodv\", \
         \"dsr\" or \"gpsr\"; did you mean `aodv`?)",
    );
    routing(
        &[("routing.protocol", "aodv"), ("routing.preset", "ns3")],
        "--set:1:16: routing.preset: \"ns3\" is not a choice here (expected \"rfc\", \"ns2\" or \"glomosim\"; \
         did you mean `ns2`?)",
    );
    routing(
        &[("routing.protocol", "dsr"), ("routing.preset", "glomosim")],
        "--set:1:16: routing.preset: \"glomosim\" is not a choice here (expected \"rfc\" or \"ns2\")",
    );
    routing(
        &[("routing.protocol", "gpsr"), ("routing.ttl-start", "2")],
        "--set:1:1: routing.ttl-start: has no effect with protocol = \"gpsr\" (expected protocol = \"aodv\")",
    );
    routing(
        &[("routing.protocol", "aodv"), ("routing.hello-interval", "2 s")],
        "--set:1:1: routing.hello-interval: has no effect with link-detection = \"link-layer\" (expected \
         link-detection = \"hello\")",
    );
}

#[test]
fn a_routing_protocol_is_its_preset_with_the_keys_of_the_file() {
    for preset in aodv::Preset::ALL {
        let name = [("routing.protocol", "aodv"), ("routing.preset", preset.word())];
        let expected = preset.config();
        let routing = |config| RoutingConfig::Aodv(ByPreset(Arc::new(config)));
        assert_eq!(with(&name).unwrap().routing, routing(expected.clone()));
        let changed = [("routing.ttl-start", "9"), ("routing.local-repair", "off")];
        let changed = with(&[&name[..], &changed[..]].concat()).unwrap().routing;
        let (ttl_start, local_repair) = (9, aodv::LocalRepair::Off);
        let expected = aodv::AodvConfig { ttl_start, local_repair, ..expected };
        assert_eq!(changed, routing(expected));
    }
}

#[test]
fn mechanisms_take_their_settings_from_the_file() {
    let kind = |set: &[(&str, &str)]| {
        let set: Vec<_> =
            set.iter().map(|(key, value)| (format!("node.AP.middlebox.{key}"), *value)).collect();
        let set: Vec<_> = set.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        let spec = cell(&set).unwrap().nodes[NodeId(0)].middlebox.clone().unwrap();
        let MechanismSpec::Edge(mechanism) = spec.mechanism else { panic!("{spec:?}") };
        (mechanism, spec.memory)
    };
    let (memory, ms) = (Bytes(64 << 20), Duration::from_millis);
    assert_eq!(kind(&[]), (MechanismConfig::MTcpPlus(MTcpPlusConfig::default()), memory));
    let (resume, max_down, probe_interval) = (Resume::Probe, Some(ms(60_000)), Some(ms(500)));
    let (acknowledge, open) = (Acknowledge::InTime(ms(5000)), Open::InSteps);
    let config =
        MTcpPlusConfig { fifo: Bytes(8760), resume, max_down, probe_interval, acknowledge, open };
    let set = [
        ("fifo", "8760 B"),
        ("resume", "probe"),
        ("acknowledge", "in-time"),
        ("ack-pacing", "5 s"),
        ("open", "in-steps"),
        ("max-down", "60 s"),
        ("probe-interval", "500 ms"),
        ("memory", "1 MB"),
    ];
    assert_eq!(kind(&set), (MechanismConfig::MTcpPlus(config), Bytes(1_000_000)));
    let config = HoldoverConfig::default();
    assert_eq!(kind(&[("mechanism", "holdover")]), (MechanismConfig::Holdover(config), memory));
    let config = HoldoverConfig { fifo: Bytes(8760), max_down, probe_interval };
    let set = [
        ("mechanism", "holdover"),
        ("fifo", "8760 B"),
        ("max-down", "60 s"),
        ("probe-interval", "0.5 s"),
    ];
    assert_eq!(kind(&set), (MechanismConfig::Holdover(config), memory));
    let config = MTcpConfig::default();
    assert_eq!(kind(&[("mechanism", "m-tcp")]), (MechanismConfig::MTcp(config), memory));
    let config =
        MTcpConfig { timer: ms(500), max_down: Some(ms(60_000)), release: ms(50), ..config };
    let set =
        [("mechanism", "m-tcp"), ("timer", "0.5 s"), ("max-down", "60 s"), ("release", "50 ms")];
    assert_eq!(kind(&set), (MechanismConfig::MTcp(config), memory));
    let config = SnoopConfig::default();
    assert_eq!(kind(&[("mechanism", "snoop")]), (MechanismConfig::Snoop(config), memory));
    let config = SnoopConfig { min_timeout: ms(50), attempts: 3, ..config };
    let set = [("mechanism", "snoop"), ("min-timeout", "50 ms"), ("attempts", "3")];
    assert_eq!(kind(&set), (MechanismConfig::Snoop(config), memory));
}

const SPLIT: &str = "name = \"BS\"\nmiddlebox = { mechanism = \"split\", mobiles = [\"MH\"] }";

#[test]
fn a_node_that_splits_has_the_tcp_of_the_scenario_but_for_its_own_keys() {
    let splits = |keys: &str| {
        let spec = SPLIT.replace("[\"MH\"]", &format!("[\"MH\"]{keys}"));
        let scenario = parse(&BASE.replace("name = \"BS\"", &spec)).unwrap();
        let spec = scenario.nodes[NodeId(1)].middlebox.clone().unwrap();
        assert_eq!((spec.memory, spec.signal), (Bytes(0), None));
        let MechanismSpec::Split(tcp) = spec.mechanism else { panic!("{spec:?}") };
        let sender = scenario.flows[0].sender.clone();
        ((*tcp).clone(), (*sender).clone())
    };
    let with_buffer = |tcp: TcpConfig, buffer| TcpConfig {
        receive_buffer: buffer,
        send_buffer: buffer,
        autotuning: false,
        ..tcp
    };
    let (tcp, hosts) = splits("");
    assert_eq!(tcp, with_buffer(hosts, Bytes(64_000)));
    let (tcp, hosts) = splits(", buffer = \"1 MB\", tcp = { congestion = \"reno\" }");
    let congestion = Congestion::Reno;
    assert_eq!(tcp, with_buffer(TcpConfig { congestion, ..hosts }, Bytes(1_000_000)));
}

#[test]
fn a_node_that_splits_has_no_use_for_a_hosts_buffers() {
    let keys = |keys: &str| SPLIT.replace("[\"MH\"]", &format!("[\"MH\"], {keys}"));
    refuses(
        "name = \"BS\"",
        &keys("buffer = \"900 B\""),
        &[
            "t.toml:6:63: node.BS.middlebox.buffer: 900 B hold no segment of 1000 B (expected at least the node's mss)",
        ],
    );
    refuses(
        "name = \"BS\"",
        &keys("buffer = \"100 kB\", tcp = { window-scaling = false }"),
        &[
            "t.toml:6:63: node.BS.middlebox.buffer: a window of 100000 B needs window scaling (expected at most 65535 B, or \
          tcp.window-scaling = true)",
        ],
    );
    refuses(
        "name = \"BS\"",
        &keys("tcp = { receive-buffer = \"1 MB\", on-link = \"freeze\" }"),
        &[
            "t.toml:6:62: node.BS.middlebox.tcp.receive-buffer: has no effect at a node that splits (expected buffer)",
            "t.toml:6:87: node.BS.middlebox.tcp.on-link: has no effect at a node that splits (expected it at the \
             mobile: in [tcp] or at a flow's end)",
        ],
    );
    refuses(
        "name = \"BS\"",
        &keys("signal = { lead = \"0 s\" }"),
        &[
            "t.toml:6:54: node.BS.middlebox.signal: has no effect with mechanism = \"split\" (expected mechanism = \
          \"m-tcp-plus\", \"holdover\" or \"wake\", or mechanism = \"m-tcp\" and detect = \"signal\")",
        ],
    );
}

#[test]
fn what_split_tcp_cannot_serve_is_refused() {
    let text = BASE.replace("name = \"BS\"", SPLIT);
    let between_mobiles = parse(&text.replace("[\"MH\"]", "[\"FH\", \"MH\"]"));
    let message = between_mobiles.unwrap_err().to_string();
    assert!(message.contains("mobiles: flow FH-MH begins and ends at mobiles"), "{message}");
    let traffic =
        "traffic = { kind = \"arrivals\", per-second = 10, size = \"30 kB\", stop = \"4 s\" }";
    let transfers = parse(&text.replace(TO, &format!("{TO}\n{traffic}")));
    let message = transfers.unwrap_err().to_string();
    assert!(message.contains("mechanism: transfers of flow FH-MH come and go"), "{message}");
}

#[test]
fn a_fifo_smaller_than_a_segment_is_refused() {
    let error = cell(&[("node.AP.middlebox.fifo", "1000 B")]).unwrap_err().to_string();
    assert_eq!(
        error,
        "--set:1:24: node.AP.middlebox.fifo: 1000 B hold no segment of 1448 B (expected at least the \
         largest mss of a flow to a mobile)"
    );
}

#[test]
fn signals_are_early_late_or_absent() {
    let signal = |value: &str| {
        let scenario = cell(&[("node.AP.middlebox.signal", value)]).unwrap();
        scenario.nodes[NodeId(0)].middlebox.as_ref().unwrap().signal
    };
    let ms = Duration::from_millis;
    let (late, delay, missing) = (Duration::ZERO, Duration::ZERO, 0.0);
    let level = None;
    let usual = SignalSpec { lead: ms(50), late, delay, missing, level };
    assert_eq!(cell(&[]).unwrap().nodes[NodeId(0)].middlebox.as_ref().unwrap().signal, Some(usual));
    assert_eq!(signal("none"), None);
    assert_eq!(signal("{}"), Some(usual));
    let all = "{ lead = \"0 s\", delay = \"10 ms\", missing = 0.5 }";
    let expected = SignalSpec { lead: Duration::ZERO, late, delay: ms(10), missing: 0.5, level };
    assert_eq!(signal(all), Some(expected));
    let expected = SignalSpec { lead: Duration::ZERO, late: ms(20), delay, missing, level };
    assert_eq!(signal("{ late = \"20 ms\" }"), Some(expected));
    cell_refuses(
        "mobiles = [\"MH\"] }",
        "mobiles = [\"MH\"], signal = { lead = \"1 ms\", late = \"1 ms\" } }",
        &[
            "t.toml:4:92: node.AP.middlebox.signal.late: contradicts lead (expected either lead or late)",
        ],
    );
    cell_refuses(
        "mobiles = [\"MH\"] }",
        "mobiles = [\"MH\"], signal = \"never\" }",
        &["t.toml:4:68: node.AP.middlebox.signal: found \"never\" (expected \"none\" or a table)"],
    );
}

/// BASE with a mechanism at `BS`, for these mobiles.
fn edge(mechanism: &str, mobiles: &str) -> String {
    let middlebox = format!("middlebox = {{ mechanism = {mechanism:?}, mobiles = [{mobiles:?}] }}");
    BASE.replace("name = \"BS\"", &format!("name = \"BS\"\n{middlebox}"))
}

#[test]
fn mobiles_are_where_outages_and_flows_are() {
    let outage =
        |link: &str| format!("delay = {link:?}\noutage = {{ listed = [[\"5 s\", \"6 s\"]] }}");
    let on = |link: &str, text: &str| text.replace(&format!("delay = {link:?}"), &outage(link));
    let check = |text: &str| parse(text).map_err(|error| error.to_string());
    for mechanism in ["m-tcp-plus", "holdover", "wake"] {
        assert!(check(&on("170 ms", &edge(mechanism, "MH"))).is_ok(), "the mobile's link");
    }
    assert!(check(&edge("wake", "FH")).is_ok(), "without outages either side will do");
    let refused = |text: &str| check(text).expect_err("it has nothing to do");
    assert_eq!(
        refused(&on("170 ms", &edge("wake", "FH"))),
        "t.toml:6:45: node.BS.middlebox.mobiles: none of the outages, as of BS>MH, is on their side \
         (expected nodes that an outage cuts off from this one)"
    );
    // The flow goes from FH to MH.
    for mechanism in ["m-tcp", "m-tcp-plus", "holdover", "snoop"] {
        let error = refused(&edge(mechanism, "FH"));
        assert!(error.contains("mobiles: no flow brings them data"), "{error}");
    }
    for mechanism in ["m-tcp", "wake"] {
        let both = edge(mechanism, "MH").replace("[\"MH\"] }", "[\"MH\", \"FH\"] }");
        let at_its_end = edge(mechanism, "MH").replacen("FH", "SN", 1).replacen("BS", "FH", 1);
        let at_its_end = at_its_end.replacen("SN", "BS", 1);
        for text in [both, at_its_end] {
            let error = refused(&text);
            assert!(error.contains("mobiles: no flow has one end among them"), "{error}");
        }
    }
    // Both ways, if one asks.
    let asks = "to = \"MH\"\ntraffic = { kind = \"requests\", answer = \"10 kB\" }";
    let asking = edge("m-tcp", "FH").replace("to = \"MH\"", asks);
    assert_eq!(check(&asking).map(drop), Ok(()));
    let silent =
        on("170 ms", &edge("wake", "FH")).replace("\"FH\"] }", "\"FH\"], signal = \"none\" }");
    assert!(check(&silent).is_ok(), "it gets no signals");

    // Another mobile, to which no flow goes.
    let idle = edge("snoop", "XX") + "[[node]]\nname = \"XX\"\n";
    assert_eq!(
        check(&idle).expect_err("it has nothing to do"),
        "t.toml:6:46: node.BS.middlebox.mobiles: no flow begins or ends at them (expected an end of a flow)"
    );
    // A mistake in the flow is not the mobile's.
    for (flow, mistake) in [("to = \"MH\"", "to = \"MN\""), ("[[flow]]", "[[flows]]")] {
        let wrong = edge("snoop", "MH").replacen(flow, mistake, 1);
        let error = check(&wrong).expect_err(mistake);
        assert!(!error.contains("mobiles"), "{error}");
    }
}

#[test]
fn an_end_reacts_to_outages_of_its_node_not_of_a_link() {
    let on_link = "to = \"MH\"\nreceiver = { on-link = \"freeze\" }";
    let reacts = BASE.replace("to = \"MH\"", on_link);
    assert!(parse(&reacts).is_ok(), "nothing has an outage");
    let outage = "outage = { listed = [[\"5 s\", \"6 s\"]] }";
    let of_link = reacts.replace("delay = \"170 ms\"", &format!("delay = \"170 ms\"\n{outage}"));
    let error = parse(&of_link).expect_err("the radio tells of none").to_string();
    assert!(
        error.contains("with on-link = \"freeze\" it is told of the node's outages"),
        "{error}"
    );
    assert!(error.contains("not of those of BS>MH (expected `outage` in the [[node]])"), "{error}");
    let of_both = of_link.replace("name = \"MH\"", &format!("name = \"MH\"\n{outage}"));
    assert!(parse(&of_both).is_ok());
}

#[test]
fn any_node_of_random_pairs_may_be_a_mobile() {
    for mobile in 0..6 {
        let scenario = parse(&format!(
            r#"
            duration = "1 s"
            node = [
                {{ name = "n", count = 6 }},
                {{ name = "d", middlebox = {{ mechanism = "snoop", mobiles = ["n{mobile}"] }} }},
            ]
            wlan = [{{ name = "field", stations = ["n", "d"] }}]
            [[flow]]
            from = "n"
            to = "n"
            random-pairs = 1
            "#
        ));
        assert!(scenario.is_ok(), "{:?}", scenario.err().map(|error| error.to_string()));
    }
}

#[test]
fn what_a_table_lacks_comes_after_the_key_that_may_be_it() {
    refuses(
        DELAY,
        &format!("{DELAY}\noutage = {{ windows = [[\"5 s\", \"6 s\"]] }}"),
        &[
            "t.toml:16:12: link.BS-MH.outage.windows: unknown key (expected one of mode, listed, period, \
             start, end, origin)",
            "t.toml:16:10: link.BS-MH.outage: has no times (expected listed = [[start, end], …] or period \
             and end)",
        ],
    );
}

#[test]
fn m_tcp_gets_signals_or_holds_copies() {
    let by_signal =
        [("node.AP.middlebox.mechanism", "m-tcp"), ("node.AP.middlebox.detect", "signal")];
    let edge = |more: &[(&'static str, &'static str)]| {
        let scenario = cell(&[&by_signal[..], more].concat())?;
        Ok::<_, ConfigError>(scenario.nodes[NodeId(0)].middlebox.clone().unwrap())
    };
    let told = edge(&[("node.AP.middlebox.signal.lead", "0 s")]).unwrap();
    assert_eq!(told.signal.map(|signal| signal.lead), Some(Duration::ZERO));
    cell_refuses(
        "mechanism = \"m-tcp-plus\", mobiles = [\"MH\"] }",
        "mechanism = \"m-tcp\", detect = \"signal\", mobiles = [\"MH\"], timer = \"1 s\", fifo = \"1 MB\", memory = \"1 MB\" }",
        &[
            "t.toml:4:73: node.AP.middlebox.timer: has no effect with detect = \"signal\" (expected detect = \
             \"timer\")",
            "t.toml:4:88: node.AP.middlebox.fifo: has no effect with detect = \"signal\" (expected detect = \
             \"timer\", or mechanism = \"m-tcp-plus\", \"holdover\" or \"snoop\")",
            "t.toml:4:103: node.AP.middlebox.memory: has no effect with detect = \"signal\" (expected mechanism = \
             \"m-tcp-plus\", \"holdover\" or \"snoop\", or detect = \"timer\")",
        ],
    );
    cell_refuses(
        "mechanism = \"m-tcp-plus\", mobiles = [\"MH\"] }",
        "mechanism = \"m-tcp\", mobiles = [\"MH\"], signal = \"none\" }",
        &[
            "t.toml:4:54: node.AP.middlebox.signal: has no effect with detect = \"timer\" (expected mechanism = \
             \"m-tcp-plus\", \"holdover\" or \"wake\", or detect = \"signal\")",
        ],
    );
    // What the file says for the mechanism that --set replaces is obsolete, not contradictory.
    let file = CELL.replace(
        "mobiles = [\"MH\"] }",
        "mobiles = [\"MH\"], signal = \"none\", memory = \"1 MB\" }",
    );
    for set in [&by_signal[..], &by_signal[..1]] {
        let set: Vec<(String, String)> =
            set.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect();
        let read = Scenario::parse("t.toml", &file, &set);
        assert!(read.is_ok(), "{set:?}: {read:?}");
    }
}

#[test]
fn cross_traffic_is_read_and_checked() {
    let noise = |keys: &str| {
        let udp = format!("[[udp]]\nfrom = \"AP\"\nto = \"MH\"\n{keys}");
        parse(&format!("{CELL}{udp}")).map(|mut scenario| scenario.udp.remove(0))
    };
    let whole = noise(
        "name = \"x\"\nrate = \"1 Mbit/s\"\nsize = \"500 B\"\nstart = \"1 s\"\nstop = \"2 s\"\non = \"3 s\"\n\
         off = \"4 s\"\nperiods = \"constant\"",
    );
    let (on, off) = (Duration::from_secs(3), Duration::from_secs(4));
    let expected = UdpSpec {
        name: "x".to_owned(),
        from: NodeId(0),
        to: NodeId(1),
        dscp: Dscp::DEFAULT,
        start: Instant::from_secs(1),
        stop: Some(Instant::from_secs(2)),
        datagrams: Datagrams::Paced {
            rate: DataRate::mbps(1),
            size: Sizes::constant(Bytes(500)),
            arrivals: DatagramArrivals::Constant,
            on_off: Some(OnOff { on: Times::constant(on), off: Times::constant(off) }),
        },
    };
    assert_eq!(whole.unwrap(), expected);
    let least = noise("rate = \"saturated\"").unwrap();
    let saturated = Datagrams::Saturated { size: Sizes::constant(Bytes(1500)) };
    assert_eq!((least.name.as_str(), least.datagrams), ("AP-MH", saturated));
    assert_eq!((least.start, least.stop), (Instant::ZERO, None));

    for (keys, expected) in [
        (
            "",
            "t.toml:20:1: udp.0.rate: missing (expected \"saturated\" or a rate above zero with its \
              unit, such as \"250 kbit/s\")",
        ),
        (
            "rate = \"1 bps\"\nstart = \"20 s\"",
            "t.toml:24:9: udp.0.start: starts at 20 s, after the end of the run (expected a start before \
             `duration`)",
        ),
        (
            "rate = \"1 bps\"\nstart = \"2 s\"\nstop = \"2 s\"",
            "t.toml:25:8: udp.0.stop: not after the start at 2 s (expected a stop after `start`)",
        ),
        (
            "rate = \"1 bps\"\non = \"2 s\"",
            "t.toml:20:1: udp.0.off: missing (expected both on and off, or none)",
        ),
        (
            "rate = \"1 bps\"\nperiods = \"constant\"",
            "t.toml:24:11: udp.0.periods: has no effect without on and off (expected on and off, whose \
             lengths it describes)",
        ),
        (
            "rate = \"saturated\"\narrivals = \"poisson\"",
            "t.toml:24:12: udp.0.arrivals: has no effect with rate = \"saturated\" (expected a rate such as \
             \"250 kbit/s\")",
        ),
        (
            "rate = \"1 bps\"\nperiods = \"constant\"\non = { exponential = \"1 s\" }\noff = { exponential = \"1 s\" }",
            "t.toml:24:11: udp.0.periods: has no effect on distributions (expected on or off as a mean)",
        ),
        (
            "rate = \"saturated\"\non = \"2 s\"\noff = \"2 s\"",
            "t.toml:24:6: udp.0.on: has no effect with rate = \"saturated\" (expected a rate such as \
             \"250 kbit/s\")",
        ),
    ] {
        assert_eq!(noise(keys).unwrap_err().to_string(), expected);
    }
}

/// A phone that walks out of the range of an access point and comes back.
const WALK: &str = r#"
duration = "90 s"
[[node]]
name = "server"
[[node]]
name = "AP"
position = ["0 m", "0 m"]
[[node]]
name = "phone"
position = ["200 m", "0 m"]
mobility = { model = "path", waypoints = [["10 s", "200 m", "0 m"], ["40 s", "320 m", "0 m"], ["70 s", "200 m", "0 m"]] }
[[link]]
between = ["server", "AP"]
rate = "100 Mbit/s"
delay = "10 ms"
[[wlan]]
name = "cell"
stations = ["AP", "phone"]
preset = "ns2"
[[flow]]
from = "server"
to = "phone"
"#;

#[test]
fn thresholds_of_a_level_are_in_order_and_are_crossed() {
    let level = |keys: &str| {
        format!(
            "name = \"AP\"\nmiddlebox = {{ mechanism = \"m-tcp-plus\", mobiles = [\"phone\"], signal = {{ {keys} }} }}"
        )
    };
    let text = |keys: &str| WALK.replace("name = \"AP\"", &level(keys));
    let refused = |keys: &str| parse(&text(keys)).expect_err(keys).to_string();
    let spec = parse(&text("level = { down = \"-64 dBm\", up = \"-63 dBm\" }")).unwrap();
    let signal = spec.nodes[NodeId(1)].middlebox.clone().unwrap().signal.unwrap();
    let [down, up] = [-64.0, -63.0].map(Power::from_dbm);
    assert_eq!(signal.level, Some(LevelThresholds { fading: None, down, up }));
    assert_eq!(signal.lead, Duration::ZERO);
    for (keys, expected) in [
        (
            "level = { down = \"-60 dBm\", up = \"-63 dBm\" }",
            "level.up: is lower than down: the mobile would be up and down at once (expected a level \
             of at least `down`)",
        ),
        (
            "lead = \"1 s\", level = { down = \"-64 dBm\", up = \"-63 dBm\" }",
            "lead: contradicts level, whose key `fading` comes instead (expected either lead or level)",
        ),
        (
            "level = { down = \"-64 dBm\" }",
            "level.up: missing (expected a power with its unit, such as \"-81 dBm\")",
        ),
        (
            "level = { down = \"-80 dBm\", up = \"-63 dBm\" }",
            "level.down: the level is never below it, -68.7 dBm at least (expected a level that a \
             mobile leaves)",
        ),
        (
            "level = { down = \"-64 dBm\", up = \"-50 dBm\" }",
            "level.up: the level never reaches it, -60.5 dBm at most (expected a level that a mobile \
             reaches)",
        ),
    ] {
        let found = refused(keys);
        let (_, message) = found.split_once("node.AP.middlebox.signal.").expect(&found);
        assert_eq!(message, expected);
    }
    // A random walk may cross them.
    let random =
        "mobility = { model = \"random-waypoint\", area = [\"9 m\", \"9 m\"], speed = \"1 m/s\" }";
    let walk = WALK.lines().find(|line| line.starts_with("mobility")).unwrap();
    let text = text("level = { down = \"-64 dBm\", up = \"-63 dBm\" }");
    parse(&text.replace(walk, random).replace("position = [\"200 m\", \"0 m\"]", "")).unwrap();
    // Without a cell there is no level.
    let wired = text.replace(
        "[[wlan]]\nname = \"cell\"\nstations = [\"AP\", \"phone\"]\n",
        "[[link]]\nbetween = [\"AP\", \"phone\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n",
    );
    let wired = wired.replace(walk, "");
    let error = parse(&wired).unwrap_err().to_string();
    assert!(error.contains("signal.level: no mobile is in a cell with the node (expected a [[wlan]] with both among its stations)"), "{error}");
}

#[test]
fn traffic_between_nodes_that_nothing_connects_is_refused() {
    let island = "[[node]]\nname = \"island\"\n[[link]]";
    let apart = BASE.replacen("[[link]]", island, 1);
    let text = apart.replace("to = \"MH\"", "to = \"island\"");
    let error = parse(&text).unwrap_err().to_string();
    let expected = "t.toml:22:6: flow.FH-island.to: no links or cells lead from \"FH\" to \"island\" (expected a \
                    node that they connect)";
    assert_eq!(error, expected);
    let udp = "\n[[udp]]\nfrom = \"island\"\nto = \"MH\"\nrate = \"1 kbit/s\"\n";
    let error = parse(&format!("{apart}{udp}")).unwrap_err().to_string();
    assert!(error.contains("udp.0.to: no links or cells lead from"), "{error}");
    // A cell connects its stations, in range of each other or not.
    let cell = format!("{text}\n[[wlan]]\nname = \"cell\"\nstations = [\"BS\", \"island\"]\n");
    parse(&cell).unwrap();
    // Where a link has a mistake, that is reported alone.
    let error = parse(&text.replace("delay = \"5 ms\"", "delay = \"5\"")).unwrap_err().to_string();
    assert!(!error.contains("no links"), "{error}");
}

/// BASE with the link from BS to MH in a cell beside another one; `link` replaces its delay, and
/// `end` follows everything.
fn in_cell(cell: &str, link: &str, end: &str) -> String {
    let base = BASE.replace(DELAY, link);
    format!(
        "{base}[[node]]\nname = \"other\"\n[[link]]\nbetween = [\"BS\", \"other\"]\nrate = \"1 Mbit/s\"\n\
         delay = \"5 ms\"\nforward = {{ cell = \"down\" }}\n[[cell]]\nname = \"down\"\n{cell}\n{end}"
    )
}

const SCHEDULER: &str = "scheduler = \"round-robin\"";
const MEMBER: &str = "delay = \"170 ms\"\nforward = { cell = \"down\" }";

#[test]
fn cells_are_read_with_their_links() {
    let cell = "scheduler = \"proportional-fair\"\ntime-constant = \"200 ms\"\ntti = \"2 ms\"";
    let scenario = parse(&in_cell(cell, MEMBER, "")).unwrap();
    let [down] = scenario.cells.as_slice() else { panic!("{:?}", scenario.cells) };
    let time_constant = Duration::from_millis(200);
    let scheduler = SchedulerConfig::ProportionalFair { time_constant };
    assert_eq!(down.config, CellConfig { tti: Duration::from_millis(2), scheduler, rlc: None });
    let members = scenario.links.iter().filter(|link| link.cell().is_some());
    assert_eq!(members.map(|link| &*link.name).collect::<Vec<_>>(), ["BS>MH", "BS>other"]);
}

/// The same cell and links give exactly this diagnostic.
#[track_caller]
fn refuses_cell(cell: &str, link: &str, end: &str, expected: &str) {
    let found = parse(&in_cell(cell, link, end)).expect_err(expected).to_string();
    assert_eq!(found.lines().collect::<Vec<_>>(), [expected]);
}

#[test]
fn a_cell_that_can_do_nothing_is_refused() {
    refuses_cell(
        SCHEDULER,
        DELAY,
        "",
        "t.toml:29:8: cell.down.name: has no effect with the link BS>other alone (expected \
         `forward.cell` or `backward.cell` of two links, or of one and `rlc`)",
    );
    refuses_cell(
        SCHEDULER,
        MEMBER,
        "[[cell]]\nname = \"up\"\nscheduler = \"max-rate\"",
        "t.toml:33:8: cell.up.name: has no effect: no link names it (expected `forward.cell` or \
         `backward.cell` of two links, or of one and `rlc`)",
    );
    let repaired = format!("{SCHEDULER}\nrlc = {{ bler = 0.1 }}");
    assert!(parse(&in_cell(&repaired, DELAY, "")).is_ok());
    refuses_cell(
        "scheduler = \"max-rate\"\ntime-constant = \"1 s\"",
        MEMBER,
        "",
        "t.toml:32:1: cell.down.time-constant: has no effect with scheduler = \"max-rate\" (expected \
         scheduler = \"proportional-fair\")",
    );
}

#[test]
fn a_cell_that_cannot_be_is_refused() {
    refuses_cell(
        "scheduler = \"proportional-fair\"\ntime-constant = \"0.5 ms\"",
        MEMBER,
        "",
        "t.toml:32:17: cell.down.time-constant: 500 us is less than an interval of 1 ms (expected at \
         least the tti)",
    );
    refuses_cell(
        &format!("{SCHEDULER}\nrlc = {{ bler = 0.2, tti = \"2 ms\" }}"),
        MEMBER,
        "",
        "t.toml:32:7: cell.down.rlc: has a tti of its own (expected the tti of the cell)",
    );
    refuses_cell(
        SCHEDULER,
        MEMBER,
        "[[cell]]\nname = \"down\"\nscheduler = \"max-rate\"",
        "t.toml:33:8: cell.down.name: a second cell \"down\"",
    );
    refuses_cell(
        SCHEDULER,
        "delay = \"170 ms\"\nforward = { cell = \"dowm\" }",
        "",
        "t.toml:16:20: link.BS-MH.forward.cell: no cell is called \"dowm\" (did you mean `down`?)",
    );
    // A cell has directions of links.
    refuses_cell(
        SCHEDULER,
        &format!("{MEMBER}\ncell = \"down\""),
        "",
        "t.toml:17:1: link.BS-MH.cell: unknown key (expected forward.cell or backward.cell)",
    );
    let far = "[[node]]\nname = \"far\"\n[[link]]\nbetween = [\"FH\", \"far\"]\nrate = \"1 Mbit/s\"\n\
               delay = \"5 ms\"\nforward = { cell = \"down\" }";
    refuses_cell(
        SCHEDULER,
        DELAY,
        far,
        "t.toml:29:8: cell.down.name: its links have no node in common: not all of them end at BS or \
         other (expected links of one base station)",
    );
}

#[test]
fn what_a_cell_cannot_schedule_is_refused() {
    let member = |keys: &str| MEMBER.replace(" }", &format!(", {keys} }}"));
    for (keys, expected) in [
        (
            "rlc = {}",
            "contradicts the link's `rlc`, whose blocks have times of their own (expected rlc of the \
             cell)",
        ),
        (
            "rate = \"500 bit/s\"",
            "at 500 bit/s, an interval of 1 ms has less than a bit (expected a longer tti or a higher \
             rate)",
        ),
    ] {
        let expected = format!("t.toml:16:20: link.BS-MH.forward.cell: {expected}");
        refuses_cell(SCHEDULER, &member(keys), "", &expected);
    }
    // Of a channel that is refused, nothing else is said.
    let fading = "rate = { fading = { snr = \"-40 dB\", bandwidth = \"9 MHz\", coherence-time = \"5 ms\" } }";
    refuses_cell(
        SCHEDULER,
        &member(fading),
        "",
        "t.toml:16:54: link.BS-MH.forward.rate.fading.snr: fewer than one block in a thousand carry 1 kbit/s \
         (expected a higher ratio or more bandwidth)",
    );
    let handover = "delay = \"170 ms\"\nmobile = \"MH\"\nforward = { cell = \"down\" }\nhandover = { \
                    interruption = \"50 ms\", interval = \"5 s\", data = \"discard\" }";
    refuses_cell(
        SCHEDULER,
        handover,
        "",
        "t.toml:17:20: link.BS-MH.forward.cell: contradicts `handover`, which leaves the cell \
         (expected either a cell or handovers)",
    );
    let text = in_cell(SCHEDULER, &member("rate = { file = \"trace\" }"), "");
    let trace = |_: &str| Ok("1\n".to_owned());
    let found = Scenario::parse_with_files("t.toml", &text, &[], None, &trace).unwrap_err();
    assert_eq!(
        found.to_string(),
        "t.toml:16:20: link.BS-MH.forward.cell: contradicts the link's Mahimahi trace, which says when \
         packets leave (expected a constant rate, steps, a table or fading)"
    );
    refuses_cell(
        SCHEDULER,
        MEMBER,
        "[[udp]]\nfrom = \"BS\"\nto = \"MH\"\nrate = \"saturated\"",
        "t.toml:35:8: udp.0.rate: saturated: a link in a cell sends by intervals, not packet by packet \
         (expected a rate above the link's)",
    );
}

#[test]
fn a_rate_may_fade() {
    let fading = |keys: &str| format!("rate = {{ fading = {{ {keys} }} }}");
    let rate = "rate = \"250 kbit/s\"";
    let right = "snr = \"10 dB\", bandwidth = \"9 MHz\", coherence-time = \"5 ms\"";
    let scenario = parse(&BASE.replace(rate, &fading(right))).unwrap();
    let LinkRate::Fading(config) = &scenario.links[2].config.rate else { panic!("no fading") };
    let coherence_time = Duration::from_millis(5);
    let expected =
        FadingConfig { snr: 10.0, bandwidth: 9e6, coherence_time, efficiency: Efficiency::Cqi };
    assert_eq!(**config, expected);
    refuses(
        rate,
        &fading(&right.replace("10 dB", "-40 dB")),
        &[
            "t.toml:14:27: link.BS-MH.rate.fading.snr: fewer than one block in a thousand carry 1 kbit/s \
           (expected a higher ratio or more bandwidth)",
        ],
    );
    refuses(
        rate,
        &fading(&right.replace("9 MHz", "0 MHz")),
        &[
            "t.toml:14:48: link.BS-MH.rate.fading.bandwidth: is not above 0 (expected more than 0 Hz)",
        ],
    );
    refuses(
        rate,
        &format!("rate = {{ file = \"a.csv\", fading = {{ {right} }} }}"),
        &[
            "t.toml:14:35: link.BS-MH.rate.fading: contradicts `file` (expected one of steps, file and \
           fading)",
        ],
    );
}
