//! Comparisons in the forms in which kernel developers post them: mmtests' compare layout, and a
//! table that fits the 72 columns of a patch letter.

use super::number;
use crate::compare::Comparison;
use crate::stats;

/// Columns of a letter: the figure, both sides, the change.
const NAME: usize = 24;
const VALUE: usize = 11;

/// Comparisons that follow each other and are about the same two sides.
fn by_sides(list: &[Comparison]) -> impl Iterator<Item = &[Comparison]> {
    list.chunk_by(|a, b| (&a.base, &a.variant, &a.point) == (&b.base, &b.variant, &b.point))
}

/// Writes a table of at most 72 columns: means, and the change with its 95 % interval in per cent.
pub fn letter(list: &[Comparison]) -> String {
    by_sides(list).map(letter_of).collect::<Vec<_>>().join("\n")
}

fn letter_of(list: &[Comparison]) -> String {
    let head = format!("{:NAME$}{:>VALUE$}{:>VALUE$}  {:>8}\n", "", "before", "after", "change");
    let sides = format!("before: {}\nafter:  {}\n", cut(&list[0].base), cut(&list[0].variant));
    let mut out = sides + &head;
    let mut has_intervals = false;
    for c in list {
        if c.metric.len() >= NAME {
            out += &format!("{}\n{:NAME$}", cut(&c.metric), "");
        } else {
            out += &format!("{:NAME$}", c.metric);
        }
        let change =
            c.ratio.map_or("–".to_string(), |ratio| percent(ratio, c.base_mean == c.mean));
        let interval = c.ci95.map(|[low, high]| format!(" [{}, {}]", bare(low), bare(high)));
        has_intervals |= interval.is_some();
        let (a, b) = (grouped(c.base_mean), grouped(c.mean));
        out += &format!("{a:>VALUE$}{b:>VALUE$}  {change:>8}{}\n", interval.unwrap_or_default());
    }
    let runs = &list[0].runs;
    match has_intervals {
        true => out + &format!("\n{} and {} runs, 95 % intervals\n", runs[0].len(), runs[1].len()),
        false => out,
    }
}

/// Cuts a name so that the line that holds it keeps to 72 columns.
fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}

fn bare(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let digits = usize::from(percent.abs() < 99.95);
    format!("{percent:+.digits$}")
}

fn percent(ratio: f64, is_equal: bool) -> String {
    if is_equal { "0 %".to_string() } else { format!("{} %", bare(ratio)) }
}

/// Whole numbers with commas, where they fit.
fn grouped(value: f64) -> String {
    let text = number(value);
    let digits = text.strip_prefix('-').unwrap_or(&text);
    if digits.len() < 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text;
    }
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    let sign = if text.len() > digits.len() { "-" } else { "" };
    if sign.len() + out.len() < VALUE { format!("{sign}{out}") } else { text }
}

/// Writes mmtests' compare layout: means, and for repetitions least, most and spread. A percentage
/// is what was saved, as mmtests counts where less is better; `*` marks an interval without 0.
pub fn mmtests(list: &[Comparison]) -> String {
    by_sides(list).map(mmtests_of).collect::<Vec<_>>().join("\n")
}

fn mmtests_of(list: &[Comparison]) -> String {
    let width = list.iter().map(|c| c.metric.len()).max().unwrap_or(0);
    let label = 10 + width;
    let mut out = format!("{:label$}{:>28}{:>28}\n", "", list[0].base, list[0].variant);
    for c in list {
        for (name, figure) in rows(&c.runs) {
            let [a, b] = [figure(&c.runs[0]), figure(&c.runs[1])];
            let sure = name == "Amean" && c.ci95.is_some_and(|[low, high]| low > 1.0 || high < 1.0);
            let saved = saved(a, b, sure);
            let zero = "(   0.00%)";
            out += &format!("{name:10}{:width$}{a:>16.2}  {zero}{b:>16.2}  {saved}\n", c.metric);
        }
    }
    out
}

/// A row: its name, and how a side's figure comes about.
type Row = (&'static str, fn(&[f64]) -> f64);

fn rows(runs: &[Vec<f64>; 2]) -> Vec<Row> {
    let repeated: [Row; 4] = [
        ("Min", |all| all.iter().copied().fold(f64::INFINITY, f64::min)),
        ("Amean", stats::mean),
        ("CoeffVar", |all| 100.0 * stats::spread(all).unwrap_or(0.0)),
        ("Max", |all| all.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
    ];
    let has_repetitions = runs.iter().any(|side| side.len() > 1);
    repeated.into_iter().filter(|(name, _)| has_repetitions || *name == "Amean").collect()
}

fn saved(a: f64, b: f64, is_sure: bool) -> String {
    let percent = match a == 0.0 {
        true if b == 0.0 => 0.0,
        true => -99.0,
        false => 100.0 * (a - b) / a,
    };
    let [open, close] = if is_sure { ['*', '*'] } else { ['(', ')'] };
    format!("{open}{percent:7.2}%{close}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Vec<Comparison> {
        let of = |metric: &str, a: &[f64], b: &[f64]| {
            Comparison::unpaired(metric, ["A before", "B after"], [a.to_vec(), b.to_vec()])
        };
        vec![
            of("pgscan_direct", &[1_000_000.0, 1_010_000.0], &[800_000.0, 804_000.0]),
            of("memory.stat.workingset_refault_file", &[10.0, 10.0], &[10.0, 10.0]),
            of("oom_kill", &[0.0, 0.0], &[1.0, 1.0]),
        ]
    }

    #[test]
    fn a_letter_keeps_to_72_columns() {
        let text = letter(&list());
        assert!(text.lines().all(|line| line.chars().count() <= 72), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[3],
            "pgscan_direct             1,005,000    802,000   -20.2 % [-22.9, -17.4]"
        );
        assert_eq!(lines[4], "memory.stat.workingset_refault_file");
        assert!(lines[5].ends_with("         10         10       0 % [+0.0, +0.0]"), "{text}");
        assert!(lines[6].ends_with("          0          1         –"), "{text}");
        assert_eq!(lines[8], "2 and 2 runs, 95 % intervals");
    }

    #[test]
    fn mmtests_rows_say_what_was_saved() {
        let text = mmtests(&list());
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line("Amean     pgscan_direct").ends_with("802000.00  *  20.20%*"), "{text}");
        assert!(text.contains("Min ") && text.contains("CoeffVar") && text.contains("Max "));
        assert!(text.contains("Amean     oom_kill") && text.contains("( -99.00%)"), "{text}");
        let once = mmtests(
            &list()
                .into_iter()
                .map(|mut c| {
                    c.runs.iter_mut().for_each(|side| side.truncate(1));
                    c
                })
                .collect::<Vec<_>>(),
        );
        assert!(!once.contains("Min "), "{once}");
    }
}
