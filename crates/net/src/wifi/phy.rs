//! How long a frame takes, and the spaces between frames: what a MAC needs of its PHY.

use crate::wifi::category::AccessCategories;
use crate::wifi::config::MacConfig;
use crate::wifi::frame;
use crate::wifi::ofdm::{Format, OfdmMode};
use crate::wifi::standard::{Band, DsssConfig, MimoConfig, PhyConfig, Preamble, SentAt};
use airtcp_core::{Bytes, DataRate, Duration};

/// 144 bits of preamble and 48 of header at 1 Mbit/s.
const LONG_PLCP: Duration = Duration::from_micros(192);
/// 72 bits of preamble at 1 Mbit/s and 48 of header at 2 Mbit/s.
const SHORT_PLCP: Duration = Duration::from_micros(96);
/// aSlotTime of OFDM: the short one at 2.4 GHz, too.
const SLOT: Duration = Duration::from_micros(9);
/// Slots of DIFS.
const DIFS: u32 = 2;
/// aPPDUMaxTime (802.11-2020 Tables 19-25, 21-28; 802.11ax Table 27-60).
const LONGEST_PPDU: Duration = Duration::from_micros(5_484);

/// How frames are sent at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// 802.11b-1999 §18.3.4: PLCP preamble and header at their own rate, then the MPDU, for a
    /// multiple of `step`.
    Dsss { rate: DataRate, plcp: Duration, step: Duration },
    /// [`OfdmMode`].
    Ofdm(OfdmMode),
}

impl Mode {
    fn dsss(config: &DsssConfig, rate: DataRate) -> Self {
        let plcp = match config.preamble {
            Preamble::Short if rate > DataRate::mbps(1) => SHORT_PLCP,
            _ => LONG_PLCP,
        };
        let whole = config.whole_microseconds;
        let step = if whole { Duration::from_micros(1) } else { Duration::ZERO };
        Self::Dsss { rate, plcp, step }
    }

    /// Duration of everything in front of the MPDU.
    pub(crate) fn preamble(&self) -> Duration {
        match self {
            Self::Dsss { plcp, .. } => *plcp,
            Self::Ofdm(mode) => mode.preamble,
        }
    }

    /// Duration of a frame of `size` bytes, MAC header and FCS included.
    pub(crate) fn duration(&self, size: Bytes) -> Duration {
        match self {
            Self::Dsss { rate, plcp, step } => {
                *plcp + rate.transmission_time(size).round_up_to(*step)
            }
            Self::Ofdm(mode) => mode.duration(size),
        }
    }
}

/// Limits of a frame that packets share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aggregation {
    /// Bytes of it.
    pub(crate) length: Bytes,
    /// Time on the air.
    pub(crate) time: Duration,
    /// Difference of the sequence numbers in it, and number of the MPDUs that a block ACK covers.
    pub(crate) window: u32,
    /// An MPDU alone has a delimiter, too (VHT and HE).
    pub(crate) always_delimited: bool,
    /// Bytes of an A-MSDU; zero for none.
    pub(crate) amsdu: Bytes,
    /// Bytes of an MPDU beside its A-MSDU: MAC header and FCS.
    pub(crate) mpdu_overhead: Bytes,
}

/// A physical layer, its rates of unicast data apart.
#[derive(Clone, Debug)]
pub(crate) struct Phy {
    pub(crate) slot: Duration,
    pub(crate) sifs: Duration,
    /// DIFS, or AIFS: the shortest of several.
    pub(crate) difs: Duration,
    pub(crate) broadcast: Mode,
    /// Duration of an ACK at [`MacConfig::eifs_ack_rate`].
    pub(crate) eifs_ack: Duration,
    /// Every frame takes longer.
    pub(crate) shortest_frame: Duration,
    pub(crate) aggregation: Option<Aggregation>,
    /// Time for which a station that has won the medium may use it; zero for one exchange.
    pub(crate) txop_limit: Duration,
}

