//! A mobile that changes its base station, as seen from the link between them.
//!
//! Read first: 3GPP TS 36.300 §10.1.2.1 (handover), §10.1.2.2 (path switch) and §10.1.2.3 (data
//! forwarding); TS 38.300 §9.2.3.2 is the same for NR.
//!
//! When a handover begins, the source base station still holds packets: those in its queue, those
//! that it is sending, and with `rlc` those that the mobile has not received in order yet. It
//! forwards or discards them, and does so with all that comes to it until the interruption is over;
//! then the path is switched, and packets come to the target base station. Forwarded packets take
//! the time of the way between base stations. The target sends those that the source held first,
//! and all others in the order in which they come; packets of the new path wait for the end marker,
//! if the target waits for it.
//!
//! In the other direction the mobile holds the packets, and nothing is forwarded: it sends them in
//! the new cell.
//!
//! Assumptions: the path is switched at the end of the interruption; the way between base stations
//! has a delay and no rate; what the source held does not count in the target's queue.

use crate::config::{Cell, HandoverConfig, HandoverData, Schedule};
use crate::queue::Waiting;
use crate::table::Rates;
use airtcp_core::{DataRate, Duration, Instant};
use std::collections::VecDeque;

/// The handovers of a link, and the packets on their way between base stations.
#[derive(Clone, Debug)]
pub(crate) struct Handover<T> {
    config: HandoverConfig,
    /// The mobile holds the packets.
    from_mobile: bool,
    interruptions: Schedule,
    /// Rates of the cells; `None`: the link's does not change.
    rates: Option<Rates>,
    /// Handovers so far.
    past: u64,
    /// The next one, if there is one.
    next: Option<Cell>,
    /// End of the latest interruption.
    until: Instant,
    /// Packets being sent that the next handover will interrupt.
    interrupted: VecDeque<Waiting<T>>,
    /// Packets on their way to the target, in the order of their arrival there.
    forwarded: VecDeque<Forwarded<T>>,
    /// Packets of the source that the target sends before those in its queue.
    first: VecDeque<Waiting<T>>,
}

/// A packet that is not yet at the target base station.
#[derive(Clone, Debug)]
pub(crate) struct Forwarded<T> {
    /// Its arrival there.
    pub(crate) at: Instant,
    /// The source held it when the handover began.
    pub(crate) held: bool,
    pub(crate) packet: Waiting<T>,
}

/// Way of a packet that comes now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To the queue.
    Queue,
    /// There too, but at this time.
    Later(Instant),
    /// To the source, which discards it.
    Discarded,
}

impl<T> Handover<T> {
    pub(crate) fn new(config: &HandoverConfig, first_rate: DataRate) -> Self {
        Self {
            from_mobile: false,
            interruptions: config.interruptions(),
            rates: config.rates(first_rate),
            past: 0,
            next: config.times.nth(0),
            until: Instant::ZERO,
            interrupted: VecDeque::new(),
            forwarded: VecDeque::new(),
            first: VecDeque::new(),
            config: config.clone(),
        }
    }

    /// The link leads from the mobile to the base station.
    pub(crate) fn set_from_mobile(&mut self) {
        self.from_mobile = true;
    }

    fn data(&self) -> HandoverData {
        match self.from_mobile {
            // It stays where it is.
            true => HandoverData::Forward { forwarding_delay: Duration::ZERO, end_marker: false },
            false => self.config.data,
        }
    }

    /// True between base stations.
    pub(crate) fn interrupts(&self, at: Instant) -> bool {
        self.interruptions.is_down(at)
    }

    /// End of the latest interruption that has begun.
    pub(crate) fn until(&self) -> Instant {
        self.until
    }

    /// Start of the next handover; [`Instant::MAX`]: there is none.
    pub(crate) fn next(&self) -> Instant {
        self.next.map_or(Instant::MAX, |cell| cell.at)
    }

