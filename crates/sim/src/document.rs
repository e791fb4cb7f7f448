//! What a run gives out, as documentation: `airtcp schema --metrics`.

use crate::metrics::{
    CallMetrics, FlowMetrics, LinkMetrics, MiddleboxMetrics, QuicMetrics, RunMetrics,
    StationMetrics, TransferMetrics, UdpMetrics, VideoMetrics,
};
use crate::trace::recorder::Series;
use crate::world::SplitCounters;
use airtcp_core::documented::Documented;
use airtcp_core::event::{AbortReason, Cause, DropReason, Event, PlayerState, Spurious};
use airtcp_edge::MechanismConfig;
use std::fmt::Write;

const INTRODUCTION: &str = "# Metrics and events

<!-- Generated from the declarations. Do not edit: `cargo run -p airtcp-cli -- schema --metrics > docs/metrics.md` -->

`airtcp run --json` prints one JSON object a line for each run; in Python it is `Run.metrics`. A study takes a field by
`from = \"flow.FIELD\"`, `quic.FIELD`, `link.FIELD`, `station.FIELD`, `udp.FIELD`, `transfer.FIELD`, `video.FIELD`,
`call.FIELD`, `middlebox.FIELD` or `run.FIELD` ([studies](studies.md)).
Numbers are in SI units: seconds, bit/s, bytes. Percentiles are of the nearest rank, from buckets 3 % wide: the middle
of a bucket is at most 1.6 % off.
";

const SERIES: &str = "
## Time series

In Python, `Scenario.run(trace=\"NAME\")` records them, `Run.trace` returns them, and `airtcp.SERIES` has this table. A
study takes them by `from = \"trace.NAME\"` and `series` of its figures. Of a flow whose transfers have connections of
their own (`kind = \"arrivals\"`) they have the values of all of these, in the order of time, and positions in
the stream of each.

| series | its values |
|---|---|
";

const EVENTS: &str = "
## Events

`airtcp run --events FILE` writes one JSON object a line for each event: `t`, the simulated time in seconds; `source`,
who published it (`flow NAME sender`, `flow NAME receiver`, `link NAME`, `node NAME`); `event`, its kind; and the fields
below. Where each transfer of a flow has a connection of its own (`kind = \"arrivals\"`), `transfer` is the number of that
transfer, from 0. Times are in seconds, sizes in bytes; sequence and acknowledgement numbers are as in the segments.

| event | meaning | fields |
|---|---|---|
";

/// The parts of a run: name, title and fields.
const PARTS: [(&str, &str, &[Documented]); 10] = [
    ("runs", "A run", RunMetrics::FIELDS),
    ("flows", "`flows`: one TCP flow", FlowMetrics::FIELDS),
    ("quic", "`quic`: one QUIC flow", QuicMetrics::FIELDS),
    ("links", "`links`: one unidirectional link", LinkMetrics::FIELDS),
    ("stations", "`stations`: one station of a wireless cell", StationMetrics::FIELDS),
    ("udp", "`udp`: one source of cross traffic", UdpMetrics::FIELDS),
    ("transfers", "`transfers`: the transfers of one flow", TransferMetrics::FIELDS),
    ("videos", "`videos`: one player of video", VideoMetrics::FIELDS),
    ("calls", "`calls`: one direction of a voice call", CallMetrics::FIELDS),
    ("middleboxes", "`middleboxes`: one node with a middlebox", MiddleboxMetrics::FIELDS),
];

/// The fields of a run's parts, by the name of the part; those of the run itself under `runs`.
pub fn fields() -> [(&'static str, &'static [Documented]); 10] {
    PARTS.map(|(part, _, fields)| (part, fields))
}

/// The text of `docs/metrics.md`.
pub fn markdown() -> String {
    let mut out = INTRODUCTION.to_owned();
    let [parts @ .., (_, middleboxes, fields)] = &PARTS;
    for (_, title, fields) in parts {
        table(&mut out, title, fields);
    }
    let (counters, fields) = fields.split_last().expect("it has counters");
    table(&mut out, middleboxes, fields);
    let _ = writeln!(out, "\n{}", prose(counters));
    for (word, fields) in counters_by_word() {
        let _ = writeln!(out, "\n| counter of `{word}` | meaning |\n|---|---|");
        rows(&mut out, fields);
    }
    out.push_str("\n| counter of all but `wake` and `split` | meaning |\n|---|---|\n");
    rows(&mut out, MechanismConfig::INVALID_PACKETS);
    out.push_str(SERIES);
    for series in Series::ALL {
        let _ = writeln!(out, "| `{}` | {} |", series.name(), series.about());
    }
    out.push_str(EVENTS);
    for event in Event::VARIANTS {
        let fields: Vec<String> = event.fields.iter().map(field).collect();
        let name = snake_case(event.name);
        let _ = writeln!(out, "| `{name}` | {} | {} |", prose(event), fields.join("<br>"));
    }
    out
}

