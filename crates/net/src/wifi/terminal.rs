//! One station: its radio, its MAC, and the signals that it has not processed yet.

use crate::wifi::agenda::Moment;
use crate::wifi::air::{ASIDE, Air, Ear, FOR_OTHERS, SPOILT, Signal};
use crate::wifi::config::{ChannelConfig, Power, RadioConfig, Reception};
use crate::wifi::dcf::{Dcf, Effects};
use crate::wifi::faint::Faint;
use crate::wifi::frame::{Body, Frame, ReceivedFrame};
use crate::wifi::radio::{Arrival, Outcome, Radio, Start};
use crate::wifi::rules::Rules;
use crate::wifi::station::{Receiver, StationCounters, StationId, StationStreams};
use airtcp_core::{Duration, Instant};
use std::hint::black_box;

/// State that all stations of a channel share.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) rules: Rules,
    pub(crate) radio: RadioConfig,
    receivable_alone: Power,
    /// Every signal keeps the medium busy.
    senses_all: bool,
    /// Noise and interference cause bit errors.
    pub(crate) noise_errors: bool,
    /// Weaker signals are too faint to be sensed, and are kept apart ([`Faint`]).
    pub(crate) faint: Power,
    /// A signal of this power overcomes noise and as many faint ones as there can be.
    overcomes_faint: Power,
}

impl Common {
    pub(crate) fn new(config: &ChannelConfig) -> Self {
        let radio = config.radio.clone();
        Self {
            rules: Rules::new(config),
            receivable_alone: radio.receivable_alone(),
            senses_all: matches!(radio.reception, Reception::FirstLock { .. }),
            noise_errors: radio.has_noise_errors(),
            faint: radio.faint(),
            overcomes_faint: radio.overcomes_faint(),
            radio,
        }
    }
}

/// A station at work. What changes with each frame sensed is on the first two cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Terminal<T> {
    pub(crate) ear: Ear,
    /// For how long the medium has been busy, own transmissions included.
    busy: Duration,
    /// Frames received in error, not counting collisions.
    errors: u64,
    pub(crate) dcf: Dcf<T>,
    pub(crate) radio: Radio,
    /// While the medium is busy: since when the busy time is not yet in the counters.
    busy_from: Instant,
}

/// The effect of a signal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// Slot of its frame.
    pub(crate) flight: u32,
    /// The packet is for another station and was overheard.
    pub(crate) overheard: bool,
}

impl<T: Copy> Terminal<T> {
    pub(crate) fn new(id: StationId, rules: &Rules, streams: StationStreams) -> Self {
        Self {
            dcf: Dcf::new(id, rules, streams),
            radio: Radio::new(),
            ear: Ear::new(),
            busy_from: Instant::ZERO,
            busy: Duration::ZERO,
            errors: 0,
        }
    }

    /// Brings what changes with each frame into the processor's cache.
    #[inline]
    pub(crate) fn fetch(&self) {
        black_box((self.busy, self.dcf.deadline(), self.busy_from));
    }

    /// Counts of what it has processed.
    pub(crate) fn counters(&self) -> StationCounters {
        StationCounters { busy: self.busy, errors: self.errors, ..self.dcf.traffic.counters }
    }

    /// Processes signals up to the first that has an effect, or up to `until`.
    #[inline]
    pub(crate) fn go_through(
        &mut self,
        air: &mut Air<T>,
        common: &Common,
        until: Moment,
        out: &mut Effects<T>,
    ) -> Option<Heard> {
        if self.ear.first().moment() >= until {
            self.end_sending(common, until);
            return None;
        }
        match self.ear.only_plain() {
            // The usual case, taken in one go.
            Some(signal) if signal.passes() < until && self.meets_no_faint(air, common, signal) => {
                let signal = *signal;
                self.ear.remove_only();
                self.let_pass(air, common, signal);
                None
            }
            _ => self.go_through_one_by_one(air, common, until, out),
        }
    }

