//! The smallest gateway: queues every TCP packet from and to these mobiles, and accepts it.
//!
//! `pass_through PREFIX`, as root; removes its rules and ends at SIGINT or SIGTERM. `make
//! bench-gateway` measures the cost of the data path without a mechanism with it.

use airtcp_core::{Bytes, Duration};
use airtcp_edge::MechanismConfig;
use airtcp_gateway::config::{
    CopyMode, DataPath, GatewayConfig, Group, Limits, Mark, Members, Mode, NfqueueConfig, Signals,
};
use airtcp_gateway::packets::Verdict;
use airtcp_linux::datapath::nfqueue::Nfqueue;
use airtcp_linux::datapath::rules::Rules;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::error::Error;
use std::os::fd::AsFd;

const QUEUE: u16 = 0;
const LENGTH: u32 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let mobiles = std::env::args().nth(1).ok_or("usage: pass_through PREFIX")?;
    let mut queue = Nfqueue::open(QUEUE, LENGTH)?;
    let config = GatewayConfig {
        nfqueue: NfqueueConfig { queue: QUEUE, length: LENGTH },
        mode: Mode::default(),
        data_path: DataPath::default(),
        mark: Mark::default(),
        state: "/run/airtcp".into(),
        control: "/run/airtcp/control".into(),
        limits: Limits { memory: Bytes::ZERO, flows: 0, flows_per_mobile: 0, idle: Duration::ZERO },
        groups: vec![Group {
            name: "mobiles".into(),
            members: Members::Mobiles { addresses: vec![mobiles.parse()?], interfaces: Vec::new() },
            mechanism: MechanismConfig::PacketControl { threshold: 3 },
            copy: CopyMode::Always,
            fast_path: Default::default(),
        }],
        signals: Signals::default(),
        metrics: None,
        record: None,
    };
    let end = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    end.thread_block()?;
    let end = SignalFd::with_flags(&end, SfdFlags::SFD_NONBLOCK)?;

    let _rules = Rules::install(&config)?;
    let mut batch = Vec::new();
    while end.read_signal()?.is_none() {
        queue.receive(&[end.as_fd()], None, &mut batch)?;
        for id in batch.drain(..).filter_map(|packet| packet.id) {
            queue.decide(id, Verdict::Pass)?;
        }
        queue.flush()?;
    }
    Ok(())
}
