//! A cell's scheduler: which of its links sends in each transmission time interval (TTI).
//!
//! Read first: F. Kelly, A. Maulloo, D. Tan, "Rate control for communication networks: shadow
//! prices, proportional fairness and stability", Journal of the Operational Research Society 49,
//! 1998, and A. Jalali, R. Padovani, R. Pankaj, "Data throughput of CDMA-HDR a high
//! efficiency-high data rate personal communication wireless system", VTC 2000 Spring, whose
//! scheduler the proportionally fair one is. Rules:
//!
//! - TTI *n* begins at *n* times its length. A link competes in it if something that came before
//!   that instant waits there.
//! - The scheduler chooses a link, which sends what it has, for as much of the TTI as that takes. If
//!   that is not all, the rest goes to the link that it chooses next, and so on. In LTE and NR the
//!   users of one TTI have different resource blocks (TS 36.213 §7.1.6, TS 38.214 §5.1.2.2). They
//!   are not modelled: a TTI may be divided to the nanosecond.
//! - All that is sent in a TTI has left at its end. A packet may take several TTIs.
//! - With `rlc`, what a link sends in a TTI is a transport block, which is repaired as on a link of its
//!   own ([`RlcConfig`]). Each time that it is sent again, it takes as much of that TTI as it took of
//!   the first, before anything new. Averages count only what is new.
//! - Of links with equal claims, the first in the cell's order is chosen.
//! - Averages of the proportionally fair scheduler change in every TTI, also those of links that
//!   have nothing to send (Jalali et al.). What an idle cell misses is made up for by the next TTI,
//!   so that an idle cell needs no calls.
//!
//! The cell knows no packets: [`Links`] stands for the links, whose own queues hold them
//! ([`Link::in_cell`](crate::Link::in_cell)).

use crate::config::RlcConfig;
use crate::rlc::Ttis;
use airtcp_core::{Duration, Instant};
use airtcp_settings::schema::POSITIVE_TIME;
use airtcp_settings::{Reader, alternatives, settings};
use std::cmp::Ordering;
use std::collections::BTreeMap;

settings! {
    #[partial]
    /// A cell of a base station: links that share its time. A link's rate is what it would have
    /// alone.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[check(check_cell)]
    pub struct CellConfig {
        /// Transmission time interval.
        #[kind = POSITIVE_TIME]
        #[source = "TS 36.321 §3.1"]
        pub tti: Duration = Duration::from_millis(1),
        /// The choice of the link that sends.
        #[keys_of(SchedulerConfig)]
        pub scheduler: SchedulerConfig,
        /// Each link repairs its own losses; the blocks are those of the cell, without a `tti` of
        /// their own.
        #[absent = "no retransmissions"]
        pub rlc: Option<RlcConfig> = None,
    }
}

alternatives! {
    /// The choice of the link that sends in a TTI, of those that have something to send.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[choice("scheduler", "The link that sends in an interval, of those that have something to send.")]
    pub enum SchedulerConfig {
        /// each in turn
        "round-robin" => RoundRobin,
        /// the one with the highest rate
        "max-rate" => MaxRate,
        /// the one whose rate is highest relative to what it has lately sent
        "proportional-fair" => ProportionalFair {
            /// Time constant of the exponential average of what a link has sent; at least `tti`.
            #[source = "Jalali et al. 2000 (1000 slots)"]
            time_constant: Duration = Duration::from_secs(1),
        },
    }
}

fn check_cell<R: Reader>(from: &R, config: &CellConfig) {
    if let SchedulerConfig::ProportionalFair { time_constant } = config.scheduler
        && time_constant < config.tti
    {
        let message = format!("{time_constant} is less than an interval of {}", config.tti);
        from.refuse(Some("time-constant"), message, "at least the tti");
    }
    if from.written("rlc") && from.table("rlc").is_some_and(|rlc| rlc.written("tti")) {
        let message = "has a tti of its own".to_owned();
        from.refuse(Some("rlc"), message, "the tti of the cell");
    }
}

/// A transmission time interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tti {
    /// Its start.
    pub start: Instant,
    /// Its end, exclusive.
    pub end: Instant,
}

impl Tti {
    /// Its length, in ns.
    fn length(self) -> u64 {
        self.end.since(self.start).as_nanos()
    }
}

/// The links of a cell, by their places in its order.
pub trait Links {
    /// Bits that a link could send in this TTI if it had the cell to itself, maybe none; `None` if
    /// nothing waits there.
    fn competes(&mut self, link: usize, tti: Tti) -> Option<u64>;

    /// A link sends ([`Link::send_in`](crate::Link::send_in)). Returns how many bits.
    fn send(&mut self, link: usize, grant: &mut Grant<'_>) -> u64;
}

/// Leave to send in a TTI.
#[derive(Debug)]
pub struct Grant<'a> {
    /// The TTI.
    pub tti: Tti,
    /// Most bits to send.
    pub bits: u64,
    /// The number of the TTI.
    pub(crate) number: u64,
    /// Bits that the link could send in the whole TTI.
    whole: u64,
    /// Time that is left of the TTI, in ns.
    left: u64,
    taken: &'a mut Taken,
}

