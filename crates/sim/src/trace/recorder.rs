//! Time series of a run, in columns, for figures, numpy and tests.

use airtcp_core::{Connection, Event, Instant, SeqNum, Source, Subscriber, documented};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

documented! {
    /// A time series that a [`Recorder`] can keep. All series are about the data sender of a flow
    /// except [`Series::Delivered`] and [`Series::OutageDeadTime`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Series {
        /// Congestion window, bytes, at each change of the window state.
        Cwnd,
        /// Slow-start threshold, bytes, at each change of the window state.
        Ssthresh,
        /// Bytes sent and not acknowledged (FlightSize), at each change of the window state.
        Flight,
        /// Retransmission time-out, s, at each RTT sample and each expiry.
        Rto,
        /// Smoothed round-trip time, s, at each RTT sample.
        Srtt,
        /// Bytes delivered in order so far, at each delivery to the receiving application.
        Delivered,
        /// Reductions of the congestion window so far, at each.
        CwndReductions,
        /// Expiries of the retransmission timer so far, at each.
        Timeouts,
        /// The window, bytes, from which TCP Karak's rule starts, in force or not, at each expiry
        /// where that is more than one segment.
        LargerRestartCwnd,
        /// Fast retransmits so far, at each.
        FastRetransmits,
        /// Sequence number of each data segment sent, retransmissions included: its position in
        /// the stream, bytes from the first one (ISN + 1), not wrapped.
        SeqSent,
        /// Sequence number of each segment retransmitted, counted as in `seq_sent`.
        SeqRetransmitted,
        /// Acknowledgement number of each ACK that the sender received, counted as in `seq_sent`.
        AckReceived,
        /// 1 when the sender enters the persist state, 0 when it leaves it.
        Persist,
        /// Dead time of each outage of the path, s: from its end to the first new byte at the
        /// receiver.
        OutageDeadTime,
        /// 1 when the sender's connection is aborted.
        Aborted,
    }
}

impl Series {
    /// All series, in the order of their declaration.
    pub const ALL: [Self; 16] = [
        Self::Cwnd,
        Self::Ssthresh,
        Self::Flight,
        Self::Rto,
        Self::Srtt,
        Self::Delivered,
        Self::CwndReductions,
        Self::Timeouts,
        Self::LargerRestartCwnd,
        Self::FastRetransmits,
        Self::SeqSent,
        Self::SeqRetransmitted,
        Self::AckReceived,
        Self::Persist,
        Self::OutageDeadTime,
        Self::Aborted,
    ];

    /// The name that users know it by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cwnd => "cwnd",
            Self::Ssthresh => "ssthresh",
            Self::Flight => "flight",
            Self::Rto => "rto",
            Self::Srtt => "srtt",
            Self::Delivered => "delivered",
            Self::CwndReductions => "cwnd_reductions",
            Self::Timeouts => "timeouts",
            Self::LargerRestartCwnd => "larger_restart_cwnd",
            Self::FastRetransmits => "fast_retransmits",
            Self::SeqSent => "seq_sent",
            Self::SeqRetransmitted => "seq_retransmitted",
            Self::AckReceived => "ack_received",
            Self::Persist => "persist",
            Self::OutageDeadTime => "outage_dead_time",
            Self::Aborted => "aborted",
        }
    }

    /// Meaning of its values, with their unit.
    pub fn about(self) -> &'static str {
        Self::VARIANTS[self as usize].prose
    }
}

/// A name that is not a [`Series`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSeries(String);

impl fmt::Display for UnknownSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Series::ALL.iter().map(|s| s.name()).collect();
        write!(f, "unknown series {:?}: expected one of {}", self.0, names.join(", "))
    }
}
impl std::error::Error for UnknownSeries {}

impl FromStr for Series {
    type Err = UnknownSeries;
    fn from_str(name: &str) -> Result<Self, UnknownSeries> {
        let found = Self::ALL.into_iter().find(|s| s.name() == name);
        found.ok_or_else(|| UnknownSeries(name.to_owned()))
    }
}

/// One series of all flows, one row per change, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// Simulated time, seconds.
    pub time_s: Vec<f64>,
    /// Index of the flow in the scenario.
    pub flow: Vec<u32>,
    /// The value, in the unit of the series.
    pub value: Vec<f64>,
}

/// Positions in one flow's stream, as 64-bit offsets from ISN + 1: sequence numbers unwrapped.
#[derive(Clone, Copy, Debug)]
struct Unwrapped {
    seq: SeqNum,
    position: i64,
}

impl Unwrapped {
    /// The position of `seq`, assumed within half the sequence space of the furthest position so
    /// far.
    fn position(&mut self, seq: SeqNum) -> i64 {
        let position = self.position + i64::from(seq.offset_from(self.seq));
        if position > self.position {
            *self = Self { seq, position };
        }
        position
    }
}

