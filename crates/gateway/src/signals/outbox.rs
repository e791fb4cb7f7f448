//! An agent's last signal, repeated until the gateway has it or a newer one replaces it.
//!
//! [`message`](super::message) is how it is said, and [`gate`](super::gate) says what the gateway
//! takes.

use super::keys::Key;
use super::message::{Answer, Report, Stamp, Verdict};
use airtcp_core::{Duration, LinkSignal};
use std::net::IpAddr;

/// The first repetition; each later one waits twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait: a mobile that is back is heard at most this much later.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Most new stamps a report gets at once; later ones come only with repetitions.
const RESTAMPS: u32 = 3;

/// Meaning of a reply from the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The gateway has the signal, so long after it was first said.
    Taken(LinkSignal, Duration),
    /// The gateway will not listen to this key about these mobiles.
    NotAllowed(LinkSignal),
    /// Nothing: forged, late, or to be tried once more.
    Nothing,
}

/// The reports of an agent.
#[derive(Debug)]
pub struct Outbox {
    key: Key,
    mobiles: Vec<IpAddr>,
    /// The gateway's clock less ours (modulo 2^64).
    offset: u64,
    /// Stamp of the report before.
    last: Option<Stamp>,
    pending: Option<Pending>,
}

/// A report without an answer.
#[derive(Debug)]
struct Pending {
    signal: LinkSignal,
    stamp: Stamp,
    bytes: Vec<u8>,
    /// Time of the first report, by our clock.
    since: Stamp,
    /// Time of the next repetition, by our clock.
    due: Stamp,
    wait: Duration,
    restamps: u32,
}

impl Outbox {
    /// An outbox without reports.
    pub fn new(key: Key, mobiles: Vec<IpAddr>) -> Self {
        Self { key, mobiles, offset: 0, last: None, pending: None }
    }

    /// Takes a new signal, which replaces one that was not answered yet.
    pub fn say(&mut self, now: Stamp, signal: LinkSignal) {
        let next = self.last.map_or(0, |last| last.0 + 1);
        let stamp = Stamp(now.0.wrapping_add(self.offset).max(next));
        self.last = Some(stamp);
        let bytes = self.sealed(stamp, signal);
        let (since, due, wait) = (now, now, FIRST_WAIT);
        self.pending = Some(Pending { signal, stamp, bytes, since, due, wait, restamps: 0 });
    }

    fn sealed(&self, stamp: Stamp, signal: LinkSignal) -> Vec<u8> {
        let (key, mobiles) = (self.key.name.clone(), self.mobiles.clone());
        Report { key, stamp, signal, mobiles }.seal(&self.key.secret)
    }

    /// The signal that has not been answered yet.
    pub fn pending(&self) -> Option<LinkSignal> {
        self.pending.as_ref().map(|pending| pending.signal)
    }

    /// Time at which [`Outbox::send`] has something next.
    pub fn due(&self) -> Option<Stamp> {
        self.pending.as_ref().map(|pending| pending.due)
    }

    /// The datagram that is due at `now`.
    pub fn send(&mut self, now: Stamp) -> Option<&[u8]> {
        let pending = self.pending.as_mut().filter(|pending| pending.due <= now)?;
        pending.due = now.after(pending.wait);
        pending.wait = (pending.wait * 2).min(LONGEST_WAIT);
        Some(&pending.bytes)
    }

