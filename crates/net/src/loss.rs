//! Loss models: one decision per packet, in order of departure.

use crate::config::LossConfig;
use crate::table::Losses;
use airtcp_core::{Instant, Stream};
use std::sync::Arc;

/// A loss model and its state.
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    /// Independent losses, each with probability `p`.
    Bernoulli { p: f64, stream: Stream },
    /// Gilbert-Elliott. Starts in the good state. Each packet is lost with the probability of the
    /// current state, then the chain takes a step.
    GilbertElliott { step: [f64; 2], loss: [f64; 2], bad: bool, stream: Stream },
    /// Independent losses, each with the probability of its time.
    Schedule { losses: Arc<Losses>, stream: Stream },
    /// Ordinals of data packets, ascending; `next` indexes the next one, `data_packets` have passed
    /// so far.
    List { ordinals: Vec<u64>, next: usize, data_packets: u64 },
}

impl Loss {
    /// The model of `config`, drawing from `stream`; `None` when nothing is ever lost.
    pub(crate) fn new(config: &LossConfig, stream: Stream) -> Option<Self> {
        match *config {
            LossConfig::None => None,
            LossConfig::Bernoulli { p } => Some(Self::Bernoulli { p, stream }),
            LossConfig::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let (step, loss) = ([good_to_bad, bad_to_good], [loss_good, loss_bad]);
                Some(Self::GilbertElliott { step, loss, bad: false, stream })
            }
            LossConfig::Schedule(ref schedule) => {
                Some(Self::Schedule { losses: Arc::clone(&schedule.0), stream })
            }
            LossConfig::List(ref list) => {
                let mut ordinals = list.clone();
                ordinals.sort_unstable();
                ordinals.dedup();
                Some(Self::List { ordinals, next: 0, data_packets: 0 })
            }
        }
    }

    /// True if the next packet is lost, at `now`; `data`: it carries payload.
    #[inline(never)]
    pub(crate) fn loses(&mut self, now: Instant, data: bool) -> bool {
        match self {
            Self::Bernoulli { p, stream } => stream.chance(*p),
            Self::GilbertElliott { step, loss, bad, stream } => {
                let state = usize::from(*bad);
                let lost = stream.chance(loss[state]);
                *bad ^= stream.chance(step[state]);
                lost
            }
            Self::Schedule { losses, stream } => stream.chance(losses.at(now)),
            Self::List { ordinals, next, data_packets } => {
                if !data {
                    return false;
                }
                let lost = ordinals.get(*next) == Some(data_packets);
                *next += usize::from(lost);
                *data_packets += 1;
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LossSchedule;

    fn model(config: &LossConfig) -> Loss {
        Loss::new(config, Stream::new(3, "link/test/loss")).unwrap()
    }

    #[test]
    fn no_loss_needs_no_model() {
        assert!(Loss::new(&LossConfig::None, Stream::new(1, "x")).is_none());
    }

    #[test]
    fn bernoulli_loses_the_given_fraction() {
        let mut loss = model(&LossConfig::Bernoulli { p: 0.01 });
        let n = 200_000;
        let lost = (0..n).filter(|_| loss.loses(Instant::ZERO, true)).count() as f64;
        // 2000 expected, standard deviation 44.5; the window is four of them.
        assert!((lost - 2000.0).abs() < 178.0, "{lost}");
    }

    #[test]
    fn bernoulli_at_the_ends() {
        let mut never = model(&LossConfig::Bernoulli { p: 0.0 });
        let mut always = model(&LossConfig::Bernoulli { p: 1.0 });
        assert!(
            (0..1000)
                .all(|_| !never.loses(Instant::ZERO, true) && always.loses(Instant::ZERO, false))
        );
    }

    #[test]
    fn gilbert_elliott_has_its_stationary_rate_and_burst_length() {
        // Gilbert 1960: bad fraction g/(g+b), bursts of mean length 1/b when all is lost in the bad
        // state.
        let (g, b) = (0.01, 0.25);
        let config = LossConfig::GilbertElliott {
            good_to_bad: g,
            bad_to_good: b,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let mut loss = model(&config);
        let n = 400_000;
        let lost: Vec<bool> = (0..n).map(|_| loss.loses(Instant::ZERO, true)).collect();
        let losses = lost.iter().filter(|&&l| l).count() as f64;
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let rate = losses / f64::from(n);
        // About 3850 bursts: four standard errors are 7 % of either figure.
        assert!((rate / (g / (g + b)) - 1.0).abs() < 0.07, "{rate}");
        assert!((losses / bursts * b - 1.0).abs() < 0.07, "{}", losses / bursts);
    }

    #[test]
    fn gilbert_elliott_uses_the_loss_probability_of_each_state() {
        // Equal time in both states: the mean of the two probabilities.
        let config = LossConfig::GilbertElliott {
            good_to_bad: 0.5,
            bad_to_good: 0.5,
            loss_good: 0.1,
            loss_bad: 0.3,
        };
        let mut loss = model(&config);
        let n = 100_000;
        let rate = (0..n).filter(|_| loss.loses(Instant::ZERO, true)).count() as f64 / f64::from(n);
        assert!((rate - 0.2).abs() < 0.006, "{rate}");
    }

    #[test]
    fn a_schedule_loses_with_the_probability_of_the_time() {
        let at = |seconds, p| (Instant::from_secs(seconds), p);
        let losses = Losses::new(vec![at(0, 0.0), at(10, 0.25), at(20, 1.0)]).unwrap();
        let mut loss = model(&LossConfig::Schedule(LossSchedule(Arc::new(losses))));
        let n = 40_000;
        let mut rate = |seconds| {
            let lost = (0..n).filter(|_| loss.loses(Instant::from_secs(seconds), true)).count();
            lost as f64 / f64::from(n)
        };
        assert_eq!([rate(0), rate(9), rate(20), rate(99)], [0.0, 0.0, 1.0, 1.0]);
        // Four standard deviations are 0.0087.
        assert!((rate(15) - 0.25).abs() < 0.0087);
    }

    #[test]
    fn gilbert_elliott_starts_in_the_good_state() {
        let config = LossConfig::GilbertElliott {
            good_to_bad: 1.0,
            bad_to_good: 1.0,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let mut loss = model(&config);
        assert_eq!(
            [
                loss.loses(Instant::ZERO, true),
                loss.loses(Instant::ZERO, true),
                loss.loses(Instant::ZERO, true)
            ],
            [false, true, false]
        );
    }

    #[test]
    fn a_list_counts_data_packets_only_from_zero() {
        let mut loss = model(&LossConfig::List(vec![2, 0, 2]));
        assert!(!loss.loses(Instant::ZERO, false), "an ACK has no ordinal");
        let lost: Vec<bool> = (0..5).map(|_| loss.loses(Instant::ZERO, true)).collect();
        assert_eq!(lost, [true, false, true, false, false]);
    }
}
