//! A mobile that was reported out of reach, and how the node finds out that it is back.
//!
//! A segment of the mobile may have been on the way when the signal came. So the mobile is back
//! when it answers a *probe*: something sent to it since the last signal that it must answer. Much
//! of what passes, or is sent again, is one. Where there is none, the node makes its own: while the
//! link is said to be down it sends a keep-alive at an interval
//! ([`Peers::keep_alive`](crate::conntrack::peers::Peers::keep_alive)), on one connection of the
//! mobile after the other. [`PerConnection`](crate::PerConnection) chooses it, and tells all of them
//! when the mobile has answered on one. What fixed hosts probe with is then answered, and goes no
//! further.
//!
//! The probes never end while the mobile is away: the node has closed the window, and a fixed host
//! may wait for a window update without probing (smoltcp, if data is outstanding). Once the fixed
//! host has been silent for [`BACK_OFF_AFTER`], the interval doubles with each probe, up to a
//! minute.
//!
//! A link that is only fading, or was said to be down too early, may still work: the mobile would
//! answer, and the fixed host would be released just before the outage. So the first keep-alive
//! comes half a second after [`Down`](airtcp_core::LinkSignal::Down) or later, and up to an
//! interval after that: mobiles that went down together are not probed together. While the link is
//! only fading there is one a minute, which is less often than most fixed hosts probe.

use airtcp_core::{Duration, Flow, Instant};
use airtcp_settings::choice;
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

/// Least time from [`Down`](airtcp_core::LinkSignal::Down) to the first keep-alive. An answer that
/// comes sooner concerns its own connection alone.
pub(crate) const FIRST_PROBE_DELAY: Duration = Duration::from_millis(500);

/// `max-down`, for mechanisms that keep connections alive while a mobile is away.
pub(crate) const MAX_DOWN: Field = field(
    "max-down",
    Kind::WordOr("never", &POSITIVE_TIME),
    Fallback::Required,
    "A connection whose mobile has been away for this long is reset, at both ends.",
);

/// `resume`, for mechanisms that close the fixed host's window in an outage.
pub(crate) const RESUME: Field = field(
    "resume",
    Kind::Choice(Resume::WORDS),
    Fallback::Required,
    "Event that opens the sender's window again. The paper does not say.",
)
.source("M-TCP+ §3");

choice! {
    /// Event that opens the fixed host's window again.
    #[derive(Hash, Serialize, Deserialize)]
    #[default(Flush)]
    pub enum Resume {
        /// the mobile is back, and has acknowledged what the node held for it
        Flush = "flush",
        /// only the answer to the sender's next window probe does
        Probe = "probe",
    }
}

/// `probe-interval`, for mechanisms that probe a mobile whose link is down. The lower bound keeps
/// the air free.
pub(crate) const PROBE_INTERVAL: Field = field(
    "probe-interval",
    Kind::WordOr("never", &at_least(Duration::from_millis(100))),
    Fallback::Required,
    "Interval of keep-alive probes to a mobile whose link is down. Its connections take turns.",
)
.source("RFC 9293 §3.8.4");

/// A mobile's state since the signal that it is out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Away {
    down: bool,
    probed: bool,
    /// Time of the first signal that the link is fading, or down.
    since: Instant,
    /// Time of the last signal.
    last_signal: Instant,
    /// Time of the last keep-alive on this connection.
    keep_alive: Option<Instant>,
    /// Time at which the interval of keep-alives begins to back off, unless either host sends a
    /// segment before. `None`: the link is up, and none are sent.
    back_off: Option<Instant>,
}

impl Away {
    /// From now on; `down`: not only fading.
    pub fn new(now: Instant, down: bool) -> Self {
        let back_off = Some(now + BACK_OFF_AFTER);
        Self { down, probed: false, since: now, last_signal: now, keep_alive: None, back_off }
    }

    /// Another signal of that kind: segments that arrive from the mobile may have left before it.
    pub fn on_signal(&mut self, now: Instant, down: bool) {
        if down && !self.down {
            (self.down, self.since) = (true, now);
        }
        self.probed = false;
        self.last_signal = now;
        self.back_off = Some(now + BACK_OFF_AFTER);
    }

    /// The link is up, and the mobile was sent something to answer.
    pub fn on_up(&mut self) {
        self.down = false;
        self.probed = true;
        self.back_off = None;
    }

    /// The link was said to be down.
    pub fn is_down(&self) -> bool {
        self.down
    }

    /// The node probes the mobile itself, on one connection after the other. What a fixed host
    /// probes with, or sends again, need not go to it as well: with many connections that would be
    /// many packets at once, and a link that holds packets would deliver them all.
    pub fn is_probed_in_turns(&self, interval: Option<Duration>) -> bool {
        self.down && interval.is_some()
    }

    /// Time of the first signal that the link is down; `None`: there was none.
    pub fn down_since(&self) -> Option<Instant> {
        self.down.then_some(self.since)
    }

    /// The mobile was sent something that it must answer.
    pub fn note_probe(&mut self) {
        self.probed = true;
    }

    /// True if a segment of the mobile would now prove that it is back.
    pub fn is_probed(&self) -> bool {
        self.probed
    }

