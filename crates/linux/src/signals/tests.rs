//! Sources at work: real sockets on the loopback interface, a channel in the loop's place.

use super::*;
use crate::agent::{self, AgentConfig as Reporter, AgentError, Answered, Once};
use crate::command::{Inbox, channel};
use airtcp_core::{Duration, LinkSignal};
use airtcp_edge::MobileId;
use airtcp_gateway::config::PlannedOutage;
use airtcp_gateway::signals::MobileSignal;
use airtcp_gateway::signals::keys::Keys;
use tempfile::TempDir;

const PHONE: &str = "phone 000102030405060708090a0b0c0d0e0f 10.0.0.7 ::7";

fn keys_in(folder: &TempDir, text: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.path().join("keys");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn agents(keys: &Path) -> Signals {
    let listen = "127.0.0.1:0".parse().unwrap();
    Signals { agent: Some(AgentConfig { listen, keys: keys.to_owned() }), ..Signals::default() }
}

fn started(signals: &Signals) -> (Running, Inbox) {
    let (handle, inbox) = channel().unwrap();
    (start(signals, &[], Path::new("/nowhere"), handle).unwrap(), inbox)
}

/// The next signal.
fn next(inbox: &Inbox) -> MobileSignal {
    let command = inbox.commands.recv_timeout(std::time::Duration::from_secs(5));
    let Ok(Command::Signal(signal)) = command else { panic!("{command:?}") };
    signal
}

fn said(mobile: &str, signal: LinkSignal, source: SignalSource) -> MobileSignal {
    MobileSignal { mobile: MobileId::Host(mobile.parse().unwrap()), signal, source }
}

/// An agent with the key in `text` that reports `signal` once.
fn send(
    running: &Running,
    text: &str,
    signal: LinkSignal,
    patience: Duration,
) -> Result<(), AgentError> {
    let keys = Keys::parse(Path::new("key"), text).unwrap();
    let key = keys.iter().next().unwrap().clone();
    let gateway = running.agent_address().unwrap();
    let config = Reporter::new(gateway, key, Vec::new(), patience)?;
    let mut answers = Vec::new();
    agent::run(config, &mut Once(signal), &mut |answered| answers.push(answered))?;
    assert!(matches!(answers[..], [Answered::Taken(taken, _)] if taken == signal), "{answers:?}");
    Ok(())
}

#[test]
fn an_agent_speaks_for_its_mobiles() {
    let folder = tempfile::tempdir().unwrap();
    let (running, inbox) = started(&agents(&keys_in(&folder, PHONE)));
    for signal in [LinkSignal::Fading, LinkSignal::Down, LinkSignal::Up] {
        send(&running, PHONE, signal, Duration::from_secs(5)).unwrap();
        assert_eq!(next(&inbox), said("10.0.0.7", signal, SignalSource::Agent));
        assert_eq!(next(&inbox), said("::7", signal, SignalSource::Agent));
    }
    // The first report, in the gateway's first second, was untimely and sent with another stamp.
    let counters = running.agent_counters().read();
    assert!(counters.contains(&("agent_reports_taken", 3)), "{counters:?}");
}

#[test]
fn an_agent_with_another_key_is_not_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (running, inbox) = started(&agents(&keys_in(&folder, PHONE)));
    let wrong = PHONE.replace("0001", "0002");
    let refused = send(&running, &wrong, LinkSignal::Down, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(refused, AgentError::NoAnswer { .. }), "{refused}");
    assert!(running.agent_counters().read().contains(&("agent_reports_refused_forged", 1)));
    assert!(inbox.commands.try_recv().is_err());
}

#[test]
fn an_agent_is_told_that_it_may_not_speak_for_a_mobile() {
    let folder = tempfile::tempdir().unwrap();
    let (running, inbox) = started(&agents(&keys_in(&folder, PHONE)));
    let greedy = PHONE.replace("::7", "::8");
    let refused = send(&running, &greedy, LinkSignal::Down, Duration::from_secs(5)).unwrap_err();
    assert!(matches!(refused, AgentError::Refused(_)), "{refused}");
    assert!(inbox.commands.try_recv().is_err());
}