    /// Contends again, if its CTS or ACK has ended before `until`. All earlier signals must have
    /// been processed.
    #[inline]
    pub(crate) fn end_sending(&mut self, common: &Common, until: Moment) {
        if let Some(end) = self.dcf.sending_until()
            && Moment::deadline(end) < until
        {
            self.dcf.end_sending(&common.rules);
            self.ear.calm = self.radio.is_calm(end);
        }
    }

    /// A frame that is not for this station comes and goes.
    #[inline]
    fn let_pass(&mut self, air: &mut Air<T>, common: &Common, signal: Signal) {
        let Common { rules, radio, receivable_alone, senses_all, .. } = common;
        let (begin, end, power) = (signal.moment().at, signal.end, signal.power);
        debug_assert!(self.radio.is_calm(begin));
        let followed = *senses_all || power >= *receivable_alone;
        let mut spoilt = followed && signal.flight == SPOILT;
        let mut reserved_until = signal.reserved_until;
        if signal.flight < FOR_OTHERS {
            let flight = air.flight(signal.flight);
            let intact = flight.readable(flight.intact);
            if followed && !self.dcf.traffic.streams.errors.chance(intact) {
                (spoilt, reserved_until) = (true, end + rules.nav_after_error());
            }
            air.release(signal.flight);
        }
        if !followed && (power < radio.cs_threshold || power == Power::ZERO) {
            return;
        }
        self.errors += u64::from(spoilt);
        self.busy += end.since(begin);
        let (after_error, reserved_until) = if followed {
            (spoilt && rules.waits_eifs(), reserved_until)
        } else {
            (self.dcf.is_after_error(), Instant::ZERO)
        };
        self.dcf.let_pass(rules, (begin, end), after_error, reserved_until);
    }

    // Each kind of event has its own function. In a single one the compiler would load all rules
    // before the loop, which mostly runs once or twice.

    fn go_through_one_by_one(
        &mut self,
        air: &mut Air<T>,
        common: &Common,
        until: Moment,
        out: &mut Effects<T>,
    ) -> Option<Heard> {
        loop {
            let signal = self.ear.first();
            let moment = signal.moment();
            self.end_sending(common, moment.min(until));
            if moment >= until {
                return None;
            }
            let heard = if moment.is_end() {
                self.end_first(air, common, out)
            } else if self.first_is_alone(air, common, until) {
                self.hear_first(air, common, out)
            } else {
                self.begin_first(air, common);
                None
            };
            if heard.is_some() {
                return heard;
            }
        }
    }

    /// True if the first signal, which has yet to begin, will have passed by `until` and meets
    /// nothing.
    #[inline]
    fn first_is_alone(&self, air: &Air<T>, common: &Common, until: Moment) -> bool {
        let signal = self.ear.first();
        self.radio.is_quiet()
            && self.dcf.sending_until().is_none()
            && signal.passes() < until
            && air.first_is_alone(&self.ear, signal.passes())
            && self.meets_no_faint(air, common, signal)
    }

    /// The first signal begins.
    #[inline(never)]
    fn begin_first(&mut self, air: &mut Air<T>, common: &Common) {
        let signal = *self.ear.first();
        let Signal { end, power, flight, .. } = signal;
        let moment = signal.moment();
        let now = moment.at;
        self.expose(common, now);
        self.weigh_faint(air, common, moment);
        let arrival = Arrival { frame: moment.frame(), power, end };
        let faint = &air.faint[self.dcf.id()];
        match self.reached(common, now, arrival, || faint.at(moment)) {
            Start::Present => air.begin_first(&mut self.ear, signal.passes()),
            Start::Ignored(_) => {
                air.remove_first(&mut self.ear);
                air.release(flight);
            }
            Start::Replaces(frame) => {
                air.forget(&mut self.ear, frame);
                air.begin_first(&mut self.ear, signal.passes());
            }
        }
        if common.noise_errors {
            self.follow(air, common, now, signal);
        }
    }

