//! However many connections a signal or a timer concerns, a call is about a bounded number of them:
//! what is left is due at once, and packets go in between.

use airtcp_core::{Addr, Duration, Flow, Instant, Length, LinkSignal, Segment, SeqNum};
use airtcp_edge::TURN;
use airtcp_edge::{
    Action, Actions, FlowPhase, FlowTableConfig, MTcpPlus, MTcpPlusConfig, Middlebox, MobileId,
    Side, Wake, WakeConfig,
};
use std::net::{IpAddr, Ipv4Addr};

/// More connections of each mobile than a turn serves.
const CONNECTIONS: usize = TURN + 50;

fn address(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))
}

fn mobile(number: u8) -> MobileId {
    MobileId::Host(address(number))
}

/// To a mobile.
fn flow(number: u8, connection: usize) -> Flow {
    let fixed = Addr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);
    Flow { src: fixed, dst: Addr::new(address(number), 1000 + connection as u16) }
}

fn data(flow: Flow, len: u64) -> Segment<Length> {
    let (seq, ack) = (SeqNum(0), Some(SeqNum(0)));
    Segment { flow, seq, ack, window: 500, payload: Length(len), ..Segment::default() }
}

/// Two mobiles, and `len` bytes under way on each of their connections.
fn two_mobiles<M: Middlebox<Length>>(node: &mut M, connections: usize, len: u64) {
    let mut out = Actions::new();
    for number in [1, 2] {
        for flow in (0..connections).map(|n| flow(number, n)) {
            node.on_segment(Instant::ZERO, Side::Mobile, data(flow.reversed(), 0), &mut out);
            node.on_segment(Instant::ZERO, Side::Fixed, data(flow, len), &mut out);
        }
    }
}

fn m_tcp_plus() -> MTcpPlus<Length> {
    MTcpPlus::new(MTcpPlusConfig::default(), FlowTableConfig::default(), 1 << 30)
}

/// The connections that a call injected something for, in order, each once.
fn concerned(out: &mut Actions<Length>) -> Vec<Flow> {
    let injected = out.drain().filter_map(|action| match action {
        Action::Inject { to, segment } => Some(to.opposite().to_mobile(segment.flow)),
        Action::Forward { .. } | Action::Drop { .. } => None,
    });
    let mut flows: Vec<_> = injected.collect();
    flows.dedup();
    flows
}

/// The turns that are due: the connections of each.
fn turns<M: Middlebox<Length>>(node: &mut M, now: Instant) -> Vec<Vec<Flow>> {
    let (mut turns, mut out) = (Vec::new(), Actions::new());
    while node.next_deadline().is_some_and(|due| due <= now) {
        node.on_timer(now, &mut out);
        turns.push(concerned(&mut out));
    }
    turns
}

fn frozen(node: &MTcpPlus<Length>, number: u8) -> usize {
    let of_mobile = node.reports().filter(|report| report.flow.dst.ip == address(number));
    of_mobile.filter(|report| report.phase == FlowPhase::Frozen).count()
}

#[test]
fn a_signal_is_told_to_a_bounded_number_at_once_and_to_the_others_in_turn() {
    let mut node = m_tcp_plus();
    two_mobiles(&mut node, CONNECTIONS, 1000);
    let (now, mut out) = (Instant::from_secs(1), Actions::new());
    let mut all = Vec::new();
    for number in [2, 1] {
        node.on_link(now, mobile(number), LinkSignal::Down, &mut out);
        let told = concerned(&mut out);
        assert_eq!(
            told.len(),
            if number == 2 { TURN } else { 0 },
            "mobile {number} waits its turn"
        );
        all.extend(told);
    }
    for turn in turns(&mut node, now) {
        assert!(turn.len() <= TURN);
        all.extend(turn);
    }
    let in_order: Vec<_> = [2, 1]
        .into_iter()
        .flat_map(|number| (0..CONNECTIONS).map(move |n| flow(number, n)))
        .collect();
    assert_eq!(all, in_order, "who was reported first, and of each all, once");
}

#[test]
fn signals_of_one_instant_share_a_turn() {
    let mut node = m_tcp_plus();
    two_mobiles(&mut node, TURN - 50, 1000);
    let (now, mut out) = (Instant::from_secs(1), Actions::new());
    let told: usize = [1, 2]
        .map(|number| {
            node.on_link(now, mobile(number), LinkSignal::Down, &mut out);
            concerned(&mut out).len()
        })
        .iter()
        .sum();
    assert!((TURN - 2..=TURN).contains(&told), "{told}");
    assert_eq!(told + turns(&mut node, now).concat().len(), 2 * (TURN - 50));
}

