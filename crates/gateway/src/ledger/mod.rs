//! What the gateway has promised, and which connections it holds frozen, as it is written down.
//!
//! Read first: [`airtcp_edge::hold::journal`], whose notes these are. [`mod@format`] is what files
//! say.

pub mod format;

pub use format::{Saved, Unreadable};

use crate::packets::SharedBytes;
use airtcp_core::{Flow, Segment};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Notes could not be written. What was written before is as it was.
#[derive(Debug, Error)]
#[error("{}: {source}", dir.display())]
pub struct WriteError {
    /// The connections whose notes are missing.
    pub flows: Vec<Flow>,
    /// The ledger's folder.
    pub dir: PathBuf,
    /// The cause, or the cause of the latest.
    pub source: io::Error,
}

/// A connection that cannot be taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// From the fixed to the mobile host.
    pub flow: Flow,
    /// The cause, in words.
    pub why: String,
    /// Resets that the fixed and the mobile host accept, if that is known.
    pub resets: Option<[Segment<SharedBytes>; 2]>,
}
