//! Dual-queue coupled AQM with a PI controller, Improved with a Square.
//!
//! Read first: RFC 9332 §2 (the idea) and appendix A (DualPI2). Scheduler, step and default values
//! are those of Linux's `sch_dualpi2`, which decides at random where the RFC's appendix counts.
//!
//! Packets of L4S senders (ECT(1), and CE) have a queue of their own. A PI controller keeps a base
//! probability p'. Classic packets are dropped or marked with its square, L4S packets marked with
//! k p', or whenever they have waited longer than `step-threshold`. So flows of both kinds get
//! about the same rate, and L4S packets hardly wait.

use super::fifo::Fifo;
use super::{Discipline, LargestPacket, Server, Waiting};
use airtcp_core::{Duration, Ecn, Instant, Stream};
use airtcp_settings::schema::{Kind, POSITIVE_TIME};
use airtcp_settings::settings;

settings! {
    /// Dual-queue coupled AQM.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DualPi2Config {
        /// Hard limit of both queues together, not counting the packet in service.
        #[kind = Kind::WholePackets]
        #[source = "Linux sch_dualpi2"]
        pub limit: u64 = 10_000,
        /// The queue delay that the classic queue should have.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 9332 §A.1"]
        pub target: Duration = Duration::from_millis(15),
        /// Time from one update of the base probability to the next.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 9332 §A.1"]
        pub t_update: Duration = Duration::from_millis(16),
        /// Change of the base probability for each second that the delay is off the target.
        #[kind = GAIN]
        #[source = "RFC 9332 §A.1"]
        pub alpha: f64 = 0.16,
        /// Change of the base probability for each second by which the delay has changed.
        #[kind = GAIN]
        #[source = "Linux sch_dualpi2"]
        pub beta: f64 = 3.2,
        /// Coupling factor k: L4S packets are marked with k times the base probability.
        #[kind = Kind::Number { min: 0.0, max: 255.0, above: true }]
        #[source = "RFC 9332 §2.1"]
        pub coupling: f64 = 2.0,
        /// L4S packets that have waited longer are marked.
        #[source = "RFC 9332 §A.1, Linux sch_dualpi2"]
        pub step_threshold: Duration = Duration::from_millis(1),
        /// The classic queue's share of the link, in percent, while both have packets.
        #[kind = Kind::Integer { min: 0, max: 100 }]
        #[source = "Linux sch_dualpi2"]
        pub classic_weight: u64 = 10,
        /// Under overload (k p' above 1) drop capable packets, too; `false` marks them all and
        /// leaves drops to the limit.
        #[source = "RFC 9332 §A.2"]
        pub drop_overload: bool = true,
    }
}

const GAIN: Kind = Kind::Number { min: 0.0, max: 1000.0, above: true };

/// The two queues.
#[derive(Clone, Debug)]
pub(crate) struct DualPi2<T> {
    config: DualPi2Config,
    l4s: Fifo<T>,
    classic: Fifo<T>,
    largest: LargestPacket,
    /// The base probability p'.
    base: f64,
    /// The delay at the latest update.
    previous: Duration,
    next_update: Instant,
    /// In weighted bytes: above zero it is the classic queue's turn.
    credit: i64,
    stream: Stream,
}

/// The coupled AQM's verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Serve,
    Mark,
    Drop,
}

impl<T> DualPi2<T> {
    pub(crate) fn new(config: &DualPi2Config, stream: Stream) -> Self {
        Self {
            next_update: Instant::ZERO + config.t_update,
            config: config.clone(),
            l4s: Fifo::default(),
            classic: Fifo::default(),
            largest: LargestPacket::default(),
            base: 0.0,
            previous: Duration::ZERO,
            credit: 0,
            stream,
        }
    }

    /// Makes up for the updates due.
    fn catch_up(&mut self, now: Instant) {
        while self.next_update <= now {
            if self.base == 0.0 && self.previous.is_zero() && self.len() == 0 {
                // Nothing changes any more.
                let step = self.config.t_update;
                let missed = now.since(self.next_update).as_nanos() / step.as_nanos();
                self.next_update += step * missed;
            }
            self.update(self.next_update);
            self.next_update += self.config.t_update;
        }
    }

    /// RFC 9332 §A.1, `dualpi2_update`, with the longer of the two delays.
    fn update(&mut self, now: Instant) {
        let DualPi2Config { target, alpha, beta, coupling, drop_overload, .. } = self.config;
        let delay = self.classic.delay(now).max(self.l4s.delay(now));
        let error = delay.as_secs_f64() - target.as_secs_f64();
        let trend = delay.as_secs_f64() - self.previous.as_secs_f64();
        let most = if drop_overload { 1.0 } else { (1.0 / coupling).min(1.0) };
        self.base = (self.base + alpha * error + beta * trend).clamp(0.0, most);
        self.previous = delay;
    }

    /// The probability that L4S packets are marked, as far as the queues are coupled: k p'.
    fn coupled(&self) -> f64 {
        self.config.coupling * self.base
    }

    /// True with the probability of a classic drop: p'^2.
    fn squared_chance(&mut self) -> bool {
        self.stream.chance(self.base) && self.stream.chance(self.base)
    }

    /// A classic packet (RFC 9332 §2.1).
    fn classic_fate(&mut self, ecn: Ecn) -> Fate {
        let overload = self.coupled() > 1.0;
        if !self.squared_chance() {
            Fate::Serve
        } else if overload || !ecn.is_capable() {
            Fate::Drop
        } else {
            Fate::Mark
        }
    }

