//! A wireless medium and its stations as one state machine, driven like [`crate::Link`].
//!
//! [`Channel::send`] queues a packet at a station. [`Channel::poll`] carries out what is due and
//! returns what comes out. Rules:
//!
//! - A frame reaches each station that can sense it after distance/c, and has passed it one frame
//!   duration later. Positions are looked up when the frame is sent; while it is on the air
//!   stations do not move.
//! - Only its deadline, and the beginnings and ends of the frames that reach it, affect a station.
//!   Frames are noted at each station (in `air`). A station processes them when it matters: at its
//!   own deadline, and at the end of a frame addressed to it. A station that only senses a frame is
//!   touched once: what the frame means to it, how long it reserves the medium, is noted with it.
//! - The agenda holds what matters, by time; no step looks at all stations. Its deadlines are lower
//!   bounds: most frames only freeze back-offs, which can make a deadline later, never earlier. A
//!   frame puts off the deadlines of the stations whose back-offs it will freeze. A station that is
//!   called too early goes back into the agenda.
//! - A caller needs to wake up only when something may come out. That is known well ahead, because
//!   nothing comes out while a frame is on the air or being answered. What happens in between is
//!   carried out in one go.
//! - At equal times ends of frames come first, then deadlines, then beginnings of frames. So
//!   stations whose back-offs end together collide, even at the same place: a radio needs time to
//!   notice a signal. Ends come in the order in which the frames were sent, deadlines in the order
//!   of the stations.
//! - A unicast packet comes out exactly once, delivered or dropped. A broadcast comes out once for
//!   each station that received it, and a packet that others overhear once for each of them, too.
//!   The latest copy is held back until the next, or until the frame has passed all stations in
//!   range (within a microsecond or so): then it is the last.

use crate::link::{Dropped, PacketMeta};
use crate::mobility::Mobility;
use crate::wifi::agenda::{Agenda, Moment, Task};
use crate::wifi::aggregate::Released;
use crate::wifi::air::{ASIDE, Air, Copied, FOR_OTHERS, Flight, SPOILT};
use crate::wifi::audience::{Audience, Neighbour, Neighbours};
#[cfg(test)]
use crate::wifi::config::Power;
use crate::wifi::config::{ChannelConfig, StationConfig};
use crate::wifi::dcf::Effects;
use crate::wifi::frame::{Body, Content, Frame, FrameKind, Monitored, SentFrame, SentMpdu};
use crate::wifi::station::{Receiver, StationCounters, StationId, StationStreams};
use crate::wifi::terminal::{Common, Heard, Terminal};
use airtcp_core::{Bytes, Duration, IdVec, Instant};
use airtcp_core::{Position, event::DropReason};
use std::collections::{BTreeMap, VecDeque};

/// The state of so many stations stays in the processor's cache.
const CACHED: usize = 200;

/// An output of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<T> {
    /// A station received a packet; duplicates are filtered.
    Deliver {
        /// The receiving station.
        station: StationId,
        /// The sending station.
        from: StationId,
        /// The packet that was received.
        packet: T,
        /// Time from entering the sender's queue until the MAC began to contend for it.
        waited: Duration,
        /// No further copy comes out. True for a unicast packet, unless a station further away may
        /// overhear it.
        last: bool,
    },
    /// A station that asked for it ([`Channel::set_overhearing`]) received a packet addressed to
    /// another.
    Overhear {
        /// Who overheard it.
        station: StationId,
        /// The sending station.
        from: StationId,
        /// The intended receiver.
        to: StationId,
        /// The packet that was overheard.
        packet: T,
        /// No further copy comes out: the intended receiver has it, too.
        last: bool,
    },
    /// The packet never reached its receiver ([`DropReason::Retries`]), no station received the
    /// broadcast ([`DropReason::Unheard`]), or its place in the queue went to an urgent packet or
    /// the queue's discipline dropped it ([`DropReason::Queue`]).
    Drop {
        /// The sending station.
        station: StationId,
        /// The packet that was lost.
        packet: T,
        /// Retries, unheard or queue.
        reason: DropReason,
    },
    /// The queue's discipline marked a packet that goes on: its ECN field is to become
    /// [`Ecn::Ce`](airtcp_core::Ecn::Ce). Comes out before the packet does.
    Mark {
        /// The packet that was marked.
        packet: T,
    },
    /// A station gave up on a neighbour after its last attempt: routing's link-failure callback.
    /// Reported whether or not the packet arrived (its ACKs may have been lost), and after the
    /// packet's [`Output::Drop`], if there is one. The station takes its next packet from the queue
    /// only with the next [`Channel::poll`], or before a packet is sent, if `next_before_report`
    /// says so: those for the neighbour can be [taken back](Channel::take_back) before, at this
    /// instant.
    LinkFailure {
        /// The sending station.
        station: StationId,
        /// The station that did not answer.
        to: StationId,
    },
}

