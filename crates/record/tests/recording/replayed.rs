//! Replaying a recording gives the same actions; a changed recording is detected.

use crate::gateway::{Gateway, USER_DATA, mechanisms};
use airtcp_core::{Bytes, Duration, LinkSignal};
use airtcp_edge::{MTcpPlusConfig, MechanismConfig};
use airtcp_record::{Contents, ReplayError, replay};
use proptest::prelude::*;

/// A recording of a download with an outage, and the number of its steps.
pub(crate) fn recording(mechanism: MechanismConfig, contents: Contents) -> (Vec<u8>, u64) {
    let mut gateway = Gateway::new(mechanism, contents);
    gateway.outage();
    assert!(gateway.interventions > 0, "{} did nothing", mechanism.word());
    (gateway.writer.take(), gateway.steps)
}

pub(crate) fn m_tcp_plus() -> MechanismConfig {
    MechanismConfig::MTcpPlus(MTcpPlusConfig::default())
}

#[test]
fn an_outage_gives_the_same_actions_with_every_mechanism() {
    for mechanism in mechanisms() {
        for contents in [Contents::Headers, Contents::Whole] {
            let (file, steps) = recording(mechanism, contents);
            let groups = replay(&file[..]).unwrap_or_else(|error| panic!("{error}"));
            let summary = &groups[&0];
            assert_eq!((summary.name.as_str(), summary.mechanism), ("phones", mechanism.word()));
            assert_eq!(summary.segments + summary.signals + summary.timers, steps);
        }
    }
}

