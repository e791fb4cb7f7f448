//! A client and a server on one connection: a request, its answer, the next request.
//!
//! Payload is only a length here, so what a request asks for travels beside its bytes: the client
//! puts it into a queue, from which the server takes it once the bytes are there.

use super::video::Player;
use super::{Inbox, Requests, is_open, space_to_refill};
use airtcp_core::{Bytes, Duration, Events, Instant, Length};
use airtcp_tcp::{Endpoint, Io};
use std::sync::mpsc;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Its own size.
    pub(crate) size: Bytes,
    /// Size of the answer that it asks for.
    pub(crate) answer: Bytes,
}

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It asks for this.
    Ask(Request),
    /// It waits until this time.
    Wait(Instant),
    /// It has all it wants, and closes the connection.
    Done,
}

/// What a client wants.
#[derive(Debug)]
pub(crate) enum Wants {
    Requests(Box<Requests>),
    Video(Box<Player>),
}

impl Wants {
    /// Goes on to `now`.
    fn advance(&mut self, now: Instant, events: &mut Events<'_>) {
        match self {
            Self::Requests(_) => {}
            Self::Video(player) => player.advance(now, events),
        }
    }

    /// What to do now that no answer is awaited.
    fn next(&mut self, now: Instant, events: &mut Events<'_>) -> Next {
        match self {
            Self::Requests(requests) => requests.next(now),
            Self::Video(player) => player.next(now, events),
        }
    }

    /// An answer is complete, `took` after its request.
    fn answered(&mut self, now: Instant, answer: Bytes, took: Duration, events: &mut Events<'_>) {
        match self {
            Self::Requests(requests) => requests.answered(now, answer, took, events),
            Self::Video(player) => player.answered(now, answer, took, events),
        }
    }

    /// The time at which something happens without the network.
    fn next_change(&self) -> Option<Instant> {
        match self {
            Self::Requests(_) => None,
            Self::Video(player) => player.next_change(),
        }
    }
}

/// An answer on its way.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    /// Time of its request.
    since: Instant,
    size: Bytes,
    missing: u64,
}

/// The end that asks. It opens the connection.
#[derive(Debug)]
pub(crate) struct Client {
    wants: Wants,
    to_server: mpsc::Sender<Request>,
    inbox: Inbox,
    /// Time from which the first answer is awaited: the opening of the connection.
    opened: Option<Instant>,
    awaited: Option<Awaited>,
    /// Bytes of the request that the send buffer has yet to take.
    unwritten: u64,
    /// Time of the next request.
    due: Option<Instant>,
    closed: bool,
}

impl Client {
    /// A client whose connection opens at `opened`, and its server with a send buffer of this size.
    pub(crate) fn with_server(
        wants: Wants,
        inbox: Inbox,
        opened: Instant,
        buffer: Bytes,
    ) -> (Self, Server) {
        let (to_server, requests) = mpsc::channel();
        let client = Self {
            wants,
            to_server,
            inbox,
            opened: Some(opened),
            awaited: None,
            unwritten: 0,
            due: None,
            closed: false,
        };
        (client, Server { requests, next: None, received: 0, owed: 0, buffer, closed: false })
    }

    pub(crate) fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// What it wants, and how far it has got.
    pub(crate) fn wants(&self) -> &Wants {
        &self.wants
    }

    pub(super) fn poll(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint<Length>,
        io: &mut Io<'_, Length>,
    ) {
        self.due = None;
        self.wants.advance(now, &mut io.events);
        let taken = self.inbox.take(now, endpoint, io);
        if let Some(awaited) = &mut self.awaited {
            awaited.missing = awaited.missing.saturating_sub(taken);
            if awaited.missing == 0 {
                let Awaited { since, size, .. } = *awaited;
                self.awaited = None;
                self.wants.answered(now, size, now.since(since), &mut io.events);
            }
        }
        if self.closed || !is_open(endpoint) {
            return;
        }
        if endpoint.is_eof() {
            // The server has given up.
            return self.close(now, endpoint, io);
        }
        if self.awaited.is_none() {
            match self.wants.next(now, &mut io.events) {
                Next::Ask(request) => self.ask(now, request),
                Next::Wait(until) => self.due = Some(until),
                Next::Done => return self.close(now, endpoint, io),
            }
        }
        if self.unwritten > 0 {
            self.unwritten -= endpoint.write(now, &Length(self.unwritten), io) as u64;
        }
    }

    fn ask(&mut self, now: Instant, request: Request) {
        let since = self.opened.take().unwrap_or(now);
        self.awaited = Some(Awaited { since, size: request.answer, missing: request.answer.get() });
        self.unwritten = request.size.get();
        // A server that is gone reads nothing.
        let _ = self.to_server.send(request);
    }

    fn close(&mut self, now: Instant, endpoint: &mut Endpoint<Length>, io: &mut Io<'_, Length>) {
        self.closed = true;
        endpoint.close(now, io);
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        [self.due, self.wants.next_change()].into_iter().flatten().min()
    }
}

/// The end that answers.
#[derive(Debug)]
pub(crate) struct Server {
    requests: mpsc::Receiver<Request>,
    /// The request whose bytes come next.
    next: Option<Request>,
    /// Bytes of it that are there.
    received: u64,
    /// Bytes of answers that the send buffer has yet to take.
    owed: u64,
    /// Size of the send buffer.
    buffer: Bytes,
    closed: bool,
}

impl Server {
    pub(super) fn poll(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint<Length>,
        io: &mut Io<'_, Length>,
    ) {
        if endpoint.readable() > 0 {
            let Length(taken) = endpoint.read(now, usize::MAX, io);
            self.received += taken;
        }
        if self.closed || !is_open(endpoint) {
            return;
        }
        while let Some(request) = self.next.take().or_else(|| self.requests.try_recv().ok()) {
            if self.received < request.size.get() {
                self.next = Some(request);
                break;
            }
            self.received -= request.size.get();
            self.owed += request.answer.get();
        }
        if self.owed > 0
            && let Some(space) = space_to_refill(endpoint, self.buffer.get())
        {
            let offer = self.owed.min(space);
            if offer > 0 {
                self.owed -= endpoint.write(now, &Length(offer), io) as u64;
            }
        }
        if self.owed == 0 && endpoint.is_eof() {
            self.closed = true;
            endpoint.close(now, io);
        }
    }
}
