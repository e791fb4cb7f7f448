//! The host under test: its sockets and connections, and the segments it sends.

use super::info::View;
use super::packet::LOCAL_ISN;
use crate::settings::Settings;
use airtcp_core::{Addr, Events, Flags, Flow, Instant, Length, Segment};
use airtcp_tcp::config::EcnConfig;
use airtcp_tcp::{Endpoint, Io, TcpConfig, TcpState};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

/// Addresses of the host and of the peer, the same for all connections of a script.
pub(super) const LOCAL: Addr = Addr::new(IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1)), 8080);
const REMOTE: Addr = Addr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 12_345);

/// A segment sent, and its time.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) segment: Segment<Length>,
}

/// An open file descriptor.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) config: TcpConfig,
    pub(super) kind: SocketKind,
    pub(super) nonblocking: bool,
    /// Value of `SO_SNDBUF`, if it was set.
    pub(super) send_buffer: Option<i64>,
    /// True with `SO_LINGER` and a time of 0: close sends a RST.
    pub(super) resets_on_close: bool,
    pub(super) shut_read: bool,
}

#[derive(Debug)]
pub(super) enum SocketKind {
    /// Neither connected nor listening yet.
    Fresh,
    /// Listening: indices of the connections to be accepted.
    Listener(VecDeque<usize>),
    /// Connected: index of the connection.
    Connected(usize),
}

/// A connection, with or without a socket.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) endpoint: Endpoint<Length>,
    pub(super) config: TcpConfig,
    /// The listening descriptor that will accept it.
    listener: Option<i64>,
    /// The application has closed the connection.
    pub(super) orphan: bool,
    /// The application has received the error of the abort.
    pub(super) error_told: bool,
    /// Time at which data last arrived.
    last_data: Instant,
}

impl Connection {
    /// The state that `tcp_info` reads.
    pub(super) fn view(&self, now: Instant) -> View<'_> {
        let since_data = now.since(self.last_data);
        View { endpoint: &self.endpoint, config: &self.config, now, since_data }
    }
}

/// The host on which the script's calls run.
#[derive(Debug)]
pub(super) struct Host {
    /// Settings of every new socket.
    pub(super) config: TcpConfig,
    /// ECN mode of connections that the host opens.
    pub(super) ecn_of_connect: EcnConfig,
    pub(super) sockets: BTreeMap<i64, Socket>,
    pub(super) connections: Vec<Connection>,
    /// Segments sent that no event of the script has consumed yet.
    pub(super) sent: VecDeque<Sent>,
    out: Vec<Segment<Length>>,
    /// A socket has started to listen since the last connection: the next SYN is for it.
    pub(super) awaits_syn: bool,
}

impl Host {
    pub(super) fn new(config: TcpConfig, ecn_of_connect: EcnConfig) -> Self {
        Self {
            config,
            ecn_of_connect,
            sockets: BTreeMap::new(),
            connections: Vec::new(),
            sent: VecDeque::new(),
            out: Vec::new(),
            awaits_syn: false,
        }
    }

    /// Applies changed sysctls.
    pub(super) fn set(&mut self, settings: &Settings) {
        self.config = settings.config.clone();
        self.ecn_of_connect = settings.ecn_of_connect;
        for connection in &mut self.connections {
            connection.endpoint.set_accecn_option(settings.config.accecn_option);
        }
    }

    /// Flow of segments from the peer.
    pub(super) fn inbound_flow() -> Flow {
        Flow { src: REMOTE, dst: LOCAL }
    }

    /// The connection that the script currently deals with: the last one.
    pub(super) fn current(&self) -> Option<&Connection> {
        self.connections.last()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.connections.iter().filter_map(|c| c.endpoint.next_deadline()).min()
    }

    pub(super) fn on_timer(&mut self, now: Instant) {
        for index in 0..self.connections.len() {
            self.with(now, index, |endpoint, io| endpoint.on_timer(now, io));
        }
    }

