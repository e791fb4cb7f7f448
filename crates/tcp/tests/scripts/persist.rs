//! Closed windows: probes (RFC 9293 §3.8.6.1) and the three rules for a window that closes with
//! data outstanding, which M-TCP and M-TCP+ §2.4 build on.

use crate::{config, run_open, window};
use airtcp_core::Duration;
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{PersistConfig, PersistOnShrink, Recovery, RtoConfig, SpuriousDetection};

fn persist(persist: PersistConfig) -> TcpConfig {
    TcpConfig { persist, ..window(2) }
}

fn shrink(on_shrink: PersistOnShrink) -> TcpConfig {
    let persist = PersistConfig { on_shrink, ..PersistConfig::default() };
    TcpConfig { persist, ..window(4) }
}

/// Two segments out and acknowledged, with the window closed at 0.3 s.
const CLOSED: &str = "0.2 write 10000
    0.2 > . 1:2001(2*1000) ack 1
    0.3 < ack 2001 win 0
    0.3 ? persisting true cwnd 3000 flight 0\n";

fn closed(script: &str) -> String {
    format!("{CLOSED}{script}")
}

// packetdrill's slow_start-after-win-update; M-TCP's premise (M-TCP+ §2.4).
#[test]
fn probes_double_and_cwnd_is_frozen() {
    run_open(
        &window(2),
        &closed(
            "1.3 > . 2001:2002(1) ack 1
             1.4 < ack 2001 win 0
             3.3 > . 2001:2002(1) ack 1
             3.4 < ack 2001 win 0
             7.3 > . 2001:2002(1) ack 1
             7.4 < ack 2001 win 60000
             7.4 > . 2001:5001(3*1000) ack 1
             7.4 ? persisting false cwnd 3000 ssthresh 4294967295 timeouts 0 probes 3",
        ),
    );
}

// RFC 9293 §3.8.6.1: the receiver may take the byte; that is no sign of capacity.
#[test]
fn an_accepted_probe_byte_leaves_cwnd_alone() {
    run_open(
        &window(2),
        &closed(
            "0.35 ? cwnd 3000
             1.3 > . 2001:2002(1) ack 1
             1.4 < ack 2002 win 0
             1.4 ? cwnd 3000 persisting true
             3.3 > . 2002:2003(1) ack 1
             3.4 < ack 2003 win 0
             5.0 < ack 2003 win 60000
             5.0 > . 2003:5003(3*1000) ack 1
             5.0 ? cwnd 3000",
        ),
    );
}

// A probe byte that the receiver did not accept is part of the next segment.
#[test]
fn a_refused_probe_byte_is_sent_again_with_its_segment() {
    run_open(
        &window(2),
        &closed(
            "1.3 > . 2001:2002(1) ack 1
             2.0 < ack 2001 win 60000
             2.0 > . 2001:5001(3*1000) ack 1
             2.1 < ack 5001",
        )
        .replace("2.1 < ack 5001", "2.1 < ack 5001\n 2.1 > . 5001:9001(4*1000) ack 1"),
    );
}

// M-TCP+ Table 1: a persist time-out of 1 s, without back-off.
#[test]
fn persist_every_second() {
    let second = Duration::from_secs(1);
    run_open(
        &persist(PersistConfig { initial: Some(second), backoff: 1.0, ..Default::default() }),
        &closed(
            "1.3 > . 2001:2002(1) ack 1
             1.3 < ack 2001 win 0
             2.3 > . 2001:2002(1) ack 1
             2.3 < ack 2001 win 0
             3.3 > . 2001:2002(1) ack 1",
        ),
    );
}

#[test]
fn persist_starts_after_its_own_initial_interval() {
    let initial = Some(Duration::from_millis(250));
    run_open(
        &persist(PersistConfig { initial, ..Default::default() }),
        &closed(
            "0.55 > . 2001:2002(1) ack 1
             1.05 > . 2001:2002(1) ack 1",
        ),
    );
}

// RFC 9293 §3.8.6.1: up to 60 s, and never an abort while the peer answers.
#[test]
fn probes_stay_60_s_apart_for_ever() {
    let rto = RtoConfig { max_retransmissions: 2, ..RtoConfig::default() };
    let mut script = CLOSED.to_owned();
    for at in [1.3, 3.3, 7.3, 15.3, 31.3, 63.3, 123.3, 183.3, 243.3, 303.3, 363.3] {
        script += &format!("{at} > . 2001:2002(1) ack 1\n {at} < ack 2001 win 0\n");
    }
    run_open(&TcpConfig { rto, ..window(2) }, &(script + "363.4 ? aborted no persisting true"));
}

