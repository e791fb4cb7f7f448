//! Scripts of one connection whose data come in segments of 1000 bytes, by their number.

use super::*;
use airtcp_core::{Addr, Timestamps};
use airtcp_tcp::config::{CwndIn, DcaConfig};

const MSS: u32 = 1000;

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn dca(window: u32) -> AckConfig {
    let window_limit = Some(window);
    AckConfig::Dca(DcaConfig { window_limit, cwnd_in: CwndIn::Option, ..DcaConfig::default() })
}

/// A receiver, its kernel and what its ACKs do.
struct Host {
    holder: Holder,
    /// Numbers of the ACKs that left, in segments.
    left: Vec<u32>,
    /// Of all ACKs, by identifier.
    numbers: Vec<u32>,
    window: u16,
}

impl Host {
    fn new(config: AckConfig) -> Self {
        let holder = Holder::new(config, 10);
        Self { holder, left: Vec::new(), numbers: Vec::new(), window: 5000 }
    }

    fn flow() -> Flow {
        let end = |last, port| Addr::new([10, 0, 0, last].into(), port);
        Flow { src: end(1, 80), dst: end(2, 4000) }
    }

    fn segment(ms: u64, echo: u32, flow: Flow) -> Segment<Length> {
        let timestamps = Some(Timestamps { value: ms as u32, echo });
        let options = Options { timestamps, ..Options::default() };
        Segment { flow, window: 5000, options, ..Segment::default() }
    }

    fn carry_out(&mut self, decided: Vec<Decided>) -> &mut Self {
        for (id, verdict) in decided {
            if verdict == Verdict::Pass {
                self.left.push(self.numbers[id.0 as usize]);
            }
        }
        self
    }

    fn arrive(&mut self, ms: u64, segment: &Segment<Length>) -> &mut Self {
        let mut decided = Vec::new();
        let data = Data { arrived: at(ms), segment, mss: MSS, hops: 1 };
        self.holder.on_data(at(ms), &data, &mut decided);
        self.carry_out(decided)
    }

    /// Segment `n` arrives, and echoes the timestamp of an ACK made at `echo`. The sender's cwnd
    /// is told: 100 segments.
    fn data(&mut self, ms: u64, n: u32) -> &mut Self {
        let mut segment = Self::segment(ms, 0, Self::flow());
        segment.options.cwnd = Some(100 * MSS);
        (segment.seq, segment.payload) = (SeqNum(n * MSS), Length(u64::from(MSS)));
        self.arrive(ms, &segment)
    }

    /// The kernel makes this segment.
    fn make(&mut self, ms: u64, n: u32, change: impl FnOnce(&mut Segment<Length>)) -> &mut Self {
        let mut segment = Self::segment(ms, 0, Self::flow().reversed());
        (segment.ack, segment.window) = (Some(SeqNum(n * MSS)), self.window);
        change(&mut segment);
        let id = PacketId(self.numbers.len() as u32);
        self.numbers.push(n);
        let mut decided = Vec::new();
        self.holder.on_ack(at(ms), id, &segment, &mut decided);
        self.carry_out(decided)
    }

    /// The kernel acknowledges all before segment `n`.
    fn ack(&mut self, ms: u64, n: u32) -> &mut Self {
        self.make(ms, n, |_| ())
    }

    fn time(&mut self, ms: u64) -> &mut Self {
        while let Some(due) = self.holder.next_deadline().filter(|due| *due <= at(ms)) {
            let mut decided = Vec::new();
            self.holder.on_timer(due, &mut decided);
            self.carry_out(decided);
        }
        self
    }

    /// Segments `from..to` arrive 10 ms apart from `10 from` ms on; the kernel acknowledges every
    /// second.
    fn stream(&mut self, from: u32, to: u32) -> &mut Self {
        for n in from..to {
            let ms = u64::from(n) * 10;
            self.time(ms).data(ms, n);
            if n % 2 == 1 {
                self.ack(ms, n + 1);
            }
        }
        self
    }

    fn left(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.left)
    }
}

#[test]
fn an_ack_leaves_when_a_window_of_segments_has_arrived() {
    let mut host = Host::new(dca(6));
    // The first ACK of a connection is not held: nothing is known of what it had before.
    host.stream(0, 40);
    assert_eq!(host.left(), [2, 8, 14, 20, 26, 32, 38]);
    let Counters { data_segments, acks, acks_dropped, .. } = host.holder.counters();
    assert_eq!((data_segments, acks, acks_dropped), (40, 20, 12));
}

