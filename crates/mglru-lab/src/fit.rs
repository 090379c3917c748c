//! What a backend makes of a plan's variants: which run, which run in place of another, and which
//! cannot. Nothing is left out silently: records and reports carry [`Notes`].

use std::collections::BTreeMap;
use std::fmt::Write;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::variant::Variant;

/// Says how far a backend can carry a variant out.
#[derive(Clone, Debug, PartialEq)]
pub enum Fit {
    /// Runs the variant as it stands, or refuses it by name when it is readied.
    AsIs,
    /// Runs this variant under its name, for the reason given.
    InPlace(Variant, String),
    /// Cannot run the variant, for the reason given.
    Not(String),
}

/// Holds what a run says about variants of its plan that do not run as they stand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    /// Lists variants that do not run, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, String>,
    /// Lists variants whose policy another one stands in for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replaced: BTreeMap<String, String>,
}

impl Notes {
    /// Tells whether every variant runs as it stands.
    pub fn is_empty(&self) -> bool {
        self.left_out.is_empty() && self.replaced.is_empty()
    }

    /// Splits variants into those that run and what there is to say about the others.
    pub fn sort(variants: &[Variant], fit: &dyn Fn(&Variant) -> Fit) -> (Vec<Variant>, Self) {
        let (mut kept, mut notes) = (Vec::<Variant>::new(), Self::default());
        for variant in variants {
            let name = variant.name.clone();
            match fit(variant) {
                Fit::AsIs => kept.push(variant.clone()),
                Fit::Not(why) => _ = notes.left_out.insert(name, why),
                Fit::InPlace(other, why) => match kept.iter().find(|one| same(one, &other)) {
                    Some(one) => _ = notes.left_out.insert(name, format!("same as {}", one.name)),
                    None => {
                        notes.replaced.insert(name, why);
                        kept.push(other);
                    }
                },
            }
        }
        (kept, notes)
    }

    /// Lists the variants left out, those of one reason together: `before, after (why); p04 (why)`.
    pub fn left_out_text(&self) -> String {
        grouped(&self.left_out)
    }

    /// Returns a line for each kind of note, for people.
    pub fn lines(&self, backend: &str) -> String {
        let mut text = String::new();
        for (what, list) in [("left out", &self.left_out), ("replaced", &self.replaced)] {
            if !list.is_empty() {
                let _ = writeln!(text, "{what} on the {backend}: {}", grouped(list));
            }
        }
        text
    }

    /// Adds the notes to a record's own figures.
    pub fn add_to(&self, custom: &mut IndexMap<String, Json>) {
        for (key, list) in [("left_out", &self.left_out), ("replaced", &self.replaced)] {
            if !list.is_empty() {
                custom.insert(key.to_string(), json!(list));
            }
        }
    }

    /// Reads the notes back from a record's own figures.
    pub fn of(custom: &IndexMap<String, Json>) -> Self {
        let list = |key: &str| {
            let list = custom.get(key).map(|list| serde_json::from_value(list.clone()));
            list.and_then(Result::ok).unwrap_or_default()
        };
        Self { left_out: list("left_out"), replaced: list("replaced") }
    }
}

fn same(one: &Variant, other: &Variant) -> bool {
    (&one.base, &one.set, &one.with) == (&other.base, &other.set, &other.with)
}

fn grouped(list: &BTreeMap<String, String>) -> String {
    let mut by_reason: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for (name, why) in list {
        by_reason.entry(why).or_default().push(name);
    }
    let groups = by_reason.iter().map(|(why, names)| format!("{} ({why})", names.join(", ")));
    groups.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(names: &[&str]) -> (Vec<String>, Notes) {
        let fit = |variant: &Variant| match variant.name.as_str() {
            "a" => Fit::AsIs,
            "b" | "c" => Fit::InPlace(Variant::named("k"), "k in its place".into()),
            _ => Fit::Not("no such policy".into()),
        };
        let variants: Vec<Variant> = names.iter().map(|name| Variant::named(name)).collect();
        let (kept, notes) = Notes::sort(&variants, &fit);
        (kept.into_iter().map(|variant| variant.name).collect(), notes)
    }

    #[test]
    fn every_variant_runs_or_is_named() {
        let (kept, found) = notes(&["x", "a", "b", "y", "c"]);
        assert_eq!(kept, ["a", "k"]);
        assert_eq!(
            found.lines("kernel"),
            "left out on the kernel: c (same as k); x, y (no such policy)\n\
             replaced on the kernel: b (k in its place)\n"
        );
        assert_eq!(notes(&["a"]).1.lines("kernel"), "");
    }

    #[test]
    fn records_keep_what_was_left_out() {
        let (_, found) = notes(&["x", "b"]);
        let mut custom = IndexMap::new();
        found.add_to(&mut custom);
        assert_eq!(custom["left_out"]["x"], "no such policy");
        assert_eq!(Notes::of(&custom), found);
        assert!(Notes::of(&IndexMap::new()).is_empty());
    }
}
