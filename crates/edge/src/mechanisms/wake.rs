//! `wake`: after an outage, two packets of each flow tell its sender that the path lives.
//!
//! The idea is the smart link layer of J. Scott and G. Mapp, "Link layer-based TCP optimisation for
//! disconnecting networks" (ACM CCR 33(5), 2003; see also RFC 3819 §8 and RFC 6069): a sender in an
//! outage waits for a timer that has backed off, and any answer of its peer spares it the rest of
//! that wait. Nothing here looks beyond addresses, ports and TCP's sequence numbers, so QUIC and
//! tunnels are served as TCP is. Packets are copied: the originals go on, and nothing is
//! acknowledged, changed or held back. Losing all state loses no more than the time to the sender's
//! next attempt.
//!
//! Of each flow that may lose its path ([`WakeConfig::towards`]) the node keeps
//! - the *tail*: of TCP the segment with the highest sequence number, otherwise the last packet.
//!   Once the path has been silent for a while the tail stays, whatever follows: the sender's
//!   window was full by then.
//! - the *newest* packet, where that is another: a retransmission, a probe.
//!
//! TCP's SYN and RST are never kept: a copy that comes late could open or abort the next connection
//! of the same ports. Nor are segments that ask for no answer, as pure ACKs: repeated, they would
//! tell nobody anything.
//!
//! A TCP flow is forgotten when its sender waits for nothing any more: its FIN is acknowledged, or
//! either host has reset the connection. Segments must be valid to show that (`conntrack::half`),
//! and must be seen. Where they are not, the flow stays, and is sent again only if it sent something
//! in the five seconds before the silence. A data path that shows few packets of a mobile that
//! answers shows these ([`Packet::is_closing`]). Its resets count without the number that comes
//! next, which nobody knows then.
//!
//! When the path is back both are sent. A TCP sender whose ACKs were lost with the link learns
//! nothing from a repeated head, and waits for its probe of the tail (RFC 8985 §7).
//!
//! The newest goes first. A TCP sender that gets an answer to it often takes its time-out for
//! spurious (RFC 4015): its window is restored, and it goes on with new data. The answer to the
//! tail, right behind, then tells what was lost, as the tail was sent last (RFC 8985 §6). If that
//! answer comes first, the sender sees its losses before anything new is in flight. Over a long
//! round trip it repairs them in a slow start of many round trips (RFC 6937). So where an answer
//! once took more than [`SHORT_PATH`], the tail waits, and is sent if the sender does not go on.
//!
//! Of other protocols, but for tunnels, the tail waits over any path. A QUIC sender takes a round
//! trip from each acknowledgement of a packet newer than all acknowledged before (RFC 9002 §5.1):
//! from the tail's one as long as the outage, from the newest's the time since the last probe, a
//! third to a half of that. By it some pace (s2n-quic, ngtcp2), and all set their probe timeout
//! (§6.2.1). [`TAIL_WAIT`] later the sender has a first sample of what it sent since, over round
//! trips up to 100 ms; if it went on, it needs no tail. The same spares the mobile, whose packets
//! the tail may acknowledge. A tunnel carries many flows, whose last attempts are all needed at
//! once; they are sent in the order of time.
//!
//! The path is back when the link is [`Up`](LinkSignal::Up). Signals get lost, and many links send
//! none, so silence counts too: when nothing has come back for [`WakeConfig::silence`], or one and
//! a half times what answers took lately if that is longer, the node *retries*: it sends what is
//! kept of one flow, without a tail that waits, and of the next one at the next retry, until
//! something comes back. Retries are [`WakeConfig::retry_interval`] apart at first, later a
//! fiftieth of the silence, for a link that holds packets instead of dropping them delivers them
//! all in the end. Between retries that are further apart than that it sends *keep-alives*, which
//! cost little and which the mobile answers: an empty segment of a TCP flow (RFC 9293 §3.8.4) or,
//! without one, an echo request. All this stops after five minutes, and goes on when the sender
//! tries again.
//!
//! A data path need not show what goes to a mobile that answers. It may begin when answers fail to
//! come, and say with each packet what it knows ([`Silence`]). The tail is then what the sender
//! sent last before the silence counted: the end of its window, or its first attempts to send that
//! again (a tail-loss probe, RFC 8985 §7; probes of QUIC, RFC 9002 §6.2).
//!
//! What a packet costs that was not needed: TCP answers it with a duplicate ACK (RFC 9293
//! §3.10.7.4) and QUIC ignores it (RFC 9000 §12.3). Other protocols must bear it, as any network
//! may duplicate packets.

use crate::conntrack::ace;
use crate::conntrack::flow_table::{FlowPhase, FlowReport, FlowTableConfig, Keyed};
use crate::conntrack::half::{HalfConnection, Seen};
use crate::conntrack::unreplied::Unreplied;
use crate::middlebox::{Actions, Middlebox, MobileId, Side};
use crate::per_connection::TURN;
use airtcp_core::{
    Duration, Flags, Flow, Instant, Length, LinkSignal, Payload, Segment, SeqNum, counters,
};
use airtcp_settings::schema::{Kind, at_least};
use airtcp_settings::{choice, settings};
use hashlink::LinkedHashMap;
use std::collections::{BTreeSet, VecDeque};

/// A shorter silence, or a shorter retry interval, would take all of the node's time.
const SHORTEST: Duration = Duration::from_millis(10);

/// Retries are at least this part of the silence apart: they cost a path that holds packets little,
/// and a flow that waits a fiftieth of what it has waited.
const RETRY_BACKOFF: u64 = 50;

/// Interval of keep-alives, at least, times the number of silent mobiles: a node sends 10,000 a
/// second at most.
const KEEP_ALIVE_SPACING: Duration = Duration::from_micros(100);

