//! An observer: what [`wake`](crate::mechanisms::wake) or M-TCP+ would have saved, measured by one
//! that does nothing.
//!
//! It is shown what wake is shown, and returns no actions: there is nothing it could send. Of each
//! outage it notes which flows *stall*, that is, are sent something while their mobile is away, and
//! how long each waits when the mobile is back. A sender that went through several time-outs waits
//! for the next one although the link is back (RFC 6298 §5.5; RFC 9002 §6.2.1). That is the dead
//! time which a mechanism ends. What it could save of it is all but one round trip: it too has to
//! send something and wait for what that brings.
//!
//! - An outage begins when a signal says so, or when the mobile does not answer for
//!   [`ObserveConfig::silence`], or one and a half times what an answer ever took if that is
//!   longer.
//! - It ends when a signal says so, or when the mobile is heard. If it is heard because a sender
//!   tried again, the link came back at some moment between that attempt and the one before. So
//!   there are two sums: what would have been saved *at least* and *at most*. They are one where
//!   signals come, or where mobiles speak for themselves.
//! - A flow has resumed with the first packet that is sent to it after that. The round trip is the
//!   time from that packet to the next after the mobile's answer; it is measured on each flow.
//!
//! - A QUIC connection that hears nothing for longer than its idle timeout has ended, and a
//!   mechanism could not have saved it. What resumes more than 30 s after an outage began may be
//!   another one of the same ports: nothing is counted as saved.
//!
//! Only flows that try again within an outage are seen: one that filled its window just before, and
//! whose timer runs longer than the outage, is not counted. TCP and QUIC (UDP port 443) count;
//! other protocols need not be answered.

use crate::conntrack::flow_table::{FlowTableConfig, Keyed};
use crate::mechanisms::wake::{FlowId, Packet};
use crate::middlebox::MobileId;
use airtcp_core::{Duration, Instant, LinkSignal};
use hashlink::LinkedHashMap;
use std::collections::BTreeSet;

/// A flow that has resumed is watched for so long to see how long its round trip is.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(2);

/// A flow that has not resumed after twice the outage and this has ended, as timers double.
const MARGIN: Duration = Duration::from_secs(3);
/// No sender waits for longer than two minutes (Linux, TCP_RTO_MAX).
const LONGEST_WAIT: Duration = Duration::from_secs(130);

/// Idle timeout of nearly all QUIC stacks (RFC 9000 §10.1), as they send it. It counts from the
/// last packet received, that is, from the beginning of the outage.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of an [`Observer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObserveConfig {
    /// Without a signal, silence of a mobile after which it is away; never less than one and a half
    /// times what one of its answers took.
    pub silence: Duration,
}

/// Classes of protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// TCP.
    Tcp,
    /// UDP port 443, at either end.
    Quic,
    /// Any other protocol: not observed.
    Other,
}

impl FlowId {
    /// By protocol number and well-known port.
    pub fn class(&self) -> Class {
        const HTTPS: u16 = 443;
        match self.protocol {
            Self::TCP => Class::Tcp,
            Self::UDP if [self.flow.src, self.flow.dst].iter().any(|end| end.port == HTTPS) => {
                Class::Quic
            }
            _ => Class::Other,
        }
    }
}

/// Stalls of one protocol's flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Flows that were sent something while their mobile was away, each once an outage.
    pub stalled: u64,
    /// Of these, flows that were sent something again when it was back.
    pub resumed: u64,
    /// Time that a mechanism would have saved them at least: their waits after the mobile's return
    /// less a round trip, summed.
    pub saved_least: Duration,
    /// The same, at most.
    pub saved_most: Duration,
}

/// Outages and stalls observed since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Outages that began with a signal.
    pub outages_signalled: u64,
    /// Outages that were noticed because a mobile did not answer.
    pub outages_silent: u64,
    /// Length of all outages that are over, together.
    pub away: Duration,
    /// The longest of them.
    pub longest: Duration,
    /// Flows of TCP.
    pub tcp: Stalls,
    /// Flows of QUIC.
    pub quic: Stalls,
    /// Packets that did not count because there were too many flows.
    pub packets_refused: u64,
}

