//! A log of the packets on a link, in the format of Mahimahi's `mm-link`.
//!
//! Each line begins with a time in milliseconds since the link started: `+ BYTES`, a packet
//! arrived; `d PACKETS BYTES`, the link dropped it; `- BYTES DELAY`, it left the link's server
//! after DELAY ms; `# BYTES`, an opportunity to send that much. Unlike in Mahimahi, a packet may be
//! lost behind the queue, to an outage or the loss model: that is also a `d`, at the time of its
//! departure. A link with a constant rate has an opportunity each millisecond, for the bytes that
//! it can send in that time. There are none in an outage.
//!
//! As in the model, packets of a trace-driven link count 4 bytes more than their IP size.

use crate::config::{LinkConfig, LinkRate, QueueConfig, QueueLimit, Schedule};
use crate::fading::Fading;
use crate::link::{Departure, LinkStreams};
use crate::table::Rates;
use crate::trace::{self, Trace};
use airtcp_core::{Bytes, DataRate, Duration, Instant};
use std::io::{self, Write};
use std::sync::Arc;

/// An event on a link; events are logged in order of time.
#[derive(Clone, Copy, Debug)]
pub enum LinkEvent {
    /// A packet arrived.
    Arrival(Instant, Bytes),
    /// The policer, the loss model or the queue dropped a packet at its arrival.
    Refusal(Instant, Bytes),
    /// A packet left the server.
    Departure(Departure),
    /// An order took the link down (true) or up.
    Steered(Instant, bool),
    /// An order made the rate constant.
    Rate(Instant, DataRate),
    /// The run ended at this time.
    End(Instant),
}

/// The first lines of a log.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// Name of the link or the direction.
    pub name: &'a str,
    /// The file in which the log is.
    pub file: &'a str,
    /// The command that made it.
    pub command_line: &'a str,
    /// Time at which the link started, in milliseconds since 1970.
    pub started: u128,
}

fn queue(config: &QueueConfig) -> String {
    match config {
        QueueConfig::DropTail { limit: QueueLimit::Packets(n) } => {
            format!("droptail [packets={n}]")
        }
        QueueConfig::DropTail { limit: QueueLimit::Bytes(n) } => {
            format!("droptail [bytes={}]", n.get())
        }
        QueueConfig::Red(config) => format!("red [packets={}]", config.limit),
        QueueConfig::Codel(config) => format!("codel [packets={}]", config.limit),
        QueueConfig::FqCodel(config) => format!("fq_codel [packets={}]", config.limit),
        QueueConfig::Pie(config) => format!("pie [packets={}]", config.limit),
        QueueConfig::DualPi2(config) => format!("dualpi2 [packets={}]", config.limit),
    }
}

/// Writes events as lines of a log.
#[derive(Debug)]
pub struct LinkLog<W> {
    to: W,
    /// Bytes that the model adds to a packet's size.
    header: Bytes,
    capacity: Capacity,
    outages: Schedule,
    /// Taken down by an order.
    down: bool,
}

/// Capacity of the server.
#[derive(Debug)]
enum Capacity {
    /// A constant rate, as one opportunity each millisecond; `passed` of them are over.
    Rate { rate: DataRate, passed: u64 },
    /// The same of a rate that changes.
    Table { rates: Arc<Rates>, passed: u64 },
    /// The same of a channel that fades. Times are asked for in order: going back takes long.
    Fading {
        fading: Box<Fading>,
        passed: u64,
        /// What the next opportunity has, with what is left of those before it, less than a byte.
        nanobits: u128,
    },
    /// A trace; `passed` of its opportunities are over.
    Trace { trace: Arc<Trace>, passed: u64 },
}

impl Capacity {
    /// Time and size of the next opportunity.
    fn next(&self) -> (Instant, Bytes) {
        match self {
            Self::Rate { rate, passed } => {
                let until = |ms: u64| {
                    let bits = u128::from(rate.bits_per_sec()) * u128::from(ms) / 1000;
                    Bytes((bits / 8) as u64)
                };
                (Instant::from_millis(*passed + 1), until(*passed + 1) - until(*passed))
            }
            Self::Table { rates, passed } => {
                let until = |ms: u64| rates.carried(Instant::from_millis(ms));
                (Instant::from_millis(*passed + 1), until(*passed + 1) - until(*passed))
            }
            Self::Fading { passed, nanobits, .. } => {
                let bytes = u64::try_from(*nanobits / NANOBITS).unwrap_or(u64::MAX);
                (Instant::from_millis(*passed + 1), Bytes(bytes))
            }
            Self::Trace { trace, passed } => (trace.time(*passed), trace::OPPORTUNITY),
        }
    }

