//! Rates and durations of OFDM frames: 802.11a and g, n (HT), ac (VHT) and ax (HE).
//!
//! Read first: IEEE Std 802.11-2020, §17.4.3, §19.4.3 and §21.4.3, and IEEE Std 802.11ax-2021,
//! §27.4.3 (TXTIME). A frame is a preamble and so many symbols of [`OfdmMode::bits`] data bits. The
//! first symbol begins with the SERVICE field, and tail bits end the code (binary convolutional
//! codes; for HE, LDPC codes are taken to need as many bits, and no packet extension follows).

use crate::wifi::standard::Band;
use airtcp_core::{Bytes, DataRate, Duration};
use airtcp_settings::choice;

/// Legacy preamble: L-STF, L-LTF and L-SIG.
const LEGACY: Duration = Duration::from_micros(20);
/// Symbol of data with a guard interval of 0.8 us, and of a preamble's fields.
const SYMBOL: Duration = Duration::from_micros(4);
/// Signal extension at 2.4 GHz (§18.3.2.4).
const EXTENSION: Duration = Duration::from_micros(6);
/// Bits of the SERVICE field.
const SERVICE: u64 = 16;
/// Tail bits of each encoder.
const TAIL: u64 = 6;

/// The format of the frames of a standard with several spatial streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// High throughput, 802.11n (mixed format).
    Ht,
    /// Very high throughput, 802.11ac.
    Vht,
    /// High efficiency, 802.11ax (single-user PPDUs).
    He,
}

choice! {
    /// Width of a channel.
    #[derive(PartialOrd, Ord)]
    pub enum Width {
        /// 20 MHz
        Mhz20 = "20 MHz",
        /// 40 MHz
        Mhz40 = "40 MHz",
        /// 80 MHz
        Mhz80 = "80 MHz",
        /// 160 MHz
        Mhz160 = "160 MHz",
    }
}

/// How a frame of a format is sent (TXVECTOR, 802.11-2020 §21.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxVector {
    /// Width of the part of the channel that it takes.
    pub width: Width,
    /// Guard interval between the symbols of data.
    pub guard_interval: Duration,
    /// Spatial streams.
    pub streams: u32,
    /// Modulation and coding scheme of each stream.
    pub mcs: u32,
}

const SHORT_INTERVALS: &[Duration] = &[Duration::from_nanos(400), Duration::from_nanos(800)];
const LONG_INTERVALS: &[Duration] =
    &[Duration::from_nanos(800), Duration::from_nanos(1600), Duration::from_nanos(3200)];

impl Width {
    pub(crate) const ALL: [Self; 4] = [Self::Mhz20, Self::Mhz40, Self::Mhz80, Self::Mhz160];

    fn megahertz(self) -> u32 {
        match self {
            Self::Mhz20 => 20,
            Self::Mhz40 => 40,
            Self::Mhz80 => 80,
            Self::Mhz160 => 160,
        }
    }
}

