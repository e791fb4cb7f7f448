//! A rate, a delay or a loss probability that follows a table: comma-separated values of time and
//! value, with the units in the first line. A table may have several of them; each is read by the
//! key it is for.
//!
//! ```text
//! time (s),rate (Mbit/s),delay (ms)
//! 0,8,40
//! 12.5,0.25,55
//! ```
//!
//! Each value holds from its time until the next line's, and the last one to the end.

use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_settings::units::{self, Unit};

/// Values by the time from which they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table<T> {
    /// Strictly ascending, the first at the start.
    steps: Vec<(Instant, T)>,
}

/// Upper bound of times, delays and rates, in nanoseconds and bit/s.
const LARGEST: f64 = 1e18;

/// A mistake in a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message} (expected {expected})")]
pub struct TableError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What could stand there.
    pub expected: String,
}

impl<T: Copy> Table<T> {
    /// The value at each of these times; `None` unless they ascend strictly from the start.
    pub fn new(steps: Vec<(Instant, T)>) -> Option<Self> {
        let starts = steps.first().is_some_and(|(since, _)| *since == Instant::ZERO);
        let ascends = steps.windows(2).all(|pair| pair[0].0 < pair[1].0);
        (starts && ascends).then_some(Self { steps })
    }

    /// The value at `now`.
    pub fn at(&self, now: Instant) -> T {
        self.steps[self.index(now)].1
    }

    fn index(&self, now: Instant) -> usize {
        self.steps.partition_point(|(since, _)| *since <= now) - 1
    }

    /// The values, in the order of time.
    pub fn values(&self) -> impl Iterator<Item = T> + '_ {
        self.steps.iter().map(|(_, value)| *value)
    }

    /// Reads the times and the column called `name`; `value` makes one of base units, to which
    /// numbers are rounded, and of which there are at most `most`.
    fn parse(
        text: &str,
        name: &str,
        most: Option<(u64, &str)>,
        value: impl Fn(u64) -> T,
    ) -> Result<Self, TableError> {
        let (line, first) = header(text);
        let header = Header::read(first, name).map_err(|(message, expected)| TableError {
            line,
            message,
            expected,
        })?;
        let mut steps: Vec<(Instant, T)> = Vec::new();
        let mut last_line = line;
        for (line, content) in lines(text).skip(1) {
            let wrong = |message: String, expected: &str| TableError {
                line,
                message,
                expected: expected.to_owned(),
            };
            let cells: Vec<&str> = content.split(',').map(str::trim).collect();
            if cells.len() != header.columns {
                let message = format!("{:?} has {} values", shortened(content), cells.len());
                let expected = match header.columns {
                    2 => format!("a time and a {name}, separated by a comma"),
                    n => format!("{n} values separated by commas, as in the header"),
                };
                return Err(wrong(message, &expected));
            }
            let (at, cell) = (cells[0], cells[header.column]);
            let read = |cell: &str, unit: u64| match cell.parse::<f64>() {
                Ok(number) if (0.0..LARGEST).contains(&(number * unit as f64)) => {
                    Ok(libm::round(number * unit as f64) as u64)
                }
                Ok(_) => Err(wrong(format!("{cell:?} is out of range"), "a number, 0 or more")),
                Err(_) => Err(wrong(format!("{cell:?} is not a number"), "one without its unit")),
            };
            let since = Instant::from_nanos(read(at, header.time_unit)?);
            match steps.last() {
                None if since > Instant::ZERO => {
                    let message = format!("the first {name} holds from {since} s on");
                    return Err(wrong(message, "the first line at time 0"));
                }
                Some((before, _)) if since <= *before => {
                    let message = format!("{since} s does not come after {before} s");
                    return Err(wrong(message, "ascending times"));
                }
                _ => {}
            }
            let number = read(cell, header.unit)?;
            if let Some((_, expected)) = most.filter(|(most, _)| number > *most) {
                return Err(wrong(format!("{cell:?} is out of range"), expected));
            }
            steps.push((since, value(number)));
            last_line = line;
        }
        if steps.is_empty() {
            let (message, expected) =
                (format!("no {name} follows"), "at least one line".to_owned());
            return Err(TableError { line: last_line, message, expected });
        }
        Ok(Self { steps })
    }
}

/// The columns that a table may have, the time always and first.
static COLUMNS: [(&str, &[Unit]); 4] =
    [("time", units::DURATION), ("rate", units::RATE), ("delay", units::DURATION), ("loss", SHARE)];

