//! One station's MAC: the distributed coordination function (IEEE Std 802.11-1999, clause 9.2).
//!
//! A state machine without I/O. In: the medium becomes busy or idle, a frame was received or
//! received in error, the deadline has come, a packet is to be sent. Out ([`Effects`]): send a
//! frame, deliver a packet, give one up.
//!
//! - *Phase* says where the station is in an exchange. Outside of one it contends: its back-off
//!   counts while the medium is idle.
//! - Nothing happens during the slots of a back-off. So a back-off is one deadline, `counting_from`
//!   plus `backoff`; when the medium becomes busy, the whole slots elapsed are subtracted. Without
//!   a packet to send there is no deadline either.
//! - The NAV is a date, not a timer: the count begins DIFS after it.
//! - The end of a CTS or ACK that the station sends concerns nobody else. Its caller brings it up
//!   ([`Dcf::end_sending`]) when something follows.
//!
//! Here are the station's state and its contention for the medium; `exchange` has the frames that it
//! sends and receives, `queue` the packets that wait, `txq` whose turn it is under a queue
//! discipline, `rate` the choice of rates, `edca` what is different with four access functions.

mod edca;
mod exchange;
mod queue;
mod rate;
mod txq;

use self::edca::{Edca, Function};
use crate::wifi::aggregate::{Peer, Receptions};
use crate::wifi::air::Flight;
use crate::wifi::category::UserPriority;
use crate::wifi::config::{BackoffDraw, FirstAccess};
use crate::wifi::exposure::Exposure;
use crate::wifi::frame::{self, Body, Frame};
use crate::wifi::minstrel::{Rate, RateControls};
use crate::wifi::rules::Rules;
use crate::wifi::station::{Receiver, StationCounters, StationId, StationStreams};
use airtcp_core::{Bytes, Duration, Instant};

/// A packet on its way through the MAC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<T> {
    pub(super) packet: T,
    pub(super) to: Receiver,
    pub(super) priority: UserPriority,
    /// Size of the packet.
    packet_size: Bytes,
    /// Size and duration of its frame; of the first packet of an A-MPDU or A-MSDU: of the whole.
    pub(super) size: Bytes,
    pub(super) duration: Duration,
    /// The sender's number of the packet; in A-MPDUs and A-MSDUs, the number of its MPDU among
    /// those to the receiver.
    pub(super) sequence: u32,
    /// In A-MPDUs and A-MSDUs, its number among the packets to the receiver.
    pub(super) number: u32,
    /// It has been sent without being acknowledged.
    pub(super) retry: bool,
    /// Attempts in A-MPDUs that failed.
    pub(super) attempts: u32,
    /// Its receiver has it, although the ACK may have been lost.
    pub(super) delivered: bool,
    /// Time at which it was handed to the station.
    offered: Instant,
    /// Time spent in the queue, once it has left it.
    pub(super) waited: Duration,
}

/// A station's place in an exchange of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No exchange in progress.
    Contend,
    /// It has sent an RTS.
    AwaitCts,
    /// It has sent data.
    AwaitAck,
    /// A frame is due, SIFS after one received.
    Respond,
    /// It sends a CTS or an ACK and expects nothing after it.
    Sending,
    /// It sends a broadcast.
    Broadcasting,
    /// It has sent a CTS.
    AwaitData,
}

/// A frame due SIFS after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Response {
    Cts { to: StationId, rate: Rate, reserves: Duration },
    Data,
    Ack { to: StationId, rate: Rate },
    BlockAck { to: StationId, rate: Rate },
}

/// Network allocation vector.
#[derive(Clone, Copy, Debug)]
struct Nav {
    until: Instant,
    /// If an RTS set it: when it is reset, unless a frame arrives first, and to what. Otherwise
    /// [`Instant::MAX`].
    fallback_at: Instant,
    fallback: Instant,
}

impl Nav {
    /// End of the NAV, if no frame arrives.
    fn end(&self) -> Instant {
        self.until.min(self.fallback.max(self.fallback_at))
    }

