//! Packets that pass through a node without a wake-up.
//!
//! If a link gets all its packets from one other link, and that one keeps their order, the outcome
//! at the node between them is known as soon as the first link accepts a packet. Whatever else
//! happens until the packet arrives, the second link accepts or refuses it at that instant. So the
//! packet is offered to the second link at once, with its arrival time.
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
use super::{LinkState, World};
use crate::engine::Key;
use crate::packet::Packet;
use crate::world::Observers;
use airtcp_core::{Instant, Source};
use airtcp_net::{Arrived, Dropped, Output};
use airtcp_routing::router::PacketId;
use std::cmp::Reverse;
use std::iter::successors;

/// How packets come to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entrance {
    /// Each when it is there.
    Open,
    /// All from this link, ahead of time.
    Behind(u32),
    /// All from several links, ahead of time, through this junction.
    Junction(u32),
}

/// The sources of a link's packets.
#[derive(Clone, Debug, Default)]
struct Feeders {
    links: Vec<u32>,
    /// There are sources other than links.
    others: bool,
}

/// What happens at a node.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    socket: Option<u32>,
    /// The link by which packets come.
    link: Option<u32>,
    /// There are more sockets or links, or something else happens.
    busy: bool,
}

impl Host {
    fn add_socket(&mut self, socket: u32) {
        self.busy |= self.socket.replace(socket).is_some();
    }

    /// A route leads here by this link, and ends here or goes on.
    fn add_route(&mut self, ends: bool, link: u32) {
        self.busy |= !ends || self.link.replace(link).is_some_and(|other| other != link);
    }
}

impl World {
    /// Finds the links that get all their packets from other links. Nothing may be added after this.
    pub(super) fn join_links(&mut self) {
        let mut feeders = vec![Feeders::default(); self.links.len()];
        let mut feed = |node, destination, feeder: Option<u32>| {
            let next = self.next_hops.link(node, destination);
            if let Some(fed) = next.and_then(|link| feeders.get_mut(link as usize)) {
                fed.others |= feeder.is_none();
                fed.links.extend(feeder);
            }
        };
        for (_, destination, link) in self.next_hops.iter() {
            match self.links.get(link as usize) {
                Some(state) => feed(state.to, destination, Some(link)),
                None => {
                    let radio = &self.radio_links[link as usize - self.links.len()];
                    feed(radio.node, destination, None);
                }
            }
        }
        for socket in &self.sockets {
            feed(socket.node, socket.peer, None);
        }
        for source in &self.udp {
            feed(source.node, source.destination, None);
        }
        for (link, Feeders { mut links, others }) in (0..).zip(feeders) {
            links.sort_unstable();
            links.dedup();
            let entrance = match links[..] {
                _ if others || !links.iter().all(|&link| self.looks_ahead(link)) => Entrance::Open,
                [feeder] => Entrance::Behind(feeder),
                _ => self.join(link, &links),
            };
            if entrance != Entrance::Open {
                links.iter().for_each(|&link| self.links[link as usize].feeds = true);
            }
            self.entrances.push(entrance);
        }
        let feeder = |&link: &u32| match self.entrances[link as usize] {
            Entrance::Behind(feeder) => Some(feeder),
            Entrance::Open | Entrance::Junction(_) => None,
        };
        let depth = |&link: &u32| successors(Some(link), feeder).count();
        let feeds = |&link: &u32| self.links[link as usize].feeds;
        self.feeders = (0..self.links.len() as u32).filter(feeds).collect();
        self.feeders.sort_by_key(|link| Reverse(depth(link)));
    }

    /// Whether it is known ahead of time when a link's packets arrive, and nothing but the next link
    /// changes what happens to them there.
    fn looks_ahead(&self, link: u32) -> bool {
        let LinkState { link, from, to, .. } = &self.links[link as usize];
        let node = &self.nodes[to.0 as usize];
        let plain = node.outage.is_none() && node.mechanism.is_none() && node.router.is_none();
        // A saturated source must know when its packets have crossed the first link.
        let watched = || self.udp.iter().any(|udp| udp.node == *from && udp.is_saturated());
        plain && link.keeps_order() && !watched()
    }

    /// The entrance of a link fed by several others.
    fn join(&mut self, link: u32, feeders: &[u32]) -> Entrance {
        let lookahead = |&feeder: &u32| self.links[feeder as usize].link.lookahead();
        match feeders.iter().map(lookahead).min() {
            Some(Some(lookahead)) => {
                self.junctions.push(Junction::new(link, lookahead));
                Entrance::Junction(self.junctions.len() as u32 - 1)
            }
            _ => Entrance::Open,
        }
    }

