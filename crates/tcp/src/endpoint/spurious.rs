//! Spurious retransmissions: detection by Eifel (RFC 3522) or F-RTO (RFC 5682), response by RFC
//! 4015.
//!
//! Eifel compares the timestamp echoed by the first ACK after a retransmission with the timestamp
//! of that retransmission: an older echo means that the original had arrived. F-RTO needs no
//! option: after a time-out it sends new data on the first ACK, and if the second ACK advances too,
//! the ACKs must be for originals.
//!
//! Not checked against the text of RFC 5682: the step numbers cited here, and that the detection
//! goes on over repeated time-outs of the same segment (as in Linux).

use crate::config::SpuriousDetection;
use crate::rto::Estimate;
use airtcp_core::event::Spurious;

/// State that the response restores, saved before the reduction (RFC 4015 §3.2 step 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Saved {
    /// max(FlightSize, ssthresh), in bytes.
    pub(super) pipe_prev: u32,
    /// SRTT + 2·G and RTTVAR.
    pub(super) estimate: Option<Estimate>,
}

/// Step of F-RTO (RFC 5682 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FRtoStep {
    /// Step 2: waiting for the first ACK after the time-out.
    FirstAck,
    /// Step 3: two new segments are out; waiting for the second ACK.
    SecondAck,
}

/// The detector of one sender, idle most of the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detector {
    method: SpuriousDetection,
    pending: Option<Pending>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    saved: Saved,
    kind: Spurious,
    /// Eifel: TSval of the retransmission.
    retransmitted_at: u32,
    /// F-RTO: the current step.
    step: FRtoStep,
}

/// F-RTO's verdict on an ACK after a time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FRtoVerdict {
    /// F-RTO does not apply, or conventional recovery continues.
    Conventional,
    /// Send up to two new segments and wait for the next ACK.
    ProbeWithNewData,
    /// The second ACK was a duplicate: conventional recovery, cwnd at most three segments.
    FellThrough,
    /// The time-out was spurious: undo it.
    Spurious(Saved),
}

impl Detector {
    pub(super) fn new(method: SpuriousDetection) -> Self {
        Self { method, pending: None }
    }

    /// Handles a time-out. Only the first in a row saves state; later ones would save the reduced
    /// one.
    pub(super) fn on_timeout(&mut self, first: bool, saved: Saved, clock: u32, in_recovery: bool) {
        match self.method {
            SpuriousDetection::None => {}
            SpuriousDetection::Eifel if first => self.arm(Spurious::Timeout, saved, clock),
            SpuriousDetection::Eifel => {}
            // RFC 5682 §2.1 step 1: not while an earlier recovery goes on.
            SpuriousDetection::FRto if first && !in_recovery => {
                self.arm(Spurious::Timeout, saved, clock);
            }
            SpuriousDetection::FRto => {
                if let Some(p) = &mut self.pending {
                    p.step = FRtoStep::FirstAck;
                }
            }
        }
    }

    /// Handles a fast retransmit: Eifel covers it, F-RTO does not.
    pub(super) fn on_fast_retransmit(&mut self, saved: Saved, clock: u32) {
        match self.method {
            SpuriousDetection::Eifel => self.arm(Spurious::FastRetransmit, saved, clock),
            SpuriousDetection::None | SpuriousDetection::FRto => self.pending = None,
        }
    }

    fn arm(&mut self, kind: Spurious, saved: Saved, clock: u32) {
        let step = FRtoStep::FirstAck;
        self.pending = Some(Pending { saved, kind, retransmitted_at: clock, step });
    }

    /// Eifel's decision on the first ACK that advances SND.UNA (RFC 3522 §3.2 steps 4 and 5).
    pub(super) fn eifel(&mut self, echo: Option<u32>) -> Option<(Spurious, Saved)> {
        if self.method != SpuriousDetection::Eifel {
            return None;
        }
        let pending = self.pending.take()?;
        let older = (echo?.wrapping_sub(pending.retransmitted_at) as i32) < 0;
        older.then_some((pending.kind, pending.saved))
    }

    /// F-RTO's decision on an ACK that advances SND.UNA (RFC 5682 §2.1 steps 2 and 3). `complete`:
    /// all data sent before the time-out is acknowledged.
    pub(super) fn f_rto_on_new_ack(&mut self, complete: bool) -> FRtoVerdict {
        let Some(pending) =
            self.pending.as_mut().filter(|_| self.method == SpuriousDetection::FRto)
        else {
            return FRtoVerdict::Conventional;
        };
        match pending.step {
            FRtoStep::FirstAck if !complete => {
                pending.step = FRtoStep::SecondAck;
                FRtoVerdict::ProbeWithNewData
            }
            FRtoStep::FirstAck => {
                self.pending = None;
                FRtoVerdict::Conventional
            }
            FRtoStep::SecondAck => {
                let saved = pending.saved;
                self.pending = None;
                FRtoVerdict::Spurious(saved)
            }
        }
    }

    /// F-RTO's decision on a duplicate ACK. `originals_arrived`: it SACKs data sent before the
    /// time-out and not retransmitted since (RFC 5682 §3.1 step 3); SACKs of the new data sent in
    /// step 2 prove nothing.
    pub(super) fn f_rto_on_duplicate(
        &mut self,
        originals_arrived: bool,
        with_sack: bool,
    ) -> FRtoVerdict {
        let Some(pending) = self.pending.filter(|_| self.method == SpuriousDetection::FRto) else {
            return FRtoVerdict::Conventional;
        };
        match pending.step {
            // §3.1 step 2: with SACK, duplicates before the first new ACK are only noted.
            FRtoStep::FirstAck if with_sack => FRtoVerdict::Conventional,
            FRtoStep::FirstAck => {
                self.pending = None;
                FRtoVerdict::Conventional
            }
            FRtoStep::SecondAck => {
                self.pending = None;
                if originals_arrived {
                    FRtoVerdict::Spurious(pending.saved)
                } else {
                    FRtoVerdict::FellThrough
                }
            }
        }
    }

    /// Falls back to conventional recovery: no new data could be sent in step 2 (RFC 5682 §2.1 step
    /// 2b).
    pub(super) fn give_up(&mut self) {
        self.pending = None;
    }
}
