//! Each rule of the MAC as a timeline. Section numbers are those of IEEE Std 802.11-1999.
//!
//! Recurring durations, microseconds: at 1 Mbit/s RTS 352, CTS and ACK 304; at 2 Mbit/s CTS and ACK
//! 248; a packet of 1500 B in the `basic` cell 192 + 1528 * 8 / 2 = 6304, one of 100 B 704.

use crate::common::{dsss, line, play};
use airtcp_core::{Bytes, DataRate, Duration};
use airtcp_net::config::QueueLimit;
use airtcp_net::wifi::{
    Attempts, ChannelConfig, CtsRule, EifsRule, FirstAccess, FrameErrors, Reception,
    ResponseTimeout, StationId, preset,
};

/// The standard's rules at 2 Mbit/s, control frames at 1 Mbit/s, no LLC, no RTS.
fn basic() -> ChannelConfig {
    let mut config = preset::ieee();
    dsss(&mut config).data_rate = DataRate::mbps(2);
    dsss(&mut config).control_rate = DataRate::mbps(1);
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
    // §9.2.5.1: A would have been sent at 1050; it draws 2 slots, which count from DIFS after the
    // ACK at 2058.
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

/// A's second packet has 5 slots to wait from 1068; C's first access interrupts in the middle of
/// the third.
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
    // §9.2.5.2. The second packet arrives during the post-back-off, which ends at 1068 + 100, and
    // waits for its end.
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
fn a_frame_that_is_not_the_response_ends_the_attempt() {
    // §9.2.8. Nobody answers A's RTS; it overlaps a frame of D that A does not hear. C's ACK to D
    // begins within the time-out, which would end at 724: A waits for the end of the ACK, and only
    // then gives up.
    let mut config = deaf_beyond_range(basic());
    config.mac.rts_threshold = Bytes(100);
    config.mac.short_retry_limit = 1;
    let mut cell = line(&config, &[(0.0, &[]), (2000.0, &[]), (240.0, &[]), (260.0, &[])]);
    play(
        &mut cell,
        "0        send D>C 50
         150      send A>B 100
         0        D>C DATA
         150      A>B RTS
         504.067  C got 0
         514.067  C>D ACK
         818.868  A drop 1
         818.868  A lost B",
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
    // §9.2.5: the length of the MPDU counts, its 28 B of header and FCS included.
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
fn an_rts_silences_stations_that_hear_only_the_sender() {
    // §9.2.5.4. C hears only A, the end of its data at 1382.004. It stays silent, as the data frame
    // says, for SIFS and the 304 us of an ACK it cannot hear; then DIFS.
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
         2962.672  D got 1",
    );
}

#[test]
fn a_cts_silences_stations_that_hear_only_the_receiver() {
    // §9.2.5.4. C hears only B: it does not sense A's data. The ACK ends at 1696.672.
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
         2963.340  B got 1",
    );
}

/// A's RTS gets no CTS: B is out of range. C has a packet.
fn unanswered_rts(nav_reset: bool, then: &str) {
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
    unanswered_rts(true, "766 C>* DATA\n1982 A got 1");
}

#[test]
fn ns2_does_not_reset_the_nav() {
    // The RTS reserved 3 SIFS, CTS, 704, ACK: until 1694.
    unanswered_rts(false, "1744 C>* DATA\n2960 A got 1");
}

/// The exchange of A and B sets C's NAV; then D, which only C hears, has a packet for C.
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
    // When the RTS ends B hears nothing, but SIFS later D's broadcast has reached B, and will
    // destroy the data.
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
             1573.701 B got 1, more to come
             1573.701 A got 1",
        ),
    ] {
        config.mac.cts = rule;
        let mut cell = line(&config, &[(600.0, &[]), (200.0, &[]), (0.0, &[]), (390.0, &[])]);
        play(&mut cell, &format!("{script}\n{then}"));
    }
}

