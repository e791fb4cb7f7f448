//! Sizes and times that are drawn: a value, or a table with a distribution.

use airtcp_core::{Bytes, Duration, Stream};
use airtcp_settings::schema::Fallback::{Absent, Required};
use airtcp_settings::schema::{Field, Key, Kind, POSITIVE_TIME, TIME, Table, TextKind, field};
use airtcp_settings::{Name, Reader, Value};
use std::sync::Arc;

/// A distribution of positive numbers.
#[derive(Clone, Debug, PartialEq)]
enum Law {
    Constant(f64),
    Exponential { mean: f64 },
    Pareto(BoundedPareto),
    Empirical(Arc<Cdf>),
}

impl Law {
    fn draw(&self, stream: &mut Stream) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Exponential { mean } => stream.exponential(*mean),
            Self::Pareto(pareto) => pareto.quantile(stream.unit()),
            Self::Empirical(cdf) => cdf.quantile(stream.unit()),
        }
    }

    fn mean(&self) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Exponential { mean } => *mean,
            Self::Pareto(pareto) => pareto.mean(),
            Self::Empirical(cdf) => cdf.mean(),
        }
    }
}

/// A Pareto distribution, cut off at an upper bound.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BoundedPareto {
    shape: f64,
    min: f64,
    max: f64,
}

impl BoundedPareto {
    /// The value that the fraction `u` of the draws does not exceed.
    fn quantile(&self, u: f64) -> f64 {
        let Self { shape, min, max } = *self;
        let cut = libm::pow(min / max, shape);
        min / libm::pow(1.0 - u * (1.0 - cut), 1.0 / shape)
    }

    fn mean(&self) -> f64 {
        let Self { shape, min, max } = *self;
        if min == max {
            return min;
        }
        let cut = libm::pow(min / max, shape);
        if shape == 1.0 {
            return min / (1.0 - cut) * libm::log(max / min);
        }
        let factor = shape / (shape - 1.0) / (1.0 - cut);
        factor * (min - cut * max)
    }
}

/// A cumulative distribution function, straight between its points.
#[derive(Clone, Debug, PartialEq)]
struct Cdf {
    /// Sizes and the probabilities not to exceed them, both ascending; the last one is 1.
    points: Vec<(f64, f64)>,
}

impl Cdf {
    /// Reads lines of a size in bytes and a probability. The last probability is 1, or 100 if they
    /// are percentages.
    fn read(text: &str) -> Result<Self, String> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut last_line = 1;
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let wrong = |message: String, expected: &str| {
                format!("line {line}: {message} (expected {expected})")
            };
            let cells: Vec<&str> = content.split_whitespace().collect();
            let [size, probability] = cells[..] else {
                let message = format!("{} values", cells.len());
                return Err(wrong(message, "a size in bytes and a probability"));
            };
            let number = |cell: &str| {
                let number = cell.parse::<f64>().ok().filter(|n| (0.0..1e15).contains(n));
                number.ok_or_else(|| wrong(format!("{cell:?}"), "a number, 0 or more"))
            };
            let (size, probability) = (number(size)?, number(probability)?);
            if let Some(&(before, below)) = points.last() {
                if size < before {
                    let expected = format!("{before} or more: sizes ascend");
                    return Err(wrong(format!("size {size}"), &expected));
                }
                if probability < below {
                    let expected = format!("{below} or more: probabilities ascend");
                    return Err(wrong(format!("probability {probability}"), &expected));
                }
            }
            points.push((size, probability));
            last_line = line;
        }
        let total = points.last().map_or(0.0, |&(_, total)| total);
        if total != 1.0 && total != 100.0 {
            return Err(match points.is_empty() {
                true => "no line with a size and a probability".to_owned(),
                false => format!(
                    "line {last_line}: the last probability is {total} (expected 1, or 100 for \
                     percentages)"
                ),
            });
        }
        if points.iter().all(|&(size, _)| size < 1.0) {
            return Err(format!("line {last_line}: no size of a byte or more"));
        }
        points.iter_mut().for_each(|(_, probability)| *probability /= total);
        Ok(Self { points })
    }

    /// The pieces: probability of each, its smallest and its largest size. What is at the first
    /// point already has its size.
    fn pieces(&self) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        let &(first, below) = &self.points[0];
        let rest = self.points.windows(2).map(|pair| (pair[1].1 - pair[0].1, pair[0].0, pair[1].0));
        std::iter::once((below, first, first)).chain(rest)
    }

    fn quantile(&self, u: f64) -> f64 {
        let mut below = 0.0;
        for (probability, from, to) in self.pieces() {
            if u < below + probability {
                return from + (to - from) * (u - below) / probability;
            }
            below += probability;
        }
        self.points[self.points.len() - 1].0
    }

    fn mean(&self) -> f64 {
        self.pieces().map(|(probability, from, to)| probability * (from + to) / 2.0).sum()
    }
}

