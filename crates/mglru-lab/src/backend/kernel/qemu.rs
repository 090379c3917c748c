//! The virtual machine's process: its command line, and that it ends with us.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::monitor::{Far, Monitor};
use super::repeat::VirtualTime;
use mglru_guest::report::PROFILED;

use super::scratch::Scratch;
use super::spec::DiskKind;
use super::{programs, repeat};

/// Names the program that runs the machine.
pub const PROGRAM: &str = "qemu-system-x86_64";
/// Words of every kernel command line: messages to the first port, a panic ends the machine;
/// neither timer nor cycle counter is tested against a clock, which fails where the host is busy
/// (and a kernel that drops its cycle counter patches code that other processors run, which a
/// translated guest does not always survive).
const COMMAND_LINE: &str = concat!(
    "console=ttyS0 panic=-1 loglevel=5 no_timer_check tsc=reliable ",
    "mitigations=off random.trust_cpu=on psi=1"
);

/// Bytes that the guest's reports may run ahead of their reader.
const PIPE: usize = 1 << 20;

/// Describes the machine to boot.
pub struct Machine<'a> {
    /// Names the bzImage.
    pub image: &'a Path,
    /// Holds the first file system.
    pub initramfs: Scratch,
    /// Holds the disk of files, with its size in bytes.
    pub disk: Option<(DiskKind, Scratch, u64)>,
    /// Holds the size of memory, bytes.
    pub memory: u64,
    /// Counts the processors.
    pub cpus: u32,
    /// Counts the NUMA nodes.
    pub nodes: u32,
    /// Holds text added to the kernel's command line.
    pub append: &'a str,
    /// Names the accelerator: `kvm` or `tcg`.
    pub accel: &'static str,
    /// Holds the guest's virtual time; none: the host's time.
    pub virtual_time: Option<VirtualTime>,
    /// Holds the file for counts of instructions; none: they are not counted.
    pub profile: Option<Scratch>,
    /// Lets the machine be stopped, and its guest go on.
    pub is_held: bool,
}

impl Machine<'_> {
    /// Starts the machine. What the guest reports comes from the child's standard output; the
    /// kernel's messages go to the file `console`.
    ///
    /// # Errors
    /// When QEMU is not installed or cannot be started.
    pub fn start(&self, console: &Path) -> Result<Qemu, String> {
        let qemu = programs::find(PROGRAM)?;
        let mut command = dying_with_us(&qemu);
        command.args(self.args()).arg("-serial").arg(file(console)).args(["-serial", "stdio"]);
        let library = self.virtual_time.map(|_| preload(&mut command)).transpose()?;
        if let (Some(library), Some(counts)) = (&library, &self.profile) {
            command.arg("-plugin").arg(format!("{},out={}", library.path(), counts.path()));
        }
        let (monitor, far) = self.is_held.then(Monitor::pair).transpose()?.unzip();
        command.args(far.iter().flat_map(Far::args));
        command.stdin(if self.is_held { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|e| format!("{}: {e}", qemu.display()))?;
        if let Some(out) = child.stdout.as_ref() {
            // A port whose reader is late would make the guest wait.
            let _ = rustix::pipe::fcntl_setpipe_size(out, PIPE);
        }
        let has_own_time = self.virtual_time.is_some();
        Ok(Qemu { child, monitor, has_own_time, library })
    }

    /// Writes the arguments that make the machine what it is: without paths, which differ from run
    /// to run.
    pub fn flags(&self) -> String {
        let args = self.args();
        let is_path = |at: &usize| matches!(args[*at].as_str(), "-kernel" | "-initrd");
        let kept = |at: &usize| !is_path(at) && (*at == 0 || !is_path(&(at - 1)));
        (0..args.len()).filter(kept).map(|at| args[at].as_str()).collect::<Vec<_>>().join(" ")
    }

    fn args(&self) -> Vec<String> {
        let mib = (self.memory >> 20).max(1);
        let is_pmem = matches!(self.disk, Some((DiskKind::Pmem, ..)));
        let mut args = split("-nodefaults -no-user-config -no-reboot -display none -cpu");
        // The guest reports its kernel's symbols when it sees this name, after the work.
        args.push(match self.profile {
            Some(_) => format!("max,model-id={PROFILED}"),
            None => "max".to_string(),
        });
        let accel = format!("-accel {}", self.accel);
        args.extend(split(&self.virtual_time.map_or(accel, repeat::clock)));
        args.extend(split(&format!("-smp {}", self.cpus)));
        args.extend(split(match is_pmem {
            true => "-machine q35,nvdimm=on",
            false => "-machine q35",
        }));
        args.extend(["-kernel".into(), self.image.display().to_string()]);
        args.extend(["-initrd".into(), self.initramfs.path()]);
        args.extend(["-append".into(), format!("{COMMAND_LINE} {}", self.append)]);
        match &self.disk {
            Some((DiskKind::Pmem, image, size)) => args.extend(pmem(mib, &image.path(), *size)),
            Some((DiskKind::Blk, image, _)) => {
                args.extend(split(&format!("-m {mib}M")));
                args.extend(block(&image.path()));
            }
            None => args.extend(split(&format!("-m {mib}M"))),
        }
        args.extend(nodes(self.nodes, self.cpus, mib));
        args
    }
}

fn split(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_string).collect()
}

/// QEMU doubles commas in its options; a port's file name is taken as it is.
fn file(path: &Path) -> String {
    format!("file:{}", path.display())
}

fn block(path: &str) -> Vec<String> {
    let drive = format!("file={path},format=raw,if=none,id=disk,cache=unsafe");
    split(&format!("-drive {drive} -device virtio-blk-pci,drive=disk"))
}

