//! Mapping of Linux's defaults, sysctls and socket options to settings of an endpoint, all in this
//! file.

use airtcp_core::{Bytes, Duration};
use airtcp_tcp::config::{AccEcnOptions, Congestion, EcnConfig, RackConfig, Recovery};
use airtcp_tcp::{TcpConfig, preset};

/// Endpoint settings of Linux with its default sysctls (Documentation/networking/ip-sysctl.rst), as
/// far as airtcp supports them. Scripts are written for a kernel with 1000 ticks per second.
pub fn linux_config() -> TcpConfig {
    TcpConfig { mss: 1460, timer_hz: Some(1000), ..preset::linux() }
}

/// Values of sysctls that match [`linux_config`], or have no effect that a script can see:
/// offloads, other protocols, defaults of Linux. An empty list stands for any value.
const NEUTRAL: &[(&str, &[&str])] = &[
    ("tcp_autocorking", &[]),
    ("tcp_dsack", &["1"]),
    ("tcp_ecn_fallback", &["1"]),
    // Without an effect under the default tcp_ecn_option.
    ("tcp_ecn_option_beacon", &[]),
    ("tcp_fack", &["0"]),
    ("tcp_frto", &["2"]),
    ("tcp_fastopen", &[]),
    ("tcp_fastopen_blackhole_timeout_sec", &[]),
    ("tcp_fastopen_key", &[]),
    ("tcp_invalid_ratelimit", &["500"]),
    ("tcp_limit_output_bytes", &[]),
    ("tcp_min_tso_segs", &[]),
    ("tcp_moderate_rcvbuf", &["1"]),
    ("tcp_no_metrics_save", &[]),
    ("tcp_notsent_lowat", &["4294967295", "-1"]),
    ("tcp_pacing_ca_ratio", &[]),
    ("tcp_pacing_ss_ratio", &[]),
    ("tcp_recovery", &["1"]),
    ("tcp_retries2", &["15"]),
    ("tcp_syn_retries", &["5", "6"]),
    ("tcp_synack_retries", &["5"]),
    ("tcp_syncookies", &[]),
    ("tcp_tso_rtt_log", &[]),
    ("tcp_tso_win_divisor", &[]),
];

/// ECN modes for a value of tcp_ecn: of connections accepted, and of those opened.
pub(crate) fn ecn(value: &str) -> Option<(EcnConfig, EcnConfig)> {
    Some(match value {
        "0" => (EcnConfig::Off, EcnConfig::Off),
        "1" => (EcnConfig::Rfc3168, EcnConfig::Rfc3168),
        "2" => (EcnConfig::Rfc3168, EcnConfig::Off),
        "3" => (EcnConfig::AccEcn, EcnConfig::AccEcn),
        "4" => (EcnConfig::AccEcn, EcnConfig::Rfc3168),
        "5" => (EcnConfig::AccEcn, EcnConfig::Off),
        _ => return None,
    })
}

/// Applies the sysctl `name`.
///
/// # Errors
/// The feature that the value needs and airtcp lacks.
pub(crate) fn set_sysctl(config: &mut TcpConfig, name: &str, value: &str) -> Result<(), String> {
    let lacking = || Err(format!("{name}={value}"));
    if (name, value) == ("tcp_cubic.hystart_detect", "3") {
        return Ok(()); // Linux's default
    }
    let Some(key) = name.strip_prefix("net.ipv4.") else { return lacking() };
    let number = value.parse::<u64>().ok();
    match (key, number) {
        ("tcp_timestamps", Some(on)) => config.timestamps = on > 0,
        ("tcp_window_scaling", Some(on)) => config.window_scaling = on > 0,
        ("tcp_sack", Some(0)) => config.recovery = Recovery::NewReno,
        ("tcp_sack", Some(_)) => config.recovery = Recovery::Rack(RackConfig::default()),
        ("tcp_early_retrans", Some(n)) => {
            if let Recovery::Rack(rack) = &mut config.recovery {
                rack.tail_loss_probe = n >= 3;
            }
        }
        ("tcp_ecn_option", Some(0)) => config.accecn_option = AccEcnOptions::Never,
        ("tcp_ecn_option", Some(1)) => config.accecn_option = AccEcnOptions::Changes,
        // 3 continues if the path drops options, which airtcp does not detect.
        ("tcp_ecn_option", Some(2 | 3)) => config.accecn_option = AccEcnOptions::Always,
        ("tcp_slow_start_after_idle", Some(on)) => config.slow_start_after_idle = on > 0,
        ("tcp_reordering", Some(segments @ 1..=300)) => {
            config.duplicate_ack_threshold = segments as u32;
        }
        ("tcp_rto_min_us", Some(micros @ 1..)) => config.rto.min = Duration::from_micros(micros),
        ("tcp_syn_linear_timeouts", Some(count @ 0..=127)) => {
            config.rto.linear_syn_timeouts = count as u32;
        }
        ("tcp_rto_max_ms", Some(millis @ 1..)) => config.rto.max = Duration::from_millis(millis),
        ("tcp_congestion_control", _) => return set_congestion(config, value),
        ("tcp_rmem", _) => return set_buffer(&mut config.receive_buffer, value, lacking),
        ("tcp_wmem", _) => return set_buffer(&mut config.send_buffer, value, lacking),
        _ => match NEUTRAL.iter().find(|(neutral, _)| *neutral == key) {
            Some((_, values)) if values.is_empty() || values.contains(&value) => {}
            _ => return lacking(),
        },
    }
    Ok(())
}

/// Selects the congestion control that Linux calls `name`.
///
/// # Errors
/// The feature that airtcp lacks.
pub(crate) fn set_congestion(config: &mut TcpConfig, name: &str) -> Result<(), String> {
    config.congestion = match name {
        "cubic" => preset::linux().congestion,
        "bbr" => Congestion::Bbr,
        "dctcp" => Congestion::Dctcp,
        "reno" => Congestion::Reno,
        "westwood" => Congestion::Westwood,
        "veno" => Congestion::Veno,
        _ => return Err(format!("the congestion control `{name}`")),
    };
    Ok(())
}

/// Reads `min default max`: the largest size is the limit of the buffer, and sets the window scale.
fn set_buffer(
    buffer: &mut Bytes,
    value: &str,
    lacking: impl Fn() -> Result<(), String>,
) -> Result<(), String> {
    match value.split_whitespace().nth(2).and_then(|most| most.parse().ok()) {
        Some(most @ 1..) => *buffer = Bytes(most),
        _ => return lacking(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctls_become_settings() {
        let mut config = linux_config();
        for (name, value) in [("tcp_timestamps", "0"), ("tcp_sack", "0"), ("tcp_reordering", "5")] {
            set_sysctl(&mut config, &format!("net.ipv4.{name}"), value).unwrap();
        }
        assert!(!config.timestamps && !config.recovery.needs_sack());
        assert_eq!(config.duplicate_ack_threshold, 5);
    }

    #[test]
    fn the_largest_buffer_counts() {
        let mut config = linux_config();
        set_sysctl(&mut config, "net.ipv4.tcp_rmem", "4096 540000 15728640").unwrap();
        assert_eq!(config.receive_buffer, Bytes(15 << 20));
    }

    #[test]
    fn what_airtcp_lacks_is_named() {
        let mut config = linux_config();
        let missing = set_sysctl(&mut config, "net.ipv4.tcp_foo", "1");
        assert_eq!(missing, Err("net.ipv4.tcp_foo=1".to_owned()));
        assert!(set_congestion(&mut config, "vegas").is_err());
    }
}
