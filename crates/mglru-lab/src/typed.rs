//! From a TOML table to a typed value, with errors that name the key. serde knows the path and the
//! fields it expected; this turns its text into [`KeyError`].

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use mglru_error::{KeyError, did_you_mean};

/// Reads a table into `T`.
///
/// # Errors
/// Names the unknown, missing or mistyped key.
pub fn from_table<T: DeserializeOwned>(table: Table) -> Result<T, KeyError> {
    from_value(Value::Table(table))
}

/// Reads a value into `T`.
///
/// # Errors
/// As [`from_table`].
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, KeyError> {
    value.try_into().map_err(|e: toml::de::Error| explain(&e))
}

fn explain(error: &toml::de::Error) -> KeyError {
    let path = path(&error.to_string());
    let message = error.message().trim().replace('\n', ", ");
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if message.starts_with("unknown field") {
        return KeyError::unknown(&join(&path, quoted[0]), quoted[1..].iter().copied());
    }
    if message.starts_with("missing field") {
        return KeyError::key(join(&path, quoted[0]), "is missing");
    }
    if message.starts_with("unknown variant") {
        let near = did_you_mean(quoted[0], quoted[1..].iter().copied());
        return KeyError::value(path, quoted[0], format!("unknown{near}"));
    }
    KeyError::key(path, message)
}

/// The parser writes the path on a line of its own: ``in `a.b` ``.
fn path(text: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix("in `"));
    line.and_then(|rest| rest.strip_suffix('`')).unwrap_or_default().to_string()
}

fn join(path: &str, field: &str) -> String {
    let already = path == field || path.ends_with(&format!(".{field}"));
    match (path.is_empty(), already) {
        (true, _) => field.to_string(),
        (false, true) => path.to_string(),
        (false, false) => format!("{path}.{field}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Inner {
        theta: f64,
    }

    #[derive(Debug, Deserialize)]
    #[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
    #[allow(dead_code)]
    enum Tagged {
        Zipf { theta: f64, inner: Inner },
    }

    fn error<T: DeserializeOwned>(text: &str) -> String {
        from_table::<T>(text.parse().unwrap()).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn unknown_missing_and_mistyped_keys() {
        assert_eq!(
            error::<Inner>("theta = 1.0\nthet = 2"),
            "thet: unknown key (did you mean theta?)"
        );
        assert_eq!(error::<Inner>(""), "theta: is missing");
        assert_eq!(
            error::<Inner>("theta = \"x\""),
            "theta: invalid type: string \"x\", expected f64"
        );
    }

    #[test]
    fn tagged_enums_say_which_key_too() {
        assert_eq!(error::<Tagged>("kind = \"zpf\""), "kind = zpf: unknown (did you mean zipf?)");
        assert_eq!(
            error::<Tagged>("kind = \"zipf\"\ntheta = 1.0\ninner = { theta = 1.0, x = 2 }"),
            "x: unknown key (known: theta)"
        );
    }
}
