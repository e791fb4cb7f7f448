//! Signals too weak to be sensed, let alone received.
//!
//! Where the powers of all signals add up, a frame reaches stations far beyond the carrier-sense
//! range: in a network of some hops, most that it reaches. As long as such signals are too weak to
//! be sensed even together, all they can do is to destroy a frame that is being received, and that
//! seldom. So they are only noted, and looked at where they may be what decides.

use crate::wifi::agenda::Moment;
use crate::wifi::config::Power;
use airtcp_core::Instant;

/// So many have room at least.
const ROOM: usize = 8;

/// A frame at a station.
#[derive(Clone, Copy, Debug)]
struct Signal {
    begins: Moment,
    end: Instant,
    power: Power,
}

impl Signal {
    fn is_present(&self, at: Moment) -> bool {
        self.begins <= at && self.end > at.at
    }
}

/// The faint signals at a station.
#[derive(Clone, Debug)]
pub(crate) struct Faint {
    signals: Vec<Signal>,
    /// With so many, those that have passed are to be removed first.
    room: usize,
    /// The power of all that may still be present, as if they were so at once.
    together: Power,
    /// Together they could be sensed: they are among the others.
    moved: bool,
    /// Up to here the frame being received has withstood their beginnings.
    weighed: Moment,
}

impl Faint {
    pub(crate) fn new() -> Self {
        let (signals, together, moved) = (Vec::new(), Power::ZERO, false);
        Self { signals, room: ROOM, together, moved, weighed: Moment::after(Instant::ZERO) }
    }

    /// True if these signals are now among the others.
    pub(crate) fn moved(&self) -> bool {
        self.moved
    }

    pub(crate) fn set_moved(&mut self, moved: bool) {
        self.moved = moved;
    }

    /// Adds a signal sent at `now`, if together they remain weaker than `least`. False if not, or
    /// if those that have passed are to be removed first ([`Self::remove_passed`]).
    #[inline]
    pub(crate) fn add(
        &mut self,
        now: Instant,
        (begins, end): (Moment, Instant),
        power: Power,
        least: Power,
    ) -> bool {
        if self.moved || self.signals.len() >= self.room {
            return false;
        }
        if self.together + power >= least {
            let present =
                self.signals.iter().map(|s| if s.end > now { s.power } else { Power::ZERO });
            self.together = present.fold(Power::ZERO, std::ops::Add::add);
            if self.together + power >= least {
                return false;
            }
        }
        self.together = self.together + power;
        self.signals.push(Signal { begins, end, power });
        true
    }

    /// True if one of them is present at any time from `begins` to `end`.
    pub(crate) fn meet(&self, begins: Moment, end: Instant) -> bool {
        self.signals.iter().any(|signal| signal.end > begins.at && signal.begins.at < end)
    }

    /// The power of those present at `moment`.
    pub(crate) fn at(&self, moment: Moment) -> Power {
        let present = self.signals.iter().filter(|signal| signal.is_present(moment));
        present.fold(Power::ZERO, |sum, signal| sum + signal.power)
    }

    /// The greatest power of those present at once since the last call, at the beginnings before
    /// `until`.
    pub(crate) fn most(&mut self, until: Moment) -> Power {
        let since = std::mem::replace(&mut self.weighed, until);
        let begun = self.signals.iter().filter(|s| s.begins >= since && s.begins < until);
        begun.map(|signal| self.at(signal.begins)).max().unwrap_or(Power::ZERO)
    }

    /// The same, if that is not asked.
    #[inline]
    pub(crate) fn skip(&mut self, until: Moment) {
        self.weighed = until;
    }

    /// Removes those that have passed at `now`.
    pub(crate) fn remove_passed(&mut self, now: Instant) {
        self.signals.retain(|signal| signal.end > now);
        self.room = ROOM.max(2 * self.signals.len());
        self.together = self.signals.iter().fold(Power::ZERO, |sum, signal| sum + signal.power);
    }

    /// Removes one of them: its beginning, end and power.
    pub(crate) fn pop(&mut self) -> Option<(Moment, Instant, Power)> {
        self.signals.pop().map(|Signal { begins, end, power }| (begins, end, power))
    }
}

