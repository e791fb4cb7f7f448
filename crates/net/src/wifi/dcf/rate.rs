//! The choice of rates: each frame has its series of them, which its attempts go through.

use super::{Dcf, Function, Traffic};
use crate::wifi::aggregate::End;
use crate::wifi::minstrel::{Rate, Series};
use crate::wifi::rules::Rules;
use crate::wifi::station::Receiver;
use airtcp_core::Instant;

impl<T: Copy> Function<T> {
    /// The rate of the next attempt, or of that in progress.
    #[inline]
    pub(crate) fn rate(&self) -> Rate {
        self.series.as_ref().map_or(Rate::default(), Series::rate)
    }
}

impl<T: Copy> Dcf<T> {
    /// The rate of the next attempt for the current packet.
    #[inline]
    pub(super) fn choose_rate(&mut self, now: Instant, rules: &Rules) -> Rate {
        if rules.rate_table.is_some() {
            self.choose_rate_now(now, rules);
        }
        self.traffic.function.rate()
    }

    #[inline(never)]
    fn choose_rate_now(&mut self, now: Instant, rules: &Rules) {
        let Traffic { function, rate_control, .. } = &mut *self.traffic;
        let (Some(control), Some(table)) = (rate_control, &rules.rate_table) else { return };
        let Some(job) = &mut function.current else { return };
        let Receiver::Station(to) = job.to else { return };
        let series = function.series.get_or_insert_with(|| control.series(now, table, to));
        // Frames that packets share are only filled up now.
        if rules.phy.aggregation.is_none() {
            job.duration = rules.exchange(series.rate()).mode.duration(job.size);
        }
    }

    /// An attempt is over: its rate has done well or not.
    #[inline]
    pub(super) fn report_attempt(&mut self, now: Instant, rules: &Rules, end: End) {
        if rules.rate_table.is_some() && end != End::Unsent {
            self.report_attempt_now(now, rules, end == End::Answered);
        }
    }

    #[inline(never)]
    fn report_attempt_now(&mut self, now: Instant, rules: &Rules, answered: bool) {
        let Traffic { function, rate_control, .. } = &mut *self.traffic;
        let (Some(control), Some(table)) = (rate_control, &rules.rate_table) else { return };
        let (Some(job), Some(series)) = (&function.current, &mut function.series) else { return };
        let Receiver::Station(to) = job.to else { return };
        let (sent, received) = match function.aggregates.mpdus() {
            0 => (1, 1),
            mpdus => (mpdus, function.aggregates.delivered()),
        };
        let acknowledged = if answered { received } else { 0 };
        control.report(now, table, to, series.rate(), (sent, acknowledged));
        if !answered {
            series.fail();
        }
    }
}
