//! A sender on a broken route: frozen at the notice of a failure, until its
//! [`RoutePolicy`](crate::route::RoutePolicy) lets it go on.

use super::{Endpoint, Io};
use crate::congestion::Restart;
use crate::route::{Resume, RouteFailure, Standby, Thaw};
use airtcp_core::{Event, Instant, Payload, Segment, SeqNum};

impl<P: Payload> Endpoint<P> {
    /// The network reports that the segment with the first sequence number `seq` got stuck: the route
    /// to the peer is broken. [`crate::TcpConfig::on_route_failure`] says what that does. Notices of
    /// data that is not outstanding are old; those in persist tell nothing that a probe will not.
    pub fn on_route_failure(&mut self, now: Instant, seq: SeqNum, io: &mut Io<'_, P>) {
        let tx = &mut self.tx;
        let outstanding = seq.at_or_after(tx.una) && seq.before(tx.max);
        if !outstanding || tx.standby || tx.persist.is_some() || !self.sends_data() {
            return;
        }
        let tx = &mut self.tx;
        if tx.route.on_failure(&RouteFailure { now, seq, flight: tx.flight() }) {
            tx.standby = true;
            tx.rtx_deadline = None;
            tx.pacing.stop();
            tx.timed = None; // whatever the timed segment took, it was not the round trip
            io.events.emit(now, || Event::Standby { active: true });
        }
    }

    /// The network reports that there is a route to the peer again.
    pub fn on_route_restored(&mut self, now: Instant, io: &mut Io<'_, P>) {
        if self.tx.standby {
            let next = self.tx.route.on_restored(now);
            self.continue_standby(now, next, io);
        }
    }

    pub(super) fn on_standby_timer(&mut self, now: Instant, io: &mut Io<'_, P>) {
        let next = self.tx.route.on_timer(now);
        self.continue_standby(now, next, io);
    }

    fn continue_standby(&mut self, now: Instant, next: Standby, io: &mut Io<'_, P>) {
        self.thaw(now, next, io);
        self.send_again(now, next, io);
        self.transmit(now, io);
    }

    /// An acknowledgement in standby. One that ends it has its full effect; what it calls for is sent
    /// from the new SND.UNA on. The caller transmits.
    pub(super) fn on_ack_in_standby(
        &mut self,
        now: Instant,
        ack: SeqNum,
        segment: &Segment<P>,
        io: &mut Io<'_, P>,
    ) {
        let next = self.tx.route.on_ack(now, ack.after(self.tx.una));
        self.thaw(now, next, io);
        self.take_ack(now, ack, segment, io);
        self.send_again(now, next, io);
    }

    fn thaw(&mut self, now: Instant, next: Standby, io: &mut Io<'_, P>) {
        let Standby::Leave(resume) = next else { return };
        self.tx.standby = false;
        self.tx.last_sent = now; // standby is not idleness
        io.events.emit(now, || Event::Standby { active: false });
        if resume.rto == Thaw::Initial {
            self.tx.rto.restart();
        }
        if resume.window == Thaw::Initial {
            self.tx.recovery.on_restart(Restart::Route);
            self.publish_window(now, io);
        }
        if self.tx.una != self.tx.max {
            self.tx.arm_retransmission(now);
        }
    }

    fn send_again(&mut self, now: Instant, next: Standby, io: &mut Io<'_, P>) {
        let wanted = match next {
            Standby::Stay => false,
            Standby::Probe => true,
            Standby::Leave(Resume { retransmit, .. }) => retransmit,
        };
        if wanted && self.tx.una != self.tx.max {
            self.retransmit_first(now, io);
        }
    }
}
