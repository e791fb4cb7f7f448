//! Time that the gateway's loop does not serve packets when all mobiles go down and come back at
//! once, and when it reloads its configuration meanwhile.
//!
//! `mass_outage MECHANISM [MOBILES CONNECTIONS SEGMENTS]` (256, 400 and 1 unless given) drives the
//! dispatcher without a network: so many connections of each mobile, with so many segments of 1000
//! B in flight on each. For each step it prints the longest turn, the sum of all turns, and the
//! number of packets that they sent. Between two turns the loop serves packets. The ledger is in
//! memory (/dev/shm), as /run is.

use airtcp_core::{Addr, Duration, Flow, Instant, LinkSignal, Segment, SeqNum};
use airtcp_edge::MobileId;
use airtcp_gateway::config::GatewayConfig;
use airtcp_gateway::dispatch::{Dispatcher, Effect, Interfaces};
use airtcp_gateway::packets::Intercepted;
use airtcp_gateway::signals::{MobileSignal, SignalSource};
use airtcp_linux::daemon::ledger::Ledger;
use airtcp_wire::{Checksums, encode};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::time;

const SEGMENT: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mechanism =
        arguments.next().ok_or("usage: mass_outage MECHANISM [MOBILES CONNECTIONS SEGMENTS]")?;
    let mut number = |otherwise| arguments.next().map_or(Ok(otherwise), |text| text.parse());
    let (mobiles, connections, segments) = (number(256)?, number(400)?, number(1)?);
    let mut bench = Bench::new(&mechanism, mobiles, connections)?;
    bench.establish(connections, segments);
    bench.signal("all go down", LinkSignal::Down);
    for tenths in 1..=20 {
        bench.now += Duration::from_millis(100);
        bench.timers(&format!("timers after {}.{} s", tenths / 10, tenths % 10));
    }
    bench.reload()?;
    bench.status();
    bench.signal("all come back", LinkSignal::Up);
    for _ in 0..100 {
        bench.now += Duration::from_millis(10);
        bench.timers("timers after they came back");
    }
    bench.status();
    Ok(())
}

struct Bench {
    dispatcher: Dispatcher,
    config: GatewayConfig,
    mobiles: Vec<IpAddr>,
    now: Instant,
    effects: Vec<Effect>,
    _state: tempfile::TempDir,
}

/// Durations of turns.
#[derive(Default)]
struct Turns {
    count: usize,
    longest: time::Duration,
    all: time::Duration,
    packets: usize,
}

impl Turns {
    fn tell(&self, what: &str) {
        let Self { count, longest, all, packets } = self;
        println!(
            "{what:30} {count:7} turns, longest {longest:9.1?}, together {all:9.1?}, {packets} packets"
        );
    }
}

impl Bench {
    fn new(mechanism: &str, mobiles: u32, connections: u32) -> Result<Self, Box<dyn Error>> {
        let flows = mobiles as usize * connections as usize;
        let config = GatewayConfig::parse(
            "mass_outage",
            &format!(
                "limits = {{ flows = {flows}, memory = \"4 GiB\" }}\n\
                 [[mobile]]\nname = \"phones\"\naddresses = [\"10.0.0.0/8\"]\nmechanism = \"{mechanism}\"\n"
            ),
        )?;
        let state = tempfile::tempdir_in("/dev/shm")?;
        let ledger = Ledger::open(&state.path().join("state"), airtcp_core::Bytes(1 << 40))?;
        let dispatcher = Dispatcher::new(&config, (1, 2), &Interfaces::new(), Box::new(ledger))?;
        let first = u32::from(Ipv4Addr::new(10, 0, 0, 1));
        let mobiles = (0..mobiles).map(|n| Ipv4Addr::from(first + n).into()).collect();
        let (now, effects) = (Instant::from_secs(1), Vec::new());
        Ok(Self { dispatcher, config, mobiles, now, effects, _state: state })
    }

    fn establish(&mut self, connections: u32, segments: u32) {
        let mut turns = Turns::default();
        for mobile in self.mobiles.clone() {
            for port in 0..connections {
                let fixed = Addr::new(Ipv4Addr::new(192, 0, 2, 1).into(), 443);
                let flow = Flow { src: fixed, dst: Addr::new(mobile, 1024 + port as u16) };
                let (seq, ack, window) = (SeqNum(0), Some(SeqNum(0)), 1000);
                let payload = vec![7_u8; SEGMENT];
                let data = Segment { flow, seq, ack, window, payload, ..Segment::default() };
                let back = Segment { flow: flow.reversed(), payload: Vec::new(), ..data.clone() };
                turns.take(self, |bench| bench.packet(&back));
                for n in 0..segments as usize {
                    let seq = SeqNum((n * SEGMENT) as u32);
                    turns.take(self, |bench| bench.packet(&Segment { seq, ..data.clone() }));
                }
            }
        }
        turns.tell("connections begin");
    }

    fn packet(&mut self, segment: &Segment<Vec<u8>>) {
        let mut packet = Vec::new();
        encode(segment, &mut packet).expect("it is short");
        let intercepted = Intercepted {
            id: None,
            packet: packet.into(),
            input: None,
            output: None,
            checksums: Checksums::Ignore,
            datagram: None,
            silence: None,
            is_closing: false,
        };
        self.dispatcher.on_packet(self.now, &intercepted, &mut self.effects);
    }

    fn signal(&mut self, what: &str, signal: LinkSignal) {
        let mut turns = Turns::default();
        let source = SignalSource::Control;
        for mobile in self.mobiles.clone().into_iter().map(MobileId::Host) {
            let signal = MobileSignal { mobile, signal, source };
            turns.take(self, |bench| {
                bench.dispatcher.on_signal(bench.now, signal, &mut bench.effects);
            });
        }
        turns.tell(what);
        self.timers("what was left of it");
    }

    /// Runs the timers that are due now.
    fn timers(&mut self, what: &str) {
        let mut turns = Turns::default();
        while self.dispatcher.next_deadline().is_some_and(|due| due <= self.now) {
            turns.take(self, |bench| bench.dispatcher.on_timer(bench.now, &mut bench.effects));
        }
        if turns.count > 0 {
            turns.tell(what);
        }
    }

    fn reload(&mut self) -> Result<(), Box<dyn Error>> {
        let mut turns = Turns::default();
        let mut result = Ok(());
        turns.take(self, |bench| {
            result = bench.dispatcher.reload(
                bench.now,
                &bench.config,
                &Interfaces::new(),
                &mut bench.effects,
            );
        });
        turns.tell("reload");
        self.timers("what was left of it");
        Ok(result?)
    }

    fn status(&mut self) {
        let (mut turns, mut states) = (Turns::default(), String::new());
        turns.take(self, |bench| {
            let status = bench.dispatcher.status(bench.now);
            states = format!("{} connections, {} B held", status.flow_count, status.held);
        });
        turns.tell("status");
        println!("{states}");
    }
}

impl Turns {
    fn take(&mut self, bench: &mut Bench, turn: impl FnOnce(&mut Bench)) {
        let begin = time::Instant::now();
        turn(bench);
        let is_packet = |effect: &Effect| matches!(effect, Effect::Inject { .. });
        self.packets += bench.effects.drain(..).filter(is_packet).count();
        bench.dispatcher.settle();
        let took = begin.elapsed();
        self.count += 1;
        self.longest = self.longest.max(took);
        self.all += took;
    }
}
