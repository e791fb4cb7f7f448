//! `airtcp gateway`: what is asked of a gateway.

mod check;

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `airtcp gateway`.
#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Says what a configuration would do, or what is wrong with it; changes nothing.
    CheckConfig {
        /// The gateway's configuration (docs/gateway-config.md).
        file: PathBuf,
    },
}

/// Does what is asked and returns the exit code.
pub(crate) fn run(args: &GatewayArgs) -> i32 {
    match &args.command {
        Command::CheckConfig { file } => check::check(file),
    }
}
