//! Recordings of a small gateway: replayed, damaged, and in the eyes of tshark.

mod damaged;
mod gateway;
mod replayed;
mod tshark;
