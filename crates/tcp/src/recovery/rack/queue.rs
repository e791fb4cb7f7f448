//! The retransmission queue: a record of each segment in the network, in the order of sequence
//! numbers and, by links between them, in the order in which they were last sent (RFC 8985 §5.1).
//!
//! A record is a segment as it was first sent. It leaves when it is acknowledged.

use airtcp_core::{Instant, SackBlock, SeqNum};
use std::collections::VecDeque;

/// A segment sent and not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) seq: SeqNum,
    /// One past its last byte, or its FIN.
    pub(crate) end: SeqNum,
    /// Time of the last transmission.
    pub(crate) at: Instant,
    pub(crate) sacked: bool,
    pub(crate) lost: bool,
    /// A retransmission of it is in the network.
    pub(crate) resent: bool,
    /// It has been retransmitted, now or before.
    pub(crate) retransmitted: bool,
    /// State of the flow at the last transmission.
    pub(crate) snapshot: Snapshot,
    /// Neighbours in the order of transmission; `None` at the ends and for segments that are not in
    /// it.
    earlier: Option<Serial>,
    later: Option<Serial>,
    timed: bool,
}

impl Sent {
    pub(crate) fn len(&self) -> u32 {
        self.end.bytes_after(self.seq)
    }
}

/// State of a flow when a segment was sent (draft-ietf-ccwg-bbr §4.1.2.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot {
    /// Beginning of the flight to which the segment belongs.
    pub(crate) first_sent_at: Instant,
    pub(crate) delivered_at: Instant,
    pub(crate) delivered: u64,
    pub(crate) delivered_ce: u64,
    pub(crate) lost: u64,
    /// Bytes in the network, the segment included.
    pub(crate) inflight: u32,
    pub(crate) app_limited: bool,
}

/// Number of a record, counted from the beginning of the connection.
type Serial = u64;

/// Bytes and segments of the queue that have some property.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) bytes: u32,
    pub(crate) segments: u32,
}