    /// Takes what came from the network.
    pub fn receive(&mut self, now: Stamp, datagram: &[u8]) -> Answered {
        let Ok(answer) = Answer::open(datagram, &self.key.secret) else { return Answered::Nothing };
        let Some(mut pending) = self.pending.take_if(|pending| pending.stamp == answer.to) else {
            return Answered::Nothing;
        };
        match answer.verdict {
            Verdict::Taken => Answered::Taken(pending.signal, now.since(pending.since)),
            Verdict::NotAllowed => Answered::NotAllowed(pending.signal),
            Verdict::Untimely => {
                // The gateway never took the stamp that it refused, so a smaller one does.
                self.offset = answer.clock.0.wrapping_sub(now.0);
                self.last = Some(answer.clock);
                pending.stamp = answer.clock;
                pending.bytes = self.sealed(answer.clock, pending.signal);
                pending.restamps += 1;
                if pending.restamps <= RESTAMPS {
                    pending.due = now;
                }
                self.pending = Some(pending);
                Answered::Nothing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::gate::AgentCounters;
    use crate::signals::gate::tests::Listener;
    use crate::signals::keys::Keys;
    use LinkSignal::{Down, Fading, Up};
    use std::path::Path;

    fn keys() -> Keys {
        let text = "phone 000102030405060708090a0b0c0d0e0f 10.0.0.7";
        Keys::parse(Path::new("keys"), text).unwrap()
    }

    fn outbox(mobile: &str) -> Outbox {
        let key = keys().iter().next().unwrap().clone();
        Outbox::new(key, vec![mobile.parse().unwrap()])
    }

    fn ms(ms: u64) -> Stamp {
        Stamp(1_700_000_000_000_000_000).after(Duration::from_millis(ms))
    }

    /// A gateway that was started long before.
    fn gate(counters: &AgentCounters) -> Listener<'_> {
        Listener::new(keys(), ms(0), counters)
    }

    /// Sends what is due to the gateway, whose clock shows `there`, and brings the answer back; the
    /// signal it took, and what the answer meant.
    fn exchange(
        outbox: &mut Outbox,
        gate: &mut Listener<'_>,
        here: Stamp,
        there: Stamp,
    ) -> (Option<LinkSignal>, Answered) {
        let sent = outbox.send(here).expect("something is due").to_vec();
        let (report, answer) = gate.receive(there, &sent);
        (report.map(|r| r.signal), outbox.receive(here, &answer.expect("an answer")))
    }

    #[test]
    fn a_report_is_repeated_with_back_off_until_it_is_answered() {
        let mut outbox = outbox("10.0.0.7");
        outbox.say(ms(5000), Down);
        let mut sent = Vec::new();
        while let Some(due) = outbox.due().filter(|&due| due <= ms(8000)) {
            assert!(outbox.send(due).is_some());
            sent.push(due.since(ms(5000)).as_millis());
        }
        assert_eq!(sent, [0, 100, 300, 700, 1500, 2500]);
        let counters = AgentCounters::default();
        let took = Answered::Taken(Down, Duration::from_secs(4));
        assert_eq!(
            exchange(&mut outbox, &mut gate(&counters), ms(9000), ms(9000)),
            (Some(Down), took)
        );
        assert_eq!(outbox.due(), None);
    }

    #[test]
    fn a_lost_answer_is_given_again() {
        let counters = AgentCounters::default();
        let (mut outbox, mut gate) = (outbox("10.0.0.7"), gate(&counters));
        outbox.say(ms(5000), Up);
        let lost = outbox.send(ms(5000)).unwrap().to_vec();
        assert!(gate.receive(ms(5000), &lost).0.is_some());
        let answered = exchange(&mut outbox, &mut gate, ms(5100), ms(5100));
        assert_eq!(answered, (None, Answered::Taken(Up, Duration::from_millis(100))));
    }

    #[test]
    fn a_later_word_overtakes_and_the_earlier_one_is_refused_when_it_arrives_last() {
        let counters = AgentCounters::default();
        let (mut outbox, mut gate) = (outbox("10.0.0.7"), gate(&counters));
        outbox.say(ms(5000), Down);
        let slow = outbox.send(ms(5000)).unwrap().to_vec();
        outbox.say(ms(5000), Up);
        assert_eq!(outbox.pending(), Some(Up));
        assert_eq!(exchange(&mut outbox, &mut gate, ms(5001), ms(5001)).0, Some(Up));
        let (acted, answer) = gate.receive(ms(5002), &slow);
        assert_eq!(acted, None);
        assert_eq!(outbox.receive(ms(5003), &answer.unwrap()), Answered::Nothing);
    }

    #[test]
    fn an_answer_to_an_earlier_word_does_not_silence_a_later_one() {
        let counters = AgentCounters::default();
        let (mut outbox, mut gate) = (outbox("10.0.0.7"), gate(&counters));
        outbox.say(ms(5000), Down);
        let sent = outbox.send(ms(5000)).unwrap().to_vec();
        let answer = gate.receive(ms(5000), &sent).1.unwrap();
        outbox.say(ms(5001), Up);
        assert_eq!(outbox.receive(ms(5002), &answer), Answered::Nothing);
        assert_eq!(outbox.pending(), Some(Up));
    }

    #[test]
    fn a_wrong_clock_costs_one_more_message() {
        for (here, there) in [(0, 9_000_000), (9_000_000, 5000)] {
            let counters = AgentCounters::default();
            let (mut outbox, mut gate) = (outbox("10.0.0.7"), gate(&counters));
            outbox.say(ms(here), Down);
            let first = exchange(&mut outbox, &mut gate, ms(here), ms(there));
            assert_eq!(first, (None, Answered::Nothing));
            let second = exchange(&mut outbox, &mut gate, ms(here), ms(there)).0;
            assert_eq!(second, Some(Down));
            outbox.say(ms(here + 60_000), Up);
            let third = exchange(&mut outbox, &mut gate, ms(here + 60_000), ms(there + 60_000)).0;
            assert_eq!(third, Some(Up), "it knows now");
        }
    }

    #[test]
    fn a_word_kept_through_a_long_outage_is_stamped_anew() {
        let counters = AgentCounters::default();
        let (mut outbox, mut gate) = (outbox("10.0.0.7"), gate(&counters));
        outbox.say(ms(5000), Fading);
        assert_eq!(exchange(&mut outbox, &mut gate, ms(605_000), ms(605_000)).0, None);
        assert_eq!(exchange(&mut outbox, &mut gate, ms(605_000), ms(605_000)).0, Some(Fading));
    }

    #[test]
    fn a_gateway_that_is_never_content_is_not_flooded() {
        let mut outbox = outbox("10.0.0.7");
        outbox.say(ms(0), Down);
        let mut sent = 0;
        for now in 0..10_000 {
            while outbox.send(ms(now)).is_some() {
                sent += 1;
                let to = outbox.pending.as_ref().unwrap().stamp;
                let answer = Answer { to, verdict: Verdict::Untimely, clock: Stamp(to.0 + 1) };
                outbox.receive(ms(now), &answer.seal(&outbox.key.secret));
            }
        }
        assert!(sent < 20, "{sent} in 10 s");
    }

    #[test]
    fn a_mobile_of_another_key_is_not_repeated() {
        let counters = AgentCounters::default();
        let (mut outbox, mut gate) = (outbox("10.0.0.8"), gate(&counters));
        outbox.say(ms(5000), Down);
        let answered = exchange(&mut outbox, &mut gate, ms(5000), ms(5000));
        assert_eq!((answered, outbox.due()), ((None, Answered::NotAllowed(Down)), None));
    }

    #[test]
    fn a_forged_answer_is_ignored() {
        let mut outbox = outbox("10.0.0.7");
        outbox.say(ms(0), Down);
        let stamp = outbox.pending.as_ref().unwrap().stamp;
        let wrong = crate::signals::keys::Secret::new(vec![1; 16]).unwrap();
        let forged = Answer { to: stamp, verdict: Verdict::Taken, clock: stamp }.seal(&wrong);
        assert_eq!(outbox.receive(ms(1), &forged), Answered::Nothing);
        assert_eq!(outbox.pending(), Some(Down));
    }
}
