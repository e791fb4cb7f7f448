//! The receive buffer grows with what the application reads (Fisk and Feng 2001; Linux
//! `tcp_rcv_space_adjust`, `tcp_grow_window`).

use crate::{config, run};
use airtcp_core::{Bytes, Duration};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{AckConfig, Recovery};

/// Up to 1 MB, in units of 16 B.
fn tuned() -> TcpConfig {
    TcpConfig {
        autotuning: true,
        receive_buffer: Bytes(1_000_000),
        window_scaling: true,
        timestamps: true,
        ..config()
    }
}

/// Opens actively; 64 KiB are 4096 units; a SYN can advertise a byte less.
#[track_caller]
fn run_tuned(config: &TcpConfig, script: &str) {
    run(
        config,
        &format!(
            "0.000 connect
             0.000 > S 0:0(0) win 65535
             0.100 < S 0:0(0) ack 1 win 60000 <mss 1012,wscale 0,sackOK,TS val 100 ecr 0>
             0.100 > . 1:1(0) ack 1 win 4095
             {script}"
        ),
    );
}

/// Growth of the window by two segments per ACK, up to the buffer's 80 KiB after the first data,
/// less the one segment taken before the window is computed.
const GROWTH: &str = "1.000 > . 1:1(0) ack 1001 win 4221
         1.000 > . 1:1(0) ack 2001 win 4346
         1.000 > . 1:1(0) ack 3001 win 4471
         1.000 > . 1:1(0) ack 4001 win 4596
         1.000 > . 1:1(0) ack 5001 win 4721
         1.000 > . 1:1(0) ack 6001 win 4846
         1.000 > . 1:1(0) ack 7001 win 4971
         1.000 > . 1:1(0) ack 8001 win 5057";

#[test]
fn the_window_begins_with_64_kib_and_grows_by_two_segments_with_each() {
    run_tuned(
        &tuned(),
        &format!(
            "1.000 < . 1:10001(10*1000) ack 1
             {GROWTH}
             1.000 > . 1:1(0) ack 9001 win 5057
             1.000 > . 1:1(0) ack 10001 win 5057"
        ),
    );
}

// 32 kB in 100 ms, where 10 segments were assumed: 64 kB, and 281,600 B for the growth. Each segment
// then opens the window by twice its size.
#[test]
fn what_is_read_in_a_round_trip_enlarges_the_buffer() {
    run_tuned(
        &tuned(),
        "1.000 < . 1:1001(1000) ack 1 <TS val 1000 ecr 900>
         1.000 > . 1:1(0) ack 1001 win 4221
         1.050 < . 1001:31001(30000) ack 1 <TS val 1050 ecr 1000>
         1.050 > . 1:1(0) ack 31001 win 4221
         1.100 < . 31001:32001(1000) ack 1 <TS val 1100 ecr 1000>
         1.100 > . 1:1(0) ack 32001 win 4346
         1.110 < . 32001:62001(30000) ack 1 <TS val 1110 ecr 1000>
         1.110 > . 1:1(0) ack 62001 win 8096",
    );
}

#[test]
fn the_largest_window_is_the_receive_buffer() {
    run_tuned(
        &TcpConfig { receive_buffer: Bytes(600_000), ..tuned() },
        "1.000 < . 1:1001(1000) ack 1 <TS val 1000 ecr 900>
         1.000 > . 1:1(0) ack 1001 win 4221
         1.100 < . 1001:61001(60000) ack 1 <TS val 1100 ecr 1000>
         1.100 > . 1:1(0) ack 61001 win 4221
         1.110 < . 61001:121001(60000) ack 1 <TS val 1110 ecr 1000>
         1.110 > . 1:1(0) ack 121001 win 11721
         1.120 < . 121001:281001(160000) ack 1 <TS val 1120 ecr 1000>
         1.120 > . 1:1(0) ack 281001 win 27500
         1.130 < . 281001:681001(400000) ack 1 <TS val 1130 ecr 1000>
         1.130 > . 1:1(0) ack 681001 win 27500
         1.140 < . 681001:682001(1000) ack 1 <TS val 1140 ecr 1000>
         1.140 > . 1:1(0) ack 682001 win 27625",
    );
}

// 30 kB a round trip, three times what was assumed, but as much waits: no reason to grow.
#[test]
fn a_slow_reader_keeps_the_window() {
    run_tuned(
        &tuned(),
        "1.000 < . 1:1001(1000) ack 1 <TS val 1000 ecr 900>
         1.000 > . 1:1(0) ack 1001 win 4221
         1.010 < . 1001:61001(60000) ack 1 <TS val 1010 ecr 1000> noread
         1.010 > . 1:1(0) ack 61001 win 1370
         1.100 read 30000
         1.100 > . 1:1(0) ack 61001 win 3245
         1.110 < . 61001:91001(30000) ack 1 <TS val 1110 ecr 1010> noread
         1.110 > . 1:1(0) ack 91001 win 1370
         1.200 read 30000
         1.200 > . 1:1(0) ack 91001 win 3245
         1.210 < . 91001:121001(30000) ack 1 <TS val 1210 ecr 1110> noread
         1.210 > . 1:1(0) ack 121001 win 1370
         1.300 read 30000
         1.300 > . 1:1(0) ack 121001 win 3245",
    );
}

// The sender of a small window waits for the news (Linux: `tcp_grow_window` asks for a quick ACK).
#[test]
fn an_ack_that_opens_the_window_is_not_delayed() {
    let ack = AckConfig::Delayed { segments: 2, timeout: Duration::from_millis(40), quick: 1 };
    run_tuned(
        &TcpConfig { ack, ..tuned() },
        &format!(
            "1.000 < . 1:12001(12*1000) ack 1
             {GROWTH}
             1.000 > . 1:1(0) ack 10001 win 5057
             1.000 > . 1:1(0) ack 12001 win 5057"
        ),
    );
}

// `icsk_ack.quick |= 1` in `tcp_grow_window`: an even number is not used up.
#[test]
fn while_the_window_grows_no_quick_acks_are_used_up() {
    let ack = AckConfig::Delayed { segments: 2, timeout: Duration::from_millis(40), quick: 4 };
    run_tuned(
        &TcpConfig { ack, ..tuned() },
        &format!(
            "1.000 < . 1:14001(14*1000) ack 1
             {GROWTH}
             1.000 > . 1:1(0) ack 9001 win 5057
             1.000 > . 1:1(0) ack 10001 win 5057
             1.000 > . 1:1(0) ack 11001 win 5057
             1.000 > . 1:1(0) ack 12001 win 5057
             1.000 > . 1:1(0) ack 14001 win 5057"
        ),
    );
}

// RFC 5681 §2: otherwise it would count as a window update.
#[test]
fn a_duplicate_ack_without_sack_has_the_window_of_the_one_before() {
    let arrivals = "1.000 < . 1:1001(1000) ack 1
         1.000 > . 1:1(0) ack 1001 win 4221
         1.000 < . 2001:4001(2*1000) ack 1";
    for (recovery, first, second) in
        [(Recovery::Tahoe { avoid_multi_fr: false }, 4221, 4221), (Recovery::Sack, 4346, 4471)]
    {
        run_tuned(
            &TcpConfig { recovery, ..tuned() },
            &format!(
                "{arrivals}
                 1.000 > . 1:1(0) ack 1001 win {first}
                 1.000 > . 1:1(0) ack 1001 win {second}"
            ),
        );
    }
}
