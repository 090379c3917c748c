//! Lognormal draws, for sizes that spread by factors: one normal number by Box and Muller.

use crate::rng::Rng;

/// Largest distance from the median, in standard deviations: bounds every draw.
const MOST: f64 = 4.0;

/// Draws a number with a normal logarithm of standard deviation `sigma` around that of `median`.
pub fn lognormal(rng: &mut Rng, median: f64, sigma: f64) -> f64 {
    median * libm::exp(sigma * normal(rng).clamp(-MOST, MOST))
}

fn normal(rng: &mut Rng) -> f64 {
    // 1 - u is never 0.
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.unit()));
    radius * libm::cos(core::f64::consts::TAU * rng.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kolmogorov and Smirnov: the largest distance of the sample from the distribution.
    #[test]
    fn draws_follow_the_distribution() {
        let (median, sigma, n) = (14_200.0, 0.38, 20_000);
        let mut rng = Rng::new(1, 0);
        let mut draws: Vec<f64> = (0..n).map(|_| lognormal(&mut rng, median, sigma)).collect();
        draws.sort_unstable_by(f64::total_cmp);
        let expected =
            |x: f64| 0.5 * (1.0 + libm::erf(libm::log(x / median) / sigma / f64::sqrt(2.0)));
        let distance = draws.iter().enumerate().map(|(i, &x)| {
            let p = expected(x);
            (p - i as f64 / f64::from(n)).abs().max((p - (i + 1) as f64 / f64::from(n)).abs())
        });
        let distance = distance.fold(0.0, f64::max);
        // 1.63/√n: one in a hundred samples is farther away.
        assert!(distance < 1.63 / f64::from(n).sqrt(), "{distance}");
    }

    #[test]
    fn no_draw_is_out_of_bounds() {
        let mut rng = Rng::new(2, 0);
        let bound = libm::exp(MOST) * 1.000_001;
        assert!(
            (0..100_000).all(|_| (1.0 / bound..=bound).contains(&lognormal(&mut rng, 1.0, 1.0)))
        );
    }
}
