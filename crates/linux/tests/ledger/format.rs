//! Reading files that are truncated, damaged, of another version, or of another program.

use crate::{GROUP, Gateway, flow};
use airtcp_core::{Instant, LinkSignal};
use airtcp_edge::{Call, Input, MechanismNote, MechanismSnapshot, Side};
use airtcp_gateway::ledger::format::{
    Entry, HEAD, Known, Log, NewEntry, Unreadable, write_head, write_record,
};
use airtcp_gateway::packets::SharedBytes;
use airtcp_linux::daemon::ledger::{Ledger, Loaded};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tempfile::tempdir;

const BOOT: &str = "this boot";

/// A log of a snapshot and some inputs; and after each record, its length and what it says.
fn file() -> (Vec<u8>, Vec<(usize, Known)>) {
    let dir = tempdir().unwrap();
    let mut gateway = Gateway::start(dir.path(), 1 << 30);
    gateway.underway(0);
    gateway.signal(LinkSignal::Down);
    gateway.node.keep_journal();
    let Some(MechanismNote::Snapshot(_, mut snapshot)) = gateway.node.drain_journal().next() else {
        panic!("it is interrupted");
    };
    let mut file = Vec::new();
    write_head(&mut file, BOOT);
    let entry: NewEntry<'_> = Entry::Snapshot(flow(0), GROUP, &snapshot);
    write_record(&mut file, &entry).unwrap();
    let known = |snapshot: &MechanismSnapshot<SharedBytes>, inputs| {
        let (group, snapshot) = (GROUP.to_owned(), Box::new(snapshot.clone()));
        Known::Whole { group, snapshot, inputs }
    };
    let mut moments = vec![(file.len(), known(&snapshot, 0))];
    let calls = [
        Call::Segment(Side::Fixed, crate::fixed(0, 3000, 300)),
        Call::Timer,
        Call::Link(LinkSignal::Fading),
        Call::Segment(Side::Mobile, crate::mobile(0, 1000)),
    ];
    for (number, call) in (1..).zip(calls) {
        let now = Instant::from_secs(1000 + u64::from(number));
        let input = Input { now, room: 1 << 20, waiting: 0, call };
        write_record(&mut file, &NewEntry::Input(flow(0), number, &input)).unwrap();
        snapshot.apply(input);
        moments.push((file.len(), known(&snapshot, number)));
    }
    (file, moments)
}

/// The connection's state in a log, and the error if not all of it could be read.
fn read(file: &[u8]) -> Result<(Option<Known>, Result<(), Unreadable>), Unreadable> {
    let log = Log::open(file)?;
    assert!(log.boot.is_empty() || log.boot == BOOT, "{:?}", log.boot);
    let mut known = BTreeMap::new();
    let read = log.read(&mut known);
    Ok((known.remove(&flow(0)).filter(|_| !log.boot.is_empty()), read))
}

#[test]
fn a_log_cut_off_anywhere_says_what_its_last_whole_record_said() {
    let (file, moments) = file();
    for cut in HEAD.len()..=file.len() {
        let (known, read) = read(&file[..cut]).unwrap();
        let last = moments.iter().rfind(|(len, _)| *len <= cut).map(|(_, known)| known);
        assert_eq!(known.as_ref(), last);
        assert!(read.is_ok(), "{read:?}");
    }
}

#[test]
fn a_connection_is_lost_when_any_byte_about_it_has_changed() {
    let (mut file, _) = file();
    for at in 0..file.len() {
        for change in [0x01, 0x80, 0xff] {
            file[at] ^= change;
            if let Ok((known, read)) = read(&file) {
                assert!(read.is_err(), "byte {at} changed by {change}");
                assert!(known.is_none_or(|known| known == Known::Lost), "byte {at} by {change}");
            }
            file[at] ^= change;
        }
    }
    assert!(matches!(read(&file), Ok((Some(Known::Whole { .. }), Ok(())))));
}

