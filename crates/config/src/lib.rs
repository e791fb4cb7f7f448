//! Configuration files: TOML read according to the declarations of [`airtcp_settings`], with
//! diagnostics that name file, line, key, what was expected and the nearest valid name.
//!
//! Read in this order: [`read`] and [`Section`] (reading), [`document`] (documentation and JSON
//! Schema).
//!
//! How the parts work together: `tree` reads TOML (and overrides) into a tree with the position of
//! everything. A [`Section`] reads one table of it according to its declaration; the caller builds
//! its model from sections. On the way they collect [`Problem`]s, which become [`Diagnostic`]s.

mod diagnostic;
pub mod document;
mod reader;
mod tree;

pub use diagnostic::{ConfigError, Diagnostic, Problem, nearest};
pub use reader::{Moment, Override, ReadFile, Section, locate, read, read_with_files};

/// The keys at the top level of a TOML text; none if its syntax is wrong.
pub fn top_level_keys(text: &str) -> Vec<String> {
    let table = tree::Tree::document(text, 0).unwrap_or_default();
    table.entries.into_keys().collect()
}