// Linux tcp_probe_timer: a peer that answers with a closed window makes no progress.
#[test]
fn after_the_user_timeout_a_closed_window_is_given_up() {
    let config = &TcpConfig { user_timeout: Some(Duration::from_secs(5)), ..window(2) };
    run_open(
        config,
        &closed(
            "1.3 > . 2001:2002(1) ack 1
             1.3 < ack 2001 win 0
             3.3 > . 2001:2002(1) ack 1
             3.3 < ack 2001 win 0
             6.299 ? aborted no
             6.301 ? state Closed aborted UserTimeout timer none",
        ),
    );
}

// RFC 9293 §3.8.3, §3.8.6.1.
#[test]
fn unanswered_probes_abort() {
    let rto = RtoConfig { max_retransmissions: 2, ..RtoConfig::default() };
    run_open(
        &TcpConfig { rto, ..window(2) },
        &closed(
            "1.3 > . 2001:2002(1) ack 1
             3.3 > . 2001:2002(1) ack 1
             7.301 ? state Closed aborted RetransmissionLimit timer none",
        ),
    );
}

// The FIN occupies a sequence number that a closed window does not hold.
#[test]
fn a_fin_behind_a_closed_window_is_probed() {
    run_open(
        &window(2),
        "0.2 write 2000
         0.2 > . 1:2001(2*1000) ack 1
         0.3 < ack 2001 win 0
         0.4 close
         0.4 ? persisting true state FinWait1
         1.4 > F 2001:2001(0) ack 1
         1.5 < ack 2001 win 0
         3.4 > F 2001:2001(0) ack 1
         3.5 < ack 2002 win 0
         3.5 ? state FinWait2 timer none",
    );
}

#[test]
fn persist_ends_when_a_probe_carried_the_last_byte() {
    run_open(
        &window(2),
        "0.2 write 2001
         0.2 > . 1:2001(2*1000) ack 1
         0.3 < ack 2001 win 0
         1.3 > . 2001:2002(1) ack 1
         1.4 < ack 2002 win 0
         1.4 ? persisting false timer none",
    );
}

#[test]
fn a_fin_behind_queued_data_waits_for_it() {
    run_open(
        &window(2),
        "0.2 write 2002
         0.2 > . 1:2001(2*1000) ack 1
         0.3 < ack 2001 win 0
         0.4 close
         1.3 > . 2001:2002(1) ack 1
         1.4 < ack 2001 win 1000
         1.4 > F 2001:2003(2) ack 1
         1.5 < ack 2004
         1.5 ? state FinWait2",
    );
}

// The override time-out of silly-window avoidance (RFC 9293 §3.8.6.2.1, case 4).
#[test]
fn a_silly_window_is_used_after_the_persist_interval() {
    run_open(
        &window(2),
        "0.2 write 10000
         0.2 > . 1:2001(2*1000) ack 1
         0.3 < ack 2001 win 300
         0.3 ? persisting true
         1.3 > . 2001:2301(300) ack 1
         1.4 < ack 2301 win 60000
         1.4 > . 2301:5301(3*1000) ack 1",
    );
}

// The peer may repeat itself forever: data that it does not need, sent again and again by a node on
// the path, is acknowledged each time.
#[test]
fn repeated_acks_do_not_put_off_the_use_of_a_silly_window() {
    run_open(
        &window(2),
        "0.2 write 10000
         0.2 > . 1:2001(2*1000) ack 1
         0.3 < ack 2001 win 300
         0.7 < ack 2001 win 300
         1.1 < ack 2001 win 300
         1.3 > . 2001:2301(300) ack 1",
    );
}

/// Four segments out; the first is acknowledged with the window closed.
fn shrunk(script: &str) -> String {
    format!(
        "0.2 write 10000
         0.2 > . 1:4001(4*1000) ack 1
         0.3 < ack 1001 win 0
         {script}"
    )
}

#[test]
fn strict_retransmits_into_the_shrunk_window() {
    run_open(
        &shrink(PersistOnShrink::Strict),
        &shrunk(
            "0.3 ? persisting false flight 3000
             1.3 > . 1001:2001(1000) ack 1
             1.3 ? cwnd 1000 timeouts 1
             1.4 < ack 1001 win 0
             3.3 > . 1001:2001(1000) ack 1
             3.4 < ack 4001 win 0
             3.4 ? persisting true",
        ),
    );
}

#[test]
fn strict_aborts_though_the_peer_answers() {
    let rto = RtoConfig { max_retransmissions: 1, ..RtoConfig::default() };
    run_open(
        &TcpConfig { rto, ..shrink(PersistOnShrink::Strict) },
        &shrunk(
            "1.3 > . 1001:2001(1000) ack 1
             1.4 < ack 1001 win 0
             3.301 ? aborted RetransmissionLimit",
        ),
    );
}

