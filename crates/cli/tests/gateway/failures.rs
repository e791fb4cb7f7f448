//! The daemon is killed, stopped, reloaded, or short of room.

use crate::lateness::slowness;
use crate::outages::{Told, WORST, outage, sleep_until};
use crate::report;
use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::{Load, Transfer};
use airtcp_core::LinkSignal;
use nix::sys::signal::Signal;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

const OUTAGE: Duration = Duration::from_secs(5);
const SIZE: u64 = 4_000_000;

fn plan() -> Plan {
    Plan::with("\"m-tcp-plus\"")
}

/// From 0 to 1, by the clock.
fn draw() -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    f64::from(now.subsec_nanos().wrapping_mul(0x9e37_79b9)) / f64::from(u32::MAX)
}

/// Does something to the daemon at moments spread over an outage, each in a testbed of its own: no
/// byte may be lost.
fn expect_no_byte_lost(harm: impl Fn(&Testbed) + Sync) {
    /// From before the first signal until after the last.
    const MARGIN: Duration = Duration::from_millis(300);
    const MOMENTS: u32 = 8;
    let step = (OUTAGE + 2 * MARGIN) / MOMENTS;
    thread::scope(|scope| {
        for n in 0..MOMENTS {
            let harm = &harm;
            scope.spawn(move || {
                let after = step.mul_f64(f64::from(n) + draw());
                let bed = Testbed::new(&plan());
                let transfer = bed.download(&Load::of(SIZE));
                transfer.wait_for(SIZE / 2);
                let begin = Instant::now() + MARGIN;
                thread::scope(|scope| {
                    scope.spawn(|| {
                        sleep_until(begin - MARGIN + after);
                        harm(&bed);
                    });
                    outage(&bed, begin, OUTAGE, Told::Timely, || {});
                });
                let received = transfer.finish();
                assert_eq!(received, SIZE, "harmed {after:?} after {MARGIN:?} before the outage");
            });
        }
    });
}

#[test]
fn kill_9_of_the_child_at_any_moment_of_an_outage_loses_no_byte() {
    if !possible() {
        return;
    }
    expect_no_byte_lost(|bed| bed.daemon().signal_child(Signal::SIGKILL));
}

#[test]
fn kill_9_of_parent_and_child_at_any_moment_of_an_outage_loses_no_byte() {
    if !possible() {
        return;
    }
    expect_no_byte_lost(|bed| {
        bed.daemon().crash();
        bed.daemon().restart(&bed.gateway);
    });
}

#[test]
fn kill_9_in_an_outage_costs_no_time_whether_bytes_were_promised_or_not() {
    if !possible() {
        return;
    }
    /// After the last word about the outage.
    const KILLED: Duration = Duration::from_millis(2500);
    /// Longest time a new daemon may take to begin, on a real processor.
    const RESTART: Duration = Duration::from_secs(1);
    let length = OUTAGE + RESTART * slowness();
    let expect = |mechanism: &str, told| {
        let bed = Testbed::new(&Plan::with(&format!("{mechanism:?}")));
        let transfer = bed.download(&Load::of(SIZE));
        transfer.wait_for(SIZE / 2);
        let begin = Instant::now() + Duration::from_millis(300);
        let up = thread::scope(|scope| {
            scope.spawn(|| {
                sleep_until(begin + KILLED);
                bed.daemon().crash();
                bed.daemon().restart(&bed.gateway);
                // The new daemon knows of the outage.
                let status = bed.daemon().status();
                let [known] = &*status.groups[0].outages.keys().collect::<Vec<_>>() else {
                    panic!("{mechanism}, {told:?}: {status:?}")
                };
                assert_eq!(*known, "earlier-gateway", "{mechanism}, {told:?}");
            });
            outage(&bed, begin, length, told, || {})
        });
        let dead = transfer.dead_time(up, Duration::from_secs(60));
        let log = bed.daemon().log();
        assert!(
            dead.is_some_and(|dead| dead.is_within(WORST)),
            "{mechanism}, {told:?}: {dead:?}\n{log}"
        );
        assert_eq!(transfer.finish(), SIZE);
    };
    thread::scope(|scope| {
        for mechanism in ["m-tcp-plus", "holdover"] {
            for told in [Told::Timely, Told::Late] {
                scope.spawn(move || expect(mechanism, told));
            }
        }
    });
}

/// An endless download in an outage, with bytes that the gateway has promised.
pub(crate) fn with_promise(bed: &Testbed) -> Transfer {
    let transfer = bed.download(&Load::endless("cubic"));
    transfer.wait_for(SIZE / 4);
    bed.link(false);
    bed.signal(LinkSignal::Down);
    bed.daemon().wait_until(|status| status.committed == 1);
    transfer
}

#[test]
fn what_a_restarted_daemon_cannot_go_on_with_is_reset_at_both_ends() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&plan());
    let transfer = with_promise(&bed);
    bed.daemon().crash();
    bed.daemon().configure("\"m-tcp-plus\"", "\"holdover\"");
    bed.daemon().restart(&bed.gateway);
    bed.link(true);
    let [sender, receiver] = transfer.ends_by_reset();
    let reset = Some(std::io::ErrorKind::ConnectionReset);
    assert_eq!([sender, receiver], [reset, reset], "{}", bed.daemon().log());
}

