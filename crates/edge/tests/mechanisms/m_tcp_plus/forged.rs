//! Segments in the name of a host by somebody who knows its addresses and ports, and guesses the
//! rest: RFC 5961, at the worst moment. The mobile is down, and what was acknowledged for it exists
//! only here.

use super::{Node, counters, each};
use crate::script::{Script, Seg, with_flags};
use airtcp_core::{Duration, Flags, Segment, SeqNum};
use airtcp_edge::InvalidPackets;

/// Far from everything, and nearer than the largest window.
const FAR: u32 = 1 << 29;

/// Bytes 1000 to 6000 are promised.
fn promised(script: impl Fn(Script<Node>)) {
    each(|mut s| {
        s.down();
        script(s);
    });
}

/// Everything that was promised is still here.
#[track_caller]
fn assert_kept(mut s: Script<Node>) {
    assert_eq!(s.node.held(), 5000);
    let copies: Vec<String> =
        (1..6).map(|n| format!("+M {}:{}", n * 1000, (n + 1) * 1000)).collect();
    assert_eq!(s.up(), copies);
    assert_eq!(s.ack(6000), [">F ack 6000 win 500"], "the fixed host is released");
    assert_eq!(counters(&s).bytes_acked_early, 5000);
}

fn invalid_packets(s: &Script<Node>) -> InvalidPackets {
    s.node.invalid_packets()
}

fn acknowledging(segment: Seg, ack: SeqNum) -> Seg {
    Segment { ack: Some(ack), ..segment }
}

// --- In the fixed host's name ---

#[test]
fn data_outside_of_the_window_does_not_count() {
    // RFC 5961 §5.2. It would make any reset below it credible.
    promised(|mut s| {
        assert_eq!(s.data(FAR, 1000).len(), 2);
        assert_eq!(invalid_packets(&s).invalid_sequence, 1);
        let reset = with_flags(s.fixed(FAR, 0), Flags::RST);
        s.fixed_sends(reset);
        assert_kept(s);
    });
}

#[test]
fn data_that_acknowledges_what_the_mobile_did_not_send_does_not_count() {
    // RFC 5961 §5.2.
    promised(|mut s| {
        for by in [FAR, FAR.wrapping_neg()] {
            let data = s.fixed(6000, 1000);
            let ack = data.ack.unwrap() + by;
            s.fixed_sends(acknowledging(data, ack));
        }
        let silent = Segment { ack: None, ..s.fixed(6000, 1000) };
        s.fixed_sends(silent);
        assert_eq!(invalid_packets(&s).invalid_acknowledgement, 3);
        assert_kept(s);
    });
}

#[test]
fn a_reset_counts_at_the_next_number_only() {
    // RFC 5961 §3.2.
    promised(|mut s| {
        for seq in [0, 999, 1001, 5999, 6001, 6002, FAR] {
            let reset = with_flags(s.fixed(seq, 0), Flags::RST);
            assert_eq!(s.fixed_sends(reset).last().unwrap(), &format!(">M R {seq}:{seq}"));
        }
        assert_eq!(
            (invalid_packets(&s).invalid_reset, invalid_packets(&s).invalid_sequence),
            (6, 1)
        );
        assert_kept(s);
    });
    for next in [1000, 6000] {
        promised(|mut s| {
            let reset = Segment { ack: None, ..with_flags(s.fixed(next, 0), Flags::RST) };
            assert_eq!(s.fixed_sends(reset), [format!("x R {next}:{next}")]);
            assert_eq!(invalid_packets(&s), InvalidPackets::default());
        });
    }
}

#[test]
fn a_syn_does_not_count() {
    // RFC 5961 §4.2.
    promised(|mut s| {
        for flags in [Flags::SYN, Flags::SYN | Flags::RST] {
            let syn = with_flags(s.fixed(6000, 0), flags);
            s.fixed_sends(syn.clone());
            s.fixed_sends(Segment { ack: None, ..syn });
        }
        assert_eq!(invalid_packets(&s).invalid_syn, 4);
        assert_kept(s);
    });
}

#[test]
fn longer_data_does_not_replace_what_is_held() {
    // Its numbers are right: what came first stays.
    promised(|mut s| {
        assert_eq!(s.data(1000, 6000), ["+F ack 7000 win 0", "kept 1000:7000"]);
        assert_eq!(s.node.held(), 6000);
        let copies: Vec<String> =
            (1..7).map(|n| format!("+M {}:{}", n * 1000, (n + 1) * 1000)).collect();
        assert_eq!(s.up(), copies);
    });
}

