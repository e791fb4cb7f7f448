//! The seeds of the fuzz target `ledger`: what is written down of a frozen connection. Of another
//! format, the reader would refuse them, and the fuzzer would start from nothing.

use airtcp_core::{Addr, Bytes, Duration, Flow, Instant, LinkSignal, Segment, SeqNum};
use airtcp_edge::{
    Actions, FlowTableConfig, Mechanism, MechanismConfig, MechanismNote, Middlebox, MobileId, Side,
};
use airtcp_gateway::ledger::format::{Entry, Log, NewEntry, write_head, write_record};
use airtcp_gateway::packets::SharedBytes;
use std::collections::BTreeMap;
use std::fs;

/// The bytes of a record before its body: `write_record`.
const RECORD_HEAD: usize = 12;

fn flow() -> Flow {
    let fixed = Addr::new("10.0.0.1".parse().unwrap(), 8000);
    Flow { src: fixed, dst: Addr::new("10.0.0.3".parse().unwrap(), 5001) }
}

fn data(seq: u32) -> Segment<SharedBytes> {
    let payload = SharedBytes(vec![seq as u8; 100].into());
    Segment { flow: flow(), seq: SeqNum(seq), ack: Some(SeqNum(1)), payload, ..window() }
}

fn ack(ack: u32) -> Segment<SharedBytes> {
    Segment { flow: flow().reversed(), seq: SeqNum(1), ack: Some(SeqNum(ack)), ..window() }
}

fn window() -> Segment<SharedBytes> {
    Segment { window: 5000, ..Segment::default() }
}

/// The records of a connection that an outage interrupts, with sequence numbers that wrap.
fn records(config: &MechanismConfig) -> Vec<Vec<u8>> {
    let mut node = Mechanism::new(config, FlowTableConfig::default(), Bytes(1 << 20)).unwrap();
    node.keep_journal();
    let (first, mobile) = (u32::MAX - 150, MobileId::Host(flow().dst.ip));
    let (mut now, mut out, mut records) = (Instant::from_secs(1), Actions::new(), Vec::new());
    let at = |n: u32| first.wrapping_add(100 * n);
    type Call<'a> =
        Box<dyn Fn(&mut Mechanism<SharedBytes>, Instant, &mut Actions<SharedBytes>) + 'a>;
    let pass = |side, segment: Segment<SharedBytes>| -> Call<'_> {
        Box::new(move |node, now, out| node.on_segment(now, side, segment.clone(), out))
    };
    let calls: [Call<'_>; 8] = [
        pass(Side::Mobile, ack(at(0))),
        pass(Side::Fixed, data(at(0))),
        pass(Side::Fixed, data(at(1))),
        pass(Side::Fixed, data(at(2))),
        Box::new(|node, now, out| node.on_link(now, mobile, LinkSignal::Down, out)),
        pass(Side::Fixed, data(at(3))),
        Box::new(|node, now, out| node.on_timer(now, out)),
        pass(Side::Mobile, ack(at(1))),
    ];
    let mut inputs = 0;
    for call in calls {
        now += Duration::from_secs(1);
        call(&mut node, now, &mut out);
        for note in node.drain_journal() {
            let entry: NewEntry<'_> = match &note {
                MechanismNote::Snapshot(flow, snapshot) => {
                    inputs = 0;
                    Entry::Snapshot(*flow, "trains", snapshot)
                }
                MechanismNote::Input(flow, input) => {
                    inputs += 1;
                    Entry::Input(*flow, inputs, input)
                }
                MechanismNote::Released(flow) => Entry::Released(*flow),
            };
            let mut record = Vec::new();
            write_record(&mut record, &entry).unwrap();
            records.push(record);
        }
    }
    records
}

/// Each seed's name and content: whole logs, and bodies of records in the form that the check takes.
fn seeds() -> BTreeMap<String, Vec<u8>> {
    let mut seeds = BTreeMap::new();
    for (name, config) in [
        ("holdover", MechanismConfig::Holdover(Default::default())),
        ("m-tcp-plus", MechanismConfig::MTcpPlus(Default::default())),
    ] {
        let records = records(&config);
        let mut log = Vec::new();
        write_head(&mut log, "boot");
        log.extend(records.concat());
        let mut known = BTreeMap::new();
        Log::open(&log).and_then(|log| log.read(&mut known)).expect("it is of this format");
        seeds.insert(format!("log-{name}"), log);
        for n in 1..=records.len() {
            let bodies = records[..n].iter().map(|record| {
                let body = &record[RECORD_HEAD..];
                let len = u16::try_from(body.len()).expect("it is short");
                [&len.to_le_bytes()[..], body].concat()
            });
            seeds.insert(format!("records-{name}-{n}"), bodies.collect::<Vec<_>>().concat());
        }
    }
    seeds
}

/// `AIRTCP_BLESS=1 cargo test -p airtcp-gateway --test fuzz_corpus` writes them anew.
#[test]
fn the_seeds_of_the_ledger_are_of_its_format() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/ledger");
    for (name, seed) in seeds() {
        let path = format!("{folder}/{name}");
        if std::env::var_os("AIRTCP_BLESS").is_some() {
            fs::write(&path, &seed).unwrap();
        }
        assert!(
            fs::read(&path).is_ok_and(|found| found == seed),
            "{path}: AIRTCP_BLESS=1 renews it"
        );
    }
}