/// A shared medium that carries packets of type `T`, handles in the simulator. Calls must not go
/// back in time.
#[derive(Clone, Debug)]
pub struct Channel<T> {
    common: Common,
    stations: IdVec<StationId, Terminal<T>>,
    audience: Audience,
    air: Air<T>,
    agenda: Agenda,
    /// Moment at which the latest frame of each station has passed all others.
    latest: IdVec<StationId, Moment>,
    frames_sent: u32,
    /// Of each size of frames so far: the probability that no bit of one is wrong.
    intact: BTreeMap<Bytes, f64>,
    /// Number of stations that overhear.
    overhearing: usize,
    outputs: VecDeque<Output<T>>,
    /// They gave up at this instant and take their next packets when routing has heard of it.
    gave_up: Vec<StationId>,
    /// The effects of one call; empty between calls.
    wanted: Effects<T>,
    /// The packets released by one call; empty between calls.
    released: Released<T>,
    /// The latest event.
    now: Instant,
}

impl<T: Copy> Channel<T> {
    /// An idle channel at the start of the run; `streams` in the order of `stations`. The
    /// configuration should have passed [`ChannelConfig::check`].
    ///
    /// # Panics
    /// If there are not as many streams as stations.
    pub fn new(
        config: &ChannelConfig,
        stations: &[StationConfig],
        streams: Vec<StationStreams>,
    ) -> Self {
        assert_eq!(stations.len(), streams.len(), "each station has its streams");
        let common = Common::new(config);
        let positions: Vec<_> = stations.iter().map(|station| station.position).collect();
        let terminal = |(id, streams)| Terminal::new(StationId(id), &common.rules, streams);
        Self {
            stations: (0..).zip(streams).map(terminal).collect(),
            audience: Audience::new(&config.radio, &positions),
            common,
            air: Air::new(stations.len()),
            agenda: Agenda::new(stations.len()),
            latest: vec![Moment::end(Instant::ZERO, 0); stations.len()].into(),
            frames_sent: 0,
            intact: BTreeMap::new(),
            overhearing: 0,
            outputs: VecDeque::new(),
            gave_up: Vec::new(),
            wanted: Effects::none(),
            released: Vec::new(),
            now: Instant::ZERO,
        }
    }

    /// Faint signals go among the others.
    #[cfg(test)]
    pub(crate) fn keep_none_apart(&mut self) {
        self.common.faint = Power::ZERO;
    }

    /// Queues an IP packet at `station`; of `meta` a drop-tail queue needs the size alone. A full
    /// queue hands it back.
    pub fn send(
        &mut self,
        now: Instant,
        station: StationId,
        to: Receiver,
        packet: T,
        meta: impl Into<PacketMeta>,
    ) -> Result<(), Dropped<T>> {
        self.enqueue(now, station, to, (packet, meta.into()), false)
    }

    /// Queues a packet ahead of all waiting ones, as ns-2 does with those of routing protocols
    /// (`PriQueue`). If the queue is full, the packets that wait last come out as dropped. A packet
    /// too large for the queue is handed back. Not for stations with a queue discipline.
    pub fn send_urgent(
        &mut self,
        now: Instant,
        station: StationId,
        to: Receiver,
        packet: T,
        meta: impl Into<PacketMeta>,
    ) -> Result<(), Dropped<T>> {
        self.enqueue(now, station, to, (packet, meta.into()), true)?;
        let dcf = &mut self.stations[station].dcf;
        while let Some(packet) = dcf.overflow(&self.common.rules) {
            self.outputs.push_back(Output::Drop { station, packet, reason: DropReason::Queue });
        }
        Ok(())
    }

