//! What a link is made of, and how it is written in files. Constructors or file readers validate
//! all values; the models themselves never fail.

use crate::fading::FadingConfig;
use crate::queue::codel::CodelConfig;
use crate::queue::dualpi2::DualPi2Config;
use crate::queue::fq_codel::FqCodelConfig;
use crate::queue::pie::PieConfig;
use crate::queue::red::RedConfig;
use crate::table::{self, Delays, Losses, Rates};
use crate::trace::Trace;
use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_settings::schema::{
    Fallback, Field, Key, Kind, PATH, POSITIVE_TIME, PROBABILITY, TIME, Table, choose, field, words,
};
use airtcp_settings::{
    Decoded, InTable, Name, PacketsOrSize, Reader, Settings, Value, alternatives, choice, settings,
};
use std::sync::Arc;

settings! {
    #[partial]
    /// A unidirectional link: a queue, a server with a rate, a propagation delay, losses and
    /// outages, perhaps behind a policer.
    #[derive(Clone, Debug, PartialEq)]
    #[check(check_link)]
    pub struct LinkConfig {
        /// Rate at which packets are serialised: constant, or a table with steps, a file or fading.
        pub rate: LinkRate,
        /// One-way propagation delay: constant, or a table with a distribution, steps or a file.
        pub delay: DelayConfig,
        /// Random or listed losses.
        #[absent = "no losses"]
        pub loss: LinkLoss = LinkLoss::default(),
        /// Probability that a packet is followed by a copy. The copy enters the link right behind it,
        /// as a packet of its own, and is not copied again.
        #[kind = PROBABILITY]
        #[source = "Linux (netem)"]
        pub duplicate: f64 = 0.0,
        /// Token bucket in front of the queue.
        #[absent = "no policer"]
        pub policer: Option<PolicerConfig> = None,
        /// Outages of the link itself.
        #[absent = "always up"]
        pub outage: Option<OutageConfig> = None,
        /// Steps of delay and loss, and interruptions, at the ends of time slots.
        #[absent = "the path stays the same"]
        pub reconfiguration: Option<Box<ReconfigurationConfig>> = None,
        /// Changes of the mobile's base station.
        #[absent = "always the same base station"]
        pub handover: Option<Box<HandoverConfig>> = None,
        /// Retransmissions below IP, as of a cellular link. The rate is then that of transport blocks.
        #[absent = "no retransmissions"]
        pub rlc: Option<Box<RlcConfig>> = None,
        /// The queue in front of the link, one in each direction. The link of a sender's own host
        /// needs a longer one than the default if a later link is slower (`docs/queues.md`).
        #[absent = "drop-tail, 50 packets"]
        pub queue: QueueConfig = QueueConfig::default(),
    }
}

impl LinkConfig {
    /// Its outages: those listed, or those at its reconfigurations.
    pub fn outages(&self) -> Option<OutageConfig> {
        let interruptions = || self.reconfiguration.as_ref()?.interruptions();
        self.outage.clone().or_else(interruptions)
    }

    /// When nothing gets through: in its outages, or while its mobile is between base stations.
    pub fn interruptions(&self) -> Option<Schedule> {
        let of_handovers = || Some(self.handover.as_ref()?.interruptions());
        self.outages().map(|outages| outages.schedule).or_else(of_handovers)
    }

    /// The mean rate from the start until `end`: what load and slowdown are relative to.
    pub fn mean_rate(&self, end: Instant) -> DataRate {
        let of_cells = |&first: &DataRate| self.handover.as_ref()?.rates(first);
        match &self.rate {
            LinkRate::Constant(rate) => of_cells(rate).map_or(*rate, |it| it.mean_until(end)),
            LinkRate::Mahimahi(trace) => trace.mean_rate(),
            LinkRate::Table(rates) => rates.mean_until(end),
            LinkRate::Fading(fading) => fading.mean(),
        }
    }

    /// The least delay that a packet may have.
    pub fn least_delay(&self) -> Duration {
        let of_slots = self.reconfiguration.as_ref().and_then(|it| it.delay.as_ref());
        let cells = self.handover.iter().flat_map(|handover| handover.times.cells());
        let of_cells = cells.filter_map(|cell| cell.delay).min().unwrap_or(Duration::MAX);
        self.delay.least().min(of_cells)
            + of_slots.map(Distribution::lower_bound).unwrap_or_default()
    }
}

/// A link has one schedule of outages, its transport blocks one size, and each change a constant
/// to replace.
fn check_link<R: Reader>(from: &R, link: &LinkConfig) {
    let interruptions = link.reconfiguration.as_ref().and_then(|it| it.interruption);
    if link.outage.is_some() && interruptions.is_some() {
        let message = "contradicts the interruptions of `reconfiguration`".to_owned();
        from.refuse(Some("outage"), message, "either outage or interruption");
    }
    if let Some(handover) = &link.handover {
        check_cells(from, link, handover);
    }
    match (&link.rlc, &link.rate) {
        (Some(rlc), LinkRate::Constant(rate)) if rlc.block_bits(*rate) == 0 => {
            let message = format!("at {rate}, a block of {} has less than a bit", rlc.tti);
            from.refuse(Some("rlc"), message, "a longer tti or a higher rate");
        }
        (Some(_), LinkRate::Mahimahi(_) | LinkRate::Table(_) | LinkRate::Fading(_)) => {
            let message = "has no blocks of one size where the rate changes".to_owned();
            from.refuse(Some("rlc"), message, "a constant rate beside it");
        }
        _ => {}
    }
}