/// Silence after which retries stop.
const PROBING_TIMEOUT: Duration = Duration::from_secs(300);

/// The same for a mobile that has sent nothing yet: it may not exist, or only listen.
const UNREPLIED_TIMEOUT: Duration = Duration::from_secs(10);

/// A flow that sent nothing for so long before the silence waits for nothing.
const IDLE_BEFORE: Duration = Duration::from_secs(5);

/// Flows that take turns to retry, and may send keep-alives: the latest to send.
const RETRY_FLOWS: usize = 16;

/// Flows released at once, and each [`RELEASE_INTERVAL`] later: some 40 Mbit/s of full packets.
const RELEASED_AT_ONCE: usize = 16;
const RELEASE_INTERVAL: Duration = Duration::from_millis(10);

/// Flows of a mobile that may begin while it is silent: a flood of them displaces nothing.
const NEW_IN_SILENCE: usize = 256;

/// Round trip up to which a TCP flow's tail does not wait: a slow start costs less there than the
/// wait would.
const SHORT_PATH: Duration = Duration::from_millis(100);

/// Wait of a tail for its sender to go on beyond it: two round trips over paths up to 100 ms, one
/// to answer the newest packet and one to answer what the sender sends then.
const TAIL_WAIT: Duration = Duration::from_millis(200);

/// A longer answer is no measure of the round trip: there was an outage.
const LONGEST_ANSWER: Duration = Duration::from_secs(1);

/// Payload bytes kept of a segment that is larger, because its sender left segmenting to the
/// network: what fits into an Ethernet frame.
const LARGEST_COPY: usize = 1_460;

settings! {
    /// Settings of wake.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct WakeConfig {
        /// Side of the wireless link: packets that go there are kept.
        pub towards: Towards = Towards::Mobile,
        /// Without a signal, silence of the other side after which packets are sent to it again;
        /// never less than one and a half times what its answers took.
        #[kind = at_least(SHORTEST)]
        pub silence: Duration = Duration::from_millis(300),
        /// Interval of these retries, at first.
        #[kind = at_least(SHORTEST)]
        pub retry_interval: Duration = Duration::from_millis(100),
        /// Packets kept of a tunnel, from before the silence and since: its packets belong to many
        /// flows (WireGuard, IPsec, VXLAN, Geneve, GRE, IP in IP).
        #[kind = Kind::Integer { min: 1, max: 64 }]
        pub tunnel_packets: u32 = 16,
    }
}

choice! {
    /// On which side of the node the wireless link is.
    #[derive(Hash)]
    #[default(Mobile)]
    pub enum Towards {
        /// the mobiles are behind it: the node is at the network's edge
        Mobile = "mobile",
        /// the network is behind it: the node is on board, with the hosts whose packets it keeps
        Network = "network",
    }
}

impl Towards {
    /// The side of the node on which the link is.
    pub const fn side(self) -> Side {
        match self {
            Self::Mobile => Side::Mobile,
            Self::Network => Side::Fixed,
        }
    }
}

counters! {
    /// Counters of wake since the start.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct WakeCounters {
        /// Times that a mobile was silent without a signal.
        pub silences: u64,
        /// Times that the flows of a mobile were released.
        pub releases: u64,
        /// Packets sent when a link was back.
        pub packets_released: u64,
        /// Packets sent again to a silent mobile.
        pub packets_retried: u64,
        /// Keep-alives and echo requests sent between such retries.
        pub keep_alives: u64,
    }
}

/// One direction of a flow: addresses, protocol, and ports where there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId {
    /// IP protocol number.
    pub protocol: u8,
    /// From and to; ports are 0 for protocols without them.
    pub flow: Flow,
}

impl FlowId {
    /// IP protocol number of TCP.
    pub const TCP: u8 = 6;
    /// IP protocol number of UDP.
    pub const UDP: u8 = 17;

    /// Many flows in one, by IP protocol number or well-known port: IP in IP, IPv6 in IP, GRE, ESP,
    /// AH; ESP in UDP (RFC 3948), WireGuard, VXLAN, Geneve.
    pub fn is_tunnel(&self) -> bool {
        matches!(self.protocol, 4 | 41 | 47 | 50 | 51)
            || self.is_udp_of(&[4500, 51820])
            || self.is_overlay()
    }

    /// VXLAN (RFC 7348) or Geneve (RFC 8926): what offloads join of it, they join inside.
    pub fn is_overlay(&self) -> bool {
        self.is_udp_of(&[4789, 6081])
    }

    fn is_udp_of(&self, ports: &[u16]) -> bool {
        let Flow { src, dst } = self.flow;
        self.protocol == Self::UDP && [src, dst].iter().any(|end| ports.contains(&end.port))
    }
}

/// State of a mobile that does not answer, from a data path that shows only packets to such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Time of the first packet to it since its last one.
    pub since: Instant,
    /// The longest of its recent response times.
    pub response: Duration,
    /// The longest that one took, up to a second. About a round trip over the link; other answers
    /// take less, because packets overlap.
    pub round_trip: Duration,
    /// The packet's flow sent nothing while the mobile answered.
    pub is_flow_new: bool,
}

