//! Split TCP, as in I-TCP (Bakre and Badrinath, ICDCS 1995): the node at the wireless edge ends the
//! connection of the host that opens one, and opens another of its own to the other host. Read
//! first: RFC 3135 §2.4 (split connections), §3.1.2 (local acknowledgements), and §4.1.2 and §4.1.3
//! (what they break: fate sharing and end-to-end reliability).
//!
//! A connection has two [`Half`]s, one towards each host, which are endpoints of `airtcp-tcp` with
//! the address of the other host. What a half receives in order, the other sends; so each host
//! gets acknowledgements, retransmissions and windows from the node. Bytes stay in the receive
//! buffer of the half that took them until the other half's host has acknowledged them. So that
//! buffer bounds what the node holds, and its free room is the window that the node advertises.
//!
//! The endpoint makes it a mechanism of the simulator: `airtcp-edge`, which gateways run, does not
//! depend on `airtcp-tcp`. A live gateway should not do this anyway: if it dies, bytes that it has
//! acknowledged are gone.
//!
//! Decisions, where the paper is silent or its node is not transparent:
//! - The paper's mobile asks its node to connect; here the node takes the addresses of both hosts
//!   (RFC 3135 §2.5), and no host knows of it.
//! - A SYN is answered at once, before the other host has been asked. If that one refuses or is
//!   out of reach, the host that opened the connection gets a RST.
//! - A FIN follows the data before it. So does the RST that stands for a host that has gone, as far
//!   as the other one takes the data: it was acknowledged.
//! - Segments of unknown connections pass.

#[cfg(test)]
mod tests;

use super::build::EndpointSpec;
use airtcp_core::{
    Events, Flags, Flow, Instant, Length, LinkSignal, Segment, SeqNum, Stream, counters,
};
use airtcp_edge::{Actions, Middlebox, MobileId, Side};
use airtcp_tcp::congestion::Controls;
use airtcp_tcp::{Endpoint, Io, TcpState};
use std::collections::{BTreeMap, BTreeSet};

counters! {
    /// Counters of split TCP since the start.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SplitCounters {
        /// Connections split.
        pub connections: u64,
        /// Bytes taken from one host for the other, in order; they are acknowledged at once, or
        /// with the next delayed ACK.
        pub bytes_taken: u64,
        /// Those of them that the other host has not acknowledged yet.
        pub bytes_held: u64,
        /// The most bytes held at one time, for all connections.
        pub most_bytes_held: u64,
        /// Bytes taken that never reached the other host: it refused the connection, reset it, or
        /// did not answer for too long.
        pub bytes_lost: u64,
        /// Segments that the node sent again.
        pub retransmissions: u64,
        /// Expiries of the node's retransmission timers.
        pub timeouts: u64,
    }
}

/// One end of the node, towards one of the hosts.
struct Half {
    endpoint: Endpoint<Length>,
    /// Bytes of the other half that were handed to this one.
    sent_on: u64,
    /// Those of them that its host has acknowledged, and the other half has let go.
    let_go: u64,
}

impl Half {
    fn new(endpoint: Endpoint<Length>) -> Self {
        Self { endpoint, sent_on: 0, let_go: 0 }
    }

    /// The host has sent its FIN and everything before it.
    fn is_ended(&self) -> bool {
        use TcpState::{CloseWait, Closing, LastAck, TimeWait};
        matches!(self.endpoint.state(), CloseWait | Closing | LastAck | TimeWait)
    }

    /// The handshake is over, and our FIN can follow.
    fn may_close(&self) -> bool {
        matches!(self.endpoint.state(), TcpState::Established | TcpState::CloseWait)
    }

    fn is_gone(&self) -> bool {
        self.endpoint.state() == TcpState::Closed
    }
}