impl Observed {
    fn of(&mut self, id: &FlowId) -> &mut Stalls {
        match id.class() {
            Class::Tcp => &mut self.tcp,
            Class::Quic | Class::Other => &mut self.quic,
        }
    }
}

/// A flow to a mobile that does not answer, or did not.
#[derive(Clone, Copy, Debug)]
struct Stalled {
    /// Time of its last packet to the mobile.
    last: Instant,
    /// It has resumed since the mobile is back.
    resumed: Option<Resumed>,
}

#[derive(Clone, Copy, Debug)]
struct Resumed {
    /// With the packet of this instant.
    at: Instant,
    /// Time of the mobile's answer.
    answered: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum OutagePhase {
    /// An answer is due.
    Waiting,
    /// The mobile has been away since this time.
    Away { since: Instant, is_signalled: bool },
    /// It was away since the first of these, and is back since some moment between the next two.
    /// Flows that have not resumed at the last one have ended.
    Back { since: Instant, earliest: Instant, latest: Instant, until: Instant },
}

/// A mobile that owes an answer, is away, or has flows that have not resumed.
#[derive(Clone, Debug)]
struct Peer {
    phase: OutagePhase,
    flows: LinkedHashMap<FlowId, Stalled, Keyed>,
    /// Time of the first packet to it since its last one.
    waits_since: Option<Instant>,
    attempts: Attempts,
    /// The longest that one of its answers took. Those of late may be shorter, as keep-alives
    /// overlap.
    response: Duration,
    /// End of watching a flow that has resumed.
    settle: Option<Instant>,
    touched: Instant,
    /// The earliest entry among the deadlines.
    armed: Option<Instant>,
}

/// Times of senders' attempts, by groups of attempts that one answer may be for.
#[derive(Clone, Copy, Debug, Default)]
struct Attempts {
    /// The last one before `first`.
    before: Option<Instant>,
    /// The first one of the last group.
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Attempts {
    fn note(&mut self, now: Instant, answer: Duration) {
        if self.first.is_none_or(|first| now.since(first) > answer) {
            (self.before, self.first) = (self.last, Some(now));
        }
        self.last = Some(now);
    }

    /// The attempt that a packet of the mobile at `now` may answer, and the one before; answers
    /// take no longer than `answer`.
    fn answered(&self, now: Instant, answer: Duration) -> Option<(Instant, Option<Instant>)> {
        let may_be = |at: &Instant| now.since(*at) <= answer;
        let of_group = self.first.filter(may_be).map(|first| (first, self.before));
        of_group.or_else(|| self.last.filter(may_be).map(|last| (last, self.first)))
    }
}

impl Peer {
    fn new(now: Instant, phase: OutagePhase, response: Duration, key: Keyed) -> Self {
        Self {
            phase,
            flows: LinkedHashMap::with_hasher(key),
            waits_since: None,
            attempts: Attempts::default(),
            response,
            settle: None,
            touched: now,
            armed: None,
        }
    }

    /// Silence that means something.
    fn threshold(&self, config: ObserveConfig) -> Duration {
        config.silence.max(self.response * 3 / 2)
    }

    fn next_deadline(&self, config: ObserveConfig) -> Option<Instant> {
        let silent = self.waits_since.map(|since| since + self.threshold(config));
        match self.phase {
            OutagePhase::Waiting => silent,
            OutagePhase::Away { .. } => None,
            OutagePhase::Back { until, .. } => {
                silent.into_iter().chain(self.settle).chain([until]).min()
            }
        }
    }

