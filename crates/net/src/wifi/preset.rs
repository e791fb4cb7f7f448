//! Named sets of choices: the standard's, and those of the simulators the papers used.

use crate::config::QueueLimit;
use crate::wifi::config::{
    Attempts, BackoffDraw, ChannelConfig, CtsRule, EifsRule, FirstAccess, FrameErrors, MacConfig,
    Power, Propagation, RadioConfig, Reception, ResponseTimeout,
};
use crate::wifi::ofdm::{Format, Width};
use crate::wifi::standard::{
    Band, DsssConfig, MimoConfig, OfdmConfig, PhyConfig, Preamble, RateControl,
};
use airtcp_core::{Bytes, DataRate, Duration};
use airtcp_settings::schema::Fallback::Is;
use airtcp_settings::schema::{AS_PRESET, Key, Kind, PRESET, field};
use airtcp_settings::{Reader, Settings, choice};

choice! {
    /// A named set of choices.
    pub enum Preset {
        /// 802.11b as in the standard, 11 Mbit/s
        Ieee = "ieee",
        /// ns-2.35 at 2 Mbit/s, RTS always
        Ns2 = "ns2",
        /// GloMoSim 2.03 at 2 Mbit/s, RTS always
        Glomosim = "glomosim",
        /// the standard, with what is known of OPNET's node models
        Opnet = "opnet",
        /// 802.11a, 54 Mbit/s
        Ieee80211a = "ieee80211a",
        /// 802.11g without stations of 802.11b, 54 Mbit/s
        Ieee80211g = "ieee80211g",
        /// 802.11n: 20 MHz at 5 GHz, one stream, MCS 7, A-MPDU
        Ieee80211n = "ieee80211n",
        /// 802.11ac: 80 MHz, one stream, MCS 9, A-MPDU
        Ieee80211ac = "ieee80211ac",
        /// 802.11ax: 80 MHz at 5 GHz, one stream, MCS 11, A-MPDU
        Ieee80211ax = "ieee80211ax",
    }
}

/// The keys of a channel: a preset, and those that override its values.
pub const KEYS: &[Key] = &[
    Key::Fields(&[field(
        PRESET,
        Kind::Choice(Preset::WORDS),
        Is("ieee"),
        "Values of the keys that are not set.",
    )]),
    Key::Otherwise(AS_PRESET, ChannelConfig::KEYS),
];