#[test]
fn a_restart_keeps_the_socket_and_takes_new_keys() {
    let folder = tempfile::tempdir().unwrap();
    let signals = agents(&keys_in(&folder, PHONE));
    let (mut running, inbox) = started(&signals);
    let address = running.agent_address();
    let other = PHONE.replace("0001", "0002");
    keys_in(&folder, &other);
    running.restart(&signals, &[]).unwrap();
    assert_eq!(running.agent_address(), address);
    assert!(send(&running, PHONE, LinkSignal::Down, Duration::from_millis(50)).is_err());
    send(&running, &other, LinkSignal::Up, Duration::from_secs(5)).unwrap();
    assert_eq!(next(&inbox), said("10.0.0.7", LinkSignal::Up, SignalSource::Agent));
}

#[test]
fn a_restart_that_is_refused_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let signals = agents(&keys_in(&folder, PHONE));
    let (mut running, inbox) = started(&signals);
    keys_in(&folder, "phone");
    let refused = running.restart(&signals, &[]).unwrap_err().to_string();
    assert!(refused.contains("keys:1: expected NAME KEY ADDRESS"), "{refused}");
    send(&running, PHONE, LinkSignal::Up, Duration::from_secs(5)).unwrap();
    assert_eq!(next(&inbox).signal, LinkSignal::Up);
}

#[test]
fn a_port_in_use_is_named() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut signals = agents(&keys_in(&folder, PHONE));
    let address = taken.local_addr().unwrap();
    if let Some(agent) = &mut signals.agent {
        agent.listen = address;
    }
    let (handle, _inbox) = channel().unwrap();
    let refused = start(&signals, &[], Path::new("/nowhere"), handle).unwrap_err().to_string();
    assert!(
        refused.starts_with(&format!("cannot listen for agents on {address} (UDP): ")),
        "{refused}"
    );
    assert!(refused.contains("another program has this port"), "{refused}");
}

#[test]
fn sources_that_are_dropped_have_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (running, inbox) = started(&agents(&keys_in(&folder, PHONE)));
    drop(running);
    // Nobody holds the other end any more.
    assert!(matches!(inbox.commands.recv(), Err(std::sync::mpsc::RecvError)));
}

#[test]
fn the_timetable_says_what_holds_and_what_changes() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let timetable = vec![PlannedOutage {
        mobile: MobileId::Host("10.0.0.7".parse().unwrap()),
        begin: now.as_secs() - 10,
        length: Duration::from_secs(12),
        every: None,
        lead: Duration::ZERO,
    }];
    let (_running, inbox) = started(&Signals { timetable, ..Signals::default() });
    let of = |signal| said("10.0.0.7", signal, SignalSource::Timetable);
    assert_eq!(next(&inbox), of(LinkSignal::Down));
    assert_eq!(next(&inbox), of(LinkSignal::Up));
    let end = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!(end.as_secs() >= now.as_secs() + 2, "not before its time");
}

#[test]
fn a_source_that_is_asked_no_more_is_withdrawn() {
    let silent = Signals::default();
    let asked = Signals { carrier: true, neighbour: true, ..silent.clone() };
    let fewer = Signals { carrier: true, ..silent.clone() };
    let (handle, inbox) = channel().unwrap();
    let mut running = start(&asked, &[], Path::new("/nowhere"), handle).unwrap();
    let mut withdrawn = |signals| {
        running.restart(signals, &[]).unwrap();
        let of = |command| match command {
            Command::Withdrawn(source) => Some(source),
            _ => None,
        };
        inbox.commands.try_iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(withdrawn(&asked), []);
    assert_eq!(withdrawn(&fewer), [SignalSource::Neighbour]);
    assert_eq!(withdrawn(&silent), [SignalSource::Carrier]);
    assert_eq!(withdrawn(&silent), []);
}

/// Groups of these uplinks.
pub(super) fn groups_of(uplinks: &[&str]) -> Vec<Group> {
    let group = |name: &&str| Group {
        name: format!("uplink.{name}"),
        members: airtcp_gateway::config::Members::Uplink(name.parse().unwrap()),
        mechanism: airtcp_edge::MechanismConfig::Wake(Default::default()),
        copy: Default::default(),
        fast_path: Default::default(),
    };
    uplinks.iter().map(group).collect()
}
