//! What a loss does to the windows, whatever the congestion control, the recovery, the path and the
//! pattern of losses.

use airtcp_core::event::{Source, Subscriber};
use airtcp_core::{Event, Instant};
use airtcp_sim::scenario::Scenario;
use airtcp_sim::{Observers, World};
use proptest::prelude::*;

const MSS: u32 = 1448;

/// Watches the sender's windows.
#[derive(Default)]
struct Watch {
    cwnd: u32,
    /// `None` before it is first set.
    ssthresh: Option<u32>,
    /// A loss has been found; its effect on the windows is reported next.
    lost: bool,
    losses: u32,
    /// The first time that a loss raised ssthresh: when, from what bound, to what.
    raised: Option<(Instant, u32, u32)>,
}

impl Subscriber for Watch {
    fn on_event(&mut self, at: Instant, source: Source, event: &Event) {
        if !matches!(source, Source::Sender(_)) {
            return;
        }
        match *event {
            Event::RtoExpired { .. } | Event::FastRetransmit { .. } => {
                self.lost = true;
                self.losses += 1;
            }
            Event::CwndReduced { from, .. } => {
                self.lost = true;
                self.losses += 1;
                // No event before the first ACK contains the initial window.
                self.cwnd = from;
            }
            Event::Window { cwnd, ssthresh, .. } => {
                let ssthresh = (ssthresh != u32::MAX).then_some(ssthresh);
                // Two segments is the least (RFC 5681, equation 4).
                let bound = self.cwnd.max(2 * MSS).max(self.ssthresh.unwrap_or(0));
                if let Some(ssthresh) = ssthresh.filter(|&ssthresh| self.lost && ssthresh > bound) {
                    self.raised.get_or_insert((at, bound, ssthresh));
                }
                self.lost = false;
                self.cwnd = cwnd;
                self.ssthresh = ssthresh;
            }
            _ => {}
        }
    }
}

/// Congestion control and recovery, as keys of `[tcp]`. Not Westwood+, whose ssthresh is what it
/// measures of the path and may be above cwnd (Casetti et al. 2002, §2), nor BBR, which has no use
/// for ssthresh.
fn sender() -> impl Strategy<Value = String> {
    let classic = prop::sample::select(vec!["reno", "cubic", "karak"]);
    let recovery = prop::sample::select(vec!["tahoe", "reno", "newreno", "sack", "rack"]);
    let any = (classic, recovery).prop_map(|(control, recovery)| {
        format!("congestion = '{control}'\nrecovery = '{recovery}'")
    });
    let rack = prop::sample::select(vec![
        "congestion = 'dctcp'\nrecovery = 'rack'\necn = 'dctcp'",
        "congestion = 'prague'\nrecovery = 'rack'\necn = 'dctcp'",
    ]);
    prop_oneof![4 => any, 1 => rack.prop_map(str::to_owned)]
}

/// Without validation, windows are as the letter of RFC 5681 has them, for old papers.
fn validation() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["growth", "decay"])
}

/// A path: Mbit/s, ms one way, queue in packets.
fn path() -> impl Strategy<Value = (u32, u32, u32)> {
    (1u32..200, 1u32..150, 5u32..2000)
}

fn loss() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        (0.0001..0.05f64).prop_map(|p| format!("loss = {{ kind = 'bernoulli', p = {p:.5} }}")),
        prop::collection::vec((100u32..5000, 20u32..2000), 1..4).prop_map(|gaps| {
            let mut at = 0;
            let outages = gaps.iter().map(|(gap, len)| {
                let start = at + gap;
                at = start + len;
                format!("[\"{start} ms\", \"{at} ms\"]")
            });
            format!("outage = {{ listed = [{}] }}", outages.collect::<Vec<_>>().join(", "))
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_loss_raises_ssthresh(
        sender in sender(),
        validation in validation(),
        (rate, delay, queue) in path(),
        loss in loss(),
        ecn in any::<bool>(),
        seed in 1u64..1000,
    ) {
        let mark = if ecn { ", kind = 'red', ecn = true" } else { "" };
        let text = format!(
            "duration = '8 s'
            node = [{{ name = 'a' }}, {{ name = 'b' }}]
            flow = [{{ from = 'a', to = 'b' }}]
            [[link]]
            between = ['a', 'b']
            rate = '{rate} Mbit/s'
            delay = '{delay} ms'
            queue = {{ limit = '{queue} packets'{mark} }}
            {loss}
            [tcp]
            receive-buffer = '64 MB'
            send-buffer = '64 MB'
            cwnd-validation = '{validation}'
            {sender}"
        );
        let scenario = Scenario::parse("t.toml", &text, &[]);
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut watch = Watch::default();
        let mut world = World::new(&scenario, seed);
        world.run(&mut Observers { events: Some(&mut watch), ..Observers::default() });
        prop_assert!(
            watch.raised.is_none(),
            "{:?} of {} losses\n{}",
            watch.raised,
            watch.losses,
            text
        );
    }
}
