//! One value: reading its text, the type of the field it fills, and writing it back.

use crate::reader::Reader;
use crate::schema::{Count, Kind, TIME, TextKind};
use crate::units;
use airtcp_core::{Bytes, DataRate, Dscp, Duration, Instant, Position};

/// A position: a byte range in one of the texts that settings are read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// 0: the file; k: the k-th override. A later source wins over an earlier one.
    pub source: usize,
    /// Start of the range.
    pub start: usize,
    /// End of the range.
    pub end: usize,
}

/// A name or another text, and its position.
#[derive(Clone, Debug)]
pub struct Name {
    /// The text without its quotes.
    pub text: String,
    /// Position of the text, for messages.
    pub spot: Spot,
}

/// A value that fits its kind.
#[derive(Clone, Debug)]
pub enum Decoded {
    /// The key is absent and has no default, or its value is the word that means "absent".
    Absent,
    /// [`Kind::Name`] and [`Kind::Text`].
    Name(Name),
    /// The elements of [`Kind::Texts`], in their order.
    Names(Vec<Name>),
    /// A value of [`Kind::Bool`].
    Bool(bool),
    /// A value of [`Kind::Integer`], or the number of a [`Kind::ChoiceOrInteger`].
    Integer(u64),
    /// [`Kind::Number`], [`Kind::Measure`] and [`Kind::Packets`].
    Number(f64),
    /// A value of [`Kind::Duration`].
    Duration(Duration),
    /// [`Kind::Moment`]: seconds since 1970 (UTC), leap seconds not counted.
    Moment(u64),
    /// A value of [`Kind::Rate`].
    Rate(DataRate),
    /// A value of [`Kind::Size`].
    Size(Bytes),
    /// [`Kind::PacketsOrSize`] and [`Kind::WholePackets`].
    PacketsOrSize(PacketsOrSize),
    /// The word of a [`Kind::Choice`] or [`Kind::ChoiceOrInteger`].
    Word(&'static str),
    /// A value of [`Kind::ChoiceOrSegments`].
    WordOrSegments(WordOrSegments),
    /// Low and high of a [`Kind::DurationPair`].
    Pair(Duration, Duration),
    /// A [`Kind::Point`], in metres.
    Point(f64, f64),
    /// Start and end of each of the [`Kind::Intervals`].
    Intervals(Vec<(Instant, Instant)>),
    /// The [`Kind::Waypoints`], in metres.
    Waypoints(Vec<(Instant, Position)>),
    /// The [`Kind::Ordinals`] in ascending order.
    Ordinals(Vec<u64>),
}

/// A queue's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketsOrSize {
    /// A number of packets.
    Packets(u64),
    /// A number of bytes.
    Size(Bytes),
}

/// One of some words, or a number of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOrSegments {
    /// One of the words of the kind.
    Word(&'static str),
    /// The number, 1 to 65,535.
    Segments(u16),
}

/// A type of settings. Reading a key as a type that does not match its kind is a programming error,
/// which every use of the key reveals.
pub trait Value: Sized + Clone {
    /// The kind of its values, unless the key's declaration narrows it.
    const KIND: Kind;
    /// `None` if it is of another kind, or is not one value but has a table of its own.
    fn from_decoded(_: Decoded) -> Option<Self> {
        None
    }
    /// Reads the value of a key or its default. What a table of its own leaves out is as in `base`.
    /// `None` if it is wrong or missing, which has been reported.
    fn read<R: Reader>(from: &R, key: &str, _base: Option<&Self>) -> Option<Self> {
        from.get(key)
    }
    /// As written in a file (strings without their quotes); `None` if the key is then not written.
    fn show(&self, kind: &Kind) -> Option<String>;
}

macro_rules! values {
    ($($type:ty, $kind:expr, $pattern:pat => $value:expr, |$of:ident| $shown:expr;)*) => {$(
        impl Value for $type {
            const KIND: Kind = $kind;
            fn from_decoded(decoded: Decoded) -> Option<Self> {
                match decoded { $pattern => Some($value), _ => None }
            }
            fn show(&self, _: &Kind) -> Option<String> {
                let $of = self;
                Some($shown)
            }
        }
    )*};
}
values! {
    Name, Kind::Name, Decoded::Name(n) => n, |name| name.text.clone();
    String, Kind::Name, Decoded::Name(n) => n.text, |text| text.clone();
    Vec<Name>, Kind::Texts { of: &ANY_TEXT, count: Count::Some },
        Decoded::Names(n) => n, |names| list(names, |name| name.text.clone());
    bool, Kind::Bool, Decoded::Bool(b) => b, |b| b.to_string();
    Duration, TIME, Decoded::Duration(d) => d, |d| time(*d);
    Instant, TIME,
        Decoded::Duration(d) => Self::ZERO + d, |at| time(at.since_start());
    DataRate, Kind::Rate, Decoded::Rate(r) => r, |rate| self::rate(*rate);
    Bytes, Kind::Size { min: 0, max: u64::MAX }, Decoded::Size(b) => b, |bytes| size(*bytes);
    (Duration, Duration), Kind::DurationPair, Decoded::Pair(low, high) => (low, high),
        |pair| list(&[pair.0, pair.1], |d| time(*d));
    (f64, f64), Kind::Point, Decoded::Point(x, y) => (x, y),
        |point| list(&[point.0, point.1], |x| (units::LENGTH.show)(*x));
    Vec<(Instant, Instant)>, Kind::Intervals, Decoded::Intervals(i) => i,
        |listed| list(listed, |(a, b)| list(&[*a, *b], |at| time(at.since_start())));
    Vec<(Instant, Position)>, Kind::Waypoints, Decoded::Waypoints(w) => w,
        |listed| list(listed, |(at, Position { x, y })| {
            let [x, y] = [x, y].map(|x| (units::LENGTH.show)(*x));
            list(&[time(at.since_start()), x, y], String::clone)
        });
    Vec<u64>, Kind::Ordinals, Decoded::Ordinals(o) => o, |n| list(n, u64::to_string);
    WordOrSegments, Kind::ChoiceOrSegments(&[]), Decoded::WordOrSegments(w) => w, |w| match w {
        WordOrSegments::Word(word) => (*word).to_owned(),
        WordOrSegments::Segments(n) => format!("{n} segments"),
    };
    PacketsOrSize, Kind::PacketsOrSize, Decoded::PacketsOrSize(l) => l, |limit| match limit {
        PacketsOrSize::Packets(n) => format!("{n} packets"),
        PacketsOrSize::Size(bytes) => size(*bytes),
    };
    &'static str, Kind::Choice(&[]), Decoded::Word(w) => w, |word| (*word).to_owned();
}

