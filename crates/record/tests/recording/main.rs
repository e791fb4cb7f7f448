//! Recordings of a small gateway: replayed, damaged, and read by tshark.

mod damaged;
mod gateway;
mod replayed;
mod tshark;
