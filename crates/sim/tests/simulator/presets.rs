//! `tcp.preset`: which value applies at which end, what is dropped, and what is refused.

use crate::common;
use airtcp_core::{Bytes, Duration};
use airtcp_sim::scenario::{ConfigError, FlowSpec, Scenario, json_schema, markdown};
use airtcp_tcp::config::{
    AckConfig, Congestion, CubicConfig, CubicVariant, HyStartConfig, InitialWindow, NewRenoConfig,
    Recovery, SackPipe,
};
use airtcp_tcp::{Preset, TcpConfig};

const NETWORK: &str = r#"duration = "30 s"
node = [{ name = "A" }, { name = "B" }]
link = [{ between = ["A", "B"], rate = "10 Mbit/s", delay = "10 ms" }]
"#;

/// A flow from A to B with these keys of `[tcp]` and of the flow, and with overrides.
fn parse(tcp: &str, flow: &str, set: &[(&str, &str)]) -> Result<Scenario, ConfigError> {
    let text = format!(
        "{NETWORK}[tcp]\n{tcp}\n[[flow]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n{flow}\n"
    );
    Scenario::parse("t.toml", &text, &common::overrides(set))
}

/// The flow of a right scenario.
#[track_caller]
fn flow(tcp: &str, flow: &str, set: &[(&str, &str)]) -> FlowSpec {
    let scenario = parse(tcp, flow, set).unwrap_or_else(|error| panic!("{error}"));
    scenario.flows[0].clone()
}

/// The configuration of a scenario's data sender.
#[track_caller]
fn sender(tcp: &str, set: &[(&str, &str)]) -> TcpConfig {
    TcpConfig::clone(&flow(tcp, "", set).sender)
}

