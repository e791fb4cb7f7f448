//! A station that stays where it is.

use super::Leg;
use airtcp_core::{Instant, Position};

/// One place for ever.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stationary(pub Position);

impl Stationary {
    pub(super) fn leg(&self) -> Leg {
        Leg::stay(self.0, Instant::ZERO, Instant::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mobility::Mobility;

    #[test]
    fn a_stationary_station_never_moves() {
        let place = Position { x: 3.0, y: -4.0 };
        let mobility = Mobility::Stationary(Stationary(place));
        assert_eq!(mobility.position(Instant::ZERO), place);
        assert_eq!(mobility.position(Instant::from_secs(1_000_000)), place);
        assert_eq!(mobility.next_change(Instant::ZERO), None);
    }
}
