//! TCP against closed formulas: throughput under random loss (Padhye, Firoiu, Towsley and Kurose
//! 1998, "PFTK"; Mathis, Semke, Mahdavi and Ott 1997), window limits, the sawtooth, slow start.

use crate::common::{Network, wire};
use airtcp_core::{Bytes, DataRate, Duration, Event, Instant, Source, Subscriber};
use airtcp_net::config::LossConfig;
use airtcp_sim::{Observers, World};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{AckConfig, InitialWindow, Recovery};

const MSS: f64 = 1460.0;

/// The full model of PFTK, packets/s, without a window limit.
fn pftk(p: f64, rtt: f64, t0: f64, b: f64) -> f64 {
    let c = (2.0 + b) / (3.0 * b);
    let w = c + (8.0 * (1.0 - p) / (3.0 * b * p) + c * c).sqrt();
    let q3 = 1.0 - (1.0 - p).powi(3);
    let q = (q3 * (1.0 + (1.0 - p).powi(3) * (1.0 - (1.0 - p).powf(w - 3.0)))
        / (1.0 - (1.0 - p).powf(w)))
    .min(1.0);
    let f = 1.0
        + p
        + 2.0 * p.powi(2)
        + 4.0 * p.powi(3)
        + 8.0 * p.powi(4)
        + 16.0 * p.powi(5)
        + 32.0 * p.powi(6);
    ((1.0 - p) / p + w + q / (1.0 - p)) / (rtt * (b * w / 2.0 + 1.0) + q * t0 * f / (1.0 - p))
}

fn mathis(p: f64, rtt: f64, b: f64) -> f64 {
    (1.5 / b).sqrt() / (rtt * p.sqrt())
}

/// Counts loss indications as in Padhye et al. 1998 §III: fast retransmits and sequences of
/// time-outs.
#[derive(Default)]
struct LossIndications(u64);

impl Subscriber for LossIndications {
    fn on_event(&mut self, _: Instant, _: Source, event: &Event) {
        let indication =
            matches!(event, Event::FastRetransmit { .. } | Event::RtoExpired { count: 1, .. });
        self.0 += u64::from(indication);
    }
}

/// A flow under random loss.
struct UnderLoss {
    /// Packets per second.
    goodput: f64,
    /// Loss indications per packet sent, which PFTK's authors take for p in measurements.
    indications: f64,
}

/// One flow under Bernoulli loss of data, RTT 100 ms constant, three seeds of 1000 s.
fn under_loss(recovery: Recovery, ack: AckConfig, p: f64) -> UnderLoss {
    let tcp = TcpConfig {
        recovery,
        ack,
        receive_buffer: Bytes(8 << 20),
        send_buffer: Bytes(8 << 20),
        window_scaling: true,
        ..TcpConfig::default()
    };
    // Fast enough that serialisation and queueing do not add to the RTT.
    let link = wire(DataRate::mbps(10_000), Duration::from_millis(50), 100_000);
    let seconds = 1000;
    let mut net = Network::new(Duration::from_secs(seconds));
    let (a, b) = (net.node(), net.node());
    net.connect(a, b, &link);
    net.flow(a, b, None, &tcp);
    net.0.links[0].config.loss.model = LossConfig::Bernoulli { p };
    let seeds = 1..=3;
    let (mut indications, mut delivered, mut sent) = (LossIndications::default(), 0, 0);
    for seed in seeds {
        let mut world = World::new(&net.0, seed);
        world.run(&mut Observers { events: Some(&mut indications), ..Observers::default() });
        let flow = &world.metrics().flows[0];
        delivered += flow.delivered_bytes;
        sent += flow.data_segments_sent;
    }
    UnderLoss {
        goodput: delivered as f64 / 3.0 / MSS / seconds as f64,
        indications: indications.0 as f64 / sent as f64,
    }
}

#[test]
fn formulas_give_the_printed_numbers() {
    // Mbit/s at MSS 1460 B, RTT 100 ms, T0 1 s, computed independently.
    let mbps = |packets: f64| packets * MSS * 8.0 / 1e6;
    for (p, m, full) in [(1e-3, 4.524, 4.399), (1e-2, 1.431, 1.154), (2e-2, 1.012, 0.691)] {
        assert!((mbps(mathis(p, 0.1, 1.0)) - m).abs() < 6e-4);
        assert!((mbps(pftk(p, 0.1, 1.0, 1.0)) - full).abs() < 6e-4, "{p}");
    }
}