impl Format {
    pub(crate) fn amendment(self) -> &'static str {
        match self {
            Self::Ht => "802.11n",
            Self::Vht => "802.11ac",
            Self::He => "802.11ax",
        }
    }

    pub(crate) fn bands(self) -> &'static [Band] {
        match self {
            Self::Ht => &[Band::Ghz2, Band::Ghz5],
            Self::Vht => &[Band::Ghz5],
            Self::He => &[Band::Ghz2, Band::Ghz5, Band::Ghz6],
        }
    }

    pub(crate) fn widest(self, band: Band) -> Width {
        match (self, band) {
            (Self::Ht, _) | (_, Band::Ghz2) => Width::Mhz40,
            _ => Width::Mhz160,
        }
    }

    pub(crate) fn guard_intervals(self) -> &'static [Duration] {
        match self {
            Self::Ht | Self::Vht => SHORT_INTERVALS,
            Self::He => LONG_INTERVALS,
        }
    }

    /// Longest A-MPDU (§9.4.2.55.3, §9.4.2.157.2; 802.11ax §26.6.1 and Table 27-60).
    pub(crate) fn ampdu_limit(self) -> Bytes {
        match self {
            Self::Ht => Bytes(65_535),
            Self::Vht => Bytes(1_048_575),
            Self::He => Bytes(6_500_631),
        }
    }

    /// True if the length of A-MSDUs follows from that of MPDUs (Table 9-25; 802.11ax Table 9-25).
    pub(crate) fn limits_mpdus(self, band: Band) -> bool {
        match self {
            Self::Ht => false,
            Self::Vht => true,
            Self::He => band != Band::Ghz2,
        }
    }

    /// Lengths that a receiver can give for A-MSDUs, or for MPDUs (§9.4.2.55.2, §9.4.2.157.2).
    pub(crate) fn amsdu_limits(self, band: Band) -> &'static [Bytes] {
        if self.limits_mpdus(band) {
            &[Bytes(3_895), Bytes(7_991), Bytes(11_454)]
        } else {
            &[Bytes(3_839), Bytes(7_935)]
        }
    }

    /// Largest block ACK window (§10.25.6; 802.11ax §26.4.3).
    pub(crate) fn block_ack_window(self) -> u32 {
        match self {
            Self::Ht | Self::Vht => 64,
            Self::He => 256,
        }
    }

    /// Data subcarriers (Tables 19-6, 21-5 and 802.11ax 27-13).
    fn subcarriers(self, width: Width) -> u64 {
        match (self, width) {
            (Self::Ht | Self::Vht, Width::Mhz20) => 52,
            (Self::Ht | Self::Vht, Width::Mhz40) => 108,
            (Self::Ht | Self::Vht, Width::Mhz80) | (Self::He, Width::Mhz20) => 234,
            (Self::Ht | Self::Vht, Width::Mhz160) | (Self::He, Width::Mhz40) => 468,
            (Self::He, Width::Mhz80) => 980,
            (Self::He, Width::Mhz160) => 1960,
        }
    }

    /// Duration of everything in front of the data.
    fn preamble(self, guard_interval: Duration, streams: u32) -> Duration {
        // A long training field for each stream, but four for three (Tables 19-13, 21-13, 27-26).
        let training = if streams == 3 { 4 } else { u64::from(streams) };
        let fields = match self {
            // HT-SIG (two symbols), HT-STF.
            Self::Ht => SYMBOL * (3 + training),
            // VHT-SIG-A (two symbols), VHT-STF, VHT-SIG-B.
            Self::Vht => SYMBOL * (4 + training),
            // RL-SIG, HE-SIG-A (two symbols), HE-STF. The HE-LTFs are 2x, or 4x with the longest
            // guard interval (802.11ax Table 27-1).
            Self::He => {
                let long = guard_interval > Duration::from_nanos(1600);
                let field = Duration::from_nanos(if long { 12_800 } else { 6_400 });
                SYMBOL * 4 + (field + guard_interval) * training
            }
        };
        LEGACY + fields
    }
}

/// Modulation and code of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodingScheme {
    index: u32,
    /// Bits that a subcarrier carries in a symbol: log2 of the constellation's size.
    pub(crate) bits_per_subcarrier: u64,
    pub(crate) code: CodeRate,
}

/// Rate of a convolutional code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeRate {
    Half,
    TwoThirds,
    ThreeQuarters,
    FiveSixths,
}

impl CodeRate {
    /// Data bits of so many coded ones.
    fn fraction(self) -> (u64, u64) {
        match self {
            Self::Half => (1, 2),
            Self::TwoThirds => (2, 3),
            Self::ThreeQuarters => (3, 4),
            Self::FiveSixths => (5, 6),
        }
    }
}

impl CodingScheme {
    /// MCS `index` of each format; the highest one above 11.
    pub(crate) fn new(index: u32) -> Self {
        use CodeRate::{FiveSixths, Half, ThreeQuarters, TwoThirds};
        let (bits_per_subcarrier, code) = match index {
            0 => (1, Half),
            1 => (2, Half),
            2 => (2, ThreeQuarters),
            3 => (4, Half),
            4 => (4, ThreeQuarters),
            5 => (6, TwoThirds),
            6 => (6, ThreeQuarters),
            7 => (6, FiveSixths),
            8 => (8, ThreeQuarters),
            9 => (8, FiveSixths),
            10 => (10, ThreeQuarters),
            _ => (10, FiveSixths),
        };
        Self { index, bits_per_subcarrier, code }
    }

