//! No room: nothing is promised that is not on file, and what is on file stays.

use crate::{Gateway, content, flow};
use airtcp_core::LinkSignal;
use std::process::Command;
use tempfile::tempdir;

#[test]
fn beyond_the_limit_nothing_is_promised() {
    let dir = tempdir().unwrap();
    let mut gateway = Gateway::start(dir.path(), 15_000);
    for n in 0..2 {
        gateway.ack(n, 0);
        (0..10).for_each(|i| drop(gateway.data(n, 1000 * i, 1000)));
    }
    let frozen = gateway.signal(LinkSignal::Down);
    let promised = [0, 1].map(|n| Gateway::promises(&frozen, n, 10_000));
    assert_eq!((promised, gateway.failures.len()), ([true, false], 1));
    assert_eq!(gateway.failures[0].flows, [flow(1)]);
    assert!(gateway.failures[0].to_string().contains("limit of 15000 B"));
    assert!(!Gateway::promises(&gateway.data(1, 0, 1000), 1, 10_000));
    // Room again: the mobile has what was held.
    gateway.ack(0, 10_000);
    assert!(Gateway::promises(&gateway.data(1, 0, 1000), 1, 10_000));
    assert_eq!(gateway.ledger.len(), 2);
}

/// Runs in a process of its own, whose files may not grow beyond some KiB.
const LIMITED: &str = "AIRTCP_TEST_FULL_DISK";

#[test]
fn a_full_file_system_leaves_what_is_on_file() {
    let Some(dir) = std::env::var_os(LIMITED) else {
        let dir = tempdir().unwrap();
        let name = "full::a_full_file_system_leaves_what_is_on_file";
        let output = Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact \"$1\""])
            .arg(std::env::current_exe().unwrap())
            .arg(name)
            .env(LIMITED, dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let mut next = Gateway::take_over(dir.path(), 1 << 30);
        let replayed = Gateway::replayed(&next.signal(LinkSignal::Up), 0);
        assert_eq!(replayed, content(0, 3200), "all that was promised, and the process is dead");
        return;
    };
    let mut gateway = Gateway::start(dir.as_ref(), 1 << 30);
    gateway.underway(0);
    gateway.signal(LinkSignal::Down);
    assert!(Gateway::promises(&gateway.data(0, 3000, 200), 0, 3200));
    assert!(gateway.failures.is_empty());
    // Larger than any file may be.
    assert!(!Gateway::promises(&gateway.data(0, 3200, 10_000), 0, 13_200));
    assert!(!Gateway::promises(&gateway.data(0, 13_200, 100), 0, 13_300));
    assert_eq!(gateway.failures.len(), 2);
    assert_eq!(gateway.ledger.len(), 1, "{}", flow(0));
}
