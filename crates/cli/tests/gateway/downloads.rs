//! Downloads that studies ask for. `studies/live` compares them with simulated ones: over a steady
//! link, and over one with the outages of a path in a simulated network of walkers. `studies/wake`
//! compares mechanisms over a link with an outage, or several: one download by the kernel's TCP or
//! by QUIC, many at once, requests with their answers.

use crate::congestion::has_congestion_control;
use crate::exchange::Exchange;
use crate::outages::{Told, outage};
use crate::quic;
use crate::report;
use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::{Arrivals, Load, Transfer};
use crate::tunnel::Tunnel;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The variable that asks for a download:
/// - `steady`, congestion control, Mbit/s, one-way delay in ms, queue in kB, size in MB;
/// - `mobile`, congestion control, number of the walk;
/// - `interrupted`, congestion control or QUIC stack, mechanism or `none`, signals, seconds of
///   the outage or `fading`, Mbit/s, one-way delay in ms, and perhaps `holds` (the link holds
///   packets in the outage), or `queue` and the length of the link's queue in round trips, or which
///   of SACK and RACK the ends' TCP has: `both`, `no-sack` or `no-rack`;
/// - `responses`, the same up to the delay, who asks (`mobile` or `fixed`), and what the outage
///   takes first: a `request` or an `answer`;
/// - `many`, the same up to the delay, and how many downloads at once;
/// - `tunnel`, the same: half of the downloads are by TCP and half by QUIC, all in one tunnel.
const ASKED: &str = "AIRTCP_DOWNLOAD";

/// Times at which the study reads cwnd.
const LOOK: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(40)];
/// Time between two readings of cwnd.
const STEP: Duration = Duration::from_millis(20);
/// Length of a walk.
const WALK: Duration = Duration::from_secs(120);

/// Runs the download that the variable asks for, if any. Prints the values of the study's metrics
/// as a JSON object.
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
        [what, sender, mechanism, told, outages, rate, delay, ref more @ ..] => {
            let [mbit, delay_ms] = [rate, delay].map(|number| number.parse().expect(number));
            let way = Way {
                mechanism: (mechanism != "none").then(|| format!("{mechanism:?}")),
                told: Told::parse(told).expect(told),
                outages: lengths(outages),
                mbit,
                delay_ms,
                queue: match more {
                    ["queue", queue] => queue.parse().expect(queue),
                    _ => 1.5,
                },
                holds: *more == ["holds"],
                sysctls: match more {
                    ["no-sack"] => vec![("ipv4/tcp_sack", "0")],
                    ["no-rack"] => vec![("ipv4/tcp_recovery", "0")],
                    _ => vec![],
                },
            };
            match (what, more) {
                ("interrupted", [] | ["holds" | "both" | "no-sack" | "no-rack"] | ["queue", _]) => {
                    interrupted(sender, &way);
                }
                ("responses", [asks, lost]) => {
                    let is_mobile_asking = choice(asks, "mobile", "fixed");
                    let is_answer_lost = choice(lost, "answer", "request");
                    responses(sender, &way, is_mobile_asking, is_answer_lost);
                }
                ("many", [count]) => many(sender, &way, count.parse().expect(count)),
                ("tunnel", [count]) => tunnel(sender, &way, count.parse().expect(count)),
                _ => panic!("{ASKED}: {words:?}"),
            }
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
        windows.push(transfer.info().snd_cwnd);
        thread::sleep(STEP);
    }
    windows
}

/// True for the first of two words, false for the second.
fn choice(word: &str, first: &str, second: &str) -> bool {
    assert!([first, second].contains(&word), "{ASKED}: {word:?} is neither {first} nor {second}");
    word == first
}

/// The lengths of outages, which are 0.7 s apart.
fn lengths(outages: &str) -> Vec<Duration> {
    match outages {
        "fading" => vec![Duration::from_millis(1500); 6],
        "0" => Vec::new(),
        seconds => vec![Duration::from_secs_f64(seconds.parse().expect(seconds))],
    }
}

/// The way of a download, and what happens to it.
#[derive(Clone, Debug)]
struct Way {
    /// The gateway's; `None`: the kernel forwards.
    mechanism: Option<String>,
    told: Told,
    /// Lengths of the outages.
    outages: Vec<Duration>,
    mbit: u64,
    /// One-way delay, in milliseconds.
    delay_ms: u64,
    /// Length of the link's queue, in round trips.
    queue: f64,
    /// The link holds packets in an outage, and does not drop them.
    holds: bool,
    /// As in [`Plan::sysctls`].
    sysctls: Vec<(&'static str, &'static str)>,
}

