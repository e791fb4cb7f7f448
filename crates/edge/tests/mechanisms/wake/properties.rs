//! Whatever happens: segments pass as they came, little is kept, and what is kept leaves once.

use super::{Node, udp};
use airtcp_core::{Addr, Duration, Flow, Instant, Length, LinkSignal, Payload, Segment, SeqNum};
use airtcp_edge::{
    Action, Actions, FlowTableConfig, Middlebox, MobileId, Packet, Side, Towards, Wake, WakeConfig,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Segment { from: Side, port: u16, mobile: u8, seq: u32, len: u64 },
    Signal(u8, LinkSignal),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let side = prop_oneof![Just(Side::Fixed), Just(Side::Mobile)];
    let signal =
        prop_oneof![Just(LinkSignal::Down), Just(LinkSignal::Up), Just(LinkSignal::Fading)];
    let segment = (side, 0u16..4, 2u8..5, any::<u32>(), 0u64..70_000)
        .prop_map(|(from, port, mobile, seq, len)| Step::Segment { from, port, mobile, seq, len });
    let step = prop_oneof![
        6 => segment,
        1 => (2u8..5, signal).prop_map(|(mobile, signal)| Step::Signal(mobile, signal)),
        2 => (0u64..2_000).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..80)
}

fn flow(port: u16, mobile: u8) -> Flow {
    Flow { src: Addr::new(super::ip(1), port), dst: Addr::new(super::ip(mobile), 80) }
}

proptest! {
    #[test]
    fn segments_pass_as_they_came_and_copies_and_questions_go_to_the_link_alone(
        steps in steps(),
        network: bool,
    ) {
        let towards = if network { Towards::Network } else { Towards::Mobile };
        let config = WakeConfig { towards, ..WakeConfig::default() };
        let table = FlowTableConfig { limit: 8, ..FlowTableConfig::default() };
        let mut wake = Wake::<Segment<Length>>::new(config, table);
        let (mut now, mut out, mut seen) = (Instant::ZERO, Actions::new(), Vec::new());
        for step in steps {
            match step {
                Step::Segment { from, port, mobile, seq, len } => {
                    let flow = from.to_mobile(flow(port, mobile));
                    let payload = Length(len);
                    let (seq, ack) = (SeqNum(seq), (port > 0).then_some(SeqNum(port.into())));
                    let segment = Segment { flow, seq, ack, payload, ..Segment::default() };
                    let copies = [segment.end(), segment.beginning()];
                    seen.extend(copies.iter().filter_map(Packet::keep_alive));
                    seen.extend(copies);
                    wake.on_segment(now, from, segment.clone(), &mut out);
                    let forward = Action::Forward { to: from.opposite(), segment };
                    prop_assert_eq!(out.drain().collect::<Vec<_>>(), vec![forward]);
                }
                Step::Signal(mobile, signal) => {
                    wake.on_link(now, MobileId::Host(super::ip(mobile)), signal, &mut out);
                }
                Step::Wait(ms) => {
                    let end = now + Duration::from_millis(ms);
                    while let Some(due) = Middlebox::<Length>::next_deadline(&wake)
                        && due <= end
                    {
                        now = now.max(due);
                        wake.on_timer(now, &mut out);
                        prop_assert!(wake.deadline().is_none_or(|next| next > now));
                        for action in out.drain() {
                            let Action::Inject { to, segment } = action else { unreachable!() };
                            prop_assert_eq!(to, towards.side());
                            prop_assert!(seen.contains(&segment) && segment.payload.len() <= 1460);
                        }
                    }
                    now = end;
                }
            }
            prop_assert!(wake.flows() <= 8);
        }
    }
}

/// What is kept of a UDP flow, by name.
#[derive(Clone, Debug)]
struct Names {
    tail: String,
    newest: Option<String>,
}

/// Milliseconds at which the link of a long outage is back, and back from a second one.
const RETURN: u64 = 30_000;
const SECOND_RETURN: u64 = 60_000;

/// Packets sent from `from` to `to` milliseconds, and when; the mobile is heard 30 ms after `from`.
fn returned(node: &mut Node, from: u64, to: u64) -> Vec<(u64, String)> {
    node.signal(LinkSignal::Up);
    let mut lines = node.until(from + 30);
    node.hear();
    lines.extend(node.until(to));
    let parse = |line: String| {
        let (ms, name) = line.split_once(' ').unwrap();
        (ms.parse().unwrap(), name.to_owned())
    };
    lines.into_iter().map(parse).collect()
}

/// Each kept packet is among those sent once: the newest of a flow first, its tail 200 ms later.
fn are_all_sent_once(kept: &BTreeMap<u16, Names>, sent: &[(u64, String)]) -> bool {
    let at = |name: &String| {
        let mut of_name = sent.iter().filter(|(_, sent)| sent == name).map(|&(at, _)| at);
        of_name.next().filter(|_| of_name.next().is_none())
    };
    let is_right = |Names { tail, newest }: &Names| match newest {
        None => at(tail).is_some(),
        Some(newest) => at(newest).is_some_and(|first| at(tail) == Some(first + 200)),
    };
    let names: usize = kept.values().map(|names| 1 + usize::from(names.newest.is_some())).sum();
    kept.values().all(is_right) && sent.len() == names
}

proptest! {
    #[test]
    fn of_udp_each_kept_packet_leaves_once_newest_first_even_if_the_mobile_is_away_again(
        before in proptest::collection::vec(0u16..40, 1..80),
        during in proptest::collection::vec((0u64..100, 0u16..40), 0..80),
        cut in 31u64..400,
    ) {
        let (mut node, mut kept) = (Node::known(), BTreeMap::new());
        for (n, port) in before.into_iter().enumerate() {
            let tail = format!("{port} before {n}");
            node.send(udp(port, tail.clone()));
            kept.insert(port, Names { tail, newest: None });
        }
        node.signal(LinkSignal::Down);
        let mut now = 301;
        for (n, (wait, port)) in during.into_iter().enumerate() {
            now += wait;
            node.until(now);
            let name = format!("{port} probe {n}");
            node.send(udp(port, name.clone()));
            let newest = Some(name.clone());
            let first = Names { tail: name, newest: None };
            kept.entry(port).and_modify(|names| names.newest = newest).or_insert(first);
        }
        node.until(RETURN);
        let mut whole = node.clone();
        prop_assert!(are_all_sent_once(&kept, &returned(&mut whole, RETURN, SECOND_RETURN)));

        let first = returned(&mut node, RETURN, RETURN + cut);
        node.signal(LinkSignal::Down);
        prop_assert!(node.until(SECOND_RETURN).is_empty(), "the link would lose it");
        let second = returned(&mut node, SECOND_RETURN, 90_000);
        let is_over = are_all_sent_once(&kept, &first);
        let expected = if is_over { BTreeMap::new() } else { kept };
        prop_assert!(are_all_sent_once(&expected, &second));
    }
}