fn pmem(mib: u64, path: &str, size: u64) -> Vec<String> {
    let most = mib + (size >> 20);
    let backend = format!("memory-backend-file,id=pmem,share=on,mem-path={path},size={size}");
    split(&format!("-m {mib}M,slots=2,maxmem={most}M -object {backend} -device nvdimm,memdev=pmem"))
}

/// Memory and processors are spread evenly; what does not divide goes to the first nodes.
fn nodes(nodes: u32, cpus: u32, mib: u64) -> Vec<String> {
    let share = |node: u32, total: u64| {
        total / u64::from(nodes) + u64::from(u64::from(node) < total % u64::from(nodes))
    };
    let mut first = 0;
    let mut args = Vec::new();
    for node in (0..nodes).filter(|_| nodes > 1) {
        let (size, count) = (share(node, mib), share(node, u64::from(cpus)));
        let last = (first + count).max(1) - 1;
        let numa = format!("node,nodeid={node},memdev=n{node}");
        let cpus = if count > 0 { format!(",cpus={first}-{last}") } else { String::new() };
        let backend = format!("memory-backend-ram,id=n{node},size={size}M");
        args.extend(split(&format!("-object {backend} -numa {numa}{cpus}")));
        first += count;
    }
    args
}

/// Killed by the system when this program dies, however that happens.
fn dying_with_us(program: &PathBuf) -> Command {
    match programs::find("setpriv") {
        Ok(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", "--"]).arg(program);
            command
        }
        Err(_) => Command::new(program),
    }
}

/// Has QEMU load our library before all others; it lives as long as what is returned.
fn preload(command: &mut Command) -> Result<Scratch, String> {
    let library = Scratch::executable(mglru_qemu::MACHINE)?;
    command.env("LD_PRELOAD", library.path());
    Ok(library)
}

/// Holds the running process, which does not outlive this value, and the library that it loaded.
pub struct Qemu {
    pub child: Child,
    /// Holds the monitor of a machine that can be stopped.
    pub monitor: Option<Monitor>,
    /// Says that the guest's time is virtual.
    pub has_own_time: bool,
    #[expect(dead_code, reason = "keeps the file")]
    library: Option<Scratch>,
}

impl Drop for Qemu {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and is only waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(disk: Option<DiskKind>, nodes: u32) -> String {
        let scratch = || Scratch::holding(&[]).unwrap();
        let machine = Machine {
            image: Path::new("b z"),
            initramfs: scratch(),
            disk: disk.map(|kind| (kind, scratch(), 128 << 20)),
            memory: 2 << 30,
            cpus: 3,
            nodes,
            append: "extra words",
            accel: "tcg",
            virtual_time: None,
            profile: None,
            is_held: false,
        };
        machine.args().join("|")
    }

    #[test]
    fn flags_name_no_path() {
        let machine = Machine {
            image: Path::new("b z"),
            initramfs: Scratch::holding(&[]).unwrap(),
            disk: None,
            memory: 1 << 30,
            cpus: 1,
            nodes: 1,
            append: "",
            accel: "tcg",
            virtual_time: Some(VirtualTime { seed: 7, ns_per_instruction: 2 }),
            profile: None,
            is_held: false,
        };
        let flags = machine.flags();
        assert!(flags.contains("-accel tcg,thread=single -icount shift=1,sleep=off -rtc base="));
        assert!(flags.contains("-seed 7 -smp 1") && flags.contains("-append console=ttyS0"));
        assert!(!flags.contains("b z") && !flags.contains("/proc/"), "{flags}");
    }

    #[test]
    fn the_command_line_says_what_was_asked() {
        let plain = args(None, 1);
        assert!(plain.contains("-accel|tcg|-smp|3|-machine|q35|-kernel|b z|-initrd|/proc/"));
        assert!(plain.contains(" psi=1 extra words|-m|2048M"), "{plain}");
        assert!(!plain.contains("numa") && !plain.contains("-drive"));
        assert!(args(Some(DiskKind::Blk), 1).contains("virtio-blk-pci,drive=disk"));
    }

    #[test]
    fn persistent_memory_comes_on_top_of_memory() {
        let pmem = args(Some(DiskKind::Pmem), 1);
        assert!(pmem.contains("q35,nvdimm=on|") && pmem.contains("-m|2048M,slots=2,maxmem=2176M"));
    }

    #[test]
    fn nodes_share_memory_and_processors() {
        let text = args(None, 2);
        assert!(text.contains("id=n0,size=1024M|-numa|node,nodeid=0,memdev=n0,cpus=0-1"), "{text}");
        assert!(text.contains("id=n1,size=1024M|-numa|node,nodeid=1,memdev=n1,cpus=2-2"), "{text}");
    }

    /// Names of functions that a program or library gives (`true`) or takes from others.
    fn functions(bytes: &[u8], given: bool) -> Vec<String> {
        use object::{Object, ObjectSymbol};
        let file = object::File::parse(bytes).unwrap();
        let wanted = file.dynamic_symbols().filter(|symbol| symbol.is_undefined() != given);
        wanted.map(|symbol| symbol.name().unwrap().to_string()).collect()
    }

    #[test]
    fn the_library_stands_before_what_qemu_calls() {
        let ours = functions(mglru_qemu::MACHINE, true);
        let names = ["gettimeofday", "ppoll", "pthread_cond_wait", "pthread_cond_broadcast"];
        assert!(names.iter().all(|name| ours.contains(&name.to_string())), "{ours:?}");
        let Ok(qemu) = programs::find(PROGRAM) else {
            println!("skipped: no {PROGRAM}");
            return;
        };
        let theirs = functions(&std::fs::read(qemu).unwrap(), false);
        assert!(names.iter().all(|name| theirs.contains(&name.to_string())), "{theirs:?}");
    }
}
