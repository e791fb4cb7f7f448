//! FlowQueue-CoDel.
//!
//! Read first: RFC 8290 §4 (flow queues and the two lists) and `codel.rs`. Where the RFC leaves a
//! choice, this does what Linux does: a full queue loses packets from the head of the longest flow
//! queue, and CoDel looks at the backlog of all queues together.

use super::codel::{CeThresholdFor, Control, Rules};
use super::fifo::Fifo;
use super::flow::mix;
use super::{Discipline, LargestPacket, Server, Waiting};
use airtcp_core::{Bytes, Duration, Instant, Stream};
use airtcp_settings::schema::{Kind, POSITIVE_TIME};
use airtcp_settings::{Reader, settings};
use std::collections::VecDeque;

settings! {
    /// FlowQueue-CoDel (RFC 8290).
    #[derive(Clone, Debug, PartialEq)]
    #[check(a_threshold_for_whom)]
    pub struct FqCodelConfig {
        /// Hard limit of all queues together, not counting the packet in service.
        #[kind = Kind::WholePackets]
        #[source = "RFC 8290 §5.2.3"]
        pub limit: u64 = 10_240,
        /// Most bytes in all queues together, likewise.
        #[kind = Kind::Size { min: 1, max: u64::MAX }]
        #[source = "Linux sch_fq_codel"]
        pub memory_limit: Bytes = Bytes(32_000_000),
        /// Queues into which flows are hashed.
        #[kind = Kind::Integer { min: 1, max: 65_536 }]
        #[source = "RFC 8290 §5.2.4"]
        pub flows: u64 = 1024,
        /// Bytes that a flow may send in each round.
        #[kind = Kind::Size { min: 1, max: 1_000_000_000 }]
        #[source = "RFC 8290 §5.2.2"]
        pub quantum: Bytes = Bytes(1514),
        /// The queue delay that may stand in a flow's queue.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 8290 §5.2.1"]
        pub target: Duration = Duration::from_millis(5),
        /// Time for which the delay must have been above the target before the first drop.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 8290 §5.2.1"]
        pub interval: Duration = Duration::from_millis(100),
        /// Mark packets of ECN-capable senders instead of dropping them.
        #[source = "RFC 8290 §5.2.5"]
        pub ecn: bool = true,
        /// Mark every packet of an ECN-capable sender that waited longer than this, for DCTCP and
        /// the like.
        #[absent = "never"]
        #[source = "RFC 8290 §5.2.6"]
        pub ce_threshold: Option<Duration> = None,
        /// Whose packets `ce-threshold` marks.
        #[source = "Linux sch_fq_codel, ce_threshold_selector"]
        pub ce_threshold_for: CeThresholdFor = CeThresholdFor::EcnCapable,
    }
}

fn a_threshold_for_whom<R: Reader>(from: &R, config: &FqCodelConfig) {
    if from.written("ce-threshold-for") && config.ce_threshold.is_none() {
        let message = "has no effect without ce-threshold".to_owned();
        from.refuse(Some("ce-threshold-for"), message, "ce-threshold, too");
    }
}

/// A full queue loses at most this many packets at once (Linux `drop_batch`; RFC 8290 §4.1.3).
const DROP_BATCH: usize = 64;

/// The list that a flow queue is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    None,
    New,
    Old,
}

/// The queue of the flows with one hash.
#[derive(Clone, Debug)]
struct FlowQueue<T> {
    fifo: Fifo<T>,
    control: Control,
    /// Bytes that it may still send in this round; negative after a packet that was larger.
    credit: i64,
    list: List,
}

/// Queues by flow, each under CoDel, served in turn.
#[derive(Clone, Debug)]
pub(crate) struct FqCodel<T> {
    config: FqCodelConfig,
    rules: Rules,
    salt: u64,
    queues: Vec<FlowQueue<T>>,
    /// Indices of the queues that have become active, served first.
    new: VecDeque<u32>,
    /// Indices of the other active queues.
    old: VecDeque<u32>,
    packets: usize,
    bytes: Bytes,
    largest: LargestPacket,
}

