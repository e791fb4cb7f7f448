//! The mechanisms under test, and the plain forwarder they are compared with.

use airtcp_core::{Bytes, Duration, Instant, Payload, Segment};
use airtcp_edge::{
    Acknowledge, Connection, Context, Detect, FlowState, Holdover, HoldoverConfig, MTcp,
    MTcpConfig, MTcpPlus, MTcpPlusConfig, Open, PerConnection, Resume, Retransmit, Side, Snoop,
    SnoopConfig, Wake, WakeConfig,
};

/// A mechanism's guarantee about the acknowledgements that the fixed host sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// The mobile has given them all. A crash of the node loses nothing.
    EndToEnd,
    /// As [`EndToEnd`](Self::EndToEnd), of a mechanism that tells no segment from another: it may
    /// repeat whatever it was handed, as any network may.
    Repeats,
    /// The node can deliver by itself all that the mobile has not acknowledged; a FIN never comes
    /// from the node.
    Custody,
}

/// Bounds of what a mechanism may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For each connection, in bytes.
    pub(crate) fifo: u64,
    /// For all connections together, in bytes.
    pub(crate) memory: u64,
    /// The longest absence of a mobile.
    pub(crate) max_down: Option<Duration>,
    /// Interval of keep-alive probes to a mobile whose link is down.
    pub(crate) probe_interval: Option<Duration>,
}

/// Forwards everything, unchanged.
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
}

/// A mechanism without settings of its own.
pub(crate) fn simple<C>(limits: Limits) -> PerConnection<Vec<u8>, C>
where
    C: Connection<Vec<u8>, Config = ()>,
{
    PerConnection::new((), Default::default(), limits.memory)
}

pub(crate) fn m_tcp(limits: Limits) -> MTcp<Vec<u8>> {
    let config =
        MTcpConfig { fifo: Bytes(limits.fifo), max_down: limits.max_down, ..MTcpConfig::default() };
    PerConnection::new(config, Default::default(), limits.memory)
}

/// M-TCP that retransmits the whole queue each time.
pub(crate) fn m_tcp_all(limits: Limits) -> MTcp<Vec<u8>> {
    let fifo = Bytes(limits.fifo);
    let config = MTcpConfig { fifo, retransmit: Retransmit::All, ..MTcpConfig::default() };
    PerConnection::new(config, Default::default(), limits.memory)
}

/// M-TCP that listens to the link's signals.
pub(crate) fn m_tcp_by_signal(limits: Limits) -> MTcp<Vec<u8>> {
    let detect = Detect::Signal;
    let config = MTcpConfig { detect, max_down: limits.max_down, ..MTcpConfig::default() };
    PerConnection::new(config, Default::default(), limits.memory)
}

pub(crate) fn snoop(limits: Limits) -> Snoop<Vec<u8>> {
    let config = SnoopConfig { fifo: Bytes(limits.fifo), ..SnoopConfig::default() };
    PerConnection::new(config, Default::default(), limits.memory)
}

pub(crate) fn m_tcp_plus(limits: Limits, resume: Resume) -> MTcpPlus<Vec<u8>> {
    m_tcp_plus_that(limits, resume, Acknowledge::AtOnce, Open::AtOnce)
}

/// As the gateway's defaults are.
pub(crate) fn m_tcp_plus_in_time(limits: Limits, resume: Resume) -> MTcpPlus<Vec<u8>> {
    m_tcp_plus_that(limits, resume, Acknowledge::IN_TIME, Open::InSteps)
}

fn m_tcp_plus_that(
    limits: Limits,
    resume: Resume,
    acknowledge: Acknowledge,
    open: Open,
) -> MTcpPlus<Vec<u8>> {
    let config = MTcpPlusConfig {
        fifo: Bytes(limits.fifo),
        resume,
        max_down: limits.max_down,
        probe_interval: limits.probe_interval,
        acknowledge,
        open,
    };
    PerConnection::new(config, Default::default(), limits.memory)
}

pub(crate) fn holdover(limits: Limits) -> Holdover<Vec<u8>> {
    let config = HoldoverConfig {
        fifo: Bytes(limits.fifo),
        max_down: limits.max_down,
        probe_interval: limits.probe_interval,
    };
    PerConnection::new(config, Default::default(), limits.memory)
}

pub(crate) fn wake(_: Limits) -> Wake<Segment<Vec<u8>>> {
    Wake::new(WakeConfig::default(), Default::default())
}
