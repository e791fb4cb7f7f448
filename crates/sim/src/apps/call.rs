//! A listener of a voice call: which frames are played, and how that sounds.
//!
//! Read first: ITU-T G.107 (06/2015), the E-model, with its default values: §7.1 (R), §7.4 (packet
//! loss), Annex B (MOS); R. Cole, J. Rosenbluth, "Voice over IP Performance Monitoring", ACM CCR
//! 31(2), 2001, §3, for the delay; ITU-T G.113 (11/2007), Appendix I, for the codecs.

use crate::metrics::CallMetrics;
use crate::metrics::percentiles;
use crate::scenario::{Call, Codec, FRAME};
use airtcp_core::{Duration, Histogram, Instant};

/// A listener at work.
#[derive(Debug)]
pub(crate) struct Listener {
    spec: Call,
    frames: Vec<Frame>,
    /// The least delay so far.
    least: Option<Duration>,
    delays: Histogram,
    late: u64,
}

/// A frame that was sent.
#[derive(Clone, Copy, Debug)]
struct Frame {
    sent: Instant,
    arrived: bool,
    played: bool,
}

impl Listener {
    /// A listener that has heard nothing.
    pub(crate) fn new(spec: Call) -> Self {
        Self { spec, frames: Vec::new(), least: None, delays: Histogram::default(), late: 0 }
    }

    /// The next frame is sent.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.frames.push(Frame { sent: now, arrived: false, played: false });
    }

    /// Frame `number` arrived. A copy that a link made changes nothing.
    pub(crate) fn received(&mut self, now: Instant, number: u32) {
        let Some(frame) = self.frames.get_mut(number as usize) else { return };
        if std::mem::replace(&mut frame.arrived, true) {
            return;
        }
        let delay = now.since(frame.sent);
        self.delays.record(delay);
        let least = self.least.map_or(delay, |least| least.min(delay));
        self.least = Some(least);
        frame.played = delay <= least + self.spec.jitter_buffer;
        self.late += u64::from(!frame.played);
    }

    /// The metrics of the call `name` as of `now`.
    pub(crate) fn metrics(&self, name: &str, now: Instant) -> CallMetrics {
        let network = self.least.unwrap_or_default() + self.spec.jitter_buffer;
        // Frames that may still be played are not counted.
        let due = self.frames.partition_point(|frame| frame.sent + network < now);
        let mut bursts = Bursts::default();
        self.frames[..due].iter().for_each(|frame| bursts.frame(frame.played));
        let concealed = bursts.concealed as f64 / (due as f64).max(1.0);
        let delay = network + FRAME + look_ahead(self.spec.codec);
        let rating = rating(self.spec.codec, delay, concealed, bursts.ratio(due as u64));
        let [delay_p50, delay_p95, delay_p99] = percentiles(&self.delays);
        CallMetrics {
            name: name.to_owned(),
            frames: due as u64,
            frames_lost: bursts.concealed.saturating_sub(self.late),
            frames_late: self.late,
            bursts: bursts.count,
            longest_burst: bursts.longest,
            delay_p50,
            delay_p95,
            delay_p99,
            mouth_to_ear_delay: self.least.map(|_| delay.as_secs_f64()),
            r_factor: (due > 0).then_some(rating),
            mos: (due > 0).then(|| opinion(rating)),
        }
    }
}

/// Runs of frames that are not played.
#[derive(Debug, Default)]
struct Bursts {
    concealed: u64,
    count: u64,
    longest: u64,
    current: u64,
}

impl Bursts {
    fn frame(&mut self, played: bool) {
        if played {
            self.current = 0;
            return;
        }
        self.concealed += 1;
        self.count += u64::from(self.current == 0);
        self.current += 1;
        self.longest = self.longest.max(self.current);
    }

    /// The mean length of a burst over that of random losses, at least 1 (G.107 §7.4, BurstR).
    fn ratio(&self, frames: u64) -> f64 {
        let heard = frames - self.concealed;
        if self.count == 0 || heard == 0 {
            return 1.0;
        }
        let length = self.concealed as f64 / self.count as f64;
        (length * heard as f64 / frames as f64).max(1.0)
    }
}

/// Speech beyond the frame that the encoder needs.
fn look_ahead(codec: Codec) -> Duration {
    match codec {
        Codec::G711 => Duration::ZERO,
        Codec::G729a => Duration::from_millis(5),
    }
}

