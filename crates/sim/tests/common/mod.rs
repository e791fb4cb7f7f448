//! Small networks for tests and benchmarks, built as values.

use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_net::config::{DelayConfig, LinkConfig, LossConfig, QueueConfig, QueueLimit};
use airtcp_sim::scenario::model::{FlowSpec, Link, Node, NodeId, Scenario};
use airtcp_tcp::TcpConfig;

/// A link with constant delay, a drop-tail queue of `queue` packets, and no losses.
pub fn wire(rate: DataRate, delay: Duration, queue: u64) -> LinkConfig {
    LinkConfig {
        rate,
        delay: DelayConfig { base: delay, variation: None },
        loss: LossConfig::None,
        loss_place: Default::default(),
        outage: None,
        queue: QueueConfig::DropTail { limit: QueueLimit::Packets(queue) },
    }
}

/// A network under construction.
pub struct Network(pub Scenario);

impl Network {
    /// Without nodes yet.
    pub fn new(duration: Duration) -> Self {
        let name = "test".to_owned();
        Self(Scenario { name, duration, nodes: vec![], links: vec![], flows: vec![] })
    }

    /// Adds a plain node.
    pub fn node(&mut self) -> NodeId {
        let id = NodeId(self.0.nodes.len() as u32);
        self.0.nodes.push(Node { name: format!("n{}", id.0), middlebox: None, outage: None });
        id
    }

    /// Adds a link in each direction.
    pub fn connect(&mut self, a: NodeId, b: NodeId, config: &LinkConfig) {
        for (from, to) in [(a, b), (b, a)] {
            let name = format!("n{}>n{}", from.0, to.0);
            self.0.links.push(Link { name, from, to, config: config.clone() });
        }
    }

    /// Adds a flow with the same configuration at both ends; `None`: endless.
    pub fn flow(&mut self, from: NodeId, to: NodeId, bytes: Option<Bytes>, tcp: &TcpConfig) {
        self.0.flows.push(FlowSpec {
            name: format!("f{}", self.0.flows.len()),
            from,
            to,
            start: Instant::ZERO,
            bytes,
            sender: tcp.clone(),
            receiver: tcp.clone(),
        });
    }
}

/// `flows` endless flows, each with a host of its own at both ends, over one link between two routers;
/// access links of 1 Gbit/s and 1 ms; 1000-byte payload.
pub fn dumbbell(flows: usize, bottleneck: &LinkConfig, duration: Duration) -> Scenario {
    let access = wire(DataRate::mbps(1000), Duration::from_millis(1), 1000);
    let tcp = TcpConfig { mss: 1000, ..TcpConfig::default() };
    let mut network = Network::new(duration);
    let (left, right) = (network.node(), network.node());
    network.connect(left, right, bottleneck);
    for _ in 0..flows {
        let (from, to) = (network.node(), network.node());
        network.connect(from, left, &access);
        network.connect(right, to, &access);
        network.flow(from, to, None, &tcp);
    }
    network.0
}
