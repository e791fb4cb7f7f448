//! Each rule of the MAC as a timeline.

use crate::common::{line, play};
use airtcp_net::wifi::preset;

#[test]
fn a_packet_that_finds_the_medium_idle_is_sent_at_once() {
    // §9.2.5.1. 1500 B at 11 Mbit/s: 192 + ceil(1536 B * 8 / 11) = 1310 us.
    let mut cell = line(&preset::ieee(), &[(0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "1000  send A>B 1500
         1000  A>B DATA
         2310  B got 0
         2320  B>A ACK",
    );
}

#[test]
fn rts_cts_data_ack_are_sifs_apart() {
    let mut cell = line(&preset::ns2(), &[(0.0, &[0]), (0.0, &[])]);
    play(
        &mut cell,
        "0     send A>B 966
         50    A>B RTS
         412   B>A CTS
         726   A>B DATA
         4918  B got 0
         4928  B>A ACK",
    );
}
