//! The settings of AODV: the parameters of RFC 3561 §10, and what the RFC leaves to the node.

use crate::config;
use airtcp_core::Duration;
use airtcp_settings::schema::{Kind, POSITIVE_TIME};
use airtcp_settings::{alternatives, choice, settings};

/// A number of hops that fits the TTL of an IP packet.
const HOPS: Kind = Kind::Integer { min: 1, max: 255 };
/// Messages a second.
const RATE: Kind = Kind::Integer { min: 1, max: UNLIMITED as u64 };
const UNLIMITED: usize = 10_000;

settings! {
    /// The settings of AODV. The derived parameters of RFC 3561 §10 follow from these by its
    /// formulas.
    #[derive(Clone, Debug, PartialEq)]
    pub struct AodvConfig {
        /// Time for which a route stays valid after its last use.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 3561 §10, ACTIVE_ROUTE_TIMEOUT"]
        pub active_route_timeout: Duration = Duration::from_secs(3),
        /// Data also renews the routes back to its source and to the neighbours it comes from and
        /// goes to. ns-2: only the route to its destination.
        #[source = "RFC 3561 §6.2"]
        pub renew_reverse: bool = true,
        /// The lifetime that a destination gives to routes to itself.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 3561 §10, MY_ROUTE_TIMEOUT"]
        pub my_route_timeout: Duration = Duration::from_secs(6),
        /// Time for which an invalid route is remembered. Loops are excluded only if this is longer
        /// than the two times above.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 3561 §10, DELETE_PERIOD"]
        pub delete_period: Duration = Duration::from_secs(15),
        /// A conservative estimate of the time that a packet needs for one hop.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 3561 §10, NODE_TRAVERSAL_TIME"]
        pub node_traversal_time: Duration = Duration::from_millis(40),
        /// The largest number of hops between two nodes, and the TTL of a search of the whole
        /// network.
        #[kind = HOPS]
        #[source = "RFC 3561 §10, NET_DIAMETER"]
        pub net_diameter: u16 = 35,
        /// The TTL of the first route request.
        #[kind = HOPS]
        #[source = "RFC 3561 §10, TTL_START"]
        pub ttl_start: u16 = 1,
        /// By how much the TTL of a request exceeds that of the one before, or the last known
        /// distance.
        #[kind = HOPS]
        #[source = "RFC 3561 §10, TTL_INCREMENT"]
        pub ttl_increment: u16 = 2,
        /// The largest TTL before a search of the whole network.
        #[kind = HOPS]
        #[source = "RFC 3561 §10, TTL_THRESHOLD"]
        pub ttl_threshold: u16 = 7,
        /// A search goes on from the TTL at which the one before it ended without an answer, and
        /// asks the whole network as soon as that, or the length of the route last lost, reaches
        /// `ttl-threshold` (ns-2).
        pub remember_rings: bool = false,
        /// Number of hops whose traversal time is added to the wait for a reply from a ring.
        #[kind = Kind::Integer { min: 0, max: 255 }]
        #[source = "RFC 3561 §10, TIMEOUT_BUFFER"]
        pub timeout_buffer: u16 = 2,
        /// Number of repetitions of a search of the whole network.
        #[kind = Kind::Integer { min: 0, max: 20 }]
        #[source = "RFC 3561 §10, RREQ_RETRIES"]
        pub rreq_retries: u16 = 2,
        /// Wait for the reply to a request.
        #[source = "RFC 3561 §6.3, §6.4"]
        pub reply_wait: ReplyWait = ReplyWait::Estimated,
        /// Time after a failed search during which no other for the same destination starts;
        /// packets wait.
        #[source = "ns-2, MAX_RREQ_TIMEOUT"]
        pub rreq_pause: Duration = Duration::ZERO,
        /// The largest number of route requests that a node originates in a second.
        #[kind = RATE]
        #[source = "RFC 3561 §10, RREQ_RATELIMIT"]
        pub rreq_ratelimit: usize = 10,
        /// The largest number of route errors that a node sends in a second.
        #[kind = RATE]
        #[source = "RFC 3561 §10, RERR_RATELIMIT"]
        pub rerr_ratelimit: usize = 10,
        /// When a neighbour reports a broken route, all packets that wait to be sent to it are
        /// dropped, whatever their destination (ns-2).
        pub errors_clear_queue: bool = false,
        /// Who hears of broken routes.
        #[source = "RFC 3561 §6.11"]
        pub errors_to: ErrorsTo = ErrorsTo::Precursors,
        /// Time for which a node ignores the requests of a neighbour that a reply did not reach:
        /// the link may work in the other direction only.
        #[source = "RFC 3561 §10, BLACKLIST_TIMEOUT"]
        pub blacklist_timeout: Duration = Duration::from_millis(5600),
        /// The largest random delay before a node relays a broadcast, because neighbours that
        /// relay at once collide.
        pub broadcast_jitter: Duration = Duration::from_millis(10),
        /// Packets that wait for routes at a node; the oldest makes room for a new one.
        #[kind = Kind::Integer { min: 1, max: 1_000_000 }]
        pub buffer_packets: usize = 64,
        /// Time for which a packet waits for a route.
        #[kind = POSITIVE_TIME]
        pub buffer_timeout: Duration = Duration::from_secs(30),
        /// The time between packets that leave together once there is a route. ns-2: 10 ms.
        pub buffer_spacing: Duration = Duration::ZERO,
        /// A message also makes a route to the neighbour that sent it, besides those it is about.
        /// In ns-2 it does not.
        #[source = "RFC 3561 §6.5, §6.7"]
        pub neighbour_routes: bool = true,
        /// Detection of neighbours that are gone.
        #[keys_of(LinkDetection)]
        pub link_detection: LinkDetection = LinkDetection::LinkLayer,
        /// A link also counts as broken when the packet that the link layer gave up is one of
        /// AODV's own. In ns-2 it does not: the message is lost, and nothing else happens.
        pub messages_detect: bool = true,
        /// The node that looks for another way itself when a route breaks.
        #[keys_of(LocalRepair)]
        pub local_repair: LocalRepair = LocalRepair::NearDestination { max_repair_ttl: 10 },
        /// The reserve in the TTL of a repair's route request.
        #[kind = HOPS]
        #[source = "RFC 3561 §10, LOCAL_ADD_TTL"]
        pub local_add_ttl: u16 = 2,
        /// Nodes that know a route answer requests, too; otherwise the destination alone does.
        #[source = "RFC 3561 §6.6.2"]
        pub intermediate_replies: bool = true,
        /// A destination increments its sequence number before each reply (ns-2), instead of
        /// raising it to that of the request if need be.
        #[source = "RFC 3561 §6.6.1"]
        pub fresh_replies: bool = false,
        /// A node that answers also sends the destination a route to the originator.
        #[source = "RFC 3561 §6.6.3"]
        pub gratuitous_replies: bool = false,
        /// A source keeps its own packets that a broken link returned, for the next route. The RFC
        /// does not say; ns-2 and GloMoSim drop them. Kept, they leave in one burst, which breaks
        /// links again where several hops compete for the medium.
        pub keep_returned: bool = false,
    }
}

