//! GPSR (Karp and Kung, MobiCom 2000).

use crate::medium::Medium;
use crate::script::{Did, Script, data};
use airtcp_core::event::DropReason;
use airtcp_core::{Bytes, Duration, Instant, Position, Stream};
use airtcp_routing::gpsr::{Beacon, GpsrConfig, Header, Perimeter, PlanarGraph};
use airtcp_routing::router::{Data, Message as _, Packet};
use airtcp_routing::{Gpsr, NodeId};
use proptest::prelude::*;

type Node = Script<Gpsr>;

const fn at(x: f64, y: f64) -> Position {
    Position { x, y }
}

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn gpsr(config: &GpsrConfig) -> impl Fn(u32) -> Gpsr {
    move |n| Gpsr::new(NodeId(n), config, Stream::new(5, &format!("node/{n}/gpsr")))
}

/// Nodes 0, 1, ... at these positions; node 0 has heard beacons of these others.
fn node_with(config: &GpsrConfig, positions: &[Position], neighbours: &[u32]) -> Node {
    let mut node = Script::new(gpsr(config)(0));
    node.positions = positions.to_vec();
    for &n in neighbours {
        let position = positions[n as usize];
        assert_eq!(node.hears(n, Beacon { position }), []);
    }
    node
}

/// Without positions in data packets.
fn quiet() -> GpsrConfig {
    GpsrConfig { overhear: false, ..GpsrConfig::default() }
}

fn header(data: &Data) -> Header {
    *data.header.as_deref().expect("it has one").downcast_ref().expect("of GPSR")
}

// §2.1: beacons.

#[test]
fn beacons_are_half_an_interval_to_one_and_a_half_apart() {
    let mut node = node_with(&quiet(), &[at(3.0, 4.0)], &[]);
    let did = node.waits::<Beacon>(secs(1500));
    assert!(did.iter().all(|(_, did)| *did == Did::Broadcast(Beacon { position: at(3.0, 4.0) })));
    let gaps: Vec<_> = did.windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect();
    assert!(gaps.iter().all(|&gap| gap >= ms(750) && gap < ms(2250)));
    assert!(gaps.iter().any(|&gap| gap < ms(800)) && gaps.iter().any(|&gap| gap > ms(2200)));
    assert!((950..1050).contains(&did.len()), "{}", did.len());
}

/// 28 bytes: an IP header and two coordinates.
#[test]
fn messages_are_as_long_as_on_the_air() {
    assert_eq!(Beacon { position: at(0.0, 0.0) }.size(), Bytes(28));
    let greedy = Header { destination: at(0.0, 0.0), perimeter: None, sender: None };
    assert_eq!(greedy.size(), Bytes(9));
    let perimeter = Perimeter { entered: at(0.0, 0.0), face: at(0.0, 0.0), first_edge: None };
    let full = Header { perimeter: Some(perimeter), sender: Some(at(0.0, 0.0)), ..greedy };
    assert_eq!(full.size(), Bytes(41));
}

/// After 4.5 * 1.5 s.
#[test]
fn a_silent_neighbour_is_forgotten() {
    let positions = [at(0.0, 0.0), at(100.0, 0.0), at(200.0, 0.0)];
    let mut node = node_with(&quiet(), &positions, &[1]);
    node.later::<Beacon>(ms(6749));
    assert_eq!(node.sends::<Beacon>(data(1, 0, 2)), [Did::Sent(1, 1)]);
    node.later::<Beacon>(ms(1));
    assert_eq!(node.sends::<Beacon>(data(2, 0, 2)), [Did::Dropped(2, DropReason::NoRoute)]);
}

/// §2.3: positions in data packets, seen by all neighbours.
#[test]
fn a_data_packet_serves_as_a_beacon() {
    let positions = [at(0.0, 0.0), at(100.0, 0.0), at(200.0, 0.0)];
    let mut node = node_with(&GpsrConfig::default(), &positions, &[1]);
    node.later::<Beacon>(ms(100));
    let due = airtcp_routing::Router::next_deadline(&node.router);
    node.sends::<Beacon>(data(1, 0, 2));
    assert!(airtcp_routing::Router::next_deadline(&node.router) > due);
    assert_eq!(header(&node.sent[0]).sender, Some(at(0.0, 0.0)));
    // Nodes 0 and 1 hear node 2, which sends to 1 only.
    let mut net =
        Medium::new(3, gpsr(&GpsrConfig { beacon_interval: secs(9), ..GpsrConfig::default() }));
    net.positions = positions.to_vec();
    net.link_within(250.0);
    net.run_for(secs(9));
    net.send(2, 1);
    net.run_for(secs(9 * 4));
    for _ in 0..20 {
        net.send(2, 1);
        net.run_for(secs(1));
    }
    let before = net.control.len();
    for _ in 0..20 {
        net.send(2, 1);
        net.run_for(secs(1));
    }
    assert!(net.control[before..].iter().all(|sent| sent.from != 2));
    let id = net.send(0, 2);
    net.run_for(secs(1));
    assert_eq!(net.paths[&id], [0]);
}

