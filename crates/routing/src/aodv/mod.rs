//! AODV, ad hoc on-demand distance vector routing (RFC 3561).
//!
//! Read RFC 3561 §6 first. `table.rs` holds the routes and the rule by which a node takes or
//! refuses one; `search.rs` the searches of a node for routes; `message.rs` the messages. This file
//! says what each packet, message, broken link and timer does to them.
//!
//! Not modelled: RREP-ACK (§6.7: the link layer acknowledges), multicast (§4), actions after a
//! reboot (§6.13), interfaces (§6.14). A node answers with the distance it knows; the host counts
//! down the TTL of data packets.

mod config;
mod message;
mod search;
mod table;

pub use config::{
    AodvConfig, ErrorsTo, LinkDetection, LocalRepair, Preset, ReplyWait, glomosim, ns2,
};
pub use message::{Error, Hello, Message, Reply, Request};

use crate::NodeId;
use crate::buffer::Buffer;
use crate::router::{self, Actions, Context, Data, LinkFailure, NextHop, Notice, Packet, Router};
use crate::seen::Seen;
use airtcp_core::event::DropReason;
use airtcp_core::{Duration, Instant, SeqNum, Stream};
use search::{Latencies, RateLimit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use table::{Claim, Table};

/// AODV on one node. What each message needs comes first, on few cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Aodv {
    node: NodeId,
    /// This node's own sequence number.
    seq: SeqNum,
    config: Arc<AodvConfig>,
    /// Neighbours that do not hear this node, and until when to ignore their requests (§6.8).
    blacklist: Vec<(NodeId, Instant)>,
    /// Broadcasts to be relayed.
    later: Vec<(Instant, Arc<dyn router::Message>)>,
    searches: Vec<Search>,
    /// Packets that left the buffer and follow others, each with its next hop.
    spaced: Vec<(Instant, NodeId, Data)>,
    hellos: Hellos,
    buffer: Buffer,
    table: Table,
    seen: Seen,
    jitter: Stream,
    last_request: u32,
    latencies: Latencies,
    /// Hops that the latest request for each destination went, or, once there is a route, its
    /// length.
    rings: BTreeMap<NodeId, u16>,
    requests: RateLimit,
    errors: RateLimit,
    /// Destinations reported to transport as having no route.
    lost: BTreeSet<NodeId>,
}

/// HELLO messages, sent and received.
#[derive(Debug, Default)]
struct Hellos {
    /// The node is part of an active route until then.
    active_until: Instant,
    next: Option<Instant>,
    /// The neighbours that send them, and when each counts as gone.
    neighbours: BTreeMap<NodeId, Instant>,
}

/// A search for a route.
#[derive(Clone, Copy, Debug)]
struct Search {
    destination: NodeId,
    ttl: u16,
    /// Repeated searches of the whole network.
    retries: u16,
    phase: Phase,
    /// End of the phase.
    until: Instant,
    /// Time from which a reply to it no longer counts as on its way.
    overdue: Instant,
    /// In a local repair, the length of the route that broke.
    repair: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The next request is to be sent.
    Ready,
    /// A request is out.
    Waiting,
    /// It failed; no new one starts.
    Paused,
}

impl Aodv {
    /// AODV on `node`. `jitter` delays the broadcasts that the node relays.
    pub fn new(node: NodeId, config: Arc<AodvConfig>, jitter: Stream) -> Self {
        Self {
            node,
            jitter,
            seq: SeqNum(0),
            last_request: 0,
            table: Table::new(config.delete_period),
            seen: Seen::default(),
            searches: Vec::new(),
            buffer: Buffer::new(config.buffer_packets, config.buffer_timeout),
            later: Vec::new(),
            spaced: Vec::new(),
            latencies: Latencies::default(),
            rings: BTreeMap::new(),
            requests: RateLimit::new(config.rreq_ratelimit),
            errors: RateLimit::new(config.rerr_ratelimit),
            blacklist: Vec::new(),
            lost: BTreeSet::new(),
            hellos: Hellos::default(),
            config,
        }
    }

