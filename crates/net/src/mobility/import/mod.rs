//! Movement traces of other tools, and back: the commands of ns-2's `setdest` and the files of
//! BonnMotion; one file for each format.
//!
//! A trace becomes one [`Path`] for each of its nodes, by the node's number. Positions are in a
//! plane, so a trace with heights is accepted if all its nodes stay at one height: distances are
//! then those in the plane.

mod bonn_motion;
mod setdest;

use super::Path;
use airtcp_core::{Duration, Instant, Position};
use airtcp_settings::{Decoded, Value, choice};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

choice! {
    /// The format of a movement trace.
    pub enum Format {
        /// commands for ns-2: its own `setdest`, BonnMotion's `NSFile`, SUMO's `traceExporter`
        Setdest = "setdest",
        /// BonnMotion's `.movements`, a line of waypoints for each node: `time x y`, or `time x y z`
        /// if only that fits the whole file
        BonnMotion = "bonnmotion",
        /// the same, and all waypoints are `time x y`
        BonnMotion2d = "bonnmotion-2d",
        /// the same, and all waypoints are `time x y z`
        BonnMotion3d = "bonnmotion-3d",
    }
}

impl Format {
    /// The format with this word.
    pub fn of_word(word: &str) -> Option<Self> {
        let word = Self::WORDS.iter().map(|(known, _)| *known).find(|known| *known == word)?;
        Self::from_decoded(Decoded::Word(word))
    }

    /// The format that files of this name have.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.strip_suffix(".gz").unwrap_or(name);
        match name.rsplit_once('.')?.1 {
            "movements" => Some(Self::BonnMotion),
            "tcl" | "ns_movements" | "setdest" => Some(Self::Setdest),
            _ => None,
        }
    }
}

/// The movement in a trace, by the numbers of the nodes; there is at least one.
pub type Movement = BTreeMap<u32, Path>;

/// A mistake in a movement trace.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ImportError {
    /// A line that the format does not have.
    #[error("line {line}: {found:?} (expected {expected})")]
    Unknown {
        /// Line, from 1.
        line: usize,
        /// Its text, shortened.
        found: String,
        /// The text that could stand there.
        expected: &'static str,
    },
    /// A time before the one above, of the same node.
    #[error("line {line}: node {node} at {at} s comes after {before} s (expected ascending times)")]
    GoesBack {
        /// Line, from 1.
        line: usize,
        /// Number of the node.
        node: u32,
        /// The time that is too early, seconds.
        at: f64,
        /// The time before it.
        before: f64,
    },
    /// Two heights.
    #[error(
        "line {line}: node {node} at a height of {height} m, and line {other_line} has {other} m \
         (expected one height for all nodes at all times: positions are in a plane)"
    )]
    Height {
        /// Line, from 1.
        line: usize,
        /// Number of the node.
        node: u32,
        /// Its height, metres.
        height: f64,
        /// The line that has another.
        other_line: usize,
        /// The other, metres.
        other: f64,
    },
    /// A node without a height, which is then 0, and others have one.
    #[error(
        "node {node} has no Z_, which means a height of 0 m, and line {line} has {height} m \
         (expected one height for all nodes: positions are in a plane)"
    )]
    NoHeight {
        /// Number of the node.
        node: u32,
        /// The line that has a height.
        line: usize,
        /// That height, metres.
        height: f64,
    },
    /// Two readings fit.
    #[error(
        "fits as `time x y` and as `time x y z` (expected the format bonnmotion-2d or \
         bonnmotion-3d; BonnMotion's `.params` beside the file says J=2D or J=3D)"
    )]
    Ambiguous,
    /// Nothing in it.
    #[error("the trace names no node")]
    Empty,
}

/// The movement of each node.
///
/// # Errors
/// The first wrong line.
pub fn parse(format: Format, text: &str) -> Result<Movement, ImportError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let movement = match format {
        Format::Setdest => setdest::read(text)?,
        Format::BonnMotion => bonn_motion::read(text)?,
        Format::BonnMotion2d => bonn_motion::read_2d(text)?,
        Format::BonnMotion3d => bonn_motion::read_3d(text)?,
    };
    if movement.is_empty() { Err(ImportError::Empty) } else { Ok(movement) }
}

/// The numbers below the highest one that no node has.
pub fn gaps(movement: &Movement) -> Vec<RangeInclusive<u32>> {
    let mut gaps = Vec::new();
    let mut next = 0;
    for &node in movement.keys() {
        if node > next {
            gaps.push(next..=node - 1);
        }
        next = node.saturating_add(1);
    }
    gaps
}

/// The numbers of the nodes.
pub fn numbers(movement: &Movement) -> Vec<RangeInclusive<u32>> {
    let mut numbers: Vec<RangeInclusive<u32>> = Vec::new();
    for &node in movement.keys() {
        match numbers.last_mut() {
            Some(last) if node - last.end() == 1 => *last = *last.start()..=node,
            _ => numbers.push(node..=node),
        }
    }
    numbers
}

