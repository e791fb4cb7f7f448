//! Reads tables according to their [declarations](airtcp_settings::schema): unknown keys, types,
//! units, ranges, keys that have no effect with another, defaults. It collects mistakes and goes
//! on.

use crate::diagnostic::{ConfigError, Diagnostic, MISSING, Problem, Source};
use crate::tree::{self, Entry, Table as TomlTable, Tree, Value as Toml, element_name};
use airtcp_core::{Duration, Instant, Position};
use airtcp_settings::schema::{
    Conditions, Count, Fallback, Field, Kind, PRESET, TIME, Table, TextKind, Way,
};
use airtcp_settings::{Decoded, Mistake, Name, Reader, Spot, Value, any_of, units};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// A key that a command-line option sets, overriding the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Its name in diagnostics: `--rate`.
    pub option: String,
    /// Dotted path of the key.
    pub path: String,
    /// A value in TOML syntax or a bare string.
    pub value: String,
}

impl Override {
    /// `path` becomes `value` by the option `option`.
    pub fn new(option: &str, path: &str, value: &str) -> Self {
        Self { option: option.to_owned(), path: path.to_owned(), value: value.to_owned() }
    }

    /// The one of an option `--set PATH=VALUE`.
    pub fn set((path, value): &(String, String)) -> Self {
        Self::new("--set", path, value)
    }
}

/// Reads a text and overrides, later ones over earlier ones, and builds a value from the top level.
///
/// Diagnostics call the text `source_name`. `resolve` returns `None` if it cannot build the
/// value, after reporting why.
///
/// # Errors
/// All mistakes in the text and the overrides, except those that other mistakes hide.
pub fn read<T>(
    schema: &'static Table,
    source_name: &str,
    text: &str,
    overrides: &[Override],
    resolve: impl FnOnce(&Section<'_>) -> Option<T>,
) -> Result<T, ConfigError> {
    let no_files = |path: &str| Err(format!("{path}: there are no files here"));
    read_with_files(schema, source_name, text, overrides, &no_files, resolve)
}

/// The text of a file that a configuration names, or the message that says why there is none.
pub type ReadFile<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// The same for a configuration that may name other files, which `files` reads.
///
/// # Errors
/// As for [`read`].
pub fn read_with_files<T>(
    schema: &'static Table,
    source_name: &str,
    text: &str,
    overrides: &[Override],
    files: &ReadFile<'_>,
    resolve: impl FnOnce(&Section<'_>) -> Option<T>,
) -> Result<T, ConfigError> {
    let mut sources = vec![Source { name: source_name.to_owned(), text: text.to_owned() }];
    sources.extend(overrides.iter().map(|Override { option, path, value }| Source {
        name: option.clone(),
        text: tree::override_text(path, value),
    }));
    let mut root =
        Tree::document(text, 0).map_err(|problems| ConfigError::new(problems, &sources))?;
    let (problems, misplaced) = Default::default();
    let context = Context { problems, misplaced, top: schema, files };
    for (i, Override { path, value, .. }) in overrides.iter().enumerate() {
        if let Err(problem) = tree::set(&mut root, schema, i + 1, path, value) {
            context.problems.borrow_mut().push(problem);
        }
    }
    let spot = Spot::default();
    let layer = Layer::new(&context, &schema.fields().into(), &root, String::new(), spot, 0);
    let top = Section::new(&context, schema, vec![layer], spot, String::new());
    let resolved = resolve(&top);
    let mut problems = context.problems.into_inner();
    let misplaced = context.misplaced.into_inner();
    problems.iter_mut().for_each(|problem| problem.follow_from(&misplaced));
    match resolved {
        Some(resolved) if problems.is_empty() => Ok(resolved),
        _ => Err(ConfigError::new(problems, &sources)),
    }
}

/// A complaint about a key of a text that [`read`] takes, which only shows outside of it: on a
/// machine, or at a time. `path` is the key, with elements of arrays by their names or numbers. If
/// it is not written, its default is meant, and the place is the table that lacks it.
pub fn locate(
    schema: &'static Table,
    source_name: &str,
    text: &str,
    path: &[&str],
    message: impl Into<String>,
) -> Diagnostic {
    let root = Tree::document(text, 0).unwrap_or_default();
    let spot = tree::spot_of(&root, schema, path);
    let source = Source { name: source_name.to_owned(), text: text.to_owned() };
    Problem::new(spot, path.join("."), message).locate(&[source])
}

/// What all sections of a file share.
struct Context<'a> {
    /// The problems found so far.
    problems: RefCell<Vec<Problem>>,
    /// Keys of the top level that were found in other tables.
    misplaced: RefCell<Vec<String>>,
    /// The schema of the top level.
    top: &'static Table,
    files: &'a ReadFile<'a>,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("problems", &self.problems).finish_non_exhaustive()
    }
}

