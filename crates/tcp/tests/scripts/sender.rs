//! The sending half without loss recovery: windows, Nagle, silly windows, the retransmission timer
//! (RFC 5681 §3.1, §4.1; RFC 3465; RFC 3042; RFC 6298; RFC 9293 §3.7.4, §3.8.6.2.1).

use crate::{config, run, run_open, window};
use airtcp_core::{Bytes, Duration};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{Nagle, Recovery, RepeatedTimeout, RtoConfig};

fn sack(n: u32) -> TcpConfig {
    TcpConfig { recovery: Recovery::Sack, ..window(n) }
}

// RFC 5681 §3.1: 4 segments of up to 1095 bytes.
#[test]
fn initial_window() {
    run_open(
        &config(),
        "0.200 write 10000
         0.200 > . 1:4001(4*1000) ack 1
         0.200 ? cwnd 4000 ssthresh 4294967295",
    );
}

// packetdrill's slow_start-ack-per-1pkt: two segments released per ACK, cwnd 10 to 20.
#[test]
fn slow_start_doubles_in_a_round_trip() {
    let mut script = "0.2 write 100000\n 0.2 > . 1:10001(10*1000) ack 1\n".to_owned();
    for n in 0..10 {
        let (acked, next) = (n * 1000 + 1001, 10_001 + n * 2000);
        let end = next + 2000;
        script += &format!("0.3 < ack {acked}\n 0.3 > . {next}:{end}(2*1000) ack 1\n");
    }
    run_open(&window(10), &(script + "0.3 ? cwnd 20000"));
}

// packetdrill's slow_start-ack-per-2pkt: RFC 5681 adds one segment per ACK, ABC (L = 2) what
// was acknowledged.
#[test]
fn slow_start_with_an_ack_per_two_segments() {
    run_open(
        &window(10),
        "0.2 write 100000
         0.2 > . 1:10001(10*1000) ack 1
         0.3 < ack 2001
         0.3 > . 10001:13001(3*1000) ack 1
         0.3 ? cwnd 11000",
    );
    run_open(
        &TcpConfig { abc: Some(2), ..window(10) },
        "0.2 write 100000
         0.2 > . 1:10001(10*1000) ack 1
         0.3 < ack 2001
         0.3 > . 10001:14001(4*1000) ack 1
         0.3 ? cwnd 12000",
    );
}

// packetdrill's slow_start-ack-per-4pkt: +1 by RFC 5681, +2 with L = 2, +4 as in Linux.
#[test]
fn slow_start_with_a_stretch_ack() {
    for (abc, cwnd, end, count) in
        [(None, 11_000, 15_001, 5), (Some(2), 12_000, 16_001, 6), (Some(100), 14_000, 18_001, 8)]
    {
        run_open(
            &TcpConfig { abc, ..window(10) },
            &format!(
                "0.2 write 100000
                 0.2 > . 1:10001(10*1000) ack 1
                 0.3 < ack 4001
                 0.3 > . 10001:{end}({count}*1000) ack 1
                 0.3 ? cwnd {cwnd}"
            ),
        );
    }
}

// RFC 5681 eq. 3: SMSS * SMSS / cwnd per ACK.
#[test]
fn congestion_avoidance_from_ssthresh() {
    run_open(
        &TcpConfig { initial_ssthresh: Some(Bytes(2000)), ..window(2) },
        "0.2 write 20000
         0.2 > . 1:2001(2*1000) ack 1
         0.3 < ack 1001
         0.3 > . 2001:3001(1000) ack 1
         0.3 ? cwnd 2500
         0.3 < ack 2001
         0.3 > . 3001:4001(1000) ack 1
         0.3 ? cwnd 2900
         0.4 < ack 3001
         0.4 > . 4001:6001(2*1000) ack 1
         0.4 ? cwnd 3244",
    );
}

#[test]
fn cwnd_stops_at_its_limit() {
    run_open(
        &TcpConfig { cwnd_limit: Some(Bytes(3000)), ..window(2) },
        "0.2 write 20000
         0.2 > . 1:2001(2*1000) ack 1
         0.3 < ack 1001
         0.3 > . 2001:4001(2*1000) ack 1
         0.3 < ack 2001
         0.3 > . 4001:5001(1000) ack 1
         0.3 ? cwnd 3000",
    );
}

