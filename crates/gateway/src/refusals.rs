//! Connections that an earlier process held, and that this one cannot go on with: both hosts are
//! reset, so that neither waits for ever.
//!
//! Read first: RFC 5961 §3.2 (resets), RFC 9293 §3.10.7.4 (what is not acceptable is answered).
//!
//! A host believes a reset only at exactly the next number. Where that seems to be known the reset
//! is sent at once; but what the mobile said last may have been lost. So the hosts are asked as
//! well, with a segment that nobody can accept, and their answer says the number: whatever they
//! send is dropped and answered with the reset that fits. Both are repeated, since the mobile is
//! away, until each host was answered or has reset the connection itself, or they have opened
//! another by the same ports.

use crate::packets::SharedBytes;
use airtcp_core::{Duration, Flags, Flow, Instant, Segment, SeqNum};
use airtcp_edge::TURN;
use airtcp_edge::{MobileId, Side};
use std::collections::{BTreeMap, BTreeSet};

/// From the first to the second time; then the pause doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The connections that are being reset.
#[derive(Debug, Default)]
pub struct Refusals {
    /// By the flow from the fixed to the mobile host.
    known: BTreeMap<Flow, Refusal>,
    due: BTreeSet<(Instant, Flow)>,
}

#[derive(Debug)]
struct Refusal {
    /// For the fixed and the mobile host, as far as is known.
    resets: Option<[Segment<SharedBytes>; 2]>,
    /// These hosts were answered, or need no answer.
    is_reset: [bool; 2],
    pause: Duration,
    /// Time to give up.
    until: Instant,
}

/// A segment to send.
pub type Injection = (Side, Segment<SharedBytes>);

const SIDES: [Side; 2] = [Side::Fixed, Side::Mobile];

impl Refusals {
    /// Resets a connection from now on, for `patience` at most.
    pub fn add(
        &mut self,
        now: Instant,
        flow: Flow,
        resets: Option<[Segment<SharedBytes>; 2]>,
        patience: Duration,
    ) {
        let (pause, until) = (FIRST_PAUSE, now + patience);
        self.known.insert(flow, Refusal { resets, is_reset: [false; 2], pause, until });
        self.due.insert((now, flow));
    }

    /// A segment of a connection with this flow from the fixed to the mobile host. `None`: it is of
    /// none that is being reset, or may go on; otherwise it must not, and is answered so.
    pub fn on_segment(
        &mut self,
        flow: &Flow,
        from: Side,
        segment: &Segment<SharedBytes>,
    ) -> Option<Injection> {
        let refusal = self.known.get_mut(flow)?;
        let (opens, resets) =
            (segment.flags.contains(Flags::SYN), segment.flags.contains(Flags::RST));
        if opens || resets {
            // A SYN that is answered opens another connection. A reset may not reach the other
            // host.
            if opens && segment.ack.is_some() {
                refusal.is_reset = [true; 2];
            }
            refusal.is_reset[from as usize] |= resets;
            return None;
        }
        refusal.is_reset[from as usize] = true;
        let flow = segment.flow.reversed();
        let (seq, ack) = match segment.ack {
            Some(ack) => (ack, None),
            None => (SeqNum(0), Some(segment.seq_end())),
        };
        Some((from, Segment { flow, seq, ack, flags: Flags::RST, ..Segment::default() }))
    }

    /// The segments that are due, as many as one turn allows. Connections that are done with are
    /// appended to `over`.
    pub fn on_timer(&mut self, now: Instant, over: &mut Vec<Flow>) -> Vec<Injection> {
        let mut out = Vec::new();
        while out.len() + over.len() < TURN
            && let Some(&(due, flow)) = self.due.first()
            && due <= now
        {
            self.due.pop_first();
            let Some(refusal) = self.known.get_mut(&flow) else { continue };
            if refusal.is_reset == [true; 2] || refusal.until <= now {
                self.known.remove(&flow);
                over.push(flow);
                continue;
            }
            for side in SIDES.into_iter().filter(|&side| !refusal.is_reset[side as usize]) {
                let reset = refusal.resets.as_ref().map(|resets| resets[side as usize].clone());
                out.extend(reset.map(|reset| (side, reset)));
                out.push((side, question(flow, side, refusal.pause)));
            }
            self.due.insert((now + refusal.pause, flow));
            refusal.pause = (refusal.pause * 2).min(LONGEST_PAUSE);
        }
        out
    }

    /// Time of the next call of [`Refusals::on_timer`].
    pub fn next_deadline(&self) -> Option<Instant> {
        self.due.first().map(|&(due, _)| due)
    }

    /// Connections of this mobile, or that may cross this uplink, are being reset.
    pub fn concern(&self, mobile: MobileId) -> bool {
        match mobile {
            MobileId::Host(ip) => self.known.keys().any(|flow| flow.dst.ip == ip),
            MobileId::Uplink(_) => !self.known.is_empty(),
        }
    }

