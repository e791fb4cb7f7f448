//! `airtcp advise`: simulates what could be changed about a link, and says what helps.

use crate::link;
use airtcp_cli::estimate::{Estimate, differences, p_value, shown};
use airtcp_cli::runs::{self, Outcome, Progress};
use airtcp_cli::{
    BAD_INPUT, FAILURE, aligned, check_seeds, complain, count, override_pair, print, seed, tell,
};
use airtcp_config::Override;
use airtcp_core::{Duration, Instant};
use airtcp_emu::{EmulatedDirection, EmulatedLink};
use airtcp_net::config::{LinkConfig, QueueConfig};
use airtcp_net::schedule::Schedules;
use airtcp_sim::scenario::{LinkSender, Scenario, files};
use airtcp_sim::{Observers, RunMetrics, World};
use clap::{Args, ValueEnum};
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Arguments of `airtcp advise`.
#[derive(Debug, Args)]
pub(crate) struct AdviseArgs {
    /// The wireless link: a link file (NAME.toml, docs/link-config.md), or a Mahimahi trace or
    /// table (NAME.csv) of rate, and perhaps delay and loss, which both directions then follow.
    #[arg(long, value_name = "FILE")]
    link: PathBuf,
    /// Sets any key of the link file, such as `delay=20ms`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = override_pair)]
    set: Vec<(String, String)>,
    /// Outages of the link, such as `5s/60s`: about 5 s in each 60 s.
    #[arg(long, value_name = "LENGTH/PERIOD", value_parser = Outages::parse)]
    outages: Option<Outages>,
    /// What is carried, from a server to the mobile.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Traffic::Download)]
    traffic: Traffic,
    /// The server's congestion control today.
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Sender::Cubic)]
    sender: Sender,
    /// One-way delay between the server and the link.
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = airtcp_sim::scenario::duration)]
    server_delay: Duration,
    /// Time after which an outage, and its end, is reported to a gateway that needs to be told
    /// [default: 100ms; interruptions of `reconfiguration` are announced by a timetable].
    #[arg(long, value_name = "TIME", value_parser = airtcp_sim::scenario::duration)]
    report_delay: Option<Duration>,
    /// Simulated time of each run.
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = long_enough)]
    duration: Duration,
    /// Runs of each change, at least 2.
    #[arg(long, value_name = "N", default_value = "10", value_parser = several, allow_negative_numbers = true)]
    runs: NonZeroUsize,
    /// Seed of the first run.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, allow_negative_numbers = true)]
    seed: u64,
    /// Runs in parallel [default: one per core].
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    jobs: Option<NonZeroUsize>,
    /// Shows no progress.
    #[arg(long)]
    quiet: bool,
}

fn several(text: &str) -> Result<NonZeroUsize, String> {
    let enough = count(text).ok().filter(|runs| runs.get() >= 2);
    enough.ok_or_else(|| "expected an integer, 2 or more: one run has no interval".to_owned())
}

/// Reads a simulated time in which a transfer gets somewhere.
fn long_enough(text: &str) -> Result<Duration, String> {
    let duration = airtcp_sim::scenario::duration(text)?;
    let enough = Some(duration).filter(|&duration| duration >= Duration::from_secs(10));
    enough.ok_or_else(|| "expected at least 10 s".to_owned())
}

/// Outages of one length at regular intervals.
#[derive(Clone, Debug)]
struct Outages {
    length: Duration,
    period: Duration,
}

impl Outages {
    fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected LENGTH/PERIOD with their units, such as 5s/60s";
        let duration = |text| airtcp_sim::scenario::duration(text).map_err(|_| EXPECTED);
        let (length, period) = text.split_once('/').ok_or(EXPECTED)?;
        let (length, period) = (duration(length)?, duration(period)?);
        if length == Duration::ZERO || length >= period {
            return Err("expected a length above 0 and below the period, such as 5s/60s".to_owned());
        }
        Ok(Self { length, period })
    }

    /// Lengths of the outages of this run of so long a time. They are spread over a factor of 2, in which a timer
    /// that doubles comes to every phase: how soon after one outage it expires says little about another.
    fn lengths(&self, run: usize, duration: Duration) -> impl Iterator<Item = Duration> + '_ {
        /// Its multiples are spread evenly between whole numbers, however many there are.
        const GOLDEN_RATIO: f64 = 1.618_033_988_749_895;
        let count = duration.as_nanos().div_ceil(self.period.as_nanos());
        // The link is up in each period.
        let most = (self.length + self.period) / 2;
        (0..count).map(move |n| {
            let octave = ((run as u64 * count + n) as f64 * GOLDEN_RATIO).fract() - 0.5;
            let length = self.length.as_secs_f64() * 1e3 * octave.exp2();
            Duration::from_millis(length.round().max(1.0) as u64).min(most)
        })
    }

    /// Those of a run as a key of the link file: each at the end of its period.
    fn of_run(&self, run: usize, duration: Duration) -> Override {
        let listed: Vec<String> = (1..)
            .zip(self.lengths(run, duration))
            .map(|(n, length)| {
                let end = self.period * n;
                format!(r#"["{}", "{end}"]"#, end - length)
            })
            .collect();
        let value = format!("{{ listed = [{}] }}", listed.join(", "));
        Override::new("--outages", "outage", &value)
    }

    /// As a key of the link file: all of one length, each at the end of its period.
    fn to_override(&self) -> Override {
        let Self { length, period } = *self;
        let start = period - length;
        let value = format!(r#"{{ period = "{period}", start = "{start}", end = "{period}" }}"#);
        Override::new("--outages", "outage", &value)
    }
}

/// What the mobile does.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Traffic {
    /// One download without end.
    Download,
    /// Pages of 100 kB in the mean on one connection, 2 s after the last.
    Requests,
    /// Video of 0.3 to 6 Mbit/s that adapts to the link.
    Video,
}