/// On an idle machine this is how they come: several segments are read at once, then their ACKs.
#[test]
fn of_the_acks_of_data_that_were_seen_before_them_the_last_leaves() {
    let mut host = Host::new(dca(6));
    host.stream(0, 2).left();
    for from in [2, 8, 14] {
        let ms = 100 * u64::from(from);
        (from..from + 6).for_each(|n| _ = host.data(ms, n));
        (from..from + 6).for_each(|n| _ = host.ack(ms, n + 1));
        assert_eq!(host.left(), [from + 6]);
    }
    // The kernel makes no ACK of the last one yet.
    (20..26).for_each(|n| _ = host.data(2000, n));
    host.ack(2000, 23).ack(2000, 25);
    assert!(host.left().is_empty());
    host.time(2001);
    assert_eq!(host.left(), [25]);
}

#[test]
fn an_odd_window_makes_do_with_the_acks_that_the_kernel_has() {
    let mut host = Host::new(dca(5));
    host.stream(0, 42).time(1000);
    // Every fifth segment on average; what is left at the end leaves by the timer.
    let left = host.left();
    assert!((8..=10).contains(&left.len()), "{left:?}");
    assert_eq!(left.last(), Some(&42));
}

#[test]
fn the_last_ack_leaves_by_the_timer() {
    let mut host = Host::new(dca(6));
    host.stream(0, 16);
    assert_eq!(host.left(), [2, 8, 14]);
    // 1.5 x 6 x 10 ms after segment 14, which came at 140 ms.
    host.time(229);
    assert!(host.left().is_empty());
    host.time(230);
    assert_eq!(host.left(), [16]);
}

#[test]
fn no_ack_waits_longer_than_half_a_second() {
    let mut host = Host::new(dca(100));
    host.data(0, 0).data(1, 1).ack(1, 2).left();
    for n in 1..10 {
        let ms = u64::from(n) * 300;
        host.time(ms).data(ms, 2 * n).data(ms, 2 * n + 1).ack(ms, 2 * n + 2);
    }
    // Data 300 ms apart, a delay window of 100: each ACK leaves 500 ms after its first data.
    host.time(10_000);
    assert_eq!(host.left(), [6, 10, 14, 18, 20]);
}

#[test]
fn an_ack_of_data_that_the_timer_found_unacknowledged_leaves_at_once() {
    let mut host = Host::new(dca(6));
    host.stream(0, 8).left();
    // The kernel has no ACK of segment 8 yet when the timer expires.
    host.data(80, 8).time(200);
    assert!(host.left().is_empty());
    host.ack(201, 9);
    assert_eq!(host.left(), [9]);
}

#[test]
fn data_out_of_order_and_filled_gaps_release_at_once() {
    let mut host = Host::new(dca(10));
    host.stream(0, 6);
    assert_eq!(host.left(), [2]);
    // 6 is missing: the ACK that waits leaves before the kernel's duplicates, which all leave.
    host.data(70, 7);
    assert_eq!(host.left(), [6]);
    host.ack(70, 6).data(80, 8).ack(80, 6);
    assert_eq!(host.left(), [6, 6]);
    host.data(90, 6).ack(90, 9);
    assert_eq!(host.left(), [9]);
    // In order again.
    host.data(100, 9).data(110, 10).ack(110, 11);
    assert!(host.left().is_empty());
}

#[test]
fn the_same_number_again_is_no_ack_that_may_wait() {
    // A window update, or a duplicate whose cause was not seen.
    let mut host = Host::new(dca(10));
    host.stream(0, 6);
    assert_eq!(host.left(), [2]);
    host.ack(51, 6);
    assert_eq!(host.left(), [6, 6]);
}

#[test]
fn a_window_that_closes_or_opens_is_told_at_once() {
    for window in [2400, 10_100] {
        let mut host = Host::new(dca(10));
        host.stream(0, 4);
        assert_eq!(host.left(), [2]);
        host.window = window;
        host.data(40, 4).data(50, 5).ack(50, 6);
        assert_eq!(host.left(), [6], "{window}");
    }
}

#[test]
fn what_carries_more_than_an_ack_leaves_at_once() {
    type Change = fn(&mut Segment<Length>);
    let changes: [Change; 3] = [
        |segment| segment.payload = Length(1),
        |segment| segment.flags = Flags::FIN,
        |segment| segment.flags = Flags::ECE,
    ];
    for change in changes {
        let mut host = Host::new(dca(10));
        host.stream(0, 4).left();
        host.data(40, 4).make(41, 5, change);
        assert_eq!(host.left(), [5]);
    }
}

