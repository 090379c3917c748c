//! Ablations: which switch does what. Between two named variants, the variants that differ by one
//! switch at a time.

use crate::error::KeyError;
use crate::policy;
use crate::variant::Variant;

/// In which order switches are flipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// One more after the other, from the first variant to the second
    Cumulative,
    /// The second variant without each of them
    LeaveOneOut,
    /// The first variant with each of them alone
    OneIn,
}

/// Names of the variants to run; the first is the base of the comparison.
///
/// # Errors
/// When a variant is unknown, or no switch tells the two apart.
pub fn variants(mode: Mode, from: &str, to: &str) -> Result<Vec<String>, KeyError> {
    let flips = flips(from, to)?;
    let on = |name: &str, (switch, state): &(String, bool)| match state {
        true => format!("{name}+{switch}"),
        false => format!("{name}+{switch}=false"),
    };
    Ok(match mode {
        Mode::Cumulative => {
            let mut name = from.to_string();
            let mut names = vec![name.clone()];
            for flip in &flips {
                name = on(&name, flip);
                names.push(name.clone());
            }
            names.push(to.to_string());
            names
        }
        Mode::LeaveOneOut => {
            let off = flips.iter().map(|(switch, state)| on(to, &(switch.clone(), !state)));
            std::iter::once(to.to_string()).chain(off).chain([from.to_string()]).collect()
        }
        Mode::OneIn => {
            let each = flips.iter().map(|flip| on(from, flip));
            std::iter::once(from.to_string()).chain(each).chain([to.to_string()]).collect()
        }
    })
}

/// Switches whose state differs, with the state in `to`, in the order of the series.
fn flips(from: &str, to: &str) -> Result<Vec<(String, bool)>, KeyError> {
    let states = |name: &str| {
        let config = policy::config(&toml::Table::new(), &Variant::named(name))?;
        Ok(config.patches.states())
    };
    let (before, after) = (states(from)?, states(to)?);
    let differ = before.iter().zip(&after).filter(|(b, a)| b.1 != a.1);
    let flips: Vec<_> = differ.map(|(_, (name, state))| (name.to_string(), *state)).collect();
    match flips.is_empty() {
        true => Err(KeyError::value("--to", to, format!("no switch tells it from {from}"))),
        false => Ok(flips),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_starts_at_its_base_and_ends_at_the_other_variant() {
        let names = |mode| variants(mode, "before", "after").unwrap();
        let cumulative = names(Mode::Cumulative);
        assert_eq!(cumulative[..3], ["before", "before+p01", "before+p01+p02"]);
        assert_eq!(cumulative.last().unwrap(), "after");
        assert_eq!(names(Mode::LeaveOneOut)[..2], ["after", "after+p01=false"]);
        assert_eq!(names(Mode::OneIn)[..2], ["before", "before+p01"]);
        assert_eq!(names(Mode::OneIn).last().unwrap(), "after");
    }

    #[test]
    fn equal_and_unknown_variants_are_refused() {
        let error = variants(Mode::OneIn, "after", "after").unwrap_err();
        assert_eq!(error.to_string(), "--to = after: no switch tells it from after");
        assert!(variants(Mode::OneIn, "befor", "after").is_err());
    }
}
