//! A group's limits as a plan writes them, with cgroup v2 names.

use mglru_sim::spec::GroupSpec;
use toml::{Table, Value};

use crate::typed;
use mglru_error::{KeyError, did_you_mean};

/// Lists the keys that a group's table may hold.
pub const KEYS: [&str; 6] = [
    "memory.min",
    "memory.low",
    "memory.high",
    "memory.max",
    "memory.swap.max",
    "memory.swappiness",
];

/// Reads a group's flattened table (`"memory.max" = "10GiB"`) and makes the limits `scale` times as
/// large. What the limits may be together is the backend's to say.
///
/// # Errors
/// Names the key that is unknown or no size.
pub fn parse(table: &Table, scale: f64) -> Result<GroupSpec, KeyError> {
    if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(KeyError::key(key, format!("unknown key{}", did_you_mean(key, KEYS))));
    }
    table.iter().try_for_each(alone)?;
    let limits: GroupSpec = typed::from_table(table.clone())?;
    Ok(if scale == 1.0 { limits } else { limits.scaled(scale) })
}

/// Reads one key by itself, so that its error can name it with the value.
fn alone((key, value): (&String, &Value)) -> Result<(), KeyError> {
    let table = Table::from_iter([(key.clone(), value.clone())]);
    let read: Result<GroupSpec, KeyError> = typed::from_table(table);
    read.map(|_| ()).map_err(|e| KeyError::value(key, value, e.problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mglru_sim::spec::Size;

    fn read(text: &str) -> Result<GroupSpec, String> {
        parse(&text.parse().unwrap(), 1.0).map_err(|e| e.to_string())
    }

    #[test]
    fn reads_and_scales_limits() {
        let text = "\"memory.max\" = \"1GiB\"\n\"memory.swappiness\" = 0";
        let want = GroupSpec { max: Size(1 << 30), swappiness: Some(0), ..GroupSpec::default() };
        assert_eq!(read(text).unwrap(), want);
        assert_eq!(parse(&text.parse().unwrap(), 0.25).unwrap(), want.scaled(0.25));
        assert_eq!(read("\"memory.max\" = 4097").unwrap().max, Size(4097));
    }

    #[test]
    fn names_what_is_wrong() {
        assert_eq!(
            read("\"memory.maxx\" = 1").unwrap_err(),
            "memory.maxx: unknown key (did you mean memory.max, memory.min, memory.swap.max?)"
        );
        for (line, key) in [
            ("\"memory.swappiness\" = 300", "memory.swappiness = 300: "),
            ("\"memory.max\" = -1", "memory.max = -1: "),
            ("\"memory.max\" = \"big\"", "memory.max = \"big\": "),
            ("\"memory.low\" = [1]", "memory.low = [1]: "),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.starts_with(key), "{error}");
        }
    }
}
