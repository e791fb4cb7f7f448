//! Bit errors of one frame in noise and interference that change while it is received: it is as
//! likely to be intact as all its parts are.

use crate::wifi::ofdm::OfdmMode;
use crate::wifi::phy::Mode;
use crate::wifi::{convolutional, dsss};
use airtcp_core::{DataRate, Instant};

/// Effect of noise and interference so far on the frame that a station receives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exposure {
    mode: Mode,
    /// End of the preamble.
    body_from: Instant,
    /// Up to when it is accounted for.
    until: Instant,
    intact: f64,
}

impl Exposure {
    /// A frame begins.
    pub(crate) fn new(now: Instant, mode: Mode) -> Self {
        Self { mode, body_from: now + mode.preamble(), until: now, intact: 1.0 }
    }

    /// The ratio of signal to noise and interference has been `sinr` from the last call up to now.
    pub(crate) fn pass(&mut self, now: Instant, sinr: f64) {
        let from = std::mem::replace(&mut self.until, now);
        let border = self.body_from.max(from).min(now);
        match self.mode {
            // The PLCP is sent at 1 Mbit/s.
            Mode::Dsss { rate, .. } => {
                let plcp_rate = DataRate::mbps(1);
                for (rate, time) in [(plcp_rate, border.since(from)), (rate, now.since(border))] {
                    if !time.is_zero() {
                        let bits = time.as_secs_f64() * rate.bits_per_sec() as f64;
                        self.intact *= dsss::intact(rate, sinr, bits);
                    }
                }
            }
            // The least ratio at its beginning stands for the preamble.
            Mode::Ofdm(mode @ OfdmMode { scheme, .. }) => {
                let bits = mode.bits_in(now.since(border));
                if bits > 0.0 {
                    self.intact *= convolutional::intact(scheme, mode.sinr(sinr), bits);
                }
            }
        }
    }

    /// Probability that the frame is intact up to the last call.
    pub(crate) fn intact(&self) -> f64 {
        self.intact
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Duration;

    fn mode(rate: DataRate) -> Mode {
        Mode::Dsss { rate, plcp: Duration::from_micros(192), step: Duration::ZERO }
    }

    /// A frame whose PLCP and first half pass in quiet, and whose second half meets interference.
    #[test]
    fn each_part_of_a_frame_has_the_error_rate_of_its_own_noise() {
        let (rate, start) = (DataRate::mbps(2), Instant::from_secs(1));
        let mut exposure = Exposure::new(start, mode(rate));
        exposure.pass(start + Duration::from_micros(192 + 2000), 1e3);
        assert!(exposure.intact() > 1.0 - 1e-12);
        exposure.pass(start + Duration::from_micros(192 + 4000), 1.0);
        let half = dsss::intact(rate, 1.0, 4000.0);
        assert!((exposure.intact() - half).abs() < 1e-9, "{}", exposure.intact());
        // 4000 bits at 0 dB.
        assert!((0.4..0.6).contains(&half), "{half}");
    }

    /// The PLCP is sent at 1 Mbit/s whatever the rate of the frame.
    #[test]
    fn the_plcp_survives_where_the_body_does_not() {
        let mut exposure = Exposure::new(Instant::ZERO, mode(DataRate::mbps(11)));
        exposure.pass(Instant::from_nanos(192_000), 1.0);
        assert!(exposure.intact() > 0.999);
        exposure.pass(Instant::from_nanos(292_000), 1.0);
        assert!(exposure.intact() < 1e-6);
    }
}
