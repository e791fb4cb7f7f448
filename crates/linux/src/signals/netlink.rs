//! The kernel's view of the link: carriers of interfaces, and mobiles in the neighbour table.
//!
//! Read first: rtnetlink(7), arp(7) (states of neighbours). [`event`] parses the kernel's messages,
//! [`Watch`] turns them into signals without I/O, [`Listener`] is the thread.
//!
//! *Carrier.* Without it, all mobiles behind the interface are down. Those are the neighbours seen
//! there (even if the kernel has since forgotten them, as it does when the carrier is lost), and
//! the single addresses (not prefixes) of the groups that name the interface, for links without
//! neighbours (PPP, tunnels, satellite modems). A missing interface has no carrier; an interface is
//! identified by its name.
//!
//! An uplink is down without carrier, too. It is up again when it has a carrier and the routes it
//! had ([`routes`]): until then the router rejects packets of hosts on board. The gateway itself
//! needs no route, and an answer to one of its probes would release them too soon. So while an
//! uplink is down and without routes, the loop is notified that it has no interface. Losing routes
//! alone does not take an uplink down: its traffic may have been moved to another. An interface
//! that is recreated has another index, of which the loop is notified first.
//!
//! *Neighbour.* A neighbour that failed to answer is down, and up again when its link-layer address
//! is valid: the kernel learns it only from the mobile. But nothing is sent to the mobile of a
//! frozen connection, so the kernel would not look for it. While a neighbour is down,
//! [`Watch::probes`] has the kernel probe it, with growing intervals.

use super::routes::{self, Routed, Routes};
use super::stop::{Stop, Woken};
use crate::command::{Command, Handle};
use crate::kernel::clock::Clock;
use crate::kernel::netlink::{Message, Netlink, messages, name, u16_at, u32_at, value_of};
use airtcp_core::{Duration, LinkSignal};
use airtcp_edge::{InterfaceName, MobileId};
use airtcp_gateway::config::{Group, InterfacePattern, Signals};
use airtcp_gateway::signals::keys::is_single;
use airtcp_gateway::signals::message::Stamp;
use airtcp_gateway::signals::{MobileSignal, SignalSource};
use hashlink::LinkedHashMap;
use ipnet::IpNet;
use nix::poll::PollTimeout;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;

/// Most neighbours tracked; beyond that, the one whose last change is oldest is removed.
const MOST_NEIGHBOURS: usize = 1 << 16;
/// A neighbour that is down is probed again after the time it has been down divided by this, which
/// bounds the delay until it is found.
const PROBE_PART: u64 = 8;
/// Shortest interval between two probes.
const SHORTEST_PROBE: Duration = Duration::from_secs(1);
/// Longest interval between two probes.
const LONGEST_PROBE: Duration = Duration::from_secs(60);
/// Time that an uplink which had routes for both IP versions, and has those of one again, waits for
/// the other: until DHCP has sent two requests (after 4 s ± 1 s: RFC 2131, §4.1). A new IPv6
/// address and a router take at most 2 s (RFC 4862, §5.1; RFC 4861, §6.3.7).
const OTHER_ROUTE: Duration = Duration::from_secs(5);

/// A notification of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    /// An interface was added or changed.
    Link { index: u32, name: String, has_carrier: bool },
    /// An interface was removed.
    LinkGone { index: u32 },
    /// A neighbour's link-layer address is valid (`answers`), or it failed to answer.
    Neighbour { index: u32, address: IpAddr, answers: bool },
    /// A route was added or removed; `None`: it may be over any interface.
    Route { index: Option<u32> },
}

/// The event in a message of rtnetlink; `None` for other messages.
fn event(kind: u16, body: &[u8]) -> Option<Event> {
    match kind {
        libc::RTM_NEWLINK | libc::RTM_DELLINK => link(kind, body),
        libc::RTM_NEWNEIGH => neighbour(body),
        libc::RTM_NEWROUTE | libc::RTM_DELROUTE => {
            Some(Event::Route { index: routes::interface(body) })
        }
        _ => None,
    }
}

/// Parses `struct ifinfomsg`: family (1), padding (1), type (2), index (4), flags (4), changed
/// flags (4).
fn link(kind: u16, body: &[u8]) -> Option<Event> {
    // A bridge announces its ports with messages of the same types.
    if i32::from(*body.first()?) != libc::AF_UNSPEC {
        return None;
    }
    let (index, flags) = (u32_at(body, 4)?, u32_at(body, 8)? as i32);
    if kind == libc::RTM_DELLINK {
        return Some(Event::LinkGone { index });
    }
    // Administratively up, with carrier, and operationally up (RFC 2863).
    let all = libc::IFF_UP | libc::IFF_LOWER_UP | libc::IFF_RUNNING;
    let name = name(value_of(body.get(16..)?, libc::IFLA_IFNAME)?)?.to_owned();
    Some(Event::Link { index, name, has_carrier: flags & all == all })
}

/// An entry of the neighbour table.
struct Entry {
    index: u32,
    address: IpAddr,
    state: u16,
}

/// Parses `struct ndmsg`: family (1), padding (3), interface (4), state (2), flags (1), type (1).
fn entry(body: &[u8]) -> Option<Entry> {
    let (index, state) = (u32_at(body, 4)?, u16_at(body, 8)?);
    let (family, address) = (i32::from(*body.first()?), value_of(body.get(12..)?, libc::NDA_DST)?);
    let address = match family {
        libc::AF_INET => IpAddr::from(<[u8; 4]>::try_from(address).ok()?),
        libc::AF_INET6 => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
        _ => return None,
    };
    Some(Entry { index, address, state })
}

