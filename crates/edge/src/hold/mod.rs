//! Copies of the data under way to a mobile, their replay, and what survives the driver.

pub mod cache;
pub mod journal;
pub mod replay;
pub mod store;
pub mod tail;
