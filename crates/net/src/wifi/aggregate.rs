//! A-MPDUs and their block ACKs (IEEE Std 802.11-2020, §9.7, §10.12 and §10.25), and A-MSDUs
//! (§9.3.2.2 and §10.11), as a part of [`Dcf`].
//!
//! The sender numbers the packets to each receiver, those of each priority separately. An A-MPDU
//! holds those that are unacknowledged, filled up with waiting ones for the same receiver and of the
//! same priority; it asks for a block ACK itself (implicit block ACK request). What the block ACK
//! lacks is sent again, up to the short retry limit. The receiver releases packets in order. When the
//! sender gives one up, the receiver goes on behind it at once: this stands for the block ACK request
//! that would tell it so.
//!
//! An A-MSDU is several packets in one MPDU, with one number and one FCS: all arrive or none. It is
//! filled up before the next MPDU is begun, and stays as it is once it has been sent.
//!
//! One MPDU alone is acknowledged by an ACK. Without A-MPDUs, that is the only case: a window of one
//! MPDU.

use crate::wifi::category::UserPriority;
use crate::wifi::dcf::{Dcf, Effects, Job, Traffic};
use crate::wifi::frame::{self, BlockAck, Body, SentMpdu};
use crate::wifi::phy::{Aggregation, Mode};
use crate::wifi::rules::Rules;
use crate::wifi::station::{Receiver, StationId, entry};
use airtcp_core::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// MPDU delimiter, in front of each MPDU (§9.7.1).
const DELIMITER: Bytes = Bytes(4);
/// Header of an A-MSDU subframe, in front of each MSDU: two addresses and a length (§9.3.2.2.2).
const SUBFRAME_HEADER: Bytes = Bytes(14);
/// The delimiter with its MPDU, and all subframes of an A-MSDU but the last, are padded to a multiple
/// of so many bytes.
const ALIGNMENT: u64 = 4;

impl Aggregation {
    /// Length of a block ACK.
    pub(super) fn block_ack(&self) -> Bytes {
        if self.window > 64 { frame::LONG_BLOCK_ACK } else { frame::BLOCK_ACK }
    }

    /// Length of MPDUs as one frame. Each but the last is padded with its delimiter; `padded` is the
    /// length of those, `last` that of the last MPDU.
    fn length(&self, padded: Bytes, last: Bytes) -> Bytes {
        if padded == Bytes::ZERO && !self.always_delimited {
            last
        } else {
            padded + DELIMITER + last
        }
    }

    /// Length of an A-MSDU with one more packet, of a frame of `size` if it were alone.
    fn longer_amsdu(&self, amsdu: Bytes, size: Bytes) -> Bytes {
        padded(amsdu) + SUBFRAME_HEADER + (size - self.mpdu_overhead)
    }

    /// Length of the MPDU of these packets.
    fn mpdu<T>(&self, packets: &[Job<T>]) -> Bytes {
        match packets {
            [packet] => packet.size,
            packets => self.mpdu_overhead + self.amsdu(packets),
        }
    }

    /// Length of the A-MSDU of these packets.
    fn amsdu<T>(&self, packets: &[Job<T>]) -> Bytes {
        packets.iter().fold(Bytes::ZERO, |before, job| self.longer_amsdu(before, job.size))
    }
}

fn padded(length: Bytes) -> Bytes {
    Bytes(length.get().next_multiple_of(ALIGNMENT))
}

/// Length of an MPDU with its delimiter and padding.
fn subframe(mpdu: Bytes) -> Bytes {
    padded(DELIMITER + mpdu)
}

/// A packet of an A-MPDU or A-MSDU on the air.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Msdu<T> {
    pub(crate) packet: T,
    pub(crate) waited: Duration,
    /// Its number among those to the receiver.
    number: u32,
    /// Length of its MPDU.
    mpdu: Bytes,
    /// It is the first in its MPDU.
    pub(crate) first: bool,
    /// Its receiver has found no error in its MPDU.
    pub(crate) intact: bool,
}

