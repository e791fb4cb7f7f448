//! `airtcp gateway report`: what a gateway that only observes has seen, and the time it would have
//! saved; tables or JSON.

use super::{SocketArg, failed};
use airtcp_cli::{FAILURE, aligned, complain, print};
use airtcp_core::counted;
use airtcp_gateway::status::{GroupReport, ProtocolReport, Report};
use std::fmt::Write;

/// Arguments of `airtcp gateway report`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Prints one JSON object (a line) instead of the tables.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

/// Number of outages below which a report warns that they are few.
const FEW: u64 = 10;

/// Reason for which a gateway in protect mode has no report, and what has its numbers.
const PROTECTING: &str = "no report: this gateway protects, and what senders would have lost without it can only \
     be observed (mode = \"observe\"); `airtcp gateway status` shows the outages that are not over, \
     and `airtcp gateway metrics` how many there were and how long (airtcp_gateway_outages_total, \
     airtcp_gateway_outage_seconds_total)";

/// Shows what was observed; returns the exit code.
pub(super) fn report(args: &ReportArgs) -> i32 {
    match args.socket.status().map(|status| status.report) {
        Ok(Some(report)) if args.json => {
            print(&format!("{}\n", serde_json::to_string(&report).expect("numbers and strings")))
        }
        Ok(Some(report)) => print(&tables(&report)),
        Ok(None) => {
            complain(PROTECTING);
            FAILURE
        }
        Err(error) => failed(&error),
    }
}

fn tables(report: &Report) -> String {
    let mut all = GroupReport { name: "all".to_owned(), ..GroupReport::default() };
    report.groups.iter().for_each(|group| all.add(group));
    let is_alone = report.groups.len() == 1;
    let rows = report.groups.iter().chain((!is_alone).then_some(&all));
    let mut out =
        format!("Observed for {}. Nothing was held, changed or sent.\n\n", time(report.seconds));
    let heads = ["group", "outages", "signalled", "inferred", "total time", "longest", "down now"];
    let mut outages = vec![heads.map(str::to_owned)];
    let heads = [
        "group",
        "protocol",
        "packets",
        "bytes",
        "flows",
        "stalled",
        "resumed",
        "would have been saved",
    ];
    let mut protocols = vec![heads.map(str::to_owned)];
    for group in rows {
        outages.push(of_outages(group));
        protocols.extend(of_protocols(group));
    }
    out += &aligned(&outages, &[0]);
    out.push('\n');
    out += &aligned(&protocols, &[0, 1]);
    out.push('\n');
    out += &conclusion(&all);
    out
}

fn of_outages(group: &GroupReport) -> [String; 7] {
    [
        group.name.clone(),
        (group.outages_signalled + group.outages_silent).to_string(),
        group.outages_signalled.to_string(),
        group.outages_silent.to_string(),
        // Those that are not over count until now.
        time(group.outage_seconds + group.ongoing_seconds),
        time(group.longest_outage.max(group.longest_ongoing)),
        group.away.to_string(),
    ]
}

fn of_protocols(group: &GroupReport) -> impl Iterator<Item = [String; 8]> {
    let sum = |of: fn(&ProtocolReport) -> u64| -> u64 {
        group.protocols().iter().map(|(_, seen)| of(seen)).sum()
    };
    let (packets, bytes) = (sum(|seen| seen.packets), sum(|seen| seen.bytes));
    let first = group.protocols()[0].0;
    group.protocols().into_iter().map(move |(name, seen)| {
        let is_known = name != "other";
        let known = |text: String| if is_known { text } else { String::new() };
        [
            if name == first { group.name.clone() } else { String::new() },
            if is_known { name.to_uppercase() } else { name.to_owned() },
            share(seen.packets, packets),
            share(seen.bytes, bytes),
            seen.flows.to_string(),
            known(seen.stalled.to_string()),
            known(seen.resumed.to_string()),
            known(range(seen.saved_least, seen.saved_most)),
        ]
    })
}

/// The result in a sentence, and how certain it is.
fn conclusion(all: &GroupReport) -> String {
    let outages = all.outages_signalled + all.outages_silent;
    let (stalled, resumed) =
        (all.tcp.stalled + all.quic.stalled, all.tcp.resumed + all.quic.resumed);
    let [least, most] =
        [all.tcp.saved_least + all.quic.saved_least, all.tcp.saved_most + all.quic.saved_most];
    let mut out = String::new();
    if resumed == 0 {
        let _ =
            writeln!(out, "No flow has stalled and resumed yet: nothing would have been saved.");
        return out;
    }
    let each = resumed as f64;
    let _ = writeln!(
        out,
        "{resumed} of {} that stalled in {} resumed; with protection they would have resumed {} sooner on average.",
        counted(stalled, "flow"),
        counted(outages, "outage"),
        range(least / each, most / each)
    );
    if outages < FEW {
        let _ = writeln!(out, "Fewer than {FEW} outages: observe longer before you rely on this.");
    }
    if range(least, least) != range(most, most) {
        let _ = writeln!(
            out,
            "The range is uncertainty: no source reported the end of some outages; enable one (`airtcp agent`, carrier)."
        );
    }
    out
}

