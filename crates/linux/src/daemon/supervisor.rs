//! A small parent that keeps the daemon alive: restarts it when it dies, kills it when it hangs.
//!
//! [`supervise`] is the parent's part, [`Heartbeat`] the child's. A socket pair, which is the
//! child's standard input, joins them: the child's loop sends a byte at least every [`INTERVAL`],
//! and each side sees when the other has ended. A child that is silent for [`Timing::silence`], or
//! stopped, is killed: while it lives, packets wait in its queue; once it is dead, they pass, and
//! its promises are on file. A child that has nothing to do says that it [rests](Pace::Resting), and
//! both wake up less often: on a battery, or on a router, each wake-up costs.
//!
//! A child that only waits for a processor or for the disk does not hang ([`Activity`]): its successor
//! would wait for the same, without the child's connections. It has until [`Timing::longest_silence`].
//!
//! The parent does nothing that could fail or block for long, so that it needs no parent itself. If
//! it dies nevertheless, the child gets SIGTERM (`PR_SET_PDEATHSIG`).

use super::notify;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longest interval between two calls of [`Heartbeat::beat`].
pub const INTERVAL: Duration = Duration::from_millis(100);

/// Longest time from the heartbeat of a child that rests to its next one.
pub const LONGEST_REST: Duration = Duration::from_secs(1);

/// Exit code of a daemon that rejects its input: restarting it would not help.
const BAD_INPUT: i32 = 2;

/// Lifetime from which on a daemon is restarted without a pause.
const LONG_ENOUGH: Duration = Duration::from_secs(5);

/// Pause before the third start of a daemon that dies early; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Longest pause before a restart.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Priority of supervisor and daemon, above ordinary work: packets wait while the daemon waits for
/// a processor.
const NICE: i32 = -10;

/// The supervisor itself was not running if it wakes up later than this after a deadline.
const OVERSLEPT: Duration = Duration::from_millis(100);

/// The child's end of the socket pair.
#[derive(Debug)]
pub struct Heartbeat {
    parent: UnixStream,
    last: Option<(Instant, Pace)>,
}

/// When the next heartbeat comes, as the last one said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Pace {
    /// Within [`INTERVAL`].
    Working = b'w',
    /// The loop waits for something to do: at once when it comes, and within [`LONGEST_REST`] without.
    Resting = b'r',
}

impl Heartbeat {
    /// The heartbeat of a daemon that [`supervise`] started, whose loop its first thread runs. From
    /// now on the process gets SIGTERM when the supervisor dies.
    ///
    /// # Errors
    /// Standard input is not the supervisor's socket, or the supervisor has already ended.
    pub fn from_stdin() -> io::Result<Self> {
        nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
        let parent = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        parent.set_nonblocking(true)?;
        // The supervisor may have died before PR_SET_PDEATHSIG was set.
        match (&parent).read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
            Ok(_) => return Err(io::Error::other("the supervisor has ended")),
        }
        Ok(Self { parent, last: None })
    }

    /// Reports that the loop is alive at `now`; the first call, that the daemon is up. Cheap; never
    /// blocks.
    pub fn beat(&mut self, now: Instant, pace: Pace) {
        let is_known = |(last, before): (Instant, _)| {
            before == pace && now.duration_since(last) < INTERVAL / 2
        };
        if !self.last.is_some_and(is_known) {
            self.last = Some((now, pace));
            // A full socket means that the supervisor is stopped. If it dies, the daemon gets
            // SIGTERM.
            let _ = self.parent.write(&[pace as u8]);
        }
    }
}

/// Timeouts of the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Longest time from the start to the first heartbeat.
    pub start: Duration,
    /// Longest time between two heartbeats; after one of a child that rests, [`LONGEST_REST`] more.
    pub silence: Duration,
    /// The same for a child that waits for a processor or the disk.
    pub longest_silence: Duration,
    /// Longest time from the request to stop to the end.
    pub stop: Duration,
}

/// 60 s, 500 ms, 2 s, 10 s: flows stall for less than a second if the daemon hangs. A start does not
/// stall them, and a slow processor may need many seconds to verify the BPF programs.
impl Default for Timing {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            silence: Duration::from_millis(500),
            longest_silence: Duration::from_secs(2),
            stop: Duration::from_secs(10),
        }
    }
}

/// What the child's loop, its first thread, does at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Activity {
    state: State,
    /// Processor time so far, in the clock's ticks.
    ticks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It runs, or waits for a processor.
    Running,
    /// It waits for the disk or for a lock in the kernel. A signal does not end most of these waits.
    Uninterruptible,
    /// It waits for something else.
    Other,
}

