//! Downloads that the study in `studies/live` compares with simulated ones: over a steady link, and
//! over one with the outages of a path in a simulated network of walkers.

use crate::report;
use crate::testbed::{Plan, Testbed, has_congestion_control, possible};
use crate::transfer::{Load, Transfer};
use std::thread;
use std::time::{Duration, Instant};

/// The variable that asks for a download: `steady`, congestion control, Mbit/s, one-way delay in
/// ms, queue in kB, size in MB; or `mobile`, congestion control, number of the walk.
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
