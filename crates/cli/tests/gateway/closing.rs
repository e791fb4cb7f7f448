//! Connections that end while the mobile answers: wake forgets them, and sends nothing for them after
//! an outage that begins right then. It learns of that from few packets, for the kernel does not show
//! those of a mobile that answers.

use crate::capture::Capture;
use crate::lateness::{self, Wait};
use crate::testbed::{Place, Plan, Testbed, possible};
use crate::transfer;
use airtcp_core::LinkSignal::{Fading, Up};
use socket2::SockRef;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Connections of each kind.
const OF_EACH: usize = 3;
/// After this time wake lists no connection that has ended.
const FORGOTTEN: Duration = Duration::from_secs(1);
/// The timers of Linux's senders expire 3 s after it began, and 6 s.
const OUTAGE: Duration = Duration::from_secs(4);
/// Bound on the dead time of a woken sender. Other tests measure it.
const WOKEN: Duration = Duration::from_millis(400);
/// Longest wait for data.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a connection ends. Wake keeps packets of the `near` end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Not.
    Never,
    /// The far end sends its FIN, and goes on to receive.
    OfFar,
    /// The near end does so.
    OfNear,
    NearFirst,
    FarFirst,
    ResetByNear,
    ResetByFar,
}

impl End {
    const ALL: [Self; 7] = [
        Self::Never,
        Self::OfFar,
        Self::OfNear,
        Self::NearFirst,
        Self::FarFirst,
        Self::ResetByNear,
        Self::ResetByFar,
    ];

    /// The near end may still wait for answers.
    fn is_open(self) -> bool {
        matches!(self, Self::Never | Self::OfFar)
    }
}

/// A connection; its ends are dropped when they close.
struct Connection {
    end: End,
    near: Option<TcpStream>,
    far: Option<TcpStream>,
    /// Ports of the near and the far end.
    ports: [u16; 2],
}

impl Connection {
    fn new(end: End, near: TcpStream, far: TcpStream) -> Self {
        let ports = [&near, &far].map(|end| {
            end.set_read_timeout(Some(PATIENCE)).unwrap();
            end.local_addr().unwrap().port()
        });
        Self { end, near: Some(near), far: Some(far), ports }
    }

    /// Sends so much from the near end.
    fn send(&self, bytes: usize) {
        self.near.as_ref().unwrap().write_all(&vec![1; bytes]).unwrap();
    }

    /// Receives so much at the far end.
    fn receive(&self, bytes: usize) {
        self.far.as_ref().unwrap().read_exact(&mut vec![0; bytes]).unwrap();
    }

    /// Sends so much the other way, too.
    fn exchange(&self, bytes: usize) {
        self.send(bytes);
        self.receive(bytes);
        self.far.as_ref().unwrap().write_all(&vec![2; bytes]).unwrap();
        self.near.as_ref().unwrap().read_exact(&mut vec![0; bytes]).unwrap();
    }

    fn close(&mut self) {
        match self.end {
            End::Never => {}
            End::OfFar => finish(&self.far, &self.near),
            End::OfNear => finish(&self.near, &self.far),
            End::NearFirst => {
                finish(&self.near, &self.far);
                self.far = None;
                self.near = None;
            }
            End::FarFirst => {
                finish(&self.far, &self.near);
                self.near = None;
                self.far = None;
            }
            End::ResetByNear => reset(&mut self.near),
            End::ResetByFar => reset(&mut self.far),
        }
    }
}

/// Sends a FIN and waits for it at the other end.
fn finish(from: &Option<TcpStream>, to: &Option<TcpStream>) {
    from.as_ref().unwrap().shutdown(Shutdown::Write).unwrap();
    assert_eq!(to.as_ref().unwrap().read(&mut [0]).unwrap(), 0);
}

fn reset(end: &mut Option<TcpStream>) {
    let end = end.take().unwrap();
    SockRef::from(&end).set_linger(Some(Duration::ZERO)).unwrap();
}

/// Connections that wake has, most of which have ended then.
fn expect_forgotten(plan: &Plan) {
    let bed = Testbed::new(plan);
    lateness::watch();
    let is_on_board = plan.place == Place::OnBoard;
    let open = |end| {
        let [fixed, _] = bed.addresses();
        let (server, client) = transfer::open((&bed.fixed, fixed), &bed.mobile);
        let (near, far) = if is_on_board { (client, server) } else { (server, client) };
        Connection::new(end, near, far)
    };
    let mut all: Vec<Connection> =
        End::ALL.into_iter().flat_map(|end| [end; OF_EACH]).map(open).collect();
    // By the mobile's port.
    let device = |c: &Connection| format!(":{}", c.ports[usize::from(!is_on_board)]);
    let listed = || -> BTreeSet<String> {
        let flows = bed.daemon().status().flows;
        flows.iter().map(|flow| flow.device[flow.device.rfind(':').unwrap()..].to_owned()).collect()
    };
    // The kernel shows all packets, and wake takes some of each.
    bed.signal(Fading);
    all.iter().for_each(|c| c.exchange(100));
    assert_eq!(listed(), all.iter().map(device).collect());
    bed.signal(Up);
    // What follows it does not show: all numbers have changed.
    all.iter().for_each(|c| c.exchange(20_000));
    thread::sleep(Duration::from_millis(200));

    let begin = Instant::now();
    all.iter_mut().for_each(Connection::close);
    let closed = Instant::now();
    let open: BTreeSet<String> = all.iter().filter(|c| c.end.is_open()).map(device).collect();
    while listed() != open {
        let length = closed.elapsed();
        let wait = Wait { length, allowance: lateness::allowance(begin) };
        let left: Vec<End> =
            all.iter().filter(|c| listed().contains(&device(c))).map(|c| c.end).collect();
        assert!(wait.is_within(FORGOTTEN), "{plan:?}: wake still has {left:?}");
        thread::sleep(Duration::from_millis(5));
    }

    let far = if is_on_board { &bed.fixed } else { &bed.mobile };
    let capture = Capture::start(far);
    bed.link(false);
    let waiting = || all.iter().filter(|c| c.end.is_open());
    waiting().for_each(|c| c.send(100));
    thread::sleep(OUTAGE);
    let up = bed.link(true);
    waiting().for_each(|c| c.receive(100));
    let dead = Wait { length: up.elapsed(), allowance: lateness::allowance(up) };
    assert!(dead.is_within(WOKEN), "{plan:?}: {dead:?}");
    // What wake still has to send.
    thread::sleep(Duration::from_millis(500));
    let sent: BTreeSet<[u16; 2]> = capture
        .finish()
        .map(|(_, segment)| [segment.flow.src.port, segment.flow.dst.port])
        .collect();
    for connection in &all {
        let is_sent = sent.contains(&connection.ports);
        assert_eq!(is_sent, connection.end.is_open(), "{plan:?}: {:?}", connection.end);
    }
}

#[test]
fn wake_forgets_connections_that_end_while_the_mobile_answers() {
    if !possible() {
        return;
    }
    thread::scope(|scope| {
        for place in [Place::Router, Place::OnBoard] {
            // By itself the gateway takes netfilter, where it can.
            for (path, ipv6) in [("auto", false), ("tc", false), ("tc", true)] {
                let config = format!("data-path = \"{path}\"\n");
                let plan = Plan { config, ipv6, place, ..Plan::with("\"wake\"") };
                scope.spawn(move || expect_forgotten(&plan));
            }
        }
    });
}
