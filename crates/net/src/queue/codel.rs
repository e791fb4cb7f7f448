//! Controlled Delay.
//!
//! Read first: RFC 8289 §4 (the idea) and §5 (the pseudocode, whose names are used here).
//!
//! A queue whose packets have all waited longer than `target` for an `interval` is a standing
//! queue. Then a packet is dropped as its turn comes, and others after ever shorter times, until
//! the delay is below the target. With `ecn` the packet is marked instead and served. [`Control`]
//! is the state machine alone: FQ-CoDel has one for each of its queues.

use super::fifo::Fifo;
use super::{Discipline, LargestPacket, Server, Waiting};
use airtcp_core::{Bytes, Duration, Ecn, Instant};
use airtcp_settings::schema::{Kind, POSITIVE_TIME};
use airtcp_settings::{choice, settings};

settings! {
    /// CoDel, Controlled Delay (RFC 8289).
    #[derive(Clone, Debug, PartialEq)]
    pub struct CodelConfig {
        /// Hard limit, not counting the packet in service.
        #[kind = Kind::WholePackets]
        #[source = "Linux sch_codel"]
        pub limit: u64 = 1000,
        /// The queue delay that may stand.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 8289 §4.4"]
        pub target: Duration = Duration::from_millis(5),
        /// Time for which the delay must have been above the target before the first drop: about
        /// the longest round-trip time of the flows.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 8289 §4.3"]
        pub interval: Duration = Duration::from_millis(100),
        /// Mark packets of ECN-capable senders instead of dropping them.
        #[source = "RFC 8289 §5.4"]
        pub ecn: bool = false,
        /// Mark every packet of an ECN-capable sender that waited longer than this, for DCTCP and
        /// the like.
        #[absent = "never"]
        #[source = "Linux sch_codel"]
        pub ce_threshold: Option<Duration> = None,
    }
}

choice! {
    /// Whose packets a CE threshold marks.
    pub enum CeThresholdFor {
        /// all ECN-capable senders'
        EcnCapable = "ecn-capable",
        /// L4S senders' alone, with ECT(1) (RFC 9331)
        L4s = "l4s",
    }
}

/// The settings of a control law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) target: Duration,
    pub(crate) interval: Duration,
    pub(crate) ecn: bool,
    pub(crate) ce_threshold: Option<(Duration, CeThresholdFor)>,
}

/// The state of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    /// Time at which the delay will have been above the target for an interval; `None` while it is
    /// below.
    first_above_time: Option<Instant>,
    /// Time of the next drop.
    drop_next: Instant,
    /// Packets dropped or marked since the queue began to drop.
    count: u32,
    /// `count` at the beginning of the latest dropping state.
    last_count: u32,
    inverse_root: InverseRoot,
    dropping: bool,
}

/// The inverse square root of a count, as Linux has it (`codel_Newton_step`): by one step of
/// Newton's method each time the count changes, in 16 bits. RFC 8289 §5.4 takes the root itself;
/// here the second interval is 0.5 of the first instead of 0.71, and from the third on they are up
/// to 2.6 % shorter.
#[derive(Clone, Copy, Debug, Default)]
struct InverseRoot(u16);

impl InverseRoot {
    const ONE: Self = Self(u16::MAX);

    /// A step towards the root of `count`: x (3 - count x²) / 2.
    fn approach(self, count: u32) -> Self {
        let x = u64::from(self.0) << 16;
        let square = (x * x) >> 32;
        let rest = (3_u64 << 32).wrapping_sub(u64::from(count).wrapping_mul(square)) >> 2;
        Self((rest.wrapping_mul(x) >> (32 - 2 + 1) >> 16) as u16)
    }

    fn of(self, interval: Duration) -> Duration {
        let product = u128::from(interval.as_nanos()) * (u128::from(self.0) << 16);
        Duration::from_nanos((product >> 32) as u64)
    }
}

