//! Signals that a middlebox hears in a scenario.

use airtcp_core::{Instant, Length, LinkSignal, Segment};
use airtcp_edge::{Actions, Middlebox, MobileId, Side};
use airtcp_sim::scenario::Scenario;
use airtcp_sim::{Observers, World};
use std::sync::{Arc, Mutex};

/// The signals that came, and when, in seconds.
type Log = Arc<Mutex<Vec<(f64, LinkSignal)>>>;

/// Forwards everything, and notes the signals.
struct Ear(Log);

impl Middlebox<Length> for Ear {
    fn on_segment(
        &mut self,
        _: Instant,
        from: Side,
        segment: Segment<Length>,
        out: &mut Actions<Length>,
    ) {
        out.forward(from.opposite(), segment);
    }
    fn on_link(&mut self, now: Instant, _: MobileId, signal: LinkSignal, _: &mut Actions<Length>) {
        self.0.lock().unwrap().push((now.as_secs_f64(), signal));
    }
    fn on_timer(&mut self, _: Instant, _: &mut Actions<Length>) {}
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// The signals of a run, with an ear in place of each mechanism.
pub(crate) fn signals(scenario: &Scenario, seed: u64) -> Vec<(f64, LinkSignal)> {
    let log = Log::default();
    let ear = |_| Some(Box::new(Ear(Arc::clone(&log))) as Box<dyn Middlebox<Length> + Send>);
    World::with_middleboxes(scenario, seed, ear).run(&mut Observers::default());
    log.lock().unwrap().clone()
}
