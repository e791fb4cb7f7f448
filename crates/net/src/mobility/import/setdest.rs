//! Tcl commands that move nodes, as ns-2's `setdest` and other generators write them for ns-2.
//!
//! `$node_(0) set X_ 5.0` sets a coordinate; `$ns_ at 2.0 "$node_(0) setdest 50.0 0.0 10.0"` says
//! where the node goes at 2 s, and how fast. They mean what they mean in ns-2 2.35
//! (`common/mobilenode.cc`, `set_destination` and `update_position`):
//!
//! - Commands without a time come before all others; commands of one time in the order of the file.
//! - A `setdest` begins where the node is by then and replaces what is left of the one before. With
//!   speed 0 the node stays there.
//! - A coordinate that is set jumps at once. A node under way goes on in its direction, each
//!   coordinate up to that of the destination.
//! - A node begins at 0, 0.
//!
//! Beside ns-2:
//!
//! - There a node that is set after its arrival goes to its last destination again, and a coordinate
//!   that is set past the destination is put back to it, both from the next packet on that needs the
//!   position. Here it stays where it was set, as in ns-3.
//! - A negative speed is refused: in ns-2 the node goes away from its destination for ever, ns-3
//!   drops the command.
//! - `setdest x y z speed`, which BonnMotion writes, is read; ns-2 and ns-3 know only
//!   `setdest x y speed`, and move no node up or down. Heights must all be the same (see
//!   [`super`]).
//!
//! ns-3 3.44 (`ns2-mobility-helper.cc`) takes commands in the order of the file whatever their
//! time, makes the first position of a node of one that is set later, and lets a node that is set
//! under way never arrive. It reads text after `#` anywhere as a comment, which Tcl does only where
//! a command begins; both are read here.

use super::{Height, ImportError, LATEST, Movement, Waypoints, instant, number, unknown};
use crate::mobility::{Leg, Path};
use airtcp_core::{Duration, Instant, Position};
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) fn read(text: &str) -> Result<Movement, ImportError> {
    let mut trace = Trace::default();
    for command in commands(text, 1) {
        trace.command(None, &command?)?;
    }
    // Commands without a time come first; the sort keeps the order of commands of one time.
    trace.orders.sort_by_key(|order| order.at);
    let mut nodes: BTreeMap<u32, Node> = BTreeMap::new();
    let mut height = Height::default();
    for order in &trace.orders {
        nodes.entry(order.node).or_default().obey(order, &mut height)?;
    }
    if let Some((metres, line)) = height.0.filter(|(metres, _)| *metres != 0.0)
        && let Some((&node, _)) = nodes.iter().find(|(_, node)| !node.has_height)
    {
        return Err(ImportError::NoHeight { node, line, height: metres });
    }
    Ok(nodes.into_iter().map(|(number, node)| (number, node.path())).collect())
}

/// A command of Tcl: its words without their quotes.
struct Command<'a> {
    line: usize,
    text: &'a str,
    words: Vec<Word<'a>>,
}

#[derive(Clone, Copy)]
struct Word<'a> {
    /// Line on which it begins.
    line: usize,
    text: &'a str,
}

impl Command<'_> {
    fn wrong(&self, expected: &'static str) -> ImportError {
        unknown(self.line, self.text, expected)
    }
}

/// The commands in a text that begins on this line. The first that cannot be read is the last.
fn commands(text: &str, line: usize) -> Commands<'_> {
    Commands { rest: text, line }
}

struct Commands<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Commands<'a> {
    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
        skipped
    }

    /// Skips blanks; a line that ends with a backslash goes on.
    fn skip_blanks(&mut self) {
        loop {
            let is_blank = |c: char| c.is_whitespace() && c != '\n';
            let blanks = self.rest.len() - self.rest.trim_start_matches(is_blank).len();
            let continued = ["\\\n", "\\\r\n"].into_iter().find(|s| self.rest.starts_with(s));
            match (blanks, continued) {
                (0, None) => return,
                (0, Some(sign)) => self.skip(sign.len()),
                (blanks, _) => self.skip(blanks),
            };
        }
    }

    fn skip_comment(&mut self) {
        self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
    }

    /// The next word of a command; `None` at its end.
    fn word(&mut self) -> Result<Option<Word<'a>>, ImportError> {
        self.skip_blanks();
        let line = self.line;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let text = match first {
            '\n' | ';' => return Ok(None),
            '#' => {
                self.skip_comment();
                return Ok(None);
            }
            '"' | '{' => {
                let begun = self.rest.lines().next().unwrap_or_default();
                let closed = closing(self.rest, first);
                let end = closed.ok_or_else(|| unknown(line, begun, "what closes it"))?;
                let quoted = self.skip(end + 1);
                &quoted[1..end]
            }
            _ => self.skip(bare(self.rest)),
        };
        Ok(Some(Word { line, text }))
    }
}

