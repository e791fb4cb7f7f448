//! With signals of the link: what is kept, and how it is released.

use super::{MOBILE, Named, Node, TCP, id, ip, tcp, udp};
use airtcp_core::{Duration, Instant, Length, LinkSignal, Segment, SeqNum};
use airtcp_edge::{Action, Actions, FlowTableConfig, Middlebox, MobileId, Side, Wake, WakeConfig};

#[test]
fn of_tcp_the_newest_comes_first_then_the_highest_segment() {
    let mut node = Node::known();
    for end in [1000, 2000, 3000] {
        node.send(tcp(80, end));
    }
    node.signal(LinkSignal::Down);
    node.until(200);
    node.send(tcp(80, 1000));
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["1000", "3000"]);
}

#[test]
fn of_udp_the_newest_comes_first_and_the_last_packet_before_the_outage_200_ms_later() {
    let mut node = Node::known();
    node.send(udp(443, "before"));
    node.signal(LinkSignal::Down);
    node.until(301);
    for name in ["probe 1", "probe 2"] {
        node.send(udp(443, name));
    }
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["probe 2"]);
    node.hear();
    assert_eq!(node.until(10_000), ["501 before"]);
}

#[test]
fn a_packet_that_is_tail_and_newest_is_sent_once() {
    let mut node = Node::known();
    node.answered(tcp(80, 1000));
    node.send(tcp(80, 2000));
    node.signal(LinkSignal::Down);
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["2000"]);
}

#[test]
fn what_comes_during_an_outage_displaces_nothing_from_before() {
    let mut node = Node::known();
    node.send(tcp(80, 2000));
    node.signal(LinkSignal::Down);
    node.until(301);
    for end in [900_000, 500_000] {
        node.send(tcp(80, end));
    }
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["500000", "2000"]);
}

#[test]
fn just_after_down_the_sender_still_fills_its_window() {
    let mut node = Node::known();
    node.send(tcp(80, 2000));
    node.signal(LinkSignal::Down);
    node.until(100);
    node.send(tcp(80, 5000));
    node.until(301);
    node.send(tcp(80, 1000));
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["1000", "5000"]);
}

#[test]
fn a_segment_that_opens_or_aborts_a_connection_is_not_kept() {
    let mut node = Node::known();
    node.send(tcp(80, 2000));
    node.send(Named { boundary: true, ..tcp(80, 3000) });
    node.signal(LinkSignal::Down);
    node.until(301);
    node.send(Named { boundary: true, ..tcp(80, 1) });
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["2000"]);
}

#[test]
fn a_segment_that_asks_for_no_answer_is_not_kept() {
    let mut node = Node::known();
    node.send(tcp(80, 2000));
    node.send(Named { elicits_reply: false, name: "pure ACK".to_owned(), ..tcp(80, 2000) });
    node.signal(LinkSignal::Down);
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["2000"]);
}

#[test]
fn of_a_flow_that_was_idle_before_the_silence_nothing_old_is_sent() {
    let mut node = Node::known();
    node.answered(tcp(80, 9000));
    node.until(6_000);
    node.signal(LinkSignal::Down);
    node.until(6_301);
    for end in [500, 700] {
        node.send(tcp(80, end));
    }
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["700", "500"]);
}

#[test]
fn that_a_link_is_down_is_known_of_a_mobile_without_flows() {
    let mut node = Node::new();
    node.signal(LinkSignal::Down);
    assert!(node.wake.is_interrupted(node.mobile));
    node.until(301);
    // Down for long: the first is the tail, whatever follows.
    for end in [1000, 2000] {
        node.send(tcp(80, end));
    }
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["2000", "1000"]);
}

#[test]
fn a_mobile_without_flows_that_is_heard_or_reported_up_is_back() {
    for is_heard in [true, false] {
        let mut node = Node::new();
        node.signal(LinkSignal::Down);
        node.until(301);
        match is_heard {
            true => node.hear(),
            false => node.signal(LinkSignal::Up),
        }
        assert!(!node.wake.is_interrupted(node.mobile));
    }
}

