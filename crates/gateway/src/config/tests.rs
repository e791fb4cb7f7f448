//! What a person is told, word for word, for each kind of mistake; and what a right file means.

use super::*;
use airtcp_edge::{
    Acknowledge, HoldoverConfig, MTcpConfig, MTcpPlusConfig, Open, Resume, Retransmit, WakeConfig,
};

const BASE: &str = r#"state = "/run/airtcp"
[[mobile]]
name = "cab"
addresses = ["10.0.0.7"]
[[mobile]]
name = "train"
addresses = ["10.0.0.0/24"]
interfaces = ["wwan0"]
[signals]
silence = "1 s"
[[signals.planned]]
mobile = "10.0.0.9"
begin = 2026-05-01T06:30:00Z
length = "40 s"
"#;

const TRAIN: &str = "name = \"train\"";
const CAB: &str = "addresses = [\"10.0.0.7\"]";
const PREFIX: &str = "addresses = [\"10.0.0.0/24\"]";
const SILENCE: &str = "silence = \"1 s\"";
const BEGIN: &str = "2026-05-01T06:30:00Z";
const LENGTH: &str = "length = \"40 s\"";

fn parse(text: &str) -> Result<GatewayConfig, ConfigError> {
    GatewayConfig::parse("g.toml", text)
}

/// Cautions as they are written to the log.
fn told(cautions: Vec<Caution>) -> Vec<String> {
    cautions.iter().map(Caution::to_string).collect()
}

/// BASE with `old` replaced by `new`.
#[track_caller]
fn with(old: &str, new: &str) -> Result<GatewayConfig, ConfigError> {
    assert_eq!(BASE.matches(old).count(), 1, "{old:?} must stand in BASE once");
    parse(&BASE.replace(old, new))
}

/// BASE with `old` replaced by `new` gives exactly these diagnostics.
#[track_caller]
fn refuses(old: &str, new: &str, expected: &[&str]) {
    let found = with(old, new).expect_err(new).to_string();
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
}

/// The group `train` with some more keys.
#[track_caller]
fn train(keys: &str) -> Group {
    with(TRAIN, &format!("{TRAIN}\n{keys}")).unwrap().groups.remove(1)
}

#[test]
fn absent_keys_have_their_defaults() {
    let config = parse("[[mobile]]\nname = \"m\"\naddresses = [\"2001:db8::/32\"]").unwrap();
    let expected = GatewayConfig {
        nfqueue: NfqueueConfig { queue: 77, length: 1024 },
        mode: Mode::default(),
        data_path: DataPath::default(),
        mark: Mark::default(),
        state: "/run/airtcp".into(),
        control: "/run/airtcp/gateway.sock".into(),
        limits: Limits {
            memory: Bytes(128 << 20),
            flows: 100_000,
            flows_per_mobile: 25_000,
            idle: Duration::from_secs(124 * 60),
        },
        groups: vec![Group {
            name: "m".to_owned(),
            members: Members::Mobiles {
                addresses: vec!["2001:db8::/32".parse().unwrap()],
                interfaces: Vec::new(),
            },
            mechanism: MechanismConfig::Wake(WakeConfig::default()),
            copy: CopyMode::Always,
            fast_path: FastPathMode::Auto,
        }],
        signals: Signals::default(),
        metrics: None,
        record: None,
    };
    assert_eq!(config, expected);
}

#[test]
fn every_key_arrives() {
    let text = r#"
state = "/dev/shm/airtcp"
control = "/run/a.sock"
record = "/var/tmp/a.pcapng"
mark = "0x10/240"
mode = "observe"
nfqueue = { queue = 65534, length = 200 }
limits = { memory = "1 GiB", flows = 7, flows-per-mobile = 3, idle = "5 min" }
metrics = { listen = "[::1]:4711" }
mobile = [{ name = "m", addresses = ["10.0.0.1", "10.1.0.0/16"], interfaces = ["eth0", "br-lan.7"], mechanism = "holdover", copy = "when-fading" }]
[signals]
carrier = true
neighbour = true
silence = "200 ms"
agent = { listen = "0.0.0.0:4711", keys = "/etc/airtcp/keys" }
[[signals.planned]]
mobile = "10.1.2.3"
begin = 1970-01-01T02:00:10+02:00
length = "40 s"
every = "1 min"
lead = "0 s"
"#;
    let GatewayConfig {
        mode,
        data_path,
        nfqueue,
        mark,
        state,
        control,
        limits,
        groups,
        signals,
        metrics,
        record,
    } = parse(text).unwrap();
    assert_eq!(nfqueue, NfqueueConfig { queue: 65_534, length: 200 });
    assert_eq!((mode, data_path), (Mode::Observe, DataPath::Auto));
    assert_eq!(mark, Mark { value: 0x10, mask: 0xf0 });
    assert_eq!((state, control), ("/dev/shm/airtcp".into(), "/run/a.sock".into()));
    let idle = Duration::from_secs(300);
    assert_eq!(limits, Limits { memory: Bytes(1 << 30), flows: 7, flows_per_mobile: 3, idle });
    assert_eq!(metrics, Some("[::1]:4711".parse().unwrap()));
    assert_eq!(record, Some("/var/tmp/a.pcapng".into()));
    assert_eq!(groups[0].addresses(), ["10.0.0.1/32", "10.1.0.0/16"].map(|p| p.parse().unwrap()));
    assert_eq!(groups[0].interfaces(), ["eth0", "br-lan.7"].map(|name| name.parse().unwrap()));
    assert_eq!(groups[0].copy, CopyMode::WhenFading);
    let planned = PlannedOutage {
        mobile: MobileId::Host("10.1.2.3".parse().unwrap()),
        begin: 10,
        length: Duration::from_secs(40),
        every: Some(Duration::from_secs(60)),
        lead: Duration::ZERO,
    };
    let agent =
        AgentConfig { listen: "0.0.0.0:4711".parse().unwrap(), keys: "/etc/airtcp/keys".into() };
    let expected = Signals {
        agent: Some(agent),
        carrier: true,
        neighbour: true,
        modem_manager: false,
        fading_below: None,
        timetable: vec![planned],
        silence: Some(Duration::from_millis(200)),
    };
    assert_eq!(signals, expected);
}

