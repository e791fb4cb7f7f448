//! Results for people: one row per flow, and on request per link and station, with a confidence
//! interval if there are several runs.

use crate::aligned;
use crate::estimate::Estimate;
use airtcp_sim::metrics::{
    CallMetrics, FlowMetrics, LinkMetrics, QuicMetrics, RunMetrics, StationMetrics,
    TransferMetrics, UdpMetrics, VideoMetrics,
};
use std::fmt::Write;

/// The table of one or more runs of the same scenario.
pub(crate) fn table(runs: &[RunMetrics]) -> String {
    let first = &runs[0];
    let mut out = format!("{}: {} s", first.scenario, first.duration);
    let _ = match runs {
        [only] => writeln!(out, ", seed {}", only.seed),
        _ => writeln!(out, ", {} runs, mean ± 95 % confidence interval", runs.len()),
    };
    let tables = [
        tcp(runs),
        quic(runs),
        fairness(runs),
        transfers(runs),
        videos(runs),
        calls(runs),
        udp(runs),
    ];
    out += &tables.into_iter().flatten().collect::<Vec<_>>().join("\n");
    out
}

/// What one of several things did, in each run.
struct InRuns<'a, T>(Vec<&'a T>);

impl<T> InRuns<'_, T> {
    fn mean(&self, value: impl Fn(&T) -> f64) -> Estimate {
        Estimate::of(&self.0.iter().map(|it| value(it)).collect::<Vec<_>>())
    }

    fn count(&self, value: impl Fn(&T) -> u64) -> String {
        self.mean(|it| value(it) as f64).show_count()
    }

    /// Over those runs that have it; `-` if none has.
    fn mean_if_any(&self, value: impl Fn(&T) -> Option<f64>, decimals: usize) -> String {
        let known: Vec<f64> = self.0.iter().filter_map(|it| value(it)).collect();
        if known.is_empty() { "-".to_owned() } else { Estimate::of(&known).show(decimals) }
    }

    fn ms(&self, seconds: impl Fn(&T) -> Option<f64>) -> String {
        self.mean_if_any(|it| seconds(it).map(|s| s * 1e3), 1)
    }

    /// The time that a transfer took, of those runs in which it finished.
    fn download(&self, time: impl Fn(&T) -> Option<f64>) -> String {
        match self.0.iter().filter(|it| time(it).is_some()).count() {
            n if n == 0 || n == self.0.len() => self.mean_if_any(time, 3),
            n => format!("{n} of {} finished", self.0.len()),
        }
    }

    /// In how many of the runs something holds, if in any.
    fn note(&self, what: &str, holds: impl Fn(&T) -> bool) -> Option<String> {
        match (self.0.iter().filter(|it| holds(it)).count(), self.0.len()) {
            (0, _) => None,
            (_, 1) => Some(what.to_owned()),
            (n, all) => Some(format!("{what} in {n} of {all}")),
        }
    }
}

