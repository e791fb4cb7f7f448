//! A time-out without back-off, as TCP-AP has it (ElRakabawy, Klemm, Lindemann, MobiHoc 2005).

use super::{Backoff, Expiry, RtoPolicy};

/// Expiries leave the time-out as it is, except that the handshake backs off as usual.
#[derive(Clone, Copy, Debug)]
pub struct Constant;

impl RtoPolicy for Constant {
    fn on_expiry(&mut self, expiry: &Expiry) -> Backoff {
        if expiry.handshake { Backoff::Double } else { Backoff::Keep }
    }
}