fn neighbour(body: &[u8]) -> Option<Event> {
    const VALID: u16 = libc::NUD_REACHABLE
        | libc::NUD_STALE
        | libc::NUD_DELAY
        | libc::NUD_PROBE
        | libc::NUD_PERMANENT;
    let Entry { index, address, state } = entry(body)?;
    let answers = match state {
        libc::NUD_FAILED => false,
        state if state & VALID != 0 => true,
        _ => return None,
    };
    Some(Event::Neighbour { index, address, answers })
}

/// Turns events into signals.
#[derive(Debug)]
pub(super) struct Watch {
    carrier: bool,
    neighbour: bool,
    /// Groups of mobiles.
    groups: Vec<Group>,
    uplinks: BTreeMap<InterfaceName, Uplink>,
    /// The indices of mobiles' interfaces of which the loop was last notified; `None`: missing.
    announced: BTreeMap<InterfaceName, Option<u32>>,
    /// Existing interfaces by index: the name, and true with a carrier.
    links: BTreeMap<u32, (String, bool)>,
    /// Mobiles that were seen as neighbours, with the name of the interface.
    neighbours: LinkedHashMap<IpAddr, String>,
    /// Neighbours that fail to answer.
    failed: BTreeMap<IpAddr, Failed>,
    /// The last signal for each mobile and source.
    reported: BTreeMap<(MobileId, SignalSource), LinkSignal>,
}

#[derive(Debug)]
struct Failed {
    since: Stamp,
    probe: Stamp,
}

#[derive(Debug, Default)]
struct Uplink {
    /// The index of which the loop was last notified; `None`: missing, or cut off.
    announced: Option<u32>,
    /// The routes that it had, and needs to be up again.
    needs: Routed,
    /// If it has some of these routes, the time at which it is up without the others.
    enough: Option<Stamp>,
    /// True while it is down and lacks the routes that it needs, so that nothing may leave by it.
    is_cut_off: bool,
}

/// Queries the routes over the interface with this index.
type RouteQuery<'a> = &'a dyn Fn(u32) -> Routed;

impl Uplink {
    /// Updates the state from carrier and routes; true if the uplink is up. To stay up it needs no
    /// route.
    fn review(&mut self, now: Stamp, was_up: bool, has_carrier: bool, has: Routed) -> bool {
        if !has_carrier {
            self.enough = None;
            self.is_cut_off = self.needs != Routed::NONE && has == Routed::NONE;
            return false;
        }
        if was_up {
            self.needs = self.needs | has;
            return true;
        }
        let has_all = has.covers(self.needs);
        if !has_all && has != Routed::NONE {
            self.enough.get_or_insert(now.after(OTHER_ROUTE));
        } else {
            self.enough = None;
        }
        let is_up = has_all || self.enough.is_some_and(|enough| enough <= now);
        if is_up {
            (self.needs, self.enough) = (has, None);
        }
        self.is_cut_off = !is_up;
        is_up
    }
}

/// Index of the interface with this name, and true if it has a carrier.
fn named(links: &BTreeMap<u32, (String, bool)>, name: &str) -> Option<(u32, bool)> {
    links.iter().find(|(_, (link, _))| link == name).map(|(&index, &(_, carrier))| (index, carrier))
}

impl Watch {
    /// A watch that has seen no event yet.
    pub(super) fn new(signals: &Signals, groups: &[Group]) -> Self {
        let of_mobiles = groups.iter().filter(|group| group.uplink().is_none());
        let uplinks = groups.iter().filter_map(Group::uplink);
        Self {
            carrier: signals.carrier,
            neighbour: signals.neighbour,
            groups: of_mobiles.cloned().collect(),
            uplinks: uplinks.map(|uplink| (uplink, Uplink::default())).collect(),
            announced: BTreeMap::new(),
            links: BTreeMap::new(),
            neighbours: LinkedHashMap::new(),
            failed: BTreeMap::new(),
            reported: BTreeMap::new(),
        }
    }

    /// True if routes matter.
    fn follows_routes(&self) -> bool {
        self.carrier && !self.uplinks.is_empty()
    }

    /// Handles an event and returns the new signals.
    fn take(&mut self, now: Stamp, event: Event, routes: RouteQuery<'_>) -> Vec<MobileSignal> {
        match event {
            Event::Link { index, name, has_carrier } => {
                self.links.insert(index, (name, has_carrier));
                self.review(now, routes)
            }
            Event::LinkGone { index } => {
                self.links.remove(&index);
                self.review(now, routes)
            }
            Event::Neighbour { index, address, answers } => {
                self.neighbour(now, index, address, answers)
            }
            Event::Route { index } => {
                let of_another = index.is_some_and(|index| !self.is_uplink(index));
                if of_another { Vec::new() } else { self.review_uplinks(now, routes) }
            }
        }
    }

    /// Replaces the list of interfaces and returns the new signals.
    fn all_links(
        &mut self,
        now: Stamp,
        links: BTreeMap<u32, (String, bool)>,
        routes: RouteQuery<'_>,
    ) -> Vec<MobileSignal> {
        self.links = links;
        self.review(now, routes)
    }

    /// New signals from the carriers.
    fn review(&mut self, now: Stamp, routes: RouteQuery<'_>) -> Vec<MobileSignal> {
        if !self.carrier {
            return Vec::new();
        }
        let mut signals = self.review_uplinks(now, routes);
        let listed = self.groups.iter().filter(|group| !group.interfaces().is_empty());
        let listed = listed.flat_map(|group| group.addresses().iter().filter(|net| is_single(net)));
        let mobiles: Vec<IpAddr> =
            listed.map(IpNet::addr).chain(self.neighbours.keys().copied()).collect();
        signals.extend(mobiles.into_iter().filter_map(|mobile| self.review_one(mobile)));
        signals
    }

