//! Links through their public interface: each rule as a timeline, and properties of all links.

mod cell;
mod common;
mod handover;
mod properties;
mod steered;
mod timeline;