/// A packet as wake sees it.
pub trait Packet: Clone {
    /// The flow it belongs to.
    fn id(&self) -> FlowId;
    /// The end of a TCP segment; `None` for other protocols.
    fn seq_end(&self) -> Option<SeqNum>;
    /// A TCP segment, with the length of its payload; `None` for other protocols.
    fn header(&self) -> Option<Segment<Length>>;
    /// It opens or aborts a connection. A copy that comes late would open or abort the next.
    fn is_boundary(&self) -> bool;
    /// The other side answers it, if it gets it.
    fn elicits_reply(&self) -> bool;
    /// State of a silent mobile, from the data path. `None`: the data path shows all packets.
    fn silence(&self) -> Option<Silence> {
        None
    }
    /// Its connection may end with it, and the data path, which shows few packets of a mobile that answers,
    /// may not have shown those before.
    fn is_closing(&self) -> bool {
        false
    }
    /// A small packet that the other side answers, and that changes nothing there: of TCP a
    /// keep-alive of its flow (RFC 9293 §3.8.4), else an echo request. `None`: there is none.
    fn keep_alive(&self) -> Option<Self> {
        None
    }
    /// The part to keep as a tail: of a packet still to be segmented, the end.
    fn end(&self) -> Self {
        self.clone()
    }
    /// The part to keep as the newest: of a packet still to be segmented, the beginning. It may be
    /// the retransmission that the other side waits for.
    fn beginning(&self) -> Self {
        self.clone()
    }
}

impl<P: Payload> Packet for Segment<P> {
    fn id(&self) -> FlowId {
        FlowId { protocol: FlowId::TCP, flow: self.flow }
    }

    fn seq_end(&self) -> Option<SeqNum> {
        Some(Segment::seq_end(self))
    }

    fn header(&self) -> Option<Segment<Length>> {
        Some(self.with_payload(Length(self.payload.len() as u64)))
    }

    fn is_boundary(&self) -> bool {
        self.flags.intersects(Flags::SYN | Flags::RST)
    }

    fn elicits_reply(&self) -> bool {
        self.seq_len() > 0
    }

    fn keep_alive(&self) -> Option<Self> {
        // A segment without the ACK flag is not answered, and whoever has not answered a SYN may
        // not know the flow.
        if self.ack.is_none() || self.flags.intersects(Flags::SYN | Flags::RST) {
            return None;
        }
        // Congestion marks are echoed as before: AccECN's counter must not jump (RFC 9768 §3.2.2).
        let flags = self.flags & ace::FIELD;
        let (seq, payload) = (self.seq - 1, self.payload.slice(0, 0));
        Some(Self { seq, flags, payload, ..self.clone() })
    }

    fn end(&self) -> Self {
        let excess = self.payload.len().saturating_sub(LARGEST_COPY);
        if excess == 0 {
            return self.clone();
        }
        let payload = self.payload.slice(excess, LARGEST_COPY);
        Self { seq: self.seq + excess as u32, payload, ..self.clone() }
    }

    fn beginning(&self) -> Self {
        if self.payload.len() <= LARGEST_COPY {
            return self.clone();
        }
        let payload = self.payload.slice(0, LARGEST_COPY);
        Self { payload, flags: self.flags - Flags::FIN, ..self.clone() }
    }
}

/// True if this resets a connection of which the data path did not show the numbers before. A forged one
/// costs little: what the sender sends into the next silence, at the latest when its timer expires, is kept
/// again. In a `long` silence the numbers were shown, and it has to have the next one.
fn is_unseen_reset<Q: Packet>(packet: &Q, long: bool) -> bool {
    let is_reset = |header: Segment<Length>| header.flags.contains(Flags::RST);
    !long && packet.is_closing() && packet.header().is_some_and(is_reset)
}

/// Packets kept of a flow: at most `room` of each kind.
#[derive(Clone, Debug)]
struct Kept<Q> {
    tail: VecDeque<Q>,
    newest: VecDeque<Q>,
    /// Arrival of its last packet.
    last: Instant,
    /// Arrival of the last packet of its tail.
    tail_last: Instant,
    /// It began in a silence, and may be a part of a flood.
    is_new: bool,
    /// Of a TCP flow.
    half: Option<Box<HalfConnection>>,
}

impl<Q: Packet> Kept<Q> {
    fn new(now: Instant, is_new: bool) -> Self {
        // Room for one: most flows never need more, and there may be many.
        let [tail, newest] = [(); 2].map(|()| VecDeque::with_capacity(1));
        Self { tail, newest, last: now, tail_last: now, is_new, half: None }
    }

    /// A segment of its connection, from this side. True if its sender waits for nothing any more.
    /// Unless the silence is `long`, a new connection of the same ports displaces the old one.
    fn on_segment(&mut self, from: Side, packet: &Q, long: bool) -> bool {
        let (Some(half), Some(header)) = (&mut self.half, packet.header()) else { return false };
        match half.on_segment(from, header) {
            Seen::Ended => return true,
            Seen::Renewed if !long => {
                let is_of_it = |kept: &Q| kept.seq_end().is_none_or(|end| half.covers(end));
                self.tail.retain(is_of_it);
                self.newest.retain(is_of_it);
            }
            Seen::Renewed | Seen::Ongoing => {}
        }
        false
    }

    fn take(&mut self, now: Instant, packet: &Q, silent: bool, room: usize) {
        self.last = now;
        let is_tail = match (self.tail.back(), packet.seq_end()) {
            (None, _) => true,
            (Some(_), _) if silent => false,
            (Some(tail), Some(end)) => tail.seq_end().is_none_or(|tail| end.at_or_after(tail)),
            (Some(_), None) => true,
        };
        let (place, copy) = if is_tail {
            self.newest.clear();
            self.tail_last = now;
            (&mut self.tail, packet.end())
        } else {
            (&mut self.newest, packet.beginning())
        };
        if place.len() >= room {
            place.pop_front();
        }
        place.push_back(copy);
    }

