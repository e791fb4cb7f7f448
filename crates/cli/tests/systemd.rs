//! The units of the gateway and of the agent, checked by systemd's own tools.

#![cfg(target_os = "linux")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
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

/// What `ip -o link` prints of a modem that sends bare IP packets, whose state is not known while it is
/// up, of another interface, and of one that stands for a modem that was plugged in again.
const LINKS: &str = "\
2: wwan0: <POINTOPOINT,MULTICAST,NOARP,UP,LOWER_UP> mtu 1500 qdisc pfifo_fast state UNKNOWN\\    link/none
2: wwan0: <POINTOPOINT,MULTICAST,NOARP> mtu 1500 qdisc pfifo_fast state DOWN group default\\    link/none
2: wwan0: <POINTOPOINT,MULTICAST,NOARP,UP,LOWER_UP> mtu 1500 qdisc pfifo_fast state UNKNOWN\\    link/none
3: p0@wwan0: <NO-CARRIER,BROADCAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state LOWERLAYERDOWN\\    link/ether
Deleted 2: wwan0: <POINTOPOINT,MULTICAST,NOARP> mtu 1500 qdisc noop state DOWN group default\\    link/none
4: wwan0@p0: <NO-CARRIER,BROADCAST,MULTICAST,UP,M-DOWN> mtu 1500 state LOWERLAYERDOWN\\    link/ether
4: wwan0@p0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default\\    link/ether
";

#[test]
fn the_command_that_watches_a_modem_tells_its_states() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let settings = std::fs::read_to_string(root.join("dist/airtcp-agent.default")).unwrap();
    let line = settings.lines().find_map(|line| line.strip_prefix("#WATCH=\"")?.strip_suffix('"'));
    let watch = line.unwrap();
    // What systemd or the shell of the guide's example would read otherwise.
    assert!(!watch.contains(['\\', '"', '$', '`', '!']), "{watch}");
    let guide = std::fs::read_to_string(root.join("docs/agent.md")).unwrap();
    assert!(guide.contains(&format!("\"{watch}\"")), "docs/agent.md has another command");
    let folder = tempfile::tempdir().unwrap();
    let (ip, links) = (folder.path().join("ip"), folder.path().join("links"));
    std::fs::write(&links, LINKS).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *monitor*) tail -n +2 {0};; *) head -n 1 {0};; esac\n",
        links.display()
    );
    std::fs::write(&ip, script).unwrap();
    std::fs::set_permissions(&ip, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh").args(["-c", watch]).env("PATH", path).output().unwrap();
    assert_eq!(text(&output.stdout), "up\ndown\nup\ndown\ndown\nup\n", "{}", text(&output.stderr));
}
