//! The results of a run. SI units: seconds, bit/s, bytes, segments.

use airtcp_core::{Duration, Histogram, documented};
use airtcp_net::link::Link;
use airtcp_net::wifi::StationCounters;
use serde::Serialize;
use std::collections::BTreeMap;

documented! {
    /// All results of one run.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct RunMetrics {
        /// Name of the scenario.
        pub scenario: String,
        /// Seed of the run.
        pub seed: u64,
        /// Simulated time, s.
        pub duration: f64,
        /// Events processed: packets that came out of links, and wake-ups of channels, endpoints,
        /// middleboxes and so on.
        pub events: u64,
        /// Jain's fairness index of the flows' goodputs, from 1/flows (one has all) to 1 (all have
        /// the same); `None` if nothing was delivered. R. Jain, D. Chiu, W. Hawe: A Quantitative
        /// Measure of Fairness and Discrimination for Resource Allocation in Shared Computer
        /// Systems, DEC-TR-301, 1984.
        pub fairness: Option<f64>,
        /// One for each TCP flow, in the order of the scenario.
        pub flows: Vec<FlowMetrics>,
        /// One for each QUIC flow, in the order of the scenario.
        pub quic: Vec<QuicMetrics>,
        /// One for each unidirectional link, in the order of the scenario.
        pub links: Vec<LinkMetrics>,
        /// One for each station of each wireless cell, in the order of the scenario.
        pub stations: Vec<StationMetrics>,
        /// One for each source of cross traffic, in the order of the scenario.
        pub udp: Vec<UdpMetrics>,
        /// One for each flow with requests or arriving transfers, in the order of the scenario.
        pub transfers: Vec<TransferMetrics>,
        /// One for each flow with a video, in the order of the scenario.
        pub videos: Vec<VideoMetrics>,
        /// One for each call, in the order of the scenario.
        pub calls: Vec<CallMetrics>,
        /// One for each node with a middlebox, in the order of the scenario.
        pub middleboxes: Vec<MiddleboxMetrics>,
        /// What makes the numbers doubtful, a sentence or two each: what to change, and why.
        pub warnings: Vec<String>,
    }
}

