//! With a data path that shows only what goes to silent mobiles, and says what it knows of them.

use super::{Named, Node, tcp, udp};
use airtcp_core::{Duration, Instant, LinkSignal};
use airtcp_edge::Silence;

/// Answers took so many milliseconds.
fn silence(since: Instant, answers: u64, is_flow_new: bool) -> Silence {
    let response = Duration::from_millis(answers);
    Silence { since, response, round_trip: response, is_flow_new }
}

impl Node {
    /// A packet to a mobile that has not answered for so many milliseconds, with answers that took
    /// 40 ms before.
    fn send_into_silence(&mut self, ms: u64, packet: Named) {
        let since = self.now - Duration::from_millis(ms);
        self.send(Named { silence: Some(silence(since, 40, false)), ..packet });
    }
}

#[test]
fn silence_counts_from_the_first_packet_without_an_answer_which_was_not_shown() {
    let mut node = Node::known();
    node.until(1_000);
    node.send_into_silence(200, tcp(80, 1000));
    assert_eq!(node.until(1_250), ["1100 1000", "1200 1000"]);
}

#[test]
fn a_packet_that_is_shown_late_is_called_with_at_once() {
    let mut node = Node::known();
    node.until(1_000);
    node.send_into_silence(700, tcp(80, 1000));
    assert_eq!(node.until(1_150), ["1000 1000", "1100 1000"]);
}

#[test]
fn how_long_answers_take_is_taken_over() {
    let mut node = Node::known();
    node.send(Named { silence: Some(silence(node.now, 600, false)), ..udp(443, "x") });
    assert!(node.until(899).is_empty());
    assert_eq!(node.until(900), ["900 x"], "one and a half times 600 ms");
}

#[test]
fn a_mobile_whose_answers_were_never_shown_is_known_all_the_same() {
    let mut node = Node::new();
    node.until(1_000);
    node.send_into_silence(100, udp(443, "x"));
    let retries = node.until(400_000);
    let last: u64 = retries.last().unwrap().strip_suffix(" x").unwrap().parse().unwrap();
    assert!(last > 300_000, "called for five minutes, not ten seconds: {last} ms");
}

#[test]
fn what_was_kept_in_an_earlier_silence_is_not_sent_in_a_later_one() {
    let mut node = Node::known();
    node.send_into_silence(100, tcp(80, 900));
    node.hear();
    node.until(20_000);
    node.signal(LinkSignal::Down);
    node.until(21_000);
    // The connection went on, or another one took its ports.
    node.send_into_silence(1_000, tcp(80, 500));
    node.send_into_silence(1_000, tcp(80, 700));
    node.signal(LinkSignal::Up);
    assert_eq!(node.sends(), ["700", "500"]);
}

#[test]
fn a_flood_leaves_room_for_flows_that_were_there_before_and_are_shown_late() {
    let mut node = Node::known();
    let [flood, known] = [true, false].map(|is_new| Some(silence(node.now, 0, is_new)));
    for port in 1000..3000 {
        node.send(Named { silence: flood, ..udp(port, "flood") });
    }
    assert_eq!((node.wake.flows(), node.wake.segments_refused()), (257, 1744), "and one before");
    for port in 3000..3300 {
        node.send(Named { silence: known, ..udp(port, "known") });
    }
    assert_eq!((node.wake.flows(), node.wake.segments_refused()), (557, 1744));
}

#[test]
fn flows_of_a_flood_neither_call_nor_are_released_before_others() {
    let mut node = Node::known();
    node.send_into_silence(0, udp(443, "known"));
    let flood = Some(silence(node.now, 0, true));
    for port in 1000..1050 {
        node.send(Named { silence: flood, ..udp(port, "flood") });
    }
    node.send_into_silence(0, tcp(80, 1000));
    assert_eq!(node.until(500), ["300 1000", "400 known", "500 1000"]);
    node.hear();
    assert_eq!(node.sends()[..3], ["1000", "known", "flood"]);
}

#[test]
fn the_round_trip_is_taken_over() {
    let mut node = Node::known();
    let slow = Some(silence(node.now, 120, false));
    node.send(Named { silence: slow, ..tcp(80, 1000) });
    node.until(1_000);
    node.send(tcp(80, 500));
    node.hear();
    assert_eq!(node.sends(), ["500"], "the tail waits");
}
