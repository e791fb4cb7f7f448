//! Configuration files: TOML read according to the declarations of [`airtcp_settings`], with
//! diagnostics that name file, line, key, what was expected and the nearest valid name.
//!
//! Read in this order: [`read`] and [`Section`] (reading), [`document`] (documentation and JSON
//! Schema).
//!
//! How the parts work together: `tree` reads TOML (and overrides) into a tree with the position of
//! everything. A [`Section`] reads one table of it according to its declaration; the caller builds
//! its model from sections. On the way they collect [`Problem`]s, which become [`Diagnostic`]s.
//!
//! # Example
//!
//! ```
//! use airtcp_config::{Section, read};
//! use airtcp_core::{DataRate, Duration};
//! use airtcp_settings::{Settings, settings};
//! use airtcp_settings::schema::{Key, POSITIVE_TIME, Table};
//!
//! settings! {
//!     /// A pipe.
//!     #[derive(Clone, Debug, PartialEq)]
//!     pub struct Pipe {
//!         /// Bits per second.
//!         pub rate: DataRate = DataRate::mbps(1),
//!         /// One way.
//!         #[kind = POSITIVE_TIME]
//!         pub delay: Duration = Duration::from_millis(5),
//!     }
//! }
//! static FILE: Table = Table::new("", "A pipe.", Pipe::KEYS);
//! let pipe = |top: &Section<'_>| Pipe::read(top, None);
//!
//! let read_pipe = read(&FILE, "a.toml", "rate = '8 Mbit/s'", &[], pipe)?;
//! assert_eq!(read_pipe, Pipe { rate: DataRate::mbps(8), delay: Duration::from_millis(5) });
//!
//! let error = read(&FILE, "a.toml", "dealy = '1 ms'", &[], pipe).unwrap_err().to_string();
//! assert!(error.starts_with("a.toml:1:1: dealy: unknown key (did you mean `delay`?)"), "{error}");
//! # Ok::<(), airtcp_config::ConfigError>(())
//! ```

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
