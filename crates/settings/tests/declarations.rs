//! What a declaration makes: keys, conditions, defaults, and values that are read and written.

use airtcp_core::{Bytes, DataRate, Duration};
use airtcp_settings::schema::{
    Conditions, Fallback, Kind, Only, POSITIVE_TIME, PROBABILITY, TIME, Table, Way, at_least, field,
};
use airtcp_settings::units::{self, LENGTH, Measure, QuantityError, SPEED, Unit};
use airtcp_settings::{
    Decoded, InTable, Mistake, PacketsOrSize, Reader, Settings, Value, WordOrSegments,
    alternatives, choice, settings,
};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;

choice! {
    /// An end of a queue.
    #[default(Tail)]
    pub enum End {
        /// the oldest packet
        Head = "head",
        /// the newest packet
        Tail = "tail",
    }
}

alternatives! {
    /// A queue.
    #[derive(Clone, Debug, PartialEq)]
    #[table("queue")]
    #[choice("kind", "The discipline.")]
    #[absent(Queue::DropTail { limit: 50, end: End::Tail })]
    pub enum Queue {
        /// drops what does not fit
        "drop-tail" => DropTail {
            /// Packets that fit.
            #[kind = Kind::WholePackets]
            limit: u64 = 50,
            /// The packet that is dropped.
            end: End = End::Tail,
        },
        /// drops at random
        "red" => Red {
            /// Packets that fit.
            #[kind = Kind::WholePackets]
            limit: u64 = 100,
            /// Average queue from which packets are dropped.
            #[kind = Kind::Packets]
            min_threshold: f64 = 5.0,
            /// Probability at the upper threshold.
            #[kind = PROBABILITY]
            p: f64 = 0.1,
        },
        /// takes everything
        "endless" => Endless,
    }
}

settings! {
    #[partial]
    /// A pipe.
    #[derive(Clone, Debug, PartialEq)]
    #[table("pipe")]
    pub struct Pipe {
        /// Bits per second.
        #[source = "RFC 1"]
        pub rate: DataRate,
        /// One way.
        #[kind = POSITIVE_TIME]
        pub one_way_delay: Duration = Duration::from_millis(5),
        /// Largest packet.
        #[key = "mtu"]
        pub largest: Bytes = Bytes(1500),
        /// Marks packets.
        #[matters_to = "a sender"]
        pub ecn: bool = false,
        /// Delay bound.
        #[kind = Kind::WordOr("none", &POSITIVE_TIME)]
        pub bound: Option<Duration> = None,
        /// Packets that wait.
        #[keys_of(Queue)]
        pub queue: Queue,
    }
}

settings! {
    /// Everything has a default.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Window {
        /// Of the beginning.
        #[kind = Kind::ChoiceOrSegments(&[("rfc2581", "two"), ("rfc6928", "ten")])]
        pub initial: WordOrSegments = WordOrSegments::Word("rfc2581"),
        /// Of the receiver.
        pub limit: PacketsOrSize = PacketsOrSize::Packets(20),
    }
}

/// Settings as texts, like a recording.
#[derive(Debug)]
struct Texts {
    table: &'static Table,
    texts: BTreeMap<String, String>,
    words: RefCell<Vec<(&'static str, &'static str)>>,
    mistakes: RefCell<Vec<String>>,
}

impl Texts {
    fn new(table: &'static Table, texts: &[(&str, &str)]) -> Self {
        let texts = texts.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Self { table, texts, words: RefCell::default(), mistakes: RefCell::default() }
    }
    fn field(&self, key: &str) -> Option<airtcp_settings::schema::Field> {
        let mut fields = self.table.fields().into_iter().filter(|field| field.key == key);
        fields.find(|field| field.only.hold(&self.words.borrow()))
    }
}

