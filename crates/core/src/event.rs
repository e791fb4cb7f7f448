//! Typed events: what protocol code publishes instead of logging.
//!
//! Traces, metrics, plots and assertions are subscribers. Without one, [`Events::emit`] is a single
//! predictable branch: the event is not even built.

use crate::documented;
use crate::segment::Flow;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::units::{Bytes, DataRate};
use std::net::IpAddr;

documented! {
    /// The reason for a reduction of a congestion window (or ssthresh).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Cause {
        /// The retransmission timer expired (RFC 5681 §3.1).
        Rto,
        /// Loss inferred from duplicate ACKs, SACK or time (RFC 5681 §3.2, RFC 6675 §5, RFC 8985).
        DuplicateAcks,
        /// A queue marked a packet (RFC 3168).
        Ecn,
    }
}

documented! {
    /// The cause of a spurious retransmission.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Spurious {
        /// The retransmission timer fired too early.
        Timeout,
        /// Reordering was taken for loss.
        FastRetransmit,
    }
}

documented! {
    /// The reason why a frame or packet was dropped.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum DropReason {
        /// The queue was full (drop-tail), or RED chose it.
        Queue,
        /// The loss model dropped it.
        Loss,
        /// It exceeded the policer's rate and burst.
        Policer,
        /// The link or the path above it was down.
        Outage,
        /// The base station that its mobile left discarded it.
        Handover,
        /// A middlebox filtered it.
        Middlebox,
        /// No route to the destination.
        NoRoute,
        /// Its TTL was used up (RFC 791 §3.2).
        TtlExpired,
        /// The MAC reached its retry limit (802.11).
        Retries,
        /// No station received the broadcast.
        Unheard,
    }
}

documented! {
    /// The reason why a connection ended without an exchange of FINs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum AbortReason {
        /// Too many retransmissions of one segment (RFC 9293 §3.8.3).
        RetransmissionLimit,
        /// Data went unacknowledged, or the window stayed closed, for longer than the user timeout
        /// (RFC 9293 §3.9.1).
        UserTimeout,
        /// The peer sent RST.
        Reset,
        /// The application gave up.
        User,
    }
}

documented! {
    /// What a player of video does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum PlayerState {
        /// It waits for its first segments.
        Starting,
        /// It shows the video.
        Playing,
        /// Its buffer ran empty, and it waits for segments.
        Stalled,
        /// It has shown the whole video.
        Ended,
    }
}

