//! From TOML text to [`Plan`]: syntax, unknown keys, types and ranges, each with its own message.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::{Bound, Brief, Expect, Indicator, MAX_SEEDS, Neutral, Plan, Published, Watch};
use crate::dotted::{self, Assignment};
use crate::scale;
use crate::typed;
use crate::variant::Variant;
use mglru_error::{Error, KeyError};

/// Names the sections that only a backend understands.
pub const SECTIONS: [&str; 5] = ["machine", "groups", "workload", "reclaim", "kernel"];

/// Holds the plan's own keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    /// Names the plan and its output folder: letters, digits, `-` and `_`.
    name: String,
    /// Describes the plan in one line, for lists.
    title: String,
    /// Describes the plan in a paragraph, for `mglru show`.
    #[serde(default)]
    about: String,
    /// Chooses the backend: `sim`, `pager` or `kernel`; a list sets several side by side.
    #[serde(default = "sim")]
    backend: Value,
    /// Names the variant all others are compared with; the first when absent.
    base: Option<String>,
    /// Lists variants by name, or tables of `name`, `base`, `set` and `with`, in the order they
    /// run.
    variants: Vec<Value>,
    /// Sets the number of seeds, or lists them; runs of the same seed are paired.
    #[serde(default = "six")]
    seeds: Value,
    /// Scales machine, limits and workload: a number or a quotient such as `"1/64"`.
    #[serde(default = "one")]
    scale: Value,
    /// Lists the metrics to compare: counters, metrics, `custom.x`, or quotients such as
    /// `pgpgin/ops`.
    #[serde(default)]
    metrics: Vec<String>,
    /// Says why published figures are missed, where they are.
    #[serde(default)]
    gap: String,
    /// See its section.
    #[serde(default)]
    quick: Brief,
    /// See its section.
    #[serde(default)]
    all: Brief,
    /// See its section.
    #[serde(default)]
    watch: Watch,
}

impl Plan {
    /// Reads a plan from TOML text, after applying `--set` assignments.
    ///
    /// # Errors
    /// Names file, line and column of a syntax error; file and key of anything else.
    pub fn parse(file: &str, text: &str, sets: &[Assignment]) -> Result<Self, Error> {
        let mut table: Table = text.parse().map_err(|e| syntax(file, text, &e))?;
        for set in sets {
            dotted::set(&mut table, set).map_err(|e| e.in_file(file))?;
        }
        let source = table.to_string();
        Self::from_table(file, source, table).map_err(|e| e.in_file(file))
    }

    fn from_table(file: &str, source: String, mut table: Table) -> Result<Self, KeyError> {
        let on = take_on(&mut table)?;
        let sections = take_sections(&mut table)?;
        let published = take_list(&mut table, "published", Published::check)?;
        let mut expects = take_list(&mut table, "expect", Expect::check)?;
        // Plans of version 0.1 write it so.
        expects.extend(take_list(&mut table, "control", Expect::check)?);
        let neutral = take_list(&mut table, "neutral", Neutral::check)?;
        let indicators = take_list(&mut table, "indicator", Indicator::check)?;
        let bounds = take_list(&mut table, "bound", Bound::check)?;
        let head: Head = typed::from_table(table).map_err(with_section_names)?;
        let variants = variants(&head.variants)?;
        let base = head.base.unwrap_or_else(|| variants[0].name.clone());
        let plan = Self {
            file: file.to_string(),
            source,
            name: check_name(head.name)?,
            title: head.title,
            about: head.about.trim().to_string(),
            backends: backends(&head.backend)?,
            on,
            base,
            variants,
            seeds: seeds(&head.seeds)?,
            scale: scale::from_value(&head.scale)?,
            metrics: head.metrics,
            sections,
            published,
            expects,
            neutral,
            indicators,
            watch: head.watch,
            bounds,
            gap: head.gap.trim().to_string(),
            quick: head.quick,
            all: head.all,
        };
        plan.check_names()?;
        Ok(plan)
    }