// RFC 5681 §4.1; packetdrill's slow_start-after-idle.
#[test]
fn after_an_idle_rto_cwnd_is_the_initial_window() {
    let script = |tail| {
        format!(
            "0.2 write 4000
             0.2 > . 1:2001(2*1000) ack 1
             0.3 < ack 2001
             0.3 > . 2001:4001(2*1000) ack 1
             0.4 < ack 4001
             0.4 ? cwnd 4000
             {tail}"
        )
    };
    let restart = script("2.0 write 6000\n 2.0 > . 4001:6001(2*1000) ack 1\n 2.0 ? cwnd 2000");
    run_open(&window(2), &restart);
    // Not idle for as long as an RTO.
    run_open(&window(2), &script("1.3 write 6000\n 1.3 > . 4001:8001(4*1000) ack 1"));
    let keep = TcpConfig { slow_start_after_idle: false, ..window(2) };
    run_open(&keep, &script("2.0 write 6000\n 2.0 > . 4001:8001(4*1000) ack 1"));
}

// RFC 9293 §3.7.4.
#[test]
fn nagle_holds_a_small_segment_while_data_is_unacknowledged() {
    run_open(
        &config(),
        "0.2 write 100
         0.2 > P 1:101(100) ack 1
         0.21 write 100
         0.22 write 100
         0.3 < ack 101
         0.3 > P 101:301(200) ack 1
         0.31 write 1100
         0.31 > . 301:1301(1000) ack 1
         0.4 < ack 1301
         0.4 > P 1301:1401(100) ack 1",
    );
    run_open(
        &TcpConfig { nagle: Nagle::Off, ..config() },
        "0.2 write 100
         0.2 > P 1:101(100) ack 1
         0.21 write 100
         0.21 > P 101:201(100) ack 1",
    );
}

// Minshall's variant holds a small segment behind a small one only.
#[test]
fn the_tail_of_a_large_write_leaves_with_it() {
    run_open(
        &TcpConfig { nagle: Nagle::Minshall, ..config() },
        "0.2 write 1100
         0.2 > . 1:1001(1000) ack 1
         0.2 > P 1001:1101(100) ack 1
         0.21 write 100
         0.3 < ack 1001
         0.31 < ack 1101
         0.31 > P 1101:1201(100) ack 1",
    );
}

// Linux: `tcp_update_pacing_rate`. Two windows of 20 segments in 100 ms, but for the first ten
// segments; a window and a fifth of it when cwnd is above half of ssthresh.
#[test]
fn a_paced_sender_spreads_its_window() {
    let paced = TcpConfig { pacing: true, ..window(20) };
    let start = "0.2 write 14000
         0.2 > . 1:11001(11*1000) ack 1
         0.2025 > . 11001:12001(1000) ack 1
         0.2050 > . 12001:13001(1000) ack 1
         0.2075 > P 13001:14001(1000) ack 1";
    run_open(&paced, start);
    let paced = TcpConfig { initial_ssthresh: Some(Bytes(20_000)), ..paced };
    run_open(
        &paced,
        "0.2 write 13000
         0.2 > . 1:11001(11*1000) ack 1
         0.204166667 > . 11001:12001(1000) ack 1
         0.208333334 > P 12001:13001(1000) ack 1",
    );
}

// RFC 9293 §3.8.6.2.1: a piece of a segment only if it is half the largest window ever seen.
#[test]
fn the_sender_avoids_silly_windows() {
    let open = |window: u32| {
        format!(
            "0.0 connect
             0.0 > S 0:0(0)
             0.1 < S 0:0(0) ack 1 win {window} <mss 1000>
             0.1 > ack 1
             0.2 write 5000"
        )
    };
    run(
        &config(),
        &format!(
            "{}
             0.2 > . 1:2001(2*1000) ack 1
             0.3 < ack 1001 win 1500
             0.4 < ack 2001 win 1500
             0.4 > . 2001:3001(1000) ack 1
             0.4 ? flight 1000",
            open(2000)
        ),
    );
    run(
        &config(),
        &format!(
            "{}
             0.2 > . 1:1001(1000) ack 1
             0.3 < ack 1001 win 800
             0.3 > . 1001:1801(800) ack 1",
            open(1500)
        ),
    );
}

// RFC 9293 §3.8.6: nothing is sent beyond the peer's window.
#[test]
fn the_peers_window_bounds_what_is_sent() {
    run_open(
        &window(10),
        "0.2 < ack 1 win 3000
         0.2 write 10000
         0.2 > . 1:3001(3*1000) ack 1
         0.3 < ack 1001 win 4000
         0.3 > . 3001:5001(2*1000) ack 1",
    );
}

