//! Minstrel-HT, the rate control of Linux's mac80211, without I/O.
//!
//! Read first: `net/mac80211/rc80211_minstrel_ht.c` of Linux, as it has been since 5.12. Names of
//! functions there are cited here, and terms are the same: a *group* has the MCS of one width, guard
//! interval and number of streams; *max_tp* are the four rates of the highest expected throughput,
//! *max_prob* is one that is likely to get through.
//!
//! A station keeps a [`Minstrel`] for each receiver. Each frame asks it for a [`Series`] of rates:
//! one attempt after another, until the frame is answered. The outcome of each attempt is reported,
//! and every 50 ms the reports are summed up: the probability of success of each rate is filtered,
//! and the rates are sorted anew. In between, up to three frames probe other rates:
//!
//! - *increase*: the next faster one of each group in turn,
//! - *jump*: one that is faster, at random,
//! - *slow*: one that is slower than the best but faster than the safest of those in use.
//!
//! Probabilities and lengths of A-MPDUs are whole 4096ths, as in Linux, so that ties are, too.

use crate::wifi::ofdm::TxVector;
use crate::wifi::station::{StationId, entry};
use airtcp_core::{Bytes, Duration, Instant, Stream};
use std::ops::Range;

/// MINSTREL_SCALE: certainty, or one MPDU.
const ONE: u64 = 1 << 12;
/// Statistics are summed up after so long; with the first report after it.
const UPDATE_INTERVAL: Duration = Duration::from_millis(50);
/// MINSTREL_SAMPLE_INTERVAL: from one probe to the next.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);
/// MINSTREL_SAMPLE_RATES: so many rates wait to be probed, of each kind.
const SAMPLES: usize = 5;
/// SAMPLE_COLUMNS: orders in which the rates of a group are drawn.
const ORDERS: usize = 10;
/// AVG_AMPDU_SIZE packets of AVG_PKT_SIZE: airtime of rates is compared for these.
const PACKETS: u64 = 16;
const PACKET: Bytes = Bytes(1_200);

/// A rate of unicast data, by its place in [`Rules`](super::rules::Rules); the first where all are
/// sent at one rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate(u16);

impl Rate {
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The rates of a station, the same for all stations of a channel.
#[derive(Clone, Debug)]
pub(crate) struct RateTable {
    /// In the order of their widths, guard intervals from the longest, and streams.
    groups: Vec<Group>,
    /// Those of all groups.
    rates: Vec<Member>,
    /// Time that a frame and its acknowledgement take beside their data.
    overhead: Duration,
    /// Number of MCS of a format.
    schemes: u32,
}

#[derive(Clone, Debug)]
struct Group {
    streams: u32,
    /// Its rates, in the order of their MCS.
    rates: Range<u16>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    group: usize,
    mcs: u32,
    /// Time that the data of a packet take in a long A-MPDU.
    airtime: Duration,
}

impl RateTable {
    /// Of rates in the order of the table; `airtime` is how long the data of a frame take.
    pub(crate) fn new(
        rates: &[TxVector],
        airtime: impl Fn(&TxVector, Bytes) -> Duration,
        overhead: Duration,
    ) -> Self {
        let kind = |rate: &TxVector| (rate.width, rate.guard_interval, rate.streams);
        let mut table = Self { groups: Vec::new(), rates: Vec::new(), overhead, schemes: 0 };
        for group in rates.chunk_by(|a, b| kind(a) == kind(b)) {
            let from = table.rates.len() as u16;
            let place = table.groups.len();
            table.rates.extend(group.iter().map(|rate| Member {
                group: place,
                mcs: rate.mcs,
                airtime: airtime(rate, Bytes(PACKET.get() * PACKETS)) / PACKETS,
            }));
            let rates = from..table.rates.len() as u16;
            table.groups.push(Group { streams: group[0].streams, rates });
            table.schemes = group.iter().map(|rate| rate.mcs + 1).fold(table.schemes, u32::max);
        }
        table
    }

    fn airtime(&self, rate: Rate) -> Duration {
        self.rates[rate.index()].airtime
    }

    /// The group of a rate.
    fn group_of(&self, rate: Rate) -> usize {
        self.rates[rate.index()].group
    }

    fn first_of(&self, group: usize) -> Rate {
        Rate(self.groups[group].rates.start)
    }

    fn members(&self, group: usize) -> impl DoubleEndedIterator<Item = Rate> + use<> {
        self.groups[group].rates.clone().map(Rate)
    }

