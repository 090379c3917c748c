//! Policies from outside, by name: what a program that uses the lab adds to the variants of the
//! model.

use std::collections::BTreeMap;
use std::sync::Mutex;

use mglru_sim::custom::{PolicyFactory, Rules};
use toml::Table;

use crate::policy;
use crate::spec::hex;
use crate::variant::Variant;
use mglru_error::KeyError;

/// The rules around a custom policy: how groups share, when to write, whom to throttle.
const FRAME: &str = "classic";

static KNOWN: Mutex<BTreeMap<String, PolicyFactory>> = Mutex::new(BTreeMap::new());

/// Adds a policy and returns the name of its variant, `NAME@HASH`. The hash is that of `source`,
/// so that records of two states of the policy's code never pass for each other.
///
/// # Errors
/// The name is empty or holds other characters than letters, digits, `_`, `-` and `.`.
pub fn register(name: &str, source: &str, factory: PolicyFactory) -> Result<String, KeyError> {
    let fits = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || !name.chars().all(fits) {
        let problem = "takes letters, digits, `_`, `-` and `.`";
        return Err(KeyError::value("policy", name, problem));
    }
    let variant = format!("{name}@{}", hex(source, 4));
    known().insert(variant.clone(), factory);
    Ok(variant)
}

/// Lists the variants that were added.
pub(crate) fn variants() -> Vec<(String, String)> {
    let about = |name: &String| (name.clone(), "a policy from outside".to_string());
    known().keys().map(about).collect()
}

/// Returns the rules of a variant: a policy from outside in the frame of the classic LRU, or the
/// core's own.
pub(crate) fn rules(reclaim: &Table, variant: &Variant) -> Result<Rules, KeyError> {
    let factory = known().get(&variant.base).cloned();
    let Some(factory) = factory else { return Ok(policy::config(reclaim, variant)?.into()) };
    let frame = Variant { base: FRAME.to_string(), ..variant.clone() };
    if variant.set.contains_key("lru") {
        let problem = "a policy from outside stands in its place";
        return Err(KeyError::key(format!("variant {}: lru", variant.name), problem));
    }
    Ok(Rules::custom(policy::config(reclaim, &frame)?, factory))
}

fn known() -> std::sync::MutexGuard<'static, BTreeMap<String, PolicyFactory>> {
    KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
