//! TCP-DCA, delayed cumulative ACKs (Chen, Lee, Gerla, Sanadidi, "TCP with Delayed Ack for Wireless
//! Networks", §III.A, §IV.C, §IV.D, §V.B).
//!
//! The receiver acknowledges a whole *delay window* of segments at once. The window is the sender's
//! cwnd, which the sender writes into its data segments, but on long paths at most five or three
//! segments: the burst that an ACK releases interferes with itself there. Where segments fail to
//! come, a timer of one and a half times the time they should take acknowledges what has arrived.
//! As few ACKs are sent, each counts: another timer repeats the last one if nothing follows it.
//!
//! Decisions where the paper is silent:
//! - The hop rule and the delay rule may both apply; the smaller window counts. A path of unknown
//!   length is not bounded by the hop rule.
//! - The delay timer is started by the first unacknowledged segment and not restarted. Before the
//!   first inter-arrival sample it is 500 ms, the bound of RFC 5681 §4.2.
//! - The ACK timer doubles with each repetition, and there are at most six. As printed it would
//!   repeat the last ACK of a finished transfer forever. It runs only after data, never after FIN.
//! - The paper prints RTO = SRTO + 4 · RTTVAR. SRTO is taken for SRTT. RTTVAR uses the SRTT that
//!   includes the new sample, as printed.
//! - Segments that an interface has merged count by their size.

use super::{AckPolicy, Arrival, Decision, Departure, Order, Spacing};
use crate::config::{CwndIn, DcaConfig};
use airtcp_core::{Duration, Instant, MAX_OPTIONS_LEN};

/// §III.A: α in eq. 2.
const ALPHA: f64 = 1.5;
/// §III.A: β = 0.8 in eq. 1.
const MEMORY: u64 = 4;
/// Above this smallest RTT the delay window is at most [`LONG_WINDOW`] (§V.B).
const LONG_DELAY: Duration = Duration::from_millis(80);
/// Table I and §V.B: the delay window on long paths, and on very long ones.
const LONG_WINDOW: u32 = 5;
const VERY_LONG_WINDOW: u32 = 3;
/// §IV.D: "The minimum value of the retransmission timer period is set to 1 second."
const LEAST_REPEAT: Duration = Duration::from_secs(1);
/// Most repetitions of one ACK.
const MOST_REPEATS: u32 = 6;

/// Acknowledges a delay window of segments at once. Both ends must use it: the sender reports its
/// cwnd.
#[derive(Clone, Debug)]
pub struct Dca {
    config: DcaConfig,
    /// The sender's cwnd as last reported, in bytes.
    cwnd: u32,
    /// In-order segments since the last ACK.
    waiting: u32,
    spacing: Spacing,
    delay_until: Option<Instant>,
    rtt: Option<RoundTrip>,
    data_seen: bool,
    repeats: u32,
    repeat_at: Option<Instant>,
}

/// The receiver's estimate of the round-trip time (§IV.D).
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    smoothed: Duration,
    variation: Duration,
    least: Duration,
}

impl RoundTrip {
    fn first(sample: Duration) -> Self {
        Self { smoothed: sample, variation: sample / 2, least: sample }
    }

    fn next(self, sample: Duration) -> Self {
        let smoothed = (self.smoothed * 7 + sample) / 8;
        Self {
            smoothed,
            variation: (self.variation * 3 + sample.abs_diff(smoothed)) / 4,
            least: self.least.min(sample),
        }
    }

    fn time_out(self) -> Duration {
        (self.smoothed + self.variation * 4).max(LEAST_REPEAT)
    }
}

impl Dca {
    /// A policy with these settings.
    pub fn new(config: DcaConfig) -> Self {
        Self {
            config,
            cwnd: 0,
            waiting: 0,
            spacing: Spacing::new(MEMORY),
            delay_until: None,
            rtt: None,
            data_seen: false,
            repeats: 0,
            repeat_at: None,
        }
    }

    fn hear(&mut self, arrival: &Arrival<'_>) {
        self.spacing.on_arrival(arrival.now, arrival.segments());
        if let Some(sample) = arrival.rtt {
            self.rtt = Some(match self.rtt {
                None => RoundTrip::first(sample),
                Some(rtt) => rtt.next(sample),
            });
        }
        match self.config.cwnd_in {
            CwndIn::WindowField => self.cwnd = u32::from(arrival.window),
            CwndIn::Option => self.cwnd = arrival.options.cwnd.unwrap_or(self.cwnd),
        }
        self.data_seen = true;
        self.repeats = 0;
        self.repeat_at = None;
    }

    /// The delay window: at most the sender's cwnd, as more will not come (§III.A).
    fn delay_window(&self, arrival: &Arrival<'_>) -> u32 {
        // Table I.
        let by_hops = match arrival.hops.filter(|_| self.config.hop_rule) {
            None | Some(0..=3) => None,
            Some(4..=9) => Some(LONG_WINDOW),
            Some(_) => Some(VERY_LONG_WINDOW),
        };
        let is_long = self.rtt.is_some_and(|rtt| rtt.least > LONG_DELAY);
        let by_delay = (self.config.delay_rule && is_long).then_some(LONG_WINDOW);
        let limits = [self.config.window_limit, by_hops, by_delay];
        let cwnd = self.cwnd / arrival.mss.max(1);
        limits.into_iter().flatten().fold(cwnd, u32::min).max(1)
    }

    fn tell_cwnd(&self, departure: &mut Departure<'_>) {
        match self.config.cwnd_in {
            CwndIn::WindowField => {
                *departure.window = departure.cwnd.min(u32::from(u16::MAX)) as u16;
            }
            CwndIn::Option => {
                departure.options.cwnd = Some(departure.cwnd);
                if departure.options.encoded_len() > MAX_OPTIONS_LEN {
                    departure.options.cwnd = None; // SACK blocks matter more
                }
            }
        }
    }

    fn next_repeat(&self, departure: &Departure<'_>) -> Option<Instant> {
        let may_repeat = self.config.repeat_acks
            && self.data_seen
            && !departure.after_fin
            && self.repeats < MOST_REPEATS;
        let rtt = self.rtt.filter(|_| may_repeat)?;
        Some(departure.now + rtt.time_out() * (1 << self.repeats))
    }
}

impl AckPolicy for Dca {
    fn on_data(&mut self, arrival: &Arrival<'_>) -> Decision {
        self.hear(arrival);
        if arrival.order != Order::InOrder {
            return Decision::Now;
        }
        let window = self.delay_window(arrival);
        self.waiting = self.waiting.saturating_add(arrival.segments());
        if self.waiting >= window {
            return Decision::Now;
        }
        let delay = self.spacing.expected(ALPHA * f64::from(window));
        self.delay_until.get_or_insert(arrival.now + delay);
        Decision::Wait
    }

    fn on_ack_sent(&mut self, departure: &mut Departure<'_>) {
        self.waiting = 0;
        self.delay_until = None;
        self.repeat_at = self.next_repeat(departure);
        if departure.len > 0 {
            self.tell_cwnd(departure);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.delay_until.or(self.repeat_at)
    }

    fn on_timer(&mut self, _: Instant) -> Decision {
        self.repeats += u32::from(self.delay_until.is_none());
        Decision::Now
    }

    fn stop(&mut self) {
        self.waiting = 0;
        self.delay_until = None;
        self.repeat_at = None;
    }

    fn data_tells_window(&self) -> bool {
        self.config.cwnd_in != CwndIn::WindowField
    }
}
