//! A path for tests: one flow with endless data through a bottleneck with a rate, a propagation
//! delay and a queue. It drives an algorithm by the trait alone, with delivery-rate samples
//! (draft-ietf-ccwg-bbr §4.1) and SACK that is never in doubt.
//!
//! Segments are one SMSS and arrive in the order in which they were sent. One is lost when three
//! sent after it have arrived. cwnd stays where the algorithm sets it, in recovery, too.

use super::{Ack, CongestionControl, Delivery, Loss, Lost, RateSample, Resume, Timeout, Window};
use crate::recovery::RecoveryPhase;
use airtcp_core::{Bytes, DataRate, Duration, Instant, SeqNum};
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write;

pub(super) const SMSS: u32 = 1000;
const REORDERING: u64 = 3;
const RTO: Duration = Duration::from_secs(1);

/// A token bucket that drops the excess.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policer {
    pub(super) rate: DataRate,
    pub(super) burst: f64,
    pub(super) tokens: f64,
    pub(super) at: Instant,
}

impl Policer {
    pub(super) fn new(rate: DataRate, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self { rate, burst, tokens: burst, at: Instant::ZERO }
    }

    fn admits(&mut self, now: Instant) -> bool {
        let earned = now.since(self.at).as_secs_f64() * self.rate.bits_per_sec() as f64 / 8.0;
        self.tokens = (self.tokens + earned).min(self.burst);
        self.at = now;
        let admits = self.tokens >= f64::from(SMSS);
        if admits {
            self.tokens -= f64::from(SMSS);
        }
        admits
    }
}

/// A segment in the network, with the state that its sender recorded.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Number of the transmission, from 0.
    number: u64,
    /// Position of the first byte in the stream.
    offset: u64,
    sent: Instant,
    delivered: u64,
    delivered_ce: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    tx_inflight: u32,
    app_limited: bool,
    retransmitted: bool,
    marked: bool,
    /// Arrival of the ACK; `None` if the segment is dropped.
    heard: Option<Instant>,
}

/// State at one moment of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) at: Instant,
    pub(super) cwnd: u32,
    pub(super) inflight: u32,
    /// Bytes waiting at the bottleneck.
    pub(super) queue: u32,
    /// Pacing rate, Mbit/s.
    pub(super) pacing: Option<f64>,
}

/// The path, its sender and its receiver.
#[derive(Debug)]
pub(super) struct Path<C> {
    pub(super) cc: C,
    pub(super) window: Window,
    pub(super) rate: DataRate,
    pub(super) rtt: Duration,
    /// Capacity of the bottleneck's queue, bytes.
    pub(super) queue: u32,
    /// Queue length above which arriving segments are marked, bytes.
    pub(super) mark_above: Option<u32>,
    /// Drops every n-th transmission.
    pub(super) drop_every: Option<u64>,
    pub(super) policer: Option<Policer>,
    /// Pause of the application: start and end.
    pub(super) pause: Option<(Instant, Instant)>,
    pub(super) points: Vec<Point>,
    pub(super) dropped: u64,
    pub(super) now: Instant,
    pub(super) delivery: Delivery,
    pub(super) phase: RecoveryPhase,
    network: VecDeque<Segment>,
    to_resend: VecDeque<u64>,
    /// One past the highest byte sent.
    max: u64,
    una: u64,
    received: BTreeSet<u64>,
    sent: u64,
    next_departure: Instant,
    link_free: Instant,
    delivered_at: Instant,
    first_sent: Instant,
    srtt: Option<Duration>,
    recovery_point: u64,
    /// End of the round trip in which the sender last reacted to a mark.
    reaction_ends: u64,
    heard: Instant,
    was_empty: bool,
    app_limited_until: Option<u64>,
}

