//! What holds for any traffic, signals and times, at whatever moment the process ends.

use super::{Driver, config};
use crate::segments::{Hosts, Seg, with_flags, with_payload, with_timestamps, with_window};
use airtcp_core::{Duration, Flags, Length, LinkSignal, SeqNum};
use airtcp_edge::{Acknowledge, Action, Actions, MTcpPlusConfig, Open, Resume, Side};
use proptest::prelude::*;

/// A step of the test; segments have their numbers in a small range, so that all relations between
/// them occur.
#[derive(Clone, Debug)]
enum Any {
    Segment {
        from: Side,
        port: u16,
        number: u32,
        len: u64,
        flags: Flags,
        window: u16,
        clock: u32,
        is_copy: bool,
    },
    Link(LinkSignal),
    Wait(Duration),
    /// True: files cannot be written from now on.
    Full(bool),
}

/// With any flags but these.
fn any_segment(without: Flags) -> impl Strategy<Value = Any> {
    let from = prop_oneof![Just(Side::Fixed), Just(Side::Mobile)];
    let number = prop_oneof![3 => (0u32..10).prop_map(|n| n * 500), 1 => 0u32..5000];
    let len = prop_oneof![3 => Just(0u64), 1 => 1u64..3, 3 => Just(500u64), 1 => 1u64..3000];
    let flags = prop_oneof![12 => Just(0u8), 1 => any::<u8>()]
        .prop_map(move |bits| Flags::from_bits_truncate(bits) - without);
    let window = prop_oneof![8 => Just(500u16), 1 => Just(0)];
    let clock = 0u32..9;
    (from, 0u16..2, number, len, flags, window, clock, any::<bool>()).prop_map(
        |(from, port, number, len, flags, window, clock, is_copy)| Any::Segment {
            from,
            port,
            number,
            len,
            flags,
            window,
            clock,
            is_copy,
        },
    )
}

fn any_life(without: Flags) -> impl Strategy<Value = Any> {
    let signal =
        prop_oneof![Just(LinkSignal::Fading), Just(LinkSignal::Down), Just(LinkSignal::Up)];
    prop_oneof![
        12 => any_segment(without),
        2 => signal.prop_map(Any::Link),
        2 => (0u64..3000).prop_map(|ms| Any::Wait(Duration::from_millis(ms))),
    ]
}

/// Two connections of one mobile.
struct World {
    driver: Driver,
    hosts: [Hosts; 2],
}

impl World {
    fn new(isn: u32, config: MTcpPlusConfig, memory: u64) -> Self {
        let hosts = [0, 1].map(|port| {
            let mut hosts = Hosts::new(isn);
            hosts.flow.src.port += port;
            hosts
        });
        Self { driver: Driver::new(config, memory), hosts }
    }

    fn segment(&self, any: &Any) -> Option<(Side, usize, Seg)> {
        let &Any::Segment { from, port, number, len, flags, window, clock, .. } = any else {
            return None;
        };
        let hosts = &self.hosts[usize::from(port)];
        let segment = match from {
            Side::Fixed => hosts.fixed(number, len),
            Side::Mobile => with_payload(hosts.mobile(number), len.saturating_sub(400)),
        };
        let segment = with_timestamps(with_flags(segment, flags), clock, 9 - clock);
        Some((from, port.into(), with_window(segment, window)))
    }

    fn knows(&self, port: usize) -> bool {
        self.driver.node.reports().any(|report| report.flow == self.hosts[port].flow)
    }

    fn happen(&mut self, any: &Any) -> Vec<Actions<Length>> {
        match any {
            Any::Segment { is_copy, .. } => {
                let (from, _, segment) = self.segment(any).expect("it is one");
                vec![match is_copy {
                    false => self.driver.pass(from, segment),
                    true => self.driver.copy(from, segment),
                }]
            }
            Any::Link(signal) => vec![self.driver.signal(&self.hosts[0], *signal)],
            Any::Wait(time) => self.driver.wait(*time),
            Any::Full(is_full) => {
                self.driver.is_full = *is_full;
                Vec::new()
            }
        }
    }
}

/// Segments that the hosts of one connection sent and received, as far as the node can know: it
/// forgets a connection that both have ended when another one needs a place.
struct Observer {
    /// The highest ACK of the mobile that acknowledges what was sent; any, until both were heard.
    mobile: SeqNum,
    is_mobile_heard: bool,
    is_open: bool,
    sent: Option<SeqNum>,
    /// The highest ACK that the node gave the fixed host.
    ack_sent: SeqNum,
    has_ended: [bool; 2],
    /// Sequence numbers of the mobile's own data.
    mobile_sent: u32,
}

impl Observer {
    fn new(start: SeqNum) -> Self {
        Self {
            mobile: start,
            is_mobile_heard: false,
            is_open: false,
            sent: None,
            ack_sent: start,
            has_ended: [false; 2],
            mobile_sent: 0,
        }
    }

    fn on_segment(&mut self, from: Side, segment: &Seg) {
        self.has_ended[from as usize] |= segment.flags.contains(Flags::FIN);
        if from == Side::Mobile {
            self.mobile_sent = self.mobile_sent.max(segment.seq_len());
        }
        match (from, segment.ack) {
            (Side::Fixed, _) => {
                let end = segment.seq_end();
                self.sent = Some(self.sent.map_or(end, |sent| sent.later(end)));
                self.open();
            }
            (Side::Mobile, Some(ack)) if !self.is_open => {
                self.mobile = if self.is_mobile_heard { self.mobile.later(ack) } else { ack };
                self.is_mobile_heard = true;
                self.open();
            }
            (Side::Mobile, Some(ack)) if ack.at_or_before(self.sent.unwrap_or(self.mobile)) => {
                self.mobile = self.mobile.later(ack);
            }
            (Side::Mobile, _) => {}
        }
    }

