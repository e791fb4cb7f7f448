//! The gateway's log: to the journal, with fields, if standard error is the journal; otherwise as
//! lines to standard error.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Environment variable with the log level: error, warn, info (the default), debug, trace or off.
pub const LEVEL: &str = "AIRTCP_LOG";

/// Identifier of the entries in the journal.
const IDENTIFIER: &str = "airtcp-gateway";

/// Starts logging.
///
/// # Errors
/// [`LEVEL`] is not a level; the message lists the levels.
pub fn init() -> Result<(), String> {
    let level = level(std::env::var(LEVEL).ok().as_deref())?;
    let journal = is_journal(std::env::var("JOURNAL_STREAM").ok().as_deref())
        .then(|| tracing_journald::layer().ok())
        .flatten()
        .map(|layer| layer.with_syslog_identifier(IDENTIFIER.to_owned()).with_field_prefix(None));
    let layer = match journal {
        Some(journal) => journal.boxed(),
        None => tracing_subscriber::fmt::layer()
            .with_writer(io::stderr)
            .with_ansi(false)
            .with_target(false)
            // Standard error may be closed.
            .log_internal_errors(false)
            .boxed(),
    };
    // A second call has no effect.
    let _ = tracing_subscriber::registry().with(layer.with_filter(level)).try_init();
    Ok(())
}

fn level(name: Option<&str>) -> Result<LevelFilter, String> {
    let Some(name) = name else { return Ok(LevelFilter::INFO) };
    name.parse().map_err(|_| {
        format!("{LEVEL}={name}: no such level; expected error, warn, info, debug, trace or off")
    })
}

/// True if standard error is the stream that systemd connected to the journal (systemd.exec(5),
/// `JOURNAL_STREAM`).
fn is_journal(stream: Option<&str>) -> bool {
    let Some((device, inode)) = stream.and_then(|stream| stream.split_once(':')) else {
        return false;
    };
    let Ok(stderr) = io::stderr().as_fd().try_clone_to_owned() else { return false };
    let Ok(found) = std::fs::File::from(stderr).metadata() else { return false };
    device.parse() == Ok(found.dev()) && inode.parse() == Ok(found.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_is_none_is_refused_with_those_there_are() {
        assert_eq!(level(None), Ok(LevelFilter::INFO));
        assert_eq!(level(Some("debug")), Ok(LevelFilter::DEBUG));
        let expected =
            "AIRTCP_LOG=loud: no such level; expected error, warn, info, debug, trace or off";
        assert_eq!(level(Some("loud")), Err(expected.to_owned()));
    }

    #[test]
    fn only_the_very_stream_that_systemd_named_is_the_journal() {
        let stderr = io::stderr().as_fd().try_clone_to_owned().unwrap();
        let found = std::fs::File::from(stderr).metadata().unwrap();
        assert!(is_journal(Some(&format!("{}:{}", found.dev(), found.ino()))));
        assert!(!is_journal(Some(&format!("{}:{}", found.dev(), found.ino() + 1))));
        assert!(!is_journal(Some("stderr")));
        assert!(!is_journal(None));
    }
}
