//! Any mechanism behind one type: what it reports of its flows, and going on with other settings.

use crate::segments::{Hosts, Seg};
use airtcp_core::{Bytes, Duration, Flags, Instant, Length, LinkSignal};
use airtcp_edge::{
    Actions, Detect, FlowPhase, FlowTableConfig, HoldoverConfig, MTcpConfig, MTcpPlusConfig,
    Mechanism, MechanismConfig, MechanismNote, Middlebox, MobileId, ReconfigureError, Side,
    SignalUse, SnoopConfig, ThresholdTooSmall, WakeConfig,
};
use airtcp_settings::schema::Conditions;

const MEMORY: Bytes = Bytes(1 << 30);

fn each_config() -> [MechanismConfig; 5] {
    [
        MechanismConfig::PacketControl { threshold: 6 },
        MechanismConfig::MTcp(MTcpConfig::default()),
        MechanismConfig::MTcpPlus(MTcpPlusConfig::default()),
        MechanismConfig::Holdover(HoldoverConfig::default()),
        MechanismConfig::Snoop(SnoopConfig::default()),
    ]
}

/// One connection through a mechanism.
struct Through {
    mechanism: Mechanism<Length>,
    hosts: Hosts,
    now: Instant,
}

impl Through {
    /// Two segments are under way to the mobile.
    fn new(config: &MechanismConfig) -> Self {
        let mechanism = Mechanism::new(config, FlowTableConfig::default(), MEMORY).unwrap();
        let mut through = Self { mechanism, hosts: Hosts::new(1000), now: Instant::from_secs(1) };
        through.ack(0);
        through.pass(Side::Fixed, through.hosts.fixed(0, 1000));
        through.pass(Side::Fixed, through.hosts.fixed(1000, 1000));
        through
    }

    fn pass(&mut self, from: Side, segment: Seg) {
        self.mechanism.on_segment(self.now, from, segment, &mut Actions::new());
    }

    fn ack(&mut self, ack: u32) {
        self.pass(Side::Mobile, self.hosts.mobile(ack));
    }

    fn mobile(&self) -> MobileId {
        MobileId::Host(self.hosts.flow.dst.ip)
    }

    fn signal(&mut self, at: u64, signal: LinkSignal) {
        self.now = Instant::from_secs(at);
        let mobile = self.mobile();
        self.mechanism.on_link(self.now, mobile, signal, &mut Actions::new());
    }

    fn timers(&mut self, at: Instant) {
        self.now = at;
        self.mechanism.on_timer(at, &mut Actions::new());
    }

    /// The phase, and the second when it began; checks that the mobile is interrupted by the same
    /// token.
    fn phase(&self) -> (FlowPhase, Option<u64>) {
        let mut reports = self.mechanism.reports();
        let report = reports.next().expect("the flow is known");
        assert_eq!((report.flow, reports.next()), (self.hosts.flow, None));
        let is_interrupted = self.mechanism.is_interrupted(self.mobile());
        assert_eq!(is_interrupted, report.phase.is_interrupted());
        (report.phase, report.since.map(|since| since.since_start().as_millis() / 1000))
    }
}

/// The words of the choices that a configuration makes.
fn chosen(config: &MechanismConfig) -> Vec<(&'static str, &'static str)> {
    let detect = match config {
        MechanismConfig::MTcp(config) => Some(("detect", config.detect.word())),
        _ => None,
    };
    [("mechanism", config.word())].into_iter().chain(detect).collect()
}

#[test]
fn keys_have_an_effect_with_the_mechanisms_that_are_capable() {
    let by_signal = MTcpConfig { detect: Detect::Signal, ..MTcpConfig::default() };
    let others = [MechanismConfig::MTcp(by_signal), MechanismConfig::Wake(WakeConfig::default())];
    for config in each_config().into_iter().chain(others) {
        let (chosen, can) = (chosen(&config), config.capabilities());
        let any = |ways: &[Conditions]| ways.iter().any(|conditions| conditions.hold(&chosen));
        assert_eq!(any(&MechanismConfig::WITH_COPIES), can.fifo.is_some(), "{config:?}");
        let listens = can.signals != SignalUse::Ignored;
        assert_eq!(any(&MechanismConfig::WITH_SIGNALS), listens, "{config:?}");
        let watches = can.passive && can.all_protocols.is_none();
        assert_eq!(any(&[MechanismConfig::WATCHING]), watches, "{config:?}");
    }
}