/// Hands `to` what `from` has received, lets go of what the host of `to` has acknowledged, and
/// passes on the end of the stream.
fn relay(now: Instant, from: &mut Half, to: &mut Half, io: &mut Io<'_, Length>) {
    let acknowledged = to.endpoint.stats().bytes_acked - to.let_go;
    to.let_go += acknowledged;
    from.endpoint.read(now, acknowledged as usize, io);

    let received = from.endpoint.stats().bytes_delivered;
    to.sent_on += to.endpoint.write(now, &Length(received - to.sent_on), io) as u64;

    let all_sent = to.sent_on == received;
    if from.is_ended() && all_sent && to.may_close() {
        to.endpoint.close(now, io);
    }
    if from.endpoint.aborted().is_some() && to.endpoint.is_all_acked() {
        to.endpoint.abort(now, io);
    }
}

/// A connection between two hosts, split.
struct Connection {
    /// Towards the fixed host.
    fixed: Half,
    /// Towards the mobile.
    mobile: Half,
    /// The wake-up entered for it.
    armed: Option<Instant>,
}

impl Connection {
    /// The halves of a connection with this flow to the mobile, both closed.
    fn new(flow: Flow, spec: &EndpointSpec, controls: &Controls, isns: [SeqNum; 2]) -> Self {
        let half = |flow, isn| Half::new(spec.endpoint(flow, isn, controls));
        let [fixed, mobile] = isns;
        Self { fixed: half(flow.reversed(), fixed), mobile: half(flow, mobile), armed: None }
    }

    /// The half towards this side, and the other.
    fn halves(&mut self, side: Side) -> (&mut Half, &mut Half) {
        match side {
            Side::Fixed => (&mut self.fixed, &mut self.mobile),
            Side::Mobile => (&mut self.mobile, &mut self.fixed),
        }
    }

    /// The host on this side opens it.
    fn open(&mut self, now: Instant, by: Side, io: &mut Io<'_, Length>) {
        let (near, far) = self.halves(by);
        near.endpoint.listen();
        far.endpoint.connect(now, io);
    }

    fn on_segment(
        &mut self,
        now: Instant,
        from: Side,
        segment: Segment<Length>,
        io: &mut Io<'_, Length>,
    ) {
        self.halves(from).0.endpoint.on_segment(now, segment, io);
        self.relay(now, io);
        self.halves(from).0.endpoint.reply(now, io);
    }

    fn on_timer(&mut self, now: Instant, io: &mut Io<'_, Length>) {
        for half in [&mut self.fixed, &mut self.mobile] {
            half.endpoint.on_timer(now, io);
        }
        self.relay(now, io);
    }

    fn relay(&mut self, now: Instant, io: &mut Io<'_, Length>) {
        relay(now, &mut self.fixed, &mut self.mobile, io);
        relay(now, &mut self.mobile, &mut self.fixed, io);
    }

    fn next_deadline(&self) -> Option<Instant> {
        [&self.fixed, &self.mobile].iter().filter_map(|half| half.endpoint.next_deadline()).min()
    }

    /// Bytes taken from one host that the other has not acknowledged.
    fn held(&self) -> u64 {
        (self.fixed.endpoint.readable() + self.mobile.endpoint.readable()) as u64
    }

    fn is_over(&self) -> bool {
        self.fixed.is_gone() && self.mobile.is_gone()
    }

    /// Adds what it has done.
    fn count(&self, counters: &mut SplitCounters) {
        for half in [&self.fixed, &self.mobile] {
            let stats = half.endpoint.stats();
            counters.bytes_taken += stats.bytes_delivered;
            counters.retransmissions += stats.segments_retransmitted;
            counters.timeouts += stats.timeouts;
        }
    }
}

/// Split TCP for all connections of a node.
pub(super) struct Split {
    spec: EndpointSpec,
    controls: Controls,
    /// Initial sequence numbers.
    isns: Stream,
    /// By the flow from the fixed host to the mobile.
    connections: BTreeMap<Flow, Connection>,
    /// Wake-ups, no later than due.
    deadlines: BTreeSet<(Instant, Flow)>,
    /// Bytes held now.
    held: u64,
    /// What the connections did that are over, and the most bytes held.
    past: SplitCounters,
    /// Segments sent by the endpoints being called; empty between calls.
    outbox: Vec<Segment<Length>>,
}

