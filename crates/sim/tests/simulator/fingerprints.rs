//! The results of every example and of each study's quick form, as digests of their metrics and
//! events in `studies/fingerprints.jsonl`. A digest that moves is changed behaviour: the commit
//! that moves it says which, by how much and why.
//!
//! `AIRTCP_BLESS=1 cargo test -p airtcp-sim --test simulator fingerprints` regenerates the digests.
//! `python/tests/test_fingerprints.py` checks the list of runs in the studies' quick forms, and
//! with the same variable regenerates it.
//!
//! The number of wake-ups (`events` in the metrics) describes the engine, not the results, and is
//! left out. So are [summaries](SUMMARIES) of what is in the digests already: RTT samples,
//! time-outs and ACKs are events, and queues and the delays of datagrams show in them. So are numbers that are zero or missing:
//! a new counter of something that does not happen moves nothing.

use airtcp_sim::scenario::{Override, Scenario, files};
use airtcp_sim::trace::EventWriter;
use airtcp_sim::{Observers, World};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A scenario, and the digests of its runs with the seeds from 1 to `seeds`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    /// Path from the repository's root, with `/` separators.
    scenario: String,
    /// Overrides, as for `--set`.
    set: Vec<(String, String)>,
    seeds: u64,
    metrics: String,
    events: String,
}

/// Metrics left out, by the beginnings of their names.
const SUMMARIES: [&str; 10] = [
    "delay_",
    "events",
    "fairness",
    "jitter",
    "limited_by_",
    "queueing_delay_",
    "rtt_",
    "timeouts_after_duplicates",
    "utilisation",
    "warnings",
];

/// FNV-1a, 64 bits.
struct Digest(u64);

impl Digest {
    const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    fn hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}

impl Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let step = |h: u64, &b: &u8| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 = bytes.iter().fold(self.0, step);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The scenarios that belong to no study of `airtcp study`, sorted.
fn files() -> Vec<String> {
    let in_folder = |folder: &str| {
        let entries = std::fs::read_dir(root().join(folder)).expect("the folder is there");
        let names = entries.map(|entry| entry.expect("readable").file_name());
        let names = names.map(|name| name.into_string().expect("UTF-8"));
        names.filter(|n| n.ends_with(".toml")).map(|n| format!("{folder}/{n}")).collect::<Vec<_>>()
    };
    let mut files = ["benches/peers", "examples"].map(in_folder).concat();
    // The gateway's configuration is not a scenario.
    files.retain(|file| read(file).contains("[[node]]"));
    files.sort();
    files
}

/// `name = value` for each number and word that is present and not zero, in the order of the names.
fn flatten(name: &str, value: &Value, into: &mut String) {
    match value {
        Value::Object(fields) => {
            let digested = |key: &str| !SUMMARIES.iter().any(|summary| key.starts_with(summary));
            let sorted: BTreeMap<_, _> = fields.iter().filter(|(key, _)| digested(key)).collect();
            sorted.iter().for_each(|(key, value)| flatten(&format!("{name}.{key}"), value, into));
        }
        Value::Array(items) => {
            (0..).zip(items).for_each(|(i, v): (u32, _)| flatten(&format!("{name}.{i}"), v, into));
        }
        Value::Null | Value::Bool(false) => {}
        Value::Number(number) if number.as_f64() == Some(0.0) => {}
        _ => writeln!(into, "{name} = {value}").expect("a string takes it"),
    }
}

/// The row with today's digests.
fn measured(row: &Row) -> Row {
    let file = row.scenario.rsplit('/').next().expect("a name");
    let files = files::beside(&root().join(&row.scenario).display().to_string());
    let text = read(&row.scenario);
    let set: Vec<Override> = row.set.iter().map(Override::set).collect();
    let scenario = Scenario::parse_with_files(file, &text, &set, None, &files)
        .unwrap_or_else(|error| panic!("{}: {error}", row.scenario));
    let (mut metrics, mut events) = (Digest::EMPTY, Digest::EMPTY);
    for seed in 1..=row.seeds {
        let mut writer = EventWriter::new(&mut events, &scenario);
        let mut world = World::new(&scenario, seed);
        world.run(&mut Observers { events: Some(&mut writer), ..Observers::default() });
        writer.finish().expect("hashing does not fail");
        let mut lines = String::new();
        flatten("", &serde_json::to_value(world.metrics()).expect("numbers"), &mut lines);
        metrics.write_all(lines.as_bytes()).expect("hashing does not fail");
    }
    Row { metrics: metrics.hex(), events: events.hex(), ..row.clone() }
}

/// All rows measured, in order, on all processors.
fn measure(rows: &[Row]) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((index, row)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            rows.get(index).map(|row| (index, row))
        } {
            done.push((index, measured(row)));
        }
        done
    };
    let mut done = std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|t| t.join().expect("no panic")).collect::<Vec<_>>()
    });
    done.sort_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, row)| row).collect()
}

#[test]
fn examples_and_studies_match_the_committed_digests() {
    let path = root().join("studies/fingerprints.jsonl");
    let text = std::fs::read_to_string(&path).expect("studies/fingerprints.jsonl");
    let known: Vec<Row> =
        text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect();
    let of_files = |file: &String| {
        let row = known.iter().find(|row| row.scenario == *file);
        row.cloned().unwrap_or_else(|| Row {
            scenario: file.clone(),
            set: Vec::new(),
            seeds: 1,
            metrics: String::new(),
            events: String::new(),
        })
    };
    let mut rows: Vec<Row> = files().iter().map(of_files).collect();
    rows.extend(known.iter().filter(|row| row.scenario.contains("/scenarios/")).cloned());
    let measured = measure(&rows);
    if std::env::var_os("AIRTCP_BLESS").is_some() {
        let line = |row| serde_json::to_string(row).expect("a row") + "\n";
        std::fs::write(&path, measured.iter().map(line).collect::<String>()).expect("writable");
        return;
    }
    let moved: Vec<String> = rows
        .iter()
        .zip(&measured)
        .filter(|(row, measured)| row != measured)
        .map(|(row, measured)| {
            let set = row.set.iter().map(|(key, value)| format!(" --set {key}={value}"));
            let which = match (row.metrics == measured.metrics, row.events == measured.events) {
                (true, _) => "events",
                (_, true) => "metrics",
                _ => "metrics and events",
            };
            format!("{}{}: {which}", row.scenario, set.collect::<String>())
        })
        .collect();
    assert!(moved.is_empty(), "{} of {} moved:\n{}", moved.len(), rows.len(), moved.join("\n"));
    assert_eq!(rows, known, "a scenario was added or removed: AIRTCP_BLESS=1 regenerates the list");
}
