//! Configuration files: TOML read by the declarations of [`airtcp_settings`], with diagnostics that
//! say file, line, key, what was expected and the nearest right name.
//!
//! Read in this order: [`read`] and [`Section`] (reading), [`document`] (documentation and JSON
//! Schema).
//!
//! How the parts play together: `tree` reads TOML (and overrides) into a tree that knows where
//! everything stands; a [`Section`] reads one table of it by its declaration; the caller makes its
//! model of sections. On the way they collect [`Problem`]s, which become [`Diagnostic`]s.

mod diagnostic;
pub mod document;
mod reader;
mod tree;

pub use diagnostic::{ConfigError, Diagnostic, Problem};
pub use reader::{Moment, Override, Section, read};
