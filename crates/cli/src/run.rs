//! `airtcp run`: runs a scenario with one or several seeds, in parallel; prints in order of seeds.

use crate::captures::Captures;
use crate::files::{self, Draft, DraftFolder, FolderOf};
use crate::runs::{self, Outcome, Progress};
use crate::{BAD_INPUT, FAILURE, RunArgs, SUCCESS, check_seeds, complain, table, tell};
use airtcp_core::{Duration, Instant, Subscriber, counted};
use airtcp_sim::scenario::Scenario;
use airtcp_sim::scenario::files::Inputs;
use airtcp_sim::trace::animation::{self, Animation};
use airtcp_sim::trace::{EventWriter, LinkLogs, LinkTap, PacketTap, link_logs};
use airtcp_sim::{Observers, RunMetrics, World};
use airtcp_tcp::congestion::Controls;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What is run, and what is made of it.
struct Job {
    scenario: Scenario,
    captures: Option<Captures>,
}

/// Runs the scenario and returns the exit code.
pub(crate) fn run(args: &RunArgs, controls: &Controls) -> i32 {
    let (job, metrics) = match prepare(args, controls) {
        Ok(prepared) => prepared,
        Err(message) => {
            // A rendered diagnostic already begins with its file.
            tell(&message);
            return BAD_INPUT;
        }
    };
    let mut report = Report::new(args, metrics);
    let runs = args.runs.get();
    let seed = |i: usize| args.seed + i as u64;
    runs::in_parallel(
        runs,
        args.jobs,
        |i, stopped| one(args, &job, controls, seed(i), stopped),
        |i, outcome| {
            report.take(i, seed(i), outcome);
            !report.output_gone()
        },
    );
    report.finish(runs)
}

/// Checks everything that can be wrong before simulating: the scenario and the output files.
fn prepare(args: &RunArgs, controls: &Controls) -> Result<(Job, Option<Draft>), String> {
    let inputs = Inputs::default();
    let scenario = files::scenario(&args.scenario, &args.set, Some(controls), &inputs)?;
    let captures = args.pcap.as_ref().map(|_| {
        let captures = Captures::new(&scenario, &args.pcap_node, args.snaplen)
            .map_err(|message| format!("airtcp: --pcap-node: {message}"))?;
        if !args.pcap_monitor {
            return Ok(captures);
        }
        let sniffed = captures.with_sniffers(&scenario);
        sniffed.map_err(|message| format!("airtcp: --pcap-monitor: {message}"))
    });
    let captures = captures.transpose()?;
    check_seeds(args.seed, args.runs)?;
    if let Some(out) = &args.out {
        files::create_folder(out).map_err(|e| format!("airtcp: --out: {e}"))?;
    }
    let shown = animated(args);
    let end = shown.end.min(Instant::ZERO + scenario.duration);
    if args.animate.is_some() && shown.start >= end {
        let end = end.as_secs_f64();
        return Err(format!("airtcp: --animate-from: expected a time before {end} s"));
    }
    let metrics = args.out.as_ref().map(|out| out.join("metrics.jsonl"));
    let mut targets: Vec<PathBuf> = metrics.iter().cloned().collect();
    for (_, file) in outputs(args) {
        let target = target(args, file, args.seed);
        if targets.contains(&target) {
            return Err(format!("airtcp: {}: used for two outputs", target.display()));
        }
        targets.push(target);
    }
    if let Some(metrics) = &metrics {
        inputs.spare(metrics).map_err(|message| format!("airtcp: --out: {message}"))?;
    }
    let is_folder = |option: &str| ["--pcap", "--link-logs"].contains(&option);
    for (option, file) in outputs(args).filter(|(option, _)| !is_folder(option)) {
        let explained = |e: io::Error| format!("airtcp: {option}: {e}");
        for i in 0..args.runs.get() {
            let spared = inputs.spare(&target(args, file, args.seed + i as u64));
            spared.map_err(|message| format!("airtcp: {option}: {message}"))?;
        }
        files::probe(&target(args, file, args.seed)).map_err(explained)?;
    }
    if let (Some(captures), Some(folder)) = (&captures, &args.pcap) {
        let explained = |e: io::Error| format!("airtcp: --pcap: {e}");
        for i in 0..args.runs.get() {
            captures.check(&target(args, folder, args.seed + i as u64)).map_err(explained)?;
        }
        DraftFolder::new(&target(args, folder, args.seed)).map_err(explained)?;
    }
    if let Some(folder) = &args.link_logs {
        if scenario.links.is_empty() {
            return Err("airtcp: --link-logs: has no effect: the scenario has no links".to_owned());
        }
        let explained = |e: io::Error| format!("airtcp: --link-logs: {e}");
        let names = scenario.links.iter().map(|link| link_logs::file_name(&link.name));
        let names = names.collect();
        let kind = FolderOf { endings: &["log"], one_for: "link", all: "logs" };
        for i in 0..args.runs.get() {
            kind.check(&target(args, folder, args.seed + i as u64), &names).map_err(explained)?;
        }
        DraftFolder::new(&target(args, folder, args.seed)).map_err(explained)?;
    }
    let metrics = metrics.map(|metrics| Draft::new(&metrics)).transpose();
    let metrics = metrics.map_err(|e| format!("airtcp: --out: {e}"))?;
    Ok((Job { scenario, captures }, metrics))
}

