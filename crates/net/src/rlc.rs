//! A cellular link that repairs its own losses: HARQ, and above it RLC in acknowledged mode.
//!
//! Read first: 3GPP TS 36.321 §5.3.2 and §5.4.2 (HARQ) and TS 36.322 §5.1.3 and §5.2 (RLC AM) for
//! LTE; TS 38.321 and TS 38.322 for NR. What a link does here:
//!
//! - Time is divided into transmission time intervals (TTI). In each, one transport block leaves,
//!   as large as the rate allows. Packets that wait share a block, or are cut into several.
//! - A block that cannot be decoded is sent again one HARQ round trip later. The receiver combines
//!   the copies, so each retransmission fails less often than the one before. Retransmissions take
//!   the TTIs of new blocks: they come first.
//! - What HARQ gives up on is missing in RLC's sequence. `t-Reassembly` after the next block, the
//!   receiver asks for it in a STATUS report, unless `t-StatusProhibit` makes it wait. The block is
//!   then sent again, again with HARQ.
//! - After too many of these retransmissions, the packets in the block are lost. (A real link would
//!   be re-established.)
//! - Packets are delivered in order: all wait for the one that is missing. So losses show as delay.
//!
//! In a cell ([`crate::cell`]), a block is what the link sends in a TTI, and takes as much of another
//! when it is sent again.
//!
//! Simplified: a block's transmissions are drawn at once, so a report that an earlier block causes
//! may take a later block with it up to `t-StatusProhibit` late; a next block always follows, as on
//! a busy link, so `t-PollRetransmit` never expires; HARQ feedback and STATUS reports are always
//! received, and the latter take half a HARQ round trip and no capacity; there are as many HARQ
//! processes as needed; headers of RLC and PDCP take nothing; the block error rate does not depend
//! on what the block was before.

use crate::config::RlcConfig;
use airtcp_core::{Bytes, DataRate, Instant, Stream};

/// The sender's and the receiver's side of a link that has all TTIs.
#[derive(Clone, Debug)]
pub(crate) struct Rlc {
    repairs: Repairs,
    /// Size of a block.
    bits: u64,
    taken: Taken,
    /// The first TTI that new blocks have not passed.
    next: u64,
    /// The latest new block.
    block: Block,
}

/// How blocks are repaired, and in what order they are delivered.
#[derive(Clone, Debug)]
pub(crate) struct Repairs {
    config: RlcConfig,
    /// Times of STATUS reports that may matter to blocks to come; ascending.
    reports: Vec<Instant>,
    /// Everything before has been delivered by then.
    delivered: Instant,
    stream: Stream,
}

/// The TTIs in which blocks are sent again.
pub(crate) trait Ttis {
    /// Takes the first TTI from this one on that has room for the block.
    fn take(&mut self, tti: u64) -> u64;
}

/// TTIs that retransmissions will take, one each; ascending.
#[derive(Clone, Debug, Default)]
struct Taken(Vec<u64>);

impl Ttis for Taken {
    fn take(&mut self, tti: u64) -> u64 {
        let tti = self.untaken(tti);
        let place = self.0.partition_point(|&taken| taken < tti);
        self.0.insert(place, tti);
        tti
    }
}

impl Taken {
    /// The first TTI from this one on that no retransmission takes.
    fn untaken(&self, mut tti: u64) -> u64 {
        let from = self.0.partition_point(|&taken| taken < tti);
        for &taken in &self.0[from..] {
            if taken != tti {
                break;
            }
            tti = tti.saturating_add(1);
        }
        tti
    }

    /// TTIs up to this one are over.
    fn pass(&mut self, tti: u64) {
        let passed = self.0.partition_point(|&taken| taken <= tti);
        self.0.drain(..passed);
    }
}

/// A transport block.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// The TTI of its first transmission.
    tti: u64,
    /// Bits that are still free.
    free: u64,
    decoded: Decoded,
}

/// The end of a block's transmissions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Decoded {
    at: Instant,
    /// It never was.
    pub(crate) lost: bool,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// The first transmission of its last byte is over.
    pub(crate) departure: Instant,
    /// It leaves the receiver, in order.
    pub(crate) received: Instant,
    /// A part of it was given up.
    pub(crate) lost: bool,
}

impl Served {
    /// By a server whose packets are received as they depart.
    pub(crate) fn at(departure: Instant) -> Self {
        Self { departure, received: departure, lost: false }
    }
}

