//! Takeover of connections by the next process.

use crate::{GROUP, Gateway, content, flow};
use airtcp_core::{Instant, LinkSignal};
use airtcp_edge::{Action, MechanismConfig, MechanismNote, Side};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::tempdir;

const LIMIT: u64 = 1 << 30;

#[test]
fn what_was_promised_is_replayed_by_the_next_process() {
    let dir = tempdir().unwrap();
    let mut first = Gateway::start(dir.path(), LIMIT);
    first.underway(0);
    first.underway(1);
    let frozen = first.signal(LinkSignal::Down);
    assert!(Gateway::promises(&frozen, 0, 3000) && Gateway::promises(&frozen, 1, 3000));
    // Segments that were still in flight on the wired side.
    let more = first.data(1, 3000, 700);
    assert!(Gateway::promises(&more, 1, 3700));
    drop(first);

    let mut next = Gateway::take_over(dir.path(), LIMIT);
    let back = next.signal(LinkSignal::Up);
    assert_eq!(Gateway::replayed(&back, 0), content(0, 3000));
    assert_eq!(Gateway::replayed(&back, 1), content(0, 3700));
    next.ack(0, 3000);
    assert_eq!(next.ledger.len(), 1);
    next.ack(1, 3700);
    assert_eq!((next.ledger.len(), next.ledger.size().get()), (0, 0));
}

#[test]
fn one_process_after_another_may_be_killed_in_the_same_outage() {
    let dir = tempdir().unwrap();
    let mut gateway = Gateway::start(dir.path(), LIMIT);
    gateway.underway(0);
    gateway.signal(LinkSignal::Down);
    for round in 0..20 {
        drop(gateway);
        gateway = Gateway::take_over(dir.path(), LIMIT);
        gateway.now = Instant::from_secs(2000 + round);
        let seq = 3000 + 100 * round as u32;
        assert!(Gateway::promises(&gateway.data(0, seq, 100), 0, seq + 100));
    }
    let back = gateway.signal(LinkSignal::Up);
    assert_eq!(Gateway::replayed(&back, 0), content(0, 5000));
}

#[test]
fn what_the_mobile_has_is_not_replayed() {
    let dir = tempdir().unwrap();
    let mut first = Gateway::start(dir.path(), LIMIT);
    first.underway(0);
    first.signal(LinkSignal::Fading);
    first.ack(0, 2000);
    drop(first);
    let mut next = Gateway::take_over(dir.path(), LIMIT);
    assert_eq!(Gateway::replayed(&next.signal(LinkSignal::Up), 0), content(2000, 1000));
}

#[test]
fn a_release_is_on_file_only_when_its_actions_were_carried_out() {
    let dir = tempdir().unwrap();
    let mut first = Gateway::start(dir.path(), LIMIT);
    first.underway(0);
    first.signal(LinkSignal::Down);
    first.ledger.write(GROUP, &[MechanismNote::Released(flow(0))]).unwrap();
    assert_eq!(first.ledger.len(), 1);
    drop(first);
    let mut next = Gateway::take_over(dir.path(), LIMIT);
    assert_eq!(next.ledger.len(), 1);
    next.ledger.write(GROUP, &[MechanismNote::Released(flow(0))]).unwrap();
    next.ledger.settle().unwrap();
    assert_eq!(next.ledger.len(), 0);
    drop(next);
    assert!(Gateway::take_over(dir.path(), LIMIT).ledger.is_empty());
}

#[test]
fn what_was_frozen_without_a_promise_is_released_by_the_next_process() {
    for config in [
        MechanismConfig::MTcpPlus(Default::default()),
        MechanismConfig::Holdover(Default::default()),
    ] {
        let dir = tempdir().unwrap();
        let mut first = Gateway::with(config, dir.path(), LIMIT);
        first.underway(0);
        first.ack(0, 3000);
        first.signal(LinkSignal::Down);
        drop(first);
        let mut next = Gateway::with(config, dir.path(), LIMIT).takes_over();
        let back = next.signal(LinkSignal::Up);
        let is_open = |action: &Action<_>| matches!(action, Action::Inject { to: Side::Fixed, segment } if segment.window > 0);
        assert!(back.iter().any(is_open), "{back:?}");
        assert!(next.ledger.is_empty());
    }
}

#[test]
fn holdover_s_copies_are_replayed_by_the_next_process() {
    let (dir, config) = (tempdir().unwrap(), MechanismConfig::Holdover(Default::default()));
    let mut first = Gateway::with(config, dir.path(), LIMIT);
    first.underway(0);
    first.signal(LinkSignal::Down);
    first.data(0, 0, 1000);
    drop(first);
    let mut next = Gateway::with(config, dir.path(), LIMIT).takes_over();
    assert_eq!(Gateway::replayed(&next.signal(LinkSignal::Up), 0), content(0, 3000));
}

