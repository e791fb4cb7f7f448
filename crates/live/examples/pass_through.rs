//! The smallest gateway: every TCP packet from and to these mobiles comes here and goes on.
//!
//! `pass_through PREFIX [tun]`, as root; ends, and takes its rules along, at SIGINT or SIGTERM. `make bench-gateway`
//! measures with it what the data path costs without any mechanism.

use airtcp_core::{Bytes, Duration};
use airtcp_edge::MechanismConfig;
use airtcp_live::gateway::config::{
    CopyMode, DataPathConfig, GatewayConfig, Group, Limits, Signals,
};
use airtcp_live::gateway::datapath::nfqueue::Nfqueue;
use airtcp_live::gateway::datapath::rules::Rules;
use airtcp_live::gateway::datapath::tun::Tun;
use airtcp_live::gateway::datapath::{DataPath, Verdict};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::error::Error;
use std::os::fd::AsFd;

const QUEUE: u16 = 0;
const LENGTH: u32 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mobiles = arguments.next().ok_or("usage: pass_through PREFIX [tun]")?;
    let (data_path, mut path): (_, Box<dyn DataPath>) = match arguments.next() {
        None => {
            let data_path = DataPathConfig::Nfqueue { queue: QUEUE, length: LENGTH };
            (data_path, Box::new(Nfqueue::open(QUEUE, LENGTH)?))
        }
        Some(_) => (DataPathConfig::Tun, Box::new(Tun::open()?)),
    };
    let config = GatewayConfig {
        data_path,
        state: "/run/airtcp".into(),
        control: "/run/airtcp/control".into(),
        limits: Limits { memory: Bytes::ZERO, flows: 0, idle: Duration::ZERO },
        groups: vec![Group {
            name: "mobiles".into(),
            addresses: vec![mobiles.parse()?],
            interfaces: Vec::new(),
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
        path.receive(&[end.as_fd()], None, &mut batch)?;
        for id in batch.drain(..).filter_map(|packet| packet.id) {
            path.decide(id, Verdict::Pass)?;
        }
        path.flush()?;
    }
    Ok(())
}
