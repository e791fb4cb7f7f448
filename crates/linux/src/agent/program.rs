//! A program that reports the link state: it prints `fading`, `down` or `up`, one word a line.
//!
//! So anything that a shell script can query is a source: ModemManager, a GPS receiver, a button.

use super::{AgentError, Seen, Source};
use airtcp_core::LinkSignal;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Longest line of the program, in bytes.
const MOST_BYTES: usize = 4096;

/// The running program; killed on drop.
#[derive(Debug)]
pub struct Program {
    child: Child,
    stdout: ChildStdout,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
}

impl Program {
    /// Starts `script` with `sh -c`; it inherits standard error.
    ///
    /// # Errors
    /// `sh` cannot be started.
    pub fn start(script: &str) -> io::Result<Self> {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().expect("it is piped");
        let program = Self { child, stdout, partial: Vec::new() };
        fcntl(&program.stdout, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(program)
    }

    /// Parses output, which may end within a line.
    fn printed(&mut self, bytes: &[u8], signals: &mut Vec<LinkSignal>) -> Result<(), AgentError> {
        for piece in bytes.split_inclusive(|&b| b == b'\n') {
            self.partial.extend(piece);
            if self.partial.len() > MOST_BYTES {
                return Err(AgentError::Source(format!(
                    "the program printed a line of more than {MOST_BYTES} bytes"
                )));
            }
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.partial);
                signals.extend(signal(&String::from_utf8_lossy(&line))?);
            }
        }
        Ok(())
    }

    /// Waits for the program, which has closed its output; an error if it failed.
    fn end(&mut self, signals: Vec<LinkSignal>) -> Result<Seen, AgentError> {
        let status = self.child.wait()?;
        match status.success() {
            true => Ok(Seen::Last(signals)),
            false => Err(AgentError::Source(format!("the program failed: {status}"))),
        }
    }
}

/// The signal in a line; `None` for an empty line.
///
/// # Errors
/// The line is not a signal.
pub fn signal(line: &str) -> Result<Option<LinkSignal>, AgentError> {
    match line.trim() {
        "" => Ok(None),
        name => LinkSignal::named(name).map(Some).ok_or_else(|| {
            let expected = "expected fading, down or up";
            AgentError::Source(format!("the program printed {name:?}; {expected}"))
        }),
    }
}

impl Source for Program {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stdout.as_fd())
    }

    fn look(&mut self) -> Result<Seen, AgentError> {
        let mut signals = Vec::new();
        let mut buffer = [0; 512];
        loop {
            match self.stdout.read(&mut buffer) {
                Ok(0) => return self.end(signals),
                Ok(length) => self.printed(&buffer[..length], &mut signals)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Seen::Signals(signals));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails if the program has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
