//! Text for people.

use std::fmt::Display;

/// A number and what it counts, a noun in the singular: `1 run`, `2 runs`.
pub fn counted<N: Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    let plural = if n == N::from(1) { "" } else { "s" };
    format!("{n} {noun}{plural}")
}