/// Precedence of a written key: the rank of its table among those that override each other, and the
/// [source](Spot::source) that wrote it.
#[derive(Clone, Copy, Debug)]
struct Strength {
    rank: usize,
    source: usize,
}

impl Strength {
    /// True if `self` was chosen after `other`: by a stronger table, or by `--set`. Keys that
    /// belong to `other` are then obsolete, not contradictory.
    fn supersedes(self, other: Self) -> bool {
        self.rank > other.rank || self.source > other.source
    }
}

/// One table, or several that override each other key by key (`[tcp]` and a flow's `sender`).
#[derive(Debug)]
pub struct Section<'a> {
    context: &'a Context<'a>,
    schema: &'static Table,
    fields: Rc<[Field]>,
    /// The tables, weakest first.
    layers: Vec<Layer<'a>>,
    /// Position of the strongest layer, or of the table that encloses it.
    spot: Spot,
    /// Dotted path of the strongest layer.
    path: String,
    /// The words chosen so far, by key.
    words: RefCell<Vec<(&'static str, &'static str)>>,
    /// The key that names a preset, here or in the section that encloses this one.
    preset: Option<Strength>,
}

/// A table in a section.
#[derive(Clone, Debug)]
struct Layer<'a> {
    fields: Rc<[Field]>,
    table: &'a TomlTable,
    unknown: Rc<[Unknown<'a>]>,
    path: String,
    spot: Spot,
    /// Among the layers of the section, or of the one that encloses it: 0 is the weakest.
    rank: usize,
}

/// A key that its table does not have.
///
/// A misspelt key is reported, and then read as the key that was meant, so that this one is not
/// reported as missing, and references to it resolve.
#[derive(Debug)]
struct Unknown<'a> {
    entry: &'a Entry,
    problem: Problem,
    /// The key that was meant, if it is absent.
    meant: Option<&'static str>,
    /// It resembles no key: any absent one may have been meant.
    is_strange: bool,
}

impl<'a> Layer<'a> {
    fn new(
        context: &Context<'_>,
        fields: &Rc<[Field]>,
        table: &'a TomlTable,
        path: String,
        spot: Spot,
        rank: usize,
    ) -> Self {
        let mut layer =
            Self { fields: fields.clone(), table, unknown: Rc::default(), path, spot, rank };
        let mut unknown: Vec<Unknown<'a>> = Vec::new();
        for (key, entry) in &table.entries {
            if fields.iter().any(|field| field.key == key) {
                continue;
            }
            if let Some(problem) = layer.key_of_top(context, key, entry) {
                context.misplaced.borrow_mut().push(key.clone());
                unknown.push(Unknown { entry, problem, meant: None, is_strange: false });
                continue;
            }
            let problem = layer.unknown_key(key, entry);
            let meant = fields.iter().map(|field| field.key).find(|known| {
                problem.suggestion() == Some(known)
                    && table.get(known).is_none()
                    && !unknown.iter().any(|other| other.meant == Some(known))
            });
            let is_strange = problem.suggestion().is_none();
            unknown.push(Unknown { entry, problem, meant, is_strange });
        }
        layer.unknown = unknown.into();
        layer
    }

