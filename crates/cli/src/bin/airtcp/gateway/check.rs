//! `airtcp gateway check-config`: the effect of a configuration, or its mistakes. Changes nothing.

use crate::doctor_probe;
use airtcp_cli::{BAD_INPUT, complain, print};
use airtcp_config::Moment;
use airtcp_core::{Bytes, Duration, counted};
use airtcp_edge::Capabilities;
use airtcp_gateway::config::{
    AgentConfig, CopyMode, GatewayConfig, Group, InterfacePattern, Limits, Members, Mode,
    NfqueueConfig, PlannedOutage, Queued, Signals,
};
use airtcp_linux::datapath::rules;
use airtcp_linux::doctor;
use airtcp_linux::signals::key_file;
use airtcp_settings::Settings;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Reads the configuration and the files it names, and prints its effect; returns the exit code.
pub(super) fn check(path: &Path) -> i32 {
    let config = match read(path) {
        Ok(config) => config,
        Err(message) => {
            // A rendered diagnostic already begins with its file.
            let _ = writeln!(io::stderr(), "{message}");
            return BAD_INPUT;
        }
    };
    let missing = config.missing_interfaces(&doctor::interfaces());
    for caution in config.cautions().into_iter().chain(missing) {
        complain(&format!("{}: {caution}", path.display()));
    }
    // Without the right to ask the kernel, or on another machine, the rest is still of use.
    let rules = match config.mode {
        Mode::Observe => String::new(),
        Mode::Protect => rules::text(&config).unwrap_or_else(|error| {
            complain(&format!("cannot determine the rules: {error}"));
            String::new()
        }),
    };
    print(&format!("{}{}{}", describe(&config), data_path(&config), describe_rules(&rules)))
}

/// The path of mirrored packets on this machine; empty without any, or if it is unknown.
fn data_path(config: &GatewayConfig) -> String {
    if config.mode == Mode::Protect && !config.groups.iter().any(Group::is_mirrored) {
        return String::new();
    }
    match doctor::mirror_path(config.data_path, &mut doctor_probe()) {
        Ok(lines) => {
            let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
            format!("data path\n{lines}")
        }
        Err(error) => {
            complain(&format!("packets cannot be mirrored here: {error}"));
            String::new()
        }
    }
}

/// The configuration in a file, or the mistakes in it or in a file that it names.
pub(super) fn read(path: &Path) -> Result<GatewayConfig, String> {
    let source_name = path.display().to_string();
    let text =
        fs::read_to_string(path).map_err(|error| format!("airtcp: {source_name}: {error}"))?;
    let config = GatewayConfig::parse(&source_name, &text).map_err(|error| error.render())?;
    if let Some(AgentConfig { keys, .. }) = &config.signals.agent {
        key_file::read(keys)
            .map_err(|error| format!("airtcp: {source_name}: signals.agent.keys: {error}"))?;
    }
    if let Some(record) = &config.record
        && !record.parent().is_some_and(Path::is_dir)
    {
        let record = record.display();
        return Err(format!("airtcp: {source_name}: record: {record}: no such folder"));
    }
    Ok(config)
}

/// The configuration's effect, for people.
fn describe(config: &GatewayConfig) -> String {
    let GatewayConfig {
        mode,
        data_path: _,
        nfqueue,
        mark,
        state,
        control,
        limits,
        groups,
        signals,
        metrics,
        record,
    } = config;
    let mut out = String::new();
    if *mode == Mode::Observe {
        let _ = writeln!(out, "mode: observe");
        let _ = writeln!(
            out,
            "  all packets pass untouched; `airtcp gateway report` shows what this would save:"
        );
    }
    for group in groups {
        describe_group(&mut out, group);
    }
    let Limits { memory, flows, flows_per_mobile, idle } = limits;
    let memory = size(*memory);
    let _ = writeln!(out, "limits of each group");
    let _ = writeln!(
        out,
        "  {memory} of copies, {}, {flows_per_mobile} of one mobile, {idle} without traffic",
        counted(*flows, "connection")
    );
    let _ = writeln!(out, "signals");
    let _ = writeln!(out, "  airtcp gateway signal, on {}", control.display());
    describe_signals(&mut out, signals, groups);
    let NfqueueConfig { queue, length } = nfqueue;
    let _ =
        writeln!(out, "nfqueue\n  queue {queue}, at most {} waiting", counted(*length, "packet"));
    let _ = writeln!(out, "injected packets\n  mark {mark}");
    let _ = writeln!(out, "state\n  {}", state.display());
    if let Some(address) = metrics {
        let _ = writeln!(out, "metrics\n  http://{address}/metrics");
    }
    if let Some(file) = record {
        let _ = writeln!(out, "record\n  {}", file.display());
    }
    out
}