impl Share {
    fn add(&mut self, bytes: u32) {
        self.bytes += bytes;
        self.segments += 1;
    }
    fn remove(&mut self, bytes: u32) {
        self.bytes -= bytes;
        self.segments -= 1;
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    records: VecDeque<Sent>,
    /// Bytes of all records.
    bytes: u32,
    /// The number of the first record.
    first: Serial,
    /// Ends of the order of transmission: the segments sent longest ago and last, of those neither
    /// delivered nor lost.
    oldest: Option<Serial>,
    newest: Option<Serial>,
    sacked: Share,
    lost: Share,
    resent: Share,
    /// No segment below this one is lost without having been sent again.
    lost_from: Serial,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Segments in the queue.
    pub(crate) fn segments(&self) -> u32 {
        self.records.len() as u32
    }

    pub(crate) fn sacked(&self) -> Share {
        self.sacked
    }

    pub(crate) fn lost(&self) -> Share {
        self.lost
    }

    /// Retransmissions in the network.
    pub(crate) fn resent(&self) -> Share {
        self.resent
    }

    /// Bytes in the network: sent, and neither delivered nor lost, or sent again.
    pub(crate) fn inflight(&self) -> u32 {
        self.bytes - self.sacked.bytes - self.lost.bytes + self.resent.bytes
    }

    pub(crate) fn front(&self) -> Option<&Sent> {
        self.records.front()
    }

    pub(crate) fn get(&self, serial: Serial) -> &Sent {
        &self.records[(serial - self.first) as usize]
    }

    fn get_mut(&mut self, serial: Serial) -> &mut Sent {
        &mut self.records[(serial - self.first) as usize]
    }

    fn serials(&self) -> std::ops::Range<Serial> {
        self.first..self.first + self.records.len() as Serial
    }

    /// The last record's number.
    pub(crate) fn last(&self) -> Option<Serial> {
        self.serials().last()
    }

    /// Adds a segment sent for the first time.
    pub(crate) fn push(&mut self, seq: SeqNum, end: SeqNum, now: Instant, snapshot: Snapshot) {
        let serial = self.serials().end;
        let earlier = self.append(serial);
        self.bytes += end.bytes_after(seq);
        self.records.push_back(Sent {
            seq,
            end,
            at: now,
            sacked: false,
            lost: false,
            resent: false,
            retransmitted: false,
            snapshot,
            earlier,
            later: None,
            timed: true,
        });
    }

    /// Records a retransmission of the segment.
    pub(crate) fn send_again(&mut self, serial: Serial, now: Instant, snapshot: Snapshot) {
        self.unlink(serial);
        let record = self.get_mut(serial);
        (record.at, record.snapshot) = (now, snapshot);
        record.retransmitted = true;
        if !std::mem::replace(&mut record.resent, true) {
            let len = record.len();
            self.resent.add(len);
        }
        // A probe may repeat what the receiver has reported to hold.
        if !self.get(serial).sacked {
            self.link(serial);
        }
    }

    /// Removes the first record if it is acknowledged whole; trims it if it is in part.
    pub(crate) fn pop_acknowledged(&mut self, una: SeqNum) -> Option<Sent> {
        let first = self.records.front()?;
        if first.end.after(una) {
            if first.seq.before(una) {
                self.trim_first(una);
            }
            return None;
        }
        self.unlink(self.first);
        let record = self.records.pop_front()?;
        self.first += 1;
        let len = record.len();
        self.bytes -= len;
        if record.sacked {
            self.sacked.remove(len);
        }
        if record.lost {
            self.lost.remove(len);
        }
        if record.resent {
            self.resent.remove(len);
        }
        self.lost_from = self.lost_from.max(self.first);
        Some(record)
    }

    fn trim_first(&mut self, una: SeqNum) {
        let record = self.get_mut(self.first);
        let gone = una.bytes_after(record.seq);
        record.seq = una;
        let Sent { sacked, lost, resent, .. } = *record;
        self.bytes -= gone;
        self.sacked.bytes -= if sacked { gone } else { 0 };
        self.lost.bytes -= if lost { gone } else { 0 };
        self.resent.bytes -= if resent { gone } else { 0 };
    }

    /// Records covered whole by `block` and not by `seen`, a block reported before.
    pub(crate) fn covered(
        &self,
        block: SackBlock,
        seen: Option<SackBlock>,
    ) -> impl Iterator<Item = Serial> + use<> {
        let SackBlock { left, right } = block;
        let between = |from: SeqNum, to: SeqNum| {
            let place = |before: &dyn Fn(&Sent) -> bool| self.records.partition_point(before);
            let begin = place(&|r| r.end.at_or_before(from)).max(place(&|r| r.seq.before(left)));
            let end = place(&|r| r.seq.before(to)).min(place(&|r| r.end.at_or_before(right)));
            self.first + begin as Serial..self.first + end.max(begin) as Serial
        };
        match seen.filter(|seen| seen.left.before(right) && left.before(seen.right)) {
            Some(seen) => between(left, seen.left).chain(between(seen.right, right)),
            None => between(left, right).chain(0..0),
        }
    }

    /// Marks the segment as held by the receiver.
    pub(crate) fn mark_sacked(&mut self, serial: Serial) {
        self.unlink(serial);
        let record = self.get_mut(serial);
        record.sacked = true;
        let len = record.len();
        let was_lost = std::mem::take(&mut record.lost);
        // Of a segment not taken for lost, the retransmission is still believed to be under way.
        let arrived = was_lost && std::mem::take(&mut record.resent);
        self.sacked.add(len);
        if was_lost {
            self.lost.remove(len);
        }
        if arrived {
            self.resent.remove(len);
        }
    }

    /// Forgets the segment's retransmission, which is no longer in the network.
    pub(crate) fn forget_retransmission(&mut self, serial: Serial) {
        let record = self.get_mut(serial);
        if std::mem::take(&mut record.resent) {
            let len = record.len();
            self.resent.remove(len);
        }
    }

    /// Marks the segment, or its retransmission, as lost. Returns true for a retransmission.
    pub(crate) fn mark_lost(&mut self, serial: Serial) -> bool {
        self.unlink(serial);
        self.lost_from = self.lost_from.min(serial);
        let record = self.get_mut(serial);
        let len = record.len();
        let was_resent = std::mem::take(&mut record.resent);
        if !std::mem::replace(&mut record.lost, true) {
            self.lost.add(len);
        }
        if was_resent {
            self.resent.remove(len);
        }
        was_resent
    }

    /// Clears all loss marks.
    pub(crate) fn unmark_lost(&mut self) {
        let lost = self.lost.segments as usize;
        let all: Vec<Serial> =
            self.iter().filter(|(_, r)| r.lost).map(|(serial, _)| serial).take(lost).collect();
        for &serial in &all {
            self.get_mut(serial).lost = false;
        }
        self.lost = Share::default();
        self.relink(all);
    }

    /// Clears all SACK marks: the receiver dropped data that it had reported (RFC 2018 §8).
    pub(crate) fn unmark_sacked(&mut self) {
        let all: Vec<Serial> =
            self.iter().filter(|(_, r)| r.sacked).map(|(serial, _)| serial).collect();
        for &serial in &all {
            self.get_mut(serial).sacked = false;
        }
        self.sacked = Share::default();
        self.relink(all);
    }

    /// The first segment that is lost and not sent again.
    pub(crate) fn next_lost(&mut self) -> Option<Serial> {
        if self.lost.segments == 0 {
            return None;
        }
        let from = self.lost_from.max(self.first);
        let at = (from..self.serials().end).find(|&serial| {
            let record = self.get(serial);
            record.lost && !record.resent
        });
        self.lost_from = at.unwrap_or(self.serials().end);
        at
    }

    /// The segment sent longest ago, of those neither delivered nor lost.
    pub(crate) fn oldest(&self) -> Option<Serial> {
        self.oldest
    }

    /// The segment sent next after `serial`, of those neither delivered nor lost.
    pub(crate) fn later(&self, serial: Serial) -> Option<Serial> {
        self.get(serial).later
    }

    /// All records with their numbers, in the order of sequence numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Serial, &Sent)> {
        self.serials().zip(&self.records)
    }

