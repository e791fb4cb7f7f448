#!/bin/sh
# The Rust crate netflow_parser 1.0.6 gives the IPFIX times in micro- and nanoseconds (flowStartMicroseconds and the
# like) from 1900 on, those in seconds and milliseconds from 1970 on. All are a DurationValue; as_duration, comparison
# and JSON treat them alike. So a flow whose probe exports microseconds starts 70 years after the same flow of a probe
# that exports milliseconds, in 2093. No error is returned, and the documentation does not say from when they count. A
# dateTimeMicroseconds is an NTP timestamp (RFC 7011, 6.1.9), 2,208,988,800 s ahead of the seconds of the other two
# (6.1.7 and 6.1.8). tshark 4.0.17 shows the same time for all three.
#
# Seen, a flow of 14 November 2023, 22:13:20.5 UTC, in milli-, micro- and nanoseconds: 1700000000.5, 3908988800.5 and
# 3908988800.5 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat >"$dir/Cargo.toml" <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2024"
[dependencies]
netflow_parser = "=1.0.6"
serde_json = "1"
[profile.dev]
debug = false
[workspace]
END
cat >"$dir/src/main.rs" <<'END'
use netflow_parser::variable_versions::field_value::FieldValue;
use netflow_parser::variable_versions::ipfix::FlowSetBody;
use netflow_parser::{NetflowPacket, NetflowParser};

const TIME: u64 = 1_700_000_000; // s
const TO_1900: u64 = 2_208_988_800; // s
const FIELDS: [u16; 3] = [152, 154, 156]; // flowStartMilliseconds, -Microseconds, -Nanoseconds

fn set(id: u16, words: &[u16]) -> Vec<u16> {
    let length = 4 + 2 * words.len() as u16;
    [id, length].into_iter().chain(words.iter().copied()).collect()
}

fn words(value: u64) -> [u16; 4] {
    [48, 32, 16, 0].map(|shift| (value >> shift) as u16)
}

/// A template and a flow that starts half a second after TIME, in three units.
fn message() -> Vec<u8> {
    let mut template = vec![256, FIELDS.len() as u16];
    template.extend(FIELDS.iter().flat_map(|&field| [field, 8]));
    let timestamp = (TIME + TO_1900) << 32 | 1 << 31;
    let flow = [words(TIME * 1000 + 500), words(timestamp), words(timestamp)].concat();
    let sets = [set(2, &template), set(256, &flow)].concat();
    let time = words(TIME);
    let header = [10, 16 + 2 * sets.len() as u16, time[2], time[3], 0, 0, 0, 1];
    header.into_iter().chain(sets).flat_map(u16::to_be_bytes).collect()
}

fn main() {
    let result = NetflowParser::default().parse_bytes(&message());
    assert!(result.error.is_none());
    let Some(NetflowPacket::IPFix(packet)) = result.packets.first() else { panic!("no IPFIX") };
    let Some(FlowSetBody::Data(data)) = packet.flowsets.last().map(|set| &set.body) else { panic!("no flow") };
    let mut times = Vec::new();
    for (field, value) in &data.fields[0] {
        let FieldValue::Duration(time) = value else { panic!("no time") };
        println!("{field:?}: {:?}, as JSON {}", time.as_duration(), serde_json::to_string(time).unwrap());
        times.push(time);
    }
    let millis = times[0].as_duration();
    let later = times[1..].iter().all(|time| time.as_duration().as_secs() == millis.as_secs() + TO_1900);
    let seen = millis.as_millis() == u128::from(TIME * 1000 + 500) && later && times[0] < times[1];
    assert!(seen, "it has changed");
}
END
CARGO_TARGET_DIR=$dir/target cargo run --quiet --manifest-path "$dir/Cargo.toml"
