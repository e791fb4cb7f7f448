//! The gateway without I/O: packets and signals in, verdicts and packets out.
//!
//! Read first: `airtcp_edge::middlebox` (the contract), [`packets`](crate::packets).
//!
//! A packet belongs to a group of mobiles by its addresses (and interfaces), or else to the uplink
//! that it crosses, and is handed to that group's mechanism as a [`Segment`]. What the mechanism
//! forwards passes as it came, byte for byte; what it drops or keeps is dropped; what it makes
//! itself is cut to the receiver's MSS (copies may be super-packets of segmentation offload) and
//! encoded. Whatever is not a TCP segment, is malformed, or belongs to a connection on which only
//! the hosts can send valid segments (MPTCP, TCP-AO, MD5) passes untouched.
//!
//! [`Wake`] is about packets of all protocols: a group with it has its packets copied as [`Kept`],
//! and none of them ever waits.

use crate::config::{GatewayConfig, Group, Limits, Members, Queued, uplink_of};
use crate::hosts::HostPair;
use crate::ledger::{Refused, Saved, WriteError};
use crate::mobiles::Mobiles;
use crate::packets::{Intercepted, Kept, Sent, SharedBytes, Verdict, Way};
use crate::refusals::Refusals;
use crate::signals::{MobileSignal, SignalSource};
use crate::status::{FlowStatus, GroupStatus, Status};
use airtcp_core::{Duration, Flags, Flow, Instant, LinkSignal, Payload, Segment};
use airtcp_edge::per_connection::TURN;
use airtcp_edge::{
    Action, Actions, FlowId, FlowPhase, FlowReport, FlowTableConfig, InterfaceName, Mechanism,
    MechanismConfig, Middlebox, MobileId, Note, ReconfigureError, Side, ThresholdTooSmall, Wake,
};
use airtcp_record::{Input, Setup};
use airtcp_wire::{
    Checksums, DecodeError, Decoded, TooBig, checksummed, decode_with, encode, outline, too_big,
};
use hashlink::LruCache;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::RandomState;
use std::io;
use std::net::IpAddr;

/// How often to look whether a mobile that is back still needs its packets intercepted. Whatever a
/// mechanism drops in the first round trips after an outage should be intercepted.
const SETTLING: Duration = Duration::from_secs(1);

/// Keeps what must outlive the process: what mechanisms promised, and what they hold frozen.
pub trait Keeper {
    /// Writes down notes of a group's mechanism, so that they survive the process.
    ///
    /// # Errors
    /// Some were not written; promises of their connections are then not given.
    fn write(&mut self, group: &str, notes: &[Note<SharedBytes>]) -> Result<(), WriteError>;

    /// Lets the notes about released connections take effect: the actions that came with them were
    /// carried out. Returns the connections that are due for a complete note.
    fn settle(&mut self) -> Vec<Flow>;
}

/// Records what mechanisms are given and do.
pub trait Recorder {
    /// The mechanism of a group begins, without connections.
    fn begin(&mut self, now: Instant, group: u32, setup: &Setup);

    /// The mechanism of a group goes on with other settings, and keeps its connections.
    fn reconfigure(&mut self, now: Instant, group: u32, setup: &Setup);

    /// The mechanism of a group took over this many connections of an earlier process.
    fn restore(&mut self, now: Instant, group: u32, connections: u64);

    /// The mechanism of a group was called, and wants this done. To be called after each call to a
    /// mechanism, before anything else becomes of the actions.
    fn step(
        &mut self,
        now: Instant,
        group: u32,
        input: &Input<&[u8]>,
        actions: &[Action<SharedBytes>],
    );

    /// Hands over what was recorded; to be called before the loop goes to sleep.
    fn flush(&mut self);

    /// Ends the recording; returns how many steps are not in it.
    ///
    /// # Errors
    /// It could not be written to its end.
    fn finish(self: Box<Self>) -> io::Result<u64>;
}

/// What a group runs, as a recording tells it.
fn setup(group: &Group, limits: &Limits) -> Setup {
    Setup {
        name: group.name.clone(),
        mechanism: group.mechanism,
        flows: limits.flows,
        flows_per_mobile: match group.uplink() {
            None => limits.flows_per_mobile,
            Some(_) => limits.flows,
        },
        uplink: group.uplink(),
        idle: limits.idle,
        memory: limits.memory,
    }
}

/// One thing for the loop to do besides the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send a packet.
    Inject {
        /// Out of this side.
        to: Side,
        /// How it gets there.
        way: Way,
        /// From the IP header on.
        packet: Vec<u8>,
    },
    /// Intercept the packets of a mobile of a group that is [`Queued::Watched`] from now on, or no
    /// longer.
    Watch {
        /// Which mobile.
        mobile: MobileId,
        /// From now on.
        watched: bool,
    },
    /// Copy all packets of a mobile from now on, also if it answers; or no longer.
    CopyAll {
        /// Which mobile.
        mobile: MobileId,
        /// From now on.
        on: bool,
    },
}

/// Packets by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    passed: u64,
    dropped: u64,
    injected: u64,
    /// Passed untouched: not TCP, a fragment, malformed.
    undecodable: u64,
    /// Passed untouched: of no group.
    unconcerned: u64,
    /// Passed untouched: only the hosts can send valid segments on this connection.
    foreign: u64,
    /// Could not be encoded.
    unsendable: u64,
    /// Promises that were not given because they could not be written down.
    unkept: u64,
    /// Connections of an earlier process that were reset.
    refused: u64,
    /// Messages of routers that a segment was too big.
    too_big_believed: u64,
    /// The same, of no segment in flight.
    too_big_doubted: u64,
}

