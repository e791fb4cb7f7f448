//! A forger, a crash and reordering in one run, of every mechanism: the cases of a property test,
//! and those that the fuzz target `safety` makes of bytes.

use crate::case::{Case, HOSTILE_UNTIL, case_with_forger, forgery, in_order};
use crate::observer::Violation;
use crate::subjects::{
    Plain, Promise, holdover, m_tcp, m_tcp_all, m_tcp_by_signal, m_tcp_plus, m_tcp_plus_in_time,
    simple, snoop, wake,
};
use crate::world::{Outcome, run};
use airtcp_core::{Instant, LinkSignal};
use airtcp_edge::Resume;
use airtcp_tcp::config::SpuriousDetection;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

type Check = fn(&Case) -> Result<Outcome, Violation>;

/// The plain forwarder, and every mechanism in every way that it resumes and acknowledges.
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

/// The first byte chooses the mechanism, the next eight the hosts, the paths and what is sent; the
/// rest is a schedule, six bytes for each outage, signal, crash or forgery.
///
/// # Panics
/// If the mechanism does what it must not do.
pub(crate) fn check(input: &[u8]) {
    let Some((&which, rest)) = input.split_first() else { return };
    let Some((seed, schedule)) = rest.split_first_chunk() else { return };
    let mut case = sample(&case_with_forger(), u64::from_le_bytes(*seed));
    let (mut outages, mut signals, mut forgeries) = (Vec::new(), Vec::new(), Vec::new());
    for entry in schedule.as_chunks().0 {
        let &[what, kind, a, b, x, y] = entry;
        let [at, x] = [[a, b], [x, y]].map(u16::from_le_bytes).map(u64::from);
        let (within, instant) =
            (at % HOSTILE_UNTIL.since_start().as_millis(), Instant::from_millis(at));
        match what % 8 {
            0 => outages.push((at % 8_000, x % 10_000 + 1)),
            1 => case.crash = Some(Instant::from_millis(within / 2)),
            2..=4 => signals.push((instant, SIGNALS[usize::from(kind) % SIGNALS.len()])),
            _ => {
                let forged = sample(&forgery(), x << 8 | u64::from(kind));
                forgeries.push((Instant::from_millis(within / 2), forged));
            }
        }
    }
    if !schedule.is_empty() {
        case.outages = in_order(outages.into_iter().take(3));
        let ends = |&(from, to): &_| [(from, LinkSignal::Down), (to, LinkSignal::Up)];
        case.mobile_signals = case.outages.iter().flat_map(ends).collect();
        (case.signals, case.forgeries) = (signals, forgeries);
    }
    let which = usize::from(which) % CHECKS.len();
    if let Err(violation) = CHECKS[which](&case) {
        panic!("check {which}: {violation}\n{case:#?}");
    }
}

const SIGNALS: [LinkSignal; 3] = [LinkSignal::Fading, LinkSignal::Down, LinkSignal::Up];

/// The strategy's value for this seed.
fn sample<S: Strategy>(strategy: &S, seed: u64) -> S::Value {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    strategy.new_tree(&mut runner).expect("nothing is refused").current()
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
