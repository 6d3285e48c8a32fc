//! Medians with confidence intervals by the bootstrap method. The random numbers have a fixed seed, so that equal
//! samples yield equal intervals.

/// Estimated value with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Estimated value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Number of bootstrap resamples.
const RESAMPLES: usize = 2000;

/// Estimates the median of samples; NaN without samples.
pub fn median(samples: &[f64]) -> Estimate {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| middle(samples.iter().map(|_| samples[random.below(samples.len())])))
        .collect();
    medians.sort_by(f64::total_cmp);
    Estimate {
        value: middle(samples.iter().copied()),
        low: medians[RESAMPLES / 40],
        high: medians[RESAMPLES - RESAMPLES / 40],
    }
}

/// Estimates the median of the ratios `measured` to `base` of samples that were taken in the same rounds.
pub fn ratio(measured: &[f64], base: &[f64]) -> Estimate {
    let ratios: Vec<f64> = measured.iter().zip(base).map(|(a, b)| a / b).collect();
    median(&ratios)
}

/// Returns the median of the samples; NaN without samples.
fn middle(samples: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = samples.collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

/// Sorts the samples and returns the quantile `part`, a number from 0 to 1; NaN without samples.
pub fn quantile(samples: &mut [f64], part: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let index = (samples.len() as f64 * part) as usize;
    let last = samples.len().saturating_sub(1);
    samples.get(index.min(last)).copied().unwrap_or(f64::NAN)
}

/// Deterministic random number generator (xorshift).
struct Random(u64);

impl Random {
    /// Returns a random number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The confidence interval contains the median and is narrower than the range of the samples.
    #[test]
    fn interval_contains_the_median() {
        let samples: Vec<f64> = (1..=21).map(f64::from).collect();
        let estimate = median(&samples);
        assert_eq!(estimate.value, 11.0);
        assert!(estimate.low < 11.0 && estimate.high > 11.0, "{estimate:?}");
        assert!(estimate.low > 3.0 && estimate.high < 19.0, "{estimate:?}");
    }

    /// The ratio of two servers is the median of the ratios in each round.
    #[test]
    fn ratios_are_computed_by_round() {
        let estimate = ratio(&[2.0, 4.0, 20.0], &[1.0, 2.0, 10.0]);
        assert_eq!(
            (estimate.value, estimate.low, estimate.high),
            (2.0, 2.0, 2.0)
        );
    }

    /// A quantile does not depend on the order of the samples.
    #[test]
    fn quantiles_are_of_the_sorted_samples() {
        let mut samples = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&mut samples, 0.5), 3.0);
        assert_eq!(quantile(&mut samples, 0.99), 4.0);
    }
}
