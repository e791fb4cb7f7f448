//! `airtcp link`: a command behind an emulated link, or two namespaces joined by one.

use airtcp_cli::check::{Kind, Live};
use airtcp_cli::{BAD_INPUT, FAILURE, check_folder, complain, override_pair, print, seed, tell};
use airtcp_config::Override;
use airtcp_core::{Duration, counted};
use airtcp_emu::control::{self, Order};
use airtcp_emu::{DirectionSetup, EmulatedLink, Report, Setup};
use airtcp_net::LinkCounters;
use airtcp_net::table::{self, is_table};
use airtcp_net::wifi::StationCounters;
use airtcp_sim::scenario::files::{self, Inputs};
use clap::Args;
use ipnet::Ipv4Net;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Arguments of `airtcp link`.
#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// Link file (docs/link.md); options override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Serialisation rate, such as `8mbit` or "250 kbit/s" [default: 100 Gbit/s].
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Rate from the command to the network only.
    #[arg(long, value_name = "RATE")]
    up_rate: Option<String>,
    /// Rate from the network to the command only.
    #[arg(long, value_name = "RATE")]
    down_rate: Option<String>,
    /// One-way propagation delay, such as `20ms` [default: 0 s].
    #[arg(long, value_name = "TIME")]
    delay: Option<String>,
    /// Delay from the command to the network only.
    #[arg(long, value_name = "TIME")]
    up_delay: Option<String>,
    /// Delay from the network to the command only.
    #[arg(long, value_name = "TIME")]
    down_delay: Option<String>,
    /// Capacity of the queue, such as `60kB` or "50 packets" [default: 50 packets].
    #[arg(long, value_name = "LIMIT")]
    queue: Option<String>,
    /// Queue from the command to the network only.
    #[arg(long, value_name = "LIMIT")]
    up_queue: Option<String>,
    /// Queue from the network to the command only.
    #[arg(long, value_name = "LIMIT")]
    down_queue: Option<String>,
    /// Probability that a packet is lost, such as 0.01.
    #[arg(long, value_name = "P")]
    loss: Option<String>,
    /// Loss from the command to the network only.
    #[arg(long, value_name = "P")]
    up_loss: Option<String>,
    /// Loss from the network to the command only.
    #[arg(long, value_name = "P")]
    down_loss: Option<String>,
    /// Probability that a packet is followed by a copy, such as 0.01.
    #[arg(long, value_name = "P")]
    duplicate: Option<String>,
    /// Copies from the command to the network only.
    #[arg(long, value_name = "P")]
    up_duplicate: Option<String>,
    /// Copies from the network to the command only.
    #[arg(long, value_name = "P")]
    down_duplicate: Option<String>,
    /// Probability that a packet has one bit flipped, such as 0.001.
    #[arg(long, value_name = "P")]
    corrupt: Option<String>,
    /// Flipped bits from the command to the network only.
    #[arg(long, value_name = "P")]
    up_corrupt: Option<String>,
    /// Flipped bits from the network to the command only.
    #[arg(long, value_name = "P")]
    down_corrupt: Option<String>,
    /// Only packets to and from these hosts outside, such as 192.0.2.0/24, go through the link; all
    /// others pass beside it. May be repeated.
    #[arg(long, value_name = "PREFIX")]
    only_network: Vec<String>,
    /// Only packets to and from this TCP or UDP port outside go through the link. May be repeated.
    #[arg(long, value_name = "PORT")]
    only_port: Vec<String>,
    /// A half-duplex wireless hop in front of the link: a preset of 802.11, such as `ieee`
    /// (docs/link.md). Set its keys with `--set wlan.data-rate="2 Mbit/s"` and the like.
    #[arg(long, value_name = "PRESET")]
    wlan: Option<String>,
    /// Mahimahi trace of the rate from the command to the network, or table (NAME.csv) of rate, and
    /// perhaps delay and loss.
    #[arg(long, value_name = "FILE", conflicts_with = "up_rate")]
    up_trace: Option<PathBuf>,
    /// The same from the network to the command.
    #[arg(long, value_name = "FILE", conflicts_with = "down_rate")]
    down_trace: Option<PathBuf>,
    /// Logs the packets from the command to the network, in the format of Mahimahi's `mm-link`.
    #[arg(long, value_name = "FILE", alias = "uplink-log")]
    up_log: Option<PathBuf>,
    /// Logs the packets from the network to the command.
    #[arg(long, value_name = "FILE", alias = "downlink-log")]
    down_log: Option<PathBuf>,
    /// Sets any key of the link file, such as `down.outage.listed=[["5 s", "10 s"]]`; may be
    /// repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = override_pair)]
    set: Vec<(String, String)>,
    /// Seed of losses, copies, flipped bits and delays.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, allow_negative_numbers = true)]
    seed: u64,
    /// Fails the run if more than one packet in 100 leaves later than this after its time. From
    /// 10ms on, the link takes less processor time, and packets leave about 0.02 ms later
    /// (docs/link.md).
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = airtcp_sim::scenario::duration)]
    late: Duration,
    /// IPv4 block that the link takes its addresses from [default: the first of 100.64.0.0/10,
    /// 198.18.0.0/15 and 10.213.0.0/16 that this machine has no route to].
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    prefix: Option<Ipv4Net>,
    /// Joins two existing namespaces (`ip netns`) instead of running a command; "up" is from the
    /// first to the second.
    #[arg(long, num_args = 2, value_names = ["NAMESPACE", "NAMESPACE"], conflicts_with = "command")]
    between: Option<Vec<String>>,
    /// Accepts orders (`--at`) on this Unix socket while the link runs.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Sends an order to the link with this `--control` socket; prints that link's status once the
    /// order has taken effect.
    #[arg(
        long,
        value_name = "SOCKET",
        requires = "order",
        conflicts_with_all = [
            "config", "rate", "up_rate", "down_rate", "delay", "up_delay", "down_delay",
            "queue", "up_queue", "down_queue", "loss", "up_loss", "down_loss", "duplicate",
            "up_duplicate", "down_duplicate", "corrupt", "up_corrupt", "down_corrupt", "only_network", "only_port",
            "wlan",
            "up_trace", "down_trace", "up_log", "down_log", "set", "prefix", "between",
            "control", "seed", "late", "command",
        ]
    )]
    at: Option<PathBuf>,
    /// With `--at`: `status`, `down`, `up`, `rate 5mbit`, `delay 30ms`, `loss 0.01`, `duplicate
    /// 0.01` or `corrupt 0.01`; all but the first take `uplink` or `downlink` for one direction.
    #[arg(value_name = "ORDER", num_args = 1..=4, requires = "at")]
    order: Vec<String>,
    /// Command to run behind the link, in a network namespace of its own.
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["between", "at"])]
    command: Vec<OsString>,
}

