//! RACK-TLP: loss detection by time (RFC 8985), with proportional rate reduction (RFC 9937) and
//! undo of needless reductions by DSACK (RFC 2883, RFC 3708), timestamps (RFC 3522) and F-RTO (RFC
//! 5682). What the RFCs leave open is as in Linux, which runs all of them together.
//!
//! Read in this order: `queue.rs` (a record of each segment sent), `detection.rs` (which of them
//! are lost, and how much reordering the path shows), `delivery.rs` (what was delivered, and how
//! fast), `undo.rs`, `prr.rs`; then this file, which handles ACKs and expiries, asks all of them
//! and moves the phase of the sender.
//!
//! Phases are those of [`RecoveryPhase`]. A sender in [`RecoveryPhase::Open`] with SACKed segments
//! or retransmissions in the network is what Linux calls Disorder.

mod delivery;
mod detection;
mod prr;
mod queue;
mod undo;

use super::{LossRecovery, RecoveryPhase, Reduction};
use crate::congestion::{Ack, Loss, RateSample, Spurious, Timeout, Undo as Needless};
use airtcp_core::{Duration, Instant, SackBlock, SackBlocks, SeqNum};
use delivery::Delivered;
use detection::{Detection, Reordering};
use prr::{Progress, Prr};
use queue::Queue;
use undo::Undo;

/// An ACK on arrival, and the sender's state before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) now: Instant,
    pub(crate) ack: SeqNum,
    /// SND.UNA before the ACK.
    pub(crate) una: SeqNum,
    /// SND.NXT on arrival.
    pub(crate) nxt: SeqNum,
    pub(crate) blocks: &'a [SackBlock],
    /// Echoed timestamp, if any (our clock, in milliseconds).
    pub(crate) echo: Option<u32>,
    /// Our timestamp clock, in milliseconds.
    pub(crate) clock: u32,
    /// The ACK echoes a congestion mark (RFC 3168), or reports new ones (RFC 9768).
    pub(crate) ece: bool,
    /// Data waits and the peer's window has room for it.
    pub(crate) may_send_new: bool,
    /// Largest window the peer ever had: older SACK blocks are invalid.
    pub(crate) max_window: u32,
    pub(crate) smss: u32,
    /// Smoothed RTT before the ACK.
    pub(crate) srtt: Option<Duration>,
}

impl Arrival<'_> {
    /// True if the echoed timestamp shows that the ACK is for a transmission before the one `at`.
    fn is_for_one_before(&self, at: Instant) -> bool {
        let millis = |at: Instant| (at.as_nanos() / 1_000_000) as u32;
        let clock = self.clock.wrapping_sub(millis(self.now).wrapping_sub(millis(at)));
        self.echo.is_some_and(|echo| undo::is_older(echo, clock))
    }
}

/// Results of an ACK for the endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) newly_delivered: u32,
    /// Segments newly delivered.
    pub(crate) segments_delivered: u32,
    /// Bytes newly reported as marked.
    pub(crate) newly_ce: u32,
    pub(crate) newly_sacked: bool,
    /// RTT sample for the estimator, from a segment sent once.
    pub(crate) rtt: Option<Duration>,
    pub(crate) rate: Option<RateSample>,
    pub(crate) prior_inflight: u32,
    pub(crate) newly_lost: u32,
    /// The reduction that began.
    pub(crate) reduction: Option<(Reduction, Began)>,
    /// The reduction that was undone.
    pub(crate) undone: Option<Spurious>,
    /// New data is sent before retransmissions (F-RTO).
    pub(crate) new_first: bool,
    /// The retransmission timer must restart.
    pub(crate) rearm: bool,
    /// Time for which the reordering timer must run.
    pub(crate) reorder: Option<Duration>,
    una_advanced: bool,
    /// Totals before the ACK.
    before: Totals,
    dsack: bool,
    dsack_of_probe: bool,
    /// First and last of the SACKed segments that were sent once.
    sacked: Option<[(SeqNum, Instant); 2]>,
    /// The ACK delivered data sent before the last time-out and never retransmitted.
    original_arrived: bool,
    /// Lowest delivered segment that later ones had overtaken.
    overtaken: Option<SeqNum>,
    lost_again: bool,
}

impl Outcome {
    fn note_sacked(&mut self, seq: SeqNum, at: Instant) {
        let [first, last] = self.sacked.get_or_insert([(seq, at); 2]);
        if seq.before(first.0) {
            *first = (seq, at);
        }
        if seq.after(last.0) {
            *last = (seq, at);
        }
    }
}

