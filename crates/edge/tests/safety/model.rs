//! One connection's code in every situation that a small configuration can bring about.
//!
//! An abstract sender (go-back-N, RFC 9293's window rules, one of two persist rules) and an abstract receiver
//! (cumulative) exchange three segments and a FIN through the mechanism. Between them lie four channels, each a
//! small set of segments: any of them may be delivered next, late, or never. That includes every outage; what
//! the radio reports about it comes at any time, in any order, or not at all, up to a budget. A timer that is
//! armed may expire at any time: the clock stands still at its last instant, where every deadline is due and
//! no state differs by its age.
//!
//! A breadth-first search visits all states, so that a violation comes with a shortest trace. It asserts
//! that no step breaks the [promise](Promise), and then, by a search backwards from the states in which all
//! is delivered, that from every state such a state can still be reached ("AG EF done", which the usual
//! libraries for model checking do not offer): losses never lead to a dead end.

use crate::observer::{Violation, ensure};
use crate::subjects::Promise;
use crate::world::flow;
use airtcp_core::{Flags, Instant, LinkSignal, Segment, SeqNum};
use airtcp_edge::{Action, Actions, Connection, Context, Side};
use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;

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

/// A sender under a closed window with data outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persist {
    /// Retransmits (strict, Linux).
    Retransmits,
    /// Probes (4.4BSD).
    Probes,
}

/// What is explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) promise: Promise,
    pub(crate) persist: Persist,
    /// Most segments in each channel; more are lost. To and from the node on the wired side, then on the
    /// wireless side.
    pub(crate) channels: [usize; 4],
    /// How often each signal may come: Fading, Down, Up.
    pub(crate) signals: [u8; 3],
    /// Payload bytes that the mechanism may hold in all.
    pub(crate) memory: u64,
    /// Give up beyond this many states.
    pub(crate) limit: usize,
}

/// What was explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Explored {
    pub(crate) states: usize,
    pub(crate) steps: usize,
}

const SIGNALS: [LinkSignal; 3] = [LinkSignal::Fading, LinkSignal::Down, LinkSignal::Up];

/// A segment in a channel. Its content is determined by its position (and checked as it leaves the node).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Packet {
    /// Position of its first byte; 0 in the mobile's.
    from: u8,
    len: u8,
    fin: bool,
    ack: u8,
    window: u8,
    reset: bool,
}

/// A segment from the fixed host, of some bytes from a position on, and what they are.
fn data(from: u8, to: u8) -> Packet {
    let len = to.min(FIN) - from;
    Packet { from, len, fin: to > FIN, ack: 0, window: WINDOW, reset: false }
}

impl Packet {
    fn end(self) -> u8 {
        self.from + self.len + u8::from(self.fin)
    }

    fn from_fixed(self) -> Segment<Vec<u8>> {
        Segment {
            flow: flow(),
            seq: ISN + u32::from(self.from),
            ack: Some(MOBILE_SEQ),
            window: u16::from(self.window),
            flags: if self.fin { Flags::FIN } else { Flags::empty() },
            payload: (self.from..self.from + self.len).collect(),
            ..Segment::default()
        }
    }

