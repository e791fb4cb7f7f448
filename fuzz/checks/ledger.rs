//! The ledger's reader on any bytes: no panic, and what it reads can be written again and
//! continued.

use airtcp_core::{Bytes, Duration, Flow, Instant, LinkSignal};
use airtcp_edge::{Actions, FlowTableConfig, Mechanism, MechanismSnapshot, Middlebox, MobileId};
use airtcp_gateway::ledger::format::{
    Entry, Known, Log, NewEntry, Saved, write_head, write_record,
};
use airtcp_gateway::packets::SharedBytes;
use serde::ser::{Serialize, SerializeTuple as _, Serializer};
use std::collections::BTreeMap;

/// Part of each file.
const BOOT: &str = "boot";

/// Panics when the reader breaks a promise on these bytes: as they are, and as the bodies of
/// records. Each body follows its length in two bytes, with the right checksums (otherwise nothing
/// would be read).
pub(crate) fn check(input: &[u8]) {
    let _ = Log::open(input).map(|log| log.read(&mut BTreeMap::new()));
    let mut log = Vec::new();
    write_head(&mut log, BOOT);
    let mut rest = input;
    while let Some((len, tail)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_le_bytes(*len)).min(tail.len());
        let (body, tail) = tail.split_at(len);
        write_record(&mut log, &Raw(body)).expect("it is small");
        rest = tail;
    }
    let mut known = BTreeMap::new();
    let _ = Log::open(&log).expect("it has a head").read(&mut known);
    for (flow, known) in known {
        if let Known::Whole { group, snapshot, .. } = known {
            go_on(Saved { group, flow, snapshot: *snapshot });
        }
    }
}

fn go_on(saved: Saved) {
    let Saved { group, flow, snapshot } = &saved;
    let written = log_of(*flow, group, snapshot);
    let mut known = BTreeMap::new();
    Log::open(&written).and_then(|log| log.read(&mut known)).expect("what was written is read");
    // Some of what inputs leave behind is not written down; what is, is read as it was.
    let Some((found, Known::Whole { group: read_group, snapshot: read, inputs: 0 })) =
        known.pop_first()
    else {
        panic!("it is whole: {known:?}")
    };
    assert_eq!((found, log_of(found, &read_group, &read)), (*flow, written));
    assert!(known.is_empty());

    let mut mechanism =
        Mechanism::new(&snapshot.config(), FlowTableConfig::default(), Bytes(1 << 20))
            .expect("any configuration on file is valid");
    let (mut now, mut out) = (Instant::from_secs(1000), Actions::new());
    mechanism.keep_journal();
    let _ = snapshot.clone().resets();
    assert!(mechanism.restore(now, *flow, snapshot.clone()));
    assert_eq!(mechanism.held(), mechanism.reports().map(|report| report.held).sum::<u64>());
    for signal in [LinkSignal::Down, LinkSignal::Up] {
        mechanism.on_link(now, MobileId::Host(flow.dst.ip), signal, &mut out);
        now += Duration::from_secs(100);
        mechanism.on_timer(now, &mut out);
    }
}

/// A log of this connection.
fn log_of(flow: Flow, group: &str, snapshot: &MechanismSnapshot<SharedBytes>) -> Vec<u8> {
    let mut log = Vec::new();
    write_head(&mut log, BOOT);
    let entry: NewEntry<'_> = Entry::Snapshot(flow, group, snapshot);
    write_record(&mut log, &entry).expect("it is small");
    log
}

/// The bytes without their number.
struct Raw<'a>(&'a [u8]);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(self.0.len())?;
        for byte in self.0 {
            tuple.serialize_element(byte)?;
        }
        tuple.end()
    }
}
