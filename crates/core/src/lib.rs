//! The vocabulary every other crate speaks: time, rates, sequence numbers, segments, typed events
//! and named random streams.
//!
//! Nothing here does I/O, reads a clock, spawns a thread or holds global state. Time and randomness
//! are always arguments. Read in this order: [`time`], [`units`], [`seq`], [`payload`],
//! [`segment`], [`event`], [`rng`], [`histogram`].
//!
//! # Example
//!
//! ```
//! use airtcp_core::{Bytes, DataRate, Duration, Instant, SeqNum, Stream};
//!
//! // 1250 bytes at 10 Mbit/s take a millisecond.
//! let sent = Instant::from_secs(3);
//! let arrived = sent + DataRate::mbps(10).transmission_time(Bytes(1250));
//! assert_eq!(arrived.since(sent), Duration::from_millis(1));
//!
//! // Sequence numbers wrap: what follows the largest is after it.
//! let last = SeqNum(u32::MAX);
//! assert!((last + 1).after(last));
//!
//! // A stream depends on the run's seed and its name alone.
//! let names = ["link/AP-phone/loss", "link/AP-phone/loss", "link/AP-phone/delay"];
//! let [loss, again, delay] = names.map(|name| Stream::new(7, name).unit());
//! assert_eq!(loss, again);
//! assert_ne!(loss, delay);
//! ```

pub mod accecn;
pub mod documented;
pub mod dscp;
pub mod event;
pub mod histogram;
pub mod id;
pub mod link_signal;
pub mod payload;
pub mod position;
pub mod rng;
pub mod segment;
pub mod seq;
pub mod text;
pub mod time;
pub mod units;

pub use accecn::{AccEcnOption, AccEcnOrder, EcnBytes};
pub use dscp::Dscp;
pub use event::{Connection, Event, Events, Source, Subscriber};
pub use histogram::Histogram;
pub use id::{Id, IdVec};
pub use link_signal::LinkSignal;
pub use payload::{Length, Payload};
pub use position::Position;
pub use rng::Stream;
pub use segment::{
    Addr, Ecn, Flags, Flow, MAX_OPTIONS_LEN, Options, SackBlock, SackBlocks, Segment, Timestamps,
};
pub use seq::SeqNum;
pub use text::{counted, excerpt};
pub use time::{Duration, Instant};
pub use units::{Bytes, DataRate};