/// Reads the law in a table: one of the keys `names`.
fn law<R: Reader, T: Value>(
    table: &R,
    names: &[&'static str],
    number: fn(T) -> f64,
) -> Option<Law> {
    let mut given = names.iter().copied().filter(|key| table.written(key));
    let Some(key) = given.next() else {
        table.refuse(None, "has no distribution".to_owned(), &names.join(" or "));
        return None;
    };
    if let Some(second) = given.next() {
        let message = format!("a second distribution beside `{key}`");
        table.refuse(Some(second), message, "one distribution");
        return None;
    }
    match key {
        "exponential" => Some(Law::Exponential { mean: number(table.get::<Option<T>>(key)??) }),
        "pareto" => {
            let pareto = table.table(key)?;
            let (shape, min, max) =
                (pareto.get("shape"), pareto.get::<T>("min"), pareto.get::<T>("max"));
            let (shape, min, max) = (shape?, number(min?), number(max?));
            if min > max {
                pareto.refuse(Some("max"), "is below `min`".to_owned(), "at least `min`");
                return None;
            }
            Some(Law::Pareto(BoundedPareto { shape, min, max }))
        }
        _ => {
            let file = table.get::<Option<Name>>("file")??;
            table.file("file", &file, Cdf::read).map(|cdf| Law::Empirical(Arc::new(cdf)))
        }
    }
}

const SHAPE: Field = field(
    "shape",
    Kind::Number { min: 0.0, max: 100.0, above: true },
    Required,
    "Shape α: the smaller, the heavier the tail.",
);

/// Sizes of transfers or packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes(Law);

/// A size that may be drawn.
const SIZE: Kind = Kind::Size { min: 1, max: u64::MAX };

/// A file with a distribution.
static CDF: TextKind = TextKind {
    name: "path",
    plural: "paths",
    expected: "the path of a file",
    expected_plural: "paths of files",
};

pub(super) static SIZES: Table = Table::new(
    "sizes",
    "A distribution of sizes: one of `exponential`, `pareto` and `file`.",
    &[Key::Fields(&[
        field("exponential", SIZE, Absent("not exponential"), "Exponential, with this mean."),
        field(
            "pareto",
            Kind::Table(&PARETO_SIZES),
            Absent("not Pareto"),
            "Pareto, between two bounds.",
        ),
        field(
            "file",
            Kind::Text(&CDF),
            Absent("no file"),
            "The cumulative distribution, as in datacentre studies: a line `SIZE PROBABILITY` for \
             each point, in bytes and from 0 to 1 or to 100, straight in between. Perhaps \
             compressed with gzip; relative to the file that names it.",
        ),
    ])],
);

static PARETO_SIZES: Table = Table::new(
    "sizes.pareto",
    "A Pareto distribution of sizes, cut off at `max`.",
    &[Key::Fields(&[
        SHAPE,
        field("min", SIZE, Required, "Smallest size."),
        field("max", SIZE, Required, "Largest size."),
    ])],
);

impl Sizes {
    /// Always the same.
    pub const fn constant(size: Bytes) -> Self {
        Self(Law::Constant(size.get() as f64))
    }

    /// Draws one, in whole bytes, at least one.
    pub fn draw(&self, stream: &mut Stream) -> Bytes {
        Bytes((libm::round(self.0.draw(stream)) as u64).max(1))
    }

    /// The mean, bytes.
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }
}

impl Value for Sizes {
    const KIND: Kind = Kind::OrTable(&SIZE, &SIZES);

    fn read<R: Reader>(from: &R, key: &str, _base: Option<&Self>) -> Option<Self> {
        let Some(table) = from.table(key) else { return from.get(key).map(Self::constant) };
        let number = |size: Bytes| size.get() as f64;
        law(&table, &["exponential", "pareto", "file"], number).map(Self)
    }

    fn show(&self, kind: &Kind) -> Option<String> {
        match self.0 {
            Law::Constant(size) => Bytes(size as u64).show(kind),
            _ => None,
        }
    }
}

/// Lengths of pauses or periods.
#[derive(Clone, Debug, PartialEq)]
pub struct Times(Law);

pub(super) static TIMES: Table = Table::new(
    "times",
    "A distribution of times: one of `exponential` and `pareto`.",
    &[Key::Fields(&[
        field(
            "exponential",
            POSITIVE_TIME,
            Absent("not exponential"),
            "Exponential, with this mean.",
        ),
        field(
            "pareto",
            Kind::Table(&PARETO_TIMES),
            Absent("not Pareto"),
            "Pareto, between two bounds.",
        ),
    ])],
);

static PARETO_TIMES: Table = Table::new(
    "times.pareto",
    "A Pareto distribution of times, cut off at `max`.",
    &[Key::Fields(&[
        SHAPE,
        field("min", POSITIVE_TIME, Required, "Shortest time."),
        field("max", POSITIVE_TIME, Required, "Longest time."),
    ])],
);

