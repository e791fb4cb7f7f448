//! Scenarios: the TOML schema, its diagnostics, and the resolved model.
//!
//! How the parts play together: `tree` reads TOML (and `--set` overrides) into a tree that knows where
//! everything stands; `schema` says once which keys there are, of what type, with which default and
//! meaning; `reader` reads tables by the schema; `resolve` (cells: `wlan`) turns them into [`model`]. On the way they
//! collect [`Diagnostic`]s. `document` makes the documentation and the JSON Schema from `schema`.

mod diagnostic;
mod document;
pub mod model;
mod reader;
mod resolve;
mod schema;
#[cfg(test)]
mod tests;
mod tree;
mod units;
mod wlan;

pub use diagnostic::{Diagnostic, ScenarioError};
pub use document::{json_schema, markdown};
pub use model::{EmulatedLink, Override, Scenario};

impl Scenario {
    /// Reads a scenario from the text of a TOML file.
    ///
    /// `source_name` is what diagnostics call the text (the file's path); the scenario's name defaults to
    /// its stem. Each override is a dotted path (`link.BS-MH.loss.p`, elements of arrays by name or by
    /// index) and a value in TOML syntax or a bare string; it is applied to the text's tree before
    /// anything is resolved, later ones over earlier ones.
    ///
    /// # Errors
    /// Everything that is wrong with the text and the overrides, as far as one mistake does not hide
    /// another.
    pub fn parse(
        source_name: &str,
        text: &str,
        overrides: &[(String, String)],
    ) -> Result<Self, ScenarioError> {
        resolve::parse(source_name, text, overrides)
    }
}

impl EmulatedLink {
    /// Reads the link of the emulator from the text of a TOML file: the keys of a scenario's `[[link]]`, and
    /// tables `up` and `down` for what differs in one direction. Overrides as in [`Scenario::parse`].
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn parse(
        source_name: &str,
        text: &str,
        overrides: &[Override],
    ) -> Result<Self, ScenarioError> {
        resolve::parse_link(source_name, text, overrides)
    }
}

/// Reads a duration as scenarios write it (`20 ms`).
///
/// # Errors
/// What was expected.
pub fn duration(text: &str) -> Result<airtcp_core::Duration, String> {
    let nanos = units::parse(text, units::DURATION);
    nanos
        .map(airtcp_core::Duration::from_nanos)
        .map_err(|_| "expected a duration, such as 20 ms".to_owned())
}
