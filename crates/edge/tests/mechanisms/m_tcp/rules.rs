//! One test for each event in `m_tcp.rs` (M-TCP §3.4.3, Figs. 10 to 12).

use super::{flowing, machine, open, shrunk};
use crate::script_in_words::{ISNS, Script, with_flags, with_payload, with_window};
use airtcp_core::{Duration, Flags, LinkSignal, SeqNum};
use airtcp_edge::{MTcpConfig, Retransmit, Side};

// --- A: data from the fixed host ---

#[test]
fn a1_new_data_is_queued_and_forwarded_and_starts_the_timer() {
    for isn in ISNS {
        let mut s = open(isn);
        assert_eq!(s.data(0, 1000), ["pass"]);
        assert_eq!(s.until(200).len(), 0);
        assert_eq!(s.data(1000, 1000), ["pass"]);
        assert_eq!(
            s.until(400),
            ["400 to fixed: ack 0 win 0", "400 to mobile: 0:1000", "400 to mobile: 1000:2000"],
            "started by the first segment only"
        );
        assert_eq!(s.machine.counters().segments_copied, 2);
    }
}

#[test]
fn a1_new_data_is_queued_during_an_outage_too() {
    for isn in ISNS {
        let mut s = shrunk(isn);
        assert_eq!(s.data(3000, 1000), ["pass"]);
        assert_eq!(s.until(800), ["800 to mobile: 1000:2000"], "the timer runs as before");
        assert_eq!(
            s.ack(1000),
            ["pass", "to mobile: 1000:2000", "to mobile: 2000:3000", "to mobile: 3000:4000"]
        );
    }
}

#[test]
fn a2_retransmissions_of_queued_data_are_forwarded_and_not_queued() {
    for isn in ISNS {
        let mut s = flowing(isn);
        assert_eq!(s.data(1000, 1000), ["pass"]);
        assert_eq!(s.data(1500, 1000), ["pass"], "with other boundaries");
        assert_eq!(s.data(999, 1000), ["pass"], "from the withheld byte on");
        assert_eq!(s.machine.held(), 2000);
        assert_eq!(s.until(400).len(), 3);
    }
}

#[test]
fn a3_old_data_is_dropped_and_answered_with_the_last_ack() {
    for isn in ISNS {
        let mut s = flowing(isn);
        assert_eq!(
            s.data(0, 1000),
            ["drop", "to fixed: ack 1000 win 500"],
            "the withheld byte too"
        );
        assert_eq!(s.data(0, 500), ["drop", "to fixed: ack 1000 win 500"]);
        assert_eq!(s.machine.counters().old_segments_answered, 2);
    }
}

#[test]
fn a3_in_an_outage_the_answer_keeps_the_window_closed() {
    for isn in ISNS {
        let mut s = shrunk(isn);
        assert_eq!(s.data(0, 1000), ["drop", "to fixed: ack 1000 win 0"]);
    }
}

#[test]
fn a4_window_probes_are_answered_in_an_outage() {
    for isn in ISNS {
        let mut s = shrunk(isn);
        // A sender that went back to SND.UNA (BSD), one with nothing outstanding, and Linux.
        for (seq, len) in [(1000, 1), (3000, 1), (999, 0)] {
            assert_eq!(s.data(seq, len), ["drop", "to fixed: ack 1000 win 0"]);
        }
        assert_eq!(s.machine.held(), 2000, "the byte is not stored");
        assert_eq!(s.machine.counters().probes_answered, 3);
    }
}

#[test]
fn a4_a_fin_can_be_a_window_probe() {
    let mut s = shrunk(0);
    let fin = with_flags(s.fixed(3000, 0), Flags::FIN);
    assert_eq!(s.pass(Side::Fixed, fin), ["drop", "to fixed: ack 1000 win 0"]);
}

// --- B: from the mobile ---