#[test]
fn between_turns_packets_pass() {
    let mut node = m_tcp_plus();
    two_mobiles(&mut node, CONNECTIONS, 1000);
    let (now, mut out) = (Instant::from_secs(1), Actions::new());
    node.on_link(now, mobile(1), LinkSignal::Down, &mut out);
    out.drain().for_each(drop);
    let untold = flow(1, CONNECTIONS - 1);
    let next = Segment { seq: SeqNum(1000), ..data(untold, 1000) };
    for segment in [data(flow(2, 0), 1000), next] {
        node.on_segment(now, Side::Fixed, segment.clone(), &mut out);
        let forward = Action::Forward { to: Side::Mobile, segment };
        assert_eq!(out.drain().collect::<Vec<_>>(), [forward]);
    }
    turns(&mut node, now);
    let report = node.reports().find(|report| report.flow == untold).unwrap();
    assert_eq!((report.phase, report.held), (FlowPhase::Frozen, 2000), "with what came before");
}

#[test]
fn the_last_signal_counts_also_for_those_that_were_not_told_of_the_one_before() {
    let mut node = m_tcp_plus();
    two_mobiles(&mut node, CONNECTIONS, 0);
    let (now, mut out) = (Instant::from_secs(1), Actions::new());
    node.on_link(now, mobile(1), LinkSignal::Down, &mut out);
    assert_eq!((concerned(&mut out).len(), frozen(&node, 1)), (TURN, TURN));
    node.on_link(now, mobile(1), LinkSignal::Up, &mut out);
    let released: Vec<_> = turns(&mut node, now).concat();
    assert_eq!(released, (0..TURN).map(|n| flow(1, n)).collect::<Vec<_>>());
    assert_eq!((frozen(&node, 1), node.counters().freezes), (0, TURN as u64));
}

#[test]
fn timers_that_are_due_together_are_served_in_turns() {
    let mut node = m_tcp_plus();
    two_mobiles(&mut node, CONNECTIONS, 1000);
    let (now, mut out) = (Instant::from_secs(1), Actions::new());
    for number in [1, 2] {
        node.on_link(now, mobile(number), LinkSignal::Down, &mut out);
    }
    turns(&mut node, now);
    let resent = turns(&mut node, now + Duration::from_secs(1));
    assert!(resent.iter().all(|turn| turn.len() <= TURN));
    assert_eq!(resent.concat().len(), 2 * CONNECTIONS);
}

#[test]
fn a_turn_that_sends_much_serves_fewer() {
    let mut node = m_tcp_plus();
    // Connections that share an initial window begin with two segments each.
    let segments = 2;
    two_mobiles(&mut node, CONNECTIONS, 9 * 1460);
    let (now, mut out) = (Instant::from_secs(1), Actions::new());
    node.on_link(now, mobile(1), LinkSignal::Down, &mut out);
    turns(&mut node, now);
    out.drain().for_each(drop);
    node.on_link(Instant::from_secs(2), mobile(1), LinkSignal::Up, &mut out);
    assert_eq!(concerned(&mut out).len(), TURN.div_ceil(1 + segments as usize));
}

#[test]
fn connections_that_are_no_longer_known_do_not_pile_up() {
    let table = FlowTableConfig { limit: 10, idle: Duration::from_secs(1), ..Default::default() };
    let mut node = MTcpPlus::<Length>::new(MTcpPlusConfig::default(), table, 1 << 30);
    let mut out = Actions::new();
    for n in 0..10_000 {
        let now = Instant::from_secs(2 * n as u64);
        node.on_segment(now, Side::Mobile, data(flow(1, n).reversed(), 0), &mut out);
    }
    out.drain().for_each(drop);
    node.on_link(Instant::from_secs(30_000), mobile(1), LinkSignal::Down, &mut out);
    assert_eq!(node.next_deadline(), None, "all were told at once");
}

#[test]
fn wake_releases_in_turns() {
    let mut node = Wake::<Segment<Length>>::new(WakeConfig::default(), FlowTableConfig::default());
    let (mut out, now) = (Actions::new(), Instant::from_millis(100));
    let mobiles = 200;
    for number in 0..mobiles {
        let flows = (0..10).map(|n| flow(number, n));
        for flow in flows {
            node.on_segment(Instant::ZERO, Side::Fixed, data(flow, 1000), &mut out);
        }
        Middlebox::<Length>::on_link(&mut node, now, mobile(number), LinkSignal::Down, &mut out);
        Middlebox::<Length>::on_link(&mut node, now, mobile(number), LinkSignal::Up, &mut out);
    }
    let turns = turns(&mut node, now);
    assert!(turns.iter().all(|turn| turn.len() < TURN + 10), "{turns:?}");
    assert_eq!(turns.concat().len(), usize::from(mobiles) * 10);
}