    /// A frame arrives, or time has passed: decides whether the NAV is reset.
    fn settle(&mut self, now: Instant) {
        if now >= self.fallback_at {
            self.until = self.fallback;
        }
        self.fallback_at = Instant::MAX;
    }

    fn extend(&mut self, now: Instant, until: Instant, fallback_at: Instant) {
        self.settle(now);
        if until > self.until {
            self.fallback_at = fallback_at;
            self.fallback = self.until;
            self.until = until;
        }
    }
}

/// Actions requested by a station after an input.
#[derive(Clone, Debug)]
pub(crate) struct Effects<T> {
    /// Send a frame.
    pub(crate) transmit: Option<Frame<T>>,
    /// A packet has arrived: from whom, its number at the sender, the packet.
    pub(crate) deliver: Option<(StationId, u32, T)>,
    /// All attempts for a receiver are used up.
    pub(crate) give_up: Option<StationId>,
    /// Packets given up that had not arrived.
    pub(crate) lost: Vec<T>,
    /// An A-MPDU for this station has arrived, at least in part.
    pub(crate) ampdu: bool,
    /// Packets of A-MPDUs to this receiver were given up, all those before this number.
    pub(crate) skip: Option<(Peer, u32)>,
    /// Packets that the queue's discipline dropped.
    pub(crate) dropped: Vec<T>,
    /// Packets that the MAC has taken from the queue came out of it marked.
    pub(crate) marked: Vec<T>,
}

impl<T> Effects<T> {
    pub(crate) fn none() -> Self {
        Self {
            transmit: None,
            deliver: None,
            give_up: None,
            lost: Vec::new(),
            ampdu: false,
            skip: None,
            dropped: Vec::new(),
            marked: Vec::new(),
        }
    }

    pub(crate) fn any(&self) -> bool {
        self.transmit.is_some()
            || self.deliver.is_some()
            || self.gave_up()
            || self.ampdu
            || self.queue_acted()
    }

    /// Attempts are used up.
    pub(crate) fn gave_up(&self) -> bool {
        self.give_up.is_some() || self.skip.is_some()
    }

    /// The queue's discipline dropped or marked packets.
    pub(crate) fn queue_acted(&self) -> bool {
        !self.dropped.is_empty() || !self.marked.is_empty()
    }
}

/// The MAC of one station. What changes with each frame sensed comes first, on one cache line.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Dcf<T> {
    /// Due time of [`Dcf::timer`]; [`Instant::MAX`] for never.
    deadline: Instant,
    /// Time at which the medium became idle, own transmissions included.
    idle_from: Instant,
    nav: Nav,
    /// While contending on an idle medium: when the inter-frame space and the NAV end. Otherwise
    /// [`Instant::MAX`].
    counting_from: Instant,
    /// Rest of the back-off at `counting_from`.
    backoff: Backoff,
    phase: Phase,
    /// The medium is busy with other stations' signals.
    carrier: bool,
    /// The latest frame was received in error: EIFS is due.
    after_error: bool,
    /// There is a packet to send.
    has_packet: bool,
    id: StationId,
    pub(crate) traffic: Box<Traffic<T>>,
}

/// State that matters only when a station sends or is sent to. It is kept apart, so that stations
/// that only sense frames take little of the processor's cache.
#[derive(Clone, Debug)]
pub(crate) struct Traffic<T> {
    /// The frame or action due in [`Phase::Respond`].
    response: Response,
    /// End of the latest own transmission.
    sent_until: Instant,
    /// The access function at hand: the only one, or that of the exchange in progress.
    pub(super) function: Function<T>,
    /// All four, if there are so many.
    edca: Option<Box<Edca<T>>>,
    rate_control: Option<Box<RateControls>>,
    /// End of the TXOP in progress.
    txop_until: Instant,
    next_sequence: u32,
    /// The latest packet from each peer, in their order: the duplicate filter.
    latest: Vec<(Peer, u32)>,
    pub(super) receptions: Receptions<T>,
    pub(crate) streams: StationStreams,
    pub(crate) counters: StationCounters,
    /// The frame that the radio follows, if noise causes bit errors.
    pub(crate) exposure: Exposure,
}

