//! A mobile that was reported out of reach, and how the node finds out that it is back.
//!
//! A segment of the mobile may have been on the way when the signal came. So the mobile is back
//! when it answers a *probe*: something sent to it since the last signal that it must answer. Much
//! of what passes, or is sent again, is one. Where there is none, the node makes its own: while the
//! link is said to be down it sends a keep-alive at an interval
//! ([`Peers::keep_alive`](crate::conntrack::peers::Peers::keep_alive)). The connections of a mobile
//! take turns, so that it gets no more probes with many connections than with one; its answer on
//! one is told to all ([`Connection::is_away`](crate::Connection::is_away)). All connections share
//! a maximum rate, and so probe less often where there are very many.
//!
//! The probes never end while the mobile is away: the node has closed the window, and a fixed host
//! may wait for a window update without probing (smoltcp, if data is outstanding). Once the fixed
//! host has been silent for [`BACK_OFF_AFTER`], the interval doubles with each probe, up to a
//! minute.
//!
//! A link that is only fading, or was said to be down too early, may still work: the mobile would
//! answer, and the fixed host would be released just before the outage. So the first keep-alive
//! comes half a second after [`Down`](airtcp_core::LinkSignal::Down) or later, and up to an
//! interval after that: connections that went down together never probe at the same instant. While
//! the link is only fading there is one a minute, which is less often than most fixed hosts probe.

use airtcp_core::{Duration, Flow, Instant};
use airtcp_settings::schema::{Fallback, Field, Kind, POSITIVE_TIME, at_least, field};
use serde::{Deserialize, Serialize};

/// Data that comes this long after a signal left the fixed host after it: RFC 6298 §2.4 has no
/// shorter retransmission time-out.
const WIRE_DELAY: Duration = Duration::from_secs(1);

/// Hosts with data to send that probe a closed window are silent for less than this: Linux lets two
/// minutes pass between its window probes. From then on the interval backs off.
const BACK_OFF_AFTER: Duration = Duration::from_secs(300);

/// The longest interval after a back-off, and the interval while the link is only fading: that of
/// 4.4BSD's window probes (RFC 6298 §2.5 allows the same bound for its timer).
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

/// Least time from [`Down`](airtcp_core::LinkSignal::Down) to the first probe.
const FIRST_PROBE_DELAY: Duration = Duration::from_millis(500);

/// From one probe to the next, of all connections: at most 10,000 a second.
const PROBE_SPACING: Duration = Duration::from_micros(100);

/// A shorter interval would take all of the node's time.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// `max-down`, for mechanisms that keep connections alive while a mobile is away.
pub(crate) const MAX_DOWN: Field = field(
    "max-down",
    Kind::WordOr("never", &POSITIVE_TIME),
    Fallback::Required,
    "A connection whose mobile has been away for this long is reset, at both ends.",
);

/// `probe-interval`, for mechanisms that probe a mobile whose link is down. The lower bound keeps
/// the air free.
pub(crate) const PROBE_INTERVAL: Field = field(
    "probe-interval",
    Kind::WordOr("never", &at_least(Duration::from_millis(100))),
    Fallback::Required,
    "Interval of keep-alive probes to a mobile whose link is down. Its connections take turns.",
)
.source("RFC 9293 §3.8.4");

/// Intervals at which connections send probes; `None`: none does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval(Option<Turns>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turns {
    /// From a probe of the mobile to the next one, on whichever connection.
    of_mobile: Duration,
    /// From a probe on one connection to the next one.
    of_connection: Duration,
}

impl Interval {
    /// From the configured interval (`None`: never) and the numbers of connections that send
    /// probes: to the mobile, and in all.
    pub fn new(interval: Option<Duration>, to_mobile: u32, in_all: u64) -> Self {
        Self(interval.map(|interval| {
            let of_mobile = interval.max(SHORTEST_INTERVAL);
            let of_connection = of_mobile * u64::from(to_mobile.max(1));
            Turns { of_mobile, of_connection: of_connection.max(PROBE_SPACING * in_all) }
        }))
    }
}

/// A mobile's state since the signal that it is out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Away {
    down: bool,
    probed: bool,
    /// Time of the last signal.
    last_signal: Instant,
    /// Connections of the mobile that were given that signal before this one, and probe it first.
    turn: u32,
    probing: Option<Probing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Probing {
    next: Instant,
    /// Time at which the interval begins to back off, unless either host sends a segment before.
    back_off: Instant,
}

