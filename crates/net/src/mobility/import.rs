//! Movement traces of other tools, and back: the commands of ns-2's `setdest` and the files of
//! BonnMotion.
//!
//! Both number nodes from 0. A trace becomes one list of waypoints for each node, as
//! [`Path`] takes it.

use super::Path;
use airtcp_core::{Duration, Instant, Position};
use std::fmt::Write;

/// A format of movement traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Tcl commands for ns-2: `$node_(0) set X_ 5.0` and
    /// `$ns_ at 2.0 "$node_(0) setdest 50.0 0.0 10.0"` (time, destination, speed). God's distances
    /// and comments are passed over.
    Setdest,
    /// BonnMotion's: one line per node, of `time x y` triples, seconds and metres.
    BonnMotion,
}

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
        node: usize,
        /// The time that is too early, seconds.
        at: f64,
        /// The time before it.
        before: f64,
    },
    /// A node of which the trace says nothing, though it names one with a higher number.
    #[error("node {node} has no position, but node {last} has one (expected no gaps)")]
    Gap {
        /// Number of the node without a position.
        node: usize,
        /// The highest number in the trace.
        last: usize,
    },
    /// Nothing in it.
    #[error("the trace names no node")]
    Empty,
}

/// The waypoints of each node, from 0.
///
/// # Errors
/// The first wrong line; nodes without a position.
pub fn parse(format: Format, text: &str) -> Result<Vec<Path>, ImportError> {
    let nodes = match format {
        Format::Setdest => setdest(text)?,
        Format::BonnMotion => bonn_motion(text)?,
    };
    let last = nodes.len().checked_sub(1).ok_or(ImportError::Empty)?;
    let path = |(node, waypoints): (usize, Vec<_>)| {
        Path::new(waypoints).map_err(|_| ImportError::Gap { node, last })
    };
    nodes.into_iter().enumerate().map(path).collect()
}

/// A trace of these paths, in a form that [`parse`] reads back.
pub fn format(format: Format, paths: &[Path]) -> String {
    let mut out = String::new();
    for (node, path) in paths.iter().enumerate() {
        match format {
            Format::BonnMotion => {
                let triple = |(at, p): &(Instant, Position)| {
                    format!("{} {} {}", at.since_start().as_secs_f64(), p.x, p.y)
                };
                let triples: Vec<_> = path.waypoints().iter().map(triple).collect();
                let _ = writeln!(out, "{}", triples.join(" "));
            }
            Format::Setdest => write_setdest(&mut out, node, path),
        }
    }
    out
}

type Waypoints = Vec<(Instant, Position)>;

/// More nodes than any trace has; a higher number is a mistake.
const MAX_NODES: usize = 1_000_000;

fn bonn_motion(text: &str) -> Result<Vec<Waypoints>, ImportError> {
    let mut nodes = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let wrong = |found: &str| unknown(line, found, "time x y triples, in seconds and metres");
        if content.trim().is_empty() {
            continue;
        }
        let numbers =
            content.split_whitespace().map(|word| number(word).ok_or_else(|| wrong(word)));
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>()?;
        let (triples, rest) = numbers.as_chunks::<3>();
        if !rest.is_empty() {
            return Err(wrong(&format!("{} numbers", numbers.len())));
        }
        let mut waypoints = Waypoints::with_capacity(triples.len());
        for &[at, x, y] in triples {
            let time = instant(at).ok_or_else(|| wrong(&at.to_string()))?;
            ascending(line, nodes.len(), waypoints.last(), time)?;
            waypoints.push((time, Position { x, y }));
        }
        nodes.push(waypoints);
    }
    Ok(nodes)
}

