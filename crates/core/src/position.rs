//! Positions in the plane.

/// A position in the plane, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Metres to the east of the origin.
    pub x: f64,
    /// Metres to the north of the origin.
    pub y: f64,
}

impl Position {
    /// Distance between two positions, in metres.
    pub fn distance(self, other: Self) -> f64 {
        self.distance_squared(other).sqrt()
    }

    /// Its square, in square metres.
    #[inline]
    pub fn distance_squared(self, other: Self) -> f64 {
        let (dx, dy) = (self.x - other.x, self.y - other.y);
        dx * dx + dy * dy
    }
}
