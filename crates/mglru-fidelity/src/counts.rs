//! Counters that are compared, and where the kernel's and the model's records have them.

use super::truth::Run;
use mglru_lab::record::Record;

/// Names all that is compared: disk reads, and counters of the group by their kernel names.
pub const COUNTERS: [&str; 5] = [
    READS,
    "pgmajfault",
    "workingset_refault_file",
    "workingset_refault_anon",
    "workingset_nodereclaim",
];

/// Names the counters that `all` sums up and by which directions are judged.
pub const JUDGED: [&str; 3] = ["workingset_refault_file", "workingset_refault_anon", "pgmajfault"];

/// Pages read from devices, swap included.
const READS: &str = "reads";
/// The counter that it is made of, in KiB.
const READ_KIB: &str = "pgpgin";
const KIB_PER_PAGE: u64 = 4;

/// Takes the kernel's count of a run; `None` where the record has none.
pub fn kernel(run: &Run, counter: &str) -> Option<u64> {
    match counter {
        READS => run.machine_counter(READ_KIB).map(|kib| kib / KIB_PER_PAGE),
        name => run.counter(name),
    }
}

/// Takes the model's count; `None` where the model does not know the counter. zram is a device to
/// the kernel, whose reads `pgpgin` counts, and none to the model; all measured swap is zram.
pub fn model(record: &Record, counter: &str) -> Option<u64> {
    let count = |name: &str| record.counters.get(name).copied();
    let swapped_in = count("pswpin").unwrap_or(0);
    match counter {
        READS => count(READ_KIB).map(|kib| kib / KIB_PER_PAGE + swapped_in),
        name => count(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indexmap::IndexMap;

    #[test]
    fn reads_are_pages_of_both_and_what_is_not_known_is_absent() {
        let text = "{\"id\":\"a.b.on.s1.r0\",\"exp\":\"a\",\"variant\":\"b\",\"mglru\":1,\
                    \"seed\":1,\"mem_mb\":64,\"steps\":[{\"vm\":{\"pgpgin\":20}},\
                    {\"vm\":{\"pgpgin\":12}}]}";
        let run: Run = serde_json::from_str(text).unwrap();
        let mut record = mglru_lab::record::example("k6.12", 1, 1.0);
        record.counters = IndexMap::from([("pgpgin".to_string(), 40)]);
        assert_eq!((kernel(&run, "reads"), model(&record, "reads")), (Some(8), Some(10)));
        assert_eq!((kernel(&run, "pgmajfault"), model(&record, "pgmajfault")), (None, None));
        record.counters.insert("pswpin".to_string(), 3);
        assert_eq!(model(&record, "reads"), Some(13), "with pages read from zram");
    }
}