/// The interruptions of handovers are a link's only ones, and their cells change what is constant.
fn check_cells<R: Reader>(from: &R, link: &LinkConfig, handover: &HandoverConfig) {
    if link.outages().is_some() {
        let message = "contradicts the link's other outages".to_owned();
        from.refuse(Some("handover"), message, "either handovers or outages");
    }
    let mut cells = handover.times.cells().iter();
    let rate = cells.clone().find_map(|cell| cell.rate);
    if rate.is_some() && !matches!(link.rate, LinkRate::Constant(_)) {
        let message = "has a rate of a cell, and the link's changes by itself".to_owned();
        from.refuse(Some("handover"), message, "a constant rate of the link, or cells without");
    }
    if cells.any(|cell| cell.delay.is_some()) && link.delay.variation.is_some() {
        let message = "has a delay of a cell, and the link's changes by itself".to_owned();
        from.refuse(Some("handover"), message, "a constant delay of the link, or cells without");
    }
    let rates = handover.times.cells().iter().filter_map(|cell| cell.rate);
    if let (Some(rlc), Some(rate)) = (&link.rlc, rates.min())
        && rlc.block_bits(rate) == 0
    {
        let message = format!("at {rate}, a block of {} has less than a bit", rlc.tti);
        from.refuse(Some("handover"), message, "a higher rate");
    }
}

/// Rate at which packets are serialised.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkRate {
    /// Always the same.
    Constant(DataRate),
    /// The opportunities of a Mahimahi trace.
    Mahimahi(Arc<Trace>),
    /// As a table says.
    Table(Arc<Rates>),
    /// That of a channel that fades.
    Fading(Arc<FadingConfig>),
}

impl LinkRate {
    /// The rate; of a trace or a channel its mean, of a table the mean until its last line.
    pub fn mean(&self) -> DataRate {
        match self {
            Self::Constant(rate) => *rate,
            Self::Mahimahi(trace) => trace.mean_rate(),
            Self::Table(rates) => rates.mean(),
            Self::Fading(fading) => fading.mean(),
        }
    }
}

impl From<DataRate> for LinkRate {
    fn from(rate: DataRate) -> Self {
        Self::Constant(rate)
    }
}

static RATE: Table = Table::new(
    "link.rate",
    "A rate that changes: one of `steps`, `file` and `fading`.",
    &[Key::Fields(&[
        field(
            "steps",
            Kind::Tables(&RATE_STEPS),
            Fallback::Absent("no steps"),
            "The rates and the times from which they hold, the last one to the end.",
        ),
        field(
            "file",
            Kind::Text(&PATH),
            Fallback::Absent("no file"),
            "`.csv`: a table of time and rate, `time (s),rate (Mbit/s)` in its first line, perhaps with \
         columns of delay and loss for other keys; each rate holds until the next, the last to the end; \
         at 0, packets wait. Any other name: a Mahimahi trace, which repeats. Perhaps compressed with \
         gzip; relative to the file that names it.",
        ),
        field(
            "fading",
            Kind::Table(FadingConfig::TABLE),
            Fallback::Absent("no fading"),
            "A radio channel that fades.",
        ),
    ])],
);

static RATE_STEPS: Table = Table::new(
    "link.rate.steps",
    "A rate, from some time on.",
    &[Key::Fields(&[
        AT,
        field(
            "rate",
            Kind::WordOr("none", &Kind::Rate),
            Fallback::Required,
            "The rate; with `none` packets wait. The last one is a rate.",
        ),
    ])],
);

const AT: Field = field(
    "at",
    TIME,
    Fallback::Required,
    "Time from which it holds: 0 s in the first step, and then ascending.",
);

/// Reads the steps of a table, each with a `value`.
fn steps<R: Reader, T: Copy>(
    table: &R,
    value: impl Fn(&R) -> Option<T>,
) -> Option<table::Table<T>> {
    let mut read: Vec<(Instant, T)> = Vec::new();
    let mut complete = true;
    for step in table.tables("steps") {
        let (at, value) = (step.get::<Instant>("at"), value(&step));
        let (Some(at), Some(value)) = (at, value) else {
            complete = false;
            continue;
        };
        let since = at.since_start();
        match read.last() {
            None if complete && !since.is_zero() => {
                step.refuse(Some("at"), format!("nothing holds until {since}"), "0 s");
                return None;
            }
            Some((before, _)) if at <= *before => {
                let before = before.since_start();
                let message = format!("{since} does not come after {before}");
                step.refuse(Some("at"), message, &format!("a time after {before}"));
                return None;
            }
            _ => read.push((at, value)),
        }
    }
    if complete { table::Table::new(read) } else { None }
}

/// The one of `steps` and `file` that a table has.
fn steps_or_file<R: Reader>(table: &R) -> Option<&'static str> {
    match (table.written("steps"), table.written("file")) {
        (true, false) => Some("steps"),
        (false, true) => Some("file"),
        (true, true) => {
            table.refuse(Some("file"), "contradicts `steps`".to_owned(), "either steps or file");
            None
        }
        (false, false) => {
            table.refuse(None, "says nothing".to_owned(), "steps or file");
            None
        }
    }
}

/// Reads the rate in a file.
fn rate_in(name: &str, text: &str) -> Result<LinkRate, String> {
    match table::is_table(name) {
        true => Rates::read(text)
            .map(|rates| LinkRate::Table(Arc::new(rates)))
            .map_err(|error| error.to_string()),
        false => Trace::parse(text)
            .map(|trace| LinkRate::Mahimahi(Arc::new(trace)))
            .map_err(|error| error.to_string()),
    }
}

impl Value for LinkRate {
    const KIND: Kind = Kind::OrTable(&Kind::Rate, &RATE);

    fn read<R: Reader>(from: &R, key: &str, _base: Option<&Self>) -> Option<Self> {
        let Some(table) = from.table(key) else {
            return from.get(key).map(Self::Constant);
        };
        let ways = ["steps", "file", "fading"];
        let written: Vec<_> = ways.into_iter().filter(|way| table.written(way)).collect();
        match written[..] {
            ["fading"] => {
                let fading = <FadingConfig as Settings>::read(&table.table("fading")?, None);
                // What follows from a refused one is not of interest.
                let fading = fading.filter(|it| it.mistake().is_none());
                return fading.map(|it| Self::Fading(Arc::new(it)));
            }
            [other, .., "fading"] => {
                let message = format!("contradicts `{other}`");
                table.refuse(Some("fading"), message, "one of steps, file and fading");
                return None;
            }
            [] => {
                table.refuse(None, "says nothing".to_owned(), "steps, file or fading");
                return None;
            }
            _ => {}
        }
        if steps_or_file(&table)? == "file" {
            let file = table.get::<Option<Name>>("file")??;
            return table.file("file", &file, |text| rate_in(&file.text, text));
        }
        let rates = Rates::new(steps(&table, |step| step.get::<Option<DataRate>>("rate"))?);
        if rates.is_none() {
            let message = "the last rate is none, and packets would wait for ever".to_owned();
            table.refuse(Some("steps"), message, "a last rate");
        }
        rates.map(|rates| Self::Table(Arc::new(rates)))
    }

