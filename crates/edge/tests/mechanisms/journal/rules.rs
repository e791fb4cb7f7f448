//! When there is a note, and what becomes of it.

use super::{Driver, config};
use crate::segments::Hosts;
use airtcp_core::{Duration, Instant, Length, LinkSignal};
use airtcp_edge::MTcpPlusNote;
use airtcp_edge::{
    Action, Actions, FlowPhase, FlowTableConfig, MTcpPlus, Middlebox, MobileId, Side,
};

/// The mobile has opened the connection, and three segments are under way.
fn underway(driver: &mut Driver) -> Hosts {
    let hosts = Hosts::new(u32::MAX - 1500);
    driver.pass(Side::Mobile, hosts.mobile(0));
    for n in 0..3 {
        driver.pass(Side::Fixed, hosts.fixed(n * 1000, 1000));
    }
    hosts
}

fn driver() -> (Driver, Hosts) {
    let mut driver = Driver::new(config(1 << 20), 1 << 30);
    let hosts = underway(&mut driver);
    (driver, hosts)
}

fn injections(actions: &Actions<Length>, side: Side) -> usize {
    let own = |a: &&Action<Length>| matches!(a, Action::Inject { to, .. } if *to == side);
    actions.as_slice().iter().filter(own).count()
}

#[test]
fn nothing_is_noted_of_a_connection_that_is_merely_forwarded() {
    let (mut driver, hosts) = driver();
    driver.pass(Side::Mobile, hosts.mobile(3000));
    assert!(driver.file.is_empty());
}

#[test]
fn a_frozen_connection_is_on_file_until_it_is_released_though_nothing_was_promised() {
    let (mut driver, hosts) = driver();
    driver.pass(Side::Mobile, hosts.mobile(3000));
    driver.signal(&hosts, LinkSignal::Down);
    assert!(!driver.node.reports().next().unwrap().committed, "the mobile has all");
    assert_eq!(driver.file, driver.live());
    assert_eq!(driver.file.len(), 1);
    driver.signal(&hosts, LinkSignal::Up);
    assert!(driver.file.is_empty());
}

#[test]
fn without_room_for_the_note_a_connection_without_a_promise_is_frozen_all_the_same() {
    let (mut driver, hosts) = driver();
    driver.pass(Side::Mobile, hosts.mobile(3000));
    driver.is_full = true;
    assert_eq!(injections(&driver.signal(&hosts, LinkSignal::Down), Side::Fixed), 1);
    assert!(driver.file.is_empty());
    driver.is_full = false;
    driver.pass(Side::Fixed, hosts.fixed(2999, 1));
    assert_eq!(driver.file, driver.live(), "the next note is complete");
}

#[test]
fn a_frozen_connection_that_is_forgotten_is_off_the_file() {
    let idle = Duration::from_secs(60);
    let (mut driver, hosts) = (Driver::new(config(1 << 20), 1 << 30), Hosts::new(1000));
    let table = FlowTableConfig { limit: 1, idle, ..FlowTableConfig::default() };
    driver.node.reconfigure(config(1 << 20), table, 1 << 30);
    driver.pass(Side::Mobile, hosts.mobile(0));
    driver.pass(Side::Fixed, hosts.fixed(0, 0));
    driver.signal(&hosts, LinkSignal::Down);
    assert_eq!(driver.file.len(), 1);
    driver.now += idle;
    let mut other = hosts.mobile(0);
    other.flow.dst.port += 1;
    driver.pass(Side::Mobile, other);
    assert_eq!((driver.node.flows(), driver.file.len()), (1, 0), "it made room");
}

#[test]
fn nothing_is_noted_unless_a_journal_is_kept() {
    let (mut driver, hosts) = driver();
    driver.node = MTcpPlus::new(config(1 << 20), FlowTableConfig::default(), 1 << 30);
    underway(&mut driver);
    driver.signal(&hosts, LinkSignal::Down);
    assert!(driver.node.reports().next().unwrap().committed);
    assert!(driver.file.is_empty());
}

#[test]
fn a_promise_is_on_file_until_the_mobile_has_all() {
    let (mut driver, hosts) = driver();
    driver.signal(&hosts, LinkSignal::Down);
    assert_eq!(driver.file.len(), 1);
    driver.signal(&hosts, LinkSignal::Up);
    driver.pass(Side::Mobile, hosts.mobile(2000));
    assert_eq!(driver.file.len(), 1);
    driver.pass(Side::Mobile, hosts.mobile(3000));
    assert!(driver.file.is_empty());
}

