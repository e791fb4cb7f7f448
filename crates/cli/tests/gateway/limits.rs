//! Limits of a sender that end its connection in a long outage, if nothing restarts them.

use crate::outages::{Told, outage};
use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::Load;
use std::time::{Duration, Instant};

/// The sender's limit on how long data may stay unacknowledged, or the window closed.
const USER_TIMEOUT: Duration = Duration::from_secs(1);
/// More than the limit survives if all that is held is acknowledged after `ack-pacing`: the
/// sender's timer is then 5 s, after so long it probes the closed window, and the limit begins.
const OUTAGE: Duration = Duration::from_secs(15);

// RFC 5482: data that stay unacknowledged for so long end the connection. On Linux also a window
// that stays closed, from its first probe on.
#[test]
fn m_tcp_plus_keeps_a_user_timeout_from_running() {
    if !possible() {
        return;
    }
    let bed = Testbed::new(&Plan {
        // A window that the link's queue holds: nothing is lost, and so nothing acknowledged at once.
        sysctls: vec![("ipv4/tcp_rmem", "4096 60000 60000")],
        ..Plan::with("\"m-tcp-plus\"\nack-pacing = \"3 s\"")
    });
    let transfer = bed.download(&Load::endless("cubic"));
    transfer.set_user_timeout(Some(USER_TIMEOUT));
    transfer.wait_for(1_000_000);
    // With a warning nothing would be under way, and nothing left to acknowledge.
    let up = outage(&bed, Instant::now(), OUTAGE, Told::Soon, || {});
    assert!(transfer.dead_time(up, OUTAGE).is_some(), "the connection is lost");
    // On a busy machine a second may pass without an ACK in any transfer.
    transfer.set_user_timeout(None);
    transfer.finish();
}
