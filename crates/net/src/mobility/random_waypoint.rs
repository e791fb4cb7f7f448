//! Random waypoint (Johnson and Maltz, 1996): travel to a random place at a random speed, pause,
//! and begin again.
//!
//! With a uniform start, stations drift towards the middle of the area and towards slow trips for
//! a long time; a minimum speed of 0 never settles (Yoon, Liu and Noble, INFOCOM 2003). A
//! stationary start draws from the distribution that the model tends to (Navidi and Camp, IEEE
//! Trans. Mobile Computing 3(1), 2004), so that results do not depend on when one looks.

use super::{Path, PathError};
use airtcp_core::{Duration, Instant, Position, Stream};
use airtcp_settings::schema::Kind;
use airtcp_settings::units::SPEED;
use airtcp_settings::{Reader, choice, settings};

settings! {
    #[partial]
    /// A random waypoint model.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[check(sensible)]
    pub struct RandomWaypoint {
        /// Width and height of the area, `[x, y]`, from `["0 m", "0 m"]`.
        pub area: (f64, f64),
        /// Highest speed of a trip.
        #[kind = Kind::Measure(&SPEED)]
        pub speed: f64,
        /// Lowest speed; each trip's is drawn uniformly between both.
        #[kind = Kind::Measure(&SPEED)]
        #[absent = "`speed`: all trips are equally fast"]
        pub min_speed: Option<f64> = None,
        /// Rest at the end of each trip.
        pub pause: Duration = Duration::ZERO,
        /// Initial position.
        pub start: RandomStart = RandomStart::Uniform,
    }
}

choice! {
    /// Initial position in a random waypoint model.
    pub enum RandomStart {
        /// at the node's `position`, with a trip
        Position = "position",
        /// anywhere in the area, with a trip (GloMoSim)
        Uniform = "uniform",
        /// anywhere in the area, with a pause (ns-2's setdest)
        UniformPause = "uniform-pause",
        /// as if it had been on its way for ever (Navidi and Camp 2004)
        Stationary = "stationary",
    }
}

fn sensible<R: Reader>(from: &R, model: &RandomWaypoint) {
    let (width, height) = model.area;
    if !(width > 0.0 && height > 0.0) {
        from.refuse(Some("area"), "is empty".to_owned(), "a width and a height above zero");
    }
    if model.speed <= 0.0 {
        from.refuse(Some("speed"), "is not above zero".to_owned(), "a speed above zero");
    }
    if model.min_speed.is_some_and(|lowest| !(lowest > 0.0 && lowest <= model.speed)) {
        let expected = "a speed above zero, at most `speed`";
        from.refuse(Some("min-speed"), "does not fit `speed`".to_owned(), expected);
    }
}

impl RandomWaypoint {
    /// The path until `end` of a station that [`RandomStart::Position`] puts at `position`.
    pub fn path(
        &self,
        position: Position,
        end: Instant,
        stream: &mut Stream,
    ) -> Result<Path, PathError> {
        let mut waypoints = Vec::new();
        let (mut now, mut here) = (Instant::ZERO, position);
        match self.start {
            RandomStart::Position => {}
            RandomStart::Uniform => here = self.place(stream),
            RandomStart::UniformPause => {
                here = self.place(stream);
                waypoints.push((now, here));
                now += self.pause;
            }
            RandomStart::Stationary if stream.chance(self.resting()) => {
                here = self.place(stream);
                waypoints.push((now, here));
                now += stream.duration(Duration::ZERO, self.pause);
            }
            RandomStart::Stationary => {
                let (from, to) = self.long_trip(stream);
                let done = stream.unit();
                let between = |from: f64, to: f64| from + (to - from) * done;
                here = Position { x: between(from.x, to.x), y: between(from.y, to.y) };
                waypoints.push((now, here));
                now += trip(here, to, self.lasting_speed(stream));
                here = to;
                waypoints.push((now, here));
                now += self.pause;
            }
        }
        waypoints.push((now, here));
        while now < end {
            let to = self.place(stream);
            now += trip(here, to, self.speed(stream));
            waypoints.push((now, to));
            if !self.pause.is_zero() {
                now += self.pause;
                waypoints.push((now, to));
            }
            here = to;
        }
        Path::new(waypoints)
    }

    fn lowest(&self) -> f64 {
        self.min_speed.unwrap_or(self.speed)
    }

    fn place(&self, stream: &mut Stream) -> Position {
        let (width, height) = self.area;
        let x = stream.uniform(0.0, width);
        Position { x, y: stream.uniform(0.0, height) }
    }

    fn speed(&self, stream: &mut Stream) -> f64 {
        stream.uniform(self.lowest(), self.speed)
    }

    /// The speed of a trip met at a random instant: slow trips last longer, so its density falls
    /// with 1/v (Navidi and Camp 2004, eq. 12).
    fn lasting_speed(&self, stream: &mut Stream) -> f64 {
        self.lowest() * libm::pow(self.speed / self.lowest(), stream.unit())
    }

    /// The ends of a trip met at a random instant, likelier in proportion to its length.
    fn long_trip(&self, stream: &mut Stream) -> (Position, Position) {
        let longest = libm::hypot(self.area.0, self.area.1);
        loop {
            let (from, to) = (self.place(stream), self.place(stream));
            if stream.chance(from.distance(to) / longest) {
                return (from, to);
            }
        }
    }