// §2.1: greedy forwarding.

#[test]
fn a_packet_goes_to_the_neighbour_nearest_to_the_destination() {
    let positions =
        [at(0.0, 0.0), at(100.0, 0.0), at(150.0, 150.0), at(-50.0, 0.0), at(400.0, 0.0)];
    let mut node = node_with(&quiet(), &positions, &[1, 2, 3]);
    assert_eq!(node.sends::<Beacon>(data(1, 0, 4)), [Did::Sent(1, 2)]);
    assert_eq!(header(&node.sent[0]).perimeter, None);
    assert_eq!(header(&node.sent[0]).destination, at(400.0, 0.0));
}

#[test]
fn a_neighbour_that_is_the_destination_gets_the_packet_wherever_it_was() {
    let mut positions = vec![at(0.0, 0.0), at(100.0, 0.0), at(120.0, 0.0)];
    let mut node = node_with(&quiet(), &positions, &[1, 2]);
    positions[1] = at(-900.0, 0.0);
    node.positions = positions;
    assert_eq!(node.sends::<Beacon>(data(1, 0, 1)), [Did::Sent(1, 1)]);
}

/// A data packet without positions needs no new header on its way.
#[test]
fn the_destination_is_where_the_source_saw_it() {
    let positions = [at(0.0, 0.0), at(100.0, 0.0), at(0.0, 100.0), at(400.0, 0.0)];
    let mut node = node_with(&quiet(), &positions, &[1, 2]);
    node.sends::<Beacon>(data(1, 0, 3));
    let on_its_way = Data { source: NodeId(9), ..node.sent[0].clone() };
    node.positions[3] = at(0.0, 400.0);
    assert_eq!(node.carries::<Beacon>(2, on_its_way), [Did::Sent(1, 1)]);
}

#[test]
fn a_destination_without_a_position_has_no_route() {
    let mut node = node_with(&quiet(), &[at(0.0, 0.0), at(100.0, 0.0)], &[1]);
    assert_eq!(node.sends::<Beacon>(data(1, 0, 7)), [Did::Dropped(1, DropReason::NoRoute)]);
}

// §2.2, §2.3: perimeter mode.

/// Around a void, the paper's figure 2: node 0 is nearer to node 3 than both its neighbours. The
/// packet goes by the right-hand rule, counterclockwise from the line to the destination.
fn void() -> Vec<Position> {
    vec![
        at(0.0, 0.0),      // 0, the source
        at(-60.0, 180.0),  // 1, the way around
        at(120.0, 300.0),  // 2
        at(330.0, 250.0),  // 3
        at(500.0, 110.0),  // 4, the destination's neighbour
        at(500.0, -60.0),  // 5, the destination
        at(-60.0, -180.0), // 6, a dead end
    ]
}

#[test]
fn a_packet_goes_around_a_void_and_on_greedily() {
    let mut net = Medium::new(7, gpsr(&GpsrConfig::default()));
    net.positions = void();
    net.link_within(250.0);
    net.run_for(secs(5));
    let id = net.send(0, 5);
    net.run_for(secs(1));
    assert_eq!(net.paths[&id], [0, 1, 2, 3, 4]);
    assert_eq!(net.delivered.len(), 1);
}

#[test]
fn perimeter_mode_begins_counterclockwise_from_the_line_to_the_destination() {
    let mut node = node_with(&quiet(), &void(), &[1, 6]);
    assert_eq!(node.sends::<Beacon>(data(1, 0, 5)), [Did::Sent(1, 1)]);
    let first_edge = Some((NodeId(0), NodeId(1)));
    let expected = Perimeter { entered: at(0.0, 0.0), face: at(0.0, 0.0), first_edge };
    assert_eq!(header(&node.sent[0]).perimeter, Some(expected));
}