    /// True if the tail is sent later than the newest, if at all. For `is_far` see
    /// [`Peer::is_far`].
    fn tail_waits(&self, is_far: bool) -> bool {
        self.newest.back().is_some_and(|newest| match newest.seq_end() {
            Some(_) => is_far,
            None => !newest.id().is_tunnel(),
        })
    }

    /// Packets to send at once, and true if the tail waits then.
    fn first(&self, is_far: bool) -> (impl Iterator<Item = &Q>, bool) {
        let is_tcp = self.newest.back().is_some_and(|newest| newest.seq_end().is_some());
        let tail_waits = self.tail_waits(is_far);
        let tail_if = |is: bool| is.then_some(&self.tail).into_iter().flatten();
        let before = tail_if(!tail_waits && !is_tcp);
        let after = tail_if(!tail_waits && is_tcp);
        (before.chain(&self.newest).chain(after), tail_waits)
    }

    /// See [`Packet::keep_alive`]: of the newest packet, which is the first that is missing once
    /// the sender has timed out.
    fn keep_alive(&self) -> Option<Q> {
        self.newest.back().or(self.tail.back())?.keep_alive()
    }

    /// True if its sender may have waited for an answer since then.
    fn waits(&self, since: Instant) -> bool {
        self.last + IDLE_BEFORE > since
    }

    fn is_empty(&self) -> bool {
        self.tail.is_empty() && self.newest.is_empty()
    }
}

/// What is known of a mobile, whether or not it has flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Link {
    /// It has sent a packet.
    is_known: bool,
    /// The longest of its recent response times.
    response: Duration,
    /// The longest that one took.
    round_trip: Duration,
    /// Time at which its link was reported down.
    down: Option<Instant>,
}

/// State of a mobile with flows.
#[derive(Clone, Debug)]
struct Peer<Q> {
    /// Its flows; the latest to send is at the back.
    flows: LinkedHashMap<FlowId, Kept<Q>, Keyed>,
    link: Link,
    /// Time of the first packet to it since its last one.
    waits_since: Option<Instant>,
    retries: Option<Retries>,
    /// Flows still to be released.
    release: VecDeque<FlowId>,
    next_release: Option<Instant>,
    /// Flows that were released without their tails, and when.
    tails: VecDeque<(Instant, FlowId)>,
    /// Start of the silence whose flows are being released; `None` once all are released and the
    /// mobile is heard. If the mobile goes away before that, its flows have waited since then.
    released_since: Option<Instant>,
    /// Flows that began during this silence.
    new_in_silence: usize,
    /// The earliest entry among the deadlines.
    armed: Option<Instant>,
}

/// Retries to a silent peer, until it answers.
#[derive(Clone, Copy, Debug)]
struct Retries {
    since: Instant,
    /// Time of the next retry; `None`: retries have stopped.
    next: Option<Instant>,
    /// Time of the next keep-alive, if that is before the next retry.
    keep_alive: Option<Instant>,
    turn: usize,
    /// Everything was sent at this instant. If the peer answers soon, that was it.
    released: Option<Instant>,
}

impl Retries {
    fn new(since: Instant) -> Self {
        Self { since, next: None, keep_alive: None, turn: 0, released: None }
    }

    /// Sets the next keep-alive to `at`, if that is before the next retry.
    fn with_keep_alive(self, at: Instant) -> Self {
        Self { keep_alive: self.next.filter(|&retry| at < retry).map(|_| at), ..self }
    }
}

impl<Q: Packet> Peer<Q> {
    fn new(key: Keyed, link: Link) -> Self {
        Self {
            flows: LinkedHashMap::with_hasher(key),
            link,
            waits_since: None,
            retries: None,
            release: VecDeque::new(),
            next_release: None,
            tails: VecDeque::new(),
            released_since: None,
            new_in_silence: 0,
            armed: None,
        }
    }

    /// True if packets sent to it now may be lost.
    fn is_silent(&self) -> bool {
        self.silent_since().is_some()
    }

    /// Time since which packets sent to it may be lost.
    fn silent_since(&self) -> Option<Instant> {
        self.link.down.or(self.retries.map(|retries| retries.since))
    }

    /// True if packets sent to it now left their sender when nothing came back any more. Just after
    /// a link went down a sender still fills its window, and its last segment is the tail.
    fn is_long_silent(&self, now: Instant, config: &WakeConfig) -> bool {
        let is_long = |since| now.since(since) > self.threshold(config);
        self.retries.is_some() || self.link.down.is_some_and(is_long)
    }

    /// Silence that means something.
    fn threshold(&self, config: &WakeConfig) -> Duration {
        config.silence.max(self.link.response * 3 / 2)
    }

    fn next_deadline(&self, config: &WakeConfig) -> Option<Instant> {
        let retry = match (self.retries, self.waits_since) {
            (Some(retries), _) => retries.keep_alive.or(retries.next),
            (None, Some(since)) => Some(since + self.threshold(config)),
            (None, None) => None,
        };
        [retry, self.next_release, self.next_tail()].into_iter().flatten().min()
    }

    /// An answer once took too long for TCP's tails to be sent at once.
    fn is_far(&self) -> bool {
        self.link.round_trip > SHORT_PATH
    }

    /// Time at which the next tail has waited long enough.
    fn next_tail(&self) -> Option<Instant> {
        self.tails.front().map(|&(released, _)| released + TAIL_WAIT)
    }

