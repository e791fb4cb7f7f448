//! Wireless channels through their public interface: each rule of the MAC as a timeline, properties
//! of all cells, and throughput against models and ns-2.

mod common;
mod config;
mod edca;
mod minstrel;
mod ofdm;
mod outage;
mod properties;
mod requests;
mod throughput;
mod timeline;
mod txq;
