//! The observer from outside: which outages and stalled flows it sees, and what it says would have
//! been saved.

use airtcp_core::{Addr, Duration, Flow, Instant, Length, LinkSignal, Segment, SeqNum};
use airtcp_edge::{
    FlowId, FlowTableConfig, MobileId, ObserveConfig, Observed, Observer, Packet, Silence,
};
use std::net::{IpAddr, Ipv4Addr};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A packet, of which only the flow matters, and what the data path knew of the mobile.
#[derive(Clone, Debug)]
struct Passing {
    id: FlowId,
    asks: bool,
    is_boundary: bool,
    silence: Option<Silence>,
}

impl Packet for Passing {
    fn id(&self) -> FlowId {
        self.id
    }
    fn seq_end(&self) -> Option<SeqNum> {
        None
    }
    fn header(&self) -> Option<Segment<Length>> {
        None
    }
    fn is_boundary(&self) -> bool {
        self.is_boundary
    }
    fn elicits_reply(&self) -> bool {
        self.asks
    }
    fn silence(&self) -> Option<Silence> {
        self.silence
    }
}

fn ip(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
}

const MOBILE_IP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
const MOBILE: MobileId = MobileId::Host(MOBILE_IP);

/// From the port of a fixed host to the mobile.
fn flow(protocol: u8, port: u16) -> FlowId {
    let flow = Flow { src: Addr::new(ip(1), port), dst: Addr::new(MOBILE_IP, 5001) };
    FlowId { protocol, flow }
}

/// A node that watches.
struct Node {
    observer: Observer,
    now: Instant,
    /// Mobiles that the observer wants to see all of.
    attention: Vec<bool>,
}

impl Node {
    fn new() -> Self {
        Self::with(FlowTableConfig::default())
    }

    fn with(table: FlowTableConfig) -> Self {
        let config = ObserveConfig { silence: Duration::from_millis(300) };
        Self { observer: Observer::new(config, table), now: Instant::ZERO, attention: Vec::new() }
    }

    /// Lets time pass up to `at` milliseconds after the start.
    fn at(&mut self, at: u64) -> &mut Self {
        let end = Instant::from_millis(at);
        while let Some(due) = self.observer.deadline()
            && due <= end
        {
            self.observer.on_deadline(due);
            assert!(self.observer.deadline().is_none_or(|next| next > due), "the deadline stays");
        }
        self.now = end;
        self
    }

    fn passing(&self, id: FlowId) -> Passing {
        let silence = Silence {
            since: self.now,
            response: Duration::from_millis(20),
            round_trip: Duration::from_millis(40),
            is_flow_new: false,
        };
        Passing { id, asks: true, is_boundary: false, silence: Some(silence) }
    }

    /// Something goes to the mobile.
    fn sent(&mut self, id: FlowId) -> &mut Self {
        let packet = self.passing(id);
        self.sent_as(&packet)
    }

    fn sent_as(&mut self, packet: &Passing) -> &mut Self {
        self.observer.on_sent(self.now, MOBILE, packet);
        self
    }

    /// Something of this flow comes from the mobile.
    fn heard(&mut self, FlowId { protocol, flow }: FlowId) -> &mut Self {
        let packet = self.passing(FlowId { protocol, flow: flow.reversed() });
        self.observer.on_heard(self.now, MOBILE, &packet);
        self
    }

    fn told(&mut self, signal: LinkSignal) -> &mut Self {
        self.observer.on_signal(self.now, MOBILE, signal);
        self
    }

    /// Outages and stalls observed by then.
    fn seen(&mut self, at: u64) -> Observed {
        self.at(at);
        self.attention.extend(self.observer.drain_attention().map(|(_, on)| on));
        self.observer.observed()
    }

    /// A download in an outage from 1 to 4 s after the start, whose sender tries at 1.2, 1.6, 2.4
    /// and 4 s, and would try again at 7.2 s.
    fn in_an_outage(&mut self, told: bool) -> &mut Self {
        if told {
            self.at(1000).told(LinkSignal::Down);
        }
        for at in [1200, 1600, 2400, 4000] {
            self.at(at).sent(DOWNLOAD);
        }
        self
    }

