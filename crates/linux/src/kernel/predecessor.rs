//! What a gateway that was just killed still holds.
//!
//! A service manager, or an operator, starts a gateway again at once. The kernel closes the files of
//! the killed one in turn, and waits for all processors before it lets go of those of netfilter and
//! BPF: on a busy machine that took a second. Until then its locks, queues and ports are taken.

use std::thread;
use std::time::{Duration, Instant};

/// Longest time to wait for what may be a predecessor's.
const LONGEST: Duration = Duration::from_secs(3);

/// Time from one attempt to the next.
const INTERVAL: Duration = Duration::from_millis(20);

/// Calls `take` until it succeeds, fails for another reason than `is_taken`, or some seconds have
/// passed.
///
/// # Errors
/// The last attempt's.
pub(crate) fn when_free<T, E>(
    mut take: impl FnMut() -> Result<T, E>,
    is_taken: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let end = Instant::now() + LONGEST;
    loop {
        match take() {
            Err(error) if is_taken(&error) && Instant::now() < end => thread::sleep(INTERVAL),
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_let_go_of_soon_is_taken_and_other_errors_count_at_once() {
        let mut attempts = 0;
        let mut third = || {
            attempts += 1;
            if attempts < 3 { Err("taken") } else { Ok(attempts) }
        };
        assert_eq!(when_free(&mut third, |&error| error == "taken"), Ok(3));
        let since = Instant::now();
        assert_eq!(
            when_free(|| Err::<(), _>("forbidden"), |&error| error == "taken"),
            Err("forbidden")
        );
        assert!(since.elapsed() < LONGEST);
    }

    #[test]
    fn what_stays_taken_is_an_error() {
        assert_eq!(when_free(|| Err::<(), _>("taken"), |&error| error == "taken"), Err("taken"));
    }
}