    fn enqueue(
        &mut self,
        now: Instant,
        station: StationId,
        to: Receiver,
        packet: (T, PacketMeta),
        urgent: bool,
    ) -> Result<(), Dropped<T>> {
        self.run(now);
        if self.common.rules.next_before_report()
            && let Some(at) = self.gave_up.iter().position(|&other| other == station)
        {
            self.gave_up.remove(at);
            self.take_next(station);
        }
        self.go_through(station, Moment::after(now));
        let dcf = &mut self.stations[station].dcf;
        let accepted = dcf.send(now, &self.common.rules, to, packet, urgent, &mut self.wanted);
        self.report_queue(station);
        if !accepted {
            return Err(Dropped(packet.0, DropReason::Queue));
        }
        self.arm(station);
        Ok(())
    }

    /// Takes the packets that wait at `station` for the neighbour `to` out of the queue and appends
    /// them to `taken` in order: after a link failure they may go another way. The one in the MAC
    /// stays.
    pub fn take_back(&mut self, station: StationId, to: StationId, taken: &mut Vec<T>) {
        self.stations[station].dcf.take_back(to, taken);
    }

    /// Nothing comes out of [`Channel::poll`] before this time, and every output comes out exactly
    /// at one of these deadlines; `None` while there is nothing to wait for.
    pub fn next_deadline(&self) -> Option<Instant> {
        if !self.outputs.is_empty() || !self.gave_up.is_empty() {
            return Some(self.now);
        }
        self.agenda.shows(self.common.rules.quiet())
    }

    /// Carries out what is due by `now` and returns the next output; call until `None`.
    pub fn poll(&mut self, now: Instant) -> Option<Output<T>> {
        if self.outputs.is_empty() {
            self.go_on();
        }
        while self.outputs.is_empty() && self.step(now) {}
        self.outputs.pop_front()
    }

    /// The same, but as long as nothing comes out, goes on to each deadline up to `until`: for a
    /// caller who knows that nothing else happens until then. `now` becomes the latest deadline,
    /// and each of them is added to `deadlines`.
    #[inline]
    pub fn poll_ahead(
        &mut self,
        now: &mut Instant,
        until: Instant,
        deadlines: &mut u64,
    ) -> Option<Output<T>> {
        loop {
            let output = self.poll(*now);
            if output.is_some() {
                return output;
            }
            *now = self.next_deadline().filter(|&at| at <= until)?;
            *deadlines += 1;
        }
    }

    /// Carries out everything due by `now`, at all stations, so that the counters are exact at
    /// `now`. Outputs wait for [`Channel::poll`].
    pub fn catch_up(&mut self, now: Instant) {
        self.run(now);
        for station in (0..self.stations.len() as u32).map(StationId) {
            self.go_through(station, Moment::after(now));
        }
    }

    /// The frames sent and received since the last call. The first call returns none and starts the
    /// recording.
    pub fn monitor(&mut self) -> Monitored<T> {
        self.air.monitor.replace(Monitored::default()).unwrap_or_default()
    }

    /// Counts from the start to the latest [`Channel::catch_up`], or slightly later.
    pub fn counters(&self, station: StationId) -> StationCounters {
        self.stations[station].counters()
    }

    /// Packets waiting at a station, not counting those in the MAC.
    pub fn queue_len(&self, station: StationId) -> usize {
        self.stations[station].dcf.queue_len()
    }

    /// True if `to` can receive frames of `from` (bit errors and interference apart), as of the
    /// latest call.
    pub fn reachable(&self, from: StationId, to: StationId) -> bool {
        from != to
            && self
                .common
                .radio
                .in_range(self.position(from, self.now), self.position(to, self.now))
    }

    /// The stations that can receive frames of `from`, in ascending order; see
    /// [`Channel::reachable`].
    pub fn in_range_of(&self, from: StationId) -> impl Iterator<Item = StationId> {
        self.audience.in_range_of(from.0, self.now).into_iter().map(StationId)
    }