/// Titles, and a row for each of several things, with these columns flush left; `None` without any.
fn rows_of<T, const N: usize>(
    runs: &[RunMetrics],
    list: fn(&RunMetrics) -> &[T],
    titles: [&str; N],
    left: &[usize],
    row: impl Fn(&T, InRuns<'_, T>) -> [String; N],
) -> Option<String> {
    let mut rows = vec![titles.map(str::to_owned)];
    for (i, first) in list(&runs[0]).iter().enumerate() {
        rows.push(row(first, InRuns(runs.iter().map(|run| &list(run)[i]).collect())));
    }
    (rows.len() > 1).then(|| aligned(&rows, left))
}

/// Jain's index of several flows.
fn fairness(runs: &[RunMetrics]) -> Option<String> {
    let index = InRuns(runs.iter().collect()).mean_if_any(|run| run.fairness, 3);
    let flows = runs[0].flows.len() + runs[0].quic.len();
    (flows > 1).then(|| format!("fairness of the goodputs (Jain): {index}\n"))
}

/// The rows of TCP flows.
fn tcp(runs: &[RunMetrics]) -> Option<String> {
    let (unit, factor) = unit(runs.iter().flat_map(|r| &r.flows).map(|f| f.throughput));
    let [goodput, throughput] = ["goodput", "throughput"].map(|what| format!("{what} {unit}"));
    let titles = [
        "flow",
        &goodput,
        &throughput,
        "download s",
        "RTT ms",
        "retransmitted %",
        "time-outs",
        "cwnd cuts",
        "limited by",
        "",
    ];
    rows_of(
        runs,
        |run| &run.flows,
        titles,
        &[0, 8, 9],
        |FlowMetrics { name, .. }, all| {
            let notes = [
                all.note("aborted", |f| f.aborted.is_some()),
                all.note("no route", |f| f.no_route_drops > 0),
            ];
            [
                name.clone(),
                all.mean(|f| f.goodput * factor).show(3),
                all.mean(|f| f.throughput * factor).show(3),
                all.download(|f| f.download_time),
                all.ms(|f| f.rtt_p50),
                all.mean(|f| f.retransmission_ratio * 100.0).show(2),
                all.count(|f| f.timeouts),
                all.count(|f| f.cwnd_reductions),
                limited_by(&all),
                notes.into_iter().flatten().collect::<Vec<_>>().join(", "),
            ]
        },
    )
}

/// The rows of QUIC flows.
fn quic(runs: &[RunMetrics]) -> Option<String> {
    let (unit, factor) = unit(runs.iter().flat_map(|r| &r.quic).map(|f| f.throughput));
    let [goodput, throughput] = ["goodput", "throughput"].map(|what| format!("{what} {unit}"));
    let titles = [
        "QUIC flow",
        &goodput,
        &throughput,
        "download s",
        "last RTT ms",
        "lost %",
        "congestion events",
        "",
    ];
    rows_of(
        runs,
        |run| &run.quic,
        titles,
        &[0, 7],
        |QuicMetrics { name, .. }, all| {
            // Of a single run, the reason.
            let aborted = match &all.0[..] {
                [only] => only.aborted.clone(),
                _ => all.note("aborted", |f| f.aborted.is_some()),
            };
            [
                name.clone(),
                all.mean(|f| f.goodput * factor).show(3),
                all.mean(|f| f.throughput * factor).show(3),
                all.download(|f| f.download_time),
                all.ms(|f| f.srtt),
                all.mean(|f| f.loss_ratio * 100.0).show(2),
                all.count(|f| f.congestion_events),
                aborted.unwrap_or_default(),
            ]
        },
    )
}

/// The rows of flows with requests or arriving transfers.
fn transfers(runs: &[RunMetrics]) -> Option<String> {
    let titles =
        ["transfers of", "completed", "mean ms", "p50 ms", "p95 ms", "p99 ms", "slowdown p99"];
    rows_of(
        runs,
        |run| &run.transfers,
        titles,
        &[0],
        |TransferMetrics { name, .. }, all| {
            [
                name.clone(),
                all.count(|it| it.completed),
                all.ms(|it| it.completion_mean),
                all.ms(|it| it.completion_p50),
                all.ms(|it| it.completion_p95),
                all.ms(|it| it.completion_p99),
                all.mean_if_any(|it| it.slowdown_p99, 1),
            ]
        },
    )
}

/// The rows of flows with a video.
fn videos(runs: &[RunMetrics]) -> Option<String> {
    let titles = ["video", "startup s", "stalls", "stalled s", "bitrate Mbit/s", "switches"];
    rows_of(
        runs,
        |run| &run.videos,
        titles,
        &[0],
        |VideoMetrics { name, .. }, all| {
            [
                name.clone(),
                all.mean_if_any(|it| it.startup_delay, 2),
                all.count(|it| it.stalls),
                all.mean(|it| it.stall_time).show(2),
                all.mean_if_any(|it| it.bitrate_mean.map(|rate| rate * 1e-6), 3),
                all.count(|it| it.bitrate_switches),
            ]
        },
    )
}

/// The rows of calls.
fn calls(runs: &[RunMetrics]) -> Option<String> {
    let titles = ["call", "lost %", "late %", "delay p95 ms", "mouth to ear ms", "MOS"];
    let percent = |part: u64, call: &CallMetrics| {
        (call.frames > 0).then(|| 100.0 * part as f64 / call.frames as f64)
    };
    rows_of(
        runs,
        |run| &run.calls,
        titles,
        &[0],
        |CallMetrics { name, .. }, all| {
            [
                name.clone(),
                all.mean_if_any(|it| percent(it.frames_lost, it), 2),
                all.mean_if_any(|it| percent(it.frames_late, it), 2),
                all.ms(|it| it.delay_p95),
                all.ms(|it| it.mouth_to_ear_delay),
                all.mean_if_any(|it| it.mos, 2),
            ]
        },
    )
}

/// The rows of sources of datagrams.
fn udp(runs: &[RunMetrics]) -> Option<String> {
    let (unit, factor) = unit(runs.iter().flat_map(|r| &r.udp).map(|source| source.throughput));
    let [goodput, throughput] = ["goodput", "throughput"].map(|what| format!("{what} {unit}"));
    let titles = ["UDP", &goodput, &throughput, "lost %", "delay p50 ms", "p95 ms"];
    rows_of(
        runs,
        |run| &run.udp,
        titles,
        &[0],
        |UdpMetrics { name, .. }, all| {
            let lost = |it: &UdpMetrics| {
                (it.packets_sent > 0)
                    .then(|| 100.0 * it.packets_dropped as f64 / it.packets_sent as f64)
            };
            [
                name.clone(),
                all.mean(|it| it.goodput * factor).show(3),
                all.mean(|it| it.throughput * factor).show(3),
                all.mean_if_any(lost, 2),
                all.ms(|it| it.delay_p50),
                all.ms(|it| it.delay_p95),
            ]
        },
    )
}

/// The tables of the links and of the stations, as far as the scenario has any.
pub(crate) fn links(runs: &[RunMetrics]) -> String {
    let tables = [wired(runs), stations(runs)];
    tables.into_iter().flatten().map(|table| format!("\n{table}")).collect()
}

fn wired(runs: &[RunMetrics]) -> Option<String> {
    let titles = [
        "link",
        "packets",
        "busy %",
        "queue ms",
        "longest queue",
        "queue drops",
        "lost",
        "ECN marks",
    ];
    rows_of(
        runs,
        |run| &run.links,
        titles,
        &[0],
        |LinkMetrics { name, .. }, all| {
            [
                name.clone(),
                all.count(|l| l.packets_sent),
                all.mean(|l| l.utilisation * 100.0).show(1),
                all.ms(|l| l.queueing_delay_p50),
                all.count(|l| l.max_queue_packets),
                all.count(|l| l.queue_drops),
                all.count(|l| l.loss_drops + l.policer_drops + l.outage_drops),
                all.count(|l| l.ecn_marks),
            ]
        },
    )
}

fn stations(runs: &[RunMetrics]) -> Option<String> {
    let titles =
        ["station", "frames", "retries", "given up", "collisions", "longest queue", "queue drops"];
    rows_of(
        runs,
        |run| &run.stations,
        titles,
        &[0],
        |StationMetrics { name, .. }, all| {
            [
                name.clone(),
                all.count(|s| s.data_frames_sent + s.broadcasts_sent),
                all.count(|s| s.retries),
                all.count(|s| s.link_failures),
                all.count(|s| s.collisions),
                all.count(|s| s.max_queue_packets),
                all.count(|s| s.queue_drops),
            ]
        },
    )
}

/// The unit for all rates (bit/s), and its reciprocal. With three decimals, Mbit/s would leave
/// rates below 10 kbit/s less than two digits.
fn unit(rates: impl Iterator<Item = f64>) -> (&'static str, f64) {
    let (slowest, fastest) = rates
        .filter(|&rate| rate > 0.0)
        .fold((f64::INFINITY, 0.0), |(low, high), rate| (rate.min(low), rate.max(high)));
    if fastest >= 1e6 && slowest >= 10e3 { ("Mbit/s", 1e-6) } else { ("kbit/s", 1e-3) }
}

/// The limit that a flow met for most of the time, over all runs, and its share of the time.
fn limited_by(flows: &InRuns<'_, FlowMetrics>) -> String {
    let sum = |value: fn(&FlowMetrics) -> f64| flows.0.iter().map(|flow| value(flow)).sum::<f64>();
    let times = [
        ("path", sum(|f| f.limited_by_path)),
        ("receive window", sum(|f| f.limited_by_receive_window)),
        ("send buffer", sum(|f| f.limited_by_send_buffer)),
        ("application", sum(|f| f.limited_by_application)),
    ];
    let all: f64 = times.iter().map(|(_, time)| time).sum();
    match times.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((limit, time)) if time > 0.0 => format!("{limit} {:.0} %", 100.0 * time / all),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_leaves_the_slowest_flow_two_digits() {
        let of = |rates: &[f64]| unit(rates.iter().copied()).0;
        assert_eq!(of(&[999e3]), "kbit/s");
        assert_eq!(of(&[1e6, 10e3, 0.0]), "Mbit/s");
        assert_eq!(of(&[100e6, 9e3]), "kbit/s");
        assert_eq!(of(&[0.0]), "kbit/s");
    }
}
