//! The ledger: what was promised outlives the process, whatever ends it and whatever becomes of the
//! files.

mod folder;
mod format;
mod full;
mod takeover;

use airtcp_core::{Addr, Bytes, Flow, Instant, LinkSignal, Segment, SeqNum};
use airtcp_edge::{
    Action, Actions, FlowTableConfig, Mechanism, MechanismConfig, Middlebox, MobileId, Side,
};
use airtcp_gateway::ledger::{Saved, WriteError};
use airtcp_gateway::packets::SharedBytes;
use airtcp_linux::daemon::ledger::Ledger;
use std::net::Ipv4Addr;
use std::path::Path;

pub(crate) const GROUP: &str = "trains";
const FIXED_ISN: SeqNum = SeqNum(u32::MAX - 1500);
const MOBILE_ISN: SeqNum = SeqNum(77);

/// From the fixed host's port `n` to the mobile.
pub(crate) fn flow(n: u16) -> Flow {
    let addr = |last, port| Addr::new(Ipv4Addr::new(10, 0, 0, last).into(), port);
    Flow { src: addr(1, 8000 + n), dst: addr(3, 5001) }
}

/// Bytes that tell where in the stream they stand.
pub(crate) fn content(from: u32, len: u32) -> Vec<u8> {
    (from..from + len).map(|at| (at % 251) as u8).collect()
}

fn fixed(n: u16, seq: u32, len: u32) -> Segment<SharedBytes> {
    Segment {
        flow: flow(n),
        seq: FIXED_ISN + seq,
        ack: Some(MOBILE_ISN),
        window: 8760,
        payload: SharedBytes(content(seq, len).into()),
        ..Segment::default()
    }
}

fn mobile(n: u16, ack: u32) -> Segment<SharedBytes> {
    let (seq, ack) = (MOBILE_ISN, Some(FIXED_ISN + ack));
    Segment { flow: flow(n).reversed(), seq, ack, window: 500, ..Segment::default() }
}

/// A gateway's loop, without packets.
pub(crate) struct Gateway {
    node: Mechanism<SharedBytes>,
    pub(crate) ledger: Ledger,
    pub(crate) now: Instant,
    /// Notes that could not be written.
    pub(crate) failures: Vec<WriteError>,
}

impl Gateway {
    pub(crate) fn start(dir: &Path, limit: u64) -> Self {
        Self::with(MechanismConfig::MTcpPlus(Default::default()), dir, limit)
    }

    pub(crate) fn with(config: MechanismConfig, dir: &Path, limit: u64) -> Self {
        let table = FlowTableConfig::default();
        let mut node = Mechanism::new(&config, table, Bytes(1 << 30)).unwrap();
        node.keep_journal();
        let ledger = Ledger::open(dir, Bytes(limit)).unwrap();
        Self { node, ledger, now: Instant::from_secs(1000), failures: Vec::new() }
    }

    /// Takes over what is on file.
    pub(crate) fn take_over(dir: &Path, limit: u64) -> Self {
        Self::start(dir, limit).takes_over()
    }

    pub(crate) fn takes_over(self) -> Self {
        let mut gateway = self;
        let loaded = gateway.ledger.load().unwrap();
        assert!(loaded.unreadable.is_empty(), "{:?}", loaded.unreadable);
        assert!(loaded.refused.is_empty(), "{:?}", loaded.refused);
        for Saved { group, flow, snapshot } in loaded.connections {
            assert_eq!(group, GROUP);
            assert!(gateway.node.restore(gateway.now, flow, snapshot));
        }
        gateway.write(&mut Actions::new());
        gateway.settle();
        gateway
    }

    fn write(&mut self, out: &mut Actions<SharedBytes>) {
        let notes: Vec<_> = self.node.drain_journal().collect();
        if let Err(error) = self.ledger.write(GROUP, &notes) {
            for flow in &error.flows {
                self.node.withhold(flow, out);
            }
            self.failures.push(error);
        }
    }

    fn settle(&mut self) {
        for flow in self.ledger.settle().unwrap() {
            self.node.note_anew(&flow);
        }
        self.write(&mut Actions::new());
    }

    fn call(
        &mut self,
        act: impl FnOnce(&mut Mechanism<SharedBytes>, Instant, &mut Actions<SharedBytes>),
    ) -> Vec<Action<SharedBytes>> {
        let mut out = Actions::new();
        act(&mut self.node, self.now, &mut out);
        self.write(&mut out);
        let actions = out.drain().collect();
        self.settle();
        actions
    }

    pub(crate) fn data(&mut self, n: u16, seq: u32, len: u32) -> Vec<Action<SharedBytes>> {
        self.call(|node, now, out| node.on_segment(now, Side::Fixed, fixed(n, seq, len), out))
    }

    pub(crate) fn ack(&mut self, n: u16, ack: u32) -> Vec<Action<SharedBytes>> {
        self.call(|node, now, out| node.on_segment(now, Side::Mobile, mobile(n, ack), out))
    }

    pub(crate) fn signal(&mut self, signal: LinkSignal) -> Vec<Action<SharedBytes>> {
        let mobile = MobileId::Host(flow(0).dst.ip);
        let mut actions = self.call(|node, now, out| node.on_link(now, mobile, signal, out));
        // Many connections get the signal in turns.
        while self.node.next_deadline().is_some_and(|due| due <= self.now) {
            actions.extend(self.call(|node, now, out| node.on_timer(now, out)));
        }
        actions
    }

    /// Three segments of 1000 bytes are in flight to the mobile.
    pub(crate) fn underway(&mut self, n: u16) {
        self.ack(n, 0);
        for i in 0..3 {
            self.data(n, 1000 * i, 1000);
        }
    }

    /// True if the fixed host of connection `n` was sent an acknowledgement of `ack`.
    pub(crate) fn promises(actions: &[Action<SharedBytes>], n: u16, ack: u32) -> bool {
        actions.iter().any(|action| {
            matches!(action, Action::Inject { to: Side::Fixed, segment }
                if segment.flow == flow(n).reversed() && segment.ack == Some(FIXED_ISN + ack))
        })
    }

    /// From where on, and what, the mobile of connection `n` is sent, which acknowledges it; first
    /// by these actions.
    pub(crate) fn replays(
        &mut self,
        mut actions: Vec<Action<SharedBytes>>,
        n: u16,
    ) -> (u32, Vec<u8>) {
        let first = actions.iter().find_map(|action| match action {
            Action::Inject { to: Side::Mobile, segment } if segment.flow == flow(n) => {
                Some(segment.seq.bytes_after(FIXED_ISN))
            }
            _ => None,
        });
        let (first, mut all) = (first.unwrap_or(0), Vec::new());
        loop {
            let sent = Self::replayed(&actions, n);
            if sent.is_empty() {
                return (first, all);
            }
            all.extend(sent);
            actions = self.ack(n, first + all.len() as u32);
        }
    }

    /// Segments of connection `n` that are sent to the mobile.
    pub(crate) fn replayed(actions: &[Action<SharedBytes>], n: u16) -> Vec<u8> {
        let payloads = actions.iter().filter_map(|action| match action {
            Action::Inject { to: Side::Mobile, segment } if segment.flow == flow(n) => {
                Some(segment.payload.0.as_ref())
            }
            _ => None,
        });
        payloads.collect::<Vec<_>>().concat()
    }
}
