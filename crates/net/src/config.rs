//! What a link is made of. All values are validated by their constructors or by the scenario parser; the
//! models themselves never fail.

use airtcp_core::{Bytes, DataRate, Duration, Instant};

/// A unidirectional link: a queue, a server with a rate, a propagation delay, losses and outages.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Serialisation rate.
    pub rate: DataRate,
    /// Propagation delay.
    pub delay: DelayConfig,
    /// Losses.
    pub loss: LossConfig,
    /// Where they happen.
    pub loss_place: LossPlace,
    /// When the link itself is down, and what happens to packets then.
    pub outage: Option<OutageConfig>,
    /// The queue in front of the server.
    pub queue: QueueConfig,
}

/// One-way propagation delay.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayConfig {
    /// Constant delay; also in force before `variation` starts.
    pub base: Duration,
    /// From when on the delay of each packet is drawn instead.
    pub variation: Option<Variation>,
}

/// Random per-packet delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// Start of the variation.
    pub from: Instant,
    /// The whole one-way delay, not an addition to the base.
    pub distribution: Distribution,
    /// Keep packets in order (a packet never arrives before its predecessor) or let them overtake.
    pub fifo: bool,
}

/// A distribution of durations.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Constant(Duration),
    /// Uniform in [low, high).
    Uniform {
        /// Lower end.
        low: Duration,
        /// Upper end.
        high: Duration,
    },
    /// Normal; a negative draw counts as zero.
    Normal {
        /// Mean.
        mean: Duration,
        /// Standard deviation.
        deviation: Duration,
    },
    /// `offset` plus an exponential with mean `mean`.
    Exponential {
        /// Smallest value.
        offset: Duration,
        /// Mean of the exponential part.
        mean: Duration,
    },
    /// One of several, with the given weights (positive; they need not sum to one).
    Mixture(Vec<(f64, Distribution)>),
}

/// Loss on the link.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossConfig {
    /// None.
    #[default]
    None,
    /// Each packet independently with probability `p`.
    Bernoulli {
        /// Loss probability.
        p: f64,
    },
    /// Two-state Markov chain (Gilbert 1960, Elliott 1963), good at the start; each packet meets the
    /// present state, then the chain takes a step.
    GilbertElliott {
        /// P(good → bad).
        good_to_bad: f64,
        /// P(bad → good).
        bad_to_good: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
    /// Exactly these packets: 0-based ordinals among the data-carrying packets sent over the link
    /// (a retransmission counts as a further packet).
    List(Vec<u64>),
}

/// Where a loss model sits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPlace {
    /// On the medium: a lost packet has used its transmission time.
    #[default]
    Medium,
    /// In front of the queue: a lost packet uses nothing (ns-2 `lossmodel`).
    BeforeQueue,
}

/// When a link (or a mobile's IP layer) is down.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// Half-open intervals [start, end), ascending and disjoint.
    Listed(Vec<(Instant, Instant)>),
    /// Down while `start <= (now - origin) mod period < end`, for `now >= origin` (M-TCP §3.3:
    /// BrokenStartTime, BrokenEndTime, CycleTime).
    Periodic {
        /// The clock the cycle is anchored to.
        origin: Instant,
        /// Cycle time.
        period: Duration,
        /// Start of the outage within the cycle.
        start: Duration,
        /// End of the outage within the cycle, at most `period`.
        end: Duration,
    },
}

/// An outage of the link itself.
#[derive(Clone, Debug, PartialEq)]
pub struct OutageConfig {
    /// When.
    pub schedule: Schedule,
    /// What happens to packets.
    pub mode: OutageMode,
}

/// What an outage does to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutageMode {
    /// A packet whose serialisation overlaps the outage is lost; the queue drains into nothing.
    #[default]
    Drop,
    /// The server pauses: a packet due to start during the outage waits in the queue and starts at its
    /// end, followed by the others back to back (a delay spike; Packet Control scenario III).
    Hold,
}

/// Queue discipline.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueConfig {
    /// First in, first out; arrivals to a full queue are dropped.
    DropTail {
        /// Capacity, the packet in service not counted. (ns-2 does not count it either, but its
        /// `limit_` of L holds L - 1 waiting packets.)
        limit: QueueLimit,
    },
    /// Random Early Detection (Floyd, Jacobson 1993), by packets, dropping. The packet in service is not
    /// counted.
    Red {
        /// Minimum threshold of the average queue, packets.
        min_threshold: f64,
        /// Maximum threshold, packets.
        max_threshold: f64,
        /// Drop probability at the maximum threshold.
        max_p: f64,
        /// Weight of the moving average.
        weight: f64,
        /// Gentle: rise to 1 between max and twice max threshold instead of a jump.
        gentle: bool,
        /// Hard limit, packets.
        limit: u64,
    },
}

/// Size of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Packets.
    Packets(u64),
    /// Bytes.
    Bytes(Bytes),
}
