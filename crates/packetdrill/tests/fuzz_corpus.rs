//! The corpus of the fuzz target `packetdrill`, replayed.

#[path = "../../../fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/checks/packetdrill.rs"]
mod packetdrill;

#[test]
fn the_parser_keeps_its_promises_on_the_corpus() {
    corpus::replay("packetdrill", packetdrill::check);
}
