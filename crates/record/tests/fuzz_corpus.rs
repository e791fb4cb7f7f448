//! The corpus of the fuzz target `recording`, replayed.

#[path = "../../../fuzz/checks/recording.rs"]
mod recording;

#[test]
fn no_file_makes_replay_panic() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/recording");
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder).expect(folder) {
        let path = entry.unwrap().path();
        println!("{}", path.display()); // shown when the check fails
        recording::check(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{folder} is empty");
}
