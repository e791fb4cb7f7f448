//! Searches for routes: the expanding ring (RFC 3561 §6.3 and §6.4), local repair (§6.12), limits.

use super::{Aodv, AodvConfig, Error, LocalRepair, Message, Phase, ReplyWait, Request, Search};
use crate::NodeId;
use crate::router::{Actions, Data, NextHop};
use airtcp_core::event::DropReason;
use airtcp_core::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

impl Aodv {
    /// Starts a search for a route to a destination that packets wait for, unless one is under
    /// way.
    pub(super) fn search(&mut self, now: Instant, destination: NodeId, out: &mut Actions) {
        let ttl = self.first_ring(now, destination);
        self.start_search(now, destination, ttl, None, out);
    }

    /// The TTL of a search's first request (§6.4): the last known distance is the first guess.
    fn first_ring(&mut self, now: Instant, destination: NodeId) -> u16 {
        if self.config.remember_rings {
            return self.next_ring_of_ns2(now, destination);
        }
        let known = self.table.get(now, destination).map(|route| route.hops);
        known.map_or(self.config.ttl_start, |hops| hops + self.config.ttl_increment)
    }

    /// The TTL of the request that follows one with this TTL, which was not answered (§6.4).
    fn wider_ring(&mut self, now: Instant, destination: NodeId, ttl: u16) -> u16 {
        if self.config.remember_rings {
            return self.next_ring_of_ns2(now, destination);
        }
        let AodvConfig { ttl_threshold, ttl_increment, net_diameter, .. } = *self.config;
        if ttl < ttl_threshold { (ttl + ttl_increment).min(ttl_threshold) } else { net_diameter }
    }

    /// Takes note of how far a request for a destination goes, or of the length of a new route.
    pub(super) fn remember_ring(&mut self, destination: NodeId, hops: u16) {
        if self.config.remember_rings {
            self.rings.insert(destination, hops);
        }
    }

    /// The TTL of the next request for a destination in ns-2 (`sendRequest`).
    fn next_ring_of_ns2(&mut self, now: Instant, destination: NodeId) -> u16 {
        let asked = self.rings.get(&destination).copied().unwrap_or(0);
        let lost = self.table.get(now, destination).map_or(u16::MAX, |route| route.lost_hops);
        let last = asked.max(lost);
        if last < self.config.ttl_threshold {
            last + self.config.ttl_increment
        } else {
            self.config.net_diameter
        }
    }

    fn start_search(
        &mut self,
        now: Instant,
        destination: NodeId,
        ttl: u16,
        repair: Option<u16>,
        out: &mut Actions,
    ) {
        let under_way = self.searches.iter().position(|search| search.destination == destination);
        if let Some(at) = under_way {
            let Search { phase, overdue, .. } = self.searches[at];
            if phase == Phase::Waiting && overdue <= now {
                self.advance(now, at, out);
            }
            return;
        }
        let ttl = ttl.min(self.config.net_diameter);
        self.searches.push(Search {
            destination,
            ttl,
            retries: 0,
            phase: Phase::Ready,
            until: now,
            overdue: now,
            repair,
        });
        self.request(now, self.searches.len() - 1, out);
    }

    /// Sends the next request of a search, or waits until the rate limit allows it.
    fn request(&mut self, now: Instant, at: usize, out: &mut Actions) {
        let Search { destination, ttl, retries, repair, .. } = self.searches[at];
        if !self.requests.allows(now) {
            self.searches[at].phase = Phase::Ready;
            self.searches[at].until = self.requests.next();
            return;
        }
        let (wait, noticed) = match self.config.reply_wait {
            ReplyWait::Measured => {
                let per_hop = self.latencies.mean(destination);
                let per_hop = per_hop.unwrap_or(self.config.node_traversal_time);
                let wait = per_hop * 2 * u64::from(ttl) * u64::from(retries + 1);
                let wait = wait.min(self.config.rreq_pause);
                (wait, (now + wait).since_start().round_up_to(TICK))
            }
            ReplyWait::Estimated => {
                let wait = if ttl == self.config.net_diameter && repair.is_none() {
                    self.config.net_traversal_time() * (1 << retries)
                } else {
                    self.config.ring_traversal_time(ttl)
                };
                (wait, (now + wait).since_start())
            }
        };
        self.remember_ring(destination, ttl);
        let search = &mut self.searches[at];
        search.phase = Phase::Waiting;
        search.overdue = now + wait;
        search.until = Instant::ZERO + noticed;
        // §6.1: before each search, so that old routes to this node cannot outlive it.
        self.seq += 1;
        self.last_request = self.last_request.wrapping_add(1);
        let request = Request {
            ttl,
            hop_count: 0,
            id: self.last_request,
            destination,
            destination_seq: self.table.get(now, destination).and_then(|route| route.seq),
            originator: self.node,
            originator_seq: self.seq,
            destination_only: !self.config.intermediate_replies,
            gratuitous: self.config.gratuitous_replies,
            asked: now,
        };
        out.control(Arc::new(Message::Request(request)), NextHop::Broadcast);
    }

