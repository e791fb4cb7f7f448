//! How low the signal level of an uplink is.

use airtcp_core::LinkSignal;

/// Percentage points by which a level must exceed the configured one before an uplink no longer
/// fades: more than a step of the coarsest scale, the 31 of `+CSQ` (3GPP TS 27.007 §8.5).
const MARGIN: u32 = 5;

/// Whether an uplink fades whose signal has this level, in percent; `said`: the last report.
pub(super) fn is_faint(level: u32, below: u8, said: Option<LinkSignal>) -> bool {
    let margin = if said == Some(LinkSignal::Fading) { MARGIN } else { 0 };
    level < u32::from(below) + margin
}
