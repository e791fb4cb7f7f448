//! Linux's `tcp_info` of an endpoint, for the assertions of scripts.

use airtcp_core::{Duration, Ecn, Instant, Length};
use airtcp_tcp::recovery::RecoveryPhase;
use airtcp_tcp::{EcnCounts, Endpoint, TcpConfig, TcpState};

/// Constants of Linux's headers that scripts use.
const CONSTANTS: &[(&str, f64)] = &[
    ("TCP_CA_Open", 0.0),
    ("TCP_CA_Disorder", 1.0),
    ("TCP_CA_CWR", 2.0),
    ("TCP_CA_Recovery", 3.0),
    ("TCP_CA_Loss", 4.0),
    ("TCP_ESTABLISHED", 1.0),
    ("TCP_SYN_SENT", 2.0),
    ("TCP_SYN_RECV", 3.0),
    ("TCP_FIN_WAIT1", 4.0),
    ("TCP_FIN_WAIT2", 5.0),
    ("TCP_TIME_WAIT", 6.0),
    ("TCP_CLOSE", 7.0),
    ("TCP_CLOSE_WAIT", 8.0),
    ("TCP_LAST_ACK", 9.0),
    ("TCP_LISTEN", 10.0),
    ("TCP_CLOSING", 11.0),
    ("TCPI_OPT_TIMESTAMPS", 1.0),
    ("TCPI_OPT_SACK", 2.0),
    ("TCPI_OPT_WSCALE", 4.0),
    ("TCPI_OPT_ECN", 8.0),
    ("TCPI_OPT_ECN_SEEN", 16.0),
    ("TCPI_OPT_SYN_DATA", 32.0),
];

/// A connection, with the state that `tcp_info` shows beside the endpoint's.
pub(crate) struct View<'c> {
    pub(crate) endpoint: &'c Endpoint<Length>,
    pub(crate) config: &'c TcpConfig,
    pub(crate) now: Instant,
    /// Time since the last data arrived.
    pub(crate) since_data: Duration,
}

