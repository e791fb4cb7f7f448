//! Data delivered by a flow, and the delivery rate samples that BBR needs
//! (draft-ietf-ccwg-bbr §4.1; draft-cheng-iccrg-delivery-rate-estimation).

use super::queue::{Sent, Snapshot};
use crate::congestion::{Lost, RateSample};
use airtcp_core::{Duration, Instant, SeqNum};

/// Lifetime of the smallest RTT (Linux: `tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);

/// Counts since the connection began, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Delivered {
    total: u64,
    ce: u64,
    lost: u64,
    /// Time of the last delivery.
    at: Instant,
    /// Transmission of the newest delivered segment: the beginning of the flight in the network.
    flight_began: Instant,
    /// Total up to which samples show the application's rate.
    app_limited_until: u64,
    min_rtt: MinRtt,
    newest: Option<Newest>,
}

/// The newest of the segments that an ACK delivers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newest {
    pub(super) at: Instant,
    end: SeqNum,
    pub(super) retransmitted: bool,
    pub(super) snapshot: Snapshot,
}

impl Delivered {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            total: 0,
            ce: 0,
            lost: 0,
            at: now,
            flight_began: now,
            app_limited_until: 0,
            min_rtt: MinRtt::default(),
            newest: None,
        }
    }

    /// Bytes delivered since the connection began.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Of these, reported as marked.
    pub(crate) fn ce(&self) -> u64 {
        self.ce
    }

    /// Counts bytes that the peer reports as marked.
    pub(super) fn add_ce(&mut self, bytes: u32) {
        self.ce += u64::from(bytes);
    }

    /// Bytes taken for lost since the connection began.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// True if data sent now leaves at the application's rate.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0
    }

    pub(super) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.get()
    }

    pub(super) fn sample_rtt(&mut self, now: Instant, rtt: Duration) {
        self.min_rtt.sample(now, rtt);
    }

    /// Begins a flight: a segment enters an empty network.
    pub(super) fn begin_flight(&mut self, now: Instant) {
        self.at = now;
        self.flight_began = now;
    }

    pub(super) fn on_app_limited(&mut self, inflight: u32) {
        self.app_limited_until = (self.total + u64::from(inflight)).max(1);
    }

    pub(super) fn snapshot(&self, inflight: u32) -> Snapshot {
        Snapshot {
            first_sent_at: self.flight_began,
            delivered_at: self.at,
            delivered: self.total,
            delivered_ce: self.ce,
            lost: self.lost,
            inflight,
            app_limited: self.app_limited_until > 0,
        }
    }

    /// Begins an ACK: forgets the newest segment of the one before.
    pub(super) fn begin_ack(&mut self) {
        self.newest = None;
    }

    /// Newest segment that the ACK has delivered so far.
    pub(super) fn newest(&self) -> Option<&Newest> {
        self.newest.as_ref()
    }

    /// Counts a delivered segment.
    pub(super) fn take(&mut self, now: Instant, sent: &Sent, marked: bool) {
        let bytes = u64::from(sent.len());
        self.total += bytes;
        self.ce += if marked { bytes } else { 0 };
        self.at = now;
        let is_newer = |newest: &Newest| {
            sent.at > newest.at || (sent.at == newest.at && sent.end.after(newest.end))
        };
        if self.newest.as_ref().is_none_or(is_newer) {
            let Sent { at, end, retransmitted, snapshot, .. } = *sent;
            self.newest = Some(Newest { at, end, retransmitted, snapshot });
            self.flight_began = at;
        }
    }

    /// Counts a segment taken for lost.
    pub(super) fn lose(&mut self, now: Instant, sent: &Sent) -> Lost {
        self.lost += u64::from(sent.len());
        Lost {
            now,
            seq: sent.seq,
            bytes: sent.len(),
            tx_inflight: sent.snapshot.inflight,
            prior_lost: sent.snapshot.lost,
            lost: self.lost,
            delivered: self.total,
            app_limited: sent.snapshot.app_limited,
        }
    }

    /// Delivery rate sample of an ACK.
    pub(super) fn rate_sample(&mut self, now: Instant, newly_delivered: u32) -> Option<RateSample> {
        if self.app_limited_until > 0 && self.total > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let newest = self.newest.as_ref().filter(|_| newly_delivered > 0)?;
        let Snapshot { first_sent_at, delivered_at, delivered, .. } = newest.snapshot;
        let sent_over = newest.at.since(first_sent_at);
        let delivered_over = now.since(delivered_at);
        Some(RateSample {
            delivered: self.total - delivered,
            interval: sent_over.max(delivered_over),
            prior_delivered: delivered,
            prior_delivered_ce: newest.snapshot.delivered_ce,
            prior_lost: newest.snapshot.lost,
            tx_inflight: newest.snapshot.inflight,
            app_limited: newest.snapshot.app_limited,
            retransmitted: newest.retransmitted,
            rtt: (!newest.retransmitted).then(|| now.since(newest.at)),
        })
    }
}

/// Smallest RTT of a window of time: the minimum so far, and that of the second half of the window,
/// which replaces it.
#[derive(Clone, Copy, Debug, Default)]
struct MinRtt {
    least: Option<(Instant, Duration)>,
    next: Option<(Instant, Duration)>,
}

impl MinRtt {
    fn get(&self) -> Option<Duration> {
        self.least.map(|(_, rtt)| rtt)
    }

    fn sample(&mut self, now: Instant, rtt: Duration) {
        let new = Some((now, rtt));
        let Some((since, least)) = self.least else {
            self.least = new;
            return;
        };
        if rtt <= least {
            (self.least, self.next) = (new, None);
            return;
        }
        let age = now.since(since);
        if age > MIN_RTT_WINDOW / 2 && self.next.is_none_or(|(_, next)| rtt <= next) {
            self.next = new;
        }
        if age > MIN_RTT_WINDOW {
            (self.least, self.next) = (self.next.or(new), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_rtt_is_forgotten_after_its_window() {
        let (mut least, ms) = (MinRtt::default(), Duration::from_millis);
        least.sample(Instant::from_millis(0), ms(20));
        least.sample(Instant::from_millis(1000), ms(50));
        assert_eq!(least.get(), Some(ms(20)));
        least.sample(Instant::from_millis(200_000), ms(40));
        least.sample(Instant::from_millis(301_000), ms(60));
        assert_eq!(least.get(), Some(ms(40)));
    }
}