/// Bytes since the connection began.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    delivered: u64,
    ce: u64,
    lost: u64,
}

/// Cause of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Began {
    Loss,
    Mark,
    /// A tail loss probe repaired a loss (RFC 8985 §7.4.2).
    ProbedLoss,
}

/// A tail loss probe in the network (RFC 8985 §7.2).
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// TLP.end_seq: SND.NXT when it was sent.
    end: SeqNum,
    retransmission: bool,
}

/// The sender's side of RACK-TLP for one connection.
#[derive(Debug)]
pub(crate) struct Rack {
    queue: Queue,
    detection: Detection,
    reordering: Reordering,
    delivered: Delivered,
    prr: Prr,
    undo: Undo,
    probe: Option<Probe>,
    /// F-RTO examines the ACKs after a time-out.
    f_rto: bool,
    /// SND.NXT when the phase began; the phase ends when SND.UNA reaches it.
    high: SeqNum,
    /// SACK blocks of the previous ACK.
    seen: SackBlocks,
    /// Timestamp of the first retransmission of this phase, in milliseconds.
    first_retransmission: Option<u32>,
    /// The receiver dropped data that it had reported (reneging).
    reneged: bool,
    /// Smoothed RTT at the last ACK.
    srtt: Option<Duration>,
}

impl Rack {
    pub(crate) fn new(now: Instant, una: SeqNum) -> Self {
        Self {
            queue: Queue::default(),
            detection: Detection::default(),
            reordering: Reordering::default(),
            delivered: Delivered::new(now),
            prr: Prr::new(1),
            undo: Undo::default(),
            probe: None,
            f_rto: false,
            high: una,
            seen: SackBlocks::new(),
            first_retransmission: None,
            reneged: false,
            srtt: None,
        }
    }

    /// Bytes in the network.
    pub(crate) fn inflight(&self) -> u32 {
        self.queue.inflight()
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) fn delivered(&self) -> &Delivered {
        &self.delivered
    }

