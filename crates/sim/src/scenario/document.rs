//! The schema as documentation and as JSON Schema.

use super::schema::{End, Fallback, Field, Kind, SCENARIO, TableSchema};
use super::{schema, units, wlan};
use airtcp_core::Duration;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Every table of the schema, in the order in which they are first mentioned.
fn tables() -> Vec<&'static TableSchema> {
    fn visit(table: &'static TableSchema, seen: &mut Vec<&'static TableSchema>) {
        if seen.iter().any(|t| t.name == table.name) {
            return;
        }
        seen.push(table);
        for field in table.fields {
            if let Kind::Table(t)
            | Kind::Tables(t)
            | Kind::DurationOrTable(t)
            | Kind::WordOrTable(_, t) = &field.kind
            {
                visit(t, seen);
            }
        }
    }
    let mut seen = Vec::new();
    visit(&SCENARIO, &mut seen);
    visit(&schema::EMULATED_LINK, &mut seen);
    seen
}

const INTRODUCTION: &str = r#"# The scenario file

<!-- Generated from the schema. Do not edit: `cargo run -p airtcp-cli -- schema --markdown > docs/scenario.md` -->

A scenario is a TOML file: nodes, links between them, wireless cells, TCP flows and cross traffic. Quantities are strings with a unit;
a bare number where a unit is needed is refused, and so are unknown keys, keys that have no effect beside
another, and values that cannot be.

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
mss = "1000 B"
recovery = "newreno"

