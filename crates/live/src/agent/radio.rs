//! The level of a Wi-Fi interface, asked for by nl80211.
//!
//! Read first: linux/nl80211.h (`NL80211_CMD_GET_STATION`), generic netlink (linux/genetlink.h). [`level`](super::level) makes
//! signals of it. **Not validated on a radio**: messages are written and read by the numbers of these headers, and
//! tested on bytes made by the same numbers; only the part of generic netlink was tried on a kernel.

use super::level::{Dbm, LevelConfig, LevelWatch};
use super::{AgentError, Seen, Source};
use crate::gateway::signals::message::{Clock, Stamp};
use crate::netlink::{Message, Netlink, attributes, u16_at};
use airtcp_core::{Duration, Instant};
use nix::net::if_::if_nametoindex;
use std::io;
use std::os::fd::BorrowedFd;

/// The level is asked for so often.
pub const INTERVAL: Duration = Duration::from_millis(100);

/// Size of `struct genlmsghdr`: command (1), version (1), reserved (2).
const GENERIC_HEADER: usize = 4;
// linux/nl80211.h
const GET_STATION: u8 = 17;
const ATTR_IFINDEX: u16 = 3;
const ATTR_STA_INFO: u16 = 21;
const STA_INFO_SIGNAL: u16 = 7;

/// A Wi-Fi interface that is a client.
#[derive(Debug)]
pub struct Radio {
    interface: String,
    netlink: Netlink,
    /// Number of nl80211 among the families of generic netlink.
    family: u16,
    watch: LevelWatch,
    clock: Clock,
    start: Stamp,
    next: Stamp,
}

impl Radio {
    /// Watches `interface`.
    ///
    /// # Errors
    /// The kernel has no Wi-Fi, or the interface is none; the message says so.
    pub fn open(interface: &str, config: LevelConfig) -> Result<Self, AgentError> {
        let netlink = Netlink::open(libc::NETLINK_GENERIC)?;
        let family = family(&netlink, "nl80211").map_err(|error| {
            AgentError::Source(format!(
                "this kernel does not tell about Wi-Fi (nl80211: {error}); --source command takes any other source"
            ))
        })?;
        let clock = Clock::start();
        let (start, watch, interface) =
            (clock.now(), LevelWatch::new(config), interface.to_owned());
        let radio = Self { interface, netlink, family, watch, clock, start, next: start };
        radio.ask().map_err(|error| {
            AgentError::Source(format!("{}: not a Wi-Fi interface ({error})", radio.interface))
        })?;
        Ok(radio)
    }

    /// The level now; `None`: no access point.
    fn ask(&self) -> io::Result<Option<Dbm>> {
        // By name each time: it may vanish and come back with another index.
        let index = if_nametoindex(self.interface.as_str())?;
        let stations = self.netlink.dump(&request(self.family, index))?;
        Ok(stations.iter().find_map(|(_, body)| level(body)))
    }
}

impl Source for Radio {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn next_look(&self) -> Option<Duration> {
        Some(self.next.since(self.clock.now()))
    }

    fn look(&mut self) -> Result<Seen, AgentError> {
        let now = self.clock.now();
        if now < self.next {
            return Ok(Seen::Signals(Vec::new()));
        }
        self.next = now.after(INTERVAL);
        // An interface that has vanished or is off has no access point either.
        let level = self.ask().unwrap_or(None);
        let signal = self.watch.take(Instant::ZERO + now.since(self.start), level);
        Ok(Seen::Signals(signal.into_iter().collect()))
    }
}

/// The number of a family of generic netlink.
fn family(netlink: &Netlink, name: &str) -> io::Result<u16> {
    let header = [libc::CTRL_CMD_GETFAMILY as u8, 1, 0, 0];
    let request = Message::new(libc::GENL_ID_CTRL as u16, 0, &header)
        .with_name(libc::CTRL_ATTR_FAMILY_NAME as u16, name);
    let answer = netlink.ask(&request.finish())?;
    let id = attributes(answer.get(GENERIC_HEADER..).unwrap_or_default())
        .find(|&(kind, _)| i32::from(kind) == libc::CTRL_ATTR_FAMILY_ID)
        .and_then(|(_, value)| u16_at(value, 0));
    id.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Asks for the stations of an interface: for a client, its access point.
fn request(family: u16, index: u32) -> Vec<u8> {
    Message::new(family, libc::NLM_F_DUMP, &[GET_STATION, 0, 0, 0])
        .with(ATTR_IFINDEX, &index.to_ne_bytes())
        .finish()
}

/// The level in the kernel's answer (`NL80211_CMD_NEW_STATION`): one signed byte in dBm.
fn level(body: &[u8]) -> Option<Dbm> {
    let (_, station) =
        attributes(body.get(GENERIC_HEADER..)?).find(|&(kind, _)| kind == ATTR_STA_INFO)?;
    let (_, signal) = attributes(station).find(|&(kind, _)| kind == STA_INFO_SIGNAL)?;
    Some(Dbm(f64::from(i8::from_ne_bytes([*signal.first()?]))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::one;

    #[test]
    fn the_kernel_is_asked_for_the_stations_of_the_interface() {
        let request = request(0x1c, 3);
        let wanted = [
            &[28, 0, 0, 0, 0x1c, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0][..],
            &[17, 0, 0, 0],
            &[8, 0, 3, 0, 3, 0, 0, 0],
        ];
        if cfg!(target_endian = "little") {
            assert_eq!(request, wanted.concat());
        }
    }

    #[test]
    fn the_level_is_found_in_the_answer() {
        // As a kernel answers: index, address, generation, and of the station: idle time, bytes, level, average.
        let station = [
            one(1, &12_u32.to_ne_bytes()),
            one(2, &9000_u32.to_ne_bytes()),
            one(7, &[(-67_i8) as u8]),
            one(13, &[(-66_i8) as u8]),
        ];
        let answer = [
            vec![19, 1, 0, 0],
            one(3, &3_u32.to_ne_bytes()),
            one(6, &[2, 0, 0, 0, 0, 1]),
            one(46, &1_u32.to_ne_bytes()),
            one(21 | 0x8000, &station.concat()),
        ]
        .concat();
        assert_eq!(level(&answer), Some(Dbm(-67.0)));
        let without_level = [vec![19, 1, 0, 0], one(21, &one(1, &[0; 4]))].concat();
        assert_eq!(level(&without_level), None);
        for length in 0..answer.len() {
            assert_eq!(level(&answer[..length]), None, "cut after {length}");
        }
    }

    #[test]
    fn a_family_of_generic_netlink_is_found_by_its_name() {
        let netlink = Netlink::open(libc::NETLINK_GENERIC).unwrap();
        assert_eq!(family(&netlink, "nlctrl").unwrap(), libc::GENL_ID_CTRL as u16);
        let missing = family(&netlink, "no-such-family").unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn what_is_no_radio_is_refused() {
        let refused = Radio::open("lo", LevelConfig::default()).unwrap_err().to_string();
        assert!(
            refused.contains("not a Wi-Fi interface") || refused.contains("does not tell"),
            "{refused}"
        );
    }
}
