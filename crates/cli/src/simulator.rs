//! The simulator's commands, and the command line that has only them.

use crate::files::{self, DraftFolder};
use crate::{FAILURE, LIVE, SUCCESS, absent, command, complain, parse, print};
use crate::{captures, check, mobility, packetdrill, python, python_commands, replay, run};
use airtcp_core::Duration;
use airtcp_sim::scenario::duration;
use airtcp_tcp::congestion::Controls;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

/// Simulates TCP mechanisms for wireless links.
#[derive(Debug, Parser)]
#[command(
    name = "airtcp",
    version,
    after_help = format!(
        "More commands, of the native binary for Linux (in wheels; in a checkout, `make build` makes it):\n  {}",
        LIVE.join(", ")
    )
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The simulator's commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs a scenario and prints a table, or JSON.
    #[command(
        after_help = "Exit codes: 0 all runs are done; 1 a run failed or was interrupted; 2 bad input"
    )]
    Run(RunArgs),
    /// Checks scenarios, studies, configurations of the gateway and link files: says ok, or all
    /// mistakes.
    #[command(after_help = "Exit codes: 0 all files are ok; 2 a file is not")]
    Check(check::Args),
    /// Replays a recording of the gateway and compares the actions (docs/record.md).
    #[command(
        after_help = "Exit codes: 0 the same actions; 1 they differ, or steps are missing; 2 bad input"
    )]
    Replay(replay::Args),
    /// Converts movement traces: from ns-2's setdest or BonnMotion into a scenario, and back.
    #[command(subcommand)]
    Mobility(mobility::Command),
    /// Runs packetdrill scripts on the endpoint: shows which pass, and why others fail
    /// (docs/packetdrill.md).
    #[command(after_help = "Exit codes: 0 no script fails; 1 a script fails; 2 bad input")]
    Packetdrill(packetdrill::Args),
    /// Prints the JSON Schema of the scenario file.
    ///
    /// Editors use it: `airtcp schema > scenario.schema.json`, then begin a scenario with the line
    /// `#:schema scenario.schema.json` (Taplo, Even Better TOML).
    Schema {
        /// Prints the schema of the gateway's configuration file instead (docs/gateway-config.md).
        #[arg(long)]
        gateway: bool,
        /// Prints the schema of `airtcp link --config`'s file instead (docs/link-config.md).
        #[arg(long, conflicts_with = "gateway")]
        link: bool,
        /// Prints documentation in Markdown instead (docs/scenario.md).
        #[arg(long)]
        markdown: bool,
        /// Documents the output of `run --json` and `run --events`, in Markdown (docs/metrics.md).
        #[arg(long, conflicts_with_all = ["gateway", "link", "markdown"])]
        metrics: bool,
    },
    /// Prints the completions of a shell: `airtcp completions bash >
    /// ~/.local/share/bash-completion/completions/airtcp`.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Writes manual pages: `airtcp man --out ~/.local/share/man/man1`.
    Man {
        /// Folder of the pages.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Reproduces a paper: `study list`, `study run STUDY` (needs the Python package).
    #[command(disable_help_flag = true)]
    Study {
        /// Passed on to the Python package.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Runs a scenario over a grid of settings and seeds, into a CSV or Parquet file (needs the
    /// Python package).
    #[command(disable_help_flag = true)]
    Sweep {
        /// Passed on to the Python package.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Draws a scenario's run, an event log, a capture or a link's log over time (docs/plot.md;
    /// needs the Python package).
    #[command(disable_help_flag = true)]
    Plot {
        /// Passed on to the Python package.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

impl Command {
    /// Runs the command, with `controls` for the scenarios that name them; returns the exit code.
    /// `C` is the command line of which it is a part.
    pub fn run<C: Parser>(&self, controls: &Controls) -> i32 {
        match self {
            Self::Run(args) => run::run(args, controls),
            Self::Check(args) => check::run(args, &[]),
            Self::Completions { shell } => {
                completions(*shell, &mut python_commands::describe(command::<C>()))
            }
            Self::Man { out } => manual(out, python_commands::describe(command::<C>())),
            Self::Replay(args) => replay::run(args),
            Self::Mobility(command) => mobility::run(command),
            Self::Packetdrill(args) => packetdrill::run(args),
            Self::Schema { metrics: true, .. } => print(&airtcp_sim::document::markdown()),
            Self::Schema { gateway: true, .. } => absent("schema --gateway"),
            Self::Schema { link: true, .. } => absent("schema --link"),
            Self::Schema { markdown: true, .. } => print(&airtcp_sim::scenario::markdown()),
            Self::Schema { .. } => print(&format!("{:#}\n", airtcp_sim::scenario::json_schema())),
            Self::Study { args } => python::hand_over("study", args),
            Self::Sweep { args } => python::hand_over("sweep", args),
            Self::Plot { args } => python::hand_over("plot", args),
        }
    }
}

/// Arguments of `airtcp run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Scenario file (docs/scenario.md).
    pub(crate) scenario: PathBuf,
    /// Seed of the (first) run.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Number of runs; their seeds count up from --seed.
    #[arg(long, value_name = "N", default_value = "1", value_parser = count, allow_negative_numbers = true)]
    pub(crate) runs: NonZeroUsize,
    /// Overrides a key of the scenario, such as `link.BS-MH.loss.p=0.02`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = override_pair)]
    pub(crate) set: Vec<(String, String)>,
    /// Prints one JSON object a line for each run, instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also prints a table of the links, and one of the stations.
    #[arg(long, conflicts_with = "json")]
    pub(crate) links: bool,
    /// Captures packets as tcpdump would: writes a pcapng file for each network interface into this
    /// folder (docs/captures.md); with several runs, `-seedN` is added to DIR's name.
    #[arg(long, value_name = "DIR")]
    pub(crate) pcap: Option<PathBuf>,
    /// Captures at this node only; may be repeated.
    #[arg(long, value_name = "NAME", requires = "pcap")]
    pub(crate) pcap_node: Vec<String>,
    /// Also captures the frames of each wlan, as a sniffer in monitor mode does: 802.11 with Radiotap
    /// headers, in `@WLAN.pcapng`.
    #[arg(long, requires = "pcap")]
    pub(crate) pcap_monitor: bool,
    /// Captures only the first bytes of each packet, such as 96: all headers.
    #[arg(long, value_name = "BYTES", requires = "pcap", value_parser = captures::snaplen, allow_negative_numbers = true)]
    pub(crate) snaplen: Option<NonZeroU32>,
    /// Writes every event (JSON, one object a line); with several runs, `-seedN` is added to FILE's
    /// name.
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Writes a log of each link into this folder, as `airtcp link` and Mahimahi's mm-link write
    /// them (docs/plot.md); with several runs, `-seedN` is added to DIR's name.
    #[arg(long, value_name = "DIR")]
    pub(crate) link_logs: Option<PathBuf>,
    /// Writes the run as an animated map (one HTML file for any browser); with several runs,
    /// `-seedN` is added to FILE's name.
    #[arg(long, value_name = "FILE")]
    pub(crate) animate: Option<PathBuf>,
    /// Begins the map at this simulated time, such as `12.5 s`.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "animate")]
    pub(crate) animate_from: Option<Duration>,
    /// Ends the map at this simulated time.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "animate")]
    pub(crate) animate_to: Option<Duration>,
    /// Writes DIR/metrics.jsonl; relative names of other outputs are then in DIR.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Runs in parallel [default: one per core].
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Shows no progress.
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Splits `KEY=VALUE` (of `--set`) at the first `=` that is not in a quoted key.
///
/// # Errors
/// There is no such `=`; the message says what is expected.
pub fn override_pair(text: &str) -> Result<(String, String), String> {
    let mut quote = None;
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (None, '=') => {
                return Ok((text[..i].trim().to_owned(), text[i + 1..].trim().to_owned()));
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(q), c) if q == c => quote = None,
            _ => {}
        }
    }
    Err("expected KEY=VALUE, such as tcp.recovery=reno".to_owned())
}

/// Reads a seed (of `--seed`).
///
/// # Errors
/// It is not a 64-bit number; the message says what is expected.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected an integer from 0 to {}", u64::MAX))
}

/// Checks that each of `runs` runs from `--seed` on has a seed.
///
/// # Errors
/// The last seed is beyond 64 bits; the message says what is expected.
pub fn check_seeds(seed: u64, runs: NonZeroUsize) -> Result<(), String> {
    let most = u64::MAX - (runs.get() as u64 - 1);
    match seed > most {
        true => Err(format!("airtcp: --seed: {seed}: expected at most {most} with --runs {runs}")),
        false => Ok(()),
    }
}

/// Reads a number of runs or jobs.
///
/// # Errors
/// It is not a number, or 0; the message says what is expected.
pub fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected an integer, 1 or more".to_owned())
}

