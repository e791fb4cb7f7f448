//! The command line of airtcp: the simulator's commands, for both the `airtcp` binary and the
//! Python package, and what they have in common with the live ones.
//!
//! The [live commands](LIVE) are only in the binary (`src/bin/airtcp`); the Python package passes
//! them on to it.
//!
//! Results go to standard output, progress and complaints to standard error. Exit codes: 0 success;
//! 1 a run failed or was interrupted, or a command named by `doctor --require` will not work here;
//! 2 bad input.
//!
//! ```no_run
//! // As `airtcp run examples/quickstart.toml --seed 7` in a shell.
//! let words = ["airtcp", "run", "examples/quickstart.toml", "--seed", "7"];
//! let code = airtcp_cli::main(words.map(Into::into));
//! std::process::exit(code);
//! ```

#[cfg(feature = "simulator")]
pub mod captures;
#[cfg(feature = "simulator")]
pub mod check;
mod columns;
#[cfg(feature = "simulator")]
pub mod estimate;
#[cfg(feature = "simulator")]
mod files;
#[cfg(feature = "simulator")]
mod mobility;
#[cfg(feature = "simulator")]
mod packetdrill;
#[cfg(feature = "simulator")]
mod python;
#[cfg(feature = "simulator")]
mod python_commands;
#[cfg(feature = "simulator")]
mod replay;
#[cfg(feature = "simulator")]
mod run;
#[cfg(feature = "simulator")]
pub mod runs;
#[cfg(feature = "simulator")]
mod simulator;
#[cfg(feature = "simulator")]
mod table;

pub use columns::aligned;
#[cfg(feature = "simulator")]
pub use files::check_folder;
#[cfg(feature = "simulator")]
pub use simulator::{Command, RunArgs, check_seeds, count, main, main_with, override_pair, seed};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::io::{self, Write};

/// Exit code: success, even if the reader of standard output has gone.
pub const SUCCESS: i32 = 0;
/// Exit code: a run failed or was interrupted.
pub const FAILURE: i32 = 1;
/// Exit code: the input cannot be run.
pub const BAD_INPUT: i32 = 2;

/// The commands that need a real network or describe one, which not every build has.
pub const LIVE: [&str; 7] = ["link", "gateway", "agent", "delack", "cc", "doctor", "advise"];

/// What `--help` says of exit codes, unless the command has its own.
const EXIT_CODES: &str = "Exit codes: 0 success; 1 failed or interrupted; 2 bad input";

/// The declaration of a command line, in which every command says its exit codes.
fn command<C: CommandFactory>() -> clap::Command {
    fn with_exit_codes(command: clap::Command) -> clap::Command {
        let command = match command.get_after_help() {
            None => command.after_help(EXIT_CODES),
            Some(_) => command,
        };
        command.mut_subcommands(with_exit_codes)
    }
    C::command().mut_subcommands(with_exit_codes)
}

/// Reads the command line `args` (the program's name first).
///
/// # Errors
/// The exit code, if help was asked for or the command line is wrong; the message has been printed.
pub fn parse<C: Parser>(args: impl IntoIterator<Item = OsString>) -> Result<C, i32> {
    let args: Vec<OsString> = args.into_iter().collect();
    let mut known = command::<C>();
    let matches = known.try_get_matches_from_mut(&args);
    let read = |matches| C::from_arg_matches(&matches).map_err(|error| error.format(&mut known));
    let parsed = matches.and_then(read).map_err(|mut error| {
        if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) {
            if LIVE.contains(&name.as_str()) {
                return absent(name);
            }
            if let Some(near) = nearest_command(C::command(), &args, name) {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near]));
            }
        }
        if is_link_without_separator(&args, error.kind()) {
            complain(LINK_SEPARATOR);
            // Of arguments that nothing knows, clap may know the nearest.
            if error.kind() != ErrorKind::UnknownArgument {
                return BAD_INPUT;
            }
        }
        // Help and version go to standard output; it is no failure if nobody reads them.
        let _ = error.print();
        error.exit_code()
    });
    if parsed.is_ok() && cfg!(debug_assertions) {
        complain("this is a debug build and slow; for real runs: cargo build --release");
    }
    parsed
}

const LINK_SEPARATOR: &str = "the command to run behind the link comes after `--`, as in \
                              `airtcp link --delay 20ms -- curl http://192.0.2.1/`";

/// True if `airtcp link` was called without `--`, and that may be why its arguments are refused.
fn is_link_without_separator(args: &[OsString], refused: ErrorKind) -> bool {
    const OTHERS: [&str; 3] = ["--", "--at", "--between"];
    let of_link = args.get(1).is_some_and(|command| command == "link");
    let has = |word: &&str| args.iter().any(|arg| arg == word || has_value(arg, word));
    let kinds = [
        ErrorKind::MissingRequiredArgument,
        ErrorKind::UnknownArgument,
        ErrorKind::TooManyValues,
        ErrorKind::WrongNumberOfValues,
    ];
    of_link && kinds.contains(&refused) && !OTHERS.iter().any(has)
}

/// True for `OPTION=VALUE`.
fn has_value(arg: &OsString, option: &str) -> bool {
    let value = arg.to_str().and_then(|arg| arg.strip_prefix(option));
    option != "--" && value.is_some_and(|value| value.starts_with('='))
}

