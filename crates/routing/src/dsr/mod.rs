//! DSR, dynamic source routing (RFC 4728).
//!
//! Read RFC 4728 §3 first. `cache.rs` holds the paths that a node knows; `message.rs` the messages
//! and the source route in front of data. This file says what a node learns from each packet, how
//! it searches for routes, and what it does when a link breaks.
//!
//! Links are taken to work in both directions, as 802.11 needs them to. The link layer confirms
//! receipt, so passive and explicit acknowledgements (§3.3.2 and §8.3) are not modelled; nor are
//! flow state (§3.5), more than one interface, and data on top of route requests.

mod cache;
mod config;
mod message;

pub use config::{DsrConfig, Preset, ns2};
pub use message::{Error, Link, Message, Reply, Request, SourceRoute};

use crate::NodeId;
use crate::buffer::Buffer;
use crate::router::{self, Actions, Context, Data, LinkFailure, NextHop, Notice, Packet, Router};
use crate::seen::Seen;
use airtcp_core::event::DropReason;
use airtcp_core::{Duration, Instant, Stream};
use cache::Cache;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// DSR on one node.
#[derive(Debug)]
pub struct Dsr {
    node: NodeId,
    config: DsrConfig,
    jitter: Stream,
    last_request: u32,
    seen: Seen,
    cache: Cache,
    searches: Vec<Search>,
    buffer: Buffer,
    /// Broadcasts to be relayed, and answers from the cache.
    later: Vec<Later>,
    /// The routes that this node's own packets take.
    routes: BTreeMap<NodeId, Arc<SourceRoute>>,
    /// Destinations reported to transport as having no route any more.
    lost: BTreeSet<NodeId>,
    /// A broken link that the next request is to report.
    broken: Option<Link>,
    /// To whom, and because of whose packet, this node offered a shorter route, and until when it
    /// does not do so again.
    offered: Vec<(NodeId, NodeId, Instant)>,
    /// A path being learnt.
    path: Vec<NodeId>,
}

#[derive(Debug)]
struct Later {
    at: Instant,
    message: Arc<Message>,
    to: NextHop,
}

/// A search for a route.
#[derive(Clone, Copy, Debug)]
struct Search {
    target: NodeId,
    /// Due time of the next request.
    until: Instant,
    /// The wait after the next request to the whole network.
    period: Duration,
    /// Requests to the whole network so far; `None` before the one to the neighbours.
    sent: Option<u16>,
}

/// A request is not heard of again after so long.
const REQUEST_LIFETIME: Duration = Duration::from_secs(30);

impl Dsr {
    /// DSR on `node`. `jitter` delays relayed broadcasts and answers from the cache.
    pub fn new(node: NodeId, config: &DsrConfig, jitter: Stream) -> Self {
        let timeout = config.route_cache_timeout.unwrap_or(Duration::MAX);
        Self {
            node,
            jitter,
            last_request: 0,
            seen: Seen::default(),
            cache: Cache::new(config.route_cache_paths, timeout),
            searches: Vec::new(),
            buffer: Buffer::new(config.send_buffer_packets, config.send_buffer_timeout),
            later: Vec::new(),
            routes: BTreeMap::new(),
            lost: BTreeSet::new(),
            broken: None,
            offered: Vec::new(),
            path: Vec::new(),
            config: config.clone(),
        }
    }

