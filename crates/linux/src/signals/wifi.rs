//! How well the Wi-Fi interfaces of uplinks receive, by the kernel's list of them.
//!
//! Read first: `wireless_seq_printf_stats` in Linux' net/wireless/wext-proc.c, which writes it. A
//! line has the interface, its state, the quality of the link, its signal level and noise, and
//! counters. A level in dBm is below zero; one that is not is on a scale of the driver's own, or of
//! no signal at all, and says nothing.
//!
//! Below the configured level an uplink fades, until the level is higher by
//! [`MARGIN`](super::level::MARGIN). An interface that is not listed, or whose level says nothing,
//! is left to the other sources: what was said is taken back.

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

/// The kernel's list.
pub(super) const LEVELS: &str = "/proc/net/wireless";

/// From one look at it to the next, in milliseconds.
const INTERVAL: u16 = 1_000;

/// Column of the list, behind the interface's name, that has the signal level.
const LEVEL: usize = 2;

/// Makes signals of the kernel's list.
#[derive(Debug)]
pub(super) struct Watch {
    /// Percent.
    fading_below: u8,
    /// With the last report; `None`: there was none.
    uplinks: BTreeMap<InterfaceName, Option<LinkSignal>>,
}

impl Watch {
    /// Knows nothing yet.
    pub(super) fn new(fading_below: u8, groups: &[Group]) -> Self {
        let uplinks = groups.iter().filter_map(Group::uplink);
        Self { fading_below, uplinks: uplinks.map(|uplink| (uplink, None)).collect() }
    }

    /// Takes the list; what is new to be said.
    fn take(&mut self, list: &str) -> Vec<MobileSignal> {
        let mut signals = Vec::new();
        for (&interface, said) in &mut self.uplinks {
            let level = level(list, interface.as_str());
            let is_faint = level.is_some_and(|level| is_faint(level, self.fading_below, *said));
            let signal = if is_faint { LinkSignal::Fading } else { LinkSignal::Up };
            if said.replace(signal) != Some(signal) {
                if let Some(level) = level {
                    tracing::info!(uplink = %interface, ?signal, level, "a Wi-Fi interface reports");
                }
                let (mobile, source) = (MobileId::Uplink(interface), SignalSource::Wifi);
                signals.push(MobileSignal { mobile, signal, source });
            }
        }
        signals
    }
}

/// Signal level of an interface, in percent: 0 at -100 dBm and 100 at -50 dBm. `None`: the list
/// does not have it, or not in dBm.
fn level(list: &str, interface: &str) -> Option<u32> {
    let mut lines = list.lines().filter_map(|line| line.split_once(':'));
    let (_, columns) = lines.find(|(name, _)| name.trim() == interface)?;
    let level = columns.split_whitespace().nth(LEVEL)?;
    // The dot says that it was updated since the last look, by whomever.
    let dbm: i32 = level.trim_end_matches('.').parse().ok()?;
    u32::try_from((2 * (dbm + 100)).clamp(0, 100)).ok().filter(|_| dbm < 0)
}

/// Says what holds, and then what changes, until told to stop. Without a list nothing is listed.
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

    /// As Linux prints it.
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

    fn said(watch: &mut Watch, list: &str) -> Vec<(String, LinkSignal)> {
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
        let said = ["-89.", "-90.", "-91.", "-89.", "-88.", "-87.", "-90."].map(|dbm| {
            let mut said = said(&mut watch, &wlan0(dbm));
            said.pop().map(|(_, signal)| signal)
        });
        assert_eq!(said, [Some(Up), None, Some(Fading), None, None, Some(Up), None]);
    }

    #[test]
    fn what_was_said_of_an_interface_that_is_gone_is_taken_back() {
        let mut watch = watch(&["wlan0", "wwan0"]);
        let of = |name: &str, signal| (name.to_owned(), signal);
        assert_eq!(said(&mut watch, &wlan0("-95.")), [of("wlan0", Fading), of("wwan0", Up)]);
        assert_eq!(said(&mut watch, &list(&[])), [of("wlan0", Up)]);
        assert_eq!(said(&mut watch, ""), []);
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
