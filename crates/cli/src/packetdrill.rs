//! `airtcp packetdrill`: runs packetdrill scripts on the endpoint.

use crate::{BAD_INPUT, FAILURE, SUCCESS, aligned, complain, files, print, tell};
use airtcp_packetdrill::{Verdict, parse, run as play};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Arguments of `airtcp packetdrill`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Scripts, or folders that hold `.pkt` files (docs/packetdrill.md).
    #[arg(required = true, value_name = "FILE|DIR")]
    scripts: Vec<PathBuf>,
    /// Prints one JSON object a line for each script, instead of lines and a scoreboard.
    #[arg(long)]
    json: bool,
}

/// A script that could be read, and its verdict.
struct Judged {
    file: PathBuf,
    verdict: Verdict,
}

/// Number of scripts of a category, by verdict.
#[derive(Clone, Copy, Default)]
struct Score {
    passes: u32,
    fails: u32,
    needs: u32,
}

/// Runs the scripts and prints their verdicts; returns the exit code.
pub(crate) fn run(args: &Args) -> i32 {
    let mut found = Vec::new();
    for path in &args.scripts {
        if let Err(message) = find(path, &mut found) {
            complain(&message);
            return BAD_INPUT;
        }
    }
    let mut judged = Vec::new();
    let mut unreadable = 0;
    for file in found {
        match judge(&file) {
            Ok(verdict) => judged.push(Judged { file, verdict }),
            Err(message) => {
                unreadable += 1;
                tell(&message);
            }
        }
    }
    let text = if args.json { json(&judged) } else { lines(&judged) + &scoreboard(&judged) };
    let printed = print(&text);
    let fails = judged.iter().any(|one| matches!(one.verdict, Verdict::Fails(_)));
    match (printed, unreadable, fails) {
        (SUCCESS, 0, false) => SUCCESS,
        (SUCCESS, 0, true) => FAILURE,
        (SUCCESS, _, _) => BAD_INPUT,
        (code, _, _) => code,
    }
}

/// Adds the script at `path`, or the scripts in the folder `path`, sorted by name.
fn find(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    if !path.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let before = found.len();
    walk(path, found)?;
    if found.len() == before {
        return Err(format!(
            "{}: expected `.pkt` files in this folder, found none",
            path.display()
        ));
    }
    Ok(())
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    paths.sort();
    for path in paths {
        // A link to a folder may lead back here.
        if path.is_dir() && !path.is_symlink() {
            walk(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "pkt") {
            found.push(path);
        }
    }
    Ok(())
}

/// Reads and runs a script; shell scripts that it names lie beside it.
fn judge(file: &Path) -> Result<Verdict, String> {
    let text = files::text(file)?;
    let script = parse(&file.display().to_string(), &text).map_err(|error| error.render())?;
    let folder = file.parent().unwrap_or(Path::new("."));
    Ok(play(&script, &|name| std::fs::read_to_string(folder.join(name)).ok()))
}

fn lines(judged: &[Judged]) -> String {
    let line = |Judged { file, verdict }: &Judged| {
        let file = file.display();
        match verdict {
            Verdict::Passes => format!("passes  {file}\n"),
            Verdict::Fails(failure) => format!("fails   {file}:{}: {failure}\n", failure.line),
            Verdict::Needs(needs) => format!("needs   {file}: {}\n", needs.join("; ")),
        }
    };
    judged.iter().map(line).collect()
}

/// The folder that a script lies in.
fn category(file: &Path) -> String {
    let folder = file.parent().and_then(Path::file_name);
    folder.map_or_else(|| ".".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn scoreboard(judged: &[Judged]) -> String {
    let mut scores: BTreeMap<String, Score> = BTreeMap::new();
    let mut all = Score::default();
    for Judged { file, verdict } in judged {
        for score in [scores.entry(category(file)).or_default(), &mut all] {
            match verdict {
                Verdict::Passes => score.passes += 1,
                Verdict::Fails(_) => score.fails += 1,
                Verdict::Needs(_) => score.needs += 1,
            }
        }
    }
    let row = |name: &str, Score { passes, fails, needs }: &Score| {
        [name.to_owned(), passes.to_string(), fails.to_string(), needs.to_string()]
    };
    let mut rows = vec![["category", "passes", "fails", "needs"].map(str::to_owned)];
    rows.extend(scores.iter().map(|(name, score)| row(name, score)));
    rows.push(row("all", &all));
    format!("\n{}", aligned(&rows, &[0]))
}

fn json(judged: &[Judged]) -> String {
    let line = |Judged { file, verdict }: &Judged| {
        let (script, category) = (file.display().to_string(), category(file));
        let object = match verdict {
            Verdict::Passes => {
                serde_json::json!({"script": script, "category": category, "verdict": "passes"})
            }
            Verdict::Fails(failure) => serde_json::json!({
                "script": script,
                "category": category,
                "verdict": "fails",
                "line": failure.line,
                "expected": failure.expected,
                "got": failure.got,
            }),
            Verdict::Needs(needs) => serde_json::json!({
                "script": script,
                "category": category,
                "verdict": "needs",
                "needs": needs,
            }),
        };
        format!("{object}\n")
    };
    judged.iter().map(line).collect()
}