    /// Position of a station at any instant, by its present movement.
    pub fn position(&self, station: StationId, at: Instant) -> Position {
        self.audience.position(station.0, at)
    }

    /// Sets how a station moves from `now` on. Frames already on the air are not affected.
    pub fn set_mobility(&mut self, now: Instant, station: StationId, mobility: Mobility) {
        self.run(now);
        self.audience.set_mobility(now, station.0, mobility);
    }

    /// Sets whether a station also receives unicast packets for others ([`Output::Overhear`]), from
    /// the next frame on. If only the ACK of a packet is lost, its retries are not overheard.
    pub fn set_overhearing(&mut self, station: StationId, overhears: bool) {
        let before = &mut self.stations[station].ear.overhears;
        self.overhearing = self.overhearing - usize::from(*before) + usize::from(overhears);
        *before = overhears;
    }

    /// Takes a station's radio down or up again. While it is down, the station neither hears nor is
    /// heard. Its MAC does not know: it goes on sending, retrying and giving up. Frames on the air
    /// at the change are lost to it.
    pub fn set_down(&mut self, now: Instant, station: StationId, down: bool) {
        self.run(now);
        self.go_through(station, Moment::after(now));
        // Only the latest of its frames can still be on the air.
        let latest = self.latest[station];
        if latest.at > now {
            let reserves = self.common.rules.nav_after_error();
            for other in &mut self.stations {
                self.air.spoil(&mut other.ear, latest, now, reserves);
            }
        }
        let terminal = &mut self.stations[station];
        terminal.set_down(&mut self.air, &self.common, now, down, &mut self.wanted);
        self.carry_out(station, None);
        self.arm(station);
    }

    /// Carries out everything due by `now`.
    fn run(&mut self, now: Instant) {
        loop {
            // If routing had been notified in time, it would have acted by now.
            if self.now < now {
                self.go_on();
            }
            if !self.step(now) {
                break;
            }
        }
        self.now = self.now.max(now);
        self.audience.advance(self.now);
    }

    /// Lets the stations that gave up take their next packets.
    #[inline]
    fn go_on(&mut self) {
        while let Some(station) = self.gave_up.pop() {
            self.take_next(station);
        }
    }

    fn take_next(&mut self, station: StationId) {
        let dcf = &mut self.stations[station].dcf;
        dcf.go_on(self.now, &self.common.rules, &mut self.wanted);
        self.report_queue(station);
        self.arm(station);
    }

    /// Carries out what comes next, if it is due by `now`.
    fn step(&mut self, now: Instant) -> bool {
        let Some((moment, task)) = self.agenda.next(now) else { return false };
        self.now = moment.at;
        match task {
            Task::Passed(station) => {
                self.go_through(station, moment.next());
                self.arm(station);
            }
            Task::PassedAll(slot) => self.end_shared(slot),
            Task::Deadline(station) => self.deadline(station, moment),
        }
        true
    }

    /// A station's deadline has come, unless a signal has put it off.
    fn deadline(&mut self, station: StationId, moment: Moment) {
        let now = moment.at;
        self.go_through(station, moment);
        let Terminal { ear, dcf, radio, .. } = &mut self.stations[station];
        if dcf.deadline() <= now {
            dcf.timer(now, &self.common.rules, radio.receiving_since(), &mut self.wanted);
            ear.calm = radio.is_calm(now) && dcf.contends();
            self.carry_out(station, None);
        }
        self.arm(station);
    }

    /// Lets a station process its signals up to `until`.
    #[inline]
    fn go_through(&mut self, station: StationId, until: Moment) {
        let terminal = &mut self.stations[station];
        if terminal.ear.first().moment() < until {
            self.go_through_some(station, until);
        } else {
            terminal.end_sending(&self.common, until);
        }
    }

    #[inline(never)]
    fn go_through_some(&mut self, station: StationId, until: Moment) {
        loop {
            let Self { stations, air, common, wanted, .. } = self;
            let heard = stations[station].go_through(air, common, until, wanted);
            let Some(Heard { flight, overheard }) = heard else { return };
            if overheard {
                self.tell(station, flight, true);
            }
            self.carry_out(station, Some(flight));
        }
    }

