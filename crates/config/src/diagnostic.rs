//! Mistakes in a file: position, message, what was expected instead.
//!
//! A [`Diagnostic`] is one mistake; a [`ConfigError`] holds all that were found in one reading.
//! `Display` gives one line per mistake; [`ConfigError::render`] adds the source line and a caret.

use airtcp_core::excerpt;
use airtcp_settings::Spot;
use std::fmt;

/// Message about a key that is required and absent.
pub(crate) const MISSING: &str = "missing";

/// A mistake whose line is not known yet; [`Section::push`](crate::Section::push) reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub(crate) spot: Spot,
    key: Box<str>,
    message: String,
    expected: Option<String>,
    suggestion: Option<String>,
    may_follow: bool,
}

impl Problem {
    pub(crate) fn new(spot: Spot, key: impl Into<String>, message: impl Into<String>) -> Self {
        let (key, message) = (key.into().into_boxed_str(), message.into());
        Self { spot, key, message, expected: None, suggestion: None, may_follow: false }
    }
    /// Adds what was expected.
    pub fn expected(mut self, what: impl Into<String>) -> Self {
        self.expected = Some(what.into());
        self
    }
    /// Adds what was probably meant.
    pub fn suggest(mut self, what: impl Into<String>) -> Self {
        self.suggestion = Some(what.into());
        self
    }
    /// Marks a mistake that another one may have caused: it is listed after the others.
    pub fn may_follow(mut self) -> Self {
        self.may_follow = true;
        self
    }
    /// The same, if one of these keys is said to be missing where it belongs: it is elsewhere.
    pub(crate) fn follow_from(&mut self, misplaced: &[String]) {
        self.may_follow |=
            self.message == MISSING && misplaced.iter().any(|key| **key == *self.key);
    }
    /// The nearest valid name, if any is near.
    pub(crate) fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }
    /// Suggests the candidate nearest to `found`; lists the candidates if none is near.
    pub fn nearest<'a>(
        mut self,
        found: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let candidates: Vec<&str> = candidates.into_iter().collect();
        self.suggestion = nearest(found, &candidates).map(str::to_owned);
        if self.suggestion.is_none() && self.expected.is_none() && !candidates.is_empty() {
            const SHOWN: usize = 20;
            let more = if candidates.len() > SHOWN { ", …" } else { "" };
            let shown = &candidates[..candidates.len().min(SHOWN)];
            self.expected = Some(format!("one of {}{more}", shown.join(", ")));
        }
        self
    }
    /// Fills in line, column and source line from the texts.
    pub(crate) fn locate(self, sources: &[Source]) -> Diagnostic {
        let source = &sources[self.spot.source];
        let start = floor_char_boundary(&source.text, self.spot.start);
        let before = &source.text[..start];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line_text = source.text[line_start..].lines().next().unwrap_or("").to_owned();
        let end = floor_char_boundary(&source.text, self.spot.end).max(start);
        Diagnostic {
            source: source.name.clone(),
            line: before.matches('\n').count() + 1,
            column: source.text[line_start..start].chars().count() + 1,
            key: self.key.into(),
            message: self.message,
            expected: self.expected,
            suggestion: self.suggestion,
            width: source.text[start..end].lines().next().unwrap_or("").chars().count().max(1),
            line_text,
        }
    }
}

/// A text that a configuration is read from, and its name.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// One mistake in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The name of the file, or `--set`.
    pub source: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Dotted path of the key, with elements by their names (`link.BS-MH.loss.p`); empty if the
    /// text is not valid TOML.
    pub key: String,
    /// The complaint, with the key as its subject.
    pub message: String,
    /// The expected form of the value, or what else would make the file right.
    pub expected: Option<String>,
    /// The nearest valid name.
    pub suggestion: Option<String>,
    line_text: String,
    width: usize,
}

impl Diagnostic {
    /// The `Display` line, the source line and a caret under the mistake.
    pub fn render(&self) -> String {
        format!("{self}\n{}", excerpt(self.line, &self.line_text, self.column, self.width))
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, line, column, key, message, expected, suggestion, .. } = self;
        write!(f, "{source}:{line}:{column}: ")?;
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        f.write_str(message)?;
        match (expected, suggestion) {
            (None, None) => Ok(()),
            (Some(e), None) => write!(f, " (expected {e})"),
            (None, Some(s)) => write!(f, " (did you mean `{s}`?)"),
            (Some(e), Some(s)) => write!(f, " (expected {e}; did you mean `{s}`?)"),
        }
    }
}

/// A configuration that cannot be used: all its mistakes in the order of the text, with those that
/// [may follow](Problem::may_follow) from others at the end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .diagnostics.iter().map(Diagnostic::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError {
    /// The mistakes; never empty.
    pub diagnostics: Vec<Diagnostic>,
}

impl ConfigError {
    /// Sorts the mistakes and drops repetitions.
    pub(crate) fn new(mut problems: Vec<Problem>, sources: &[Source]) -> Self {
        problems.sort_by_key(|p| (p.may_follow, p.spot));
        // A table that several flows inherit is read several times.
        let mut once: Vec<Problem> = Vec::with_capacity(problems.len());
        for problem in problems {
            let same_place = once.iter().rev().take_while(|p| p.spot == problem.spot);
            if !same_place.into_iter().any(|p| *p == problem) {
                once.push(problem);
            }
        }
        Self { diagnostics: once.into_iter().map(|p| p.locate(sources)).collect() }
    }
    /// The first mistakes with their source lines and carets, for a terminal.
    pub fn render(&self) -> String {
        const SHOWN: usize = 20;
        let mut parts: Vec<String> =
            self.diagnostics.iter().take(SHOWN).map(Diagnostic::render).collect();
        if let more @ 1.. = self.diagnostics.len().saturating_sub(SHOWN) {
            parts.push(format!("and {more} more"));
        }
        parts.join("\n\n")
    }
}

/// The candidate that `found` was most likely meant to be, if any is near: it differs in case only,
/// or at most a third of its characters are mistyped (one in a short name, none in a single
/// letter).
pub fn nearest<'a>(found: &str, candidates: &[&'a str]) -> Option<&'a str> {
    // M-TCP+ is `m-tcp-plus`, not `m-tcp`.
    let lower = found.to_lowercase().replace('+', "-plus");
    let limit = match found.chars().count() {
        0 | 1 => 0,
        n => (n / 3).clamp(1, 4),
    };
    candidates
        .iter()
        .map(|c| (strsim::osa_distance(&lower, &c.to_lowercase()), *c))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_plus_is_written_as_a_word() {
        let mechanisms = ["wake", "m-tcp", "m-tcp-plus"];
        assert_eq!(nearest("M-TCP+", &mechanisms), Some("m-tcp-plus"));
        assert_eq!(nearest("m-tpc", &mechanisms), Some("m-tcp"));
    }
}