    /// Next hop of a packet to this destination at this instant; `None` without a valid route.
    pub fn next_hop(&self, now: Instant, destination: NodeId) -> Option<NodeId> {
        self.table.next_hop(now, destination)
    }

    /// Time for which a neighbour that sends HELLO messages may be silent (§6.10); `None` if nobody
    /// sends them.
    fn allowed_silence(&self) -> Option<Duration> {
        match self.config.link_detection {
            LinkDetection::LinkLayer => None,
            LinkDetection::Hello { hello_interval, allowed_hello_loss } => {
                Some(hello_interval * u64::from(allowed_hello_loss))
            }
        }
    }

    fn on_data(&mut self, now: Instant, from: Option<NodeId>, data: Data, out: &mut Actions) {
        let renewed = now + self.config.active_route_timeout;
        self.hellos.active_until = renewed;
        if let Some(from) = from.filter(|_| self.config.renew_reverse) {
            self.table.renew(now, data.source, from, renewed);
            self.table.renew(now, from, from, renewed);
        }
        if data.destination == self.node {
            return out.deliver(data);
        }
        let destination = data.destination;
        let held = self.table.valid(now, destination).map(|route| route.held);
        match (held, from) {
            (Some(false), _) => self.forward(now, data, out),
            (Some(true), _) | (None, None) => {
                self.buffer.push(now, data, out);
                self.search(now, destination, out);
            }
            (None, Some(_)) if self.is_repairing(destination) => self.buffer.push(now, data, out),
            (None, Some(from)) => {
                self.refuse(now, destination, from, out);
                out.drop(data, DropReason::NoRoute);
            }
        }
    }

    /// Sends a packet along the valid route, which its use renews (§6.2).
    fn forward(&mut self, now: Instant, data: Data, out: &mut Actions) {
        let renewed = now + self.config.active_route_timeout;
        let Some(route) = self.table.valid(now, data.destination) else {
            return out.drop(data, DropReason::NoRoute);
        };
        route.used |= data.source == self.node;
        route.until = route.until.max(renewed);
        let next = route.next_hop;
        if next != data.destination && self.config.renew_reverse {
            self.table.renew(now, next, next, renewed);
        }
        out.send(data, NextHop::Node(next));
    }

    /// Informs the neighbours that may use a route, among them the sender of a packet for it, that
    /// there is none (§6.11, case ii).
    fn refuse(&mut self, now: Instant, destination: NodeId, from: NodeId, out: &mut Actions) {
        let forget = now + self.config.delete_period;
        let (seq, mut audience) = match self.table.get(now, destination) {
            Some(route) => {
                route.until = route.until.max(forget);
                (route.seq, std::mem::take(&mut route.precursors))
            }
            None => (None, Vec::new()),
        };
        if !audience.contains(&from) {
            audience.push(from);
        }
        let error = Error { no_delete: false, unreachable: vec![(destination, seq)] };
        self.send_error(now, error, &audience, false, out);
    }

    /// Sends a route error to one neighbour, or to all if several have to know (§6.11). `relayed`:
    /// because of an error received.
    fn send_error(
        &mut self,
        now: Instant,
        error: Error,
        audience: &[NodeId],
        relayed: bool,
        out: &mut Actions,
    ) {
        let everyone = self.config.errors_to == ErrorsTo::Everyone;
        let heard = !audience.is_empty() || everyone;
        if !heard || error.unreachable.is_empty() || !self.errors.allows(now) {
            return;
        }
        let message = Arc::new(Message::Error(error));
        match *audience {
            [only] if !everyone => out.control(message, NextHop::Node(only)),
            _ if relayed => self.relay(now, message),
            _ => out.control(message, NextHop::Broadcast),
        }
    }

    /// Broadcasts a message a little later.
    fn relay(&mut self, now: Instant, message: Arc<Message>) {
        let at = now + self.random_delay();
        self.later.push((at, message));
    }

