//! A run of the emulator: a link around a command, or between two existing namespaces.

use crate::EmuError;
use crate::air::Air;
use crate::control::{Control, DirectionSettings};
use crate::corruption::Corruption;
use crate::filter::Filter;
use crate::log::Log;
use crate::namespace::{self, Namespace};
use crate::nat::{self, Nat};
use crate::port::{self, End, Port, Slot, Surroundings};
use crate::pump::{self, Lane, Lanes, Report};
use airtcp_core::{Duration, Stream};
use airtcp_net::config::LinkConfig;
use airtcp_net::wifi::ChannelConfig;
use airtcp_net::{Link, LinkStreams};
use ipnet::Ipv4Net;
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

/// Environment variable of the command: the IPv4 address of the outside end.
pub const OUTSIDE: &str = "AIRTCP_LINK_OUTSIDE";
/// Environment variable of the command: the IPv6 address of the outside end, reachable if the
/// machine has IPv6.
pub const OUTSIDE6: &str = "AIRTCP_LINK_OUTSIDE6";

/// Settings of one direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct DirectionSetup<'a> {
    /// The link model.
    pub config: &'a LinkConfig,
    /// Probability that a packet that leaves the link has one bit flipped.
    pub corrupt: f64,
    /// File for a log in Mahimahi's format.
    pub log: Option<&'a Path>,
}

/// Settings of a link: its two directions, and what they share.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// From the inside to the outside.
    pub up: DirectionSetup<'a>,
    /// From the outside to the inside.
    pub down: DirectionSetup<'a>,
    /// The packets that go through the link; `None`: all.
    pub only: Option<&'a Filter>,
    /// The 802.11 hop between the inside and the link, if there is one.
    pub air: Option<&'a ChannelConfig>,
    /// Seed of the random draws. The same seed gives the same draws, but which packets they hit
    /// depends on the traffic.
    pub seed: u64,
    /// Bound on lateness ([`Report::kept_up`]). From 10 ms on, the emulator sleeps until each
    /// packet's time; below, it wakes up 150 us early, which takes up to a sixth of a processor.
    pub late: Duration,
    /// Path of the control socket ([`crate::control`]).
    pub control: Option<&'a Path>,
    /// IPv4 block that the link takes its addresses from; `None`: one that is not in use.
    pub prefix: Option<Ipv4Net>,
    /// Command line written to the header of logs.
    pub command_line: &'a str,
}

impl Setup<'_> {
    /// Builds both directions and the wireless hop, and creates the log files.
    fn lanes(&self) -> Result<Lanes, EmuError> {
        Ok(Lanes {
            up: self.lane("up", "Uplink", self.up)?,
            down: self.lane("down", "Downlink", self.down)?,
            only: self.only.cloned(),
            air: self.air.map(|config| Air::new(config, self.seed)),
        })
    }

    fn lane(&self, name: &str, title: &str, setup: DirectionSetup<'_>) -> Result<Lane, EmuError> {
        let DirectionSetup { config, corrupt, log } = setup;
        let streams = LinkStreams::named(self.seed, name).of_path("link");
        let mut link = Link::new(config, streams);
        if name == "up" {
            link = link.from_mobile();
        }
        if self.control.is_some() {
            let mode = config.outages().map(|outages| outages.mode);
            link = link.steered(mode.unwrap_or_default());
        }
        if log.is_some() {
            link.report_departures();
        }
        let create = |path| Log::create(path, title, self.command_line, config, streams);
        let log = log.map(create);
        let stream = Stream::new(self.seed, &format!("link/{name}/corrupt"));
        Ok(Lane {
            link,
            corruption: Corruption::new(corrupt, stream),
            beside: 0,
            log: log.transpose()?,
            settings: DirectionSettings::of(setup),
            name: name.to_owned(),
            seed: self.seed,
            changes: 0,
        })
    }
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Exit code of the command as a shell reports it (128 + signal); 0 without a command.
    pub code: i32,
    /// Counters and lateness of the link.
    pub report: Report,
}

/// Runs `command` in a new network namespace whose only connection is the link. `notify` gets a
/// line for each limitation of the setup.
///
/// The outside end is in the calling thread's namespace, which gets a device and its addresses,
/// and, when it forwards packets, a table of nftables that masquerades the inside. SIGINT and
/// SIGQUIT are left to the command, as a shell does; SIGTERM and SIGHUP are passed to it. It is
/// killed when this process is. [`OUTSIDE`] and [`OUTSIDE6`] hold the addresses of the outside end.
///
/// # Errors
/// Something needed is missing: the network is then as before.
pub fn around_command(
    setup: Setup<'_>,
    command: &[OsString],
    notify: &mut dyn FnMut(&str),
) -> Result<Outcome, EmuError> {
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    let control = setup.control.map(Control::listen).transpose()?;
    let lanes = setup.lanes()?;
    let around = [Surroundings::read()?];
    let (outside, slot) = make_first(Slot::choose(&around, setup.prefix)?)?;
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
        let _nat = masquerade(slot, notify);
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
/// set in either beyond the addresses of the link's ends. `notify` gets the names of the devices.
///
/// # Errors
/// A namespace does not exist, or something needed is missing: both are then as before.
pub fn between(
    setup: Setup<'_>,
    [first, second]: [&str; 2],
    notify: &mut dyn FnMut(&str),
) -> Result<Outcome, EmuError> {
    let (inner, outer) = (Namespace::named(first)?, Namespace::named(second)?);
    let control = setup.control.map(Control::listen).transpose()?;
    let lanes = setup.lanes()?;
    let (stop, signalled) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, signalled.try_clone()?)?;
    }
    let around = [inner.within(Surroundings::read)?, outer.within(Surroundings::read)?];
    let lowest = Slot::choose(&around, setup.prefix)?;
    let (outside, slot) = outer.within(|| make_first(lowest))?;
    let inside = inner.within(|| Port::make(slot))?;
    let Some(inside) = inside else {
        let name = format!("{} appeared in {first:?} meanwhile", slot.device());
        return Err(EmuError::Tun(std::io::Error::other(name)));
    };
    outer.within(|| Port::configure(slot, End::Outside, false))?;
    inner.within(|| Port::configure(slot, End::Inside, false))?;
    notify(&format!(
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

fn masquerade(slot: Slot, notify: &mut dyn FnMut(&str)) -> Option<Nat> {
    if !nat::forwards() {
        notify(
            "only this host can be reached through the link (for other hosts: \
             `sysctl -w net.ipv4.ip_forward=1`)",
        );
        return None;
    }
    match Nat::new(slot) {
        Ok(nat) => Some(nat),
        Err(error) => {
            notify(&format!(
                "only this host can be reached through the link: `nft`: {error} (package nftables)"
            ));
            None
        }
    }
}

/// Starts the command so that it is killed when the calling thread ends. Only a process itself can
/// ask for that (PR_SET_PDEATHSIG): `setpriv` does, and then executes the command.
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
        // The child may just have ended.
        let _ = kill(child, signal);
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
