//! Requests and answers over one connection, by the kernel's TCP or by QUIC. The client asks at
//! regular times, whether or not earlier requests were answered.

use crate::congestion::set_congestion_control;
use crate::host::Host;
use crate::outages::sleep_until;
use crate::quic;
use crate::transfer::{self, Arrivals};
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// From one request to the next.
pub(crate) const EVERY: Duration = Duration::from_millis(100);
/// Sizes of a request and a response, in bytes.
pub(crate) const REQUEST: usize = 100;
pub(crate) const ANSWER: usize = 10_000;

/// An exchange on its way.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Time at which the first request was due.
    pub(crate) begin: Instant,
    /// Bytes that the client has received.
    pub(crate) arrivals: Arc<Arrivals>,
    requests: u32,
    /// The two ends, if the exchange uses QUIC.
    peers: Option<quic::Download>,
}

impl Exchange {
    /// Starts requests for so long, with a folder for QUIC's certificate. `sender` is both ends'
    /// congestion control, or their QUIC stack.
    pub(crate) fn start(
        sender: &str,
        server: (&Host, IpAddr),
        client: &Host,
        length: Duration,
        folder: &Path,
    ) -> Self {
        let requests = (length.as_millis() / EVERY.as_millis()) as u32;
        if let Some(stack) = quic::stack(sender) {
            let peers = quic::Download::of_answers(stack, server, client, requests, folder);
            let arrivals = peers.arrivals();
            // Its first line says when it began.
            arrivals.wait_for(0);
            let begin = arrivals.first().expect("a line");
            return Self { begin, arrivals, requests, peers: Some(peers) };
        }
        let (served, asking) = transfer::open(server, client);
        for socket in [&served, &asking] {
            set_congestion_control(socket, sender);
            socket.set_nodelay(true).unwrap();
        }
        let arrivals = Arc::new(Arrivals::default());
        let (begin, told) = (Instant::now(), arrivals.clone());
        let receiving = asking.try_clone().unwrap();
        thread::spawn(move || answer(served));
        thread::spawn(move || ask(asking, begin, requests));
        thread::spawn(move || receive(receiving, &told));
        Self { begin, arrivals, requests, peers: None }
    }

    /// Waits for the last answer. The longest time from when a request was due until its answer was
    /// there.
    pub(crate) fn finish(self) -> Duration {
        let end = |request: u32| u64::from(request + 1) * ANSWER as u64;
        self.arrivals.wait_for(end(self.requests - 1));
        if let Some(peers) = self.peers {
            peers.finish();
        }
        let response = |request: u32| {
            let answered = self.arrivals.when(end(request)).expect("all answers came");
            answered - (self.begin + request * EVERY)
        };
        (0..self.requests).map(response).max().expect("a request")
    }
}

fn ask(mut socket: TcpStream, begin: Instant, requests: u32) {
    for request in 0..requests {
        sleep_until(begin + request * EVERY);
        socket.write_all(&[1; REQUEST]).unwrap();
    }
    socket.shutdown(Shutdown::Write).unwrap();
}

/// Answers each request once it is there as a whole.
fn answer(mut socket: TcpStream) {
    let mut request = [0; REQUEST];
    while socket.read_exact(&mut request).is_ok() {
        socket.write_all(&[2; ANSWER]).unwrap();
    }
}

fn receive(mut socket: TcpStream, arrivals: &Arrivals) {
    let mut buffer = [0; 1 << 14];
    loop {
        match socket.read(&mut buffer).unwrap() {
            0 => return,
            size => arrivals.note(size as u64),
        }
    }
}
