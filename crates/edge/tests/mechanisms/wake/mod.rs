//! Wake from outside: what is kept of a flow, when it is sent, and that nothing else happens.
//! `signals`: with signals of the link; `silence`: without; `partial`: with a data path that shows
//! only what goes to silent mobiles; `closed`: connections that end.

mod closed;
mod partial;
mod properties;
mod signals;
mod silence;

use airtcp_core::{Addr, Duration, Flow, Instant, Length, LinkSignal, Segment, SeqNum};
use airtcp_edge::{FlowId, FlowTableConfig, MobileId, Packet, Silence, Wake, WakeConfig};
use std::net::{IpAddr, Ipv4Addr};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A packet with a name to know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    id: FlowId,
    end: Option<SeqNum>,
    boundary: bool,
    elicits_reply: bool,
    silence: Option<Silence>,
    /// A keep-alive of its flow exists.
    keep_alives: bool,
    name: String,
}

impl Packet for Named {
    fn id(&self) -> FlowId {
        self.id
    }
    fn seq_end(&self) -> Option<SeqNum> {
        self.end
    }
    /// They show nothing of their connections: `closed` has real segments.
    fn header(&self) -> Option<Segment<Length>> {
        None
    }
    fn is_boundary(&self) -> bool {
        self.boundary
    }
    fn elicits_reply(&self) -> bool {
        self.elicits_reply
    }
    fn silence(&self) -> Option<Silence> {
        self.silence
    }
    fn keep_alive(&self) -> Option<Self> {
        self.keep_alives.then(|| Self { name: format!("{}?", self.name), ..self.clone() })
    }
}

fn ip(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
}

/// The only mobile, unless a test has more.
const MOBILE: u8 = 3;

fn id(protocol: u8, port: u16, mobile: u8) -> FlowId {
    FlowId {
        protocol,
        flow: Flow { src: Addr::new(ip(1), port), dst: Addr::new(ip(mobile), 5001) },
    }
}

pub(crate) fn udp(port: u16, name: impl Into<String>) -> Named {
    let name = name.into();
    let id = id(UDP, port, MOBILE);
    let (boundary, elicits_reply, keep_alives) = (false, true, true);
    Named { id, end: None, boundary, elicits_reply, silence: None, keep_alives, name }
}

pub(crate) fn tcp(port: u16, end: u32) -> Named {
    // The sequence numbers wrap after 1000.
    let end = SeqNum(u32::MAX - 999) + end;
    let name = format!("{}", end.offset_from(SeqNum(u32::MAX - 999)));
    Named { id: id(TCP, port, MOBILE), end: Some(end), ..udp(port, name) }
}

/// A node, and what it sends.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) wake: Wake<Named>,
    pub(crate) now: Instant,
    /// Time at which the script begins.
    origin: Instant,
    pub(crate) mobile: MobileId,
}

impl Node {
    pub(crate) fn new() -> Self {
        Self::with(WakeConfig::default(), FlowTableConfig::default())
    }

    pub(crate) fn with(config: WakeConfig, table: FlowTableConfig) -> Self {
        let (wake, now) = (Wake::new(config, table), Instant::ZERO);
        Self { wake, now, origin: now, mobile: MobileId::Host(ip(MOBILE)) }
    }

    /// The mobile has been heard, and nothing waits.
    pub(crate) fn known() -> Self {
        let mut node = Self::new();
        node.answered(udp(1, "long ago"));
        node.until(10_000);
        node.origin = node.now;
        node
    }

    pub(crate) fn send(&mut self, packet: Named) {
        self.wake.on_sent(self.now, self.mobile, &packet);
    }

    pub(crate) fn hear(&mut self) {
        self.wake.on_heard(self.now, self.mobile, None);
    }

    /// A packet that is answered at once.
    pub(crate) fn answered(&mut self, packet: Named) {
        self.send(packet);
        self.hear();
    }

    pub(crate) fn signal(&mut self, signal: LinkSignal) {
        self.wake.on_signal(self.now, self.mobile, signal);
    }

    /// Lets time pass up to `at` milliseconds after the start; what is sent, and when.
    pub(crate) fn until(&mut self, at: u64) -> Vec<String> {
        let end = self.origin + Duration::from_millis(at);
        let mut all = Vec::new();
        while let Some(due) = self.wake.deadline()
            && due <= end
        {
            let now = due.max(self.now);
            let (ms, before) = (now.since(self.origin).as_millis(), all.len());
            self.wake.on_deadline(now, |packet| all.push(format!("{ms} {}", packet.name)));
            let goes_on = self.wake.deadline().is_none_or(|next| next > now);
            assert!(goes_on || all.len() > before, "the deadline stays");
        }
        self.now = end;
        all
    }

    /// Milliseconds since the start.
    pub(crate) fn ms(&self) -> u64 {
        self.now.since(self.origin).as_millis()
    }

    /// Packets sent at once.
    pub(crate) fn sends(&mut self) -> Vec<String> {
        let now = self.ms();
        let prefix = format!("{now} ");
        let strip = |line: String| line.strip_prefix(&prefix).map_or(line.clone(), str::to_owned);
        self.until(now).into_iter().map(strip).collect()
    }
}
