//! The corpus of the fuzz target `ledger`, replayed.

#[path = "../../../fuzz/checks/ledger.rs"]
mod ledger;

#[test]
fn the_reader_keeps_its_promises_on_the_corpus() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/ledger");
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder).expect(folder) {
        let path = entry.unwrap().path();
        println!("{}", path.display()); // shown when the check fails
        ledger::check(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{folder} is empty");
}