/// Within 20 % of PFTK for 1e-3 ≤ p ≤ 2e-2.
///
/// PFTK's p is the rate of loss *indications* (a fast retransmit, a sequence of time-outs); all
/// further losses in the same round belong to the first one. Its authors divide the number of
/// indications by the number of packets sent (Padhye et al. 1998 §II, §III). NewReno and SACK
/// repair several independent losses of a round in one recovery, so their rate is lower than the
/// loss probability: 1.7e-2 for 2e-2. At the measured p every point is within 13 %. At the loss
/// probability itself the window holds too, except for NewReno and SACK with an ACK for each
/// segment at 2e-2: 1.23 and 1.21, where ns-2.35 in this set-up (window 5000, minimum RTO 1 s, no
/// Limited Transmit, two seeds of 1000 s) gives 1.27 and 1.26.
#[test]
fn throughput_under_random_loss_follows_pftk() {
    let delayed = AckConfig::Delayed { segments: 2, timeout: Duration::from_millis(200), quick: 0 };
    let reno = Recovery::Reno { avoid_multi_fr: true };
    for (ack, b) in [(AckConfig::Every, 1.0), (delayed, 2.0)] {
        for recovery in [reno, Recovery::NewReno, Recovery::Sack] {
            for p in [1e-3, 3e-3, 1e-2, 2e-2] {
                let UnderLoss { goodput, indications } = under_loss(recovery, ack, p);
                let to = |p: f64| goodput / pftk(p, 0.1, 1.0, b);
                let (nominal, measured) = (to(p), to(indications));
                let case = format!("{recovery:?} b={b} p={p}: {nominal:.3}");
                eprintln!("{case}; p={indications:.5}: {measured:.3}");
                let modelled = matches!(recovery, Recovery::Reno { .. });
                assert!((0.8..=1.2).contains(&measured), "{case}; measured {measured:.3}");
                let gate = if p == 2e-2 && b == 1.0 && !modelled { 0.8..=1.4 } else { 0.8..=1.2 };
                assert!(gate.contains(&nominal), "{case}");
            }
        }
    }
}

/// Mathis et al.: a slope of −½ in log-log below 1e-2.
#[test]
fn throughput_falls_with_the_square_root_of_loss() {
    let at = |p: f64| under_loss(Recovery::Sack, AckConfig::Every, p).goodput;
    let slope = (at(1e-3).ln() - at(1e-4).ln()) / (1e-3f64.ln() - 1e-4f64.ln());
    eprintln!("slope {slope:.3}");
    assert!((-0.55..=-0.45).contains(&slope), "{slope:.3}");
}

/// Utilisation by one Reno flow over a drop-tail buffer of β bandwidth-delay products, from the
/// area under its sawtooth: U = ¾(1+β)²/(1+β+β²), ±1.5 %.
#[test]
fn sawtooth_utilisation_depends_on_the_buffer() {
    let (rate, rtt_ms, mss) = (DataRate::mbps(20), 100, 1000_u64);
    let bdp = 20_000_000.0 * 0.1 / 8.0 / 1040.0; // packets
    for beta in [0.1, 0.25, 0.5, 0.75, 1.0] {
        let buffer = (beta * bdp) as u64;
        let beta = buffer as f64 / bdp;
        let expected = if beta >= 1.0 {
            1.0
        } else {
            0.75 * (1.0 + beta) * (1.0 + beta) / (1.0 + beta + beta * beta)
        };
        let tcp = TcpConfig {
            mss: mss as u16,
            recovery: Recovery::Sack,
            receive_buffer: Bytes(8 << 20),
            send_buffer: Bytes(8 << 20),
            window_scaling: true,
            // Slow start would overshoot by half a window.
            initial_ssthresh: Some(Bytes((bdp / 2.0) as u64 * mss)),
            ..TcpConfig::default()
        };
        let mut net = Network::new(Duration::from_secs(1000));
        let (a, b) = (net.node(), net.node());
        net.connect(a, b, &wire(rate, Duration::from_millis(rtt_ms / 2), buffer));
        net.flow(a, b, None, &tcp);
        let mut world = World::new(&net.0, 1);
        let warm_up = airtcp_core::Instant::from_secs(200);
        world.run_until(warm_up, &mut Observers::default());
        let before = world.metrics().flows[0].delivered_bytes;
        world.run(&mut Observers::default());
        let metrics = &world.metrics().flows[0];
        assert_eq!(metrics.timeouts, 0);
        let packets = (metrics.delivered_bytes - before) as f64 / mss as f64;
        let utilisation = packets * 1040.0 * 8.0 / 800.0 / 20e6;
        eprintln!("beta {beta:.3}: {utilisation:.4} against {expected:.4}");
        assert!(
            (utilisation - expected).abs() < 0.015,
            "beta {beta:.3}: {utilisation:.4} against {expected:.4}"
        );
    }
}