    /// A packet came from it.
    fn on_heard(&mut self, now: Instant, config: &WakeConfig) {
        self.link.is_known = true;
        let (waited, threshold) = (self.waits_since.take(), self.threshold(config));
        let answer = waited.map(|since| now.since(since)).filter(|&took| took <= LONGEST_ANSWER);
        self.link.round_trip = self.link.round_trip.max(answer.unwrap_or_default());
        // So soon, the packet may have been on the way when the link went down.
        if self.link.down.is_some_and(|since| now.since(since) <= threshold) {
            // The silence that began before goes on.
            self.waits_since = self.retries.and(waited);
        } else if let Some(retries) = self.retries.take() {
            self.link.down = None;
            if retries.released.is_none_or(|at| now.since(at) > threshold) {
                self.release_all(now, retries.since);
            }
        } else if let Some(down_since) = self.link.down.take() {
            self.release_all(now, down_since);
        } else if let Some(since) = waited {
            self.link.response = now.since(since).max(self.link.response * 7 / 8);
        }
        if !self.is_silent() {
            self.new_in_silence = 0;
        }
        self.end_release();
    }

    /// The link is gone, as a signal says: it would lose what is still to be released, which waits
    /// for the mobile's next return.
    fn on_down(&mut self, now: Instant) {
        self.link.down.get_or_insert(now);
        self.release.clear();
        self.next_release = None;
        self.tails.clear();
        if let Some(retries) = &mut self.retries {
            retries.released = None;
        }
    }

    /// The link is back, as a signal says.
    fn on_up(&mut self, now: Instant, config: &WakeConfig) {
        let since =
            [self.link.down.take(), self.retries.map(|retries| retries.since), self.waits_since];
        let Some(since) = since.into_iter().flatten().min() else { return };
        self.release_all(now, since);
        if !self.release.is_empty() {
            let next = Some(now + config.retry_interval);
            self.retries = Some(Retries { next, released: Some(now), ..Retries::new(now) });
        }
    }

    /// Start of a silence since which flows wait: of the one before, if their release is not over.
    fn waiting_since(&self, silence: Instant) -> Instant {
        self.released_since.map_or(silence, |before| before.min(silence))
    }

    /// Flows that may wait since this silence, the latest to send first, and those that began in
    /// it last.
    fn waiting(&self, silence: Instant) -> impl Iterator<Item = (&FlowId, &Kept<Q>)> {
        let since = self.waiting_since(silence);
        let of_kind = move |is_new| {
            let is = move |kept: &Kept<Q>| kept.is_new == is_new && kept.waits(since);
            self.flows.iter().rev().filter(move |(_, kept)| is(kept))
        };
        of_kind(false).chain(of_kind(true))
    }

    /// Puts all flows in line that may wait since then.
    fn release_all(&mut self, now: Instant, since: Instant) {
        self.release = self.waiting(since).map(|(&id, _)| id).collect();
        self.next_release = (!self.release.is_empty()).then_some(now);
        self.tails.clear();
        self.released_since = Some(self.waiting_since(since));
    }

    /// Takes note if all was released.
    fn end_release(&mut self) {
        if self.release.is_empty() && self.tails.is_empty() && !self.is_silent() {
            self.released_since = None;
        }
    }

    /// Sends what is due of flows that were released; how many packets.
    fn release(&mut self, now: Instant, send: &mut impl FnMut(&Q)) -> u64 {
        let is_due = self.next_release.is_some_and(|due| due <= now);
        let in_line = if is_due { self.release_some(now, send) } else { 0 };
        let sent = in_line + self.release_tails(now, send);
        self.end_release();
        sent
    }

    /// Sends what is kept of the next flows in line; how many packets.
    fn release_some(&mut self, now: Instant, send: &mut impl FnMut(&Q)) -> u64 {
        let count = self.release.len().min(RELEASED_AT_ONCE);
        let is_far = self.is_far();
        let mut sent = 0;
        for id in self.release.drain(..count) {
            let Some(kept) = self.flows.get(&id) else { continue };
            let (packets, tail_waits) = kept.first(is_far);
            sent += packets.map(&mut *send).count();
            self.tails.extend(tail_waits.then_some((now, id)));
        }
        self.next_release = (!self.release.is_empty()).then_some(now + RELEASE_INTERVAL);
        sent as u64
    }

    /// Sends the tails that have waited long enough for senders that did not go on; how many
    /// packets.
    fn release_tails(&mut self, now: Instant, send: &mut impl FnMut(&Q)) -> u64 {
        let mut sent = 0;
        while self.next_tail().is_some_and(|due| due <= now)
            && let Some((released, id)) = self.tails.pop_front()
        {
            // Whoever only repeats what is older still needs it (bbr).
            let kept = self.flows.get(&id).filter(|kept| kept.tail_last <= released);
            sent += kept.into_iter().flat_map(|kept| &kept.tail).map(&mut *send).count();
        }
        sent as u64
    }

    /// Retries, and sends a keep-alive at `keep_alive` if that is before the next retry; returns
    /// the number of packets.
    fn retry(
        &mut self,
        now: Instant,
        keep_alive: Instant,
        config: &WakeConfig,
        send: &mut impl FnMut(&Q),
    ) -> u64 {
        let Some(retries) = self.retries else { return 0 };
        let Retries { since, turn, .. } = retries;
        // Flows that began in the silence retry only if there are no others.
        let are_new = self.waiting(since).next().is_some_and(|(_, kept)| kept.is_new);
        let latest = self.waiting(since).take(RETRY_FLOWS);
        let flows = latest.filter(|(_, kept)| kept.is_new == are_new).count().max(1);
        let flow = self.waiting(since).nth(turn % flows);
        let is_far = self.is_far();
        let sent = flow.map_or(0, |(_, kept)| kept.first(is_far).0.map(send).count());
        let silence = now.since(since);
        let patience = if self.link.is_known { PROBING_TIMEOUT } else { UNREPLIED_TIMEOUT };
        let next =
            (silence < patience).then(|| now + config.retry_interval.max(silence / RETRY_BACKOFF));
        if next.is_none() {
            self.released_since = None;
        }
        self.retries =
            Some(Retries { next, turn: turn + 1, ..retries }.with_keep_alive(keep_alive));
        sent as u64
    }

