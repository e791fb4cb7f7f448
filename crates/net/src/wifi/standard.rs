//! The physical layers of IEEE 802.11, as configured: each preset belongs to one.

use crate::wifi::category::AccessCategories;
use crate::wifi::config::{MimoError, WifiError};
use crate::wifi::ofdm::{CodingScheme, Format, TxVector, Width};
use crate::wifi::preset::Preset;
use airtcp_core::{Bytes, DataRate, Duration};
use airtcp_settings::schema::{Key, Kind, POSITIVE_TIME, PRESET};
use airtcp_settings::{Reader, Settings, choice, settings};

/// The physical layer of all stations of a channel. A preset chooses it, so its keys have an effect
/// with the presets of that layer only.
#[derive(Clone, Debug, PartialEq)]
pub enum PhyConfig {
    /// DSSS and high-rate DSSS (802.11b).
    Dsss(DsssConfig),
    /// OFDM at 5 GHz (802.11a, clause 17).
    Ofdm(OfdmConfig),
    /// OFDM at 2.4 GHz (802.11g, clause 18).
    Erp(OfdmConfig),
    /// High throughput (802.11n, clause 19), very high throughput (802.11ac, clause 21), or high
    /// efficiency (802.11ax, clause 27).
    Mimo(Format, MimoConfig),
}

settings! {
    #[partial]
    /// Timing of DSSS.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DsssConfig {
        /// PLCP preamble and header in front of each frame.
        #[source = "802.11b §18.2.2"]
        pub preamble: Preamble,
        /// Rate of unicast data: 1, 2, 5.5 or 11 Mbit/s.
        pub data_rate: DataRate,
        /// Rate of RTS, CTS and ACK.
        pub control_rate: DataRate,
        /// Rate of broadcast frames.
        pub broadcast_rate: DataRate,
        /// aSlotTime of the PHY.
        #[kind = POSITIVE_TIME]
        pub slot: Duration,
        /// aSIFSTime; shorter than `difs`.
        #[kind = POSITIVE_TIME]
        pub sifs: Duration,
        /// Interframe space in front of data and RTS: SIFS plus two slots.
        #[kind = POSITIVE_TIME]
        pub difs: Duration,
        /// A frame takes a whole number of microseconds, rounded up. ns-2 and GloMoSim: no.
        #[source = "802.11b §18.3.4"]
        pub whole_microseconds: bool,
    }
}

choice! {
    /// PLCP preamble and header in front of each frame.
    pub enum Preamble {
        /// 192 us
        Long = "long",
        /// 96 us; frames at 1 Mbit/s keep the long one
        Short = "short",
    }
}

settings! {
    #[partial]
    /// The rate of OFDM on one antenna.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OfdmConfig {
        /// Rate of unicast data: 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s. Responses and RTS have the
        /// highest of 6, 12 and 24 Mbit/s that is not above it, broadcasts 6 Mbit/s.
        #[source = "802.11-2020 §17.3, §10.6.6.5.2"]
        pub data_rate: DataRate,
    }
}

const STREAMS: Kind = Kind::Integer { min: 1, max: 4 };
const HIGHEST_MCS: u32 = 11;
const MCS: Kind = Kind::Integer { min: 0, max: HIGHEST_MCS as u64 };
pub(super) const AIFSN: Kind = Kind::Integer { min: 2, max: 15 };
const MPDUS: Kind = Kind::Integer { min: 1, max: 256 };
const AMPDU: Kind = Kind::Size { min: 0, max: 6_500_631 };
const AMSDU: Kind = Kind::Size { min: 0, max: 11_454 };

