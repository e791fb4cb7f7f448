//! What a wireless channel and its stations are made of.
//!
//! Departures of simulators from IEEE Std 802.11-1999 are parameters here, and their docstrings
//! name the simulators; [`crate::wifi::preset`] collects the choices of each. "ns-2" is version
//! 2.35 with its default `bugFix_timer_`; "GloMoSim" is version 2.03.

use crate::config::{QueueConfig, QueueLimit};
use crate::fading::DECIBELS;
use crate::wifi::ofdm::Width;
use crate::wifi::standard::{Band, PhyConfig};
use airtcp_core::{Bytes, DataRate, Duration, Position, counted};
use airtcp_settings::schema::{Kind, PROBABILITY};
use airtcp_settings::units::{LENGTH, Measure};
use airtcp_settings::{Decoded, Value, alternatives, choice, settings};
use std::fmt;

settings! {
    #[partial]
    /// A medium shared by all its stations.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ChannelConfig {
        /// Rates and timing of the physical layer, which determine how long frames take.
        #[keys_of(PhyConfig)]
        pub phy: PhyConfig,
        /// Who may send when.
        #[keys_of(MacConfig)]
        pub mac: MacConfig,
        /// Who hears whom.
        #[keys_of(RadioConfig)]
        pub radio: RadioConfig,
    }
}

/// Initial state of a station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationConfig {
    /// Position, unless [`Channel::set_mobility`](super::Channel::set_mobility) moves it.
    pub position: Position,
}

pub(super) const WINDOW: Kind = Kind::Integer { min: 1, max: 65_535 };
const SIZE: Kind = Kind::Size { min: 0, max: 65_535 };
const LIMIT: Kind = Kind::Integer { min: 1, max: 1_000_000 };
const RATIO: Kind = Kind::Number { min: 1.0, max: 1e6, above: false };

settings! {
    #[partial]
    /// Rules of the distributed coordination function.
    #[derive(Clone, Debug, PartialEq)]
    pub struct MacConfig {
        /// MAC header and FCS of a data frame: 28 B; in ns-2 34 B (with a fourth address).
        #[key = "mac-header"]
        #[kind = SIZE]
        pub header: Bytes,
        /// LLC and SNAP headers in front of the packet: 8 B in the standard, none in the
        /// simulators.
        #[kind = SIZE]
        pub llc: Bytes,
        /// Unicast frames longer than this, MAC header and FCS included, use RTS and CTS. (The same
        /// choice in ns-2 is an `RTSThreshold_` larger by 25: it counts the PLCP's 24 B, and
        /// compares with >=.)
        #[kind = SIZE]
        pub rts_threshold: Bytes,
        /// Smallest contention window, slots; 2^k - 1.
        #[kind = WINDOW]
        pub cw_min: u32,
        /// Largest contention window, slots; 2^k - 1.
        #[kind = WINDOW]
        pub cw_max: u32,
        /// Distribution of a back-off over the contention window.
        #[source = "802.11 §9.2.4"]
        pub backoff_draw: BackoffDraw,
        /// A back-off interrupted within a slot repeats that slot; GloMoSim continues it.
        pub repeat_interrupted_slot: bool,
        /// dot11ShortRetryLimit: for RTS, and for data that need none.
        #[kind = LIMIT]
        pub short_retry_limit: u32,
        /// dot11LongRetryLimit: for data longer than `rts-threshold`.
        #[kind = LIMIT]
        pub long_retry_limit: u32,
        /// Meaning of a retry limit.
        #[source = "802.11 §9.2.5.3"]
        pub attempts: Attempts,
        /// Time of sending a packet that finds the medium idle and no back-off in progress.
        #[source = "802.11 §9.2.5.1"]
        pub first_access: FirstAccess,
        /// A back-off follows every success and drop even if no packet waits; GloMoSim: only if one
        /// waits.
        #[source = "802.11 §9.2.5.2"]
        pub post_backoff: bool,
        /// Wait after a frame received in error, to leave time for an ACK that cannot be heard.
        #[source = "802.11 §9.2.3.4"]
        pub eifs: EifsRule,
        /// Rate at which the ACK within EIFS is reckoned: the PHY's lowest; GloMoSim: its only
        /// rate.
        #[source = "802.11 §9.2.10"]
        pub eifs_ack_rate: DataRate,
        /// Time at which a missing CTS or ACK is noticed.
        #[keys_of(ResponseTimeout)]
        pub response_timeout: ResponseTimeout,
        /// After a missing response DIFS begins when that is noticed (ns-2, GloMoSim), not when the
        /// medium became idle.
        pub difs_after_timeout: bool,
        /// Condition for answering an RTS.
        #[source = "802.11 §9.2.5.7"]
        pub cts: CtsRule,
        /// After its CTS, a station does nothing else until the data should have come (ns-2,
        /// GloMoSim).
        pub wait_for_data: bool,
        /// Data that follow a CTS are sent only if medium and NAV are idle; if not, the contention
        /// window doubles and a new RTS is due (ns-2). The standard does not look.
        pub sense_before_data: bool,
        /// The NAV is set from data frames too.
        pub nav_from_data: bool,
        /// A NAV set by an RTS ends early if no frame follows where the data should begin
        /// (optional). ns-2 and GloMoSim: no.
        #[source = "802.11 §9.2.5.4"]
        pub nav_reset: bool,
        /// A MAC that gives up on a neighbour takes its next packet, for another neighbour, before
        /// those that routing sends because of it. ns-2: yes, because its link layer passes a
        /// packet on only after 25 us.
        pub next_before_report: bool,
        /// Capacity of each station's interface queue, drop-tail, not counting the packet in the
        /// MAC. With access categories, that of each category's queue.
        pub queue: QueueLimit,
        /// Queue discipline of each station's interface; it replaces drop-tail and `queue`. Each
        /// receiver and priority has a queue under it, and they take turns by airtime, as in Linux's
        /// mac80211 (`docs/queues.md`). Not with routing protocols.
        pub queue_discipline: Option<QueueConfig>,
    }
}

