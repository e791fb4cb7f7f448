//! The parts of a declaration: tables, keys, kinds of values, defaults.
//!
//! Readers read by the declaration (undeclared keys and defaults do not exist); documentation and
//! JSON Schema are generated from it.

use crate::units::Measure;
use airtcp_core::Duration;
use std::borrow::Cow;

/// A table of a file.
#[derive(Debug)]
pub struct Table {
    /// Heading in the documentation, and the definition's name in the JSON Schema.
    pub name: &'static str,
    /// Description in the documentation and the JSON Schema.
    pub about: &'static str,
    /// Its keys, in the order of the documentation.
    pub keys: &'static [Key],
    /// True if the table replaces all of a table that it overrides, instead of key by key.
    pub whole: bool,
    /// True if a preset of the enclosing table gives the values of absent keys.
    pub by_preset: bool,
}

/// Keys of a table.
#[derive(Debug)]
pub enum Key {
    /// Fields, one by one.
    Fields(&'static [Field]),
    /// The keys of a part of the settings.
    All(&'static [Key]),
    /// Keys that have an effect only if the key `choice` says `word`.
    With {
        /// A key with a [`Kind::Choice`].
        choice: &'static str,
        /// One of its words.
        word: &'static str,
        /// The keys that depend on it.
        keys: &'static [Key],
    },
    /// Keys whose defaults are replaced by another source ("as the link").
    Otherwise(&'static str, &'static [Key]),
    /// `keys` except these, which stay as declared.
    Without(&'static [&'static str], &'static [Key]),
    /// `keys`, with some declarations replaced.
    Instead {
        /// The declarations that replace those of the same keys.
        fields: &'static [Field],
        /// The keys, with the declarations to be replaced.
        keys: &'static [Key],
    },
}

impl Table {
    /// A table with its keys in the order of the documentation.
    pub const fn new(name: &'static str, about: &'static str, keys: &'static [Key]) -> Self {
        Self { name, about, keys, whole: false, by_preset: false }
    }

    /// The table, whose absent keys are as in the preset of the table that encloses it.
    pub const fn by_preset(mut self) -> Self {
        self.by_preset = true;
        self
    }

    /// The table, made to replace another as a whole.
    pub const fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Every declaration of a key. A key that has an effect with several words of a choice may be
    /// declared once for each. Declarations for words that the table does not offer are left out.
    pub fn fields(&self) -> Vec<Field> {
        let mut fields = Vec::new();
        flatten(self.keys, &mut fields);
        if self.by_preset {
            fields.iter_mut().for_each(|field| field.otherwise(AS_PRESET));
        }
        let choices: Vec<(&str, Vec<&str>)> =
            fields.iter().map(|field| (field.key, field.kind.words())).collect();
        fields.retain_mut(|field| {
            // A choice that the table leaves out has its default.
            field.only.retain(|only| choices.iter().any(|(key, _)| *key == only.choice));
            field.only.iter().all(|only| {
                let mut of_choice = choices.iter().filter(|(key, _)| *key == only.choice);
                of_choice.any(|(_, words)| only.words.iter().any(|word| words.contains(word)))
            })
        });
        fields
    }
}

/// Adds the declarations of `keys`.
fn flatten(keys: &'static [Key], fields: &mut Vec<Field>) {
    for key in keys {
        let from = fields.len();
        match key {
            Key::Fields(own) => fields.extend_from_slice(own),
            Key::All(keys) => flatten(keys, fields),
            Key::With { choice, word, keys } => {
                flatten(keys, fields);
                let only = Only { choice, words: std::slice::from_ref(word) };
                fields[from..].iter_mut().for_each(|field| field.only.add(only));
            }
            Key::Otherwise(text, keys) => {
                flatten(keys, fields);
                fields[from..].iter_mut().for_each(|field| field.otherwise(text));
            }
            Key::Without(left_out, keys) => {
                flatten(keys, fields);
                let added = fields.split_off(from);
                fields.extend(added.into_iter().filter(|f| !left_out.contains(&f.key)));
            }
            Key::Instead { fields: others, keys } => {
                flatten(keys, fields);
                for field in &mut fields[from..] {
                    if let Some(other) = others.iter().find(|other| other.key == field.key) {
                        let only = if other.only.is_empty() { field.only } else { other.only };
                        *field = Field { only, ..*other };
                    }
                }
            }
        }
    }
}

/// The key that names a preset: values of the keys that are not written.
pub const PRESET: &str = "preset";
/// Text of [`Key::Otherwise`] for keys whose values a preset gives.
pub const AS_PRESET: &str = "as the preset";

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The key as written.
    pub key: &'static str,
    /// The values that it may have.
    pub kind: Kind,
    /// The value of an absent key.
    pub fallback: Fallback,
    /// Purpose of the key, for the documentation.
    pub meaning: &'static str,
    /// Origin of the rule or the default: an RFC, a paper, a program; may be empty.
    pub source: &'static str,
    /// The key is refused unless other keys of the table have these words.
    pub only: Conditions,
    /// The part of the table's subject that the key affects, if not all ("a flow's sender").
    pub matters_to: Option<&'static str>,
    /// In an array of tables: the keys that name an element without `name`.
    pub named_by: &'static [&'static str],
    /// Without it the table is about something else: an override that takes its effect is refused,
    /// and does not make it obsolete.
    pub is_essential: bool,
}

