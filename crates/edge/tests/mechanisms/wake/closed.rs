//! Connections that end: RFC 9293 §3.6. `S` is the fixed host, `M` the mobile; numbers of both
//! begin shortly before the wraparound.

use super::{MOBILE, TCP, id, ip};
use airtcp_core::{Duration, Flags, Instant, Length, LinkSignal, Segment, SeqNum};
use airtcp_edge::{
    Action, Actions, FlowId, FlowPhase, FlowTableConfig, Middlebox, MobileId, Packet, Side,
    Towards, Wake, WakeConfig,
};
use proptest::prelude::*;

/// Number 0 of these tests.
const ORIGIN: SeqNum = SeqNum(u32::MAX - 999);

const S: Side = Side::Fixed;
const M: Side = Side::Mobile;
const NONE: Flags = Flags::empty();

/// A segment of the only connection: from, sequence number, length, acknowledgement, flags.
fn segment(from: Side, seq: u32, len: u64, ack: u32, flags: Flags) -> Segment<Length> {
    let flow = from.to_mobile(id(TCP, 80, MOBILE).flow);
    let (seq, ack) = (ORIGIN + seq, Some(ORIGIN + ack));
    Segment { flow, seq, ack, window: 500, flags, payload: Length(len), ..Segment::default() }
}

fn mobile() -> MobileId {
    MobileId::Host(ip(MOBILE))
}

/// A node that sees all segments.
#[derive(Clone)]
struct Node {
    wake: Wake<Segment<Length>>,
    now: Instant,
}

impl Node {
    fn new(towards: Towards) -> Self {
        let config = WakeConfig { towards, ..WakeConfig::default() };
        Self { wake: Wake::new(config, FlowTableConfig::default()), now: Instant::ZERO }
    }

    /// M has acknowledged 500 bytes of S, and S 100 of M.
    fn established() -> Self {
        let mut node = Self::new(Towards::Mobile);
        node.pass([
            segment(M, 0, 100, 0, NONE),
            segment(S, 0, 500, 100, NONE),
            segment(M, 100, 0, 500, NONE),
        ]);
        assert_eq!(node.flows(), 1);
        node
    }

    /// Segments pass, one a millisecond.
    fn pass(&mut self, segments: impl IntoIterator<Item = Segment<Length>>) {
        let mut out = Actions::new();
        for segment in segments {
            self.now += Duration::from_millis(1);
            let from = if segment.flow == id(TCP, 80, MOBILE).flow { S } else { M };
            self.wake.on_segment(self.now, from, segment.clone(), &mut out);
            let forward = Action::Forward { to: from.opposite(), segment };
            assert_eq!(out.drain().collect::<Vec<_>>(), [forward]);
        }
    }

    fn flows(&self) -> usize {
        self.wake.flows()
    }

    fn wait(&mut self, ms: u64) -> Vec<Segment<Length>> {
        let (end, mut sent) = (self.now + Duration::from_millis(ms), Vec::new());
        while let Some(due) = self.wake.deadline().filter(|&due| due <= end) {
            self.wake.on_deadline(due.max(self.now), |segment| sent.push(segment.clone()));
        }
        self.now = end;
        sent
    }

    fn signal(&mut self, signal: LinkSignal) {
        self.wake.on_signal(self.now, mobile(), signal);
    }

    /// An outage of 500 ms, after which M says nothing by itself: what is sent at its end, as the
    /// numbers after the segments.
    fn outage(&mut self) -> Vec<u32> {
        self.signal(LinkSignal::Down);
        self.wait(500);
        self.signal(LinkSignal::Up);
        let sent = self.wait(0);
        sent.iter().map(|segment| segment.seq_end().0.wrapping_sub(ORIGIN.0)).collect()
    }
}

#[test]
fn when_s_closes_first_its_flow_ends_with_the_acknowledgement_of_its_fin() {
    let mut node = Node::established();
    node.pass([segment(S, 500, 0, 100, Flags::FIN)]);
    assert_eq!(node.flows(), 1, "FIN-WAIT-1");
    node.pass([segment(M, 100, 0, 501, NONE)]);
    assert_eq!(node.flows(), 0, "FIN-WAIT-2");
    node.pass([segment(M, 100, 0, 501, Flags::FIN), segment(S, 501, 0, 101, NONE)]);
    assert_eq!((node.flows(), node.outage()), (0, vec![]), "TIME-WAIT");
}