impl Rlc {
    pub(crate) fn new(config: RlcConfig, rate: DataRate, stream: Stream) -> Self {
        Self {
            repairs: Repairs::new(config, stream),
            bits: config.block_bits(rate).max(1),
            taken: Taken::default(),
            next: 0,
            block: Block::default(),
        }
    }

    /// Changes the size of the blocks to come.
    pub(crate) fn set_rate(&mut self, rate: DataRate) {
        self.bits = self.repairs.config.block_bits(rate).max(1);
    }

    /// Forgets all blocks: both ends begin anew, as in a handover (TS 36.322 §5.4).
    pub(crate) fn reestablish(&mut self) {
        self.taken = Taken::default();
        self.repairs.reports.clear();
        self.repairs.delivered = Instant::ZERO;
        self.next = 0;
        self.block = Block::default();
    }

    /// Start of service of a packet that waits from `now`.
    pub(crate) fn start(&self, now: Instant) -> Instant {
        let latest = self.repairs.begin(self.block.tti);
        if self.block.free > 0 && latest >= now {
            return latest;
        }
        let first = self.next.max(self.repairs.first_from(now));
        self.repairs.begin(self.taken.untaken(first))
    }

    /// Serves a packet from `start`, which [`Rlc::start`] returned.
    pub(crate) fn serve(&mut self, start: Instant, size: Bytes) -> Served {
        let mut need = size.get().saturating_mul(8);
        let mut lost = false;
        if self.repairs.begin(self.block.tti) < start {
            self.block.free = 0;
            self.next = self.next.max(self.repairs.first_from(start));
        }
        loop {
            if self.block.free == 0 {
                self.block = self.new_block();
            }
            let carried = need.min(self.block.free);
            need -= carried;
            self.block.free -= carried;
            let received = self.repairs.deliver(self.block.decoded);
            lost |= self.block.decoded.lost;
            if need == 0 {
                let departure = self.repairs.end(self.block.tti);
                return Served { departure, received, lost };
            }
        }
    }

    /// Sends the next new block.
    fn new_block(&mut self) -> Block {
        let tti = self.taken.untaken(self.next);
        self.next = tti.saturating_add(1);
        self.taken.pass(tti);
        Block { tti, free: self.bits, decoded: self.repairs.send(tti, &mut self.taken) }
    }
}

impl Repairs {
    pub(crate) fn new(config: RlcConfig, stream: Stream) -> Self {
        Self { config, reports: Vec::new(), delivered: Instant::ZERO, stream }
    }

    /// A new block is sent in this TTI, and again in others if it must be. Blocks come in order.
    pub(crate) fn send(&mut self, tti: u64, ttis: &mut impl Ttis) -> Decoded {
        let now = self.begin(tti);
        let prohibit = self.config.t_status_prohibit;
        let over = self.reports.partition_point(|&report| report + prohibit <= now);
        self.reports.drain(..over);
        self.transmit(tti, ttis)
    }

    /// The time at which the receiver delivers what is in a block: all before has been delivered.
    pub(crate) fn deliver(&mut self, block: Decoded) -> Instant {
        self.delivered = self.delivered.max(block.at);
        self.delivered
    }

    /// RLC's transmissions of a block, the first in this TTI.
    fn transmit(&mut self, mut tti: u64, ttis: &mut impl Ttis) -> Decoded {
        let RlcConfig { t_reassembly, max_retx, harq_rtt, .. } = self.config;
        for _ in 0..max_retx {
            let last = match self.harq(tti, ttis) {
                Ok(last) => return Decoded { at: self.end(last), lost: false },
                Err(last) => last,
            };
            // The next block is received, and this one missed.
            let missed = self.end(tti.saturating_add(1));
            let status = self.report((missed + t_reassembly).max(self.end(last)));
            tti = ttis.take(self.first_from(status + harq_rtt / 2));
        }
        let (last, lost) = match self.harq(tti, ttis) {
            Ok(last) => (last, false),
            Err(last) => (last, true),
        };
        Decoded { at: self.end(last), lost }
    }

    /// The time of the STATUS report that names a block missed at `at`. A report names all blocks
    /// that are missing (TS 36.322 §5.2.3), and reports are `t-StatusProhibit` apart at least.
    fn report(&mut self, at: Instant) -> Instant {
        let prohibit = self.config.t_status_prohibit;
        if prohibit.is_zero() {
            return at;
        }
        let next = self.reports.partition_point(|&report| report < at);
        let last = next.checked_sub(1).map(|last| self.reports[last]);
        let earliest = last.map_or(at, |last| at.max(last + prohibit));
        match self.reports.get(next) {
            Some(&report) if report < earliest + prohibit => report,
            _ => {
                self.reports.insert(next, earliest);
                earliest
            }
        }
    }