#[test]
fn of_mobiles_without_flows_no_more_are_remembered_than_of_flows() {
    let table = FlowTableConfig { limit: 2, ..FlowTableConfig::default() };
    let mut node = Node::with(WakeConfig::default(), table);
    for last in [10, 11, 12] {
        node.wake.on_signal(node.now, MobileId::Host(ip(last)), LinkSignal::Down);
    }
    let is_away = |last| node.wake.is_interrupted(MobileId::Host(ip(last)));
    assert_eq!([10, 11, 12].map(is_away), [false, true, true]);
}

#[test]
fn of_a_tunnel_more_is_kept() {
    let tunnel = |name: &str| udp(51820, name);
    let mut node =
        Node::with(WakeConfig { tunnel_packets: 2, ..Default::default() }, Default::default());
    for name in ["a", "b", "c"] {
        node.answered(tunnel(name));
    }
    node.signal(LinkSignal::Down);
    node.until(301);
    for name in ["d", "e", "f"] {
        node.send(tunnel(name));
    }
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["b", "c", "e", "f"]);
}

/// Half of them by TCP, which sends one packet when its timer expires, and half by QUIC, which
/// sends two (RFC 9002 §6.2.4).
#[test]
fn of_a_tunnel_with_ten_flows_the_last_attempt_of_each_is_sent() {
    let tunnel = |name: &str| udp(51820, name);
    let mut node = Node::known();
    node.signal(LinkSignal::Down);
    node.send(tunnel("tail"));
    node.until(7_000);
    let attempts = ["q1", "q1", "q2", "q2", "q3", "q3", "q4", "q4", "q5", "q5"];
    let attempts = [&attempts[..], &["t1", "t2", "t3", "t4", "t5"]].concat();
    attempts.iter().for_each(|name| node.send(tunnel(name)));
    node.until(10_000);
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), [&["tail"][..], &attempts].concat());
}

#[test]
fn tunnels_are_known_by_protocol_or_port() {
    let is_tunnel = |protocol, port| id(protocol, port, MOBILE).is_tunnel();
    assert!(
        [(17, 51820), (17, 4500), (17, 4789), (17, 6081), (47, 0), (50, 0), (4, 0), (41, 0)]
            .into_iter()
            .all(|(protocol, port)| is_tunnel(protocol, port))
    );
    assert!(!is_tunnel(17, 443) && !is_tunnel(TCP, 4500));
}

#[test]
fn a_link_that_comes_up_while_nothing_waits_releases_nothing() {
    let mut node = Node::known();
    node.answered(tcp(80, 1000));
    node.signal(LinkSignal::Up);
    assert!(node.until(10_000).is_empty());
}

#[test]
fn an_up_whose_down_was_lost_releases_what_waits() {
    let mut node = Node::known();
    node.send(tcp(80, 1000));
    node.until(150);
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["1000"]);
}

#[test]
fn a_flow_that_was_idle_before_the_outage_is_left_alone() {
    let mut node = Node::known();
    node.answered(tcp(22, 7));
    node.until(6_000);
    node.answered(tcp(80, 1000));
    node.signal(LinkSignal::Down);
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["1000"]);
}

#[test]
fn a_release_that_is_not_answered_is_repeated() {
    let mut node = Node::known();
    node.send(tcp(80, 1000));
    node.signal(LinkSignal::Down);
    node.until(250);
    node.signal(LinkSignal::Up);
    assert_eq!(node.until(450), ["250 1000", "350 1000", "450 1000"]);
    node.hear();
    assert!(node.until(10_000).is_empty(), "the answer to a call, not the link, was new");
}

#[test]
fn a_mobile_heard_just_after_down_is_not_back() {
    let mut node = Node::known();
    node.send(tcp(80, 1000));
    node.signal(LinkSignal::Down);
    node.until(100);
    node.hear();
    assert!(node.sends().is_empty(), "its packet was on the way");
    node.until(400);
    node.hear();
    assert_eq!(node.sends(), ["1000"], "the signal that it is up was lost");
}