documented! {
    /// One TCP flow.
    ///
    /// A flow is *active* from its start to the delivery of its last byte, or to the end of the run
    /// if it is endless or unfinished.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct FlowMetrics {
        /// Name of the flow.
        pub name: String,
        /// Payload sent, retransmissions included, over the time the flow was active, bit/s.
        pub throughput: f64,
        /// Bytes delivered in order over the same time, bit/s.
        pub goodput: f64,
        /// Start to the delivery of the last byte, s; `None` for endless and unfinished flows, and
        /// those with `traffic`.
        pub download_time: Option<f64>,
        /// Bytes delivered in order to the receiving application.
        pub delivered_bytes: u64,
        /// Payload bytes sent, retransmissions included.
        pub sent_bytes: u64,
        /// Data segments sent, retransmissions included.
        pub data_segments_sent: u64,
        /// Ratio of retransmitted data segments to those sent for the first time.
        pub retransmission_ratio: f64,
        /// Congestion window at the end, bytes. Of a flow with `traffic.kind = "arrivals"`, this,
        /// `ssthresh`, `rto`, `srtt`, `jitter` and `state` say nothing; counters and RTT samples
        /// are those of all its connections together.
        pub cwnd: u32,
        /// Slow-start threshold at the end, bytes.
        pub ssthresh: u32,
        /// Retransmission time-out at the end, s.
        pub rto: f64,
        /// Smoothed RTT at the end, s; `None` before the first sample.
        pub srtt: Option<f64>,
        /// Smallest RTT sample, s; `None` without samples. A sample is what the sender measures,
        /// the handshake included: the wait of a delayed acknowledgement is part of it. By what a
        /// percentile exceeds it, the flow's segments and acknowledgements waited in queues.
        pub rtt_min: Option<f64>,
        /// Median of the RTT samples, s, to within 1.6 %; `None` without samples.
        pub rtt_p50: Option<f64>,
        /// 95th percentile of the RTT samples, likewise.
        pub rtt_p95: Option<f64>,
        /// 99th percentile of the RTT samples, likewise.
        pub rtt_p99: Option<f64>,
        /// Mean difference between an RTT sample and the one before it, s; `None` with fewer than
        /// two.
        pub jitter: Option<f64>,
        /// Median of the queueing delays of the segments that reached the receiver, s, to within
        /// 1.6 %; `None` without segments, and where it is not measured: `airtcp run` does so for
        /// `--json` and `--out`. The delay is the sum over the queues of links and stations on the
        /// way; in a link's it ends with the start of the transmission, in a station's when the MAC
        /// begins to contend for the packet. What a routing protocol or a middlebox holds back does
        /// not count, nor do the queues before a MAC that gave up.
        pub queueing_delay_p50: Option<f64>,
        /// 95th percentile of these queueing delays, likewise.
        pub queueing_delay_p95: Option<f64>,
        /// 99th percentile of these queueing delays, likewise.
        pub queueing_delay_p99: Option<f64>,
        /// Reductions of the congestion window; each congestion event counts once.
        pub cwnd_reductions: u64,
        /// Expiries of the retransmission timer.
        pub timeouts: u64,
        /// Those of them after exactly one or two duplicate ACKs for the oldest segment.
        pub timeouts_after_duplicates: u64,
        /// Those after which TCP Karak's rule starts from more than one segment; those beyond
        /// `tcp.karak.limit` count, too. 0 with other congestion controls.
        pub larger_restarts: u64,
        /// Fast retransmits, by duplicate ACKs, SACK or time.
        pub fast_retransmits: u64,
        /// Data segments that reached the receiver and held nothing new.
        pub spurious_retransmits: u64,
        /// Pure acknowledgements the receiver sent.
        pub acks_sent: u64,
        /// Window probes sent.
        pub window_probes: u64,
        /// Packets of the flow, in either direction, that the MAC of a wireless station gave up.
        pub mac_drops: u64,
        /// Packets of the flow, in either direction, dropped because a node had no route.
        pub no_route_drops: u64,
        /// Packets of the flow, in either direction, whose TTL expired.
        pub ttl_drops: u64,
        /// Time in which the sender had sent all that its application had written, s. This and the
        /// next three are the time from its first data to the acknowledgement of its FIN.
        pub limited_by_application: f64,
        /// Time in which it had, and the send buffer was full of unacknowledged data, s.
        pub limited_by_send_buffer: f64,
        /// Time in which the receiver's window had no room for the next segment, s.
        pub limited_by_receive_window: f64,
        /// Time in which cwnd, its pace or the repair of losses kept it from sending more, s.
        pub limited_by_path: f64,
        /// Outages of the path that ended and after which the flow resumed.
        pub outages: u64,
        /// Mean time from the end of these outages to the first new byte at the receiver (or to the
        /// next outage), s; `None` without one.
        pub outage_dead_time: Option<f64>,
        /// State of the sender's connection at the end.
        pub state: String,
        /// Reason for aborting the connection, if it was aborted.
        pub aborted: Option<String>,
    }
}

documented! {
    /// One QUIC flow. It is active as a TCP flow is.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct QuicMetrics {
        /// Name of the flow.
        pub name: String,
        /// UDP payload that the sender sent, over the time the flow was active, bit/s.
        pub throughput: f64,
        /// Bytes of the stream delivered over the same time, bit/s.
        pub goodput: f64,
        /// Start to the delivery of the last byte, s; `None` for endless and unfinished flows.
        pub download_time: Option<f64>,
        /// Bytes of the stream delivered in order to the receiving application.
        pub delivered_bytes: u64,
        /// UDP payload that the sender sent, bytes.
        pub sent_bytes: u64,
        /// QUIC packets that the sender sent.
        pub packets_sent: u64,
        /// Those of them that it took for lost; probes of the path's MTU do not count.
        pub packets_lost: u64,
        /// Ratio of these two.
        pub loss_ratio: f64,
        /// ACK frames that the receiver sent.
        pub acks_sent: u64,
        /// Congestion window at the end, bytes.
        pub cwnd: u64,
        /// Smoothed RTT at the end, s; `None` before the handshake is over.
        pub srtt: Option<f64>,
        /// Smallest RTT sample, s, likewise.
        pub rtt_min: Option<f64>,
        /// Times that the congestion control was told of losses or marks. It answers those within a
        /// round trip once.
        pub congestion_events: u64,
        /// Largest UDP payload that the sender knows to fit the path, bytes.
        pub mtu: u16,
        /// Outages of the path that ended and after which the flow resumed.
        pub outages: u64,
        /// Mean time from the end of these outages to the first new byte at the receiver (or to the
        /// next outage), s; `None` without one.
        pub outage_dead_time: Option<f64>,
        /// State of the sender's connection at the end: `Idle`, `Handshake`, `Established`,
        /// `Closed`.
        pub state: String,
        /// Why the connection ended, if no application closed it.
        pub aborted: Option<String>,
    }
}

