//! An ACK policy with two timers that also writes the window field.

use airtcp_core::{Duration, Instant};
use airtcp_tcp::ack::{AckPolicy, Arrival, Decision, Departure, Order};
use std::sync::{Arc, Mutex};

/// Calls observed by [`Cumulative`], for tests to read while the endpoint owns the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The sender's cwnd as reported by data segments, each change once.
    pub cwnds: Vec<u32>,
    /// Hops that data segments travelled, each change once.
    pub hops: Vec<u8>,
    /// Round trips from an ACK to what it released.
    pub rtts: Vec<Duration>,
    /// Segments with nothing new in them.
    pub duplicates: u32,
    /// ACKs of the peer's FIN.
    pub after_fin: u32,
    /// ACKs sent because the delay timer expired.
    pub delays: u32,
    /// ACKs sent again because nothing came after them.
    pub repeats: u32,
}

/// After TCP-DCA (Chen, Lee, Gerla, Sanadidi, §IV): acknowledges a whole delay window at once. The
/// window is the sender's cwnd, which the sender writes into the window field of its data segments,
/// but at most five segments on paths of more than three hops, three from ten hops on. Both ends
/// must use it.
#[derive(Debug)]
pub struct Cumulative {
    delay: Duration,
    repeat_after: Duration,
    /// In-order segments since the last ACK, and the number that triggers one.
    waiting: u32,
    window: u32,
    delay_until: Option<Instant>,
    repeat_at: Option<Instant>,
    data_seen: bool,
    seen: Arc<Mutex<Seen>>,
}

impl Cumulative {
    /// Waits at most `delay` for a full window, and repeats an ACK that nothing followed after
    /// `repeat_after`.
    pub fn new(delay: Duration, repeat_after: Duration, seen: Arc<Mutex<Seen>>) -> Self {
        Self {
            delay,
            repeat_after,
            waiting: 0,
            window: 1,
            delay_until: None,
            repeat_at: None,
            data_seen: false,
            seen,
        }
    }

    fn note(&self, what: impl FnOnce(&mut Seen)) {
        what(&mut self.seen.lock().expect("no panic holds it"));
    }
}

impl AckPolicy for Cumulative {
    fn on_data(&mut self, arrival: &Arrival<'_>) -> Decision {
        let (cwnd, hops) = (u32::from(arrival.window), arrival.hops.unwrap_or(1));
        self.note(|seen| {
            if seen.cwnds.last() != Some(&cwnd) {
                seen.cwnds.push(cwnd);
            }
            if seen.hops.last() != Some(&hops) {
                seen.hops.push(hops);
            }
            seen.rtts.extend(arrival.rtt);
            seen.duplicates += u32::from(arrival.order == Order::Duplicate);
        });
        self.data_seen = true;
        self.repeat_at = None;
        let limit = match hops {
            0..=3 => u32::MAX,
            4..=9 => 5,
            _ => 3,
        };
        self.window = (cwnd / arrival.mss).clamp(1, limit);
        if arrival.order != Order::InOrder {
            return Decision::Now;
        }
        self.waiting += 1;
        if self.waiting >= self.window {
            return Decision::Now;
        }
        self.delay_until.get_or_insert(arrival.now + self.delay);
        Decision::Wait
    }

    fn on_ack_sent(&mut self, departure: &mut Departure<'_>) {
        self.waiting = 0;
        self.delay_until = None;
        self.note(|seen| seen.after_fin += u32::from(departure.after_fin));
        let more_to_come = self.data_seen && !departure.after_fin;
        self.repeat_at = more_to_come.then(|| departure.now + self.repeat_after);
        if departure.len > 0 {
            *departure.window = departure.cwnd.min(u32::from(u16::MAX)) as u16;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.delay_until.into_iter().chain(self.repeat_at).min()
    }

    fn on_timer(&mut self, now: Instant) -> Decision {
        let delayed = self.delay_until.is_some_and(|due| due <= now);
        self.note(|seen| {
            seen.delays += u32::from(delayed);
            seen.repeats += u32::from(!delayed);
        });
        Decision::Now
    }

    fn stop(&mut self) {
        self.waiting = 0;
        (self.delay_until, self.repeat_at) = (None, None);
    }

    fn data_tells_window(&self) -> bool {
        false
    }
}