impl Reader for Texts {
    fn written(&self, key: &str) -> bool {
        self.texts.contains_key(key) && self.field(key).is_some()
    }
    fn has_default(&self, key: &str) -> bool {
        self.field(key).is_some_and(|field| field.fallback.text().is_some())
    }
    fn get<T: Value>(&self, key: &str) -> Option<T> {
        let field = self.field(key).expect("a key with an effect");
        let written = self.texts.get(key).cloned();
        let Some(text) = written.or_else(|| field.fallback.text().map(Into::into)) else {
            if let Fallback::Required = field.fallback {
                self.mistakes.borrow_mut().push(format!("{key} is missing"));
                return None;
            }
            return T::from_decoded(Decoded::Absent);
        };
        match field.kind.parse_bare(&text).expect("a kind that is written as text") {
            Ok(decoded) => T::from_decoded(decoded),
            Err(Mistake { what, .. }) => {
                self.mistakes.borrow_mut().push(format!("{key} {what}"));
                None
            }
        }
    }
    fn chosen(&self, choice: &'static str, word: &'static str) {
        self.words.borrow_mut().push((choice, word));
    }
    fn refuse(&self, _: Option<&'static str>, message: String, _: &str) {
        self.mistakes.borrow_mut().push(message);
    }
}

fn pipe(texts: &[(&str, &str)]) -> Result<Pipe, Vec<String>> {
    let texts = Texts::new(Pipe::TABLE, texts);
    let read = <Pipe as Settings>::read(&texts, None);
    read.ok_or_else(|| texts.mistakes.into_inner())
}

fn written(settings: &impl Settings) -> Vec<(&'static str, String)> {
    let mut keys = Vec::new();
    settings.write(&mut keys);
    keys
}

#[test]
fn keys_are_the_fields_with_hyphens_in_the_order_of_the_declaration() {
    let fields = Pipe::TABLE.fields();
    let keys: Vec<&str> = fields.iter().map(|field| field.key).collect();
    assert_eq!(
        keys,
        [
            "rate",
            "one-way-delay",
            "mtu",
            "ecn",
            "bound",
            "kind",
            "limit",
            "end",
            "limit",
            "min-threshold",
            "p",
        ]
    );
    assert_eq!((fields[0].meaning, fields[0].source), ("Bits per second.", "RFC 1"));
    assert_eq!(fields[3].matters_to, Some("a sender"));
    assert!(matches!(fields[0].fallback, Fallback::Required));
    assert_eq!(fields[1].fallback.text().as_deref(), Some("5 ms"));
    assert_eq!(fields[8].fallback.text().as_deref(), Some("100 packets"));
}

#[test]
fn what_is_not_written_is_as_declared() {
    let read = pipe(&[("rate", "1 Mbit/s")]).unwrap();
    let queue = Queue::DropTail { limit: 50, end: End::Tail };
    assert_eq!(read.rate, DataRate::mbps(1));
    assert_eq!(read.one_way_delay, Duration::from_millis(5));
    assert_eq!((read.largest, read.ecn, read.bound), (Bytes(1500), false, None));
    assert_eq!(read.queue, queue);
    assert_eq!(Queue::default(), queue);
    assert_eq!(Window::default().limit, PacketsOrSize::Packets(20));
}

#[test]
fn a_choice_selects_the_declaration_of_a_key_that_several_have() {
    let of =
        |texts: &[(&str, &str)]| pipe(&[&[("rate", "1 Mbit/s")], texts].concat()).unwrap().queue;
    assert_eq!(of(&[("kind", "red")]), Queue::Red { limit: 100, min_threshold: 5.0, p: 0.1 });
    assert_eq!(
        of(&[("kind", "red"), ("limit", "7 packets"), ("min-threshold", "2.5 packets")]),
        Queue::Red { limit: 7, min_threshold: 2.5, p: 0.1 }
    );
    assert_eq!(of(&[("end", "head")]), Queue::DropTail { limit: 50, end: End::Head });
    assert_eq!(of(&[("kind", "endless")]), Queue::Endless);
}

#[test]
fn every_mistake_is_found_in_one_reading() {
    let read = pipe(&[("one-way-delay", "0 s"), ("mtu", "1"), ("ecn", "yes"), ("kind", "blue")]);
    assert_eq!(
        read.unwrap_err(),
        [
            "rate is missing",
            "one-way-delay is out of range",
            "mtu has no unit",
            "ecn is neither true nor false",
            "kind is not a choice here",
        ]
    );
}