impl Activity {
    fn of(child: &Child) -> Option<Self> {
        let id = child.id();
        Self::parse(&std::fs::read_to_string(format!("/proc/{id}/task/{id}/stat")).ok()?)
    }

    /// From the text of /proc/PID/task/TID/stat (proc_pid_stat(5)).
    fn parse(stat: &str) -> Option<Self> {
        // The second field, a name, may contain anything.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = match fields.next()? {
            "R" => State::Running,
            "D" => State::Uninterruptible,
            _ => State::Other,
        };
        // Fields 14 and 15: in user mode, in the kernel.
        let mut ticks = fields.skip(10).map(str::parse::<u64>);
        Some(Self { state, ticks: ticks.next()?.ok()? + ticks.next()?.ok()? })
    }

    /// True if it did not get to its heartbeat for lack of a processor or of the disk; `before` is what it did
    /// when it was asked last, if it was silent already.
    fn is_held_up(self, before: Option<Self>) -> bool {
        match self.state {
            State::Uninterruptible => true,
            // A loop without end has used its time.
            State::Running => {
                before.is_none_or(|before| self.ticks.saturating_sub(before.ticks) <= FEW_TICKS)
            }
            State::Other => false,
        }
    }
}

/// Processor time that a child may get in half of [`Timing::silence`] and still be short of it, in ticks (USER_HZ:
/// 10 ms wherever this is built for).
const FEW_TICKS: u64 = 5;

/// End of a daemon.
struct End {
    status: ExitStatus,
    /// The daemon was asked to stop.
    asked: bool,
    /// The daemon had sent a heartbeat.
    came_up: bool,
}

/// Requests to stop that come so soon after the first one are the same: `timeout` sends its signal to
/// the program and to its process group, and a terminal to all of it.
const ONE_REQUEST: Duration = Duration::from_secs(1);

/// Runs `daemon` until SIGTERM or SIGINT, or until a restart would not help: it rejected its input
/// (exit code 2), or ended before it ever came up. All three signals, SIGHUP too, are passed on.
/// Returns the exit code.
///
/// # Errors
/// The daemon cannot be started, or there are no more file descriptors.
pub fn supervise(daemon: &mut Command, timing: Timing) -> io::Result<i32> {
    let mut supervisor = Supervisor::new(timing)?;
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        // Needs CAP_SYS_NICE, unless the service manager has set the priority.
        tracing::debug!(%error, "the gateway runs with ordinary priority");
    }
    let mut came_up_once = false;
    let mut pause = Duration::ZERO;
    loop {
        let started = Instant::now();
        let End { status, asked, came_up } = supervisor.run(daemon)?;
        came_up_once |= came_up;
        match status.code() {
            Some(code) if asked || code == 0 || code == BAD_INPUT || !came_up_once => {
                return Ok(code);
            }
            // It was asked to stop before it handled signals.
            None if asked && matches!(status.signal(), Some(SIGTERM | SIGINT)) => return Ok(0),
            None if asked => {
                tracing::error!(
                    "daemon killed because it did not stop; its rules remain and let packets pass"
                );
                return Ok(1);
            }
            _ => {}
        }
        if started.elapsed() >= LONG_ENOUGH {
            pause = Duration::ZERO;
        }
        tracing::error!(
            code = status.code(),
            signal = status.signal(),
            pause_ms = pause.as_millis() as u64,
            "daemon died; restarting it"
        );
        if supervisor.pause(pause)? {
            return Ok(0);
        }
        pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
    }
}