impl Traffic {
    /// The key `traffic` of the flow, if it has one.
    fn key(self) -> Option<&'static str> {
        match self {
            Self::Download => None,
            Self::Requests => {
                Some(r#"{ kind = "requests", answer = { exponential = "100 kB" }, think = "2 s" }"#)
            }
            Self::Video => Some(
                r#"{ kind = "video", segment = "2 s", buffer = "20 s", start-at = "4 s", ladder = ["300 kbit/s", "750 kbit/s", "1.5 Mbit/s", "3 Mbit/s", "6 Mbit/s"] }"#,
            ),
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Download => "a download",
            Self::Requests => "pages of 100 kB",
            Self::Video => "video",
        }
    }

    /// What a change is judged by.
    fn measure(self) -> Measure {
        match self {
            Self::Download => Measure {
                title: "goodput Mbit/s",
                more_is_better: true,
                of: |run| run.flows[0].goodput / 1e6,
            },
            // Of those that never end, their completion times would not tell.
            Self::Requests => Measure {
                title: "pages a minute",
                more_is_better: true,
                of: |run| run.transfers[0].completed as f64 / (run.duration / 60.0),
            },
            Self::Video => Measure {
                title: "stalled %",
                more_is_better: false,
                of: |run| 100.0 * run.videos[0].stall_time / run.duration,
            },
        }
    }

    /// A second number, which is only shown.
    fn other(self) -> (&'static str, fn(&RunMetrics) -> Option<f64>) {
        match self {
            Self::Download => ("silent after an outage s", |run| run.flows[0].outage_dead_time),
            Self::Requests => ("95 % of pages within s", |run| run.transfers[0].completion_p95),
            Self::Video => {
                ("bitrate Mbit/s", |run| run.videos[0].bitrate_mean.map(|rate| rate / 1e6))
            }
        }
    }
}

/// Decimals of a measure.
const DECIMALS: usize = 2;

/// A number of each run.
struct Measure {
    title: &'static str,
    more_is_better: bool,
    of: fn(&RunMetrics) -> f64,
}

/// A congestion control that Linux has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sender {
    Reno,
    Cubic,
    Bbr,
}

impl Sender {
    fn word(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    /// What can go wrong with it, besides [`EVERYWHERE`].
    fn risk(self) -> &'static str {
        match self {
            Self::Reno => " After a loss it takes long to fill a fast link again.",
            Self::Cubic => "",
            Self::Bbr => {
                " Linux has version 1: behind short queues it loses many packets and can crowd out other \
                 senders (Hock et al. 2017)."
            }
        }
    }
}

/// What any change of the server's congestion control risks.
const EVERYWHERE: &str =
    "It applies to all new connections of the server, also those over other links.";

/// A mechanism of `airtcp gateway`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mechanism {
    /// It notices outages itself.
    Wake,
    /// Outages are reported to it.
    WakeTold,
    HoldoverTold,
    MTcpPlusTold,
}

impl Mechanism {
    /// Those that need less come first.
    const ALL: [Self; 4] = [Self::Wake, Self::WakeTold, Self::HoldoverTold, Self::MTcpPlusTold];