    /// Refuses a key that belongs to the top level of the file. TOML gives what stands below a
    /// table's head to that table.
    fn key_of_top(&self, context: &Context<'_>, key: &str, entry: &Entry) -> Option<Problem> {
        let has_tables = match &entry.tree.value {
            Toml::Table(_) => true,
            Toml::Array(elements) => elements.iter().any(|element| element.as_table().is_some()),
            _ => false,
        };
        // A value of another form is none of that key's.
        let fits = |kind: &Kind| match kind {
            Kind::Table(_) | Kind::Tables(_) => has_tables,
            kind => !has_tables || kind.table().is_some(),
        };
        let mut top = context.top.fields().into_iter();
        if self.path.is_empty() || !top.any(|field| field.key == key && fits(&field.kind)) {
            return None;
        }
        let problem = Problem::new(entry.key_spot, join(&self.path, key), "unknown key");
        Some(match &entry.tree.value {
            _ if entry.key_spot.source > 0 => problem.suggest(key),
            Toml::Table(_) => problem.expected(format!("[{key}], which is no part of another table")),
            Toml::Array(_) if has_tables => {
                problem.expected(format!("[[{key}]], which is no part of another table"))
            }
            _ => problem.expected(
                "at the top of the file, before the first [table]: here it belongs to the table above",
            ),
        })
    }

    fn unknown_key(&self, key: &str, entry: &Entry) -> Problem {
        let problem = Problem::new(entry.key_spot, join(&self.path, key), "unknown key");
        let problem = problem.nearest(key, keys(&self.fields));
        // Perhaps it is a key of a table in this one.
        let has_it = |field: &&Field| {
            let inner = field.kind.table().filter(|_| !matches!(field.kind, Kind::Tables(_)));
            inner.is_some_and(|table| table.fields().iter().any(|field| field.key == key))
        };
        let places: Vec<_> = self.fields.iter().filter(has_it).collect();
        match problem.suggestion() {
            None if !places.is_empty() => {
                let mut paths: Vec<_> = places.iter().map(|it| join(it.key, key)).collect();
                paths.dedup();
                problem.expected(paths.join(" or "))
            }
            _ => problem,
        }
    }

    fn entry(&self, key: &str) -> Option<&'a Entry> {
        let misspelt = || self.unknown.iter().find(|unknown| unknown.meant == Some(key));
        self.table.entries.get(key).or_else(|| misspelt().map(|unknown| unknown.entry))
    }
}

/// A key that is set, and the layer that sets it.
#[derive(Clone, Copy)]
struct Found<'a> {
    entry: &'a Entry,
    layer: usize,
}

/// Seconds since 1970 (UTC), leap seconds not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

/// In UTC, as in RFC 3339.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = i64::try_from(self.0).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
        match moment {
            Some(moment) => moment.fmt(f),
            None => write!(f, "{} s after 1970", self.0),
        }
    }
}

impl Value for Moment {
    const KIND: Kind = Kind::Moment;
    fn from_decoded(decoded: Decoded) -> Option<Self> {
        if let Decoded::Moment(seconds) = decoded { Some(Self(seconds)) } else { None }
    }
    fn show(&self, _: &Kind) -> Option<String> {
        Some(self.to_string())
    }
}

impl<'a> Section<'a> {
    /// Opens layered tables; without layers every key has its default.
    fn new(
        context: &'a Context<'a>,
        schema: &'static Table,
        layers: Vec<Layer<'a>>,
        spot: Spot,
        path: String,
    ) -> Self {
        let fields = schema.fields().into();
        let words = RefCell::default();
        let mut section = Self { context, schema, fields, layers, spot, path, words, preset: None };
        section.preset = section.find(PRESET).map(|found| section.strength(found));
        for layer in &section.layers {
            for Unknown { problem, .. } in &*layer.unknown {
                section.push(problem.clone());
            }
        }
        section
    }

    /// True if the section has unknown keys that resemble none of its keys: any absent key may have
    /// been meant.
    pub fn has_strange_keys(&self) -> bool {
        let mut unknown = self.layers.iter().flat_map(|layer| &*layer.unknown);
        unknown.any(|unknown| unknown.is_strange)
    }

    /// Reports that a required key is absent.
    pub fn missing(&self, key: &str, expected: impl Into<String>) {
        let problem = self.problem(key, MISSING).expected(expected);
        self.push(if self.has_strange_keys() { problem.may_follow() } else { problem });
    }

