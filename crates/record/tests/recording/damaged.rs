//! Files that are not recordings or are damaged: an error that names the block, never a panic.

use crate::replayed::{m_tcp_plus, recording};
use airtcp_record::{Contents, replay};
use proptest::prelude::*;

fn file() -> Vec<u8> {
    recording(m_tcp_plus(), Contents::Headers).0
}

/// The error of reading a damaged file.
fn error(file: &[u8]) -> String {
    replay(file).expect_err("the file is damaged").to_string()
}

/// Offsets of the blocks.
fn blocks(file: &[u8]) -> Vec<usize> {
    let length = |at: usize| u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) as usize;
    let next = |at: &usize| Some(at + length(*at)).filter(|next| *next < file.len());
    std::iter::successors(Some(0), next).collect()
}

fn replaced(file: &[u8], old: &str, new: &str) -> Vec<u8> {
    let (old, new) = (old.as_bytes(), new.as_bytes());
    assert_eq!(old.len(), new.len());
    let at = file.windows(old.len()).position(|w| w == old).unwrap();
    let mut file = file.to_vec();
    file[at..at + old.len()].copy_from_slice(new);
    file
}

#[test]
fn a_file_that_ends_within_a_block_is_reported_with_the_block() {
    let file = file();
    let blocks = blocks(&file);
    for (n, &start) in (1..).zip(&blocks).skip(1) {
        for cut in [start + 1, start + 11, start + 12] {
            assert_eq!(error(&file[..cut]), format!("block {n}: the file ends within this block"));
        }
    }
    assert_eq!(error(&file[..10]), "block 1: the file ends within this block");
    assert_eq!(error(&[]), "block 1: the file ends within this block");
}

#[test]
fn a_file_that_ends_within_a_step_is_reported() {
    let file = file();
    // The sixth block is the first input; its action follows.
    let cut = blocks(&file)[6];
    assert_eq!(error(&file[..cut]), "block 6: the file ends before the actions of the last step");
}

#[test]
fn another_capture_is_not_a_recording() {
    let no_recording = "not a recording of airtcp gateway (which begins with two interfaces and a \
                        journal entry of airtcp)";
    assert_eq!(error(&file()[..blocks(&file())[3]]), format!("block 3: {no_recording}"));
    let message = error(b"# scenario\nname = \"dumbbell\"\n");
    assert!(message.starts_with("block 1: not pcapng: "), "{message}");
}

#[test]
fn another_version_is_refused() {
    assert_eq!(
        error(&replaced(&file(), "AIRTCP_VERSION=1", "AIRTCP_VERSION=2")),
        "block 4: format version 2; this airtcp reads version 1"
    );
}

#[test]
fn a_wrong_word_is_reported_with_what_was_expected() {
    for (old, new, expected) in [
        (
            "MECHANISM=m-tcp-plus",
            "MECHANISM=m-tcp-slow",
            "block 5: mechanism=m-tcp-slow: expected \"packet-control\", \"m-tcp\", \"m-tcp-plus\", \"holdover\", \
             \"snoop\" or \"wake\"",
        ),
        ("SIGNAL=fading", "SIGNAL=foggyy", "signal=foggyy: expected fading, down or up"),
        (
            "actions=inject,forward",
            "actions=inject,divert!",
            "actions=inject,divert!: expected such as 2*inject,drop",
        ),
        (
            "MOBILE=10.0.0.2",
            "MOBILE=10.0.0/2",
            "mobile=10.0.0/2: expected an IP address or an interface",
        ),
        ("AIRTCP_RESUME", "AIRTCP_RESUMI", "resume is missing"),
    ] {
        let message = error(&replaced(&file(), old, new));
        assert!(message.starts_with("block ") && message.ends_with(expected), "{message}");
    }
}

#[test]
fn a_missing_action_is_reported() {
    let message = error(&replaced(&file(), "group=0 action=inject", "group=0 action=object"));
    assert!(
        message.ends_with("expected the packet of action \"inject\" in the preceding step"),
        "{message}"
    );
}

#[test]
fn an_action_without_its_step_is_reported() {
    let mut file = file();
    let blocks = blocks(&file);
    file.drain(blocks[5]..blocks[6]);
    assert_eq!(error(&file), "block 6: an action without a step");
}

#[test]
fn two_recordings_in_one_file_are_refused() {
    let file = file();
    let twice = [file.clone(), file].concat();
    assert!(error(&twice).ends_with("another recording begins; replay takes one at a time"));
}

#[test]
fn blocks_of_other_programs_are_ignored() {
    let mut file = file();
    // Empty interface statistics and an empty custom block, where the first entry begins.
    let at = blocks(&file)[3];
    let block = |kind: u32| [kind.to_le_bytes(), 12u32.to_le_bytes(), 12u32.to_le_bytes()].concat();
    file.splice(at..at, [block(5), block(0xbad)].concat());
    replay(&file[..]).unwrap_or_else(|error| panic!("{error}"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damage_is_never_a_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = file();
        for (at, byte) in &flips {
            let at = at.index(file.len());
            file[at] ^= byte;
        }
        file.truncate(cut.index(file.len()) + 1);
        let _ = replay(&file[..]);
    }
}
