//! Transfers that arrive, each on a connection of its own: made when it begins, gone when both ends
//! are done with it.
//!
//! The sockets of these connections come after those of the scenario's flows, in pairs, and are
//! used again: there are as many as there were connections at once. Each connection has new ports,
//! so that a late segment of an earlier one finds nobody.

use super::build::EndpointSpec;
use super::components::{ArrivalsId, SocketId};
use super::report::Totals;
use super::{Socket, World};
use crate::addr;
use crate::apps::tally::{Alone, Tally};
use crate::apps::{App, BulkSource, Inbox, Sink};
use crate::scenario::{Arrivals, End, FlowId, FlowSpec, Marks};
use crate::world::Observers;
use airtcp_core::{Bytes, Duration, Instant, Length, SeqNum, Stream};
use airtcp_routing::NodeId;
use airtcp_tcp::congestion::Controls;
use airtcp_tcp::{Endpoint, TcpState};
use std::collections::HashMap;

/// The arriving transfers of one flow.
pub(super) struct ArrivalProcess {
    flow: FlowId,
    from: NodeId,
    to: NodeId,
    marks: Marks,
    sender: EndpointSpec,
    receiver: EndpointSpec,
    spec: Arrivals,
    /// Time of the next arrival.
    next: Instant,
    gaps: Stream,
    sizes: Stream,
    isns: Stream,
    tally: Tally,
    /// What the connections did that are gone.
    past: Totals,
}

impl ArrivalProcess {
    /// The process of flow `flow`, which starts at `start`.
    pub(super) fn new(
        flow: FlowId,
        &FlowSpec { ref name, from, to, marks, .. }: &FlowSpec,
        spec: Arrivals,
        [sender, receiver]: [EndpointSpec; 2],
        start: Instant,
        seed: u64,
        alone: Option<Alone>,
    ) -> Self {
        let stream = |of: &str| Stream::new(seed, &format!("flow/{name}/{of}"));
        let mut process = Self {
            flow,
            from,
            to,
            marks,
            sender,
            receiver,
            spec,
            next: start,
            gaps: stream("arrivals"),
            sizes: stream("sizes"),
            isns: stream("isn"),
            tally: Tally::new(alone),
            past: Totals::default(),
        };
        process.wait();
        process
    }

    /// Draws the time of the next arrival.
    fn wait(&mut self) {
        self.next += Duration::from_secs_f64(self.gaps.exponential(1.0 / self.spec.per_second));
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        Some(self.next).filter(|&next| self.spec.stop.is_none_or(|stop| next < stop))
    }

    /// The nodes at its ends.
    pub(super) fn ends(&self) -> [NodeId; 2] {
        [self.from, self.to]
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Both ends of the connection with this number.
    fn endpoints(&mut self, connection: u32, controls: &Controls) -> [Endpoint<Length>; 2] {
        let Self { from, to, sender, receiver, isns, .. } = self;
        let mut isn = || SeqNum(isns.bits() as u32);
        let tuple = addr::of_flow(connection, *from, *to);
        let mut passive = receiver.endpoint(tuple.reversed(), isn(), controls);
        passive.listen();
        [sender.endpoint(tuple, isn(), controls), passive]
    }
}

/// A transfer whose connection is not gone yet.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    arrivals: ArrivalsId,
    connection: u32,
    number: u64,
    begun: Instant,
    bytes: Bytes,
    is_complete: bool,
}

/// The two sockets of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair(u32);

/// The connections of transfers.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// Number of sockets that belong to flows; those of transfers follow.
    fixed: u32,
    /// Transfers by the number of their pair.
    transfers: Vec<Option<Transfer>>,
    /// Pairs without a transfer.
    free: Vec<Pair>,
    /// The pairs of the connections there are.
    connections: HashMap<u32, Pair>,
    /// Number of the latest connection.
    latest: u32,
}

impl Pool {
    /// No connections yet, beside `sockets` of flows.
    pub(super) fn beside(sockets: usize) -> Self {
        let fixed = sockets as u32;
        // Flow `k` has the sockets 2 k and 2 k + 1, and the ports with number k.
        Self { fixed, latest: fixed / 2, ..Self::default() }
    }

    #[inline]
    fn has(&self, SocketId(socket): SocketId) -> bool {
        socket >= self.fixed
    }

    fn pair_of(&self, SocketId(socket): SocketId) -> Pair {
        Pair((socket - self.fixed) / 2)
    }

    /// The number of the transfer that a socket serves; `None`: it is a flow's own.
    #[inline]
    pub(super) fn transfer_of(&self, socket: SocketId) -> Option<u64> {
        if !self.has(socket) {
            return None;
        }
        let Pair(pair) = self.pair_of(socket);
        self.transfers[pair as usize].map(|transfer| transfer.number)
    }

    fn sender(&self, Pair(pair): Pair) -> SocketId {
        SocketId(self.fixed + 2 * pair)
    }

    fn receiver(&self, Pair(pair): Pair) -> SocketId {
        SocketId(self.fixed + 2 * pair + 1)
    }

    /// The socket with these ports: the number of a flow or a connection, and the end.
    #[inline]
    pub(super) fn socket(&self, number: u32, is_receiver: bool) -> Option<SocketId> {
        if number < self.fixed / 2 {
            let flow = FlowId(number);
            return Some(if is_receiver {
                SocketId::receiver(flow)
            } else {
                SocketId::sender(flow)
            });
        }
        let pair = *self.connections.get(&number)?;
        Some(if is_receiver { self.receiver(pair) } else { self.sender(pair) })
    }

