//! The simulator. A [`Scenario`](scenario::Scenario) and a seed make a [`World`]; running it drives
//! the endpoints, links, wireless channels and middleboxes of the other crates from one event
//! queue.
//!
//! Read in this order: [`scenario`], [`world`], [`engine`], [`metrics`], [`trace`].
//!
//! # Example
//!
//! ```
//! use airtcp_sim::scenario::Scenario;
//! use airtcp_sim::{Observers, World};
//!
//! let text = r#"
//!     duration = "10 s"
//!     node = [{ name = "server" }, { name = "phone" }]
//!     flow = [{ name = "download", from = "server", to = "phone", bytes = "1 MB" }]
//!     [[link]]
//!     between = ["server", "phone"]
//!     rate = "8 Mbit/s"
//!     delay = "20 ms"
//!     loss = { kind = "bernoulli", p = 0.01 }
//! "#;
//! let scenario = Scenario::parse("one-link.toml", text, &[])?;
//! let mut world = World::new(&scenario, 1);
//! world.run(&mut Observers::default());
//!
//! let flow = &world.metrics().flows[0];
//! assert_eq!(flow.delivered_bytes, 1_000_000);
//! // 1 MB takes a second at the rate of the link, headers and losses apart.
//! assert!(flow.download_time.is_some_and(|seconds| seconds > 1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod addr;
mod apps;
pub mod document;
pub mod engine;
pub mod metrics;
pub mod packet;
mod quic;
pub mod scenario;
pub mod trace;
pub mod world;

pub use metrics::RunMetrics;
pub use packet::Packet;
pub use world::{Observers, World};