impl<C: CongestionControl> Path<C> {
    /// A path of `mbps` and `rtt` milliseconds whose queue holds `bdps` times their product, with
    /// an initial window of ten segments.
    pub(super) fn new(cc: C, mbps: u64, rtt: u64, bdps: f64) -> Self {
        let (rate, rtt) = (DataRate::mbps(mbps), Duration::from_millis(rtt));
        let mut path = Self {
            cc,
            window: Window::new(SMSS, 10 * SMSS, None, None),
            rate,
            rtt,
            queue: 0,
            mark_above: None,
            drop_every: None,
            policer: None,
            pause: None,
            points: Vec::new(),
            dropped: 0,
            now: Instant::ZERO,
            delivery: Delivery::default(),
            phase: RecoveryPhase::Open,
            network: VecDeque::new(),
            to_resend: VecDeque::new(),
            max: 0,
            una: 0,
            received: BTreeSet::new(),
            sent: 0,
            next_departure: Instant::ZERO,
            link_free: Instant::ZERO,
            delivered_at: Instant::ZERO,
            first_sent: Instant::ZERO,
            srtt: Some(rtt),
            recovery_point: 0,
            reaction_ends: 0,
            heard: Instant::ZERO,
            was_empty: false,
            app_limited_until: None,
        };
        path.queue = (bdps * f64::from(path.bdp())) as u32;
        path.cc.on_established(&mut path.window, Instant::ZERO, Some(rtt));
        path
    }

    /// Bytes that the path holds without its queue.
    pub(super) fn bdp(&self) -> u32 {
        (self.rate.bits_per_sec() as f64 * self.rtt.as_secs_f64() / 8.0) as u32
    }

    /// Runs until `until`, in seconds; returns the Mbit/s delivered meanwhile.
    pub(super) fn run(&mut self, until: f64) -> f64 {
        let (before, start) = (self.delivery.delivered, self.now);
        let until = Instant::ZERO + Duration::from_secs_f64(until);
        while self.step(until) {}
        self.now = until;
        let bits = (self.delivery.delivered - before) as f64 * 8.0;
        bits / until.since(start).as_secs_f64() / 1e6
    }