    fn show(&self, kind: &Kind) -> Option<String> {
        match self {
            Self::Constant(rate) => rate.show(kind),
            Self::Mahimahi(_) | Self::Table(_) | Self::Fading(_) => None,
        }
    }
}

/// One-way propagation delay.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayConfig {
    /// Constant delay; also in force before `variation` starts.
    pub base: Duration,
    /// Random per-packet delay, from some time on.
    pub variation: Option<Variation>,
}

/// Random per-packet delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// Start of the variation.
    pub from: Instant,
    /// The whole one-way delay, not an addition to the base.
    pub distribution: Distribution,
    /// Keep packets in order (a packet never arrives before its predecessor) or let them overtake.
    pub fifo: bool,
}

static DELAY: Table = Table::new(
    "link.delay",
    "A one-way delay that varies from packet to packet: at most one of `constant`, `uniform`, `normal`, \
     `exponential`, `mixture`, `steps`, `file`. It gives the whole delay, not an addition to `base`.",
    &[
        Key::Fields(&[
            field(
                "base",
                TIME,
                Fallback::Absent("required when there is no distribution or `from` is not 0"),
                "Constant delay, in force before `from`.",
            ),
            field("from", TIME, Fallback::Is("0 s"), "Start of the variation."),
            field(
                "fifo",
                Kind::Bool,
                Fallback::Is("true"),
                "Packets keep their order (a packet never arrives before its predecessor); `false` lets \
                 them overtake.",
            ),
        ]),
        Key::Fields(SIMPLE),
        Key::Fields(&[field(
            "mixture",
            Kind::Tables(&MIXTURE),
            Fallback::Absent("not a mixture"),
            "One of several distributions, drawn for each packet.",
        )]),
        Key::Fields(&[
            field(
                "steps",
                Kind::Tables(&DELAY_STEPS),
                Fallback::Absent("no steps"),
                "The delays and the times from which they hold, the last one to the end. A packet has \
                 the delay that holds when its last byte leaves.",
            ),
            field(
                "file",
                Kind::Text(&PATH),
                Fallback::Absent("no file"),
                "The same as a table of time and delay, `time (s),delay (ms)` in its first line, perhaps \
                 with columns of rate and loss for other keys. Perhaps compressed with gzip; relative to the file that names it.",
            ),
        ]),
    ],
);

static DELAY_STEPS: Table = Table::new(
    "link.delay.steps",
    "A delay, from some time on.",
    &[Key::Fields(&[AT, field("delay", TIME, Fallback::Required, "The delay.")])],
);

impl DelayConfig {
    /// The least delay that a packet may have.
    pub fn least(&self) -> Duration {
        match &self.variation {
            None => self.base,
            Some(Variation { from: Instant::ZERO, distribution, .. }) => distribution.lower_bound(),
            Some(Variation { distribution, .. }) => distribution.lower_bound().min(self.base),
        }
    }
}

impl Value for DelayConfig {
    const KIND: Kind = Kind::OrTable(&TIME, &DELAY);

    fn read<R: Reader>(from: &R, key: &str, _base: Option<&Self>) -> Option<Self> {
        let Some(table) = from.table(key) else {
            return Some(Self { base: from.get(key)?, variation: None });
        };
        let base = table.get::<Option<Duration>>("base");
        let (start, fifo) = (table.get("from"), table.get("fifo"));
        let distribution = distribution(&table, OF_PACKETS)?;
        let (base, start, fifo) = (base?, start?, fifo?);
        let Some(distribution) = distribution else {
            for key in ["from", "fifo"].into_iter().filter(|key| table.written(key)) {
                let message = "has no effect without a distribution".to_owned();
                let expected = "uniform, normal, exponential, constant, mixture, steps or file";
                table.refuse(Some(key), message, expected);
            }
            if base.is_none() {
                table.refuse(Some("base"), "missing".to_owned(), "a base or a distribution");
            }
            return Some(Self { base: base?, variation: None });
        };
        if base.is_none() && start > Instant::ZERO {
            table.refuse(Some("base"), "missing".to_owned(), "the delay in force until `from`");
        }
        let base = base.unwrap_or_default();
        Some(Self { base, variation: Some(Variation { from: start, distribution, fifo }) })
    }

    fn show(&self, kind: &Kind) -> Option<String> {
        match &self.variation {
            None => self.base.show(kind),
            Some(_) => None,
        }
    }
}

/// A distribution of durations.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Constant(Duration),
    /// Uniform in [low, high).
    Uniform {
        /// Smallest delay.
        low: Duration,
        /// Upper bound of the delay, exclusive.
        high: Duration,
    },
    /// Normal; a negative draw counts as zero.
    Normal {
        /// Mean of the delay.
        mean: Duration,
        /// Standard deviation of the delay.
        deviation: Duration,
    },
    /// `offset` plus an exponential with mean `mean`.
    Exponential {
        /// Delay that every packet has at least.
        offset: Duration,
        /// Mean of the exponential part.
        mean: Duration,
    },
    /// One of several, with the given weights (positive; they need not sum to one).
    Mixture(Vec<(f64, Distribution)>),
    /// As a table says for the time.
    Table(Arc<Delays>),
}