    /// Enters a station's deadline into the agenda.
    #[inline]
    fn arm(&mut self, station: StationId) {
        let Self { stations, air, agenda, common, now, .. } = self;
        let terminal = &stations[station];
        let deadline = terminal.earliest_deadline(*now, air, common).unwrap_or(Instant::MAX);
        agenda.set_deadline(station, deadline);
        if terminal.dcf.may_give_up(&common.rules) {
            agenda.show_deadline(station, deadline);
        }
    }

    /// Reports what the discipline of a station's queue did.
    #[inline]
    fn report_queue(&mut self, station: StationId) {
        if self.wanted.queue_acted() {
            let reason = DropReason::Queue;
            let dropped = self.wanted.dropped.drain(..);
            self.outputs.extend(dropped.map(|packet| Output::Drop { station, packet, reason }));
            let marked = self.wanted.marked.drain(..);
            self.outputs.extend(marked.map(|packet| Output::Mark { packet }));
        }
    }

    /// Carries out a station's effects; `flight` is the slot of the frame that it has received.
    fn carry_out(&mut self, station: StationId, flight: Option<u32>) {
        if let (Some((from, sequence, packet)), Some(slot)) = (self.wanted.deliver.take(), flight) {
            let flight = self.air.flight_mut(slot);
            let unicast = flight.frame.to != Receiver::Broadcast;
            let waited = flight.frame.body.waited();
            if unicast {
                self.stations[from].dcf.mark_delivered(sequence);
            }
            if flight.shared {
                flight.delivered = true;
                self.tell(station, slot, false);
            } else {
                let last = true;
                self.outputs.push_back(Output::Deliver { station, from, packet, waited, last });
            }
        }
        if self.wanted.ampdu {
            self.wanted.ampdu = false;
            if let Some(slot) = flight {
                self.receive_ampdu(station, slot);
            }
        }
        if self.wanted.gave_up() {
            self.give_up(station);
        }
        self.report_queue(station);
        if self.wanted.transmit.is_some() {
            self.transmit(station);
        }
    }

    /// A station has received an A-MPDU, at least in part, or an A-MSDU.
    fn receive_ampdu(&mut self, station: StationId, slot: u32) {
        let flight = self.air.flight_mut(slot);
        let Body::Ampdu { priority, .. } = flight.frame.body else { return };
        let (from, msdus) = (flight.frame.from, std::mem::take(&mut flight.msdus));
        let peer = (from, priority);
        for (place, msdu) in msdus.iter().enumerate().filter(|(_, msdu)| msdu.intact) {
            self.stations[from].dcf.mark_msdu_delivered(place);
            self.stations[station].dcf.accept(peer, msdu, &mut self.released);
        }
        self.report_released(station, from);
    }

    /// Reports the packets that a station has released from its reordering buffer.
    fn report_released(&mut self, station: StationId, from: StationId) {
        let deliver = |(packet, waited)| {
            let last = true;
            Output::Deliver { station, from, packet, waited, last }
        };
        self.outputs.extend(self.released.drain(..).map(deliver));
    }

    /// A station has given up packets, and perhaps a neighbour.
    fn give_up(&mut self, station: StationId) {
        let reason = DropReason::Retries;
        let lost = self.wanted.lost.drain(..);
        self.outputs.extend(lost.map(|packet| Output::Drop { station, packet, reason }));
        if let Some(((to, priority), start)) = self.wanted.skip.take() {
            self.stations[to].dcf.skip_to((station, priority), start, &mut self.released);
            self.report_released(to, station);
        }
        if let Some(to) = self.wanted.give_up.take() {
            self.outputs.push_back(Output::LinkFailure { station, to });
            self.gave_up.push(station);
        }
    }

    /// A station has received a shared packet. It is reported when the next station has received it
    /// too, or when no other can.
    fn tell(&mut self, station: StationId, slot: u32, overheard: bool) {
        let held = self.air.flight_mut(slot).held.replace(Copied { station, overheard });
        if let Some(copied) = held {
            self.tell_now(slot, copied, false);
        }
    }