    /// Puts the segment last in the order of transmission.
    fn link(&mut self, serial: Serial) {
        let earlier = self.append(serial);
        let record = self.get_mut(serial);
        (record.earlier, record.later, record.timed) = (earlier, None, true);
    }

    /// Makes the segment the newest. Returns the previous newest.
    fn append(&mut self, serial: Serial) -> Option<Serial> {
        let newest = self.newest.replace(serial);
        match newest {
            Some(newest) => self.get_mut(newest).later = Some(serial),
            None => self.oldest = Some(serial),
        }
        newest
    }

    /// Puts segments back into the order of transmission.
    fn relink(&mut self, mut segments: Vec<Serial>) {
        segments.retain(|&serial| !self.get(serial).timed);
        segments.sort_by_key(|&serial| self.get(serial).at);
        let mut earlier = self.newest;
        for serial in segments.into_iter().rev() {
            let at = self.get(serial).at;
            while let Some(other) = earlier.filter(|&other| self.get(other).at > at) {
                earlier = self.get(other).earlier;
            }
            let later = match earlier {
                Some(earlier) => self.get_mut(earlier).later.replace(serial),
                None => self.oldest.replace(serial),
            };
            match later {
                Some(later) => self.get_mut(later).earlier = Some(serial),
                None => self.newest = Some(serial),
            }
            let record = self.get_mut(serial);
            (record.earlier, record.later, record.timed) = (earlier, later, true);
        }
    }

    fn unlink(&mut self, serial: Serial) {
        let record = self.get_mut(serial);
        if !std::mem::take(&mut record.timed) {
            return;
        }
        let (earlier, later) = (record.earlier.take(), record.later.take());
        match earlier {
            Some(earlier) => self.get_mut(earlier).later = later,
            None => self.oldest = later,
        }
        match later {
            Some(later) => self.get_mut(later).earlier = earlier,
            None => self.newest = earlier,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It would be found lost as well as delivered, and the count of bytes in the network would
    /// underflow.
    #[test]
    fn a_probe_that_repeats_what_is_sacked_is_not_waited_for() {
        let now = Instant::from_secs(1);
        let snapshot = Snapshot {
            first_sent_at: now,
            delivered_at: now,
            delivered: 0,
            delivered_ce: 0,
            lost: 0,
            inflight: 0,
            app_limited: false,
        };
        let mut queue = Queue::default();
        for from in [0, 1000] {
            queue.push(SeqNum(from), SeqNum(from + 1000), now, snapshot);
        }
        queue.mark_sacked(1);
        queue.send_again(1, Instant::from_secs(2), snapshot);
        assert_eq!((queue.oldest(), queue.later(0)), (Some(0), None));
    }
}
