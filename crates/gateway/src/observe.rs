//! `mode = "observe"`: what a gateway would have done, told by one that does nothing.
//!
//! Read first: `airtcp_edge::mechanisms::observe` (what is seen). An [`Observation`] is shown
//! copies of packets that have gone on, and the signals. It returns no verdicts, and wants nothing
//! done but that all be copied of some mobiles: so it cannot change what passes.

use crate::config::{FastPathMode, GatewayConfig, Group, Signals};
use crate::dispatch::Effect;
use crate::groups::{DispatchError, Interfaces, Place, classify, of_group, table};
use crate::mobiles::Mobiles;
use crate::packets::{Intercepted, Kept};
use crate::signals::{MobileSignal, SignalSource};
use crate::status::{GroupReport, GroupStatus, ProtocolReport, Report, Status, VERSION};
use airtcp_core::{Duration, Instant, LinkSignal};
use airtcp_edge::{
    FlowId, FlowTableConfig, InterfaceName, MechanismConfig, MobileId, ObserveConfig, Observer,
    Side, Stalls, WakeConfig,
};
use airtcp_wire::outline;

/// Protocols that are counted apart: TCP, QUIC, others.
pub const CLASSES: usize = 3;

/// Counts of a group's packets of one protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets, as they are on the wire.
    pub packets: u64,
    /// Their bytes from the IP header on.
    pub bytes: u64,
    /// Flows, about: two of them may be taken for one.
    pub flows: u64,
}

impl Traffic {
    /// Sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::wrapping_add)
    }

    /// Difference to an earlier count.
    #[must_use]
    pub fn minus(self, earlier: Self) -> Self {
        self.with(earlier, u64::wrapping_sub)
    }

    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            packets: of(self.packets, other.packets),
            bytes: of(self.bytes, other.bytes),
            flows: of(self.flows, other.flows),
        }
    }
}

/// The kernel's counts for each group that can be counted, in the order of the configuration.
pub type Counted = [[Traffic; CLASSES]];

/// The word in the place of a mechanism's, in status.
const OBSERVE: &str = "observe";

/// A group of mobiles and what was seen of it.
struct Observed {
    config: Group,
    place: Place,
    observer: Observer,
    /// The side of the link.
    to: Side,
    /// Counted by the kernel under earlier configurations.
    before: [Traffic; CLASSES],
    /// Counted by the kernel in this place before this configuration began.
    offset: [Traffic; CLASSES],
}

/// A gateway that only looks.
pub struct Observation {
    groups: Vec<Observed>,
    mobiles: Mobiles,
    table: FlowTableConfig,
    packets_undecodable: u64,
    since: Instant,
}

/// The configuration by which packets are copied: each group is looked at as wake looks at it,
/// whatever its mechanism.
pub fn looked_at(mut config: GatewayConfig) -> GatewayConfig {
    for group in &mut config.groups {
        group.mechanism = MechanismConfig::Wake(look(group, &config.signals));
        group.fast_path = FastPathMode::Auto;
    }
    config
}

/// As wake would look at a group: what silence means there, and where the link is.
fn look(group: &Group, signals: &Signals) -> WakeConfig {
    group.mechanism.wake().unwrap_or_else(|| {
        let default = WakeConfig::default();
        WakeConfig { silence: signals.silence.unwrap_or(default.silence), ..default }
    })
}

impl Observation {
    /// Begins to look, on these interfaces. `hash_key` must not be guessable.
    pub fn new(
        now: Instant,
        config: &GatewayConfig,
        hash_key: (u64, u64),
        interfaces: &Interfaces,
    ) -> Self {
        let table = table(&config.limits, hash_key);
        let begin = |group: &Group| Observed::new(group, &config.signals, table, interfaces);
        let groups = config.groups.iter().map(begin).collect();
        let (mobiles, packets_undecodable) = (Mobiles::new(None), 0);
        Self { groups, mobiles, table, packets_undecodable, since: now }
    }

    /// Configurations of the groups.
    pub(crate) fn group_configs(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().map(|group| &group.config)
    }

    /// A copy of a packet that has gone on.
    pub fn on_copy(&mut self, now: Instant, copy: &Intercepted, effects: &mut Vec<Effect>) {
        let Ok((protocol, flow)) = outline(&copy.packet) else {
            self.packets_undecodable += 1;
            return;
        };
        let groups = || self.groups.iter().map(|group| (&group.config, &group.place));
        let Some((n, from)) = classify(groups, &flow, copy) else { return };
        let Ok(packet) = Kept::new(FlowId { protocol, flow }, copy) else {
            self.packets_undecodable += 1;
            return;
        };
        let mobile = self.groups[n].config.mobile_of(&from.to_mobile(flow));
        let Observed { observer, to, .. } = &mut self.groups[n];
        match from == *to {
            true => observer.on_heard(now, mobile, &packet),
            false => observer.on_sent(now, mobile, &packet),
        }
        self.groups[n].attend(effects);
    }

    /// A source says something about a mobile.
    pub fn on_signal(&mut self, now: Instant, signal: MobileSignal, effects: &mut Vec<Effect>) {
        if let Some(change) = self.mobiles.note(signal) {
            self.notify(now, signal.mobile, change, effects);
        }
    }

