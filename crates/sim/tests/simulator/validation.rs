//! Long flows over a queue of today beside what ns-3 publishes for the same path: the acceptance
//! windows of its `tcp-validation` (50 Mbit/s, CoDel, segments of 1448 bytes, flow from 5 s on).
//!
//! The windows are ns-3's, copied as numbers. Where ours lies outside, the test states our value
//! and docs/measurements/queues.md the reason.

use crate::common;
use airtcp_core::Instant;
use airtcp_core::event::{Cause, Event, Source, Subscriber};
use airtcp_sim::metrics::RunMetrics;
use airtcp_sim::{Observers, World};

/// Segment size of the published runs, bytes.
const MSS: f64 = 1448.0;

/// The actions of a flow, in order of time (seconds).
#[derive(Default)]
struct History {
    /// Time (seconds) and cwnd (segments).
    cwnd: Vec<(f64, f64)>,
    /// DCTCP.Alpha at each reduction for a mark: `to` is `from` less half of that share (RFC 8257
    /// §3.3, step 9).
    alpha: Vec<(f64, f64)>,
    /// Bytes delivered so far.
    delivered: Vec<(f64, f64)>,
}

impl Subscriber for History {
    fn on_event(&mut self, at: Instant, source: Source, event: &Event) {
        let at = at.since(Instant::ZERO).as_secs_f64();
        match (source, event) {
            (Source::Sender(_), Event::Window { cwnd, .. }) => {
                self.cwnd.push((at, f64::from(*cwnd) / MSS));
            }
            (Source::Sender(_), Event::CwndReduced { cause: Cause::Ecn, from, to }) => {
                self.alpha.push((at, 2.0 * (1.0 - f64::from(*to) / f64::from(*from))));
            }
            (Source::Receiver(_), Event::Delivered { total }) => {
                self.delivered.push((at, total.0 as f64));
            }
            _ => {}
        }
    }
}

impl History {
    /// Mbit/s in each fifth of a second, named by its end, as ns-3 samples it.
    fn throughput(&self, end: f64) -> Vec<(f64, f64)> {
        let until = |t: f64| {
            let count = self.delivered.partition_point(|&(at, _)| at <= t);
            if count == 0 { 0.0 } else { self.delivered[count - 1].1 }
        };
        let bins = (end * 5.0) as u32;
        let ends = (1..=bins).map(|bin| f64::from(bin) / 5.0);
        ends.map(|t| (t, (until(t) - until(t - 0.2)) * 8.0 / 0.2 / 1e6)).collect()
    }
}

