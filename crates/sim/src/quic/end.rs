//! One end of a QUIC flow.

use super::crypto::{NoTls, ResetKey};
use super::{Clock, transport};
use crate::apps::OutageWatch;
use crate::metrics::QuicMetrics;
use crate::scenario::QuicConfig;
use airtcp_core::{Addr, Bytes, Ecn, Events, Flow, Instant, Stream};
use bytes::{Bytes as Buffer, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId,
    ConnectionIdGenerator, ConnectionStats, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    EndpointConfig, Event, ServerConfig, StreamEvent, StreamId, Transmit, VarInt,
};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

/// Bytes of the connection ids that an endpoint chooses, as quinn's own generators make them; and
/// of the first one, which a client chooses for its server.
const CONNECTION_ID: usize = 8;
const FIRST_CONNECTION_ID: usize = 20;
/// The name that a client asks for; nothing looks at it.
const SERVER_NAME: &str = "server";
/// What a source writes; made at run time, because zeros take room in a binary.
static ZEROS: LazyLock<Vec<u8>> = LazyLock::new(|| vec![0; 1 << 16]);

/// A datagram that an end sends.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) to: Addr,
    pub(crate) payload: Buffer,
    pub(crate) ecn: Ecn,
}

/// What an end is in its flow.
#[derive(Debug)]
pub(crate) enum Role {
    /// Writes so many bytes to one stream, or without end.
    Source(Option<Bytes>),
    /// Reads whatever comes; closes the connection when the stream ends.
    Sink(Option<OutageWatch>),
}

/// The application on an end.
#[derive(Debug)]
enum App {
    Source {
        /// Bytes not yet written; `None`: endless.
        remaining: Option<u64>,
        stream: Option<StreamId>,
        finished: bool,
    },
    Sink {
        stream: Option<StreamId>,
        delivered: u64,
        last_delivery: Instant,
        finished: bool,
        outages: Option<Box<OutageWatch>>,
    },
}

/// One end of a QUIC flow.
pub(crate) struct QuicEnd {
    clock: Clock,
    endpoint: Endpoint,
    /// The peer's address at the start; a server's client may come to have another.
    peer: SocketAddr,
    /// When a client opens the connection, and how; `None` once it has, and for a server.
    opening: Option<(Instant, ClientConfig)>,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Why the connection ended.
    error: Option<ConnectionError>,
    app: App,
    /// Datagrams to send; the world takes them after each call.
    pub(crate) outbox: Vec<Sent>,
    /// For packets that are being made.
    buffer: Vec<u8>,
}

/// Connection ids from a named stream.
struct ConnectionIds(Stream);

impl ConnectionIds {
    fn next(&mut self, len: usize) -> ConnectionId {
        let mut bytes = [0; FIRST_CONNECTION_ID];
        fill(&mut self.0, &mut bytes);
        ConnectionId::new(&bytes[..len])
    }
}

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.next(CONNECTION_ID)
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// Fills the bytes from a stream.
fn fill(stream: &mut Stream, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        let bits = stream.bits().to_le_bytes();
        chunk.copy_from_slice(&bits[..chunk.len()]);
    }
}

fn socket_addr(addr: Addr) -> SocketAddr {
    SocketAddr::new(addr.ip, addr.port)
}

