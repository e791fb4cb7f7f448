//! Sources of datagrams: UDP cross traffic and the speakers of calls; and the datagrams' fates.

use super::Periods;
use super::call::Listener;
use crate::addr;
use crate::metrics::{CallMetrics, UdpMetrics, percentiles};
use crate::packet::{Datagram, UDP_OVERHEAD};
use crate::scenario::{DatagramArrivals, Datagrams, FRAME, OnOff, Sizes, UdpId, UdpSpec};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, Dscp, Duration, Flow, Histogram, Instant, Length, Stream};
use airtcp_routing::{LinkId, NodeId};

/// Packets of a saturated source at its radio: one in service, one behind it.
const SATURATION: u32 = 2;
/// Interval at which a saturated source retries after the radio's queue, filled by other traffic,
/// refused a packet.
const RETRY: Duration = Duration::from_millis(1);
/// The largest IP packet.
const LARGEST: Bytes = Bytes(65_535);

/// A source at work.
pub(crate) struct UdpSource {
    name: String,
    /// The sending node.
    pub(crate) node: NodeId,
    /// The receiving node.
    pub(crate) destination: NodeId,
    pub(crate) flow: Flow,
    /// The DSCP of its packets.
    pub(crate) dscp: Dscp,
    id: UdpId,
    size: Sizes,
    sizes: Stream,
    start: Instant,
    stop: Option<Instant>,
    pace: Pace,
    sent: u64,
    received: u64,
    /// Bytes of user data in them.
    payload_received: u64,
    pub(crate) dropped: u64,
    no_route: u64,
    expired: u64,
    /// Times under way of those received, and their sum.
    delays: Histogram,
    delay: Duration,
    listener: Option<Box<Listener>>,
}

enum Pace {
    /// A packet every `gap`, with pauses.
    Constant { gap: Duration, next: Instant, pauses: Option<Periods> },
    /// The same, and the gaps are random, with this mean.
    Poisson { gap: Duration, next: Instant, pauses: Option<Periods>, stream: Stream },
    /// One always waits for the radio. Packets on their way to the first neighbour, and when to
    /// check them next.
    Saturated { under_way: u32, next: Option<Instant> },
    /// One always waits for this link. When to look again.
    SaturatedLink { link: LinkId, next: Instant },
}

impl UdpSource {
    /// The source `id` of the scenario.
    pub(crate) fn new(id: UdpId, spec: &UdpSpec, seed: u64) -> Self {
        let UdpSpec { name, from, to, dscp, start, stop, datagrams } = spec;
        let stream = |of: &str| Stream::new(seed, &format!("cbr/{name}{of}"));
        let (size, pace, call) = match datagrams {
            Datagrams::Saturated { size } => {
                (size.clone(), Pace::Saturated { under_way: 0, next: Some(*start) }, None)
            }
            Datagrams::Paced { rate, size, arrivals, on_off } => {
                let pauses = on_off
                    .clone()
                    .map(|OnOff { on, off }| Periods::new(on, off, *start, stream("")));
                let mean = Bytes(libm::round(size.mean()) as u64);
                let gap = rate.transmission_time(mean).max(Duration::from_nanos(1));
                let pace = match arrivals {
                    DatagramArrivals::Constant => Pace::Constant { gap, next: *start, pauses },
                    DatagramArrivals::Poisson => {
                        let stream = stream("/arrivals");
                        let mut pace = Pace::Poisson { gap, next: *start, pauses, stream };
                        pace.go_on();
                        pace
                    }
                };
                (size.clone(), pace, None)
            }
            Datagrams::Call(call) => {
                let pace = Pace::Constant { gap: FRAME, next: *start, pauses: None };
                (Sizes::constant(call.packet()), pace, Some(call.clone()))
            }
        };
        Self {
            name: name.clone(),
            node: *from,
            destination: *to,
            flow: addr::of_flow(id.0, *from, *to),
            dscp: *dscp,
            id,
            size,
            sizes: stream("/sizes"),
            start: *start,
            stop: *stop,
            pace,
            sent: 0,
            received: 0,
            payload_received: 0,
            dropped: 0,
            no_route: 0,
            expired: 0,
            delays: Histogram::default(),
            delay: Duration::ZERO,
            listener: call.map(|call| Box::new(Listener::new(call))),
        }
    }