const ANY_TEXT: TextKind =
    TextKind { name: "text", plural: "texts", expected: "a text", expected_plural: "texts" };

impl Value for f64 {
    const KIND: Kind = Kind::Number { min: f64::MIN, max: f64::MAX, above: false };
    fn from_decoded(decoded: Decoded) -> Option<Self> {
        if let Decoded::Number(x) = decoded { Some(x) } else { None }
    }
    fn show(&self, kind: &Kind) -> Option<String> {
        Some(match kind {
            Kind::Measure(measure) => (measure.show)(*self),
            Kind::Packets => format!("{self} packets"),
            _ => self.to_string(),
        })
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        /// A number of bytes or packets, as the kind says.
        impl Value for $type {
            const KIND: Kind = Kind::Integer { min: 0, max: <$type>::MAX as u64 };
            fn from_decoded(decoded: Decoded) -> Option<Self> {
                match decoded {
                    Decoded::Integer(n)
                    | Decoded::Size(Bytes(n))
                    | Decoded::PacketsOrSize(PacketsOrSize::Packets(n)) => n.try_into().ok(),
                    _ => None,
                }
            }
            fn show(&self, kind: &Kind) -> Option<String> {
                Some(match kind {
                    Kind::Size { .. } => size(Bytes(*self as u64)),
                    Kind::WholePackets => format!("{self} packets"),
                    _ => self.to_string(),
                })
            }
        }
    )*};
}
integers!(u16, u32, u64, usize);

impl Value for Dscp {
    const KIND: Kind = Kind::ChoiceOrInteger(Self::NAMES, Self::MAX as u64);
    fn from_decoded(decoded: Decoded) -> Option<Self> {
        match decoded {
            Decoded::Word(name) => Self::named(name),
            Decoded::Integer(n) => u8::try_from(n).ok().and_then(Self::new),
            _ => None,
        }
    }
    fn show(&self, _: &Kind) -> Option<String> {
        Some(self.to_string())
    }
}

impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;
    fn from_decoded(decoded: Decoded) -> Option<Self> {
        match decoded {
            Decoded::Absent => Some(None),
            other => T::from_decoded(other).map(Some),
        }
    }
    fn read<R: Reader>(from: &R, key: &str, base: Option<&Self>) -> Option<Self> {
        match T::KIND {
            Kind::Table(_) if from.written(key) => {
                T::read(from, key, base.and_then(Option::as_ref)).map(Some)
            }
            _ => from.get(key),
        }
    }
    fn show(&self, kind: &Kind) -> Option<String> {
        match (self, kind) {
            (Some(value), Kind::WordOr(_, inner)) => value.show(inner),
            (Some(value), _) => value.show(kind),
            (None, Kind::WordOr(word, _) | Kind::WordOrTable(word, _)) => Some((*word).to_owned()),
            (None, _) => None,
        }
    }
}

/// What few have takes little room in the others.
impl<T: Value> Value for Box<T> {
    const KIND: Kind = T::KIND;
    fn from_decoded(decoded: Decoded) -> Option<Self> {
        T::from_decoded(decoded).map(Self::new)
    }
    fn read<R: Reader>(from: &R, key: &str, base: Option<&Self>) -> Option<Self> {
        T::read(from, key, base.map(AsRef::as_ref)).map(Self::new)
    }
    fn show(&self, kind: &Kind) -> Option<String> {
        T::show(self, kind)
    }
}

/// Exact, even where a float would not be; whole minutes in minutes.
fn time(d: Duration) -> String {
    const MINUTE: u64 = 60_000_000_000;
    match d.as_nanos() {
        n if n > MINUTE && n.is_multiple_of(MINUTE) => format!("{} min", n / MINUTE),
        n if n < 1 << f64::MANTISSA_DIGITS => d.to_string(),
        n => format!("{n} ns"),
    }
}

/// Exact, as [`time`].
fn rate(rate: DataRate) -> String {
    match rate.bits_per_sec() {
        n if n < 1 << f64::MANTISSA_DIGITS => rate.to_string(),
        n => format!("{n} bit/s"),
    }
}

/// In the largest unit that gives a whole number, except where bytes read better.
fn size(bytes: Bytes) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, unit)| bytes.get() >= *unit && bytes.get().is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{} {name}", bytes.get() / unit),
        None => bytes.to_string(),
    }
}

fn list<T>(elements: &[T], show: impl Fn(&T) -> String) -> String {
    format!("[{}]", elements.iter().map(show).collect::<Vec<_>>().join(", "))
}
