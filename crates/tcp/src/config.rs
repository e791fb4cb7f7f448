//! Every setting of an endpoint, each with its source. The defaults follow the current RFCs;
//! [presets](crate::preset) and studies override them.

use crate::route::Thaw;
use crate::rto::{MAX_UPTIME, TimerWheel};
use airtcp_core::{Bytes, DataRate, Duration};
use airtcp_settings::schema::{Fallback, Field, Kind, POSITIVE_TIME, Word, field};
use airtcp_settings::{Decoded, Reader, Value, WordOrSegments, alternatives, choice, settings};

/// The end of a flow to which a setting matters, if only one.
pub const SENDER: &str = "a flow's sender";
/// The other end of a flow.
pub const RECEIVER: &str = "a flow's receiver";

/// No window is larger than window scaling can express (RFC 7323 §2.3), so that sums of windows fit
/// in 32 bits.
pub(crate) const LARGEST_WINDOW: u32 = 1 << 30;

/// Initial window with autotuning: half of the second value of Linux's tcp_rmem, 131,072. Until
/// data comes, Linux takes the other half for overhead (`TCP_DEFAULT_SCALING_RATIO`).
pub(crate) const FIRST_WINDOW: Bytes = Bytes(64 << 10);

/// A configured size as a window.
pub(crate) fn window_bytes(size: Bytes) -> u32 {
    size.get().min(u64::from(LARGEST_WINDOW)) as u32
}

/// The largest payload of an IPv4 packet without TCP options.
pub const MAX_MSS: u64 = 65_495;
/// Bytes that timestamps take of each segment (RFC 7323 appendix A).
pub(crate) const TIMESTAMPS_LEN: u16 = 12;
/// RFC 7323 §2.3: the largest window, 65,535 · 2^14.
const WINDOW: Kind = Kind::Size { min: 1, max: 65_535 << 14 };
/// Appropriate Byte Counting without a limit.
pub const ABC_UNLIMITED: u32 = 1_000_000;
/// Any positive count.
const COUNT: Kind = Kind::Integer { min: 1, max: 1_000_000 };
const UPTIME: Kind = Kind::Duration { min: Duration::ZERO, max: MAX_UPTIME };
const NEWRENO: &[&str] = &[Recovery::NewReno.word()];
const SACK: &[&str] = &[Recovery::Sack.word()];
const ACCECN: &[&str] = &["accecn"];
const RFC6298: &[&str] = &[RttVariation::Rfc6298.word()];
const CUSTOM: &[&str] = &["custom"];

