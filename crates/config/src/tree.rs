//! The TOML text as a tree with the position of each key and value, and overrides on it.

use crate::diagnostic::Problem;
use airtcp_settings::Spot;
use airtcp_settings::schema::Table as Schema;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml_datetime::Datetime;

/// A value and its position.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) value: Value,
    pub(crate) spot: Spot,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i128),
    Float(f64),
    Bool(bool),
    Datetime(Datetime),
    Array(Vec<Tree>),
    Table(Table),
}

/// A TOML table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) entries: BTreeMap<String, Entry>,
}

/// A key, its position, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key_spot: Spot,
    pub(crate) tree: Tree,
}

/// A text with more of them is hardly TOML.
const MOST_SYNTAX_ERRORS: usize = 8;

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Tree> {
        self.entries.get(key).map(|e| &e.tree)
    }
}

impl Tree {
    /// The tree of a TOML document, or its syntax errors: all, or the first if there are so many
    /// that it is hardly TOML.
    pub(crate) fn document(text: &str, source: usize) -> Result<Table, Vec<Problem>> {
        let (document, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            return Ok(table(document.into_inner(), &|span| Spot {
                source,
                start: span.start,
                end: span.end,
            }));
        }
        let shown = if errors.len() > MOST_SYNTAX_ERRORS { 1 } else { errors.len() };
        let problem = |e: &toml::de::Error| {
            let span = e.span().unwrap_or_default();
            let spot = Spot { source, start: span.start, end: span.end };
            let more = match errors.len() - shown {
                0 => String::new(),
                more => format!(" (and {more} more mistakes)"),
            };
            Problem::new(spot, "", format!("not valid TOML: {}{more}", e.message()))
        };
        Err(errors.iter().take(shown).map(problem).collect())
    }

    /// A description of this value for a message.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Text(s) => format!("{s:?}"),
            Value::Integer(n) => n.to_string(),
            Value::Float(x) => x.to_string(),
            Value::Bool(b) => b.to_string(),
            Value::Datetime(_) => "a date or time".to_owned(),
            Value::Array(_) => "an array".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }
    pub(crate) fn as_table(&self) -> Option<&Table> {
        if let Value::Table(t) = &self.value { Some(t) } else { None }
    }
    fn as_text(&self) -> Option<&str> {
        if let Value::Text(s) = &self.value { Some(s) } else { None }
    }
}

type Spotter<'a> = &'a dyn Fn(std::ops::Range<usize>) -> Spot;

fn table(from: DeTable<'_>, spot: Spotter<'_>) -> Table {
    let entry = |(key, value): (Spanned<std::borrow::Cow<'_, str>>, Spanned<DeValue<'_>>)| {
        let key_spot = spot(key.span());
        (key.into_inner().into_owned(), Entry { key_spot, tree: tree(value, spot) })
    };
    Table { entries: from.into_iter().map(entry).collect() }
}

