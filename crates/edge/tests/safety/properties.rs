//! Real endpoints, random trouble: see the list at the top of this test.

use crate::broken::{AcknowledgesEarly, AcknowledgesFin, Misplaces, WaitsForUp};
use crate::case::{Case, case, case_with_crash, case_with_forger};
use crate::corpus;
use crate::hostile::{self, CHECKS, without_f_rto};
use crate::subjects::{
    Limits, Plain, Promise, holdover, m_tcp, m_tcp_all, m_tcp_by_signal, m_tcp_plus,
    m_tcp_plus_in_time, simple, snoop, wake,
};
use crate::watched::{Check, Watched};
use crate::world::{Outcome, run};
use airtcp_core::{Segment, SeqNum};
use airtcp_edge::{InvalidPackets, MTcpPlus, Middlebox, Resume, Side};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn check<M: Middlebox<Vec<u8>> + Clone>(
    case: &Case,
    node: impl Fn(Limits) -> M,
    promise: Promise,
) -> Result<Outcome, TestCaseError> {
    run(case, node(case.limits), promise).map_err(TestCaseError::fail)
}

proptest! {
    #![proptest_config(Config::with_cases(1_500))]

    #[test]
    fn plain_forwarding(case in case()) {
        check(&case, simple::<Plain>, Promise::EndToEnd)?;
    }

    #[test]
    fn m_tcp_is_safe(case in case()) {
        check(&without_f_rto(&case), m_tcp, Promise::EndToEnd)?;
    }

    #[test]
    fn m_tcp_that_retransmits_all_is_safe(case in case()) {
        check(&without_f_rto(&case), m_tcp_all, Promise::EndToEnd)?;
    }

    #[test]
    fn m_tcp_that_listens_to_signals_is_safe(case in case()) {
        check(&without_f_rto(&case), m_tcp_by_signal, Promise::EndToEnd)?;
    }

    #[test]
    fn snoop_is_safe_and_makes_no_acknowledgement(case in case()) {
        let outcome = check(&case, snoop, Promise::EndToEnd)?;
        prop_assert_eq!(outcome.injected[0], 0);
    }

    #[test]
    fn m_tcp_plus_is_safe(case in case()) {
        check(&case, |limits| m_tcp_plus(limits, Resume::Flush), Promise::Custody)?;
    }

    #[test]
    fn m_tcp_plus_that_waits_for_a_probe_is_safe(case in case()) {
        check(&case, |limits| m_tcp_plus(limits, Resume::Probe), Promise::Custody)?;
    }

    #[test]
    fn m_tcp_plus_that_acknowledges_in_time_is_safe(case in case()) {
        for resume in [Resume::Flush, Resume::Probe] {
            check(&case, |limits| m_tcp_plus_in_time(limits, resume), Promise::Custody)?;
        }
    }

    #[test]
    fn holdover_is_safe(case in case()) {
        check(&case, holdover, Promise::EndToEnd)?;
    }

    #[test]
    fn wake_is_safe_and_tells_the_fixed_host_nothing(case in case()) {
        let outcome = check(&case, wake, Promise::Repeats)?;
        prop_assert_eq!(outcome.injected[0], 0);
    }

    #[test]
    fn a_crash_of_m_tcp_plus_is_not_hidden(case in case_with_crash()) {
        check(&case, |limits| m_tcp_plus(limits, Resume::Flush), Promise::Custody)?;
        check(&case, |limits| m_tcp_plus_in_time(limits, Resume::Flush), Promise::Custody)?;
    }

    #[test]
    fn without_a_signal_m_tcp_plus_and_holdover_are_plain_forwarders(case in case()) {
        let case = Case { signals: Vec::new(), ..case };
        let plain = check(&case, simple::<Plain>, Promise::EndToEnd)?;
        let m_tcp_plus = |limits| m_tcp_plus(limits, Resume::Flush);
        prop_assert_eq!(&plain, &check(&case, m_tcp_plus, Promise::EndToEnd)?);
        let in_time = |limits| m_tcp_plus_in_time(limits, Resume::Flush);
        prop_assert_eq!(&plain, &check(&case, in_time, Promise::EndToEnd)?);
        prop_assert_eq!(&plain, &check(&case, holdover, Promise::EndToEnd)?);
    }

    #[test]
    fn mechanisms_without_custody_lose_nothing_in_a_crash(case in case_with_crash()) {
        check(&without_f_rto(&case), m_tcp, Promise::EndToEnd)?;
        check(&without_f_rto(&case), m_tcp_by_signal, Promise::EndToEnd)?;
        check(&case, snoop, Promise::EndToEnd)?;
        check(&case, holdover, Promise::EndToEnd)?;
        check(&case, wake, Promise::Repeats)?;
    }

    #[test]
    fn a_forger_a_crash_and_reordering_together_do_no_harm(case in case_with_forger()) {
        for check in CHECKS {
            check(&case).map_err(TestCaseError::fail)?;
        }
    }
}

#[test]
fn no_harm_is_done_on_the_corpus() {
    corpus::replay("safety", hostile::check);
}

proptest! {
    #![proptest_config(Config::with_cases(300))]

    /// RFC 5961 keeps forgeries out, not connections: any network, any outage, large windows.
    #[test]
    fn what_a_host_has_not_seen_is_never_invalid(mut case in case()) {
        case.apps[0].bytes *= 20;
        case.apps[0].piece *= 20;
        let (node, check) = (m_tcp_plus(case.limits, Resume::Flush), News::default());
        let node = Watched { node, check };
        // So much data may not arrive in time, which is not the question.
        let _ = run(&case, node, Promise::Custody);
    }
}

/// Panics when a segment with news for its receiver is taken for invalid.
#[derive(Clone, Default)]
struct News {
    /// The highest acknowledgement of the mobile.
    acked: Option<SeqNum>,
}

impl Check<MTcpPlus<Vec<u8>>> for News {
    fn around(
        &mut self,
        node: &mut MTcpPlus<Vec<u8>>,
        from: Side,
        segment: Segment<Vec<u8>>,
        handle: impl FnOnce(&mut MTcpPlus<Vec<u8>>, Segment<Vec<u8>>),
    ) {
        let numbers = |node: &MTcpPlus<_>| {
            let InvalidPackets { invalid_sequence, invalid_acknowledgement, .. } =
                node.invalid_packets();
            (invalid_sequence, invalid_acknowledgement)
        };
        let number = match from {
            Side::Fixed => Some(segment.seq_end()),
            Side::Mobile => segment.ack,
        };
        let is_news = self.acked.is_none_or(|acked| number.is_some_and(|n| n.after(acked)));
        let (before, shown) = (numbers(node), segment.to_string());
        handle(node, segment);
        assert!(!is_news || numbers(node) == before, "invalid: {shown} from {from:?}");
        if from == Side::Mobile && is_news {
            self.acked = number.or(self.acked);
        }
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
