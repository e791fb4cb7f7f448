//! What a wireless channel and its stations are made of.
//!
//! Where a simulator departs from IEEE Std 802.11-1999, the departure is a parameter here and its docstring
//! says who does it; [`crate::wifi::preset`] collects them by simulator. "ns-2" is version 2.35 with its
//! default `bugFix_timer_`; "GloMoSim" is version 2.03.

use crate::config::QueueLimit;
use airtcp_core::{Bytes, DataRate, Duration, Position};
use std::fmt;

/// A medium shared by all its stations.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelConfig {
    /// How long frames take.
    pub phy: PhyConfig,
    /// Who may send when.
    pub mac: MacConfig,
    /// Who hears whom.
    pub radio: RadioConfig,
}

/// One station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationConfig {
    /// Where it is, unless [`Channel::set_mobility`](super::Channel::set_mobility) moves it.
    pub position: Position,
}

/// Timing of the physical layer.
#[derive(Clone, Debug, PartialEq)]
pub struct PhyConfig {
    /// PLCP preamble and header.
    pub preamble: Preamble,
    /// Rate of unicast data frames: 1, 2, 5.5 or 11 Mbit/s.
    pub data_rate: DataRate,
    /// Rate of RTS, CTS and ACK.
    pub control_rate: DataRate,
    /// Rate of broadcast frames.
    pub broadcast_rate: DataRate,
    /// aSlotTime: 20 us.
    pub slot: Duration,
    /// aSIFSTime: 10 us.
    pub sifs: Duration,
    /// SIFS plus two slots: 50 us.
    pub difs: Duration,
    /// A frame takes a whole number of microseconds, rounded up (802.11b §18.3.4). ns-2 and GloMoSim: no.
    pub whole_microseconds: bool,
}

/// PLCP preamble and header in front of every frame (802.11b §18.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preamble {
    /// 192 us.
    Long,
    /// 96 us; frames at 1 Mbit/s keep the long one.
    Short,
}

/// Rules of the distributed coordination function.
#[derive(Clone, Debug, PartialEq)]
pub struct MacConfig {
    /// MAC header and FCS of a data frame: 28 B; ns-2 34 B (30 B header with a fourth address, 4 B FCS).
    pub header: Bytes,
    /// LLC and SNAP in front of the packet: 8 B in reality, none in the simulators.
    pub llc: Bytes,
    /// Unicast frames longer than this, MAC header and FCS included, are sent with RTS and CTS. (The same
    /// choice in ns-2 is an `RTSThreshold_` larger by 25: it counts the PLCP's 24 B, and compares with >=.)
    pub rts_threshold: Bytes,
    /// CWmin, slots: 31. Of the form 2^k - 1, as CWmax.
    pub cw_min: u32,
    /// CWmax, slots: 1023.
    pub cw_max: u32,
    /// How a back-off is drawn.
    pub backoff_draw: BackoffDraw,
    /// A back-off interrupted within a slot repeats that slot. GloMoSim: no, it continues where it stopped.
    pub repeat_interrupted_slot: bool,
    /// dot11ShortRetryLimit: 7. Counts RTS without CTS, and data at most `rts_threshold` long without ACK.
    pub short_retry_limit: u32,
    /// dot11LongRetryLimit: 4. Counts longer data without ACK.
    pub long_retry_limit: u32,
    /// What a retry limit means.
    pub attempts: Attempts,
    /// What a packet does that finds the medium idle and no back-off in progress.
    pub first_access: FirstAccess,
    /// A back-off follows every success and drop even if no packet waits (§9.2.5.2). GloMoSim: only if one
    /// waits.
    pub post_backoff: bool,
    /// What follows a frame received in error.
    pub eifs: EifsRule,
    /// Rate at which the ACK within EIFS is reckoned: the PHY's lowest, 1 Mbit/s (§9.2.10). GloMoSim: its
    /// only rate.
    pub eifs_ack_rate: DataRate,
    /// When a missing CTS or ACK is noticed.
    pub response_timeout: ResponseTimeout,
    /// After a missing CTS or ACK, DIFS begins when it is noticed (ns-2, GloMoSim), not when the medium
    /// became idle.
    pub difs_after_timeout: bool,
    /// When an RTS is answered.
    pub cts: CtsRule,
    /// After its CTS, a station does nothing else until the data should have come (ns-2, GloMoSim).
    pub wait_for_data: bool,
    /// Data that follow a CTS are sent only if the medium and the NAV are idle; if not, the contention
    /// window doubles and a new RTS is due (ns-2). The standard does not look.
    pub sense_before_data: bool,
    /// The NAV is set from data frames too. All do.
    pub nav_from_data: bool,
    /// A NAV set by an RTS ends early if no frame follows where the data should begin (§9.2.5.4, optional).
    /// ns-2 and GloMoSim: no.
    pub nav_reset: bool,
    /// Limit of the interface queue, drop-tail; the packet the MAC works on is not counted. ns-2: 50.
    pub queue: QueueLimit,
}

