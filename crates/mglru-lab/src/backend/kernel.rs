//! The real kernel as a backend: the plan's workload runs in a booted Linux and the kernel's own
//! counters become the record. The policy of the core is not involved: an honest control.
//!
//! A run boots a virtual machine (`size`) whose first file system is made here (`initramfs`,
//! `pack`): the guest program, an [`Order`] with what is to run (`task`), the modules that are
//! needed. The guest reports on a serial port (`watch`); its report becomes an [`Outcome`]
//! (`outcome`). The kernel's messages are kept beside the records, and what its functions cost,
//! where that is asked for (`profile`).

mod accel;
mod allowance;
mod attend;
mod carried;
mod fetch;
mod fetched;
mod fit;
mod guest;
mod image;
mod initramfs;
mod install;
mod modules;
mod monitor;
mod needs;
mod oom;
mod order;
mod outcome;
mod pack;
mod probe;
mod profile;
mod program;
mod programs;
mod qemu;
mod releases;
mod repeat;
mod scratch;
mod series;
mod size;
mod spec;
mod stops;
mod task;
mod traced;
mod truth;
pub mod version;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use mglru_guest::Order;
use mglru_workload::WorkloadSpec;
use serde_json::Value as Json;
use toml::Value;

pub use self::fetched::{Fetched, all as fetched, image as fetched_image, order};
use self::image::Image;
pub use self::image::located;
use self::initramfs::Archive;
pub use self::install::{Finding, install, look};
pub use self::needs::fragment;
pub(super) use self::order::workers;
pub use self::probe::{Lack, probe};
use self::program::ProgramSpec;
use self::qemu::Machine;
pub use self::releases::{fetch, known};
use self::repeat::VirtualTime;
use self::scratch::Scratch;
use self::size::{cpus, fits, memory};
use self::spec::{DiskKind, KernelSpec, SWITCHES, Switches, VARIANTS};
use self::stops::Stops;
use self::task::{Task, task};
pub use self::truth::{Asked as TruthAsked, Measuring};
use self::watch::{Ending, GuestReport};
use super::{Backend, Failure, Job, Outcome, Progress, Sections, Stepping, sim};
use crate::fit::Fit;
use crate::trace_events::TraceFile;
use crate::variant::Variant;
use mglru_error::KeyError;

/// Makes runs on a booted kernel.
pub struct Kernel;

struct KernelJob {
    image: Image,
    spec: KernelSpec,
    switches: Switches,
    kind: DiskKind,
    memory: u64,
    cpus: u32,
    nodes: u32,
    /// Complete but for seed and modules.
    order: Order,
    task: Task,
    scale: f64,
    /// Files packed under a name of the guest's.
    packed: Vec<(PathBuf, String)>,
}

impl Backend for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn variants(&self) -> Vec<(String, String)> {
        VARIANTS.iter().map(|(name, says, _)| (name.to_string(), says.to_string())).collect()
    }

    fn switches(&self) -> Vec<(String, String)> {
        SWITCHES.iter().map(|(name, says)| (name.to_string(), says.to_string())).collect()
    }

    fn workloads(&self) -> Vec<(String, String)> {
        let own = ("program", "programs of this host, run in a group of the guest");
        let kinds = WorkloadSpec::kinds().iter().chain([&own]);
        kinds.map(|(name, about)| (name.to_string(), about.to_string())).collect()
    }

    fn own_variants(&self) -> Vec<Variant> {
        ["classic", "k6.12"].map(Variant::named).to_vec()
    }

    fn fit(&self, variant: &Variant) -> Fit {
        fit::fit(variant)
    }

    /// `classic` is the booted kernel without generations, not the classic LRU of the latest one.
    fn modelled(&self, variant: &Variant) -> Variant {
        let mut model = variant.clone();
        if model.base == "classic" {
            model.base = "k6.12".to_string();
            model.set.insert("lru".to_string(), Value::String("classic".to_string()));
        }
        model
    }

    fn default_jobs(&self) -> usize {
        1
    }

    fn prepare(&self, sections: &Sections, variant: &Variant) -> Result<Arc<dyn Job>, KeyError> {
        Ok(Arc::new(self.ready(sections, variant)?))
    }
}

/// Checks `[kernel]` for a backend that boots none.
///
/// # Errors
/// Names the key.
pub(super) fn check_section(table: &toml::Table) -> Result<(), KeyError> {
    spec::section(table.clone()).map(drop)
}