    /// The first signal ends.
    #[inline(never)]
    fn end_first(
        &mut self,
        air: &mut Air<T>,
        common: &Common,
        out: &mut Effects<T>,
    ) -> Option<Heard> {
        let signal = *self.ear.first();
        let moment = signal.moment();
        let now = moment.at;
        self.expose(common, now);
        self.weigh_faint(air, common, moment);
        let was_busy = self.radio.is_busy(&common.radio);
        let outcome = self.radio.end(now, &common.radio, moment.frame(), signal.power);
        let idle = was_busy && !self.radio.is_busy(&common.radio);
        self.passed(air, &signal, common, (outcome, idle), out)
    }

    /// The first signal begins and ends, and meets nothing.
    #[inline(never)]
    fn hear_first(
        &mut self,
        air: &mut Air<T>,
        common: &Common,
        out: &mut Effects<T>,
    ) -> Option<Heard> {
        let signal = *self.ear.first();
        let Signal { end, power, flight, .. } = signal;
        let now = signal.moment().at;
        let Common { radio, receivable_alone, .. } = common;
        let (busy, outcome) = self.radio.hear_alone(radio, *receivable_alone, (now, end), power);
        if busy {
            self.busy_from = now.max(self.busy_from);
            self.dcf.carrier_busy(now, &common.rules);
        }
        if outcome == Outcome::Frame && common.noise_errors && flight < FOR_OTHERS {
            self.expose_alone(common, air, signal);
        }
        self.passed(air, &signal, common, (outcome, busy), out)
    }

    /// True if faint signals have no part in how a signal that meets no other is received.
    #[inline]
    fn meets_no_faint(&self, air: &Air<T>, common: &Common, signal: &Signal) -> bool {
        signal.power >= common.overcomes_faint
            || signal.power < common.receivable_alone
            || !air.faint[self.dcf.id()].meet(signal.moment(), signal.end)
    }

    /// Faint signals that have begun before `until` may have destroyed the frame that the receiver
    /// follows, since when no other signal has begun or ended.
    #[inline]
    fn weigh_faint(&mut self, air: &mut Air<T>, common: &Common, until: Moment) {
        if common.faint > Power::ZERO {
            let faint = &mut air.faint[self.dcf.id()];
            self.radio.disturb(&common.radio, || faint.most(until));
            faint.skip(until);
        }
    }

    /// A faint signal for which there is no room among its like. True if there is now. If not, all
    /// of them can be sensed together and have been put among the others, where this one belongs.
    #[cold]
    pub(crate) fn make_room_for_faint(
        &mut self,
        air: &mut Air<T>,
        common: &Common,
        now: Instant,
        (begins, end): (Moment, Instant),
        power: Power,
        out: &mut Effects<T>,
    ) -> bool {
        let station = self.dcf.id();
        let until = Moment::deadline(now);
        let nothing = self.go_through(air, common, until, out);
        debug_assert!(nothing.is_none());
        self.weigh_faint(air, common, until);
        air.faint[station].remove_passed(now);
        if air.faint[station].moved() {
            let moved = air.all(&self.ear).any(|signal| signal.power < common.faint);
            air.faint[station].set_moved(moved);
        }
        if air.faint[station].add(now, (begins, end), power, common.faint) {
            return true;
        }
        while let Some((begins, end, power)) = air.faint[station].pop() {
            let present = begins < until;
            let next = if present { Moment::end(end, begins.frame()) } else { begins };
            air.add(&mut self.ear, (next, end), power, (SPOILT, Instant::ZERO));
            if present {
                self.radio.add(power);
                self.ear.calm = false;
            }
        }
        air.faint[station].set_moved(true);
        false
    }

    /// The signals present have been the same up to now since the last call.
    #[inline]
    fn expose(&mut self, common: &Common, now: Instant) {
        if common.noise_errors {
            self.expose_to_noise(common, now);
        }
    }

    // What follows is needed with `noise_errors` alone. Inlined, it would slow down all else: the
    // compiler divides by the noise in advance.

