//! `airtcp mobility`: converts movement traces of other tools into scenarios, and back.

use crate::{BAD_INPUT, files, override_pair, print, seed};
use airtcp_core::Instant;
use airtcp_net::mobility::Path;
use airtcp_net::mobility::import::{self, Format};
use airtcp_sim::scenario::NodeId;
use clap::{Subcommand, ValueEnum};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Subcommands of `airtcp mobility`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Prints a movement trace as `[[node]]` tables of a scenario.
    Import {
        /// File with the movement trace.
        trace: PathBuf,
        /// Format of the trace.
        #[arg(long, value_enum)]
        format: Word,
        /// Name of the nodes, before their number in the trace.
        #[arg(long, default_value = "n")]
        name: String,
        /// Width and height in metres; a trace that leaves the area from 0, 0 is refused.
        #[arg(long, num_args = 2, value_names = ["X", "Y"])]
        area: Option<Vec<f64>>,
    },
    /// Prints the movement of the nodes in a scenario's cells during one run. Nodes are numbered
    /// from 0 in the order of the scenario.
    Export {
        /// Scenario file (docs/scenario.md).
        scenario: PathBuf,
        /// Format of the output.
        #[arg(long, value_enum)]
        format: Word,
        /// Seed of the run.
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, allow_negative_numbers = true)]
        seed: u64,
        /// Overrides a key of the scenario; may be repeated.
        #[arg(long, value_name = "KEY=VALUE", value_parser = override_pair)]
        set: Vec<(String, String)>,
    },
}

/// A format's name.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Word {
    /// Commands of ns-2's setdest.
    Setdest,
    /// BonnMotion's `time x y` triples.
    Bonnmotion,
}

impl Word {
    fn format(self) -> Format {
        match self {
            Self::Setdest => Format::Setdest,
            Self::Bonnmotion => Format::BonnMotion,
        }
    }
}

/// Converts, and returns the exit code.
pub(crate) fn run(command: &Command) -> i32 {
    let converted = match command {
        Command::Import { trace, format, name, area } => {
            let told = |error: String| format!("airtcp: {}: {error}", trace.display());
            files::text(trace).and_then(|text| {
                let paths =
                    import::parse(format.format(), &text).map_err(|e| told(e.to_string()))?;
                if let Some(&[x, y]) = area.as_deref() {
                    inside(&paths, x, y).map_err(told)?;
                }
                Ok(tables(name, &paths))
            })
        }
        Command::Export { scenario, format, seed, set } => files::scenario(scenario, set, None)
            .map(|scenario| {
                let stations = scenario.wlans.iter().flat_map(|wlan| &wlan.stations);
                let path = |s| scenario.movement(s, *seed).path();
                let paths: BTreeMap<NodeId, Path> = stations.map(|s| (s.node, path(s))).collect();
                import::format(format.format(), &paths.into_values().collect::<Vec<_>>())
            }),
    };
    match converted {
        Ok(text) => print(&text),
        Err(message) => {
            let _ = writeln!(io::stderr(), "{message}");
            BAD_INPUT
        }
    }
}

/// Refuses movement out of an area.
fn inside(paths: &[Path], width: f64, height: f64) -> Result<(), String> {
    for (node, path) in paths.iter().enumerate() {
        for (at, p) in path.waypoints() {
            if !((0.0..=width).contains(&p.x) && (0.0..=height).contains(&p.y)) {
                let (x, y) = (p.x, p.y);
                return Err(format!(
                    "node {node} is at ({x} m, {y} m) at {at} s (expected places within {width} m by {height} m)"
                ));
            }
        }
    }
    Ok(())
}

/// The nodes as tables of a scenario.
fn tables(name: &str, paths: &[Path]) -> String {
    let mut out = String::new();
    for (number, path) in paths.iter().enumerate() {
        let first = path.waypoints()[0].1;
        // The node is at its position from the start.
        let rest: Vec<_> =
            path.waypoints().iter().skip_while(|(at, _)| *at == Instant::ZERO).collect();
        let _ = writeln!(out, "[[node]]\nname = \"{name}{number}\"");
        let _ = writeln!(out, "position = [\"{} m\", \"{} m\"]", first.x, first.y);
        if !rest.is_empty() {
            let _ = writeln!(out, "mobility = {{ model = \"path\", waypoints = [");
            for (at, p) in rest {
                let at = at.since_start().as_nanos();
                let _ = writeln!(out, "    [\"{at} ns\", \"{} m\", \"{} m\"],", p.x, p.y);
            }
            let _ = writeln!(out, "] }}");
        }
        out.push('\n');
    }
    out
}
