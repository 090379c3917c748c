//! The scale of a run. Memory, limits, footprints and operation counts shrink with it; block sizes,
//! batch sizes and thread counts do not, because the policies' constants were chosen for them. The
//! machine and each workload know which of their keys are which; plans are written at scale 1.

use serde::{Deserialize, Deserializer, de};
use toml::Value;

use mglru_error::KeyError;

const RANGE: &str = "must be above 0 and at most 1, such as 0.25 or 1/64";

/// Parses `0.015625` or `1/64`.
///
/// # Errors
/// States the allowed range.
pub fn parse(text: &str) -> Result<f64, String> {
    let number = |t: &str| t.trim().parse::<f64>().ok();
    let scale = match text.split_once('/') {
        Some((over, under)) => number(over).zip(number(under)).map(|(o, u)| o / u),
        None => number(text),
    };
    scale.filter(|s| *s > 0.0 && *s <= 1.0).ok_or_else(|| RANGE.to_string())
}

/// The `scale` key of a plan.
pub(crate) fn from_value(value: &Value) -> Result<f64, KeyError> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    parse(&text).map_err(|problem| KeyError::value("scale", text, problem))
}

/// A key that may hold a scale.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let value = Value::deserialize(from)?;
    from_value(&value).map(Some).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_agree() {
        assert_eq!(parse("1/64"), Ok(0.015625));
        assert_eq!(parse("0.015625"), Ok(0.015625));
        for text in ["0", "-1", "2", "1/0", "x", "0/0", "nan"] {
            assert_eq!(parse(text), Err(RANGE.to_string()), "{text}");
        }
    }
}