/// A group of mobiles with its mechanism at work.
struct ActiveGroup {
    /// In a recording.
    id: u32,
    config: Group,
    place: Place,
    machine: Machine,
}

/// Where a group's packets pass.
pub(crate) enum Place {
    /// Indices of the interfaces behind which the mobiles are; empty: any.
    Mobiles(Vec<u32>),
    /// Index of the uplink's interface, while there is one.
    Uplink(Option<u32>),
}

impl Place {
    /// `index` finds interfaces by name.
    pub(crate) fn new(
        group: &Group,
        index: &dyn Fn(&str) -> Option<u32>,
    ) -> Result<Self, DispatchError> {
        let find = |interface: &String| {
            index(interface).ok_or_else(|| DispatchError::Interface {
                group: group.name.clone(),
                interface: interface.clone(),
            })
        };
        Ok(match &group.members {
            Members::Mobiles { interfaces, .. } => {
                Self::Mobiles(interfaces.iter().map(find).collect::<Result<_, _>>()?)
            }
            Members::Uplink(interface) => Self::Uplink(index(interface.as_str())),
        })
    }

    /// Whether a mobile with this address, behind this interface, is of the group.
    fn has(&self, group: &Group, ip: IpAddr, interface: Option<u32>) -> bool {
        let Self::Mobiles(interfaces) = self else { return false };
        let is_there = |index| interfaces.contains(&index);
        group.has(MobileId::Host(ip)) && (interfaces.is_empty() || interface.is_none_or(is_there))
    }

    /// The interface of this uplink, which may be another group's, has this index from now on;
    /// none: it is gone.
    pub(crate) fn set_index(&mut self, group: &Group, uplink: InterfaceName, index: Option<u32>) {
        if group.uplink() == Some(uplink) {
            *self = Self::Uplink(index);
        }
    }

    /// Whether this is the interface of the uplink.
    fn is_uplink(&self, interface: Option<u32>) -> bool {
        matches!(*self, Self::Uplink(index) if index.is_some() && index == interface)
    }
}

/// The group that a packet belongs to, and from which side it comes. Nobody on board sends what
/// goes from one uplink to another.
pub(crate) fn concerns<'a, G: Iterator<Item = (&'a Group, &'a Place)>>(
    groups: impl Fn() -> G,
    flow: &Flow,
    packet: &Intercepted,
) -> Option<(usize, Side)> {
    let find = |ip: IpAddr, interface: Option<u32>| {
        groups().position(|(group, place)| place.has(group, ip, interface))
    };
    let crosses = |interface| groups().position(|(_, place)| place.is_uplink(interface));
    let to_mobile = find(flow.dst.ip, packet.output).map(|n| (n, Side::Fixed));
    let from_mobile = || find(flow.src.ip, packet.input).map(|n| (n, Side::Mobile));
    to_mobile.or_else(from_mobile).or_else(|| {
        match (crosses(packet.output), crosses(packet.input)) {
            (Some(n), None) => Some((n, Side::Fixed)),
            (None, Some(n)) => Some((n, Side::Mobile)),
            (None, None) | (Some(_), Some(_)) => None,
        }
    })
}

/// What is at work for a group.
enum Machine {
    /// A mechanism for TCP.
    Segments(Box<Mechanism<SharedBytes>>),
    /// Wake, for all protocols, and where it sends.
    Packets(Box<Wake<Kept>>, Side),
}

/// All groups at work: hands packets and signals to their mechanisms.
pub struct Dispatcher {
    groups: Vec<ActiveGroup>,
    mobiles: Mobiles,
    /// By the flow from the fixed to the mobile host.
    hosts: LruCache<Flow, HostPair, RandomState>,
    /// Mobiles whose packets are intercepted, of groups that are [`Queued::Watched`], or all
    /// copied, of groups with wake.
    watched: BTreeSet<MobileId>,
    /// When to look whether some of them can be left alone.
    unwatch: Option<Instant>,
    counters: Counters,
    table: FlowTableConfig,
    actions: Actions<SharedBytes>,
    keeper: Box<dyn Keeper>,
    /// Connections that could not be taken over.
    refusals: Refusals,
    recorder: Option<Box<dyn Recorder>>,
    /// The next group's.
    next_id: u32,
}

/// Why a configuration cannot be put to work.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// See there.
    #[error("group {group:?}: {source}")]
    Threshold {
        /// Name of the group.
        group: String,
        /// What is wrong.
        source: ThresholdTooSmall,
    },
    /// An interface does not exist.
    #[error("group {group:?}: there is no interface {interface:?}")]
    Interface {
        /// Name of the group.
        group: String,
        /// Name of the interface.
        interface: String,
    },
    /// This machine makes no copies in the kernel.
    #[error(
        "group {group:?}: wake, the default, needs copies of packets, which this machine cannot make (Linux 6.4, CAP_BPF \
         and CAP_PERFMON; `airtcp doctor` tells what is missing); `mechanism = \"holdover\"` does without"
    )]
    Copies {
        /// Name of the group.
        group: String,
    },
    /// This machine makes no copies in the kernel.
    #[error(
        "mode = \"observe\" needs copies of packets, which this machine cannot make (Linux 6.4, CAP_BPF and CAP_PERFMON; \
         `airtcp doctor` tells what is missing)"
    )]
    NothingToSee,
    /// It has connections with acknowledged bytes held only by the gateway.
    #[error(
        "group {group:?} cannot be removed or change its mechanism now: {committed} of its connections \
         have acknowledged bytes that their mobiles lack; try again when the mobiles are back"
    )]
    Committed {
        /// Name of the group.
        group: String,
        /// Connections.
        committed: usize,
    },
}

