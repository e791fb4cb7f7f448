//! Reads tables by their [schema](crate::schema): unknown keys, types, units, ranges, keys that have no
//! effect beside another, defaults. What it finds wrong it collects and goes on.

use crate::diagnostic::{ConfigError, Problem, Source, Spot};
use crate::schema::{Count, Fallback, Field, Kind, TIME, TableSchema, TextKind};
use crate::tree::{self, Entry, Table, Tree, Value, element_name};
use crate::units::{self, Measure, QuantityError, Unit};
use airtcp_core::{Bytes, DataRate, Duration, Instant};
use std::cell::RefCell;
use std::fmt;

/// A key that a command-line option sets over the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// What diagnostics call it: `--rate`.
    pub option: String,
    /// Dotted path of the key.
    pub path: String,
    /// A value in TOML syntax or a bare string.
    pub value: String,
}

/// Reads a text and overrides, later ones over earlier ones, and makes something of the top level.
///
/// `source_name` is what diagnostics call the text. `resolve` gives `None` when it cannot make anything of
/// it, and has then reported why.
///
/// # Errors
/// Everything that is wrong with the text and the overrides, as far as one mistake does not hide another.
pub fn read<T>(
    schema: &'static TableSchema,
    source_name: &str,
    text: &str,
    overrides: &[Override],
    resolve: impl FnOnce(&Section<'_>) -> Option<T>,
) -> Result<T, ConfigError> {
    let mut sources = vec![Source { name: source_name.to_owned(), text: text.to_owned() }];
    sources.extend(overrides.iter().map(|Override { option, path, value }| Source {
        name: option.clone(),
        text: tree::override_text(path, value),
    }));
    let mut root =
        Tree::document(text, 0).map_err(|problems| ConfigError::new(problems, &sources))?;
    let problems = Problems::default();
    for (i, Override { path, value, .. }) in overrides.iter().enumerate() {
        if let Err(problem) = tree::set(&mut root, schema, i + 1, path, value) {
            problems.borrow_mut().push(problem);
        }
    }
    let spot = Spot::default();
    let layer = Layer { schema, table: &root, path: String::new(), spot };
    let top = Section::new(&problems, schema, vec![layer], spot, String::new());
    let resolved = resolve(&top);
    let problems = problems.into_inner();
    match resolved {
        Some(resolved) if problems.is_empty() => Ok(resolved),
        _ => Err(ConfigError::new(problems, &sources)),
    }
}

/// Where problems are collected.
type Problems = RefCell<Vec<Problem>>;

/// One table, or several that override each other key by key (`[tcp]` and a flow's `sender`).
#[derive(Debug)]
pub struct Section<'a> {
    problems: &'a Problems,
    schema: &'static TableSchema,
    /// Weakest first.
    layers: Vec<Layer<'a>>,
    /// Where the strongest layer stands, or what encloses it.
    spot: Spot,
    /// Dotted path of the strongest layer.
    path: String,
}

/// A table in a section.
#[derive(Debug)]
struct Layer<'a> {
    schema: &'static TableSchema,
    table: &'a Table,
    path: String,
    spot: Spot,
}

/// A key that is set, and by which layer.
#[derive(Clone, Copy)]
struct Found<'a> {
    entry: &'a Entry,
    layer: usize,
}

impl Found<'_> {
    /// `self` was chosen after `other`: by a stronger table, or by `--set`. What `other` says for another
    /// choice is then not a contradiction but no longer asked for.
    fn supersedes(self, other: Self) -> bool {
        self.layer > other.layer || self.entry.key_spot.source > other.entry.key_spot.source
    }
}

/// A name or another text, and where it stands.
#[derive(Clone, Debug)]
pub struct Name {
    /// As it is written.
    pub text: String,
    /// Where.
    pub spot: Spot,
}

