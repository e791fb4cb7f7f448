//! A-MPDUs and their block ACKs (IEEE Std 802.11-2020, §9.7, §10.12 and §10.25), as a part of
//! [`Dcf`].
//!
//! The sender numbers the packets to each receiver. An A-MPDU holds those that are unacknowledged,
//! filled up with waiting ones for the same receiver; it asks for a block ACK itself (implicit block
//! ACK request). What the block ACK lacks is sent again, up to the short retry limit. The receiver
//! releases packets in order. When the sender gives one up, the receiver goes on behind it at once:
//! this stands for the block ACK request that would tell it so.
//!
//! One MPDU alone is acknowledged by an ACK.

use crate::wifi::dcf::{Dcf, Effects, Job};
use crate::wifi::frame::{self, BlockAck, Body, SentMpdu};
use crate::wifi::phy::Aggregation;
use crate::wifi::rules::Rules;
use crate::wifi::station::{Receiver, StationId};
use airtcp_core::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// MPDU delimiter, in front of each MPDU (§9.7.1).
const DELIMITER: Bytes = Bytes(4);

impl Aggregation {
    /// Length of a block ACK.
    pub(super) fn block_ack(&self) -> Bytes {
        if self.window > 64 { frame::LONG_BLOCK_ACK } else { frame::BLOCK_ACK }
    }

    /// Length of so many MPDUs as one frame. Each but the last is padded to a multiple of four bytes
    /// with its delimiter; `padded` is the length of those, `last` that of the last MPDU.
    fn length(&self, padded: Bytes, last: Bytes) -> Bytes {
        if padded == Bytes::ZERO && !self.always_delimited {
            last
        } else {
            padded + DELIMITER + last
        }
    }
}

/// Length of an MPDU with its delimiter and padding.
fn subframe(mpdu: Bytes) -> Bytes {
    Bytes((DELIMITER + mpdu).get().next_multiple_of(DELIMITER.get()))
}

/// An MPDU of an A-MPDU on the air.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mpdu<T> {
    pub(crate) packet: T,
    pub(crate) waited: Duration,
    sequence: u32,
    size: Bytes,
    /// Its receiver has found no error in it.
    pub(crate) intact: bool,
}

impl<T> Mpdu<T> {
    /// Its part of all MPDUs of a frame whose length is `size`.
    pub(crate) fn share(&self, size: Bytes) -> f64 {
        self.size.get() as f64 / size.get() as f64
    }
}

/// A station's A-MPDUs.
#[derive(Clone, Debug)]
pub(super) struct Aggregates<T> {
    /// The MPDUs of the A-MPDU being sent, in the order of their numbers. Empty while a packet is
    /// sent otherwise.
    batch: Vec<Job<T>>,
    /// Failed attempts of the MPDU with the most.
    most_attempts: u32,
    /// A packet for another receiver, which a queue discipline gave out.
    aside: Option<Job<T>>,
    /// Number of the next packet to each station, in the order of the stations.
    next: Vec<(StationId, u32)>,
    /// Packets from each station, in the order of the stations.
    reorder: Vec<(StationId, Reorder<T>)>,
}

impl<T: Copy> Aggregates<T> {
    pub(super) fn none() -> Self {
        Self {
            batch: Vec::new(),
            most_attempts: 0,
            aside: None,
            next: Vec::new(),
            reorder: Vec::new(),
        }
    }

    /// Number of MPDUs to send together.
    pub(super) fn mpdus(&self) -> usize {
        self.batch.len()
    }

    pub(super) fn most_attempts(&self) -> u32 {
        self.most_attempts
    }

    pub(super) fn first(&self) -> Option<Job<T>> {
        self.batch.first().copied()
    }

    pub(super) fn take_aside(&mut self) -> Option<Job<T>> {
        self.aside.take()
    }

    pub(super) fn aside_len(&self) -> usize {
        usize::from(self.aside.is_some())
    }

    /// The A-MPDU as the body of a frame, if there is one to send.
    pub(super) fn body(&self) -> Option<Body<T>> {
        let first = self.batch.first()?;
        let undelivered = (!first.delivered).then_some(first.packet);
        Some(Body::Ampdu { first: undelivered, mpdus: self.batch.len() })
    }

    /// Number of the next packet to a station.
    fn next_number(&mut self, to: StationId) -> &mut u32 {
        let place = self.next.binary_search_by_key(&to, |&(station, _)| station);
        let place = place.unwrap_or_else(|place| {
            self.next.insert(place, (to, 0));
            place
        });
        &mut self.next[place].1
    }

    /// Adds a packet to the A-MPDU.
    fn push(&mut self, to: StationId, mut job: Job<T>) {
        let next = self.next_number(to);
        job.sequence = *next;
        *next = next.wrapping_add(1);
        self.batch.push(job);
    }

    /// True if one more packet to a station is within the window.
    fn has_room(&mut self, to: StationId, window: u32) -> bool {
        let next = *self.next_number(to);
        self.batch.first().is_none_or(|oldest| next.wrapping_sub(oldest.sequence) < window)
    }
}

