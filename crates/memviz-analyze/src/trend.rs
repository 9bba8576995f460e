//! What a series of numbers does: grows, fills and stays flat, warms up, goes up and down.
//!
//! The rule, in order, on one value per step:
//! 1. Fewer than [`LEAST_STEPS`] values: too few to say.
//! 2. The later half decides about growth. Its slope is Theil and Sen's (the median slope of all pairs: a few odd steps do
//!    not move it). It *grows* when at least [`AGREEING`] of the pairs go up, net of those that go down, and the half grew by
//!    more than the noise: [`NOISE_SHARE`] of the level and the least amount of the unit (bytes, buffers). It *shrinks* by
//!    the same rule downwards.
//! 3. At least [`LEAST_FALLS`] falls by half the range, and a range above [`TOOTH_SHARE`] of the highest: a *sawtooth*, which
//!    grows if the values after its falls do.
//! 4. It rose before the later half: a *warm-up* when nine tenths of that came within [`WARM_UP_SHARE`] of the steps or the
//!    first [`WARM_UP_STEPS`], else it *fills then is flat*.
//! 5. Else it is *flat*.

use serde::Serialize;

/// Values needed for a verdict.
pub const LEAST_STEPS: usize = 6;
/// Pairs that go up minus pairs that go down, of all pairs (Kendall's tau).
pub const AGREEING: f64 = 0.6;
/// Of the level of the later half.
pub const NOISE_SHARE: f64 = 0.005;
/// Falls that make a sawtooth.
pub const LEAST_FALLS: usize = 2;
/// Range of a sawtooth, of its highest value.
pub const TOOTH_SHARE: f64 = 0.2;
/// Steps that a warm-up may take.
pub const WARM_UP_STEPS: usize = 3;
/// The same as a share of all steps.
pub const WARM_UP_SHARE: f64 = 0.2;
/// Change below which bytes are noise.
pub const NOISE_BYTES: f64 = 1024.0;
/// Change below which a number of buffers is noise.
pub const NOISE_BUFFERS: f64 = 3.0;
/// Values of which all pairs are looked at: more are thinned out evenly.
const MOST_VALUES: usize = 256;

/// What a series does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Fewer than `LEAST_STEPS` steps.
    #[default]
    TooFewSteps,
    /// Higher and higher to the end.
    Grows,
    /// Lower and lower to the end.
    Shrinks,
    /// Up and down, and no higher in the end.
    Sawtooth,
    /// Rose in the first steps only.
    WarmUp,
    /// Rose for a while, then stayed.
    FillsThenFlat,
    /// Neither rose nor fell.
    Flat,
}

impl Verdict {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::TooFewSteps => "too few steps",
            Verdict::Grows => "grows",
            Verdict::Shrinks => "shrinks",
            Verdict::Sawtooth => "sawtooth",
            Verdict::WarmUp => "warm-up",
            Verdict::FillsThenFlat => "fills then flat",
            Verdict::Flat => "flat",
        }
    }
}

/// A verdict and the numbers behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Trend {
    /// What it does.
    pub verdict: Verdict,
    /// Change a step in the later half, median of all pairs.
    pub slope: f64,
    /// Pairs of the later half that go up minus those that go down, of all pairs: -1 to 1.
    pub agreeing: f64,
    /// First value.
    pub first: u64,
    /// Last value.
    pub last: u64,
    /// Highest value.
    pub highest: u64,
    /// Falls by half the range or more.
    pub falls: usize,
}

impl Trend {
    /// The trend of one value per step; changes below `noise` do not count.
    pub fn of(values: &[u64], noise: f64) -> Trend {
        let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return Trend::default() };
        let highest = values.iter().copied().max().unwrap_or(0);
        let lowest = values.iter().copied().min().unwrap_or(0);
        let later = &values[values.len() / 2..];
        let (slope, agreeing) = slope_of(later);
        let lows = lows(values, (highest - lowest) as f64 / 2.0);
        let mut trend =
            Trend { verdict: Verdict::TooFewSteps, slope, agreeing, first, last, highest, falls: lows.len() };
        if values.len() >= LEAST_STEPS {
            trend.verdict = verdict(values, later, &trend, &lows, noise, highest - lowest);
        }
        trend
    }

    /// Steps until the series reaches `limit`, when it grows.
    pub fn steps_until(&self, limit: u64) -> Option<u64> {
        if self.verdict != Verdict::Grows || self.slope <= 0.0 {
            return None;
        }
        Some((limit.saturating_sub(self.last) as f64 / self.slope).ceil() as u64)
    }
}