    /// Time of the last signal that the link is down, if a segment of the mobile would now prove
    /// that it is back.
    pub fn probed_since(&self) -> Option<Instant> {
        (self.down && self.probed).then_some(self.last_signal)
    }

    /// True if segments that arrive from the fixed host now left it after the last signal.
    pub fn is_sent_since_signal(&self, now: Instant) -> bool {
        now.since(self.last_signal) >= WIRE_DELAY
    }

    /// Either host has sent a segment.
    pub fn note_segment(&mut self, now: Instant) {
        if let Some(back_off) = &mut self.back_off {
            *back_off = now + BACK_OFF_AFTER;
        }
    }

    /// Time from which on this connection may send the mobile's next keep-alive. `flow`: the
    /// connection's, which spreads the instants.
    pub fn keep_alive_due(&self, interval: Duration, flow: &Flow) -> Option<Instant> {
        let back_off = self.back_off?;
        let share = u64::from((flow.src.port ^ flow.dst.port) % 256);
        let spread = Duration::from_nanos(interval.as_nanos() / 256 * share);
        let delay = if self.down { FIRST_PROBE_DELAY } else { LONGEST_INTERVAL };
        let first = self.since + interval.max(delay) + spread;
        Some(self.keep_alive.map_or(first, |last| {
            let backed_off = last.since(back_off).min(LONGEST_INTERVAL);
            let least = if self.down { backed_off } else { LONGEST_INTERVAL };
            first.max(last + interval.max(least))
        }))
    }

    /// A keep-alive is sent to the mobile, which then counts as probed.
    pub fn note_keep_alive(&mut self, now: Instant) {
        self.keep_alive = Some(now);
        self.probed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(500);

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
    fn sent(away: &mut Away, end: Instant) -> Vec<u64> {
        let mut all = Vec::new();
        while let Some(due) = away.keep_alive_due(INTERVAL, &flow(0)).filter(|&due| due <= end) {
            away.note_keep_alive(due);
            all.push(due.since_start().as_millis());
        }
        all
    }

    #[test]
    fn a_mobile_that_is_down_is_probed_at_the_interval() {
        let mut away = Away::new(ms(0), true);
        assert!(!away.is_probed());
        assert_eq!(sent(&mut away, ms(2000)), [500, 1000, 1500, 2000]);
        assert!(away.is_probed());
    }

    #[test]
    fn however_short_the_interval_the_first_probe_takes_half_a_second() {
        let often = Duration::from_millis(100);
        let mut away = Away::new(ms(0), true);
        assert_eq!(away.keep_alive_due(often, &flow(128)), Some(ms(550)));
        away.note_keep_alive(ms(550));
        assert_eq!(away.keep_alive_due(often, &flow(128)), Some(ms(650)));
    }

    #[test]
    fn a_mobile_that_is_fading_is_probed_once_a_minute_also_if_its_hosts_send() {
        let mut away = Away::new(ms(0), false);
        assert_eq!(sent(&mut away, ms(200_000)), [60_000, 120_000, 180_000]);
        let (mut away, mut all) = (Away::new(ms(0), false), Vec::new());
        for now in (0..=200_000).step_by(1000) {
            away.note_segment(ms(now));
            all.extend(sent(&mut away, ms(now)));
        }
        assert_eq!(all, [60_000, 120_000, 180_000]);
    }

    #[test]
    fn a_mobile_that_is_down_after_it_was_fading_is_probed_soon() {
        let mut away = Away::new(ms(0), false);
        away.on_signal(ms(300), true);
        assert_eq!(sent(&mut away, ms(1000)), [800]);
    }

    #[test]
    fn signals_that_repeat_themselves_do_not_put_off_the_probe() {
        let mut away = Away::new(ms(0), true);
        for now in (0..=400).step_by(100) {
            away.on_signal(ms(now), true);
        }
        assert_eq!(sent(&mut away, ms(600)), [500]);
    }

    #[test]
    fn mobiles_are_not_probed_together() {
        let first = |port| {
            let due = Away::new(ms(0), true).keep_alive_due(INTERVAL, &flow(port));
            due.map(|due| due.since_start().as_millis())
        };
        assert_eq!([0, 64, 128, 255].map(first), [Some(500), Some(625), Some(750), Some(998)]);
    }

    #[test]
    fn when_neither_host_is_heard_the_probes_back_off_until_one_is() {
        let mut away = Away::new(ms(0), true);
        assert_eq!(sent(&mut away, ms(300_000)).len(), 600);
        let later = [300_500, 301_000, 302_000, 304_000, 308_000, 316_000, 332_000, 364_000];
        assert_eq!(sent(&mut away, ms(424_000)), [&later[..], &[424_000]].concat());
        away.note_segment(ms(425_000));
        assert_eq!(sent(&mut away, ms(425_500)), [424_500, 425_000, 425_500]);
    }

    #[test]
    fn nothing_is_sent_when_the_link_is_up() {
        let mut away = Away::new(ms(0), true);
        away.on_up();
        away.note_segment(ms(100));
        assert_eq!(away.keep_alive_due(INTERVAL, &flow(0)), None);
    }
}
