//! Wireless channels from outside: every rule of the MAC as a timeline, what holds for all of them, and
//! saturation throughput against Bianchi's model.

mod common;
mod outage;
mod saturation;
mod timeline;
