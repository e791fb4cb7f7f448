//! Transmit queues: under a queue discipline, one for each receiver and priority, served in turn.
//!
//! Linux has queued like this for Wi-Fi since mac80211 does it without a queueing discipline
//! (`ieee80211_txq`; Høiland-Jørgensen et al., "Ending the Anomaly", USENIX ATC 2017, §3). A frame
//! with many packets needs many for one receiver, so packets are sorted by receiver first; the
//! discipline decides within. Turns go by airtime, not by packets: in each round a queue may spend
//! so much on the frames to its receiver, and on those from it. So a slow receiver does not take the
//! time of the others. What a receiver has sent counts for as long as packets wait for it, and a
//! little longer: it does not pay for hours of an upload with its first download.

use super::{Effects, Job};
use crate::config::QueueConfig;
use crate::queue::{Queue, Server, Waiting};
use crate::wifi::category::UserPriority;
use crate::wifi::station::{Receiver, StationCounters, entry};
use airtcp_core::{Duration, Instant, Stream};
use std::collections::VecDeque;

/// Airtime that a queue gets in each round (Linux `IEEE80211_DEFAULT_AIRTIME_WEIGHT`, in us).
const QUANTUM: i64 = Duration::from_micros(256).as_nanos() as i64;

/// Time after its last packet in which a queue still pays, and has its turns to get out of debt
/// (Linux `AIRTIME_ACTIVE_DURATION`).
const ACTIVE: Duration = Duration::from_millis(100);

/// A receiver, and the priority of packets for it.
type Key = (Receiver, UserPriority);

/// The transmit queues of an access function.
#[derive(Clone, Debug)]
pub(crate) struct TransmitQueues<T> {
    /// In the order of their keys; made when the first packet for the receiver comes.
    queues: Vec<(Key, TransmitQueue<T>)>,
    /// Those with packets, and in debt since they had some ([`ACTIVE`]), in the order of their turns.
    active: VecDeque<Key>,
    /// Number of packets that wait.
    len: usize,
    /// For the streams of the queues.
    seed: u64,
    /// Empty between calls.
    dropped: Vec<Waiting<Job<T>>>,
}

#[derive(Clone, Debug)]
struct TransmitQueue<T> {
    queue: Queue<Job<T>>,
    /// The packet that the discipline has given out, but that no frame has had room for yet.
    next: Option<Job<T>>,
    /// Airtime that it may still spend in this round, in ns. Negative after a frame that was longer,
    /// and after those that its receiver has sent.
    left: i64,
    /// Time at which it last had a packet, if it has none.
    empty_from: Instant,
}

impl<T: Copy> TransmitQueue<T> {
    /// An empty queue, whose random stream is that of the receiver and priority.
    fn new(config: &QueueConfig, (to, priority): Key, seed: u64) -> Self {
        let name = match to {
            Receiver::Station(station) => format!("{}/{}", station.0, priority.get()),
            Receiver::Broadcast => format!("broadcast/{}", priority.get()),
        };
        let queue = Queue::new(config, Stream::new(seed, &name));
        Self { queue, next: None, left: QUANTUM, empty_from: Instant::ZERO }
    }

    fn is_empty(&self) -> bool {
        self.queue.len() == 0 && self.next.is_none()
    }

    /// What is sent to or from its receiver is at its expense.
    fn is_active(&self, now: Instant) -> bool {
        !self.is_empty() || now.since(self.empty_from) <= ACTIVE
    }
}

impl<T: Copy> TransmitQueues<T> {
    pub(super) fn new(mut stream: Stream) -> Self {
        Self {
            queues: Vec::new(),
            active: VecDeque::new(),
            len: 0,
            seed: stream.bits(),
            dropped: Vec::new(),
        }
    }

    /// Number of packets that wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Queues a packet under the discipline of `config`. False if it is dropped at once.
    pub(super) fn enqueue(
        &mut self,
        config: &QueueConfig,
        packet: Waiting<Job<T>>,
        counters: &mut StationCounters,
        out: &mut Effects<T>,
    ) -> bool {
        let now = packet.arrived;
        let key = (packet.item.to, packet.item.priority);
        let Self { queues, seed, dropped, .. } = self;
        let queue = entry(queues, key, || TransmitQueue::new(config, key, *seed));
        let was_empty = queue.is_empty();
        // Whatever the MAC sends meanwhile, to others.
        let idle = was_empty.then(|| now.since(queue.empty_from));
        let server = Server { idle, transmission: packet.item.duration };
        let accepted = queue.queue.enqueue(packet, server, dropped).is_ok();
        if was_empty && !self.active.contains(&key) {
            // First: one that has spent too much goes to the end at once.
            self.active.push_front(key);
        }
        self.len += usize::from(accepted);
        counters.queue_drops += u64::from(!accepted);
        self.report_drops(counters, out);
        if !was_empty {
            self.rest_if_empty(now, key);
        }
        accepted
    }

