//! The corpus of the fuzz target `scenario`, replayed.

#[path = "../../../../fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/checks/scenario.rs"]
mod scenario;

#[test]
fn the_parser_keeps_its_promises_on_the_corpus() {
    corpus::replay("scenario", scenario::check);
}
