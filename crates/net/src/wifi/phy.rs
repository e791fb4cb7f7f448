//! How long a frame takes (802.11b-1999 §18.3.4): PLCP preamble and header at their own rate, then
//! the MPDU.

use crate::wifi::config::{PhyConfig, Preamble};
use airtcp_core::{Bytes, DataRate, Duration};

/// 144 bits of preamble and 48 of header at 1 Mbit/s.
const LONG_PLCP: Duration = Duration::from_micros(192);
/// 72 bits of preamble at 1 Mbit/s and 48 of header at 2 Mbit/s.
const SHORT_PLCP: Duration = Duration::from_micros(96);

impl PhyConfig {
    /// Duration of the PLCP preamble and header of a frame at `rate`.
    pub fn plcp(&self, rate: DataRate) -> Duration {
        match self.preamble {
            Preamble::Short if rate > DataRate::mbps(1) => SHORT_PLCP,
            _ => LONG_PLCP,
        }
    }

    /// Duration of a frame of `size` bytes, MAC header and FCS included, at `rate`.
    pub fn frame(&self, rate: DataRate, size: Bytes) -> Duration {
        let bits = rate.transmission_time(size);
        let whole = if self.whole_microseconds { Duration::from_micros(1) } else { Duration::ZERO };
        self.plcp(rate) + bits.round_up_to(whole)
    }
}

#[cfg(test)]
mod tests {
    use crate::wifi::preset;
    use airtcp_core::{Bytes, DataRate, Duration};

    const HIGH: DataRate = DataRate::mbps(11);

    #[test]
    fn a_high_rate_frame_takes_whole_microseconds() {
        // 802.11b §18.3.4: 1528 B at 11 Mbit/s are 1111.3 us, rounded up.
        let phy = preset::ieee().phy;
        assert_eq!(phy.frame(HIGH, Bytes(1528)), Duration::from_micros(192 + 1112));
    }

    #[test]
    fn the_short_preamble_halves_the_plcp_but_at_1_mbps() {
        // 802.11b §18.2.2.2.
        let mut phy = preset::ieee().phy;
        phy.preamble = crate::wifi::Preamble::Short;
        assert_eq!(phy.frame(DataRate::mbps(2), Bytes(14)), Duration::from_micros(96 + 56));
        assert_eq!(phy.frame(DataRate::mbps(1), Bytes(14)), Duration::from_micros(304));
    }
}