#[test]
fn perimeter_mode_ends_nearer_to_the_destination() {
    let positions = [at(0.0, 0.0), at(-100.0, 10.0), at(90.0, 0.0), at(500.0, 0.0)];
    let mut node = node_with(&quiet(), &positions, &[1, 2]);
    let perimeter = |x| {
        let entered = at(x, 0.0);
        Some(Perimeter { entered, face: entered, first_edge: Some((NodeId(8), NodeId(9))) })
    };
    let mut came = |x| {
        let header = Header { destination: at(500.0, 0.0), perimeter: perimeter(x), sender: None };
        let packet = Data { header: Some(std::sync::Arc::new(header)), ..data(1, 8, 3) };
        node.carries::<Beacon>(2, packet);
        let last = node.sent.len() - 1;
        self::header(&node.sent[last]).perimeter.is_some()
    };
    assert!(came(0.0));
    assert!(!came(-1.0));
}

/// The edge to 2 is the next of the face, but crosses the line to the destination.
#[test]
fn a_packet_changes_to_the_next_face_at_an_edge_across_the_line() {
    let positions = [
        at(-220.0, 100.0),
        at(-300.0, 150.0),
        at(-150.0, -200.0),
        at(-120.0, 120.0),
        at(500.0, 0.0),
    ];
    let mut node = node_with(&quiet(), &positions, &[1, 2, 3]);
    let entered = at(-200.0, 0.0);
    let perimeter = Perimeter { entered, face: entered, first_edge: Some((NodeId(8), NodeId(9))) };
    let header = Header { destination: positions[4], perimeter: Some(perimeter), sender: None };
    let packet = Data { header: Some(std::sync::Arc::new(header)), ..data(1, 8, 4) };
    assert_eq!(node.carries::<Beacon>(1, packet), [Did::Sent(1, 3)]);
    let after = self::header(&node.sent[0]).perimeter.expect("still on a face");
    assert_eq!(after.first_edge, Some((NodeId(0), NodeId(3))));
    assert!(after.face.distance(at(-590.0 / 3.0, 0.0)) < 1e-9, "{:?}", after.face);
    assert_eq!(after.entered, entered);
}

/// The last node of a dead end sends the packet back; after the tour of the face it is dropped.
#[test]
fn an_unreachable_destination_ends_after_the_tour_of_the_face() {
    let mut net = Medium::new(7, gpsr(&GpsrConfig::default()));
    net.positions = void();
    net.positions[4] = at(2000.0, 0.0);
    net.link_within(250.0);
    net.run_for(secs(5));
    let id = net.send(0, 5);
    net.run_for(secs(1));
    // Node 3 is nearer than node 0: greedy again, and a face of its own.
    assert_eq!(net.paths[&id], [0, 1, 2, 3, 2, 1, 0, 6, 0, 1, 2]);
    assert_eq!(net.dropped, [(3, id, DropReason::NoRoute)]);
}

/// The neighbours see the same edges: the face of each is that of the other.
#[test]
fn a_planar_graph_leaves_out_what_a_witness_covers() {
    // 1 is the local maximum's only far neighbour; 2 lies in the circle above the edge to 1, but
    // not nearer to both ends than they are to each other.
    let witness = at(60.0, 70.0);
    let positions = [at(0.0, 0.0), at(0.0, 200.0), witness, at(100.0, -900.0)];
    let first = |planar_graph, second: Position| {
        let mut positions = positions;
        positions[2] = second;
        let mut node = node_with(&GpsrConfig { planar_graph, ..quiet() }, &positions, &[1, 2]);
        match node.sends::<Beacon>(data(1, 0, 3)).as_slice() {
            [Did::Sent(1, next)] => *next,
            other => panic!("{other:?}"),
        }
    };
    // Counterclockwise from south comes the east: 2, then 1 in the north.
    assert_eq!(first(PlanarGraph::Gabriel, at(-60.0, 70.0)), 2);
    assert_eq!(first(PlanarGraph::Gabriel, at(-110.0, 100.0)), 1);
    // In the lens of the relative neighbourhood, outside of the circle.
    assert_eq!(first(PlanarGraph::RelativeNeighbourhood, at(-110.0, 100.0)), 2);
    assert_eq!(first(PlanarGraph::RelativeNeighbourhood, at(-190.0, 100.0)), 1);
}

// §2.3: broken links.