    fn word(self) -> &'static str {
        match self {
            Self::Wake | Self::WakeTold => "wake",
            Self::HoldoverTold => "holdover",
            Self::MTcpPlusTold => "m-tcp-plus",
        }
    }

    fn is_told(self) -> bool {
        self != Self::Wake
    }

    /// Its `middlebox` in a scenario, with the gateway's defaults for keys whose defaults differ there.
    fn middlebox(self, announced: Announced) -> String {
        const COPIES: &str = r#"fifo = "4 MiB", max-down = "24 h", probe-interval = "100 ms", "#;
        const OPENING: &str = r#"acknowledge = "in-time", open = "in-steps", "#;
        let defaults = match self {
            Self::Wake | Self::WakeTold => "".to_owned(),
            Self::HoldoverTold => COPIES.to_owned(),
            Self::MTcpPlusTold => [COPIES, OPENING].concat(),
        };
        let signal = if self.is_told() { announced.key() } else { r#""none""#.to_owned() };
        let word = self.word();
        format!(r#"{{ mechanism = "{word}", mobiles = ["mobile"], {defaults}signal = {signal} }}"#)
    }

    /// What can go wrong with it.
    fn risk(self) -> &'static str {
        match self {
            Self::Wake | Self::WakeTold => {
                "It holds nothing back and acknowledges nothing; without it, connections go on as today."
            }
            Self::HoldoverTold => {
                "It acknowledges nothing early. If it stops in an outage, connections go on as today."
            }
            Self::MTcpPlusTold => {
                "It acknowledges data that the mobile does not have yet. If it stops in an outage for \
                 good, these are lost, and their connections with them."
            }
        }
    }
}

/// Something that somebody can change, alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Nothing,
    Gateway(Mechanism),
    Sender(Sender),
    /// FQ-CoDel in the place of the queue towards the mobile.
    Queue,
}

/// Who can make a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Edge,
    Server,
    Queue,
}

impl Change {
    fn owner(self) -> Option<Owner> {
        match self {
            Self::Nothing => None,
            Self::Gateway(_) => Some(Owner::Edge),
            Self::Sender(_) => Some(Owner::Server),
            Self::Queue => Some(Owner::Queue),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Nothing => "as it is".to_owned(),
            Self::Gateway(mechanism) => {
                let told = if mechanism.is_told() { ", told of outages" } else { "" };
                format!("{}{told}", mechanism.word())
            }
            Self::Sender(sender) => sender.word().to_owned(),
            Self::Queue => "fq-codel".to_owned(),
        }
    }

    /// In the table.
    fn label(self) -> String {
        let name = self.name();
        match self.owner() {
            None => name,
            Some(Owner::Edge) => format!("gateway: {name}"),
            Some(Owner::Server) => format!("server: {name}"),
            Some(Owner::Queue) => format!("queue: {name}"),
        }
    }

    /// How it is made, for people, on a link whose outages are announced so.
    fn instructions(self, announced: Announced) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Gateway(mechanism) => {
                let mut text = "/etc/airtcp/gateway.toml (docs/gateway.md):\n\n".to_owned();
                text += "[[mobile]]\nname = \"mobiles\"\naddresses = [\"192.0.2.0/24\"]  # theirs\n";
                let _ = writeln!(text, "mechanism = \"{}\"", mechanism.word());
                if mechanism.is_told() {
                    text += &announced.instructions();
                }
                text + "\n" + mechanism.risk() + "\n"
            }
            Self::Sender(sender) => {
                let set = format!("sysctl -w net.ipv4.tcp_congestion_control={}\n", sender.word());
                set + EVERYWHERE + sender.risk() + "\n"
            }
            Self::Queue => "tc qdisc replace dev INTERFACE root fq_codel\n\
                            It works only where packets wait: in front of the link, not in a modem. Flows \
                            then share the link evenly: one that had more gets less.\n"
                .to_owned(),
        }
    }
}

/// How a mechanism that needs to be told hears of the outages of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announced {
    /// Each is reported when it has begun, and when it is over, so late.
    Reported(Duration),
    /// All are over before they would be reported, so late.
    TooLate(Duration),
    /// They are interruptions at the ends of slots, which are known beforehand.
    Timetable { length: Duration, every: Duration },
}

impl Announced {
    /// # Errors
    /// A delay of reports is given, and there are none.
    fn of(args: &AdviseArgs, down: &LinkConfig, up: &LinkConfig) -> Result<Self, String> {
        const DELAY: Duration = Duration::from_millis(100);
        let listed = [down, up].iter().any(|link| link.outage.is_some());
        let interrupted = |link: &LinkConfig| {
            let slots = link.reconfiguration.as_ref()?;
            Some(Self::Timetable { length: slots.interruption?, every: slots.interval })
        };
        let timetable = interrupted(down).or_else(|| interrupted(up)).filter(|_| !listed);
        match (timetable, args.report_delay) {
            (Some(_), Some(_)) => {
                Err("airtcp: --report-delay: has no effect: the interruptions of \
                                       `reconfiguration` are announced by a timetable"
                    .to_owned())
            }
            (Some(timetable), None) => Ok(timetable),
            (None, Some(_)) if first_outage(down, up).is_none() => {
                Err("airtcp: --report-delay: has no effect: the link has no outages".to_owned())
            }
            (None, delay) => {
                let delay = delay.unwrap_or(DELAY);
                let longest = longest_outage(args.duration, down, up);
                let is_over = longest.is_some_and(|longest| longest <= delay);
                Ok(if is_over { Self::TooLate(delay) } else { Self::Reported(delay) })
            }
        }
    }

