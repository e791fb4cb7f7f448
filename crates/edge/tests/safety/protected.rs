//! Wake, and what it must not forget: a flow whose sender has something outstanding.

use crate::case::{Case, case_with_forger};
use crate::subjects::{Promise, wake};
use crate::watched::{Check, Watched};
use crate::world::run;
use airtcp_core::{Flags, Segment, SeqNum};
use airtcp_edge::{Side, Wake};
use proptest::prelude::*;
use proptest::test_runner::Config;

/// More than a host sends in a case, and less than a forger is off ([`crate::case::forgery`]).
const NEAR: u32 = 1 << 20;

/// Panics when the flow of the only connection is forgotten while the fixed host has something
/// outstanding. It knows which segments are forged: wake does not.
#[derive(Clone, Default)]
struct Protected {
    /// The end of what the fixed and the mobile host have sent.
    ends: [Option<SeqNum>; 2],
    /// The end of what the fixed host has sent that asks for an answer, and is no SYN.
    sent: Option<SeqNum>,
    acked: Option<SeqNum>,
    is_reset: bool,
}

impl Protected {
    fn is_genuine(&self, from: usize, segment: &Segment<Vec<u8>>) -> bool {
        let is_near = |number: SeqNum, end: Option<SeqNum>| {
            end.is_some_and(|end| number.offset_from(end).unsigned_abs() < NEAR)
        };
        if segment.flags.contains(Flags::SYN) {
            return self.ends[from].is_none();
        }
        is_near(segment.seq, self.ends[from])
            && segment.ack.is_none_or(|ack| is_near(ack, self.ends[1 - from]))
    }

    fn note(&mut self, from: usize, segment: &Segment<Vec<u8>>) {
        let end = segment.seq_end();
        if segment.flags.contains(Flags::RST) {
            // Forged ones lie beyond.
            self.is_reset |= self.ends[from].is_some_and(|known| end.at_or_before(known));
            return;
        }
        let later = |known: Option<SeqNum>| Some(known.map_or(end, |known| known.later(end)));
        self.ends[from] = later(self.ends[from]);
        if from == 1 {
            self.acked = segment.ack.map(|ack| self.acked.map_or(ack, |known| known.later(ack)));
        } else if segment.seq_len() > 0 && !segment.flags.contains(Flags::SYN) {
            self.sent = later(self.sent);
        }
    }

    fn is_outstanding(&self) -> bool {
        !self.is_reset
            && self.sent.is_some_and(|sent| self.acked.is_none_or(|acked| sent.after(acked)))
    }
}

impl Check<Wake<Segment<Vec<u8>>>> for Protected {
    fn around(
        &mut self,
        node: &mut Wake<Segment<Vec<u8>>>,
        from: Side,
        segment: Segment<Vec<u8>>,
        handle: impl FnOnce(&mut Wake<Segment<Vec<u8>>>, Segment<Vec<u8>>),
    ) {
        let host = usize::from(from == Side::Mobile);
        if self.is_genuine(host, &segment) {
            self.note(host, &segment);
        }
        let shown = segment.to_string();
        handle(node, segment);
        assert!(!self.is_outstanding() || node.flows() == 1, "{shown} from {from:?}");
    }
}

proptest! {
    #![proptest_config(Config::with_cases(1_500))]

    /// RFC 5961, and RFC 9293 §3.6.
    #[test]
    fn wake_forgets_no_flow_with_anything_outstanding_whatever_is_forged(
        case in case_with_forger(),
    ) {
        let case = Case { crash: None, ..case };
        let node = Watched { node: wake(case.limits), check: Protected::default() };
        run(&case, node, Promise::Repeats).map_err(TestCaseError::fail)?;
    }
}
