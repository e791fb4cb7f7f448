//! The parser: a script is option lines, shell commands, then events, each with a time.
//!
//! Written from packetdrill's documentation and from scripts. `packet.rs` reads segments as tcpdump
//! writes them, `call.rs` system calls.

mod call;
mod packet;

use crate::script::{Action, Direction, Event, Script, ScriptOption, Time};
use crate::source::{Cursor, ParseError, Parsed};
use airtcp_core::Duration;

/// Options of packetdrill itself. Those for addresses, devices and output have no effect here.
const OPTIONS: &[&str] = &[
    "bind_port",
    "code_command",
    "code_format",
    "code_sockopt",
    "connect_port",
    "debug",
    "define",
    "dry_run",
    "gateway_ip",
    "init_scripts",
    "ip_version",
    "is_anyip",
    "local_ip",
    "mss",
    "mtu",
    "netmask_ip",
    "non_fatal",
    "psp_udp_port",
    "remote_ip",
    "send_omit_free",
    "so_filename",
    "so_flags",
    "speed",
    "strict_segments",
    "tcp_ts_ecr_scaled",
    "tcp_ts_tick_usecs",
    "tolerance_percent",
    "tolerance_usecs",
    "verbose",
    "wire_client",
    "wire_client_dev",
    "wire_server",
    "wire_server_at",
    "wire_server_dev",
    "wire_server_ip",
    "wire_server_port",
];

/// Parses a script; `file` is its name in errors.
///
/// # Errors
/// The text is not a script; the error has the place and what was expected there.
pub fn parse(file: &str, text: &str) -> Result<Script, ParseError> {
    let mut cursor = Cursor::new(file, text);
    let mut script =
        Script { file: file.to_owned(), options: Vec::new(), setup: None, events: Vec::new() };
    while cursor.sees("--")? {
        script.options.push(option(&mut cursor)?);
    }
    if cursor.sees("`")? {
        script.setup = Some(shell(&mut cursor)?);
    }
    while cursor.peek()?.is_some() {
        if cursor.sees("`")? {
            // Commands without a time clean up when the script is over.
            shell(&mut cursor)?;
            if cursor.peek()?.is_some() {
                return Err(cursor.expected("the end of the script after its clean-up commands"));
            }
            break;
        }
        script.events.push(event(&mut cursor)?);
    }
    if script.events.is_empty() {
        return Err(cursor.expected("an event, such as `+0 listen(3, 1) = 0`"));
    }
    Ok(script)
}

fn option(cursor: &mut Cursor<'_>) -> Parsed<ScriptOption> {
    cursor.expect("--")?;
    let (place, line) = (*cursor, cursor.line());
    let name = cursor.word("the name of an option")?;
    if !OPTIONS.contains(&name) {
        return Err(place.error(unknown_option(name)));
    }
    let mut value = String::new();
    if cursor.peek_raw() == Some('=') {
        cursor.expect("=")?;
        value = option_value(cursor)?;
    }
    Ok(ScriptOption { name: name.to_owned(), value, line })
}

fn unknown_option(name: &str) -> String {
    let near = OPTIONS.iter().map(|o| (strsim::osa_distance(name, o), o)).min();
    match near {
        Some((distance, option)) if distance <= name.len() / 3 => {
            format!("unknown option `--{name}` (did you mean `--{option}`?)")
        }
        _ => format!("unknown option `--{name}` (expected one of packetdrill's)"),
    }
}

/// Takes a value up to white space, which may occur in quotes.
fn option_value(cursor: &mut Cursor<'_>) -> Parsed<String> {
    let mut value = String::new();
    loop {
        value += cursor.take_while(|c| !c.is_whitespace() && c != '"' && c != '`');
        let Some(quote @ ('"' | '`')) = cursor.peek_raw() else { return Ok(value) };
        let place = *cursor;
        cursor.expect(&quote.to_string())?;
        let Some(text) = cursor.take_until(&quote.to_string()) else {
            return Err(place.error(format!("unterminated quotation: expected `{quote}`")));
        };
        value += text;
    }
}

/// Takes commands between back quotes.
fn shell(cursor: &mut Cursor<'_>) -> Parsed<String> {
    let place = *cursor;
    cursor.expect("`")?;
    match cursor.take_until("`") {
        Some(text) => Ok(text.to_owned()),
        None => Err(place.error("unterminated command: expected a closing back quote")),
    }
}

fn event(cursor: &mut Cursor<'_>) -> Parsed<Event> {
    cursor.skip_blank()?;
    let (place, line) = (*cursor, cursor.line());
    let time = time(cursor)?;
    let action = action(cursor)?;
    let outbound = match &action {
        Action::Packet(packet) => packet.direction == Direction::Outbound,
        Action::Foreign(_) => true,
        _ => false,
    };
    if !outbound && !matches!(time, Time::At(_) | Time::After(_)) {
        return Err(
            place.error("only an outbound packet (`>`) may have `*` or a range as its time")
        );
    }
    Ok(Event { line, time, action })
}

