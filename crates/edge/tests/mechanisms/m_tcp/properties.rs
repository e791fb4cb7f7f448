//! What holds for any traffic.

use super::{MTcpScript, open};
use crate::script_in_words::{Seg, with_flags, with_payload, with_window};
use airtcp_core::{Duration, Flags, SeqNum};
use airtcp_edge::{Action, Actions, Middlebox, Side};
use proptest::prelude::*;

/// A random segment, its numbers in a small range, so that all relations between them occur.
#[derive(Clone, Debug)]
struct Any {
    from: Side,
    number: u32,
    len: u64,
    flags: Flags,
    window: u16,
    gap: Duration,
}

impl Any {
    fn segment(&self, script: &MTcpScript) -> Seg {
        let segment = match self.from {
            Side::Fixed => script.fixed(self.number, self.len),
            Side::Mobile => with_payload(script.mobile(self.number), self.len.saturating_sub(500)),
        };
        with_window(with_flags(segment, self.flags), self.window)
    }
}

/// FIN, PSH, ECE and CWR; SYN and RST end the connection, and with it what a test knows of it.
fn any_segment() -> impl Strategy<Value = Any> {
    let from = prop_oneof![Just(Side::Fixed), Just(Side::Mobile)];
    let number = prop_oneof![3 => (0u32..10).prop_map(|n| n * 500), 1 => 0u32..5000];
    let len = prop_oneof![4 => Just(0u64), 2 => 1u64..3, 3 => Just(500u64), 2 => 1u64..3000];
    let flags = prop_oneof![12 => Just(0u8), 1 => any::<u8>()]
        .prop_map(|bits| Flags::from_bits_truncate(bits) - Flags::SYN - Flags::RST);
    let window = prop_oneof![8 => Just(500u16), 1 => Just(0), 1 => any::<u16>()];
    let gap = prop_oneof![3 => Just(0), 3 => 0u64..150, 1 => 0u64..2000];
    (from, number, len, flags, window, gap).prop_map(|(from, number, len, flags, window, gap)| {
        Any { from, number, len, flags, window, gap: Duration::from_millis(gap) }
    })
}

fn streams() -> impl Strategy<Value = Vec<Any>> {
    proptest::collection::vec(any_segment(), 0..200)
}

/// An observer on both sides of the node, with the highest ACK of the mobile that the fixed host
/// can accept (any, until the mobile sends one), the highest one sent to the fixed host, and the
/// highest sequence number from there.
struct Observer {
    mobile: SeqNum,
    ack_sent: SeqNum,
    sent: Option<SeqNum>,
}

impl Observer {
    fn new(script: &MTcpScript) -> Self {
        let start = script.fixed(0, 0).seq;
        Self { mobile: start, ack_sent: start, sent: None }
    }

    fn on_segment(&mut self, from: Side, segment: &Seg) {
        match (from, segment.ack) {
            (Side::Fixed, _) => {
                let end = segment.seq_end();
                self.sent = Some(self.sent.unwrap_or(self.mobile).later(end));
            }
            (Side::Mobile, Some(ack)) if self.sent.is_none_or(|sent| ack.at_or_before(sent)) => {
                self.mobile = self.mobile.later(ack);
            }
            (Side::Mobile, _) => {}
        }
    }
}

proptest! {
    #[test]
    fn b4_generated_acks_never_go_back_nor_beyond_the_mobile_s(isn: u32, stream in streams()) {
        let mut script = open(isn);
        let mut observer = Observer::new(&script);
        for any in stream {
            let mut actions = Actions::new();
            let end = script.now + any.gap;
            while let Some(deadline) = script.machine.next_deadline().filter(|&d| d <= end) {
                script.machine.on_timer(deadline, &mut actions);
            }
            script.now = end;
            let segment = any.segment(&script);
            observer.on_segment(any.from, &segment);
            script.machine.on_segment(script.now, any.from, segment, &mut actions);
            for action in actions.drain() {
                match action {
                    Action::Inject { to: Side::Fixed, segment } => {
                        let ack = segment.ack.unwrap();
                        prop_assert!(ack.at_or_before(observer.mobile), "{segment}");
                        prop_assert!(ack.at_or_after(observer.ack_sent), "{segment}");
                        observer.ack_sent = ack;
                    }
                    Action::Forward { to: Side::Fixed, segment } => {
                        let ack = segment.ack.filter(|ack| ack.at_or_before(observer.mobile));
                        observer.ack_sent = observer.ack_sent.later(ack.unwrap_or(observer.ack_sent));
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn data_either_way_passes_unless_the_mobile_has_it(isn: u32, stream in streams()) {
        let mut script = open(isn);
        let mut observer = Observer::new(&script);
        for any in stream {
            script.until((script.now + any.gap).since_start().as_millis());
            let segment = any.segment(&script);
            observer.on_segment(any.from, &segment);
            let must_pass = match any.from {
                Side::Fixed => segment.seq_len() > 1 && segment.seq_end().after(observer.mobile),
                Side::Mobile => !segment.is_pure_ack(),
            };
            let actions = script.pass(any.from, segment);
            prop_assert!(!must_pass || actions[0] == "pass", "{actions:?}");
        }
    }
}
