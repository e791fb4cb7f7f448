//! Downloads that studies ask for. `studies/live` compares them with simulated ones: over a steady
//! link, and over one with the outages of a path in a simulated network of walkers. `studies/wake`
//! compares mechanisms: over one with an outage, or several, by the kernel's TCP and by QUIC.

use crate::outages::{Told, outage};
use crate::quic;
use crate::report;
use crate::testbed::{Plan, Testbed, has_congestion_control, possible};
use crate::transfer::{Arrivals, Load, Transfer};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The variable that asks for a download: `steady`, congestion control, Mbit/s, one-way delay in
/// ms, queue in kB, size in MB; or `mobile`, congestion control, number of the walk; or `interrupted`,
/// congestion control or QUIC stack, mechanism or `none`, what is told, seconds of the outage or
/// `fading`, Mbit/s, one-way delay in ms.
const ASKED: &str = "AIRTCP_DOWNLOAD";

/// When the study looks at cwnd.
const LOOK: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(40)];
/// How often.
const STEP: Duration = Duration::from_millis(20);
/// How long a walk is.
const WALK: Duration = Duration::from_secs(120);

/// Measures what is asked for, if anything. Prints the values of the study's metrics as a JSON
/// object.
#[test]
fn asked_for() {
    let Ok(asked) = std::env::var(ASKED) else { return };
    if !possible() {
        return;
    }
    let words: Vec<&str> = asked.leak().split_whitespace().collect();
    match words[..] {
        ["steady", sender, rate, delay, queue, size] => {
            let bytes = 1_000_000 * size.parse::<u64>().expect(size);
            let link = format!(
                "rate = \"{rate} Mbit/s\"\ndelay = \"{delay} ms\"\nqueue = {{ limit = \"{queue} kB\" }}\n"
            );
            steady(sender, link, bytes);
        }
        ["mobile", sender, walk] => mobile(sender, walk),
        ["interrupted", sender, mechanism, told, outages, rate, delay] => {
            let told = Told::parse(told).expect(told);
            let mechanism = (mechanism != "none").then(|| format!("{mechanism:?}"));
            let [rate, delay] = [rate, delay].map(|number| number.parse().expect(number));
            interrupted(sender, mechanism, told, &lengths(outages), rate, delay);
        }
        _ => panic!("{ASKED}: {words:?}"),
    }
}

fn steady(sender: &'static str, link: String, bytes: u64) {
    let bed = Testbed::new(&Plan { link, ..Plan::default() });
    let opened = Instant::now();
    let transfer = bed.download(&Load { bytes: Some(bytes), ..Load::endless(sender) });
    let windows = windows(&transfer, opened);
    let received = transfer.finish();
    assert_eq!(received, bytes);
    let mean = windows.iter().sum::<u32>() as f64 / windows.len() as f64;
    report::print(&serde_json::json!({
        "whole_download": opened.elapsed().as_secs_f64(),
        "cwnd_mean": mean,
        "cwnd_max": windows.iter().max(),
        "cwnd_min": windows.iter().min(),
    }));
}

/// cwnd at regular times.
fn windows(transfer: &Transfer, opened: Instant) -> Vec<u32> {
    let [from, until] = LOOK;
    thread::sleep(from.saturating_sub(opened.elapsed()));
    let mut windows = Vec::new();
    while opened.elapsed() < until {
        windows.push(transfer.info().tcpi_snd_cwnd);
        thread::sleep(STEP);
    }
    windows
}

/// The lengths of outages, which are 0.7 s apart.
fn lengths(outages: &str) -> Vec<Duration> {
    match outages {
        "fading" => vec![Duration::from_millis(1500); 6],
        "0" => Vec::new(),
        seconds => vec![Duration::from_secs_f64(seconds.parse().expect(seconds))],
    }
}

