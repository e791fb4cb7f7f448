#!/bin/sh
# The Rust crate netlink_wi 0.6.0, which asks Linux about its WiFi (nl80211), gives other numbers than the kernel
# (station.rs, interface.rs). Levels, "in dBm" by its documentation, have no sign: -60 dBm is 196. The levels of the
# antennas are a row of attributes, and it gives their bytes, lengths and padding too. The airtime of a station, in
# microseconds, is taken for milliseconds. The transmit power, "in dBm", is in hundredths of it. And each counter of a
# traffic class makes a new record in the place of the one before, so the last counter is left and the number of MSDUs,
# sent and received, is never there. Nothing is said. By Linux (include/uapi/linux/nl80211.h) durations are in usec,
# power is "in signed mBm units" and CHAIN_SIGNAL is "a nested array"; iw takes a level, there u8, for signed.
#
# Seen, told -60 dBm, antennas -60 and -62, 5 s of airtime, 20 dBm, and for class 0 1000 MSDUs received, 2000 sent, 30
# retries and 4 failures: 196; 5 0 0 0 196 0 0 0 5 0 1 0 194 0 0 0; 5000 s; 2000; failures 4, all else None.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cargo info --quiet netlink_wi@0.6.0 >log 2>&1 || { cat log >&2; exit 2; }
mkdir src
# Its files as they are, without the socket: its readers of messages are not public, and a WiFi device is not needed.
for file in attributes commands interface station; do
    cp "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/netlink_wi-0.6.0/src/$file.rs src/
done
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2021"

[dependencies]
bitflags = "=2.9.4"
log = "=0.4.28"
neli = "=0.6.5"
neli-proc-macros = "=0.1.4"

[profile.dev]
debug = false

[workspace]
END
cat >src/main.rs <<'END'
#![allow(dead_code, unused_imports)]
mod attributes;
mod commands;
mod interface;
mod station;

use attributes::Attribute;
use commands::Command;
use interface::WirelessInterface;
use neli::{genl::Genlmsghdr, FromBytesWithInput};
use station::WirelessStation;
use std::io::Cursor;

/// A netlink attribute: length, number and payload, padded to four bytes.
fn attribute(number: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (4 + payload.len() as u16).to_ne_bytes().to_vec();
    bytes.extend(number.to_ne_bytes());
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn message(attributes: &[Vec<u8>]) -> Genlmsghdr<Command, Attribute> {
    let header = vec![0, 1, 0, 0];
    let bytes = [header, attributes.concat()].concat();
    Genlmsghdr::from_bytes_with_input(&mut Cursor::new(&bytes), bytes.len()).unwrap()
}

fn main() {
    // The numbers are those of nl80211.h: NL80211_STA_INFO_SIGNAL is 7 and so on.
    let level = |dbm: i8| dbm.to_ne_bytes();
    let antennas = [attribute(0, &level(-60)), attribute(1, &level(-62))].concat();
    let msdus = [1000u64, 2000, 30, 4];
    let counters: Vec<_> = (1..).zip(msdus).map(|(number, count)| attribute(number, &count.to_ne_bytes())).collect();
    let classes = attribute(1, &counters.concat());
    let airtime = 5_000_000u64.to_ne_bytes();
    let info = [attribute(7, &level(-60)), attribute(25, &antennas), attribute(32, &airtime), attribute(31, &classes)];
    let station = message(&[attribute(3, &3u32.to_ne_bytes()), attribute(21, &info.concat())]);
    let station: WirelessStation = station.get_attr_handle().try_into().unwrap();
    println!("level {:?}, antennas {:?}", station.signal.unwrap(), station.chain_signal);
    println!("airtime {:?}", station.rx_duration.unwrap());
    let class = station.tid_stats.unwrap()[0].clone();
    println!("MSDUs received {:?}, sent {:?}", class.rx_msdu, class.tx_msdu);
    println!("retries {:?}, failures {:?}", class.tx_msdu_retries, class.tx_msdu_failed);
    let interface = message(&[attribute(98, &2000u32.to_ne_bytes())]);
    let interface: WirelessInterface = interface.get_attr_handle().try_into().unwrap();
    println!("power {:?}", interface.tx_power.unwrap());
}
END
cargo run --quiet | tee told
cat >expected <<'END'
level 196, antennas [5, 0, 0, 0, 196, 0, 0, 0, 5, 0, 1, 0, 194, 0, 0, 0]
airtime 5000s
MSDUs received None, sent None
retries None, failures Some(4)
power 2000
END
diff expected told