#[test]
fn b1_new_acks_are_passed_on_less_one_byte() {
    for isn in ISNS {
        let mut s = open(isn);
        s.data(0, 3000);
        assert_eq!(s.ack(1000), ["drop", "to fixed: ack 999 win 500"]);
        let update = with_window(s.mobile(2500), 77);
        assert_eq!(s.pass(Side::Mobile, update), ["drop", "to fixed: ack 2499 win 77"]);
        assert_eq!(s.machine.counters().acks_reduced, 2);
    }
}

#[test]
fn b1_new_acks_purge_the_queue() {
    for isn in ISNS {
        let mut s = flowing(isn);
        assert_eq!(s.machine.held(), 2000);
        s.ack(1500);
        assert_eq!(s.machine.held(), 2000, "acknowledged in part");
        s.ack(2000);
        assert_eq!(s.machine.held(), 1000);
        s.ack(3000);
        assert_eq!(s.machine.held(), 0);
    }
}

#[test]
fn b1_new_acks_restart_the_timer_and_the_last_one_stops_it() {
    for isn in ISNS {
        let mut s = flowing(isn);
        s.until(300);
        s.ack(2000);
        assert_eq!(s.until(699).len(), 0);
        s.ack(3000);
        assert_eq!(s.until(5000), ["799 to fixed: ack 3000 win 500"], "only the release (E)");
    }
}

#[test]
fn b1_a_new_ack_ends_the_outage() {
    for isn in ISNS {
        let mut s = shrunk(isn);
        assert_eq!(
            s.ack(2000),
            ["drop", "to fixed: ack 1999 win 500", "to mobile: 2000:3000"],
            "its window reopens the fixed host's"
        );
        assert_eq!(s.until(799).len(), 0);
        assert_eq!(
            s.until(800),
            ["800 to fixed: ack 2000 win 0", "800 to mobile: 2000:3000"],
            "the next outage"
        );
    }
}

#[test]
fn b2_duplicates_pass_when_nothing_is_queued() {
    for isn in ISNS {
        let mut s = flowing(isn);
        s.ack(3000);
        assert_eq!(s.ack(3000), ["pass"]);
        assert_eq!(s.ack(3000), ["pass"]);
        assert_eq!(s.until(5000).len(), 0, "they released the byte");
    }
}

#[test]
fn b2_duplicates_of_a_loss_on_the_wireless_link_are_kept_back_and_the_third_repairs_it() {
    for isn in ISNS {
        let mut s = flowing(isn);
        assert_eq!(s.ack(1000), ["drop"]);
        assert_eq!(s.ack(1000), ["drop"]);
        assert_eq!(s.ack(1000), ["drop", "to mobile: 1000:2000"]);
        assert_eq!(s.ack(1000), ["drop"], "once");
        s.ack(2000);
        assert_eq!(s.ack(2000), ["drop"]);
        assert_eq!(s.ack(2000), ["drop"]);
        assert_eq!(s.ack(2000), ["drop", "to mobile: 2000:3000"], "counted anew");
        assert_eq!(s.machine.counters().duplicates_suppressed, 7);
    }
}

#[test]
fn b2_duplicates_do_not_restart_the_timer() {
    let mut s = flowing(0);
    s.until(300);
    s.ack(1000);
    assert_eq!(s.until(400).len(), 3);
}

// Ours: the table looks at the emptiness of the queue only, and would hide this loss from the fixed
// host.
#[test]
fn b2_duplicates_of_a_loss_on_the_wired_path_pass() {
    for isn in ISNS {
        let mut s = open(isn);
        s.data(0, 1000);
        s.ack(1000);
        s.data(2000, 1000);
        s.until(50);
        for _ in 0..3 {
            assert_eq!(s.ack(1000), ["pass"]);
        }
        assert_eq!(s.until(449).len(), 0, "the mobile is there: they restart the timer");
        s.data(1000, 1000);
        assert_eq!(s.ack(3000), ["drop", "to fixed: ack 2999 win 500"]);
        assert_eq!(s.machine.held(), 0);
    }
}

