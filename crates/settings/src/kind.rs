//! Kinds of values: how a text is read, and what is expected of it.

use crate::schema::{Count, Kind, Table, TextKind, Word};
use crate::units::{self, Measure, QuantityError, Unit};
use crate::value::{Decoded, PacketsOrSize, WordOrSegments};
use airtcp_core::{Bytes, DataRate, Duration};

/// The reason that a text is not a value of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The complaint, with the text as its subject: "has no unit".
    pub what: String,
    /// The expected form, if narrower than [`Kind::describe`].
    pub expected: Option<String>,
    /// An unknown word, and the known ones.
    pub unknown: Option<(String, Vec<&'static str>)>,
}

impl Mistake {
    fn new(what: &str) -> Self {
        Self { what: what.to_owned(), expected: None, unknown: None }
    }
    /// A word that is not among `words`.
    fn no_choice(text: &str, words: impl Iterator<Item = &'static str>) -> Self {
        let unknown = Some((text.to_owned(), words.collect()));
        Self { unknown, ..Self::new("is not a choice here") }
    }
    /// A rate in bytes per second that is `rate` in bits.
    fn in_bytes(rate: &str) -> Self {
        let expected = Some(format!("bits per second: {rate:?}"));
        Self { expected, ..Self::new("is in bytes per second") }
    }
    /// A size in bits that is `size` in bytes.
    fn in_bits(size: &str) -> Self {
        Self { expected: Some(format!("bytes: {size:?}")), ..Self::new("is in bits") }
    }
}

impl Kind {
    /// Reads a text. `None`: the kind is not written as text.
    pub fn parse(&self, text: &str) -> Option<Result<Decoded, Mistake>> {
        let out_of_range = || Mistake::new("is out of range");
        Some(match self {
            Self::Duration { min, max } => {
                quantity(units::parse(text, units::DURATION), units::DURATION)
                    .map(Duration::from_nanos)
                    .and_then(|d| {
                        let fits = (min..=max).contains(&&d);
                        if fits { Ok(Decoded::Duration(d)) } else { Err(out_of_range()) }
                    })
            }
            Self::OrTable(inner, _) => return inner.parse(text),
            Self::Rate => quantity(units::parse(text, units::RATE), units::RATE)
                .map_err(|mistake| match units::rate_in_bytes(text) {
                    Some(rate) => Mistake::in_bytes(&rate.to_string()),
                    None => mistake,
                })
                .and_then(|rate| {
                    DataRate::from_bits_per_sec(rate).map(Decoded::Rate).ok_or_else(out_of_range)
                }),
            Self::Size { min, max } => size(text, units::SIZE).and_then(|size| {
                let fits = (min..=max).contains(&&size);
                if fits { Ok(Decoded::Size(Bytes(size))) } else { Err(out_of_range()) }
            }),
            Self::Measure(measure) => measure_of(text, measure).map(Decoded::Number),
            Self::Packets => {
                let read = units::parse_fractional(text, units::PACKETS);
                quantity(read, units::PACKETS).map(Decoded::Number)
            }
            Self::WholePackets | Self::PacketsOrSize => {
                let read = match units::parse(text, units::PACKETS) {
                    Err(QuantityError::UnknownUnit(_)) if matches!(self, Self::PacketsOrSize) => {
                        let all: Vec<Unit> = [units::PACKETS, units::SIZE].concat();
                        size(text, &all).map(|size| PacketsOrSize::Size(Bytes(size)))
                    }
                    read => quantity(read, units::PACKETS).map(PacketsOrSize::Packets),
                };
                read.and_then(|limit| match limit {
                    PacketsOrSize::Packets(0) | PacketsOrSize::Size(Bytes(0)) => {
                        Err(out_of_range())
                    }
                    limit => Ok(Decoded::PacketsOrSize(limit)),
                })
            }
            Self::Choice(words) | Self::ChoiceOrInteger(words, _) => {
                match words.iter().find(|(word, _)| *word == text) {
                    Some((word, _)) => Ok(Decoded::Word(word)),
                    None => Err(Mistake::no_choice(text, words.iter().map(|(word, _)| *word))),
                }
            }
            Self::ChoiceOrSegments(words) => segments(text, words).map(Decoded::WordOrSegments),
            Self::WordOr(word, _) | Self::WordOrTable(word, _) if *word == text => {
                Ok(Decoded::Absent)
            }
            Self::WordOr(word, inner) => {
                let mut read = inner.parse(text)?;
                if let Err(Mistake { unknown: Some((_, words)), .. }) = &mut read {
                    words.insert(0, word);
                }
                read
            }
            _ => return None,
        })
    }