/// A value that fits its kind.
#[derive(Clone, Debug)]
pub enum Decoded {
    /// The key is not there and has no default, or its value is the word that means so.
    Absent,
    /// [`Kind::Name`] and [`Kind::Text`].
    Name(Name),
    /// [`Kind::Texts`].
    Names(Vec<Name>),
    /// [`Kind::Bool`].
    Bool(bool),
    /// [`Kind::Integer`].
    Integer(u64),
    /// [`Kind::Number`], [`Kind::Measure`] and [`Kind::Packets`].
    Number(f64),
    /// [`Kind::Duration`].
    Duration(Duration),
    /// [`Kind::Moment`].
    Moment(Moment),
    /// [`Kind::Rate`].
    Rate(DataRate),
    /// [`Kind::Size`].
    Size(Bytes),
    /// [`Kind::PacketsOrSize`].
    PacketsOrSize(PacketsOrSize),
    /// [`Kind::Choice`].
    Word(&'static str),
    /// [`Kind::ChoiceOrSegments`].
    WordOrSegments(WordOrSegments),
    /// [`Kind::DurationPair`].
    Pair(Duration, Duration),
    /// [`Kind::Point`].
    Point(f64, f64),
    /// [`Kind::Intervals`].
    Intervals(Vec<(Instant, Instant)>),
    /// [`Kind::Ordinals`].
    Ordinals(Vec<u64>),
}

/// Seconds since 1970 (UTC), leap seconds not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

/// As RFC 3339 has it, in UTC.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = i64::try_from(self.0).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
        match moment {
            Some(moment) => moment.fmt(f),
            None => write!(f, "{} s after 1970", self.0),
        }
    }
}

/// A queue's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketsOrSize {
    /// In packets.
    Packets(u64),
    /// In bytes.
    Size(Bytes),
}

/// One of some words, or a number of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOrSegments {
    /// The word.
    Word(&'static str),
    /// The number, 1 to 65,535.
    Segments(u16),
}

/// Rust types that kinds decode to. A mismatch between a key's kind and the type it is asked for is a
/// mistake in the program, which every use of the key shows.
pub trait FromDecoded: Sized {
    /// `None` when it is of another kind.
    fn from_decoded(decoded: Decoded) -> Option<Self>;
}

macro_rules! from_decoded {
    ($($type:ty: $pattern:pat => $value:expr;)*) => {$(
        impl FromDecoded for $type {
            fn from_decoded(decoded: Decoded) -> Option<Self> {
                match decoded { $pattern => Some($value), _ => None }
            }
        }
    )*};
}
from_decoded! {
    Name: Decoded::Name(n) => n;
    Vec<Name>: Decoded::Names(n) => n;
    bool: Decoded::Bool(b) => b;
    f64: Decoded::Number(x) => x;
    u64: Decoded::Integer(n) => n;
    Duration: Decoded::Duration(d) => d;
    Instant: Decoded::Duration(d) => Instant::ZERO + d;
    DataRate: Decoded::Rate(r) => r;
    Bytes: Decoded::Size(b) => b;
    PacketsOrSize: Decoded::PacketsOrSize(l) => l;
    &'static str: Decoded::Word(w) => w;
    WordOrSegments: Decoded::WordOrSegments(w) => w;
    Moment: Decoded::Moment(m) => m;
    (Duration, Duration): Decoded::Pair(low, high) => (low, high);
    (f64, f64): Decoded::Point(x, y) => (x, y);
    Vec<(Instant, Instant)>: Decoded::Intervals(i) => i;
    Vec<u64>: Decoded::Ordinals(o) => o;
}
impl FromDecoded for u32 {
    fn from_decoded(decoded: Decoded) -> Option<Self> {
        u64::from_decoded(decoded).and_then(|n| n.try_into().ok())
    }
}
impl<T: FromDecoded> FromDecoded for Option<T> {
    fn from_decoded(decoded: Decoded) -> Option<Self> {
        match decoded {
            Decoded::Absent => Some(None),
            other => T::from_decoded(other).map(Some),
        }
    }
}

impl<'a> Section<'a> {
    /// Opens layered tables; without layers every key has its default.
    fn new(
        problems: &'a Problems,
        schema: &'static TableSchema,
        layers: Vec<Layer<'a>>,
        spot: Spot,
        path: String,
    ) -> Self {
        let section = Self { problems, schema, layers, spot, path };
        section.refuse_unknown_keys();
        section.refuse_keys_without_effect();
        section
    }

    fn refuse_unknown_keys(&self) {
        for layer in &self.layers {
            let known = |key: &str| layer.schema.fields.iter().any(|f| f.key == key);
            for (key, entry) in layer.table.entries.iter().filter(|(key, _)| !known(key)) {
                let keys = layer.schema.fields.iter().map(|f| f.key);
                let path = join(&layer.path, key);
                self.push(Problem::new(entry.key_spot, path, "unknown key").nearest(key, keys));
            }
        }
    }

