//! What a loop drives: a gateway that protects mobiles, or one that only looks.

use crate::config::{GatewayConfig, Group};
use crate::control::Whose;
use crate::dispatch::{Dispatcher, Effect, Interfaces};
use crate::observe::{Counted, Observation, looked_at};
use crate::packets::{Intercepted, Verdict};
use crate::signals::{MobileSignal, SignalSource};
use crate::status::Status;
use airtcp_core::Instant;
use airtcp_edge::{InterfaceName, MobileId, Side};
use std::io;

/// A gateway without I/O. What it wants done is added to `effects`; call [`settle`](Self::settle)
/// when that is done.
pub enum Role {
    /// `mode = "protect"`.
    Protect(Box<Dispatcher>),
    /// `mode = "observe"`: lets all packets pass and makes none.
    Observe(Box<Observation>),
}

/// The same expression for either.
macro_rules! each {
    ($role:expr, $gateway:ident => $result:expr) => {
        match $role {
            Role::Protect($gateway) => $result,
            Role::Observe($gateway) => $result,
        }
    };
}

impl Role {
    /// The configuration by which packets are copied.
    pub fn looked_at(&self, config: GatewayConfig) -> GatewayConfig {
        match self {
            Self::Protect(_) => config,
            Self::Observe(_) => looked_at(config),
        }
    }

    /// A packet on its way through this host, or a copy of one that has gone on, for which the
    /// verdict has no effect.
    pub fn on_packet(
        &mut self,
        now: Instant,
        packet: &Intercepted,
        effects: &mut Vec<Effect>,
    ) -> Verdict {
        match self {
            Self::Protect(dispatcher) => dispatcher.on_packet(now, packet, effects),
            Self::Observe(observation) => {
                observation.on_copy(now, packet, effects);
                Verdict::Pass
            }
        }
    }

    /// Mobiles that a signal is for.
    ///
    /// # Errors
    /// As [`Whose::members`].
    pub fn members(&self, whose: &Whose) -> Result<Vec<MobileId>, String> {
        let groups: Vec<&Group> = each!(self, gateway => gateway.group_configs().collect());
        whose.members(&groups)
    }

    /// A source says something about a mobile.
    pub fn on_signal(&mut self, now: Instant, signal: MobileSignal, effects: &mut Vec<Effect>) {
        each!(self, gateway => gateway.on_signal(now, signal, effects));
    }

    /// A source is not asked any more.
    pub fn on_withdrawn(&mut self, now: Instant, source: SignalSource, effects: &mut Vec<Effect>) {
        each!(self, gateway => gateway.on_withdrawn(now, source, effects));
    }

    /// The deadline passed: does a part of what is due. If more is, the next deadline has passed
    /// too.
    pub fn on_timer(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        each!(self, gateway => gateway.on_timer(now, effects));
    }

    /// Time of the next call of [`on_timer`](Self::on_timer).
    pub fn next_deadline(&self) -> Option<Instant> {
        each!(self, gateway => gateway.next_deadline())
    }

    /// The interface of an uplink has this index from now on; none: it is gone.
    pub fn set_index(&mut self, uplink: InterfaceName, index: Option<u32>) {
        each!(self, gateway => gateway.set_index(uplink, index));
    }

    /// Goes on with another configuration, on these interfaces.
    ///
    /// # Errors
    /// Nothing was changed: the configuration cannot be put to work.
    pub fn reload(
        &mut self,
        now: Instant,
        config: &GatewayConfig,
        counted: &Counted,
        interfaces: &Interfaces,
        effects: &mut Vec<Effect>,
    ) -> Result<(), String> {
        let done = match self {
            Self::Protect(dispatcher) => dispatcher.reload(now, config, interfaces, effects),
            Self::Observe(observation) => observation.reload(config, counted, interfaces),
        };
        done.map_err(|error| error.to_string())
    }

    /// The state of the gateway, its groups and connections.
    pub fn status(&self, now: Instant, counted: &Counted) -> Status {
        match self {
            Self::Protect(dispatcher) => dispatcher.status(now),
            Self::Observe(observation) => observation.status(now, counted),
        }
    }

    /// The effects of the last call were carried out.
    pub fn settle(&mut self) {
        match self {
            Self::Protect(dispatcher) => dispatcher.settle(),
            Self::Observe(_) => {}
        }
    }

    /// The loop is about to sleep.
    pub fn rest(&mut self) {
        match self {
            Self::Protect(dispatcher) => dispatcher.rest(),
            Self::Observe(_) => {}
        }
    }

    /// A packet that was to be sent is larger than the first link takes: smaller ones in its place.
    pub fn cut_smaller(&mut self, to: Side, packet: &[u8]) -> Vec<Vec<u8>> {
        match self {
            Self::Protect(dispatcher) => dispatcher.cut_smaller(to, packet),
            Self::Observe(_) => Vec::new(),
        }
    }

    /// Ends a recording; how many steps are not in it, if there was one.
    ///
    /// # Errors
    /// The file could not be written to its end.
    pub fn end_recording(&mut self) -> io::Result<Option<u64>> {
        match self {
            Self::Protect(dispatcher) => dispatcher.end_recording(),
            Self::Observe(_) => Ok(None),
        }
    }
}