    fn note_resumed(&mut self, id: &FlowId, resumed: Resumed) {
        if let Some(flow) = self.flows.get_mut(id) {
            flow.resumed = Some(resumed);
            self.settle.get_or_insert(resumed.at + LONGEST_ROUND_TRIP);
        }
    }
}

/// Observes outages; see the module.
#[derive(Clone, Debug)]
pub struct Observer {
    config: ObserveConfig,
    table: FlowTableConfig,
    /// The longest untouched one is at the front.
    peers: LinkedHashMap<MobileId, Peer, Keyed>,
    flows: usize,
    observed: Observed,
    /// Deadlines of peers; entries may be stale.
    deadlines: BTreeSet<(Instant, MobileId)>,
    attention: Vec<(MobileId, bool)>,
}

impl Observer {
    /// Has seen nothing.
    pub fn new(config: ObserveConfig, table: FlowTableConfig) -> Self {
        Self {
            config,
            table,
            peers: LinkedHashMap::with_hasher(Keyed(table.hash_key)),
            flows: 0,
            observed: Observed::default(),
            deadlines: BTreeSet::new(),
            attention: Vec::new(),
        }
    }

    /// Goes on with other settings; what was seen stays.
    pub fn reconfigure(&mut self, config: ObserveConfig, table: FlowTableConfig) {
        self.config = config;
        self.table = self.table.with_limits(table);
    }

    /// Outages and stalls observed since the start.
    pub fn observed(&self) -> Observed {
        self.observed
    }

    /// Flows that wait for a mobile, or may.
    pub fn flows(&self) -> usize {
        self.flows
    }

    /// Mobiles that are away.
    pub fn away(&self) -> usize {
        let is_away = |peer: &&Peer| matches!(peer.phase, OutagePhase::Away { .. });
        self.peers.values().filter(is_away).count()
    }

    /// Length so far of the outages that are not over: all together, and the longest. A mobile that
    /// went silent without a signal, and that nobody has tried to reach for
    /// [`FlowTableConfig::idle`], has left: it does not count.
    pub fn ongoing(&self, now: Instant) -> [Duration; 2] {
        let length = |peer: &Peer| match peer.phase {
            OutagePhase::Away { since, is_signalled } => {
                let has_left = !is_signalled && now.since(peer.touched) >= self.table.idle;
                (!has_left).then(|| now.since(since))
            }
            OutagePhase::Waiting | OutagePhase::Back { .. } => None,
        };
        let lengths = self.peers.values().filter_map(length);
        lengths.fold([Duration::ZERO; 2], |[all, longest], one| [all + one, longest.max(one)])
    }

    /// Mobiles of which the observer wants to see every packet from now on (`true`) or no longer,
    /// since the last call. Of others, what goes into a silence and what ends it is enough.
    pub fn drain_attention(&mut self) -> impl Iterator<Item = (MobileId, bool)> + '_ {
        self.attention.drain(..)
    }

    /// A packet goes over the link to a mobile.
    pub fn on_sent<Q: Packet>(&mut self, now: Instant, mobile: MobileId, packet: &Q) {
        let id = packet.id();
        if id.class() == Class::Other {
            return;
        }
        if packet.is_boundary() {
            return self.forget(mobile, &id);
        }
        if !packet.elicits_reply() {
            return;
        }
        let silence = packet.silence();
        let is_known = self.peers.get(&mobile).is_some_and(|peer| peer.flows.contains_key(&id));
        // A mobile that has never sent anything may not exist.
        if !self.peers.contains_key(&mobile) && silence.is_none() {
            return;
        }
        if !is_known && !self.has_room(now, mobile) {
            self.observed.packets_refused += 1;
            return;
        }
        let (key, config) = (Keyed(self.table.hash_key), self.config);
        let peer = self
            .peers
            .entry(mobile)
            .or_insert_with(|| Peer::new(now, OutagePhase::Waiting, Duration::ZERO, key));
        if let Some(silence) = silence {
            peer.response = silence.response.max(silence.round_trip);
        }
        peer.touched = now;
        peer.waits_since.get_or_insert(now);
        peer.attempts.note(now, peer.threshold(config));
        let flow = peer.flows.get_mut(&id);
        let is_new = flow.is_none();
        match (peer.phase, flow) {
            (OutagePhase::Back { .. }, None) => {}
            (_, None) => {
                self.flows += 1;
                peer.flows.insert(id, Stalled { last: now, resumed: None });
            }
            (OutagePhase::Back { .. }, Some(&mut Stalled { resumed: None, .. })) => {
                peer.note_resumed(&id, Resumed { at: now, answered: None });
            }
            (OutagePhase::Back { .. }, Some(&mut Stalled { resumed: Some(resumed), .. })) => {
                if resumed.answered.is_some() {
                    self.settle(mobile, &id, now.since(resumed.at));
                }
            }
            (_, Some(flow)) => flow.last = now,
        }
        if is_new
            && self.phase(mobile).is_some_and(|phase| matches!(phase, OutagePhase::Away { .. }))
        {
            self.observed.of(&id).stalled += 1;
        }
        self.peers.to_back(&mobile);
        self.leave_if_done(mobile);
    }