/// How a back-off is drawn from the contention window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackoffDraw {
    /// 0 to CW slots (§9.2.4).
    Inclusive,
    /// 0 to CW - 1 slots (ns-2, GloMoSim).
    Exclusive,
}

/// What a retry limit L means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempts {
    /// L attempts in all: the packet is dropped when the counter reaches the limit (§9.2.5.3, ns-2).
    Limit,
    /// L retries after the first attempt (GloMoSim).
    LimitPlusOne,
}

/// What a packet does that finds the medium idle and no back-off in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstAccess {
    /// It is sent at once, or as soon as the medium has been idle for DIFS (§9.2.5.1).
    Immediate,
    /// It is sent DIFS after its arrival (GloMoSim).
    AfterDifs,
    /// It is sent a random back-off and DIFS after its arrival (ns-2).
    Backoff,
}

/// What follows a frame received in error, in order to leave time for an ACK that cannot be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EifsRule {
    /// EIFS replaces DIFS until a frame is received (§9.2.3.4).
    Interval,
    /// EIFS is added to the NAV and DIFS follows it: in all DIFS longer (ns-2).
    Nav,
}

/// When a missing CTS or ACK is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseTimeout {
    /// If its reception has not begun by SIFS, a slot and the PLCP after the frame; a reception that has is
    /// waited for, and anything but the response is a failure, then an ordinary frame (§9.2.8).
    ReceptionStart,
    /// If it is not received by SIFS, its own duration and `margin` after the frame. Frames that ask for a
    /// response themselves are ignored meanwhile. ns-2: margin 4 us; GloMoSim: a slot.
    WholeFrame {
        /// Allowance for propagation.
        margin: Duration,
    },
}

/// When an RTS is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CtsRule {
    /// If the NAV is idle at the end of the RTS (§9.2.5.7).
    NavIdle,
    /// If NAV and medium are idle when the CTS is due (ns-2).
    MediumIdle,
}

/// Radios and the space between them; all stations have the same.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioConfig {
    /// Transmitted power.
    pub tx_power: Power,
    /// How it weakens.
    pub propagation: Propagation,
    /// A weaker frame cannot be received.
    pub rx_threshold: Power,
    /// A weaker signal is not noticed.
    pub cs_threshold: Power,
    /// Which of overlapping frames is received.
    pub reception: Reception,
    /// Probability that a received bit is wrong, independently; one makes the frame useless. Applies to all
    /// bits of a frame behind the PLCP, of control frames too, at each receiver by itself.
    pub bit_error_rate: f64,
}

/// Propagation between two antennas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Propagation {
    /// Free space (Friis) below the cross-over distance 4 pi h^2 / lambda, two-ray ground reflection
    /// P h^4 / d^4 beyond it. Unit antenna gains, no system loss.
    TwoRayGround {
        /// Carrier frequency, hertz.
        frequency: f64,
        /// Height of all antennas, metres.
        height: f64,
    },
}