#[test]
fn after_the_end_of_the_data_nothing_waits() {
    let mut host = Host::new(dca(10));
    host.stream(0, 4).left();
    let mut last = Host::segment(40, 0, Host::flow());
    (last.seq, last.flags) = (SeqNum(4 * MSS), Flags::FIN);
    host.arrive(40, &last);
    assert_eq!(host.left(), [4]);
    host.ack(41, 4);
    assert_eq!(host.left(), [4]);
}

#[test]
fn a_reset_releases_what_waits() {
    let mut host = Host::new(dca(10));
    host.stream(0, 4).left();
    let mut reset = Host::segment(40, 0, Host::flow());
    (reset.seq, reset.flags) = (SeqNum(4 * MSS), Flags::RST);
    host.arrive(40, &reset);
    assert_eq!(host.left(), [4]);
}

#[test]
fn the_acks_of_data_that_were_not_seen_pass() {
    let mut host = Host::new(dca(10));
    host.ack(0, 2).stream(2, 4);
    assert_eq!(host.left(), [2, 4]);
    // The tap lost segments 4 to 7: their ACK leaves, and all is in order again.
    host.ack(70, 8).stream(8, 10);
    assert_eq!(host.left(), [8]);
    host.time(1000);
    assert_eq!(host.left(), [10]);
}

/// The ACKs that leave, and how many segments come in 5 s from a sender with a cwnd of 12. They
/// reach the host at least 10 ms apart, and 120 ms after the ACK that released them.
fn window_limited(config: AckConfig) -> (Vec<u32>, u32) {
    let mut host = Host::new(config);
    // When the kernel made the ACK of each number; when which number left.
    let (mut sent, mut made, mut left) = (0, vec![0], vec![(0, 0)]);
    for ms in (0..5000).step_by(10) {
        let heard = left.iter().rev().find(|(at, _)| at + 120 <= ms).map_or(0, |(_, n)| *n);
        if sent < heard + 12 {
            let mut segment = Host::segment(ms, made[heard as usize], Host::flow());
            (segment.seq, segment.payload) = (SeqNum(sent * MSS), Length(u64::from(MSS)));
            host.time(ms).arrive(ms, &segment);
            sent += 1;
            made.push(ms as u32);
            if sent.is_multiple_of(2) {
                host.ack(ms, sent);
            }
        }
        left.extend(host.time(ms).left().into_iter().map(|number| (ms, number)));
    }
    (left.into_iter().map(|(_, number)| number).collect(), sent)
}

#[test]
fn without_the_option_the_window_is_a_quarter_of_the_flight() {
    let (every, plain) = window_limited(AckConfig::Every);
    let (left, sent) = window_limited(dca(100));
    // 12 / 4 segments, by ACKs of two.
    assert!(left.len() * 10 < every.len() * 8, "{left:?}");
    assert!(left.windows(2).all(|pair| pair[1] - pair[0] <= 4), "{left:?}");
    // A sender held back by its window loses little.
    assert!(sent * 100 > plain * 85, "{sent} of {plain}");
}

#[test]
fn sequence_numbers_wrap() {
    let mut host = Host::new(dca(4));
    let first = SeqNum(0_u32.wrapping_sub(4 * MSS));
    for n in 0..8_u32 {
        let mut segment = Host::segment(u64::from(n), 0, Host::flow());
        (segment.seq, segment.payload) = (first + n * MSS, Length(u64::from(MSS)));
        segment.options.cwnd = Some(100 * MSS);
        host.arrive(u64::from(n), &segment);
        if n % 2 == 1 {
            host.make(u64::from(n), n + 1, |ack| ack.ack = Some(first + (n + 1) * MSS));
        }
    }
    assert_eq!(host.left(), [2, 6]);
}

#[test]
fn there_are_no_more_connections_than_allowed_and_silent_ones_are_forgotten() {
    let mut holder = Holder::new(dca(4), 2);
    let mut decided = Vec::new();
    let mut open = |ms: u64, port: u16| {
        let mut segment = Host::segment(ms, 0, Host::flow());
        segment.flow.dst.port = port;
        segment.payload = Length(u64::from(MSS));
        let data = Data { arrived: at(ms), segment: &segment, mss: MSS, hops: 1 };
        holder.on_data(at(ms), &data, &mut decided);
        (holder.connections.len(), holder.counters().connections_refused)
    };
    assert_eq!([open(0, 1), open(1, 2), open(2, 3)], [(1, 0), (2, 0), (2, 1)]);
    assert_eq!(open(60_002, 3), (1, 1));
}

#[test]
fn the_hops_are_those_below_the_nearest_usual_beginning() {
    let cases = [(64, 1), (63, 2), (128, 1), (119, 10), (255, 1), (250, 6), (1, 64)];
    for (ttl, expected) in cases {
        assert_eq!(hops(ttl), expected, "{ttl}");
    }
}
