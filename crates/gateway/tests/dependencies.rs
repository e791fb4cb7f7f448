//! The gateway runs on any operating system: nothing that it depends on reaches for one.

use std::process::Command;

/// Sockets, event loops, signals and system calls.
const FORBIDDEN: [&str; 16] = [
    "ctrlc",
    "getrandom",
    "hyper",
    "hyper-util",
    "libbpf-rs",
    "mio",
    "nix",
    "rustix",
    "sd-notify",
    "signal-hook",
    "socket2",
    "thread-priority",
    "tokio",
    "tracing-subscriber",
    "tun-rs",
    "zbus",
];

#[test]
fn nothing_that_it_depends_on_does_io() {
    let tree = ["tree", "--offline", "--edges", "normal,build"];
    let output = Command::new(env!("CARGO"))
        .args(tree)
        .args(["--prefix", "none", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let (tree, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"airtcp-edge"), "{error}");
    let found: Vec<_> = FORBIDDEN.iter().filter(|name| names.contains(name)).collect();
    assert!(found.is_empty(), "{found:?}");
}