/// True if the child was stopped by a signal since the last call.
fn is_stopped(child: &Child) -> io::Result<bool> {
    let id = Id::Pid(Pid::from_raw(child.id() as i32));
    match waitid(id, WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG) {
        Ok(status) => Ok(matches!(status, WaitStatus::Stopped(..))),
        // The child has ended: without WEXITED, Linux ignores zombies.
        Err(nix::Error::ECHILD) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

struct Supervisor {
    timing: Timing,
    signals: Signals,
    /// Readable when there are signals.
    wake: UnixStream,
    /// Interval between two notifications of the service manager's watchdog, and the next one's
    /// time.
    watchdog: Option<(Duration, Instant)>,
}

impl Supervisor {
    fn new(timing: Timing) -> io::Result<Self> {
        const CAUGHT: [i32; 4] = [SIGTERM, SIGINT, SIGHUP, SIGCHLD];
        let signals = Signals::new(CAUGHT)?;
        // Registered after `signals`, which then has the signal when `wake` becomes readable.
        let (wake, signalled) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        for signal in CAUGHT {
            signal_hook::low_level::pipe::register(signal, signalled.try_clone()?)?;
        }
        let watchdog = notify::watchdog_period().map(|period| (period / 2, Instant::now()));
        Ok(Self { timing, signals, wake, watchdog })
    }

    /// Starts the daemon and supervises it until it ends.
    fn run(&mut self, daemon: &mut Command) -> io::Result<End> {
        let (mine, theirs) = UnixStream::pair()?;
        mine.set_nonblocking(true)?;
        // In a separate process group it does not get the terminal's SIGINT in addition to the
        // supervisor's.
        let mut child =
            daemon.stdin(Stdio::from(OwnedFd::from(theirs))).process_group(0).spawn()?;
        // Closes the command's copy of the child's end.
        daemon.stdin(Stdio::null());
        let end = self.attend(&mut child, mine);
        if end.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        end
    }

    fn attend(&mut self, child: &mut Child, heart: UnixStream) -> io::Result<End> {
        let mut heart = Some(heart);
        let mut deadline = Some(Instant::now() + self.timing.start);
        let (mut came_up, mut second_chance) = (false, true);
        // Its last heartbeat, the latest time for the next one, and what it did when that was overdue.
        let (mut last_beat, mut latest) = (Instant::now(), None);
        let mut silent: Option<Activity> = None;
        let mut asked: Option<Instant> = None;
        loop {
            self.wait(heart.as_ref(), deadline)?;
            let now = Instant::now();
            // Looked at before its heartbeats are read: what it does after one is not why it was silent.
            let is_due = deadline.is_some_and(|due| due <= now);
            let activity = is_due.then(|| Activity::of(child)).flatten();
            if let Some(status) = child.try_wait()? {
                // Its last heartbeats may not have been read yet.
                came_up |= matches!(heart.as_mut().map(beats), Some(Beats::Some(_)));
                return Ok(End { status, asked: asked.is_some(), came_up });
            }
            if is_stopped(child)? {
                tracing::error!("daemon stopped by a signal while packets wait; killing it");
                send(child, Signal::SIGKILL);
                deadline = None;
            }
            for signal in self.signals.pending() {
                match signal {
                    // Earlier, it has not read its configuration yet.
                    SIGHUP if came_up => send(child, Signal::SIGHUP),
                    SIGTERM | SIGINT if asked.is_some_and(|at| now - at < ONE_REQUEST) => {}
                    SIGTERM | SIGINT if asked.is_some() => send(child, Signal::SIGKILL),
                    SIGTERM | SIGINT => {
                        asked = Some(now);
                        notify::stopping();
                        // The same one, which the daemon's log then names.
                        let asking =
                            if signal == SIGINT { Signal::SIGINT } else { Signal::SIGTERM };
                        send(child, asking);
                        deadline = Some(now + self.timing.stop);
                        latest = None;
                    }
                    _ => {}
                }
            }
            match heart.as_mut().map(beats) {
                Some(Beats::Some(last)) if asked.is_none() => {
                    (came_up, second_chance) = (true, true);
                    let rest = match last {
                        Pace::Working => Duration::ZERO,
                        Pace::Resting => LONGEST_REST,
                    };
                    deadline = Some(now + self.timing.silence + rest);
                    latest = Some(now + self.timing.longest_silence + rest);
                    if silent.take().is_some() {
                        let silent_ms = (now - last_beat).as_millis() as u64;
                        tracing::warn!(
                            silent_ms,
                            "the daemon waited for a processor or the disk, and packets for it"
                        );
                    }
                    last_beat = now;
                }
                // The daemon is ending; otherwise the deadline passes.
                Some(Beats::Closed) => heart = None,
                _ => {}
            }
            let Some(due) = deadline.filter(|due| *due <= now) else { continue };
            if second_chance && now - due > OVERSLEPT {
                // The whole machine may have been suspended.
                second_chance = false;
                deadline = Some(now + self.timing.silence / 2);
                continue;
            }
            if let Some(latest) = latest.filter(|latest| now < *latest)
                && activity.is_some_and(|activity| activity.is_held_up(silent))
            {
                silent = activity;
                deadline = Some(latest.min(now + self.timing.silence / 2));
                continue;
            }
            tracing::error!(
                came_up,
                asked = asked.is_some(),
                state = activity.map(|activity| format!("{:?}", activity.state)),
                "daemon unresponsive; killing it"
            );
            send(child, Signal::SIGKILL);
            deadline = None;
        }
    }

    /// Waits before the next start; true if asked to stop meanwhile.
    fn pause(&mut self, length: Duration) -> io::Result<bool> {
        let end = Instant::now() + length;
        loop {
            if self.signals.pending().any(|signal| matches!(signal, SIGTERM | SIGINT)) {
                notify::stopping();
                return Ok(true);
            }
            if Instant::now() >= end {
                return Ok(false);
            }
            self.wait(None, Some(end))?;
        }
    }

    /// Waits for a signal, for a heartbeat on `heart` or its end, or until the deadline; feeds the
    /// service manager's watchdog when due.
    fn wait(&mut self, heart: Option<&UnixStream>, deadline: Option<Instant>) -> io::Result<()> {
        let now = Instant::now();
        if let Some((period, due)) = &mut self.watchdog
            && *due <= now
        {
            notify::alive();
            *due = now + *period;
        }
        let until = deadline.into_iter().chain(self.watchdog.map(|(_, due)| due)).min();
        let timeout = match until {
            Some(until) => {
                // Rounded up, so as not to spin in the last millisecond.
                let left = until.saturating_duration_since(now) + Duration::from_micros(999);
                PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
            }
            None => PollTimeout::NONE,
        };
        let mut sources = vec![PollFd::new(self.wake.as_fd(), PollFlags::POLLIN)];
        sources.extend(heart.map(|heart| PollFd::new(heart.as_fd(), PollFlags::POLLIN)));
        match poll(&mut sources, timeout) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Drained; the signals themselves are in `signals`.
        while matches!(self.wake.read(&mut [0; 64]), Ok(1..)) {}
        Ok(())
    }
}

/// Heartbeats since the last call of [`beats`].
enum Beats {
    None,
    /// The last one's pace.
    Some(Pace),
    Closed,
}

fn beats(heart: &mut UnixStream) -> Beats {
    let mut beats = Beats::None;
    let mut bytes = [0; 64];
    loop {
        match heart.read(&mut bytes) {
            // Heartbeats before the end count; the end is read again next time.
            Ok(0) if matches!(beats, Beats::Some(_)) => return beats,
            Ok(0) => return Beats::Closed,
            Ok(count) if bytes[count - 1] == Pace::Resting as u8 => {
                beats = Beats::Some(Pace::Resting);
            }
            Ok(_) => beats = Beats::Some(Pace::Working),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return beats,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Beats::Closed,
        }
    }
}

/// Sends a signal to a child that has not been waited for, so that the process id is still its own.
fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("process ids are positive"));
    if let Err(error) = kill(pid, signal) {
        tracing::warn!(%error, %signal, "cannot signal the daemon");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_has_ended_is_not_stopped() {
        let mut child = Command::new("true").spawn().unwrap();
        let id = Id::Pid(Pid::from_raw(child.id() as i32));
        waitid(id, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
        assert!(!is_stopped(&child).unwrap());
        child.wait().unwrap();
    }

    #[test]
    fn who_waits_for_a_processor_or_the_disk_does_not_hang() {
        let stat = |state, ticks| {
            format!("7 (air) tcp) {state} 1 7 7 0 -1 4194560 60 0 0 0 {ticks} 2 9 9 20 0 1 0 5 8 9")
        };
        let activity = |state, ticks| Activity::parse(&stat(state, ticks)).unwrap();
        assert_eq!(activity("R", 40), Activity { state: State::Running, ticks: 42 });
        let before = Some(activity("R", 40));
        assert!(activity("R", 42).is_held_up(before), "no processor");
        assert!(!activity("R", 60).is_held_up(before), "a loop without end");
        assert!(activity("R", 60).is_held_up(None), "not known yet");
        assert!(activity("D", 40).is_held_up(before), "the disk, or a lock of the kernel");
        assert!(!activity("S", 40).is_held_up(before), "a lock of its own");
        assert_eq!(Activity::parse("7 (airtcp"), None);
    }

    #[test]
    fn the_last_heartbeats_count_although_the_socket_is_closed() {
        let (mut mine, mut theirs) = UnixStream::pair().unwrap();
        mine.set_nonblocking(true).unwrap();
        theirs.write_all(&[Pace::Resting as u8, Pace::Working as u8]).unwrap();
        drop(theirs);
        assert!(matches!(beats(&mut mine), Beats::Some(Pace::Working)));
        assert!(matches!(beats(&mut mine), Beats::Closed));
    }
}