    /// `minstrel_ht_group_min_rate_offset`: the first rate of a group whose airtime is below `limit`.
    fn first_below(&self, group: usize, limit: Duration) -> Option<Rate> {
        self.members(group).find(|&rate| self.airtime(rate) < limit)
    }

    fn with_mcs(&self, group: usize, mcs: u32) -> Option<Rate> {
        self.members(group).find(|&rate| self.rates[rate.index()].mcs == mcs)
    }
}

/// Attempts at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    rate: Rate,
    tries: u32,
}

/// The rates of the attempts for a frame: a few at each of four rates, then all at the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Series {
    steps: [Step; 4],
    /// Attempts that had no answer.
    failed: u32,
    /// The first rate is to be probed.
    probes: bool,
}

impl Series {
    /// The rate of the next attempt.
    pub(crate) fn rate(&self) -> Rate {
        let mut left = self.failed;
        for Step { rate, tries } in self.steps {
            if left < tries {
                return rate;
            }
            left -= tries;
        }
        self.steps[3].rate
    }

    /// The first attempt probes a rate. The frame has one MPDU: drivers of Linux aggregate no probes.
    pub(crate) fn is_probe(&self) -> bool {
        self.probes
    }

    /// An attempt had no answer.
    pub(crate) fn fail(&mut self) {
        self.failed = self.failed.saturating_add(1);
    }
}

/// The order in which a station draws rates to probe: permutations of the MCS.
#[derive(Clone, Debug)]
pub(crate) struct SampleTable([Vec<u32>; ORDERS]);

impl SampleTable {
    /// `init_sample_table`: uniform permutations.
    pub(crate) fn new(table: &RateTable, mut stream: Stream) -> Self {
        Self(std::array::from_fn(|_| {
            let mut order: Vec<u32> = (0..table.schemes).collect();
            for last in (1..order.len()).rev() {
                order.swap(last, stream.below(last as u64 + 1) as usize);
            }
            order
        }))
    }
}

/// What is known of a rate.
#[derive(Clone, Copy, Debug, Default)]
struct Statistics {
    /// MPDUs sent and acknowledged since the latest update.
    attempts: u64,
    successes: u64,
    /// It has been tried before the latest update.
    tried: bool,
    /// Probability of success, filtered, after the latest update and after the one before.
    probability: u64,
    before: u64,
}

impl Statistics {
    /// `minstrel_ht_calc_rate_stats`.
    fn update(&mut self) {
        if let Some(ratio) = (self.successes * ONE).checked_div(self.attempts) {
            self.filter(ratio);
            self.tried = true;
        }
        (self.attempts, self.successes) = (0, 0);
    }

    /// `minstrel_filter_avg_add`: a low-pass filter of second order with a period of 16 updates. Zero
    /// stands for nothing known.
    fn filter(&mut self, ratio: u64) {
        const LATEST: i64 = 0x1499;
        const BEFORE: i64 = -0x092e;
        const NEW: i64 = ONE as i64 - LATEST - BEFORE;
        let ratio = ratio.max(1);
        let latest = self.probability;
        if latest == 0 {
            (self.probability, self.before) = (ratio, ratio);
            return;
        }
        let sum = NEW * ratio as i64 + LATEST * latest as i64 + BEFORE * self.before as i64;
        let filtered = sum >> ONE.ilog2();
        self.before = latest;
        self.probability = if filtered < 0 { 1 } else { (filtered as u64).min(ONE) };
    }

    /// Fewer than a quarter of more than 30 MPDUs have arrived since the latest update.
    fn collapses(&self) -> bool {
        self.attempts > 30 && self.successes < self.attempts / 4
    }
}

/// What is known of a group.
#[derive(Clone, Debug)]
struct GroupState {
    /// Its rates of the highest throughput.
    max_tp: [Rate; 4],
    /// Its rate that is likely to get through.
    max_prob: Rate,
    /// Which MCS is drawn next: place in an order, and the order.
    next: (usize, usize),
}

/// Rates of one kind that wait to be probed.
#[derive(Clone, Debug)]
struct Samples {
    /// The group looked at last.
    group: usize,
    rates: Vec<Rate>,
}

impl Samples {
    fn none() -> Self {
        Self { group: 0, rates: Vec::with_capacity(SAMPLES) }
    }

    fn is_full(&self) -> bool {
        self.rates.len() >= SAMPLES
    }

    fn take(&mut self) -> Option<Rate> {
        (!self.rates.is_empty()).then(|| self.rates.remove(0))
    }
}

/// Kinds of probes.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Increase,
    Jump,
    Slow,
}

/// The kinds in turn.
const KINDS: [Kind; 6] =
    [Kind::Increase, Kind::Jump, Kind::Increase, Kind::Jump, Kind::Increase, Kind::Slow];

