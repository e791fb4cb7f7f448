//! The corpus of the fuzz target `control`, replayed.

#[path = "../../../fuzz/checks/control.rs"]
mod control;
#[path = "../../../fuzz/checks/corpus.rs"]
mod corpus;

#[test]
fn the_parser_keeps_its_promises_on_the_corpus() {
    corpus::replay("control", control::check);
}