impl<T> Msdu<T> {
    /// The part that its MPDU has of all those of a frame whose length is `size`.
    pub(crate) fn share(&self, size: Bytes) -> f64 {
        self.mpdu.get() as f64 / size.get() as f64
    }
}

/// How an attempt to send a frame ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its RTS had no answer.
    Unsent,
    /// It had no answer.
    Unanswered,
    /// Its receiver has at least a part of it.
    Answered,
}

/// A station and the priority of packets to or from it, which have numbers of their own
/// (§10.3.2.14.2).
pub(crate) type Peer = (StationId, UserPriority);

/// What comes next to a peer.
#[derive(Clone, Copy, Debug)]
struct Next {
    /// Number of the packet.
    packet: u32,
    /// Number of the MPDU.
    mpdu: u32,
}

/// The A-MPDUs and A-MSDUs of an access function.
#[derive(Clone, Debug)]
pub(super) struct Aggregates<T> {
    /// The packets of the frame being sent, in the order of their numbers; behind them those of
    /// earlier frames for which it has no room. Those of an A-MSDU have the same sequence number.
    /// Empty while a packet is sent otherwise.
    batch: Vec<Job<T>>,
    /// Number of packets in the frame, and of its MPDUs.
    packets: usize,
    mpdus: usize,
    /// Failed attempts of the MPDU with the most.
    most_attempts: u32,
    /// In the order of the peers.
    next: Vec<(Peer, Next)>,
}

/// A station's packets from others that wait for those before them, in the order of the peers.
#[derive(Clone, Debug)]
pub(super) struct Receptions<T>(Vec<(Peer, Reorder<T>)>);

impl<T: Copy> Receptions<T> {
    pub(super) fn none() -> Self {
        Self(Vec::new())
    }

    fn from(&mut self, peer: Peer) -> &mut Reorder<T> {
        entry(&mut self.0, peer, || Reorder { start: 0, held: VecDeque::new() })
    }
}

impl<T: Copy> Aggregates<T> {
    pub(super) fn none() -> Self {
        Self { batch: Vec::new(), packets: 0, mpdus: 0, most_attempts: 0, next: Vec::new() }
    }

    /// Number of MPDUs to send together.
    pub(super) fn mpdus(&self) -> usize {
        self.mpdus
    }

    /// Number of MPDUs of the frame that have arrived.
    pub(super) fn delivered(&self) -> usize {
        self.by_mpdu().filter(|packets| packets[0].delivered).count()
    }

    pub(super) fn most_attempts(&self) -> u32 {
        self.most_attempts
    }

    pub(super) fn first(&self) -> Option<Job<T>> {
        self.batch.first().copied()
    }

    /// The A-MPDU, or A-MSDU, as the body of a frame, if there is one to send.
    pub(super) fn body(&self) -> Option<Body<T>> {
        let first = self.batch.first()?;
        let undelivered = (!first.delivered).then_some(first.packet);
        Some(Body::Ampdu { first: undelivered, mpdus: self.mpdus, priority: first.priority })
    }

    /// What comes next to a peer.
    fn next(&mut self, to: Peer) -> &mut Next {
        entry(&mut self.next, to, || Next { packet: 0, mpdu: 0 })
    }

    /// Adds a packet to the frame: to its last MPDU, or as a new one. `next` is of its peer.
    fn push(&mut self, next: &mut Next, mut job: Job<T>, joins: bool) {
        if !joins {
            next.mpdu = next.mpdu.wrapping_add(1);
        }
        job.sequence = next.mpdu.wrapping_sub(1);
        job.number = next.packet;
        next.packet = next.packet.wrapping_add(1);
        self.batch.push(job);
    }

    /// True if one more MPDU to the peer of `next` is within the window.
    fn has_room(&self, next: Next, window: u32) -> bool {
        self.batch.first().is_none_or(|oldest| next.mpdu.wrapping_sub(oldest.sequence) < window)
    }

    /// The packets of each MPDU of the frame.
    fn by_mpdu(&self) -> impl Iterator<Item = &[Job<T>]> {
        self.batch[..self.packets].chunk_by(|a, b| a.sequence == b.sequence)
    }

    /// All packets are in the frame.
    fn take_all(&mut self) {
        self.packets = self.batch.len();
        self.mpdus = self.by_mpdu().count();
    }
}

