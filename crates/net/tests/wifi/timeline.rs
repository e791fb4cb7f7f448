//! Each rule of the MAC as a timeline. Section numbers are those of IEEE Std 802.11-1999.
//!
//! Durations that recur, microseconds: at 1 Mbit/s RTS 352, CTS and ACK 304; at 2 Mbit/s CTS and ACK 248; a packet
//! of 1500 B in the `basic` cell 192 + 1528 * 8 / 2 = 6304, one of 100 B 704.

use crate::common::{line, play};
use airtcp_core::{Bytes, DataRate, Duration};
use airtcp_net::wifi::{
    Attempts, BackoffDraw, ChannelConfig, CtsRule, EifsRule, FirstAccess, ResponseTimeout, preset,
};

/// The standard's rules at 2 Mbit/s, control frames at 1 Mbit/s, no LLC, no RTS.
fn basic() -> ChannelConfig {
    let mut config = preset::ieee();
    config.phy.data_rate = DataRate::mbps(2);
    config.phy.control_rate = DataRate::mbps(1);
    config.mac.llc = Bytes::ZERO;
    config
}

/// The same with RTS for every packet.
fn with_rts() -> ChannelConfig {
    let mut config = basic();
    config.mac.rts_threshold = Bytes::ZERO;
    config
}

/// All back-offs are zero.
fn no_backoff(mut config: ChannelConfig) -> ChannelConfig {
    config.mac.cw_min = 0;
    config.mac.cw_max = 0;
    config
}

/// A station hears only what it can receive: 250 m.
fn deaf_beyond_range(mut config: ChannelConfig) -> ChannelConfig {
    config.radio.cs_threshold = config.radio.rx_threshold;
    config
}

// First access.