/// Which of overlapping frames a radio receives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reception {
    /// The rule of ns-2. The first frame takes the receiver. A later one whose power is `capture_ratio` or
    /// more below is ignored; by any other both are lost, also by a stronger one. A frame below the receive
    /// threshold takes the receiver too, and is received in error, as is one that meets the station's own
    /// transmission. Interference is not summed.
    FirstLock {
        /// Ratio of powers: 10.
        capture_ratio: f64,
        /// The NAV is set to EIFS after the end of an ignored frame (ns-2), since the radio does not report
        /// the medium busy until then.
        ignored_frame_sets_nav: bool,
    },
    /// A frame is received if its power is at least `min_sinr` times noise and the sum of all other signals,
    /// all the time. A later frame that has this much over all others takes the receiver over. The medium
    /// is busy while the sum of all signals reaches the carrier-sense threshold.
    CumulativeSinr {
        /// Thermal noise.
        noise: Power,
        /// Ratio of powers: 10.
        min_sinr: f64,
        /// Signals below this are left out of the sum.
        interference_floor: Power,
    },
}

/// A power. Whole attowatts (1e-18 W), so that sums are exact in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Power(u64);

impl Power {
    /// None.
    pub const ZERO: Self = Self(0);
    /// `w` watts, rounded to an attowatt; at most 18 W; negative and NaN become zero.
    pub fn from_watts(w: f64) -> Self {
        // A float-to-integer cast saturates and maps NaN to 0.
        Self(libm::round(w * 1e18) as u64)
    }
    /// `dbm` decibels above a milliwatt.
    pub fn from_dbm(dbm: f64) -> Self {
        Self::from_watts(libm::pow(10.0, dbm / 10.0) / 1000.0)
    }
    /// The power in watts.
    pub fn as_watts(self) -> f64 {
        self.0 as f64 / 1e18
    }
    /// Whether it is at least `ratio` times `other`.
    pub(crate) fn is_at_least(self, ratio: f64, other: Self) -> bool {
        self.0 as f64 >= ratio * other.0 as f64
    }
}

impl std::ops::Add for Power {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}
impl std::ops::Sub for Power {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}
impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:e} W", self.as_watts())
    }
}

/// A channel that cannot work.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WifiError {
    /// A rate the PHY has not.
    #[error("{which} is {rate}: 802.11b has 1, 2, 5.5 and 11 Mbit/s")]
    Rate {
        /// Which of the rates.
        which: &'static str,
        /// Its value.
        rate: DataRate,
    },
    /// A contention window that is not of the form 2^k - 1.
    #[error("{which} is {value}: a contention window is 2^k - 1 slots (31, 63, ... 1023)")]
    ContentionWindow {
        /// Which of the windows.
        which: &'static str,
        /// Its value.
        value: u32,
    },
    /// CWmin above CWmax.
    #[error("cw_min is {min}, above cw_max, {max}")]
    ContentionWindows {
        /// CWmin.
        min: u32,
        /// CWmax.
        max: u32,
    },
    /// A response would not come before other stations may send.
    #[error("sifs is {sifs}, difs is {difs}: sifs must be shorter, or responses lose the medium")]
    Sifs {
        /// SIFS.
        sifs: Duration,
        /// DIFS.
        difs: Duration,
    },
    /// Slots without duration.
    #[error("slot is 0 s: a back-off would take no time")]
    Slot,
    /// A retry limit of zero.
    #[error("{which} is 0: the first attempt counts, so at least 1")]
    RetryLimit {
        /// Which of the limits.
        which: &'static str,
    },
    /// No frame can be received.
    #[error(
        "rx_threshold is {threshold}, tx_power is {power}: no frame reaches the threshold at any distance"
    )]
    Unreachable {
        /// The receive threshold.
        threshold: Power,
        /// The transmitted power.
        power: Power,
    },
    /// Frames would be received without being noticed.
    #[error(
        "cs_threshold is {cs}, above rx_threshold, {rx}: a station would receive what it does not notice"
    )]
    CarrierSense {
        /// The carrier-sense threshold.
        cs: Power,
        /// The receive threshold.
        rx: Power,
    },
    /// A number out of its range.
    #[error("{which} is {value}: expected {expected}")]
    Range {
        /// Which number.
        which: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        expected: &'static str,
    },
}