#[test]
fn a_base_gives_the_values_that_are_not_written() {
    let base = Pipe {
        rate: DataRate::mbps(2),
        one_way_delay: Duration::from_secs(1),
        largest: Bytes(576),
        ecn: true,
        bound: Some(Duration::from_secs(9)),
        queue: Queue::Red { limit: 3, min_threshold: 1.0, p: 1.0 },
    };
    let over = |texts: &[(&str, &str)]| {
        <Pipe as Settings>::read(&Texts::new(Pipe::TABLE, texts), Some(&base))
    };
    assert_eq!(over(&[]), Some(base.clone()));
    let p = Queue::Red { limit: 3, min_threshold: 1.0, p: 0.5 };
    assert_eq!(over(&[("p", "0.5")]), Some(Pipe { queue: p, ..base.clone() }));
    assert_eq!(over(&[("bound", "none")]), Some(Pipe { bound: None, ..base.clone() }));
    // Another word has nothing of the base's variant.
    let other = Queue::DropTail { limit: 50, end: End::Tail };
    assert_eq!(over(&[("kind", "drop-tail")]), Some(Pipe { queue: other, ..base.clone() }));
}

#[test]
fn settings_are_written_in_the_order_of_their_declaration() {
    let read = pipe(&[("rate", "250 kbit/s"), ("kind", "red"), ("mtu", "64 KiB")]).unwrap();
    let keys: Vec<String> = written(&read).iter().map(|(k, v)| format!("{k} = {v}")).collect();
    assert_eq!(
        keys,
        [
            "rate = 250 kbit/s",
            "one-way-delay = 5 ms",
            "mtu = 64 KiB",
            "ecn = false",
            "bound = none",
            "kind = red",
            "limit = 100 packets",
            "min-threshold = 5 packets",
            "p = 0.1",
        ]
    );
}

#[test]
fn conditions_of_nested_choices_hold_until_a_word_contradicts_them() {
    let outer = Only { choice: "mechanism", words: &["a", "b"] };
    let inner = Only { choice: "detect", words: &["signal"] };
    let both = Conditions::two(outer, inner);
    assert!(both.hold(&[]));
    assert!(both.hold(&[("mechanism", "b")]));
    assert!(!both.hold(&[("mechanism", "c")]));
    assert!(!both.hold(&[("mechanism", "b"), ("detect", "timer")]));
    assert!(both.hold(&[("mechanism", "b"), ("detect", "signal"), ("other", "x")]));
    let choices: Vec<&str> = both.iter().map(|only| only.choice).collect();
    assert_eq!(choices, ["mechanism", "detect"]);
    assert!(Conditions::NONE.is_empty() && Conditions::NONE.hold(&[("mechanism", "c")]));
}