#[test]
fn when_m_closes_first_the_flow_of_s_ends_as_well_with_the_acknowledgement_of_its_fin() {
    let mut node = Node::established();
    node.pass([segment(M, 100, 0, 500, Flags::FIN), segment(S, 500, 0, 101, NONE)]);
    assert_eq!(node.flows(), 1, "CLOSE-WAIT");
    node.pass([segment(S, 500, 0, 101, Flags::FIN)]);
    assert_eq!(node.flows(), 1, "LAST-ACK");
    node.pass([segment(M, 101, 0, 501, NONE)]);
    assert_eq!((node.flows(), node.outage()), (0, vec![]), "CLOSED");
}

#[test]
fn a_fin_with_data_ends_the_flow_when_both_are_acknowledged() {
    let mut node = Node::established();
    node.pass([segment(S, 500, 200, 100, Flags::FIN), segment(M, 100, 0, 700, NONE)]);
    assert_eq!(node.flows(), 1, "the data alone");
    node.pass([segment(M, 100, 0, 701, NONE)]);
    assert_eq!(node.flows(), 0);
}

#[test]
fn a_simultaneous_close_ends_the_flow_with_the_acknowledgement_of_its_fin() {
    let mut node = Node::established();
    node.pass([
        segment(S, 500, 0, 100, Flags::FIN),
        segment(M, 100, 0, 500, Flags::FIN),
        segment(S, 501, 0, 101, NONE),
    ]);
    assert_eq!(node.flows(), 1, "CLOSING: its own FIN is outstanding");
    node.pass([segment(M, 101, 0, 501, NONE)]);
    assert_eq!(node.flows(), 0);
}

#[test]
fn a_pure_ack_behind_the_own_fin_says_nothing_of_what_is_outstanding() {
    let mut node = Node::established();
    node.pass([
        segment(S, 500, 300, 100, NONE),
        segment(S, 800, 0, 100, Flags::FIN),
        segment(M, 100, 50, 500, NONE),
        segment(S, 801, 0, 150, NONE),
    ]);
    assert_eq!((node.flows(), node.outage()), (1, vec![801]), "FIN-WAIT-1 with data outstanding");
}

#[test]
fn a_reset_of_either_host_ends_the_flow() {
    for reset in [segment(S, 500, 0, 100, Flags::RST), segment(M, 100, 0, 500, Flags::RST)] {
        let mut node = Node::established();
        node.pass([reset]);
        assert_eq!((node.flows(), node.outage()), (0, vec![]));
    }
}

#[test]
fn a_reset_of_a_host_that_has_lost_the_connection_ends_the_flow() {
    let mut node = Node::established();
    // RFC 9293 §3.10.7.1: its number is the acknowledgement number of what it answers.
    let reset = Segment { ack: None, ..segment(M, 100, 0, 0, Flags::RST) };
    node.pass([segment(S, 500, 300, 100, NONE), reset]);
    assert_eq!(node.flows(), 0);
}

#[test]
fn after_shutdown_of_m_a_long_download_is_protected() {
    let mut node = Node::established();
    node.pass([segment(M, 100, 0, 500, Flags::FIN), segment(S, 500, 0, 101, NONE)]);
    for n in 0..1_000 {
        let (seq, end) = (500 + n * 1000, 1_500 + n * 1000);
        node.pass([segment(S, seq, 1000, 101, NONE), segment(M, 101, 0, end, NONE)]);
    }
    node.pass([segment(S, 1_000_500, 1000, 101, NONE), segment(S, 1_001_500, 1000, 101, NONE)]);
    assert_eq!((node.flows(), node.outage()), (1, vec![1_002_500]));
}