    /// The first hop of its packets is a link.
    pub(crate) fn starts_on(&mut self, link: LinkId) {
        if matches!(self.pace, Pace::Saturated { .. }) {
            self.pace = Pace::SaturatedLink { link, next: self.start };
        }
    }

    /// The link in front of which one of its packets is always to wait.
    pub(crate) fn saturates(&self) -> Option<LinkId> {
        match self.pace {
            Pace::SaturatedLink { link, .. } => Some(link),
            _ => None,
        }
    }

    /// The latest packet waits in front of the link until `at`.
    pub(crate) fn waits_until(&mut self, at: Instant) {
        if let Pace::SaturatedLink { next, .. } = &mut self.pace {
            *next = at;
        }
    }

    /// The next time at which it has something to send.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let next = match self.pace {
            Pace::Constant { next, .. }
            | Pace::Poisson { next, .. }
            | Pace::SaturatedLink { next, .. } => Some(next),
            Pace::Saturated { next, .. } => next,
        };
        next.filter(|&next| next < self.stop.unwrap_or(Instant::MAX))
    }

    /// Number of packets to send now; [`UdpSource::datagram`] makes each. Not for one that
    /// [saturates](UdpSource::saturates) a link.
    pub(crate) fn wake(&mut self, now: Instant) -> u32 {
        match &mut self.pace {
            Pace::SaturatedLink { .. } => 0,
            Pace::Constant { next, .. } | Pace::Poisson { next, .. } if *next > now => 0,
            Pace::Constant { .. } | Pace::Poisson { .. } => {
                self.pace.go_on();
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
    pub(crate) fn datagram(&mut self, now: Instant) -> Datagram {
        let number = self.sent as u32;
        self.sent += 1;
        if let Pace::Saturated { under_way, next } = &mut self.pace {
            *under_way += 1;
            if *under_way == SATURATION {
                *next = None;
            }
        }
        if let Some(listener) = &mut self.listener {
            listener.sent(now);
        }
        let size = self.size.draw(&mut self.sizes).clamp(UDP_OVERHEAD, LARGEST);
        let payload = Length((size - UDP_OVERHEAD).get());
        Datagram { source: self.id, number, flow: self.flow, sent: now, payload }
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

    /// A datagram of this source arrived.
    pub(crate) fn received(&mut self, now: Instant, datagram: &Datagram) {
        self.received += 1;
        self.payload_received += datagram.payload.0;
        let delay = now.since(datagram.sent);
        self.delays.record(delay);
        self.delay += delay;
        if let Some(listener) = &mut self.listener {
            listener.received(now, datagram.number);
        }
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
        let rate = |bytes: u64| if active > 0.0 { (8 * bytes) as f64 / active } else { 0.0 };
        let headers = UDP_OVERHEAD.get() * self.received;
        let [delay_p50, delay_p95, delay_p99] = percentiles(&self.delays);
        UdpMetrics {
            name: self.name.clone(),
            packets_sent: self.sent,
            packets_received: self.received,
            packets_dropped: self.dropped,
            no_route_drops: self.no_route,
            ttl_drops: self.expired,
            throughput: rate(self.payload_received + headers),
            goodput: rate(self.payload_received),
            delay_mean: (self.received > 0)
                .then(|| self.delay.as_secs_f64() / self.received as f64),
            delay_p50,
            delay_p95,
            delay_p99,
        }
    }

    /// What the listener heard, if it is a call.
    pub(crate) fn call_metrics(&self, now: Instant) -> Option<CallMetrics> {
        self.listener.as_ref().map(|listener| listener.metrics(&self.name, now))
    }
}

impl Pace {
    /// On to the next packet.
    fn go_on(&mut self) {
        let (next, gap, pauses) = match self {
            Self::Constant { gap, next, pauses } => (next, *gap, pauses),
            Self::Poisson { gap, next, pauses, stream } => {
                let gap = Duration::from_secs_f64(stream.exponential(gap.as_secs_f64()));
                (next, gap, pauses)
            }
            Self::Saturated { .. } | Self::SaturatedLink { .. } => return,
        };
        *next += gap;
        if let Some(pauses) = pauses {
            *next = pauses.next_on(*next);
        }
    }
}
