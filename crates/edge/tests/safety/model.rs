//! One connection's code in every situation that a small configuration can bring about.
//!
//! An abstract sender (go-back-N, RFC 9293's window rules, one of two persist rules) and an
//! abstract receiver (cumulative) exchange three segments and a FIN through the mechanism. Between
//! them lie four channels, each a small set of segments: any of them may be delivered next, late,
//! or never. That includes every outage; what the radio reports about it comes at any time, in any
//! order, or not at all, up to a budget. A timer that is armed may expire at any time: the clock
//! stands still at its last instant, where every deadline is due and no state differs by its age.
//!
//! The connection's own state is kept once for all states of the system it occurs in, and each of
//! its reactions is computed once.
//!
//! A *forger* may send [`FORGERIES`] in the name of either host, up to a budget. At least one
//! number of each is wrong, so that the hosts, which judge for themselves, take none of them.
//!
//! A breadth-first search visits all states, so that a violation comes with a shortest trace. It
//! asserts that no step breaks the [promise](Promise), and then, by a search backwards from the
//! states in which all is delivered, that from every state such a state can still be reached ("AG
//! EF done", which the usual libraries for model checking do not offer): losses never lead to a
//! dead end.

use crate::observer::{Violation, ensure};
use crate::subjects::Promise;
use crate::world::flow;
use airtcp_core::{Flags, Instant, LinkSignal, Segment, SeqNum};
use airtcp_edge::{Action, Actions, Connection, Context, InvalidPackets, Side};
use hashlink::DefaultHashBuilder;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::hash::Hash;
use std::rc::Rc;

/// The search looks up millions of states, and SipHash would slow it down.
type HashMap<K, V> = std::collections::HashMap<K, V, DefaultHashBuilder>;
type HashSet<K> = std::collections::HashSet<K, DefaultHashBuilder>;
/// States by number, and their numbers.
type Numbered<K> = indexmap::IndexSet<K, DefaultHashBuilder>;

/// Every deadline is due: see the top of this file.
const NOW: Instant = Instant::MAX;
/// The sequence space wraps inside the second segment.
const ISN: SeqNum = SeqNum(u32::MAX - 3);
/// The mobile sends no data; its sequence number stays.
const MOBILE_SEQ: SeqNum = SeqNum(7);
/// Payload of a full segment. More than one byte, so that a probe differs from it.
const MSS: u8 = 2;
/// Position of the FIN: three segments from position 1 on come before it.
const FIN: u8 = 1 + 3 * MSS;
/// Everything is acknowledged.
const END: u8 = FIN + 1;
/// The mobile's window: two segments, so that the third waits for an acknowledgement.
const WINDOW: u8 = 2 * MSS;
/// The largest channel: no call puts out more segments to one side.
const MOST: usize = 3;

/// A sender under a closed window with data outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persist {
    /// Retransmits (strict, Linux).
    Retransmits,
    /// Sends window probes (4.4BSD).
    Probes,
}

/// Bounds of the search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) promise: Promise,
    pub(crate) persist: Persist,
    /// Most segments under way in each channel; more are lost. From and to the fixed host, then
    /// from and to the mobile. 0: what is sent arrives at once, or is lost.
    pub(crate) channels: [usize; 4],
    /// Most signals of each kind: Fading, Down, Up.
    pub(crate) signals: [u8; 3],
    /// Most forged segments.
    pub(crate) forged: u8,
    /// Payload bytes that the mechanism may hold in all.
    pub(crate) memory: u64,
    /// Give up beyond this many states.
    pub(crate) limit: usize,
}

/// Size of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Explored {
    pub(crate) states: usize,
    pub(crate) steps: usize,
    /// States of the connection alone.
    pub(crate) nodes: usize,
}

const SIGNALS: [LinkSignal; 3] = [LinkSignal::Fading, LinkSignal::Down, LinkSignal::Up];
const UP: usize = 2;

/// A segment in a channel: data and FIN from one position to another (a keep-alive: none), or an
/// acknowledgement. Its content is determined by its position (and checked as it leaves the node).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Packet {
    Data { from: u8, to: u8 },
    Ack { ack: u8, window: u8 },
}

/// A place in a channel: a packet in few bits, so that states are small; 0 when it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place(u16);

impl Place {
    const EMPTY: Self = Self(0);
    const ACK: u16 = 1 << 8;
    const DATA: u16 = 1 << 9;