    fn tell_now(&mut self, slot: u32, copied: Copied, last: bool) {
        let Frame { from, to, body, .. } = self.air.flight(slot).frame;
        let Body::Data { packet, waited, .. } = body else { return };
        let Copied { station, overheard } = copied;
        self.outputs.push_back(match to {
            Receiver::Station(to) if overheard => {
                Output::Overhear { station, from, to, packet, last }
            }
            _ => Output::Deliver { station, from, packet, waited, last },
        });
    }

    /// A shared packet has passed all stations in range.
    fn end_shared(&mut self, slot: u32) {
        let Flight { frame, held, delivered, .. } = self.air.flight_mut(slot);
        let (from, to, delivered) = (frame.from, frame.to, *delivered);
        match (held.take(), to, frame.body) {
            // The sender still holds a packet that its receiver has not received.
            (Some(copied), _, _) => self.tell_now(slot, copied, delivered),
            (None, Receiver::Broadcast, Body::Data { packet, .. }) => {
                let reason = DropReason::Unheard;
                self.outputs.push_back(Output::Drop { station: from, packet, reason });
            }
            _ => {}
        }
        self.air.release(slot);
    }

    /// Puts the frame that a station wants to send on the air.
    fn transmit(&mut self, station: StationId) {
        let Some(frame) = self.wanted.transmit.take() else { return };
        let number = self.frames_sent;
        self.frames_sent = number.wrapping_add(1);
        self.show_sent(station, &frame, number);
        let (now, end) = (self.now, self.now + frame.duration);
        let intact = self.probability_intact(frame.size);
        let msdus = match frame.body {
            Body::Ampdu { .. } => self.stations[station].dcf.msdus(&self.common.rules),
            _ => Vec::new(),
        };
        let slot = self.air.launch(Flight {
            frame,
            msdus,
            number,
            start: now,
            end,
            intact,
            shared: false,
            delivered: false,
            held: None,
            users: 1,
        });
        self.begin_sending(station, end);
        let Self { common, stations, audience, air, agenda, wanted, .. } = self;
        let audience = audience_of(stations, audience, station, now);
        let heeding = common.rules.reception_ends_attempts();
        let mut spread = Spread { common, air, agenda, wanted, now, end, number, heeding };
        let Reach { receiver, users, last } =
            spread.reach_all(stations, audience, &frame, slot, intact);
        agenda.settle();
        self.latest[station] = Moment::end(last, number);
        air.flight_mut(slot).users += users;
        let data = frame.body.kind() == FrameKind::Data;
        match (frame.to, receiver) {
            (Receiver::Broadcast, _) => self.share(slot),
            _ if self.overhearing > 0 && data => self.share(slot),
            (Receiver::Station(to), Some(end)) => {
                // After a block ACK, its receiver may give up what it lacks.
                let shows = data
                    || matches!(frame.body, Body::BlockAck)
                        && stations[to].dcf.may_give_up(&common.rules);
                agenda.add(Moment::end(end, number), Task::Passed(to), shows);
            }
            _ => {}
        }
        self.air.release(slot);
    }

    /// Shows the monitor, if there is one, a frame that a station begins to send.
    fn show_sent(&mut self, from: StationId, frame: &Frame<T>, number: u32) {
        let Some(monitor) = &mut self.air.monitor else { return };
        let &Frame { to, duration, reserves, size, body, .. } = frame;
        let content = match (body, to) {
            (Body::Rts, _) => Content::Rts,
            (Body::Cts, _) => Content::Cts,
            (Body::Ack, _) | (Body::BlockAck, Receiver::Broadcast) => Content::Ack,
            (Body::BlockAck, Receiver::Station(to)) => {
                Content::BlockAck(self.stations[to].dcf.block_ack())
            }
            (Body::Data { priority, sequence, retry, .. }, _) => {
                let packets = body.undelivered().into_iter().collect();
                let amsdu = false;
                Content::Data(vec![SentMpdu { packets, priority, amsdu, sequence, retry, size }])
            }
            (Body::Ampdu { .. }, _) => {
                Content::Data(self.stations[from].dcf.sent_mpdus(&self.common.rules))
            }
        };
        let at = self.now;
        let number = Moment::beginning(at, number).frame();
        let sent_at = self.common.rules.sent_at(frame);
        monitor.sent.push(SentFrame { number, at, duration, reserves, from, to, sent_at, content });
    }