    /// Points between two times, in seconds.
    pub(super) fn between(&self, from: f64, to: f64) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |point| (from..to).contains(&point.at.as_secs_f64()))
    }

    /// Longest queue between two times, in seconds.
    pub(super) fn longest_queue(&self, from: f64, to: f64) -> u32 {
        self.between(from, to).map(|point| point.queue).max().unwrap_or(0)
    }

    /// cwnd, bytes in flight and queue in segments and pacing rate in Mbit/s at each `step` of
    /// seconds.
    pub(super) fn curve(&self, step: f64) -> String {
        let mut text = String::from("     s   cwnd inflight  queue  pacing\n");
        let mut next = step;
        let mut last = None;
        for point in &self.points {
            while point.at.as_secs_f64() >= next {
                let Point { cwnd, inflight, queue, pacing, .. } = last.unwrap_or(*point);
                let of = |bytes: u32| bytes / SMSS;
                let pacing = pacing.map_or("-".to_owned(), |mbps: f64| format!("{mbps:.1}"));
                let (cwnd, inflight, queue) = (of(cwnd), of(inflight), of(queue));
                writeln!(text, "{next:6.2} {cwnd:6} {inflight:8} {queue:6} {pacing:>7}").unwrap();
                next += step;
            }
            last = Some(*point);
        }
        text
    }

    /// Performs the next event if it is before `until`; returns false if there is none.
    fn step(&mut self, until: Instant) -> bool {
        let ack = self.network.iter().find_map(|segment| segment.heard).unwrap_or(Instant::MAX);
        let send = self.may_send().unwrap_or(Instant::MAX);
        let timeout = if self.una < self.max { self.heard + RTO } else { Instant::MAX };
        let next = ack.min(send).min(timeout);
        if next >= until {
            return false;
        }
        self.now = next;
        if send <= ack && send <= timeout {
            self.send();
        } else if ack <= timeout {
            self.hear();
        } else {
            self.time_out();
        }
        true
    }

    fn is_paused(&self, at: Instant) -> bool {
        self.pause.is_some_and(|(from, to)| (from..to).contains(&at))
    }

    /// Earliest departure of the next segment; `None` if the windows allow none.
    fn may_send(&self) -> Option<Instant> {
        if self.delivery.inflight + SMSS > self.window.cwnd() {
            return None;
        }
        let at = self.now.max(self.next_departure);
        if self.to_resend.is_empty() && self.is_paused(at) {
            return self.pause.map(|(_, to)| to);
        }
        Some(at)
    }

    fn send(&mut self) {
        let is_paused = self.pause.is_some_and(|(_, to)| self.now == to);
        if self.delivery.inflight == 0 && self.sent > 0 && self.was_empty {
            let resume = Resume {
                now: self.now,
                app_limited: is_paused,
                delivered: self.delivery.delivered,
            };
            self.cc.on_resume(&mut self.window, &resume);
        }
        self.was_empty = false;
        if self.delivery.inflight == 0 {
            self.first_sent = self.now;
            self.delivered_at = self.now;
        }
        let resent = self.to_resend.pop_front();
        let offset = resent.unwrap_or(self.max);
        if resent.is_none() {
            self.max += u64::from(SMSS);
        }
        if self.una + u64::from(SMSS) == self.max {
            self.heard = self.now;
        }
        self.delivery.inflight += SMSS;
        let (heard, marked) = self.cross();
        self.network.push_back(Segment {
            number: self.sent,
            offset,
            sent: self.now,
            delivered: self.delivery.delivered,
            delivered_ce: self.delivery.delivered_ce,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.delivery.lost,
            tx_inflight: self.delivery.inflight,
            app_limited: self.app_limited_until.is_some(),
            retransmitted: resent.is_some(),
            marked,
            heard,
        });
        self.sent += 1;
        if let Some(rate) = self.cc.pacing_rate(&self.window) {
            self.next_departure = self.now + rate.transmission_time(Bytes(u64::from(SMSS)));
        }
    }

    /// Passes the segment sent now through the bottleneck; returns the arrival of its ACK and
    /// whether it is marked.
    fn cross(&mut self) -> (Option<Instant>, bool) {
        let waiting = self.waiting();
        let is_chosen = self.drop_every.is_some_and(|every| self.sent % every == every - 1);
        let is_policed = self.policer.as_mut().is_some_and(|policer| !policer.admits(self.now));
        if waiting + SMSS > self.queue.max(SMSS) || is_chosen || is_policed {
            self.dropped += 1;
            return (None, false);
        }
        let on_link = self.rate.transmission_time(Bytes(u64::from(SMSS)));
        self.link_free = self.link_free.max(self.now) + on_link;
        (Some(self.link_free + self.rtt), self.mark_above.is_some_and(|above| waiting > above))
    }

    /// Bytes waiting at the bottleneck.
    fn waiting(&self) -> u32 {
        let time = self.link_free.since(self.now.min(self.link_free));
        (time.as_secs_f64() * self.rate.bits_per_sec() as f64 / 8.0) as u32
    }

    /// Handles the ACK of the first segment that was not dropped.
    fn hear(&mut self) {
        let Some(index) = self.network.iter().position(|segment| segment.heard.is_some()) else {
            return;
        };
        let Some(segment) = self.network.remove(index) else { return };
        let prior_inflight = self.delivery.inflight;
        self.heard = self.now;
        self.delivery = Delivery {
            delivered: self.delivery.delivered + u64::from(SMSS),
            delivered_ce: self.delivery.delivered_ce + u64::from(segment.marked) * u64::from(SMSS),
            newly_delivered: SMSS,
            newly_ce: if segment.marked { SMSS } else { 0 },
            newly_lost: 0,
            inflight: prior_inflight - SMSS,
            prior_inflight,
            ..self.delivery
        };
        self.delivered_at = self.now;
        let rate = self.rate_sample(&segment);
        self.first_sent = segment.sent;
        self.app_limited_until =
            self.app_limited_until.filter(|&until| self.delivery.delivered <= until);
        self.received.insert(segment.offset);
        let una = self.una;
        while self.received.remove(&self.una) {
            self.una += u64::from(SMSS);
        }
        let acked = (self.una - una) as u32;
        let losses = self.find_losses(segment.number);
        self.react(acked, rate, losses);
        if self.delivery.inflight == 0 && self.is_paused(self.now) {
            self.was_empty = true;
        }
        if self.is_paused(self.now) {
            let inflight = u64::from(self.delivery.inflight);
            self.app_limited_until = Some(self.delivery.delivered + inflight);
        }
        self.note();
    }

    /// Rate sample of a delivered segment (draft-ietf-ccwg-bbr §4.1.2.4).
    fn rate_sample(&mut self, segment: &Segment) -> RateSample {
        let rtt = self.now.since(segment.sent);
        if !segment.retransmitted {
            self.srtt = self.srtt.map(|srtt| (srtt * 7 + rtt) / 8);
        }
        let ack_elapsed = self.now.since(segment.delivered_at);
        RateSample {
            delivered: self.delivery.delivered - segment.delivered,
            interval: ack_elapsed.max(segment.sent.since(segment.first_sent)),
            prior_delivered: segment.delivered,
            prior_delivered_ce: segment.delivered_ce,
            prior_lost: segment.lost,
            tx_inflight: segment.tx_inflight,
            app_limited: segment.app_limited,
            retransmitted: segment.retransmitted,
            rtt: (!segment.retransmitted).then_some(rtt),
        }
    }

    /// Segments taken for lost because they were sent long enough before the one that arrived.
    fn find_losses(&mut self, arrived: u64) -> Vec<Lost> {
        let mut losses = Vec::new();
        while let Some(first) = self.network.front().copied()
            && first.heard.is_none()
            && first.number + REORDERING <= arrived
        {
            self.network.pop_front();
            losses.push(self.lose(&first));
        }
        losses
    }

    fn lose(&mut self, segment: &Segment) -> Lost {
        self.delivery.inflight -= SMSS;
        self.delivery.lost += u64::from(SMSS);
        self.delivery.newly_lost += SMSS;
        self.to_resend.push_back(segment.offset);
        Lost {
            now: self.now,
            seq: SeqNum(segment.offset as u32),
            bytes: SMSS,
            tx_inflight: segment.tx_inflight,
            prior_lost: segment.lost,
            lost: self.delivery.lost,
            delivered: self.delivery.delivered,
            app_limited: segment.app_limited,
        }
    }

    /// Passes an ACK and its findings to the algorithm.
    fn react(&mut self, acked: u32, rate: RateSample, losses: Vec<Lost>) {
        let flight = self.delivery.prior_inflight;
        let ack = Ack {
            now: self.now,
            acked,
            rtt: rate.rtt,
            srtt: self.srtt,
            flight,
            duplicate_acks: 0,
            phase: self.phase,
            cwnd_limited: flight + SMSS > self.window.cwnd() / 2 && !self.is_paused(self.now),
            una: SeqNum(self.una as u32),
            max: SeqNum(self.max as u32),
            hops: None,
            delivery: self.delivery,
            rate: Some(rate),
        };
        for lost in &losses {
            self.cc.on_lost(&mut self.window, lost);
        }
        self.cc.on_ack(&mut self.window, &ack);
        let loss = Loss { now: self.now, flight, duplicate_acks: 3 };
        if !losses.is_empty() && self.phase == RecoveryPhase::Open {
            self.cc.on_fast_retransmit(&mut self.window, &loss);
            self.phase = RecoveryPhase::Recovery;
            self.recovery_point = self.max;
        } else if self.phase != RecoveryPhase::Open && self.una >= self.recovery_point {
            self.phase = RecoveryPhase::Open;
            self.cc.on_recovered(&mut self.window, self.now);
        }
        if ack.delivery.newly_ce > 0 && self.una >= self.reaction_ends {
            self.reaction_ends = self.max;
            self.cc.on_ecn(&mut self.window, &loss);
        }
        if acked > 0 && self.phase != RecoveryPhase::Recovery && ack.cwnd_limited {
            self.cc.on_growth(&mut self.window, &ack);
        }
    }

    fn time_out(&mut self) {
        let timeout = Timeout {
            now: self.now,
            flight: self.delivery.inflight,
            first: self.phase != RecoveryPhase::Loss,
            duplicate_acks: 0,
            phase: self.phase,
        };
        let lost: Vec<Segment> = self.network.drain(..).collect();
        for segment in &lost {
            self.lose(segment);
        }
        self.cc.on_timeout(&mut self.window, &timeout);
        self.phase = RecoveryPhase::Loss;
        self.recovery_point = self.max;
        self.heard = self.now;
    }

    fn note(&mut self) {
        let pacing = self.cc.pacing_rate(&self.window);
        self.points.push(Point {
            at: self.now,
            cwnd: self.window.cwnd(),
            inflight: self.delivery.inflight,
            queue: self.waiting(),
            pacing: pacing.map(|rate| rate.bits_per_sec() as f64 / 1e6),
        });
    }
}
