//! Text for people: aligned columns, and counts.

use std::fmt::{Display, Write};

/// A number and what it counts, a noun in the singular: `1 run`, `2 runs`.
pub fn counted<N: Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    let plural = if n == N::from(1) { "" } else { "s" };
    format!("{n} {noun}{plural}")
}

/// Rows as lines with aligned columns: flush left for those in `left`, else flush right.
pub fn aligned<const N: usize>(rows: &[[String; N]], left: &[usize]) -> String {
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut out = String::new();
    for row in rows {
        let cell = |(i, text): (usize, &String)| match left.contains(&i) {
            true => format!("{text:<0$}", widths[i]),
            false => format!("{text:>0$}", widths[i]),
        };
        let line = row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
