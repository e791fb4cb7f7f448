//! All kinds of transfers around an outage with a timely signal: directions, families, options,
//! many, short, closed and reset.

use crate::outages::{Case, Told, WORST, outage, sleep_until};
use crate::report;
use crate::testbed::{Place, Plan, Testbed, has_bridge_netfilter, has_vrfs, possible};
use crate::transfer::{Load, Transfer};
use airtcp_core::LinkSignal;
use airtcp_gateway::config::NfqueueConfig;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const OUTAGE: Duration = Duration::from_secs(5);

/// A cubic download with an outage resumes within the bar and without a timeout.
fn expect_protected(plan: &Plan) {
    expect_protected_on(&Testbed::new(plan));
}

fn expect_protected_on(bed: &Testbed) {
    let mechanism = Some("m-tcp-plus");
    let case =
        Case { mechanism, congestion: "cubic", outage: OUTAGE, told: Told::Timely, phase: None };
    let outcome = case.run_on(bed);
    report::outage(&case, &outcome);
    let dead = outcome.dead_time.expect("resumes");
    assert!(dead.is_within(WORST) && outcome.has_no_timeout(), "{outcome:?}");
}

fn plan() -> Plan {
    Plan::with("\"m-tcp-plus\"")
}

/// Makes an outage now.
fn outage_now(bed: &Testbed) -> Instant {
    outage(bed, Instant::now() + Duration::from_millis(100), OUTAGE, Told::Timely, || {})
}

#[test]
fn ipv6_is_protected() {
    if possible() {
        expect_protected(&Plan { ipv6: true, ..plan() });
    }
}

#[test]
fn a_masquerading_gateway_protects() {
    if possible() {
        expect_protected(&Plan { place: Place::Masquerading, ..plan() });
    }
}

#[test]
fn a_gateway_in_a_vrf_protects() {
    if possible() && has_vrfs() {
        expect_protected(&Plan { place: Place::Vrf, ..plan() });
    }
}

#[test]
fn a_gateway_in_a_bridge_protects() {
    if possible() && has_bridge_netfilter() {
        thread::scope(|scope| {
            for ipv6 in [false, true] {
                let plan = Plan { place: Place::Bridge, ipv6, ..plan() };
                scope.spawn(move || expect_protected(&plan));
            }
        });
    }
}

#[test]
fn connections_without_sack_are_protected() {
    if possible() {
        expect_protected(&Plan { sysctls: vec![("ipv4/tcp_sack", "0")], ..plan() });
    }
}

#[test]
fn connections_without_timestamps_are_protected() {
    if possible() {
        expect_protected(&Plan { sysctls: vec![("ipv4/tcp_timestamps", "0")], ..plan() });
    }
}

#[test]
fn connections_without_window_scaling_are_protected() {
    if possible() {
        expect_protected(&Plan { sysctls: vec![("ipv4/tcp_window_scaling", "0")], ..plan() });
    }
}

#[test]
fn senders_without_segmentation_offload_are_protected() {
    if possible() {
        expect_protected(&Plan { offload: false, ..plan() });
    }
}

/// Data under way when an outage begins, whose signal comes late, reach the mobile after it.
fn expect_replayed(bed: &Testbed) {
    const SIZE: u64 = 4_000_000;
    let transfer = bed.download(&Load::of(SIZE));
    transfer.wait_for(SIZE / 2);
    let begin = Instant::now() + Duration::from_millis(100);
    let up = outage(bed, begin, OUTAGE, Told::Late, || {});
    let dead = transfer.dead_time(up, Duration::from_secs(30));
    assert!(dead.is_some_and(|dead| dead.is_within(WORST)), "{dead:?}");
    assert_eq!(transfer.finish(), SIZE);
}

#[test]
fn replayed_segments_fit_in_a_tunnel_behind_the_gateway() {
    if !possible() {
        return;
    }
    let plans = [plan(), plan().waiting(), Plan::with("\"holdover\"")];
    thread::scope(|scope| {
        for plan in plans {
            scope.spawn(move || {
                let bed = Testbed::new(&plan);
                // The mobile does not know of it; the fixed host learns of it by ICMP.
                bed.gateway.ip(&["link", "set", "airtcp0", "mtu", "1420"]);
                expect_replayed(&bed);
            });
        }
    });
}