/// Where the quote or brace at the start of a text is closed.
fn closing(text: &str, opening: char) -> Option<usize> {
    let mut depth = 0;
    let mut is_escaped = false;
    for (i, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' if opening == '"' && i > 0 => return Some(i),
            '{' if opening == '{' => depth += 1,
            '}' if opening == '{' && depth == 1 => return Some(i),
            '}' if opening == '{' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Length of a word without quotes. What is in brackets belongs to it.
fn bare(text: &str) -> usize {
    let mut depth = 0_usize;
    for (i, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '\n' => return i,
            c if depth == 0 && (c.is_whitespace() || c == ';') => return i,
            _ => {}
        }
    }
    text.len()
}

impl<'a> Iterator for Commands<'a> {
    type Item = Result<Command<'a>, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        let between = |c: char| c.is_whitespace() || c == ';';
        loop {
            self.skip(self.rest.len() - self.rest.trim_start_matches(between).len());
            match self.rest.chars().next()? {
                '#' => self.skip_comment(),
                _ => break,
            }
        }
        let (start, line) = (self.rest, self.line);
        let mut words = Vec::new();
        loop {
            match self.word() {
                Ok(Some(word)) => words.push(word),
                Ok(None) => break,
                Err(error) => {
                    self.rest = "";
                    return Some(Err(error));
                }
            }
        }
        let text = &start[..start.len() - self.rest.len()];
        Some(Ok(Command { line, text, words }))
    }
}

/// What a file orders.
#[derive(Default)]
struct Trace<'a> {
    orders: Vec<Order>,
    /// Name of the array of nodes, `node_` in most files.
    array: Option<&'a str>,
}

struct Order {
    /// `None`: before the start.
    at: Option<Instant>,
    line: usize,
    node: u32,
    action: Action,
}

enum Action {
    SetX(f64),
    SetY(f64),
    SetZ(f64),
    Go { to: Position, height: Option<f64>, speed: f64 },
}

const MOVES: &str =
    "`$node_(N) set X_ x`, `$ns_ at t \"$node_(N) setdest x y speed\"` or a comment";

impl<'a> Trace<'a> {
    fn command(&mut self, at: Option<Instant>, command: &Command<'a>) -> Result<(), ImportError> {
        let words: Vec<&str> = command.words.iter().map(|word| word.text).collect();
        match words.as_slice() {
            ["$ns_" | "$ns", "at", time, _, ..] if at.is_none() => {
                let at = number(time).and_then(instant);
                let at = at.ok_or_else(|| command.wrong("a time from 0 s up to 1e9 s"))?;
                match &command.words[3..] {
                    [script] => {
                        for command in commands(script.text, script.line) {
                            self.command(Some(at), &command?)?;
                        }
                        Ok(())
                    }
                    // Without quotes, as ns-3 accepts it.
                    words => self.command(Some(at), &Command { words: words.to_vec(), ..*command }),
                }
            }
            // The distances between nodes, for statistics; the start and the end of a simulation; the
            // size of nodes in an animation; output. They move nothing. A variable moves nothing
            // either until its value is used, which is not read.
            ["$god_" | "$god", ..]
            | ["$ns_" | "$ns", "initial_node_pos" | "run" | "halt" | "flush-trace", ..]
            | ["set", _, _]
            | ["puts", ..]
            | ["stop" | "finish"] => Ok(()),
            [name, words @ ..] => match self.node(name) {
                Some(node) => self.order(at, node, words, command),
                None => Err(command.wrong(MOVES)),
            },
            [] => Ok(()),
        }
    }

    /// The number in `$node_(3)`.
    fn node(&mut self, name: &'a str) -> Option<u32> {
        let (array, index) = name.strip_prefix('$')?.strip_suffix(')')?.split_once('(')?;
        let node = index.parse().ok().filter(|_| !index.starts_with('+'))?;
        (*self.array.get_or_insert(array) == array).then_some(node)
    }

