//! A trace replayed by the machine: one task reads the pages of one file in a group whose limit is
//! the cache size, so that a variant of the policy can stand beside flat caches. Writes count as
//! reads, as they do for a flat cache, and nothing is read ahead: a miss is a page from the device.

use mglru_sim::spec::{GroupSpec, PAGE_SIZE, Size};
use mglru_sim::{MachineSpec, device::DeviceSpec};
use mglru_workload::ReadsOnly;
use mglru_workload::trace::{Access, TraceSpec, TraceWorkload};
use toml::Table;

use crate::policy;
use crate::variant::Variant;
use mglru_traces::tools::{ReplayRequest, ReplayResult};

const GROUP: &str = "/trace";

/// Memory beyond the group's, so that only the limit makes pages leave.
const HEADROOM: u64 = 256 << 20;

/// Counts misses of a variant with a limit of `size_pages`.
///
/// # Errors
/// The variant is unknown, the trace cannot be replayed, or the limit is too small for the kernel's
/// batches.
pub fn replay(
    request: &ReplayRequest,
    variant: &Variant,
    size_pages: u64,
) -> Result<ReplayResult, String> {
    let config = policy::config(&Table::new(), variant).map_err(|e| e.to_string())?;
    let spec = TraceSpec {
        file: request.file.clone(),
        format: request.format,
        view: request.view,
        access: Access::Pread,
        dense: true,
        group: GROUP.to_string(),
    };
    let trace = TraceWorkload::open(spec).map_err(|e| e.to_string())?;
    let requests = trace.summary().requests;
    let workload = Box::new(ReadsOnly(trace));
    let machine = machine(size_pages);
    let found = mglru_sim::run(&machine, config, workload, request.seed, None);
    let found = found.map_err(|e| e.to_string())?;
    if found.ops != requests {
        let (name, ops) = (&variant.name, found.ops);
        return Err(format!("{name} at {size_pages} pages: ended after {ops} of {requests}"));
    }
    let read_kib = found.counter("pgpgin").unwrap_or(0);
    Ok(ReplayResult::new(&variant.name, size_pages, read_kib * 1024 / PAGE_SIZE, requests))
}

fn machine(size_pages: u64) -> MachineSpec {
    let limit = size_pages.saturating_mul(PAGE_SIZE);
    let group = GroupSpec { max: Size(limit), ..GroupSpec::default() };
    let memory = limit.saturating_mul(2).saturating_add(HEADROOM);
    MachineSpec {
        memory: Size(memory),
        cpus: 1,
        readahead_kb: 0,
        device: DeviceSpec::preset("ram").unwrap_or_default(),
        groups: [(GROUP.to_string(), group)].into(),
        ..MachineSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mglru_traces::flat::Policy;
    use mglru_traces::tools::{self, Capacity};
    use mglru_workload::trace::{TraceFile, View};

    /// 40 passes over 600 pages, written as one number a line.
    fn request() -> (tempfile::TempDir, ReplayRequest) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("loop.txt");
        let pass: String = (0..600).map(|page| format!("{page}\n")).collect();
        std::fs::write(&path, pass.repeat(40)).unwrap();
        let request = ReplayRequest {
            file: TraceFile::open(path).unwrap(),
            format: Some("plain".parse().unwrap()),
            view: View::Requests,
            policies: vec![Policy::Min],
            sizes: vec![Capacity::Pages(300)],
            seed: 1,
        };
        (dir, request)
    }

    #[test]
    fn with_room_for_all_every_page_misses_once() {
        let (_dir, request) = request();
        for name in ["classic", "before", "after"] {
            let found = replay(&request, &Variant::named(name), 1024).unwrap();
            assert_eq!((found.misses, found.policy.as_str()), (600, name));
        }
    }

    #[test]
    fn no_variant_beats_the_optimum() {
        let (_dir, request) = request();
        let optimum = tools::replay(&request).unwrap().results[0].misses;
        for name in ["classic", "before", "after"] {
            let found = replay(&request, &Variant::named(name), 300).unwrap();
            assert!(found.misses >= optimum && found.misses <= 24_000, "{name}: {found:?}");
        }
    }

    #[test]
    fn unknown_variants_are_refused() {
        let (_dir, request) = request();
        let error = replay(&request, &Variant::named("afer"), 300).unwrap_err();
        assert!(error.contains("did you mean after"), "{error}");
    }
}