#[test]
fn a_router_beyond_the_link_says_how_large_replayed_segments_may_be() {
    if !possible() {
        return;
    }
    thread::scope(|scope| {
        for (mechanism, ipv6) in [("\"m-tcp-plus\"", false), ("\"holdover\"", true)] {
            scope.spawn(move || {
                let plan = Plan { place: Place::OnBoard, ipv6, ..Plan::with(mechanism) };
                expect_heard(&Testbed::new(&plan), mechanism);
            });
        }
    });
}

/// While the link is down, the MTU of the path beyond it shrinks. Replayed segments that are too
/// large are sent again after a second; without the router's messages, smaller ones are tried two
/// seconds later.
fn expect_heard(bed: &Testbed, mechanism: &str) {
    const SIZE: u64 = 4_000_000;
    let transfer = bed.upload(&Load::of(SIZE));
    transfer.wait_for(SIZE / 2);
    bed.link(false);
    // A second passes in which segments are lost.
    thread::sleep(Duration::from_secs(1));
    bed.signal(LinkSignal::Down);
    bed.router.as_ref().unwrap().ip(&["link", "set", "wire", "mtu", "1300"]);
    thread::sleep(Duration::from_secs(3));
    let up = bed.link(true);
    bed.signal(LinkSignal::Up);
    let dead = transfer.dead_time(up, Duration::from_secs(60)).expect("resumes");
    let counters = bed.daemon().status().counters;
    let [accepted, ignored] = ["too_big_accepted", "too_big_ignored"].map(|name| counters[name]);
    eprintln!("{mechanism}: {dead:?}, {accepted} accepted, {ignored} ignored");
    assert!(dead.is_within(Duration::from_secs(2)) && accepted > 0);
    assert_eq!(transfer.finish(), SIZE);
}

#[test]
fn sequence_numbers_may_wrap_around_in_what_is_held() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&plan());
    // Some 40 kB to 100 kB are under way or in the gateway at any time.
    const BEFORE: u64 = 2_000_000;
    let first_sequence = Some(0_u32.wrapping_sub(BEFORE as u32 + 30_000));
    let transfer = bed.download(&Load { first_sequence, ..Load::of(4_000_000) });
    transfer.wait_for(BEFORE);
    let up = outage_now(&bed);
    let dead = transfer.dead_time(up, Duration::from_secs(60));
    assert!(dead.is_some_and(|dead| dead.is_within(WORST)), "{dead:?}");
    assert_eq!(transfer.finish(), 4_000_000);
}

#[test]
fn sequence_numbers_may_wrap_around_at_every_edge_of_what_is_held() {
    if !possible() {
        return;
    }
    thread::scope(|scope| {
        for mechanism in ["\"m-tcp-plus\"", "\"holdover\""] {
            scope.spawn(move || expect_wraparound_unnoticed(mechanism));
        }
    });
}

/// Downloads of which a known part is sent into an outage, each with its wraparound at another
/// place.
fn expect_wraparound_unnoticed(mechanism: &str) {
    /// Received before the outage.
    const BEFORE: u64 = 100_000;
    /// Sent up to the first signal, which comes too late. All of it together has room in the link's
    /// queue.
    const SENT: u64 = BEFORE + 4_000;
    const ALL: u64 = SENT + BEFORE;
    /// Byte of the stream whose sequence number is 0.
    const WRAPS: [u64; 9] = [
        BEFORE / 2,
        BEFORE - 1,
        BEFORE,
        BEFORE + 1,
        (BEFORE + SENT) / 2,
        SENT - 1,
        SENT,
        SENT + 1,
        (SENT + ALL) / 2,
    ];
    let bed = Testbed::new(&Plan::with(mechanism));
    let transfers = WRAPS.map(|wrap| {
        // The SYN has a number too.
        let first_sequence = Some(0_u32.wrapping_sub(wrap as u32 + 1));
        bed.download(&Load { first_sequence, allowed: Some(BEFORE), ..Load::of(ALL) })
    });
    transfers.iter().for_each(|transfer| transfer.wait_for(BEFORE));
    bed.daemon().wait_until(|status| status.held == 0);
    let down = bed.link(false);
    transfers.iter().for_each(|transfer| transfer.allow(SENT));
    bed.daemon().wait_until(|status| status.held == WRAPS.len() as u64 * (SENT - BEFORE));
    bed.signal(LinkSignal::Down);
    bed.daemon().wait_until(|status| status.flows.iter().all(|flow| flow.state == "frozen"));
    // So that there is something to probe for.
    transfers.iter().for_each(|transfer| transfer.allow(ALL));
    sleep_until(down + Duration::from_secs(3));
    let up = bed.link(true);
    bed.signal(LinkSignal::Up);
    for (transfer, wrap) in transfers.into_iter().zip(WRAPS) {
        let dead = transfer.dead_time(up, Duration::from_secs(60));
        assert!(dead.is_some_and(|dead| dead.is_within(WORST)), "{mechanism}, {wrap}: {dead:?}");
        assert_eq!(transfer.finish(), ALL);
    }
}