#[test]
fn every_mechanism_reports_its_flows_and_what_it_holds() {
    for config in each_config() {
        let through = Through::new(&config);
        assert_eq!(through.phase(), (FlowPhase::Connected, None), "{config:?}");
        let held = if config.capabilities().fifo.is_some() { 2000 } else { 0 };
        let report = through.mechanism.reports().next().unwrap();
        assert_eq!((through.mechanism.flows(), through.mechanism.held()), (1, held));
        assert_eq!((report.held, report.committed), (held, false));
    }
}

#[test]
fn a_frozen_flow_reports_since_when() {
    let frozen = [
        MechanismConfig::MTcpPlus(MTcpPlusConfig::default()),
        MechanismConfig::Holdover(HoldoverConfig::default()),
    ];
    for config in frozen {
        let mut through = Through::new(&config);
        through.signal(5, LinkSignal::Fading);
        through.signal(7, LinkSignal::Down);
        assert_eq!(through.phase(), (FlowPhase::Frozen, Some(5)));
        let promises = matches!(config, MechanismConfig::MTcpPlus(_));
        assert_eq!(through.mechanism.reports().next().unwrap().committed, promises);
        through.signal(9, LinkSignal::Up);
        through.ack(1000);
        assert_eq!(through.phase(), (FlowPhase::Resuming, Some(9)));
        through.ack(2000);
        assert_eq!(through.phase(), (FlowPhase::Connected, None));
    }
}

#[test]
fn m_tcp_s_flow_is_frozen_while_the_mobile_is_taken_for_gone() {
    let mut through = Through::new(&MechanismConfig::MTcp(MTcpConfig::default()));
    through.timers(Instant::from_secs(1) + MTcpConfig::default().timer);
    assert_eq!(through.phase(), (FlowPhase::Frozen, Some(1)));
    through.ack(1000);
    assert_eq!(through.phase(), (FlowPhase::Connected, None));
}

#[test]
fn a_flow_that_was_given_up_says_so() {
    let max_down = Some(Duration::from_secs(10));
    let given_up = [
        MechanismConfig::MTcpPlus(MTcpPlusConfig { max_down, ..Default::default() }),
        MechanismConfig::Holdover(HoldoverConfig { max_down, ..Default::default() }),
    ];
    for config in given_up {
        let mut through = Through::new(&config);
        through.signal(5, LinkSignal::Down);
        through.timers(Instant::from_secs(15));
        assert_eq!(through.phase(), (FlowPhase::Reset, Some(15)));
    }
    let config = MTcpConfig { max_down, ..MTcpConfig::default() };
    let mut through = Through::new(&MechanismConfig::MTcp(config));
    through.timers(Instant::from_secs(5));
    through.timers(Instant::from_secs(15));
    assert_eq!(through.phase(), (FlowPhase::Reset, Some(15)));
}

#[test]
fn other_settings_of_the_same_mechanism_keep_the_flows() {
    for config in each_config() {
        let mut through = Through::new(&config);
        let table = FlowTableConfig { limit: 1, ..FlowTableConfig::default() };
        through.mechanism.reconfigure(&config, table, Bytes(1000)).unwrap();
        let held = through.mechanism.held();
        through.pass(Side::Fixed, through.hosts.fixed(2000, 500));
        assert_eq!(through.mechanism.held(), held, "no more memory: {config:?}");
        // The new limit holds too.
        let mut other = through.hosts.mobile(0);
        other.flow.dst.port += 1;
        through.pass(Side::Mobile, other);
        assert_eq!((through.mechanism.flows(), through.mechanism.segments_refused()), (1, 1));
    }
}

#[test]
fn settings_of_another_mechanism_are_refused() {
    for (i, from) in each_config().iter().enumerate() {
        for (j, to) in each_config().iter().enumerate() {
            let mut mechanism = Through::new(from).mechanism;
            let taken = mechanism.reconfigure(to, FlowTableConfig::default(), MEMORY);
            let refused = (i != j).then_some(ReconfigureError::OtherMechanism);
            assert_eq!((taken.err(), mechanism.flows()), (refused, 1));
        }
    }
}

