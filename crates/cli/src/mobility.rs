//! `airtcp mobility`: converts movement traces of other tools into scenarios, and back.

use crate::{BAD_INPUT, complain, files, override_pair, print, seed, tell};
use airtcp_core::Instant;
use airtcp_net::mobility::Path;
use airtcp_net::mobility::import::{self, Format, Movement};
use airtcp_settings::Value;
use airtcp_sim::scenario::NodeId;
use airtcp_sim::scenario::files::Inputs;
use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Subcommands of `airtcp mobility`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Prints a movement trace as `[[node]]` tables of a scenario.
    Import {
        /// File with the movement trace, perhaps compressed with gzip.
        trace: PathBuf,
        /// Format of the trace [default: as the name of the file says: `.movements`, or `.tcl`,
        /// `.ns_movements` or `.setdest`].
        #[arg(long, value_parser = formats())]
        format: Option<Format>,
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
        #[arg(long, value_parser = formats())]
        format: Format,
        /// Seed of the run.
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, allow_negative_numbers = true)]
        seed: u64,
        /// Overrides a key of the scenario; may be repeated.
        #[arg(long, value_name = "KEY=VALUE", value_parser = override_pair)]
        set: Vec<(String, String)>,
    },
}

/// Reads the name of a format.
fn formats() -> impl TypedValueParser<Value = Format> {
    let words = Format::WORDS.iter().map(|(word, about)| PossibleValue::new(*word).help(*about));
    PossibleValuesParser::new(words)
        .map(|word| Format::of_word(&word).expect("clap accepts only the words"))
}

/// Converts, and returns the exit code.
pub(crate) fn run(command: &Command) -> i32 {
    let converted = match command {
        Command::Import { trace, format, name, area } => {
            let file = trace.display();
            let explained = |error: String| format!("airtcp: {file}: {error}");
            let format = format.or_else(|| Format::of_name(&file.to_string()));
            let format = format.ok_or_else(|| {
                explained("the name does not say the format (expected --format)".to_owned())
            });
            format.and_then(|format| {
                let text = files::text(trace)?;
                let movement =
                    import::parse(format, &text).map_err(|e| explained(e.to_string()))?;
                if let Some(&[x, y]) = area.as_deref() {
                    inside(&movement, x, y).map_err(explained)?;
                }
                let gaps = import::gaps(&movement);
                if !gaps.is_empty() {
                    complain(&format!("{file}: the trace has no node {}", import::list(&gaps)));
                }
                Ok(tables(name, &movement))
            })
        }
        Command::Export { scenario, format, seed, set } => {
            files::scenario(scenario, set, None, &Inputs::default()).map(|scenario| {
                let stations = scenario.wlans.iter().flat_map(|wlan| &wlan.stations);
                let path = |s| scenario.movement(s, *seed).path();
                let paths: BTreeMap<NodeId, Path> = stations.map(|s| (s.node, path(s))).collect();
                import::format(*format, paths.values())
            })
        }
    };
    match converted {
        Ok(text) => print(&text),
        Err(message) => {
            tell(&message);
            BAD_INPUT
        }
    }
}

/// Refuses movement out of an area.
fn inside(movement: &Movement, width: f64, height: f64) -> Result<(), String> {
    for (node, path) in movement {
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
fn tables(name: &str, movement: &Movement) -> String {
    let mut out = String::new();
    for (number, path) in movement {
        let first = path.waypoints()[0].1;
        // The node is at its position from the start.
        let rest: Vec<_> =
            path.waypoints().iter().skip_while(|(at, _)| *at == Instant::ZERO).collect();
        let _ = writeln!(out, "[[node]]\nname = \"{name}{number}\"");
        let _ = writeln!(out, "position = [\"{} m\", \"{} m\"]", first.x, first.y);
        if !rest.is_empty() {
            let _ = writeln!(out, "mobility = {{ model = \"path\", waypoints = [");
            for (at, p) in rest {
                let at = at.show(&Instant::KIND).expect("a time is a text");
                let _ = writeln!(out, "    [\"{at}\", \"{} m\", \"{} m\"],", p.x, p.y);
            }
            let _ = writeln!(out, "] }}");
        }
        out.push('\n');
    }
    out
}