#[test]
fn mobiles_whose_signal_is_good_pass_the_gateway_by() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&Plan::with("\"m-tcp-plus\"\ncopy = \"when-fading\""));
    let intercepted = || {
        let counters = bed.daemon().status().counters;
        ["packets_passed", "packets_dropped", "packets_held"]
            .map(|name| counters[name])
            .iter()
            .sum()
    };
    let transfer = bed.download(&Load::endless("cubic"));
    transfer.wait_for(2_000_000);
    let begin = Instant::now() + Duration::from_millis(500);
    let up = outage(&bed, begin, OUTAGE, Told::Timely, || assert_eq!(intercepted(), 0));
    let dead = transfer.dead_time(up, Duration::from_secs(60));
    assert!(dead.is_some_and(|dead| dead.is_within(WORST)), "{dead:?}");
    assert!(intercepted() > 0);
    expect_left_alone(&transfer, intercepted);
    transfer.finish();
}

/// The packets of a transfer are no longer intercepted soon after the mobile has everything that
/// was held; `intercepted` counts them.
fn expect_left_alone(transfer: &Transfer, intercepted: impl Fn() -> u64) {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let before = intercepted();
        transfer.wait_for(transfer.received() + 100_000);
        if intercepted() == before {
            break;
        }
        assert!(Instant::now() < until, "{before}");
    }
}

#[test]
fn packets_of_a_mobile_in_reach_wait_for_nobody() {
    for mechanism in ["\"m-tcp-plus\"", "\"holdover\""] {
        let Some(bed) = Testbed::with_mirror(&Plan::with(mechanism)) else { return };
        let transfer = bed.download(&Load::endless("cubic"));
        transfer.wait_for(2_000_000);
        let status = bed.daemon().status();
        assert!(status.groups[0].counters["segments_copied"] > 100, "{status:?}");
        let begin = Instant::now() + Duration::from_millis(500);
        let up = outage(&bed, begin, OUTAGE, Told::Timely, || assert_eq!(queued(&bed), 0));
        let dead = transfer.dead_time(up, Duration::from_secs(60));
        assert!(dead.is_some_and(|dead| dead.is_within(WORST)), "{mechanism}: {dead:?}");
        assert!(queued(&bed) > 0);
        expect_left_alone(&transfer, || queued(&bed));
        transfer.finish();
        assert_eq!(bed.daemon().status().counters["mirror_missed_packets"], 0);
    }
}

/// Packets that have waited for the gateway so far.
fn queued(bed: &Testbed) -> u64 {
    let read = || fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue").unwrap();
    let table = bed.gateway.within(read);
    let queue = NfqueueConfig::default().queue.to_string();
    let mut rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.first() == Some(&queue.as_str())).expect("the gateway's queue");
    row[7].parse().expect("its sequence number")
}

#[test]
fn packets_that_wait_for_the_gateway_are_protected_too() {
    if !possible() {
        return;
    }
    for mechanism in ["\"m-tcp-plus\"", "\"holdover\""] {
        let bed = Testbed::new(&Plan::with(mechanism).waiting());
        let transfer = bed.download(&Load::endless("cubic"));
        transfer.wait_for(2_000_000);
        assert_eq!(bed.path(), "nfqueue");
        let up = outage_now(&bed);
        let dead = transfer.dead_time(up, Duration::from_secs(60));
        assert!(dead.is_some_and(|dead| dead.is_within(WORST)), "{mechanism}: {dead:?}");
        transfer.finish();
    }
}

#[test]
fn an_upload_is_left_to_the_mobile() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&plan());
    let transfer = bed.upload(&Load::of(4_000_000));
    transfer.wait_for(2_000_000);
    outage_now(&bed);
    assert_eq!(transfer.finish(), 4_000_000);
}

