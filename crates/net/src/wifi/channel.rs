//! A wireless medium and its stations as one state machine, driven like [`crate::Link`].
//!
//! [`Channel::send`] queues a packet at a station; [`Channel::poll`] carries out what is due and says what came
//! of packets. Rules:
//!
//! - A frame reaches each station that can sense it after distance/c, and has passed it one frame duration
//!   later. Frames on the air are kept with two cursors into the sender's list of neighbours, nearest first:
//!   whom the frame has reached, whom it has passed. No event is stored for each receiver.
//! - A station has one deadline. The earliest of all is kept as a lower bound: most events only freeze
//!   back-offs, which can make the true minimum later, never earlier; it is looked for when the bound is met.
//! - A caller needs to wake up only when something may come out, which is known well ahead: while a frame is on
//!   the air, and while it is answered, nothing does. What happens in between is carried out in one go.
//! - At equal times ends of frames come first, then deadlines, then beginnings of frames. So stations whose
//!   back-offs end together collide, even at the same place: a radio needs time to notice a signal.
//! - A unicast packet comes out exactly once, delivered or dropped. A broadcast comes out once for each
//!   station that received it. The latest copy is held back until the next, or until the frame has passed
//!   all stations in range (within a microsecond or so): then it is the last.

use crate::link::Dropped;
use crate::wifi::config::{ChannelConfig, Power, RadioConfig, Reception, StationConfig};
use crate::wifi::dcf::{Dcf, Effects, Rules};
use crate::wifi::frame::{Body, Frame};
use crate::wifi::radio::{Outcome, Radio, Signal, propagation_delay};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, Duration, Instant, Stream};
use std::collections::VecDeque;

/// A station: its index in the list given to [`Channel::new`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StationId(pub u32);

/// For whom a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Receiver {
    /// One station.
    Station(StationId),
    /// All in range, unacknowledged.
    Broadcast,
}

/// What comes out of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<T> {
    /// A station received a packet; duplicates are filtered.
    Deliver {
        /// The receiver.
        station: StationId,
        /// The sender.
        from: StationId,
        /// The packet.
        packet: T,
        /// No further copy comes out. Always true of a unicast packet.
        last: bool,
    },
    /// The packet never reached its receiver ([`DropReason::Retries`]), or a broadcast no station at all
    /// ([`DropReason::Unheard`]).
    Drop {
        /// The sender.
        station: StationId,
        /// The packet.
        packet: T,
        /// Why.
        reason: DropReason,
    },
    /// A station gave up on a neighbour after its last attempt: routing's link-failure callback. Said whether
    /// or not the packet had arrived (its ACKs may have been lost); a [`Output::Drop`] of it comes before.
    LinkFailure {
        /// The sender.
        station: StationId,
        /// The neighbour.
        to: StationId,
    },
}

/// A frame put on the air, as a monitor would note it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentFrame {
    /// When its first bit left.
    pub at: Instant,
    /// How long it took.
    pub duration: Duration,
    /// The sender.
    pub from: StationId,
    /// The receiver.
    pub to: Receiver,
    /// What it was.
    pub kind: FrameKind,
    /// Length, MAC header and FCS included.
    pub size: Bytes,
}

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// Acknowledgement.
    Ack,
    /// A packet.
    Data,
}

/// The random streams of one station.
#[derive(Clone, Debug)]
pub struct StationStreams {
    /// Of back-offs.
    pub backoff: Stream,
    /// Of bit errors at this receiver.
    pub errors: Stream,
}

impl StationStreams {
    /// The streams `wlan/<name>/backoff` and `…/errors` of the run with seed `run_seed`; `name` is
    /// `<wlan>/<station>`.
    pub fn named(run_seed: u64, name: &str) -> Self {
        let stream = |purpose| Stream::new(run_seed, &format!("wlan/{name}/{purpose}"));
        Self { backoff: stream("backoff"), errors: stream("errors") }
    }
}