// RFC 9293 §3.10.7.4: SND.UNA =< SEG.ACK, SND.WL1, SND.WL2.
#[test]
fn an_old_ack_does_not_move_the_window() {
    run_open(
        &window(10),
        "0.2 write 2000
         0.2 > . 1:2001(2*1000) ack 1
         0.3 < ack 2001 win 5000
         0.31 < ack 1001 win 9000
         0.31 ? peerwnd 5000
         0.4 < ack 2001 win 7000
         0.4 ? peerwnd 7000",
    );
}

// With data both ways the peer's retransmission has a sequence number below SND.WL1, but its window
// is the newest.
#[test]
fn a_retransmission_that_acknowledges_more_moves_the_window() {
    run_open(
        &window(10),
        "0.2 < . 1001:2001(1000) ack 1 win 3000
         0.2 > ack 1
         0.3 write 10000
         0.3 > . 1:3001(3*1000) ack 1
         0.4 < . 1:1001(1000) ack 3001 win 1000
         0.4 > . 3001:4001(1000) ack 2001
         0.4 ? peerwnd 1000 flight 1000",
    );
}

// RFC 6298 §3 (Karn) and §5.7: no sample from a retransmitted segment; the back-off stays until
// there is one.
#[test]
fn a_retransmitted_segment_is_not_timed() {
    run_open(
        &config(),
        "0.2 write 1000
         0.2 > . 1:1001(1000) ack 1
         1.2 > . 1:1001(1000) ack 1
         1.3 < ack 1001
         1.3 ? srtt 0.1 rto 2 timer none
         1.4 write 1000
         1.4 > . 1001:2001(1000) ack 1
         1.6 < ack 2001
         1.6 ? srtt 0.1125 rto 1",
    );
}

// RFC 7323 §4: with timestamps every ACK of new data is a sample, also of a retransmission.
#[test]
fn timestamps_time_retransmissions_too() {
    run_open(
        &TcpConfig { timestamps: true, ..config() },
        "0.2 write 1000
         0.2 > . 1:1001(1000) ack 1 <TS val 200 ecr 100>
         1.2 > . 1:1001(1000) ack 1 <TS val 1200 ecr 100>
         1.4 < ack 1001 <TS val 1400 ecr 1200>
         1.4 ? srtt 0.1125 rto 1",
    );
}

// RFC 6298 §5.5 with the retransmission threshold of 6 of M-TCP+ Table 1: 1 s · (2^7 - 1) = 127 s.
#[test]
fn back_off_doubles_and_the_threshold_aborts() {
    let rto =
        RtoConfig { max: Duration::from_secs(64), max_retransmissions: 6, ..RtoConfig::default() };
    run_open(
        &TcpConfig { rto, ..config() },
        "1 write 1000
         1 > . 1:1001(1000) ack 1
         2 > . 1:1001(1000) ack 1
         4 > . 1:1001(1000) ack 1
         8 > . 1:1001(1000) ack 1
         16 > . 1:1001(1000) ack 1
         32 > . 1:1001(1000) ack 1
         64 > . 1:1001(1000) ack 1
         127.999 ? aborted no timeouts 6
         128.001 ? state Closed aborted RetransmissionLimit timer none",
    );
}

// RFC 9293 §3.9.1.1, RFC 5482; Linux tcp_write_timeout, tcp_clamp_rto_to_user_timeout: it counts
// from the first time-out, and the last wait is what is left of it.
#[test]
fn after_the_user_timeout_the_sender_gives_up() {
    let config = &TcpConfig { user_timeout: Some(Duration::from_millis(4_500)), ..config() };
    run_open(
        config,
        "1 write 1000
         1 > . 1:1001(1000) ack 1
         2 > . 1:1001(1000) ack 1
         4 > . 1:1001(1000) ack 1
         6.499 ? aborted no timeouts 2
         6.501 ? state Closed aborted UserTimeout timer none",
    );
}

#[test]
fn progress_begins_the_user_timeout_anew() {
    let config = &TcpConfig { user_timeout: Some(Duration::from_secs(4)), ..window(2) };
    run_open(
        config,
        "1 write 2000
         1 > . 1:1001(1000) ack 1
         1 > . 1001:2001(1000) ack 1
         2 > . 1:1001(1000) ack 1
         4 > . 1:1001(1000) ack 1
         4.5 < ack 1001
         4.5 > . 1001:2001(1000) ack 1
         8.5 > . 1001:2001(1000) ack 1
         12.499 ? aborted no
         12.501 ? aborted UserTimeout",
    );
}

