//! Without signals: silence, retries, and the end of both.

use super::{Named, Node, tcp, udp};
use airtcp_core::{Flags, Length, LinkSignal, Options, Segment, SeqNum, Timestamps};
use airtcp_edge::{MobileId, Packet};
use std::net::{IpAddr, Ipv4Addr};

/// Retries of the flow with this name, up to `at` milliseconds.
fn retries(node: &mut Node, name: &str, at: u64) -> Vec<u64> {
    let parse = |line: String| {
        let (ms, what) = line.split_once(' ').unwrap();
        (what == name).then(|| ms.parse().unwrap())
    };
    node.until(at).into_iter().filter_map(parse).collect()
}

#[test]
fn a_mobile_that_answers_is_sent_nothing() {
    let mut node = Node::known();
    for ms in (0..10_000).step_by(50) {
        assert!(node.until(ms).is_empty());
        node.answered(tcp(80, ms as u32));
    }
    assert!(node.until(60_000).is_empty(), "an idle flow is not silent");
}

#[test]
fn a_mobile_that_was_asked_nothing_is_not_called() {
    let mut node = Node::known();
    node.send(Named { elicits_reply: false, ..tcp(80, 1000) });
    assert!(node.until(60_000).is_empty(), "a pure ACK has no answer");
}

#[test]
fn after_a_silence_of_300_ms_a_flow_calls_every_100_ms() {
    let mut node = Node::known();
    node.send(tcp(80, 1000));
    assert_eq!(retries(&mut node, "1000", 650), [300, 400, 500, 600]);
    node.hear();
    assert_eq!(node.sends(), ["1000"], "retries do not say that the packet arrived");
    assert!(node.until(10_000).is_empty());
}

#[test]
fn when_one_flow_is_answered_all_are_released() {
    let mut node = Node::known();
    for port in [80, 81, 82] {
        node.send(udp(port, format!("{port}")));
    }
    assert_eq!(node.until(400), ["300 82", "400 81"], "they take turns");
    node.hear();
    assert_eq!(node.sends(), ["82", "81", "80"]);
}

#[test]
fn a_call_sends_the_tail_behind_the_newest() {
    let mut node = Node::known();
    node.send(tcp(80, 2000));
    node.send(tcp(80, 1000));
    assert_eq!(node.until(300), ["300 1000", "300 2000"]);
}

#[test]
fn the_silence_that_counts_is_longer_than_answers_take() {
    let mut node = Node::new();
    node.send(tcp(80, 1));
    node.until(250);
    node.hear();
    node.send(tcp(80, 2));
    assert_eq!(node.until(624), Vec::<String>::new());
    assert_eq!(node.until(625), ["625 2"], "one and a half times 250 ms");
}

#[test]
fn answers_that_were_slow_long_ago_are_forgotten() {
    let mut node = Node::new();
    node.send(tcp(80, 1));
    node.until(280);
    node.hear();
    for end in 2..40 {
        node.answered(tcp(80, end));
    }
    node.send(tcp(80, 50));
    assert_eq!(node.until(580), ["580 50"]);
}

#[test]
fn the_longer_the_silence_the_fewer_the_retries() {
    let mut node = Node::known();
    node.send(tcp(80, 1000));
    let retries = retries(&mut node, "1000", 400_000);
    let gap = |from: u64| {
        let next = retries.iter().position(|&at| at >= from).unwrap();
        retries[next + 1] - retries[next]
    };
    assert_eq!([gap(1_000), gap(4_000)], [100, 100]);
    assert!((200..=205).contains(&gap(10_000)) && (1_000..=1_025).contains(&gap(50_000)));
    assert!((300_000..306_000).contains(retries.last().unwrap()), "five minutes");
    assert!(retries.len() < 300);
}

#[test]
fn between_retries_that_are_far_apart_a_tcp_flow_sends_keep_alives_every_100_ms() {
    let mut node = Node::known();
    node.send(udp(443, "QUIC"));
    node.send(tcp(80, 1000));
    node.send(tcp(80, 500));
    assert!(retries(&mut node, "500?", 5_000).is_empty(), "it retries as often");
    node.until(20_000);
    let told = node.until(21_000);
    let (keep_alives, retries): (Vec<_>, Vec<_>) =
        told.iter().partition(|line| line.ends_with(" 500?"));
    assert_eq!(keep_alives.len() + retries.len(), told.len(), "by the newest packet: {told:?}");
    assert!((7..=9).contains(&keep_alives.len()), "{told:?}");
    node.hear();
    assert_eq!(node.sends(), ["500", "1000", "QUIC"]);
    assert!(node.until(30_000).is_empty());
    assert!(node.wake.counters().keep_alives > 100);
}