impl Away {
    /// From now on; `down`: not only fading. `turn` connections of the mobile were given the signal
    /// before.
    pub fn new(now: Instant, down: bool, turn: u32) -> Self {
        Self { down, probed: false, last_signal: now, turn, probing: None }
    }

    /// Another signal of that kind: segments that arrive from the mobile may have left before it.
    pub fn on_signal(&mut self, now: Instant, down: bool, turn: u32) {
        self.down |= down;
        self.probed = false;
        self.last_signal = now;
        self.turn = turn;
    }

    /// The link is up, and the mobile was sent something to answer.
    pub fn on_up(&mut self) {
        self.down = false;
        self.probed = true;
        self.probing = None;
    }

    /// The link was said to be down.
    pub fn is_down(&self) -> bool {
        self.down
    }

    /// The mobile was sent something that it must answer.
    pub fn note_probe(&mut self) {
        self.probed = true;
    }

    /// True if a segment of the mobile would now prove that it is back.
    pub fn is_probed(&self) -> bool {
        self.probed
    }

    /// True if segments that arrive from the fixed host now left it after the last signal.
    pub fn is_sent_since_signal(&self, now: Instant) -> bool {
        now.since(self.last_signal) >= WIRE_DELAY
    }

    /// Starts or continues probing, after a segment of either host or a signal. `flow`: the
    /// connection's, which spreads the instants.
    pub fn start_probing(&mut self, now: Instant, interval: Interval, flow: &Flow) {
        self.probing = interval.0.map(|Turns { of_mobile, .. }| {
            let share = u64::from((flow.src.port ^ flow.dst.port) % 256);
            let spread = Duration::from_nanos(of_mobile.as_nanos() / 256 * share);
            let delay = if self.down { FIRST_PROBE_DELAY } else { LONGEST_INTERVAL };
            let first = now + of_mobile.max(delay) + of_mobile * self.turn.into() + spread;
            Probing {
                next: self.probing.map_or(first, |probing| probing.next.min(first)),
                back_off: now + BACK_OFF_AFTER,
            }
        });
    }

    /// The mobile will be probed soon, so other segments of it need not be interpreted.
    pub fn is_probing(&self) -> bool {
        self.probing.is_some()
    }

    /// Time of the next [`on_timer`](Self::on_timer).
    pub fn deadline(&self) -> Option<Instant> {
        self.probing.map(|probing| probing.next)
    }

