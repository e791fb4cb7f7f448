//! Metrics for Prometheus, made from [`Status`] when they are asked for.
//!
//! `METRICS` is the one list: [`text`] writes from it what Prometheus scrapes (text format 0.0.4,
//! the one that promtool checks), [`markdown`] writes docs/gateway-metrics.md. Names follow
//! Prometheus' conventions: base units, `_total` for what only grows.

use crate::signals::SignalSource;
use crate::status::{GroupReport, GroupStatus, LastReload, OutageCounts, ProtocolReport, Status};
use airtcp_core::LinkSignal;
use prometheus::{CounterVec, GaugeVec, Opts, Registry, TextEncoder};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The format of [`text`], for HTTP.
pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// The mechanism's word of groups with wake. Its counters are metrics of their own, as some have
/// the names of other mechanisms' counters.
const WAKE: &str = "wake";

/// Before all names.
const NAMESPACE: &str = "airtcp_gateway";

/// A Prometheus metric.
#[derive(Clone, Copy, Debug)]
struct Metric {
    /// Its name after `airtcp_gateway_`.
    name: &'static str,
    /// Its help text.
    help: &'static str,
    /// Origin of its samples.
    source: Source,
}

/// Origin of a metric, which decides its labels.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// Something of each group.
    Group(fn(&GroupStatus) -> u64),
    /// A mechanism's counter of this name; groups with another mechanism, or with wake, are left
    /// out.
    Mechanism(&'static str),
    /// Wake's counter of this name.
    Wake(&'static str),
    /// Outages of each group, by cause.
    Outages(fn(&OutageCounts) -> f64),
    /// Seconds of each group's longest outage.
    LongestOutage,
    /// The gateway's version.
    Build,
    /// The last start or reload of the configuration.
    Reload(fn(&LastReload) -> f64),
    /// A counter of the dispatcher or the queue.
    Counter(&'static str),
    /// Something of the whole gateway.
    Gateway(fn(&Status) -> u64),
    /// Mobiles away, by their last signal.
    Away,
    /// Signals, by source and signal.
    Signals,
    /// Something that was seen of each group, if the gateway only observes.
    Seen(fn(&GroupReport) -> f64),
    /// Something that was seen of each group's packets, by protocol.
    SeenOf(fn(&ProtocolReport) -> f64),
}

const fn metric(name: &'static str, source: Source, help: &'static str) -> Metric {
    Metric { name, help, source }
}

/// All metrics, in the order of their output.
const METRICS: &[Metric] = {
    use Source::{
        Away, Build, Counter, Gateway, Group, LongestOutage, Mechanism, Outages, Reload, Seen,
        SeenOf, Signals, Wake,
    };
    &[
        metric("build_info", Build, "Always 1; the label is the gateway's version"),
        metric(
            "config_last_reload_successful",
            Reload(|reload| f64::from(u8::from(reload.successful))),
            "1 if the last start or reload of the configuration was successful, 0 if it was rejected",
        ),
        metric(
            "config_last_reload_success_timestamp_seconds",
            Reload(|reload| reload.succeeded_at),
            "Time of the last successful start or reload of the configuration (Unix time)",
        ),
        metric(
            "outages_total",
            Outages(|outages| outages.begun as f64),
            "Outages of mobiles and uplinks, by the source that was the first to report them \
             (silence: nobody announced it; earlier-gateway: it began before this gateway started)",
        ),
        metric(
            "ended_outages_total",
            Outages(|outages| outages.ended as f64),
            "Of these, outages that ended with the mobile's return",
        ),
        metric(
            "outage_seconds_total",
            Outages(|outages| outages.seconds),
            "Length of all outages that are over",
        ),
        metric(
            "ongoing_outages",
            Outages(|outages| outages.ongoing as f64),
            "Outages that are not over: mobiles that are away",
        ),
        metric("longest_outage_seconds", LongestOutage, "The longest outage that is over"),
        metric("flows", Group(|group| group.flows), "Connections known"),
        metric("held_bytes", Group(|group| group.held), "Payload bytes held now"),
        metric(
            "refused_segments_total",
            Group(|group| group.segments_refused),
            "Segments forwarded untouched because a limit was reached",
        ),
        metric(
            "committed_flows",
            Gateway(|status| status.committed),
            "Connections with acknowledged bytes held only by the gateway",
        ),
        metric("away_mobiles", Away, "Mobiles that are not in reach, by the last signal"),
        metric("signals_total", Signals, "Link signals received"),
        metric(
            "passed_packets_total",
            Counter("packets_passed"),
            "Intercepted packets that went on as they came",
        ),
        metric(
            "dropped_packets_total",
            Counter("packets_dropped"),
            "Intercepted packets that went no further: answered by a mechanism, or not needed",
        ),
        metric(
            "held_packets_total",
            Counter("packets_held"),
            "Intercepted packets that a mechanism keeps, to send their data when the mobile is back",
        ),
        metric(
            "injected_packets_total",
            Counter("packets_injected"),
            "Packets of the gateway's own making",
        ),
        metric(
            "undecodable_packets_total",
            Counter("packets_undecodable"),
            "Packets passed untouched because they are not TCP, are fragments or are malformed",
        ),
        metric(
            "unmatched_packets_total",
            Counter("packets_unmatched"),
            "Packets passed untouched because they belong to no group",
        ),
        metric(
            "foreign_packets_total",
            Counter("packets_foreign"),
            "Packets passed untouched because only the hosts can send on their connection \
             (MPTCP, TCP-AO, MD5)",
        ),
        metric(
            "unsendable_packets_total",
            Counter("packets_unsendable"),
            "Packets that could not be encoded, or were too large for wake to keep",
        ),
        metric(
            "failed_injections_total",
            Counter("injections_failed"),
            "Packets of the gateway's own making that the system did not send",
        ),
        metric(
            "mirror_missed_packets_total",
            Counter("mirror_missed_packets"),
            "Packets forwarded but not mirrored for M-TCP+ or holdover because the gateway was too slow",
        ),
        metric(
            "repaired_rules_total",
            Counter("rules_repaired"),
            "Times that firewall rules which another program had removed were restored",
        ),
        metric(
            "unkept_promises_total",
            Counter("promises_unkept"),
            "Connections left to their hosts because a promise could not be put on file",
        ),
        metric(
            "refused_takeovers_total",
            Counter("takeovers_refused"),
            "Connections of an earlier gateway that were reset because this one could not go on with them",
        ),
        metric(
            "too_big_messages_accepted_total",
            Counter("too_big_accepted"),
            "Messages of routers (ICMP) that a segment in flight to a mobile was too big",
        ),
        metric(
            "too_big_messages_ignored_total",
            Counter("too_big_ignored"),
            "Messages of routers (ICMP) that a packet was too big, but no segment in flight to a mobile",
        ),
        metric(
            "agent_reports_taken_total",
            Counter("agent_reports_taken"),
            "Reports of agents that were acted on",
        ),
        metric(
            "agent_reports_repeated_total",
            Counter("agent_reports_repeated"),
            "Reports of agents that came once more because an answer was lost",
        ),
        metric(
            "agent_reports_refused_malformed_total",
            Counter("agent_reports_refused_malformed"),
            "Datagrams refused that are not reports of agents",
        ),
        metric(
            "agent_reports_refused_unknown_key_total",
            Counter("agent_reports_refused_unknown_key"),
            "Reports of agents refused: their key is not known",
        ),
        metric(
            "agent_reports_refused_forged_total",
            Counter("agent_reports_refused_forged"),
            "Reports of agents refused: they were not made with their key",
        ),
        metric(
            "agent_reports_refused_untimely_total",
            Counter("agent_reports_refused_untimely"),
            "Reports of agents refused: old, replayed, or the mobile's clock is wrong (it is told)",
        ),
        metric(
            "agent_reports_refused_not_allowed_total",
            Counter("agent_reports_refused_not_allowed"),
            "Reports of agents refused: the key does not speak for the mobile",
        ),
        metric("copied_segments_total", Mechanism("segments_copied"), "Segments copied"),
        metric(
            "overflows_total",
            Mechanism("overflows"),
            "Segments not copied for want of room in the FIFO or in the group's memory",
        ),
        metric(
            "held_peak_bytes",
            Mechanism("held_peak"),
            "Most payload bytes that one connection held",
        ),
        metric("freezes_total", Mechanism("freezes"), "Times a fixed host was frozen"),
        metric("resumes_total", Mechanism("resumes"), "Times a fixed host was released"),
        metric(
            "early_acked_bytes_total",
            Mechanism("bytes_acked_early"),
            "Bytes acknowledged before the mobile acknowledged them",
        ),
        metric(
            "answers_total",
            Mechanism("answers"),
            "Retransmissions, window probes and keep-alives answered on the mobile's behalf",
        ),
        metric(
            "replays_total",
            Mechanism("replays"),
            "Times copies were replayed from the first to the last",
        ),
        metric(
            "resent_copies_total",
            Mechanism("copies_resent"),
            "Copies sent again after a replay, or to find out whether the mobile is there",
        ),
        metric(
            "sent_probes_total",
            Mechanism("probes_sent"),
            "Keep-alives sent to find out whether the mobile is there",
        ),
        metric(
            "suppressed_acks_total",
            Mechanism("acks_suppressed"),
            "Pure ACKs of the mobile kept from the fixed host",
        ),
        metric(
            "resets_total",
            Mechanism("resets"),
            "Connections reset because the mobile was away for too long",
        ),
        metric(
            "dropped_data_segments_total",
            Mechanism("data_dropped"),
            "Data segments dropped because the mobile had already been sent the same data",
        ),
        metric(
            "reduced_acks_total",
            Mechanism("acks_reduced"),
            "ACKs that went on without the last byte",
        ),
        metric(
            "releases_total",
            Mechanism("releases"),
            "Withheld bytes acknowledged because nothing more came",
        ),
        metric(
            "suppressed_duplicates_total",
            Mechanism("duplicates_suppressed"),
            "Duplicate ACKs kept from the fixed host",
        ),
        metric(
            "local_retransmissions_total",
            Mechanism("local_retransmissions"),
            "Segments sent again to the mobile from a copy",
        ),
        metric(
            "persist_packets_total",
            Mechanism("persist_packets"),
            "Copies sent to find out whether the mobile is there",
        ),
        metric("reconnections_total", Mechanism("reconnections"), "Times a mobile came back"),
        metric(
            "answered_probes_total",
            Mechanism("probes_answered"),
            "Window probes answered on the mobile's behalf",
        ),
        metric(
            "answered_old_segments_total",
            Mechanism("old_segments_answered"),
            "Retransmissions of data that the mobile has, answered on its behalf",
        ),
        metric(
            "dropped_old_acks_total",
            Mechanism("acks_old_dropped"),
            "Old ACKs kept from the fixed host",
        ),
        metric(
            "dropped_duplicate_acks_total",
            Mechanism("acks_duplicate_dropped"),
            "Duplicate ACKs below the threshold kept from the fixed host",
        ),
        metric("forwarded_acks_total", Mechanism("acks_forwarded"), "ACKs forwarded"),
        metric("generated_acks_total", Mechanism("acks_generated"), "ACKs made for the mobile"),
        metric("timeouts_total", Mechanism("timeouts"), "Local time-outs"),
        metric(
            "invalid_sequence_total",
            Mechanism("invalid_sequence"),
            "Invalid segments: their sequence number was outside of the window",
        ),
        metric(
            "invalid_acknowledgement_total",
            Mechanism("invalid_acknowledgement"),
            "Invalid segments: they acknowledged data that was not sent, or acknowledged long before",
        ),
        metric(
            "invalid_reset_total",
            Mechanism("invalid_reset"),
            "Invalid resets: their number was in the window, but not the expected one",
        ),
        metric(
            "invalid_syn_total",
            Mechanism("invalid_syn"),
            "Invalid SYNs: the connection is established",
        ),
        metric(
            "challenge_acks_total",
            Mechanism("challenge_acks"),
            "Challenge ACKs sent to fixed hosts on the mobile's behalf, in answer to invalid segments",
        ),
        metric(
            "resyncs_total",
            Mechanism("resyncs"),
            "Connections picked up anew because both hosts had gone on without the gateway",
        ),
        metric(
            "wake_silences_total",
            Wake("silences"),
            "Times that a mobile was found silent without a signal",
        ),
        metric(
            "wake_releases_total",
            Wake("releases"),
            "Times that a mobile came back and senders that may wait were woken",
        ),
        metric(
            "wake_released_packets_total",
            Wake("packets_released"),
            "Packets sent to wake them",
        ),
        metric(
            "wake_retried_packets_total",
            Wake("packets_retried"),
            "Packets sent to silent mobiles, to find out whether they are back",
        ),
        metric(
            "wake_keep_alives_total",
            Wake("keep_alives"),
            "Keep-alives and echo requests sent to silent mobiles for the same purpose",
        ),
        metric(
            "observed_away_mobiles",
            Seen(|group| group.away as f64),
            "Mobiles that are away, as a gateway that only observes sees it",
        ),
        metric(
            "observed_signalled_outages_total",
            Seen(|group| group.outages_signalled as f64),
            "Outages that began with a signal",
        ),
        metric(
            "observed_silent_outages_total",
            Seen(|group| group.outages_silent as f64),
            "Outages that were noticed because a mobile did not answer",
        ),
        metric(
            "observed_outage_seconds_total",
            Seen(|group| group.outage_seconds),
            "Length of all outages that are over",
        ),
        metric(
            "observed_packets_total",
            SeenOf(|protocol| protocol.packets as f64),
            "Packets from and to mobiles",
        ),
        metric("observed_bytes_total", SeenOf(|protocol| protocol.bytes as f64), "Their bytes"),
        metric(
            "observed_flows_total",
            SeenOf(|protocol| protocol.flows as f64),
            "Flows from and to mobiles, about",
        ),
        metric(
            "observed_stalled_flows_total",
            SeenOf(|protocol| protocol.stalled as f64),
            "Flows that were sent something while their mobile was away, each once an outage",
        ),
        metric(
            "observed_resumed_flows_total",
            SeenOf(|protocol| protocol.resumed as f64),
            "Of these, flows that went on when it was back",
        ),
        metric(
            "observed_least_saved_seconds_total",
            SeenOf(|protocol| protocol.saved_least),
            "What a gateway would have saved these flows, all together, at least",
        ),
        metric(
            "observed_most_saved_seconds_total",
            SeenOf(|protocol| protocol.saved_most),
            "What a gateway would have saved these flows, all together, at most",
        ),
    ]
};

/// Labels with their values, and the value.
type Sample<'a> = (Vec<&'a str>, f64);

impl Source {
    fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Group(_) | Self::Mechanism(_) => &["group", "mechanism"],
            Self::Counter(_) | Self::Gateway(_) | Self::Reload(_) => &[],
            Self::Wake(_) | Self::LongestOutage => &["group"],
            Self::Outages(_) => &["group", "cause"],
            Self::Build => &["version"],
            Self::Away => &["signal"],
            Self::Signals => &["source", "signal"],
            Self::Seen(_) => &["group"],
            Self::SeenOf(_) => &["group", "protocol"],
        }
    }

    /// What has not happened counts as 0: a series that begins with its first event hides it from
    /// Prometheus' `increase`.
    fn samples<'a>(self, status: &'a Status) -> Vec<Sample<'a>> {
        let of_groups = |value: &dyn Fn(&GroupStatus) -> Option<u64>| {
            let sample = |group: &'_ GroupStatus| value(group);
            status
                .groups
                .iter()
                .filter_map(|group| {
                    let labels = vec![group.name.as_str(), group.mechanism.as_str()];
                    Some((labels, sample(group)? as f64))
                })
                .collect()
        };
        let observed = status.report.iter().flat_map(|report| &report.groups);
        match self {
            Self::Group(value) => of_groups(&|group| Some(value(group))),
            Self::Mechanism(name) => of_groups(&|group| {
                group.counters.get(name).copied().filter(|_| group.mechanism != WAKE)
            }),
            Self::Wake(name) => {
                let wake = status.groups.iter().filter(|group| group.mechanism == WAKE);
                let sample = |group: &'a GroupStatus| {
                    Some((vec![group.name.as_str()], *group.counters.get(name)? as f64))
                };
                wake.filter_map(sample).collect()
            }
            Self::Outages(value) => {
                let of_group = |group: &'a GroupStatus| {
                    SignalSource::ALL.into_iter().map(move |cause| {
                        let counts = group.outages.get(cause.name()).copied().unwrap_or_default();
                        (vec![group.name.as_str(), cause.name()], value(&counts))
                    })
                };
                status.groups.iter().flat_map(of_group).collect()
            }
            Self::LongestOutage => {
                let ended = |group: &&GroupStatus| group.outages.values().any(|of| of.ended > 0);
                let groups = status.groups.iter().filter(ended);
                groups.map(|group| (vec![group.name.as_str()], group.longest_outage)).collect()
            }
            Self::Build => vec![(vec![status.version.as_str()], 1.0)],
            Self::Reload(value) => {
                status.reload.iter().map(|reload| (vec![], value(reload))).collect()
            }
            Self::Counter(name) => {
                status.counters.get(name).map(|value| (vec![], *value as f64)).into_iter().collect()
            }
            Self::Gateway(value) => vec![(vec![], value(status) as f64)],
            Self::Away => {
                let mut away = BTreeMap::from(AWAY.map(|signal| (signal.name(), 0_u64)));
                for signal in status.away.values() {
                    *away.entry(signal).or_default() += 1;
                }
                away.into_iter().map(|(signal, mobiles)| (vec![signal], mobiles as f64)).collect()
            }
            Self::Signals => {
                let number = |source: SignalSource, signal: LinkSignal| {
                    let of_source = status.signals.get(source.name());
                    of_source.and_then(|signals| signals.get(signal.name())).copied().unwrap_or(0)
                };
                let of_source = |source: SignalSource| {
                    LinkSignal::ALL.into_iter().map(move |signal| {
                        (vec![source.name(), signal.name()], number(source, signal) as f64)
                    })
                };
                SignalSource::ALL.into_iter().flat_map(of_source).collect()
            }
            Self::Seen(value) => {
                let of_group = |group: &'a GroupReport| (vec![group.name.as_str()], value(group));
                observed.map(of_group).collect()
            }
            Self::SeenOf(value) => {
                let of_group = |group: &'a GroupReport| {
                    let label = |name| vec![group.name.as_str(), name];
                    group.protocols().map(|(name, seen)| (label(name), value(seen)))
                };
                observed.flat_map(of_group).collect()
            }
        }
    }
}