    fn of(packet: Packet) -> Self {
        match packet {
            Packet::Data { from, to } => Self(Self::DATA | u16::from(from) << 4 | u16::from(to)),
            Packet::Ack { ack, window } => {
                Self(Self::ACK | u16::from(ack) << 4 | u16::from(window.min(15)))
            }
        }
    }

    fn packet(self) -> Option<Packet> {
        let (high, low) = ((self.0 >> 4 & 15) as u8, (self.0 & 15) as u8);
        match self {
            Self::EMPTY => None,
            Self(bits) if bits & Self::ACK > 0 => Some(Packet::Ack { ack: high, window: low }),
            Self(_) => Some(Packet::Data { from: high, to: low }),
        }
    }
}

impl Packet {
    fn segment(self) -> (Side, Segment<Vec<u8>>) {
        match self {
            Self::Data { from, to } => {
                let segment = Segment {
                    flow: flow(),
                    seq: ISN + u32::from(from),
                    ack: Some(MOBILE_SEQ),
                    window: u16::from(WINDOW),
                    flags: if to > FIN { Flags::FIN } else { Flags::empty() },
                    payload: (from..to.min(FIN)).collect(),
                    ..Segment::default()
                };
                (Side::Fixed, segment)
            }
            Self::Ack { ack, window } => {
                let segment = Segment {
                    flow: flow().reversed(),
                    seq: MOBILE_SEQ,
                    ack: Some(ISN + u32::from(ack)),
                    window: u16::from(window),
                    ..Segment::default()
                };
                (Side::Mobile, segment)
            }
        }
    }

    /// Meaning of a segment to the mobile, with the right bytes in it.
    fn of_data(segment: &Segment<Vec<u8>>) -> Result<Self, Violation> {
        let from = segment.seq.bytes_after(ISN) as u8;
        let right = (from..).zip(&segment.payload).all(|(n, byte)| n == *byte);
        ensure!(right, "the wrong bytes: {segment} {:?}", segment.payload);
        let to = segment.seq_end().bytes_after(ISN) as u8;
        let fin = segment.flags.contains(Flags::FIN);
        ensure!(fin == (to > FIN) && to <= END, "FIN out of place: {segment}");
        Ok(Self::Data { from, to })
    }
}

/// A segment of an attacker who knows the connection's addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Forgery {
    from: Side,
    /// Beyond the host's initial sequence number.
    seq: u32,
    /// Beyond the other host's; `None`: acknowledges nothing.
    ack: Option<u32>,
    flags: Flags,
    len: u8,
}

/// Farther than any window, but within the largest there is.
const FAR: u32 = 1 << 29;
/// In the window, and beyond all that is sent.
const NEAR: u32 = 100;

const FORGERIES: [Forgery; 13] = {
    const FIXED: Forgery =
        Forgery { from: Side::Fixed, seq: FAR, ack: Some(0), flags: Flags::empty(), len: MSS };
    const MOBILE: Forgery = Forgery { from: Side::Mobile, len: 0, ..FIXED };
    [
        FIXED,
        Forgery { seq: 1, ack: Some(FAR), len: 3 * MSS, ..FIXED },
        Forgery { seq: 1, ack: None, flags: Flags::FIN, ..FIXED },
        Forgery { flags: Flags::RST, len: 0, ..FIXED },
        Forgery { seq: NEAR, flags: Flags::RST, len: 0, ..FIXED },
        Forgery { seq: NEAR, ack: None, flags: Flags::RST, len: 0, ..FIXED },
        Forgery { ack: None, flags: Flags::SYN, len: 0, ..FIXED },
        Forgery { ack: Some(END as u32), ..MOBILE },
        Forgery { seq: 0, ack: Some(NEAR), ..MOBILE },
        Forgery { seq: NEAR, ack: Some(1), flags: Flags::RST, ..MOBILE },
        Forgery { ack: None, flags: Flags::SYN, ..MOBILE },
        // These two agree with each other.
        Forgery { ack: Some(FAR), ..FIXED },
        Forgery { ack: Some(FAR + MSS as u32), ..MOBILE },
    ]
};

impl Forgery {
    fn segment(self) -> Segment<Vec<u8>> {
        let (flow, own, other) = match self.from {
            Side::Fixed => (flow(), ISN, MOBILE_SEQ),
            Side::Mobile => (flow().reversed(), MOBILE_SEQ, ISN),
        };
        Segment {
            flow,
            seq: own + self.seq,
            ack: self.ack.map(|ack| other + ack),
            window: u16::from(WINDOW),
            flags: self.flags,
            payload: vec![0xff; self.len.into()],
            ..Segment::default()
        }
    }
}