    /// Sends a keep-alive, and again at `next` if that is before the next retry; returns the number
    /// of packets. The flow is one of the latest to send, of TCP if there is one: not all mobiles
    /// answer echo requests. Without a keep-alive there are only retries.
    fn send_keep_alive(&mut self, next: Instant, send: &mut impl FnMut(&Q)) -> u64 {
        let Some(retries) = self.retries else { return 0 };
        let by = |is_tcp| {
            let latest = self.waiting(retries.since).take(RETRY_FLOWS);
            let mut of_kind = latest.filter(|(id, _)| (id.protocol == FlowId::TCP) == is_tcp);
            of_kind.find_map(|(_, kept)| kept.keep_alive())
        };
        let keep_alive = by(true).or_else(|| by(false));
        self.retries = Some(match &keep_alive {
            Some(_) => retries.with_keep_alive(next),
            None => Retries { keep_alive: None, ..retries },
        });
        keep_alive.iter().map(send).count() as u64
    }
}

type Peers<Q> = LinkedHashMap<MobileId, Peer<Q>, Keyed>;

/// This mobile has never sent a packet.
fn is_unheard<Q>(peers: &Peers<Q>, mobile: &MobileId) -> bool {
    peers.get(mobile).is_some_and(|peer| !peer.link.is_known)
}

/// Wake for all flows of an edge node.
#[derive(Clone, Debug)]
pub struct Wake<Q> {
    config: WakeConfig,
    table: FlowTableConfig,
    /// Mobiles with flows; the longest idle one is at the front.
    peers: Peers<Q>,
    /// Mobiles that have never sent a packet.
    unreplied: Unreplied<MobileId>,
    /// Mobiles without flows of which something is known; the latest at the back.
    idle: LinkedHashMap<MobileId, Link, Keyed>,
    flows: usize,
    refused: u64,
    counters: WakeCounters,
    /// Deadlines of peers; entries may be stale, and then do nothing.
    deadlines: BTreeSet<(Instant, MobileId)>,
    /// See [`Wake::found_silent`].
    found_silent: Vec<(MobileId, Instant)>,
}

impl<Q: Packet> Wake<Q> {
    /// An instance without flows.
    pub fn new(config: WakeConfig, table: FlowTableConfig) -> Self {
        Self {
            config,
            table,
            peers: LinkedHashMap::with_hasher(Keyed(table.hash_key)),
            unreplied: Unreplied::default(),
            idle: LinkedHashMap::with_hasher(Keyed(table.hash_key)),
            flows: 0,
            refused: 0,
            counters: WakeCounters::default(),
            deadlines: BTreeSet::new(),
            found_silent: Vec::new(),
        }
    }

    /// Goes on with other settings; what is kept stays.
    pub fn reconfigure(&mut self, config: WakeConfig, table: FlowTableConfig) {
        self.config = config;
        self.table = self.table.with_limits(table);
    }

    /// Counters since the start.
    pub fn counters(&self) -> WakeCounters {
        self.counters
    }

    /// Flows of which something is kept.
    pub fn flows(&self) -> usize {
        self.flows
    }

    /// Packets of which nothing was kept because there were too many flows.
    pub fn segments_refused(&self) -> u64 {
        self.refused
    }

    /// The mobile is silent or its link down, or its flows are being released.
    pub fn is_interrupted(&self, mobile: MobileId) -> bool {
        let releases = |peer: &Peer<Q>| peer.next_release.is_some() || !peer.tails.is_empty();
        let busy = |peer: &Peer<Q>| peer.is_silent() || releases(peer);
        let is_down = |link: &Link| link.down.is_some();
        self.idle.get(&mobile).is_some_and(is_down) || self.peers.get(&mobile).is_some_and(busy)
    }

    /// Number of the mobile's flows that may wait because it is silent or its link down.
    pub fn interrupted(&self, mobile: MobileId) -> usize {
        let Some(peer) = self.peers.get(&mobile) else { return 0 };
        peer.silent_since().map_or(0, |since| peer.waiting(since).count())
    }

    /// Mobiles that the last [`on_deadline`](Self::on_deadline) found silent without a signal, and
    /// since when they were.
    pub fn found_silent(&self) -> &[(MobileId, Instant)] {
        &self.found_silent
    }