    /// Starts the local repair of a route that has just broken, if this node is the one to do it;
    /// `data` was to cross the link (§6.12).
    pub(super) fn repair(&mut self, now: Instant, data: &Data, out: &mut Actions) -> bool {
        let destination = data.destination;
        let Some(hops) = self.table.get(now, destination).map(|r| r.hops) else { return false };
        let to_source = self.table.get(now, data.source).map_or(0, |route| route.hops);
        let eligible = match self.config.local_repair {
            LocalRepair::Off | LocalRepair::SecondHalf => false,
            LocalRepair::NearDestination { max_repair_ttl } => hops <= max_repair_ttl,
        };
        if !eligible || self.searches.iter().any(|search| search.destination == destination) {
            return false;
        }
        let ttl = hops.max(to_source / 2) + self.config.local_add_ttl;
        self.start_search(now, destination, ttl, Some(hops), out);
        true
    }

    /// True if this node is to repair the route of a packet that was given up, as ns-2 does.
    pub(super) fn is_second_half(&mut self, now: Instant, data: &Data) -> bool {
        let second_half = self.config.local_repair == LocalRepair::SecondHalf;
        if !second_half || data.source == self.node {
            return false;
        }
        let to_source = self.table.get(now, data.source).map_or(0, |route| route.hops);
        self.table.valid(now, data.destination).is_some_and(|route| route.hops < to_source)
    }

    /// Lets a packet and all later ones for its destination wait for a better route.
    pub(super) fn hold(&mut self, now: Instant, data: Data, out: &mut Actions) {
        let destination = data.destination;
        if let Some(route) = self.table.valid(now, destination) {
            route.held = true;
        }
        self.buffer.push(now, data, out);
        self.search(now, destination, out);
    }

    /// True if a local repair for this destination is under way.
    pub(super) fn is_repairing(&self, destination: NodeId) -> bool {
        let mut searches = self.searches.iter();
        searches.any(|search| search.destination == destination && search.repair.is_some())
    }

    pub(super) fn on_search_timer(&mut self, now: Instant, out: &mut Actions) {
        let mut at = 0;
        while at < self.searches.len() {
            // A search that ends makes room for another, at the same place or at the end.
            if self.searches[at].until > now || self.advance(now, at, out) {
                at += 1;
            }
        }
    }

    /// The phase of a search has ended; false if the search has.
    fn advance(&mut self, now: Instant, at: usize, out: &mut Actions) -> bool {
        let Search { destination, ttl, retries, phase, repair, .. } = self.searches[at];
        let wanted = self.buffer.holds(destination);
        match phase {
            Phase::Ready if wanted => self.request(now, at, out),
            Phase::Waiting if repair.is_some() => {
                self.searches.swap_remove(at);
                self.give_up_repair(now, destination, out);
                return false;
            }
            Phase::Waiting if wanted => {
                let whole = self.config.net_diameter;
                if ttl < whole {
                    self.searches[at].ttl = self.wider_ring(now, destination, ttl).min(whole);
                } else if retries < self.config.rreq_retries {
                    self.searches[at].retries += 1;
                } else {
                    let search = &mut self.searches[at];
                    search.phase = Phase::Paused;
                    search.until = now + self.config.rreq_pause;
                    for data in self.buffer.take(|data| data.destination == destination) {
                        out.drop(data, DropReason::NoRoute);
                    }
                    return true;
                }
                self.request(now, at, out);
            }
            _ => {
                self.searches.swap_remove(at);
                if wanted {
                    self.search(now, destination, out);
                }
                return false;
            }
        }
        true
    }

    /// A local repair found nothing: the neighbours that use the route hear of it now, and this
    /// node's own packets become those of a search.
    fn give_up_repair(&mut self, now: Instant, destination: NodeId, out: &mut Actions) {
        let node = self.node;
        let others = |data: &Data| data.destination == destination && data.source != node;
        for data in self.buffer.take(others) {
            out.drop(data, DropReason::NoRoute);
        }
        let (mut audience, mut unreachable) = (Vec::new(), Vec::new());
        self.lose(now, destination, &mut unreachable, &mut audience, false, out);
        let error = Error { no_delete: false, unreachable };
        self.send_error(now, error, &audience, false, out);
        if self.buffer.holds(destination) {
            self.search(now, destination, out);
        }
    }
}

/// Interval at which ns-2 looks for overdue searches.
const TICK: Duration = Duration::from_millis(500);

/// Durations of the latest searches for each destination, per hop of the route found.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    latest: BTreeMap<NodeId, VecDeque<Duration>>,
}

impl Latencies {
    /// Number of latencies kept (ns-2, MAX_HISTORY).
    const MEMORY: usize = 3;

    pub(super) fn add(&mut self, destination: NodeId, per_hop: Duration) {
        let latest = self.latest.entry(destination).or_default();
        if latest.len() == Self::MEMORY {
            latest.pop_front();
        }
        latest.push_back(per_hop);
    }

    /// Their mean; `None` before the first search that found a route.
    fn mean(&self, destination: NodeId) -> Option<Duration> {
        let latest = self.latest.get(&destination)?;
        let sum = latest.iter().fold(Duration::ZERO, |sum, &latency| sum + latency);
        Some(sum / latest.len() as u64)
    }
}

/// At most so many messages in any second.
#[derive(Debug)]
pub(super) struct RateLimit {
    limit: usize,
    sent: VecDeque<Instant>,
}

impl RateLimit {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, sent: VecDeque::new() }
    }

    /// True if a message may be sent now; if so, counts it.
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        if self.sent.len() >= self.limit {
            if self.next() > now {
                return false;
            }
            self.sent.pop_front();
        }
        self.sent.push_back(now);
        true
    }

    /// Time at which the limit, once reached, allows the next message.
    fn next(&self) -> Instant {
        self.sent.front().map_or(Instant::ZERO, |&first| first + Duration::from_secs(1))
    }
}
