//! Shared by the link tests: small configurations and a driver that records logical times.

use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_net::config::{DelayConfig, LinkConfig, LinkRate, LossConfig, QueueConfig, QueueLimit};
use airtcp_net::{Dropped, Link, LinkStreams, Output, PacketMeta, Trace};
use std::sync::Arc;

/// A 1040-B data packet, 33.28 ms at 250 kbit/s.
pub(crate) const PACKET: PacketMeta = PacketMeta::new(Bytes(1040), true);

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) fn at_us(n: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(n)
}

/// The wireless link of the Packet Control paper without its impairments.
pub(crate) fn plain() -> LinkConfig {
    LinkConfig {
        rate: DataRate::kbps(250).into(),
        delay: DelayConfig { base: ms(170), variation: None },
        loss: LossConfig::None.into(),
        duplicate: 0.0,
        policer: None,
        outage: None,
        reconfiguration: None,
        handover: None,
        rlc: None,
        queue: QueueConfig::DropTail { limit: QueueLimit::Packets(50) },
    }
}

/// The link with the rate of a Mahimahi trace.
pub(crate) fn traced(trace: &str, link: &LinkConfig) -> LinkConfig {
    let trace = Trace::parse(trace).unwrap();
    LinkConfig { rate: LinkRate::Mahimahi(Arc::new(trace)), ..link.clone() }
}

pub(crate) fn link(config: &LinkConfig) -> Link<u32> {
    Link::new(config, LinkStreams::named(1, "test"))
}

/// The fate of a packet, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Delivered(Instant, u32),
    Lost(Instant, u32, DropReason),
}

impl Fate {
    pub(crate) fn at(self) -> Instant {
        match self {
            Self::Delivered(at, _) | Self::Lost(at, ..) => at,
        }
    }
}

/// The fate that `output` reports at `at`.
pub(crate) fn fate(at: Instant, output: Output<u32>) -> Fate {
    match output {
        Output::Deliver(id, _) => Fate::Delivered(at, id),
        Output::Drop(id, reason) => Fate::Lost(at, id, reason),
    }
}

/// Polls at every deadline up to `until`, as the simulator does.
pub(crate) fn run_until(link: &mut Link<u32>, until: Instant, log: &mut Vec<Fate>) {
    while let Some(at) = link.next_deadline().filter(|&at| at <= until) {
        let before = (log.len(), link.next_deadline());
        while let Some(output) = link.poll(at) {
            log.push(fate(at, output));
        }
        assert_ne!((log.len(), link.next_deadline()), before, "a wake-up must make progress");
    }
}

/// Sends packets 0, 1, … at `sends`, then polls until nothing is left.
pub(crate) fn run(link: &mut Link<u32>, sends: &[(Instant, PacketMeta)]) -> Vec<Fate> {
    send_until(link, sends, Instant::MAX).1
}

/// The same up to `stop`: the number of packets sent, and the fates so far.
pub(crate) fn send_until(
    link: &mut Link<u32>,
    sends: &[(Instant, PacketMeta)],
    stop: Instant,
) -> (usize, Vec<Fate>) {
    let (mut sent, mut log) = (0, Vec::new());
    for (id, &(at, meta)) in (0..).zip(sends).take_while(|(_, (at, _))| *at <= stop) {
        run_until(link, at, &mut log);
        sent += 1;
        if let Err(Dropped(id, reason)) = link.send(at, id, meta) {
            log.push(Fate::Lost(at, id, reason));
        }
    }
    run_until(link, stop, &mut log);
    (sent, log)
}
