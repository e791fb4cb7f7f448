//! Links from outside: every rule as a timeline, and what holds for all of them.

mod common;
mod properties;
mod steered;
mod timeline;
