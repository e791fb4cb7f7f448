//! `airtcp gateway status`: groups, mobiles out of reach and connections, as tables or JSON; once
//! or every second.

use super::{SocketArg, failed};
use airtcp_cli::{aligned, printed, write_out};
use airtcp_core::counted;
use airtcp_gateway::status::{FlowStatus, GroupStatus, OutageStatus, Status};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::time::Duration;

/// Arguments of `airtcp gateway status`.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Prints one JSON object (a line) instead of the tables.
    #[arg(long)]
    json: bool,
    /// Repeats every second until interrupted.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    socket: SocketArg,
}

/// Time between two updates.
const PERIOD: Duration = Duration::from_secs(1);

/// Clears a terminal and goes to its upper left corner (ECMA-48: CUP, ED).
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows the gateway's state; returns the exit code.
pub(super) fn status(args: &StatusArgs) -> i32 {
    let clear = if args.watch && !args.json && io::stdout().is_terminal() { CLEAR } else { "" };
    loop {
        let written = match args.socket.status() {
            Ok(status) if args.json => write_out(&format!(
                "{}\n",
                serde_json::to_string(&status).expect("numbers and strings")
            )),
            Ok(status) => write_out(&format!("{clear}{}", tables(&status))),
            // The gateway may be restarting.
            Err(error) if args.watch => {
                failed(&error);
                Ok(())
            }
            Err(error) => return failed(&error),
        };
        if !args.watch || written.is_err() {
            return printed(written);
        }
        std::thread::sleep(PERIOD);
    }
}