#[cfg(test)]
mod tests {
    use crate::wifi::config::{ChannelConfig, Power, StationConfig};
    use crate::wifi::station::{Receiver, StationId, StationStreams};
    use crate::wifi::{Channel, Output, preset};
    use airtcp_core::{Bytes, Duration, Instant, Position};
    use proptest::prelude::*;

    /// An action of a station, this many microseconds after the previous one.
    #[derive(Clone, Copy, Debug)]
    enum Deed {
        Send { to: usize, size: u64 },
        Switch { down: bool },
    }

    #[derive(Clone, Debug)]
    struct Scenario {
        config: ChannelConfig,
        places: Vec<Position>,
        deeds: Vec<(u64, usize, Deed)>,
        seed: u64,
    }

    fn scenario() -> impl Strategy<Value = Scenario> {
        // Sensed at 250 to 560 m: in some runs most signals are faint, in others few.
        let config = (
            prop::sample::select(vec![preset::glomosim(), preset::ieee(), preset::opnet()]),
            prop::sample::select(vec![0.0, 1e-5]),
            -95.0..-81.0_f64,
        )
            .prop_map(|(mut config, errors, sensed)| {
                config.radio.reception = preset::glomosim().radio.reception;
                config.radio.propagation = preset::glomosim().radio.propagation;
                config.radio.rx_threshold = preset::glomosim().radio.rx_threshold;
                config.radio.tx_power = Power::from_dbm(7.875);
                config.radio.cs_threshold = Power::from_dbm(sensed);
                config.radio.bit_error_rate = errors;
                config
            });
        (3_usize..16, config, any::<u64>()).prop_flat_map(|(stations, config, seed)| {
            let place = (0.0..1200.0_f64, 0.0..1200.0_f64).prop_map(|(x, y)| Position { x, y });
            let deed = prop_oneof![
                20 => (0..stations, 1_u64..1500).prop_map(|(to, size)| Deed::Send { to, size }),
                1 => any::<bool>().prop_map(|down| Deed::Switch { down }),
            ];
            let deeds = prop::collection::vec((0_u64..3000, 0..stations, deed), 1..150);
            (prop::collection::vec(place, stations), deeds).prop_map(move |(places, deeds)| {
                Scenario { config: config.clone(), places, deeds, seed }
            })
        })
    }

    /// All that comes out, when, and the counters of all stations.
    fn run(scenario: &Scenario, apart: bool) -> (Vec<(Instant, Output<usize>)>, String) {
        let Scenario { config, places, deeds, seed } = scenario;
        let stations: Vec<_> = places.iter().map(|&position| StationConfig { position }).collect();
        let streams =
            (0..places.len()).map(|id| StationStreams::named(*seed, &format!("faint/{id}")));
        let mut channel = Channel::new(config, &stations, streams.collect());
        if !apart {
            channel.keep_none_apart();
        }
        let mut outputs = Vec::new();
        let mut poll = |channel: &mut Channel<usize>, until| {
            while let Some(at) = channel.next_deadline().filter(|&at| at <= until) {
                while let Some(output) = channel.poll(at) {
                    outputs.push((at, output));
                }
            }
        };
        let mut now = Instant::ZERO;
        for (number, &(gap, station, deed)) in deeds.iter().enumerate() {
            now += Duration::from_micros(gap);
            poll(&mut channel, now);
            let from = StationId(station as u32);
            match deed {
                Deed::Send { to, size } => {
                    let to = match StationId(to as u32) {
                        to if to == from => Receiver::Broadcast,
                        to => Receiver::Station(to),
                    };
                    let _ = channel.send(now, from, to, number, Bytes(size));
                }
                Deed::Switch { down } => channel.set_down(now, from, down),
            }
        }
        poll(&mut channel, Instant::MAX);
        channel.catch_up(Instant::MAX);
        let counters = |id| format!("{:?}", channel.counters(StationId(id as u32)));
        (outputs, (0..places.len()).map(counters).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn signals_kept_apart_do_what_they_would_among_the_others(scenario in scenario()) {
            prop_assert_eq!(run(&scenario, true), run(&scenario, false));
        }
    }
}
