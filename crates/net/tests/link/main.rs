//! Links through their public interface: each rule as a timeline, and properties of all links.

mod common;
mod properties;
mod steered;
mod timeline;