// Linux: retransmits_timed_out. What has been sent once is sent again before the end.
#[test]
fn a_user_timeout_below_the_rto_allows_one_retransmission() {
    let config = &TcpConfig { user_timeout: Some(Duration::from_millis(100)), ..config() };
    run_open(
        config,
        "1 write 1000
         1 > . 1:1001(1000) ack 1
         2 > . 1:1001(1000) ack 1
         2.101 ? aborted UserTimeout",
    );
}

#[test]
fn the_rto_is_bounded_above() {
    let rto = RtoConfig { max: Duration::from_secs(3), ..RtoConfig::default() };
    run_open(
        &TcpConfig { rto, ..config() },
        "1 write 1000
         1 > . 1:1001(1000) ack 1
         2 > . 1:1001(1000) ack 1
         4 > . 1:1001(1000) ack 1
         7 > . 1:1001(1000) ack 1
         10 > . 1:1001(1000) ack 1",
    );
}

// RFC 6298 §5.3, §5.2.
#[test]
fn new_acks_restart_the_timer_and_the_last_stops_it() {
    run_open(
        &config(),
        "0.2 write 2000
         0.2 > . 1:2001(2*1000) ack 1
         0.7 < ack 1001
         0.7 ? srtt 0.15 rttvar 0.1375 rto 1 timer 1.7
         1.0 < ack 2001
         1.0 ? timer none",
    );
}

// RFC 6298 §5.1: a segment sent while the timer runs does not restart it.
#[test]
fn later_segments_do_not_push_the_timer_back() {
    run_open(
        &config(),
        "0.2 write 1000
         0.2 > . 1:1001(1000) ack 1
         0.8 write 1000
         0.8 > . 1001:2001(1000) ack 1
         0.8 ? timer 1.2
         1.2 > . 1:1001(1000) ack 1",
    );
}

// A coarse clock: 100 ms are one tick of 500 ms; SRTT 0.5 + 4 * 0.25.
#[test]
fn coarse_ticks() {
    let tick = Duration::from_millis(500);
    run_open(
        &TcpConfig { rto: RtoConfig { tick, ..RtoConfig::default() }, ..config() },
        "0.2 write 1000
         0.2 > . 1:1001(1000) ack 1
         0.2 ? rto 1.5
         1.7 > . 1:1001(1000) ack 1",
    );
}

// RFC 5681 §3.1 and go-back-N.
#[test]
fn after_a_time_out_slow_start_from_snd_una() {
    run_open(
        &window(6),
        "0.2 write 10000
         0.2 > . 1:6001(6*1000) ack 1
         1.2 > . 1:1001(1000) ack 1
         1.2 ? cwnd 1000 ssthresh 3000 timeouts 1 reductions 1
         1.3 < ack 1001
         1.3 > . 1001:3001(2*1000) ack 1
         1.3 ? cwnd 2000
         1.4 < ack 6001
         1.4 > . 6001:9001(3*1000) ack 1
         1.4 ? cwnd 3000 ssthresh 3000 retransmitted 3",
    );
}

// RFC 5681 §3.1: ssthresh is reduced by the first time-out of a segment only. The peer's ACK that
// moves SND.UNA makes the next one a first again.
#[test]
fn a_time_out_of_newer_data_reduces_ssthresh_again() {
    run_open(
        &window(8),
        "0.2 write 8000
         0.2 > . 1:8001(8*1000) ack 1
         1.2 > . 1:1001(1000) ack 1
         3.2 > . 1:1001(1000) ack 1
         3.2 ? ssthresh 4000 timeouts 2
         3.3 < ack 5001
         3.3 > . 5001:7001(2*1000) ack 1
         7.3 > . 5001:6001(1000) ack 1
         7.3 ? ssthresh 2000 cwnd 1000",
    );
}

// RFC 5681 §3.1 keeps ssthresh at the second time-out of a segment. ns-2 cuts it to two segments, so
// that congestion avoidance begins there.
#[test]
fn a_second_time_out_of_a_segment_keeps_or_cuts_ssthresh() {
    for (repeated_timeout, ssthresh, cwnd, sent) in [
        (RepeatedTimeout::Keep, 4000, 3000, "3001:6001(3*1000)"),
        (RepeatedTimeout::Cut, 2000, 2500, "3001:5001(2*1000)"),
    ] {
        run_open(
            &TcpConfig { repeated_timeout, ..window(8) },
            &format!(
                "0.2 write 8000
                 0.2 > . 1:8001(8*1000) ack 1
                 1.2 > . 1:1001(1000) ack 1
                 1.2 ? ssthresh 4000
                 3.2 > . 1:1001(1000) ack 1
                 3.2 ? ssthresh {ssthresh} cwnd 1000
                 3.3 < ack 1001
                 3.3 > . 1001:3001(2*1000) ack 1
                 3.4 < ack 3001
                 3.4 > . {sent} ack 1
                 3.4 ? cwnd {cwnd}"
            ),
        );
    }
}