/// Runs the simulator's command line `args` (the program's name first) and returns its exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> i32 {
    main_with(args, &Controls::default())
}

/// The same with congestion controls of the caller's own (docs/strategies.md).
pub fn main_with(args: impl IntoIterator<Item = OsString>, controls: &Controls) -> i32 {
    match parse::<Cli>(args) {
        Ok(cli) => cli.command.run::<Cli>(controls),
        Err(code) => code,
    }
}

fn completions(shell: Shell, command: &mut clap::Command) -> i32 {
    let mut text = Vec::new();
    clap_complete::generate(shell, command, "airtcp", &mut text);
    print(&String::from_utf8_lossy(&text))
}

fn manual(out: &Path, command: clap::Command) -> i32 {
    let written = || {
        let draft = DraftFolder::new(out)?;
        clap_mangen::generate_to(command.disable_help_subcommand(true), draft.path())
            .map_err(|error| files::named(error, out))?;
        draft.publish()
    };
    match written() {
        Ok(()) => SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_is_split_at_the_first_equals_sign_outside_quotes() {
        let pair = |k: &str, v: &str| Ok((k.to_owned(), v.to_owned()));
        assert_eq!(override_pair("tcp.recovery=reno"), pair("tcp.recovery", "reno"));
        assert_eq!(override_pair("a = {b = 1}"), pair("a", "{b = 1}"));
        assert_eq!(override_pair("link.\"a=b\".rate=1"), pair("link.\"a=b\".rate", "1"));
        assert!(override_pair("tcp.recovery").is_err());
    }

    #[test]
    fn the_command_line_is_well_formed() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