/// The latest signals of mobiles that are out of reach, or soon will be.
const AWAY: [LinkSignal; 2] = [LinkSignal::Fading, LinkSignal::Down];

impl Metric {
    fn is_counter(&self) -> bool {
        self.name.ends_with("_total")
    }

    /// Puts its samples into the registry.
    fn register(&self, status: &Status, registry: &Registry) -> prometheus::Result<()> {
        let options = Opts::new(self.name, self.help).namespace(NAMESPACE);
        let (labels, samples) = (self.source.labels(), self.source.samples(status));
        if self.is_counter() {
            let family = CounterVec::new(options, labels)?;
            for (values, value) in samples {
                family.get_metric_with_label_values(&values)?.inc_by(value);
            }
            registry.register(Box::new(family))
        } else {
            let family = GaugeVec::new(options, labels)?;
            for (values, value) in samples {
                family.get_metric_with_label_values(&values)?.add(value);
            }
            registry.register(Box::new(family))
        }
    }
}

/// The exposition text that Prometheus scrapes. A metric without samples is left out.
pub fn text(status: &Status) -> String {
    let registry = Registry::new();
    for metric in METRICS {
        metric.register(status, &registry).expect("names are valid and each is there once");
    }
    TextEncoder::new().encode_to_string(&registry.gather()).expect("integers and UTF-8")
}