    /// Calls an endpoint and collects the segments that it sends.
    pub(super) fn with<T>(
        &mut self,
        now: Instant,
        index: usize,
        act: impl FnOnce(&mut Endpoint<Length>, &mut Io<'_, Length>) -> T,
    ) -> T {
        let mut io = Io { out: &mut self.out, events: Events::none() };
        let result = act(&mut self.connections[index].endpoint, &mut io);
        self.sent.extend(self.out.drain(..).map(|segment| Sent { at: now, segment }));
        self.announce(index);
        result
    }

    /// Queues a connection for accept once its handshake is over.
    fn announce(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let opening = matches!(
            connection.endpoint.state(),
            TcpState::Listen | TcpState::SynReceived | TcpState::SynSent
        );
        if opening {
            return;
        }
        if let Some(fd) = connection.listener.take()
            && let Some(Socket { kind: SocketKind::Listener(queue), .. }) =
                self.sockets.get_mut(&fd)
        {
            queue.push_back(index);
        }
    }

    /// Opens a connection with these settings; returns its index.
    pub(super) fn open(
        &mut self,
        now: Instant,
        config: &TcpConfig,
        listener: Option<i64>,
    ) -> usize {
        let flow = Flow { src: LOCAL, dst: REMOTE };
        // Sysctls of ECN count when a connection begins, not when its socket was made.
        let ecn = if listener.is_some() { self.config.ecn } else { self.ecn_of_connect };
        let accecn_option = self.config.accecn_option;
        let config = &TcpConfig { ecn, accecn_option, ..config.clone() };
        // Linux's MSS has room for options, an endpoint's is without timestamps.
        let timestamps = if config.timestamps { 12 } else { 0 };
        let endpoint = TcpConfig { mss: config.mss - timestamps, ..config.clone() };
        self.connections.push(Connection {
            endpoint: Endpoint::new(endpoint, flow, LOCAL_ISN),
            config: config.clone(),
            listener,
            orphan: false,
            error_told: false,
            last_data: now,
        });
        self.connections.len() - 1
    }

    /// Delivers a segment. `reply` follows after the application's turn.
    pub(super) fn on_segment(&mut self, now: Instant, segment: Segment<Length>) -> Option<usize> {
        let index = self.connection_for(now, &segment);
        let orphaned = index.is_some_and(|index| self.is_for_nobody(index, &segment));
        let Some(index) = index.filter(|_| !orphaned) else {
            if let Some(index) = index {
                self.drop_quietly(now, index);
            }
            self.refuse(now, segment);
            return None;
        };
        // Linux counts from the handshake where no data has come.
        if segment.payload.0 > 0 || segment.flags.contains(Flags::SYN) {
            self.connections[index].last_data = now;
        }
        self.with(now, index, |endpoint, io| endpoint.on_segment(now, segment, io));
        Some(index)
    }

    /// Sends the acknowledgement that is still owed.
    pub(super) fn reply(&mut self, now: Instant, index: usize) {
        self.with(now, index, |endpoint, io| endpoint.reply(now, io));
    }

    /// Index of the connection for a segment: the last one, unless it has ended. A SYN opens one if
    /// a socket listens.
    fn connection_for(&mut self, now: Instant, segment: &Segment<Length>) -> Option<usize> {
        let last = self.connections.len().checked_sub(1);
        let state = last.map(|index| self.connections[index].endpoint.state());
        let over = matches!(state, None | Some(TcpState::Closed | TcpState::TimeWait));
        let is_syn = segment.flags.contains(Flags::SYN) && segment.ack.is_none();
        if is_syn && (over || self.awaits_syn) {
            let mut sockets = self.sockets.iter().rev();
            let listener =
                sockets.find(|(_, socket)| matches!(socket.kind, SocketKind::Listener(_)));
            if let Some((fd, config)) = listener.map(|(fd, socket)| (*fd, socket.config.clone())) {
                self.awaits_syn = false;
                let index = self.open(now, &config, Some(fd));
                self.with(now, index, |endpoint, _| endpoint.listen());
                return Some(index);
            }
        }
        // TIME-WAIT still answers.
        last.filter(|_| state != Some(TcpState::Closed))
    }

    /// True for data on a connection that the application has closed: it is reset (RFC 1122
    /// §4.2.2.13, RFC 2525 §2.17).
    fn is_for_nobody(&self, index: usize, segment: &Segment<Length>) -> bool {
        let connection = &self.connections[index];
        connection.orphan
            && segment.payload.0 > 0
            && matches!(connection.endpoint.state(), TcpState::FinWait1 | TcpState::FinWait2)
    }

    /// Ends the connection without sending anything.
    fn drop_quietly(&mut self, now: Instant, index: usize) {
        let before = self.sent.len();
        self.with(now, index, |endpoint, io| endpoint.abort(now, io));
        self.sent.truncate(before);
    }

    /// Answers like a host without such a connection.
    fn refuse(&mut self, now: Instant, segment: Segment<Length>) {
        let flow = segment.flow.reversed();
        let mut nobody = Endpoint::new(self.config.clone(), flow, LOCAL_ISN);
        let mut io = Io { out: &mut self.out, events: Events::none() };
        nobody.on_segment(now, segment, &mut io);
        self.sent.extend(self.out.drain(..).map(|segment| Sent { at: now, segment }));
    }
}
