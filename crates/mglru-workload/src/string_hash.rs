//! Hash of a reference string: it shows whether two variants of a run drew the same keys.
//!
//! Each task hashes its own draws in its own order, and tasks are combined by number, so that the
//! result does not depend on how the machine interleaved them.

use crate::op::TaskId;
use crate::rng::splitmix;

/// Holds one running hash per task.
#[derive(Clone, Debug)]
pub struct StringHash(Vec<u64>);

impl StringHash {
    /// Creates the hashes of `tasks` tasks that have drawn nothing.
    pub fn new(tasks: usize) -> Self {
        Self((0..tasks as u64).map(splitmix).collect())
    }

    /// Adds `value`, which task `task` drew, to the hash of the task.
    #[inline]
    pub fn add(&mut self, task: TaskId, value: u64) {
        let hash = &mut self.0[task as usize];
        *hash = (hash.rotate_left(23) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    /// Combines the hashes of all tasks.
    pub fn finish(&self) -> u64 {
        self.0.iter().fold(0, |all, &task| splitmix(all ^ task))
    }
}

/// Packs what an access is into the word that is hashed.
#[inline]
pub fn access(place: u32, page: u64, write: bool) -> u64 {
    u64::from(place) << 48 ^ page << 1 ^ u64::from(write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaving_does_not_matter_but_order_in_a_task_does() {
        let run = |draws: &[(u32, u64)]| {
            let mut hash = StringHash::new(2);
            draws.iter().for_each(|&(task, value)| hash.add(task, value));
            hash.finish()
        };
        assert_eq!(run(&[(0, 1), (1, 5), (0, 2)]), run(&[(1, 5), (0, 1), (0, 2)]));
        assert_ne!(run(&[(0, 1), (0, 2)]), run(&[(0, 2), (0, 1)]));
        assert_ne!(run(&[(0, 1)]), run(&[(1, 1)]));
    }

    #[test]
    fn accesses_differ_in_every_field() {
        let base = access(1, 2, false);
        assert!(
            [access(2, 2, false), access(1, 3, false), access(1, 2, true)]
                .iter()
                .all(|&other| other != base)
        );
    }
}