choice! {
    /// The distribution of a back-off over the contention window.
    pub enum BackoffDraw {
        /// 0 to CW slots
        Inclusive = "inclusive",
        /// 0 to CW - 1 slots (ns-2, GloMoSim)
        Exclusive = "exclusive",
    }
}

choice! {
    /// The meaning of a retry limit L.
    pub enum Attempts {
        /// the number of attempts: the packet is dropped when the counter reaches the limit (ns-2
        /// too)
        Limit = "limit",
        /// the number of retries after the first attempt (GloMoSim)
        LimitPlusOne = "limit-plus-one",
    }
}

choice! {
    /// The time of sending a packet that finds the medium idle and no back-off in progress.
    pub enum FirstAccess {
        /// at once, or as soon as the medium has been idle for DIFS
        Immediate = "immediate",
        /// DIFS after its arrival (GloMoSim)
        AfterDifs = "after-difs",
        /// after a random back-off and DIFS from its arrival (ns-2)
        Backoff = "backoff",
    }
}

choice! {
    /// The wait after a frame received in error.
    pub enum EifsRule {
        /// EIFS replaces DIFS until a frame is received
        Interval = "interval",
        /// EIFS is added to the NAV and DIFS follows, so the wait is DIFS longer (ns-2)
        Nav = "nav",
    }
}

alternatives! {
    /// The time at which a missing CTS or ACK is noticed.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[choice("response-timeout", "Time at which a missing CTS or ACK is noticed.")]
    #[source = "802.11 §9.2.8"]
    pub enum ResponseTimeout {
        /// if its reception has not begun by SIFS, a slot and the PLCP after the frame. A reception
        /// in progress is awaited; anything but the response is a failure, and then processed as an
        /// ordinary frame
        "reception-start" => ReceptionStart,
        /// if it is not received by SIFS, its own duration and `response-margin` after the frame;
        /// until then, frames that ask for a response are ignored (ns-2, GloMoSim)
        "whole-frame" => WholeFrame {
            /// Allowance for propagation. ns-2: 4 us; GloMoSim: a slot.
            #[key = "response-margin"]
            margin: Duration = Duration::from_micros(4),
        },
    }
}

choice! {
    /// The condition for answering an RTS.
    pub enum CtsRule {
        /// if the NAV is idle at the end of the RTS
        NavIdle = "nav-idle",
        /// if NAV and medium are idle when the CTS is due (ns-2)
        MediumIdle = "medium-idle",
    }
}

settings! {
    #[partial]
    /// The radio, the same for all stations, and the propagation between them.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RadioConfig {
        /// Power of every transmission.
        pub tx_power: Power,
        /// Model of path loss.
        #[keys_of(Propagation)]
        pub propagation: Propagation,
        /// A weaker frame cannot be received.
        pub rx_threshold: Power,
        /// A weaker signal is not noticed.
        pub cs_threshold: Power,
        /// Choice of the frame received when several overlap.
        #[keys_of(Reception)]
        pub reception: Reception,
        /// Probability that a received bit is wrong, independently; one wrong bit spoils the frame.
        /// Applies to all bits after the PLCP, in control frames too, and separately at each
        /// receiver.
        #[kind = PROBABILITY]
        pub bit_error_rate: f64,
    }
}

