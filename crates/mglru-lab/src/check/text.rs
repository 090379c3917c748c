//! Verdicts as text: a line each for people, TAP 13 and JUnit for build farms.

use std::fmt::Write;

use minijinja::{AutoEscape, Environment, context};

use super::{Judged, Verdict};

/// JUnit's form; what is put in is escaped.
const JUNIT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="{{ suite }}" tests="{{ cases | length }}" failures="{{ failures }}" {#-#}
    errors="{{ errors }}" skipped="{{ skipped }}">
{%- for case in cases %}
    <testcase classname="{{ suite }}.{{ case.variant }}" name="{{ case.name }}">
{%- if case.kind %}
      <{{ case.kind }} message="{{ case.message }}"/>
{%- endif %}
    </testcase>
{%- endfor %}
  </testsuite>
</testsuites>
"#;

/// Holds the verdicts, or why nothing could be judged.
pub type Judgement<'a> = Result<&'a [Verdict], &'a str>;

/// Writes a line for each bound and one that sums up.
pub fn lines(plan: &str, judgement: Judgement) -> String {
    let verdicts = match judgement {
        Ok(verdicts) => verdicts,
        Err(why) => return format!("unjudged {plan}: {}\n", line(why)),
    };
    let mut text = String::new();
    for v in verdicts {
        let (mark, what) = (mark(v.judged), message(v));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{mark:8} {}: {}: {what}", v.variant, v.name);
    }
    let held = verdicts.iter().filter(|v| v.judged == Judged::Holds).count();
    let _ = writeln!(text, "{plan}: {held} of {} bounds hold", verdicts.len());
    text
}

/// Writes the Test Anything Protocol, version 13.
pub fn tap(judgement: Judgement) -> String {
    let mut text = "TAP version 13\n".to_string();
    let verdicts = match judgement {
        Ok(verdicts) => verdicts,
        Err(why) => {
            let _ = writeln!(text, "Bail out! {}", line(why));
            return text;
        }
    };
    let _ = writeln!(text, "1..{}", verdicts.len());
    for (number, v) in (1..).zip(verdicts) {
        // A # would begin a directive.
        let name = line(&format!("{}: {}", v.variant, v.name)).replace('#', "\\#");
        let _ = match v.judged {
            Judged::Holds => writeln!(text, "ok {number} - {name}"),
            Judged::Broken => writeln!(text, "not ok {number} - {name}"),
            Judged::Unknown => writeln!(text, "ok {number} - {name} # SKIP {}", line(&v.found)),
        };
        if v.judged != Judged::Unknown {
            let quoted = |text: &str| format!("'{}'", line(text).replace('\'', "''"));
            let (found, wanted) = (quoted(&v.found), quoted(&v.wanted));
            let _ = writeln!(text, "  ---\n  found: {found}\n  wanted: {wanted}\n  ...");
        }
    }
    text
}

/// Writes JUnit's XML.
pub fn junit(plan: &str, judgement: Judgement) -> String {
    let case = |variant: &str, name: &str, kind: &str, message: &str| {
        let [variant, name, message] = [variant, name, message].map(printable);
        context! { variant, name, kind, message }
    };
    let one = |v: &Verdict| case(&v.variant, &v.name, kind(v.judged), &message(v));
    let cases: Vec<_> = match judgement {
        Ok(verdicts) => verdicts.iter().map(one).collect(),
        Err(why) => vec![case("boot", "the run", "error", why)],
    };
    let verdicts = judgement.unwrap_or_default();
    let count = |judged| verdicts.iter().filter(|v| v.judged == judged).count();
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let values = context! {
        suite => printable(plan),
        cases,
        failures => count(Judged::Broken),
        skipped => count(Judged::Unknown),
        errors => usize::from(judgement.is_err()),
    };
    // The last line's end is not kept.
    environment.render_str(JUNIT, values).expect("the template is fixed") + "\n"
}

fn kind(judged: Judged) -> &'static str {
    match judged {
        Judged::Holds => "",
        Judged::Broken => "failure",
        Judged::Unknown => "skipped",
    }
}

fn mark(judged: Judged) -> &'static str {
    match judged {
        Judged::Holds => "ok",
        Judged::Broken => "BROKEN",
        Judged::Unknown => "unjudged",
    }
}

fn message(v: &Verdict) -> String {
    match v.judged {
        Judged::Unknown => v.found.clone(),
        _ => format!("{} ({})", v.found, v.wanted),
    }
}

/// On one line, whatever a kernel said.
fn line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// XML has no form for most control characters.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
