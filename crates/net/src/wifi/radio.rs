//! One station's radio: which of the frames that reach it are received.
//!
//! [`Reception`] describes the two reception models. Both keep a *lock*: the frame that the
//! receiver follows and hands to the MAC when it ends, unless something destroyed it.

use crate::wifi::config::{FrameErrors, Power, Propagation, RadioConfig, Reception, TWO_52};
use airtcp_core::{Bytes, Instant, Position};
use std::f64::consts::PI;

/// Speed of light, metres per second.
pub(crate) const LIGHT_SPEED: f64 = 299_792_458.0;

/// Path loss: [`Propagation`], with values derived from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathLoss {
    /// Transmission power, watts.
    sent: f64,
    /// Metres.
    wavelength: f64,
    height_squared: f64,
    cross_over: f64,
}

impl PathLoss {
    /// Power received at `distance` metres, watts.
    #[inline]
    pub(crate) fn received(&self, distance: f64) -> f64 {
        // Friis' formula up to the cross-over, then that of two rays.
        let (over, under) = if distance < self.cross_over {
            (self.wavelength, 4.0 * PI * distance)
        } else {
            (self.height_squared, distance * distance)
        };
        let ratio = over / under;
        // Friis' formula fails within a fraction of the wavelength: no antenna gains power.
        self.sent * (ratio * ratio).min(1.0)
    }
}

impl RadioConfig {
    pub(crate) fn path_loss(&self) -> PathLoss {
        let Propagation::TwoRayGround { frequency, height } = self.propagation;
        let wavelength = LIGHT_SPEED / frequency;
        PathLoss {
            sent: self.tx_power.as_watts(),
            wavelength,
            height_squared: height * height,
            cross_over: 4.0 * PI * height * height / wavelength,
        }
    }

    /// Power received at `distance` metres.
    pub(crate) fn received(&self, distance: f64) -> Power {
        Power::from_watts(self.path_loss().received(distance))
    }
}

impl RadioConfig {
    /// Probability that no bit of a frame of `size` bytes is wrong.
    pub(crate) fn probability_intact(&self, size: Bytes) -> f64 {
        libm::pow(1.0 - self.bit_error_rate, size.bits() as f64)
    }

    /// True if noise and interference cause bit errors.
    pub(crate) fn has_noise_errors(&self) -> bool {
        matches!(
            self.reception,
            Reception::CumulativeSinr { frame_errors: FrameErrors::Dsss | FrameErrors::Ofdm, .. }
        )
    }

    /// Ratio of a signal to noise and all other signals, which together have the power `others`.
    pub(crate) fn sinr(&self, signal: Power, others: Power) -> f64 {
        match self.reception {
            Reception::FirstLock { .. } => f64::INFINITY,
            Reception::CumulativeSinr { noise, .. } => {
                signal.as_watts() / (noise + others).as_watts()
            }
        }
    }

    /// The least power at which a frame is received when there is no other.
    pub(crate) fn receivable_alone(&self) -> Power {
        match self.reception {
            Reception::FirstLock { .. } => self.rx_threshold,
            Reception::CumulativeSinr { noise, min_sinr, .. } => {
                self.rx_threshold.max(noise.times(min_sinr))
            }
        }
    }

    /// Weaker signals do nothing but interfere, unless many are sensed together. Zero if there are
    /// no such signals, or if interference changes what a frame's bits come to.
    pub(crate) fn faint(&self) -> Power {
        match self.reception {
            Reception::CumulativeSinr { frame_errors: FrameErrors::Threshold, .. } => {
                self.cs_threshold
            }
            _ => Power::ZERO,
        }
    }

    /// A signal of this power overcomes noise and all faint ones together, which never are as
    /// strong as [`Self::faint`].
    pub(crate) fn overcomes_faint(&self) -> Power {
        match self.reception {
            Reception::CumulativeSinr { noise, min_sinr, .. } => {
                (noise + self.faint()).times(min_sinr)
            }
            Reception::FirstLock { .. } => Power::ZERO,
        }
    }