impl Dispatcher {
    /// Without connections. `hash_key` must not be guessable; `index` finds interfaces by name;
    /// `keeper` keeps promises.
    ///
    /// # Errors
    /// A group cannot be put to work.
    pub fn new(
        config: &GatewayConfig,
        hash_key: (u64, u64),
        index: &dyn Fn(&str) -> Option<u32>,
        keeper: Box<dyn Keeper>,
    ) -> Result<Self, DispatchError> {
        let table = table(&config.limits, hash_key);
        let begin = |(id, group)| ActiveGroup::new(id, group, table, config, index);
        let groups: Vec<ActiveGroup> =
            (0..).zip(&config.groups).map(begin).collect::<Result<_, _>>()?;
        Ok(Self {
            next_id: groups.len() as u32,
            groups,
            table,
            keeper,
            refusals: Refusals::default(),
            recorder: None,
            mobiles: Mobiles::new(config.signals.silence),
            hosts: LruCache::with_hasher(remembered(config), RandomState::new()),
            watched: BTreeSet::new(),
            unwatch: None,
            counters: Counters::default(),
            actions: Actions::new(),
        })
    }

    /// Records what the mechanisms are given and do. Call it before they are given anything.
    pub fn record(&mut self, now: Instant, limits: &Limits, mut recorder: Box<dyn Recorder>) {
        for ActiveGroup { id, config, .. } in &self.groups {
            recorder.begin(now, *id, &setup(config, limits));
        }
        self.recorder = Some(recorder);
    }

    /// Ends a recording; how many steps are not in it, if there was one.
    ///
    /// # Errors
    /// The file could not be written to its end.
    pub fn end_recording(&mut self) -> io::Result<Option<u64>> {
        self.recorder.take().map(|recorder| recorder.finish()).transpose()
    }

