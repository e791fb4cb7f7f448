//! What is at work for a group.

use super::error::DispatchError;
use crate::config::{GatewayConfig, Group};
use crate::packets::{Kept, SharedBytes};
use airtcp_core::{Bytes, Flow, Instant};
use airtcp_edge::{
    FlowReport, FlowTableConfig, Mechanism, MechanismConfig, Middlebox, MobileId, ReconfigureError,
    Side, Wake,
};
use std::collections::BTreeMap;

/// What is at work for a group.
pub(crate) enum Machine {
    /// A mechanism for TCP.
    Segments(Box<Mechanism<SharedBytes>>),
    /// Wake, for all protocols, and where it sends.
    Packets(Box<Wake<Kept>>, Side),
}

impl Machine {
    pub(crate) fn new(
        group: &Group,
        table: FlowTableConfig,
        config: &GatewayConfig,
    ) -> Result<Self, DispatchError> {
        if let MechanismConfig::Wake(wake) = group.mechanism {
            if !group.is_copied() {
                return Err(DispatchError::Copies { group: group.name.clone() });
            }
            return Ok(Self::Packets(Box::new(Wake::new(wake, table)), wake.towards.side()));
        }
        let mut mechanism = Mechanism::new(&group.mechanism, table, config.limits.memory)
            .map_err(|source| DispatchError::Threshold { group: group.name.clone(), source })?;
        mechanism.keep_journal();
        Ok(Self::Segments(Box::new(mechanism)))
    }

    pub(crate) fn reconfigure(
        &mut self,
        config: &MechanismConfig,
        table: FlowTableConfig,
        memory: Bytes,
    ) -> Result<(), ReconfigureError> {
        match (self, config) {
            (Self::Segments(mechanism), _) => mechanism.reconfigure(config, table, memory),
            (Self::Packets(wake, to), MechanismConfig::Wake(config)) => {
                *to = config.towards.side();
                wake.reconfigure(*config, table);
                Ok(())
            }
            (Self::Packets(..), _) => Err(ReconfigureError::OtherMechanism),
        }
    }

    pub(crate) fn flows(&self) -> usize {
        match self {
            Self::Segments(mechanism) => mechanism.flows(),
            Self::Packets(wake, _) => wake.flows(),
        }
    }

    pub(crate) fn held(&self) -> u64 {
        match self {
            Self::Segments(mechanism) => mechanism.held(),
            Self::Packets(wake, _) => wake.held(),
        }
    }

    pub(crate) fn segments_refused(&self) -> u64 {
        match self {
            Self::Segments(mechanism) => mechanism.segments_refused(),
            Self::Packets(wake, _) => wake.segments_refused(),
        }
    }

    pub(crate) fn counters(&self) -> BTreeMap<&'static str, u64> {
        match self {
            Self::Segments(mechanism) => mechanism.counters(),
            Self::Packets(wake, _) => wake.counters().by_name(),
        }
    }

    pub(crate) fn reports(&self) -> Box<dyn Iterator<Item = FlowReport> + '_> {
        match self {
            Self::Segments(mechanism) => mechanism.reports(),
            Self::Packets(wake, _) => Box::new(wake.reports()),
        }
    }

    pub(crate) fn is_mobile_heard(&self, flow: &Flow) -> bool {
        match self {
            Self::Segments(mechanism) => mechanism.is_mobile_heard(flow),
            Self::Packets(..) => false,
        }
    }

    pub(crate) fn is_interrupted(&self, mobile: MobileId) -> bool {
        match self {
            Self::Segments(mechanism) => mechanism.is_interrupted(mobile),
            Self::Packets(wake, _) => wake.is_interrupted(mobile),
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Segments(mechanism) => mechanism.next_deadline(),
            Self::Packets(wake, _) => wake.deadline(),
        }
    }
}
