//! Packets that pass through a node without a wake-up.
//!
//! If a link gets all its packets from one other link, and that one keeps their order, the outcome
//! at the node between them is known as soon as the first link accepts a packet. Whatever else
//! happens until the packet arrives, the second link accepts or refuses it at that instant. So the
//! packet is offered to the second link at once, with its arrival time. In a dumbbell this saves
//! two of six wake-ups for a segment and its ACK.
//!
//! Nothing else changes. The second link wakes up when it would have, in the same place among
//! simultaneous wake-ups ([`Wakeups::sleep_ahead`](crate::engine::Wakeups::sleep_ahead)). Only
//! observers, and counters read during a run, would show the difference. So nothing is done ahead
//! of time while there are observers, nor for packets that arrive at the node after the end of
//! [`World::run_until`].

use super::{LinkState, World};
use crate::world::Observers;
use airtcp_core::{Instant, Source};
use airtcp_net::Dropped;
use airtcp_routing::router::PacketId;
use std::cmp::Reverse;
use std::iter::successors;

/// The source of a link's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feeder {
    Nobody,
    Link(u32),
    Several,
}

impl Feeder {
    fn add(&mut self, feeder: Self) {
        *self = if *self == Self::Nobody || *self == feeder { feeder } else { Self::Several };
    }
}

impl World {
    /// Finds the links that get all their packets from one other link. Nothing may be added after
    /// this.
    pub(super) fn join_links(&mut self) {
        let mut feeders = vec![Feeder::Nobody; self.links.len()];
        let mut feed = |node, destination, feeder| {
            let next = self.next_hops.link(node, destination);
            if let Some(fed) = next.and_then(|link| feeders.get_mut(link as usize)) {
                fed.add(feeder);
            }
        };
        for (_, destination, link) in self.next_hops.iter() {
            match self.links.get(link as usize) {
                Some(state) => feed(state.to, destination, Feeder::Link(link)),
                None => {
                    let radio = &self.radio_links[link as usize - self.links.len()];
                    feed(radio.node, destination, Feeder::Several);
                }
            }
        }
        for socket in &self.sockets {
            feed(socket.node, socket.peer, Feeder::Several);
        }
        for source in &self.udp {
            feed(source.node, source.destination, Feeder::Several);
        }
        // A saturated source must know when its packets have crossed the first link.
        let watched = |link: u32| {
            let from = self.links[link as usize].from;
            self.udp.iter().any(|source| source.node == from && source.is_saturated())
        };
        let plain = |link: u32| {
            let node = &self.nodes[self.links[link as usize].to.0 as usize];
            node.outage.is_none() && node.mechanism.is_none() && node.router.is_none()
        };
        let joins = |link: u32| {
            self.links[link as usize].link.keeps_order() && plain(link) && !watched(link)
        };
        let fed_by = |feeder: Feeder| match feeder {
            Feeder::Link(link) if joins(link) => Some(link),
            _ => None,
        };
        self.fed_by = feeders.into_iter().map(fed_by).collect();
        for &feeder in self.fed_by.iter().flatten() {
            self.links[feeder as usize].feeds = true;
        }
        let depth =
            |&link: &u32| successors(Some(link), |&link| self.fed_by[link as usize]).count();
        let feeds = |&link: &u32| self.links[link as usize].feeds;
        self.feeders = (0..self.links.len() as u32).filter(feeds).collect();
        self.feeders.sort_by_key(|link| Reverse(depth(link)));
    }

    /// From now on, does ahead of time what will happen by `until`, for packets already on their
    /// way too.
    pub(super) fn look_ahead(&mut self, until: Instant) {
        self.horizon = until;
        let mut going = std::mem::take(&mut self.going);
        // Downstream packets first: they arrive before those behind them.
        for n in 0..self.feeders.len() {
            let link = self.feeders[n];
            let Self { links, packets, next_hops, fed_by, .. } = self;
            let state = &mut links[link as usize];
            let to = state.to;
            state.link.pass_on(until, |at, &packet| {
                let next = next_hops.link(to, packets.destination(packet));
                let next = next.filter(|&next| fed_by.get(next as usize) == Some(&Some(link)));
                let goes = next.filter(|_| *packets.ttl(packet) > 1);
                going.extend(goes.map(|next| (at, packet, next)));
                goes.is_some()
            });
            for (at, packet, next) in going.drain(..) {
                self.events_processed += 1;
                *self.packets.ttl(packet) -= 1;
                self.send_through(at, next, packet, &mut Observers::default());
            }
        }
        self.going = going;
    }

    /// Offers a packet to a link at `now`, which may lie ahead, and to the links behind it as far
    /// as the packet's arrival there is known. Only without observers.
    pub(super) fn send_through(
        &mut self,
        mut now: Instant,
        mut link: u32,
        packet: PacketId,
        observers: &mut Observers<'_>,
    ) {
        let meta = self.packets.meta(packet);
        let destination = self.packets.destination(packet);
        loop {
            let LinkState { link: out, to, feeds, .. } = &mut self.links[link as usize];
            let ttl = self.packets.ttl(packet);
            let next = feeds.then(|| self.next_hops.link(*to, destination)).flatten();
            let next = next.filter(|&next| self.fed_by.get(next as usize) == Some(&Some(link)));
            let offered = match next.filter(|_| *ttl > 1) {
                None => out.send(now, packet, meta).map(|()| None),
                Some(next) => {
                    out.pass(now, packet, meta, self.horizon).map(|arrival| Some((arrival?, next)))
                }
            };
            match offered {
                Ok(Some(further)) => {
                    self.events_processed += 1;
                    *ttl -= 1;
                    (now, link) = further;
                }
                Ok(None) => {
                    let known = out.next_since().unwrap_or(now);
                    self.wakeups.arm_ahead(link, out.next_deadline(), known);
                    return;
                }
                Err(Dropped(packet, reason)) => {
                    return self.discard(packet, reason, Source::Link(link), observers);
                }
            }
        }
    }
}