    /// Call it before the loop sleeps.
    pub fn rest(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.flush();
        }
    }

    /// Goes on with another configuration. A group keeps its connections if it keeps its name and
    /// mechanism.
    ///
    /// # Errors
    /// Nothing was changed: the configuration cannot be put to work, or a group that is to go, or
    /// to change its mechanism, has promised bytes.
    pub fn reload(
        &mut self,
        now: Instant,
        config: &GatewayConfig,
        index: &dyn Fn(&str) -> Option<u32>,
    ) -> Result<(), DispatchError> {
        let table = table(&config.limits, self.table.hash_key);
        let begin = |(id, group)| ActiveGroup::new(id, group, table, config, index);
        let mut groups: Vec<ActiveGroup> =
            (self.next_id..).zip(&config.groups).map(begin).collect::<Result<_, _>>()?;
        for old in self.groups.iter().filter(|old| !groups.iter().any(|new| new.succeeds(old))) {
            let committed = old.machine.reports().filter(|report| report.committed).count();
            if committed > 0 {
                let group = old.config.name.clone();
                return Err(DispatchError::Committed { group, committed });
            }
        }
        self.next_id += groups.len() as u32;
        for new in &mut groups {
            let memory = config.limits.memory;
            let mut is_kept = false;
            if let Some(old) = self.groups.iter_mut().find(|old| new.succeeds(old))
                && old
                    .machine
                    .reconfigure(&new.config.mechanism, of_group(table, &new.config), memory)
                    .is_ok()
            {
                is_kept = true;
                new.id = old.id;
                std::mem::swap(&mut old.machine, &mut new.machine);
            }
            if let Some(recorder) = &mut self.recorder {
                let setup = setup(&new.config, &config.limits);
                match is_kept {
                    true => recorder.reconfigure(now, new.id, &setup),
                    false => recorder.begin(now, new.id, &setup),
                }
            }
        }
        for old in std::mem::replace(&mut self.groups, groups) {
            // Those that go on have left an empty one in their place.
            let is_kept = |report: &FlowReport| report.phase != FlowPhase::Connected;
            let gone = old.machine.reports().filter(is_kept);
            let notes: Vec<_> = gone.map(|report| Note::Released(report.flow)).collect();
            self.keeper.write(&old.config.name, &notes).unwrap_or_else(tell_unwritten);
        }
        self.table = table;
        self.hosts.set_capacity(remembered(config));
        self.mobiles.set_silence(config.signals.silence);
        for n in 0..self.groups.len() {
            self.write_down(n);
        }
        Ok(())
    }

    /// Takes over connections of an earlier process, and resets, at both ends, those that nobody
    /// can go on with; how many of each.
    pub fn take_over(
        &mut self,
        now: Instant,
        connections: Vec<Saved>,
        refused: Vec<Refused>,
        effects: &mut Vec<Effect>,
    ) -> [usize; 2] {
        let (mut taken, mut failed) = (0, refused);
        for Saved { group, flow, snapshot } in connections {
            let has = |known: &ActiveGroup| known.config.has(known.config.mobile_of(&flow));
            let named = self.groups.iter().position(|own| own.config.name == group && has(own));
            // Of an uplink's connections the other host is fixed.
            let is_mobile = |own: &ActiveGroup| own.config.uplink().is_none() && has(own);
            let found = named.or_else(|| {
                let other = self.groups.iter().position(is_mobile);
                other.filter(|_| uplink_of(&group).is_none())
            });
            let restored = found.filter(|&n| match &mut self.groups[n].machine {
                Machine::Segments(mechanism) => mechanism.restore(now, flow, snapshot.clone()),
                Machine::Packets(..) => false,
            });
            if let Some(n) = restored {
                taken += 1;
                if let Some(recorder) = &mut self.recorder {
                    recorder.restore(now, self.groups[n].id, 1);
                }
                self.watch(now, n, self.groups[n].config.mobile_of(&flow), effects);
            } else {
                let word = snapshot.config().word();
                let why = match found {
                    None if uplink_of(&group).is_some() => format!("{group:?} is gone"),
                    None => format!("no group has the mobile (it was in {group:?})"),
                    Some(n) => {
                        let own = &self.groups[n].config;
                        let (name, has) = (&own.name, own.mechanism.word());
                        format!("group {name:?} has {has}, and it is of {word} (group {group:?})")
                    }
                };
                failed.push(Refused { flow, why, resets: snapshot.resets() });
            }
        }
        for n in 0..self.groups.len() {
            self.write_down(n);
        }
        let counts = [taken, failed.len()];
        for Refused { flow, why, resets } in failed {
            tracing::error!(%flow, why, "a connection of an earlier gateway is reset");
            self.counters.refused += 1;
            self.refusals.add(now, flow, resets, self.table.idle);
            let is_mobile = self.group_of_mobile(&flow).is_some();
            for n in 0..self.groups.len() {
                if !is_mobile || self.groups[n].config.uplink().is_none() {
                    self.watch(now, n, self.groups[n].config.mobile_of(&flow), effects);
                }
            }
        }
        counts
    }

    /// What it is doing.
    pub fn status(&self, now: Instant) -> Status {
        let mut status = Status { counters: self.counters.by_name(), ..self.mobiles.status() };
        for ActiveGroup { config, machine: mechanism, .. } in &self.groups {
            status.groups.push(GroupStatus {
                name: config.name.clone(),
                mechanism: config.mechanism.word().to_owned(),
                path: if config.is_copied() { "copies" } else { "nfqueue" }.to_owned(),
                flows: mechanism.flows() as u64,
                held: mechanism.held(),
                segments_refused: mechanism.segments_refused(),
                counters: owned(mechanism.counters()),
            });
            status.flow_count += mechanism.flows() as u64;
            status.held += mechanism.held();
            for report in mechanism.reports() {
                status.committed += u64::from(report.committed);
                if status.flows.len() < Status::LISTED {
                    status.flows.push(FlowStatus {
                        fixed: report.flow.src.to_string(),
                        mobile: report.flow.dst.to_string(),
                        group: config.name.clone(),
                        mechanism: config.mechanism.word().to_owned(),
                        state: report.phase.name().to_owned(),
                        since: report.since.map(|since| now.since(since).as_secs_f64()),
                        held: report.held,
                        committed: report.committed,
                    });
                }
            }
        }
        status
    }

    /// A packet on its way through this host, or a copy of one that has gone on, for which the
    /// verdict has no effect.
    pub fn on_packet(
        &mut self,
        now: Instant,
        intercepted: &Intercepted,
        effects: &mut Vec<Effect>,
    ) -> Verdict {
        let packet = &intercepted.packet;
        let is_copy = intercepted.id.is_none();
        if is_copy && self.on_packet_to_keep(now, intercepted) {
            return self.pass(|c| &mut c.passed);
        }
        let payload = |bytes: &[u8]| SharedBytes(packet.slice_ref(bytes));
        let (segment, foreign_option) = match decode_with(packet, intercepted.checksums, payload) {
            Ok(Decoded { segment, foreign_option }) => (segment, foreign_option),
            Err(DecodeError::NotTcp { .. }) if is_copy => {
                return self.pass(|c| &mut c.unconcerned);
            }
            Err(DecodeError::NotTcp { .. }) => return self.on_message(intercepted),
            Err(_) => return self.pass(|c| &mut c.undecodable),
        };
        let Some((n, from)) = self.concerns(&segment.flow, intercepted) else {
            return self.pass(|c| &mut c.unconcerned);
        };
        if is_copy && !self.groups[n].config.is_copied() {
            return Verdict::Pass;
        }
        let flow = from.to_mobile(segment.flow);
        let is_committed = |group: &ActiveGroup| match &group.machine {
            Machine::Segments(mechanism) => mechanism.is_committed(&flow),
            Machine::Packets(..) => false,
        };
        if !self.refusals.is_empty()
            && let Some((to, reset)) = self.refusals.on_segment(&flow, from, &segment)
        {
            let way = self.groups[n].way(to);
            self.counters.inject(to, way, &reset, effects);
            self.counters.dropped += 1;
            return Verdict::Drop;
        }
        if segment.flags.contains(Flags::SYN) {
            self.host_pair(flow).note_syn(from, &segment);
        } else if foreign_option.is_some() && !is_committed(&self.groups[n]) {
            // A forged option can make us leave a connection alone, but not one that depends on us.
            self.host_pair(flow).is_foreign = true;
        }
        let hosts = self.hosts.peek(&flow).copied().unwrap_or_default();
        if hosts.is_foreign {
            return self.pass(|c| &mut c.foreign);
        }
        if hosts.learns_from(from, &segment, intercepted.datagram) {
            self.host_pair(flow).learn(from, &segment, intercepted.datagram);
        }
        let mobile = self.groups[n].config.mobile_of(&flow);
        match from {
            Side::Fixed if segment.seq_len() > 0 => {
                let machine = &self.groups[n].machine;
                self.mobiles.sent(now, mobile, || machine.is_mobile_heard(&flow));
            }
            Side::Fixed => {}
            Side::Mobile => {
                if let Some(signal) = self.mobiles.heard(mobile) {
                    self.tell(now, mobile, signal, effects);
                }
            }
        }
        let Machine::Segments(mechanism) = &mut self.groups[n].machine else {
            return Verdict::Pass;
        };
        if is_copy {
            mechanism.on_copy(now, from, segment, &mut self.actions);
            self.note_step(now, n, &Input::Copy { from, segment: packet });
        } else {
            mechanism.on_segment(now, from, segment, &mut self.actions);
            self.note_step(now, n, &Input::Segment { from, segment: packet });
        }
        let verdict = self.carry_out(n, effects);
        match verdict {
            Verdict::Pass => self.counters.passed += 1,
            Verdict::Drop if is_copy => {
                // The packet has gone on, which does no harm: to the mechanism it is as if it had
                // heard later. From now on its verdicts must count.
                self.counters.passed += 1;
                self.watch(now, n, mobile, effects);
            }
            Verdict::Drop => self.counters.dropped += 1,
        }
        verdict
    }

    /// A source says something about a mobile.
    pub fn on_signal(&mut self, now: Instant, signal: MobileSignal, effects: &mut Vec<Effect>) {
        let mobile = signal.mobile;
        let told = self.mobiles.note(signal).or_else(|| {
            // Connections may wait because of a signal that an earlier process was given.
            let waits = || self.groups.iter().any(|group| group.machine.is_interrupted(mobile));
            let is_back = signal.signal == LinkSignal::Up && !self.mobiles.is_away(mobile);
            (is_back && waits()).then_some(LinkSignal::Up)
        });
        if let Some(told) = told {
            self.tell(now, mobile, told, effects);
        }
    }

    /// A source is not asked any more.
    pub fn on_withdrawn(&mut self, now: Instant, source: SignalSource, effects: &mut Vec<Effect>) {
        for (mobile, signal) in self.mobiles.withdraw(source) {
            self.tell(now, mobile, signal, effects);
        }
    }

    /// The deadline passed: does a part of what is due, for packets must not wait long. If more is,
    /// the next deadline has passed too.
    pub fn on_timer(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        while effects.len() < TURN
            && let Some((mobile, signal)) = self.mobiles.silent(now)
        {
            self.tell(now, mobile, signal, effects);
        }
        let deadlines = self.groups.iter().map(|group| group.machine.next_deadline()).zip(0..);
        let first = deadlines.filter_map(|(due, n)| Some((due?, n))).min();
        if let Some((_, n)) = first.filter(|&(due, _)| due <= now) {
            let ways = [Side::Fixed, Side::Mobile].map(|side| self.groups[n].way(side));
            match &mut self.groups[n].machine {
                Machine::Segments(mechanism) => {
                    mechanism.on_timer(now, &mut self.actions);
                    self.note_step(now, n, &Input::Timer);
                    self.carry_out(n, effects);
                }
                Machine::Packets(wake, to) => {
                    let (to, counters) = (*to, &mut self.counters);
                    wake.on_deadline(now, |kept| match kept.sent() {
                        Sent::Segment(segment) => {
                            self.actions.inject(to, segment.clone());
                        }
                        Sent::Packet(packet) => match checksummed(packet) {
                            Ok(packet) => counters.send(to, ways[to as usize], packet, effects),
                            Err(_) => counters.unsendable += 1,
                        },
                    });
                    self.carry_out(n, effects);
                }
            }
        }
        if self.refusals.next_deadline().is_some_and(|due| due <= now) {
            let mut over = Vec::new();
            for (to, segment) in self.refusals.on_timer(now, &mut over) {
                let way = self.way_of(&to.opposite().to_mobile(segment.flow), to);
                self.counters.inject(to, way, &segment, effects);
            }
            let notes: Vec<_> = over.into_iter().map(Note::Released).collect();
            self.keeper.write("", &notes).unwrap_or_else(tell_unwritten);
        }
        if self.unwatch.is_some_and(|due| due <= now) {
            self.unwatch(now, effects);
        }
    }

    /// When to call [`Dispatcher::on_timer`] next.
    pub fn next_deadline(&self) -> Option<Instant> {
        let mechanisms = self.groups.iter().filter_map(|group| group.machine.next_deadline());
        let others = [self.mobiles.next_deadline(), self.refusals.next_deadline(), self.unwatch];
        mechanisms.chain(others.into_iter().flatten()).min()
    }

    /// Hands a copy to wake, if the mobile's group has it; false when it has not.
    fn on_packet_to_keep(&mut self, now: Instant, intercepted: &Intercepted) -> bool {
        let is_wake = |group: &ActiveGroup| matches!(group.machine, Machine::Packets(..));
        if !self.groups.iter().any(is_wake) {
            return false;
        }
        let Ok((protocol, flow)) = outline(&intercepted.packet) else { return false };
        let Some((n, from)) = self.concerns(&flow, intercepted) else { return false };
        let mobile = self.groups[n].config.mobile_of(&from.to_mobile(flow));
        let Machine::Packets(wake, to) = &mut self.groups[n].machine else { return false };
        if from == *to {
            wake.on_heard(now, mobile);
        } else {
            match Kept::new(FlowId { protocol, flow }, intercepted) {
                Ok(kept) if kept.is_too_large() => self.counters.unsendable += 1,
                Ok(kept) => wake.on_sent(now, mobile, &kept),
                Err(_) => self.counters.undecodable += 1,
            }
        }
        true
    }

    /// A packet that is not TCP: perhaps a router says that a segment was too big. It goes on in
    /// any case, for the fixed host.
    fn on_message(&mut self, intercepted: &Intercepted) -> Verdict {
        let heard = match too_big(&intercepted.packet, intercepted.checksums) {
            Ok(None) => return self.pass(|c| &mut c.unconcerned),
            Ok(Some(message)) => self.believed_room(&message, intercepted).zip(Some(message.flow)),
            Err(_) => None,
        };
        match heard {
            Some((room, flow)) => {
                self.counters.too_big_believed += 1;
                self.host_pair(flow).note_room(room);
            }
            None => self.counters.too_big_doubted += 1,
        }
        self.pass(|c| &mut c.passed)
    }

    /// How much room the path to a mobile has, by a router's message. RFC 5927 §4.1: the segment
    /// that it quotes is in flight. Anybody can send such messages, but not see which are.
    fn believed_room(&self, message: &TooBig, intercepted: &Intercepted) -> Option<usize> {
        let (n, from) = self.concerns(&message.flow.reversed(), intercepted)?;
        let Machine::Segments(mechanism) = &self.groups[n].machine else { return None };
        let in_flight = mechanism.in_flight(&message.flow).filter(|_| from == Side::Mobile)?;
        let is_in_flight =
            message.seq.at_or_after(in_flight.start) && message.seq.before(in_flight.end);
        message.room().filter(|_| is_in_flight)
    }

    fn pass(&mut self, counter: impl Fn(&mut Counters) -> &mut u64) -> Verdict {
        *counter(&mut self.counters) += 1;
        Verdict::Pass
    }

    /// The group that a packet belongs to, and from which side it comes.
    fn concerns(&self, flow: &Flow, packet: &Intercepted) -> Option<(usize, Side)> {
        concerns(|| self.groups.iter().map(|group| (&group.config, &group.place)), flow, packet)
    }

    /// How a packet of a connection of no group leaves, as far as its addresses say.
    fn way_of(&self, flow: &Flow, to: Side) -> Option<Way> {
        let uplink = || self.groups.iter().find(|group| group.config.uplink().is_some());
        let group = self.group_of_mobile(flow).or_else(uplink);
        group.map_or(Some(way(to)), |group| group.way(to))
    }

    /// The group that has the mobile, if that is what the flow goes to.
    fn group_of_mobile(&self, flow: &Flow) -> Option<&ActiveGroup> {
        self.groups.iter().find(|group| group.config.has(MobileId::Host(flow.dst.ip)))
    }

    /// A packet is larger than the first link takes. Returns smaller ones in its place; none if
    /// there can be none.
    pub fn cut_smaller(&mut self, to: Side, packet: &[u8]) -> Vec<Vec<u8>> {
        let payload = |bytes: &[u8]| SharedBytes(bytes::Bytes::copy_from_slice(bytes));
        let Ok(Decoded { segment, .. }) = decode_with(packet, Checksums::Ignore, payload) else {
            return Vec::new();
        };
        let size = segment.payload.len() + segment.options.encoded_len();
        let hosts = self.host_pair(to.opposite().to_mobile(segment.flow));
        hosts.note_too_large(to, size);
        let largest = hosts.largest(to);
        if size <= usize::from(largest) {
            return Vec::new();
        }
        let mut effects = Vec::new();
        for piece in pieces(segment, largest) {
            self.counters.inject(to, Some(way(to)), &piece, &mut effects);
        }
        let packet = |effect| match effect {
            Effect::Inject { packet, .. } => Some(packet),
            _ => None,
        };
        effects.into_iter().filter_map(packet).collect()
    }

    fn host_pair(&mut self, flow: Flow) -> &mut HostPair {
        self.hosts.entry(flow).or_insert_with(HostPair::default)
    }

    /// The interface of an uplink has this index from now on; none: it is gone.
    pub fn set_index(&mut self, uplink: InterfaceName, index: Option<u32>) {
        self.groups
            .iter_mut()
            .for_each(|group| group.place.set_index(&group.config, uplink, index));
    }

    /// Tells the mechanisms of a mobile.
    fn tell(
        &mut self,
        now: Instant,
        mobile: MobileId,
        signal: LinkSignal,
        effects: &mut Vec<Effect>,
    ) {
        for n in 0..self.groups.len() {
            if !self.groups[n].config.has(mobile) {
                continue;
            }
            if signal != LinkSignal::Up {
                self.watch(now, n, mobile, effects);
            } else if !self.watched.is_empty() {
                self.unwatch = Some(now + SETTLING);
            }
            match &mut self.groups[n].machine {
                Machine::Segments(mechanism) => {
                    mechanism.on_link(now, mobile, signal, &mut self.actions);
                    self.note_step(now, n, &Input::Signal { mobile, signal });
                    self.carry_out(n, effects);
                }
                Machine::Packets(wake, _) => wake.on_signal(now, mobile, signal),
            }
        }
    }

    /// From now on the packets of a mobile of this group are intercepted, or all copied.
    fn watch(&mut self, now: Instant, n: usize, mobile: MobileId, effects: &mut Vec<Effect>) {
        if self.groups[n].watches(mobile, true).is_some() && self.watched.insert(mobile) {
            let of_group = |group: &ActiveGroup| group.watches(mobile, true);
            effects.extend(self.groups.iter().filter_map(of_group));
            self.unwatch.get_or_insert(now + SETTLING);
        }
    }

    /// Stops intercepting packets of mobiles that are back and have everything that was held for
    /// them, and copying all of theirs.
    fn unwatch(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let away: BTreeSet<MobileId> = self.mobiles.away().map(|(mobile, _)| mobile).collect();
        let groups = &self.groups;
        self.watched.retain(|&mobile| {
            let is_settled = !away.contains(&mobile)
                && !self.refusals.concern(mobile)
                && groups.iter().all(|group| !group.machine.is_interrupted(mobile));
            if is_settled {
                effects.extend(groups.iter().filter_map(|group| group.watches(mobile, false)));
            }
            !is_settled
        });
        let is_unsettled = self.watched.iter().any(|mobile| !away.contains(mobile));
        self.unwatch = is_unsettled.then(|| now + SETTLING);
    }

    /// Call it when the effects of the last call were carried out.
    pub fn settle(&mut self) {
        let due = self.keeper.settle();
        if due.is_empty() {
            return;
        }
        for n in 0..self.groups.len() {
            if let Machine::Segments(mechanism) = &mut self.groups[n].machine {
                due.iter().for_each(|flow| mechanism.note_anew(flow));
            }
            self.write_down(n);
        }
    }

    /// Records a call to the mechanism of a group.
    fn note_step(&mut self, now: Instant, n: usize, input: &Input<&[u8]>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.step(now, self.groups[n].id, input, self.actions.as_slice());
        }
    }

    /// Writes down what a group's mechanism noted, and takes back promises that could not be
    /// written down.
    fn write_down(&mut self, n: usize) {
        let ActiveGroup { config, machine: Machine::Segments(mechanism), .. } = &mut self.groups[n]
        else {
            return;
        };
        let notes: Vec<_> = mechanism.drain_journal().collect();
        if notes.is_empty() {
            return;
        }
        if let Err(error) = self.keeper.write(&config.name, &notes) {
            for flow in &error.flows {
                self.counters.unkept += u64::from(mechanism.withhold(flow, &mut self.actions));
            }
            tell_unwritten(error);
        }
    }

    /// Turns the actions of a group's mechanism into effects, and into the verdict about the packet
    /// that led to them, if one did.
    fn carry_out(&mut self, n: usize, effects: &mut Vec<Effect>) -> Verdict {
        self.write_down(n);
        // A packet that is kept is not forwarded.
        let mut verdict = Verdict::Drop;
        for action in self.actions.drain() {
            match action {
                Action::Forward { .. } => verdict = Verdict::Pass,
                Action::Drop { .. } => {}
                Action::Inject { to, segment } => {
                    let flow = to.opposite().to_mobile(segment.flow);
                    let hosts = self.hosts.entry(flow).or_insert_with(HostPair::default);
                    let group = &self.groups[n];
                    // Wake calls a mobile that may be away by the same packet.
                    let is_replay = matches!(group.machine, Machine::Segments(_));
                    if to == Side::Mobile && is_replay && !segment.payload.is_empty() {
                        let is_in_reach = !self.mobiles.is_away(group.config.mobile_of(&flow));
                        hosts.note_replayed(segment.seq, is_in_reach);
                    }
                    for piece in pieces(segment, hosts.largest(to)) {
                        self.counters.inject(to, group.way(to), &piece, effects);
                    }
                }
            }
        }
        verdict
    }
}