impl Grant<'_> {
    /// The part of the TTI that so many bits take, in ns.
    fn time_of(&self, sent: u64) -> u64 {
        if sent >= self.bits {
            return self.left;
        }
        let (used, rest) = share(self.tti.length(), sent, self.whole);
        used + u64::from(rest)
    }

    /// The TTIs in which so many bits may be sent again.
    pub(crate) fn again(&mut self, sent: u64) -> impl Ttis + use<'_> {
        let (time, tti) = (self.time_of(sent), self.tti.length());
        Again { time, tti, taken: self.taken }
    }
}

/// What retransmissions will take of TTIs: ns, by the number of the TTI.
type Taken = BTreeMap<u64, u64>;

/// A block that may be sent again: it takes so much of a TTI, in ns.
struct Again<'a> {
    time: u64,
    tti: u64,
    taken: &'a mut Taken,
}

impl Ttis for Again<'_> {
    fn take(&mut self, mut tti: u64) -> u64 {
        loop {
            let taken = self.taken.entry(tti).or_default();
            if *taken + self.time <= self.tti {
                *taken += self.time;
                return tti;
            }
            tti = tti.saturating_add(1);
        }
    }
}

/// A cell at work.
///
/// Use: [`Cell::schedule`] at the time that [`Cell::next_deadline`] names, and before a packet is
/// offered to any of the links; then [`Cell::expect`].
#[derive(Clone, Debug)]
pub struct Cell {
    tti: Duration,
    links: usize,
    scheduler: Scheduler,
    taken: Taken,
    /// The number of the next TTI in which something may be sent.
    next: Option<u64>,
    /// The links that compete; empty between calls.
    rivals: Vec<Rival>,
}

/// A link that competes in a TTI.
#[derive(Clone, Copy, Debug)]
struct Rival {
    link: usize,
    /// Bits that it could send in the whole TTI.
    bits: u64,
}

impl Cell {
    /// An idle cell with this number of links.
    pub fn new(config: &CellConfig, links: usize) -> Self {
        let scheduler = Scheduler::new(config, links);
        let taken = Taken::new();
        Self { tti: config.tti, links, scheduler, taken, next: None, rivals: Vec::new() }
    }

    /// The time of the next [`Cell::schedule`]; `None` while nothing waits.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.next.map(|number| self.start(number))
    }

    /// A packet is about to be offered to a link at `now`. The next TTI that begins later may send
    /// it.
    pub fn expect(&mut self, now: Instant) {
        self.next.get_or_insert_with(|| now.as_nanos() / self.tti.as_nanos() + 1);
    }

    /// Divides the TTI that begins at `now`, if it is due.
    pub fn schedule(&mut self, now: Instant, links: &mut impl Links) {
        let Some(number) = self.next.filter(|&number| self.start(number) <= now) else { return };
        let tti = Tti { start: self.start(number), end: self.start(number.saturating_add(1)) };
        let mut rivals = std::mem::take(&mut self.rivals);
        // Something waits that cannot be sent yet.
        let mut held = false;
        for link in 0..self.links {
            match links.competes(link, tti) {
                None => {}
                Some(0) => held = true,
                Some(bits) => rivals.push(Rival { link, bits }),
            }
        }
        self.scheduler.begin(number);
        let whole = self.tti.as_nanos();
        let later = self.taken.split_off(&number.saturating_add(1));
        let passed = std::mem::replace(&mut self.taken, later);
        let mut left = whole - passed.get(&number).copied().unwrap_or(0);
        while left > 0
            && let Some(place) = self.scheduler.choose(&rivals)
        {
            let Rival { link, bits } = rivals.remove(place);
            let (granted, _) = share(bits, left, whole);
            if granted == 0 {
                // Less than a bit.
                held = true;
                continue;
            }
            let taken = &mut self.taken;
            let mut grant = Grant { tti, bits: granted, number, whole: bits, left, taken };
            let sent = links.send(link, &mut grant);
            left -= grant.time_of(sent);
            self.scheduler.sent(link, sent);
        }
        self.scheduler.end(number);
        let more = left == 0 || held;
        self.next = more.then_some(number.saturating_add(1));
        rivals.clear();
        self.rivals = rivals;
    }

    fn start(&self, number: u64) -> Instant {
        Instant::ZERO + self.tti * number
    }
}

/// `part / whole` of `of`, rounded down, and if there is a rest.
fn share(of: u64, part: u64, whole: u64) -> (u64, bool) {
    if part == whole {
        return (of, false);
    }
    match of.checked_mul(part) {
        Some(product) => (product / whole, !product.is_multiple_of(whole)),
        // The part is not larger than the whole, so the share fits.
        None => {
            let (product, whole) = (u128::from(of) * u128::from(part), u128::from(whole));
            ((product / whole) as u64, !product.is_multiple_of(whole))
        }
    }
}