    fn pass(&mut self) {
        match self {
            Self::Rate { passed, .. } | Self::Table { passed, .. } | Self::Trace { passed, .. } => {
                *passed += 1
            }
            Self::Fading { fading, passed, nanobits } => {
                *passed += 1;
                *nanobits = *nanobits % NANOBITS + in_millisecond(fading, *passed);
            }
        }
    }

    /// The instant at which an outage takes the opportunity at `at`: that of a rate stands for the
    /// millisecond before it.
    fn subject_to(&self, at: Instant) -> Instant {
        match self {
            Self::Trace { .. } => at,
            Self::Rate { .. } | Self::Table { .. } | Self::Fading { .. } => {
                Instant::from_nanos(at.as_nanos().saturating_sub(1))
            }
        }
    }
}

impl<W: Write> LinkLog<W> {
    /// A log of a link of `config` with these streams. Of a link in a cell, the opportunities are
    /// those that it would have alone.
    pub fn new(to: W, config: &LinkConfig, streams: LinkStreams<'_>) -> Self {
        let (header, capacity) = match &config.rate {
            LinkRate::Mahimahi(trace) => {
                (trace::HEADER, Capacity::Trace { trace: trace.clone(), passed: 0 })
            }
            LinkRate::Constant(rate) => {
                let of_cells = config.handover.as_ref().and_then(|it| it.rates(*rate));
                let capacity = match of_cells {
                    Some(rates) => Capacity::Table { rates: Arc::new(rates), passed: 0 },
                    None => Capacity::Rate { rate: *rate, passed: 0 },
                };
                (Bytes::ZERO, capacity)
            }
            LinkRate::Table(rates) => {
                (Bytes::ZERO, Capacity::Table { rates: rates.clone(), passed: 0 })
            }
            LinkRate::Fading(config) => {
                let mut fading = Box::new(Fading::new(**config, streams.of_fading()));
                let nanobits = in_millisecond(&mut fading, 0);
                (Bytes::ZERO, Capacity::Fading { fading, passed: 0, nanobits })
            }
        };
        let none = || Schedule::Listed(Vec::new());
        let outages = config.interruptions().unwrap_or_else(none);
        Self { to, header, capacity, outages, down: false }
    }

    /// Writes the first lines.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_header(&mut self, header: &Header<'_>, config: &LinkConfig) -> io::Result<()> {
        let server = match &config.rate {
            LinkRate::Constant(rate) => rate.to_string(),
            LinkRate::Mahimahi(_) => "trace".to_owned(),
            LinkRate::Table(_) => "table".to_owned(),
            LinkRate::Fading(_) => "fading".to_owned(),
        };
        // A command may be a script, and a comment is one line.
        let one_line = |text: &str| text.replace(['\n', '\r'], " ");
        let &Header { name, file, command_line, started } = header;
        let (file, command_line) = (one_line(file), one_line(command_line));
        write!(
            self.to,
            "# mahimahi mm-link ({name}) [{server}] > {file}\n# command line: {command_line}\n\
             # queue: {}\n# init timestamp: {started}\n# base timestamp: 0\n",
            queue(&config.queue)
        )
    }

    /// Flushes and returns the writer.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush().map(|()| self.to)
    }

    /// Writes what happened.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&mut self, event: LinkEvent) -> io::Result<()> {
        match event {
            LinkEvent::Arrival(at, size) => {
                self.opportunities_until(at)?;
                let size = (size + self.header).get();
                writeln!(self.to, "{} + {size}", millis(at))
            }
            LinkEvent::Refusal(at, size) => {
                self.opportunities_until(at)?;
                self.drop(at, size)
            }
            LinkEvent::Departure(Departure { at, size, lost: true, .. }) => {
                self.opportunities_until(at)?;
                self.drop(at, size)
            }
            LinkEvent::Departure(Departure { arrived, at, size, lost: false }) => {
                self.opportunities_until(at)?;
                let size = (size + self.header).get();
                let delay = millis(at) - millis(arrived);
                writeln!(self.to, "{} - {size} {delay}", millis(at))
            }
            LinkEvent::Steered(at, down) => {
                self.opportunities_until(at)?;
                self.down = down;
                Ok(())
            }
            LinkEvent::Rate(at, rate) => {
                self.opportunities_until(at)?;
                self.header = Bytes::ZERO;
                self.capacity = Capacity::Rate { rate, passed: millis(at) };
                Ok(())
            }
            LinkEvent::End(at) => self.opportunities_until(at),
        }
    }

    fn drop(&mut self, at: Instant, size: Bytes) -> io::Result<()> {
        writeln!(self.to, "{} d 1 {}", millis(at), (size + self.header).get())
    }

    fn opportunities_until(&mut self, now: Instant) -> io::Result<()> {
        loop {
            let (at, size) = self.capacity.next();
            if at > now {
                return Ok(());
            }
            if !self.down && !self.outages.is_down(self.capacity.subject_to(at)) {
                writeln!(self.to, "{} # {}", millis(at), size.get())?;
            }
            self.capacity.pass();
        }
    }
}