alternatives! {
    /// Propagation between two antennas.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[choice("propagation", "Model of path loss.")]
    #[absent(Propagation::TwoRayGround { frequency: 914e6, height: 1.5 })]
    pub enum Propagation {
        /// free space (Friis) below the cross-over distance 4 pi h^2 / lambda, two-ray ground
        /// reflection P h^4 / d^4 beyond it; unit antenna gains, no system loss
        "two-ray-ground" => TwoRayGround {
            /// Frequency of the carrier.
            #[kind = Kind::Measure(&FREQUENCY)]
            frequency: f64 = 914e6,
            /// Height of all antennas.
            #[key = "antenna-height"]
            #[kind = Kind::Measure(&LENGTH)]
            height: f64 = 1.5,
        },
    }
}

alternatives! {
    /// A radio's choice of the frame that it receives when several overlap.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[choice("reception", "Choice of the frame received when several overlap.")]
    pub enum Reception {
        /// the rule of ns-2: the receiver locks on the first frame. A later frame is ignored if its
        /// power is lower by `capture-ratio` or more; otherwise both are lost, even if the later
        /// one is stronger. A frame below the receive threshold also locks the receiver, and is
        /// received in error, as is one that overlaps the station's own transmission. Interference
        /// is not summed
        "first-lock" => FirstLock {
            /// Ratio of powers above which a later, weaker frame is ignored.
            #[kind = RATIO]
            capture_ratio: f64 = 10.0,
            /// The NAV is set to EIFS after the end of an ignored frame (ns-2), since the radio
            /// does not report the medium busy until then.
            ignored_frame_sets_nav: bool = true,
        },
        /// a frame is received if its power is at least `min-sinr` times noise plus the sum of all
        /// other signals throughout; a later frame that exceeds all others by this ratio captures
        /// the receiver. The medium is busy while the sum of all signals reaches the carrier-sense
        /// threshold
        "cumulative-sinr" => CumulativeSinr {
            /// Thermal noise at the receiver.
            noise: Power = Power::from_dbm(-101.0),
            /// Least ratio of a frame's power to noise and interference.
            #[kind = RATIO]
            min_sinr: f64 = 10.0,
            /// Weaker signals are left out of the sum.
            interference_floor: Power = Power::from_dbm(-111.0),
            /// Effect of noise and interference on a frame.
            frame_errors: FrameErrors = FrameErrors::Threshold,
        },
    }
}

choice! {
    /// The effect of noise and interference on a frame.
    pub enum FrameErrors {
        /// it is lost if its ratio falls below `min-sinr`
        Threshold = "threshold",
        /// `min-sinr` is only needed at its beginning; then each part of the frame has the bit
        /// error rate of its modulation (DBPSK, DQPSK, CCK) at its ratio, over 22 MHz (Pei and
        /// Henderson, Boeing 2009). ns-3's stock model is this with a noise of -93.6 dBm and a
        /// `min-sinr` of 2.51, 4 dB
        Dsss = "dsss",
        /// `min-sinr` is only needed at its beginning; then each part of the frame has the bit
        /// error rate of its modulation and convolutional code at its ratio (Pei and Henderson 2010,
        /// ns-3's NIST model)
        Ofdm = "ofdm",
    }
}

/// Base unit: watt.
static POWER: Measure = Measure {
    what: "a power",
    example: "-81 dBm",
    units: &[("W", |x| x), ("mW", |x| x * 1e-3), ("dBm", |x| Power::from_dbm(x).as_watts())],
    show: |x| Power::from_watts(x).to_string(),
};

/// Base unit: hertz.
pub(crate) static FREQUENCY: Measure = Measure {
    what: "a frequency",
    example: "2.4 GHz",
    units: &[("Hz", |x| x), ("MHz", |x| x * 1e6), ("GHz", |x| x * 1e9)],
    show: |x| format!("{} MHz", x / 1e6),
};

/// The units of radios, for documentation.
pub const MEASURES: [(&str, &Measure); 3] =
    [("Powers", &POWER), ("Frequencies", &FREQUENCY), ("Ratios", &DECIBELS)];

