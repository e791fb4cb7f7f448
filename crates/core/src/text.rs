//! Text for people.

use std::fmt::Display;

/// A number and what it counts, a noun in the singular: `1 run`, `2 runs`.
pub fn counted<N: Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    let plural = if n == N::from(1) { "" } else { "s" };
    format!("{n} {noun}{plural}")
}

/// A line of a text, its number before it and carets under `width` characters from `column` on (both from 1).
/// Of a long line only a window around these is shown.
pub fn excerpt(number: usize, line: &str, column: usize, width: usize) -> String {
    const WIDTH: usize = 120;
    let column = column - 1;
    let skipped = if line.chars().count() <= WIDTH { 0 } else { column.saturating_sub(40) };
    let shown: String = line.chars().skip(skipped).take(WIDTH).collect();
    // Tabs keep their width above the caret.
    let indent: String = (shown.chars().take(column - skipped))
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let room = shown.chars().count().saturating_sub(column - skipped).max(1);
    let carets = "^".repeat(width.min(room));
    let number = number.to_string();
    let margin = " ".repeat(number.len());
    format!("{margin} |\n{number} | {shown}\n{margin} | {indent}{carets}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carets_are_under_the_place_and_within_the_line() {
        assert_eq!(excerpt(7, "\ta = 1x", 6, 2), "  |\n7 | \ta = 1x\n  | \t    ^^");
        assert_eq!(excerpt(12, "ab", 2, 9), "   |\n12 | ab\n   |  ^");
        assert_eq!(excerpt(1, "", 1, 1), "  |\n1 | \n  | ^");
        let long = "x".repeat(300);
        let shown = excerpt(1, &long, 200, 1);
        assert_eq!(shown.lines().nth(1).unwrap().len(), "1 | ".len() + 120);
        assert_eq!(shown.lines().nth(2).unwrap().find('^'), Some("1 | ".len() + 40));
    }
}