    fn random_delay(&mut self) -> Duration {
        self.jitter.duration(Duration::ZERO, self.config.broadcast_jitter)
    }

    /// A route to this destination has become valid.
    fn on_route(&mut self, now: Instant, destination: NodeId, out: &mut Actions) {
        if let Some(at) = self.searches.iter().position(|s| s.destination == destination)
            && let Some(hops_before) = self.searches.swap_remove(at).repair
        {
            self.tell_of_detour(now, destination, hops_before, out);
        }
        if self.lost.remove(&destination) {
            out.notify(Notice::RouteFound(destination));
        }
        let waiting: Vec<Data> = self.buffer.take(|data| data.destination == destination).collect();
        let next = self.table.next_hop(now, destination);
        let mut at = now;
        for data in waiting {
            match next {
                Some(next) if at > now => self.spaced.push((at, next, data)),
                _ => self.forward(now, data, out),
            }
            at += self.config.buffer_spacing;
        }
    }

    /// After a local repair: if the new route is longer, those who use it may look for a better one
    /// (§6.12).
    fn tell_of_detour(
        &mut self,
        now: Instant,
        destination: NodeId,
        hops_before: u16,
        out: &mut Actions,
    ) {
        let Some(route) = self.table.valid(now, destination) else { return };
        if route.hops > hops_before {
            let error = Error { no_delete: true, unreachable: vec![(destination, route.seq)] };
            let audience = route.precursors.clone();
            self.send_error(now, error, &audience, false, out);
        }
    }

    /// Learns a route; says whether it is better than what was known.
    fn learn(&mut self, now: Instant, to: NodeId, claim: Claim, out: &mut Actions) -> bool {
        let learned = self.table.learn(now, to, claim);
        if learned {
            self.remember_ring(to, claim.hops);
            self.on_route(now, to, out);
        }
        learned
    }

    /// Learns that a node is a neighbour, because it sent a message.
    fn learn_neighbour(
        &mut self,
        now: Instant,
        neighbour: NodeId,
        seq: Option<SeqNum>,
        lifetime: Duration,
        out: &mut Actions,
    ) {
        if self.table.learn_neighbour(now, neighbour, seq, now + lifetime) {
            self.on_route(now, neighbour, out);
        }
    }

    fn on_message(&mut self, now: Instant, from: NodeId, message: &Message, out: &mut Actions) {
        if let Message::Request(_) = message {
            self.blacklist.retain(|(_, until)| *until > now);
            if self.blacklist.iter().any(|(node, _)| *node == from) {
                return;
            }
        }
        if let Message::Hello(hello) = message {
            if self.allowed_silence().is_some() {
                self.hellos.neighbours.insert(from, now + hello.lifetime);
            }
            return self.learn_neighbour(now, from, Some(hello.seq), hello.lifetime, out);
        }
        // What a destination says of itself comes first: after the route to it has become valid as
        // one to a neighbour, an equally new reply would be no better, and would not be relayed.
        let of_itself = matches!(message, Message::Reply(reply) if reply.destination == from);
        if self.config.neighbour_routes && !of_itself {
            self.learn_neighbour(now, from, None, self.config.active_route_timeout, out);
        }
        match message {
            Message::Request(request) => self.on_request(now, from, request, out),
            Message::Reply(reply) => self.on_reply(now, from, reply, out),
            Message::Error(error) => self.on_error(now, from, error, out),
            Message::Hello(_) => {}
        }
    }