impl Split {
    /// Without connections. Both halves of each work by `spec`.
    pub(super) fn new(spec: EndpointSpec, controls: Controls, isns: Stream) -> Self {
        Self {
            spec,
            controls,
            isns,
            connections: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            held: 0,
            past: SplitCounters::default(),
            outbox: Vec::new(),
        }
    }

    /// Counters since the start.
    pub(super) fn counters(&self) -> SplitCounters {
        let mut counters = SplitCounters { bytes_held: self.held, ..self.past };
        self.connections.values().for_each(|connection| connection.count(&mut counters));
        counters
    }

    /// Adds a connection.
    fn begin(&mut self, flow: Flow) {
        let mut isn = || SeqNum(self.isns.bits() as u32);
        let isns = [isn(), isn()];
        let connection = Connection::new(flow, &self.spec, &self.controls, isns);
        self.connections.insert(flow, connection);
        self.past.connections += 1;
    }

    /// Calls a connection, and asks the driver to send what it says.
    fn call(
        &mut self,
        flow: Flow,
        out: &mut Actions<Length>,
        action: impl FnOnce(&mut Connection, &mut Io<'_, Length>),
    ) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        let before = connection.held();
        action(connection, &mut Io { out: &mut self.outbox, events: Events::none() });
        self.held = self.held + connection.held() - before;
        self.past.most_bytes_held = self.past.most_bytes_held.max(self.held);
        for segment in self.outbox.drain(..) {
            let to = if segment.flow == flow { Side::Mobile } else { Side::Fixed };
            out.inject(to, segment);
        }
        if connection.is_over() {
            let lost = connection.held();
            connection.count(&mut self.past);
            self.held -= lost;
            self.past.bytes_lost += lost;
            self.disarm(flow);
            self.connections.remove(&flow);
        } else {
            self.arm(flow);
        }
    }

    /// Sees to it that a connection wakes up when it must.
    fn arm(&mut self, flow: Flow) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        let Some(due) = connection.next_deadline() else { return };
        if connection.armed.is_none_or(|armed| due < armed) {
            if let Some(armed) = connection.armed.replace(due) {
                self.deadlines.remove(&(armed, flow));
            }
            self.deadlines.insert((due, flow));
        }
    }

    fn disarm(&mut self, flow: Flow) {
        let armed = self.connections.get_mut(&flow).and_then(|it| it.armed.take());
        if let Some(armed) = armed {
            self.deadlines.remove(&(armed, flow));
        }
    }
}

impl Middlebox<Length> for Split {
    fn on_segment(
        &mut self,
        now: Instant,
        from: Side,
        segment: Segment<Length>,
        out: &mut Actions<Length>,
    ) {
        let flow = from.to_mobile(segment.flow);
        let is_new = !self.connections.contains_key(&flow);
        if is_new {
            let is_syn = segment.flags.contains(Flags::SYN) && segment.ack.is_none();
            if !is_syn || segment.flags.contains(Flags::RST) {
                return out.forward(from.opposite(), segment);
            }
            self.begin(flow);
        }
        self.call(flow, out, |connection, io| {
            if is_new {
                connection.open(now, from, io);
            }
            connection.on_segment(now, from, segment, io);
        });
    }

    /// The paper's node knows nothing of the link.
    fn on_link(&mut self, _: Instant, _: MobileId, _: LinkSignal, _: &mut Actions<Length>) {}

    fn on_timer(&mut self, now: Instant, out: &mut Actions<Length>) {
        while let Some(&(due, flow)) = self.deadlines.first()
            && due <= now
        {
            self.disarm(flow);
            self.call(flow, out, |connection, io| connection.on_timer(now, io));
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(due, _)| due)
    }
}
