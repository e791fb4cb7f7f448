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
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let half_width = (values.len() > 1)
            .then(|| student_t_975(values.len() - 1) * standard_error(values, mean));
        Self { mean, half_width }
    }

    /// The mean of the differences of pairs.
    pub fn of_differences(values: &[f64], others: &[f64]) -> Self {
        Self::of(&differences(values, others))
    }

    /// True if the whole interval is above zero.
    pub fn is_positive(self) -> bool {
        self.half_width.is_some_and(|half_width| self.mean > half_width)
    }

    /// True if the interval reaches beyond this.
    pub fn may_exceed(self, bound: f64) -> bool {
        self.half_width.is_none_or(|half_width| self.mean + half_width > bound)
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

/// The differences of pairs.
pub fn differences(values: &[f64], others: &[f64]) -> Vec<f64> {
    values.iter().zip(others).map(|(a, b)| a - b).collect()
}

/// The probability of values that are so far above zero, or farther, if their mean is zero: one-sided
/// p-value of Student's test.
pub fn p_value(values: &[f64]) -> f64 {
    let Estimate { mean, half_width } = Estimate::of(values);
    if half_width.is_none() {
        return 1.0;
    }
    match standard_error(values, mean) {
        0.0 if mean > 0.0 => 0.0,
        0.0 => 1.0,
        error => student_tail(mean / error, values.len() - 1),
    }
}

/// Of the mean, of which there are at least two values.
fn standard_error(values: &[f64], mean: f64) -> f64 {
    let n = values.len() as f64;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (squares / (n - 1.0) / n).sqrt()
}

/// Which of these p-values show something at the level of 2.5 %, as many as they are (Holm 1979).
pub fn shown(p_values: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut shown = vec![false; p_values.len()];
    for (place, &index) in order.iter().enumerate() {
        if p_values[index] > 0.025 / (p_values.len() - place) as f64 {
            break;
        }
        shown[index] = true;
    }
    shown
}

/// The probability that Student's t is above this (Abramowitz, Stegun 26.7.3 and 26.7.4).
fn student_tail(t: f64, degrees: usize) -> f64 {
    let theta = (t / (degrees as f64).sqrt()).atan();
    let (sin, cos) = theta.sin_cos();
    let is_odd = degrees % 2 == 1;
    // Each term of the sum is the one before times cos² θ and the next of 2/3, 4/5, … or 1/2, 3/4, ….
    let mut term = if is_odd { sin * cos } else { sin };
    let mut sum = 0.0;
    let mut n = if is_odd { 2.0 } else { 1.0 };
    for _ in 0..degrees / 2 {
        sum += term;
        term *= cos * cos * n / (n + 1.0);
        n += 2.0;
    }
    let within = if is_odd { std::f64::consts::FRAC_2_PI * (theta + sum) } else { sum };
    (1.0 - within) / 2.0
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
    fn student_tails_agree_with_the_tables() {
        // Abramowitz, Stegun, table 26.10: 0.025 and 0.005 on each side.
        for (degrees, t, t_995) in [
            (1, 12.706, 63.657),
            (2, 4.303, 9.925),
            (4, 2.776, 4.604),
            (9, 2.262, 3.250),
            (30, 2.042, 2.750),
        ] {
            assert!((student_tail(t, degrees) - 0.025).abs() < 1e-4, "{degrees}");
            assert!((student_tail(t_995, degrees) - 0.005).abs() < 1e-4, "{degrees}");
            assert!((student_tail(-t, degrees) - 0.975).abs() < 1e-4, "{degrees}");
        }
    }

    #[test]
    fn p_values_and_intervals_agree() {
        assert!((p_value(&[1.0, 2.0]) - student_tail(3.0, 1)).abs() < 1e-5);
        assert_eq!([p_value(&[1.0]), p_value(&[1.0, 1.0]), p_value(&[0.0, 0.0])], [1.0, 0.0, 1.0]);
        assert!(p_value(&[-1.0, -2.0]) > 0.5);
    }

    #[test]
    fn of_many_comparisons_a_small_p_value_shows_less() {
        assert_eq!(shown(&[0.02]), [true]);
        assert_eq!(shown(&[0.5, 0.02]), [false, false]);
        // 0.01 is below 0.025 / 2, and 0.02 below 0.025.
        assert_eq!(shown(&[0.02, 0.01]), [true, true]);
        assert_eq!(shown(&[0.02, 0.001, 0.6]), [false, true, false]);
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
