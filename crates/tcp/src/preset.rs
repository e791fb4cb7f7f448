//! Named sets of values for `[tcp]`: the sender of today, the RFCs, ns-2.
//!
//! A preset is a [`TcpConfig`], checked by the compiler. Settings that it does not name are those
//! of [`TcpConfig::default`]; the keys of a file override it. A key of the preset that has no
//! effect under the file's choices is not used.

use crate::config::{
    ABC_UNLIMITED, AckConfig, Congestion, CubicConfig, CubicVariant, CwndValidation, HyStartConfig,
    InitialWindow, LossWindow, Nagle, NewRenoConfig, PersistConfig, PersistOnShrink, RackConfig,
    Recovery, RepeatedTimeout, RtoConfig, RttVariation, SackPipe, TcpConfig,
};
use airtcp_core::{Bytes, Duration};
use airtcp_settings::schema::Fallback::Is;
use airtcp_settings::schema::{AS_PRESET, Key, Kind, PRESET, Table, field};
use airtcp_settings::{InTable, Reader, Settings, choice};

choice! {
    /// A named set of TCP settings.
    pub enum Preset {
        /// Linux 6 with its default sysctls
        Linux = "linux",
        /// RFC 5681, 6582 and 6298, with windows of 64 kB, without options, an ACK for each segment
        Rfc = "rfc",
        /// `Agent/TCP/Newreno` and `Agent/TCPSink` of ns-2.35; `recovery` chooses another agent
        Ns2 = "ns2",
    }
}

/// `[tcp]` of a scenario: a preset, and the keys that override its values.
pub static TABLE: Table = Table::new(
    TcpConfig::TABLE.name,
    TcpConfig::TABLE.about,
    &[
        Key::Fields(&[field(
            PRESET,
            Kind::Choice(Preset::WORDS),
            Is(Preset::Linux.word()),
            "Values of the keys that are not set. Keys of `[tcp]` apply above the preset of a \
             flow's `sender` or `receiver`, too.",
        )]),
        Key::Otherwise(AS_PRESET, TcpConfig::KEYS),
    ],
);

/// Reads [`TABLE`] into a configuration; `None` after an error, which `from` has reported.
pub fn read<R: Reader>(from: &R) -> Option<TcpConfig> {
    let preset = from.get::<Preset>(PRESET)?;
    TcpConfig::read(from, Some(&preset.config()))
}

impl Preset {
    /// All presets, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Linux, Self::Rfc, Self::Ns2];

    /// The configuration of an endpoint.
    pub fn config(self) -> TcpConfig {
        match self {
            Self::Linux => linux(),
            Self::Rfc => TcpConfig::default(),
            Self::Ns2 => ns2(),
        }
    }
}

