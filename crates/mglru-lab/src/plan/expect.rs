//! Expectations a plan states as data: published figures, what else must hold, neutral metrics.

use serde::{Deserialize, Serialize};

use mglru_error::KeyError;

/// States a published before/after pair and the band of the ratio that counts as reproduced.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Names the metric, as in the plan's `metrics`.
    pub metric: String,
    /// Names the document that reports it.
    pub document: String,
    /// Names the variant the published "before" is; the plan's base when absent.
    pub base: Option<String>,
    /// Names the variant the published "after" is.
    #[serde(default = "after")]
    pub variant: String,
    /// Gives the figure before, in the metric's unit.
    pub before: f64,
    /// Gives the figure after.
    pub after: f64,
    /// Sets the lowest and highest ratio after/before that passes; from the published change when
    /// absent.
    pub band: Option<[f64; 2]>,
    /// Says which way it must move; from the band when absent.
    pub direction: Option<Direction>,
}

/// Says which way a ratio must move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Rises above 1.
    Up,
    /// Falls below 1.
    Down,
    /// Moves nowhere: equal within the band.
    None,
}

/// Names a quantity that shows whether the experiment itself is sound. Exactly one of `ratio`,
/// `value` and `share` says what must hold.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Gives the title of the check, for people.
    pub name: String,
    /// Names the metric.
    pub metric: String,
    /// Names the variant compared with; the plan's base when absent.
    pub base: Option<String>,
    /// Names the variant under test.
    pub variant: String,
    /// Sets the band of variant/base.
    pub ratio: Option<[f64; 2]>,
    /// Sets the band of the variant's own mean.
    pub value: Option<[f64; 2]>,
    /// Sets the band of the share this variant has in the log-ratio of variant `of`.
    pub share: Option<[f64; 2]>,
    /// Names the variant whose gain `share` is a share of.
    pub of: Option<String>,
}

/// Names a metric expected to stay equal: two one-sided tests at 5 %.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Neutral {
    /// Names the metric.
    pub metric: String,
    /// Names the variant compared with; the plan's base when absent.
    pub base: Option<String>,
    /// Names the variant under test.
    pub variant: String,
    /// Sets the band the 90 % interval of the ratio must lie in.
    #[serde(default = "neutral_band")]
    pub band: [f64; 2],
}

/// Describes an invariant or a rate by which a faulty policy gives itself away.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Indicator {
    /// Gives the title of the figure, for people.
    pub name: String,
    /// Names the metric.
    pub metric: String,
    /// With a base the range is that of the ratio to this variant, else of the figure itself.
    pub base: Option<String>,
    /// Sets the normal range.
    pub range: [f64; 2],
}

/// Says which variants indicators must flag, and which they must not.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Watch {
    /// Each must be flagged by at least one indicator.
    pub faulty: Vec<String>,
    /// No indicator may flag them.
    pub sound: Vec<String>,
}

/// Sets the default equivalence band of a ratio.
pub const NEUTRAL_BAND: [f64; 2] = [0.97, 1.03];

/// A published change counts as reproduced from half of it …
const MAGNITUDE_LOW: f64 = 0.5;
/// … to this multiple of it.
const MAGNITUDE_HIGH: f64 = 1.6;

impl Published {
    /// Returns the published ratio after/before.
    pub fn ratio(&self) -> f64 {
        self.after / self.before
    }

    /// Returns the band of the ratio that passes.
    pub fn band(&self) -> [f64; 2] {
        let change = self.ratio() - 1.0;
        let ends = [1.0 + MAGNITUDE_LOW * change, 1.0 + MAGNITUDE_HIGH * change];
        self.band.unwrap_or([ends[0].min(ends[1]).max(0.0), ends[0].max(ends[1])])
    }

    /// Returns the direction in which the ratio must move.
    pub fn direction(&self) -> Direction {
        let [low, high] = self.band();
        self.direction.unwrap_or(match (low >= 1.0, high <= 1.0) {
            (true, false) => Direction::Up,
            (false, true) => Direction::Down,
            _ => Direction::None,
        })
    }

    pub(super) fn check(&self) -> Result<(), KeyError> {
        for (key, value) in [("before", self.before), ("after", self.after)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(KeyError::value(key, value, "must be above 0"));
            }
        }
        check_band("band", self.band)
    }
}

impl Expect {
    pub(super) fn check(&self) -> Result<(), KeyError> {
        let bands = [("ratio", self.ratio), ("value", self.value), ("share", self.share)];
        if bands.iter().filter(|(_, band)| band.is_some()).count() != 1 {
            return Err(KeyError::key("", "needs exactly one of ratio, value and share"));
        }
        if self.share.is_some() != self.of.is_some() {
            return Err(KeyError::key("share", "share and of belong together"));
        }
        bands.into_iter().try_for_each(|(key, band)| check_band(key, band))
    }
}

impl Indicator {
    pub(super) fn check(&self) -> Result<(), KeyError> {
        check_band("range", Some(self.range))
    }
}

impl Neutral {
    pub(super) fn check(&self) -> Result<(), KeyError> {
        check_band("band", Some(self.band))
    }
}

fn check_band(key: &str, band: Option<[f64; 2]>) -> Result<(), KeyError> {
    match band {
        Some([low, high]) if low.is_nan() || high.is_nan() || low > high => {
            Err(KeyError::value(key, format!("[{low}, {high}]"), "low end above high end"))
        }
        _ => Ok(()),
    }
}

fn after() -> String {
    "after".to_string()
}

fn neutral_band() -> [f64; 2] {
    NEUTRAL_BAND
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(before: f64, after: f64) -> Published {
        Published {
            metric: "ops_per_s".into(),
            document: "000".into(),
            base: None,
            variant: "after".into(),
            before,
            after,
            band: None,
            direction: None,
        }
    }

    #[test]
    fn default_band_is_half_to_1_6_of_the_change() {
        let up = published(100.0, 120.0);
        assert!((up.band()[0] - 1.1).abs() < 1e-12 && (up.band()[1] - 1.32).abs() < 1e-12);
        assert_eq!(up.direction(), Direction::Up);
        let down = published(100.0, 60.0);
        assert!((down.band()[0] - 0.36).abs() < 1e-12 && (down.band()[1] - 0.8).abs() < 1e-12);
        assert_eq!(down.direction(), Direction::Down);
    }

    #[test]
    fn a_band_around_one_has_no_direction() {
        let p = Published { band: Some([0.95, 1.05]), ..published(100.0, 97.0) };
        assert_eq!(p.direction(), Direction::None);
    }
}
