//! Bit errors of OFDM in white noise: uncoded errors of each modulation, and the union bound of the
//! convolutional code (Pei and Henderson, "Validation of OFDM error rate model in ns-3", Boeing
//! 2010; the modulations: Proakis, Digital Communications, 4th ed., §5.2).
//!
//! The weights of the codes are those of Frenger, Orten, Ottosson and Svensson, "Multi-rate
//! convolutional codes", Chalmers 1998, Tables 3.1.1 and 3.1.2, for 1/2, 2/3 and 3/4, and of
//! Haccoun and Begin, "High-rate punctured convolutional codes for Viterbi and sequential decoding",
//! IEEE Transactions on Communications 37(11), 1989, for 5/6. LDPC codes are better by a few dB.

use crate::wifi::ofdm::{CodeRate, CodingScheme};

/// Probability that none of `bits` data bits is wrong at a ratio `sinr` of signal to noise and
/// interference over the channel.
pub(crate) fn intact(scheme: CodingScheme, sinr: f64, bits: f64) -> f64 {
    let uncoded = uncoded(scheme.bits_per_subcarrier, sinr);
    if uncoded <= 0.0 {
        return 1.0;
    }
    libm::pow(1.0 - bound(scheme.code, uncoded).min(1.0), bits)
}

/// Bit error rate of a modulation with so many bits per symbol, Gray-coded.
fn uncoded(bits: u64, sinr: f64) -> f64 {
    match bits {
        1 => 0.5 * libm::erfc(libm::sqrt(sinr)),
        2 => 0.5 * libm::erfc(libm::sqrt(sinr / 2.0)),
        // A square constellation: so many amplitudes on each axis.
        _ => {
            let points = (1_u64 << bits) as f64;
            let side = libm::sqrt(points);
            let errors = (side - 1.0) / (side * (bits / 2) as f64);
            errors * libm::erfc(libm::sqrt(1.5 * sinr / (points - 1.0)))
        }
    }
}

/// Union bound on the bit error rate of a code behind a channel with the bit error rate `p`
/// (hard decisions, with Chernoff's bound on each error event).
fn bound(code: CodeRate, p: f64) -> f64 {
    /// Weights of error events of the distances from the first on, and the step between them.
    struct Spectrum {
        from: f64,
        step: f64,
        /// Data bits of a period of the code.
        period: f64,
        weights: &'static [f64],
    }
    let Spectrum { from, step, period, weights } = match code {
        CodeRate::Half => Spectrum {
            from: 10.0,
            step: 2.0,
            period: 1.0,
            weights: &[
                36.0,
                211.0,
                1404.0,
                11_633.0,
                77_433.0,
                502_690.0,
                3_322_763.0,
                21_292_910.0,
                134_365_911.0,
            ],
        },
        CodeRate::TwoThirds => Spectrum {
            from: 6.0,
            step: 1.0,
            period: 2.0,
            weights: &[
                3.0,
                70.0,
                285.0,
                1276.0,
                6160.0,
                27_128.0,
                117_019.0,
                498_860.0,
                2_103_891.0,
                8_784_123.0,
            ],
        },
        CodeRate::ThreeQuarters => Spectrum {
            from: 5.0,
            step: 1.0,
            period: 3.0,
            weights: &[
                42.0,
                201.0,
                1492.0,
                10_469.0,
                62_935.0,
                379_644.0,
                2_253_373.0,
                13_073_811.0,
                75_152_755.0,
                428_005_675.0,
            ],
        },
        CodeRate::FiveSixths => Spectrum {
            from: 4.0,
            step: 1.0,
            period: 5.0,
            weights: &[
                92.0,
                528.0,
                8694.0,
                79_453.0,
                792_114.0,
                7_375_573.0,
                67_884_974.0,
                610_875_423.0,
                5_427_275_376.0,
                47_664_215_639.0,
            ],
        },
    };
    let base = libm::sqrt(4.0 * p * (1.0 - p));
    // Horner's scheme.
    let factor = libm::pow(base, step);
    let sum = weights.iter().rev().fold(0.0, |sum, weight| sum * factor + weight);
    sum * libm::pow(base, from) / (2.0 * period)
}

#[cfg(test)]
mod tests {
    use crate::wifi::ofdm::OfdmMode;
    use crate::wifi::standard::Band;
    use airtcp_core::DataRate;

    /// Frames of 2000 bytes. The numbers and tolerances are those with which ns-3 checks its NIST
    /// model (`src/wifi/test/wifi-error-rate-models-test.cc`).
    #[test]
    fn the_frame_success_rates_are_those_of_ns3() {
        for (rate, decibels, expected, tolerance) in [
            (6, 2.5, 2.04e-10, 1e-10),
            (6, 3.0, 0.020, 0.001),
            (6, 4.0, 0.885, 0.001),
            (9, 6.0, 0.097, 0.001),
            (9, 7.0, 0.918, 0.001),
            (12, 6.0, 0.0174, 0.001),
            (12, 7.0, 0.881, 0.001),
            (18, 9.5, 0.623, 0.001),
            (18, 10.5, 0.985, 0.001),
            (24, 13.0, 0.495, 0.001),
            (24, 14.0, 0.974, 0.001),
            (36, 16.5, 0.818, 0.001),
            (36, 17.5, 0.993, 0.001),
            (48, 21.0, 0.649, 0.001),
            (48, 22.0, 0.983, 0.001),
            (54, 21.0, 5.44e-8, 1e-8),
            (54, 22.0, 0.410, 0.001),
            (54, 23.0, 0.958, 0.001),
        ] {
            let scheme = OfdmMode::of_rate(DataRate::mbps(rate), Band::Ghz5).scheme;
            let ours = super::intact(scheme, libm::pow(10.0, decibels / 10.0), 16_000.0);
            let error = (ours - expected).abs();
            assert!(error < tolerance, "{rate} Mbit/s at {decibels} dB: {ours}, not {expected}");
        }
    }

    #[test]
    fn without_noise_nothing_is_lost_and_without_signal_everything() {
        let scheme = crate::wifi::ofdm::CodingScheme::new(11);
        assert!(super::intact(scheme, 1e9, 1e6) >= 1.0);
        assert!(super::intact(scheme, 1.0, 1000.0) < 1e-12);
    }
}
