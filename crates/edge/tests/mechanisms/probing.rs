//! The connections of a mobile take turns at probing it, and all go on when it answers on one.

use airtcp_core::{Addr, Duration, Flags, Flow, Instant, Length, LinkSignal, Segment, SeqNum};
use airtcp_edge::{
    Action, Actions, FlowPhase, FlowReport, FlowTableConfig, Holdover, HoldoverConfig, MTcpPlus,
    MTcpPlusConfig, Middlebox, MobileId, Side,
};
use std::net::{IpAddr, Ipv4Addr};

const PROBE_INTERVAL: Duration = Duration::from_millis(100);
const CONNECTIONS: u16 = 1_500;

/// Nothing is outstanding on any connection, so that only probes are sent.
const SENT: SeqNum = SeqNum(0);

trait Node: Middlebox<Length> {
    fn all(&self) -> Vec<FlowReport>;
    fn reload(&mut self, probe_interval: Option<Duration>);
}

impl Node for MTcpPlus<Length> {
    fn all(&self) -> Vec<FlowReport> {
        self.reports().collect()
    }

    fn reload(&mut self, probe_interval: Option<Duration>) {
        let config = MTcpPlusConfig { probe_interval, ..Default::default() };
        self.reconfigure(config, FlowTableConfig::default(), 1 << 30);
    }
}

impl Node for Holdover<Length> {
    fn all(&self) -> Vec<FlowReport> {
        self.reports().collect()
    }

    fn reload(&mut self, probe_interval: Option<Duration>) {
        let config = HoldoverConfig { probe_interval, ..Default::default() };
        self.reconfigure(config, FlowTableConfig::default(), 1 << 30);
    }
}

struct Script<N> {
    node: N,
    now: Instant,
    mobile: IpAddr,
}

impl<N: Node> Script<N> {
    fn new(node: N) -> Self {
        let mobile = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
        let mut script = Self { node, now: Instant::ZERO, mobile };
        for n in 0..CONNECTIONS {
            script.mobile_sends(n);
            script.passes(Side::Fixed, script.flow(n));
        }
        script
    }

    /// From the fixed host to the mobile.
    fn flow(&self, n: u16) -> Flow {
        let fixed = Addr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);
        Flow { src: fixed, dst: Addr::new(self.mobile, 10_000 + n) }
    }

    fn passes(&mut self, from: Side, flow: Flow) {
        self.sends(from, Segment { flow, seq: SENT, ack: Some(SENT), ..Segment::default() });
    }

    fn sends(&mut self, from: Side, segment: Segment<Length>) {
        let segment = Segment { window: 500, ..segment };
        self.node.on_segment(self.now, from, segment, &mut Actions::new());
    }

    fn mobile_sends(&mut self, n: u16) {
        self.passes(Side::Mobile, self.flow(n).reversed());
    }

    fn signal(&mut self, signal: LinkSignal) {
        let mobile = MobileId::Host(self.mobile);
        self.node.on_link(self.now, mobile, signal, &mut Actions::new());
        self.wait(Duration::ZERO);
    }

    /// Times at which the mobile was sent something, in milliseconds from now, and on which
    /// connection.
    fn wait(&mut self, time: Duration) -> Vec<(u64, u16)> {
        let (start, mut sent, mut out) = (self.now, Vec::new(), Actions::new());
        while let Some(due) = self.node.next_deadline().filter(|&due| due <= start + time) {
            self.now = self.now.max(due);
            self.node.on_timer(self.now, &mut out);
            sent.extend(out.drain().filter_map(|action| match action {
                Action::Inject { to: Side::Mobile, segment } => {
                    Some((self.now.since(start).as_millis(), segment.flow.dst.port - 10_000))
                }
                _ => None,
            }));
        }
        self.now = start + time;
        sent
    }

    fn frozen(&self) -> usize {
        self.node.all().iter().filter(|report| report.phase == FlowPhase::Frozen).count()
    }
}

fn m_tcp_plus() -> Script<MTcpPlus<Length>> {
    let config = MTcpPlusConfig { probe_interval: Some(PROBE_INTERVAL), ..Default::default() };
    Script::new(MTcpPlus::new(config, FlowTableConfig::default(), 1 << 30))
}

fn holdover() -> Script<Holdover<Length>> {
    let config = HoldoverConfig { probe_interval: Some(PROBE_INTERVAL), ..Default::default() };
    Script::new(Holdover::new(config, FlowTableConfig::default(), 1 << 30))
}

