//! Scenarios: the TOML schema, its diagnostics, and the resolved model.
//!
//! How the parts play together: `schema` says once which keys there are, of what type, with which default and
//! meaning; [`airtcp_config`] reads the file (and `--set` overrides) by it; `resolve` (cells: `wlan`) turns its
//! sections into [`model`]. On the way they collect [`Diagnostic`]s. `document` makes the documentation and the
//! JSON Schema from `schema`.

mod document;
pub mod model;
mod resolve;
mod schema;
#[cfg(test)]
mod tests;
mod units;
mod wlan;

pub use airtcp_config::{ConfigError, Diagnostic, Override, duration};
pub use document::{json_schema, markdown};
pub use model::{EmulatedDirection, EmulatedLink, Scenario};

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
    ) -> Result<Self, ConfigError> {
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
    ) -> Result<Self, ConfigError> {
        resolve::parse_link(source_name, text, overrides)
    }
}
