//! `airtcp` with Scalable TCP (Kelly 2003), a congestion control that it does not have.
//!
//!     cargo run --release -p airtcp-scalable -- run examples/scalable/long.toml

use airtcp_tcp::congestion::{Ack, CongestionControl, Controls, Loss, Timeout, Window};
use std::process::ExitCode;

/// Above a window of 16 segments, congestion avoidance adds a hundredth of what is acknowledged and
/// a loss takes an eighth, so that the time between two losses depends on the round trip alone, not
/// on the rate. Below, it is Reno.
#[derive(Debug, Default)]
struct Scalable {
    /// Hundredths of a byte by which cwnd is yet to grow.
    credit: u32,
}

fn is_small(window: &Window) -> bool {
    window.cwnd() <= 16 * window.smss()
}

impl CongestionControl for Scalable {
    fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        if window.in_slow_start() {
            window.grow(ack.acked);
        } else if is_small(window) {
            window.grow(window.smss() * ack.acked.min(window.cwnd()) / window.cwnd());
        } else {
            self.credit += ack.acked;
            window.grow(self.credit / 100);
            self.credit %= 100;
        }
    }

    fn on_fast_retransmit(&mut self, window: &mut Window, loss: &Loss) {
        if is_small(window) {
            window.halve_ssthresh(loss.flight);
        } else {
            window.set_ssthresh(window.cwnd() - window.cwnd() / 8);
        }
        window.set_cwnd(window.ssthresh());
    }

    fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        if timeout.first {
            window.halve_ssthresh(timeout.flight);
        }
        window.set_cwnd(window.smss());
    }
}

/// Under the name `scalable`.
fn controls() -> Controls {
    let mut controls = Controls::default();
    controls.insert("scalable", |_| Box::<Scalable>::default());
    controls
}

fn main() -> ExitCode {
    let code = airtcp_cli::main_with(std::env::args_os(), &controls());
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_sim::scenario::Scenario;
    use airtcp_sim::{Observers, World};

    const LONG: &str = include_str!("../long.toml");

    /// The same numbers as of the control in Python (python/tests/test_congestion.py).
    #[test]
    fn scalable_tcp_on_a_long_path() {
        let controls = controls();
        let scenario = Scenario::parse_with("long.toml", LONG, &[], Some(&controls)).unwrap();
        let mut world = World::with_controls(&scenario, 1, &controls);
        world.run(&mut Observers::default());
        let metrics = world.metrics();
        assert_eq!((metrics.events, metrics.flows[0].delivered_bytes), (1_475_648, 1_384_086_488));
    }

    #[test]
    fn a_name_that_is_not_there_is_refused_with_the_nearest() {
        let set = [("tcp.control".to_owned(), "scaleable".to_owned())];
        let error = Scenario::parse_with("long.toml", LONG, &set, Some(&controls())).unwrap_err();
        assert!(error.to_string().contains("did you mean `scalable`?"), "{error}");
    }
}