    #[cold]
    fn expose_to_noise(&mut self, common: &Common, now: Instant) {
        if let Some((_, sinr)) = self.radio.following(&common.radio) {
            self.dcf.traffic.exposure.pass(now, sinr);
        }
    }

    /// The receiver follows the frame of this signal from beginning to end, and hears no other.
    #[cold]
    fn expose_alone(&mut self, common: &Common, air: &Air<T>, signal: Signal) {
        let Signal { end, power, flight, .. } = signal;
        let frame = &air.flight(flight).frame;
        let mut exposure = common.rules.exposure(signal.moment().at, frame);
        exposure.pass(end, common.radio.sinr(power, Power::ZERO));
        self.dcf.traffic.exposure = exposure;
    }

    /// The receiver may have begun to follow the frame of this signal.
    #[cold]
    fn follow(&mut self, air: &Air<T>, common: &Common, now: Instant, signal: Signal) {
        if let Some((frame, _)) = self.radio.following(&common.radio)
            && frame == signal.moment().frame()
            && signal.flight < FOR_OTHERS
        {
            let frame = &air.flight(signal.flight).frame;
            self.dcf.traffic.exposure = common.rules.exposure(now, frame);
        }
    }

    /// The first bit of a frame reaches the station.
    #[inline]
    fn reached(
        &mut self,
        common: &Common,
        now: Instant,
        arrival: Arrival,
        faint: impl Fn() -> Power,
    ) -> Start {
        let Common { rules, radio, .. } = common;
        let was_busy = self.radio.is_busy(radio);
        let start = self.radio.start(now, radio, arrival, faint);
        if start == Start::Ignored(true) {
            self.dcf.frame_ignored(now, rules, arrival.end);
        }
        self.ear.calm = false;
        if !was_busy && self.radio.is_busy(radio) {
            self.busy_from = now.max(self.busy_from);
            self.dcf.carrier_busy(now, rules);
        }
        start
    }

    /// The last bit of the first signal passes the station, and the medium may become idle.
    #[inline(always)]
    fn passed(
        &mut self,
        air: &mut Air<T>,
        signal: &Signal,
        common: &Common,
        (outcome, idle): (Outcome, bool),
        out: &mut Effects<T>,
    ) -> Option<Heard> {
        let (now, flight) = (signal.end, signal.flight);
        let rules = &common.rules;
        let mut overheard = false;
        let intact = |air: &mut Air<T>, dcf: &mut Dcf<T>| {
            flight != SPOILT
                && (flight == FOR_OTHERS || {
                    let mut intact = air.flight(flight).intact;
                    if common.noise_errors {
                        intact *= dcf.traffic.exposure.intact();
                    }
                    intact >= 1.0 && air.flight(flight).msdus.is_empty()
                        || dcf.is_intact(air.flight_mut(flight & !ASIDE), intact)
                })
        };
        match outcome {
            Outcome::None => {}
            Outcome::Frame if intact(air, &mut self.dcf) => {
                if flight == FOR_OTHERS {
                    self.dcf.frame_for_others(now, rules, signal.reserved_until, out);
                } else {
                    let frame = &air.flight(flight).frame;
                    self.dcf.frame_received(now, rules, frame, out);
                    overheard = self.ear.overhears && self.is_news_for_others(frame);
                    let for_it = match frame.to {
                        Receiver::Station(to) => to == self.dcf.id(),
                        Receiver::Broadcast => true,
                    };
                    if let Some(monitor) = &mut air.monitor
                        && for_it
                    {
                        let (frame, station) = (signal.moment().frame(), self.dcf.id());
                        monitor.received.push(ReceivedFrame { frame, station, at: now });
                    }
                }
            }
            Outcome::Frame | Outcome::Error => {
                self.errors += 1;
                self.dcf.frame_spoilt(now, rules, out);
            }
            Outcome::Collision => {
                self.dcf.traffic.counters.collisions += 1;
                self.dcf.frame_spoilt(now, rules, out);
            }
        }
        if idle {
            self.busy += now.since(self.busy_from);
            self.dcf.carrier_idle(now, rules);
        }
        air.remove_first(&mut self.ear);
        air.release(flight);
        self.ear.calm = self.radio.is_calm(now) && self.dcf.contends();
        (overheard || out.any()).then_some(Heard { flight, overheard })
    }