impl QuicEnd {
    /// An end whose datagrams go the way of `flow`. It opens the connection at this time, or waits
    /// for one. Its streams are called `name` and a word.
    pub(crate) fn new(
        clock: Clock,
        config: &QuicConfig,
        flow: &Flow,
        opens_at: Option<Instant>,
        role: Role,
        (seed, name): (u64, &str),
    ) -> Self {
        let stream = |of: &str| Stream::new(seed, &format!("{name}/{of}"));
        let mut endpoint = EndpointConfig::new(Arc::new(ResetKey(stream("reset").bits())));
        let mut rng_seed = [0; 32];
        fill(&mut stream("rng"), &mut rng_seed);
        let ids = stream("ids");
        endpoint
            .rng_seed(Some(rng_seed))
            .cid_generator(move || Box::new(ConnectionIds(ids.clone())));
        let transport = transport(config);
        let mut server = ServerConfig::new(Arc::new(NoTls), Arc::new(NoTls));
        server.transport_config(Arc::clone(&transport));
        let server = opens_at.is_none().then(|| Arc::new(server));
        let opening = opens_at.map(|at| {
            let mut client = ClientConfig::new(Arc::new(NoTls));
            let first = ConnectionIds(stream("first-id")).next(FIRST_CONNECTION_ID);
            client.transport_config(transport).initial_dst_cid_provider(Arc::new(move || first));
            (at, client)
        });
        Self {
            clock,
            endpoint: Endpoint::new(Arc::new(endpoint), server, true, None),
            peer: socket_addr(flow.dst),
            opening,
            connection: None,
            error: None,
            app: App::new(role),
            outbox: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// The next time at which it has something to do.
    pub(crate) fn next_deadline(&mut self) -> Option<Instant> {
        if let Some((at, _)) = self.opening {
            return Some(at);
        }
        let (_, connection) = self.connection.as_mut()?;
        connection.poll_timeout().map(|at| self.clock.simulated(at))
    }

    /// A deadline may have passed.
    pub(crate) fn on_timer(&mut self, now: Instant) {
        let at = self.clock.at(now);
        if self.opening.as_ref().is_some_and(|&(opens, _)| opens <= now) {
            let (_, config) = self.opening.take().expect("it is there");
            self.connection = self.endpoint.connect(at, config, self.peer, SERVER_NAME).ok();
        } else if let Some((_, connection)) = &mut self.connection
            && connection.poll_timeout().is_some_and(|due| due <= at)
        {
            connection.handle_timeout(at);
        }
        self.drive(now);
    }

    /// A datagram has come from the peer, from this address.
    pub(crate) fn on_datagram(&mut self, now: Instant, peer: Addr, payload: Buffer, ecn: Ecn) {
        let at = self.clock.at(now);
        let payload = payload.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        self.buffer.clear();
        let (peer, ecn) = (socket_addr(peer), codepoint(ecn));
        let event = self.endpoint.handle(at, peer, None, ecn, payload, &mut self.buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            // Late copies of a connection's first packet open no second one.
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_some() => {
                self.endpoint.ignore(incoming);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.buffer.clear();
                match self.endpoint.accept(incoming, at, &mut self.buffer, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(refused) => {
                        refused.response.into_iter().for_each(|response| self.send(&response));
                    }
                }
            }
            Some(DatagramEvent::Response(response)) => self.send(&response),
            None => {}
        }
        self.drive(now);
    }

    /// Puts what is in the buffer into the outbox.
    fn send(&mut self, transmit: &Transmit) {
        let payload = Buffer::copy_from_slice(&self.buffer[..transmit.size]);
        let ecn = match transmit.ecn {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
        };
        let to = Addr::new(transmit.destination.ip(), transmit.destination.port());
        self.outbox.push(Sent { to, payload, ecn });
    }

    /// Lets endpoint, connection and application do all they can do now.
    fn drive(&mut self, now: Instant) {
        let at = self.clock.at(now);
        while let Some((handle, connection)) = &mut self.connection {
            let (handle, mut done) = (*handle, true);
            while let Some(event) = connection.poll_endpoint_events() {
                done = false;
                if let Some(event) = self.endpoint.handle_event(handle, event) {
                    connection.handle_event(event);
                }
            }
            while let Some(event) = connection.poll() {
                done = false;
                match event {
                    Event::ConnectionLost { reason } => self.error = Some(reason),
                    Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                        self.app.accept(connection);
                    }
                    _ => {}
                }
            }
            if !connection.is_handshaking() && !connection.is_closed() {
                self.app.poll(now, at, connection);
            }
            self.buffer.clear();
            // A datagram at a time: what a live sender hands over at once goes out one by one, too.
            while let Some((_, connection)) = &mut self.connection
                && let Some(transmit) = connection.poll_transmit(at, 1, &mut self.buffer)
            {
                done = false;
                self.send(&transmit);
                self.buffer.clear();
            }
            if done {
                return;
            }
        }
    }

    fn stats(&self) -> ConnectionStats {
        self.connection.as_ref().map(|(_, connection)| connection.stats()).unwrap_or_default()
    }

    fn state(&self) -> &'static str {
        match &self.connection {
            None => "Idle",
            Some((_, connection)) if connection.is_handshaking() => "Handshake",
            Some((_, connection)) if connection.is_closed() => "Closed",
            Some(_) => "Established",
        }
    }

    /// Why the connection ended, if not because an application closed it.
    fn aborted(&self) -> Option<String> {
        let by_application = |error: &&ConnectionError| {
            matches!(error, ConnectionError::ApplicationClosed(_) | ConnectionError::LocallyClosed)
        };
        self.error.as_ref().filter(|error| !by_application(error)).map(ToString::to_string)
    }
}

impl App {
    fn new(role: Role) -> Self {
        match role {
            Role::Source(bytes) => {
                let remaining = bytes.map(Bytes::get);
                Self::Source { remaining, stream: None, finished: false }
            }
            Role::Sink(outages) => Self::Sink {
                stream: None,
                delivered: 0,
                last_delivery: Instant::ZERO,
                finished: false,
                outages: outages.map(Box::new),
            },
        }
    }

    /// The peer has opened a stream.
    fn accept(&mut self, connection: &mut Connection) {
        if let Self::Sink { stream, .. } = self
            && stream.is_none()
        {
            *stream = connection.streams().accept(Dir::Uni);
        }
    }