#[test]
fn a_data_path_that_no_group_can_use_is_refused() {
    let config = |path: &str, mode: &str, group: &str| {
        format!("data-path = {path:?}\nmode = {mode:?}\n{group}")
    };
    let mobile = "[[mobile]]\nname = \"m\"\naddresses = [\"10.0.0.0/24\"]\n";
    let uplink = "[[uplink]]\ninterface = \"wwan0\"\n";
    let waiting = format!("{mobile}mechanism = \"holdover\"\nfast-path = \"off\"\n");
    let frozen = format!("{uplink}mechanism = \"holdover\"\n");
    let parsed = parse(&config("tc", "protect", uplink)).unwrap();
    assert_eq!(parsed.data_path, DataPath::Tc);
    assert!(parse(&config("netfilter", "observe", uplink)).is_ok());
    assert!(parse(&config("tc", "observe", &waiting)).is_ok(), "all are observed");
    for (path, mode, group, wrong) in [
        ("netfilter", "protect", waiting.as_str(), "no packets are copied"),
        ("tc", "observe", uplink, "tc cannot copy packets for uplink.wwan0"),
        ("tc", "protect", &frozen, "tc cannot copy packets for uplink.wwan0"),
    ] {
        let error = parse(&config(path, mode, group)).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("g.toml:1:13: data-path: {wrong} (expected ")),
            "{error}"
        );
    }
}

#[test]
fn mechanisms_take_their_settings_from_the_file() {
    let (fifo, minute) = (Bytes(4 << 20), Some(Duration::from_secs(60)));
    let ms = Duration::from_millis;
    let (day, probe_interval) = (Some(Duration::from_secs(24 * 3600)), Some(ms(100)));
    assert_eq!(
        train("mechanism = \"holdover\"").mechanism,
        MechanismConfig::Holdover(HoldoverConfig { fifo, max_down: day, probe_interval })
    );
    let keys = "mechanism = \"m-tcp-plus\"\nfifo = \"64 KiB\"\nmax-down = \"1 min\"\nprobe-interval = \"2 s\"";
    assert_eq!(
        train(keys).mechanism,
        MechanismConfig::MTcpPlus(MTcpPlusConfig {
            fifo: Bytes(64 << 10),
            resume: Resume::Flush,
            max_down: minute,
            probe_interval: Some(ms(2000)),
            acknowledge: Acknowledge::IN_TIME,
            open: Open::InSteps,
        })
    );
    assert_eq!(
        train("mechanism = \"holdover\"\nmax-down = \"1 min\"\nprobe-interval = \"never\"")
            .mechanism,
        MechanismConfig::Holdover(HoldoverConfig { fifo, max_down: minute, probe_interval: None })
    );
    assert_eq!(
        train("mechanism = \"m-tcp\"").mechanism,
        MechanismConfig::MTcp(MTcpConfig { fifo, max_down: day, ..MTcpConfig::default() })
    );
    let keys = "mechanism = \"m-tcp\"\ntimer = \"1 s\"\nretransmit = \"all\"\nrelease = \"1 ms\"";
    assert_eq!(
        train(keys).mechanism,
        MechanismConfig::MTcp(MTcpConfig {
            timer: ms(1000),
            retransmit: Retransmit::All,
            release: ms(1),
            fifo,
            max_down: day,
            ..MTcpConfig::default()
        })
    );
    assert_eq!(
        train("mechanism = \"packet-control\"\nthreshold = 3").mechanism,
        MechanismConfig::PacketControl { threshold: 3 }
    );
}

#[test]
fn unknown_keys_and_words_are_refused_with_the_nearest_known_one() {
    refuses(
        "[signals]\nsilence",
        "[signal]\nsilence",
        &["g.toml:9:2: signal: unknown key (did you mean `signals`?)"],
    );
    refuses(
        SILENCE,
        "silense = \"1 s\"",
        &["g.toml:10:1: signals.silense: unknown key (did you mean `silence`?)"],
    );
    refuses(
        TRAIN,
        "name = \"train\"\nmechanism = \"m-tcp+\"",
        &[
            "g.toml:7:13: mobile.train.mechanism: \"m-tcp+\" is not a choice here (expected \"wake\", \
           \"holdover\", \"m-tcp-plus\", \"m-tcp\" or \"packet-control\"; did you mean `m-tcp-plus`?)",
        ],
    );
    refuses(
        "state = \"/run/airtcp\"",
        "mode = \"obsrve\"",
        &[
            "g.toml:1:8: mode: \"obsrve\" is not a choice here (expected \"protect\" or \"observe\"; did you mean `observe`?)",
        ],
    );
    let below = "(expected at the top of the file, before the first [table]: here it belongs to the table above)";
    refuses(
        TRAIN,
        &format!("{TRAIN}\nrecord = \"/a\""),
        &[&format!("g.toml:7:1: mobile.train.record: unknown key {below}")],
    );
    // Snoop would retransmit what an outage swallowed, and nothing more: it is for the simulator.
    assert!(with(TRAIN, "name = \"train\"\nmechanism = \"snoop\"").is_err());
}

