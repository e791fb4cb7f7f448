//! Disciplines that decide on a packet's arrival and keep the order: drop-tail and RED.

use super::fifo::Fifo;
use super::red::Red;
use super::{Discipline, Server, Waiting};
use crate::config::{QueueConfig, QueueLimit};
use airtcp_core::{Bytes, Duration, Ecn, Instant, Stream};

/// A packet that arrives, and the queue that it finds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Size of the packet.
    pub(crate) size: Bytes,
    /// Its ECN field.
    pub(crate) ecn: Ecn,
    /// Packets waiting, not counting the one in service.
    pub(crate) packets: usize,
    /// Bytes waiting, not counting the packet in service.
    pub(crate) bytes: Bytes,
    /// Time for which the server has been idle; `None` if it is busy or packets are waiting.
    pub(crate) idle: Option<Duration>,
}

/// The verdict on a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may enter.
    Enter,
    /// It may enter, marked.
    Mark,
    /// It is dropped.
    Refuse,
}

impl Verdict {
    fn enter_if(admitted: bool) -> Self {
        if admitted { Self::Enter } else { Self::Refuse }
    }
}

/// The decision of such a discipline, and its state.
#[derive(Clone, Debug)]
pub(crate) enum Admission {
    DropTail(QueueLimit),
    Red(Box<Red>),
}

impl Admission {
    /// # Panics
    /// If the discipline is another.
    pub(crate) fn new(config: &QueueConfig, stream: Stream) -> Self {
        match config {
            QueueConfig::DropTail { limit } => Self::DropTail(*limit),
            QueueConfig::Red(config) => Self::Red(Box::new(Red::new(config, stream))),
            other => unreachable!("{} decides when service starts", other.word()),
        }
    }

    /// Decides on a packet. `mean_transmission` returns the mean transmission time of a packet; it
    /// is called only if the discipline needs it.
    #[inline]
    pub(crate) fn judge(
        &mut self,
        arrival: Arrival,
        mean_transmission: impl FnOnce() -> Duration,
    ) -> Verdict {
        match self {
            // A packet that finds the server free does not enter the queue.
            Self::DropTail(_) if arrival.idle.is_some() => Verdict::Enter,
            Self::DropTail(QueueLimit::Packets(limit)) => {
                Verdict::enter_if((arrival.packets as u64) < *limit)
            }
            Self::DropTail(QueueLimit::Bytes(limit)) => {
                Verdict::enter_if(arrival.bytes + arrival.size <= *limit)
            }
            Self::Red(red) => red.judge(arrival, mean_transmission),
        }
    }
}

/// Such a discipline with the packets.
#[derive(Clone, Debug)]
pub(crate) struct Admitted<T> {
    admission: Admission,
    fifo: Fifo<T>,
}

impl<T> Admitted<T> {
    pub(crate) fn new(admission: Admission) -> Self {
        Self { admission, fifo: Fifo::default() }
    }
}

impl<T> Discipline<T> for Admitted<T> {
    fn enqueue(
        &mut self,
        mut packet: Waiting<T>,
        server: Server,
        _: &mut Vec<Waiting<T>>,
    ) -> Result<(), Waiting<T>> {
        let arrival = Arrival {
            size: packet.meta.size,
            ecn: packet.meta.ecn,
            packets: self.fifo.len(),
            bytes: self.fifo.bytes(),
            idle: server.idle,
        };
        match self.admission.judge(arrival, || server.transmission) {
            Verdict::Refuse => return Err(packet),
            Verdict::Mark => _ = packet.mark(),
            Verdict::Enter => {}
        }
        self.fifo.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, _: Instant, _: &mut Vec<Waiting<T>>) -> Option<Waiting<T>> {
        self.fifo.pop()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(packets: usize) -> Arrival {
        let bytes = Bytes(packets as u64 * 1000);
        Arrival { size: Bytes(1000), ecn: Ecn::NotEct, packets, bytes, idle: None }
    }

    fn idle(idle: Duration) -> Arrival {
        Arrival { idle: Some(idle), ..busy(0) }
    }

    fn admits(queue: &mut Admission, arrival: Arrival) -> bool {
        queue.judge(arrival, || unreachable!("drop-tail asks for no time")) == Verdict::Enter
    }

    #[test]
    fn drop_tail_counts_the_waiting_packets() {
        let config = QueueConfig::DropTail { limit: QueueLimit::Packets(2) };
        let mut queue = Admission::new(&config, Stream::new(1, "x"));
        assert!(admits(&mut queue, busy(1)));
        assert!(!admits(&mut queue, busy(2)));
        assert!(admits(&mut queue, idle(Duration::ZERO)));
    }

    #[test]
    fn drop_tail_in_bytes_takes_what_fits() {
        let config = QueueConfig::DropTail { limit: QueueLimit::Bytes(Bytes(2500)) };
        let mut queue = Admission::new(&config, Stream::new(1, "x"));
        assert!(admits(&mut queue, busy(1)));
        assert!(!admits(&mut queue, busy(2)));
        assert!(admits(&mut queue, Arrival { size: Bytes(500), ..busy(2) }));
    }
}