/// Rate control towards one receiver.
#[derive(Clone, Debug)]
pub(crate) struct Minstrel {
    rates: Vec<Statistics>,
    groups: Vec<GroupState>,
    max_tp: [Rate; 4],
    max_prob: Rate,
    /// The series of frames that probe nothing.
    series: Series,
    increase: Samples,
    jump: Samples,
    slow: Samples,
    /// Place in [`KINDS`] of the next probe.
    turn: usize,
    /// No probe before.
    sample_at: Instant,
    updated: Instant,
    /// Frames and their MPDUs since the latest update.
    frames: u64,
    mpdus: u64,
    /// Average number of MPDUs in a frame.
    length: u64,
}

impl Minstrel {
    /// `minstrel_ht_update_caps`: nothing is known, and frames go at the lowest rate.
    pub(crate) fn new(now: Instant, table: &RateTable, order: &SampleTable) -> Self {
        let lowest = Rate(0);
        let group = |group| {
            let first = table.first_of(group);
            GroupState { max_tp: [first; 4], max_prob: first, next: (0, 0) }
        };
        let step = Step { rate: lowest, tries: 1 };
        let mut minstrel = Self {
            rates: vec![Statistics::default(); table.rates.len()],
            groups: (0..table.groups.len()).map(group).collect(),
            max_tp: [lowest; 4],
            max_prob: lowest,
            series: Series { steps: [step; 4], failed: 0, probes: false },
            increase: Samples::none(),
            jump: Samples::none(),
            slow: Samples::none(),
            turn: 0,
            sample_at: now,
            updated: now,
            frames: 0,
            mpdus: 0,
            length: ONE,
        };
        minstrel.update(now, table, order);
        minstrel.set_series(table);
        minstrel
    }

    /// `minstrel_ht_get_rate`: the rates for a new frame, which probes one if that is due.
    pub(crate) fn series(&mut self, now: Instant) -> Series {
        let mut series = self.series;
        if now >= self.sample_at {
            self.sample_at = now + SAMPLE_INTERVAL;
            let kind = KINDS[self.turn];
            self.turn = (self.turn + 1) % KINDS.len();
            let samples = match kind {
                Kind::Increase => &mut self.increase,
                Kind::Jump => &mut self.jump,
                Kind::Slow => &mut self.slow,
            };
            if let Some(rate) = samples.take() {
                series.steps[0] = Step { rate, tries: 1 };
                series.probes = true;
            }
        }
        series
    }

    /// `minstrel_ht_tx_status`: of so many MPDUs sent in a frame, so many were acknowledged. Each
    /// attempt is reported; Linux hears of all attempts for a frame together.
    pub(crate) fn report(
        &mut self,
        now: Instant,
        (table, order): (&RateTable, &SampleTable),
        rate: Rate,
        (sent, acknowledged): (usize, usize),
    ) {
        let statistics = &mut self.rates[rate.index()];
        statistics.attempts += sent as u64;
        statistics.successes += acknowledged as u64;
        self.frames += 1;
        self.mpdus += sent as u64;
        let mut changed = false;
        for place in 0..2 {
            let rate = self.max_tp[place];
            if self.rates[rate.index()].collapses() {
                self.max_tp[place] = self.downgrade(table, rate, place);
                changed = true;
            }
        }
        if now > self.updated + UPDATE_INTERVAL {
            self.update(now, table, order);
            changed = true;
        }
        if changed {
            self.set_series(table);
        }
    }

    /// `minstrel_downgrade_rate`: a rate fails at once, perhaps because its number of streams does.
    /// The one in this place of the next lower group that has no more.
    fn downgrade(&self, table: &RateTable, rate: Rate, place: usize) -> Rate {
        let group = table.group_of(rate);
        let streams = |group: usize| table.groups[group].streams;
        let lower = (0..group).rev().find(|&lower| streams(lower) <= streams(group));
        lower.map_or(rate, |lower| self.groups[lower].max_tp[place])
    }

    fn probability(&self, rate: Rate) -> u64 {
        self.rates[rate.index()].probability
    }

    /// MPDUs of an average frame, at least 1.
    fn mean_length(&self) -> u64 {
        self.length / ONE
    }

    /// `minstrel_ht_get_tp_avg`: expected throughput, to be compared with others. Collisions fail
    /// frames, too, so that nothing counts as more certain than 90 %; what fails nine times of ten
    /// counts as nothing.
    fn throughput(&self, table: &RateTable, rate: Rate) -> u64 {
        let probability = self.probability(rate);
        if probability < percent(10) {
            return 0;
        }
        let time = table.overhead / self.mean_length() + table.airtime(rate);
        100 * (probability.min(percent(90)) * 1_000_000 / time.as_nanos()) / ONE
    }

