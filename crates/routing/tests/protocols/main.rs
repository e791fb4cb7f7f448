//! The protocols: scripts for one node, one rule each, and networks over an ideal medium.

mod aodv;
mod arp;
mod dsr;
mod gpsr;
mod medium;
mod script;
