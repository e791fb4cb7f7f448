//! Congestion controls from outside.

use airtcp_sim::scenario::Scenario;
use airtcp_sim::{Observers, World};
use airtcp_tcp::congestion::{Ack, CongestionControl, Controls, Loss, Timeout, Window};

/// Sets both windows to the same bytes, whatever happens.
#[derive(Debug)]
struct Fixed(u32);

impl Fixed {
    fn set(&self, window: &mut Window) {
        window.set_cwnd(self.0);
        window.set_ssthresh(self.0);
    }
}

impl CongestionControl for Fixed {
    fn on_ack(&mut self, window: &mut Window, _: &Ack) {
        self.set(window);
    }
    fn on_growth(&mut self, window: &mut Window, _: &Ack) {
        self.set(window);
    }
    fn on_fast_retransmit(&mut self, window: &mut Window, _: &Loss) {
        self.set(window);
    }
    fn on_timeout(&mut self, window: &mut Window, _: &Timeout) {
        self.set(window);
    }
}

const LOSSY: &str = r#"
    duration = "200 s"
    tcp = { congestion = "custom", control = "fixed" }
    node = [{ name = "a" }, { name = "b" }]
    link = [{ between = ["a", "b"], rate = "10 Mbit/s", delay = "20 ms", queue = { limit = "20 packets" }, loss = { kind = "bernoulli", p = 0.02 } }]
    flow = [{ from = "a", to = "b", bytes = "5 MB" }]
"#;

/// No window that a control may set stops a transfer or overflows.
#[test]
fn transfers_complete_with_the_strangest_windows() {
    for recovery in ["tahoe", "newreno", "sack", "rack"] {
        for bytes in [0, 1, 100_000, 1 << 31, u32::MAX] {
            let mut controls = Controls::default();
            controls.insert("fixed", move |_| Box::new(Fixed(bytes)));
            let set = [("tcp.recovery".to_owned(), recovery.to_owned())];
            let scenario = Scenario::parse_with("lossy.toml", LOSSY, &set, Some(&controls));
            let mut world = World::with_controls(&scenario.unwrap(), 1, &controls);
            world.run(&mut Observers::default());
            let delivered = world.metrics().flows[0].delivered_bytes;
            assert!(delivered > 500_000, "{recovery}, {bytes}: {delivered}");
            assert!(bytes <= 1 || delivered == 5_000_000, "{recovery}, {bytes}: {delivered}");
        }
    }
}

#[test]
fn a_scenario_needs_the_controls_that_it_names() {
    let error = Scenario::parse("lossy.toml", LOSSY, &[]).unwrap_err().to_string();
    assert!(error.contains("lossy.toml:3:46: tcp.control"), "{error}");
    assert!(Scenario::parse_with("lossy.toml", LOSSY, &[], None).is_ok());
}
