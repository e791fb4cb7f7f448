//! The settings of DSR: the parameters of RFC 4728 §9.

use crate::config;
use airtcp_core::Duration;
use airtcp_settings::schema::{Kind, POSITIVE_TIME};
use airtcp_settings::{choice, settings};

/// A number of hops that fits the TTL of an IP packet.
const HOPS: Kind = Kind::Integer { min: 1, max: 255 };

settings! {
    /// The settings of DSR.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DsrConfig {
        /// The TTL of a route request to the whole network.
        #[kind = HOPS]
        #[source = "RFC 4728 §9, DiscoveryHopLimit"]
        pub discovery_hop_limit: u16 = 255,
        /// A search begins with a request to the neighbours alone.
        #[source = "RFC 4728 §3.3.4"]
        pub ask_neighbours_first: bool = true,
        /// Time for which a node waits for replies of its neighbours.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 4728 §9, NonpropRequestTimeout"]
        pub nonprop_request_timeout: Duration = Duration::from_millis(30),
        /// The wait after the first request to the whole network; it doubles with each.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 4728 §9, RequestPeriod"]
        pub request_period: Duration = Duration::from_millis(500),
        /// The longest wait between two requests.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 4728 §9, MaxRequestPeriod"]
        pub max_request_period: Duration = Duration::from_secs(10),
        /// Number of repetitions of a request to the whole network.
        #[kind = Kind::Integer { min: 0, max: 1000 }]
        #[source = "RFC 4728 §9, MaxRequestRexmt"]
        pub max_request_rexmt: u16 = 16,
        /// The largest random delay before a node relays a broadcast, because neighbours that
        /// relay at once collide.
        #[source = "RFC 4728 §9, BroadcastJitter"]
        pub broadcast_jitter: Duration = Duration::from_millis(10),
        /// Time for which a packet waits for a route.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 4728 §9, SendBufferTimeout"]
        pub send_buffer_timeout: Duration = Duration::from_secs(30),
        /// Packets that wait for routes at a node; the oldest makes room for a new one.
        #[kind = Kind::Integer { min: 1, max: 1_000_000 }]
        pub send_buffer_packets: usize = 64,
        /// Time for which a route that is not used stays in the cache; `forever`: until it breaks
        /// or makes room.
        #[kind = Kind::WordOr("forever", &POSITIVE_TIME)]
        #[source = "RFC 4728 §9, RouteCacheTimeout"]
        pub route_cache_timeout: Option<Duration> = Some(Duration::from_secs(300)),
        /// Routes in the cache of a node; the one unused for longest makes room for a new one.
        #[kind = Kind::Integer { min: 1, max: 1_000_000 }]
        pub route_cache_paths: usize = 64,
        /// Nodes answer requests for other nodes from their caches.
        #[source = "RFC 4728 §3.3.2"]
        pub cached_replies: bool = true,
        /// The delay of such an answer for each hop of its route, so that shorter routes come
        /// first.
        #[source = "RFC 4728 §3.3.3, H"]
        pub cached_reply_delay: Duration = Duration::from_millis(2),
        /// Nodes learn routes and errors from packets between others, and offer shorter routes to
        /// their sources.
        #[source = "RFC 4728 §3.3.1, §3.4.3"]
        pub overhear: bool = true,
        /// The least time between two such offers for the same packets.
        #[source = "RFC 4728 §9, GratReplyHoldoff"]
        pub grat_reply_holdoff: Duration = Duration::from_secs(1),
        /// Number of times that nodes may send a packet on by a route of their own after a broken
        /// link.
        #[kind = Kind::Integer { min: 0, max: 15 }]
        #[source = "RFC 4728 §9, MAX_SALVAGE_COUNT"]
        pub max_salvage_count: u16 = 15,
        /// The first request after a route error spreads the error to all nodes.
        #[source = "RFC 4728 §3.4.4"]
        pub spread_errors: bool = true,
    }
}

choice! {
    /// A named set of choices.
    pub enum Preset {
        /// RFC 4728
        Rfc = "rfc",
        /// the parameters of ns-2.35
        Ns2 = "ns2",
    }
}

impl Preset {
    /// All presets, in the order of the documentation.
    pub const ALL: [Self; 2] = [Self::Rfc, Self::Ns2];
}

impl config::Preset for Preset {
    type Config = DsrConfig;
    const DEFAULT: &'static str = Self::Rfc.word();

    fn config(self) -> DsrConfig {
        match self {
            Self::Rfc => DsrConfig::default(),
            Self::Ns2 => ns2(),
        }
    }
}

/// The constants of ns-2.35 (`dsr/`): requests reach 16 hops, cached routes never expire, and
/// answers from caches are not delayed. ns-2's two caches (30 routes of its own, 64 overheard) are
/// one here.
pub fn ns2() -> DsrConfig {
    DsrConfig {
        discovery_hop_limit: 16,
        route_cache_timeout: None,
        route_cache_paths: 94,
        cached_reply_delay: Duration::ZERO,
        ..DsrConfig::default()
    }
}