/// A back-off, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Backoff(Duration);

impl Backoff {
    /// No back-off is in progress.
    const NONE: Self = Self(Duration::MAX);

    /// Rest of the back-off; `None` without one.
    fn rest(self) -> Option<Duration> {
        (self != Self::NONE).then_some(self.0)
    }

    /// Rest of the back-off; zero without one.
    fn delay(self) -> Duration {
        self.rest().unwrap_or(Duration::ZERO)
    }
}

impl<T: Copy> Dcf<T> {
    pub(crate) fn new(id: StationId, rules: &Rules, streams: StationStreams) -> Self {
        Self {
            id,
            phase: Phase::Contend,
            carrier: false,
            after_error: false,
            has_packet: false,
            deadline: Instant::MAX,
            idle_from: Instant::ZERO,
            nav: Nav { until: Instant::ZERO, fallback_at: Instant::MAX, fallback: Instant::ZERO },
            // The medium has always been idle.
            counting_from: Instant::ZERO,
            backoff: Backoff::NONE,
            traffic: Box::new(Traffic {
                response: Response::Data,
                sent_until: Instant::ZERO,
                function: Function::new(0, rules, streams.queue.clone()),
                edca: rules.has_categories.then(|| Box::new(Edca::new(rules, &streams))),
                rate_control: rules
                    .rate_table
                    .as_ref()
                    .map(|table| Box::new(RateControls::new(table, streams.rates.clone()))),
                txop_until: Instant::ZERO,
                next_sequence: 0,
                latest: Vec::new(),
                receptions: Receptions::none(),
                streams,
                counters: StationCounters::default(),
                exposure: rules.no_exposure(),
            }),
        }
    }

