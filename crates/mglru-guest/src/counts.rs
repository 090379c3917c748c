//! Reads the kernel's counters of a process.

use std::fs;

use mglru_guest::report::Done;

/// Bytes of a block as rusage counts them.
const BLOCK: u64 = 512;

/// Counts the faults and blocks of a process; zeros when it is gone.
pub fn of_process(pid: u32) -> Done {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let (minflt, majflt) = faults(&stat);
    let blocks = |name| bytes(&io, name) / BLOCK;
    Done {
        minflt,
        majflt,
        inblk: blocks("read_bytes:"),
        oublk: blocks("write_bytes:"),
        ..Done::default()
    }
}

/// Fields 10 and 12; the second one, a name, may hold anything.
fn faults(stat: &str) -> (u64, u64) {
    let Some((_, rest)) = stat.rsplit_once(')') else { return (0, 0) };
    let field = |at: usize| rest.split_whitespace().nth(at).and_then(|word| word.parse().ok());
    (field(7).unwrap_or(0), field(9).unwrap_or(0))
}

fn bytes(io: &str, name: &str) -> u64 {
    let line = io.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 113 5 48890 6 3 4 0 0 20 0";
        assert_eq!(faults(stat), (113, 48890));
        assert_eq!(faults(""), (0, 0));
    }

    #[test]
    fn blocks_are_of_512_bytes() {
        let io = "rchar: 5\nread_bytes: 1024\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n";
        assert_eq!((bytes(io, "read_bytes:"), bytes(io, "write_bytes:")), (1024, 4096));
    }
}