    /// A plan's base must be one of its variants; an expectation on a variant that neither the
    /// plan nor the command line runs is simply not judged.
    fn check_names(&self) -> Result<(), KeyError> {
        let names: Vec<&str> = self.variants.iter().map(|v| v.name.as_str()).collect();
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                return Err(KeyError::value("variants", name, "named twice"));
            }
        }
        self.check_judged()?;
        self.quick.check("quick", &names)?;
        self.all.check("all", &names)?;
        if !names.contains(&self.base.as_str()) {
            let problem = format!("must be one of the plan's variants ({})", names.join(", "));
            return Err(KeyError::value("base", &self.base, problem));
        }
        Ok(())
    }
}

impl Plan {
    /// Refuses a judgement on a variant that nobody could ask for: it would never be given.
    fn check_judged(&self) -> Result<(), KeyError> {
        let published = self.published.iter().map(|p| ("published", &p.variant));
        let neutral = self.neutral.iter().map(|n| ("neutral", &n.variant));
        let expected = self.expects.iter().map(|e| ("expect", &e.variant));
        let is_own = |name: &String| self.variants.iter().any(|v| v.name == *name);
        for (section, name) in published.chain(neutral).chain(expected) {
            if !is_own(name) {
                let unknown = |e| KeyError::value(format!("{section}.variant"), name, e);
                Variant::parse(name).map_err(|e| unknown(e.to_string()))?;
            }
        }
        Ok(())
    }
}

impl Brief {
    /// Refuses variants and numbers of seeds that the plan cannot have.
    fn check(&self, section: &str, names: &[&str]) -> Result<(), KeyError> {
        if let Some(name) = self.variants.iter().find(|v| !names.contains(&v.as_str())) {
            let problem = format!("must be some of the plan's variants ({})", names.join(", "));
            return Err(KeyError::value(format!("{section}.variants"), name, problem));
        }
        match self.seeds.filter(|n| !(1..=MAX_SEEDS).contains(n)) {
            Some(seeds) => {
                let problem = format!("must be from 1 to {MAX_SEEDS}");
                Err(KeyError::value(format!("{section}.seeds"), seeds, problem))
            }
            None => Ok(()),
        }
    }
}

fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Error {
    let at = error.span().map_or(0, |span| span.start).min(text.len());
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Error::Syntax {
        file: file.to_string(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        problem: error.message().replace('\n', ", "),
    }
}

fn take_sections(table: &mut Table) -> Result<Table, KeyError> {
    let mut sections = Table::new();
    for name in SECTIONS {
        let section = match table.remove(name) {
            None => Table::new(),
            Some(Value::Table(section)) => section,
            Some(other) => return Err(KeyError::value(name, other, "expected a table")),
        };
        sections.insert(name.to_string(), Value::Table(section));
    }
    flatten_groups(&mut sections)?;
    Ok(sections)
}

/// `[on.NAME]`, read as the plan's own sections are.
fn take_on(table: &mut Table) -> Result<IndexMap<String, Table>, KeyError> {
    let on = match table.remove("on") {
        None => return Ok(IndexMap::new()),
        Some(Value::Table(on)) => on,
        Some(other) => return Err(KeyError::value("on", other, "expected tables [on.BACKEND]")),
    };
    let read = |(name, value): (String, Value)| {
        let key = format!("on.{name}");
        let Value::Table(mut given) = value else {
            return Err(KeyError::value(key, value, "expected a table"));
        };
        if let Some(unknown) = given.keys().find(|name| !SECTIONS.contains(&name.as_str())) {
            return Err(KeyError::unknown(&format!("{key}.{unknown}"), SECTIONS));
        }
        let names: Vec<String> = given.keys().cloned().collect();
        let mut sections = take_sections(&mut given).map_err(|e| e.within(&key))?;
        sections.retain(|name, _| names.iter().any(|given| given == name));
        Ok((name, sections))
    };
    on.into_iter().map(read).collect()
}

/// One backend or several.
fn backends(value: &Value) -> Result<Vec<String>, KeyError> {
    let name = |value: &Value| value.as_str().map(str::to_string);
    let names: Option<Vec<String>> = match value {
        Value::Array(list) => list.iter().map(name).collect(),
        one => name(one).map(|one| vec![one]),
    };
    let mut seen = BTreeSet::new();
    let names =
        names.filter(|names| !names.is_empty() && names.iter().all(|n| seen.insert(n.clone())));
    names.ok_or_else(|| {
        KeyError::value("backend", value, "must be a name or a list of different names")
    })
}

fn flatten_groups(sections: &mut Table) -> Result<(), KeyError> {
    let groups = sections["groups"].as_table_mut().expect("take_sections made a table");
    for (name, group) in groups.iter_mut() {
        let key = format!("groups.{name}");
        let limits = group.as_table().ok_or_else(|| KeyError::key(&key, "expected a table"))?;
        if !name.starts_with('/') {
            return Err(KeyError::key(key, "a group's name starts with /, such as /mongo"));
        }
        *group = Value::Table(dotted::flatten(limits));
    }
    Ok(())
}

fn take_list<T: DeserializeOwned>(
    table: &mut Table,
    name: &str,
    check: fn(&T) -> Result<(), KeyError>,
) -> Result<Vec<T>, KeyError> {
    let list = match table.remove(name) {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(KeyError::key(name, format!("expected [[{name}]] tables"))),
    };
    let read = |(at, value): (usize, Value)| {
        let key = format!("{name}[{at}]");
        let item: T = typed::from_value(value).map_err(|e| e.within(&key))?;
        check(&item).map_err(|e| e.within(&key))?;
        Ok(item)
    };
    list.into_iter().enumerate().map(read).collect()
}

/// serde lists only the keys of `Head` as known; the sections are known too.
fn with_section_names(error: KeyError) -> KeyError {
    const KNOWN: [&str; 25] = [
        "name",
        "title",
        "about",
        "backend",
        "base",
        "variants",
        "seeds",
        "scale",
        "metrics",
        "gap",
        "quick",
        "all",
        "machine",
        "groups",
        "workload",
        "reclaim",
        "kernel",
        "on",
        "published",
        "expect",
        "control",
        "neutral",
        "indicator",
        "watch",
        "bound",
    ];
    match error.problem.starts_with("unknown key") && !error.key.contains('.') {
        true => KeyError::unknown(&error.key, KNOWN),
        false => error,
    }
}

fn variants(list: &[Value]) -> Result<Vec<Variant>, KeyError> {
    if list.is_empty() {
        return Err(KeyError::key("variants", "needs at least one variant"));
    }
    let read = |(at, value): (usize, &Value)| {
        Variant::from_value(value).map_err(|e| e.within(&format!("variants[{at}]")))
    };
    list.iter().enumerate().map(read).collect()
}

fn check_name(name: String) -> Result<String, KeyError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.chars().all(plain) {
        true => Ok(name),
        false => Err(KeyError::value("name", name, "use letters, digits, - and _ only")),
    }
}

fn seeds(value: &Value) -> Result<Vec<u64>, KeyError> {
    let problem = format!("must be a count 1..{MAX_SEEDS} or a list of different whole numbers");
    let refuse = || KeyError::value("seeds", value, &problem);
    match value {
        Value::Integer(n) if (1..=MAX_SEEDS as i64).contains(n) => Ok((1..=*n as u64).collect()),
        Value::Array(list) if !list.is_empty() && list.len() as u64 <= MAX_SEEDS => {
            let seed = |v: &Value| v.as_integer().and_then(|n| u64::try_from(n).ok());
            let seeds: Option<Vec<u64>> = list.iter().map(seed).collect();
            let seeds = seeds.ok_or_else(refuse)?;
            let mut sorted = seeds.clone();
            sorted.sort_unstable();
            sorted.dedup();
            if sorted.len() == seeds.len() { Ok(seeds) } else { Err(refuse()) }
        }
        _ => Err(refuse()),
    }
}

fn sim() -> Value {
    Value::String("sim".to_string())
}

fn six() -> Value {
    Value::Integer(6)
}

fn one() -> Value {
    Value::Integer(1)
}

#[cfg(test)]
mod tests;
