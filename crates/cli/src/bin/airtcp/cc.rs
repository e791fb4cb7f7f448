//! `airtcp cc`: congestion control in the kernel.

use airtcp_cli::{FAILURE, complain, print};
use airtcp_linux::cc::{self, CcError, CcStatus, Loaded, Unloaded};
use clap::{Args, Subcommand, ValueEnum};
use std::fmt::Write;

/// Arguments of `airtcp cc`.
#[derive(Debug, Args)]
pub(crate) struct CcArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Loads a congestion control into the kernel, until `unload` or a restart. No connection uses
    /// it before a network namespace or a program chooses it.
    Load {
        /// Congestion control to load.
        name: Name,
    },
    /// Shows if one is loaded, the connections that use it, and its counters.
    Status {
        /// Prints one JSON object (a line) instead.
        #[arg(long)]
        json: bool,
    },
    /// Unloads it. Connections that use it keep it until they end.
    Unload,
}

/// The congestion controls that can be loaded.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    /// TCP Karak: Linux's reno with a larger window after a time-out that one or two duplicate ACKs
    /// preceded.
    Karak,
}

/// Runs the subcommand and returns the exit code.
pub(crate) fn run(args: &CcArgs) -> i32 {
    let done = match args.command {
        Command::Load { name: Name::Karak } => cc::load().map(|()| LOADED.to_owned()),
        Command::Status { json } => cc::status().map(|status| match json {
            true => format!("{}\n", serde_json::to_string(&status).expect("numbers and strings")),
            false => sentences(&status),
        }),
        Command::Unload => cc::unload().map(|left| farewell(&left)),
    };
    match done {
        Ok(text) => print(&text),
        Err(error) => failed(&error),
    }
}

fn failed(error: &CcError) -> i32 {
    complain(&error.to_string());
    FAILURE
}

const LOADED: &str = "\
karak is loaded. To use it
  for the new connections of this network namespace: sysctl -w net.ipv4.tcp_congestion_control=karak
  for one socket: setsockopt(TCP_CONGESTION), as in `iperf3 --congestion karak`
";

fn sentences(status: &CcStatus) -> String {
    let CcStatus { name, loaded, default_here, retired } = status;
    let mut out = match loaded {
        None => format!("{name} is not loaded\n"),
        Some(Loaded { version, connections, connections_ever, timeouts, raised, skipped }) => {
            let [none, one, two, more] = timeouts;
            let skipped = match skipped {
                0 => String::new(),
                n => format!("calls skipped by the kernel: {n}\n"),
            };
            format!(
                "{name} is loaded (airtcp {version})\n\
                 connections: {connections} now, {connections_ever} in total\n\
                 time-outs after 0, 1, 2 and more duplicate ACKs: {none}, {one}, {two}, {more}; \
                 cwnd larger than reno's after {raised}\n{skipped}"
            )
        }
    };
    if *default_here {
        let _ = writeln!(out, "it is the default of this network namespace");
    }
    if let Some(count @ 1..) = retired {
        let _ = writeln!(out, "unloaded before, but still in use: {count}");
    }
    out
}

fn farewell(left: &Unloaded) -> String {
    let Unloaded { connections, default_here, retired } = left;
    let mut out = "karak is unloaded\n".to_owned();
    if *connections > 0 {
        let _ = writeln!(out, "connections that use it until they end: {connections}");
    }
    if *default_here {
        let _ = writeln!(
            out,
            "it is still the default of this network namespace, whose new connections use it \
             until you choose another: sysctl -w net.ipv4.tcp_congestion_control=reno"
        );
    }
    if let Some(1..) = retired {
        let _ = writeln!(out, "the kernel frees it once no socket and no namespace uses it");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_says_who_uses_it_and_what_it_did() {
        let loaded = Loaded {
            version: "0.1.0".to_owned(),
            connections: 2,
            connections_ever: 7,
            timeouts: [4, 3, 2, 1],
            raised: 5,
            skipped: 6,
        };
        let status =
            CcStatus { name: "karak", loaded: Some(loaded), default_here: true, retired: Some(1) };
        assert_eq!(
            sentences(&status),
            "karak is loaded (airtcp 0.1.0)
connections: 2 now, 7 in total
time-outs after 0, 1, 2 and more duplicate ACKs: 4, 3, 2, 1; cwnd larger than reno's after 5
calls skipped by the kernel: 6
it is the default of this network namespace
unloaded before, but still in use: 1
"
        );
        let none = CcStatus { name: "karak", loaded: None, default_here: false, retired: None };
        assert_eq!(sentences(&none), "karak is not loaded\n");
    }

    #[test]
    fn what_still_holds_it_is_said_on_parting() {
        let nobody = Unloaded { connections: 0, default_here: false, retired: Some(0) };
        assert_eq!(farewell(&nobody), "karak is unloaded\n");
        let all = farewell(&Unloaded { connections: 3, default_here: true, retired: Some(1) });
        assert_eq!(all.lines().count(), 4, "{all}");
        assert!(all.contains("until they end: 3\n"), "{all}");
    }
}
