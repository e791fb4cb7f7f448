//! Means with their confidence intervals.

/// Mean and half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean.
    pub mean: f64,
    /// Half the width of the interval; `None` for a single value.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// The mean of these values, of which there is at least one.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let half_width = (values.len() > 1).then(|| {
            let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
            student_t_975(values.len() - 1) * (squares / (n - 1.0) / n).sqrt()
        });
        Self { mean, half_width }
    }

    /// The mean of the differences of pairs.
    pub fn of_differences(values: &[f64], others: &[f64]) -> Self {
        let differences: Vec<f64> = values.iter().zip(others).map(|(a, b)| a - b).collect();
        Self::of(&differences)
    }

    /// True if the whole interval is above zero.
    pub fn is_positive(self) -> bool {
        self.half_width.is_some_and(|half_width| self.mean > half_width)
    }

    /// `5.31 ± 0.10`.
    pub fn show(self, decimals: usize) -> String {
        match self.half_width {
            Some(half_width) => format!("{:.decimals$} ± {half_width:.decimals$}", self.mean),
            None => format!("{:.decimals$}", self.mean),
        }
    }

    /// Shows a number of events: a single run has no fraction of one.
    pub fn show_count(self) -> String {
        self.show(if self.half_width.is_some() { 1 } else { 0 })
    }
}

/// The 97.5 % quantile of Student's t: exact to four digits for few degrees of freedom, then by the
/// Cornish-Fisher expansion about the normal quantile (Abramowitz, Stegun 26.7.5).
fn student_t_975(degrees: usize) -> f64 {
    const FEW: [f64; 6] = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469];
    if let Some(t) = FEW.get(degrees - 1) {
        return *t;
    }
    let z = 1.959_963_985_f64;
    let (n, z2) = (degrees as f64, z * z);
    let g1 = z * (z2 + 1.0) / 4.0;
    let g2 = z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
    let g3 = z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
    z + g1 / n + g2 / (n * n) + g3 / (n * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_quantiles_agree_with_the_tables() {
        // Abramowitz, Stegun, table 26.10.
        for (degrees, t) in
            [(1, 12.706), (4, 2.776), (9, 2.262), (19, 2.093), (30, 2.042), (120, 1.980)]
        {
            assert!(
                (student_t_975(degrees) - t).abs() < 1e-3,
                "{degrees}: {}",
                student_t_975(degrees)
            );
        }
    }

    #[test]
    fn the_interval_of_two_values() {
        // s = √2/2 for {1, 2}; t₁ · s/√2 = 12.7062 / 2.
        let estimate = Estimate::of(&[1.0, 2.0]);
        assert_eq!(estimate.mean, 1.5);
        assert!((estimate.half_width.unwrap() - 6.3531).abs() < 1e-9);
        assert_eq!(estimate.show(1), "1.5 ± 6.4");
        assert_eq!(Estimate::of(&[1.5]).show(2), "1.50");
    }

    #[test]
    fn only_means_of_counts_have_decimals() {
        assert_eq!(Estimate::of(&[41.0]).show_count(), "41");
        assert_eq!(Estimate::of(&[1.0, 2.0]).show_count(), "1.5 ± 6.4");
    }
}