documented! {
    /// One unidirectional link.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct LinkMetrics {
        /// Name of the link.
        pub name: String,
        /// Packets that have come out of the link, lost ones included; those on their way at the end
        /// are not.
        pub packets_sent: u64,
        /// Total size of these packets, as IP packets.
        pub bytes_sent: u64,
        /// Packets the queue refused or dropped.
        pub queue_drops: u64,
        /// Packets the queue marked instead of dropping them (ECN).
        pub ecn_marks: u64,
        /// Packets the loss model took, on the medium or in front of the queue.
        pub loss_drops: u64,
        /// Copies made of packets (`duplicate`), whatever became of them.
        pub duplicates: u64,
        /// Packets the policer dropped.
        pub policer_drops: u64,
        /// Packets an outage of the link took, or a handover.
        pub outage_drops: u64,
        /// Longest queue, packets; with access categories, of one of them.
        pub max_queue_packets: u64,
        /// Share of what the link could have sent during the run, at its rates or the mean rate of
        /// its trace or channel, that has come out of it; of a link in a cell, alone in the cell.
        pub utilisation: f64,
        /// Median of the packets' queueing delays, s, to within 1.6 %; `None` without packets. The
        /// delay runs from a packet's arrival to the start of its transmission, outages that hold
        /// it included.
        pub queueing_delay_p50: Option<f64>,
        /// 95th percentile of the queueing delays, likewise.
        pub queueing_delay_p95: Option<f64>,
        /// 99th percentile of the queueing delays, likewise.
        pub queueing_delay_p99: Option<f64>,
    }
}

impl LinkMetrics {
    /// Those of the link `name` after the time `elapsed`.
    pub fn new<T>(name: &str, link: &Link<T>, elapsed: Duration) -> Self {
        let counters = link.counters();
        let sendable = link.capacity(elapsed);
        let [queueing_delay_p50, queueing_delay_p95, queueing_delay_p99] =
            percentiles(link.waits());
        Self {
            name: name.to_owned(),
            packets_sent: counters.packets_sent,
            bytes_sent: counters.bytes_sent.get(),
            queue_drops: counters.queue_drops,
            ecn_marks: counters.ecn_marks,
            loss_drops: counters.loss_drops,
            duplicates: counters.duplicates,
            policer_drops: counters.policer_drops,
            outage_drops: counters.outage_drops,
            max_queue_packets: counters.max_queue_packets,
            utilisation: if sendable > 0.0 {
                8.0 * counters.bytes_sent.get() as f64 / sendable
            } else {
                0.0
            },
            queueing_delay_p50,
            queueing_delay_p95,
            queueing_delay_p99,
        }
    }
}

/// Median, 95th and 99th percentile, s.
pub(crate) fn percentiles(of: &Histogram) -> [Option<f64>; 3] {
    [0.5, 0.95, 0.99].map(|q| of.quantile(q).map(Duration::as_secs_f64))
}

/// Jain's index of `shares`; `None` if all are zero.
pub(crate) fn fairness(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    (sum > 0.0).then(|| sum * sum / (count * squares))
}

documented! {
    /// One source of UDP cross traffic.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct UdpMetrics {
        /// Name of the source.
        pub name: String,
        /// Packets it sent.
        pub packets_sent: u64,
        /// Packets that arrived, copies that a link made (`duplicate`) included.
        pub packets_received: u64,
        /// Packets that were lost on the way.
        pub packets_dropped: u64,
        /// Of these lost packets, those for which a node had no route.
        pub no_route_drops: u64,
        /// Of these lost packets, those whose TTL expired.
        pub ttl_drops: u64,
        /// IP packets that arrived, over the time from its start to its stop, bit/s.
        pub throughput: f64,
        /// User data of these packets over the same time, bit/s.
        pub goodput: f64,
        /// Mean time under way of the packets that arrived, s; `None` without them.
        pub delay_mean: Option<f64>,
        /// Median of this time, s, to within 1.6 %.
        pub delay_p50: Option<f64>,
        /// 95th percentile of this time, likewise.
        pub delay_p95: Option<f64>,
        /// 99th percentile of this time, likewise.
        pub delay_p99: Option<f64>,
    }
}