impl Value for Power {
    const KIND: Kind = Kind::Measure(&POWER);
    fn from_decoded(decoded: Decoded) -> Option<Self> {
        f64::from_decoded(decoded).map(Self::from_watts)
    }
    /// In dBm where that is a whole number, otherwise in watts.
    fn show(&self, _: &Kind) -> Option<String> {
        let dbm = libm::round(self.as_dbm());
        let whole = *self != Self::ZERO && Self::from_dbm(dbm) == *self;
        Some(if whole { format!("{dbm} dBm") } else { self.to_string() })
    }
}

/// 2^52. Added to a number below it that is not negative, it leaves the nearest whole number (ties
/// to even) in the lower 52 bits of the sum. `libm::round`, and even a cast, takes longer.
pub(crate) const TWO_52: f64 = (1_u64 << 52) as f64;

/// A power. Whole attowatts (1e-18 W), so that sums are exact in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Power(u64);

impl Power {
    /// No power.
    pub const ZERO: Self = Self(0);
    /// `w` watts, rounded to an attowatt; at most 18 W; negative and NaN become zero.
    #[inline]
    pub fn from_watts(w: f64) -> Self {
        let attowatts = w * 1e18;
        // As integers, the bits of numbers from 0 on are in order, and all others are greater.
        if attowatts.to_bits() < TWO_52.to_bits() {
            return Self((attowatts + TWO_52).to_bits() - TWO_52.to_bits());
        }
        // From 2^52 on it is whole already. The cast saturates and maps NaN to 0.
        Self(attowatts as u64)
    }
    /// `dbm` decibels above a milliwatt.
    pub fn from_dbm(dbm: f64) -> Self {
        Self::from_watts(libm::pow(10.0, dbm / 10.0) / 1000.0)
    }
    /// The power in watts.
    pub fn as_watts(self) -> f64 {
        self.0 as f64 / 1e18
    }
    /// Decibels above a milliwatt; minus infinity for no power.
    pub fn as_dbm(self) -> f64 {
        10.0 * libm::log10(self.as_watts() * 1000.0)
    }
    /// The least power that is at least `ratio` times this one.
    pub(crate) fn times(self, ratio: f64) -> Self {
        Self(libm::ceil(ratio * self.0 as f64) as u64)
    }
    /// True if it is at least `ratio` times `other`.
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

/// A channel configuration that cannot work.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WifiError {
    /// A rate that the standard does not have.
    #[error("{which} is {rate}: {expected}")]
    Rate {
        /// Key of the rate.
        which: &'static str,
        /// The rate that was set.
        rate: DataRate,
        /// The rates that there are.
        expected: String,
    },
    /// A mode that the standard does not have.
    #[error(transparent)]
    Mimo(MimoError),
    /// A contention window that is not of the form 2^k - 1.
    #[error("{which} is {value}: a contention window is 2^k - 1 slots (31, 63, ... 1023)")]
    ContentionWindow {
        /// Key of the window.
        which: &'static str,
        /// The window that was set.
        value: u32,
    },
    /// CWmin above CWmax.
    #[error("cw-min is {min}, above cw-max, {max}")]
    ContentionWindows {
        /// CWmin, slots.
        min: u32,
        /// CWmax, slots.
        max: u32,
    },
    /// Other stations could send before a response.
    #[error("sifs is {sifs}, difs is {difs}: sifs must be shorter, or responses lose the medium")]
    Sifs {
        /// SIFS of the PHY.
        sifs: Duration,
        /// DIFS that was set.
        difs: Duration,
    },
    /// A slot of zero length.
    #[error("slot is 0 s: a back-off would take no time")]
    Slot,
    /// Parameters of an access category that cannot work.
    #[error("{which}.{error}")]
    Category {
        /// The category.
        which: &'static str,
        /// The error, as of a cell without categories.
        error: Box<WifiError>,
    },
    /// A retry limit of zero.
    #[error("{which} is 0: the first attempt counts, so at least 1")]
    RetryLimit {
        /// Key of the limit.
        which: &'static str,
    },
    /// No frame can be received.
    #[error(
        "rx-threshold is {threshold}, tx-power is {power}: no frame reaches the threshold at any distance"
    )]
    Unreachable {
        /// The receive threshold.
        threshold: Power,
        /// The transmitted power.
        power: Power,
    },
    /// Frames could be received without being sensed.
    #[error(
        "cs-threshold is {cs}, above rx-threshold, {rx}: a station would receive frames it does not sense"
    )]
    CarrierSense {
        /// The carrier-sense threshold.
        cs: Power,
        /// The receive threshold.
        rx: Power,
    },
    /// Error rates of another physical layer.
    #[error("frame-errors is \"{}\": expected \"{}\", as the preset's rates are, or \"threshold\"", set.word(), own.word())]
    FrameErrors {
        /// What was set.
        set: FrameErrors,
        /// The error rates of the physical layer.
        own: FrameErrors,
    },
    /// A number out of its range.
    #[error("{which} is {value}: expected {expected}")]
    Range {
        /// Key of the number.
        which: &'static str,
        /// The value that was set.
        value: f64,
        /// The values that are allowed.
        expected: &'static str,
    },
}