    fn is_uplink(&self, index: u32) -> bool {
        let link = self.links.get(&index);
        link.is_some_and(|(name, _)| self.uplinks.keys().any(|uplink| uplink.as_str() == name))
    }

    /// Mobiles are behind this interface, or it is an uplink; and it has a carrier.
    fn serves(&self, index: u32) -> bool {
        let behind = |name: &str| self.groups.iter().any(|group| group.is_behind(name));
        let link = self.links.get(&index);
        link.is_some_and(|(name, carrier)| *carrier && (behind(name) || self.is_uplink(index)))
    }

    /// New signals of uplinks.
    fn review_uplinks(&mut self, now: Stamp, routes: RouteQuery<'_>) -> Vec<MobileSignal> {
        let Self { uplinks, links, reported, .. } = self;
        let look = |(&name, uplink): (&InterfaceName, &mut Uplink)| {
            let (has_carrier, has) = named(links, name.as_str())
                .map_or((false, Routed::NONE), |(index, carrier)| (carrier, routes(index)));
            let mobile = MobileId::Uplink(name);
            let was_up = reported.get(&(mobile, SignalSource::Carrier)) == Some(&LinkSignal::Up);
            (mobile, uplink.review(now, was_up, has_carrier, has))
        };
        let found: Vec<_> = uplinks.iter_mut().map(look).collect();
        let report = |(mobile, is_up)| self.report(mobile, SignalSource::Carrier, is_up);
        found.into_iter().filter_map(report).collect()
    }

    /// New signals because time has passed.
    fn waited(&mut self, now: Stamp, routes: RouteQuery<'_>) -> Vec<MobileSignal> {
        let is_due = |uplink: &Uplink| uplink.enough.is_some_and(|enough| enough <= now);
        let is_any = self.uplinks.values().any(is_due);
        if is_any { self.review_uplinks(now, routes) } else { Vec::new() }
    }

    fn has_carrier(&self, name: &str) -> bool {
        named(&self.links, name).is_some_and(|(_, carrier)| carrier)
    }

    /// Uplinks, and interfaces of mobiles, whose index has changed since the last call. The first
    /// call also returns the interfaces of mobiles that are missing.
    fn moved(&mut self) -> Vec<(InterfaceName, Option<u32>)> {
        let mut moved = Vec::new();
        for (name, uplink) in &mut self.uplinks {
            let there = named(&self.links, name.as_str()).filter(|_| !uplink.is_cut_off);
            let index = there.map(|(index, _)| index);
            if std::mem::replace(&mut uplink.announced, index) != index {
                moved.push((*name, index));
            }
        }
        moved.extend(self.moved_of_mobiles());
        moved
    }

    fn moved_of_mobiles(&mut self) -> Vec<(InterfaceName, Option<u32>)> {
        let patterns = self.groups.iter().flat_map(Group::interfaces);
        let named = patterns.filter_map(InterfacePattern::name);
        let mut found: BTreeMap<_, Option<u32>> = named.map(|name| (name, None)).collect();
        for (&index, (name, _)) in &self.links {
            if self.groups.iter().any(|group| group.is_behind(name))
                && let Ok(name) = name.parse()
            {
                found.insert(name, Some(index));
            }
        }
        let gone = self.announced.keys().filter(|&name| !found.contains_key(name));
        let gone: Vec<_> = gone.map(|&name| (name, None)).collect();
        let is_news = |&(name, index): &(&InterfaceName, &Option<u32>)| {
            self.announced.get(name) != Some(index)
        };
        let news = found.iter().filter(is_news).map(|(&name, &index)| (name, index));
        let moved = gone.into_iter().chain(news).collect();
        self.announced = found;
        moved
    }

    /// New signal from the carrier of one mobile's interface.
    fn review_one(&mut self, mobile: IpAddr) -> Option<MobileSignal> {
        let is_up = match self.neighbours.get(&mobile) {
            Some(interface) => self.has_carrier(interface),
            None => {
                let group = self.group(mobile)?;
                self.links.values().any(|(name, carrier)| *carrier && group.is_behind(name))
            }
        };
        self.report(MobileId::Host(mobile), SignalSource::Carrier, is_up)
    }

    fn neighbour(
        &mut self,
        now: Stamp,
        index: u32,
        mobile: IpAddr,
        answers: bool,
    ) -> Vec<MobileSignal> {
        let Some((interface, _)) = self.links.get(&index) else { return Vec::new() };
        let is_there = |group: &Group| group.interfaces().is_empty() || group.is_behind(interface);
        if !self.group(mobile).is_some_and(is_there) {
            return Vec::new();
        }
        // A failure on another interface than the mobile's last one means nothing.
        let is_elsewhere = self.neighbours.get(&mobile).is_some_and(|known| known != interface);
        if !answers && is_elsewhere {
            return Vec::new();
        }
        self.neighbours.insert(mobile, interface.clone());
        if self.neighbours.len() > MOST_NEIGHBOURS {
            self.forget_oldest();
        }
        let mut signals = Vec::new();
        if self.carrier {
            signals.extend(self.review_one(mobile));
        }
        if self.neighbour {
            if answers {
                self.failed.remove(&mobile);
            } else {
                let (since, probe) = (now, now.after(SHORTEST_PROBE));
                self.failed.entry(mobile).or_insert(Failed { since, probe });
            }
            let mobile = MobileId::Host(mobile);
            signals.extend(self.report(mobile, SignalSource::Neighbour, answers));
        }
        signals
    }