#[test]
fn ipv6_gives_the_same_actions() {
    let mut gateway = Gateway::v6(m_tcp_plus(), Contents::Headers);
    gateway.outage();
    replay(&gateway.writer.take()[..]).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn copies_give_the_same_actions_and_differ_from_segments() {
    let mut gateway = Gateway::new(m_tcp_plus(), Contents::Headers);
    gateway.only_copies = true;
    gateway.outage();
    let file = gateway.writer.take();
    replay(&file[..]).unwrap_or_else(|error| panic!("{error}"));
    let words = b"input=copy";
    assert!(file.windows(words.len()).any(|window| window == words));
}

#[test]
fn headers_are_enough_and_much_smaller() {
    let [headers, whole] =
        [Contents::Headers, Contents::Whole].map(|contents| recording(m_tcp_plus(), contents).0);
    assert!(headers.len() * 2 < whole.len(), "{} of {} B", headers.len(), whole.len());
    let holds_user_data = |file: &[u8]| file.windows(USER_DATA.len()).any(|w| w == USER_DATA);
    assert!(holds_user_data(&whole) && !holds_user_data(&headers));
}

#[test]
fn a_changed_action_is_detected() {
    let (mut file, _) = recording(m_tcp_plus(), Contents::Headers);
    // The first injection closes the window of the fixed host: byte 14 of its TCP header.
    let comment = b"airtcp group=0 action=inject";
    let at = file.windows(comment.len()).position(|w| w == comment).unwrap();
    const TCP_HEADER_WITH_TIMESTAMPS: usize = 32;
    const OPTION_HEADER: usize = 4;
    file[at - OPTION_HEADER - TCP_HEADER_WITH_TIMESTAMPS + 15] ^= 1;
    let message = replay(&file[..]).unwrap_err().to_string();
    let lines: Vec<&str> = message.lines().collect();
    let [head, input, recorded, replayed] = lines[..] else { panic!("{message}") };
    assert!(head.ends_with("group \"phones\", m-tcp-plus: the actions differ"), "{message}");
    assert_eq!(input, "3600.006000000 < the link to 10.0.0.2 is fading");
    let action = "inject to fixed host: 10.0.0.2:49152 > 10.0.0.1:57001 . 7000:7000(0) \
                  ack 4294965795 win";
    assert!(recorded.starts_with(&format!("recorded: {action} 1 ")), "{message}");
    assert!(replayed.starts_with(&format!("replayed: {action} 0 ")), "{message}");
}

#[test]
fn a_changed_input_is_detected() {
    let (file, _) = recording(m_tcp_plus(), Contents::Headers);
    let text = b"AIRTCP_SIGNAL=down";
    let at = file.windows(text.len()).position(|w| w == text).unwrap();
    let mut changed = file.clone();
    // The mobile is back before it is away.
    changed.splice(at..at + text.len(), *b"AIRTCP_SIGNAL=up\n\n");
    let error = replay(&changed[..]).unwrap_err();
    assert!(matches!(error, ReplayError::Different(_)), "{error}");
}

#[test]
fn another_setting_is_found() {
    // The FIFO has room for one segment.
    let (file, _) = recording(m_tcp_plus(), Contents::Headers);
    let text = b"AIRTCP_FIFO=65536 B";
    let at = file.windows(text.len()).position(|w| w == text).unwrap();
    let mut changed = file.clone();
    changed[at..at + text.len()].copy_from_slice(b"AIRTCP_FIFO=01536 B");
    let error = replay(&changed[..]).unwrap_err();
    assert!(matches!(error, ReplayError::Different(_)), "{error}");
}

#[test]
fn changed_settings_are_replayed() {
    let mut gateway = Gateway::new(m_tcp_plus(), Contents::Headers);
    gateway.outage();
    let fifo = Bytes(1500);
    gateway.reconfigure(MechanismConfig::MTcpPlus(MTcpPlusConfig { fifo, ..Default::default() }));
    gateway.outage();
    let file = gateway.writer.take();
    replay(&file[..]).unwrap_or_else(|error| panic!("{error}"));

    let text = b"AIRTCP_ENTRY=reconfigure";
    let at = file.windows(text.len()).position(|w| w == text).unwrap();
    let mut changed = file.clone();
    // As if the FIFO had been that small from the start.
    changed[at..at + text.len()].copy_from_slice(b"AIRTCP_ENTRY=begin\n\n\n\n\n\n");
    assert!(replay(&changed[..]).is_err(), "connections are kept");
}

#[test]
fn connections_of_an_earlier_process_end_the_replay() {
    let mut gateway = Gateway::new(m_tcp_plus(), Contents::Headers);
    gateway.writer.restore(gateway.now, 0, 3);
    let message = replay(&gateway.writer.take()[..]).unwrap_err().to_string();
    let start = "block 6: 3 connections taken over from an earlier process";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn a_gap_ends_the_replay() {
    let mut gateway = Gateway::new(m_tcp_plus(), Contents::Headers);
    gateway.ack(0);
    gateway.writer.lost(gateway.now, 17);
    gateway.ack(0);
    let message = replay(&gateway.writer.take()[..]).unwrap_err().to_string();
    assert_eq!(message, "block 8: 17 steps are missing; all steps before gave the same actions");
}

/// An event of the random test.
#[derive(Clone, Debug)]
enum Event {
    Data { first: u32, len: usize },
    Ack { received: u32 },
    Signal(LinkSignal),
    Wait { millis: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    let thousand = |n: u32| 1000 * n;
    let signal =
        prop_oneof![Just(LinkSignal::Fading), Just(LinkSignal::Down), Just(LinkSignal::Up)];
    prop_oneof![
        4 => (0..12u32, 0..3000usize).prop_map(move |(n, len)| Event::Data { first: thousand(n), len }),
        4 => (0..12u32).prop_map(move |n| Event::Ack { received: thousand(n) }),
        1 => signal.prop_map(Event::Signal),
        2 => (0..2000u64).prop_map(|millis| Event::Wait { millis }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_happens_is_replayed(events in prop::collection::vec(event(), 0..60)) {
        for mechanism in mechanisms() {
            let mut gateway = Gateway::new(mechanism, Contents::Headers);
            gateway.ack(0);
            for event in &events {
                match *event {
                    Event::Data { first, len } => gateway.data(first, len),
                    Event::Ack { received } => gateway.ack(received),
                    Event::Signal(signal) => gateway.signal(signal),
                    Event::Wait { millis } => gateway.wait(Duration::from_millis(millis)),
                }
            }
            let result = replay(&gateway.writer.take()[..]);
            prop_assert!(result.is_ok(), "{}: {}", mechanism.word(), result.unwrap_err());
        }
    }
}
