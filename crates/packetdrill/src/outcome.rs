//! Result of a script.

use std::fmt;

/// Result of running a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The endpoint did all that the script expects.
    Passes,
    /// The endpoint deviated from the script.
    Fails(Failure),
    /// Features that the script needs and airtcp lacks, each once.
    Needs(Vec<String>),
}

/// First deviation from the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Line of the event, from 1.
    pub line: usize,
    /// Behaviour that the script expects.
    pub expected: String,
    /// Behaviour of the endpoint.
    pub got: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, got {}", self.expected, self.got)
    }
}