    /// Handles a route request (§6.5).
    fn on_request(&mut self, now: Instant, from: NodeId, request: &Request, out: &mut Actions) {
        let Request { originator, destination, .. } = *request;
        if originator == self.node {
            return;
        }
        let forget = now + self.config.path_discovery_time();
        if !self.seen.insert(now, (originator, request.id), forget) {
            return;
        }
        let hops = request.hop_count + 1;
        // MinimalLifetime.
        let until = forget - self.config.node_traversal_time * 2 * u64::from(hops);
        let until = self.table.valid(now, originator).map_or(until, |route| route.until.max(until));
        let claim = Claim { seq: request.originator_seq, hops, next_hop: from, until };
        if !self.learn(now, originator, claim, out) {
            self.table.renew(now, originator, from, until);
        }
        if destination == self.node {
            // §6.1: no older than what the originator knows.
            self.seq = self.seq.later(request.destination_seq.unwrap_or(self.seq));
            if self.config.fresh_replies {
                self.seq += 1;
            }
            let reply = Reply {
                hop_count: 0,
                destination,
                destination_seq: self.seq,
                originator,
                lifetime: self.config.my_route_timeout,
                asked: request.asked,
            };
            return self.send_reply(now, reply, out);
        }
        let may_reply = self.config.intermediate_replies && !request.destination_only;
        let known = self.table.get(now, destination);
        let known_seq = known.as_ref().and_then(|route| route.seq);
        let fresh = |seq: SeqNum| request.destination_seq.is_none_or(|s| seq.at_or_after(s));
        if may_reply && known.is_some_and(|route| route.valid) && known_seq.is_some_and(fresh) {
            return self.reply_for(now, request, out);
        }
        if request.ttl > 1 {
            let newer = |seq: SeqNum| request.destination_seq.map_or(seq, |s| s.later(seq));
            let relayed = Request {
                ttl: request.ttl - 1,
                hop_count: hops,
                destination_seq: known_seq.map_or(request.destination_seq, |seq| Some(newer(seq))),
                ..*request
            };
            self.relay(now, Arc::new(Message::Request(relayed)));
        }
    }

    /// Answers a request for another node, to which there is a fresh route (§6.6.2).
    fn reply_for(&mut self, now: Instant, request: &Request, out: &mut Actions) {
        let Request { originator, destination, .. } = *request;
        let Some(back) = self.table.valid(now, originator).map(|back| back.next_hop) else {
            return;
        };
        let Some(route) = self.table.valid(now, destination) else { return };
        let Some(destination_seq) = route.seq else { return };
        route.add_precursor(back);
        let next = route.next_hop;
        let reply = Reply {
            hop_count: route.hops,
            destination,
            destination_seq,
            originator,
            lifetime: route.until.since(now),
            asked: request.asked,
        };
        out.control(Arc::new(Message::Reply(reply)), NextHop::Node(back));
        let Some(route) = self.table.valid(now, originator) else { return };
        route.add_precursor(next);
        let Some(originator_seq) = route.seq.filter(|_| request.gratuitous) else { return };
        // §6.6.3: as if the destination had asked for the originator.
        let gratuitous = Reply {
            hop_count: route.hops,
            destination: originator,
            destination_seq: originator_seq,
            originator: destination,
            lifetime: route.until.since(now),
            asked: request.asked,
        };
        out.control(Arc::new(Message::Reply(gratuitous)), NextHop::Node(next));
    }

    /// Sends a reply of this node's own towards the originator.
    fn send_reply(&mut self, now: Instant, reply: Reply, out: &mut Actions) {
        if let Some(next) = self.table.next_hop(now, reply.originator) {
            out.control(Arc::new(Message::Reply(reply)), NextHop::Node(next));
        }
    }

    /// Handles a route reply (§6.7).
    fn on_reply(&mut self, now: Instant, from: NodeId, reply: &Reply, out: &mut Actions) {
        let Reply { destination, originator, .. } = *reply;
        if destination == self.node {
            return;
        }
        let claim = Claim {
            seq: reply.destination_seq,
            hops: reply.hop_count + 1,
            next_hop: from,
            until: now + reply.lifetime,
        };
        if !self.learn(now, destination, claim, out) {
            return;
        }
        if originator == self.node {
            self.latencies.add(destination, now.since(reply.asked) / u64::from(claim.hops));
            return;
        }
        let renewed = now + self.config.active_route_timeout;
        let Some(back) = self.table.valid(now, originator) else { return };
        let next = back.next_hop;
        back.until = back.until.max(renewed);
        // Data of the destination will take the way back, from there.
        back.add_precursor(from);
        for to in [destination, from] {
            if let Some(route) = self.table.valid(now, to) {
                route.add_precursor(next);
            }
        }
        let reply = Reply { hop_count: reply.hop_count + 1, ..*reply };
        out.control(Arc::new(Message::Reply(reply)), NextHop::Node(next));
    }