#[test]
fn b3_the_recovery_ack_reopens_the_window_and_brings_the_whole_queue() {
    for isn in ISNS {
        let mut s = shrunk(isn);
        s.until(30_000);
        assert_eq!(s.ack(1000), ["pass", "to mobile: 1000:2000", "to mobile: 2000:3000"]);
        assert_eq!(s.machine.counters().reconnections, 1);
        assert_eq!(s.until(30_399).len(), 0, "the timer starts anew");
    }
}

#[test]
fn b3_any_segment_of_the_mobile_ends_the_outage() {
    for isn in ISNS {
        let mut s = shrunk(isn);
        let request = with_payload(s.mobile(1000), 300);
        assert_eq!(
            s.pass(Side::Mobile, request),
            ["pass", "to mobile: 1000:2000", "to mobile: 2000:3000"]
        );
    }
}

#[test]
fn b3_an_old_segment_gets_the_window_update_beside_it() {
    for isn in ISNS {
        let mut s = shrunk(isn);
        assert_eq!(
            s.ack(500),
            ["pass", "to fixed: ack 1000 win 500", "to mobile: 1000:2000", "to mobile: 2000:3000"]
        );
    }
}

// B.4 as a property: properties.rs.

#[test]
fn b4_acks_of_data_sent_before_the_mobile_s_first_one_count() {
    for isn in ISNS {
        let mut s = Script::blank(machine(MTcpConfig::default()), isn);
        s.data(0, 1000);
        s.data(1000, 1000);
        assert_eq!(s.ack(1000), ["pass"], "the first");
        assert_eq!(s.ack(2000), ["drop", "to fixed: ack 1999 win 500"]);
        let update = with_window(s.mobile(2000), 900);
        assert_eq!(s.pass(Side::Mobile, update), ["drop", "to fixed: ack 1999 win 900"]);
    }
}

// --- C: the timer ---

#[test]
fn c1_the_first_expiry_sends_the_persist_packet() {
    for isn in ISNS {
        let mut s = flowing(isn);
        let sent = s.until(400);
        assert_eq!(sent[0], "400 to fixed: ack 1000 win 0", "new: 999 was sent before");
        assert_eq!(s.machine.counters().persist_packets, 1);
    }
}

#[test]
fn c2_each_expiry_sends_the_head_again_without_back_off() {
    for isn in ISNS {
        let mut s = shrunk(isn);
        assert_eq!(s.until(1600).len(), 3);
        assert_eq!(s.until(2000), ["2000 to mobile: 1000:2000"]);
        assert_eq!(s.until(30_400).len(), 71);
        assert_eq!(s.machine.counters().persist_packets, 1);
    }
}

#[test]
fn c2_or_the_whole_queue() {
    for isn in ISNS {
        let config = MTcpConfig { retransmit: Retransmit::All, ..MTcpConfig::default() };
        let mut s = Script::open(machine(config), isn);
        s.data(0, 1000);
        s.data(1000, 1000);
        assert_eq!(s.until(400).len(), 3);
        assert_eq!(s.until(800), ["800 to mobile: 0:1000", "800 to mobile: 1000:2000"]);
    }
}

// --- D: link signals are for the mobile ---

#[test]
fn d_link_signals_change_nothing() {
    let mut s = flowing(0);
    for signal in [LinkSignal::Fading, LinkSignal::Down, LinkSignal::Up] {
        assert_eq!(s.signal(signal).len(), 0);
    }
    assert_eq!(s.until(400).len(), 3);
}

// --- E: the end of data ---

#[test]
fn e_the_withheld_byte_is_released_when_the_queue_stays_empty() {
    for isn in ISNS {
        let mut s = flowing(isn);
        s.until(10);
        s.ack(3000);
        assert_eq!(s.until(109).len(), 0);
        assert_eq!(s.until(5000), ["110 to fixed: ack 3000 win 500"]);
        assert_eq!(s.machine.counters().releases, 1);
    }
}

#[test]
fn e_new_data_keeps_the_byte_withheld() {
    for isn in ISNS {
        let mut s = flowing(isn);
        s.ack(3000);
        s.until(90);
        s.data(3000, 1000);
        assert_eq!(s.until(489).len(), 0);
        assert_eq!(s.until(490)[0], "490 to fixed: ack 3000 win 0", "and the timer started");
    }
}

