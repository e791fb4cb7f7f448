//! Applications: those at both ends of a TCP flow, which look at their endpoint after each call to
//! it, and [`udp`], sources of datagrams.

mod outages;
pub(crate) mod udp;

use airtcp_core::{Bytes, Instant, Length};
use airtcp_tcp::{Endpoint, Io, TcpState};
pub(crate) use outages::OutageWatch;

/// The application on top of an endpoint.
#[derive(Debug)]
pub(crate) enum App {
    /// The data sender's.
    Source(BulkSource),
    /// The data receiver's.
    Sink(Sink),
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
        }
    }
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
        // Before the handshake completes nobody reads, and closing would abandon the connection.
        if self.closed || !matches!(endpoint.state(), TcpState::Established | TcpState::CloseWait) {
            return;
        }
        // With more than a quarter of the buffer unsent, a refill can wait; so it does not happen
        // on every ACK.
        let space = endpoint.send_space() as u64;
        let unsent = self.buffer.saturating_sub(space + u64::from(endpoint.flight()));
        if unsent > self.buffer / 4 {
            return;
        }
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

/// Reads at once whatever arrives, and closes when the peer has.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    last_delivery: Instant,
    closed: bool,
    outages: Option<Box<OutageWatch>>,
}

impl Sink {
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

    #[inline]
    fn poll(&mut self, now: Instant, endpoint: &mut Endpoint<Length>, io: &mut Io<'_, Length>) {
        if endpoint.readable() > 0 {
            endpoint.read(now, usize::MAX, io);
            self.last_delivery = now;
            if let Some(outages) = &mut self.outages {
                outages.delivered(now, &mut io.events);
            }
        }
        if !self.closed && endpoint.is_eof() {
            self.closed = true;
            endpoint.close(now, io);
        }
    }
}