settings! {
    #[partial]
    /// The rate of OFDM on several antennas, access to the medium, and aggregation.
    #[derive(Clone, Debug, PartialEq)]
    pub struct MimoConfig {
        /// Frequency band. It sets SIFS (10 us at 2.4 GHz, otherwise 16 us); at 2.4 GHz each frame
        /// has a signal extension of 6 us.
        #[source = "802.11-2020 §19.4.4"]
        pub band: Band,
        /// Choice of the rate of unicast data.
        pub rate_control: RateControl,
        /// Width of the channel, at which all unicast data are sent; with Minstrel-HT the largest
        /// width.
        pub width: Width,
        /// Guard interval between the symbols of data: 0.4 or 0.8 us; with `ieee80211ax` 0.8, 1.6 or
        /// 3.2 us. With Minstrel-HT, `ieee80211n` and `ieee80211ac` use the long one, too.
        #[kind = POSITIVE_TIME]
        pub guard_interval: Duration,
        /// Spatial streams; with Minstrel-HT the largest number.
        #[kind = STREAMS]
        pub streams: u32,
        /// Modulation and coding scheme of each stream, from 0; the rate of unicast data follows
        /// from it. Responses and RTS have the highest of 6, 12 and 24 Mbit/s that is not above the
        /// rate of the same modulation and code on one antenna, broadcasts 6 Mbit/s.
        #[kind = MCS]
        #[source = "802.11-2020 §10.6.11"]
        #[only("rate-control" in &["fixed"])]
        pub mcs: u32,
        /// Slots of AIFS, the interframe space in front of data and RTS, after its SIFS.
        #[kind = AIFSN]
        #[source = "802.11-2020 §10.23.2"]
        pub aifsn: u32,
        /// TXOP limit, a multiple of 32 us: for so long a station that has won the medium may go on,
        /// one SIFS after each exchange. No frame is begun that would not end, with its answer,
        /// within it; only the first may be longer. Zero: one exchange.
        #[source = "802.11-2020 §10.23.2.8"]
        pub txop_limit: Duration,
        /// EDCA's access categories, in the place of `aifsn`, `cw-min`, `cw-max` and `txop-limit`;
        /// back-offs count at slot boundaries. Without them, all packets have one queue and one
        /// back-off. Not with routing protocols.
        #[source = "802.11-2020 §10.23.2"]
        pub access_categories: Option<AccessCategories>,
        /// Longest A-MPDU. Zero: none, each MPDU has its own ACK.
        #[kind = AMPDU]
        #[source = "802.11-2020 §10.12.2"]
        pub ampdu_limit: Bytes,
        /// Longest A-MSDU, several packets in one MPDU: 3839 or 7935 B, with `ieee80211n` the latter
        /// only without A-MPDUs. With `ieee80211ac`, and `ieee80211ax` at 5 and 6 GHz, the longest
        /// MPDU with one: 3895, 7991 or 11454 B. Zero: none, as it must be with Minstrel-HT.
        #[kind = AMSDU]
        #[source = "802.11-2020 §10.11, Table 9-25"]
        pub amsdu_limit: Bytes,
        /// Size of the block ACK window: no MPDU is sent that is so many numbers ahead of the oldest
        /// one unacknowledged.
        #[kind = MPDUS]
        #[source = "802.11-2020 §10.25.6"]
        pub block_ack_window: u32,
    }
}

choice! {
    /// The choice of the rate of unicast data.
    pub enum RateControl {
        /// all at `mcs`
        Fixed = "fixed",
        /// Minstrel-HT of Linux: each station learns for each receiver which of all MCS, on fewer
        /// streams and over a part of the channel too, carries most
        MinstrelHt = "minstrel-ht",
    }
}

choice! {
    /// A frequency band.
    pub enum Band {
        /// 2.4 GHz
        Ghz2 = "2.4 GHz",
        /// 5 GHz
        Ghz5 = "5 GHz",
        /// 6 GHz
        Ghz6 = "6 GHz",
    }
}

