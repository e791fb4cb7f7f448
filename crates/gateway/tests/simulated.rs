//! The simulator drives the gateway's own dispatch: a node whose segments go as bytes through it,
//! with a configuration as an operator writes it. Hosts, links and outages are the simulator's.

mod common;

use airtcp_core::{Flow, Instant, Length, LinkSignal, Segment, SeqNum};
use airtcp_edge::{Actions, Middlebox, MobileId, Side};
use airtcp_gateway::config::GatewayConfig;
use airtcp_gateway::dispatch::{Dispatcher, Effect, Interfaces};
use airtcp_gateway::packets::{Intercepted, PacketId, Verdict};
use airtcp_gateway::signals::{MobileSignal, SignalSource};
use airtcp_sim::scenario::Scenario;
use airtcp_sim::{Observers, RunMetrics, World};
use airtcp_wire::{Checksums, decode, encode};
use common::Forgetful;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Of user data, in a download.
const BYTES: u64 = 2_000_000;

/// Keys of a scenario's middlebox and of a gateway's group alike, with the gateway's defaults.
const WITH_MIRROR: [&str; 2] = [
    r#"mechanism = "m-tcp-plus", fifo = "4 MiB", max-down = "24 h", probe-interval = "100 ms", acknowledge = "in-time", open = "in-steps""#,
    r#"mechanism = "holdover", fifo = "4 MiB", max-down = "24 h", probe-interval = "100 ms""#,
];
const WITHOUT: [&str; 2] = [
    r#"mechanism = "m-tcp", fifo = "4 MiB", max-down = "24 h""#,
    r#"mechanism = "packet-control", threshold = 6"#,
];
const WAKE: &str = r#"mechanism = "wake""#;

/// The byte at this place of a flow.
fn byte(flow: &Flow, at: SeqNum) -> u8 {
    let salt = u32::from(flow.src.port) << 16 | u32::from(flow.dst.port);
    ((at.0 ^ salt).wrapping_mul(0x9e37_79b1) >> 24) as u8
}

/// What a segment has at its place of the flow.
fn content(segment: &Segment<Length>) -> Vec<u8> {
    (0..segment.payload.0 as u32).map(|n| byte(&segment.flow, segment.seq + n)).collect()
}

/// What the gateway did.
#[derive(Debug, Default)]
struct Done {
    /// Packets that it let pass.
    passed: AtomicU64,
    /// Packets that it kept or dropped.
    kept: AtomicU64,
    /// Payload bytes of packets of its own making.
    injected: AtomicU64,
}

/// A node of the simulator with the gateway's dispatch.
struct Node {
    dispatcher: Dispatcher,
    effects: Vec<Effect>,
    /// Packets go on at once, and the gateway gets copies.
    is_mirrored: bool,
    packets: u32,
    done: Arc<Done>,
}

impl Node {
    fn new(config: &str, done: Arc<Done>) -> Self {
        let config = GatewayConfig::parse("gateway.toml", config).unwrap();
        let (keeper, is_mirrored) = (Box::new(Forgetful), config.groups[0].is_mirrored());
        let dispatcher = Dispatcher::new(&config, (1, 2), &Interfaces::new(), keeper).unwrap();
        Self { dispatcher, effects: Vec::new(), is_mirrored, packets: 0, done }
    }

    /// Does what the dispatcher wants done. Each byte that it sends is the one of its place.
    fn carry_out(&mut self, out: &mut Actions<Length>) {
        for effect in self.effects.drain(..) {
            // All packets come here, watched or not.
            let Effect::Inject { to, packet, .. } = effect else { continue };
            let sent = decode(&packet, Checksums::Verify).unwrap();
            let length = Length(sent.payload.len() as u64);
            let segment = sent.with_payload(length);
            assert_eq!(sent.payload, content(&segment), "{segment:?}");
            self.done.injected.fetch_add(length.0, Relaxed);
            out.inject(to, segment);
        }
        self.dispatcher.settle();
    }
}

impl Middlebox<Length> for Node {
    fn on_segment(
        &mut self,
        now: Instant,
        from: Side,
        segment: Segment<Length>,
        out: &mut Actions<Length>,
    ) {
        let mut packet = Vec::new();
        encode(&segment.with_payload(content(&segment)), &mut packet).unwrap();
        self.packets += 1;
        let intercepted = Intercepted {
            id: (!self.is_mirrored).then_some(PacketId(self.packets)),
            packet: packet.into(),
            input: None,
            output: None,
            checksums: Checksums::Verify,
            datagram: None,
            silence: None,
            is_closing: false,
        };
        match self.dispatcher.on_packet(now, &intercepted, &mut self.effects) {
            Verdict::Drop if !self.is_mirrored => {
                self.done.kept.fetch_add(1, Relaxed);
            }
            Verdict::Pass | Verdict::Drop => {
                self.done.passed.fetch_add(1, Relaxed);
                out.forward(from.opposite(), segment);
            }
        }
        self.carry_out(out);
    }