/// The text of `docs/gateway-metrics.md`.
pub fn markdown() -> String {
    let mut out = "<!-- Generated: airtcp gateway metrics --markdown > docs/gateway-metrics.md -->\n\n\
         # Metrics of `airtcp gateway`\n\n\
         Served for Prometheus at the configured address, path `/metrics`; `airtcp gateway metrics` prints them.\n\
         Metrics that a group's mechanism does not have are left out.\n\n\
         | metric | type | labels | meaning |\n|---|---|---|---|\n"
        .to_owned();
    for metric in METRICS {
        let kind = if metric.is_counter() { "counter" } else { "gauge" };
        let labels = metric.source.labels().join(", ");
        let _ = writeln!(
            out,
            "| `{NAMESPACE}_{}` | {kind} | {labels} | {}. |",
            metric.name, metric.help
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::SharedBytes;
    use crate::status::Report;
    use airtcp_core::Bytes;
    use airtcp_edge::{
        FlowTableConfig, HoldoverConfig, MTcpConfig, MTcpPlusConfig, Mechanism, MechanismConfig,
        SnoopConfig, WakeCounters,
    };
    use airtcp_testing::prometheus::{check_metrics, program};

    fn counts(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
    }

    fn group(name: &str, mechanism: &str, counters: &[(&str, u64)]) -> GroupStatus {
        GroupStatus {
            name: name.to_owned(),
            mechanism: mechanism.to_owned(),
            path: "nfqueue".to_owned(),
            flows: 2,
            held: 1000,
            segments_refused: 3,
            counters: counts(counters),
            ..GroupStatus::default()
        }
    }

    fn busy() -> Status {
        let away = ["10.0.0.7", "10.0.0.8"].map(|m| (m.to_owned(), "down".to_owned()));
        let mut cars = group("cars", "m-tcp-plus", &[("freezes", 4), ("held_peak", 500)]);
        let counts_of =
            |begun, ended, seconds| OutageCounts { begun, ended, ongoing: begun - ended, seconds };
        cars.outages = [("agent", counts_of(3, 1, 12.5)), ("silence", counts_of(1, 1, 4.25))]
            .map(|(cause, counts)| (cause.to_owned(), counts))
            .into();
        cars.longest_outage = 12.5;
        Status {
            version: "0.1.0".to_owned(),
            reload: Some(LastReload { successful: false, succeeded_at: 1_795_888_334.25 }),
            groups: vec![cars, group("a \"b\" \\ c", "packet-control", &[("acks_forwarded", 9)])],
            committed: 1,
            away: BTreeMap::from(away),
            counters: counts(&[("packets_passed", 12)]),
            signals: BTreeMap::from([("control".to_owned(), counts(&[("down", 2), ("up", 1)]))]),
            ..Status::default()
        }
    }

    #[test]
    fn a_busy_gateway() {
        let text = text(&busy());
        // Of causes and signals that there were none of, another test says that they count as 0.
        let is_of_none = |line: &&str| {
            line.ends_with("\"} 0") && (line.contains("cause=\"") || line.contains("signal=\""))
        };
        let told: Vec<&str> = text.lines().filter(|line| !is_of_none(line)).collect();
        assert_eq!(
            told.join("\n") + "\n",
            r#"# HELP airtcp_gateway_away_mobiles Mobiles that are not in reach, by the last signal
# TYPE airtcp_gateway_away_mobiles gauge
airtcp_gateway_away_mobiles{signal="down"} 2
# HELP airtcp_gateway_build_info Always 1; the label is the gateway's version
# TYPE airtcp_gateway_build_info gauge
airtcp_gateway_build_info{version="0.1.0"} 1
# HELP airtcp_gateway_committed_flows Connections with acknowledged bytes held only by the gateway
# TYPE airtcp_gateway_committed_flows gauge
airtcp_gateway_committed_flows 1
# HELP airtcp_gateway_config_last_reload_success_timestamp_seconds Time of the last successful start or reload of the configuration (Unix time)
# TYPE airtcp_gateway_config_last_reload_success_timestamp_seconds gauge
airtcp_gateway_config_last_reload_success_timestamp_seconds 1795888334.25
# HELP airtcp_gateway_config_last_reload_successful 1 if the last start or reload of the configuration was successful, 0 if it was rejected
# TYPE airtcp_gateway_config_last_reload_successful gauge
airtcp_gateway_config_last_reload_successful 0
# HELP airtcp_gateway_ended_outages_total Of these, outages that ended with the mobile's return
# TYPE airtcp_gateway_ended_outages_total counter
airtcp_gateway_ended_outages_total{cause="agent",group="cars"} 1
airtcp_gateway_ended_outages_total{cause="silence",group="cars"} 1
# HELP airtcp_gateway_flows Connections known
# TYPE airtcp_gateway_flows gauge
airtcp_gateway_flows{group="a \"b\" \\ c",mechanism="packet-control"} 2
airtcp_gateway_flows{group="cars",mechanism="m-tcp-plus"} 2
# HELP airtcp_gateway_forwarded_acks_total ACKs forwarded
# TYPE airtcp_gateway_forwarded_acks_total counter
airtcp_gateway_forwarded_acks_total{group="a \"b\" \\ c",mechanism="packet-control"} 9
# HELP airtcp_gateway_freezes_total Times a fixed host was frozen
# TYPE airtcp_gateway_freezes_total counter
airtcp_gateway_freezes_total{group="cars",mechanism="m-tcp-plus"} 4
# HELP airtcp_gateway_held_bytes Payload bytes held now
# TYPE airtcp_gateway_held_bytes gauge
airtcp_gateway_held_bytes{group="a \"b\" \\ c",mechanism="packet-control"} 1000
airtcp_gateway_held_bytes{group="cars",mechanism="m-tcp-plus"} 1000
# HELP airtcp_gateway_held_peak_bytes Most payload bytes that one connection held
# TYPE airtcp_gateway_held_peak_bytes gauge
airtcp_gateway_held_peak_bytes{group="cars",mechanism="m-tcp-plus"} 500
# HELP airtcp_gateway_longest_outage_seconds The longest outage that is over
# TYPE airtcp_gateway_longest_outage_seconds gauge
airtcp_gateway_longest_outage_seconds{group="cars"} 12.5
# HELP airtcp_gateway_ongoing_outages Outages that are not over: mobiles that are away
# TYPE airtcp_gateway_ongoing_outages gauge
airtcp_gateway_ongoing_outages{cause="agent",group="cars"} 2
# HELP airtcp_gateway_outage_seconds_total Length of all outages that are over
# TYPE airtcp_gateway_outage_seconds_total counter
airtcp_gateway_outage_seconds_total{cause="agent",group="cars"} 12.5
airtcp_gateway_outage_seconds_total{cause="silence",group="cars"} 4.25
# HELP airtcp_gateway_outages_total Outages of mobiles and uplinks, by the source that was the first to report them (silence: nobody announced it; earlier-gateway: it began before this gateway started)
# TYPE airtcp_gateway_outages_total counter
airtcp_gateway_outages_total{cause="agent",group="cars"} 3
airtcp_gateway_outages_total{cause="silence",group="cars"} 1
# HELP airtcp_gateway_passed_packets_total Intercepted packets that went on as they came
# TYPE airtcp_gateway_passed_packets_total counter
airtcp_gateway_passed_packets_total 12
# HELP airtcp_gateway_refused_segments_total Segments forwarded untouched because a limit was reached
# TYPE airtcp_gateway_refused_segments_total counter
airtcp_gateway_refused_segments_total{group="a \"b\" \\ c",mechanism="packet-control"} 3
airtcp_gateway_refused_segments_total{group="cars",mechanism="m-tcp-plus"} 3
# HELP airtcp_gateway_signals_total Link signals received
# TYPE airtcp_gateway_signals_total counter
airtcp_gateway_signals_total{signal="down",source="control"} 2
airtcp_gateway_signals_total{signal="up",source="control"} 1
"#
        );
        let over = "airtcp_gateway_ongoing_outages{cause=\"silence\",group=\"cars\"} 0\n";
        assert!(text.contains(over), "{text}");
    }

    #[test]
    fn what_has_not_happened_is_counted_from_the_start() {
        let text = text(&Status { groups: vec![group("cars", "wake", &[])], ..Status::default() });
        for line in [
            "airtcp_gateway_outages_total{cause=\"agent\",group=\"cars\"} 0\n",
            "airtcp_gateway_ongoing_outages{cause=\"silence\",group=\"cars\"} 0\n",
            "airtcp_gateway_signals_total{signal=\"down\",source=\"agent\"} 0\n",
            "airtcp_gateway_away_mobiles{signal=\"down\"} 0\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    fn observed() -> Report {
        let quic = ProtocolReport { bytes: 1_500, saved_most: 2.5, ..ProtocolReport::default() };
        let group = GroupReport {
            name: "cars".to_owned(),
            quic,
            outage_seconds: 9.5,
            ..GroupReport::default()
        };
        Report { seconds: 60.0, groups: vec![group] }
    }

    #[test]
    fn what_was_observed_is_told_by_group_and_protocol() {
        let text = text(&Status { report: Some(observed()), ..Status::default() });
        for line in [
            "airtcp_gateway_observed_outage_seconds_total{group=\"cars\"} 9.5\n",
            "airtcp_gateway_observed_bytes_total{group=\"cars\",protocol=\"quic\"} 1500\n",
            "airtcp_gateway_observed_most_saved_seconds_total{group=\"cars\",protocol=\"quic\"} 2.5\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn every_counter_of_every_mechanism_is_a_metric() {
        let configs = [
            MechanismConfig::PacketControl { threshold: 3 },
            MechanismConfig::MTcp(MTcpConfig::default()),
            MechanismConfig::MTcpPlus(MTcpPlusConfig::default()),
            MechanismConfig::Holdover(HoldoverConfig::default()),
            MechanismConfig::Snoop(SnoopConfig::default()),
        ];
        let table = FlowTableConfig { limit: 1, ..FlowTableConfig::default() };
        for config in configs {
            let mechanism = Mechanism::<SharedBytes>::new(&config, table, Bytes(1000)).unwrap();
            for name in mechanism.counters().keys() {
                let is_it = |m: &&Metric| matches!(m.source, Source::Mechanism(n) if n == *name);
                assert_eq!(METRICS.iter().filter(is_it).count(), 1, "{name}");
            }
        }
        for name in WakeCounters::default().by_name().keys() {
            let is_it = |m: &&Metric| matches!(m.source, Source::Wake(n) if n == *name);
            assert_eq!(METRICS.iter().filter(is_it).count(), 1, "{name}");
        }
    }

    #[test]
    fn a_counter_of_wake_is_no_counter_of_another_mechanism_with_the_same_name() {
        let groups = ["wake", "m-tcp"].map(|word| group(word, word, &[("releases", 5)])).into();
        let text = text(&Status { groups, ..Status::default() });
        let samples: Vec<&str> =
            text.lines().filter(|line| line.contains("releases_total{")).collect();
        assert_eq!(
            samples,
            [
                r#"airtcp_gateway_releases_total{group="m-tcp",mechanism="m-tcp"} 5"#,
                r#"airtcp_gateway_wake_releases_total{group="wake"} 5"#,
            ]
        );
    }

    #[test]
    fn the_documentation_is_up_to_date() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gateway-metrics.md");
        let text = std::fs::read_to_string(file).unwrap_or_default();
        assert!(text == markdown(), "airtcp gateway metrics --markdown > docs/gateway-metrics.md");
    }

    #[test]
    fn promtool_finds_no_fault() {
        let Some(promtool) = program("promtool") else { return };
        let mut status = Status { report: Some(observed()), ..busy() };
        status.groups.push(group("trains", WAKE, &[]));
        // One sample of each metric.
        for metric in METRICS {
            match metric.source {
                Source::Mechanism(name) => status.groups[0].counters.extend(counts(&[(name, 1)])),
                Source::Wake(name) => status.groups[2].counters.extend(counts(&[(name, 1)])),
                Source::Counter(name) => status.counters.extend(counts(&[(name, 1)])),
                _ => {}
            }
        }
        check_metrics(&promtool, text(&status).as_bytes());
    }
}
