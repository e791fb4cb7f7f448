//! `airtcp gateway`: runs a gateway, or talks to a running one.

mod check;
mod report;
mod run;
mod status;

#[cfg(feature = "simulator")]
use airtcp_cli::check::{Kind, Live};
use airtcp_cli::{BAD_INPUT, FAILURE, SUCCESS, complain, print};
use airtcp_gateway::control::{self, Answer, Request, Whose};
use airtcp_gateway::metrics;
use airtcp_gateway::status::Status;
use airtcp_linux::daemon::client::{AskError, ask};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `airtcp gateway`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct GatewayArgs {
    /// Runs a gateway with this configuration (docs/gateway-config.md).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set when the program starts itself as the daemon, which is restarted if it dies.
    #[arg(long, hide = true, requires = "config")]
    daemon: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Checks a configuration: shows its effect, or its mistakes. Changes nothing.
    #[command(after_help = check::EXIT_CODES)]
    CheckConfig {
        /// The gateway's configuration (docs/gateway-config.md).
        file: PathBuf,
    },
    /// Shows a running gateway's groups, mobiles out of reach and connections.
    Status(status::StatusArgs),
    /// Shows what a gateway with `mode = "observe"` has seen, and the time it would have saved.
    Report(report::ReportArgs),
    /// Sends a running gateway a signal about the link to a mobile, or about an uplink.
    #[command(allow_missing_positional = true)]
    Signal {
        /// Address of the mobile, or a prefix of up to 256 addresses; or the interface of an
        /// uplink.
        #[arg(required_unless_present = "group")]
        mobile: Option<String>,
        /// All mobiles of this group instead, if they are at most 256.
        #[arg(long, value_name = "NAME", conflicts_with = "mobile")]
        group: Option<String>,
        /// fading: an outage is likely; down: out of reach; up: in reach.
        #[arg(value_name = "fading|down|up")]
        signal: String,
        #[command(flatten)]
        socket: SocketArg,
    },
    /// Makes a running gateway reload its configuration. An invalid one is rejected, and the old
    /// one stays.
    Reload {
        #[command(flatten)]
        socket: SocketArg,
    },
    /// Prints a running gateway's metrics in Prometheus' text format.
    Metrics {
        /// Prints documentation of the metrics instead (docs/gateway-metrics.md); needs no gateway.
        #[arg(long)]
        markdown: bool,
        #[command(flatten)]
        socket: SocketArg,
    },
}

/// Option that selects the gateway.
#[derive(Debug, Args)]
struct SocketArg {
    /// The gateway's control socket.
    #[arg(long = "control", value_name = "PATH", default_value = control::DEFAULT_PATH)]
    path: PathBuf,
}

impl SocketArg {
    fn status(&self) -> Result<Status, AskError> {
        match ask(&self.path, &Request::Status)? {
            Answer::Status(status) => Ok(*status),
            _ => Err(AskError::Refused("its reply is not a status".to_owned())),
        }
    }

    fn order(&self, request: &Request) -> i32 {
        match ask(&self.path, request) {
            Ok(_) => SUCCESS,
            Err(error) => failed(&error),
        }
    }
}

/// Reports an error; returns the exit code.
fn failed(error: &AskError) -> i32 {
    complain(&error.to_string());
    FAILURE
}

/// Prints the schema of the configuration file; returns the exit code.
#[cfg(feature = "simulator")]
pub(crate) fn schema(markdown: bool) -> i32 {
    print(&match markdown {
        true => airtcp_gateway::config::markdown(),
        false => format!("{:#}\n", airtcp_gateway::config::json_schema()),
    })
}

/// Configurations of the gateway, for `airtcp check`.
#[cfg(feature = "simulator")]
pub(crate) fn checked() -> Live {
    // A file is read as the gateway does, which takes none that gzip compressed.
    let read = |path: &std::path::Path, text: &str| {
        let config = if path.is_file() { check::read(path) } else { check::parse(path, text) };
        config.map(drop)
    };
    Live { kind: Kind::Gateway, schema: airtcp_gateway::config::json_schema(), read }
}

/// A signal for a mobile, or else for a group.
///
/// # Errors
/// Says what was expected.
fn signal_request(
    mobile: Option<&str>,
    group: Option<&str>,
    signal: &str,
) -> Result<Request, String> {
    let whose = match group {
        Some(group) => Whose::Group(group.to_owned()),
        None => Whose::parse(mobile.unwrap_or_default())?,
    };
    Ok(Request::Signal { whose, signal: control::signal(signal)? })
}

/// Runs the gateway or a subcommand and returns the exit code.
pub(crate) fn run(args: &GatewayArgs) -> i32 {
    let Some(command) = &args.command else {
        return match &args.config {
            Some(config) if args.daemon => run::daemon(config),
            _ => run::supervised(),
        };
    };
    match command {
        Command::CheckConfig { file } => check::check(file),
        Command::Status(args) => status::status(args),
        Command::Report(args) => report::report(args),
        Command::Signal { mobile, group, signal, socket } => {
            match signal_request(mobile.as_deref(), group.as_deref(), signal) {
                Ok(request) => socket.order(&request),
                Err(message) => {
                    complain(&message);
                    BAD_INPUT
                }
            }
        }
        Command::Reload { socket } => socket.order(&Request::Reload),
        Command::Metrics { markdown: true, .. } => print(&metrics::markdown()),
        Command::Metrics { socket, .. } => match socket.status() {
            Ok(status) => print(&metrics::text(&status)),
            Err(error) => failed(&error),
        },
    }
}