/// Linux 6 with its default sysctls, which are named `tcp_…` (Documentation/networking/ip-sysctl);
/// constants are those of include/net/tcp.h.
pub fn linux() -> TcpConfig {
    TcpConfig {
        // 1500 bytes on the wire with IPv4 and timestamps.
        mss: 1448,
        // tcp_window_scaling 1, tcp_timestamps 1, tcp_sack 1
        window_scaling: true,
        timestamps: true,
        // tcp_recovery 1, tcp_early_retrans 3, tcp_frto 2, and undo
        recovery: Recovery::Rack(RackConfig::default()),
        // Without SACK: tcp_clean_rtx_queue sets the timer anew on each partial ACK.
        newreno: NewRenoConfig { impatient: false, ..NewRenoConfig::default() },
        // tcp_reno_ssthresh and others take cwnd, which tcp_cwnd_validate keeps near what is used;
        // tcp_slow_start_after_idle 1
        loss_window: LossWindow::Cwnd,
        cwnd_validation: CwndValidation::Decay,
        // The usual CONFIG_HZ of distributions.
        timer_hz: Some(250),
        // tcp_moderate_rcvbuf 1. The largest that autotuning reaches: the third values of tcp_rmem (32
        // MiB since 6.16) and tcp_wmem.
        autotuning: true,
        receive_buffer: Bytes(32 << 20),
        send_buffer: Bytes(4 << 20),
        // tcp_congestion_control cubic
        congestion: Congestion::Cubic(CubicConfig {
            variant: CubicVariant::Linux,
            // hystart 1, hystart_detect 3
            hystart: HyStartConfig::HyStart,
            ..CubicConfig::default()
        }),
        // tcp_slow_start and tcp_cong_avoid_ai count all the segments that an ACK acknowledges.
        abc: Some(ABC_UNLIMITED),
        // TCP_INIT_CWND 10
        initial_window: InitialWindow::Rfc6928,
        // tcp_init_transfer: total_retrans > 1
        syn_losses: 1,
        // RFC 3042: SACKed segments are not in flight (tcp_packets_in_flight).
        limited_transmit: true,
        rto: linux_rto(),
        persist: PersistConfig {
            // tcp_retransmit_timer goes on with back-off, and gives up only on a silent peer.
            on_shrink: PersistOnShrink::Linux,
            // tcp_probe0_when: at most TCP_RTO_MAX
            max: Duration::from_secs(120),
            ..PersistConfig::default()
        },
        // tcp_minshall_check
        nagle: Nagle::Minshall,
        // __tcp_ack_snd_check: more than one full segment; TCP_DELACK_MIN; TCP_MAX_QUICKACKS
        ack: AckConfig::Delayed { segments: 2, timeout: Duration::from_millis(40), quick: 16 },
        ..TcpConfig::default()
    }
}

fn linux_rto() -> RtoConfig {
    RtoConfig {
        // TCP_TIMEOUT_INIT, TCP_TIMEOUT_FALLBACK
        initial: Duration::from_secs(1),
        after_syn_loss: Duration::from_secs(3),
        // TCP_RTO_MIN
        min: Duration::from_millis(200),
        // tcp_rtt_estimator
        variation: RttVariation::Linux,
        // TCP_RTO_MAX
        max: Duration::from_secs(120),
        // tcp_retries2 15
        max_retransmissions: 15,
        // tcp_syn_linear_timeouts 4
        linear_syn_timeouts: 4,
        ..RtoConfig::default()
    }
}

/// ns-2.35 with the values of tcl/lib/ns-default.tcl, which are named as there. NewReno is its
/// `Agent/TCP/Newreno` (`newreno_changes1_ 1`, `partial_window_deflation_ 1`) but for the end of
/// recovery, where ns-2 leaves cwnd at ssthresh (`exit_recovery_fix_ 0`). Its `bugFix_ true` is
/// `avoid-multi-fr`, which has to be written with `recovery = "tahoe"` or `"reno"`.
pub fn ns2() -> TcpConfig {
    TcpConfig {
        // packetSize_ 1000
        mss: 1000,
        // window_ 20: bounds what is sent, not cwnd; ssthresh begins with it (TcpAgent::reset).
        receive_buffer: Bytes(20_000),
        initial_ssthresh: Some(Bytes(20_000)),
        // windowInit_ 2, windowInitOption_ 1
        initial_window: InitialWindow::Segments(2),
        // opencwnd grows cwnd on each ACK.
        cwnd_validation: CwndValidation::Off,
        // TcpAgent::slowdown halves the window, and ssthresh is in whole packets.
        loss_window: LossWindow::SendWindow,
        // TcpAgent::slowdown at a cwnd of 1
        repeated_timeout: RepeatedTimeout::Cut,
        // RenoTcpAgent::recv calls opencwnd on the ACK that ends recovery, too.
        grow_on_recovery_exit: true,
        // singledup_ 1
        limited_transmit: true,
        // Sack1TcpAgent
        sack_pipe: SackPipe::FallFloyd,
        rto: RtoConfig {
            // rtxcur_init_ 3
            initial: Duration::from_secs(3),
            // minrto_ 0.2
            min: Duration::from_millis(200),
            // maxrto_ 60
            max: Duration::from_secs(60),
            // tcpTick_ 0.01
            tick: Duration::from_millis(10),
            ..RtoConfig::default()
        },
        ..TcpConfig::default()
    }
}
