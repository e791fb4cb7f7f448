//! A mechanism under watch: what is asserted of every segment that it handles.

use airtcp_core::{Instant, LinkSignal, Segment};
use airtcp_edge::{Actions, Middlebox, MobileId, Side};

/// What is asserted of a mechanism.
pub(crate) trait Check<M> {
    /// A segment comes; `handle` gives it to the node.
    fn around(
        &mut self,
        node: &mut M,
        from: Side,
        segment: Segment<Vec<u8>>,
        handle: impl FnOnce(&mut M, Segment<Vec<u8>>),
    );
}

/// The mechanism, which panics when the check fails.
#[derive(Clone)]
pub(crate) struct Watched<M, C> {
    pub(crate) node: M,
    pub(crate) check: C,
}

impl<M: Middlebox<Vec<u8>>, C: Check<M>> Middlebox<Vec<u8>> for Watched<M, C> {
    fn on_segment(
        &mut self,
        now: Instant,
        from: Side,
        segment: Segment<Vec<u8>>,
        out: &mut Actions<Vec<u8>>,
    ) {
        let handle = |node: &mut M, segment| node.on_segment(now, from, segment, out);
        self.check.around(&mut self.node, from, segment, handle);
    }

    fn on_link(
        &mut self,
        now: Instant,
        mobile: MobileId,
        signal: LinkSignal,
        out: &mut Actions<Vec<u8>>,
    ) {
        self.node.on_link(now, mobile, signal, out);
    }

    fn on_timer(&mut self, now: Instant, out: &mut Actions<Vec<u8>>) {
        self.node.on_timer(now, out);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.node.next_deadline()
    }
}