    /// A packet came over the link from a mobile.
    pub fn on_heard<Q: Packet>(&mut self, now: Instant, mobile: MobileId, packet: &Q) {
        let FlowId { protocol, flow } = packet.id();
        let id = FlowId { protocol, flow: flow.reversed() };
        let Some(peer) = self.peers.get_mut(&mobile) else { return };
        peer.touched = now;
        let answer = peer.threshold(self.config);
        match peer.phase {
            // It has answered, and nothing stalled.
            OutagePhase::Waiting => return self.leave(mobile),
            // Sooner, the packet may have been on the way when the link went down.
            OutagePhase::Away { since, is_signalled }
                if is_signalled && now.since(since) <= answer =>
            {
                peer.waits_since = None;
                return;
            }
            OutagePhase::Away { since, .. } => match peer.attempts.answered(now, answer) {
                Some((attempt, before)) => {
                    let earliest = before.unwrap_or(since).max(since);
                    self.on_return(now, mobile, [earliest, attempt]);
                    self.note_attempted(now, mobile, attempt, &id);
                }
                None => self.on_return(now, mobile, [now, now]),
            },
            OutagePhase::Back { .. } => {
                if let Some(Stalled { resumed: Some(resumed), .. }) = peer.flows.get_mut(&id) {
                    resumed.answered.get_or_insert(now);
                }
            }
        }
        if packet.is_boundary() {
            self.forget(mobile, &id);
        }
        if let Some(peer) = self.peers.get_mut(&mobile) {
            peer.waits_since = None;
        }
        self.leave_if_done(mobile);
    }

    /// A signal about the link.
    pub fn on_signal(&mut self, now: Instant, mobile: MobileId, signal: LinkSignal) {
        match (signal, self.phase(mobile)) {
            (LinkSignal::Fading, _) | (LinkSignal::Down, Some(OutagePhase::Away { .. })) => {}
            (LinkSignal::Up, Some(OutagePhase::Away { .. })) => {
                self.on_return(now, mobile, [now, now]);
                self.leave_if_done(mobile);
            }
            (LinkSignal::Up, _) => {}
            (LinkSignal::Down, phase) => {
                if matches!(phase, Some(OutagePhase::Back { .. })) {
                    self.give_up(mobile);
                }
                if phase.is_none() && !self.has_room(now, mobile) {
                    return;
                }
                let key = Keyed(self.table.hash_key);
                let new = || Peer::new(now, OutagePhase::Waiting, Duration::ZERO, key);
                self.peers.entry(mobile).or_insert_with(new);
                self.on_away(mobile, now, true);
            }
        }
    }

    /// The deadline passed.
    pub fn on_deadline(&mut self, now: Instant) {
        while let Some(&(due, mobile)) = self.deadlines.first()
            && due <= now
        {
            self.deadlines.pop_first();
            let Some(peer) = self.peers.get_mut(&mobile) else { continue };
            if peer.armed == Some(due) {
                peer.armed = None;
            }
            let threshold = peer.threshold(self.config);
            let silent = peer.waits_since.filter(|&since| since + threshold <= now);
            match (peer.phase, silent) {
                (OutagePhase::Away { .. }, _) => {}
                (OutagePhase::Waiting, Some(since)) => self.on_away(mobile, since, false),
                (OutagePhase::Waiting, None) => self.arm(mobile),
                (OutagePhase::Back { .. }, Some(since)) => self.on_away_again(mobile, since),
                (OutagePhase::Back { until, .. }, None) if until <= now => self.give_up(mobile),
                (OutagePhase::Back { .. }, None) => self.settle_old(now, mobile),
            }
        }
    }

