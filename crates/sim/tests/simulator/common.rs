//! Small networks for tests and benchmarks, built as values, and whole runs.
#![allow(dead_code)] // The benchmarks use a part of it.

use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_edge::MechanismConfig;
use airtcp_net::config::{
    DelayConfig, Distribution, LinkConfig, LossConfig, QueueConfig, QueueLimit, Variation,
};
use airtcp_sim::scenario::{
    Application, End, FlowSpec, Link, LinkSender, Marks, MechanismSpec, MiddleboxSpec, Node,
    NodeId, Scenario,
};
use airtcp_sim::{Observers, RunMetrics, World};
use airtcp_tcp::TcpConfig;
use std::sync::Arc;

/// Overrides as [`Scenario::parse`] takes them.
pub(crate) fn overrides(set: &[(&str, &str)]) -> Vec<(String, String)> {
    set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The scenario of a text without mistakes, with these overrides.
#[track_caller]
pub(crate) fn parse(text: &str, set: &[(&str, &str)]) -> Scenario {
    match Scenario::parse("t.toml", text, &overrides(set)) {
        Ok(scenario) => scenario,
        Err(error) => panic!("{}", error.render()),
    }
}

/// The metrics of a whole run that nobody observes.
pub(crate) fn run(scenario: &Scenario, seed: u64) -> RunMetrics {
    let mut world = World::new(scenario, seed);
    world.run(&mut Observers::default());
    world.metrics()
}

/// A link with constant delay, a drop-tail queue of `queue` packets, and no losses.
pub(crate) fn wire(rate: DataRate, delay: Duration, queue: u64) -> LinkConfig {
    LinkConfig {
        rate: rate.into(),
        delay: DelayConfig { base: delay, variation: None },
        loss: LossConfig::None.into(),
        duplicate: 0.0,
        policer: None,
        outage: None,
        reconfiguration: None,
        handover: None,
        rlc: None,
        queue: QueueConfig::DropTail { limit: QueueLimit::Packets(queue) },
    }
}

/// A network under construction.
pub(crate) struct Network(pub(crate) Scenario);

impl Network {
    /// Without nodes yet.
    pub(crate) fn new(duration: Duration) -> Self {
        let name = "test".to_owned();
        Self(Scenario { name, duration, ..Scenario::default() })
    }

    /// Adds a plain node.
    pub(crate) fn node(&mut self) -> NodeId {
        let number = self.0.nodes.len();
        self.0.nodes.push(Node::new(format!("n{number}")))
    }

    /// Adds a link in each direction.
    pub(crate) fn connect(&mut self, a: NodeId, b: NodeId, config: &LinkConfig) {
        for (from, to) in [(a, b), (b, a)] {
            let name = format!("n{}>n{}", from.0, to.0);
            let config = config.clone();
            self.0.links.push(Link { name, from, to, config, sender: LinkSender::Plain });
        }
    }

    /// Adds a flow with the same configuration at both ends; `None`: endless.
    pub(crate) fn flow(&mut self, from: NodeId, to: NodeId, bytes: Option<Bytes>, tcp: &TcpConfig) {
        let last = self.0.flows.last().map(|flow| Arc::clone(&flow.sender));
        let tcp = last.filter(|last| **last == *tcp).unwrap_or_else(|| Arc::new(tcp.clone()));
        self.0.flows.push(FlowSpec {
            name: format!("f{}", self.0.flows.len()),
            from,
            to,
            start: Instant::ZERO,
            jitter: Duration::ZERO,
            application: Arc::new(Application::Bulk(bytes)),
            opens: End::Sender,
            sender: Arc::clone(&tcp),
            receiver: tcp,
            marks: Marks::default(),
        });
    }
}

/// A fixed host (node 0), a base station (1) and a mobile (2) over a link of 250 kbit/s whose
/// random delay reorders (Packet Control, Table I); Packet Control at the base station if
/// `threshold` is given.
pub(crate) fn reordering(threshold: Option<u32>, duration: Duration) -> Scenario {
    let uniform = |low, high| Distribution::Uniform {
        low: Duration::from_millis(low),
        high: Duration::from_millis(high),
    };
    let mut wireless = wire(DataRate::kbps(250), Duration::from_millis(170), 50);
    wireless.delay.variation = Some(Variation {
        from: Instant::from_millis(500),
        distribution: Distribution::Mixture(vec![
            (80.0, uniform(153, 195)),
            (10.0, uniform(195, 225)),
            (8.0, uniform(225, 297)),
            (2.0, uniform(297, 621)),
        ]),
        fifo: false,
    });
    let tcp = TcpConfig { mss: 1000, receive_buffer: Bytes(20_000), ..TcpConfig::default() };
    let mut network = Network::new(duration);
    let [fixed, base, mobile] = [network.node(), network.node(), network.node()];
    network.connect(fixed, base, &wire(DataRate::mbps(1), Duration::from_millis(5), 50));
    network.connect(base, mobile, &wireless);
    network.flow(fixed, mobile, None, &tcp);
    let filter = |threshold| MiddleboxSpec {
        mechanism: MechanismSpec::Edge(MechanismConfig::PacketControl { threshold }),
        memory: Bytes(0),
        mobiles: vec![mobile],
        signal: None,
    };
    network.0.nodes[NodeId(1)].middlebox = threshold.map(|threshold| Box::new(filter(threshold)));
    network.0
}

/// `flows` endless flows, each with its own host at both ends, over one link between two routers;
/// access links of 1 Gbit/s and 1 ms; 1000-byte payload.
pub(crate) fn dumbbell(flows: usize, bottleneck: &LinkConfig, duration: Duration) -> Scenario {
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