/// Says that a keeper could not write something down.
fn tell_unwritten(error: WriteError) {
    let (connections, first) = (error.flows.len(), error.flows.first().map(Flow::to_string));
    tracing::error!(
        connections,
        first,
        %error,
        "what must survive a crash cannot be written down: bytes of these connections are not acknowledged"
    );
}

impl Counters {
    /// Has a segment sent, as one packet.
    fn inject(
        &mut self,
        to: Side,
        way: Option<Way>,
        segment: &Segment<SharedBytes>,
        effects: &mut Vec<Effect>,
    ) {
        let mut packet = Vec::new();
        match encode(segment, &mut packet) {
            Ok(()) => self.send(to, way, packet, effects),
            Err(_) => self.unsendable += 1,
        }
    }

    /// Has a packet sent. Without a way it is lost, as on a link that is down.
    fn send(&mut self, to: Side, way: Option<Way>, packet: Vec<u8>, effects: &mut Vec<Effect>) {
        effects.extend(way.map(|way| Effect::Inject { to, way, packet }));
        self.injected += u64::from(way.is_some());
    }

    fn by_name(self) -> BTreeMap<String, u64> {
        let Self {
            passed,
            dropped,
            injected,
            undecodable,
            unconcerned,
            foreign,
            unsendable,
            unkept,
            refused,
            too_big_believed,
            too_big_doubted,
        } = self;
        owned([
            ("packets_passed", passed),
            ("packets_dropped", dropped),
            ("packets_injected", injected),
            ("packets_undecodable", undecodable),
            ("packets_unconcerned", unconcerned),
            ("packets_foreign", foreign),
            ("packets_unsendable", unsendable),
            ("promises_unkept", unkept),
            ("takeovers_refused", refused),
            ("too_big_believed", too_big_believed),
            ("too_big_doubted", too_big_doubted),
        ])
    }
}