impl<T: Copy> Dcf<T> {
    /// Fills up the frame to send, which may take so much time, if packets share frames.
    #[inline]
    pub(super) fn assemble(
        &mut self,
        now: Instant,
        rules: &Rules,
        time: Duration,
        out: &mut Effects<T>,
    ) {
        if let (Some(limits), Some(current)) =
            (&rules.phy.aggregation, self.traffic.function.current)
            && let Receiver::Station(to) = current.to
        {
            let mode = &rules.exchange(self.traffic.function.rate()).mode;
            self.fill(now, mode, limits, time, (to, current), out);
        }
    }

    // Inlined, this and the like would slow down cells where packets share nothing.
    #[inline(never)]
    fn fill(
        &mut self,
        now: Instant,
        mode: &Mode,
        limits: &Aggregation,
        time: Duration,
        (to, current): (StationId, Job<T>),
        out: &mut Effects<T>,
    ) {
        let to = (to, current.priority);
        let mut next = *self.traffic.function.aggregates.next(to);
        if self.traffic.function.aggregates.batch.is_empty() {
            self.traffic.function.aggregates.push(&mut next, current, false);
        }
        let aggregates = &mut self.traffic.function.aggregates;
        aggregates.packets = aggregates.batch.len();
        let (chooses_rate, mut most) = match &self.traffic.function.series {
            Some(series) if series.is_probe() => (true, 1),
            series => (series.is_some(), usize::MAX),
        };
        // Lengths: of all MPDUs but the last, of the last, and of its packets as an A-MSDU.
        let (mut before, mut last, mut amsdu) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
        // More packets may still join the last MPDU.
        let mut open = false;
        let (mut mpdus, mut packets) = (0, 0);
        let time = time.min(limits.time);
        for of_mpdu in self.traffic.function.aggregates.by_mpdu() {
            let longer = if mpdus > 0 { before + subframe(last) } else { before };
            let mpdu = limits.mpdu(of_mpdu);
            // At a lower rate, not all of them may fit.
            let long = || mode.duration(limits.length(longer, mpdu)) > time;
            if chooses_rate && mpdus > 0 && (mpdus == most || long()) {
                (most, open) = (mpdus, false);
                break;
            }
            (before, last) = (longer, mpdu);
            amsdu = limits.amsdu(of_mpdu);
            open = limits.amsdu > Bytes::ZERO && !of_mpdu[0].retry;
            mpdus += 1;
            packets += of_mpdu.len();
        }
        let fits = |length| length <= limits.length && mode.duration(length) <= time;
        let mut place = 0;
        loop {
            let room =
                mpdus < most && self.traffic.function.aggregates.has_room(next, limits.window);
            if !room && !open {
                break;
            }
            let Some(size) = self.waiting_for(now, to, &mut place, out) else { break };
            let longer = limits.longer_amsdu(amsdu, size);
            let longer_mpdu = limits.mpdu_overhead + longer;
            let joins = open && longer <= limits.amsdu && fits(limits.length(before, longer_mpdu));
            if !(joins || room && fits(limits.length(before + subframe(last), size))) {
                break;
            }
            let Some(job) = self.take_waiting(now, to, place) else { break };
            self.traffic.function.aggregates.push(&mut next, job, joins);
            packets += 1;
            if joins {
                (last, amsdu) = (longer_mpdu, longer);
            } else {
                before += subframe(last);
                (last, amsdu) = (size, limits.longer_amsdu(Bytes::ZERO, size));
                open = limits.amsdu > Bytes::ZERO;
                mpdus += 1;
            }
        }
        *self.traffic.function.aggregates.next(to) = next;
        let length = limits.length(before, last);
        let aggregates = &mut self.traffic.function.aggregates;
        (aggregates.packets, aggregates.mpdus) = (packets, mpdus);
        let in_frame = &aggregates.batch[..packets];
        aggregates.most_attempts = in_frame.iter().map(|job| job.attempts).max().unwrap_or(0);
        self.traffic.function.current = in_frame.first().copied();
        if let Some(current) = &mut self.traffic.function.current {
            (current.size, current.duration) = (length, mode.duration(length));
        }
    }

