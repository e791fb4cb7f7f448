//! Settings of a script: its option lines and its first shell commands.

use crate::linux::{self, linux_config, set_sysctl};
use crate::script::Script;
use crate::shell;
use airtcp_core::Duration;
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::EcnConfig;

/// Settings that a script runs with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Settings of every new socket.
    pub(crate) config: TcpConfig,
    /// ECN mode of connections that the host opens; `config` has that of connections it accepts.
    pub(crate) ecn_of_connect: EcnConfig,
    /// Allowed deviation of an event from its time.
    pub(crate) tolerance: Duration,
    /// Allowed deviation as a share of the time since the previous event, if that is more.
    pub(crate) tolerance_share: f64,
    /// Length of a tick of the script's timestamps; `None`: they are not compared.
    pub(crate) timestamp_tick: Option<Duration>,
    /// Features that the script configures and airtcp lacks.
    pub(crate) needs: Vec<String>,
}

impl Settings {
    pub(crate) fn of(script: &Script, files: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut settings = Self {
            config: linux_config(),
            ecn_of_connect: EcnConfig::Off,
            // packetdrill's defaults.
            tolerance: Duration::from_millis(4),
            tolerance_share: 0.125,
            timestamp_tick: None,
            needs: Vec::new(),
        };
        for option in &script.options {
            settings.set(&option.name, &option.value);
        }
        settings.setup(script.setup.as_deref().unwrap_or_default(), files);
        settings
    }

    fn set(&mut self, name: &str, value: &str) {
        /// IPv4 and TCP headers; IPv6's is 20 bytes longer.
        const HEADERS: u16 = 40;
        let number = value.parse::<u64>().ok();
        match (name, number) {
            ("tolerance_usecs", Some(micros)) => self.tolerance = Duration::from_micros(micros),
            ("tcp_ts_tick_usecs", Some(0)) => self.timestamp_tick = None,
            ("tcp_ts_tick_usecs", Some(micros)) => {
                self.timestamp_tick = Some(Duration::from_micros(micros));
            }
            ("mtu", Some(mtu @ 88..=65_535)) => self.config.mss = mtu as u16 - HEADERS,
            ("tolerance_percent", _) => {
                if let Ok(percent) = value.parse::<f64>() {
                    self.tolerance_share = percent / 100.0;
                }
            }
            _ => {}
        }
    }

    /// Applies shell commands: sysctls become settings of sockets opened from now on.
    pub(crate) fn setup(&mut self, text: &str, files: &dyn Fn(&str) -> Option<String>) {
        let commands = shell::read(text, files);
        self.needs.extend(commands.needs);
        for (name, value) in &commands.settings {
            let ecn = linux::ecn(value).filter(|_| name == "net.ipv4.tcp_ecn");
            if let Some((accept, connect)) = ecn {
                self.config.ecn = accept;
                self.ecn_of_connect = connect;
            } else if let Err(need) = set_sysctl(&mut self.config, name, value) {
                self.needs.push(format!("sysctl {need}"));
            }
        }
    }
}
