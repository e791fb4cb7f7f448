//! The page with what was collected: a header in JSON, and the rest as variable-length integers
//! (LEB128) in base64, times as differences in microseconds.

use super::{Animation, Drop, FlowHistory, NewPath, Transmission, layout};
use crate::scenario::{FlowSpec, NodeId, Scenario};
use airtcp_core::event::DropReason;
use airtcp_core::{Duration, IdVec, Instant, Position};
use airtcp_net::mobility::Mobility;
use airtcp_net::schedule::Schedules;
use serde::Serialize;
use std::io::{self, Write};
use std::ops::Range;

/// The page. The line `DATA` stands for the data.
const PAGE: &str = include_str!("page.html");

/// The data that the page reads. Times are microseconds, lengths in units of 0.1 m.
#[derive(Debug, Serialize)]
struct Data<'a> {
    program: &'static str,
    scenario: &'a str,
    seed: u64,
    from: u64,
    to: u64,
    /// The limit was reached at `to`.
    cut: bool,
    /// Places are to scale.
    to_scale: bool,
    nodes: Vec<Node<'a>>,
    cells: Vec<Cell<'a>>,
    /// Pairs of nodes.
    links: Vec<(u32, u32)>,
    flows: Vec<Flow<'a>>,
    /// Start and end of each outage of a link or node.
    outages: Vec<(u64, u64)>,
    reasons: Vec<&'static str>,
    interval: u64,
    /// Each: start, duration, from, to + 1 (0: all), carrier + 8 fate, content.
    transmissions: Base64,
    /// Each: time, node, reason, content.
    drops: Base64,
    /// Each: time, flow, number of nodes, nodes.
    paths: Base64,
}

#[derive(Debug, Serialize)]
struct Node<'a> {
    name: &'a str,
    /// Cells in which it has a radio.
    cells: Vec<u32>,
    /// Time in milliseconds, x, y of each waypoint.
    path: Vec<(u64, i64, i64)>,
}

#[derive(Debug, Serialize)]
struct Cell<'a> {
    name: &'a str,
    decode: i64,
    sense: i64,
}

#[derive(Debug, Serialize)]
struct Flow<'a> {
    name: &'a str,
    from: u32,
    to: u32,
    mss: u16,
    /// Each: intervals since the one before, largest window, last window in bytes.
    windows: Base64,
    timeouts: Base64,
}

impl<'a> Flow<'a> {
    fn new(
        flow: &'a FlowSpec,
        history: &FlowHistory,
        intervals: u64,
        span: &Range<Instant>,
    ) -> Self {
        Self {
            name: &flow.name,
            from: flow.from.0,
            to: flow.to.0,
            mss: flow.sender.mss,
            windows: encode_windows(history, intervals),
            timeouts: encode_times(&history.timeouts, span),
        }
    }
}

/// Writes the page.
pub(super) fn write(animation: Animation<'_>, mut writer: impl Write) -> io::Result<()> {
    let (before, after) = PAGE.split_once("DATA\n").expect("the page has a place for the data");
    writer.write_all(before.as_bytes())?;
    // Names are letters, digits, '-' and '_': nothing could end the script element.
    serde_json::to_writer(&mut writer, &data(animation))?;
    writer.write_all(after.as_bytes())
}

