//! Recordings: the inputs and actions of a mechanism on live traffic, in a pcapng file that
//! Wireshark opens and that [`replay()`] runs again. docs/internals/recording-format.md describes
//! the format.
//!
//! Read in this order: [`step`] (entries of a recording), [`writer`] and [`reader`] (to and from
//! the file), [`mod@replay`] (the same inputs again, compared with the recorded actions). `fields`
//! and `setup` hold the data of the file other than packets.

mod fields;
pub mod reader;
pub mod replay;
pub mod setup;
pub mod step;
pub mod writer;

pub use reader::{ReadError, Reader};
pub use replay::{Difference, ReplayError, Summary, replay};
pub use setup::Setup;
pub use step::{Input, RecordEntry, Step};
pub use writer::{Contents, Writer};
