//! The corpus of the fuzz target `gateway_config`, replayed, also with its lines in another order.

#[path = "../../../fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/checks/gateway_config.rs"]
mod gateway_config;

use proptest::strategy::Strategy;

/// Any lines of the corpus, one after the other.
fn mixtures() -> impl Strategy<Value = String> {
    let texts = corpus::files("gateway_config")
        .into_iter()
        .map(|path| std::fs::read_to_string(path).unwrap());
    let lines: Vec<String> =
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let lines = proptest::sample::select(lines);
    proptest::collection::vec(lines, 1..30).prop_map(|lines| lines.join("\n"))
}

#[test]
fn the_parser_keeps_its_promises_on_the_corpus() {
    corpus::replay("gateway_config", gateway_config::check);
}

proptest::proptest! {
    #[test]
    fn the_parser_keeps_its_promises_on_mixtures_of_the_corpus(text in mixtures()) {
        gateway_config::check(text.as_bytes());
    }
}