    /// A packet goes to the link, between this mobile and the network, on its way already.
    pub fn on_sent(&mut self, now: Instant, mobile: MobileId, packet: &Q) {
        let (id, sender) = (packet.id(), self.config.towards.side().opposite());
        let long = self.is_long_silent(now, mobile);
        if let Some(kept) = self.kept(mobile, &id)
            && (is_unseen_reset(packet, long) || kept.on_segment(sender, packet, long))
        {
            return self.forget(mobile, &id);
        }
        // A mobile that answers owes nothing yet, and the data path may not show the answer.
        if packet.is_closing() || packet.is_boundary() || !packet.elicits_reply() {
            return;
        }
        if self.is_refused(now, mobile, packet) {
            self.refused += 1;
            return;
        }
        let room = if id.is_tunnel() { self.config.tunnel_packets as usize } else { 1 };
        let silence = packet.silence();
        let is_new = silence.map_or(long, |silence| silence.is_flow_new);
        if !self.peers.contains_key(&mobile) {
            let is_unheard = |mobile: &MobileId| is_unheard(&self.peers, mobile);
            self.unreplied.push(mobile, self.table.limit, is_unheard);
        }
        let (key, idle) = (Keyed(self.table.hash_key), &mut self.idle);
        let begin = || Peer::new(key, idle.remove(&mobile).unwrap_or_default());
        let peer = self.peers.entry(mobile).or_insert_with(begin);
        if let (Some(silence), None) = (silence, peer.retries) {
            (peer.link.is_known, peer.waits_since) = (true, Some(silence.since));
            (peer.link.response, peer.link.round_trip) = (silence.response, silence.round_trip);
        }
        if let Some(retries) = peer.retries.as_mut().filter(|retries| retries.next.is_none()) {
            // It has been silent for long, but the sender still tries.
            (retries.since, retries.next) = (now, Some(now + self.config.retry_interval));
        }
        let silence = *peer.waits_since.get_or_insert(now);
        let since = peer.waiting_since(silence);
        let kept = peer.flows.entry(id).or_insert_with(|| {
            self.flows += 1;
            peer.new_in_silence += usize::from(is_new);
            let mut kept = Kept::new(now, is_new);
            kept.half = packet.header().map(|_| Box::new(HalfConnection::new(sender)));
            kept.on_segment(sender, packet, long);
            kept
        });
        if !kept.waits(since) {
            *kept = Kept { half: kept.half.take(), ..Kept::new(now, is_new) };
        }
        kept.take(now, packet, long, room);
        peer.flows.to_back(&id);
        self.peers.to_back(&mobile);
        self.arm(mobile);
    }

    /// A packet came over the link, between this mobile and the network; `None` if it is malformed, or of no
    /// interest itself.
    pub fn on_heard(&mut self, now: Instant, mobile: MobileId, packet: Option<&Q>) {
        let ended = packet.and_then(|packet| self.ended_by(now, mobile, packet));
        if let Some(id) = ended {
            self.remove(mobile, &id);
        }
        if let Some(peer) = self.peers.get_mut(&mobile) {
            peer.on_heard(now, &self.config);
            self.counters.releases += u64::from(peer.next_release == Some(now));
            self.arm(mobile);
        } else if self.is_long_silent(now, mobile)
            && let Some(link) = self.idle.get_mut(&mobile)
        {
            link.down = None;
        }
        if ended.is_some() {
            self.retire(mobile);
        }
    }

    /// The flow that this packet, which came over the link, shows to need nothing any more.
    fn ended_by(&mut self, now: Instant, mobile: MobileId, packet: &Q) -> Option<FlowId> {
        let FlowId { protocol, flow } = packet.id();
        let id = FlowId { protocol, flow: flow.reversed() };
        let link = self.config.towards.side();
        let is_reset = is_unseen_reset(packet, self.is_long_silent(now, mobile));
        let kept = self.kept(mobile, &id)?;
        (is_reset || kept.on_segment(link, packet, false) || kept.is_empty()).then_some(id)
    }

    /// A signal about the link.
    pub fn on_signal(&mut self, now: Instant, mobile: MobileId, signal: LinkSignal) {
        let Some(peer) = self.peers.get_mut(&mobile) else {
            match signal {
                LinkSignal::Fading => {}
                LinkSignal::Down => {
                    let link = self.idle.get(&mobile).copied().unwrap_or_default();
                    self.note_idle(mobile, Link { down: link.down.or(Some(now)), ..link });
                }
                LinkSignal::Up => {
                    self.idle.get_mut(&mobile).into_iter().for_each(|link| link.down = None);
                }
            }
            return;
        };
        match signal {
            LinkSignal::Fading => return,
            LinkSignal::Down => peer.on_down(now),
            LinkSignal::Up => peer.on_up(now, &self.config),
        }
        self.counters.releases += u64::from(peer.next_release == Some(now));
        self.arm(mobile);
    }

    /// Payload bytes that only this node has: none.
    pub fn held(&self) -> u64 {
        0
    }

    /// The deadline passed: `send` is given what is to go to the link, as far as a turn goes.
    pub fn on_deadline(&mut self, now: Instant, mut send: impl FnMut(&Q)) {
        let mut done = 0;
        self.found_silent.clear();
        while done < TURN as u64
            && let Some(&(due, mobile)) = self.deadlines.first()
            && due <= now
        {
            self.deadlines.pop_first();
            done += 1;
            let Some(peer) = self.peers.get_mut(&mobile) else { continue };
            if peer.armed == Some(due) {
                peer.armed = None;
            }
            let sent = peer.release(now, &mut send);
            self.counters.packets_released += sent;
            done += sent;
            if peer.retries.is_none()
                && let Some(since) = peer.waits_since
                && since + peer.threshold(&self.config) <= now
            {
                self.counters.silences += u64::from(peer.link.down.is_none());
                if peer.link.down.is_none() && peer.link.is_known {
                    self.found_silent.push((mobile, since));
                }
                peer.retries = Some(Retries { next: Some(now), ..Retries::new(since) });
            }
            let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
            let keep_alive = now
                + self.config.retry_interval.max(KEEP_ALIVE_SPACING * self.deadlines.len() as u64);
            if peer.retries.is_some_and(|retries| is_due(retries.next)) {
                let sent = peer.retry(now, keep_alive, &self.config, &mut send);
                self.counters.packets_retried += sent;
                done += sent;
            } else if peer.retries.is_some_and(|retries| is_due(retries.keep_alive)) {
                let sent = peer.send_keep_alive(keep_alive, &mut send);
                self.counters.keep_alives += sent;
                done += sent;
            }
            self.arm(mobile);
        }
    }

