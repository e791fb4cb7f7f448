//! The command line of airtcp: the simulator's commands, for both the `airtcp` binary and the
//! Python package.
//!
//! The [live commands](LIVE) are only in the binary (`src/bin/airtcp`); the Python package passes
//! them on to it.
//!
//! Results go to standard output, progress and complaints to standard error. Exit codes: 0 success;
//! 1 a run failed or was interrupted, or a command named by `doctor --require` will not work here;
//! 2 bad input.

pub mod captures;
pub mod check;
mod files;
mod mobility;
mod packetdrill;
mod python;
mod replay;
mod run;
mod table;

pub use table::aligned;

use airtcp_core::Duration;
use airtcp_sim::scenario::duration;
use airtcp_tcp::congestion::Controls;
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

/// Exit code: success, even if the reader of standard output has gone.
pub const SUCCESS: i32 = 0;
/// Exit code: a run failed or was interrupted.
pub const FAILURE: i32 = 1;
/// Exit code: the input cannot be run.
pub const BAD_INPUT: i32 = 2;

/// The commands that need a real network, which not every build has.
pub const LIVE: [&str; 6] = ["link", "gateway", "agent", "delack", "cc", "doctor"];

/// What `--help` says of exit codes, unless the command has its own.
const EXIT_CODES: &str = "Exit codes: 0 success; 1 failed or interrupted; 2 bad input";

/// Simulates TCP mechanisms for wireless links.
#[derive(Debug, Parser)]
#[command(
    name = "airtcp",
    version,
    after_help = format!(
        "Live commands, run by the native binary that `make build` makes (Linux):\n  {}",
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
            Self::Completions { shell } => completions(*shell, &mut command::<C>()),
            Self::Man { out } => manual(out, command::<C>()),
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
    scenario: PathBuf,
    /// Seed of the (first) run.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, allow_negative_numbers = true)]
    seed: u64,
    /// Number of runs; their seeds count up from --seed.
    #[arg(long, value_name = "N", default_value = "1", value_parser = count, allow_negative_numbers = true)]
    runs: NonZeroUsize,
    /// Overrides a key of the scenario, such as `link.BS-MH.loss.p=0.02`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = override_pair)]
    set: Vec<(String, String)>,
    /// Prints one JSON object a line for each run, instead of the table.
    #[arg(long)]
    json: bool,
    /// Also prints a table of the links, and one of the stations.
    #[arg(long, conflicts_with = "json")]
    links: bool,
    /// Captures packets as tcpdump would: writes a pcapng file for each network interface into this
    /// folder (docs/captures.md); with several runs, `-seedN` is added to DIR's name.
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// Captures at this node only; may be repeated.
    #[arg(long, value_name = "NAME", requires = "pcap")]
    pcap_node: Vec<String>,
    /// Captures only the first bytes of each packet, such as 96: all headers.
    #[arg(long, value_name = "BYTES", requires = "pcap", value_parser = captures::snaplen, allow_negative_numbers = true)]
    snaplen: Option<NonZeroU32>,
    /// Writes every event (JSON, one object a line); with several runs, `-seedN` is added to FILE's
    /// name.
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Writes the run as an animated map (one HTML file for any browser); with several runs,
    /// `-seedN` is added to FILE's name.
    #[arg(long, value_name = "FILE")]
    animate: Option<PathBuf>,
    /// Begins the map at this simulated time, such as `12.5 s`.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "animate")]
    animate_from: Option<Duration>,
    /// Ends the map at this simulated time.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "animate")]
    animate_to: Option<Duration>,
    /// Writes DIR/metrics.jsonl; relative names of --pcap, --events and --animate are then in DIR.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs in parallel [default: one per core].
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    jobs: Option<NonZeroUsize>,
    /// Shows no progress.
    #[arg(long)]
    quiet: bool,
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

fn count(text: &str) -> Result<NonZeroUsize, String> {
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

/// The declaration of a command line, in which every command says its exit codes.
fn command<C: CommandFactory>() -> clap::Command {
    fn with_exit_codes(command: clap::Command) -> clap::Command {
        let command = match command.get_after_help() {
            None => command.after_help(EXIT_CODES),
            Some(_) => command,
        };
        command.mut_subcommands(with_exit_codes)
    }
    C::command().mut_subcommands(with_exit_codes)
}

fn completions(shell: Shell, command: &mut clap::Command) -> i32 {
    let mut text = Vec::new();
    clap_complete::generate(shell, command, "airtcp", &mut text);
    print(&String::from_utf8_lossy(&text))
}

fn manual(out: &Path, command: clap::Command) -> i32 {
    let written = std::fs::create_dir_all(out)
        .and_then(|()| clap_mangen::generate_to(command.disable_help_subcommand(true), out));
    match written {
        Ok(()) => SUCCESS,
        Err(error) => {
            complain(&format!("{}: {error}", out.display()));
            FAILURE
        }
    }
}

/// Reads the command line `args` (the program's name first).
///
/// # Errors
/// The exit code, if help was asked for or the command line is wrong; the message has been printed.
pub fn parse<C: Parser>(args: impl IntoIterator<Item = OsString>) -> Result<C, i32> {
    let args: Vec<OsString> = args.into_iter().collect();
    let mut known = command::<C>();
    let matches = known.try_get_matches_from_mut(&args);
    let read = |matches| C::from_arg_matches(&matches).map_err(|error| error.format(&mut known));
    let parsed = matches.and_then(read).map_err(|mut error| {
        if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) {
            if LIVE.contains(&name.as_str()) {
                return absent(name);
            }
            if let Some(near) = nearest_command(C::command(), &args, name) {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near]));
            }
        }
        // Help and version go to standard output; it is no failure if nobody reads them.
        let _ = error.print();
        error.exit_code()
    });
    if parsed.is_ok() && cfg!(debug_assertions) {
        complain("this is a debug build and slow; for real runs: cargo build --release");
    }
    parsed
}

/// The command that was probably meant by `name`, which `args` have where a command is expected.
/// clap finds none that is near to a short name.
fn nearest_command(root: clap::Command, args: &[OsString], name: &str) -> Option<String> {
    let mut command = &root;
    for arg in args.iter().take_while(|arg| *arg != name) {
        command = command.find_subcommand(arg).unwrap_or(command);
    }
    let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    airtcp_config::nearest(name, &known).map(str::to_owned)
}

/// Reports that only the native binary has the live command `name`; returns the exit code.
fn absent(name: &str) -> i32 {
    complain(&format!(
        "this build has no `airtcp {name}`; the native binary for Linux has it unless built without it \
         (`make build` makes target/release/airtcp; AIRTCP_NATIVE names another)"
    ));
    BAD_INPUT
}

/// Writes `text` to standard output; returns the exit code.
pub fn print(text: &str) -> i32 {
    let mut stdout = io::stdout();
    // A Python process would end without flushing Rust's buffer.
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => SUCCESS,
        Err(error) => {
            complain(&format!("cannot write to standard output: {error}"));
            FAILURE
        }
    }
}

/// Writes one line to standard error; it is no failure if nobody reads it.
pub fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "airtcp: {message}");
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
