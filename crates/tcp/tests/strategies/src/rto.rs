//! A retransmission time-out that stops doubling.

use airtcp_core::Duration;
use airtcp_tcp::rto::{Backoff, Expiry, RtoPolicy};

/// Fixed RTO (Dyer and Boppana 2001): two expiries in a row without an ACK are taken for a broken
/// route, and the time-out no longer doubles. The time-out itself can be stretched, for peers that
/// delay their ACKs for long.
#[derive(Clone, Copy, Debug)]
pub struct FixedRto {
    /// Multiplies the time-out of RFC 6298.
    pub stretch: u64,
}

impl RtoPolicy for FixedRto {
    fn on_expiry(&mut self, expiry: &Expiry) -> Backoff {
        if expiry.count > 1 && !expiry.handshake { Backoff::Keep } else { Backoff::Double }
    }

    fn time_out(&mut self, rfc6298: Duration) -> Duration {
        rfc6298 * self.stretch
    }
}
