//! Detection of lost segments (RFC 8985 §6): those sent before one that was delivered, and longer
//! ago than a round trip and a reordering window. The window adapts to what the path shows (§6.2
//! step 4).

use super::Arrival;
use super::queue::{Queue, Sent};
use airtcp_core::{Duration, Instant, SeqNum};

/// DupThresh (RFC 5681 §3.2): with this many segments SACKed, the reordering window is zero until
/// reordering has been seen (RFC 8985 §6.2 step 4).
pub(super) const DUP_THRESH: u32 = 3;
/// Largest reordering degree, in segments (Linux: `tcp_max_reordering`).
const MOST_REORDERING: u32 = 300;
/// RFC 8985 §6.2 step 4: RACK.reo_wnd_persist, in recoveries.
const PERSIST: u8 = 16;

/// The most recently sent segment of those delivered (RFC 8985 §5.2), and its RTT.
#[derive(Clone, Copy, Debug)]
struct Latest {
    at: Instant,
    end: SeqNum,
    rtt: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Detection {
    latest: Option<Latest>,
    /// Something was delivered since the last search for losses.
    advanced: bool,
    /// End of the highest SACKed segment.
    highest: Option<SeqNum>,
}

impl Detection {
    /// Takes a delivered segment (RFC 8985 §6.2 steps 1 and 2).
    pub(super) fn on_delivered(
        &mut self,
        ack: &Arrival<'_>,
        sent: &Sent,
        min_rtt: Option<Duration>,
    ) {
        let rtt = ack.now.since(sent.at);
        // Of a segment sent again, the ACK may be for the first transmission.
        let too_soon = min_rtt.is_some_and(|least| rtt < least);
        if sent.retransmitted && (too_soon || ack.is_for_one_before(sent.at)) {
            return;
        }
        self.advanced = true;
        let is_later = |latest: &Latest| is_sent_after(sent.at, sent.end, latest);
        self.latest = Some(match self.latest {
            Some(latest) if !is_later(&latest) => Latest { rtt, ..latest },
            _ => Latest { at: sent.at, end: sent.end, rtt },
        });
    }

    pub(super) fn on_sacked(&mut self, end: SeqNum) {
        self.highest = Some(self.highest.map_or(end, |highest| highest.later(end)));
    }

    /// Forgets the highest SACKed segment: nothing is SACKed.
    pub(super) fn forget_highest(&mut self) {
        self.highest = None;
    }

    pub(super) fn highest(&self, nxt: SeqNum) -> SeqNum {
        self.highest.unwrap_or(nxt)
    }

    /// True once after each advance: losses must be searched for.
    pub(super) fn take_advance(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
    }

    /// Requests another search for losses.
    pub(super) fn look_again(&mut self) {
        self.advanced = true;
    }

    /// True if a segment sent `at` should have been delivered by now.
    pub(super) fn is_overdue(&self, now: Instant, at: Instant, window: Duration) -> bool {
        let rtt = self.latest.map_or(Duration::ZERO, |latest| latest.rtt);
        now.since(at) >= rtt + window
    }

    /// Marks lost segments (RFC 8985 §6.2 step 5). `lose` gets each segment as it was, and true if
    /// its retransmission was lost. Returns the time until the last segment not yet overdue becomes
    /// so.
    pub(super) fn detect(
        &self,
        queue: &mut Queue,
        now: Instant,
        window: Duration,
        mut lose: impl FnMut(&Sent, bool),
    ) -> Option<Duration> {
        let latest = self.latest?;
        let mut timeout = None;
        let mut next = queue.oldest();
        while let Some(serial) = next {
            next = queue.later(serial);
            let sent = *queue.get(serial);
            if !is_sent_before(&sent, &latest) {
                break;
            }
            let due = latest.rtt + window;
            let since = now.since(sent.at);
            if since >= due {
                let again = queue.mark_lost(serial);
                lose(&sent, again);
            } else {
                timeout = timeout.max(Some(due - since));
            }
        }
        timeout
    }
}

/// RACK_sent_after (RFC 8985 §6.2 step 2): of segments sent at the same time, the higher one counts
/// as later.
fn is_sent_after(at: Instant, end: SeqNum, latest: &Latest) -> bool {
    at > latest.at || (at == latest.at && end.after(latest.end))
}

fn is_sent_before(sent: &Sent, latest: &Latest) -> bool {
    sent.at < latest.at || (sent.at == latest.at && sent.end.before(latest.end))
}

/// Reordering observed on the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reordering {
    seen: bool,
    /// Reordering degree, in segments.
    degree: u32,
    /// RACK.reo_wnd_mult: quarters of the smallest RTT in the window.
    steps: u8,
    persist: u8,
    /// A DSACK has come: the window is to be widened.
    duplicate: bool,
    /// Bytes delivered when the window was last widened.
    widened: u64,
}

impl Default for Reordering {
    fn default() -> Self {
        Self { seen: false, degree: DUP_THRESH, steps: 1, persist: 0, duplicate: false, widened: 0 }
    }
}

impl Reordering {
    pub(super) fn degree(&self) -> u32 {
        self.degree
    }

    /// Notes a segment that `distance` bytes of later data had overtaken.
    pub(super) fn on_overtaken(&mut self, distance: u32, smss: u32) {
        if distance > self.degree.saturating_mul(smss) {
            self.degree = distance.div_ceil(smss.max(1)).min(MOST_REORDERING);
        }
        self.seen = true;
    }

    /// Lowers the degree after a time-out in spite of duplicate ACKs: it was too high.
    pub(super) fn reset_degree(&mut self) {
        self.degree = self.degree.min(DUP_THRESH);
    }

    /// Notes a needless retransmission, other than a tail loss probe.
    pub(super) fn on_duplicate(&mut self, of_probe: bool) {
        self.duplicate |= self.seen && !of_probe;
    }

    /// RACK_update_reo_wnd (RFC 8985 §6.2 step 4): widens the window by a step in each round with a
    /// DSACK. `sampled_from`: bytes delivered when the newest segment now delivered was sent.
    pub(super) fn on_round(&mut self, sampled_from: Option<u64>, delivered: u64) {
        let Some(from) = sampled_from.filter(|&from| from > 0) else { return };
        if from < self.widened {
            self.duplicate = false;
        }
        if std::mem::take(&mut self.duplicate) {
            self.steps = self.steps.saturating_add(1);
            self.persist = PERSIST;
            self.widened = delivered;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Notes the end of a recovery that was needed.
    pub(super) fn end_recovery(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// Notes a needless recovery: the window stays wide for longer.
    pub(super) fn prolong(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// RACK.reo_wnd (RFC 8985 §6.2 step 4).
    pub(super) fn window(
        &self,
        in_recovery: bool,
        sacked: u32,
        min_rtt: Duration,
        srtt: Option<Duration>,
    ) -> Duration {
        if !self.seen && (in_recovery || sacked >= DUP_THRESH) {
            return Duration::ZERO;
        }
        (min_rtt * u64::from(self.steps) / 4).min(srtt.unwrap_or(Duration::ZERO))
    }
}
