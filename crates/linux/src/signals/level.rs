//! Threshold of an uplink's signal level.

use airtcp_core::LinkSignal;

/// Hysteresis in percentage points: a fading uplink recovers when its level exceeds the configured
/// one by this. More than a step of the coarsest scale, the 31 steps of `+CSQ` (3GPP TS 27.007
/// §8.5).
const MARGIN: u32 = 5;

/// True if an uplink with this signal level (in percent) fades; `reported`: its last signal.
pub(super) fn is_faint(level: u32, below: u8, reported: Option<LinkSignal>) -> bool {
    let margin = if reported == Some(LinkSignal::Fading) { MARGIN } else { 0 };
    level < u32::from(below) + margin
}