impl ChannelConfig {
    /// Refuses what cannot work, with the reason.
    pub fn check(&self) -> Result<(), WifiError> {
        self.phy.check()?;
        self.mac.check()?;
        self.radio.check()
    }
}

impl PhyConfig {
    fn check(&self) -> Result<(), WifiError> {
        let rates = [
            ("data_rate", self.data_rate),
            ("control_rate", self.control_rate),
            ("broadcast_rate", self.broadcast_rate),
        ];
        rates.into_iter().try_for_each(|(which, rate)| check_rate(which, rate))?;
        if self.slot.is_zero() {
            return Err(WifiError::Slot);
        }
        if self.sifs >= self.difs {
            return Err(WifiError::Sifs { sifs: self.sifs, difs: self.difs });
        }
        Ok(())
    }
}

impl MacConfig {
    fn check(&self) -> Result<(), WifiError> {
        for (which, value) in [("cw_min", self.cw_min), ("cw_max", self.cw_max)] {
            if value == 0 || !u64::from(value).wrapping_add(1).is_power_of_two() {
                return Err(WifiError::ContentionWindow { which, value });
            }
        }
        if self.cw_min > self.cw_max {
            return Err(WifiError::ContentionWindows { min: self.cw_min, max: self.cw_max });
        }
        let limits = [
            ("short_retry_limit", self.short_retry_limit),
            ("long_retry_limit", self.long_retry_limit),
        ];
        for (which, limit) in limits {
            if limit == 0 {
                return Err(WifiError::RetryLimit { which });
            }
        }
        check_rate("eifs_ack_rate", self.eifs_ack_rate)
    }
}

impl RadioConfig {
    fn check(&self) -> Result<(), WifiError> {
        let Propagation::TwoRayGround { frequency, height } = self.propagation;
        check_range("frequency", frequency, frequency > 0.0, "a positive number of hertz")?;
        check_range("height", height, height > 0.0, "a positive number of metres")?;
        let ber = self.bit_error_rate;
        check_range("bit_error_rate", ber, (0.0..1.0).contains(&ber), "a probability below 1")?;
        match self.reception {
            Reception::FirstLock { capture_ratio, .. } => {
                let usable = capture_ratio >= 1.0;
                check_range("capture_ratio", capture_ratio, usable, "a ratio of at least 1")?;
            }
            Reception::CumulativeSinr { min_sinr, .. } => {
                check_range("min_sinr", min_sinr, min_sinr >= 1.0, "a ratio of at least 1")?;
            }
        }
        if self.rx_threshold > self.tx_power || self.tx_power == Power::ZERO {
            return Err(WifiError::Unreachable {
                threshold: self.rx_threshold,
                power: self.tx_power,
            });
        }
        if self.cs_threshold > self.rx_threshold {
            return Err(WifiError::CarrierSense { cs: self.cs_threshold, rx: self.rx_threshold });
        }
        Ok(())
    }
}

fn check_rate(which: &'static str, rate: DataRate) -> Result<(), WifiError> {
    match rate.bits_per_sec() {
        1_000_000 | 2_000_000 | 5_500_000 | 11_000_000 => Ok(()),
        _ => Err(WifiError::Rate { which, rate }),
    }
}

fn check_range(
    which: &'static str,
    value: f64,
    holds: bool,
    expected: &'static str,
) -> Result<(), WifiError> {
    if holds { Ok(()) } else { Err(WifiError::Range { which, value, expected }) }
}