/// In a byte.
const NANOBITS: u128 = 8_000_000_000;

/// Nanobits that a channel can carry in a millisecond, by its number.
fn in_millisecond(fading: &mut Fading, number: u64) -> u128 {
    fading.nanobits_between(Instant::from_millis(number), Instant::from_millis(number + 1))
}

/// Time since the start in whole milliseconds.
fn millis(at: Instant) -> u64 {
    at.since_start().as_nanos() / Duration::from_millis(1).as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DelayConfig, LossConfig, OutageConfig, OutageMode};
    use crate::fading::{Efficiency, FadingConfig};
    use crate::link::{Link, PacketMeta};

    fn us(n: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(n)
    }

    fn streams() -> LinkStreams<'static> {
        LinkStreams::named(1, "test")
    }

    fn config() -> LinkConfig {
        LinkConfig {
            rate: DataRate::mbps(1).into(),
            delay: DelayConfig { base: Duration::from_millis(20), variation: None },
            loss: LossConfig::None.into(),
            duplicate: 0.0,
            policer: None,
            outage: None,
            reconfiguration: None,
            handover: None,
            rlc: None,
            queue: QueueConfig::DropTail { limit: QueueLimit::Packets(2) },
        }
    }

    fn traced(trace: &str) -> LinkConfig {
        LinkConfig { rate: LinkRate::Mahimahi(Arc::new(Trace::parse(trace).unwrap())), ..config() }
    }

    /// The log of a link of `config` to which packets of 625 bytes are sent at these microseconds,
    /// 5 ms each at 1 Mbit/s.
    fn log(config: &LinkConfig, sends: &[u64], end: u64) -> String {
        let mut link = Link::new(config, streams());
        link.report_departures();
        let mut text = LinkLog::new(Vec::new(), config, streams());
        let mut write = |event| text.write(event).unwrap();
        let size = Bytes(625);
        for &at in sends {
            while let Some(departure) = link.next_departure(us(at)) {
                write(LinkEvent::Departure(departure));
            }
            write(LinkEvent::Arrival(us(at), size));
            if link.send(us(at), 0, PacketMeta::new(size, true)).is_err() {
                write(LinkEvent::Refusal(us(at), size));
            }
        }
        while let Some(departure) = link.next_departure(us(end)) {
            write(LinkEvent::Departure(departure));
        }
        write(LinkEvent::End(us(end)));
        String::from_utf8(text.to).unwrap()
    }

    #[test]
    fn the_opportunities_of_a_trace_give_way_to_those_of_a_rate_by_hand() {
        let mut text = LinkLog::new(Vec::new(), &traced("2\n"), streams());
        let rate = LinkEvent::Rate(us(2_500), DataRate::mbps(2));
        for event in [rate, LinkEvent::Arrival(us(3_500), Bytes(625)), LinkEvent::End(us(4_000))] {
            text.write(event).unwrap();
        }
        let text = String::from_utf8(text.to).unwrap();
        assert_eq!(text, "2 # 1504\n3 # 250\n3 + 625\n4 # 250\n");
    }

    #[test]
    fn a_constant_rate_has_an_opportunity_each_millisecond() {
        assert_eq!(
            log(&config(), &[1_500], 7_900),
            "1 # 125\n1 + 625\n2 # 125\n3 # 125\n4 # 125\n5 # 125\n6 # 125\n6 - 625 5\n7 # 125\n"
        );
    }

    #[test]
    fn a_packet_that_finds_the_queue_full_is_dropped() {
        let lines = log(&config(), &[1_500, 1_500, 1_500, 1_500], 1_500);
        assert_eq!(lines, "1 # 125\n1 + 625\n1 + 625\n1 + 625\n1 + 625\n1 d 1 625\n");
    }

    #[test]
    fn a_trace_has_its_opportunities_and_counts_headers() {
        // Two packets of 629 bytes use an opportunity of 1504; its rest is lost.
        assert_eq!(
            log(&traced("3\n10\n"), &[1_500, 1_500, 4_000], 13_000),
            "1 + 629\n1 + 629\n3 # 1504\n3 - 629 2\n3 - 629 2\n4 + 629\n10 # 1504\n10 - 629 6\n\
             13 # 1504\n"
        );
    }

    #[test]
    fn the_opportunities_of_a_channel_are_those_that_packets_have() {
        let fading = FadingConfig {
            snr: 10.0,
            bandwidth: 1e5,
            coherence_time: Duration::from_millis(2),
            efficiency: Efficiency::Shannon,
        };
        let config = LinkConfig { rate: LinkRate::Fading(Arc::new(fading)), ..config() };
        let log = log(&config, &[0, 0, 0], 100_000);
        let fields = log.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let fields: Vec<_> = fields.collect();
        let number = |text: &str| text.parse::<u64>().unwrap();
        let by = |ms: u64| -> u64 {
            let until = fields.iter().filter(|it| it[1] == "#" && number(it[0]) <= ms);
            until.map(|it| number(it[2])).sum()
        };
        let departures = fields.iter().filter(|it| it[1] == "-").map(|it| number(it[0]));
        let departures: Vec<u64> = departures.collect();
        assert_eq!(departures.len(), 3);
        for (bytes, ms) in [625, 1250, 1875].into_iter().zip(departures) {
            assert!(by(ms) <= bytes && by(ms + 1) + 1 >= bytes, "{bytes} B by {ms} ms");
        }
    }

    #[test]
    fn a_slow_channel_has_whole_bytes_now_and_then() {
        let fading = FadingConfig {
            snr: 10.0,
            bandwidth: 500.0,
            coherence_time: Duration::from_micros(300),
            efficiency: Efficiency::Shannon,
        };
        let carried = Fading::new(fading, streams().of_fading()).bits_between(us(0), us(1_000_000));
        let config = LinkConfig { rate: LinkRate::Fading(Arc::new(fading)), ..config() };
        let log = log(&config, &[], 1_000_000);
        let sizes =
            log.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
        let bits = 8 * sizes.sum::<u64>();
        assert!(carried > 1000 && (carried - 8..=carried).contains(&bits), "{bits} of {carried}");
    }

    #[test]
    fn an_opportunity_is_that_of_the_time_before_it() {
        let mut config = config();
        let schedule = Schedule::Listed(vec![(us(2_000), us(5_000))]);
        config.outage = Some(OutageConfig { schedule, mode: OutageMode::Hold });
        assert_eq!(log(&config, &[], 6_000), "1 # 125\n2 # 125\n6 # 125\n");
        // Those of a trace take no time.
        let rate = traced("1\n2\n3\n4\n5\n").rate;
        let trace = log(&LinkConfig { rate, ..config }, &[], 6_000);
        assert_eq!(trace, "1 # 1504\n5 # 1504\n6 # 1504\n");
    }

    #[test]
    fn in_an_outage_there_are_no_opportunities_and_packets_are_dropped_as_they_leave() {
        let mut config = config();
        let schedule = Schedule::Listed(vec![(us(2_500), us(5_500))]);
        config.outage = Some(OutageConfig { schedule, mode: OutageMode::Drop });
        assert_eq!(
            log(&config, &[1_500], 6_500),
            "1 # 125\n1 + 625\n2 # 125\n6 # 125\n6 d 1 625\n"
        );
    }
}