/// A condition: the key `choice` must have one of `words`.
#[derive(Clone, Copy, Debug)]
pub struct Only {
    /// A key with a [`Kind::Choice`].
    pub choice: &'static str,
    /// Some of its words.
    pub words: &'static [&'static str],
}

/// Conditions that must all hold: a key's own, and that of the choice it stands under.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions([Option<Only>; 2]);

impl Conditions {
    /// None: the key always has an effect.
    pub const NONE: Self = Self([None, None]);

    /// A single condition.
    pub const fn one(choice: &'static str, words: &'static [&'static str]) -> Self {
        Self([Some(Only { choice, words }), None])
    }

    /// Two: that of the outer choice first.
    pub const fn two(outer: Only, inner: Only) -> Self {
        Self([Some(inner), Some(outer)])
    }

    /// The conditions, that of the outermost choice first.
    pub fn iter(&self) -> impl Iterator<Item = Only> + Clone {
        self.0.into_iter().rev().flatten()
    }

    /// The ways in which a key has an effect, one for each declaration. Declarations that differ
    /// only in the word of a single condition are merged.
    pub fn ways(declarations: impl Iterator<Item = Self>) -> Vec<Vec<Way>> {
        let mut ways: Vec<Vec<Way>> = Vec::new();
        for conditions in declarations {
            let way = conditions
                .iter()
                .map(|only| Way { choice: only.choice, words: only.words.to_vec() });
            let way: Vec<Way> = way.collect();
            let same = |other: &&mut Vec<Way>| match (&other[..], &way[..]) {
                ([other], [own]) => other.choice == own.choice,
                _ => false,
            };
            match ways.iter_mut().find(same) {
                Some(other) => other[0].words.extend(&way[0].words),
                None => ways.push(way),
            }
        }
        ways
    }

    /// True if none of the words chosen so far contradicts them; `chosen` has pairs of the choice's
    /// key and its word.
    pub fn hold(&self, chosen: &[(&'static str, &'static str)]) -> bool {
        self.iter().all(|only| {
            let word = chosen.iter().find(|(choice, _)| *choice == only.choice);
            word.is_none_or(|(_, word)| only.words.contains(word))
        })
    }

    /// The key always has an effect.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    fn add(&mut self, only: Only) {
        let free = self.0.iter_mut().find(|place| place.is_none());
        *free.expect("a key stands under two choices at most") = Some(only);
    }

    fn retain(&mut self, keep: impl Fn(&Only) -> bool) {
        self.0 = self.0.map(|only| only.filter(&keep));
    }
}

/// A condition for readers of messages and documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// A key with a [`Kind::Choice`].
    pub choice: &'static str,
    /// Some of its words.
    pub words: Vec<&'static str>,
}

