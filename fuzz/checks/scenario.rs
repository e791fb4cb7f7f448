//! The scenario parser on any text: no panic, diagnostics that point into the text, and a world for
//! every scenario it accepts.

use airtcp_sim::World;
use airtcp_sim::scenario::{Override, Scenario};
use airtcp_tcp::congestion::Controls;

/// Nodes, links, stations and flows of the largest world that is built: a short text can ask for a
/// million.
const LARGEST_WORLD: usize = 1000;

/// Panics when the parser breaks a promise on this text. A comment `#set KEY=VALUE` is an override,
/// as from the command line; what follows a line `#file` is the text of every file that the scenario
/// names.
pub(crate) fn check(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let (text, file) = text.split_once("#file\n").unwrap_or((text, ""));
    let overrides: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("#set ")?.split_once('='))
        .map(|(key, value)| Override::new("--set", key, value))
        .collect();
    let controls = Controls::default();
    let files = |_: &str| Ok(file.to_owned());
    match Scenario::parse_with_files("fuzz.toml", text, &overrides, Some(&controls), &files) {
        Ok(scenario) => {
            let stations: usize = scenario.wlans.iter().map(|wlan| wlan.stations.len()).sum();
            let traffic = scenario.flows.len() + scenario.udp.len();
            let size = scenario.nodes.len() + scenario.links.len() + stations + traffic;
            if size <= LARGEST_WORLD {
                let world = World::new(&scenario, 1);
                assert_eq!(world.metrics().flows.len(), scenario.flows.len());
            }
        }
        Err(error) => {
            assert!(!error.diagnostics.is_empty(), "an error says what is wrong");
            assert!(!error.to_string().is_empty() && !error.render().is_empty());
            let lines = text.matches('\n').count() + 1;
            for diagnostic in error.diagnostics.iter().filter(|d| d.source == "fuzz.toml") {
                assert!((1..=lines).contains(&diagnostic.line), "{diagnostic:?}");
            }
        }
    }
}