/// Reads a block of addresses (of `--prefix`).
fn prefix(text: &str) -> Result<Ipv4Net, String> {
    let fits = |prefix: &Ipv4Net| prefix.prefix_len() <= 30 && prefix.addr() == prefix.network();
    text.parse().ok().filter(fits).ok_or_else(|| {
        "expected an IPv4 block of at least four addresses, such as 10.99.0.0/24".to_owned()
    })
}

/// Prints the schema of the link file.
pub(crate) fn schema(markdown: bool) -> i32 {
    print(&match markdown {
        true => airtcp_emu::config::markdown(),
        false => format!("{:#}\n", airtcp_emu::config::json_schema()),
    })
}

/// Link files, for `airtcp check`.
pub(crate) fn checked() -> Live {
    let read = |path: &Path, text: &str| {
        let name = path.display().to_string();
        let link = EmulatedLink::parse(&name, text, &[], &files::beside(&name));
        link.map(drop).map_err(|error| error.render())
    };
    Live { kind: Kind::Link, schema: airtcp_emu::config::json_schema(), read }
}

/// Runs the emulator and returns the exit code: the command's, unless the emulator itself failed.
pub(crate) fn run(args: &LinkArgs) -> i32 {
    if let Some(socket) = &args.at {
        return give_order(socket, &args.order.join(" "));
    }
    let prepared = || -> Result<_, String> {
        let inputs = Inputs::default();
        let link = read(args, &inputs)?;
        check_outputs(args, &inputs)?;
        let unchanged = || link.up.changes_nothing() && link.down.changes_nothing();
        let has_logs = args.up_log.is_some() || args.down_log.is_some();
        if link.only.is_some() && args.control.is_none() && !has_logs && unchanged() {
            return Err("airtcp: only: has no effect, as the link changes no packets (expected a rate, a delay \
                        or the like, or --control)"
                .to_owned());
        }
        Ok(link)
    };
    let link = match prepared() {
        Ok(prepared) => prepared,
        Err(message) => {
            tell(&message);
            return BAD_INPUT;
        }
    };
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let command_line = words.collect::<Vec<_>>().join(" ");
    let setup = Setup {
        up: DirectionSetup {
            config: &link.up.config,
            corrupt: link.up.corrupt,
            log: args.up_log.as_deref(),
        },
        down: DirectionSetup {
            config: &link.down.config,
            corrupt: link.down.corrupt,
            log: args.down_log.as_deref(),
        },
        only: link.only.as_ref(),
        air: link.wlan.as_ref(),
        seed: args.seed,
        late: args.late,
        control: args.control.as_deref(),
        prefix: args.prefix,
        command_line: &command_line,
    };
    let outcome = match args.between.as_deref() {
        Some([first, second]) => airtcp_emu::between(setup, [first, second], &mut complain),
        _ => airtcp_emu::around_command(setup, &args.command, &mut complain),
    };
    match outcome {
        Ok(outcome) => {
            let kept_up = summary(&outcome.report, args.late);
            if outcome.code == 0 && !kept_up { FAILURE } else { outcome.code }
        }
        Err(error) => {
            complain(&error.to_string());
            FAILURE
        }
    }
}

