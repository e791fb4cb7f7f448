//! Two endpoints with AccECN over a path that marks and loses (RFC 9768).

use airtcp_core::{
    Addr, Bytes, Duration, Ecn, Events, Flags, Flow, Instant, Length, Segment, SeqNum,
};
use airtcp_tcp::config::{AccEcnOptions, AckConfig, EcnConfig, RackConfig, Recovery};
use airtcp_tcp::{EcnCounts, Endpoint, Io, TcpConfig, preset};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

const MSS: u16 = 1000;
/// One-way delay of the path.
const DELAY: Duration = Duration::from_millis(10);

fn config(option: bool, delayed: bool) -> TcpConfig {
    TcpConfig {
        mss: MSS,
        recovery: Recovery::Rack(RackConfig::default()),
        ecn: EcnConfig::AccEcn,
        accecn_option: if option { AccEcnOptions::Always } else { AccEcnOptions::Never },
        send_buffer: Bytes(1 << 20),
        ack: if delayed { preset::linux().ack } else { AckConfig::Every },
        ..TcpConfig::default()
    }
}

/// Fate of a segment on the path.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Passes,
    Marked,
    Lost,
}

/// A client that sends to a server, with the segments in flight.
struct Pair {
    now: Instant,
    ends: [Endpoint<Length>; 2],
    under_way: VecDeque<(Instant, usize, Segment<Length>)>,
    fates: Vec<Fate>,
    sent: usize,
}

impl Pair {
    fn new(config: TcpConfig, fates: Vec<Fate>) -> Self {
        let addr = |last| Addr::new(Ipv4Addr::new(10, 0, 0, last).into(), 1000);
        let flow = Flow { src: addr(1), dst: addr(2) };
        let ends = [
            Endpoint::new(config.clone(), flow, SeqNum(u32::MAX - 5000)),
            Endpoint::new(config, flow.reversed(), SeqNum(77)),
        ];
        Self { now: Instant::ZERO, ends, under_way: VecDeque::new(), fates, sent: 0 }
    }

    fn with(&mut self, end: usize, act: impl FnOnce(&mut Endpoint<Length>, &mut Io<'_, Length>)) {
        let mut out = Vec::new();
        act(&mut self.ends[end], &mut Io { out: &mut out, events: Events::none() });
        for mut segment in out {
            let fate = self.fates.get(self.sent % self.fates.len().max(1)).copied();
            self.sent += 1;
            // A handshake that is lost is another test.
            match fate.filter(|_| !segment.flags.contains(Flags::SYN)) {
                Some(Fate::Lost) => continue,
                Some(Fate::Marked) if segment.ecn.is_capable() => segment.ecn = Ecn::Ce,
                _ => {}
            }
            self.under_way.push_back((self.now + DELAY, 1 - end, segment));
        }
    }

    /// Transfers `bytes`; returns the server's counts, and the client's view of them.
    fn transfer(mut self, bytes: u64) -> (EcnCounts, EcnCounts) {
        let start = self.now;
        self.ends[1].listen();
        self.with(0, |client, io| client.connect(start, io));
        let mut written = false;
        for _ in 0..100_000 {
            let arrival = self.under_way.front().map(|(at, ..)| *at);
            let timers = self.ends.iter().filter_map(Endpoint::next_deadline).min();
            let Some(next) = arrival.into_iter().chain(timers).min() else { break };
            self.now = self.now.max(next);
            let now = self.now;
            if arrival == Some(next) {
                let (_, end, segment) = self.under_way.pop_front().expect("it is there");
                self.with(end, |endpoint, io| {
                    endpoint.on_segment(now, segment, io);
                    endpoint.read(now, usize::MAX, io);
                    endpoint.reply(now, io);
                });
            } else {
                (0..2).for_each(|end| self.with(end, |endpoint, io| endpoint.on_timer(now, io)));
            }
            if !written && self.ends[0].send_space() > 0 && self.ends[0].rtt().is_some() {
                written = true;
                self.with(0, |client, io| {
                    assert_eq!(client.write(now, &Length(bytes), io), bytes as usize);
                });
            }
            if written && self.ends[0].is_all_acked() && self.under_way.is_empty() {
                break;
            }
        }
        assert!(written && self.ends[0].is_all_acked(), "the transfer ends");
        let received = self.ends[1].ecn_received().expect("AccECN was agreed on");
        (received, self.ends[0].ecn_delivered().expect("by both"))
    }
}

// §3.1, §3.2: marks of the receiver are marks of the sender.
#[test]
fn the_sender_hears_of_each_mark() {
    let fates = [[Fate::Passes; 6].as_slice(), &[Fate::Marked]].concat();
    let (received, heard) = Pair::new(config(true, false), fates).transfer(200_000);
    assert!(received.marked > 10, "{received:?}");
    assert_eq!(received.bytes, heard.bytes);
    assert_eq!(received.marked, heard.marked);
}

#[test]
fn without_a_mark_nobody_counts_one() {
    let (received, heard) = Pair::new(config(true, true), vec![Fate::Passes]).transfer(200_000);
    assert_eq!((received.marked, received.bytes.ce, heard.marked), (0, 0, 0));
    assert_eq!(received.bytes.ect0, 200_000);
}

proptest! {
    /// The sender never counts more bytes than arrived, marked or not, whatever is lost.
    #[test]
    fn byte_counters_are_never_ahead_of_what_arrived(
        fates in prop::collection::vec(
            prop_oneof![6 => Just(Fate::Passes), 3 => Just(Fate::Marked), 1 => Just(Fate::Lost)],
            1..60,
        ),
        delayed: bool,
        bytes in 1u64..300_000,
    ) {
        // Something passes in each round.
        let fates: Vec<Fate> = fates.into_iter().chain([Fate::Passes; 3]).collect();
        let (received, heard) = Pair::new(config(true, delayed), fates).transfer(bytes);
        prop_assert!(heard.bytes.ce <= received.bytes.ce, "{received:?} {heard:?}");
        prop_assert!(heard.bytes.ect0 <= received.bytes.ect0, "{received:?} {heard:?}");
    }

    /// Without the option ACE alone reports each mark while ACKs cover one or two segments. Marks
    /// on our ACKs wait for the third (§3.2.2.5.1).
    #[test]
    fn the_flags_alone_count_segments(
        fates in prop::collection::vec(prop_oneof![Just(Fate::Passes), Just(Fate::Marked)], 1..40),
    ) {
        let (received, heard) = Pair::new(config(false, false), fates).transfer(100_000);
        prop_assert!(received.marked - heard.marked < 3, "{received:?} {heard:?}");
    }
}
