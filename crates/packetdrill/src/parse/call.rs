//! System calls: `+0...0.2 read(4, ..., 1000) = -1 EAGAIN (…)`.

use super::seconds;
use crate::script::{Call, Expr};
use crate::source::{Cursor, Parsed};

/// Deepest nesting of lists and records.
const DEEPEST: u32 = 32;

pub(super) fn call(cursor: &mut Cursor<'_>) -> Parsed<Call> {
    let end = if cursor.eat("...")? { Some(seconds(cursor)?) } else { None };
    cursor.skip_blank()?;
    let start = *cursor;
    let name = cursor.word("the name of a system call")?.to_owned();
    let arguments = list(cursor, "(", ")", 0)?;
    cursor.expect("=")?;
    let result = expression(cursor, 0)?;
    let mut errno = None;
    if cursor.peek_word()?.starts_with('E') {
        errno = Some(cursor.word("an error")?.to_owned());
    }
    if cursor.eat("(")? {
        // A note: the error in words, or the names of flags.
        let place = *cursor;
        if cursor.take_until(")").is_none() {
            return Err(place.error("unterminated note: expected `)`"));
        }
    }
    let text = start.up_to(cursor);
    Ok(Call { name, arguments, end, result, errno, text })
}

/// Expressions separated by commas between `open` and `close`.
fn list(cursor: &mut Cursor<'_>, open: &str, close: &str, depth: u32) -> Parsed<Vec<Expr>> {
    cursor.expect(open)?;
    let mut items = Vec::new();
    if cursor.eat(close)? {
        return Ok(items);
    }
    loop {
        items.push(expression(cursor, depth)?);
        if !cursor.eat(",")? {
            cursor.expect(close)?;
            return Ok(items);
        }
    }
}

fn expression(cursor: &mut Cursor<'_>, depth: u32) -> Parsed<Expr> {
    const WHAT: &str = "an argument: a number, a symbol, a string, `...`, `[…]` or `{…}`";
    if depth > DEEPEST {
        return Err(cursor.error("brackets nested too deeply"));
    }
    match cursor.peek()? {
        Some('.') => {
            cursor.expect("...")?;
            Ok(Expr::Ellipsis)
        }
        Some('[') => list(cursor, "[", "]", depth + 1).map(Expr::List),
        Some('{') => record(cursor, depth + 1),
        Some('"') => string(cursor),
        Some(c) if c.is_ascii_digit() || c == '-' => {
            let value = cursor.integer("a number")?;
            if cursor.sees("|")? {
                words(cursor, value.to_string())
            } else {
                Ok(Expr::Integer(value))
            }
        }
        Some(c) if c.is_ascii_alphabetic() || c == '_' => {
            let word = cursor.word(WHAT)?.to_owned();
            if cursor.sees("(")? {
                return Ok(Expr::Apply(word, list(cursor, "(", ")", depth + 1)?));
            }
            words(cursor, word)
        }
        _ => Err(cursor.expected(WHAT)),
    }
}

/// Parses `A|B|C`, whose first word has been read.
fn words(cursor: &mut Cursor<'_>, first: String) -> Parsed<Expr> {
    let mut words = vec![first];
    while cursor.eat("|")? {
        words.push(cursor.word("a symbol")?.to_owned());
    }
    Ok(Expr::Words(words))
}

/// Parses a string. Adjacent strings are one; an ellipsis stands for the rest.
fn string(cursor: &mut Cursor<'_>) -> Parsed<Expr> {
    let mut text = String::new();
    while cursor.sees("\"")? {
        let place = *cursor;
        cursor.expect("\"")?;
        loop {
            text += cursor.take_while(|c| c != '"' && c != '\\');
            match cursor.peek_raw() {
                Some('"') => break,
                Some('\\') if cursor.skip_escape() => text.push('?'),
                _ => return Err(place.error("unterminated string: expected `\"`")),
            }
        }
        cursor.expect("\"")?;
    }
    cursor.eat("...")?;
    Ok(Expr::Text(text))
}

/// `{events=POLLIN, fd=4}`, `{..., 1000}`, `{msg_name(...)=..., …}`
fn record(cursor: &mut Cursor<'_>, depth: u32) -> Parsed<Expr> {
    cursor.expect("{")?;
    let mut fields = Vec::new();
    loop {
        let mut ahead = *cursor;
        let name = ahead.peek_word()?.to_owned();
        let mut named = false;
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) && ahead.eat_word(&name)? {
            if ahead.sees("(")? {
                // The length of a part of a message: `msg_iov(2)=…`.
                list(&mut ahead, "(", ")", depth)?;
            }
            named = ahead.eat("=")?;
        }
        if named {
            *cursor = ahead;
            fields.push((Some(name), expression(cursor, depth)?));
        } else {
            fields.push((None, expression(cursor, depth)?));
        }
        if !cursor.eat(",")? {
            break;
        }
    }
    cursor.expect("}")?;
    Ok(Expr::Record(fields))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::script::Action;
    use airtcp_core::Duration;

    fn call(text: &str) -> Call {
        let script = parse("t.pkt", &format!("+0{text}\n")).unwrap();
        match script.events.into_iter().next().map(|event| event.action) {
            Some(Action::Call(call)) => call,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_call_that_fails() {
        let connect = call(" connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)");
        assert_eq!(connect.arguments, [Expr::Integer(3), Expr::Ellipsis, Expr::Ellipsis]);
        assert_eq!(connect.result, Expr::Integer(-1));
        assert_eq!(connect.errno.as_deref(), Some("EINPROGRESS"));
    }

    #[test]
    fn a_call_that_blocks_has_an_end() {
        assert_eq!(call("...0.200 accept(3, ..., ...) = 4").end, Some(Duration::from_millis(200)));
    }

    #[test]
    fn flags_lists_and_records() {
        let fcntl = call(" fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0");
        assert_eq!(fcntl.arguments[2].words(), Some(vec!["O_RDWR", "O_NONBLOCK"]));
        let poll = call(" poll([{fd=4, events=POLLIN, revents=POLLIN}], 1, 0) = 1");
        let Expr::List(polled) = &poll.arguments[0] else { panic!("{poll:?}") };
        assert_eq!(polled[0].field("fd").and_then(Expr::integer), Some(4));
    }

    #[test]
    fn messages_of_several_parts() {
        let text = " sendmsg(4, {msg_name(...)=..., msg_iov(2)=[{..., 10}, {..., 20}], msg_flags=0}, 0) = 30";
        let message = &call(text).arguments[1];
        let Some(Expr::List(parts)) = message.field("msg_iov") else { panic!("{message:?}") };
        assert_eq!(parts.len(), 2);
    }

    #[test]
    fn brackets_do_not_lie_in_one_another_for_ever() {
        let text = format!("0 f({}", "[".repeat(100_000));
        assert!(parse("t.pkt", &text).unwrap_err().message.contains("brackets"));
    }
}