impl Kernel {
    fn ready(&self, sections: &Sections, variant: &Variant) -> Result<KernelJob, KeyError> {
        let (spec, switches) = spec::read(&sections.kernel, variant)?;
        if let Some(key) = sections.reclaim.keys().next() {
            let problem = "a booted kernel has its own policy; variants set its switches";
            return Err(KeyError::key(format!("reclaim.{key}"), problem));
        }
        let host = |problem| KeyError::key("backend kernel", problem);
        let image = Image::of(&spec).map_err(host)?;
        programs::find(qemu::PROGRAM).map_err(host)?;
        let missing = spec.programs.iter().find_map(|name| programs::find(name).err());
        if let Some(problem) = missing {
            return Err(KeyError::key("kernel.programs", problem));
        }
        let (task, limits, packed) = task(sections)?;
        let machine = sim::machine(&sections.machine, sections.scale, &limits)?;
        let mut order = order::of_machine(&machine, &spec, &switches)?;
        task.add_to(&mut order, &limits, &switches)?;
        order::size_disk(&mut order, spec.disk_room);
        let memory = memory(&machine, &spec)?;
        let cpus = cpus(&machine, &spec)?;
        let kind = order::disk_kind(&machine, &spec);
        let (nodes, scale) = (machine.nodes, sections.scale);
        Ok(KernelJob {
            image,
            spec,
            switches,
            kind,
            memory,
            cpus,
            nodes,
            order,
            task,
            scale,
            packed,
        })
    }
}

impl Job for KernelJob {
    fn switches(&self) -> IndexMap<String, Json> {
        let mut switches = IndexMap::from([("lru_gen".to_string(), self.switches.lru_gen.into())]);
        let set =
            [("min_ttl_ms", self.switches.min_ttl_ms), ("swappiness", self.switches.swappiness)];
        let set = set.into_iter().filter_map(|(name, value)| Some((name, value?)));
        switches.extend(set.map(|(name, value)| (name.to_string(), value.into())));
        switches
    }

    fn run(&self, seed: u64, progress: Progress) -> Result<Outcome, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        Ok(self.run_keeping(seed, progress, &folder.path().join("run"))?)
    }

    fn stepping(&self) -> Option<&dyn Stepping> {
        let is_workload = matches!(self.task, Task::Workload { .. });
        is_workload.then_some(self as &dyn Stepping)
    }

    fn run_keeping(&self, seed: u64, progress: Progress, files: &Path) -> Result<Outcome, Failure> {
        self.kept(seed, progress, files, None)
    }

    fn can_trace(&self) -> bool {
        matches!(self.task, Task::Workload { .. })
    }

    fn is_changed_by_tracing(&self) -> bool {
        true
    }

    fn run_traced(
        &self,
        seed: u64,
        progress: Progress,
        files: &Path,
        events: &Path,
    ) -> Result<Outcome, Failure> {
        let events = TraceFile::create(events).map_err(|e| e.to_string())?;
        self.kept(seed, progress, files, Some(events))
    }
}

impl KernelJob {
    fn kept(
        &self,
        seed: u64,
        progress: Progress,
        files: &Path,
        events: Option<TraceFile>,
    ) -> Result<Outcome, Failure> {
        let console = files.with_extension("console.log");
        let named = |e| beside(e, "console", &console);
        let stops = Stops { trace_events: events.is_some(), ..Stops::default() };
        let report = self.boot(seed, stops, &console);
        let report = report.map_err(|e| e.map_message(named))?;
        progress(1.0);
        let mut found = self.outcome(&report, files, &console).map_err(Failure::Machine)?;
        profile::keep(&report, &self.task.layout(), files)?;
        found.custom.insert("repeatable".to_string(), report.proof.is_some().into());
        if report.proof.is_none() {
            let why = "the guest's time is the host's (kernel.clock)";
            found.custom.insert("not_repeatable".to_string(), why.into());
        }
        if let Some(proof) = &report.proof {
            // The host's time is none of a run's that can be repeated.
            found.custom.shift_remove("boot_s");
            let ns = self.spec.ns_per_instruction;
            found.custom.insert("ns_per_instruction".to_string(), ns.into());
            found.custom.insert("repeat".to_string(), proof.clone());
            let memory = repeat::memory(self.memory, &self.order, &report.ready);
            found.custom.insert("memory".to_string(), memory);
        }
        if let Some(mut file) = events {
            let lost = traced::write(&report, &mut file)?;
            found.custom.insert("traced".to_string(), true.into());
            found.custom.insert("trace_events_lost".to_string(), lost.into());
        }
        Ok(found)
    }

