//! Every setting of an endpoint, each with its source. The defaults follow the current RFCs;
//! studies override them with the values of their papers.

use airtcp_core::{Bytes, Duration};

/// The largest window that window scaling can express (RFC 7323 §2.3). Sums of two windows fit into
/// 32 bits.
pub(crate) const LARGEST_WINDOW: u32 = 1 << 30;

/// A configured size as a window.
pub(crate) fn window_bytes(size: Bytes) -> u32 {
    size.get().min(u64::from(LARGEST_WINDOW)) as u32
}

/// Configuration of one TCP endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpConfig {
    /// Largest payload we send and announce (RFC 9293 §3.7.1), in bytes. Options do not count (RFC
    /// 6691): a 1040-byte ns-2 packet is `mss = 1000`, and with timestamps each full segment is 12
    /// bytes longer on the wire, as in ns-2.
    pub mss: u16,
    /// Receive buffer: the largest window we advertise.
    pub receive_buffer: Bytes,
    /// Send buffer: bytes accepted from the application and not yet acknowledged.
    pub send_buffer: Bytes,
    /// Offer window scaling (RFC 7323 §2). Needed for windows above 65,535 bytes.
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323 §3).
    pub timestamps: bool,
    /// Congestion control: how cwnd and ssthresh move.
    pub congestion: Congestion,
    /// Loss recovery.
    pub recovery: Recovery,
    /// How SACK recovery estimates what is in the network.
    pub sack_pipe: SackPipe,
    /// Initial congestion window (RFC 5681 §3.1 by default).
    pub initial_window: InitialWindow,
    /// Initial slow-start threshold; `None`: arbitrarily high (RFC 5681 §3.1).
    pub initial_ssthresh: Option<Bytes>,
    /// What a loss halves.
    pub loss_window: LossWindow,
    /// The ACK that ends fast recovery also grows cwnd, like any other ACK (ns-2). RFC 5681 sets
    /// cwnd to ssthresh and leaves it there.
    pub grow_on_recovery_exit: bool,
    /// Upper bound of the congestion window (ns-2 `window_`, CWL); `None`: no bound.
    pub cwnd_limit: Option<Bytes>,
    /// Duplicate ACKs that trigger fast retransmit (RFC 5681: 3). At least 1.
    pub duplicate_ack_threshold: u32,
    /// Limited Transmit (RFC 3042).
    pub limited_transmit: bool,
    /// Appropriate Byte Counting (RFC 3465): the limit L in segments; `None`: one SMSS per ACK.
    pub abc: Option<u32>,
    /// Restart from the initial window after an idle RTO (RFC 5681 §4.1).
    pub slow_start_after_idle: bool,
    /// Detection of and response to spurious retransmissions.
    pub spurious: SpuriousDetection,
    /// Retransmission timer.
    pub rto: RtoConfig,
    /// Persist timer and rule.
    pub persist: PersistConfig,
    /// Acknowledgement policy of the receiver.
    pub ack: AckConfig,
    /// Nagle's algorithm (RFC 9293 §3.7.4): hold a small segment while data is unacknowledged.
    pub nagle: bool,
    /// TIME-WAIT: twice the maximum segment lifetime.
    pub time_wait: Duration,
    /// How a mobile host reacts to its radio's signals.
    pub on_link: LinkReaction,
    /// What a sender does when the network reports that the route to the peer is broken.
    pub on_route_failure: RouteConfig,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            mss: 1460,
            receive_buffer: Bytes(65_535),
            send_buffer: Bytes(262_144),
            window_scaling: false,
            timestamps: false,
            congestion: Congestion::Reno,
            recovery: Recovery::NewReno(NewRenoConfig::default()),
            sack_pipe: SackPipe::Rfc6675,
            initial_window: InitialWindow::Rfc5681,
            initial_ssthresh: None,
            loss_window: LossWindow::FlightSize,
            grow_on_recovery_exit: false,
            cwnd_limit: None,
            duplicate_ack_threshold: 3,
            limited_transmit: false,
            abc: None,
            slow_start_after_idle: true,
            spurious: SpuriousDetection::None,
            rto: RtoConfig::default(),
            persist: PersistConfig::default(),
            ack: AckConfig::Every,
            nagle: true,
            time_wait: Duration::from_secs(60),
            on_link: LinkReaction::None,
            on_route_failure: RouteConfig::Ignore,
        }
    }
}

/// The window that a loss halves to give ssthresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossWindow {
    /// FlightSize, in bytes (RFC 5681 eq. 4).
    FlightSize,
    /// min(cwnd, rwnd), with the half rounded down to whole segments (RFC 2001; ns-2, which counts
    /// in packets with `precisionReduce_ false`).
    SendWindow,
}

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Slow start, congestion avoidance and halving (RFC 5681 §3.1).
    Reno,
}

/// What is retransmitted after a loss, and what cwnd does until it is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Fast retransmit, then slow start from one segment.
    Tahoe {
        /// RFC 2582's guard against multiple fast retransmits in one window (ns-2 `bugFix_`).
        avoid_multi_fr: bool,
    },
    /// Fast recovery ended by any new ACK (RFC 5681 §3.2 without NewReno).
    Reno {
        /// As for Tahoe.
        avoid_multi_fr: bool,
    },
    /// RFC 6582.
    NewReno(NewRenoConfig),
    /// RFC 6675; negotiates SACK in the handshake and falls back to NewReno with a peer without it.
    Sack,
}