    /// Modulation and code of a rate on one antenna (Table 17-4); those of 6 Mbit/s for others.
    pub(crate) fn of_rate(rate: DataRate) -> Self {
        match rate.bits_per_sec() / 1_000_000 {
            // BPSK 3/4 is no MCS.
            9 => Self { code: CodeRate::ThreeQuarters, ..Self::new(0) },
            12 => Self::new(1),
            18 => Self::new(2),
            24 => Self::new(3),
            36 => Self::new(4),
            48 => Self::new(5),
            54 => Self::new(6),
            _ => Self::new(0),
        }
    }

    /// Rate of control frames in response to it: the highest of 6, 12 and 24 Mbit/s that is not
    /// above the rate of the same modulation and code on one antenna (§10.6.11, Table 10-10).
    pub(crate) fn control_rate(self) -> DataRate {
        DataRate::mbps(match (self.bits_per_subcarrier, self.code) {
            (1, _) => 6,
            (2, _) => 12,
            _ => 24,
        })
    }

    /// Coded bits of a symbol.
    fn coded_bits(self, format: Format, width: Width, streams: u32) -> u64 {
        format.subcarriers(width) * self.bits_per_subcarrier * u64::from(streams)
    }

    /// Data bits of a symbol, N_DBPS.
    fn data_bits(self, format: Format, width: Width, streams: u32) -> u64 {
        let (data, coded) = self.code.fraction();
        self.coded_bits(format, width, streams) * data / coded
    }

    /// Number of convolutional encoders: one for each 300 Mbit/s of HT and each 540 Mbit/s of VHT at
    /// the long guard interval, with an exception (Tables 19-27 to 19-41, 21-30 to 21-61).
    fn encoders(self, format: Format, width: Width, streams: u32) -> u64 {
        let data_bits = self.data_bits(format, width, streams);
        match format {
            Format::Vht if (width, streams, self.index) == (Width::Mhz160, 4, 7) => 6,
            Format::Ht => data_bits.div_ceil(1_200),
            Format::Vht => data_bits.div_ceil(2_160),
            Format::He => 1,
        }
    }

    /// True if a format has this MCS: VHT lacks those whose bits do not come out even for each
    /// encoder (§21.5; the bits of a symbol are a multiple of the code's period).
    pub(crate) fn is_in(self, format: Format, width: Width, streams: u32) -> bool {
        match format {
            Format::Ht => self.index <= 7,
            Format::He => self.index <= 11,
            Format::Vht => {
                let coded = self.coded_bits(format, width, streams);
                let encoders = self.encoders(format, width, streams);
                let (_, period) = self.code.fraction();
                self.index <= 9 && coded.is_multiple_of(encoders * period)
            }
        }
    }
}

/// How frames are sent at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OfdmMode {
    /// Duration of everything in front of the data.
    pub(crate) preamble: Duration,
    symbol: Duration,
    /// Data bits of a symbol, N_DBPS.
    bits: u64,
    /// Tail bits of all encoders.
    tail: u64,
    /// The data take a multiple of this.
    step: Duration,
    /// Silence behind the data that counts as part of the frame.
    extension: Duration,
    /// The channel is so many times as wide as the frame.
    narrower: u32,
    pub(crate) scheme: CodingScheme,
}

impl OfdmMode {
    /// A rate on one antenna (§17.4.3).
    pub(crate) fn of_rate(rate: DataRate, band: Band) -> Self {
        Self {
            preamble: LEGACY,
            symbol: SYMBOL,
            bits: rate.bits_per_sec() * 4 / 1_000_000,
            tail: TAIL,
            step: SYMBOL,
            extension: extension(band),
            narrower: 1,
            scheme: CodingScheme::of_rate(rate),
        }
    }

