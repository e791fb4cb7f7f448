//! Real endpoints, random trouble: see the list at the top of this test.

use crate::broken::{AcknowledgesEarly, AcknowledgesFin, Misplaces, WaitsForUp};
use crate::case::{Case, case};
use crate::subjects::{Limits, Plain, Promise, simple};
use crate::world::run;
use airtcp_edge::Middlebox;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn check<M: Middlebox<Vec<u8>> + Clone>(
    case: &Case,
    node: impl Fn(Limits) -> M,
    promise: Promise,
) -> Result<(), TestCaseError> {
    run(case, node(case.limits), promise).map(drop).map_err(TestCaseError::fail)
}

proptest! {
    #![proptest_config(Config::with_cases(2000))]

    #[test]
    fn plain(case in case()) {
        let o = run(&case, simple::<Plain>(case.limits), Promise::EndToEnd).map_err(TestCaseError::fail)?;
        if o.last_read > airtcp_core::Instant::from_secs(110) { eprintln!("LAST {} {}", o.last_read, o.trace.len()); }
    }
}

/// Among many cases there is one that `node` fails, for the reason named.
#[track_caller]
fn assert_found<M: Middlebox<Vec<u8>> + Clone>(
    node: impl Fn(Limits) -> M,
    promise: Promise,
    reason: &str,
) {
    let config = Config {
        cases: 2_000,
        failure_persistence: None,
        max_shrink_iters: 0,
        ..Config::default()
    };
    let found =
        TestRunner::new(config).run(&case(), |case| match run(&case, node(case.limits), promise) {
            Err(violation) if violation.contains(reason) => Err(TestCaseError::fail(violation)),
            _ => Ok(()),
        });
    assert!(found.is_err(), "the mistake was not found");
}

#[test]
fn a_mechanism_that_acknowledges_and_forgets_is_found() {
    let node = simple::<AcknowledgesEarly>;
    assert_found(node, Promise::EndToEnd, "the mobile only");
    assert_found(node, Promise::Custody, "cannot deliver what it acknowledged");
}

#[test]
fn a_mechanism_that_acknowledges_the_fin_is_found() {
    assert_found(simple::<AcknowledgesFin>, Promise::Custody, "the FIN for the mobile");
}

#[test]
fn a_mechanism_that_replays_the_wrong_bytes_is_found() {
    assert_found(simple::<Misplaces<Vec<u8>>>, Promise::Custody, "a wrong byte");
}

#[test]
fn a_mechanism_that_relies_on_a_signal_is_found() {
    assert_found(simple::<WaitsForUp>, Promise::EndToEnd, "not done");
}