/// The command that was probably meant by `name`, which `args` have where a command is expected.
/// clap finds none that is near to a short name.
fn nearest_command(root: clap::Command, args: &[OsString], name: &str) -> Option<String> {
    let mut command = &root;
    for arg in args.iter().take_while(|arg| *arg != name) {
        command = command.find_subcommand(arg).unwrap_or(command);
    }
    let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    airtcp_config::nearest(name, &known).map(str::to_owned)
}

/// Reports that only the native binary has the live command `name`; returns the exit code.
fn absent(name: &str) -> i32 {
    complain(&format!(
        "this build has no `airtcp {name}`; the native binary for Linux has it unless built without it \
         (`make build` makes target/release/airtcp; AIRTCP_NATIVE names another)"
    ));
    BAD_INPUT
}

/// Writes `text` to standard output; returns the exit code.
pub fn print(text: &str) -> i32 {
    printed(write_out(text))
}

/// Writes `text` to standard output.
///
/// # Errors
///
/// Of the operating system: [`io::ErrorKind::BrokenPipe`] if nobody reads any more.
pub fn write_out(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(text.as_bytes())?;
    // A Python process would end without flushing Rust's buffer.
    stdout.flush()
}

/// The exit code after [`write_out`]; it is no failure if nobody reads any more.
pub fn printed(written: io::Result<()>) -> i32 {
    match written {
        Ok(()) => SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => SUCCESS,
        Err(error) => {
            complain(&format!("cannot write to standard output: {error}"));
            FAILURE
        }
    }
}

/// Writes one line to standard error; it is no failure if nobody reads it.
pub fn complain(message: &str) {
    tell(&format!("airtcp: {message}"));
}

/// Writes a message to standard error that begins with its place, such as a rendered diagnostic, in
/// colours if a terminal shows them; it is no failure if nobody reads it.
pub fn tell(message: &str) {
    let _ = writeln!(anstream::stderr(), "{}", painted(&visible(message)));
}

/// The message with the symbols of control characters in their places: a file with those of a terminal
/// must not steer it.
fn visible(message: &str) -> String {
    let symbol = |c| match c {
        '\n' | '\t' => c,
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(c),
        '\x7f' => '\u{2421}',
        _ if c.is_control() => char::REPLACEMENT_CHARACTER,
        _ => c,
    };
    message.chars().map(symbol).collect()
}

/// The message with marks of colour: carets, their margin, and the place above them.
fn painted(message: &str) -> String {
    const BOLD: &str = "\x1b[1m";
    const RED: &str = "\x1b[1;31m";
    const BLUE: &str = "\x1b[34m";
    const PLAIN: &str = "\x1b[0m";
    let lines: Vec<&str> = message.lines().collect();
    let begins_excerpt = |line: Option<&&str>| line.is_some_and(|line| line.trim_start() == "|");
    let paint = |(i, line): (usize, &&str)| {
        let number = |margin: &str| margin.trim().parse::<usize>().is_ok();
        let carets =
            |rest: &str| rest.trim_start_matches([' ', '\t']).bytes().all(|byte| byte == b'^');
        match line.split_once('|') {
            Some((margin, rest)) if number(margin) => format!("{BLUE}{margin}|{PLAIN}{rest}"),
            Some((margin, rest)) if margin.trim().is_empty() && carets(rest) => {
                format!("{BLUE}{margin}|{PLAIN}{RED}{rest}{PLAIN}")
            }
            _ if begins_excerpt(lines.get(i + 1)) => match line.split_once(": ") {
                Some((place, what)) => format!("{BOLD}{place}:{PLAIN} {what}"),
                None => (*line).to_owned(),
            },
            _ => (*line).to_owned(),
        }
    };
    lines.iter().enumerate().map(paint).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod painting {
    use super::*;

    #[test]
    fn a_diagnostic_has_its_place_bold_its_margin_blue_and_its_carets_red() {
        let plain = "a.toml:4:8: loss: found 0.01 (expected a table)\n  |\n4 | loss = 0.01 # a | b\n  |        ^^^^";
        let painted = painted(plain);
        assert_eq!(
            painted,
            "\x1b[1ma.toml:4:8:\x1b[0m loss: found 0.01 (expected a table)\n\
             \x1b[34m  |\x1b[0m\x1b[1;31m\x1b[0m\n\
             \x1b[34m4 |\x1b[0m loss = 0.01 # a | b\n\
             \x1b[34m  |\x1b[0m\x1b[1;31m        ^^^^\x1b[0m"
        );
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), plain);
    }

    #[test]
    fn carets_behind_a_tab_are_red() {
        let red = "\x1b[34m  |\x1b[0m\x1b[1;31m \t^^\x1b[0m";
        assert_eq!(painted("a:1:2: b\n  |\n1 | \tcd\n  | \t^^").lines().last(), Some(red));
    }

    #[test]
    fn a_file_does_not_steer_the_terminal() {
        let told = "a.toml:1:8: k\x1b[31m: unknown\n  |\n1 | \tx = \"\x1b]0;t\x07\r\x7f\u{9b}\"\n  | \t    ^";
        assert_eq!(
            visible(told),
            "a.toml:1:8: k␛[31m: unknown\n  |\n1 | \tx = \"␛]0;t␇␍␡\u{fffd}\"\n  | \t    ^"
        );
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        for message in
            ["airtcp: x.toml: no such file", "a | b", "| a | b |", "one: two\nthree: four", ""]
        {
            assert_eq!(painted(message), message);
        }
    }
}