/// Distributions other than mixtures.
const SIMPLE: &[Field] = &[
    field("constant", TIME, Fallback::Absent("not constant"), "Always the same."),
    field(
        "uniform",
        Kind::DurationPair,
        Fallback::Absent("not uniform"),
        "`[low, high]`: uniform from low up to high.",
    ),
    field(
        "normal",
        Kind::Table(&NORMAL),
        Fallback::Absent("not normal"),
        "Normal, truncated at zero.",
    ),
    field(
        "exponential",
        Kind::Table(&EXPONENTIAL),
        Fallback::Absent("not exponential"),
        "An offset plus an exponential.",
    ),
];
static NORMAL: Table = Table::new(
    "normal",
    "A normal distribution of delays, with negative draws counted as zero.",
    &[Key::Fields(&[
        field("mean", TIME, Fallback::Required, "Mean before the cut."),
        field("deviation", TIME, Fallback::Required, "Standard deviation before the cut."),
    ])],
);
static EXPONENTIAL: Table = Table::new(
    "exponential",
    "A shifted exponential distribution of delays.",
    &[Key::Fields(&[
        field("offset", TIME, Fallback::Is("0 s"), "Smallest value."),
        field("mean", POSITIVE_TIME, Fallback::Required, "Mean of the exponential part."),
    ])],
);
static MIXTURE: Table = Table::new(
    "link.delay.mixture",
    "A part of a mixture: its weight and exactly one distribution.",
    &[
        Key::Fields(&[field(
            "weight",
            Kind::Number { min: 0.0, max: 1e9, above: true },
            Fallback::Required,
            "Relative frequency; the weights need not sum to one.",
        )]),
        Key::Fields(SIMPLE),
    ],
);

/// Distributions that a packet's delay, a slot's delay and a part of a mixture may have: so many of
/// those in [`distribution`].
const OF_PACKETS: usize = 7;
const OF_SLOTS: usize = 5;
const OF_PARTS: usize = 4;

/// The distribution among the keys of `table`, of the first `allowed`. `Some(None)` if there is
/// none, `None` if it is invalid.
fn distribution<R: Reader>(table: &R, allowed: usize) -> Option<Option<Distribution>> {
    type Read<R> = fn(&R, &str) -> Option<Distribution>;
    let readers: [(&str, Read<R>); OF_PACKETS] = [
        ("constant", |table, key| Some(Distribution::Constant(table.get::<Option<_>>(key)??))),
        ("uniform", |table, key| {
            let (low, high) = table.get::<Option<_>>(key)??;
            Some(Distribution::Uniform { low, high })
        }),
        ("normal", |table, key| {
            let normal = table.table(key)?;
            let (mean, deviation) = (normal.get("mean"), normal.get("deviation"));
            Some(Distribution::Normal { mean: mean?, deviation: deviation? })
        }),
        ("exponential", |table, key| {
            let exponential = table.table(key)?;
            let (offset, mean) = (exponential.get("offset"), exponential.get("mean"));
            Some(Distribution::Exponential { offset: offset?, mean: mean? })
        }),
        ("mixture", |table, _| Some(Distribution::Mixture(mixture_parts(table)?))),
        ("steps", |table, _| {
            let delays: Delays = steps(table, |step| step.get::<Duration>("delay"))?;
            Some(Distribution::Table(Arc::new(delays)))
        }),
        ("file", |table, _| {
            let file = table.get::<Option<Name>>("file")??;
            table.file("file", &file, Delays::read).map(Arc::new).map(Distribution::Table)
        }),
    ];
    let mut given = readers[..allowed].iter().filter(|(key, _)| table.written(key));
    let Some((key, read)) = given.next() else { return Some(None) };
    if let Some((second, _)) = given.next() {
        let message = format!("a second distribution beside `{key}`");
        table.refuse(Some(second), message, "one distribution");
        return None;
    }
    read(table, key).map(Some)
}

fn mixture_parts<R: Reader>(table: &R) -> Option<Vec<(f64, Distribution)>> {
    let read = |part: &R| {
        let weight = part.get::<f64>("weight");
        let distribution = distribution(part, OF_PARTS)?;
        if distribution.is_none() {
            let expected = "constant, uniform, normal or exponential";
            part.refuse(None, "has no distribution".to_owned(), expected);
        }
        Some((weight?, distribution?))
    };
    let read: Vec<Option<(f64, Distribution)>> = table.tables("mixture").iter().map(read).collect();
    if read.is_empty() { None } else { read.into_iter().collect() }
}

/// The models that lose packets.
const LOSSY: &[&str] =
    &words::<4>(&choose(LossConfig::WORDS, ["bernoulli", "gilbert-elliott", "schedule", "list"]));

settings! {
    /// Random or listed losses of a link.
    #[derive(Clone, Debug, PartialEq)]
    #[table("link.loss", whole)]
    pub struct LinkLoss {
        /// Model of the losses.
        #[keys_of(LossConfig)]
        pub model: LossConfig = LossConfig::None,
        /// Place of the losses.
        #[only("kind" in LOSSY)]
        pub place: LossPlace = LossPlace::Medium,
    }
}

impl From<LossConfig> for LinkLoss {
    /// On the medium.
    fn from(model: LossConfig) -> Self {
        Self { model, place: LossPlace::Medium }
    }
}

alternatives! {
    /// Model of packet losses.
    #[derive(Clone, Debug, PartialEq)]
    #[choice("kind", "The model of losses.")]
    #[source = "Gilbert 1960, Elliott 1963"]
    pub enum LossConfig {
        /// no losses
        "none" => None,
        /// each packet independently
        "bernoulli" => Bernoulli {
            /// Probability that a packet is lost.
            #[kind = PROBABILITY]
            p: f64,
        },
        /// a two-state Markov chain that starts in the good state: each packet is lost with the
        /// probability of the current state, then the chain takes a step
        "gilbert-elliott" => GilbertElliott {
            /// Probability of a step from good to bad.
            #[kind = PROBABILITY]
            good_to_bad: f64,
            /// Probability of a step from bad to good.
            #[kind = PROBABILITY]
            bad_to_good: f64,
            /// Loss probability in the good state.
            #[kind = PROBABILITY]
            loss_good: f64 = 0.0,
            /// Loss probability in the bad state.
            #[kind = PROBABILITY]
            loss_bad: f64 = 1.0,
        },
        /// each packet independently, with a probability that changes
        "schedule" => Schedule(..LossSchedule),
        /// exactly these packets
        "list" => List(
            /// Ordinals, from 0, of the data packets sent over the link; a retransmission has an
            /// ordinal of its own.
            packets: Vec<u64>
        ),
    }
}

