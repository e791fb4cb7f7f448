//! Named sets of choices: the standard's, and those of the simulators the papers used.

use crate::config::QueueLimit;
use crate::wifi::config::{
    Attempts, BackoffDraw, ChannelConfig, CtsRule, EifsRule, FirstAccess, FrameErrors, MacConfig,
    PhyConfig, Power, Preamble, Propagation, RadioConfig, Reception, ResponseTimeout,
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
    let config = ChannelConfig::read(from, Some(&preset.config()))?;
    if let Err(error) = config.check() {
        let key = if from.written(error.key()) { error.key() } else { PRESET };
        refuse(key, error.to_string());
        return None;
    }
    Some(config)
}

impl Preset {
    /// All presets, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Ieee, Self::Ns2, Self::Glomosim, Self::Opnet];

    /// The channel configuration of the preset.
    pub fn config(self) -> ChannelConfig {
        match self {
            Self::Ieee => ieee(),
            Self::Ns2 => ns2(),
            Self::Glomosim => glomosim(),
            Self::Opnet => opnet(),
        }
    }
}

/// 802.11b as in the standard: 11 Mbit/s, control frames at 2 and broadcasts at 1 Mbit/s, long
/// preamble, RTS never, cumulative SINR. Range 250 m, carrier sense 550 m, like the classic radio
/// of [`ns2`].
pub fn ieee() -> ChannelConfig {
    ChannelConfig {
        phy: PhyConfig {
            preamble: Preamble::Long,
            data_rate: DataRate::mbps(11),
            control_rate: DataRate::mbps(2),
            broadcast_rate: DataRate::mbps(1),
            slot: Duration::from_micros(20),
            sifs: Duration::from_micros(10),
            difs: Duration::from_micros(50),
            whole_microseconds: true,
        },
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

/// ns-2.35 as the papers use it: 2 Mbit/s data, 1 Mbit/s control and broadcast, RTS always. (By
/// default ns-2 sends data at 1 Mbit/s, too.)
pub fn ns2() -> ChannelConfig {
    let ChannelConfig { phy, mac, radio } = ieee();
    ChannelConfig {
        phy: PhyConfig {
            data_rate: DataRate::mbps(2),
            control_rate: DataRate::mbps(1),
            whole_microseconds: false,
            ..phy
        },
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
    let ChannelConfig { phy, mac, radio } = ieee();
    let rate = DataRate::mbps(2);
    ChannelConfig {
        phy: PhyConfig {
            data_rate: rate,
            control_rate: rate,
            broadcast_rate: rate,
            whole_microseconds: false,
            ..phy
        },
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