    /// The sender tries at `at`; then data and ACKs go on, with a round trip of 100 ms, of which
    /// 20 ms are the mobile's.
    fn resume(&mut self, at: u64, id: FlowId) -> &mut Self {
        self.at(at).sent(id).at(at + 20).heard(id);
        self.at(at + 100).sent(id).at(at + 120).heard(id)
    }
}

const DOWNLOAD: FlowId = FlowId {
    protocol: TCP,
    flow: Flow {
        src: Addr { ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), port: 443 },
        dst: Addr { ip: MOBILE_IP, port: 5001 },
    },
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Contents of `stalls`: stalled, resumed, saved at least and at most.
macro_rules! stalls {
    ($stalls:expr) => {
        ($stalls.stalled, $stalls.resumed, $stalls.saved_least, $stalls.saved_most)
    };
}

#[test]
fn what_a_sender_waits_from_the_signal_on_less_a_round_trip_is_saved() {
    let mut node = Node::new();
    node.in_an_outage(true).at(4200).told(LinkSignal::Up);
    let seen = node.resume(7200, DOWNLOAD).seen(10_000);
    assert_eq!(stalls!(seen.tcp), (1, 1, ms(2900), ms(2900)));
    assert_eq!((seen.outages_signalled, seen.outages_silent), (1, 0));
    assert_eq!((seen.away, seen.longest), (ms(3200), ms(3200)));
}

/// Time saved of a flow that resumes so many milliseconds after the start: its mobile is away from
/// 1 s on, until 1 s before.
fn saved_when_it_resumes_at(resumes: u64, id: FlowId) -> Duration {
    let mut node = Node::new();
    node.at(1000).told(LinkSignal::Down);
    node.at(1200).sent(id).at(resumes - 1000).told(LinkSignal::Up);
    let seen = node.resume(resumes, id).seen(resumes + 10_000);
    let stalls = if id.protocol == TCP { seen.tcp } else { seen.quic };
    assert_eq!((stalls.stalled, stalls.resumed), (1, 1));
    assert_eq!(stalls.saved_least, stalls.saved_most);
    stalls.saved_most
}

// RFC 9000 §10.1: the idle timer restarts with a packet received.
#[test]
fn of_a_quic_flow_that_was_silent_for_longer_than_its_idle_timeout_nothing_is_saved() {
    let quic = flow(UDP, 443);
    assert_eq!(saved_when_it_resumes_at(31_000, quic), ms(900));
    assert_eq!(saved_when_it_resumes_at(31_001, quic), ms(0));
    assert_eq!(saved_when_it_resumes_at(31_001, DOWNLOAD), ms(900), "TCP has none");
}

#[test]
fn a_mobile_that_speaks_for_itself_is_back_at_that_moment() {
    let mut node = Node::new();
    let other = flow(UDP, 53);
    node.in_an_outage(false).at(5000).heard(other);
    let seen = node.resume(7200, DOWNLOAD).seen(10_000);
    assert_eq!(stalls!(seen.tcp), (1, 1, ms(2100), ms(2100)));
    assert_eq!((seen.outages_signalled, seen.outages_silent), (0, 1));
    assert_eq!(seen.away, ms(3800), "since the first attempt without an answer");
}

#[test]
fn a_mobile_that_only_answers_came_back_some_time_since_the_attempt_before() {
    let mut node = Node::new();
    let seen = node.in_an_outage(false).resume(7200, DOWNLOAD).seen(10_000);
    assert_eq!(stalls!(seen.tcp), (1, 1, ms(0), ms(3100)));
}