/// Eight seconds' worth of bytes over a queue of one and a half round trips. The first outage begins
/// 4 s after the first byte.
fn interrupted(
    sender: &'static str,
    mechanism: Option<String>,
    told: Told,
    outages: &[Duration],
    mbit: u64,
    delay_ms: u64,
) {
    const BEGIN: Duration = Duration::from_secs(4);
    const APART: Duration = Duration::from_millis(700);
    let bytes = mbit * 1_000_000;
    let queue = (mbit * delay_ms * 375).max(15_000);
    let link = format!(
        "rate = \"{mbit} Mbit/s\"\ndelay = \"{delay_ms} ms\"\nqueue = {{ limit = \"{queue} B\" }}\n"
    );
    let bed = Testbed::new(&Plan { link, mechanism, ..Plan::default() });
    let files = tempfile::tempdir_in("/dev/shm").unwrap();
    let download = match quic::stack(sender) {
        Some(stack) => {
            let [fixed, _] = bed.addresses();
            Download::Quic(quic::Download::start(
                stack,
                (&bed.fixed, fixed),
                &bed.mobile,
                bytes,
                files.path(),
            ))
        }
        None => {
            assert!(has_congestion_control(sender));
            Download::Tcp(bed.download(&Load { bytes: Some(bytes), ..Load::endless(sender) }))
        }
    };
    let arrivals = download.arrivals();
    arrivals.wait_for(1);
    let first = arrivals.first().expect("a byte");
    let mut begin = first + BEGIN;
    let mut up = begin;
    for &length in outages {
        up = outage(&bed, begin, length, told, || {});
        begin = up + APART;
    }
    let total: Duration = outages.iter().sum();
    let dead = (!outages.is_empty())
        .then(|| arrivals.dead_time(up, 2 * total + Duration::from_secs(60)))
        .flatten();
    let last = download.finish();
    let retransmissions = bed.fixed.counter("RetransSegs");
    report::print(&serde_json::json!({
        "dead_time": dead.map_or(0.0, |dead| dead.length.as_secs_f64()),
        "transfer_time": (last - first).as_secs_f64(),
        "retransmissions": retransmissions,
    }));
}

/// By either transport.
enum Download {
    Tcp(Transfer),
    Quic(quic::Download),
}

impl Download {
    fn arrivals(&self) -> Arc<Arrivals> {
        match self {
            Self::Tcp(transfer) => transfer.arrivals(),
            Self::Quic(download) => download.arrivals(),
        }
    }

    /// Waits until all is there; when that was.
    fn finish(self) -> Instant {
        let arrivals = self.arrivals();
        match self {
            Self::Tcp(transfer) => drop(transfer.finish()),
            Self::Quic(download) => download.finish(),
        }
        arrivals.last().expect("a byte").0
    }
}

/// The walk's outages stand in the scenario of its experiment, in a line that a link file has too.
fn mobile(sender: &'static str, walk: &str) {
    assert!(has_congestion_control(sender), "airtcp cc load {sender}");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/live/scenarios");
    let scenario = std::fs::read_to_string(format!("{folder}/mobile-{walk}.toml")).unwrap();
    let outages = scenario.lines().find(|line| line.starts_with("outage = ")).unwrap();
    let link = format!(
        "rate = \"500 kbit/s\"\ndelay = \"10 ms\"\nqueue = {{ limit = \"50 packets\" }}\n{outages}\n"
    );
    let bed = Testbed::new(&Plan { link, offload: false, ..Plan::default() });
    let begin = Instant::now();
    // 512 bytes with timestamps.
    bed.fixed.ip(&["link", "set", "wire", "mtu", "564"]);
    let transfer = bed.download(&Load::endless(sender));
    thread::sleep(WALK.saturating_sub(begin.elapsed()));
    let received = transfer.received();
    let timeouts = bed.fixed.counter("TCPTimeouts");
    transfer.reset_by_sender();
    report::print(&serde_json::json!({
        "goodput": received as f64 * 8.0 / 1000.0 / WALK.as_secs_f64(),
        "all_timeouts": timeouts,
    }));
}
