//! The corpora of the fuzz targets `segment` and `live_packet`, replayed.

#[path = "../../../fuzz/checks/live_packet.rs"]
mod live_packet;
#[path = "../../../fuzz/checks/segment.rs"]
mod segment;

/// Checks all inputs in a folder of the corpus.
fn replay(folder: &str, check: fn(&[u8])) {
    let folder = format!("{}/../../fuzz/corpus/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).expect(&folder) {
        let path = entry.unwrap().path();
        println!("{}", path.display()); // shown when the check fails
        check(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{folder} is empty");
}

#[test]
fn the_codec_keeps_its_promises_on_the_corpus() {
    replay("segment", segment::check);
}

#[test]
fn the_decoder_keeps_its_promises_on_packets_of_a_data_path() {
    replay("live_packet", live_packet::check);
}
