//! The command line of airtcp, as a library so that the Python package can offer it too.
//!
//! Results go to standard output, progress and complaints to standard error. Exit codes: 0 success, 1 a
//! run failed or was interrupted, or a live command that must work here will not, 2 bad input.

#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod doctor;
mod files;
#[cfg(target_os = "linux")]
mod gateway;
#[cfg(target_os = "linux")]
mod link;
mod replay;
mod run;
mod study;
mod table;

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Success, also when the reader of standard output has gone.
const SUCCESS: i32 = 0;
/// A run failed or was interrupted.
const FAILURE: i32 = 1;
/// The input cannot be run.
const BAD_INPUT: i32 = 2;

/// Simulates TCP mechanisms for wireless links.
#[derive(Debug, Parser)]
#[command(name = "airtcp", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a scenario: a table for people, or JSON.
    Run(RunArgs),
    /// Runs a command behind an emulated link, in real time (docs/link.md).
    #[cfg(target_os = "linux")]
    Link(Box<link::LinkArgs>),
    /// Tells a gateway how this mobile's link is (docs/agent.md).
    #[cfg(target_os = "linux")]
    Agent(Box<agent::AgentArgs>),
    /// Keeps TCP connections of mobile hosts alive and fast through outages (docs/gateway.md).
    #[cfg(target_os = "linux")]
    Gateway(gateway::GatewayArgs),
    /// Runs a recording of the gateway again; must yield the same actions (docs/record.md).
    Replay(replay::Args),
    /// Prints the JSON Schema of the scenario file.
    Schema {
        /// That of the gateway's configuration file instead (docs/gateway-config.md).
        #[cfg(target_os = "linux")]
        #[arg(long)]
        gateway: bool,
        /// The same as documentation (docs/scenario.md).
        #[arg(long)]
        markdown: bool,
    },
    /// Looks at what this machine can do for the live commands, what is missing, how to mend it.
    ///
    /// Changes nothing. Works without root, and then says what it could not see.
    #[cfg(target_os = "linux")]
    Doctor(doctor::Args),
    /// Reproduces a paper: `study list`, `study run STUDY` (needs the Python package).
    #[command(disable_help_flag = true)]
    Study {
        /// Handed to the Python package.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// Arguments of `airtcp run`.
#[derive(Debug, Args)]
struct RunArgs {
    /// Scenario file (docs/scenario.md).
    scenario: PathBuf,
    /// Seed of the (first) run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Runs, with the seeds N, N+1, …
    #[arg(long, value_name = "N", default_value = "1")]
    runs: NonZeroUsize,
    /// Overrides a key of the scenario, such as `link.BS-MH.loss.p=0.02`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = override_pair)]
    set: Vec<(String, String)>,
    /// One JSON object a line for each run, instead of the table.
    #[arg(long)]
    json: bool,
    /// Writes the packets of every node (pcapng); with several runs FILE gets `-seedN`.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Writes every event (JSON, one object a line); with several runs FILE gets `-seedN`.
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Writes DIR/metrics.jsonl; relative FILEs of --pcap and --events are then in DIR.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs at the same time [default: one a core].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// Splits `--set KEY=VALUE` at the first `=` that is not in a quoted key.
fn override_pair(text: &str) -> Result<(String, String), String> {
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

/// Runs the command line `args` (the program's name first) and returns its exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> i32 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output; that nobody reads them is no failure.
            let _ = error.print();
            return error.exit_code();
        }
    };
    if cfg!(debug_assertions) {
        complain("this is a debug build and slow; for real runs: cargo build --release");
    }
    match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Replay(args) => replay::run(&args),
        #[cfg(target_os = "linux")]
        Command::Link(args) => link::run(&args),
        #[cfg(target_os = "linux")]
        Command::Gateway(args) => gateway::run(&args),
        #[cfg(target_os = "linux")]
        Command::Agent(args) => agent::run(&args),
        #[cfg(target_os = "linux")]
        Command::Schema { gateway: true, markdown } => print(&match markdown {
            true => airtcp_live::gateway::config::markdown(),
            false => format!("{:#}\n", airtcp_live::gateway::config::json_schema()),
        }),
        Command::Schema { markdown, .. } => print(&match markdown {
            true => airtcp_sim::scenario::markdown(),
            false => format!("{:#}\n", airtcp_sim::scenario::json_schema()),
        }),
        #[cfg(target_os = "linux")]
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Study { args } => study::hand_over(&args),
    }
}

/// This very command line (of the binary or of the Python package), with one more argument.
#[cfg(target_os = "linux")]
fn myself(argument: &str) -> std::process::Command {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new("/proc/self/exe");
    let mut line = std::env::args_os();
    if let Some(name) = line.next() {
        // Python finds its virtual environment by the name that it was called by.
        command.arg0(name);
    }
    command.args(line).arg(argument);
    command
}

/// Writes `text` to standard output; returns the exit code.
fn print(text: &str) -> i32 {
    let mut stdout = io::stdout();
    // Python's process would end without flushing.
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => SUCCESS,
        Err(error) => {
            complain(&format!("cannot write to standard output: {error}"));
            FAILURE
        }
    }
}

/// One line on standard error; that nobody reads it is no failure.
fn complain(message: &str) {
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
