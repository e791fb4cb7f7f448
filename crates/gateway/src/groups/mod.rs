//! Groups of mobiles at work: who is in them, where their packets pass, and what is done.

mod error;
mod mechanism;
mod place;

pub use error::DispatchError;
use mechanism::GroupMechanism;
pub use place::Interfaces;
pub(crate) use place::{Place, classify, egress};

use crate::config::{GatewayConfig, Group, Limits};
use airtcp_edge::FlowTableConfig;
use airtcp_record::Setup;

/// A group of mobiles with its mechanism at work.
pub(crate) struct ActiveGroup {
    /// In a recording.
    pub(crate) id: u32,
    pub(crate) config: Group,
    pub(crate) place: Place,
    pub(crate) mechanism: GroupMechanism,
}

impl ActiveGroup {
    pub(crate) fn new(
        id: u32,
        group: &Group,
        table: FlowTableConfig,
        config: &GatewayConfig,
        interfaces: &Interfaces,
    ) -> Result<Self, DispatchError> {
        let mechanism = GroupMechanism::new(group, of_group(table, group), config)?;
        let place = Place::new(group, interfaces);
        Ok(Self { id, config: group.clone(), place, mechanism })
    }

    /// The same group, perhaps with other settings.
    pub(crate) fn succeeds(&self, old: &Self) -> bool {
        self.config.name == old.config.name && self.has_mechanism_of(old)
    }

    /// Both run the same mechanism.
    pub(crate) fn has_mechanism_of(&self, other: &Self) -> bool {
        self.config.mechanism.word() == other.config.mechanism.word()
    }

    /// The mechanism and its limits, as a recording stores them.
    pub(crate) fn setup(&self, limits: &Limits) -> Setup {
        let group = &self.config;
        Setup {
            name: group.name.clone(),
            mechanism: group.mechanism,
            flows: limits.flows,
            flows_per_mobile: match group.uplink() {
                None => limits.flows_per_mobile,
                Some(_) => limits.flows,
            },
            uplink: group.uplink(),
            idle: limits.idle,
            memory: limits.memory,
        }
    }
}

/// Bounds on the groups' flow tables.
pub(crate) fn table(limits: &Limits, hash_key: (u64, u64)) -> FlowTableConfig {
    let &Limits { flows: limit, flows_per_mobile: per_mobile, idle, .. } = limits;
    FlowTableConfig { limit, per_mobile, uplink: None, idle, hash_key }
}

/// An uplink may have all connections.
pub(crate) fn of_group(table: FlowTableConfig, group: &Group) -> FlowTableConfig {
    let uplink = group.uplink();
    let per_mobile = if uplink.is_some() { table.limit } else { table.per_mobile };
    FlowTableConfig { per_mobile, uplink, ..table }
}