    /// Time of the next [`on_deadline`](Self::on_deadline); `None` while nothing waits.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(due, _)| due)
    }

    /// Reports on all flows: [`Frozen`](FlowPhase::Frozen) are those that an outage interrupts.
    pub fn reports(&self) -> impl Iterator<Item = FlowReport> + '_ {
        self.peers.values().flat_map(|peer| {
            peer.flows.iter().map(|(id, kept)| {
                let silent = peer.silent_since();
                let since = silent.filter(|&since| kept.waits(peer.waiting_since(since)));
                let phase = since.map_or(FlowPhase::Connected, |_| FlowPhase::Frozen);
                FlowReport { flow: id.flow, phase, since, held: 0, committed: false }
            })
        })
    }

    /// There is no room for this flow, although what is idle has left.
    fn is_refused(&mut self, now: Instant, mobile: MobileId, packet: &Q) -> bool {
        let peer = self.peers.get(&mobile);
        if peer.is_some_and(|peer| peer.flows.contains_key(&packet.id())) {
            return false;
        }
        let is_full = peer.is_some_and(|peer| peer.new_in_silence >= NEW_IN_SILENCE);
        if is_full
            && match packet.silence() {
                Some(silence) => silence.is_flow_new,
                None => self.is_long_silent(now, mobile),
            }
        {
            return true;
        }
        let of_mobile = |wake: &Self| wake.peers.get(&mobile).map_or(0, |peer| peer.flows.len());
        if of_mobile(self) >= self.table.per_mobile {
            self.forget_idle(now, mobile);
        }
        if self.flows >= self.table.limit {
            self.make_room(now);
        }
        self.flows >= self.table.limit || of_mobile(self) >= self.table.per_mobile
    }

    /// Forgets the flow that is idle for longest, of the mobile that is; if that is not long
    /// enough, the mobile that was never heard: it may not exist.
    fn make_room(&mut self, now: Instant) {
        if let Some((&mobile, _)) = self.peers.front()
            && self.forget_idle(now, mobile)
        {
            return;
        }
        let unheard = self.unreplied.pop(|mobile| is_unheard(&self.peers, mobile));
        let Some(mobile) = unheard else { return };
        let Some(peer) = self.peers.remove(&mobile) else { return };
        self.flows -= peer.flows.len();
        self.note_idle(mobile, peer.link);
    }

    /// Forgets the mobile's longest idle flow, if it is idle for long enough; whether it was.
    fn forget_idle(&mut self, now: Instant, mobile: MobileId) -> bool {
        let idle = self.table.idle;
        let oldest = self.peers.get(&mobile).and_then(|peer| peer.flows.front());
        let oldest = oldest.filter(|(_, kept)| now.since(kept.last) >= idle).map(|(&id, _)| id);
        oldest.inspect(|id| self.forget(mobile, id)).is_some()
    }

    fn forget(&mut self, mobile: MobileId, id: &FlowId) {
        self.remove(mobile, id);
        self.retire(mobile);
    }

    /// Removes a flow. Its mobile may have no other.
    fn remove(&mut self, mobile: MobileId, id: &FlowId) {
        let Some(peer) = self.peers.get_mut(&mobile) else { return };
        self.flows -= usize::from(peer.flows.remove(id).is_some());
    }

    /// A mobile has no flow any more: what is known of it stays.
    fn retire(&mut self, mobile: MobileId) {
        if self.peers.get(&mobile).is_some_and(|peer| peer.flows.is_empty())
            && let Some(peer) = self.peers.remove(&mobile)
        {
            self.note_idle(mobile, peer.link);
        }
    }

    fn kept(&mut self, mobile: MobileId, id: &FlowId) -> Option<&mut Kept<Q>> {
        self.peers.get_mut(&mobile)?.flows.get_mut(id)
    }

    /// Silence of a mobile with or without flows: see [`Peer::is_long_silent`].
    fn is_long_silent(&self, now: Instant, mobile: MobileId) -> bool {
        match self.peers.get(&mobile) {
            Some(peer) => peer.is_long_silent(now, &self.config),
            None => {
                let is_long = |since| now.since(since) > self.config.silence;
                self.idle.get(&mobile).and_then(|link| link.down).is_some_and(is_long)
            }
        }
    }

    /// What is known of a mobile without flows. There is room for as many as for flows; the latest
    /// count.
    fn note_idle(&mut self, mobile: MobileId, link: Link) {
        if link != Link::default() {
            self.idle.insert(mobile, link);
        }
        if self.idle.len() > self.table.limit {
            self.idle.pop_front();
        }
    }

    /// Sees to it that the mobile is woken in time.
    fn arm(&mut self, mobile: MobileId) {
        let Some(peer) = self.peers.get_mut(&mobile) else { return };
        if let Some(due) = peer.next_deadline(&self.config)
            && peer.armed.is_none_or(|armed| due < armed)
        {
            peer.armed = Some(due);
            self.deadlines.insert((due, mobile));
        }
    }
}

impl<P: Payload> Middlebox<P> for Wake<Segment<P>> {
    fn on_segment(&mut self, now: Instant, from: Side, segment: Segment<P>, out: &mut Actions<P>) {
        let mobile = self.table.mobile_of(&from.to_mobile(segment.flow));
        if from == self.config.towards.side() {
            self.on_heard(now, mobile, Some(&segment));
        } else {
            self.on_sent(now, mobile, &segment);
        }
        out.forward(from.opposite(), segment);
    }

    fn on_link(&mut self, now: Instant, mobile: MobileId, signal: LinkSignal, _: &mut Actions<P>) {
        self.on_signal(now, mobile, signal);
    }

    fn on_timer(&mut self, now: Instant, out: &mut Actions<P>) {
        let to = self.config.towards.side();
        self.on_deadline(now, |segment| out.inject(to, segment.clone()));
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline()
    }
}