settings! {
    /// An endpoint. `[tcp]` applies to both ends of every flow; a flow's `sender` and `receiver`
    /// override single keys of it.
    #[derive(Clone, Debug, PartialEq)]
    #[table("tcp")]
    #[check(is_consistent)]
    pub struct TcpConfig {
        /// Largest payload sent, if the peer announces as much. SYNs announce 12 bytes more with
        /// timestamps, which take that room in every segment. A 1040-byte ns-2 packet is `1000 B`.
        #[kind = Kind::Size { min: 1, max: MAX_MSS }]
        #[source = "RFC 9293 §3.7.1, RFC 6691"]
        pub mss: u16 = 1460,
        /// Largest window advertised; above 65,535 B it needs `window-scaling`.
        #[kind = WINDOW]
        #[source = "RFC 9293 §3.8"]
        #[matters_to = RECEIVER]
        pub receive_buffer: Bytes = Bytes(65_535),
        /// Begin with a window of 64 KiB and let it grow up to `receive-buffer` with what the
        /// application reads in a round trip. Otherwise it is `receive-buffer` from the beginning.
        #[source = "Fisk and Feng 2001; Linux tcp_rcv_space_adjust"]
        #[matters_to = RECEIVER]
        pub autotuning: bool = false,
        /// Most bytes accepted from the application and not yet acknowledged; at least an MSS. It
        /// limits a bulk sender whose congestion window is larger. Linux's buffer grows to twice
        /// the congestion window (`tcp_sndbuf_expand`), so that only its largest size limits the
        /// sender.
        #[kind = WINDOW]
        #[matters_to = SENDER]
        pub send_buffer: Bytes = Bytes(256 << 10),
        /// Offer window scaling.
        #[source = "RFC 7323 §2"]
        pub window_scaling: bool = false,
        /// Offer the timestamps option.
        #[source = "RFC 7323 §3"]
        pub timestamps: bool = false,
        /// Congestion control: how the congestion window moves.
        #[keys_of(Congestion)]
        pub congestion: Congestion = Congestion::Reno,
        /// Name of the congestion control that the caller of the simulator supplies
        /// (docs/strategies.md).
        #[absent = "none"]
        #[only("congestion" in CUSTOM)]
        #[matters_to = SENDER]
        pub control: Option<String> = None,
        /// Loss recovery: retransmission, and cwnd until the loss is repaired.
        #[keys_of(Recovery)]
        pub recovery: Recovery = Recovery::default(),
        /// Choices that RFC 6582 leaves open.
        #[absent = "its defaults"]
        #[only("recovery" in NEWRENO)]
        #[matters_to = SENDER]
        pub newreno: NewRenoConfig = NewRenoConfig::default(),
        /// Estimate of the data in the network for SACK recovery.
        #[source = "RFC 6675 §4"]
        #[only("recovery" in SACK)]
        #[matters_to = SENDER]
        pub sack_pipe: SackPipe = SackPipe::Rfc6675,
        /// Initial congestion window.
        #[source = "RFC 5681 §3.1, RFC 6928"]
        #[matters_to = SENDER]
        pub initial_window: InitialWindow = InitialWindow::Rfc5681,
        /// Losses of the SYN or SYN-ACK after which cwnd still begins with the initial window;
        /// after more it begins with one segment.
        #[kind = Kind::Integer { min: 0, max: 1_000_000 }]
        #[source = "RFC 5681 §3.1; Linux tcp_init_transfer"]
        #[matters_to = SENDER]
        pub syn_losses: u32 = 0,
        /// Initial slow-start threshold.
        #[kind = Kind::WordOr("unlimited", &WINDOW)]
        #[source = "RFC 5681 §3.1"]
        #[matters_to = SENDER]
        pub initial_ssthresh: Option<Bytes> = None,
        /// Window that a loss halves.
        #[source = "RFC 5681 §3.1 eq. 4"]
        #[matters_to = SENDER]
        pub loss_window: LossWindow = LossWindow::FlightSize,
        /// Effect on ssthresh of the second and every further time-out of the same segment.
        #[source = "RFC 5681 §3.1"]
        #[matters_to = SENDER]
        pub repeated_timeout: RepeatedTimeout = RepeatedTimeout::Keep,
        /// The ACK that ends fast recovery without SACK also grows cwnd, like any other ACK (ns-2).
        /// RFC 5681 sets cwnd to ssthresh and leaves it there.
        #[matters_to = SENDER]
        pub grow_on_recovery_exit: bool = false,
        /// Upper bound of the congestion window (ns-2 `window_`, CWL); at least an MSS.
        #[kind = Kind::WordOr("unlimited", &WINDOW)]
        #[matters_to = SENDER]
        pub cwnd_limit: Option<Bytes> = None,
        /// Bound the congestion window by the number of hops as well: a segment for every five hops
        /// of the round trip, and at least two.
        #[source = "Chen, Xue and Nahrstedt 2003"]
        #[matters_to = SENDER]
        pub cwnd_limit_by_hops: bool = false,
        /// Duplicate ACKs that trigger fast retransmit.
        #[kind = COUNT]
        #[source = "RFC 5681 §3.2"]
        #[matters_to = SENDER]
        pub duplicate_ack_threshold: u32 = 3,
        /// Send a new segment on each of the first duplicate ACKs.
        #[source = "RFC 3042"]
        #[matters_to = SENDER]
        pub limited_transmit: bool = false,
        /// Appropriate Byte Counting: the limit L, in segments. 1000000 means no limit, not even
        /// after a time-out; bytes beyond ssthresh then count for congestion avoidance (Linux).
        #[kind = Kind::WordOr("off", &COUNT)]
        #[source = "RFC 3465"]
        #[matters_to = SENDER]
        pub abc: Option<u32> = None,
        /// Treatment of a congestion window that is not fully used.
        #[source = "RFC 7661, RFC 2861, RFC 9438 §5.8"]
        #[matters_to = SENDER]
        pub cwnd_validation: CwndValidation = CwndValidation::Growth,
        /// Restart from the initial window after an idle RTO.
        #[source = "RFC 5681 §4.1"]
        #[matters_to = SENDER]
        pub slow_start_after_idle: bool = true,
        /// Detection of spurious retransmissions; the response is RFC 4015's.
        #[source = "RFC 3522, RFC 5682, RFC 4015"]
        #[matters_to = SENDER]
        pub spurious: SpuriousDetection = SpuriousDetection::None,
        /// Settings of the retransmission timer.
        #[absent = "its defaults"]
        pub rto: RtoConfig = RtoConfig::default(),
        /// Longest time that data may stay unacknowledged after the first time-out, or the peer's
        /// window stay closed after the first probe; then the connection is aborted. It replaces
        /// the limits on retransmissions and probes. As Linux's `TCP_USER_TIMEOUT`; RFC 5482 counts
        /// from the data's first transmission.
        #[kind = Kind::WordOr("off", &POSITIVE_TIME)]
        #[source = "RFC 9293 §3.9.1; RFC 5482; Linux tcp_write_timeout, tcp_probe_timer"]
        #[matters_to = SENDER]
        pub user_timeout: Option<Duration> = None,
        /// Explicit congestion notification: queues mark data instead of dropping it. Both ends
        /// must agree, and the sender needs `recovery = "rack"`.
        #[source = "RFC 3168, RFC 8257, RFC 9768"]
        pub ecn: EcnConfig = EcnConfig::Off,
        /// When to send an option of 12 bytes that counts marked bytes. Without it the sender has
        /// only three bits of the header, and assumes the worst if ACKs are few.
        #[source = "RFC 9768 §3.2.3"]
        #[only("ecn" in ACCECN)]
        pub accecn_option: AccEcnOptions = AccEcnOptions::Always,
        /// Frequency of the host's timer interrupt. Linux's timers expire at its ticks, and the
        /// longer they run the coarser they are: up to 32 ms late from 0.25 s on, 256 ms from 2 s
        /// and 2 s from 16 s (at 250).
        #[kind = Kind::WordOr("exact", &Kind::Integer { min: 100, max: 1000 })]
        #[matters_to = SENDER]
        pub timer_hz: Option<u32> = None,
        /// Uptime of the host at the start of the run, which sets the phase of its ticks. `random`
        /// draws it for each node and run, up to an hour.
        #[kind = Kind::WordOr("random", &UPTIME)]
        #[matters_to = SENDER]
        pub uptime: Option<Duration> = None,
        /// Behaviour under zero windows.
        #[absent = "its defaults"]
        #[matters_to = SENDER]
        pub persist: PersistConfig = PersistConfig::default(),
        /// The receiver's acknowledgement policy.
        #[absent = "its defaults"]
        #[matters_to = RECEIVER]
        pub ack: AckConfig = AckConfig::default(),
        /// Spread transmissions over the round trip: 1.2 windows per round trip, or two in the
        /// first half of slow start. As on Linux if a queue discipline such as fq paces.
        #[source = "Aggarwal, Savage, Anderson 2000; Linux tcp_update_pacing_rate"]
        #[matters_to = SENDER]
        pub pacing: bool = false,
        /// When to hold back a segment smaller than the MSS.
        #[source = "RFC 9293 §3.7.4"]
        #[matters_to = SENDER]
        pub nagle: Nagle = Nagle::On,
        /// TIME-WAIT: twice the maximum segment lifetime.
        #[source = "RFC 9293 §3.4.2"]
        pub time_wait: Duration = Duration::from_secs(60),
        /// Reaction of this end when its node's radio reports an outage of the node.
        #[source = "M-TCP §3.3; Freeze-TCP (Goff et al. 2000)"]
        pub on_link: LinkReaction = LinkReaction::None,
        /// Reaction of a sender when the network reports that the route to the peer is broken.
        #[keys_of(RouteConfig)]
        pub on_route_failure: RouteConfig = RouteConfig::Ignore,
    }
}