/// A host takes such numbers for its connection's.
fn is_credible(to: Side, segment: &Segment<Vec<u8>>) -> bool {
    let (seq, ack) = match to {
        Side::Fixed => {
            (segment.seq.offset_from(MOBILE_SEQ), segment.ack.map(|n| n.offset_from(ISN)))
        }
        Side::Mobile => {
            (segment.seq.offset_from(ISN), segment.ack.map(|n| n.offset_from(MOBILE_SEQ)))
        }
    };
    let is_near = |n: i32| n.unsigned_abs() < NEAR;
    is_near(seq) && ack.is_none_or(is_near)
}

/// An event for the connection's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Input {
    Segment(Packet),
    Forged(usize),
    Signal(usize),
    Timer,
}

/// An action of the connection's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    ToFixed { ack: u8, window: u8, injected: bool },
    ToMobile(Packet),
    Reset,
}

/// Number of the state afterwards, and the actions.
type Reaction = (u32, Rc<[Output]>);

/// The states of the connection, by number, and how they follow each other.
struct Nodes<'a, C: Connection<Vec<u8>>> {
    setup: &'a Setup,
    config: &'a C::Config,
    states: Numbered<C>,
    reactions: HashMap<(u32, Input), Reaction>,
    /// Those that can deliver what was acknowledged: with what the mobile and the fixed host know.
    proven: HashSet<(u32, u8, u8)>,
}

impl<'a, C> Nodes<'a, C>
where
    C: Connection<Vec<u8>> + Clone + Debug + Eq + Hash,
{
    fn new(setup: &'a Setup, config: &'a C::Config) -> Self {
        let states = Numbered::from_iter([C::default()]);
        let (reactions, proven) = (HashMap::default(), HashSet::default());
        Self { setup, config, states, reactions, proven }
    }

    fn has_turn(&self, state: &C) -> bool {
        let interval = C::probe_interval(self.config);
        interval.and_then(|interval| state.keep_alive_due(interval)).is_some()
    }

    fn has_timer(&self, node: u32) -> bool {
        let state = &self.states[node as usize];
        state.next_deadline().is_some() || self.has_turn(state)
    }

    fn react(&mut self, node: u32, input: Input) -> Result<Reaction, Violation> {
        if let Some(known) = self.reactions.get(&(node, input)) {
            return Ok(known.clone());
        }
        let mut next = self.states[node as usize].clone();
        let mut out = Actions::new();
        let (mut counters, mut invalid_packets) =
            (C::Counters::default(), InvalidPackets::default());
        let room = self.setup.memory.saturating_sub(next.held() as u64);
        let mut cx = Context {
            config: self.config,
            counters: &mut counters,
            invalid_packets: &mut invalid_packets,
            out: &mut out,
            room,
            waiting: 1,
        };
        let mut arrived = None;
        match input {
            Input::Segment(packet) => {
                let (from, segment) = packet.segment();
                arrived = Some((from.opposite(), segment.clone()));
                next.on_segment(NOW, from, segment, &mut cx);
            }
            Input::Forged(i) => {
                let (from, segment) = (FORGERIES[i].from, FORGERIES[i].segment());
                arrived = Some((from.opposite(), segment.clone()));
                next.on_segment(NOW, from, segment, &mut cx);
            }
            Input::Signal(i) => next.on_link(NOW, SIGNALS[i], &mut cx),
            Input::Timer => {
                next.on_timer(NOW, &mut cx);
                if self.has_turn(&next) {
                    next.on_turn(NOW, &mut cx);
                }
            }
        }
        let mut outputs = Vec::new();
        for action in out.drain() {
            let (to, segment, injected) = match action {
                Action::Drop { .. } => continue,
                Action::Forward { to, segment } => {
                    let (to, segment) = (to, segment);
                    let known = arrived.as_ref().is_some_and(|a| (a.0, &a.1) == (to, &segment));
                    ensure!(known, "forwards what did not come in: {segment}");
                    (to, segment, false)
                }
                Action::Inject { to, segment } => (to, segment, true),
            };
            if matches!(input, Input::Forged(_)) && !injected || !is_credible(to, &segment) {
                continue;
            }
            outputs.push(if segment.flags.contains(Flags::RST) {
                Output::Reset
            } else if to == Side::Mobile {
                Output::ToMobile(Packet::of_data(&segment)?)
            } else {
                let ack = segment.ack.map_or(0, |ack| ack.bytes_after(ISN) as u8);
                let window = segment.window.min(u16::from(u8::MAX)) as u8;
                Output::ToFixed { ack, window, injected }
            });
        }
        let (number, _) = self.states.insert_full(next);
        let reaction = (number as u32, outputs.into());
        self.reactions.insert((node, input), Reaction::clone(&reaction));
        Ok(reaction)
    }

    /// The wired link goes away, the mobile comes back: the node must still deliver what it
    /// acknowledged.
    fn can_deliver(&mut self, start: u32, acked: u8, told: u8) -> Result<(), Violation> {
        if self.proven.contains(&(start, acked, told)) {
            return Ok(());
        }
        let mut received = acked;
        let (mut node, mut outputs) = self.react(start, Input::Signal(UP))?;
        for _ in 0..32 {
            let mut heard = false;
            for output in outputs.iter() {
                if let Output::ToMobile(Packet::Data { from, to }) = *output {
                    heard = true;
                    if from <= received {
                        received = received.max(to);
                    }
                }
            }
            if received >= told {
                self.proven.insert((start, acked, told));
                return Ok(());
            }
            let input = if heard {
                Input::Segment(Packet::Ack { ack: received, window: WINDOW })
            } else if self.has_timer(node) {
                Input::Timer
            } else {
                break;
            };
            (node, outputs) = self.react(node, input)?;
        }
        Err(format!("cannot deliver what it acknowledged: {received} of {told}"))
    }
}