impl<T> FqCodel<T> {
    /// The stream salts the hash (RFC 8290 §4.1.1).
    pub(crate) fn new(config: &FqCodelConfig, mut stream: Stream) -> Self {
        let FqCodelConfig { target, interval, ecn, .. } = *config;
        let ce_threshold = config.ce_threshold.map(|at| (at, config.ce_threshold_for));
        let queue = |_| FlowQueue {
            fifo: Fifo::default(),
            control: Control::default(),
            credit: 0,
            list: List::None,
        };
        Self {
            rules: Rules { target, interval, ecn, ce_threshold },
            salt: stream.bits(),
            queues: (0..config.flows).map(queue).collect(),
            config: config.clone(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: Bytes::ZERO,
            largest: LargestPacket::default(),
        }
    }

    fn queue_of(&self, flow: u32) -> u32 {
        (mix(u64::from(flow) ^ self.salt) % self.queues.len() as u64) as u32
    }

    fn is_over_limit(&self) -> bool {
        self.packets as u64 > self.config.limit || self.bytes > self.config.memory_limit
    }

    /// §4.1.3: drops from the head of the longest queue, up to half of its bytes.
    fn drop_from_longest(&mut self, dropped: &mut Vec<Waiting<T>>) {
        // Of equally long ones the first.
        let longest = self.queues.iter_mut().rev().max_by_key(|queue| queue.fifo.bytes());
        let Some(longest) = longest else { return };
        let enough = Bytes(longest.fifo.bytes().get() / 2);
        let (mut packets, mut bytes) = (0, Bytes::ZERO);
        while packets < DROP_BATCH
            && (packets == 0 || bytes < enough)
            && let Some(packet) = longest.fifo.pop()
        {
            packets += 1;
            bytes += packet.meta.size;
            dropped.push(packet);
        }
        // CoDel's signals get stronger, too.
        longest.control.count_drops(packets as u32);
        self.packets -= packets;
        self.bytes -= bytes;
    }

    /// The queue whose turn it is (§4.2), after those that have used up their quantum have gone to
    /// the end of the old list.
    fn next_queue(&mut self) -> Option<u32> {
        loop {
            let &index = self.new.front().or(self.old.front())?;
            let queue = &mut self.queues[index as usize];
            if queue.credit > 0 {
                return Some(index);
            }
            queue.credit += self.config.quantum.get() as i64;
            self.move_first(index, List::Old);
        }
    }

    /// The queue that is first on its list is empty. A new one must pass through the old list once,
    /// or a flow could stay new for ever (§4.2).
    fn retire(&mut self, index: u32) {
        let is_new = self.queues[index as usize].list == List::New;
        let passes = is_new && !self.old.is_empty();
        self.move_first(index, if passes { List::Old } else { List::None });
    }

    /// Moves the queue that is first on its list to the end of another.
    fn move_first(&mut self, index: u32, to: List) {
        let queue = &mut self.queues[index as usize];
        match queue.list {
            List::New => _ = self.new.pop_front(),
            List::Old => _ = self.old.pop_front(),
            List::None => {}
        }
        queue.list = to;
        match to {
            List::New => self.new.push_back(index),
            List::Old => self.old.push_back(index),
            List::None => {}
        }
    }
}

impl<T> Discipline<T> for FqCodel<T> {
    fn enqueue(
        &mut self,
        packet: Waiting<T>,
        _: Server,
        dropped: &mut Vec<Waiting<T>>,
    ) -> Result<(), Waiting<T>> {
        let (index, size) = (self.queue_of(packet.meta.flow), packet.meta.size);
        self.largest.note(size);
        self.packets += 1;
        self.bytes += size;
        let queue = &mut self.queues[index as usize];
        queue.fifo.push(packet);
        if queue.list == List::None {
            queue.credit = self.config.quantum.get() as i64;
            self.move_first(index, List::New);
        }
        while self.is_over_limit() {
            self.drop_from_longest(dropped);
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Waiting<T>>) -> Option<Waiting<T>> {
        while let Some(index) = self.next_queue() {
            let Self { queues, rules, largest, packets, bytes, .. } = self;
            let queue = &mut queues[index as usize];
            let FlowQueue { fifo, control, .. } = queue;
            let pop = || {
                let packet = fifo.pop()?;
                *packets -= 1;
                *bytes -= packet.meta.size;
                Some((packet, *bytes))
            };
            if let Some(packet) = control.dequeue(now, rules, largest.get(), pop, dropped) {
                queue.credit -= packet.meta.size.get() as i64;
                return Some(packet);
            }
            self.retire(index);
        }
        None
    }

    fn take(&mut self) -> Option<Waiting<T>> {
        while let Some(index) = self.next_queue() {
            let queue = &mut self.queues[index as usize];
            if let Some(packet) = queue.fifo.pop() {
                queue.credit -= packet.meta.size.get() as i64;
                self.packets -= 1;
                self.bytes -= packet.meta.size;
                return Some(packet);
            }
            self.retire(index);
        }
        None
    }

    fn len(&self) -> usize {
        self.packets
    }

    fn holds(&self, flow: u32) -> bool {
        self.queues[self.queue_of(flow) as usize].fifo.holds(flow)
    }
}