#[test]
fn groups_need_a_name_and_addresses() {
    assert_eq!(
        parse("").unwrap_err().to_string(),
        "g.toml:1:1: mobile: missing (expected at least one [[mobile]] or [[uplink]] table)"
    );
    refuses(
        PREFIX,
        "addresses = []",
        &[
            "g.toml:7:13: mobile.train.addresses: found an empty array (expected an array of IP prefixes or \
           addresses, such as [\"10.0.0.0/24\", \"2001:db8::7\"])",
        ],
    );
    refuses(
        PREFIX,
        "",
        &[
            "g.toml:5:1: mobile.train.addresses: missing (expected an array of IP prefixes or addresses, such \
           as [\"10.0.0.0/24\", \"2001:db8::7\"])",
        ],
    );
    refuses(
        TRAIN,
        "name = \"cab\"",
        &[
            "g.toml:6:8: mobile.cab.name: a second group \"cab\" (expected a unique name for each group)",
        ],
    );
    refuses(
        "[[mobile]]\nname = \"cab\"\naddresses = [\"10.0.0.7\"]\n[[mobile]]",
        "[mobile]",
        &["g.toml:2:1: mobile: found a table (expected [[mobile]], in two brackets)"],
    );
}

#[test]
fn prefixes_are_written_as_such() {
    for (prefix, message) in [
        ("10.0.0.1/24", "10.0.0.1/24 has bits set behind the prefix (did you mean `10.0.0.0/24`?)"),
        (
            "2001:db8::1/64",
            "2001:db8::1/64 has bits set behind the prefix (did you mean `2001:db8::/64`?)",
        ),
        (
            "10.0.0.0/33",
            "\"10.0.0.0/33\" is not a prefix or an address (expected an IP prefix or address, such as \
             \"10.0.0.0/24\" or \"2001:db8::7\")",
        ),
        (
            "train.example",
            "\"train.example\" is not a prefix or an address (expected an IP prefix or address, such as \
             \"10.0.0.0/24\" or \"2001:db8::7\")",
        ),
    ] {
        let line = format!("g.toml:7:14: mobile.train.addresses: {message}");
        refuses(PREFIX, &format!("addresses = [\"{prefix}\", \"10.0.0.0/24\"]"), &[&line]);
    }
}

#[test]
fn an_address_belongs_to_one_group_and_exceptions_stand_before_the_rule() {
    // The exception first, as in BASE, is right.
    assert_eq!(parse(BASE).unwrap().groups.len(), 2);
    let twice =
        |line: &str| format!("{line} (expected each address once; an exception before the rule)");
    refuses(
        CAB,
        "addresses = [\"10.0.0.0/16\"]",
        &[&twice(
            "g.toml:7:14: mobile.train.addresses: 10.0.0.0/24 is in 10.0.0.0/16 of mobile.cab already",
        )],
    );
    refuses(
        PREFIX,
        "addresses = [\"10.0.0.0/24\", \"10.0.0.8\"]",
        &[&twice(
            "g.toml:7:29: mobile.train.addresses: 10.0.0.8/32 is in 10.0.0.0/24 of mobile.train already",
        )],
    );
    // Behind other interfaces the same addresses may be others' ones.
    let elsewhere = "addresses = [\"10.0.0.0/16\"]\ninterfaces = [\"wlan0\"]";
    assert!(with(CAB, elsewhere).is_ok());
    let everybody = "addresses = [\"0.0.0.0/0\"]";
    refuses(
        CAB,
        everybody,
        &[
            "g.toml:4:14: mobile.cab.addresses: 0.0.0.0/0 is every address, of fixed hosts too (expected the \
             mobiles' addresses, or interfaces behind which they are)",
            &twice(
                "g.toml:7:14: mobile.train.addresses: 10.0.0.0/24 is in 0.0.0.0/0 of mobile.cab already",
            ),
        ],
    );
    assert!(with(CAB, &format!("{everybody}\ninterfaces = [\"wlan0\"]")).is_ok());
}

#[test]
fn interfaces_have_names_that_no_firewall_misreads() {
    for name in [
        "",
        "a b",
        "wlan+",
        "wl*n",
        "*",
        "wlan0\\nflush ruleset",
        "a/b",
        "..",
        "-j",
        "sixteenlettersss",
    ] {
        let shown = name.to_owned();
        let line = format!(
            "g.toml:8:15: mobile.train.interfaces: \"{shown}\" is not an interface (expected the name of an interface, \
             or its beginning with `*`: 1 to 15 letters, digits, `-`, `_` or `.`)"
        );
        refuses("[\"wwan0\"]", &format!("[\"{name}\"]"), &[&line]);
    }
}

/// BASE with an uplink of these keys before the signals.
#[track_caller]
fn with_uplink(keys: &str) -> Result<GatewayConfig, ConfigError> {
    with("[signals]", &format!("[[uplink]]\n{keys}\n[signals]"))
}

#[track_caller]
fn refuses_uplink(keys: &str, expected: &str) {
    let found = with_uplink(keys).expect_err(keys).to_string();
    assert_eq!(found, expected);
}

#[test]
fn an_uplink_is_a_group_by_itself_and_needs_no_mobiles() {
    let config = parse("[[uplink]]\ninterface = \"wwan0\"").unwrap();
    let expected = Group {
        name: "uplink.wwan0".to_owned(),
        members: Members::Uplink("wwan0".parse().unwrap()),
        mechanism: MechanismConfig::Wake(WakeConfig::default()),
        copy: CopyMode::Always,
        fast_path: FastPathMode::Auto,
    };
    assert_eq!(config.groups, [expected]);
    let config = with_uplink("interface = \"ppp0\"\nmechanism = \"holdover\"").unwrap();
    let names: Vec<&str> = config.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["cab", "train", "uplink.ppp0"]);
    assert!(matches!(config.groups[2].mechanism, MechanismConfig::Holdover(_)));
}

