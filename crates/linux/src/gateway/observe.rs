//! `mode = "observe"`: what a gateway would have done, told by one that does nothing.
//!
//! Read first: `airtcp_edge::observe` (what is seen), [`copies`](super::copies) (how). An
//! [`Observation`] has copies of packets that have gone on, and the signals. It has no queue in
//! which packets could wait, no rules that would lead them there and no socket to send by: nothing
//! of [`datapath`](super::datapath) but the form of a copy. So it cannot change what passes.

use super::command::{Command, GroupReport, GroupStatus, Inbox, ProtocolReport, Report, Status};
use super::config::{FastPathMode, GatewayConfig, Group, Signals};
use super::copies::{Copier, Copies, Taken, Traffic};
use super::datapath::Intercepted;
use super::dispatch::{DispatchError, Place, concerns, of_group, table};
use super::driver::{HEARTBEAT, interface, now, refuse_fixed};
use super::kept::Kept;
use super::mobiles::Mobiles;
use super::signals::agent::AgentCounters;
use airtcp_core::{Instant, LinkSignal};
use airtcp_edge::{
    FlowId, FlowTableConfig, MechanismConfig, MobileId, ObserveConfig, Observer, Side, Stalls,
    WakeConfig,
};
use airtcp_wire::outline;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// The word in the place of a mechanism's, in status.
const OBSERVE: &str = "observe";

/// A group of mobiles and what was seen of it.
struct Observed {
    config: Group,
    place: Place,
    observer: Observer,
    /// Where the link is.
    to: Side,
    /// What the kernel counted under the configurations before.
    before: [Traffic; 3],
    /// What it had counted in this group's place when this configuration began.
    offset: [Traffic; 3],
}

/// A gateway that only looks.
pub struct Observation {
    groups: Vec<Observed>,
    copies: Copies,
    mobiles: Mobiles,
    table: FlowTableConfig,
    config: GatewayConfig,
    agents: Arc<AgentCounters>,
    packets_undecodable: u64,
    since: Instant,
}

/// The configuration by which packets are copied: each group is looked at as wake looks at it,
/// whatever its mechanism.
fn looked_at(mut config: GatewayConfig) -> GatewayConfig {
    for group in &mut config.groups {
        group.mechanism = MechanismConfig::Wake(look(group, &config.signals));
        group.fast_path = FastPathMode::Auto;
    }
    config
}

/// As wake would look at a group: what silence means there, and where the link is.
fn look(group: &Group, signals: &Signals) -> WakeConfig {
    match group.mechanism {
        MechanismConfig::Wake(config) => config,
        _ => {
            let default = WakeConfig::default();
            WakeConfig { silence: signals.silence.unwrap_or(default.silence), ..default }
        }
    }
}

impl Observation {
    /// Begins to look. `hash_key` must not be guessable.
    ///
    /// # Errors
    /// An interface does not exist, or this machine makes no copies.
    pub fn start(
        config: GatewayConfig,
        hash_key: (u64, u64),
        agents: Arc<AgentCounters>,
    ) -> Result<Self, DispatchError> {
        let mut copies = Copies::default();
        let (looked_at, prepared) = copies.prepare(looked_at(config.clone()));
        if !looked_at.groups.iter().all(Group::is_copied) {
            return Err(DispatchError::NothingToSee);
        }
        let table = table(&config.limits, hash_key);
        let begin = |group: &Group| Observed::new(group, &config.signals, table);
        let groups = config.groups.iter().map(begin).collect::<Result<_, _>>()?;
        copies.commit(&looked_at, prepared);
        Ok(Self {
            groups,
            copies,
            mobiles: Mobiles::new(None),
            table,
            config,
            agents,
            packets_undecodable: 0,
            since: now(),
        })
    }

