//! Whatever happens: segments pass as they came, and little is kept.

use airtcp_core::{Addr, Duration, Flow, Instant, Length, LinkSignal, Payload, Segment, SeqNum};
use airtcp_edge::{
    Action, Actions, FlowTableConfig, Middlebox, MobileId, Packet, Side, Towards, Wake, WakeConfig,
};
use proptest::prelude::*;

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
    Flow { src: Addr::new(crate::ip(1), port), dst: Addr::new(crate::ip(mobile), 80) }
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
                    wake.on_link(now, MobileId::Host(crate::ip(mobile)), signal, &mut out);
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