#[test]
fn an_uplink_that_cannot_work_is_refused() {
    refuses_uplink(
        "",
        "g.toml:9:1: uplink.0.interface: missing (expected the name of an interface: 1 to 15 letters, digits, `-`, \
         `_` or `.`)",
    );
    refuses_uplink(
        "interface = \"lo\"",
        "g.toml:10:13: uplink.lo.interface: \"lo\" leads to this host itself (expected the name of an interface: 1 \
         to 15 letters, digits, `-`, `_` or `.`)",
    );
    refuses_uplink(
        "interface = \"wwan0\"",
        "g.toml:10:13: uplink.wwan0.interface: mobile.train is behind wwan0 (expected mobiles behind one interface, \
         the network behind another)",
    );
    refuses_uplink(
        "interface = \"ppp0\"\n[[uplink]]\ninterface = \"ppp0\"",
        "g.toml:12:13: uplink.ppp0.interface: a second uplink ppp0 (expected each interface once)",
    );
    refuses_uplink(
        "interface = \"ppp0\"\nmechanism = \"m-tcp\"",
        "g.toml:11:13: uplink.ppp0.mechanism: \"m-tcp\" is not a choice here (expected \"wake\", \"holdover\" or \
         \"m-tcp-plus\")",
    );
    assert!(with_uplink("interface = \"ppp0\"\ntowards = \"network\"").is_err());
}

#[test]
fn a_planned_outage_is_of_a_mobile_or_an_uplink() {
    let planned = |whose: &str| with("mobile = \"10.0.0.9\"", whose);
    let error = |whose: &str| planned(whose).unwrap_err().to_string();
    let uplink = "\n[[uplink]]\ninterface = \"ppp0\"";
    let config =
        parse(&format!("{}{uplink}", BASE.replace("mobile = \"10.0.0.9\"", "uplink = \"ppp0\"")));
    let outage = &config.unwrap().signals.timetable[0];
    assert_eq!(outage.mobile, MobileId::Uplink("ppp0".parse().unwrap()));
    assert_eq!(
        error("uplink = \"ppp0\""),
        "g.toml:12:10: signals.planned.0.uplink: there is no uplink ppp0 (expected the interface of an [[uplink]])"
    );
    assert_eq!(
        error(""),
        "g.toml:11:1: signals.planned.0.mobile: missing (expected `mobile` or `uplink`)"
    );
    assert_eq!(
        error("mobile = \"10.0.0.9\"\nuplink = \"ppp0\""),
        "g.toml:13:10: signals.planned.0.uplink: there is a `mobile` too (expected one of them)"
    );
}

#[test]
fn an_uplink_is_told_of_by_the_sources_that_know_it() {
    let cautions = |signals: &str| {
        let text = format!(
            "[[uplink]]\ninterface = \"wwan0\"\nmechanism = \"holdover\"\n[signals]\n{signals}"
        );
        told(parse(&text).unwrap().cautions())
    };
    let unheard = "uplink.wwan0: only `airtcp gateway signal` says when a mobile is out of reach (expected a source in \
                   [signals], at least silence)";
    assert_eq!(cautions("modem-manager = false"), [unheard]);
    let perhaps = "uplink.wwan0: only `airtcp gateway signal`, and ModemManager if it has the modem, say when the uplink is \
                   down (expected a source in [signals], at least silence)";
    assert_eq!(cautions(""), [perhaps]);
    assert_eq!(cautions("neighbour = true"), [perhaps]);
    let level_of_wifi = "modem-manager = false\nfading-below = \"20 %\"";
    assert_eq!(cautions(level_of_wifi), [unheard], "it only says when the uplink fades");
    for signals in ["carrier = true", "silence = \"1 s\"", "fading-below = \"20 %\""] {
        assert_eq!(cautions(signals), Vec::<String>::new());
    }
}

#[test]
fn interfaces_that_this_machine_lacks_are_named_with_the_nearest() {
    let config = "[[mobile]]\nname = \"phones\"\naddresses = [\"10.0.0.0/24\"]\n\
                  interfaces = [\"wlan7\", \"ppp*\", \"eth0\"]\n[[uplink]]\ninterface = \"wwan0\"";
    let missing = |here: &[&str]| {
        let here = here.iter().zip(1..).map(|(name, index)| (name.parse().unwrap(), index));
        told(parse(config).unwrap().missing_interfaces(&here.collect()))
    };
    let mobiles = "here; mobiles behind it are not protected until it appears";
    let uplink =
        "uplink.wwan0: no interface wwan0 here; the uplink is not protected until it appears";
    assert_eq!(
        missing(&["lo", "eth0", "wlan0"]),
        [
            format!("mobile.phones: no interface wlan7 {mobiles}; did you mean wlan0?"),
            format!("mobile.phones: no interface ppp* {mobiles}"),
            format!("{uplink}; did you mean wlan0?"),
        ]
    );
    assert_eq!(missing(&["wlan7", "ppp3", "eth0", "wwan0"]), [""; 0]);
    assert_eq!(missing(&[]), [""; 0]);
}

#[test]
fn a_signal_level_announces_the_outages_of_an_uplink() {
    let cautions = |signals: &str| {
        let uplink =
            "[[uplink]]\ninterface = \"wwan0\"\nmechanism = \"holdover\"\ncopy = \"when-fading\"";
        told(parse(&format!("{uplink}\n[signals]\n{signals}")).unwrap().cautions())
    };
    let unannounced = "uplink.wwan0: copies are taken when fading, but only `airtcp gateway signal` can announce an outage \
                       (expected signals.fading-below, or signals.planned with a lead)";
    assert_eq!(cautions("carrier = true"), [unannounced]);
    assert_eq!(cautions("fading-below = \"20 %\""), [""; 0]);
}