    /// No connection is being reset.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

/// A segment outside of any window, or else in it the next time.
fn question(flow: Flow, to: Side, pause: Duration) -> Segment<SharedBytes> {
    let number = SeqNum((pause.as_nanos() as u32).wrapping_mul(0x9e37_79b9));
    let flow = to.opposite().to_mobile(flow);
    Segment { flow, seq: number, ack: Some(number), ..Segment::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Addr;

    fn s(n: u64) -> Instant {
        Instant::from_secs(n)
    }

    fn flow() -> Flow {
        let addr = |last, port| Addr::new(std::net::Ipv4Addr::new(10, 0, 0, last).into(), port);
        Flow { src: addr(1, 80), dst: addr(7, 5001) }
    }

    fn segment(from: Side, seq: u32, ack: u32) -> Segment<SharedBytes> {
        let flow = from.to_mobile(flow());
        Segment { flow, seq: SeqNum(seq), ack: Some(SeqNum(ack)), ..Segment::default() }
    }

    fn reset(to: Side, seq: u32) -> Segment<SharedBytes> {
        Segment { flags: Flags::RST, ..segment(to.opposite(), seq, 1) }
    }

    fn refusals(resets: Option<[Segment<SharedBytes>; 2]>) -> Refusals {
        let mut refusals = Refusals::default();
        refusals.add(s(0), flow(), resets, Duration::from_secs(1000));
        refusals
    }

    /// The sides that are sent something, at each time there is something to do up to `end`.
    fn sent(refusals: &mut Refusals, end: Instant) -> Vec<(u64, Vec<Side>)> {
        let mut all = Vec::new();
        while let Some(due) = refusals.next_deadline().filter(|&due| due <= end) {
            let out = refusals.on_timer(due, &mut Vec::new());
            let sides = out.into_iter().map(|(side, _)| side).collect();
            all.push((due.since_start().as_millis() / 1000, sides));
        }
        all
    }

    #[test]
    fn known_resets_are_sent_at_once() {
        let resets = [reset(Side::Fixed, 8), reset(Side::Mobile, 9)];
        let mut refusals = refusals(Some(resets.clone()));
        let [fixed, mobile] = resets;
        let out = refusals.on_timer(s(0), &mut Vec::new());
        assert_eq!([&out[0], &out[2]], [&(Side::Fixed, fixed), &(Side::Mobile, mobile)]);
        assert_eq!(out.len(), 4, "and a question each");
    }

    #[test]
    fn without_known_numbers_both_hosts_are_asked() {
        let mut refusals = refusals(None);
        let mut out = refusals.on_timer(s(0), &mut Vec::new());
        out.extend(refusals.on_timer(s(1), &mut Vec::new()));
        let to_fixed: Vec<_> = out.iter().filter(|(to, _)| *to == Side::Fixed).collect();
        let to_mobile: Vec<_> = out.iter().filter(|(to, _)| *to == Side::Mobile).collect();
        assert!(to_fixed.iter().all(|(_, s)| s.flow == flow().reversed() && s.flags.is_empty()));
        assert!(to_mobile.iter().all(|(_, s)| s.flow == flow() && s.ack.is_some()));
        assert_ne!(to_mobile[0].1.seq, to_mobile[1].1.seq, "the first may have been in the window");
    }

    // RFC 9293 §3.10.7.1.
    #[test]
    fn what_a_host_sends_is_answered_with_the_reset_that_fits() {
        let mut refusals = refusals(None);
        let (to, answer) =
            refusals.on_segment(&flow(), Side::Fixed, &segment(Side::Fixed, 5, 77)).unwrap();
        assert_eq!((to, answer.seq, answer.flags), (Side::Fixed, SeqNum(77), Flags::RST));
        assert_eq!(answer.flow, flow().reversed());
    }

    #[test]
    fn a_host_that_was_answered_is_asked_no_more_and_the_other_ever_less_often() {
        let mut refusals = refusals(None);
        refusals.on_segment(&flow(), Side::Fixed, &segment(Side::Fixed, 5, 77));
        let mobile = || vec![Side::Mobile];
        let times = [0, 1, 3, 7, 15, 31, 63, 123, 183].map(|at| (at, mobile()));
        assert_eq!(sent(&mut refusals, s(200)), times);
        refusals.on_segment(&flow(), Side::Mobile, &segment(Side::Mobile, 5, 77));
        assert_eq!(sent(&mut refusals, s(500)), [(243, vec![])]);
        assert!(refusals.is_empty());
    }

    #[test]
    fn it_ends_with_patience() {
        let (mut refusals, mut over) = (refusals(None), Vec::new());
        assert!(refusals.concern(MobileId::Host(flow().dst.ip)));
        refusals.on_timer(s(1000), &mut over);
        assert_eq!((over, refusals.next_deadline()), (vec![flow()], None));
        assert!(!refusals.concern(MobileId::Host(flow().dst.ip)));
    }

    #[test]
    fn a_new_connection_of_the_same_ports_ends_it() {
        let (mut refusals, mut over) = (refusals(None), Vec::new());
        let second = Segment { flags: Flags::SYN, ..segment(Side::Fixed, 5, 77) };
        let first = Segment { ack: None, ..second.clone() };
        assert_eq!(refusals.on_segment(&flow(), Side::Fixed, &first), None, "anybody's SYN");
        assert_eq!(refusals.on_timer(s(0), &mut over).len(), 2);
        assert_eq!(refusals.on_segment(&flow(), Side::Fixed, &second), None);
        assert_eq!((refusals.on_timer(s(1), &mut over), over), (vec![], vec![flow()]));
    }

    #[test]
    fn a_host_that_resets_the_connection_itself_is_left_alone_and_the_other_is_not() {
        let mut refusals = refusals(None);
        let reset = Segment { flags: Flags::RST, ..segment(Side::Fixed, 5, 77) };
        assert_eq!(refusals.on_segment(&flow(), Side::Fixed, &reset), None);
        assert_eq!(sent(&mut refusals, s(0)), [(0, vec![Side::Mobile])]);
    }
}