    /// `minstrel_ht_update_stats`.
    fn update(&mut self, now: Instant, table: &RateTable, order: &SampleTable) {
        if let Some(length) = (self.mpdus * ONE).checked_div(self.frames) {
            // A quarter is new (EWMA_LEVEL).
            self.length = if length >= self.length {
                self.length + (length - self.length) / 4
            } else {
                self.length - (self.length - length) / 4
            };
            (self.frames, self.mpdus) = (0, 0);
        }
        for group in 0..table.groups.len() {
            self.update_group(table, group);
        }
        self.max_tp = self.best(table, 0..table.groups.len());
        for group in 0..table.groups.len() {
            self.groups[group].max_tp = self.best(table, group..group + 1);
        }
        self.set_max_prob(table);
        self.refill(table, order);
        self.updated = now;
        self.sample_at = now;
    }

    /// What is not known of a rate follows from those of its group that are faster: it is as likely
    /// to succeed.
    fn update_group(&mut self, table: &RateTable, group: usize) {
        let mut faster = 0;
        for rate in table.members(group).rev() {
            let statistics = &mut self.rates[rate.index()];
            statistics.update();
            if statistics.tried {
                faster = statistics.probability.max(faster);
            } else {
                statistics.probability = statistics.probability.max(faster);
            }
        }
    }

    /// `minstrel_ht_sort_best_tp_rates`: the four rates of these groups with the highest throughput;
    /// the lowest in the place of those that have none. Of equal ones, the one that is more likely to
    /// succeed is first, then that of the lower group, then the faster one.
    fn best(&self, table: &RateTable, groups: Range<usize>) -> [Rate; 4] {
        let mut best = [table.first_of(groups.start); 4];
        let value = |rate| (self.throughput(table, rate), self.probability(rate));
        for rate in groups.flat_map(|group| table.members(group).rev()) {
            if self.throughput(table, rate) == 0 {
                continue;
            }
            let place = best.iter().rposition(|&other| value(rate) <= value(other));
            let place = place.map_or(0, |place| place + 1);
            if let Some(behind @ [_, ..]) = best.get_mut(place..) {
                behind.rotate_right(1);
                behind[0] = rate;
            }
        }
        best
    }

    /// `minstrel_ht_set_best_prob_rate` for all rates, and `minstrel_ht_prob_rate_reduce_streams`.
    fn set_max_prob(&mut self, table: &RateTable) {
        let fastest = self.max_tp[0];
        self.max_prob = Rate(0);
        for group in 0..table.groups.len() {
            let mut own = table.first_of(group);
            for rate in table.members(group) {
                let faster = table.airtime(rate) < table.airtime(fastest);
                if faster && self.probability(rate) < self.probability(fastest) {
                    continue;
                }
                // If it is likely enough, the throughput decides.
                let beats = |other| {
                    if self.probability(rate) > percent(75) {
                        self.throughput(table, rate) > self.throughput(table, other)
                    } else {
                        self.probability(rate) > self.probability(other)
                    }
                };
                let (of_all, of_group) = (beats(self.max_prob), beats(own));
                if of_all {
                    self.max_prob = rate;
                }
                if of_group {
                    own = rate;
                }
            }
            self.groups[group].max_prob = own;
        }
        // Fewer streams are safer.
        let streams = table.groups[table.group_of(fastest)].streams;
        let fewer = (0..table.groups.len()).filter(|&group| table.groups[group].streams < streams);
        let mut most = 0;
        for rate in fewer.map(|group| self.groups[group].max_prob) {
            let throughput = self.throughput(table, rate);
            if throughput > most {
                (self.max_prob, most) = (rate, throughput);
            }
        }
    }

    /// `minstrel_ht_refill_sample_rates`: the rates to be probed until the next update. Those that
    /// were not are kept as far as they still make sense. (`minstrel_ht_move_sample_rates` of Linux
    /// loses the first of them: `i == j` does not count it.)
    fn refill(&mut self, table: &RateTable, order: &SampleTable) {
        let used = [self.max_tp[0], self.max_tp[1], self.max_prob].map(|rate| table.airtime(rate));
        let [throughput, second, safe] = used;
        let fast = throughput.min(second).min(safe);
        let slow = throughput.max(second).max(safe);
        self.increase.rates.retain(|&rate| table.airtime(rate) < fast);
        while !self.increase.is_full()
            && let Some(rate) = self.next_increase(table, throughput)
        {
            self.increase.rates.push(rate);
        }
        self.jump.rates.retain(|&rate| table.airtime(rate) < fast);
        let is_between = |airtime| airtime > fast && airtime < slow;
        self.slow.rates.retain(|&rate| is_between(table.airtime(rate)));
        while !self.jump.is_full()
            && let Some(rate) = self.next_jump(table, order, fast, slow)
        {
            self.jump.rates.push(rate);
        }
    }

