//! Firewall rules that other programs flush in the middle of an outage.

use crate::lateness::allowance;
use crate::outages::{Told, WORST, outage, sleep_until};
use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::Load;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const SIZE: u64 = 4_000_000;
const OUTAGE: Duration = Duration::from_secs(5);
/// After the outage began.
const FLUSHED: Duration = Duration::from_secs(2);

/// Time that the gateway waits before it restores rules. If the machine is so busy that a flush
/// takes longer, rules may be restored in the middle of it: then the flush fails, or they must be
/// restored once more.
const PATIENCE: Duration = Duration::from_millis(200);

/// Command of a firewall that restarts.
const NFT: &str = "nft flush ruleset";
const IPTABLES: &str =
    "for table in filter raw mangle; do iptables -t $table -F; iptables -t $table -X; done";
const LEGACY: &str = "for table in filter raw mangle; do iptables-legacy -w -t $table -F; iptables-legacy -w -t $table -X; done";

/// A folder with the programs of one kind of iptables, and an `nft` that can do nothing.
fn only_iptables(kind: &str) -> Option<tempfile::TempDir> {
    let program = Path::new("/usr/sbin").join(format!("xtables-{kind}-multi"));
    let works = Command::new(format!("iptables-{kind}")).args(["-t", "mangle", "-S"]).output();
    if !program.exists() || !works.is_ok_and(|output| output.status.success()) {
        airtcp_testing::skip(&format!("iptables-{kind}"));
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["iptables", "ip6tables"] {
        for suffix in ["", "-save", "-restore"] {
            let path = folder.path().join(format!("{name}{suffix}"));
            std::os::unix::fs::symlink(&program, path).unwrap();
        }
    }
    std::os::unix::fs::symlink("/bin/false", folder.path().join("nft")).unwrap();
    Some(folder)
}

/// A download goes through an outage whose end is not signalled: only the mobile's answers to the
/// gateway's probes show it, and they need the rules. These are flushed in the outage.
/// Programs in the folder `tools` come before those of the machine.
fn expect_repaired(tools: Option<tempfile::TempDir>, flush: &str) {
    let machine = std::env::var("PATH").unwrap_or_default();
    let path = |folder: &tempfile::TempDir| format!("{}:{machine}", folder.path().display());
    let environment = tools.iter().map(|folder| ("PATH", path(folder))).collect();
    let bed = Testbed::new(&Plan { environment, ..Plan::with("\"m-tcp-plus\"") });
    let transfer = bed.download(&Load::of(SIZE));
    transfer.wait_for(SIZE / 2);
    let begin = Instant::now() + Duration::from_millis(300);
    let (up, flushing) = thread::scope(|scope| {
        let flushing = scope.spawn(|| {
            sleep_until(begin + FLUSHED);
            let begun = Instant::now();
            let output = bed.gateway.command(&["sh", "-ec", flush]).output().unwrap();
            let flushing = begun.elapsed();
            assert!(output.status.success() || flushing > PATIENCE, "{flush}: {output:?}");
            let flushed = Instant::now();
            bed.daemon().wait_until(|status| status.counters["rules_repaired"] > 0);
            let took = flushed.elapsed();
            // Checking the rules and setting them again takes several programs, as the flush did.
            let most = Duration::from_secs(1) + flushing + allowance(flushed);
            assert!(took < most, "{flush}: {took:?} of {most:?}\n{}", bed.daemon().log());
            flushing
        });
        (outage(&bed, begin, OUTAGE, Told::NoUp, || {}), flushing.join().unwrap())
    });
    let dead = transfer.dead_time(up, Duration::from_secs(60));
    let log = bed.daemon().log();
    assert!(dead.is_some_and(|dead| dead.is_within(WORST)), "{flush}: {dead:?}\n{log}");
    assert!(log.contains("another program removed rules"), "{log}");
    assert_eq!(transfer.finish(), SIZE);
    let repaired = bed.daemon().status().counters["rules_repaired"];
    assert!(repaired == 1 || flushing > PATIENCE, "once was enough: {repaired} times\n{log}");
}

#[test]
fn rules_that_nft_flushes_in_an_outage_are_back_within_a_second() {
    if possible() {
        expect_repaired(None, NFT);
    }
}

#[test]
fn rules_that_iptables_flushes_in_an_outage_are_back_within_a_second() {
    if possible()
        && let Some(tools) = only_iptables("nft")
    {
        expect_repaired(Some(tools), IPTABLES);
    }
}

#[test]
fn rules_that_iptables_legacy_flushes_in_an_outage_are_back_within_a_second() {
    if possible()
        && let Some(tools) = only_iptables("legacy")
    {
        expect_repaired(Some(tools), LEGACY);
    }
}
