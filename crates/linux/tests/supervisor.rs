//! The supervisor of the gateway, with processes that really die, hang and are killed.
//!
//! Supervisor and daemon are this test program again, in the role that [`ROLE`] names; each reports
//! its events on standard output.

#![cfg(target_os = "linux")]

use airtcp_linux::daemon::supervisor::{
    Heartbeat, INTERVAL, LONGEST_REST, Pace, Timing, supervise,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that makes [`role`] do something: "supervisor", or what the daemon does.
const ROLE: &str = "AIRTCP_SUPERVISOR_TEST_ROLE";
/// The variable that selects the behaviour of the supervisor's daemon.
const DAEMON: &str = "AIRTCP_SUPERVISOR_TEST_DAEMON";
/// Time for which the daemon "starves": longer than a silent daemon lives, shorter than one that waits for a
/// processor.
const STARVED: Duration = Duration::from_secs(1);
/// Prefix of a reported event.
const TELL: &str = "told: ";

fn tell(what: &str) {
    // The harness has the beginning of the line.
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "\n{TELL}{what}").and_then(|()| stdout.flush());
}

/// No test: this program as the supervisor or the daemon, when [`ROLE`] says so.
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let code = match role.as_str() {
        "supervisor" => {
            let behaviour = std::env::var(DAEMON).unwrap();
            let mut timing = Timing::default();
            if behaviour == "never comes up" {
                timing.start = Duration::from_secs(2);
            }
            let mut daemon = match behaviour.as_str() {
                "spins" => shell("while kill -0 $PPID; do :; done"),
                "starves" => starving(),
                behaviour => myself(behaviour),
            };
            tracing_subscriber::fmt().with_writer(std::io::stderr).init();
            supervise(&mut daemon, timing).unwrap()
        }
        behaviour => daemon(behaviour),
    };
    tell(&format!("exit {code}"));
    std::process::exit(code);
}

fn daemon(behaviour: &str) -> i32 {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).unwrap();
    let mut heart = Heartbeat::from_stdin().unwrap();
    tell(&format!("started {}", std::process::id()));
    match behaviour {
        "bad input" => return 2,
        "cannot start" => return 1,
        "hangs at work" | "hangs at rest" => {
            let is_at_work = behaviour == "hangs at work";
            heart.beat(Instant::now(), if is_at_work { Pace::Working } else { Pace::Resting });
            while signals.pending().next().is_none() {
                std::thread::sleep(INTERVAL);
            }
            return 0;
        }
        "dies at once" => {
            heart.beat(Instant::now(), Pace::Working);
            return 1;
        }
        _ => {}
    }
    loop {
        if behaviour != "never comes up" {
            heart.beat(Instant::now(), Pace::Working);
        }
        for signal in signals.pending() {
            match signal {
                SIGHUP => tell("reload"),
                SIGINT => {
                    tell("SIGINT");
                    return 0;
                }
                _ => return 0,
            }
        }
        std::thread::sleep(INTERVAL / 4);
    }
}

/// A daemon that comes up and then does this; a shell, as its loop is on its first thread, which is the one that
/// the supervisor looks at. A test's is not.
fn shell(then: &str) -> Command {
    let script = format!(
        r#"trap 'echo "{TELL}reload"' HUP
        trap 'echo "{TELL}exit 0"; exit 0' TERM
        echo "{TELL}started $$"
        printf w >&0
        {then}"#
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    command
}

/// It leaves its processor for [`STARVED`] to others, which the scheduler prefers.
fn starving() -> Command {
    let starved = STARVED.as_secs_f32();
    shell(&format!(
        r#"cpu=$(taskset --cpu-list --pid $$ | sed 's/.*: //; s/[,-].*//')
        taskset --cpu-list --pid "$cpu" $$ >&2
        for _ in 1 2 3 4; do timeout {starved} sh -c 'while :; do :; done' & done
        chrt --idle --pid 0 $$
        while printf w >&0; do
            i=0; while [ $i -lt 5000 ]; do i=$((i + 1)); done
        done"#
    ))
}

fn myself(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "role", "--nocapture"]).env(ROLE, role);
    command
}

/// A supervisor and its daemon, observed by their reports.
struct Fixture {
    supervisor: Child,
    told: BufReader<ChildStdout>,
}

impl Fixture {
    fn new(daemon: &str) -> Self {
        Self::of(myself("supervisor").env(DAEMON, daemon))
    }