    /// Learns the path from this node over these others, the nearest first.
    fn learn<'a>(
        &mut self,
        now: Instant,
        others: impl IntoIterator<Item = &'a NodeId>,
        out: &mut Actions,
    ) {
        self.path.clear();
        self.path.push(self.node);
        self.path.extend(others);
        if self.cache.add(now, &self.path) {
            self.on_new_path(now, out);
        }
    }

    /// Packets that waited for a route may have one now.
    fn on_new_path(&mut self, now: Instant, out: &mut Actions) {
        let cache = &mut self.cache;
        self.lost.retain(|&to| {
            let found = cache.find(now, to).is_some();
            if found {
                out.notify(Notice::RouteFound(to));
            }
            !found
        });
        let found: Vec<NodeId> = self
            .searches
            .extract_if(.., |search| cache.find(now, search.target).is_some())
            .map(|search| search.target)
            .collect();
        for target in found {
            let ready: Vec<Data> = self.buffer.take(|data| data.destination == target).collect();
            for data in ready {
                self.send(now, data, out);
            }
        }
    }

    /// Learns the paths to both ends of a route on which this node is the one numbered `at`.
    fn learn_route(&mut self, now: Instant, route: &[NodeId], at: usize, out: &mut Actions) {
        self.learn(now, &route[at + 1..], out);
        self.learn(now, route[..at].iter().rev(), out);
    }

    /// Learns the paths to both ends of a route from a packet that one of its nodes sent to another
    /// (RFC 4728 §3.3.1).
    fn learn_overheard(&mut self, now: Instant, route: &[NodeId], from: usize, out: &mut Actions) {
        if !route.contains(&self.node) {
            self.learn(now, &route[from..], out);
            self.learn(now, route[..=from].iter().rev(), out);
        }
    }

    /// Sends a packet of this node's own, or keeps it and searches for a route.
    fn send(&mut self, now: Instant, mut data: Data, out: &mut Actions) {
        let destination = data.destination;
        let Some(path) = self.cache.find(now, destination) else {
            self.buffer.push(now, data, out);
            return self.search(now, destination, out);
        };
        let next = path[1];
        let header = match self.routes.get(&destination) {
            Some(header) if header.route == path => header.clone(),
            _ => {
                let header = Arc::new(SourceRoute { route: path.to_vec(), salvaged: 0 });
                self.routes.insert(destination, header.clone());
                header
            }
        };
        data.header = Some(header);
        out.send(data, NextHop::Node(next));
    }

    /// A data packet from a neighbour.
    fn on_data(&mut self, now: Instant, from: NodeId, data: Data, out: &mut Actions) {
        let header = data.header.clone();
        let route = header
            .as_deref()
            .and_then(|header| header.downcast_ref::<SourceRoute>())
            .map(|header| &header.route);
        let place = route.and_then(|route| Some((route, place(route, self.node)?)));
        if let Some((route, at)) = place.filter(|&(route, at)| at > 0 && route[at - 1] == from) {
            self.learn_route(now, route, at, out);
        }
        if data.destination == self.node {
            return out.deliver(data);
        }
        match place.and_then(|(route, at)| route.get(at + 1)) {
            Some(&next) => out.send(data, NextHop::Node(next)),
            None => out.drop(data, DropReason::NoRoute),
        }
    }

    /// RFC 4728 §3.2 and §3.3.4, unless a search is under way.
    fn search(&mut self, now: Instant, target: NodeId, out: &mut Actions) {
        if self.searches.iter().any(|search| search.target == target) {
            return;
        }
        let sent = if self.config.ask_neighbours_first { None } else { Some(0) };
        let period = self.config.request_period;
        self.searches.push(Search { target, until: now, period, sent });
        self.advance(now, self.searches.len() - 1, out);
    }

    /// Sends the next request of a search; false if it has ended.
    fn advance(&mut self, now: Instant, at: usize, out: &mut Actions) -> bool {
        let search = &mut self.searches[at];
        let target = search.target;
        let given_up = search.sent.is_some_and(|sent| sent > self.config.max_request_rexmt);
        if given_up || !self.buffer.holds(target) {
            for data in self.buffer.take(|data| data.destination == target) {
                out.drop(data, DropReason::NoRoute);
            }
            self.searches.swap_remove(at);
            return false;
        }
        let ttl = match search.sent {
            None => {
                search.sent = Some(0);
                search.until = now + self.config.nonprop_request_timeout;
                1
            }
            Some(sent) => {
                search.sent = Some(sent + 1);
                search.until = now + search.period;
                search.period = (search.period * 2).min(self.config.max_request_period);
                self.config.discovery_hop_limit
            }
        };
        self.last_request = self.last_request.wrapping_add(1);
        let (id, route) = (self.last_request, vec![self.node]);
        let request = Request { ttl, id, target, route, broken: self.broken.take() };
        out.control(Arc::new(Message::Request(request)), NextHop::Broadcast);
        true
    }

    /// RFC 4728 §8.2.2.
    fn on_request(&mut self, now: Instant, request: &Request, out: &mut Actions) {
        let &Request { ttl, id, target, ref route, broken } = request;
        let Some(&originator) = route.first() else { return };
        if route.contains(&self.node) {
            return;
        }
        if let Some(link) = broken {
            self.on_lost_link(now, link, out);
        }
        if !self.seen.insert(now, (originator, id), now + REQUEST_LIFETIME) {
            return;
        }
        self.learn(now, route.iter().rev(), out);
        let so_far = || route.iter().copied().chain([self.node]);
        if target == self.node {
            let reply = Reply { route: so_far().collect(), replier: self.node };
            return self.reply(reply, out);
        }
        let known = self.cache.find(now, target).filter(|_| self.config.cached_replies);
        // A route with a node in it twice is no route.
        if let Some(path) = known.filter(|path| !path.iter().any(|node| route.contains(node))) {
            let whole: Vec<NodeId> = route.iter().chain(path).copied().collect();
            return self.reply_later(now, whole, out);
        }
        if ttl > 1 {
            let at = now + self.jitter.duration(Duration::ZERO, self.config.broadcast_jitter);
            let relayed = Request { ttl: ttl - 1, id, target, route: so_far().collect(), broken };
            let message = Arc::new(Message::Request(relayed));
            self.later.push(Later { at, message, to: NextHop::Broadcast });
        }
    }

    /// Sends a reply back along its route.
    fn reply(&self, reply: Reply, out: &mut Actions) {
        if let Some(to) = before(&reply.route, self.node) {
            out.control(Arc::new(Message::Reply(reply)), NextHop::Node(to));
        }
    }

    /// Answers from the cache, the later the longer the route (RFC 4728 §3.3.3).
    fn reply_later(&mut self, now: Instant, route: Vec<NodeId>, out: &mut Actions) {
        let reply = Reply { route, replier: self.node };
        let for_a_hop = self.config.cached_reply_delay;
        if for_a_hop.is_zero() {
            return self.reply(reply, out);
        }
        let Some(to) = before(&reply.route, self.node) else { return };
        let hops = reply.route.len() as u64 - 1;
        let random = self.jitter.duration(Duration::ZERO, for_a_hop);
        let at = now + for_a_hop * (hops - 1) + random;
        let message = Arc::new(Message::Reply(reply));
        self.later.push(Later { at, message, to: NextHop::Node(to) });
    }

    fn on_message(&mut self, now: Instant, message: Arc<dyn router::Message>, out: &mut Actions) {
        match message.downcast_ref() {
            Some(Message::Request(request)) => self.on_request(now, request, out),
            Some(Message::Reply(reply)) => {
                let Some(at) = place(&reply.route, self.node) else { return };
                self.learn_route(now, &reply.route, at, out);
                if let Some(to) = before(&reply.route, self.node) {
                    out.control(message, NextHop::Node(to));
                }
            }
            Some(Message::Error(error)) => {
                self.on_lost_link(now, error.broken, out);
                let Some(at) = place(&error.route, self.node) else { return };
                match error.route.get(at + 1) {
                    Some(&to) => out.control(message, NextHop::Node(to)),
                    None => self.broken = Some(error.broken).filter(|_| self.config.spread_errors),
                }
            }
            None => {}
        }
    }

    /// No path takes this link any more. Transport hears of the destinations that are left without
    /// one.
    fn on_lost_link(&mut self, now: Instant, link: Link, out: &mut Actions) {
        self.cache.cut(link);
        let (cache, lost) = (&mut self.cache, &mut self.lost);
        self.routes.retain(|&to, header| {
            let broken = cache::position(&header.route, link).is_some();
            if broken && cache.find(now, to).is_none() {
                lost.insert(to);
                out.notify(Notice::RouteFailed(to));
            }
            !broken
        });
    }

    /// A packet that a broken link returned: this node's own takes another route; that of another
    /// is salvaged, if possible (RFC 4728 §3.4.1), or dropped.
    fn on_returned(
        &mut self,
        now: Instant,
        broken: Link,
        mut data: Data,
        told: &mut Vec<NodeId>,
        out: &mut Actions,
    ) {
        if data.source == self.node {
            return self.send(now, data, out);
        }
        let header = data.header.clone();
        let Some(header) =
            header.as_deref().and_then(|header| header.downcast_ref::<SourceRoute>())
        else {
            return out.drop(data, DropReason::Retries);
        };
        if let Some(at) = place(&header.route, self.node).filter(|&at| at > 0)
            && !told.contains(&header.route[0])
        {
            told.push(header.route[0]);
            let error =
                Error { broken, route: header.route[..=at].iter().rev().copied().collect() };
            let to = NextHop::Node(header.route[at - 1]);
            out.control(Arc::new(Message::Error(error)), to);
        }
        let path = self.cache.find(now, data.destination);
        match path.filter(|_| header.salvaged < self.config.max_salvage_count) {
            Some(path) => {
                let next = path[1];
                let salvaged = header.salvaged + 1;
                data.header = Some(Arc::new(SourceRoute { route: path.to_vec(), salvaged }));
                out.send(data, NextHop::Node(next));
            }
            None => out.drop(data, DropReason::Retries),
        }
    }

    /// Offers the sender of a packet the route without the nodes that this one did not need: it
    /// heard the packet before its turn (RFC 4728 §3.4.3).
    fn offer_shorter(
        &mut self,
        now: Instant,
        route: &[NodeId],
        (from, at): (usize, usize),
        out: &mut Actions,
    ) {
        self.offered.retain(|(.., until)| *until > now);
        let key = (route[0], route[from]);
        if self.offered.iter().any(|&(to, because, _)| (to, because) == key) {
            return;
        }
        self.offered.push((key.0, key.1, now + self.config.grat_reply_holdoff));
        let route = route[..=from].iter().chain(&route[at..]).copied().collect();
        self.reply(Reply { route, replier: self.node }, out);
    }
}

