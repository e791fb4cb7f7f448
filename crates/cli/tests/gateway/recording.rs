//! Recordings of live traffic: replayed as the simulator does, and read by tshark.

#[path = "../../../sim/tests/simulator/tshark.rs"]
mod capture;

use crate::outages::{Told, outage};
use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::Load;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const SIZE: u64 = 2_000_000;

#[test]
fn a_recording_replays_with_the_same_actions_and_is_well_formed() {
    if !possible() {
        return;
    }
    thread::scope(|scope| {
        for mechanism in
            ["\"m-tcp-plus\"", "\"m-tcp\"", "\"holdover\"", "\"packet-control\"\nthreshold = 6"]
        {
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let file = folder.path().join("recording.pcapng");
                record(mechanism, &file);
                expect_same_actions(mechanism, &file);
                expect_well_formed(mechanism, &file);
            });
        }
    });
}

/// Records a download with an outage.
fn record(mechanism: &str, file: &Path) {
    let bed =
        Testbed::new(&Plan { config: format!("record = {file:?}\n"), ..Plan::with(mechanism) });
    let transfer = bed.download(&Load::of(SIZE));
    transfer.wait_for(SIZE / 2);
    let begin = Instant::now() + Duration::from_millis(200);
    outage(&bed, begin, Duration::from_secs(3), Told::Timely, || {});
    assert_eq!(transfer.finish(), SIZE, "{mechanism}");
    // The gateway ends with its testbed, and the recording with the gateway.
    drop(bed);
}

pub(crate) fn expect_same_actions(mechanism: &str, file: &Path) {
    let replay = Command::new(env!("CARGO_BIN_EXE_airtcp")).arg("replay").arg(file).output();
    let replay = replay.unwrap();
    let told = [replay.stdout, replay.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(replay.status.success(), "{mechanism}: {}", told.concat());
}

fn expect_well_formed(mechanism: &str, file: &Path) {
    let name = mechanism.split('"').nth(1).unwrap();
    let bytes = std::fs::read(file).unwrap();
    // Packets whose checksum is offloaded do not have it yet when they are recorded.
    let arguments = ["-o", "tcp.check_checksum:FALSE", "-q", "-z", "expert"];
    let Some(report) = capture::tshark(name, &bytes, &arguments) else { return };
    // Every connection begins so.
    assert!(report.contains("Connection establish request"), "{mechanism}: no report:\n{report}");
    for fault in ["Malformed", "Errors"] {
        assert!(!report.contains(fault), "{mechanism}: {fault} in\n{report}");
    }
}
