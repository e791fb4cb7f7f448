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
        (&["--pcap", captures, "--pcap-monitor"], "--pcap-monitor: the scenario has no [[wlan]]"),
        (&["--pcap-monitor"], "--pcap"),
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

/// The capture of a sniffer in a folder.
fn sniffed(captures: &Path) -> PathBuf {
    let name = files(captures).into_iter().find(|name| name.starts_with('@'));
    captures.join(name.expect("a sniffer's capture"))
}

/// Runs an example with a cell; the rows that tshark makes of the sniffer's capture,
/// with these fields, and the stations' metrics. `None` without tshark.
fn sniff(name: &str, settings: &[&str], fields: &[&str]) -> Option<(Vec<Vec<String>>, Value)> {
    let folder = tempfile::tempdir().unwrap();
    let captures = folder.path().join("captures");
    let mut arguments = vec!["--json", "--pcap", captures.to_str().unwrap(), "--pcap-monitor"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let output = run(&example(name), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut metrics: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut options = vec!["-n", "-o", "wlan.check_checksum:TRUE", "-T", "fields"];
    fields.iter().for_each(|field| options.extend(["-e", field]));
    options.push("-r");
    let shown = read_with("tshark", &options, &sniffed(&captures))?;
    let row = |line: &str| line.split('\t').map(str::to_owned).collect();
    Some((shown.lines().map(row).collect(), metrics["stations"].take()))
}

/// The sum of a metric over the stations.
fn total(stations: &Value, metric: &str) -> usize {
    let stations = stations.as_array().unwrap();
    stations.iter().map(|station| station[metric].as_u64().unwrap() as usize).sum()
}

const RTS: &str = "0x001b";
const CTS: &str = "0x001c";
const ACK: &str = "0x001d";
const BLOCK_ACK: &str = "0x0019";
const DATA: &str = "0x0020";
const QOS_DATA: &str = "0x0028";

#[test]
fn a_sniffer_hears_what_the_stations_count() {
    let fields = ["wlan.fc.type_subtype", "wlan.fcs.status", "_ws.malformed", "wlan.da"];
    for (name, duration, data) in [
        ("wlan.toml", "duration=6 s", DATA),
        ("wifi6.toml", "duration=300 ms", QOS_DATA),
        ("manet.toml", "duration=5 s", DATA),
    ] {
        let Some((rows, stations)) = sniff(name, &[duration], &fields) else { return };
        let bad = rows.iter().find(|row| row[1] != "1" || !row[2].is_empty());
        assert_eq!(bad, None, "{name}");
        let count = |kind: &str, to_all: bool| {
            let all = |row: &&Vec<String>| (row[3] == "ff:ff:ff:ff:ff:ff") == to_all;
            rows.iter().filter(|row| row[0] == kind).filter(all).count()
        };
        let counted = |metric| total(&stations, metric);
        assert!(count(data, false) > 500, "{name}: {}", count(data, false));
        assert_eq!(count(data, false), counted("data_frames_sent"), "{name}");
        assert_eq!(count(data, true), counted("broadcasts_sent"), "{name}");
        assert_eq!(count(RTS, false), counted("rts_sent"), "{name}");
        assert_eq!(count(CTS, false), counted("cts_sent"), "{name}");
        let acks = count(ACK, false) + count(BLOCK_ACK, false);
        assert_eq!(acks, counted("ack_frames_sent"), "{name}");
    }
}

/// Wireshark computes the time on the air from what Radiotap says of rate and preamble. (4.0 is a
/// symbol off at 40 MHz, and further with 802.11ac.)
#[test]
fn an_acknowledgement_follows_when_wireshark_takes_the_frame_to_end() {
    let fields =
        ["frame.time_epoch", "wlan.fc.type_subtype", "wlan_radio.duration", "wlan_radio.data_rate"];
    let mimo = |preset| [format!("wlan.cell.preset={preset}"), "wlan.cell.ampdu-limit=0 B".into()];
    let legacy = |preset| vec![format!("wlan.cell.preset={preset}")];
    for (settings, rate, sifs) in [
        (legacy("ieee80211a"), "54", 16.0),
        // With the signal extension of 6 us, which Wireshark leaves out.
        (legacy("ieee80211g"), "54", 16.0),
        (mimo("ieee80211n").to_vec(), "65", 16.0),
        ([&mimo("ieee80211n")[..], &["wlan.cell.streams=2".into()]].concat(), "130", 16.0),
    ] {
        let mut settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        settings.push("duration=200 ms");
        let Some((rows, _)) = sniff("wifi6.toml", &settings, &fields) else { return };
        let mut compared = 0;
        for pair in rows.windows(2) {
            if !pair[0][1].starts_with("0x002") || pair[1][1] != ACK {
                continue;
            }
            let micros = |row: &[String]| row[0].parse::<f64>().unwrap() * 1e6;
            let expected = pair[0][2].parse::<f64>().unwrap() + sifs;
            let apart = micros(&pair[1]) - micros(&pair[0]);
            // Propagation over 5 to 11 m.
            assert!((0.0..0.05).contains(&(apart - expected)), "{settings:?}: {pair:?}");
            assert_eq!(pair[0][3], rate, "{settings:?}");
            compared += 1;
        }
        assert!(compared > 50, "{settings:?}: {compared}");
    }
}

#[test]
fn mpdus_and_the_answer_to_them_are_told_apart() {
    let fields = [
        "wlan.fc.type_subtype",
        "radiotap.ampdu.reference",
        "wlan.seq",
        "wlan.fixed.ssc.sequence",
        "wlan_radio.data_rate",
        "wlan.fc.retry",
        "wlan.ba.bm",
    ];
    let Some((rows, stations)) = sniff("wifi6.toml", &["duration=500 ms"], &fields) else { return };
    let mut ampdu: Vec<&Vec<String>> = Vec::new();
    let (mut answered, mut retries) = (0, 0);
    for row in &rows {
        match row[0].as_str() {
            QOS_DATA => {
                assert_eq!(row[4], "600.5");
                retries += usize::from(row[5] == "1" || row[5] == "True");
                ampdu.retain(|mpdu| mpdu[1] == row[1]);
                ampdu.push(row);
            }
            BLOCK_ACK => {
                // It begins with the first MPDU, and some have arrived.
                assert!(ampdu.len() > 1);
                assert_eq!(row[3], ampdu[0][2]);
                assert!(row[6].bytes().any(|digit| digit != b'0'), "{row:?}");
                answered += 1;
            }
            _ => {}
        }
    }
    assert!(answered > 100, "{answered}");
    assert!(retries > 0 && retries <= total(&stations, "retries"), "{retries}");
}

/// The TID in QoS Control, also of block ACKs, and the DSCP in the IP header of the same packet: EF has
/// the user priority 6.
#[test]
fn frames_have_the_tid_of_their_packets_dscp() {
    let fields =
        ["wlan.fc.type_subtype", "wlan.qos.priority", "ip.dsfield.dscp", "wlan.ba.control"];
    let settings = ["duration=1 s", "flow.upload.dscp=CS1"];
    let Some((rows, _)) = sniff("voice.toml", &settings, &fields) else { return };
    let mut data: Vec<(&str, &str)> = rows
        .iter()
        .filter(|row| row[0] == QOS_DATA && !row[2].is_empty())
        .map(|row| (row[1].as_str(), row[2].as_str()))
        .collect();
    data.sort_unstable();
    data.dedup();
    // Downloads and all ACKs, the upload, and the calls.
    assert_eq!(data, [("0", "0"), ("1", "8"), ("6", "46")]);
    // The upper four bits of BA Control.
    let tid =
        |row: &Vec<String>| u16::from_str_radix(row[3].trim_start_matches("0x"), 16).unwrap() >> 12;
    let blocks: Vec<u16> = rows.iter().filter(|row| row[0] == BLOCK_ACK).map(tid).collect();
    assert!([0, 1].iter().all(|tid| blocks.contains(tid)), "{blocks:?}");
    assert!(blocks.iter().all(|tid| [0, 1, 6].contains(tid)), "{blocks:?}");
}

/// The A-MSDU bit of QoS Control, and subframes that Wireshark takes apart: of each packet its IP
/// header.
#[test]
fn packets_of_an_a_msdu_are_told_apart() {
    let fields = [
        "wlan.fc.type_subtype",
        "wlan.qos.amsdupresent",
        "wlan_aggregate.a_mdsu.length",
        "ip.len",
        "wlan.fcs.status",
        "_ws.malformed",
        "wlan.fc.retry",
    ];
    for (preset, ampdu, amsdu) in [
        ("ieee80211n", "0 B", "7935 B"),
        ("ieee80211n", "32768 B", "3839 B"),
        ("ieee80211ax", "65535 B", "11454 B"),
    ] {
        let settings = [
            format!("wlan.cell.preset={preset}"),
            format!("wlan.cell.ampdu-limit={ampdu}"),
            format!("wlan.cell.amsdu-limit={amsdu}"),
            "duration=300 ms".into(),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let Some((rows, stations)) = sniff("wifi6.toml", &settings, &fields) else { return };
        let data: Vec<_> = rows.iter().filter(|row| row[0] == QOS_DATA).collect();
        let counted = data.len();
        assert_eq!(counted, total(&stations, "data_frames_sent"), "{settings:?}");
        let mut several = 0;
        for row in data {
            assert!(row[5].is_empty(), "{settings:?}: {row:?}");
            if row[1] != "1" && row[1] != "True" {
                assert!(row[2].is_empty(), "{settings:?}: {row:?}");
                continue;
            }
            // Of packets that their receiver has already, the capture has no bytes.
            if row[3].is_empty() {
                assert!(row[6] == "1" || row[6] == "True", "{settings:?}: {row:?}");
                continue;
            }
            // LLC and SNAP have 8 B.
            let numbers = |of: &str| -> Vec<u32> {
                of.split(',').map(|n| n.parse().unwrap_or_else(|_| panic!("{row:?}"))).collect()
            };
            let lengths: Vec<_> = numbers(&row[3]).iter().map(|ip| ip + 8).collect();
            assert!(lengths.len() > 1 && row[4] == "1", "{settings:?}: {row:?}");
            assert_eq!(numbers(&row[2]), lengths, "{settings:?}");
            several += 1;
        }
        assert!(several > 100, "{settings:?}: {several}");
    }
}
