//! The two variants that an ablation goes between, and the plan on which it does.

use mglru_error::Error;

/// The plan on which two releases are compared that are named without one.
const OF_RELEASES: &str = "read-scan";

/// Holds the ends of an ablation and its plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Holds the name or file of the plan.
    pub plan: String,
    /// Names the variant without the patches.
    pub from: String,
    /// Names the variant with them.
    pub to: String,
}

impl Span {
    /// Reads `FROM..TO` in place of a plan, or a plan, whose ends are `before` and `after` unless
    /// others are given.
    ///
    /// # Errors
    /// When ends are given twice.
    pub fn read(plan: &str, given: (Option<&str>, Option<&str>)) -> Result<Self, Error> {
        let ends = plan.split_once("..").filter(|(from, to)| !from.is_empty() && !to.is_empty());
        let Some((from, to)) = ends.filter(|_| !plan.contains('/')) else {
            let from = given.0.unwrap_or("before").to_string();
            let to = given.1.unwrap_or("after").to_string();
            return Ok(Self { plan: plan.to_string(), from, to });
        };
        if given != (None, None) {
            let problem = format!("{plan}: names both ends, --from or --to is one more");
            return Err(Error::Request(problem));
        }
        let plan = OF_RELEASES.to_string();
        Ok(Self { plan, from: from.to_string(), to: to.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(plan: &str, from: Option<&str>) -> String {
        let span = Span::read(plan, (from, None));
        span.map_or_else(|e| e.to_string(), |s| format!("{} {} {}", s.plan, s.from, s.to))
    }

    #[test]
    fn two_releases_name_their_plan_and_a_plan_its_ends() {
        assert_eq!(read("k7.1..k7.2", None), "read-scan k7.1 k7.2");
        assert_eq!(read("mongodb", None), "mongodb before after");
        assert_eq!(read("../my.toml", Some("v4")), "../my.toml v4 after");
        assert!(read("k7.1..k7.2", Some("v4")).contains("names both ends"));
    }
}