#[test]
fn ns2_looks_at_the_medium_between_cts_and_data() {
    // C misses A's RTS because of a broadcast of its own, and the CTS is out of its range. Its next
    // broadcast is on the air when A's data are due. In ns-2 A draws from the doubled window and
    // starts again with an RTS.
    let mut config = deaf_beyond_range(with_rts());
    dsss(&mut config).broadcast_rate = DataRate::mbps(2);
    let script = "
        0        send A>B 100
        0        send C>* 1
        670      send C>* 100
        0        A>B RTS
        0        C>* DATA
        308.668  C drop 1: Unheard
        362.668  B>A CTS
        670      C>* DATA";
    let regardless = "
        677.336  A>B DATA
        1374.668 C drop 2: Unheard
        1382.004 B got 0
        1392.004 B>A ACK";
    let looking = "
        1374.668 A got 2
        1484.668 A>B RTS
        1847.336 B>A CTS
        2162.004 A>B DATA
        2866.672 B got 0
        2876.672 B>A ACK";
    for (sense, then) in [(false, regardless), (true, looking)] {
        config.mac.sense_before_data = sense;
        let mut cell = line(&config, &[(0.0, &[(3, 64)]), (200.0, &[]), (-200.0, &[(0, 32)])]);
        play(&mut cell, &format!("{script}{then}"));
    }
}

#[test]
fn in_ns2_a_station_that_sent_a_cts_waits_for_the_data() {
    // C's broadcast destroys the CTS at A. B has a packet of its own, sent DIFS after the CTS, or
    // DIFS after the data should have arrived: 666.668 + SIFS + 704 + 20.
    let mut config = deaf_beyond_range(with_rts());
    dsss(&mut config).broadcast_rate = DataRate::mbps(2);
    config.mac.short_retry_limit = 1;
    let script = "
        0        send A>B 100
        0        send C>* 100
        300      send B>* 1
        0        A>B RTS
        0        C>* DATA
        362.668  B>A CTS
        574      A drop 0
        574      A lost B
        704.668  C drop 1: Unheard";
    let at_once = "
        716.668  B>* DATA
        1025.336 A got 2";
    let later = "
        1450.668 B>* DATA
        1759.336 A got 2";
    for (wait, then) in [(false, at_once), (true, later)] {
        config.mac.wait_for_data = wait;
        let mut cell = line(&config, &[(0.0, &[]), (200.0, &[(0, 32)]), (-200.0, &[])]);
        play(&mut cell, &format!("{script}{then}"));
    }
}

// Errors and EIFS.

/// B senses A's frame at 400 m but cannot receive it; B has a packet for C meanwhile.
fn after_an_error(rule: EifsRule, then: &str) {
    let mut config = preset::ns2();
    config.mac = basic().mac;
    config.mac.eifs = rule;
    let places: [(f64, &[(u64, u64)]); 3] = [(0.0, &[]), (400.0, &[(0, 32)]), (600.0, &[])];
    let script = "
        0     send A>* 100
        1000  send B>* 100
        0     A>* DATA
        1217.335 A drop 0: Unheard";
    play(&mut line(&config, &places), &format!("{script}\n{then}"));
}

#[test]
fn eifs_follows_a_frame_received_in_error() {
    // §9.2.3.4: 1217.335 + SIFS + ACK + DIFS.
    after_an_error(EifsRule::Interval, "1581.335 B>* DATA\n2798.003 C got 1");
}

#[test]
fn in_ns2_difs_follows_eifs() {
    after_an_error(EifsRule::Nav, "1631.335 B>* DATA\n2848.003 C got 1");
}

#[test]
fn a_frame_received_ends_eifs() {
    // §9.2.3.4: B receives C's broadcast after the error, then waits for DIFS.
    let mut config = preset::ns2();
    config.mac = basic().mac;
    let mut cell = line(&config, &[(0.0, &[]), (400.0, &[(0, 32)]), (600.0, &[(20, 32)])]);
    play(
        &mut cell,
        "0     send A>* 100
         1000  send B>* 100
         1300  send C>* 100
         0     A>* DATA
         1217.335 A drop 0: Unheard
         1300  C>* DATA
         2516.668 B got 2
         2566.668 B>* DATA
         3783.336 C got 1",
    );
}

