//! Which variants of a plan a booted kernel can carry out. It has its own policy: named policies
//! and switches of the model are not in it, but its own switches are, and so is all that a variant
//! changes about machine, groups and workload.

use super::spec::{SWITCHES, VARIANTS};
use crate::backend::{Backend, sim::Sim};
use crate::fit::Fit;
use crate::policy;
use crate::variant::Variant;

/// Policies of the model that are versions of the kernel's: a variant that asks about something
/// else can ask it of the kernel's own.
const SERIES: [&str; 5] = ["before", "v2", "v4", "v5", "after"];
/// The kernel's own.
const OWN: &str = "k6.12";

/// Tells how a variant fits. A name that neither the kernel nor the model knows is left to the
/// check of what runs, which names it.
pub fn fit(variant: &Variant) -> Fit {
    let of_model = |key: &&String| policy::keys().iter().any(|(known, _)| known == *key);
    let of_kernel = |key: &String| SWITCHES.iter().any(|(known, _)| known == key);
    let foreign = variant.set.keys().filter(|key| !of_kernel(key) && of_model(key));
    let foreign: Vec<String> = foreign.map(|key| format!("reclaim.{key}")).collect();
    if !foreign.is_empty() {
        return Fit::Not(format!("switches of the model: {}", foreign.join(", ")));
    }
    let is_named = |(name, ..): &(&str, &str, u64)| *name == variant.base;
    let is_modelled = Sim.variants().iter().any(|(name, _)| *name == variant.base);
    if VARIANTS.iter().any(is_named) || !is_modelled {
        return Fit::AsIs;
    }
    let asks_else = !variant.set.is_empty() || !variant.with.is_empty();
    if asks_else && SERIES.contains(&variant.base.as_str()) {
        let changed = Variant { base: OWN.to_string(), ..variant.clone() };
        return Fit::InPlace(changed, format!("{OWN} in place of {}", variant.base));
    }
    Fit::Not("a policy of the model".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(table: &str) -> Variant {
        Variant::from_value(&toml::Value::Table(table.parse().unwrap())).unwrap()
    }

    #[test]
    fn what_a_kernel_has_runs_and_what_it_has_not_is_named() {
        for name in ["classic", "k6.12", "classic+swappiness=10", "k6.12+image=x", "clasic"] {
            assert_eq!(fit(&Variant::parse(name).unwrap()), Fit::AsIs, "{name}");
        }
        for name in ["before", "after", "random", "lru", "L1"] {
            let why = "a policy of the model".to_string();
            assert_eq!(fit(&Variant::parse(name).unwrap()), Fit::Not(why), "{name}");
        }
        let why = "switches of the model: reclaim.p04, reclaim.floor".to_string();
        let switched = Variant::parse("classic+p04+swappiness=10+floor=v5").unwrap();
        assert_eq!(fit(&switched), Fit::Not(why));
    }

    #[test]
    fn what_a_variant_changes_besides_the_policy_runs() {
        let roomy =
            variant("name = \"roomy\"\nbase = \"before\"\n[with]\nmachine.memory = \"3GiB\"");
        let Fit::InPlace(found, why) = fit(&roomy) else { panic!("runs") };
        assert_eq!((found.name.as_str(), found.base.as_str()), ("roomy", "k6.12"));
        assert_eq!((found.with, why.as_str()), (roomy.with, "k6.12 in place of before"));
        let young = fit(&Variant::parse("after+min_ttl_ms=1000").unwrap());
        assert!(matches!(young, Fit::InPlace(variant, _) if variant.base == "k6.12"));
        let random = variant("name = \"r\"\nbase = \"random\"\n[with]\nmachine.cpus = 2");
        assert!(matches!(fit(&random), Fit::Not(_)));
    }
}