    fn forget_oldest(&mut self) {
        let Some((mobile, _)) = self.neighbours.pop_front() else { return };
        self.failed.remove(&mobile);
        for source in [SignalSource::Carrier, SignalSource::Neighbour] {
            self.reported.remove(&(MobileId::Host(mobile), source));
        }
    }

    /// A signal, unless the last one was the same.
    fn report(
        &mut self,
        mobile: MobileId,
        source: SignalSource,
        is_up: bool,
    ) -> Option<MobileSignal> {
        let signal = if is_up { LinkSignal::Up } else { LinkSignal::Down };
        let is_new = self.reported.insert((mobile, source), signal) != Some(signal);
        is_new.then_some(MobileSignal { mobile, signal, source })
    }

    /// The first group that contains a mobile.
    fn group(&self, mobile: IpAddr) -> Option<&Group> {
        self.groups.iter().find(|group| group.has(MobileId::Host(mobile)))
    }

    /// Neighbours that the kernel must probe now, with the index of the interface.
    fn probes(&mut self, now: Stamp) -> Vec<(u32, IpAddr)> {
        let mut due = Vec::new();
        for (&mobile, failed) in &mut self.failed {
            if failed.probe > now {
                continue;
            }
            let wait = now.since(failed.since) / PROBE_PART;
            failed.probe = now.after(wait.clamp(SHORTEST_PROBE, LONGEST_PROBE));
            let at = self.neighbours.get(&mobile).and_then(|name| named(&self.links, name));
            due.extend(at.filter(|&(_, carrier)| carrier).map(|(index, _)| (index, mobile)));
        }
        due
    }

    /// Time at which [`Watch::probes`] or [`Watch::waited`] is next due.
    fn next_time(&self) -> Option<Stamp> {
        let waits = self.uplinks.values().filter_map(|uplink| uplink.enough);
        self.failed.values().map(|failed| failed.probe).chain(waits).min()
    }
}

/// Receives the kernel's notifications.
#[derive(Debug)]
pub(super) struct Listener {
    watch: Watch,
    clock: Clock,
    /// Socket of notifications.
    events: Netlink,
    /// Socket of requests.
    requests: Netlink,
    /// `None`: routes do not matter.
    routes: Option<Routes>,
}

impl Listener {
    /// Subscribes to notifications; none is missed from now on.
    pub(super) fn open(watch: Watch) -> io::Result<Self> {
        let mut groups = libc::RTMGRP_LINK | libc::RTMGRP_NEIGH;
        if watch.follows_routes() {
            groups |= libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE;
        }
        let events = Netlink::subscribe(libc::NETLINK_ROUTE, groups)?;
        let requests = Netlink::open(libc::NETLINK_ROUTE)?;
        let routes = watch.follows_routes().then(Routes::open).transpose()?;
        Ok(Self { watch, clock: Clock::start(), events, requests, routes })
    }

    /// Sends the current signals, then changes, until stopped.
    pub(super) fn run(mut self, handle: &Handle, stop: &Stop) -> io::Result<()> {
        self.look_at_all(handle)?;
        loop {
            let timeout = self.watch.next_time().map_or(PollTimeout::NONE, |time| {
                let ms = time.since(self.clock.now()).as_millis() + 1;
                PollTimeout::try_from(ms).unwrap_or(PollTimeout::MAX)
            });
            match stop.wait(Some(self.events.as_fd()), timeout)? {
                Woken::Stopped => return Ok(()),
                Woken::Ready => self.read(handle)?,
                Woken::TimedOut => {}
            }
            let now = self.clock.now();
            let signals = self.watch.waited(now, &over(&self.routes));
            self.send(handle, signals);
            for (index, mobile) in self.watch.probes(now) {
                if let Err(error) = self.requests.ask(&probe(index, mobile)) {
                    tracing::debug!(%mobile, %error, "cannot probe a neighbour");
                }
            }
        }
    }

