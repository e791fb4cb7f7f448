//! Every mechanism through the [model](crate::model).

use crate::broken::{AcknowledgesEarly, AcknowledgesFin, Gullible, Misplaces, WaitsForUp};
use crate::model::{Persist, Setup, explore};
use crate::subjects::{Plain, Promise};
use airtcp_core::{Bytes, Duration};
use airtcp_edge::{
    Connection, Detect, HoldoverConfig, HoldoverState, MTcpConfig, MTcpPlusConfig, MTcpPlusState,
    MTcpState, Resume, SnoopConfig, SnoopState,
};
use std::fmt::Debug;
use std::hash::Hash;

/// Slow wired path under [`Persist::Retransmits`], then slow wireless path under
/// [`Persist::Probes`].
const WIRED: Setup = Setup {
    promise: Promise::EndToEnd,
    persist: Persist::Retransmits,
    channels: [1, 1, 0, 0],
    signals: [0, 1, 1],
    forged: 0,
    memory: u64::MAX,
    limit: 12_000_000,
};
const WIRELESS: Setup = Setup { persist: Persist::Probes, channels: [0, 0, 1, 1], ..WIRED };

/// Segments overtake each other on the way to the node, and on the way to the mobile.
const WIRED_REORDERS: Setup = Setup { channels: [2, 1, 0, 0], ..WIRED };
const WIRELESS_REORDERS: Setup = Setup { channels: [0, 0, 1, 2], ..WIRELESS };

/// The same without signals, for mechanisms that ignore them.
const fn without_signals(setup: Setup) -> Setup {
    Setup { signals: [0; 3], ..setup }
}

const fn with_custody(setup: Setup) -> Setup {
    Setup { promise: Promise::Custody, ..setup }
}

const fn with_forger(setup: Setup) -> Setup {
    Setup { forged: 1, ..setup }
}

/// What a variant of a mechanism goes through, which differs from the mechanism in one place: one
/// slow direction, and with `AIRTCP_LONG` both of each path.
fn variant_setups() -> [Setup; 2] {
    if std::env::var_os("AIRTCP_LONG").is_some() {
        [WIRED, WIRELESS]
    } else {
        [Setup { forged: 0, ..FROM_FIXED }, Setup { forged: 0, ..TO_MOBILE }]
    }
}

/// One direction at a time is slow.
const FROM_FIXED: Setup = with_forger(Setup { channels: [1, 0, 0, 0], ..WIRED });
const FROM_MOBILE: Setup = with_forger(Setup { channels: [0, 0, 1, 0], ..WIRELESS });
const TO_MOBILE: Setup = with_forger(Setup { channels: [0, 0, 0, 1], ..WIRELESS });

/// Segments arrive at once or are lost, and several forgeries work together.
const FORGERS: Setup = Setup { channels: [0; 4], forged: 3, ..WIRED };

#[track_caller]
fn assert_safe<C>(config: &C::Config, setup: Setup)
where
    C: Connection<Vec<u8>> + Clone + Debug + Eq + Hash,
{
    match explore::<C>(config, &setup) {
        Ok(explored) => println!("{:?} {:?}: {explored:?}", setup.channels, setup.persist),
        Err(violation) => panic!("{setup:?}: {violation}"),
    }
}

#[test]
fn plain_forwarding_is_safe() {
    assert_safe::<Plain>(&(), without_signals(WIRED_REORDERS));
    assert_safe::<Plain>(&(), without_signals(WIRELESS_REORDERS));
}

#[test]
fn m_tcp_is_safe_over_a_slow_wired_path() {
    assert_safe::<MTcpState<_>>(&MTcpConfig::default(), without_signals(WIRED));
}

#[test]
fn m_tcp_is_safe_over_a_slow_wireless_path() {
    assert_safe::<MTcpState<_>>(&MTcpConfig::default(), without_signals(WIRELESS));
}

#[test]
fn m_tcp_that_listens_to_signals_is_safe() {
    let config = MTcpConfig { detect: Detect::Signal, ..MTcpConfig::default() };
    assert_safe::<MTcpState<_>>(&config, WIRED);
    assert_safe::<MTcpState<_>>(&config, WIRELESS);
}

#[test]
fn m_tcp_plus_is_safe_over_a_slow_wired_path() {
    let config = MTcpPlusConfig::default();
    assert_safe::<MTcpPlusState<_>>(&config, with_custody(WIRED_REORDERS));
}

#[test]
fn m_tcp_plus_is_safe_over_a_slow_wireless_path() {
    let config = MTcpPlusConfig::default();
    assert_safe::<MTcpPlusState<_>>(&config, with_custody(WIRELESS));
}

#[test]
fn m_tcp_plus_that_waits_for_a_probe_is_safe() {
    let config = MTcpPlusConfig { resume: Resume::Probe, ..MTcpPlusConfig::default() };
    for setup in variant_setups() {
        assert_safe::<MTcpPlusState<_>>(&config, with_custody(setup));
    }
}

