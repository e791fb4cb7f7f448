//! The results of a run.

use super::{ChannelState, FlowInfo, Socket, World};
use crate::apps::dialogue::Wants;
use crate::apps::{App, Inbox, OutageWatch};
use crate::metrics::{
    FlowMetrics, LinkMetrics, RunMetrics, StationMetrics, TransferMetrics, VideoMetrics, fairness,
    percentiles,
};
use airtcp_core::{Duration, Histogram, Instant, Length};
use airtcp_tcp::Endpoint;
use airtcp_tcp::endpoint::{Limits, Stats};

/// What the connections of a flow did.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    tx: Stats,
    rx: Stats,
    limits: Limits,
    rtts: Histogram,
    rtt_min: Option<Duration>,
}

impl Totals {
    /// Adds a connection, as it is at `now`.
    pub(super) fn add(
        &mut self,
        sender: &Endpoint<Length>,
        receiver: &Endpoint<Length>,
        now: Instant,
    ) {
        self.tx += sender.stats();
        self.rx += receiver.stats();
        self.limits += sender.limits(now);
        let rtts = sender.rtt_samples();
        self.rtts.merge(rtts.histogram());
        self.rtt_min = self.rtt_min.into_iter().chain(rtts.least()).min();
    }
}

impl World {
    /// The metrics so far; those of the whole run once it is over.
    pub fn metrics(&self) -> RunMetrics {
        let sockets = self.sockets.as_slice().chunks_exact(2);
        let flows: Vec<_> = self
            .flows
            .iter()
            .zip(sockets)
            .map(|(flow, ends)| self.flow_metrics(flow, &ends[0], &ends[1]))
            .collect();
        let ends = self.quic.as_slice().chunks_exact(2);
        let quic: Vec<_> = self
            .quic_flows
            .iter()
            .zip(ends)
            .map(|(flow, ends)| flow.metrics(&ends[0].end, &ends[1].end, self.now))
            .collect();
        let elapsed = self.now.since(Instant::ZERO);
        let links: Vec<_> = self
            .link_names
            .iter()
            .zip(&self.links)
            .map(|(name, state)| LinkMetrics::new(name, &state.link, elapsed))
            .collect();
        let mut metrics = RunMetrics {
            scenario: self.scenario.clone(),
            seed: self.seed,
            duration: self.now.as_secs_f64(),
            events: self.events_processed,
            fairness: fairness(
                flows.iter().map(|flow| flow.goodput).chain(quic.iter().map(|flow| flow.goodput)),
            ),
            flows,
            quic,
            links,
            stations: self.station_metrics(),
            udp: self.udp.iter().map(|source| source.metrics(self.now)).collect(),
            transfers: self.transfer_metrics(),
            videos: self.video_metrics(),
            calls: self.udp.iter().filter_map(|source| source.call_metrics(self.now)).collect(),
            middleboxes: self
                .mechanisms
                .iter()
                .map(|m| m.metrics(&self.node_names[m.node]))
                .collect(),
            warnings: Vec::new(),
        };
        metrics.warnings = self.warnings(&metrics);
        metrics
    }

    fn station_metrics(&self) -> Vec<StationMetrics> {
        let mut metrics = Vec::new();
        for (wlan, ChannelState { channel, nodes, .. }) in
            self.wlan_names.iter().zip(&self.channels)
        {
            for (station, &node) in nodes.enumerated() {
                let name = format!("{wlan}/{}", self.node_names[node]);
                metrics.push(StationMetrics::new(name, channel.counters(station)));
            }
        }
        metrics
    }

    /// What the receiver of each flow wants, if it asks.
    fn wants(&self) -> impl Iterator<Item = (&FlowInfo, Option<&Wants>)> {
        let receivers = self.sockets.iter().skip(1).step_by(2);
        self.flows.iter().zip(receivers).map(|(flow, receiver)| match &receiver.app {
            App::Client(client) => (flow, Some(client.wants())),
            _ => (flow, None),
        })
    }

