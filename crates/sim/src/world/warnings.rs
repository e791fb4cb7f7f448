//! What makes the numbers of a run doubtful.

use super::{LinkState, Socket, World};
use crate::metrics::{LinkMetrics, QuicMetrics, RunMetrics, UdpMetrics};
use airtcp_core::{Duration, Id, Instant};
use airtcp_routing::{LinkId, NodeId};
use airtcp_tcp::TcpState;
use std::collections::BTreeSet;

/// A connection that was not answered for so long: its first packet and two or three more.
const UNANSWERED: Duration = Duration::from_secs(5);

/// The first outage or handover of a node or a link, or the first time that a NAT changes a flow's
/// port.
pub(super) struct FirstDisturbance {
    /// "node MH", "link BS>MH", "NAT of flow get".
    pub(super) whose: String,
    pub(super) start: Instant,
}

impl World {
    /// The warnings of the run so far, which has these metrics.
    pub(super) fn warnings(&self, metrics: &RunMetrics) -> Vec<String> {
        let all = [
            self.short_sender_queues(&metrics.links),
            self.late_disturbances(),
            self.unanswered(&metrics.quic),
            unheard(&metrics.udp),
        ];
        all.into_iter().flatten().collect()
    }

    /// A warning if bursts overflow the queues of senders' own links, although later links are
    /// slower. A host does not lose its own packets: its queue is long (Linux: `txqueuelen`, 1000
    /// packets), and its TCP waits for it (TCP small queues).
    fn short_sender_queues(&self, links: &[LinkMetrics]) -> Option<String> {
        let ends = |socket: &Socket| (socket.node, socket.peer);
        let tcp = self.sockets.iter().step_by(2).map(ends);
        let quic = self.quic.iter().step_by(2).map(|socket| (socket.node, socket.peer));
        let own = tcp.chain(quic).filter_map(|(sender, receiver)| {
            let first = self.next_hops.link(sender, receiver)?;
            let link = links.get(first.index())?;
            // Busy for longer, it may be the bottleneck at times.
            let overflows = link.queue_drops > 0 && link.utilisation < 0.5;
            (overflows && self.a_later_hop_is_slower(first, receiver)).then_some(first)
        });
        let short: BTreeSet<LinkId> = own.collect();
        let names: Vec<&str> = short.iter().map(|link| &*links[link.index()].name).collect();
        let whose = match names[..] {
            [] => return None,
            [only] => format!("{only}: its queue"),
            _ => format!("{}: their queues", listed(&names)),
        };
        Some(format!(
            "link {whose} overflowed in bursts of the sender's own host, which would have made its \
             packets wait. Set a longer one, such as `queue = {{ limit = \"1000 packets\" }}`"
        ))
    }

    /// True if the path from the end of the wired link `first` to `destination` has a slower link,
    /// or one by radio.
    fn a_later_hop_is_slower(&self, first: LinkId, destination: NodeId) -> bool {
        let LinkState { link, to, .. } = &self.links[first];
        let mut node = *to;
        // Static routes do not lead in circles.
        while node != destination {
            let Some(next) = self.next_hops.link(node, destination) else { return false };
            let Some(LinkState { link: later, to, .. }) = self.links.get(next) else { return true };
            if later.rate() < link.rate() {
                return true;
            }
            node = *to;
        }
        false
    }

    /// A warning if all disturbances of something begin after the end of the run.
    fn late_disturbances(&self) -> Option<String> {
        let end = Instant::ZERO + self.duration;
        let late: Vec<_> =
            self.first_disturbances.iter().filter(|first| first.start >= end).collect();
        let start = late.iter().map(|first| first.start).min()?.since(Instant::ZERO);
        let names: Vec<&str> = late.iter().map(|first| &*first.whose).collect();
        Some(format!(
            "{}: nothing happens before the end of the run at {}, the first outage, handover or \
             change of port is at {start}. Set a longer `duration`, or earlier ones",
            listed(&names),
            self.duration,
        ))
    }

    /// A warning if connections were not answered from their start to now.
    fn unanswered(&self, quic: &[QuicMetrics]) -> Option<String> {
        let pairs = self.sockets.as_slice().chunks_exact(2);
        // Either end may be the one that opens.
        let by_tcp = (self.flows.iter().zip(pairs))
            .filter(|(flow, ends)| {
                let gave_up = ends.iter().all(|end| end.endpoint.stats().data_segments_sent == 0)
                    && ends.iter().any(|end| end.endpoint.aborted().is_some());
                let tries = ends.iter().any(|end| end.endpoint.state() == TcpState::SynSent);
                gave_up || tries && self.now.since(flow.start) >= UNANSWERED
            })
            .map(|(flow, _)| &*flow.name);
        let by_quic = (self.quic_flows.iter().zip(quic))
            .filter(|(flow, known)| {
                let gave_up = known.aborted.is_some() && known.delivered_bytes == 0;
                let tries = known.state == "Handshake";
                gave_up || tries && self.now.since(flow.start) >= UNANSWERED
            })
            .map(|(flow, _)| &*flow.name);
        let names: Vec<&str> = by_tcp.chain(by_quic).collect();
        let whose = match names[..] {
            [] => return None,
            [only] => format!("flow {only} was never answered: its"),
            _ => format!("flows {} were never answered: their", listed(&names)),
        };
        Some(format!(
            "{whose} goodput of 0 says nothing about congestion control. Are the ends in range, and is the path up?"
        ))
    }
}

/// A warning if nothing of what some sources of UDP sent arrived.
fn unheard(sources: &[UdpMetrics]) -> Option<String> {
    /// Fewer packets may be on their way.
    const SOME: u64 = 10;
    let silent = sources.iter().filter(|it| it.packets_received == 0 && it.packets_sent >= SOME);
    let names: Vec<&str> = silent.map(|it| &*it.name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "UDP of {}: no packet arrived. Are the ends in range, and is the path up?",
            listed(&names)
        )
    })
}

/// "a", "a and b", "a, b and 3 more".
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first, second] => format!("{first} and {second}"),
        [first, second, more @ ..] => format!("{first}, {second} and {} more", more.len()),
    }
}