/// Ranges of numbers as text: `0, 3 to 5`.
pub fn list(ranges: &[RangeInclusive<u32>]) -> String {
    let range = |range: &RangeInclusive<u32>| match (range.start(), range.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first} to {last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}

/// A trace of these paths, in a form that [`parse`] reads back.
pub fn format<'a>(format: Format, paths: impl IntoIterator<Item = &'a Path>) -> String {
    let mut out = String::new();
    for (node, path) in paths.into_iter().enumerate() {
        match format {
            Format::Setdest => setdest::write(&mut out, node, path),
            Format::BonnMotion | Format::BonnMotion2d => bonn_motion::write(&mut out, path, ""),
            Format::BonnMotion3d => bonn_motion::write(&mut out, path, " 0"),
        }
    }
    out
}

type Waypoints = Vec<(Instant, Position)>;

/// The latest time that a trace may have, seconds.
const LATEST: f64 = 1e9;

fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|x: &f64| x.is_finite())
}

/// Within the range of [`Instant`].
fn instant(seconds: f64) -> Option<Instant> {
    let fits = (0.0..LATEST).contains(&seconds);
    fits.then(|| Instant::ZERO + Duration::from_secs_f64(seconds))
}

fn unknown(line: usize, found: &str, expected: &'static str) -> ImportError {
    let found: String = found.chars().take(60).collect();
    ImportError::Unknown { line, found: found.trim_end().to_owned(), expected }
}

/// The one height of a trace, and the line that sets it.
#[derive(Clone, Copy, Debug, Default)]
struct Height(Option<(f64, usize)>);

impl Height {
    fn check(&mut self, line: usize, node: u32, height: f64) -> Result<(), ImportError> {
        match *self.0.get_or_insert((height, line)) {
            (other, _) if other == height => Ok(()),
            (other, other_line) => {
                Err(ImportError::Height { line, node, height, other_line, other })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: f64, x: f64, y: f64) -> (Instant, Position) {
        (Instant::ZERO + Duration::from_secs_f64(seconds), Position { x, y })
    }

    #[test]
    fn a_name_tells_the_format() {
        assert_eq!(Format::of_name("a/b.movements.gz"), Some(Format::BonnMotion));
        assert_eq!(Format::of_name("b.ns_movements"), Some(Format::Setdest));
        assert_eq!(Format::of_name("scen-50-test"), None);
    }

    #[test]
    fn numbers_that_no_node_has_are_known() {
        let movement = |numbers: &[u32]| -> Movement {
            numbers.iter().map(|n| (*n, Path::at(Position::default()))).collect()
        };
        assert_eq!(gaps(&movement(&[0, 1, 2])), []);
        assert_eq!(gaps(&movement(&[1, u32::MAX])), [0..=0, 2..=u32::MAX - 1]);
        assert_eq!(list(&gaps(&movement(&[1, 2, 6]))), "0, 3 to 5");
        assert_eq!(list(&numbers(&movement(&[0, 1, 2, 6]))), "0 to 2, 6");
    }

    /// Often the same, so that nodes pause.
    fn place() -> impl Strategy<Value = (f64, f64)> {
        prop_oneof![Just((1.0, 2.0)), (-500.0..500.0, -500.0..500.0)]
    }

    proptest! {
        /// Reading what was written gives the same movement.
        #[test]
        fn a_trace_survives_the_way_out_and_back(
            nodes in prop::collection::vec(
                prop::collection::vec((0_u32..50, place()), 1..8),
                1..5,
            ),
            looks in prop::collection::vec(0.0..500.0_f64, 1..20),
        ) {
            let path = |legs: &Vec<(u32, (f64, f64))>| {
                let mut now = 0;
                let way = legs.iter().enumerate().map(|(i, &(after, (x, y)))| {
                    now += if i == 0 { 0 } else { after };
                    at(f64::from(now), x, y)
                });
                Path::new(way.collect()).expect("times ascend")
            };
            let paths: Vec<Path> = nodes.iter().map(path).collect();
            for format in [Format::Setdest, Format::BonnMotion2d, Format::BonnMotion3d] {
                let back = parse(format, &super::format(format, &paths)).expect("our own trace");
                prop_assert_eq!(back.len(), paths.len());
                for (path, back) in paths.iter().zip(back.values()) {
                    for &look in &looks {
                        let now = at(look, 0.0, 0.0).0;
                        let is_jumping = |(since, _): &(Instant, Position)| {
                            now < *since && *since <= now + setdest::JUMP
                        };
                        if path.waypoints().iter().any(is_jumping) {
                            continue;
                        }
                        let apart = path.leg(now).position(now).distance(back.leg(now).position(now));
                        prop_assert!(apart < 1e-3, "{apart} m at {look} s: {path:?} {back:?}");
                    }
                }
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "([$a-z_(){}\\[\\]0-9\";\\\\. #\u{a0}\x0c-]{0,40}\n){0,5}") {
            for format in [
                Format::Setdest,
                Format::BonnMotion,
                Format::BonnMotion2d,
                Format::BonnMotion3d,
            ] {
                let _ = parse(format, &text);
            }
        }
    }
}