/// Checks that there is a folder for each file that the link makes, and nothing that it is not to
/// replace.
fn check_outputs(args: &LinkArgs, inputs: &Inputs) -> Result<(), String> {
    let LinkArgs { up_log, down_log, control, .. } = args;
    let mut others = Vec::new();
    for (option, file) in [("--up-log", up_log), ("--down-log", down_log), ("--control", control)] {
        let Some(file) = file else { continue };
        check_folder(file).map_err(|error| format!("airtcp: {option}: {error}"))?;
        inputs.spare(file).map_err(|message| format!("airtcp: {option}: {message}"))?;
        if others.contains(&file) {
            return Err(format!("airtcp: {option}: {}: used for two outputs", file.display()));
        }
        others.push(file);
    }
    Ok(())
}

/// Sends an order to a running link, and prints its answer as a line of JSON.
fn give_order(socket: &Path, order: &str) -> i32 {
    let order: Order = match order.parse() {
        Ok(order) => order,
        Err(message) => {
            complain(&message);
            return BAD_INPUT;
        }
    };
    match control::ask(socket, order) {
        Ok(status) => print(&format!("{}\n", serde_json::json!(status))),
        Err(error) => {
            complain(&format!("{}: {error} (is a link running with --control?)", socket.display()));
            FAILURE
        }
    }
}

/// The link that the file and the options describe.
fn read(args: &LinkArgs, inputs: &Inputs) -> Result<EmulatedLink, String> {
    let (name, text) = match &args.config {
        Some(path) => {
            let text = inputs.text(path).map_err(|message| format!("airtcp: {message}"))?;
            (path.display().to_string(), text)
        }
        None => ("link".to_owned(), String::new()),
    };
    EmulatedLink::parse(&name, &text, &overrides(args, inputs)?, &inputs.beside(&name))
        .map_err(|error| error.render())
}