    /// Runs until it is asked to [stop](Command::Stop). Calls `beat` often as long as it is alive.
    ///
    /// # Errors
    /// The copies cannot be read.
    pub fn run(&mut self, inbox: &Inbox, beat: &mut dyn FnMut()) -> io::Result<()> {
        let mut batch = Vec::new();
        let mut taken = Taken::None;
        loop {
            beat();
            self.wait(inbox, taken)?;
            let _ = inbox.wake.read();
            taken = self.take(&mut batch)?;
            let time = now();
            for group in &mut self.groups {
                if group.observer.deadline().is_some_and(|due| due <= time) {
                    group.observer.on_deadline(time);
                }
            }
            self.attend();
            while let Ok(command) = inbox.commands.try_recv() {
                match command {
                    Command::Stop => return Ok(()),
                    // Packets that passed before the signal count before it.
                    Command::Signal(_) | Command::Withdrawn(_) => drop(self.take(&mut batch)?),
                    _ => {}
                }
                self.obey(command);
            }
        }
    }

    fn wait(&self, inbox: &Inbox, taken: Taken) -> io::Result<()> {
        let due = self.groups.iter().filter_map(|group| group.observer.deadline()).min();
        let timeout = due.map_or(HEARTBEAT, |due| {
            Duration::from_nanos(due.since(now()).as_nanos()).min(HEARTBEAT)
        });
        let timeout = timeout.min(taken.pause().unwrap_or(timeout));
        let copier = self.copies.copier().filter(|_| taken == Taken::None);
        let mut fds: Vec<_> = std::iter::once(inbox.wake.as_fd())
            .chain(copier.map(Copier::fds).into_iter().flatten())
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        match ppoll(&mut fds, Some(TimeSpec::from(timeout)), None) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks at the copies that are there; `batch` is room for them.
    fn take(&mut self, batch: &mut Vec<Intercepted>) -> io::Result<Taken> {
        let Some(copier) = self.copies.copier() else { return Ok(Taken::None) };
        let taken = copier.take(batch)?;
        let time = now();
        for copy in batch.drain(..) {
            self.look_at(time, &copy);
        }
        self.attend();
        Ok(taken)
    }

    fn look_at(&mut self, time: Instant, copy: &Intercepted) {
        let Ok((protocol, flow)) = outline(&copy.packet) else {
            self.packets_undecodable += 1;
            return;
        };
        let groups = || self.groups.iter().map(|group| (&group.config, &group.place));
        let Some((n, from)) = concerns(groups, &flow, copy) else { return };
        let Ok(packet) = Kept::new(FlowId { protocol, flow }, copy) else {
            self.packets_undecodable += 1;
            return;
        };
        let mobile = self.groups[n].config.mobile_of(&from.to_mobile(flow));
        let Observed { observer, to, .. } = &mut self.groups[n];
        match from == *to {
            true => observer.on_heard(time, mobile, &packet),
            false => observer.on_sent(time, mobile, &packet),
        }
    }

    /// Sees to it that all is shown of the mobiles that observers want to see all of.
    fn attend(&mut self) {
        for group in &mut self.groups {
            for (mobile, on) in group.observer.drain_attention() {
                self.copies.set_full(mobile, on);
            }
        }
    }

    /// Tells the observers of a mobile.
    fn tell(&mut self, mobile: MobileId, signal: LinkSignal) {
        let time = now();
        for group in self.groups.iter_mut().filter(|group| group.config.has(mobile)) {
            group.observer.on_signal(time, mobile, signal);
        }
        self.attend();
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Signal(signal) => {
                if let Some(told) = self.mobiles.note(signal) {
                    self.tell(signal.mobile, told);
                }
            }
            Command::Withdrawn(source) => {
                for (mobile, signal) in self.mobiles.withdraw(source) {
                    self.tell(mobile, signal);
                }
            }
            Command::Interface(uplink, index) => {
                for Observed { config, place, .. } in &mut self.groups {
                    place.set_index(config, uplink, index);
                }
                self.copies.set_index(uplink, index);
            }
            // Whoever asked may have gone.
            Command::Status(answer) => drop(answer.send(self.status())),
            Command::Reload(config, answer) => drop(answer.send(self.reload(*config))),
            Command::Ping(answer) => drop(answer.send(())),
            Command::Replaced(_) | Command::Stop => {}
        }
    }

