//! On board: uploads through a gateway whose uplink is the wireless link.
//!
//! The bars are those of downloads (`outages`).

use crate::congestion::has_congestion_control;
use crate::lateness::Wait;
use crate::outages::{Told, WAKE_TOLD, WAKE_UNTOLD, WORST, outage, outage_with, sleep_until};
use crate::recording;
use crate::testbed::{LINK, Place, Plan, Testbed, possible};
use crate::transfer::{Load, Transfer};
use nix::sys::signal::Signal;
use std::thread;
use std::time::{Duration, Instant};

/// Uploaded around an outage.
const SIZE: u64 = 8_000_000;
/// Start of the outage, after the connection opened.
const BEGIN: Duration = Duration::from_secs(4);

/// The end that sends the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// A host behind the router on board.
    Behind,
    /// The same, and the router masquerades it.
    Masqueraded,
    /// The router on board itself.
    Gateway,
}

/// One upload with one outage.
#[derive(Clone, Copy, Debug)]
struct Case {
    mechanism: Option<&'static str>,
    sender: Sender,
    congestion: &'static str,
    outage: Duration,
    told: Told,
}

impl Case {
    fn plan(&self) -> Plan {
        let mechanism = self.mechanism.map(|name| format!("{name:?}"));
        let place = match self.sender {
            Sender::Masqueraded => Place::OnBoardMasquerading,
            Sender::Behind | Sender::Gateway => Place::OnBoard,
        };
        Plan { mechanism, place, ..Plan::default() }
    }

    fn start(&self, bed: &Testbed) -> Transfer {
        let load = load(self.congestion);
        match self.sender {
            Sender::Behind | Sender::Masqueraded => bed.upload(&load),
            Sender::Gateway => bed.upload_of_gateway(&load),
        }
    }

    /// From the end of the outage to the first new byte.
    fn dead_time(&self) -> Option<Wait> {
        let bed = Testbed::new(&self.plan());
        let transfer = self.start(&bed);
        let opened = Instant::now();
        transfer.wait_for(500_000);
        sleep_until(opened + BEGIN - Duration::from_millis(200));
        let up = outage(&bed, opened + BEGIN, self.outage, self.told, || {});
        let dead = transfer.dead_time(up, 2 * self.outage + Duration::from_secs(60));
        assert_eq!(transfer.finish(), SIZE);
        println!("{self:?}: {dead:?}");
        dead
    }
}

/// The load of an upload: the sender opens the connection.
fn load(congestion: &'static str) -> Load {
    let first_sequence = Some(u32::MAX - 1_000_000);
    Load { bytes: Some(SIZE), first_sequence, ..Load::endless(congestion) }
}

/// Each congestion control with each of these.
fn grid(
    mechanism: Option<&'static str>,
    senders: &[Sender],
    lengths: &[u64],
    told: Told,
) -> Vec<Case> {
    let controls = ["reno", "cubic", "bbr"].into_iter().filter(|name| has_congestion_control(name));
    let mut cases = Vec::new();
    for congestion in controls {
        for &sender in senders {
            for &seconds in lengths {
                let outage = Duration::from_secs(seconds);
                cases.push(Case { mechanism, sender, congestion, outage, told });
            }
        }
    }
    cases
}

/// Runs the cases, and expects no dead time above this.
fn expect_within(cases: &[Case], most: Duration) {
    thread::scope(|scope| {
        let runs: Vec<_> = cases.iter().map(|case| scope.spawn(|| case.dead_time())).collect();
        for (case, run) in cases.iter().zip(runs) {
            let dead = run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            assert!(dead.is_some_and(|dead| dead.is_within(most)), "{case:?}: {dead:?}");
        }
    });
}

/// A gateway on board with this mechanism, and more of its configuration.
fn on_board(mechanism: &str, config: &str) -> Plan {
    let config = config.to_owned();
    Plan { config, place: Place::OnBoard, ..Plan::with(mechanism) }
}

/// Makes an outage in uploads, with `harm` two seconds after it began, and expects data soon after.
///
/// Only the first upload is measured: they share the link's queue, where the others may wait or
/// lose segments.
fn expect_resumed<const N: usize>(
    bed: &Testbed,
    uploads: [Transfer; N],
    told: Told,
    harm: impl FnOnce() + Send,
) {
    uploads.iter().for_each(|upload| upload.wait_for(SIZE / 4));
    let up = outage_with(bed, Duration::from_secs(5), told, harm);
    let patience = Duration::from_secs(60);
    let dead = uploads.each_ref().map(|upload| upload.dead_time(up, patience));
    assert!(
        dead.iter().flatten().any(|dead| dead.is_within(WORST)),
        "{dead:?}: {:?}",
        bed.daemon().status()
    );
    uploads.into_iter().for_each(|upload| assert_eq!(upload.finish(), SIZE));
}

