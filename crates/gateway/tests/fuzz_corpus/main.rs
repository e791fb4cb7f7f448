//! The corpora of the fuzz targets `ledger` and `report`, replayed.

#[path = "../../../../fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/checks/ledger.rs"]
mod ledger;
#[path = "../../../../fuzz/checks/report.rs"]
mod report;
mod seeds;

#[test]
fn the_reader_keeps_its_promises_on_the_corpus() {
    corpus::replay("ledger", ledger::check);
}

#[test]
fn agent_messages_keep_their_promises_on_the_corpus() {
    corpus::replay("report", report::check);
}
