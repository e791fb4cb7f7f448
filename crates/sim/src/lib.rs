//! Shell 1: the simulator. A [`scenario::Scenario`] and a seed make a world; running it drives the
//! endpoints, links and middleboxes of the other crates from one event queue.
//!
//! Read in this order: [`scenario::model`], [`metrics`], [`trace`].

pub mod metrics;
pub mod scenario;
pub mod trace;
