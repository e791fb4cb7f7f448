//! Execution of statements.

use super::{Beyond, Expr, Statement, StatementKind};
use std::collections::BTreeMap;

/// Variables of a script; they live from one piece of code to the next.
pub(crate) type Variables = BTreeMap<String, Value>;

/// A Python value. Integers are exact up to 2^53, more than any counter in a script reaches.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    Text(String),
}

impl Value {
    fn is_true(&self) -> bool {
        match self {
            Self::Number(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Number(f64::from(u8::from(value)))
    }
}

/// Reason for stopping code early.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// An assertion failed: its line, the test and the values of its names.
    Assertion { line: usize, test: String, values: String },
    /// The code uses Python that is not supported here.
    Beyond(Beyond),
}

impl From<Beyond> for Stop {
    fn from(beyond: Beyond) -> Self {
        Self::Beyond(beyond)
    }
}

/// The names that code reads before it sets them.
pub(crate) fn names(statements: &[Statement]) -> Vec<String> {
    let mut found = Vec::new();
    let mut set: Vec<&str> = Vec::new();
    for statement in statements {
        let (StatementKind::Assert(expr, _) | StatementKind::Assign(_, expr)) = &statement.kind;
        let mut here = Vec::new();
        collect(expr, &mut here);
        found.extend(here.into_iter().filter(|name| !set.contains(&name.as_str())));
        if let StatementKind::Assign(name, _) = &statement.kind {
            set.push(name);
        }
    }
    found
}

fn collect(expr: &Expr, found: &mut Vec<String>) {
    match expr {
        Expr::Number(_) | Expr::Text(_) => {}
        Expr::Name(name) => {
            if !found.contains(name) {
                found.push(name.clone());
            }
        }
        Expr::Not(inner) | Expr::Negate(inner) => collect(inner, found),
        Expr::Binary(left, _, right) | Expr::And(left, right) | Expr::Or(left, right) => {
            collect(left, found);
            collect(right, found);
        }
        Expr::Compare(first, rest) => {
            collect(first, found);
            rest.iter().for_each(|(_, expr)| collect(expr, found));
        }
    }
}

/// Runs statements. `lookup` resolves the names that the kernel's TCP defines.
///
/// # Errors
/// An assertion fails, or the code uses Python that is not supported here.
pub(crate) fn run(
    statements: &[Statement],
    variables: &mut Variables,
    lookup: &dyn Fn(&str) -> Option<f64>,
) -> Result<(), Stop> {
    for statement in statements {
        match &statement.kind {
            StatementKind::Assign(name, expr) => {
                let value = Scope { variables, lookup }.value(expr)?;
                variables.insert(name.clone(), value);
            }
            StatementKind::Assert(expr, test) => {
                let scope = Scope { variables, lookup };
                if !scope.value(expr)?.is_true() {
                    let (line, test) = (statement.line, test.clone());
                    return Err(Stop::Assertion { line, test, values: scope.show(expr) });
                }
            }
        }
    }
    Ok(())
}

struct Scope<'a> {
    variables: &'a Variables,
    lookup: &'a dyn Fn(&str) -> Option<f64>,
}