    /// Reads a text where everything is written as text: a default, or a field of a recording.
    pub fn parse_bare(&self, text: &str) -> Option<Result<Decoded, Mistake>> {
        let not = |what: &str| Mistake::new(what);
        Some(match self {
            Self::Bool => {
                text.parse().map(Decoded::Bool).map_err(|_| not("is neither true nor false"))
            }
            Self::Integer { .. } => match text.parse() {
                Ok(n) => self.integer(n),
                Err(_) => Err(not("is not a whole number")),
            },
            Self::Number { .. } => match text.parse() {
                Ok(x) => self.number(x),
                Err(_) => Err(not("is not a number")),
            },
            Self::ChoiceOrInteger(..) => match text.parse() {
                Ok(n) => self.integer(n),
                Err(_) => return self.parse(text),
            },
            Self::WordOr(word, inner) if *word != text => return inner.parse_bare(text),
            _ => return self.parse(text),
        })
    }

    /// Checks a whole number.
    pub fn integer(&self, n: i128) -> Result<Decoded, Mistake> {
        let (min, max) = match self {
            Self::Integer { min, max } => (min, max),
            Self::ChoiceOrInteger(_, max) => (&0, max),
            _ => return Err(Mistake::new("is a number")),
        };
        let fits = u64::try_from(n).ok().filter(|n| (min..=max).contains(&n));
        fits.map(Decoded::Integer).ok_or_else(|| Mistake::new("is out of range"))
    }

    /// Checks a number.
    pub fn number(&self, x: f64) -> Result<Decoded, Mistake> {
        let Self::Number { min, max, above } = self else {
            return Err(Mistake::new("is a number"));
        };
        let fits = x >= *min && x <= *max && !(*above && x == *min);
        if fits { Ok(Decoded::Number(x)) } else { Err(Mistake::new("is out of range")) }
    }

    /// The words of a choice; empty for other kinds.
    pub fn words(&self) -> Vec<&'static str> {
        match self {
            Self::Choice(words) => words.iter().map(|(word, _)| *word).collect(),
            Self::WordOr(_, inner) => inner.words(),
            _ => Vec::new(),
        }
    }

    /// The table that a value of this kind is, or may be.
    pub fn table(&self) -> Option<&'static Table> {
        match self {
            Self::Table(table)
            | Self::Tables(table)
            | Self::OrTable(_, table)
            | Self::WordOrTable(_, table) => Some(table),
            _ => None,
        }
    }

    /// True if its values are written with a unit.
    pub fn has_unit(&self) -> bool {
        match self {
            Self::Duration { .. }
            | Self::DurationPair
            | Self::Intervals
            | Self::Waypoints
            | Self::Rate
            | Self::Size { .. }
            | Self::Measure(_)
            | Self::Packets
            | Self::WholePackets
            | Self::PacketsOrSize
            | Self::ChoiceOrSegments(_) => true,
            Self::WordOr(_, inner) | Self::OrTable(inner, _) => inner.has_unit(),
            _ => false,
        }
    }

    /// The form of its values, for messages that begin "expected …".
    pub fn describe(&self) -> String {
        match self {
            Self::Name => "1 to 64 letters, digits, - or _".to_owned(),
            Self::Text(TextKind { expected, .. }) => (*expected).to_owned(),
            Self::Texts { of, count: Count::Some } => format!("an array of {}", of.expected_plural),
            Self::Texts { of, count: Count::Two } => {
                format!("an array of two {}", of.expected_plural)
            }
            Self::Moment => {
                "a date and time with its offset from UTC, such as 2026-05-01T06:30:00Z".to_owned()
            }
            Self::Bool => "true or false".to_owned(),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Number { min, max, above: false } => format!("a number from {min} to {max}"),
            Self::Number { min, max, above: true } => {
                format!("a number above {min}, at most {max}")
            }
            Self::Duration { min, max } => {
                let above = match min.as_nanos() {
                    0 => String::new(),
                    1 => " above zero".to_owned(),
                    _ => format!(" of at least {min}"),
                };
                let at_most =
                    if *max == Duration::MAX { String::new() } else { format!(", at most {max}") };
                let example = Duration::from_millis(170).clamp(*min, *max);
                format!("a duration{above}{at_most} with its unit, such as \"{example}\"")
            }
            Self::DurationPair => "[low, high], such as [\"153 ms\", \"195 ms\"]".to_owned(),
            Self::Intervals => {
                "[[start, end], …], ascending and disjoint, such as [[\"5 s\", \"11 s\"]]"
                    .to_owned()
            }
            Self::Waypoints => {
                "[[time, x, y], …], in ascending order of time, such as [[\"5 s\", \"0 m\", \"200 m\"]]"
                    .to_owned()
            }
            Self::OrTable(inner, _) => format!("{}, or a table", inner.describe()),
            Self::Rate => "a rate above zero with its unit, such as \"250 kbit/s\"".to_owned(),
            Self::Size { min, max: u64::MAX } => {
                format!("a size of at least {min} B with its unit, such as \"100 MB\"")
            }
            Self::Size { min, max } => {
                format!("a size from {min} B to {max} B with its unit, such as \"1000 B\"")
            }
            Self::Measure(measure) => {
                format!("{} with its unit, such as {:?}", measure.what, measure.example)
            }
            Self::Point => "[x, y], such as [\"0 m\", \"200 m\"]".to_owned(),
            Self::WordOrTable(word, _) => format!("{word:?} or a table"),
            Self::Packets => "packets, such as \"5 packets\"".to_owned(),
            Self::WholePackets => "packets above zero, such as \"50 packets\"".to_owned(),
            Self::PacketsOrSize => {
                "packets or a size above zero, such as \"50 packets\"".to_owned()
            }
            Self::Choice(words) => {
                any_of(&words.iter().map(|(w, _)| format!("{w:?}")).collect::<Vec<_>>())
            }
            Self::ChoiceOrSegments(words) => {
                let mut words: Vec<String> = words.iter().map(|(w, _)| format!("{w:?}")).collect();
                words.push("segments, such as \"2 segments\"".to_owned());
                any_of(&words)
            }
            Self::ChoiceOrInteger(words, max) => {
                let mut words: Vec<String> = words.iter().map(|(w, _)| format!("{w:?}")).collect();
                words.push(format!("a whole number from 0 to {max}"));
                any_of(&words)
            }
            Self::WordOr(word, Self::Choice(words)) => {
                let words = std::iter::once(word).chain(words.iter().map(|(word, _)| word));
                any_of(&words.map(|word| format!("{word:?}")).collect::<Vec<_>>())
            }
            Self::WordOr(word, inner) => format!("{word:?} or {}", inner.describe()),
            Self::Ordinals => "an array of distinct whole numbers, such as [3, 7]".to_owned(),
            Self::Table(_) => "a table".to_owned(),
            Self::Tables(_) => "an array of at least one table".to_owned(),
        }
    }
}

