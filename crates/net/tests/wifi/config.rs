//! Durations of the presets, and configurations that cannot work.

use crate::common::dsss;
use airtcp_core::{Bytes, DataRate, Duration, Stream};
use airtcp_net::wifi::{
    Channel, ChannelConfig, MimoConfig, PhyConfig, Position, Power, RateControl, Reception,
    StationConfig, StationId, StationStreams, Width, WifiError, preset, preset::Preset,
};

#[test]
fn frames_take_as_long_as_the_table_says() {
    // IEEE Std 802.11-1999 §7.2.1, §15.2: RTS, CTS, ACK at 1 Mbit/s, long preamble.
    let mut config = preset::ns2();
    let phy = dsss(&mut config);
    let at_1 = |bytes| phy.frame(DataRate::mbps(1), Bytes(bytes));
    assert_eq!(at_1(20), Duration::from_micros(352));
    assert_eq!(at_1(14), Duration::from_micros(304));
    assert_eq!(phy.difs, phy.sifs + phy.slot * 2);
    // EIFS: SIFS, an ACK at 1 Mbit/s, DIFS.
    assert_eq!(phy.sifs + at_1(14) + phy.difs, Duration::from_micros(364));
    // GloMoSim has one rate.
    let mut config = preset::glomosim();
    let phy = dsss(&mut config);
    assert_eq!(phy.frame(phy.control_rate, Bytes(20)), Duration::from_micros(272));
}

#[test]
fn every_preset_can_work() {
    for config in Preset::ALL.map(Preset::config) {
        assert_eq!(config.check(), Ok(()));
    }
}

/// The error message of the standard's configuration after this change.
fn refused(change: impl FnOnce(&mut ChannelConfig)) -> String {
    let mut config = preset::ieee();
    change(&mut config);
    config.check().unwrap_err().to_string()
}

#[test]
fn an_impossible_configuration_is_refused_with_the_reason() {
    assert_eq!(
        refused(|c| dsss(c).control_rate = DataRate::mbps(54)),
        "control-rate is 54 Mbit/s: 802.11b has 1, 2, 5.5 and 11 Mbit/s"
    );
    assert_eq!(
        refused(|c| c.mac.cw_min = 32),
        "cw-min is 32: a contention window is 2^k - 1 slots (31, 63, ... 1023)"
    );
    assert_eq!(refused(|c| c.mac.cw_max = 15), "cw-min is 31, above cw-max, 15");
    assert_eq!(
        refused(|c| dsss(c).sifs = dsss(c).difs),
        "sifs is 50 us, difs is 50 us: sifs must be shorter, or responses lose the medium"
    );
    assert_eq!(
        refused(|c| c.mac.long_retry_limit = 0),
        "long-retry-limit is 0: the first attempt counts, so at least 1"
    );
    assert_eq!(
        refused(|c| c.radio.rx_threshold = Power::from_watts(1.0)),
        "rx-threshold is 1e0 W, tx-power is 2.8183815e-1 W: no frame reaches the threshold at any distance"
    );
    assert_eq!(
        refused(|c| c.radio.cs_threshold = Power::from_watts(1e-9)),
        "cs-threshold is 1e-9 W, above rx-threshold, 3.652e-10 W: a station would receive frames it does not sense"
    );
    assert_eq!(
        refused(|c| c.radio.bit_error_rate = 1.0),
        "bit-error-rate is 1: expected a probability below 1"
    );
    let blind = Reception::FirstLock { capture_ratio: f64::NAN, ignored_frame_sets_nav: true };
    assert_eq!(
        refused(|c| c.radio.reception = blind),
        "capture-ratio is NaN: expected a ratio of at least 1"
    );
    assert_eq!(preset_without_slots(), Err(WifiError::Slot));
}

#[test]
fn minstrel_needs_no_mcs_and_has_no_amsdus() {
    let refused = |change: &dyn Fn(&mut MimoConfig)| {
        let mut config = preset::ieee80211ac();
        let PhyConfig::Mimo(_, mimo) = &mut config.phy else { panic!("one antenna") };
        change(mimo);
        config.check().map_err(|error| error.to_string())
    };
    // No MCS 9 on one stream over 20 MHz.
    assert!(refused(&|phy| phy.width = Width::Mhz20).is_err());
    let minstrel = |phy: &mut MimoConfig| phy.rate_control = RateControl::MinstrelHt;
    assert_eq!(refused(&|phy| (minstrel(phy), phy.width = Width::Mhz20).1), Ok(()));
    assert_eq!(
        refused(&|phy| (minstrel(phy), phy.amsdu_limit = Bytes(3895)).1).unwrap_err(),
        "amsdu-limit is 3895 B: expected \"0 B\" with rate-control = \"minstrel-ht\""
    );
}

fn preset_without_slots() -> Result<(), WifiError> {
    let mut config = preset::ns2();
    dsss(&mut config).slot = Duration::ZERO;
    config.check()
}

#[test]
fn a_station_knows_which_stations_it_reaches() {
    let at = |x| StationConfig { position: Position { x, y: 0.0 } };
    let stream = || Stream::new(1, "unused");
    let streams =
        || StationStreams { backoff: stream(), errors: stream(), queue: stream(), rates: stream() };
    let channel: Channel<()> = Channel::new(
        &preset::ns2(),
        &[at(0.0), at(250.0), at(251.0)],
        vec![streams(), streams(), streams()],
    );
    let (a, b, c) = (StationId(0), StationId(1), StationId(2));
    assert!(channel.reachable(a, b) && channel.reachable(b, c) && !channel.reachable(a, c));
}