/// State of one flow from which series are computed.
#[derive(Clone, Debug, Default)]
struct FlowState {
    /// The stream of each transfer with a connection of its own, or the only one (`None`).
    streams: BTreeMap<Option<u64>, Unwrapped>,
    cwnd_reductions: u64,
    timeouts: u64,
    fast_retransmits: u64,
}

/// A subscriber that keeps selected series.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    kept: [Option<Columns>; Series::ALL.len()],
    flows: Vec<FlowState>,
}

impl Recorder {
    /// Keeps these series, of every flow.
    pub fn new(series: &[Series]) -> Self {
        let mut recorder = Self::default();
        for &s in series {
            recorder.kept[s as usize] = Some(Columns::default());
        }
        recorder
    }

    /// The recorded series; empty if it was not requested.
    pub fn columns(&self, series: Series) -> &Columns {
        const EMPTY: &Columns =
            &Columns { time_s: Vec::new(), flow: Vec::new(), value: Vec::new() };
        self.kept[series as usize].as_ref().unwrap_or(EMPTY)
    }

    fn push(&mut self, series: Series, at: Instant, flow: u32, value: f64) {
        if let Some(columns) = &mut self.kept[series as usize] {
            columns.time_s.push(at.as_secs_f64());
            columns.flow.push(flow);
            columns.value.push(value);
        }
    }

    fn state(&mut self, flow: u32) -> &mut FlowState {
        let index = flow as usize;
        if self.flows.len() <= index {
            self.flows.resize_with(index + 1, FlowState::default);
        }
        &mut self.flows[index]
    }

    fn on_sender_event(&mut self, at: Instant, of: Connection, event: &Event) {
        let Connection { flow, transfer } = of;
        match *event {
            Event::SegmentSent { seq, retransmission, .. } => {
                let first = Unwrapped { seq, position: 0 };
                let streams = &mut self.state(flow).streams;
                let position = streams.entry(transfer).or_insert(first).position(seq);
                self.push(Series::SeqSent, at, flow, position as f64);
                if retransmission {
                    self.push(Series::SeqRetransmitted, at, flow, position as f64);
                }
            }
            Event::AckReceived { ack, .. } => {
                if let Some(stream) = self.state(flow).streams.get_mut(&transfer) {
                    let position = stream.position(ack);
                    self.push(Series::AckReceived, at, flow, position as f64);
                }
            }
            Event::Window { cwnd, ssthresh, flight } => {
                self.push(Series::Cwnd, at, flow, f64::from(cwnd));
                self.push(Series::Ssthresh, at, flow, f64::from(ssthresh));
                self.push(Series::Flight, at, flow, f64::from(flight));
            }
            Event::CwndReduced { .. } => {
                let state = self.state(flow);
                state.cwnd_reductions += 1;
                let count = state.cwnd_reductions;
                self.push(Series::CwndReductions, at, flow, count as f64);
            }
            Event::Rtt { srtt, rto, .. } => {
                self.push(Series::Srtt, at, flow, srtt.as_secs_f64());
                self.push(Series::Rto, at, flow, rto.as_secs_f64());
            }
            Event::RtoExpired { rto, .. } => {
                let state = self.state(flow);
                state.timeouts += 1;
                let count = state.timeouts;
                self.push(Series::Timeouts, at, flow, count as f64);
                self.push(Series::Rto, at, flow, rto.as_secs_f64());
            }
            Event::LargerRestart { cwnd, .. } => {
                self.push(Series::LargerRestartCwnd, at, flow, f64::from(cwnd));
            }
            Event::FastRetransmit { .. } => {
                let state = self.state(flow);
                state.fast_retransmits += 1;
                let count = state.fast_retransmits;
                self.push(Series::FastRetransmits, at, flow, count as f64);
            }
            Event::Persist { active } => {
                self.push(Series::Persist, at, flow, f64::from(u8::from(active)));
            }
            Event::Aborted { .. } => self.push(Series::Aborted, at, flow, 1.0),
            _ => {}
        }
    }
}