    /// Once both hosts were heard.
    fn open(&mut self) {
        if let Some(sent) = self.sent.filter(|_| self.is_mobile_heard && !self.is_open) {
            self.is_open = true;
            self.ack_sent = self.mobile;
            self.sent = Some(sent.later(self.mobile));
        }
    }

    fn on_actions(&mut self, hosts: &Hosts, actions: &[Action<Length>]) {
        for action in actions {
            if let Action::Inject { to: Side::Fixed, segment } = action
                && segment.flow == hosts.flow.reversed()
            {
                self.ack_sent = self.ack_sent.later(segment.ack.expect("it acknowledges"));
            }
        }
    }
}

/// Up to where a node sends the mobile the data of one connection without a gap, if the mobile
/// acknowledges all that arrives; `actions` is what it did when the mobile came back.
fn replayed(
    node: &mut Driver,
    hosts: &Hosts,
    mobile: &Observer,
    mut actions: Actions<Length>,
) -> SeqNum {
    let mut reached = mobile.mobile;
    loop {
        let before = reached;
        for action in actions.as_slice() {
            if let Action::Inject { to: Side::Mobile, segment } = action
                && segment.flow == hosts.flow
                && segment.seq.at_or_before(reached)
            {
                reached = reached.later(segment.seq + segment.payload.0 as u32);
            }
        }
        if reached == before {
            return reached;
        }
        let ack = hosts.mobile(reached.bytes_after(hosts.fixed_isn));
        let seq = ack.seq + mobile.mobile_sent;
        actions = node.pass(Side::Mobile, Seg { seq, ..ack });
    }
}

proptest! {
    #[test]
    fn a_snapshot_and_the_inputs_since_are_the_connection(
        isn: u32,
        fifo in 500u64..20_000,
        memory in 500u64..20_000,
        resume in prop_oneof![Just(Resume::Flush), Just(Resume::Probe)],
        acknowledge in prop_oneof![Just(Acknowledge::AtOnce), Just(Acknowledge::IN_TIME)],
        open in prop_oneof![Just(Open::AtOnce), Just(Open::InSteps)],
        max_down in prop::option::of((1u64..20).prop_map(Duration::from_secs)),
        life in proptest::collection::vec(any_life(Flags::empty()), 0..200),
    ) {
        let config = MTcpPlusConfig { resume, acknowledge, open, max_down, ..config(fifo) };
        let mut world = World::new(isn, config, memory);
        for any in life {
            world.happen(&any);
            prop_assert_eq!(&world.driver.file, &world.driver.live());
        }
    }

    #[test]
    fn what_is_on_file_keeps_every_promise_though_files_were_full(
        isn: u32,
        life in proptest::collection::vec(
            prop_oneof![9 => any_life(Flags::SYN | Flags::RST), 1 => any::<bool>().prop_map(Any::Full)], 0..200,
        ),
    ) {
        promises_are_kept(isn, life)?;
    }
}

/// Whenever the process ends, what is on file brings the mobile all that the fixed host was told it
/// has.
fn promises_are_kept(isn: u32, life: Vec<Any>) -> Result<(), TestCaseError> {
    let mut world = World::new(isn, config(1 << 20), 1 << 30);
    let start = world.hosts[0].fixed(0, 0).seq;
    let mut observers = [0, 1].map(|_| Observer::new(start));
    for any in life {
        if let Some((from, port, segment)) = world.segment(&any) {
            let observer = &mut observers[port];
            if observer.has_ended == [true; 2] && !world.knows(port) {
                *observer = Observer::new(start);
            }
            observer.on_segment(from, &segment);
        }
        let all = world.happen(&any);
        for (observer, hosts) in observers.iter_mut().zip(&world.hosts) {
            all.iter().for_each(|actions| observer.on_actions(hosts, actions.as_slice()));
            let mut successor = world.driver.successor();
            let replay = successor.signal(hosts, LinkSignal::Up);
            let safe = replayed(&mut successor, hosts, observer, replay);
            prop_assert!(observer.ack_sent.at_or_before(safe), "{} {safe}", observer.ack_sent);
        }
    }
    Ok(())
}

/// The place of a connection that both hosts have ended is taken by another; segments of its ports
/// then begin a new one.
#[test]
fn promises_are_kept_by_a_connection_in_the_place_of_an_ended_one() {
    let segment = |from, port, number, flags| Any::Segment {
        from,
        port,
        number,
        len: 0,
        flags,
        window: 500,
        clock: 0,
        is_copy: false,
    };
    let life = vec![
        segment(Side::Mobile, 0, 0, Flags::empty()),
        segment(Side::Fixed, 0, 1000, Flags::FIN),
        segment(Side::Mobile, 0, 0, Flags::FIN),
        segment(Side::Fixed, 1, 0, Flags::empty()),
        segment(Side::Mobile, 0, 1500, Flags::empty()),
        segment(Side::Fixed, 0, 0, Flags::empty()),
        Any::Link(LinkSignal::Fading),
    ];
    promises_are_kept(0, life).unwrap();
}