    fn of(command: &mut Command) -> Self {
        let mut supervisor = command.stdout(Stdio::piped()).spawn().unwrap();
        let told = BufReader::new(supervisor.stdout.take().unwrap());
        Self { supervisor, told }
    }

    /// The next report; `None` when all processes have ended.
    fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.told.read_line(&mut line).unwrap() > 0 {
            if let Some((_, what)) = line.trim_end().split_once(TELL) {
                return Some(what.to_owned());
            }
            line.clear();
        }
        None
    }

    fn started(&mut self) -> Pid {
        let what = self.next_news().expect("a start");
        let pid = what.strip_prefix("started ").unwrap_or_else(|| panic!("{what:?}"));
        Pid::from_raw(pid.parse().unwrap())
    }

    /// A daemon that has come up.
    fn up(&mut self) -> Pid {
        let daemon = self.started();
        // Only the loop that sends heartbeats answers a reload.
        self.expect_reload();
        daemon
    }

    /// Asks for a reload until the daemon answers: before it has come up, the supervisor does not
    /// pass it on.
    fn expect_reload(&mut self) {
        std::thread::scope(|scope| {
            let (done, over) = std::sync::mpsc::channel::<()>();
            let supervisor = self.pid();
            scope.spawn(move || {
                let again = Duration::from_millis(50);
                while over.recv_timeout(again) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                    kill(supervisor, Signal::SIGHUP).unwrap();
                }
            });
            assert_eq!(self.next().as_deref(), Some("reload"));
            drop(done);
        });
    }

    /// The next report that is not the answer to a reload.
    fn next_news(&mut self) -> Option<String> {
        loop {
            match self.next() {
                Some(reload) if reload == "reload" => {}
                other => return other,
            }
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.supervisor.id() as i32)
    }

    fn code(&mut self) -> Option<i32> {
        self.supervisor.wait().unwrap().code()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
        // The daemon gets SIGTERM and ends without further reports.
        while self.next().is_some() {}
    }
}

#[test]
fn a_daemon_that_is_killed_is_started_again() {
    let mut fixture = Fixture::new("lives");
    let first = fixture.up();
    kill(first, Signal::SIGKILL).unwrap();
    let second = fixture.started();
    assert_ne!(first, second);
    kill(second, Signal::SIGKILL).unwrap();
    assert_ne!(fixture.started(), second);
}

#[test]
fn a_daemon_that_hangs_is_killed_and_started_again_within_a_second() {
    let mut fixture = Fixture::new("lives");
    let first = fixture.up();
    let stopped = Instant::now();
    kill(first, Signal::SIGSTOP).unwrap();
    let second = fixture.started();
    let outage = stopped.elapsed();
    let _ = writeln!(std::io::stderr(), "back after {} ms", outage.as_millis());
    assert_ne!(first, second);
    // A second and, for machines with other things to do, another.
    assert!(outage < Duration::from_secs(2), "{outage:?}");
}

#[test]
fn a_daemon_that_rests_may_be_silent_for_longer_than_one_that_works() {
    // At least and at most: the test learns late of a start.
    let killed_after = |daemon| {
        let before = Instant::now();
        let mut fixture = Fixture::new(daemon);
        fixture.started();
        let after = Instant::now();
        fixture.started();
        (after.elapsed(), before.elapsed())
    };
    let (working, _) = killed_after("hangs at work");
    let (_, resting) = killed_after("hangs at rest");
    let longest = Timing::default().silence + LONGEST_REST;
    assert!(working < longest && longest <= resting, "{working:?}, {resting:?}");
}

#[test]
fn a_daemon_that_spins_is_killed_and_started_again() {
    let mut fixture = Fixture::new("spins");
    let first = fixture.started();
    assert_ne!(fixture.started(), first);
}

#[test]
fn a_daemon_that_waits_for_a_processor_is_not_killed() {
    let mut fixture = Fixture::new("starves");
    let daemon = fixture.up();
    std::thread::sleep(STARVED);
    fixture.expect_reload();
    kill(fixture.pid(), Signal::SIGTERM).unwrap();
    assert_eq!(fixture.next_news().as_deref(), Some("exit 0"), "{daemon} is the first one still");
}

#[test]
fn a_daemon_that_never_comes_up_is_killed_and_started_again() {
    let mut fixture = Fixture::new("never comes up");
    let first = fixture.started();
    assert_ne!(fixture.started(), first);
}

