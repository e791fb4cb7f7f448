//! The corpus of the fuzz target `recording`, replayed.

#[path = "../../../fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/checks/recording.rs"]
mod recording;

#[test]
fn no_file_makes_replay_panic() {
    corpus::replay("recording", recording::check);
}
