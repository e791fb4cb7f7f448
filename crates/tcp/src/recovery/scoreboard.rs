//! The SACK scoreboard and the procedures of RFC 6675 §4: IsLost, SetPipe, NextSeg.
//!
//! Bytes between SND.UNA and the highest SACKed byte are either SACKed (a range here) or in a hole.
//! Whether a hole is lost depends only on what is SACKed above it, so everything is computed hole
//! by hole, never segment by segment.

use airtcp_core::{SackBlock, SeqNum};

/// Data SACKed by the receiver, and data retransmitted in this recovery.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    /// SACKed ranges above SND.UNA: ascending, disjoint, not touching.
    ranges: Vec<SackBlock>,
    /// HighRxt: everything below, from SND.UNA, was retransmitted in this recovery (or is SACKed).
    high_rxt: Option<SeqNum>,
    /// RescueRxt: one rescue retransmission per recovery (rule 4).
    rescued: bool,
    /// The first hole of this recovery, and SND.MAX when it was last retransmitted.
    first_repair: Option<(SeqNum, SeqNum)>,
}

/// Parameters of IsLost, which decides when a hole counts as lost (RFC 6675 §4).
#[derive(Clone, Copy, Debug)]
pub struct LossRule {
    /// DupThresh: SACKed segments above a lost hole.
    pub dup_thresh: u32,
    /// SMSS, in bytes.
    pub smss: u32,
}

/// Result of NextSeg, by its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextSeg {
    /// Retransmit from `seq`, at most to `end` (rules 1, 3, 4).
    Retransmit {
        /// First byte to send.
        seq: SeqNum,
        /// End of the hole, exclusive.
        end: SeqNum,
    },
    /// Send new data (rule 2).
    New,
    /// Nothing to send.
    None,
}

impl Scoreboard {
    /// Takes in the blocks of an ACK; returns how many bytes were SACKed for the first time.
    ///
    /// Blocks outside `una..max`, empty or reversed ones (a DSACK, RFC 2883, or nonsense) are
    /// ignored.
    pub fn update(&mut self, una: SeqNum, max: SeqNum, blocks: &[SackBlock]) -> u32 {
        let mut new = 0;
        for &SackBlock { left, right } in blocks {
            if left.before(right) && left.at_or_after(una) && right.at_or_before(max) {
                new += self.insert(SackBlock { left, right });
            }
        }
        new
    }