    /// A source is not asked any more.
    pub fn on_withdrawn(&mut self, now: Instant, source: SignalSource, effects: &mut Vec<Effect>) {
        for (mobile, signal) in self.mobiles.withdraw(source) {
            self.notify(now, mobile, signal, effects);
        }
    }

    /// Tells the observers of a mobile.
    fn notify(
        &mut self,
        now: Instant,
        mobile: MobileId,
        signal: LinkSignal,
        effects: &mut Vec<Effect>,
    ) {
        for group in self.groups.iter_mut().filter(|group| group.config.has(mobile)) {
            group.observer.on_signal(now, mobile, signal);
            group.attend(effects);
        }
    }

    /// The interface of an uplink has this index from now on; none: it is gone.
    pub fn set_index(&mut self, uplink: InterfaceName, index: Option<u32>) {
        for Observed { config, place, .. } in &mut self.groups {
            place.set_index(config, uplink, index);
        }
    }

    /// Time of the next call of [`Observation::on_timer`].
    pub fn next_deadline(&self) -> Option<Instant> {
        self.groups.iter().filter_map(|group| group.observer.deadline()).min()
    }

    /// The deadline passed.
    pub fn on_timer(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        for group in &mut self.groups {
            if group.observer.deadline().is_some_and(|due| due <= now) {
                group.observer.on_deadline(now);
                group.attend(effects);
            }
        }
    }

    /// Goes on with another configuration, on these interfaces.
    ///
    /// # Errors
    /// Nothing was changed: the configuration cannot be put to work while this looks.
    pub fn reload(
        &mut self,
        config: &GatewayConfig,
        counted: &Counted,
        interfaces: &Interfaces,
    ) -> Result<(), DispatchError> {
        if config.groups.len() > counted.len() {
            return Err(DispatchError::TooManyObserved { most: counted.len() });
        }
        let table = table(&config.limits, self.table.hash_key);
        let begin = |group: &Group| Observed::new(group, &config.signals, table, interfaces);
        let mut groups: Vec<Observed> = config.groups.iter().map(begin).collect();
        for (n, old) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            if let Some(new) = groups.iter_mut().find(|new| new.config.name == old.config.name) {
                new.before = old.traffic(&counted[n]);
                let silence = look(&new.config, &config.signals).silence;
                new.observer = old.observer;
                new.observer.reconfigure(ObserveConfig { silence }, of_group(table, &new.config));
            }
        }
        for (group, &offset) in groups.iter_mut().zip(counted) {
            group.offset = offset;
        }
        (self.groups, self.table) = (groups, table);
        Ok(())
    }

    /// The state and the report of what was observed.
    pub fn status(&self, now: Instant, counted: &Counted) -> Status {
        let undecodable = ("packets_undecodable".to_owned(), self.packets_undecodable);
        let mut status = Status {
            version: VERSION.to_owned(),
            counters: [undecodable].into(),
            ..self.mobiles.status()
        };
        let mut groups = Vec::new();
        for (group, counted) in self.groups.iter().zip(counted) {
            let flows = group.observer.flows() as u64;
            status.groups.push(GroupStatus {
                name: group.config.name.clone(),
                mechanism: OBSERVE.to_owned(),
                path: "mirror".to_owned(),
                flows,
                segments_refused: group.observer.observed().packets_refused,
                ..GroupStatus::default()
            });
            status.flow_count += flows;
            groups.push(group.report(now, counted));
        }
        let seconds = now.since(self.since).as_secs_f64();
        status.report = Some(Report { seconds, groups });
        status
    }
}

impl Observed {
    fn new(
        group: &Group,
        signals: &Signals,
        table: FlowTableConfig,
        interfaces: &Interfaces,
    ) -> Self {
        let WakeConfig { silence, towards, .. } = look(group, signals);
        Self {
            config: group.clone(),
            place: Place::new(group, interfaces),
            observer: Observer::new(ObserveConfig { silence }, of_group(table, group)),
            to: towards.side(),
            before: Default::default(),
            offset: Default::default(),
        }
    }

    /// Has all copied of the mobiles that the observer wants to see all of.
    fn attend(&mut self, effects: &mut Vec<Effect>) {
        let attention = self.observer.drain_attention();
        effects.extend(attention.map(|(mobile, on)| Effect::MirrorAll { mobile, on }));
    }

    /// Of all of its packets, with what the kernel has counted in its place.
    fn traffic(&self, counted: &[Traffic; CLASSES]) -> [Traffic; CLASSES] {
        std::array::from_fn(|n| self.before[n].plus(counted[n].minus(self.offset[n])))
    }

    fn report(&self, now: Instant, counted: &[Traffic; CLASSES]) -> GroupReport {
        let seen = self.observer.observed();
        let [ongoing, longest_ongoing] = self.observer.ongoing(now).map(Duration::as_secs_f64);
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
            outages_signalled: seen.outages_signalled,
            outages_silent: seen.outages_silent,
            outage_seconds: seen.away.as_secs_f64(),
            longest_outage: seen.longest.as_secs_f64(),
            ongoing_seconds: ongoing,
            longest_ongoing,
            tcp: of(tcp, seen.tcp),
            quic: of(quic, seen.quic),
            other: of(other, Stalls::default()),
        }
    }
}
