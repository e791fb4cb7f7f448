//! What a run is: a link around a command, or between two namespaces that exist.

use crate::EmuError;
use crate::air::Air;
use crate::control::Control;
use crate::log::Log;
use crate::namespace::{self, Namespace};
use crate::nat::{self, Nat};
use crate::port::{self, End, Port, Slot};
use crate::pump::{self, Lane, Lanes, Report};
use airtcp_core::Duration;
use airtcp_net::config::LinkConfig;
use airtcp_net::wifi::ChannelConfig;
use airtcp_net::{Link, LinkStreams, Trace};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc;
use std::thread;

/// The variable that tells the command the IPv4 address of the outside end.
pub const OUTSIDE: &str = "AIRTCP_LINK_OUTSIDE";
/// The same for its IPv6 address; in reach where the machine has IPv6.
pub const OUTSIDE6: &str = "AIRTCP_LINK_OUTSIDE6";

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// What it is made of.
    pub config: &'a LinkConfig,
    /// A recorded rate that replaces the configured one.
    pub trace: Option<&'a Trace>,
    /// Where to write a log in Mahimahi's format.
    pub log: Option<&'a Path>,
}

/// A link: its two directions and what goes with them.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// From the inside to the outside.
    pub up: Way<'a>,
    /// From the outside to the inside.
    pub down: Way<'a>,
    /// The air between the inside and the link.
    pub air: Option<&'a ChannelConfig>,
    /// Same seed, same draws; what they meet depends on the traffic.
    pub seed: u64,
    /// How late packets may be ([`Report::kept_up`]). From 10 ms on, the emulator sleeps until
    /// each packet's time; below, it wakes up 150 us earlier, for up to a sixth of a processor.
    pub late: Duration,
    /// Where to listen for orders ([`crate::control`]).
    pub control: Option<&'a Path>,
    /// For the header of logs.
    pub command_line: &'a str,
}

impl Setup<'_> {
    /// Makes the files of the logs, too.
    fn lanes(&self) -> Result<Lanes, EmuError> {
        Ok(Lanes {
            up: self.lane("up", "Uplink", self.up)?,
            down: self.lane("down", "Downlink", self.down)?,
            air: self.air.map(|config| Air::new(config, self.seed)),
        })
    }

    fn lane(&self, name: &str, title: &str, way: Way<'_>) -> Result<Lane, EmuError> {
        let Way { config, trace, log } = way;
        let mut link = Link::new(config, LinkStreams::named(self.seed, name));
        if let Some(trace) = trace {
            link = link.with_trace(trace.clone());
        }
        if self.control.is_some() || log.is_some() {
            let outage = config.outage.as_ref();
            link = link.steered(outage.map(|outage| outage.mode).unwrap_or_default());
        }
        if log.is_some() {
            link = link.reporting_departures();
        }
        let log = log.map(|path| Log::create(path, title, self.command_line, config, trace));
        Ok(Lane { link, log: log.transpose()? })
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What a shell would say of the command (128 + signal when one ended it); 0 without a command.
    pub code: i32,
    /// What the link did.
    pub report: Report,
}

/// Runs `command` in a new network namespace whose only way out is the link. `tell` hears, in a
/// line each, what was set up.
///
/// The outside end is in the calling thread's namespace, which gets a device and its addresses,
/// and, when it forwards packets, a table of nftables that masquerades the inside. SIGINT and
/// SIGQUIT are left to the command, as a shell does; SIGTERM and SIGHUP are passed to it. It is
/// killed when this process is. It finds the addresses of the outside end in [`OUTSIDE`] and
/// [`OUTSIDE6`].
///
/// # Errors
/// Something needed is missing: the network is then as before.
pub fn around_command(
    setup: Setup<'_>,
    command: &[OsString],
    tell: &mut dyn FnMut(&str),
) -> Result<Outcome, EmuError> {
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    let control = setup.control.map(Control::listen).transpose()?;
    let lanes = setup.lanes()?;
    let (outside, slot) = make_first(Slot::first_free()?)?;
    Port::configure(slot, End::Outside, false)?;
    let (inside_is, inside_made) = mpsc::channel();
    let (start, started) = mpsc::channel::<()>();
    let (command_is, command_started) = mpsc::channel();
    let (ended, stop) = UnixStream::pair()?;
    thread::scope(|scope| {
        let runner = scope.spawn(move || -> Result<(ExitStatus, u64), EmuError> {
            // The end of this thread ends the pump.
            let _ended = ended;
            namespace::enter_new()?;
            let inside = Port::make(slot)?.expect("a new namespace has no devices");
            Port::configure(slot, End::Inside, true)?;
            nat::forward()?;
            if inside_is.send(inside).is_err() || started.recv().is_err() {
                // The other end failed; report its error.
                return Ok((ExitStatus::default(), 0));
            }
            let mut child = spawn(command, slot)?;
            let watch = signals.handle();
            let pid = Pid::from_raw(child.id() as i32);
            let _ = command_is.send(pid);
            thread::scope(|scope| {
                scope.spawn(|| pass_on(&mut signals, pid));
                let status = child.wait();
                watch.close();
                Ok((status?, port::dropped_by_kernel(slot)?))
            })
        });
        let Ok(inside) = inside_made.recv() else {
            return Err(match runner.join() {
                Ok(Err(error)) => error,
                Ok(Ok(_)) => std::io::Error::other("the namespace was not made").into(),
                Err(panic) => std::panic::resume_unwind(panic),
            });
        };
        let _nat = masquerade(slot, tell);
        let _ = start.send(());
        let report =
            pump::run(&inside, &outside, lanes, setup.late, control.as_ref(), stop.as_fd());
        if let (Err(_), Ok(pid)) = (&report, command_started.recv()) {
            // Without its link the command has nothing to wait for.
            let _ = kill(pid, Signal::SIGKILL);
        }
        let joined = runner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (status, inside_drops) = joined?;
        let dropped_by_kernel = inside_drops + port::dropped_by_kernel(slot)?;
        let report = Report { dropped_by_kernel, ..report? };
        Ok(Outcome { code: code(status), report })
    })
}