/// Reads [`KEYS`] and checks the result; `refuse` hears which key makes it impossible, and why.
pub fn read<R: Reader>(
    from: &R,
    refuse: impl FnOnce(&'static str, String),
) -> Option<ChannelConfig> {
    let preset = from.get::<Preset>(PRESET)?;
    from.chosen(PRESET, preset.word());
    let config = ChannelConfig::read(from, Some(&preset.config()))?;
    if let Err(error) = config.check() {
        let key = if from.written(error.key()) { error.key() } else { PRESET };
        refuse(key, error.to_string());
        return None;
    }
    if let Some((key, why)) = idle(&config, &preset.config()) {
        refuse(key, format!("has no effect {why}"));
        return None;
    }
    Some(config)
}

/// A key that has no effect on this channel, and has another value than the preset's; and why.
fn idle(config: &ChannelConfig, preset: &ChannelConfig) -> Option<(&'static str, &'static str)> {
    let (PhyConfig::Mimo(_, mimo), PhyConfig::Mimo(_, usual)) = (&config.phy, &preset.phy) else {
        return None;
    };
    let (ampdus, amsdus) = (config.phy.makes_ampdus(), config.phy.makes_amsdus());
    if !ampdus && mimo.block_ack_window != usual.block_ack_window {
        return Some(("block-ack-window", "with ampdu-limit = \"0 B\""));
    }
    if mimo.access_categories.is_some() {
        let (mac, other) = (&config.mac, &preset.mac);
        let own = "with access-categories: each has its own";
        let at_boundaries = "with access-categories, which act at slot boundaries";
        let changed = [
            ("aifsn", mimo.aifsn != usual.aifsn, own),
            ("txop-limit", mimo.txop_limit != usual.txop_limit, own),
            ("cw-min", mac.cw_min != other.cw_min, own),
            ("cw-max", mac.cw_max != other.cw_max, own),
            ("first-access", mac.first_access != other.first_access, at_boundaries),
            (
                "repeat-interrupted-slot",
                mac.repeat_interrupted_slot != other.repeat_interrupted_slot,
                at_boundaries,
            ),
        ];
        if let Some((key, _, why)) = changed.into_iter().find(|(_, changed, _)| *changed) {
            return Some((key, why));
        }
    }
    if (ampdus || amsdus) && config.mac.long_retry_limit != preset.mac.long_retry_limit {
        let why =
            "on frames that packets share: short-retry-limit is theirs, whatever their length";
        return Some(("long-retry-limit", why));
    }
    None
}

impl Preset {
    /// All presets, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::Ieee,
        Self::Ns2,
        Self::Glomosim,
        Self::Opnet,
        Self::Ieee80211a,
        Self::Ieee80211g,
        Self::Ieee80211n,
        Self::Ieee80211ac,
        Self::Ieee80211ax,
    ];

    /// The channel configuration of the preset.
    pub fn config(self) -> ChannelConfig {
        match self {
            Self::Ieee => ieee(),
            Self::Ns2 => ns2(),
            Self::Glomosim => glomosim(),
            Self::Opnet => opnet(),
            Self::Ieee80211a => ieee80211a(),
            Self::Ieee80211g => ieee80211g(),
            Self::Ieee80211n => ieee80211n(),
            Self::Ieee80211ac => ieee80211ac(),
            Self::Ieee80211ax => ieee80211ax(),
        }
    }
}

/// 802.11b as in the standard: 11 Mbit/s, control frames at 2 and broadcasts at 1 Mbit/s, long
/// preamble, RTS never, cumulative SINR. Range 250 m, carrier sense 550 m, like the classic radio
/// of [`ns2`].
pub fn ieee() -> ChannelConfig {
    ChannelConfig {
        phy: PhyConfig::Dsss(dsss()),
        mac: MacConfig {
            header: Bytes(28),
            llc: Bytes(8),
            rts_threshold: Bytes(2347),
            cw_min: 31,
            cw_max: 1023,
            backoff_draw: BackoffDraw::Inclusive,
            repeat_interrupted_slot: true,
            short_retry_limit: 7,
            long_retry_limit: 4,
            attempts: Attempts::Limit,
            first_access: FirstAccess::Immediate,
            post_backoff: true,
            eifs: EifsRule::Interval,
            eifs_ack_rate: DataRate::mbps(1),
            response_timeout: ResponseTimeout::ReceptionStart,
            difs_after_timeout: false,
            cts: CtsRule::NavIdle,
            wait_for_data: false,
            sense_before_data: false,
            nav_from_data: true,
            nav_reset: true,
            next_before_report: false,
            queue: QueueLimit::Packets(50),
            queue_discipline: None,
        },
        radio: RadioConfig {
            tx_power: Power::from_watts(0.281_838_15),
            propagation: Propagation::TwoRayGround { frequency: 914e6, height: 1.5 },
            rx_threshold: Power::from_watts(3.652e-10),
            cs_threshold: Power::from_watts(1.559e-11),
            reception: Reception::CumulativeSinr {
                noise: Power::from_dbm(-101.0),
                min_sinr: 10.0,
                interference_floor: Power::from_dbm(-111.0),
                frame_errors: FrameErrors::Threshold,
            },
            bit_error_rate: 0.0,
        },
    }
}

/// The standard's timing at 11 Mbit/s.
fn dsss() -> DsssConfig {
    DsssConfig {
        preamble: Preamble::Long,
        data_rate: DataRate::mbps(11),
        control_rate: DataRate::mbps(2),
        broadcast_rate: DataRate::mbps(1),
        slot: Duration::from_micros(20),
        sifs: Duration::from_micros(10),
        difs: Duration::from_micros(50),
        whole_microseconds: true,
    }
}

