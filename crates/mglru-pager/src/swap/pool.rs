//! The compressed pool: objects of size classes in chunks of one reservation. An empty chunk goes
//! back to the system, so the pool takes what it says it takes.

use std::io;

use crate::sys::PAGE;
use crate::sys::direct::Buffer;

/// Classes are multiples of this, bytes.
const STEP: usize = 64;
const CLASSES: usize = PAGE / STEP;
const CHUNK: usize = 4 * PAGE;

/// Locates an object of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Where it starts, bytes from the start of the pool.
    at: u64,
    len: u16,
}

impl Object {
    /// Counts the bytes that the object takes.
    pub fn size(self) -> u64 {
        (class_of(usize::from(self.len)) * STEP) as u64
    }
}

/// Holds the objects of the pool in chunks of memory.
#[derive(Debug)]
pub struct Pool {
    memory: Buffer,
    /// Free places of each class, by offset.
    free: Vec<Vec<u64>>,
    /// Per chunk: objects in it; chunks without are in `empty`.
    used: Vec<u16>,
    empty: Vec<u32>,
    chunks: u32,
    objects: u64,
}

fn class_of(len: usize) -> usize {
    len.div_ceil(STEP).max(1)
}

impl Pool {
    /// Makes a pool of at most `bytes`.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let nr_chunks = bytes / CHUNK;
        Ok(Self {
            memory: Buffer::new((nr_chunks * CHUNK).max(PAGE))?,
            free: vec![Vec::new(); CLASSES + 1],
            used: vec![0; nr_chunks],
            empty: (0..nr_chunks as u32).rev().collect(),
            chunks: 0,
            objects: 0,
        })
    }

    /// Counts the bytes by which the pool may still grow.
    pub fn room(&self) -> usize {
        self.empty.len() * CHUNK
    }

    /// Counts the bytes that the pool takes.
    pub fn size(&self) -> u64 {
        u64::from(self.chunks) * CHUNK as u64
    }

    /// Counts the bytes of its chunks that hold no object.
    pub fn slack(&self) -> u64 {
        u64::from(self.chunks) * CHUNK as u64 - self.objects
    }

    /// Keeps a copy; `None`: it is full.
    pub fn put(&mut self, bytes: &[u8]) -> Option<Object> {
        let class = class_of(bytes.len());
        if self.free[class].is_empty() {
            self.open_chunk(class)?;
        }
        let at = self.free[class].pop()?;
        let object = Object { at, len: bytes.len() as u16 };
        self.memory[at as usize..][..bytes.len()].copy_from_slice(bytes);
        self.used[at as usize / CHUNK] += 1;
        self.objects += object.size();
        Some(object)
    }

    fn open_chunk(&mut self, class: usize) -> Option<()> {
        let chunk = self.empty.pop()?;
        self.chunks += 1;
        let start = u64::from(chunk) * CHUNK as u64;
        let size = (class * STEP) as u64;
        self.free[class].extend((0..CHUNK as u64 / size).rev().map(|n| start + n * size));
        Some(())
    }

    /// Returns the bytes of an object.
    pub fn get(&self, object: Object) -> &[u8] {
        &self.memory[object.at as usize..][..usize::from(object.len)]
    }

    /// Drops an object.
    pub fn free(&mut self, object: Object) {
        let class = class_of(usize::from(object.len));
        let chunk = object.at as usize / CHUNK;
        self.objects -= object.size();
        self.used[chunk] -= 1;
        self.free[class].push(object.at);
        if self.used[chunk] == 0 {
            self.close_chunk(class, chunk);
        }
    }

    fn close_chunk(&mut self, class: usize, chunk: usize) {
        self.free[class].retain(|at| *at as usize / CHUNK != chunk);
        self.memory.release(chunk * CHUNK..(chunk + 1) * CHUNK);
        self.empty.push(chunk as u32);
        self.chunks -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_do_not_overlap_and_chunks_return() {
        let mut pool = Pool::new(64 * CHUNK).unwrap();
        let sizes = [1, 64, 65, 700, 2049, 4096, 3000, 130];
        let make = |n: usize| vec![n as u8 + 1; sizes[n % sizes.len()]];
        let objects: Vec<_> = (0..120).map(|n| pool.put(&make(n)).unwrap()).collect();
        for (n, object) in objects.iter().enumerate() {
            assert_eq!(pool.get(*object), make(n));
        }
        assert!(pool.slack() < 8 * CHUNK as u64);
        objects.into_iter().for_each(|object| pool.free(object));
        assert_eq!((pool.slack(), pool.room()), (0, 64 * CHUNK));
    }
}
