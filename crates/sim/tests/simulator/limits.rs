//! What a run says of the limits of its flows.

use crate::common;
use airtcp_sim::metrics::FlowMetrics;

/// One flow for 20 s over 10 Mbit/s and 40 ms there and back: 50 kB fill the path.
fn run(flow: &str) -> FlowMetrics {
    let text = format!(
        r#"
        duration = "20 s"
        node = [{{ name = "a" }}, {{ name = "b" }}]
        link = [{{ between = ["a", "b"], rate = "10 Mbit/s", delay = "20 ms", queue = {{ limit = "100 packets" }} }}]
        flow = [{{ from = "a", to = "b", {flow} }}]
        "#
    );
    let scenario = common::parse(&text, &[]);
    common::run(&scenario, 1).flows.remove(0)
}

fn times(flow: &FlowMetrics) -> [f64; 4] {
    [
        flow.limited_by_path,
        flow.limited_by_receive_window,
        flow.limited_by_send_buffer,
        flow.limited_by_application,
    ]
}

#[test]
fn each_limit_is_told_from_the_others() {
    for (flow, most) in [
        ("", 0),
        (r#"receiver = { receive-buffer = "20 kB" }"#, 1),
        (r#"sender = { send-buffer = "20 kB" }"#, 2),
    ] {
        let times = times(&run(flow));
        let all: f64 = times.iter().sum();
        assert!(times[most] > 0.95 * all, "{flow}: {times:?}");
        // All but the handshake.
        assert!((all - 19.96).abs() < 0.001, "{flow}: {all}");
    }
}

#[test]
fn a_flow_that_has_ended_is_limited_by_nothing() {
    let flow = run(r#"bytes = "1 MB""#);
    let all: f64 = times(&flow).iter().sum();
    let download = flow.download_time.unwrap();
    // From the end of the handshake, 40 ms after the start, to the ACK of the FIN, 20 ms after the
    // last byte arrived.
    assert!((all - download).abs() < 0.03, "{all} s of {download} s");
    // The last window's worth was written, and the application had closed.
    assert!(flow.limited_by_application > 0.02, "{flow:?}");
}

/// BBR leaves Startup when the rate stops growing, unless the application set the rate. One that
/// waits for room in its send buffer does not: a sender that took it for such would stay in Startup
/// and overrun the queue, 5.9 % of its data. The kernel's loses nothing here.
#[test]
fn a_full_send_buffer_does_not_keep_bbr_in_startup() {
    for control in ["bbr", "bbr3"] {
        let text = format!(
            r#"
            duration = "20 s"
            tcp = {{ congestion = "{control}" }}
            node = [{{ name = "a" }}, {{ name = "b" }}]
            link = [{{ between = ["a", "b"], rate = "200 Mbit/s", delay = "50 ms", queue = {{ limit = "2 MB" }} }}]
            flow = [{{ from = "a", to = "b" }}]
            "#
        );
        let scenario = common::parse(&text, &[]);
        let flow = &common::run(&scenario, 1).flows[0];
        assert!(flow.goodput > 175e6, "{control}: {}", flow.goodput);
        assert!(flow.retransmission_ratio < 0.01, "{control}: {}", flow.retransmission_ratio);
    }
}

/// What a run of a sender, a router and a receiver warns of, with the queue of the sender's own link
/// and the rates of both links in Mbit/s.
fn warnings(queue: &str, rates: [u32; 2]) -> Vec<String> {
    let [own, later] = rates;
    let text = format!(
        r#"
        duration = "20 s"
        tcp = {{ preset = "rfc", window-scaling = true, receive-buffer = "4 MB", send-buffer = "4 MB" }}
        node = [{{ name = "a" }}, {{ name = "R" }}, {{ name = "b" }}]
        link = [
            {{ between = ["a", "R"], rate = "{own} Mbit/s", delay = "1 ms", {queue} }},
            {{ between = ["R", "b"], rate = "{later} Mbit/s", delay = "20 ms", queue = {{ limit = "100 packets" }} }},
        ]
        flow = [{{ name = "f", count = 3, from = "a", to = "b" }}]
        "#
    );
    let scenario = common::parse(&text, &[]);
    common::run(&scenario, 1).warnings
}

#[test]
fn a_queue_that_a_senders_own_bursts_overflow_is_told() {
    let told = warnings(r#"queue = { limit = "5 packets" }"#, [1000, 20]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("link a>R: its queue overflowed in bursts"), "{told:?}");
    for (queue, rates) in [
        (r#"queue = { limit = "1000 packets" }"#, [1000, 20]),
        // It is the bottleneck.
        (r#"queue = { limit = "5 packets" }"#, [20, 1000]),
        (r#"queue = { limit = "5 packets" }"#, [20, 20]),
    ] {
        assert_eq!(warnings(queue, rates), [""; 0], "{queue}, {rates:?}");
    }
}

/// What a run of ten seconds over one link warns of, with this key on the link.
fn warnings_with(key: &str) -> Vec<String> {
    warnings_of(key, "")
}

/// The same, also with this key on the QUIC flow.
fn warnings_of(key: &str, quic: &str) -> Vec<String> {
    let text = format!(
        r#"
        duration = "10 s"
        node = [{{ name = "a" }}, {{ name = "b" }}]
        link = [{{ between = ["a", "b"], rate = "10 Mbit/s", delay = "10 ms", {key} }}]
        flow = [
            {{ name = "f", count = 3, from = "a", to = "b" }},
            {{ name = "q", from = "a", to = "b", transport = "quic", {quic} }},
            {{ name = "r", from = "a", to = "b", opens = "receiver" }},
        ]
        udp = [{{ from = "a", to = "b", rate = "100 kbit/s" }}]
        "#
    );
    let scenario = common::parse(&text, &[]);
    common::run(&scenario, 1).warnings
}

#[test]
fn outages_that_begin_after_the_end_are_told() {
    let told = warnings_with(r#"outage = { listed = [["10 s", "11 s"]] }"#);
    let late = "link a>b and link b>a: nothing happens before the end of the run at 10 s, the first outage, handover or change of port is at 10 s.";
    assert!(matches!(&told[..], [only] if only.starts_with(late)), "{told:?}");
    assert_eq!(warnings_with(r#"outage = { listed = [["9 s", "11 s"]] }"#), [""; 0]);
}

#[test]
fn ports_that_change_after_the_end_are_told() {
    let told = |interval| warnings_of("", &format!("quic.nat-rebind-interval = {interval:?}"));
    let late = told("10 s");
    assert!(
        matches!(&late[..], [only] if only.starts_with("NAT of flow q: nothing happens before")),
        "{late:?}"
    );
    assert_eq!(told("9 s"), [""; 0]);
}

#[test]
fn connections_that_nobody_answers_are_told() {
    let told = warnings_with(r#"outage = { listed = [["0 s", "10 s"]] }"#);
    let unanswered = "flows f0, f1 and 3 more were never answered: their goodput of 0 ";
    let [tcp_and_quic, udp] = &told[..] else { panic!("{told:?}") };
    assert!(tcp_and_quic.starts_with(unanswered), "{told:?}");
    assert!(udp.starts_with("UDP of a-b: no packet arrived."), "{udp}");
    assert_eq!(warnings_with(r#"outage = { listed = [["0 s", "5 s"]] }"#), [""; 0]);
}

/// The last step of a rate counts for the rest of the run, in what a link is busy and in `load`.
#[test]
fn all_steps_of_a_rate_count_in_what_is_relative_to_it() {
    let text = r#"
        duration = "100 s"
        node = [{ name = "a" }, { name = "b" }]
        [[link]]
        between = ["a", "b"]
        delay = "1 ms"
        rate = { steps = [{ at = "0 s", rate = "1 Mbit/s" }, { at = "10 s", rate = "10 Mbit/s" }] }
        [[udp]]
        from = "a"
        to = "b"
        rate = "saturated"
        stop = "100 s"
        [[flow]]
        name = "web"
        from = "a"
        to = "b"
        traffic = { kind = "arrivals", load = 0.4, link = "b>a", size = "100 kB" }
    "#;
    let scenario = common::parse(text, &[]);
    let metrics = common::run(&scenario, 1);
    let busy = metrics.links[0].utilisation;
    assert!((0.99..1.001).contains(&busy), "{busy}");
    // 0.4 times 910 Mbit are 455 transfers; the standard deviation is 21.
    let started = metrics.transfers[0].started;
    assert!((391..519).contains(&started), "{started}");
}