    /// True if a signal is `min_sinr` times as strong as `others` plus the faint ones. The faint
    /// ones are summed only if neither their absence nor their largest sum decides.
    #[inline]
    fn overcomes(
        &self,
        signal: Power,
        min_sinr: f64,
        others: Power,
        faint: impl FnOnce() -> Power,
    ) -> bool {
        signal.is_at_least(min_sinr, others)
            && (signal.is_at_least(min_sinr, others + self.faint())
                || signal.is_at_least(min_sinr, others + faint()))
    }

    /// The distances in metres up to which a frame can be received and noticed, when there is no
    /// other.
    pub fn ranges(&self) -> (f64, f64) {
        (self.range(self.receivable_alone()), self.range(self.cs_threshold))
    }

    /// Distance at which a signal has become as weak as `least`: [`RadioConfig::received`] solved
    /// for the distance.
    pub(crate) fn range(&self, least: Power) -> f64 {
        let Propagation::TwoRayGround { frequency, height } = self.propagation;
        let wavelength = LIGHT_SPEED / frequency;
        let loss = self.tx_power.as_watts() / least.as_watts();
        let friis = wavelength / (4.0 * PI) * loss.sqrt();
        if friis < 4.0 * PI * height * height / wavelength {
            friis
        } else {
            height * loss.sqrt().sqrt()
        }
    }

    /// True if a frame from one place can be received at the other (bit errors and interference
    /// apart).
    pub fn in_range(&self, from: Position, to: Position) -> bool {
        self.received(from.distance(to)) >= self.rx_threshold
    }
}

/// Propagation time over `distance` metres in nanoseconds, rounded up; `None` if it does not fit.
/// (Rounding up keeps the triangle inequality, and stations on one line still agree about slots.)
#[inline]
pub(crate) fn propagation_nanos(distance: f64) -> Option<u32> {
    const NANOS_PER_METRE: f64 = 1e9 / LIGHT_SPEED;
    let about = distance * NANOS_PER_METRE;
    let nearest = about + TWO_52;
    let over = about - (nearest - TWO_52);
    // Division takes longer than all else, and is needed only near whole numbers.
    if over.abs() > 1e-3 && about < f64::from(u32::MAX) {
        return Some(nearest.to_bits() as u32 + u32::from(over > 0.0));
    }
    let exact = distance * 1e9 / LIGHT_SPEED;
    let whole = exact as u32;
    whole.checked_add(u32::from(f64::from(whole) < exact))
}

/// A frame as it reaches a radio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Its number, unique on the air.
    pub(crate) frame: u32,
    pub(crate) power: Power,
    /// End of the signal.
    pub(crate) end: Instant,
}

/// The meaning of the beginning of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Its end will matter, too.
    Present,
    /// The receiver goes on following another frame: the end of this one does not matter. Whether
    /// the MAC must know of it (see [`Reception::FirstLock`]).
    Ignored(bool),
    /// It has destroyed the frame with this number, and lasts longer: from now on its end matters,
    /// and that of the other does not.
    Replaces(u32),
}

/// The meaning of the end of a signal to the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing: the receiver was following another frame.
    None,
    /// A frame, as far as interference goes.
    Frame,
    /// A frame too weak, or cut short by the station's own transmission: an error.
    Error,
    /// Destroyed by another frame: an error.
    Collision,
}

/// The frame that the receiver follows.
#[derive(Clone, Copy, Debug)]
struct Lock {
    frame: u32,
    fate: Outcome,
    power: Power,
    since: Instant,
    /// End of the frame.
    end: Instant,
}

impl Lock {
    fn new(now: Instant, signal: Arrival, fate: Outcome) -> Self {
        let Arrival { frame, power, end } = signal;
        Self { frame, fate, power, since: now, end }
    }
}

/// State of a station's radio.
#[derive(Clone, Debug)]
pub(crate) struct Radio {
    lock: Option<Lock>,
    /// Sum of all signals present; kept by the SINR model only.
    energy: Power,
    /// End of the latest transmission.
    sending_until: Instant,
}

impl Radio {
    pub(crate) fn new() -> Self {
        Self { lock: None, energy: Power::ZERO, sending_until: Instant::ZERO }
    }

    /// True if the medium is sensed busy, own transmissions apart.
    pub(crate) fn is_busy(&self, config: &RadioConfig) -> bool {
        self.lock.is_some() || (self.energy > Power::ZERO && self.energy >= config.cs_threshold)
    }