    /// `minstrel_ht_next_inc_rate`: of the next group that has one, the first rate that is faster than
    /// this airtime.
    fn next_increase(&mut self, table: &RateTable, airtime: Duration) -> Option<Rate> {
        for _ in 0..table.groups.len() {
            self.increase.group = (self.increase.group + 1) % table.groups.len();
            let rate = table.first_below(self.increase.group, airtime);
            if let Some(rate) = rate.filter(|rate| !self.increase.rates.contains(rate)) {
                return Some(rate);
            }
        }
        None
    }

    /// `minstrel_ht_next_jump_rate`: of the next group that has one, a rate at random whose airtime is
    /// below `fast`. Those drawn that are not, but below `slow`, are probed as slow ones, unless they
    /// are known to be safe.
    fn next_jump(
        &mut self,
        table: &RateTable,
        order: &SampleTable,
        fast: Duration,
        slow: Duration,
    ) -> Option<Rate> {
        for _ in 0..table.groups.len() {
            self.jump.group = (self.jump.group + 1) % table.groups.len();
            let limit = if self.slow.is_full() { fast } else { slow };
            let Some(rate) = self.draw(table, order, self.jump.group, limit) else { continue };
            let airtime = table.airtime(rate);
            if airtime < fast {
                if !self.jump.rates.contains(&rate) {
                    return Some(rate);
                }
            } else if airtime < slow
                && !self.slow.is_full()
                && !self.slow.rates.contains(&rate)
                && self.probability(rate) <= percent(95)
            {
                self.slow.rates.push(rate);
            }
        }
        None
    }

    /// `minstrel_ht_next_group_sample_rate`: the next rate of a group, in the station's order, from
    /// the first on whose airtime is below `limit`.
    fn draw(
        &mut self,
        table: &RateTable,
        SampleTable(orders): &SampleTable,
        group: usize,
        limit: Duration,
    ) -> Option<Rate> {
        let from = table.first_below(group, limit)?;
        for _ in 0..table.schemes {
            let (place, column) = &mut self.groups[group].next;
            let mcs = orders[*column][*place];
            *place += 1;
            if *place >= orders[*column].len() {
                *place = 0;
                *column = (*column + 1) % ORDERS;
            }
            let rate = table.with_mcs(group, mcs).filter(|rate| rate.index() >= from.index());
            if rate.is_some() {
                return rate;
            }
        }
        None
    }

    /// `minstrel_ht_update_rates`: the three rates of the highest throughput, and the safe one.
    fn set_series(&mut self, table: &RateTable) {
        let [first, second, third, _] = self.max_tp;
        let step = |rate| Step { rate, tries: self.tries(table, rate) };
        let steps = [first, second, third, self.max_prob].map(step);
        self.series = Series { steps, failed: 0, probes: false };
    }

    /// `minstrel_calc_retransmit` and `minstrel_ht_set_rate`: two attempts; more, up to seven, as long
    /// as they take less than 6 ms together.
    fn tries(&self, table: &RateTable, rate: Rate) -> u32 {
        const LONGEST: Duration = Duration::from_millis(6);
        const SLOT: Duration = Duration::from_micros(9);
        if self.probability(rate) < percent(20) {
            return 2;
        }
        let frame = table.overhead + table.airtime(rate) * self.mean_length();
        let contention = |tries: u32| SLOT * ((1 << (3 + tries)) - 1) / 2;
        let mut time = contention(1) + contention(2) + frame * 2;
        let mut tries = 2;
        loop {
            time += contention(tries + 1) + frame;
            if time >= LONGEST {
                return tries;
            }
            tries += 1;
            if tries >= 7 {
                return tries;
            }
        }
    }
}

const fn percent(of: u64) -> u64 {
    ONE * of / 100
}

/// Rate control of one station.
#[derive(Clone, Debug)]
pub(crate) struct RateControls {
    order: SampleTable,
    /// Towards each receiver, in the order of the receivers.
    towards: Vec<(StationId, Minstrel)>,
}

impl RateControls {
    pub(crate) fn new(table: &RateTable, stream: Stream) -> Self {
        Self { order: SampleTable::new(table, stream), towards: Vec::new() }
    }

