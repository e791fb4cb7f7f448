//! Packets that pass through a node without a wake-up.
//!
//! If a link gets all its packets from one other link, and that one keeps their order, the outcome
//! at the node between them is known as soon as the first link accepts a packet. Whatever else
//! happens until the packet arrives, the second link accepts or refuses it at that instant. So the
//! packet is offered to the second link at once, with its arrival time. Not to a link that decides
//! on packets when their services start: its place among simultaneous wake-ups depends on what has
//! come to it until then.
//!
//! If a link gets all its packets from several such links, they must be offered to it in the order
//! of their arrivals. They wait for each other in a [`Junction`]. Nothing that is still to be sent
//! arrives sooner than the fastest of these links can carry it: the *lookahead* of conservative
//! parallel simulation (Chandy and Misra, CACM 24(4), 1981). So one wake-up serves all packets that
//! arrive within the lookahead.
//!
//! A node that serves one socket and gets all its packets from one link is a *host*. Only packets
//! and its own timers change it. So a packet that a junction lets go is delivered to it at once, if
//! no timer expires before it arrives: the host is ahead of the rest of the world, and what it
//! sends goes on ahead of time. In a dumbbell, the junctions' are nearly the only wake-ups.
//!
//! Nothing else changes. What wakes up does so when it would have, in the same place among
//! simultaneous wake-ups ([`Wakeups::sleep_ahead`](crate::engine::Wakeups::sleep_ahead)). Only
//! observers, and counters read during a run, would show the difference. So nothing is done ahead
//! of time while there are observers, nor for packets that arrive at the node after the end of
//! [`World::run_until`].

use super::junction::Junction;
use super::signals::Listener;
use super::{Component, JunctionId, LinkState, SocketId, World};
use crate::engine::Key;
use crate::packet::Packet;
use crate::world::Observers;
use airtcp_core::{IdVec, Instant, Source};
use airtcp_net::{Arrived, Dropped, Output};
use airtcp_routing::router::PacketId;
use airtcp_routing::{LinkId, NodeId};
use std::cmp::Reverse;
use std::iter::successors;

/// The way in which packets come to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entrance {
    /// Each when it is there.
    Open,
    /// All from this link, ahead of time.
    Behind(LinkId),
    /// All from several links, ahead of time, through this junction.
    Junction(JunctionId),
}

/// The sources of a link's packets.
#[derive(Clone, Debug, Default)]
struct Feeders {
    links: Vec<LinkId>,
    /// There are sources other than links.
    others: bool,
}

/// Sockets, links and other activity at a node.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    socket: Option<SocketId>,
    /// The link by which packets come.
    link: Option<LinkId>,
    /// There are more sockets or links, or something else happens.
    busy: bool,
}

impl Host {
    fn add_socket(&mut self, socket: SocketId) {
        self.busy |= self.socket.replace(socket).is_some();
    }

    /// A route leads here by this link, and ends here or goes on.
    fn add_route(&mut self, ends: bool, link: LinkId) {
        self.busy |= !ends || self.link.replace(link).is_some_and(|other| other != link);
    }
}

impl World {
    /// Finds the links that get all their packets from other links. Nothing may be added after
    /// this.
    pub(super) fn join_links(&mut self) {
        let mut feeders: IdVec<LinkId, _> = vec![Feeders::default(); self.links.len()].into();
        let mut feed = |node, destination, feeder: Option<LinkId>| {
            let next = self.next_hops.link(node, destination);
            if let Some(fed) = next.and_then(|link| feeders.get_mut(link)) {
                fed.others |= feeder.is_none();
                fed.links.extend(feeder);
            }
        };
        for (_, destination, link) in self.next_hops.iter() {
            match self.radio_link(link) {
                None => feed(self.links[link].to, destination, Some(link)),
                Some(radio) => feed(radio.node, destination, None),
            }
        }
        for socket in &self.sockets {
            feed(socket.node, socket.peer, None);
        }
        for source in &self.udp {
            feed(source.node, source.destination, None);
        }
        for socket in &self.quic {
            feed(socket.node, socket.peer, None);
        }
        for (link, Feeders { mut links, others }) in self.links.ids().zip(feeders) {
            links.sort_unstable();
            links.dedup();
            let entrance = match links[..] {
                // Packets are copied when they are there.
                _ if self.links[link].link.makes_duplicates() => Entrance::Open,
                // It wakes up for services in between, and a cell's scheduler sees packets then.
                _ if !self.links[link].link.decides_on_arrival() => Entrance::Open,
                _ if others || !links.iter().all(|&link| self.looks_ahead(link)) => Entrance::Open,
                [feeder] => Entrance::Behind(feeder),
                _ => self.join(link, &links),
            };
            if entrance != Entrance::Open {
                links.iter().for_each(|&link| self.links[link].feeds = true);
            }
            self.entrances.push(entrance);
        }
        let feeder = |&link: &LinkId| match self.entrances[link] {
            Entrance::Behind(feeder) => Some(feeder),
            Entrance::Open | Entrance::Junction(_) => None,
        };
        let depth = |&link: &LinkId| successors(Some(link), feeder).count();
        let feeds = |&link: &LinkId| self.links[link].feeds;
        self.feeders = self.links.ids().filter(feeds).collect();
        self.feeders.sort_by_key(|link| Reverse(depth(link)));
    }