// 4.4BSD: the retransmission timer stops, SND.NXT goes back, probes start.
#[test]
fn bsd_persists_with_data_outstanding() {
    run_open(
        &shrink(PersistOnShrink::Bsd),
        &shrunk(
            "0.3 ? persisting true cwnd 5000
             1.3 > . 1001:1002(1) ack 1
             1.4 < ack 1001 win 0
             1.5 < ack 1001 win 60000
             1.5 > . 1001:6001(5*1000) ack 1
             1.5 ? timeouts 0 reductions 0 cwnd 5000 persisting false timer 2.5",
        ),
    );
}

// Persist and retransmission exclude each other (4.4BSD tcp_output).
#[test]
fn bsd_does_not_retransmit_after_an_accepted_probe() {
    run_open(
        &shrink(PersistOnShrink::Bsd),
        &shrunk(
            "1.3 > . 1001:1002(1) ack 1
             1.4 < ack 1002 win 0
             3.3 > . 1002:1003(1) ack 1
             3.4 < ack 1002 win 0
             3.5 ? timeouts 0 cwnd 5000",
        ),
    );
}

#[test]
fn bsd_goes_back_out_of_sack_recovery_too() {
    run_open(
        &TcpConfig { recovery: Recovery::Sack, ..shrink(PersistOnShrink::Bsd) },
        "0.2 write 10000
         0.2 > . 1:4001(4*1000) ack 1
         0.3 < ack 1 <sack 1001:4001>
         0.3 > . 1:1001(1000) ack 1
         0.3 > . 4001:5001(1000) ack 1
         0.4 < ack 1 win 0
         0.4 ? persisting true
         0.5 < ack 1 win 60000
         0.5 > . 1:1001(1000) ack 1
         0.5 > . 4001:5001(1000) ack 1",
    );
}

// Linux tcp_retransmit_timer: no abort while the peer answers.
#[test]
fn linux_retransmits_without_abort_while_answered() {
    let rto = RtoConfig { max_retransmissions: 1, ..RtoConfig::default() };
    run_open(
        &TcpConfig { rto, ..shrink(PersistOnShrink::Linux) },
        &shrunk(
            "1.3 > . 1001:2001(1000) ack 1
             1.4 < ack 1001 win 0
             3.3 > . 1001:2001(1000) ack 1
             3.4 < ack 1001 win 0
             7.3 > . 1001:2001(1000) ack 1
             7.4 < ack 1001 win 0
             7.4 ? aborted no ssthresh 2000
             15.3 > . 1001:2001(1000) ack 1
             31.301 ? aborted RetransmissionLimit",
        ),
    );
}

// Answers under a closed window do not count once it is open again.
#[test]
fn linux_counts_afresh_under_the_open_window() {
    let rto = RtoConfig { max_retransmissions: 3, ..RtoConfig::default() };
    run_open(
        &TcpConfig { rto, ..shrink(PersistOnShrink::Linux) },
        &shrunk(
            "1.3 > . 1001:2001(1000) ack 1
             1.3 < ack 1001 win 0
             3.3 > . 1001:2001(1000) ack 1
             3.3 < ack 1001 win 0
             7.3 > . 1001:2001(1000) ack 1
             7.3 < ack 1001 win 0
             7.4 < ack 1001 win 60000
             15.3 ? aborted no
             15.3 > . 1001:2001(1000) ack 1",
        ),
    );
}

// RFC 9293 §3.8.6.1 with nothing to send: no persist, no timer.
#[test]
fn a_closed_window_with_nothing_to_send_is_no_persist() {
    run_open(&config(), "0.3 < ack 1 win 0\n 0.3 ? persisting false timer none");
}

// What BSD pulls back it sends again, so that no acknowledgement proves a time-out spurious any
// more.
#[test]
fn bsd_gives_up_the_detection_of_a_spurious_time_out() {
    run_open(
        &TcpConfig { spurious: SpuriousDetection::FRto, ..shrink(PersistOnShrink::Bsd) },
        "0.2 write 20000
         0.2 > . 1:4001(4*1000) ack 1
         1.2 > . 1:1001(1000) ack 1
         1.3 < ack 1001
         1.3 > . 4001:6001(2*1000) ack 1
         1.4 < ack 1001 win 0
         1.4 ? persisting true
         3.4 > . 1001:1002(1) ack 1
         3.5 < ack 1002 win 60000
         3.5 > . 1002:6002(5*1000) ack 1
         3.5 ? spurious 0 persisting false",
    );
}