    /// Size of the MPDU of the next waiting packet for a peer. In a drop-tail queue it is the first
    /// from `place` on, which becomes its place.
    fn waiting_for(
        &mut self,
        now: Instant,
        (to, priority): Peer,
        place: &mut usize,
        out: &mut Effects<T>,
    ) -> Option<Bytes> {
        let to = Receiver::Station(to);
        let Traffic { function, counters, .. } = &mut *self.traffic;
        if let Some(queues) = function.transmit_queues.as_deref_mut() {
            return Some(queues.peek(now, (to, priority), counters, out)?.size);
        }
        let mut waiting = function.queue.iter().enumerate().skip(*place);
        let (found, job) = waiting.find(|(_, job)| job.to == to && job.priority == priority)?;
        *place = found;
        Some(job.size)
    }

    /// Takes the packet that [`Self::waiting_for`] has found.
    fn take_waiting(&mut self, now: Instant, (to, priority): Peer, place: usize) -> Option<Job<T>> {
        match self.traffic.function.transmit_queues.as_deref_mut() {
            Some(queues) => queues.take_peeked(now, (Receiver::Station(to), priority)),
            None => self.take_from_middle(now, place),
        }
    }

    /// The packets of the frame to send, for the air.
    #[inline(never)]
    pub(crate) fn msdus(&self, rules: &Rules) -> Vec<Msdu<T>> {
        let Some(limits) = &rules.phy.aggregation else { return Vec::new() };
        let mut msdus = Vec::with_capacity(self.traffic.function.aggregates.packets);
        for packets in self.traffic.function.aggregates.by_mpdu() {
            let mpdu = limits.mpdu(packets);
            msdus.extend(packets.iter().enumerate().map(|(place, job)| {
                let &Job { packet, waited, number, .. } = job;
                Msdu { packet, waited, number, mpdu, first: place == 0, intact: false }
            }));
        }
        msdus
    }

    /// The MPDUs of the frame to send, for a monitor.
    #[cold]
    pub(crate) fn sent_mpdus(&self, rules: &Rules) -> Vec<SentMpdu<T>> {
        let Some(limits) = &rules.phy.aggregation else { return Vec::new() };
        let mpdu = |packets: &[Job<T>]| {
            let undelivered = packets.iter().filter(|job| !job.delivered);
            SentMpdu {
                priority: packets[0].priority,
                packets: undelivered.map(|job| job.packet).collect(),
                amsdu: packets.len() > 1,
                sequence: packets[0].sequence,
                retry: packets[0].retry,
                size: limits.mpdu(packets),
            }
        };
        self.traffic.function.aggregates.by_mpdu().map(mpdu).collect()
    }

    /// The answer to the A-MPDU that this MAC has sent.
    pub(crate) fn block_ack(&self) -> BlockAck {
        let Aggregates { batch, .. } = &self.traffic.function.aggregates;
        let firsts = self.traffic.function.aggregates.by_mpdu().map(|packets| packets[0]);
        BlockAck {
            priority: batch.first().map_or(UserPriority::DEFAULT, |job| job.priority),
            start: batch.first().map_or(0, |job| job.sequence),
            received: firsts.filter(|job| job.delivered).map(|job| job.sequence).collect(),
        }
    }

    /// The receiver has the packet at this place of the frame; this MAC learns it only from the
    /// acknowledgement.
    pub(crate) fn mark_msdu_delivered(&mut self, place: usize) {
        self.traffic.function.aggregates.batch[place].delivered = true;
    }

