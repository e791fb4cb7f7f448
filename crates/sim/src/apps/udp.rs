//! UDP cross traffic: sources of datagrams of one size, and the datagrams' fates.

use crate::addr;
use crate::metrics::UdpMetrics;
use crate::packet::{Datagram, UDP_OVERHEAD};
use crate::scenario::{OnOff, UdpId, UdpSpec};
use airtcp_core::event::DropReason;
use airtcp_core::{Duration, Flow, Instant, Length, Stream};
use airtcp_routing::NodeId;

/// Packets of a saturated source on its first hop: one in service, one behind it.
const SATURATION: u32 = 2;
/// Interval at which a saturated source retries after the queue, filled by other traffic, refused a
/// packet.
const RETRY: Duration = Duration::from_millis(1);

/// A source at work.
pub(crate) struct UdpSource {
    name: String,
    /// The sending node.
    pub(crate) node: NodeId,
    /// The receiving node.
    pub(crate) destination: NodeId,
    flow: Flow,
    id: UdpId,
    payload: Length,
    start: Instant,
    stop: Option<Instant>,
    pace: Pace,
    sent: u64,
    received: u64,
    dropped: u64,
    no_route: u64,
    expired: u64,
}

enum Pace {
    /// A packet every `gap`, with pauses.
    Constant { gap: Duration, next: Instant, pauses: Option<Pauses> },
    /// Packets on the first hop, and when to check it next.
    Saturated { under_way: u32, next: Option<Instant> },
}

struct Pauses {
    spec: OnOff,
    /// End of the present period of sending.
    until: Instant,
    stream: Stream,
}

impl Pauses {
    fn draw(&mut self, mean: Duration) -> Duration {
        match self.spec.exponential {
            true => Duration::from_secs_f64(self.stream.exponential(mean.as_secs_f64())),
            false => mean,
        }
    }

    /// The start of the next sending period of positive length.
    fn resume(&mut self) -> Instant {
        loop {
            let start = self.until + self.draw(self.spec.off);
            self.until = start + self.draw(self.spec.on);
            if self.until > start {
                return start;
            }
        }
    }
}

impl UdpSource {
    /// The source `id` of the scenario.
    pub(crate) fn new(id: UdpId, spec: &UdpSpec, seed: u64) -> Self {
        let UdpSpec { name, from, to, start, stop, size, rate, on_off } = spec;
        let pace = match rate {
            None => Pace::Saturated { under_way: 0, next: Some(*start) },
            Some(rate) => {
                let stream = Stream::new(seed, &format!("cbr/{name}"));
                let mut pauses = on_off.map(|spec| Pauses { spec, until: *start, stream });
                if let Some(pauses) = &mut pauses {
                    pauses.until = *start + pauses.draw(pauses.spec.on);
                }
                Pace::Constant { gap: rate.transmission_time(*size), next: *start, pauses }
            }
        };
        Self {
            name: name.clone(),
            node: *from,
            destination: *to,
            flow: addr::of_flow(id.0, *from, *to),
            id,
            payload: Length((*size - UDP_OVERHEAD).get()),
            start: *start,
            stop: *stop,
            pace,
            sent: 0,
            received: 0,
            dropped: 0,
            no_route: 0,
            expired: 0,
        }
    }

    /// True if a packet always waits in front of the first link.
    pub(crate) fn is_saturated(&self) -> bool {
        matches!(self.pace, Pace::Saturated { .. })
    }

    /// The next time at which it has something to send.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let next = match self.pace {
            Pace::Constant { next, .. } => Some(next),
            Pace::Saturated { next, .. } => next,
        };
        next.filter(|&next| self.stop.is_none_or(|stop| next < stop))
    }

    /// Number of packets to send now; [`UdpSource::datagram`] makes each.
    pub(crate) fn wake(&mut self, now: Instant) -> u32 {
        match &mut self.pace {
            Pace::Constant { next, .. } if *next > now => 0,
            Pace::Constant { gap, next, pauses } => {
                *next += *gap;
                if let Some(pauses) = pauses
                    && *next >= pauses.until
                {
                    *next = pauses.resume();
                }
                1
            }
            Pace::Saturated { next: Some(next), .. } if *next > now => 0,
            Pace::Saturated { under_way, next } => {
                let missing = SATURATION - *under_way;
                // Retry later, unless the first hop takes the packets.
                *next = Some(now + RETRY);
                missing
            }
        }
    }

    /// The next datagram, sent now.
    pub(crate) fn datagram(&mut self) -> Datagram {
        let number = self.sent as u32;
        self.sent += 1;
        if let Pace::Saturated { under_way, next } = &mut self.pace {
            *under_way += 1;
            if *under_way == SATURATION {
                *next = None;
            }
        }
        Datagram { source: self.id, number, flow: self.flow, payload: self.payload }
    }

    /// A packet has left the first hop. `true`: it crossed the hop, or was lost on it after the
    /// queue had accepted it; `false`: the queue refused it.
    pub(crate) fn left_first_hop(&mut self, now: Instant, accepted: bool) {
        if let Pace::Saturated { under_way, next } = &mut self.pace {
            *under_way -= 1;
            let due = if accepted { now } else { now + RETRY };
            *next = Some(next.map_or(due, |next| next.min(due)));
        }
    }

    /// A datagram arrived.
    pub(crate) fn received(&mut self) {
        self.received += 1;
    }

    /// A datagram was lost.
    pub(crate) fn dropped(&mut self, reason: DropReason) {
        self.dropped += 1;
        match reason {
            DropReason::NoRoute => self.no_route += 1,
            DropReason::TtlExpired => self.expired += 1,
            _ => {}
        }
    }

    /// The metrics as of `now`.
    pub(crate) fn metrics(&self, now: Instant) -> UdpMetrics {
        let end = self.stop.map_or(now, |stop| stop.min(now));
        let active = end.since(self.start).as_secs_f64();
        let payload = self.payload.0;
        let packet = payload + UDP_OVERHEAD.get();
        let rate = |bytes: u64| {
            if active > 0.0 { (8 * bytes * self.received) as f64 / active } else { 0.0 }
        };
        UdpMetrics {
            name: self.name.clone(),
            packets_sent: self.sent,
            packets_received: self.received,
            packets_dropped: self.dropped,
            no_route_drops: self.no_route,
            ttl_drops: self.expired,
            throughput: rate(packet),
            goodput: rate(payload),
        }
    }
}