// The ACK that moves SND.UNA makes the next time-out a first one again: it halves FlightSize.
#[test]
fn a_time_out_of_newer_data_halves_though_a_repeated_one_cuts() {
    run_open(
        &TcpConfig { repeated_timeout: RepeatedTimeout::Cut, ..window(8) },
        "0.2 write 16000
         0.2 > . 1:8001(8*1000) ack 1
         1.2 > . 1:1001(1000) ack 1
         3.2 > . 1:1001(1000) ack 1
         3.2 ? ssthresh 2000
         3.3 < ack 2001
         3.3 > . 2001:4001(2*1000) ack 1
         3.4 ? flight 6000
         7.3 > . 2001:3001(1000) ack 1
         7.3 ? ssthresh 3000",
    );
}

// RFC 3042; packetdrill's limited-transmit-no-sack: ACK 3001 shows reordering, no cut, cwnd 11.
#[test]
fn limited_transmit_sends_on_the_first_two_duplicates() {
    run_open(
        &TcpConfig { limited_transmit: true, ..window(10) },
        "0.2 write 20000
         0.2 > . 1:10001(10*1000) ack 1
         0.3 < ack 1
         0.3 > . 10001:11001(1000) ack 1
         0.3 < ack 1
         0.3 > . 11001:12001(1000) ack 1
         0.31 < ack 3001
         0.31 > . 12001:14001(2*1000) ack 1
         0.31 ? cwnd 11000 fast 0",
    );
    run_open(
        &TcpConfig { limited_transmit: true, ..sack(10) },
        "0.2 write 20000
         0.2 > . 1:10001(10*1000) ack 1
         0.3 < ack 1 <sack 1001:2001>
         0.3 > . 10001:11001(1000) ack 1
         0.3 < ack 1 <sack 1001:3001>
         0.3 > . 11001:12001(1000) ack 1
         0.31 < ack 3001
         0.31 > . 12001:14001(2*1000) ack 1
         0.31 ? cwnd 11000 fast 0",
    );
}

// RFC 3042: with SACK only an ACK that carries new SACK information counts.
#[test]
fn limited_transmit_wants_new_sack_information() {
    run_open(
        &TcpConfig { limited_transmit: true, ..sack(10) },
        "0.2 write 20000
         0.2 > . 1:10001(10*1000) ack 1
         0.3 < ack 1 <> x5
         0.3 ? dups 0",
    );
}

// RFC 5681 §3.2 step 2: what Limited Transmit sent is not part of FlightSize.
#[test]
fn flight_size_excludes_limited_transmit() {
    run_open(
        &TcpConfig { limited_transmit: true, ..window(10) },
        "0.2 write 20000
         0.2 > . 1:10001(10*1000) ack 1
         0.3 < ack 1
         0.3 > . 10001:11001(1000) ack 1
         0.3 < ack 1
         0.3 > . 11001:12001(1000) ack 1
         0.3 < ack 1
         0.3 > . 1:1001(1000) ack 1
         0.3 ? ssthresh 5000 cwnd 8000",
    );
}

// M-TCP §2.2: the supervisor host acknowledges all but the last byte of a segment.
#[test]
fn an_ack_inside_a_segment_moves_the_retransmission_there() {
    run_open(
        &window(4),
        "0.2 write 4000
         0.2 > . 1:4001(4*1000) ack 1
         0.3 < ack 1000
         0.3 ? flight 3001
         1.3 > . 1000:2000(1000) ack 1
         1.4 < ack 4000
         1.4 > . 4000:4001(1) ack 1",
    );
}

#[test]
fn the_send_buffer_takes_what_fits() {
    run_open(
        &TcpConfig { send_buffer: Bytes(2500), ..config() },
        "0.2 write 5000 takes 2500
         0.2 > . 1:2001(2*1000) ack 1
         0.2 write 5000 takes 0
         0.3 < ack 2001
         0.3 > P 2001:2501(500) ack 1
         0.3 write 5000 takes 2000
         0.3 > . 2501:4501(2*1000) ack 1",
    );
}