    fn refuse_keys_without_effect(&self) {
        for field in self.schema.fields {
            let (Some(only), Some(set)) = (field.only, self.find(field.key)) else { continue };
            let choice = self.find(only.key);
            let word = match choice {
                // A wrong choice is reported where it is read.
                Some(found) => match &found.entry.tree.value {
                    Value::Text(word) => word.as_str(),
                    _ => continue,
                },
                None => match self.field(only.key).fallback {
                    Fallback::Is(word) => word,
                    _ => continue,
                },
            };
            if only.values.contains(&word) || choice.is_some_and(|c| c.supersedes(set)) {
                continue;
            }
            let values: Vec<String> = only.values.iter().map(|v| format!("{v:?}")).collect();
            let path = join(&self.layers[set.layer].path, field.key);
            let message = format!("has no effect with {} = {word:?}", only.key);
            let needed = format!("{} = {}", only.key, any_of(&values));
            self.push(Problem::new(set.entry.key_spot, path, message).expected(needed));
        }
    }

    /// How many problems there are so far, in the whole file.
    pub fn problems_found(&self) -> usize {
        self.problems.borrow().len()
    }

    /// Reports a problem.
    pub fn push(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    fn field(&self, key: &str) -> &'static Field {
        let field = self.schema.fields.iter().find(|f| f.key == key);
        field.unwrap_or_else(|| panic!("the schema of {} has no key {key}", self.schema.name))
    }

