//! A link rate that follows a recording: Mahimahi's packet-delivery traces.
//!
//! Read first: R. Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC
//! 2015, §4. Each line of a trace is a time in milliseconds at which the link can carry 1504 bytes;
//! the trace repeats after its last line. Several packets may share an opportunity, and a packet
//! may need several. An opportunity that finds no packet waiting is lost. A packet counts 4 bytes
//! more than its IP size, the header that Mahimahi's TUN device adds.

use airtcp_core::{Bytes, DataRate, Duration, Instant};

/// Bytes carried by one opportunity.
pub const OPPORTUNITY: Bytes = Bytes(1504);
/// Header bytes added to each packet.
pub const HEADER: Bytes = Bytes(4);

/// A trace. There is always a next opportunity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Ascending, not empty; the last is above zero and is the period.
    times: Vec<Duration>,
}

/// A mistake in a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line is not a number.
    #[error("line {line}: {found:?} is not a time (expected whole milliseconds, one a line)")]
    NotATime {
        /// Line, from 1.
        line: usize,
        /// The text of the line.
        found: String,
    },
    /// Times go back.
    #[error("line {line}: {found} ms comes before the line above (expected ascending times)")]
    GoesBack {
        /// Line, from 1.
        line: usize,
        /// The time on the line.
        found: u64,
    },
    /// No line, or none above zero.
    #[error("the trace has no duration (expected a last line above 0)")]
    Empty,
}

impl Trace {
    /// Reads a trace file's text.
    ///
    /// # Errors
    /// The first wrong line.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        // Some editors begin a file with a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut times: Vec<Duration> = Vec::new();
        for (i, found) in text.lines().enumerate() {
            let line = i + 1;
            let millis: u64 = found.trim().parse().map_err(|_| TraceError::NotATime {
                line,
                found: found.chars().take(40).collect(),
            })?;
            let time = Duration::from_millis(millis);
            if times.last().is_some_and(|last| time < *last) {
                return Err(TraceError::GoesBack { line, found: millis });
            }
            times.push(time);
        }
        match times.last() {
            Some(last) if !last.is_zero() => Ok(Self { times }),
            _ => Err(TraceError::Empty),
        }
    }

    fn period(&self) -> Duration {
        self.times[self.times.len() - 1]
    }

    /// The long-run mean rate.
    pub fn mean_rate(&self) -> DataRate {
        let bits = 8 * OPPORTUNITY.get() as u128 * self.times.len() as u128;
        let rate = bits * 1_000_000_000 / u128::from(self.period().as_nanos());
        let rate = DataRate::from_bits_per_sec(u64::try_from(rate).unwrap_or(u64::MAX));
        // A trace that lasts years may have less than one bit per second.
        rate.unwrap_or(const { DataRate::from_bits_per_sec(1).unwrap() })
    }

    /// The time of the opportunity with this number, counted from 0.
    pub fn time(&self, number: u64) -> Instant {
        let count = self.times.len() as u64;
        let within = self.times[(number % count) as usize];
        Instant::ZERO + self.period() * (number / count) + within
    }

    /// The first opportunity after `now`: a packet is too late for an opportunity at the instant of
    /// its arrival.
    fn first_after(&self, now: Instant) -> u64 {
        self.first_at(now + Duration::from_nanos(1))
    }

    /// The first opportunity at or after `at`.
    fn first_at(&self, at: Instant) -> u64 {
        // The end of a round belongs to that round.
        let since = at.since_start();
        let cycles = since.as_nanos().saturating_sub(1) / self.period().as_nanos();
        let rest = since - self.period() * cycles;
        let passed = self.times.partition_point(|time| *time < rest);
        cycles * self.times.len() as u64 + passed as u64
    }
}

/// The server of a link that follows a trace.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    trace: Trace,
    /// The first opportunity that no packet has used.
    next: u64,
    /// The last opportunity used: its time, and the bytes it can still carry.
    last: (Instant, Bytes),
}

impl Opportunities {
    pub(crate) fn new(trace: Trace) -> Self {
        Self { trace, next: 0, last: (Instant::ZERO, Bytes::ZERO) }
    }

    /// Forgets the opportunities used so far. The next start of service comes after all that have
    /// been served.
    pub(crate) fn restart(&mut self) {
        self.next = 0;
        self.last = (Instant::ZERO, Bytes::ZERO);
    }

    /// Start of service of a packet that waits from `now`.
    pub(crate) fn start(&self, now: Instant) -> Instant {
        let (time, left) = self.last;
        if time > now && left > Bytes::ZERO {
            return time;
        }
        self.trace.time(self.next.max(self.trace.first_after(now)))
    }

