//! The schema as documentation and as JSON Schema.

use super::SCENARIO;
use super::wlan::WLAN;
use airtcp_config::document;
use airtcp_net::wifi::config::MEASURES;
use airtcp_net::wifi::preset::Preset;
use airtcp_routing::config::Preset as _;
use airtcp_routing::{RoutingConfig, aodv, dsr};
use airtcp_settings::schema::Table;
use airtcp_settings::{InTable, Settings, units};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::preset as tcp;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const INTRODUCTION: &str = r#"# The scenario file

<!-- Generated from the schema. Do not edit: `cargo run -p airtcp-cli -- schema --markdown > docs/scenario.md` -->

A scenario is a TOML file: nodes, links between them, wireless cells, TCP flows and cross traffic. Quantities are strings with a unit;
a bare number where a unit is needed is refused. So are unknown keys, keys that have no effect, and impossible
values.

```toml
duration = "20 s"

[[node]]
name = "FH"
[[node]]
name = "BS"
[[node]]
name = "MH"

[[link]]
between = ["FH", "BS"]
rate = "1 Mbit/s"
delay = "5 ms"

[[link]]
between = ["BS", "MH"]
rate = "250 kbit/s"
delay = "170 ms"
loss = { kind = "bernoulli", p = 0.01 }

[tcp]
congestion = "reno"

[[flow]]
from = "FH"
to = "MH"
```

`airtcp run FILE --set PATH=VALUE` overrides single keys: the path is dotted, elements of arrays go by
their name or their index (`link.BS-MH.loss.p=0.02`, `flow.0.bytes=1 MB`, `tcp.recovery=reno`), the value
is TOML or a bare string. A choice made by `--set` (or by a flow's `sender` over `[tcp]`) silences keys that
belonged to the earlier choice: `--set tcp.recovery=sack` runs a file that says `recovery = "reno"` and
`avoid-multi-fr = true`.

A scenario that says nothing of TCP has the sender and receiver of Linux: `tcp.preset = "linux"`. Another preset is the
whole of another TCP; `preset = "rfc"` is the plain one of the RFCs, which scenarios of old papers need. What an
endpoint does is, in this order, as `--set` says, as the flow's `sender` or `receiver` says, as `[tcp]` says, as the
preset says, by default. A flow's `sender.preset` or `receiver.preset` replaces that of `[tcp]` at this end, and the
other keys of `[tcp]` still apply. A key of the preset that has no effect beside what the file chooses is silent; one
that the file says is refused.

"#;

/// The text of `docs/scenario.md`.
pub fn markdown() -> String {
    let mut out = INTRODUCTION.to_owned();
    let measures =
        [&[("Lengths", &units::LENGTH), ("Speeds", &units::SPEED)], &MEASURES[..]].concat();
    out.push_str(&document::markdown_link_units());
    for (what, measure) in measures {
        out.push_str(&document::markdown_units(what, measure.names()));
    }
    out.push_str(document::MARKDOWN_NAMES);
    for table in document::tables(&SCENARIO) {
        out.push_str(&document::markdown_table(table));
        if std::ptr::eq(table, &WLAN) {
            let values = Preset::ALL.map(|preset| (preset.word(), written(&preset.config())));
            out.push_str(&presets(&keys(table), values));
        }
        if std::ptr::eq(table, &tcp::TABLE) {
            let values = tcp::Preset::ALL.map(|p| (p.word(), endpoint(&p.config())));
            out.push_str(
                "\nWhat the presets set; other keys have their defaults in all of them:\n",
            );
            out.push_str(&presets(&set(&values, &endpoint(&TcpConfig::default())), values));
        }
        if table.name == RoutingConfig::TABLE.name {
            let values = aodv::Preset::ALL.map(|p| (p.word(), written(&p.config())));
            out.push_str("\nThe presets of AODV:\n");
            out.push_str(&presets(&keys(table), values));
            let values = dsr::Preset::ALL.map(|p| (p.word(), written(&p.config())));
            out.push_str("\nThe presets of DSR:\n");
            out.push_str(&presets(&keys(table), values));
        }
    }
    out
}

/// The keys of a table, in its order.
fn keys(table: &Table) -> Vec<String> {
    table.fields().iter().map(|field| field.key.to_owned()).collect()
}

/// A table of the presets' values for each of these keys that they have.
fn presets<const N: usize>(keys: &[String], presets: [(&str, Written); N]) -> String {
    let names = presets.each_ref().map(|(name, _)| format!("`{name}`"));
    let mut out = format!("\n| key | {} |\n|---{}|\n", names.join(" | "), "|---".repeat(N));
    let mut shown: Vec<&str> = Vec::new();
    for key in keys {
        let values = presets.each_ref().map(|(_, keys)| keys.get(key).cloned());
        if values.iter().any(Option::is_some) && !shown.contains(&key.as_str()) {
            let values = values.map(Option::unwrap_or_default);
            let _ = writeln!(out, "| `{key}` | {} |", values.join(" | "));
            shown.push(key);
        }
    }
    out
}

/// Values by their keys.
type Written = BTreeMap<String, String>;

/// The keys and values of settings.
fn written(settings: &impl Settings) -> Written {
    let mut keys = Vec::new();
    settings.write(&mut keys);
    keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The keys and values of an endpoint, those of its larger tables one by one.
fn endpoint(tcp: &TcpConfig) -> Written {
    let mut keys = written(tcp);
    for (table, inner) in
        [("rto", written(&tcp.rto)), ("persist", written(&tcp.persist)), ("ack", written(&tcp.ack))]
    {
        keys.remove(table);
        keys.extend(inner.into_iter().map(|(key, value)| (format!("{table}.{key}"), value)));
    }
    keys
}

/// The keys for which some preset has a value that is not the default.
fn set<const N: usize>(presets: &[(&str, Written); N], default: &Written) -> Vec<String> {
    let all = presets.iter().flat_map(|(_, keys)| keys);
    let set = all.filter(|(key, value)| default.get(*key) != Some(*value));
    set.map(|(key, _)| key.clone()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The schema as JSON Schema (draft 2020-12).
///
/// It covers structure, types and single values; [`super::Scenario::parse`] checks constraints that
/// involve several keys.
pub fn json_schema() -> serde_json::Value {
    document::json_schema("airtcp scenario", &SCENARIO)
}
