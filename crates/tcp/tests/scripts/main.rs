//! Scripted segment tests of one endpoint, in the manner of packetdrill: one behaviour each, named
//! for its rule. [`script`] explains the notation.

mod ack;
mod autotuning;
mod close;
mod dca;
mod elfn;
mod handshake;
mod karak;
mod mobility;
mod persist;
mod receiver;
mod recovery;
mod rto;
mod script;
mod sender;
mod spurious;

use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{InitialWindow, Recovery};
use script::run;

/// MSS 1000, as in most scripts.
fn config() -> TcpConfig {
    TcpConfig { mss: 1000, ..TcpConfig::default() }
}

/// [`config`] with an initial window of `n` segments.
fn window(n: u32) -> TcpConfig {
    TcpConfig { initial_window: InitialWindow::Segments(n), ..config() }
}

/// RFC 6582 as written: careful, partial window deflation, impatient.
const NEWRENO: Recovery = Recovery::NewReno;

/// Opens actively in 100 ms (SRTT 100 ms, RTO 1 s), the peer offering all options, then runs
/// `script`.
#[track_caller]
fn run_open(config: &TcpConfig, script: &str) {
    let (mss, ts) = if config.timestamps { (1012, ",TS val 100 ecr 0") } else { (1000, "") };
    run(
        config,
        &format!(
            "0.000 connect
             0.000 > S 0:0(0)
             0.100 < S 0:0(0) ack 1 win 60000 <mss {mss},sackOK{ts}>
             0.100 > ack 1
             {script}"
        ),
    );
}
