//! Congestion controls from outside this crate, by name.

use super::CongestionControl;
use crate::config::TcpConfig;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Creates the congestion control of one endpoint.
type Factory = Arc<dyn Fn(&TcpConfig) -> Box<dyn CongestionControl> + Send + Sync>;

/// Congestion controls of the caller's own, each under the name by which
/// [`TcpConfig::control`] asks for it.
///
/// ```
/// use airtcp_tcp::config::Congestion;
/// use airtcp_tcp::congestion::{Controls, Reno};
/// use airtcp_tcp::{Strategies, TcpConfig};
///
/// let mut controls = Controls::default();
/// controls.insert("mine", |config| Box::new(Reno::new(config.abc)));
///
/// let control = Some("mine".to_owned());
/// let config = TcpConfig { congestion: Congestion::Custom, control, ..TcpConfig::default() };
/// let strategies = Strategies::with_controls(&config, &controls);
/// ```
#[derive(Clone, Default)]
pub struct Controls(BTreeMap<String, Factory>);

impl Controls {
    /// Adds a control, or replaces the one of the same name. `factory` is called once for each
    /// endpoint that asks for it.
    pub fn insert(
        &mut self,
        name: impl Into<String>,
        factory: impl Fn(&TcpConfig) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) {
        self.0.insert(name.into(), Arc::new(factory));
    }

    /// True if a control has this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Creates the control that `config` names.
    pub(super) fn control(&self, config: &TcpConfig) -> Box<dyn CongestionControl> {
        let name = config.control.as_deref().unwrap_or_default();
        let factory = self.0.get(name);
        factory.unwrap_or_else(|| panic!("no congestion control {name:?} in {self:?}"))(config)
    }
}

impl fmt::Debug for Controls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