fn setdest(text: &str) -> Result<Vec<Waypoints>, ImportError> {
    let mut nodes: Vec<Waypoints> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let wrong = || {
            let expected =
                "`$node_(N) set X_ x`, `$ns_ at t \"$node_(N) setdest x y speed\"` or a comment";
            unknown(line, content, expected)
        };
        let plain = content.replace('"', " ");
        let words: Vec<&str> = plain.split_whitespace().collect();
        let (at, words) = match words.as_slice() {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            words if words.contains(&"$god_") => continue,
            ["$ns_", "at", at, words @ ..] => (number(at).ok_or_else(wrong)?, words),
            words => (0.0, words),
        };
        let now = instant(at).ok_or_else(wrong)?;
        let [name, words @ ..] = words else { return Err(wrong()) };
        let index = name.strip_prefix("$node_(").and_then(|name| name.strip_suffix(')'));
        let node: usize = index.and_then(|index| index.parse().ok()).ok_or_else(wrong)?;
        if node >= MAX_NODES {
            return Err(wrong());
        }
        if node >= nodes.len() {
            nodes.resize(node + 1, Vec::new());
        }
        let waypoints = &mut nodes[node];
        match words {
            ["set", axis @ ("X_" | "Y_" | "Z_"), value] => {
                let value = number(value).ok_or_else(wrong)?;
                let here = stop(line, node, waypoints, now)?;
                set(waypoints, now, here, axis, value);
            }
            ["setdest", x, y, speed] => {
                let [x, y, speed] = [x, y, speed].map(|word| number(word));
                let (Some(x), Some(y), Some(speed)) = (x, y, speed) else { return Err(wrong()) };
                let (here, to) = (stop(line, node, waypoints, now)?, Position { x, y });
                waypoints.push((now, here));
                // In ns-2 a node with speed 0 stays where it is.
                if speed > 0.0 {
                    let after = here.distance(to) / speed;
                    let arrives = instant(at + after).ok_or_else(wrong)?;
                    waypoints.push((arrives, to));
                }
            }
            _ => return Err(wrong()),
        }
    }
    Ok(nodes)
}

/// Sets a coordinate of a node that is `here` at `now`.
fn set(waypoints: &mut Waypoints, now: Instant, mut here: Position, axis: &str, value: f64) {
    // It was there until it jumps.
    if waypoints.last().is_some_and(|(before, _)| *before < now) {
        waypoints.push((now, here));
    }
    match axis {
        "X_" => here.x = value,
        "Y_" => here.y = value,
        _ => {}
    }
    // Both coordinates are set at one instant.
    if waypoints.last().is_some_and(|(before, _)| *before == now) && now == Instant::ZERO {
        waypoints.pop();
    }
    waypoints.push((now, here));
}

/// Position of a node at `now`; cancels the rest of its present leg.
fn stop(
    line: usize,
    node: usize,
    waypoints: &mut Waypoints,
    now: Instant,
) -> Result<Position, ImportError> {
    let Some(&(arrives, to)) = waypoints.last() else { return Ok(Position { x: 0.0, y: 0.0 }) };
    if now >= arrives {
        return Ok(to);
    }
    waypoints.pop();
    ascending(line, node, waypoints.last(), now)?;
    let Some(&(since, from)) = waypoints.last() else { return Ok(to) };
    Ok(super::Leg { from, since, to, until: arrives }.position(now))
}

