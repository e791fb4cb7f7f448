//! Tests of whole runs, in one program: each program of its own would compile the simulator's generic
//! code again (31 of them took 116 s of processor time).

mod accurate_ecn;
mod adhoc;
mod applications;
mod autotuning;
mod bbr3;
mod cells;
mod chains;
mod common;
mod controls;
mod determinism;
mod duplicates;
mod ear;
mod fall_floyd;
mod fingerprints;
mod fuzz_corpus;
mod handover;
mod large_windows;
mod limits;
mod link_logs;
mod losses;
mod memory;
mod oracles;
mod pcap;
mod presets;
mod queues;
mod quic;
mod routing;
mod signal_level;
mod split;
mod ticks;
mod traffic;
mod tshark;
mod validation;
mod wlan;

#[global_allocator]
static ALLOCATOR: airtcp_testing::CountingAllocator = airtcp_testing::CountingAllocator;