impl<T: Copy> Dcf<T> {
    /// Fills up the A-MPDU to send, which may take so much time, if the current packet goes in one.
    pub(super) fn assemble(
        &mut self,
        now: Instant,
        rules: &Rules,
        time: Duration,
        out: &mut Effects<T>,
    ) {
        let (Some(limits), Some(current)) = (&rules.phy.aggregation, self.traffic.current) else {
            return;
        };
        let Receiver::Station(to) = current.to else { return };
        if self.traffic.aggregates.batch.is_empty() {
            self.traffic.aggregates.push(to, current);
        }
        let mut padded = Bytes::ZERO;
        let mut length = Bytes::ZERO;
        for job in &self.traffic.aggregates.batch {
            length = limits.length(padded, job.size);
            padded += subframe(job.size);
        }
        let mode = &rules.phy.unicast;
        let mut place = 0;
        while self.traffic.aggregates.has_room(to, limits.window)
            && let Some(size) = self.waiting_for(now, current.to, &mut place, out)
        {
            let longer = limits.length(padded, size);
            if longer > limits.length || mode.duration(longer) > time.min(limits.time) {
                break;
            }
            let Some(job) = self.take_waiting(now, place) else { break };
            self.traffic.aggregates.push(to, job);
            length = longer;
            padded += subframe(size);
        }
        let Aggregates { batch, most_attempts, .. } = &mut self.traffic.aggregates;
        *most_attempts = batch.iter().map(|job| job.attempts).max().unwrap_or(0);
        self.traffic.current = batch.first().copied();
        if let Some(current) = &mut self.traffic.current {
            (current.size, current.duration) = (length, mode.duration(length));
        }
    }

    /// Size of the MPDU of the next waiting packet for a receiver: in a drop-tail queue the first
    /// from `place` on, which becomes its place; a discipline gives out packets in its own order.
    fn waiting_for(
        &mut self,
        now: Instant,
        to: Receiver,
        place: &mut usize,
        out: &mut Effects<T>,
    ) -> Option<Bytes> {
        if self.traffic.discipline.is_some() {
            self.traffic.aggregates.aside = self.take_from_queue(now, out);
            let aside = self.traffic.aggregates.aside?;
            return (aside.to == to).then_some(aside.size);
        }
        let mut waiting = self.traffic.queue.iter().enumerate().skip(*place);
        let (found, job) = waiting.find(|(_, job)| job.to == to)?;
        *place = found;
        Some(job.size)
    }

    /// Takes the packet that [`Self::waiting_for`] has found.
    fn take_waiting(&mut self, now: Instant, place: usize) -> Option<Job<T>> {
        match self.traffic.discipline {
            Some(_) => self.traffic.aggregates.take_aside(),
            None => self.take_from_middle(now, place),
        }
    }

    /// The MPDUs of the A-MPDU to send, for the air.
    pub(crate) fn mpdus(&self) -> Vec<Mpdu<T>> {
        let mpdu = |&Job { packet, waited, sequence, size, .. }: &Job<T>| Mpdu {
            packet,
            waited,
            sequence,
            size,
            intact: false,
        };
        self.traffic.aggregates.batch.iter().map(mpdu).collect()
    }

    /// The MPDUs of the A-MPDU to send, for a monitor.
    pub(crate) fn sent_mpdus(&self) -> Vec<SentMpdu<T>> {
        let mpdu = |job: &Job<T>| SentMpdu {
            packet: (!job.delivered).then_some(job.packet),
            sequence: job.sequence,
            retry: job.attempts > 0,
            size: job.size,
        };
        self.traffic.aggregates.batch.iter().map(mpdu).collect()
    }

    /// The answer to the A-MPDU that this MAC has sent.
    pub(crate) fn block_ack(&self) -> BlockAck {
        let batch = &self.traffic.aggregates.batch;
        let received = batch.iter().filter(|job| job.delivered).map(|job| job.sequence);
        BlockAck {
            start: batch.first().map_or(0, |job| job.sequence),
            received: received.collect(),
        }
    }

    /// The receiver has the MPDU at this place of the A-MPDU; this MAC learns it only from the block
    /// ACK.
    pub(crate) fn mark_mpdu_delivered(&mut self, place: usize) {
        self.traffic.aggregates.batch[place].delivered = true;
    }

    /// An attempt is over. If it was answered, what has been received is done with; what is left has
    /// failed. True if MPDUs were given up.
    pub(super) fn settle(&mut self, rules: &Rules, answered: bool, out: &mut Effects<T>) -> bool {
        let limit = rules.attempts(rules.mac.short_retry_limit);
        let Some(to) = self.traffic.aggregates.first().map(|job| job.to) else { return false };
        let counters = &mut self.traffic.counters;
        let mut gave_up = false;
        self.traffic.aggregates.batch.retain_mut(|job| {
            if answered && job.delivered {
                return false;
            }
            job.attempts = job.attempts.saturating_add(1);
            if job.attempts < limit {
                counters.retries += 1;
                return true;
            }
            gave_up = true;
            if !job.delivered {
                counters.mac_drops += 1;
                out.lost.push(job.packet);
            }
            false
        });
        self.traffic.aggregates.most_attempts = 0;
        if let (Receiver::Station(to), true) = (to, gave_up) {
            let next = *self.traffic.aggregates.next_number(to);
            let start = self.traffic.aggregates.first().map_or(next, |job| job.sequence);
            out.skip = Some((to, start));
        }
        gave_up
    }

