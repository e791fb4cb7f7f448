//! Recordings: what a mechanism on live traffic was given and what it did, in a pcapng file that
//! Wireshark opens and that [`replay()`] runs again. The format is described in docs/record.md.
//!
//! Read in this order: [`step`] (what a recording consists of), [`writer`] and [`reader`] (to and
//! from the file), [`mod@replay`] (the same inputs again, and whether the same comes of them).
//! `fields` and `setup` are the words in which the file says what no packet says.

mod fields;
pub mod reader;
pub mod replay;
pub mod setup;
pub mod step;
pub mod writer;

pub use reader::{ReadError, Reader};
pub use replay::{Difference, ReplayError, Summary, replay};
pub use setup::Setup;
pub use step::{Entry, Input, Step};
pub use writer::{Contents, Writer};