#[test]
fn inputs_that_outgrow_the_snapshot_become_one() {
    let (mut driver, hosts) = driver();
    driver.signal(&hosts, LinkSignal::Down);
    let (mut inputs, mut most) = (0, 0);
    for _ in 0..1000 {
        // Retransmissions; three are held already.
        let mut out = Actions::new();
        driver.node.on_segment(driver.now, Side::Fixed, hosts.fixed(0, 1000), &mut out);
        for note in driver.node.drain_journal() {
            inputs = if let MTcpPlusNote::Input(..) = note { inputs + 1 } else { 0 };
            most = most.max(inputs);
        }
    }
    assert!((5..30).contains(&most), "{most} segments of 1000 bytes behind one of 3000");
}

#[test]
fn without_room_for_the_note_the_fixed_host_is_told_nothing_until_there_is() {
    let (mut driver, hosts) = driver();
    driver.is_full = true;
    let frozen = driver.signal(&hosts, LinkSignal::Down);
    assert_eq!(injections(&frozen, Side::Fixed), 0);
    let retransmitted = driver.pass(Side::Fixed, hosts.fixed(0, 1000));
    assert_eq!(
        (injections(&retransmitted, Side::Fixed), injections(&retransmitted, Side::Mobile)),
        (0, 1),
        "the mobile is sent what it waits for all the same"
    );
    driver.is_full = false;
    let retransmitted = driver.pass(Side::Fixed, hosts.fixed(0, 1000));
    assert_eq!(injections(&retransmitted, Side::Fixed), 1);
    assert_eq!(driver.file, driver.live());
}

#[test]
fn what_is_withheld_of_one_connection_is_not_of_another() {
    let (mut driver, hosts) = driver();
    driver.signal(&hosts, LinkSignal::Down);
    let mut out = Actions::new();
    out.inject(Side::Fixed, hosts.mobile(3000));
    out.inject(Side::Mobile, hosts.fixed(0, 1000));
    let mut other = hosts.flow;
    other.src.port += 1;
    driver.node.withhold(&other, &mut out);
    assert_eq!(out.as_slice().len(), 2);
    driver.node.withhold(&hosts.flow, &mut out);
    assert_eq!((injections(&out, Side::Fixed), injections(&out, Side::Mobile)), (0, 1));
}

#[test]
fn other_settings_are_noted_with_the_state_they_apply_to() {
    let (mut driver, hosts) = driver();
    driver.signal(&hosts, LinkSignal::Down);
    driver.node.reconfigure(config(2000), FlowTableConfig::default(), 1 << 30);
    // More data than the new settings allow: only the present ones say so.
    driver.pass(Side::Fixed, hosts.fixed(3000, 1000));
    let snapshot = driver.file.values().next().unwrap();
    assert_eq!((snapshot.config.fifo.0, &driver.file), (2000, &driver.live()));
    assert_eq!((driver.node.flows(), driver.node.held()), (1, 3000), "what was promised is kept");
}

#[test]
fn a_successor_goes_on_where_the_first_was_killed() {
    let (mut driver, hosts) = driver();
    driver.signal(&hosts, LinkSignal::Down);
    driver.now = Instant::from_secs(100);
    let mut next = driver.successor();
    assert_eq!((next.node.flows(), next.node.held()), (1, 3000));
    let mobile = MobileId::Host(hosts.flow.dst.ip);
    assert!(next.node.is_interrupted(mobile));
    let report = next.node.reports().next().unwrap();
    assert_eq!(
        (report.flow, report.phase, report.committed),
        (hosts.flow, FlowPhase::Frozen, true)
    );
    let probe = next.wait(Duration::ZERO);
    assert_eq!(injections(&probe[0], Side::Mobile), 1, "what was due in the meantime is done");
    assert_eq!(injections(&next.signal(&hosts, LinkSignal::Up), Side::Mobile), 3);
    next.pass(Side::Mobile, hosts.mobile(3000));
    assert_eq!((next.node.held(), next.node.is_interrupted(mobile)), (0, false));
}

#[test]
fn a_connection_put_back_is_on_the_successor_s_file() {
    let (mut driver, hosts) = driver();
    driver.signal(&hosts, LinkSignal::Down);
    let mut next = driver.successor();
    next.signal(&hosts, LinkSignal::Fading);
    assert_eq!(next.file, next.live());
}
