//! `airtcp replay`: replays a recording of the gateway.

use crate::{BAD_INPUT, FAILURE, complain, print};
use airtcp_core::counted;
use airtcp_record::{ReplayError, Summary, replay};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

/// Arguments of `airtcp replay`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Recording that a gateway wrote (key `record` of its configuration).
    file: PathBuf,
    /// Prints one JSON object a line for each group, instead of the table.
    #[arg(long)]
    json: bool,
}

/// Replays the file and prints a summary; returns the exit code.
pub(crate) fn run(args: &Args) -> i32 {
    let file = args.file.display();
    let recording = match File::open(&args.file) {
        Ok(recording) => recording,
        Err(error) => {
            complain(&format!("{file}: {error}"));
            return BAD_INPUT;
        }
    };
    match replay(recording) {
        Ok(groups) => print(&if args.json { json(&groups) } else { table(&groups) }),
        Err(error) => {
            complain(&format!("{file}: {error}"));
            exit_code(&error)
        }
    }
}

fn exit_code(error: &ReplayError) -> i32 {
    match error {
        ReplayError::Different(_) | ReplayError::Gap { .. } | ReplayError::Restored { .. } => {
            FAILURE
        }
        ReplayError::Read(_)
        | ReplayError::Setup { .. }
        | ReplayError::Reconfigure { .. }
        | ReplayError::UnknownGroup { .. } => BAD_INPUT,
    }
}

fn table(groups: &BTreeMap<u32, Summary>) -> String {
    let mut text = "the same actions:\n".to_owned();
    for Summary { name, mechanism, segments, signals, timers, actions } in groups.values() {
        text += &format!(
            "  {name}, {mechanism}: {}, {}, {}, {}\n",
            counted(*segments, "segment"),
            counted(*signals, "signal"),
            counted(*timers, "timer"),
            counted(*actions, "action")
        );
    }
    text
}

fn json(groups: &BTreeMap<u32, Summary>) -> String {
    let line = |Summary { name, mechanism, segments, signals, timers, actions }: &Summary| {
        let group = serde_json::json!({
            "group": name,
            "mechanism": mechanism,
            "segments": segments,
            "signals": signals,
            "timers": timers,
            "actions": actions,
        });
        format!("{group}\n")
    };
    groups.values().map(line).collect()
}
