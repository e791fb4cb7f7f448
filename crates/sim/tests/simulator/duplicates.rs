//! What copies of packets (`duplicate`) do to the two ends of a connection.

use crate::common;
use airtcp_core::event::{Source, Subscriber};
use airtcp_core::{Event, Instant};
use airtcp_sim::scenario::Scenario;
use airtcp_sim::{Observers, RunMetrics, World};

/// The windows reduced, and what was found lost, at the data sender.
#[derive(Debug, Default, PartialEq)]
struct Signs {
    reductions: u32,
    retransmits: u32,
}

impl Subscriber for Signs {
    fn on_event(&mut self, _: Instant, source: Source, event: &Event) {
        if !matches!(source, Source::Sender(_)) {
            return;
        }
        match event {
            Event::CwndReduced { .. } => self.reductions += 1,
            Event::FastRetransmit { .. } | Event::RtoExpired { .. } => self.retransmits += 1,
            _ => {}
        }
    }
}

/// A transfer over a link that its window of 64 kB fills, but never the queue.
fn transfer(link: &str, tcp: &str) -> (Signs, RunMetrics) {
    let text = format!(
        "duration = '20 s'
        node = [{{ name = 'a' }}, {{ name = 'b' }}]
        [[link]]
        between = ['a', 'b']
        rate = '10 Mbit/s'
        delay = '20 ms'
        queue = {{ limit = '1000 packets' }}
        {link}
        [tcp]
        receive-buffer = '64 kB'
        {tcp}
        [[flow]]
        from = 'a'
        to = 'b'
        bytes = '4 MB'"
    );
    let scenario = common::parse(&text, &[]);
    let (mut signs, mut world) = (Signs::default(), World::new(&scenario, 1));
    world.run(&mut Observers { events: Some(&mut signs), ..Observers::default() });
    (signs, world.metrics())
}

/// RFC 2883 §4: the receiver reports a copy by a DSACK, which is no sign of a loss. RFC 3708 §1: more
/// duplicates than retransmissions were made by the network.
#[test]
fn copies_of_data_do_not_halve_the_window_of_linux() {
    let (signs, metrics) = transfer("forward = { duplicate = 0.2 }", "preset = 'linux'");
    assert!(metrics.links[0].duplicates > 400, "{:?}", metrics.links[0]);
    assert_eq!(signs, Signs::default());
    assert_eq!(metrics.flows[0].delivered_bytes, 4_000_000);
}

/// RFC 6675 §2: an ACK without new SACK information is no duplicate ACK.
#[test]
fn copies_of_acks_do_not_halve_the_window_of_linux() {
    let (signs, metrics) = transfer("backward = { duplicate = 1.0 }", "preset = 'linux'");
    assert!(metrics.links[1].duplicates > 400, "{:?}", metrics.links[1]);
    assert_eq!(signs, Signs::default());
}

/// RFC 5681 §2 counts any ACK that repeats the last one. Every ACK twice makes one duplicate, below
/// the threshold of three; where data are copied too, the ACKs of copies come on top.
#[test]
fn copies_of_both_make_a_sender_without_sack_retransmit() {
    let (signs, metrics) = transfer("duplicate = 1.0", "preset = 'rfc'\nrecovery = 'newreno'");
    assert!(signs.retransmits > 0 && signs.reductions > 0, "{signs:?}");
    assert_eq!(metrics.flows[0].delivered_bytes, 4_000_000);
}

/// A copy is a packet on the link: the goodput of a full link falls to a half.
#[test]
fn a_copy_takes_the_capacity_of_its_packet() {
    let goodput = |link| {
        let (_, metrics) = transfer(link, "preset = 'linux'");
        metrics.flows[0].goodput
    };
    let (alone, copied) = (goodput(""), goodput("forward = { duplicate = 1.0 }"));
    assert!((copied / alone - 0.5).abs() < 0.05, "{alone} {copied}");
}

#[test]
fn a_share_outside_0_to_1_and_a_misspelt_key_are_refused() {
    let parse = |link: &str| {
        let text = format!(
            "duration = '1 s'\nnode = [{{ name = 'a' }}, {{ name = 'b' }}]\n[[link]]\n\
             between = ['a', 'b']\nrate = '1 Mbit/s'\ndelay = '1 ms'\n{link}\n\
             [[flow]]\nfrom = 'a'\nto = 'b'\n"
        );
        Scenario::parse("t.toml", &text, &[]).unwrap_err().to_string()
    };
    let error = parse("duplicate = 1.5");
    let expected =
        "t.toml:7:13: link.a-b.duplicate: 1.5 is out of range (expected a number from 0 to 1)";
    assert_eq!(error, expected);
    let error = parse("duplicates = 0.5");
    assert!(error.contains("did you mean `duplicate`?"), "{error}");
}