/// The counters of each mechanism, by its word.
fn counters_by_word() -> Vec<(&'static str, &'static [Documented])> {
    [MechanismConfig::COUNTERS, &[("split", SplitCounters::FIELDS)]].concat()
}

fn table(out: &mut String, title: &str, fields: &[Documented]) {
    let _ = writeln!(out, "\n## {title}\n\n| field | meaning |\n|---|---|");
    rows(out, fields);
}

fn rows(out: &mut String, fields: &[Documented]) {
    for field in fields {
        let _ = writeln!(out, "| `{}` | {} |", field.name, prose(field));
    }
}

/// The docstring in the words of JSON.
fn prose(of: &Documented) -> String {
    of.prose.replace("`None`", "`null`")
}

/// A field of an event, and its words if it is one of some.
fn field(field: &Documented) -> String {
    let name = match field.kind {
        // A flow is written as its two ends.
        "Flow" => "`src`, `dst`".to_owned(),
        _ => format!("`{}`", field.name),
    };
    let words = match field.kind {
        "Cause" => Cause::VARIANTS,
        "Spurious" => Spurious::VARIANTS,
        "DropReason" => DropReason::VARIANTS,
        "AbortReason" => AbortReason::VARIANTS,
        "PlayerState" => PlayerState::VARIANTS,
        _ => &[],
    };
    let text = prose(field);
    if words.is_empty() {
        return format!("{name}: {text}");
    }
    let words: Vec<String> = words
        .iter()
        .map(|word| format!("`{}` ({})", snake_case(word.name), prose(word).trim_end_matches('.')))
        .collect();
    format!("{name}: {} {}.", text, words.join(", "))
}

/// As the writer of events has it.
fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.char_indices() {
        if c.is_ascii_uppercase() && i > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::World;
    use crate::scenario::{MechanismSpec, Scenario};
    use std::collections::BTreeSet;

    #[test]
    fn the_committed_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == markdown(),
            "docs/metrics.md is stale; regenerate it: \
             cargo run -p airtcp-cli -- schema --metrics > docs/metrics.md"
        );
    }

    #[test]
    fn every_counter_of_every_mechanism_has_a_row() {
        let words: Vec<&str> = counters_by_word().iter().map(|(word, _)| *word).collect();
        let known: Vec<&str> = MechanismSpec::WORDS.iter().map(|(word, _)| *word).collect();
        assert_eq!(words, known);
    }

    #[test]
    fn the_fields_of_a_run_are_those_documented() {
        let text = r#"
            duration = "1 s"
            node = [{ name = "A" }, { name = "B", middlebox = { mechanism = "snoop", mobiles = ["C"] } }, { name = "C" }]
            link = [{ between = ["A", "B"], rate = "1 Mbit/s", delay = "1 ms" }]
            wlan = [{ name = "cell", stations = ["B", "C"] }]
            udp = [{ from = "A", to = "C", rate = "1 kbit/s" }]
            call = [{ name = "call", from = "A", to = "C" }]
            flow = [
                { from = "A", to = "C" },
                { name = "get", from = "A", to = "C", transport = "quic" },
                { name = "web", from = "A", to = "C", traffic = { kind = "requests", answer = "1 kB" } },
                { name = "film", from = "A", to = "C", traffic = { kind = "video", ladder = ["1 Mbit/s"] } },
            ]"#;
        let scenario = Scenario::parse("t.toml", text, &[]).expect("a right scenario");
        let run = serde_json::to_value(World::new(&scenario, 1).metrics()).expect("numbers");
        let fields = |object: &serde_json::Value| {
            object.as_object().expect("an object").keys().cloned().collect::<BTreeSet<_>>()
        };
        let documented = |fields: &[Documented]| {
            fields.iter().map(|field| field.name.to_owned()).collect::<BTreeSet<_>>()
        };
        assert_eq!(fields(&run), documented(RunMetrics::FIELDS));
        assert_eq!(fields(&run["flows"][0]), documented(FlowMetrics::FIELDS));
        assert_eq!(fields(&run["quic"][0]), documented(QuicMetrics::FIELDS));
        assert_eq!(fields(&run["links"][0]), documented(LinkMetrics::FIELDS));
        assert_eq!(fields(&run["stations"][0]), documented(StationMetrics::FIELDS));
        assert_eq!(fields(&run["udp"][0]), documented(UdpMetrics::FIELDS));
        assert_eq!(fields(&run["transfers"][0]), documented(TransferMetrics::FIELDS));
        assert_eq!(fields(&run["videos"][0]), documented(VideoMetrics::FIELDS));
        assert_eq!(fields(&run["calls"][0]), documented(CallMetrics::FIELDS));
        let snoop = MechanismConfig::COUNTERS.iter().find(|(word, _)| *word == "snoop");
        let mut middlebox = documented(snoop.expect("it is there").1);
        middlebox.extend(documented(MechanismConfig::INVALID_PACKETS));
        middlebox.extend(["name", "kind", "segments_refused"].map(str::to_owned));
        assert_eq!(fields(&run["middleboxes"][0]), middlebox);
    }
}