#[test]
fn m_tcp_plus_with_a_small_fifo_is_safe() {
    let config = MTcpPlusConfig { fifo: Bytes(2), ..MTcpPlusConfig::default() };
    for setup in variant_setups() {
        assert_safe::<MTcpPlusState<_>>(&config, with_custody(setup));
    }
}

#[test]
fn holdover_is_safe_over_a_slow_wired_path() {
    assert_safe::<HoldoverState<_>>(&HoldoverConfig::default(), WIRED);
}

#[test]
fn holdover_is_safe_over_a_slow_wireless_path() {
    assert_safe::<HoldoverState<_>>(&HoldoverConfig::default(), WIRELESS);
}

/// The interval has no influence: the clock stands still.
const PROBE_INTERVAL: Option<Duration> = Some(Duration::from_millis(500));

#[test]
fn m_tcp_plus_that_asks_is_safe() {
    let config = MTcpPlusConfig { probe_interval: PROBE_INTERVAL, ..MTcpPlusConfig::default() };
    for setup in variant_setups() {
        assert_safe::<MTcpPlusState<_>>(&config, with_custody(setup));
    }
}

#[test]
fn holdover_that_asks_is_safe() {
    let config = HoldoverConfig { probe_interval: PROBE_INTERVAL, ..HoldoverConfig::default() };
    for setup in variant_setups() {
        assert_safe::<HoldoverState<_>>(&config, setup);
    }
}

#[test]
fn snoop_is_safe() {
    assert_safe::<SnoopState<_>>(&SnoopConfig::default(), without_signals(WIRED_REORDERS));
    assert_safe::<SnoopState<_>>(&SnoopConfig::default(), without_signals(WIRELESS));
}

#[test]
fn no_forger_makes_m_tcp_plus_break_a_promise() {
    let config = MTcpPlusConfig::default();
    assert_safe::<MTcpPlusState<_>>(&config, with_forger(with_custody(WIRED)));
    // With both directions slow it has more states than there is room for.
    assert_safe::<MTcpPlusState<_>>(&config, with_custody(FROM_MOBILE));
    assert_safe::<MTcpPlusState<_>>(&config, with_custody(TO_MOBILE));
    assert_safe::<MTcpPlusState<_>>(&config, with_custody(FORGERS));
}

#[test]
fn no_forger_leads_holdover_to_a_dead_end() {
    let config = HoldoverConfig::default();
    assert_safe::<HoldoverState<_>>(&config, FROM_FIXED);
    assert_safe::<HoldoverState<_>>(&config, TO_MOBILE);
    assert_safe::<HoldoverState<_>>(&config, FORGERS);
}

#[test]
fn no_forger_leads_m_tcp_to_a_dead_end() {
    let config = MTcpConfig::default();
    assert_safe::<MTcpState<_>>(&config, without_signals(FROM_FIXED));
    assert_safe::<MTcpState<_>>(&config, without_signals(TO_MOBILE));
    // With three it has more states than there is room for.
    assert_safe::<MTcpState<_>>(&config, without_signals(Setup { forged: 2, ..FORGERS }));
}

#[test]
fn no_forger_leads_snoop_to_a_dead_end() {
    let config = SnoopConfig::default();
    assert_safe::<SnoopState<_>>(&config, without_signals(FROM_FIXED));
    assert_safe::<SnoopState<_>>(&config, without_signals(TO_MOBILE));
    assert_safe::<SnoopState<_>>(&config, without_signals(FORGERS));
}

#[track_caller]
fn assert_found<C>(setup: Setup, reason: &str)
where
    C: Connection<Vec<u8>, Config = ()> + Clone + Debug + Eq + Hash,
{
    let violation = explore::<C>(&(), &setup).expect_err("the mistake must be found");
    assert!(violation.contains(reason), "found instead: {violation}");
}

#[test]
fn a_mechanism_that_acknowledges_and_forgets_is_found() {
    assert_found::<AcknowledgesEarly>(WIRED, "for the mobile");
    assert_found::<AcknowledgesEarly>(with_custody(WIRELESS), "cannot deliver");
}

#[test]
fn a_mechanism_that_acknowledges_the_fin_is_found() {
    assert_found::<AcknowledgesFin>(with_custody(WIRED), "for the mobile");
}

#[test]
fn a_mechanism_that_replays_the_wrong_bytes_is_found() {
    assert_found::<Misplaces<_>>(with_custody(WIRED), "the wrong bytes");
}

#[test]
fn a_mechanism_that_relies_on_a_signal_is_found() {
    assert_found::<WaitsForUp>(WIRED, "dead end");
}

#[test]
fn a_mechanism_that_accepts_forgeries_is_found() {
    assert_found::<Gullible<_>>(with_forger(with_custody(WIRED)), "cannot deliver");
}
