//! A gateway without traffic: its memory, and how often it wakes up.

use crate::testbed::{Plan, Testbed, possible};
use nix::unistd::Pid;
use std::fs;
use std::thread;
use std::time::Duration;

/// Observed time.
const TIME: Duration = Duration::from_secs(10);
/// Most wake-ups of supervisor and daemon in a second; they were 38 once, and are 3.
const WAKE_UPS: u64 = 5;
/// Most memory of the daemon besides the program's own file, in KiB: 4 MiB, half of it one ring buffer
/// that is mapped twice.
const MEMORY: u64 = 6 * 1024;

fn file(process: Pid, name: &str) -> String {
    fs::read_to_string(format!("/proc/{process}/{name}")).unwrap()
}

/// The number behind `name` in a file of /proc.
fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

/// How often the threads of a process have gone to sleep.
fn sleeps(process: Pid) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of_thread = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap();
        number(&status, "voluntary_ctxt_switches:")
    };
    threads.map(|thread| of_thread(thread.unwrap())).sum()
}

/// KiB in memory of what is no file on disk.
fn memory(process: Pid) -> u64 {
    let mut is_of_file = false;
    let mut sum = 0;
    for line in file(process, "smaps").lines() {
        match line.strip_prefix("Rss:") {
            Some(size) if !is_of_file => {
                sum += size.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap()
            }
            // A mapping begins with its addresses.
            None if line.split(' ').next().is_some_and(|first| first.contains('-')) => {
                is_of_file = line.contains(" /");
            }
            _ => {}
        }
    }
    sum
}

#[test]
fn an_idle_gateway_is_small_and_sleeps() {
    if !possible() {
        return;
    }
    let observing = "mode = \"observe\"\n".to_owned();
    let by_tc = "data-path = \"tc\"\n".to_owned();
    thread::scope(|scope| {
        for plan in [
            Plan::with("\"wake\""),
            Plan { config: by_tc, ..Plan::with("\"wake\"") },
            Plan::with("\"m-tcp-plus\""),
            Plan { config: observing, ..Plan::with("\"wake\"") },
        ] {
            scope.spawn(move || {
                let bed = Testbed::new(&plan);
                let daemon = bed.child().unwrap();
                let parent = Pid::from_raw(number(&file(daemon, "status"), "PPid:") as i32);
                let both = || sleeps(parent) + sleeps(daemon);
                // It rests a while after its start.
                thread::sleep(Duration::from_secs(2));
                let before = both();
                thread::sleep(TIME);
                let wake_ups = both() - before;
                let what = (&plan.mechanism, &plan.config);
                assert!(wake_ups <= WAKE_UPS * TIME.as_secs(), "{what:?}: {wake_ups}");
                let memory = memory(daemon);
                assert!(memory <= MEMORY, "{what:?}: {memory} KiB");
                assert_eq!(bed.child(), Some(daemon), "it was not taken for hanging");
            });
        }
    });
}
