//! The parser of the gateway's control socket on any line: no panic, a request survives being
//! written and read again, and an error message is one line of bounded length.

use airtcp_gateway::control::{LINE_LIMIT, MOBILES_LIMIT, Request, Whose};

/// Panics when the parser breaks a promise on this line.
pub(crate) fn check(line: &[u8]) {
    match Request::parse(line) {
        Ok(request) => {
            let written = request.line();
            assert_eq!(Request::parse(written.trim_end().as_bytes()).as_ref(), Ok(&request));
            assert!(written.ends_with('\n') && written.len() - 1 <= LINE_LIMIT);
            if let Request::Signal { whose: Whose::Mobiles(mobiles), .. } = request {
                assert!((1..=MOBILES_LIMIT).contains(&mobiles.hosts().count()), "{mobiles}");
            }
        }
        Err(message) => {
            assert!(!message.is_empty() && !message.contains('\n'), "{message:?}");
            // Quoted text is escaped.
            assert!(message.len() <= 4 * line.len() + 200, "{message}");
        }
    }
}