type Field = fn(&View<'_>) -> f64;

/// Fields of `tcp_info` that an endpoint can provide. Linux counts segments where the endpoint
/// counts bytes.
const FIELDS: &[(&str, Field)] = &[
    ("tcpi_state", |v| state(v.endpoint.state())),
    ("tcpi_ca_state", |v| ca_state(v.endpoint)),
    ("tcpi_snd_cwnd", |v| f64::from(v.endpoint.cwnd() / v.endpoint.mss().max(1))),
    ("tcpi_snd_ssthresh", |v| match v.endpoint.ssthresh() {
        u32::MAX => 2_147_483_647.0,
        bytes => f64::from(bytes / v.endpoint.mss().max(1)),
    }),
    ("tcpi_snd_mss", |v| f64::from(v.endpoint.mss())),
    ("tcpi_unacked", |v| segments(v.endpoint, v.endpoint.flight())),
    ("tcpi_sacked", |v| segments(v.endpoint, v.endpoint.sacked())),
    ("tcpi_lost", |v| segments(v.endpoint, v.endpoint.lost())),
    ("tcpi_retrans", |v| segments(v.endpoint, v.endpoint.resent())),
    ("tcpi_reordering", |v| f64::from(v.endpoint.reordering())),
    ("tcpi_delivered", |v| segments(v.endpoint, v.endpoint.delivered() as u32)),
    ("tcpi_delivered_ce", |v| match v.endpoint.ecn_delivered() {
        Some(counts) => f64::from(counts.marked),
        None => segments(v.endpoint, v.endpoint.delivered_ce() as u32),
    }),
    ("tcpi_delivered_ce_bytes", |v| bytes(v.endpoint.ecn_delivered(), Ecn::Ce)),
    ("tcpi_delivered_e0_bytes", |v| bytes(v.endpoint.ecn_delivered(), Ecn::Ect0)),
    ("tcpi_delivered_e1_bytes", |v| bytes(v.endpoint.ecn_delivered(), Ecn::Ect1)),
    ("tcpi_received_ce", |v| v.endpoint.ecn_received().map_or(0.0, |c| f64::from(c.marked))),
    ("tcpi_received_ce_bytes", |v| bytes(v.endpoint.ecn_received(), Ecn::Ce)),
    ("tcpi_received_e0_bytes", |v| bytes(v.endpoint.ecn_received(), Ecn::Ect0)),
    ("tcpi_received_e1_bytes", |v| bytes(v.endpoint.ecn_received(), Ecn::Ect1)),
    ("tcpi_busy_time", |v| micros(v.endpoint.limits(v.now).busy())),
    ("tcpi_rwnd_limited", |v| micros(v.endpoint.limits(v.now).receive_window)),
    ("tcpi_min_rtt", |v| v.endpoint.min_rtt().map_or(0.0, micros)),
    ("tcpi_backoff", |v| f64::from(v.endpoint.expiries())),
    ("tcpi_retransmits", |v| f64::from(v.endpoint.expiries())),
    ("tcpi_probes", |v| f64::from(v.endpoint.unanswered_probes())),
    ("tcpi_rto", |v| micros(v.endpoint.rto())),
    ("tcpi_rtt", |v| v.endpoint.rtt().map_or(0.0, |rtt| micros(rtt.srtt))),
    ("tcpi_rttvar", |v| v.endpoint.rtt().map_or(0.0, |rtt| micros(rtt.rttvar))),
    ("tcpi_total_retrans", |v| v.endpoint.stats().segments_retransmitted as f64),
    ("tcpi_bytes_acked", |v| v.endpoint.stats().bytes_acked as f64),
    ("tcpi_bytes_received", |v| v.endpoint.stats().bytes_delivered as f64),
    ("tcpi_bytes_sent", |v| v.endpoint.stats().data_bytes_sent as f64),
    ("tcpi_bytes_retrans", |v| v.endpoint.stats().bytes_retransmitted as f64),
    ("tcpi_data_segs_out", |v| v.endpoint.stats().data_segments_sent as f64),
    ("tcpi_data_segs_in", |v| v.endpoint.stats().data_segments_received as f64),
    ("tcpi_notsent_bytes", |v| {
        f64::from(v.endpoint.unacknowledged().saturating_sub(v.endpoint.flight()))
    }),
    ("tcpi_snd_wnd", |v| f64::from(v.endpoint.send_window())),
    ("tcpi_rcv_space", |v| f64::from(v.endpoint.receive_space())),
    ("tcpi_advmss", |v| f64::from(v.config.mss)),
    ("tcpi_last_data_recv", |v| (v.since_data.as_millis()) as f64),
];

/// True if the field `name` can be provided.
pub(crate) fn has(name: &str) -> bool {
    FIELDS.iter().any(|(field, _)| *field == name)
}

/// The value of a constant, or of a field of the connection.
pub(crate) fn value(name: &str, view: Option<&View<'_>>) -> Option<f64> {
    if let Some((_, value)) = CONSTANTS.iter().find(|(constant, _)| *constant == name) {
        return Some(*value);
    }
    let (_, field) = FIELDS.iter().find(|(field, _)| *field == name)?;
    view.map(field)
}

fn segments(tcp: &Endpoint<Length>, bytes: u32) -> f64 {
    f64::from(bytes.div_ceil(tcp.mss().max(1)))
}

/// Bytes of payload with this ECN field; 0 without AccECN.
fn bytes(counts: Option<EcnCounts>, ecn: Ecn) -> f64 {
    counts.and_then(|counts| counts.bytes.get(ecn)).map_or(0.0, f64::from)
}

fn micros(duration: Duration) -> f64 {
    (duration.as_nanos() / 1000) as f64
}

/// `enum tcp_ca_state`; a sender without a loss that has seen duplicate ACKs or SACK blocks is in
/// Disorder.
fn ca_state(tcp: &Endpoint<Length>) -> f64 {
    match tcp.phase() {
        RecoveryPhase::Open if tcp.in_disorder() || tcp.duplicate_acks() > 0 => 1.0,
        RecoveryPhase::Open => 0.0,
        RecoveryPhase::Cwr => 2.0,
        RecoveryPhase::Recovery => 3.0,
        RecoveryPhase::Loss => 4.0,
    }
}

fn state(state: TcpState) -> f64 {
    match state {
        TcpState::Established => 1.0,
        TcpState::SynSent => 2.0,
        TcpState::SynReceived => 3.0,
        TcpState::FinWait1 => 4.0,
        TcpState::FinWait2 => 5.0,
        TcpState::TimeWait => 6.0,
        TcpState::Closed => 7.0,
        TcpState::CloseWait => 8.0,
        TcpState::LastAck => 9.0,
        TcpState::Listen => 10.0,
        TcpState::Closing => 11.0,
    }
}
