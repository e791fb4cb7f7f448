//! The packets that wait in a station: in one drop-tail queue, or in transmit queues under a queue
//! discipline (`txq`).

use super::{Dcf, Effects, Function, Job, Traffic};
use crate::config::QueueLimit;
use crate::link::PacketMeta;
use crate::queue::Waiting;
use crate::queue::admission::{Admission, Arrival, Verdict};
use crate::wifi::category::UserPriority;
use crate::wifi::rules::Rules;
use crate::wifi::station::{Receiver, StationId};
use airtcp_core::{Bytes, Duration, Ecn, Instant};

impl<T: Copy> Dcf<T> {
    pub(crate) fn queue_len(&self) -> usize {
        self.functions().map(Function::queue_len).sum()
    }

    /// Accepts a packet to send, ahead of the waiting ones if it is `urgent` (a discipline knows no
    /// such packets). False if the queue is full, or too small for it.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        rules: &Rules,
        to: Receiver,
        (packet, meta): (T, PacketMeta),
        urgent: bool,
        out: &mut Effects<T>,
    ) -> bool {
        if !rules.has_categories {
            let to = (to, UserPriority::DEFAULT);
            return self.send_by_function(now, rules, to, (packet, meta), urgent, out);
        }
        let priority = UserPriority::of(meta.dscp);
        self.as_function(now, priority.category(), |dcf| {
            dcf.send_by_function(now, rules, (to, priority), (packet, meta), urgent, out)
        })
    }

    #[inline]
    fn send_by_function(
        &mut self,
        now: Instant,
        rules: &Rules,
        to: (Receiver, UserPriority),
        (packet, meta): (T, PacketMeta),
        urgent: bool,
        out: &mut Effects<T>,
    ) -> bool {
        if self.traffic.function.transmit_queues.is_some() {
            return self.send_by_discipline(now, rules, to, (packet, meta), out);
        }
        let packet_size = meta.size;
        // Waiting packets make room for an urgent one.
        let room = if urgent {
            (0, Bytes::ZERO)
        } else {
            (self.traffic.function.queue.len(), self.traffic.function.queue_bytes)
        };
        let arrival = Arrival {
            size: packet_size,
            ecn: Ecn::NotEct,
            packets: room.0,
            bytes: room.1,
            idle: self.traffic.function.current.is_none().then_some(Duration::ZERO),
        };
        if !admits(rules.mac.queue, arrival) {
            self.traffic.counters.queue_drops += 1;
            return false;
        }
        let job = self.job(now, rules, to, packet, packet_size);
        if self.traffic.function.current.is_some() {
            self.traffic.function.queue_bytes += packet_size;
            if urgent {
                self.traffic.function.queue.push_front(job);
            } else {
                self.traffic.function.queue.push_back(job);
            }
            self.traffic.counters.max_queue =
                self.traffic.counters.max_queue.max(self.traffic.function.queue.len() as u64);
        } else {
            self.set_current(Some(job));
            self.first_access(now, rules);
        }
        true
    }

    fn job(
        &mut self,
        now: Instant,
        rules: &Rules,
        (to, priority): (Receiver, UserPriority),
        packet: T,
        packet_size: Bytes,
    ) -> Job<T> {
        let size = packet_size + rules.mac.llc + rules.mac.header;
        let duration = rules.packet_mode(to).duration(size);
        let sequence = self.traffic.next_sequence;
        self.traffic.next_sequence = sequence.wrapping_add(1);
        Job {
            packet,
            to,
            priority,
            packet_size,
            size,
            duration,
            sequence,
            number: 0,
            retry: false,
            attempts: 0,
            delivered: false,
            offered: now,
            waited: Duration::ZERO,
        }
    }

    /// [`Dcf::send`] to a queue with a discipline. A packet that finds the MAC free passes through
    /// it, too.
    fn send_by_discipline(
        &mut self,
        now: Instant,
        rules: &Rules,
        to: (Receiver, UserPriority),
        (packet, meta): (T, PacketMeta),
        out: &mut Effects<T>,
    ) -> bool {
        let job = self.job(now, rules, to, packet, meta.size);
        let free = self.traffic.function.current.is_none();
        let Traffic { function, counters, .. } = &mut *self.traffic;
        let (Some(queues), Some(config)) =
            (function.transmit_queues.as_deref_mut(), &rules.mac.queue_discipline)
        else {
            return false;
        };
        let packet = Waiting::new(now, job, meta);
        let accepted = queues.enqueue(config, packet, counters, out);
        if free {
            let next = self.take_from_queue(now, out);
            self.set_current(next);
            if self.has_packet {
                self.first_access(now, rules);
            }
        }
        let waiting = self.traffic.function.queue_len() as u64;
        let most = &mut self.traffic.counters.max_queue;
        *most = waiting.max(*most);
        accepted
    }

    /// The packet that the MAC sends next.
    pub(crate) fn take_from_queue(&mut self, now: Instant, out: &mut Effects<T>) -> Option<Job<T>> {
        let Traffic { function, counters, .. } = &mut *self.traffic;
        if let Some(queues) = function.transmit_queues.as_deref_mut() {
            return queues.take(now, counters, out);
        }
        let mut job = function.queue.pop_front()?;
        function.queue_bytes -= job.packet_size;
        job.waited = now.since(job.offered);
        Some(job)
    }

    /// Takes out the last waiting packet of a queue that exceeds its limit.
    pub(crate) fn overflow(&mut self, rules: &Rules) -> Option<T> {
        let limit = rules.mac.queue;
        let function = self.functions_mut().find(|function| function.overflows(limit))?;
        let job = function.queue.pop_back()?;
        function.queue_bytes -= job.packet_size;
        self.traffic.counters.queue_drops += 1;
        Some(job.packet)
    }

    /// Takes the packets for a station out of the queue, in order. One in the MAC stays.
    pub(crate) fn take_back(&mut self, to: StationId, taken: &mut Vec<T>) {
        for Function { queue, queue_bytes, .. } in self.functions_mut() {
            queue.retain(|job| {
                let take = job.to == Receiver::Station(to);
                if take {
                    taken.push(job.packet);
                    *queue_bytes -= job.packet_size;
                }
                !take
            });
        }
    }

    /// A frame to or from a station takes so much time: if airtime decides whose turn it is, the queue
    /// of its packets pays.
    #[inline]
    pub(super) fn charge_airtime(
        &mut self,
        now: Instant,
        rules: &Rules,
        (with, priority): (Receiver, UserPriority),
        airtime: Duration,
    ) {
        if rules.mac.queue_discipline.is_some()
            && let Some(queues) = self.function_of(priority).transmit_queues.as_deref_mut()
        {
            queues.charge(now, (with, priority), airtime);
        }
    }

    /// Takes a packet out of the middle of a drop-tail queue.
    pub(crate) fn take_from_middle(&mut self, now: Instant, place: usize) -> Option<Job<T>> {
        let mut job = self.traffic.function.queue.remove(place)?;
        self.traffic.function.queue_bytes -= job.packet_size;
        job.waited = now.since(job.offered);
        Some(job)
    }
}

impl<T: Copy> Function<T> {
    fn queue_len(&self) -> usize {
        match &self.transmit_queues {
            None => self.queue.len(),
            Some(queues) => queues.len(),
        }
    }

    fn overflows(&self, limit: QueueLimit) -> bool {
        match limit {
            QueueLimit::Packets(limit) => self.queue.len() as u64 > limit,
            QueueLimit::Bytes(limit) => self.queue_bytes > limit,
        }
    }
}

fn admits(limit: QueueLimit, arrival: Arrival) -> bool {
    Admission::DropTail(limit).judge(arrival, || Duration::ZERO) == Verdict::Enter
}