impl Control {
    /// The next packet to serve, or mark and serve. `pop` takes the first one out of the queue and
    /// says how many bytes are left; `mtu` is the largest packet.
    pub(crate) fn dequeue<T>(
        &mut self,
        now: Instant,
        rules: &Rules,
        mtu: Bytes,
        mut pop: impl FnMut() -> Option<(Waiting<T>, Bytes)>,
        dropped: &mut Vec<Waiting<T>>,
    ) -> Option<Waiting<T>> {
        let mut next = |control: &mut Self| {
            let popped = pop();
            let above = control.stands(now, rules, mtu, popped.as_ref());
            (popped.map(|(packet, _)| packet), above)
        };
        let (mut packet, mut above) = next(self);
        if self.dropping {
            self.dropping = above;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                self.inverse_root = self.inverse_root.approach(self.count);
                let marked = rules.ecn && packet.as_mut().is_some_and(Waiting::mark);
                if !marked {
                    dropped.extend(packet);
                    (packet, above) = next(self);
                    self.dropping = above;
                }
                if self.dropping {
                    self.drop_next += self.inverse_root.of(rules.interval);
                }
                if marked {
                    break;
                }
            }
        } else if above {
            let marked = rules.ecn && packet.as_mut().is_some_and(Waiting::mark);
            if !marked {
                dropped.extend(packet);
                (packet, _) = next(self);
            }
            self.start_dropping(now, rules.interval);
        }
        if let (Some(packet), Some((threshold, whose))) = (&mut packet, rules.ce_threshold)
            && packet.sojourn(now) > threshold
            && (whose == CeThresholdFor::EcnCapable || packet.meta.ecn == Ecn::Ect1)
        {
            packet.mark();
        }
        packet
    }

    /// True if the queue has stood for an interval (§5.6, `ok_to_drop`).
    fn stands<T>(
        &mut self,
        now: Instant,
        rules: &Rules,
        mtu: Bytes,
        popped: Option<&(Waiting<T>, Bytes)>,
    ) -> bool {
        let short = |(packet, left): &(Waiting<T>, Bytes)| {
            packet.sojourn(now) < rules.target || *left <= mtu
        };
        if popped.is_none_or(short) {
            self.first_above_time = None;
            return false;
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now + rules.interval);
                false
            }
            Some(at) => now >= at,
        }
    }

    /// §5.5: a queue that dropped until recently goes on at nearly the rate that controlled it.
    fn start_dropping(&mut self, now: Instant, interval: Duration) {
        let delta = self.count.saturating_sub(self.last_count);
        let recently = now.since(self.drop_next) < interval * 16;
        (self.count, self.inverse_root) = match delta > 1 && recently {
            true => (delta, self.inverse_root.approach(delta)),
            false => (1, InverseRoot::ONE),
        };
        self.last_count = self.count;
        self.drop_next = now + self.inverse_root.of(interval);
        self.dropping = true;
    }

    /// Packets were dropped elsewhere: the next signals come sooner.
    pub(crate) fn count_drops(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }
}

/// One queue under CoDel.
#[derive(Clone, Debug)]
pub(crate) struct Codel<T> {
    rules: Rules,
    limit: u64,
    control: Control,
    fifo: Fifo<T>,
    largest: LargestPacket,
}

impl<T> Codel<T> {
    pub(crate) fn new(config: &CodelConfig) -> Self {
        let CodelConfig { limit, target, interval, ecn, ce_threshold } = *config;
        Self {
            rules: Rules {
                target,
                interval,
                ecn,
                ce_threshold: ce_threshold.map(|at| (at, CeThresholdFor::EcnCapable)),
            },
            limit,
            control: Control::default(),
            fifo: Fifo::default(),
            largest: LargestPacket::default(),
        }
    }
}

impl<T> Discipline<T> for Codel<T> {
    fn enqueue(
        &mut self,
        packet: Waiting<T>,
        _: Server,
        _: &mut Vec<Waiting<T>>,
    ) -> Result<(), Waiting<T>> {
        if self.fifo.len() as u64 >= self.limit {
            return Err(packet);
        }
        self.largest.note(packet.meta.size);
        self.fifo.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Waiting<T>>) -> Option<Waiting<T>> {
        let Self { rules, control, fifo, largest, .. } = self;
        let pop = || fifo.pop().map(|packet| (packet, fifo.bytes()));
        control.dequeue(now, rules, largest.get(), pop, dropped)
    }

    fn take(&mut self) -> Option<Waiting<T>> {
        self.fifo.pop()
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }

    fn holds(&self, flow: u32) -> bool {
        self.fifo.holds(flow)
    }
}