#[test]
fn a_packet_on_its_way_when_the_link_went_down_does_not_end_a_silence_from_before() {
    let mut node = Node::known();
    node.send(tcp(80, 1000));
    assert_eq!(node.until(350), ["300 1000"], "silent before the signal");
    node.signal(LinkSignal::Down);
    node.until(380);
    node.hear();
    assert_eq!(node.wake.counters().releases, 0, "the outage would lose it");
    node.until(20_000);
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["1000"]);
    assert_eq!(node.wake.counters().releases, 1);
}

#[test]
fn a_packet_on_its_way_when_the_link_went_down_leaves_the_tail_from_before() {
    let mut node = Node::known();
    node.send(udp(443, "before"));
    node.until(350);
    node.signal(LinkSignal::Down);
    node.until(380);
    node.hear();
    node.until(8_000);
    node.send(udp(443, "probe"));
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["probe"]);
    node.hear();
    assert_eq!(node.until(9_000), ["8200 before"]);
}

#[test]
fn many_flows_are_released_in_portions_the_latest_first() {
    let mut node = Node::known();
    for port in 100..140 {
        node.send(udp(port, format!("{port}")));
    }
    node.signal(LinkSignal::Down);
    node.signal(LinkSignal::Up);
    let sent = node.until(50);
    let at = |ms: &str| sent.iter().filter(|line| line.starts_with(ms)).count();
    assert_eq!([at("0 "), at("10 "), at("20 ")], [16, 16, 8]);
    assert_eq!((sent[0].as_str(), sent[39].as_str()), ("0 139", "20 100"));
}

#[test]
fn a_flood_of_new_flows_in_an_outage_displaces_nothing() {
    let mut node = Node::with(
        WakeConfig::default(),
        FlowTableConfig { limit: 1000, ..FlowTableConfig::default() },
    );
    node.answered(tcp(80, 1000));
    node.signal(LinkSignal::Down);
    node.until(301);
    for port in 1000..3000 {
        node.send(udp(port, "flood"));
    }
    assert_eq!((node.wake.flows(), node.wake.segments_refused()), (257, 1744));
    node.signal(LinkSignal::Up);
    assert!(node.until(1000).iter().any(|line| line.ends_with(" 1000")));
}

#[test]
fn a_scan_of_mobiles_that_do_not_exist_displaces_nothing() {
    let table = FlowTableConfig { limit: 3, ..FlowTableConfig::default() };
    let mut node = Node::with(WakeConfig::default(), table);
    node.answered(tcp(80, 1000));
    for last in 10..200 {
        node.wake.on_sent(node.now, MobileId::Host(ip(last)), &udp(1, "scan"));
    }
    node.answered(tcp(81, 2000));
    assert_eq!((node.wake.flows(), node.wake.segments_refused()), (3, 0));
    node.signal(LinkSignal::Up);
    node.send(tcp(80, 1100));
    node.send(tcp(81, 2100));
    node.signal(LinkSignal::Down);
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["2100", "1100"]);
}

/// Three flows come where there is room for two, until one was idle for ten seconds.
fn one_too_many(table: FlowTableConfig) -> Node {
    let table = FlowTableConfig { idle: Duration::from_secs(10), ..table };
    let mut node = Node::with(WakeConfig::default(), table);
    for port in [1, 2, 3] {
        node.answered(udp(port, "x"));
    }
    assert_eq!((node.wake.flows(), node.wake.segments_refused()), (2, 1));
    node
}

#[test]
fn of_one_mobile_no_more_flows_are_kept_than_it_may_have() {
    let mut node = one_too_many(FlowTableConfig { per_mobile: 2, ..FlowTableConfig::default() });
    node.wake.on_sent(node.now, MobileId::Host(ip(200)), &udp(1, "another mobile"));
    assert_eq!(node.wake.segments_refused(), 1);
    node.until(10_000);
    node.answered(udp(3, "x"));
    assert_eq!(node.wake.segments_refused(), 1);
}

#[test]
fn at_the_limit_the_longest_idle_flow_makes_room() {
    let mut node = one_too_many(FlowTableConfig { limit: 2, ..FlowTableConfig::default() });
    node.until(10_000);
    node.answered(udp(3, "x"));
    assert_eq!((node.wake.flows(), node.wake.segments_refused()), (2, 1));
}