#[test]
fn modem_manager_is_asked_about_uplinks_unless_it_must_not_be() {
    let followed = |text: &str| {
        let Signals { modem_manager, fading_below, .. } = parse(text).unwrap().signals;
        (modem_manager, fading_below)
    };
    let (uplink, mobile) = (
        "uplink = [{ interface = \"wwan0\" }]\n",
        "mobile = [{ name = \"m\", addresses = [\"10.0.0.7\"] }]\n",
    );
    assert_eq!((followed(uplink), followed(mobile)), ((true, None), (false, None)));
    assert_eq!(followed(&format!("{uplink}signals.modem-manager = false")), (false, None));
    for (text, percent) in [("20 %", 20), ("1%", 1), ("100  %", 100)] {
        let level = format!("{uplink}signals.fading-below = {text:?}");
        assert_eq!(followed(&level), (true, Some(percent)));
    }
    let refused = |text: &str| parse(text).unwrap_err().to_string();
    for (text, wrong) in [
        ("20", "is not a percentage"),
        ("-1 %", "is not a percentage"),
        ("0 %", "is out of range"),
        ("101 %", "is out of range"),
        ("300 %", "is out of range"),
    ] {
        assert_eq!(
            refused(&format!("{uplink}signals.fading-below = {text:?}")),
            format!(
                "g.toml:2:24: signals.fading-below: {text:?} {wrong} (expected a percentage from 1 to 100, such as \
                 \"20 %\")"
            )
        );
    }
    assert_eq!(
        refused(&format!("{mobile}signals.fading-below = \"20 %\"")),
        "g.toml:2:24: signals.fading-below: there is no uplink (expected an [[uplink]])"
    );
    let of_wifi = format!("{uplink}signals = {{ modem-manager = false, fading-below = \"20 %\" }}");
    assert_eq!(followed(&of_wifi), (false, Some(20)));
}

#[test]
fn a_fifo_fits_the_memory_and_holds_a_packet() {
    refuses(
        TRAIN,
        "name = \"train\"\nmechanism = \"holdover\"\nfifo = \"256 MiB\"",
        &[
            "g.toml:8:8: mobile.train.fifo: 268435456 B for one connection is more than the 134217728 B for all \
             (expected at most limits.memory)",
        ],
    );
    refuses(
        TRAIN,
        "name = \"train\"\nmechanism = \"holdover\"\nfifo = \"8760 B\"",
        &[
            "g.toml:8:8: mobile.train.fifo: \"8760 B\" is out of range (expected a size of at least 65536 B with its \
           unit, such as \"100 MB\")",
        ],
    );
}

#[test]
fn keys_of_another_mechanism_are_refused() {
    refuses(
        TRAIN,
        "name = \"train\"\nmechanism = \"packet-control\"\nthreshold = 5\nfifo = \"1 MiB\"",
        &[
            "g.toml:9:1: mobile.train.fifo: has no effect with mechanism = \"packet-control\" (expected mechanism = \
           \"m-tcp\", \"m-tcp-plus\" or \"holdover\")",
        ],
    );
    refuses(
        TRAIN,
        "name = \"train\"\ntimer = \"1 s\"",
        &[
            "g.toml:7:1: mobile.train.timer: has no effect with mechanism = \"wake\" (expected mechanism = \"m-tcp\")",
        ],
    );
    // M-TCP withholds a byte at all times and Packet Control filters at all times.
    refuses(
        TRAIN,
        "name = \"train\"\nmechanism = \"m-tcp\"\ncopy = \"when-fading\"",
        &[
            "g.toml:8:1: mobile.train.copy: has no effect with mechanism = \"m-tcp\" (expected mechanism = \
           \"m-tcp-plus\" or \"holdover\")",
        ],
    );
}

#[test]
fn packet_controls_threshold_is_3_at_least() {
    for (keys, message) in [
        ("", "g.toml:5:1: mobile.train.threshold: missing"),
        ("\nthreshold = 2", "g.toml:8:13: mobile.train.threshold: 2 is out of range"),
    ] {
        let line = format!("{message} (expected a whole number from 3 to 1000000)");
        refuses(TRAIN, &format!("{TRAIN}\nmechanism = \"packet-control\"{keys}"), &[&line]);
    }
}

#[test]
fn silence_is_longer_than_an_ack_may_be_delayed() {
    refuses(
        SILENCE,
        "silence = \"50 ms\"",
        &[
            "g.toml:10:11: signals.silence: \"50 ms\" is out of range (expected a duration of at least 200 ms with its \
           unit, such as \"200 ms\")",
        ],
    );
    refuses(
        SILENCE,
        "silence = 1",
        &[
            "g.toml:10:11: signals.silence: 1 has no unit (expected a duration of at least 200 ms with its unit, such as \
           \"200 ms\")",
        ],
    );
}

#[test]
fn a_mark_is_in_its_mask_and_not_that_of_unmarked_packets() {
    let of = |mark: &str| with("state = \"/run/airtcp\"", &format!("mark = \"{mark}\""));
    let marks = ["7", "0x10/0xf0"].map(|mark| of(mark).unwrap().mark);
    let expected = [Mark { value: 7, mask: u32::MAX }, Mark { value: 0x10, mask: 0xf0 }];
    assert_eq!(marks, expected);
    let why = |mark: &str| of(mark).expect_err(mark).to_string();
    for (mark, message) in [
        ("0", "is 0, as the mark of packets that nobody marked"),
        ("0x110/0xf0", "has bits that the mask does not have (0x100)"),
        ("0x100000000", "is not a mark"),
        ("red", "is not a mark"),
        ("1/", "is not a mark"),
    ] {
        let line = format!(
            "g.toml:1:8: mark: \"{mark}\" {message} (expected a value above 0, perhaps with a mask that covers it, such \
             as \"0x10\" or \"0x10/0xf0\")"
        );
        assert_eq!(why(mark), line);
    }
}

