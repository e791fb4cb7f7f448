//! The gateway's configuration on any text: no panic, diagnostics that point into the text, and
//! accepted configurations that satisfy everything the daemon relies on.

use airtcp_gateway::config::{GatewayConfig, Members};

/// Panics when the parser breaks a promise on this text.
pub(crate) fn check(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    match GatewayConfig::parse("fuzz.toml", text) {
        Ok(config) => {
            assert!(!config.groups.is_empty());
            for group in &config.groups {
                if let Members::Mobiles { addresses, .. } = &group.members {
                    assert!(!addresses.is_empty());
                    assert!(addresses.iter().all(|prefix| prefix.trunc() == *prefix));
                }
                assert!(
                    group
                        .mechanism
                        .capabilities()
                        .fifo
                        .is_none_or(|fifo| fifo <= config.limits.memory)
                );
            }
            assert!(config.state.is_absolute() && config.control.is_absolute());
            assert!(config.record.as_ref().is_none_or(|path| path.is_absolute()));
            assert!(config.metrics.is_none_or(|address| address.port() > 0));
            for outage in &config.signals.timetable {
                assert!(outage.every.is_none_or(|every| every > outage.length + outage.lead));
            }
            assert!(config.cautions().iter().all(|caution| !caution.text.is_empty()));
        }
        Err(error) => {
            assert!(!error.diagnostics.is_empty(), "an error says what is wrong");
            assert!(!error.to_string().is_empty() && !error.render().is_empty());
            let lines = text.matches('\n').count() + 1;
            for diagnostic in &error.diagnostics {
                assert!((1..=lines).contains(&diagnostic.line), "{diagnostic:?}");
            }
        }
    }
}
