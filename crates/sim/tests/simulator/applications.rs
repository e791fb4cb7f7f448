//! What applications do with their connections: requests and answers, transfers that arrive,
//! pauses, video, calls; with queueing theory and arithmetic as oracles.

use crate::common::{self, run};
use airtcp_core::event::PlayerState;
use airtcp_core::{Event, Instant, Source, Subscriber};
use airtcp_sim::scenario::Scenario;
use airtcp_sim::{Observers, RunMetrics, World};
use airtcp_testing::CountingAllocator;

/// A server and a client over one link of 8 Mbit/s and 20 ms.
fn scenario(duration: u64, traffic: &str) -> Scenario {
    let text = format!(
        r#"
        duration = "{duration} s"
        node = [{{ name = "S" }}, {{ name = "C" }}]
        [[link]]
        between = ["S", "C"]
        rate = "8 Mbit/s"
        delay = "20 ms"
        queue = {{ limit = "10000 packets" }}
        {traffic}"#
    );
    common::parse(&text, &[])
}

fn flow(duration: u64, traffic: &str) -> Scenario {
    scenario(duration, &format!("[[flow]]\nname = \"f\"\nfrom = \"S\"\nto = \"C\"\n{traffic}"))
}

/// Events of receivers, with their times.
#[derive(Default)]
struct Log(Vec<(Instant, Event)>);

impl Subscriber for Log {
    fn on_event(&mut self, at: Instant, source: Source, event: &Event) {
        if let Source::Receiver(_) = source {
            self.0.push((at, *event));
        }
    }
}

fn events(scenario: &Scenario) -> (Vec<(Instant, Event)>, RunMetrics) {
    let mut log = Log::default();
    let mut world = World::new(scenario, 1);
    world.run(&mut Observers { events: Some(&mut log), ..Observers::default() });
    (log.0, world.metrics())
}

/// Bytes and times, s, of the transfers in the order of their ends.
fn completed(events: &[(Instant, Event)]) -> Vec<(u64, u64, f64)> {
    let completed = events.iter().filter_map(|(_, event)| match *event {
        Event::TransferCompleted { number, bytes, time } => {
            Some((number, bytes.get(), time.as_secs_f64()))
        }
        _ => None,
    });
    completed.collect()
}