    /// The rates for a new frame.
    pub(crate) fn series(&mut self, now: Instant, table: &RateTable, to: StationId) -> Series {
        let Self { order, towards } = self;
        entry(towards, to, || Minstrel::new(now, table, order)).series(now)
    }

    /// Of so many MPDUs of a frame, so many were acknowledged.
    pub(crate) fn report(
        &mut self,
        now: Instant,
        table: &RateTable,
        to: StationId,
        rate: Rate,
        (sent, acknowledged): (usize, usize),
    ) {
        let Self { order, towards } = self;
        if let Ok(place) = towards.binary_search_by_key(&to, |&(receiver, _)| receiver) {
            towards[place].1.report(now, (table, order), rate, (sent, acknowledged));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::ofdm::{Format, OfdmMode, Width};
    use crate::wifi::standard::Band;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    /// Rates of 802.11n over 20 MHz with the long guard interval, in a group for each of these
    /// numbers of streams.
    fn table(streams: u32) -> RateTable {
        let (width, guard_interval) = (Width::Mhz20, Duration::from_nanos(800));
        let of = |streams| (0..8).map(move |mcs| TxVector { width, guard_interval, streams, mcs });
        let rates: Vec<TxVector> = (1..=streams).flat_map(of).collect();
        let mode = |at: &TxVector| OfdmMode::of_mcs(Format::Ht, Band::Ghz5, Width::Mhz20, *at);
        RateTable::new(&rates, |at, size| mode(at).data_time(size), Duration::from_micros(108))
    }

    /// A receiver of which nothing is known at time zero.
    struct Link {
        table: RateTable,
        order: SampleTable,
        minstrel: Minstrel,
        now: Instant,
    }

    impl Link {
        fn new(streams: u32) -> Self {
            let table = table(streams);
            let order = SampleTable::new(&table, Stream::new(1, "minstrel"));
            let minstrel = Minstrel::new(Instant::ZERO, &table, &order);
            Self { table, order, minstrel, now: Instant::ZERO }
        }

        /// Frames of one MPDU, so many at a rate, of which so many are acknowledged.
        fn send(&mut self, rate: u16, sent: usize, acknowledged: usize) {
            for frame in 0..sent {
                let outcome = (1, usize::from(frame < acknowledged));
                let tables = (&self.table, &self.order);
                self.minstrel.report(self.now, tables, Rate(rate), outcome);
            }
        }

        /// The next interval begins, with the report of a frame at the lowest rate.
        fn update(&mut self) {
            self.now += UPDATE_INTERVAL + MS;
            self.send(0, 1, 1);
        }

        /// Each rate has succeeded so often in ten attempts.
        fn known(&mut self, of_ten: &[usize]) {
            for (rate, &of_ten) in (0..).zip(of_ten) {
                self.send(rate, 10, of_ten);
            }
            self.update();
        }

        fn percent(&self, rate: u16) -> u64 {
            self.minstrel.probability(Rate(rate)) * 100 / ONE
        }

        /// Rates and attempts of the present series.
        fn series(&self) -> [(u16, u32); 4] {
            self.minstrel.series.steps.map(|step| (step.rate.0, step.tries))
        }

        fn max_tp(&self) -> [u16; 4] {
            self.minstrel.max_tp.map(|rate| rate.0)
        }
    }

    #[test]
    fn airtimes_are_those_of_linux() {
        // MCS_DURATION of one stream: 16 packets of 1200 B are 5908 symbols of 26 bits and 591 of
        // 260.
        let table = table(1);
        assert_eq!(table.airtime(Rate(0)), Duration::from_nanos(5_908 * 4_000 / 16));
        assert_eq!(table.airtime(Rate(7)), Duration::from_nanos(591 * 4_000 / 16));
    }

    #[test]
    fn an_unknown_receiver_gets_the_lowest_rate() {
        assert_eq!(Link::new(2).series(), [(0, 2); 4]);
    }

    #[test]
    fn probabilities_are_filtered() {
        // minstrel_filter_avg_add, by hand: (1173 new + 5273 latest - 2350 before) / 4096, at least 1.
        let mut rate = Statistics::default();
        let after = |successes: u64, rate: &mut Statistics| {
            (rate.attempts, rate.successes) = (4, successes);
            rate.update();
            rate.probability
        };
        assert_eq!(after(4, &mut rate), 4096);
        assert_eq!([0, 0, 0, 0].map(|none| after(none, &mut rate)), [2923, 1413, 142, 1]);
        // It overshoots, up to certainty.
        let probabilities = [4, 4, 4, 4, 4].map(|all| after(all, &mut rate));
        assert_eq!(probabilities, [1092, 2578, 3865, 4096, 4096]);
    }

    #[test]
    fn a_rate_without_attempts_keeps_its_probability() {
        let mut link = Link::new(1);
        link.known(&[10, 10, 10, 5]);
        link.update();
        link.update();
        assert_eq!(link.percent(3), 50);
    }

    #[test]
    fn a_rate_never_tried_is_as_likely_as_the_faster_ones() {
        let mut link = Link::new(1);
        link.send(4, 10, 6);
        link.send(6, 10, 3);
        link.update();
        assert_eq!([7, 6, 5, 4, 3].map(|rate| link.percent(rate)), [0, 29, 29, 59, 59]);
    }

    #[test]
    fn statistics_are_summed_up_after_50_ms_with_a_report() {
        let mut link = Link::new(1);
        link.send(1, 10, 10);
        link.now = Instant::ZERO + UPDATE_INTERVAL;
        link.send(1, 1, 1);
        assert_eq!(link.percent(1), 0);
        link.now += MS;
        link.send(1, 1, 1);
        assert_eq!(link.percent(1), 100);
    }

    #[test]
    fn the_highest_throughput_comes_first() {
        let mut link = Link::new(1);
        // MCS 4 to 7 take 246, 185, 164 and 148 us, all with 108 us of overhead.
        link.known(&[10, 10, 10, 10, 10, 7, 6, 0]);
        assert_eq!(link.max_tp(), [4, 5, 6, 3]);
        // More than 90 % count as 90 %, less than 10 % as nothing.
        let mut link = Link::new(1);
        link.known(&[10, 10, 10, 10, 9, 9, 9, 9]);
        assert_eq!(link.max_tp(), [7, 6, 5, 4]);
        let mut link = Link::new(1);
        link.known(&[10, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(link.max_tp(), [0, 0, 0, 0]);
    }

    #[test]
    fn long_frames_have_less_overhead_a_packet() {
        let mut link = Link::new(1);
        link.known(&[10, 10, 10, 10, 10, 10, 7, 7]);
        assert_eq!(link.max_tp()[0], 5);
        // 16 MPDUs a frame: the average goes up by a quarter of the difference each time.
        for expected in [4, 7, 9] {
            link.now += UPDATE_INTERVAL + MS;
            let tables = (&link.table, &link.order);
            link.minstrel.report(link.now, tables, Rate(5), (16, 16));
            assert_eq!(link.minstrel.mean_length(), expected);
        }
    }

    #[test]
    fn a_series_has_the_three_best_rates_and_the_safe_one() {
        let mut link = Link::new(1);
        link.known(&[10, 10, 10, 10, 10, 7, 6, 0]);
        // max_prob: the highest throughput of those above 75 %. By hand, with 67.5, 139.5, 283.5,
        // 571.5, 1147.5 and 2299.5 us of contention: the fifth attempt at MCS 4 (354 us) ends after 3.98
        // ms, the sixth after 6.63 ms.
        assert_eq!(link.series(), [(4, 5), (5, 5), (6, 5), (4, 5)]);
    }

    #[test]
    fn an_attempt_without_an_answer_is_followed_by_the_next_of_the_series() {
        let step = |(rate, tries)| Step { rate: Rate(rate), tries };
        let steps = [(5, 2), (4, 1), (3, 1), (0, 3)].map(step);
        let mut series = Series { steps, failed: 0, probes: false };
        let rates = [(); 9].map(|()| {
            let rate = series.rate().0;
            series.fail();
            rate
        });
        assert_eq!(rates, [5, 5, 4, 3, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn slow_frames_have_fewer_attempts() {
        let mut link = Link::new(1);
        link.known(&[10, 0, 0, 0, 0, 0, 0, 0]);
        // 1585 us each: the third ends after 5.25 ms, the fourth after 7.40 ms.
        assert_eq!(link.series()[0], (0, 3));
        // Below 20 %: two.
        let mut link = Link::new(1);
        link.known(&[1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(link.series()[0].1, 2);
    }

    #[test]
    fn the_safe_rate_has_fewer_streams() {
        let mut link = Link::new(2);
        link.known(&[10; 16]);
        // Rates 8 to 15 have two streams.
        assert_eq!(link.max_tp()[0], 15);
        assert_eq!(link.minstrel.max_prob, Rate(7));
    }

    #[test]
    fn a_rate_that_collapses_is_replaced_at_once() {
        let mut link = Link::new(2);
        link.known(&[10; 16]);
        link.send(15, 30, 0);
        assert_eq!(link.series()[0].0, 15);
        link.send(15, 1, 0);
        assert_eq!(link.series()[0].0, 7);
        // A quarter is enough.
        let mut link = Link::new(2);
        link.known(&[10; 16]);
        link.send(15, 40, 10);
        assert_eq!(link.series()[0].0, 15);
    }

    #[test]
    fn a_probe_is_due_every_20_ms() {
        let mut link = Link::new(1);
        link.known(&[10, 10, 10, 10, 0, 0, 0, 0]);
        let mut probes = |at| link.minstrel.series(link.now + at).is_probe();
        assert!(probes(Duration::ZERO));
        assert!(!probes(MS * 19));
        assert!(probes(MS * 20));
        assert!(!probes(MS * 39));
    }

    #[test]
    fn a_probe_tries_its_rate_once() {
        let mut link = Link::new(1);
        link.known(&[10, 10, 10, 10, 7, 0, 0, 0]);
        let usual = link.minstrel.series;
        let probe = link.minstrel.series(link.now);
        // The next faster one than max_tp.
        assert_eq!(probe.steps[0], Step { rate: Rate(link.max_tp()[0] + 1), tries: 1 });
        assert_eq!(probe.steps[1..], usual.steps[1..]);
    }

    #[test]
    fn faster_rates_are_probed_and_slower_ones_that_are_not_safe() {
        let mut link = Link::new(2);
        // In use: MCS 2 on two streams, MCS 3 on two streams, and on one stream MCS 3, which is safe.
        link.known(&[10, 10, 10, 10, 5, 0, 0, 0, 10, 10, 9, 8, 0, 0, 0, 0]);
        let airtime = |rate| link.table.airtime(rate).as_nanos();
        let Minstrel { max_tp, max_prob, increase, jump, slow, .. } = &link.minstrel;
        let used = [max_tp[0], max_tp[1], *max_prob].map(airtime);
        let (fast, slowest) = (used.iter().min().unwrap(), used.iter().max().unwrap());
        // The first of each group.
        let first = |group| link.table.first_below(group, link.table.airtime(max_tp[0])).unwrap();
        let mut increases = increase.rates.clone();
        increases.sort_by_key(|rate| rate.0);
        assert_eq!(increases, [first(0), first(1)]);
        assert!(!jump.rates.is_empty() && jump.rates.iter().all(|&rate| airtime(rate) < *fast));
        let between = |&rate: &Rate| airtime(rate) >= *fast && airtime(rate) < *slowest;
        assert!(slow.rates.iter().all(between));
        assert!(slow.rates.iter().all(|rate| link.percent(rate.0) <= 95));
    }

    #[test]
    fn each_order_has_every_mcs_once() {
        let SampleTable(orders) = Link::new(1).order;
        for mut order in orders.clone() {
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7]);
        }
        assert!(orders.iter().any(|order| order != &orders[0]));
    }

    proptest! {
        /// Whatever happens, probabilities are such, the best rates are in order, and nothing but
        /// rates that were asked for is used.
        #[test]
        fn any_reports_leave_it_sound(
            reports in prop::collection::vec((0_u64..30, 0_u16..24, 1_usize..65, 0.0..=1.0_f64), 1..300),
        ) {
            let mut link = Link::new(3);
            for (wait, rate, sent, share) in reports {
                link.now += MS * wait;
                let rate = if rate % 2 == 0 { link.minstrel.series(link.now).rate() } else { Rate(rate) };
                let before = link.minstrel.updated;
                let outcome = (sent, (share * sent as f64) as usize);
                let tables = (&link.table, &link.order);
                link.minstrel.report(link.now, tables, rate, outcome);
                let Minstrel { rates, increase, jump, slow, length, .. } = &link.minstrel;
                prop_assert!(rates.iter().all(|rate| rate.probability <= ONE));
                prop_assert!((ONE..=ONE * 64).contains(length));
                for samples in [increase, jump, slow] {
                    let mut distinct = samples.rates.clone();
                    distinct.sort_by_key(|rate| rate.0);
                    distinct.dedup();
                    prop_assert!(distinct.len() == samples.rates.len() && distinct.len() <= SAMPLES);
                }
                prop_assert!(link.series().iter().all(|&(_, tries)| (2..=7).contains(&tries)));
                if link.minstrel.updated > before {
                    let throughput = |rate| link.minstrel.throughput(&link.table, rate);
                    prop_assert!(link.minstrel.max_tp.is_sorted_by_key(|&rate| u64::MAX - throughput(rate)));
                }
            }
        }
    }
}