    /// True if a declaration applies, given the words chosen so far.
    fn counts(&self, field: &Field) -> bool {
        field.only.hold(&self.words.borrow())
    }

    fn declarations(&self, key: &str) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(move |field| field.key == key)
    }

    /// The written keys that have an effect given the words chosen so far.
    fn effective(&self) -> Vec<&'static str> {
        let mut keys = Vec::new();
        for field in self.fields.iter() {
            if self.has(field.key) && self.counts(field) && !keys.contains(&field.key) {
                keys.push(field.key);
            }
        }
        keys
    }

    /// A choice on which `key` depends was made after the key was written, by a stronger table or by
    /// `--set`, and the key [may go](Field::is_essential).
    fn is_superseded(&self, key: &str, set: Strength) -> bool {
        if self.declarations(key).any(|field| field.is_essential) {
            return false;
        }
        self.declarations(key).flat_map(|field| field.only.iter()).any(|only| {
            // Who wrote the choice, or else the preset that makes it.
            let found = self.find(only.choice).map(|found| self.strength(found));
            found.or(self.preset).is_some_and(|chosen| chosen.supersedes(set))
        })
    }

    /// Number of problems so far, in the whole file.
    pub fn problems_found(&self) -> usize {
        self.context.problems.borrow().len()
    }

    /// Reports a problem.
    pub fn push(&self, problem: Problem) {
        self.context.problems.borrow_mut().push(problem);
    }

    fn declares(&self, key: &str) -> bool {
        self.fields.iter().any(|f| f.key == key)
    }

    /// The declaration of a key; if there are several, the one that applies.
    fn field(&self, key: &str) -> Field {
        let mut fields = self.fields.iter().filter(|f| f.key == key);
        let counting = fields.clone().find(|f| self.counts(f));
        let field = counting.or_else(|| fields.next());
        *field.unwrap_or_else(|| panic!("{} has no key {key}", self.schema.name))
    }

    fn find(&self, key: &str) -> Option<Found<'a>> {
        let mut layers = self.layers.iter().enumerate().rev();
        layers.find_map(|(layer, l)| l.entry(key).map(|entry| Found { entry, layer }))
    }

    fn strength(&self, found: Found<'_>) -> Strength {
        Strength { rank: self.layers[found.layer].rank, source: found.entry.key_spot.source }
    }

    /// True if the key is written in some layer.
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
            // A missing key is missing in the weakest layer: the others only override it.
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

    /// Starts a problem with the text at `spot`, a part of `key`.
    pub fn problem_at(&self, spot: Spot, key: &str, message: impl Into<String>) -> Problem {
        Problem::new(spot, join(&self.path, key), message)
    }

    /// The value of a key or its default; `None` if it is wrong or missing (which is then
    /// reported).
    pub fn get<T: Value>(&self, key: &str) -> Option<T> {
        let field = self.field(key);
        let found = self.find(key).filter(|_| self.counts(&field));
        let decoded = match (found, field.fallback) {
            (Some(found), _) => {
                let path = join(&self.layers[found.layer].path, key);
                let decoder = Decoder { kind: &field.kind, path: &path };
                let decoded = decoder.decode(&field.kind, &found.entry.tree);
                decoded.map_err(|problem| self.push(problem)).ok()?
            }
            (None, Fallback::Absent(_)) => Decoded::Absent,
            (None, Fallback::Required) => {
                self.missing(key, field.kind.describe());
                return None;
            }
            (None, fallback) => {
                let text = fallback.text()?.into_owned();
                if let Kind::Text(_) = field.kind {
                    Decoded::Name(Name { text, spot: self.spot })
                } else {
                    let read = field.kind.parse_bare(&text).and_then(Result::ok);
                    let name = self.schema.name;
                    read.unwrap_or_else(|| panic!("{name}: the default of {key} is {text}"))
                }
            }
        };
        let value = T::from_decoded(decoded);
        let name = self.schema.name;
        assert!(value.is_some(), "{name}: {key} is read as another type than its kind");
        value
    }

    /// Reads a text found under `key` (of [`Kind::Text`] or [`Kind::Texts`]) with `parse`; an error
    /// that it returns is reported.
    pub fn parse<T>(
        &self,
        key: &str,
        text: &Name,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let field = self.field(key);
        let kind = text_kind(&field.kind);
        let report = |message: String| {
            let message = format!("{:?} {message}", text.text);
            self.push(self.problem_at(text.spot, key, message).expected(kind.expected));
        };
        parse(&text.text).map_err(report).ok()
    }

    /// The table under a key, with all its layers, or only the strongest if it
    /// [replaces](Table::whole) the others.
    pub fn merged(&self, key: &str) -> Section<'a> {
        let schema = self.table_under(key);
        let fields: Rc<[Field]> = schema.fields().into();
        let mut layers = Vec::new();
        for layer in &self.layers {
            let Some(Entry { tree, .. }) = layer.entry(key) else { continue };
            if schema.whole {
                layers.clear();
            }
            let path = join(&layer.path, key);
            match tree.as_table() {
                Some(table) => {
                    let (spot, rank) = (tree.spot, layer.rank);
                    layers.push(Layer::new(self.context, &fields, table, path, spot, rank));
                }
                None => self.push(wrong_type(tree, &path, &a_table(schema))),
            }
        }
        let (spot, path) = match layers.last() {
            Some(layer) => (layer.spot, layer.path.clone()),
            None => (self.spot, join(&self.path, key)),
        };
        let section = Section::new(self.context, schema, layers, spot, path);
        Section { preset: section.preset.or(self.preset), ..section }
    }

    /// The table under a key, strongest layer only; `None` if the key is absent or its value is not
    /// a table (reported unless the kind allows another form).
    pub fn chosen(&self, key: &str) -> Option<Section<'a>> {
        let found = self.find(key)?;
        let path = join(&self.layers[found.layer].path, key);
        let tree = &found.entry.tree;
        match tree.as_table() {
            Some(table) => Some(self.single(self.table_under(key), table, tree.spot, path)),
            None => {
                let (kind, schema) = (self.field(key).kind, self.table_under(key));
                if !matches!(kind, Kind::OrTable(..) | Kind::WordOrTable(..)) {
                    self.push(wrong_type(tree, &path, &a_table(schema)));
                }
                None
            }
        }
    }

    fn table_under(&self, key: &str) -> &'static Table {
        let kind = self.field(key).kind;
        kind.table().unwrap_or_else(|| panic!("{}: {key} is {kind:?}", self.schema.name))
    }

    /// The tables of an array of tables, each under its name or index.
    pub fn elements(&self, key: &str) -> Vec<Section<'a>> {
        let schema = self.table_under(key);
        let Some(found) = self.find(key) else {
            if matches!(self.field(key).fallback, Fallback::Required) {
                self.missing(key, format!("at least one [[{key}]] table"));
            }
            return Vec::new();
        };
        let path = join(&self.layers[found.layer].path, key);
        let tree = &found.entry.tree;
        let elements = match &tree.value {
            Toml::Array(elements) if !elements.is_empty() => elements,
            _ => {
                let expected = match tree.value {
                    Toml::Table(_) if self.path.is_empty() => {
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
                    self.push(wrong_type(element, &path, &a_table(schema)));
                    None
                }
            }
        };
        elements.iter().enumerate().filter_map(section).collect()
    }

    /// True if `key`, a table or an array of tables, holds something else.
    pub fn is_refused(&self, key: &str) -> bool {
        let Some(found) = self.find(key) else { return false };
        match (self.field(key).kind, &found.entry.tree.value) {
            (Kind::Tables(_), Toml::Array(elements)) => {
                elements.is_empty() || elements.iter().any(|e| e.as_table().is_none())
            }
            (Kind::Tables(_), _) => true,
            (_, value) => !matches!(value, Toml::Table(_)),
        }
    }

    fn single(
        &self,
        schema: &'static Table,
        table: &'a TomlTable,
        spot: Spot,
        path: String,
    ) -> Section<'a> {
        let fields = schema.fields().into();
        let layer = Layer::new(self.context, &fields, table, path.clone(), spot, 0);
        Section::new(self.context, schema, vec![layer], spot, path)
    }

    /// This section with the table under `key` of `of` as a further, stronger layer.
    pub fn overridden_by(&self, of: &Section<'a>, key: &str) -> Section<'a> {
        let over = of.merged(key);
        let strongest = if over.layers.is_empty() { self } else { &over };
        let (spot, path) = (strongest.spot, strongest.path.clone());
        let mut layers: Vec<Layer<'a>> = Vec::with_capacity(self.layers.len() + 1);
        for (rank, l) in self.layers.iter().chain(&over.layers).enumerate() {
            layers.push(Layer { rank, ..l.clone() });
        }
        Section::new(self.context, self.schema, layers, spot, path)
    }

    /// The keys that this section's strongest layer sets itself, with their positions.
    pub fn own_keys(&self) -> impl Iterator<Item = (Field, Spot)> + '_ {
        let own = self.layers.last();
        let spot = move |f: &Field| own.and_then(|layer| layer.entry(f.key)).map(|e| e.key_spot);
        self.fields.iter().filter_map(move |f| spot(f).map(|spot| (*f, spot)))
    }
}