fn verdict(values: &[u64], later: &[u64], trend: &Trend, lows: &[u64], noise: f64, range: u64) -> Verdict {
    let level = median(later.iter().map(|value| *value as f64).collect());
    let noise = noise.max(NOISE_SHARE * level);
    let change = trend.slope.abs() * (later.len().max(2) - 1) as f64;
    let is_tooth = lows.len() >= LEAST_FALLS && range as f64 > TOOTH_SHARE * trend.highest as f64;
    if is_tooth {
        let (slope, agreeing) = slope_of(lows);
        let rises = lows.len() > 2 && agreeing >= AGREEING && slope * (lows.len() - 1) as f64 > noise;
        return if rises { Verdict::Grows } else { Verdict::Sawtooth };
    }
    if change > noise && trend.agreeing.abs() >= AGREEING {
        return if trend.slope > 0.0 { Verdict::Grows } else { Verdict::Shrinks };
    }
    let rise = level - values[0] as f64;
    if rise <= noise {
        return Verdict::Flat;
    }
    let mark = values[0] as f64 + 0.9 * rise;
    let risen_at = values.iter().position(|value| *value as f64 >= mark).unwrap_or(values.len());
    let warm_up = WARM_UP_STEPS.max((values.len() as f64 * WARM_UP_SHARE) as usize);
    if risen_at <= warm_up { Verdict::WarmUp } else { Verdict::FillsThenFlat }
}

/// The values after falls by at least `depth`.
fn lows(values: &[u64], depth: f64) -> Vec<u64> {
    let fell = |pair: &&[u64]| depth > 0.0 && pair[0] as f64 - pair[1] as f64 >= depth;
    values.windows(2).filter(fell).map(|pair| pair[1]).collect()
}

/// Median slope of all pairs, and how far pairs agree on a direction.
fn slope_of(values: &[u64]) -> (f64, f64) {
    let stride = values.len().div_ceil(MOST_VALUES).max(1);
    let thin: Vec<(f64, f64)> =
        values.iter().enumerate().step_by(stride).map(|(at, value)| (at as f64, *value as f64)).collect();
    let mut slopes = Vec::with_capacity(thin.len() * thin.len() / 2);
    for (nth, (x0, y0)) in thin.iter().enumerate() {
        slopes.extend(thin[nth + 1..].iter().map(|(x, y)| (y - y0) / (x - x0)));
    }
    if slopes.is_empty() {
        return (0.0, 0.0);
    }
    let up = slopes.iter().filter(|slope| **slope > 0.0).count() as f64;
    let down = slopes.iter().filter(|slope| **slope < 0.0).count() as f64;
    let agreeing = (up - down) / slopes.len() as f64;
    (median(slopes), agreeing)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_of(values: impl IntoIterator<Item = u64>) -> Verdict {
        Trend::of(&values.into_iter().map(|value| value << 20).collect::<Vec<_>>(), NOISE_BYTES).verdict
    }

    #[test]
    fn shapes_have_names() {
        assert_eq!(verdict_of([]), Verdict::TooFewSteps);
        assert_eq!(verdict_of(0..5), Verdict::TooFewSteps);
        assert_eq!(verdict_of(0..6), Verdict::Grows);
        assert_eq!(verdict_of((0..40).rev()), Verdict::Shrinks);
        assert_eq!(verdict_of([7; 20]), Verdict::Flat);
        assert_eq!(verdict_of((0..40).map(|step| step.min(2) * 50)), Verdict::WarmUp);
        assert_eq!(verdict_of((0..40).map(|step| step.min(16))), Verdict::FillsThenFlat);
        assert_eq!(verdict_of((0..40).map(|step| step % 8)), Verdict::Sawtooth);
        assert_eq!(verdict_of((0..40).map(|step| step % 8 + step / 8 * 3)), Verdict::Grows);
        // Noise of 1 in 1000 around a level, and odd steps in a flat series.
        assert_eq!(verdict_of((0..40).map(|step| 1000 + step * 7 % 3)), Verdict::Flat);
        assert_eq!(verdict_of((0..40).map(|step| if step == 30 { 500 } else { 100 })), Verdict::Flat);
    }

    #[test]
    fn slopes_are_robust_and_exact() {
        let mut values: Vec<u64> = (0..32).map(|step| step * 1_048_580).collect();
        values[20] += 1 << 30;
        let trend = Trend::of(&values, NOISE_BYTES);
        assert_eq!((trend.verdict, trend.slope), (Verdict::Grows, 1_048_580.0));
        assert_eq!(trend.steps_until(33 * 1_048_580), Some(2));
        let many: Vec<u64> = (0..10_000).map(|step| step * 4096).collect();
        assert_eq!(Trend::of(&many, NOISE_BYTES).slope, 4096.0);
    }
}
