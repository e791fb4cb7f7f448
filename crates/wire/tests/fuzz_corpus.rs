//! The corpora of the fuzz targets `segment` and `live_packet`, replayed.

#[path = "../../../fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/checks/live_packet.rs"]
mod live_packet;

use live_packet::segment;

#[test]
fn the_codec_keeps_its_promises_on_the_corpus() {
    corpus::replay("segment", segment::check);
}

#[test]
fn the_decoder_keeps_its_promises_on_packets_of_a_data_path() {
    corpus::replay("live_packet", live_packet::check);
}
