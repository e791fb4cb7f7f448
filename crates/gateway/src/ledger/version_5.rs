//! A connection as version 5 of the ledger wrote it: of M-TCP+, committed, and one in each file.

use crate::packets::SharedBytes;
use airtcp_core::{Duration, Instant, LinkSignal, Segment, SeqNum};
use airtcp_edge::belief::Strangers;
use airtcp_edge::ends::Ends;
use airtcp_edge::journal;
use airtcp_edge::m_tcp_plus::{MTcpPlusConfig, State};
use airtcp_edge::{Call, Input, Snapshot as Present};
use serde::Deserialize;

/// How every file of that version begins.
pub const HEAD: [u8; 12] = *b"airtcpLG\x05\0\0\0";

#[derive(Deserialize)]
pub(super) struct Snapshot {
    config: MTcpPlusConfig,
    known: Known,
    phase: Phase,
}

#[derive(Deserialize)]
struct Known {
    met: Option<Store>,
    _strangers: Strangers,
}

#[derive(Deserialize)]
struct Store {
    ends: Ends,
    copies: Vec<Segment<SharedBytes>>,
}

#[derive(Deserialize)]
enum Phase {
    Connected { _sent_again: bool },
    Frozen(Frozen),
    Reset,
}

#[derive(Deserialize)]
struct Frozen {
    acked_fh: SeqNum,
    echo: Option<u32>,
    link: Link,
    _replay: Option<Replay>,
    _give_up: Option<Instant>,
}

#[derive(Deserialize)]
enum Link {
    Away(Away),
    Resuming,
    AwaitingProbe,
}

#[derive(Deserialize)]
struct Away {
    _down: bool,
    _nudged: bool,
    told: Instant,
    _asking: Option<(Instant, Instant)>,
}

#[derive(Deserialize)]
struct Replay {
    _deadline: Instant,
    _timeout: Duration,
    _duplicates: u8,
    _recovering: bool,
}

impl Snapshot {
    /// The same connection in this version, frozen: its mobile is taken to be away, and asked
    /// whether it is back. `None` for what was never written.
    pub(super) fn into_present(self) -> Option<Present<SharedBytes>> {
        let Phase::Frozen(Frozen { acked_fh, echo, link, .. }) = self.phase else { return None };
        let Store { ends, copies } = self.known.met?;
        let connection = State::frozen(ends, copies.try_into().ok()?, acked_fh, echo);
        let mut present = Present::MTcpPlus(journal::Snapshot { config: self.config, connection });
        let now = match link {
            Link::Away(away) => away.told,
            Link::Resuming | Link::AwaitingProbe => Instant::ZERO,
        };
        let call = Call::Link(LinkSignal::Down);
        present.apply(Input { now, room: 0, interrupted: 1, waiting: 0, call });
        Some(present)
    }
}