    /// §6.11, case iii.
    fn on_error(&mut self, now: Instant, from: NodeId, error: &Error, out: &mut Actions) {
        let mut audience = Vec::new();
        let mut unreachable = Vec::new();
        let mut failed = false;
        for &(destination, seq) in &error.unreachable {
            let through = self.table.valid(now, destination).filter(|r| r.next_hop == from);
            let Some(route) = through else { continue };
            if error.no_delete {
                if !route.precursors.is_empty() {
                    unreachable.push((destination, seq));
                    audience.extend_from_slice(&route.precursors);
                }
                continue;
            }
            self.table.fail(now, destination, seq);
            failed = true;
            self.lose(now, destination, &mut unreachable, &mut audience, true, out);
        }
        audience.sort_unstable();
        audience.dedup();
        if failed && self.config.errors_clear_queue {
            out.clear(from);
        }
        let error = Error { no_delete: error.no_delete, unreachable };
        self.send_error(now, error, &audience, true, out);
    }

    /// Notifies transport of a route that has just been invalidated, and adds it to a route error
    /// if neighbours are to hear of it. `relayed`: because of an error received.
    fn lose(
        &mut self,
        now: Instant,
        destination: NodeId,
        unreachable: &mut Vec<(NodeId, Option<SeqNum>)>,
        audience: &mut Vec<NodeId>,
        relayed: bool,
        out: &mut Actions,
    ) {
        let Some(route) = self.table.get(now, destination) else { return };
        let everyone = self.config.errors_to == ErrorsTo::Everyone && !relayed;
        if !route.precursors.is_empty() || everyone {
            unreachable.push((destination, route.seq));
            audience.append(&mut route.precursors);
        }
        if std::mem::take(&mut route.used) {
            self.lost.insert(destination);
            out.notify(Notice::RouteFailed(destination));
        }
    }

    /// A neighbour is gone (§6.11, case i); what was to go there is repaired, kept or dropped.
    fn on_broken_link(
        &mut self,
        now: Instant,
        neighbour: NodeId,
        returned: impl Iterator<Item = Data>,
        out: &mut Actions,
    ) {
        let broken = self.table.break_link(now, neighbour);
        for data in returned {
            let destination = data.destination;
            if self.table.valid(now, destination).is_some() {
                self.forward(now, data, out);
            } else if data.source == self.node {
                if !self.config.keep_returned {
                    out.drop(data, DropReason::Retries);
                    continue;
                }
                self.buffer.push(now, data, out);
                self.search(now, destination, out);
            } else if self.is_repairing(destination)
                || broken.contains(&destination) && self.repair(now, &data, out)
            {
                self.buffer.push(now, data, out);
            } else {
                out.drop(data, DropReason::Retries);
            }
        }
        let (mut audience, mut unreachable) = (Vec::new(), Vec::new());
        for destination in broken {
            if !self.is_repairing(destination) {
                self.lose(now, destination, &mut unreachable, &mut audience, false, out);
            }
        }
        audience.sort_unstable();
        audience.dedup();
        let error = Error { no_delete: false, unreachable };
        self.send_error(now, error, &audience, false, out);
    }

    /// The next HELLO is due, or neighbours stay silent.
    fn on_hello_timer(&mut self, now: Instant, out: &mut Actions) {
        if self.hellos.next.is_some_and(|next| next <= now) {
            self.hellos.next = None;
            if let Some(lifetime) = self.allowed_silence().filter(|_| self.is_active(now)) {
                let hello = Hello { seq: self.seq, lifetime };
                out.control(Arc::new(Message::Hello(hello)), NextHop::Broadcast);
            }
        }
        while let Some((&gone, _)) = self.hellos.neighbours.iter().find(|(_, at)| **at <= now) {
            self.hellos.neighbours.remove(&gone);
            self.on_broken_link(now, gone, std::iter::empty(), out);
        }
        self.plan_hello(now);
    }

