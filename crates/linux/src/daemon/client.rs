//! A client of the control socket.
//!
//! Read first: [`airtcp_gateway::control`] (the protocol).

use airtcp_gateway::control::{Answer, Request};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest time that [`ask`] waits for the gateway.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No process listens on the socket.
    #[error(
        "no gateway runs here: {path}: {source}; start one (airtcp gateway --config FILE), or name its socket by --control"
    )]
    Absent {
        /// Path of the control socket.
        path: PathBuf,
        /// The error on connecting to it.
        source: io::Error,
    },
    /// This user may not connect to the socket.
    #[error("{path}: permission denied; run this as root or as a member of the socket's group")]
    Forbidden {
        /// Path of the control socket.
        path: PathBuf,
    },
    /// No valid answer came in time.
    #[error("{path}: no answer from the gateway: {source}")]
    Broken {
        /// Path of the control socket.
        path: PathBuf,
        /// The error on reading or parsing the answer.
        source: io::Error,
    },
    /// The gateway rejected the request, for this reason.
    #[error("request rejected: {0}")]
    Refused(String),
}

/// Sends a request to the gateway whose control socket is `path`, and waits for its answer.
///
/// # Errors
/// There is no answer, or it is an [`Answer::Error`].
pub fn ask(path: &Path, request: &Request) -> Result<Answer, AskError> {
    let owned = || path.to_owned();
    let stream = UnixStream::connect(path).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => AskError::Forbidden { path: owned() },
        _ => AskError::Absent { path: owned(), source },
    })?;
    match converse(stream, request) {
        Ok(Answer::Error { message }) => Err(AskError::Refused(message)),
        Ok(answer) => Ok(answer),
        Err(source) => Err(AskError::Broken { path: owned(), source }),
    }
}

fn converse(mut stream: UnixStream, request: &Request) -> io::Result<Answer> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(request.line().as_bytes())?;
    let mut line = Vec::new();
    BufReader::new(stream).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_gateway_the_socket_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.sock");
        let error = ask(&path, &Request::Status).unwrap_err().to_string();
        assert!(error.starts_with("no gateway runs here: "), "{error}");
        assert!(error.contains("gateway.sock"), "{error}");
    }
}
