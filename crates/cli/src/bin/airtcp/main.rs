//! The `airtcp` binary: the simulator's commands and, on Linux, the live ones.

#[cfg(all(target_os = "linux", feature = "link"))]
mod advise;
#[cfg(all(target_os = "linux", feature = "gateway"))]
mod agent;
#[cfg(all(target_os = "linux", feature = "gateway"))]
mod cc;
#[cfg(all(target_os = "linux", feature = "gateway"))]
mod delack;
#[cfg(all(target_os = "linux", feature = "gateway"))]
mod doctor;
#[cfg(all(target_os = "linux", feature = "gateway"))]
mod gateway;
#[cfg(all(target_os = "linux", feature = "link"))]
mod link;

#[cfg(feature = "simulator")]
use airtcp_cli::check;
#[cfg(feature = "simulator")]
use airtcp_tcp::congestion::Controls;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Simulates TCP mechanisms for wireless links, emulates links, and protects live connections.
#[derive(Debug, Parser)]
#[command(name = "airtcp", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "simulator")]
    #[command(flatten)]
    Simulator(airtcp_cli::Command),
    /// Runs a command behind an emulated link, in real time (docs/link.md).
    #[cfg(all(target_os = "linux", feature = "link"))]
    #[command(
        after_help = "Exit codes: the command's, or 128 + the signal that ended it; 1 the link failed or \
                      was late, and the command's is 0; 2 bad input"
    )]
    Link(Box<link::LinkArgs>),
    /// Simulates what could be changed about a link, and says what helps, and how much
    /// (docs/advise.md).
    #[cfg(all(target_os = "linux", feature = "link"))]
    Advise(Box<advise::AdviseArgs>),
    /// Reports the state of this mobile's link to a gateway (docs/agent.md).
    #[cfg(all(target_os = "linux", feature = "gateway"))]
    Agent(Box<agent::AgentArgs>),
    /// Delays this host's own acknowledgements, which leaves more of a shared medium to data
    /// (docs/delack.md).
    #[cfg(all(target_os = "linux", feature = "gateway"))]
    Delack(delack::DelackArgs),
    /// Keeps TCP connections of mobile hosts alive and fast through outages (docs/gateway.md).
    #[cfg(all(target_os = "linux", feature = "gateway"))]
    Gateway(gateway::GatewayArgs),
    /// Congestion control in the kernel: loads TCP Karak for Linux's own TCP (docs/cc.md).
    #[cfg(all(target_os = "linux", feature = "gateway"))]
    Cc(cc::CcArgs),
    /// Checks if the live commands will work on this machine, and says how to fix what is missing.
    ///
    /// Changes nothing. Also works without root, and then lists what it could not check.
    #[cfg(all(target_os = "linux", feature = "gateway"))]
    #[command(
        after_help = "Exit codes: 0 success; 1 a command of --require will not work here; 2 bad input"
    )]
    Doctor(doctor::Args),
}

impl Command {
    fn run(&self) -> i32 {
        match self {
            #[cfg(all(target_os = "linux", feature = "gateway", feature = "simulator"))]
            Self::Simulator(airtcp_cli::Command::Schema { gateway: true, markdown, .. }) => {
                gateway::schema(*markdown)
            }
            #[cfg(all(target_os = "linux", feature = "link"))]
            Self::Simulator(airtcp_cli::Command::Schema { link: true, markdown, .. }) => {
                link::schema(*markdown)
            }
            #[cfg(feature = "simulator")]
            Self::Simulator(airtcp_cli::Command::Check(args)) => check::run(args, &live_kinds()),
            #[cfg(feature = "simulator")]
            Self::Simulator(command) => command.run::<Cli>(&Controls::default()),
            #[cfg(all(target_os = "linux", feature = "link"))]
            Self::Link(args) => link::run(args),
            #[cfg(all(target_os = "linux", feature = "link"))]
            Self::Advise(args) => advise::run(args),
            #[cfg(all(target_os = "linux", feature = "gateway"))]
            Self::Agent(args) => agent::run(args),
            #[cfg(all(target_os = "linux", feature = "gateway"))]
            Self::Delack(args) => delack::run(args),
            #[cfg(all(target_os = "linux", feature = "gateway"))]
            Self::Gateway(args) => gateway::run(args),
            #[cfg(all(target_os = "linux", feature = "gateway"))]
            Self::Cc(args) => cc::run(args),
            #[cfg(all(target_os = "linux", feature = "gateway"))]
            Self::Doctor(args) => doctor::doctor(args),
        }
    }
}

/// The kinds of files that the live commands of this build read.
#[cfg(feature = "simulator")]
fn live_kinds() -> Vec<check::Live> {
    vec![
        #[cfg(all(target_os = "linux", feature = "gateway"))]
        gateway::checked(),
        #[cfg(all(target_os = "linux", feature = "link"))]
        link::checked(),
    ]
}

fn main() -> ExitCode {
    let code = match airtcp_cli::parse::<Cli>(std::env::args_os()) {
        Ok(cli) => cli.command.run(),
        Err(code) => code,
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// This command line, with one more argument.
#[cfg(all(target_os = "linux", feature = "gateway"))]
fn myself(argument: &str) -> std::process::Command {
    restarted(|_| true, &[argument])
}

/// The probe of `airtcp doctor`, from the command line of `airtcp gateway`.
#[cfg(all(target_os = "linux", feature = "gateway"))]
fn doctor_probe() -> std::process::Command {
    restarted(|argument| argument != "gateway", &["doctor", "--probe"])
}

/// This program, started again with this command line as long as `stays` says, and `more`.
#[cfg(all(target_os = "linux", feature = "gateway"))]
fn restarted(stays: impl Fn(&std::ffi::OsStr) -> bool, more: &[&str]) -> std::process::Command {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new("/proc/self/exe");
    let mut line = std::env::args_os();
    if let Some(name) = line.next() {
        command.arg0(name);
    }
    command.args(line.take_while(|argument| stays(argument))).args(more);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    #[cfg(all(target_os = "linux", feature = "link", feature = "gateway"))]
    fn the_live_commands_are_those_that_the_simulator_alone_lacks() {
        let names = |command: clap::Command| -> std::collections::BTreeSet<String> {
            command.get_subcommands().map(|command| command.get_name().to_owned()).collect()
        };
        let simulator = clap::Command::new("airtcp");
        let simulator = names(<airtcp_cli::Command as Subcommand>::augment_subcommands(simulator));
        let all = names(<Cli as clap::CommandFactory>::command());
        let live: std::collections::BTreeSet<String> =
            all.difference(&simulator).cloned().collect();
        assert_eq!(live, airtcp_cli::LIVE.map(str::to_owned).into());
    }
}
