//! `traffic` of a flow: what its application does.

use super::distribution::{Sizes, Times};
use super::names::COUNT;
use super::traffic::Network;
use airtcp_config::Section;
use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_settings::schema::{Count, Kind, POSITIVE_TIME, TextKind};
use airtcp_settings::{Decoded, Name, Reader, Settings, Value, alternatives, choice, settings};

/// What the application of a flow does.
#[derive(Clone, Debug, PartialEq)]
pub enum Application {
    /// Sends so many bytes, or without end.
    Bulk(Option<Bytes>),
    /// Requests with answers.
    Requests(Requests),
    /// Transfers that arrive at random, each on a connection of its own.
    Arrivals(Arrivals),
    /// Sends at a rate, with pauses.
    OnOff(OnOffStream),
    /// Watches a video.
    Video(Video),
}

/// Transfers that arrive at random.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrivals {
    /// Mean number of transfers that begin in a second.
    pub per_second: f64,
    /// Sizes of the transfers.
    pub size: Sizes,
    /// Time from which no more begin; `None`: never.
    pub stop: Option<Instant>,
}

alternatives! {
    /// What the application of a flow does.
    #[derive(Clone, Debug)]
    #[table("flow.traffic", whole)]
    #[choice("kind", "What the application does.")]
    pub enum Traffic {
        /// `to` opens the connection and asks, `from` answers; the next request follows the answer
        "requests" => Requests(..Requests),
        /// transfers from `from` to `to` begin at random times (Poisson), each on a connection of
        /// its own, which closes after it
        "arrivals" => Arrivals(..ArrivalsTable),
        /// `from` sends at a rate, with pauses
        "on-off" => OnOff(..OnOffStream),
        /// `to` opens the connection and plays a video, of which it asks `from` for one segment
        /// after another, as in DASH (ISO/IEC 23009-1)
        "video" => Video(..Video),
    }
}

settings! {
    #[partial]
    /// Requests with answers on one connection.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Requests {
        /// Size of an answer.
        pub answer: Sizes,
        /// Size of a request.
        pub request: Sizes = Sizes::constant(Bytes(500)),
        /// Pause from the end of an answer to the next request.
        pub think: Times = Times::constant(Duration::ZERO),
        /// Number of requests, after which the connection is closed.
        #[kind = COUNT]
        #[absent = "until the end of the run"]
        pub number: Option<u64> = None,
    }
}

/// A load, as a share of a link's rate.
const LOAD: Kind = Kind::Number { min: 0.0, max: 10.0, above: true };
const PER_SECOND: Kind = Kind::Number { min: 0.0, max: 1e6, above: true };
const A_LINK: Kind = Kind::Text(&TextKind {
    name: "link",
    plural: "links",
    expected: "the name of a link, such as \"BS>MH\"",
    expected_plural: "names of links",
});

settings! {
    #[partial]
    /// As in the file.
    #[derive(Clone, Debug)]
    pub struct ArrivalsTable {
        /// Mean number of transfers that begin in a second; either this or `load`.
        #[kind = PER_SECOND]
        #[absent = "as `load` says"]
        pub per_second: Option<f64> = None,
        /// The bytes of the transfers, headers not counted, as a share of what `link` can carry:
        /// so many begin in a second on average.
        #[kind = LOAD]
        #[absent = "as `per-second` says"]
        pub load: Option<f64> = None,
        /// The link, by its name in one direction, that `load` is a share of.
        #[kind = A_LINK]
        #[absent = "required with `load`"]
        pub link: Option<Name> = None,
        /// Size of a transfer.
        pub size: Sizes,
        /// Time from which no more begin.
        #[kind = POSITIVE_TIME]
        #[absent = "the end of the run"]
        pub stop: Option<Instant> = None,
    }
}

settings! {
    #[partial]
    /// A sender with pauses.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OnOffStream {
        /// Bytes that the application writes in a period of sending, as a rate. What the
        /// connection cannot take yet is written later.
        pub rate: DataRate,
        /// Length of a period of sending.
        pub on: Times,
        /// Length of a pause.
        pub off: Times,
        /// Size of each write: the first one at the start of a period, the others as the rate says.
        #[kind = Kind::Size { min: 1, max: 1_000_000_000 }]
        pub write: Bytes = Bytes(1000),
    }
}

/// The bitrates of a video, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder(Vec<DataRate>);

const RATES: Kind = Kind::Texts {
    of: &TextKind {
        name: "rate",
        plural: "rates",
        expected: "a rate above zero with its unit, such as \"1 Mbit/s\"",
        expected_plural: "rates, such as [\"300 kbit/s\", \"1 Mbit/s\"]",
    },
    count: Count::Some,
};

impl Ladder {
    /// From ascending bitrates, at least one.
    pub fn new(rates: Vec<DataRate>) -> Option<Self> {
        let ascends = rates.windows(2).all(|pair| pair[0] < pair[1]);
        (ascends && !rates.is_empty()).then_some(Self(rates))
    }

    /// The bitrates.
    pub fn rates(&self) -> &[DataRate] {
        &self.0
    }
}

impl Value for Ladder {
    const KIND: Kind = RATES;