#[test]
fn packets_of_a_lost_neighbour_go_to_another() {
    let positions = [at(0.0, 0.0), at(200.0, 0.0), at(150.0, 0.0), at(400.0, 0.0)];
    let packets = || (1..3).map(|id| Packet::Data(data(id, 9, 3))).collect();
    let mut node = node_with(&quiet(), &positions, &[1, 2]);
    assert_eq!(node.fails::<Beacon>(1, packets()), [Did::Sent(1, 2), Did::Sent(2, 2)]);
    assert_eq!(node.sends::<Beacon>(data(3, 0, 3)), [Did::Sent(3, 2)]);
    let config = GpsrConfig { resend_returned: false, ..quiet() };
    let mut node = node_with(&config, &positions, &[1, 2]);
    let dropped = |id| Did::Dropped(id, DropReason::Retries);
    assert_eq!(node.fails::<Beacon>(1, packets()), [dropped(1), dropped(2)]);
    assert_eq!(node.sends::<Beacon>(data(3, 0, 3)), [Did::Sent(3, 2)]);
}

#[test]
fn without_link_feedback_only_the_packet_given_up_is_lost() {
    let positions = [at(0.0, 0.0), at(200.0, 0.0), at(150.0, 0.0), at(400.0, 0.0)];
    let config = GpsrConfig { link_feedback: false, ..quiet() };
    let mut node = node_with(&config, &positions, &[1, 2]);
    let packets = (1..3).map(|id| Packet::Data(data(id, 9, 3))).collect();
    let dropped = Did::Dropped(1, DropReason::Retries);
    assert_eq!(node.fails::<Beacon>(1, packets), [dropped, Did::Sent(2, 1)]);
    assert_eq!(node.sends::<Beacon>(data(3, 0, 3)), [Did::Sent(3, 1)]);
}

/// In perimeter mode the next edge is the one behind the lost one, and the tour begins there.
#[test]
fn a_packet_that_lost_its_first_edge_takes_the_next_one() {
    let mut node = node_with(&quiet(), &void(), &[1, 6]);
    node.sends::<Beacon>(data(1, 0, 5));
    let returned = Packet::Data(node.sent[0].clone());
    assert_eq!(node.fails::<Beacon>(1, vec![returned]), [Did::Sent(1, 6)]);
    let perimeter = header(&node.sent[1]).perimeter.expect("still around the void");
    assert_eq!(perimeter.first_edge, Some((NodeId(0), NodeId(6))));
    // Back from there, the tour is over.
    let back = node.sent[1].clone();
    assert_eq!(node.carries::<Beacon>(6, back), [Did::Dropped(1, DropReason::NoRoute)]);
}

/// A node off the plane, such as a wired host, sends no beacons.
#[test]
fn a_node_without_a_position_is_silent() {
    let mut node = node_with(&quiet(), &[], &[]);
    assert_eq!(node.later::<Beacon>(secs(20)), []);
    assert!(node.now > Instant::ZERO);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// In static unit-disk graphs a packet arrives if and only if there is a path. A planar graph
    /// that lost the connection, or a face taken the wrong way, would fail it. (Larger networks
    /// have faces longer than any TTL.)
    #[test]
    fn a_packet_arrives_if_and_only_if_there_is_a_path(
        seed in 0..u64::MAX,
        nodes in 2..45u32,
        degree in 3.0..7.0f64,
        relative in any::<bool>(),
    ) {
        let mut chance = Stream::new(seed, "test");
        let planar_graph =
            if relative { PlanarGraph::RelativeNeighbourhood } else { PlanarGraph::Gabriel };
        let mut net = Medium::new(nodes, gpsr(&GpsrConfig { planar_graph, ..GpsrConfig::default() }));
        net.ttl = u8::MAX;
        // A square in which a circle of radius 250 m holds so many nodes on average.
        let side = 250.0 * (std::f64::consts::PI * f64::from(nodes) / degree).sqrt();
        net.scatter(&mut chance, (side, side));
        net.run_for(secs(4));
        for to in 1..nodes {
            net.send(0, to);
        }
        net.run_for(secs(1));
        let mut delivered: Vec<u32> = net.delivered.iter().map(|(_, id)| *id).collect();
        delivered.sort_unstable();
        let ids: Vec<u32> =
            (1..nodes).filter(|&to| net.connected(0, to)).map(|to| to - 1).collect();
        prop_assert_eq!(delivered, ids);
    }
}
