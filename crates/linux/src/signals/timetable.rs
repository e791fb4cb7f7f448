//! Outages known in advance, by the time of day.
//!
//! Read first: [`airtcp_gateway::signals::timetable`]. [`timer`] follows the time of day, and also
//! expires when that is set (timerfd_create(2), `TFD_TIMER_CANCEL_ON_SET`).

use super::stop::{Stop, Woken};
use crate::command::{Command, Handle};
use airtcp_gateway::signals::timetable::{SECOND, Time, Timetable};
use airtcp_gateway::signals::{MobileSignal, SignalSource};
use nix::errno::Errno;
use nix::poll::PollTimeout;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::clock_gettime;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

/// Creates the timer for [`run`].
pub(super) fn timer() -> io::Result<TimerFd> {
    let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
    Ok(TimerFd::new(ClockId::CLOCK_REALTIME, flags)?)
}

/// Sets the timer to expire at `time` (`None`: never) and whenever the clock is set. False if the
/// clock was set since the last call.
fn set(timer: &TimerFd, time: Option<Time>) -> io::Result<bool> {
    let time = time.unwrap_or(Time::MAX);
    let seconds = i64::try_from(time / SECOND).unwrap_or(i64::MAX);
    let expiration = Expiration::OneShot(TimeSpec::new(seconds, (time % SECOND) as i64));
    let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET;
    match timer.set(expiration, flags) {
        Ok(()) => Ok(true),
        Err(Errno::ECANCELED) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Sends the current signals, then changes, until stopped.
pub(super) fn run(
    timetable: &Timetable,
    timer: &TimerFd,
    handle: &Handle,
    stop: &Stop,
) -> io::Result<()> {
    let mut reported = BTreeMap::new();
    loop {
        let now = clock_gettime(nix::time::ClockId::CLOCK_REALTIME)?;
        let seconds = Time::try_from(now.tv_sec()).unwrap_or(0);
        let view = timetable.at(seconds * SECOND + now.tv_nsec() as Time);
        for (&mobile, &signal) in &view.signals {
            if reported.insert(mobile, signal) != Some(signal) {
                let source = SignalSource::Timetable;
                handle.send(Command::Signal(MobileSignal { mobile, signal, source }));
            }
        }
        if !set(timer, view.next)? {
            continue;
        }
        if stop.wait(Some(timer.as_fd()), PollTimeout::NONE)? == Woken::Stopped {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_time_is_no_special_case() {
        assert!(set(&timer().unwrap(), Some(Time::MAX)).unwrap());
        assert!(set(&timer().unwrap(), None).unwrap());
    }
}