/// Counts of a station since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounters {
    /// RTS sent.
    pub rts_sent: u64,
    /// CTS sent.
    pub cts_sent: u64,
    /// Unicast data frames sent, retries included.
    pub data_sent: u64,
    /// ACKs sent.
    pub acks_sent: u64,
    /// Broadcasts sent.
    pub broadcasts_sent: u64,
    /// Attempts that failed and were repeated.
    pub retries: u64,
    /// Packets given up that had not reached their receiver.
    pub mac_drops: u64,
    /// Packets given up, those included of which only the ACK was lost.
    pub link_failures: u64,
    /// Packets refused by the full queue.
    pub queue_drops: u64,
    /// Frames destroyed by others at this receiver.
    pub collisions: u64,
    /// Frames received in error for other reasons: too weak, bit errors, own transmission.
    pub errors: u64,
    /// Packets received again, and filtered.
    pub duplicates: u64,
    /// Longest queue, packets, the one in the MAC not counted.
    pub max_queue: u64,
    /// Time with the medium busy or the station sending.
    pub busy: Duration,
}

/// A shared medium that carries packets of type `T`, handles in the simulator. Calls must not go back in time.
#[derive(Clone, Debug)]
pub struct Channel<T> {
    rules: Rules,
    radio: RadioConfig,
    stations: Vec<Station<T>>,
    /// Of each station: who senses its frames, nearest first.
    neighbours: Vec<Vec<Neighbour>>,
    /// Of each station: how many of these, at most, can receive them; the others are too far.
    in_range: Vec<usize>,
    /// Each station's deadline.
    deadlines: Vec<Instant>,
    /// No deadline is earlier.
    earliest_deadline: Instant,
    /// Before then nothing comes of each station's deadline.
    quiet: Vec<Instant>,
    /// Frames on the air, in the order of their beginnings.
    flights: Vec<Flight<T>>,
    frames_sent: u64,
    outputs: VecDeque<Output<T>>,
    /// Frames sent, if someone wants to know.
    monitor: Option<Vec<SentFrame>>,
    /// The latest event.
    now: Instant,
}

#[derive(Clone, Debug)]
struct Station<T> {
    dcf: Dcf<T>,
    radio: Radio,
    errors: Stream,
    /// The radio is down: it neither sends nor hears.
    down: bool,
    /// Frames with lower numbers were begun before the radio last came up; it does not hear them.
    hears_from: u64,
    /// While the medium is busy: from when that is not yet in the counters.
    busy_from: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    station: StationId,
    delay: Duration,
    power: Power,
}

/// A frame on the air.
#[derive(Clone, Debug)]
struct Flight<T> {
    id: u64,
    frame: Frame<T>,
    start: Instant,
    end: Instant,
    /// Its sender went down before it was complete.
    cut: bool,
    /// How many neighbours it has reached.
    reached: usize,
    /// How many it has passed.
    passed: usize,
    /// When it next reaches or passes one.
    next: Instant,
    next_is_end: bool,
    /// Probability that no bit is wrong.
    intact: f64,
    /// Of a unicast packet: when its last bit reaches the receiver.
    arrives: Option<Instant>,
    /// Of a broadcast: the latest receiver, not yet told.
    held: Option<StationId>,
}

impl<T> Flight<T> {
    /// What comes first of two: the earlier one, or else an end, which is not a beginning.
    fn order(&self) -> (Instant, bool) {
        (self.next, !self.next_is_end)
    }

    /// Finds what comes next; false when the frame has passed everyone.
    fn advance(&mut self, neighbours: &[Neighbour]) -> bool {
        let Some(passes) = neighbours.get(self.passed).map(|n| self.end + n.delay) else {
            return false;
        };
        match neighbours.get(self.reached).map(|n| self.start + n.delay) {
            Some(reaches) if reaches < passes => (self.next, self.next_is_end) = (reaches, false),
            _ => (self.next, self.next_is_end) = (passes, true),
        }
        true
    }
}

