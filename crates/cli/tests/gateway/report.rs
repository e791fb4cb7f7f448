//! Measurements for the documents: a line on standard error, and a row in a file of `target/tmp`,
//! which each run of the tests replaces.

use crate::outages::{Case, Outcome};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

type Table = LazyLock<Mutex<File>>;

static OUTAGES: Table = LazyLock::new(|| {
    begin(
        "gateway-outages.csv",
        "mechanism,congestion_control,outage,told,dead_time,timeouts,retransmissions,\
         cwnd_before,cwnd_after,download_time",
    )
});

static PACKET_CONTROL: Table = LazyLock::new(|| {
    begin("gateway-packet-control.csv", "recovery,packet_control,goodput_mbit_s,retransmissions")
});

fn begin(name: &str, header: &str) -> Mutex<File> {
    let mut file = File::create(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)).unwrap();
    writeln!(file, "{header}").unwrap();
    file.into()
}

fn note(table: &Table, row: &str) {
    writeln!(table.lock().unwrap(), "{row}").unwrap();
    // Not eprintln!, which the test harness keeps to itself when a test passes.
    let _ = writeln!(std::io::stderr(), "measured: {row}");
}

/// Notes an outage: times in seconds, windows in segments.
pub(crate) fn outage(case: &Case, outcome: &Outcome) {
    let Case { mechanism, congestion, outage, told, phase: _ } = case;
    let Outcome { dead_time, timeouts, retransmissions, cwnd, download_time, .. } = outcome;
    let [before, after] = cwnd;
    let mechanism = mechanism.unwrap_or("none");
    let outage = outage.as_secs_f64();
    let told = format!("{told:?}").to_lowercase();
    let dead_time =
        dead_time.map_or("inf".to_owned(), |dead| format!("{:.3}", dead.length.as_secs_f64()));
    let download_time = download_time.as_secs_f64();
    let row = format!(
        "{mechanism},{congestion},{outage},{told},{dead_time},{timeouts},{retransmissions},\
         {before},{after},{download_time:.3}"
    );
    note(&OUTAGES, &row);
}

/// Prints an outage as the metrics of `studies/live`, in their units.
pub(crate) fn metrics(outcome: &Outcome) {
    let Outcome { dead_time, timeouts, retransmissions, cwnd, download_time, .. } = outcome;
    let [before, after] = cwnd;
    let metrics = serde_json::json!({
        "dead_time": dead_time.map(|dead| dead.length.as_secs_f64()),
        "download_time": download_time.as_secs_f64(),
        "timeouts": timeouts,
        "retransmissions": retransmissions,
        "cwnd_before": before,
        "cwnd_after": after,
    });
    print(&metrics);
}

/// Prints metrics of `studies/live` on a line of their own, whatever the test harness has written
/// before.
pub(crate) fn print(metrics: &serde_json::Value) {
    println!("\n{metrics}");
}

/// Prints that the gateway was restarted, as its parent does when a busy machine keeps it silent
/// for too long: it may then miss the bars.
pub(crate) fn restart(case: &Case, log: &str) {
    let _ = writeln!(std::io::stderr(), "restarted: {case:?}: {log}");
}

/// Notes a download over a link that reorders.
pub(crate) fn packet_control(recovery: &str, is_on: bool, goodput: f64, retransmissions: u64) {
    note(&PACKET_CONTROL, &format!("{recovery},{is_on},{goodput:.2},{retransmissions}"));
}

/// Prints the seconds that a download waited, and those that an observing gateway reports as
/// savings.
pub(crate) fn observed(dead: f64, saved: [f64; 2]) {
    let [least, most] = saved;
    let _ = writeln!(
        std::io::stderr(),
        "measured: dead time {dead:.3} s, would have been saved: {least:.3} to {most:.3} s"
    );
}

/// Prints how long a transfer stood still while the daemon was stopped.
pub(crate) fn stall(gap: Duration) {
    let _ = writeln!(std::io::stderr(), "measured: stopped daemon, no byte for {gap:?}");
}
