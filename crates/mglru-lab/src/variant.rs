//! A variant: a named policy of the core, with switches on top, and for a control also with other
//! keys of the plan (`with = { "workload.row_choice" = "uniform" }`).

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::dotted::{self, Assignment};
use crate::typed;
use mglru_error::KeyError;

/// Describes a policy to run: a named base and the keys that differ from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Holds the name shown in tables and records.
    pub name: String,
    /// Names the variant of the core from which it starts.
    pub base: String,
    /// Holds keys set on top, in the order given.
    pub set: IndexMap<String, Value>,
    /// Holds keys of `machine`, `groups` and `workload` that differ from the plan's.
    pub with: Vec<Assignment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AsTyped {
    name: String,
    base: Option<String>,
    #[serde(default)]
    set: Table,
    #[serde(default)]
    with: Table,
}

impl Variant {
    /// Returns a variant of the core under its own name.
    pub fn named(name: &str) -> Self {
        let (name, base) = (name.to_string(), name.to_string());
        Self { name, base, set: IndexMap::new(), with: Vec::new() }
    }

    /// One entry of a plan's `variants`: `"after"`, `"before+p10"` or
    /// `{ name, base, set = { … } }`.
    pub(crate) fn from_value(value: &Value) -> Result<Self, KeyError> {
        match value {
            Value::String(text) => Self::parse(text).map_err(|e| KeyError::value("", text, e)),
            Value::Table(_) => {
                let typed: AsTyped = typed::from_value(value.clone())?;
                let base = typed.base.unwrap_or_else(|| typed.name.clone());
                let set = dotted::flatten(&typed.set).into_iter().collect();
                let with = assignments(&typed.with)?;
                Ok(Self { name: typed.name, base, set, with })
            }
            other => Err(KeyError::value("", other, "expected a name or a table")),
        }
    }

    /// Reads `after`, `before+p10`, `after+p06p+floor=v5`, `after+p09=false`.
    ///
    /// # Errors
    /// When a part is empty.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split('+').map(str::trim);
        let base = parts.next().unwrap_or_default();
        let mut variant = Self { name: text.to_string(), ..Self::named(base) };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, "true"));
            variant.set.insert(key.to_string(), dotted::parse_value(value));
        }
        match base.is_empty() || variant.set.keys().any(String::is_empty) {
            true => Err("expected NAME or NAME+SWITCH[=VALUE]…".to_string()),
            false => Ok(variant),
        }
    }
}

/// The keys a control changes, which must be of a section that can differ between variants.
fn assignments(with: &Table) -> Result<Vec<Assignment>, KeyError> {
    let read = |(key, value): (String, Value)| match key.split_once('.') {
        Some(("machine" | "groups" | "workload", _)) => Ok(Assignment { key, value }),
        _ => {
            let problem = "must be a key of machine, groups or workload";
            Err(KeyError::key(format!("with.{key}"), problem))
        }
    };
    dotted::flatten(with).into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composed_names() {
        let v = Variant::parse("after+p09=false+floor=v5").unwrap();
        assert_eq!((v.name.as_str(), v.base.as_str()), ("after+p09=false+floor=v5", "after"));
        assert_eq!(v.set["p09"], Value::Boolean(false));
        assert_eq!(v.set["floor"], Value::String("v5".into()));
        assert!(Variant::parse("+p10").is_err() && Variant::parse("a+").is_err());
    }

    #[test]
    fn tables_name_a_base_and_keys() {
        let table: Table = "name = \"x\"\nbase = \"before\"\nset = { p10 = true }".parse().unwrap();
        let v = Variant::from_value(&Value::Table(table)).unwrap();
        assert_eq!((v.base.as_str(), &v.set["p10"]), ("before", &Value::Boolean(true)));
    }

    #[test]
    fn controls_change_keys_of_the_plan() {
        let read = |with: &str| {
            let table: Table = format!("name = \"before\"\n[with]\n{with}").parse().unwrap();
            Variant::from_value(&Value::Table(table))
        };
        let with = read("workload.theta = 0.5").unwrap().with;
        assert_eq!(with, ["workload.theta=0.5".parse().unwrap()]);
        let error = read("seeds = 3").unwrap_err().to_string();
        assert_eq!(error, "with.seeds: must be a key of machine, groups or workload");
    }
}
