//! A pager's groups in the text format of Prometheus.

use std::fmt::Write;

use super::sample::{Sample, Stalled};

/// Names the media type of the page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// One text of metrics.
#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let label = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value));
        let labels: Vec<String> = labels.iter().map(label).collect();
        let _ = writeln!(self.0, "{name}{{{}}} {value}", labels.join(","));
    }

    /// A histogram from classes that do not contain each other: (bound, count).
    fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        classes: &[(f64, u64)],
        (sum, count): (f64, u64),
    ) {
        let mut below = 0;
        let mut bucket = |le: &str, n: u64| {
            self.line(&format!("{name}_bucket"), &[labels, &[("le", le)]].concat(), n as f64);
        };
        for &(bound, n) in classes {
            below += n;
            bucket(&bound.to_string(), below);
        }
        bucket("+Inf", count);
        self.line(&format!("{name}_sum"), labels, sum);
        self.line(&format!("{name}_count"), labels, count as f64);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Returns the metrics of some groups.
pub fn exposition(samples: &[Sample]) -> String {
    let mut text = Text::default();
    faults(&mut text, samples);
    sizes(&mut text, samples);
    unmanaged(&mut text, samples);
    generations(&mut text, samples);
    distances(&mut text, samples);
    pressure(&mut text, samples);
    text.0
}

fn faults(text: &mut Text, samples: &[Sample]) {
    text.head("mglru_faults_total", "counter", "Page faults served, by kind.");
    for sample in samples {
        for (kind, faults) in &sample.faults {
            let labels = [("group", &*sample.group), ("kind", kind)];
            text.line("mglru_faults_total", &labels, faults.count as f64);
        }
    }
    let name = "mglru_fault_seconds";
    text.head(name, "histogram", "Time from a fault's message to its end.");
    for sample in samples {
        for (kind, faults) in &sample.faults {
            let bound = |nth: usize| (1u64 << nth) as f64 / 1e6;
            let last = faults.classes.len().saturating_sub(1);
            let classes = faults.classes.iter().take(last).enumerate();
            let classes: Vec<(f64, u64)> = classes.map(|(nth, &n)| (bound(nth), n)).collect();
            let labels = [("group", &*sample.group), ("kind", kind)];
            text.histogram(name, &labels, &classes, (faults.ns as f64 / 1e9, faults.count));
        }
    }
}

/// A name, its type, what it is, and where it is read.
type Single = (&'static str, &'static str, &'static str, fn(&Sample) -> Option<f64>);

fn sizes(text: &mut Text, samples: &[Sample]) {
    const PAGE: u64 = 4096;
    let singles: [Single; 5] = [
        ("mglru_resident_bytes", "gauge", "Bytes of pages in memory.", |s| {
            Some(s.distances.resident as f64)
        }),
        ("mglru_memory_bytes", "gauge", "Charged bytes, memory.current.", |s| {
            Some(s.current as f64)
        }),
        ("mglru_memory_max_bytes", "gauge", "memory.max, where one is set.", |s| {
            s.max.map(|max| max as f64)
        }),
        ("mglru_swap_bytes", "gauge", "Bytes of pages in swap, memory.swap.current.", |s| {
            Some(s.swap as f64)
        }),
        ("mglru_evicted_bytes_total", "counter", "Bytes of pages evicted.", |s| {
            Some((s.stat("pgsteal") * PAGE) as f64)
        }),
    ];
    for (name, kind, help, read) in singles {
        text.head(name, kind, help);
        for sample in samples {
            read(sample).into_iter().for_each(|n| text.line(name, &[("group", &sample.group)], n));
        }
    }
}

/// Writes the counters of a process; they have no label for a group.
fn unmanaged(text: &mut Text, samples: &[Sample]) {
    let name = "mglru_memory_unmanaged_bytes";
    text.head(name, "gauge", "Resident bytes that no budget covers, by reason, memory.unmanaged.");
    for keys in samples.iter().filter_map(|sample| sample.unmanaged.as_ref()) {
        for (reason, bytes) in keys.iter().filter(|(key, _)| !["total", "peak"].contains(&&***key))
        {
            text.line(name, &[("reason", reason)], *bytes as f64);
        }
    }
}

fn generations(text: &mut Text, samples: &[Sample]) {
    let name = "mglru_generation_pages";
    text.head(name, "gauge", "Pages by generation; 0 is the youngest.");
    for sample in samples {
        for (age, generation) in sample.generations.iter().rev().enumerate() {
            for (kind, pages) in [("anon", generation.anon), ("file", generation.file)] {
                let age = age.to_string();
                let labels = [("group", &*sample.group), ("gen", &*age), ("type", kind)];
                text.line(name, &labels, pages as f64);
            }
        }
    }
    let name = "mglru_tier_refault_ratio";
    text.head(name, "gauge", "Pages that came back, of those evicted or protected, by tier.");
    for sample in samples {
        for tier in sample.tiers.iter().filter(|tier| tier.total > 0) {
            let nth = tier.tier.to_string();
            let labels = [("group", &*sample.group), ("type", &*tier.kind), ("tier", &*nth)];
            text.line(name, &labels, tier.refaulted as f64 / tier.total as f64);
        }
    }
}

fn distances(text: &mut Text, samples: &[Sample]) {
    let name = "mglru_refault_distance_bytes";
    text.head(name, "histogram", "Memory that would have kept a page that came back.");
    for sample in samples {
        let classes = &sample.distances.classes;
        let bounded: Vec<(f64, u64)> = classes.iter().map(|&(le, n)| (le as f64, n)).collect();
        let sum = bounded.iter().map(|(le, n)| le * *n as f64).sum();
        let count = classes.iter().map(|(_, n)| n).sum();
        text.histogram(name, &[("group", &sample.group)], &bounded, (sum, count));
    }
}

fn lines(sample: &Sample) -> [(&'static str, Stalled); 2] {
    [("some", sample.some), ("full", sample.full)]
}

fn pressure(text: &mut Text, samples: &[Sample]) {
    let name = "mglru_pressure_ratio";
    text.head(name, "gauge", "Share of the time lost to stalls, averaged as PSI does.");
    for sample in samples {
        for (line, stalled) in lines(sample) {
            let Stalled { avg10, avg60, avg300, .. } = stalled;
            for (window, percent) in [("10s", avg10), ("60s", avg60), ("300s", avg300)] {
                let labels = [("group", &*sample.group), ("line", line), ("window", window)];
                text.line(name, &labels, percent / 100.0);
            }
        }
    }
    let name = "mglru_pressure_stalled_seconds_total";
    text.head(name, "counter", "Time lost to stalls.");
    for sample in samples {
        for (line, stalled) in lines(sample) {
            let labels = [("group", &*sample.group), ("line", line)];
            text.line(name, &labels, stalled.total as f64 / 1e6);
        }
    }
}

#[cfg(test)]
mod tests;