alternatives! {
    /// The detection of neighbours that are gone.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[choice("link-detection", "Detection of neighbours that are gone.")]
    #[absent(LinkDetection::LinkLayer)]
    #[source = "RFC 3561 §6.10"]
    pub enum LinkDetection {
        /// the link layer gives up on a packet
        "link-layer" => LinkLayer,
        /// HELLO messages stay away
        "hello" => Hello {
            /// The time between the HELLO messages of a node with active routes.
            #[kind = POSITIVE_TIME]
            #[source = "RFC 3561 §10, HELLO_INTERVAL"]
            hello_interval: Duration = Duration::from_secs(1),
            /// Number of such intervals without a packet after which a neighbour counts as gone.
            #[kind = HOPS]
            #[source = "RFC 3561 §10, ALLOWED_HELLO_LOSS"]
            allowed_hello_loss: u16 = 2,
        },
    }
}

alternatives! {
    /// The node that looks for another way itself when a route breaks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[choice("local-repair", "The node that looks for another way itself when a route breaks.")]
    #[absent(LocalRepair::NearDestination { max_repair_ttl: 10 })]
    #[source = "RFC 3561 §6.12"]
    pub enum LocalRepair {
        /// none; a source starts a new search
        "off" => Off,
        /// the node in front of the broken link, if near the destination
        "near-destination" => NearDestination {
            /// The largest distance to the destination at which a node repairs a route, in hops.
            #[kind = HOPS]
            #[source = "RFC 3561 §10, MAX_REPAIR_TTL"]
            max_repair_ttl: u16 = 10,
        },
        /// the node in front of the broken link, if nearer to the destination than to the source,
        /// as ns-2 does it: the packet that was given up and all later ones wait until a newer or
        /// shorter route is known, but the broken one is not reported, and still answers requests.
        /// Packets that wait for the same neighbour, and other routes over it, are left to the link
        "second-half" => SecondHalf,
    }
}

