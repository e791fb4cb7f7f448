//! `airtcp check`: whether files are valid, or all mistakes in them. Runs nothing.

use crate::files;
use crate::{BAD_INPUT, SUCCESS, print, python, tell};
use airtcp_sim::scenario::Scenario;
use clap::ValueEnum;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A scenario (docs/scenario.md).
    Scenario,
    /// A study (docs/studies.md).
    Study,
    /// The configuration of the gateway (docs/gateway-config.md).
    Gateway,
    /// A link file (docs/link-config.md).
    Link,
}

/// Arguments of `airtcp check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files, and folders of studies.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What the files are [default: by their keys].
    #[arg(long = "as", value_name = "KIND")]
    kind: Option<Kind>,
}

/// Reads the text of this file; the error is all mistakes in it, for people.
pub type Reader = fn(&Path, &str) -> Result<(), String>;

/// A kind of file that some commands of this build read.
#[derive(Clone, Debug)]
pub struct Live {
    /// The kind.
    pub kind: Kind,
    /// Its JSON Schema, for the keys.
    pub schema: Value,
    /// What reads it.
    pub read: Reader,
}

/// Checks the files, those of live commands by `live`; returns the exit code.
pub fn run(args: &Args, live: &[Live]) -> i32 {
    let mut code = SUCCESS;
    for file in &args.files {
        match check(file, args.kind, live) {
            Ok(kind) => {
                let kind = kind.to_possible_value();
                let word = kind.as_ref().map_or("", |kind| kind.get_name());
                code = code.max(print(&format!("{}: ok ({word})\n", file.display())));
            }
            Err(message) => {
                // A rendered diagnostic already begins with its file.
                tell(&message);
                code = BAD_INPUT;
            }
        }
    }
    code
}

/// The kind of a file, which has no mistakes.
fn check(file: &Path, kind: Option<Kind>, live: &[Live]) -> Result<Kind, String> {
    let is_study = || file.is_dir() || file.file_name().is_some_and(|name| name == "study.toml");
    if kind == Some(Kind::Study) || (kind.is_none() && is_study()) {
        return python::check_study(file).map(|()| Kind::Study);
    }
    // Once: what comes out of a pipe is gone then.
    let text = files::text(file)?;
    let (kind, is_sure) = kind.map_or_else(|| kind_of(&text, live), |kind| (kind, true));
    read(file, &text, kind, live).map(|()| kind).map_err(|message| match is_sure {
        true => message,
        false => {
            let word = kind.to_possible_value().map_or_else(String::new, |it| it.get_name().into());
            format!(
                "{message}\nairtcp: {}: checked as a {word} (--as names another kind)",
                file.display()
            )
        }
    })
}

fn read(file: &Path, text: &str, kind: Kind, live: &[Live]) -> Result<(), String> {
    match live.iter().find(|known| known.kind == kind) {
        Some(known) => (known.read)(file, text),
        None if kind == Kind::Scenario => {
            let name = file.display().to_string();
            let parsed = Scenario::parse_with(&name, text, &[], None);
            parsed.map(drop).map_err(|error| error.render())
        }
        None => Err(format!(
            "airtcp: {}: only the native binary for Linux can check this kind of file",
            file.display()
        )),
    }
}

/// The kind of a file with this text: that which has most of its keys, or else a scenario. True if that has all.
fn kind_of(text: &str, live: &[Live]) -> (Kind, bool) {
    let keys = airtcp_config::top_level_keys(text);
    let known = |schema: &Value| {
        let properties = properties(schema);
        keys.iter().filter(|key| properties.iter().any(|known| known == *key)).count()
    };
    let mut best = (known(&airtcp_sim::scenario::json_schema()), Kind::Scenario);
    for other in live {
        let count = known(&other.schema);
        if count > best.0 {
            best = (count, other.kind);
        }
    }
    (best.1, best.0 == keys.len() && !keys.is_empty())
}

/// True if this text of a file has keys, and none of a scenario.
pub(crate) fn is_other_than_a_scenario(text: &str) -> bool {
    let keys = airtcp_config::top_level_keys(text);
    let known = properties(&airtcp_sim::scenario::json_schema());
    !keys.is_empty() && !keys.iter().any(|key| known.contains(key))
}

/// The keys at the top level of a file with this schema.
fn properties(schema: &Value) -> Vec<String> {
    let pointer = schema["$ref"].as_str().unwrap_or_default().replace("%20", " ");
    let root = pointer.strip_prefix('#').and_then(|pointer| schema.pointer(pointer));
    root.unwrap_or(schema)["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.clone())
        .collect()
}