impl TcpConfig {
    /// MSS announced in a SYN: the room for payload and options (RFC 6691).
    pub(crate) fn announced_mss(&self) -> u16 {
        let options = if self.timestamps { TIMESTAMPS_LEN } else { 0 };
        self.mss.saturating_add(options)
    }

    /// Rounding of the timers of a host with this uptime at the start of time.
    pub(crate) fn timer_wheel(&self, uptime: Duration) -> Option<TimerWheel> {
        self.timer_hz.map(|hz| TimerWheel::new(hz, uptime))
    }

    /// True if the window grows: its initial size is below its maximum.
    pub fn autotunes(&self) -> bool {
        self.autotuning && self.receive_buffer > FIRST_WINDOW
    }

    /// The shortest time for which a timer is set: two ticks (Linux: `TCP_TIMEOUT_MIN_US`).
    pub(crate) fn timer_floor(&self) -> Duration {
        self.timer_hz.map_or(Duration::ZERO, |hz| Duration::from_secs(2) / u64::from(hz))
    }
}

fn is_consistent<R: Reader>(from: &R, tcp: &TcpConfig) {
    if tcp.congestion == Congestion::Custom && tcp.control.is_none() {
        from.refuse(Some("control"), "missing".to_owned(), "the name of the congestion control");
    }
    if tcp.timer_hz.is_none() && from.written("uptime") {
        from.refuse(Some("uptime"), "has no effect on exact timers".to_owned(), "timer-hz = 250");
    }
    let mss = Bytes(tcp.mss.into());
    if mss.get() > MAX_MSS - u64::from(TIMESTAMPS_LEN) && tcp.timestamps {
        let message = format!("{mss} and timestamps exceed an IP packet");
        let expected = format!("at most {} B with timestamps", MAX_MSS - u64::from(TIMESTAMPS_LEN));
        from.refuse(Some("mss"), message, &expected);
    }
    if mss > tcp.send_buffer {
        let message = format!("{mss} is larger than the send buffer of {}", tcp.send_buffer);
        from.refuse(Some("mss"), message, "at most send-buffer");
    }
    if let Some(limit) = tcp.cwnd_limit
        && limit < mss
    {
        let message = format!("{limit} is smaller than a segment of {mss}");
        from.refuse(Some("cwnd-limit"), message, "at least mss");
    }
}

