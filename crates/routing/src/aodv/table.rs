//! The routing table of AODV (RFC 3561 §6.1 and §6.2).
//!
//! Each entry ranks by its sequence number, then by its distance. Whatever happens to an entry, its
//! rank never decreases as long as the entry is remembered, if an invalid one counts as the
//! sequence number before its own. A node takes a route only from a neighbour that ranks higher, so
//! the ranks rise along every path and no path is a loop. Where the RFC leaves room or would lower
//! a rank, this table is stricter (van Glabbeek, Höfner, Tan and Portmann, MSWiM 2013, list the
//! readings that loop):
//!
//! - a route that expires counts as broken: its sequence number is incremented;
//! - a route error increments the sequence number at least by one, even if it names a smaller one;
//! - a request replaces the route to its originator only by the rules for replies;
//! - data renews the route back to its source only if it came from the next hop of that route.

use crate::NodeId;
use crate::node_map::NodeMap;
use airtcp_core::{Duration, Instant, SeqNum};

/// A route to one destination.
#[derive(Debug)]
pub(super) struct Route {
    /// The newest known sequence number of the destination.
    pub(super) seq: Option<SeqNum>,
    pub(super) hops: u16,
    /// Length of the route that was lost last; `u16::MAX` if none was.
    pub(super) lost_hops: u16,
    pub(super) next_hop: NodeId,
    pub(super) valid: bool,
    /// Until when it is valid, or, if it is not, until when it is remembered.
    pub(super) until: Instant,
    /// The neighbours that may use it through this node.
    pub(super) precursors: Vec<NodeId>,
    /// Packets of this node's own have taken it.
    pub(super) used: bool,
    /// It is under repair in the way of ns-2: it stays valid, but packets wait for a better one.
    pub(super) held: bool,
}

/// A message's statement about a route.
#[derive(Clone, Copy)]
pub(super) struct Claim {
    pub(super) seq: SeqNum,
    pub(super) hops: u16,
    pub(super) next_hop: NodeId,
    pub(super) until: Instant,
}

impl Route {
    fn invalidate(&mut self, until: Instant) {
        self.valid = false;
        self.held = false;
        self.lost_hops = self.hops;
        self.seq = self.seq.map(|seq| seq + 1);
        self.until = until;
    }

    /// True if it is remembered; a route under repair does not expire.
    fn is_known(&self, now: Instant) -> bool {
        self.until > now || self.held
    }

    fn is_better(&self, claim: &Claim) -> bool {
        self.seq.is_none_or(|known| {
            let shorter = !self.valid || claim.hops < self.hops;
            claim.seq.after(known) || claim.seq == known && shorter
        })
    }

    pub(super) fn add_precursor(&mut self, node: NodeId) {
        if !self.precursors.contains(&node) {
            self.precursors.push(node);
        }
    }
}

#[derive(Debug)]
pub(super) struct Table {
    routes: NodeMap<Route>,
    delete_period: Duration,
    next_sweep: Instant,
}

/// Forgotten entries are removed at most this often.
const SWEEP: Duration = Duration::from_secs(1);

impl Table {
    pub(super) fn new(delete_period: Duration) -> Self {
        Self { routes: NodeMap::new(), delete_period, next_sweep: Instant::ZERO }
    }

    /// The entry of a destination as it is now; `None` if there is none, or no longer.
    pub(super) fn get(&mut self, now: Instant, destination: NodeId) -> Option<&mut Route> {
        let route = self.routes.get_mut(destination)?;
        if !route.is_known(now) && route.valid {
            route.invalidate(route.until + self.delete_period);
            route.precursors.clear();
            route.used = false;
        }
        route.is_known(now).then_some(route)
    }

    /// The valid route to a destination.
    pub(super) fn valid(&mut self, now: Instant, destination: NodeId) -> Option<&mut Route> {
        self.get(now, destination).filter(|route| route.valid)
    }

    /// The next hop of the valid route to a destination.
    pub(super) fn next_hop(&self, now: Instant, destination: NodeId) -> Option<NodeId> {
        let route = self.routes.get(destination)?;
        (route.valid && route.is_known(now)).then_some(route.next_hop)
    }

