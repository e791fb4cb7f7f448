//! `airtcp doctor` from outside, as the user who runs the tests and as nobody: what it prints, that
//! it always ends, and that it leaves nothing behind.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

/// Stable from release to release: scripts read them.
const NAMES: [&str; 40] = [
    "namespaces",
    "tun",
    "sched-fifo",
    "nfqueue",
    "queue-rule",
    "af-packet",
    "netfilter-bpf",
    "tc-bpf",
    "data-path",
    "cap-net-admin",
    "cap-net-raw",
    "cap-bpf",
    "cap-sys-admin",
    "btf",
    "struct-ops",
    "bpf-file-system",
    "sock-ops",
    "timers",
    "hz",
    "clock-source",
    "offloads",
    "net.ipv4.ip_forward",
    "net.ipv6.conf.all.forwarding",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_retries2",
    "net.ipv4.tcp_rto_max_ms",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.core.bpf_jit_enable",
    "rp_filter",
    "systemd",
    "modem-manager",
    "ip",
    "nft",
    "iptables",
    "iperf3",
    "tcpdump",
    "tshark",
    "promtool",
    "systemd-analyze",
];

fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
    command.arg("doctor").args(arguments).output().expect("airtcp starts")
}

/// Runs the doctor as nobody if root runs the tests, else as the user who runs them.
fn doctor_as_nobody(arguments: &[&str]) -> Output {
    const NOBODY: u32 = 65534;
    // The user nobody may not be able to reach the folder where the binary is built.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = folder.path().join("airtcp");
    // Not `fs::copy`: a process that another test starts meanwhile would hold the open file for a
    // moment, and a file that is open for writing cannot be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_airtcp")).arg(&binary).status();
    assert!(copied.unwrap().success());
    let mut command = Command::new(&binary);
    command.arg("doctor").args(arguments).current_dir("/");
    if fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.output().expect("airtcp starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn report(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    assert_eq!(stdout.lines().count(), 1, "one object, one line");
    serde_json::from_str(&stdout).unwrap()
}

fn state<'a>(report: &'a Value, name: &str) -> &'a str {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|c| c["name"] == name).unwrap()["state"].as_str().unwrap()
}

fn check_schema(report: &Value) {
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(report), ["checks", "verdicts"]);
    let checks = report["checks"].as_array().unwrap();
    let names: Vec<_> = checks.iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, NAMES);
    for check in checks {
        assert_eq!(
            keys(check),
            ["fix", "found", "helps", "name", "needed_for", "purpose", "state"]
        );
        let state = check["state"].as_str().unwrap();
        assert!(["ok", "degraded", "unknown", "missing"].contains(&state), "{check}");
        assert_eq!(check["fix"] == "", state == "ok", "whatever is not ok has a fix: {check}");
        assert_ne!(check["found"], "", "{check}");
        assert_ne!(check["purpose"], "", "{check}");
    }
    let verdicts = report["verdicts"].as_array().unwrap();
    let commands: Vec<_> = verdicts.iter().map(|v| v["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["link", "gateway", "wake", "delack", "cc"]);
    for verdict in verdicts {
        assert_eq!(keys(verdict), ["command", "lacks", "state"]);
    }
}

#[test]
fn the_json_has_these_names_and_a_mend_for_all_that_is_not_ok() {
    check_schema(&report(&doctor(&["--json"])));
}

#[test]
fn nobody_gets_the_same_report_with_the_privileges_missing() {
    let report = report(&doctor_as_nobody(&["--json"]));
    check_schema(&report);
    for name in ["cap-net-admin", "cap-net-raw", "cap-bpf"] {
        assert_eq!(state(&report, name), "missing");
    }
}

#[test]
fn a_required_command_that_cannot_work_is_exit_code_1() {
    let output = doctor_as_nobody(&["--require", "gateway"]);
    assert_eq!(output.status.code(), Some(1));
    let stdout = text(&output.stdout);
    assert!(stdout.starts_with("airtcp link\n  needs\n"), "the table all the same: {stdout}");
    assert!(stdout.lines().last().unwrap().contains("gateway: will not work here ("), "{stdout}");
}

/// The default mechanism does not start there (`DispatchError::NoMirror`), others do.
#[test]
fn without_the_right_to_load_bpf_wake_will_not_work() {
    let rights = "-bpf,-perfmon,-sys_admin";
    let output = Command::new("setpriv")
        .args(["--bounding-set", rights, "--inh-caps", rights])
        .args([env!("CARGO_BIN_EXE_airtcp"), "doctor", "--json"])
        .output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        airtcp_testing::skip("the right to give up rights");
        return;
    };
    let report = report(&output);
    let lacks = |command: &str, missing: &str| {
        let verdicts = report["verdicts"].as_array().unwrap();
        let verdict = verdicts.iter().find(|verdict| verdict["command"] == command).unwrap();
        verdict["lacks"].as_array().unwrap().contains(&missing.into())
    };
    assert!(lacks("wake", "data-path") && lacks("cc", "cap-bpf"));
    assert!(!lacks("gateway", "data-path"));
}

#[test]
fn the_exit_code_of_a_required_command_follows_its_verdict() {
    for verdict in report(&doctor(&["--json"]))["verdicts"].as_array().unwrap() {
        let works = ["ok", "degraded"].contains(&verdict["state"].as_str().unwrap());
        let output = doctor(&["--require", verdict["command"].as_str().unwrap()]);
        assert_eq!(output.status.code(), Some(i32::from(!works)), "{verdict}");
    }
}

#[test]
fn an_unknown_command_cannot_be_required() {
    assert_eq!(doctor(&["--require", "simulator"]).status.code(), Some(2));
}

/// Runs in a mount namespace of its own, which needs root and unshare(1); without them the test
/// says that it was skipped.
#[test]
fn a_missing_device_file_is_reported_and_not_made() {
    let script = "mount -t tmpfs none /dev/net && { \"$0\" doctor --json; ls /dev/net; }";
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_airtcp")])
        .output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        airtcp_testing::skip("the right to make mount namespaces");
        return;
    };
    let report = report(&output);
    assert_eq!(state(&report, "tun"), "missing");
}

#[test]
fn nothing_is_left_behind_in_the_namespace_it_was_called_in() {
    // The probes make a TUN device and a table.
    let shown = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().map(|o| text(&o.stdout)).unwrap_or_default()
    };
    let look = || shown("tc", &["qdisc", "show", "dev", "lo"]);
    let before = look();
    report(&doctor(&["--json"]));
    assert_eq!(look(), before);
    assert!(!fs::exists("/sys/class/net/airtcp-probe").unwrap());
    assert!(!shown("nft", &["list", "tables"]).contains("airtcp-probe"));
}