    fn on_link(
        &mut self,
        now: Instant,
        mobile: MobileId,
        signal: LinkSignal,
        out: &mut Actions<Length>,
    ) {
        let signal = MobileSignal { mobile, signal, source: SignalSource::Agent };
        self.dispatcher.on_signal(now, signal, &mut self.effects);
        self.carry_out(out);
    }

    fn on_timer(&mut self, now: Instant, out: &mut Actions<Length>) {
        self.dispatcher.on_timer(now, &mut self.effects);
        self.carry_out(out);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.dispatcher.next_deadline()
    }
}

/// A download to a mobile that is away for 4 s of every 10 s, through this mechanism of an access
/// point. Its segments are of a size that every host can receive (RFC 9293 §3.7.1): larger ones the
/// gateway may cut, and the simulator's own mechanism never does.
fn scenario(mechanism: &str) -> Scenario {
    let text = format!(
        r#"
        duration = "120 s"

        [[node]]
        name = "FH"
        [[node]]
        name = "AP"
        middlebox = {{ mobiles = ["MH"], {mechanism} }}
        [[node]]
        name = "MH"
        outage = {{ period = "10 s", end = "4 s", origin = "3 s" }}

        [[link]]
        between = ["FH", "AP"]
        rate = "20 Mbit/s"
        delay = "10 ms"

        [[link]]
        between = ["AP", "MH"]
        rate = "2 Mbit/s"
        delay = "5 ms"

        [tcp]
        preset = "rfc"
        mss = "500 B"

        [[flow]]
        name = "download"
        from = "FH"
        to = "MH"
        bytes = "{BYTES} B"
        "#
    );
    Scenario::parse("scenario.toml", &text, &[]).unwrap()
}

/// The gateway's configuration for the same: node 2 is the mobile, and no packet goes on before the
/// gateway has seen it, unless the mechanism wants copies.
fn gateway(mechanism: &str) -> String {
    let keys = mechanism.replace(", ", "\n");
    let fast_path = if WITH_MIRROR.contains(&mechanism) { "fast-path = \"off\"" } else { "" };
    format!("[[mobile]]\nname = \"phones\"\naddresses = [\"10.0.0.3\"]\n{keys}\n{fast_path}\n")
}

fn run(mut world: World) -> RunMetrics {
    world.run(&mut Observers::default());
    world.metrics()
}

/// The run with the simulator's own mechanism, that with the gateway in its place, and what the
/// gateway did.
fn both(mechanism: &str, seed: u64) -> ([RunMetrics; 2], Arc<Done>) {
    let (scenario, done) = (scenario(mechanism), Arc::<Done>::default());
    let node = Node::new(&gateway(mechanism), done.clone());
    let mut node = Some(Box::new(node) as Box<dyn Middlebox<Length> + Send>);
    let with_gateway = World::with_middleboxes(&scenario, seed, |_| node.take());
    ([run(World::new(&scenario, seed)), run(with_gateway)], done)
}

#[test]
fn hosts_cannot_tell_the_gateway_from_the_mechanism_in_the_simulator() {
    let mechanisms = || WITH_MIRROR.into_iter().chain(WITHOUT).chain([WAKE]);
    for (mechanism, seed) in (1..=3).flat_map(|seed| mechanisms().map(move |m| (m, seed))) {
        let ([simulated, through_gateway], done) = both(mechanism, seed);
        assert_eq!(through_gateway.flows, simulated.flows, "{mechanism}");
        assert_eq!(through_gateway.links, simulated.links, "{mechanism}");
        let [flow] = &through_gateway.flows[..] else { panic!("{through_gateway:?}") };
        assert_eq!(flow.delivered_bytes, BYTES, "{mechanism}");
        assert!(done.passed.load(Relaxed) > 1_000, "{mechanism}: {done:?}");
    }
}

#[test]
fn what_the_gateway_kept_through_outages_it_sends_byte_for_byte() {
    for mechanism in WITH_MIRROR.into_iter().chain([WAKE]) {
        let ([_, through_gateway], done) = both(mechanism, 1);
        assert_eq!(through_gateway.flows[0].delivered_bytes, BYTES, "{mechanism}");
        let kept = done.kept.load(Relaxed);
        assert_eq!(kept > 0, mechanism != WAKE, "{mechanism}: wake's packets never wait");
        assert!(done.injected.load(Relaxed) > 0, "{mechanism}: {done:?}");
    }
}