#[test]
fn sequence_numbers_wrap() {
    let mut node = Node::known();
    // Around the wraparound, which these tests have at 1000.
    for end in [900, 1100] {
        node.send(tcp(80, end));
    }
    assert_eq!(tcp(80, 1100).end, Some(SeqNum(100)));
    node.signal(LinkSignal::Down);
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["1100"]);
}

#[test]
fn of_a_segment_to_be_segmented_the_tail_is_its_end_and_the_newest_its_beginning() {
    let mut node = Wake::<Segment<Length>>::new(WakeConfig::default(), FlowTableConfig::default());
    let mut out = Actions::new();
    let flow = id(TCP, 80, MOBILE).flow;
    let segment =
        |seq, len| Segment { flow, seq: SeqNum(seq), payload: Length(len), ..Segment::default() };
    for segment in [segment(10_000, 60_000), segment(10_000, 20_000)] {
        node.on_segment(Instant::ZERO, Side::Fixed, segment, &mut out);
    }
    out.drain().for_each(drop);
    node.on_link(Instant::ZERO, MobileId::Host(ip(MOBILE)), LinkSignal::Up, &mut out);
    node.on_timer(Instant::ZERO, &mut out);
    let inject = |segment| Action::Inject { to: Side::Mobile, segment };
    let sent = [segment(10_000, 1_460), segment(70_000 - 1_460, 1_460)].map(inject);
    assert_eq!(out.as_slice(), sent);
}

impl Node {
    /// A mobile that answered this packet after so many milliseconds.
    fn after_answer(packet: Named, took: u64) -> Self {
        let mut node = Self::known();
        node.send(packet);
        node.until(node.ms() + took);
        node.hear();
        node
    }

    /// An outage of 500 ms, whose end is told: the first packet is sent when it begins, and is the
    /// tail; the second one when it ends.
    fn outage(mut self, [tail, newest]: [Named; 2]) -> Self {
        self.signal(LinkSignal::Down);
        self.send(tail);
        self.until(self.ms() + 500);
        self.send(newest);
        self.signal(LinkSignal::Up);
        self
    }

    /// A mobile that answered after so many milliseconds, back from an outage of a TCP flow: its
    /// tail is 1000, and 500 is sent again.
    fn back(answer: u64) -> Self {
        Self::after_answer(tcp(80, 1), answer).outage([tcp(80, 1000), tcp(80, 500)])
    }
}

#[test]
fn over_a_short_path_the_tail_follows_the_newest() {
    assert_eq!(Node::back(100).sends(), ["500", "1000"]);
}

#[test]
fn over_a_long_path_the_tail_waits_for_the_sender_to_go_on() {
    let mut node = Node::back(101);
    assert_eq!(node.sends(), ["500"]);
    let up = node.ms();
    node.hear();
    assert!(node.wake.is_interrupted(node.mobile));
    assert_eq!(node.until(up + 200), [format!("{} 1000", up + 200)]);
    assert!(!node.wake.is_interrupted(node.mobile));
}

#[test]
fn a_sender_that_goes_on_needs_no_tail() {
    let mut node = Node::back(101);
    assert_eq!(node.sends(), ["500"]);
    node.hear();
    node.until(node.ms() + 100);
    node.answered(tcp(80, 1500));
    assert!(node.until(node.ms() + 1_000).is_empty());
}

#[test]
fn a_sender_that_only_repeats_older_segments_needs_the_tail() {
    let mut node = Node::back(101);
    assert_eq!(node.sends(), ["500"]);
    let up = node.ms();
    node.hear();
    node.until(up + 100);
    node.answered(tcp(80, 600));
    assert_eq!(node.until(up + 200), [format!("{} 1000", up + 200)]);
}

#[test]
fn over_a_long_path_retries_are_without_the_tail() {
    let mut node = Node::back(101);
    assert_eq!(node.sends(), ["500"]);
    let retries = node.until(node.ms() + 150);
    assert!(retries.len() == 1 && retries[0].ends_with(" 500"), "{retries:?}");
}

#[test]
fn a_udp_sender_that_goes_on_needs_no_tail() {
    let mut node = Node::known().outage([udp(443, "request 1"), udp(443, "request 2")]);
    assert_eq!(node.until(599), ["500 request 2"]);
    node.hear();
    node.answered(udp(443, "request 3"));
    assert!(node.until(2_000).is_empty());
}

