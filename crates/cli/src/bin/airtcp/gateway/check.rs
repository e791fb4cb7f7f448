//! `airtcp gateway check-config`: the effect of a configuration, or its mistakes. Changes nothing.

use crate::doctor_probe;
use airtcp_cli::{BAD_INPUT, FAILURE, SUCCESS, complain, print, tell};
use airtcp_config::Moment;
use airtcp_core::{Bytes, Duration, counted};
use airtcp_edge::Capabilities;
use airtcp_gateway::config::{
    AgentConfig, CopyMode, GatewayConfig, Group, InterfacePattern, Limits, Members, Mode,
    NfqueueConfig, OwnAddress, PlannedOutage, Queued, Signals,
};
use airtcp_linux::daemon::ledger;
use airtcp_linux::daemon::server::{self, Type};
use airtcp_linux::datapath::{nfqueue, rules};
use airtcp_linux::doctor;
use airtcp_linux::signals::key_file;
use airtcp_settings::Settings;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;
use std::time::SystemTime;

/// Exit codes, for `--help`.
pub(super) const EXIT_CODES: &str = "Exit codes: 0 the gateway can start with it, as far as this user can see; 1 it is \
                                     valid, but the gateway would not start here and now; 2 it has mistakes";

/// Reads the configuration and the files it names, and prints its effect; returns the exit code.
pub(super) fn check(path: &Path) -> i32 {
    let (config, text) = match load(path) {
        Ok(loaded) => loaded,
        Err(message) => {
            // A rendered diagnostic already begins with its file.
            tell(&message);
            return BAD_INPUT;
        }
    };
    let source_name = path.display().to_string();
    let own = doctor::addresses();
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let cautions = [
        config.cautions(),
        config.past_outages(since_1970.as_secs()),
        config.own_addresses(&own),
        config.missing_interfaces(&doctor::interfaces()),
    ];
    for caution in cautions.iter().flatten() {
        complain(&caution.locate(&source_name, &text).to_string());
    }
    let (refusals, perhaps) = refusals(&config);
    for (key, message) in perhaps {
        complain(&GatewayConfig::locate(&source_name, &text, key, message).to_string());
    }
    for (key, message) in &refusals {
        let refusal = GatewayConfig::locate(&source_name, &text, key, message.as_str());
        tell(&refusal.render());
    }
    // Without the right to ask the kernel, or on another machine, the rest is still of use.
    let rules = match config.mode {
        Mode::Observe => String::new(),
        Mode::Protect => rules::text(&config).unwrap_or_else(|error| {
            complain(&format!("cannot determine the rules: {error}"));
            String::new()
        }),
    };
    let text =
        format!("{}{}{}", describe(&config, &own), data_path(&config), describe_rules(&rules));
    match print(&text) {
        SUCCESS if !refusals.is_empty() => FAILURE,
        code => code,
    }
}

/// Complaints about keys, by their paths.
type Complaints = Vec<(&'static [&'static str], String)>;

/// What the daemon would refuse here and now, by its own checks; and what it would refuse unless it
/// is the gateway that runs. Changes nothing.
fn refusals(config: &GatewayConfig) -> (Complaints, Complaints) {
    let (mut refusals, mut perhaps): (Complaints, Complaints) = Default::default();
    if let Err(error) = ledger::check_folder(&config.state) {
        refusals.push((&["state"], error.to_string()));
    }
    if let Err(error) = server::check_control(&config.control) {
        refusals.push((&["control"], error.to_string()));
    }
    let queue = config.nfqueue.queue;
    if config.mode == Mode::Protect
        && let Some(error) = nfqueue::in_use(queue)
    {
        let key = &["nfqueue", "queue"];
        match server::may_run(&config.control) {
            true => {
                let who = config.control.display();
                let message = format!(
                    "queue {queue} is in use now, perhaps by the gateway that runs ({who})"
                );
                perhaps.push((key, message));
            }
            false => refusals.push((key, error.to_string())),
        }
    }
    let listen: [(&[&str], _, _); 2] = [
        (&["metrics", "listen"], config.metrics, Type::STREAM),
        (
            &["signals", "agent", "listen"],
            config.signals.agent.as_ref().map(|a| a.listen),
            Type::DGRAM,
        ),
    ];
    for (key, address, kind) in listen {
        let Some(address) = address else { continue };
        match server::cannot_listen(address, kind).map(|error| error.kind()) {
            None => {}
            Some(ErrorKind::AddrInUse) if server::may_run(&config.control) => perhaps.push((
                key,
                format!(
                    "{address} is taken now, perhaps by the gateway that runs ({})",
                    config.control.display()
                ),
            )),
            Some(ErrorKind::AddrInUse) => refusals.push((
                key,
                format!("{address} is taken now by another program (expected a free address)"),
            )),
            Some(_) => refusals.push((
                key,
                format!("{address} is no address of this host now (expected one of its own)"),
            )),
        }
    }
    (refusals, perhaps)
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
    load(path).map(|(config, _)| config)
}