#[test]
fn after_shutdown_of_s_a_long_upload_is_protected_by_a_node_on_its_side() {
    let mut node = Node::new(Towards::Network);
    node.pass([
        segment(S, 0, 500, 0, NONE),
        segment(M, 0, 100, 500, NONE),
        segment(S, 500, 0, 100, Flags::FIN),
        segment(M, 100, 0, 501, NONE),
    ]);
    for n in 0..1_000 {
        let (seq, end) = (100 + n * 1000, 1_100 + n * 1000);
        node.pass([segment(M, seq, 1000, 501, NONE), segment(S, 501, 0, end, NONE)]);
    }
    node.pass([segment(M, 1_000_100, 1000, 501, NONE)]);
    assert_eq!((node.flows(), node.outage()), (1, vec![1_001_100]));
    node.pass([segment(S, 501, 0, 1_001_100, NONE), segment(M, 1_001_100, 0, 501, Flags::FIN)]);
    assert_eq!(node.flows(), 1);
    node.pass([segment(S, 501, 0, 1_001_101, NONE)]);
    assert_eq!(node.flows(), 0);
}

#[test]
fn a_fin_in_an_outage_leaves_the_data_before_it_protected() {
    let mut node = Node::established();
    node.signal(LinkSignal::Down);
    node.pass([segment(S, 500, 1000, 100, NONE), segment(S, 1500, 1000, 100, Flags::FIN)]);
    node.wait(2_000);
    // Its timer has expired.
    node.pass([segment(S, 500, 1000, 100, NONE)]);
    node.signal(LinkSignal::Up);
    let ends = |sent: Vec<Segment<Length>>| sent.iter().map(Segment::seq_end).collect::<Vec<_>>();
    assert_eq!(ends(node.wait(0)), [ORIGIN + 1500, ORIGIN + 2501]);
    node.pass([segment(M, 100, 0, 1500, NONE)]);
    assert_eq!(node.flows(), 1, "what follows is outstanding");
    node.pass([segment(M, 100, 0, 2501, NONE)]);
    assert_eq!((node.flows(), node.outage()), (0, vec![]));
}

#[test]
fn a_fin_that_is_sent_again_is_protected_until_it_is_acknowledged() {
    let mut node = Node::established();
    let [fin, ack] = [segment(S, 500, 0, 100, Flags::FIN), segment(M, 100, 0, 501, NONE)];
    node.pass([fin.clone(), ack.clone()]);
    assert_eq!(node.flows(), 0);
    // The acknowledgement was lost behind the node.
    node.pass([fin]);
    assert_eq!((node.flows(), node.outage()), (1, vec![501]));
    node.pass([ack]);
    assert_eq!(node.flows(), 0);
}

#[test]
fn a_fin_that_only_one_direction_shows_ends_nothing_but_is_not_sent_after_five_seconds() {
    let mut node = Node::established();
    node.pass([segment(S, 500, 0, 100, Flags::FIN), segment(S, 501, 0, 101, NONE)]);
    assert_eq!((node.flows(), node.clone().outage()), (1, vec![501]));
    node.wake.on_heard(node.now, mobile(), None);
    node.wait(5_000);
    assert_eq!((node.flows(), node.outage()), (1, vec![]));
}

#[test]
fn a_node_that_begins_with_the_fin_and_its_acknowledgement_knows_enough() {
    let mut node = Node::new(Towards::Mobile);
    node.pass([segment(S, 500, 0, 100, Flags::FIN), segment(M, 100, 0, 501, NONE)]);
    assert_eq!(node.flows(), 0);
}

/// A connection of the same ports, with other numbers.
fn opened_anew() -> [Segment<Length>; 4] {
    let base = 2_000_000_000;
    [
        Segment { ack: None, ..segment(M, base, 0, 0, Flags::SYN) },
        segment(S, 7, 0, base + 1, Flags::SYN),
        segment(M, base + 1, 0, 8, NONE),
        segment(S, 8, 50, base + 1, NONE),
    ]
}

#[test]
fn a_new_connection_of_the_same_ports_displaces_what_was_kept_of_the_old_one() {
    let mut node = Node::established();
    node.pass([segment(S, 1_000_000_500, 100, 100, NONE)]);
    node.pass(opened_anew());
    assert_eq!((node.flows(), node.outage()), (1, vec![58]));
}

#[test]
fn a_new_connection_that_s_opens_displaces_what_was_kept_of_the_old_one() {
    let mut node = Node::established();
    let base = 2_000_000_000;
    node.pass([
        Segment { ack: None, ..segment(S, base, 0, 0, Flags::SYN) },
        segment(M, 7, 0, base + 1, Flags::SYN),
        segment(S, base + 1, 0, 8, NONE),
        segment(S, base + 1, 60, 8, NONE),
        segment(M, 8, 0, base + 61, NONE),
        segment(S, base + 61, 60, 8, NONE),
    ]);
    assert_eq!((node.flows(), node.outage()), (1, vec![base + 121]));
}