fn owned(counters: impl IntoIterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    counters.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

impl ActiveGroup {
    fn new(
        id: u32,
        group: &Group,
        table: FlowTableConfig,
        config: &GatewayConfig,
        index: &dyn Fn(&str) -> Option<u32>,
    ) -> Result<Self, DispatchError> {
        let machine = Machine::new(group, of_group(table, group), config)?;
        let place = Place::new(group, index)?;
        Ok(Self { id, config: group.clone(), place, machine })
    }

    /// How packets leave; `None`: not at all, there is no such interface.
    fn way(&self, to: Side) -> Option<Way> {
        match (&self.place, to) {
            (Place::Mobiles(_), _) => Some(way(to)),
            (Place::Uplink(_), Side::Fixed) => Some(Way::Untracked),
            (Place::Uplink(index), Side::Mobile) => index.map(Way::Uplink),
        }
    }

    /// The same group, perhaps with other settings.
    fn succeeds(&self, old: &Self) -> bool {
        self.config.name == old.config.name
            && self.config.mechanism.word() == old.config.mechanism.word()
    }

    /// What begins, or ends, to show all about a mobile to a mechanism that needs that in outages.
    fn watches(&self, mobile: MobileId, on: bool) -> Option<Effect> {
        if !self.config.has(mobile) {
            return None;
        }
        match (&self.machine, self.config.queued()) {
            (Machine::Packets(..), _) => Some(Effect::CopyAll { mobile, on }),
            (_, Queued::Watched) => Some(Effect::Watch { mobile, watched: on }),
            (_, Queued::Always | Queued::Never) => None,
        }
    }
}

/// How packets leave a router at the network's edge.
fn way(to: Side) -> Way {
    match to {
        Side::Fixed => Way::Tracked,
        Side::Mobile => Way::Untracked,
    }
}

impl Machine {
    fn new(
        group: &Group,
        table: FlowTableConfig,
        config: &GatewayConfig,
    ) -> Result<Self, DispatchError> {
        if let MechanismConfig::Wake(wake) = group.mechanism {
            if !group.is_copied() {
                return Err(DispatchError::Copies { group: group.name.clone() });
            }
            return Ok(Self::Packets(Box::new(Wake::new(wake, table)), wake.towards.side()));
        }
        let mut mechanism = Mechanism::new(&group.mechanism, table, config.limits.memory)
            .map_err(|source| DispatchError::Threshold { group: group.name.clone(), source })?;
        mechanism.keep_journal();
        Ok(Self::Segments(Box::new(mechanism)))
    }

    fn reconfigure(
        &mut self,
        config: &MechanismConfig,
        table: FlowTableConfig,
        memory: airtcp_core::Bytes,
    ) -> Result<(), ReconfigureError> {
        match (self, config) {
            (Self::Segments(mechanism), _) => mechanism.reconfigure(config, table, memory),
            (Self::Packets(wake, to), MechanismConfig::Wake(config)) => {
                *to = config.towards.side();
                wake.reconfigure(*config, table);
                Ok(())
            }
            (Self::Packets(..), _) => Err(ReconfigureError::OtherMechanism),
        }
    }

    fn flows(&self) -> usize {
        match self {
            Self::Segments(mechanism) => mechanism.flows(),
            Self::Packets(wake, _) => wake.flows(),
        }
    }

    fn held(&self) -> u64 {
        match self {
            Self::Segments(mechanism) => mechanism.held(),
            Self::Packets(wake, _) => wake.held(),
        }
    }

    fn segments_refused(&self) -> u64 {
        match self {
            Self::Segments(mechanism) => mechanism.segments_refused(),
            Self::Packets(wake, _) => wake.segments_refused(),
        }
    }

    fn counters(&self) -> BTreeMap<&'static str, u64> {
        match self {
            Self::Segments(mechanism) => mechanism.counters(),
            Self::Packets(wake, _) => wake.counters().by_name(),
        }
    }

    fn reports(&self) -> Box<dyn Iterator<Item = FlowReport> + '_> {
        match self {
            Self::Segments(mechanism) => mechanism.reports(),
            Self::Packets(wake, _) => Box::new(wake.reports()),
        }
    }

    fn is_mobile_heard(&self, flow: &Flow) -> bool {
        match self {
            Self::Segments(mechanism) => mechanism.is_mobile_heard(flow),
            Self::Packets(..) => false,
        }
    }

    fn is_interrupted(&self, mobile: MobileId) -> bool {
        match self {
            Self::Segments(mechanism) => mechanism.is_interrupted(mobile),
            Self::Packets(wake, _) => wake.is_interrupted(mobile),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Segments(mechanism) => mechanism.next_deadline(),
            Self::Packets(wake, _) => wake.deadline(),
        }
    }
}