/// True if a file of this name is a table; else it is a Mahimahi trace.
pub fn is_table(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.strip_suffix(".gz").unwrap_or(&name).ends_with(".csv")
}

/// The columns that the text of a table has beside the time, as far as they are known: `rate`, `delay`
/// or `loss`.
pub fn columns(text: &str) -> Vec<&'static str> {
    let cells = header(text).1.split(',').map(str::trim);
    cells.filter_map(column).map(|&(name, _)| name).filter(|name| *name != "time").collect()
}

/// The column that a cell of the header begins.
fn column(cell: &str) -> Option<&'static (&'static str, &'static [Unit])> {
    COLUMNS.iter().find(|(name, _)| cell.starts_with(name))
}

/// The lines of a table without comments, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = (1..).zip(text.lines().map(str::trim));
    lines.filter(|(_, l)| !l.is_empty() && !l.starts_with('#'))
}

/// The first of them.
fn header(text: &str) -> (usize, &str) {
    lines(text).next().unwrap_or((1, ""))
}

/// The first line of a table.
struct Header {
    /// Size of the time's unit.
    time_unit: u64,
    /// Number of columns.
    columns: usize,
    /// The column of the values, and the size of their unit.
    column: usize,
    unit: u64,
}

impl Header {
    /// The header of a table with a column `name`; `Err`: what is wrong, and what was expected.
    fn read(line: &str, name: &str) -> Result<Self, (String, String)> {
        let refused = |what| {
            let expected = match name {
                "rate" => "`time (UNIT),rate (UNIT)`, such as `time (s),rate (Mbit/s)`".to_owned(),
                "loss" => "`time (UNIT),loss (%)`, such as `time (s),loss (%)`".to_owned(),
                _ => format!("`time (UNIT),{name} (UNIT)`, such as `time (s),{name} (ms)`"),
            };
            (format!("{:?} {what}", shortened(line)), expected)
        };
        let none = || refused("is no header");
        // Spreadsheets write semicolons where the comma is a decimal point.
        if !line.contains(',') && line.contains([';', '\t']) {
            return Err(refused("has no commas between its columns"));
        }
        let mut found: Vec<(&str, u64)> = Vec::new();
        for cell in line.split(',').map(str::trim) {
            let Some(&(name, known)) = column(cell) else {
                let expected = "time, rate, delay or loss, with its unit".to_owned();
                let unknown = (format!("{:?} is an unknown column", shortened(cell)), expected);
                return Err(if found.is_empty() { none() } else { unknown });
            };
            let inner = cell[name.len()..].trim();
            let inner = inner.strip_prefix('(').and_then(|cell| cell.strip_suffix(')'));
            let unit = inner.ok_or_else(none)?.trim();
            let Some((_, size)) = known.iter().find(|(other, _)| *other == unit) else {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                let expected = format!("one of {}", names.join(", "));
                return Err((format!("{unit:?} is an unknown unit"), expected));
            };
            if found.iter().any(|(other, _)| *other == name) {
                let expected = "each column once".to_owned();
                return Err((format!("a second column of the {name}"), expected));
            }
            found.push((name, *size));
        }
        let column = found.iter().position(|(other, _)| *other == name);
        match (&found[..], column) {
            (&[("time", time_unit), ..], Some(column)) => {
                let unit = found[column].1;
                Ok(Self { time_unit, columns: found.len(), column, unit })
            }
            _ => Err(none()),
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Delays by time.
pub type Delays = Table<Duration>;

impl Delays {
    /// Reads a table of delays.
    ///
    /// # Errors
    /// The first wrong line.
    pub fn read(text: &str) -> Result<Self, TableError> {
        Self::parse(text, "delay", None, Duration::from_nanos)
    }
}

/// Loss probabilities by time.
pub type Losses = Table<f64>;

/// A probability in units of 10⁻⁹.
const SHARE: &[Unit] = &[("%", 10_000_000)];
const CERTAIN: u64 = 1_000_000_000;

impl Losses {
    /// Reads a table of loss probabilities.
    ///
    /// # Errors
    /// The first wrong line.
    pub fn read(text: &str) -> Result<Self, TableError> {
        let share = |parts| parts as f64 / CERTAIN as f64;
        Self::parse(text, "loss", Some((CERTAIN, "0 to 100")), share)
    }
}

/// Rates by time; without a rate, packets wait. The last one is a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates(Table<Option<DataRate>>);

impl Rates {
    /// Rates by time; `None` without a last rate.
    pub fn new(table: Table<Option<DataRate>>) -> Option<Self> {
        let (_, last) = table.steps[table.steps.len() - 1];
        last.map(|_| Self(table))
    }

    /// Reads a table of rates.
    ///
    /// # Errors
    /// The first wrong line.
    pub fn read(text: &str) -> Result<Self, TableError> {
        let table = Table::parse(text, "rate", None, DataRate::from_bits_per_sec)?;
        Self::new(table).ok_or_else(|| TableError {
            line: text.trim_end().lines().count(),
            message: "the last rate is 0, and packets would wait for ever".to_owned(),
            expected: "a last rate above zero".to_owned(),
        })
    }

    /// The lowest rate above zero.
    pub fn least(&self) -> DataRate {
        self.0.values().flatten().min().expect("the last is a rate")
    }

    /// The mean rate until the last line; of a single line, its rate.
    pub fn mean(&self) -> DataRate {
        let bits = |pair: &[(Instant, Option<DataRate>)]| {
            let rate = pair[0].1.map_or(0, DataRate::bits_per_sec);
            u128::from(rate) * u128::from(pair[1].0.since(pair[0].0).as_nanos())
        };
        let sum: u128 = self.0.steps.windows(2).map(bits).sum();
        let (end, last) = self.0.steps[self.0.steps.len() - 1];
        let mean = sum.checked_div(u128::from(end.as_nanos()));
        let mean = mean.and_then(|mean| u64::try_from(mean).ok());
        // Of nothing but zeros before the last line, that line's.
        mean.and_then(DataRate::from_bits_per_sec).or(last).expect("the last is a rate")
    }

    /// The mean rate from the start until `end`; the first one above zero if nothing can be carried
    /// until then.
    pub fn mean_until(&self, end: Instant) -> DataRate {
        let nanos = u128::from(end.as_nanos());
        let mean = self.work(end).checked_div(nanos).and_then(|mean| u64::try_from(mean).ok());
        let first = || self.0.steps.iter().find_map(|&(_, rate)| rate);
        mean.and_then(DataRate::from_bits_per_sec).or_else(first).expect("the last is a rate")
    }

    /// The bytes that can be carried from the start until `until`.
    pub fn carried(&self, until: Instant) -> Bytes {
        Bytes(u64::try_from(self.work(until) / 8_000_000_000).unwrap_or(u64::MAX))
    }

    /// The same in nanobits.
    fn work(&self, until: Instant) -> u128 {
        let steps = &self.0.steps[..=self.0.index(until)];
        let ends = steps.iter().skip(1).map(|(since, _)| *since).chain([until]);
        let work = |((since, rate), end): (&(Instant, Option<DataRate>), Instant)| {
            let rate = rate.map_or(0, DataRate::bits_per_sec);
            u128::from(rate) * u128::from(end.since(*since).as_nanos())
        };
        steps.iter().zip(ends).map(work).sum()
    }

    /// The bits that can be carried from `start` to `end`.
    pub(crate) fn bits_between(&self, start: Instant, end: Instant) -> u64 {
        let steps = &self.0.steps[self.0.index(start)..];
        let mut nanobits: u128 = 0;
        for (i, &(since, rate)) in steps.iter().enumerate() {
            if since >= end {
                break;
            }
            let until = steps.get(i + 1).map_or(end, |next| next.0.min(end));
            let rate = rate.map_or(0, DataRate::bits_per_sec);
            nanobits += u128::from(rate) * u128::from(until.since(since.max(start)).as_nanos());
        }
        u64::try_from(nanobits / 1_000_000_000).unwrap_or(u64::MAX)
    }

    /// The departure of a packet served from `start`.
    pub(crate) fn departure(&self, start: Instant, size: Bytes) -> Instant {
        // Bits times nanoseconds in a second, so that a rate times a duration in nanoseconds is
        // work done.
        let mut work = u128::from(size.get()) * 8_000_000_000;
        let mut now = start;
        let steps = &self.0.steps[self.0.index(start)..];
        for (i, (_, rate)) in steps.iter().enumerate() {
            let rate = u128::from(rate.map_or(0, DataRate::bits_per_sec));
            let done = steps
                .get(i + 1)
                .map(|(until, _)| (*until, rate * u128::from(until.since(now).as_nanos())));
            match done {
                Some((until, done)) if done < work => {
                    work -= done;
                    now = until;
                }
                _ => {
                    let rest = work.div_ceil(rate.max(1));
                    return now + Duration::from_nanos(u64::try_from(rest).unwrap_or(u64::MAX));
                }
            }
        }
        unreachable!("the last rate serves what is left")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    fn rates(lines: &str) -> Rates {
        Rates::read(&format!("time (s),rate (Mbit/s)\n{lines}")).expect(lines)
    }

    #[test]
    fn a_value_holds_until_the_next() {
        let delays = Delays::read("time (s),delay (ms)\n0,20\n\n# later\n1.5, 200\n").unwrap();
        let at = |n| delays.at(ms(n)).as_millis();
        assert_eq!([at(0), at(1499), at(1500), at(99_999)], [20, 20, 200, 200]);
    }

    #[test]
    fn losses_are_in_percent() {
        let losses = Losses::read("time (s),loss (%)\n0,0\n1,12.5\n2,100\n").unwrap();
        assert_eq!([0, 1000, 2000].map(|n| losses.at(ms(n))), [0.0, 0.125, 1.0]);
        for (text, expected) in [
            ("0,100.1", "line 2: \"100.1\" is out of range (expected 0 to 100)"),
            ("0,-1", "line 2: \"-1\" is out of range (expected a number, 0 or more)"),
        ] {
            let error = Losses::read(&format!("time (s),loss (%)\n{text}\n")).expect_err(text);
            assert_eq!(error.to_string(), expected);
        }
        let error = Losses::read("time (s),loss\n0,1\n").expect_err("no unit").to_string();
        assert!(error.starts_with("line 1: \"time (s),loss\" is no header"), "{error}");
    }

    #[test]
    fn one_table_may_have_rate_delay_and_loss() {
        let text = "time (s),loss (%),rate (Mbit/s), delay (ms)\n0,1,8,40\n15,0,4,55\n";
        let at = |n| {
            let (delays, losses) = (Delays::read(text).unwrap(), Losses::read(text).unwrap());
            (delays.at(ms(n)).as_millis(), losses.at(ms(n)))
        };
        assert_eq!([at(14_999), at(15_000)], [(40, 0.01), (55, 0.0)]);
        let rates = Rates::read(text).unwrap();
        assert_eq!(rates.carried(ms(16_000)), Bytes(15_000_000 + 500_000));
    }

    #[test]
    fn a_table_of_several_columns_has_no_gaps() {
        let both = |lines| Delays::read(&format!("time (s),rate (Mbit/s),delay (ms)\n{lines}"));
        for (lines, expected) in [
            ("0,8,\n", "line 2: \"\" is not a number (expected one without its unit)"),
            (
                "0,8,40\n1,8\n",
                "line 3: \"1,8\" has 2 values (expected 3 values separated by commas, as in the header)",
            ),
            (
                "0,8,40\n5,8,40\n4,8,40\n",
                "line 4: 4.000000000 s does not come after 5.000000000 s (expected ascending times)",
            ),
        ] {
            assert_eq!(both(lines).expect_err(lines).to_string(), expected);
        }
    }

    #[test]
    fn a_header_has_each_column_once_and_the_one_that_is_read() {
        for (header, expected) in [
            ("time (s),rate (Mbit/s)", "line 1: \"time (s),rate (Mbit/s)\" is no header"),
            ("delay (ms),time (s)", "line 1: \"delay (ms),time (s)\" is no header"),
            (
                "time (s);delay (ms)",
                "line 1: \"time (s);delay (ms)\" has no commas between its columns",
            ),
            (
                "time (s)\tdelay (ms)",
                "line 1: \"time (s)\\tdelay (ms)\" has no commas between its columns",
            ),
            ("time (s),delay (ms),rtt (ms)", "line 1: \"rtt (ms)\" is an unknown column"),
            ("time (s),delay (ms),delay (s)", "line 1: a second column of the delay"),
            ("time (s),delay (ms),rate (MB/s)", "line 1: \"MB/s\" is an unknown unit"),
        ] {
            let error = Delays::read(&format!("{header}\n0,1,2\n")).expect_err(header).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_table_begins_at_the_start_and_goes_on() {
        assert!(Table::new(vec![(ms(0), 1), (ms(5), 2)]).is_some());
        for steps in [vec![], vec![(ms(1), 1)], vec![(ms(0), 1), (ms(0), 2)]] {
            assert!(Table::new(steps).is_none());
        }
        let last = |rate| Rates::new(Table::new(vec![(ms(0), rate)]).unwrap());
        assert!(last(None).is_none() && last(Some(DataRate::mbps(1))).is_some());
    }

    #[test]
    fn units_stand_in_the_first_line() {
        let delays = Delays::read("time (ms),delay (us)\n0,20\n").unwrap();
        assert_eq!(delays.at(ms(0)), Duration::from_micros(20));
    }

    #[test]
    fn a_packet_is_served_at_the_rates_of_its_time() {
        let rates = rates("0,8\n1,0\n2,1\n");
        // 1000 bytes take 1 ms at 8 Mbit/s, 8 ms at 1 Mbit/s.
        assert_eq!(rates.departure(ms(10), Bytes(1000)), ms(11));
        assert_eq!(rates.departure(ms(999), Bytes(1000)), ms(1000));
        assert_eq!(rates.departure(ms(1500), Bytes(1000)), ms(2008));
        // Half before the pause, half after it.
        let half = Instant::from_nanos(999_500_000);
        assert_eq!(rates.departure(half, Bytes(1000)), ms(2004));
    }

    #[test]
    fn the_mean_rate_until_a_time_counts_all_lines() {
        let rates = rates("0,8\n1,0\n2,1\n");
        let mean = |n| rates.mean_until(ms(n)).bits_per_sec();
        assert_eq!([1000, 2000, 4000].map(mean), [8_000_000, 4_000_000, 2_500_000]);
        assert_eq!(mean(0), 8_000_000);
    }

    #[test]
    fn what_is_carried_until_a_time() {
        let rates = rates("0,8\n1,0\n2,1\n");
        let carried = |n| rates.carried(ms(n)).get();
        assert_eq!(
            [carried(0), carried(500), carried(1500), carried(2008)],
            [0, 500_000, 1_000_000, 1_001_000]
        );
    }

    #[test]
    fn the_mean_is_that_until_the_last_line() {
        assert_eq!(rates("0,8\n1,0\n2,1\n").mean(), DataRate::mbps(4));
        assert_eq!(rates("0,3\n").mean(), DataRate::mbps(3));
        assert_eq!(rates("0,0\n1,3\n").mean(), DataRate::mbps(3));
    }

    #[test]
    fn wrong_tables_are_refused_with_the_line() {
        let header = "time (s),rate (Mbit/s)";
        for (text, expected) in [
            (
                "",
                "line 1: \"\" is no header (expected `time (UNIT),rate (UNIT)`, such as `time (s),rate (Mbit/s)`)",
            ),
            (
                "0,8\n",
                "line 1: \"0,8\" is no header (expected `time (UNIT),rate (UNIT)`, such as `time (s),rate (Mbit/s)`)",
            ),
            (
                "time (s),rate (MB/s)\n",
                "line 1: \"MB/s\" is an unknown unit (expected one of bit/s, ",
            ),
            ("H\n", "line 1: no rate follows (expected at least one line)"),
            (
                "H\n0,8\n0.5\n",
                "line 3: \"0.5\" has 1 values (expected a time and a rate, separated by a comma)",
            ),
            ("H\n0,8\n1,\n", "line 3: \"\" is not a number (expected one without its unit)"),
            (
                "H\n0,8 Mbit/s\n",
                "line 2: \"8 Mbit/s\" is not a number (expected one without its unit)",
            ),
            ("H\n0,-8\n", "line 2: \"-8\" is out of range (expected a number, 0 or more)"),
            (
                "H\n1,8\n",
                "line 2: the first rate holds from 1.000000000 s on (expected the first line at time 0)",
            ),
            (
                "H\n0,8\n5,1\n4,8\n",
                "line 4: 4.000000000 s does not come after 5.000000000 s (expected ascending times)",
            ),
            (
                "H\n0,8\n5,0\n",
                "line 3: the last rate is 0, and packets would wait for ever (expected a last rate above zero)",
            ),
        ] {
            let error = Rates::read(&text.replace('H', header)).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(time \\(s\\),(rate \\(Mbit/s\\)|delay \\(s\\))\n)?([0-9.,e# -]{0,12}\n){0,5}") {
            let _ = (Rates::read(&text), Delays::read(&text), Losses::read(&text));
        }

        /// A table whose rate never changes serves as that rate does.
        #[test]
        fn equal_rates_are_one_rate(
            rate in 1_u64..10_000_000_000, start in 0_u64..5_000_000_000, size in 1_u64..100_000,
        ) {
            let table = format!("time (s),rate (bit/s)\n0,{rate}\n0.5,{rate}\n2,{rate}\n");
            let (start, size) = (Instant::from_nanos(start), Bytes(size));
            let rate = DataRate::from_bits_per_sec(rate).unwrap();
            let expected = start + rate.transmission_time(size);
            prop_assert_eq!(Rates::read(&table).unwrap().departure(start, size), expected);
        }
    }
}