/// The same, and the file's text.
fn load(path: &Path) -> Result<(GatewayConfig, String), String> {
    let source_name = path.display().to_string();
    let text =
        fs::read_to_string(path).map_err(|error| format!("airtcp: {source_name}: {error}"))?;
    parse(path, &text).map(|config| (config, text))
}

/// The configuration in the text of a file.
pub(super) fn parse(path: &Path, text: &str) -> Result<GatewayConfig, String> {
    let source_name = path.display().to_string();
    let config = GatewayConfig::parse(&source_name, text).map_err(|error| error.render())?;
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

/// The configuration's effect on a host with these addresses, for people.
fn describe(config: &GatewayConfig, own: &[OwnAddress]) -> String {
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
        describe_group(&mut out, group, own);
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

fn describe_group(out: &mut String, group: &Group, own: &[OwnAddress]) {
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
    let own: Vec<IpAddr> = group.own(own).collect();
    if !own.is_empty() {
        let _ = writeln!(out, "  but this router's own {}", listed(&own));
    }
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
    use airtcp_linux::daemon::server::Listeners;
    use std::fs;
    use std::io::{self, BufRead, Write as _};
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
        assert_eq!(describe(&config, &[]), expected);
    }

    #[test]
    fn a_gateway_that_observes_says_so_first() {
        let config = GatewayConfig::parse("g.toml", &format!("mode = \"observe\"\n{MOBILE}"));
        let text = describe(&config.unwrap(), &[]);
        assert!(text.starts_with("mode: observe\n  all packets pass untouched"), "{text}");
    }

    #[test]
    fn the_routers_own_addresses_are_left_out() {
        let config = GatewayConfig::parse("g.toml", MOBILE).unwrap();
        let own = ["10.0.0.1", "10.0.1.1"].map(|ip| OwnAddress {
            ip: ip.parse().unwrap(),
            interface: "wlan0".to_owned(),
            has_default_route: false,
        });
        let text = describe(&config, &own);
        let expected = "  10.0.0.0/24 behind any interface\n  but this router's own 10.0.0.1\n";
        assert!(text.contains(expected), "{text}");
    }

    /// What the daemon refuses of the file, and what it might; the keys with their lines.
    fn refused(path: &Path) -> (Vec<String>, Vec<String>) {
        let (config, text) = load(path).unwrap();
        let (refusals, perhaps) = refusals(&config);
        let locate = |(key, message): (&[&str], String)| {
            GatewayConfig::locate("g.toml", &text, key, message).to_string()
        };
        let all = |complaints: Complaints| complaints.into_iter().map(locate).collect();
        (all(refusals), all(perhaps))
    }

    #[test]
    fn a_queue_that_another_program_has_is_shown_in_its_line() {
        let config = "control = \"FOLDER/gateway.sock\"\nnfqueue.queue = 54321\n";
        let (_folder, path) = file(&format!("{config}{MOBILE}"));
        assert_eq!(refused(&path), (vec![], vec![]));
        let queue = match nfqueue::Reserved::take(54_321) {
            Ok(queue) => queue,
            Err(error) => return airtcp_testing::skip(&format!("root and NFQUEUE: {error}")),
        };
        let (refusals, perhaps) = refused(&path);
        let [refusal] = &refusals[..] else { panic!("{refusals:?}") };
        let expected =
            "g.toml:2:17: nfqueue.queue: queue 54321 is in use by another process (netlink port ";
        assert!(refusal.starts_with(expected) && perhaps.is_empty(), "{refusal} {perhaps:?}");
        drop(queue);
    }

    #[test]
    fn a_control_socket_that_the_daemon_cannot_make_is_shown_in_its_line() {
        let control = |path: &str| {
            let (folder, path) = file(&format!("control = \"FOLDER/{path}\"\n{MOBILE}"));
            fs::write(folder.path().join("taken"), "").unwrap();
            fs::create_dir(folder.path().join("folder")).unwrap();
            let refused = refused(&path).0;
            let bind = Listeners::open(
                &GatewayConfig::parse("g", &fs::read_to_string(path).unwrap()).unwrap().control,
                None,
            );
            assert_eq!(refused.is_empty(), bind.is_ok(), "{refused:?}");
            refused.join("\n").replace(folder.path().to_str().unwrap(), "FOLDER")
        };
        assert_eq!(control("gateway.sock"), "");
        assert_eq!(control("new/gateway.sock"), "");
        for taken in ["taken", "folder"] {
            let expected = format!(
                "g.toml:1:11: control: FOLDER/{taken}: exists and is not a socket; give `control` another path"
            );
            assert_eq!(control(taken), expected);
        }
        for (path, folder, why) in [
            ("taken/gateway.sock", "taken", "not a directory"),
            ("taken/in/gateway.sock", "taken/in", "not a directory"),
            ("new/in/gateway.sock", "new/in", "entity not found"),
        ] {
            let expected = format!("g.toml:1:11: control: control socket: FOLDER/{folder}: {why}");
            assert_eq!(control(path), expected);
        }
    }

    #[test]
    fn a_state_folder_that_the_daemon_refuses_is_shown_in_its_line() {
        let (folder, path) = file(&format!("state = \"FOLDER/state\"\n{MOBILE}"));
        let state = folder.path().join("state");
        assert_eq!(refused(&path), Default::default(), "it would be made");
        assert!(!state.exists());
        fs::create_dir(&state).unwrap();
        let mode = |mode| fs::set_permissions(&state, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o755);
        assert_eq!(refused(&path), Default::default());
        mode(0o775);
        let ([refusal], []) = (&refused(&path).0[..], &refused(&path).1[..]) else { panic!() };
        assert!(
            refusal.starts_with("g.toml:1:9: state: ") && refusal.contains("chmod 700"),
            "{refusal}"
        );
        assert_eq!(check(&path), FAILURE);
        fs::remove_dir(&state).unwrap();
        fs::write(&state, "").unwrap();
        assert!(refused(&path).0[0].contains("it must be a folder"));
        let (_folder, path) = file(&format!("state = \"FOLDER/gateway.toml/state\"\n{MOBILE}"));
        assert!(refused(&path).0[0].contains("state folder"), "a file stands in the way");
    }

    #[test]
    fn an_address_that_is_taken_is_shown_in_its_line() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let text = format!(
            "state = \"FOLDER/state\"\ncontrol = \"FOLDER/s\"\n{MOBILE}[metrics]\nlisten = \"{address}\"\n"
        );
        let (folder, path) = file(&text);
        let key = format!("g.toml:7:10: metrics.listen: {address} is taken now");
        let other = format!("{key} by another program (expected a free address)");
        assert_eq!(refused(&path), (vec![other], Vec::new()));
        assert_eq!(check(&path), FAILURE);
        // A gateway that answers on the control socket.
        let control = folder.path().join("s");
        let gateway = std::os::unix::net::UnixListener::bind(&control).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut client, _) = gateway.accept().unwrap();
                let mut request = String::new();
                io::BufReader::new(&client).read_line(&mut request).unwrap();
                client.write_all(b"{\"done\":{}}\n").unwrap();
            });
            let perhaps =
                format!("{key}, perhaps by the gateway that runs ({})", control.display());
            assert_eq!(refused(&path), (Vec::new(), vec![perhaps]));
        });
        // Not the one from above: processes that other tests start may have it for a moment longer.
        let (_folder, path) = file(&text.replace(&address.to_string(), "127.0.0.77:4711"));
        assert_eq!(refused(&path), Default::default());
    }

    #[test]
    fn an_address_of_agents_is_checked_as_datagrams_and_must_be_of_this_host() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let taken = socket.local_addr().unwrap();
        for (listen, message) in [
            (taken.to_string(), "is taken now by another program"),
            // RFC 5737
            ("192.0.2.1:4711".to_owned(), "is no address of this host now"),
        ] {
            let text = format!("state = \"FOLDER/state\"\ncontrol = \"FOLDER/s\"\n{MOBILE}{AGENT}");
            let (folder, path) = file(&text.replace("127.0.0.1:4711", &listen));
            let keys = folder.path().join("keys");
            fs::write(&keys, format!("cab {} 10.0.0.7\n", "5a".repeat(16))).unwrap();
            fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
            let (refusals, _) = refused(&path);
            let key = format!("g.toml:7:10: signals.agent.listen: {listen} {message}");
            assert!(refusals.len() == 1 && refusals[0].starts_with(&key), "{refusals:?}");
        }
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
