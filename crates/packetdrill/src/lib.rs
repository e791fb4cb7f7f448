//! Scripts in the language of packetdrill (Cardwell et al., USENIX ATC 2013), run on airtcp's
//! endpoint in simulated time.
//!
//! Read in this order: [`script`] is the syntax tree, `parse` makes it (`source.rs` has the cursor
//! and the errors with their caret), `settings.rs`, `shell.rs` and `linux.rs` turn its options and
//! sysctls into settings of an endpoint, `needs.rs` names what airtcp lacks, `run` plays the
//! events, and `python` evaluates the assertions.
//!
//! ```
//! let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
//!             +0...0.1 connect(3, ..., ...) = 0
//!             +0 > S 0:0(0) <...>
//!             +.1 < S. 0:0(0) ack 1 win 1000 <mss 1000>
//!             +0 > . 1:1(0) ack 1";
//! let script = airtcp_packetdrill::parse("connect.pkt", text)?;
//! assert_eq!(airtcp_packetdrill::run(&script, &|_| None), airtcp_packetdrill::Verdict::Passes);
//! # Ok::<(), airtcp_packetdrill::ParseError>(())
//! ```

mod linux;
mod needs;
mod outcome;
mod parse;
mod python;
mod run;
pub mod script;
mod settings;
mod shell;
mod source;

pub use linux::linux_config;
pub use outcome::{Failure, Verdict};
pub use parse::parse;
pub use run::run;
pub use source::ParseError;
