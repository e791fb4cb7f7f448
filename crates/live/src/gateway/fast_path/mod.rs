//! Packet Control in the kernel.

mod layout;
mod prefixes;
mod program;
mod tcx;
#[cfg(test)]
mod tests;

use airtcp_core::Flow;
use airtcp_edge::MobileEnd;
use airtcp_wire::{EncodeError, encode};

/// The packet that repeats the mobile's latest acknowledgement; `flow` is from the fixed to the mobile host.
fn segment(flow: Flow, mobile: &MobileEnd) -> Result<Vec<u8>, EncodeError> {
    let mut packet = Vec::new();
    encode(&mobile.latest_ack::<Vec<u8>>(flow.reversed()), &mut packet)?;
    Ok(packet)
}