/// Joins two namespaces until SIGINT, SIGTERM or SIGHUP. The first is the inside, but no route is
/// set in either beyond the addresses of the link's ends. `tell` hears of the devices.
///
/// # Errors
/// There is no such namespace, or something needed is missing: both are then as before.
pub fn between(
    setup: Setup<'_>,
    [first, second]: [&str; 2],
    tell: &mut dyn FnMut(&str),
) -> Result<Outcome, EmuError> {
    let (inner, outer) = (Namespace::named(first)?, Namespace::named(second)?);
    let control = setup.control.map(Control::listen).transpose()?;
    let lanes = setup.lanes()?;
    let (stop, signalled) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, signalled.try_clone()?)?;
    }
    let lowest = inner.within(Slot::first_free)?.max(outer.within(Slot::first_free)?);
    let (outside, slot) = outer.within(|| make_first(lowest))?;
    let inside = inner.within(|| Port::make(slot))?;
    let Some(inside) = inside else {
        let name = format!("{} appeared in {first:?} meanwhile", slot.device());
        return Err(EmuError::Tun(std::io::Error::other(name)));
    };
    outer.within(|| Port::configure(slot, End::Outside, false))?;
    inner.within(|| Port::configure(slot, End::Inside, false))?;
    tell(&format!(
        "{}: {} in {first}, {} in {second}",
        slot.device(),
        slot.ipv4(End::Inside),
        slot.ipv4(End::Outside)
    ));
    let report = pump::run(&inside, &outside, lanes, setup.late, control.as_ref(), stop.as_fd());
    let report = report?;
    let drops = || port::dropped_by_kernel(slot).map_err(EmuError::from);
    let dropped_by_kernel = inner.within(drops)? + outer.within(drops)?;
    Ok(Outcome { code: 0, report: Report { dropped_by_kernel, ..report } })
}

/// The device with the first number from `slot` on that is free in the calling thread's namespace.
fn make_first(mut slot: Slot) -> Result<(Port, Slot), EmuError> {
    loop {
        match Port::make(slot)? {
            Some(port) => return Ok((port, slot)),
            None => slot = slot.next(),
        }
    }
}

fn masquerade(slot: Slot, tell: &mut dyn FnMut(&str)) -> Option<Nat> {
    if !nat::forwards() {
        tell(
            "only this host is in reach behind the link (to reach further: \
             `sysctl -w net.ipv4.ip_forward=1`)",
        );
        return None;
    }
    match Nat::new(slot) {
        Ok(nat) => Some(nat),
        Err(error) => {
            tell(&format!(
                "only this host is in reach behind the link: `nft`: {error} (package nftables)"
            ));
            None
        }
    }
}

/// Starts the command so that it is killed when the calling thread ends, which only a process can
/// arrange for itself: `setpriv` does, and becomes the command.
fn spawn(command: &[OsString], slot: Slot) -> Result<Child, EmuError> {
    let failed = |source| EmuError::Program { program: "setpriv", package: "util-linux", source };
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--"])
        .args(command)
        .env(OUTSIDE, slot.ipv4(End::Outside).to_string())
        .env(OUTSIDE6, slot.ipv6(End::Outside).to_string())
        .spawn()
        .map_err(failed)
}

fn pass_on(signals: &mut Signals, child: Pid) {
    for signal in signals.forever() {
        let signal = match signal {
            SIGTERM => Signal::SIGTERM,
            SIGHUP => Signal::SIGHUP,
            _ => continue,
        };
        // It may just have ended.
        let _ = kill(child, signal);
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