impl Reader for Section<'_> {
    fn written(&self, key: &str) -> bool {
        self.declares(key) && self.has(key) && self.counts(&self.field(key))
    }

    fn has_default(&self, key: &str) -> bool {
        self.declares(key) && {
            let Field { kind, fallback, .. } = self.field(key);
            kind.table().is_none() && fallback.text().is_some()
        }
    }

    fn get<T: Value>(&self, key: &str) -> Option<T> {
        self.get(key)
    }

    fn table(&self, key: &str) -> Option<Self> {
        match self.field(key).kind {
            Kind::Table(_) if self.has(key) => {
                let table = self.merged(key);
                // What is no table has been reported: its keys are not missing, too.
                (!self.is_refused(key)).then_some(table)
            }
            Kind::Table(_) => {
                self.missing(key, "a table");
                None
            }
            _ => self.chosen(key),
        }
    }

    fn tables(&self, key: &str) -> Vec<Self> {
        self.elements(key)
    }

    fn file<T, E: fmt::Display>(
        &self,
        key: &'static str,
        file: &Name,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let read = (self.context.files)(&file.text);
        let parsed = read.and_then(|text| parse(&text).map_err(|e| format!("{}: {e}", file.text)));
        parsed.map_err(|message| self.push(self.problem_at(file.spot, key, message))).ok()
    }

    fn chosen(&self, choice: &'static str, word: &'static str) {
        let before = self.effective();
        self.words.borrow_mut().push((choice, word));
        let after = self.effective();
        for key in before.into_iter().filter(|key| !after.contains(key)) {
            let Some(set) = self.find(key) else { continue };
            if self.is_superseded(key, self.strength(set)) {
                continue;
            }
            let path = join(&self.layers[set.layer].path, key);
            let message = format!("has no effect with {choice} = {word:?}");
            let mut ways = Conditions::ways(self.declarations(key).map(|field| field.only));
            let words = self.words.borrow();
            let is_met = |Way { choice, words: needed }: &Way| {
                words.iter().any(|(other, word)| other == choice && needed.contains(word))
            };
            ways.iter_mut().for_each(|way| way.retain(|condition| !is_met(condition)));
            // A way that needs more than another is none.
            let more = |way: &Vec<Way>, other: &Vec<Way>| {
                other.len() < way.len() && other.iter().all(|condition| way.contains(condition))
            };
            let all = ways.clone();
            ways.retain(|way| !all.iter().any(|other| more(way, other)));
            let problem = Problem::new(set.entry.key_spot, path, message).expected(any_way(&ways));
            self.push(if self.has_strange_keys() { problem.may_follow() } else { problem });
        }
    }

    fn refuse(&self, key: Option<&'static str>, message: String, expected: &str) {
        let problem = match key {
            Some(key) => self.problem(key, message),
            // What the table lacks may be there under a misspelt key.
            None if self.has_strange_keys() => self.problem_here(message).may_follow(),
            None => self.problem_here(message),
        };
        self.push(problem.expected(expected));
    }
}