    /// Merges a block in; returns the bytes it added.
    fn insert(&mut self, block: SackBlock) -> u32 {
        let first = self.ranges.partition_point(|r| r.right.before(block.left));
        let mut merged = block;
        let mut held = 0;
        let mut last = first;
        while let Some(r) = self.ranges.get(last).filter(|r| r.left.at_or_before(block.right)) {
            held += r.right.bytes_after(r.left);
            merged =
                SackBlock { left: merged.left.earlier(r.left), right: merged.right.later(r.right) };
            last += 1;
        }
        if last == first {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..last);
        }
        merged.right.bytes_after(merged.left) - held
    }

    /// Drops everything below SND.UNA, which has advanced.
    pub fn advance(&mut self, una: SeqNum) {
        let gone = self.ranges.partition_point(|r| r.right.at_or_before(una));
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.left = first.left.later(una);
        }
        self.high_rxt = self.high_rxt.filter(|h| h.after(una));
        self.first_repair = self.first_repair.filter(|(seq, _)| *seq == una);
    }

    /// Forgets everything: the receiver reneged (RFC 2018 §8).
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.start_recovery();
    }

    /// Begins a recovery, or restarts after a time-out: nothing is retransmitted yet.
    pub fn start_recovery(&mut self) {
        self.high_rxt = None;
        self.rescued = false;
        self.first_repair = None;
    }

    /// Notes the retransmission of the first unacknowledged segment, with `max` as SND.MAX.
    pub fn on_first_repaired(&mut self, una: SeqNum, max: SeqNum) {
        self.first_repair = Some((una, max));
    }

    /// True if the retransmission of the first hole was lost, too: data sent after it is SACKed as
    /// IsLost requires. RFC 6675 leaves this case to the retransmission timer.
    pub fn retransmission_is_lost(&self, una: SeqNum, rule: LossRule) -> bool {
        let Some((_, max)) = self.first_repair.filter(|&(seq, _)| seq == una) else {
            return false;
        };
        let after = self.ranges.iter().filter(|r| r.right.after(max));
        let (ranges, bytes) = after.fold((0, 0), |(ranges, bytes), r| {
            (ranges + 1, bytes + r.right.bytes_after(r.left.later(max)))
        });
        ranges >= rule.dup_thresh || bytes > (rule.dup_thresh - 1).saturating_mul(rule.smss)
    }

    /// True if nothing is SACKed.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes SACKed below `seq`.
    pub fn sacked_before(&self, seq: SeqNum) -> u32 {
        self.ranges
            .iter()
            .take_while(|r| r.left.before(seq))
            .map(|r| r.right.earlier(seq).bytes_after(r.left))
            .sum()
    }

    /// The SACKed range that holds `seq`, or the next one above.
    pub fn range_at_or_above(&self, seq: SeqNum) -> Option<SackBlock> {
        let i = self.ranges.partition_point(|r| r.right.at_or_before(seq));
        self.ranges.get(i).copied()
    }

    /// Counts everything below `end` as retransmitted.
    pub fn retransmitted_up_to(&mut self, end: SeqNum) {
        self.high_rxt = Some(self.high_rxt.map_or(end, |h| h.later(end)));
    }

    /// Holes from `una` to the highest SACKed byte, each with IsLost's result: lost if there are
    /// DupThresh discontiguous SACKed ranges above it, or more than (DupThresh - 1)·SMSS bytes.
    fn holes(&self, una: SeqNum, rule: LossRule) -> impl Iterator<Item = (SackBlock, bool)> + '_ {
        let mut above_bytes: u32 = self.ranges.iter().map(|r| r.right.bytes_after(r.left)).sum();
        let mut left = una;
        self.ranges.iter().enumerate().filter_map(move |(i, r)| {
            let hole = SackBlock { left, right: r.left };
            let above_ranges = (self.ranges.len() - i) as u32;
            let lost = above_ranges >= rule.dup_thresh
                || above_bytes > (rule.dup_thresh - 1).saturating_mul(rule.smss);
            above_bytes -= r.right.bytes_after(r.left);
            left = r.right;
            hole.left.before(hole.right).then_some((hole, lost))
        })
    }

    /// IsLost(SND.UNA).
    pub fn first_hole_is_lost(&self, una: SeqNum, rule: LossRule) -> bool {
        self.holes(una, rule).next().is_some_and(|(hole, lost)| hole.left == una && lost)
    }

    /// SetPipe: our estimate of the bytes in the network, with `max` = HighData.
    pub fn pipe(&self, una: SeqNum, max: SeqNum, rule: LossRule) -> u32 {
        let mut pipe = 0;
        let mut high_sacked = una;
        if let Some(last) = self.ranges.last() {
            high_sacked = last.right;
        }
        for (hole, lost) in self.holes(una, rule) {
            if !lost {
                pipe += hole.right.bytes_after(hole.left);
            }
            if let Some(h) = self.high_rxt {
                pipe += hole.right.earlier(h).bytes_after(hole.left);
            }
        }
        // Above the highest SACKed byte nothing is known to be lost.
        pipe += max.bytes_after(high_sacked);
        if let Some(h) = self.high_rxt {
            pipe += h.bytes_after(high_sacked);
        }
        pipe
    }

    /// NextSeg with `new_data`: an unsent segment is available and rwnd permits it.
    pub fn next_seg(
        &self,
        una: SeqNum,
        max: SeqNum,
        recovery_point: SeqNum,
        rule: LossRule,
        new_data: bool,
    ) -> NextSeg {
        let from = self.high_rxt.unwrap_or(una);
        let mut unlost = None;
        for (hole, lost) in self.holes(una, rule) {
            let seq = hole.left.later(from);
            if !seq.before(hole.right) {
                continue;
            }
            if lost {
                return NextSeg::Retransmit { seq, end: hole.right }; // rule 1
            }
            unlost.get_or_insert(NextSeg::Retransmit { seq, end: hole.right });
        }
        if new_data {
            return NextSeg::New; // rule 2
        }
        if let Some(seg) = unlost {
            return seg; // rule 3
        }
        // Rule 4: once, the last outstanding bytes below RecoveryPoint, if not SACKed.
        let high_sacked = self.ranges.last().map_or(una, |r| r.right);
        let end = recovery_point.earlier(max);
        if !self.rescued && !self.ranges.is_empty() && end.after(high_sacked.later(from)) {
            let seq = (end - rule.smss.min(end.bytes_after(high_sacked.later(from)))).later(from);
            return NextSeg::Retransmit { seq, end };
        }
        NextSeg::None
    }

    /// A retransmission chosen by [`Scoreboard::next_seg`] was sent: `seq..end`. A rescue
    /// retransmission (above every SACKed byte) does not move HighRxt (RFC 6675 §4, rule 4).
    pub fn on_retransmit(&mut self, seq: SeqNum, end: SeqNum) {
        if self.ranges.last().is_some_and(|r| seq.at_or_after(r.right)) {
            self.rescued = true;
        } else {
            self.retransmitted_up_to(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULE: LossRule = LossRule { dup_thresh: 3, smss: 1000 };

    fn block(left: u32, right: u32) -> SackBlock {
        SackBlock { left: SeqNum(left), right: SeqNum(right) }
    }

    fn board(blocks: &[(u32, u32)]) -> Scoreboard {
        let mut b = Scoreboard::default();
        for &(l, r) in blocks {
            b.update(SeqNum(0), SeqNum(100_000), &[block(l, r)]);
        }
        b
    }

    #[test]
    fn merges_overlapping_and_touching_blocks() {
        let mut b = board(&[(1000, 2000), (3000, 4000)]);
        assert_eq!(b.update(SeqNum(0), SeqNum(9000), &[block(1500, 3500)]), 1000);
        assert_eq!(b.ranges, [block(1000, 4000)]);
        assert_eq!(b.update(SeqNum(0), SeqNum(9000), &[block(4000, 5000)]), 1000);
        assert_eq!(b.ranges, [block(1000, 5000)]);
        assert_eq!(b.update(SeqNum(0), SeqNum(9000), &[block(1000, 5000)]), 0);
    }

    #[test]
    fn ignores_dsack_and_blocks_beyond_what_was_sent() {
        let mut b = Scoreboard::default();
        let una = SeqNum(5000);
        let blocks = [block(1000, 2000), block(4000, 6000), block(8000, 9001), block(7000, 7000)];
        assert_eq!(b.update(una, SeqNum(9000), &blocks), 0);
        assert!(b.is_empty());
    }

    #[test]
    fn lost_by_three_ranges_or_by_bytes() {
        // RFC 6675 §4 IsLost.
        assert!(!board(&[(1000, 3000)]).first_hole_is_lost(SeqNum(0), RULE));
        assert!(board(&[(1000, 3001)]).first_hole_is_lost(SeqNum(0), RULE));
        let three = [(1000, 1100), (1200, 1300), (1400, 1500)];
        assert!(board(&three).first_hole_is_lost(SeqNum(0), RULE));
        assert!(!board(&three[..2]).first_hole_is_lost(SeqNum(0), RULE));
    }

    #[test]
    fn pipe_counts_unlost_holes_retransmissions_and_the_tail() {
        // una 0; 0..1000 lost, 4000..5000 unlost; SACKed 1000..4000 and 5000..6000; sent to 8000.
        let mut b = board(&[(1000, 4000), (5000, 6000)]);
        assert_eq!(b.pipe(SeqNum(0), SeqNum(8000), RULE), 1000 + 2000);
        b.on_retransmit(SeqNum(0), SeqNum(1000));
        assert_eq!(b.pipe(SeqNum(0), SeqNum(8000), RULE), 1000 + 1000 + 2000);
    }

    #[test]
    fn next_seg_follows_the_four_rules() {
        let mut b = board(&[(1000, 4000), (5000, 6000)]);
        let next =
            |b: &Scoreboard, new| b.next_seg(SeqNum(0), SeqNum(8000), SeqNum(8000), RULE, new);
        let hole = |l, r| NextSeg::Retransmit { seq: SeqNum(l), end: SeqNum(r) };
        assert_eq!(next(&b, true), hole(0, 1000)); // rule 1
        b.on_retransmit(SeqNum(0), SeqNum(1000));
        assert_eq!(next(&b, true), NextSeg::New); // rule 2
        assert_eq!(next(&b, false), hole(4000, 5000)); // rule 3
        b.on_retransmit(SeqNum(4000), SeqNum(5000));
        assert_eq!(next(&b, false), hole(7000, 8000)); // rule 4, once
        b.on_retransmit(SeqNum(7000), SeqNum(8000));
        assert_eq!(next(&b, false), NextSeg::None);
    }

    #[test]
    fn advance_trims_and_forgets() {
        let mut b = board(&[(1000, 2000), (3000, 4000)]);
        b.retransmitted_up_to(SeqNum(1000));
        b.advance(SeqNum(3500));
        assert_eq!(b.ranges, [block(3500, 4000)]);
        assert_eq!(b.high_rxt, None);
        assert_eq!(b.sacked_before(SeqNum(3700)), 200);
    }

    proptest! {
        /// Against a bitmap, across the wrap.
        #[test]
        fn ranges_match_a_bitmap(start: u32, blocks in prop::collection::vec((0u32..200, 1u32..40), 1..30)) {
            let una = SeqNum(start);
            let mut b = Scoreboard::default();
            let mut map = [false; 240];
            for (left, len) in blocks {
                let before = map.iter().filter(|&&m| m).count() as u32;
                map[left as usize..(left + len) as usize].fill(true);
                let after = map.iter().filter(|&&m| m).count() as u32;
                let new = b.update(una, una + 240, &[SackBlock { left: una + left, right: una + left + len }]);
                prop_assert_eq!(new, after - before);
            }
            for n in 0..240u32 {
                let below = map[..n as usize].iter().filter(|&&m| m).count() as u32;
                prop_assert_eq!(b.sacked_before(una + n), below);
            }
            prop_assert!(b.ranges.windows(2).all(|w| w[0].right.before(w[1].left)));
        }
    }
}
