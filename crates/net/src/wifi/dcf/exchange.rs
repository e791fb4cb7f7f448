//! Exchanges of frames: what a station sends, what it makes of frames for it, and how an attempt
//! ends.

use super::{Dcf, Effects, Function, Job, Phase, Response};
use crate::wifi::aggregate::{End, Peer};
use crate::wifi::config::CtsRule;
use crate::wifi::frame::{self, Body, Frame};
use crate::wifi::minstrel::Rate;
use crate::wifi::rules::{Acknowledgement, Rules};
use crate::wifi::station::{Receiver, StationId};
use airtcp_core::{Bytes, Duration, Instant};

impl<T: Copy> Dcf<T> {
    // Frames out.

    pub(super) fn send_data(&mut self, now: Instant, rules: &Rules, out: &mut Effects<T>) {
        let ack = *self.acknowledgement(rules);
        let rate = self.traffic.function.rate();
        let ampdu = self.traffic.function.aggregates.body();
        let Some(job) = &mut self.traffic.function.current else { return };
        let Job { packet, to, priority, size, duration, sequence, .. } = *job;
        let Job { retry, delivered, waited, .. } = *job;
        job.retry = true;
        let reserves = match to {
            Receiver::Station(_) => rules.phy.sifs + ack.duration,
            Receiver::Broadcast => Duration::ZERO,
        };
        let single = Body::Data { packet, priority, sequence, retry, delivered, waited };
        let body = ampdu.unwrap_or(single);
        self.charge_airtime(now, rules, (to, priority), duration);
        let frame = Frame { from: self.id, to, rate, reserves, duration, size, body };
        self.transmit(now, frame, out);
        match to {
            Receiver::Station(_) => {
                self.phase = Phase::AwaitAck;
                self.deadline = now + duration + ack.timeout;
            }
            Receiver::Broadcast => {
                self.phase = Phase::Broadcasting;
                self.deadline = now + duration;
            }
        }
    }