/// `mechanism = "a" or "b", or mechanism = "c" and detect = "signal"`.
fn any_way(ways: &[Vec<Way>]) -> String {
    let condition = |Way { choice, words }: &Way| {
        let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        format!("{choice} = {}", any_of(&quoted))
    };
    let way = |way: &Vec<Way>| way.iter().map(condition).collect::<Vec<_>>().join(" and ");
    ways.iter().map(way).collect::<Vec<_>>().join(", or ")
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn wrong_type(tree: &Tree, path: &str, expected: &str) -> Problem {
    Problem::new(tree.spot, path, format!("found {}", tree.describe())).expected(expected)
}

/// The keys of these declarations, each once.
fn keys(fields: &[Field]) -> Vec<&'static str> {
    let mut keys = Vec::new();
    for field in fields {
        if !keys.contains(&field.key) {
            keys.push(field.key);
        }
    }
    keys
}

/// "a table of" its first keys. An only key is shown in its place: what was found is often its value.
fn a_table(schema: &Table) -> String {
    const SHOWN: usize = 6;
    let mut keys = keys(&schema.fields());
    if let [only] = keys[..] {
        return format!("a table of one key: {{ {only} = … }}");
    }
    if keys.len() > SHOWN {
        keys.truncate(SHOWN);
        keys.push("…");
    }
    format!("a table of {}", keys.join(", "))
}

