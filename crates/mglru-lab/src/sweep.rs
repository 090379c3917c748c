//! Sweeps: a list or a range string (`"1..10"`, both ends included) where a backend wants a single
//! value is an axis; the plan runs at every point of the product of its axes. A list the backend
//! takes as a list stays one: the smallest set of axes that makes the sections valid is meant.

use toml::{Table, Value};

use crate::dotted::{self, Assignment};
use mglru_error::KeyError;

/// Bounds the points that a plan may expand to.
pub const MAX_POINTS: usize = 10_000;

/// Up to here every subset of candidate axes is tried, above all candidates are axes.
const MAX_CANDIDATES: usize = 8;

/// Sections in which every list is an axis, because their keys take single values only.
const SCALAR_SECTIONS: [&str; 2] = ["groups.", "reclaim."];

/// Describes one point of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Names the point: `workload.theta=0.9, groups./a.memory.max=64MiB`; empty without a sweep.
    pub name: String,
    /// Holds the sections with single values.
    pub sections: Table,
    /// Holds the value of each axis, in the order of the name.
    pub values: Vec<Assignment>,
}

#[derive(Clone, Debug)]
struct Axis {
    key: String,
    values: Vec<Value>,
}

impl Axis {
    /// Refuses a value that stands there twice: its runs would pass for repetitions.
    fn check(&self) -> Result<(), KeyError> {
        let twice = (1..self.values.len()).find(|&at| self.values[..at].contains(&self.values[at]));
        match twice {
            Some(at) => {
                Err(KeyError::key(&self.key, format!("{} is there twice", self.values[at])))
            }
            None => Ok(()),
        }
    }
}

/// Expands the sections to points, in the order written, the last axis fastest.
///
/// # Errors
/// The error `accepts` gives for the sections when no choice of axes makes them valid, or more
/// than [`MAX_POINTS`] points.
pub fn expand(
    sections: &Table,
    accepts: &dyn Fn(&Table) -> Result<(), KeyError>,
) -> Result<Vec<Point>, KeyError> {
    let axes = choose(sections, candidates(sections), accepts)?;
    axes.iter().try_for_each(Axis::check)?;
    let points: usize = axes.iter().map(|axis| axis.values.len()).product();
    if points > MAX_POINTS || axes.len() > 16 {
        let keys: Vec<&str> = axes.iter().map(|axis| axis.key.as_str()).collect();
        let problem = format!("the sweep has {points} points, at most {MAX_POINTS} can run");
        return Err(KeyError::key(keys.join(", "), problem));
    }
    Ok((0..points).map(|index| point(sections, &axes, index)).collect())
}

/// Leaves that may be axes.
fn candidates(sections: &Table) -> Vec<Axis> {
    let axis = |(key, value): (String, &Value)| Some(Axis { key, values: values(value)? });
    dotted::leaves(sections).into_iter().filter_map(axis).collect()
}

fn values(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(list) if list.iter().all(is_scalar) && !list.is_empty() => Some(list.clone()),
        Value::String(text) => range(text),
        _ => None,
    }
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Table(_))
}

fn range(text: &str) -> Option<Vec<Value>> {
    let (low, high) = text.split_once("..")?;
    let (low, high): (i64, i64) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
    let length = high.checked_sub(low)?;
    let fits = (0..=MAX_POINTS as i64).contains(&length);
    fits.then(|| (low..=high).map(Value::Integer).collect())
}

fn choose(
    sections: &Table,
    candidates: Vec<Axis>,
    accepts: &dyn Fn(&Table) -> Result<(), KeyError>,
) -> Result<Vec<Axis>, KeyError> {
    let sure = |axis: &Axis| SCALAR_SECTIONS.iter().any(|s| axis.key.starts_with(s));
    let (sure, unsure): (Vec<Axis>, Vec<Axis>) = candidates.into_iter().partition(sure);
    let all = (1_usize << unsure.len().min(MAX_CANDIDATES)) - 1;
    let mut masks: Vec<usize> = match unsure.len() <= MAX_CANDIDATES {
        true => (0..=all).collect(),
        false => vec![usize::MAX],
    };
    masks.sort_by_key(|mask| mask.count_ones());
    let mut refusals = Vec::new();
    for mask in masks {
        let picked = unsure.iter().enumerate().filter(|(i, _)| mask >> (i % 64) & 1 == 1);
        let axes: Vec<Axis> = sure.iter().chain(picked.map(|(_, axis)| axis)).cloned().collect();
        match accepts(&point(sections, &axes, 0).sections) {
            Ok(()) => return Ok(axes),
            Err(e) => refusals.push(e),
        }
    }
    Err(most_telling(refusals, &unsure))
}

