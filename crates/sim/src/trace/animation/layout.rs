//! Places on the map for nodes that have no position: those without a radio.
//!
//! Without any radio, nodes stand in columns, by their place on the paths of the flows from left to
//! right. Otherwise they stand outside the cells, each beside the node it is linked to.

use crate::scenario::{NodeId, Scenario};
use airtcp_core::{IdVec, Position};
use std::collections::{BTreeMap, VecDeque};

/// The nodes that each node has links to, ascending.
type Neighbours = IdVec<NodeId, Vec<NodeId>>;

/// Distance between columns and between the nodes in a column.
const STEP: f64 = 100.0;

/// The places of all nodes, if `placed` are those of the nodes with radios.
pub(super) fn places(
    scenario: &Scenario,
    placed: &IdVec<NodeId, Option<Position>>,
) -> Vec<Position> {
    let neighbours = neighbours(scenario);
    if placed.iter().all(Option::is_none) {
        return columns(scenario, &neighbours);
    }
    let mut places = placed.clone();
    let stations: Vec<Position> = placed.iter().flatten().copied().collect();
    let (centre, extent) = centre_and_extent(&stations);
    let step = (extent / 4.0).max(1.0);
    let mut reached: VecDeque<NodeId> =
        places.ids().filter(|&node| placed[node].is_some()).collect();
    while let Some(node) = reached.pop_front() {
        let Some(here) = places[node] else { continue };
        let away = Position { x: here.x - centre.x, y: here.y - centre.y };
        let length = centre.distance(here);
        let (x, y) = if length > 0.0 { (away.x / length, away.y / length) } else { (-1.0, 0.0) };
        let mut siblings = 0;
        for &next in &neighbours[node] {
            if places[next].is_some() {
                continue;
            }
            // Outwards, alternately left and right of each other.
            let side = f64::from((siblings + 1) / 2) * if siblings % 2 == 0 { -0.7 } else { 0.7 };
            places[next] = Some(Position {
                x: here.x + step * (x - side * y),
                y: here.y + step * (y + side * x),
            });
            siblings += 1;
            reached.push_back(next);
        }
    }
    // What has no link at all stands in a row below.
    let mut alone = 0.0;
    let below = stations.iter().map(|place| place.y).fold(f64::INFINITY, f64::min) - step;
    let place = |place: Option<Position>| {
        place.unwrap_or_else(|| {
            alone += 1.0;
            Position { x: centre.x + step * (alone - 1.0), y: below }
        })
    };
    places.into_iter().map(place).collect()
}

fn neighbours(scenario: &Scenario) -> Neighbours {
    let mut neighbours: Neighbours = scenario.nodes.iter().map(|_| Vec::new()).collect();
    for link in &scenario.links {
        neighbours[link.from].push(link.to);
        neighbours[link.to].push(link.from);
    }
    for list in &mut neighbours {
        list.sort_unstable();
        list.dedup();
    }
    neighbours
}

fn centre_and_extent(places: &[Position]) -> (Position, f64) {
    let range = |of: fn(&Position) -> f64| {
        let least = places.iter().map(of).fold(f64::INFINITY, f64::min);
        let most = places.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
        (least, most)
    };
    let ((left, right), (bottom, top)) = (range(|place| place.x), range(|place| place.y));
    let centre = Position { x: (left + right) / 2.0, y: (bottom + top) / 2.0 };
    (centre, (right - left).max(top - bottom))
}