    /// True if a keep-alive is to be sent to the mobile now, which then counts as probed.
    pub fn on_timer(&mut self, now: Instant, interval: Interval) -> bool {
        let Some(Probing { back_off, .. }) = self.probing.filter(|probing| probing.next <= now)
        else {
            return false;
        };
        let backed_off = now.since(back_off).min(LONGEST_INTERVAL);
        let least = if self.down { backed_off } else { LONGEST_INTERVAL };
        self.probing = interval.0.map(|Turns { of_connection, .. }| Probing {
            next: now + of_connection.max(least),
            back_off,
        });
        self.probed |= self.probing.is_some();
        self.probing.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Duration = Duration::from_millis(500);

    /// One connection, and no other.
    const INTERVAL: Interval = Interval(Some(Turns { of_mobile: HALF, of_connection: HALF }));

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    /// A connection from this port.
    fn flow(port: u16) -> Flow {
        let mut flow = Flow::default();
        flow.src.port = port;
        flow
    }

    /// Times of the keep-alives up to `end`, in milliseconds.
    fn asked(away: &mut Away, end: Instant) -> Vec<u64> {
        let mut all = Vec::new();
        while let Some(due) = away.deadline().filter(|&due| due <= end) {
            if away.on_timer(due, INTERVAL) {
                all.push(due.since_start().as_millis());
            }
        }
        all
    }

    #[test]
    fn a_mobile_that_is_down_is_asked_at_the_interval() {
        let mut away = Away::new(ms(0), true, 0);
        away.start_probing(ms(0), INTERVAL, &flow(0));
        assert!(away.is_probing() && !away.is_probed());
        assert_eq!(asked(&mut away, ms(2000)), [500, 1000, 1500, 2000]);
        assert!(away.is_probed());
    }

    #[test]
    fn however_short_the_interval_the_first_question_takes_half_a_second() {
        let often = Interval::new(Some(Duration::from_millis(100)), 1, 1);
        let mut away = Away::new(ms(0), true, 0);
        away.start_probing(ms(0), often, &flow(128));
        assert_eq!(away.deadline(), Some(ms(550)));
        assert!(away.on_timer(ms(550), often));
        assert_eq!(away.deadline(), Some(ms(650)));
    }

    #[test]
    fn the_more_ask_the_less_often_each_one_does() {
        let between = Duration::from_millis(100);
        let of_connection = |to_mobile, in_all| {
            Interval::new(Some(between), to_mobile, in_all).0.map(|turns| turns.of_connection)
        };
        let ms = |n| Some(Duration::from_millis(n));
        assert_eq!([1, 2, 30].map(|n| of_connection(n, 1000)), [ms(100), ms(200), ms(3000)]);
        assert_eq!([1, 2, 30].map(|n| of_connection(n, 5000)), [ms(500), ms(500), ms(3000)]);
        assert_eq!(of_connection(0, 1), ms(100), "one that is not frozen yet");
        assert_eq!(Interval::new(None, 1, 2000), Interval(None));
    }

    #[test]
    fn the_connections_of_a_mobile_take_turns() {
        let interval = Interval::new(Some(HALF), 3, 3);
        let mut all: Vec<u64> = Vec::new();
        for turn in 0..3 {
            let mut away = Away::new(ms(0), true, turn);
            away.start_probing(ms(0), interval, &flow(0));
            while let Some(due) = away.deadline().filter(|&due| due <= ms(4000)) {
                assert!(away.on_timer(due, interval));
                all.push(due.since_start().as_millis());
            }
        }
        all.sort_unstable();
        assert_eq!(all, [500, 1000, 1500, 2000, 2500, 3000, 3500, 4000]);
    }

    #[test]
    fn a_mobile_that_is_fading_is_asked_once_a_minute() {
        let mut away = Away::new(ms(0), false, 0);
        away.start_probing(ms(0), INTERVAL, &flow(0));
        assert_eq!(asked(&mut away, ms(200_000)), [60_000, 120_000, 180_000]);
    }

    #[test]
    fn a_mobile_that_is_fading_is_asked_no_more_often_if_its_hosts_send() {
        let mut away = Away::new(ms(0), false, 0);
        let mut all = Vec::new();
        for now in (0..=200_000).step_by(1000) {
            away.start_probing(ms(now), INTERVAL, &flow(0));
            all.extend(asked(&mut away, ms(now)));
        }
        assert_eq!(all, [60_000, 120_000, 180_000]);
    }

    #[test]
    fn a_mobile_that_is_down_after_it_was_fading_is_asked_soon() {
        let mut away = Away::new(ms(0), false, 0);
        away.start_probing(ms(0), INTERVAL, &flow(0));
        away.on_signal(ms(300), true, 0);
        away.start_probing(ms(300), INTERVAL, &flow(0));
        assert_eq!(asked(&mut away, ms(1000)), [800]);
    }

    #[test]
    fn signals_that_repeat_themselves_do_not_put_off_the_question() {
        let mut away = Away::new(ms(0), true, 0);
        for now in (0..=400).step_by(100) {
            away.on_signal(ms(now), true, 0);
            away.start_probing(ms(now), INTERVAL, &flow(0));
        }
        assert_eq!(asked(&mut away, ms(600)), [500]);
    }

    #[test]
    fn connections_do_not_ask_together() {
        let first = |port| {
            let mut away = Away::new(ms(0), true, 0);
            away.start_probing(ms(0), INTERVAL, &flow(port));
            asked(&mut away, ms(999))[0]
        };
        assert_eq!([0, 64, 128, 255].map(first), [500, 625, 750, 998]);
    }

    #[test]
    fn when_neither_host_is_heard_the_asking_backs_off_until_one_is() {
        let mut away = Away::new(ms(0), true, 0);
        away.start_probing(ms(0), INTERVAL, &flow(0));
        assert_eq!(asked(&mut away, ms(300_000)).len(), 600);
        let later = [300_500, 301_000, 302_000, 304_000, 308_000, 316_000, 332_000, 364_000];
        assert_eq!(asked(&mut away, ms(424_000)), [&later[..], &[424_000]].concat());
        away.start_probing(ms(425_000), INTERVAL, &flow(0));
        assert_eq!(asked(&mut away, ms(426_000)), [425_500, 426_000]);
    }

    #[test]
    fn settings_that_ask_nobody_end_it() {
        let mut away = Away::new(ms(0), true, 0);
        away.start_probing(ms(0), INTERVAL, &flow(0));
        assert!(!away.on_timer(ms(500), Interval(None)));
        assert_eq!((away.deadline(), away.is_probed()), (None, false));
    }
}
