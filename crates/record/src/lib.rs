//! Recordings: the inputs and actions of a mechanism on live traffic, in a pcapng file that
//! Wireshark opens and that [`replay()`] runs again. docs/internals/recording-format.md describes
//! the format.
//!
//! Read in this order: [`step`] (entries of a recording), [`writer`] and [`reader`] (to and from
//! the file), [`mod@replay`] (the same inputs again, compared with the recorded actions). `fields`
//! and `setup` hold the data of the file other than packets.
//!
//! # Example
//!
//! What a mechanism did is compared with what it does when it gets the same again.
//!
//! ```
//! use airtcp_core::{Bytes, Duration, Instant, Length, LinkSignal};
//! use airtcp_edge::{Action, MechanismConfig, MobileId, WakeConfig};
//! use airtcp_record::{Contents, Input, Setup, Writer, replay};
//!
//! let setup = Setup {
//!     name: "phones".to_owned(),
//!     mechanism: MechanismConfig::Wake(WakeConfig::default()),
//!     flows: 1000,
//!     flows_per_mobile: 100,
//!     uplink: None,
//!     idle: Duration::from_secs(300),
//!     memory: Bytes(1_000_000),
//! };
//! let mut writer = Writer::new(Instant::ZERO, std::time::Duration::ZERO, Contents::Headers);
//! writer.begin(Instant::ZERO, 0, &setup);
//! let mobile = MobileId::Host([10, 0, 0, 3].into());
//! let input = Input::Signal { mobile, signal: LinkSignal::Down };
//! writer.step::<Length>(Instant::from_secs(1), 0, &input, &[]);
//! let recording = writer.take();
//!
//! let summaries = replay(&recording[..])?;
//! assert_eq!(summaries[&0].signals, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