fn tree(from: Spanned<DeValue<'_>>, spot: Spotter<'_>) -> Tree {
    let at = spot(from.span());
    let value = match from.into_inner() {
        DeValue::String(s) => Value::Text(s.into_owned()),
        DeValue::Integer(n) => {
            // No value needs more than 64 bits; a larger number fails its range check.
            Value::Integer(i128::from_str_radix(n.as_str(), n.radix()).unwrap_or(i128::MAX))
        }
        DeValue::Float(x) => Value::Float(x.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(b) => Value::Bool(b),
        DeValue::Datetime(d) => Value::Datetime(d),
        DeValue::Array(a) => Value::Array(a.into_iter().map(|v| tree(v, spot)).collect()),
        DeValue::Table(t) => Value::Table(table(t, spot)),
    };
    Tree { value, spot: at }
}

/// The name of the element `tree` of an array of tables: its `name`, or else the values of the keys
/// `named_by`. Overrides and diagnostics refer to it by this name.
pub(crate) fn element_name(named_by: &[&str], tree: &Tree) -> Option<String> {
    let table = tree.as_table()?;
    if let Some(name) = table.get("name") {
        return name.as_text().map(str::to_owned);
    }
    let mut parts = Vec::new();
    for key in named_by {
        match &table.get(key)?.value {
            Value::Text(text) => parts.push(text.as_str()),
            Value::Array(texts) => {
                for text in texts {
                    parts.push(text.as_text()?);
                }
            }
            _ => return None,
        }
    }
    (!parts.is_empty()).then(|| parts.join("-"))
}

/// The text under which the override `path=value` is kept and shown.
pub(crate) fn override_text(path: &str, value: &str) -> String {
    format!("{path}={value}")
}

/// Sets the value at a dotted path. Steps through an array are an element's name or its index.
/// Missing tables are created; whether their keys exist is checked when the whole tree is read.
pub(crate) fn set(
    root: &mut Table,
    schema: &'static Schema,
    source: usize,
    path: &str,
    value: &str,
) -> Result<(), Problem> {
    let at = |start, end| Spot { source, start, end };
    let path_spot = at(0, path.len());
    let keys = dotted_keys(path).ok_or_else(|| {
        Problem::new(path_spot, "", "not a path").expected("dotted keys, such as link.BS-MH.loss.p")
    })?;
    let offset = path.len() + 1;
    let new = override_value(value, &|span| at(offset + span.start, offset + span.end));
    let new = new.unwrap_or_else(|| Tree {
        value: Value::Text(value.to_owned()),
        spot: at(offset, offset + value.len()),
    });
    let (last, parents) = keys.split_last().expect("a path has at least one key");
    let empty = || Entry {
        key_spot: path_spot,
        tree: Tree { value: Value::Table(Table::default()), spot: path_spot },
    };
    // The root is a table and every step below it is a tree, so the root is handled separately.
    let Some((first, between)) = parents.split_first() else {
        root.entries.insert(last.clone(), Entry { key_spot: path_spot, tree: new });
        return Ok(());
    };
    let mut here = &mut root.entries.entry(first.clone()).or_insert_with(empty).tree;
    let mut walked = first.clone();
    for key in between {
        let description = here.describe();
        here = match &mut here.value {
            Value::Table(t) => &mut t.entries.entry(key.clone()).or_insert_with(empty).tree,
            Value::Array(elements) => element(elements, schema, &walked, key, path_spot)?,
            _ => return Err(not_a_container(&description, &walked, path_spot)),
        };
        walked = format!("{walked}.{key}");
    }
    let description = here.describe();
    match &mut here.value {
        Value::Table(t) => {
            t.entries.insert(last.clone(), Entry { key_spot: path_spot, tree: new });
        }
        Value::Array(elements) => *element(elements, schema, &walked, last, path_spot)? = new,
        _ => return Err(not_a_container(&description, &walked, path_spot)),
    }
    Ok(())
}

fn not_a_container(description: &str, walked: &str, spot: Spot) -> Problem {
    Problem::new(spot, walked, format!("is {description}, which has no keys"))
        .expected(format!("{walked} to be set as a whole"))
}

fn element<'t>(
    elements: &'t mut [Tree],
    schema: &'static Schema,
    walked: &str,
    key: &str,
    spot: Spot,
) -> Result<&'t mut Tree, Problem> {
    // Below the top level, elements have only the names they set themselves.
    let field = schema.fields().into_iter().find(|field| field.key == walked);
    let named_by = field.map_or(&[][..], |field| field.named_by);
    let names: Vec<Option<String>> = elements.iter().map(|e| element_name(named_by, e)).collect();
    let by_name = names.iter().position(|n| n.as_deref() == Some(key));
    match by_name.or_else(|| key.parse().ok()).filter(|i| *i < names.len()) {
        Some(i) => Ok(&mut elements[i]),
        None => {
            let problem = Problem::new(spot, walked, format!("has no element `{key}`"));
            let known: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
            Err(if known.is_empty() {
                problem.expected(format!("an index below {}", names.len()))
            } else {
                problem.nearest(key, known)
            })
        }
    }
}

/// The keys of a dotted path in TOML's syntax (`link."a b".rate`).
fn dotted_keys(path: &str) -> Option<Vec<String>> {
    let text = format!("{path} = 0");
    let document = DeTable::parse(&text).ok()?.into_inner();
    let mut keys = Vec::new();
    let mut level = document;
    loop {
        let mut entries = level.into_iter();
        let (Some((key, value)), None) = (entries.next(), entries.next()) else { return None };
        keys.push(key.into_inner().into_owned());
        level = match value.into_inner() {
            DeValue::Table(t) => t,
            DeValue::Integer(_) => return Some(keys),
            _ => return None,
        };
    }
}

/// A value in TOML's syntax; `None` if it is not, and so a bare string.
fn override_value(value: &str, spot: Spotter<'_>) -> Option<Tree> {
    const KEY: &str = "x=";
    let text = format!("{KEY}{value}");
    let document = DeTable::parse(&text).ok()?.into_inner();
    let mut entries = document.into_iter();
    let (Some((key, value)), None) = (entries.next(), entries.next()) else { return None };
    let shifted = |span: std::ops::Range<usize>| spot(span.start - KEY.len()..span.end - KEY.len());
    (key.span() == (0..1)).then(|| tree(value, &shifted))
}
