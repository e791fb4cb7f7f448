//! Runs of the simulator in parallel, which Ctrl-C stops.

use crate::complain;
use airtcp_core::{Duration, Instant};
use airtcp_sim::{Observers, World};
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// Set by Ctrl-C; workers check it between slices of a run.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Result of a run.
#[derive(Debug)]
pub enum Outcome<T> {
    /// Its end was reached.
    Finished(T),
    /// It could not be done; the reason, for people.
    Failed(String),
    /// Interrupted before its end.
    Stopped,
}

/// True if Ctrl-C was pressed since [`in_parallel`] began.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Does the runs 0 to `count`, `jobs` of them at once (`None`: as many as there are cores). `run`
/// gets the index and what tells it to stop; `take`, in this thread, the index and the result, as
/// runs end. No other run begins after Ctrl-C, or once `take` has returned false.
pub fn in_parallel<T: Send>(
    count: usize,
    jobs: Option<NonZeroUsize>,
    run: impl Fn(usize, &dyn Fn() -> bool) -> Outcome<T> + Sync,
    mut take: impl FnMut(usize, Outcome<T>) -> bool,
) {
    stop_on_interrupt();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = jobs.map_or(cores, usize::from).min(count);
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let stopped = || stop.load(Ordering::Relaxed) || interrupted();
    std::thread::scope(|scope| {
        let (results, finished) = mpsc::channel();
        for _ in 0..jobs {
            let (results, next, run, stopped) = (results.clone(), &next, &run, &stopped);
            scope.spawn(move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count || stopped() {
                        return;
                    }
                    let outcome = catch_unwind(AssertUnwindSafe(|| run(i, stopped)));
                    let outcome = outcome.unwrap_or_else(|_| {
                        Outcome::Failed("internal error, see above".to_owned())
                    });
                    if results.send((i, outcome)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        for (i, outcome) in finished {
            if !take(i, outcome) {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
}

/// A line on standard error that counts finished runs, if that is a terminal.
#[derive(Debug)]
pub struct Progress {
    all: usize,
    shown: bool,
}

impl Progress {
    /// Of `all` runs; `wanted`: the user has not forbidden it.
    pub fn new(all: usize, wanted: bool) -> Self {
        Self { all, shown: wanted && io::stderr().is_terminal() }
    }

    /// So many are finished.
    pub fn show(&self, finished: usize) {
        if self.shown {
            let _ = write!(io::stderr(), "\r{finished} of {} runs ", self.all);
        }
    }

    /// Ends the line.
    pub fn end(&self) {
        if self.shown {
            let _ = writeln!(io::stderr());
        }
    }
}

fn stop_on_interrupt() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Err(error) = ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed)) {
            complain(&format!("Ctrl-C will not stop cleanly: {error}"));
        }
    });
    INTERRUPTED.store(false, Ordering::Relaxed);
}

/// Runs a world to its end unless `stopped`, which is asked several times a second; returns true at
/// the end. Slices do not change the trajectory, so their length may depend on the machine.
pub fn run_to_end(
    world: &mut World,
    duration: Duration,
    observers: &mut Observers<'_>,
    stopped: &dyn Fn() -> bool,
) -> bool {
    let mut slice = Duration::from_millis(10);
    let mut until = Instant::ZERO;
    while until.since_start() < duration {
        if stopped() {
            return false;
        }
        until = (until + slice).min(Instant::ZERO + duration);
        let started = std::time::Instant::now();
        world.run_until(until, observers);
        let took = started.elapsed();
        if took < std::time::Duration::from_millis(10) {
            slice = slice * 2;
        } else if took > std::time::Duration::from_millis(100) {
            slice = (slice / 2).max(Duration::from_micros(1));
        }
    }
    true
}
