//! The exchangeable parts of an endpoint.

use crate::ack::{self, AckPolicy};
use crate::config::TcpConfig;
use crate::congestion::{self, CongestionControl, Controls};
use crate::route::{self, RoutePolicy};
use crate::rto::{self, RtoPolicy};

/// One strategy of each kind, for [`Endpoint::with_strategies`](crate::Endpoint::with_strategies).
///
/// To put in one of your own and keep what the configuration says for the others:
///
/// ```
/// use airtcp_tcp::{Strategies, TcpConfig, congestion::Reno};
///
/// let config = TcpConfig::default();
/// let congestion = Box::new(Reno::new(Some(1)));
/// let strategies = Strategies { congestion, ..Strategies::new(&config) };
/// ```
#[derive(Debug)]
pub struct Strategies {
    /// How cwnd and ssthresh move.
    pub congestion: Box<dyn CongestionControl>,
    /// What an expiry does to the retransmission time-out.
    pub rto: Box<dyn RtoPolicy>,
    /// When to acknowledge.
    pub ack: Box<dyn AckPolicy>,
    /// What to do when a route breaks.
    pub route: Box<dyn RoutePolicy>,
}

impl Strategies {
    /// Those that `config` names.
    ///
    /// # Panics
    /// It names a congestion control from outside this crate.
    pub fn new(config: &TcpConfig) -> Self {
        Self::with_controls(config, &Controls::default())
    }

    /// Those that `config` names, its congestion control perhaps among `controls`.
    ///
    /// # Panics
    /// `config` names a control that is not among them.
    pub fn with_controls(config: &TcpConfig, controls: &Controls) -> Self {
        Self {
            congestion: congestion::algorithm(config, controls),
            rto: rto::policy(&config.rto),
            ack: ack::policy(config.ack),
            route: route::policy(config.on_route_failure),
        }
    }
}