/// The fixed host: positions as in RFC 9293 §3.3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sender {
    una: u8,
    nxt: u8,
    max: u8,
    wnd: u8,
}

const FROM_FIXED: usize = 0;
const TO_FIXED: usize = 1;
const FROM_MOBILE: usize = 2;
const TO_MOBILE: usize = 3;

/// A state of the whole system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    /// Number of the connection's state.
    node: u32,
    sender: Sender,
    /// The position that the mobile expects.
    received: u8,
    /// Sorted: empty places come first.
    channels: [[Place; MOST]; 4],
    /// Remainder of [`Setup::signals`].
    signals: [u8; 3],
    /// Remainder of [`Setup::forged`].
    forged: u8,
    /// The highest acknowledgement that came to the node, and the highest that left it.
    acked: u8,
    told: u8,
    /// The node reset the connection.
    reset: bool,
}

/// One step of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Start,
    Send,
    Retransmit,
    Probe,
    Deliver(usize, Packet),
    Lose(usize, Packet),
    Signal(usize),
    Forge(usize),
    Timer,
}

impl State {
    fn start(setup: &Setup) -> Self {
        Self {
            node: 0,
            sender: Sender { una: 1, nxt: 1, max: 1, wnd: WINDOW },
            received: 1,
            channels: [[Place::EMPTY; MOST]; 4],
            signals: setup.signals,
            forged: setup.forged,
            acked: 1,
            told: 1,
            reset: false,
        }
    }

    fn is_done(&self) -> bool {
        self.reset || self.received == END && self.sender.una == END
    }

    /// Everything that can happen next.
    fn steps(&self, setup: &Setup, has_timer: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.reset {
            return steps;
        }
        let urgent =
            (0..4).find(|&c| setup.channels[c] == 0 && self.channels[c][MOST - 1] != Place::EMPTY);
        if let Some(channel) = urgent {
            self.transport(channel, &mut steps);
            return steps;
        }
        let Sender { una, nxt, max, wnd } = self.sender;
        if nxt < END && nxt < una + wnd {
            steps.push(Step::Send);
        }
        let waits = una < END && wnd == 0;
        let probes = match setup.persist {
            Persist::Retransmits => waits && nxt == una,
            Persist::Probes => waits,
        };
        if probes {
            steps.push(Step::Probe);
        } else if max > una {
            steps.push(Step::Retransmit);
        }
        for channel in 0..4 {
            self.transport(channel, &mut steps);
        }
        steps.extend((0..3).filter(|&i| self.signals[i] > 0).map(Step::Signal));
        if self.forged > 0 {
            steps.extend((0..FORGERIES.len()).map(Step::Forge));
        }
        if has_timer {
            steps.push(Step::Timer);
        }
        steps
    }

    fn transport(&self, channel: usize, steps: &mut Vec<Step>) {
        for packet in self.channels[channel].iter().filter_map(|place| place.packet()) {
            steps.push(Step::Deliver(channel, packet));
            steps.push(Step::Lose(channel, packet));
        }
    }