    /// The acknowledgement of the frame to send.
    pub(super) fn acknowledgement<'a>(&self, rules: &'a Rules) -> &'a Acknowledgement {
        let function = &self.traffic.function;
        rules.exchange(function.rate()).acknowledgement(function.aggregates.mpdus())
    }

    /// An RTS, CTS or ACK, which goes with data at a rate.
    pub(super) fn control_frame(
        &self,
        (size, duration): (Bytes, Duration),
        (to, rate): (StationId, Rate),
        body: Body<T>,
        reserves: Duration,
    ) -> Frame<T> {
        Frame { from: self.id, to: Receiver::Station(to), rate, reserves, duration, size, body }
    }

    pub(super) fn transmit(&mut self, now: Instant, frame: Frame<T>, out: &mut Effects<T>) {
        let counters = &mut self.traffic.counters;
        match (frame.body, frame.to) {
            (Body::Rts, _) => counters.rts_sent += 1,
            (Body::Cts, _) => counters.cts_sent += 1,
            (Body::Ack | Body::BlockAck, _) => counters.acks_sent += 1,
            (Body::Ampdu { mpdus, .. }, _) => counters.data_sent += mpdus as u64,
            (Body::Data { .. }, Receiver::Station(_)) => counters.data_sent += 1,
            (Body::Data { .. }, Receiver::Broadcast) => counters.broadcasts_sent += 1,
        }
        self.nav.settle(now);
        self.after_error = false;
        self.traffic.sent_until = now + frame.duration;
        self.idle_from = self.traffic.sent_until;
        out.transmit = Some(frame);
    }

    pub(super) fn respond(&mut self, now: Instant, rules: &Rules, response: Response) {
        self.phase = Phase::Respond;
        self.traffic.response = response;
        self.deadline = now + rules.phy.sifs;
    }

    pub(super) fn send_response(&mut self, now: Instant, rules: &Rules, out: &mut Effects<T>) {
        let idle = !self.carrier && now >= self.nav.end();
        match self.traffic.response {
            Response::Cts { .. } if rules.mac.cts == CtsRule::MediumIdle && !idle => {
                self.contend(now, rules);
            }
            Response::Cts { to, rate, reserves } => {
                let exchange = rules.exchange(rate);
                let length = (frame::CTS, exchange.cts);
                let cts = self.control_frame(length, (to, rate), Body::Cts, reserves);
                self.transmit(now, cts, out);
                let end = now + exchange.cts;
                if rules.mac.wait_for_data {
                    self.phase = Phase::AwaitData;
                    let data_end = end + reserves - rules.phy.sifs - exchange.ack.duration;
                    self.deadline = data_end + rules.data_margin;
                } else {
                    self.phase = Phase::Sending;
                    self.deadline = end;
                }
            }
            Response::Data if rules.mac.sense_before_data && !idle => {
                self.double_cw();
                self.draw_backoff(now, rules);
                self.contend(now, rules);
            }
            Response::Data => self.send_data(now, rules, out),
            Response::Ack { to, rate } => {
                self.send_ack(now, &rules.exchange(rate).ack, (to, rate), Body::Ack, out);
            }
            Response::BlockAck { to, rate } => {
                let ack = &rules.exchange(rate).block_ack;
                self.send_ack(now, ack, (to, rate), Body::BlockAck, out);
            }
        }
    }

    fn send_ack(
        &mut self,
        now: Instant,
        ack: &Acknowledgement,
        to: (StationId, Rate),
        body: Body<T>,
        out: &mut Effects<T>,
    ) {
        let frame = self.control_frame((ack.size, ack.duration), to, body, Duration::ZERO);
        self.transmit(now, frame, out);
        self.phase = Phase::Sending;
        self.deadline = now + ack.duration;
    }

    // Frames in.

    /// A frame for others, or for all.
    #[inline]
    pub(super) fn overhear(
        &mut self,
        now: Instant,
        rules: &Rules,
        frame: &Frame<T>,
        out: &mut Effects<T>,
    ) {
        match rules.nav_for_others(frame) {
            Some(reserves) => self.nav.extend(now, now + reserves, Instant::MAX),
            None => {
                let reset = now + rules.exchange(frame.rate).nav_reset;
                self.nav.extend(now, now + frame.reserves, reset);
            }
        }
        if let (Body::Data { packet, sequence, .. }, Receiver::Broadcast) = (frame.body, frame.to) {
            out.deliver = Some((frame.from, sequence, packet));
        }
    }

    pub(super) fn receive_rts(&mut self, now: Instant, rules: &Rules, rts: &Frame<T>) {
        let ready = match rules.mac.cts {
            CtsRule::NavIdle => now >= self.nav.end(),
            // Checked when the CTS is due.
            CtsRule::MediumIdle => true,
        };
        if self.phase == Phase::Contend && ready {
            let &Frame { from: to, rate, .. } = rts;
            let reserves = rts.reserves - rules.phy.sifs - rules.exchange(rate).cts;
            self.respond(now, rules, Response::Cts { to, rate, reserves });
        }
    }

    pub(super) fn receive_data(
        &mut self,
        now: Instant,
        rules: &Rules,
        peer: Peer,
        rate: Rate,
        (packet, sequence, retry): (T, u32, bool),
        out: &mut Effects<T>,
    ) {
        if !matches!(self.phase, Phase::Contend | Phase::AwaitData) {
            return;
        }
        self.respond(now, rules, Response::Ack { to: peer.0, rate });
        match self.traffic.latest.binary_search_by_key(&peer, |&(peer, _)| peer) {
            Ok(index) if retry && self.traffic.latest[index].1 == sequence => {
                self.traffic.counters.duplicates += 1;
                return;
            }
            Ok(index) => self.traffic.latest[index].1 = sequence,
            Err(index) => self.traffic.latest.insert(index, (peer, sequence)),
        }
        out.deliver = Some((peer.0, sequence, packet));
    }

    /// An A-MPDU for this station has come, of so many MPDUs; which of them are intact is known to
    /// the radio.
    pub(super) fn receive_ampdu(
        &mut self,
        now: Instant,
        rules: &Rules,
        (to, rate): (StationId, Rate),
        mpdus: usize,
        out: &mut Effects<T>,
    ) {
        if matches!(self.phase, Phase::Contend | Phase::AwaitData) {
            let block = Response::BlockAck { to, rate };
            let response = if mpdus > 1 { block } else { Response::Ack { to, rate } };
            self.respond(now, rules, response);
            out.ampdu = true;
        }
    }

    // The end of an attempt.

    /// Any frame but the response means that the attempt failed, if the standard's rule is in force
    /// and the frame began after the own one.
    #[inline]
    pub(super) fn fail_by_reception(&mut self, now: Instant, rules: &Rules, out: &mut Effects<T>) {
        if matches!(self.phase, Phase::AwaitCts | Phase::AwaitAck)
            && rules.reception_ends_attempts()
            && now >= self.traffic.sent_until + rules.rx_start_delay
        {
            self.fail(now, rules, out);
        }
    }

    pub(super) fn fail(&mut self, now: Instant, rules: &Rules, out: &mut Effects<T>) {
        let Some(job) = self.traffic.function.current else { return };
        let sent = self.phase == Phase::AwaitAck;
        let end = if sent { End::Unanswered } else { End::Unsent };
        self.report_attempt(now, rules, end);
        let gives_up = self.attempt_failed(job, rules, end, out);
        self.back_off_or_give_up(now, rules, job, gives_up, out);
        if rules.mac.difs_after_timeout {
            self.idle_from = self.idle_from.max(now);
        }
        self.contend(now, rules);
    }

    /// An attempt for the frame of `job` failed. True if it was the last, at least for a part of it.
    pub(super) fn attempt_failed(
        &mut self,
        job: Job<T>,
        rules: &Rules,
        end: End,
        out: &mut Effects<T>,
    ) -> bool {
        if self.traffic.function.aggregates.mpdus() > 0 {
            self.settle(rules, end, out)
        } else {
            self.fail_single(job, rules, out)
        }
    }

    /// After a failed attempt.
    pub(super) fn back_off_or_give_up(
        &mut self,
        now: Instant,
        rules: &Rules,
        job: Job<T>,
        gives_up: bool,
        out: &mut Effects<T>,
    ) {
        if gives_up {
            if let Receiver::Station(to) = job.to {
                out.give_up = Some(to);
            }
            // The packet keeps its place until `go_on`.
            self.has_packet = false;
        } else {
            self.double_cw();
            self.draw_backoff(now, rules);
        }
    }

    /// An attempt for a packet sent alone failed. True if it was the last.
    fn fail_single(&mut self, job: Job<T>, rules: &Rules, out: &mut Effects<T>) -> bool {
        let long = self.phase == Phase::AwaitAck && job.size > rules.mac.rts_threshold;
        let (retries, limit) = if long {
            (&mut self.traffic.function.long_retries, rules.mac.long_retry_limit)
        } else {
            (&mut self.traffic.function.short_retries, rules.mac.short_retry_limit)
        };
        *retries = retries.saturating_add(1);
        let last = *retries >= rules.attempts(limit) && limit < u32::MAX;
        if !last {
            self.traffic.counters.retries += 1;
            return false;
        }
        self.traffic.counters.link_failures += 1;
        if !job.delivered {
            self.traffic.counters.mac_drops += 1;
            out.lost.push(job.packet);
        }
        true
    }

    /// Takes the next packet after a give-up, at the same instant, when routing has heard of it:
    /// what waited for the lost neighbour may have left the queue by then, and an urgent packet
    /// goes first (ns-2 calls `xmit_failure_` before it asks the queue for a packet).
    pub(crate) fn go_on(&mut self, now: Instant, rules: &Rules, out: &mut Effects<T>) {
        if rules.has_categories {
            return self.go_on_by_category(now, rules, out);
        }
        self.next_packet(now, rules, out);
        if self.phase == Phase::Contend {
            self.set_access_deadline(now);
        }
    }

    /// The current packet is acknowledged; of an A-MPDU, at least one is.
    pub(super) fn succeed(&mut self, now: Instant, rules: &Rules, out: &mut Effects<T>) {
        self.report_attempt(now, rules, End::Answered);
        if self.traffic.function.aggregates.mpdus() > 0 {
            self.settle(rules, End::Answered, out);
        }
        self.load_next(now, out);
        if self.goes_on_in_txop(now, rules, out) {
            return self.respond(now, rules, Response::Data);
        }
        self.back_off_after_packet(now, rules);
        // The medium is still busy with the ACK; counting begins when it is idle.
        self.phase = Phase::Contend;
        self.deadline = Instant::MAX;
        self.leave(now, rules);
    }

    /// Done with the current packet, acknowledged, given up or broadcast.
    pub(super) fn next_packet(&mut self, now: Instant, rules: &Rules, out: &mut Effects<T>) {
        self.load_next(now, out);
        self.back_off_after_packet(now, rules);
    }

    fn load_next(&mut self, now: Instant, out: &mut Effects<T>) {
        self.traffic.function.cw = self.traffic.function.rules.cw_min;
        self.traffic.function.short_retries = 0;
        self.traffic.function.long_retries = 0;
        self.traffic.function.series = None;
        let job =
            self.traffic.function.aggregates.first().or_else(|| self.take_from_queue(now, out));
        self.set_current(job);
    }

    fn back_off_after_packet(&mut self, now: Instant, rules: &Rules) {
        if rules.mac.post_backoff || self.has_packet {
            self.draw_backoff(now, rules);
        }
    }

    /// True if the next packet, and its acknowledgement, fit into the rest of the TXOP.
    fn goes_on_in_txop(&mut self, now: Instant, rules: &Rules, out: &mut Effects<T>) -> bool {
        let rest = self.traffic.txop_until.since(now);
        let unicast = |job: Job<T>| matches!(job.to, Receiver::Station(_));
        if rest.is_zero() || !self.traffic.function.current.is_some_and(unicast) {
            return false;
        }
        let rate = self.choose_rate(now, rules);
        let time = rest - rules.phy.sifs * 2 - rules.exchange(rate).longest_answer();
        self.assemble(now, rules, time, out);
        let answer = rules.phy.sifs + self.acknowledgement(rules).duration;
        self.traffic
            .function
            .current
            .is_some_and(|job| rules.phy.sifs + job.duration + answer <= rest)
    }

    pub(super) fn set_current(&mut self, job: Option<Job<T>>) {
        self.has_packet = job.is_some();
        self.traffic.function.current = job;
    }

    fn double_cw(&mut self) {
        let Function { cw, rules, .. } = &mut self.traffic.function;
        *cw = (*cw * 2 + 1).min(rules.cw_max);
    }
}