/// The options that name an output of each run, with what they name.
fn outputs(args: &RunArgs) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    let options = [
        ("--pcap", &args.pcap),
        ("--events", &args.events),
        ("--link-logs", &args.link_logs),
        ("--animate", &args.animate),
    ];
    options.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)))
}

/// Path of an output file of the run with `seed`.
fn target(args: &RunArgs, file: &Path, seed: u64) -> PathBuf {
    let file = if args.runs.get() > 1 { files::with_seed(file, seed) } else { file.to_owned() };
    match &args.out {
        Some(out) => out.join(file),
        None => file,
    }
}

/// One run with its files.
fn one(
    args: &RunArgs,
    Job { scenario, captures }: &Job,
    controls: &Controls,
    seed: u64,
    stopped: &dyn Fn() -> bool,
) -> Outcome<Box<RunMetrics>> {
    let attempt = || -> io::Result<Option<RunMetrics>> {
        let draft = |file: &Option<PathBuf>| {
            file.as_ref().map(|file| Draft::new(&target(args, file, seed))).transpose()
        };
        let mut capturing = match (captures, &args.pcap) {
            (Some(captures), Some(folder)) => {
                Some(captures.begin(scenario, seed, &target(args, folder, seed))?)
            }
            _ => None,
        };
        let mut events = draft(&args.events)?.map(|draft| EventWriter::new(draft, scenario));
        let mut link_logs = match &args.link_logs {
            Some(folder) => {
                let draft = DraftFolder::new(&target(args, folder, seed))?;
                let open = |name: &str| draft.file(name).map(BufWriter::new);
                Some((LinkLogs::new(scenario, seed, open)?, draft))
            }
            None => None,
        };
        let mut animation = draft(&args.animate)?.map(|draft| {
            (Animation::new(scenario, seed, animated(args), animation::MAX_TRANSMISSIONS), draft)
        });
        let mut subscribers: Vec<&mut dyn Subscriber> = Vec::new();
        let mut taps: Vec<&mut dyn PacketTap> = Vec::new();
        subscribers.extend(events.as_mut().map(|e| e as &mut dyn Subscriber));
        taps.extend(capturing.as_mut().map(|capturing| capturing.tap()));
        if let Some((animation, _)) = &mut animation {
            let (subscriber, tap) = animation.observers();
            subscribers.push(subscriber);
            taps.push(tap);
        }
        let mut observers = Observers {
            events: (!subscribers.is_empty()).then_some(&mut subscribers as &mut dyn Subscriber),
            packets: (!taps.is_empty()).then_some(&mut taps as &mut dyn PacketTap),
            links: link_logs.as_mut().map(|(logs, _)| logs as &mut dyn LinkTap),
        };
        let mut world = World::with_controls(scenario, seed, controls);
        if args.link_logs.is_some() {
            world.report_departures();
        }
        if args.json || args.out.is_some() {
            world.measure_queueing_delays();
        }
        if !runs::run_to_end(&mut world, scenario.duration, &mut observers, stopped) {
            return Ok(None);
        }
        if let Some(capturing) = capturing {
            capturing.publish()?;
        }
        if let Some(events) = events {
            events.finish()?.publish()?;
        }
        if let Some((logs, draft)) = link_logs {
            let written = logs.finish(Instant::ZERO + scenario.duration);
            written.map_err(|error| files::named(error, draft.target()))?;
            draft.publish()?;
        }
        if let Some((animation, mut draft)) = animation {
            if let Some(cut_at) = animation.cut_at() {
                complain(&format!(
                    "seed {seed}: the map ends at {cut_at} s, after {} transmissions: \
                     --animate-from and --animate-to choose another part",
                    animation::MAX_TRANSMISSIONS
                ));
            }
            animation.write(&mut draft)?;
            draft.publish()?;
        }
        Ok(Some(world.metrics()))
    };
    match attempt() {
        Ok(Some(metrics)) => Outcome::Finished(Box::new(metrics)),
        Ok(None) => Outcome::Stopped,
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// The part of the run that the map shows.
fn animated(args: &RunArgs) -> Range<Instant> {
    let at = |time: Option<Duration>, otherwise| time.map_or(otherwise, |t| Instant::ZERO + t);
    at(args.animate_from, Instant::ZERO)..at(args.animate_to, Instant::MAX)
}

/// Prints and writes results in the order of the seeds.
struct Report<'a> {
    args: &'a RunArgs,
    metrics: Option<Draft>,
    /// Results that wait for one with a smaller index.
    waiting: BTreeMap<usize, RunMetrics>,
    /// Index of the run to be printed next.
    next: usize,
    /// For the table, which needs all results.
    finished: Vec<RunMetrics>,
    /// Warnings of all runs.
    warnings: BTreeSet<String>,
    count: usize,
    failed: bool,
    /// The first error of standard output.
    output: io::Result<()>,
    progress: Progress,
}

impl<'a> Report<'a> {
    fn new(args: &'a RunArgs, metrics: Option<Draft>) -> Self {
        Self {
            args,
            metrics,
            waiting: BTreeMap::new(),
            next: 0,
            finished: Vec::new(),
            warnings: BTreeSet::new(),
            count: 0,
            failed: false,
            output: Ok(()),
            progress: Progress::new(args.runs.get(), args.runs.get() > 1 && !args.quiet),
        }
    }

    fn output_gone(&self) -> bool {
        self.output.is_err()
    }

    fn take(&mut self, index: usize, seed: u64, outcome: Outcome<Box<RunMetrics>>) {
        match outcome {
            Outcome::Finished(metrics) => {
                self.count += 1;
                self.waiting.insert(index, *metrics);
            }
            Outcome::Failed(message) => {
                self.failed = true;
                complain(&format!("seed {seed}: {message}"));
            }
            Outcome::Stopped => {}
        }
        self.progress.show(self.count);
        while let Some(metrics) = self.waiting.remove(&self.next) {
            self.next += 1;
            self.print(metrics);
        }
    }

    fn print(&mut self, metrics: RunMetrics) {
        self.warnings.extend(metrics.warnings.iter().cloned());
        let line = serde_json::to_string(&metrics).map_err(io::Error::other);
        let line = match line {
            Ok(line) => line + "\n",
            Err(error) => return self.lose(&error),
        };
        if let Some(file) = &mut self.metrics
            && let Err(error) = file.write_all(line.as_bytes())
        {
            self.metrics = None;
            self.lose(&error);
        }
        if !self.args.json {
            self.finished.push(metrics);
        } else if self.output.is_ok() {
            self.output = io::stdout().write_all(line.as_bytes());
        }
    }

    fn lose(&mut self, error: &io::Error) {
        self.failed = true;
        complain(&error.to_string());
    }

    fn finish(mut self, runs: usize) -> i32 {
        self.progress.end();
        // Results after a run that failed or was stopped.
        for (_, metrics) in std::mem::take(&mut self.waiting) {
            self.print(metrics);
        }
        if self.output.is_ok() && !self.finished.is_empty() {
            let mut text = table::table(&self.finished);
            if self.args.links {
                text += &table::links(&self.finished);
            }
            self.output = io::stdout().write_all(text.as_bytes());
        }
        self.warnings.iter().for_each(|warning| complain(warning));
        if let Some(file) = self.metrics.take().filter(|_| self.count > 0)
            && let Err(error) = file.publish()
        {
            self.lose(&error);
        }
        let interrupted = runs::interrupted();
        if interrupted {
            complain(&format!(
                "interrupted; {} of {} complete",
                self.count,
                counted(runs as u64, "run")
            ));
        }
        match self.output {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                complain(&format!("cannot write to standard output: {error}"));
                FAILURE
            }
            _ if self.failed || interrupted => FAILURE,
            _ => SUCCESS,
        }
    }
}
