//! A complete TCP endpoint without I/O.
//!
//! Read in this order: [`config`] with its [`preset`]s, then the exchangeable parts [`congestion`],
//! [`rto`], [`ack`] and [`route`] (each a trait, with one file per strategy), [`recovery`], and
//! [`endpoint`], which puts them together.
//!
//! # Example
//!
//! Two endpoints, and nothing between them: what one sends, the other gets at once.
//!
//! ```
//! use airtcp_core::{Addr, Events, Flow, Instant, Length, Segment, SeqNum};
//! use airtcp_tcp::{Endpoint, Io, TcpConfig, TcpState};
//!
//! let [src, dst] = [1, 2].map(|host| Addr::new([10, 0, 0, host].into(), 80));
//! let flow = Flow { src, dst };
//! let mut client = Endpoint::<Length>::new(TcpConfig::default(), flow, SeqNum(u32::MAX));
//! let mut server = Endpoint::new(TcpConfig::default(), flow.reversed(), SeqNum(0));
//! let now = Instant::ZERO;
//! let (mut up, mut down) = (Vec::<Segment<Length>>::new(), Vec::new());
//! server.listen();
//! client.connect(now, &mut Io { out: &mut up, events: Events::none() });
//! client.write(now, &Length(1000), &mut Io { out: &mut up, events: Events::none() });
//! while !up.is_empty() {
//!     let mut io = Io { out: &mut down, events: Events::none() };
//!     up.drain(..).for_each(|segment| server.on_segment(now, segment, &mut io));
//!     server.reply(now, &mut io);
//!     let mut io = Io { out: &mut up, events: Events::none() };
//!     down.drain(..).for_each(|segment| client.on_segment(now, segment, &mut io));
//!     client.reply(now, &mut io);
//! }
//! assert_eq!((client.state(), client.is_all_acked()), (TcpState::Established, true));
//! assert_eq!(server.readable(), 1000);
//! ```

mod accecn;
pub mod ack;
pub mod config;
pub mod congestion;
pub mod endpoint;
pub mod preset;
pub mod recovery;
pub mod route;
pub mod rto;
mod strategies;

pub use config::TcpConfig;
pub use endpoint::{EcnCounts, Endpoint, Io, Limit, Limits, Stats, TcpState};
pub use preset::Preset;
pub use strategies::Strategies;