impl<T: Copy> Channel<T> {
    /// An idle channel at the start of the run; `streams` in the order of `stations`. The configuration should
    /// have passed [`ChannelConfig::check`].
    ///
    /// # Panics
    /// If there are not as many streams as stations.
    pub fn new(
        config: &ChannelConfig,
        stations: &[StationConfig],
        streams: Vec<StationStreams>,
    ) -> Self {
        assert_eq!(stations.len(), streams.len(), "each station has its streams");
        let rules = Rules::new(config);
        let neighbours: Vec<_> =
            (0..stations.len()).map(|of| neighbours(&config.radio, stations, of)).collect();
        let receives = |n: &Neighbour| n.power >= config.radio.rx_threshold;
        let in_range =
            |all: &Vec<Neighbour>| all.iter().rposition(receives).map_or(0, |last| last + 1);
        let station = |(id, StationStreams { backoff, errors })| Station {
            dcf: Dcf::new(StationId(id), stations.len(), &rules, backoff),
            radio: Radio::new(),
            errors,
            down: false,
            hears_from: 0,
            busy_from: Instant::ZERO,
        };
        Self {
            stations: (0..).zip(streams).map(station).collect(),
            rules,
            radio: config.radio.clone(),
            in_range: neighbours.iter().map(in_range).collect(),
            neighbours,
            deadlines: vec![Instant::MAX; stations.len()],
            earliest_deadline: Instant::MAX,
            quiet: vec![Instant::MAX; stations.len()],
            flights: Vec::new(),
            frames_sent: 0,
            outputs: VecDeque::new(),
            monitor: None,
            now: Instant::ZERO,
        }
    }

    /// Queues a packet of `size` bytes (the IP packet) at `station`. A full queue hands it back.
    pub fn send(
        &mut self,
        now: Instant,
        station: StationId,
        to: Receiver,
        packet: T,
        size: Bytes,
    ) -> Result<(), Dropped<T>> {
        self.run(now);
        let at = station.0 as usize;
        if !self.stations[at].dcf.send(now, &self.rules, to, packet, size) {
            return Err(Dropped(packet, DropReason::Queue));
        }
        self.update_deadline(at);
        Ok(())
    }

    /// Before then nothing comes out of [`Channel::poll`], and what comes out first comes out exactly at the last
    /// such deadline before it; `None` while there is nothing to wait for.
    pub fn next_deadline(&self) -> Option<Instant> {
        if !self.outputs.is_empty() {
            return Some(self.now);
        }
        let flights = self.flights.iter().map(|flight| self.quiet_until(flight));
        let next = flights.chain(self.quiet.iter().copied()).min()?;
        (next < Instant::MAX).then_some(next)
    }

    /// Carries out what is due by `now` and returns the next thing that came of it; call until `None`.
    pub fn poll(&mut self, now: Instant) -> Option<Output<T>> {
        while self.outputs.is_empty() && self.step(now) {}
        self.outputs.pop_front()
    }

    /// Carries out everything due by `now`. What the counters say is then what has happened by then; what comes
    /// out waits for [`Channel::poll`].
    pub fn catch_up(&mut self, now: Instant) {
        self.run(now);
    }

    /// The frames sent since the last call, or, at the first call, none: from then on they are noted.
    pub fn monitor(&mut self) -> Vec<SentFrame> {
        self.monitor.replace(Vec::new()).unwrap_or_default()
    }

    /// Counts from the start to the latest [`Channel::catch_up`], or a little later.
    pub fn counters(&self, station: StationId) -> StationCounters {
        self.stations[station.0 as usize].dcf.counters
    }

    /// Packets waiting at a station, the one in the MAC not counted.
    pub fn queue_len(&self, station: StationId) -> usize {
        self.stations[station.0 as usize].dcf.queue_len()
    }

    /// Whether `to` can receive frames of `from` (bit errors and interference apart).
    pub fn reachable(&self, from: StationId, to: StationId) -> bool {
        self.neighbours[from.0 as usize]
            .iter()
            .any(|neighbour| neighbour.station == to && neighbour.power >= self.radio.rx_threshold)
    }

    /// The stations that can receive frames of `from` (bit errors and interference apart), in ascending order.
    pub fn in_range_of(&self, from: StationId) -> impl Iterator<Item = StationId> {
        let from = from.0 as usize;
        let nearest_first = &self.neighbours[from][..self.in_range[from]];
        let mut stations: Vec<_> = nearest_first.iter().map(|neighbour| neighbour.station).collect();
        stations.sort_unstable();
        stations.into_iter()
    }

