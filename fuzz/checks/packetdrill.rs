//! The parser of packetdrill scripts on any text: no panic, an error that points into the text, and
//! events in the order of their lines.

/// Panics when the parser breaks a promise on this text.
pub(crate) fn check(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let lines = text.matches('\n').count() + 1;
    match airtcp_packetdrill::parse("fuzz.pkt", text) {
        Ok(script) => {
            assert!(!script.events.is_empty(), "a script without events is refused");
            assert!(script.events.is_sorted_by_key(|event| event.line));
            assert!(script.events.iter().all(|event| (1..=lines).contains(&event.line)));
            assert!(script.options.iter().all(|option| (1..=lines).contains(&option.line)));
        }
        Err(error) => {
            assert!(!error.message.is_empty(), "an error says what is wrong");
            let line = text.split('\n').nth(error.line - 1).expect("its line is in the text");
            assert!((1..=line.chars().count() + 1).contains(&error.column), "{error:?}");
            assert!(error.render().ends_with('^'));
        }
    }
}
