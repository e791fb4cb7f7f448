//! Reading files: the diagnostics, with spans and carets, and what is read.

use airtcp_config::{ConfigError, Moment, Override, Section, document, locate, read};
use airtcp_core::{Bytes, DataRate, Duration, Instant, Position};
use airtcp_settings::schema::Fallback::{Absent, Is, Required};
use airtcp_settings::schema::{
    Conditions, Count, Field, Key, Kind, Only, POSITIVE_TIME, PROBABILITY, TIME, Table, TextKind,
    field,
};
use airtcp_settings::{InTable, Name, Settings, alternatives, settings, units};
use proptest::prelude::*;

alternatives! {
    /// A queue.
    #[derive(Clone, Debug, PartialEq)]
    #[table("queue")]
    #[choice("kind", "The discipline.")]
    #[absent(Queue::DropTail { limit: 50 })]
    pub enum Queue {
        /// drops what does not fit
        "drop-tail" => DropTail {
            /// Packets that fit.
            #[kind = Kind::WholePackets]
            limit: u64 = 50,
        },
        /// drops at random
        "red" => Red {
            /// Packets that fit.
            #[kind = Kind::WholePackets]
            limit: u64 = 100,
            /// Probability at the upper threshold.
            #[kind = PROBABILITY]
            p: f64 = 0.1,
        },
    }
}

settings! {
    #[partial]
    /// A pipe.
    #[derive(Clone, Debug, PartialEq)]
    #[table("pipe")]
    pub struct Pipe {
        /// Bits per second.
        pub rate: DataRate,
        /// One way.
        #[kind = POSITIVE_TIME]
        pub delay: Duration = Duration::from_millis(5),
        /// Largest packet.
        pub mtu: Bytes = Bytes(1500),
        /// Packets before this one are lost.
        pub lost: u64 = 0,
        /// Marks packets.
        pub ecn: bool = false,
        /// What waits.
        #[absent = "50 packets"]
        pub queue: Queue = Queue::default(),
    }
}

static PORT: TextKind = TextKind {
    name: "port",
    plural: "ports",
    expected: "a port, such as 80",
    expected_plural: "ports",
};

static VALUES: Table = Table::new(
    "values",
    "One key of each kind.",
    &[Key::Fields(&[
        field("name", Kind::Name, Absent("none"), "A name."),
        field("text", Kind::Text(&PORT), Absent("none"), "A text."),
        field("texts", Kind::Texts { of: &PORT, count: Count::Some }, Absent("none"), "Texts."),
        field("two", Kind::Texts { of: &PORT, count: Count::Two }, Absent("none"), "Two texts."),
        field("bool", Kind::Bool, Is("false"), "A flag."),
        field("integer", Kind::Integer { min: 1, max: 9 }, Is("1"), "A whole number."),
        field("number", PROBABILITY, Is("0"), "A number."),
        field("time", TIME, Is("0 s"), "A duration."),
        field("moment", Kind::Moment, Absent("none"), "A moment."),
        field("rate", Kind::Rate, Absent("none"), "A rate."),
        field("size", Kind::Size { min: 1, max: 99 }, Absent("none"), "A size."),
        field("length", Kind::Measure(&units::LENGTH), Absent("none"), "A length."),
        field("point", Kind::Point, Absent("none"), "A place."),
        field("packets", Kind::Packets, Absent("none"), "An average."),
        field("limit", Kind::PacketsOrSize, Absent("none"), "A limit."),
        field("pair", Kind::DurationPair, Absent("none"), "Two durations."),
        field("intervals", Kind::Intervals, Absent("none"), "Intervals."),
        field("path", Kind::Waypoints, Absent("none"), "A path."),
        field("ordinals", Kind::Ordinals, Absent("none"), "Numbers."),
        field("maybe", Kind::WordOr("none", &Kind::Rate), Is("none"), "A rate, or none."),
        field("choice", Kind::Choice(&[("a", "one"), ("b", "two")]), Is("a"), "A word."),
    ])],
);

const MECHANISM: Kind = Kind::Choice(&[("none", "nothing"), ("copy", "copies"), ("wake", "wakes")]);
const DETECT: Kind = Kind::Choice(&[("timer", "by time"), ("signal", "by a signal")]);
const SIGNAL: Field = field("signal", TIME, Is("0 s"), "Delay of signals.");

static EDGE: Table = Table::new(
    "edge",
    "Keys that depend on one choice or two.",
    &[Key::Fields(&[
        field("mechanism", MECHANISM, Is("none"), "What is done."),
        field("detect", DETECT, Is("timer"), "How.").only("mechanism", &["copy"]),
        field("memory", TIME, Required, "For copies.").only("mechanism", &["copy"]),
        SIGNAL.only("mechanism", &["wake"]),
        SIGNAL.under(Conditions::two(
            Only { choice: "mechanism", words: &["copy"] },
            Only { choice: "detect", words: &["signal"] },
        )),
    ])],
);

static FILE: Table = Table::new(
    "file",
    "The top level.",
    &[Key::Fields(&[
        field("duration", POSITIVE_TIME, Required, "How long."),
        field("pipe", Kind::Tables(Pipe::TABLE), Required, "Pipes.").named_by(&["rate"]),
        field("all", Kind::Table(Pipe::TABLE), Absent("none"), "What pipes share."),
        field("values", Kind::Table(&VALUES), Absent("none"), "One of each."),
        field("edge", Kind::Table(&EDGE), Absent("none"), "Conditions."),
    ])],
);

fn overrides(set: &[(&str, &str)]) -> Vec<Override> {
    set.iter().map(|(path, value)| Override::new("--set", path, value)).collect()
}

