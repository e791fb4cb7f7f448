//! BonnMotion's `.movements`: a line for each node, of waypoints in seconds and metres.
//!
//! A waypoint is `time x y`, or `time x y z` if the movement has heights. BonnMotion itself looks
//! for `J=3D` in the `.params` beside the file; the file does not say. Lines that begin with `#` are
//! comments (BonnMotion 3.0.1, `Scenario.java`).

use super::{Height, ImportError, Movement, Waypoints, instant, number, unknown};
use crate::mobility::Path;
use airtcp_core::{Instant, Position};
use std::fmt::Write;

/// Reads waypoints as `time x y` or as `time x y z`, whichever fits.
pub(super) fn read(text: &str) -> Result<Movement, ImportError> {
    match (read_2d(text), read_waypoints::<4>(text)) {
        (Ok(flat), Ok(high)) if flat.is_empty() && high.is_empty() => Ok(flat),
        (Ok(_), Ok(_) | Err(ImportError::Height { .. })) => Err(ImportError::Ambiguous),
        (Ok(flat), Err(_)) => Ok(flat),
        (Err(_), Ok(high)) => Ok(high),
        // It has heights, and they differ.
        (Err(_), Err(error @ ImportError::Height { .. })) => Err(error),
        (Err(error), Err(_)) => Err(error),
    }
}

pub(super) fn read_2d(text: &str) -> Result<Movement, ImportError> {
    read_waypoints::<3>(text)
}

pub(super) fn read_3d(text: &str) -> Result<Movement, ImportError> {
    read_waypoints::<4>(text)
}

/// Reads waypoints of N numbers, 3 or 4. A mistake in the form comes before one in the heights.
fn read_waypoints<const N: usize>(text: &str) -> Result<Movement, ImportError> {
    let expected = match N {
        3 => "`time x y` for each waypoint, in seconds and metres",
        _ => "`time x y z` for each waypoint, in seconds and metres",
    };
    let mut nodes = Movement::new();
    let mut height = Height::default();
    let mut heights = Ok(());
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'));
    for (node, (line, content)) in (0..).zip(lines) {
        let wrong = |found: &str| unknown(line, found, expected);
        let numbers =
            content.split_whitespace().map(|word| number(word).ok_or_else(|| wrong(word)));
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>()?;
        let (points, rest) = numbers.as_chunks::<N>();
        if !rest.is_empty() {
            return Err(wrong(&format!("{} numbers", numbers.len())));
        }
        let mut waypoints = Waypoints::with_capacity(points.len());
        for point in points {
            let (at, x, y) = (point[0], point[1], point[2]);
            let time = instant(at).ok_or_else(|| wrong(&at.to_string()))?;
            ascending(line, node, waypoints.last(), time)?;
            if let (Some(z), Ok(())) = (point.get(3), &heights) {
                heights = height.check(line, node, *z);
            }
            waypoints.push((time, Position { x, y }));
        }
        nodes.insert(node, Path::new(waypoints).expect("a line with ascending times"));
    }
    heights.map(|()| nodes)
}

fn ascending(
    line: usize,
    node: u32,
    before: Option<&(Instant, Position)>,
    at: Instant,
) -> Result<(), ImportError> {
    match before {
        Some(&(before, _)) if at < before => {
            let [at, before] = [at, before].map(|time| time.since_start().as_secs_f64());
            Err(ImportError::GoesBack { line, node, at, before })
        }
        _ => Ok(()),
    }
}

/// Writes a node's line; `height` ends each waypoint.
pub(super) fn write(out: &mut String, path: &Path, height: &str) {
    let waypoint = |(at, p): &(Instant, Position)| {
        format!("{} {} {}{height}", at.since_start().as_secs_f64(), p.x, p.y)
    };
    let waypoints: Vec<_> = path.waypoints().iter().map(waypoint).collect();
    let _ = writeln!(out, "{}", waypoints.join(" "));
}

#[cfg(test)]
mod tests {
    use super::super::{Format, parse};
    use super::*;
    use airtcp_core::Duration;

    fn at(seconds: f64, x: f64, y: f64) -> (Instant, Position) {
        (Instant::ZERO + Duration::from_secs_f64(seconds), Position { x, y })
    }

    fn ways(format: Format, text: &str) -> Vec<Waypoints> {
        let movement = parse(format, text).expect(text);
        movement.values().map(|path| path.waypoints().to_vec()).collect()
    }

    fn refused(format: Format, text: &str) -> String {
        parse(format, text).expect_err(text).to_string()
    }

    #[test]
    fn it_has_a_line_for_each_node() {
        let ways = ways(Format::BonnMotion, "0.0 1 2 5.5 3 4\n0 7.5 8\n");
        assert_eq!(ways[0], [at(0.0, 1.0, 2.0), at(5.5, 3.0, 4.0)]);
        assert_eq!(ways[1], [at(0.0, 7.5, 8.0)]);
    }

    #[test]
    fn comments_and_a_byte_order_mark_are_no_nodes() {
        let text = "\u{feff}# model=Static\n0 1 2\n\n# node 1\n0 3 4\n";
        assert_eq!(ways(Format::BonnMotion, text).len(), 2);
    }

    #[test]
    fn waypoints_with_a_height_are_told_by_what_fits() {
        // Eight numbers are not a multiple of three; as triples, the second line goes back in time.
        let high = "0 10 20 1.5 50 60 20 1.5\n0 30 40 1.5 9 30 40 1.5 20 30 40 1.5\n";
        let ways = ways(Format::BonnMotion, high);
        assert_eq!(ways[0], [at(0.0, 10.0, 20.0), at(50.0, 60.0, 20.0)]);
        assert_eq!(ways[1][1], at(9.0, 30.0, 40.0));
    }

    #[test]
    fn waypoints_that_fit_both_ways_are_refused_until_the_format_says() {
        let both = "0 10 20 1.5 50 60 20 1.5 100 60 90 1.5\n";
        assert!(refused(Format::BonnMotion, both).starts_with("fits as `time x y` and as"));
        assert_eq!(ways(Format::BonnMotion2d, both)[0].len(), 4);
        assert_eq!(ways(Format::BonnMotion3d, both)[0].len(), 3);
        // The heights differ, but whether they are heights is unknown.
        let both = "0 10 20 1.5 50 60 20 1.6 100 60 90 1.5\n";
        assert!(refused(Format::BonnMotion, both).starts_with("fits as"));
    }

    #[test]
    fn heights_that_differ_are_refused() {
        let high = "0 10 20 1.5 50 60 20 1.5\n0 30 40 2\n";
        for format in [Format::BonnMotion, Format::BonnMotion3d] {
            assert!(
                refused(format, high)
                    .starts_with("line 2: node 1 at a height of 2 m, and line 1 has 1.5 m"),
            );
        }
    }

    #[test]
    fn wrong_lines_are_refused() {
        assert_eq!(
            refused(Format::BonnMotion, "0 1 2\n0 1 2 5 1\n"),
            "line 2: \"5 numbers\" (expected `time x y` for each waypoint, in seconds and metres)"
        );
        assert_eq!(
            refused(Format::BonnMotion, "9 1 2 4 1 2\n"),
            "line 1: node 0 at 4 s comes after 9 s (expected ascending times)"
        );
        assert_eq!(refused(Format::BonnMotion, "# nothing\n"), "the trace names no node");
        for text in ["0 1 x", "-1 1 2", "0 inf 2", "nan 1 2", "1e12 1 2"] {
            assert!(refused(Format::BonnMotion, text).starts_with("line 1: "), "{text}");
        }
    }
}
