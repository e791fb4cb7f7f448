//! The reader of recordings and the mechanisms behind it on any bytes: an error or the same
//! actions, but no panic.

use airtcp_record::replay;

/// Panics if replaying these bytes does.
pub(crate) fn check(file: &[u8]) {
    if let Err(error) = replay(file) {
        assert!(!error.to_string().is_empty(), "the error says something");
    }
}