#[test]
fn a_new_connection_after_one_that_was_closed_is_a_new_flow_and_ends_by_itself() {
    let mut node = Node::established();
    node.pass([segment(S, 500, 0, 100, Flags::FIN), segment(M, 100, 0, 501, NONE)]);
    let [.., data] = opened_anew();
    node.pass(opened_anew());
    assert_eq!((node.flows(), node.clone().outage()), (1, vec![58]));
    let ack = data.ack.unwrap().0.wrapping_sub(ORIGIN.0);
    node.pass([segment(S, 58, 0, ack, Flags::FIN), segment(M, ack, 0, 59, NONE)]);
    assert_eq!(node.flows(), 0);
}

#[test]
fn a_syn_alone_which_may_be_forged_ends_nothing() {
    let mut node = Node::established();
    node.pass([segment(S, 500, 300, 100, NONE)]);
    node.pass([Segment { ack: None, ..segment(S, 9_000_000, 0, 0, Flags::SYN) }]);
    assert_eq!((node.flows(), node.outage()), (1, vec![800]));
}

/// A connection with 300 bytes of S outstanding, or with its FIN.
fn outstanding(flags: Flags) -> Node {
    let mut node = Node::established();
    node.pass([segment(S, 500, 300, 100, flags)]);
    node
}

#[test]
fn resets_with_another_number_than_the_next_end_nothing() {
    let far = 1 << 30;
    for seq in [501, 600, 799, 801, 0, far, far * 2, far * 3] {
        let mut node = outstanding(NONE);
        node.pass([segment(S, seq, 0, 100, Flags::RST)]);
        assert_eq!((node.flows(), node.outage()), (1, vec![800]), "S {seq}");
    }
    for seq in [99, 101, 0, 5000, far, far * 2, far * 3] {
        let mut node = outstanding(NONE);
        node.pass([segment(M, seq, 0, 500, Flags::RST)]);
        assert_eq!((node.flows(), node.outage()), (1, vec![800]), "M {seq}");
    }
    let mut node = outstanding(NONE);
    node.pass([segment(M, 100, 0, far, Flags::RST), segment(S, 800, 0, far, Flags::RST)]);
    assert_eq!((node.flows(), node.outage()), (1, vec![800]), "acknowledgement");
}

#[test]
fn acknowledgements_of_a_fin_that_do_not_fit_end_nothing() {
    let far = 1 << 30;
    for (seq, ack) in [(100, 800), (100, 802), (100, far), (far, 801), (far * 3, 801)] {
        let mut node = outstanding(Flags::FIN);
        node.pass([segment(M, seq, 0, ack, NONE)]);
        assert_eq!((node.flows(), node.outage()), (1, vec![801]), "{seq} {ack}");
    }
}

#[test]
fn a_forged_fin_ends_nothing_while_anything_is_outstanding() {
    let far = 1 << 30;
    for seq in [500, 600, 700, 800, 5000, far, far * 3] {
        let mut node = outstanding(NONE);
        node.pass([segment(S, seq, 0, 100, Flags::FIN), segment(M, 100, 0, 500, NONE)]);
        assert_eq!(node.flows(), 1, "{seq}");
        assert!(node.outage().contains(&800) || seq >= 800, "{seq}");
        node.pass([segment(M, 100, 0, 700, NONE)]);
        assert_eq!(node.flows(), 1, "{seq}");
    }
    // One of M says nothing of what S has to send.
    let mut node = outstanding(NONE);
    node.pass([segment(M, 100, 0, 500, Flags::FIN), segment(M, far, 0, 500, Flags::FIN)]);
    assert_eq!((node.flows(), node.outage()), (1, vec![800]));
}

#[test]
fn in_an_outage_a_genuine_reset_ends_the_flow() {
    let mut node = outstanding(NONE);
    node.signal(LinkSignal::Down);
    node.wait(1_000);
    node.pass([segment(S, 800, 0, 100, Flags::RST)]);
    node.signal(LinkSignal::Up);
    assert_eq!((node.flows(), node.wait(0)), (0, vec![]));
}

