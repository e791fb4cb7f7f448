//! Straight lines between waypoints, each at constant speed. This is the form of movement traces
//! (the `setdest` commands of ns-2, the files of BonnMotion), and random models reduce to it.

use super::Leg;
use airtcp_core::{Instant, Position};

/// A path through waypoints. The station waits at the first one until its time and stays at the
/// last.
///
/// Two waypoints at the same place are a pause; two at the same time are a jump.
#[derive(Clone, Debug, PartialEq)]
pub struct Path(Vec<(Instant, Position)>);

/// A path that cannot be followed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PathError {
    /// There is no waypoint.
    #[error("a path without waypoints: expected at least one")]
    Empty,
    /// Times go back.
    #[error("waypoint {index} is at {at} s, earlier than the waypoint before it, at {previous} s")]
    Backwards {
        /// Number of the waypoint, from 0.
        index: usize,
        /// Time of the waypoint.
        at: Instant,
        /// The time of the waypoint before.
        previous: Instant,
    },
    /// A coordinate that is not finite.
    #[error("waypoint {index} is at ({x} m, {y} m): expected finite coordinates")]
    Nowhere {
        /// Number of the waypoint, from 0.
        index: usize,
        /// Metres to the east.
        x: f64,
        /// Metres to the north.
        y: f64,
    },
}

impl Path {
    /// The path through these waypoints, in ascending order of time.
    pub fn new(waypoints: Vec<(Instant, Position)>) -> Result<Self, PathError> {
        if waypoints.is_empty() {
            return Err(PathError::Empty);
        }
        for (index, &(at, Position { x, y })) in waypoints.iter().enumerate() {
            if !x.is_finite() || !y.is_finite() {
                return Err(PathError::Nowhere { index, x, y });
            }
            if let Some(&(previous, _)) = index.checked_sub(1).and_then(|i| waypoints.get(i))
                && at < previous
            {
                return Err(PathError::Backwards { index, at, previous });
            }
        }
        Ok(Self(waypoints))
    }

    /// A path that leads nowhere.
    pub(super) fn at(place: Position) -> Self {
        Self(vec![(Instant::ZERO, place)])
    }

    /// The waypoints; there is at least one.
    pub fn waypoints(&self) -> &[(Instant, Position)] {
        &self.0
    }

    pub(super) fn leg(&self, at: Instant) -> Leg {
        let next = self.0.partition_point(|&(time, _)| time <= at);
        let before = next.checked_sub(1).map(|index| self.0[index]);
        match (before, self.0.get(next)) {
            (Some((since, from)), Some(&(until, to))) => Leg { from, since, to, until },
            (None, Some(&(until, place))) => Leg::stay(place, Instant::ZERO, until),
            (Some((since, place)), None) => Leg::stay(place, since, Instant::MAX),
            (None, None) => unreachable!("a path has a waypoint"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mobility::Mobility;

    fn at(seconds: u64, x: f64, y: f64) -> (Instant, Position) {
        (Instant::from_secs(seconds), Position { x, y })
    }

    fn path(waypoints: &[(Instant, Position)]) -> Mobility {
        Mobility::Path(Path::new(waypoints.to_vec()).expect("a path"))
    }

    #[test]
    fn between_waypoints_it_moves_at_constant_speed() {
        let path = path(&[at(10, 0.0, 0.0), at(20, 30.0, -40.0)]);
        let now = Instant::from_millis(12_500);
        assert_eq!(path.position(now), Position { x: 7.5, y: -10.0 });
        assert_eq!(path.next_change(now), Some(Instant::from_secs(20)));
    }

    #[test]
    fn it_waits_at_the_first_waypoint_and_stays_at_the_last() {
        let path = path(&[at(10, 1.0, 2.0), at(20, 3.0, 4.0)]);
        assert_eq!(path.position(Instant::ZERO), Position { x: 1.0, y: 2.0 });
        assert_eq!(path.next_change(Instant::ZERO), Some(Instant::from_secs(10)));
        assert_eq!(path.position(Instant::from_secs(99)), Position { x: 3.0, y: 4.0 });
        assert_eq!(path.next_change(Instant::from_secs(20)), None);
    }

    #[test]
    fn two_waypoints_at_one_time_are_a_jump() {
        let path = path(&[at(0, 0.0, 0.0), at(5, 0.0, 0.0), at(5, 9.0, 9.0)]);
        assert_eq!(path.position(Instant::from_millis(4_999)), Position { x: 0.0, y: 0.0 });
        assert_eq!(path.position(Instant::from_secs(5)), Position { x: 9.0, y: 9.0 });
    }

    #[test]
    fn an_impossible_path_is_refused() {
        assert_eq!(Path::new(vec![]), Err(PathError::Empty));
        let error = Path::new(vec![at(2, 0.0, 0.0), at(1, 0.0, 0.0)]).expect_err("time goes back");
        assert_eq!(
            error.to_string(),
            "waypoint 1 is at 1.000000000 s, earlier than the waypoint before it, at 2.000000000 s"
        );
        let nowhere = Path::new(vec![at(0, f64::NAN, 0.0)]);
        assert!(matches!(nowhere, Err(PathError::Nowhere { index: 0, .. })), "{nowhere:?}");
    }
}