    /// The frame that the receiver follows, and its ratio to noise and all other signals.
    pub(crate) fn following(&self, config: &RadioConfig) -> Option<(u32, f64)> {
        let lock = self.lock?;
        Some((lock.frame, config.sinr(lock.power, self.energy - lock.power)))
    }

    /// Since when the receiver has been following the present frame.
    pub(crate) fn receiving_since(&self) -> Option<Instant> {
        self.lock.map(|lock| lock.since)
    }

    /// The earliest end of the present reception.
    pub(crate) fn receiving_until(&self) -> Option<Instant> {
        self.lock.map(|lock| lock.end)
    }

    /// True if no signal is present, nor is the station sending.
    #[inline]
    pub(crate) fn is_calm(&self, now: Instant) -> bool {
        self.is_quiet() && self.sending_until <= now
    }

    /// The station transmits until `until`.
    pub(crate) fn transmit(&mut self, config: &RadioConfig, until: Instant) {
        self.sending_until = until;
        match config.reception {
            Reception::FirstLock { .. } => {
                if let Some(lock) = &mut self.lock {
                    lock.fate = Outcome::Error;
                }
            }
            Reception::CumulativeSinr { .. } => self.lock = None,
        }
    }

    /// One more signal is present, too weak to be received.
    pub(crate) fn add(&mut self, power: Power) {
        self.energy = self.energy + power;
    }

    /// Faint signals come and go. `most` is the greatest power of those present at once.
    #[inline]
    pub(crate) fn disturb(&mut self, config: &RadioConfig, most: impl FnOnce() -> Power) {
        if let Reception::CumulativeSinr { noise, min_sinr, .. } = config.reception
            && let Some(lock) = &mut self.lock
            && lock.fate == Outcome::Frame
        {
            let others = noise + (self.energy - lock.power);
            if !config.overcomes(lock.power, min_sinr, others, most) {
                lock.fate = Outcome::Collision;
            }
        }
    }