/// The rating R: G.107 with its default values, without its echo and loudness terms.
fn rating(codec: Codec, delay: Duration, loss: f64, burst_ratio: f64) -> f64 {
    // Ie and Bpl (G.113, Appendix I), for G.729A with voice activity detection.
    let (impairment, robustness) = match codec {
        Codec::G711 => (0.0, 25.1),
        Codec::G729a => (11.0, 19.0),
    };
    let percent = 100.0 * loss;
    let equipment =
        impairment + (95.0 - impairment) * percent / (percent / burst_ratio + robustness);
    let ms = 1e3 * delay.as_secs_f64();
    let waiting = 0.024 * ms + 0.11 * (ms - 177.3).max(0.0);
    (93.2 - waiting - equipment).clamp(0.0, 100.0)
}

/// The mean opinion score for a rating (G.107, Annex B).
fn opinion(r: f64) -> f64 {
    let opinion = 1.0 + 0.035 * r + 7e-6 * r * (r - 60.0) * (100.0 - r);
    // The polynomial dips below 1 for small ratings.
    opinion.clamp(1.0, 4.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    /// G.109, Table 1 and G.107, Table B.1: the limits of the categories of speech quality.
    #[test]
    fn opinions_are_those_of_the_recommendation() {
        for (rating, score) in
            [(93.2, 4.41), (90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)]
        {
            // 80 is 4.024, which the tables have as 4.03.
            assert!((opinion(rating) - score).abs() < 0.007, "{rating}: {}", opinion(rating));
        }
        assert_eq!([opinion(0.0), opinion(3.0), opinion(100.0)], [1.0, 1.0, 4.5]);
    }

    #[test]
    fn delay_and_loss_impair() {
        let rating = |codec, delay, loss| rating(codec, ms(delay), loss, 1.0);
        let near =
            |is: f64, expected: f64| assert!((is - expected).abs() < 0.01, "{is}, not {expected}");
        // Cole and Rosenbluth, §3.1: 0.024 for each ms, and 0.11 more above 177.3 ms.
        near(rating(Codec::G711, 0, 0.0), 93.2);
        near(rating(Codec::G711, 150, 0.0), 93.2 - 3.6);
        near(rating(Codec::G711, 300, 0.0), 93.2 - 7.2 - 13.497);
        // G.113, Appendix I: G.711 with concealment, 2 % and 5 % lost; G.729A.
        near(rating(Codec::G711, 0, 0.02), 93.2 - 95.0 * 2.0 / 27.1);
        near(rating(Codec::G711, 0, 0.05), 93.2 - 95.0 * 5.0 / 30.1);
        near(rating(Codec::G729a, 0, 0.0), 82.2);
        assert_eq!(rating(Codec::G729a, 5000, 1.0), 0.0);
    }

    #[test]
    fn bursts_are_worse_than_single_losses() {
        assert!(rating(Codec::G711, ms(0), 0.05, 2.0) < rating(Codec::G711, ms(0), 0.05, 1.0));
    }

    #[test]
    fn frames_are_played_late_or_lost() {
        let spec = Call { codec: Codec::G711, jitter_buffer: ms(60) };
        let mut listener = Listener::new(spec);
        // Delays of 50 ms, of 30 ms, of 91 ms, none, and of 90 ms.
        let delays = [Some(50), Some(30), Some(91), None, Some(90)];
        for (number, delay) in (0..).zip(delays) {
            let sent = 20 * u64::from(number);
            listener.sent(at(sent));
            if let Some(delay) = delay {
                listener.received(at(sent + delay), number);
            }
        }
        listener.sent(at(100));
        let metrics = listener.metrics("c", at(180));
        assert_eq!((metrics.frames, metrics.frames_late, metrics.frames_lost), (5, 1, 1));
        assert_eq!((metrics.bursts, metrics.longest_burst), (1, 2));
        // The least delay, the jitter buffer and a frame.
        assert_eq!(metrics.mouth_to_ear_delay, Some(0.11));
        // 40 % in bursts of 2: 1.2 times as long as random ones.
        let expected = rating(Codec::G711, ms(110), 0.4, 1.2);
        assert!((metrics.r_factor.expect("frames") - expected).abs() < 1e-9);
    }

    #[test]
    fn a_call_without_frames_has_no_rating() {
        let listener = Listener::new(Call::default());
        let metrics = listener.metrics("c", at(1000));
        assert_eq!((metrics.frames, metrics.r_factor, metrics.delay_p50), (0, None, None));
    }
}
