//! The units of the gateway and of the agent, checked by systemd's own tools.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Units, each with the highest exposure that `systemd-analyze security` may report, in tenths. With
/// systemd 252 the gateway's is 2.3, owing to the network, to root as the user (iptables insists on
/// it), and to a supervisor and a daemon in one service; the agent's 1.9, owing to the network.
const UNITS: [(&str, u32); 2] = [("gateway", 25), ("agent", 20)];

/// The unit as installed, but with the program under test.
struct Unit {
    _folder: TempDir,
    path: PathBuf,
}

impl Unit {
    fn new(name: &str) -> Self {
        let file = format!("airtcp-{name}.service");
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist").join(&file);
        let text = std::fs::read_to_string(shipped).unwrap();
        assert!(text.contains(&format!("ExecStart=/usr/local/bin/airtcp {name} ")));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        std::fs::write(&path, text.replace("/usr/local/bin/airtcp", env!("CARGO_BIN_EXE_airtcp")))
            .unwrap();
        Self { _folder: folder, path }
    }

    /// `systemd-analyze` with the unit as its last argument; `None` where there is none.
    fn analyze(&self, arguments: &[&str]) -> Option<Output> {
        let output = Command::new("systemd-analyze").args(arguments).arg(&self.path).output();
        if output.is_err() {
            airtcp_testing::skip("systemd-analyze (package systemd)");
        }
        output.ok()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn systemd_finds_no_fault_in_a_unit() {
    for (name, _) in UNITS {
        let Some(output) = Unit::new(name).analyze(&["verify", "--man=no"]) else { return };
        let complaints = text(&output.stderr);
        // Before systemd 253, which has the fallback of the line above.
        let is_known =
            |line: &str| line.ends_with("Failed to parse service type, ignoring: notify-reload");
        let unknown: Vec<_> = complaints.lines().filter(|line| !is_known(line)).collect();
        assert!(output.status.success() && unknown.is_empty(), "{name}: {complaints}");
    }
}

#[test]
fn what_must_survive_a_crash_survives_a_start_that_fails() {
    let text = std::fs::read_to_string(&Unit::new("gateway").path).unwrap();
    let is_kept = |line: &str| line == "RuntimeDirectoryPreserve=yes";
    assert!(text.lines().any(is_kept), "systemd removes the folder when the unit has failed");
}

#[test]
fn units_are_hardened() {
    for (name, exposure) in UNITS {
        let threshold = format!("--threshold={exposure}");
        let arguments = ["security", "--offline=true", "--no-pager", &threshold];
        let Some(output) = Unit::new(name).analyze(&arguments) else { return };
        let (report, complaints) = (text(&output.stdout), text(&output.stderr));
        if complaints.contains("unrecognized option") {
            airtcp_testing::skip("systemd-analyze of systemd 250 or newer");
            return;
        }
        assert!(output.status.success(), "{name}: {report}{complaints}");
    }
}
