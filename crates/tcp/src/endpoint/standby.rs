//! A sender on a broken route: frozen at the notice of a failure, until its
//! [`RoutePolicy`](crate::route::RoutePolicy) ends standby.

use super::{Endpoint, Io};
use crate::congestion::Restart;
use crate::route::{Resume, RouteFailure, Standby, Thaw};
use airtcp_core::{Event, Instant, Payload, SeqNum};

impl<P: Payload> Endpoint<P> {
    /// Handles a report of the network that the route to the peer broke, as
    /// [`crate::TcpConfig::on_route_failure`] specifies. `seq` is the first sequence number of the
    /// segment that a node on the path could not forward, or `None` if the endpoint's own router
    /// reports. Notices about data that is not outstanding are old and ignored; so is any notice
    /// without outstanding data, or in persist, where probes find out.
    pub fn on_route_failure(&mut self, now: Instant, seq: Option<SeqNum>, io: &mut Io<'_, P>) {
        let tx = &mut self.tx;
        let seq = seq.unwrap_or(tx.una);
        let outstanding = seq.at_or_after(tx.una) && seq.before(tx.max);
        if !outstanding || tx.standby || tx.persist.is_some() || !self.sends_data() {
            return;
        }
        let tx = &mut self.tx;
        if tx.route.on_failure(&RouteFailure { now, seq, flight: tx.flight() }) {
            tx.standby = true;
            tx.restart_timer(now);
            tx.pacing.stop();
            tx.timed = None; // it would measure the outage, not the round trip
            io.events.emit(now, || Event::Standby { active: true });
        }
    }

    /// Handles a report of the network that there is a route to the peer again.
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

    /// Handles an acknowledgement that arrives in standby, before it takes effect. If it ends
    /// standby, it takes effect like any other. Returns true if the first segment must be sent
    /// again afterwards.
    #[cold]
    pub(super) fn on_ack_in_standby(
        &mut self,
        now: Instant,
        ack: SeqNum,
        io: &mut Io<'_, P>,
    ) -> bool {
        let is_old = ack.before(self.tx.una);
        !is_old && {
            let next = self.tx.route.on_ack(now, ack.after(self.tx.una));
            self.follow(now, next, io)
        }
    }

    fn continue_standby(&mut self, now: Instant, next: Standby, io: &mut Io<'_, P>) {
        if self.follow(now, next, io) {
            self.probe_route(now, io);
        }
        self.transmit(now, io);
    }

    /// Sends the first unacknowledged segment again, if there still is one.
    pub(super) fn probe_route(&mut self, now: Instant, io: &mut Io<'_, P>) {
        if self.tx.una != self.tx.max {
            self.retransmit_first(now, io);
        }
    }

    /// Carries out the policy's decision. Returns true if the first segment must be sent again.
    fn follow(&mut self, now: Instant, next: Standby, io: &mut Io<'_, P>) -> bool {
        let retransmit = match next {
            Standby::Stay => false,
            Standby::Probe => true,
            Standby::Leave(resume) => {
                self.leave_standby(now, resume, io);
                resume.retransmit
            }
        };
        self.tx.restart_timer(now);
        retransmit
    }

    fn leave_standby(&mut self, now: Instant, resume: Resume, io: &mut Io<'_, P>) {
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
    }
}