/// The state of a scheduler.
#[derive(Clone, Debug)]
enum Scheduler {
    RoundRobin {
        /// The place at which the search begins: behind the link that sent last.
        turn: usize,
    },
    MaxRate,
    ProportionalFair(ProportionalFair),
}

/// Averages of what links have sent.
#[derive(Clone, Debug)]
struct ProportionalFair {
    /// The share that one TTI has in an average.
    weight: f64,
    /// The number of the TTI after the latest in the averages.
    averaged: u64,
    links: Vec<Sent>,
}

/// What a link has sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// Exponential average, in bits per TTI.
    average: f64,
    /// Bits in the present TTI.
    now: u64,
}

impl Scheduler {
    fn new(config: &CellConfig, links: usize) -> Self {
        match config.scheduler {
            SchedulerConfig::RoundRobin => Self::RoundRobin { turn: 0 },
            SchedulerConfig::MaxRate => Self::MaxRate,
            SchedulerConfig::ProportionalFair { time_constant } => {
                let weight = config.tti.as_nanos() as f64 / time_constant.as_nanos() as f64;
                let links = vec![Sent::default(); links];
                Self::ProportionalFair(ProportionalFair { weight, averaged: 0, links })
            }
        }
    }

    /// The TTI with this number begins.
    fn begin(&mut self, number: u64) {
        if let Self::ProportionalFair(fair) = self {
            let idle = number.saturating_sub(fair.averaged);
            if idle > 0 {
                let kept = libm::pow(1.0 - fair.weight, idle as f64);
                fair.links.iter_mut().for_each(|link| link.average *= kept);
            }
        }
    }

    /// The place of the rival that sends next; `None` without rivals.
    fn choose(&self, rivals: &[Rival]) -> Option<usize> {
        // The first of those with the greatest claim.
        let best = |compare: &dyn Fn(&Rival, &Rival) -> Ordering| {
            let rivals = rivals.iter().enumerate();
            let first = rivals.reduce(|best, other| match compare(best.1, other.1) {
                Ordering::Less => other,
                _ => best,
            });
            first.map(|(place, _)| place)
        };
        match self {
            Self::RoundRobin { turn } => {
                let next = rivals.iter().position(|rival| rival.link >= *turn);
                next.or((!rivals.is_empty()).then_some(0))
            }
            Self::MaxRate => best(&|a, b| a.bits.cmp(&b.bits)),
            Self::ProportionalFair(fair) => best(&|a, b| {
                // a.bits / its average against b's, with averages that may be zero.
                let [of_a, of_b] = [a, b].map(|rival| fair.links[rival.link].average);
                (a.bits as f64 * of_b).total_cmp(&(b.bits as f64 * of_a))
            }),
        }
    }

    /// A link sends so many bits in the present TTI.
    fn sent(&mut self, link: usize, bits: u64) {
        match self {
            Self::RoundRobin { turn } => *turn = link + 1,
            Self::MaxRate => {}
            Self::ProportionalFair(fair) => fair.links[link].now += bits,
        }
    }

    /// The TTI with this number is over.
    fn end(&mut self, number: u64) {
        if let Self::ProportionalFair(fair) = self {
            for Sent { average, now } in &mut fair.links {
                *average += fair.weight * (std::mem::take(now) as f64 - *average);
            }
            fair.averaged = number.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_go_on_while_the_cell_is_idle() {
        // Jalali et al. 2000: also those of users with nothing to send.
        let time_constant = Duration::from_millis(50);
        let scheduler = SchedulerConfig::ProportionalFair { time_constant };
        let config = CellConfig { tti: Duration::from_millis(1), scheduler, rlc: None };
        let mut missed = Scheduler::new(&config, 2);
        let mut counted = missed.clone();
        for number in 0..100 {
            let busy = number < 10 || number == 99;
            for scheduler in [&mut missed, &mut counted] {
                if busy {
                    scheduler.begin(number);
                    scheduler.sent((number % 2) as usize, 1000 + number);
                    scheduler.end(number);
                }
            }
            if !busy {
                counted.begin(number);
                counted.end(number);
            }
        }
        let averages = |scheduler: &Scheduler| match scheduler {
            Scheduler::ProportionalFair(fair) => [fair.links[0].average, fair.links[1].average],
            _ => unreachable!("it is proportionally fair"),
        };
        let (missed, counted) = (averages(&missed), averages(&counted));
        assert!(counted[0] > 1.0 && counted[1] > 20.0, "{counted:?}");
        for (missed, counted) in missed.iter().zip(counted) {
            assert!((missed / counted - 1.0).abs() < 1e-9, "{missed}, not {counted}");
        }
    }
}