/// Size of all files in this folder.
fn on_disk(dir: &Path) -> u64 {
    dir.read_dir().unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn files_stay_in_proportion_to_what_is_held() {
    let dir = tempdir().unwrap();
    let mut gateway = Gateway::start(dir.path(), LIMIT);
    for n in 0..20 {
        gateway.underway(n);
    }
    gateway.signal(LinkSignal::Down);
    let (mut most, mut written) = (0, 0);
    // One connection is busy, the others wait.
    for _ in 0..40_000 {
        gateway.data(0, 1000, 1000);
        written += 1000;
        most = most.max(gateway.ledger.size().get());
    }
    assert!((4 << 20..14 << 20).contains(&most), "{most} B, {written} written, for 60,000 held");
    assert_eq!(on_disk(dir.path()), gateway.ledger.size().get(), "and are accounted for");
    drop(gateway);
    let mut next = Gateway::take_over(dir.path(), LIMIT);
    let back = next.signal(LinkSignal::Up);
    assert!((0..20).all(|n| next.replays(back.clone(), n) == (0, content(0, 3000))));
}

#[test]
fn the_files_of_many_connections_are_few_and_small() {
    let dir = tempdir().unwrap();
    let mut gateway = Gateway::start(dir.path(), LIMIT);
    let many = 5000;
    for n in 0..many {
        gateway.ack(n, 0);
        gateway.data(n, 0, 0);
    }
    gateway.signal(LinkSignal::Down);
    assert_eq!(gateway.ledger.len(), usize::from(many));
    let (files, bytes) = (dir.path().read_dir().unwrap().count(), on_disk(dir.path()));
    assert!(files <= 3, "{files}");
    assert!(bytes <= 256 * u64::from(many), "{} B each", bytes / u64::from(many));
    gateway.signal(LinkSignal::Up);
    assert_eq!((gateway.ledger.len(), on_disk(dir.path())), (0, 0));
}

/// Runs a gateway in a process of its own, in this folder.
const KILLED: &str = "AIRTCP_TEST_KILLED_GATEWAY";

/// A fading link: data keeps arriving and being promised, and the mobile acknowledges some of it.
/// Prints each step: an acknowledgement of the mobile before the gateway sees it, a promise as soon
/// as it is made.
fn run_until_killed(dir: &Path) {
    let mut gateway = Gateway::start(dir, LIMIT);
    gateway.underway(0);
    gateway.signal(LinkSignal::Fading);
    for seq in (3000..).step_by(500) {
        if Gateway::promises(&gateway.data(0, seq, 500), 0, seq + 500) {
            println!("promised {}", seq + 500);
        }
        if seq % 3500 == 0 {
            println!("acknowledged {}", seq - 3000);
            gateway.ack(0, seq - 3000);
        }
    }
}

#[test]
fn kill_9_at_any_moment_loses_no_promised_byte() {
    if let Some(dir) = std::env::var_os(KILLED) {
        return run_until_killed(dir.as_ref());
    }
    for lines in [1, 2, 3, 10, 31, 100, 310, 1000] {
        let dir = tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--nocapture",
                "--exact",
                "takeover::kill_9_at_any_moment_loses_no_promised_byte",
            ])
            .env(KILLED, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut promised, mut acknowledged) = (0, 0);
        let mut told = BufReader::new(child.stdout.take().unwrap()).split(b'\n');
        for line in 0.. {
            if line == lines {
                child.kill().unwrap();
            }
            let Some(line) = told.next() else { break };
            let line = String::from_utf8(line.unwrap()).unwrap();
            match line.split_once(' ') {
                Some(("promised", number)) => promised = number.parse().unwrap(),
                Some(("acknowledged", number)) => acknowledged = number.parse().unwrap(),
                _ => {}
            }
        }
        child.wait().unwrap();
        assert!(promised > 0 || lines < 100, "it was at work");

        let mut next = Gateway::take_over(dir.path(), LIMIT);
        let back = next.signal(LinkSignal::Up);
        let (first, replayed) = next.replays(back, 0);
        let end = first + replayed.len() as u32;
        assert!(
            first <= acknowledged && end >= promised,
            "killed after {lines} lines: replayed {first}..{end}, promised {acknowledged}..{promised}"
        );
        assert_eq!(replayed, content(first, end - first));
    }
}
