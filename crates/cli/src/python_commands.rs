//! The options of the commands in Python, for completions and manual pages.
//!
//! `python_commands.json` has them as their parsers do; `python/tests/test_described.py` writes it.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, ValueHint};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Described {
    name: String,
    /// `None`: the native binary says it.
    about: Option<String>,
    after_help: Option<String>,
    arguments: Vec<Argument>,
    commands: Vec<Described>,
}

#[derive(Debug, Deserialize)]
struct Argument {
    /// `None`: it is told by its position.
    long: Option<String>,
    /// `None`: it takes none.
    value: Option<String>,
    choices: Vec<String>,
    help: String,
}

/// The command line with these options in the place of what is passed on.
pub(crate) fn describe(mut root: Command) -> Command {
    let described: Vec<Described> =
        serde_json::from_str(include_str!("python_commands.json")).expect("a test has checked it");
    for described in described {
        let name = described.name.clone();
        root = root.mut_subcommand(name, |stub| {
            let about = stub.get_about().cloned();
            command(described).about(about.unwrap_or_default())
        });
    }
    root
}

/// Clap's names are static. The program ends when it has printed what it describes.
fn kept(text: String) -> &'static str {
    text.leak()
}

fn command(described: Described) -> Command {
    let Described { name, about, after_help, arguments, commands } = described;
    Command::new(kept(name))
        .about(about.map(kept))
        .after_help(after_help.map(kept))
        .args(arguments.into_iter().map(argument))
        .subcommands(commands.into_iter().map(command))
}

fn argument(described: Argument) -> Arg {
    let Argument { long, value, choices, help } = described;
    let value = value.map(kept);
    let arg = match long.map(kept) {
        Some(long) => Arg::new(long).long(long),
        None => Arg::new(value.unwrap_or_default()).required(true).value_hint(ValueHint::AnyPath),
    };
    let arg = match value {
        Some(value) => arg.value_name(value),
        None => arg.action(ArgAction::SetTrue),
    };
    let arg = match choices.is_empty() {
        true => arg,
        false => arg.value_parser(PossibleValuesParser::new(choices.into_iter().map(kept))),
    };
    arg.help(kept(help))
}
