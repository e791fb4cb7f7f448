//! SKELETON: signatures only; the body is being written by the tcp author.

use crate::config::TcpConfig;
use airtcp_core::{Events, Flow, Instant, Payload, Segment, SeqNum};

/// Where an endpoint puts what it sends and publishes.
pub struct Io<'a, P> {
    /// Segments to transmit, in order; the endpoint only appends.
    pub out: &'a mut Vec<Segment<P>>,
    /// Event subscriber.
    pub events: Events<'a>,
}

/// RFC 9293 §3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    /// Open.
    Established,
    /// We closed first; FIN not yet acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer still sends.
    FinWait2,
    /// The peer closed; we may still send.
    CloseWait,
    /// Both closed at once.
    Closing,
    /// The peer closed first, and our FIN awaits its ACK.
    LastAck,
    /// Waiting for old duplicates to die.
    TimeWait,
}

/// Counters since the start of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments sent that carry data.
    pub data_segments_sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub data_bytes_sent: u64,
    /// Data segments sent again.
    pub segments_retransmitted: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Pure acknowledgements sent (window updates and duplicate ACKs included).
    pub acks_sent: u64,
    /// Duplicate ACKs received (RFC 5681 §2).
    pub duplicate_acks_received: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// Reductions of cwnd for congestion: time-outs and fast retransmits, each congestion event once.
    pub cwnd_reductions: u64,
    /// Spurious retransmissions detected and undone (Eifel, F-RTO).
    pub spurious_detected: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Bytes of our data the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_delivered: u64,
    /// Data segments received.
    pub data_segments_received: u64,
    /// Data segments received that held nothing new (needless retransmissions).
    pub duplicate_segments_received: u64,
}

/// One end of a TCP connection: a state machine driven by segments, timers and application calls.
#[derive(Debug)]
pub struct Endpoint<P> {
    _p: std::marker::PhantomData<P>,
}

#[allow(unused_variables, clippy::todo)]
impl<P: Payload> Endpoint<P> {
    /// A closed endpoint. `flow.src` is the local address; `isn` our initial sequence number (draw it
    /// from a named random stream, so that wraparound happens).
    pub fn new(config: TcpConfig, flow: Flow, isn: SeqNum) -> Self {
        todo!()
    }
    /// Active open: sends SYN.
    pub fn connect(&mut self, now: Instant, io: &mut Io<'_, P>) {
        todo!()
    }
    /// Passive open.
    pub fn listen(&mut self) {
        todo!()
    }
    /// Queues data for sending; returns how many bytes (a prefix) the send buffer took.
    pub fn write(&mut self, now: Instant, data: &P, io: &mut Io<'_, P>) -> usize {
        todo!()
    }
    /// Free bytes in the send buffer; 0 before connect/listen and after close.
    pub fn send_space(&self) -> usize {
        todo!()
    }
    /// In-order bytes waiting for the application.
    pub fn readable(&self) -> usize {
        todo!()
    }
    /// Takes up to `max` in-order bytes; may send a window update.
    pub fn read(&mut self, now: Instant, max: usize, io: &mut Io<'_, P>) -> P {
        todo!()
    }
    /// No more data from us: FIN after what is queued (half close).
    pub fn close(&mut self, now: Instant, io: &mut Io<'_, P>) {
        todo!()
    }
    /// RST.
    pub fn abort(&mut self, now: Instant, io: &mut Io<'_, P>) {
        todo!()
    }
    /// A segment of this flow arrived.
    pub fn on_segment(&mut self, now: Instant, segment: Segment<P>, io: &mut Io<'_, P>) {
        todo!()
    }
    /// Call when `next_deadline()` has passed; harmless earlier.
    pub fn on_timer(&mut self, now: Instant, io: &mut Io<'_, P>) {
        todo!()
    }
    /// When `on_timer` is due. Moves with every call; re-read after each.
    pub fn next_deadline(&self) -> Option<Instant> {
        todo!()
    }
    /// State of the connection.
    pub fn state(&self) -> State {
        todo!()
    }
    /// The peer has sent FIN and everything before it has been read.
    pub fn is_eof(&self) -> bool {
        todo!()
    }
    /// Counters.
    pub fn stats(&self) -> &Stats {
        todo!()
    }
    /// Congestion window, bytes.
    pub fn cwnd(&self) -> u32 {
        todo!()
    }
    /// Slow-start threshold, bytes.
    pub fn ssthresh(&self) -> u32 {
        todo!()
    }
}
