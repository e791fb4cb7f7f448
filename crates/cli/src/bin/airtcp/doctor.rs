//! `airtcp doctor`: a table for people grouped by command, or one JSON object.

use crate::myself;
use airtcp_cli::{FAILURE, SUCCESS, print};
use airtcp_linux::doctor::{Check, CheckState, LiveCommand, Report, Verdict, examine, probe};
use clap::ValueEnum;
use std::fmt::Write;

/// Arguments of `airtcp doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Prints one JSON object instead of the table.
    #[arg(long)]
    json: bool,
    /// Exits with 1 unless this command will work here; may be repeated.
    #[arg(long, value_name = "COMMAND")]
    require: Vec<Required>,
    /// Set when the program starts itself again, to try things in namespaces of its own.
    #[arg(long, hide = true)]
    probe: bool,
}

/// A command that `--require` can name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Required {
    Link,
    Gateway,
    /// The gateway with its default mechanism
    Wake,
    Delack,
    Cc,
}

impl Required {
    fn live(self) -> LiveCommand {
        match self {
            Self::Link => LiveCommand::Link,
            Self::Gateway => LiveCommand::Gateway,
            Self::Wake => LiveCommand::Wake,
            Self::Delack => LiveCommand::Delack,
            Self::Cc => LiveCommand::Cc,
        }
    }
}

/// Examines the machine and prints what it found; returns the exit code.
pub(crate) fn doctor(args: &Args) -> i32 {
    if args.probe {
        return print(&probe());
    }
    let report = examine(&mut myself("--probe"));
    let text = if args.json {
        let json = serde_json::to_string(&report).expect("names, states and strings");
        format!("{json}\n")
    } else {
        table(&report)
    };
    match print(&text) {
        SUCCESS if args.require.iter().any(|r| !works(verdict(&report, r.live()))) => FAILURE,
        code => code,
    }
}

fn verdict(report: &Report, command: LiveCommand) -> &Verdict {
    report.verdicts.iter().find(|v| v.command == command).expect("one for each command")
}

fn works(verdict: &Verdict) -> bool {
    matches!(verdict.state, CheckState::Ok | CheckState::Degraded)
}

/// The checks of each command, with how to fix what failed; then one line of verdicts.
fn table(report: &Report) -> String {
    let name_width = report.checks.iter().map(|c| c.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for command in LiveCommand::ALL {
        let _ = match command {
            LiveCommand::Wake => writeln!(out, "airtcp gateway with wake, its default mechanism"),
            _ => writeln!(out, "airtcp {command}"),
        };
        let needed = report.checks.iter().filter(|c| c.needed_for.contains(&command));
        let helping = report.checks.iter().filter(|c| c.helps.contains(&command));
        let (needed, helping): (Vec<&Check>, Vec<&Check>) = (needed.collect(), helping.collect());
        for (title, checks) in [("needs", needed), ("is better with", helping)] {
            let _ = writeln!(out, "  {title}");
            for check in checks {
                let (state, name, found) = (check.state.name(), check.name, &check.found);
                let _ = writeln!(out, "    {state:<8}  {name:<name_width$}  {found}");
                if !check.fix.is_empty() {
                    let (purpose, fix) = (check.purpose, &check.fix);
                    let _ = writeln!(out, "              for: {purpose}");
                    let _ = writeln!(out, "              fix: {fix}");
                }
            }
        }
        out.push('\n');
    }
    let verdicts: Vec<_> = report.verdicts.iter().map(sentence).collect();
    let _ = writeln!(out, "{}", verdicts.join("; "));
    out
}

fn sentence(verdict: &Verdict) -> String {
    let (command, lacks) = (verdict.command, verdict.lacks.join(", "));
    match verdict.state {
        CheckState::Ok => format!("{command}: will work"),
        CheckState::Degraded => format!("{command}: will work, could be better"),
        CheckState::Unknown => format!("{command}: cannot tell ({lacks})"),
        CheckState::Missing => format!("{command}: will not work here ({lacks})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str, state: CheckState) -> Check {
        Check {
            name,
            state,
            found: "what was found".into(),
            needed_for: &[LiveCommand::Link],
            helps: &[LiveCommand::Cc],
            purpose: "something",
            fix: if state == CheckState::Ok { String::new() } else { "do this".into() },
        }
    }

    #[test]
    fn the_table_is_grouped_by_command_and_ends_with_the_verdicts() {
        let checks = vec![check("tun", CheckState::Ok), check("namespaces", CheckState::Missing)];
        let of = |command, state, lacks| Verdict { command, state, lacks };
        let verdicts = vec![
            of(LiveCommand::Link, CheckState::Missing, vec!["namespaces"]),
            of(LiveCommand::Gateway, CheckState::Ok, vec![]),
            of(LiveCommand::Cc, CheckState::Degraded, vec![]),
        ];
        let shown = table(&Report { checks, verdicts });
        let rows = "    ok        tun         what was found
    missing   namespaces  what was found
              for: something
              fix: do this
";
        let wanted = format!(
            "airtcp link\n  needs\n{rows}  is better with\n\n\
             airtcp gateway\n  needs\n  is better with\n\n\
             airtcp gateway with wake, its default mechanism\n  needs\n  is better with\n\n\
             airtcp delack\n  needs\n  is better with\n\n\
             airtcp cc\n  needs\n  is better with\n{rows}\n\
             link: will not work here (namespaces); gateway: will work; cc: will work, could be better\n"
        );
        assert_eq!(shown, wanted);
    }

    #[test]
    fn a_command_works_unless_something_it_needs_is_missing_or_unknown() {
        for (state, wanted) in [
            (CheckState::Ok, true),
            (CheckState::Degraded, true),
            (CheckState::Unknown, false),
            (CheckState::Missing, false),
        ] {
            assert_eq!(works(&Verdict { command: LiveCommand::Cc, state, lacks: vec![] }), wanted);
        }
    }
}
