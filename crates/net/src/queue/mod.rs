//! Queues in front of a link's server or a station's MAC, one file per discipline.
//!
//! Read first: [`fifo`] (the list under all of them), then any discipline: [`admission`]
//! (drop-tail), [`red`], [`codel`], [`fq_codel`], [`pie`], [`dualpi2`].
//!
//! Drop-tail and RED decide when a packet arrives, and keep the order of arrival. So a link whose
//! outages are known beforehand computes a packet's times on its arrival and needs no queue; it
//! only asks [`Admission`]. Everything else uses [`Queue`]: a packet is put in when it arrives,
//! and the server takes one out when it becomes free. A discipline may then drop packets, mark
//! them, or choose another flow's.
//!
//! Disciplines with a periodic update (PIE, DualPI2) need no timer: nothing happens in a queue
//! between calls, so the updates due since the latest call are made up for by the next one.

pub(crate) mod admission;
pub mod codel;
pub mod dualpi2;
pub(crate) mod fifo;
pub mod flow;
pub mod fq_codel;
pub mod pie;
pub mod red;

use crate::config::QueueConfig;
use crate::link::PacketMeta;
use admission::{Admission, Admitted};
use airtcp_core::{Bytes, Duration, Ecn, Instant, Stream};
use codel::Codel;
use dualpi2::DualPi2;
use fq_codel::FqCodel;
use pie::Pie;

/// A packet in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<T> {
    pub(crate) item: T,
    pub(crate) meta: PacketMeta,
    /// Time at which it was offered.
    pub(crate) arrived: Instant,
    /// The discipline marked it.
    pub(crate) marked: bool,
}

impl<T> Waiting<T> {
    pub(crate) fn new(now: Instant, item: T, meta: PacketMeta) -> Self {
        Self { item, meta, arrived: now, marked: false }
    }

    /// Marks the packet (RFC 3168 §5). False if its sender does not take part: it can only be
    /// dropped.
    pub(crate) fn mark(&mut self) -> bool {
        let capable = self.meta.ecn.is_capable();
        if capable {
            self.meta.ecn = Ecn::Ce;
            self.marked = true;
        }
        capable
    }

    /// Time for which it has waited.
    pub(crate) fn sojourn(&self, now: Instant) -> Duration {
        now.since(self.arrived)
    }
}

/// State of the server when a packet arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Server {
    /// Time for which it has been idle; `None` if it is busy or packets are waiting.
    pub(crate) idle: Option<Duration>,
    /// Its mean transmission time of a packet.
    pub(crate) transmission: Duration,
}

/// A queue discipline. Calls must not go back in time.
pub(crate) trait Discipline<T> {
    /// Takes a packet, or hands it back. Packets that go in its stead are added to `dropped`.
    fn enqueue(
        &mut self,
        packet: Waiting<T>,
        server: Server,
        dropped: &mut Vec<Waiting<T>>,
    ) -> Result<(), Waiting<T>>;

    /// The packet to serve at `now`; `None` if none is left. Those that the discipline drops
    /// before it are added to `dropped`.
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Waiting<T>>) -> Option<Waiting<T>>;

    /// Takes out the packet whose turn it is, without a decision about it: it goes on elsewhere.
    fn take(&mut self) -> Option<Waiting<T>>;

    /// Number of packets waiting.
    fn len(&self) -> usize;

    /// True if a packet of this flow is waiting.
    fn holds(&self, flow: u32) -> bool;
}

/// A queue of one of the disciplines.
#[derive(Clone, Debug)]
pub(crate) enum Queue<T> {
    Admitted(Admitted<T>),
    Codel(Box<Codel<T>>),
    FqCodel(Box<FqCodel<T>>),
    Pie(Box<Pie<T>>),
    DualPi2(Box<DualPi2<T>>),
}

impl<T> Queue<T> {
    /// An empty queue; `stream` is for the discipline's random choices.
    pub(crate) fn new(config: &QueueConfig, stream: Stream) -> Self {
        match config {
            QueueConfig::DropTail { .. } | QueueConfig::Red(_) => {
                Self::Admitted(Admitted::new(Admission::new(config, stream)))
            }
            QueueConfig::Codel(config) => Self::Codel(Box::new(Codel::new(config))),
            QueueConfig::FqCodel(config) => Self::FqCodel(Box::new(FqCodel::new(config, stream))),
            QueueConfig::Pie(config) => Self::Pie(Box::new(Pie::new(config, stream))),
            QueueConfig::DualPi2(config) => Self::DualPi2(Box::new(DualPi2::new(config, stream))),
        }
    }

    fn discipline(&self) -> &dyn Discipline<T> {
        match self {
            Self::Admitted(queue) => queue,
            Self::Codel(queue) => &**queue,
            Self::FqCodel(queue) => &**queue,
            Self::Pie(queue) => &**queue,
            Self::DualPi2(queue) => &**queue,
        }
    }

    fn discipline_mut(&mut self) -> &mut dyn Discipline<T> {
        match self {
            Self::Admitted(queue) => queue,
            Self::Codel(queue) => &mut **queue,
            Self::FqCodel(queue) => &mut **queue,
            Self::Pie(queue) => &mut **queue,
            Self::DualPi2(queue) => &mut **queue,
        }
    }

    /// Queues a packet ([`Discipline::enqueue`]).
    pub(crate) fn enqueue(
        &mut self,
        packet: Waiting<T>,
        server: Server,
        dropped: &mut Vec<Waiting<T>>,
    ) -> Result<(), Waiting<T>> {
        self.discipline_mut().enqueue(packet, server, dropped)
    }

    /// Takes the next packet out ([`Discipline::dequeue`]).
    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut Vec<Waiting<T>>,
    ) -> Option<Waiting<T>> {
        self.discipline_mut().dequeue(now, dropped)
    }

    /// Takes the next packet out as it is ([`Discipline::take`]).
    pub(crate) fn take(&mut self) -> Option<Waiting<T>> {
        self.discipline_mut().take()
    }

    /// Number of packets waiting.
    pub(crate) fn len(&self) -> usize {
        self.discipline().len()
    }

    /// True if a packet of this flow is waiting.
    pub(crate) fn holds(&self, flow: u32) -> bool {
        self.discipline().holds(flow)
    }
}

/// The largest packet so far: the MTU, for disciplines that ask for it where no interface says it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LargestPacket(Bytes);

impl LargestPacket {
    pub(crate) fn note(&mut self, size: Bytes) {
        self.0 = self.0.max(size);
    }

    pub(crate) fn get(self) -> Bytes {
        self.0
    }
}

#[cfg(test)]
mod tests;
