//! The corpus of the fuzz target `report`, replayed.

#![cfg(target_os = "linux")]

#[path = "../../../fuzz/checks/report.rs"]
mod report;

#[test]
fn agent_messages_keep_their_promises_on_the_corpus() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/report");
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder).expect(folder) {
        let path = entry.unwrap().path();
        println!("{}", path.display()); // shown when the check fails
        report::check(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{folder} is empty");
}
