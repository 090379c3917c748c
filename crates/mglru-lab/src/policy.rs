//! From the plan's words to the core's configuration: a named variant, then the plan's `[reclaim]`
//! keys, then the variant's own switches.

use indexmap::IndexMap;
use mglru::config::{Config, ConfigError, VARIANTS};
use serde_json::Value as Json;
use toml::{Table, Value};

use crate::variant::Variant;
use mglru_error::{KeyError, did_you_mean, did_you_mean_or_list};

/// Returns the configuration of a variant under a plan's reclaim keys.
///
/// # Errors
/// Names the variant or key the core does not know, or the value it does not take.
pub fn config(reclaim: &Table, variant: &Variant) -> Result<Config, KeyError> {
    let mut config = Config::variant(&variant.base).map_err(|_| unknown_variant(variant))?;
    for (key, value) in reclaim {
        set(&mut config, key, value).map_err(|e| e.within("reclaim"))?;
    }
    for (key, value) in &variant.set {
        set(&mut config, key, value).map_err(|e| of_variant(e, variant))?;
    }
    Ok(config)
}

/// Lists for records the state of every patch switch, the rules of releases that are on and the
/// mechanisms that are off.
pub fn switches(config: &Config) -> IndexMap<String, Json> {
    let rules = config.releases.states().into_iter().filter(|(_, on)| *on);
    let mechanisms = config.mechanisms.states().into_iter().filter(|(_, on)| !on);
    let states = config.patches.states().into_iter().chain(rules).chain(mechanisms);
    states.map(|(name, on)| (name.to_string(), Json::Bool(on))).collect()
}

/// Returns the named variants with descriptions.
pub fn variants() -> Vec<(String, String)> {
    VARIANTS.iter().map(|v| (v.name.to_string(), v.says.to_string())).collect()
}

/// Returns the patch switches and plain keys with descriptions.
pub fn keys() -> Vec<(String, String)> {
    let all = Config::switches().chain(Config::KEYS);
    all.map(|(name, says)| (name.to_string(), says.to_string())).collect()
}

fn set(config: &mut Config, key: &str, value: &Value) -> Result<(), KeyError> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
    config.set(key, &text).map_err(|e| match e {
        ConfigError::BadValue { takes, .. } => {
            KeyError::value(key, &text, format!("must be {takes}"))
        }
        _ => {
            let names = Config::switches().chain(Config::KEYS).map(|(name, _)| *name);
            KeyError::key(key, format!("unknown key{}", did_you_mean(key, names)))
        }
    })
}

fn of_variant(error: KeyError, variant: &Variant) -> KeyError {
    KeyError { key: format!("variant {}: {}", variant.name, error.key), ..error }
}

fn unknown_variant(variant: &Variant) -> KeyError {
    let known = VARIANTS.iter().map(|v| v.name);
    let near = did_you_mean_or_list(&variant.base, known, "mglru list variants");
    KeyError::value("variant", &variant.base, format!("unknown{near}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(reclaim: &str, variant: &str) -> String {
        let variant = Variant::parse(variant).unwrap();
        config(&reclaim.parse().unwrap(), &variant).unwrap_err().to_string()
    }

    #[test]
    fn a_switch_on_top_of_before_sets_just_that() {
        let plain = config(&Table::new(), &Variant::parse("before").unwrap()).unwrap();
        let with = config(&Table::new(), &Variant::parse("before+p10").unwrap()).unwrap();
        let changed: Vec<String> = switches(&with)
            .into_iter()
            .filter(|(name, on)| switches(&plain)[name] != *on)
            .map(|(name, _)| name)
            .collect();
        assert_eq!(changed, ["p10"]);
    }

    #[test]
    fn mistakes_name_variant_key_and_value() {
        assert!(error("", "befor").starts_with("variant = befor: unknown (did you mean before"));
        assert!(error("flor = \"v5\"", "after").starts_with("reclaim.flor: unknown key (did you"));
        assert_eq!(
            error("", "after+floor=v9"),
            "variant after+floor=v9: floor = v9: must be none, v2, v4, v5 or v7"
        );
    }
}
