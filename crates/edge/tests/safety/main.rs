//! Safety of every mechanism that holds, acknowledges or replays what it forwards: delivery in
//! order and without loss (RFC 9293 §2.2), and transparency where there is nothing to do.
//!
//! Two independent ways, each with mechanisms broken on purpose to prove that it can fail
//! ([`broken`]):
//! - *Property tests* ([`properties`]): real endpoints with real bytes on both sides of the
//!   mechanism ([`world`]), random networks, outages and link signals ([`case`]). [`observer`] taps
//!   both sides of the node and knows nothing of its inside. A fuzz target makes cases of bytes
//!   ([`hostile`]).
//! - *Model checking* ([`model`]): the code of one connection between an abstract sender and an
//!   abstract receiver, in every order of deliveries, losses, signals and timers that a small
//!   configuration allows.
//!
//! What is asserted, at each instant:
//! - The fixed host sees no acknowledgement of a byte that neither the mobile acknowledged nor the
//!   node can replay by itself; of a mechanism that promises end-to-end acknowledgements
//!   ([`subjects::Promise`]), none that the mobile did not give.
//! - What is injected could have come from the peer: flow, sequence number, timestamps, content.
//! - The delivered stream is exact as far as it goes, and complete within a bounded time after the
//!   last disturbance, or one end has reported an abort. A sender that closed in order has
//!   delivered everything.

mod broken;
mod case;
#[path = "../../../../fuzz/checks/corpus.rs"]
mod corpus;
mod exhaustive;
mod hostile;
mod model;
mod observer;
mod properties;
mod protected;
mod subjects;
mod watched;
mod world;
