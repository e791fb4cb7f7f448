//! `airtcp gateway` for real: kernel TCP on both ends, an emulated wireless link, outages.
//!
//! Read in this order: [`testbed`] (the hosts and what joins them), [`transfer`] (a connection and
//! what is measured), then the scenarios.

#![cfg(target_os = "linux")]

mod agent;
mod capture;
mod closing;
mod congestion;
mod control;
mod data_path;
mod datagrams;
mod downloads;
mod duplicates;
mod exchange;
mod failures;
mod host;
mod hostile;
mod idle;
mod info;
mod karak;
mod lateness;
mod limits;
mod mass;
mod modem;
mod modem_manager;
mod observe;
mod outages;
mod packet_control;
mod prometheus;
mod quic;
mod recording;
mod report;
mod rules;
mod seen;
mod testbed;
mod ticks;
mod traffic;
mod transfer;
mod tunnel;
mod uplink;
mod wake;
