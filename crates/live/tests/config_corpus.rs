//! The corpus of the fuzz target `gateway_config`, replayed, also with its lines in another order.

#![cfg(target_os = "linux")]

#[path = "../../../fuzz/checks/gateway_config.rs"]
mod gateway_config;

use proptest::strategy::Strategy;
use std::path::PathBuf;

/// The files of the corpus.
fn corpus() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/gateway_config");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect(folder).map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{folder} is empty");
    files
}

/// Any lines of the corpus, one after the other.
fn mixtures() -> impl Strategy<Value = String> {
    let texts = corpus().into_iter().map(|path| std::fs::read_to_string(path).unwrap());
    let lines: Vec<String> =
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let lines = proptest::sample::select(lines);
    proptest::collection::vec(lines, 1..30).prop_map(|lines| lines.join("\n"))
}

#[test]
fn the_parser_keeps_its_promises_on_the_corpus() {
    for path in corpus() {
        println!("{}", path.display()); // shown when the check fails
        gateway_config::check(&std::fs::read(&path).unwrap());
    }
}

proptest::proptest! {
    #[test]
    fn the_parser_keeps_its_promises_on_mixtures_of_the_corpus(text in mixtures()) {
        gateway_config::check(text.as_bytes());
    }
}