impl Way {
    /// A testbed whose queue has room for ten packets at least.
    fn testbed(&self) -> Testbed {
        let Self { mbit, delay_ms, .. } = self;
        let round_trip = mbit * delay_ms * 250;
        let queue = (round_trip as f64 * self.queue).max(15_000.0) as u64;
        let mode = if self.holds { "hold" } else { "drop" };
        let link = format!(
            "rate = \"{mbit} Mbit/s\"\ndelay = \"{delay_ms} ms\"\n\
             queue = {{ limit = \"{queue} B\" }}\noutage = {{ mode = {mode:?}, listed = [] }}\n"
        );
        let (mechanism, sysctls) = (self.mechanism.clone(), self.sysctls.clone());
        Testbed::new(&Plan { link, mechanism, sysctls, ..Plan::default() })
    }

    /// Makes the outages, the first from `begin` on. When the link was up for good.
    fn interrupt(&self, bed: &Testbed, mut begin: Instant) -> Instant {
        const APART: Duration = Duration::from_millis(700);
        let mut up = begin;
        for &length in &self.outages {
            up = outage(bed, begin, length, self.told, || {});
            begin = up + APART;
        }
        up
    }

    /// All outages together.
    fn away(&self) -> Duration {
        self.outages.iter().sum()
    }

    /// Longest time a sender may wait after them.
    fn patience(&self) -> Duration {
        2 * self.away() + Duration::from_secs(60)
    }
}

/// Time that the payload of an interrupted download takes at the link's rate.
const IDEAL: Duration = Duration::from_secs(8);

/// A download whose first outage begins 4 s after its first byte.
fn interrupted(sender: &'static str, way: &Way) {
    const BEGIN: Duration = Duration::from_secs(4);
    let bytes = way.mbit * 1_000_000 / 8 * IDEAL.as_secs();
    let bed = way.testbed();
    let files = tempfile::tempdir_in("/dev/shm").unwrap();
    let download = match quic::stack(sender) {
        Some(stack) => {
            let [fixed, _] = bed.addresses();
            let (from, to) = ((&bed.fixed, fixed), &bed.mobile);
            Download::Quic(quic::Download::start(stack, from, to, bytes, files.path()))
        }
        None => {
            assert!(has_congestion_control(sender));
            Download::Tcp(bed.download(&Load { bytes: Some(bytes), ..Load::endless(sender) }))
        }
    };
    let arrivals = download.arrivals();
    arrivals.wait_for(1);
    let first = arrivals.first().expect("a byte");
    let begin = first + BEGIN;
    let up = way.interrupt(&bed, begin);
    let dead = match way.outages.is_empty() {
        true => Duration::ZERO,
        false => arrivals.dead_time(up, way.patience()).expect("a byte after the outage").length,
    };
    let last = download.finish();
    let retransmissions = bed.fixed.counter("RetransSegs");
    let transfer_time = last - first;
    let lost = transfer_time.as_secs_f64() - (way.away() + IDEAL).as_secs_f64();
    report::print(&serde_json::json!({
        "dead_time": dead.as_secs_f64(),
        "old_rate_time": arrivals.recovery(begin, up).map(|time| time.as_secs_f64()),
        "transfer_time": transfer_time.as_secs_f64(),
        "time_lost": lost,
        "retransmissions": retransmissions,
    }));
}

/// Requests and answers for 2 s, an outage, and 3 s more of both. Of the next request the outage
/// takes the answer, which is still being sent, or the request itself; the one before is done with.
fn responses(sender: &'static str, way: &Way, is_mobile_asking: bool, is_answer_lost: bool) {
    const BEFORE: Duration = Duration::from_secs(2);
    const ANSWERING: Duration = Duration::from_millis(3);
    const EARLIER: Duration = Duration::from_millis(5);
    const AFTER: Duration = Duration::from_secs(3);
    let bed = way.testbed();
    let [fixed, mobile] = bed.addresses();
    let (server, client) = match is_mobile_asking {
        true => ((&bed.fixed, fixed), &bed.mobile),
        false => ((&bed.mobile, mobile), &bed.fixed),
    };
    let files = tempfile::tempdir_in("/dev/shm").unwrap();
    let length = BEFORE + way.away() + AFTER;
    let exchange = Exchange::start(sender, server, client, length, files.path());
    let asked = exchange.begin + BEFORE;
    let begin = match is_answer_lost {
        true => asked + Duration::from_millis(way.delay_ms) + ANSWERING,
        false => asked - EARLIER,
    };
    let up = way.interrupt(&bed, begin);
    let dead = exchange.arrivals.dead_time(up, way.patience()).expect("an answer");
    report::print(&serde_json::json!({
        "dead_time": dead.length.as_secs_f64(),
        "worst_response": exchange.finish().as_secs_f64(),
    }));
}