    fn take<C>(&self, step: Step, nodes: &mut Nodes<'_, C>) -> Result<Self, Violation>
    where
        C: Connection<Vec<u8>> + Clone + Debug + Eq + Hash,
    {
        let mut next = *self;
        let setup = nodes.setup;
        match step {
            Step::Start => {}
            Step::Send => next.send_up_to(setup, self.sender.una + self.sender.wnd),
            Step::Retransmit => {
                // The first segment leaves whatever the window says; the others follow as it
                // allows.
                next.sender.nxt = next.sender.una;
                next.send_up_to(setup, next.sender.max);
            }
            Step::Probe => {
                let (from, to) = (next.sender.una, next.sender.una + 1);
                next.sender.nxt = from;
                next.sender.max = next.sender.max.max(to);
                next.put(setup, FROM_FIXED, Packet::Data { from, to });
            }
            Step::Deliver(channel, packet) => {
                next.remove(channel, packet);
                next.deliver(channel, packet, nodes)?;
            }
            Step::Lose(channel, packet) => next.remove(channel, packet),
            Step::Signal(i) => {
                next.signals[i] -= 1;
                next.call(Input::Signal(i), nodes)?;
            }
            Step::Forge(i) => {
                next.forged -= 1;
                next.call(Input::Forged(i), nodes)?;
            }
            Step::Timer => next.call(Input::Timer, nodes)?,
        }
        Ok(next)
    }

    /// One segment from SND.NXT, at most up to `limit`. The FIN goes with the last byte when it
    /// can.
    fn send_up_to(&mut self, setup: &Setup, limit: u8) {
        let from = self.sender.nxt;
        let full = from + MSS;
        let to = if full >= FIN { END } else { full }.min(limit);
        self.sender.nxt = to;
        self.sender.max = self.sender.max.max(to);
        self.put(setup, FROM_FIXED, Packet::Data { from, to });
    }

    fn put(&mut self, setup: &Setup, channel: usize, packet: Packet) {
        let most = if setup.channels[channel] == 0 { MOST } else { setup.channels[channel] };
        let places = &mut self.channels[channel];
        let count = places.iter().filter(|&&place| place != Place::EMPTY).count();
        let place = Place::of(packet);
        if !places.contains(&place) && count < most {
            places[0] = place;
            places.sort_unstable();
        }
    }

    /// An ACK below SND.UNA does nothing when it arrives: without it there are fewer states.
    fn forget_old_acks(&mut self) {
        let una = self.sender.una;
        self.keep(TO_FIXED, |p| matches!(p, Packet::Ack { ack, .. } if ack >= una));
    }

    fn remove(&mut self, channel: usize, packet: Packet) {
        self.keep(channel, |p| p != packet);
    }

    fn keep(&mut self, channel: usize, wanted: impl Fn(Packet) -> bool) {
        let places = &mut self.channels[channel];
        for place in places.iter_mut() {
            if !place.packet().is_some_and(&wanted) {
                *place = Place::EMPTY;
            }
        }
        places.sort_unstable();
    }

    fn deliver<C>(
        &mut self,
        channel: usize,
        packet: Packet,
        nodes: &mut Nodes<'_, C>,
    ) -> Result<(), Violation>
    where
        C: Connection<Vec<u8>> + Clone + Debug + Eq + Hash,
    {
        match (channel, packet) {
            (FROM_FIXED, _) => self.call(Input::Segment(packet), nodes)?,
            (FROM_MOBILE, Packet::Ack { ack, .. }) => {
                self.acked = self.acked.max(ack);
                self.call(Input::Segment(packet), nodes)?;
            }
            (TO_MOBILE, Packet::Data { from, to }) => {
                if from <= self.received {
                    self.received = self.received.max(to);
                }
                let ack = Packet::Ack { ack: self.received, window: WINDOW };
                self.put(nodes.setup, FROM_MOBILE, ack);
            }
            (TO_FIXED, Packet::Ack { ack, window }) => {
                let sender = &mut self.sender;
                if ack >= sender.una && ack <= sender.max {
                    sender.una = ack;
                    sender.nxt = sender.nxt.max(ack);
                    sender.wnd = window;
                    if window == 0 && nodes.setup.persist == Persist::Probes {
                        sender.nxt = ack;
                    }
                    self.forget_old_acks();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The node at work, and what becomes of what it puts out.
    fn call<C>(&mut self, input: Input, nodes: &mut Nodes<'_, C>) -> Result<(), Violation>
    where
        C: Connection<Vec<u8>> + Clone + Debug + Eq + Hash,
    {
        let (node, outputs) = nodes.react(self.node, input)?;
        self.node = node;
        let setup = nodes.setup;
        for &output in outputs.iter() {
            match output {
                Output::Reset => self.reset = true,
                Output::ToMobile(packet) => self.put(setup, TO_MOBILE, packet),
                Output::ToFixed { ack, window, injected } => {
                    ensure!(
                        ack <= self.acked || setup.promise == Promise::Custody && ack <= FIN,
                        "acknowledges {ack} for the mobile, which has {}",
                        self.acked
                    );
                    // A forger can make the node forget what it is not bound by: it may repeat
                    // what is old, which the fixed host ignores.
                    let is_deceived = self.forged < setup.forged;
                    ensure!(
                        !injected || ack >= self.told || is_deceived,
                        "ACK {ack} after {}",
                        self.told
                    );
                    self.told = self.told.max(ack);
                    if ack >= self.sender.una {
                        self.put(setup, TO_FIXED, Packet::Ack { ack, window });
                    }
                }
            }
        }
        if self.told > self.acked { nodes.can_deliver(node, self.acked, self.told) } else { Ok(()) }
    }
}

/// Visits every state of `C` under `setup`.
pub(crate) fn explore<C>(config: &C::Config, setup: &Setup) -> Result<Explored, Violation>
where
    C: Connection<Vec<u8>> + Clone + Debug + Eq + Hash,
{
    let mut nodes = Nodes::<C>::new(setup, config);
    let mut states = Numbered::from_iter([State::start(setup)]);
    // How each state was reached first.
    let mut origins = vec![(0, Step::Start)];
    // From and to.
    let mut steps: Vec<(u32, u32)> = Vec::new();
    let mut at = 0;
    while let Some(&state) = states.get_index(at) {
        for step in state.steps(setup, nodes.has_timer(state.node)) {
            let next = state.take(step, &mut nodes).map_err(|violation| {
                format!("{violation}\n{}{step:?}", trace(&origins, &states, at, &nodes))
            })?;
            let (number, is_new) = states.insert_full(next);
            if is_new {
                origins.push((at as u32, step));
            }
            steps.push((at as u32, number as u32));
        }
        ensure!(
            states.len() < setup.limit,
            "more than {} states ({} nodes)",
            setup.limit,
            nodes.states.len()
        );
        at += 1;
    }
    if let Some(dead) = dead_end(&states, &steps) {
        return Err(format!("dead end:\n{}", trace(&origins, &states, dead, &nodes)));
    }
    Ok(Explored { states: states.len(), steps: steps.len(), nodes: nodes.states.len() })
}

/// The first state from which none can be reached in which all is done.
fn dead_end(states: &Numbered<State>, steps: &[(u32, u32)]) -> Option<usize> {
    // Steps by where they lead: those to state n are `sources[starts[n]..starts[n + 1]]`.
    let mut starts = vec![0u32; states.len() + 2];
    for &(_, to) in steps {
        starts[to as usize + 2] += 1;
    }
    for n in 2..starts.len() {
        starts[n] += starts[n - 1];
    }
    let mut sources = vec![0u32; steps.len()];
    for &(from, to) in steps {
        let place = &mut starts[to as usize + 1];
        sources[*place as usize] = from;
        *place += 1;
    }
    let mut can_end = vec![false; states.len()];
    let done = (0..states.len()).filter(|&n| states[n].is_done());
    let mut queue: VecDeque<usize> = done.collect();
    while let Some(n) = queue.pop_front() {
        if !std::mem::replace(&mut can_end[n], true) {
            let sources = &sources[starts[n] as usize..starts[n + 1] as usize];
            queue.extend(sources.iter().map(|&from| from as usize));
        }
    }
    can_end.iter().position(|can| !can)
}

/// The steps that lead to a state, and that state.
fn trace<C>(
    origins: &[(u32, Step)],
    states: &Numbered<State>,
    n: usize,
    nodes: &Nodes<'_, C>,
) -> String
where
    C: Connection<Vec<u8>> + Debug,
{
    let mut lines = Vec::new();
    let mut at = n;
    while at != 0 {
        let (before, step) = origins[at];
        lines.push(format!("{step:?}\n"));
        at = before as usize;
    }
    lines.reverse();
    let node = &nodes.states[states[n].node as usize];
    format!("{}{:?}\n{node:?}\n", lines.concat(), states[n])
}
