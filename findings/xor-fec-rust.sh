#!/bin/sh
# Two Rust crates that send the XOR of a group of packets along, to make up for one that is lost, hand out packets that
# nobody sent. fastnet 0.3.1, for games (fec.rs), does not protect the length: what it recovers is as long as the
# longest packet of the group, with zeros at the end. Its set of received packets has eight bits where a group may have
# 16 packets, so in release builds groups of eight recover nothing. And each XOR that comes after its group stays there
# as a group of its own; of 64 it drops the one with the lowest number, of 16 bits, so once the numbers have wrapped
# around, that is always the newest. oximedia-net 0.2.1, for media over RTP (fec/xor_fec.rs), takes it that groups begin
# at multiples of their size, and any XOR for the group's own. And it never forgets a packet, so after 65536 none is
# missing. Nothing is said. By RFC 5109, which oximedia-net names, the XOR has the numbers of the packets that it covers
# (7.3, 7.4) and protects their lengths (7.3); RTP begins at a random number (RFC 3550, 5.1).
#
# Seen, groups of four, the second packet of each lost, the XOR last: of 1000 groups with packets of 200 and 40 bytes in
# turn fastnet recovers none rightly and 1000 wrongly, of equal ones all; of groups of eight none; of equal ones after
# 65536 groups none. oximedia-net recovers 100 of 100, after 65536 packets none; from sequence number 1001 on none
# rightly and 99 wrongly.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p src fetch/src
cat >fetch/Cargo.toml <<'END'
[package]
name = "fetch"
version = "0.1.0"
edition = "2021"

[dependencies]
fastnet = "=0.3.1"
oximedia-net = "=0.2.1"

[workspace]
END
echo 'fn main() {}' >fetch/src/main.rs
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2021"

[profile.release]
debug = false

[workspace]
END
# The two modules as they are, without encryption and the like, which take minutes to build.
cargo metadata --quiet --format-version 1 --manifest-path fetch/Cargo.toml >metadata
folder() { python3 - "$1" <<'END'
import json, os, sys
for package in json.load(open("metadata"))["packages"]:
    if package["name"] == sys.argv[1]:
        print(os.path.dirname(package["manifest_path"]) + "/src")
END
}
ln -s "$(folder fastnet)/net/fast/fec.rs" src/fastnet.rs
ln -s "$(folder oximedia-net)/fec/xor_fec.rs" src/oximedia.rs
cat >src/main.rs <<'END'
#![allow(dead_code)]

mod fastnet;
mod oximedia;

/// A packet that no other is like.
fn packet(number: u64, size: usize) -> Vec<u8> {
    let mut state = number + 1;
    let mut byte = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..size).map(|_| byte()).collect()
}

/// Counts what is recovered rightly and wrongly.
#[derive(Default)]
struct Count(usize, usize);

impl Count {
    fn add(&mut self, right: bool) {
        *(if right { &mut self.0 } else { &mut self.1 }) += 1;
    }
}

/// Of groups of so many packets, of which the second is lost from a group on.
fn fastnet(size: u8, groups: u64, lost_from: u64, bytes: [usize; 2]) -> Count {
    let (mut encoder, mut decoder) = (fastnet::FecEncoder::new(size), fastnet::FecDecoder::new(size));
    let mut count = Count::default();
    for group in 0..groups {
        let sent = |index: u8| packet(group * u64::from(size) + u64::from(index), bytes[usize::from(index % 2)]);
        for index in 0..size {
            let data = sent(index);
            let header = encoder.data_header(index);
            let parity = encoder.add_packet(&data);
            let lost = index == 1 && group >= lost_from;
            let mut recovered = if lost { None } else { decoder.add_packet(&header, &data) };
            if let Some((header, length)) = parity {
                recovered = recovered.or(decoder.add_packet(&header, &encoder.get_parity()[..length]));
                encoder.clear_parity(length);
            }
            if let Some((index, data)) = recovered {
                count.add(data == sent(index));
            }
        }
    }
    count
}

/// Of groups of four packets of 160 bytes from a sequence number on, of which the second is lost. Before them come some
/// without loss.
fn oximedia(first: u16, before: u64, groups: u64) -> Count {
    let config = oximedia::FecConfig::one_dimensional(4);
    let mut encoder = oximedia::FecEncoder::new(config.clone());
    let mut decoder = oximedia::FecDecoder::new(config);
    let mut count = Count::default();
    for group in 0..before + groups {
        let sent: Vec<_> = (group * 4..).take(4).map(|number| (first.wrapping_add(number as u16), number)).collect();
        for &(sequence, number) in &sent {
            let data = packet(number, 160);
            if let Some(parity) = encoder.feed_packet(sequence, &data) {
                decoder.feed_fec(parity);
            }
            if group < before || number % 4 != 1 {
                decoder.feed_source(sequence, data);
            }
        }
        if group >= before {
            for (sequence, data) in decoder.try_recover() {
                count.add(sequence == sent[1].0 && data == packet(sent[1].1, 160));
            }
        }
    }
    count
}

fn main() {
    let told = [
        ("fastnet, sizes 200 and 40", fastnet(4, 1000, 0, [200, 40]), (0, 1000)),
        ("fastnet, sizes 200", fastnet(4, 1000, 0, [200, 200]), (1000, 0)),
        ("fastnet, groups of eight", fastnet(8, 1000, 0, [200, 200]), (0, 0)),
        ("fastnet, after 65536 groups", fastnet(4, 66536, 65536, [200, 200]), (0, 0)),
        ("oximedia-net", oximedia(0, 0, 100), (100, 0)),
        ("oximedia-net, after 65536 packets", oximedia(0, 16384, 3), (0, 0)),
        ("oximedia-net, from 1001 on", oximedia(1001, 0, 100), (0, 99)),
    ];
    let mut changed = false;
    for (name, Count(right, wrong), expected) in told {
        println!("{name}: {right} right, {wrong} wrong");
        changed |= (right, wrong) != expected;
    }
    std::process::exit(changed.into());
}
END
cargo run --quiet --release
