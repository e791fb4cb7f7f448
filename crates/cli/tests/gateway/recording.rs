//! What a gateway recorded of live traffic, run again as the simulator runs it.

use crate::outages::{Told, outage};
use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::Load;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const SIZE: u64 = 2_000_000;

#[test]
fn a_recording_replays_with_the_same_actions() {
    if !possible() {
        return;
    }
    thread::scope(|scope| {
        for mechanism in
            ["\"m-tcp-plus\"", "\"m-tcp\"", "\"holdover\"", "\"packet-control\"\nthreshold = 6"]
        {
            scope.spawn(move || replays(mechanism));
        }
    });
}

fn replays(mechanism: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording.pcapng");
    let bed =
        Testbed::new(&Plan { config: format!("record = {file:?}\n"), ..Plan::with(mechanism) });
    let transfer = bed.download(&Load::of(SIZE));
    transfer.wait_for(SIZE / 2);
    let begin = Instant::now() + Duration::from_millis(200);
    outage(&bed, begin, Duration::from_secs(3), Told::Timely, || {});
    assert_eq!(transfer.finish(), SIZE, "{mechanism}");
    // The gateway ends with its testbed, and the recording with the gateway.
    drop(bed);
    let replay = Command::new(env!("CARGO_BIN_EXE_airtcp")).arg("replay").arg(&file).output();
    let replay = replay.unwrap();
    let told = [replay.stdout, replay.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(replay.status.success(), "{mechanism}: {}", told.concat());
}