/// Loss probabilities by time.
#[derive(Clone, Debug, PartialEq)]
pub struct LossSchedule(pub Arc<Losses>);

static LOSS_STEPS: Table = Table::new(
    "link.loss.steps",
    "A loss probability, from some time on.",
    &[Key::Fields(&[
        AT,
        field("p", PROBABILITY, Fallback::Required, "Probability that a packet is lost."),
    ])],
);

impl Settings for LossSchedule {
    const KEYS: &'static [Key] = &[Key::Fields(&[
        field(
            "steps",
            Kind::Tables(&LOSS_STEPS),
            Fallback::Absent("no steps"),
            "The probabilities and the times from which they hold, the last one to the end; either \
             this or `file`. On the medium the time is that when a packet's last byte leaves.",
        ),
        field(
            "file",
            Kind::Text(&PATH),
            Fallback::Absent("no file"),
            "The same as a table of time and loss, `time (s),loss (%)` in its first line, perhaps with \
             columns of rate and delay for other keys. Perhaps compressed with gzip; relative to the file that names it.",
        ),
    ])];

    fn read<R: Reader>(from: &R, _base: Option<&Self>) -> Option<Self> {
        let losses = if steps_or_file(from)? == "file" {
            let file = from.get::<Option<Name>>("file")??;
            from.file("file", &file, Losses::read)?
        } else {
            steps(from, |step| step.get::<f64>("p"))?
        };
        Some(Self(Arc::new(losses)))
    }

    /// A schedule is not written on one line.
    fn write(&self, _to: &mut Vec<(&'static str, String)>) {}
}

choice! {
    /// The place of a link's losses.
    #[default(Medium)]
    pub enum LossPlace {
        /// on the medium: a lost packet has used its transmission time
        Medium = "medium",
        /// in front of the queue: a lost packet uses nothing (ns-2 `lossmodel`)
        BeforeQueue = "before-queue",
    }
}

/// Outages of a link (or of a mobile's IP layer).
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// Half-open intervals [start, end), ascending and disjoint.
    Listed(Vec<(Instant, Instant)>),
    /// Down while `start <= (now - origin) mod period < end`, for `now >= origin` (M-TCP §3.3:
    /// BrokenStartTime, BrokenEndTime, CycleTime).
    Periodic {
        /// The clock the cycle is anchored to.
        origin: Instant,
        /// Time from the start of one outage to the start of the next.
        period: Duration,
        /// Start of the outage within the cycle.
        start: Duration,
        /// End of the outage within the cycle, at most `period`.
        end: Duration,
    },
}

impl Settings for Schedule {
    const KEYS: &'static [Key] = &[Key::Fields(&[
        field(
            "listed",
            Kind::Intervals,
            Fallback::Absent("no listed outages"),
            "`[[start, end], …]`, ascending and disjoint; down from each start up to its end. \
             Not together with `period`.",
        ),
        field(
            "period",
            POSITIVE_TIME,
            Fallback::Absent("not periodic"),
            "Cycle time of a periodic outage.",
        )
        .source("M-TCP §3.3 (CycleTime)"),
        field("start", TIME, Fallback::Is("0 s"), "Start of the outage in each cycle.")
            .source("M-TCP §3.3 (BrokenStartTime)"),
        field(
            "end",
            POSITIVE_TIME,
            Fallback::Absent("required with `period`"),
            "End of the outage in each cycle; after `start`, at most `period`.",
        )
        .source("M-TCP §3.3 (BrokenEndTime)"),
        field("origin", TIME, Fallback::Is("0 s"), "Start of the first cycle."),
    ])];

    fn read<R: Reader>(from: &R, _base: Option<&Self>) -> Option<Self> {
        let listed = from.get::<Option<Vec<(Instant, Instant)>>>("listed");
        let period = from.get::<Option<Duration>>("period");
        let start = from.get::<Duration>("start");
        let end = from.get::<Option<Duration>>("end");
        let origin = from.get::<Instant>("origin");
        if !from.written("period") {
            for key in ["start", "end", "origin"].into_iter().filter(|key| from.written(key)) {
                let message = "has no effect without period".to_owned();
                from.refuse(Some(key), message, "`period` beside it");
            }
            if !from.written("listed") {
                let expected = "listed = [[start, end], …] or period and end";
                from.refuse(None, "has no times".to_owned(), expected);
            }
            return listed?.map(Self::Listed);
        }
        if from.written("listed") {
            let message = "contradicts period".to_owned();
            from.refuse(Some("listed"), message, "either listed or period");
        }
        let (period, start) = (period??, start?);
        let Some(end) = end? else {
            from.refuse(Some("end"), "missing".to_owned(), "the end of the outage in each cycle");
            return None;
        };
        if !(start < end && end <= period) {
            let message =
                format!("the outage from {start} to {end} does not fit a cycle of {period}");
            from.refuse(Some("end"), message, "start < end, end at most period");
            return None;
        }
        Some(Self::Periodic { origin: origin?, period, start, end })
    }

    fn write(&self, to: &mut Vec<(&'static str, String)>) {
        let mut put = |key, text: Option<String>| to.extend(text.map(|text| (key, text)));
        match self {
            Self::Listed(listed) => put("listed", listed.show(&Kind::Intervals)),
            Self::Periodic { origin, period, start, end } => {
                put("period", period.show(&TIME));
                put("start", start.show(&TIME));
                put("end", end.show(&TIME));
                put("origin", origin.show(&TIME));
            }
        }
    }
}

settings! {
    #[partial]
    /// A token bucket that drops what exceeds it, as mobile networks do to plans with a limited
    /// rate.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[table("link.policer", whole)]
    pub struct PolicerConfig {
        /// Rate at which the bucket fills.
        #[source = "RFC 2697"]
        pub rate: DataRate,
        /// Size of the bucket, which is full at the start. A larger packet never passes.
        #[source = "RFC 2697"]
        pub burst: Bytes,
    }
}

