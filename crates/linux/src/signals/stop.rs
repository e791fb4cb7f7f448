//! How the threads of sources are stopped.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Tells threads to stop.
#[derive(Clone, Debug)]
pub(super) struct Stop(Arc<EventFd>);

/// Why [`Stop::wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// The descriptor is readable, or broken.
    Ready,
    /// The time is over.
    TimedOut,
    /// The thread is to stop.
    Stopped,
}

impl Stop {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?)))
    }

    /// Tells them.
    pub(super) fn now(&self) {
        // A counter that is full already tells them as well.
        let _ = self.0.write(1);
    }

    /// Waits until `descriptor` is readable, `timeout` is over, or the thread is to stop.
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