    /// True if a frame brings another station a packet that it has not got yet.
    pub(crate) fn is_news_for_others(&self, frame: &Frame<T>) -> bool {
        matches!(frame.body, Body::Data { delivered: false, .. })
            && !matches!(frame.to, Receiver::Broadcast)
            && frame.to != Receiver::Station(self.dcf.id())
    }

    /// The station begins to send, until `end`.
    pub(crate) fn send(&mut self, common: &Common, now: Instant, end: Instant) {
        if self.radio.is_busy(&common.radio) {
            self.busy += now.since(self.busy_from);
        }
        self.busy += end.since(now);
        self.busy_from = end;
        self.ear.calm = false;
        self.radio.transmit(&common.radio, end);
    }

    /// The radio goes down or comes up; frames on the air are lost to it.
    pub(crate) fn set_down(
        &mut self,
        air: &mut Air<T>,
        common: &Common,
        now: Instant,
        down: bool,
        out: &mut Effects<T>,
    ) {
        let Common { rules, radio, .. } = common;
        self.ear.down = down;
        air.faint[self.dcf.id()] = Faint::new();
        while !self.ear.is_empty() {
            let flight = self.ear.first().flight;
            air.remove_first(&mut self.ear);
            air.release(flight);
        }
        if self.radio.is_busy(radio) {
            // A frame received in part is in error.
            if self.radio.receiving_since().is_some() {
                self.errors += 1;
                self.dcf.frame_spoilt(now, rules, out);
            }
            self.busy += now.since(self.busy_from);
            self.dcf.carrier_idle(now, rules);
        }
        // Signals too weak to keep the medium busy have gone, too.
        self.radio.forget();
    }

    /// Earliest possible deadline ([`Dcf::earliest_deadline`]).
    #[inline]
    pub(crate) fn earliest_deadline(
        &self,
        now: Instant,
        air: &Air<T>,
        common: &Common,
    ) -> Option<Instant> {
        let busy_until = || self.busy_until(air, &common.radio);
        self.dcf.earliest_deadline(now, &common.rules, busy_until)
    }

    /// If nothing else is on the air here, a signal that begins and ends so puts the deadline off:
    /// to then, or later.
    #[inline]
    pub(crate) fn deadline_behind(
        &self,
        common: &Common,
        (begin, end): (Instant, Instant),
    ) -> Option<Instant> {
        let alone = self.ear.is_empty() && (self.ear.calm || self.radio.is_quiet());
        if common.senses_all && alone {
            self.dcf.deadline_behind(&common.rules, begin, end)
        } else {
            None
        }
    }

    /// Until when the medium is busy, if not longer.
    fn busy_until(&self, air: &Air<T>, radio: &RadioConfig) -> Instant {
        match radio.reception {
            Reception::FirstLock { .. } => self.radio.receiving_until().unwrap_or(Instant::ZERO),
            Reception::CumulativeSinr { .. } => {
                let present = || air.all(&self.ear).filter(|s| s.moment().is_end());
                let busy_alone = present().filter(|signal| signal.power >= radio.cs_threshold);
                let until = busy_alone.map(|signal| signal.moment().at).max();
                // Or signals together keep it busy: until one of them has passed.
                let until = until.or_else(|| present().map(|signal| signal.moment().at).next());
                until.unwrap_or(Instant::ZERO)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_station_takes_three_cache_lines() {
        assert_eq!(size_of::<Terminal<u32>>(), 3 * 64);
        assert_eq!(std::mem::offset_of!(Terminal<u32>, dcf), 64);
    }
}