#[test]
fn a_udp_packet_with_nothing_newer_is_sent_at_once() {
    let mut node = Node::known();
    node.send(udp(443, "acknowledgement"));
    node.signal(LinkSignal::Down);
    node.until(500);
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["acknowledgement"]);
}

#[test]
fn of_udp_retries_are_without_the_tail() {
    let mut node = Node::known();
    node.send(udp(443, "before"));
    node.until(350);
    node.send(udp(443, "probe"));
    assert_eq!(node.until(500), ["400 probe", "500 probe"]);
    node.hear();
    assert_eq!(node.until(1_000), ["500 probe", "700 before"]);
}

/// A mobile back from an outage of 27 s, and away again 100 ms later; the newest packet was sent
/// 7 s before.
fn away_again(is_heard: bool, [tail, newest]: [Named; 2]) -> Node {
    let mut node = Node::known();
    node.send(tail);
    node.signal(LinkSignal::Down);
    node.until(20_000);
    node.send(newest.clone());
    node.until(27_000);
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), [newest.name]);
    if is_heard {
        node.until(27_030);
        node.hear();
    }
    node.until(27_100);
    node.signal(LinkSignal::Down);
    node
}

#[test]
fn a_tail_that_waits_when_the_mobile_is_away_again_is_sent_at_its_next_return() {
    for is_heard in [true, false] {
        let mut node = away_again(is_heard, [udp(443, "before"), udp(443, "probe")]);
        let is_before = |line: &String| line.ends_with("before");
        assert!(!node.until(57_000).iter().any(is_before), "the link would lose it");
        node.signal(LinkSignal::Up);
        assert_eq!(node.until(57_050), ["57000 probe"], "the link may have lost it");
        node.hear();
        assert_eq!(node.until(90_000), ["57200 before"]);
    }
}

#[test]
fn the_next_probe_in_a_second_outage_leaves_the_tail_that_waits() {
    let mut node = away_again(true, [udp(443, "before"), udp(443, "probe")]);
    node.until(40_000);
    node.send(udp(443, "probe 2"));
    node.signal(LinkSignal::Up);
    node.hear();
    assert_eq!(node.until(60_000), ["40000 probe 2", "40200 before"]);
}

#[test]
fn flows_that_wait_in_line_when_the_mobile_is_away_again_are_released_at_its_next_return() {
    let mut node = Node::known();
    for port in 100..140 {
        node.send(udp(port, format!("{port}")));
    }
    node.signal(LinkSignal::Down);
    node.until(20_000);
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends().len(), 16);
    node.until(20_005);
    node.hear();
    node.signal(LinkSignal::Down);
    assert!(node.until(40_000).is_empty());
    node.signal(LinkSignal::Up);
    assert_eq!(node.until(40_050).len(), 40);
}

#[test]
fn a_release_that_is_not_answered_is_repeated_after_a_long_outage_too() {
    let mut node = Node::known();
    node.send(udp(443, "before"));
    node.signal(LinkSignal::Down);
    node.until(20_000);
    node.send(udp(443, "probe"));
    node.until(27_000);
    node.signal(LinkSignal::Up);
    let sent = ["27000 probe", "27100 probe", "27200 before", "27200 probe", "27300 probe"];
    assert_eq!(node.until(27_300), sent);
}

#[test]
fn what_nobody_answered_for_five_minutes_is_not_sent_after_a_later_silence() {
    let mut node = Node::known();
    node.send(udp(443, "long ago"));
    node.signal(LinkSignal::Down);
    node.until(20_000);
    node.signal(LinkSignal::Up);
    let last = node.until(400_000).pop().unwrap();
    assert!(last.ends_with(" long ago") && last.as_str() < "33", "{last}");
    node.send(udp(444, "now"));
    node.hear();
    assert_eq!(node.until(401_000), ["400000 now"]);
}

#[test]
fn of_a_tunnel_packets_keep_their_order() {
    let mut node = Node::known().outage([udp(51820, "1"), udp(51820, "2")]);
    assert_eq!(node.sends(), ["1", "2"]);
}
