//! Shell 1: the simulator.

pub mod scenario;
