//! The messages between agent and gateway on any bytes: no panic, nothing accepted that was not
//! made with the key, and only one encoding of each accepted message. The first byte decides
//! whether the rest gets a valid HMAC first; without one, no input would get past the check. The
//! same bytes are also read as a key file.

use airtcp_gateway::signals::keys::{Keys, Secret};
use airtcp_gateway::signals::message::{Answer, Refusal, Report};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::path::Path;

const KEY: &[u8] = b"a key for fuzzing";

/// Panics when a promise is broken on this input.
pub(crate) fn check(input: &[u8]) {
    keys(input);
    let Some((&choice, message)) = input.split_first() else { return };
    let secret = Secret::new(KEY.to_vec()).expect("it is long enough");
    if choice % 2 == 0 {
        let opened = Report::open(message, |_| Some(&secret));
        assert!(opened.is_err(), "accepted without the key: {opened:?}");
        assert!(Answer::open(message, &secret).is_err());
        return;
    }
    let tag = Hmac::<Sha256>::new_from_slice(KEY).expect("any length").chain_update(message);
    let sealed = [message, tag.finalize().into_bytes().as_slice()].concat();
    match Report::open(&sealed, |_| Some(&secret)) {
        Ok(report) => assert_eq!(report.seal(&secret), sealed),
        Err(refusal) => assert_eq!(refusal, Refusal::Malformed),
    }
    match Answer::open(&sealed, &secret) {
        Ok(answer) => assert_eq!(answer.seal(&secret), sealed),
        Err(refusal) => assert_eq!(refusal, Refusal::Malformed),
    }
}

fn keys(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(keys) = Keys::parse(Path::new("keys"), text) else { return };
    let lines: String = keys.iter().map(|key| key.line()).collect();
    let again = Keys::parse(Path::new("keys"), &lines).expect("what was written is read");
    assert_eq!(again, keys);
}