    /// Takes a station's radio down or up again: while it is down, nothing it sends is heard and it hears
    /// nothing. Its MAC does not know: it goes on sending, retrying and giving up. What is on the air at the
    /// change is lost.
    pub fn set_down(&mut self, now: Instant, station: StationId, down: bool) {
        self.run(now);
        let at = station.0 as usize;
        for flight in self.flights.iter_mut().filter(|flight| flight.frame.from == station) {
            flight.cut = true;
        }
        let frames_sent = self.frames_sent;
        let state = &mut self.stations[at];
        state.down = down;
        state.hears_from = frames_sent;
        let mut effects = Effects::none();
        if state.radio.is_busy(&self.radio) {
            // A frame half received is one in error.
            if state.radio.receiving_since().is_some() {
                state.dcf.counters.errors += 1;
                state.dcf.frame_spoilt(now, &self.rules, &mut effects);
            }
            state.radio.forget();
            state.dcf.counters.busy += now.since(state.busy_from);
            state.dcf.carrier_idle(now, &self.rules);
        }
        self.carry_out(at, effects);
    }

    fn run(&mut self, now: Instant) {
        while self.step(now) {}
        self.now = self.now.max(now);
    }

    /// Carries out what comes next, if it is due by `now`.
    fn step(&mut self, now: Instant) -> bool {
        let flight = (0..self.flights.len()).min_by_key(|&index| self.flights[index].order());
        let next = flight.map(|index| self.flights[index].order());
        let flight_first = |deadline: Instant| {
            next.is_some_and(|(at, begins)| at < deadline || (at == deadline && !begins))
        };
        if !flight_first(self.earliest_deadline) && self.earliest_deadline <= now {
            let deadlines = self.deadlines.iter().copied();
            self.earliest_deadline = deadlines.min().unwrap_or(Instant::MAX);
        }
        match flight {
            Some(index) if flight_first(self.earliest_deadline) => self.follow(index, now),
            _ if self.earliest_deadline <= now && self.earliest_deadline < Instant::MAX => {
                self.deadline();
                true
            }
            _ => false,
        }
    }

    /// Lets a frame travel on until something else comes first. False if it does not move by `now`.
    fn follow(&mut self, index: usize, now: Instant) -> bool {
        let others = self.flights.iter().enumerate().filter(|&(other, _)| other != index);
        let others = others.map(|(_, flight)| flight.next).min().unwrap_or(Instant::MAX);
        let mut moved = false;
        loop {
            let (at, begins) = self.flights[index].order();
            // Strictly before the deadlines and the other frames: ties are for `step` to order.
            let first = at < self.earliest_deadline && at < others;
            if at > now || (moved && !first) {
                return moved;
            }
            moved = true;
            self.now = at;
            if begins {
                self.reach(index);
            } else if self.pass(index) {
                return true;
            }
        }
    }

    /// The earliest deadline has come.
    fn deadline(&mut self) {
        let due = self.earliest_deadline;
        self.now = due;
        let Some(at) = self.deadlines.iter().position(|&deadline| deadline == due) else { return };
        let mut effects = Effects::none();
        let Station { dcf, radio, .. } = &mut self.stations[at];
        dcf.timer(due, &self.rules, radio.receiving_since(), &mut effects);
        if effects.any() {
            self.carry_out(at, effects);
        }
        self.update_deadline(at);
    }

    /// The first bit of a frame reaches a station.
    fn reach(&mut self, index: usize) {
        let now = self.now;
        let flight = &mut self.flights[index];
        let neighbours = &self.neighbours[flight.frame.from.0 as usize];
        let Neighbour { station, delay, power } = neighbours[flight.reached];
        let signal = Signal { id: flight.id, power, end: flight.end + delay };
        flight.reached += 1;
        flight.advance(neighbours);

        let Station { dcf, radio, busy_from, down, hears_from, .. } =
            &mut self.stations[station.0 as usize];
        if *down || signal.id < *hears_from {
            return;
        }
        let was_busy = radio.is_busy(&self.radio);
        if radio.start(now, &self.radio, signal) {
            dcf.frame_ignored(now, &self.rules, signal.end);
        }
        if !was_busy && radio.is_busy(&self.radio) {
            *busy_from = now.max(*busy_from);
            dcf.carrier_busy(now, &self.rules);
            self.update_deadline(station.0 as usize);
        }
    }

