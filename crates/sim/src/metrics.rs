//! What a run is summed up in. SI units: seconds, bit/s, bytes, segments.

use airtcp_edge::{PacketControl, PacketControlCounters};
use airtcp_net::link::LinkCounters;
use serde::Serialize;

/// All numbers of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunMetrics {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of the run.
    pub seed: u64,
    /// Simulated time, s.
    pub duration: f64,
    /// Events processed: wake-ups of links, channels, endpoints, middleboxes and so on.
    pub events: u64,
    /// One for each flow, in the order of the scenario.
    pub flows: Vec<FlowMetrics>,
    /// One for each unidirectional link, in the order of the scenario.
    pub links: Vec<LinkMetrics>,
    /// One for each station of each wireless cell, in the order of the scenario.
    pub stations: Vec<StationMetrics>,
    /// One for each source of cross traffic, in the order of the scenario.
    pub cbr: Vec<CbrMetrics>,
    /// One for each node with a middlebox, in the order of the scenario.
    pub middleboxes: Vec<MiddleboxMetrics>,
}

/// One TCP flow.
///
/// A flow is *active* from its start to the delivery of its last byte, or to the end of the run when it is
/// endless or unfinished.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowMetrics {
    /// Name of the flow.
    pub name: String,
    /// Payload sent, retransmissions included, over the time the flow was active, bit/s.
    pub throughput: f64,
    /// Bytes delivered in order over the same time, bit/s.
    pub goodput: f64,
    /// Start to the delivery of the last byte, s; `None` for endless and unfinished flows.
    pub download_time: Option<f64>,
    /// Bytes delivered in order to the receiving application.
    pub delivered_bytes: u64,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Data segments sent, retransmissions included.
    pub data_segments_sent: u64,
    /// Retransmitted data segments for each one sent the first time.
    pub retransmission_ratio: f64,
    /// Congestion window at the end, bytes.
    pub cwnd: u32,
    /// Slow-start threshold at the end, bytes.
    pub ssthresh: u32,
    /// Retransmission time-out at the end, s.
    pub rto: f64,
    /// Smoothed RTT at the end, s; `None` before the first sample.
    pub srtt: Option<f64>,
    /// Reductions of the congestion window, each congestion event once.
    pub cwnd_reductions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// Data segments that reached the receiver and held nothing new.
    pub spurious_retransmits: u64,
    /// Pure acknowledgements the receiver sent.
    pub acks_sent: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Packets of the flow, of either direction, that the MAC of a wireless station gave up.
    pub mac_drops: u64,
    /// Outages of the path that ended and after which the flow went on.
    pub outages: u64,
    /// Mean time from the end of these to the first new byte at the receiver (or to the next outage), s;
    /// `None` without one.
    pub outage_dead_time: Option<f64>,
    /// State of the sender's connection at the end.
    pub state: String,
    /// Why the connection was aborted, if it was.
    pub aborted: Option<String>,
}

/// One unidirectional link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkMetrics {
    /// Name of the link.
    pub name: String,
    /// Packets whose transmission has started, lost ones included.
    pub packets_sent: u64,
    /// Bytes of these, as IP packets.
    pub bytes_sent: u64,
    /// Packets the queue refused.
    pub queue_drops: u64,
    /// Packets the loss model took, on the medium or in front of the queue.
    pub loss_drops: u64,
    /// Packets an outage of the link took.
    pub outage_drops: u64,
    /// Longest queue, packets.
    pub max_queue_packets: u64,
}

impl LinkMetrics {
    /// From the counters of the link `name`.
    pub fn new(name: &str, counters: LinkCounters) -> Self {
        Self {
            name: name.to_owned(),
            packets_sent: counters.packets_sent,
            bytes_sent: counters.bytes_sent.get(),
            queue_drops: counters.queue_drops,
            loss_drops: counters.loss_drops,
            outage_drops: counters.outage_drops,
            max_queue_packets: counters.max_queue_packets,
        }
    }
}

/// One source of UDP cross traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CbrMetrics {
    /// Name of the source.
    pub name: String,
    /// Packets it sent.
    pub packets_sent: u64,
    /// Packets that arrived.
    pub packets_received: u64,
    /// Packets that were lost on the way.
    pub packets_dropped: u64,
    /// User data that arrived, over the time from its start to its stop, bit/s.
    pub goodput: f64,
}

/// One station of a wireless cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StationMetrics {
    /// Name of the cell.
    pub wlan: String,
    /// Name of the node.
    pub node: String,
}

/// One middlebox.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MiddleboxMetrics {
    /// Name of its node.
    pub name: String,
    /// What its mechanism counted.
    #[serde(flatten)]
    pub mechanism: MechanismMetrics,
}

/// The counters of a mechanism; its name is `kind` in the serialised form.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum MechanismMetrics {
    /// TCP Packet Control.
    PacketControl {
        /// Pure ACKs below the highest one, dropped.
        acks_old_dropped: u64,
        /// Duplicate ACKs dropped.
        acks_duplicate_dropped: u64,
        /// Pure ACKs from mobiles, forwarded.
        acks_forwarded: u64,
        /// Segments from fixed hosts dropped as already acknowledged.
        data_dropped: u64,
        /// ACKs sent to fixed hosts in answer to those.
        acks_generated: u64,
        /// Segments forwarded unfiltered because the flow table was full.
        segments_refused: u64,
    },
}

impl From<&PacketControl> for MechanismMetrics {
    fn from(machine: &PacketControl) -> Self {
        let PacketControlCounters {
            acks_old_dropped,
            acks_duplicate_dropped,
            acks_forwarded,
            data_dropped,
            acks_generated,
        } = machine.counters();
        Self::PacketControl {
            acks_old_dropped,
            acks_duplicate_dropped,
            acks_forwarded,
            data_dropped,
            acks_generated,
            segments_refused: machine.segments_refused(),
        }
    }
}