    fn find(&self, key: &str) -> Option<Found<'a>> {
        let mut layers = self.layers.iter().enumerate().rev();
        layers.find_map(|(layer, l)| l.table.entries.get(key).map(|entry| Found { entry, layer }))
    }

    /// The key is written somewhere.
    pub fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Starts a problem with the value of `key`, or with its absence.
    pub fn problem(&self, key: &str, message: impl Into<String>) -> Problem {
        match self.find(key) {
            Some(found) => {
                let path = join(&self.layers[found.layer].path, key);
                Problem::new(found.entry.tree.spot, path, message)
            }
            // What is missing is missing in the weakest layer: the others only override it.
            None => match self.layers.first() {
                Some(layer) => Problem::new(layer.spot, join(&layer.path, key), message),
                None => Problem::new(self.spot, join(&self.path, key), message),
            },
        }
    }

    /// Starts a problem with the whole table.
    pub fn problem_here(&self, message: impl Into<String>) -> Problem {
        Problem::new(self.spot, self.path.clone(), message)
    }

    /// Starts a problem with what stands at `spot`, a part of `key`.
    pub fn problem_at(&self, spot: Spot, key: &str, message: impl Into<String>) -> Problem {
        Problem::new(spot, join(&self.path, key), message)
    }

    /// The value of a key or its default; `None` when it is wrong or missing (which is then reported).
    pub fn get<T: FromDecoded>(&self, key: &str) -> Option<T> {
        let field = self.field(key);
        let decoded = match (self.find(key), field.fallback) {
            (Some(found), _) => {
                let path = join(&self.layers[found.layer].path, key);
                self.decode(&field.kind, &found.entry.tree, &path)?
            }
            (None, Fallback::Is(text)) => {
                let tree = Tree { value: default_value(&field.kind, text), spot: self.spot };
                self.decode(&field.kind, &tree, &join(&self.path, key))?
            }
            (None, Fallback::Absent(_)) => Decoded::Absent,
            (None, Fallback::Required) => {
                self.push(self.problem(key, "missing").expected(field.kind.describe()));
                return None;
            }
        };
        let value = T::from_decoded(decoded);
        assert!(
            value.is_some(),
            "{}: {key} is read as another type than its kind",
            self.schema.name
        );
        value
    }

    /// Reads a text found under `key` (of [`Kind::Text`] or [`Kind::Texts`]) by `parse`, which says what is
    /// wrong with it; that is then reported.
    pub fn parse<T>(
        &self,
        key: &str,
        text: &Name,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let kind = self.field(key).kind.text_kind();
        let report = |message: String| {
            let message = format!("{:?} {message}", text.text);
            self.push(self.problem_at(text.spot, key, message).expected(kind.expected));
        };
        parse(&text.text).map_err(report).ok()
    }

    fn decode(&self, kind: &Kind, tree: &Tree, path: &str) -> Option<Decoded> {
        Decoder { kind, path }.decode(kind, tree).map_err(|problem| self.push(problem)).ok()
    }

    /// The table under a key, all layers of it one above the other.
    pub fn merged(&self, key: &str) -> Section<'a> {
        let schema = self.field(key).kind.table_schema();
        let mut layers = Vec::new();
        for layer in &self.layers {
            let Some(tree) = layer.table.get(key) else { continue };
            let path = join(&layer.path, key);
            match tree.as_table() {
                Some(table) => layers.push(Layer { schema, table, path, spot: tree.spot }),
                None => self.push(wrong_type(tree, &path, "a table")),
            }
        }
        let (spot, path) = match layers.last() {
            Some(layer) => (layer.spot, layer.path.clone()),
            None => (self.spot, join(&self.path, key)),
        };
        Section::new(self.problems, schema, layers, spot, path)
    }

    /// The table under a key, of the strongest layer only; `None` when the key is absent or its value is
    /// not a table (reported unless the kind allows another form).
    pub fn chosen(&self, key: &str) -> Option<Section<'a>> {
        let found = self.find(key)?;
        let kind = &self.field(key).kind;
        let path = join(&self.layers[found.layer].path, key);
        let tree = &found.entry.tree;
        match tree.as_table() {
            Some(table) => Some(self.single(kind.table_schema(), table, tree.spot, path)),
            None if matches!(kind, Kind::DurationOrTable(_) | Kind::WordOrTable(..)) => None,
            None => {
                self.push(wrong_type(tree, &path, "a table"));
                None
            }
        }
    }

    /// The tables of an array of tables, each under its name or index.
    pub fn elements(&self, key: &str) -> Vec<Section<'a>> {
        let schema = self.field(key).kind.table_schema();
        let Some(found) = self.find(key) else {
            if matches!(self.field(key).fallback, Fallback::Required) {
                let expected = format!("at least one [[{key}]] table");
                self.push(self.problem(key, "missing").expected(expected));
            }
            return Vec::new();
        };
        let path = join(&self.layers[found.layer].path, key);
        let tree = &found.entry.tree;
        let elements = match &tree.value {
            Value::Array(elements) if !elements.is_empty() => elements,
            _ => {
                let expected = match tree.value {
                    Value::Table(_) if self.path.is_empty() => {
                        format!("[[{key}]], in two brackets")
                    }
                    _ => "an array of at least one table".to_owned(),
                };
                self.push(wrong_type(tree, &path, &expected));
                return Vec::new();
            }
        };
        let section = |(i, element): (usize, &'a Tree)| {
            let label =
                element_name(self.field(key).named_by, element).unwrap_or_else(|| i.to_string());
            let path = join(&path, &label);
            match element.as_table() {
                Some(table) => Some(self.single(schema, table, element.spot, path)),
                None => {
                    self.push(wrong_type(element, &path, "a table"));
                    None
                }
            }
        };
        elements.iter().enumerate().filter_map(section).collect()
    }

    fn single(
        &self,
        schema: &'static TableSchema,
        table: &'a Table,
        spot: Spot,
        path: String,
    ) -> Section<'a> {
        let layer = Layer { schema, table, path: path.clone(), spot };
        Section::new(self.problems, schema, vec![layer], spot, path)
    }

    /// This section with the table under `key` of `of` as a further, stronger layer.
    pub fn overridden_by(&self, of: &Section<'a>, key: &str) -> Section<'a> {
        let over = of.merged(key);
        let strongest = if over.layers.is_empty() { self } else { &over };
        let (spot, path) = (strongest.spot, strongest.path.clone());
        let mut layers: Vec<Layer<'a>> = Vec::with_capacity(self.layers.len() + 1);
        for l in self.layers.iter().chain(&over.layers) {
            layers.push(Layer { path: l.path.clone(), ..*l });
        }
        Section::new(self.problems, self.schema, layers, spot, path)
    }

    /// The keys this section's strongest layer sets itself, with their places.
    pub fn own_keys(&self) -> impl Iterator<Item = (&'static Field, Spot)> + '_ {
        let own = self.layers.last().map(|l| l.table);
        let entry = move |f: &'static Field| {
            own.and_then(|t| t.entries.get(f.key)).map(|entry| (f, entry.key_spot))
        };
        self.schema.fields.iter().filter_map(entry)
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn wrong_type(tree: &Tree, path: &str, expected: &str) -> Problem {
    Problem::new(tree.spot, path, format!("found {}", tree.describe())).expected(expected)
}

/// The default `text` of the schema as it would stand in a file.
fn default_value(kind: &Kind, text: &str) -> Value {
    match kind {
        Kind::Bool => Value::Bool(text == "true"),
        Kind::Integer { .. } => Value::Integer(text.parse().unwrap_or(i128::MAX)),
        Kind::Number { .. } => Value::Float(text.parse().unwrap_or(f64::NAN)),
        _ => Value::Text(text.to_owned()),
    }
}

/// Reads one value.
struct Decoder<'a> {
    /// The key's kind, for messages (parts of a value have kinds of their own).
    kind: &'a Kind,
    path: &'a str,
}

impl Decoder<'_> {
    fn decode(&self, kind: &Kind, tree: &Tree) -> Result<Decoded, Problem> {
        let duration = |tree: &Tree| match self.decode(&TIME, tree)? {
            Decoded::Duration(d) => Ok(d),
            other => unreachable!("a duration decoded as {other:?}"),
        };
        Ok(match (kind, &tree.value) {
            (Kind::Name, Value::Text(text)) => {
                let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
                if text.is_empty() || text.len() > 64 || !text.chars().all(allowed) {
                    return Err(self.wrong(tree, "is not a name"));
                }
                Decoded::Name(Name { text: text.clone(), spot: tree.spot })
            }
            (Kind::Text(_), Value::Text(text)) => {
                Decoded::Name(Name { text: text.clone(), spot: tree.spot })
            }
            (Kind::Texts { count, .. }, Value::Array(elements)) => {
                let name = |t: &Tree| match &t.value {
                    Value::Text(text) => Ok(Name { text: text.clone(), spot: t.spot }),
                    _ => Err(self.found(t)),
                };
                let names: Vec<Name> = elements.iter().map(name).collect::<Result<_, _>>()?;
                let fits = match count {
                    Count::Some => !names.is_empty(),
                    Count::Two => names.len() == 2,
                };
                if !fits {
                    let message = format!("found an array of {}", names.len());
                    return Err(self.problem(tree, message));
                }
                Decoded::Names(names)
            }
            (Kind::Bool, Value::Bool(b)) => Decoded::Bool(*b),
            (Kind::Integer { min, max }, Value::Integer(_) | Value::Float(_)) => {
                let n = whole(&tree.value).ok_or_else(|| self.found(tree))?;
                let n = u64::try_from(n).ok().filter(|n| (min..=max).contains(&n));
                Decoded::Integer(n.ok_or_else(|| self.wrong(tree, "is out of range"))?)
            }
            (Kind::Number { min, max, above }, Value::Integer(_) | Value::Float(_)) => {
                let x = match tree.value {
                    Value::Integer(n) => n as f64,
                    Value::Float(x) => x,
                    _ => unreachable!("the arm's pattern"),
                };
                if !(x >= *min && x <= *max) || (*above && x == *min) {
                    return Err(self.wrong(tree, "is out of range"));
                }
                Decoded::Number(x)
            }
            (Kind::Duration { min, max }, Value::Text(text)) => {
                let d =
                    self.quantity(tree, units::parse(text, units::DURATION), units::DURATION)?;
                let d = Duration::from_nanos(d);
                if d < *min || d > *max {
                    return Err(self.wrong(tree, "is out of range"));
                }
                Decoded::Duration(d)
            }
            (Kind::Moment, Value::Datetime(datetime)) => {
                Decoded::Moment(moment(datetime).map_err(|what| self.problem(tree, what))?)
            }
            (Kind::DurationOrTable(_), Value::Text(_)) => Decoded::Duration(duration(tree)?),
            (Kind::Rate, Value::Text(text)) => {
                let rate = self.quantity(tree, units::parse(text, units::RATE), units::RATE)?;
                let rate = DataRate::from_bits_per_sec(rate);
                Decoded::Rate(rate.ok_or_else(|| self.wrong(tree, "is out of range"))?)
            }
            (Kind::Size { min, max }, Value::Text(text)) => {
                let size = self.quantity(tree, units::parse(text, units::SIZE), units::SIZE)?;
                if !(min..=max).contains(&&size) {
                    return Err(self.wrong(tree, "is out of range"));
                }
                Decoded::Size(Bytes(size))
            }
            (Kind::Measure(measure), Value::Text(_)) => {
                Decoded::Number(self.measure(tree, measure)?)
            }
            (Kind::Point, Value::Array(ends)) => {
                let [x, y] = ends.as_slice() else { return Err(self.found(tree)) };
                let length = |tree| self.measure(tree, &units::LENGTH);
                Decoded::Point(length(x)?, length(y)?)
            }
            (Kind::Packets, Value::Text(text)) => {
                let read = units::parse_fractional(text, units::PACKETS);
                Decoded::Number(self.quantity(tree, read, units::PACKETS)?)
            }
            (Kind::PacketsOrSize, Value::Text(text)) => {
                let packets = units::parse(text, units::PACKETS);
                let limit = match packets {
                    Err(QuantityError::UnknownUnit(_)) => {
                        let all = [units::PACKETS, units::SIZE].concat();
                        let read = units::parse(text, units::SIZE);
                        PacketsOrSize::Size(Bytes(self.quantity(tree, read, &all)?))
                    }
                    read => PacketsOrSize::Packets(self.quantity(tree, read, units::PACKETS)?),
                };
                if matches!(limit, PacketsOrSize::Packets(0) | PacketsOrSize::Size(Bytes(0))) {
                    return Err(self.wrong(tree, "is out of range"));
                }
                Decoded::PacketsOrSize(limit)
            }
            (Kind::Choice(words), Value::Text(text)) => {
                let word = words.iter().find(|(word, _)| word == text);
                let unknown = || {
                    let words = words.iter().map(|(word, _)| *word);
                    Problem::new(tree.spot, self.path, format!("{text:?} is not a choice here"))
                        .expected(self.kind.describe())
                        .nearest(text, words)
                };
                Decoded::Word(word.ok_or_else(unknown)?.0)
            }
            (Kind::ChoiceOrSegments(words), Value::Text(text)) => {
                let word = words.iter().find(|(word, _)| word == text);
                Decoded::WordOrSegments(match word {
                    Some((word, _)) => WordOrSegments::Word(word),
                    None if text.starts_with(|c: char| c.is_ascii_digit()) => {
                        let read = units::parse(text, units::SEGMENTS);
                        let n = self.quantity(tree, read, units::SEGMENTS)?;
                        let n = u16::try_from(n).ok().filter(|n| *n > 0);
                        let n = n.ok_or_else(|| self.wrong(tree, "is out of range"))?;
                        WordOrSegments::Segments(n)
                    }
                    None => {
                        let words = words.iter().map(|(word, _)| *word);
                        return Err(self.wrong(tree, "is not a choice here").nearest(text, words));
                    }
                })
            }
            (Kind::WordOr(word, _) | Kind::WordOrTable(word, _), Value::Text(text))
                if text == word =>
            {
                Decoded::Absent
            }
            (Kind::WordOr(_, inner), _) => self.decode(inner, tree)?,
            (Kind::DurationPair, Value::Array(ends)) => {
                let [low, high] = ends.as_slice() else { return Err(self.found(tree)) };
                let (low, high) = (duration(low)?, duration(high)?);
                if low > high {
                    return Err(
                        self.problem(tree, format!("low end {low} is above high end {high}"))
                    );
                }
                Decoded::Pair(low, high)
            }
            (Kind::Intervals, Value::Array(elements)) => {
                let mut intervals: Vec<(Instant, Instant)> = Vec::with_capacity(elements.len());
                for element in elements {
                    let Value::Array(ends) = &element.value else {
                        return Err(self.found(element));
                    };
                    let [start, end] = ends.as_slice() else { return Err(self.found(element)) };
                    let (start, end) = (duration(start)?, duration(end)?);
                    if start >= end {
                        let message = format!("ends at {end}, not after its start at {start}");
                        return Err(self.problem(element, message));
                    }
                    let (start, end) = (Instant::ZERO + start, Instant::ZERO + end);
                    if intervals.last().is_some_and(|(_, previous)| *previous > start) {
                        return Err(self.problem(element, "overlaps or precedes the one before it"));
                    }
                    intervals.push((start, end));
                }
                Decoded::Intervals(intervals)
            }
            (Kind::Ordinals, Value::Array(elements)) => {
                let mut ordinals = Vec::with_capacity(elements.len());
                for element in elements {
                    let n = whole(&element.value).and_then(|n| u64::try_from(n).ok());
                    ordinals.push(n.ok_or_else(|| self.found(element))?);
                }
                ordinals.sort_unstable();
                if let Some(twice) = ordinals.windows(2).find(|w| w[0] == w[1]) {
                    return Err(self.problem(tree, format!("lists {} twice", twice[0])));
                }
                Decoded::Ordinals(ordinals)
            }
            _ => return Err(self.found(tree)),
        })
    }

    fn problem(&self, tree: &Tree, message: impl Into<String>) -> Problem {
        Problem::new(tree.spot, self.path, message).expected(self.kind.describe())
    }
    fn found(&self, tree: &Tree) -> Problem {
        let quantity = self.kind.has_unit();
        if let Value::Integer(n) = tree.value
            && quantity
        {
            return self.problem(tree, format!("{n} has no unit"));
        }
        if let Value::Float(x) = tree.value
            && quantity
        {
            return self.problem(tree, format!("{x} has no unit"));
        }
        self.problem(tree, format!("found {}", tree.describe()))
    }
    fn wrong(&self, tree: &Tree, what: &str) -> Problem {
        self.problem(tree, format!("{} {what}", tree.describe()))
    }
    fn measure(&self, tree: &Tree, measure: &Measure) -> Result<f64, Problem> {
        let Value::Text(text) = &tree.value else { return Err(self.found(tree)) };
        let names: Vec<&str> = measure.names().collect();
        measure.parse(text).map_err(|error| self.not_a_quantity(tree, error, &names))
    }
    fn quantity<T>(
        &self,
        tree: &Tree,
        read: Result<T, QuantityError<'_>>,
        units: &[Unit],
    ) -> Result<T, Problem> {
        // One of the two µ is enough to show.
        let names = units.iter().map(|(name, _)| *name).filter(|name| *name != "μs");
        let names: Vec<&str> = names.collect();
        read.map_err(|error| self.not_a_quantity(tree, error, &names))
    }
    fn not_a_quantity(&self, tree: &Tree, error: QuantityError<'_>, units: &[&str]) -> Problem {
        match error {
            QuantityError::NotANumber => self.wrong(tree, "does not begin with a number"),
            QuantityError::Negative => self.wrong(tree, "is negative"),
            QuantityError::NoUnit => self.wrong(tree, "has no unit"),
            QuantityError::UnknownUnit(unit) => self
                .wrong(tree, "has an unknown unit")
                .expected(format!("a unit of {}", any_of(units)))
                .nearest(unit, units.iter().copied()),
            QuantityError::TooFine => self.wrong(tree, "is finer than the smallest unit"),
            QuantityError::TooLarge => self.wrong(tree, "is too large"),
        }
    }
}