#[test]
fn a_stopped_daemon_does_not_stall_flows_for_long() {
    if !possible() {
        return;
    }
    for plan in [plan(), plan().waiting()] {
        let bed = Testbed::new(&plan);
        let transfer = bed.download(&Load::of(SIZE));
        transfer.wait_for(SIZE / 4);
        let since = Instant::now();
        bed.daemon().signal_child(Signal::SIGSTOP);
        transfer.wait_for(SIZE);
        let gap = transfer.longest_gap(since);
        report::stall(gap.length);
        // A stopped daemon is noticed at once; the rest is the sender's timer: 0.2, 0.4 and 0.8 s if
        // what it sent again came too early as well.
        assert!(gap.is_within(Duration::from_millis(1500)), "{gap:?}");
        assert_eq!(transfer.finish(), SIZE);
    }
}

#[test]
fn a_reload_in_an_outage_keeps_the_flow_frozen_and_alive() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&plan());
    let transfer = bed.download(&Load::of(SIZE));
    transfer.wait_for(SIZE / 2);
    let begin = Instant::now() + Duration::from_millis(200);
    let up = thread::scope(|scope| {
        scope.spawn(|| {
            sleep_until(begin + OUTAGE / 2);
            bed.daemon().signal_parent(Signal::SIGHUP);
        });
        outage(&bed, begin, OUTAGE, Told::Timely, || {})
    });
    let dead = transfer.dead_time(up, Duration::from_secs(60));
    assert!(dead.is_some_and(|dead| dead.is_within(WORST)), "{dead:?}");
    assert_eq!(transfer.finish(), SIZE);
}

#[test]
fn a_full_queue_lets_packets_pass() {
    if !possible() {
        return;
    }
    let link =
        "rate = \"200 Mbit/s\"\ndelay = \"20 ms\"\nqueue = { limit = \"2 MB\" }\n".to_owned();
    let config = "[nfqueue]\nlength = 1\n".to_owned();
    let bed = Testbed::new(&Plan { link, config, ..plan() }.waiting());
    let transfer = bed.download(&Load::of(20_000_000));
    assert_eq!(transfer.finish(), 20_000_000);
}

#[test]
fn beyond_the_limit_of_flows_connections_are_forwarded_untouched_and_counted() {
    if !possible() {
        return;
    }
    let config = "[limits]\nflows = 1\n".to_owned();
    let bed = Testbed::new(&Plan { config, ..plan() });
    let transfers: Vec<_> = (0..3).map(|_| bed.download(&Load::of(SIZE / 4))).collect();
    transfers.iter().for_each(|transfer| transfer.wait_for(100_000));
    outage(&bed, Instant::now() + Duration::from_millis(200), OUTAGE, Told::Timely, || {});
    let status = bed.daemon().status();
    assert!(status.flow_count <= 1 && status.groups[0].segments_refused > 0, "{status:?}");
    for transfer in transfers {
        assert_eq!(transfer.finish(), SIZE / 4);
    }
}

#[test]
fn beyond_the_limit_of_memory_data_stays_in_the_senders_charge() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&Plan {
        config: "[limits]\nmemory = \"64 KiB\"\n".to_owned(),
        ..Plan::with("\"m-tcp-plus\"\nfifo = \"64 KiB\"")
    });
    let transfers: Vec<_> = (0..4).map(|_| bed.download(&Load::of(SIZE / 4))).collect();
    transfers.iter().for_each(|transfer| transfer.wait_for(100_000));
    outage(&bed, Instant::now() + Duration::from_millis(200), OUTAGE, Told::Timely, || {
        assert!(bed.daemon().status().held <= 64 * 1024);
    });
    for transfer in transfers {
        assert_eq!(transfer.finish(), SIZE / 4);
    }
}

/// Identifiers of the links of BPF programs to netfilter's hooks on this machine.
fn links() -> Vec<u32> {
    let is_netfilter = |info: &libbpf_rs::query::LinkInfo| {
        matches!(info.info, libbpf_rs::query::LinkTypeInfo::Netfilter(_))
    };
    libbpf_rs::query::LinkInfoIter::default().filter(is_netfilter).map(|info| info.id).collect()
}

/// Those of a process.
fn links_of(process: nix::unistd::Pid) -> Vec<u32> {
    let files = std::fs::read_dir(format!("/proc/{process}/fdinfo")).unwrap();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.unwrap().path()).ok());
    let id = |text: String| {
        text.lines().find_map(|line| line.strip_prefix("link_id:")?.trim().parse().ok())
    };
    texts.filter_map(id).collect()
}

#[test]
fn the_program_that_copies_goes_with_the_process_however_it_ends() {
    let Some(bed) = Testbed::with_mirror(&plan()) else { return };
    let expect_end = |how: &str, end: &dyn Fn()| {
        let own = links_of(bed.daemon().child().expect("the gateway has a child"));
        assert_eq!(own.len(), 2, "one for each IP version");
        assert!(own.iter().all(|id| links().contains(id)));
        end();
        let until = Instant::now() + Duration::from_secs(20);
        while links().iter().any(|id| own.contains(id)) {
            assert!(Instant::now() < until, "after {how} the program is still there");
            thread::sleep(Duration::from_millis(10));
        }
    };
    let transfer = bed.download(&Load::of(SIZE));
    expect_end("kill -9", &|| bed.daemon().kill_all());
    assert_eq!(transfer.finish(), SIZE);
    bed.daemon().restart(&bed.gateway);
    assert_eq!(bed.path(), "mirror");
    expect_end("SIGTERM", &|| bed.daemon().signal_parent(Signal::SIGTERM));
}
