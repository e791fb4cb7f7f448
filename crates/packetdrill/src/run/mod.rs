//! The runner: events of a script in simulated time, one after the other.
//!
//! `host.rs` has the sockets and connections, `calls.rs` their system calls, `packet.rs` compares
//! segments, `info.rs` is `tcp_info`. Time passes only in [`Runner::advance`] and while a packet is
//! awaited; whatever the endpoint sends waits in order until the script expects a packet.

mod calls;
mod host;
pub(crate) mod info;
mod packet;

use crate::needs;
use crate::outcome::{Failure, Verdict};
use crate::python::{self, Stop as CodeStop, Variables};
use crate::script::{Action, Call, Direction, Event, Expr, Packet, Script, Time};
use crate::settings::Settings;
use airtcp_core::{Duration, Instant};
use calls::{Progress, Return};
use host::Host;
use packet::{ClockCheck, Numbers, seconds};

/// Longest wait for a packet whose time does not matter (`*`).
const PATIENCE: Duration = Duration::from_secs(1000);
/// Most timer expiries while waiting for one event; more means an endless loop.
const MOST_EXPIRIES: u32 = 1_000_000;

/// Runs a script on the endpoint. `files` returns the text of a shell script that the script's
/// commands run, such as `../common/defaults.sh`.
pub fn run(script: &Script, files: &dyn Fn(&str) -> Option<String>) -> Verdict {
    let settings = Settings::of(script, files);
    let mut lacking = settings.needs.clone();
    lacking.extend(needs::of(script, files));
    if !lacking.is_empty() {
        return Verdict::Needs(needs::once(lacking));
    }
    let mut runner = Runner::new(settings, files);
    let mut events = script.events.iter().try_for_each(|event| runner.play(event));
    if events.is_ok() {
        events = runner.finish_blocked();
    }
    match events {
        Ok(()) => Verdict::Passes,
        Err(Stop::Fails(failure)) => Verdict::Fails(failure),
        Err(Stop::Needs(need)) => Verdict::Needs(vec![need]),
    }
}

/// Reason for ending a script early.
enum Stop {
    Fails(Failure),
    Needs(String),
}

fn fails<T>(line: usize, expected: impl Into<String>, got: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Fails(Failure { line, expected: expected.into(), got: got.into() }))
}

/// Allowed time of an event.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: Instant,
    to: Instant,
    tolerance: Duration,
    /// The script fixes the time of this event itself.
    anchored: bool,
}

impl Window {
    fn admits(&self, at: Instant) -> bool {
        at + self.tolerance >= self.from && at <= self.to + self.tolerance
    }

    fn show(&self) -> String {
        match self.from == self.to {
            true => format!("at {} ± {}", seconds(self.from), self.tolerance),
            false => {
                format!("from {} to {} ± {}", seconds(self.from), seconds(self.to), self.tolerance)
            }
        }
    }
}

/// A call that has not returned.
struct Blocked {
    call: Call,
    line: usize,
    /// Expected return of the call, and the allowed deviation.
    end: Instant,
    tolerance: Duration,
    progress: Progress,
}

struct Runner<'f> {
    files: &'f dyn Fn(&str) -> Option<String>,
    settings: Settings,
    host: Host,
    numbers: Numbers,
    variables: Variables,
    now: Instant,
    /// Time of the previous event, if the script fixes it.
    anchor: Option<Instant>,
    /// Time of the previous event.
    before: Instant,
    blocked: Option<Blocked>,
}

