//! When the level of one station's frames at another crosses thresholds.
//!
//! Path loss depends on the distance alone, so a threshold is a distance. On the legs of both
//! stations their distance follows from a straight line at constant speed ([`Span`]), and the
//! instants of crossing are roots of a quadratic equation. Nothing is sampled.

use crate::mobility::Mobility;
use crate::wifi::config::{Power, RadioConfig};
use airtcp_core::{Instant, LinkSignal, Position};
use airtcp_settings::{Reader, settings};

settings! {
    #[partial]
    /// Thresholds of the level at which the frames of the node reach a mobile in the same cell, with
    /// hysteresis between the two. Path loss alone counts: neither interference nor outages do.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[table("middlebox.signal.level", whole)]
    #[check(in_order)]
    pub struct LevelThresholds {
        /// Below this level the mobile is reported as fading, from `down` to `up`: how long before
        /// frames are lost depends on its movement.
        #[absent = "not reported"]
        pub fading: Option<Power>,
        /// Below this level it is reported as down. Frames are lost below `wlan.rx-threshold`;
        /// M-TCP+ and holdover take a mobile that they still hear for back.
        pub down: Power,
        /// From this level on it is reported as up again; at least `down`.
        pub up: Power,
    }
}

fn in_order<R: Reader>(from: &R, level: &LevelThresholds) {
    if level.up < level.down {
        let message = "is lower than down: the mobile would be up and down at once".to_owned();
        from.refuse(Some("up"), message, "a level of at least `down`");
    } else if level.fading.is_some_and(|fading| fading < level.down || level.up < fading) {
        let message = "is not between the two others".to_owned();
        from.refuse(Some("fading"), message, "a level from `down` to `up`");
    }
}

impl LevelThresholds {
    /// The signals until `end` about one station to another with such a radio, and their times. A
    /// station whose level is between `down` and `up` at first is up; nothing is reported of that.
    pub fn signals(
        &self,
        radio: &RadioConfig,
        stations: [&Mobility; 2],
        end: Instant,
    ) -> Vec<(Instant, LinkSignal)> {
        let [leave, enter] = [self.down, self.up].map(|least| radio.range(least));
        let fade = self.fading.map(|least| radio.range(least));
        let mut signals: Vec<(Instant, LinkSignal)> = Vec::new();
        let mut state = LinkSignal::Up;
        for span in Span::all(stations, end) {
            let mut part = 0.0;
            loop {
                let fades = fade.filter(|_| state == LinkSignal::Up);
                let beyond = match state {
                    LinkSignal::Down => None,
                    _ => span.first_beyond(fades.unwrap_or(leave), part),
                };
                let within = match state {
                    LinkSignal::Up => None,
                    _ => span.first_within(enter, part),
                };
                (part, state) = match (beyond, within) {
                    (Some(out), back) if back.is_none_or(|back| out < back) => {
                        let fading = fades.map(|_| LinkSignal::Fading);
                        (out, fading.unwrap_or(LinkSignal::Down))
                    }
                    (_, Some(back)) => (back, LinkSignal::Up),
                    _ => break,
                };
                let at = span.instant(part);
                // What changes at once again is not reported.
                signals.pop_if(|(last, _)| *last == at);
                signals.push((at, state));
            }
        }
        signals
    }
}

/// The lowest and the highest level until `end` of one station's frames at another.
pub fn extremes(radio: &RadioConfig, stations: [&Mobility; 2], end: Instant) -> [Power; 2] {
    let (mut farthest, mut nearest) = (0.0_f64, f64::INFINITY);
    for span in Span::all(stations, end) {
        farthest = farthest.max(span.distance(0.0)).max(span.distance(1.0));
        nearest = nearest.min(span.distance(span.nearest()));
    }
    [farthest, nearest].map(|distance| radio.received(distance))
}