/// The least and the greatest value from `from` to `to` seconds; there must be one.
fn range(series: &[(f64, f64)], from: f64, to: f64) -> (f64, f64) {
    let values: Vec<_> =
        series.iter().filter(|(at, _)| (from..=to).contains(at)).map(|&(_, v)| v).collect();
    assert!(!values.is_empty(), "nothing from {from} s to {to} s");
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

/// One flow over the published path: a round trip of `rtt` ms, CoDel with these keys, and these
/// keys of `[tcp]`.
fn run(rtt: u64, seconds: u64, codel: &str, tcp: &str) -> (History, RunMetrics) {
    let text = format!(
        r#"
        duration = "{seconds} s"
        node = [{{ name = "A" }}, {{ name = "R" }}, {{ name = "B" }}]
        flow = [{{ from = "A", to = "B", start = "5 s" }}]
        [[link]]
        between = ["A", "R"]
        rate = "1000 Mbit/s"
        delay = "1 us"
        queue = {{ limit = "10000 packets" }}
        [[link]]
        between = ["R", "B"]
        rate = "50 Mbit/s"
        delay = "{} ms"
        queue = {{ kind = "codel", {codel} }}
        [tcp]
        send-buffer = "32768 kB"
        receive-buffer = "32768 kB"
        autotuning = false
        {tcp}"#,
        rtt / 2
    );
    let scenario = common::parse(&text, &[]);
    let mut history = History::default();
    let mut world = World::new(&scenario, 1);
    world.run(&mut Observers { events: Some(&mut history), ..Observers::default() });
    (history, world.metrics())
}

const DCTCP: &str = "congestion = \"dctcp\"\necn = \"dctcp\"";

/// The keys of the queue: marks for what waits longer than so many microseconds.
fn step(us: u64) -> String {
    format!("ecn = true, ce-threshold = \"{us} us\"")
}

fn within((least, greatest): (f64, f64), low: f64, high: f64) {
    assert!(low <= least && greatest <= high, "{least} to {greatest}, not {low} to {high}");
}

/// Nothing is lost, and nothing sent again.
fn only_marked(metrics: &RunMetrics) {
    let drops: u64 = metrics.links.iter().map(|link| link.queue_drops).sum();
    assert_eq!((drops, metrics.flows[0].retransmission_ratio), (0, 0.0));
}

/// Published for 10 ms: 48 to 49 Mbit/s after 5.6 s. Here the step of 1 ms gives 47.84 to 48.07.
#[test]
fn dctcp_at_10_ms_keeps_the_link_within_a_percent_of_full() {
    let (history, metrics) = run(10, 15, &step(1000), DCTCP);
    only_marked(&metrics);
    within(range(&history.throughput(15.0), 7.0, 15.0), 47.6, 48.3);
}

/// ns-3's path has a device queue of three packets below CoDel, whose wait is no sojourn. With one
/// of one packet, ns-3 3.37 has 48.13 to 48.25 Mbit/s, and alpha from 0.112 to 0.146. A packet of 1500
/// bytes takes 0.24 ms at 50 Mbit/s; here the step is so much later.
#[test]
fn dctcp_at_10_ms_and_a_step_a_packet_later_is_as_in_ns3_with_one_packet_below() {
    let (history, metrics) = run(10, 15, &step(1240), DCTCP);
    only_marked(&metrics);
    within(range(&history.throughput(15.0), 7.0, 15.0), 48.13, 48.31);
    within(range(&history.alpha, 7.0, 15.0), 0.095, 0.146);
}

/// Published for 10 ms: alpha 0.06 to 0.085 after 7 s, traced at each window. Here it is seen at
/// reductions only, after windows with marks: 0.099 to 0.134.
#[test]
fn dctcp_at_10_ms_reduces_by_a_share_above_the_published() {
    let (history, _) = run(10, 15, &step(1000), DCTCP);
    within(range(&history.alpha, 7.0, 15.0), 0.09, 0.145);
}

/// Published for 80 ms: less than 20 Mbit/s before 14 s, less than 48 before 30 s.
#[test]
fn dctcp_at_80_ms_grows_as_published() {
    let (history, metrics) = run(80, 40, &step(1000), DCTCP);
    only_marked(&metrics);
    let throughput = history.throughput(40.0);
    within(range(&throughput, 0.0, 13.99), 0.0, 20.0);
    within(range(&throughput, 0.0, 29.99), 0.0, 48.0);
    // Alpha begins at 1, and the first marks end slow start.
    assert!((history.alpha[0].1 - 1.0).abs() < 1e-6, "{:?}", history.alpha[0]);
}

/// Published for 80 ms: 47.5 to 48.5 Mbit/s after 32 s, alpha 0.015 to 0.025 after 34 s (which ns-3
/// does not check: its condition for a failure is below the one *and* above the other). Here single
/// fifths of a second fall to 46.22, and reductions have alpha from 0.026 to 0.057.
#[test]
fn dctcp_at_80_ms_fills_the_link_with_deeper_reductions_than_published() {
    let (history, _) = run(80, 40, &step(1000), DCTCP);
    let after: Vec<_> = history.throughput(40.0).into_iter().filter(|&(at, _)| at > 32.1).collect();
    within(range(&after, 32.0, 40.0), 46.1, 48.5);
    let mean = after.iter().map(|&(_, rate)| rate).sum::<f64>() / after.len() as f64;
    assert!((47.5..=48.5).contains(&mean), "{mean} Mbit/s on average");
    within(range(&history.alpha, 34.0, 40.0), 0.025, 0.065);
}

/// Local maxima of cwnd, segments, each before a fall by more than a tenth.
fn maxima(cwnd: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    let (mut peak, mut low, mut falling) = ((0.0, 0.0), 0.0, false);
    for &(at, value) in cwnd {
        if falling {
            low = value.min(low);
            if value > low + 5.0 {
                (falling, peak) = (false, (at, value));
            }
        } else if value >= peak.1 {
            peak = (at, value);
        } else if value < 0.9 * peak.1 {
            found.push(peak);
            (falling, low) = (true, value);
        }
    }
    found
}

/// Published for CUBIC at 50 ms: maxima of 511 segments at 5.46 s (slow start), 236 at 14.28 s and
/// 234 at 18.05 s. Here HyStart ends slow start after half of a round trip of ACKs, there after a
/// whole one: 293 at 5.46 s; then 233 at 14.22 s and 232 at 18.27 s.
#[test]
fn cubic_at_50_ms_has_the_published_maxima_after_a_lower_first_one() {
    let (history, _) = run(50, 20, "ecn = false", "");
    let maxima = maxima(&history.cwnd);
    let [first, rest @ ..] = &maxima[..] else { panic!("no maximum") };
    assert!((5.43..5.48).contains(&first.0) && (280.0..305.0).contains(&first.1), "{first:?}");
    let [second, third] = rest else { panic!("{maxima:?}") };
    for (found, at, segments) in [(second, 14.28, 236.0), (third, 18.05, 234.0)] {
        let differs = (found.0 - at).abs() > 0.3 || (found.1 - segments).abs() > 4.0;
        assert!(!differs, "{found:?} is not {segments} segments at {at} s");
    }
}