#[test]
fn two_hundred_downloads_at_once_survive() {
    if !possible() {
        return;
    }
    let link =
        "rate = \"50 Mbit/s\"\ndelay = \"20 ms\"\nqueue = { limit = \"500 kB\" }\n".to_owned();
    // All begin again at once. What found no room in the queue would pass unseen, and its copies
    // would stay.
    let config = "[nfqueue]\nlength = 16384\n".to_owned();
    let bed = Testbed::new(&Plan { link, config, ..plan() });
    let transfers: Vec<Transfer> = thread::scope(|scope| {
        let open = |_| scope.spawn(|| bed.download(&Load::of(200_000)));
        let threads: Vec<_> = (0..200).map(open).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let begin = Instant::now() + Duration::from_millis(200);
    outage(&bed, begin, OUTAGE, Told::Timely, || {});
    for transfer in transfers {
        assert_eq!(transfer.finish(), 200_000);
    }
    expect_nothing_held(&bed);
}

/// Nothing is held any more, as soon as the last ACKs have come by.
fn expect_nothing_held(bed: &Testbed) {
    bed.daemon().wait_until(|status| status.held == 0 && status.committed == 0);
}

#[test]
fn short_downloads_survive_wherever_the_outage_meets_them() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&plan());
    thread::scope(|scope| {
        let begin = Instant::now() + Duration::from_secs(1);
        for number in 0..40 {
            let bed = &bed;
            scope.spawn(move || {
                sleep_until(
                    begin + number * Duration::from_millis(50) - Duration::from_millis(900),
                );
                assert_eq!(bed.download(&Load::of(20_000)).finish(), 20_000);
            });
        }
        outage(&bed, begin, Duration::from_secs(3), Told::Timely, || {});
    });
}

#[test]
fn a_sender_may_close_in_the_outage() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&plan());
    let transfer = bed.download(&Load::of(2_000_000));
    // The rest is in the sender's buffer.
    transfer.wait_for(1_950_000);
    outage_now(&bed);
    let up = Instant::now();
    assert_eq!(transfer.finish(), 2_000_000);
    assert!(up.elapsed() < Duration::from_secs(2), "{:?}", up.elapsed());
}

/// A segment that the mobile must get waits with what is held for it: forwarded, it would be lost.
#[test]
fn a_reset_of_the_fixed_host_in_the_outage_reaches_the_mobile_behind_what_is_held() {
    if !possible() {
        return;
    }
    let mechanisms = ["\"m-tcp-plus\"", "\"holdover\""];
    for (mechanism, told) in
        mechanisms.into_iter().flat_map(|m| [(m, Told::Timely), (m, Told::Late)])
    {
        let bed = Testbed::new(&Plan::with(mechanism));
        let transfer = bed.download(&Load::endless("cubic"));
        transfer.wait_for(1_000_000);
        let arrivals = transfer.arrivals();
        let begin = Instant::now() + Duration::from_millis(100);
        let bed = &bed;
        thread::scope(|scope| {
            let end = scope.spawn(move || {
                sleep_until(begin + Duration::from_millis(2500));
                let is_held = bed.daemon().status().held > 0;
                (is_held, transfer.reset_by_sender(Duration::from_secs(60)))
            });
            let up = outage(bed, begin, Duration::from_secs(5), told, || {});
            let (is_held, end) = end.join().unwrap();
            assert_eq!(end, Some(std::io::ErrorKind::ConnectionReset), "{mechanism} {told:?}");
            let has_come = arrivals.last().unwrap().0 > up;
            // With a signal in time, the mobile mostly has all that was under way: nothing is
            // held, or what the mobile has already and only its ACK was lost.
            assert!(is_held || told == Told::Timely, "{mechanism} {told:?}: nothing is held");
            assert!(is_held || !has_come, "{mechanism} {told:?}: nothing was held, yet it came");
            assert!(has_come || told == Told::Timely, "{mechanism} {told:?}: what is held");
        });
        expect_nothing_held(bed);
        assert_eq!(bed.download(&Load::of(100_000)).finish(), 100_000);
    }
}

#[test]
fn a_connection_that_the_mobile_resets_in_the_outage_ends_when_it_is_back() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&plan());
    let transfer = bed.download(&Load::endless("cubic"));
    transfer.wait_for(1_000_000);
    let begin = Instant::now() + Duration::from_millis(100);
    thread::scope(|scope| {
        let cut = scope.spawn(move || {
            sleep_until(begin + Duration::from_secs(1));
            transfer.reset_by_receiver()
        });
        outage(&bed, begin, Duration::from_secs(3), Told::Timely, || {});
        let error = cut.join().unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    });
    expect_nothing_held(&bed);
}