    /// An MCS on so many antennas, in a channel of width `channel`.
    pub(crate) fn of_mcs(format: Format, band: Band, channel: Width, vector: TxVector) -> Self {
        let TxVector { width, guard_interval, streams, mcs } = vector;
        let scheme = CodingScheme::new(mcs);
        let bits = scheme.data_bits(format, width, streams);
        let (fourier, step) = match format {
            // L-SIG counts symbols of 4 us, also where those of the data are shorter.
            Format::Ht | Format::Vht => (Duration::from_nanos(3_200), SYMBOL),
            Format::He => (Duration::from_nanos(12_800), Duration::ZERO),
        };
        Self {
            preamble: format.preamble(guard_interval, streams),
            symbol: fourier + guard_interval,
            bits,
            tail: TAIL * scheme.encoders(format, width, streams),
            step,
            extension: extension(band),
            narrower: channel.megahertz() / width.megahertz(),
            scheme,
        }
    }

    /// Time that `size` bytes take as data, with nothing around them.
    pub(crate) fn data_time(&self, size: Bytes) -> Duration {
        self.symbol * size.bits().div_ceil(self.bits)
    }

    /// TXTIME of a frame of `size` bytes, MAC headers and FCS included.
    pub(crate) fn duration(&self, size: Bytes) -> Duration {
        let symbols = (SERVICE + size.bits() + self.tail).div_ceil(self.bits);
        self.preamble + (self.symbol * symbols).round_up_to(self.step) + self.extension
    }

    /// Ratio of signal to noise and interference in the data; `whole` is that over the channel. A
    /// narrower frame has the power of a wide one, and noise and interference count as spread over the
    /// channel.
    pub(crate) fn sinr(&self, whole: f64) -> f64 {
        whole * f64::from(self.narrower)
    }

    /// Data bits sent in so much time, the preamble apart.
    pub(crate) fn bits_in(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.symbol.as_secs_f64() * self.bits as f64
    }
}