fn tables(status: &Status) -> String {
    let mut out = String::new();
    let heads = ["group", "mechanism", "path", "connections", "held", "refused segments"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(status.groups.iter().map(|group| {
        let GroupStatus { name, mechanism, path, flows, held, segments_refused, .. } = group;
        [
            name.clone(),
            mechanism.clone(),
            path.clone(),
            flows.to_string(),
            bytes(*held),
            segments_refused.to_string(),
        ]
    }));
    out += &aligned(&rows, &[0, 1, 2]);
    for group in &status.groups {
        let _ = writeln!(out, "{}: {}", group.name, counts(&group.counters));
        let ended: u64 = group.outages.values().map(|of| of.ended).sum();
        if ended > 0 {
            let seconds: f64 = group.outages.values().map(|of| of.seconds).sum();
            let (name, longest) = (&group.name, group.longest_outage);
            let _ = writeln!(
                out,
                "{name}: {} over, {seconds:.1} s in all, the longest {longest:.1} s",
                counted(ended, "outage")
            );
        }
    }
    let _ = writeln!(out, "packets: {}", counts(&status.counters));
    for (source, signals) in &status.signals {
        let _ = writeln!(out, "signals from {source}: {}", counts(signals));
    }
    out += &away(&status.away);
    out += &outages(status);
    let _ = writeln!(
        out,
        "\n{}, {} held",
        counted(status.flow_count, "connection"),
        bytes(status.held)
    );
    if status.flows.is_empty() {
        return out;
    }
    let heads = ["server", "device", "group", "mechanism", "state", "since", "held", ""];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(status.flows.iter().map(|flow| {
        let FlowStatus { server, device, group, mechanism, state, since, held, committed } = flow;
        [
            server.clone(),
            device.clone(),
            group.clone(),
            mechanism.clone(),
            state.clone(),
            since.map_or_else(String::new, |since| format!("{since:.1} s")),
            bytes(*held),
            if *committed { "acknowledged" } else { "" }.to_owned(),
        ]
    }));
    out += &aligned(&rows, &[0, 1, 2, 3, 4, 7]);
    let listed = status.flows.len() as u64;
    if let Some(more @ 1..) = status.flow_count.checked_sub(listed) {
        let _ = writeln!(out, "and {more} more");
    }
    out
}

/// Most mobiles that are named for one signal, and most rows of outages; `--json` has more.
const NAMED: usize = 20;

/// The mobiles and uplinks that are not in reach, or how many there are.
fn away(away: &BTreeMap<String, String>) -> String {
    let mut of_signal: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (mobile, signal) in away {
        of_signal.entry(signal).or_default().push(mobile);
    }
    let mut out = String::new();
    for (signal, mobiles) in of_signal {
        if mobiles.len() > NAMED {
            let _ = writeln!(out, "{} mobiles are {signal}", mobiles.len());
            continue;
        }
        for mobile in mobiles {
            let _ = writeln!(out, "{mobile} is {signal}");
        }
    }
    out
}

/// A table of the outages that are not over; empty without any.
fn outages(status: &Status) -> String {
    if status.outages.is_empty() {
        return String::new();
    }
    let heads = ["away", "group", "for", "reported by"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(status.outages.iter().take(NAMED).map(|outage| {
        let OutageStatus { mobile, group, cause, seconds } = outage;
        let cause = match cause.as_str() {
            "silence" => "nobody (silence)",
            "earlier-gateway" => "an earlier gateway's record",
            cause => cause,
        };
        [mobile.clone(), group.clone(), format!("{seconds:.1} s"), cause.to_owned()]
    }));
    let ongoing =
        |group: &GroupStatus| -> u64 { group.outages.values().map(|of| of.ongoing).sum() };
    let all: u64 = status.groups.iter().map(ongoing).sum();
    let mut out = format!("\n{}", aligned(&rows, &[0, 1, 3]));
    let shown = status.outages.len().min(NAMED) as u64;
    if let Some(more @ 1..) = all.checked_sub(shown) {
        let _ = writeln!(out, "and {more} more");
    }
    out
}

/// The counters that are not zero.
fn counts(counts: &BTreeMap<String, u64>) -> String {
    let named = |(name, n): (&String, &u64)| format!("{n} {}", name.replace('_', " "));
    let all: Vec<_> = counts.iter().filter(|(_, n)| **n > 0).map(named).collect();
    if all.is_empty() { "nothing yet".to_owned() } else { all.join(", ") }
}

/// A size with about three digits.
fn bytes(n: u64) -> String {
    match n {
        0..10_000 => format!("{n} B"),
        10_000..10_000_000 => format!("{} kB", n / 1000),
        _ => format!("{} MB", n / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_gateway::status::OutageCounts;

    #[test]
    fn a_gateway_in_the_middle_of_an_outage() {
        let counters = |pairs: &[(&str, u64)]| {
            pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<BTreeMap<_, _>>()
        };
        let flow = FlowStatus {
            server: "203.0.113.5:443".to_owned(),
            device: "10.0.0.7:40000".to_owned(),
            group: "cars".to_owned(),
            mechanism: "m-tcp-plus".to_owned(),
            state: "frozen".to_owned(),
            since: Some(12.345),
            held: 1_048_576,
            committed: true,
        };
        let calm = FlowStatus {
            state: "connected".to_owned(),
            device: "10.0.0.8:4000".to_owned(),
            since: None,
            held: 0,
            committed: false,
            ..flow.clone()
        };
        let group = GroupStatus {
            name: "cars".to_owned(),
            mechanism: "m-tcp-plus".to_owned(),
            path: "nfqueue".to_owned(),
            flows: 3,
            held: 1_048_576,
            segments_refused: 0,
            counters: counters(&[("freezes", 1), ("resets", 0)]),
            outages: BTreeMap::from([(
                "control".to_owned(),
                OutageCounts { begun: 9, ended: 6, ongoing: 3, seconds: 50.0 },
            )]),
            longest_outage: 20.0,
        };
        let outage = |mobile: &str, cause: &str, seconds| OutageStatus {
            mobile: mobile.to_owned(),
            group: "cars".to_owned(),
            cause: cause.to_owned(),
            seconds,
        };
        let status = Status {
            version: "0.1.0".to_owned(),
            reload: None,
            groups: vec![group],
            flows: vec![flow, calm],
            flow_count: 3,
            committed: 1,
            held: 1_048_576,
            away: BTreeMap::from([("10.0.0.7".to_owned(), "down".to_owned())]),
            outages: vec![
                outage("10.0.0.7", "control", 12.345),
                outage("10.0.0.9", "silence", 3.0),
            ],
            counters: counters(&[("packets_passed", 812), ("packets_held", 30)]),
            signals: BTreeMap::from([("control".to_owned(), counters(&[("down", 1)]))]),
            report: None,
        };
        let many = 1..=254;
        let prefix = Status {
            away: many.clone().map(|n| (format!("10.0.0.{n}"), "down".to_owned())).collect(),
            outages: many.map(|n| outage(&format!("10.0.0.{n}"), "control", 1.0)).collect(),
            groups: vec![GroupStatus {
                outages: BTreeMap::from([(
                    "control".to_owned(),
                    OutageCounts { begun: 254, ongoing: 254, ..Default::default() },
                )]),
                ..status.groups[0].clone()
            }],
            ..status.clone()
        };
        let text = tables(&prefix);
        assert!(text.contains("\n254 mobiles are down\n"), "{text}");
        assert!(text.contains("\nand 234 more\n"), "{text}");
        assert!(text.lines().count() < 50, "{text}");
        let alone = Status { flow_count: 1, flows: Vec::new(), ..status.clone() };
        assert!(tables(&alone).ends_with("\n1 connection, 1048 kB held\n"));
        assert_eq!(
            tables(&status),
            "\
group  mechanism   path     connections     held  refused segments
cars   m-tcp-plus  nfqueue            3  1048 kB                 0
cars: 1 freezes
cars: 6 outages over, 50.0 s in all, the longest 20.0 s
packets: 30 packets held, 812 packets passed
signals from control: 1 down
10.0.0.7 is down

away      group     for  reported by
10.0.0.7  cars   12.3 s  control
10.0.0.9  cars    3.0 s  nobody (silence)
and 1 more

3 connections, 1048 kB held
server           device          group  mechanism   state       since     held
203.0.113.5:443  10.0.0.7:40000  cars   m-tcp-plus  frozen     12.3 s  1048 kB  acknowledged
203.0.113.5:443  10.0.0.8:4000   cars   m-tcp-plus  connected              0 B
and 1 more
"
        );
    }
}
