//! Snoop from outside: local repair (Balakrishnan, Seshan, Katz 1995, §3), and that it alters no
//! ACK.

use crate::script_in_words::{
    ISNS, Script, with_flags, with_payload, with_timestamps, with_window,
};
use airtcp_core::{Bytes, Flags, Length, LinkSignal};
use airtcp_edge::{Action, Actions, FlowTableConfig, Middlebox, Side, Snoop, SnoopConfig};
use proptest::prelude::*;

fn machine(config: SnoopConfig) -> Snoop<Length> {
    Snoop::new(config, FlowTableConfig::default(), 1 << 20)
}

/// Default settings; the handshake's last ACK went by.
fn open(isn: u32) -> Script<Snoop<Length>> {
    Script::open(machine(SnoopConfig::default()), isn)
}

/// The fixed host sent five segments of 1000 bytes at time 0, and the mobile acknowledged the first
/// after 80 ms: SRTT 80 ms, time-out 160 ms.
fn flowing(isn: u32) -> Script<Snoop<Length>> {
    let mut s = open(isn);
    for n in 0..5 {
        assert_eq!(s.data(1000 * n, 1000), ["pass"]);
    }
    assert_eq!(s.until(80).len(), 0);
    assert_eq!(s.ack(1000), ["pass"]);
    s
}

#[test]
fn all_passes_while_nothing_is_lost() {
    for isn in ISNS {
        let mut s = flowing(isn);
        assert_eq!(s.machine.held(), 4000);
        for n in 2..=5 {
            assert_eq!(s.ack(1000 * n), ["pass"]);
        }
        assert_eq!(s.machine.held(), 0);
        assert_eq!(s.until(60_000).len(), 0);
        assert_eq!(s.machine.counters().local_retransmissions, 0);
    }
}

// --- Duplicate ACKs ---

#[test]
fn the_first_duplicate_brings_the_copy_and_the_expected_ones_are_kept_back() {
    for isn in ISNS {
        let mut s = flowing(isn);
        // 1000:2000 is lost; 2000, 3000 and 4000 arrive.
        assert_eq!(s.ack(1000), ["drop", "to mobile: 1000:2000"]);
        assert_eq!(s.ack(1000), ["drop"]);
        assert_eq!(s.ack(1000), ["drop"]);
        assert_eq!(s.ack(5000), ["pass"]);
        assert_eq!(s.machine.counters().duplicates_suppressed, 3);
    }
}

#[test]
fn data_forwarded_during_the_repair_causes_one_more_duplicate_each() {
    for isn in ISNS {
        let mut s = flowing(isn);
        assert_eq!(s.ack(1000).len(), 2);
        s.data(5000, 1000);
        for _ in 0..3 {
            assert_eq!(s.ack(1000), ["drop"]);
        }
        assert_eq!(s.ack(6000), ["pass"]);
    }
}

#[test]
fn more_duplicates_than_expected_repeat_the_repair() {
    for isn in ISNS {
        let mut s = flowing(isn);
        s.ack(1000);
        s.ack(1000);
        s.ack(1000);
        assert_eq!(s.ack(1000), ["drop", "to mobile: 1000:2000"]);
    }
}

#[test]
fn duplicates_of_a_loss_on_the_wired_path_pass() {
    for isn in ISNS {
        let mut s = open(isn);
        s.data(0, 1000);
        s.ack(1000);
        s.data(2000, 1000);
        for _ in 0..3 {
            assert_eq!(s.ack(1000), ["pass"]);
        }
    }
}

#[test]
fn duplicates_of_what_the_fixed_host_retransmitted_pass() {
    for isn in ISNS {
        let mut s = flowing(isn);
        assert_eq!(s.ack(1000).len(), 2);
        assert_eq!(s.data(1000, 1000), ["pass"]);
        assert_eq!(s.ack(1000), ["pass"]);
        s.ack(2000);
        assert_eq!(s.ack(2000), ["drop", "to mobile: 2000:3000"], "the next is ours again");
    }
}

