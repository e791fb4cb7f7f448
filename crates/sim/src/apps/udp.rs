//! UDP cross traffic: sources of datagrams of one size, and what became of them.

use super::addr;
use crate::metrics::CbrMetrics;
use crate::packet::{Datagram, UDP_OVERHEAD};
use crate::scenario::model::{CbrSpec, OnOff};
use airtcp_core::{Duration, Flow, Instant, Length, Stream};

/// How many packets of a saturated source are on its first hop: one in service, one behind it.
const SATURATION: u32 = 2;
/// When a saturated source tries again whose packet the queue refused, because others have filled it.
const RETRY: Duration = Duration::from_millis(1);

/// A source at work.
pub(super) struct Cbr {
    name: String,
    pub(super) node: u32,
    /// First hop of its packets, index into the world's table of hops.
    pub(super) path: u32,
    pub(super) flow: Flow,
    index: u32,
    payload: Length,
    start: Instant,
    stop: Option<Instant>,
    pace: Pace,
    sent: u64,
    received: u64,
    dropped: u64,
}

enum Pace {
    /// A packet each `gap`, with pauses.
    Constant { gap: Duration, next: Instant, pauses: Option<Pauses> },
    /// Packets that are on the first hop, and when to look after it.
    Saturated { under_way: u32, next: Option<Instant> },
}

struct Pauses {
    spec: OnOff,
    /// When the present period of sending ends.
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

    /// The start of the next period of sending that is not over before it begins.
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

impl Cbr {
    /// Number `index` of the scenario; its packets take the hops from number `path` on.
    pub(super) fn new(index: u32, spec: &CbrSpec, path: u32, seed: u64) -> Self {
        let CbrSpec { name, from, to, start, stop, size, rate, on_off } = spec;
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
            node: from.0,
            path,
            flow: addr::of_flow(index, *from, *to),
            index,
            payload: Length((*size - UDP_OVERHEAD).get()),
            start: *start,
            stop: *stop,
            pace,
            sent: 0,
            received: 0,
            dropped: 0,
        }
    }

    /// When it has something to send.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let next = match self.pace {
            Pace::Constant { next, .. } => Some(next),
            Pace::Saturated { next, .. } => next,
        };
        next.filter(|&next| self.stop.is_none_or(|stop| next < stop))
    }

    /// How many packets to send now, each by [`Cbr::datagram`].
    pub(super) fn wake(&mut self, now: Instant) -> u32 {
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
                // Unless the first hop takes them.
                *next = Some(now + RETRY);
                missing
            }
        }
    }

    /// The next datagram, sent now.
    pub(super) fn datagram(&mut self) -> Datagram {
        let number = self.sent as u32;
        self.sent += 1;
        if let Pace::Saturated { under_way, next } = &mut self.pace {
            *under_way += 1;
            if *under_way == SATURATION {
                *next = None;
            }
        }
        Datagram { cbr: self.index, number, flow: self.flow, payload: self.payload }
    }

    /// A packet is no longer on the first hop: it crossed it (`true`), or it was lost there after the queue
    /// had taken it, or the queue had refused it (`false`).
    pub(super) fn left_first_hop(&mut self, now: Instant, accepted: bool) {
        if let Pace::Saturated { under_way, next } = &mut self.pace {
            *under_way -= 1;
            let due = if accepted { now } else { now + RETRY };
            *next = Some(next.map_or(due, |next| next.min(due)));
        }
    }

    /// A datagram arrived.
    pub(super) fn received(&mut self) {
        self.received += 1;
    }

    /// A datagram went no further.
    pub(super) fn dropped(&mut self) {
        self.dropped += 1;
    }

    /// What became of it by `now`.
    pub(super) fn metrics(&self, now: Instant) -> CbrMetrics {
        let end = self.stop.map_or(now, |stop| stop.min(now));
        let active = end.since(self.start).as_secs_f64();
        let payload = self.payload.0;
        let packet = payload + UDP_OVERHEAD.get();
        let rate = |bytes: u64| {
            if active > 0.0 { (8 * bytes * self.received) as f64 / active } else { 0.0 }
        };
        CbrMetrics {
            name: self.name.clone(),
            packets_sent: self.sent,
            packets_received: self.received,
            packets_dropped: self.dropped,
            throughput: rate(packet),
            goodput: rate(payload),
        }
    }
}