/// A mode of 802.11n, ac or ax that the standard does not have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MimoError {
    /// The standard is not for this band.
    #[error("band is {}: {standard} has no such band, the nearest is {}", band.word(), nearest.word())]
    Band {
        /// The band that was set.
        band: Band,
        /// The amendment of 802.11.
        standard: &'static str,
        /// A band that it has.
        nearest: Band,
    },
    /// The standard has no channel so wide.
    #[error("width is {}: {standard} has at most {} at {}", width.word(), widest.word(), band.word())]
    Width {
        /// The width that was set.
        width: Width,
        /// The amendment of 802.11.
        standard: &'static str,
        /// The band.
        band: Band,
        /// Its widest channel.
        widest: Width,
    },
    /// The standard has no such guard interval.
    #[error("guard-interval is {set}: {standard} has no such interval, the nearest is {nearest}")]
    GuardInterval {
        /// The interval that was set.
        set: Duration,
        /// The amendment of 802.11.
        standard: &'static str,
        /// One that it has.
        nearest: Duration,
    },
    /// The standard has no such MCS, or not with this width and number of streams.
    #[error(
        "mcs is {mcs}: {standard} has no such MCS at {} with {}, the nearest is {nearest}",
        width.word(),
        counted(*streams, "stream")
    )]
    Mcs {
        /// The MCS that was set.
        mcs: u32,
        /// The amendment of 802.11.
        standard: &'static str,
        /// Width of the channel.
        width: Width,
        /// Spatial streams.
        streams: u32,
        /// The next lower one that there is.
        nearest: u32,
    },
    /// A TXOP limit that the standard cannot express.
    #[error(
        "txop-limit is {limit}: expected a multiple of 32 us, at most 65535 of them, the nearest is {nearest}"
    )]
    Txop {
        /// The limit that was set.
        limit: Duration,
        /// One that there is.
        nearest: Duration,
    },
    /// Longer than an A-MPDU can be.
    #[error("ampdu-limit is {limit}: {standard} allows at most {most}")]
    Ampdu {
        /// The limit that was set.
        limit: Bytes,
        /// The amendment of 802.11.
        standard: &'static str,
        /// The longest A-MPDU.
        most: Bytes,
    },
    /// A length of A-MSDUs that a receiver cannot ask for.
    #[error("amsdu-limit is {limit}: {standard} has no such limit at {}, the nearest is {nearest}", band.word())]
    Amsdu {
        /// The limit that was set.
        limit: Bytes,
        /// The amendment of 802.11.
        standard: &'static str,
        /// The band.
        band: Band,
        /// One that it has.
        nearest: Bytes,
    },
    /// An A-MSDU that no A-MPDU can hold.
    #[error(
        "amsdu-limit is {limit}: an MPDU in an A-MPDU of 802.11n has at most {most}; expected 3839 B, or ampdu-limit = \"0 B\""
    )]
    AmsduInAmpdu {
        /// The limit that was set.
        limit: Bytes,
        /// The longest MPDU in an A-MPDU.
        most: Bytes,
    },
    /// A-MSDUs of stations that choose rates.
    #[error("amsdu-limit is {limit}: expected \"0 B\" with rate-control = \"minstrel-ht\"")]
    AmsduOfMinstrel {
        /// The limit that was set.
        limit: Bytes,
    },
    /// More than a block ACK can cover.
    #[error("block-ack-window is {window}: {standard} has at most {most}")]
    Window {
        /// The window that was set.
        window: u32,
        /// The amendment of 802.11.
        standard: &'static str,
        /// The largest window.
        most: u32,
    },
}

impl MimoError {
    /// The key in question.
    fn key(&self) -> &'static str {
        match self {
            Self::Band { .. } => "band",
            Self::Width { .. } => "width",
            Self::GuardInterval { .. } => "guard-interval",
            Self::Mcs { .. } => "mcs",
            Self::Txop { .. } => "txop-limit",
            Self::Ampdu { .. } => "ampdu-limit",
            Self::Amsdu { .. } | Self::AmsduInAmpdu { .. } | Self::AmsduOfMinstrel { .. } => {
                "amsdu-limit"
            }
            Self::Window { .. } => "block-ack-window",
        }
    }
}