fn extension(band: Band) -> Duration {
    if band == Band::Ghz2 { EXTENSION } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u64; 3] = [1536, 76, 14];
    const LONG: u64 = 800;
    const SHORT: u64 = 400;

    fn nanos(mode: &OfdmMode) -> [u64; 3] {
        SIZES.map(|size| mode.duration(Bytes(size)).as_nanos())
    }

    fn mcs(format: Format, width: Width, guard_interval: u64, mcs: u32) -> OfdmMode {
        let guard_interval = Duration::from_nanos(guard_interval);
        let vector = TxVector { width, guard_interval, streams: 1, mcs };
        OfdmMode::of_mcs(format, Band::Ghz5, width, vector)
    }

    #[test]
    fn a_frame_narrower_than_the_channel_has_less_noise() {
        let vector = TxVector {
            width: Width::Mhz20,
            guard_interval: Duration::from_nanos(800),
            streams: 1,
            mcs: 0,
        };
        let sinr = |channel| OfdmMode::of_mcs(Format::Vht, Band::Ghz5, channel, vector).sinr(1.5);
        assert_eq!([sinr(Width::Mhz20), sinr(Width::Mhz80), sinr(Width::Mhz160)], [1.5, 6.0, 12.0]);
    }

    /// Data bits of a symbol per symbol, kbit/s.
    fn kbps(mode: &OfdmMode) -> u64 {
        mode.bits * 1_000_000 / mode.symbol.as_nanos()
    }

    /// VHT-SIG-B, which ns-3 leaves out where there is one user (Figure 21-4 does not).
    fn sig_b(format: Format) -> u64 {
        if format == Format::Vht { 4_000 } else { 0 }
    }

    // The durations are those that ns-3 checks (`src/wifi/test/tx-duration-test.cc`), unless said
    // otherwise.

    #[test]
    fn the_durations_of_802_11a_and_g_are_those_of_ns3() {
        let at = |rate, band| nanos(&OfdmMode::of_rate(DataRate::mbps(rate), band));
        assert_eq!(at(54, Band::Ghz5), [248_000, 32_000, 24_000]);
        assert_eq!(at(54, Band::Ghz2), [254_000, 38_000, 30_000]);
        // An ACK (Table 17-21: 16 + 112 + 6 bits): 44, 32 and 28 us.
        let ack = |rate| OfdmMode::of_rate(DataRate::mbps(rate), Band::Ghz5).duration(Bytes(14));
        assert_eq!([6, 12, 24].map(ack), [44, 32, 28].map(Duration::from_micros));
    }

    #[test]
    fn the_durations_of_802_11n_and_ac_are_those_of_ns3() {
        use Format::{Ht, Vht};
        use Width::{Mhz20, Mhz40, Mhz80, Mhz160};
        for (format, width, index, expected) in [
            (Ht, Mhz20, 7, [228_000, 48_000, 40_000]),
            (Ht, Mhz40, 7, [128_000, 44_000, 40_000]),
            (Vht, Mhz20, 8, [196_000, 48_000, 40_000]),
            (Vht, Mhz40, 9, [108_000, 40_000, 40_000]),
            (Vht, Mhz80, 0, [460_000, 60_000, 44_000]),
            (Vht, Mhz80, 9, [68_000, 40_000, 40_000]),
            (Vht, Mhz160, 8, [56_000, 40_000, 40_000]),
        ] {
            let expected = expected.map(|time| time + sig_b(format));
            let mode = mcs(format, width, LONG, index);
            assert_eq!(nanos(&mode), expected, "{format:?} {width:?} {index}");
        }
    }

    /// With the short guard interval, the standard rounds up to 4 us (equations 19-91 and 21-109);
    /// ns-3 does not.
    #[test]
    fn short_symbols_are_rounded_up_to_those_of_l_sig() {
        use Format::{Ht, Vht};
        use Width::{Mhz20, Mhz40, Mhz80};
        for (format, width, index, ns3) in [
            (Ht, Mhz20, 0, [1_742_400, 126_000, 57_600]),
            (Ht, Mhz20, 6, [226_800, 46_800, 39_600]),
            (Ht, Mhz40, 7, [118_800, 43_200, 39_600]),
            (Vht, Mhz20, 8, [180_000, 46_800, 39_600]),
            (Vht, Mhz40, 9, [100_800, 39_600, 39_600]),
            (Vht, Mhz80, 0, [417_600, 57_600, 43_200]),
        ] {
            let expected = ns3.map(|time: u64| time.next_multiple_of(4_000) + sig_b(format));
            assert_eq!(nanos(&mcs(format, width, SHORT, index)), expected, "{format:?} {index}");
        }
    }

    /// HE-LTF and guard interval: ns-3 takes 8 us with all guard intervals; the standard has 7.2, 8
    /// and 16 us.
    #[test]
    fn the_durations_of_802_11ax_are_those_of_ns3_but_for_the_training_field() {
        use Width::{Mhz20, Mhz40, Mhz80, Mhz160};
        for (width, guard, index, ns3, training) in [
            (Mhz20, 800, 0, [1_485_600, 125_600, 71_200], 7_200),
            (Mhz40, 800, 0, [764_800, 84_800, 57_600], 7_200),
            (Mhz80, 800, 0, [397_600, 71_200, 57_600], 7_200),
            (Mhz160, 800, 0, [220_800, 57_600, 57_600], 7_200),
            (Mhz20, 1600, 0, [1_570_400, 130_400, 72_800], 8_000),
            (Mhz80, 1600, 0, [418_400, 72_800, 58_400], 8_000),
            (Mhz20, 3200, 0, [1_740_000, 140_000, 76_000], 16_000),
            (Mhz160, 3200, 0, [252_000, 60_000, 60_000], 16_000),
            (Mhz20, 800, 11, [139_200, 57_600, 57_600], 7_200),
            (Mhz80, 800, 11, [71_200, 57_600, 57_600], 7_200),
        ] {
            let expected = ns3.map(|time: u64| time - 8_000 + training);
            let mode = mcs(Format::He, width, guard, index);
            assert_eq!(nanos(&mode), expected, "{width:?} {guard} {index}");
        }
    }

    #[test]
    fn the_rates_are_those_of_the_tables() {
        use Width::{Mhz20, Mhz40, Mhz80, Mhz160};
        let rates = |format, width, guard| {
            let rate = |index| kbps(&mcs(format, width, guard, index));
            (0..=11).map(rate).collect::<Vec<_>>()
        };
        // Tables 19-27 and 19-28.
        let expected = [6_500, 13_000, 19_500, 26_000, 39_000, 52_000, 58_500, 65_000];
        assert_eq!(rates(Format::Ht, Mhz20, LONG)[..8], expected);
        assert_eq!(rates(Format::Ht, Mhz40, SHORT)[7], 150_000);
        // Tables 21-30, 21-34, 21-46 and 21-54.
        assert_eq!(rates(Format::Vht, Mhz20, LONG)[8], 78_000);
        assert_eq!(rates(Format::Vht, Mhz80, SHORT)[9], 433_333);
        assert_eq!(rates(Format::Vht, Mhz160, LONG)[9], 780_000);
        // 802.11ax Tables 27-79, 27-95, 27-103 and 27-111.
        let expected = [
            8_602, 17_205, 25_808, 34_411, 51_617, 68_823, 77_426, 86_029, 103_235, 114_705,
            129_044, 143_382,
        ];
        assert_eq!(rates(Format::He, Mhz20, LONG), expected);
        assert_eq!(rates(Format::He, Mhz40, 1600)[11], 270_833);
        assert_eq!(rates(Format::He, Mhz80, 3200)[11], 510_375);
        assert_eq!(rates(Format::He, Mhz160, LONG)[11], 1_200_955);
    }

    #[test]
    fn vht_lacks_the_modes_whose_bits_do_not_come_out_even() {
        use Width::{Mhz20, Mhz40, Mhz80, Mhz160};
        let mut lacks = Vec::new();
        for width in [Mhz20, Mhz40, Mhz80, Mhz160] {
            for streams in 1..=4 {
                for index in 0..=9 {
                    if !CodingScheme::new(index).is_in(Format::Vht, width, streams) {
                        lacks.push((width, streams, index));
                    }
                }
            }
        }
        // Tables 21-30 to 21-61, up to four streams.
        let expected = [(Mhz20, 1, 9), (Mhz20, 2, 9), (Mhz20, 4, 9), (Mhz80, 3, 6), (Mhz160, 3, 9)];
        assert_eq!(lacks, expected);
    }

    #[test]
    fn responses_have_the_highest_basic_rate_that_is_not_above_the_data() {
        let control = |scheme: CodingScheme| scheme.control_rate().bits_per_sec() / 1_000_000;
        let legacy = [6, 9, 12, 18, 24, 36, 48, 54];
        let legacy = legacy.map(|rate| control(CodingScheme::of_rate(DataRate::mbps(rate))));
        assert_eq!(legacy, [6, 6, 12, 12, 24, 24, 24, 24]);
        let mcs = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        let mcs = mcs.map(|mcs| control(CodingScheme::new(mcs)));
        assert_eq!(mcs, [6, 12, 12, 24, 24, 24, 24, 24, 24, 24, 24, 24]);
    }

    #[test]
    fn more_streams_need_longer_preambles() {
        let preamble = |format: Format, streams| {
            format.preamble(Duration::from_nanos(LONG), streams).as_nanos()
        };
        // Training fields for one to four streams: 1, 2, 4, 4.
        assert_eq!([1, 2, 3, 4].map(|n| preamble(Format::Ht, n)), [36_000, 40_000, 48_000, 48_000]);
        assert_eq!(
            [1, 2, 3, 4].map(|n| preamble(Format::Vht, n)),
            [40_000, 44_000, 52_000, 52_000]
        );
        assert_eq!([1, 2, 3, 4].map(|n| preamble(Format::He, n)), [43_200, 50_400, 64_800, 64_800]);
    }
}