#[test]
fn a_link_that_is_down_stays_down_for_the_next_flow() {
    let mut node = outstanding(NONE);
    node.signal(LinkSignal::Down);
    node.pass([segment(S, 800, 0, 100, Flags::RST)]);
    assert!(node.flows() == 0 && node.wake.is_interrupted(mobile()));
    node.wait(301);
    node.pass([segment(S, 5_000, 100, 100, NONE)]);
    assert_eq!(node.wake.interrupted(mobile()), 1);
    node.signal(LinkSignal::Up);
    assert_eq!(node.wait(0).len(), 1);
    assert!(!node.wake.clone().is_interrupted(MobileId::Host(ip(99))));
}

#[test]
fn what_a_path_is_like_is_known_of_a_mobile_s_next_connection() {
    let mut node = Node::established();
    node.pass([segment(S, 500, 300, 100, NONE)]);
    node.wait(250);
    node.pass([segment(M, 100, 0, 800, NONE)]);
    node.pass([segment(S, 800, 0, 100, Flags::FIN), segment(M, 100, 0, 801, NONE)]);
    assert_eq!(node.flows(), 0);
    node.pass(opened_anew());
    // One and a half times what the answer took, less an eighth for each answer since.
    assert_eq!((node.wait(280).len(), node.wait(100).len()), (0, 1));
    let mut lost = node.clone();
    lost.wait(30_000);
    assert!(!lost.wait(10_000).is_empty(), "it was heard: five minutes of retries, not 10 s");
}

#[test]
fn in_an_outage_flows_that_were_idle_before_are_reported_as_connected() {
    let mut node = Node::established();
    node.wait(10_000);
    let phases = |node: &Node| node.wake.reports().map(|report| report.phase).collect::<Vec<_>>();
    node.signal(LinkSignal::Down);
    assert_eq!(phases(&node), [FlowPhase::Connected]);
    assert_eq!(node.wake.interrupted(mobile()), 0);
    node.pass([segment(S, 500, 300, 100, NONE)]);
    assert_eq!(phases(&node), [FlowPhase::Frozen]);
    assert_eq!(node.wake.interrupted(mobile()), 1);
}

/// A forged segment: from, its number and acknowledgement less those that come next, flags.
fn forgery() -> impl Strategy<Value = (Side, u32, u32, Flags)> {
    let side = prop_oneof![Just(S), Just(M)];
    let flags = prop_oneof![
        Just(Flags::RST),
        Just(Flags::FIN),
        Just(NONE),
        Just(Flags::SYN),
        Just(Flags::RST | Flags::FIN)
    ];
    let number = prop_oneof![1u32..=u32::MAX, 1u32..200, Just(u32::MAX)];
    (side, number, any::<u32>(), flags)
}

proptest! {
    /// RFC 5961 §3.2. A forger knows addresses and ports and has to guess the numbers.
    #[test]
    fn forged_segments_of_the_mobile_and_resets_take_nothing_from_what_is_released(
        forgeries in proptest::collection::vec(forgery(), 1..20),
        flags in prop_oneof![Just(NONE), Just(Flags::FIN)],
    ) {
        let mut node = outstanding(flags);
        let next = 800 + u32::from(flags.contains(Flags::FIN));
        for (from, seq, ack, flags) in forgeries {
            let is_of_s = from == S;
            // Of S, what asks for an answer is kept: a network may bring it, too.
            let flags = if is_of_s { (flags - Flags::FIN) | Flags::RST } else { flags };
            let seq = if is_of_s { next } else { 100 }.wrapping_add(seq);
            // Nobody guesses both numbers, nor a reset's.
            let is_next = |seq| if is_of_s { [500, next].contains(&seq) } else { seq == 100 };
            prop_assume!(!is_next(seq) && (is_of_s || ack != next));
            node.pass([segment(from, seq, 0, ack, flags)]);
        }
        prop_assert_eq!((node.flows(), node.outage()), (1, vec![next]));
    }
}

/// A segment of a data path that shows few packets of a mobile that answers.
#[derive(Clone, Debug)]
struct Shown(Segment<Length>, bool);

