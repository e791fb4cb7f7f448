//! M-TCP+ from outside: each line of its specification (paper §3.2, Algorithm 2, Fig. 3) and the
//! hazards of live traffic, as short scripts.

mod away;
mod connected;
mod control;
mod forged;
mod in_time;
mod meeting;
mod replay;
mod resuming;

use crate::script::{ISNS, Script};
use airtcp_core::{Bytes, Length};
use airtcp_edge::{FlowTableConfig, MTcpPlus, MTcpPlusConfig, MTcpPlusCounters, Resume};

type Node = MTcpPlus<Length>;

/// Enough for all that the scripts send.
const MEMORY: u64 = 1 << 30;

fn node(config: MTcpPlusConfig) -> Node {
    MTcpPlus::new(config, FlowTableConfig::default(), MEMORY)
}

/// With this configuration, six segments of 1000 bytes under way, the first acknowledged (see
/// [`Script::new`]).
fn with(config: MTcpPlusConfig, script: impl Fn(Script<Node>)) {
    for isn in ISNS {
        script(Script::new(node(config), isn));
    }
}

/// With the default configuration.
fn each(script: impl Fn(Script<Node>)) {
    with(MTcpPlusConfig::default(), script);
}

fn fifo(bytes: u64) -> MTcpPlusConfig {
    MTcpPlusConfig { fifo: Bytes(bytes), ..MTcpPlusConfig::default() }
}

fn probing() -> MTcpPlusConfig {
    MTcpPlusConfig { resume: Resume::Probe, ..MTcpPlusConfig::default() }
}

fn counters(script: &Script<Node>) -> MTcpPlusCounters {
    script.node.counters()
}