#[test]
fn addresses_to_listen_on_have_a_port() {
    for (listen, message) in [
        ("127.0.0.1:0", "has port 0"),
        ("127.0.0.1", "has no port"),
        ("::1", "has no port"),
        ("127.0.0.1:65536", "has a port above 65535"),
        ("[::1]:99999", "has a port above 65535"),
        ("localhost:80", "is not an address and a port"),
        (":80", "is not an address and a port"),
    ] {
        let line = format!(
            "g.toml:2:10: metrics.listen: \"{listen}\" {message} (expected an address and a port from 1 to 65535, such as \
             \"127.0.0.1:9000\" or \"[::1]:9000\")"
        );
        let metrics = format!("[metrics]\nlisten = \"{listen}\"\n[[mobile]]\nname = \"cab\"");
        refuses("state = \"/run/airtcp\"\n[[mobile]]\nname = \"cab\"", &metrics, &[&line]);
    }
    refuses(
        "state = \"/run/airtcp\"",
        "metrics = \"127.0.0.1:9000\"",
        &[
            "g.toml:1:11: metrics: found \"127.0.0.1:9000\" (expected a table of one key: { listen = … })",
        ],
    );
    refuses(
        SILENCE,
        "agent = { listen = \"0.0.0.0:4711\" }",
        &[
            "g.toml:10:9: signals.agent.keys: missing (expected an absolute path, such as \"/run/airtcp\")",
        ],
    );
}

#[test]
fn paths_are_absolute_and_fit_a_socket() {
    let state = "state = \"/run/airtcp\"";
    for key in ["state", "control", "record"] {
        let column = key.len() + 4;
        let line = format!(
            "g.toml:1:{column}: {key}: \"a/b\" is not an absolute path (expected an absolute path, such as \
             \"/run/airtcp\")"
        );
        refuses(state, &format!("{key} = \"a/b\""), &[&line]);
    }
    refuses(
        state,
        &format!("control = \"/{}\"", "x".repeat(107)),
        &["g.toml:1:11: control: too long for a socket, 108 B (expected at most 107 B)"],
    );
    refuses(
        state,
        "record = \"/a\\u0000b\"",
        &[
            "g.toml:1:10: record: \"/a\\0b\" has a zero byte (expected an absolute path, such as \"/run/airtcp\")",
        ],
    );
}