    /// An intact MPDU from a station: adds the packets that are now in order to `released`.
    pub(crate) fn accept(&mut self, from: StationId, mpdu: &Mpdu<T>, released: &mut Released<T>) {
        let duplicate = !self.reorder(from).accept(mpdu, released);
        self.traffic.counters.duplicates += u64::from(duplicate);
    }

    /// A station has given up all packets before number `start` that have not arrived.
    pub(crate) fn skip_to(&mut self, from: StationId, start: u32, released: &mut Released<T>) {
        self.reorder(from).skip_to(start, released);
    }

    fn reorder(&mut self, from: StationId) -> &mut Reorder<T> {
        let reorder = &mut self.traffic.aggregates.reorder;
        let place = reorder.binary_search_by_key(&from, |&(station, _)| station);
        let place = place.unwrap_or_else(|place| {
            reorder.insert(place, (from, Reorder { start: 0, held: VecDeque::new() }));
            place
        });
        &mut reorder[place].1
    }
}

/// Packets, each with the time that it spent in the sender's queue.
pub(crate) type Released<T> = Vec<(T, Duration)>;

/// A receiver's packets from one station (§10.25.6.6).
#[derive(Clone, Debug)]
struct Reorder<T> {
    /// Number of the first packet that has neither been released nor given up.
    start: u32,
    /// From that one on, what has arrived.
    held: VecDeque<Option<(T, Duration)>>,
}

impl<T: Copy> Reorder<T> {
    /// False if the packet has arrived before.
    fn accept(&mut self, mpdu: &Mpdu<T>, released: &mut Released<T>) -> bool {
        let ahead = mpdu.sequence.wrapping_sub(self.start);
        if ahead > u32::MAX / 2 {
            return false;
        }
        let place = ahead as usize;
        if place >= self.held.len() {
            self.held.resize(place + 1, None);
        }
        if self.held[place].is_some() {
            return false;
        }
        self.held[place] = Some((mpdu.packet, mpdu.waited));
        self.release(released);
        true
    }

    fn skip_to(&mut self, start: u32, released: &mut Released<T>) {
        while self.start != start && start.wrapping_sub(self.start) < u32::MAX / 2 {
            released.extend(self.held.pop_front().flatten());
            self.start = self.start.wrapping_add(1);
        }
        self.release(released);
    }

    fn release(&mut self, released: &mut Released<T>) {
        while let Some(Some(_)) = self.held.front() {
            released.extend(self.held.pop_front().flatten());
            self.start = self.start.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mpdu(sequence: u32) -> Mpdu<u32> {
        let waited = Duration::ZERO;
        Mpdu { packet: sequence, waited, sequence, size: Bytes(1), intact: true }
    }

    fn accept(reorder: &mut Reorder<u32>, sequence: u32) -> (bool, Vec<u32>) {
        let mut released = Vec::new();
        let new = reorder.accept(&mpdu(sequence), &mut released);
        (new, released.into_iter().map(|(packet, _)| packet).collect())
    }

    #[test]
    fn packets_are_released_in_order_and_once() {
        let mut reorder = Reorder { start: 0, held: VecDeque::new() };
        assert_eq!(accept(&mut reorder, 1), (true, vec![]));
        assert_eq!(accept(&mut reorder, 3), (true, vec![]));
        assert_eq!(accept(&mut reorder, 1), (false, vec![]));
        assert_eq!(accept(&mut reorder, 0), (true, vec![0, 1]));
        assert_eq!(accept(&mut reorder, 0), (false, vec![]));
        let mut released = Vec::new();
        reorder.skip_to(3, &mut released);
        assert_eq!(released, [(3, Duration::ZERO)]);
        assert_eq!(reorder.start, 4);
    }

    #[test]
    fn the_numbers_of_packets_wrap() {
        let mut reorder = Reorder { start: u32::MAX, held: VecDeque::new() };
        assert_eq!(accept(&mut reorder, 0), (true, vec![]));
        assert_eq!(accept(&mut reorder, u32::MAX), (true, vec![u32::MAX, 0]));
    }

    #[test]
    fn each_mpdu_but_the_last_is_padded() {
        // 1538 B and a delimiter: 1542, padded to 1544.
        assert_eq!(subframe(Bytes(1538)), Bytes(1544));
        let limits = |always_delimited| Aggregation {
            length: Bytes(65_535),
            time: Duration::from_micros(5_484),
            window: 64,
            always_delimited,
        };
        assert_eq!(limits(false).length(Bytes(1544), Bytes(1538)), Bytes(3086));
        // Alone, only VHT and HE have a delimiter.
        assert_eq!(limits(false).length(Bytes::ZERO, Bytes(1538)), Bytes(1538));
        assert_eq!(limits(true).length(Bytes::ZERO, Bytes(1538)), Bytes(1542));
    }
}