/// The text of a file.
pub(crate) fn contents(path: &Path) -> Result<String, String> {
    files::text(path).map_err(|message| format!("airtcp: {message}"))
}

/// The options as keys of the file. Their order does not matter: a key for one direction overrides
/// that for both.
fn overrides(args: &LinkArgs, inputs: &Inputs) -> Result<Vec<Override>, String> {
    let options = [
        ("--rate", "rate", &args.rate),
        ("--up-rate", "up.rate", &args.up_rate),
        ("--down-rate", "down.rate", &args.down_rate),
        ("--delay", "delay", &args.delay),
        ("--up-delay", "up.delay", &args.up_delay),
        ("--down-delay", "down.delay", &args.down_delay),
        ("--queue", "queue.limit", &args.queue),
        ("--up-queue", "up.queue.limit", &args.up_queue),
        ("--down-queue", "down.queue.limit", &args.down_queue),
        ("--loss", "loss.p", &args.loss),
        ("--up-loss", "up.loss.p", &args.up_loss),
        ("--down-loss", "down.loss.p", &args.down_loss),
        ("--duplicate", "duplicate", &args.duplicate),
        ("--up-duplicate", "up.duplicate", &args.up_duplicate),
        ("--down-duplicate", "down.duplicate", &args.down_duplicate),
        ("--corrupt", "corrupt", &args.corrupt),
        ("--up-corrupt", "up.corrupt", &args.up_corrupt),
        ("--down-corrupt", "down.corrupt", &args.down_corrupt),
        ("--wlan", "wlan.preset", &args.wlan),
    ];
    let mut overrides = only(args);
    for (option, direction, file) in
        [("--up-trace", "up.", &args.up_trace), ("--down-trace", "down.", &args.down_trace)]
    {
        let Some(file) = file else { continue };
        let name = name_in_keys(option, file)?;
        // Why it cannot be read is said where its key is.
        let text =
            if is_table(&name) { inputs.text(file).unwrap_or_default() } else { String::new() };
        overrides.extend(of_recording(option, direction, &name, &text));
    }
    let recorded = overrides.len();
    for (option, path, value) in options {
        let Some(value) = value else { continue };
        let key = path.strip_suffix(".p").unwrap_or(path);
        if let Some(table) = overrides[..recorded].iter().find(|it| it.path == key) {
            let other = &table.option;
            return Err(format!("airtcp: {option} contradicts {other} (expected one of them)"));
        }
        if let Some(table) = path.strip_suffix(".p") {
            overrides.push(Override::new(option, &format!("{table}.kind"), "bernoulli"));
        }
        overrides.push(Override::new(option, path, value));
    }
    for (path, value) in &args.set {
        let hidden = |it: &&Override| {
            it.path
                .strip_prefix(path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if let Some(Override { option, .. }) = overrides.iter().find(hidden) {
            return Err(format!(
                "airtcp: {option} would have no effect beside --set {path}={value} (expected one of them)"
            ));
        }
    }
    overrides.extend(args.set.iter().map(Override::set));
    Ok(overrides)
}

/// The keys by which a direction (`up.`, `down.`; empty: both) follows a recording: its rate, and what
/// else a table has.
pub(crate) fn of_recording(option: &str, direction: &str, name: &str, text: &str) -> Vec<Override> {
    let file = serde_json::json!(name);
    let columns = if is_table(name) { table::columns(text) } else { Vec::new() };
    let keys = ["rate", "delay", "loss"].into_iter();
    keys.filter(|key| *key == "rate" || columns.contains(key))
        .map(|key| {
            let kind = if key == "loss" { "kind = \"schedule\", " } else { "" };
            let value = format!("{{ {kind}file = {file} }}");
            Override::new(option, &format!("{direction}{key}"), &value)
        })
        .collect()
}

/// The name of an option's file in the keys of a link file. Paths of options count from the working
/// folder, and those of link files from theirs.
fn name_in_keys(option: &str, file: &Path) -> Result<String, String> {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    file.to_str().map(str::to_owned).ok_or_else(|| {
        format!(
            "airtcp: {option}: {}: the name is not UTF-8 (expected one that a link file can have)",
            file.display()
        )
    })
}

/// The options that choose packets, as keys of the file.
fn only(args: &LinkArgs) -> Vec<Override> {
    let networks: Vec<String> =
        args.only_network.iter().map(|text| serde_json::json!(text).to_string()).collect();
    let options = [
        ("--only-network", "only.networks", networks.join(", ")),
        ("--only-port", "only.ports", args.only_port.join(", ")),
    ];
    let given = options.into_iter().filter(|(.., values)| !values.is_empty());
    given.map(|(option, key, values)| Override::new(option, key, &format!("[{values}]"))).collect()
}

/// Prints the link's counters; returns true if the emulator kept up.
fn summary(report: &Report, bound: Duration) -> bool {
    let Report {
        up,
        down,
        corrupted,
        beside,
        lateness,
        dropped_by_kernel,
        refused_by_kernel,
        real_time,
        air,
    } = report;
    let directions = [("up", up), ("down", down)].into_iter().zip(corrupted).zip(beside);
    for (((name, counters), corrupted), beside) in directions {
        let LinkCounters {
            packets_sent,
            bytes_sent,
            queue_drops,
            ecn_marks,
            loss_drops,
            duplicates,
            policer_drops,
            outage_drops,
            ..
        } = counters;
        let packets = counted(*packets_sent, "packet");
        let policed = match policer_drops {
            0 => String::new(),
            drops => format!("{drops} by the policer, "),
        };
        let others: String = [
            ("marked by the queue", ecn_marks),
            ("copies made", duplicates),
            ("with a flipped bit", corrupted),
            ("beside the link", beside),
        ]
        .into_iter()
        .filter(|&(_, &count)| count > 0)
        .map(|(what, count)| format!("; {what}: {count}"))
        .collect();
        complain(&format!(
            "{name}: {packets}, {bytes_sent}; dropped: {policed}{queue_drops} by the \
             queue, {loss_drops} by loss, {outage_drops} by outages{others}"
        ));
    }
    for (name, counters) in
        ["the station", "the access point"].into_iter().zip(air.iter().flatten())
    {
        let StationCounters { data_sent, retries, mac_drops, queue_drops, .. } = counters;
        complain(&format!(
            "{name}: {}, retransmitted: {retries}; dropped: {queue_drops} by the queue, \
             {mac_drops} at the retry limit",
            counted(*data_sent, "data frame")
        ));
    }
    let policy = if *real_time { "SCHED_FIFO" } else { "without SCHED_FIFO" };
    let micros = |late: Duration| late.as_nanos() / 1000;
    complain(&format!(
        "lateness of {}: p50 {} us, p99 {} us, max {} us ({policy})",
        counted(lateness.count(), "packet"),
        micros(lateness.quantile(0.5)),
        micros(lateness.quantile(0.99)),
        micros(lateness.max())
    ));
    if *refused_by_kernel > 0 {
        let packets = counted(*refused_by_kernel, "packet");
        complain(&format!("{packets} lost on output: the device was down"));
    }
    let kept_up = report.kept_up(bound);
    if !kept_up {
        complain(&format!(
            "THE EMULATOR DID NOT KEEP UP: p99 lateness is {} us, --late allows {} us; the kernel dropped \
             {} before it could read them. Do not trust this run.",
            micros(lateness.quantile(0.99)),
            micros(bound),
            counted(*dropped_by_kernel, "packet")
        ));
    }
    kept_up
}
