//! The ledger's reader on any bytes: no panic, and what it reads can be written again and
//! continued.

use airtcp_core::{Bytes, Duration, Instant, LinkSignal};
use airtcp_edge::{Actions, FlowTableConfig, Mechanism, MechanismConfig, Middlebox, MobileId};
use airtcp_live::gateway::ledger::{HEAD, Saved, read, write_record, write_snapshot};
use serde::ser::{Serialize, SerializeTuple as _, Serializer};

/// Part of each file.
const BOOT: &str = "boot";

/// Panics when the reader breaks a promise on these bytes: as they are, and as the bodies of
/// records. Each body follows its length in two bytes, with the right checksums (otherwise nothing
/// would be read).
pub(crate) fn check(input: &[u8]) {
    let _ = read(input, BOOT);
    let mut file = HEAD.to_vec();
    let mut rest = input;
    while let Some((len, tail)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_le_bytes(*len)).min(tail.len());
        let (body, tail) = tail.split_at(len);
        write_record(&mut file, &Raw(body)).expect("it is small");
        rest = tail;
    }
    let Ok((saved, end)) = read(&file, BOOT) else { return };
    assert_eq!(end, file.len(), "all records are whole");

    let Saved { group, flow, snapshot } = &saved;
    let mut written = Vec::new();
    write_snapshot(&mut written, BOOT, group, flow, snapshot).expect("it is small");
    assert_eq!(
        read(&written, BOOT).expect("what was written is read"),
        (saved.clone(), written.len())
    );

    let config = MechanismConfig::MTcpPlus(snapshot.config);
    let mut mechanism = Mechanism::new(&config, FlowTableConfig::default(), Bytes(1 << 20))
        .expect("any M-TCP+ configuration is valid");
    let (mut now, mut out) = (Instant::from_secs(1000), Actions::new());
    mechanism.keep_journal();
    assert!(mechanism.restore(now, *flow, snapshot.connection.clone()));
    assert_eq!(mechanism.held(), mechanism.reports().map(|report| report.held).sum::<u64>());
    for signal in [LinkSignal::Down, LinkSignal::Up] {
        mechanism.on_link(now, MobileId(flow.dst.ip), signal, &mut out);
        now += Duration::from_secs(100);
        mechanism.on_timer(now, &mut out);
    }
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
