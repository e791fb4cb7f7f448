//! Fixed RTO (Dyer and Boppana, "A Comparison of TCP Performance over Three Routing Protocols for
//! Mobile Ad Hoc Networks", MobiHoc 2001). Not checked against the paper, which was not at hand.

use super::{Backoff, Expiry, RtoPolicy};

/// Takes two expiries in a row without an ACK for a broken route: from the second one on the
/// time-out no longer doubles, so that the sender soon notices a new route. The handshake backs off
/// as usual.
#[derive(Clone, Copy, Debug)]
pub struct FixedRto;

impl RtoPolicy for FixedRto {
    fn on_expiry(&mut self, expiry: &Expiry) -> Backoff {
        if expiry.count > 1 && !expiry.handshake { Backoff::Keep } else { Backoff::Double }
    }
}