    /// Finds the nodes that do nothing but serve one socket, whose packets all come by one link, in
    /// order. Such a node can be ahead of the rest of the world.
    pub(super) fn find_hosts(&mut self) {
        let mut hosts = vec![Host::default(); self.nodes.len()];
        for (number, socket) in (0..).zip(&self.sockets) {
            hosts[socket.node.0 as usize].add_socket(number);
        }
        for source in &self.udp {
            hosts[source.node.0 as usize].busy = true;
        }
        for feed in &self.feeds {
            if let Listener::Socket(socket) = feed.listener {
                hosts[self.sockets[socket as usize].node.0 as usize].busy = true;
            }
        }
        for (_, destination, link) in self.next_hops.iter() {
            match self.links.get(link as usize) {
                Some(state) => hosts[state.to.0 as usize].add_route(destination == state.to, link),
                None => {
                    let radio = &self.radio_links[link as usize - self.links.len()];
                    hosts[radio.node.0 as usize].busy = true;
                }
            }
        }
        for host in hosts.into_iter().filter(|host| !host.busy) {
            if let Host { socket: Some(socket), link: Some(link), .. } = host
                && self.looks_ahead(link)
            {
                self.links[link as usize].host = Some(socket);
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
            let state = &mut links[link as usize];
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
                match self.entrances[next as usize] {
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
        mut link: u32,
        packet: PacketId,
        to_host: bool,
    ) -> Option<(Instant, u32)> {
        let destination = self.packets.destination(packet);
        loop {
            let LinkState { link: out, to, feeds, host, .. } = &mut self.links[link as usize];
            let (journey, meta) = self.packets.passing(packet);
            let next = if *feeds { self.next_hops.link(*to, destination) } else { None };
            let next = next.filter(|&next| is_fed(&self.entrances, next) && journey.ttl > 1);
            let until = match *host {
                _ if next.is_some() => Some(self.horizon),
                // Otherwise an earlier packet arrives before.
                Some(socket) if to_host && !out.is_busy() => {
                    let timer = self.wakeups.wake_up_of(self.components.sockets + socket);
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
                    self.wakeups.arm_ahead(link, out.next_deadline(), known);
                    return None;
                }
                Err(Dropped(packet, reason)) => {
                    self.discard(packet, reason, Source::Link(link), &mut Observers::default());
                    return None;
                }
            };
            self.events_processed += 1;
            let Some(next) = next else { return host.map(|socket| (arrived.at, socket)) };
            journey.ttl -= 1;
            if let Entrance::Junction(junction) = self.entrances[next as usize] {
                self.enter(junction, link, arrived, packet);
                return None;
            }
            (now, link) = (arrived.at, next);
        }
    }

    /// A packet that comes ahead of time from the link `feeder` waits in a junction.
    #[inline]
    fn enter(&mut self, junction: u32, feeder: u32, arrived: Arrived, packet: PacketId) {
        let key = Key::new(arrived.at, arrived.next_since, feeder);
        let latest = self.junctions[junction as usize].add(key, packet);
        self.wakeups.arm(self.components.junctions + junction, Some(latest));
    }

    /// A packet arrives at a host, which serves this socket, at `at`, which lies ahead.
    #[inline]
    fn deliver_ahead(&mut self, at: Instant, socket: u32, packet: PacketId) {
        let now = std::mem::replace(&mut self.now, at);
        let observers = &mut Observers::default();
        match self.packets.packet(packet) {
            Packet::Tcp(_) => self.receive(socket, packet, observers),
            _ => self.deliver(self.sockets[socket as usize].node, packet, observers),
        }
        self.now = now;
    }

    /// Lets go the packets of a junction whose order is known.
    #[inline(never)]
    pub(super) fn wake_junction(&mut self, junction: u32) -> Option<Instant> {
        let link = self.junctions[junction as usize].link;
        while let Some((at, packet)) = self.junctions[junction as usize].next(self.now) {
            if let Some((at, socket)) = self.send_through(at, link, packet, true) {
                self.deliver_ahead(at, socket, packet);
            }
        }
        self.junctions[junction as usize].next_deadline()
    }

    /// Something has come out of a link: if it leads to a host, what is still in it is delivered
    /// ahead of time, as far as no timer expires before. So the packets that had to wait for a
    /// timer, for the loss of another or for the end of [`World::run_until`] hold up no others.
    #[inline]
    pub(super) fn deliver_rest(&mut self, link: u32) {
        let Some(socket) = self.links[link as usize].host else { return };
        while self.now < self.horizon {
            let timer = self.wakeups.wake_up_of(self.components.sockets + socket);
            let until = before(timer.min(self.horizon));
            let output = self.links[link as usize].link.poll_ahead(until);
            let Some((at, output)) = output else { return };
            self.events_processed += 1;
            match output {
                Output::Deliver(packet, _) => self.deliver_ahead(at, socket, packet),
                Output::Drop(packet, reason) => {
                    self.discard(packet, reason, Source::Link(link), &mut Observers::default());
                }
            }
        }
    }
}

/// The last instant before this one.
fn before(at: Instant) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(1))
}

/// Whether packets come to a link, or radio link, ahead of time.
#[inline]
fn is_fed(entrances: &[Entrance], link: u32) -> bool {
    entrances.get(link as usize).is_some_and(|&entrance| entrance != Entrance::Open)
}
