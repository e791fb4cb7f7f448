//! The text of a script: a cursor over it, and errors that point into it.

use airtcp_core::excerpt;
use std::fmt;

/// A syntax error in a script, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// Name of the script's file, as given.
    pub file: String,
    /// Line of the error, from 1.
    pub line: usize,
    /// Column of the error in characters, from 1.
    pub column: usize,
    /// Description of the error, such as what was expected.
    pub message: String,
    line_text: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, .. } = self;
        write!(f, "{file}:{line}:{column}: {message}")
    }
}

impl ParseError {
    /// The error with its line, and a caret below its position.
    pub fn render(&self) -> String {
        format!("{self}\n{}", excerpt(self.line, &self.line_text, self.column, 1))
    }
}

pub(crate) type Parsed<T> = Result<T, ParseError>;

/// A position in the text, from which words are read. White space and comments separate words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'t> {
    file: &'t str,
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Line of the position, from 1.
    pub(crate) fn line(&self) -> usize {
        self.text[..self.at].matches('\n').count() + 1
    }

    /// An error at the position.
    pub(crate) fn error(&self, message: impl Into<String>) -> ParseError {
        let start = self.text[..self.at].rfind('\n').map_or(0, |newline| newline + 1);
        let line_text = self.text[start..].lines().next().unwrap_or_default().to_owned();
        ParseError {
            file: self.file.to_owned(),
            line: self.line(),
            column: self.text[start..self.at].chars().count() + 1,
            message: message.into(),
            line_text,
        }
    }

    /// An error with what was expected at the position and what was found.
    pub(crate) fn expected(&self, what: &str) -> ParseError {
        let found: String =
            self.rest().chars().take_while(|c| !c.is_whitespace()).take(20).collect();
        if found.is_empty() {
            let end = if self.rest().is_empty() { "the script" } else { "the line" };
            return self.error(format!("expected {what}, found the end of {end}"));
        }
        self.error(format!("expected {what}, found `{found}`"))
    }

    /// Skips white space and comments (`//`, `/* */`, `#` where a line begins or after a blank).
    pub(crate) fn skip_blank(&mut self) -> Parsed<()> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") || trimmed.starts_with('#') {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                let Some(end) = trimmed.find("*/") else {
                    return Err(self.error("unterminated comment: expected `*/`"));
                };
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    /// Skips blanks; returns the next character, if any.
    pub(crate) fn peek(&mut self) -> Parsed<Option<char>> {
        self.skip_blank()?;
        Ok(self.rest().chars().next())
    }

    /// The next character, without skipping blanks.
    pub(crate) fn peek_raw(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// True if `text` stands next, after blanks.
    pub(crate) fn sees(&mut self, text: &str) -> Parsed<bool> {
        self.skip_blank()?;
        Ok(self.rest().starts_with(text))
    }

    /// Takes `text` if it stands next, after blanks.
    pub(crate) fn eat(&mut self, text: &str) -> Parsed<bool> {
        let sees = self.sees(text)?;
        if sees {
            self.at += text.len();
        }
        Ok(sees)
    }

    /// Takes `text`, which must stand next.
    pub(crate) fn expect(&mut self, text: &str) -> Parsed<()> {
        if self.eat(text)? { Ok(()) } else { Err(self.expected(&format!("`{text}`"))) }
    }

    /// Takes the characters that `wanted` accepts, without skipping blanks.
    pub(crate) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let len = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// Takes everything up to `end`, and `end`.
    pub(crate) fn take_until(&mut self, end: &str) -> Option<&'t str> {
        let rest = self.rest();
        let len = rest.find(end)?;
        self.at += len + end.len();
        Some(&rest[..len])
    }

    /// Takes a backslash and the character after it; false if none follows.
    pub(crate) fn skip_escape(&mut self) -> bool {
        let escaped = self.rest().chars().nth(1);
        if let Some(c) = escaped {
            self.at += 1 + c.len_utf8();
        }
        escaped.is_some()
    }

    /// The text from here to `end`, in one line.
    pub(crate) fn up_to(&self, end: &Self) -> String {
        self.text[self.at..end.at].split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The word that stands next (letters, digits, `_`), without taking it; empty if none does.
    pub(crate) fn peek_word(&mut self) -> Parsed<&'t str> {
        self.skip_blank()?;
        let mut ahead = *self;
        Ok(ahead.take_while(is_word))
    }

    /// Takes a word; `what` describes it in the error.
    pub(crate) fn word(&mut self, what: &str) -> Parsed<&'t str> {
        self.skip_blank()?;
        let word = self.take_while(is_word);
        if word.is_empty() { Err(self.expected(what)) } else { Ok(word) }
    }

    /// Takes `word` if it stands next.
    pub(crate) fn eat_word(&mut self, word: &str) -> Parsed<bool> {
        let sees = self.peek_word()? == word;
        if sees {
            self.at += word.len();
        }
        Ok(sees)
    }

    /// Takes an integer: decimal with an optional sign, or hexadecimal with `0x`.
    pub(crate) fn integer(&mut self, what: &str) -> Parsed<i64> {
        self.skip_blank()?;
        let start = *self;
        let negative = self.rest().starts_with('-');
        self.at += usize::from(negative);
        let digits = self.take_while(is_word);
        let value = match digits.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse().ok(),
            None => None,
        };
        match value {
            Some(value) => Ok(if negative { -value } else { value }),
            None => {
                *self = start;
                Err(self.expected(what))
            }
        }
    }

    /// Takes an integer that fits into `T`.
    pub(crate) fn number<T: TryFrom<i64>>(&mut self, what: &str) -> Parsed<T> {
        self.skip_blank()?;
        let start = *self;
        let value = self.integer(what)?;
        T::try_from(value).map_err(|_| start.error(format!("{value} is out of range for {what}")))
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