    fn order(
        &mut self,
        at: Option<Instant>,
        node: u32,
        words: &[&str],
        command: &Command<'_>,
    ) -> Result<(), ImportError> {
        let metres = |word: &str| number(word).ok_or_else(|| command.wrong("a number of metres"));
        let go = |x: &str, y: &str, height: Option<&str>, speed: &str| {
            let to = Position { x: metres(x)?, y: metres(y)? };
            let height = height.map(metres).transpose()?;
            let speed = number(speed).filter(|speed| *speed >= 0.0);
            let speed = speed.ok_or_else(|| command.wrong("a speed of 0 m/s or more"))?;
            Ok(Action::Go { to, height, speed })
        };
        let action = match words {
            ["set", "X_", value] => Action::SetX(metres(value)?),
            ["set", "Y_", value] => Action::SetY(metres(value)?),
            ["set", "Z_", value] => Action::SetZ(metres(value)?),
            ["setdest", x, y, speed] => go(x, y, None, speed)?,
            ["setdest", x, y, z, speed] => go(x, y, Some(z), speed)?,
            // The end of a simulation, traces, animation; movement by ns-2's own draws stays off.
            ["reset" | "start" | "log-movement"]
            | ["color" | "label" | "shape" | "add-mark" | "delete-mark" | "radius", ..]
            | ["random-motion", "0"] => return Ok(()),
            _ => return Err(command.wrong(MOVES)),
        };
        self.orders.push(Order { at, line: command.line, node, action });
        Ok(())
    }
}

/// A coordinate in uniform motion.
#[derive(Clone, Copy, Default)]
struct Axis {
    from: f64,
    since: Instant,
    to: f64,
    until: Instant,
}

impl Axis {
    fn still(place: f64, since: Instant) -> Self {
        Self { from: place, since, to: place, until: since }
    }

    fn at(&self, now: Instant) -> f64 {
        let position = |x| Position { x, y: 0.0 };
        let (from, to) = (position(self.from), position(self.to));
        Leg { from, since: self.since, to, until: self.until }.position(now).x
    }

    /// Sets it at `now`; what is left of its way it then goes at its speed.
    fn jump(&mut self, now: Instant, place: f64) -> Option<()> {
        let (way, left) = (self.to - self.from, self.to - place);
        *self = match now < self.until && way * left > 0.0 {
            true => {
                let lasts = self.until.since(self.since).as_secs_f64() * (left / way);
                Self { from: place, since: now, to: self.to, until: arrival(now, lasts)? }
            }
            false => Self::still(place, now),
        };
        Some(())
    }
}

/// The end of a motion that takes so many seconds from `now`: later than `now`, so that it is no
/// jump.
fn arrival(now: Instant, lasts: f64) -> Option<Instant> {
    let lasts = (0.0..LATEST).contains(&lasts).then(|| Duration::from_secs_f64(lasts))?;
    Some(now + lasts.max(Duration::from_nanos(1)))
}

/// A node while the orders are followed.
#[derive(Default)]
struct Node {
    x: Axis,
    y: Axis,
    has_height: bool,
    /// Where it was so far.
    way: Waypoints,
}

impl Node {
    fn obey(&mut self, order: &Order, height: &mut Height) -> Result<(), ImportError> {
        let Order { at, line, node, ref action } = *order;
        let now = at.unwrap_or(Instant::ZERO);
        self.follow(now);
        let moved = match *action {
            Action::SetX(x) => self.x.jump(now, x),
            Action::SetY(y) => self.y.jump(now, y),
            Action::SetZ(z) => return self.check_height(line, node, z, height),
            Action::Go { to, height: z, speed } => {
                if let Some(z) = z {
                    self.check_height(line, node, z, height)?;
                }
                self.go(now, to, speed)
            }
        };
        moved.ok_or_else(|| {
            let expected = "a speed at which the node arrives within 1e9 s";
            unknown(line, &format!("a way of node {node}"), expected)
        })?;
        self.push(now, self.position(now));
        Ok(())
    }

    fn check_height(
        &mut self,
        line: usize,
        node: u32,
        z: f64,
        height: &mut Height,
    ) -> Result<(), ImportError> {
        self.has_height = true;
        height.check(line, node, z)
    }

    fn go(&mut self, now: Instant, to: Position, speed: f64) -> Option<()> {
        let here = self.position(now);
        let until = match speed > 0.0 && here != to {
            true => arrival(now, here.distance(to) / speed)?,
            false => now,
        };
        let to = if until > now { to } else { here };
        let axis = |from, to| match from == to {
            true => Axis::still(from, now),
            false => Axis { from, since: now, to, until },
        };
        (self.x, self.y) = (axis(here.x, to.x), axis(here.y, to.y));
        Some(())
    }

