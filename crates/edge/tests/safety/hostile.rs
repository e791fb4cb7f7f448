//! A forger, a crash and reordering in one run, of every mechanism: the cases of a property test,
//! and those that the fuzz target `safety` makes of bytes.

use crate::case::{Case, case_with_forger};
use crate::observer::Violation;
use crate::subjects::{
    Plain, Promise, holdover, m_tcp, m_tcp_all, m_tcp_by_signal, m_tcp_plus, m_tcp_plus_in_time,
    simple, snoop, wake,
};
use crate::world::{Outcome, run};
use airtcp_edge::Resume;
use airtcp_tcp::config::SpuriousDetection;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

type Check = fn(&Case) -> Result<Outcome, Violation>;

/// Every mechanism in every way that it resumes and acknowledges.
pub(crate) const CHECKS: [Check; 11] = [
    |case| run(case, simple::<Plain>(case.limits), Promise::EndToEnd),
    |case| run(&without_f_rto(case), m_tcp(case.limits), Promise::EndToEnd),
    |case| run(&without_f_rto(case), m_tcp_all(case.limits), Promise::EndToEnd),
    |case| run(&without_f_rto(case), m_tcp_by_signal(case.limits), Promise::EndToEnd),
    |case| run(case, snoop(case.limits), Promise::EndToEnd),
    |case| run(case, holdover(case.limits), Promise::EndToEnd),
    |case| run(case, wake(case.limits), Promise::Repeats),
    |case| run(case, m_tcp_plus(case.limits, Resume::Flush), Promise::Custody),
    |case| run(case, m_tcp_plus(case.limits, Resume::Probe), Promise::Custody),
    |case| run(case, m_tcp_plus_in_time(case.limits, Resume::Flush), Promise::Custody),
    |case| run(case, m_tcp_plus_in_time(case.limits, Resume::Probe), Promise::Custody),
];

/// The first byte chooses the mechanism; the others are the randomness that makes the case.
///
/// # Panics
/// If the mechanism does what it must not do.
pub(crate) fn check(input: &[u8]) {
    let Some((&which, random)) = input.split_first() else { return };
    let which = usize::from(which) % CHECKS.len();
    let rng = TestRng::from_seed(RngAlgorithm::PassThrough, random);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let case = case_with_forger().new_tree(&mut runner).expect("no case is refused").current();
    if let Err(violation) = CHECKS[which](&case) {
        panic!("check {which}: {violation}\n{case:#?}");
    }
}

/// M-TCP acknowledges in two steps, all but a byte and then that byte. F-RTO (RFC 5682 §2.1) takes
/// the second for the proof that a time-out was spurious, and does not retransmit what else was
/// lost until the next one: the transfer goes on, but not within [`BOUND`](crate::world::BOUND).
pub(crate) fn without_f_rto(case: &Case) -> Case {
    let mut case = case.clone();
    let detection = &mut case.configs[0].spurious;
    if *detection == SpuriousDetection::FRto {
        *detection = SpuriousDetection::None;
    }
    case
}