    fn outcome(
        &self,
        report: &GuestReport,
        files: &Path,
        console: &Path,
    ) -> Result<Outcome, String> {
        match &self.task {
            Task::Workload { layout, .. } => outcome::outcome(report, layout),
            Task::Program(program) => program.outcome(report).map_err(|e| {
                let output = files.with_extension("output.log");
                if std::fs::write(&output, ProgramSpec::output(report)).is_err() {
                    // The last lines are in the error; half of it is not left behind.
                    let _ = std::fs::remove_file(&output);
                }
                beside(beside(e, "output", &output), "console", console)
            }),
        }
    }

    fn boot(&self, seed: u64, stops: Stops, console: &Path) -> Result<GuestReport, Failure> {
        let memory = self.memory + order::disk_memory(&self.order);
        fits(memory)?;
        let is_virtual = self.spec.is_virtual();
        let accel = match is_virtual {
            true => "tcg",
            false => accel::choose(self.spec.accel, &self.image.path)?,
        };
        let ns_per_instruction = self.spec.ns_per_instruction;
        let folder = console.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let initramfs = self.initramfs(seed, &stops)?;
        let machine = Machine {
            image: &self.image.path,
            initramfs: Scratch::holding(&initramfs)?,
            disk: if is_virtual { None } else { Some(self.disk()?) },
            memory,
            cpus: self.cpus,
            nodes: self.nodes,
            append: &self.append(),
            accel,
            virtual_time: is_virtual.then_some(VirtualTime { seed, ns_per_instruction }),
            profile: self.spec.profile.then(|| Scratch::holding(&[])).transpose()?,
            is_held: stops.debugger.is_some(),
        };
        let proof = is_virtual.then(|| repeat::proof(&machine, &initramfs)).transpose()?;
        let qemu = machine.start(console)?;
        let (at_most, patience) =
            (Duration::from_secs(self.spec.timeout_s), 1 + 3 * u32::from(is_virtual));
        let ending = Ending { counts: self.spec.profile, debugger: stops.debugger };
        let report = watch::listen(qemu, at_most, patience, console, ending);
        let counted = machine.profile.as_ref().map(Scratch::text).transpose()?;
        let report = match counted.is_some() {
            true => report.map_err(|e| e.map_message(profile::explained))?,
            false => report?,
        };
        Ok(GuestReport { proof, counted, ..report })
    }

    fn append(&self) -> String {
        let built_in = self.image.modules.is_none().then(|| order::made(&self.order));
        self.spec.append.clone() + &repeat::parameters(built_in.flatten())
    }

    fn disk(&self) -> Result<(DiskKind, Scratch, u64), String> {
        let bytes = self.order.files.iter().sum();
        let (scratch, size) = Scratch::ext4(bytes, self.spec.disk_room.0)?;
        Ok((self.kind, scratch, size))
    }

    fn initramfs(&self, seed: u64, stops: &Stops) -> Result<Vec<u8>, String> {
        let mut archive = Archive::new().map_err(|e| e.to_string())?;
        let wanted = order::modules(&self.order, &self.spec, self.kind);
        let dir = self.image.modules.as_deref();
        let modules = pack::modules(&mut archive, dir, &wanted)?;
        let modules = repeat::with_parameters(modules, order::made(&self.order));
        let work = self.task.work(seed, self.scale);
        let (steps, until, trace_events) = (stops.steps, stops.until.clone(), stops.trace_events);
        let order = Order { modules, work, steps, until, trace_events, ..self.order.clone() };
        pack::basics(&mut archive, guest::program()?, &order)?;
        pack::programs(&mut archive, &order::programs(&order, &self.spec))?;
        for (path, place) in &self.packed {
            let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
            archive.file(place, &bytes).map_err(|e| e.to_string())?;
        }
        self.spec.files.iter().try_for_each(|path| pack::host(&mut archive, path))?;
        archive.finish().map_err(|e| e.to_string())
    }
}

/// Adds to an error the file that says more about it.
fn beside(e: String, what: &str, file: &Path) -> String {
    match file.exists() {
        true => format!("{e} ({what}: {})", file.display()),
        false => e,
    }
}

#[cfg(test)]
#[path = "kernel/tests.rs"]
mod tests;