/// Every 100 ms, from half a second after the last signal on, each time on another connection.
fn takes_turns<N: Node>(mut script: Script<N>, signals: &[LinkSignal]) {
    for &signal in signals {
        script.signal(signal);
    }
    let probes = script.wait(Duration::from_secs(10));
    assert!((94..=96).contains(&probes.len()), "{} probes", probes.len());
    assert!((500..700).contains(&probes[0].0), "{} ms", probes[0].0);
    assert!(probes.is_sorted_by(|(a, _), (b, _)| b - a == PROBE_INTERVAL.as_millis()));
    let mut connections: Vec<_> = probes.iter().map(|&(_, n)| n).collect();
    connections.sort_unstable();
    assert!(connections.iter().is_sorted_by(|a, b| a < b), "each at most once");
}

#[test]
fn connections_take_turns_at_probing_their_mobile() {
    takes_turns(m_tcp_plus(), &[LinkSignal::Down]);
    takes_turns(holdover(), &[LinkSignal::Down]);
}

#[test]
fn they_do_so_too_if_the_link_was_fading_before_it_was_down() {
    takes_turns(m_tcp_plus(), &[LinkSignal::Fading, LinkSignal::Down]);
    takes_turns(holdover(), &[LinkSignal::Fading, LinkSignal::Down]);
}

#[test]
fn they_do_so_too_in_a_link_that_flaps() {
    takes_turns(m_tcp_plus(), &[LinkSignal::Down, LinkSignal::Up, LinkSignal::Down]);
    takes_turns(holdover(), &[LinkSignal::Down, LinkSignal::Up, LinkSignal::Down]);
}

/// Connections that stay frozen after the mobile was heard on one that had probed it, and on one
/// that had not.
fn still_frozen<N: Node>(mut script: Script<N>, signal: LinkSignal) -> [usize; 2] {
    script.signal(signal);
    let probes = script.wait(Duration::from_secs(61));
    let (_, probed) = probes[0];
    let not_probed = CONNECTIONS - 1;
    assert!(probes.iter().all(|&(_, n)| n != not_probed));
    [not_probed, probed].map(|n| {
        script.mobile_sends(n);
        script.wait(Duration::ZERO);
        script.frozen()
    })
}

#[test]
fn what_the_mobile_answers_on_one_connection_is_told_to_all() {
    assert_eq!(still_frozen(m_tcp_plus(), LinkSignal::Down), [1_500, 0]);
    assert_eq!(still_frozen(holdover(), LinkSignal::Down), [1_500, 0]);
}

#[test]
fn what_it_answers_on_a_fading_link_is_told_to_no_other() {
    assert_eq!(still_frozen(m_tcp_plus(), LinkSignal::Fading), [1_500, 1_499]);
    assert_eq!(still_frozen(holdover(), LinkSignal::Fading), [1_500, 1_499]);
}

/// Longest time without a keep-alive, in milliseconds, in this time from now on.
fn longest_gap<N: Node>(script: &mut Script<N>, time: Duration) -> u64 {
    let times: Vec<u64> = script.wait(time).iter().map(|&(at, _)| at).collect();
    let ends = [&[0], &times[..], &[time.as_millis()]].concat();
    ends.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap()
}

#[test]
fn a_node_that_stood_still_leaves_no_gap_in_the_probes() {
    fn check<N: Node>(mut script: Script<N>) {
        script.signal(LinkSignal::Down);
        script.wait(Duration::from_secs(2));
        script.now += Duration::from_secs(60);
        assert_eq!(longest_gap(&mut script, Duration::from_secs(200)), 100);
    }
    check(m_tcp_plus());
    check(holdover());
}

#[test]
fn a_reload_with_another_interval_or_none_counts_at_once() {
    fn check<N: Node>(mut script: Script<N>) {
        script.signal(LinkSignal::Down);
        script.wait(Duration::from_secs(5));
        script.node.reload(Some(Duration::from_secs(10)));
        assert_eq!(longest_gap(&mut script, Duration::from_secs(200)), 10_000);
        script.node.reload(None);
        assert_eq!(script.wait(Duration::from_secs(50)), []);
        script.node.reload(Some(PROBE_INTERVAL));
        assert_eq!(longest_gap(&mut script, Duration::from_secs(20)), 100);
    }
    check(m_tcp_plus());
    check(holdover());
}

