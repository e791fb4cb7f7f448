//! Recordings as tshark reads them.

#[path = "../../../sim/tests/simulator/tshark.rs"]
mod capture;

use crate::replayed::{m_tcp_plus, recording};
use airtcp_record::Contents;

/// Output of tshark for a recording of an outage; `None`, with a note, if tshark is missing.
fn tshark(test: &str, contents: Contents, arguments: &[&str]) -> Option<String> {
    let (file, _) = recording(m_tcp_plus(), contents);
    capture::tshark(test, &file, arguments)
}

#[test]
fn tshark_shows_sides_directions_and_what_was_done() {
    let mut arguments = vec!["-T", "fields", "-E", "separator=|"];
    for field in [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.packet_flags_direction",
        "tcp.len",
        "tcp.window_size_value",
        "frame.comment",
    ] {
        arguments.extend(["-e", field]);
    }
    let Some(table) = tshark("fields", Contents::Headers, &arguments) else { return };
    let fading = table.lines().skip_while(|line| !line.contains("fixed|0x00000002|0|0|")).take(5);
    let expected = [
        "1763718000.129456789|fixed|0x00000002|0|0|airtcp group=0 action=inject",
        "1763718000.129456789|fixed|0x00000002|0|0|airtcp group=0 action=inject",
        "1763718000.129456789|fixed|0x00000001|1000|500|airtcp group=0 input=segment actions=inject,forward",
        "1763718000.129456789|fixed|0x00000002|0|0|airtcp group=0 action=inject",
        "1763718000.129456789|mobile|0x00000002|1000|500|airtcp group=0 action=forward",
    ];
    assert_eq!(fading.collect::<Vec<_>>(), expected, "{table}");
}

#[test]
fn tshark_lists_signals_and_timers_among_the_packets() {
    let arguments = ["-Y", "!tcp", "-T", "fields", "-e", "_ws.col.Info"];
    let Some(entries) = tshark("entries", Contents::Headers, &arguments) else { return };
    let entries: Vec<&str> = entries.lines().collect();
    let expected = [
        "recording of airtcp gateway",
        "group 0, phones: m-tcp-plus begins",
        "group 0: the link to 10.0.0.2 is fading",
        "group 0: the link to 10.0.0.2 is down",
        "group 0: timer",
    ];
    assert_eq!(entries[..5], expected, "{entries:?}");
}

#[test]
fn tshark_finds_nothing_malformed_and_good_checksums() {
    for contents in [Contents::Headers, Contents::Whole] {
        let Some(report) = tshark("expert", contents, &["-q", "-z", "expert"]) else { return };
        assert!(report.contains("TCP Zero Window segment"), "no expert report:\n{report}");
        for fault in ["Malformed", "Errors", "hecksum"] {
            assert!(!report.contains(fault), "{fault} in\n{report}");
        }
    }
}