#[test]
fn what_has_no_keep_alive_only_retries() {
    let mut node = Node::known();
    node.send(Named { keep_alives: false, ..udp(443, "QUIC") });
    assert!(node.until(100_000).iter().all(|line| line.ends_with(" QUIC")));
    assert_eq!(node.wake.counters().keep_alives, 0);
}

#[test]
fn other_protocols_ask_where_tcp_does_not() {
    let mut node = Node::known();
    node.send(udp(443, "QUIC"));
    node.until(20_000);
    let told = node.until(21_000);
    let asked = told.iter().filter(|line| line.ends_with(" QUIC?")).count();
    assert!((7..=9).contains(&asked), "{told:?}");
    node.send(tcp(80, 1000));
    node.send(udp(444, "newer"));
    let told = node.until(22_000);
    let asked = told.iter().filter(|line| line.ends_with(" 1000?")).count();
    assert!((8..=11).contains(&asked), "{told:?}");
}

#[test]
fn keep_alives_end_when_retries_do() {
    let mut node = Node::known();
    node.send(tcp(80, 1000));
    let last = *retries(&mut node, "1000?", 1_000_000).last().unwrap();
    assert!((299_000..306_000).contains(&last), "{last}");
}

#[test]
fn of_many_silent_mobiles_each_is_asked_less_often() {
    let mut node = Node::known();
    for mobile in 0..2_000 {
        node.mobile = MobileId::Host(IpAddr::V4(Ipv4Addr::from_bits(mobile)));
        node.answered(tcp(80, 500));
        node.send(tcp(80, 1000));
    }
    node.until(20_000);
    let asked = node.until(21_000).iter().filter(|line| line.ends_with('?')).count();
    // 200 ms apart, and some of them are retries; one by one there would be 15,000.
    assert!((4_000..=10_000).contains(&asked), "{asked}");
}

#[test]
fn a_question_lies_before_what_the_other_side_expects_and_is_empty() {
    let stamps = Timestamps { value: 7, echo: 9 };
    let options = Options { timestamps: Some(stamps), ..Options::default() };
    let flags = Flags::FIN | Flags::AE | Flags::ECE;
    let ack = Some(SeqNum(5));
    let segment = Segment { payload: Length(100), ack, flags, options, ..Segment::default() };
    let keep_alive = segment.keep_alive().unwrap();
    assert_eq!((keep_alive.seq, keep_alive.seq_len()), (SeqNum(u32::MAX), 0));
    assert_eq!((keep_alive.ack, keep_alive.options.timestamps), (ack, Some(stamps)));
    assert_eq!(keep_alive.flags, Flags::AE | Flags::ECE, "the counter of RFC 9768");
    assert_eq!(Segment { flags: Flags::SYN, ..segment.clone() }.keep_alive(), None);
    assert_eq!(Segment { ack: None, ..segment }.keep_alive(), None);
}

#[test]
fn when_the_sender_tries_again_retries_go_on() {
    let mut node = Node::known();
    node.send(tcp(80, 1000));
    node.until(400_000);
    node.send(tcp(80, 500));
    assert_eq!(node.until(400_100), ["400100 500", "400100 1000"]);
}

#[test]
fn a_mobile_that_was_never_heard_is_called_for_ten_seconds() {
    let mut node = Node::new();
    node.send(udp(80, "x"));
    let retries = retries(&mut node, "x", 100_000);
    assert!((10_000..10_300).contains(retries.last().unwrap()));
}

#[test]
fn calls_are_counted_and_silence_once() {
    let mut node = Node::known();
    node.send(tcp(80, 1000));
    node.until(650);
    node.hear();
    node.sends();
    let counters = node.wake.counters();
    assert_eq!((counters.silences, counters.packets_retried), (1, 4));
    assert_eq!((counters.releases, counters.packets_released), (1, 1));
}

#[test]
fn a_link_reported_down_whose_up_is_lost_is_called_too() {
    let mut node = Node::known();
    node.send(tcp(80, 1000));
    node.signal(LinkSignal::Down);
    assert_eq!(node.until(400), ["300 1000", "400 1000"]);
    assert_eq!(node.wake.counters().silences, 0, "it was told");
}

#[test]
fn what_is_sent_to_a_silent_mobile_displaces_nothing_from_before() {
    let mut node = Node::known();
    node.send(udp(443, "before"));
    node.until(350);
    node.send(udp(443, "probe"));
    node.hear();
    assert_eq!(node.until(600), ["350 probe", "550 before"]);
}

#[test]
fn a_mobile_is_interrupted_while_it_is_silent() {
    let mut node = Node::known();
    let mobile = node.mobile;
    node.send(tcp(80, 1000));
    assert!(!node.wake.is_interrupted(mobile));
    node.until(300);
    assert!(node.wake.is_interrupted(mobile));
    let since = node.wake.reports().find_map(|report| report.since);
    assert_eq!(since, Some(node.origin));
    node.hear();
    node.sends();
    assert!(!node.wake.is_interrupted(mobile));
}