/// Connections whose hosts are remembered: as many as all groups may have.
fn remembered(config: &GatewayConfig) -> usize {
    config.limits.flows.saturating_mul(config.groups.len())
}

pub(crate) fn table(limits: &Limits, hash_key: (u64, u64)) -> FlowTableConfig {
    let &Limits { flows: limit, flows_per_mobile: per_mobile, idle, .. } = limits;
    FlowTableConfig { limit, per_mobile, uplink: None, idle, hash_key }
}

/// An uplink may have all connections.
pub(crate) fn of_group(table: FlowTableConfig, group: &Group) -> FlowTableConfig {
    let uplink = group.uplink();
    let per_mobile = if uplink.is_some() { table.limit } else { table.per_mobile };
    FlowTableConfig { per_mobile, uplink, ..table }
}

/// Cuts a segment so that payload and options of each piece fit in `mss` (RFC 6691). FIN and PSH
/// are the last one's, CWR is the first one's.
fn pieces<P: Payload>(segment: Segment<P>, mss: u16) -> impl Iterator<Item = Segment<P>> {
    let most = usize::from(mss).saturating_sub(segment.options.encoded_len()).max(1);
    let (last, first) = (Flags::FIN | Flags::PSH, Flags::CWR);
    let len = segment.payload.len();
    let count = len.div_ceil(most).max(1);
    (0..count).map(move |n| {
        if count == 1 {
            return segment.clone();
        }
        let start = n * most;
        let mut flags = segment.flags;
        if n + 1 < count {
            flags -= last;
        }
        if n > 0 {
            flags -= first;
        }
        Segment {
            seq: segment.seq + start as u32,
            flags,
            payload: segment.payload.slice(start, most.min(len - start)),
            ..segment.clone()
        }
    })
}

#[cfg(test)]
mod tests;