    fn reload(&mut self, config: GatewayConfig) -> Result<(), String> {
        refuse_fixed(&self.config, &config)?;
        let counted = self.copies.traffic();
        if config.groups.len() > counted.len() {
            let most = counted.len();
            return Err(format!("more than {most} groups while the gateway observes: restart it"));
        }
        let table = table(&config.limits, self.table.hash_key);
        let begin = |group: &Group| Observed::new(group, &config.signals, table);
        let mut groups: Vec<Observed> = config
            .groups
            .iter()
            .map(begin)
            .collect::<Result<_, DispatchError>>()
            .map_err(|error| error.to_string())?;
        let (looked_at, prepared) = self.copies.prepare(looked_at(config.clone()));
        for (n, old) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            if let Some(new) = groups.iter_mut().find(|new| new.config.name == old.config.name) {
                new.before = old.traffic(&counted[n]);
                let silence = look(&new.config, &config.signals).silence;
                new.observer = old.observer;
                new.observer.reconfigure(ObserveConfig { silence }, of_group(table, &new.config));
            }
        }
        for (group, &offset) in groups.iter_mut().zip(&counted) {
            group.offset = offset;
        }
        self.copies.commit(&looked_at, prepared);
        (self.groups, self.table, self.config) = (groups, table, config);
        Ok(())
    }

    /// What was seen.
    fn status(&self) -> Status {
        let counted = self.copies.traffic();
        let own = [
            ("packets_undecodable", self.packets_undecodable),
            ("copies_missed", self.copies.missed().unwrap_or(0)),
        ];
        let counters = own.into_iter().chain(self.agents.read());
        let mut status = Status {
            counters: counters.map(|(name, count)| (name.to_owned(), count)).collect(),
            ..self.mobiles.status()
        };
        let mut groups = Vec::new();
        for (group, counted) in self.groups.iter().zip(&counted) {
            let flows = group.observer.flows() as u64;
            status.groups.push(GroupStatus {
                name: group.config.name.clone(),
                mechanism: OBSERVE.to_owned(),
                path: "copies".to_owned(),
                flows,
                segments_refused: group.observer.observed().packets_refused,
                ..GroupStatus::default()
            });
            status.flow_count += flows;
            groups.push(group.report(counted));
        }
        let seconds = now().since(self.since).as_secs_f64();
        status.report = Some(Report { seconds, groups });
        status
    }
}

impl Observed {
    fn new(
        group: &Group,
        signals: &Signals,
        table: FlowTableConfig,
    ) -> Result<Self, DispatchError> {
        let WakeConfig { silence, towards, .. } = look(group, signals);
        Ok(Self {
            config: group.clone(),
            place: Place::new(group, &interface)?,
            observer: Observer::new(ObserveConfig { silence }, of_group(table, group)),
            to: towards.side(),
            before: Default::default(),
            offset: Default::default(),
        })
    }

    /// Of all of its packets, with what the kernel has counted in its place.
    fn traffic(&self, counted: &[Traffic; 3]) -> [Traffic; 3] {
        std::array::from_fn(|n| self.before[n].plus(counted[n].minus(self.offset[n])))
    }

    fn report(&self, counted: &[Traffic; 3]) -> GroupReport {
        let seen = self.observer.observed();
        let [tcp, quic, other] = self.traffic(counted);
        let of = |traffic: Traffic, stalls: Stalls| ProtocolReport {
            packets: traffic.packets,
            bytes: traffic.bytes,
            flows: traffic.flows,
            stalled: stalls.stalled,
            resumed: stalls.resumed,
            saved_least: stalls.saved_least.as_secs_f64(),
            saved_most: stalls.saved_most.as_secs_f64(),
        };
        GroupReport {
            name: self.config.name.clone(),
            away: self.observer.away() as u64,
            outages_told: seen.outages_told,
            outages_silent: seen.outages_silent,
            outage_seconds: seen.away.as_secs_f64(),
            longest_outage: seen.longest.as_secs_f64(),
            tcp: of(tcp, seen.tcp),
            quic: of(quic, seen.quic),
            other: of(other, Stalls::default()),
        }
    }
}
