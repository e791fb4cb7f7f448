//! Stops the threads of sources.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// A stop signal shared by threads.
#[derive(Clone, Debug)]
pub(super) struct Stop(Arc<EventFd>);

/// Reason why [`Stop::wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// The descriptor is readable or has an error.
    Ready,
    /// The timeout is over.
    TimedOut,
    /// The thread must stop.
    Stopped,
}

impl Stop {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?)))
    }

    /// Stops the threads.
    pub(super) fn now(&self) {
        // The write fails only if the counter is full, which stops them, too.
        let _ = self.0.write(1);
    }

    /// Waits until `descriptor` is readable, `timeout` is over, or the thread must stop.
    pub(super) fn wait(
        &self,
        descriptor: Option<BorrowedFd<'_>>,
        timeout: PollTimeout,
    ) -> io::Result<Woken> {
        let stop = PollFd::new(self.0.as_fd(), PollFlags::POLLIN);
        let mut polled = vec![stop];
        polled.extend(descriptor.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        loop {
            match poll(&mut polled, timeout) {
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) if polled[0].any() == Some(true) => return Ok(Woken::Stopped),
                Ok(0) => return Ok(Woken::TimedOut),
                Ok(_) => return Ok(Woken::Ready),
            }
        }
    }
}