// Broadcasts, queue, duplicates.

#[test]
fn a_broadcast_is_sent_once_at_its_own_rate_without_rts_and_ack() {
    let mut cell = line(&with_rts(), &[(0.0, &[(9, 32)]), (0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "0     send A>* 100
         0     A>* DATA
         1216  B got 0, more to come
         1216  C got 0",
    );
}

#[test]
fn a_broadcast_that_nobody_receives_is_dropped() {
    let mut cell = line(&basic(), &[(0.0, &[]), (2000.0, &[])]);
    play(
        &mut cell,
        "0     send A>* 100
         0     A>* DATA
         1222.672 A drop 0: Unheard",
    );
}

#[test]
fn a_full_queue_refuses_packets() {
    let mut config = basic();
    config.mac.queue = QueueLimit::Packets(1);
    let mut cell = line(&config, &[(0.0, &[(0, 32)]), (0.0, &[])]);
    play(
        &mut cell,
        "0     send A>B 100
         0     send A>B 100
         0     send A>B 100
         0     A full 2
         0     A>B DATA
         704   B got 0
         714   B>A ACK
         1068  A>B DATA
         1772  B got 1
         1782  B>A ACK",
    );
}

#[test]
fn a_queue_in_bytes_takes_what_fits() {
    let mut config = basic();
    config.mac.queue = QueueLimit::Bytes(Bytes(150));
    let mut cell = line(&config, &[(0.0, &[(0, 32), (0, 32)]), (0.0, &[])]);
    play(
        &mut cell,
        "0     send A>* 100
         0     send A>* 100
         0     send A>* 100
         0     send A>* 50
         0     A full 2
         0     A>* DATA
         1216  B got 0
         1266  A>* DATA
         2482  B got 1
         2532  A>* DATA
         3348  B got 3",
    );
}

// Which frame a radio receives.

/// The rule of ns-2, with the standard's MAC.
fn first_lock() -> ChannelConfig {
    let mut config = basic();
    config.radio = preset::ns2().radio;
    config
}

/// A sends to B from 200 m; C, hidden from A, broadcasts: 400 m from B, 12 dB below A.
fn hidden_terminal(config: &ChannelConfig, script: &str) {
    let mut config = config.clone();
    config.mac.short_retry_limit = 1;
    play(&mut line(&config, &[(0.0, &[]), (200.0, &[]), (600.0, &[])]), script);
}

const HIDDEN_FIRST: &str = "
    0        send C>* 100
    100      send A>B 100
    0        C>* DATA
    100      A>B DATA";

#[test]
fn in_ns2_an_earlier_weak_frame_destroys_a_strong_one() {
    // ns-2, mac/mac-802_11.cc, recv() and collision(): a later, stronger frame never captures; a
    // frame too weak to be received takes the receiver.
    hidden_terminal(
        &first_lock(),
        &format!(
            "{HIDDEN_FIRST}
             1026     A drop 1
             1026     A lost B
             1217.335 C drop 0: Unheard"
        ),
    );
}

#[test]
fn with_cumulative_sinr_a_stronger_frame_captures() {
    hidden_terminal(
        &basic(),
        &format!(
            "{HIDDEN_FIRST}
             804.668  B got 1
             814.668  B>A ACK
             1217.335 C drop 0: Unheard"
        ),
    );
}

#[test]
fn a_later_frame_10_db_weaker_is_ignored() {
    for config in [first_lock(), basic()] {
        hidden_terminal(
            &config,
            "0        send A>B 100
             100      send C>* 100
             0        A>B DATA
             100      C>* DATA
             704.668  B got 0
             714.668  B>A ACK
             1317.335 C drop 1: Unheard",
        );
    }
}

#[test]
fn with_the_errors_of_dsss_7_db_are_enough_for_2_mbps() {
    // C is 300 m from B: 7 dB below A. 10 dB are too much to ask for.
    let mut config = deaf_beyond_range(basic());
    let Reception::CumulativeSinr { frame_errors, .. } = &mut config.radio.reception else {
        panic!("the standard's preset sums interference")
    };
    *frame_errors = FrameErrors::Dsss;
    let mut cell = line(&config, &[(0.0, &[]), (200.0, &[]), (500.0, &[])]);
    play(
        &mut cell,
        "0        send A>B 100
         100      send C>* 100
         0        A>B DATA
         100      C>* DATA
         704.668  B got 0
         714.668  B>A ACK
         1317.001 C drop 1: Unheard",
    );
}

#[test]
fn a_later_frame_less_than_10_db_weaker_destroys_the_first() {
    // C is 300 m from B: 7 dB below A.
    for config in [deaf_beyond_range(first_lock()), deaf_beyond_range(basic())] {
        let mut config = config;
        config.radio.cs_threshold = config.radio.rx_threshold;
        config.mac.short_retry_limit = 1;
        let mut cell = line(&config, &[(0.0, &[]), (200.0, &[]), (430.0, &[])]);
        play(
            &mut cell,
            "0        send A>B 100
             100      send C>* 100
             0        A>B DATA
             100      C>* DATA
             926      A drop 0
             926      A lost B
             1316.768 C drop 1: Unheard",
        );
        let counters = cell.counters(StationId(1));
        assert_eq!((counters.collisions, counters.errors), (1, 0));
    }
}

#[test]
fn in_ns2_the_nav_covers_an_ignored_frame() {
    // B ignores C's broadcast until 1317.335; with EIFS and DIFS it is silent until 1731.335.
    let mut config = first_lock();
    let script = "
        0        send A>* 1
        100      send C>* 100
        300      send B>* 100
        0        A>* DATA
        100      C>* DATA";
    let at_once = "
        424.668  B got 0
        474.668  B>* DATA
        1317.335 C drop 1: Unheard
        1691.336 A got 2";
    let silent = "
        424.668  B got 0
        1317.335 C drop 1: Unheard
        1731.335 B>* DATA
        2948.003 A got 2";
    for (sets_nav, then) in [(false, at_once), (true, silent)] {
        config.radio.reception =
            Reception::FirstLock { capture_ratio: 10.0, ignored_frame_sets_nav: sets_nav };
        let mut cell = line(&config, &[(0.0, &[]), (200.0, &[(0, 32)]), (600.0, &[])]);
        play(&mut cell, &format!("{script}{then}"));
    }
}

#[test]
fn a_station_that_sends_receives_nothing() {
    // Each begins within the other's propagation delay.
    for config in [first_lock(), basic()] {
        let mut cell = line(&config, &[(0.0, &[]), (200.0, &[])]);
        play(
            &mut cell,
            "0        send A>* 100
             0        send B>* 100
             0        A>* DATA
             0        B>* DATA
             1216.668 A drop 0: Unheard
             1216.668 B drop 1: Unheard",
        );
    }
}

#[test]
fn the_medium_counts_as_busy_while_a_frame_is_sent_or_sensed() {
    let mut cell = line(&basic(), &[(0.0, &[]), (0.0, &[]), (0.0, &[])]);
    play(
        &mut cell,
        "0        send A>B 100
         0        A>B DATA
         704      B got 0
         714      B>A ACK",
    );
    for station in 0..3 {
        assert_eq!(cell.counters(StationId(station)).busy, Duration::from_micros(704 + 304));
    }
}

#[test]
fn the_stations_in_range_come_in_ascending_order() {
    // The classic radio: 250 m.
    let channel = line(&preset::ns2(), &[(0.0, &[]), (250.0, &[]), (251.0, &[]), (-10.0, &[])]);
    let in_range_of = |station| channel.in_range_of(StationId(station)).collect::<Vec<_>>();
    assert_eq!(in_range_of(0), [StationId(1), StationId(3)]);
    assert_eq!(in_range_of(1), [StationId(0), StationId(2)]);
}