const ALL: [Sender; 3] = [Sender::Behind, Sender::Masqueraded, Sender::Gateway];

#[test]
fn wake_on_board_told_in_time_resumes_uploads_within_some_round_trips() {
    if !possible() {
        return;
    }
    expect_within(&grid(Some("wake"), &ALL, &[5], Told::Timely), WAKE_TOLD);
}

#[test]
fn wake_on_board_never_told_resumes_uploads_within_a_round_trip_and_150_ms() {
    if !possible() {
        return;
    }
    expect_within(&grid(Some("wake"), &ALL, &[3], Told::Nothing), WAKE_UNTOLD);
}

#[test]
fn without_a_gateway_an_upload_waits_for_the_senders_timer() {
    if !possible() {
        return;
    }
    let cases = grid(None, &[Sender::Behind], &[5], Told::Nothing);
    let dead: Vec<_> = cases.iter().map(Case::dead_time).collect();
    // A timer may by chance expire just when the link is back; not everyone's does.
    let waits = |dead: &Option<Wait>| dead.is_none_or(|dead| !dead.is_within(WORST));
    assert!(dead.iter().any(waits), "{cases:?}: {dead:?}");
}

#[test]
fn holdover_on_board_resumes_uploads_within_a_round_trip() {
    if !possible() {
        return;
    }
    let mut cases = grid(Some("holdover"), &ALL, &[5], Told::Timely);
    cases.extend(grid(Some("holdover"), &[Sender::Masqueraded], &[5], Told::Late));
    expect_within(&cases, WORST);
}

#[test]
fn m_tcp_plus_on_board_resumes_uploads_within_a_round_trip() {
    if !possible() {
        return;
    }
    let mut cases = grid(Some("m-tcp-plus"), &ALL, &[5], Told::Timely);
    cases.extend(grid(Some("m-tcp-plus"), &[Sender::Gateway], &[5], Told::NoUp));
    expect_within(&cases, WORST);
}

#[test]
fn an_uplink_that_is_down_is_named_and_its_senders_are_frozen() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&on_board("\"m-tcp-plus\"", ""));
    let uploads = [bed.upload_of_gateway(&load("cubic")), bed.upload(&load("cubic"))];
    expect_resumed(&bed, uploads, Told::Timely, || {
        let status = bed.daemon().status();
        let name = format!("uplink.{LINK}");
        assert_eq!(status.groups[0].name, name);
        assert_eq!(status.away.get(LINK).map(String::as_str), Some("down"), "{status:?}");
        assert!(status.flows.iter().all(|f| f.state == "frozen" && f.group == name), "{status:?}");
    });
}

#[test]
fn the_silence_of_an_uplink_freezes_its_senders() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&on_board("\"holdover\"", "[signals]\nsilence = \"400 ms\"\n"));
    expect_resumed(&bed, [bed.upload_of_gateway(&load("cubic"))], Told::Nothing, || {
        assert!(bed.daemon().status().away.contains_key(LINK));
    });
}

/// Bound on the dead time once the interface has its carrier again. At most 87 ms were measured: alone, beside other
/// tests, and while loops made and removed interfaces. 327 ms were seen once, from a cause that is not known.
const AFTER_CARRIER: Duration = Duration::from_millis(500);

/// Takes the uplink's interface away in an upload, by the commands `off` of `ip`, and brings it back
/// by `on`, half a second before each. Until the last one it must stay away.
fn expect_resumed_with(mechanism: &str, off: &[&[&str]], on: &[&[&str]]) {
    let bed = Testbed::new(&on_board(mechanism, "[signals]\ncarrier = true\n"));
    let transfer = bed.upload(&load("cubic"));
    transfer.wait_for(SIZE / 4);
    off.iter().for_each(|command| bed.gateway.ip(command));
    bed.link(false);
    let down = bed.daemon().wait_until(|status| status.away.contains_key(LINK));
    assert_eq!(down.signals["carrier"]["down"], 1, "{down:?}");
    thread::sleep(Duration::from_secs(4));
    bed.link(true);
    for command in on {
        thread::sleep(Duration::from_millis(500));
        assert!(bed.daemon().status().away.contains_key(LINK), "back before {command:?}");
        bed.gateway.ip(command);
    }
    // The kernel tells of a carrier, and sends over the interface, once its work queue gets to it: late while
    // other tests make and remove interfaces.
    let running = format!("! ip link show {LINK} | grep -q NO-CARRIER");
    while !bed.gateway.command(&["sh", "-c", &running]).status().unwrap().success() {}
    let up = Instant::now();
    let dead = transfer.dead_time(up, Duration::from_secs(60));
    let log = bed.daemon().log();
    assert!(dead.is_some_and(|dead| dead.is_within(AFTER_CARRIER)), "{mechanism}: {dead:?}\n{log}");
    assert_eq!(transfer.finish(), SIZE);
}