/// Reads one value.
struct Decoder<'a> {
    /// The key's kind, for messages (parts of a value have kinds of their own).
    kind: &'a Kind,
    path: &'a str,
}

impl Decoder<'_> {
    fn decode(&self, kind: &Kind, tree: &Tree) -> Result<Decoded, Problem> {
        let checked = |read: Result<Decoded, Mistake>| read.map_err(|m| self.mistake(tree, m));
        Ok(match (kind, &tree.value) {
            (Kind::Name, Toml::Text(text)) => {
                let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
                if text.is_empty() || text.len() > 64 || !text.chars().all(allowed) {
                    return Err(self.wrong(tree, "is not a name"));
                }
                Decoded::Name(Name { text: text.clone(), spot: tree.spot })
            }
            (Kind::Text(_), Toml::Text(text)) => {
                Decoded::Name(Name { text: text.clone(), spot: tree.spot })
            }
            (Kind::Texts { count, .. }, Toml::Array(elements)) => {
                let name = |t: &Tree| match &t.value {
                    Toml::Text(text) => Ok(Name { text: text.clone(), spot: t.spot }),
                    _ => Err(self.found(t)),
                };
                let names: Vec<Name> = elements.iter().map(name).collect::<Result<_, _>>()?;
                let fits = match count {
                    Count::Some => !names.is_empty(),
                    Count::Two => names.len() == 2,
                };
                if !fits {
                    let message = match names.len() {
                        0 => "found an empty array".to_owned(),
                        n => format!("found an array of {n}"),
                    };
                    return Err(self.problem(tree, message));
                }
                Decoded::Names(names)
            }
            (Kind::Bool, Toml::Bool(b)) => Decoded::Bool(*b),
            (Kind::Integer { .. } | Kind::ChoiceOrInteger(..), Toml::Integer(n)) => {
                checked(kind.integer(*n))?
            }
            (Kind::Number { .. }, Toml::Integer(n)) => checked(kind.number(*n as f64))?,
            (Kind::Number { .. }, Toml::Float(x)) => checked(kind.number(*x))?,
            (Kind::Moment, Toml::Datetime(datetime)) => {
                Decoded::Moment(moment(datetime).map_err(|what| self.problem(tree, what))?)
            }
            (Kind::Point, Toml::Array(ends)) => {
                let [x, y] = ends.as_slice() else { return Err(self.found(tree)) };
                Decoded::Point(self.length(x)?, self.length(y)?)
            }
            (Kind::DurationPair, Toml::Array(ends)) => {
                let [low, high] = ends.as_slice() else { return Err(self.found(tree)) };
                let (low, high) = (self.duration(low)?, self.duration(high)?);
                if low > high {
                    return Err(
                        self.problem(tree, format!("low end {low} is above high end {high}"))
                    );
                }
                Decoded::Pair(low, high)
            }
            (Kind::Intervals, Toml::Array(elements)) => {
                let mut intervals: Vec<(Instant, Instant)> = Vec::with_capacity(elements.len());
                for element in elements {
                    let Toml::Array(ends) = &element.value else {
                        return Err(self.found(element));
                    };
                    let [start, end] = ends.as_slice() else { return Err(self.found(element)) };
                    let (start, end) = (self.duration(start)?, self.duration(end)?);
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
            (Kind::Waypoints, Toml::Array(elements)) => {
                let mut waypoints: Vec<(Instant, Position)> = Vec::with_capacity(elements.len());
                for element in elements {
                    let Toml::Array(parts) = &element.value else {
                        return Err(self.found(element));
                    };
                    let [at, x, y] = parts.as_slice() else { return Err(self.found(element)) };
                    let at = Instant::ZERO + self.duration(at)?;
                    if waypoints.last().is_some_and(|(before, _)| at < *before) {
                        return Err(self.problem(element, "is earlier than the one before it"));
                    }
                    waypoints.push((at, Position { x: self.length(x)?, y: self.length(y)? }));
                }
                if waypoints.is_empty() {
                    return Err(self.found(tree));
                }
                Decoded::Waypoints(waypoints)
            }
            (Kind::Ordinals, Toml::Array(elements)) => {
                let mut ordinals = Vec::with_capacity(elements.len());
                for element in elements {
                    let n = match element.value {
                        Toml::Integer(n) => u64::try_from(n).ok(),
                        _ => None,
                    };
                    ordinals.push(n.ok_or_else(|| self.found(element))?);
                }
                ordinals.sort_unstable();
                if let Some(twice) = ordinals.windows(2).find(|w| w[0] == w[1]) {
                    return Err(self.problem(tree, format!("lists {} twice", twice[0])));
                }
                Decoded::Ordinals(ordinals)
            }
            (_, Toml::Text(text)) => match kind.parse(text) {
                Some(read) => checked(read)?,
                None => return Err(self.found(tree)),
            },
            (Kind::WordOr(_, inner), _) => self.decode(inner, tree)?,
            _ => return Err(self.found(tree)),
        })
    }

    /// A part of the value.
    fn duration(&self, tree: &Tree) -> Result<Duration, Problem> {
        match self.decode(&TIME, tree)? {
            Decoded::Duration(duration) => Ok(duration),
            other => unreachable!("a duration decoded as {other:?}"),
        }
    }

    /// A part of the value, in metres.
    fn length(&self, tree: &Tree) -> Result<f64, Problem> {
        match self.decode(&LENGTH, tree)? {
            Decoded::Number(metres) => Ok(metres),
            other => unreachable!("a length decoded as {other:?}"),
        }
    }

    fn problem(&self, tree: &Tree, message: impl Into<String>) -> Problem {
        Problem::new(tree.spot, self.path, message).expected(self.kind.describe())
    }
    fn found(&self, tree: &Tree) -> Problem {
        let number = matches!(tree.value, Toml::Integer(_) | Toml::Float(_));
        if number && self.kind.has_unit() {
            return self.problem(tree, format!("{} has no unit", tree.describe()));
        }
        self.problem(tree, format!("found {}", tree.describe()))
    }
    fn wrong(&self, tree: &Tree, what: &str) -> Problem {
        self.problem(tree, format!("{} {what}", tree.describe()))
    }
    fn mistake(&self, tree: &Tree, mistake: Mistake) -> Problem {
        let Mistake { what, expected, unknown } = mistake;
        let problem = self.wrong(tree, &what);
        let problem = match expected {
            Some(expected) => problem.expected(expected),
            None => problem,
        };
        match unknown {
            Some((word, known)) => problem.nearest(&word, known),
            None => problem,
        }
    }
}

const LENGTH: Kind = Kind::Measure(&units::LENGTH);

/// The seconds since 1970, or what is wrong.
fn moment(datetime: &toml_datetime::Datetime) -> Result<u64, String> {
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
    seconds.map_err(|_| format!("{datetime} is before 1970"))
}

fn text_kind(kind: &Kind) -> &'static TextKind {
    match kind {
        Kind::Text(kind) | Kind::Texts { of: kind, .. } => kind,
        Kind::WordOr(_, inner) => text_kind(inner),
        other => panic!("{other:?} is not a text"),
    }
}