#[test]
fn other_flows_wait_at_least_since_the_first_answer() {
    let mut node = Node::new();
    let late = flow(TCP, 80);
    node.at(1200).sent(DOWNLOAD).at(1300).sent(late);
    for at in [1600, 2400, 4000] {
        node.at(at).sent(DOWNLOAD);
    }
    node.resume(7200, DOWNLOAD).resume(8200, late);
    let seen = node.seen(20_000);
    // The second waited 1 s less a round trip for certain.
    assert_eq!(stalls!(seen.tcp), (2, 2, ms(900), ms(3100 + 4100)));
}

#[test]
fn an_answer_in_time_is_no_outage() {
    let mut node = Node::new();
    node.at(1000).sent(DOWNLOAD).at(1299).heard(DOWNLOAD);
    assert_eq!(node.seen(60_000), Observed::default());
    assert!(node.attention.is_empty());
}

#[test]
fn silence_counts_only_when_no_answer_ever_took_so_long() {
    let mut node = Node::new();
    let mut packet = node.passing(DOWNLOAD);
    packet.silence.as_mut().unwrap().round_trip = ms(1000);
    node.at(1000).sent_as(&packet);
    assert_eq!(node.seen(2499).outages_silent, 0);
    assert_eq!(node.seen(2500).outages_silent, 1);
}

#[test]
fn who_was_never_heard_is_not_away() {
    let mut node = Node::new();
    let packet = Passing { silence: None, ..node.passing(DOWNLOAD) };
    node.at(1000).sent_as(&packet);
    assert_eq!(node.seen(60_000), Observed::default());
}

#[test]
fn who_is_asked_nothing_may_be_silent() {
    let mut node = Node::new();
    let ack = Passing { asks: false, ..node.passing(DOWNLOAD) };
    node.at(1000).sent_as(&ack).sent(flow(UDP, 5004));
    assert_eq!(node.seen(60_000), Observed::default());
}

#[test]
fn an_outage_that_is_not_over_has_a_length_so_far() {
    let mut node = Node::new();
    assert_eq!(node.observer.ongoing(Instant::ZERO), [Duration::ZERO; 2]);
    node.in_an_outage(true).at(5000);
    let at = |ms| Instant::from_millis(ms);
    assert_eq!(node.observer.ongoing(at(5000)), [ms(4000); 2]);
    let other = MobileId::Host(ip(77));
    node.observer.on_signal(at(5000), other, LinkSignal::Down);
    assert_eq!(node.observer.ongoing(at(7000)), [ms(8000), ms(6000)]);
    node.at(7000).told(LinkSignal::Up);
    assert_eq!(node.observer.ongoing(at(7000)), [ms(2000); 2]);
    assert_eq!(node.observer.observed().away, ms(6000));
}

#[test]
fn who_went_silent_and_is_not_tried_any_more_has_left() {
    let idle = Duration::from_secs(60);
    let mut node = Node::with(FlowTableConfig { idle, ..FlowTableConfig::default() });
    node.in_an_outage(false).at(5000);
    let ongoing = |node: &Node, ms| node.observer.ongoing(Instant::from_millis(ms));
    assert_eq!(ongoing(&node, 63_999), [ms(62_799); 2]);
    assert_eq!(ongoing(&node, 64_000), [Duration::ZERO; 2]);
}

#[test]
fn quic_is_counted_apart() {
    let mut node = Node::new();
    let quic = flow(UDP, 443);
    node.at(1000).told(LinkSignal::Down).at(1200).sent(quic).at(2000).told(LinkSignal::Up);
    let seen = node.resume(2600, quic).seen(10_000);
    assert_eq!(stalls!(seen.quic), (1, 1, ms(500), ms(500)));
    assert_eq!(seen.tcp, Default::default());
}

#[test]
fn a_packet_on_its_way_when_the_link_went_down_does_not_end_the_outage() {
    let mut node = Node::new();
    node.at(1000).told(LinkSignal::Down).sent(DOWNLOAD).at(1040).heard(DOWNLOAD);
    for at in [1200, 1600, 2400, 4000] {
        node.at(at).sent(DOWNLOAD);
    }
    node.at(4200).told(LinkSignal::Up);
    let seen = node.resume(7200, DOWNLOAD).seen(10_000);
    assert_eq!(stalls!(seen.tcp), (1, 1, ms(2900), ms(2900)));
}