choice! {
    /// Window that a loss halves to give ssthresh.
    pub enum LossWindow {
        /// FlightSize, in bytes
        FlightSize = "flight-size",
        /// the smaller of cwnd and the peer's window, with the half rounded down to whole segments
        /// (RFC 2001; ns-2, `precisionReduce_ false`)
        SendWindow = "send-window",
        /// cwnd, which is validated (Linux)
        Cwnd = "cwnd",
    }
}

choice! {
    /// Explicit congestion notification.
    pub enum EcnConfig {
        /// neither offered nor accepted
        Off = "off",
        /// the receiver echoes a mark until the sender has answered it, once a round trip (RFC
        /// 3168)
        Rfc3168 = "rfc3168",
        /// the receiver echoes exactly which data was marked, as `dctcp` and `prague` need it (RFC
        /// 8257 §3.2)
        Dctcp = "dctcp",
        /// the receiver counts marked segments and bytes, and each ACK reports the counts: for any
        /// congestion control, `dctcp` and `prague` included (AccECN, RFC 9768); with a peer that
        /// supports only RFC 3168, as `rfc3168`
        AccEcn = "accecn",
    }
}

choice! {
    /// Segments that carry the AccECN option.
    pub enum AccEcnOptions {
        /// on no segment
        Never = "never",
        /// on two ACKs after each mark and each change of the ECN field, and three times a round
        /// trip
        Changes = "changes",
        /// on every segment, if the peer's options get through
        Always = "always",
    }
}

choice! {
    /// Treatment of a congestion window that the application or the peer's window leaves partly
    /// unused.
    pub enum CwndValidation {
        /// it grows regardless (RFC 5681 is silent; ns-2)
        Off = "off",
        /// it does not grow (RFC 7661 §4.2, RFC 9438 §5.8)
        Growth = "growth",
        /// it does not grow; after each RTO half of the unused part is taken away, after an idle
        /// RTO half of the whole (RFC 2861, Linux)
        Decay = "decay",
    }
}

choice! {
    /// Effect on ssthresh of the second and every further time-out of the same segment.
    pub enum RepeatedTimeout {
        /// leaves it as the first one set it
        Keep = "keep",
        /// reduces it to two segments (ns-2, which halves a cwnd of one segment)
        Cut = "cut",
    }
}

alternatives! {
    /// Congestion control algorithm.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[choice("congestion", "Congestion control: how the congestion window moves.")]
    #[absent(Congestion::Reno)]
    #[source = "RFC 5681 §3.1"]
    #[matters_to = SENDER]
    pub enum Congestion {
        /// slow start, congestion avoidance, halving (RFC 5681)
        "reno" => Reno,
        /// Reno with a larger window after a time-out that one or two duplicate ACKs preceded (TCP
        /// Karak)
        "karak" => Karak(
            /// Settings of TCP Karak.
            #[absent = "its defaults"]
            #[matters_to = SENDER]
            karak: KarakConfig = KarakConfig::default()
        ),
        /// Reno with losses answered by an estimate of the bandwidth (Westwood+, Grieco and Mascolo
        /// 2004)
        "westwood" => Westwood,
        /// Reno that takes a loss for random while few segments are in queues (Veno, Fu and Liew
        /// 2003)
        "veno" => Veno,
        /// growth on a cubic curve in time, and 0.7 of the window after a loss (RFC 9438)
        "cubic" => Cubic(
            /// Settings of CUBIC.
            #[absent = "its defaults"]
            #[matters_to = SENDER]
            cubic: CubicConfig = CubicConfig::default()
        ),
        /// paced at the bandwidth that the path shows, with little more in the network than it
        /// holds (BBR version 1, as Linux has it)
        "bbr" => Bbr,
        /// BBR with the volume in flight bounded by what losses show (BBR version 3,
        /// draft-ietf-ccwg-bbr)
        "bbr3" => Bbr3,
        /// Reno that answers ECN marks by the share of data that is marked (DCTCP, RFC 8257)
        "dctcp" => Dctcp,
        /// DCTCP for the Internet, with data marked as L4S and the RTT counting less (Prague,
        /// draft-briscoe-iccrg-prague-congestion-control)
        "prague" => Prague,
        /// Reno with segments spaced by the delay over four hops (TCP-AP, ElRakabawy, Klemm and
        /// Lindemann 2005)
        "adaptive-pacing" => AdaptivePacing(
            /// Settings of TCP-AP.
            #[absent = "its defaults"]
            #[matters_to = SENDER]
            adaptive_pacing: AdaptivePacingConfig = AdaptivePacingConfig::default()
        ),
        /// the one that `control` names, from outside airtcp
        "custom" => Custom,
    }
}

settings! {
    /// Choices that TCP Karak leaves open.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[table("tcp.karak")]
    pub struct KarakConfig {
        /// Raise an eighth or a quarter of cwnd to the next power of two even if it is a power of
        /// two already.
        #[source = "TCP Karak §3"]
        pub strict: bool = false,
        /// A time-out leaves ssthresh as it is, as in the pseudo-code. Else it becomes half of
        /// FlightSize (RFC 5681 §3.1).
        #[source = "TCP Karak Table 1"]
        pub keep_ssthresh: bool = false,
        /// Time-outs of a connection to which the rule applies; later ones are NewReno's, but count
        /// as `larger_restarts`. 0: NewReno, with that count.
        #[kind = Kind::WordOr("unlimited", &Kind::Integer { min: 0, max: 1_000_000 })]
        pub limit: Option<u32> = None,
    }
}

