//! Paired comparison of positive figures by their log-ratio (experiments §0.7): the point estimate
//! is the geometric mean of the ratios, the interval is Student's t on the logs.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Sets the two-sided confidence of the direction test.
pub const DIRECTION: f64 = 0.95;

/// Sets the two-sided confidence of the equivalence test: two one-sided tests at 5 %.
pub const EQUIVALENCE: f64 = 0.90;

/// Holds paired log-ratios, variant over base.
#[derive(Clone, Debug, PartialEq)]
pub struct Paired {
    logs: Vec<f64>,
}

impl Paired {
    /// Takes pairs of (base, variant). `None` when there is no pair or a value is not positive: a
    /// ratio to or from zero says nothing a t interval could hold.
    pub fn new(pairs: &[(f64, f64)]) -> Option<Self> {
        let positive = pairs.iter().all(|(a, b)| *a > 0.0 && *b > 0.0);
        let logs = || pairs.iter().map(|(a, b)| (b / a).ln()).collect();
        (positive && !pairs.is_empty()).then(|| Self { logs: logs() })
    }

    /// Returns the number of pairs.
    pub fn n(&self) -> usize {
        self.logs.len()
    }

    /// Returns the mean log-ratio.
    pub fn log_ratio(&self) -> f64 {
        mean(&self.logs)
    }

    /// Returns the geometric mean of the ratios.
    pub fn ratio(&self) -> f64 {
        self.log_ratio().exp()
    }

    /// Returns the interval of the ratio; `None` for a single pair.
    pub fn interval(&self, confidence: f64) -> Option<[f64; 2]> {
        interval(&self.logs, confidence).map(|ends| ends.map(f64::exp))
    }
}

/// Holds log-ratios of two sides whose runs are no pairs, variant over base.
#[derive(Clone, Debug, PartialEq)]
pub struct Independent {
    base: Vec<f64>,
    variant: Vec<f64>,
}

impl Independent {
    /// Returns `None` when a side is empty or a value is not positive.
    pub fn new(base: &[f64], variant: &[f64]) -> Option<Self> {
        let positive = base.iter().chain(variant).all(|x| *x > 0.0);
        let logs = |side: &[f64]| side.iter().map(|x| x.ln()).collect();
        let some = positive && !base.is_empty() && !variant.is_empty();
        some.then(|| Self { base: logs(base), variant: logs(variant) })
    }

    /// Returns the ratio of the geometric means.
    pub fn ratio(&self) -> f64 {
        (mean(&self.variant) - mean(&self.base)).exp()
    }

    /// Returns Welch's interval of the ratio; `None` where a side has one run.
    pub fn interval(&self, confidence: f64) -> Option<[f64; 2]> {
        let sides = [&self.base, &self.variant];
        if sides.iter().any(|side| side.len() < 2) {
            return None;
        }
        let squared = sides.map(|side| standard_error(side).powi(2));
        let sum: f64 = squared.iter().sum();
        if sum == 0.0 {
            return Some([self.ratio(); 2]);
        }
        let parts = squared.iter().zip(sides).map(|(s, side)| s * s / (side.len() - 1) as f64);
        let freedom = sum * sum / parts.sum::<f64>();
        let t = StudentsT::new(0.0, 1.0, freedom).expect("at least one degree of freedom");
        let half = t.inverse_cdf(0.5 + confidence / 2.0) * sum.sqrt();
        Some([(self.ratio().ln() - half).exp(), (self.ratio().ln() + half).exp()])
    }
}

/// Returns Student's t interval of a mean; `None` for fewer than two values.
pub fn interval(values: &[f64], confidence: f64) -> Option<[f64; 2]> {
    if values.len() < 2 {
        return None;
    }
    let freedom = (values.len() - 1) as f64;
    let t = StudentsT::new(0.0, 1.0, freedom).expect("at least one degree of freedom");
    let half = t.inverse_cdf(0.5 + confidence / 2.0) * standard_error(values);
    let centre = mean(values);
    Some([centre - half, centre + half])
}

/// Returns the arithmetic mean; NaN for no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Divides a population's standard deviation by its mean; `None` for fewer than 2 or a mean of 0.
pub fn spread(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    let squares = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    (values.len() > 1 && mean > 0.0).then(|| (squares / values.len() as f64).sqrt() / mean)
}

fn standard_error(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
    let n = values.len() as f64;
    (squares / (n - 1.0) / n).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: logs ln 1.1, ln 1.2, ln 1.3 = 0.0953102, 0.1823216, 0.2623643; mean 0.1799987,
    /// sd 0.0835514, se 0.0482384; t(0.975, 2) = 4.3026527, t(0.95, 2) = 2.9199856.
    #[test]
    fn interval_agrees_with_a_hand_calculation() {
        let p = Paired::new(&[(10.0, 11.0), (10.0, 12.0), (10.0, 13.0)]).unwrap();
        assert!((p.ratio() - 1.1972158).abs() < 1e-6);
        let [low, high] = p.interval(DIRECTION).unwrap();
        assert!((low - (0.1799987_f64 - 4.3026527 * 0.0482384).exp()).abs() < 1e-5, "{low}");
        assert!((high - (0.1799987_f64 + 4.3026527 * 0.0482384).exp()).abs() < 1e-5, "{high}");
        let [low, _] = p.interval(EQUIVALENCE).unwrap();
        assert!((low - (0.1799987_f64 - 2.9199856 * 0.0482384).exp()).abs() < 1e-5, "{low}");
    }

    #[test]
    fn equal_ratios_leave_no_width() {
        let p = Paired::new(&[(1.0, 2.0), (3.0, 6.0)]).unwrap();
        let [low, high] = p.interval(DIRECTION).unwrap();
        assert!((low - 2.0).abs() < 1e-12 && (high - 2.0).abs() < 1e-12);
    }

    /// By hand: logs 0 and 0.0953102 against 0.1823216, 0.2623643; squared errors 0.0022710 and
    /// 0.0016017; 1.94 degrees of freedom by Welch's formula, t(0.975) = 4.3919.
    #[test]
    fn sides_without_pairs_have_welchs_interval() {
        let p = Independent::new(&[10.0, 11.0], &[12.0, 13.0]).unwrap();
        assert!((p.ratio().ln() - 0.1746878).abs() < 1e-6);
        let [low, high] = p.interval(DIRECTION).unwrap().map(f64::ln);
        assert!((low + high - 2.0 * 0.1746878).abs() < 1e-6);
        assert!((high - low) / 2.0 > 0.26 && (high - low) / 2.0 < 0.28, "{}", (high - low) / 2.0);
        assert_eq!(Independent::new(&[1.0], &[2.0]).unwrap().interval(DIRECTION), None);
        assert_eq!(Independent::new(&[0.0], &[2.0]), None);
        let same = Independent::new(&[1.0, 1.0], &[2.0, 2.0]).unwrap();
        assert!(same.interval(DIRECTION).unwrap().iter().all(|x| (x - 2.0).abs() < 1e-12));
    }

    #[test]
    fn one_pair_has_no_interval_and_zero_no_ratio() {
        assert_eq!(Paired::new(&[(1.0, 2.0)]).unwrap().interval(DIRECTION), None);
        assert_eq!(Paired::new(&[(0.0, 2.0)]), None);
        assert_eq!(Paired::new(&[]), None);
    }
}
