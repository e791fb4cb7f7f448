//! A retransmission time-out that is stretched, and doubles only once.

use airtcp_core::Duration;
use airtcp_tcp::rto::{Backoff, Expiry, RtoPolicy};

/// A multiple of the time-out, for peers that delay their ACKs for long.
#[derive(Clone, Copy, Debug)]
pub struct Stretched {
    /// Factor on the time-out of RFC 6298.
    pub by: u64,
}

impl RtoPolicy for Stretched {
    fn on_expiry(&mut self, expiry: &Expiry) -> Backoff {
        if expiry.count > 1 && !expiry.handshake { Backoff::Keep } else { Backoff::Double }
    }

    fn time_out(&mut self, rfc6298: Duration) -> Duration {
        rfc6298 * self.by
    }
}