/// Picks, among the errors of all choices, one that a wrong choice of axes cannot have caused.
fn most_telling(refusals: Vec<KeyError>, candidates: &[Axis]) -> KeyError {
    let elsewhere = |e: &&KeyError| !candidates.iter().any(|axis| axis.key == e.key);
    let not_type = |e: &&KeyError| elsewhere(e) && !e.problem.starts_with("invalid type");
    let found = refusals.iter().find(not_type).or_else(|| refusals.iter().find(elsewhere));
    found.unwrap_or(&refusals[0]).clone()
}

fn point(sections: &Table, axes: &[Axis], index: usize) -> Point {
    let mut left = index;
    let mut values = Vec::new();
    for axis in axes.iter().rev() {
        let value = axis.values[left % axis.values.len()].clone();
        left /= axis.values.len();
        values.push(Assignment { key: axis.key.clone(), value });
    }
    values.reverse();
    at(sections, values).expect("axes come from leaves")
}

/// Returns the point at which the axes have these values; nothing where one is no key of the
/// sections.
pub fn at(sections: &Table, values: Vec<Assignment>) -> Option<Point> {
    let mut sections = sections.clone();
    for set in &values {
        *dotted::get_mut(&mut sections, &set.key)? = set.value.clone();
    }
    let names = values.iter().map(|set| format!("{}={}", set.key, plain(&set.value)));
    let name = names.collect::<Vec<_>>().join(", ");
    Some(Point { name, sections, values })
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `workload.theta` as a number and `workload.sizes` as a list.
    fn accepts(table: &Table) -> Result<(), KeyError> {
        let workload = table["workload"].as_table().unwrap();
        for (key, value) in workload {
            let fine = match key.as_str() {
                "theta" | "n" => value.is_float() || value.is_integer(),
                "sizes" => value.is_array(),
                _ => false,
            };
            if !fine {
                return Err(KeyError::value(format!("workload.{key}"), value, "wrong"));
            }
        }
        Ok(())
    }

    fn names(text: &str) -> Vec<String> {
        let points = expand(&text.parse().unwrap(), &accepts).unwrap();
        points.into_iter().map(|p| p.name).collect()
    }

    #[test]
    fn no_lists_no_sweep() {
        assert_eq!(names("[workload]\ntheta = 0.9"), [""]);
    }

    #[test]
    fn lists_stay_lists_where_the_backend_takes_them() {
        assert_eq!(
            names("[workload]\nsizes = [1, 2]\ntheta = [0.8, 0.9]"),
            ["workload.theta=0.8", "workload.theta=0.9"]
        );
    }

    #[test]
    fn the_last_axis_is_fastest() {
        assert_eq!(
            names(
                "[workload]\nn = \"1..2\"\n[groups.\"/a\"]\n\"memory.max\" = [\"1MiB\", \"2MiB\"]"
            ),
            [
                "groups./a.memory.max=1MiB, workload.n=1",
                "groups./a.memory.max=1MiB, workload.n=2",
                "groups./a.memory.max=2MiB, workload.n=1",
                "groups./a.memory.max=2MiB, workload.n=2",
            ]
        );
    }

    #[test]
    fn a_real_mistake_is_reported_not_swept_away() {
        let table = "[workload]\ntheta = [0.8, 0.9]\nx = 1".parse().unwrap();
        let err = expand(&table, &accepts).unwrap_err();
        assert_eq!(err.to_string(), "workload.x = 1: wrong");
    }

    #[test]
    fn a_value_twice_is_no_repetition() {
        let table = "[workload]\ntheta = [0.8, 0.9, 0.8]".parse().unwrap();
        let err = expand(&table, &accepts).unwrap_err();
        assert_eq!(err.to_string(), "workload.theta: 0.8 is there twice");
    }

    #[test]
    fn too_many_points_are_refused() {
        let table = "[reclaim]\na = \"1..101\"\nb = \"1..100\"\n[workload]".parse().unwrap();
        let err = expand(&table, &accepts).unwrap_err();
        assert_eq!(
            err.to_string(),
            "reclaim.a, reclaim.b: the sweep has 10100 points, at most 10000 can run"
        );
    }
}
