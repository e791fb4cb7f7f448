//! TCP Packet Control from outside: every rule of the paper and of live traffic, and what holds for
//! any traffic.

mod properties;
mod rules;
mod script;
