//! One outage in a transfer.

use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::Load;
use std::io::Write;
use std::time::Duration;

#[test]
fn without_a_gateway_an_outage_costs_seconds() {
    if !possible() {
        return;
    }
    std::thread::scope(|scope| {
        for congestion in ["reno", "cubic", "bbr"] {
            scope.spawn(move || {
                let mut plan = Plan::default();
                plan.link += "outage = { listed = [[\"4 s\", \"9 s\"]] }";
                let bed = Testbed::new(&plan);
                let transfer = bed.download(&Load::endless(congestion));
                transfer.wait_for(2_000_000);
                let up = bed.began() + Duration::from_secs(9);
                let dead = transfer.dead_time(up, Duration::from_secs(60));
                let _ = writeln!(
                    std::io::stderr(),
                    "{congestion}: {dead:?}, timeouts {}, retransmissions {}, cwnd {}",
                    bed.fixed.counter("TCPTimeouts"),
                    bed.fixed.counter("RetransSegs"),
                    transfer.info().tcpi_snd_cwnd
                );
                transfer.finish();
            });
        }
    });
}