#[test]
fn a_packet_that_finds_the_medium_idle_is_sent_at_once() {
    // §9.2.5.1.
    let mut cell = line(&basic(), &[(0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "1000  send A>B 1500
         1000  A>B DATA
         7304  B got 0
         7314  B>A ACK",
    );
}

#[test]
fn a_packet_that_finds_the_medium_idle_for_less_than_difs_waits_for_difs() {
    // §9.2.5.1. The ACK ends at 1018.
    let mut cell = line(&basic(), &[(0.0, &[(9, 32)]), (0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "0     send A>B 100
         1038  send C>B 100
         0     A>B DATA
         704   B got 0
         714   B>A ACK
         1068  C>B DATA
         1772  B got 1
         1782  B>C ACK",
    );
}

#[test]
fn ns2_backs_off_before_every_first_access() {
    // ns-2: DIFS and the back-off count from the arrival of the packet.
    let mut config = basic();
    config.mac.first_access = FirstAccess::Backoff;
    let mut cell = line(&config, &[(0.0, &[(4, 32)]), (0.0, &[])]);
    play(
        &mut cell,
        "1000  send A>B 100
         1130  A>B DATA
         1834  B got 0
         1844  B>A ACK",
    );
}

#[test]
fn glomosim_waits_difs_before_every_first_access() {
    let mut config = basic();
    config.mac.first_access = FirstAccess::AfterDifs;
    let mut cell = line(&config, &[(0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "1000  send A>B 100
         1050  A>B DATA
         1754  B got 0
         1764  B>A ACK",
    );
}

#[test]
fn an_interrupted_wait_for_difs_becomes_a_back_off() {
    // §9.2.5.1: A would have been sent at 1050; it draws 2 slots, which count from DIFS after the ACK at 2058.
    let mut config = basic();
    config.mac.first_access = FirstAccess::AfterDifs;
    config.mac.post_backoff = false;
    let mut cell = line(&config, &[(0.0, &[(2, 32)]), (0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "990   send C>B 100
         1000  send A>B 100
         1040  C>B DATA
         1744  B got 0
         1754  B>C ACK
         2148  A>B DATA
         2852  B got 1
         2862  B>A ACK",
    );
}

// Back-off.

#[test]
fn a_packet_that_finds_the_medium_busy_backs_off() {
    // §9.2.5.1: the ACK ends at 1018; DIFS and 3 slots.
    let mut cell = line(&basic(), &[(0.0, &[(9, 32)]), (0.0, &[]), (0.0, &[(3, 32)])]);
    play(
        &mut cell,
        "0     send A>B 100
         500   send C>B 100
         0     A>B DATA
         704   B got 0
         714   B>A ACK
         1128  C>B DATA
         1832  B got 1
         1842  B>C ACK",
    );
}

#[test]
fn a_back_off_freezes_while_the_medium_is_busy() {
    // §9.2.5.2: D has counted 3 of its 5 slots when C begins at 1128; C's exchange ends at 2146.
    let mut cell =
        line(&basic(), &[(0.0, &[(30, 32)]), (0.0, &[]), (0.0, &[(3, 32)]), (0.0, &[(5, 32)])]);
    play(
        &mut cell,
        "0     send A>B 100
         500   send C>B 100
         500   send D>B 100
         0     A>B DATA
         704   B got 0
         714   B>A ACK
         1128  C>B DATA
         1832  B got 1
         1842  B>C ACK
         2236  D>B DATA
         2940  B got 2
         2950  B>D ACK",
    );
}

/// A's second packet has 5 slots to wait from 1068; C's first access interrupts in the middle of the third.
fn interrupt_in_a_slot(repeat: bool, last_exchange: &str) {
    let mut config = basic();
    config.mac.repeat_interrupted_slot = repeat;
    let mut cell = line(&config, &[(0.0, &[(5, 32)]), (0.0, &[]), (0.0, &[(30, 32)])]);
    let script = "
        0     send A>B 100
        0     send A>B 100
        1118  send C>B 100
        0     A>B DATA
        704   B got 0
        714   B>A ACK
        1118  C>B DATA
        1822  B got 2
        1832  B>C ACK";
    play(&mut cell, &format!("{script}\n{last_exchange}"));
}

#[test]
fn an_interrupted_slot_is_repeated() {
    // C's exchange ends at 2136; DIFS and 3 slots.
    interrupt_in_a_slot(true, "2246 A>B DATA\n2950 B got 1\n2960 B>A ACK");
}

#[test]
fn glomosim_counts_part_of_an_interrupted_slot() {
    // DIFS and 2.5 slots.
    interrupt_in_a_slot(false, "2236 A>B DATA\n2940 B got 1\n2950 B>A ACK");
}

#[test]
fn a_back_off_follows_every_success() {
    // §9.2.5.2. The second packet comes during the post-back-off that ends at 1068 + 100, and waits for it.
    let mut cell = line(&basic(), &[(0.0, &[(5, 32)]), (0.0, &[])]);
    play(
        &mut cell,
        "0     send A>B 100
         1100  send A>B 100
         0     A>B DATA
         704   B got 0
         714   B>A ACK
         1168  A>B DATA
         1872  B got 1
         1882  B>A ACK",
    );
}

#[test]
fn a_packet_after_the_post_back_off_is_sent_at_once() {
    let mut cell = line(&basic(), &[(0.0, &[(5, 32)]), (0.0, &[])]);
    play(
        &mut cell,
        "0     send A>B 100
         1169  send A>B 100
         0     A>B DATA
         704   B got 0
         714   B>A ACK
         1169  A>B DATA
         1873  B got 1
         1883  B>A ACK",
    );
}

#[test]
fn glomosim_has_no_post_back_off_without_a_packet() {
    let mut config = basic();
    config.mac.post_backoff = false;
    let mut cell = line(&config, &[(0.0, &[(5, 32)]), (0.0, &[])]);
    play(
        &mut cell,
        "0     send A>B 100
         1100  send A>B 100
         0     A>B DATA
         704   B got 0
         714   B>A ACK
         1100  A>B DATA
         1804  B got 1
         1814  B>A ACK",
    );
}

#[test]
fn back_offs_that_end_together_collide() {
    // Both have 3 slots from 1068 on. No ACK by 1772 + SIFS + slot + PLCP; then CW is 63.
    let draws = [(3, 32), (1, 64)];
    let other = [(3, 32), (9, 64)];
    let mut cell = line(&basic(), &[(0.0, &[(30, 32)]), (0.0, &[]), (0.0, &draws), (0.0, &other)]);
    play(
        &mut cell,
        "0     send A>B 100
         500   send C>B 100
         500   send D>B 100
         0     A>B DATA
         704   B got 0
         714   B>A ACK
         1128  C>B DATA
         1128  D>B DATA
         2074  C>B DATA
         2778  B got 1
         2788  B>C ACK
         3302  D>B DATA
         4006  B got 2
         4016  B>D ACK",
    );
}

#[test]
fn the_contention_window_doubles_with_every_failure_and_is_reset_by_a_drop() {
    // §9.2.4. Nobody answers; after the seventh attempt the window is 31 again.
    let draws = [(0, 64), (1, 128), (2, 256)];
    let mut config = basic();
    config.mac.short_retry_limit = 4;
    let mut cell = line(&config, &[(0.0, &draws), (2000.0, &[])]);
    // An attempt and its time-out take 704 + 222.
    play(
        &mut cell,
        "0     send A>B 100
         0     A>B DATA
         926   A>B DATA
         1872  A>B DATA
         2838  A>B DATA
         3764  A drop 0
         3764  A lost B",
    );
}

// Retries.

#[test]
fn an_rts_is_repeated_until_its_counter_reaches_the_short_retry_limit() {
    // §9.2.5.3: 7 attempts. An RTS and its time-out take 352 + 222.
    let mut cell = line(&no_backoff(with_rts()), &[(0.0, &[]), (2000.0, &[])]);
    play(
        &mut cell,
        "0     send A>B 100
         0     A>B RTS
         574   A>B RTS
         1148  A>B RTS
         1722  A>B RTS
         2296  A>B RTS
         2870  A>B RTS
         3444  A>B RTS
         4018  A drop 0
         4018  A lost B",
    );
}

#[test]
fn glomosim_retries_as_often_as_the_limit_says() {
    let mut config = no_backoff(with_rts());
    config.mac.attempts = Attempts::LimitPlusOne;
    config.mac.short_retry_limit = 2;
    let mut cell = line(&config, &[(0.0, &[]), (2000.0, &[])]);
    play(
        &mut cell,
        "0     send A>B 100
         0     A>B RTS
         574   A>B RTS
         1148  A>B RTS
         1722  A drop 0
         1722  A lost B",
    );
}

#[test]
fn in_ns2_a_response_is_missing_when_all_of_it_could_have_come_and_difs_follows() {
    // 352 + SIFS + 304 + 4 us of propagation, then DIFS.
    let mut config = no_backoff(with_rts());
    config.mac.short_retry_limit = 2;
    config.mac.response_timeout = ResponseTimeout::WholeFrame { margin: Duration::from_micros(4) };
    config.mac.difs_after_timeout = true;
    let mut cell = line(&config, &[(0.0, &[]), (2000.0, &[])]);
    play(
        &mut cell,
        "0     send A>B 100
         0     A>B RTS
         720   A>B RTS
         1390  A drop 0
         1390  A lost B",
    );
}

#[test]
fn the_next_packet_follows_a_drop() {
    let mut config = no_backoff(basic());
    config.mac.short_retry_limit = 1;
    let mut cell = line(&config, &[(0.0, &[]), (2000.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "0     send A>B 100
         0     send A>C 100
         0     A>B DATA
         926   A drop 0
         926   A lost B
         926   A>C DATA
         1630  C got 1
         1640  C>A ACK",
    );
}

// RTS, CTS and the NAV.

#[test]
fn rts_cts_data_ack_are_sifs_apart() {
    let mut cell = line(&with_rts(), &[(0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "0     send A>B 100
         0     A>B RTS
         362   B>A CTS
         676   A>B DATA
         1380  B got 0
         1390  B>A ACK",
    );
}

#[test]
fn only_frames_longer_than_the_threshold_need_an_rts() {
    // §9.2.5: the MPDU counts, with its 28 B.
    let mut config = basic();
    config.mac.rts_threshold = Bytes(128);
    let mut cell = line(&config, &[(0.0, &[(0, 32)]), (0.0, &[])]);
    play(
        &mut cell,
        "0     send A>B 100
         2000  send A>B 101
         0     A>B DATA
         704   B got 0
         714   B>A ACK
         2000  A>B RTS
         2362  B>A CTS
         2676  A>B DATA
         3384  B got 1
         3394  B>A ACK",
    );
}

#[test]
fn an_rts_keeps_those_quiet_who_hear_only_the_sender() {
    // §9.2.5.4. C hears A alone, the end of its data at 1382.004. It waits for the ACK that it cannot hear, as the
    // data say, SIFS and 304 us; then DIFS.
    let config = deaf_beyond_range(with_rts());
    let mut cell =
        line(&config, &[(200.0, &[(9, 32)]), (0.0, &[]), (400.0, &[(0, 32)]), (600.0, &[])]);
    play(
        &mut cell,
        "0     send A>B 100
         1382  send C>* 100
         0     A>B RTS
         362.668   B>A CTS
         677.336   A>B DATA
         1382.004  B got 0
         1392.004  B>A ACK
         1746.004  C>* DATA
         2962.672  A got 1, more to come
         2963.339  D got 1",
    );
}

#[test]
fn a_cts_keeps_those_quiet_who_hear_only_the_receiver() {
    // §9.2.5.4. C hears B alone: A's data are silence to it, the ACK ends at 1696.672.
    let config = deaf_beyond_range(with_rts());
    let mut cell = line(&config, &[(0.0, &[(9, 32)]), (200.0, &[]), (400.0, &[(0, 32)])]);
    play(
        &mut cell,
        "0     send A>B 100
         1000  send C>* 100
         0     A>B RTS
         362.668   B>A CTS
         677.336   A>B DATA
         1382.004  B got 0
         1392.004  B>A ACK
         1746.672  C>* DATA
         2964.007  B got 1",
    );
}

/// A's RTS gets no CTS: B is out of range. C has a packet.
fn rts_in_vain(nav_reset: bool, then: &str) {
    let mut config = with_rts();
    config.mac.nav_reset = nav_reset;
    config.mac.short_retry_limit = 1;
    let places: [(f64, &[(u64, u64)]); 3] = [(0.0, &[(20, 32)]), (2000.0, &[]), (0.0, &[(0, 32)])];
    let mut cell = line(&config, &places);
    let script = "
        0     send A>B 100
        300   send C>* 100
        0     A>B RTS
        574   A drop 0
        574   A lost B";
    play(&mut cell, &format!("{script}\n{then}"));
}

#[test]
fn the_nav_is_reset_where_no_data_follow_an_rts() {
    // §9.2.5.4: 2 SIFS, CTS and 2 slots after the RTS, at 716; then DIFS.
    rts_in_vain(true, "766 C>* DATA\n1982 A got 1");
}

#[test]
fn ns2_does_not_reset_the_nav() {
    // The RTS reserved 3 SIFS, CTS, 704, ACK: until 1694.
    rts_in_vain(false, "1744 C>* DATA\n2960 A got 1");
}

/// C has its NAV set by the exchange of A and B; then D, who hears C alone, has a packet for C.
fn rts_to_a_silent_station(config: &ChannelConfig, script: &str) {
    let places: [(f64, &[(u64, u64)]); 4] =
        [(0.0, &[(20, 32)]), (200.0, &[]), (400.0, &[]), (600.0, &[(0, 64), (0, 128)])];
    play(&mut line(config, &places), script);
}

#[test]
fn an_rts_is_not_answered_while_the_nav_is_set() {
    // §9.2.5.7. C's NAV ends at 1696.672.
    let mut config = deaf_beyond_range(with_rts());
    config.mac.short_retry_limit = 2;
    rts_to_a_silent_station(
        &config,
        "0     send A>B 100
         700   send D>C 100
         0     A>B RTS
         362.668   B>A CTS
         677.336   A>B DATA
         700       D>C RTS
         1274      D>C RTS
         1382.004  B got 0
         1392.004  B>A ACK
         1848      D drop 1
         1848      D lost C",
    );
}

#[test]
fn in_ns2_a_cts_waits_for_an_idle_medium_too() {
    // The RTS ends while B hears nothing, but SIFS later D's broadcast has reached B, and will destroy the data.
    let mut config = deaf_beyond_range(with_rts());
    config.mac.short_retry_limit = 1;
    config.mac.long_retry_limit = 1;
    let script = "
        0     send C>B 100
        357   send D>* 100
        0     C>B RTS
        357   D>* DATA";
    for (rule, then) in [
        (
            CtsRule::NavIdle,
            "362.668  B>C CTS
             677.336  C>B DATA
             1573.701 A got 1
             1603.336 C drop 0
             1603.336 C lost B",
        ),
        (
            CtsRule::MediumIdle,
            "574      C drop 0
             574      C lost B
             1573.634 B got 1, more to come
             1573.701 A got 1",
        ),
    ] {
        config.mac.cts = rule;
        let mut cell = line(&config, &[(600.0, &[]), (200.0, &[]), (0.0, &[]), (390.0, &[])]);
        play(&mut cell, &format!("{script}\n{then}"));
    }
}
