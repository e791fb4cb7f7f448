//! A small gateway: mechanisms on real packets, recorded.

use airtcp_core::{
    Addr, Bytes, Duration, Flow, Instant, LinkSignal, Options, Segment, SeqNum, Timestamps,
};
use airtcp_edge::{
    Action, Actions, FlowTableConfig, HoldoverConfig, MTcpConfig, MTcpPlusConfig, Mechanism,
    MechanismConfig, Middlebox, MobileId, Side, SnoopConfig,
};
use airtcp_record::{Contents, Input, Setup, Writer};
use airtcp_wire::{Checksums, decode, encode};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Clock of a machine that started an hour ago.
pub(crate) const START: Instant = Instant::from_secs(3600);
/// Time of [`START`] since 1970.
pub(crate) const SINCE_1970: std::time::Duration =
    std::time::Duration::from_nanos(1_763_718_000_123_456_789);

pub(crate) fn mechanisms() -> [MechanismConfig; 5] {
    [
        MechanismConfig::MTcpPlus(MTcpPlusConfig::default()),
        MechanismConfig::MTcp(MTcpConfig::default()),
        MechanismConfig::Holdover(HoldoverConfig::default()),
        MechanismConfig::PacketControl { threshold: 5 },
        MechanismConfig::Snoop(SnoopConfig::default()),
    ]
}

pub(crate) fn setup(mechanism: MechanismConfig) -> Setup {
    Setup {
        name: "phones".into(),
        mechanism,
        flows: 100,
        flows_per_mobile: 100,
        uplink: None,
        idle: Duration::from_secs(300),
        memory: Bytes(1 << 20),
    }
}

/// Flow table settings; the hash key is not in the recording.
fn table(setup: &Setup) -> FlowTableConfig {
    let &Setup { flows: limit, flows_per_mobile: per_mobile, uplink, idle, .. } = setup;
    FlowTableConfig { limit, per_mobile, uplink, idle, hash_key: (3, 4) }
}

/// A recorded connection through a mechanism.
pub(crate) struct Gateway {
    mechanism: Mechanism<Vec<u8>>,
    pub(crate) writer: Writer,
    pub(crate) now: Instant,
    /// Flow from the fixed to the mobile host.
    flow: Flow,
    /// The mechanism gets only copies of segments that were already forwarded.
    pub(crate) only_copies: bool,
    /// Steps so far.
    pub(crate) steps: u64,
    /// Actions other than forwarding.
    pub(crate) interventions: u64,
    actions: Actions<Vec<u8>>,
}

pub(crate) const USER_DATA: &[u8] = b"user data ";
const MOBILE_ISN: SeqNum = SeqNum(7000);
/// Initial sequence number of the fixed host: wraps within a connection.
const FIXED_ISN: SeqNum = SeqNum(u32::MAX - 2500);

