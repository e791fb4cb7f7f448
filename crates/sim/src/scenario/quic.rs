//! `transport = "quic"` of a `[[flow]]`: QUIC connections and their settings.

use super::flow::{End, Marks};
use super::node::NodeId;
use airtcp_core::{Bytes, Duration, Instant};
use airtcp_settings::schema::{Kind, POSITIVE_TIME, at_least};
use airtcp_settings::{choice, settings};
use std::sync::Arc;

choice! {
    /// The transport protocol of a flow.
    #[default(Tcp)]
    pub enum Transport {
        /// TCP
        Tcp = "tcp",
        /// QUIC (RFC 9000), by the library quinn (docs/quic.md)
        Quic = "quic",
    }
}

/// A QUIC connection, and the transfer on it. Data flows `from` → `to`.
#[derive(Clone, Debug, PartialEq)]
pub struct QuicSpec {
    /// Unique name, also among TCP flows; also names its random streams ("flow/get/quic/sender").
    pub name: String,
    /// Data sender.
    pub from: NodeId,
    /// Data receiver.
    pub to: NodeId,
    /// The earliest time at which the client opens the connection.
    pub start: Instant,
    /// A uniform random delay up to this is added (stream "flow/get/start").
    pub jitter: Duration,
    /// Bytes that the sender writes to one stream; `None`: without end.
    pub bytes: Option<Bytes>,
    /// The end that is the client.
    pub opens: End,
    /// Settings of both ends; the flows of a table share them.
    pub config: Arc<QuicConfig>,
    /// The DSCPs of its packets.
    pub marks: Marks,
}

airtcp_core::ids! {
    /// A QUIC flow, by its index in [`Scenario::quic`](super::Scenario::quic).
    pub struct QuicId;
}

choice! {
    /// Congestion control of a QUIC sender.
    #[default(Cubic)]
    pub enum QuicCongestion {
        /// CUBIC (RFC 8312), quinn's default
        Cubic = "cubic",
        /// NewReno as in RFC 9002 §7
        NewReno = "new-reno",
    }
}

/// QUIC writes it in milliseconds (RFC 9000 §18.2).
const SHORTEST_IDLE_TIMEOUT: Duration = Duration::from_millis(1);

/// A flow-control window, of a packet at the least.
const WINDOW: Kind = Kind::Size { min: 1_200, max: 1 << 30 };

settings! {
    /// Settings of both ends of a QUIC flow.
    #[derive(Clone, Debug, PartialEq)]
    #[table("flow.quic")]
    pub struct QuicConfig {
        /// Congestion control. Quinn's BBR is left out: it draws random numbers from the operating
        /// system, so no run could be repeated.
        #[source = "quinn-proto 0.11"]
        pub congestion: QuicCongestion = QuicCongestion::Cubic,
        /// Time without packets from the peer after which the connection is closed.
        #[kind = at_least(SHORTEST_IDLE_TIMEOUT)]
        #[source = "RFC 9308 §3.2"]
        pub idle_timeout: Duration = Duration::from_secs(30),
        /// Round-trip time assumed before the first sample.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 9002 §6.2.2"]
        pub initial_rtt: Duration = Duration::from_millis(333),
        /// Bytes of the stream that the receiver accepts beyond those it has read. The sender
        /// buffers up to eight times as many.
        #[kind = WINDOW]
        #[source = "quinn-proto 0.11"]
        pub receive_window: Bytes = Bytes(1_250_000),
        /// Time without packets to the peer after which an end sends a PING.
        #[kind = POSITIVE_TIME]
        #[absent = "none is sent"]
        #[source = "RFC 9308 §3.2"]
        pub keep_alive_interval: Option<Duration> = None,
        /// Interval at which a NAT at the client gives it another port. What the server sends to
        /// the old one is lost; it learns the new one from the client's next packet, and migrates.
        #[kind = POSITIVE_TIME]
        #[absent = "the port stays"]
        #[source = "RFC 9000 §9.3.3"]
        pub nat_rebind_interval: Option<Duration> = None,
    }
}