#[test]
fn ways_join_the_words_of_a_single_choice() {
    let declared = [
        Conditions::one("kind", &["a"]),
        Conditions::one("kind", &["b"]),
        Conditions::two(
            Only { choice: "kind", words: &["c"] },
            Only { choice: "detect", words: &["signal"] },
        ),
    ];
    let way = |choice, words: &[&'static str]| Way { choice, words: words.to_vec() };
    assert_eq!(
        Conditions::ways(declared.into_iter()),
        [vec![way("kind", &["a", "b"])], vec![way("kind", &["c"]), way("detect", &["signal"])],]
    );
}

#[test]
fn keys_of_words_that_a_table_does_not_offer_are_left_out() {
    use airtcp_settings::schema::Key;
    const FEW: &[airtcp_settings::schema::Word] = &[("red", "drops at random")];
    static NARROW: Table = Table::new(
        "narrow",
        "A queue of one kind.",
        &[Key::Instead {
            fields: &[field("kind", Kind::Choice(FEW), Fallback::Required, "The discipline.")],
            keys: Queue::KEYS,
        }],
    );
    static FIXED: Table =
        Table::new("fixed", "A queue without a choice.", &[Key::Without(&["kind"], Queue::KEYS)]);
    static LATER: Table =
        Table::new("later", "As another queue.", &[Key::Otherwise("as the link", Queue::KEYS)]);
    let keys =
        |table: &Table| -> Vec<&str> { table.fields().iter().map(|field| field.key).collect() };
    assert_eq!(keys(&NARROW), ["kind", "limit", "min-threshold", "p"]);
    assert_eq!(keys(&FIXED), ["limit", "end", "limit", "min-threshold", "p"]);
    assert!(FIXED.fields().iter().all(|field| field.only.is_empty()));
    let limit = LATER.fields()[1];
    assert!(matches!(limit.fallback, Fallback::Or("as the link", _)));
    assert_eq!(limit.fallback.text().as_deref(), Some("50 packets"));
}

/// Each group is one quantity, written in every unit that can write it.
#[test]
fn every_unit_has_its_size() {
    let groups: [(&[Unit], u64, &[&str]); 12] = [
        (units::DURATION, 7_200_000_000_000, &["2 h", "120 min", "7200 s", "7200000 ms"]),
        (units::DURATION, 3_000_000, &["3 ms", "3000 us", "3000 µs", "3000 μs", "3000000 ns"]),
        (units::RATE, 8_000_000_000, &["8 Gbit/s", "8 Gbps", "8 gbit", "8000 Mbit/s"]),
        (units::RATE, 8_000_000, &["8 Mbit/s", "8 Mbps", "8 mbit", "8000 kbit/s"]),
        (units::RATE, 8_000, &["8 kbit/s", "8 kbps", "8 kbit", "8000 bit/s", "8000 bps"]),
        (units::SIZE, 3_000_000_000, &["3 GB", "3000 MB", "3000000 kB", "3000000000 B"]),
        (units::SIZE, 3 << 30, &["3 GiB", "3072 MiB", "3145728 KiB"]),
        (units::SIZE, 1 << 20, &["1 MiB", "1024 KiB", "1048576 B"]),
        (units::SIZE, 1024, &["1 KiB", "1024 B", "1.024 kB"]),
        (units::PACKETS, 1, &["1 packet", "1 packets"]),
        (units::SEGMENTS, 2, &["2 segments", "2 segment"]),
        (units::DURATION, 0, &["0 ns", "0 us", "0 ms", "0 s", "0 min", "0 h", "0.000 s"]),
    ];
    for (units, expected, texts) in groups {
        for text in texts {
            assert_eq!(units::parse(text, units), Ok(expected), "{text}");
        }
    }
    let written: Vec<&str> = groups.iter().flat_map(|(_, _, texts)| *texts).copied().collect();
    let all = [units::DURATION, units::RATE, units::SIZE, units::PACKETS, units::SEGMENTS].concat();
    for (name, _) in all {
        let is_tried = written.iter().any(|text| text.split(' ').nth(1) == Some(name));
        assert!(is_tried, "{name} is not tried");
    }
}

#[test]
fn every_unit_is_refused_beyond_its_range() {
    for units in [units::DURATION, units::RATE, units::SIZE, units::PACKETS, units::SEGMENTS] {
        for (name, factor) in units {
            let parse = |number: &str| {
                let text = format!("{number} {name}");
                units::parse(&text, units).map_err(|error| format!("{error:?}"))
            };
            let most = u64::MAX / factor;
            assert_eq!(parse(&most.to_string()), Ok(most * factor), "{name}");
            let more = u128::from(most) + 1;
            assert_eq!(parse(&more.to_string()), Err("TooLarge".to_owned()), "{name}");
            assert_eq!(parse("-1"), Err("Negative".to_owned()), "{name}");
            assert_eq!(parse("-0"), Err("Negative".to_owned()), "{name}");
            // Finer than any unit divides.
            assert_eq!(parse("0.00000000000000001"), Err("TooFine".to_owned()), "{name}");
            assert_eq!(parse("1e3"), Err(format!("UnknownUnit({:?})", format!("e3 {name}"))));
        }
    }
}

#[test]
fn lengths_and_speeds_are_read_in_their_base_unit() {
    assert_eq!(SPEED.parse("36 km/h"), Ok(10.0));
    assert_eq!(SPEED.parse("1e1 m/s"), Ok(10.0));
    assert_eq!(LENGTH.parse("-1.5e-1 km"), Ok(-150.0));
    assert_eq!(LENGTH.parse("1e400 m"), Err(QuantityError::TooLarge));
    assert_eq!(LENGTH.parse("1 e3 m"), Err(QuantityError::UnknownUnit("e3 m")));
    for text in ["inf m", "nan m", "--1 m", "m"] {
        assert_eq!(LENGTH.parse(text), Err(QuantityError::NotANumber), "{text}");
    }
}

/// What is wrong with a text as a value of a kind, and what was expected.
fn wrong(kind: Kind, text: &str) -> String {
    let Mistake { what, expected, unknown } =
        kind.parse(text).or_else(|| kind.parse_bare(text)).expect("a text").expect_err(text);
    let expected = expected.unwrap_or_else(|| kind.describe());
    match unknown {
        Some((word, known)) => format!("{what}: {word} of {}; {expected}", known.join(" ")),
        None => format!("{what}; {expected}"),
    }
}

#[test]
fn bounds_are_part_of_a_kind() {
    const SHORT: Kind =
        Kind::Duration { min: Duration::from_millis(1), max: Duration::from_millis(100) };
    const SIZE: Kind = Kind::Size { min: 28, max: 65_535 };
    const COUNT: Kind = Kind::Integer { min: 1, max: 9 };
    const WEIGHT: Kind = Kind::Number { min: 0.0, max: 2.0, above: true };
    const WORDS: Kind = Kind::Choice(End::WORDS);
    const SEGMENTS: Kind = Kind::ChoiceOrSegments(&[("rfc6928", "ten")]);
    for (kind, text) in [
        (SHORT, "1 ms"),
        (SHORT, "100 ms"),
        (SIZE, "28 B"),
        (SIZE, "65535 B"),
        (COUNT, "1"),
        (COUNT, "9"),
        (WEIGHT, "2"),
        (WEIGHT, "1e-300"),
        (PROBABILITY, "0"),
        (PROBABILITY, "1"),
        (POSITIVE_TIME, "1 ns"),
        (TIME, "0 s"),
        (SEGMENTS, "65535 segments"),
        (Kind::WholePackets, "1 packet"),
        (Kind::PacketsOrSize, "1 B"),
        (WORDS, "head"),
    ] {
        assert!(kind.parse_bare(text).unwrap().is_ok(), "{text} as {kind:?}");
    }
    let cases = [
        (
            SHORT,
            "0.9 ms",
            "is out of range; a duration of at least 1 ms, at most 100 ms with its unit, such as \"100 ms\"",
        ),
        (
            SHORT,
            "101 ms",
            "is out of range; a duration of at least 1 ms, at most 100 ms with its unit, such as \"100 ms\"",
        ),
        (
            POSITIVE_TIME,
            "0 s",
            "is out of range; a duration above zero with its unit, such as \"170 ms\"",
        ),
        (
            at_least(Duration::from_secs(1)),
            "1 ms",
            "is out of range; a duration of at least 1 s with its unit, such as \"1 s\"",
        ),
        (
            SIZE,
            "27 B",
            "is out of range; a size from 28 B to 65535 B with its unit, such as \"1000 B\"",
        ),
        (
            SIZE,
            "65536 B",
            "is out of range; a size from 28 B to 65535 B with its unit, such as \"1000 B\"",
        ),
        (COUNT, "0", "is out of range; a whole number from 1 to 9"),
        (COUNT, "-1", "is out of range; a whole number from 1 to 9"),
        (COUNT, "1.5", "is not a whole number; a whole number from 1 to 9"),
        (WEIGHT, "0", "is out of range; a number above 0, at most 2"),
        (WEIGHT, "nan", "is out of range; a number above 0, at most 2"),
        (PROBABILITY, "1.01", "is out of range; a number from 0 to 1"),
        (
            Kind::Rate,
            "0 bit/s",
            "is out of range; a rate above zero with its unit, such as \"250 kbit/s\"",
        ),
        (
            Kind::WholePackets,
            "0 packets",
            "is out of range; packets above zero, such as \"50 packets\"",
        ),
        (
            Kind::WholePackets,
            "1 B",
            "has an unknown unit: B of packets packet; a unit of packets or packet",
        ),
        (
            Kind::PacketsOrSize,
            "0 B",
            "is out of range; packets or a size above zero, such as \"50 packets\"",
        ),
        (
            SEGMENTS,
            "0 segments",
            "is out of range; \"rfc6928\" or segments, such as \"2 segments\"",
        ),
        (
            SEGMENTS,
            "65536 segments",
            "is out of range; \"rfc6928\" or segments, such as \"2 segments\"",
        ),
        (
            SEGMENTS,
            "rfc6982",
            "is not a choice here: rfc6982 of rfc6928; \"rfc6928\" or segments, such as \"2 segments\"",
        ),
        (WORDS, "Head", "is not a choice here: Head of head tail; \"head\" or \"tail\""),
        (
            Kind::WordOr("none", &WORDS),
            "non",
            "is not a choice here: non of none head tail; \"none\", \"head\" or \"tail\"",
        ),
        (Kind::Measure(&LENGTH), "5", "has no unit; a length with its unit, such as \"250 m\""),
    ];
    for (kind, text, expected) in cases {
        assert_eq!(wrong(kind, text), expected, "{text}");
    }
}

#[test]
fn a_word_for_absent_is_read_as_absent() {
    let kind = Kind::WordOr("none", &POSITIVE_TIME);
    assert!(matches!(kind.parse("none"), Some(Ok(Decoded::Absent))));
    assert!(matches!(kind.parse("1 s"), Some(Ok(Decoded::Duration(_)))));
    assert_eq!(<Option<Duration> as Value>::show(&None, &kind).as_deref(), Some("none"));
    // Without such a word the key is not written.
    assert_eq!(<Option<Duration> as Value>::show(&None, &POSITIVE_TIME), None);
}

static MEASURES: [&Measure; 2] = [&LENGTH, &SPEED];

/// Every kind that is written as text.
fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(TIME),
        Just(POSITIVE_TIME),
        Just(Kind::Rate),
        Just(PROBABILITY),
        Just(Kind::Bool),
        Just(Kind::Packets),
        Just(Kind::WholePackets),
        Just(Kind::PacketsOrSize),
        Just(Kind::Choice(End::WORDS)),
        Just(Kind::ChoiceOrSegments(End::WORDS)),
        Just(Kind::WordOr("none", &Kind::Rate)),
        Just(Kind::Measure(MEASURES[0])),
        Just(Kind::Measure(MEASURES[1])),
        (0..u64::MAX, 0..u64::MAX).prop_map(|(a, b)| Kind::Size { min: a.min(b), max: a.max(b) }),
        (0..u64::MAX, 0..u64::MAX)
            .prop_map(|(a, b)| Kind::Integer { min: a.min(b), max: a.max(b) }),
    ]
}

