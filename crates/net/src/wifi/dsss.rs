//! Bit errors of 802.11b's four rates in white noise (Pei and Henderson, "Validation of OFDM and
//! DSSS error rate models in ns-3: 802.11b PHY", Boeing 2009; Proakis, Digital Communications, 4th
//! ed., §5.2): DBPSK at 1 Mbit/s, DQPSK at 2, CCK at 5.5 and 11.
//!
//! Interference counts as noise over the 22 MHz of the channel.

use airtcp_core::DataRate;
use std::f64::consts::{PI, SQRT_2};

/// Noise bandwidth, hertz.
const BANDWIDTH: f64 = 22e6;
/// CCK symbols a second.
const CCK_SYMBOLS: f64 = 1.375e6;

/// Probability that none of `bits` bits is wrong at a ratio `sinr` of signal to noise and
/// interference.
pub(crate) fn intact(rate: DataRate, sinr: f64, bits: f64) -> f64 {
    let per_bit = BANDWIDTH / rate.bits_per_sec() as f64;
    match rate.bits_per_sec() {
        1_000_000 => libm::pow(1.0 - 0.5 * libm::exp(-sinr * per_bit), bits),
        2_000_000 => libm::pow(1.0 - dqpsk(sinr * per_bit), bits),
        // Of 4 bits of a symbol, 2 choose one of 4 code words and 2 its phase: biorthogonal, 8
        // words and their opposites for every 4 bits.
        5_500_000 => libm::pow(biorthogonal(sinr * BANDWIDTH / CCK_SYMBOLS / 2.0), bits / 4.0),
        // Both halves of a symbol of 8 bits have to be right.
        _ => libm::pow(biorthogonal(sinr * BANDWIDTH / CCK_SYMBOLS / 4.0), bits / 4.0),
    }
}

/// Bit error rate of DQPSK; `x` is the energy of a bit over the noise density.
fn dqpsk(x: f64) -> f64 {
    let gain = (SQRT_2 + 1.0) / libm::sqrt(8.0 * PI * SQRT_2);
    (gain / libm::sqrt(x) * libm::exp(-(2.0 - SQRT_2) * x)).min(0.5)
}

/// Probability that a symbol of 8 orthogonal words and their opposites is right: the integral of
/// (2 Phi(v + b) - 1)^7 phi(v) over v > -b, with b^2 = 2 x.
fn biorthogonal(x: f64) -> f64 {
    /// Beyond it the normal density is below 1e-14.
    const TAIL: f64 = 8.0;
    const STEPS: u32 = 100;
    let b = libm::sqrt(2.0 * x);
    let from = (-b).max(-TAIL);
    let step = (TAIL - from) / f64::from(STEPS);
    // At both ends the function and its derivatives vanish, so the trapezoidal rule is as good as
    // any.
    let sum = (1..STEPS).fold(0.0, |sum, i| {
        let v = from + step * f64::from(i);
        let right = libm::erf((v + b) / SQRT_2);
        let squared = right * right;
        sum + squared * squared * squared * right * libm::exp(-v * v / 2.0)
    });
    (sum * step / libm::sqrt(2.0 * PI)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet_error_rate(rate: DataRate, decibels: f64) -> f64 {
        1.0 - intact(rate, libm::pow(10.0, decibels / 10.0), 8.0 * 1024.0)
    }

    /// Frames of 1024 bytes. The numbers are those of ns-3 3.37 (`DsssErrorRateModel`, compiled
    /// with GSL), which validates the curves of Pei and Henderson.
    #[test]
    fn the_packet_error_rates_are_those_of_ns3() {
        let (slow, high) = (DataRate::mbps(1), DataRate::mbps(11));
        let (fast, middle) = (DataRate::mbps(2), DataRate::kbps(5500));
        for (rate, decibels, expected) in [
            (slow, -5.0, 0.979_759_414),
            (slow, -4.0, 0.474_644_876),
            (slow, -3.0, 0.064_474_388_2),
            (fast, 0.0, 0.796_294_527),
            (fast, 1.0, 0.234_589_693),
            (fast, 3.0, 0.001_845_291_8),
            (middle, 3.0, 0.576_292_145),
            (middle, 4.0, 0.096_791_149_3),
            (middle, 6.0, 0.000_237_786_018),
            (high, 6.0, 0.583_387_455),
            (high, 7.0, 0.099_076_569_3),
            (high, 9.0, 0.000_247_187_345),
        ] {
            let ours = packet_error_rate(rate, decibels);
            let error = (ours / expected - 1.0).abs();
            assert!(error < 1e-6, "{rate} at {decibels} dB: {ours}, not {expected}");
        }
    }

    #[test]
    fn the_error_rate_of_dbpsk_is_half_an_exponential() {
        // Energy of a bit over noise density 10: exp(-10) / 2 (Proakis §5.2.8).
        let right = intact(DataRate::mbps(1), 10.0 / 22.0, 1.0);
        assert!((1.0 - right - 2.269_996e-5).abs() < 1e-10, "{right}");
    }

    #[test]
    fn a_symbol_without_signal_is_a_guess_among_sixteen() {
        assert!((biorthogonal(0.0) - 1.0 / 16.0).abs() < 1e-6, "{}", biorthogonal(0.0));
    }
}