fn ascending(
    line: usize,
    node: usize,
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

/// Longest duration of the leg that stands for a jump. A position that is set later is no jump for
/// those that read these files: ns-2 puts the node back to where its last leg ended, and ns-3
/// starts it there. So a jump is a fast leg; ns-3 counts in nanoseconds, in which such a leg goes
/// less than a millimetre.
const JUMP: Duration = Duration::from_millis(10);

fn write_setdest(out: &mut String, node: usize, path: &Path) {
    // Where the node comes to at some time, and where it goes on from.
    let stops = path
        .waypoints()
        .chunk_by(|(before, _), (after, _)| before == after)
        .map(|same| (same[0].0, same[0].1, same[same.len() - 1].1));
    let (first, came, goes) = stops.clone().next().expect("a path has waypoints");
    let start = if first == Instant::ZERO { goes } else { came };
    for (axis, value) in [("X_", start.x), ("Y_", start.y), ("Z_", 0.0)] {
        let _ = writeln!(out, "$node_({node}) set {axis} {value}");
    }
    let mut go = |since: Instant, from: Position, until: Instant, to: Position| {
        if from != to {
            let speed = from.distance(to) / until.since(since).as_secs_f64();
            let (at, Position { x, y }) = (since.since_start().as_secs_f64(), to);
            let _ = writeln!(out, "$ns_ at {at} \"$node_({node}) setdest {x} {y} {speed}\"");
        }
    };
    let (mut since, mut from) = (Instant::ZERO, start);
    for (until, to, goes) in stops.skip_while(|(at, ..)| *at == Instant::ZERO) {
        go(since, from, until, to);
        if to != goes {
            let begins = until - JUMP.min(until.since(since) / 2);
            let here = super::Leg { from, since, to, until }.position(begins);
            go(begins, here, until, goes);
        }
        (since, from) = (until, goes);
    }
}

fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|x: &f64| x.is_finite())
}

/// Within the range of [`Instant`].
fn instant(seconds: f64) -> Option<Instant> {
    let fits = (0.0..1e9).contains(&seconds);
    fits.then(|| Instant::ZERO + Duration::from_secs_f64(seconds))
}