settings! {
    #[partial]
    /// Outages of a link: either `listed`, or `period` with `end`.
    #[derive(Clone, Debug, PartialEq)]
    #[table("link.outage", whole)]
    pub struct OutageConfig {
        /// Effect on packets.
        pub mode: OutageMode = OutageMode::Drop,
        /// Start and end of each outage.
        #[keys_of(Schedule)]
        pub schedule: Schedule,
    }
}

settings! {
    #[partial]
    /// A path that changes at the ends of time slots, as one through satellites in low orbit does.
    /// Both directions of a path step together.
    #[derive(Clone, Debug, PartialEq)]
    #[table("link.reconfiguration", whole)]
    #[check(check_reconfiguration)]
    pub struct ReconfigurationConfig {
        /// Length of a slot.
        #[kind = POSITIVE_TIME]
        #[source = "Tanveer et al. 2023 (Starlink)"]
        pub interval: Duration = Duration::from_secs(15),
        /// End of the first slot, at most `interval`.
        #[source = "Tanveer et al. 2023 (Starlink: 12, 27, 42, 57 s)"]
        pub offset: Duration = Duration::from_secs(12),
        /// Delay beside the link's `delay`, drawn once a slot: a packet has that of the slot in
        /// which its last byte leaves.
        #[absent = "no delay of its own"]
        pub delay: Option<Distribution> = None,
        /// Upper bound of the probability, drawn uniformly once a slot, that a packet is lost,
        /// beside the link's `loss`.
        #[kind = PROBABILITY]
        pub loss: f64 = 0.0,
        /// Length of an outage at the end of each slot; not together with `outage`. Mechanisms hear
        /// of it as of any other.
        #[kind = POSITIVE_TIME]
        #[absent = "no interruption"]
        pub interruption: Option<Duration> = None,
        /// Effect of the interruption on packets.
        pub mode: OutageMode = OutageMode::Drop,
    }
}

impl ReconfigurationConfig {
    /// Its interruptions, as outages.
    pub fn interruptions(&self) -> Option<OutageConfig> {
        let schedule = Schedule::Periodic {
            origin: Instant::ZERO + self.offset,
            period: self.interval,
            start: Duration::ZERO,
            end: self.interruption?,
        };
        Some(OutageConfig { schedule, mode: self.mode })
    }
}

fn check_reconfiguration<R: Reader>(from: &R, config: &ReconfigurationConfig) {
    let &ReconfigurationConfig { interval, offset, ref delay, loss, interruption, .. } = config;
    if offset > interval {
        let message = format!("the first slot, to {offset}, is longer than a slot of {interval}");
        from.refuse(Some("offset"), message, "at most the interval");
    }
    match interruption {
        Some(length) if length >= interval => {
            let message = format!("an outage of {length} in each slot of {interval} never ends");
            from.refuse(Some("interruption"), message, "less than the interval");
        }
        None if from.written("mode") => {
            let message = "has no effect without interruption".to_owned();
            from.refuse(Some("mode"), message, "`interruption` beside it");
        }
        None if delay.is_none() && loss == 0.0 => {
            from.refuse(None, "changes nothing".to_owned(), "delay, loss or interruption");
        }
        _ => {}
    }
}

settings! {
    #[partial]
    /// Handovers: the mobile at one end of the link changes the base station at the other. Both
    /// directions are interrupted. What the mobile has to send waits there; `data` says what becomes
    /// of what the source base station holds.
    #[derive(Clone, Debug, PartialEq)]
    #[table("link.handover", whole)]
    #[check(check_handover)]
    pub struct HandoverConfig {
        /// Start of each handover, and the cells.
        #[keys_of(HandoverTimes)]
        pub times: HandoverTimes,
        /// Time from the last packet in the old cell to the first in the new one. Mechanisms hear
        /// of it as of an outage.
        #[kind = POSITIVE_TIME]
        #[source = "TS 36.300 §10.1.2.1"]
        pub interruption: Duration,
        /// What becomes of the data that the source base station holds.
        #[keys_of(HandoverData)]
        pub data: HandoverData,
    }
}

impl HandoverConfig {
    /// The rates of a link that begins with `first`; `None`: it does not change.
    pub fn rates(&self, first: DataRate) -> Option<Rates> {
        let mut steps = vec![(Instant::ZERO, Some(first))];
        for (at, rate) in self.times.cells().iter().filter_map(|it| Some((it.at, it.rate?))) {
            if at == Instant::ZERO {
                steps.clear();
            }
            steps.push((at, Some(rate)));
        }
        if steps.len() == 1 && steps[0].1 == Some(first) {
            return None;
        }
        Rates::new(table::Table::new(steps)?)
    }

    /// When the mobile is between base stations.
    pub fn interruptions(&self) -> Schedule {
        match &self.times {
            HandoverTimes::Periodic { first, interval } => Schedule::Periodic {
                origin: *first,
                period: *interval,
                start: Duration::ZERO,
                end: self.interruption,
            },
            HandoverTimes::Listed(cells) => {
                let interruption = |cell: &Cell| (cell.at, cell.at + self.interruption);
                Schedule::Listed(cells.iter().map(interruption).collect())
            }
        }
    }
}

/// A handover begins when nothing of the one before is under way any more.
fn check_handover<R: Reader>(from: &R, config: &HandoverConfig) {
    let HandoverConfig { times, interruption, data } = config;
    let forwarding = match data {
        HandoverData::Forward { forwarding_delay, .. } => *forwarding_delay,
        HandoverData::Discard => Duration::ZERO,
    };
    if forwarding.is_zero() && from.written("end-marker") {
        let message = "has no effect without a forwarding-delay".to_owned();
        from.refuse(Some("end-marker"), message, "`forwarding-delay` beside it");
    }
    let busy = *interruption + forwarding;
    let (key, shortest) = match times {
        HandoverTimes::Periodic { interval, .. } => ("interval", Some(*interval)),
        HandoverTimes::Listed(cells) => {
            ("cells", cells.windows(2).map(|pair| pair[1].at.since(pair[0].at)).min())
        }
    };
    if let Some(shortest) = shortest.filter(|&shortest| shortest <= busy) {
        let message = format!("a handover takes {busy}, and the next begins after {shortest}");
        from.refuse(Some(key), message, &format!("handovers more than {busy} apart"));
    }
}