impl Scope<'_> {
    fn name(&self, name: &str) -> Option<Value> {
        let constant = match name {
            "True" => Some(1.0),
            "False" => Some(0.0),
            _ => None,
        };
        let known = || constant.or_else(|| (self.lookup)(name)).map(Value::Number);
        self.variables.get(name).cloned().or_else(known)
    }

    /// The names of `expr` with their values: `tcpi_snd_cwnd = 7, cwnd = 8`.
    fn show(&self, expr: &Expr) -> String {
        let mut names = Vec::new();
        collect(expr, &mut names);
        let show = |name: &String| match self.name(name) {
            Some(Value::Number(number)) => format!("{name} = {number}"),
            Some(Value::Text(text)) => format!("{name} = '{text}'"),
            None => format!("{name} unknown"),
        };
        names.iter().map(show).collect::<Vec<_>>().join(", ")
    }

    fn number(&self, expr: &Expr) -> Result<f64, Beyond> {
        match self.value(expr)? {
            Value::Number(number) => Ok(number),
            Value::Text(text) => Err(Beyond(format!("Python's arithmetic on '{text}'"))),
        }
    }

    fn value(&self, expr: &Expr) -> Result<Value, Beyond> {
        Ok(match expr {
            Expr::Number(number) => Value::Number(*number),
            Expr::Text(text) => Value::Text(text.clone()),
            Expr::Name(name) => {
                self.name(name).ok_or_else(|| Beyond(format!("the name `{name}` in Python")))?
            }
            Expr::Not(inner) => (!self.value(inner)?.is_true()).into(),
            Expr::Negate(inner) => Value::Number(-self.number(inner)?),
            Expr::Binary(left, operator, right) => {
                Value::Number(arithmetic(self.number(left)?, operator, self.number(right)?)?)
            }
            Expr::Compare(first, rest) => self.compare(first, rest)?.into(),
            // The value is that of the operand that decides.
            Expr::And(left, right) => match self.value(left)? {
                left if left.is_true() => self.value(right)?,
                left => left,
            },
            Expr::Or(left, right) => match self.value(left)? {
                left if left.is_true() => left,
                _ => self.value(right)?,
            },
        })
    }

    fn compare(&self, first: &Expr, rest: &[(&'static str, Expr)]) -> Result<bool, Beyond> {
        let mut left = self.value(first)?;
        for (operator, right) in rest {
            let right = self.value(right)?;
            let holds = match (&left, *operator, &right) {
                (_, "==", _) => left == right,
                (_, "!=", _) => left != right,
                (Value::Number(a), "<", Value::Number(b)) => a < b,
                (Value::Number(a), "<=", Value::Number(b)) => a <= b,
                (Value::Number(a), ">", Value::Number(b)) => a > b,
                (Value::Number(a), ">=", Value::Number(b)) => a >= b,
                _ => return Err(Beyond(format!("Python's `{operator}` on strings"))),
            };
            if !holds {
                return Ok(false);
            }
            left = right;
        }
        Ok(true)
    }
}

fn arithmetic(a: f64, operator: &str, b: f64) -> Result<f64, Beyond> {
    let divisor = || if b == 0.0 { Err(Beyond("a division by zero".to_owned())) } else { Ok(b) };
    Ok(match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / divisor()?,
        "//" => (a / divisor()?).floor(),
        // Python's remainder has the sign of the divisor.
        "%" => a - (a / divisor()?).floor() * b,
        "&" => ((a as i64) & (b as i64)) as f64,
        "|" => ((a as i64) | (b as i64)) as f64,
        "^" => ((a as i64) ^ (b as i64)) as f64,
        _ => return Err(Beyond(format!("Python's `{operator}`"))),
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn check(code: &str) -> Result<(), Stop> {
        let lookup = |name: &str| (name == "tcpi_snd_cwnd").then_some(10.0);
        run(&parse(code)?, &mut Variables::new(), &lookup)
    }

    #[test]
    fn assertions_compare_names_with_numbers() {
        assert_eq!(check("assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd"), Ok(()));
        let failed = check("\nassert tcpi_snd_cwnd == 7, 'cwnd=%d' % tcpi_snd_cwnd");
        let test = "tcpi_snd_cwnd == 7".to_owned();
        let values = "tcpi_snd_cwnd = 10".to_owned();
        assert_eq!(failed, Err(Stop::Assertion { line: 1, test, values }));
    }

    #[test]
    fn comparisons_chain_and_combine() {
        assert_eq!(check("assert 9 < tcpi_snd_cwnd <= 10 and not 1 > 2"), Ok(()));
        assert!(check("assert 9 < tcpi_snd_cwnd < 10 or 0x10 == 15").is_err());
    }

    #[test]
    fn arithmetic_has_pythons_precedence() {
        assert_eq!(check("assert 2 + 3 * 4 == 14 and 7 // 2 == 3 and -7 % 3 == 2"), Ok(()));
        assert_eq!(check("assert (6 & 2) != 0"), Ok(()));
    }

    #[test]
    fn variables_and_several_statements_in_a_line() {
        assert_eq!(check("cwnd = 8; cwnd += 2; print(cwnd); assert tcpi_snd_cwnd == cwnd"), Ok(()));
        assert_eq!(check("assert 1 == 1; \\\n assert 2 == 2 # three"), Ok(()));
    }

    #[test]
    fn what_is_more_than_this_is_named() {
        let Err(Stop::Beyond(Beyond(what))) = check("for i in x: pass") else { panic!() };
        assert_eq!(what, "Python's `for`");
        assert!(matches!(check("assert tcpi_foo == 1"), Err(Stop::Beyond(_))));
        assert!(matches!(check("assert 1 / 0 == 1"), Err(Stop::Beyond(_))));
    }

    #[test]
    fn only_names_that_the_code_does_not_set_come_from_outside() {
        assert_eq!(names(&parse("a = 1\nassert a == tcpi_b").unwrap()), ["tcpi_b"]);
    }
}