    fn read<R: Reader>(from: &R, key: &str, _base: Option<&Self>) -> Option<Self> {
        const KEY: &str = "ladder";
        let mut rates: Vec<DataRate> = Vec::new();
        for Name { text, .. } in from.get::<Vec<Name>>(key)? {
            let rate = match Kind::Rate.parse(&text) {
                Some(Ok(Decoded::Rate(rate))) => rate,
                _ => {
                    let message = format!("{text:?} is no rate");
                    from.refuse(Some(KEY), message, &Kind::Rate.describe());
                    return None;
                }
            };
            if let Some(before) = rates.last().filter(|before| rate <= **before) {
                let message = format!("{rate} does not come after {before}");
                from.refuse(Some(KEY), message, "ascending bitrates");
                return None;
            }
            rates.push(rate);
        }
        Self::new(rates)
    }

    fn show(&self, _: &Kind) -> Option<String> {
        let rates: Vec<String> = self.0.iter().map(DataRate::to_string).collect();
        Some(format!("[{}]", rates.join(", ")))
    }
}

choice! {
    /// How a player chooses the bitrate of the next segment.
    #[default(Buffer)]
    pub enum Adaptation {
        /// by the playing time in the buffer: BBA-0 (Huang et al., SIGCOMM 2014), with its reservoir
        /// of 3/8 and its cushion up to 9/10 of the buffer, or less where that leaves no room for a
        /// segment
        Buffer = "buffer",
        /// the highest below 90 % of the throughput: the harmonic mean over the last five segments,
        /// their requests included
        Throughput = "throughput",
    }
}

settings! {
    #[partial]
    /// A video and its player.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Video {
        /// The bitrates in which each segment is offered, ascending.
        pub ladder: Ladder,
        /// Playing time of a segment.
        #[kind = POSITIVE_TIME]
        pub segment: Duration = Duration::from_secs(4),
        /// Playing time of the video.
        #[kind = POSITIVE_TIME]
        #[absent = "until the end of the run"]
        pub length: Option<Duration> = None,
        /// Playing time that the buffer holds. A segment is asked for when there is room for it.
        #[kind = POSITIVE_TIME]
        pub buffer: Duration = Duration::from_secs(30),
        /// Playing time in the buffer at which the player starts, and goes on after a stall.
        #[kind = POSITIVE_TIME]
        pub start_at: Duration = Duration::from_secs(8),
        /// Choice of the bitrates.
        pub adaptation: Adaptation = Adaptation::Buffer,
        /// Size of a request.
        pub request: Sizes = Sizes::constant(Bytes(500)),
    }
}

/// Reads what the application of a flow does.
pub(super) fn application(
    flow: &Section<'_>,
    network: &Network<'_>,
    end: Instant,
) -> Option<Application> {
    let bytes = flow.get::<Option<Bytes>>("bytes");
    let Some(table) = flow.chosen("traffic") else {
        return if flow.has("traffic") { None } else { bytes.map(Application::Bulk) };
    };
    if flow.has("bytes") {
        let problem = flow.problem("bytes", "has no effect beside traffic");
        flow.push(problem.expected("either bytes or traffic"));
    }
    match <Traffic as Settings>::read(&table, None)? {
        Traffic::Requests(requests) => Some(Application::Requests(requests)),
        Traffic::Arrivals(arrivals) => {
            self::arrivals(&table, arrivals, network, end).map(Application::Arrivals)
        }
        Traffic::OnOff(stream) => Some(Application::OnOff(stream)),
        Traffic::Video(video) => checked(&table, video).map(Application::Video),
    }
}

/// A buffer must hold what playing waits for.
fn checked(table: &Section<'_>, video: Video) -> Option<Video> {
    let needed = video.start_at.max(video.segment);
    if video.buffer < needed {
        let key = if table.has("buffer") { "buffer" } else { "segment" };
        let key =
            if table.has("start-at") && video.start_at > video.buffer { "start-at" } else { key };
        let message = format!("a buffer of {} does not hold {needed}", video.buffer);
        table.push(table.problem(key, message).expected(format!("a buffer of at least {needed}")));
        return None;
    }
    Some(video)
}

/// Resolves a load to transfers in a second.
fn arrivals(
    table: &Section<'_>,
    read: ArrivalsTable,
    network: &Network<'_>,
    end: Instant,
) -> Option<Arrivals> {
    let ArrivalsTable { per_second, load, link, size, stop } = read;
    let per_second = match (per_second, load, link) {
        (Some(per_second), None, None) => per_second,
        (None, Some(load), Some(name)) => {
            let links = network.links;
            let names = || links.iter().map(|link| link.name.as_str());
            let Some(link) = links.iter().find(|link| link.name == name.text) else {
                // A link with mistakes is not among them.
                if !network.may_link(&name.text) {
                    let message = format!("no link {:?}", name.text);
                    let problem = table.problem_at(name.spot, "link", message);
                    table.push(problem.nearest(&name.text, names()));
                }
                return None;
            };
            let rate = link.config.mean_rate(end);
            load * rate.bits_per_sec() as f64 / (8.0 * size.mean())
        }
        (None, Some(_), None) => {
            table.missing("link", "the link that `load` is a share of, such as \"BS>MH\"");
            return None;
        }
        (_, None, Some(_)) => {
            let problem = table.problem("link", "has no effect without `load`");
            table.push(problem.expected("`load` beside it"));
            return None;
        }
        (Some(_), Some(_), _) => {
            let problem = table.problem("load", "contradicts `per-second`");
            table.push(problem.expected("either of them"));
            return None;
        }
        (None, None, None) => {
            table.missing("per-second", "per-second, or load and link");
            return None;
        }
    };
    Some(Arrivals { per_second, size, stop })
}