fn data(animation: Animation<'_>) -> Data<'_> {
    let cut = animation.cut_at();
    let Animation { scenario, seed, span, windows, mut traffic } = animation;
    let span = span.start..cut.unwrap_or(span.end);
    let mut movement: IdVec<NodeId, Option<Mobility>> =
        scenario.nodes.iter().map(|_| None).collect();
    let mut cells: IdVec<NodeId, Vec<u32>> = scenario.nodes.iter().map(|_| Vec::new()).collect();
    for (number, wlan) in (0..).zip(&scenario.wlans) {
        for station in &wlan.stations {
            let get = || scenario.movement(station, seed);
            movement[station.node].get_or_insert_with(get);
            cells[station.node].push(number);
        }
    }
    let at_first = |movement: &Option<Mobility>| movement.as_ref().map(|m| m.position(span.start));
    let stations: IdVec<NodeId, Option<Position>> = movement.iter().map(at_first).collect();
    let places = layout::places(scenario, &stations);
    let nodes = scenario.nodes.iter().zip(cells).zip(&movement).zip(places);
    let nodes = nodes.map(|(((node, cells), movement), place)| {
        let path = match movement {
            Some(movement) => waypoints(movement, &span),
            None => vec![waypoint(span.start, place)],
        };
        Node { name: &node.name, cells, path }
    });
    let transmissions = traffic.transmissions(&movement);
    let intervals = span.end.since(span.start).as_nanos() / windows.interval.as_nanos();
    Data {
        program: concat!("airtcp ", env!("CARGO_PKG_VERSION")),
        scenario: &scenario.name,
        seed,
        from: micros(span.start),
        to: micros(span.end),
        cut: cut.is_some(),
        to_scale: movement.iter().any(Option::is_some),
        nodes: nodes.collect(),
        cells: scenario
            .wlans
            .iter()
            .map(|wlan| {
                let (decode, sense) = wlan.config.radio.ranges();
                Cell { name: &wlan.name, decode: decimetres(decode), sense: decimetres(sense) }
            })
            .collect(),
        links: linked_pairs(scenario),
        flows: scenario
            .flows
            .iter()
            .zip(&windows.flows)
            .map(|(flow, history)| Flow::new(flow, history, intervals, &span))
            .collect(),
        outages: outages(scenario, &span),
        reasons: DropReason::VARIANTS.iter().map(|reason| reason.prose).collect(),
        interval: windows.interval.as_nanos() / 1000,
        transmissions: encode_transmissions(&transmissions, span.start),
        drops: encode_drops(&traffic.drops, span.start),
        paths: encode_paths(&traffic.paths, span.start),
    }
}

/// The pairs of nodes with a link, in either direction.
fn linked_pairs(scenario: &Scenario) -> Vec<(u32, u32)> {
    let ends = scenario.links.iter().map(|link| (link.from.0, link.to.0));
    let mut pairs: Vec<_> = ends.map(|(a, b)| (a.min(b), a.max(b))).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// The outages within `span`; those that are the same for several links or nodes appear once.
fn outages(scenario: &Scenario, span: &Range<Instant>) -> Vec<(u64, u64)> {
    let links = scenario.links.iter().filter_map(|link| link.config.interruptions());
    let nodes = scenario.nodes.iter().filter_map(|node| node.outage.as_ref());
    let schedules = links.chain(nodes.map(|it| it.schedule.clone()));
    let mut outages = Vec::new();
    for schedule in schedules {
        let within = Schedules::from_iter([schedule]).outages_in(span);
        outages.extend(within.into_iter().map(|(start, end)| (micros(start), micros(end))));
    }
    outages.sort_unstable();
    outages.dedup();
    outages
}

/// The movement within `span`.
fn waypoints(movement: &Mobility, span: &Range<Instant>) -> Vec<(u64, i64, i64)> {
    let mut waypoints = vec![waypoint(span.start, movement.position(span.start))];
    let path = movement.path();
    let inside = path.waypoints().iter().filter(|(at, _)| *at > span.start && *at < span.end);
    waypoints.extend(inside.map(|&(at, place)| waypoint(at, place)));
    waypoints.push(waypoint(span.end, movement.position(span.end)));
    // Where a node stays it needs one.
    if waypoints.iter().all(|&(_, x, y)| (x, y) == (waypoints[0].1, waypoints[0].2)) {
        waypoints.truncate(1);
    }
    waypoints
}

fn waypoint(at: Instant, place: Position) -> (u64, i64, i64) {
    (at.as_nanos() / 1_000_000, decimetres(place.x), decimetres(place.y))
}

fn decimetres(metres: f64) -> i64 {
    (metres * 10.0).round() as i64
}

fn micros(at: Instant) -> u64 {
    at.as_nanos() / 1000
}

/// Bytes, in base64 when they are written.
#[derive(Debug, Default)]
struct Base64(Vec<u8>);

impl Base64 {
    fn put(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}

impl Serialize for Base64 {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&base64(&self.0))
    }
}

/// RFC 4648 §4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |n: usize| u32::from(three.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * n)) as usize & 63];
            text.push(if n <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Times as differences.
struct Clock(u64);

impl Clock {
    fn starting(at: Instant) -> Self {
        Self(micros(at))
    }

    fn put(&mut self, at: Instant, out: &mut Base64) {
        out.put(micros(at) - self.0);
        self.0 = micros(at);
    }
}

fn encode_transmissions(transmissions: &[Transmission], start: Instant) -> Base64 {
    let (mut out, mut clock) = (Base64::default(), Clock::starting(start));
    for transmission in transmissions {
        let &Transmission { start, duration, from, to, carrier, content, fate } = transmission;
        clock.put(start, &mut out);
        out.put(Duration::as_nanos(duration) / 1000);
        out.put(from.0.into());
        out.put(to.map_or(0, |NodeId(to)| u64::from(to) + 1));
        out.put(carrier as u64 + 8 * fate as u64);
        out.put(content.0.into());
    }
    out
}

fn encode_drops(drops: &[Drop], start: Instant) -> Base64 {
    let (mut out, mut clock) = (Base64::default(), Clock::starting(start));
    for &Drop { at, node, reason, content } in drops {
        clock.put(at, &mut out);
        out.put(node.0.into());
        out.put(reason as u64);
        out.put(content.0.into());
    }
    out
}

fn encode_paths(paths: &[NewPath], start: Instant) -> Base64 {
    let (mut out, mut clock) = (Base64::default(), Clock::starting(start));
    for NewPath { at, flow, nodes } in paths {
        clock.put((*at).max(start), &mut out);
        out.put(flow.0.into());
        out.put(nodes.len() as u64);
        nodes.iter().for_each(|node| out.put(node.0.into()));
    }
    out
}

/// Those of the first `intervals`, and of the one that has begun then.
fn encode_windows(history: &FlowHistory, intervals: u64) -> Base64 {
    let (mut out, mut before) = (Base64::default(), 0);
    let shown = history.windows.iter().take_while(|(at, ..)| u64::from(*at) <= intervals);
    for &(interval, most, last) in shown {
        out.put(u64::from(interval - before));
        out.put(most.into());
        out.put(last.into());
        before = interval;
    }
    out
}

fn encode_times(times: &[Instant], span: &Range<Instant>) -> Base64 {
    let (mut out, mut clock) = (Base64::default(), Clock::starting(span.start));
    times.iter().take_while(|&&at| at <= span.end).for_each(|&at| clock.put(at, &mut out));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        // §10.
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn a_number_takes_as_many_bytes_as_it_needs() {
        let mut out = Base64::default();
        [0, 127, 128, 300].into_iter().for_each(|number| out.put(number));
        assert_eq!(out.0, [0, 127, 0x80, 1, 0xac, 2]);
    }
}