impl PhyConfig {
    /// How long frames take that are sent so.
    pub(super) fn mode(&self, at: SentAt) -> Mode {
        let (rate, band) = match (self, at) {
            (Self::Dsss(config), SentAt::Rate(rate)) => return Mode::dsss(config, rate),
            (Self::Mimo(_, MimoConfig { band, width, .. }), SentAt::Mcs(format, vector)) => {
                return Mode::Ofdm(OfdmMode::of_mcs(format, *band, *width, vector));
            }
            (Self::Mimo(_, MimoConfig { band, .. }), SentAt::Rate(rate)) => (rate, *band),
            (Self::Erp(_), SentAt::Rate(rate)) => (rate, Band::Ghz2),
            (_, SentAt::Rate(rate)) => (rate, Band::Ghz5),
            (_, SentAt::Mcs(..)) => unreachable!("one antenna has no MCS"),
        };
        Mode::Ofdm(OfdmMode::of_rate(rate, band))
    }
}

impl Phy {
    pub(crate) fn new(config: &PhyConfig, mac: &MacConfig) -> Self {
        let at = |rate| config.mode(SentAt::Rate(rate));
        let broadcast = at(config.broadcast_rate());
        let eifs_ack = at(mac.eifs_ack_rate).duration(frame::ACK);
        let ofdm = |band, spaces: u32| {
            let sifs = Duration::from_micros(if band == Band::Ghz2 { 10 } else { 16 });
            Self {
                slot: SLOT,
                sifs,
                difs: sifs + SLOT * u64::from(spaces),
                broadcast,
                eifs_ack,
                shortest_frame: broadcast.preamble(),
                aggregation: None,
                txop_limit: Duration::ZERO,
            }
        };
        match config {
            PhyConfig::Dsss(config) => Self {
                slot: config.slot,
                sifs: config.sifs,
                difs: config.difs,
                broadcast,
                eifs_ack,
                shortest_frame: at(DataRate::mbps(11)).preamble(),
                aggregation: None,
                txop_limit: Duration::ZERO,
            },
            PhyConfig::Ofdm(_) => ofdm(Band::Ghz5, DIFS),
            PhyConfig::Erp(_) => ofdm(Band::Ghz2, DIFS),
            PhyConfig::Mimo(format, config) => {
                let categories = config.access_categories.as_ref();
                let aifsn = categories.map_or(config.aifsn, AccessCategories::least_aifsn);
                Self {
                    aggregation: Aggregation::new(*format, config, mac),
                    txop_limit: config.txop_limit,
                    ..ofdm(config.band, aifsn)
                }
            }
        }
    }
}

impl Aggregation {
    /// `None` if packets share no frames.
    fn new(format: Format, config: &MimoConfig, mac: &MacConfig) -> Option<Self> {
        let amsdu = config.longest_amsdu(format, mac.header);
        let ampdus = config.ampdu_limit > Bytes::ZERO;
        let limits = Self {
            length: if ampdus { config.ampdu_limit } else { amsdu + mac.header },
            time: LONGEST_PPDU,
            window: if ampdus { config.block_ack_window } else { 1 },
            always_delimited: ampdus && format != Format::Ht,
            amsdu,
            mpdu_overhead: mac.header,
        };
        (ampdus || amsdu > Bytes::ZERO).then_some(limits)
    }
}

impl DsssConfig {
    /// Duration of a frame of `size` bytes, MAC header and FCS included, at `rate`.
    pub fn frame(&self, rate: DataRate, size: Bytes) -> Duration {
        Mode::dsss(self, rate).duration(size)
    }
}

#[cfg(test)]
mod tests {
    use crate::wifi::preset;
    use crate::wifi::standard::{DsssConfig, PhyConfig, Preamble};
    use airtcp_core::{Bytes, DataRate, Duration};

    const HIGH: DataRate = DataRate::mbps(11);

    fn dsss() -> DsssConfig {
        let PhyConfig::Dsss(dsss) = preset::ieee().phy else { panic!("802.11b is DSSS") };
        dsss
    }

    #[test]
    fn a_high_rate_frame_takes_whole_microseconds() {
        // 802.11b §18.3.4: 1528 B at 11 Mbit/s are 1111.3 us, rounded up.
        assert_eq!(dsss().frame(HIGH, Bytes(1528)), Duration::from_micros(192 + 1112));
    }

    #[test]
    fn the_short_preamble_halves_the_plcp_but_at_1_mbps() {
        // 802.11b §18.2.2.2.
        let phy = DsssConfig { preamble: Preamble::Short, ..dsss() };
        assert_eq!(phy.frame(DataRate::mbps(2), Bytes(14)), Duration::from_micros(96 + 56));
        assert_eq!(phy.frame(DataRate::mbps(1), Bytes(14)), Duration::from_micros(304));
    }
}