impl Settings for PhyConfig {
    /// The keys of a physical layer stand with each of its presets.
    const KEYS: &'static [Key] = &[
        Key::With { choice: PRESET, word: Preset::Ieee.word(), keys: DsssConfig::KEYS },
        Key::With { choice: PRESET, word: Preset::Ns2.word(), keys: DsssConfig::KEYS },
        Key::With { choice: PRESET, word: Preset::Glomosim.word(), keys: DsssConfig::KEYS },
        Key::With { choice: PRESET, word: Preset::Opnet.word(), keys: DsssConfig::KEYS },
        Key::With { choice: PRESET, word: Preset::Ieee80211a.word(), keys: OfdmConfig::KEYS },
        Key::With { choice: PRESET, word: Preset::Ieee80211g.word(), keys: OfdmConfig::KEYS },
        Key::With { choice: PRESET, word: Preset::Ieee80211n.word(), keys: MimoConfig::KEYS },
        Key::With { choice: PRESET, word: Preset::Ieee80211ac.word(), keys: MimoConfig::KEYS },
        Key::With { choice: PRESET, word: Preset::Ieee80211ax.word(), keys: MimoConfig::KEYS },
    ];

    /// Reads the keys of the physical layer of `base`: there is none without a preset.
    fn read<R: Reader>(from: &R, base: Option<&Self>) -> Option<Self> {
        Some(match base? {
            Self::Dsss(base) => Self::Dsss(DsssConfig::read(from, Some(base))?),
            Self::Ofdm(base) => Self::Ofdm(OfdmConfig::read(from, Some(base))?),
            Self::Erp(base) => Self::Erp(OfdmConfig::read(from, Some(base))?),
            Self::Mimo(format, base) => {
                let config = MimoConfig::read(from, Some(base))?;
                from.chosen("rate-control", config.rate_control.word());
                Self::Mimo(*format, config)
            }
        })
    }

    fn write(&self, to: &mut Vec<(&'static str, String)>) {
        match self {
            Self::Dsss(config) => config.write(to),
            Self::Ofdm(config) | Self::Erp(config) => config.write(to),
            Self::Mimo(_, config) => config.write(to),
        }
    }
}

/// Rates of DSSS.
const DSSS_RATES: &[DataRate] =
    &[DataRate::mbps(1), DataRate::mbps(2), DataRate::kbps(5500), DataRate::mbps(11)];
/// Rates of OFDM on one antenna (802.11-2020 §17.3.2.3).
const OFDM_RATES: &[DataRate] = &[
    DataRate::mbps(6),
    DataRate::mbps(9),
    DataRate::mbps(12),
    DataRate::mbps(18),
    DataRate::mbps(24),
    DataRate::mbps(36),
    DataRate::mbps(48),
    DataRate::mbps(54),
];

/// Rate of broadcasts by OFDM.
const OFDM_BROADCAST: DataRate = DataRate::mbps(6);

/// How a frame is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentAt {
    /// At a rate of DSSS, or of OFDM on one antenna.
    Rate(DataRate),
    /// By the MCS, width, guard interval and streams of this format.
    Mcs(Format, TxVector),
}

impl PhyConfig {
    /// The rates of unicast data that stations choose from, the lowest first; without rate control
    /// one.
    pub(super) fn data_rates(&self) -> Vec<SentAt> {
        match self {
            Self::Dsss(dsss) => vec![SentAt::Rate(dsss.data_rate)],
            Self::Ofdm(ofdm) | Self::Erp(ofdm) => vec![SentAt::Rate(ofdm.data_rate)],
            Self::Mimo(format, mimo) => {
                mimo.tx_vectors(*format).into_iter().map(|at| SentAt::Mcs(*format, at)).collect()
            }
        }
    }

    /// Rate of the RTS, CTS and ACK that go with data at a rate.
    pub(super) fn control_rate(&self, data: SentAt) -> DataRate {
        match (self, data) {
            (Self::Dsss(dsss), _) => dsss.control_rate,
            (_, SentAt::Rate(rate)) => CodingScheme::of_rate(rate).control_rate(),
            (_, SentAt::Mcs(_, vector)) => CodingScheme::new(vector.mcs).control_rate(),
        }
    }