#[test]
fn e_after_the_fin_the_last_byte_is_not_withheld() {
    for isn in ISNS {
        let mut s = flowing(isn);
        let fin = with_flags(s.fixed(3000, 500), Flags::FIN);
        assert_eq!(s.pass(Side::Fixed, fin), ["pass"]);
        assert_eq!(s.ack(3000), ["drop", "to fixed: ack 2999 win 500"], "the FIN is queued");
        assert_eq!(s.ack(3501), ["pass"]);
        assert_eq!(s.until(5000).len(), 0);
    }
}

// --- F: the handshake ---

#[test]
fn f_the_ack_of_the_syn_passes() {
    for isn in ISNS {
        let mut s = open(isn);
        assert_eq!(s.ack(0), ["pass"], "sent twice");
        s.data(0, 1000);
        assert_eq!(s.ack(0), ["drop"], "a duplicate now");
    }
}

#[test]
fn f_the_handshake_of_a_connection_opened_by_the_fixed_host() {
    for isn in ISNS {
        let mut s = Script::blank(machine(MTcpConfig::default()), isn);
        let before = |n: SeqNum| n - 1;
        let mut syn = with_flags(s.fixed(0, 0), Flags::SYN);
        syn.ack = None;
        syn.seq = before(syn.seq);
        assert_eq!(s.pass(Side::Fixed, syn), ["pass"]);
        let mut syn_ack = with_flags(s.mobile(0), Flags::SYN);
        syn_ack.seq = before(syn_ack.seq);
        assert_eq!(s.pass(Side::Mobile, syn_ack), ["pass"]);
        assert_eq!(s.data(0, 0), ["pass"]);
        assert_eq!(s.data(0, 1000), ["pass"]);
        assert_eq!(s.ack(1000), ["pass"], "the first ACK that is seen");
        s.data(1000, 1000);
        assert_eq!(s.ack(2000), ["drop", "to fixed: ack 1999 win 500"]);
    }
}

#[test]
fn a_mobile_gone_for_max_down_ends_the_connection_on_both_sides() {
    for isn in ISNS {
        let max_down = Some(Duration::from_secs(1));
        let config = MTcpConfig { max_down, ..MTcpConfig::default() };
        let mut s = Script::open(machine(config), isn);
        s.data(0, 1000);
        assert_eq!(s.until(1599).len(), 4, "gone since 0.4 s");
        let sent = s.until(60_000);
        let is_reset = |line: &String| line.contains("RST");
        assert!(sent.len() == 2 && sent.iter().all(is_reset), "and nothing else: {sent:?}");
        assert_eq!((s.machine.counters().resets, s.machine.held()), (1, 0));
    }
}

#[test]
fn after_a_reset_whoever_did_not_hear_of_it_is_told_again() {
    for isn in ISNS {
        let max_down = Some(Duration::from_secs(1));
        let config = MTcpConfig { max_down, ..MTcpConfig::default() };
        let mut s = Script::open(machine(config), isn);
        // 0:1000 is lost on the wireless link, 1000:3000 arrives.
        s.data(0, 3000);
        assert_eq!(s.until(1600).last().unwrap(), "1600 to mobile: 0:0 Flags(RST)");
        // Neither is it taken for a new connection, in which the fixed host has sent but this and
        // the mobile's ACK of 3000 means nothing.
        assert_eq!(s.data(0, 1000), ["drop", "to fixed: no ack Flags(RST)"]);
        assert_eq!(s.ack(3000), ["drop", "to mobile: 3000:3000 no ack Flags(RST)"]);
        assert_eq!(s.ack(1000), ["drop", "to mobile: 1000:1000 no ack Flags(RST)"]);
        assert_eq!(s.until(60_000).len(), 0);
        // A new one is.
        let syn = with_flags(s.fixed(77_000, 0), Flags::SYN);
        assert_eq!(s.pass(Side::Fixed, syn), ["pass"]);
        assert_eq!(s.ack(77_001), ["pass"]);
    }
}