    /// A node on an active route announces itself in every interval (§6.9).
    fn plan_hello(&mut self, now: Instant) {
        let LinkDetection::Hello { hello_interval, .. } = self.config.link_detection else {
            return;
        };
        if self.hellos.next.is_none() && self.is_active(now) {
            let early = self.random_delay();
            self.hellos.next = Some(now + (hello_interval - early));
        }
    }

    fn is_active(&self, now: Instant) -> bool {
        self.hellos.active_until > now
    }
}

impl Router for Aodv {
    fn on_packet(
        &mut self,
        context: &Context<'_>,
        from: Option<NodeId>,
        packet: Packet,
        out: &mut Actions,
    ) {
        let now = context.now;
        if let Some(silence) = self.allowed_silence()
            && let Some(until) = from.and_then(|from| self.hellos.neighbours.get_mut(&from))
        {
            *until = (*until).max(now + silence);
        }
        match (packet, from) {
            (Packet::Data(data), _) => self.on_data(now, from, data, out),
            (Packet::Control(message), Some(from)) => {
                if let Some(message) = message.downcast_ref() {
                    self.on_message(now, from, message, out);
                }
            }
            (Packet::Control(_), None) => {}
        }
        self.plan_hello(now);
    }

    fn on_link_failure(
        &mut self,
        context: &Context<'_>,
        failure: LinkFailure<'_>,
        out: &mut Actions,
    ) {
        let now = context.now;
        if self.allowed_silence().is_some() {
            failure.data().for_each(|data| out.drop(data, DropReason::Retries));
            return;
        }
        let neighbour = failure.neighbour;
        if let Some(Packet::Control(message)) = &failure.tried
            && let Some(Message::Reply(_)) = message.downcast_ref()
        {
            self.blacklist.retain(|(node, _)| *node != neighbour);
            self.blacklist.push((neighbour, now + self.config.blacklist_timeout));
        }
        let leaves_rest = match &failure.tried {
            Some(Packet::Control(_)) => !self.config.messages_detect,
            Some(Packet::Data(data)) => self.is_second_half(now, data),
            None => false,
        };
        if !leaves_rest {
            return self.on_broken_link(now, neighbour, failure.data(), out);
        }
        if let Some(Packet::Data(data)) = failure.tried {
            self.hold(now, data, out);
        }
        let mut messages = Vec::new();
        for packet in failure.waiting {
            match packet {
                Packet::Data(data) => out.send(data, NextHop::Node(neighbour)),
                Packet::Control(message) => messages.push(message),
            }
        }
        // Each goes to the head of the queue.
        for message in messages.into_iter().rev() {
            out.control(message, NextHop::Node(neighbour));
        }
    }

    fn on_timer(&mut self, context: &Context<'_>, out: &mut Actions) {
        let now = context.now;
        for (_, message) in self.later.extract_if(.., |(at, _)| *at <= now) {
            out.control(message, NextHop::Broadcast);
        }
        for (_, next, data) in self.spaced.extract_if(.., |(at, ..)| *at <= now) {
            out.send(data, NextHop::Node(next));
        }
        self.buffer.expire(now, out);
        self.on_search_timer(now, out);
        self.on_hello_timer(now, out);
    }

    fn next_deadline(&self) -> Option<Instant> {
        let later = self.later.iter().map(|(at, _)| *at);
        let searches = self.searches.iter().map(|search| search.until);
        let hellos = self.hellos.next.into_iter().chain(self.hellos.neighbours.values().copied());
        let spaced = self.spaced.iter().map(|(at, ..)| *at);
        later.chain(spaced).chain(searches).chain(self.buffer.deadline()).chain(hellos).min()
    }
}