    /// The value of the key `signal`. By a timetable, a mechanism hears of outages ahead.
    fn key(self) -> String {
        match self {
            Self::Reported(late) | Self::TooLate(late) => {
                format!(r#"{{ late = "{late}", delay = "{late}" }}"#)
            }
            Self::Timetable { .. } => format!(r#"{{ lead = "{LEAD}" }}"#),
        }
    }

    fn instructions(self) -> String {
        match self {
            Self::Reported(_) | Self::TooLate(_) => {
                "\nand let something report outages (airtcp gateway signal, carrier, \
                                  timetable, agent).\n"
                    .to_owned()
            }
            Self::Timetable { length, every } => format!(
                "\n[[signals.planned]]           # the ends of slots (docs/leo.md), for each mobile\n\
                 mobile = \"192.0.2.1\"\n\
                 begin = 2026-01-01T00:00:12Z  # an end of a slot\n\
                 every = \"{every}\"\nlength = \"{length}\"\nlead = \"{LEAD}\"\n"
            ),
        }
    }
}

/// Time by which a timetable announces an outage ahead, as scenarios have it.
const LEAD: Duration = Duration::from_millis(50);

/// Runs the command and returns the exit code.
pub(crate) fn run(args: &AdviseArgs) -> i32 {
    let plan = match plan(args) {
        Ok(plan) => plan,
        Err(message) => {
            tell(&message);
            return BAD_INPUT;
        }
    };
    match measure(args, &plan) {
        Ok(metrics) => print(&report(args, &plan, &metrics)),
        Err(message) => {
            complain(&message);
            FAILURE
        }
    }
}

/// What is to be simulated.
struct Plan {
    announced: Announced,
    /// That nothing changes comes first.
    changes: Vec<Change>,
    /// For each run a scenario of each change; one list if all runs have the same.
    scenarios: Vec<Vec<Scenario>>,
}

const TEMPLATE: &str = r#"
[[node]]
name = "server"
[[node]]
name = "edge"
[[node]]
name = "mobile"

[[link]]
name = "wired"
between = ["server", "edge"]
rate = "10 Gbit/s"
queue = { limit = "100000 packets" }

[[link]]
name = "radio"
between = ["edge", "mobile"]
rate = "1 Gbit/s"
delay = "0 s"

[[flow]]
name = "flow"
from = "server"
to = "mobile"
opens = "receiver"
# Each run meets the outages at another time.
jitter = "1 s"
"#;

/// Indices of the two directions of `radio`.
const DOWN: usize = 2;
const UP: usize = 3;

fn plan(args: &AdviseArgs) -> Result<Plan, String> {
    check_seeds(args.seed, args.runs)?;
    let file = LinkFile::read(&args.link)?;
    let (down, up) = read_link(args, &file, args.outages.as_ref().map(Outages::to_override))?;
    let announced = Announced::of(args, &down, &up)?;
    let first = first_outage(&down, &up);
    if let Some(first) = first.filter(|&first| first >= args.duration) {
        return Err(format!(
            "airtcp: the first outage of the link begins at {first}: expected a longer --duration, \
             which is {}",
            args.duration
        ));
    }
    let mut changes = vec![Change::Nothing];
    let can_be_told = first.is_some() && !matches!(announced, Announced::TooLate(_));
    let gateways = Mechanism::ALL.iter().filter(|it| can_be_told || !it.is_told());
    changes.extend(gateways.map(|&mechanism| Change::Gateway(mechanism)));
    let senders = Sender::value_variants().iter().filter(|&&sender| sender != args.sender);
    changes.extend(senders.map(|&sender| Change::Sender(sender)));
    if !matches!(down.queue, QueueConfig::FqCodel { .. }) {
        changes.push(Change::Queue);
    }
    let of_link = |(down, up): &(LinkConfig, LinkConfig)| -> Result<Vec<Scenario>, String> {
        changes.iter().map(|&change| scenario(args, announced, change, down, up)).collect()
    };
    let scenarios = match &args.outages {
        None => vec![of_link(&(down, up))?],
        Some(outages) => {
            let of_run =
                |run| of_link(&read_link(args, &file, Some(outages.of_run(run, args.duration)))?);
            (0..args.runs.get()).map(of_run).collect::<Result<_, _>>()?
        }
    };
    Ok(Plan { announced, changes, scenarios })
}

/// The metrics of all runs of each change, in the order of the seeds.
fn measure(args: &AdviseArgs, plan: &Plan) -> Result<Vec<Vec<RunMetrics>>, String> {
    let runs = args.runs.get();
    let all = plan.changes.len() * runs;
    let mut finished: Vec<Option<RunMetrics>> = (0..all).map(|_| None).collect();
    let mut failure = None;
    let mut done = 0;
    let progress = Progress::new(all, !args.quiet);
    runs::in_parallel(
        all,
        args.jobs,
        |i, stopped| {
            // The same seeds and outages for each change: comparisons are paired.
            let (change, run) = (i / runs, i % runs);
            let scenario = &plan.scenarios[run % plan.scenarios.len()][change];
            let seed = args.seed + run as u64;
            let mut world = World::new(scenario, seed);
            let mut nobody = Observers::default();
            match runs::run_to_end(&mut world, scenario.duration, &mut nobody, stopped) {
                true => Outcome::Finished(world.metrics()),
                false => Outcome::Stopped,
            }
        },
        |i, outcome| {
            match outcome {
                Outcome::Finished(metrics) => finished[i] = Some(metrics),
                Outcome::Failed(reason) => failure = Some(reason),
                Outcome::Stopped => {}
            }
            done += 1;
            progress.show(done);
            failure.is_none()
        },
    );
    progress.end();
    let finished = finished.into_iter().collect::<Option<Vec<_>>>();
    let finished = finished.ok_or_else(|| failure.unwrap_or("interrupted".to_owned()))?;
    Ok(finished.chunks(runs).map(<[_]>::to_vec).collect())
}

/// Time until the first outage of a direction.
fn first_outage(down: &LinkConfig, up: &LinkConfig) -> Option<Duration> {
    let outages = [down, up].into_iter().filter_map(LinkConfig::interruptions);
    let first = outages.filter_map(|outages| outages.next_outage(Instant::ZERO));
    first.map(|(start, _)| start.since_start()).min()
}

/// The longest time within a run in which nothing gets through; `None`: there is none.
fn longest_outage(duration: Duration, down: &LinkConfig, up: &LinkConfig) -> Option<Duration> {
    let outages: Schedules = [down, up].into_iter().filter_map(LinkConfig::interruptions).collect();
    let within = outages.outages_in(&(Instant::ZERO..Instant::ZERO + duration)).into_iter();
    within.map(|(start, end)| end.since(start)).max()
}

/// The content of the file that describes the link. It is read once, as it may come through a pipe.
enum LinkFile {
    /// The keys of a link file.
    Keys(String),
    /// A Mahimahi trace or a table: what both directions follow.
    Recording(String),
}

impl LinkFile {
    fn read(path: &Path) -> Result<Self, String> {
        let text = link::contents(path)?;
        match path.extension().is_some_and(|ending| ending == "toml") {
            true => Ok(Self::Keys(text)),
            false => Ok(Self::Recording(text)),
        }
    }
}

/// The directions to and from the mobile.
fn read_link(
    args: &AdviseArgs,
    file: &LinkFile,
    outages: Option<Override>,
) -> Result<(LinkConfig, LinkConfig), String> {
    let name = args.link.display().to_string();
    let (keys, recording) = match file {
        LinkFile::Keys(text) => (text.as_str(), None),
        LinkFile::Recording(text) => ("", Some(text)),
    };
    let mut overrides: Vec<Override> = outages.into_iter().collect();
    overrides
        .extend(recording.iter().flat_map(|text| link::of_recording("--link", "", &name, text)));
    overrides.extend(args.set.iter().map(Override::set));
    let beside = files::beside(&name);
    let files = |path: &str| match recording {
        Some(text) if path == name => Ok(text.clone()),
        _ => beside(path),
    };
    let read = EmulatedLink::parse(&name, keys, &overrides, &files);
    let read = read.map_err(|error| error.render())?;
    if read.wlan.is_some() {
        return Err(format!(
            "airtcp: {name}: wlan: advice is for links without a wireless cell in front; \
             simulate it with `airtcp run` ([[wlan]], docs/scenario.md)"
        ));
    }
    if read.only.is_some() {
        return Err(format!(
            "airtcp: {name}: only: has no effect on simulated links, which all packets go through"
        ));
    }
    Ok((direction(&args.link, read.down)?, direction(&args.link, read.up)?))
}

/// The configuration of a direction.
fn direction(link: &Path, direction: EmulatedDirection) -> Result<LinkConfig, String> {
    let EmulatedDirection { config, corrupt } = direction;
    match corrupt > 0.0 {
        false => Ok(config),
        true => Err(format!(
            "airtcp: {}: corrupt: has no effect on simulated links (expected loss = {{ kind = \
             \"bernoulli\", p = {corrupt} }}: packets with wrong checksums are dropped)",
            link.display()
        )),
    }
}

fn scenario(
    args: &AdviseArgs,
    announced: Announced,
    change: Change,
    down: &LinkConfig,
    up: &LinkConfig,
) -> Result<Scenario, String> {
    let sender = match change {
        Change::Sender(sender) => sender,
        _ => args.sender,
    };
    let mut set = vec![
        ("duration".to_owned(), args.duration.to_string()),
        ("link.wired.delay".to_owned(), args.server_delay.to_string()),
        ("tcp.congestion".to_owned(), sender.word().to_owned()),
    ];
    if let Some(traffic) = args.traffic.key() {
        set.push(("flow.flow.traffic".to_owned(), traffic.to_owned()));
    }
    if let Change::Gateway(mechanism) = change {
        set.push(("node.edge.middlebox".to_owned(), mechanism.middlebox(announced)));
    }
    if change == Change::Queue {
        set.push(("link.radio.queue".to_owned(), r#"{ kind = "fq-codel" }"#.to_owned()));
    }
    let parsed = Scenario::parse("advise", TEMPLATE, &set).map_err(|error| error.render())?;
    Ok(with_link(parsed, change, down, up))
}

/// The scenario with the link in the place of the template's, except for a changed queue.
fn with_link(
    mut scenario: Scenario,
    change: Change,
    down: &LinkConfig,
    up: &LinkConfig,
) -> Scenario {
    let queue = match change {
        Change::Queue => scenario.links[DOWN].config.queue.clone(),
        _ => down.queue.clone(),
    };
    scenario.links[DOWN].config = LinkConfig { queue, ..down.clone() };
    scenario.links[UP].config = up.clone();
    scenario.links[UP].sender = LinkSender::Mobile;
    scenario
}

/// A change's numbers.
struct Row<'a> {
    change: Change,
    runs: &'a [RunMetrics],
    values: Vec<f64>,
    /// By how much it is better than things as they are.
    gain: Estimate,
    /// That it is better is shown, also if as many changes are tried.
    helps: bool,
}

/// The table, and the advice.
fn report(args: &AdviseArgs, plan: &Plan, metrics: &[Vec<RunMetrics>]) -> String {
    let announced = plan.announced;
    let measure = args.traffic.measure();
    let sign = if measure.more_is_better { 1.0 } else { -1.0 };
    let of = |runs: &[RunMetrics]| -> Vec<f64> {
        runs.iter().map(|run| sign * (measure.of)(run)).collect()
    };
    let today = of(&metrics[0]);
    let mut rows: Vec<Row<'_>> = (plan.changes.iter().zip(metrics))
        .map(|(&change, runs)| {
            let values = of(runs);
            let gain = Estimate::of_differences(&values, &today);
            Row { change, runs, values, gain, helps: false }
        })
        .collect();
    let p_value = |row: &Row<'_>| p_value(&differences(&row.values, &today));
    // The first row is of no change.
    let helping = shown(&rows[1..].iter().map(p_value).collect::<Vec<_>>());
    rows[1..].iter_mut().zip(helping).for_each(|(row, helps)| row.helps = helps);
    let outages = args.outages.as_ref().map_or_else(String::new, |outages| {
        let all = (0..args.runs.get()).flat_map(|run| outages.lengths(run, args.duration));
        let (shortest, longest) = all.fold((Duration::MAX, Duration::ZERO), |(least, most), it| {
            (least.min(it), most.max(it))
        });
        format!(" with outages of {shortest} to {longest}")
    });
    let mut out = format!(
        "{}: {} by {}, {} in each of {} runs{outages}; mean ± 95 % confidence interval\n",
        args.link.display(),
        args.traffic.describe(),
        args.sender.word(),
        args.duration,
        args.runs
    );
    out += &table(args, &measure, sign, &rows);
    if let Announced::TooLate(delay) = announced {
        let _ = writeln!(
            out,
            "\nMechanisms that must be told of outages are left out: each outage is over before it \
             is reported, {delay} after it began (--report-delay)."
        );
    }
    for (owner, who) in [
        (Owner::Edge, "At the edge of the link"),
        (Owner::Server, "On the server"),
        (Owner::Queue, "In the queue towards the mobile"),
    ] {
        let of_owner: Vec<&Row<'_>> =
            rows.iter().filter(|row| row.change.owner() == Some(owner)).collect();
        if of_owner.is_empty() {
            continue;
        }
        match best(&of_owner) {
            Some(row) => {
                let _ = writeln!(out, "\n{who}, {} helps:\n", row.change.name());
                for line in row.change.instructions(announced).lines() {
                    let _ = writeln!(out, "{}", format!("    {line}").trim_end());
                }
            }
            None => {
                let enough = ALIKE * Estimate::of(&today).mean.abs();
                let may_help = |row: &&Row<'_>| row.gain.may_exceed(enough);
                let nothing = match of_owner.iter().any(may_help) {
                    true => "nothing here is shown to help; more runs may show more (--runs)",
                    false => "nothing here helps",
                };
                let _ = writeln!(out, "\n{who}, {nothing}.{}", quicker(&of_owner, &rows[0]));
            }
        }
    }
    out
}

/// Changes help alike if their results differ by no more than this part.
const ALIKE: f64 = 0.01;

/// The first change that helps as much as the one that helps most, or is not shown to help less.
fn best<'a, 'b>(rows: &[&'a Row<'b>]) -> Option<&'a Row<'b>> {
    let helping = || rows.iter().copied().filter(|row| row.helps);
    let most = helping().max_by(|a, b| a.gain.mean.total_cmp(&b.gain.mean))?;
    let enough = ALIKE * Estimate::of(&most.values).mean.abs();
    helping().find(|row| {
        let less = Estimate::of_differences(&most.values, &row.values);
        !less.is_positive() || less.mean <= enough
    })
}

/// Says which change makes round trips shorter, if one does.
fn quicker(rows: &[&Row<'_>], today: &Row<'_>) -> String {
    let long = |row: &Row<'_>| -> Vec<f64> {
        row.runs.iter().map(|run| run.flows[0].rtt_p95.map_or(0.0, |rtt| 1e3 * rtt)).collect()
    };
    let of_today = long(today);
    let gain = |row: &&&Row<'_>| Estimate::of_differences(&of_today, &long(row));
    let most = rows.iter().max_by(|a, b| gain(a).mean.total_cmp(&gain(b).mean));
    match most.filter(|row| gain(row).is_positive() && gain(row).mean >= 1.0) {
        Some(row) => format!(
            " With {}, the 95th percentile of round trips is {} ms shorter.",
            row.change.name(),
            gain(&row).show(0)
        ),
        None => String::new(),
    }
}

fn table(args: &AdviseArgs, measure: &Measure, sign: f64, rows: &[Row<'_>]) -> String {
    let (other_title, other) = args.traffic.other();
    let titles = ["", measure.title, "against today", other_title, "retransmitted %", "RTT p95 ms"];
    let mut cells = vec![titles.map(str::to_owned)];
    for Row { change, runs, values, gain, .. } in rows {
        let shown: Vec<f64> = values.iter().map(|value| sign * value + 0.0).collect();
        let of_those_with = |of: &dyn Fn(&RunMetrics) -> Option<f64>, decimals| {
            let values: Vec<f64> = runs.iter().filter_map(of).collect();
            if values.is_empty() { "-".to_owned() } else { Estimate::of(&values).show(decimals) }
        };
        // Not -0.
        let against = Estimate { mean: sign * gain.mean + 0.0, ..*gain };
        cells.push([
            change.label(),
            Estimate::of(&shown).show(DECIMALS),
            match change {
                Change::Nothing => String::new(),
                _ => format!(
                    "{}{}",
                    if against.mean > 0.0 { "+" } else { "" },
                    against.show(DECIMALS)
                ),
            },
            of_those_with(&other, 2),
            of_those_with(&|run| Some(100.0 * run.flows[0].retransmission_ratio), 2),
            of_those_with(&|run| run.flows[0].rtt_p95.map(|rtt| 1e3 * rtt), 0),
        ]);
    }
    aligned(&cells, &[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "gateway")]
    use airtcp_sim::scenario::MechanismSpec;

    fn row(change: Change, values: &[f64]) -> Row<'static> {
        let gain = Estimate::of_differences(values, &[0.0, 0.0, 0.0]);
        Row { change, runs: &[], values: values.to_vec(), gain, helps: gain.is_positive() }
    }

    #[test]
    fn of_changes_that_help_alike_the_one_that_needs_less_is_advised() {
        let rows = [
            row(Change::Gateway(Mechanism::Wake), &[1.0, 1.1, 1.2]),
            row(Change::Gateway(Mechanism::WakeTold), &[1.05, 1.0, 1.3]),
            row(Change::Gateway(Mechanism::HoldoverTold), &[-1.0, 3.0, 8.0]),
        ];
        let best = best(&rows.iter().collect::<Vec<_>>()).map(|row| row.change);
        assert_eq!(best, Some(Change::Gateway(Mechanism::Wake)));
    }

    #[test]
    fn one_that_helps_less_by_half_a_percent_and_needs_less_is_advised() {
        let rows = [
            row(Change::Gateway(Mechanism::Wake), &[2.0, 2.1, 2.2]),
            row(Change::Gateway(Mechanism::HoldoverTold), &[2.01, 2.111, 2.21]),
        ];
        let best = best(&rows.iter().collect::<Vec<_>>()).map(|row| row.change);
        assert_eq!(best, Some(Change::Gateway(Mechanism::Wake)));
    }

    #[test]
    fn outages_of_runs_are_spread_over_an_octave_and_end_before_the_next() {
        let minute = Duration::from_secs(60);
        let lengths = |outages: &str, runs| -> Vec<f64> {
            let outages = Outages::parse(outages).unwrap();
            let of_run = |run| outages.lengths(run, minute).collect::<Vec<_>>();
            let mut all: Vec<f64> =
                (0..runs).flat_map(of_run).map(|length| length.as_secs_f64()).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let all = lengths("4s/20s", 100);
        assert_eq!(all.len(), 300);
        for (n, length) in all.iter().enumerate() {
            let even = 4.0 * ((n as f64 + 0.5) / 300.0 - 0.5).exp2();
            assert!((length / even - 1.0).abs() < 0.01, "{n}: {length}, {even}");
        }
        assert!(lengths("9s/10s", 10).iter().all(|&length| length <= 9.5));
        let outages = Outages::parse("4s/30s").unwrap().of_run(0, minute).value;
        assert_eq!(outages, r#"{ listed = [["27.172 s", "30 s"], ["55.659 s", "60 s"]] }"#);
    }

    #[test]
    fn one_that_helps_more_is_advised_even_if_it_needs_more() {
        let rows = [
            row(Change::Gateway(Mechanism::Wake), &[1.0, 1.1, 1.2]),
            row(Change::Gateway(Mechanism::MTcpPlusTold), &[2.0, 2.1, 2.25]),
        ];
        let best = best(&rows.iter().collect::<Vec<_>>()).map(|row| row.change);
        assert_eq!(best, Some(Change::Gateway(Mechanism::MTcpPlusTold)));
    }

    #[test]
    fn what_is_not_shown_to_help_is_not_advised() {
        let rows = [row(Change::Queue, &[-1.0, 0.0, 2.0])];
        assert!(best(&rows.iter().collect::<Vec<_>>()).is_none());
    }

    #[test]
    fn outages_are_a_length_and_a_period() {
        let text = |outages: &str| Outages::parse(outages).map(|it| it.to_override().value);
        assert_eq!(
            text("5s/1min").unwrap(),
            r#"{ period = "60 s", start = "55 s", end = "60 s" }"#
        );
        for wrong in ["5s", "5s/5s", "0s/1s", "5/60", "-1s/5s"] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
    }

    /// The scenario with what it lacks, and with these keys.
    fn template(more: &[(&str, &str)]) -> Scenario {
        let needed = [("duration", "10 s"), ("link.wired.delay", "1 ms")];
        let set: Vec<_> = needed.iter().chain(more).map(|&(k, v)| (k.into(), v.into())).collect();
        Scenario::parse("advise", TEMPLATE, &set).unwrap()
    }

    #[test]
    fn the_radio_is_where_the_link_goes() {
        let scenario = template(&[]);
        assert_eq!(scenario.links[DOWN].name, "edge>mobile");
        assert_eq!(scenario.links[UP].name, "mobile>edge");
    }

    #[cfg(feature = "gateway")]
    #[test]
    fn the_gateway_that_is_simulated_is_the_one_that_is_advised() {
        let announced = Announced::Reported(Duration::from_millis(100));
        for mechanism in Mechanism::ALL {
            let scenario = template(&[("node.edge.middlebox", &mechanism.middlebox(announced))]);
            let edge = scenario.nodes.iter().find_map(|node| node.middlebox.as_deref());
            let text = format!(
                "[[mobile]]\nname = \"m\"\naddresses = [\"10.0.0.0/8\"]\nmechanism = \"{}\"",
                mechanism.word()
            );
            let gateway = airtcp_gateway::config::GatewayConfig::parse("g", &text).unwrap();
            let expected = MechanismSpec::Edge(gateway.groups[0].mechanism);
            assert_eq!(edge.unwrap().mechanism, expected);
        }
    }
}