fn edge(section: &Section<'_>) {
    use airtcp_settings::Reader;
    let Some(word) = section.get::<&str>("mechanism") else { return };
    Reader::chosen(section, "mechanism", word);
    if word == "copy" {
        section.get::<Duration>("memory");
        let Some(word) = section.get::<&str>("detect") else { return };
        Reader::chosen(section, "detect", word);
    }
    if section.written("signal") {
        section.get::<Duration>("signal");
    }
}

/// Reads a file as [`FILE`]; the pipes are those of the file.
fn pipes(text: &str, set: &[(&str, &str)]) -> Result<Vec<Pipe>, ConfigError> {
    read(&FILE, "f.toml", text, &overrides(set), |top| {
        let duration = top.get::<Duration>("duration");
        let pipes: Vec<Option<Pipe>> =
            top.elements("pipe").iter().map(|section| Pipe::read(section, None)).collect();
        if let Some(section) = top.chosen("edge") {
            edge(&section);
        }
        duration?;
        pipes.into_iter().collect()
    })
}

/// The diagnostics of a file, a line each.
#[track_caller]
fn refuses(text: &str, expected: &[&str]) {
    let error = pipes(text, &[]).expect_err(text).to_string();
    assert_eq!(error.lines().collect::<Vec<_>>(), expected);
}

const PIPE: &str = "duration = \"1 s\"\n[[pipe]]\nrate = \"1 Mbit/s\"\n";

/// The diagnostics of a sound pipe with more lines.
#[track_caller]
fn refuses_in_pipe(lines: &str, expected: &[&str]) {
    refuses(&format!("{PIPE}{lines}"), expected);
}

/// Reads `[values]`, one key of it.
fn value<T: airtcp_settings::Value>(line: &str) -> Result<T, String> {
    let key = line.split(' ').next().unwrap().to_owned();
    let text = format!("[values]\n{line}");
    let value = read(&FILE, "f.toml", &text, &[], |top| top.chosen("values")?.get::<T>(&key));
    value.map_err(|error| error.to_string())
}

#[test]
fn a_key_of_the_top_level_that_stands_below_a_table_is_told_its_place() {
    let pipe = "[[pipe]]\nrate = \"1 Mbit/s\"\n";
    refuses(
        &format!("{pipe}duration = \"1 s\"\n"),
        &[
            "f.toml:3:1: pipe.1 Mbit/s.duration: unknown key (expected at the top of the file, before the first [table]: here \
             it belongs to the table above)",
            "f.toml:1:1: duration: missing (expected a duration above zero with its unit, such as \"170 ms\")",
        ],
    );
    refuses_in_pipe(
        "edge.mechanism = \"none\"",
        &[
            "f.toml:4:1: pipe.1 Mbit/s.edge: unknown key (expected [edge], which is no part of another table)",
        ],
    );
    refuses_in_pipe(
        "[[pipe.pipe]]",
        &[
            "f.toml:4:8: pipe.1 Mbit/s.pipe: unknown key (expected [[pipe]], which is no part of another table)",
        ],
    );
    let error = pipes(PIPE, &[("pipe.0.duration", "1 s")]).unwrap_err().to_string();
    assert_eq!(error, "--set:1:1: pipe.1 Mbit/s.duration: unknown key (did you mean `duration`?)");
    // A word is no table.
    let known = "unknown key (expected one of rate, delay, mtu, lost, ecn, queue)";
    refuses_in_pipe("edge = \"copy\"", &[&format!("f.toml:4:1: pipe.1 Mbit/s.edge: {known}")]);
    let error = pipes(PIPE, &[("pipe.0.edge", "copy")]).unwrap_err().to_string();
    assert_eq!(error, format!("--set:1:1: pipe.1 Mbit/s.edge: {known}"));
}

#[test]
fn a_key_that_stands_above_its_table_is_told_its_place() {
    refuses_in_pipe(
        "limit = 5",
        &["f.toml:4:1: pipe.1 Mbit/s.limit: unknown key (expected queue.limit)"],
    );
    // What is near comes first.
    refuses_in_pipe(
        "los = 5",
        &["f.toml:4:1: pipe.1 Mbit/s.los: unknown key (did you mean `lost`?)"],
    );
}

#[test]
fn a_complaint_from_outside_has_the_place_of_its_key() {
    let text = format!(
        "{PIPE}delay = \"1 ms\"\n[[pipe]]\nrate = \"2 Mbit/s\"\n[values]\ntexts = [\"a\", \"b\"]\n"
    );
    let at = |path: &[&str]| locate(&FILE, "f.toml", &text, path, "x").to_string();
    assert_eq!(at(&["duration"]), "f.toml:1:12: duration: x");
    assert_eq!(at(&["pipe", "0", "delay"]), "f.toml:4:9: pipe.0.delay: x");
    assert_eq!(at(&["pipe", "2 Mbit/s", "rate"]), "f.toml:6:8: pipe.2 Mbit/s.rate: x");
    assert_eq!(at(&["values", "texts", "1"]), "f.toml:8:15: values.texts.1: x");
    assert_eq!(at(&["values", "time"]), "f.toml:7:1: values.time: x", "not written");
    assert_eq!(at(&["edge", "memory"]), "f.toml:1:1: edge.memory: x");
}

#[test]
fn what_is_not_written_has_its_default() {
    let pipe = &pipes(PIPE, &[]).unwrap()[0];
    assert_eq!((pipe.rate, pipe.delay), (DataRate::mbps(1), Duration::from_millis(5)));
    assert_eq!((pipe.mtu, pipe.ecn), (Bytes(1500), false));
    assert_eq!(pipe.queue, Queue::DropTail { limit: 50 });
    let red = pipes(&format!("{PIPE}queue.kind = \"red\""), &[]).unwrap();
    assert_eq!(red[0].queue, Queue::Red { limit: 100, p: 0.1 });
}

