//! `airtcp agent`: reports the state of this mobile's link to a gateway (docs/agent.md).

use airtcp_cli::{BAD_INPUT, FAILURE, SUCCESS, complain, print};
use airtcp_core::{Duration, LinkSignal};
use airtcp_gateway::signals::keys::{self, KeyName};
use airtcp_linux::agent::program::Program;
use airtcp_linux::agent::{self, AgentConfig, AgentError, Answered, Once, Source};
use airtcp_linux::signals::key_file;
use clap::{Args, Subcommand, ValueEnum};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// Arguments of `airtcp agent`.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    command: Option<AgentCommand>,
    /// Address on which the gateway listens for agents.
    #[arg(long, value_name = "HOST:PORT", global = true)]
    gateway: Option<String>,
    /// File with this agent's key (`airtcp agent keygen` makes it).
    #[arg(long, value_name = "FILE", global = true)]
    key: Option<PathBuf>,
    /// Address of this mobile; may be repeated [default: those in the key file].
    #[arg(long, value_name = "ADDRESS", global = true)]
    mobile: Vec<IpAddr>,
    /// Source of the link's state.
    #[arg(long)]
    source: Option<SourceKind>,
    /// With `--source command`: run by `sh -c`; prints `fading`, `down` or `up`, one word a line.
    #[arg(long, value_name = "COMMAND")]
    source_command: Option<String>,
    /// Time for which the last signal is repeated without an answer, before giving up.
    #[arg(long, value_name = "TIME", default_value = "10s", global = true, value_parser = airtcp_settings::units::duration)]
    patience: Duration,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// Sends one signal, and waits until the gateway acknowledges it.
    Send {
        /// Signal to send.
        signal: SignalName,
    },
    /// Makes a key: one line, for the mobile's key file and for the gateway's file of keys.
    Keygen {
        /// 1 to 16 of a-z A-Z 0-9 - _ .
        #[arg(value_parser = key_name)]
        name: KeyName,
        /// Addresses (or prefixes) of the mobiles that the key speaks for.
        #[arg(required = true, value_name = "ADDRESS", value_parser = keys::network)]
        speaks_for: Vec<IpNet>,
        /// A new file, readable by its owner only [default: standard output].
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// Values of `--source`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SourceKind {
    /// A program that prints what it sees.
    Command,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SignalName {
    Fading,
    Down,
    Up,
}

fn key_name(text: &str) -> Result<KeyName, &'static str> {
    KeyName::new(text).ok_or("expected 1 to 16 of a-z A-Z 0-9 - _ .")
}

/// Runs the agent and returns the exit code.
pub(crate) fn run(args: &AgentArgs) -> i32 {
    match &args.command {
        Some(AgentCommand::Keygen { name, speaks_for, out }) => {
            keygen(name.clone(), speaks_for.clone(), out.as_deref())
        }
        Some(AgentCommand::Send { signal }) => {
            let signal = match signal {
                SignalName::Fading => LinkSignal::Fading,
                SignalName::Down => LinkSignal::Down,
                SignalName::Up => LinkSignal::Up,
            };
            report(args, |_| Ok(Box::new(Once(signal))))
        }
        None => report(args, source),
    }
}

fn keygen(name: KeyName, speaks_for: Vec<IpNet>, out: Option<&Path>) -> i32 {
    let key = match key_file::generate(name, speaks_for) {
        Ok(key) => key,
        Err(error) => {
            complain(&format!("cannot get random bytes: {error}"));
            return FAILURE;
        }
    };
    let Some(path) = out else { return print(&key.line()) };
    match key_file::write(&key, path) {
        Ok(()) => SUCCESS,
        Err(error) => {
            complain(&format!("{}: {error}", path.display()));
            FAILURE
        }
    }
}

/// Reports the signals of a source until it ends.
fn report(
    args: &AgentArgs,
    source: impl FnOnce(&AgentArgs) -> Result<Box<dyn Source>, String>,
) -> i32 {
    let prepared = || -> Result<_, String> { Ok((config(args)?, source(args)?)) };
    let (config, mut source) = match prepared() {
        Ok(prepared) => prepared,
        Err(message) => {
            complain(&message);
            return BAD_INPUT;
        }
    };
    let gateway = config.gateway;
    let mut tell = |answered| match answered {
        Answered::Taken(signal, after) => {
            complain(&format!(
                "{gateway} acknowledged: {} (after {} ms)",
                signal.name(),
                after.as_millis()
            ));
        }
        Answered::NotAllowed(signal) => {
            complain(&format!("{gateway} refused: {}", signal.name()));
        }
        Answered::Nothing => {}
    };
    match agent::run(config, &mut *source, &mut tell) {
        Ok(()) => SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            FAILURE
        }
    }
}

fn config(args: &AgentArgs) -> Result<AgentConfig, String> {
    let gateway = args.gateway.as_deref().ok_or("--gateway HOST:PORT is missing")?;
    let path =
        args.key.as_deref().ok_or("--key FILE is missing (`airtcp agent keygen` makes it)")?;
    let keys = key_file::read(path).map_err(|error| error.to_string())?;
    let mut lines = keys.iter();
    let (Some(key), None) = (lines.next(), lines.next()) else {
        return Err(format!("{}: expected exactly one key, the agent's own", path.display()));
    };
    let gateway = resolve(gateway)?;
    let (key, mobiles) = (key.clone(), args.mobile.clone());
    AgentConfig::new(gateway, key, mobiles, args.patience)
        .map_err(|error: AgentError| error.to_string())
}

fn resolve(gateway: &str) -> Result<SocketAddr, String> {
    let mut found = gateway
        .to_socket_addrs()
        .map_err(|error| format!("--gateway {gateway}: {error} (expected HOST:PORT)"))?;
    found.next().ok_or_else(|| format!("--gateway {gateway}: the name has no address"))
}

fn source(args: &AgentArgs) -> Result<Box<dyn Source>, String> {
    match args.source.ok_or("--source is missing (or a subcommand: send, keygen)")? {
        SourceKind::Command => {
            let script = args
                .source_command
                .as_deref()
                .filter(|script| !script.trim().is_empty())
                .ok_or("--source command needs --source-command COMMAND")?;
            let program =
                Program::start(script).map_err(|error| format!("cannot run `sh`: {error}"))?;
            Ok(Box::new(program))
        }
    }
}
