//! `airtcp run --pcap`, and what other programs read in the captures.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The flow of the quickstart downloads 5 MB.
const SEGMENTS: u64 = 5_000_000_u64.div_ceil(1448);

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn run(scenario: &Path, arguments: &[&str]) -> Output {
    let mut airtcp = Command::new(env!("CARGO_BIN_EXE_airtcp"));
    airtcp.arg("run").arg(scenario).args(arguments).output().expect("airtcp starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn files(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| name(e).into_string().unwrap()).collect();
    names.sort();
    names
}

/// Output of a program; `None` (and a note) if it is missing.
fn read_with(program: &str, arguments: &[&str], file: &Path) -> Option<String> {
    match Command::new(program).args(arguments).arg(file).output() {
        Ok(output) => {
            assert!(output.status.success(), "{program}: {}", text(&output.stderr));
            Some(text(&output.stdout))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            airtcp_testing::skip(program);
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

/// The number of retransmissions at the sender, by the run's metrics; and its captures in `folder`.
fn quickstart(folder: &Path) -> u64 {
    let captures = folder.to_str().unwrap();
    let output = run(&example("quickstart.toml"), &["--json", "--pcap", captures]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let metrics: Value = serde_json::from_slice(&output.stdout).unwrap();
    let retransmitted = metrics["flows"][0]["data_segments_sent"].as_u64().unwrap() - SEGMENTS;
    assert!(retransmitted > 0);
    retransmitted
}

#[test]
fn each_interface_has_a_file_that_other_programs_read() {
    let folder = tempfile::tempdir().unwrap();
    let captures = folder.path().join("captures");
    let retransmitted = quickstart(&captures);
    let all = ["AP.phone.pcapng", "AP.server.pcapng", "phone.pcapng", "server.pcapng"];
    assert_eq!(files(&captures), all);
    for file in all {
        let file = captures.join(file);
        let Some(packets) = read_with("tcpdump", &["-nt", "-r"], &file) else { break };
        assert!(packets.lines().next().unwrap().contains("Flags [S"), "{packets}");
        assert!(packets.lines().count() > 5000);
    }
    let server = captures.join("server.pcapng");
    // Those that follow soon after other data have the other name.
    let sent_twice = "tcp.analysis.retransmission || tcp.analysis.out_of_order";
    if let Some(found) = read_with("tshark", &["-n", "-Y", sent_twice, "-r"], &server) {
        assert_eq!(found.lines().count() as u64, retransmitted);
    }
    if let Some(report) = read_with("tcptrace", &["-l", "-n"], &server) {
        let value = |name: &str| {
            let line = report.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
            line.split_whitespace().find_map(|word| word.parse::<u64>().ok()).unwrap()
        };
        assert!(report.contains("1 TCP connection traced"), "{report}");
        assert_eq!(value("unique bytes sent:"), 5_000_000);
        assert_eq!(value("rexmt data pkts:"), retransmitted);
    }
}

/// The Python for which Debian's package of scapy is.
const PYTHON: &str = "/usr/bin/python3";

#[test]
fn scapy_reads_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    let script = "import sys\n\
                  from scapy.all import IP, TCP, rdpcap\n\
                  packets = rdpcap(sys.argv[1])\n\
                  print(sum(len(p[TCP].payload) for p in packets if p[IP].src == '10.0.0.1'))";
    let python = Command::new(PYTHON).args(["-c", "import scapy.all"]).output();
    if !python.is_ok_and(|output| output.status.success()) {
        return airtcp_testing::skip("scapy");
    }
    let captures = folder.path().join("captures");
    quickstart(&captures);
    let bytes = read_with(PYTHON, &["-c", script], &captures.join("phone.pcapng")).unwrap();
    assert_eq!(bytes.trim(), "5000000");
}

#[test]
fn only_the_chosen_nodes_are_captured_and_only_the_chosen_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let captures = folder.path().join("captures");
    let captures_name = captures.to_str().unwrap();
    let arguments = ["--pcap", captures_name, "--pcap-node", "AP", "--snaplen", "96"];
    let output = run(&example("quickstart.toml"), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(files(&captures), ["AP.phone.pcapng", "AP.server.pcapng"]);
    // About 5500 packets, most of them of 1500 bytes.
    assert!(std::fs::metadata(captures.join("AP.phone.pcapng")).unwrap().len() < 1_000_000);
}

#[test]
fn files_replace_those_of_the_same_names_and_mix_with_no_others() {
    for (option, ending) in [("--pcap", "pcapng"), ("--link-logs", "log")] {
        let folder = tempfile::tempdir().unwrap();
        let captures = folder.path().join("captures");
        let quickstart = example("quickstart.toml");
        let short = ["--set", "duration=1 s", option, captures.to_str().unwrap()];
        for seed in ["1", "2"] {
            let output = run(&quickstart, &[&short[..], &["--seed", seed]].concat());
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        }
        assert_eq!(files(&captures).len(), 4);
        assert_eq!(files(folder.path()), ["captures"]);
        let other = run(&example("spike.toml"), &short);
        assert_eq!(other.status.code(), Some(2));
        let message = format!(".{ending}, which this run would not replace");
        assert!(text(&other.stderr).contains(&message), "{}", text(&other.stderr));
        assert_eq!(files(&captures).len(), 4);
    }
}

#[test]
fn what_cannot_be_captured_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let captures = folder.path().join("captures");
    let captures = captures.to_str().unwrap();
    for (arguments, message) in [
        (
            &["--pcap", captures, "--pcap-node", "phon"][..],
            "no node \"phon\"; did you mean \"phone\"?",
        ),
        (&["--pcap", "spike.pcapng"], "expected a folder"),
        (&["--link-logs", "spike.log"], "expected a folder"),
        (&["--pcap-node", "AP"], "--pcap"),
        (&["--pcap", captures, "--snaplen", "0"], "from 1 to 262144"),
    ] {
        let output = run(&example("quickstart.toml"), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    }
    let output = run(&example("manet.toml"), &["--link-logs", captures]);
    assert_eq!(output.status.code(), Some(2));
    let message = "--link-logs: has no effect: the scenario has no links";
    assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    assert_eq!(files(folder.path()), [""; 0]);
}

#[cfg(unix)]
#[test]
fn a_run_may_have_more_files_than_the_soft_limit_allows() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("many.toml");
    let many = "duration = \"1 s\"\n[[node]]\nname = \"BS\"\n[[node]]\nname = \"phone\"\ncount = 60\n\
                [[link]]\nbetween = [\"BS\", \"phone\"]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n\
                [[udp]]\nfrom = \"BS\"\nto = \"phone0\"\nrate = \"8 kbit/s\"\n";
    std::fs::write(&scenario, many).unwrap();
    for (option, count) in [("--link-logs", 120), ("--pcap", 120)] {
        let out = folder.path().join(option);
        let command = "ulimit -Sn 40 && exec \"$0\" \"$@\"";
        let mut limited = Command::new("sh");
        limited.args(["-c", command, env!("CARGO_BIN_EXE_airtcp"), "run"]);
        let output = limited.arg(&scenario).arg(option).arg(&out).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(files(&out).len(), count, "{option}");
    }
}