#[test]
fn every_kind_is_read() {
    let seconds = |n| Instant::ZERO + Duration::from_secs(n);
    let texts = |names: Vec<Name>| names.into_iter().map(|n| n.text).collect::<Vec<_>>();
    assert_eq!(value::<Name>("name = \"a-B_9\"").unwrap().text, "a-B_9");
    assert_eq!(value::<Name>("text = \"80\"").unwrap().text, "80");
    assert_eq!(value("texts = [\"80\", \"81\"]").map(texts).unwrap(), ["80", "81"]);
    assert_eq!(value("bool = true"), Ok(true));
    assert_eq!(value("integer = 0x9"), Ok(9_u64));
    assert_eq!(value("number = 1"), Ok(1.0));
    assert_eq!(value("time = \"0.5 s\""), Ok(Duration::from_millis(500)));
    assert_eq!(value("moment = 2026-05-01T06:30:00+02:00"), Ok(Moment(1_777_609_800)));
    assert_eq!(value("size = \"99 B\""), Ok(Bytes(99)));
    assert_eq!(value("length = \"-1 km\""), Ok(-1000.0));
    assert_eq!(value("point = [\"1 m\", \"2 m\"]"), Ok((1.0, 2.0)));
    assert_eq!(value("packets = \"2.5 packets\""), Ok(2.5));
    let pair = (Duration::from_secs(1), Duration::from_secs(1));
    assert_eq!(value("pair = [\"1 s\", \"1 s\"]"), Ok(pair));
    assert_eq!(
        value("intervals = [[\"1 s\", \"2 s\"], [\"2 s\", \"3 s\"]]"),
        Ok(vec![(seconds(1), seconds(2)), (seconds(2), seconds(3))])
    );
    let place = Position { x: 1.0, y: -2.0 };
    assert_eq!(value("path = [[\"5 s\", \"1 m\", \"-2 m\"]]"), Ok(vec![(seconds(5), place)]));
    assert_eq!(value("ordinals = [3, 1]"), Ok(vec![1_u64, 3]));
    assert_eq!(value("maybe = \"none\""), Ok(None::<DataRate>));
    assert_eq!(value("maybe = \"1 bit/s\""), Ok(DataRate::from_bits_per_sec(1)));
}

