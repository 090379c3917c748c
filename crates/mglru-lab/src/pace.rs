//! Says when a booted kernel's rates and times depend on how long an instruction is taken to last.

use indexmap::IndexMap;
use serde_json::Value as Json;

/// A processor that is busier than this decides how fast the work goes.
const BOUND: f64 = 0.75;

/// Returns a line for people, from the records' own figures; none where the work waited for
/// devices, or time was the host's.
pub fn line<'a>(records: impl Iterator<Item = &'a IndexMap<String, Json>>) -> Option<String> {
    let figure = |custom: &IndexMap<String, Json>, name: &str| custom.get(name)?.as_f64();
    let figures =
        |custom| Some((figure(custom, "processor_busy")?, figure(custom, "ns_per_instruction")?));
    let (busy, ns) = records.filter_map(figures).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (busy > BOUND).then(|| {
        format!(
            "bound by the processor (busy {:.0} % of the time): rates and times depend on \
             kernel.ns_per_instruction ({ns})\n",
            busy * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn custom(busy: f64, ns: Option<u64>) -> IndexMap<String, Json> {
        let busy = [("processor_busy".to_string(), Json::from(busy))].into_iter();
        busy.chain(ns.map(|ns| ("ns_per_instruction".to_string(), ns.into()))).collect()
    }

    #[test]
    fn a_busy_processor_in_virtual_time_is_reported() {
        let line_of = |records: &[IndexMap<String, Json>]| line(records.iter());
        let busy = line_of(&[custom(0.2, Some(2)), custom(0.961, Some(2))]).unwrap();
        assert!(busy.starts_with("bound by the processor (busy 96 % of the time)"), "{busy}");
        assert!(busy.ends_with("kernel.ns_per_instruction (2)\n"), "{busy}");
        assert_eq!(line_of(&[custom(0.2, Some(2))]), None);
        assert_eq!(line_of(&[custom(0.9, None)]), None);
    }
}
