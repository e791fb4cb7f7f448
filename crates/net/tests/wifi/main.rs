//! Wireless channels from outside: every rule of the MAC as a timeline, what holds for all of them,
//! and throughput against models and ns-2.

mod common;
mod config;
mod outage;
mod properties;
mod requests;
mod throughput;
mod timeline;