#[track_caller]
fn refuses(tcp: &str, flow: &str, set: &[(&str, &str)], expected: &[&str]) {
    let found = parse(tcp, flow, set).expect_err("a mistake").to_string();
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_scenario_that_says_nothing_of_tcp_is_linux() {
    let text = format!("{NETWORK}flow = [{{ from = \"A\", to = \"B\" }}]");
    let scenario = common::parse(&text, &[]);
    assert_eq!(*scenario.flows[0].sender, Preset::Linux.config());
    assert_eq!(*scenario.flows[0].receiver, Preset::Linux.config());
}

#[test]
fn rfc_is_the_table_of_defaults() {
    assert_eq!(sender("preset = \"rfc\"", &[]), TcpConfig::default());
}

#[test]
fn a_preset_is_read_as_it_is_declared() {
    for preset in Preset::ALL {
        let said = format!("preset = {:?}", preset.word());
        let FlowSpec { sender, receiver, .. } = flow(&said, "", &[]);
        assert_eq!([&*sender, &*receiver], [&preset.config(), &preset.config()], "{said}");
    }
}

#[test]
fn the_file_is_above_the_preset_and_set_is_above_the_file() {
    let file = "preset = \"ns2\"\ninitial-window = \"4 segments\"";
    let written = sender(file, &[]);
    let initial_window = InitialWindow::Segments(4);
    assert_eq!(written, TcpConfig { initial_window, ..Preset::Ns2.config() });
    // Another preset leaves what the file says.
    let other = sender(file, &[("tcp.preset", "rfc")]);
    assert_eq!(other, TcpConfig { initial_window, ..TcpConfig::default() });
    let set = sender(file, &[("tcp.initial-window", "6 segments"), ("tcp.preset", "rfc")]);
    let initial_window = InitialWindow::Segments(6);
    assert_eq!(set, TcpConfig { initial_window, ..TcpConfig::default() });
}

#[test]
fn keys_of_inner_tables_are_single_too() {
    let tcp = sender("rto.min = \"300 ms\"\nack.timeout = \"20 ms\"", &[]);
    let linux = Preset::Linux.config();
    assert_eq!((tcp.rto.min, tcp.rto.max), (Duration::from_millis(300), linux.rto.max));
    assert_eq!(
        tcp.ack,
        AckConfig::Delayed { segments: 2, timeout: Duration::from_millis(20), quick: 16 }
    );
    // The same variant, written: its keys are still the preset's.
    let tcp = sender("ack = { policy = \"delayed\" }\ncongestion = \"cubic\"", &[]);
    assert_eq!(tcp, linux);
}

#[test]
fn an_end_may_have_its_own_preset_below_the_keys_of_tcp() {
    let FlowSpec { sender, receiver, .. } =
        flow("preset = \"rfc\"\nmss = \"500 B\"", "receiver.preset = \"linux\"", &[]);
    assert_eq!(*sender, TcpConfig { mss: 500, ..TcpConfig::default() });
    // Without window scaling at the sender, the preset's buffer is of no use.
    let small =
        TcpConfig { receive_buffer: Bytes(65_535), autotuning: false, ..Preset::Linux.config() };
    assert_eq!(*receiver, TcpConfig { mss: 500, ..small.clone() });
    let FlowSpec { sender, receiver, .. } =
        flow("", "sender = { preset = \"ns2\", mss = \"9 B\" }", &[]);
    assert_eq!(*sender, TcpConfig { mss: 9, ..Preset::Ns2.config() });
    assert_eq!(*receiver, small);
}

#[test]
fn what_a_preset_says_without_effect_is_dropped() {
    let recovery = Recovery::NewReno;
    assert_eq!(sender("recovery = \"newreno\"", &[]).recovery, recovery);
    assert_eq!(sender("congestion = \"reno\"", &[]).congestion, Congestion::Reno);
    // The pipe of ns-2 waits for SACK.
    assert_eq!(sender("preset = \"ns2\"", &[]).recovery, recovery);
    assert_eq!(sender("preset = \"ns2\"\nrecovery = \"sack\"", &[]).sack_pipe, SackPipe::FallFloyd);
    // Linux's buffer needs window scaling.
    let receiver = flow("window-scaling = false", "", &[]).receiver;
    assert_eq!(receiver.receive_buffer, Bytes(65_535));
    // A window of at most 64 KiB does not grow, a larger one does.
    for (size, grows) in [("65536 B", false), ("65537 B", true)] {
        let receiver = flow(&format!("receive-buffer = {size:?}"), "", &[]).receiver;
        assert_eq!(receiver.autotuning, grows, "{size}");
    }
    // The receiver does not offer the SACK of the sender's preset.
    let FlowSpec { sender, receiver, .. } = flow("", "receiver.preset = \"rfc\"", &[]);
    assert!(sender.recovery.is_rack());
    assert_eq!(receiver.recovery, recovery);
}

#[test]
fn what_the_file_says_without_effect_is_refused() {
    refuses(
        "newreno.deflate = false",
        "",
        &[],
        &["t.toml:5:1: tcp.newreno: has no effect with recovery = \"rack\" (expected recovery = \
           \"newreno\")"],
    );
    refuses(
        "preset = \"rfc\"\nack.segments = 3",
        "",
        &[],
        &[
            "t.toml:6:5: tcp.ack.segments: has no effect with policy = \"every\" (expected policy = \
           \"delayed\")",
        ],
    );
    refuses(
        "window-scaling = false\nreceive-buffer = \"1 MB\"",
        "",
        &[],
        &[
            "t.toml:6:18: tcp.receive-buffer: a window of 1000000 B needs window scaling (expected at \
           most 65535 B, or window-scaling = true at both ends)",
        ],
    );
    refuses(
        "preset = \"rfc\"\nautotuning = true",
        "",
        &[],
        &["t.toml:6:14: tcp.autotuning: a window of 65535 B has no room to grow (expected a \
           receive-buffer above 64 KiB)"],
    );
    refuses(
        "",
        "sender.recovery = \"sack\"\nreceiver.preset = \"rfc\"",
        &[],
        &["t.toml:10:19: flow.A-B.sender.recovery: the receiver does not offer SACK (expected \
           recovery = \"sack\" at both ends, such as in [tcp])"],
    );
}

#[test]
fn a_later_preset_silences_what_belongs_to_an_earlier_one() {
    let rfc = "preset = \"rfc\"\nnewreno.deflate = false";
    let newreno = NewRenoConfig { deflate: false, ..NewRenoConfig::default() };
    assert_eq!(sender(rfc, &[]).newreno, newreno);
    assert_eq!(sender(rfc, &[("tcp.preset", "linux")]), Preset::Linux.config());
    assert_eq!(*flow(rfc, "sender.preset = \"linux\"", &[]).sender, Preset::Linux.config());
    // In an inner table, too.
    let linux = "ack.segments = 3";
    assert_eq!(sender(linux, &[("tcp.preset", "rfc")]).ack, AckConfig::Every);
    assert_eq!(flow(linux, "receiver.preset = \"rfc\"", &[]).receiver.ack, AckConfig::Every);
}

#[test]
fn limits_are_checked_against_the_preset() {
    // Linux: from 200 ms to 120 s; the RFC's: from 1 s to 60 s.
    for (key, value) in [("max", "500 ms"), ("min", "90 s")] {
        let limit = format!("rto.{key} = {value:?}");
        sender(&limit, &[]);
        assert!(parse(&limit, "", &[("tcp.preset", "rfc")]).is_err(), "{limit}");
    }
    refuses(
        "rto.max = \"100 ms\"",
        "",
        &[],
        &["t.toml:5:11: tcp.rto.max: the lower bound 200 ms is above the upper bound 100 ms \
           (expected min at most max)"],
    );
    refuses(
        "mss = \"65490 B\"",
        "",
        &[],
        &[
            "t.toml:5:7: tcp.mss: 65490 B and timestamps exceed an IP packet (expected at most 65483 B \
           with timestamps)",
        ],
    );
}

#[test]
fn an_unknown_preset_is_refused_with_the_nearest_one() {
    let words = "(expected \"linux\", \"rfc\" or \"ns2\"; did you mean";
    let said = |near: &str, word: &str| format!("{word:?} is not a choice here {words} `{near}`?)");
    let file = format!("t.toml:5:10: tcp.preset: {}", said("linux", "linus"));
    refuses("preset = \"linus\"", "", &[], &[&file]);
    let end = format!("t.toml:10:19: flow.A-B.receiver.preset: {}", said("ns2", "ns3"));
    refuses("", "receiver.preset = \"ns3\"", &[], &[&end]);
    let set = format!("--set:1:12: tcp.preset: {}", said("rfc", "rfcs"));
    refuses("", "", &[("tcp.preset", "rfcs")], &[&set]);
}

#[test]
fn ends_of_different_presets_talk_to_each_other() {
    for sender in Preset::ALL {
        let acks = Preset::ALL.map(|receiver| {
            let ends = [("sender.preset", sender), ("receiver.preset", receiver)]
                .map(|(key, preset)| format!("{key} = {:?}\n", preset.word()));
            let loss = ("link.A-B.loss", "{ kind = \"bernoulli\", p = 0.01 }");
            let scenario = parse("", &ends.concat(), &[loss]).expect("a right scenario");
            let flow = &common::run(&scenario, 1).flows[0];
            assert_eq!(flow.delivered_bytes, 1_000_000, "{sender:?} to {receiver:?}: {flow:?}");
            flow.acks_sent
        });
        // Linux delays its ACKs, the others do not.
        let [linux, rfc, ns2] = acks;
        assert!(3 * linux < 2 * rfc && 3 * linux < 2 * ns2, "{sender:?}: {acks:?}");
    }
}

#[test]
fn documentation_and_schema_list_the_presets() {
    let page = markdown();
    assert!(page.contains("\n| key | `linux` | `rfc` | `ns2` |\n"), "no table of presets");
    for row in ["| `congestion` | cubic | reno | reno |", "| `rto.min` | 200 ms | 1 s | 200 ms |"] {
        assert!(page.contains(row), "{row}");
    }
    // What all have alike is left to the table of the keys.
    assert!(!page.contains("| `time-wait` | 60 s | 60 s | 60 s |"));
    let schema = json_schema();
    let preset = &schema["$defs"]["tcp"]["properties"]["preset"];
    assert_eq!(preset["enum"], serde_json::json!(["linux", "rfc", "ns2"]));
}

/// A preset's CUBIC has its own switches, which a file changes one by one.
#[test]
fn keys_of_a_choice_made_by_the_preset_need_no_choice() {
    let hystart = HyStartConfig::HyStart;
    let cubic = CubicConfig { variant: CubicVariant::Linux, fast_convergence: false, hystart };
    assert_eq!(sender("cubic.fast-convergence = false", &[]).congestion, Congestion::Cubic(cubic));
}