/// A part as a percentage of all; empty if there is nothing.
fn share(part: u64, all: u64) -> String {
    match all {
        0 => String::new(),
        all => format!("{:.0} %", 100.0 * part as f64 / all as f64),
    }
}

/// "3.1 s", or "2.9 s to 3.1 s".
fn range(least: f64, most: f64) -> String {
    let [least, most] = [least, most].map(time);
    if least == most { most } else { format!("{least} to {most}") }
}

/// A time with about three digits.
fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..100 => format!("{seconds:.1} s"),
        100..6_000 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cars() -> GroupReport {
        let tcp = ProtocolReport {
            packets: 710_000,
            bytes: 820_000_000,
            flows: 312,
            stalled: 25,
            resumed: 22,
            saved_least: 64.1,
            saved_most: 70.24,
        };
        let quic = ProtocolReport {
            packets: 220_000,
            bytes: 170_000_000,
            flows: 88,
            stalled: 3,
            resumed: 3,
            saved_least: 6.0,
            saved_most: 6.0,
        };
        let other = ProtocolReport { packets: 70_000, bytes: 10_000_000, ..Default::default() };
        GroupReport {
            name: "cars".to_owned(),
            away: 1,
            outages_signalled: 9,
            outages_silent: 5,
            outage_seconds: 183.4,
            longest_outage: 41.0,
            ongoing_seconds: 0.0,
            longest_ongoing: 0.0,
            tcp,
            quic,
            other,
        }
    }

    #[test]
    fn a_report_of_a_day_says_what_it_comes_down_to() {
        let report = Report { seconds: 86_400.0, groups: vec![cars()] };
        assert_eq!(
            tables(&report),
            "\
Observed for 24 h 0 min. Nothing was held, changed or sent.

group  outages  signalled  inferred  total time  longest  down now
cars        14          9         5   3 min 3 s   41.0 s         1

group  protocol  packets  bytes  flows  stalled  resumed  would have been saved
cars   TCP          71 %   82 %    312       25       22       64.1 s to 70.2 s
       QUIC         22 %   17 %     88        3        3                  6.0 s
       other         7 %    1 %      0

25 of 28 flows that stalled in 14 outages resumed; with protection they would have resumed 2.8 s to 3.0 s sooner on average.
The range is uncertainty: no source reported the end of some outages; enable one (`airtcp agent`, carrier).
"
        );
    }

    #[test]
    fn an_outage_that_is_not_over_counts_until_now() {
        let away = GroupReport { away: 1, ongoing_seconds: 57.0, longest_ongoing: 57.0, ..cars() };
        let text = tables(&Report { seconds: 86_400.0, groups: vec![away.clone()] });
        assert!(text.contains("  4 min 0 s   57.0 s         1\n"), "{text}");
        let text = tables(&Report { seconds: 86_400.0, groups: vec![cars(), away] });
        assert!(text.contains("  7 min 4 s   57.0 s         2\n"), "of all: {text}");
    }

    #[test]
    fn several_groups_are_summed_up() {
        let idle = GroupReport { name: "phones".to_owned(), ..GroupReport::default() };
        let text = tables(&Report { seconds: 3.0, groups: vec![cars(), idle] });
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[3].starts_with("cars ") && lines[4].starts_with("phones "), "{text}");
        assert!(lines[5].starts_with("all ") && lines[5].contains(" 14 "), "{text}");
    }

    #[test]
    fn nothing_seen_is_no_promise() {
        let group = GroupReport { name: "cars".to_owned(), ..GroupReport::default() };
        let text = tables(&Report { seconds: 1.0, groups: vec![group] });
        assert!(
            text.ends_with("No flow has stalled and resumed yet: nothing would have been saved.\n"),
            "{text}"
        );
    }

    #[test]
    fn few_outages_are_said_to_be_few() {
        let few = "Fewer than 10 outages: observe longer before you rely on this.\n";
        let of = |outages_signalled| {
            let group = GroupReport { outages_signalled, outages_silent: 0, ..cars() };
            tables(&Report { seconds: 1.0, groups: vec![group] })
        };
        assert!(of(9).contains(few) && !of(10).contains(few));
    }

    #[test]
    fn times_have_about_three_digits() {
        let texts = [0.04, 9.96, 99.4, 100.0, 5_999.0, 90_061.0].map(time);
        assert_eq!(texts, ["0.0 s", "10.0 s", "99.4 s", "1 min 40 s", "99 min 59 s", "25 h 1 min"]);
    }
}