    /// Begins the next handover. `queue` takes the packets out of the source's queue. Returns the
    /// cell that the mobile comes to, and the packets that the source discards.
    pub(crate) fn begin(
        &mut self,
        mut queue: impl FnMut() -> Option<Waiting<T>>,
    ) -> (Option<Cell>, VecDeque<Waiting<T>>) {
        let Some(cell) = self.next else { return (None, VecDeque::new()) };
        self.past += 1;
        self.next = self.config.times.nth(self.past);
        self.until = cell.at + self.config.interruption;
        let mut held = std::mem::take(&mut self.interrupted);
        held.append(&mut self.first);
        held.extend(std::iter::from_fn(&mut queue));
        match self.data() {
            HandoverData::Discard => return (Some(cell), held),
            HandoverData::Forward { forwarding_delay, .. } => {
                let at = cell.at + forwarding_delay;
                let held = held.into_iter();
                self.forwarded.extend(held.map(|packet| Forwarded { at, held: true, packet }));
            }
        }
        (Some(cell), VecDeque::new())
    }

    /// The way of a packet that comes to the base stations at `now`.
    pub(crate) fn way(&self, now: Instant) -> Way {
        match self.data() {
            _ if self.past == 0 => Way::Queue,
            HandoverData::Discard if now < self.until => Way::Discarded,
            HandoverData::Discard => Way::Queue,
            HandoverData::Forward { forwarding_delay, .. } if now < self.until => {
                match forwarding_delay {
                    Duration::ZERO => Way::Queue,
                    delay => Way::Later(now + delay),
                }
            }
            HandoverData::Forward { forwarding_delay, end_marker } => {
                let end_marker = end_marker.then_some(self.until + forwarding_delay);
                end_marker.filter(|&marker| now < marker).map_or(Way::Queue, Way::Later)
            }
        }
    }

    /// A packet that comes to the target later.
    pub(crate) fn delay(&mut self, at: Instant, packet: Waiting<T>) {
        self.forwarded.push_back(Forwarded { at, held: false, packet });
    }

    /// The time at which the next packet comes to the target; [`Instant::MAX`]: none does.
    pub(crate) fn next_forwarded(&self) -> Instant {
        self.forwarded.front().map_or(Instant::MAX, |packet| packet.at)
    }

    /// That packet.
    pub(crate) fn take_forwarded(&mut self) -> Option<Forwarded<T>> {
        self.forwarded.pop_front()
    }

    /// The target has a packet that the source held.
    pub(crate) fn send_first(&mut self, packet: Waiting<T>) {
        self.first.push_back(packet);
    }

    /// The next of these packets.
    pub(crate) fn take_first(&mut self) -> Option<Waiting<T>> {
        self.first.pop_front()
    }

    /// Number of these packets.
    pub(crate) fn first_len(&self) -> usize {
        self.first.len()
    }

    /// The next handover interrupts a packet that is being sent.
    pub(crate) fn interrupt(&mut self, packet: Waiting<T>) {
        self.interrupted.push_back(packet);
    }

    /// Packets neither in the queue nor in flight.
    pub(crate) fn len(&self) -> usize {
        self.interrupted.len() + self.forwarded.len() + self.first.len()
    }

    /// True if a packet of this flow waits at the target before the queue.
    pub(crate) fn is_first(&self, flow: u32) -> bool {
        self.first.iter().any(|packet| packet.meta.flow == flow)
    }

    /// The time at which a packet of this flow, if there is one, leaves a source base station or
    /// comes to the target.
    pub(crate) fn next_of(&self, flow: u32) -> Option<Instant> {
        let is_of = |packet: &Waiting<T>| packet.meta.flow == flow;
        let forwarded = || self.forwarded.iter().find(|it| is_of(&it.packet)).map(|it| it.at);
        match self.interrupted.iter().any(is_of) {
            true => Some(self.next()),
            false => forwarded(),
        }
    }

    /// Rates of the cells; `None`: the link's does not change.
    pub(crate) fn rates(&self) -> Option<&Rates> {
        self.rates.as_ref()
    }
}