impl<'f> Runner<'f> {
    fn new(settings: Settings, files: &'f dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            files,
            host: Host::new(settings.config.clone(), settings.ecn_of_connect),
            settings,
            numbers: Numbers::default(),
            variables: Variables::new(),
            now: Instant::ZERO,
            anchor: None,
            before: Instant::ZERO,
            blocked: None,
        }
    }

    fn play(&mut self, event: &Event) -> Result<(), Stop> {
        let window = self.window(event.time);
        match &event.action {
            Action::Packet(packet) if packet.direction == Direction::Outbound => {
                self.expect(event, packet, window)?;
            }
            action => {
                self.advance(window.from)?;
                // An event before it may have taken longer than the script says.
                if !window.admits(self.now) {
                    return fails(
                        event.line,
                        format!("this event {}", window.show()),
                        seconds(self.now),
                    );
                }
                self.act(event, action, window)?;
            }
        }
        self.anchor = window.anchored.then_some(window.from);
        self.before = if window.anchored { window.from } else { self.now };
        Ok(())
    }

    fn act(&mut self, event: &Event, action: &Action, window: Window) -> Result<(), Stop> {
        match action {
            Action::Packet(packet) => self.inject(packet),
            Action::Foreign(what) => Err(Stop::Needs((*what).to_owned())),
            Action::Call(call) => self.start(event, call, window),
            Action::Shell(text) => {
                self.settings.setup(text, self.files);
                self.host.set(&self.settings);
                match self.settings.needs.first() {
                    Some(need) => Err(Stop::Needs(need.clone())),
                    None => Ok(()),
                }
            }
            Action::Code(text) => self.code(event, text),
        }
    }

    /// The allowed time of an event. Relative times count from the previous event if the script
    /// fixes its time, otherwise from now.
    fn window(&self, time: Time) -> Window {
        let anchor = self.anchor.unwrap_or(self.now);
        let (from, to, anchored) = match time {
            Time::At(at) => (Instant::ZERO + at, Instant::ZERO + at, true),
            Time::After(after) => (anchor + after, anchor + after, true),
            Time::AtBetween(from, to) => (Instant::ZERO + from, Instant::ZERO + to, false),
            Time::AfterBetween(from, to) => (self.now + from, self.now + to, false),
            Time::Any => (Instant::ZERO, self.now + PATIENCE, false),
        };
        let share = from.since(self.before).mul_f64(self.settings.tolerance_share);
        Window { from, to, tolerance: self.settings.tolerance.max(share), anchored }
    }

    /// Lets time pass up to `until`.
    fn advance(&mut self, until: Instant) -> Result<(), Stop> {
        for _ in 0..MOST_EXPIRIES {
            if !self.step(until)? {
                break;
            }
        }
        self.now = self.now.max(until);
        Ok(())
    }

    /// Handles the next timer due by `until`; returns false if there is none.
    fn step(&mut self, until: Instant) -> Result<bool, Stop> {
        let poll = self.blocked.as_ref().and_then(poll_deadline).filter(|at| *at > self.now);
        let next = self.host.next_deadline().into_iter().chain(poll).min();
        let Some(next) = next.filter(|next| *next <= until) else { return Ok(false) };
        self.now = self.now.max(next);
        self.host.on_timer(self.now);
        self.resume()?;
        Ok(true)
    }

    fn inject(&mut self, packet: &Packet) -> Result<(), Stop> {
        let segment = self.numbers.inbound(packet, Host::inbound_flow());
        let index = self.host.on_segment(self.now, segment);
        // The application acts before the acknowledgement leaves.
        self.resume()?;
        if let Some(index) = index {
            self.host.reply(self.now, index);
        }
        Ok(())
    }

    /// Checks the next segment that the endpoint sends, and its time.
    fn expect(&mut self, event: &Event, packet: &Packet, window: Window) -> Result<(), Stop> {
        let expected = || format!("`{}`", packet.text);
        let deadline = window.to + window.tolerance;
        let mut expiries = 0;
        while self.host.sent.is_empty() && expiries < MOST_EXPIRIES && self.step(deadline)? {
            expiries += 1;
        }
        let Some(sent) = packet::take(&mut self.host.sent, packet.len) else {
            self.now = self.now.max(deadline);
            let by = format!("no packet by {}", seconds(deadline));
            return fails(event.line, format!("{} {}", expected(), window.show()), by);
        };
        let since_start = window.from.since(Instant::ZERO).mul_f64(self.settings.tolerance_share);
        let clock = self.settings.timestamp_tick.map(|tick| ClockCheck {
            tick,
            // packetdrill: of clocks, the time since the start counts.
            tolerance: window.tolerance.max(since_start).max(Duration::from_millis(1)),
        });
        let got = format!("`{}` at {}", self.numbers.show(&sent.segment), seconds(sent.at));
        if let Some(what) = self.numbers.difference(packet, &sent.segment, clock) {
            return fails(event.line, expected(), format!("{got} ({what})"));
        }
        if event.time != Time::Any && !window.admits(sent.at) {
            return fails(event.line, format!("{} {}", expected(), window.show()), got);
        }
        Ok(())
    }

    fn start(&mut self, event: &Event, call: &Call, window: Window) -> Result<(), Stop> {
        self.finish_blocked()?;
        let mut progress = Progress { since: self.now, first: true, written: 0 };
        let result = self.host.call(self.now, call, &mut progress);
        progress.first = false;
        if result != Return::Blocks {
            return self.check(event.line, call, &result);
        }
        let Some(end) = call.end else {
            return fails(event.line, format!("`{}`", call.text), "a call that blocks");
        };
        // The end of a call counts as its start does.
        let end = match event.time {
            Time::At(_) => Instant::ZERO + end,
            Time::After(after) => Instant::ZERO + window.from.since(Instant::ZERO + after) + end,
            _ => window.from,
        };
        // packetdrill: of a call that blocks, the time from start to end counts.
        let share = end.since(window.from).mul_f64(self.settings.tolerance_share);
        let tolerance = self.settings.tolerance.max(share);
        let (call, line) = (call.clone(), event.line);
        self.blocked = Some(Blocked { call, line, end, tolerance, progress });
        Ok(())
    }

    /// Retries the blocked call after an event.
    fn resume(&mut self) -> Result<(), Stop> {
        let Some(mut blocked) = self.blocked.take() else { return Ok(()) };
        let result = self.host.call(self.now, &blocked.call, &mut blocked.progress);
        if result == Return::Blocks {
            self.blocked = Some(blocked);
            return Ok(());
        }
        self.check(blocked.line, &blocked.call, &result)?;
        let (at, tolerance) = (blocked.end, blocked.tolerance);
        let window = Window { from: at, to: at, tolerance, anchored: true };
        if !window.admits(self.now) {
            let expected = format!("`{}` to return {}", blocked.call.text, window.show());
            return fails(blocked.line, expected, format!("a return at {}", seconds(self.now)));
        }
        Ok(())
    }

    /// Waits for the blocked call as long as the script allows.
    fn finish_blocked(&mut self) -> Result<(), Stop> {
        let Some(blocked) = &self.blocked else { return Ok(()) };
        let deadline = blocked.end + blocked.tolerance;
        self.advance(deadline)?;
        match &self.blocked {
            Some(blocked) => {
                let expected =
                    format!("`{}` to return by {}", blocked.call.text, seconds(blocked.end));
                fails(blocked.line, expected, "a call that still blocks")
            }
            None => Ok(()),
        }
    }

    /// Compares the result of a call with the script's.
    fn check(&self, line: usize, call: &Call, result: &Return) -> Result<(), Stop> {
        let expected = || format!("`{}`", call.text);
        match result {
            Return::Lacks(what) => Err(Stop::Needs(what.clone())),
            Return::Wrong { expected, got } => {
                fails(line, format!("{expected} in `{}`", call.text), got.clone())
            }
            Return::Error(error) => {
                let same = call.result == Expr::Ellipsis
                    || call.result == Expr::Integer(-1)
                        && call.errno.as_deref().is_none_or(|errno| errno == *error);
                if same { Ok(()) } else { fails(line, expected(), format!("-1 {error}")) }
            }
            Return::Value(value) => {
                let same = matches!(&call.result, Expr::Integer(wanted) if wanted == value)
                    || call.result == Expr::Ellipsis;
                if same { Ok(()) } else { fails(line, expected(), value.to_string()) }
            }
            Return::Blocks => fails(line, expected(), "a call that blocks"),
        }
    }

    fn code(&mut self, event: &Event, text: &str) -> Result<(), Stop> {
        let view = self.host.current().map(|connection| connection.view(self.now));
        let lookup = |name: &str| info::value(name, view.as_ref());
        let statements = match python::parse(text) {
            Ok(statements) => statements,
            Err(python::Beyond(what)) => return Err(Stop::Needs(what)),
        };
        match python::run(&statements, &mut self.variables, &lookup) {
            Ok(()) => Ok(()),
            Err(CodeStop::Beyond(python::Beyond(what))) => Err(Stop::Needs(what)),
            Err(CodeStop::Assertion { line, test, values }) => {
                fails(event.line + line, format!("`{test}`"), values)
            }
        }
    }
}

/// Time at which a blocked `poll` times out.
fn poll_deadline(blocked: &Blocked) -> Option<Instant> {
    let timeout =
        blocked.call.arguments.get(2).filter(|_| blocked.call.name == "poll")?.integer()?;
    Some(blocked.progress.since + Duration::from_millis(u64::try_from(timeout).ok()?))
}
