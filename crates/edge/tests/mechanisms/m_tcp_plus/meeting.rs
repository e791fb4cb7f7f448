//! Where a connection is that the node meets in the middle of its life: after a restart, after
//! copies were missed, after the hosts went on without it.

use super::{Node, each, node};
use crate::script::{ISNS, Script, with_flags, with_payload, with_window};
use airtcp_core::{Duration, Flags, Segment};
use airtcp_edge::{InvalidPackets, MTcpPlusConfig};

/// A node that has just started.
fn restarted(script: impl Fn(Script<Node>)) {
    for isn in ISNS {
        script(Script::blank(node(MTcpPlusConfig::default()), isn));
    }
}

/// It protects the connection: it freezes the fixed host at `ack` and replays `copies`.
#[track_caller]
fn assert_met(s: &mut Script<Node>, ack: u32, copies: &[&str]) {
    let frozen = s.down();
    assert_eq!(frozen.last().unwrap(), &format!("+F ack {ack} win 0"), "{frozen:?}");
    assert_eq!(s.up(), copies);
}

#[test]
fn in_the_middle_of_a_download() {
    // 5 MB are under way: the sender's window is large, its scale unknown.
    for mobile_first in [true, false] {
        restarted(|mut s| {
            if mobile_first {
                s.ack(1000);
            }
            s.data(5_001_000, 1000);
            s.ack(2000);
            s.data(5_002_000, 1000);
            let up_to = |n: u32| n * 100_000;
            for n in 1..=50 {
                s.ack(up_to(n));
            }
            s.ack(5_002_000);
            assert_eq!(s.node.invalid_packets(), InvalidPackets::default());
            assert_met(&mut s, 5_003_000, &["+M 5002000:5003000"]);
        });
    }
}

#[test]
fn in_the_middle_of_an_upload() {
    restarted(|mut s| {
        let sent = |s: &Script<Node>, at: u32| {
            let data = with_payload(s.mobile(0), 1000);
            Segment { seq: data.seq + at, ..data }
        };
        let first = sent(&s, 5_000_000);
        s.mobile_sends(first.clone());
        let acknowledging = Segment { ack: Some(first.seq - 5_000_000), ..s.fixed(0, 0) };
        s.fixed_sends(acknowledging.clone());
        let next = sent(&s, 5_001_000);
        s.mobile_sends(next.clone());
        assert_eq!(s.node.invalid_packets(), InvalidPackets::default());
        s.fixed_sends(Segment { ack: Some(first.seq), ..acknowledging });
        assert_eq!(s.down(), ["+F ack 0 win 0"]);
        let held_back = s.mobile_sends(next);
        assert!(held_back.last().unwrap().ends_with("ack 0 win 0"), "{held_back:?}");
    });
}

#[test]
fn in_persist() {
    restarted(|mut s| {
        let closed = with_window(s.mobile(6000), 0);
        s.data(5999, 0);
        s.mobile_sends(closed);
        s.data(5999, 0);
        assert_eq!(s.ack(6000), [">F ack 6000 win 500"]);
        s.data(6000, 1000);
        assert_met(&mut s, 7000, &["+M 6000:7000"]);
    });
}

#[test]
fn idle_until_a_keep_alive() {
    restarted(|mut s| {
        s.data(5999, 0);
        s.ack(6000);
        s.data(6000, 1000);
        assert_met(&mut s, 7000, &["+M 6000:7000"]);
    });
}

#[test]
fn a_forgery_before_the_first_genuine_segment_does_not_hide_it() {
    restarted(|mut s| {
        s.data(1 << 29, 1000);
        s.data(0, 1000);
        s.data(1 << 29, 1000);
        let ack = s.mobile(1 << 29);
        s.mobile_sends(Segment { seq: ack.seq + (1 << 29), ..ack });
        s.ack(0);
        s.data(1000, 1000);
        s.ack(1000);
        s.data(2000, 1000);
        assert_met(&mut s, 3000, &["+M 1000:2000", "+M 2000:3000"]);
    });
}

