//! What the next process finds.

use crate::{Gateway, content, flow};
use airtcp_core::{Instant, LinkSignal};
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
    // What was still under way on the wired side.
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
    use airtcp_edge::m_tcp_plus::Note;
    let dir = tempdir().unwrap();
    let mut first = Gateway::start(dir.path(), LIMIT);
    first.underway(0);
    first.signal(LinkSignal::Down);
    first.ledger.note(crate::GROUP, &Note::Released(flow(0))).unwrap();
    assert_eq!(first.ledger.len(), 1);
    drop(first);
    let mut next = Gateway::take_over(dir.path(), LIMIT);
    assert_eq!(next.ledger.len(), 1);
    next.ledger.note(crate::GROUP, &Note::Released(flow(0))).unwrap();
    next.ledger.settle().unwrap();
    assert_eq!(next.ledger.len(), 0);
    drop(next);
    assert!(Gateway::take_over(dir.path(), LIMIT).ledger.is_empty());
}

#[test]
fn files_stay_in_proportion_to_what_is_held() {
    let dir = tempdir().unwrap();
    let mut gateway = Gateway::start(dir.path(), LIMIT);
    gateway.underway(0);
    gateway.signal(LinkSignal::Down);
    let mut most = 0;
    for _ in 0..1000 {
        gateway.data(0, 1000, 1000);
        most = most.max(gateway.ledger.size().get());
    }
    assert!((8_000..32_000).contains(&most), "{most} B for 3000 held");
    let on_disk: u64 =
        dir.path().read_dir().unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(on_disk, gateway.ledger.size().get(), "and are accounted for");
}