#[test]
fn a_planned_outage_begins_at_a_moment() {
    let expected =
        "(expected a date and time with its offset from UTC, such as 2026-05-01T06:30:00Z)";
    for (begin, message) in [
        ("2026-05-01T06:30:00", "2026-05-01T06:30:00 has no offset from UTC"),
        ("2026-05-01", "2026-05-01 is not both a date and a time"),
        ("06:30:00", "06:30:00 is not both a date and a time"),
        ("2026-05-01T06:30:00.5Z", "2026-05-01T06:30:00.5Z is finer than a second"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z is before 1970"),
        ("\"2026-05-01T06:30:00Z\"", "found \"2026-05-01T06:30:00Z\""),
    ] {
        let line = format!("g.toml:13:9: signals.planned.0.begin: {message} {expected}");
        refuses(BEGIN, begin, &[&line]);
    }
    let begin = |begin: &str| with(BEGIN, begin).unwrap().signals.timetable[0].begin;
    assert_eq!(begin("1970-01-01T00:00:00Z"), 0);
    assert_eq!(begin("2000-03-01T00:00:00Z"), 951_868_800);
    assert_eq!(begin("2000-03-01 01:30:00+01:30"), 951_868_800);
}

#[test]
fn planned_outages_are_of_known_mobiles_and_end() {
    refuses(
        "\"10.0.0.9\"",
        "\"10.0.1.9\"",
        &[
            "g.toml:12:10: signals.planned.0.mobile: 10.0.1.9 is in no group (expected an address of a [[mobile]])",
        ],
    );
    refuses(
        LENGTH,
        "length = \"40 s\"\nevery = \"40 s\"",
        &[
            "g.toml:15:9: signals.planned.0.every: comes again after 40 s, before it is over (expected more than `length` \
           and `lead` together)",
        ],
    );
}

#[test]
fn carrier_is_that_of_an_interface() {
    assert!(with(SILENCE, "carrier = true").is_ok());
    let text = "[signals]\ncarrier = true\n[[mobile]]\nname = \"m\"\naddresses = [\"10.0.0.7\"]";
    assert_eq!(
        parse(text).unwrap_err().to_string(),
        "g.toml:2:11: signals.carrier: no group says behind which interface it is (expected interfaces in a \
         [[mobile]])"
    );
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text =
        "state = \"x\"\nmobile = [{ name = \"a b\", addresses = [\"x\"] }]\n[nfqueue]\nlength = 0";
    let lines: Vec<_> = parse(text)
        .unwrap_err()
        .diagnostics
        .into_iter()
        .map(|diagnostic| (diagnostic.line, diagnostic.key))
        .collect();
    let expected =
        [(1, "state"), (2, "mobile.a b.name"), (2, "mobile.a b.addresses"), (4, "nfqueue.length")];
    assert_eq!(lines, expected.map(|(line, key)| (line, key.to_owned())));
}

#[test]
fn packets_wait_for_mechanisms_that_do_more_than_watch_and_where_that_is_wanted() {
    let keys = |keys: &str| {
        let config = with(TRAIN, &format!("{TRAIN}\n{keys}")).unwrap();
        let train = config.groups.iter().find(|group| group.name == "train").unwrap();
        (train.is_mirrored(), train.queued())
    };
    assert_eq!(keys(""), (true, Queued::Never), "wake");
    assert_eq!(keys("mechanism = \"m-tcp-plus\""), (true, Queued::Watched), "always");
    let holdover = "mechanism = \"holdover\"\n";
    assert_eq!(keys(holdover), (true, Queued::Watched));
    assert_eq!(keys(&format!("{holdover}fast-path = \"off\"")), (false, Queued::Always));
    assert_eq!(keys(&format!("{holdover}copy = \"when-fading\"")), (false, Queued::Watched));
    assert_eq!(keys("mechanism = \"m-tcp\""), (false, Queued::Always), "it changes every ACK");
    let filter = "mechanism = \"packet-control\"\nthreshold = 10";
    assert_eq!(keys(filter), (false, Queued::Always));
}

#[test]
fn what_has_no_effect_while_the_gateway_observes_is_a_caution() {
    let with = |keys: &str| format!("mode = \"observe\"\n{keys}\n{BASE}");
    let cautions = |text: &str| told(parse(text).unwrap().cautions());
    assert_eq!(cautions(&with("")), [""; 0]);
    let text = with("record = \"/a.pcapng\"\nmark = \"7\"\nnfqueue = { queue = 3 }")
        .replace(TRAIN, &format!("{TRAIN}\nmechanism = \"m-tcp-plus\""));
    assert_eq!(
        cautions(&text),
        [
            "mobile.train: m-tcp-plus has no effect while mode = \"observe\"",
            "record: it has no effect while mode = \"observe\"",
            "nfqueue: it has no effect while mode = \"observe\"",
            "mark: it has no effect while mode = \"observe\"",
        ]
    );
}

#[test]
fn what_nobody_would_report_is_a_caution() {
    let cautions = |text: &str| told(parse(text).unwrap().cautions());
    let wake = "[[mobile]]\nname = \"m\"\naddresses = [\"10.0.0.7\"]\n";
    assert_eq!(cautions(wake), [""; 0], "it needs no signals");
    let recorded = format!("record = \"/a.pcapng\"\n{wake}");
    assert_eq!(
        cautions(&recorded),
        ["record: it has no packets of wake, the mechanism of every group"]
    );
    assert_eq!(cautions(&format!("{recorded}mechanism = \"m-tcp\"")), [""; 0]);
    assert_eq!(cautions(&format!("{wake}mechanism = \"m-tcp\"")), [""; 0]);
    let mobile = &format!("{wake}mechanism = \"holdover\"\n");
    assert_eq!(
        cautions(mobile),
        [
            "mobile.m: only `airtcp gateway signal` says when a mobile is out of reach (expected a source in \
          [signals], at least silence)"
        ]
    );
    assert_eq!(cautions(&format!("{mobile}[signals]\nneighbour = true")), [""; 0]);

    let fading = format!("{mobile}copy = \"when-fading\"\n[signals]\n");
    assert_eq!(
        cautions(&format!("{fading}silence = \"1 s\"")),
        [
            "mobile.m: copies are taken when fading, but only `airtcp gateway signal` can announce an outage \
          (expected signals.agent, or signals.planned with a lead)"
        ]
    );
    let agent = format!("{fading}agent = {{ listen = \"0.0.0.0:4711\", keys = \"/k\" }}\n");
    assert_eq!(cautions(&agent), [""; 0]);
    assert_eq!(
        cautions(&format!("{agent}silence = \"1 s\"")),
        [
            "mobile.m: signals.silence notices nothing before another signal, as copies are taken when fading"
        ]
    );
    let planned = |lead: &str| {
        let table = "[[signals.planned]]\nmobile = \"10.0.0.7\"\nbegin = 2026-05-01T06:30:00Z\nlength = \"40 s\"";
        cautions(&format!("{fading}{table}\nlead = \"{lead}\"")).len()
    };
    assert_eq!((planned("1 s"), planned("0 s")), (0, 1));
}

#[test]
fn an_outage_that_is_over_and_does_not_come_again_is_a_caution() {
    // 2026-05-01T06:30:00Z
    const BEGIN: u64 = 1_777_617_000;
    let past = |text: &str, now| told(parse(text).unwrap().past_outages(now));
    assert_eq!(past(BASE, BEGIN + 39), [""; 0]);
    let over = "signals.planned.0.begin: the outage is over since 2026-05-01T06:30:40Z, and has no effect any more \
                (expected one to come, or `every`)";
    assert_eq!(past(BASE, BEGIN + 40), [over]);
    let again = BASE.replace(LENGTH, &format!("{LENGTH}\nevery = \"1 h\""));
    assert_eq!(past(&again, u64::MAX), [""; 0]);
    let caution = &parse(BASE).unwrap().past_outages(u64::MAX)[0];
    assert_eq!(caution.locate("g.toml", BASE).to_string(), format!("g.toml:13:9: {over}"));
}

#[test]
fn a_prefix_with_the_routers_address_where_the_fixed_hosts_are_is_a_caution() {
    let own = |ip: &str, has_default_route| OwnAddress {
        ip: ip.parse().unwrap(),
        interface: if has_default_route { "wan0" } else { "wlan0" }.to_owned(),
        has_default_route,
    };
    let here = [own("10.0.0.7", false), own("10.0.0.1", true), own("fd00::1", true)];
    let cautions = |text: &str| {
        let found = parse(text).unwrap().own_addresses(&here);
        let locate = |caution: &Caution| caution.locate("g.toml", text).to_string();
        found.iter().map(locate).collect::<Vec<_>>()
    };
    let itself = "g.toml:4:14: mobile.cab.addresses.0: 10.0.0.7 is this router's own address, on wlan0: what it forwards \
                  has others (expected the mobiles' own addresses, behind any translation)";
    assert_eq!(cautions(BASE), [itself], "others are behind wwan0");
    let anywhere = BASE.replace("interfaces = [\"wwan0\"]\n", "");
    let fixed = "g.toml:7:14: mobile.train.addresses.0: 10.0.0.0/24 contains 10.0.0.1, this router's address on wan0, over \
                 which the default route leads: fixed hosts there are taken for mobiles (expected the mobiles' addresses \
                 alone, or their `interfaces`)";
    assert_eq!(cautions(&anywhere), [itself, fixed]);
    let config = parse(&anywhere).unwrap();
    assert_eq!(config.own_addresses(&[own("10.0.0.1", false)]), [], "in the mobiles' network");
    assert_eq!(config.groups[1].own(&here).count(), 2);
}

proptest::proptest! {
    /// No text makes the parser panic.
    #[test]
    fn any_text_is_read_or_refused(text: String) {
        let _ = parse(&text);
    }

    /// Whatever a known key is set to, the result is a configuration or a diagnostic with a place.
    #[test]
    fn any_value_is_read_or_refused(
        key in proptest::sample::select(&[
            "state", "control", "record", "nfqueue", "nfqueue.queue", "nfqueue.length", "limits",
            "limits.memory", "limits.flows", "limits.idle", "metrics", "metrics.listen", "signals",
            "signals.agent", "signals.agent.keys", "signals.planned", "signals.carrier",
            "signals.silence", "signals.modem-manager", "signals.fading-below", "[[mobile]]\nname", "[[mobile]]\naddresses", "[[mobile]]\ninterfaces",
            "[[mobile]]\nmechanism", "[[mobile]]\ncopy", "[[mobile]]\nfifo", "[[mobile]]\ntimer",
            "[[mobile]]\nthreshold",
        ][..]),
        value in proptest::sample::select(&[
            "\"\"", "0", "-1", "1e400", "nan", "99999999999999999999", "true", "[]", "{}", "[[]]", "[{}]",
            "\"/a\"", "[\"::/0\"]", "[\"10.0.0.0/8\", \"::ffff:10.0.0.1\"]", "\"[::]:1\"", "\"1 s\"",
            "\"999999999 s\"", "\"64 KiB\"", "\"17179869183 GiB\"", "2026-05-01T06:30:00Z",
            "9999-12-31T23:59:59-23:59", "{ listen = 1 }", "[{ begin = 0000-01-01T00:00:00Z }]",
            "\"packet-control\"", "1000000",
        ][..]),
    ) {
        let mobile = "[[mobile]]\nname = \"m\"\naddresses = [\"10.0.0.7\"]\n";
        if let Err(error) = parse(&format!("{key} = {value}\n{mobile}")) {
            proptest::prop_assert!(!error.diagnostics.is_empty());
            proptest::prop_assert!(error.diagnostics.iter().all(|d| d.line >= 1 && d.column >= 1));
            let _ = error.render();
        }
    }
}

#[test]
fn the_documentation_is_the_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gateway-config.md");
    let docs = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        docs == markdown(),
        "docs/gateway-config.md is stale; regenerate it: \
         cargo run -p airtcp-cli -- schema --gateway --markdown > docs/gateway-config.md"
    );
}

