//! Addresses in the simulator, and the node or flow that an address belongs to.
//!
//! Node `i` is 10.0.0.0 + `i` + 1. The ports of flow `k` name the flow, so that a segment finds its
//! socket by arithmetic: the sender has 57,001 + `k` mod 8,500, the receiver 49,152 + `k` div
//! 8,500. These are dynamic ports (RFC 6335 §6), so no Wireshark dissector takes our payload for
//! its own protocol.

use airtcp_core::{Addr, Flow};
use airtcp_routing::NodeId;
use std::net::{IpAddr, Ipv4Addr};

const FIRST_NODE: u32 = u32::from_be_bytes([10, 0, 0, 1]);
const FIRST_SENDER_PORT: u16 = 57_001;
const SENDER_PORTS: u32 = 8_500;
const FIRST_RECEIVER_PORT: u16 = 49_152;

/// The number of flows and connections that ports tell apart.
pub const FLOWS: u32 = SENDER_PORTS * (FIRST_SENDER_PORT - FIRST_RECEIVER_PORT) as u32;

/// The address of a node.
pub fn of_node(node: NodeId) -> IpAddr {
    v4_of_node(node).into()
}

/// The same as an IPv4 address, which it is.
pub fn v4_of_node(node: NodeId) -> Ipv4Addr {
    Ipv4Addr::from(FIRST_NODE + node.0)
}

/// The node with this address, if there can be one.
pub fn node(ip: IpAddr) -> Option<NodeId> {
    let IpAddr::V4(ip) = ip else { return None };
    u32::from(ip).checked_sub(FIRST_NODE).map(NodeId)
}

/// The 4-tuple of flow number `index` from `from` to `to`, in the direction of the data.
pub fn of_flow(index: u32, from: NodeId, to: NodeId) -> Flow {
    let sender = FIRST_SENDER_PORT + (index % SENDER_PORTS) as u16;
    let receiver = FIRST_RECEIVER_PORT + (index / SENDER_PORTS) as u16;
    Flow { src: Addr::new(of_node(from), sender), dst: Addr::new(of_node(to), receiver) }
}

/// The end of a flow that a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The data sender of this flow.
    Sender(u32),
    /// The data receiver of this flow.
    Receiver(u32),
}

/// The flow and the end that a segment is for, by its ports.
pub fn destination(flow: &Flow) -> Option<Destination> {
    let index = |sender: u16, receiver: u16| {
        let block = u32::from(receiver.checked_sub(FIRST_RECEIVER_PORT)?);
        Some(block * SENDER_PORTS + u32::from(sender - FIRST_SENDER_PORT))
    };
    if flow.src.port >= FIRST_SENDER_PORT {
        index(flow.src.port, flow.dst.port).map(Destination::Receiver)
    } else if flow.dst.port >= FIRST_SENDER_PORT {
        index(flow.dst.port, flow.src.port).map(Destination::Sender)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_count_from_10_0_0_1() {
        assert_eq!(of_node(NodeId(0)).to_string(), "10.0.0.1");
        assert_eq!(of_node(NodeId(255)).to_string(), "10.0.1.0");
        assert_eq!(of_node(NodeId(19_999)).to_string(), "10.0.78.32");
        assert_eq!(node(of_node(NodeId(19_999))), Some(NodeId(19_999)));
    }

    #[test]
    fn a_segment_finds_its_flow_by_its_ports() {
        for k in [0, 1, 8_499, 8_500, 123_456] {
            let flow = of_flow(k, NodeId(3), NodeId(4));
            assert_eq!(destination(&flow), Some(Destination::Receiver(k)));
            assert_eq!(destination(&flow.reversed()), Some(Destination::Sender(k)));
        }
        assert_eq!(destination(&Flow::default()), None);
    }
}