/// Start of each handover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandoverTimes {
    /// At regular intervals, between cells that are all the same.
    Periodic {
        /// The first one.
        first: Instant,
        /// Time from the start of one to the start of the next.
        interval: Duration,
    },
    /// To each of these cells, in the order of time.
    Listed(Vec<Cell>),
}

/// A cell, from the handover to it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Start of the handover.
    pub at: Instant,
    /// Rate of the link; `None`: as before.
    pub rate: Option<DataRate>,
    /// One-way propagation delay of the link; `None`: as before.
    pub delay: Option<Duration>,
}

impl HandoverTimes {
    /// The cells that are listed.
    pub fn cells(&self) -> &[Cell] {
        match self {
            Self::Periodic { .. } => &[],
            Self::Listed(cells) => cells,
        }
    }

    /// The handover with this number, from 0.
    pub fn nth(&self, n: u64) -> Option<Cell> {
        match self {
            Self::Periodic { first, interval } => {
                Some(Cell { at: *first + *interval * n, rate: None, delay: None })
            }
            Self::Listed(cells) => cells.get(usize::try_from(n).ok()?).copied(),
        }
    }
}

static CELLS: Table = Table::new(
    "link.handover.cells",
    "A cell that the mobile comes to. Before the first handover, the link has its own rate and delay.",
    &[Key::Fields(&[
        field("at", TIME, Fallback::Required, "Start of the handover to it; ascending."),
        field("rate", Kind::Rate, Fallback::Absent("as before"), "Rate of the link in this cell."),
        field(
            "delay",
            TIME,
            Fallback::Absent("as before"),
            "One-way propagation delay of the link in this cell. Packets keep their order where it \
             falls.",
        ),
    ])],
);

impl Settings for HandoverTimes {
    const KEYS: &'static [Key] = &[Key::Fields(&[
        field(
            "interval",
            POSITIVE_TIME,
            Fallback::Absent("not periodic"),
            "Time from the start of a handover to the start of the next, between cells that are all \
             the same. Not together with `cells`.",
        ),
        field(
            "offset",
            TIME,
            Fallback::Absent("`interval`"),
            "Start of the first of these handovers.",
        ),
        field(
            "cells",
            Kind::Tables(&CELLS),
            Fallback::Absent("none listed"),
            "The cells that the mobile comes to, and when.",
        ),
    ])];

    fn read<R: Reader>(from: &R, _base: Option<&Self>) -> Option<Self> {
        let interval = from.get::<Option<Duration>>("interval");
        let offset = from.get::<Option<Instant>>("offset");
        if !from.written("interval") {
            if from.written("offset") {
                let message = "has no effect without interval".to_owned();
                from.refuse(Some("offset"), message, "`interval` beside it");
            }
            if !from.written("cells") {
                from.refuse(None, "has no times".to_owned(), "interval or cells");
                return None;
            }
            return cells(from).map(Self::Listed);
        }
        if from.written("cells") {
            let message = "contradicts interval".to_owned();
            from.refuse(Some("cells"), message, "either interval or cells");
        }
        let interval = interval??;
        Some(Self::Periodic { first: offset?.unwrap_or(Instant::ZERO + interval), interval })
    }

    /// A list of cells is not written on one line.
    fn write(&self, to: &mut Vec<(&'static str, String)>) {
        if let Self::Periodic { first, interval } = self {
            to.extend(interval.show(&POSITIVE_TIME).map(|text| ("interval", text)));
            to.extend(first.show(&TIME).map(|text| ("offset", text)));
        }
    }
}

/// Reads the cells of a table.
fn cells<R: Reader>(table: &R) -> Option<Vec<Cell>> {
    let mut read: Vec<Cell> = Vec::new();
    let mut complete = true;
    for cell in table.tables("cells") {
        let at = cell.get::<Instant>("at");
        let (rate, delay) = (cell.get::<Option<DataRate>>("rate"), cell.get("delay"));
        let (Some(at), Some(rate), Some(delay)) = (at, rate, delay) else {
            complete = false;
            continue;
        };
        if let Some(last) = read.last().filter(|last| at <= last.at) {
            let (since, before) = (at.since_start(), last.at.since_start());
            let message = format!("{since} does not come after {before}");
            cell.refuse(Some("at"), message, &format!("a time after {before}"));
            return None;
        }
        read.push(Cell { at, rate, delay });
    }
    (complete && !read.is_empty()).then_some(read)
}

alternatives! {
    /// What becomes of the data that a source base station holds.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[choice("data", "What becomes of the data that the source base station holds, and of what still comes to it.")]
    #[source = "TS 36.300 §10.1.2.3; TS 38.300 §9.2.3.2"]
    pub enum HandoverData {
        /// it goes to the target base station. The target sends what the source held first, packets
        /// being sent included, and without the limit of its queue
        "forward" => Forward {
            /// One-way delay from the source to the target base station (X2, Xn). 0: both are one,
            /// as in a handover between cells of the same.
            forwarding_delay: Duration = Duration::ZERO,
            /// The target sends data of the new path only after the end marker, the last packet of
            /// the old path, so that all stays in order. `false`: data that is forwarded late
            /// arrives behind data of the new path.
            #[source = "TS 36.300 §10.1.2.2"]
            end_marker: bool = true,
        },
        /// it is lost
        "discard" => Discard,
    }
}

static SLOT_DELAY: Table = Table::new(
    "link.reconfiguration.delay",
    "A slot's delay: exactly one of `constant`, `uniform`, `normal`, `exponential`, `mixture`. For \
     delays at times of your own, see the `steps` of a link's `delay`.",
    &[
        Key::Fields(SIMPLE),
        Key::Fields(&[field(
            "mixture",
            Kind::Tables(&MIXTURE),
            Fallback::Absent("not a mixture"),
            "One of several distributions, drawn for each slot.",
        )]),
    ],
);

