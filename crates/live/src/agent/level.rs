//! Signals from the level of a radio: threshold, trend and hysteresis.
//!
//! A straight line is laid through the levels of the last [`WINDOW`] (least squares): single values of a radio jump by several
//! decibels. The link *fades* when the line is below the threshold, or falls so fast that it will be within the
//! configured lead. It no longer fades when it is above by the hysteresis, now and within the lead. It is
//! *down* when there is no access point, and *up* as soon as there is one.

use airtcp_core::{Duration, Instant, LinkSignal};
use std::collections::VecDeque;

/// Levels older than this are forgotten.
pub const WINDOW: Duration = Duration::from_secs(1);

/// A level of power, in decibels above one milliwatt.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Dbm(pub f64);

/// A ratio of powers, in decibels.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Decibels(pub f64);

/// When a link counts as fading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelConfig {
    /// Below this level.
    pub fade_below: Dbm,
    /// And until it is above by this.
    pub hysteresis: Decibels,
    /// Or when it will be below within this time, if it goes on falling.
    pub lead: Duration,
}

/// -75 dBm, 3 dB, 1 s.
impl Default for LevelConfig {
    fn default() -> Self {
        Self { fade_below: Dbm(-75.0), hysteresis: Decibels(3.0), lead: Duration::from_secs(1) }
    }
}

/// Sees outages in levels.
#[derive(Clone, Debug)]
pub struct LevelWatch {
    config: LevelConfig,
    /// When, and how many dBm; since the link was up last.
    levels: VecDeque<(Instant, f64)>,
    /// The last word.
    said: Option<LinkSignal>,
}

impl LevelWatch {
    /// Has seen nothing yet.
    pub fn new(config: LevelConfig) -> Self {
        Self { config, levels: VecDeque::new(), said: None }
    }

    /// Takes the level at `now` (`None`: there is no access point); what is to be said about it.
    pub fn take(&mut self, now: Instant, level: Option<Dbm>) -> Option<LinkSignal> {
        let signal = match level {
            None => {
                self.levels.clear();
                LinkSignal::Down
            }
            Some(Dbm(level)) => {
                self.levels.push_back((now, level));
                while self.levels.front().is_some_and(|&(at, _)| at + WINDOW < now) {
                    self.levels.pop_front();
                }
                self.judge(now)
            }
        };
        (self.said.replace(signal) != Some(signal)).then_some(signal)
    }

    /// How a link that there is looks.
    fn judge(&self, now: Instant) -> LinkSignal {
        let begin = self.levels.front().map_or(now, |&(at, _)| at);
        let said = match self.said {
            None | Some(LinkSignal::Down) => return LinkSignal::Up,
            // Too few levels for a line.
            Some(said) if now.since(begin) * 2 < WINDOW => return said,
            Some(said) => said,
        };
        let LevelConfig { fade_below: Dbm(threshold), hysteresis: Decibels(above), lead } =
            self.config;
        let (level, slope) = self.line(now);
        let lowest = level + slope.min(0.0) * lead.as_secs_f64();
        let wanted = if said == LinkSignal::Fading { threshold + above } else { threshold };
        if lowest < wanted { LinkSignal::Fading } else { LinkSignal::Up }
    }

    /// The line of least squares: its level at `now`, in dBm, and its slope, in dB a second.
    fn line(&self, now: Instant) -> (f64, f64) {
        let points = self.levels.iter().map(|&(at, y)| (-now.since(at).as_secs_f64(), y));
        let count = self.levels.len() as f64;
        let (sum_x, sum_y) = points.clone().fold((0.0, 0.0), |(x, y), p| (x + p.0, y + p.1));
        let (mean_x, mean_y) = (sum_x / count, sum_y / count);
        let (mut xx, mut xy) = (0.0, 0.0);
        for (x, y) in points {
            xx += (x - mean_x) * (x - mean_x);
            xy += (x - mean_x) * (y - mean_y);
        }
        let slope = if xx > 0.0 { xy / xx } else { 0.0 };
        (mean_y - slope * mean_x, slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LinkSignal::{Down, Fading, Up};

    /// What is said about levels that are taken every 100 ms: tenths of seconds and signals.
    fn said(levels: impl IntoIterator<Item = Option<f64>>) -> Vec<(u64, LinkSignal)> {
        let mut watch = LevelWatch::new(LevelConfig::default());
        let mut said = Vec::new();
        for (i, level) in (0..).zip(levels) {
            let now = Instant::ZERO + Duration::from_millis(100 * i);
            said.extend(watch.take(now, level.map(Dbm)).map(|signal| (i, signal)));
        }
        said
    }

    /// `from` dBm, and from then on so many dB a second more.
    fn ramp(from: f64, slope: f64) -> impl Iterator<Item = Option<f64>> {
        (0..).map(move |i| Some(from + slope * f64::from(i) / 10.0))
    }

    #[test]
    fn a_good_level_is_up_and_nothing_else() {
        assert_eq!(said(ramp(-60.0, 0.0).take(100)), [(0, Up)]);
    }

    #[test]
    fn a_bad_level_fades_as_soon_as_there_is_a_line() {
        assert_eq!(said(ramp(-76.0, 0.0).take(100)), [(0, Up), (5, Fading)]);
    }

    #[test]
    fn a_level_that_falls_fades_its_lead_before_the_threshold() {
        // -75 dBm are reached after 3 s; the lead is 1 s.
        assert_eq!(said(ramp(-60.0, -5.0).take(30)), [(0, Up), (21, Fading)]);
    }

    #[test]
    fn a_slow_fall_far_above_the_threshold_does_not_fade() {
        assert_eq!(said(ramp(-40.0, -3.0).take(100)), [(0, Up)]);
    }

    #[test]
    fn single_values_that_jump_do_not_fade() {
        let levels = (0..100).map(|i| Some(if i % 7 == 3 { -78.0 } else { -66.0 }));
        assert_eq!(said(levels), [(0, Up)]);
    }

    #[test]
    fn between_threshold_and_hysteresis_the_last_word_holds() {
        let levels = |level| ramp(-76.0, 0.0).take(20).chain(ramp(level, 0.0).take(50));
        assert_eq!(said(levels(-73.0)), [(0, Up), (5, Fading)]);
        assert!(matches!(said(levels(-71.0))[..], [_, (5, Fading), (_, Up)]));
    }

    #[test]
    fn without_access_point_the_link_is_down_until_there_is_one() {
        let levels = ramp(-60.0, 0.0).take(20).chain([None; 10]).chain(ramp(-60.0, 0.0).take(20));
        assert_eq!(said(levels), [(0, Up), (20, Down), (30, Up)]);
        assert_eq!(said([None, None]), [(0, Down)]);
    }

    #[test]
    fn a_link_that_comes_back_weak_is_up_first() {
        let levels = ramp(-80.0, 0.0).take(9).chain([None]).chain(ramp(-80.0, 0.0).take(9));
        assert_eq!(said(levels), [(0, Up), (5, Fading), (9, Down), (10, Up), (15, Fading)]);
    }
}