choice! {
    /// The wait for the reply to a request.
    pub enum ReplyWait {
        /// by `node-traversal-time`, and twice as long with each repeated search of the whole
        /// network
        Estimated = "estimated",
        /// by the mean latency of the last three searches for the destination; by one such time
        /// more with each repeated search, at most `rreq-pause`. That it has passed is noticed at
        /// the node's next packet for the destination or the next half second (ns-2)
        Measured = "measured",
    }
}

choice! {
    /// Who hears of broken routes.
    pub enum ErrorsTo {
        /// the neighbours that use a route; if that is one, by unicast
        Precursors = "precursors",
        /// every neighbour, even if none is known to use the route; only errors of others are
        /// passed on no further than routes are used (ns-2)
        Everyone = "everyone",
    }
}

choice! {
    /// A named set of choices.
    pub enum Preset {
        /// RFC 3561
        Rfc = "rfc",
        /// the parameters of ns-2.35
        Ns2 = "ns2",
        /// the parameters of GloMoSim 2.03
        Glomosim = "glomosim",
    }
}

impl Preset {
    /// All presets, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Rfc, Self::Ns2, Self::Glomosim];
}

impl config::Preset for Preset {
    type Config = AodvConfig;
    const DEFAULT: &'static str = Self::Rfc.word();

    fn config(self) -> AodvConfig {
        match self {
            Self::Rfc => AodvConfig::default(),
            Self::Ns2 => ns2(),
            Self::Glomosim => glomosim(),
        }
    }
}

/// The behaviour of ns-2.35 (`aodv/aodv.cc`), which forgets no route, has no blacklist and limits
/// no rates. Its searches for a destination cover the whole network until a route to it was lost
/// (TTL_START, 5, is never used), since a route that never was counts as infinitely long. Not
/// followed: its messages have no UDP header, and the delay after which it gives up a repair is an
/// absolute time.
pub fn ns2() -> AodvConfig {
    AodvConfig {
        active_route_timeout: Duration::from_secs(10),
        renew_reverse: false,
        my_route_timeout: Duration::from_secs(10),
        delete_period: Duration::from_secs(100),
        node_traversal_time: Duration::from_millis(30),
        net_diameter: 30,
        ttl_start: 30,
        remember_rings: true,
        timeout_buffer: 0,
        rreq_retries: 3,
        reply_wait: ReplyWait::Measured,
        rreq_pause: Duration::from_secs(10),
        rreq_ratelimit: UNLIMITED,
        rerr_ratelimit: UNLIMITED,
        buffer_spacing: Duration::from_millis(10),
        errors_clear_queue: true,
        errors_to: ErrorsTo::Everyone,
        blacklist_timeout: Duration::ZERO,
        neighbour_routes: false,
        messages_detect: false,
        local_repair: LocalRepair::SecondHalf,
        fresh_replies: true,
        ..AodvConfig::default()
    }
}

/// The constants of GloMoSim 2.03 (`aodv.h`), which knows no local repair and no blacklist.
pub fn glomosim() -> AodvConfig {
    AodvConfig {
        active_route_timeout: Duration::from_secs(10),
        my_route_timeout: Duration::from_secs(20),
        delete_period: Duration::from_secs(100),
        timeout_buffer: 0,
        blacklist_timeout: Duration::ZERO,
        local_repair: LocalRepair::Off,
        ..AodvConfig::default()
    }
}

impl AodvConfig {
    /// NET_TRAVERSAL_TIME: 2 NODE_TRAVERSAL_TIME NET_DIAMETER (RFC 3561 §10).
    pub fn net_traversal_time(&self) -> Duration {
        self.node_traversal_time * 2 * u64::from(self.net_diameter)
    }

    /// RING_TRAVERSAL_TIME: 2 NODE_TRAVERSAL_TIME (`ttl` + TIMEOUT_BUFFER) (RFC 3561 §10).
    pub fn ring_traversal_time(&self, ttl: u16) -> Duration {
        self.node_traversal_time * 2 * u64::from(ttl + self.timeout_buffer)
    }

    /// PATH_DISCOVERY_TIME: 2 NET_TRAVERSAL_TIME (RFC 3561 §10).
    pub fn path_discovery_time(&self) -> Duration {
        self.net_traversal_time() * 2
    }
}