    /// True if the arrivals of a link's packets are known ahead of time, and nothing but the next
    /// link changes what happens to them there.
    fn looks_ahead(&self, id: LinkId) -> bool {
        let LinkState { link, to, .. } = &self.links[id];
        let node = &self.nodes[*to];
        let plain = node.outage.is_none() && node.mechanism.is_none() && node.router.is_none();
        // A saturated source must know if this link took its packet; the next one might lose it.
        let saturated = || self.udp.iter().any(|udp| udp.saturates() == Some(id));
        plain && link.keeps_order() && !saturated()
    }

    /// The entrance of a link fed by several others.
    fn join(&mut self, link: LinkId, feeders: &[LinkId]) -> Entrance {
        let lookahead = |&feeder: &LinkId| self.links[feeder].link.lookahead();
        match feeders.iter().map(lookahead).min() {
            Some(Some(lookahead)) => {
                Entrance::Junction(self.junctions.push(Junction::new(link, lookahead)))
            }
            _ => Entrance::Open,
        }
    }

    /// Finds the nodes that do nothing but serve one socket, whose packets all come by one link, in
    /// order. Such a node can be ahead of the rest of the world.
    pub(super) fn find_hosts(&mut self) {
        let mut hosts: IdVec<NodeId, _> = vec![Host::default(); self.nodes.len()].into();
        for (id, socket) in self.sockets.enumerated() {
            hosts[socket.node].add_socket(id);
        }
        for source in &self.udp {
            hosts[source.node].busy = true;
        }
        for socket in &self.quic {
            hosts[socket.node].busy = true;
        }
        // A cell is not ahead: nor are those that send over it.
        for (_, link) in self.links.enumerated().filter(|(id, _)| self.cells.of_link(*id).is_some())
        {
            hosts[link.from].busy = true;
        }
        for process in &self.arrivals {
            process.ends().into_iter().for_each(|node| hosts[node].busy = true);
        }
        for feed in &self.feeds {
            if let Listener::Socket(socket) = feed.listener {
                hosts[self.sockets[socket].node].busy = true;
            }
        }
        for (_, destination, link) in self.next_hops.iter() {
            match self.radio_link(link) {
                None => {
                    let to = self.links[link].to;
                    hosts[to].add_route(destination == to, link);
                }
                Some(radio) => hosts[radio.node].busy = true,
            }
        }
        for host in hosts.into_iter().filter(|host| !host.busy) {
            if let Host { socket: Some(socket), link: Some(link), .. } = host
                && self.looks_ahead(link)
            {
                self.links[link].host = Some(socket);
            }
        }
    }

    /// From now on, does ahead of time what will happen by `until`, for packets already on their
    /// way too.
    pub(super) fn look_ahead(&mut self, until: Instant) {
        self.horizon = until;
        let mut going = std::mem::take(&mut self.going);
        // Downstream packets first: they arrive before those behind them.
        for n in 0..self.feeders.len() {
            let link = self.feeders[n];
            let Self { links, packets, next_hops, entrances, .. } = self;
            let state = &mut links[link];
            let to = state.to;
            state.link.pass_on(until, |arrived, &packet| {
                let next = next_hops.link(to, packets.destination(packet));
                let next = next.filter(|&next| is_fed(entrances, next));
                let goes = next.filter(|_| *packets.ttl(packet) > 1);
                going.extend(goes.map(|next| (arrived, packet, next)));
                goes.is_some()
            });
            for (arrived, packet, next) in going.drain(..) {
                self.events_processed += 1;
                *self.packets.ttl(packet) -= 1;
                match self.entrances[next] {
                    Entrance::Junction(junction) => self.enter(junction, link, arrived, packet),
                    _ => _ = self.send_through(arrived.at, next, packet, false),
                }
            }
        }
        self.going = going;
    }

