//! A Prometheus that scrapes a running gateway: every panel of the dashboard in `dist/grafana` has
//! data, and the rules in `dist/prometheus` are evaluated without a failure.

use crate::control::{Process, patience};
use crate::host::Host;
use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::Load;
use airtcp_testing::prometheus::{check_metrics, program};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Of the namespace's own loopback device.
const GATEWAY: &str = "127.0.0.1:4711";
const SERVER: &str = "127.0.0.1:9090";

/// A Prometheus on the gateway's host, and the program that asks it.
struct Prometheus<'a> {
    host: &'a Host,
    promtool: PathBuf,
    _server: Process,
    _files: tempfile::TempDir,
}

impl<'a> Prometheus<'a> {
    /// Prints which program is missing, if one is.
    fn start(host: &'a Host) -> Option<Self> {
        let (server, promtool) = (program("prometheus")?, program("promtool")?);
        let files = tempfile::tempdir().unwrap();
        let config = files.path().join("prometheus.yml");
        let text = format!(
            "global: {{ scrape_interval: 500ms, evaluation_interval: 500ms }}\n\
             rule_files: [{ROOT}/dist/prometheus/airtcp.rules.yml]\n\
             scrape_configs:\n\
             - {{ job_name: airtcp-gateway, static_configs: [{{ targets: [\"{GATEWAY}\"] }}] }}\n\
             - {{ job_name: itself, static_configs: [{{ targets: [\"{SERVER}\"] }}] }}\n"
        );
        fs::write(&config, text).unwrap();
        let child = host
            .command(&[])
            .arg(server)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", files.path().join("data").display()))
            .args([&format!("--web.listen-address={SERVER}"), "--log.level=error"])
            .spawn();
        Some(Self { host, promtool, _server: Process(child.unwrap()), _files: files })
    }

    /// The series that an expression has now.
    ///
    /// # Errors
    /// What promtool says, such as that nobody listens yet.
    fn query(&self, expression: &str) -> Result<Vec<Value>, String> {
        let mut asking = self.host.command(&[]);
        asking.arg(&self.promtool).args(["query", "instant", "--format=json"]);
        let asked = asking.args([&format!("http://{SERVER}"), expression]).output().unwrap();
        let said = || String::from_utf8_lossy(&asked.stderr).into_owned();
        match asked.status.success() {
            true => Ok(serde_json::from_slice(&asked.stdout).unwrap()),
            false => Err(said()),
        }
    }

    /// Waits until an expression has a series.
    fn wait_for(&self, expression: &str) {
        let until = Instant::now() + patience();
        loop {
            let found = self.query(expression);
            if found.as_ref().is_ok_and(|series| !series.is_empty()) {
                return;
            }
            assert!(Instant::now() < until, "{expression}: {found:?}");
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// The titles of the dashboard's panels of which no query has data.
    fn empty_panels(&self) -> BTreeSet<String> {
        let file = format!("{ROOT}/dist/grafana/airtcp-gateway.json");
        let dashboard: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let panels = dashboard["panels"].as_array().unwrap().iter();
        let has_data = |target: &Value| {
            let expression = target["expr"].as_str().unwrap();
            let expression = expression
                .replace("$instance", ".*")
                .replace("$group", ".*")
                .replace("$__rate_interval", "1m");
            let series = self.query(&expression);
            !series.unwrap_or_else(|error| panic!("{expression}: {error}")).is_empty()
        };
        let without = panels.filter(|it| !it["targets"].as_array().unwrap().iter().any(has_data));
        without.map(|panel| panel["title"].as_str().unwrap().to_owned()).collect()
    }
}

/// A download with an outage of `away` behind a gateway; the panels that are empty then.
fn empty_panels(plan: &Plan, away: Duration, seen: &str) -> Option<BTreeSet<String>> {
    let config = format!("{}\n[metrics]\nlisten = \"{GATEWAY}\"\n", plan.config);
    let bed = Testbed::new(&Plan { config, ..plan.clone() });
    let prometheus = Prometheus::start(&bed.gateway)?;
    prometheus.wait_for("airtcp_gateway_build_info");
    let transfer = bed.download(&Load::endless("cubic"));
    transfer.wait_for(500_000);
    bed.link(false);
    thread::sleep(away);
    bed.link(true);
    prometheus.wait_for(seen);
    transfer.finish();
    prometheus.wait_for("rate(prometheus_rule_evaluations_total[1m]) > 0");
    let failures = prometheus.query("sum(prometheus_rule_evaluation_failures_total) > 0").unwrap();
    assert!(failures.is_empty(), "{failures:?}");
    let down = prometheus.query("up{job=\"airtcp-gateway\"} == 0").unwrap();
    assert!(down.is_empty(), "{down:?}");
    check_metrics(&prometheus.promtool, &bed.daemon().airtcp(&["metrics"]).stdout);
    Some(prometheus.empty_panels())
}

#[test]
fn every_panel_of_the_dashboard_shows_a_running_gateway() {
    if !possible() {
        return;
    }
    let seen = "sum(increase(airtcp_gateway_ended_outages_total[1m])) > 0";
    let plan = Plan::with("\"wake\"");
    let Some(empty) = empty_panels(&plan, Duration::from_secs(2), seen) else { return };
    let observed = empty.iter().filter(|title| !title.starts_with("Observed: "));
    assert_eq!(observed.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn the_panels_of_what_was_observed_show_a_gateway_that_observes() {
    if !possible() {
        return;
    }
    let seen = "sum(increase(airtcp_gateway_observed_stalled_flows_total[1m])) > 0";
    let plan = Plan { config: "mode = \"observe\"".to_owned(), ..Plan::with("\"wake\"") };
    let Some(empty) = empty_panels(&plan, Duration::from_secs(4), seen) else { return };
    let observed = empty.iter().filter(|title| title.starts_with("Observed: "));
    assert_eq!(observed.collect::<Vec<_>>(), [""; 0], "{empty:?}");
}