/// M-TCP+ sends no copies while it sends keep-alives.
#[test]
fn without_probes_the_copies_are_sent_again() {
    let mut script = m_tcp_plus();
    let flow = script.flow(7);
    let data =
        Segment { flow, seq: SENT, ack: Some(SENT), payload: Length(500), ..Segment::default() };
    script.sends(Side::Fixed, data);
    script.signal(LinkSignal::Down);
    script.wait(Duration::from_secs(3));
    script.node.reload(None);
    let copies = script.wait(Duration::from_secs(60));
    assert_eq!(copies, [(4_000, 7), (12_000, 7), (28_000, 7), (60_000, 7)]);
}

/// A link that is said to be down too early may still work.
#[test]
fn an_answer_just_after_a_signal_concerns_its_own_connection_alone() {
    fn check<N: Node>(mut script: Script<N>) {
        script.signal(LinkSignal::Down);
        script.wait(Duration::from_secs(2));
        script.signal(LinkSignal::Down);
        let (_, probed) = script.wait(PROBE_INTERVAL)[0];
        script.mobile_sends(probed);
        script.wait(Duration::ZERO);
        assert_eq!(script.frozen(), 1_499);
    }
    check(m_tcp_plus());
    check(holdover());
}

/// While the node probes the mobile itself, it answers what fixed hosts send again, and sends the
/// mobile nothing more. If the link is only fading, that is a probe.
#[test]
fn what_a_fixed_host_sends_again_goes_to_no_mobile_that_is_down() {
    fn check<N: Node>(mut script: Script<N>, signal: LinkSignal) -> usize {
        let flow = script.flow(7);
        let segment = Segment { flow, seq: SENT, ack: Some(SENT), ..Segment::default() };
        let data = Segment { payload: Length(500), ..segment };
        script.sends(Side::Fixed, data.clone());
        script.signal(signal);
        script.wait(Duration::from_millis(50));
        let mut out = Actions::new();
        script.node.on_segment(script.now, Side::Fixed, Segment { window: 500, ..data }, &mut out);
        let is_to = |to| move |action: &&Action<Length>| matches!(action, Action::Inject { to: side, .. } | Action::Forward { to: side, .. } if *side == to);
        assert_eq!(out.as_slice().iter().filter(is_to(Side::Fixed)).count(), 1, "an answer");
        let to_mobile = out.as_slice().iter().filter(is_to(Side::Mobile)).count();
        // The mobile's acknowledgement of what came before the outage was on its way.
        let (flow, ack) = (flow.reversed(), Some(SENT + 500));
        script.sends(Side::Mobile, Segment { flow, seq: SENT, ack, ..Segment::default() });
        assert_eq!(1_500 - script.frozen(), to_mobile, "only a probe is answered");
        to_mobile
    }
    for (signal, passed) in [(LinkSignal::Down, 0), (LinkSignal::Fading, 1)] {
        assert_eq!(check(m_tcp_plus(), signal), passed);
        assert_eq!(check(holdover(), signal), passed);
    }
}

#[test]
fn a_mobile_that_resets_a_connection_is_back_as_well() {
    fn check<N: Node>(mut script: Script<N>) {
        script.signal(LinkSignal::Down);
        let (_, probed) = script.wait(Duration::from_secs(1))[0];
        let (flow, flags) = (script.flow(probed).reversed(), Flags::RST);
        let reset = Segment { flow, seq: SENT, ack: Some(SENT), flags, ..Segment::default() };
        script.sends(Side::Mobile, reset);
        script.wait(Duration::ZERO);
        assert_eq!(script.frozen(), 0);
    }
    check(m_tcp_plus());
    check(holdover());
}

#[test]
fn an_answer_does_not_overtake_a_signal_that_is_still_being_told() {
    fn check<N: Node>(mut script: Script<N>) {
        script.signal(LinkSignal::Down);
        script.wait(Duration::from_secs(160));
        // More than a turn: the last connections get it later.
        let mobile = MobileId::Host(script.mobile);
        script.node.on_link(script.now, mobile, LinkSignal::Down, &mut Actions::new());
        script.mobile_sends(CONNECTIONS - 1);
        script.wait(Duration::ZERO);
        assert!(script.frozen() >= 1_499, "{}", script.frozen());
    }
    check(m_tcp_plus());
    check(holdover());
}