#[test]
fn an_uplink_without_carrier_is_down() {
    if !possible() {
        return;
    }
    for mechanism in ["\"wake\"", "\"holdover\""] {
        let carrier = |state| ["link", "set", LINK, "carrier", state];
        expect_resumed_with(mechanism, &[&carrier("off")], &[&carrier("on")]);
    }
}

#[test]
fn an_uplink_that_loses_its_routes_is_down_and_senders_stay_frozen() {
    if !possible() {
        return;
    }
    for mechanism in ["\"m-tcp-plus\"", "\"holdover\""] {
        let [down, up] = ["down", "up"].map(|state| ["link", "set", LINK, state]);
        // The kernel removes the routes over an interface that is down.
        let [ipv6, ipv4] =
            ["-6", "-4"].map(|family| [family, "route", "add", "default", "dev", LINK]);
        expect_resumed_with(mechanism, &[&down], &[&up, &ipv6, &ipv4]);
    }
}

#[test]
fn killed_in_an_outage_a_gateway_on_board_keeps_what_it_promised() {
    if !possible() {
        return;
    }
    for sender in [Sender::Masqueraded, Sender::Gateway] {
        let (congestion, outage) = ("cubic", Duration::from_secs(5));
        let mechanism = Some("m-tcp-plus");
        let case = Case { mechanism, sender, congestion, outage, told: Told::Late };
        let bed = Testbed::new(&case.plan());
        expect_resumed(&bed, [case.start(&bed)], case.told, || {
            assert_eq!(bed.daemon().status().committed, 1);
            bed.daemon().signal_child(Signal::SIGKILL);
            bed.daemon().wait_until(|status| status.committed == 1);
        });
    }
}

#[test]
fn by_ipv6_and_where_all_packets_wait_senders_on_board_resume_as_well() {
    if !possible() {
        return;
    }
    let own = |bed: &Testbed| bed.upload_of_gateway(&load("cubic"));
    let behind = |bed: &Testbed| bed.upload(&load("cubic"));
    for mechanism in ["\"holdover\"", "\"m-tcp-plus\"", "\"wake\""] {
        let ipv6 = Testbed::new(&Plan { ipv6: true, ..on_board(mechanism, "") });
        expect_resumed(&ipv6, [own(&ipv6)], Told::Late, || {});
        drop(ipv6);
        if mechanism != "\"wake\"" {
            let waiting = Testbed::new(&on_board(mechanism, "").waiting());
            assert_eq!(waiting.path(), "nfqueue");
            expect_resumed(&waiting, [own(&waiting)], Told::Late, || {});
            expect_resumed(&waiting, [behind(&waiting)], Told::Late, || {});
        }
    }
}

#[test]
fn a_recording_on_board_replays_with_the_same_actions() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording.pcapng");
    let bed = Testbed::new(&on_board("\"holdover\"", &format!("record = {file:?}\n")));
    expect_resumed(&bed, [bed.upload(&load("cubic"))], Told::Timely, || {});
    drop(bed);
    recording::expect_same_actions("holdover", &file);
}

#[test]
fn with_a_gateway_on_each_side_both_directions_are_protected() {
    if !possible() {
        return;
    }
    // With the queues of both directions full, answers take more than 100 ms: wake then takes the
    // path for a long one, and lets its tails wait.
    const TAIL_WAIT: Duration = Duration::from_millis(200);
    for (mechanism, worst) in
        [("\"wake\"", WORST + TAIL_WAIT), ("\"holdover\"", WORST), ("\"m-tcp-plus\"", WORST)]
    {
        let opposite = Some(mechanism.to_owned());
        let bed = Testbed::new(&Plan { opposite, ..on_board(mechanism, "") });
        let download = bed.download(&Load::of(SIZE));
        let upload = bed.upload(&load("cubic"));
        download.wait_for(SIZE / 4);
        upload.wait_for(SIZE / 4);
        let begin = Instant::now() + Duration::from_millis(200);
        let up = outage(&bed, begin, Duration::from_secs(5), Told::Timely, || {});
        for transfer in [upload, download] {
            let dead = transfer.dead_time(up, Duration::from_secs(60));
            assert!(dead.is_some_and(|dead| dead.is_within(worst)), "{mechanism}: {dead:?}");
            assert_eq!(transfer.finish(), SIZE);
        }
    }
}
