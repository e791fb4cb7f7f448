//! Mechanisms with the mistakes that the properties are there to find: the tests of the tests.

use airtcp_core::{Flags, Instant, LinkSignal, Payload, Segment, SeqNum};
use airtcp_edge::{Connection, Context, FlowState, MobilePeer, SegmentCache, Side};

/// Acknowledges what it forwards and keeps no copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct AcknowledgesEarly {
    mobile: Option<MobilePeer>,
    ack_sent: Option<SeqNum>,
}

impl FlowState for AcknowledgesEarly {}

impl<P: Payload> Connection<P> for AcknowledgesEarly {
    type Config = ();
    type Counters = ();
    fn on_segment(
        &mut self,
        _: Instant,
        from: Side,
        segment: Segment<P>,
        cx: &mut Context<'_, P, Self>,
    ) {
        note(&mut self.mobile, from, &segment);
        cx.out.forward(from.opposite(), segment.clone());
        if let (Side::Fixed, Some(mobile)) = (from, &self.mobile)
            && segment.seq.at_or_before(self.ack_sent.unwrap_or(mobile.ack).later(mobile.ack))
            && !segment.payload.is_empty()
        {
            let ack = segment.seq + segment.payload.len() as u32;
            let ack = self.ack_sent.unwrap_or(ack).later(ack).later(mobile.ack);
            self.ack_sent = Some(ack);
            let ack = mobile.acknowledge(segment.flow.reversed(), ack, mobile.window, None);
            cx.out.inject(Side::Fixed, ack);
        }
    }
}

/// Keeps copies while the link is down, acknowledges them, and replays them all: but each one
/// without its first bytes, so many; and perhaps it forgets them at any reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Keeps<P, const SKIPPED: usize, const FORGETS: bool> {
    mobile: Option<MobilePeer>,
    cache: SegmentCache<P>,
    down: bool,
}

/// Replays the wrong bytes.
pub(crate) type Misplaces<P> = Keeps<P, 1, false>;

/// Accepts any reset.
pub(crate) type Gullible<P> = Keeps<P, 0, true>;

impl<P: Payload, const SKIPPED: usize, const FORGETS: bool> FlowState
    for Keeps<P, SKIPPED, FORGETS>
{
    fn is_committed(&self) -> bool {
        !self.cache.is_empty()
    }
    fn held(&self) -> usize {
        self.cache.bytes()
    }
}

impl<P: Payload, const SKIPPED: usize, const FORGETS: bool> Connection<P>
    for Keeps<P, SKIPPED, FORGETS>
{
    type Config = ();
    type Counters = ();
    fn on_segment(
        &mut self,
        _: Instant,
        from: Side,
        segment: Segment<P>,
        cx: &mut Context<'_, P, Self>,
    ) {
        if FORGETS && segment.flags.contains(Flags::RST) {
            self.cache = SegmentCache::default();
            return cx.out.forward(from.opposite(), segment);
        }
        note(&mut self.mobile, from, &segment);
        let Some(mobile) = self.mobile else {
            return cx.out.forward(from.opposite(), segment);
        };
        let end = self.cache.end().unwrap_or(mobile.ack);
        let next = segment.seq == end && !segment.payload.is_empty();
        if from == Side::Fixed && self.down && next && !segment.flags.contains(Flags::FIN) {
            let ack = mobile.acknowledge(segment.flow.reversed(), segment.seq_end(), 0, None);
            cx.out.inject(Side::Fixed, ack);
            cx.out.drop(segment.clone());
            return self.cache.push(segment);
        }
        if from == Side::Mobile {
            self.cache.acknowledge(mobile.ack);
        }
        cx.out.forward(from.opposite(), segment);
    }
    fn on_link(&mut self, _: Instant, signal: LinkSignal, cx: &mut Context<'_, P, Self>) {
        self.down = signal == LinkSignal::Down;
        if signal == LinkSignal::Up {
            for copy in self.cache.iter() {
                let payload = copy.payload.slice(SKIPPED, copy.payload.len() - SKIPPED);
                cx.out.inject(Side::Mobile, Segment { payload, ..copy.clone() });
            }
        }
    }
}

/// Lets nothing to the mobile while the link is down, and trusts that the signal `Up` will come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct WaitsForUp {
    down: bool,
}

impl FlowState for WaitsForUp {}

impl<P: Payload> Connection<P> for WaitsForUp {
    type Config = ();
    type Counters = ();
    fn on_segment(
        &mut self,
        _: Instant,
        from: Side,
        segment: Segment<P>,
        cx: &mut Context<'_, P, Self>,
    ) {
        if self.down && from == Side::Fixed {
            cx.out.drop(segment);
        } else {
            cx.out.forward(from.opposite(), segment);
        }
    }
    fn on_link(&mut self, _: Instant, signal: LinkSignal, _: &mut Context<'_, P, Self>) {
        self.down = signal != LinkSignal::Up;
    }
}

/// Acknowledges the FIN for a mobile that is away, and lets it go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct AcknowledgesFin {
    mobile: Option<MobilePeer>,
    down: bool,
}

impl FlowState for AcknowledgesFin {}

impl<P: Payload> Connection<P> for AcknowledgesFin {
    type Config = ();
    type Counters = ();
    fn on_segment(
        &mut self,
        _: Instant,
        from: Side,
        segment: Segment<P>,
        cx: &mut Context<'_, P, Self>,
    ) {
        note(&mut self.mobile, from, &segment);
        if let (Side::Fixed, Some(mobile)) = (from, &self.mobile)
            && self.down
            && segment.flags.contains(Flags::FIN)
            && segment.seq == mobile.ack
        {
            let ack =
                mobile.acknowledge(segment.flow.reversed(), segment.seq_end(), mobile.window, None);
            cx.out.inject(Side::Fixed, ack);
            return cx.out.drop(segment);
        }
        cx.out.forward(from.opposite(), segment);
    }
    fn on_link(&mut self, _: Instant, signal: LinkSignal, _: &mut Context<'_, P, Self>) {
        self.down = signal == LinkSignal::Down;
    }
}

fn note<P: Payload>(mobile: &mut Option<MobilePeer>, from: Side, segment: &Segment<P>) {
    match (from, mobile) {
        (Side::Mobile, Some(known)) => known.note(segment),
        (Side::Mobile, unknown) => *unknown = MobilePeer::new(segment),
        (Side::Fixed, _) => {}
    }
}
