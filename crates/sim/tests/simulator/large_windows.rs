//! Senders with the windows of today: one flow fills a link whose queue holds a product of
//! bandwidth and delay, and retransmits little.

use crate::common;

/// Goodput as a share of the link's rate, and the share of segments retransmitted, of a flow over
/// so many Mbit/s and ms of round trip.
fn flow(tcp: &str, rate: u64, rtt: u64) -> (f64, f64) {
    let packets = rate * rtt / 12;
    let text = format!(
        r#"
        duration = "80 s"
        node = [{{ name = "A" }}, {{ name = "B" }}]
        flow = [{{ from = "A", to = "B" }}]
        [[link]]
        between = ["A", "B"]
        rate = "{rate} Mbit/s"
        delay = "{} ms"
        queue = {{ limit = "{packets} packets" }}
        [tcp]
        receive-buffer = "64 MB"
        send-buffer = "64 MB"
        {tcp}"#,
        rtt / 2
    );
    let scenario = common::parse(&text, &[]);
    let metrics = common::run(&scenario, 1);
    let flow = &metrics.flows[0];
    (flow.goodput / (rate * 1_000_000) as f64, flow.retransmission_ratio)
}

const PATHS: [(u64, u64); 4] = [(5, 100), (20, 300), (50, 20), (100, 40)];

#[test]
fn with_rack_every_congestion_control_fills_the_link() {
    for control in ["reno", "cubic", "bbr", "bbr3"] {
        for (rate, rtt) in PATHS {
            let (share, again) = flow(&format!("congestion = \"{control}\""), rate, rtt);
            let path = format!("{control}, {rate} Mbit/s, {rtt} ms");
            // BBRv3 halves its flight every 5 s, for 0.2 s and a round trip: 5 % less at 300 ms.
            // The start of 4 s does the rest.
            let least = if control == "bbr3" && rtt == 300 { 0.87 } else { 0.9 };
            assert!(share >= least, "{path}: {share} of the link");
            assert!(again < 0.03, "{path}: {again} sent again");
        }
    }
}

/// A time-out once raised ssthresh to several windows, and slow start lost them again and again:
/// 54.9 of 150 Mbit/s, a third of it retransmissions.
#[test]
fn a_sack_sender_survives_a_lost_retransmission() {
    let tcp =
        "preset = \"rfc\"\nwindow-scaling = true\ncongestion = \"cubic\"\nrecovery = \"sack\"";
    let (share, again) = flow(tcp, 150, 50);
    assert!(share >= 0.9 && again < 0.03, "{share} of the link, {again} sent again");
}

/// A time-out in a recovery once took half of the cwnd that duplicates had inflated as ssthresh,
/// with the preset's `loss-window = "cwnd"`: a third of the link, and a fifth of the data
/// retransmitted.
#[test]
fn a_time_out_in_a_recovery_without_sack_does_not_raise_ssthresh() {
    let (share, again) =
        flow("congestion = \"reno\"\nrecovery = \"newreno\"\nnewreno.impatient = true", 5, 100);
    assert!(share >= 0.9 && again < 0.03, "{share} of the link, {again} sent again");
}