    pub(crate) fn id(&self) -> StationId {
        self.id
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// A lower bound on the deadline, whatever frames arrive, unless one is for this station (or it
    /// heeds all). `None`: there is no deadline. While the medium is busy, that lasts until at
    /// least `busy_until`.
    #[inline]
    pub(crate) fn earliest_deadline(
        &self,
        now: Instant,
        rules: &Rules,
        busy_until: impl FnOnce() -> Instant,
    ) -> Option<Instant> {
        let rest = self.backoff.delay();
        if self.phase == Phase::Sending {
            let from = self.deadline.max(self.nav.end()) + rules.phy.difs;
            return self.has_packet.then(|| from + rest);
        }
        if self.deadline == Instant::MAX {
            let from = || busy_until().max(self.nav.end()) + rules.phy.difs;
            return self.has_packet.then(|| from() + rest);
        }
        let counts_later = self.counting_from > now && self.counting_from < Instant::MAX;
        let waits_eifs = self.after_error && counts_later;
        if !waits_eifs {
            return Some(self.deadline);
        }
        // A frame that is received ends EIFS.
        Some(self.deadline.min(now + rules.phy.shortest_frame + rules.phy.difs + rest))
    }

    /// The medium, idle now, will be busy from `begin` to `end`: if that stops a back-off, there is
    /// no deadline before this, unless a frame is for this station.
    #[inline]
    pub(crate) fn deadline_behind(
        &self,
        rules: &Rules,
        begin: Instant,
        end: Instant,
    ) -> Option<Instant> {
        if rules.has_categories {
            // A function in the first slot of its back-off will have counted one.
            return None;
        }
        let stops =
            self.phase == Phase::Contend && self.deadline > begin && self.deadline < Instant::MAX;
        // Whole slots count, so that a little more may remain.
        let rest = || self.backoff.delay().min(self.deadline.since(begin));
        stops.then(|| end + rules.phy.difs + rest())
    }

    /// End of the CTS or ACK being sent, after which the station contends.
    #[inline]
    pub(crate) fn sending_until(&self) -> Option<Instant> {
        (self.phase == Phase::Sending).then_some(self.deadline)
    }

    /// The CTS or ACK has ended.
    pub(crate) fn end_sending(&mut self, rules: &Rules) {
        self.contend(self.deadline, rules);
    }

    /// Any frame that passes may be the end of its attempt.
    pub(crate) fn heeds_all_frames(&self, rules: &Rules) -> bool {
        rules.reception_ends_attempts() && matches!(self.phase, Phase::AwaitCts | Phase::AwaitAck)
    }

    /// True if the attempt in progress may be the last one for its packet.
    pub(crate) fn may_give_up(&self, rules: &Rules) -> bool {
        let Function { short_retries: short, long_retries: long, aggregates, .. } =
            &self.traffic.function;
        let short = (*short).max(aggregates.most_attempts());
        matches!(self.phase, Phase::AwaitCts | Phase::AwaitAck)
            && (short.saturating_add(1) >= rules.attempts(rules.mac.short_retry_limit)
                || long.saturating_add(1) >= rules.attempts(rules.mac.long_retry_limit))
    }

    /// The receiver has the packet `sequence`; this MAC learns it only from the ACK.
    pub(crate) fn mark_delivered(&mut self, sequence: u32) {
        let current = &mut self.traffic.function.current;
        if let Some(job) = current.as_mut().filter(|job| job.sequence == sequence) {
            job.delivered = true;
        }
    }

    /// Decides whether a frame that is intact with probability `whole` has arrived; of an A-MPDU,
    /// which MPDUs have.
    #[cold]
    pub(crate) fn is_intact(&mut self, flight: &mut Flight<T>, whole: f64) -> bool {
        let errors = &mut self.traffic.streams.errors;
        if !flight.msdus.is_empty() && flight.frame.to == Receiver::Station(self.id) {
            flight.receive_mpdus(whole, errors)
        } else {
            let readable = flight.readable(whole);
            readable >= 1.0 || errors.chance(readable)
        }
    }

    /// The medium has become busy.
    #[inline]
    pub(crate) fn carrier_busy(&mut self, now: Instant, rules: &Rules) {
        self.carrier = true;
        self.nav.settle(now);
        self.freeze(now, rules);
    }

    /// The medium has become idle.
    #[inline]
    pub(crate) fn carrier_idle(&mut self, now: Instant, rules: &Rules) {
        self.carrier = false;
        self.idle_from = self.idle_from.max(now);
        self.resume(now, rules);
    }

    /// A frame comes and goes while the station contends on an idle medium: [`Self::carrier_busy`],
    /// [`Self::frame_spoilt`] or [`Self::frame_for_others`], and [`Self::carrier_idle`] in one.
    #[inline]
    pub(crate) fn let_pass(
        &mut self,
        rules: &Rules,
        (begin, end): (Instant, Instant),
        after_error: bool,
        reserved_until: Instant,
    ) {
        debug_assert!(!self.carrier && self.phase == Phase::Contend);
        self.nav.settle(begin);
        self.freeze(begin, rules);
        self.after_error = after_error;
        self.nav.until = self.nav.until.max(reserved_until);
        self.idle_from = self.idle_from.max(end);
        self.resume(end, rules);
    }

    /// A frame for others was received, which reserves the medium.
    pub(crate) fn frame_for_others(
        &mut self,
        now: Instant,
        rules: &Rules,
        reserved_until: Instant,
        out: &mut Effects<T>,
    ) {
        self.after_error = false;
        self.fail_by_reception(now, rules, out);
        self.nav.extend(now, reserved_until, Instant::MAX);
    }

    /// True if no exchange is in progress.
    #[inline]
    pub(crate) fn contends(&self) -> bool {
        self.phase == Phase::Contend
    }

    /// True if the latest frame was received in error, and EIFS is due.
    #[inline]
    pub(crate) fn is_after_error(&self) -> bool {
        self.after_error
    }

    /// The radio ignores a frame that lasts until `end`.
    pub(crate) fn frame_ignored(&mut self, now: Instant, rules: &Rules, end: Instant) {
        self.nav.extend(now, end + rules.eifs, Instant::MAX);
    }

    /// A frame was received in error.
    pub(crate) fn frame_spoilt(&mut self, now: Instant, rules: &Rules, out: &mut Effects<T>) {
        self.after_error = rules.waits_eifs();
        self.nav.extend(now, now + rules.nav_after_error(), Instant::MAX);
        self.fail_by_reception(now, rules, out);
    }

    /// A frame was received.
    #[inline]
    pub(crate) fn frame_received(
        &mut self,
        now: Instant,
        rules: &Rules,
        frame: &Frame<T>,
        out: &mut Effects<T>,
    ) {
        self.after_error = false;
        if frame.to != Receiver::Station(self.id) {
            self.fail_by_reception(now, rules, out);
            return self.overhear(now, rules, frame, out);
        }
        match (frame.body, self.phase) {
            (Body::Cts, Phase::AwaitCts) => {
                self.traffic.function.short_retries = 0;
                self.respond(now, rules, Response::Data);
            }
            (Body::Ack | Body::BlockAck, Phase::AwaitAck) => self.succeed(now, rules, out),
            (body, _) => {
                self.fail_by_reception(now, rules, out);
                let sender = Receiver::Station(frame.from);
                match body {
                    Body::Rts => self.receive_rts(now, rules, frame),
                    Body::Data { packet, priority, sequence, retry, .. } => {
                        let (peer, rate) = ((frame.from, priority), frame.rate);
                        self.charge_airtime(now, rules, (sender, priority), frame.duration);
                        self.receive_data(now, rules, peer, rate, (packet, sequence, retry), out);
                    }
                    Body::Ampdu { mpdus, priority, .. } => {
                        self.charge_airtime(now, rules, (sender, priority), frame.duration);
                        self.receive_ampdu(now, rules, (frame.from, frame.rate), mpdus, out);
                    }
                    Body::Cts | Body::Ack | Body::BlockAck => {}
                }
            }
        }
    }

    /// The deadline has come. `receiving_since`: since when the receiver has been following a
    /// frame.
    pub(crate) fn timer(
        &mut self,
        now: Instant,
        rules: &Rules,
        receiving_since: Option<Instant>,
        out: &mut Effects<T>,
    ) {
        self.deadline = Instant::MAX;
        match self.phase {
            Phase::Contend if rules.has_categories => self.access_by_category(now, rules, out),
            Phase::Contend => self.access(now, rules, out),
            Phase::AwaitCts | Phase::AwaitAck => {
                let begun = receiving_since.is_some_and(|at| at + rules.rx_start_delay <= now);
                // The outcome waits for the end of a reception that has begun.
                if !rules.reception_ends_attempts() || !begun {
                    self.fail(now, rules, out);
                }
            }
            Phase::Respond => self.send_response(now, rules, out),
            Phase::Sending => self.contend(now, rules),
            Phase::Broadcasting => {
                self.next_packet(now, rules, out);
                self.contend(now, rules);
            }
            Phase::AwaitData => {
                self.idle_from = self.idle_from.max(now);
                self.contend(now, rules);
            }
        }
    }

    // Contention.

    /// The packet that has just become the current one asks for the medium.
    fn first_access(&mut self, now: Instant, rules: &Rules) {
        if rules.has_categories {
            return self.first_access_at_boundary(now, rules);
        }
        let idle = now >= self.nav.end();
        let from = self.counting_from;
        let counts = from < Instant::MAX;
        if counts && idle && self.backoff.rest().is_none_or(|rest| from + rest <= now) {
            self.backoff = Backoff::NONE;
            match rules.mac.first_access {
                FirstAccess::Immediate => {}
                FirstAccess::AfterDifs => self.counting_from = from.max(now + rules.phy.difs),
                FirstAccess::Backoff => {
                    self.draw_backoff(now, rules);
                    self.counting_from = from.max(now + rules.phy.difs);
                }
            }
        } else if self.backoff == Backoff::NONE {
            self.draw_backoff(now, rules);
        }
        self.set_access_deadline(now);
    }

    fn draw_backoff(&mut self, now: Instant, rules: &Rules) {
        let values = match rules.mac.backoff_draw {
            BackoffDraw::Inclusive => u64::from(self.traffic.function.cw) + 1,
            BackoffDraw::Exclusive => u64::from(self.traffic.function.cw),
        };
        let slots = self.traffic.streams.backoff.below(values);
        let mut rest = rules.phy.slot * slots;
        if rules.has_categories {
            rest += self.counted_until_next_boundary(now, rules);
        }
        self.backoff = Backoff(rest);
    }

    /// The medium is no longer idle: subtracts what has been counted.
    #[inline]
    fn freeze(&mut self, now: Instant, rules: &Rules) {
        let from = self.counting_from;
        if from == Instant::MAX {
            return;
        }
        self.counting_from = Instant::MAX;
        self.deadline = Instant::MAX;
        if rules.has_categories {
            return self.freeze_functions(now, rules, from);
        }
        match self.backoff.rest() {
            Some(rest) => {
                let mut counted = now.since(from);
                if rules.mac.repeat_interrupted_slot {
                    counted = rules.phy.slot * (counted.as_nanos() / rules.phy.slot.as_nanos());
                }
                let done = counted >= rest && !self.has_packet;
                self.backoff = if done { Backoff::NONE } else { Backoff(rest - counted) };
            }
            // A packet was about to be sent without a back-off.
            None if self.has_packet => self.draw_backoff(now, rules),
            None => {}
        }
    }

    /// Goes on counting, if the medium is idle and no exchange in progress.
    #[inline]
    fn resume(&mut self, now: Instant, rules: &Rules) {
        if self.carrier || self.phase != Phase::Contend {
            return;
        }
        let space = if self.after_error { rules.eifs } else { rules.phy.difs };
        let from = (self.idle_from + space).max(self.nav.end() + rules.phy.difs);
        self.counting_from = from.max(now);
        self.set_access_deadline(now);
    }

    #[inline]
    fn set_access_deadline(&mut self, now: Instant) {
        if self.has_packet && self.counting_from < Instant::MAX {
            self.deadline = (self.counting_from + self.backoff.delay()).max(now);
        }
    }

    /// An exchange is over.
    fn contend(&mut self, now: Instant, rules: &Rules) {
        self.phase = Phase::Contend;
        self.deadline = Instant::MAX;
        self.leave(now, rules);
        self.resume(now, rules);
    }

    /// The back-off is over: the current packet is sent, or its RTS.
    fn access(&mut self, now: Instant, rules: &Rules, out: &mut Effects<T>) {
        let limit = self.traffic.function.rules.txop_limit;
        self.traffic.txop_until = now + limit;
        let rate = self.choose_rate(now, rules);
        self.assemble(now, rules, rules.longest_data(rate, limit), out);
        let Some(job) = self.traffic.function.current else { return };
        self.counting_from = Instant::MAX;
        self.backoff = Backoff::NONE;
        match job.to {
            Receiver::Station(to) if job.size > rules.mac.rts_threshold => {
                let exchange = rules.exchange(rate);
                let ack = self.acknowledgement(rules).duration;
                let reserves = rules.phy.sifs * 3 + exchange.cts + job.duration + ack;
                let length = (frame::RTS, exchange.rts);
                let rts = self.control_frame(length, (to, rate), Body::Rts, reserves);
                self.transmit(now, rts, out);
                self.phase = Phase::AwaitCts;
                self.deadline = now + exchange.rts + exchange.cts_timeout;
            }
            _ => self.send_data(now, rules, out),
        }
    }
}