/// The value of an absent key.
#[derive(Clone, Copy, Debug)]
pub enum Fallback {
    /// The key is required.
    Required,
    /// As if this had been written (strings without their quotes).
    Is(&'static str),
    /// As if this had been written: a value of the struct that the key fills.
    Value(fn() -> String),
    /// No value; the text says what that means.
    Absent(&'static str),
    /// The text says what applies; for a reader that needs a value, as if this had been written.
    Or(&'static str, fn() -> String),
}

impl Fallback {
    /// The text that is read in place of an absent key.
    pub fn text(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Is(text) => Some(Cow::Borrowed(text)),
            Self::Value(value) | Self::Or(_, value) => Some(Cow::Owned(value())),
            Self::Required | Self::Absent(_) => None,
        }
    }
}

/// The form and bounds of a value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A name: letters, digits, `-` and `_`.
    Name,
    /// A text with its own syntax.
    Text(&'static TextKind),
    /// An array of such texts.
    Texts {
        /// The kind of text.
        of: &'static TextKind,
        /// Number of elements.
        count: Count,
    },
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer {
        /// Lower bound, inclusive.
        min: u64,
        /// Upper bound, inclusive.
        max: u64,
    },
    /// A number, whole or not.
    Number {
        /// Lower bound, inclusive unless `above`.
        min: f64,
        /// Upper bound, inclusive.
        max: f64,
        /// True if `min` itself is refused.
        above: bool,
    },
    /// A duration with its unit.
    Duration {
        /// The shortest, itself allowed.
        min: Duration,
        /// The longest, itself allowed.
        max: Duration,
    },
    /// A moment, to the second: TOML's date-time with its offset from UTC.
    Moment,
    /// A rate above zero with its unit.
    Rate,
    /// A number of bytes with its unit.
    Size {
        /// The smallest, in bytes.
        min: u64,
        /// The largest, in bytes.
        max: u64,
    },
    /// A physical quantity.
    Measure(&'static Measure),
    /// A position `[x, y]`, as two lengths.
    Point,
    /// Packets, perhaps a fraction (an average).
    Packets,
    /// A queue's size in packets.
    WholePackets,
    /// A queue's size: packets or bytes.
    PacketsOrSize,
    /// One of some words.
    Choice(&'static [Word]),
    /// One of some words, or a number of segments.
    ChoiceOrSegments(&'static [Word]),
    /// One of some words, or a whole number up to this.
    ChoiceOrInteger(&'static [Word], u64),
    /// The word, or the kind; the word means "absent".
    WordOr(&'static str, &'static Kind),
    /// Two durations, low and high.
    DurationPair,
    /// `[start, end]` pairs, ascending and disjoint.
    Intervals,
    /// `[time, x, y]` triples, in ascending order of time.
    Waypoints,
    /// Distinct whole numbers.
    Ordinals,
    /// A table with these keys.
    Table(&'static Table),
    /// The word, or a table; the word means "absent".
    WordOrTable(&'static str, &'static Table),
    /// A value of the kind, or a table.
    OrTable(&'static Kind, &'static Table),
    /// An array of tables with at least one element.
    Tables(&'static Table),
}

/// A word of a choice, and what it means.
pub type Word = (&'static str, &'static str);

/// A text with its own syntax, such as the name of a node or an address. The file's reader checks
/// it (`Section::parse` of `airtcp-config`).
#[derive(Debug)]
pub struct TextKind {
    /// Its name in the documentation: "node".
    pub name: &'static str,
    /// Plural of the name: "nodes".
    pub plural: &'static str,
    /// Text for messages: "the name of a node", perhaps with an example.
    pub expected: &'static str,
    /// Plural of `expected`: "names of nodes", perhaps with an example.
    pub expected_plural: &'static str,
}

/// Number of elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// One or more.
    Some,
    /// Exactly two.
    Two,
}

/// A key without conditions; see [`Field`] for the parts.
pub const fn field(
    key: &'static str,
    kind: Kind,
    fallback: Fallback,
    meaning: &'static str,
) -> Field {
    let only = Conditions::NONE;
    Field {
        key,
        kind,
        fallback,
        meaning,
        source: "",
        only,
        matters_to: None,
        named_by: &[],
        is_essential: false,
    }
}

impl Field {
    /// Another source, which the text names, comes before the default.
    fn otherwise(&mut self, text: &'static str) {
        self.fallback = match self.fallback {
            Fallback::Value(value) => Fallback::Or(text, value),
            _ => Fallback::Absent(text),
        };
    }
    /// Adds where the rule or the default comes from.
    pub const fn source(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }
    /// Refused unless `choice` is one of `words`.
    pub const fn only(mut self, choice: &'static str, words: &'static [&'static str]) -> Self {
        self.only = Conditions::one(choice, words);
        self
    }
    /// Refused unless the conditions hold.
    pub const fn under(mut self, conditions: Conditions) -> Self {
        self.only = conditions;
        self
    }
    /// Adds what the key matters to.
    pub const fn matters_to(mut self, what: &'static str) -> Self {
        self.matters_to = Some(what);
        self
    }
    /// Makes the key [essential](Field::is_essential).
    pub const fn essential(mut self) -> Self {
        self.is_essential = true;
        self
    }
    /// Adds the keys that name an element.
    pub const fn named_by(mut self, keys: &'static [&'static str]) -> Self {
        self.named_by = keys;
        self
    }
}

/// Any duration, zero included.
pub const TIME: Kind = Kind::Duration { min: Duration::ZERO, max: Duration::MAX };
/// A duration above zero.
pub const POSITIVE_TIME: Kind = Kind::Duration { min: Duration::from_nanos(1), max: Duration::MAX };
/// A file with values, read where it is named.
pub static PATH: TextKind = TextKind {
    name: "path",
    plural: "paths",
    expected: "the path of a file",
    expected_plural: "paths of files",
};
/// From 0 to 1.
pub const PROBABILITY: Kind = Kind::Number { min: 0.0, max: 1.0, above: false };
/// A duration of at least `min`.
pub const fn at_least(min: Duration) -> Kind {
    Kind::Duration { min, max: Duration::MAX }
}

/// Choices without meanings.
pub const fn words<const N: usize>(choices: &[Word]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut i = 0;
    while i < N {
        words[i] = choices[i].0;
        i += 1;
    }
    words
}

/// Some words of a choice, in this order. In a constant, an unknown word does not compile.
pub const fn choose<const N: usize>(choices: &[Word], words: [&str; N]) -> [Word; N] {
    let mut chosen = [("", ""); N];
    let mut i = 0;
    while i < N {
        let mut k = 0;
        while !same(choices[k].0.as_bytes(), words[i].as_bytes()) {
            k += 1;
        }
        chosen[i] = choices[k];
        i += 1;
    }
    chosen
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