fn time(cursor: &mut Cursor<'_>) -> Parsed<Time> {
    if cursor.eat("*")? {
        return Ok(Time::Any);
    }
    let relative = cursor.eat("+")?;
    let from = seconds(cursor)?;
    if !cursor.eat("~")? {
        return Ok(if relative { Time::After(from) } else { Time::At(from) });
    }
    if relative {
        cursor.expect("+")?;
    }
    let place = *cursor;
    let to = seconds(cursor)?;
    if to < from {
        return Err(place.error("this range ends before it begins"));
    }
    Ok(if relative { Time::AfterBetween(from, to) } else { Time::AtBetween(from, to) })
}

/// Takes seconds with up to nine decimals, at most a day.
fn seconds(cursor: &mut Cursor<'_>) -> Parsed<Duration> {
    const A_DAY: u64 = 86_400;
    const WHAT: &str = "a time in seconds, such as `+.1`, `0.25` or `*`";
    cursor.skip_blank()?;
    let place = *cursor;
    let whole = cursor.take_while(|c| c.is_ascii_digit());
    let mut ahead = *cursor;
    let mut decimals = "";
    // `+.1...0.2` is a time followed by an ellipsis.
    if ahead.peek_raw() == Some('.') {
        ahead.expect(".")?;
        let digits = ahead.take_while(|c| c.is_ascii_digit());
        if !digits.is_empty() {
            decimals = digits;
            *cursor = ahead;
        }
    }
    if whole.is_empty() && decimals.is_empty() {
        return Err(place.expected(WHAT));
    }
    let number = |digits: &str| if digits.is_empty() { Ok(0) } else { digits.parse::<u64>() };
    let nanos = format!("{:0<9.9}", decimals);
    match (number(whole), number(&nanos)) {
        (Ok(whole), Ok(nanos)) if whole <= A_DAY => {
            Ok(Duration::from_secs(whole) + Duration::from_nanos(nanos))
        }
        _ => Err(place.error("this time is out of range: expected at most a day")),
    }
}

fn action(cursor: &mut Cursor<'_>) -> Parsed<Action> {
    match cursor.peek()? {
        Some('<' | '>') => packet::packet(cursor),
        Some('`') => shell(cursor).map(Action::Shell),
        Some('%') => code(cursor).map(Action::Code),
        Some(c) if c.is_ascii_alphabetic() || c == '.' => call::call(cursor).map(Action::Call),
        _ => Err(cursor.expected("a packet (`<`, `>`), a system call, a command or `%{ code }%`")),
    }
}

fn code(cursor: &mut Cursor<'_>) -> Parsed<String> {
    let place = *cursor;
    cursor.expect("%{")?;
    match cursor.take_until("}%") {
        Some(text) => Ok(text.to_owned()),
        None => Err(place.error("unterminated code: expected `}%`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(text: &str) -> Vec<Time> {
        parse("t.pkt", text).unwrap().events.iter().map(|event| event.time).collect()
    }

    #[test]
    fn times_are_absolute_relative_ranges_or_any() {
        let ms = Duration::from_millis;
        assert_eq!(
            times("0 close(3) = 0\n1.5 close(3) = 0"),
            [Time::At(ms(0)), Time::At(ms(1500))]
        );
        assert_eq!(times("+.1 close(3) = 0"), [Time::After(ms(100))]);
        assert_eq!(times("* > . 1:1(0) ack 1"), [Time::Any]);
        assert_eq!(times(".1~.2 > . 1:1(0) ack 1"), [Time::AtBetween(ms(100), ms(200))]);
        assert_eq!(times("+.1~+.2 > . 1:1(0) ack 1"), [Time::AfterBetween(ms(100), ms(200))]);
    }

    #[test]
    fn comments_of_three_kinds_are_skipped() {
        let text = "// one\n/* two\n */ # three\n0 close(3) = 0 // four";
        assert_eq!(parse("t.pkt", text).unwrap().events[0].line, 4);
    }

    #[test]
    fn options_commands_and_code_keep_their_text() {
        let text = "--tolerance_usecs=7000\n`sysctl -q a=1`\n0 `ls`\n+0 %{ assert 1 == 1 }%\n`end`";
        let script = parse("t.pkt", text).unwrap();
        assert_eq!(script.options[0].value, "7000");
        assert_eq!(script.setup.as_deref(), Some("sysctl -q a=1"));
        assert_eq!(script.events[0].action, Action::Shell("ls".to_owned()));
        assert_eq!(script.events[1].action, Action::Code(" assert 1 == 1 ".to_owned()));
    }

    #[test]
    fn an_error_points_at_the_place() {
        let error = parse("t.pkt", "0 close(3) = 0\n +.1 < . 1:1001(999) ack 1").unwrap_err();
        assert_eq!((error.line, error.column), (2, 10));
        let text = error.render();
        assert!(text.starts_with("t.pkt:2:10: "), "{text}");
        assert!(text.ends_with("\n  |          ^"), "{text}");
    }

    #[test]
    fn a_mistyped_option_is_met_with_the_nearest() {
        let error = parse("t.pkt", "--tolerance_usec=1\n0 close(3) = 0").unwrap_err();
        assert!(error.message.contains("`--tolerance_usecs`"), "{error}");
    }

    #[test]
    fn only_outbound_packets_have_ranges() {
        assert!(parse("t.pkt", "+.1~+.2 close(3) = 0").is_err());
        assert!(parse("t.pkt", "* < . 1:1(0) ack 1").is_err());
        assert!(parse("t.pkt", "+.2~+.1 > . 1:1(0) ack 1").is_err());
    }
}