settings! {
    /// Settings of CUBIC.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[table("tcp.cubic", by_preset)]
    pub struct CubicConfig {
        /// Implementation of CUBIC.
        pub variant: CubicVariant = CubicVariant::Rfc9438,
        /// Give way to other flows after a loss below the window of the previous loss.
        #[source = "RFC 9438 §4.7"]
        pub fast_convergence: bool = true,
        /// Early end of slow start, before a loss.
        #[source = "RFC 9406, RFC 9438 §4.10"]
        pub hystart: HyStartConfig = HyStartConfig::Off,
    }
}

choice! {
    /// Implementation of CUBIC.
    pub enum CubicVariant {
        /// the standard's (RFC 9438)
        Rfc9438 = "rfc9438",
        /// Linux's: in whole segments, with less of Reno's growth
        Linux = "linux",
    }
}

choice! {
    /// Early end of slow start, before a loss. All but `off` need timestamps.
    pub enum HyStartConfig {
        /// only a loss ends it
        Off = "off",
        /// after ACKs that come for half of the RTT, or after a rise of the RTT; in each slow start
        /// (Ha and Rhee 2011, as Linux has it)
        HyStart = "hystart",
        /// after a rise of the RTT and five rounds of slower growth; in the first slow start only
        /// (HyStart++, RFC 9406)
        PlusPlus = "hystart++",
    }
}

settings! {
    /// Properties of the links that TCP-AP knows.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[table("tcp.adaptive-pacing")]
    pub struct AdaptivePacingConfig {
        /// Rate of every link on the path.
        #[source = "ElRakabawy, Klemm and Lindemann 2005"]
        pub link_rate: DataRate = DataRate::mbps(2),
    }
}

alternatives! {
    /// Retransmission after a loss, and cwnd until the loss is repaired.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[choice("recovery", "Loss recovery: retransmission, and cwnd until the loss is repaired.")]
    #[absent(Recovery::NewReno)]
    #[source = "RFC 5681 §3.2"]
    pub enum Recovery {
        /// fast retransmit, then slow start from one segment
        "tahoe" => Tahoe {
            /// Guard against several fast retransmits in one window.
            #[like(AVOID_MULTI_FR)]
            avoid_multi_fr: bool = false,
        },
        /// fast recovery ended by any new ACK
        "reno" => Reno {
            /// Guard against several fast retransmits in one window.
            #[like(AVOID_MULTI_FR)]
            avoid_multi_fr: bool = false,
        },
        /// fast recovery that outlasts partial ACKs (RFC 6582)
        "newreno" => NewReno,
        /// retransmission of the holes that SACK shows (RFC 6675); both ends must offer it,
        /// otherwise NewReno is used
        "sack" => Sack,
        /// loss detection by time, with tail loss probes (RACK-TLP, RFC 8985), proportional rate
        /// reduction (RFC 9937) and undo by DSACK, timestamps and F-RTO, all together as in Linux;
        /// both ends must offer SACK, otherwise NewReno is used
        "rack" => Rack(
            /// Choices that RFC 8985 leaves open.
            #[absent = "its defaults"]
            #[matters_to = SENDER]
            rack: RackConfig = RackConfig::default()
        ),
    }
}

impl Recovery {
    /// True for RACK-TLP.
    pub fn is_rack(self) -> bool {
        matches!(self, Self::Rack(_))
    }

    /// RACK's settings; `None` for other recoveries.
    pub fn rack(self) -> Option<RackConfig> {
        match self {
            Self::Rack(rack) => Some(rack),
            _ => None,
        }
    }

    /// True if it needs SACK, which both ends must offer.
    pub fn needs_sack(self) -> bool {
        matches!(self, Self::Sack | Self::Rack(_))
    }
}

settings! {
    /// Choices that RFC 8985 and RFC 5682 leave open.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[table("tcp.rack")]
    pub struct RackConfig {
        /// Probe the tail of a flight after two round trips without an ACK.
        #[source = "RFC 8985 §7"]
        pub tail_loss_probe: bool = true,
        /// Longest delay of the receiver's ACKs that the sender assumes: a lone segment is probed
        /// that much later.
        #[source = "RFC 8985 §7.2"]
        pub max_ack_delay: Duration = Duration::from_millis(200),
    }
}

const AVOID_MULTI_FR: Field = field(
    "avoid-multi-fr",
    Kind::Bool,
    Fallback::Required,
    "Guard against several fast retransmits in one window (ns-2 `bugFix_`).",
)
.source("RFC 2582 §5")
.matters_to(SENDER);