    /// The last bit of a frame passes a station. True if that was the last one.
    fn pass(&mut self, index: usize) -> bool {
        let flight = &mut self.flights[index];
        let neighbours = &self.neighbours[flight.frame.from.0 as usize];
        // One at least, so that a broadcast without receivers ends, too.
        let in_range = self.in_range[flight.frame.from.0 as usize].max(1);
        let Neighbour { station, power, .. } = neighbours[flight.passed];
        flight.passed += 1;
        let done = !flight.advance(neighbours);

        self.hear(station.0 as usize, index, power);
        if self.flights[index].passed == in_range {
            self.end_broadcast(index);
        }
        if done {
            self.flights.remove(index);
        }
        done
    }

    /// The last bit of a frame passes this station.
    fn hear(&mut self, at: usize, index: usize, power: Power) {
        let now = self.now;
        let flight = &self.flights[index];
        let Station { dcf, radio, errors, busy_from, down, hears_from } = &mut self.stations[at];
        if *down || flight.id < *hears_from {
            return;
        }
        let was_busy = radio.is_busy(&self.radio);
        let mut effects = Effects::none();
        match radio.end(now, &self.radio, flight.id, power) {
            Outcome::None => {}
            Outcome::Frame
                if !flight.cut && (flight.intact >= 1.0 || errors.chance(flight.intact)) =>
            {
                dcf.frame_received(now, &self.rules, &flight.frame, &mut effects);
            }
            Outcome::Frame | Outcome::Error => {
                dcf.counters.errors += 1;
                dcf.frame_spoilt(now, &self.rules, &mut effects);
            }
            Outcome::Collision => {
                dcf.counters.collisions += 1;
                dcf.frame_spoilt(now, &self.rules, &mut effects);
            }
        }
        if was_busy && !radio.is_busy(&self.radio) {
            dcf.counters.busy += now.since(*busy_from);
            dcf.carrier_idle(now, &self.rules);
        }
        if effects.any() {
            self.carry_out(at, effects);
        }
        self.update_deadline(at);
    }

    /// Does what the station `at` wants.
    fn carry_out(&mut self, at: usize, effects: Effects<T>) {
        let station = StationId(at as u32);
        let Effects { transmit, deliver, give_up } = effects;
        if let Some((from, sequence, packet)) = deliver {
            self.deliver(station, from, sequence, packet);
        }
        if let Some((to, packet, delivered)) = give_up {
            if !delivered {
                let reason = DropReason::Retries;
                self.outputs.push_back(Output::Drop { station, packet, reason });
            }
            self.outputs.push_back(Output::LinkFailure { station, to });
        }
        if let Some(frame) = transmit {
            self.transmit(at, frame);
        }
    }

    fn deliver(&mut self, station: StationId, from: StationId, sequence: u32, packet: T) {
        // A broadcast is the frame that passes just now.
        let flight = self.flights.iter_mut().find(|flight| {
            flight.frame.from == from
                && flight.frame.to == Receiver::Broadcast
                && matches!(flight.frame.body, Body::Data { sequence: s, .. } if s == sequence)
        });
        let told = match flight {
            Some(flight) => flight.held.replace(station).map(|held| (held, false)),
            None => {
                self.stations[from.0 as usize].dcf.mark_delivered(sequence);
                Some((station, true))
            }
        };
        if let Some((station, last)) = told {
            self.outputs.push_back(Output::Deliver { station, from, packet, last });
        }
    }

