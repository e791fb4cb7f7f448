//! Declarations of settings: key, unit, default, bounds, prose and conversion, once, beside the
//! struct they fill.
//!
//! Read in this order: [`settings!`], [`alternatives!`] and [`choice!`] (structs, enums with data
//! and plain enums, declared with their keys); [`schema`] (what a declaration is made of);
//! [`Value`] and [`Kind`](schema::Kind) (how one value is read and shown); [`Reader`] (where values
//! come from).
//!
//! The crate knows no file format. `airtcp-config` reads TOML according to these declarations and
//! makes diagnostics, documentation and JSON Schema from them; `airtcp-record` reads and writes
//! recordings by them.

mod kind;
mod macros;
mod reader;
pub mod schema;
pub mod units;
mod value;

pub use kind::{Mistake, any_of};
#[doc(hidden)]
pub use macros::{kebab, read, show_table};
pub use reader::{InTable, Reader, Settings};
pub use value::{Decoded, Name, PacketsOrSize, Spot, Value, WordOrSegments};
