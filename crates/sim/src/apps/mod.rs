//! Applications: those at both ends of a TCP flow, which look at their endpoint after each call to
//! it and at times of their own, and [`udp`], sources of datagrams.
//!
//! A bulk transfer is a [`BulkSource`] and a [`Sink`]. Where the receiver asks ([`dialogue`]), it
//! has a client, which asks as [`Requests`](requests::Requests) or a [`Player`](video::Player)
//! say, and the sender a server.

pub(crate) mod call;
pub(crate) mod dialogue;
mod on_off;
mod outages;
mod requests;
pub(crate) mod tally;
pub(crate) mod udp;
pub(crate) mod video;

use airtcp_core::{Bytes, Instant, Length};
use airtcp_tcp::{Endpoint, Io, TcpState};
use dialogue::{Client, Server};
pub(crate) use on_off::{OnOffSource, Periods};
pub(crate) use outages::OutageWatch;
pub(crate) use requests::Requests;

/// The application on top of an endpoint.
#[derive(Debug)]
pub(crate) enum App {
    /// The data sender's.
    Source(BulkSource),
    /// The same, with pauses.
    OnOff(Box<OnOffSource>),
    /// The data receiver's.
    Sink(Sink),
    /// That of a receiver that asks for its data.
    Client(Box<Client>),
    /// That of the sender that it asks.
    Server(Box<Server>),
}

impl App {
    /// Does what the state of the endpoint now allows.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint<Length>,
        io: &mut Io<'_, Length>,
    ) {
        match self {
            Self::Source(source) => source.poll(now, endpoint, io),
            Self::Sink(sink) => sink.poll(now, endpoint, io),
            Self::OnOff(source) => source.poll(now, endpoint, io),
            Self::Client(client) => client.poll(now, endpoint, io),
            Self::Server(server) => server.poll(now, endpoint, io),
        }
    }

    /// The time at which it has something to do of its own accord.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Source(_) | Self::Sink(_) | Self::Server(_) => None,
            Self::OnOff(source) => source.next_deadline(),
            Self::Client(client) => client.next_deadline(),
        }
    }

    /// What it has received, if it is the data receiver's.
    pub(crate) fn inbox(&self) -> Option<&Inbox> {
        match self {
            Self::Source(_) | Self::OnOff(_) | Self::Server(_) => None,
            Self::Sink(sink) => Some(&sink.inbox),
            Self::Client(client) => Some(client.inbox()),
        }
    }
}

/// True while the application may write: before the handshake completes nobody reads, and closing
/// would abandon the connection.
fn is_open(endpoint: &Endpoint<Length>) -> bool {
    matches!(endpoint.state(), TcpState::Established | TcpState::CloseWait)
}

/// Writes as fast as the send buffer accepts: for ever, or a number of bytes and then closes.
#[derive(Debug)]
pub(crate) struct BulkSource {
    /// Bytes not yet written; `None`: endless.
    remaining: Option<u64>,
    /// Size of the endpoint's send buffer.
    buffer: u64,
    closed: bool,
}

impl BulkSource {
    /// For `bytes`, or endless, with a send buffer of `buffer`.
    pub(crate) fn new(bytes: Option<Bytes>, buffer: Bytes) -> Self {
        Self { remaining: bytes.map(Bytes::get), buffer: buffer.get(), closed: false }
    }

    #[inline]
    fn poll(&mut self, now: Instant, endpoint: &mut Endpoint<Length>, io: &mut Io<'_, Length>) {
        if self.closed || !is_open(endpoint) {
            return;
        }
        let Some(space) = space_to_refill(endpoint, self.buffer) else { return };
        let offer = self.remaining.map_or(space, |remaining| remaining.min(space));
        if offer > 0 {
            let taken = endpoint.write(now, &Length(offer), io) as u64;
            self.remaining = self.remaining.map(|remaining| remaining - taken);
        }
        if self.remaining == Some(0) {
            self.closed = true;
            endpoint.close(now, io);
        }
    }
}

/// Free bytes in a send buffer of this size; `None` if a refill can wait, with more than a quarter
/// of it unsent. So a refill does not happen on every ACK.
#[inline]
fn space_to_refill(endpoint: &Endpoint<Length>, buffer: u64) -> Option<u64> {
    let space = endpoint.send_space() as u64;
    let unsent = buffer.saturating_sub(space + u64::from(endpoint.flight()));
    (unsent <= buffer / 4).then_some(space)
}

/// What a data receiver has received.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    last_delivery: Instant,
    outages: Option<Box<OutageWatch>>,
}

impl Inbox {
    /// Also measures recovery from the outages of the flow's path.
    pub(crate) fn new(outages: Option<OutageWatch>) -> Self {
        Self { outages: outages.map(Box::new), ..Self::default() }
    }

    /// The measurements of outages, if the flow's path has any.
    pub(crate) fn outages(&self) -> Option<&OutageWatch> {
        self.outages.as_deref()
    }

    /// Delivery time of the latest byte.
    pub(crate) fn last_delivery(&self) -> Instant {
        self.last_delivery
    }

    /// Reads whatever has arrived; returns the number of bytes.
    #[inline]
    fn take(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint<Length>,
        io: &mut Io<'_, Length>,
    ) -> u64 {
        if endpoint.readable() == 0 {
            return 0;
        }
        let Length(taken) = endpoint.read(now, usize::MAX, io);
        self.last_delivery = now;
        if let Some(outages) = &mut self.outages {
            outages.delivered(now, &mut io.events);
        }
        taken
    }
}

/// Reads at once whatever arrives, and closes when the peer has.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    inbox: Inbox,
    closed: bool,
}

impl Sink {
    /// A sink that has received nothing.
    pub(crate) fn new(inbox: Inbox) -> Self {
        Self { inbox, closed: false }
    }

    #[inline]
    fn poll(&mut self, now: Instant, endpoint: &mut Endpoint<Length>, io: &mut Io<'_, Length>) {
        self.inbox.take(now, endpoint, io);
        if !self.closed && endpoint.is_eof() {
            self.closed = true;
            endpoint.close(now, io);
        }
    }
}