choice! {
    /// The estimate that decides when SACK recovery may send.
    pub enum SackPipe {
        /// SetPipe, IsLost and NextSeg of RFC 6675: a hole counts as lost once the duplicate-ACK
        /// threshold of segments above it has arrived
        Rfc6675 = "rfc6675",
        /// the counter of Fall and Floyd 1996, as in ns-2's Sack1: minus three segments at entry,
        /// one for each duplicate and two for each partial ACK, plus what is sent; every hole below
        /// the highest SACKed byte is retransmitted before new data
        FallFloyd = "fall-floyd",
    }
}

settings! {
    /// Choices that RFC 6582 leaves open.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[table("tcp.newreno", by_preset)]
    pub struct NewRenoConfig {
        /// Partial window deflation on a partial ACK and the conservative exit; `false`: cwnd =
        /// ssthresh in both cases, as in ns-2 with `partial_window_deflation_ 0` (its default until
        /// 2003) and `exit_recovery_fix_ 0`.
        #[source = "RFC 6582 §3.2 step 3"]
        pub deflate: bool = true,
        /// Reset the retransmission timer on the first partial ACK only. Linux, and ns-2 with
        /// `newreno_changes1_ 0` (its default until 2003), reset it on each ("slow but steady").
        #[source = "RFC 6582 §4"]
        pub impatient: bool = true,
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

const INITIAL_WINDOWS: &[Word] =
    &[("rfc5681", "2 to 4 segments, depending on their size"), ("rfc6928", "10 segments")];

impl Value for InitialWindow {
    const KIND: Kind = Kind::ChoiceOrSegments(INITIAL_WINDOWS);
    fn from_decoded(decoded: Decoded) -> Option<Self> {
        match decoded {
            Decoded::WordOrSegments(WordOrSegments::Word(word)) => [Self::Rfc5681, Self::Rfc6928]
                .into_iter()
                .find(|window| window.show(&Self::KIND).as_deref() == Some(word)),
            Decoded::WordOrSegments(WordOrSegments::Segments(n)) => Some(Self::Segments(n.into())),
            _ => None,
        }
    }
    fn show(&self, _: &Kind) -> Option<String> {
        Some(match self {
            Self::Rfc5681 => "rfc5681".to_owned(),
            Self::Rfc6928 => "rfc6928".to_owned(),
            Self::Segments(n) => format!("{n} segments"),
        })
    }
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

choice! {
    /// Detection of spurious retransmissions; the response is RFC 4015's.
    pub enum SpuriousDetection {
        /// detection is off
        None = "none",
        /// by timestamps, which both ends must offer (RFC 3522)
        Eifel = "eifel",
        /// by the ACKs after a time-out (RFC 5682); time-outs only
        FRto = "f-rto",
    }
}

settings! {
    /// Settings of the retransmission timer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[table("tcp.rto", by_preset)]
    #[check(bounds_ascend)]
    pub struct RtoConfig {
        /// Time-out before the first RTT sample.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 6298 §2.1"]
        pub initial: Duration = Duration::from_secs(1),
        /// Time-out for data when the SYN had to be retransmitted.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 6298 §5.7"]
        pub after_syn_loss: Duration = Duration::from_secs(3),
        /// Lower bound of the time-out.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 6298 §2.4"]
        pub min: Duration = Duration::from_secs(1),
        /// Upper bound of the time-out, back-off included.
        #[kind = POSITIVE_TIME]
        #[source = "RFC 6298 §2.5"]
        pub max: Duration = Duration::from_secs(60),
        /// Multiplies the time-out within its lower bound (TCP-DAA: 5).
        #[kind = COUNT]
        #[source = "TCP-DCA Table II"]
        pub factor: u32 = 1,
        /// Term that the time-out adds to SRTT.
        pub variation: RttVariation = RttVariation::Rfc6298,
        /// Clock granularity G.
        #[source = "RFC 6298 §2"]
        #[only("variation" in RFC6298)]
        pub granularity: Duration = Duration::ZERO,
        /// Coarse timer: samples and time-outs are counted in ticks of this length; 0: exact.
        pub tick: Duration = Duration::ZERO,
        /// Retransmissions of one segment, or of a SYN, after which the next expiry of the timer
        /// aborts the connection.
        #[kind = Kind::Integer { min: 0, max: 1_000_000 }]
        #[source = "RFC 9293 §3.8.3"]
        pub max_retransmissions: u32 = 15,
        /// Time-outs of a SYN, but not of a SYN-ACK, before the next ones double.
        #[kind = Kind::Integer { min: 0, max: 1_000_000 }]
        #[source = "Linux, tcp_syn_linear_timeouts"]
        pub linear_syn_timeouts: u32 = 0,
        /// Effect of an expiry on the time-out.
        pub policy: RtoPolicyConfig = RtoPolicyConfig::Exponential,
    }
}

choice! {
    /// Term that the retransmission time-out adds to SRTT.
    pub enum RttVariation {
        /// four times RTTVAR, at least the granularity (RFC 6298 §2.3)
        Rfc6298 = "rfc6298",
        /// at least `min`, and the variation of the last round trips: the largest mean deviation of
        /// each counts, and decays by a quarter a round trip (Linux, tcp_rtt_estimator)
        Linux = "linux",
    }
}

choice! {
    /// Effect of an expiry of the retransmission timer on the time-out.
    pub enum RtoPolicyConfig {
        /// doubles it (RFC 6298 §5.5)
        Exponential = "exponential",
        /// doubles it once; further expiries without an ACK between them leave it (Fixed RTO, Dyer
        /// and Boppana 2001)
        Fixed = "fixed",
        /// leaves it (TCP-AP)
        Constant = "constant",
    }
}

fn bounds_ascend<R: Reader>(from: &R, &RtoConfig { min, max, .. }: &RtoConfig) {
    if min > max {
        let key = if from.written("min") { "min" } else { "max" };
        let message = format!("the lower bound {min} is above the upper bound {max}");
        from.refuse(Some(key), message, "min at most max");
    }
}

settings! {
    /// Reaction of a sender when its peer closes the window.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[table("tcp.persist", by_preset)]
    #[check(intervals_grow)]
    pub struct PersistConfig {
        /// Reaction to a window that closes while data is outstanding.
        #[source = "M-TCP+ §1"]
        pub on_shrink: PersistOnShrink = PersistOnShrink::Strict,
        /// Time to the first probe; `rto`: the current retransmission time-out.
        #[kind = Kind::WordOr("rto", &POSITIVE_TIME)]
        pub initial: Option<Duration> = None,
        /// Factor from one probe interval to the next.
        #[kind = Kind::Number { min: 1.0, max: 1e6, above: false }]
        #[source = "RFC 9293 §3.8.6.1"]
        pub backoff: f64 = 2.0,
        /// Longest interval between probes.
        #[kind = POSITIVE_TIME]
        pub max: Duration = Duration::from_secs(60),
    }
}

fn intervals_grow<R: Reader>(from: &R, &PersistConfig { initial, max, .. }: &PersistConfig) {
    if let Some(initial) = initial
        && initial > max
    {
        let message = format!("the first interval {initial} is above the longest, {max}");
        from.refuse(Some("initial"), message, "initial at most max");
    }
}

choice! {
    /// Nagle's algorithm: when a segment smaller than the MSS waits for more data.
    pub enum Nagle {
        /// never (TCP_NODELAY)
        Off = "off",
        /// while any data is unacknowledged
        On = "on",
        /// while another small segment is unacknowledged, so that the tail of a large write leaves
        /// with it (Minshall 1998, as Linux)
        Minshall = "minshall",
    }
}

choice! {
    /// Reaction to a window that closes while data is outstanding, as M-TCP's supervisor host makes
    /// it do (M-TCP §3.1).
    pub enum PersistOnShrink {
        /// persist only with nothing outstanding; otherwise the retransmission timer runs on
        Strict = "strict",
        /// cancel the retransmission timer, go back to the first unacknowledged byte, persist
        /// (4.4BSD)
        Bsd = "bsd",
        /// keep retransmitting with back-off, but never abort while the peer answers
        Linux = "linux",
    }
}

alternatives! {
    /// The receiver's acknowledgement policy.
    ///
    /// All but `every` delay ACKs, for at most 500 ms (RFC 5681 §4.2). All acknowledge out-of-order
    /// data, filled gaps and duplicates at once.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[table("tcp.ack", by_preset)]
    #[choice("policy", "The receiver's acknowledgement policy.")]
    #[absent(AckConfig::Every)]
    #[source = "RFC 1122 §4.2.3.2, RFC 5681 §4.2"]
    pub enum AckConfig {
        /// each segment, at once
        "every" => Every,
        /// every `segments`-th full-sized segment or after `timeout`; at once on out-of-order data
        /// or a filled gap
        "delayed" => Delayed {
            /// Full-sized segments per ACK.
            #[kind = Kind::Integer { min: 2, max: 1_000_000 }]
            #[source = "RFC 5681 §4.2"]
            segments: u32 = 2,
            /// Longest delay of an ACK.
            #[kind = DELAY]
            #[source = "RFC 1122 §4.2.3.2"]
            timeout: Duration = Duration::from_millis(200),
            /// Segments acknowledged at once when the connection begins, and again after a segment
            /// with nothing new or a silence of more than an RTO (Linux's quick ACKs).
            #[kind = Kind::Integer { min: 0, max: 1_000_000 }]
            quick: u32 = 0,
        },
        /// a delay window of segments, which is the sender's cwnd but smaller on long paths, or
        /// after the time they should take; both ends must use it (TCP-DCA)
        "dca" => Dca(..DcaConfig),
        /// every one to four segments, fewer after a loss (the receiver of TCP-DAA; its sender has
        /// `duplicate-ack-threshold = 2`, `cwnd-limit` of 4 segments and `rto.factor = 5`)
        "daa" => Daa(..DaaConfig),
        /// when a burst of the sender's has ended (TCP-ADA)
        "ada" => Ada(..AdaConfig),
        /// every one to four segments, more the longer the connection lasts (Altman and Jiménez
        /// 2003)
        "altman" => Altman {
            /// Longest delay of an ACK that covers several segments.
            #[kind = DELAY]
            #[source = "Altman and Jiménez 2003"]
            timeout: Duration = Duration::from_millis(100),
        },
    }
}

/// RFC 5681 §4.2: an ACK is delayed for at most 500 ms.
const DELAY: Kind =
    Kind::Duration { min: Duration::from_nanos(1), max: Duration::from_millis(500) };
/// A number of inter-arrival times.
const SPACINGS: Kind = Kind::Number { min: 0.0, max: 1e6, above: true };

settings! {
    /// Delayed cumulative ACKs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DcaConfig {
        /// Bound the delay window by the number of hops: to 5 segments beyond 3 hops, to 3 from 10
        /// hops on.
        #[source = "TCP-DCA Table I"]
        pub hop_rule: bool = true,
        /// Bound the delay window to 5 segments while the smallest RTT is above 80 ms. The receiver
        /// measures it by timestamps, which both ends must offer.
        #[source = "TCP-DCA §V.B"]
        pub delay_rule: bool = false,
        /// Bound the delay window to this many segments.
        #[kind = Kind::WordOr("unlimited", &COUNT)]
        #[source = "TCP-DCA §III.A"]
        pub window_limit: Option<u32> = None,
        /// Field in which data segments report the sender's cwnd. Both ends must agree.
        #[source = "TCP-DCA §III.A, §VI"]
        pub cwnd_in: CwndIn = CwndIn::WindowField,
        /// Repeat an ACK that no data follows, after an RTO of at least 1 s, up to 6 times. The
        /// receiver estimates the RTO by timestamps, which both ends must offer.
        #[source = "TCP-DCA §IV.D"]
        pub repeat_acks: bool = false,
    }
}

choice! {
    /// Field in which data segments report the sender's congestion window.
    pub enum CwndIn {
        /// the window field, up to 65,535 B; it then says nothing about the sender's receive
        /// window, so data should flow one way only
        WindowField = "window-field",
        /// an experimental option of 8 bytes (RFC 6994)
        Option = "option",
    }
}

settings! {
    /// Dynamic adaptive acknowledgement.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct DaaConfig {
        /// Wait this many inter-arrival times for the next segment. 2.2 in TCP-DAA, from memory.
        #[kind = SPACINGS]
        #[source = "TCP-DCA §II"]
        pub spacing_factor: f64 = 1.0,
    }
}

settings! {
    /// Adaptive delayed acknowledgement.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct AdaConfig {
        /// A burst has ended after this many inter-arrival times without a segment.
        #[kind = SPACINGS]
        #[source = "Singh and Kankipati 2004, from memory"]
        pub spacing_factor: f64 = 1.5,
    }
}