    /// Offers a packet to a link at `now`, which may lie ahead, and to the links behind it as far
    /// as the packet's arrival there is known. If that is as far as a host and `to_host`, returns
    /// the arrival and the host's socket: not for a packet that a socket is just sending. Only
    /// without observers.
    pub(super) fn send_through(
        &mut self,
        mut now: Instant,
        mut link: LinkId,
        packet: PacketId,
        to_host: bool,
    ) -> Option<(Instant, SocketId)> {
        let destination = self.packets.destination(packet);
        loop {
            let LinkState { link: out, to, feeds, host, .. } = &mut self.links[link];
            let (journey, meta) = self.packets.passing(packet);
            let next = if *feeds { self.next_hops.link(*to, destination) } else { None };
            let next = next.filter(|&next| is_fed(&self.entrances, next) && journey.ttl > 1);
            let until = match *host {
                _ if next.is_some() => Some(self.horizon),
                // Otherwise an earlier packet arrives before.
                Some(socket) if to_host && !out.is_busy() => {
                    let timer =
                        self.wakeups.wake_up_of(self.components.id(Component::Socket(socket)));
                    Some(before(timer.min(self.horizon)))
                }
                _ => None,
            };
            let passed = out.pass(now, packet, meta, until);
            // That of another packet, if this one was refused and goes no further.
            journey.waited += out.latest_wait();
            let arrived = match passed {
                Ok(Some(arrived)) => arrived,
                Ok(None) => {
                    let known = out.next_since().unwrap_or(now);
                    let component = self.components.id(Component::Link(link));
                    self.wakeups.arm_ahead(component, out.next_deadline(), known);
                    return None;
                }
                Err(Dropped(packet, reason)) => {
                    self.discard(packet, reason, Source::Link(link.0), &mut Observers::default());
                    return None;
                }
            };
            self.events_processed += 1;
            let Some(next) = next else { return host.map(|socket| (arrived.at, socket)) };
            journey.ttl -= 1;
            if let Entrance::Junction(junction) = self.entrances[next] {
                self.enter(junction, link, arrived, packet);
                return None;
            }
            (now, link) = (arrived.at, next);
        }
    }

    /// A packet that comes ahead of time from the link `feeder` waits in a junction.
    #[inline]
    fn enter(&mut self, junction: JunctionId, feeder: LinkId, arrived: Arrived, packet: PacketId) {
        let feeder = self.components.id(Component::Link(feeder));
        let key = Key::new(arrived.at, arrived.next_since, feeder);
        let latest = self.junctions[junction].add(key, packet);
        self.wakeups.arm(self.components.id(Component::Junction(junction)), Some(latest));
    }

    /// A packet arrives at a host, which serves this socket, at `at`, which lies ahead.
    #[inline]
    fn deliver_ahead(&mut self, at: Instant, socket: SocketId, packet: PacketId) {
        let now = std::mem::replace(&mut self.now, at);
        let observers = &mut Observers::default();
        match self.packets.packet(packet) {
            Packet::Tcp(_) => self.receive(socket, packet, observers),
            _ => self.deliver(self.sockets[socket].node, packet, observers),
        }
        self.now = now;
    }

    /// Lets go the packets of a junction whose order is known.
    #[inline(never)]
    pub(super) fn wake_junction(&mut self, junction: JunctionId) -> Option<Instant> {
        let link = self.junctions[junction].link;
        while let Some((at, packet)) = self.junctions[junction].next(self.now) {
            if let Some((at, socket)) = self.send_through(at, link, packet, true) {
                self.deliver_ahead(at, socket, packet);
            }
        }
        self.junctions[junction].next_deadline()
    }

    /// Something has come out of a link: if it leads to a host, what is still in it is delivered
    /// ahead of time, as far as no timer expires before. So the packets that had to wait for a
    /// timer, for the loss of another or for the end of [`World::run_until`] hold up no others.
    #[inline]
    pub(super) fn deliver_rest(&mut self, link: LinkId) {
        let Some(socket) = self.links[link].host else { return };
        while self.now < self.horizon {
            let timer = self.wakeups.wake_up_of(self.components.id(Component::Socket(socket)));
            let until = before(timer.min(self.horizon));
            let output = self.links[link].link.poll_ahead(until);
            let Some((at, output)) = output else { return };
            self.events_processed += 1;
            match output {
                Output::Deliver(packet, _) => self.deliver_ahead(at, socket, packet),
                Output::Drop(packet, reason) => {
                    self.discard(packet, reason, Source::Link(link.0), &mut Observers::default());
                }
            }
        }
    }
}

/// The last instant before this one.
fn before(at: Instant) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(1))
}

/// True if packets come to a link, or radio link, ahead of time.
#[inline]
fn is_fed(entrances: &IdVec<LinkId, Entrance>, link: LinkId) -> bool {
    entrances.get(link).is_some_and(|&entrance| entrance != Entrance::Open)
}