    /// Time of the next [`on_deadline`](Self::on_deadline); `None` while nothing waits.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(due, _)| due)
    }

    fn phase(&self, mobile: MobileId) -> Option<OutagePhase> {
        self.peers.get(&mobile).map(|peer| peer.phase)
    }

    /// An outage begins, for the flows that are there.
    fn on_away(&mut self, mobile: MobileId, since: Instant, is_signalled: bool) {
        let Some(peer) = self.peers.get_mut(&mobile) else { return };
        peer.phase = OutagePhase::Away { since, is_signalled };
        peer.settle = None;
        for id in peer.flows.keys() {
            self.observed.of(id).stalled += 1;
        }
        match is_signalled {
            true => self.observed.outages_signalled += 1,
            false => self.observed.outages_silent += 1,
        }
        self.attention.push((mobile, true));
    }

    /// A mobile that was back does not answer: those of its flows that tried since then are in
    /// another outage.
    fn on_away_again(&mut self, mobile: MobileId, since: Instant) {
        let Some(peer) = self.peers.get_mut(&mobile) else { return };
        let is_lost = |flow: &Stalled| {
            flow.resumed.is_some_and(|resumed| resumed.at >= since && resumed.answered.is_none())
        };
        let lost: Vec<FlowId> =
            peer.flows.iter().filter(|(_, flow)| is_lost(flow)).map(|(&id, _)| id).collect();
        for id in &lost {
            if let Some(flow) = peer.flows.get_mut(id)
                && let Some(resumed) = flow.resumed.take()
            {
                flow.last = resumed.at;
            }
        }
        let others: Vec<FlowId> =
            peer.flows.keys().filter(|id| !lost.contains(id)).copied().collect();
        for id in others {
            self.settle_as_known(mobile, &id);
        }
        self.on_away(mobile, since, false);
    }

    /// The mobile is back since some moment between these.
    fn on_return(&mut self, now: Instant, mobile: MobileId, [earliest, latest]: [Instant; 2]) {
        let Some(peer) = self.peers.get_mut(&mobile) else { return };
        let OutagePhase::Away { since, .. } = peer.phase else { return };
        let length = latest.since(since);
        self.observed.away += length;
        self.observed.longest = self.observed.longest.max(length);
        let wait = (length * 2 + MARGIN).min(LONGEST_WAIT);
        peer.phase = OutagePhase::Back { since, earliest, latest, until: now + wait };
        peer.waits_since = None;
        self.arm(mobile);
    }

    /// Flows resumed with this attempt, which the mobile has answered on one of them, or later
    /// ones.
    fn note_attempted(&mut self, now: Instant, mobile: MobileId, attempt: Instant, id: &FlowId) {
        let Some(peer) = self.peers.get_mut(&mobile) else { return };
        let tried = peer.flows.iter().filter(|(_, flow)| flow.last >= attempt);
        let tried: Vec<_> = tried.map(|(&id, flow)| (id, flow.last)).collect();
        for (tried, at) in tried {
            let answered = (tried == *id).then_some(now);
            peer.note_resumed(&tried, Resumed { at, answered });
        }
        self.arm(mobile);
    }

    /// Takes account of a flow that has resumed, and forgets it.
    fn settle(&mut self, mobile: MobileId, id: &FlowId, round_trip: Duration) {
        let Some(peer) = self.peers.get_mut(&mobile) else { return };
        let OutagePhase::Back { since, earliest, latest, .. } = peer.phase else { return };
        let Some(Stalled { resumed: Some(Resumed { at, .. }), .. }) = peer.flows.get(id) else {
            return;
        };
        let stalls = self.observed.of(id);
        stalls.resumed += 1;
        if id.class() == Class::Tcp || at.since(since) <= IDLE_TIMEOUT {
            // What would be below zero is zero.
            stalls.saved_least += at.since(latest) - round_trip;
            stalls.saved_most += at.since(earliest) - round_trip;
        }
        self.forget(mobile, id);
    }