    /// A number that no connection has.
    fn new_number(&mut self) -> u32 {
        loop {
            self.latest = (self.latest + 1) % addr::FLOWS;
            let number = self.latest;
            if number >= self.fixed / 2 && !self.connections.contains_key(&number) {
                return number;
            }
        }
    }
}

impl World {
    #[inline(never)]
    pub(super) fn wake_arrivals(&mut self, id: ArrivalsId) -> Option<Instant> {
        while let Some(next) = self.arrivals[id].next_deadline()
            && next <= self.now
        {
            self.begin_transfer(id);
            self.arrivals[id].wait();
        }
        self.arrivals[id].next_deadline()
    }

    /// A transfer begins: its connection opens now.
    fn begin_transfer(&mut self, id: ArrivalsId) {
        let connection = self.pool.new_number();
        let process = &mut self.arrivals[id];
        let [sender, receiver] = process.endpoints(connection, &self.controls);
        let bytes = process.spec.size.draw(&mut process.sizes);
        let number = process.tally.started();
        process.tally.start();
        let &mut ArrivalProcess { flow, from: node, to: peer, marks, .. } = process;
        let buffer = process.sender.config.send_buffer;
        let ends = [
            Socket {
                endpoint: sender,
                app: App::Source(BulkSource::new(Some(bytes), buffer)),
                open_at: Some(self.now),
                node,
                peer,
                flow,
                is: End::Sender,
                marks,
            },
            Socket {
                endpoint: receiver,
                app: App::Sink(Sink::new(Inbox::default())),
                open_at: None,
                node: peer,
                peer: node,
                flow,
                is: End::Receiver,
                marks,
            },
        ];
        let begun = self.now;
        let transfer =
            Transfer { arrivals: id, connection, number, begun, bytes, is_complete: false };
        let pair = self.place(ends);
        self.pool.transfers[pair.0 as usize] = Some(transfer);
        self.pool.connections.insert(connection, pair);
        self.arm_socket(self.pool.sender(pair));
    }

    /// A pair of sockets for these two.
    fn place(&mut self, ends: [Socket; 2]) -> Pair {
        if let Some(pair) = self.pool.free.pop() {
            let places = [self.pool.sender(pair), self.pool.receiver(pair)];
            places.into_iter().zip(ends).for_each(|(place, end)| self.sockets[place] = end);
            return pair;
        }
        let pair = Pair(self.pool.transfers.len() as u32);
        self.pool.transfers.push(None);
        for end in ends {
            let socket = self.sockets.push(end);
            self.components.add_socket(socket);
        }
        self.wakeups.reserve(self.components.len());
        pair
    }

    /// A socket was called: if it serves a transfer, that may be complete, and the connection over.
    #[inline]
    pub(super) fn check_transfer(&mut self, socket: SocketId, observers: &mut Observers<'_>) {
        if self.pool.has(socket) {
            self.check_transfer_of(self.pool.pair_of(socket), observers);
        }
    }

    #[inline(never)]
    fn check_transfer_of(&mut self, pair: Pair, observers: &mut Observers<'_>) {
        let ends = [self.pool.sender(pair), self.pool.receiver(pair)];
        let Some(transfer) = &mut self.pool.transfers[pair.0 as usize] else { return };
        let Transfer { arrivals, connection, number, begun, bytes, .. } = *transfer;
        let process = &mut self.arrivals[arrivals];
        let is_complete = &mut transfer.is_complete;
        let [sender, receiver] = ends.map(|id| &self.sockets[id]);
        if !*is_complete && receiver.endpoint.stats().bytes_delivered >= bytes.get() {
            *is_complete = true;
            let took = self.now.since(begun);
            let mut events = observers.events(receiver.source(Some(number)));
            process.tally.complete(self.now, number, bytes, took, &mut events);
        }
        let aborted = [sender, receiver].iter().any(|end| end.endpoint.aborted().is_some());
        let is_over = aborted || (is_over(sender) && is_over(receiver));
        if !is_over {
            return;
        }
        if !*is_complete {
            process.tally.abort();
        }
        process.past.add(&sender.endpoint, &receiver.endpoint, self.now);
        self.pool.transfers[pair.0 as usize] = None;
        self.pool.connections.remove(&connection);
        self.pool.free.push(pair);
    }

    /// What all connections of a flow did so far.
    pub(super) fn totals(&self, id: ArrivalsId) -> Totals {
        let mut totals = self.arrivals[id].past.clone();
        for (pair, transfer) in (0..).map(Pair).zip(&self.pool.transfers) {
            if transfer.is_some_and(|transfer| transfer.arrivals == id) {
                let [sender, receiver] = [self.pool.sender(pair), self.pool.receiver(pair)]
                    .map(|id| &self.sockets[id].endpoint);
                totals.add(sender, receiver, self.now);
            }
        }
        totals
    }
}

/// The end has sent and received all, and nothing more depends on it: whoever is in TIME-WAIT
/// answers only a repeated FIN, which an end that is closed does not send.
fn is_over(end: &Socket) -> bool {
    let was_opened = end.open_at.is_none();
    was_opened && matches!(end.endpoint.state(), TcpState::Closed | TcpState::TimeWait)
}