/// The rules that send packets to the queue, if they are known.
fn describe_rules(rules: &str) -> String {
    let lines: String = rules.lines().map(|line| format!("  {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("rules\n{lines}") }
}

fn listed<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn describe_group(out: &mut String, group: &Group) {
    let Group { name, members, mechanism, copy, fast_path: _ } = group;
    let word = mechanism.word();
    let _ = match members {
        Members::Mobiles { addresses, interfaces } => {
            let behind = match interfaces.as_slice() {
                [] => "any interface".to_owned(),
                patterns => listed(patterns),
            };
            writeln!(out, "mobile.{name}: {word}\n  {} behind {behind}", listed(addresses))
        }
        Members::Uplink(interface) => writeln!(
            out,
            "{name}: {word}\n  every host behind {interface}, as one mobile; protects the hosts on board and this one"
        ),
    };
    let Capabilities { fifo, all_protocols, .. } = mechanism.capabilities();
    if all_protocols.is_some() {
        let _ = writeln!(out, "  packets of all protocols, copied beside the kernel's forwarding");
    }
    let Some(fifo) = fifo else {
        let mut settings = Vec::new();
        mechanism.write(&mut settings);
        for (key, value) in settings.into_iter().filter(|(key, _)| *key != "mechanism") {
            let _ = writeln!(out, "  {key} = {value}");
        }
        return;
    };
    let when = match copy {
        CopyMode::Always => "always",
        CopyMode::WhenFading => "when fading",
    };
    let _ = writeln!(out, "  copies {when}, at most {} per connection", size(fifo));
    let _ = match (group.is_mirrored(), group.queued()) {
        (true, _) => writeln!(
            out,
            "  packets are copied beside the kernel's forwarding where possible, while the mobile is in reach"
        ),
        (false, Queued::Always) => writeln!(out, "  all packets wait for the gateway"),
        (false, Queued::Watched | Queued::Never) => Ok(()),
    };
    if let Some(probe_interval) = mechanism.probe_interval() {
        let _ = writeln!(out, "  a mobile that is down is probed every {probe_interval}");
    }
    if let Some(max_down) = mechanism.max_down() {
        let _ = writeln!(
            out,
            "  a connection is reset once its mobile has been unreachable for {max_down}"
        );
    }
}

fn describe_signals(out: &mut String, signals: &Signals, groups: &[Group]) {
    let Signals { agent, carrier, neighbour, modem_manager, fading_below, timetable, silence } =
        signals;
    if let Some(AgentConfig { listen, keys }) = agent {
        let _ = writeln!(out, "  airtcp agent, on UDP {listen}, keys in {}", keys.display());
    }
    if *carrier {
        let of_mobiles = groups.iter().flat_map(Group::interfaces).copied();
        let of_uplinks = groups.iter().filter_map(Group::uplink).map(InterfacePattern::Exactly);
        let mut all: Vec<InterfacePattern> = of_mobiles.chain(of_uplinks).collect();
        all.sort_unstable();
        all.dedup();
        let _ = writeln!(out, "  carrier of {}", listed(&all));
    }
    if *neighbour {
        let _ = writeln!(out, "  neighbour table");
    }
    let level = fading_below.map(|level| format!("fading below a signal of {level} %"));
    if *modem_manager {
        let level = level.as_ref().map_or_else(String::new, |level| format!("; {level}"));
        let _ = writeln!(out, "  ModemManager, for uplinks whose modem it manages{level}");
    }
    if let Some(level) = level {
        let _ = writeln!(out, "  Wi-Fi interfaces of uplinks; {level}");
    }
    if let Some(silence) = silence {
        let _ = writeln!(out, "  silence for {silence}");
    }
    for PlannedOutage { mobile, begin, length, every, lead } in timetable {
        let begin = Moment(*begin);
        let _ = write!(out, "  planned: {mobile} for {length} from {begin}");
        if let Some(every) = every {
            let _ = write!(out, ", every {every}");
        }
        let _ = match *lead {
            Duration::ZERO => writeln!(out, ", not announced"),
            lead => writeln!(out, ", announced {lead} before"),
        };
    }
}

/// The size, in the largest unit that divides it.
fn size(bytes: Bytes) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let even =
        units.iter().find(|(_, bits)| bytes.get() > 0 && bytes.get().trailing_zeros() >= *bits);
    match even {
        Some((unit, bits)) => format!("{} {unit}", bytes.get() >> bits),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    /// A file with this text in a folder of its own.
    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.toml");
        fs::write(&path, text.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
        (folder, path)
    }

    const MOBILE: &str = "[[mobile]]\nname = \"m\"\naddresses = [\"10.0.0.0/24\"]\n";
    const AGENT: &str = "[signals.agent]\nlisten = \"127.0.0.1:4711\"\nkeys = \"FOLDER/keys\"\n";

    #[test]
    fn it_says_what_would_be_done() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gateway.toml");
        let config = GatewayConfig::parse("g.toml", &fs::read_to_string(path).unwrap()).unwrap();
        let expected = "\
mobile.cab: holdover
  10.8.0.7/32 behind any interface
  copies always, at most 4 MiB per connection
  packets are copied beside the kernel's forwarding where possible, while the mobile is in reach
  a mobile that is down is probed every 100 ms
  a connection is reset once its mobile has been unreachable for 86400 s
mobile.vehicles: m-tcp-plus
  10.8.0.0/24, 2001:db8:8::/64 behind wwan0
  copies always, at most 4 MiB per connection
  packets are copied beside the kernel's forwarding where possible, while the mobile is in reach
  a mobile that is down is probed every 100 ms
  a connection is reset once its mobile has been unreachable for 600 s
mobile.mesh: packet-control
  10.9.0.0/16 behind mesh0
  threshold = 10
limits of each group
  64 MiB of copies, 20000 connections, 5000 of one mobile, 7440 s without traffic
signals
  airtcp gateway signal, on /run/airtcp/gateway.sock
  airtcp agent, on UDP 0.0.0.0:4711, keys in /etc/airtcp/agent.keys
  carrier of mesh0, wwan0
  silence for 1 s
  planned: 10.8.0.20 for 40 s from 2026-05-01T04:30:00Z, every 1200 s, announced 200 ms before
nfqueue
  queue 77, at most 1024 packets waiting
injected packets
  mark 0x61697274
state
  /run/airtcp
metrics
  http://127.0.0.1:4711/metrics
";
        assert_eq!(describe(&config), expected);
    }

    #[test]
    fn a_gateway_that_observes_says_so_first() {
        let config = GatewayConfig::parse("g.toml", &format!("mode = \"observe\"\n{MOBILE}"));
        let text = describe(&config.unwrap());
        assert!(text.starts_with("mode: observe\n  all packets pass untouched"), "{text}");
    }

    #[test]
    fn rules_are_shown_when_they_are_known() {
        assert_eq!(describe_rules("a\nb\n"), "rules\n  a\n  b\n");
        assert_eq!(describe_rules(""), "");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = read(Path::new("/no/such.toml")).unwrap_err();
        assert!(error.starts_with("airtcp: /no/such.toml: No such file"), "{error}");
    }

    #[test]
    fn a_mistake_is_shown_in_its_line() {
        let (_folder, path) = file("[[mobile]]\nname = \"m\"\naddresses = [\"10.0.0.1/24\"]");
        let error = read(&path).unwrap_err();
        let shown = "3 | addresses = [\"10.0.0.1/24\"]\n  |              ^^^^^^^^^^^^^";
        assert!(error.ends_with(shown), "{error}");
        assert_eq!(check(&path), BAD_INPUT);
    }

    #[test]
    fn the_keys_are_there_and_not_for_everybody() {
        let (folder, path) = file(&format!("{MOBILE}{AGENT}"));
        let keys = folder.path().join("keys");
        let begins =
            format!("airtcp: {}: signals.agent.keys: {}: ", path.display(), keys.display());
        let error = read(&path).unwrap_err();
        assert!(error.starts_with(&format!("{begins}No such file")), "{error}");
        fs::write(&keys, format!("cab {} 10.0.0.7\n", "5a".repeat(16))).unwrap();
        let readable = |mode| fs::set_permissions(&keys, fs::Permissions::from_mode(mode)).unwrap();
        readable(0o644);
        let error = read(&path).unwrap_err();
        assert!(error.starts_with(&begins) && error.contains("chmod 600"), "{error}");
        readable(0o600);
        assert!(read(&path).is_ok());
    }

    #[test]
    fn a_recording_needs_its_folder() {
        let (_folder, path) = file(&format!("record = \"FOLDER/a.pcapng\"\n{MOBILE}"));
        assert!(read(&path).is_ok());
        let (_folder, path) = file(&format!("record = \"FOLDER/b/a.pcapng\"\n{MOBILE}"));
        assert!(read(&path).unwrap_err().ends_with("/b/a.pcapng: no such folder"));
    }

    #[test]
    fn sizes_are_shown_in_their_largest_unit() {
        let sizes = [0, 1023, 65_536, 3 << 20, 1 << 30].map(|n| size(Bytes(n)));
        assert_eq!(sizes, ["0 B", "1023 B", "64 KiB", "3 MiB", "1 GiB"]);
    }
}