    /// The probability that no bit of a frame of this size is wrong.
    fn probability_intact(&mut self, size: Bytes) -> f64 {
        let radio = &self.common.radio;
        if radio.bit_error_rate > 0.0 {
            *self.intact.entry(size).or_insert_with(|| radio.probability_intact(size))
        } else {
            1.0
        }
    }

    /// Makes a station deaf until `end`, while it sends. If frames already on the air may end its
    /// attempt, schedules a look at each when it has passed.
    fn begin_sending(&mut self, station: StationId, end: Instant) {
        let Self { common, stations, air, agenda, .. } = self;
        let sender = &mut stations[station];
        sender.send(common, self.now, end);
        if sender.dcf.heeds_all_frames(&common.rules) {
            let shows = sender.dcf.may_give_up(&common.rules);
            for signal in air.all(&sender.ear) {
                agenda.add(signal.passes(), Task::Passed(station), shows);
            }
        }
    }

    /// Schedules the deliveries of a frame just sent to all stations that may want its packet, and
    /// the end of a shared one, so that one copy is the last.
    #[inline(never)]
    fn share(&mut self, slot: u32) {
        let Self { common, stations, audience, air, agenda, .. } = self;
        let &Flight { frame, number, start, end, .. } = air.flight(slot);
        let audience = audience_of(stations, audience, frame.from, start);
        let broadcast = frame.to == Receiver::Broadcast;
        let mut shared = broadcast;
        // The nearest station that senses it and the furthest that may want it; ties by station.
        let mut nearest = None;
        let mut furthest = None;
        for neighbour in audience.all() {
            let &Neighbour { station, power, .. } = neighbour;
            let delay = neighbour.delay();
            let place = (delay, station);
            let id = StationId(station);
            nearest = Some(nearest.map_or(place, |other| place.min(other)));
            let terminal = &stations[id];
            let overhears = terminal.ear.overhears && terminal.is_news_for_others(&frame);
            let wants = broadcast || frame.to == Receiver::Station(id) || overhears;
            if wants && power >= common.radio.rx_threshold {
                shared |= overhears;
                furthest = furthest.max(Some(place));
                agenda.add(Moment::end(end + delay, number), Task::Passed(id), true);
            }
        }
        if shared {
            let flight = air.flight_mut(slot);
            flight.shared = true;
            flight.users += 1;
            let last = furthest.or(nearest).map_or(end, |(delay, _)| end + delay);
            agenda.add(Moment::end(last, number), Task::PassedAll(slot), true);
        }
    }
}

/// A frame just sent, on its way to the stations around.
struct Spread<'a, T> {
    common: &'a Common,
    air: &'a mut Air<T>,
    agenda: &'a mut Agenda,
    wanted: &'a mut Effects<T>,
    now: Instant,
    end: Instant,
    number: u32,
    /// A station's attempt may end when a frame has passed it.
    heeding: bool,
}

/// The stations in range of a sender's signal: none while its radio is down.
#[inline]
fn audience_of<'a, T>(
    stations: &IdVec<StationId, Terminal<T>>,
    audience: &'a mut Audience,
    sender: StationId,
    now: Instant,
) -> &'a Neighbours {
    if stations[sender].ear.down { Neighbours::NONE } else { audience.of(sender.0, now) }
}

/// Where and when a frame ends at the stations that it reaches.
struct Reach {
    /// The end of the frame at its receiver, if that is in range.
    receiver: Option<Instant>,
    /// Number of stations that keep a reference to the frame.
    users: u32,
    /// The end of the frame at the last station.
    last: Instant,
}

