//! A congestion control that uses all arguments of its hooks: it measures on every ACK, bounds cwnd
//! by the number of hops, paces, and reads the duplicate ACKs before a time-out.

use airtcp_core::{Bytes, DataRate, Duration, SeqNum};
use airtcp_tcp::congestion::{Ack, CongestionControl, Loss, Reno, Restart, Timeout, Undo, Window};
use airtcp_tcp::recovery::RecoveryPhase;
use std::sync::{Arc, Mutex};

/// Calls observed by [`HopPaced`], for tests to read while the endpoint owns the algorithm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// New and duplicate ACKs in the open phase, in fast recovery, and after a time-out.
    pub acks: [(u32, u32); 3],
    /// Round trips that ended.
    pub rounds: u32,
    /// ACKs that arrived while the application left room.
    pub unused: u32,
    /// Bytes acknowledged so far.
    pub acked: u64,
    /// Duplicate ACKs before each time-out.
    pub timeouts: Vec<u32>,
    /// cwnd reductions undone.
    pub undone: u32,
    /// Restarts after a lost route.
    pub new_routes: u32,
}

/// Reno's growth and halving, with cwnd of at most a segment for every `hops_per_segment` hops,
/// paced at one window per round trip. After a time-out with one or two duplicate ACKs it starts
/// from an eighth or a quarter of cwnd, as TCP Karak does.
#[derive(Debug)]
pub struct HopPaced {
    reno: Reno,
    hops_per_segment: u32,
    round_trip: Option<Duration>,
    round_ends: Option<SeqNum>,
    phase: RecoveryPhase,
    seen: Arc<Mutex<Seen>>,
}

impl HopPaced {
    /// Limits cwnd to a segment for every `hops_per_segment` hops (at least 1).
    pub fn new(hops_per_segment: u32, seen: Arc<Mutex<Seen>>) -> Self {
        Self {
            reno: Reno::new(None),
            hops_per_segment: hops_per_segment.max(1),
            round_trip: None,
            round_ends: None,
            phase: RecoveryPhase::Open,
            seen,
        }
    }

    fn note(&self, what: impl FnOnce(&mut Seen)) {
        what(&mut self.seen.lock().expect("no panic holds it"));
    }
}

impl CongestionControl for HopPaced {
    fn on_ack(&mut self, _: &mut Window, ack: &Ack) {
        self.phase = ack.phase;
        self.round_trip = ack.srtt.or(self.round_trip);
        let round_is_over = ack.acked > 0 && self.round_ends.is_none_or(|end| ack.una.after(end));
        if round_is_over {
            self.round_ends = Some(ack.max);
        }
        self.note(|seen| {
            let (new, duplicate) = match ack.phase {
                RecoveryPhase::Open | RecoveryPhase::Cwr => &mut seen.acks[0],
                RecoveryPhase::Recovery => &mut seen.acks[1],
                RecoveryPhase::Loss => &mut seen.acks[2],
            };
            *if ack.acked > 0 { new } else { duplicate } += 1;
            seen.rounds += u32::from(round_is_over);
            seen.unused += u32::from(!ack.cwnd_limited);
            seen.acked += u64::from(ack.acked);
        });
    }

    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        if let Some(hops) = ack.hops {
            let segments = u32::from(hops).div_ceil(self.hops_per_segment);
            window.set_limit(segments * window.smss());
        }
        self.reno.on_growth(window, ack);
    }

    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        self.reno.on_fast_retransmit(window, loss);
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        self.phase = RecoveryPhase::Loss;
        self.note(|seen| seen.timeouts.push(timeout.duplicate_acks));
        let before = window.cwnd();
        self.reno.on_timeout(window, timeout);
        match timeout.duplicate_acks {
            1 => window.set_cwnd(before / 8),
            2 => window.set_cwnd(before / 4),
            _ => {}
        }
    }

    fn on_restart(&mut self, window: &mut Window, cause: Restart) {
        if cause == Restart::Route {
            self.round_trip = None;
            self.note(|seen| seen.new_routes += 1);
        }
        self.reno.on_restart(window, cause);
    }

    fn on_spurious(&mut self, window: &mut Window, undo: &Undo) {
        self.note(|seen| seen.undone += 1);
        self.reno.on_spurious(window, undo);
    }

    fn pacing_rate(&self, window: &Window) -> Option<DataRate> {
        if self.phase == RecoveryPhase::Recovery {
            return None;
        }
        let nanos = self.round_trip?.as_nanos().max(1);
        let bits = u128::from(Bytes(u64::from(window.cwnd())).bits());
        DataRate::from_bits_per_sec((bits * 1_000_000_000 / u128::from(nanos)) as u64)
    }
}