fn unknown(line: usize, found: &str, expected: &'static str) -> ImportError {
    ImportError::Unknown { line, found: found.chars().take(60).collect(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: f64, x: f64, y: f64) -> (Instant, Position) {
        (Instant::ZERO + Duration::from_secs_f64(seconds), Position { x, y })
    }

    const SETDEST: &str = r#"#
# nodes: 2, pause: 0.00, max speed: 10.00
$node_(0) set X_ 10.0
$node_(0) set Y_ 20.0
$node_(0) set Z_ 0.0
$node_(1) set X_ 5
$node_(1) set Y_ 5
$god_ set-dist 0 1 1
$ns_ at 2.0 "$node_(0) setdest 110.0 20.0 10.0"
$ns_ at 7.0 "$node_(0) setdest 60.0 70.0 5.0"
$ns_ at 8.0 "$god_ set-dist 0 1 16777215"
"#;

    #[test]
    fn setdest_commands_are_straight_lines_and_may_interrupt_each_other() {
        let paths = parse(Format::Setdest, SETDEST).expect("a trace");
        let way = paths[0].waypoints();
        assert_eq!(
            way,
            [at(0.0, 10.0, 20.0), at(2.0, 10.0, 20.0), at(7.0, 60.0, 20.0), at(17.0, 60.0, 70.0)]
        );
        assert_eq!(paths[1].waypoints(), [at(0.0, 5.0, 5.0)]);
    }

    // A node that stops: as in ns-2 2.35 and ns-3 3.44. One that is set elsewhere: what is meant;
    // ns-2 puts it back to where its last leg ended, ns-3 starts it there.
    #[test]
    fn a_node_is_where_it_was_until_it_stops_or_jumps() {
        let start = "$node_(0) set X_ 0\n$node_(0) set Y_ 5\n";
        let way = |commands: &str| {
            let paths = parse(Format::Setdest, &format!("{start}{commands}")).expect("a trace");
            paths[0].waypoints().to_vec()
        };
        let stopped = way("$ns_ at 1 \"$node_(0) setdest 900 5 10\"
            $ns_ at 46 \"$node_(0) setdest 900 5 0\"");
        assert_eq!(stopped, [at(0.0, 0.0, 5.0), at(1.0, 0.0, 5.0), at(46.0, 450.0, 5.0)]);
        let jumped = way("$ns_ at 1 \"$node_(0) setdest 100 5 10\"
            $ns_ at 20 \"$node_(0) set X_ 300\"");
        let until_20 = [at(1.0, 0.0, 5.0), at(11.0, 100.0, 5.0), at(20.0, 100.0, 5.0)];
        assert_eq!(jumped[1..4], until_20);
        assert_eq!(jumped[4..], [at(20.0, 300.0, 5.0)]);
    }

    #[test]
    fn a_jump_is_written_as_a_fast_leg_that_ends_at_its_time() {
        let lines = |way: Vec<(Instant, Position)>| {
            let trace = format(Format::Setdest, &[Path::new(way).expect("times ascend")]);
            trace.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let still = at(0.0, 0.0, 0.0);
        let jumps = lines(vec![still, at(20.0, 0.0, 0.0), at(20.0, 3.0, 0.0), at(20.0, 3.0, 4.0)]);
        assert_eq!(jumps[3..], ["$ns_ at 19.99 \"$node_(0) setdest 3 4 500\""]);
        // From where the leg before has come to by then.
        let goes = lines(vec![still, at(20.0, 2000.0, 0.0), at(20.0, 1999.0, 5.0)]);
        assert_eq!(
            goes[3..],
            [
                "$ns_ at 0 \"$node_(0) setdest 2000 0 100\"",
                "$ns_ at 19.99 \"$node_(0) setdest 1999 5 500\""
            ]
        );
        // At the start it is where it begins; a short leg is half of it.
        let begins =
            lines(vec![still, at(0.0, 0.0, 2.0), at(0.002, 0.0, 2.0), at(0.002, 3.0, 2.0)]);
        assert_eq!(begins[1], "$node_(0) set Y_ 2");
        assert_eq!(begins[3..], ["$ns_ at 0.001 \"$node_(0) setdest 3 2 3000\""]);
    }

    #[test]
    fn bonn_motion_has_a_line_for_each_node() {
        let paths = parse(Format::BonnMotion, "0.0 1 2 5.5 3 4\n0 7.5 8\n").expect("a trace");
        assert_eq!(paths[0].waypoints(), [at(0.0, 1.0, 2.0), at(5.5, 3.0, 4.0)]);
        assert_eq!(paths[1].waypoints(), [at(0.0, 7.5, 8.0)]);
    }

    #[test]
    fn wrong_traces_are_refused_with_the_line() {
        let refused = |format, text: &str| parse(format, text).expect_err(text).to_string();
        assert_eq!(
            refused(Format::BonnMotion, "0 1 2\n0 1 2 5\n"),
            "line 2: \"4 numbers\" (expected time x y triples, in seconds and metres)"
        );
        assert_eq!(
            refused(Format::BonnMotion, "9 1 2 4 1 2\n"),
            "line 1: node 0 at 4 s comes after 9 s (expected ascending times)"
        );
        let gap = refused(Format::Setdest, "$node_(2) set X_ 1\n");
        assert_eq!(gap, "node 0 has no position, but node 2 has one (expected no gaps)");
        assert_eq!(refused(Format::Setdest, "# nothing\n"), "the trace names no node");
        for text in [
            "$node_(0) set X_ far",
            "$node_(0) set X_ inf",
            "$node_(x) set X_ 1",
            "$node_(99999999999) set X_ 1",
            "$ns_ at -1 \"$node_(0) setdest 1 1 1\"",
            "$ns_ at 1e300 \"$node_(0) setdest 1 1 1\"",
            "$ns_ at 1",
            "$ns_ at 1 \"$node_(0) jump\"",
            "puts hello",
        ] {
            assert!(refused(Format::Setdest, text).starts_with("line 1: \""), "{text}");
        }
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
            for format in [Format::Setdest, Format::BonnMotion] {
                let back = parse(format, &super::format(format, &paths)).expect("our own trace");
                for (path, back) in paths.iter().zip(&back) {
                    for &look in &looks {
                        let now = at(look, 0.0, 0.0).0;
                        let is_jumping = |(since, _): &(Instant, Position)| {
                            now < *since && *since <= now + JUMP
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
        fn any_text_is_read_or_refused(text in "([$a-z_(){}0-9\". #-]{0,40}\n){0,5}") {
            let _ = parse(Format::Setdest, &text);
            let _ = parse(Format::BonnMotion, &text);
        }
    }
}
