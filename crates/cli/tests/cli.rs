//! The command line from outside: exit codes, what goes to which stream, files, signals.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn airtcp() -> Command {
    Command::new(env!("CARGO_BIN_EXE_airtcp"))
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn run(arguments: &[&str]) -> Output {
    airtcp().arg("run").args(arguments).output().expect("airtcp starts")
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

/// A scenario that never ends by itself within a test.
fn endless(folder: &Path) -> PathBuf {
    let file = folder.join("endless.toml");
    let quickstart = std::fs::read_to_string(example("quickstart.toml")).unwrap();
    let text = quickstart.replace("bytes = \"5 MB\"", "").replace("\"60 s\"", "\"1000000000 s\"");
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_run_prints_a_table_and_nothing_else_on_standard_output() {
    let output = run(&[example("quickstart.toml").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let stdout = text(&output.stdout);
    let mut lines = stdout.lines();
    assert_eq!(lines.next(), Some("quickstart: 60 s, seed 1"));
    assert!(lines.next().unwrap().starts_with("flow"));
    assert!(lines.next().unwrap().starts_with("download"));
    assert_eq!(lines.next(), None);
    let note = "airtcp: this is a debug build and slow; for real runs: cargo build --release\n";
    assert_eq!(text(&output.stderr), if cfg!(debug_assertions) { note } else { "" });
}

#[test]
fn what_makes_numbers_doubtful_is_said_once_on_standard_error() {
    let dumbbell = example("dumbbell.toml");
    let short =
        ["--runs", "2", "--set", "duration=2 s", "--set", "link.s-R1.queue.limit=5 packets"];
    let output = run(&[&[dumbbell.to_str().unwrap()], &short[..]].concat());
    let stderr = text(&output.stderr);
    let warnings: Vec<&str> = stderr.lines().filter(|line| line.contains("overflowed")).collect();
    assert_eq!(warnings.len(), 1, "{stderr}");
    let told = "airtcp: link s0>R1, s2>R1 and 1 more: their queues overflowed";
    assert!(warnings[0].starts_with(told), "{stderr}");
}

#[test]
fn several_runs_are_summed_up_with_an_interval() {
    let quickstart = example("quickstart.toml");
    let output = run(&[quickstart.to_str().unwrap(), "--runs", "3", "--set", "duration=5 s"]);
    let stdout = text(&output.stdout);
    assert!(stdout.starts_with("quickstart: 5 s, 3 runs, mean ± 95 % confidence interval\n"));
    assert!(stdout.lines().nth(2).unwrap().contains(" ± "), "{stdout}");
}

#[test]
fn transfers_videos_calls_and_datagrams_have_tables() {
    let output = run(&[example("traffic.toml").to_str().unwrap(), "--set", "duration=5 s"]);
    let stdout = text(&output.stdout);
    let tables: Vec<Vec<&str>> = (stdout.split("\n\n"))
        .map(|table| table.lines().map(|line| line.split("  ").next().unwrap()).collect())
        .collect();
    assert_eq!(
        tables,
        [
            vec!["traffic: 5 s, seed 1", "flow", "api", "web", "film", "sensor"],
            vec!["fairness of the goodputs (Jain): 0.504"],
            vec!["transfers of", "api", "web"],
            vec!["video", "film"],
            vec!["call", "down", "up"],
            vec!["UDP", "down", "up"],
        ]
    );
}

#[test]
fn links_and_stations_have_tables_on_request() {
    let wlan = example("wlan.toml");
    let output = run(&[wlan.to_str().unwrap(), "--links", "--set", "duration=6 s"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let first_words: Vec<&str> =
        stdout.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(
        first_words[1..],
        [
            "flow",
            "ftp",
            "",
            "UDP",
            "noise",
            "",
            "link",
            "FH>AP",
            "AP>FH",
            "",
            "station",
            "cell/AP",
            "cell/MH",
            "cell/neighbour"
        ]
    );
}

#[test]
fn json_is_one_object_a_line_in_the_order_of_the_seeds() {
    let quickstart = example("quickstart.toml");
    let output =
        run(&[quickstart.to_str().unwrap(), "--json", "--runs", "5", "--seed", "7", "--jobs", "2"]);
    let runs: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seeds: Vec<u64> = runs.iter().map(|r| r["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [7, 8, 9, 10, 11]);
    assert_eq!(runs[0]["flows"][0]["delivered_bytes"], 5_000_000);
}

#[test]
fn a_bad_scenario_is_refused_with_its_place_and_exit_code_2() {
    let quickstart = example("quickstart.toml");
    let output = run(&[quickstart.to_str().unwrap(), "--set", "link.AP-phone.loss.q=1"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    let stderr = text(&output.stderr);
    let message = "--set:1:1: link.AP-phone.loss.q: unknown key (expected one of kind, p, good-to-bad, \
                   bad-to-good, loss-good, loss-bad, steps, file, packets, place)\n  |\n1 | link.AP-phone.loss.q=1\n  | \
                   ^^^^^^^^^^^^^^^^^^^^\n";
    assert!(stderr.ends_with(message), "{stderr}");
}

#[test]
fn a_scenario_that_cannot_be_read_and_bad_arguments_are_bad_input() {
    let missing = run(&["no-such-file.toml"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("airtcp: no-such-file.toml: "));
    let quickstart = example("quickstart.toml");
    let quickstart = quickstart.to_str().unwrap();
    for arguments in
        [&[quickstart, "--runs", "0"][..], &[quickstart, "--set", "x"], &["--frob"], &[]]
    {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_simulating() {
    let folder = tempfile::tempdir().unwrap();
    let endless = endless(folder.path());
    let endless = endless.to_str().unwrap();
    // A path below a file fails even for root, whom permissions do not stop.
    let below_a_file = format!("{endless}/out");
    for arguments in [
        &["--out", &below_a_file][..],
        &["--pcap", &below_a_file],
        &["--events", folder.path().to_str().unwrap()],
        &["--events", "/dev/null"],
        &["--animate", &below_a_file],
        &["--out", folder.path().to_str().unwrap(), "--events", "x", "--pcap", "x"],
    ] {
        let output = run(&[&[endless], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "");
        assert!(text(&output.stderr).contains("airtcp: "));
    }
    for option in ["--events", "--animate"] {
        let output = run(&[endless, option, "/nonexistent/x"]);
        let expected =
            format!("airtcp: {option}: /nonexistent/x: there is no folder /nonexistent\n");
        assert!(text(&output.stderr).ends_with(&expected), "{}", text(&output.stderr));
    }
    for option in ["--out", "--pcap", "--link-logs"] {
        let output = run(&[endless, option, &below_a_file]);
        let expected = format!("airtcp: {option}: cannot create the folder {endless}");
        assert!(text(&output.stderr).contains(&expected), "{}", text(&output.stderr));
    }
    assert_eq!(files(folder.path()), ["endless.toml"]);
}

#[test]
fn seeds_do_not_wrap_around() {
    let quickstart = example("quickstart.toml");
    let last = u64::MAX.to_string();
    let of = |seed: &str, runs: &str| {
        run(&[
            quickstart.to_str().unwrap(),
            "--set",
            "duration=1 s",
            "--seed",
            seed,
            "--runs",
            runs,
        ])
    };
    assert_eq!(of(&last, "1").status.code(), Some(0));
    let refused = of(&last, "3");
    assert_eq!(refused.status.code(), Some(2));
    let expected =
        "--seed: 18446744073709551615: expected at most 18446744073709551613 with --runs 3\n";
    assert!(text(&refused.stderr).ends_with(expected), "{}", text(&refused.stderr));
}

#[test]
fn a_run_without_tcp_has_no_table_of_tcp_flows() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("udp.toml");
    let nodes = "duration = \"1 s\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n";
    let rest = "[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
                [[udp]]\nfrom = \"a\"\nto = \"b\"\nrate = \"100 kbit/s\"\n";
    std::fs::write(&file, nodes.to_owned() + rest).unwrap();
    let output = run(&[file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let titles: Vec<&str> = stdout.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(titles, ["udp:", "UDP", "a-b"]);
}

#[test]
fn out_collects_metrics_and_the_files_of_every_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let spike = example("spike.toml");
    let output = run(&[
        spike.to_str().unwrap(),
        "--json",
        "--runs",
        "2",
        "--out",
        out.to_str().unwrap(),
        "--pcap",
        "captures",
        "--events",
        "e.jsonl",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let expected =
        ["captures-seed1", "captures-seed2", "e-seed1.jsonl", "e-seed2.jsonl", "metrics.jsonl"];
    assert_eq!(files(&out), expected);
    for folder in &expected[..2] {
        let captures = ["BS.FH.pcapng", "BS.MH.pcapng", "FH.pcapng", "MH.pcapng"];
        assert_eq!(files(&out.join(folder)), captures);
    }
    assert_eq!(std::fs::read(out.join("metrics.jsonl")).unwrap(), output.stdout);
    for line in std::fs::read_to_string(out.join("e-seed1.jsonl")).unwrap().lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert!(event["t"].is_number() && event["event"].is_string(), "{line}");
    }
}

/// Each (scenario, seed) has one trajectory, bit for bit.
#[test]
fn every_example_gives_the_same_bytes_twice_and_with_more_threads() {
    let mut examples = files(&example(""));
    examples.retain(|name| name.ends_with(".toml") && !name.starts_with("gateway"));
    assert!(examples.len() >= 6, "{examples:?}");
    for name in examples {
        // Long enough for the example's point, short enough for its packets in a file.
        let duration = match name.as_str() {
            "wifi6.toml" => "0.5 s",
            "voice.toml" => "1 s",
            "dumbbell.toml" => "1.2 s",
            "leo.toml" => "3 s",
            "signal-level.toml" => "30 s",
            _ => "12 s",
        };
        let outputs = ["1", "2"].map(|jobs| {
            let folder = tempfile::tempdir().unwrap();
            let output = airtcp()
                .arg("run")
                .arg(example(&name))
                .args(["--json", "--runs", "2", "--jobs", jobs, "--set"])
                .arg(format!("duration={duration}"))
                .args(["--pcap", "captures", "--events", "e.jsonl"])
                .args(["--animate", "a.html", "--out"])
                .arg(folder.path())
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
            let mut names = files(folder.path());
            names.retain(|name| !name.starts_with("captures"));
            for folder_of_run in ["captures-seed1", "captures-seed2"] {
                let captures = files(&folder.path().join(folder_of_run));
                names.extend(captures.iter().map(|name| format!("{folder_of_run}/{name}")));
            }
            let contents: Vec<Vec<u8>> =
                names.iter().map(|file| std::fs::read(folder.path().join(file)).unwrap()).collect();
            (output.stdout, names, contents)
        });
        assert!(outputs[0] == outputs[1], "{name}: two runs differ");
        let sizes: Vec<usize> = outputs[0].2.iter().map(Vec::len).collect();
        // The capture of an idle node is its head.
        assert!(sizes.iter().all(|size| *size > 100), "{name}: {sizes:?}");
    }
}

#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    // The shell's own `kill`: the program of that name is in a package that a minimal system lacks.
    let command = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_nothing_half_written() {
    let folder = tempfile::tempdir().unwrap();
    let endless = endless(folder.path());
    let out = folder.path().join("out");
    let child = airtcp()
        .arg("run")
        .arg(endless)
        .args(["--pcap", "captures", "--events", "e.jsonl", "--out"])
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Two temporary files and a folder show that the run has begun.
    while !(out.is_dir() && files(&out).len() == 3) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).ends_with("airtcp: interrupted; 0 of 1 run complete\n"));
    assert_eq!(files(&out), [""; 0]);
}

#[cfg(unix)]
#[test]
fn finished_runs_are_kept_when_the_rest_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = airtcp()
        .arg("run")
        .arg(example("quickstart.toml"))
        .args(["--json", "--runs", "1000000", "--out"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    stdout.read_line(&mut printed).unwrap();
    interrupt(&child);
    while stdout.read_line(&mut printed).unwrap() > 0 {}
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(files(folder.path()), ["metrics.jsonl"]);
    let kept = std::fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
    assert_eq!(kept, printed);
}

#[test]
fn a_closed_pipe_is_a_clean_stop() {
    let mut child = airtcp()
        .arg("run")
        .arg(example("quickstart.toml"))
        .args(["--json", "--runs", "1000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
}

#[cfg(unix)]
#[test]
fn study_and_sweep_are_handed_to_python() {
    // A file that a test writes may be busy: another test that starts a process hands the open file
    // on to it for a moment.
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python.sh");
    for arguments in ["study run packet-control --quick --help", "sweep one.toml --axis a=1,2"] {
        let output =
            airtcp().args(arguments.split(' ')).env("AIRTCP_PYTHON", python).output().unwrap();
        assert_eq!(text(&output.stdout), format!("-m airtcp {arguments}\n"));
        assert_eq!(output.status.code(), Some(7));
    }
}

#[cfg(unix)]
#[test]
fn study_without_the_package_is_one_clear_error() {
    for (python, message) in [
        ("false", "`airtcp study` needs the Python package, which false does not have"),
        ("/no/such/python", "`airtcp study` needs Python, but /no/such/python cannot be run"),
    ] {
        let output =
            airtcp().args(["study", "list"]).env("AIRTCP_PYTHON", python).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    }
}

#[test]
fn schema_and_version_are_printed() {
    let schema = airtcp().arg("schema").output().unwrap();
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    assert_eq!(schema["$ref"], "#/$defs/scenario");
    let markdown = airtcp().args(["schema", "--markdown"]).output().unwrap();
    assert!(text(&markdown.stdout).starts_with("# The scenario file\n"));
    let version = airtcp().arg("--version").output().unwrap();
    assert_eq!(text(&version.stdout), concat!("airtcp ", env!("CARGO_PKG_VERSION"), "\n"));
}

fn mobility(arguments: &[&str]) -> Output {
    airtcp().arg("mobility").args(arguments).output().expect("airtcp starts")
}

/// A random waypoint movement goes out to ns-2's format, back into a scenario, and out again.
#[test]
fn movement_goes_out_to_other_tools_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let network = "[[wlan]]\nname = \"air\"\nstations = [\"n0\", \"n1\"]\n[[udp]]\nfrom = \"n0\"\nto = \"n1\"\n\
                   rate = \"10 kbit/s\"\nsize = \"100 B\"\n";
    let random = "[[node]]\nname = \"n\"\ncount = 2\nmobility = { model = \"random-waypoint\", \
                  area = [\"500 m\", \"300 m\"], speed = \"10 m/s\", pause = \"5 s\" }\n";
    let first = file("first.toml", &format!("duration = \"100 s\"\n{random}{network}"));
    for format in ["setdest", "bonnmotion"] {
        let export = |scenario: &str| {
            let output = mobility(&["export", scenario, "--format", format]);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            text(&output.stdout)
        };
        let trace = file("trace", &export(&first));
        let area = ["--area", "500", "300"];
        let nodes = mobility(&[&["import", &trace, "--format", format][..], &area].concat());
        assert_eq!(nodes.status.code(), Some(0), "{}", text(&nodes.stderr));
        let nodes = text(&nodes.stdout);
        let second = file("second.toml", &format!("duration = \"100 s\"\n{nodes}{network}"));
        let (before, after) = (export(&first), export(&second));
        assert_eq!(before.lines().count(), after.lines().count());
        let number = |word: &str| word.trim_matches('"').parse::<f64>().ok();
        for (a, b) in before.split_whitespace().zip(after.split_whitespace()) {
            match (number(a), number(b)) {
                (Some(a), Some(b)) => assert!((a - b).abs() < 1e-5, "{a} {b}"),
                _ => assert_eq!(a, b),
            }
        }
        let small = mobility(&["import", &trace, "--format", format, "--area", "5", "5"]);
        assert_eq!(small.status.code(), Some(2));
        assert!(text(&small.stderr).contains("(expected places within 5 m by 5 m)"));
    }
    let wrong = mobility(&["import", &first, "--format", "setdest"]);
    assert!(text(&wrong.stderr).contains("first.toml: line 1: \"duration"), "{wrong:?}");
}

/// Nodes keep their numbers, and what the trace lacks is said; the name says the format.
#[test]
fn movement_comes_in_as_generators_write_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let trace = "$node_(1) set X_ 5 ;# from 1\n$node_(3) set X_ 1\n\
                 $ns_ at 2 \"$node_(1) setdest 105 0 10\"\n$ns_ at 4 \"$node_(1) setdest 105 0 0\"\n";
    let output = mobility(&["import", &file("a.tcl", trace)]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).ends_with("a.tcl: the trace has no node 0, 2\n"));
    assert_eq!(
        text(&output.stdout),
        "[[node]]\nname = \"n1\"\nposition = [\"5 m\", \"0 m\"]\n\
         mobility = { model = \"path\", waypoints = [\n    [\"2 s\", \"5 m\", \"0 m\"],\n    \
         [\"4 s\", \"25 m\", \"0 m\"],\n] }\n\n\
         [[node]]\nname = \"n3\"\nposition = [\"1 m\", \"0 m\"]\n\n"
    );
    let unnamed = mobility(&["import", &file("trace", trace)]);
    assert_eq!(unnamed.status.code(), Some(2));
    assert!(text(&unnamed.stderr).contains("the name does not say the format (expected --format)"));
    let both = file("b.movements", "0 10 20 1 50 60 20 1 100 60 90 1\n");
    assert_eq!(mobility(&["import", &both]).status.code(), Some(2));
    assert_eq!(mobility(&["import", &both, "--format", "bonnmotion-3d"]).status.code(), Some(0));
}

/// An example whose movement stands in a file beside it.
#[test]
fn a_scenario_finds_its_files_from_any_folder() {
    let folder = tempfile::tempdir().unwrap();
    let run = |file: &Path| {
        let mut run = airtcp();
        run.current_dir(folder.path()).arg("run").arg(file).arg("--json");
        run.output().expect("airtcp starts")
    };
    let output = run(&example("walk.toml").canonicalize().unwrap());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let alone = folder.path().join("walk.toml");
    std::fs::copy(example("walk.toml"), &alone).unwrap();
    let output = run(&alone);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(
        message.contains("node.phone.mobility.file: ")
            && message.contains("walk.tcl: there is no such")
    );
}

fn packetdrill(arguments: &[&str]) -> Output {
    airtcp().arg("packetdrill").args(arguments).output().expect("airtcp starts")
}

/// A script that connects, and expects the acknowledgement `ack`; one that cannot be read; one that
/// needs what airtcp lacks.
fn write_scripts(folder: &Path) {
    let connect = |ack: u32| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
             +0...0.1 connect(3, ..., ...) = 0\n\
             +0 > S 0:0(0) <...>\n\
             +.1 < S. 0:0(0) ack 1 win 1000 <mss 1000>\n\
             +0 > . 1:1(0) ack {ack}\n"
        )
    };
    for (name, text) in [
        ("right.pkt", connect(1)),
        ("wrong.pkt", connect(2)),
        ("unreadable.pkt", "0 close(3) = 0\n+.1 < . 1:1001(999) ack 1\n".to_owned()),
        ("lacking.pkt", "`sysctl -q net.ipv4.tcp_foo=1`\n0 close(3) = 0\n".to_owned()),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

/// A feature that a script needs and airtcp lacks is no failure.
#[test]
fn packetdrill_scripts_that_pass_or_cannot_run_are_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    write_scripts(folder.path());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let output = packetdrill(&[&path("right.pkt"), &path("lacking.pkt")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let mut lines = stdout.lines();
    assert_eq!(lines.next(), Some(&*format!("passes  {}", path("right.pkt"))));
    let needs = format!("needs   {}: sysctl net.ipv4.tcp_foo=1", path("lacking.pkt"));
    assert_eq!(lines.next(), Some(&*needs));
    let all: Vec<&str> = stdout.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(all, ["all", "1", "0", "1"]);
}

#[test]
fn a_packetdrill_script_that_fails_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    write_scripts(folder.path());
    let wrong = folder.path().join("wrong.pkt");
    let output = packetdrill(&[wrong.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let line = format!(
        "fails   {}:5: expected `. 1:1(0) ack 2`, got `. 1:1(0) ack 1` at 0.1 s (acknowledgement number)",
        wrong.display()
    );
    assert_eq!(text(&output.stdout).lines().next(), Some(&*line));
}

/// The others of a folder run all the same.
#[test]
fn a_packetdrill_script_that_cannot_be_read_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    write_scripts(folder.path());
    let output = packetdrill(&[folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let message = format!(
        "{}:2:9: 999 bytes from 1 end at 1000, not at 1001\n  |\n2 | +.1 < . 1:1001(999) ack 1\n  |         ^\n",
        folder.path().join("unreadable.pkt").display()
    );
    assert!(text(&output.stderr).ends_with(&message), "{}", text(&output.stderr));
    let all = text(&output.stdout);
    let all: Vec<&str> = all.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(all, ["all", "1", "1", "1"]);
}

#[test]
fn packetdrill_prints_one_json_object_a_script() {
    let folder = tempfile::tempdir().unwrap();
    let scripts = folder.path().join("handshake");
    std::fs::create_dir(&scripts).unwrap();
    write_scripts(&scripts);
    std::fs::remove_file(scripts.join("unreadable.pkt")).unwrap();
    let output = packetdrill(&["--json", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let judged: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let verdicts: Vec<&Value> = judged.iter().map(|script| &script["verdict"]).collect();
    assert_eq!(verdicts, ["needs", "passes", "fails"]);
    assert!(judged.iter().all(|script| script["category"] == "handshake"));
    assert_eq!(judged[0]["needs"], serde_json::json!(["sysctl net.ipv4.tcp_foo=1"]));
    assert_eq!(judged[2]["line"], 5);
    assert_eq!(judged[2]["expected"], "`. 1:1(0) ack 2`");
}

#[test]
fn packetdrill_without_scripts_is_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().to_str().unwrap();
    let output = packetdrill(&[empty]);
    assert_eq!(output.status.code(), Some(2));
    let message = format!("airtcp: {empty}: expected `.pkt` files in this folder, found none\n");
    assert!(text(&output.stderr).ends_with(&message), "{}", text(&output.stderr));
    assert_eq!(packetdrill(&[]).status.code(), Some(2));
}

#[test]
fn wrong_arguments_are_refused_with_what_was_expected() {
    let refusal = |arguments: &[&str]| {
        let output = airtcp().args(arguments).output().expect("airtcp starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        text(&output.stderr)
    };
    assert!(refusal(&["rn", "x.toml"]).contains("'run'"));
    assert!(refusal(&["mobility", "exprt"]).contains("'export'"));
    assert!(!refusal(&["xyz"]).contains("similar"));
    for seed in ["-1", "x", "18446744073709551616"] {
        let message = refusal(&["run", "x.toml", "--seed", seed]);
        assert!(message.contains(&format!("'{seed}'")), "{message}");
        assert!(
            message.contains("expected an integer from 0 to 18446744073709551615"),
            "{message}"
        );
    }
    for runs in ["-1", "0", "1.5"] {
        let message = refusal(&["run", "x.toml", "--runs", runs]);
        assert!(message.contains("expected an integer, 1 or more"), "{message}");
    }
}

fn check(arguments: &[&Path]) -> Output {
    airtcp().arg("check").args(arguments).output().expect("airtcp starts")
}

#[test]
fn files_are_checked_whatever_they_are() {
    let quickstart = example("quickstart.toml");
    let output = check(&[&quickstart, &example("spike.toml")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("quickstart.toml: ok (scenario)\n"));
    assert_eq!(text(&output.stdout).lines().count(), 2);

    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.toml");
    let scenario = std::fs::read_to_string(&quickstart).unwrap();
    let scenario = scenario.replace("\"5 MB\"", "5").replace("delay", "dely");
    std::fs::write(&wrong, scenario).unwrap();
    let output = check(&[&wrong, &quickstart]);
    assert_eq!(output.status.code(), Some(2));
    for mistake in ["flow.download.bytes", "link.AP-phone.dely", "link.server-AP.dely"] {
        assert!(text(&output.stderr).contains(mistake), "{}", text(&output.stderr));
    }
    assert!(text(&output.stdout).contains("quickstart.toml: ok"));
    assert_eq!(check(&[Path::new("no-such-file")]).status.code(), Some(2));
}

#[cfg(unix)]
#[test]
fn a_file_may_come_through_a_pipe() {
    let mut writer = Command::new("cat")
        .arg(example("quickstart.toml"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("cat starts");
    let pipe = writer.stdout.take().expect("a pipe");
    let output = airtcp().args(["check", "/dev/stdin"]).stdin(pipe).output().expect("it starts");
    assert!(writer.wait().expect("cat ends").success());
    assert_eq!(text(&output.stdout), "/dev/stdin: ok (scenario)\n", "{}", text(&output.stderr));
}

#[cfg(all(target_os = "linux", feature = "gateway", feature = "link"))]
#[test]
fn live_configurations_are_told_from_scenarios_by_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link.toml");
    std::fs::write(&link, "rate = \"8 Mbit/s\"\nup = { rate = { file = \"up.trace\" } }\n")
        .unwrap();
    let output = check(&[&example("gateway-on-board.toml")]);
    assert!(text(&output.stdout).ends_with("gateway-on-board.toml: ok (gateway)\n"), "{output:?}");
    let packed = folder.path().join("gateway.toml.gz");
    let gzip = Command::new("gzip").arg("-c").arg(example("gateway-on-board.toml")).output();
    std::fs::write(&packed, gzip.expect("gzip starts").stdout).unwrap();
    assert_eq!(check(&[&packed]).status.code(), Some(2), "the gateway does not read it either");
    let missing = check(&[&link]);
    assert_eq!(missing.status.code(), Some(2));
    let told = text(&missing.stderr);
    assert!(
        told.contains("link.toml:2:24: up.rate.file: ")
            && told.contains("up.trace: there is no such file"),
        "{told}"
    );
    std::fs::write(folder.path().join("up.trace"), "1\n").unwrap();
    assert!(text(&check(&[&link]).stdout).ends_with("link.toml: ok (link)\n"));
    let as_scenario = check(&[Path::new("--as"), Path::new("scenario"), &link]);
    assert_eq!(as_scenario.status.code(), Some(2));
    // Who cannot be told by its keys is told how it was read.
    let strange = folder.path().join("strange.toml");
    std::fs::write(&strange, "[[mobiles]]\nname = \"phones\"\n").unwrap();
    let said = text(&check(&[&strange]).stderr).to_owned();
    let last =
        format!("airtcp: {}: checked as a scenario (--as names another kind)", strange.display());
    assert_eq!(said.lines().last(), Some(&*last), "{said}");
}

#[test]
fn every_command_says_its_exit_codes() {
    let help = |words: &[String]| {
        let output = airtcp().args(words).arg("--help").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert!(!output.stdout.contains(&0x1b), "colours without a terminal");
        text(&output.stdout)
    };
    let commands = |words: &[String]| -> Vec<Vec<String>> {
        let text = help(words);
        let list = text.lines().skip_while(|line| *line != "Commands:").skip(1);
        list.take_while(|line| !line.is_empty())
            .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
            .filter(|name| !["", "help", "study", "sweep", "plot"].contains(name))
            .map(|name| [words, &[name.to_owned()]].concat())
            .collect()
    };
    let mut waiting = commands(&[]);
    let mut found = 0;
    while let Some(words) = waiting.pop() {
        assert!(help(&words).contains("Exit codes: "), "{words:?}");
        waiting.extend(commands(&words));
        found += 1;
    }
    assert!(found >= 7, "{found}");
}

#[test]
fn completions_and_manual_pages_have_every_command() {
    for (shell, mark) in
        [("bash", "complete -F"), ("zsh", "#compdef airtcp"), ("fish", "complete -c airtcp")]
    {
        let output = airtcp().args(["completions", shell]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let script = text(&output.stdout);
        for word in [mark, "packetdrill", "study", "sweep", "pcap-node"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let output = airtcp().args(["man", "--out"]).arg(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let pages = files(folder.path());
    for page in ["airtcp.1", "airtcp-run.1", "airtcp-mobility-export.1", "airtcp-study.1"] {
        assert!(pages.iter().any(|known| known == page), "{pages:?}");
    }
    let page = std::fs::read_to_string(folder.path().join("airtcp-run.1")).unwrap();
    assert!(page.contains("pcap") && page.contains("Exit codes"), "{page}");
    let page = std::fs::read_to_string(folder.path().join("airtcp-study-run.1")).unwrap();
    assert!(page.contains("quick") && page.contains("4 claims are refuted"), "{page}");
}

#[test]
fn a_file_of_another_kind_is_told_apart_from_a_scenario_with_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("link.toml");
    for (written, is_told) in
        [("rate = \"8 Mbit/s\"", true), ("duraton = \"1 s\"\nname = \"a\"", false)]
    {
        std::fs::write(&file, written).unwrap();
        let output = airtcp().arg("run").arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let told = text(&output.stderr);
        let note = "it has no key of a scenario (`airtcp check` tells what it is)";
        assert_eq!(told.contains(note), is_told, "{told}");
    }
}

#[test]
fn a_scenario_may_name_its_schema_for_editors() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.toml");
    let scenario = std::fs::read_to_string(example("quickstart.toml")).unwrap();
    std::fs::write(&file, format!("#:schema ./scenario.schema.json\n{scenario}")).unwrap();
    assert_eq!(check(&[&file]).status.code(), Some(0));
}

/// A scenario that reads a movement file, in a folder.
fn walk(folder: &Path) -> PathBuf {
    for name in ["walk.toml", "walk.tcl"] {
        std::fs::copy(example(name), folder.join(name)).unwrap();
    }
    folder.join("walk.toml")
}

#[test]
fn an_output_does_not_take_the_place_of_an_input() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = walk(folder.path());
    let link = folder.path().join("link.toml");
    std::os::unix::fs::symlink(&scenario, &link).unwrap();
    let before = std::fs::read(&scenario).unwrap();
    let movement = folder.path().join("walk.tcl");
    for (option, output) in
        [("--events", &scenario), ("--animate", &movement), ("--animate", &link)]
    {
        let output = output.to_str().unwrap();
        let refused = run(&[scenario.to_str().unwrap(), option, output]);
        assert_eq!(refused.status.code(), Some(2));
        let told = text(&refused.stderr);
        assert!(told.contains(&format!("{option}: {output}: is read, too")), "{told}");
    }
    // Of several runs each has a file of its own.
    let second = folder.path().join("walk-seed2.toml");
    std::fs::copy(&scenario, &second).unwrap();
    let events = ["--events", scenario.to_str().unwrap(), "--runs", "2"];
    let refused = run(&[&[second.to_str().unwrap()], &events[..]].concat());
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert_eq!(std::fs::read(&scenario).unwrap(), before);
}

#[test]
fn a_file_that_is_not_there_is_named_with_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    walk(folder.path());
    let of = |arguments: &[&str]| {
        let output = airtcp().args(arguments).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    let absent = "airtcp: wlak.toml: there is no such file (did you mean walk.toml?)";
    assert!(of(&["run", "wlak.toml"]).contains(absent));
    assert!(of(&["check", "wlak.toml"]).contains(absent));
    assert!(of(&["run", "."]).contains("airtcp: .: this is a folder (expected a file)"));
}
