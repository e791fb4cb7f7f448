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
    /// Congestion control: cwnd, ssthresh and the pacing rate.
    pub congestion: Box<dyn CongestionControl>,
    /// Reaction of the retransmission time-out to an expiry.
    pub rto: Box<dyn RtoPolicy>,
    /// Acknowledgement policy.
    pub ack: Box<dyn AckPolicy>,
    /// Reaction to a broken route.
    pub route: Box<dyn RoutePolicy>,
}

impl Strategies {
    /// The strategies that `config` selects.
    ///
    /// # Panics
    /// If `config` names a congestion control from outside this crate.
    pub fn new(config: &TcpConfig) -> Self {
        Self::with_controls(config, &Controls::default())
    }

    /// The strategies that `config` selects; a custom congestion control is looked up in
    /// `controls`.
    ///
    /// # Panics
    /// If `config` names a control that is not in `controls`.
    pub fn with_controls(config: &TcpConfig, controls: &Controls) -> Self {
        Self {
            congestion: congestion::algorithm(config, controls),
            rto: rto::policy(&config.rto),
            ack: ack::policy(config.ack),
            route: route::policy(config.on_route_failure),
        }
    }
}
