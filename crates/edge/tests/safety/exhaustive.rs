//! Every mechanism through the [model](crate::model).

use crate::broken::{AcknowledgesEarly, AcknowledgesFin, WaitsForUp};
use crate::model::{Persist, Setup, explore};
use crate::observer::Violation;
use crate::subjects::{Plain, Promise};
use airtcp_edge::{
    Connection, HoldoverConfig, MTcpConfig, MTcpPlusConfig, Resume, SnoopConfig, holdover, m_tcp,
    m_tcp_plus, snoop,
};
use std::fmt::Debug;
use std::hash::Hash;

const SETUP: Setup = Setup {
    promise: Promise::EndToEnd,
    persist: Persist::Retransmits,
    channels: [1, 1, 1, 1],
    signals: [0, 1, 1],
    memory: u64::MAX,
    limit: 3_000_000,
};

/// Explores under both persist rules.
fn check<C>(config: &C::Config, setup: Setup) -> Result<(), Violation>
where
    C: Connection<Vec<u8>> + Clone + Debug + Eq + Hash,
{
    for persist in [Persist::Retransmits, Persist::Probes] {
        let at = std::time::Instant::now();
        let explored = explore::<C>(config, &Setup { persist, ..setup })?;
        eprintln!(
            "{persist:?}: {} states, {} steps {:?}",
            explored.states,
            explored.steps,
            at.elapsed()
        );
    }
    Ok(())
}

#[test]
fn plain() {
    check::<Plain>(&(), Setup { signals: [0, 0, 0], ..SETUP }).unwrap();
}

#[test]
fn m_tcp_is_safe() {
    check::<m_tcp::State<Vec<u8>>>(&MTcpConfig::default(), Setup { signals: [0; 3], ..SETUP })
        .unwrap();
}

#[test]
fn m_tcp_plus_is_safe() {
    let setup = Setup { promise: Promise::Custody, ..SETUP };
    check::<m_tcp_plus::State<Vec<u8>>>(&MTcpPlusConfig::default(), setup).unwrap();
}

#[test]
fn m_tcp_plus_that_waits_for_a_probe_is_safe() {
    let setup = Setup { promise: Promise::Custody, ..SETUP };
    let config = MTcpPlusConfig { resume: Resume::Probe, ..MTcpPlusConfig::default() };
    check::<m_tcp_plus::State<Vec<u8>>>(&config, setup).unwrap();
}

#[test]
fn holdover_is_safe() {
    check::<holdover::State<Vec<u8>>>(&HoldoverConfig::default(), SETUP).unwrap();
}

#[test]
fn snoop_is_safe() {
    check::<snoop::State<Vec<u8>>>(&SnoopConfig::default(), Setup { signals: [0; 3], ..SETUP })
        .unwrap();
}

#[track_caller]
fn assert_found(result: Result<(), Violation>, reason: &str) {
    let violation = result.expect_err("the mistake must be found");
    assert!(violation.contains(reason), "found instead: {violation}");
}

#[test]
fn a_mechanism_that_acknowledges_and_forgets_is_found() {
    assert_found(check::<AcknowledgesEarly>(&(), SETUP), "for the mobile");
    let setup = Setup { promise: Promise::Custody, ..SETUP };
    assert_found(check::<AcknowledgesEarly>(&(), setup), "cannot deliver");
}

#[test]
fn a_mechanism_that_acknowledges_the_fin_is_found() {
    let setup = Setup { promise: Promise::Custody, ..SETUP };
    assert_found(check::<AcknowledgesFin>(&(), setup), "for the mobile");
}

#[test]
fn a_mechanism_that_relies_on_a_signal_is_found() {
    assert_found(check::<WaitsForUp>(&(), Setup { signals: [0, 1, 1], ..SETUP }), "dead end");
}
