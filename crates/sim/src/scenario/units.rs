//! Quantities of radios.

use airtcp_config::units::Measure;
use airtcp_net::wifi::Power;

/// Base unit: watt.
pub(super) static POWER: Measure = Measure {
    what: "a power",
    example: "-81 dBm",
    units: &[("W", |x| x), ("mW", |x| x * 1e-3), ("dBm", |x| Power::from_dbm(x).as_watts())],
};
/// Base unit: hertz.
pub(super) static FREQUENCY: Measure = Measure {
    what: "a frequency",
    example: "2.4 GHz",
    units: &[("Hz", |x| x), ("MHz", |x| x * 1e6), ("GHz", |x| x * 1e9)],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_and_frequencies_have_their_units() {
        assert_eq!(POWER.parse("3.652e-10 W"), Ok(3.652e-10));
        assert!((POWER.parse("-30 dBm").unwrap() / 1e-6 - 1.0).abs() < 1e-9);
        assert_eq!(FREQUENCY.parse("914 MHz"), Ok(914e6));
    }
}