    /// Rate of broadcasts.
    pub(super) fn broadcast_rate(&self) -> DataRate {
        match self {
            Self::Dsss(dsss) => dsss.broadcast_rate,
            Self::Ofdm(_) | Self::Erp(_) | Self::Mimo(..) => OFDM_BROADCAST,
        }
    }

    pub(super) fn check(&self) -> Result<(), WifiError> {
        match self {
            Self::Dsss(dsss) => dsss.check(),
            Self::Ofdm(ofdm) | Self::Erp(ofdm) => self.check_rate("data-rate", ofdm.data_rate),
            Self::Mimo(format, mimo) => {
                mimo.check(*format).map_err(WifiError::Mimo)?;
                mimo.access_categories.iter().try_for_each(AccessCategories::check)
            }
        }
    }

    /// Refuses a rate at which the PHY sends no control frames.
    pub(super) fn check_rate(&self, which: &'static str, rate: DataRate) -> Result<(), WifiError> {
        let (standard, rates) = match self {
            Self::Dsss(_) => ("802.11b", DSSS_RATES),
            Self::Ofdm(_) | Self::Erp(_) | Self::Mimo(..) => ("OFDM", OFDM_RATES),
        };
        if rates.contains(&rate) {
            Ok(())
        } else {
            Err(WifiError::rate(which, rate, standard, rates))
        }
    }

    /// True if packets share A-MPDUs and are acknowledged in blocks.
    pub fn makes_ampdus(&self) -> bool {
        matches!(self, Self::Mimo(_, mimo) if mimo.ampdu_limit > Bytes::ZERO)
    }

    /// The access categories of its stations, if they have several.
    pub fn access_categories(&self) -> Option<&AccessCategories> {
        match self {
            Self::Mimo(_, mimo) => mimo.access_categories.as_ref(),
            Self::Dsss(_) | Self::Ofdm(_) | Self::Erp(_) => None,
        }
    }

    /// True if packets share A-MSDUs.
    pub fn makes_amsdus(&self) -> bool {
        matches!(self, Self::Mimo(_, mimo) if mimo.amsdu_limit > Bytes::ZERO)
    }
}

/// An MPDU in an A-MPDU of 802.11n is shorter than 4096 B: its delimiter has 12 bits for the length
/// (802.11-2020 §10.11, Table 9-25).
const LONGEST_HT_MPDU: Bytes = Bytes(4_095);

impl DsssConfig {
    fn check(&self) -> Result<(), WifiError> {
        let rates = [
            ("data-rate", self.data_rate),
            ("control-rate", self.control_rate),
            ("broadcast-rate", self.broadcast_rate),
        ];
        let phy = PhyConfig::Dsss(self.clone());
        rates.into_iter().try_for_each(|(which, rate)| phy.check_rate(which, rate))?;
        if self.slot.is_zero() {
            return Err(WifiError::Slot);
        }
        if self.sifs >= self.difs {
            return Err(WifiError::Sifs { sifs: self.sifs, difs: self.difs });
        }
        Ok(())
    }
}

/// A TXOP limit is a field of 16 bits, in units of 32 us (§9.4.2.28).
pub(super) fn check_txop(limit: Duration) -> Result<(), MimoError> {
    const UNIT: Duration = Duration::from_micros(32);
    let units = limit.as_nanos().saturating_add(UNIT.as_nanos() / 2) / UNIT.as_nanos();
    let nearest = UNIT * units.min(u64::from(u16::MAX));
    if limit == nearest { Ok(()) } else { Err(MimoError::Txop { limit, nearest }) }
}

