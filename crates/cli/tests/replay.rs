//! `airtcp replay` on files: what it prints, and its exit codes.

use airtcp_core::{Addr, Bytes, Duration, Flow, Instant, LinkSignal, Segment, SeqNum};
use airtcp_edge::{
    Actions, FlowTableConfig, MTcpPlusConfig, Mechanism, MechanismConfig, Middlebox, MobileId, Side,
};
use airtcp_record::{Contents, Input, Setup, Writer};
use airtcp_wire::encode;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The recording of a connection that freezes once.
fn recording() -> Vec<u8> {
    let mechanism = MechanismConfig::MTcpPlus(MTcpPlusConfig::default());
    let (name, idle, memory) = ("phones".into(), Duration::from_secs(300), Bytes(1 << 20));
    let (flows, flows_per_mobile, uplink) = (10, 10, None);
    let setup = Setup { name, mechanism, flows, flows_per_mobile, uplink, idle, memory };
    let mut machine = Mechanism::new(&mechanism, FlowTableConfig::default(), memory).unwrap();
    let mut writer = Writer::new(Instant::ZERO, std::time::Duration::ZERO, Contents::Headers);
    writer.begin(Instant::ZERO, 0, &setup);
    let mut actions = Actions::new();

    let addr = |last, port| Addr::new(Ipv4Addr::new(10, 0, 0, last).into(), port);
    let flow = Flow { src: addr(1, 5001), dst: addr(2, 40_000) };
    for (from, flow, payload) in
        [(Side::Mobile, flow.reversed(), vec![]), (Side::Fixed, flow, vec![0; 100])]
    {
        let (seq, ack) = (SeqNum(1), Some(SeqNum(1)));
        let segment =
            Segment { flow, seq, ack, window: 500, payload, ..Segment::<Vec<u8>>::default() };
        let mut packet = Vec::new();
        encode(&segment, &mut packet).unwrap();
        machine.on_segment(Instant::ZERO, from, segment, &mut actions);
        let input = Input::Segment { from, segment: &packet[..] };
        writer.step(Instant::ZERO, 0, &input, actions.as_slice());
        actions.drain().for_each(drop);
    }

    let (mobile, signal) = (MobileId::Host(flow.dst.ip), LinkSignal::Down);
    machine.on_link(Instant::from_secs(1), mobile, signal, &mut actions);
    let input = Input::Signal { mobile, signal };
    writer.step(Instant::from_secs(1), 0, &input, actions.as_slice());
    assert!(!actions.as_slice().is_empty(), "the fixed host is frozen");
    writer.take()
}

/// A file that is deleted when the test ends.
struct TestFile(PathBuf);

impl TestFile {
    fn new(test: &str, contents: &[u8]) -> Self {
        let name = format!("airtcp-{}-{test}.pcapng", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, contents).unwrap();
        Self(path)
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs `airtcp replay FILE` with more arguments.
fn airtcp_replay(file: &Path, arguments: &[&str]) -> Output {
    let airtcp = env!("CARGO_BIN_EXE_airtcp");
    Command::new(airtcp).arg("replay").arg(file).args(arguments).output().unwrap()
}

/// Standard error without the note of a debug build.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    text.lines().filter(|line| !line.contains("debug build")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_recording_gives_the_same_actions() {
    let file = TestFile::new("same", &recording());
    let output = airtcp_replay(&file.0, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "the same actions:\n  phones, m-tcp-plus: 2 segments, 1 signal, 0 timers, 4 actions\n"
    );
    let output = airtcp_replay(&file.0, &["--json"]);
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&line["group"], &line["signals"]), (&"phones".into(), &1.into()));
}

#[test]
fn the_first_difference_is_shown_and_is_a_failure() {
    let mut changed = recording();
    let text = b"AIRTCP_SIGNAL=down";
    let at = changed.windows(text.len()).position(|w| w == text).unwrap();
    changed[at..at + text.len()].copy_from_slice(b"AIRTCP_SIGNAL=up\n\n");
    let file = TestFile::new("different", &changed);
    let output = airtcp_replay(&file.0, &[]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = complaint(&output);
    let start = format!(
        "airtcp: {}: block 10: group \"phones\", m-tcp-plus: the actions differ\n\
         1.000000000 < the link to 10.0.0.2 is up\nrecorded: inject to fixed host: ",
        file.0.display()
    );
    assert!(complaint.starts_with(&start), "{complaint}");
    assert!(complaint.ends_with("\nreplayed: nothing more"), "{complaint}");
}

#[test]
fn a_file_that_is_cut_off_or_missing_is_bad_input() {
    let whole = recording();
    let file = TestFile::new("cut", &whole[..whole.len() - 5]);
    let output = airtcp_replay(&file.0, &[]);
    assert_eq!(output.status.code(), Some(2));
    let expected =
        format!("airtcp: {}: block 12: the file ends within this block", file.0.display());
    assert_eq!(complaint(&output), expected);

    let output = airtcp_replay(Path::new("no such file"), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).starts_with("airtcp: no such file: "), "{}", complaint(&output));
}
