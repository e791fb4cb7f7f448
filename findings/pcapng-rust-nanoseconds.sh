#!/bin/sh
# The Rust crate pcap-file 2.0.0 takes the times of pcapng packets for nanoseconds, whatever the
# interface says. The format's default is microseconds: a packet of 2023 comes out as a Duration of
# 1,700,000 s, which is 20 January 1970, and all intervals are a thousandth. No error is returned.
#
# Seen: 1700000s; right is 1700000000s (if_tsresol; draft-ietf-opsawg-pcapng, 4.2 and 4.3).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat >"$dir/Cargo.toml" <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2021"
[dependencies]
pcap-file = "=2.0.0"
[workspace]
END
cat >"$dir/src/main.rs" <<'END'
use pcap_file::pcapng::{Block, PcapNgReader};

fn block(kind: u32, body: &[u32]) -> Vec<u8> {
    let length = 12 + 4 * body.len() as u32;
    let words = [kind, length].into_iter().chain(body.iter().copied()).chain([length]);
    words.flat_map(u32::to_le_bytes).collect()
}

fn main() {
    let micros = 1_700_000_000_000_000_u64;
    let mut file = block(0x0A0D_0D0A, &[0x1A2B_3C4D, 1, u32::MAX, u32::MAX]);
    file.extend(block(1, &[101, 0])); // no options: microseconds
    file.extend(block(6, &[0, (micros >> 32) as u32, micros as u32, 4, 4, 0]));
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            println!("{:?}", packet.timestamp);
            assert_eq!(packet.timestamp.as_secs(), 1_700_000, "it has changed");
            return;
        }
    }
    panic!("no packet");
}
END
CARGO_TARGET_DIR=$dir/target cargo run --quiet --manifest-path "$dir/Cargo.toml"