    /// A signal arrives; `faint` is the power of the faint ones present.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        config: &RadioConfig,
        signal: Arrival,
        faint: impl Fn() -> Power,
    ) -> Start {
        match config.reception {
            Reception::FirstLock { capture_ratio, ignored_frame_sets_nav } => {
                self.lock_first(now, config, (capture_ratio, ignored_frame_sets_nav), signal)
            }
            Reception::CumulativeSinr { noise, min_sinr, frame_errors, .. } => {
                let fatal = frame_errors == FrameErrors::Threshold;
                self.lock_strongest(now, config, noise, (min_sinr, fatal), signal, faint);
                Start::Present
            }
        }
    }

    /// True if no signal is present.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.lock.is_none() && self.energy == Power::ZERO
    }

    /// A signal arrives at `begin` and has passed at `end`, and no other meets it: what
    /// [`Radio::start`] and [`Radio::end`] come to. Whether the medium was sensed busy meanwhile,
    /// and what the end means. `least` is [`RadioConfig::receivable_alone`].
    #[inline]
    pub(crate) fn hear_alone(
        &self,
        config: &RadioConfig,
        least: Power,
        (begin, end): (Instant, Instant),
        power: Power,
    ) -> (bool, Outcome) {
        let receivable = begin >= self.sending_until && power >= least;
        let (busy, missed) = match config.reception {
            Reception::FirstLock { .. } => (true, Outcome::Error),
            Reception::CumulativeSinr { .. } => {
                let busy = receivable || (power > Power::ZERO && power >= config.cs_threshold);
                (busy, Outcome::None)
            }
        };
        let fate = if receivable { Outcome::Frame } else { missed };
        (busy, if end < self.sending_until { Outcome::None } else { fate })
    }

    /// Forgets the signals present; their ends must not be reported.
    pub(crate) fn forget(&mut self) {
        self.lock = None;
        self.energy = Power::ZERO;
    }

    /// A signal has passed.
    pub(crate) fn end(
        &mut self,
        now: Instant,
        config: &RadioConfig,
        frame: u32,
        power: Power,
    ) -> Outcome {
        if matches!(config.reception, Reception::CumulativeSinr { .. }) {
            self.energy = self.energy - power;
        }
        match self.lock {
            Some(lock) if lock.frame == frame => {
                self.lock = None;
                // A transmitting station senses nothing.
                if now < self.sending_until { Outcome::None } else { lock.fate }
            }
            _ => Outcome::None,
        }
    }

    /// The ns-2 rule: the capture ratio, and whether an ignored frame sets the NAV.
    fn lock_first(
        &mut self,
        now: Instant,
        config: &RadioConfig,
        (ratio, sets_nav): (f64, bool),
        signal: Arrival,
    ) -> Start {
        let Some(lock) = &mut self.lock else {
            let receivable = now >= self.sending_until && signal.power >= config.rx_threshold;
            let fate = if receivable { Outcome::Frame } else { Outcome::Error };
            self.lock = Some(Lock::new(now, signal, fate));
            return Start::Present;
        };
        if lock.power.is_at_least(ratio, signal.power) {
            return Start::Ignored(sets_nav);
        }
        // Both are lost; the receiver stays taken until the later end.
        lock.fate = Outcome::Collision;
        if signal.end <= lock.end {
            return Start::Ignored(false);
        }
        let frame = lock.frame;
        *lock = Lock::new(lock.since, signal, Outcome::Collision);
        Start::Replaces(frame)
    }

    /// The SINR rule. `fatal`: a ratio below the least one destroys a frame.
    fn lock_strongest(
        &mut self,
        now: Instant,
        config: &RadioConfig,
        noise: Power,
        (min_sinr, fatal): (f64, bool),
        signal: Arrival,
        faint: impl Fn() -> Power,
    ) {
        let others = noise + self.energy;
        self.energy = self.energy + signal.power;
        if now < self.sending_until {
            return;
        }
        if signal.power >= config.rx_threshold
            && config.overcomes(signal.power, min_sinr, others, &faint)
        {
            self.lock = Some(Lock::new(now, signal, Outcome::Frame));
        } else if let Some(lock) = &mut self.lock
            && fatal
        {
            let others = noise + (self.energy - lock.power);
            if !config.overcomes(lock.power, min_sinr, others, faint) {
                lock.fate = Outcome::Collision;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::wifi::preset;

    #[test]
    fn the_classic_radio_reaches_250_m_and_is_sensed_at_550_m() {
        // ns-2's thresholds, two-ray ground (ns-2, tcl/lib/ns-default.tcl, `Phy/WirelessPhy`).
        let radio = preset::ns2().radio;
        assert!(radio.received(250.0) >= radio.rx_threshold);
        assert!(radio.received(251.0) < radio.rx_threshold);
        assert!(radio.received(550.0) >= radio.cs_threshold);
        assert!(radio.received(551.0) < radio.cs_threshold);
    }

    #[test]
    fn ranges_are_where_the_received_power_reaches_the_thresholds() {
        for radio in [preset::ns2().radio, preset::glomosim().radio, preset::ieee().radio] {
            let (decode, sense) = radio.ranges();
            for (range, least) in [(decode, radio.receivable_alone()), (sense, radio.cs_threshold)]
            {
                let ratio = radio.received(range).as_watts() / least.as_watts();
                assert!((ratio - 1.0).abs() < 1e-6, "{range} m: {ratio}");
            }
        }
    }

    #[test]
    fn glomosims_radio_reaches_about_376_m() {
        let radio = preset::glomosim().radio;
        assert!(radio.received(376.0) >= radio.rx_threshold);
        assert!(radio.received(378.0) < radio.rx_threshold);
    }

    #[test]
    fn a_signal_weakens_with_the_fourth_power_beyond_the_cross_over() {
        // 200 m against 400 m: 12 dB (Rappaport, Wireless Communications, 2nd ed., §4.6).
        let radio = preset::ns2().radio;
        let ratio = radio.received(200.0).as_watts() / radio.received(400.0).as_watts();
        assert!((ratio - 16.0).abs() < 1e-6, "{ratio}");
    }

    #[test]
    fn the_two_laws_meet_at_the_cross_over() {
        let radio = preset::ns2().radio;
        let ratio = radio.received(86.1).as_watts() / radio.received(86.3).as_watts();
        assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    }
}