    fn from_mobile(self) -> Segment<Vec<u8>> {
        Segment {
            flow: flow().reversed(),
            seq: MOBILE_SEQ,
            ack: Some(ISN + u32::from(self.ack)),
            window: u16::from(self.window),
            ..Segment::default()
        }
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

const TO_NODE_WIRED: usize = 0;
const TO_FIXED: usize = 1;
const TO_NODE_WIRELESS: usize = 2;
const TO_MOBILE: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State<C> {
    node: C,
    sender: Sender,
    /// The position that the mobile expects.
    received: u8,
    /// Sorted.
    channels: [Vec<Packet>; 4],
    /// What is left of [`Setup::signals`].
    signals: [u8; 3],
    /// Which positions came to the node, a bit each.
    entered: u16,
    /// The highest acknowledgement that came to the node, and the highest that left it.
    acked: u8,
    told: u8,
    /// The node reset the connection.
    reset: bool,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Start,
    Send,
    Retransmit,
    Probe,
    Deliver(usize, Packet),
    Lose(usize, Packet),
    Signal(usize),
    Timer,
}

impl<C> State<C>
where
    C: Connection<Vec<u8>> + Clone + Debug + Eq + Hash,
{
    fn start(setup: &Setup) -> Self {
        Self {
            node: C::default(),
            sender: Sender { una: 1, nxt: 1, max: 1, wnd: WINDOW },
            received: 1,
            channels: Default::default(),
            signals: setup.signals,
            entered: 1,
            acked: 1,
            told: 1,
            reset: false,
        }
    }

    fn is_done(&self) -> bool {
        self.reset || self.received == END && self.sender.una == END
    }

    fn steps(&self, setup: &Setup) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.reset {
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
        for (channel, packets) in self.channels.iter().enumerate() {
            for &packet in packets {
                steps.push(Step::Deliver(channel, packet));
                steps.push(Step::Lose(channel, packet));
            }
        }
        steps.extend((0..3).filter(|&i| self.signals[i] > 0).map(Step::Signal));
        if self.node.next_deadline().is_some() {
            steps.push(Step::Timer);
        }
        steps
    }

    fn take(&self, step: Step, setup: &Setup, config: &C::Config) -> Result<Self, Violation> {
        let mut next = self.clone();
        match step {
            Step::Start => {}
            Step::Send => next.send(setup),
            Step::Retransmit => {
                // The first segment leaves whatever the window says; the others follow as it allows.
                next.sender.nxt = next.sender.una;
                next.send_up_to(setup, next.sender.max);
            }
            Step::Probe => {
                let from = next.sender.una;
                next.sender.nxt = from;
                next.sender.max = next.sender.max.max(from + 1);
                next.put(setup, TO_NODE_WIRED, data(from, from + 1));
            }
            Step::Deliver(channel, packet) => {
                next.channels[channel].retain(|p| *p != packet);
                next.deliver(channel, packet, setup, config)?;
            }
            Step::Lose(channel, packet) => next.channels[channel].retain(|p| *p != packet),
            Step::Signal(i) => {
                next.signals[i] -= 1;
                next.call(None, setup, config, |node, cx| node.on_link(NOW, SIGNALS[i], cx))?;
            }
            Step::Timer => next.call(None, setup, config, |node, cx| node.on_timer(NOW, cx))?,
        }
        Ok(next)
    }

    fn send(&mut self, setup: &Setup) {
        self.send_up_to(setup, self.sender.una + self.sender.wnd);
    }

    /// One segment from SND.NXT, at most up to `limit`. The FIN goes with the last byte when it can.
    fn send_up_to(&mut self, setup: &Setup, limit: u8) {
        let from = self.sender.nxt;
        let full = (from + MSS).min(FIN);
        let end = if full == FIN { END } else { full }.min(limit);
        self.sender.nxt = end;
        self.sender.max = self.sender.max.max(end);
        self.put(setup, TO_NODE_WIRED, data(from, end));
    }

    fn put(&mut self, setup: &Setup, channel: usize, packet: Packet) {
        let packets = &mut self.channels[channel];
        if let Err(at) = packets.binary_search(&packet)
            && packets.len() < setup.channels[channel]
        {
            packets.insert(at, packet);
        }
    }

    fn deliver(
        &mut self,
        channel: usize,
        packet: Packet,
        setup: &Setup,
        config: &C::Config,
    ) -> Result<(), Violation> {
        match channel {
            TO_NODE_WIRED => {
                self.entered |= positions(packet.from, packet.end());
                let input = (Side::Fixed, packet.from_fixed());
                self.call_with_segment(input, setup, config)
            }
            TO_NODE_WIRELESS => {
                self.acked = self.acked.max(packet.ack);
                let input = (Side::Mobile, packet.from_mobile());
                self.call_with_segment(input, setup, config)
            }
            TO_MOBILE => {
                let from = packet.from;
                if from <= self.received && packet.end() > self.received {
                    self.received = packet.end();
                }
                let ack = self.received;
                let ack = Packet { from: 0, len: 0, fin: false, ack, window: WINDOW, reset: false };
                if packet.end() > from {
                    self.put(setup, TO_NODE_WIRELESS, ack);
                }
                Ok(())
            }
            _ => {
                let Sender { una, nxt, max, wnd } = &mut self.sender;
                if packet.ack >= *una && packet.ack <= *max {
                    *una = packet.ack;
                    *nxt = (*nxt).max(*una);
                    *wnd = packet.window;
                    if *wnd == 0 && setup.persist == Persist::Probes {
                        *nxt = *una;
                    }
                }
                Ok(())
            }
        }
    }

    fn call_with_segment(
        &mut self,
        (from, segment): (Side, Segment<Vec<u8>>),
        setup: &Setup,
        config: &C::Config,
    ) -> Result<(), Violation> {
        let input = (from, segment.clone());
        self.call(Some(input), setup, config, |node, cx| node.on_segment(NOW, from, segment, cx))
    }

    /// The node at work, and what it puts out.
    fn call(
        &mut self,
        input: Option<(Side, Segment<Vec<u8>>)>,
        setup: &Setup,
        config: &C::Config,
        act: impl FnOnce(&mut C, &mut Context<'_, Vec<u8>, C>),
    ) -> Result<(), Violation> {
        let before = (self.told, self.acked, self.node.clone());
        for action in invoke(&mut self.node, setup, config, act) {
            match action {
                Action::Drop { .. } => {}
                Action::Forward { to, segment } => {
                    let known = input
                        .as_ref()
                        .is_some_and(|(from, input)| *from == to.opposite() && *input == segment);
                    ensure!(known, "forwards what did not come in: {segment}");
                    self.output(to, &segment, false, setup)?;
                }
                Action::Inject { to, segment } => self.output(to, &segment, true, setup)?,
            }
        }
        let changed = before != (self.told, self.acked, self.node.clone());
        if self.told > self.acked && changed {
            self.can_deliver_custody(setup, config)?;
        }
        Ok(())
    }

    fn output(
        &mut self,
        to: Side,
        segment: &Segment<Vec<u8>>,
        injected: bool,
        setup: &Setup,
    ) -> Result<(), Violation> {
        match to {
            Side::Fixed => {
                if segment.flags.contains(Flags::RST) {
                    self.reset = true;
                    return Ok(());
                }
                let ack = segment.ack.map_or(0, |ack| ack.bytes_after(ISN) as u8);
                if ack > self.acked {
                    let between = positions(self.acked, ack);
                    ensure!(
                        setup.promise == Promise::Custody && ack <= FIN,
                        "acknowledges {ack} for the mobile: {segment}"
                    );
                    ensure!(self.entered & between == between, "never came: {segment}");
                }
                ensure!(!injected || ack >= self.told, "ACK after {}: {segment}", self.told);
                self.told = self.told.max(ack);
                let window = segment.window.min(u16::from(u8::MAX)) as u8;
                let ack = Packet { from: 0, len: 0, fin: false, ack, window, reset: false };
                self.put(setup, TO_FIXED, ack);
            }
            Side::Mobile => {
                if injected {
                    self.check_content(segment)?;
                }
                self.put(setup, TO_MOBILE, packet(segment));
            }
        }
        Ok(())
    }

    fn check_content(&self, segment: &Segment<Vec<u8>>) -> Result<(), Violation> {
        let packet = packet(segment);
        let right = (packet.from..).zip(&segment.payload).all(|(n, byte)| n == *byte);
        ensure!(right, "the wrong bytes: {segment} {:?}", segment.payload);
        let range = positions(packet.from, packet.end());
        ensure!(self.entered & range == range, "replays what never came: {segment}");
        ensure!(!packet.fin || packet.end() == END, "FIN out of place: {segment}");
        Ok(())
    }

    /// The wired link goes away, the mobile comes back: the node must still deliver what it acknowledged.
    fn can_deliver_custody(&self, setup: &Setup, config: &C::Config) -> Result<(), Violation> {
        let mut node = self.node.clone();
        let mut received = self.acked;
        let mut actions =
            invoke(&mut node, setup, config, |node, cx| node.on_link(NOW, LinkSignal::Up, cx));
        for _ in 0..32 {
            let mut acks = 0;
            for action in actions {
                if let Action::Forward { to: Side::Mobile, segment }
                | Action::Inject { to: Side::Mobile, segment } = action
                {
                    self.check_content(&segment)?;
                    let packet = packet(&segment);
                    if packet.from <= received {
                        received = received.max(packet.end());
                    }
                    acks += 1;
                }
            }
            if received >= self.told {
                return Ok(());
            }
            actions = if acks > 0 {
                let (window, ack) = (WINDOW, received);
                let ack = Packet { from: 0, len: 0, fin: false, ack, window, reset: false };
                let ack = ack.from_mobile();
                invoke(&mut node, setup, config, |node, cx| {
                    node.on_segment(NOW, Side::Mobile, ack, cx);
                })
            } else if node.next_deadline().is_some() {
                invoke(&mut node, setup, config, |node, cx| node.on_timer(NOW, cx))
            } else {
                break;
            };
        }
        Err(format!("cannot deliver what it acknowledged: {received} of {}", self.told))
    }
}

fn invoke<C: Connection<Vec<u8>>>(
    node: &mut C,
    setup: &Setup,
    config: &C::Config,
    act: impl FnOnce(&mut C, &mut Context<'_, Vec<u8>, C>),
) -> Vec<Action<Vec<u8>>> {
    let mut out = Actions::new();
    let mut counters = C::Counters::default();
    let room = setup.memory.saturating_sub(node.held() as u64);
    act(node, &mut Context { config, counters: &mut counters, out: &mut out, room });
    out.drain().collect()
}

/// The bits of the positions from `from` up to `to`.
fn positions(from: u8, to: u8) -> u16 {
    (from..to).fold(0, |bits, n| bits | 1 << n)
}

fn packet(segment: &Segment<Vec<u8>>) -> Packet {
    Packet {
        from: segment.seq.bytes_after(ISN) as u8,
        len: segment.payload.len() as u8,
        fin: segment.flags.contains(Flags::FIN),
        ack: 0,
        window: WINDOW,
        reset: segment.flags.contains(Flags::RST),
    }
}

/// Visits every state of `C` under `setup`.
pub(crate) fn explore<C>(config: &C::Config, setup: &Setup) -> Result<Explored, Violation>
where
    C: Connection<Vec<u8>> + Clone + Debug + Eq + Hash,
{
    let start = State::<C>::start(setup);
    let mut ids = HashMap::from([(start.clone(), 0)]);
    // How each state was reached first.
    let mut origins = vec![(0, Step::Start)];
    let mut reversed: Vec<Vec<u32>> = vec![Vec::new()];
    let mut done = Vec::new();
    let mut queue = VecDeque::from([(start, 0u32)]);
    let mut steps = 0;
    while let Some((state, id)) = queue.pop_front() {
        if state.is_done() {
            done.push(id);
        }
        for step in state.steps(setup) {
            steps += 1;
            let next = state.take(step, setup, config).map_err(|violation| {
                format!("{violation}\n{}{step:?}", trace::<C>(&origins, id, setup, config))
            })?;
            if let Some(&known) = ids.get(&next) {
                reversed[known as usize].push(id);
                continue;
            }
            let new = origins.len() as u32;
            ensure!(origins.len() < setup.limit, "more than {} states", setup.limit);
            ids.insert(next.clone(), new);
            origins.push((id, step));
            reversed.push(vec![id]);
            queue.push_back((next, new));
        }
    }
    let mut can_end = vec![false; origins.len()];
    let mut stack = done;
    while let Some(id) = stack.pop() {
        if !std::mem::replace(&mut can_end[id as usize], true) {
            stack.extend(&reversed[id as usize]);
        }
    }
    if let Some(dead) = can_end.iter().position(|can| !can) {
        return Err(format!("dead end:\n{}", trace::<C>(&origins, dead as u32, setup, config)));
    }
    Ok(Explored { states: origins.len(), steps })
}

/// The steps that lead to state `id`, and that state.
fn trace<C>(origins: &[(u32, Step)], id: u32, setup: &Setup, config: &C::Config) -> String
where
    C: Connection<Vec<u8>> + Clone + Debug + Eq + Hash,
{
    let mut steps = Vec::new();
    let mut at = id;
    while at != 0 {
        let (before, step) = origins[at as usize];
        steps.push(step);
        at = before;
    }
    let mut state = State::<C>::start(setup);
    let mut text = String::new();
    for &step in steps.iter().rev() {
        text += &format!("{step:?}\n");
        if let Ok(next) = state.take(step, setup, config) {
            state = next;
        }
    }
    text + &format!("{state:#?}\n")
}