fn segments(text: &str, words: &[Word]) -> Result<WordOrSegments, Mistake> {
    if let Some((word, _)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(WordOrSegments::Word(word));
    }
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Mistake::no_choice(text, words.iter().map(|(word, _)| *word)));
    }
    let n = quantity(units::parse(text, units::SEGMENTS), units::SEGMENTS)?;
    let n = u16::try_from(n).ok().filter(|n| *n > 0);
    n.map(WordOrSegments::Segments).ok_or_else(|| Mistake::new("is out of range"))
}

/// Reads a physical quantity.
pub(crate) fn measure_of(text: &str, measure: &Measure) -> Result<f64, Mistake> {
    measure.parse(text).map_err(|error| not_a_quantity(error, measure.names().collect()))
}

/// Reads a size in bytes, where these `units` may be written.
fn size(text: &str, units: &[Unit]) -> Result<u64, Mistake> {
    quantity(units::parse(text, units::SIZE), units).map_err(|mistake| {
        units::size_in_bits(text).map_or(mistake, |size| Mistake::in_bits(&size))
    })
}

fn quantity<T>(read: Result<T, QuantityError<'_>>, units: &[Unit]) -> Result<T, Mistake> {
    // Showing one of the two µ is enough.
    let names = units.iter().map(|(name, _)| *name).filter(|name| *name != "μs");
    read.map_err(|error| not_a_quantity(error, names.collect()))
}

fn not_a_quantity(error: QuantityError<'_>, units: Vec<&'static str>) -> Mistake {
    Mistake::new(match error {
        QuantityError::NotANumber => "does not begin with a number",
        QuantityError::Negative => "is negative",
        QuantityError::NoUnit => "has no unit",
        QuantityError::UnknownUnit(unit) => {
            return Mistake {
                what: "has an unknown unit".to_owned(),
                expected: Some(format!("a unit of {}", any_of(&units))),
                unknown: Some((unit.to_owned(), units)),
            };
        }
        QuantityError::TooFine => "is finer than the smallest unit",
        QuantityError::TooLarge => "is too large",
    })
}

/// `a, b or c`.
pub fn any_of<T: AsRef<str>>(choices: &[T]) -> String {
    let choices: Vec<&str> = choices.iter().map(AsRef::as_ref).collect();
    match choices.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => choices.concat(),
    }
}