[[flow]]
from = "FH"
to = "MH"
```

`airtcp run FILE --set PATH=VALUE` overrides single keys: the path is dotted, elements of arrays go by
their name or their index (`link.BS-MH.loss.p=0.02`, `flow.0.bytes=1 MB`, `tcp.recovery=reno`), the value
is TOML or a bare string. A choice made by `--set` (or by a flow's `sender` over `[tcp]`) silences keys that
belonged to the earlier choice: `--set tcp.recovery=sack` runs a file that says `recovery = "reno"` and
`avoid-multi-fr = true`.

"#;

/// `docs/scenario.md`.
pub fn markdown() -> String {
    let mut out = INTRODUCTION.to_owned();
    let units = [
        ("Durations", units::DURATION),
        ("Rates", units::RATE),
        ("Sizes", units::SIZE),
        ("Queues", units::PACKETS),
    ];
    let measures = [
        ("Lengths", &units::LENGTH),
        ("Powers", &units::POWER),
        ("Frequencies", &units::FREQUENCY),
    ];
    for (what, units) in units {
        let names: Vec<String> = units.iter().map(|(name, _)| format!("`{name}`")).collect();
        let _ = writeln!(out, "- {what}: {}.", names.join(", "));
    }
    for (what, measure) in measures {
        let names: Vec<String> = measure.names().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(out, "- {what}: {}.", names.join(", "));
    }
    out.push_str("- Names: 1 to 64 letters, digits, `-` or `_`.\n");
    out.push_str("\n`k`, `M`, `G` are powers of 1000; `KiB`, `MiB`, `GiB` powers of 1024.\n");
    for table in tables() {
        let _ = write!(out, "\n## {}\n\n{}\n\n", table.name, table.about);
        out.push_str("| key | type | default | meaning | source |\n|---|---|---|---|---|\n");
        for field in table.fields {
            out.push_str(&row(field));
        }
        if std::ptr::eq(table, &schema::WLAN) {
            out.push_str(&presets());
        }
    }
    out
}

/// What the presets of a cell say for each key.
fn presets() -> String {
    let presets = wlan::PRESETS.map(|(_, preset)| wlan::keys(&preset()));
    let names = wlan::PRESETS.map(|(name, _)| format!("`{name}`"));
    let mut out = format!("\n| key | {} |\n|---|---|---|---|---|\n", names.join(" | "));
    for field in schema::WLAN.fields {
        let value = |keys: &Vec<(&str, String)>| {
            keys.iter().find(|(key, _)| *key == field.key).map(|(_, value)| value.clone())
        };
        let values = presets.each_ref().map(value);
        if values.iter().any(Option::is_some) {
            let values = values.map(Option::unwrap_or_default);
            let _ = writeln!(out, "| `{}` | {} |", field.key, values.join(" | "));
        }
    }
    out
}

fn row(field: &Field) -> String {
    let default = match field.fallback {
        Fallback::Required => "**required**".to_owned(),
        Fallback::Is(text) => format!("`{text}`"),
        Fallback::Absent(text) => text.to_owned(),
    };
    let mut meaning = field.meaning.to_owned();
    if let Kind::Choice(words) | Kind::ChoiceOrSegments(words) = &field.kind {
        for (word, what) in *words {
            let _ = write!(meaning, "<br>`{word}`: {what}");
        }
    }
    if let Some(only) = field.only {
        let values: Vec<String> =
            only.values.iter().map(|v| format!("`{} = {v:?}`", only.key)).collect();
        let _ = write!(meaning, " Only with {}.", values.join(" or "));
    }
    match field.end {
        End::Both => {}
        End::Sender => meaning.push_str(" Matters to a flow's sender."),
        End::Receiver => meaning.push_str(" Matters to a flow's receiver."),
    }
    let cells = [
        format!("`{}`", field.key),
        type_name(&field.kind),
        default,
        meaning,
        field.source.to_owned(),
    ];
    format!("| {} |\n", cells.map(|c| c.replace('|', "\\|")).join(" | "))
}

fn type_name(kind: &Kind) -> String {
    match kind {
        Kind::Choice(_) => "choice".to_owned(),
        Kind::ChoiceOrSegments(_) => "choice, or segments".to_owned(),
        Kind::Table(t) => format!("table [{}](#{})", t.name, anchor(t.name)),
        Kind::Tables(t) => format!("array of tables [{}](#{})", t.name, anchor(t.name)),
        Kind::DurationOrTable(t) => {
            format!("duration, or table [{}](#{})", t.name, anchor(t.name))
        }
        Kind::WordOrTable(word, t) => {
            format!("`{word}`, or table [{}](#{})", t.name, anchor(t.name))
        }
        Kind::Duration { min, max } => {
            let above = if min.is_zero() { "" } else { ", above 0" };
            let at_most =
                if *max == Duration::MAX { String::new() } else { format!(", at most {max}") };
            format!("duration{above}{at_most}")
        }
        Kind::Rate => "rate".to_owned(),
        Kind::Size { min, max: u64::MAX } => format!("size, at least {min} B"),
        Kind::Size { min, max } => format!("size, {min} to {max} B"),
        Kind::Measure(measure) => measure.what.trim_start_matches("a ").to_owned(),
        Kind::Point => "array of two lengths".to_owned(),
        Kind::Packets => "packets".to_owned(),
        Kind::QueueLimit => "packets or size".to_owned(),
        Kind::Integer { min, max } => format!("integer, {min} to {max}"),
        Kind::Number { min, max, above: true } => format!("number, above {min}, at most {max}"),
        Kind::Number { min, max, above: false } => format!("number, {min} to {max}"),
        Kind::Bool => "boolean".to_owned(),
        Kind::Name => "name".to_owned(),
        Kind::Node => "node".to_owned(),
        Kind::Nodes => "array of nodes".to_owned(),
        Kind::NodePair => "array of two nodes".to_owned(),
        Kind::DurationPair => "array of two durations".to_owned(),
        Kind::Intervals => "array of `[start, end]`".to_owned(),
        Kind::Ordinals => "array of integers".to_owned(),
        Kind::WordOr(word, inner) => format!("`{word}`, or {}", type_name(inner)),
    }
}

/// The anchor GitHub gives a heading.
fn anchor(heading: &str) -> String {
    heading.replace(['.', ','], "").replace(' ', "-")
}

/// The schema as JSON Schema (draft 2020-12).
///
/// It covers structure, types and single values; what only shows when several keys are seen together is
/// checked by [`super::Scenario::parse`].
pub fn json_schema() -> Value {
    let definitions: Map<String, Value> =
        tables().into_iter().map(|t| (t.name.to_owned(), table_schema(t))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "airtcp scenario",
        "$ref": reference(&SCENARIO),
        "$defs": definitions,
    })
}

fn reference(table: &TableSchema) -> String {
    format!("#/$defs/{}", table.name.replace(' ', "%20"))
}

fn table_schema(table: &TableSchema) -> Value {
    let properties: Map<String, Value> =
        table.fields.iter().map(|f| (f.key.to_owned(), field_schema(f))).collect();
    // A key that is required beside one choice only is not required of every table.
    let required: Vec<&str> = table
        .fields
        .iter()
        .filter(|f| matches!(f.fallback, Fallback::Required) && f.only.is_none())
        .map(|f| f.key)
        .collect();
    json!({
        "type": "object",
        "description": table.about,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn field_schema(field: &Field) -> Value {
    let mut schema = kind_schema(&field.kind);
    let description = match field.source {
        "" => field.meaning.to_owned(),
        source => format!("{} ({source})", field.meaning),
    };
    schema["description"] = description.into();
    if let Fallback::Is(text) = field.fallback {
        schema["default"] = match field.kind {
            Kind::Bool | Kind::Integer { .. } | Kind::Number { .. } => {
                text.parse().unwrap_or(Value::Null)
            }
            _ => text.into(),
        };
    }
    schema
}

fn quantity(units: &[units::Unit]) -> Value {
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
    json!({ "type": "string", "pattern": format!(r"^\d+(\.\d+)?\s*({})$", names.join("|")) })
}

fn words(words: &[(&str, &str)]) -> Value {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    json!({ "enum": words })
}

fn kind_schema(kind: &Kind) -> Value {
    let node = || json!({ "type": "string" });
    match kind {
        Kind::Name => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" }),
        Kind::Node => node(),
        Kind::Nodes => json!({ "type": "array", "items": node(), "minItems": 1 }),
        Kind::NodePair => json!({ "type": "array", "items": node(), "minItems": 2, "maxItems": 2 }),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Integer { min, max } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        Kind::Number { min, max, above: true } => {
            json!({ "type": "number", "exclusiveMinimum": min, "maximum": max })
        }
        Kind::Number { min, max, above: false } => {
            json!({ "type": "number", "minimum": min, "maximum": max })
        }
        Kind::Duration { .. } => quantity(units::DURATION),
        Kind::Rate => quantity(units::RATE),
        Kind::Size { .. } => quantity(units::SIZE),
        Kind::Measure(measure) => measure_schema(measure),
        Kind::Point => {
            let end = measure_schema(&units::LENGTH);
            json!({ "type": "array", "items": end, "minItems": 2, "maxItems": 2 })
        }
        Kind::Packets => quantity(units::PACKETS),
        Kind::QueueLimit => quantity(&[units::PACKETS, units::SIZE].concat()),
        Kind::Choice(list) => words(list),
        Kind::ChoiceOrSegments(list) => {
            json!({ "anyOf": [words(list), quantity(units::SEGMENTS)] })
        }
        Kind::WordOr(word, inner) => json!({ "anyOf": [{ "const": word }, kind_schema(inner)] }),
        Kind::DurationPair => pair(),
        Kind::Intervals => json!({ "type": "array", "items": pair() }),
        Kind::Ordinals => json!({
            "type": "array", "items": { "type": "integer", "minimum": 0 }, "uniqueItems": true,
        }),
        Kind::Table(t) => json!({ "$ref": reference(t) }),
        Kind::Tables(t) => {
            json!({ "type": "array", "items": { "$ref": reference(t) }, "minItems": 1 })
        }
        Kind::WordOrTable(word, t) => {
            json!({ "anyOf": [{ "const": word }, { "$ref": reference(t) }] })
        }
        Kind::DurationOrTable(t) => {
            json!({ "anyOf": [quantity(units::DURATION), { "$ref": reference(t) }] })
        }
    }
}

fn measure_schema(measure: &units::Measure) -> Value {
    let names: Vec<&str> = measure.names().collect();
    let pattern = format!(r"^[-+]?\d+(\.\d+)?(e[-+]?\d+)?\s*({})$", names.join("|"));
    json!({ "type": "string", "pattern": pattern })
}

fn pair() -> Value {
    let end = quantity(units::DURATION);
    json!({ "type": "array", "items": end, "minItems": 2, "maxItems": 2 })
}