impl Gateway {
    pub(crate) fn new(mechanism: MechanismConfig, contents: Contents) -> Self {
        let ip = |last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last));
        Self::between(ip(1), ip(2), mechanism, contents)
    }

    pub(crate) fn v6(mechanism: MechanismConfig, contents: Contents) -> Self {
        let ip = |last| IpAddr::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
        Self::between(ip(1), ip(2), mechanism, contents)
    }

    fn between(
        fixed: IpAddr,
        mobile: IpAddr,
        mechanism: MechanismConfig,
        contents: Contents,
    ) -> Self {
        let setup = setup(mechanism);
        let mut writer = Writer::new(START, SINCE_1970, contents);
        writer.begin(START, 0, &setup);
        Self {
            mechanism: Mechanism::new(&mechanism, table(&setup), setup.memory).unwrap(),
            writer,
            now: START,
            flow: Flow { src: Addr::new(fixed, 57_001), dst: Addr::new(mobile, 49_152) },
            only_copies: false,
            steps: 0,
            interventions: 0,
            actions: Actions::new(),
        }
    }

    /// Continues with different settings.
    pub(crate) fn reconfigure(&mut self, mechanism: MechanismConfig) {
        let setup = setup(mechanism);
        self.mechanism.reconfigure(&mechanism, table(&setup), setup.memory).unwrap();
        self.writer.reconfigure(self.now, 0, &setup);
    }

    /// Lets time pass; timers fire on the way.
    pub(crate) fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(deadline) = self.mechanism.next_deadline()
            && deadline <= end
        {
            self.now = self.now.max(deadline);
            self.mechanism.on_timer(self.now, &mut self.actions);
            self.record(&Input::Timer);
        }
        self.now = end;
    }

    pub(crate) fn signal(&mut self, signal: LinkSignal) {
        let mobile = MobileId::Host(self.flow.dst.ip);
        self.mechanism.on_link(self.now, mobile, signal, &mut self.actions);
        self.record(&Input::Signal { mobile, signal });
    }

    /// Passes data of the fixed host, starting at the byte `first`.
    pub(crate) fn data(&mut self, first: u32, len: usize) {
        let payload = USER_DATA.iter().copied().cycle().take(len).collect();
        self.packet(Side::Fixed, first, 0, payload);
    }

    /// Passes an ACK of the mobile for the bytes received so far.
    pub(crate) fn ack(&mut self, received: u32) {
        self.packet(Side::Mobile, 0, received, Vec::new());
    }

    fn packet(&mut self, from: Side, seq: u32, ack: u32, payload: Vec<u8>) {
        let (flow, seq, ack) = match from {
            Side::Fixed => (self.flow, FIXED_ISN + seq, MOBILE_ISN + ack),
            Side::Mobile => (self.flow.reversed(), MOBILE_ISN + seq, FIXED_ISN + ack),
        };
        let clock = (self.now.since_start().as_millis() as u32, 7);
        let timestamps = Timestamps { value: clock.0, echo: clock.1 };
        let options = Options { timestamps: Some(timestamps), ..Options::default() };
        let window = 500;
        let (ack, flags) = (Some(ack), Default::default());
        let ecn = Default::default();
        let segment = Segment { flow, seq, ack, window, flags, ecn, options, payload };
        let mut packet = Vec::new();
        encode(&segment, &mut packet).unwrap();
        let segment = decode(&packet, Checksums::Verify).unwrap();
        if self.only_copies {
            self.mechanism.on_copy(self.now, from, segment, &mut self.actions);
            self.record(&Input::Copy { from, segment: &packet });
        } else {
            self.mechanism.on_segment(self.now, from, segment, &mut self.actions);
            self.record(&Input::Segment { from, segment: &packet });
        }
    }

    fn record(&mut self, input: &Input<&[u8]>) {
        self.writer.step(self.now, 0, input, self.actions.as_slice());
        self.steps += 1;
        let is_forward = |action: &_| matches!(action, Action::Forward { .. });
        self.interventions += self.actions.drain().filter(|a| !is_forward(a)).count() as u64;
    }

    /// A download with an outage that begins when the mobile has half the data.
    pub(crate) fn outage(&mut self) {
        self.ack(0);
        for n in 0..6 {
            self.data(1000 * n, 1000);
            self.wait(Duration::from_millis(1));
        }
        self.ack(1000);
        self.signal(LinkSignal::Fading);
        self.data(6000, 1000);
        self.signal(LinkSignal::Down);
        self.wait(Duration::from_secs(1));
        // Retransmission, window probe.
        self.data(1000, 1000);
        self.wait(Duration::from_secs(2));
        self.data(7000, 1);
        self.wait(Duration::from_secs(30));
        self.signal(LinkSignal::Up);
        for ack in [3000, 3000, 3000, 3000, 6000, 7000] {
            self.ack(ack);
            self.wait(Duration::from_millis(20));
        }
        self.data(7000, 1000);
        self.ack(8000);
        self.wait(Duration::from_secs(1));
    }
}