#[test]
fn who_acknowledges_what_was_not_sent_is_not_met() {
    // A forger with the right sequence number, who guesses the other within 64 MiB.
    restarted(|mut s| {
        s.data(0, 1000);
        s.ack(10_000_000);
        assert_eq!(s.down(), [""; 0]);
        s.up();
        s.ack(1000);
        s.data(1000, 1000);
        assert_eq!(
            s.node.invalid_packets(),
            InvalidPackets::default(),
            "the forgery hides nothing"
        );
        assert_met(&mut s, 2000, &["+M 1000:2000"]);
    });
}

#[test]
fn nothing_is_kept_of_data_whose_acknowledgement_was_guessed() {
    // RFC 5961 §5.2: the mobile would not take it. A copy would carry the right number.
    restarted(|mut s| {
        s.ack(1000);
        let forged = s.fixed(1000, 1000);
        s.fixed_sends(Segment { ack: forged.ack.map(|ack| ack - 10_000_000), ..forged });
        assert_eq!(s.node.held(), 0);
        s.data(1000, 1000);
        assert_met(&mut s, 2000, &["+M 1000:2000"]);
    });
}

#[test]
fn forged_segments_of_one_host_find_none_of_the_other_to_agree_with() {
    each(|mut s| {
        for guess in 0..400u32 {
            let n = guess.wrapping_mul(0x9e37_79b9);
            s.data(n, 1000);
            let ack = s.ack(1000);
            assert_eq!(ack, [">F ack 1000 win 500"]);
        }
        assert_eq!((s.node.held(), s.node.invalid_packets().resyncs), (5000, 0));
    });
}

#[test]
fn when_the_hosts_went_on_while_copies_were_missed() {
    each(|mut s| {
        s.data(10_000_000, 1000);
        assert_eq!(s.node.held(), 5000, "it could be forged");
        s.ack(10_001_000);
        assert_eq!((s.node.held(), s.node.invalid_packets().resyncs), (0, 1), "both say so");
        s.data(10_001_000, 1000);
        assert_met(&mut s, 10_002_000, &["+M 10001000:10002000"]);
    });
}

#[test]
fn when_the_hosts_went_on_after_a_promise_was_kept() {
    // The node was away when the mobile acknowledged what it had been promised.
    each(|mut s| {
        s.down();
        s.data(10_000_000, 1000);
        s.ack(5000);
        assert_eq!(s.node.invalid_packets().resyncs, 0, "it is less than was promised");
        s.ack(10_000_000);
        assert_eq!((s.node.held(), s.node.invalid_packets().resyncs), (0, 1));
        assert_eq!(s.data(10_001_000, 1000), [">M 10001000:10002000"]);
        assert_eq!(s.ack(10_001_000), [">F ack 10001000 win 500"]);
    });
}

#[test]
fn a_gap_of_a_window_lost_on_the_wire_is_no_other_connection() {
    // As much as 64 KiB at any time, and as much as ever was under way.
    each(|mut s| {
        s.data(6000 + (64 << 10), 1000);
        assert_eq!((s.node.held(), s.node.invalid_packets()), (6000, InvalidPackets::default()));
        s.ack(2000);
        s.data(6000 + (128 << 10), 1000);
        assert_eq!((s.node.held(), s.node.invalid_packets()), (6000, InvalidPackets::default()));
    });
}

#[test]
fn a_new_connection_of_the_same_ports() {
    each(|mut s| {
        let syn = Segment { ack: None, ..with_flags(s.fixed(1 << 30, 0), Flags::SYN) };
        s.fixed_sends(syn.clone());
        assert_eq!(s.node.held(), 5000, "it may be forged");
        let answer = with_flags(s.mobile(0), Flags::SYN);
        s.mobile_sends(Segment { ack: Some(syn.seq + 1), ..answer });
        assert_eq!((s.node.held(), s.node.flows()), (0, 0));
    });
}

#[test]
fn a_syn_that_comes_late_forgets_nothing() {
    each(|mut s| {
        let first = s.mobile(0);
        let syn = Segment { seq: first.seq - 1, ack: None, ..with_flags(first, Flags::SYN) };
        s.mobile_sends(syn);
        s.wait(Duration::from_secs(1));
        assert_met(
            &mut s,
            6000,
            &["+M 1000:2000", "+M 2000:3000", "+M 3000:4000", "+M 4000:5000", "+M 5000:6000"],
        );
    });
}