/// W·MSS/RTT while the window is the limit, otherwise the link rate.
#[test]
fn window_limited_goodput_is_window_over_rtt() {
    for (window, rate) in [(8_u64, DataRate::mbps(10)), (20, DataRate::kbps(250))] {
        let tcp =
            TcpConfig { mss: 1000, receive_buffer: Bytes(window * 1000), ..TcpConfig::default() };
        let delay = Duration::from_millis(175);
        let mut net = Network::new(Duration::from_secs(400));
        let (a, b) = (net.node(), net.node());
        net.connect(a, b, &wire(rate, delay, 100));
        net.flow(a, b, None, &tcp);
        let mut world = World::new(&net.0, 1);
        world.run_until(airtcp_core::Instant::from_secs(100), &mut Observers::default());
        let before = world.metrics().flows[0].delivered_bytes;
        world.run(&mut Observers::default());
        let goodput = (world.metrics().flows[0].delivered_bytes - before) as f64 / 300.0;
        let transmission = 1040.0 * 8.0 / rate.bits_per_sec() as f64;
        let ack = 40.0 * 8.0 / rate.bits_per_sec() as f64;
        let rtt = 0.350 + transmission + ack;
        let limit = (window as f64 * 1000.0 / rtt).min(1000.0 / transmission);
        assert!((goodput / limit - 1.0).abs() < 0.005, "{goodput} against {limit}");
    }
}

/// A burst of ten segments queues first at 10 Mbit/s, then at 1 Mbit/s: segment k waits for k
/// transmissions on the slower link in all, wherever it does.
#[test]
fn the_queueing_delay_of_a_flow_is_the_sum_over_its_links() {
    let tcp = TcpConfig { initial_window: InitialWindow::Segments(10), ..TcpConfig::default() };
    let mut net = Network::new(Duration::from_secs(2));
    let (a, r, b) = (net.node(), net.node(), net.node());
    let delay = Duration::from_millis(5);
    net.connect(a, r, &wire(DataRate::mbps(10), delay, 100));
    net.connect(r, b, &wire(DataRate::mbps(1), delay, 100));
    net.flow(a, b, Some(Bytes(10 * 1460)), &tcp);
    let mut world = World::new(&net.0, 1);
    world.measure_queueing_delays();
    world.run(&mut Observers::default());
    let flow = &world.metrics().flows[0];
    // Of the 13 segments, SYN and the handshake's ACK do not wait: the seventh is data segment 4.
    let expected = [(flow.queueing_delay_p50, 4.0), (flow.queueing_delay_p99, 10.0)];
    for (delay, k) in expected {
        let (delay, expected) = (delay.expect("segments"), k * 0.012);
        assert!((delay / expected - 1.0).abs() < 0.02, "{delay} s against {expected} s");
    }
}

/// RFC 5681 §3.1: after k round trips 2^k − 1 segments from IW 1 with an ACK for each segment; with
/// delayed ACKs a factor of about 1.5 instead of 2.
#[test]
fn slow_start_doubles_each_round_trip() {
    let sent_after = |ack, round_trips: u64| {
        let tcp = TcpConfig {
            ack,
            initial_window: InitialWindow::Segments(1),
            receive_buffer: Bytes(8 << 20),
            send_buffer: Bytes(8 << 20),
            window_scaling: true,
            ..TcpConfig::default()
        };
        let mut net = Network::new(Duration::from_secs(10));
        let (a, b) = (net.node(), net.node());
        net.connect(a, b, &wire(DataRate::mbps(10_000), Duration::from_millis(50), 10_000));
        net.flow(a, b, None, &tcp);
        let mut world = World::new(&net.0, 1);
        // The handshake takes the first round trip.
        let until = airtcp_core::Instant::from_millis(100 * (round_trips + 1) - 10);
        world.run_until(until, &mut Observers::default());
        world.metrics().flows[0].data_segments_sent
    };
    for k in 1..=8 {
        assert_eq!(sent_after(AckConfig::Every, k), (1 << k) - 1);
    }
    let delayed = AckConfig::Delayed { segments: 2, timeout: Duration::from_millis(40), quick: 0 };
    let growth = sent_after(delayed, 12) as f64 / sent_after(delayed, 11) as f64;
    assert!((1.4..=1.6).contains(&growth), "{growth}");
}