/// So many downloads at once, and an outage when they have gone on for 5 s.
fn many(sender: &'static str, way: &Way, count: usize) {
    const BEGIN: Duration = Duration::from_secs(5);
    assert!(has_congestion_control(sender));
    let bed = way.testbed();
    let memory = || way.mechanism.as_ref().map(|_| bed.daemon().peak_memory() as f64 / 1e6);
    let before = memory();
    let transfers: Vec<Transfer> = thread::scope(|scope| {
        let open = |_| scope.spawn(|| bed.download(&Load::endless(sender)));
        let threads: Vec<_> = (0..count).map(open).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let up = way.interrupt(&bed, Instant::now() + BEGIN);
    let arrivals = transfers.iter().map(Transfer::arrivals);
    let [first, median, last] = dead_times(arrivals, up, way.patience());
    for transfer in transfers {
        transfer.reset_by_sender(Duration::ZERO);
    }
    let rise = memory().zip(before).map(|(after, before)| after - before);
    report::print(&serde_json::json!({
        "first_dead_time": first,
        "median_dead_time": median,
        "last_dead_time": last,
        "memory": rise,
    }));
}

/// The shortest, the median and the longest dead time of downloads, in seconds; no more than the
/// patience.
fn dead_times(
    downloads: impl Iterator<Item = Arc<Arrivals>>,
    up: Instant,
    patience: Duration,
) -> [f64; 3] {
    let dead = |arrivals: Arc<Arrivals>| {
        arrivals.dead_time(up, patience).map_or(patience, |dead| dead.length).as_secs_f64()
    };
    let mut dead: Vec<f64> = downloads.map(dead).collect();
    dead.sort_by(f64::total_cmp);
    [0, dead.len() / 2, dead.len() - 1].map(|place| dead[place])
}

/// Downloads in a tunnel for 20 s, and an outage when they have gone on for 5 s.
fn tunnel(sender: &'static str, way: &Way, count: u64) {
    const PAYLOAD: Duration = Duration::from_secs(20);
    const BEGIN: Duration = Duration::from_secs(5);
    assert!(has_congestion_control(sender));
    let bytes = way.mbit * 1_000_000 / 8 * PAYLOAD.as_secs() / count;
    let bed = way.testbed();
    let tunnel = Tunnel::new(&bed);
    let [fixed, mobile] = tunnel.addresses();
    let files = tempfile::tempdir_in("/dev/shm").unwrap();
    let (from, to) = ((&bed.fixed, fixed), (&bed.mobile, mobile));
    let load = Load { bytes: Some(bytes), ..Load::endless(sender) };
    let quinn = quic::stack("quinn").expect("a stack of that name");
    let open = |number| match number % 2 {
        0 => Download::Tcp(Transfer::start(from, to, &load)),
        _ => Download::Quic(quic::Download::start(quinn, from, to.0, bytes, files.path())),
    };
    let downloads: Vec<Download> = (0..count).map(open).collect();
    let begin = Instant::now() + BEGIN;
    let up = way.interrupt(&bed, begin);
    let arrivals = downloads.iter().map(Download::arrivals);
    let [first, median, last] = dead_times(arrivals, up, way.patience());
    let end = downloads.into_iter().map(Download::finish).max().expect("a download");
    report::print(&serde_json::json!({
        "first_dead_time": first,
        "median_dead_time": median,
        "last_dead_time": last,
        "all_time": (end - up).as_secs_f64(),
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
    transfer.reset_by_sender(Duration::ZERO);
    report::print(&serde_json::json!({
        "goodput": received as f64 * 8.0 / 1000.0 / WALK.as_secs_f64(),
        "all_timeouts": timeouts,
    }));
}
