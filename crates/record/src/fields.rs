//! Named values in a recording, in a packet's comment (`airtcp group=0 action=inject`) or in a
//! journal entry (one line `AIRTCP_GROUP=0` each).

use std::fmt::Display;
use std::str::FromStr;

/// Prefix of a packet's comment written by airtcp.
const COMMENT: &str = "airtcp";
/// Prefix of the names of airtcp's fields in journal entries.
const JOURNAL: &str = "AIRTCP_";

/// Error in a field of a recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The field is missing.
    #[error("{key} is missing")]
    Missing {
        /// Name of the field.
        key: &'static str,
    },
    /// The field does not have an expected value.
    #[error("{key}={value}: expected {expected}")]
    Invalid {
        /// Name of the field.
        key: &'static str,
        /// The value found.
        value: String,
        /// Description of the expected values.
        expected: String,
    },
}

/// Named values in the order of writing. Names are lower-case with hyphens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Returns the fields with one more.
    pub(crate) fn with(mut self, key: &str, value: impl Display) -> Self {
        self.put(key, value);
        self
    }

    /// Adds a field.
    pub(crate) fn put(&mut self, key: &str, value: impl Display) {
        self.0.push((key.to_owned(), value.to_string()));
    }

    /// Formats the fields as a packet's comment; values must not contain white space.
    pub(crate) fn to_comment(&self) -> String {
        let mut comment = COMMENT.to_owned();
        for (key, value) in &self.0 {
            comment += &format!(" {key}={value}");
        }
        comment
    }

    /// Parses a packet's comment; `None` if another program wrote it.
    pub(crate) fn from_comment(comment: &str) -> Option<Self> {
        let mut words = comment.split_whitespace();
        if words.next() != Some(COMMENT) {
            return None;
        }
        let pair = |word: &str| word.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
        Some(Self(words.filter_map(pair).collect()))
    }

    /// Formats the fields as lines of a journal entry.
    pub(crate) fn to_journal(&self) -> String {
        let mut lines = String::new();
        for (key, value) in &self.0 {
            lines += JOURNAL;
            lines += &key.to_ascii_uppercase().replace('-', "_");
            lines += "=";
            // A line break would end the value.
            lines.extend(value.chars().map(|c| if c.is_control() { ' ' } else { c }));
            lines += "\n";
        }
        lines
    }

    /// Parses a journal entry; ignores the fields of other programs.
    pub(crate) fn from_journal(entry: &str) -> Self {
        let field = |line: &str| {
            let (key, value) = line.strip_prefix(JOURNAL)?.split_once('=')?;
            Some((key.to_ascii_lowercase().replace('_', "-"), value.to_owned()))
        };
        Self(entry.lines().filter_map(field).collect())
    }

    /// True if there are no fields.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value with this name, if there is one.
    pub(crate) fn find(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// The value with this name, which must exist.
    pub(crate) fn get(&self, key: &'static str) -> Result<&str, FieldError> {
        self.find(key).ok_or(FieldError::Missing { key })
    }

    /// The value with this name, parsed by `read`; `expected` describes the accepted values.
    pub(crate) fn read<T>(
        &self,
        key: &'static str,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, FieldError> {
        let value = self.get(key)?;
        read(value).ok_or_else(|| FieldError::Invalid {
            key,
            value: value.to_owned(),
            expected: expected.to_owned(),
        })
    }

    /// The value with this name, parsed as a number.
    pub(crate) fn number<T: FromStr>(&self, key: &'static str) -> Result<T, FieldError> {
        self.read(key, "a number", |value| value.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Fields {
        Fields::default().with("group", 7).with("max-down", "60 s")
    }

    #[test]
    fn a_journal_entry_reads_back_among_fields_of_others() {
        let entry = format!("MESSAGE=hello\n{}PRIORITY=6\n", fields().to_journal());
        assert!(entry.contains("AIRTCP_MAX_DOWN=60 s\n"), "{entry}");
        assert_eq!(Fields::from_journal(&entry), fields());
        assert!(Fields::from_journal("MESSAGE=hello\n").is_empty());
    }

    #[test]
    fn only_a_comment_of_airtcp_reads_back() {
        let fields = Fields::default().with("group", 7).with("action", "inject");
        assert_eq!(fields.to_comment(), "airtcp group=7 action=inject");
        assert_eq!(Fields::from_comment(&fields.to_comment()), Some(fields));
        assert_eq!(Fields::from_comment("look at this: group=7"), None);
    }

    #[test]
    fn a_line_break_in_a_value_does_not_start_a_field() {
        let entry = Fields::default().with("name", "a\nAIRTCP_GROUP=9").to_journal();
        assert_eq!(Fields::from_journal(&entry).find("group"), None);
    }

    #[test]
    fn a_missing_or_wrong_value_is_reported_by_name() {
        let message = |error: FieldError| error.to_string();
        assert_eq!(message(fields().number::<u32>("block").unwrap_err()), "block is missing");
        let wrong = Fields::default().with("group", "x").number::<u32>("group").unwrap_err();
        assert_eq!(message(wrong), "group=x: expected a number");
    }
}
