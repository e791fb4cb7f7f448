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
//! Measured with serde 1.0.229, serde_spanned 1.1.3 and toml 1.2.2, and with [`units`] for the
//! quantities. `link.policer` as a derived struct takes 9 lines instead of 14, plus 31 for the two
//! types with units, which all tables would share. A wrong value gets the same caret. But:
//!
//! - One mistake is reported at a time (of two, the one in the later line), and no nearest name.
//! - Bounds, sources and meanings are not data: documentation and JSON Schema would need a second
//!   declaration.
//! - Keys that depend on a choice lose their positions. In an internally tagged enum a `Spanned`
//!   field does not parse at all; without it, every mistake points at the head of the table. A key
//!   of another variant is "unknown", without the choice that would give it an effect.
//! - Tables that override each other key by key (`[tcp]`, a flow's `sender`, `--set`) and presets
//!   have no counterpart.
//!
//! A crate for diagnostics would replace `Diagnostic::render` of `airtcp-config`, 20 lines.
//!
//! # Example
//!
//! ```
//! use airtcp_core::{Bytes, Duration};
//! use airtcp_settings::schema::POSITIVE_TIME;
//! use airtcp_settings::{InTable, settings};
//!
//! settings! {
//!     /// A buffer in front of a radio.
//!     #[derive(Clone, Debug, PartialEq)]
//!     #[table("buffer")]
//!     pub struct BufferConfig {
//!         /// Room for packets.
//!         pub size: Bytes = Bytes(64_000),
//!         /// Longest stay of a packet.
//!         #[kind = POSITIVE_TIME]
//!         pub longest_stay: Duration = Duration::from_millis(200),
//!     }
//! }
//! assert_eq!(BufferConfig::default().size, Bytes(64_000));
//! let keys: Vec<_> = BufferConfig::TABLE.fields().iter().map(|field| field.key).collect();
//! assert_eq!(keys, ["size", "longest-stay"]);
//! ```

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
