//! The corpus of the fuzz target `scenario`, replayed.

#[path = "../../../fuzz/checks/scenario.rs"]
mod scenario;

#[test]
fn the_parser_keeps_its_promises_on_the_corpus() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/scenario");
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder).expect(folder) {
        let path = entry.unwrap().path();
        println!("{}", path.display()); // shown when the check fails
        scenario::check(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{folder} is empty");
}
