//! Shared by the tests and benchmarks of all crates: skipping a test that needs something the
//! machine lacks, CPU time, an allocator that counts, and Prometheus' programs.

mod alloc;
pub mod prometheus;

pub use alloc::CountingAllocator;

use std::io::Write;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Needs of tests that CI's machines cannot meet.
const ABSENT: &str = include_str!("../../../.ci/absent");

/// Reports on standard error that the calling test is skipped because it needs `need`.
///
/// # Panics
/// If `CI` is `true`, unless `.ci/absent` lists the need: a test that never runs proves nothing.
pub fn skip(need: &str) {
    let on_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(
        !on_ci || is_listed(ABSENT, need),
        "this test needs {need}; with CI=true a test is skipped only if .ci/absent lists what it needs"
    );
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // Not eprintln!, whose output the test harness hides when a test passes.
    let _ = writeln!(std::io::stderr(), "{test} is skipped: needs {need}");
}

/// True if a line of the list is a prefix of the need; lines with `#` are comments.
fn is_listed(list: &str, need: &str) -> bool {
    let mut listed = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    listed.any(|line| need.starts_with(line))
}

/// CPU time of this thread, for benchmarks: it excludes other work on the machine. Wall-clock time
/// where Linux does not report it.
pub fn cpu_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let nanoseconds = || {
        let line = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        line.split_whitespace().next()?.parse().ok()
    };
    let since_start = || START.get_or_init(Instant::now).elapsed();
    nanoseconds().map_or_else(since_start, Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_line_matches_needs_that_begin_with_it() {
        let list = "# a comment\n\nbr_netfilter\n";
        assert!(is_listed(list, "br_netfilter (modprobe br_netfilter)"));
        assert!(!is_listed(list, "tshark"));
        assert!(!is_listed(list, "# a comment"));
    }
}
