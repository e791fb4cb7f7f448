//! A fixed host, a node that splits, and a mobile; the tests decide when the node's segments reach
//! the hosts, and whether.

use super::*;
use crate::scenario::Node;
use airtcp_core::event::AbortReason;
use airtcp_core::{Addr, Bytes, Duration};
use airtcp_tcp::TcpConfig;
use std::mem::take;
use std::sync::Arc;

const MSS: u64 = 1000;

fn tcp(buffer: u64) -> TcpConfig {
    let buffer = Bytes(buffer);
    TcpConfig {
        mss: MSS as u16,
        receive_buffer: buffer,
        send_buffer: buffer,
        ..TcpConfig::default()
    }
}

fn flow() -> Flow {
    let addr = |last, port| Addr::new([10, 0, 0, last].into(), port);
    Flow { src: addr(1, 57_001), dst: addr(3, 49_152) }
}

struct Net {
    now: Instant,
    split: Split,
    fixed: Endpoint<Length>,
    mobile: Endpoint<Length>,
    /// Sent by the node, and not delivered or lost yet.
    to_fixed: Vec<Segment<Length>>,
    to_mobile: Vec<Segment<Length>>,
}

impl Net {
    /// A node with this buffer for each direction.
    fn new(buffer: u64) -> Self {
        Self::with_isns(buffer, SeqNum(1), Stream::new(1, "isn"))
    }

    fn with_isns(buffer: u64, hosts: SeqNum, node: Stream) -> Self {
        let spec = EndpointSpec::new(&Arc::new(tcp(buffer)), &Node::new("edge"), 1);
        let mut mobile = Endpoint::new(tcp(60_000), flow().reversed(), hosts);
        mobile.listen();
        Self {
            now: Instant::from_secs(1),
            split: Split::new(spec, Controls::default(), node),
            fixed: Endpoint::new(tcp(60_000), flow(), hosts),
            mobile,
            to_fixed: Vec::new(),
            to_mobile: Vec::new(),
        }
    }

    /// After the handshakes of both halves.
    fn established(buffer: u64) -> Self {
        let mut net = Self::new(buffer);
        net.fixed(|host, now, io| host.connect(now, io));
        net.settle();
        net
    }

    fn host(&mut self, side: Side) -> &mut Endpoint<Length> {
        match side {
            Side::Fixed => &mut self.fixed,
            Side::Mobile => &mut self.mobile,
        }
    }