/// The place of a node on a route.
fn place(route: &[NodeId], node: NodeId) -> Option<usize> {
    route.iter().position(|&other| other == node)
}

/// The node in front of another on a route.
fn before(route: &[NodeId], node: NodeId) -> Option<NodeId> {
    Some(route[place(route, node)?.checked_sub(1)?])
}

impl Router for Dsr {
    fn on_packet(
        &mut self,
        context: &Context<'_>,
        from: Option<NodeId>,
        packet: Packet,
        out: &mut Actions,
    ) {
        match (packet, from) {
            (Packet::Data(data), Some(from)) => self.on_data(context.now, from, data, out),
            (Packet::Data(data), None) if data.destination == self.node => out.deliver(data),
            (Packet::Data(data), None) => self.send(context.now, data, out),
            (Packet::Control(message), _) => self.on_message(context.now, message, out),
        }
    }

    fn overhears(&self) -> bool {
        self.config.overhear
    }

    fn on_overheard(
        &mut self,
        context: &Context<'_>,
        from: NodeId,
        _: NodeId,
        packet: &Packet,
        out: &mut Actions,
    ) {
        let now = context.now;
        match packet {
            Packet::Data(data) => {
                let Some(header) =
                    data.header.as_deref().and_then(|header| header.downcast_ref::<SourceRoute>())
                else {
                    return;
                };
                let route = &header.route;
                // The source has a route as good as the one this node was about to offer.
                self.later.retain(|later| {
                    !matches!(&*later.message, Message::Reply(reply)
                        if reply.route.first() == route.first()
                            && reply.route.last() == route.last()
                            && reply.route.len() >= route.len())
                });
                let Some(from) = place(route, from) else { return };
                match place(route, self.node) {
                    Some(at) if at > from + 1 => self.offer_shorter(now, route, (from, at), out),
                    _ => self.learn_overheard(now, route, from, out),
                }
            }
            Packet::Control(message) => match message.downcast_ref() {
                Some(Message::Reply(reply)) => {
                    let Some(from) = place(&reply.route, from) else { return };
                    self.learn_overheard(now, &reply.route, from, out);
                }
                Some(Message::Error(error)) => self.on_lost_link(now, error.broken, out),
                _ => {}
            },
        }
    }

    fn on_link_failure(
        &mut self,
        context: &Context<'_>,
        failure: LinkFailure<'_>,
        out: &mut Actions,
    ) {
        let now = context.now;
        let broken = (self.node, failure.neighbour);
        self.on_lost_link(now, broken, out);
        let mut told = Vec::new();
        for data in failure.data() {
            self.on_returned(now, broken, data, &mut told, out);
        }
    }

    fn on_timer(&mut self, context: &Context<'_>, out: &mut Actions) {
        let now = context.now;
        for later in self.later.extract_if(.., |later| later.at <= now) {
            out.control(later.message, later.to);
        }
        self.buffer.expire(now, out);
        let mut at = 0;
        while at < self.searches.len() {
            if self.searches[at].until > now || self.advance(now, at, out) {
                at += 1;
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let later = self.later.iter().map(|later| later.at);
        let searches = self.searches.iter().map(|search| search.until);
        later.chain(searches).chain(self.buffer.deadline()).min()
    }
}