/// Each line, what is refused in it and why. The column is that of the part that is wrong.
#[test]
fn every_kind_refuses_other_values_and_points_at_the_part_that_is_wrong() {
    let cases = [
        (
            "name = \"a b\"",
            "8: values.name: \"a b\" is not a name (expected 1 to 64 letters, digits, - or _)",
        ),
        (
            "name = \"\"",
            "8: values.name: \"\" is not a name (expected 1 to 64 letters, digits, - or _)",
        ),
        ("texts = []", "9: values.texts: found an empty array (expected an array of ports)"),
        ("texts = [\"80\", 81]", "16: values.texts: found 81 (expected an array of ports)"),
        ("two = [\"80\"]", "7: values.two: found an array of 1 (expected an array of two ports)"),
        ("bool = \"true\"", "8: values.bool: found \"true\" (expected true or false)"),
        (
            "integer = 10",
            "11: values.integer: 10 is out of range (expected a whole number from 1 to 9)",
        ),
        (
            "integer = -1",
            "11: values.integer: -1 is out of range (expected a whole number from 1 to 9)",
        ),
        ("integer = 1.0", "11: values.integer: found 1 (expected a whole number from 1 to 9)"),
        ("number = nan", "10: values.number: NaN is out of range (expected a number from 0 to 1)"),
        (
            "time = 5",
            "8: values.time: 5 has no unit (expected a duration with its unit, such as \"170 ms\")",
        ),
        (
            "time = \"5 sec\"",
            "8: values.time: \"5 sec\" has an unknown unit (expected a unit of ns, us, µs, ms, s, min or h)",
        ),
        (
            "time = \"5 Ms\"",
            "8: values.time: \"5 Ms\" has an unknown unit (expected a unit of ns, us, µs, ms, s, min or h; did you mean `ms`?)",
        ),
        (
            "time = { x = 1 }",
            "8: values.time: found a table (expected a duration with its unit, such as \"170 ms\")",
        ),
        (
            "moment = \"2026-05-01\"",
            "10: values.moment: found \"2026-05-01\" (expected a date and time with its offset from UTC, such as 2026-05-01T06:30:00Z)",
        ),
        (
            "moment = 2026-05-01T06:30:00",
            "10: values.moment: 2026-05-01T06:30:00 has no offset from UTC (expected a date and time with its offset from UTC, such as 2026-05-01T06:30:00Z)",
        ),
        (
            "moment = 06:30:00",
            "10: values.moment: 06:30:00 is not both a date and a time (expected a date and time with its offset from UTC, such as 2026-05-01T06:30:00Z)",
        ),
        (
            "moment = 1969-12-31T23:59:59Z",
            "10: values.moment: 1969-12-31T23:59:59Z is before 1970 (expected a date and time with its offset from UTC, such as 2026-05-01T06:30:00Z)",
        ),
        (
            "moment = 2026-05-01T06:30:00.5Z",
            "10: values.moment: 2026-05-01T06:30:00.5Z is finer than a second (expected a date and time with its offset from UTC, such as 2026-05-01T06:30:00Z)",
        ),
        (
            "size = \"100 B\"",
            "8: values.size: \"100 B\" is out of range (expected a size from 1 B to 99 B with its unit, such as \"1000 B\")",
        ),
        (
            "point = [\"1 m\"]",
            "9: values.point: found an array (expected [x, y], such as [\"0 m\", \"200 m\"])",
        ),
        (
            "point = [\"1 m\", 2]",
            "17: values.point: found 2 (expected [x, y], such as [\"0 m\", \"200 m\"])",
        ),
        ("limit = \"8 kbit\"", "9: values.limit: \"8 kbit\" is in bits (expected bytes: \"1 kB\")"),
        (
            "maybe = \"8 MB/s\"",
            "9: values.maybe: \"8 MB/s\" is in bytes per second (expected bits per second: \"64 Mbit/s\")",
        ),
        (
            "limit = \"0 packets\"",
            "9: values.limit: \"0 packets\" is out of range (expected packets or a size above zero, such as \"50 packets\")",
        ),
        (
            "limit = \"1 ms\"",
            "9: values.limit: \"1 ms\" has an unknown unit (expected a unit of packets, packet, B, kB, MB, GB, KiB, MiB or GiB; did you mean `MB`?)",
        ),
        (
            "pair = [\"2 s\", \"1 s\"]",
            "8: values.pair: low end 2 s is above high end 1 s (expected [low, high], such as [\"153 ms\", \"195 ms\"])",
        ),
        (
            "intervals = [[\"1 s\", \"1 s\"]]",
            "14: values.intervals: ends at 1 s, not after its start at 1 s (expected [[start, end], …], ascending and disjoint, such as [[\"5 s\", \"11 s\"]])",
        ),
        (
            "intervals = [[\"1 s\", \"3 s\"], [\"2 s\", \"4 s\"]]",
            "30: values.intervals: overlaps or precedes the one before it (expected [[start, end], …], ascending and disjoint, such as [[\"5 s\", \"11 s\"]])",
        ),
        (
            "path = []",
            "8: values.path: found an array (expected [[time, x, y], …], in ascending order of time, such as [[\"5 s\", \"0 m\", \"200 m\"]])",
        ),
        (
            "ordinals = [3, 3]",
            "12: values.ordinals: lists 3 twice (expected an array of distinct whole numbers, such as [3, 7])",
        ),
        (
            "ordinals = [3, -3]",
            "16: values.ordinals: found -3 (expected an array of distinct whole numbers, such as [3, 7])",
        ),
        (
            "maybe = \"nine\"",
            "9: values.maybe: \"nine\" does not begin with a number (expected \"none\" or a rate above zero with its unit, such as \"250 kbit/s\")",
        ),
        (
            "choice = \"c\"",
            "10: values.choice: \"c\" is not a choice here (expected \"a\" or \"b\")",
        ),
    ];
    for (line, expected) in cases {
        let key = line.split(' ').next().unwrap();
        let text = format!("[values]\n{line}");
        let error = read(&FILE, "f.toml", &text, &[], |top| {
            let section = top.chosen("values")?;
            match key {
                "name" | "text" => section.get::<Option<Name>>(key).map(drop),
                "texts" | "two" => section.get::<Vec<Name>>(key).map(drop),
                "bool" => section.get::<bool>(key).map(drop),
                "integer" => section.get::<u64>(key).map(drop),
                "number" | "length" | "packets" => section.get::<f64>(key).map(drop),
                "time" => section.get::<Duration>(key).map(drop),
                "moment" => section.get::<Moment>(key).map(drop),
                "size" => section.get::<Bytes>(key).map(drop),
                "point" => section.get::<(f64, f64)>(key).map(drop),
                "limit" => section.get::<airtcp_settings::PacketsOrSize>(key).map(drop),
                "pair" => section.get::<(Duration, Duration)>(key).map(drop),
                "intervals" => section.get::<Vec<(Instant, Instant)>>(key).map(drop),
                "path" => section.get::<Vec<(Instant, Position)>>(key).map(drop),
                "ordinals" => section.get::<Vec<u64>>(key).map(drop),
                "maybe" => section.get::<Option<DataRate>>(key).map(drop),
                _ => section.get::<&str>(key).map(drop),
            }
        });
        assert_eq!(error.expect_err(line).to_string(), format!("f.toml:2:{expected}"));
    }
}

#[test]
fn a_text_with_its_own_syntax_is_parsed_where_it_stands() {
    let text = "[values]\ntexts = [\"80\", \"http\", \"x\"]";
    let error = read(&FILE, "f.toml", text, &[], |top| {
        let section = top.chosen("values")?;
        let port = |name: &Name| {
            section.parse("texts", name, |text| {
                text.parse::<u16>().map_err(|_| "is not a number".to_owned())
            })
        };
        section
            .get::<Vec<Name>>("texts")?
            .iter()
            .map(port)
            .collect::<Vec<_>>()
            .into_iter()
            .collect()
    });
    let error: ConfigError = error.map(|ports: Vec<u16>| ports).unwrap_err();
    assert_eq!(
        error.to_string(),
        "f.toml:2:16: values.texts: \"http\" is not a number (expected a port, such as 80)\n\
         f.toml:2:24: values.texts: \"x\" is not a number (expected a port, such as 80)"
    );
}

