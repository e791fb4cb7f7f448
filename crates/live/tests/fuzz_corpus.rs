//! The corpora of the fuzz targets `ledger` and `report`, replayed.

#![cfg(target_os = "linux")]

#[path = "../../../fuzz/checks/ledger.rs"]
mod ledger;
#[path = "../../../fuzz/checks/report.rs"]
mod report;

/// Checks each input that `target` has.
fn replay(target: &str, check: impl Fn(&[u8])) {
    let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).expect(&folder) {
        let path = entry.unwrap().path();
        println!("{}", path.display()); // shown when the check fails
        check(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{folder} is empty");
}

#[test]
fn the_reader_keeps_its_promises_on_the_corpus() {
    replay("ledger", ledger::check);
}

#[test]
fn agent_messages_keep_their_promises_on_the_corpus() {
    replay("report", report::check);
}