    /// The part of the time for which a station rests.
    fn resting(&self) -> f64 {
        let (low, high) = (self.lowest(), self.speed);
        let slowness = match high == low {
            true => 1.0 / high,
            false => libm::log(high / low) / (high - low),
        };
        let moving = mean_distance(self.area.0, self.area.1) * slowness;
        let pause = self.pause.as_secs_f64();
        pause / (pause + moving)
    }
}

fn trip(from: Position, to: Position, speed: f64) -> Duration {
    Duration::from_secs_f64(from.distance(to) / speed)
}

/// The mean distance of two random points in a rectangle (Ghosh 1951).
fn mean_distance(a: f64, b: f64) -> f64 {
    let d = libm::hypot(a, b);
    let (a2, b2) = (a * a, b * b);
    let corners = a2 * a / b2 + b2 * b / a2 + d * (3.0 - a2 / b2 - b2 / a2);
    let sides = b2 / a * libm::acosh(d / b) + a2 / b * libm::acosh(d / a);
    (corners + 2.5 * sides) / 15.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mobility::Mobility;

    fn square(side: f64, low: f64, high: f64) -> RandomWaypoint {
        RandomWaypoint {
            area: (side, side),
            speed: high,
            min_speed: Some(low),
            pause: Duration::ZERO,
            start: RandomStart::Stationary,
        }
    }

    /// The legs of many stations at one instant.
    fn legs(model: RandomWaypoint, at: Instant) -> impl Iterator<Item = crate::mobility::Leg> {
        (0..20_000).map(move |station| {
            let mut stream = Stream::new(1, &format!("mobility/{station}"));
            let path =
                model.path(Position { x: 0.0, y: 0.0 }, at + Duration::from_secs(1), &mut stream);
            Mobility::Path(path.expect("times ascend")).leg(at)
        })
    }

    fn mean(values: impl Iterator<Item = f64>) -> f64 {
        let (count, sum) = values.fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + value));
        sum / count
    }

    /// (b − a) / ln(b / a), at the start and later.
    #[test]
    fn a_stationary_start_has_the_mean_speed_of_the_long_run() {
        for (low, high, expected) in [(1.0, 20.0, 6.342), (5.0, 15.0, 9.102)] {
            for at in [Instant::ZERO, Instant::from_secs(500)] {
                let speed = mean(legs(square(1000.0, low, high), at).map(|leg| {
                    leg.from.distance(leg.to) / leg.until.since(leg.since).as_secs_f64()
                }));
                assert!((speed / expected - 1.0).abs() < 0.015, "{speed} m/s at {at}");
            }
        }
    }

    /// Without pauses the density in a corner cell of a tenth of the sides is 0.17 of the uniform
    /// one, and that of a cell in the middle 2.20.
    #[test]
    fn a_stationary_start_has_the_density_of_the_long_run() {
        for at in [Instant::ZERO, Instant::from_secs(300)] {
            let places: Vec<_> =
                legs(square(1000.0, 10.0, 10.0), at).map(|leg| leg.position(at)).collect();
            let share = |corner: f64| {
                let inside = |x: f64| (corner..corner + 100.0).contains(&x);
                let count = places.iter().filter(|p| inside(p.x) && inside(p.y)).count();
                count as f64 / places.len() as f64 / 0.01
            };
            let (corner, middle) = (share(0.0), share(450.0));
            assert!((corner - 0.17).abs() < 0.08, "{corner}");
            assert!((middle - 2.20).abs() < 0.25, "{middle}");
        }
    }

    /// Constant speed, pauses of 30 s, 1200 m.
    #[test]
    fn the_part_of_the_time_in_motion() {
        for (speed, expected) in [(5.0, 0.807), (10.0, 0.676), (20.0, 0.510), (30.0, 0.410)] {
            let pause = Duration::from_secs(30);
            let model = RandomWaypoint { pause, ..square(1200.0, speed, speed) };
            assert!((1.0 - model.resting() - expected).abs() < 0.001, "{}", model.resting());
            for at in [Instant::ZERO, Instant::from_secs(400)] {
                let moving = mean(legs(model, at).map(|leg| f64::from(u8::from(leg.moves()))));
                assert!((moving - expected).abs() < 0.015, "{moving} at {at}, {speed} m/s");
            }
        }
    }

    #[test]
    fn a_uniform_start_begins_with_a_trip_or_a_pause() {
        let pause = Duration::from_secs(30);
        for (start, moves) in [
            (RandomStart::Uniform, true),
            (RandomStart::Position, true),
            (RandomStart::UniformPause, false),
        ] {
            let model = RandomWaypoint { start, pause, ..square(1000.0, 10.0, 10.0) };
            assert!(legs(model, Instant::ZERO).take(100).all(|leg| leg.moves() == moves));
        }
    }

    #[test]
    fn the_mean_distance_in_a_square() {
        assert!((mean_distance(1.0, 1.0) - 0.521_405).abs() < 1e-6);
        assert!((mean_distance(1200.0, 1200.0) - 625.69).abs() < 0.01);
    }
}