impl ChannelConfig {
    /// Checks the configuration.
    pub fn check(&self) -> Result<(), WifiError> {
        self.phy.check()?;
        self.mac.check()?;
        self.phy.check_rate("eifs-ack-rate", self.mac.eifs_ack_rate)?;
        self.radio.check()?;
        self.check_frame_errors()
    }

    /// The error rates must be those of the physical layer.
    fn check_frame_errors(&self) -> Result<(), WifiError> {
        let Reception::CumulativeSinr { frame_errors, .. } = self.radio.reception else {
            return Ok(());
        };
        let own = match self.phy {
            PhyConfig::Dsss(_) => FrameErrors::Dsss,
            PhyConfig::Ofdm(_) | PhyConfig::Erp(_) | PhyConfig::Mimo(..) => FrameErrors::Ofdm,
        };
        if frame_errors == own || frame_errors == FrameErrors::Threshold {
            Ok(())
        } else {
            Err(WifiError::FrameErrors { set: frame_errors, own })
        }
    }
}

impl WifiError {
    /// `which` is none of a standard's rates.
    pub(super) fn rate(
        which: &'static str,
        rate: DataRate,
        standard: &str,
        rates: &[DataRate],
    ) -> Self {
        let mbps = |rate: &DataRate| format!("{}", rate.bits_per_sec() as f64 / 1e6);
        let (last, rest) = rates.split_last().unwrap_or((&rate, &[]));
        let rest: Vec<_> = rest.iter().map(mbps).collect();
        let expected = format!("{standard} has {} and {} Mbit/s", rest.join(", "), mbps(last));
        Self::Rate { which, rate, expected }
    }

    /// The key in question.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Mimo(error) => error.key(),
            Self::Rate { which, .. }
            | Self::ContentionWindow { which, .. }
            | Self::RetryLimit { which }
            | Self::Range { which, .. } => which,
            Self::Category { .. } => "access-categories",
            Self::ContentionWindows { .. } => "cw-min",
            Self::Sifs { .. } => "sifs",
            Self::Slot => "slot",
            Self::Unreachable { .. } => "rx-threshold",
            Self::CarrierSense { .. } => "cs-threshold",
            Self::FrameErrors { .. } => "frame-errors",
        }
    }
}

impl MacConfig {
    pub(super) fn check_windows(min: u32, max: u32) -> Result<(), WifiError> {
        for (which, value) in [("cw-min", min), ("cw-max", max)] {
            if value == 0 || !u64::from(value).wrapping_add(1).is_power_of_two() {
                return Err(WifiError::ContentionWindow { which, value });
            }
        }
        if min > max {
            return Err(WifiError::ContentionWindows { min, max });
        }
        Ok(())
    }

    fn check(&self) -> Result<(), WifiError> {
        Self::check_windows(self.cw_min, self.cw_max)?;
        let limits = [
            ("short-retry-limit", self.short_retry_limit),
            ("long-retry-limit", self.long_retry_limit),
        ];
        for (which, limit) in limits {
            if limit == 0 {
                return Err(WifiError::RetryLimit { which });
            }
        }
        Ok(())
    }
}

impl RadioConfig {
    fn check(&self) -> Result<(), WifiError> {
        let Propagation::TwoRayGround { frequency, height } = self.propagation;
        check_range("frequency", frequency, frequency > 0.0, "a positive number of hertz")?;
        check_range("antenna-height", height, height > 0.0, "a positive number of metres")?;
        let ber = self.bit_error_rate;
        check_range("bit-error-rate", ber, (0.0..1.0).contains(&ber), "a probability below 1")?;
        match self.reception {
            Reception::FirstLock { capture_ratio, .. } => {
                let usable = capture_ratio >= 1.0;
                check_range("capture-ratio", capture_ratio, usable, "a ratio of at least 1")?;
            }
            Reception::CumulativeSinr { min_sinr, .. } => {
                check_range("min-sinr", min_sinr, min_sinr >= 1.0, "a ratio of at least 1")?;
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

fn check_range(
    which: &'static str,
    value: f64,
    holds: bool,
    expected: &'static str,
) -> Result<(), WifiError> {
    if holds { Ok(()) } else { Err(WifiError::Range { which, value, expected }) }
}
