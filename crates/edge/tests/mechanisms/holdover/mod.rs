//! Holdover from outside: each line of docs/holdover.md and the hazards of live traffic, as short
//! scripts.

mod away;
mod connected;
mod resuming;

use crate::script::{ISNS, Script};
use airtcp_core::{Bytes, Length};
use airtcp_edge::{FlowTableConfig, Holdover, HoldoverConfig, HoldoverCounters};

type Node = Holdover<Length>;

/// Enough for all that the scripts send.
const MEMORY: u64 = 1 << 30;

fn node(config: HoldoverConfig) -> Node {
    Holdover::new(config, FlowTableConfig::default(), MEMORY)
}

/// With this configuration, six segments of 1000 bytes under way, the first acknowledged (see
/// [`Script::new`]).
fn with(config: HoldoverConfig, script: impl Fn(Script<Node>)) {
    for isn in ISNS {
        script(Script::new(node(config), isn));
    }
}

/// With the default configuration.
fn each(script: impl Fn(Script<Node>)) {
    with(HoldoverConfig::default(), script);
}

fn fifo(bytes: u64) -> HoldoverConfig {
    HoldoverConfig { fifo: Bytes(bytes), ..HoldoverConfig::default() }
}

fn counters(script: &Script<Node>) -> HoldoverCounters {
    script.node.counters()
}