    /// An L4S packet (RFC 9332 §2.1), which has waited so long.
    fn l4s_fate(&mut self, waited: Duration) -> Fate {
        let coupled = self.coupled();
        if coupled > 1.0 {
            let drops = self.config.drop_overload && self.squared_chance();
            return if drops { Fate::Drop } else { Fate::Mark };
        }
        let marks = self.stream.chance(coupled) || waited > self.config.step_threshold;
        if marks { Fate::Mark } else { Fate::Serve }
    }

    /// Takes the next packet of the queue whose turn it is. Also returns whether it is L4S, and how
    /// its service changes the credit.
    fn schedule(&mut self) -> Option<(Waiting<T>, bool, i64)> {
        let weight = self.config.classic_weight as i64;
        let size = |packet: &Waiting<T>| packet.meta.size.get() as i64;
        if !self.l4s.is_empty() && (self.classic.is_empty() || self.credit <= 0) {
            let packet = self.l4s.pop()?;
            let change = if self.classic.is_empty() { 0 } else { weight * size(&packet) };
            Some((packet, true, change))
        } else if let Some(packet) = self.classic.pop() {
            let change = if self.l4s.is_empty() { 0 } else { (weight - 100) * size(&packet) };
            Some((packet, false, change))
        } else {
            // The queue with the larger weight starts.
            self.credit = (2 * weight - 100) * self.largest.get().get() as i64;
            None
        }
    }
}

impl<T> Discipline<T> for DualPi2<T> {
    fn enqueue(
        &mut self,
        packet: Waiting<T>,
        _: Server,
        _: &mut Vec<Waiting<T>>,
    ) -> Result<(), Waiting<T>> {
        self.catch_up(packet.arrived);
        if self.len() as u64 >= self.config.limit {
            return Err(packet);
        }
        self.largest.note(packet.meta.size);
        // RFC 9331 §5.1.
        match packet.meta.ecn {
            Ecn::Ect1 | Ecn::Ce => self.l4s.push(packet),
            Ecn::NotEct | Ecn::Ect0 => self.classic.push(packet),
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Waiting<T>>) -> Option<Waiting<T>> {
        self.catch_up(now);
        while let Some((mut packet, l4s, change)) = self.schedule() {
            let fate = match l4s {
                true => self.l4s_fate(packet.sojourn(now)),
                false => self.classic_fate(packet.meta.ecn),
            };
            match fate {
                Fate::Drop => {
                    dropped.push(packet);
                    continue;
                }
                Fate::Mark => _ = packet.mark(),
                Fate::Serve => {}
            }
            self.credit += change;
            return Some(packet);
        }
        None
    }

    fn take(&mut self) -> Option<Waiting<T>> {
        let (packet, _, change) = self.schedule()?;
        self.credit += change;
        Some(packet)
    }

    fn len(&self) -> usize {
        self.l4s.len() + self.classic.len()
    }

    fn holds(&self, flow: u32) -> bool {
        self.l4s.holds(flow) || self.classic.holds(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_base(base: f64, drop_overload: bool) -> DualPi2<u32> {
        let config = DualPi2Config { drop_overload, ..DualPi2Config::default() };
        let mut queue = DualPi2::new(&config, Stream::new(1, "link/test/red"));
        queue.base = base;
        queue
    }

    fn share(n: u32, mut fate: impl FnMut() -> Fate, of: Fate) -> f64 {
        f64::from((0..n).filter(|_| fate() == of).count() as u32) / f64::from(n)
    }

    #[test]
    fn l4s_packets_are_marked_with_k_p_and_classic_ones_dropped_with_its_square() {
        // RFC 9332 §2.1: p_CL = k p', p_C = p'^2. 4 standard errors of 100,000 draws.
        let mut queue = with_base(0.2, true);
        assert_eq!(queue.coupled(), 0.4);
        let marked = share(100_000, || queue.l4s_fate(Duration::ZERO), Fate::Mark);
        assert!((marked - 0.4).abs() < 0.0062, "{marked}");
        let dropped = share(100_000, || queue.classic_fate(Ecn::NotEct), Fate::Drop);
        assert!((dropped - 0.04).abs() < 0.0025, "{dropped}");
        let marked = share(100_000, || queue.classic_fate(Ecn::Ect0), Fate::Mark);
        assert!((marked - 0.04).abs() < 0.0025, "{marked}");
    }

    #[test]
    fn under_overload_both_kinds_are_dropped_with_the_square() {
        // RFC 9332 §A.2: k p' is above 1.
        let mut queue = with_base(0.6, true);
        let dropped = share(100_000, || queue.l4s_fate(Duration::ZERO), Fate::Drop);
        assert!((dropped - 0.36).abs() < 0.0061, "{dropped}");
        let dropped = share(100_000, || queue.classic_fate(Ecn::Ect0), Fate::Drop);
        assert!((dropped - 0.36).abs() < 0.0061, "{dropped}");
        let mut queue = with_base(0.6, false);
        assert_eq!(share(1000, || queue.l4s_fate(Duration::ZERO), Fate::Mark), 1.0);
    }

    #[test]
    fn the_base_probability_follows_the_longer_delay() {
        // RFC 9332 §A.1: p' += alpha (delay - target) + beta (delay - previous).
        let mut queue = with_base(0.1, true);
        queue.previous = Duration::from_millis(20);
        let meta = crate::PacketMeta::new(airtcp_core::Bytes(1000), true);
        queue.classic.push(Waiting::new(Instant::ZERO, 0, meta));
        queue.update(Instant::from_millis(30));
        assert!((queue.base - 0.1 - 0.16 * 0.015 - 3.2 * 0.010).abs() < 1e-12);
    }
}