impl MimoConfig {
    /// How unicast data may be sent; by Minstrel-HT in the order of its groups.
    pub(super) fn tx_vectors(&self, format: Format) -> Vec<TxVector> {
        let &Self { width, guard_interval, streams, mcs, .. } = self;
        if self.rate_control == RateControl::Fixed {
            return vec![TxVector { width, guard_interval, streams, mcs }];
        }
        // Linux has no rates of HE; of those formats that it has, both intervals.
        let has = |interval: Duration| match format {
            Format::Ht | Format::Vht => interval >= guard_interval,
            Format::He => interval == guard_interval,
        };
        let mut vectors = Vec::new();
        for width in Width::ALL.into_iter().filter(|&other| other <= width) {
            let intervals = format.guard_intervals().iter().copied().rev();
            for guard_interval in intervals.filter(|&interval| has(interval)) {
                for streams in 1..=streams {
                    let has = |&mcs: &u32| CodingScheme::new(mcs).is_in(format, width, streams);
                    let all = (0..=HIGHEST_MCS).filter(has);
                    vectors.extend(all.map(|mcs| TxVector { width, guard_interval, streams, mcs }));
                }
            }
        }
        vectors
    }

    /// Longest A-MSDU in MPDUs with `overhead` bytes of MAC header and FCS; zero for none.
    pub(super) fn longest_amsdu(&self, format: Format, overhead: Bytes) -> Bytes {
        if format.limits_mpdus(self.band) { self.amsdu_limit - overhead } else { self.amsdu_limit }
    }

    fn check(&self, format: Format) -> Result<(), MimoError> {
        let standard = format.amendment();
        let bands = format.bands();
        if !bands.contains(&self.band) {
            return Err(MimoError::Band { band: self.band, standard, nearest: Band::Ghz5 });
        }
        let widest = format.widest(self.band);
        if self.width > widest {
            return Err(MimoError::Width { width: self.width, standard, band: self.band, widest });
        }
        let intervals = format.guard_intervals();
        if !intervals.contains(&self.guard_interval) {
            let set = self.guard_interval;
            let distance = |interval: &&Duration| set.abs_diff(**interval);
            let nearest = intervals.iter().min_by_key(distance).copied().unwrap_or(set);
            return Err(MimoError::GuardInterval { set, standard, nearest });
        }
        if self.rate_control == RateControl::Fixed {
            self.check_mcs(format)?;
        }
        check_txop(self.txop_limit)?;
        self.check_aggregation(format)
    }

    fn check_mcs(&self, format: Format) -> Result<(), MimoError> {
        let &Self { width, streams, mcs, .. } = self;
        let has = |mcs: u32| CodingScheme::new(mcs).is_in(format, width, streams);
        if has(mcs) {
            return Ok(());
        }
        // Every format has MCS 0 at all widths.
        let nearest = (0..mcs).rev().find(|&mcs| has(mcs)).unwrap_or(0);
        Err(MimoError::Mcs { mcs, standard: format.amendment(), width, streams, nearest })
    }

    fn check_aggregation(&self, format: Format) -> Result<(), MimoError> {
        let standard = format.amendment();
        let most = format.ampdu_limit();
        if self.ampdu_limit > most {
            return Err(MimoError::Ampdu { limit: self.ampdu_limit, standard, most });
        }
        let most = format.block_ack_window();
        if self.block_ack_window > most {
            let window = self.block_ack_window;
            return Err(MimoError::Window { window, standard, most });
        }
        self.check_amsdu(format)
    }

    fn check_amsdu(&self, format: Format) -> Result<(), MimoError> {
        let &Self { amsdu_limit: limit, ampdu_limit, band, .. } = self;
        let standard = format.amendment();
        let limits = format.amsdu_limits(band);
        if limit == Bytes::ZERO {
            return Ok(());
        }
        if self.rate_control == RateControl::MinstrelHt {
            return Err(MimoError::AmsduOfMinstrel { limit });
        }
        if !limits.contains(&limit) {
            let distance = |other: &&Bytes| other.get().abs_diff(limit.get());
            let nearest = limits.iter().min_by_key(distance).copied().unwrap_or(limit);
            return Err(MimoError::Amsdu { limit, standard, band, nearest });
        }
        if format == Format::Ht && ampdu_limit > Bytes::ZERO && limit > LONGEST_HT_MPDU {
            return Err(MimoError::AmsduInAmpdu { limit, most: LONGEST_HT_MPDU });
        }
        Ok(())
    }
}