impl Subscriber for Recorder {
    fn on_event(&mut self, at: Instant, source: Source, event: &Event) {
        match source {
            Source::Sender(of) => self.on_sender_event(at, of, event),
            Source::Receiver(Connection { flow, .. }) => match *event {
                Event::Delivered { total } => {
                    self.push(Series::Delivered, at, flow, total.get() as f64);
                }
                Event::OutageOver { dead } => {
                    self.push(Series::OutageDeadTime, at, flow, dead.as_secs_f64());
                }
                _ => {}
            },
            Source::Link(_) | Source::Node(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::event::{AbortReason, Cause};
    use airtcp_core::{Bytes, Duration};

    fn sent(seq: u32, len: u32, retransmission: bool) -> Event {
        Event::SegmentSent { seq: SeqNum(seq), len, retransmission }
    }

    #[test]
    fn names_round_trip() {
        for s in Series::ALL {
            assert_eq!(s.name().parse(), Ok(s));
            assert_eq!(Series::ALL[s as usize], s);
            assert!(s.about().ends_with('.'));
        }
        let error = "cwnds".parse::<Series>().unwrap_err().to_string();
        assert!(error.starts_with("unknown series \"cwnds\": expected one of cwnd, ssthresh,"));
    }

    #[test]
    fn positions_are_relative_to_the_isn_and_unwrapped() {
        let mut r =
            Recorder::new(&[Series::SeqSent, Series::SeqRetransmitted, Series::AckReceived]);
        let isn = u32::MAX - 1;
        let source = Source::Sender(Connection::of(2));
        let mut at = |ms, event| r.on_event(Instant::from_millis(ms), source, &event);
        at(10, sent(isn.wrapping_add(1), 1000, false));
        at(20, sent(isn.wrapping_add(1001), 1000, false));
        at(30, sent(isn.wrapping_add(1), 1000, true));
        at(40, Event::AckReceived { ack: SeqNum(isn.wrapping_add(2001)), duplicate: false });
        assert_eq!(r.columns(Series::SeqSent).value, [0.0, 1000.0, 0.0]);
        assert_eq!(r.columns(Series::SeqSent).flow, [2, 2, 2]);
        assert_eq!(r.columns(Series::SeqRetransmitted).time_s, [0.03]);
        assert_eq!(r.columns(Series::AckReceived).value, [2000.0]);
    }

    #[test]
    fn each_transfer_on_a_connection_of_its_own_has_a_stream() {
        let mut r = Recorder::new(&[Series::SeqSent, Series::AckReceived]);
        let mut at = |transfer, event| {
            let source = Source::Sender(Connection { flow: 0, transfer: Some(transfer) });
            r.on_event(Instant::ZERO, source, &event);
        };
        at(0, sent(1 << 31, 1000, false));
        at(1, sent(77, 500, false));
        at(0, sent((1 << 31) + 1000, 1000, false));
        at(1, Event::AckReceived { ack: SeqNum(577), duplicate: false });
        assert_eq!(r.columns(Series::SeqSent).value, [0.0, 0.0, 1000.0]);
        assert_eq!(r.columns(Series::AckReceived).value, [500.0]);
    }

    #[test]
    fn positions_exceed_the_sequence_space() {
        let mut r = Recorder::new(&[Series::SeqSent]);
        let step = 1 << 30;
        for i in 0..6u32 {
            let seq = 1u32.wrapping_add(i.wrapping_mul(step));
            r.on_event(Instant::ZERO, Source::Sender(Connection::of(0)), &sent(seq, 1, false));
        }
        assert_eq!(r.columns(Series::SeqSent).value[5], 5.0 * f64::from(step));
    }

    #[test]
    fn only_the_sender_s_abort_counts() {
        let mut r = Recorder::new(&[Series::Aborted]);
        let aborted = Event::Aborted { reason: AbortReason::RetransmissionLimit };
        r.on_event(Instant::from_millis(9), Source::Receiver(Connection::of(0)), &aborted);
        r.on_event(Instant::from_millis(10), Source::Sender(Connection::of(3)), &aborted);
        let columns = r.columns(Series::Aborted);
        assert_eq!((&columns.time_s[..], &columns.flow[..]), (&[0.01][..], &[3][..]));
    }

    #[test]
    fn a_larger_restart_is_a_point_with_its_window() {
        let mut r = Recorder::new(&[Series::LargerRestartCwnd]);
        let restart = Event::LargerRestart { cwnd: 4000, duplicate_acks: 2 };
        r.on_event(Instant::from_millis(7), Source::Sender(Connection::of(3)), &restart);
        let columns = r.columns(Series::LargerRestartCwnd);
        let expected = (vec![0.007], vec![3], vec![4000.0]);
        assert_eq!(
            (&columns.time_s, &columns.flow, &columns.value),
            (&expected.0, &expected.1, &expected.2)
        );
    }

    #[test]
    fn counts_and_keeps_only_the_requested_series() {
        let mut r = Recorder::new(&[Series::CwndReductions, Series::Delivered]);
        let reduced = Event::CwndReduced { cause: Cause::Rto, from: 4000, to: 1000 };
        let expired = Event::RtoExpired { seq: SeqNum(1), count: 1, rto: Duration::from_secs(2) };
        let delivered = Event::Delivered { total: Bytes(500) };
        let at = Instant::from_millis(1);
        r.on_event(at, Source::Sender(Connection::of(0)), &reduced);
        r.on_event(at, Source::Sender(Connection::of(1)), &reduced);
        r.on_event(at, Source::Sender(Connection::of(0)), &reduced);
        r.on_event(at, Source::Sender(Connection::of(0)), &expired);
        r.on_event(at, Source::Receiver(Connection::of(0)), &delivered);
        r.on_event(at, Source::Sender(Connection::of(0)), &delivered);
        assert_eq!(r.columns(Series::CwndReductions).value, [1.0, 1.0, 2.0]);
        assert_eq!(r.columns(Series::Delivered).value, [500.0]);
        assert!(r.columns(Series::Timeouts).value.is_empty());
    }
}
