//! Signal levels of the Wi-Fi interfaces of uplinks, from the kernel's list.
//!
//! Read first: `wireless_seq_printf_stats` in Linux' net/wireless/wext-proc.c, which writes it. A
//! line has the interface, its state, the link quality, the levels of signal and noise, and
//! counters. A level in dBm is negative; another one is on a scale of the driver or means no
//! signal, and is ignored.
//!
//! Below the configured level an uplink fades, until the level is higher by
//! [`MARGIN`](super::level::MARGIN). An interface that is not listed, or has no level in dBm,
//! counts as up, and other sources decide.

use super::level::is_faint;
use super::stop::{Stop, Woken};
use crate::command::{Command, Handle};
use airtcp_core::LinkSignal;
use airtcp_edge::{InterfaceName, MobileId};
use airtcp_gateway::config::Group;
use airtcp_gateway::signals::{MobileSignal, SignalSource};
use nix::poll::PollTimeout;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// File with the kernel's list.
pub(super) const LEVELS: &str = "/proc/net/wireless";

/// Polling interval in milliseconds.
const INTERVAL: u16 = 1_000;

/// Column of the signal level, counted after the interface's name.
const LEVEL: usize = 2;

/// Turns the kernel's list into signals.
#[derive(Debug)]
pub(super) struct Watch {
    /// Signal level in percent below which an uplink fades.
    fading_below: u8,
    /// Uplinks with their last signal, if there was one.
    uplinks: BTreeMap<InterfaceName, Option<LinkSignal>>,
}

impl Watch {
    /// A watch that has seen no list yet.
    pub(super) fn new(fading_below: u8, groups: &[Group]) -> Self {
        let uplinks = groups.iter().filter_map(Group::uplink);
        Self { fading_below, uplinks: uplinks.map(|uplink| (uplink, None)).collect() }
    }

    /// Handles the list and returns the new signals.
    fn take(&mut self, list: &str) -> Vec<MobileSignal> {
        let mut signals = Vec::new();
        for (&interface, reported) in &mut self.uplinks {
            let level = level(list, interface.as_str());
            let is_faint = level.is_some_and(|level| is_faint(level, self.fading_below, *reported));
            let signal = if is_faint { LinkSignal::Fading } else { LinkSignal::Up };
            if reported.replace(signal) != Some(signal) {
                if let Some(level) = level {
                    tracing::info!(uplink = %interface, ?signal, level, "link signal from a Wi-Fi interface");
                }
                let (mobile, source) = (MobileId::Uplink(interface), SignalSource::Wifi);
                signals.push(MobileSignal { mobile, signal, source });
            }
        }
        signals
    }
}

/// Signal level of an interface in percent: 0 at -100 dBm, 100 at -50 dBm. `None` if the list does
/// not have it, or not in dBm.
fn level(list: &str, interface: &str) -> Option<u32> {
    let mut lines = list.lines().filter_map(|line| line.split_once(':'));
    let (_, columns) = lines.find(|(name, _)| name.trim() == interface)?;
    let level = columns.split_whitespace().nth(LEVEL)?;
    // A dot marks values updated since any process last read the list.
    let dbm: i32 = level.trim_end_matches('.').parse().ok()?;
    u32::try_from((2 * (dbm + 100)).clamp(0, 100)).ok().filter(|_| dbm < 0)
}

/// Sends the current signals, then changes, until stopped. A missing list counts as empty.
pub(super) fn run(mut watch: Watch, list: &Path, handle: &Handle, stop: &Stop) -> io::Result<()> {
    loop {
        let text = std::fs::read_to_string(list).unwrap_or_default();
        for signal in watch.take(&text) {
            handle.send(Command::Signal(signal));
        }
        if stop.wait(None, PollTimeout::from(INTERVAL))? == Woken::Stopped {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::channel;
    use crate::signals::tests::groups_of;
    use LinkSignal::{Fading, Up};
    use std::time::Duration;

    /// A list as Linux prints it.
    fn list(lines: &[&str]) -> String {
        let head = "\
Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE
 face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22
";
        format!("{head}{}", lines.concat())
    }

    fn wlan0(level: &str) -> String {
        list(&[&format!(
            " wlan0: 0000   54.  {level}  -256        0      0      0      0     12        0\n"
        )])
    }

    fn watch(uplinks: &[&str]) -> Watch {
        Watch::new(20, &groups_of(uplinks))
    }

    fn reported(watch: &mut Watch, list: &str) -> Vec<(String, LinkSignal)> {
        let signals = watch.take(list).into_iter();
        signals
            .inspect(|signal| assert_eq!(signal.source, SignalSource::Wifi))
            .map(|signal| (signal.mobile.to_string(), signal.signal))
            .collect()
    }

    #[test]
    fn the_level_is_a_percentage_from_100_to_50_below_a_milliwatt() {
        let levels = ["-30.", "-50.", "-56.", "-90", "-100.", "-110."];
        let percent = levels.map(|dbm| level(&wlan0(dbm), "wlan0"));
        assert_eq!(percent, [100, 100, 88, 20, 0, 0].map(Some));
    }

    #[test]
    fn what_is_not_in_dbm_or_not_listed_has_no_level() {
        for other in ["0", "0.", "54.", "x"] {
            assert_eq!(level(&wlan0(other), "wlan0"), None, "{other}");
        }
        let list = list(&["wlan10: 0000   54.  -56.  -256        0\n", " wlan0: 0000\n"]);
        for interface in ["wlan1", "wlan0", "wwan0", " face | tus | link level noise |"] {
            assert_eq!(level(&list, interface), None, "{interface}");
        }
        assert_eq!((level(&list, "wlan10"), level("", "wlan0")), (Some(88), None));
    }

    #[test]
    fn an_uplink_fades_below_the_level_until_it_is_higher_by_the_margin() {
        let mut watch = watch(&["wlan0"]);
        let reported = ["-89.", "-90.", "-91.", "-89.", "-88.", "-87.", "-90."].map(|dbm| {
            let mut reported = reported(&mut watch, &wlan0(dbm));
            reported.pop().map(|(_, signal)| signal)
        });
        assert_eq!(reported, [Some(Up), None, Some(Fading), None, None, Some(Up), None]);
    }

    #[test]
    fn what_was_said_of_an_interface_that_is_gone_is_taken_back() {
        let mut watch = watch(&["wlan0", "wwan0"]);
        let of = |name: &str, signal| (name.to_owned(), signal);
        assert_eq!(reported(&mut watch, &wlan0("-95.")), [of("wlan0", Fading), of("wwan0", Up)]);
        assert_eq!(reported(&mut watch, &list(&[])), [of("wlan0", Up)]);
        assert_eq!(reported(&mut watch, ""), []);
    }

    #[test]
    fn the_list_is_looked_at_until_told_to_stop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wireless");
        std::fs::write(&path, wlan0("-95.")).unwrap();
        let (handle, inbox) = channel().unwrap();
        let stop = Stop::new().unwrap();
        let next = || match inbox.commands.recv_timeout(Duration::from_secs(20)) {
            Ok(Command::Signal(signal)) => signal.signal,
            other => panic!("{other:?}"),
        };
        std::thread::scope(|scope| {
            let running = scope.spawn(|| run(watch(&["wlan0"]), &path, &handle, &stop));
            assert_eq!(next(), Fading);
            std::fs::write(&path, wlan0("-60.")).unwrap();
            assert_eq!(next(), Up);
            stop.now();
            assert!(running.join().unwrap().is_ok());
        });
    }
}
