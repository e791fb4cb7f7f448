//! Parser of statements and expressions.

use super::{Beyond, Expr, Statement, StatementKind};

/// Most tokens of an expression, so that its tree is not deeper than the stack.
const LONGEST: usize = 500;
/// Deepest nesting of expressions.
const DEEPEST: u32 = 64;

/// Operators, longer ones first.
const OPERATORS: &[&str] = &[
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "*=", "<", ">", "=", "+", "-", "*",
    "/", "%", "&", "|", "^", "(", ")", "[", "]", "{", "}", ",", ":", ".", "~", "@",
];

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Text(String),
    Word(String),
    Operator(&'static str),
}

/// Parses a piece of code.
///
/// # Errors
/// The code uses Python that is not supported here.
pub(crate) fn parse(code: &str) -> Result<Vec<Statement>, Beyond> {
    let mut statements = Vec::new();
    for (line, text) in logical_lines(code) {
        for text in split_statements(&text) {
            let text = text.trim();
            if !text.is_empty() {
                statements.extend(statement(line, text)?);
            }
        }
    }
    Ok(statements)
}

/// Logical lines without comments, joined at backslashes and inside open brackets, each with the
/// number of its first line.
fn logical_lines(code: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (number, line) in code.split('\n').enumerate() {
        let line = without_comment(line).trim_end();
        let (line, goes_on) = match line.strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        match lines.last_mut() {
            Some((_, last)) if open => {
                last.push(' ');
                last.push_str(line);
            }
            _ => lines.push((number, line.to_owned())),
        }
        open = goes_on || lines.last().is_some_and(|(_, text)| has_open_bracket(text));
    }
    lines
}

fn without_comment(line: &str) -> &str {
    outside_quotes(line).find(|(_, c)| *c == '#').map_or(line, |(at, _)| &line[..at])
}

fn has_open_bracket(text: &str) -> bool {
    let depth = outside_quotes(text).fold(0_i64, |depth, (_, c)| match c {
        '(' | '[' | '{' => depth + 1,
        ')' | ']' | '}' => depth - 1,
        _ => depth,
    });
    depth > 0
}

fn split_statements(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, c) in outside_quotes(text) {
        if c == ';' {
            parts.push(&text[start..at]);
            start = at + 1;
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The characters outside string literals, with their offsets.
fn outside_quotes(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quote = None;
    text.char_indices().filter(move |(_, c)| match (quote, *c) {
        (None, '"' | '\'') => {
            quote = Some(*c);
            false
        }
        (None, _) => true,
        (Some(q), c) => {
            if q == c {
                quote = None;
            }
            false
        }
    })
}

/// Parses a statement; `None` if it has no effect here.
fn statement(line: usize, text: &str) -> Result<Option<Statement>, Beyond> {
    let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let kind = match word.as_str() {
        "print" | "pass" => return Ok(None),
        "assert" => {
            // The message is only for people.
            let test = first_part(text["assert".len()..].trim());
            StatementKind::Assert(expression(test)?, test.trim().to_owned())
        }
        "import" | "from" | "if" | "elif" | "else" | "for" | "while" | "def" | "try" | "with" => {
            return Err(Beyond(format!("Python's `{word}`")));
        }
        _ => assignment(text, &word)?,
    };
    Ok(Some(Statement { line, kind }))
}

/// The text up to the first comma outside brackets.
fn first_part(text: &str) -> &str {
    let mut depth = 0_i64;
    for (at, c) in outside_quotes(text) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => return &text[..at],
            _ => {}
        }
    }
    text
}

fn assignment(text: &str, name: &str) -> Result<StatementKind, Beyond> {
    let beyond = || Beyond(format!("Python's `{text}`"));
    let rest = text[name.len()..].trim_start();
    if name.is_empty() {
        return Err(beyond());
    }
    for (operator, arithmetic) in [("+=", "+"), ("-=", "-"), ("*=", "*")] {
        if let Some(value) = rest.strip_prefix(operator) {
            let name = name.to_owned();
            let old = Box::new(Expr::Name(name.clone()));
            let value = Expr::Binary(old, arithmetic, Box::new(expression(value)?));
            return Ok(StatementKind::Assign(name, value));
        }
    }
    match rest.strip_prefix('=') {
        Some(value) if !value.starts_with('=') => {
            Ok(StatementKind::Assign(name.to_owned(), expression(value)?))
        }
        _ => Err(beyond()),
    }
}