/// Texts that come near to quantities.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[-+]?[0-9.e]{0,30} ?[a-zA-Zµμ/]{0,9}",
        "[0-9]{1,25} (s|kB|packets|Mbit/s)"
    ]
}

/// What is written of a value is read as the same value.
fn returns<T: Value + PartialEq + std::fmt::Debug>(value: &T, kind: Kind) {
    let text = value.show(&kind).expect("written");
    let read = kind.parse_bare(&text).expect("written as text");
    let read = read.unwrap_or_else(|mistake| panic!("{value:?} as {text:?}: {mistake:?}"));
    assert_eq!(T::from_decoded(read).as_ref(), Some(value), "{text}");
}

proptest! {
    #[test]
    fn values_are_read_as_they_were_written(
        n: u64, count: u32, port: u16, is_on: bool, x in -1e12f64..1e12, p in 0.0f64..=1.0,
        rate in 1u64.., segments in 1u16..,
    ) {
        returns(&Duration::from_nanos(n), TIME);
        returns(&Duration::from_nanos(u64::from(count >> 4) * 60_000_000_000), TIME);
        returns(&DataRate::from_bits_per_sec(rate).unwrap(), Kind::Rate);
        returns(&Bytes(n), <Bytes as Value>::KIND);
        returns(&Bytes(u64::from(count) << 20), <Bytes as Value>::KIND);
        returns(&n, <u64 as Value>::KIND);
        returns(&port, <u16 as Value>::KIND);
        returns(&n, <Bytes as Value>::KIND);
        returns(&rate, Kind::WholePackets);
        returns(&is_on, Kind::Bool);
        returns(&x, <f64 as Value>::KIND);
        returns(&x, Kind::Measure(&LENGTH));
        returns(&x, Kind::Measure(&SPEED));
        returns(&x.abs(), Kind::Packets);
        returns(&p, PROBABILITY);
        returns(&PacketsOrSize::Packets(rate), Kind::PacketsOrSize);
        returns(&PacketsOrSize::Size(Bytes(rate)), Kind::PacketsOrSize);
        returns(&WordOrSegments::Segments(segments), Kind::ChoiceOrSegments(End::WORDS));
        returns(&End::Head, <End as Value>::KIND);
    }

    #[test]
    fn settings_are_read_as_they_were_written(
        rate in 1u64.., delay in 1u64.., mtu: u64, ecn: bool, bound in proptest::option::of(1u64..),
        limit in 1u64.., p in 0.0f64..=1.0, min_threshold in 0.0f64..1e9, which in 0..3,
    ) {
        let queue = match which {
            0 => Queue::DropTail { limit, end: End::Head },
            1 => Queue::Red { limit, min_threshold, p },
            _ => Queue::Endless,
        };
        let pipe = Pipe {
            rate: DataRate::from_bits_per_sec(rate).unwrap(),
            one_way_delay: Duration::from_nanos(delay),
            largest: Bytes(mtu),
            ecn,
            bound: bound.map(Duration::from_nanos),
            queue,
        };
        let texts = written(&pipe);
        let texts: Vec<(&str, &str)> = texts.iter().map(|(k, v)| (*k, &**v)).collect();
        prop_assert_eq!(self::pipe(&texts), Ok(pipe));
    }

    /// No text makes a kind panic, and what is read is within the kind's bounds.
    #[test]
    fn any_text_is_read_within_bounds_or_refused(kind in kinds(), text in texts()) {
        let _ = kind.parse(&text);
        prop_assert!(!kind.describe().is_empty());
        let Some(Ok(read)) = kind.parse_bare(&text) else { return Ok(()) };
        match (kind, read) {
            (Kind::Duration { min, max }, Decoded::Duration(d)) => prop_assert!(min <= d && d <= max),
            (Kind::Size { min, max }, Decoded::Size(Bytes(n)))
            | (Kind::Integer { min, max }, Decoded::Integer(n)) => prop_assert!(min <= n && n <= max),
            (Kind::Number { min, max, .. }, Decoded::Number(x)) => prop_assert!(min <= x && x <= max),
            (_, Decoded::Number(x)) => prop_assert!(x.is_finite()),
            (_, Decoded::PacketsOrSize(PacketsOrSize::Packets(n))) => prop_assert!(n > 0),
            _ => {}
        }
    }

    /// Reading is exact: a decimal fraction is never rounded.
    #[test]
    fn fractions_are_exact_or_refused(whole in 0u64..1_000_000, digits in "[0-9]{0,12}") {
        let text = format!("{whole}.{digits}0 s");
        let nanos = format!("{digits:0<9}");
        let expected = if nanos[9..].bytes().all(|b| b == b'0') {
            Ok(whole * 1_000_000_000 + nanos[..9].parse::<u64>().unwrap())
        } else {
            Err(QuantityError::TooFine)
        };
        prop_assert_eq!(units::parse(&text, units::DURATION), expected);
    }
}
