//! Scenarios: the TOML schema, its diagnostics, and the resolved model.

pub mod model;

pub use model::Scenario;