documented! {
    /// One event. Sizes are in bytes.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Event {
        /// A TCP endpoint sent a segment with data; the first one begins the stream (ISN + 1).
        SegmentSent {
            /// First sequence number.
            seq: SeqNum,
            /// Bytes of payload.
            len: u32,
            /// All of it had been sent before.
            retransmission: bool,
        },
        /// A TCP endpoint processed an acknowledgement.
        AckReceived {
            /// Acknowledgement number of the segment.
            ack: SeqNum,
            /// It was a duplicate (RFC 5681 §2).
            duplicate: bool,
        },
        /// New bytes became readable at the receiver.
        Delivered {
            /// In-order bytes delivered so far.
            total: Bytes,
        },
        /// cwnd or ssthresh changed, in bytes, for any reason.
        Window {
            /// Congestion window, bytes.
            cwnd: u32,
            /// Slow-start threshold, bytes.
            ssthresh: u32,
            /// Bytes sent and not acknowledged.
            flight: u32,
        },
        /// A reduction of cwnd, with its cause (also reported as a change of the window).
        CwndReduced {
            /// The congestion signal.
            cause: Cause,
            /// cwnd before the reduction.
            from: u32,
            /// cwnd after, when the reduction is complete (ssthresh in fast recovery).
            to: u32,
        },
        /// The RTT estimator took a sample.
        Rtt {
            /// The new RTT sample.
            sample: Duration,
            /// Smoothed RTT after it.
            srtt: Duration,
            /// Variation after it.
            rttvar: Duration,
            /// Retransmission time-out after it.
            rto: Duration,
        },
        /// The retransmission timer expired.
        RtoExpired {
            /// First unacknowledged byte.
            seq: SeqNum,
            /// Expiries in a row, this one included.
            count: u32,
            /// The time-out now in force.
            rto: Duration,
        },
        /// At an expiry, a rule of the congestion control, in force or not, starts from more than
        /// one segment (TCP Karak).
        LargerRestart {
            /// The window that it starts from; ssthresh bounds it.
            cwnd: u32,
            /// Duplicate ACKs before it.
            duplicate_acks: u32,
        },
        /// A fast retransmit, by duplicate ACKs, SACK or time (RFC 5681 §3.2, RFC 6675 §5,
        /// RFC 8985).
        FastRetransmit {
            /// First unacknowledged byte.
            seq: SeqNum,
        },
        /// A retransmission turned out to be spurious; the response to it was undone.
        SpuriousDetected {
            /// Timeout or fast retransmit.
            kind: Spurious,
        },
        /// The persist state was entered (`true`) or left (`false`).
        Persist {
            /// Now in persist.
            active: bool,
        },
        /// A window probe was sent.
        WindowProbe,
        /// The sender entered (`true`) or left (`false`) standby, in which it waits for a route.
        Standby {
            /// Now in standby.
            active: bool,
        },
        /// The connection was established.
        Established,
        /// The connection ended in order.
        Closed,
        /// The connection was aborted.
        Aborted {
            /// The reason for the abort.
            reason: AbortReason,
        },
        /// The first new bytes since an outage of the flow's path reached the receiver.
        OutageOver {
            /// Time since the path came back; if it went down again before then, the time it was
            /// up.
            dead: Duration,
        },
        /// A transfer is complete at the receiver: the answer to a request, or a transfer on a
        /// connection of its own.
        TransferCompleted {
            /// Its number among those of the flow, from 0, in the order of their starts.
            number: u64,
            /// Its size.
            bytes: Bytes,
            /// Time since the request was sent, or since the connection was opened for it.
            time: Duration,
        },
        /// A player of video asks for the next segment.
        SegmentRequested {
            /// Bitrate of the segment, bit/s.
            bitrate: DataRate,
            /// Playing time in the buffer.
            buffer: Duration,
        },
        /// A player of video changed its state.
        Player {
            /// The new state.
            state: PlayerState,
            /// Playing time in the buffer.
            buffer: Duration,
        },
        /// A packet was dropped.
        Dropped {
            /// The reason for the drop.
            reason: DropReason,
            /// The flow it belonged to.
            flow: Flow,
            /// First sequence number; for a datagram, its number.
            seq: SeqNum,
            /// Bytes of payload.
            len: u32,
        },
        /// A routing protocol notified its node's transport protocols that a route failed.
        RouteFailed {
            /// Destination of the route that failed.
            to: IpAddr,
        },
        /// A routing protocol notified its node's transport protocols that it found a route.
        RouteFound {
            /// Destination of the route that was found.
            to: IpAddr,
        },
        /// A middlebox sent a segment of its own.
        Injected {
            /// The flow of the injected segment.
            flow: Flow,
            /// Its sequence number.
            seq: SeqNum,
            /// Its acknowledgement number.
            ack: SeqNum,
        },
    }
}

/// A connection of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection {
    /// The flow, by its index in the scenario.
    pub flow: u32,
    /// Number of the transfer that has this connection of its own, from 0, in the order of their
    /// starts; `None`: the flow has one connection.
    pub transfer: Option<u64>,
}

impl Connection {
    /// The only connection of a flow.
    pub const fn of(flow: u32) -> Self {
        Self { flow, transfer: None }
    }
}

/// Who published an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The end that sends the data.
    Sender(Connection),
    /// The end that receives the data.
    Receiver(Connection),
    /// A unidirectional link, by index.
    Link(u32),
    /// A node, by index.
    Node(u32),
}

/// Receives events in the order of simulated time.
pub trait Subscriber {
    /// Called for every event; must not assume anything about the caller's state.
    fn on_event(&mut self, at: Instant, source: Source, event: &Event);
}

/// Each of them, in turn.
impl Subscriber for Vec<&mut dyn Subscriber> {
    fn on_event(&mut self, at: Instant, source: Source, event: &Event) {
        self.iter_mut().for_each(|subscriber| subscriber.on_event(at, source, event));
    }
}

/// The subscriber to which protocol code publishes its events, if there is one.
pub struct Events<'a> {
    subscriber: Option<&'a mut dyn Subscriber>,
    source: Source,
}

impl<'a> Events<'a> {
    /// Publishes to `subscriber` as `source`.
    pub fn new(subscriber: Option<&'a mut dyn Subscriber>, source: Source) -> Self {
        Self { subscriber, source }
    }
    /// Discards all events.
    pub fn none() -> Self {
        Self { subscriber: None, source: Source::Node(0) }
    }
    /// Publishes the event that `make` builds; without a subscriber, `make` is not called.
    #[inline]
    pub fn emit(&mut self, at: Instant, make: impl FnOnce() -> Event) {
        if let Some(subscriber) = self.subscriber.as_deref_mut() {
            subscriber.on_event(at, self.source, &make());
        }
    }
}