/// ns-2.35 as the papers use it: 2 Mbit/s data, 1 Mbit/s control and broadcast, RTS always. (By
/// default ns-2 sends data at 1 Mbit/s, too.)
pub fn ns2() -> ChannelConfig {
    let ChannelConfig { mac, radio, .. } = ieee();
    ChannelConfig {
        phy: PhyConfig::Dsss(DsssConfig {
            data_rate: DataRate::mbps(2),
            control_rate: DataRate::mbps(1),
            whole_microseconds: false,
            ..dsss()
        }),
        mac: MacConfig {
            header: Bytes(34),
            llc: Bytes::ZERO,
            rts_threshold: Bytes::ZERO,
            backoff_draw: BackoffDraw::Exclusive,
            first_access: FirstAccess::Backoff,
            eifs: EifsRule::Nav,
            response_timeout: ResponseTimeout::WholeFrame { margin: Duration::from_micros(4) },
            difs_after_timeout: true,
            cts: CtsRule::MediumIdle,
            wait_for_data: true,
            sense_before_data: true,
            nav_reset: false,
            next_before_report: true,
            ..mac
        },
        radio: RadioConfig {
            reception: Reception::FirstLock { capture_ratio: 10.0, ignored_frame_sets_nav: true },
            ..radio
        },
    }
}

/// GloMoSim 2.03: 2 Mbit/s for everything, RTS always, 100 packets of queue, its default radio (15
/// dBm at 2.4 GHz, receive threshold -81 dBm, sensitivity -91 dBm, SNR threshold 10, noise of 2 MHz
/// at 290 K with a noise figure of 10).
pub fn glomosim() -> ChannelConfig {
    let ChannelConfig { mac, radio, .. } = ieee();
    let rate = DataRate::mbps(2);
    ChannelConfig {
        phy: PhyConfig::Dsss(DsssConfig {
            data_rate: rate,
            control_rate: rate,
            broadcast_rate: rate,
            whole_microseconds: false,
            ..dsss()
        }),
        mac: MacConfig {
            llc: Bytes::ZERO,
            rts_threshold: Bytes::ZERO,
            backoff_draw: BackoffDraw::Exclusive,
            repeat_interrupted_slot: false,
            attempts: Attempts::LimitPlusOne,
            first_access: FirstAccess::AfterDifs,
            post_backoff: false,
            eifs_ack_rate: rate,
            response_timeout: ResponseTimeout::WholeFrame { margin: Duration::from_micros(20) },
            difs_after_timeout: true,
            wait_for_data: true,
            nav_reset: false,
            queue: QueueLimit::Packets(100),
            ..mac
        },
        radio: RadioConfig {
            tx_power: Power::from_dbm(15.0),
            propagation: Propagation::TwoRayGround { frequency: 2.4e9, height: 1.5 },
            rx_threshold: Power::from_dbm(-81.0),
            cs_threshold: Power::from_dbm(-91.0),
            reception: Reception::CumulativeSinr {
                noise: Power::from_watts(8.004e-14),
                min_sinr: 10.0,
                interference_floor: Power::from_dbm(-111.0),
                frame_errors: FrameErrors::Threshold,
            },
            ..radio
        },
    }
}

/// The standard with what is known of OPNET's 802.11b node models: no LLC header, RTS above 256 B,
/// 256 000 bits of buffer. OPNET itself was not available; not validated against it.
pub fn opnet() -> ChannelConfig {
    let ieee = ieee();
    ChannelConfig {
        mac: MacConfig {
            llc: Bytes::ZERO,
            rts_threshold: Bytes(256),
            queue: QueueLimit::Bytes(Bytes(32_000)),
            ..ieee.mac
        },
        ..ieee
    }
}