    fn position(&self, now: Instant) -> Position {
        Position { x: self.x.at(now), y: self.y.at(now) }
    }

    /// Notes where it has been up to `now`.
    fn follow(&mut self, now: Instant) {
        let mut ends = [self.x.until, self.y.until];
        ends.sort_unstable();
        let since = self.way.last().map_or(Instant::ZERO, |(since, _)| *since);
        for end in ends.into_iter().filter(|end| since < *end && *end <= now) {
            self.push(end, self.position(end));
        }
        self.push(now, self.position(now));
    }

    fn push(&mut self, at: Instant, place: Position) {
        match self.way.as_mut_slice() {
            // It begins where it is set before the start, and at it.
            [(Instant::ZERO, start)] if at == Instant::ZERO => *start = place,
            // Both coordinates are set at one time.
            [.., (before, _), (last, end)] if *before == at && *last == at => *end = place,
            [.., last] if *last == (at, place) => {}
            _ => self.way.push((at, place)),
        }
    }

    fn path(mut self) -> Path {
        let end = self.x.until.max(self.y.until);
        self.follow(end);
        Path::new(self.way).expect("finite coordinates at ascending times")
    }
}

/// Longest duration of the leg that stands for a jump. A position that is set later is no jump for
/// those that read these files (see the top), so a jump is a fast leg; ns-3 counts in nanoseconds,
/// in which such a leg goes less than a millimetre.
pub(super) const JUMP: Duration = Duration::from_millis(10);
pub(super) fn write(out: &mut String, node: usize, path: &Path) {
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
            let here = Leg { from, since, to, until }.position(begins);
            go(begins, here, until, goes);
        }
        (since, from) = (until, goes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, format, parse};
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: f64, x: f64, y: f64) -> (Instant, Position) {
        (Instant::ZERO + Duration::from_secs_f64(seconds), Position { x, y })
    }

    fn movement(text: &str) -> Movement {
        parse(Format::Setdest, text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The way of node 0, which begins at 0, 5.
    fn way(commands: &str) -> Waypoints {
        let start = "$node_(0) set X_ 0\n$node_(0) set Y_ 5\n";
        movement(&format!("{start}{commands}"))[&0].waypoints().to_vec()
    }

    fn refused(text: &str) -> String {
        parse(Format::Setdest, text).expect_err(text).to_string()
    }

    /// As ns-2's own generator writes it.
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
    fn commands_are_straight_lines_and_a_later_one_begins_where_the_node_is() {
        let nodes = movement(SETDEST);
        let way = nodes[&0].waypoints();
        let first = [at(0.0, 10.0, 20.0), at(2.0, 10.0, 20.0)];
        assert_eq!(way, [first[0], first[1], at(7.0, 60.0, 20.0), at(17.0, 60.0, 70.0)]);
        assert_eq!(nodes[&1].waypoints(), [at(0.0, 5.0, 5.0)]);
    }

    #[test]
    fn speed_zero_stops_a_node_where_it_is() {
        let stopped = way("$ns_ at 1 \"$node_(0) setdest 900 5 10\"
            $ns_ at 46 \"$node_(0) setdest 900 5 0\"");
        assert_eq!(stopped, [at(0.0, 0.0, 5.0), at(1.0, 0.0, 5.0), at(46.0, 450.0, 5.0)]);
    }

    // Of a generator that rounds: the pause begins before the arrival, and the node does not go back
    // to where it came from.
    #[test]
    fn a_pause_that_comes_too_early_by_rounding_keeps_the_way_so_far() {
        let way = way("$ns_ at 1 \"$node_(0) setdest 100 5 9.9999\"
            $ns_ at 11 \"$node_(0) setdest 100 5 0\"
            $ns_ at 20 \"$node_(0) setdest 0 5 10\"");
        let near = Position { x: 99.999, y: 5.0 };
        let times: Vec<u64> = way.iter().map(|(at, _)| at.as_nanos() / 1_000_000).collect();
        assert_eq!(times, [0, 1000, 11_000, 20_000, 29_999]);
        assert!(way[2].1.distance(near) < 1e-6 && way[3].1 == way[2].1, "{way:?}");
    }

    #[test]
    fn a_coordinate_that_is_set_jumps_at_its_time() {
        let jumped = way("$ns_ at 1 \"$node_(0) setdest 100 5 10\"
            $ns_ at 20 \"$node_(0) set X_ 300\"
            $ns_ at 20 \"$node_(0) set Y_ 50\"");
        let until_20 = [at(1.0, 0.0, 5.0), at(11.0, 100.0, 5.0), at(20.0, 100.0, 5.0)];
        assert_eq!(jumped[1..4], until_20);
        assert_eq!(jumped[4..], [at(20.0, 300.0, 50.0)]);
        assert_eq!(way("$ns_ at 0 \"$node_(0) set X_ 7\""), [at(0.0, 7.0, 5.0)]);
    }

    // ns-2 changes the coordinate alone: direction, speed and destination remain.
    #[test]
    fn a_node_set_under_way_goes_on_in_its_direction() {
        let way = way("$ns_ at 0 \"$node_(0) setdest 30 45 10\"
            $ns_ at 1 \"$node_(0) set X_ -6\"");
        let jump = [at(1.0, 6.0, 13.0), at(1.0, -6.0, 13.0)];
        // y arrives after 5 s in all, x after another 2 s.
        assert_eq!(way[1..], [jump[0], jump[1], at(5.0, 18.0, 45.0), at(7.0, 30.0, 45.0)]);
    }

    // ns-2 would put it back to the destination.
    #[test]
    fn a_coordinate_set_past_the_destination_stays_there() {
        let way = way("$ns_ at 0 \"$node_(0) setdest 100 5 10\"
            $ns_ at 5 \"$node_(0) set X_ 120\"");
        assert_eq!(way[1..], [at(5.0, 50.0, 5.0), at(5.0, 120.0, 5.0)]);
    }

    #[test]
    fn commands_are_followed_in_the_order_of_their_times() {
        let way = way("$ns_ at 20 \"$node_(0) setdest 0 5 10\"
            $ns_ at 5 \"$node_(0) setdest 100 5 10\"
            $node_(0) set X_ 50");
        let legs = [at(0.0, 50.0, 5.0), at(5.0, 50.0, 5.0), at(10.0, 100.0, 5.0)];
        assert_eq!(way, [legs[0], legs[1], legs[2], at(20.0, 100.0, 5.0), at(30.0, 0.0, 5.0)]);
    }

    #[test]
    fn nodes_keep_their_numbers() {
        let numbers = |text| movement(text).into_keys().collect::<Vec<_>>();
        assert_eq!(numbers("$node_(1) set X_ 1\n$node_(12) set X_ 1\n"), [1, 12]);
        assert_eq!(numbers("$n(3) setdest 1 1 1"), [3]);
    }

    #[test]
    fn tcl_is_read_as_generators_write_it() {
        let expected = [at(0.0, 0.0, 5.0), at(2.0, 0.0, 5.0), at(12.0, 100.0, 5.0)];
        for command in [
            "$ns_ at 2.0 \"$node_(0) setdest 100 5 10\"   ;# go",
            "$ns_ at 2.0 \"$node_(0) setdest 100 5 10\"; # second",
            "$ns_ at 2.0 \"$node_(0) setdest 100 5 10\" ### third",
            "$ns at 2 \" $node_(0)  setdest 100.0 5. 1e1 \"",
            "\t$ns_\u{a0} at 2.0\t{$node_(0) setdest 100 5 10}\r",
            "$ns_ at 2.0 $node_(0) setdest 100 5 10",
            "$ns_ at 2.0 \\\n  \"$node_(0) setdest 100 5 10\"",
            "set god_ [God instance]; $ns_ at 2.0 \"$node_(0) setdest 100 5 10; $god_ x\"",
            "$ns_ at 2.0 {\n$node_(0) setdest 100 5 10\n$ns_ halt\n}",
        ] {
            assert_eq!(way(command), expected, "{command}");
        }
    }

    #[test]
    fn commands_that_move_nothing_are_passed_over() {
        let harmless = "set opt(x) 500
            $ns_ initial_node_pos $node_(0) 20
            $node_(0) random-motion 0
            $node_(0) color \"red\"
            $ns_ at 0.0 \"$node_(0) start\"
            $ns_ at 150.0 \"$node_(7) reset\"
            $ns_ at 150.0 \"stop\"
            $ns_ at 150.1 \"puts \\\"NS EXITING...\\\" ; $ns_ halt\"
            $ns_ run\n";
        assert_eq!(way(harmless), [at(0.0, 0.0, 5.0)]);
    }

    #[test]
    fn many_comments_need_no_deep_stack() {
        assert_eq!(way(&"# again\n;;\n".repeat(200_000)), [at(0.0, 0.0, 5.0)]);
    }

    #[test]
    fn one_height_is_accepted() {
        let high = "$node_(0) set Z_ 10
            $ns_ at 0 \"$node_(0) setdest 30 45 10 5\"
            $node_(1) set Z_ 10.0";
        assert_eq!(way(high)[1..], [at(10.0, 30.0, 45.0)]);
    }

    #[test]
    fn heights_that_differ_are_refused() {
        let high = "$node_(0) set Z_ 10\n$ns_ at 0 \"$node_(0) setdest 1 1 20 5\"";
        let expected = "line 2: node 0 at a height of 20 m, and line 1 has 10 m (expected one height \
                        for all nodes at all times: positions are in a plane)";
        assert_eq!(refused(high), expected);
        let low = "$node_(0) set Z_ 10\n$node_(1) set X_ 4";
        assert!(refused(low).starts_with("node 1 has no Z_, which means a height of 0 m"));
    }

    #[test]
    fn wrong_lines_are_refused() {
        assert_eq!(refused("# nothing\n"), "the trace names no node");
        assert_eq!(
            refused("$ns_ at 1 \"$node_(0) setdest 1 1 -10\""),
            "line 1: \"$node_(0) setdest 1 1 -10\" (expected a speed of 0 m/s or more)"
        );
        // Lines count within quotes, too.
        assert!(refused("\n$ns_ at 1 \"\n$god_ x\n$node_(0) fly\n\"").starts_with("line 4: "));
        for text in [
            "$node_(0) set X_ far",
            "$node_(0) set X_ inf",
            "$node_(x) set X_ 1",
            "$node_(-1) set X_ 1",
            "$node_(99999999999) set X_ 1",
            "$node_(0) set X_ 1; $sink_(0) set X_ 1",
            "$node_(0) set X_ $opt(x)",
            "$node_(0) random-motion 1",
            "$ns_ at -1 \"$node_(0) setdest 1 1 1\"",
            "$ns_ at 1e300 \"$node_(0) setdest 1 1 1\"",
            "$ns_ at 1 \"$node_(0) setdest 1 1 1e-300\"",
            "$ns_ at 1",
            "$ns_ at 1 \"$node_(0) jump\"",
            "$ns_ at 1 \"$node_(0) setdest 1 1 1",
            "$ns_ at 1 {$node_(0) setdest 1 1 1",
            "$ns_ at 1 \"$ns_ at 2 stop\"",
            "for {set i 0} {$i < 5} {incr i} { $node_($i) set X_ 1 }",
        ] {
            assert!(refused(text).starts_with("line 1: \""), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn a_jump_is_written_as_a_fast_leg_that_ends_at_its_time() {
        let lines = |way: Waypoints| {
            let trace = format(Format::Setdest, [&Path::new(way).expect("times ascend")]);
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

    /// The time of a command, the coordinate that it sets, or else a destination and a speed.
    type Drawn = (u32, Option<(bool, f64)>, (f64, f64, f64));

    fn command() -> impl Strategy<Value = Drawn> {
        let go = (-500.0..500.0, -500.0..500.0, prop_oneof![Just(0.0), 0.1..50.0_f64]);
        (0_u32..100, prop::option::weighted(0.2, (any::<bool>(), -500.0..500.0)), go)
    }

    proptest! {
        /// Where nothing is set, a node is no further than its greatest speed takes it.
        #[test]
        fn a_position_is_continuous_except_where_it_is_set(
            commands in prop::collection::vec(command(), 1..12),
        ) {
            let mut text = "$node_(0) set X_ 0\n".to_owned();
            let mut jumps = Vec::new();
            for (at, set, (x, y, speed)) in commands {
                let action = match set {
                    Some((is_x, to)) => {
                        jumps.push(Instant::from_secs(u64::from(at)));
                        format!("set {} {to}", if is_x { "X_" } else { "Y_" })
                    }
                    None => format!("setdest {x} {y} {speed}"),
                };
                let _ = writeln!(text, "$ns_ at {at} \"$node_(0) {action}\"");
            }
            let path = &movement(&text)[&0];
            for pair in path.waypoints().windows(2) {
                let [(since, from), (until, to)] = pair else { unreachable!("pairs") };
                let lasts = until.since(*since).as_secs_f64();
                let jumps = since == until && jumps.contains(since);
                let apart = from.distance(*to);
                prop_assert!(jumps || apart <= 50.0 * lasts + 1e-6, "{apart} m in {lasts} s: {text}");
            }
        }
    }
}