    /// An attempt is over. If it was answered, what has been received is done with; what is left has
    /// failed. True if MPDUs were given up.
    #[inline(never)]
    pub(super) fn settle(&mut self, rules: &Rules, end: End, out: &mut Effects<T>) -> bool {
        let limit = rules.attempts(rules.mac.short_retry_limit);
        let Some(first) = self.traffic.function.aggregates.first() else { return false };
        let counters = &mut self.traffic.counters;
        let mut gave_up = false;
        let mut latest = None;
        let mut in_frame = self.traffic.function.aggregates.packets;
        self.traffic.function.aggregates.batch.retain_mut(|job| {
            if in_frame == 0 {
                return true;
            }
            in_frame -= 1;
            if end == End::Answered && job.delivered {
                return false;
            }
            job.retry |= end != End::Unsent;
            job.attempts = job.attempts.saturating_add(1);
            let first = latest.replace(job.sequence) != Some(job.sequence);
            if job.attempts < limit {
                counters.retries += u64::from(first);
                return true;
            }
            gave_up = true;
            counters.link_failures += 1;
            if !job.delivered {
                counters.mac_drops += 1;
                out.lost.push(job.packet);
            }
            false
        });
        let aggregates = &mut self.traffic.function.aggregates;
        aggregates.take_all();
        aggregates.most_attempts = 0;
        if let (Receiver::Station(to), true) = (first.to, gave_up) {
            let to = (to, first.priority);
            let next = aggregates.next(to).packet;
            let start = aggregates.first().map_or(next, |job| job.number);
            out.skip = Some((to, start));
        }
        gave_up
    }

    /// An intact packet from a station: adds those that are now in order to `released`.
    pub(crate) fn accept(&mut self, from: Peer, msdu: &Msdu<T>, released: &mut Released<T>) {
        let duplicate = !self.traffic.receptions.from(from).accept(msdu, released);
        self.traffic.counters.duplicates += u64::from(duplicate && msdu.first);
    }

    /// A station has given up all packets before number `start` that have not arrived.
    pub(crate) fn skip_to(&mut self, from: Peer, start: u32, released: &mut Released<T>) {
        self.traffic.receptions.from(from).skip_to(start, released);
    }
}

/// Packets, each with the time that it spent in the sender's queue.
pub(crate) type Released<T> = Vec<(T, Duration)>;

/// A receiver's packets from one peer (§10.25.6.6).
#[derive(Clone, Debug)]
struct Reorder<T> {
    /// Number of the first packet that has neither been released nor given up.
    start: u32,
    /// From that one on, what has arrived.
    held: VecDeque<Option<(T, Duration)>>,
}

impl<T: Copy> Reorder<T> {
    /// False if the packet has arrived before.
    fn accept(&mut self, msdu: &Msdu<T>, released: &mut Released<T>) -> bool {
        let ahead = msdu.number.wrapping_sub(self.start);
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
        self.held[place] = Some((msdu.packet, msdu.waited));
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

    fn msdu(number: u32) -> Msdu<u32> {
        let waited = Duration::ZERO;
        Msdu { packet: number, waited, number, mpdu: Bytes(1), first: true, intact: true }
    }

    fn accept(reorder: &mut Reorder<u32>, number: u32) -> (bool, Vec<u32>) {
        let mut released = Vec::new();
        let new = reorder.accept(&msdu(number), &mut released);
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
            amsdu: Bytes::ZERO,
            mpdu_overhead: Bytes(30),
        };
        assert_eq!(limits(false).length(Bytes(1544), Bytes(1538)), Bytes(3086));
        // Alone, only VHT and HE have a delimiter.
        assert_eq!(limits(false).length(Bytes::ZERO, Bytes(1538)), Bytes(1538));
        assert_eq!(limits(true).length(Bytes::ZERO, Bytes(1538)), Bytes(1542));
    }

    #[test]
    fn each_subframe_of_an_a_msdu_but_the_last_is_padded() {
        // Packets of 1500 B with 8 B of LLC: 14 + 1508, padded to 1524, then 1522 B.
        let limits = Aggregation {
            length: Bytes(7_965),
            time: Duration::from_micros(5_484),
            window: 1,
            always_delimited: false,
            amsdu: Bytes(7_935),
            mpdu_overhead: Bytes(30),
        };
        let one = limits.longer_amsdu(Bytes::ZERO, Bytes(1538));
        let two = limits.longer_amsdu(one, Bytes(1538));
        assert_eq!([one, two], [Bytes(1522), Bytes(3046)]);
        assert_eq!(limits.longer_amsdu(two, Bytes(1538)), Bytes(4570));
    }
}