#[test]
fn the_example_in_the_documentation_is_right() {
    let docs = markdown();
    let example = docs.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let config = parse(example.unwrap()).unwrap();
    assert_eq!(config.cautions(), []);
}

#[test]
fn the_example_files_are_right() {
    for (name, groups) in [("gateway", 3), ("gateway-on-board", 2)] {
        let path = format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let config = parse(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(config.groups.len(), groups);
        assert_eq!(config.cautions(), []);
    }
}

#[test]
fn the_json_schema_describes_every_table() {
    let schema = json_schema();
    assert_eq!(schema["$ref"], "#/$defs/gateway");
    let names: Vec<&String> = schema["$defs"].as_object().unwrap().keys().collect();
    let expected = [
        "gateway",
        "limits",
        "metrics",
        "mobile",
        "nfqueue",
        "signals",
        "signals.agent",
        "signals.planned",
        "uplink",
    ];
    assert_eq!(names, expected);
    let mobile = &schema["$defs"]["mobile"];
    assert_eq!(mobile["required"], serde_json::json!(["name", "addresses"]));
    assert_eq!(mobile["properties"]["mechanism"]["default"], "wake");
    assert_eq!(schema["$defs"]["signals.planned"]["properties"]["begin"]["format"], "date-time");
}

#[test]
fn a_reload_is_described_by_what_changed() {
    let config = |text: &str| GatewayConfig::parse("gateway.toml", text).unwrap();
    let group = |name: &str, more: &str| {
        let net = name.len();
        format!("[[mobile]]\nname = {name:?}\naddresses = [\"10.{net}.0.0/16\"]\n{more}\n")
    };
    let phones = group("phones", "");
    let old = config(&format!("{phones}{}", group("cars", "")));
    assert_eq!(old.changes(&old), ["no setting changed"]);
    let limits = "limits = { flows = 7 }\nsignals = { silence = \"1 s\" }\n";
    let new = config(&format!("{limits}{phones}{}", group("tablets", "")));
    assert_eq!(
        old.changes(&new),
        ["group \"cars\" removed", "group \"tablets\" added", "signals changed", "limits changed"]
    );
    let new = config(&format!("{}{phones}", group("cars", "")));
    assert_eq!(old.changes(&new), ["order of groups changed"]);
    let new = config(&format!(
        "{}{}",
        phones.replace(".0.0", ".7.7").replace("/16", ""),
        group("cars", "mechanism = \"holdover\"\nfast-path = \"off\"")
    ));
    assert_eq!(
        old.changes(&new),
        [
            "members of group \"phones\" changed",
            "mechanism and fast-path of group \"cars\" changed"
        ]
    );
}