#[test]
fn duplicates_pass_when_all_attempts_were_in_vain() {
    for isn in ISNS {
        let config = SnoopConfig { attempts: 2, ..SnoopConfig::default() };
        let mut s = Script::open(machine(config), isn);
        s.data(0, 1000);
        s.data(1000, 1000);
        assert_eq!(s.ack(0), ["drop", "to mobile: 0:1000"]);
        assert_eq!(s.ack(0), ["drop", "to mobile: 0:1000"]);
        assert_eq!(s.ack(0), ["pass"]);
        assert_eq!(s.until(60_000).len(), 0);
    }
}

#[test]
fn window_updates_and_data_of_the_mobile_are_no_duplicates() {
    for isn in ISNS {
        let mut s = flowing(isn);
        let update = with_window(s.mobile(1000), 700);
        assert_eq!(s.pass(Side::Mobile, update), ["pass"]);
        let request = with_window(with_payload(s.mobile(1000), 300), 700);
        assert_eq!(s.pass(Side::Mobile, request), ["pass"]);
    }
}

// --- The timer ---

#[test]
fn the_time_out_is_twice_the_smoothed_rtt_and_doubles() {
    for isn in ISNS {
        let mut s = flowing(isn);
        assert_eq!(
            s.until(60_000),
            // 80 ms + 160 ms, then 320, 640 ...
            ["240", "560", "1200", "2480", "5040", "10160"]
                .map(|t| format!("{t} to mobile: 1000:2000"))
        );
        assert_eq!(s.machine.counters().timeouts, 6);
    }
}

#[test]
fn the_rtt_is_smoothed_by_an_eighth() {
    for isn in ISNS {
        let mut s = flowing(isn);
        s.ack(5000);
        s.data(5000, 1000);
        s.until(200); // 120 ms later
        s.ack(6000);
        s.data(6000, 1000);
        // 7/8 of 80 ms and 1/8 of 120 ms are 85 ms.
        assert_eq!(s.until(370), ["370 to mobile: 6000:7000"]);
    }
}

#[test]
fn a_retransmitted_segment_is_not_timed() {
    for isn in ISNS {
        let mut s = flowing(isn);
        s.ack(5000);
        s.data(5000, 1000);
        assert_eq!(s.until(240).len(), 1);
        s.until(5000);
        s.ack(6000);
        s.data(6000, 1000);
        assert_eq!(s.until(5160), ["5160 to mobile: 6000:7000"], "160 ms as before");
    }
}

#[test]
fn the_time_out_has_a_lower_bound_and_a_first_value() {
    let mut s = open(0);
    s.data(0, 1000);
    assert_eq!(s.until(1000), ["1000 to mobile: 0:1000"], "RFC 6298 §2.1");
    let mut s = open(0);
    s.data(0, 1000);
    s.until(1);
    s.ack(1000);
    s.data(1000, 1000);
    assert_eq!(s.until(101), ["101 to mobile: 1000:2000"]);
}

#[test]
fn a_retransmission_of_the_fixed_host_begins_anew() {
    for isn in ISNS {
        let mut s = flowing(isn);
        assert_eq!(s.until(30_000).len(), 6);
        assert_eq!(s.data(1000, 1000), ["pass"]);
        assert_eq!(s.until(30_160), ["30160 to mobile: 1000:2000"]);
    }
}

#[test]
fn a_new_ack_restarts_the_timer() {
    for isn in ISNS {
        let mut s = flowing(isn);
        s.until(200);
        s.ack(2000);
        assert_eq!(s.until(359).len(), 0);
        assert_eq!(s.until(360), ["360 to mobile: 2000:3000"]);
    }
}

// --- Live traffic ---

#[test]
fn a_window_that_the_mobile_closes_stops_the_timer() {
    for isn in ISNS {
        let mut s = flowing(isn);
        let closed = with_window(s.mobile(1000), 0);
        assert_eq!(s.pass(Side::Mobile, closed), ["pass"]);
        assert_eq!(s.until(5000).len(), 0);
        assert_eq!(s.data(5000, 1), ["pass"], "a probe");
        assert_eq!(s.machine.held(), 4000);
        assert_eq!(s.ack(1000), ["pass"]);
        assert_eq!(s.until(5160).len(), 1);
    }
}