#[test]
fn wrong_settings_change_nothing() {
    let mut through = Through::new(&each_config()[0]);
    let wrong = MechanismConfig::PacketControl { threshold: 2 };
    let table = FlowTableConfig { limit: 1, ..FlowTableConfig::default() };
    let refused = through.mechanism.reconfigure(&wrong, table, MEMORY);
    assert_eq!(refused, Err(ReconfigureError::ThresholdTooSmall(ThresholdTooSmall(2))));
    let mut other = through.hosts.mobile(0);
    other.flow.dst.port += 1;
    through.pass(Side::Mobile, other);
    assert_eq!(through.mechanism.flows(), 2, "the old limit holds");
}

#[test]
fn the_mechanisms_that_freeze_a_fixed_host_until_a_signal_have_a_journal() {
    for config in each_config() {
        let mut through = Through::new(&config);
        through.mechanism.keep_journal();
        through.signal(5, LinkSignal::Down);
        let notes = through.mechanism.drain_journal().count();
        let is_frozen =
            matches!(config, MechanismConfig::MTcpPlus(_) | MechanismConfig::Holdover(_));
        assert_eq!(notes, usize::from(is_frozen));
    }
}

#[test]
fn a_snapshot_of_holdover_and_the_inputs_since_go_on_in_another_process() {
    let config = MechanismConfig::Holdover(HoldoverConfig::default());
    let mut through = Through::new(&config);
    through.mechanism.keep_journal();
    through.signal(5, LinkSignal::Down);
    through.pass(Side::Fixed, through.hosts.fixed(0, 1000));
    through.timers(Instant::from_secs(6));
    let mut snapshot = None;
    for note in through.mechanism.drain_journal() {
        match note {
            MechanismNote::Snapshot(_, first) => snapshot = Some(*first),
            MechanismNote::Input(_, input) => {
                snapshot.as_mut().expect("a snapshot comes first").apply(input)
            }
            MechanismNote::Released(flow) => panic!("{flow} is frozen"),
        }
    }
    let snapshot = snapshot.unwrap();
    assert_eq!(snapshot.config(), config);

    let mut next = Mechanism::new(&config, FlowTableConfig::default(), MEMORY).unwrap();
    assert!(next.restore(through.now, through.hosts.flow, snapshot.clone()));
    let mut out = [Actions::new(), Actions::new()];
    through.mechanism.on_link(through.now, through.mobile(), LinkSignal::Up, &mut out[0]);
    next.on_link(through.now, through.mobile(), LinkSignal::Up, &mut out[1]);
    assert_eq!(out[0].as_slice().len(), 2, "both copies are replayed");
    assert_eq!(out[0], out[1]);

    let mut other = Mechanism::new(&each_config()[2], FlowTableConfig::default(), MEMORY).unwrap();
    assert!(!other.restore(through.now, through.hosts.flow, snapshot), "it is M-TCP+");
}

#[test]
fn resets_of_a_snapshot_fit_both_hosts() {
    for (config, told) in [
        (MechanismConfig::MTcpPlus(MTcpPlusConfig::default()), 2000),
        (MechanismConfig::Holdover(HoldoverConfig::default()), 0),
    ] {
        let mut through = Through::new(&config);
        through.mechanism.keep_journal();
        through.signal(5, LinkSignal::Down);
        let Some(MechanismNote::Snapshot(_, snapshot)) = through.mechanism.drain_journal().next()
        else {
            panic!("it is frozen");
        };
        let [fixed, mobile] = snapshot.resets().expect("both were met");
        let (ack, data) = (through.hosts.mobile(told), through.hosts.fixed(0, 1000));
        assert_eq!((fixed.flow, fixed.seq, fixed.ack), (ack.flow, ack.seq, ack.ack));
        assert_eq!((mobile.flow, mobile.seq), (data.flow, data.seq));
        assert_eq!([fixed.flags, mobile.flags], [Flags::RST; 2]);
    }
}