    fn transfer_metrics(&self) -> Vec<TransferMetrics> {
        let tallies = self.wants().filter_map(|(flow, wants)| {
            let tally = match (flow.arrivals, wants) {
                (Some(id), _) => self.arrivals[id].tally(),
                (None, Some(Wants::Requests(requests))) => requests.tally(),
                (None, Some(Wants::Video(_)) | None) => return None,
            };
            Some(tally.metrics(&flow.name))
        });
        tallies.collect()
    }

    fn video_metrics(&self) -> Vec<VideoMetrics> {
        let players = self.wants().filter_map(|(flow, wants)| match wants {
            Some(Wants::Video(player)) => Some(player.metrics(&flow.name, self.now)),
            Some(Wants::Requests(_)) | None => None,
        });
        players.collect()
    }

    fn flow_metrics(&self, flow: &FlowInfo, sender: &Socket, receiver: &Socket) -> FlowMetrics {
        let totals = match flow.arrivals {
            Some(arrivals) => self.totals(arrivals),
            None => {
                let mut totals = Totals::default();
                totals.add(&sender.endpoint, &receiver.endpoint, self.now);
                totals
            }
        };
        let Totals { tx, rx, limits, rtts, rtt_min } = totals;
        let complete = flow.bytes.is_some_and(|bytes| rx.bytes_delivered >= bytes.get());
        let inbox = receiver.app.inbox();
        let end = inbox.filter(|_| complete).map_or(self.now, Inbox::last_delivery);
        let outages = inbox.and_then(Inbox::outages);
        let active = end.since(flow.start).as_secs_f64();
        let per_active_second = |n: u64| if active > 0.0 { n as f64 / active } else { 0.0 };
        let [rtt_p50, rtt_p95, rtt_p99] = percentiles(&rtts);
        let [queueing_delay_p50, queueing_delay_p95, queueing_delay_p99] = percentiles(&flow.waits);
        let sent_once = tx.data_segments_sent - tx.segments_retransmitted;
        FlowMetrics {
            name: flow.name.clone(),
            throughput: 8.0 * per_active_second(tx.data_bytes_sent),
            goodput: 8.0 * per_active_second(rx.bytes_delivered),
            download_time: complete.then_some(active),
            delivered_bytes: rx.bytes_delivered,
            sent_bytes: tx.data_bytes_sent,
            data_segments_sent: tx.data_segments_sent,
            retransmission_ratio: tx.segments_retransmitted as f64 / sent_once.max(1) as f64,
            cwnd: sender.endpoint.cwnd(),
            ssthresh: sender.endpoint.ssthresh(),
            rto: sender.endpoint.rto().as_secs_f64(),
            srtt: sender.endpoint.rtt().map(|rtt| rtt.srtt.as_secs_f64()),
            rtt_min: rtt_min.map(Duration::as_secs_f64),
            rtt_p50,
            rtt_p95,
            rtt_p99,
            jitter: sender.endpoint.rtt_samples().jitter().map(Duration::as_secs_f64),
            queueing_delay_p50,
            queueing_delay_p95,
            queueing_delay_p99,
            cwnd_reductions: tx.cwnd_reductions,
            timeouts: tx.timeouts,
            timeouts_after_duplicates: tx.timeouts_after_duplicates,
            larger_restarts: tx.larger_restarts,
            fast_retransmits: tx.fast_retransmits,
            spurious_retransmits: rx.duplicate_segments_received,
            acks_sent: rx.acks_sent,
            window_probes: tx.window_probes,
            mac_drops: flow.mac_drops,
            no_route_drops: flow.no_route_drops,
            ttl_drops: flow.ttl_drops,
            limited_by_application: (limits.idle + limits.application).as_secs_f64(),
            limited_by_send_buffer: limits.send_buffer.as_secs_f64(),
            limited_by_receive_window: limits.receive_window.as_secs_f64(),
            limited_by_path: limits.path.as_secs_f64(),
            outages: outages.map_or(0, OutageWatch::outages),
            outage_dead_time: outages.and_then(OutageWatch::mean_dead_time),
            state: format!("{:?}", sender.endpoint.state()),
            aborted: sender.endpoint.aborted().map(|reason| format!("{reason:?}")),
        }
    }
}