/// A request of one packet and an answer of one packet take a round trip; the first one's also
/// waits for the handshake. Then comes the pause.
#[test]
fn a_request_takes_a_round_trip_and_the_first_one_two() {
    let scenario = flow(
        10,
        r#"start = "1 s"
        traffic = { kind = "requests", request = "100 B", answer = "1000 B", think = "500 ms", number = 5 }"#,
    );
    let (events, metrics) = events(&scenario);
    let transfers = completed(&events);
    assert_eq!(transfers.iter().map(|t| t.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    // 152 B and 1052 B at 1 MB/s, with timestamps, and 40 ms.
    let once = 0.040 + 152e-6 + 1052e-6;
    for &(number, bytes, time) in &transfers {
        // The handshake: two SYNs with their options.
        let opening = if number == 0 { 0.040 + 120e-6 } else { 0.0 };
        assert_eq!(bytes, 1000);
        assert!((time - once - opening).abs() < 1e-5, "{number}: {time}");
    }
    let ends: Vec<f64> = events
        .iter()
        .filter(|(_, event)| matches!(event, Event::TransferCompleted { .. }))
        .map(|(at, _)| at.as_secs_f64())
        .collect();
    for pair in ends.windows(2) {
        assert!((pair[1] - pair[0] - 0.5 - once).abs() < 1e-5, "{ends:?}");
    }
    let of = &metrics.transfers[0];
    assert_eq!((of.name.as_str(), of.started, of.completed, of.small_completed), ("f", 5, 5, 5));
    assert!((of.completion_p50.expect("five") / once - 1.0).abs() < 0.016);
    assert!((of.slowdown_p50.expect("five") - 1.0).abs() < 0.02, "{of:?}");
    // After its last answer the client closes, and the server after it.
    assert_eq!(
        (metrics.flows[0].state.as_str(), metrics.flows[0].delivered_bytes),
        ("Closed", 5000)
    );
}

#[test]
fn large_answers_fill_the_send_buffer_again_and_again() {
    let scenario = flow(
        60,
        r#"sender = { send-buffer = "20 kB" }
        traffic = { kind = "requests", answer = "3 MB", number = 2 }"#,
    );
    let metrics = run(&scenario, 1);
    assert_eq!((metrics.transfers[0].completed, metrics.flows[0].delivered_bytes), (2, 6_000_000));
}

#[test]
fn a_client_whose_server_vanishes_neither_ends_nor_spins() {
    let scenario = scenario(
        400,
        r#"[link.outage]
        listed = [["5 s", "400 s"]]
        [[flow]]
        from = "S"
        to = "C"
        traffic = { kind = "requests", answer = "10 kB", think = "100 ms" }"#,
    );
    let metrics = run(&scenario, 1);
    let of = &metrics.transfers[0];
    assert_eq!(of.started, of.completed + 1);
    assert!(metrics.events < 10_000, "{} events", metrics.events);
}

/// Each sample of the metrics is an event: for a transfer of one segment the handshake, the data and
/// the FIN.
#[test]
fn every_round_trip_that_a_sender_measures_is_an_event() {
    #[derive(Default)]
    struct Samples(Vec<f64>);
    impl Subscriber for Samples {
        fn on_event(&mut self, _: Instant, source: Source, event: &Event) {
            if let (Source::Sender(_), Event::Rtt { sample, .. }) = (source, event) {
                self.0.push(sample.as_secs_f64());
            }
        }
    }
    let scenario = flow(
        20,
        r#"traffic = { kind = "arrivals", per-second = 5, size = "1000 B", stop = "19 s" }"#,
    );
    let mut samples = Samples::default();
    let mut world = World::new(&scenario, 1);
    world.run(&mut Observers { events: Some(&mut samples), ..Observers::default() });
    let metrics = world.metrics();
    let completed = metrics.transfers[0].completed as usize;
    assert!(completed > 50 && samples.0.len() == 3 * completed, "{completed}, {:?}", samples.0);
    let least = samples.0.iter().copied().reduce(f64::min);
    assert_eq!(metrics.flows[0].rtt_min, least);
}

/// All that begins ends, and the mean load is as asked for.
#[test]
fn transfers_arrive_at_the_load_and_end() {
    let scenario = flow(
        1000,
        r#"traffic = { kind = "arrivals", load = 0.5, link = "S>C", size = { exponential = "20 kB" }, stop = "990 s" }"#,
    );
    let metrics = run(&scenario, 1);
    let of = &metrics.transfers[0];
    // 0.5 of 1 MB/s in transfers of 20 kB: 25 a second, 24750 in all; the standard deviation is 157.
    assert!((24_250..25_250).contains(&of.started), "{of:?}");
    assert_eq!((of.completed, of.aborted), (of.started, 0));
    let flow = &metrics.flows[0];
    // Tail loss probes.
    assert!(flow.retransmission_ratio < 1e-3, "{}", flow.retransmission_ratio);
    let delivered = flow.delivered_bytes as f64;
    // Twice the standard error of that many exponential sizes, and of their number.
    assert!((delivered / (0.5 * 990e6) - 1.0).abs() < 0.02, "{delivered}");
    assert!(flow.data_segments_sent > of.started && flow.rtt_p50.is_some());
    assert!(flow.sent_bytes >= flow.delivered_bytes);
}

/// The times between arrivals are exponential: their mean and their deviation agree.
#[test]
fn arrivals_are_a_poisson_process() {
    let scenario = flow(2000, r#"traffic = { kind = "arrivals", per-second = 5, size = "100 B" }"#);
    let (events, metrics) = events(&scenario);
    let started: Vec<f64> = events
        .iter()
        .filter_map(|(at, event)| match event {
            Event::TransferCompleted { time, .. } => Some(at.as_secs_f64() - time.as_secs_f64()),
            _ => None,
        })
        .collect();
    let gaps: Vec<f64> = started.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
    // Four standard errors of 10,000 gaps: 4 % of the mean; 5.7 % of the deviation.
    assert!((mean / 0.2 - 1.0).abs() < 0.04, "{mean}");
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.057, "{variance}");
    assert_eq!(metrics.transfers[0].completed, started.len() as u64);
}

/// A transfer that is alone takes the handshake, the way, and its bytes: slowdown 1.
#[test]
fn a_transfer_alone_has_no_slowdown() {
    let scenario = flow(
        500,
        r#"sender = { initial-window = "100 segments" }
        traffic = { kind = "arrivals", per-second = 0.1, size = "50 kB" }"#,
    );
    let of = &run(&scenario, 1).transfers[0];
    assert!(of.completed > 30, "{of:?}");
    let (least, mean) = (of.slowdown_p50.expect("some"), of.slowdown_mean.expect("some"));
    assert!((0.985..1.03).contains(&least) && (0.99..1.05).contains(&mean), "{of:?}");
}

/// M/G/1 with processor sharing: mean slowdown 1/(1 - load), for any sizes. TCP shares the link
/// only roughly, so the window is wide; but it is the same for both distributions, unlike that of
/// a first-in first-out queue.
#[test]
fn slowdown_grows_with_the_load_as_processor_sharing_has_it() {
    let slowdown = |load: f64, size: &str| {
        let scenario = flow(
            2000,
            &format!(
                r#"traffic = {{ kind = "arrivals", load = {load}, link = "S>C", size = {size} }}"#
            ),
        );
        run(&scenario, 1).transfers[0].slowdown_mean.expect("transfers")
    };
    let exponential = r#"{ exponential = "200 kB" }"#;
    let [low, high] = [0.1, 0.7].map(|load| slowdown(load, exponential));
    let ratio = high / low;
    // (1 - 0.1) / (1 - 0.7) = 3.
    assert!((2.0..4.5).contains(&ratio), "{low} and {high}");
}

/// The memory of ended connections is used again: what a run holds does not grow with their number.
#[test]
fn ended_transfers_leave_nothing_behind() {
    let scenario = flow(2000, r#"traffic = { kind = "arrivals", per-second = 50, size = "2 kB" }"#);
    let mut world = World::new(&scenario, 1);
    world.run_until(Instant::from_secs(200), &mut Observers::default());
    let before = CountingAllocator::live_bytes();
    world.run_until(Instant::from_secs(2000), &mut Observers::default());
    let grown = CountingAllocator::live_bytes().saturating_sub(before);
    assert!(world.metrics().transfers[0].completed > 90_000);
    assert!(grown < 100_000, "{grown} bytes more");
}

#[test]
fn transfers_that_never_get_through_are_aborted() {
    let scenario = scenario(
        600,
        r#"[link.outage]
        listed = [["5 s", "600 s"]]
        [[flow]]
        from = "S"
        to = "C"
        traffic = { kind = "arrivals", per-second = 2, size = "10 kB", stop = "10 s" }
        sender = { user-timeout = "30 s" }"#,
    );
    let of = &run(&scenario, 1).transfers[0];
    assert!(of.completed > 0 && of.aborted > 0, "{of:?}");
    assert_eq!(of.completed + of.aborted, of.started);
}

/// Neither observers nor slices change a run with connections that come and go.
#[test]
fn a_run_with_arrivals_is_one_trajectory() {
    let scenario = scenario(
        30,
        r#"[[flow]]
        name = "a"
        from = "S"
        to = "C"
        traffic = { kind = "arrivals", load = 0.8, link = "S>C", size = { pareto = { shape = 1.1, min = "1 kB", max = "1 MB" } } }
        [[flow]]
        name = "b"
        from = "C"
        to = "S"
        traffic = { kind = "arrivals", per-second = 20, size = "5 kB" }
        [[flow]]
        name = "film"
        from = "S"
        to = "C"
        traffic = { kind = "video", ladder = ["300 kbit/s", "1 Mbit/s"] }"#,
    );
    let whole = run(&scenario, 3);
    let mut world = World::new(&scenario, 3);
    for ms in (0..=30_000).step_by(7) {
        world.run_until(Instant::from_millis(ms), &mut Observers::default());
    }
    world.run(&mut Observers::default());
    assert_eq!(whole, world.metrics());
    let mut log = Log::default();
    let mut world = World::new(&scenario, 3);
    world.run(&mut Observers { events: Some(&mut log), ..Observers::default() });
    assert_eq!(whole, world.metrics());
    assert_ne!(whole, run(&scenario, 4));
}

/// Periods of 1 s at 800 kbit/s and pauses of 3 s: a quarter of the rate on average.
#[test]
fn a_source_with_pauses_sends_at_its_rate_in_between() {
    let scenario =
        flow(40, r#"traffic = { kind = "on-off", rate = "800 kbit/s", on = "1 s", off = "3 s" }"#);
    let flow = &run(&scenario, 1).flows[0];
    assert_eq!(flow.delivered_bytes, 1_000_000);
    let random = self::flow(
        4000,
        r#"traffic = { kind = "on-off", rate = "800 kbit/s", on = { exponential = "1 s" }, off = { pareto = { shape = 1.5, min = "1 s", max = "100 s" } } }"#,
    );
    // The mean of this Pareto distribution is 2.73 s.
    let rate = run(&random, 1).flows[0].goodput;
    assert!((rate / (800e3 / 3.73) - 1.0).abs() < 0.15, "{rate}");
}

/// With a link of 8 Mbit/s a video of at most 2 Mbit/s never stalls, and climbs to the top.
#[test]
fn a_video_with_room_plays_at_its_best() {
    for adaptation in ["buffer", "throughput"] {
        let scenario = flow(
            200,
            &format!(
                r#"traffic = {{ kind = "video", ladder = ["250 kbit/s", "1 Mbit/s", "2 Mbit/s"], length = "120 s", adaptation = "{adaptation}" }}"#
            ),
        );
        let (events, metrics) = events(&scenario);
        let video = &metrics.videos[0];
        assert_eq!(
            (video.state.as_str(), video.stalls, video.segments),
            ("Ended", 0, 30),
            "{video:?}"
        );
        assert_eq!((video.play_time, video.buffer), (120.0, 0.0));
        assert!(video.startup_delay.expect("it started") < 2.0, "{video:?}");
        assert!(video.bitrate_mean.expect("segments") > 1.4e6, "{video:?}");
        let states: Vec<PlayerState> = events
            .iter()
            .filter_map(|(_, event)| match event {
                Event::Player { state, .. } => Some(*state),
                _ => None,
            })
            .collect();
        assert_eq!(states, [PlayerState::Playing, PlayerState::Ended]);
        assert_eq!(metrics.flows[0].state, "Closed");
    }
}

/// On a link that carries half of the lowest bitrate, half of the time is stalls.
#[test]
fn a_video_without_room_stalls() {
    let scenario =
        flow(1000, r#"traffic = { kind = "video", ladder = ["16 Mbit/s", "20 Mbit/s"] }"#);
    let video = &run(&scenario, 1).videos[0];
    assert!(video.stalls > 20 && video.bitrate_switches == 0, "{video:?}");
    let share = video.stall_time / 1000.0;
    assert!((0.45..0.58).contains(&share), "{video:?}");
    let total = video.startup_delay.expect("it started") + video.stall_time + video.play_time;
    assert!((total - 1000.0).abs() < 1e-6, "{total}");
}

/// Frames of 20 ms on a path of constant delay: all are played, and R is that of the codec less
/// the delay.
#[test]
fn a_call_on_a_quiet_path_sounds_as_its_codec() {
    let scenario = scenario(10, "[[call]]\nfrom = \"S\"\nto = \"C\"\nstop = \"8 s\"");
    let metrics = run(&scenario, 1);
    let call = &metrics.calls[0];
    assert_eq!((call.name.as_str(), call.frames), ("S-C", 400));
    assert_eq!((call.frames_lost, call.frames_late, call.bursts), (0, 0, 0));
    // 20 ms on the way, 200 B at 1 MB/s, 60 ms in the jitter buffer, 20 ms of a frame.
    let delay = call.mouth_to_ear_delay.expect("frames");
    assert!((delay - 0.1002).abs() < 1e-9, "{delay}");
    assert!((call.r_factor.expect("frames") - (93.2 - 0.024 * 100.2)).abs() < 1e-6);
    assert!((call.mos.expect("frames") - 4.36).abs() < 0.01, "{call:?}");
    assert_eq!((metrics.udp[0].packets_received, metrics.udp[0].throughput), (400, 80_000.0));
}

#[test]
fn a_lossy_path_conceals_frames() {
    let mut scenario = scenario(2000, "[[call]]\nfrom = \"S\"\nto = \"C\"");
    scenario.links[0].config.loss.model = airtcp_net::config::LossConfig::Bernoulli { p: 0.05 };
    let call = &run(&scenario, 1).calls[0];
    let lost = call.frames_lost as f64 / call.frames as f64;
    // Four standard deviations of 100,000 frames.
    assert!((lost - 0.05).abs() < 0.0028, "{call:?}");
    // Random losses come in bursts of 1/(1 - p), which is what the model reckons with.
    let burst = call.frames_lost as f64 / call.bursts as f64;
    assert!((burst * 0.95 - 1.0).abs() < 0.02, "{call:?}");
    let expected = 93.2 - 0.024 * 100.2 - 95.0 * 5.0 / 30.1;
    assert!((call.r_factor.expect("frames") - expected).abs() < 1.0, "{call:?}");
}

/// A bulk transfer behind which frames queue makes them late.
#[test]
fn frames_behind_a_bulk_transfer_are_late() {
    let scenario = scenario(
        30,
        r#"[[call]]
        from = "S"
        to = "C"
        [[flow]]
        from = "S"
        to = "C"
        start = "10 s""#,
    );
    let call = &run(&scenario, 1).calls[0];
    assert!(call.frames_late > 500 && call.longest_burst > 100, "{call:?}");
    assert!(call.mos.expect("frames") < 2.5, "{call:?}");
}

/// Datagrams into a FIFO: mean wait of M/D/1 and of M/M/1 (Kleinrock, Queueing Systems I, 1975,
/// §5.6): S rho / (2 (1 - rho)) and S rho / (1 - rho).
#[test]
fn poisson_datagrams_wait_as_in_m_d_1_and_m_m_1() {
    for (size, factor) in [(r#""1000 B""#, 0.5), (r#"{ exponential = "1000 B" }"#, 1.0)] {
        for load in [0.3, 0.7] {
            let rate = format!("{} kbit/s", 8000.0 * load);
            let scenario = scenario(
                2000,
                &format!(
                    "[[udp]]\nfrom = \"S\"\nto = \"C\"\nrate = \"{rate}\"\nsize = {size}\narrivals = \"poisson\""
                ),
            );
            let waits = (1..=4).map(|seed| {
                let udp = &run(&scenario, seed).udp[0];
                // Less the way and the service of a mean packet, 1 ms.
                udp.delay_mean.expect("packets") - 0.021
            });
            let wait = waits.sum::<f64>() / 4.0;
            let expected = 0.001 * factor * load / (1.0 - load);
            // Exponential sizes below the header are cut: 0.04 % of the bytes.
            assert!(
                (wait / expected - 1.0).abs() < 0.04,
                "{size} at {load}: {wait}, not {expected}"
            );
        }
    }
}