    /// The same with what is known of the round trip; forgets the flow in any case.
    fn settle_as_known(&mut self, mobile: MobileId, id: &FlowId) {
        let Some(peer) = self.peers.get(&mobile) else { return };
        let response = peer.response;
        let Some(Stalled { resumed, .. }) = peer.flows.get(id) else { return };
        let to_answer = |Resumed { at, answered }: Resumed| answered.map(|then| then.since(at));
        let round_trip = resumed.and_then(to_answer).unwrap_or(response);
        self.settle(mobile, id, round_trip);
        self.forget(mobile, id);
    }

    /// Settles the flows that have resumed long enough ago.
    fn settle_old(&mut self, now: Instant, mobile: MobileId) {
        let Some(peer) = self.peers.get_mut(&mobile) else { return };
        let resumed = peer.flows.iter().filter_map(|(&id, flow)| Some((flow.resumed?.at, id)));
        let (old, new): (Vec<_>, Vec<_>) =
            resumed.partition(|(at, _)| *at + LONGEST_ROUND_TRIP <= now);
        peer.settle = new.into_iter().map(|(at, _)| at + LONGEST_ROUND_TRIP).min();
        for (_, id) in old {
            self.settle_as_known(mobile, &id);
        }
        self.leave_if_done(mobile);
    }

    /// No more of its flows resume.
    fn give_up(&mut self, mobile: MobileId) {
        let flows = self.peers.get(&mobile).map(|peer| peer.flows.keys().copied().collect());
        let flows: Vec<FlowId> = flows.unwrap_or_default();
        for id in flows {
            self.settle_as_known(mobile, &id);
        }
        self.leave(mobile);
    }

    fn leave_if_done(&mut self, mobile: MobileId) {
        let is_done =
            |peer: &Peer| matches!(peer.phase, OutagePhase::Back { .. }) && peer.flows.is_empty();
        match self.peers.get(&mobile).is_some_and(is_done) {
            true => self.leave(mobile),
            false => self.arm(mobile),
        }
    }

    /// There is nothing more to see of this mobile.
    fn leave(&mut self, mobile: MobileId) {
        let Some(peer) = self.peers.remove(&mobile) else { return };
        self.flows -= peer.flows.len();
        if !matches!(peer.phase, OutagePhase::Waiting) {
            self.attention.push((mobile, false));
        }
    }

    fn forget(&mut self, mobile: MobileId, id: &FlowId) {
        if let Some(peer) = self.peers.get_mut(&mobile) {
            self.flows -= usize::from(peer.flows.remove(id).is_some());
        }
    }

    /// True if there is room for another flow of this mobile, once what is idle has left.
    fn has_room(&mut self, now: Instant, mobile: MobileId) -> bool {
        let is_full = |observer: &Self| {
            let peers = observer.peers.len();
            let has_another =
                peers >= observer.table.limit && !observer.peers.contains_key(&mobile);
            observer.flows >= observer.table.limit || has_another
        };
        while is_full(self) {
            match self.peers.front() {
                Some((&idle, peer)) if now.since(peer.touched) >= self.table.idle => {
                    self.leave(idle);
                }
                _ => return false,
            }
        }
        self.peers.get(&mobile).is_none_or(|peer| peer.flows.len() < self.table.per_mobile)
    }

    /// Sees to it that the mobile is looked at in time.
    fn arm(&mut self, mobile: MobileId) {
        let Some(peer) = self.peers.get_mut(&mobile) else { return };
        if let Some(due) = peer.next_deadline(self.config)
            && peer.armed.is_none_or(|armed| due < armed)
        {
            peer.armed = Some(due);
            self.deadlines.insert((due, mobile));
        }
    }
}