/// The delay of a slot.
impl Value for Distribution {
    const KIND: Kind = Kind::Table(&SLOT_DELAY);

    fn read<R: Reader>(from: &R, key: &str, _base: Option<&Self>) -> Option<Self> {
        let table = from.table(key)?;
        let read = distribution(&table, OF_SLOTS)?;
        if read.is_none() {
            let expected = "constant, uniform, normal, exponential or mixture";
            table.refuse(None, "has no distribution".to_owned(), expected);
        }
        read
    }

    /// A distribution is not written on one line.
    fn show(&self, _: &Kind) -> Option<String> {
        None
    }
}

settings! {
    /// A cellular link: HARQ, and RLC in acknowledged mode above it. Defaults are those of LTE.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[table("link.rlc", whole)]
    pub struct RlcConfig {
        /// Transmission time interval: one transport block leaves in each.
        #[kind = POSITIVE_TIME]
        #[source = "TS 36.321 §3.1"]
        pub tti: Duration = Duration::from_millis(1),
        /// Probability that the first transmission of a block fails.
        #[kind = PROBABILITY]
        #[source = "TS 36.213 §7.2.3 (target of CQI)"]
        pub bler: f64 = 0.1,
        /// Factor by which each HARQ retransmission fails less often than the one before: what
        /// combining the copies gains. An assumption.
        #[kind = PROBABILITY]
        pub combining: f64 = 0.1,
        /// Transmissions of a block after which HARQ gives up.
        #[kind = Kind::Integer { min: 1, max: 28 }]
        #[source = "TS 36.331 §6.3.2 (maxHARQ-Tx)"]
        pub transmissions: u32 = 4,
        /// Time from one HARQ transmission of a block to the next.
        #[kind = POSITIVE_TIME]
        #[source = "TS 36.321 §7.7 (FDD)"]
        pub harq_rtt: Duration = Duration::from_millis(8),
        /// Time that the receiver waits for a missing block before it reports it: t-Reordering of
        /// LTE, t-Reassembly of NR.
        #[source = "TS 36.331 §9.2.1 (SRB1)"]
        pub t_reassembly: Duration = Duration::from_millis(35),
        /// Least time between two STATUS reports.
        #[source = "TS 36.331 §9.2.1 (SRB1)"]
        pub t_status_prohibit: Duration = Duration::ZERO,
        /// RLC retransmissions of a block after which its packets are lost: maxRetxThreshold.
        #[kind = Kind::Integer { min: 0, max: 32 }]
        #[source = "TS 36.331 §9.2.1 (SRB1)"]
        pub max_retx: u32 = 4,
    }
}

impl RlcConfig {
    /// Size of a transport block at this rate, in bits.
    pub fn block_bits(&self, rate: DataRate) -> u64 {
        rate.bits_in(self.tti)
    }
}

choice! {
    /// The effect of an outage on packets.
    #[default(Drop)]
    pub enum OutageMode {
        /// a packet whose serialisation overlaps the outage is lost; the queue keeps draining
        Drop = "drop",
        /// a packet due to start during the outage waits in the queue and starts at its end,
        /// followed by the others back to back: a delay spike
        Hold = "hold",
    }
}

alternatives! {
    /// The queue in front of a link, or of a station's MAC.
    #[derive(Clone, Debug, PartialEq)]
    #[table("link.queue", whole)]
    #[choice("kind", "Queue discipline.")]
    #[absent(QueueConfig::DropTail { limit: QueueLimit::Packets(50) })]
    pub enum QueueConfig {
        /// first in, first out; arrivals to a full queue are dropped
        "drop-tail" => DropTail {
            /// Capacity, not counting the packet in service. (ns-2 does not count it either, but
            /// its `limit_` of L holds L - 1 waiting packets.)
            limit: QueueLimit = QueueLimit::Packets(50),
        },
        /// Random Early Detection, by packets
        "red" => Red(..RedConfig),
        /// Controlled Delay (RFC 8289): drops at the head of a queue that stands
        "codel" => Codel(..CodelConfig),
        /// FlowQueue-CoDel (RFC 8290): a queue under CoDel for each flow, served in turn
        "fq-codel" => FqCodel(..FqCodelConfig),
        /// Proportional Integral controller Enhanced (RFC 8033): drops arrivals with a probability
        /// that keeps the delay at a target
        "pie" => Pie(..PieConfig),
        /// Dual-Queue Coupled AQM (RFC 9332): a queue for L4S packets beside the classic one
        "dualpi2" => DualPi2(..DualPi2Config),
    }
}

impl QueueConfig {
    /// True if packets are decided on at their arrival, and each is either taken or refused.
    pub(crate) fn decides_on_arrival(&self) -> bool {
        match self {
            Self::DropTail { .. } => true,
            Self::Red(red) => !red.ecn,
            Self::Codel(_) | Self::FqCodel(_) | Self::Pie(_) | Self::DualPi2(_) => false,
        }
    }

    /// True if it asks for the flows of packets ([`PacketMeta::flow`](crate::PacketMeta::flow)).
    pub fn looks_at_flows(&self) -> bool {
        matches!(self, Self::FqCodel(_))
    }
}

/// Size of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// A number of packets.
    Packets(u64),
    /// A number of bytes, IP headers included.
    Bytes(Bytes),
}

impl Value for QueueLimit {
    const KIND: Kind = Kind::PacketsOrSize;
    fn from_decoded(decoded: Decoded) -> Option<Self> {
        PacketsOrSize::from_decoded(decoded).map(|limit| match limit {
            PacketsOrSize::Packets(n) => Self::Packets(n),
            PacketsOrSize::Size(size) => Self::Bytes(size),
        })
    }
    fn show(&self, kind: &Kind) -> Option<String> {
        match *self {
            Self::Packets(n) => PacketsOrSize::Packets(n),
            Self::Bytes(size) => PacketsOrSize::Size(size),
        }
        .show(kind)
    }
}
