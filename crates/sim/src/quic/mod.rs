//! QUIC flows: quinn's protocol machine, driven by simulated time.
//!
//! `quinn-proto` is the whole of quinn's protocol without I/O: handshake, recovery, congestion
//! control, flow control, path MTU discovery. A [`QuicEnd`] owns an endpoint with one connection and
//! the application on it, and talks to the [`World`](crate::World) in datagrams and deadlines.
//! Three things replace what a live program has:
//!
//! - **Time.** quinn counts in [`std::time::Instant`], which cannot be made from a number. A [`Clock`]
//!   takes one at the start and adds simulated time. quinn only compares such instants and takes
//!   their differences, so nothing depends on the start.
//! - **Randomness.** The endpoint's generator, the connection ids and the key of stateless resets
//!   come from streams named after the flow. quinn seeds what a connection draws (packet numbers to
//!   skip, path challenges, the spin bit) from the endpoint's generator.
//! - **Cryptography.** [`crypto`] has its sizes alone.

mod crypto;
mod end;

pub(crate) use end::{QuicEnd, QuicFlow, Role, Sent};

use crate::scenario::{QuicConfig, QuicCongestion};
use airtcp_core::Instant;
use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{IdleTimeout, TransportConfig, VarInt};
use std::sync::Arc;
use std::time;

/// Bytes that a sender buffers for each byte of the receive window: quinn's default.
const SEND_BUFFER_FACTOR: u64 = 8;

/// Simulated time as quinn's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: time::Instant,
}

impl Clock {
    /// Simulated time zero is now.
    pub(crate) fn new() -> Self {
        Self { start: time::Instant::now() }
    }

    fn at(self, now: Instant) -> time::Instant {
        self.start + time::Duration::from_nanos(now.as_nanos())
    }

    fn simulated(self, at: time::Instant) -> Instant {
        Instant::from_nanos(at.duration_since(self.start).as_nanos() as u64)
    }
}

/// The settings as quinn's, all others as quinn has them.
fn transport(config: &QuicConfig) -> Arc<TransportConfig> {
    let congestion: Arc<dyn ControllerFactory + Send + Sync> = match config.congestion {
        QuicCongestion::Cubic => Arc::new(CubicConfig::default()),
        QuicCongestion::NewReno => Arc::new(NewRenoConfig::default()),
    };
    let idle_timeout = VarInt::from_u64(config.idle_timeout.as_nanos() / 1_000_000);
    let receive_window = VarInt::from_u64(config.receive_window.get());
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(congestion)
        .max_idle_timeout(Some(IdleTimeout::from(idle_timeout.unwrap_or(VarInt::MAX))))
        .initial_rtt(time::Duration::from_nanos(config.initial_rtt.as_nanos()))
        .stream_receive_window(receive_window.unwrap_or(VarInt::MAX))
        .send_window(config.receive_window.get() * SEND_BUFFER_FACTOR)
        .keep_alive_interval(
            config.keep_alive_interval.map(|it| time::Duration::from_nanos(it.as_nanos())),
        );
    Arc::new(transport)
}