    /// Calls a host; the node gets what it sends.
    fn call(
        &mut self,
        side: Side,
        action: impl FnOnce(&mut Endpoint<Length>, Instant, &mut Io<'_, Length>),
    ) {
        let mut sent = Vec::new();
        let now = self.now;
        action(self.host(side), now, &mut Io { out: &mut sent, events: Events::none() });
        let mut out = Actions::new();
        for segment in sent {
            self.split.on_segment(now, side, segment, &mut out);
        }
        self.take(out);
    }

    fn fixed(&mut self, action: impl FnOnce(&mut Endpoint<Length>, Instant, &mut Io<'_, Length>)) {
        self.call(Side::Fixed, action);
    }

    fn mobile(&mut self, action: impl FnOnce(&mut Endpoint<Length>, Instant, &mut Io<'_, Length>)) {
        self.call(Side::Mobile, action);
    }

    fn take(&mut self, mut out: Actions<Length>) {
        for action in out.drain() {
            match action {
                airtcp_edge::Action::Inject { to: Side::Fixed, segment } => {
                    self.to_fixed.push(segment);
                }
                airtcp_edge::Action::Inject { to: Side::Mobile, segment } => {
                    self.to_mobile.push(segment);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Delivers what the node has sent to one side so far. Hosts read all at once.
    fn deliver(&mut self, side: Side) {
        let segments = match side {
            Side::Fixed => take(&mut self.to_fixed),
            Side::Mobile => take(&mut self.to_mobile),
        };
        for segment in segments {
            self.call(side, |host, now, io| {
                host.on_segment(now, segment, io);
                host.read(now, usize::MAX, io);
                host.reply(now, io);
            });
        }
    }

    /// Delivers everything until nobody has anything to say.
    fn settle(&mut self) {
        while !(self.to_fixed.is_empty() && self.to_mobile.is_empty()) {
            self.deliver(Side::Fixed);
            self.deliver(Side::Mobile);
        }
    }

    /// Time goes on; the node's timers expire.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.split.next_deadline().filter(|&due| due <= end) {
            self.now = due;
            let mut out = Actions::new();
            self.split.on_timer(due, &mut out);
            self.take(out);
        }
        self.now = end;
    }

    fn write(&mut self, side: Side, bytes: u64) {
        self.call(side, |host, now, io| {
            assert_eq!(host.write(now, &Length(bytes), io) as u64, bytes);
        });
    }

    /// Bytes that a host has received.
    fn received(&mut self, side: Side) -> u64 {
        self.host(side).stats().bytes_delivered
    }
}

#[test]
fn the_node_acknowledges_what_the_mobile_has_not() {
    let mut net = Net::established(60_000);
    net.write(Side::Fixed, 2 * MSS);
    net.deliver(Side::Fixed);
    assert!(net.fixed.is_all_acked());
    assert_eq!(net.received(Side::Mobile), 0);
    let held = |net: &Net| net.split.counters().bytes_held;
    assert_eq!(held(&net), 2 * MSS);
    net.settle();
    assert_eq!(net.received(Side::Mobile), 2 * MSS);
    assert_eq!(held(&net), 0);
    let SplitCounters { bytes_taken, most_bytes_held, .. } = net.split.counters();
    assert_eq!((bytes_taken, most_bytes_held), (2 * MSS, 2 * MSS));
}

#[test]
fn a_loss_on_the_wireless_half_is_the_nodes_affair() {
    let mut net = Net::established(60_000);
    net.write(Side::Fixed, 2 * MSS);
    net.deliver(Side::Fixed);
    net.to_mobile.clear();
    // No timer of the fixed host runs: it has nothing outstanding.
    assert_eq!(net.fixed.next_deadline(), None);
    net.wait(Duration::from_secs(2));
    assert!(!net.to_mobile.is_empty(), "the node sends it again");
    net.settle();
    assert_eq!(net.received(Side::Mobile), 2 * MSS);
    let SplitCounters { retransmissions, timeouts, .. } = net.split.counters();
    assert_eq!(timeouts, 1);
    assert!(retransmissions > 0);
    assert_eq!(net.fixed.stats().segments_retransmitted, 0);
}

#[test]
fn the_window_is_the_room_left_in_the_buffer() {
    const BUFFER: u64 = 4 * MSS;
    let mut net = Net::established(BUFFER);
    assert_eq!(u64::from(net.fixed.send_window()), BUFFER);
    net.write(Side::Fixed, 20 * MSS);
    // The mobile acknowledges nothing.
    while !net.to_fixed.is_empty() {
        net.deliver(Side::Fixed);
    }
    assert_eq!(net.split.counters().bytes_held, BUFFER);
    assert_eq!(net.fixed.send_window(), 0);
    assert!(net.fixed.is_persisting());
    // Each ACK of the mobile makes room.
    net.settle();
    assert_eq!(net.received(Side::Mobile), 20 * MSS);
    assert_eq!(net.split.counters().most_bytes_held, BUFFER);
}

#[test]
fn a_fin_follows_the_data_before_it() {
    let mut net = Net::established(60_000);
    net.write(Side::Fixed, 3 * MSS);
    net.fixed(|host, now, io| host.close(now, io));
    net.deliver(Side::Fixed);
    assert!(!net.mobile.is_eof());
    net.settle();
    assert_eq!(net.received(Side::Mobile), 3 * MSS);
    assert!(net.mobile.is_eof());
    // The other direction is still open.
    net.write(Side::Mobile, MSS);
    net.mobile(|host, now, io| host.close(now, io));
    net.settle();
    assert_eq!(net.received(Side::Fixed), MSS);
    assert_eq!(net.mobile.state(), TcpState::Closed);
    // The node waits for old duplicates, and forgets the connection.
    net.wait(Duration::from_secs(600));
    assert!(net.split.connections.is_empty());
    assert_eq!(net.split.next_deadline(), None);
    let counters = net.split.counters();
    assert_eq!((counters.bytes_taken, counters.bytes_lost), (4 * MSS, 0));
}

#[test]
fn a_reset_follows_the_data_that_was_acknowledged() {
    let mut net = Net::established(60_000);
    net.write(Side::Fixed, 2 * MSS);
    net.fixed(|host, now, io| host.abort(now, io));
    assert!(net.to_mobile.iter().all(|segment| !segment.flags.contains(Flags::RST)));
    net.settle();
    assert_eq!(net.received(Side::Mobile), 2 * MSS);
    assert_eq!(net.mobile.aborted(), Some(AbortReason::Reset));
    assert_eq!(net.split.counters().bytes_lost, 0);
    assert!(net.split.connections.is_empty());
}

#[test]
fn what_a_mobile_that_resets_has_not_taken_is_lost() {
    let mut net = Net::established(60_000);
    net.write(Side::Fixed, 2 * MSS);
    net.deliver(Side::Fixed);
    assert!(net.fixed.is_all_acked());
    net.to_mobile.clear();
    net.mobile(|host, now, io| host.abort(now, io));
    net.settle();
    assert_eq!(net.fixed.aborted(), Some(AbortReason::Reset));
    let counters = net.split.counters();
    assert_eq!((counters.bytes_lost, counters.bytes_held), (2 * MSS, 0));
}

#[test]
fn a_connection_is_open_before_the_mobile_was_asked() {
    let mut net = Net::new(60_000);
    net.fixed(|host, now, io| host.connect(now, io));
    net.deliver(Side::Fixed);
    assert_eq!(net.fixed.state(), TcpState::Established);
    assert_eq!(net.mobile.state(), TcpState::Listen);
    // Data and the end of the stream wait for the mobile.
    net.write(Side::Fixed, MSS);
    net.fixed(|host, now, io| host.close(now, io));
    net.settle();
    assert_eq!(net.received(Side::Mobile), MSS);
    assert!(net.mobile.is_eof());
}

#[test]
fn a_refusal_of_the_mobile_resets_the_fixed_host() {
    let mut net = Net::new(60_000);
    // It listens to nobody.
    net.mobile = Endpoint::new(tcp(60_000), flow().reversed(), SeqNum(1));
    net.fixed(|host, now, io| host.connect(now, io));
    net.settle();
    assert_eq!(net.fixed.aborted(), Some(AbortReason::Reset));
    assert!(net.split.connections.is_empty());
}

#[test]
fn a_mobile_out_of_reach_for_too_long_loses_what_was_acknowledged_for_it() {
    let mut net = Net::established(60_000);
    net.write(Side::Fixed, 2 * MSS);
    net.deliver(Side::Fixed);
    for _ in 0..100 {
        net.to_mobile.clear();
        net.wait(Duration::from_secs(60));
    }
    net.settle();
    assert_eq!(net.fixed.aborted(), Some(AbortReason::Reset));
    assert_eq!(net.split.counters().bytes_lost, 2 * MSS);
}

#[test]
fn uploads_are_split_as_downloads_are() {
    let mut net = Net::new(60_000);
    net.fixed.listen();
    net.mobile = Endpoint::new(tcp(60_000), flow().reversed(), SeqNum(1));
    net.mobile(|host, now, io| host.connect(now, io));
    net.settle();
    net.write(Side::Mobile, 2 * MSS);
    net.deliver(Side::Mobile);
    assert!(net.mobile.is_all_acked());
    assert_eq!(net.received(Side::Fixed), 0);
    net.settle();
    assert_eq!(net.received(Side::Fixed), 2 * MSS);
}

#[test]
fn sequence_numbers_wrap_on_both_halves() {
    const BYTES: u64 = 40 * MSS;
    // Wraps within the transfer: its numbers begin at most so far below 2^32.
    let near_wrap = |isn: u32| u64::from(u32::MAX - isn) < BYTES;
    let wraps = |seed: &u64| {
        let mut stream = Stream::new(*seed, "isn");
        let mut isn = || stream.bits() as u32;
        let [_, mobile] = [isn(), isn()];
        near_wrap(mobile)
    };
    let seed = (0..).find(wraps).expect("one in 100,000");
    let mut net = Net::with_isns(60_000, SeqNum(u32::MAX - 5000), Stream::new(seed, "isn"));
    net.fixed(|host, now, io| host.connect(now, io));
    net.settle();
    net.write(Side::Fixed, BYTES);
    net.settle();
    assert_eq!(net.received(Side::Mobile), BYTES);
    assert_eq!(net.split.counters().retransmissions, 0);
}

#[test]
fn segments_of_unknown_connections_pass() {
    let mut split = Net::new(60_000).split;
    let mut out = Actions::new();
    let segment = Segment { flow: flow(), ack: Some(SeqNum(5)), ..Segment::default() };
    split.on_segment(Instant::ZERO, Side::Fixed, segment.clone(), &mut out);
    let forwarded = airtcp_edge::Action::Forward { to: Side::Mobile, segment };
    assert_eq!(out.as_slice(), [forwarded]);
}