impl<T: Copy> Spread<'_, T> {
    /// Takes the frame to all stations in range.
    #[inline]
    fn reach_all(
        &mut self,
        stations: &mut IdVec<StationId, Terminal<T>>,
        audience: &Neighbours,
        frame: &Frame<T>,
        slot: u32,
        intact: f64,
    ) -> Reach {
        let (data, to) = (frame.body.kind() == FrameKind::Data, frame.to);
        // All that stations learn from a unicast frame for another station, if nothing else
        // matters.
        let reserves = self.common.rules.nav_for_others(frame);
        let unicast = to != Receiver::Broadcast;
        let reserves = reserves.filter(|_| unicast && !self.common.noise_errors);
        if stations.len() > CACHED {
            // The processor waits for all cache misses together.
            for &Neighbour { station, .. } in audience.all() {
                stations[StationId(station)].fetch();
            }
        }
        let spoilt = self.common.rules.nav_after_error();
        let mut reach = Reach { receiver: None, users: 0, last: self.end };
        let [receiving, sensing, faint] = audience.by_class();
        for neighbour in receiving {
            let terminal = &mut stations[StationId(neighbour.station)];
            let end = self.end + neighbour.delay();
            reach.last = reach.last.max(end);
            let for_it = to == Receiver::Station(StationId(neighbour.station));
            if for_it {
                reach.receiver = Some(end);
            }
            let content = match reserves {
                Some(reserves) if !(for_it || terminal.ear.overhears && data) => {
                    (if intact < 1.0 { slot | ASIDE } else { FOR_OTHERS }, end + reserves)
                }
                _ => (slot, Instant::ZERO),
            };
            let used = self.reach(terminal, neighbour, content) && content.0 < FOR_OTHERS;
            reach.users += u32::from(used);
        }
        for neighbour in sensing {
            let terminal = &mut stations[StationId(neighbour.station)];
            let end = self.end + neighbour.delay();
            reach.last = reach.last.max(end);
            self.reach(terminal, neighbour, (SPOILT, end + spoilt));
        }
        for neighbour in faint {
            let terminal = &mut stations[StationId(neighbour.station)];
            let end = self.end + neighbour.delay();
            reach.last = reach.last.max(end);
            if !self.reach_faintly(terminal, neighbour) {
                self.reach(terminal, neighbour, (SPOILT, end + spoilt));
            }
        }
        reach
    }

    /// Beginning and end of the frame at a neighbour.
    #[inline]
    fn signal(&self, at: &Neighbour) -> (Moment, Instant) {
        let delay = at.delay();
        (Moment::beginning(self.now + delay, self.number), self.end + delay)
    }

    /// It will reach a neighbour, unless its radio is down: false then. `content`: see
    /// [`Air::add`].
    #[inline(always)]
    fn reach(
        &mut self,
        terminal: &mut Terminal<T>,
        neighbour: &Neighbour,
        content: (u32, Instant),
    ) -> bool {
        if terminal.ear.down {
            return false;
        }
        let id = StationId(neighbour.station);
        let (beginning, end) = self.signal(neighbour);
        let Self { common, air, agenda, wanted, now, number, heeding, .. } = self;
        // Signals that passed it meanwhile have no effect, or they would be in the agenda.
        let nothing = terminal.go_through(air, common, Moment::deadline(*now), wanted);
        debug_assert!(nothing.is_none());
        if let Some(bound) = terminal.deadline_behind(common, (beginning.at, end)) {
            agenda.put_off(id, bound);
        }
        air.add(&mut terminal.ear, (beginning, end), neighbour.power, content);
        if *heeding && terminal.dcf.heeds_all_frames(&common.rules) {
            let shows = terminal.dcf.may_give_up(&common.rules);
            agenda.add(Moment::end(end, *number), Task::Passed(id), shows);
        }
        true
    }

    /// It will reach a neighbour at which it is faint. False if it cannot be kept among its like.
    #[inline(always)]
    fn reach_faintly(&mut self, terminal: &mut Terminal<T>, neighbour: &Neighbour) -> bool {
        let signal = self.signal(neighbour);
        let Self { common, air, wanted, now, .. } = self;
        let &Neighbour { station, power, .. } = neighbour;
        air.faint[StationId(station)].add(*now, signal, power, common.faint)
            || !terminal.ear.down
                && terminal.make_room_for_faint(air, common, *now, signal, power, wanted)
    }
}
