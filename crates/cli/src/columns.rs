//! Aligns the columns of a table.

use std::fmt::Write;

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