/// A time in which each of two stations is on one leg.
#[derive(Clone, Copy, Debug)]
struct Span {
    since: Instant,
    until: Instant,
    /// Position of one relative to the other, at the beginning and at the end.
    from: Position,
    to: Position,
}

impl Span {
    /// The spans from the start of the run to `end`, without gaps.
    fn all(stations: [&Mobility; 2], end: Instant) -> impl Iterator<Item = Self> {
        let mut since = Instant::ZERO;
        std::iter::from_fn(move || {
            let start = since;
            let legs = (start < end).then(|| stations.map(|station| station.leg(start)))?;
            let until = legs[0].until.min(legs[1].until).min(end);
            since = until;
            let relative = |at| {
                let [a, b] = legs.map(|leg| leg.position(at));
                Position { x: b.x - a.x, y: b.y - a.y }
            };
            Some(Self { since: start, until, from: relative(start), to: relative(until) })
        })
    }

    /// The distance when this part of the span is over.
    fn distance(&self, part: f64) -> f64 {
        let at = |from: f64, to: f64| from + (to - from) * part;
        let (x, y) = (at(self.from.x, self.to.x), at(self.from.y, self.to.y));
        Position { x, y }.distance(Position::default())
    }

    /// The part after which the distance is least.
    fn nearest(&self) -> f64 {
        let (dx, dy) = (self.to.x - self.from.x, self.to.y - self.from.y);
        let speed = dx * dx + dy * dy;
        let towards = -(self.from.x * dx + self.from.y * dy);
        if speed > 0.0 { (towards / speed).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The parts after which the line of movement enters and leaves a circle, if it meets it; they
    /// may lie outside of the span.
    fn chord(&self, radius: f64) -> Option<(f64, f64)> {
        let (dx, dy) = (self.to.x - self.from.x, self.to.y - self.from.y);
        let speed = dx * dx + dy * dy;
        let middle = -(self.from.x * dx + self.from.y * dy) / speed;
        // The square of half the chord, in parts.
        let distance = (self.from.x * dy - self.from.y * dx).abs() / speed.sqrt();
        let half = (radius * radius - distance * distance) / speed;
        (speed > 0.0 && half >= 0.0).then(|| (middle - half.sqrt(), middle + half.sqrt()))
    }

    /// The first part from `part` on after which the distance becomes more than `radius`.
    fn first_beyond(&self, radius: f64, part: f64) -> Option<f64> {
        if part == 0.0 && self.distance(part) > radius {
            return Some(part);
        }
        let leaves = self.chord(radius)?.1;
        (part <= leaves && leaves < 1.0).then_some(leaves)
    }

    /// The first part from `part` on after which the distance becomes `radius` or less.
    fn first_within(&self, radius: f64, part: f64) -> Option<f64> {
        if part == 0.0 && self.distance(part) <= radius {
            return Some(part);
        }
        // Where it leaves a circle it does not enter one that is as large, whatever the rounding.
        let enters = self.chord(radius)?.0;
        (part < enters && enters < 1.0).then_some(enters)
    }

    /// The first instant at which this part is over.
    fn instant(&self, part: f64) -> Instant {
        let length = self.until.since(self.since).as_nanos() as f64;
        let nanos = libm::ceil(part * length) as u64;
        Instant::from_nanos(self.since.as_nanos() + nanos).min(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mobility::{Path, Stationary};
    use crate::wifi::preset;
    use LinkSignal::{Down, Fading, Up};
    use proptest::prelude::*;

    const AT_ORIGIN: Mobility = Mobility::Stationary(Stationary(Position { x: 0.0, y: 0.0 }));

    fn walk(waypoints: &[(f64, f64, f64)]) -> Mobility {
        let waypoint = |&(seconds, x, y): &(f64, f64, f64)| {
            (Instant::from_nanos((seconds * 1e9) as u64), Position { x, y })
        };
        Mobility::Path(Path::new(waypoints.iter().map(waypoint).collect()).expect("a path"))
    }

    fn level(down: f64, up: f64) -> LevelThresholds {
        LevelThresholds { fading: None, down: Power::from_dbm(down), up: Power::from_dbm(up) }
    }

    fn signals(level: LevelThresholds, path: &Mobility, end: u64) -> Vec<(f64, LinkSignal)> {
        let radio = preset::ns2().radio;
        let signals = level.signals(&radio, [&AT_ORIGIN, path], Instant::from_secs(end));
        signals.into_iter().map(|(at, signal)| (at.as_secs_f64(), signal)).collect()
    }

    /// Distance at which two-ray ground leaves `dbm` of ns-2's radio: (h² / d²)² of the power sent.
    fn two_ray(dbm: f64) -> f64 {
        let (sent, height) = (0.281_838_15_f64, 1.5_f64);
        height * (sent / (1e-3 * 10_f64.powf(dbm / 10.0))).powf(0.25)
    }

    /// The same in free space: (λ / 4πd)² of the power sent.
    fn free_space(dbm: f64) -> f64 {
        let (sent, wavelength) = (0.281_838_15_f64, 299_792_458.0 / 914e6);
        wavelength / (4.0 * std::f64::consts::PI) * (sent / (1e-3 * 10_f64.powf(dbm / 10.0))).sqrt()
    }

    #[track_caller]
    fn assert_close(found: &[(f64, LinkSignal)], expected: &[(f64, LinkSignal)]) {
        let close = |(a, b): (&(f64, _), &(f64, _))| (a.0 - b.0).abs() < 1e-6 && a.1 == b.1;
        let all = found.len() == expected.len() && found.iter().zip(expected).all(close);
        assert!(all, "{found:?}, expected {expected:?}");
    }

    #[test]
    fn crossings_are_where_the_closed_form_of_two_rays_says() {
        // Away at 2 m/s from the access point to 300 m, and back.
        let path = walk(&[(0.0, 0.0, 0.0), (150.0, 300.0, 0.0), (300.0, 0.0, 0.0)]);
        let (down, up) = (two_ray(-64.0) / 2.0, 300.0 - two_ray(-62.0) / 2.0);
        assert_close(&signals(level(-64.0, -62.0), &path, 300), &[(down, Down), (up, Up)]);
        let fading = Some(Power::from_dbm(-63.0));
        let level = LevelThresholds { fading, ..level(-64.0, -62.0) };
        let fades = two_ray(-63.0) / 2.0;
        assert_close(&signals(level, &path, 300), &[(fades, Fading), (down, Down), (up, Up)]);
    }

    #[test]
    fn near_the_node_the_closed_form_is_that_of_free_space() {
        // Within the cross-over of 86 m.
        let path = walk(&[(0.0, 10.0, 0.0), (70.0, 80.0, 0.0)]);
        let down = free_space(-40.0) - 10.0;
        assert_close(&signals(level(-40.0, -40.0), &path, 70), &[(down, Down)]);
    }

    #[test]
    fn a_pass_at_a_distance_enters_and_leaves_a_circle() {
        // Past the node at 3 m/s, 100 m to the north of it.
        let path = walk(&[(0.0, -300.0, 100.0), (200.0, 300.0, 100.0)]);
        let chord = |dbm: f64| (two_ray(dbm).powi(2) - 100.0_f64.powi(2)).sqrt();
        let (up, down) = (100.0 - chord(-60.0) / 3.0, 100.0 + chord(-64.0) / 3.0);
        let expected = [(0.0, Down), (up, Up), (down, Down)];
        assert_close(&signals(level(-64.0, -60.0), &path, 200), &expected);
    }

    #[test]
    fn between_the_thresholds_nothing_changes() {
        let (far, near) = (two_ray(-64.0), two_ray(-62.0));
        let between = (far + near) / 2.0;
        // In between at first, and again after it was down.
        let path = walk(&[(0.0, between, 0.0), (10.0, far + 5.0, 0.0), (20.0, between, 0.0)]);
        let found = signals(level(-64.0, -62.0), &path, 60);
        assert!(matches!(found[..], [(_, Down)]), "{found:?}");
        let still = walk(&[(0.0, between, 0.0)]);
        assert_eq!(signals(level(-64.0, -62.0), &still, 60), []);
    }

    #[test]
    fn a_mobile_that_fades_and_recovers_was_never_down() {
        let (fades, near) = (two_ray(-63.0), two_ray(-62.0));
        let path = walk(&[(0.0, 0.0, 0.0), (10.0, fades + 1.0, 0.0), (20.0, 0.0, 0.0)]);
        let level = LevelThresholds { fading: Some(Power::from_dbm(-63.0)), ..level(-64.0, -62.0) };
        let speed = (fades + 1.0) / 10.0;
        let expected = [(fades / speed, Fading), (20.0 - near / speed, Up)];
        assert_close(&signals(level, &path, 60), &expected);
    }

    #[test]
    fn a_jump_takes_effect_at_once() {
        let (here, there) = ((10.0, 0.0), (900.0, 0.0));
        let at = |time: f64, (x, y): (f64, f64)| (time, x, y);
        let path = [at(0.0, here), at(5.0, here), at(5.0, there), at(7.0, there), at(7.0, here)];
        let expected = [(5.0, Down), (7.0, Up)];
        assert_eq!(signals(level(-64.0, -62.0), &walk(&path), 60), expected);
        let fading = Some(Power::from_dbm(-63.0));
        let level = LevelThresholds { fading, ..level(-64.0, -62.0) };
        assert_eq!(signals(level, &walk(&path), 60), expected);
    }

    #[test]
    fn the_extremes_are_at_the_ends_and_where_it_passes() {
        let radio = preset::ns2().radio;
        let path = walk(&[(0.0, -300.0, 100.0), (200.0, 400.0, 100.0)]);
        let [least, most] = extremes(&radio, [&AT_ORIGIN, &path], Instant::from_secs(200));
        assert_eq!(
            least,
            radio.received(Position { x: 400.0, y: 100.0 }.distance(Position::default()))
        );
        assert_eq!(most, radio.received(100.0));
    }

    fn path() -> impl Strategy<Value = Mobility> {
        let waypoint = (0u32..40, -400.0..400.0, -400.0..400.0);
        prop::collection::vec(waypoint, 1..8).prop_map(|mut waypoints| {
            waypoints.sort_by_key(|&(at, ..)| at);
            let all: Vec<_> = waypoints.iter().map(|&(at, x, y)| (f64::from(at), x, y)).collect();
            walk(&all)
        })
    }

    proptest! {
        #[test]
        fn sampled_levels_agree(
            a in path(),
            b in path(),
            down in -75.0..-50.0,
            hysteresis in 0.0..6.0,
        ) {
            let radio = preset::ns2().radio;
            let level = level(down, down + hysteresis);
            let signals = level.signals(&radio, [&a, &b], Instant::from_secs(40));
            prop_assert!(signals.windows(2).all(|pair| pair[0].0 < pair[1].0));
            let mut state = Up;
            for ms in 0..40_000 {
                let at = Instant::from_millis(ms);
                let power = radio.received(a.position(at).distance(b.position(at)));
                let passed = signals.partition_point(|&(time, _)| time <= at);
                let found = passed.checked_sub(1).map_or(Up, |last| signals[last].1);
                // Within a millisecond of a crossing either may be right.
                let near = |&(time, _): &(Instant, _)| {
                    time.as_nanos().abs_diff(at.as_nanos()) <= 2_000_000
                };
                state = match state {
                    _ if signals.iter().any(near) => found,
                    Down if power < level.up => Down,
                    Up if power >= level.down => Up,
                    Up => Down,
                    _ => Up,
                };
                prop_assert_eq!(found, state, "{} ms: {:?}", ms, power);
            }
        }
    }
}