    fn transmit(&mut self, at: usize, frame: Frame<T>) {
        let end = self.now + frame.duration;
        if let Some(monitor) = &mut self.monitor {
            let Frame { from, to, duration, size, body, .. } = frame;
            let kind = match body {
                Body::Rts => FrameKind::Rts,
                Body::Cts => FrameKind::Cts,
                Body::Ack => FrameKind::Ack,
                Body::Data { .. } => FrameKind::Data,
            };
            monitor.push(SentFrame { at: self.now, duration, from, to, kind, size });
        }
        let Station { dcf, radio, busy_from, .. } = &mut self.stations[at];
        if radio.is_busy(&self.radio) {
            dcf.counters.busy += self.now.since(*busy_from);
        }
        dcf.counters.busy += frame.duration;
        *busy_from = end;
        radio.transmit(&self.radio, end);
        let arrives = match (frame.body, frame.to) {
            (Body::Data { .. }, Receiver::Station(to)) => {
                let receiver = self.neighbours[at].iter().find(|n| n.station == to);
                receiver.map(|neighbour| end + neighbour.delay)
            }
            _ => None,
        };
        let mut flight = Flight {
            id: self.frames_sent,
            frame,
            start: self.now,
            end,
            cut: false,
            reached: 0,
            passed: 0,
            next: Instant::MAX,
            next_is_end: false,
            intact: self.probability_intact(frame.size),
            arrives,
            held: None,
        };
        self.frames_sent += 1;
        let heard = !self.stations[at].down && flight.advance(&self.neighbours[at]);
        self.flights.push(flight);
        if !heard {
            self.end_broadcast(self.flights.len() - 1);
            self.flights.pop();
        }
    }

    /// If the frame is a broadcast: it has reached whom it can.
    fn end_broadcast(&mut self, index: usize) {
        let Flight { frame, held, .. } = &mut self.flights[index];
        if let (Body::Data { packet, .. }, Receiver::Broadcast) = (frame.body, frame.to) {
            let from = frame.from;
            self.outputs.push_back(match held.take() {
                Some(station) => Output::Deliver { station, from, packet, last: true },
                None => Output::Drop { station: from, packet, reason: DropReason::Unheard },
            });
        }
    }

    fn probability_intact(&self, size: Bytes) -> f64 {
        let error_rate = self.radio.bit_error_rate;
        if error_rate <= 0.0 { 1.0 } else { libm::pow(1.0 - error_rate, size.bits() as f64) }
    }

    fn update_deadline(&mut self, at: usize) {
        let dcf = &self.stations[at].dcf;
        let deadline = dcf.deadline();
        self.deadlines[at] = deadline;
        self.earliest_deadline = self.earliest_deadline.min(deadline);
        // A frame that begins then takes its time, but one that nobody hears is over at once.
        let decides = dcf.may_give_up(&self.rules) || self.neighbours[at].is_empty();
        let frame = if decides { Duration::ZERO } else { self.rules.shortest_frame() };
        self.quiet[at] = deadline + frame;
    }

    /// Before then nothing comes of a frame.
    fn quiet_until(&self, flight: &Flight<T>) -> Instant {
        let response = flight.end + self.rules.shortest_response();
        match flight.frame.to {
            Receiver::Station(_) if !self.rules.reception_ends_attempts() => match flight.arrives {
                Some(arrives) if flight.next <= arrives => arrives,
                _ => response.max(flight.next),
            },
            _ => flight.next.max(flight.end),
        }
    }
}

/// Who senses the frames of station `of`, nearest first.
fn neighbours(radio: &RadioConfig, stations: &[StationConfig], of: usize) -> Vec<Neighbour> {
    let floor = match radio.reception {
        Reception::FirstLock { .. } => radio.cs_threshold,
        Reception::CumulativeSinr { interference_floor, .. } => {
            interference_floor.min(radio.cs_threshold)
        }
    };
    let here = stations[of].position;
    let mut neighbours: Vec<_> = (0..)
        .zip(stations)
        .filter(|&(id, _)| id as usize != of)
        .map(|(id, &StationConfig { position })| Neighbour {
            station: StationId(id),
            delay: propagation_delay(here, position),
            power: radio.received(here.distance(position)),
        })
        .filter(|neighbour| neighbour.power >= floor)
        .collect();
    neighbours.sort_by_key(|neighbour| (neighbour.delay, neighbour.station));
    neighbours
}