impl Times {
    /// Always the same.
    pub fn constant(time: Duration) -> Self {
        Self(Law::Constant(time.as_secs_f64()))
    }

    /// Exponential with this mean, if it was a constant.
    pub(super) fn or_exponential(self) -> Self {
        match self.0 {
            Law::Constant(mean) => Self(Law::Exponential { mean }),
            law => Self(law),
        }
    }

    /// Draws one.
    pub fn draw(&self, stream: &mut Stream) -> Duration {
        Duration::from_secs_f64(self.0.draw(stream))
    }
}

impl Value for Times {
    const KIND: Kind = Kind::OrTable(&TIME, &TIMES);

    fn read<R: Reader>(from: &R, key: &str, _base: Option<&Self>) -> Option<Self> {
        let Some(table) = from.table(key) else { return from.get(key).map(Self::constant) };
        law(&table, &["exponential", "pareto"], Duration::as_secs_f64).map(Self)
    }

    fn show(&self, kind: &Kind) -> Option<String> {
        match self.0 {
            Law::Constant(seconds) => Duration::from_secs_f64(seconds).show(kind),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(law: &Law) -> f64 {
        let mut stream = Stream::new(1, "test");
        let n = 200_000;
        (0..n).map(|_| law.draw(&mut stream)).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn the_mean_is_that_of_the_draws() {
        let cdf = Cdf::read("10 0.2\n20 0.5\n100 1\n").expect("a right file");
        assert_eq!(cdf.mean(), 0.2 * 10.0 + 0.3 * 15.0 + 0.5 * 60.0);
        for law in [
            Law::Constant(7.0),
            Law::Exponential { mean: 3.0 },
            Law::Pareto(BoundedPareto { shape: 1.2, min: 2.0, max: 50.0 }),
            Law::Pareto(BoundedPareto { shape: 1.0, min: 2.0, max: 50.0 }),
            Law::Pareto(BoundedPareto { shape: 0.5, min: 2.0, max: 50.0 }),
            Law::Pareto(BoundedPareto { shape: 2.0, min: 5.0, max: 5.0 }),
            Law::Empirical(Arc::new(cdf)),
        ] {
            // The standard error is at most 0.4 %.
            let (expected, drawn) = (law.mean(), mean_of(&law));
            assert!((drawn / expected - 1.0).abs() < 0.015, "{law:?}: {drawn}, not {expected}");
        }
    }

    #[test]
    fn a_pareto_distribution_has_its_tail_and_its_bounds() {
        let pareto = BoundedPareto { shape: 1.5, min: 1.0, max: 100.0 };
        assert!((pareto.quantile(0.0) - 1.0).abs() < 1e-9);
        assert!((pareto.quantile(1.0) - 100.0).abs() < 1e-6);
        // P(X > x) = (x^-a - max^-a) / (1 - max^-a) with min = 1.
        let above = |x: f64| (x.powf(-1.5) - 1e-3) / (1.0 - 1e-3);
        assert!((pareto.quantile(1.0 - above(10.0)) - 10.0).abs() < 1e-6);
    }

    #[test]
    fn a_cdf_may_be_in_percent_and_have_mass_at_its_first_point() {
        let fractions = Cdf::read("# web\n0 0\n1000 0.25\n\n5000 1\n").expect("a right file");
        assert_eq!(fractions, Cdf::read("0 0\n1000 25\n5000 100\n").expect("percent"));
        assert_eq!(
            [0.0, 0.125, 0.25, 1.0].map(|u| fractions.quantile(u)),
            [0.0, 500.0, 1000.0, 5000.0]
        );
        let steps = Cdf::read("10 0.5\n10 0.6\n20 1\n").expect("a right file");
        assert_eq!([0.0, 0.59].map(|u| steps.quantile(u)), [10.0, 10.0]);
        assert!((steps.quantile(0.8) - 15.0).abs() < 1e-9);
    }

    #[test]
    fn wrong_files_are_refused_with_the_line() {
        for (text, expected) in [
            ("", "no line with a size and a probability"),
            ("10\n", "line 1: 1 values (expected a size in bytes and a probability)"),
            ("1 0\nx 1\n", "line 2: \"x\" (expected a number, 0 or more)"),
            ("1 -1\n", "line 1: \"-1\" (expected a number, 0 or more)"),
            ("9 0\n5 1\n", "line 2: size 5 (expected 9 or more: sizes ascend)"),
            (
                "1 0.5\n2 0.4\n",
                "line 2: probability 0.4 (expected 0.5 or more: probabilities ascend)",
            ),
            (
                "1 0.5\n2 0.9\n",
                "line 2: the last probability is 0.9 (expected 1, or 100 for percentages)",
            ),
            ("0 1\n", "line 1: no size of a byte or more"),
        ] {
            assert_eq!(Cdf::read(text).expect_err(text), expected);
        }
    }
}
