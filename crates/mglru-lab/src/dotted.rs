//! Dotted keys into TOML tables: `--set workload.theta=0.9`, flattening, canonical text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use mglru_error::KeyError;

/// Holds one `--set KEY=VALUE`. The value is TOML where it parses as such, else a plain string.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Holds the dotted key.
    pub key: String,
    /// Holds the new value.
    pub value: Value,
}

impl std::str::FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
        let (key, value) = (key.trim(), value.trim());
        if key.is_empty() || key.split('.').any(str::is_empty) {
            return Err(format!("{text}: the key before = has an empty part"));
        }
        Ok(Self { key: key.to_string(), value: parse_value(value) })
    }
}

/// Parses a scalar or list as typed on a command line.
pub fn parse_value(text: &str) -> Value {
    let line = format!("value = {text}");
    let parsed = line.parse::<Table>().ok().filter(|table| table.len() == 1);
    parsed
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_string()))
}

/// Makes a table of a device that is named by its preset alone, so that other keys can be set.
fn spell_out(device: &mut Value) {
    if let Value::String(preset) = device {
        let preset = Value::String(std::mem::take(preset));
        *device = Value::Table(Table::from_iter([("preset".to_string(), preset)]));
    }
}

/// Sets a dotted key, making tables on the way.
///
/// # Errors
/// When a part of the path exists and is no table.
pub fn set(table: &mut Table, assignment: &Assignment) -> Result<(), KeyError> {
    let mut parts: Vec<&str> = assignment.key.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let mut at = table;
    for part in parts {
        let entry = at.entry(part).or_insert_with(|| Value::Table(Table::new()));
        if part == "device" {
            spell_out(entry);
        }
        at = entry.as_table_mut().ok_or_else(|| {
            KeyError::key(&assignment.key, format!("`{part}` is a value, it has no keys"))
        })?;
    }
    at.insert(last.to_string(), assignment.value.clone());
    Ok(())
}

/// Returns the value at a dotted key whose last part may itself contain dots.
pub fn get_mut<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Value> {
    if table.contains_key(key) {
        return table.get_mut(key);
    }
    let splits: Vec<usize> = key.match_indices('.').map(|(at, _)| at).collect();
    let at = splits.into_iter().find(|at| {
        let inner = table.get(&key[..*at]).and_then(Value::as_table);
        inner.is_some_and(|inner| has(inner, &key[at + 1..]))
    })?;
    get_mut(table.get_mut(&key[..at])?.as_table_mut()?, &key[at + 1..])
}

fn has(table: &Table, key: &str) -> bool {
    table.contains_key(key)
        || key.match_indices('.').any(|(at, _)| {
            let inner = table.get(&key[..at]).and_then(Value::as_table);
            inner.is_some_and(|inner| has(inner, &key[at + 1..]))
        })
}

/// Lists all scalar and list leaves with their dotted keys, in table order.
pub fn leaves(table: &Table) -> Vec<(String, &Value)> {
    let mut out = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                let inner = leaves(inner).into_iter();
                out.extend(inner.map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            _ => out.push((key.clone(), value)),
        }
    }
    out
}

/// Turns `memory = { max = … }` into `"memory.max" = …`, so both ways of writing are one.
pub fn flatten(table: &Table) -> Table {
    leaves(table).into_iter().map(|(key, value)| (key, value.clone())).collect()
}

/// Writes the table as sorted `key = value` lines: equal text for equal meaning.
pub fn canonical(table: &Table) -> String {
    let sorted: BTreeMap<String, String> =
        leaves(table).into_iter().map(|(key, value)| (key, value.to_string())).collect();
    sorted.into_iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assign(text: &str) -> Assignment {
        text.parse().unwrap()
    }

    #[test]
    fn values_are_toml_or_plain_text() {
        assert_eq!(assign("a.b=3").value, Value::Integer(3));
        assert_eq!(assign("a=[1, 2]").value, Value::Array(vec![1.into(), 2.into()]));
        assert_eq!(assign("a=10GiB").value, Value::String("10GiB".into()));
        assert_eq!(assign("a=x\nb=1").value, Value::String("x\nb=1".into()));
    }

    #[test]
    fn refuses_what_is_no_assignment() {
        assert!("theta".parse::<Assignment>().is_err());
        assert!("a..b=1".parse::<Assignment>().is_err());
        assert!("=1".parse::<Assignment>().is_err());
    }

    #[test]
    fn sets_and_finds_nested_keys() {
        let mut table = Table::new();
        set(&mut table, &assign("groups./a.memory.max=1")).unwrap();
        assert_eq!(get_mut(&mut table, "groups./a.memory.max"), Some(&mut Value::Integer(1)));
        assert_eq!(get_mut(&mut table, "groups./b.memory.max"), None);
        set(&mut table, &assign("machine.device=nvme")).unwrap();
        set(&mut table, &assign("machine.device.channels=4")).unwrap();
        let device = get_mut(&mut table, "machine.device").unwrap();
        assert_eq!((device["preset"].as_str(), &device["channels"]), (Some("nvme"), &4.into()));
        let err = set(&mut table, &assign("groups./a.memory.max.x=1")).unwrap_err();
        assert_eq!(err.to_string(), "groups./a.memory.max.x: `max` is a value, it has no keys");
    }

    #[test]
    fn finds_keys_with_dots_in_their_names() {
        let mut table: Table = "[\"/a\"]\n\"memory.max\" = 7".parse().unwrap();
        assert_eq!(get_mut(&mut table, "/a.memory.max"), Some(&mut Value::Integer(7)));
    }

    #[test]
    fn canonical_text_ignores_order_and_nesting_style() {
        let a: Table = "b = 1\n[a]\nx.y = 2".parse().unwrap();
        let b: Table = "a.x = { y = 2 }\nb = 1".parse::<Table>().unwrap();
        assert_eq!(canonical(&a), canonical(&b));
        assert_eq!(canonical(&a), "a.x.y = 2\nb = 1\n");
    }
}
