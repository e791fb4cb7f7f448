//! The mechanisms under test, and the plain forwarder they are compared with.

use airtcp_core::{Instant, LinkSignal, Payload, Segment};
use airtcp_edge::{Connection, Context, FlowState, PerConnection, Side};

/// What a mechanism promises about the acknowledgements that the fixed host sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// The mobile has given them all. A crash of the node loses nothing.
    EndToEnd,
    /// What the mobile has not acknowledged the node can deliver by itself; a FIN never comes from the node.
    Custody,
}

/// Bounds of what a mechanism may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For each connection, in bytes.
    pub(crate) fifo: u64,
    /// For all connections together, in bytes.
    pub(crate) memory: u64,
}

/// Forwards everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Plain;

impl FlowState for Plain {}

impl<P: Payload> Connection<P> for Plain {
    type Config = ();
    type Counters = ();
    fn on_segment(
        &mut self,
        _: Instant,
        from: Side,
        segment: Segment<P>,
        cx: &mut Context<'_, P, Self>,
    ) {
        cx.out.forward(from.opposite(), segment);
    }
    fn on_link(&mut self, _: Instant, _: LinkSignal, _: &mut Context<'_, P, Self>) {}
    fn on_timer(&mut self, _: Instant, _: &mut Context<'_, P, Self>) {}
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// A mechanism without settings of its own.
pub(crate) fn simple<C>(limits: Limits) -> PerConnection<Vec<u8>, C>
where
    C: Connection<Vec<u8>, Config = ()>,
{
    PerConnection::new((), Default::default(), limits.memory)
}