    fn insert(&mut self, now: Instant, destination: NodeId, seq: Option<SeqNum>, claim: &Claim) {
        if self.next_sweep <= now {
            let delete_period = self.delete_period;
            self.routes.retain(|route| {
                let valid_after = if route.valid { delete_period } else { Duration::ZERO };
                route.is_known(now) || route.until + valid_after > now
            });
            self.next_sweep = now + SWEEP;
        }
        let &Claim { hops, next_hop, until, .. } = claim;
        let precursors = Vec::new();
        let route = Route {
            seq,
            hops,
            lost_hops: u16::MAX,
            next_hop,
            valid: true,
            until,
            precursors,
            used: false,
            held: false,
        };
        self.routes.insert(destination, route);
    }

    /// Takes a route if it is better than what is known (RFC 3561 §6.2); says whether it did.
    pub(super) fn learn(&mut self, now: Instant, destination: NodeId, claim: Claim) -> bool {
        let Some(route) = self.get(now, destination) else {
            self.insert(now, destination, Some(claim.seq), &claim);
            return true;
        };
        let better = route.is_better(&claim);
        if better {
            route.seq = Some(claim.seq);
            route.hops = claim.hops;
            route.next_hop = claim.next_hop;
            route.valid = true;
            route.held = false;
            route.until = claim.until;
        }
        better
    }

    /// Takes note of a neighbour, perhaps with its sequence number; says whether the route to it
    /// was not usable before. A direct link is as good as any route: it ends at the destination.
    pub(super) fn learn_neighbour(
        &mut self,
        now: Instant,
        neighbour: NodeId,
        seq: Option<SeqNum>,
        until: Instant,
    ) -> bool {
        let Some(route) = self.get(now, neighbour) else {
            let claim = Claim { seq: SeqNum(0), hops: 1, next_hop: neighbour, until };
            self.insert(now, neighbour, seq, &claim);
            return true;
        };
        route.seq = match (route.seq, seq) {
            (Some(known), Some(new)) => Some(known.later(new)),
            (known, new) => known.or(new),
        };
        let renewed = route.valid;
        let held = std::mem::take(&mut route.held);
        route.until = if renewed { route.until.max(until) } else { until };
        route.valid = true;
        route.hops = 1;
        route.next_hop = neighbour;
        !renewed || held
    }

    /// Renews the route to a node that a neighbour passes packets of, or takes packets for, until
    /// `until` (RFC 3561 §6.2). An invalid route is remembered longer instead: somebody still uses
    /// it.
    pub(super) fn renew(&mut self, now: Instant, node: NodeId, via: NodeId, until: Instant) {
        let forget = now + self.delete_period;
        let Some(route) = self.get(now, node) else { return };
        if !route.valid {
            route.until = route.until.max(forget);
        } else if route.next_hop == via {
            route.until = route.until.max(until);
        }
    }

    /// Invalidates the routes through a lost neighbour, and lists their destinations in ascending
    /// order.
    pub(super) fn break_link(&mut self, now: Instant, neighbour: NodeId) -> Vec<NodeId> {
        let forget = now + self.delete_period;
        let mut broken = Vec::new();
        for (destination, route) in self.routes.iter_mut() {
            route.precursors.retain(|&node| node != neighbour);
            if route.valid && route.is_known(now) && route.next_hop == neighbour {
                route.invalidate(forget);
                broken.push(destination);
            }
        }
        broken.sort_unstable();
        broken
    }

    /// Invalidates a valid route because its next hop reported `seq` as unreachable (RFC 3561
    /// §6.11, case iii).
    pub(super) fn fail(&mut self, now: Instant, destination: NodeId, seq: Option<SeqNum>) {
        let forget = now + self.delete_period;
        let Some(route) = self.valid(now, destination) else { return };
        route.invalidate(forget);
        route.seq = match (route.seq, seq) {
            (Some(own), Some(reported)) => Some(own.later(reported)),
            (own, reported) => own.or(reported),
        };
    }
}