    /// Serves a packet from the opportunity at `start`, which [`Opportunities::start`] returned.
    /// Returns when its last byte leaves.
    pub(crate) fn serve(&mut self, start: Instant, size: Bytes) -> Instant {
        let mut need = size + HEADER;
        if self.last.0 < start {
            self.last.1 = Bytes::ZERO;
            self.next = self.next.max(self.trace.first_at(start));
        }
        loop {
            if self.last.1 == Bytes::ZERO {
                self.last = (self.trace.time(self.next), OPPORTUNITY);
                self.next += 1;
            }
            let carried = need.min(self.last.1);
            need -= carried;
            self.last.1 -= carried;
            if need == Bytes::ZERO {
                return self.last.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{
        DelayConfig, LinkConfig, LinkRate, LossConfig, OutageConfig, OutageMode, QueueConfig,
        QueueLimit, Schedule,
    };
    use crate::{Dropped, Link, LinkStreams, Output, PacketMeta, Passage};
    use airtcp_core::event::DropReason;
    use std::sync::Arc;

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    /// A server and the packets that arrive at it.
    struct Server(Opportunities);

    fn server(text: &str) -> Server {
        Server(Opportunities::new(Trace::parse(text).unwrap()))
    }

    impl Server {
        fn start(&self, now: Instant) -> Instant {
            self.0.start(now)
        }
        fn serve(&mut self, now: Instant, size: Bytes) -> Instant {
            self.0.serve(self.0.start(now), size)
        }
    }

    #[test]
    fn a_full_packet_takes_one_opportunity() {
        let mut server = server("10\n20\n30\n");
        assert_eq!(server.serve(ms(0), Bytes(1500)), ms(10));
        assert_eq!(server.serve(ms(0), Bytes(1500)), ms(20));
    }

    #[test]
    fn small_packets_share_an_opportunity() {
        // 4 x (372 + 4) = 1504.
        let mut server = server("10\n20\n");
        for _ in 0..4 {
            assert_eq!(server.serve(ms(0), Bytes(372)), ms(10));
        }
        assert_eq!(server.start(ms(0)), ms(20));
    }

    #[test]
    fn a_large_packet_takes_several() {
        let mut server = server("10\n20\n30\n");
        assert_eq!(server.serve(ms(0), Bytes(3000)), ms(20));
        // 4 bytes of the second opportunity are left for the next packet.
        assert_eq!(server.start(ms(0)), ms(20));
        assert_eq!(server.serve(ms(0), Bytes(1496)), ms(30));
    }

    #[test]
    fn an_opportunity_without_a_packet_is_lost() {
        let mut server = server("10\n20\n30\n");
        assert_eq!(server.serve(ms(0), Bytes(100)), ms(10));
        // The rest of the first opportunity went unused.
        assert_eq!(server.serve(ms(10), Bytes(100)), ms(20));
        assert_eq!(server.serve(ms(25), Bytes(100)), ms(30));
    }

    #[test]
    fn the_trace_repeats_from_its_last_line() {
        let mut server = server("10\n30\n");
        let departures: Vec<Instant> = (0..5).map(|_| server.serve(ms(0), Bytes(1500))).collect();
        assert_eq!(departures, [10, 30, 40, 60, 70].map(ms));
        assert_eq!(server.serve(ms(300), Bytes(1500)), ms(310));
    }

    #[test]
    fn opportunities_of_one_millisecond_add_up() {
        let mut server = server("0\n5\n5\n");
        assert_eq!(server.serve(ms(1), Bytes(1500)), ms(5));
        assert_eq!(server.serve(ms(1), Bytes(1500)), ms(5));
        // The first line of the next round.
        assert_eq!(server.serve(ms(1), Bytes(1500)), ms(5));
        assert_eq!(server.serve(ms(1), Bytes(1500)), ms(10));
    }

    #[test]
    fn opportunities_during_a_holding_outage_go_unused() {
        let config = LinkConfig {
            rate: LinkRate::Mahimahi(Arc::new(Trace::parse("10\n").unwrap())),
            delay: DelayConfig { base: Duration::from_millis(3), variation: None },
            loss: LossConfig::None.into(),
            duplicate: 0.0,
            policer: None,
            outage: Some(OutageConfig {
                schedule: Schedule::Listed(vec![(ms(15), ms(35))]),
                mode: OutageMode::Hold,
            }),
            reconfiguration: None,
            handover: None,
            rlc: None,
            queue: QueueConfig::DropTail { limit: QueueLimit::Packets(2) },
        };
        let mut link = Link::new(&config, LinkStreams::named(1, "test"));
        let meta = PacketMeta::new(Bytes(1500), true);
        assert!(link.send(ms(0), 1, meta).is_ok());
        assert!(link.send(ms(0), 2, meta).is_ok());
        // Both wait for an opportunity.
        assert_eq!(link.send(ms(0), 3, meta), Err(Dropped(3, DropReason::Queue)));
        assert_eq!(link.next_deadline(), Some(ms(13)));
        assert_eq!(link.poll(ms(13)), Some(Output::Deliver(1, Passage::default())));
        assert_eq!(link.next_deadline(), Some(ms(43)));
        assert_eq!(link.poll(ms(43)), Some(Output::Deliver(2, Passage::default())));
    }

    #[test]
    fn the_mean_rate_is_that_of_a_round() {
        let mean = |text| Trace::parse(text).unwrap().mean_rate();
        assert_eq!(mean("1\n"), DataRate::from_bits_per_sec(12_032_000).unwrap());
        assert_eq!(mean("0\n5\n5\n"), DataRate::from_bits_per_sec(7_219_200).unwrap());
    }

    #[test]
    fn an_invalid_trace_is_refused_with_its_line() {
        let error = |text| Trace::parse(text).unwrap_err().to_string();
        assert!(error("1\nx\n").starts_with("line 2: \"x\" is not a time"));
        assert!(error("5\n4\n").starts_with("line 2: 4 ms comes before"));
        assert_eq!(Trace::parse(""), Err(TraceError::Empty));
        assert_eq!(Trace::parse("0\n0\n"), Err(TraceError::Empty));
    }
}