#[test]
fn copies_carry_a_timestamp_that_the_mobile_takes() {
    for isn in ISNS {
        let mut s = open(isn);
        let data = with_timestamps(s.fixed(0, 1000), 20, 60);
        s.pass(Side::Fixed, data);
        let keep_alive = with_timestamps(s.fixed(u32::MAX, 0), 90, 60);
        s.pass(Side::Fixed, keep_alive);
        assert_eq!(s.until(1000), ["1000 to mobile: 0:1000 TS val 90 ecr 60"]);
    }
}

#[test]
fn what_finds_no_room_is_left_to_the_fixed_host() {
    for isn in ISNS {
        let config = SnoopConfig { fifo: Bytes(1500), ..SnoopConfig::default() };
        let mut s = Script::open(machine(config), isn);
        s.data(0, 1000);
        s.data(1000, 1000);
        assert_eq!((s.machine.held(), s.machine.counters().overflows), (1000, 1));
        s.ack(1000);
        assert_eq!(s.ack(1000), ["pass"]);
    }
}

#[test]
fn a_reset_ends_all() {
    for isn in ISNS {
        let mut s = flowing(isn);
        let reset = with_flags(s.fixed(5000, 0), Flags::RST);
        assert_eq!(s.pass(Side::Fixed, reset), ["pass"]);
        assert_eq!(s.machine.held(), 0);
        assert_eq!(s.until(60_000).len(), 0);
    }
}

#[test]
fn link_signals_change_nothing() {
    let mut s = flowing(0);
    for signal in [LinkSignal::Fading, LinkSignal::Down, LinkSignal::Up] {
        assert_eq!(s.signal(signal).len(), 0);
    }
}

/// A random segment, its numbers in a small range, so that all relations between them occur.
fn any_segment() -> impl Strategy<Value = (Side, u32, u64, Flags, u16, u64)> {
    let from = prop_oneof![Just(Side::Fixed), Just(Side::Mobile)];
    let number = prop_oneof![3 => (0u32..10).prop_map(|n| n * 500), 1 => any::<u32>()];
    let len = prop_oneof![4 => Just(0u64), 2 => 1u64..3, 3 => Just(500u64), 2 => 1u64..3000];
    let flags = prop_oneof![12 => Just(0u8), 1 => any::<u8>()].prop_map(Flags::from_bits_truncate);
    let window = prop_oneof![8 => Just(500u16), 1 => Just(0), 1 => any::<u16>()];
    let gap = prop_oneof![3 => Just(0), 3 => 0u64..150, 1 => 0u64..2000];
    (from, number, len, flags, window, gap)
}

proptest! {
    // `Script::pass` asserts that what passes is unchanged.
    #[test]
    fn no_ack_is_made_and_only_duplicates_are_kept_back(
        isn: u32, stream in proptest::collection::vec(any_segment(), 0..200),
    ) {
        let mut s = open(isn);
        for (from, number, len, flags, window, gap) in stream {
            let sent = s.until(s.now.since_start().as_millis() + gap);
            prop_assert!(sent.iter().all(|sent| sent.contains("to mobile: ")), "{sent:?}");
            let segment = match from {
                Side::Fixed => s.fixed(number, len),
                Side::Mobile => with_payload(s.mobile(number), len.saturating_sub(500)),
            };
            let segment = with_window(with_flags(segment, flags), window);
            let mut out = Actions::new();
            s.machine.on_segment(s.now, from, segment.clone(), &mut out);
            for action in out.drain() {
                match action {
                    Action::Forward { to, segment: passed } => {
                        prop_assert_eq!((to, &passed), (from.opposite(), &segment));
                    }
                    Action::Drop { segment, .. } => {
                        prop_assert!(from == Side::Mobile && segment.is_pure_ack(), "{segment}");
                        prop_assert!(segment.ack.is_some() && segment.window != 0);
                    }
                    Action::Inject { to, .. } => prop_assert_eq!(to, Side::Mobile),
                }
            }
        }
    }
}
