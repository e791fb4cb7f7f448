//! Where several links lead to one: their packets, in the order in which they will arrive.

use crate::engine::Key;
use airtcp_core::{Duration, Instant};
use airtcp_routing::LinkId;
use airtcp_routing::router::PacketId;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The packets that will be offered to one link, from their acceptance by the links that feed it to
/// a time at which nothing else can arrive before them.
#[derive(Debug)]
pub(super) struct Junction {
    /// The link behind the junction.
    pub(super) link: LinkId,
    /// Lower bound on the time a packet takes to arrive.
    lookahead: Duration,
    /// With the key of the wake-up that each would have had; ascending.
    ordered: VecDeque<(Key, PacketId)>,
    /// Those that came too late to stand in their place there.
    others: BinaryHeap<Reverse<(Key, PacketId)>>,
}

impl Junction {
    /// In front of `link`. A packet accepted at `t` by a link that feeds it arrives later than
    /// `t + lookahead`.
    pub(super) fn new(link: LinkId, lookahead: Duration) -> Self {
        Self { link, lookahead, ordered: VecDeque::new(), others: BinaryHeap::new() }
    }

    /// Adds a packet. Returns when to call [`Junction::next`] for it at the latest: before anything
    /// else happens at its arrival.
    #[inline]
    pub(super) fn add(&mut self, key: Key, packet: PacketId) -> Instant {
        match self.ordered.back() {
            Some(&(last, _)) if key < last => self.others.push(Reverse((key, packet))),
            _ => self.ordered.push_back((key, packet)),
        }
        before(key)
    }

    /// The next packet, with its arrival, if nothing offered from `now` on can arrive before it.
    #[inline]
    pub(super) fn next(&mut self, now: Instant) -> Option<(Instant, PacketId)> {
        let due = |key: Key| key.time() <= now + self.lookahead;
        let first = self.ordered.front().copied();
        let (key, packet) = match self.others.peek() {
            Some(&Reverse(other)) if first.is_none_or(|first| other < first) => {
                due(other.0).then(|| self.others.pop())?;
                other
            }
            _ => {
                let first = first.filter(|&(key, _)| due(key))?;
                self.ordered.pop_front();
                first
            }
        };
        Some((key.time(), packet))
    }

    /// The time at which to call [`Junction::next`] again.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let ordered = self.ordered.front().map(|&(key, _)| key);
        let other = self.others.peek().map(|&Reverse((key, _))| key);
        ordered.into_iter().chain(other).min().map(before)
    }
}

/// The last instant before an arrival.
fn before(key: Key) -> Instant {
    Instant::from_nanos(key.time().as_nanos().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ComponentId;

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    fn arriving(at: u64, since: u64, link: u32) -> Key {
        Key::new(ms(at), ms(since), ComponentId(link))
    }

    #[test]
    fn packets_leave_in_the_order_of_the_wake_ups_they_replace() {
        let mut junction = Junction::new(LinkId(0), Duration::from_millis(5));
        let keys = [
            arriving(9, 1, 3),
            arriving(12, 2, 1),
            arriving(8, 4, 2),
            arriving(12, 2, 0),
            arriving(12, 1, 7),
        ];
        for (packet, key) in (0..).zip(keys) {
            junction.add(key, PacketId(packet));
        }
        let order = std::iter::from_fn(|| junction.next(ms(10))).map(|(at, PacketId(n))| (at, n));
        let expected = [(8, 2), (9, 0), (12, 4), (12, 3), (12, 1)];
        assert_eq!(order.collect::<Vec<_>>(), expected.map(|(at, n)| (ms(at), n)));
    }

    #[test]
    fn a_packet_waits_until_no_other_can_arrive_before_it() {
        let mut junction = Junction::new(LinkId(0), Duration::from_millis(5));
        assert_eq!(junction.next_deadline(), None);
        let latest = junction.add(arriving(16, 3, 1), PacketId(0));
        assert_eq!(junction.next(ms(10)), None);
        assert_eq!(junction.next_deadline(), Some(latest));
        assert!(latest < ms(16));
        assert_eq!(junction.next(ms(11)), Some((ms(16), PacketId(0))));
    }
}
