//! The programs of Debian's package `prometheus`, which check the gateway's metrics.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder into which `scripts/setup test` takes them out of the package.
const TAKEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools");

/// The path of one, installed or taken; `None`, with a report that the calling test is skipped: it is
/// not there.
///
/// # Panics
/// As [`skip`](crate::skip).
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain([Path::new(TAKEN).to_owned()]);
    let found = folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file()));
    if found.is_none() {
        crate::skip(&format!("{name} (package prometheus)"));
    }
    found
}

/// Has `promtool` check metrics in the text format.
///
/// # Panics
/// It finds a fault, or cannot be run.
pub fn check_metrics(promtool: &Path, metrics: &[u8]) {
    let mut checking = Command::new(promtool);
    checking.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut checking = checking.spawn().expect("promtool starts");
    let mut input = checking.stdin.take().expect("it is a pipe");
    input.write_all(metrics).expect("promtool reads");
    drop(input);
    let checked = checking.wait_with_output().expect("promtool ends");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