#[test]
fn bad_input_is_not_tried_twice() {
    let mut fixture = Fixture::new("bad input");
    fixture.started();
    assert_eq!(fixture.next().as_deref(), Some("exit 2"), "the daemon");
    assert_eq!(fixture.next().as_deref(), Some("exit 2"), "the supervisor");
    assert_eq!(fixture.code(), Some(2));
}

#[test]
fn what_never_came_up_says_itself_why_and_is_not_tried_twice() {
    let mut fixture = Fixture::new("cannot start");
    fixture.started();
    assert_eq!(fixture.next().as_deref(), Some("exit 1"), "the daemon");
    assert_eq!(fixture.next().as_deref(), Some("exit 1"), "the supervisor");
    assert_eq!(fixture.code(), Some(1));
}

#[test]
fn a_daemon_that_dies_at_once_gets_longer_and_longer_pauses() {
    // Before the first start, of which the test may learn late.
    let before = Instant::now();
    let mut fixture = Fixture::new("dies at once");
    let mut starts = 0;
    while starts < 6 {
        starts += u32::from(fixture.next().unwrap().starts_with("started "));
    }
    // 0, 50, 100, 200 and 400 ms; the processes themselves take time besides.
    let elapsed = before.elapsed();
    assert!(elapsed >= Duration::from_millis(750), "{elapsed:?}");
}

#[test]
fn who_is_asked_to_stop_asks_the_daemon_and_waits_for_it() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut fixture = Fixture::new("lives");
        fixture.up();
        kill(fixture.pid(), signal).unwrap();
        // The daemon gets the signal that the supervisor got, so that its log names the right one.
        if signal == Signal::SIGINT {
            assert_eq!(fixture.next_news().as_deref(), Some("SIGINT"));
        }
        assert_eq!(fixture.next_news().as_deref(), Some("exit 0"), "the daemon");
        assert_eq!(fixture.next().as_deref(), Some("exit 0"), "the supervisor");
        assert_eq!(fixture.code(), Some(0));
    }
}

/// As `timeout` sends it: to the program, and to its process group.
#[test]
fn a_request_to_stop_that_comes_twice_at_once_is_one() {
    for _ in 0..10 {
        let mut fixture = Fixture::new("lives");
        fixture.up();
        for _ in 0..3 {
            // The third may find nobody.
            let _ = kill(fixture.pid(), Signal::SIGTERM);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(fixture.next_news().as_deref(), Some("exit 0"), "the daemon");
        assert_eq!(fixture.code(), Some(0));
    }
}

#[test]
fn a_daemon_without_its_supervisor_stops() {
    let mut fixture = Fixture::new("lives");
    fixture.up();
    kill(fixture.pid(), Signal::SIGKILL).unwrap();
    assert_eq!(fixture.next_news().as_deref(), Some("exit 0"));
    assert_eq!(fixture.next(), None, "nobody is left");
}

#[test]
fn a_supervisor_that_was_stopped_itself_blames_nobody() {
    let mut fixture = Fixture::new("lives");
    let daemon = fixture.up();
    kill(fixture.pid(), Signal::SIGSTOP).unwrap();
    std::thread::sleep(Timing::default().silence * 2);
    kill(fixture.pid(), Signal::SIGCONT).unwrap();
    fixture.expect_reload();
    kill(fixture.pid(), Signal::SIGTERM).unwrap();
    assert_eq!(fixture.next_news().as_deref(), Some("exit 0"), "{daemon} is the first one still");
}

#[test]
fn the_service_manager_hears_that_the_supervisor_lives_and_that_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let manager = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut fixture = Fixture::of(
        myself("supervisor")
            .env(DAEMON, "lives")
            .env("NOTIFY_SOCKET", folder.path().join("notify"))
            .env("WATCHDOG_USEC", "100000"),
    );
    fixture.up();
    let hear = || {
        let mut buffer = [0; 200];
        let size = manager.recv(&mut buffer).expect("a word");
        String::from_utf8_lossy(&buffer[..size]).into_owned()
    };
    assert_eq!(hear(), "WATCHDOG=1\n");
    assert_eq!(hear(), "WATCHDOG=1\n");
    kill(fixture.pid(), Signal::SIGTERM).unwrap();
    while hear() != "STOPPING=1\n" {}
    assert_eq!(fixture.code(), Some(0));
}