#[test]
fn behind_damage_what_is_whole_counts() {
    let (mut file, moments) = file();
    let (start, end) = (moments[0].0, moments[1].0);
    file[start + 20] ^= 1;
    let Known::Whole { snapshot, .. } = &moments[3].1 else { panic!("it is whole") };
    let entry: NewEntry<'_> = Entry::Snapshot(flow(0), GROUP, snapshot);
    write_record(&mut file, &entry).unwrap();
    let (known, read) = read(&file).unwrap();
    assert!(matches!(read, Err(Unreadable::Damaged(at)) if at == start), "{read:?} {start}..{end}");
    let Some(Known::Whole { snapshot: found, inputs: 0, .. }) = known else { panic!("{known:?}") };
    assert_eq!(&found, snapshot);
}

#[test]
fn a_log_of_another_version_or_program_is_refused() {
    let (mut file, _) = file();
    file[HEAD.len() - 4] += 1;
    assert!(matches!(Log::open(&file), Err(Unreadable::OtherVersion)));
    file[0] += 1;
    assert!(matches!(Log::open(&file), Err(Unreadable::Foreign)));
}

/// A gateway that froze some connections and was killed; its log.
fn killed(dir: &Path, connections: u16) -> std::path::PathBuf {
    let mut gateway = Gateway::start(dir, 1 << 30);
    (0..connections).for_each(|n| gateway.underway(n));
    gateway.signal(LinkSignal::Down);
    dir.join("0.log")
}

fn load(dir: &Path) -> (Ledger, Loaded) {
    let mut ledger = Ledger::open(dir, airtcp_core::Bytes(1 << 30)).unwrap();
    let loaded = ledger.load().unwrap();
    (ledger, loaded)
}

#[test]
fn damaged_connections_are_told_and_stay_on_file_until_they_are_released() {
    let dir = tempdir().unwrap();
    let path = killed(dir.path(), 3);
    let mut log = fs::read(&path).unwrap();
    // The payload of the last connection's copies.
    let end = log.len();
    log[end - 100] ^= 1;
    fs::write(&path, log).unwrap();
    for _ in 0..2 {
        let (_, loaded) = load(dir.path());
        let refused: Vec<_> = loaded.refused.iter().map(|refused| refused.flow).collect();
        assert_eq!(loaded.connections.len() + refused.len(), 2, "{refused:?}");
        assert!(
            matches!(&loaded.unreadable[..], [(told, Unreadable::Damaged(_))] if *told == path)
        );
    }
}

#[test]
fn a_log_of_another_boot_is_told_with_what_resets_its_connections() {
    let dir = tempdir().unwrap();
    let (log, _) = file();
    fs::write(dir.path().join("7.log"), log).unwrap();
    let (mut ledger, loaded) = load(dir.path());
    let [refused] = &loaded.refused[..] else { panic!("{loaded:?}") };
    assert_eq!((refused.flow, ledger.len()), (flow(0), 1));
    assert!(refused.why.contains("before the machine was started"));
    assert!(refused.resets.is_some());
    ledger.write("", &[MechanismNote::Released(flow(0))]).unwrap();
    ledger.settle().unwrap();
    assert_eq!(dir.path().read_dir().unwrap().count(), 1, "the lock");
}

#[test]
fn files_of_others_are_left_alone() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("notes.txt"), "milk, bread").unwrap();
    fs::create_dir(dir.path().join("2.log")).unwrap();
    let mut newer = HEAD;
    newer[8] += 1;
    fs::write(dir.path().join("3.log"), newer).unwrap();
    fs::write(dir.path().join("4.log"), "a diary, a long one").unwrap();
    fs::write(dir.path().join("5.log"), "").unwrap();
    let (mut ledger, loaded) = load(dir.path());
    let why: Vec<_> = loaded.unreadable.iter().map(|(_, why)| why.to_string()).collect();
    assert_eq!(
        why,
        [
            "Is a directory (os error 21)",
            "written by another version of airtcp",
            "not written by airtcp"
        ]
    );
    ledger.settle().unwrap();
    assert_eq!(dir.path().read_dir().unwrap().count(), 5, "the lock, and not what is empty");
}

#[test]
fn the_layout_has_not_changed_without_a_new_version() {
    let (file, _) = file();
    // A change here needs another version in `HEAD`: a gateway must not misread what an older one
    // promised.
    assert_eq!((HEAD[8], file.len(), crc32fast::hash(&file)), (10, 3778, 3_216_021_815));
}
