//! Configuration files: TOML read by a schema, with diagnostics that say file, line, key, what was expected and
//! the nearest right name.
//!
//! Read in this order: [`schema`] (what a schema is made of), [`read`] and [`Section`] (reading by it),
//! [`document`], [`mechanism`] (keys that several files share).
//!
//! How the parts play together: `tree` reads TOML (and overrides) into a tree that knows where everything stands;
//! a [`schema::TableSchema`] says once which keys there are; a [`Section`] reads one table by it; the caller
//! makes its model of sections. On the way they collect [`Problem`]s, which become [`Diagnostic`]s.

mod diagnostic;
pub mod document;
pub mod mechanism;
mod reader;
pub mod schema;
mod tree;
pub mod units;

pub use diagnostic::{ConfigError, Diagnostic, Problem, Spot};
pub use reader::{
    Decoded, FromDecoded, Moment, Name, Override, PacketsOrSize, Section, WordOrSegments, read,
};
pub use units::duration;
