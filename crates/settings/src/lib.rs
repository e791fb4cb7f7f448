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
//!
//! # Why not serde
//!
//! Measured in November 2026 with serde 1, serde_spanned 1.1 and toml 1.2, and with `units` for the
//! quantities: `link.policer` as a derived struct takes 10 lines, as many as here without its
//! sources, plus 31 for the two types with units, which all tables would share. It gives the same
//! caret at a wrong value. It reports one mistake at a time, here the second of two; it suggests no
//! nearest name; it knows neither bounds nor sources, so documentation and schema would need a
//! second declaration. Keys that depend on a choice lose their positions: in an internally tagged
//! enum a `Spanned` field does not parse at all, and without it every mistake points at the table.
//! A wrong key is then "unknown", without the choice that would give it an effect. Layers that
//! override each other key by key (`[tcp]`, a flow's `sender`, `--set`) and presets have no
//! counterpart. A diagnostics crate would replace `Diagnostic::render`, about 20 lines.

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
