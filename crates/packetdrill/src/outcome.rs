//! How a script ends.

use std::fmt;

/// How a script ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The endpoint did all that the script says.
    Passes,
    /// The endpoint did something else.
    Fails(Failure),
    /// The script needs what airtcp lacks, each named once.
    Needs(Vec<String>),
}

/// The first thing that the endpoint did otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Line of the event, from 1.
    pub line: usize,
    /// What the script says.
    pub expected: String,
    /// What happened.
    pub got: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, got {}", self.expected, self.got)
    }
}
