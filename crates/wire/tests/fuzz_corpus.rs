//! The corpus of the fuzz target `segment`, replayed.

#[path = "../../../fuzz/checks/segment.rs"]
mod segment;

#[test]
fn the_codec_keeps_its_promises_on_the_corpus() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/segment");
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder).expect(folder) {
        let path = entry.unwrap().path();
        println!("{}", path.display()); // shown when the check fails
        segment::check(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{folder} is empty");
}