#[test]
fn a_fin_outside_of_the_window_does_not_close() {
    each(|mut s| {
        let forged = with_flags(s.fixed(FAR, 0), Flags::FIN);
        s.fixed_sends(forged);
        let own = with_flags(s.mobile(1000), Flags::FIN);
        s.mobile_sends(own);
        s.down();
        assert_eq!(s.up().len(), 5);
    });
}

// --- In the mobile's name ---

#[test]
fn an_acknowledgement_with_a_wrong_sequence_number_frees_nothing() {
    promised(|mut s| {
        for by in [FAR, FAR.wrapping_neg()] {
            let ack = s.mobile(6000);
            let ack = Segment { seq: ack.seq + by, ..ack };
            assert_eq!(s.mobile_sends(ack), [">F ack 6000 win 500"], "the fixed host judges it");
        }
        assert_eq!(invalid_packets(&s).invalid_sequence, 2);
        assert_kept(s);
    });
}

#[test]
fn a_reset_of_the_mobile_counts_at_the_next_number_only() {
    promised(|mut s| {
        for by in [1, FAR, u32::MAX] {
            let reset = with_flags(s.mobile(1000), Flags::RST);
            let reset = Segment { seq: reset.seq + by, ..reset };
            assert_eq!(s.mobile_sends(reset).len(), 1);
        }
        assert_eq!(
            (invalid_packets(&s).invalid_reset, invalid_packets(&s).invalid_sequence),
            (2, 1)
        );
        assert_kept(s);
    });
}

// --- In both names ---

#[test]
fn two_forgeries_that_agree_do_not_undo_a_promise() {
    promised(|mut s| {
        for down in [FAR, FAR.wrapping_neg()] {
            for up in [1, 1000, FAR] {
                let data = s.fixed(down, 1000);
                let number = data.ack.unwrap() + up;
                s.fixed_sends(acknowledging(data, number));
                let ack = s.mobile(down.wrapping_add(1000));
                s.mobile_sends(Segment { seq: number, ..ack });
            }
        }
        assert_eq!(invalid_packets(&s).resyncs, 0);
        assert_kept(s);
    });
}

// --- The challenge ---

#[test]
fn an_invalid_packet_is_challenged_while_the_mobile_is_down() {
    promised(|mut s| {
        let syn = Segment { ack: None, ..with_flags(s.fixed(77, 0), Flags::SYN) };
        assert_eq!(s.fixed_sends(syn), ["+F ack 6000 win 0", ">M 77:77"]);
        // A fixed host that knows nothing of the connection repeats the number in its reset.
        let reset = Segment { ack: None, ..with_flags(s.fixed(6000, 0), Flags::RST) };
        assert_eq!(s.fixed_sends(reset), ["x R 6000:6000"], "for later");
    });
}

#[test]
fn challenges_are_rare() {
    // RFC 5961 §7.
    promised(|mut s| {
        for _ in 0..400 {
            s.wait(Duration::from_millis(5));
            s.data(FAR, 1000);
        }
        assert_eq!(
            (invalid_packets(&s).invalid_sequence, invalid_packets(&s).challenge_acks),
            (400, 4)
        );
        assert_kept(s);
    });
}

#[test]
fn a_reset_outside_of_the_window_is_not_challenged() {
    // RFC 5961 §3.2.
    promised(|mut s| {
        let reset = with_flags(s.fixed(FAR, 0), Flags::RST);
        assert_eq!(s.fixed_sends(reset).len(), 1);
    });
}

#[test]
fn while_the_mobile_is_in_reach_the_hosts_challenge_each_other() {
    each(|mut s| {
        for flags in [Flags::RST, Flags::SYN, Flags::empty()] {
            let segment = with_flags(s.fixed(FAR, 0), flags);
            assert_eq!(s.fixed_sends(segment).len(), 1);
        }
        for flags in [Flags::RST, Flags::SYN] {
            let segment = with_flags(s.mobile(FAR), flags);
            assert_eq!(s.mobile_sends(segment).len(), 1);
        }
        assert_eq!((s.node.held(), invalid_packets(&s).challenge_acks), (5000, 0));
    });
}