    fn read(&mut self, handle: &Handle) -> io::Result<()> {
        loop {
            match self.events.next() {
                Ok(Some(datagram)) => {
                    for (kind, body) in messages(&datagram) {
                        self.take(handle, event(kind, body));
                    }
                }
                Ok(None) => return Ok(()),
                // Notifications were lost.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    self.look_at_all(handle)?
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads all interfaces and neighbours.
    fn look_at_all(&mut self, handle: &Handle) -> io::Result<()> {
        let mut links = BTreeMap::new();
        // An empty `struct ifinfomsg` or `struct ndmsg` requests all entries.
        for (kind, body) in self.requests.dump(&dump(libc::RTM_GETLINK, &[0; 16]))? {
            if let Some(Event::Link { index, name, has_carrier }) = event(kind, &body) {
                links.insert(index, (name, has_carrier));
            }
        }
        let signals = self.watch.all_links(self.clock.now(), links, &over(&self.routes));
        self.send(handle, signals);
        for (kind, body) in self.requests.dump(&dump(libc::RTM_GETNEIGH, &[0; 12]))? {
            self.take(handle, event(kind, &body));
        }
        Ok(())
    }

    fn take(&mut self, handle: &Handle, event: Option<Event>) {
        if let Some(event) = event {
            let signals = self.watch.take(self.clock.now(), event, &over(&self.routes));
            self.send(handle, signals);
        }
    }

    /// Has the kernel look at once for the neighbours that it failed to find without the carrier. By
    /// itself it waits for its next attempt, which is up to a second off.
    fn solicit(&mut self) -> io::Result<()> {
        const UNRESOLVED: u16 = libc::NUD_INCOMPLETE | libc::NUD_FAILED;
        for (_, body) in self.requests.dump(&dump(libc::RTM_GETNEIGH, &[0; 12]))? {
            let Some(Entry { index, address, state }) = entry(&body) else { continue };
            if state & UNRESOLVED != 0 && self.watch.serves(index) {
                self.requests.ask(&forget(index, address))?;
                self.requests.ask(&probe(index, address))?;
            }
        }
        Ok(())
    }

    fn send(&mut self, handle: &Handle, signals: Vec<MobileSignal>) {
        // Sent first: packets that a signal causes may leave by this interface.
        for (interface, index) in self.watch.moved() {
            match (self.watch.uplinks.contains_key(&interface), index) {
                (true, Some(index)) => tracing::info!(%interface, index, "uplink has an interface"),
                (true, None) => tracing::info!(%interface, "uplink has no interface, or no routes"),
                (false, Some(index)) => {
                    tracing::info!(%interface, index, "found an interface of mobiles")
                }
                (false, None) => {
                    tracing::warn!(%interface, "no such interface; mobiles behind it are not protected until it appears");
                }
            }
            handle.send(Command::Interface(interface, index));
        }
        let is_back =
            |it: &MobileSignal| (it.source, it.signal) == (SignalSource::Carrier, LinkSignal::Up);
        if signals.iter().any(is_back)
            && let Err(error) = self.solicit()
        {
            tracing::debug!(%error, "cannot look for neighbours");
        }
        for signal in signals {
            tracing::info!(mobile = %signal.mobile, signal = ?signal.signal, source = ?signal.source, "link signal from the kernel");
            handle.send(Command::Signal(signal));
        }
    }
}

/// A query of the routes over an interface, which returns none if it fails.
fn over(routes: &Option<Routes>) -> impl Fn(u32) -> Routed {
    |index| {
        let Some(routes) = routes else { return Routed::NONE };
        routes.over(index).unwrap_or_else(|error| {
            tracing::debug!(index, %error, "cannot read routes");
            Routed::NONE
        })
    }
}

fn dump(kind: u16, header: &[u8]) -> Vec<u8> {
    Message::new(kind, libc::NLM_F_DUMP, header).finish()
}

/// Request that makes the kernel probe a neighbour, as if there were something to send (`NTF_USE`).
fn probe(index: u32, address: IpAddr) -> Vec<u8> {
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE;
    about(index, address, libc::RTM_NEWNEIGH, flags, libc::NTF_USE)
}

/// Request that removes a neighbour's entry.
fn forget(index: u32, address: IpAddr) -> Vec<u8> {
    about(index, address, libc::RTM_DELNEIGH, libc::NLM_F_ACK, 0)
}

/// Request about a neighbour; `entry_flags` are those of its `struct ndmsg`.
fn about(index: u32, neighbour: IpAddr, kind: u16, flags: i32, entry_flags: u8) -> Vec<u8> {
    let (family, address) = match neighbour {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    let mut header = vec![family as u8, 0, 0, 0];
    header.extend(index.to_ne_bytes());
    header.extend(libc::NUD_NONE.to_ne_bytes());
    header.extend([entry_flags, 0]);
    Message::new(kind, flags, &header).with(libc::NDA_DST, &address).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use LinkSignal::{Down, Up};
    use SignalSource::{Carrier, Neighbour};
    use airtcp_edge::MechanismConfig;
    use airtcp_gateway::config::Members;

    fn group(addresses: &[&str], interfaces: &[&str]) -> Group {
        let network = |a: &&str| airtcp_gateway::signals::keys::network(a).unwrap();
        Group {
            name: "mobiles".to_owned(),
            members: Members::Mobiles {
                addresses: addresses.iter().map(network).collect(),
                interfaces: interfaces.iter().map(|i| i.parse().unwrap()).collect(),
            },
            mechanism: MechanismConfig::MTcpPlus(Default::default()),
            copy: Default::default(),
            fast_path: Default::default(),
        }
    }

    fn watch(groups: &[Group]) -> Watch {
        let signals = Signals { carrier: true, neighbour: true, ..Signals::default() };
        let mut watch = Watch::new(&signals, groups);
        let links = [(2, ("wlan0".to_owned(), true)), (3, ("wlan1".to_owned(), true))];
        watch.all_links(START, links.into(), NO_ROUTES);
        watch
    }

    const NO_ROUTES: RouteQuery<'static> = &|_| Routed::NONE;

    const START: Stamp = Stamp(1 << 60);

    fn link(index: u32, name: &str, has_carrier: bool) -> Event {
        Event::Link { index, name: name.to_owned(), has_carrier }
    }

    fn seen(index: u32, address: &str, answers: bool) -> Event {
        Event::Neighbour { index, address: address.parse().unwrap(), answers }
    }

    /// Signals of an event: mobile, signal and source.
    fn reported(watch: &mut Watch, event: Event) -> Vec<(String, LinkSignal, SignalSource)> {
        let signals = watch.take(START, event, NO_ROUTES).into_iter();
        signals.map(|s| (s.mobile.to_string(), s.signal, s.source)).collect()
    }

    fn word(
        mobile: &str,
        signal: LinkSignal,
        source: SignalSource,
    ) -> (String, LinkSignal, SignalSource) {
        (mobile.to_owned(), signal, source)
    }

    #[test]
    fn without_carrier_the_neighbours_behind_the_interface_are_down() {
        let mut watch = watch(&[group(&["10.0.0.0/24"], &["wlan0", "wlan1"])]);
        reported(&mut watch, seen(2, "10.0.0.7", true));
        reported(&mut watch, seen(3, "10.0.0.8", true));
        reported(&mut watch, seen(2, "10.9.9.9", true));
        assert_eq!(
            reported(&mut watch, link(2, "wlan0", false)),
            [word("10.0.0.7", Down, Carrier)]
        );
        assert_eq!(reported(&mut watch, link(2, "wlan0", false)), []);
        assert_eq!(reported(&mut watch, link(2, "wlan0", true)), [word("10.0.0.7", Up, Carrier)]);
    }

    #[test]
    fn without_carrier_the_addresses_listed_for_the_interface_are_down() {
        let mut watch = watch(&[group(&["10.0.0.7", "10.1.0.0/16"], &["wlan0"])]);
        assert_eq!(
            reported(&mut watch, link(2, "wlan0", false)),
            [word("10.0.0.7", Down, Carrier)]
        );
        assert_eq!(reported(&mut watch, link(2, "wlan0", true)), [word("10.0.0.7", Up, Carrier)]);
    }

    #[test]
    fn an_address_that_may_be_behind_either_interface_is_up_while_one_is() {
        let mut watch = watch(&[group(&["10.0.0.7"], &["wlan0", "wlan1"])]);
        assert_eq!(reported(&mut watch, link(2, "wlan0", false)), []);
        assert_eq!(
            reported(&mut watch, link(3, "wlan1", false)),
            [word("10.0.0.7", Down, Carrier)]
        );
    }

    #[test]
    fn an_interface_that_vanishes_has_no_carrier_and_comes_back_by_its_name() {
        let mut watch = watch(&[group(&["10.0.0.0/24"], &["wlan0"])]);
        reported(&mut watch, seen(2, "10.0.0.7", true));
        assert_eq!(
            reported(&mut watch, Event::LinkGone { index: 2 }),
            [word("10.0.0.7", Down, Carrier)]
        );
        assert_eq!(reported(&mut watch, link(9, "wlan0", false)), []);
        assert_eq!(reported(&mut watch, link(9, "wlan0", true)), [word("10.0.0.7", Up, Carrier)]);
    }

    #[test]
    fn a_mobile_that_moves_to_another_interface_goes_by_that_one() {
        let mut watch = watch(&[group(&["10.0.0.0/24"], &[])]);
        reported(&mut watch, seen(2, "10.0.0.7", true));
        assert_eq!(
            reported(&mut watch, link(2, "wlan0", false)),
            [word("10.0.0.7", Down, Carrier)]
        );
        assert_eq!(
            reported(&mut watch, seen(3, "10.0.0.7", true)),
            [word("10.0.0.7", Up, Carrier)]
        );
        assert_eq!(reported(&mut watch, seen(2, "10.0.0.7", false)), [], "it is no longer there");
        assert_eq!(reported(&mut watch, link(2, "wlan0", true)), []);
    }

    #[test]
    fn the_view_at_the_start_is_told_in_full() {
        let signals = Signals { carrier: true, ..Signals::default() };
        let groups = [group(&["10.0.0.7"], &["wlan0"]), group(&["10.0.0.8"], &["none0"])];
        let announced = Watch::new(&signals, &groups).all_links(
            START,
            [(2, ("wlan0".to_owned(), true))].into(),
            NO_ROUTES,
        );
        let announced: Vec<_> =
            announced.into_iter().map(|s| (s.mobile.to_string(), s.signal)).collect();
        assert_eq!(announced, [("10.0.0.7".to_owned(), Up), ("10.0.0.8".to_owned(), Down)]);
    }

    #[test]
    fn interfaces_of_mobiles_are_announced_as_they_come_and_go() {
        let groups = [group(&["10.0.0.0/24"], &["wlan0"]), group(&["10.1.0.0/24"], &["ppp*"])];
        let mut watch = Watch::new(&Signals::default(), &groups);
        let [wlan0, ppp0, ppp1] = ["wlan0", "ppp0", "ppp1"].map(|name| name.parse().unwrap());
        assert_eq!(watch.moved(), [(wlan0, None)], "it is missing at the start");
        reported(&mut watch, link(2, "wlan0", false));
        reported(&mut watch, link(3, "eth0", true));
        reported(&mut watch, link(4, "ppp1", true));
        assert_eq!(watch.moved(), [(ppp1, Some(4)), (wlan0, Some(2))]);
        assert_eq!(watch.moved(), []);
        reported(&mut watch, Event::LinkGone { index: 4 });
        reported(&mut watch, Event::LinkGone { index: 2 });
        reported(&mut watch, link(5, "ppp0", true));
        assert_eq!(watch.moved(), [(ppp1, None), (ppp0, Some(5)), (wlan0, None)]);
        reported(&mut watch, link(6, "wlan0", true));
        assert_eq!(watch.moved(), [(wlan0, Some(6))], "made anew");
    }

    #[test]
    fn an_uplink_without_carrier_is_down_and_its_index_is_told_when_it_changes() {
        let uplink: InterfaceName = "wlan0".parse().unwrap();
        let own = Group { members: Members::Uplink(uplink), ..group(&[], &[]) };
        let mut watch = watch(&[group(&["10.0.0.0/24"], &["wlan1"]), own]);
        let wlan1 = "wlan1".parse().unwrap();
        assert_eq!(watch.moved(), [(uplink, Some(2)), (wlan1, Some(3))]);
        assert_eq!(reported(&mut watch, link(2, "wlan0", false)), [word("wlan0", Down, Carrier)]);
        assert_eq!(reported(&mut watch, link(2, "wlan0", true)), [word("wlan0", Up, Carrier)]);
        assert_eq!(watch.moved(), []);
        reported(&mut watch, Event::LinkGone { index: 2 });
        assert_eq!(watch.moved(), [(uplink, None)]);
        assert_eq!(reported(&mut watch, link(9, "wlan0", true)), [word("wlan0", Up, Carrier)]);
        assert_eq!(watch.moved(), [(uplink, Some(9))]);
    }

    /// Takes an event this long after the start, with these routes; what is said.
    fn step(watch: &mut Watch, after: Duration, event: Event, has: Routed) -> Vec<LinkSignal> {
        let signals = watch.take(START.after(after), event, &|_| has);
        watch.moved();
        signals.into_iter().map(|s| s.signal).collect()
    }

    /// A watch with an uplink that had these routes, and has lost its carrier.
    fn uplink_down(had: Routed) -> Watch {
        let own = Group { members: Members::Uplink("wlan0".parse().unwrap()), ..group(&[], &[]) };
        let signals = Signals { carrier: true, ..Signals::default() };
        let mut watch = Watch::new(&signals, &[own]);
        assert_eq!(step(&mut watch, Duration::ZERO, link(2, "wlan0", true), had), [Up]);
        assert_eq!(step(&mut watch, Duration::ZERO, link(2, "wlan0", false), Routed::NONE), [Down]);
        watch
    }

    const IPV4: Routed = Routed { ipv4: true, ipv6: false };
    const IPV6: Routed = Routed { ipv4: false, ipv6: true };
    const BOTH: Routed = Routed { ipv4: true, ipv6: true };
    const ROUTE: Event = Event::Route { index: Some(2) };

    #[test]
    fn an_uplink_with_a_carrier_is_back_when_it_has_the_routes_it_had() {
        let mut watch = uplink_down(BOTH);
        let second = Duration::from_secs(1);
        assert_eq!(step(&mut watch, second, link(2, "wlan0", true), Routed::NONE), []);
        assert_eq!(watch.next_time(), None, "without any it is not back, however long");
        assert_eq!(
            step(&mut watch, second * 3, Event::Route { index: Some(3) }, BOTH),
            [],
            "another's"
        );
        assert_eq!(step(&mut watch, second * 3, ROUTE, IPV6), []);
        assert_eq!(step(&mut watch, second * 4, Event::Route { index: None }, BOTH), [Up]);
        assert_eq!(watch.next_time(), None);
        assert_eq!(step(&mut watch, second * 5, ROUTE, Routed::NONE), [], "it has a carrier");
        // A recreated interface is still the same uplink.
        assert_eq!(
            step(&mut watch, second * 6, Event::LinkGone { index: 2 }, Routed::NONE),
            [Down]
        );
        assert_eq!(step(&mut watch, second * 7, link(9, "wlan0", true), Routed::NONE), []);
        assert_eq!(step(&mut watch, second * 8, Event::Route { index: Some(9) }, BOTH), [Up]);
    }

    #[test]
    fn an_uplink_that_is_down_and_has_no_routes_has_no_interface_for_the_loop() {
        let mut watch = uplink_down(IPV4);
        let uplink = *watch.uplinks.keys().next().unwrap();
        let mut announced = |event, has| {
            step(&mut watch, Duration::ZERO, event, has);
            watch.uplinks[&uplink].announced
        };
        assert_eq!(announced(ROUTE, IPV4), Some(2), "packets still leave, as far as they get");
        assert_eq!(announced(ROUTE, Routed::NONE), None);
        assert_eq!(announced(link(2, "wlan0", true), Routed::NONE), None);
        assert_eq!(announced(ROUTE, IPV4), Some(2));
        assert_eq!(announced(ROUTE, Routed::NONE), Some(2), "it is up");
    }

    #[test]
    fn an_uplink_waits_only_for_so_long_for_the_other_version_of_ip() {
        let mut watch = uplink_down(BOTH);
        let begin = Duration::from_secs(1);
        assert_eq!(step(&mut watch, begin, link(2, "wlan0", true), IPV6), []);
        let enough = START.after(begin + OTHER_ROUTE);
        assert_eq!(watch.next_time(), Some(enough));
        assert_eq!(step(&mut watch, begin * 2, ROUTE, IPV6), []);
        assert_eq!(watch.next_time(), Some(enough), "more news do not prolong it");
        let announced = watch.waited(enough, &|_| IPV6);
        assert_eq!(announced.iter().map(|s| s.signal).collect::<Vec<_>>(), [Up]);
        // The missing version is not waited for again, until it has had routes again.
        assert_eq!(step(&mut watch, begin * 9, link(2, "wlan0", false), Routed::NONE), [Down]);
        assert_eq!(step(&mut watch, begin * 9, link(2, "wlan0", true), IPV6), [Up]);
    }

    #[test]
    fn an_uplink_whose_carrier_goes_again_begins_to_wait_anew() {
        let mut watch = uplink_down(BOTH);
        let second = Duration::from_secs(1);
        assert_eq!(step(&mut watch, second, link(2, "wlan0", true), IPV4), []);
        assert_eq!(step(&mut watch, second * 2, link(2, "wlan0", false), IPV4), []);
        assert_eq!(watch.next_time(), None);
        assert_eq!(step(&mut watch, second * 9, link(2, "wlan0", true), IPV4), []);
        assert_eq!(watch.next_time(), Some(START.after(second * 9 + OTHER_ROUTE)));
    }

    #[test]
    fn an_uplink_that_never_had_a_route_is_back_with_its_carrier() {
        let mut watch = uplink_down(Routed::NONE);
        assert_eq!(step(&mut watch, Duration::ZERO, link(2, "wlan0", true), Routed::NONE), [Up]);
    }

    #[test]
    fn a_neighbour_that_fails_is_down_until_it_is_known_again() {
        let mut watch = watch(&[group(&["10.0.0.0/24", "fd00::/64"], &["wlan0"])]);
        watch.carrier = false;
        for mobile in ["10.0.0.7", "fd00::7"] {
            assert_eq!(reported(&mut watch, seen(2, mobile, true)), [word(mobile, Up, Neighbour)]);
            assert_eq!(reported(&mut watch, seen(2, mobile, true)), []);
            assert_eq!(
                reported(&mut watch, seen(2, mobile, false)),
                [word(mobile, Down, Neighbour)]
            );
            assert_eq!(reported(&mut watch, seen(2, mobile, true)), [word(mobile, Up, Neighbour)]);
        }
    }

    #[test]
    fn neighbours_elsewhere_are_none_of_our_mobiles() {
        let mut watch = watch(&[group(&["10.0.0.0/24"], &["wlan0"])]);
        assert_eq!(reported(&mut watch, seen(3, "10.0.0.7", false)), []);
        assert_eq!(reported(&mut watch, seen(2, "10.0.1.7", false)), []);
        assert_eq!(reported(&mut watch, seen(77, "10.0.0.7", false)), []);
    }

    #[test]
    fn a_neighbour_that_is_down_is_asked_for_less_and_less_often() {
        let mut watch = watch(&[group(&["10.0.0.0/24"], &["wlan0"])]);
        reported(&mut watch, seen(2, "10.0.0.7", false));
        let mut probed = Vec::new();
        while let Some(probe) =
            watch.next_time().filter(|&at| at < START.after(Duration::from_secs(1000)))
        {
            assert_eq!(watch.probes(probe), [(2, "10.0.0.7".parse().unwrap())]);
            probed.push(probe.since(START).as_millis() / 1000);
        }
        assert_eq!(probed[..12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(probed[probed.len() - 1] - probed[probed.len() - 2], 60, "{probed:?}");
        reported(&mut watch, seen(2, "10.0.0.7", true));
        assert_eq!(watch.next_time(), None);
    }

    #[test]
    fn nobody_is_asked_for_where_there_is_no_carrier() {
        let mut watch = watch(&[group(&["10.0.0.0/24"], &["wlan0"])]);
        reported(&mut watch, seen(2, "10.0.0.7", false));
        reported(&mut watch, link(2, "wlan0", false));
        assert_eq!(watch.probes(START.after(Duration::from_secs(1))), []);
    }

    #[test]
    fn the_oldest_neighbour_is_forgotten_at_the_limit() {
        let mut watch = watch(&[group(&["10.0.0.0/8"], &["wlan0"])]);
        for i in 0..=MOST_NEIGHBOURS as u32 {
            let address = IpAddr::from((0x0a00_0000 + i).to_be_bytes());
            watch.take(START, Event::Neighbour { index: 2, address, answers: false }, NO_ROUTES);
        }
        let known = (watch.neighbours.len(), watch.failed.len(), watch.reported.len());
        assert_eq!(known, (MOST_NEIGHBOURS, MOST_NEIGHBOURS, 2 * MOST_NEIGHBOURS));
    }

    #[test]
    fn messages_are_read_as_the_kernel_writes_them() {
        let header = |flags: i32, family: u8| {
            let mut bytes = vec![family, 0, 1, 0];
            bytes.extend(7_u32.to_ne_bytes());
            bytes.extend(flags.to_ne_bytes());
            bytes.extend([0; 4]);
            bytes
        };
        let body = |flags, family| {
            let message =
                Message::new(0, 0, &header(flags, family)).with_name(libc::IFLA_IFNAME, "eth0");
            message.finish()[16..].to_vec()
        };
        let all = libc::IFF_UP | libc::IFF_LOWER_UP | libc::IFF_RUNNING;
        let new = |flags| event(libc::RTM_NEWLINK, &body(flags, 0));
        assert_eq!(new(all), Some(link(7, "eth0", true)));
        for lacking in [libc::IFF_UP, libc::IFF_LOWER_UP, libc::IFF_RUNNING] {
            assert_eq!(new(all & !lacking), Some(link(7, "eth0", false)));
        }
        assert_eq!(event(libc::RTM_DELLINK, &body(0, 0)), Some(Event::LinkGone { index: 7 }));
        let port = body(0, libc::AF_BRIDGE as u8);
        assert_eq!(
            event(libc::RTM_DELLINK, &port),
            None,
            "a port of a bridge is still an interface"
        );
        for length in 0..16 {
            assert_eq!(event(libc::RTM_NEWLINK, &body(all, 0)[..length]), None);
        }
        // The request for a probe has the layout of the kernel's own messages.
        let mut probe = probe(7, "fd00::7".parse().unwrap())[16..].to_vec();
        assert_eq!(event(libc::RTM_NEWNEIGH, &probe), None, "it has no state");
        probe[8..10].copy_from_slice(&libc::NUD_STALE.to_ne_bytes());
        assert_eq!(event(libc::RTM_NEWNEIGH, &probe), Some(seen(7, "fd00::7", true)));
        probe[8..10].copy_from_slice(&libc::NUD_FAILED.to_ne_bytes());
        assert_eq!(event(libc::RTM_NEWNEIGH, &probe), Some(seen(7, "fd00::7", false)));
        assert_eq!(event(libc::RTM_DELNEIGH, &probe), None);
    }
}