#[test]
fn the_caret_is_under_the_mistake() {
    // Tabs keep their width; characters count, not bytes.
    let text = "duration = \"1 s\"\npipe = [{\trate = \"1 Mbit/s\", \"µµ\" = 1,\tecn = 'µ' }]";
    assert_eq!(
        pipes(text, &[]).unwrap_err().render(),
        "f.toml:2:30: pipe.1 Mbit/s.µµ: unknown key (expected one of rate, delay, mtu, lost, ecn, \
         queue)\n\
         \x20 |\n\
         2 | pipe = [{\trate = \"1 Mbit/s\", \"µµ\" = 1,\tecn = 'µ' }]\n\
         \x20 |          \t                   ^^^^\n\
         \n\
         f.toml:2:46: pipe.1 Mbit/s.ecn: found \"µ\" (expected true or false)\n\
         \x20 |\n\
         2 | pipe = [{\trate = \"1 Mbit/s\", \"µµ\" = 1,\tecn = 'µ' }]\n\
         \x20 |          \t                            \t      ^^^"
    );
}

#[test]
fn the_caret_stays_in_the_line_and_in_a_window_of_it() {
    let over_lines = format!("{PIPE}queue = \"\"\"a\nb\"\"\"\n");
    assert_eq!(
        pipes(&over_lines, &[]).unwrap_err().render(),
        "f.toml:4:9: pipe.1 Mbit/s.queue: found \"a\\nb\" (expected a table of kind, limit, p)\n\
         \x20 |\n\
         4 | queue = \"\"\"a\n\
         \x20 |         ^^^^"
    );
    let long =
        format!("{PIPE}queue = {{ kind = \"red\",{}p = 2{} }}", " ".repeat(200), " ".repeat(200));
    let rendered = pipes(&long, &[]).unwrap_err().render();
    let lines: Vec<&str> = rendered.lines().collect();
    assert_eq!(
        lines[0],
        "f.toml:4:228: pipe.1 Mbit/s.queue.p: 2 is out of range (expected a number from 0 to 1)"
    );
    assert_eq!(
        lines[2],
        format!("4 | {}p = 2{} }}", " ".repeat(36), " ".repeat(78))[..124].trim_end_matches('}')
    );
    assert_eq!(lines[3], format!("  | {}^", " ".repeat(40)));
}

#[test]
fn line_numbers_widen_the_margin() {
    let text = format!("{PIPE}{}ecn = 1", "\n".repeat(96));
    assert_eq!(
        pipes(&text, &[]).unwrap_err().render(),
        "f.toml:100:7: pipe.1 Mbit/s.ecn: found 1 (expected true or false)\n\
         \x20   |\n\
         100 | ecn = 1\n\
         \x20   |       ^"
    );
}

#[test]
fn only_the_first_twenty_mistakes_are_rendered() {
    let text =
        format!("{PIPE}{}", (0..25).map(|i| format!("x{i}y{i}z{i} = 1\n")).collect::<String>());
    let error = pipes(&text, &[]).unwrap_err();
    assert_eq!(error.diagnostics.len(), 25);
    assert_eq!(error.render().matches("unknown key").count(), 20);
    assert!(error.render().ends_with("\n\nand 5 more"));
}

#[test]
fn the_nearest_name_is_suggested_if_any_is_near() {
    for (written, suggested) in [
        ("Rate2", Some("rate")),
        ("ECN", Some("ecn")),
        ("dealy", Some("delay")),
        ("mut", Some("mtu")),
        ("quue", Some("queue")),
        ("m", None),
        ("delays-of-it", None),
    ] {
        let error = pipes(&format!("{PIPE}{written} = 1"), &[]).unwrap_err();
        assert_eq!(error.diagnostics[0].suggestion.as_deref(), suggested, "{written}");
    }
}

#[test]
fn keys_without_effect_are_refused_with_all_ways_to_give_them_one() {
    let with = |lines: &str, expected: &[&str]| {
        refuses(&format!("{PIPE}[edge]\n{lines}"), expected);
    };
    with(
        "signal = \"1 s\"",
        &[
            "f.toml:5:1: edge.signal: has no effect with mechanism = \"none\" (expected mechanism = \
           \"wake\", or mechanism = \"copy\" and detect = \"signal\")",
        ],
    );
    with(
        "mechanism = \"copy\"\nmemory = \"1 s\"\nsignal = \"1 s\"",
        &["f.toml:7:1: edge.signal: has no effect with detect = \"timer\" (expected mechanism = \
           \"wake\", or detect = \"signal\")"],
    );
    with(
        "mechanism = \"wake\"\ndetect = \"signal\"\nmemory = \"1 s\"",
        &[
            "f.toml:6:1: edge.detect: has no effect with mechanism = \"wake\" (expected mechanism = \
             \"copy\")",
            "f.toml:7:1: edge.memory: has no effect with mechanism = \"wake\" (expected mechanism = \
             \"copy\")",
        ],
    );
    for sound in [
        "mechanism = \"wake\"\nsignal = \"1 s\"",
        "mechanism = \"copy\"\nmemory = \"1 s\"\ndetect = \"signal\"\nsignal = \"1 s\"",
    ] {
        assert!(pipes(&format!("{PIPE}[edge]\n{sound}"), &[]).is_ok(), "{sound}");
    }
}

#[test]
fn a_key_is_required_only_where_it_has_an_effect() {
    assert!(pipes(&format!("{PIPE}[edge]\nmechanism = \"wake\""), &[]).is_ok());
    refuses(
        &format!("{PIPE}[edge]\nmechanism = \"copy\""),
        &[
            "f.toml:4:1: edge.memory: missing (expected a duration with its unit, such as \"170 ms\")",
        ],
    );
}

#[test]
fn a_choice_by_an_override_silences_the_keys_of_the_earlier_choice() {
    let text = format!("{PIPE}queue = {{ kind = \"red\", p = 0.5 }}");
    let set = pipes(&text, &[("pipe.0.queue.kind", "drop-tail")]).unwrap();
    assert_eq!(set[0].queue, Queue::DropTail { limit: 50 });
    // In the same source it is a contradiction.
    refuses_in_pipe(
        "queue = { kind = \"drop-tail\", p = 0.5 }",
        &[
            "f.toml:4:31: pipe.1 Mbit/s.queue.p: has no effect with kind = \"drop-tail\" (expected kind = \
           \"red\")",
        ],
    );
}