documented! {
    /// The transfers of one flow: the answers to its requests, or its arriving transfers. Values are
    /// `None` without transfers.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct TransferMetrics {
        /// Name of the flow.
        pub name: String,
        /// Transfers that began.
        pub started: u64,
        /// Transfers of which the last byte arrived.
        pub completed: u64,
        /// Arriving transfers whose connection was aborted before that.
        pub aborted: u64,
        /// Mean completion time, s. It runs from the request, or from the opening of the connection
        /// if it was opened for the transfer, to the last byte at the receiver. Here and below only
        /// completed transfers count: where many did not complete, times look too short.
        pub completion_mean: Option<f64>,
        /// Median completion time, s, to within 1.6 %.
        pub completion_p50: Option<f64>,
        /// 95th percentile of completion times, likewise.
        pub completion_p95: Option<f64>,
        /// 99th percentile of completion times, likewise.
        pub completion_p99: Option<f64>,
        /// The percentiles of completion times from the first to the 100th, likewise: their
        /// cumulative distribution.
        pub completion_cdf: Vec<f64>,
        /// Mean slowdown: completion time over the time that the transfer would take alone on the
        /// path, with the least delays of its links, and its bytes and headers at their mean rates
        /// over the run; `None` where the path has a wireless cell.
        pub slowdown_mean: Option<f64>,
        /// Median slowdown, to within 1.6 %.
        pub slowdown_p50: Option<f64>,
        /// 95th percentile of slowdowns, likewise.
        pub slowdown_p95: Option<f64>,
        /// 99th percentile of slowdowns, likewise.
        pub slowdown_p99: Option<f64>,
        /// Small transfers completed: those of at most 100 kB (this and the next class as in
        /// pFabric, SIGCOMM 2013).
        pub small_completed: u64,
        /// Their mean completion time, s.
        pub small_completion_mean: Option<f64>,
        /// 99th percentile of their completion times, s.
        pub small_completion_p99: Option<f64>,
        /// Their mean slowdown.
        pub small_slowdown_mean: Option<f64>,
        /// 99th percentile of their slowdowns.
        pub small_slowdown_p99: Option<f64>,
        /// Medium transfers completed: those above 100 kB and of at most 10 MB.
        pub medium_completed: u64,
        /// Their mean completion time, s.
        pub medium_completion_mean: Option<f64>,
        /// 99th percentile of their completion times, s.
        pub medium_completion_p99: Option<f64>,
        /// Their mean slowdown.
        pub medium_slowdown_mean: Option<f64>,
        /// 99th percentile of their slowdowns.
        pub medium_slowdown_p99: Option<f64>,
        /// Large transfers completed: those above 10 MB.
        pub large_completed: u64,
        /// Their mean completion time, s.
        pub large_completion_mean: Option<f64>,
        /// 99th percentile of their completion times, s.
        pub large_completion_p99: Option<f64>,
        /// Their mean slowdown.
        pub large_slowdown_mean: Option<f64>,
        /// 99th percentile of their slowdowns.
        pub large_slowdown_p99: Option<f64>,
    }
}

documented! {
    /// One player of video.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct VideoMetrics {
        /// Name of its flow.
        pub name: String,
        /// Time from the opening of the connection to the first picture, s; `None` before it.
        pub startup_delay: Option<f64>,
        /// Times that the buffer ran empty (rebuffering), the start not included.
        pub stalls: u64,
        /// Total length of these stalls, s.
        pub stall_time: f64,
        /// Playing time shown, s.
        pub play_time: f64,
        /// Mean bitrate of the segments received, bit/s; `None` without one.
        pub bitrate_mean: Option<f64>,
        /// Times that a segment was asked for in another bitrate than the one before.
        pub bitrate_switches: u64,
        /// Segments received.
        pub segments: u64,
        /// Playing time in the buffer at the end, s.
        pub buffer: f64,
        /// State at the end: Starting, Playing, Stalled or Ended.
        pub state: String,
    }
}