    /// HARQ's transmissions, the first in this TTI. Returns the TTI of the last one; `Err`: it was
    /// not decoded either.
    fn harq(&mut self, mut tti: u64, ttis: &mut impl Ttis) -> Result<u64, u64> {
        let RlcConfig { bler, combining, transmissions, harq_rtt, .. } = self.config;
        let mut fails = bler;
        for left in (0..transmissions).rev() {
            if !self.stream.chance(fails) {
                return Ok(tti);
            }
            if left > 0 {
                tti = ttis.take(self.first_from(self.begin(tti) + harq_rtt));
                fails *= combining;
            }
        }
        Err(tti)
    }

    fn begin(&self, tti: u64) -> Instant {
        Instant::ZERO + self.config.tti * tti
    }

    fn end(&self, tti: u64) -> Instant {
        self.begin(tti.saturating_add(1))
    }

    /// The first TTI that begins at `at` or later.
    fn first_from(&self, at: Instant) -> u64 {
        at.as_nanos().div_ceil(self.config.tti.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Duration;

    const RATE: DataRate = DataRate::mbps(8);
    /// A block of 1 ms at 8 Mbit/s.
    const BLOCK: Bytes = Bytes(1000);

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    /// A link with the first transmission failing for certain and the second never.
    fn second_time_lucky() -> RlcConfig {
        RlcConfig { bler: 1.0, combining: 0.0, ..RlcConfig::default() }
    }

    fn rlc(config: RlcConfig) -> Rlc {
        Rlc::new(config, RATE, Stream::new(1, "rlc"))
    }

    /// Serves packets that all wait since the start; returns when each is received.
    fn received(rlc: &mut Rlc, packets: usize, size: Bytes) -> Vec<Instant> {
        let serve = |_| {
            let start = rlc.start(Instant::ZERO);
            rlc.serve(start, size).received
        };
        (0..packets).map(serve).collect()
    }

    /// The extra delay of packets that are a second apart, in milliseconds; `None` where it is lost.
    fn extra(config: RlcConfig, packets: u64) -> Vec<Option<u64>> {
        let mut rlc = rlc(config);
        let serve = |n| {
            let start = rlc.start(Instant::from_secs(n));
            let served = rlc.serve(start, BLOCK);
            (!served.lost).then(|| served.received.since(served.departure).as_millis())
        };
        (0..packets).map(serve).collect()
    }

    #[test]
    fn a_block_leaves_in_each_tti() {
        let mut rlc = rlc(RlcConfig { bler: 0.0, ..RlcConfig::default() });
        assert_eq!(received(&mut rlc, 3, BLOCK), [1, 2, 3].map(ms));
        // A packet that comes within a TTI waits for the next.
        assert_eq!(rlc.start(Instant::from_nanos(10_000_001)), ms(11));
        assert_eq!(rlc.start(ms(10)), ms(10));
    }

    #[test]
    fn packets_share_a_block_or_take_several() {
        let never = RlcConfig { bler: 0.0, ..RlcConfig::default() };
        assert_eq!(received(&mut rlc(never), 5, Bytes(400)), [1, 1, 2, 2, 2].map(ms));
        assert_eq!(received(&mut rlc(never), 2, Bytes(1500)), [2, 3].map(ms));
    }

    #[test]
    fn a_retransmission_comes_a_harq_round_trip_later_and_before_new_blocks() {
        // TS 36.321 §7.7: 8 TTIs. Blocks 0 to 7 leave in TTIs 0 to 7, and again in 8 to 15.
        let mut lucky = rlc(second_time_lucky());
        let expected: Vec<_> = (9..=16).chain([25]).map(ms).collect();
        assert_eq!(received(&mut lucky, 9, BLOCK), expected);
    }

    #[test]
    fn packets_wait_for_the_one_that_is_missing() {
        // As with a receiver that delivers in order (TS 36.322 §5.1.3.2.3).
        let config = RlcConfig { bler: 0.3, ..RlcConfig::default() };
        let received = received(&mut rlc(config), 2000, BLOCK);
        assert!(received.is_sorted());
        let together = received.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(together > 500, "{together} packets came with their predecessors");
    }

    #[test]
    fn a_busy_link_carries_its_rate_by_the_mean_number_of_transmissions() {
        // 1 + p1 + p1 p2 + p1 p2 p3, where HARQ hardly ever gives up.
        let config = RlcConfig { bler: 0.3, combining: 0.2, ..RlcConfig::default() };
        let [p1, p2, p3] = [0.3, 0.06, 0.012];
        let mean = 1.0 + p1 + p1 * p2 + p1 * p2 * p3;
        let n = 40_000;
        let end = *received(&mut rlc(config), n, BLOCK).last().unwrap();
        let each = end.as_secs_f64() * 1000.0 / n as f64;
        // The number has a standard deviation below 0.52: four standard errors are 0.0105.
        assert!((each - mean).abs() < 0.0105, "{each} TTIs a block, not {mean}");
    }

    #[test]
    fn the_extra_delay_has_the_distribution_of_the_transmissions() {
        // k round trips of 8 ms with probability p1 … pk (1 - pk+1).
        let config = RlcConfig { bler: 0.4, combining: 0.5, ..RlcConfig::default() };
        let n = 40_000;
        let extra = extra(config, n);
        let (mut reached, mut fails) = (1.0, 0.4);
        for k in 0..4 {
            let expected = reached * (1.0 - fails);
            let found = extra.iter().filter(|&&it| it == Some(8 * k)).count() as f64 / n as f64;
            // Four standard deviations of a share.
            let window = 4.0 * libm::sqrt(expected * (1.0 - expected) / n as f64);
            assert!((found - expected).abs() < window, "{k}: {found}, not {expected}");
            reached *= fails;
            fails *= 0.5;
        }
    }

    #[test]
    fn what_harq_gives_up_rlc_sends_again_after_t_reassembly() {
        // Without HARQ, each of RLC's transmissions fails with probability 0.2. One costs: the next
        // block, 1 ms; t-Reassembly, 35 ms; the report's way, 4 ms; the block, 1 ms.
        let config = RlcConfig { bler: 0.2, transmissions: 1, ..RlcConfig::default() };
        let n = 40_000;
        let extra = extra(config, n);
        let mut expected = 0.8;
        for k in 0..4 {
            let found = extra.iter().filter(|&&it| it == Some(41 * k)).count() as f64 / n as f64;
            let window = 4.0 * libm::sqrt(expected * (1.0 - expected) / n as f64);
            assert!((found - expected).abs() < window, "{k}: {found}, not {expected}");
            expected *= 0.2;
        }
        // maxRetxThreshold 4: the fifth transmission is the last.
        let lost = extra.iter().filter(|it| it.is_none()).count() as f64;
        let expected = n as f64 * 0.000_32;
        assert!((lost - expected).abs() < 4.0 * libm::sqrt(expected), "{lost}, not {expected}");
    }

    #[test]
    fn a_block_that_never_arrives_is_lost_and_the_next_goes_on() {
        let config = RlcConfig { bler: 1.0, combining: 1.0, max_retx: 1, ..RlcConfig::default() };
        assert_eq!(extra(config, 3), [None; 3]);
    }

    #[test]
    fn status_reports_keep_their_distance() {
        // TS 36.322 §5.2.3: t-StatusProhibit.
        let prohibit = Duration::from_millis(20);
        let mut rlc = rlc(RlcConfig { t_status_prohibit: prohibit, ..RlcConfig::default() });
        let reports = [100, 105, 110, 200].map(|at| rlc.repairs.report(ms(at)));
        assert_eq!(reports, [100, 120, 120, 200].map(ms), "one names all that are missing");
        // Times that earlier blocks have caused, and of which a later block comes before.
        let reports = [300, 330, 304, 250].map(|at| rlc.repairs.report(ms(at)));
        assert_eq!(reports, [300, 330, 330, 250].map(ms));
    }

    #[test]
    fn repairs_take_intervals_and_no_more() {
        for prohibit in [0, 20, 200].map(Duration::from_millis) {
            let (bler, transmissions) = (0.3, 1);
            let config = RlcConfig { bler, transmissions, ..RlcConfig::default() };
            let mut rlc = rlc(RlcConfig { t_status_prohibit: prohibit, ..config });
            let last = *received(&mut rlc, 3000, BLOCK).last().unwrap();
            // Three standard deviations of the number of transmissions, and a few repairs of the
            // last block.
            let expected = ms(3000 * 10 / 7 + 130) + (config.t_reassembly + prohibit) * 4;
            assert!(last < expected, "{prohibit}: {last:?}");
        }
    }

    #[test]
    fn the_rate_may_change() {
        let mut rlc = rlc(RlcConfig { bler: 0.0, ..RlcConfig::default() });
        assert_eq!(received(&mut rlc, 1, BLOCK), [ms(1)]);
        rlc.set_rate(DataRate::mbps(4));
        assert_eq!(received(&mut rlc, 1, BLOCK), [ms(3)]);
    }
}
