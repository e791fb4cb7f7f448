//! A schema as documentation and as JSON Schema.

use airtcp_core::Duration;
use airtcp_settings::schema::{Conditions, Count, Fallback, Field, Kind, Table, Way, Word};
use airtcp_settings::units;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Every table of a file, in the order in which they are first mentioned.
pub fn tables(file: &'static Table) -> Vec<&'static Table> {
    fn visit(table: &'static Table, seen: &mut Vec<&'static Table>) {
        if seen.iter().any(|t| t.name == table.name) {
            return;
        }
        seen.push(table);
        for field in table.fields() {
            if let Some(table) = field.kind.table() {
                visit(table, seen);
            }
        }
    }
    let mut seen = Vec::new();
    visit(file, &mut seen);
    seen
}

/// A line of Markdown that lists units: "- Durations: `ns`, `ms`."
pub fn markdown_units(what: &str, names: impl IntoIterator<Item = &'static str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    format!("- {what}: {}.\n", names.join(", "))
}

/// The units that links need, a line for each quantity.
pub fn markdown_link_units() -> String {
    let quantities = [
        ("Durations", units::DURATION),
        ("Rates", units::RATE),
        ("Sizes", units::SIZE),
        ("Queues", units::PACKETS),
    ];
    let lines = quantities.map(|(what, units)| markdown_units(what, units.iter().map(|u| u.0)));
    lines.concat()
}

/// The form of names, and the meaning of prefixes of units, in Markdown.
pub const MARKDOWN_NAMES: &str = "- Names: 1 to 64 letters, digits, `-` or `_`.\n\n\
    `k`, `M`, `G` are powers of 1000; `KiB`, `MiB`, `GiB` powers of 1024.\n";

/// A table of the file in Markdown, with its heading.
pub fn markdown_table(table: &Table) -> String {
    let mut out = format!("\n## {}\n\n{}\n\n", table.name, table.about);
    out.push_str("| key | type | default | meaning | source |\n|---|---|---|---|---|\n");
    for (field, conditions) in declarations(table) {
        out.push_str(&row(&field, &conditions));
    }
    out
}

/// The declarations of a table; one that is repeated under several conditions appears once, with
/// all of them.
fn declarations(table: &Table) -> Vec<(Field, Vec<Conditions>)> {
    let mut once: Vec<(Field, Vec<Conditions>)> = Vec::new();
    for field in table.fields() {
        let same = |(other, _): &&mut (Field, Vec<Conditions>)| {
            other.key == field.key && other.meaning == field.meaning
        };
        match once.iter_mut().find(same) {
            Some((_, all)) => all.push(field.only),
            None => once.push((field, vec![field.only])),
        }
    }
    once
}

fn row(field: &Field, conditions: &[Conditions]) -> String {
    let default = match field.fallback {
        Fallback::Required => "**required**".to_owned(),
        Fallback::Is(text) => format!("`{text}`"),
        Fallback::Value(text) => format!("`{}`", text()),
        Fallback::Or(otherwise, text) => format!("{otherwise}, or `{}`", text()),
        Fallback::Absent(text) => text.to_owned(),
    };
    let mut meaning = field.meaning.to_owned();
    for (word, what) in choices(&field.kind) {
        let _ = write!(meaning, "<br>`{word}`: {what}");
    }
    let ways = Conditions::ways(conditions.iter().copied());
    if !ways.iter().any(Vec::is_empty) {
        let ways: Vec<String> = ways.iter().map(|way| any_way(way)).collect();
        let _ = write!(meaning, " Only with {}.", ways.join(" or "));
    }
    if let Some(what) = field.matters_to {
        let _ = write!(meaning, " Matters to {what}.");
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

/// The words of each condition, in Markdown.
fn any_way(way: &[Way]) -> String {
    let condition = |Way { choice, words }: &Way| {
        let words: Vec<String> = words.iter().map(|w| format!("`{choice} = {w:?}`")).collect();
        words.join(" or ")
    };
    way.iter().map(condition).collect::<Vec<_>>().join(" and ")
}

/// The words of a kind.
fn choices(kind: &Kind) -> &'static [Word] {
    match kind {
        Kind::Choice(words) | Kind::ChoiceOrSegments(words) | Kind::ChoiceOrInteger(words, _) => {
            words
        }
        Kind::WordOr(_, inner) => choices(inner),
        _ => &[],
    }
}

fn type_name(kind: &Kind) -> String {
    match kind {
        Kind::Choice(_) => "choice".to_owned(),
        Kind::ChoiceOrSegments(_) => "choice, or segments".to_owned(),
        Kind::ChoiceOrInteger(_, max) => format!("choice, or integer up to {max}"),
        Kind::Table(t) => format!("table [{}](#{})", t.name, anchor(t.name)),
        Kind::Tables(t) => format!("array of tables [{}](#{})", t.name, anchor(t.name)),
        Kind::OrTable(inner, t) => {
            format!("{}, or table [{}](#{})", type_name(inner), t.name, anchor(t.name))
        }
        Kind::WordOrTable(word, t) => {
            format!("`{word}`, or table [{}](#{})", t.name, anchor(t.name))
        }
        Kind::Duration { min, max } => {
            let above = match min.as_nanos() {
                0 => String::new(),
                1 => ", above 0".to_owned(),
                _ => format!(", at least {min}"),
            };
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
        Kind::WholePackets => "packets".to_owned(),
        Kind::PacketsOrSize => "packets or size".to_owned(),
        Kind::Integer { min, max } => format!("integer, {min} to {max}"),
        Kind::Number { min, max, above: true } => format!("number, above {min}, at most {max}"),
        Kind::Number { min, max, above: false } => format!("number, {min} to {max}"),
        Kind::Bool => "boolean".to_owned(),
        Kind::Name => "name".to_owned(),
        Kind::Text(kind) => kind.name.to_owned(),
        Kind::Texts { of, count: Count::Some } => format!("array of {}", of.plural),
        Kind::Texts { of, count: Count::Two } => format!("array of two {}", of.plural),
        Kind::Moment => "date and time".to_owned(),
        Kind::DurationPair => "array of two durations".to_owned(),
        Kind::Intervals => "array of `[start, end]`".to_owned(),
        Kind::Waypoints => "array of `[time, x, y]`".to_owned(),
        Kind::Ordinals => "array of integers".to_owned(),
        Kind::WordOr(word, inner) => format!("`{word}`, or {}", type_name(inner)),
    }
}

/// The anchor GitHub gives a heading.
fn anchor(heading: &str) -> String {
    heading.replace(['.', ','], "").replace(' ', "-")
}

/// The schema of a file as JSON Schema (draft 2020-12).
///
/// It covers structure, types and single values; constraints that involve several keys are checked
/// when the file is read.
pub fn json_schema(title: &str, file: &'static Table) -> Value {
    let definitions: Map<String, Value> =
        tables(file).into_iter().map(|t| (t.name.to_owned(), table_schema(t))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "$ref": reference(file),
        "$defs": definitions,
    })
}

fn reference(table: &Table) -> String {
    format!("#/$defs/{}", table.name.replace(' ', "%20"))
}

fn table_schema(table: &Table) -> Value {
    let mut forms: Vec<(&str, Vec<Value>)> = Vec::new();
    for field in table.fields() {
        let form = field_schema(&field);
        match forms.iter_mut().find(|(key, _)| *key == field.key) {
            Some((_, forms)) if forms.contains(&form) => {}
            Some((_, forms)) => forms.push(form),
            None => forms.push((field.key, vec![form])),
        }
    }
    // A key may mean something else with each word of a choice.
    let any = |mut forms: Vec<Value>| match forms.len() {
        1 => forms.remove(0),
        _ => json!({ "anyOf": forms }),
    };
    let properties: Map<String, Value> =
        forms.into_iter().map(|(key, forms)| (key.to_owned(), any(forms))).collect();
    // A key required with one choice only is not required in every table.
    let required: Vec<&str> = table
        .fields()
        .iter()
        .filter(|f| matches!(f.fallback, Fallback::Required) && f.only.is_empty())
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
    if let Fallback::Is(_) | Fallback::Value(_) = field.fallback {
        let text = field.fallback.text().unwrap_or_default();
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
    let text = || json!({ "type": "string" });
    match kind {
        Kind::Name => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" }),
        Kind::Text(_) => text(),
        Kind::Texts { count: Count::Some, .. } => {
            json!({ "type": "array", "items": text(), "minItems": 1 })
        }
        Kind::Texts { count: Count::Two, .. } => {
            json!({ "type": "array", "items": text(), "minItems": 2, "maxItems": 2 })
        }
        // Tools that check TOML against a JSON Schema see date-times as strings.
        Kind::Moment => json!({ "type": "string", "format": "date-time" }),
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
        Kind::Packets | Kind::WholePackets => quantity(units::PACKETS),
        Kind::PacketsOrSize => quantity(&[units::PACKETS, units::SIZE].concat()),
        Kind::Choice(list) => words(list),
        Kind::ChoiceOrSegments(list) => {
            json!({ "anyOf": [words(list), quantity(units::SEGMENTS)] })
        }
        Kind::ChoiceOrInteger(list, max) => {
            json!({ "anyOf": [words(list), { "type": "integer", "minimum": 0, "maximum": max }] })
        }
        Kind::WordOr(word, inner) => json!({ "anyOf": [{ "const": word }, kind_schema(inner)] }),
        Kind::DurationPair => pair(),
        Kind::Intervals => json!({ "type": "array", "items": pair() }),
        Kind::Waypoints => {
            let (time, length) = (quantity(units::DURATION), measure_schema(&units::LENGTH));
            let items = [time, length.clone(), length];
            let waypoint = json!({
                "type": "array", "prefixItems": items, "minItems": 3, "maxItems": 3,
            });
            json!({ "type": "array", "items": waypoint, "minItems": 1 })
        }
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
        Kind::OrTable(inner, t) => {
            json!({ "anyOf": [kind_schema(inner), { "$ref": reference(t) }] })
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