choice! {
    /// Reaction of a mobile host to its radio's reports on the link ([`crate::Endpoint::on_link`]).
    #[default(None)]
    pub enum LinkReaction {
        /// no reaction, like a fixed host
        None = "none",
        /// an ACK, with the last ACK number and the window, when the link is up again (M-TCP)
        RecoveryAck = "recovery-ack",
        /// window 0 when the link fades, three ACKs when it is up again (Freeze-TCP)
        Freeze = "freeze",
    }
}

alternatives! {
    /// Reaction of a sender to a broken route ([`crate::Endpoint::on_route_failure`]).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[choice(
        "on-route-failure",
        "Reaction of a sender when the network reports that the route to the peer is broken."
    )]
    #[absent(RouteConfig::Ignore)]
    #[matters_to = SENDER]
    pub enum RouteConfig {
        /// leaves it to the retransmission timer
        "ignore" => Ignore,
        /// stands by, with its timer off and its windows frozen, and probes until an ACK arrives
        /// (ELFN, Holland and Vaidya 1999)
        "elfn" => Elfn(
            /// Explicit link failure notification.
            #[absent = "its defaults"]
            #[matters_to = SENDER]
            elfn: ElfnConfig = ElfnConfig::default()
        ),
    }
}

settings! {
    /// Standby of a sender while the route is broken.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[table("tcp.elfn")]
    pub struct ElfnConfig {
        /// Time between two probes.
        #[kind = POSITIVE_TIME]
        #[source = "Holland and Vaidya 1999 §5"]
        pub probe_interval: Duration = Duration::from_secs(2),
        /// The congestion window after standby.
        #[source = "Holland and Vaidya 1999 §5"]
        pub window: Thaw = Thaw::AsFrozen,
        /// The RTT estimate and the back-off after standby.
        #[source = "Holland and Vaidya 1999 §5"]
        pub rto: Thaw = Thaw::AsFrozen,
        /// Continue as soon as the node's router reports a route, without waiting for a probe to be
        /// acknowledged. Not in the paper.
        pub resume_on_route: bool = false,
    }
}