    /// Reads or writes as much as the open connection allows.
    fn poll(&mut self, now: Instant, at: std::time::Instant, connection: &mut Connection) {
        match self {
            Self::Source { remaining, stream, finished } if !*finished => {
                *stream = stream.or_else(|| connection.streams().open(Dir::Uni));
                if let Some(stream) = *stream {
                    *finished = write(connection, stream, remaining);
                }
            }
            Self::Source { .. } => {}
            Self::Sink { stream: Some(stream), delivered, last_delivery, finished, outages }
                if !*finished =>
            {
                let (read, ended) = read(connection, *stream);
                if read > 0 {
                    *delivered += read;
                    *last_delivery = now;
                    if let Some(outages) = outages {
                        outages.delivered(now, &mut Events::none());
                    }
                }
                if ended {
                    *finished = true;
                    connection.close(at, VarInt::from_u32(0), Buffer::new());
                }
            }
            Self::Sink { .. } => {}
        }
    }
}

/// Writes what there is room for; true if that was the last of it.
fn write(connection: &mut Connection, stream: StreamId, remaining: &mut Option<u64>) -> bool {
    let mut stream = connection.send_stream(stream);
    loop {
        let offer = remaining.map_or(ZEROS.len(), |left| left.min(ZEROS.len() as u64) as usize);
        if offer == 0 {
            // It fails if the peer has stopped the stream, and then that is the end, too.
            let _ = stream.finish();
            return true;
        }
        let written = stream.write_chunks(&mut [Buffer::from_static(&ZEROS[..offer])]);
        // Blocked, for the time being or for good.
        let Ok(written) = written else { return false };
        if let Some(left) = remaining {
            *left -= written.bytes as u64;
        }
    }
}

/// Reads what is there: the number of bytes, and whether the stream has ended.
fn read(connection: &mut Connection, stream: StreamId) -> (u64, bool) {
    let mut stream = connection.recv_stream(stream);
    let Ok(mut chunks) = stream.read(true) else { return (0, true) };
    let mut bytes = 0;
    let ended = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => bytes += chunk.bytes.len() as u64,
            Ok(None) => break true,
            // Blocked, or reset by the peer, which no peer here does.
            Err(_) => break false,
        }
    };
    // What it returns only asks for a call of `poll_transmit`, which follows.
    let _ = chunks.finalize();
    (bytes, ended)
}

fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

/// A flow as its metrics need it.
#[derive(Clone, Debug)]
pub(crate) struct QuicFlow {
    pub(crate) name: String,
    pub(crate) start: Instant,
    pub(crate) bytes: Option<Bytes>,
}

impl QuicFlow {
    /// The metrics as of `now`.
    pub(crate) fn metrics(
        &self,
        sender: &QuicEnd,
        receiver: &QuicEnd,
        now: Instant,
    ) -> QuicMetrics {
        let (delivered, last_delivery, outages) = match &receiver.app {
            App::Sink { delivered, last_delivery, outages, .. } => {
                (*delivered, *last_delivery, outages.as_deref())
            }
            App::Source { .. } => unreachable!("a receiver reads"),
        };
        let complete = self.bytes.is_some_and(|bytes| delivered >= bytes.get());
        let end = if complete { last_delivery } else { now };
        let active = end.since(self.start).as_secs_f64();
        let per_active_second =
            |bytes: u64| if active > 0.0 { (8 * bytes) as f64 / active } else { 0.0 };
        let [tx, rx] = [sender, receiver].map(QuicEnd::stats);
        let path = tx.path;
        let has_rtt = sender.connection.as_ref().is_some_and(|(_, c)| !c.is_handshaking());
        QuicMetrics {
            name: self.name.clone(),
            throughput: per_active_second(tx.udp_tx.bytes),
            goodput: per_active_second(delivered),
            download_time: complete.then_some(active),
            delivered_bytes: delivered,
            sent_bytes: tx.udp_tx.bytes,
            packets_sent: path.sent_packets,
            packets_lost: path.lost_packets,
            loss_ratio: path.lost_packets as f64 / path.sent_packets.max(1) as f64,
            acks_sent: rx.frame_tx.acks,
            cwnd: path.cwnd,
            srtt: has_rtt.then_some(path.rtt.as_secs_f64()),
            rtt_min: has_rtt.then_some(path.min_rtt.as_secs_f64()),
            congestion_events: path.congestion_events,
            mtu: path.current_mtu,
            outages: outages.map_or(0, OutageWatch::outages),
            outage_dead_time: outages.and_then(OutageWatch::mean_dead_time),
            state: sender.state().to_owned(),
            aborted: sender.aborted().or(receiver.aborted()),
        }
    }
}