fn expression(text: &str) -> Result<Expr, Beyond> {
    let beyond = || Beyond(format!("Python's `{}`", text.trim()));
    let tokens = tokens(text).filter(|tokens| tokens.len() <= LONGEST).ok_or_else(beyond)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    match parser.or() {
        Some(expr) if parser.at == tokens.len() => Ok(expr),
        _ => Err(beyond()),
    }
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let len;
        if c.is_ascii_digit() {
            len = rest.find(|c: char| !(c.is_alphanumeric() || c == '.')).unwrap_or(rest.len());
            tokens.push(Token::Number(number(&rest[..len])?));
        } else if c.is_alphabetic() || c == '_' {
            len = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..len].to_owned()));
        } else if c == '"' || c == '\'' {
            let inner = rest[1..].find(c)?;
            len = inner + 2;
            tokens.push(Token::Text(rest[1..=inner].to_owned()));
        } else {
            let operator = *OPERATORS.iter().find(|o| rest.starts_with(**o))?;
            len = operator.len();
            tokens.push(Token::Operator(operator));
        }
        rest = rest[len..].trim_start();
    }
    Some(tokens)
}

fn number(text: &str) -> Option<f64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|n| n as f64),
        None => text.parse().ok(),
    }
}

/// Recursive descent parser, lowest precedence first. `None`: not supported here.
struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: u32,
}

impl Parser<'_> {
    fn operator(&mut self, wanted: &[&'static str]) -> Option<&'static str> {
        match self.tokens.get(self.at) {
            Some(Token::Operator(operator)) if wanted.contains(operator) => {
                self.at += 1;
                Some(operator)
            }
            _ => None,
        }
    }

    fn word(&mut self, wanted: &str) -> bool {
        let is = matches!(self.tokens.get(self.at), Some(Token::Word(word)) if word == wanted);
        self.at += usize::from(is);
        is
    }

    fn or(&mut self) -> Option<Expr> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let mut left = self.and()?;
        while self.word("or") {
            left = Expr::Or(Box::new(left), Box::new(self.and()?));
        }
        self.depth -= 1;
        Some(left)
    }

    fn and(&mut self) -> Option<Expr> {
        let mut left = self.not()?;
        while self.word("and") {
            left = Expr::And(Box::new(left), Box::new(self.not()?));
        }
        Some(left)
    }

    fn not(&mut self) -> Option<Expr> {
        let mut negations = 0;
        while self.word("not") {
            negations += 1;
        }
        let value = self.comparison()?;
        Some((0..negations).fold(value, |value, _| Expr::Not(Box::new(value))))
    }

    fn comparison(&mut self) -> Option<Expr> {
        let left = self.bits()?;
        let mut chain = Vec::new();
        while let Some(operator) = self.operator(&["<=", ">=", "==", "!=", "<", ">"]) {
            chain.push((operator, self.bits()?));
        }
        Some(if chain.is_empty() { left } else { Expr::Compare(Box::new(left), chain) })
    }

    fn bits(&mut self) -> Option<Expr> {
        self.binary(&["&", "|", "^"], Self::sum)
    }

    fn sum(&mut self) -> Option<Expr> {
        self.binary(&["+", "-"], Self::product)
    }

    fn product(&mut self) -> Option<Expr> {
        self.binary(&["*", "//", "/", "%"], Self::unary)
    }

    fn binary(
        &mut self,
        operators: &[&'static str],
        operand: fn(&mut Self) -> Option<Expr>,
    ) -> Option<Expr> {
        let mut left = operand(self)?;
        while let Some(operator) = self.operator(operators) {
            left = Expr::Binary(Box::new(left), operator, Box::new(operand(self)?));
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expr> {
        let mut negative = false;
        while self.operator(&["-"]).is_some() {
            negative = !negative;
        }
        let value = self.atom()?;
        Some(if negative { Expr::Negate(Box::new(value)) } else { value })
    }

    fn atom(&mut self) -> Option<Expr> {
        if self.operator(&["("]).is_some() {
            let inner = self.or()?;
            self.operator(&[")"])?;
            return Some(inner);
        }
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        match token {
            Token::Number(value) => Some(Expr::Number(*value)),
            Token::Text(text) => Some(Expr::Text(text.clone())),
            Token::Word(word) => Some(Expr::Name(word.clone())),
            Token::Operator(_) => None,
        }
    }
}