/// `a, b or c`.
fn any_of<T: AsRef<str>>(choices: &[T]) -> String {
    let choices: Vec<&str> = choices.iter().map(AsRef::as_ref).collect();
    match choices.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => choices.concat(),
    }
}

/// The seconds since 1970, or what is wrong.
fn moment(datetime: &toml_datetime::Datetime) -> Result<Moment, String> {
    if datetime.date.is_none() || datetime.time.is_none() {
        return Err(format!("{datetime} is not both a date and a time"));
    }
    if datetime.offset.is_none() {
        return Err(format!("{datetime} has no offset from UTC"));
    }
    let moment: Option<jiff::Timestamp> = datetime.to_string().parse().ok();
    let moment = moment.ok_or_else(|| format!("{datetime} is out of range"))?;
    if moment.subsec_nanosecond() != 0 {
        return Err(format!("{datetime} is finer than a second"));
    }
    let seconds = u64::try_from(moment.as_second());
    seconds.map(Moment).map_err(|_| format!("{datetime} is before 1970"))
}

/// The number as an integer, when it is whole.
fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Integer(n) => Some(*n),
        _ => None,
    }
}

impl Kind {
    fn table_schema(&self) -> &'static TableSchema {
        match self {
            Self::Table(s)
            | Self::DurationOrTable(s)
            | Self::Tables(s)
            | Self::WordOrTable(_, s) => s,
            other => panic!("{other:?} is not a table"),
        }
    }

    fn text_kind(&self) -> &'static TextKind {
        match self {
            Self::Text(kind) | Self::Texts { of: kind, .. } => kind,
            Self::WordOr(_, inner) => inner.text_kind(),
            other => panic!("{other:?} is not a text"),
        }
    }

    fn has_unit(&self) -> bool {
        match self {
            Self::Duration { .. }
            | Self::DurationOrTable(_)
            | Self::DurationPair
            | Self::Intervals
            | Self::Rate
            | Self::Size { .. }
            | Self::Measure(_)
            | Self::Packets
            | Self::PacketsOrSize
            | Self::ChoiceOrSegments(_) => true,
            Self::WordOr(_, inner) => inner.has_unit(),
            _ => false,
        }
    }

    /// What a value of this kind is, for "expected …".
    fn describe(&self) -> String {
        match self {
            Self::Name => "1 to 64 letters, digits, - or _".to_owned(),
            Self::Text(TextKind { expected, .. }) => (*expected).to_owned(),
            Self::Texts { of, count: Count::Some } => format!("an array of {}", of.expected_plural),
            Self::Texts { of, count: Count::Two } => {
                format!("an array of two {}", of.expected_plural)
            }
            Self::Moment => {
                "a date and time with its offset from UTC, such as 2026-05-01T06:30:00Z".to_owned()
            }
            Self::Bool => "true or false".to_owned(),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Number { min, max, above: false } => format!("a number from {min} to {max}"),
            Self::Number { min, max, above: true } => {
                format!("a number above {min}, at most {max}")
            }
            Self::Duration { min, max } => {
                let above = match min.as_nanos() {
                    0 => String::new(),
                    1 => " above zero".to_owned(),
                    _ => format!(" of at least {min}"),
                };
                let at_most =
                    if *max == Duration::MAX { String::new() } else { format!(", at most {max}") };
                let example = Duration::from_millis(170).clamp(*min, *max);
                format!("a duration{above}{at_most} with its unit, such as \"{example}\"")
            }
            Self::DurationPair => "[low, high], such as [\"153 ms\", \"195 ms\"]".to_owned(),
            Self::Intervals => {
                "[[start, end], …], ascending and disjoint, such as [[\"5 s\", \"11 s\"]]"
                    .to_owned()
            }
            Self::DurationOrTable(_) => {
                "a duration with its unit, such as \"170 ms\", or a table".to_owned()
            }
            Self::Rate => "a rate above zero with its unit, such as \"250 kbit/s\"".to_owned(),
            Self::Size { min, max: u64::MAX } => {
                format!("a size of at least {min} B with its unit, such as \"100 MB\"")
            }
            Self::Size { min, max } => {
                format!("a size from {min} B to {max} B with its unit, such as \"1000 B\"")
            }
            Self::Measure(measure) => {
                format!("{} with its unit, such as {:?}", measure.what, measure.example)
            }
            Self::Point => "[x, y], such as [\"0 m\", \"200 m\"]".to_owned(),
            Self::WordOrTable(word, _) => format!("{word:?} or a table"),
            Self::Packets => "packets, such as \"5 packets\"".to_owned(),
            Self::PacketsOrSize => {
                "packets or a size above zero, such as \"50 packets\"".to_owned()
            }
            Self::Choice(words) => {
                any_of(&words.iter().map(|(w, _)| format!("{w:?}")).collect::<Vec<_>>())
            }
            Self::ChoiceOrSegments(words) => {
                let mut words: Vec<String> = words.iter().map(|(w, _)| format!("{w:?}")).collect();
                words.push("segments, such as \"2 segments\"".to_owned());
                any_of(&words)
            }
            Self::WordOr(word, inner) => format!("{word:?} or {}", inner.describe()),
            Self::Ordinals => "an array of distinct whole numbers, such as [3, 7]".to_owned(),
            Self::Table(_) => "a table".to_owned(),
            Self::Tables(_) => "an array of at least one table".to_owned(),
        }
    }
}