documented! {
    /// One direction of a voice call.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct CallMetrics {
        /// Name of the call.
        pub name: String,
        /// Frames sent that should have been played by the end.
        pub frames: u64,
        /// Those of them that did not arrive.
        pub frames_lost: u64,
        /// Those of them that arrived too late to be played.
        pub frames_late: u64,
        /// Bursts of frames that were concealed, as they were lost or late; one frame is a burst,
        /// too.
        pub bursts: u64,
        /// Frames in the longest burst.
        pub longest_burst: u64,
        /// Median of the frames' times under way, s, to within 1.6 %; `None` without frames.
        pub delay_p50: Option<f64>,
        /// 95th percentile of these times, likewise.
        pub delay_p95: Option<f64>,
        /// 99th percentile of these times, likewise.
        pub delay_p99: Option<f64>,
        /// Delay from mouth to ear, s: the least time under way, the jitter buffer, a frame and
        /// the codec's look-ahead; `None` if no frame arrived.
        pub mouth_to_ear_delay: Option<f64>,
        /// Rating R of the E-model (ITU-T G.107), 0 to 100, from codec, concealed frames, their
        /// bursts and the delay (Cole and Rosenbluth 2001); echo and loudness do not count. `None`
        /// without frames.
        pub r_factor: Option<f64>,
        /// Mean opinion score for this rating, 1 to 4.5 (ITU-T G.107, Annex B).
        pub mos: Option<f64>,
    }
}

documented! {
    /// One station of a wireless cell.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct StationMetrics {
        /// Name of the cell and name of the node: `cell/AP`.
        pub name: String,
        /// RTS frames sent.
        pub rts_sent: u64,
        /// CTS frames sent.
        pub cts_sent: u64,
        /// Unicast data frames sent, retries included.
        pub data_frames_sent: u64,
        /// MAC ACKs sent.
        pub ack_frames_sent: u64,
        /// Broadcast frames sent.
        pub broadcasts_sent: u64,
        /// Attempts that failed and were repeated.
        pub retries: u64,
        /// Attempts that an access category lost to a higher one of the same station. They are among
        /// the retries, unless they were the last ones, or for broadcasts.
        pub internal_collisions: u64,
        /// Packets given up that had not reached their receiver.
        pub mac_drops: u64,
        /// Packets given up, including those that lost only the MAC's ACK.
        pub link_failures: u64,
        /// Packets refused by the full queue, or dropped by its discipline.
        pub queue_drops: u64,
        /// Packets the queue marked instead of dropping them (ECN).
        pub ecn_marks: u64,
        /// Longest queue, packets.
        pub max_queue_packets: u64,
        /// Frames destroyed by other frames at this receiver.
        pub collisions: u64,
        /// Frames received in error for other reasons: too weak, bit errors, own transmission, an
        /// outage.
        pub frame_errors: u64,
        /// Duplicate frames, filtered by the MAC.
        pub duplicates: u64,
        /// Time during which the medium was busy or the station was sending, s.
        pub busy: f64,
    }
}

impl StationMetrics {
    /// From the counters of the station `name`.
    pub fn new(name: String, counters: StationCounters) -> Self {
        Self {
            name,
            rts_sent: counters.rts_sent,
            cts_sent: counters.cts_sent,
            data_frames_sent: counters.data_sent,
            ack_frames_sent: counters.acks_sent,
            broadcasts_sent: counters.broadcasts_sent,
            retries: counters.retries,
            internal_collisions: counters.internal_collisions,
            mac_drops: counters.mac_drops,
            link_failures: counters.link_failures,
            queue_drops: counters.queue_drops,
            ecn_marks: counters.ecn_marks,
            max_queue_packets: counters.max_queue,
            collisions: counters.collisions,
            frame_errors: counters.errors,
            duplicates: counters.duplicates,
            busy: counters.busy.as_secs_f64(),
        }
    }
}

documented! {
    /// Counters of a middlebox.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct MiddleboxMetrics {
        /// Name of its node.
        pub name: String,
        /// Its mechanism, as the scenario calls it.
        pub kind: &'static str,
        /// Counters of the mechanism by their names, and, of all but `split`, `segments_refused`: the
        /// segments it forwarded untouched because its flow table was full.
        #[serde(flatten)]
        pub counters: BTreeMap<&'static str, u64>,
    }
}
