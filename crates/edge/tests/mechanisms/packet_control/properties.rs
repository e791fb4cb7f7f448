//! Properties that hold for any traffic, on a circle of sequence numbers that wraps. With a
//! threshold of three, duplicate ACKs pass untouched (Packet Control, figure 8: R = 3 is no
//! filter).

use super::script::{Script, Seg, Verdict, len, with_flags, with_payload, with_window};
use airtcp_core::{Duration, Flags, Segment, SeqNum};
use airtcp_edge::Side;
use proptest::prelude::*;

/// A random segment: side, sequence number and acknowledgement in a small range, so that all
/// relations between them occur, and everything else now and then.
#[derive(Clone, Debug)]
struct Any {
    from_fixed: bool,
    number: u32,
    len: u64,
    flags: Flags,
    ack: bool,
    window: u16,
    gap: Duration,
}

fn any_segment() -> impl Strategy<Value = Any> {
    let number = prop_oneof![9 => 0u32..5000, 1 => any::<u32>()];
    let len = prop_oneof![6 => Just(0u64), 2 => 1u64..3, 2 => 1u64..1500, 1 => 1u64..70_000];
    let flags = prop_oneof![8 => Just(0u8), 2 => any::<u8>()].prop_map(Flags::from_bits_truncate);
    let ack = prop_oneof![9 => Just(true), 1 => Just(false)];
    let window = prop_oneof![6 => Just(500u16), 1 => Just(0), 1 => any::<u16>()];
    let gap = prop_oneof![20 => Just(0), 1 => 0u64..600].prop_map(Duration::from_secs);
    (any::<bool>(), number, len, flags, ack, window, gap).prop_map(
        |(from_fixed, number, len, flags, ack, window, gap)| Any {
            from_fixed,
            number,
            len,
            flags,
            ack,
            window,
            gap,
        },
    )
}

impl Any {
    fn segment(&self, script: &Script) -> (Side, Seg) {
        let (side, segment) = if self.from_fixed {
            (Side::Fixed, script.fixed(self.number, self.len))
        } else {
            (Side::Mobile, with_payload(script.mobile(self.number), self.len))
        };
        let segment = with_window(with_flags(segment, self.flags), self.window);
        (side, Segment { ack: segment.ack.filter(|_| self.ack), ..segment })
    }
}

fn streams() -> impl Strategy<Value = Vec<Any>> {
    proptest::collection::vec(any_segment(), 0..200)
}

proptest! {
    // `Script::pass` asserts for each segment that it comes out exactly once and unchanged.

    #[test]
    fn connection_control_and_the_mobile_s_data_always_pass(
        threshold in 3u32..20, isn: u32, stream in streams(),
    ) {
        let mut script = Script::blank(threshold, isn);
        for any in stream {
            script.wait(any.gap);
            let (side, segment) = any.segment(&script);
            let control = segment.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST);
            let must_pass = control || segment.payload.0 <= 1 && side == Side::Fixed
                || segment.payload.0 > 0 && side == Side::Mobile || segment.ack.is_none() && side == Side::Mobile;
            let verdict = script.pass(side, segment.clone());
            prop_assert!(!must_pass || verdict == Verdict::Forwarded, "{segment} {verdict:?}");
        }
    }

    #[test]
    fn data_the_mobile_has_not_acknowledged_always_passes(
        threshold in 3u32..20, isn: u32, stream in streams(),
    ) {
        let mut script = Script::blank(threshold, isn);
        // All that the mobile ever acknowledged, in whatever connection.
        let mut acknowledged: Vec<SeqNum> = Vec::new();
        for any in stream {
            let (side, segment) = any.segment(&script);
            if side == Side::Mobile {
                acknowledged.extend(segment.ack);
            }
            let end = segment.seq_end();
            let verdict = script.pass(side, segment.clone());
            if side == Side::Fixed && verdict != Verdict::Forwarded {
                let covered = acknowledged.iter().any(|&ack| end.at_or_before(ack));
                prop_assert!(covered, "{segment} of {} bytes", len(&segment));
            }
        }
    }

    #[test]
    fn at_threshold_three_only_old_acks_and_old_data_are_dropped(isn: u32, stream in streams()) {
        let mut script = Script::blank(3, isn);
        for any in stream {
            let (side, segment) = any.segment(&script);
            script.pass(side, segment);
        }
        prop_assert_eq!(script.counters().acks_duplicate_dropped, 0);
    }

    #[test]
    fn at_threshold_three_a_transfer_without_reordered_acks_is_untouched(
        isn: u32, steps in proptest::collection::vec((0u32..3, 0u32..4), 1..100),
    ) {
        // Packet Control, figure 8. The mobile acknowledges some of the data, with any number of
        // duplicates.
        let mut script = Script::blank(3, isn);
        let (mut sent, mut acked) = (0, 0);
        for (new, duplicates) in steps {
            for _ in 0..3 {
                prop_assert_eq!(script.data(sent, 1000), Verdict::Forwarded);
                sent += 1000;
            }
            acked = sent.min(acked + new * 1000);
            for _ in 0..=duplicates {
                prop_assert_eq!(script.ack(acked), Verdict::Forwarded);
            }
        }
    }

    #[test]
    fn of_n_duplicates_three_nths_are_forwarded(threshold in 3u32..1000, isn: u32, n in 0usize..3000) {
        let forwarded = Script::new(threshold, isn).forwarded_duplicates(1000, n);
        prop_assert_eq!(forwarded.len(), 3 * n / threshold as usize);
        // The sender's third is the base station's R-th.
        prop_assert!(forwarded.get(2).is_none_or(|&third| third == threshold as usize));
    }

    #[test]
    fn verdicts_do_not_depend_on_where_the_sequence_space_starts(
        threshold in 3u32..20, isn: u32, stream in streams(),
    ) {
        let verdicts = |isn| {
            let mut script = Script::blank(threshold, isn);
            let pass = |any: &Any| {
                script.wait(any.gap);
                let (side, segment) = any.segment(&script);
                std::mem::discriminant(&script.pass(side, segment))
            };
            stream.iter().map(pass).collect::<Vec<_>>()
        };
        prop_assert_eq!(verdicts(isn), verdicts(0));
    }

    #[test]
    fn generated_acks_repeat_something_the_mobile_said(
        threshold in 3u32..20, isn: u32, stream in streams(),
    ) {
        let mut script = Script::blank(threshold, isn);
        let (mut acks, mut windows) = (Vec::new(), Vec::new());
        for any in stream {
            let (side, segment) = any.segment(&script);
            if side == Side::Mobile {
                acks.extend(segment.ack);
                windows.push(segment.window);
            }
            if let Verdict::Answered(answer) = script.pass(side, segment) {
                prop_assert!(answer.is_pure_ack());
                prop_assert!(acks.contains(&answer.ack.unwrap()));
                prop_assert!(windows.contains(&answer.window));
            }
        }
    }
}