    /// Smallest RTT of the last five minutes.
    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        self.delivered.min_rtt()
    }

    /// Reordering degree of the path in segments, at least 3.
    pub(crate) fn reordering(&self) -> u32 {
        self.reordering.degree()
    }

    /// True if data is SACKed or retransmissions are in the network: Linux's Disorder in the open
    /// phase.
    pub(crate) fn in_disorder(&self) -> bool {
        self.queue.sacked().segments > 0 || self.queue.resent().segments > 0
    }

    /// False while F-RTO waits for its verdict: no retransmission may leave.
    pub(crate) fn may_retransmit(&self, phase: RecoveryPhase) -> bool {
        !(phase == RecoveryPhase::Loss && self.f_rto)
    }

    /// Records the first transmission of a segment.
    pub(crate) fn on_sent(&mut self, now: Instant, seq: SeqNum, end: SeqNum, phase: RecoveryPhase) {
        let len = end.bytes_after(seq);
        if self.queue.is_empty() {
            self.delivered.begin_flight(now);
        }
        let snapshot = self.delivered.snapshot(self.queue.inflight() + len);
        self.queue.push(seq, end, now, snapshot);
        self.count_sent(len, phase);
    }

    /// Next segment to retransmit.
    pub(crate) fn next_lost(&mut self) -> Option<(u64, SeqNum, SeqNum)> {
        let serial = self.queue.next_lost()?;
        let record = self.queue.get(serial);
        Some((serial, record.seq, record.end))
    }

    /// First unacknowledged segment.
    pub(crate) fn first(&self) -> Option<(u64, SeqNum, SeqNum)> {
        let (serial, record) = self.queue.iter().next()?;
        Some((serial, record.seq, record.end))
    }

    /// Last segment sent.
    pub(crate) fn last(&self) -> Option<(u64, SeqNum, SeqNum)> {
        let serial = self.queue.last()?;
        let record = self.queue.get(serial);
        Some((serial, record.seq, record.end))
    }

    /// Time of the last transmission of the first unacknowledged segment.
    pub(crate) fn first_sent_at(&self) -> Option<Instant> {
        self.queue.front().map(|record| record.at)
    }

    /// Records a retransmission. `clock` is our timestamp clock.
    pub(crate) fn on_retransmitted(
        &mut self,
        now: Instant,
        serial: u64,
        clock: u32,
        phase: RecoveryPhase,
    ) {
        let record = self.queue.get(serial);
        let (len, in_network) = (record.len(), u32::from(!record.resent) * record.len());
        let snapshot = self.delivered.snapshot(self.queue.inflight() + in_network);
        self.queue.send_again(serial, now, snapshot);
        self.first_retransmission.get_or_insert(clock);
        self.undo.on_retransmitted();
        self.count_sent(len, phase);
    }

    fn count_sent(&mut self, len: u32, phase: RecoveryPhase) {
        if matches!(phase, RecoveryPhase::Recovery | RecoveryPhase::Cwr) {
            self.prr.on_sent(len);
        }
    }

    /// Notes that the application leaves the network with room for more.
    pub(crate) fn on_app_limited(&mut self) {
        self.delivered.on_app_limited(self.queue.inflight());
    }

    /// Updates the records after an ACK. The caller then reads the marks that it reports and calls
    /// [`Rack::react`].
    pub(crate) fn on_ack(&mut self, recovery: &mut LossRecovery, ack: &Arrival<'_>) -> Outcome {
        let mut out = Outcome {
            prior_inflight: self.queue.inflight(),
            una_advanced: ack.ack.after(ack.una),
            before: Totals {
                delivered: self.delivered.total(),
                ce: self.delivered.ce(),
                lost: self.delivered.lost(),
            },
            ..Outcome::default()
        };
        self.srtt = ack.srtt;
        self.delivered.begin_ack();
        let highest = self.highest_sacked(ack.una, ack.nxt);
        self.take_blocks(recovery, ack, &mut out);
        self.take_acknowledged(ack, highest, &mut out);
        out
    }

    /// Bytes delivered by the ACK so far.
    pub(crate) fn newly_delivered(&self, out: &Outcome) -> u32 {
        (self.delivered.total() - out.before.delivered) as u32
    }

    /// Adds `bytes` that the ACK reports as marked (RFC 9768).
    pub(crate) fn on_marks(&mut self, bytes: u32) {
        self.delivered.add_ce(bytes);
    }

    /// Finds losses and moves the phase after an ACK. The caller then informs the congestion
    /// control ([`Rack::control`]) and sends.
    pub(crate) fn react(
        &mut self,
        recovery: &mut LossRecovery,
        ack: &Arrival<'_>,
        out: &mut Outcome,
    ) {
        let sampled_from = self.delivered.newest().map(|newest| newest.snapshot.delivered);
        self.reordering.on_round(sampled_from, self.delivered.total());
        self.judge_probe(recovery, ack, out);
        if self.is_dubious(recovery, ack, out) {
            self.move_phase(recovery, ack, out);
        }
        out.newly_delivered = self.newly_delivered(out);
        out.newly_ce = (self.delivered.ce() - out.before.ce) as u32;
        out.newly_lost = (self.delivered.lost() - out.before.lost) as u32;
        out.rate = self.delivered.rate_sample(ack.now, out.newly_delivered);
        out.rate = out.rate.filter(|_| !self.reneged);
        if out.reorder.is_some() {
            out.rearm = false;
        }
    }

    /// Informs the congestion control of an ACK, and moves cwnd.
    pub(crate) fn control(&mut self, recovery: &mut LossRecovery, heard: &Ack, out: &Outcome) {
        recovery.on_ack(heard);
        if recovery.owns_recovery() {
            return;
        }
        let progressed = out.una_advanced
            || (self.reordering.degree() > detection::DUP_THRESH && out.newly_sacked);
        match recovery.phase() {
            RecoveryPhase::Recovery | RecoveryPhase::Cwr => {
                let safe = out.una_advanced && out.newly_lost == 0;
                self.reduce_in_proportion(recovery, out.newly_delivered, safe);
            }
            RecoveryPhase::Open | RecoveryPhase::Loss if progressed => recovery.grow(heard),
            RecoveryPhase::Open | RecoveryPhase::Loss => {}
        }
    }

    fn reduce_in_proportion(&mut self, recovery: &mut LossRecovery, delivered: u32, safe: bool) {
        let window = recovery.window();
        let progress = Progress {
            smss: window.smss(),
            ssthresh: window.ssthresh(),
            inflight: self.queue.inflight(),
            newly_delivered: delivered,
            safe,
        };
        if let Some(cwnd) = self.prr.cwnd(&progress) {
            recovery.set_cwnd(cwnd);
        }
    }

    /// End of the highest SACKed segment (Linux: `tcp_highest_sack_seq`).
    fn highest_sacked(&self, una: SeqNum, nxt: SeqNum) -> SeqNum {
        if self.queue.sacked().segments == 0 { una } else { self.detection.highest(nxt) }
    }

    /// Processes the SACK blocks: first a report of duplicates, then newly reported data.
    fn take_blocks(&mut self, recovery: &LossRecovery, ack: &Arrival<'_>, out: &mut Outcome) {
        if ack.blocks.is_empty() {
            return;
        }
        let duplicate = self.take_duplicate(ack, out);
        let valid = |block: &&SackBlock| {
            block.left.before(block.right)
                && block.right.at_or_before(ack.nxt)
                && block.left.at_or_after(ack.una)
        };
        let blocks = ack.blocks.iter().filter(valid).copied();
        let blocks: SackBlocks = blocks.collect();
        for &block in blocks.as_slice() {
            let overlaps =
                |seen: &&SackBlock| seen.left.before(block.right) && block.left.before(seen.right);
            let seen = self.seen.as_slice().iter().find(overlaps).copied();
            for serial in self.queue.covered(block, seen) {
                self.take_sacked(serial, ack, out);
            }
        }
        if let Some(block) = duplicate {
            // The retransmission was needless, and is no longer in the network.
            for serial in self.queue.covered(block, None) {
                self.queue.forget_retransmission(serial);
            }
        }
        self.seen = blocks;
        if out.newly_sacked && (recovery.phase() != RecoveryPhase::Loss || self.undo.is_armed()) {
            self.note_reordering(ack, out.overtaken);
        }
    }

    fn note_reordering(&mut self, ack: &Arrival<'_>, overtaken: Option<SeqNum>) {
        let highest = self.highest_sacked(ack.una, ack.nxt);
        if let Some(low) = overtaken.filter(|low| low.before(highest)) {
            self.reordering.on_overtaken(highest.bytes_after(low), ack.smss);
        }
    }

    /// Processes a segment that a block covers.
    fn take_sacked(&mut self, serial: u64, ack: &Arrival<'_>, out: &mut Outcome) {
        let record = *self.queue.get(serial);
        if record.sacked {
            return;
        }
        self.detection.on_delivered(ack, &record, self.delivered.min_rtt());
        if !record.retransmitted {
            if record.seq.before(self.highest_sacked(ack.una, ack.nxt)) {
                out.overtaken = Some(out.overtaken.map_or(record.seq, |l| l.earlier(record.seq)));
            }
            out.original_arrived |= record.end.at_or_before(self.high);
            out.note_sacked(record.seq, record.at);
        }
        self.queue.mark_sacked(serial);
        self.detection.on_sacked(record.end);
        self.delivered.take(ack.now, &record, ack.ece);
        out.segments_delivered += 1;
        out.newly_sacked = true;
    }

    /// Processes a DSACK: the first block lies below the acknowledgement, or inside the second one
    /// (RFC 2883).
    fn take_duplicate(&mut self, ack: &Arrival<'_>, out: &mut Outcome) -> Option<SackBlock> {
        let (&first, rest) = ack.blocks.split_first()?;
        let inside = |outer: &SackBlock| {
            first.right.at_or_before(outer.right) && first.left.at_or_after(outer.left)
        };
        let is_duplicate = first.left.before(ack.ack) || rest.first().is_some_and(inside);
        let len = first.right.bytes_after(first.left);
        if !is_duplicate || !first.left.before(first.right) || len > ack.max_window {
            return None;
        }
        let segments = len.div_ceil(ack.smss.max(1));
        out.dsack_of_probe = self.probe.is_some_and(|probe| probe.end == first.right);
        if !self.undo.count_duplicate(segments) {
            return None; // more duplicates than retransmissions: the network made them
        }
        self.reordering.on_duplicate(out.dsack_of_probe);
        out.dsack = true;
        if first.right.at_or_before(ack.una) {
            self.undo.on_duplicate(first.right, segments);
        } else {
            for serial in self.queue.covered(first, None) {
                let record = self.queue.get(serial);
                if record.retransmitted {
                    self.undo.on_duplicate(record.end, 1);
                }
            }
        }
        Some(first)
    }

    /// Processes the segments below the acknowledgement.
    fn take_acknowledged(&mut self, ack: &Arrival<'_>, highest: SeqNum, out: &mut Outcome) {
        let mut oldest: Option<Instant> = None;
        let mut newest: Option<Instant> = None;
        let mut retransmitted = false;
        let mut overtaken: Option<SeqNum> = None;
        let mut count = 0;
        while let Some(record) = self.queue.pop_acknowledged(ack.ack) {
            count += 1;
            out.rearm = true;
            if record.retransmitted {
                retransmitted = true;
            } else if !record.sacked {
                oldest.get_or_insert(record.at);
                newest = Some(record.at);
                overtaken.get_or_insert(record.seq);
                out.original_arrived |= record.end.at_or_before(self.high);
            }
            if !record.sacked {
                self.detection.on_delivered(ack, &record, self.delivered.min_rtt());
                self.delivered.take(ack.now, &record, ack.ece);
                out.segments_delivered += 1;
            }
        }
        if let Some(low) = overtaken.filter(|low| low.before(highest)) {
            self.reordering.on_overtaken(highest.bytes_after(low), ack.smss);
        }
        if self.queue.sacked().segments == 0 {
            self.detection.forget_highest();
        }
        // RFC 6298 §3, Karn: not from a segment sent twice. Without one, a SACKed segment serves
        // (Linux: `tcp_ack_update_rtt`).
        let (first, last) = out.sacked.map(|[(_, first), (_, last)]| (first, last)).unzip();
        out.rtt = oldest.filter(|_| !retransmitted).or(first).map(|sent| ack.now.since(sent));
        if let Some(sent) = last.or(newest.filter(|_| !retransmitted)) {
            // A lone small segment may have waited for a delayed ACK.
            let rtt = ack.now.since(sent);
            let waited = count == 1 && ack.ack.bytes_after(ack.una) < ack.smss;
            if !waited || self.delivered.min_rtt().is_none_or(|least| rtt <= least) {
                self.delivered.sample_rtt(ack.now, rtt);
            }
        }
    }

    /// Evaluates a tail loss probe after an ACK (RFC 8985 §7.4).
    fn judge_probe(&mut self, recovery: &mut LossRecovery, ack: &Arrival<'_>, out: &mut Outcome) {
        let Some(probe) = self.probe.filter(|probe| ack.ack.at_or_after(probe.end)) else {
            return;
        };
        if !probe.retransmission || out.dsack {
            self.probe = None; // new data arrived, or both original and probe did
        } else if ack.ack.after(probe.end) {
            self.probe = None;
            if recovery.phase() == RecoveryPhase::Open {
                let reduction = self.reduce(recovery, ack.now, ack.nxt, false);
                recovery.set_phase(RecoveryPhase::Cwr);
                self.end_reduction(recovery, ack.now);
                out.reduction = Some((reduction, Began::ProbedLoss));
            }
        } else if !out.una_advanced && !out.newly_sacked {
            self.probe = None; // a duplicate ACK: the original had arrived
        }
    }

    /// True if the ACK or the phase requires a closer look (Linux: `tcp_ack_is_dubious`).
    fn is_dubious(&self, recovery: &LossRecovery, ack: &Arrival<'_>, out: &Outcome) -> bool {
        let plain = out.una_advanced && !out.newly_sacked && !out.dsack && !ack.ece;
        !plain || recovery.phase() != RecoveryPhase::Open || self.in_disorder()
    }

    /// Ends, begins or changes phases (RFC 8985 §6.2; Linux: `tcp_fastretrans_alert`).
    fn move_phase(&mut self, recovery: &mut LossRecovery, ack: &Arrival<'_>, out: &mut Outcome) {
        if ack.ece {
            self.undo.forget_windows();
        }
        if recovery.phase() == RecoveryPhase::Open && self.queue.resent().segments == 0 {
            self.first_retransmission = None;
        }
        if ack.ack.at_or_after(self.high) {
            match recovery.phase() {
                RecoveryPhase::Cwr if ack.ack != self.high => self.end_reduction(recovery, ack.now),
                RecoveryPhase::Recovery => {
                    self.try_undo_at_end(recovery, ack, Spurious::FastRetransmit, out);
                    self.end_reduction(recovery, ack.now);
                }
                _ => {}
            }
        }
        match recovery.phase() {
            RecoveryPhase::Recovery => self.move_on_in_recovery(recovery, ack, out),
            RecoveryPhase::Loss => self.move_on_in_loss(recovery, ack, out),
            RecoveryPhase::Open | RecoveryPhase::Cwr => {
                if recovery.phase() == RecoveryPhase::Open {
                    self.try_undo_by_duplicates(recovery, ack, out);
                }
                self.look_for_losses(recovery, ack, out);
            }
        }
    }

    fn move_on_in_recovery(
        &mut self,
        recovery: &mut LossRecovery,
        ack: &Arrival<'_>,
        out: &mut Outcome,
    ) {
        if out.una_advanced && self.try_undo_on_partial(recovery, ack, out) {
            return;
        }
        if self.try_undo_by_duplicates(recovery, ack, out) {
            recovery.set_phase(RecoveryPhase::Open);
        }
        self.look_for_losses(recovery, ack, out);
    }

    /// Handles an ACK after a time-out (RFC 5682 §3.1; Linux: `tcp_process_loss`).
    fn move_on_in_loss(
        &mut self,
        recovery: &mut LossRecovery,
        ack: &Arrival<'_>,
        out: &mut Outcome,
    ) {
        let complete = ack.ack.at_or_after(self.high);
        let told = out.una_advanced && self.undo.is_needless(ack.echo, self.first_retransmission);
        // Step 3b: data that was never sent again has arrived.
        let originals = self.f_rto && out.original_arrived;
        if told || originals {
            self.restore(recovery, ack, Spurious::Timeout, out);
            self.queue_unmark(recovery);
            recovery.set_phase(RecoveryPhase::Open);
        } else if self.f_rto && ack.nxt.after(self.high) {
            // Step 3a: a duplicate ACK after new data.
            self.f_rto &= out.una_advanced && !out.newly_sacked;
        } else if self.f_rto && out.una_advanced && !complete {
            // Step 2b: new data on the first ACK.
            self.high = ack.nxt;
            out.new_first = ack.may_send_new;
            self.f_rto = ack.may_send_new;
            if out.new_first {
                return;
            }
        }
        if recovery.phase() == RecoveryPhase::Loss && complete {
            self.try_undo_at_end(recovery, ack, Spurious::Timeout, out);
            self.leave(recovery, ack.now);
        }
        self.detect(recovery, ack, out);
        if recovery.phase() == RecoveryPhase::Open || out.lost_again {
            self.enter_if_lost(recovery, ack, out);
        }
    }

    fn look_for_losses(
        &mut self,
        recovery: &mut LossRecovery,
        ack: &Arrival<'_>,
        out: &mut Outcome,
    ) {
        self.detect(recovery, ack, out);
        if recovery.phase() != RecoveryPhase::Recovery {
            self.enter_if_lost(recovery, ack, out);
        }
    }

    /// Detects losses (RFC 8985 §6.2 step 5).
    fn detect(&mut self, recovery: &mut LossRecovery, ack: &Arrival<'_>, out: &mut Outcome) {
        if !self.detection.take_advance() {
            return;
        }
        let (lost_again, timeout) = self.mark_losses(recovery, ack.now);
        out.lost_again |= lost_again;
        out.reorder = timeout;
    }

    fn mark_losses(
        &mut self,
        recovery: &mut LossRecovery,
        now: Instant,
    ) -> (bool, Option<Duration>) {
        let least = self.delivered.min_rtt().unwrap_or(Duration::ZERO);
        let in_recovery = matches!(recovery.phase(), RecoveryPhase::Recovery | RecoveryPhase::Loss);
        let sacked = self.queue.sacked().segments;
        let window = self.reordering.window(in_recovery, sacked, least, self.srtt);
        let mut lost_again = false;
        let timeout = self.detection.detect(&mut self.queue, now, window, |lost, again| {
            lost_again |= again;
            recovery.on_lost(&self.delivered.lose(now, lost));
        });
        (lost_again, timeout)
    }

    /// Begins recovery if something is lost, or the reduction for a mark.
    fn enter_if_lost(&mut self, recovery: &mut LossRecovery, ack: &Arrival<'_>, out: &mut Outcome) {
        if self.queue.lost().segments == 0 {
            if recovery.phase() == RecoveryPhase::Open && !self.any_retransmitted() {
                self.first_retransmission = None;
            }
            if ack.ece && recovery.phase() == RecoveryPhase::Open {
                self.undo.disarm();
                let reduction = self.reduce(recovery, ack.now, ack.nxt, true);
                recovery.set_phase(RecoveryPhase::Cwr);
                out.reduction = Some((reduction, Began::Mark));
            }
            return;
        }
        let reduction = self.enter_recovery(recovery, ack.now, ack.una.later(ack.ack), ack.nxt);
        out.reduction = reduction.map(|reduction| (reduction, Began::Loss));
    }

    fn enter_recovery(
        &mut self,
        recovery: &mut LossRecovery,
        now: Instant,
        una: SeqNum,
        nxt: SeqNum,
    ) -> Option<Reduction> {
        let resent = self.queue.resent().segments;
        let probes = u32::from(self.probe.is_some_and(|probe| probe.retransmission));
        self.undo.arm(una, resent + probes);
        let reduction = if recovery.phase() == RecoveryPhase::Cwr {
            self.undo.forget_windows();
            None // cwnd is being reduced already, because of a mark
        } else {
            self.undo.save(recovery.windows_before());
            Some(self.reduce(recovery, now, nxt, false))
        };
        recovery.set_phase(RecoveryPhase::Recovery);
        reduction
    }

    fn reduce(
        &mut self,
        recovery: &mut LossRecovery,
        now: Instant,
        nxt: SeqNum,
        marked: bool,
    ) -> Reduction {
        self.high = nxt;
        self.probe = None;
        self.prr = Prr::new(recovery.window().cwnd());
        let flight = recovery.loss_window(self.queue.inflight() + self.queue.lost().bytes);
        let loss = Loss { now, flight, duplicate_acks: recovery.duplicate_acks() };
        recovery.begin_reduction(&loss, marked)
    }

    /// Ends a reduction: cwnd has come down (Linux: `tcp_end_cwnd_reduction`).
    fn end_reduction(&mut self, recovery: &mut LossRecovery, now: Instant) {
        let undone = !self.undo.is_armed() && recovery.phase() != RecoveryPhase::Cwr;
        if !recovery.owns_recovery() && !undone {
            recovery.end_reduction();
        }
        self.leave(recovery, now);
    }

    fn leave(&mut self, recovery: &mut LossRecovery, now: Instant) {
        recovery.set_phase(RecoveryPhase::Open);
        recovery.on_recovered(now);
        self.f_rto = false;
        self.reneged = false;
    }

    fn any_retransmitted(&self) -> bool {
        self.queue.resent().segments > 0 || self.queue.front().is_some_and(|r| r.retransmitted)
    }

    /// At the end of recovery, undoes it if all of it was needless (RFC 3522 §3.2, RFC 3708).
    fn try_undo_at_end(
        &mut self,
        recovery: &mut LossRecovery,
        ack: &Arrival<'_>,
        kind: Spurious,
        out: &mut Outcome,
    ) {
        if self.undo.is_needless(ack.echo, self.first_retransmission) {
            self.restore(recovery, ack, kind, out);
        } else {
            self.reordering.end_recovery();
        }
    }

    /// Undoes the reduction if there is a DSACK for each retransmission (RFC 3708).
    fn try_undo_by_duplicates(
        &mut self,
        recovery: &mut LossRecovery,
        ack: &Arrival<'_>,
        out: &mut Outcome,
    ) -> bool {
        let needless = self.undo.all_duplicates();
        if needless {
            self.reordering.prolong();
            self.restore(recovery, ack, Spurious::FastRetransmit, out);
        }
        needless
    }

    /// Undoes the reduction after a partial ACK for a segment that was late, not lost: its
    /// timestamp is older than the first retransmission. Returns true to wait for the
    /// retransmissions in the network.
    fn try_undo_on_partial(
        &mut self,
        recovery: &mut LossRecovery,
        ack: &Arrival<'_>,
        out: &mut Outcome,
    ) -> bool {
        let delayed = undo::was_delayed(ack.echo, self.first_retransmission);
        if !self.undo.is_armed() || !delayed {
            return false;
        }
        let highest = self.highest_sacked(ack.una, ack.nxt);
        if ack.una.before(highest) {
            self.reordering.on_overtaken(highest.bytes_after(ack.una), ack.smss);
        }
        if self.queue.resent().segments > 0 {
            return true;
        }
        if !self.any_retransmitted() {
            self.first_retransmission = None;
        }
        self.restore(recovery, ack, Spurious::FastRetransmit, out);
        self.queue_unmark(recovery);
        recovery.set_phase(RecoveryPhase::Open);
        false
    }

    fn queue_unmark(&mut self, recovery: &mut LossRecovery) {
        self.queue.unmark_lost();
        recovery.forget_duplicates();
    }

    fn restore(
        &mut self,
        recovery: &mut LossRecovery,
        ack: &Arrival<'_>,
        cause: Spurious,
        out: &mut Outcome,
    ) {
        self.undo.disarm();
        self.f_rto = false;
        self.detection.look_again();
        out.undone = Some(cause);
        let Some(before) = self.undo.take_windows() else { return };
        recovery.restore(&Needless {
            now: ack.now,
            cause,
            flight: ack.nxt.bytes_after(ack.ack),
            acked: 0,
            pipe_prev: before.ssthresh,
            restore: Some(before),
        });
    }

    /// Handles a time-out (RFC 8985 §6.3; Linux: `tcp_enter_loss`).
    pub(crate) fn on_timeout(
        &mut self,
        recovery: &mut LossRecovery,
        timeout: &Timeout,
        una: SeqNum,
        nxt: SeqNum,
    ) -> Reduction {
        let phase = recovery.phase();
        if self.queue.front().is_some_and(|first| first.sacked) {
            self.reneged = true; // RFC 2018 §8
            self.queue.unmark_sacked();
            self.detection.forget_highest();
            self.seen = SackBlocks::new();
        }
        if phase == RecoveryPhase::Open && self.queue.sacked().segments >= detection::DUP_THRESH {
            self.reordering.reset_degree();
        }
        let before = recovery.windows_before();
        let flight = recovery.loss_window(self.queue.inflight() + self.queue.lost().bytes);
        self.mark_all_lost(recovery, timeout.now);
        let is_new = matches!(phase, RecoveryPhase::Open)
            || !self.high.after(una)
            || (phase == RecoveryPhase::Loss && timeout.first);
        if is_new {
            self.undo.save(before);
            self.undo.arm(una, self.queue.resent().segments);
        }
        self.f_rto = matches!(phase, RecoveryPhase::Open | RecoveryPhase::Cwr) || !timeout.first;
        let timeout = Timeout { flight, first: is_new, ..*timeout };
        let reduction = recovery.on_rack_timeout(&timeout, self.queue.inflight());
        self.high = nxt;
        self.probe = None;
        reduction
    }

    /// Marks everything lost but what was sent less than an RTT ago.
    fn mark_all_lost(&mut self, recovery: &mut LossRecovery, now: Instant) {
        let lost: Vec<u64> = self
            .queue
            .iter()
            .enumerate()
            .filter(|(i, (_, record))| {
                let recent = *i > 0 && !self.detection.is_overdue(now, record.at, Duration::ZERO);
                !record.sacked && !recent
            })
            .map(|(_, (serial, _))| serial)
            .collect();
        for serial in lost {
            let record = *self.queue.get(serial);
            if record.lost && !record.resent {
                continue;
            }
            self.queue.mark_lost(serial);
            recovery.on_lost(&self.delivered.lose(now, &record));
        }
    }

    /// Handles the expiry of the reordering timer (RFC 8985 §6.3). Returns the reduction, if
    /// recovery begins.
    pub(crate) fn on_reordering_timeout(
        &mut self,
        recovery: &mut LossRecovery,
        now: Instant,
        una: SeqNum,
        nxt: SeqNum,
    ) -> (Option<Reduction>, Option<Duration>) {
        let inflight = self.queue.inflight();
        let (_, timeout) = self.mark_losses(recovery, now);
        let mut reduction = None;
        if self.queue.inflight() != inflight && recovery.phase() != RecoveryPhase::Recovery {
            reduction = self.enter_recovery(recovery, now, una, nxt);
            if !recovery.owns_recovery() {
                let smss = recovery.window().smss();
                self.reduce_in_proportion(recovery, smss, false);
            }
        }
        (reduction, timeout)
    }

    /// Time to wait before a tail loss probe (RFC 8985 §7.2); `None` if none is due.
    pub(crate) fn probe_timeout(
        &self,
        phase: RecoveryPhase,
        srtt: Option<Duration>,
        max_ack_delay: Duration,
        least: Duration,
    ) -> Option<Duration> {
        let open = matches!(phase, RecoveryPhase::Open | RecoveryPhase::Cwr) && !self.in_disorder();
        if !open || self.queue.is_empty() {
            return None;
        }
        let alone = self.queue.segments() == 1;
        let waits = if alone { max_ack_delay } else { least };
        Some(srtt? * 2 + waits)
    }

    /// True if a probe is in the network; there is at most one.
    pub(crate) fn is_probing(&self) -> bool {
        self.probe.is_some()
    }

    pub(crate) fn on_probe_sent(&mut self, nxt: SeqNum, retransmission: bool) {
        self.probe = Some(Probe { end: nxt, retransmission });
    }

    /// Ends F-RTO if it could send no new data (RFC 5682 §2.1 step 2b).
    pub(crate) fn give_up_f_rto_unless_sent(&mut self, nxt: SeqNum) {
        self.f_rto &= nxt.after(self.high);
    }
}
