//! What a schema is made of: tables, keys, kinds of values, defaults.
//!
//! A file's schema says once which keys there are, of what kind, with which default, meaning and source.
//! [`crate::Section`] reads files by it (so a key or a default that is not in it does not exist),
//! [`crate::document`] turns it into documentation and JSON Schema.

use crate::units::Measure;
use airtcp_core::Duration;

/// A table of the file.
#[derive(Debug)]
pub struct TableSchema {
    /// Heading in the documentation, and the definition's name in JSON Schema.
    pub name: &'static str,
    /// What it describes.
    pub about: &'static str,
    /// Its keys, in the order of the documentation.
    pub fields: &'static [Field],
}

/// A key of a table.
#[derive(Debug)]
pub struct Field {
    /// As it is written.
    pub key: &'static str,
    /// What its value may be.
    pub kind: Kind,
    /// What holds without it.
    pub fallback: Fallback,
    /// What it is for.
    pub meaning: &'static str,
    /// Where the rule or the default comes from.
    pub source: &'static str,
    /// The key is refused unless another key of the table has one of these values.
    pub only: Option<Only>,
    /// What the key matters to, when that is not all that the table describes ("a flow's sender").
    pub matters_to: Option<&'static str>,
    /// Of an array of tables: the keys that make the name of an element without `name`.
    pub named_by: &'static [&'static str],
}

/// `key` must have one of `values`.
#[derive(Clone, Copy, Debug)]
pub struct Only {
    /// A key with a [`Kind::Choice`].
    pub key: &'static str,
    /// Some of its words.
    pub values: &'static [&'static str],
}

/// What holds when a key is absent.
#[derive(Clone, Copy, Debug)]
pub enum Fallback {
    /// The key must be there.
    Required,
    /// As if this had been written (strings without their quotes).
    Is(&'static str),
    /// Nothing; the text says what that means.
    Absent(&'static str),
}

/// What a value may be.
#[derive(Debug)]
pub enum Kind {
    /// A name: letters, digits, `-` and `_`.
    Name,
    /// A text with a meaning of its own.
    Text(&'static TextKind),
    /// An array of such texts.
    Texts {
        /// Of which kind.
        of: &'static TextKind,
        /// How many.
        count: Count,
    },
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer {
        /// The least.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A number.
    Number {
        /// The least.
        min: f64,
        /// The largest.
        max: f64,
        /// `min` itself is refused.
        above: bool,
    },
    /// A duration with its unit.
    Duration {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// A moment, to the second: TOML's date-time with its offset from UTC.
    Moment,
    /// A rate above zero with its unit.
    Rate,
    /// A number of bytes with its unit.
    Size {
        /// The smallest, in bytes.
        min: u64,
        /// The largest, in bytes.
        max: u64,
    },
    /// A physical quantity.
    Measure(&'static Measure),
    /// `[x, y]`.
    Point,
    /// Packets, perhaps a fraction (an average).
    Packets,
    /// A queue's size: packets or bytes.
    PacketsOrSize,
    /// One of some words, each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    /// One of some words, or a number of segments.
    ChoiceOrSegments(&'static [(&'static str, &'static str)]),
    /// The word, or the kind; the word means "absent".
    WordOr(&'static str, &'static Kind),
    /// Two durations, low and high.
    DurationPair,
    /// `[start, end]` pairs, ascending and disjoint.
    Intervals,
    /// Distinct whole numbers.
    Ordinals,
    /// A table.
    Table(&'static TableSchema),
    /// The word, or a table; the word means "absent".
    WordOrTable(&'static str, &'static TableSchema),
    /// A duration, or a table.
    DurationOrTable(&'static TableSchema),
    /// An array of tables with at least one element.
    Tables(&'static TableSchema),
}

/// A text with a meaning of its own, such as the name of a node or an address. The file's reader finds out
/// whether it is a right one ([`crate::Section::parse`]).
#[derive(Debug)]
pub struct TextKind {
    /// "node".
    pub name: &'static str,
    /// "nodes".
    pub plural: &'static str,
    /// "the name of a node", perhaps with an example.
    pub expected: &'static str,
    /// "names of nodes", perhaps with an example.
    pub expected_plural: &'static str,
}

/// How many elements an array has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// One or more.
    Some,
    /// Two.
    Two,
}

/// A key that always has its effect; see [`Field`] for the parts.
pub const fn field(
    key: &'static str,
    kind: Kind,
    fallback: Fallback,
    meaning: &'static str,
) -> Field {
    Field { key, kind, fallback, meaning, source: "", only: None, matters_to: None, named_by: &[] }
}

impl Field {
    /// With where the rule or the default comes from.
    pub const fn source(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }
    /// Refused unless `key` has one of `values`.
    pub const fn only(mut self, key: &'static str, values: &'static [&'static str]) -> Self {
        self.only = Some(Only { key, values });
        self
    }
    /// With what it matters to.
    pub const fn matters_to(mut self, what: &'static str) -> Self {
        self.matters_to = Some(what);
        self
    }
    /// With the keys that make the name of an element.
    pub const fn named_by(mut self, keys: &'static [&'static str]) -> Self {
        self.named_by = keys;
        self
    }
}

/// Any duration.
pub const TIME: Kind = Kind::Duration { min: Duration::ZERO, max: Duration::MAX };
/// A duration above zero.
pub const POSITIVE_TIME: Kind = Kind::Duration { min: Duration::from_nanos(1), max: Duration::MAX };
