//! Which segments are lost (RFC 8985 §6): those sent before one that was delivered, and longer ago
//! than a round trip and a reordering window. The window adapts to what the path shows (§6.2 step
//! 4).

use super::Arrival;
use super::queue::{Queue, Sent};
use airtcp_core::{Duration, Instant, SeqNum};

/// DupThresh (RFC 5681 §3.2): so many SACKed segments, and the reordering window is zero as long as
/// no reordering has been seen (RFC 8985 §6.2 step 4).
pub(super) const DUP_THRESH: u32 = 3;
/// Linux: `tcp_max_reordering`.
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
    /// Something was delivered since losses were looked for.
    advanced: bool,
    /// Where the highest SACKed segment ends.
    highest: Option<SeqNum>,
}

impl Detection {
    /// A segment was delivered (RFC 8985 §6.2 steps 1 and 2).
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

    /// Nothing is SACKed.
    pub(super) fn forget_highest(&mut self) {
        self.highest = None;
    }

    pub(super) fn highest(&self, nxt: SeqNum) -> SeqNum {
        self.highest.unwrap_or(nxt)
    }

    /// Whether losses are to be looked for; once for each advance.
    pub(super) fn take_advance(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
    }

    /// Losses are to be looked for again.
    pub(super) fn look_again(&mut self) {
        self.advanced = true;
    }

    /// Whether a segment sent `at` should have been delivered by now.
    pub(super) fn is_overdue(&self, now: Instant, at: Instant, window: Duration) -> bool {
        let rtt = self.latest.map_or(Duration::ZERO, |latest| latest.rtt);
        now.since(at) >= rtt + window
    }

    /// Marks what is lost (RFC 8985 §6.2 step 5). `lose` gets each segment as it was, and whether it
    /// is its retransmission that was lost. Returns how long until the last of those that are not
    /// yet overdue is.
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

/// RACK_sent_after (RFC 8985 §6.2 step 2): of segments sent at one time, the one with the higher
/// number.
fn is_sent_after(at: Instant, end: SeqNum, latest: &Latest) -> bool {
    at > latest.at || (at == latest.at && end.after(latest.end))
}

fn is_sent_before(sent: &Sent, latest: &Latest) -> bool {
    sent.at < latest.at || (sent.at == latest.at && sent.end.before(latest.end))
}

/// What the path has shown of reordering.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reordering {
    seen: bool,
    /// In segments.
    degree: u32,
    /// RACK.reo_wnd_mult.
    steps: u8,
    persist: u8,
    /// A DSACK is to widen the window.
    duplicate: bool,
    /// What had been delivered when the window was widened last.
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

    /// A segment arrived that `distance` bytes of later ones had overtaken.
    pub(super) fn on_overtaken(&mut self, distance: u32, smss: u32) {
        if distance > self.degree.saturating_mul(smss) {
            self.degree = distance.div_ceil(smss.max(1)).min(MOST_REORDERING);
        }
        self.seen = true;
    }

    /// A time-out in spite of duplicate ACKs: the degree was too high.
    pub(super) fn reset_degree(&mut self) {
        self.degree = self.degree.min(DUP_THRESH);
    }

    /// A retransmission was one too many, other than a probe of the tail.
    pub(super) fn on_duplicate(&mut self, of_probe: bool) {
        self.duplicate |= self.seen && !of_probe;
    }

    /// RACK_update_reo_wnd (RFC 8985 §6.2 step 4): wider by a step in each round with a DSACK.
    /// `sampled_from`: what had been delivered when the newest segment now delivered was sent.
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

    /// A recovery ended, and was needed.
    pub(super) fn end_recovery(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// A recovery was needless.
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
