//! What is read from a file that was cut off, damaged, or is not ours.

use crate::{GROUP, Gateway, flow};
use airtcp_core::{Instant, LinkSignal};
use airtcp_edge::m_tcp_plus::{Note, Snapshot};
use airtcp_edge::{Call, Input, Side};
use airtcp_live::gateway::ledger::{
    HEAD, Ledger, Saved, Skipped, read, write_record, write_snapshot,
};
use airtcp_live::gateway::payload::SharedBytes;
use std::fs;
use tempfile::tempdir;

const BOOT: &str = "this boot";

/// A file of a snapshot and some inputs; and after each record, its length and what it says.
fn file() -> (Vec<u8>, Vec<(usize, Snapshot<SharedBytes>)>) {
    let dir = tempdir().unwrap();
    let mut gateway = Gateway::start(dir.path(), 1 << 30);
    gateway.underway(0);
    gateway.signal(LinkSignal::Down);
    gateway.node.keep_journal();
    let Some(Note::Committed(_, mut snapshot)) = gateway.node.drain_journal().next() else {
        panic!("it is committed");
    };
    let mut file = Vec::new();
    write_snapshot(&mut file, BOOT, GROUP, &flow(0), &snapshot).unwrap();
    let mut moments = vec![(file.len(), (*snapshot).clone())];
    let calls = [
        Call::Segment(Side::Fixed, crate::fixed(0, 3000, 300)),
        Call::Timer,
        Call::Link(LinkSignal::Fading),
        Call::Segment(Side::Mobile, crate::mobile(0, 1000)),
    ];
    for (second, call) in calls.into_iter().enumerate() {
        let now = Instant::from_secs(1001 + second as u64);
        let input = Input { now, room: 1 << 20, interrupted: 1, call };
        write_record(&mut file, &input).unwrap();
        snapshot.apply(input);
        moments.push((file.len(), (*snapshot).clone()));
    }
    (file, moments)
}

#[test]
fn a_file_cut_off_anywhere_says_what_its_last_whole_record_said() {
    let (file, moments) = file();
    for cut in 0..=file.len() {
        let read = read(&file[..cut], BOOT);
        match moments.iter().rfind(|(len, _)| *len <= cut) {
            Some((len, snapshot)) => {
                let (Saved { group, flow: key, snapshot: found }, end) = read.unwrap();
                assert_eq!((group.as_str(), key, &found, end), (GROUP, flow(0), snapshot, *len));
            }
            None => assert!(read.is_err(), "a snapshot is written whole or not at all"),
        }
    }
}

#[test]
fn a_file_with_any_byte_changed_is_refused() {
    let (mut file, _) = file();
    for at in 0..file.len() {
        for change in [0x01, 0x80, 0xff] {
            file[at] ^= change;
            let read = read(&file, BOOT);
            assert!(read.is_err(), "byte {at} changed by {change}: {read:?}");
            file[at] ^= change;
        }
    }
    assert!(read(&file, BOOT).is_ok());
}

#[test]
fn a_file_of_another_boot_or_version_is_refused() {
    let (mut file, _) = file();
    assert!(matches!(read(&file, "another boot"), Err(Skipped::OtherBoot)));
    file[HEAD.len() - 4] += 1;
    assert!(matches!(read(&file, BOOT), Err(Skipped::OtherVersion)));
}

#[test]
fn files_that_cannot_be_used_are_told_and_left_alone() {
    let dir = tempdir().unwrap();
    let mut gateway = Gateway::start(dir.path(), 1 << 30);
    for n in 0..3 {
        gateway.underway(n);
    }
    gateway.signal(LinkSignal::Down);
    drop(gateway);
    let path = |n| dir.path().join(format!("{}_{}.flow", flow(n).src, flow(n).dst));
    // One damaged, one under another's name, one of somebody else; and a snapshot that was never
    // finished.
    let mut damaged = fs::read(path(0)).unwrap();
    damaged[100] ^= 1;
    fs::write(path(0), damaged).unwrap();
    fs::rename(path(1), path(7)).unwrap();
    fs::write(dir.path().join("notes.txt"), "milk, bread").unwrap();
    fs::create_dir(dir.path().join("folder.flow")).unwrap();
    fs::write(dir.path().join("10.0.0.1:1_10.0.0.3:2.flow.new"), [0; 100]).unwrap();

    let mut ledger = Ledger::open(dir.path(), airtcp_core::Bytes(1 << 30)).unwrap();
    let loaded = ledger.load().unwrap();
    let flows: Vec<_> = loaded.connections.iter().map(|saved| saved.flow).collect();
    assert_eq!((flows, ledger.len()), (vec![flow(2)], 1));
    let skipped: Vec<_> = loaded
        .skipped
        .iter()
        .map(|(path, why)| (path.file_name().unwrap().to_str().unwrap(), why.to_string()))
        .collect();
    assert_eq!(
        skipped,
        [
            ("10.0.0.1:8000_10.0.0.3:5001.flow", "damaged: byte 12".to_owned()),
            ("10.0.0.1:8007_10.0.0.3:5001.flow", "not written by airtcp".to_owned()),
            ("folder.flow", "not written by airtcp".to_owned()),
        ]
    );
    assert_eq!(
        dir.path().read_dir().unwrap().count(),
        6,
        "all but the unfinished one, and the lock"
    );
}

#[test]
fn the_layout_has_not_changed_without_a_new_version() {
    let (file, _) = file();
    // A change here needs another version in `HEAD`: a gateway must not misread what an older one
    // promised.
    assert_eq!((HEAD[8], file.len(), crc32fast::hash(&file)), (5, 3682, 2_961_571_504));
}