#[test]
fn elements_are_called_by_name_by_keys_or_by_index() {
    let named = |text: &str| {
        let error = pipes(text, &[]).unwrap_err();
        error.diagnostics.iter().map(|d| d.key.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        named(&format!("{PIPE}ecn = 1\n[[pipe]]\necn = 2")),
        ["pipe.1 Mbit/s.ecn", "pipe.1.rate", "pipe.1.ecn",]
    );
    let two = format!("{PIPE}[[pipe]]\nrate = \"2 Mbit/s\"\n");
    let set = pipes(&two, &[("pipe.1.ecn", "true"), ("pipe.\"1 Mbit/s\".mtu", "1 kB")]).unwrap();
    assert_eq!((set[0].mtu, set[0].ecn), (Bytes(1000), false));
    assert_eq!((set[1].mtu, set[1].ecn), (Bytes(1500), true));
    let error = pipes(&two, &[("pipe.2.ecn", "true"), ("pipe.\"1 mbit/s\".ecn", "true")]);
    assert_eq!(
        error.unwrap_err().to_string(),
        "--set:1:1: pipe: has no element `2` (expected one of 1 Mbit/s, 2 Mbit/s)\n\
         --set:1:1: pipe: has no element `1 mbit/s` (did you mean `1 Mbit/s`?)"
    );
}

#[test]
fn an_array_of_tables_is_nothing_else() {
    let array = |value: &str| format!("duration = \"1 s\"\npipe = {value}");
    let expected = "(expected an array of at least one table)";
    refuses(&array("[]"), &[&format!("f.toml:2:8: pipe: found an array {expected}")]);
    refuses(&array("3"), &[&format!("f.toml:2:8: pipe: found 3 {expected}")]);
    refuses(
        &array("[3, { rate = \"1 Mbit/s\" }, \"x\"]"),
        &[
            "f.toml:2:9: pipe.0: found 3 (expected a table of rate, delay, mtu, lost, ecn, queue)",
            "f.toml:2:35: pipe.2: found \"x\" (expected a table of rate, delay, mtu, lost, ecn, queue)",
        ],
    );
    refuses(
        "duration = \"1 s\"\n[pipe]\nrate = \"1 Mbit/s\"",
        &["f.toml:2:1: pipe: found a table (expected [[pipe]], in two brackets)"],
    );
}

#[test]
fn overrides_apply_in_order_and_are_read_as_toml_or_as_text() {
    let pipe = |set: &[(&str, &str)]| pipes(PIPE, set).map(|pipes| pipes[0].clone());
    let set =
        [("pipe.0.mtu", "\"1 kB\""), ("pipe.0.mtu", "2 kB"), ("pipe.0.queue.limit", "3 packets")];
    let read = pipe(&set).unwrap();
    assert_eq!((read.mtu, read.queue), (Bytes(2000), Queue::DropTail { limit: 3 }));
    let wrong = |path: &str, value: &str| pipe(&[(path, value)]).unwrap_err().to_string();
    assert_eq!(
        wrong("pipe.0.rate.x", "1"),
        "--set:1:1: pipe.0.rate: is \"1 Mbit/s\", which has no keys (expected pipe.0.rate to be set as a whole)"
    );
    assert_eq!(
        wrong("pipe..x", "1"),
        "--set:1:1: not a path (expected dotted keys, such as link.BS-MH.loss.p)"
    );
    assert_eq!(
        wrong("pipe.0.queue", "{ p = 1, kind = \"reed\" }"),
        "--set:1:30: pipe.1 Mbit/s.queue.kind: \"reed\" is not a choice here (expected \"drop-tail\" or \"red\"; did you mean `red`?)"
    );
    // The caret points into the option's own text.
    assert_eq!(
        pipe(&[("pipe.0.mtu", "2 kb")]).unwrap_err().render(),
        "--set:1:12: pipe.1 Mbit/s.mtu: \"2 kb\" has an unknown unit (expected a unit of B, kB, MB, GB, \
         KiB, MiB or GiB; did you mean `kB`?)\n\
         \x20 |\n\
         1 | pipe.0.mtu=2 kb\n\
         \x20 |            ^^^^"
    );
}

#[test]
fn all_mistakes_are_found_at_once_in_the_order_of_the_text() {
    let text = "duration = \"0 s\"\n[[pipe]]\nrate = 5\nmtu = \"1 XB\"\n[[pipe]]\necn = 1\n\
                queue = { kind = \"red\", p = 2 }\n[edge]\nmechanism = \"wke\"\n";
    let error = pipes(text, &[("pipe.0.delay", "-1 s"), ("pipe.9.mtu", "1 B")]).unwrap_err();
    assert_eq!(
        error.to_string().lines().collect::<Vec<_>>(),
        [
            "f.toml:1:12: duration: \"0 s\" is out of range (expected a duration above zero with its unit, such as \"170 ms\")",
            "f.toml:3:8: pipe.0.rate: 5 has no unit (expected a rate above zero with its unit, such as \"250 kbit/s\")",
            "f.toml:4:7: pipe.0.mtu: \"1 XB\" has an unknown unit (expected a unit of B, kB, MB, GB, KiB, MiB or GiB; did you mean `B`?)",
            "f.toml:5:1: pipe.1.rate: missing (expected a rate above zero with its unit, such as \"250 kbit/s\")",
            "f.toml:6:7: pipe.1.ecn: found 1 (expected true or false)",
            "f.toml:7:29: pipe.1.queue.p: 2 is out of range (expected a number from 0 to 1)",
            "f.toml:9:13: edge.mechanism: \"wke\" is not a choice here (expected \"none\", \"copy\" or \"wake\"; did you mean `wake`?)",
            "--set:1:14: pipe.0.delay: \"-1 s\" is negative (expected a duration above zero with its unit, such as \"170 ms\")",
            "--set:1:1: pipe: has no element `9` (expected an index below 2)",
        ]
    );
}

#[test]
fn text_that_is_no_toml_is_refused_with_every_syntax_error() {
    let lines = |text: &str| {
        pipes(text, &[]).unwrap_err().diagnostics.iter().map(|d| d.line).collect::<Vec<_>>()
    };
    assert_eq!(lines("a = = 1\nb = 2\nb = 3\n[c"), [1, 1, 3, 4]);
}

/// A misspelt key is read as the one meant: it is not missing, and its value is checked.
#[test]
fn a_misspelt_key_is_not_missing_too() {
    refuses(
        "durations = \"1 s\"\n[[pipes]]\nrate = \"1 Mbit/s\"",
        &[
            "f.toml:1:1: durations: unknown key (did you mean `duration`?)",
            "f.toml:2:3: pipes: unknown key (did you mean `pipe`?)",
        ],
    );
    refuses(
        "durations = \"1\"\n[[pipes]]\nrat = 5",
        &[
            "f.toml:1:1: durations: unknown key (did you mean `duration`?)",
            "f.toml:1:13: duration: \"1\" has no unit (expected a duration above zero with its unit, such as \"170 ms\")",
            "f.toml:2:3: pipes: unknown key (did you mean `pipe`?)",
            "f.toml:3:1: pipe.0.rat: unknown key (did you mean `rate`?)",
            "f.toml:3:7: pipe.0.rate: 5 has no unit (expected a rate above zero with its unit, such as \"250 kbit/s\")",
        ],
    );
    // Beside the key that was meant, it is only unknown.
    refuses_in_pipe(
        "rat = 5",
        &["f.toml:4:1: pipe.1 Mbit/s.rat: unknown key (did you mean `rate`?)"],
    );
    // Of two misspellings of a key, one is read.
    refuses(
        "duration = \"1 s\"\n[[pipe]]\nratee = \"1 Mbit/s\"\nrat = 5",
        &[
            "f.toml:3:1: pipe.0.ratee: unknown key (did you mean `rate`?)",
            "f.toml:4:1: pipe.0.rat: unknown key (did you mean `rate`?)",
            "f.toml:4:7: pipe.0.rate: 5 has no unit (expected a rate above zero with its unit, such as \"250 kbit/s\")",
        ],
    );
}

#[test]
fn a_misspelt_choice_does_not_make_its_keys_useless() {
    refuses_in_pipe(
        "queue = { kin = \"red\", p = 0.5 }",
        &["f.toml:4:11: pipe.1 Mbit/s.queue.kin: unknown key (did you mean `kind`?)"],
    );
    refuses_in_pipe(
        "queue = { kind = \"rad\", p = 0.5 }",
        &[
            "f.toml:4:18: pipe.1 Mbit/s.queue.kind: \"rad\" is not a choice here (expected \"drop-tail\" or \"red\"; did you mean `red`?)",
        ],
    );
    // A strange key may have been the choice; the key that depends on it comes after it.
    refuses_in_pipe(
        "queue = { p = 0.5, discipline = \"red\" }",
        &[
            "f.toml:4:20: pipe.1 Mbit/s.queue.discipline: unknown key (expected one of kind, limit, p)",
            "f.toml:4:11: pipe.1 Mbit/s.queue.p: has no effect with kind = \"drop-tail\" (expected kind = \"red\")",
        ],
    );
}

#[test]
fn what_may_be_missing_because_of_a_strange_key_comes_after_it() {
    refuses(
        "[[tubes]]\nrate = \"1 Mbit/s\"\n[edge]\nmechanism = 1",
        &[
            "f.toml:1:3: tubes: unknown key (expected one of duration, pipe, all, values, edge)",
            "f.toml:4:13: edge.mechanism: found 1 (expected \"none\", \"copy\" or \"wake\")",
            "f.toml:1:1: duration: missing (expected a duration above zero with its unit, such as \"170 ms\")",
            "f.toml:1:1: pipe: missing (expected at least one [[pipe]] table)",
        ],
    );
}

#[test]
fn a_problem_of_the_caller_may_follow_from_others() {
    let error = read(&FILE, "f.toml", "duration = 1", &[], |top| -> Option<()> {
        top.push(top.problem_here("late").may_follow());
        top.get::<Duration>("duration").map(drop)
    });
    let messages: Vec<String> =
        error.unwrap_err().diagnostics.into_iter().map(|d| d.message).collect();
    assert_eq!(messages, ["1 has no unit", "late"]);
}

#[test]
fn the_stronger_table_wins_key_by_key() {
    static OVER: Table = Table::new(
        "over",
        "A pipe over another.",
        &[Key::Fields(&[
            field("all", Kind::Table(Pipe::TABLE), Absent("none"), "What pipes share."),
            field("pipe-over", Kind::Table(Pipe::TABLE), Absent("none"), "One pipe."),
        ])],
    );
    let layered = |text: &str| {
        read(&OVER, "f.toml", text, &[], |top| {
            Pipe::read(&top.merged("all").overridden_by(top, "pipe-over"), None)
        })
    };
    let both = "[all]\nrate = \"1 Mbit/s\"\nmtu = \"1 kB\"\nqueue = { kind = \"red\", p = 0.5 }\n\
                [pipe-over]\nmtu = \"2 kB\"\nqueue = { p = 1 }";
    let read = layered(both).unwrap();
    assert_eq!((read.rate, read.mtu), (DataRate::mbps(1), Bytes(2000)));
    assert_eq!(read.queue, Queue::Red { limit: 100, p: 1.0 });
    // A choice by the stronger table silences the keys of the weaker one's.
    let chosen = format!("{both}\n").replace("{ p = 1 }", "{ kind = \"drop-tail\" }");
    assert_eq!(layered(&chosen).unwrap().queue, Queue::DropTail { limit: 50 });
    // A missing key is missing in the weaker table.
    assert_eq!(
        layered("[all]\nmtu = \"1 kB\"\n[pipe-over]\nmtu = \"2 kB\"").unwrap_err().to_string(),
        "f.toml:1:1: all.rate: missing (expected a rate above zero with its unit, such as \"250 kbit/s\")"
    );
}

#[test]
fn the_schema_and_the_documentation_have_every_key() {
    let schema = document::json_schema("file", &FILE);
    for table in document::tables(&FILE) {
        let markdown = document::markdown_table(table);
        for field in table.fields() {
            let property = &schema["$defs"][table.name]["properties"][field.key];
            assert!(property.is_object(), "{}.{}", table.name, field.key);
            assert!(
                markdown.contains(&format!("| `{}` |", field.key)),
                "{}.{}",
                table.name,
                field.key
            );
        }
    }
    assert_eq!(schema["$defs"]["pipe"]["required"], serde_json::json!(["rate"]));
    // `memory` is required with one word only.
    assert_eq!(schema["$defs"]["edge"]["required"], serde_json::json!([]));
    let edge = document::markdown_table(&EDGE);
    assert!(
        edge.contains("| **required** | For copies. Only with `mechanism = \"copy\"`. |"),
        "{edge}"
    );
}

/// A value as TOML.
fn toml(kind: &Kind, text: &str) -> String {
    match kind {
        Kind::Bool | Kind::Integer { .. } | Kind::Number { .. } | Kind::Table(_) => text.to_owned(),
        _ => format!("{text:?}"),
    }
}

fn as_toml(settings: &impl Settings, table: &Table) -> Vec<String> {
    let mut keys = Vec::new();
    settings.write(&mut keys);
    let kind = |key: &str| table.fields().into_iter().find(|f| f.key == key).unwrap().kind;
    keys.iter().map(|(key, text)| format!("{key} = {}", toml(&kind(key), text))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_file_made_of_settings_is_read_as_they_are(
        rate in 1u64.., delay in 1u64.., mtu: u64, lost in 0u64..(1 << 63), ecn: bool,
        limit in 1u64.., p in 0.0f64..=1.0, is_red: bool,
    ) {
        let pipe = Pipe {
            rate: DataRate::from_bits_per_sec(rate).unwrap(),
            delay: Duration::from_nanos(delay),
            mtu: Bytes(mtu),
            lost,
            ecn,
            queue: if is_red { Queue::Red { limit, p } } else { Queue::DropTail { limit } },
        };
        let mut lines = as_toml(&pipe, Pipe::TABLE);
        lines.retain(|line| !line.starts_with("queue"));
        let queue = as_toml(&pipe.queue, Queue::TABLE).join(", ");
        let text = format!("duration = \"1 s\"\n[[pipe]]\n{}\nqueue = {{ {queue} }}", lines.join("\n"));
        prop_assert_eq!(pipes(&text, &[]), Ok(vec![pipe]));
    }

    /// No text and no override panics, and every diagnostic has a place in the text.
    #[test]
    fn any_text_is_read_or_refused_somewhere_in_it(
        text in prop_oneof![
            any::<String>(),
            "(duration|pipe|rate|queue|kind|edge|[\\[\\]{}=,.\n\" ]|[0-9]| s|Mbit/s){0,40}",
        ],
        path in "[a-z.\"0-9]{0,20}",
        value: String,
    ) {
        for (text, set) in [(&*text, &[][..]), (PIPE, &[(&*path, &*value)][..])] {
            let Err(error) = pipes(text, set) else { continue };
            prop_assert!(!error.diagnostics.is_empty());
            for d in error.diagnostics {
                prop_assert!(d.line >= 1 && d.column >= 1);
                if d.source == "f.toml" {
                    prop_assert!(d.line <= text.matches('\n').count() + 1, "{}", d);
                }
                let _ = d.render();
            }
        }
    }

    /// Whatever stands under a known key, the file is read or refused.
    #[test]
    fn any_value_of_a_known_key_is_read_or_refused(
        key in proptest::sample::select(&[
            "duration", "pipe", "pipe.0", "pipe.0.rate", "pipe.0.queue", "pipe.0.queue.kind", "all",
            "edge", "edge.mechanism", "edge.signal", "durations", "pipes", "pipe.0.rat",
        ][..]),
        value in proptest::sample::select(&[
            "", "0", "-1", "1e400", "nan", "99999999999999999999999999999999999999999", "true", "[]",
            "{}", "[[]]", "[{}]", "\"1 s\"", "\"9e9 s\"", "\"1 B\"", "{ kind = 1 }", "{ kin = 1 }",
            "{ kind = \"red\" }", "{ mechanism = \"copy\" }", "copy", "2026-05-01", "\"\\u0000\"",
        ][..]),
    ) {
        if let Err(error) = pipes(PIPE, &[(key, value)]) {
            prop_assert!(!error.diagnostics.is_empty());
            let _ = error.render();
        }
    }
}
