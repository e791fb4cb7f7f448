//! The schema as documentation and as JSON Schema.

use super::schema::GATEWAY;
use airtcp_config::document;
use airtcp_settings::units;

const INTRODUCTION: &str = r#"# The gateway's configuration file

<!-- Generated from the schema. Do not edit: `cargo run -p airtcp-cli -- schema --gateway --markdown > docs/gateway-config.md` -->

A TOML file: the mobiles, the mechanism for each group, and where the link signals come from. Quantities are strings with a
unit; a bare number where a unit is needed is refused. So are unknown keys, keys that have no effect, and impossible
values. `airtcp gateway check-config FILE` says what a file would do, or what is wrong with it, and changes nothing.

The shortest useful file (examples/gateway.toml has more):

```toml
[[mobile]]
name = "vehicles"
addresses = ["10.8.0.0/24"]
```

"#;

/// The text of `docs/gateway-config.md`.
pub fn markdown() -> String {
    let mut out = INTRODUCTION.to_owned();
    for (what, units) in [("Durations", units::DURATION), ("Sizes", units::SIZE)] {
        out.push_str(&document::markdown_units(what, units.iter().map(|(name, _)| *name)));
    }
    out.push_str("- Dates and times: TOML's, with an offset from UTC and without quotes, such as `2026-05-01T06:30:00Z`.\n");
    out.push_str(document::MARKDOWN_NAMES);
    for table in document::tables(&GATEWAY) {
        out.push_str(&document::markdown_table(table));
    }
    out
}

/// The schema as JSON Schema (draft 2020-12).
///
/// It covers structure, types and single values; what only shows when several keys are seen
/// together, and texts such as addresses, are checked by [`super::GatewayConfig::parse`].
pub fn json_schema() -> serde_json::Value {
    document::json_schema("airtcp gateway", &GATEWAY)
}