#[test]
fn what_takes_no_longer_than_a_round_trip_saves_nothing() {
    let mut node = Node::new();
    node.in_an_outage(true).at(4200).told(LinkSignal::Up);
    let seen = node.resume(4250, DOWNLOAD).seen(10_000);
    assert_eq!(stalls!(seen.tcp), (1, 1, ms(0), ms(0)));
}

#[test]
fn a_flow_that_never_resumes_saves_nothing_and_is_forgotten() {
    let mut node = Node::new();
    node.in_an_outage(true).at(4200).told(LinkSignal::Up);
    let seen = node.seen(4200 + 2 * 3200 + 3000);
    assert_eq!(stalls!(seen.tcp), (1, 0, ms(0), ms(0)));
    assert_eq!(node.observer.flows(), 0);
    assert_eq!(node.attention, [true, false]);
}

#[test]
fn a_connection_that_ends_does_not_resume() {
    let mut node = Node::new();
    node.in_an_outage(true).at(4200).told(LinkSignal::Up);
    let reset = Passing { is_boundary: true, ..node.passing(DOWNLOAD) };
    node.at(5000).sent_as(&reset);
    let seen = node.resume(7200, DOWNLOAD).seen(20_000);
    assert_eq!(stalls!(seen.tcp), (1, 0, ms(0), ms(0)));
}

#[test]
fn a_link_that_is_not_back_after_all_is_another_outage() {
    let mut node = Node::new();
    node.in_an_outage(true).at(4200).told(LinkSignal::Up);
    // Nobody answers this one, and it does not count as the return of the flow.
    node.at(7200).sent(DOWNLOAD).at(9000).told(LinkSignal::Up);
    let seen = node.resume(13_600, DOWNLOAD).seen(20_000);
    assert_eq!((seen.outages_signalled, seen.outages_silent), (1, 1));
    assert_eq!(stalls!(seen.tcp), (2, 1, ms(4500), ms(4500)));
}

#[test]
fn all_packets_are_wanted_from_the_outage_until_the_flows_have_resumed() {
    let mut node = Node::new();
    node.in_an_outage(true);
    node.seen(4000);
    assert_eq!(node.attention, [true]);
    node.at(4200).told(LinkSignal::Up).resume(7200, DOWNLOAD);
    node.seen(7200);
    assert_eq!(node.attention, [true, false]);
    assert_eq!((node.observer.flows(), node.observer.away()), (0, 0));
}

#[test]
fn beyond_the_limits_flows_do_not_count() {
    for table in [
        FlowTableConfig { limit: 2, ..FlowTableConfig::default() },
        FlowTableConfig { per_mobile: 2, ..FlowTableConfig::default() },
    ] {
        let mut node = Node::with(table);
        node.at(1000).told(LinkSignal::Down);
        for port in 1..=10 {
            node.sent(flow(TCP, port));
        }
        let seen = node.seen(2000);
        assert_eq!((seen.tcp.stalled, seen.packets_refused), (2, 8));
        assert_eq!(node.observer.flows(), 2);
    }
}

#[test]
fn a_mobile_that_stays_away_makes_room_when_it_is_idle() {
    let idle = Duration::from_secs(60);
    let mut node = Node::with(FlowTableConfig { limit: 1, idle, ..FlowTableConfig::default() });
    node.at(1000).told(LinkSignal::Down).sent(DOWNLOAD);
    let (other, packet) = (MobileId::Host(ip(4)), node.passing(flow(TCP, 80)));
    node.at(60_000);
    node.observer.on_sent(node.now, other, &packet);
    assert_eq!(node.observer.observed().packets_refused, 1);
    node.at(61_000);
    node.observer.on_sent(node.now, other, &packet);
    assert_eq!(node.observer.observed().packets_refused, 1);
    assert_eq!((node.observer.flows(), node.observer.away()), (1, 0));
}