impl Packet for Shown {
    fn id(&self) -> FlowId {
        self.0.id()
    }
    fn seq_end(&self) -> Option<SeqNum> {
        Packet::seq_end(&self.0)
    }
    fn header(&self) -> Option<Segment<Length>> {
        self.0.header()
    }
    fn is_boundary(&self) -> bool {
        self.0.is_boundary()
    }
    fn elicits_reply(&self) -> bool {
        self.0.elicits_reply()
    }
    fn is_closing(&self) -> bool {
        self.1
    }
}

/// S has sent into a silence, which M has ended. Then these were shown because they may close the
/// connection: flows and deadlines left.
fn closing(segments: &[Segment<Length>]) -> [usize; 2] {
    let mut wake = Wake::new(WakeConfig::default(), FlowTableConfig::default());
    let [data, ack] = [segment(S, 0, 500, 100, NONE), segment(M, 100, 0, 500, NONE)];
    let shown = [Shown(data, false), Shown(ack, false)];
    let closing = segments.iter().map(|segment| Shown(segment.clone(), true));
    for (n, packet) in shown.into_iter().chain(closing).enumerate() {
        let now = Instant::ZERO + Duration::from_millis(1 + n as u64);
        match packet.0.flow == id(TCP, 80, MOBILE).flow {
            true => wake.on_sent(now, mobile(), &packet),
            false => wake.on_heard(now, mobile(), Some(&packet)),
        }
    }
    let end = Instant::ZERO + Duration::from_secs(1);
    let mut sent = 0;
    while let Some(due) = wake.deadline().filter(|&due| due <= end) {
        wake.on_deadline(due, |_| sent += 1);
    }
    [wake.flows(), sent]
}

#[test]
fn a_fin_and_its_acknowledgement_end_a_flow_of_which_a_megabyte_was_not_shown() {
    let fin = segment(S, 1_000_500, 0, 90_000, Flags::FIN);
    assert_eq!(closing(std::slice::from_ref(&fin)), [1, 0], "M answers: nothing is sent again");
    assert_eq!(closing(&[fin.clone(), segment(M, 90_000, 0, 1_000_400, NONE)]), [1, 0]);
    assert_eq!(closing(&[fin, segment(M, 90_000, 0, 1_000_501, NONE)]), [0, 0]);
}

#[test]
fn a_reset_ends_a_flow_of_which_the_numbers_before_it_were_not_shown() {
    for from in [S, M] {
        assert_eq!(closing(&[segment(from, 1_000_500, 0, 90_000, Flags::RST)]), [0, 0]);
    }
}

#[test]
fn in_a_long_silence_a_reset_must_have_the_next_number() {
    for (from, next, wrong) in [(S, 1000, 1_000_500), (M, 100, 90_000)] {
        let flows_after = |after: Duration, seq| {
            let mut wake = Wake::new(WakeConfig::default(), FlowTableConfig::default());
            let sent = |seq| Shown(segment(S, seq, 500, 100, NONE), false);
            wake.on_sent(Instant::ZERO, mobile(), &sent(0));
            let ack = Shown(segment(M, 100, 0, 500, NONE), false);
            wake.on_heard(Instant::ZERO, mobile(), Some(&ack));
            wake.on_sent(Instant::ZERO, mobile(), &sent(500));
            let now = Instant::ZERO + after;
            while let Some(due) = wake.deadline().filter(|&due| due <= now) {
                wake.on_deadline(due, |_| ());
            }
            let reset = Shown(segment(from, seq, 0, 100, Flags::RST), true);
            match from == S {
                true => wake.on_sent(now, mobile(), &reset),
                false => wake.on_heard(now, mobile(), Some(&reset)),
            }
            wake.flows()
        };
        let [short, long] = [10, 1000].map(Duration::from_millis);
        assert_eq!([flows_after(short, next), flows_after(short, wrong)], [0, 0]);
        assert_eq!([flows_after(long, next), flows_after(long, wrong)], [0, 1]);
    }
}

#[test]
fn the_end_of_a_flow_that_is_not_known_is_not_kept() {
    let mut wake = Wake::new(WakeConfig::default(), FlowTableConfig::default());
    let fin = Shown(segment(S, 500, 100, 100, Flags::FIN), true);
    wake.on_sent(Instant::ZERO, mobile(), &fin);
    assert_eq!((wake.flows(), wake.deadline()), (0, None));
}