/// The estimate that decides when SACK recovery may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SackPipe {
    /// SetPipe, IsLost and NextSeg of RFC 6675: a hole counts as lost once DupThresh segments above
    /// it have arrived.
    Rfc6675,
    /// The counter of Fall and Floyd 1996 (ns-2 `Sack1`). It falls by three segments at entry, by
    /// one for each duplicate and by two for each partial ACK, and rises by what is sent. Every
    /// hole below the highest SACKed byte is retransmitted before new data.
    FallFloyd,
}

/// The choices that RFC 6582 leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRenoConfig {
    /// Partial window deflation on a partial ACK and the conservative exit (RFC 6582 §3.2 step 3).
    /// Otherwise each partial ACK and the exit set cwnd to ssthresh (ns-2
    /// `partial_window_deflation_ 0`, `exit_recovery_fix_ 0`).
    pub deflate: bool,
    /// Impatient: reset the retransmission timer on the first partial ACK only (RFC 6582 §4). ns-2
    /// is "slow but steady" and resets it on each.
    pub impatient: bool,
}

impl Default for NewRenoConfig {
    fn default() -> Self {
        Self { deflate: true, impatient: true }
    }
}

/// Initial congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// 2 to 4 segments by SMSS (RFC 5681 §3.1).
    Rfc5681,
    /// 10 segments (RFC 6928).
    Rfc6928,
    /// A fixed number of segments, at least 1.
    Segments(u32),
}

impl InitialWindow {
    /// In bytes, for a sender with this SMSS.
    pub fn bytes(self, smss: u32) -> u32 {
        match self {
            Self::Rfc5681 if smss > 2190 => 2 * smss,
            Self::Rfc5681 if smss > 1095 => 3 * smss,
            Self::Rfc5681 => 4 * smss,
            Self::Rfc6928 => (10 * smss).min(14_600.max(2 * smss)),
            Self::Segments(n) => n.max(1) * smss,
        }
    }
}

/// Detection of spurious retransmissions; the response is RFC 4015's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpuriousDetection {
    /// None.
    None,
    /// Eifel (RFC 3522): by timestamps, which must be enabled.
    Eifel,
    /// F-RTO (RFC 5682): by the ACKs after a time-out. It detects spurious time-outs only.
    FRto,
}

/// Retransmission timer (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// Before the first sample (RFC 6298 §2.1: 1 s).
    pub initial: Duration,
    /// Before the first sample, if the SYN had to be retransmitted (RFC 6298 §5.7: 3 s).
    pub after_syn_loss: Duration,
    /// Lower bound (RFC 6298 §2.4: 1 s).
    pub min: Duration,
    /// Upper bound, back-off included (RFC 6298 §2.5: at least 60 s).
    pub max: Duration,
    /// Clock granularity G of RFC 6298 §2.
    pub granularity: Duration,
    /// Coarse timer: RTT samples and time-outs are counted in ticks of this length. Zero: exact.
    pub tick: Duration,
    /// Retransmissions of one segment after which the next expiry aborts the connection (RFC 9293
    /// §3.8.3, R2). The same limit holds for a SYN.
    pub max_retransmissions: u32,
    /// What an expiry does to the time-out.
    pub policy: RtoPolicyConfig,
}

/// What an expiry of the retransmission timer does to the time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoPolicyConfig {
    /// Doubles it (RFC 6298 §5.5).
    Exponential,
}

impl Default for RtoConfig {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            after_syn_loss: Duration::from_secs(3),
            min: Duration::from_secs(1),
            max: Duration::from_secs(60),
            granularity: Duration::ZERO,
            tick: Duration::ZERO,
            max_retransmissions: 15,
            policy: RtoPolicyConfig::Exponential,
        }
    }
}

/// Zero windows (RFC 9293 §3.8.6.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PersistConfig {
    /// What a sender does when the window closes with data outstanding.
    pub on_shrink: PersistOnShrink,
    /// Time to the first probe; `None`: the current RTO.
    pub initial: Option<Duration>,
    /// Factor from one probe interval to the next (RFC 9293: 2), at least 1.
    pub backoff: f64,
    /// Longest interval.
    pub max: Duration,
}

impl Default for PersistConfig {
    fn default() -> Self {
        Self {
            on_shrink: PersistOnShrink::Strict,
            initial: None,
            backoff: 2.0,
            max: Duration::from_secs(60),
        }
    }
}

/// A window that closes while data is outstanding, as M-TCP makes it do (M-TCP §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersistOnShrink {
    /// Persist only with nothing outstanding; otherwise the retransmission timer runs on (M-TCP+
    /// §2.4).
    Strict,
    /// 4.4BSD: cancel the retransmission timer, pull SND.NXT back to SND.UNA, persist.
    Bsd,
    /// Linux: keep retransmitting with back-off, but never abort while the peer answers.
    Linux,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckConfig {
    /// Each segment.
    Every,
    /// RFC 1122 §4.2.3.2 and RFC 5681 §4.2: every `segments`-th full-sized segment, or after
    /// `timeout` (at most 500 ms); at once on out-of-order data or a filled gap.
    Delayed {
        /// Full-sized segments per ACK (usually 2).
        segments: u32,
        /// Longest delay.
        timeout: Duration,
    },
}

/// What a mobile host does when its radio reports on the link ([`crate::Endpoint::on_link`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkReaction {
    /// Nothing.
    #[default]
    None,
    /// M-TCP's mobile host (M-TCP §3.3): on reconnection one pure ACK, with the last ACK number and
    /// the window.
    RecoveryAck,
    /// Freeze-TCP (Goff et al. 2000): close the window before an outage, reopen it after.
    Freeze,
}

/// What a sender does when a route breaks ([`crate::Endpoint::on_route_failure`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteConfig {
    /// Nothing: the retransmission timer deals with it.
    Ignore,
}
