//! Reads the texts of captures, whatever files they hold. A name that was already there begins the
//! next sample, and so does a line that says when it was read.

use super::sections::Section;
use super::{Sample, generations};

/// A line, from 1, and what is wrong with it.
type Wrong = (usize, String);

/// Reads samples: the text of one file, of several below lines `==> FILE <==`, or of many readings
/// one after another, with `time: SECONDS` or a lone number of seconds between them.
pub fn samples(text: &str) -> Result<Vec<Sample>, Wrong> {
    let mut reader = Reader::default();
    for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        reader.take(quoted(line)).map_err(|what| (at + 1, what))?;
    }
    reader.end();
    Ok(reader.samples)
}

/// Mail puts `> ` before each line.
fn quoted(line: &str) -> &str {
    let line = line.trim_end();
    line.strip_prefix("> ").unwrap_or(line)
}

#[derive(Default)]
struct Reader {
    samples: Vec<Sample>,
    now: Sample,
    section: Section,
    /// The generation table of this sample so far, and the groups in it.
    table: String,
    groups: Vec<String>,
}

impl Reader {
    fn take(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(section) = Section::of(line) {
            self.section = section;
            return Ok(());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["time:", seconds] => self.begin(Some(number("time:", seconds)?)),
            [seconds] if !self.section.is_named() => match seconds.parse() {
                Ok(seconds) => self.begin(Some(seconds)),
                Err(_) => return Err(format!("`{line}` is no counter")),
            },
            [value] => {
                let name = self.section.lone().unwrap_or_default();
                // No limit is no figure.
                if value != "max" {
                    self.put(name.clone(), number(&name, value)?);
                }
            }
            ["memcg", _, ..] => self.group(line, words[2..].join(" ")),
            ["node", node] if node.parse::<u32>().is_ok() => self.table_line(line),
            ["some" | "full", ref stalls @ ..] => self.stalls(words[0], stalls)?,
            _ if !self.groups.is_empty() && words[0].parse::<u64>().is_ok() => {
                self.table_line(line)
            }
            [key, value] => {
                self.put(self.section.name(key.trim_end_matches(':')), number(key, value)?)
            }
            [key, value, "kB"] => {
                self.put(format!("meminfo.{}", key.trim_end_matches(':')), number(key, value)?);
            }
            // Figures of a table of generations that later kernels may add.
            _ if !self.groups.is_empty() && line.starts_with(' ') => {}
            _ => return Err(format!("`{line}` is no counter")),
        }
        Ok(())
    }

    /// Ends the sample, if it has anything, and begins the next.
    fn begin(&mut self, at_s: Option<f64>) {
        self.end();
        self.now.at_s = at_s;
    }

    fn end(&mut self) {
        generations::add(&self.table, &mut self.now.values);
        self.table.clear();
        self.groups.clear();
        let sample = std::mem::take(&mut self.now);
        if !sample.values.is_empty() {
            self.samples.push(of_group(sample));
        }
    }

    fn put(&mut self, name: String, value: f64) {
        if self.now.values.contains_key(&name) {
            self.begin(None);
        }
        self.now.values.insert(name, value);
    }

    fn group(&mut self, line: &str, path: String) {
        if self.groups.contains(&path) {
            self.begin(None);
        }
        self.groups.push(path);
        self.table_line(line);
    }

    fn table_line(&mut self, line: &str) {
        self.table += line;
        self.table += "\n";
    }

    /// Reads `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`: averages in per cent, total in µs.
    fn stalls(&mut self, which: &str, stalls: &[&str]) -> Result<(), String> {
        let file = self.section.stalls();
        for stall in stalls {
            let (key, value) =
                stall.split_once('=').ok_or(format!("`{stall}` is no stall time"))?;
            self.put(format!("{file}.{which}.{key}"), number(key, value)?);
        }
        Ok(())
    }
}

/// Names the figures of a memory.stat whose text does not say that it is one.
fn of_group(sample: Sample) -> Sample {
    let is_stat = ["anon", "file_mapped"].iter().all(|key| sample.values.contains_key(*key));
    if !is_stat {
        return sample;
    }
    let named = |(name, value): (String, f64)| match name.contains('.') {
        true => (name, value),
        false => (format!("memory.stat.{name}"), value),
    };
    Sample { values: sample.values.into_iter().map(named).collect(), ..sample }
}

fn number(key: &str, word: &str) -> Result<f64, String> {
    let key = key.trim_end_matches(':');
    let value: f64 = word.parse().map_err(|_| format!("`{key}`: `{word}` is no number"))?;
    match value.is_finite() && value.abs() < 2_f64.powi(64) {
        true => Ok(value),
        false => Err(format!("`{key}`: the value is too large")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<Vec<String>> {
        let samples = samples(text).unwrap();
        samples.into_iter().map(|s| s.values.keys().cloned().collect()).collect()
    }

    #[test]
    fn files_one_after_another_are_distinguished() {
        let text = "==> /proc/vmstat <==\npgscan 1\n\n==> a/memory.stat <==\nanon 4096\npgscan 2\n\
            ==> a/memory.current <==\n8192\n\n==> a/memory.pressure <==\n\
            some avg10=0.10 avg60=0.00 avg300=0.00 total=77\n";
        let want = ["pgscan", "memory.stat.anon", "memory.stat.pgscan", "memory.current"];
        assert_eq!(names(text)[0][..4], want);
        let last = names(text)[0].last().unwrap().clone();
        assert_eq!(last, "memory.pressure.some.total");
    }

    #[test]
    fn readings_one_after_another_are_a_series() {
        let series = samples("1700000000\npgscan 1\n1700000001.5\npgscan 4\n").unwrap();
        assert_eq!(
            series.iter().map(|s| s.at_s).collect::<Vec<_>>(),
            [1.7e9, 1_700_000_001.5].map(Some)
        );
        assert_eq!(names("pgscan 1\npgsteal 1\npgscan 2\npgsteal 2\n").len(), 2);
        let tables = "memcg 1 /\n node 0\n 1 2 3 4\nmemcg 1 /\n node 0\n 1 2 3 4\n";
        assert_eq!(names(tables).len(), 2);
    }

    #[test]
    fn posted_texts_with_quotes_carriage_returns_and_a_mark_are_read() {
        let text = "\u{feff}> pgscan 1\r\n> pgsteal 2\r\n";
        assert_eq!(names(text), [["pgscan", "pgsteal"]]);
        assert_eq!(
            names("MemTotal:  12 kB\nMemFree: 3 kB\n"),
            [["meminfo.MemTotal", "meminfo.MemFree"]]
        );
        assert_eq!(
            names("anon 1\nfile_mapped 2\n"),
            [["memory.stat.anon", "memory.stat.file_mapped"]]
        );
    }
}