/// 802.11a at 54 Mbit/s: the standard's rules with the times of OFDM, RTS never. The radio sends
/// 100 mW; noise is that of 20 MHz with a noise figure of 7 dB, and the thresholds are the least
/// sensitivity of the lowest rate (802.11-2020 Table 17-18).
pub fn ieee80211a() -> ChannelConfig {
    let ChannelConfig { mac, radio, .. } = ieee();
    ChannelConfig {
        phy: PhyConfig::Ofdm(OfdmConfig { data_rate: DataRate::mbps(54) }),
        mac: MacConfig {
            cw_min: 15,
            rts_threshold: Bytes(65_535),
            eifs_ack_rate: DataRate::mbps(6),
            difs_after_timeout: true,
            ..mac
        },
        radio: RadioConfig {
            tx_power: Power::from_dbm(20.0),
            propagation: Propagation::TwoRayGround { frequency: 5.18e9, height: 1.5 },
            rx_threshold: Power::from_dbm(-82.0),
            cs_threshold: Power::from_dbm(-82.0),
            reception: Reception::CumulativeSinr {
                noise: Power::from_dbm(-94.0),
                min_sinr: 2.51,
                interference_floor: Power::from_dbm(-104.0),
                frame_errors: FrameErrors::Ofdm,
            },
            ..radio
        },
    }
}

/// 802.11g without stations of 802.11b, at 54 Mbit/s: [`ieee80211a`] at 2.4 GHz, with short slots.
pub fn ieee80211g() -> ChannelConfig {
    let ChannelConfig { mac, radio, .. } = ieee80211a();
    ChannelConfig {
        phy: PhyConfig::Erp(OfdmConfig { data_rate: DataRate::mbps(54) }),
        mac,
        radio: RadioConfig {
            propagation: Propagation::TwoRayGround { frequency: 2.437e9, height: 1.5 },
            ..radio
        },
    }
}

/// 802.11n: 20 MHz at 5 GHz, one stream, MCS 7, long guard interval; best effort, A-MPDUs of up to
/// 65,535 B. MAC headers have a QoS field, and the queue is large enough to fill A-MPDUs.
pub fn ieee80211n() -> ChannelConfig {
    let ChannelConfig { mac, radio, .. } = ieee80211a();
    let phy = MimoConfig {
        band: Band::Ghz5,
        rate_control: RateControl::Fixed,
        width: Width::Mhz20,
        guard_interval: Duration::from_nanos(800),
        streams: 1,
        mcs: 7,
        aifsn: 3,
        txop_limit: Duration::ZERO,
        access_categories: None,
        ampdu_limit: Format::Ht.ampdu_limit(),
        amsdu_limit: Bytes::ZERO,
        block_ack_window: Format::Ht.block_ack_window(),
    };
    ChannelConfig {
        phy: PhyConfig::Mimo(Format::Ht, phy),
        mac: MacConfig { header: Bytes(30), queue: QueueLimit::Packets(500), ..mac },
        radio,
    }
}

/// 802.11ac: 80 MHz, one stream, MCS 9, long guard interval; the rest as [`ieee80211n`].
pub fn ieee80211ac() -> ChannelConfig {
    wide(Format::Vht, 9)
}

/// 802.11ax: 80 MHz at 5 GHz, one stream, MCS 11, the shortest guard interval; the rest as
/// [`ieee80211n`], with a block ACK window of 256.
pub fn ieee80211ax() -> ChannelConfig {
    wide(Format::He, 11)
}

/// [`ieee80211n`] in another format, over 80 MHz. Noise has the power of so much of the band.
fn wide(format: Format, mcs: u32) -> ChannelConfig {
    let ChannelConfig { phy, mac, mut radio } = ieee80211n();
    let PhyConfig::Mimo(_, phy) = phy else { unreachable!("802.11n is HT") };
    if let Reception::CumulativeSinr { noise, .. } = &mut radio.reception {
        *noise = Power::from_dbm(-88.0);
    }
    let phy = MimoConfig {
        width: Width::Mhz80,
        mcs,
        ampdu_limit: format.ampdu_limit(),
        block_ack_window: format.block_ack_window(),
        ..phy
    };
    ChannelConfig { phy: PhyConfig::Mimo(format, phy), mac, radio }
}
