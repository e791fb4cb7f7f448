//! The little Python that scripts need: assertions on numbers, and variables.
//!
//! A statement is `assert TEST, MESSAGE`, an assignment (`=`, `+=`, `-=`) or `print(…)`, which does
//! nothing. An expression has numbers, strings, names, arithmetic, comparisons (also in chains) and
//! `and`, `or`, `not`. Whatever else a script contains is named, not run.

mod eval;
mod parse;

pub(crate) use eval::{Stop, Variables, names, run};
pub(crate) use parse::parse;

/// A construct that this subset of Python lacks, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beyond(pub(crate) String);

/// A statement and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statement {
    /// Lines after the first line of the code.
    pub(crate) line: usize,
    pub(crate) kind: StatementKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StatementKind {
    /// The test, and its text in the script.
    Assert(Expr, String),
    Assign(String, Expr),
}

/// An expression of this subset of Python.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Number(f64),
    Text(String),
    Name(String),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    /// Arithmetic, or bitwise `&` and `|`.
    Binary(Box<Expr>, &'static str, Box<Expr>),
    /// `a < b <= c`: the first value, then each comparison.
    Compare(Box<Expr>, Vec<(&'static str, Expr)>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
}