    /// The next packet of the receiver whose turn it is.
    pub(super) fn take(
        &mut self,
        now: Instant,
        counters: &mut StationCounters,
        out: &mut Effects<T>,
    ) -> Option<Job<T>> {
        while let Some(key) = self.turn(now) {
            if self.peek(now, key, counters, out).is_some() {
                return self.take_peeked(now, key);
            }
        }
        None
    }

    /// The next packet of one queue, which stays in it.
    pub(crate) fn peek(
        &mut self,
        now: Instant,
        key: Key,
        counters: &mut StationCounters,
        out: &mut Effects<T>,
    ) -> Option<&Job<T>> {
        let place = self.place(key)?;
        if self.queues[place].1.is_empty() {
            return None;
        }
        let TransmitQueue { queue, next, .. } = &mut self.queues[place].1;
        if next.is_none()
            && let Some(Waiting { item, marked, .. }) = queue.dequeue(now, &mut self.dropped)
        {
            if marked {
                counters.ecn_marks += 1;
                out.marked.push(item.packet);
            }
            *next = Some(item);
        }
        self.report_drops(counters, out);
        self.rest_if_empty(now, key);
        self.queues[place].1.next.as_ref()
    }

    /// Takes the packet that [`Self::peek`] has shown.
    pub(crate) fn take_peeked(&mut self, now: Instant, key: Key) -> Option<Job<T>> {
        let place = self.place(key)?;
        let mut job = self.queues[place].1.next.take()?;
        job.waited = now.since(job.offered);
        self.len -= 1;
        self.rest_if_empty(now, key);
        Some(job)
    }

    /// A frame to or from the receiver takes so much time.
    pub(super) fn charge(&mut self, now: Instant, key: Key, airtime: Duration) {
        if let Some(place) = self.place(key)
            && let (_, queue) = &mut self.queues[place]
            && queue.is_active(now)
        {
            queue.left -= airtime.as_nanos() as i64;
            // One with packets has its turns already.
            if queue.left < 0 && queue.is_empty() && !self.active.contains(&key) {
                self.active.push_back(key);
            }
        }
    }

    /// The queue whose turn it is. Those that have spent more than they had get some more, and go to
    /// the end.
    fn turn(&mut self, now: Instant) -> Option<Key> {
        if self.len == 0 {
            return None;
        }
        loop {
            let &key = self.active.front()?;
            let first = self.place(key)?;
            let (_, queue) = &self.queues[first];
            if queue.is_empty() && (queue.left >= 0 || !queue.is_active(now)) {
                self.active.pop_front();
                continue;
            }
            if queue.left >= 0 {
                return Some(key);
            }
            // Rounds in which it would be nobody's turn are given to all at once.
            let places = self.active.iter().filter_map(|&key| self.place(key));
            let most = places.map(|place| self.queues[place].1.left).max().unwrap_or(0);
            let rounds = (-most - 1).max(0) / QUANTUM;
            if rounds > 0 {
                for n in 0..self.active.len() {
                    let place = self.place(self.active[n])?;
                    self.queues[place].1.left += rounds * QUANTUM;
                }
            }
            self.queues[first].1.left += QUANTUM;
            self.active.rotate_left(1);
        }
    }

    /// A queue that has just become empty has no turns, unless it is in debt.
    fn rest_if_empty(&mut self, now: Instant, key: Key) {
        if let Some(place) = self.place(key)
            && let (_, queue) = &mut self.queues[place]
            && queue.is_empty()
        {
            queue.empty_from = now;
            if queue.left >= 0 {
                self.active.retain(|&active| active != key);
            }
        }
    }

    fn place(&self, key: Key) -> Option<usize> {
        self.queues.binary_search_by_key(&key, |&(key, _)| key).ok()
    }

    fn report_drops(&mut self, counters: &mut StationCounters, out: &mut Effects<T>) {
        self.len -= self.dropped.len();
        counters.queue_drops += self.dropped.len() as u64;
        out.dropped.extend(self.dropped.drain(..).map(|waiting| waiting.item.packet));
    }
}