/// Nodes in columns.
fn columns(scenario: &Scenario, neighbours: &Neighbours) -> Vec<Position> {
    let mut column: IdVec<NodeId, Option<i64>> = vec![None; neighbours.len()].into();
    let flows = scenario.flows.iter().map(|flow| (flow.from, flow.to));
    let quic = scenario.quic.iter().map(|flow| (flow.from, flow.to));
    let udp = scenario.udp.iter().map(|source| (source.from, source.to));
    for (from, to) in flows.chain(quic).chain(udp) {
        let path = path(neighbours, from, to);
        let known = |(at, &node): (usize, &NodeId)| Some((at as i64, column[node]?));
        let places: Vec<(i64, i64)> = path.iter().enumerate().filter_map(known).collect();
        // Along a path from right to left, columns count down.
        let step = match (places.first(), places.last()) {
            (Some((_, first)), Some((_, last))) if first > last => -1,
            _ => 1,
        };
        let start = places.first().map_or(0, |&(at, first)| first - step * at);
        for (at, &node) in (0..).zip(&path) {
            column[node].get_or_insert(start + step * at);
        }
    }
    // The others stand one column beside what they are linked to.
    let mut reached: VecDeque<NodeId> =
        column.ids().filter(|&node| column[node].is_some()).collect();
    while let Some(node) = reached.pop_front() {
        for &next in &neighbours[node] {
            if column[next].is_none() {
                column[next] = column[node].map(|at| at + 1);
                reached.push_back(next);
            }
        }
    }
    let column: Vec<i64> = column.into_iter().map(Option::unwrap_or_default).collect();
    let mut size = BTreeMap::new();
    for &at in &column {
        *size.entry(at).or_insert(0_u32) += 1;
    }
    let mut used = BTreeMap::new();
    let place = |&at: &i64| {
        let row = used.entry(at).or_insert(0_u32);
        let above = f64::from(size[&at] - 1) / 2.0 - f64::from(*row);
        *row += 1;
        Position { x: at as f64 * STEP, y: above * STEP }
    };
    column.iter().map(place).collect()
}

/// A path with the fewest links; empty if there is none.
fn path(neighbours: &Neighbours, from: NodeId, to: NodeId) -> Vec<NodeId> {
    let mut before: IdVec<NodeId, _> = vec![None; neighbours.len()].into();
    before[to] = Some(to);
    let mut reached = VecDeque::from([to]);
    while let Some(node) = reached.pop_front() {
        for &next in &neighbours[node] {
            if before[next].is_none() {
                before[next] = Some(node);
                reached.push_back(next);
            }
        }
    }
    if before[from].is_none() {
        return Vec::new();
    }
    let step = |&node: &NodeId| before[node].filter(|&next| next != node);
    std::iter::successors(Some(from), step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> Scenario {
        Scenario::parse("t.toml", text, &[]).unwrap()
    }

    #[test]
    fn a_dumbbell_stands_in_columns_whatever_the_directions_of_its_flows() {
        let text = r#"
            duration = "1 s"
            node = [{ name = "s", count = 2 }, { name = "l" }, { name = "r" },
                    { name = "d", count = 2 }]
            link = [{ between = ["s", "l"], rate = "1 Mbit/s", delay = "1 ms" },
                    { between = ["l", "r"], rate = "1 Mbit/s", delay = "1 ms" },
                    { between = ["r", "d"], rate = "1 Mbit/s", delay = "1 ms" }]
            flow = [{ from = "s0", to = "d0" }, { from = "d1", to = "s1" }]"#;
        let places = places(&scenario(text), &vec![None; 6].into());
        let x: Vec<f64> = places.iter().map(|place| place.x).collect();
        let y: Vec<f64> = places.iter().map(|place| place.y).collect();
        assert_eq!(x, [0.0, 0.0, 100.0, 200.0, 300.0, 300.0]);
        assert_eq!(y, [50.0, -50.0, 0.0, 0.0, 50.0, -50.0]);
    }

    #[test]
    fn a_wired_node_stands_outside_the_cell_beside_its_base_station() {
        let text = r#"
            duration = "1 s"
            node = [{ name = "F" }, { name = "B", position = ["0 m", "0 m"] },
                    { name = "M", position = ["80 m", "0 m"] }]
            link = [{ between = ["F", "B"], rate = "1 Mbit/s", delay = "1 ms" }]
            wlan = [{ name = "cell", stations = ["B", "M"] }]
            flow = [{ from = "F", to = "M" }]"#;
        let stations =
            vec![None, Some(Position { x: 0.0, y: 0.0 }), Some(Position { x: 80.0, y: 0.0 })];
        let places = places(&scenario(text), &stations.into());
        assert_eq!((places[0].x, places[0].y.abs()), (-20.0, 0.0));
    }
}
