//! A mobile host's reaction to its radio: M-TCP's recovery ACK (M-TCP §3.3) and Freeze-TCP (Goff,
//! Moronski, Phatak, Gupta 2000). Both are for data that the mobile receives.
//!
//! *Freeze-TCP* advertises a closed window ahead of an outage, so that the sender persists instead
//! of backing off. On reconnection it sends three copies of the last ACK with the true window
//! (TR-ACKs): one of them should arrive, and together they trigger a fast retransmit at a sender
//! that did lose data.
//!
//! Decisions where the paper is silent:
//! - `Fading` freezes and says so at once. `Down` without `Fading` freezes too, but sends nothing,
//!   since nothing can get out. A delayed ACK that leaves nevertheless then carries no invitation
//!   to send.
//! - While frozen, every segment carries window 0, answers to window probes included. Data inside
//!   the window promised before is accepted and acknowledged.
//! - Only `Up` thaws, so a radio that reported `Fading` must report `Up`, even if no outage came.
//!   The radio is the host's own: unlike a signal over the network, its report does not get lost.
//! - `Up` without `Fading` or `Down` before changes nothing: three duplicate ACKs would cost the
//!   sender half its cwnd.

use super::{Endpoint, Io, TcpState};
use crate::config::LinkReaction;
use airtcp_core::{Instant, LinkSignal, Payload};

/// Copies of the last ACK on reconnection (Goff et al. 2000).
const TR_ACKS: usize = 3;

impl<P: Payload> Endpoint<P> {
    /// Handles a report of this host's radio on its link, as [`crate::TcpConfig::on_link`]
    /// specifies.
    pub fn on_link(&mut self, now: Instant, signal: LinkSignal, io: &mut Io<'_, P>) {
        match (self.config.on_link, signal) {
            (LinkReaction::None, _)
            | (LinkReaction::RecoveryAck, LinkSignal::Fading | LinkSignal::Down) => {}
            (LinkReaction::RecoveryAck, LinkSignal::Up) => self.send_link_acks(now, 1, io),
            (LinkReaction::Freeze, LinkSignal::Fading) => {
                if !std::mem::replace(&mut self.rx.frozen, true) {
                    self.send_link_acks(now, 1, io);
                }
            }
            (LinkReaction::Freeze, LinkSignal::Down) => self.rx.frozen = true,
            (LinkReaction::Freeze, LinkSignal::Up) => {
                if std::mem::replace(&mut self.rx.frozen, false) {
                    self.send_link_acks(now, TR_ACKS, io);
                }
            }
        }
    }

    /// Sends `copies` of the last ACK, if the connection is open.
    fn send_link_acks(&mut self, now: Instant, copies: usize, io: &mut Io<'_, P>) {
        if self.is_synchronised() && self.state != TcpState::TimeWait {
            for _ in 0..copies {
                self.send_ack(now, io);
            }
        }
    }
}
