//! The interface to a source of settings.

use crate::schema::{Key, Table};
use crate::value::{Name, Value};
use std::fmt::Display;

/// A struct or enum whose keys are declared with it, by [`settings!`](crate::settings) or
/// [`alternatives!`](crate::alternatives).
pub trait Settings: Sized + Clone {
    /// Its keys, in the order of the documentation.
    const KEYS: &'static [Key];

    /// Reads all the keys, so that all mistakes are found. A key that is not written is as in
    /// `base`; without a base, as declared. `None` if something is wrong, which has been reported.
    fn read<R: Reader>(from: &R, base: Option<&Self>) -> Option<Self>;

    /// Adds the keys and values that describe it, in the order of the declaration.
    fn write(&self, to: &mut Vec<(&'static str, String)>);
}

/// Settings that have a table of their own.
pub trait InTable: Settings {
    /// The table, as documented and as read.
    const TABLE: &'static Table;
}

/// One table to read from, which collects mistakes.
pub trait Reader: Sized {
    /// True if the key is written and has an effect with the words chosen so far.
    fn written(&self, key: &str) -> bool;

    /// True if an absent key has a value.
    fn has_default(&self, key: &str) -> bool;

    /// The value of a key or its default; `None` if it is wrong or missing (which is then
    /// reported).
    fn get<T: Value>(&self, key: &str) -> Option<T>;

    /// The table under a key; `None` if the key is absent or its value is not a table (reported
    /// unless its kind allows another form). In a format without tables there is none.
    fn table(&self, _key: &str) -> Option<Self> {
        None
    }

    /// The tables of an array of tables.
    fn tables(&self, _key: &str) -> Vec<Self> {
        Vec::new()
    }

    /// What `parse` makes of the text of the file that `key` names; `None` if the file cannot be read
    /// or parsed, which has been reported. In a format without files there is none.
    fn file<T, E: Display>(
        &self,
        key: &'static str,
        _file: &Name,
        _parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.refuse(Some(key), "names a file".to_owned(), "a key without a file");
        None
    }

    /// `word` is chosen: refuses the keys that have no effect with it.
    fn chosen(&self, choice: &'static str, word: &'static str);

    /// Reports that the value of `key` contradicts others (or, without a key, that the table does);
    /// `expected` says what was expected.
    fn refuse(&self, key: Option<&'static str>, message: String, expected: &str);

    /// The word of a choice, or that of `base` if none is written; where the key is left out, that
    /// of `absent`. Keys of other words are refused.
    fn choose(
        &self,
        choice: &'static str,
        base: Option<&'static str>,
        absent: Option<&'static str>,
    ) -> Option<&'static str> {
        let word = match base.or(absent.filter(|_| !self.has_default(choice))) {
            Some(word) if !self.written(choice) => word,
            _ => self.get(choice)?,
        };
        self.chosen(choice, word);
        Some(word)
    }
}
