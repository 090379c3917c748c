//! Which process manages a file. Each has its own copy of what is in memory: one that stores has to
//! be alone, those that only read need not.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use mglru_pager::held;

/// Identifies a file by device and inode.
pub type Key = (u64, u64);

/// Holds names that are taken: they end with the process, however it ends.
pub struct Claim(Vec<UnixListener>);

impl Claim {
    /// Claims a file, to read it or to write it too.
    ///
    /// # Errors
    /// Another process has it, and one of the two writes.
    pub fn new(key: Key, writable: bool) -> io::Result<Self> {
        let mut claim = Self(Vec::new());
        if writable { claim.be_writer(key) } else { claim.be_reader(key) }.map(|()| claim)
    }

    fn be_reader(&mut self, key: Key) -> io::Result<()> {
        let writer = writer(key);
        self.take(&own_reader(key), |name| name == writer)
    }

    /// Claims the file for writing too, from now on.
    ///
    /// # Errors
    /// Another process has it.
    pub fn be_writer(&mut self, key: Key) -> io::Result<()> {
        let (own, readers) = (own_reader(key), readers(key));
        self.take(&writer(key), |name| name.starts_with(&readers) && name != own)
    }

    /// Takes a name, unless another one is taken. When two processes do this at once, neither
    /// may think that it is alone: each takes its own name before it looks.
    fn take(&mut self, name: &str, clashes: impl Fn(&str) -> bool) -> io::Result<()> {
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
        let all = std::fs::read("/proc/net/unix")?;
        let all = String::from_utf8_lossy(&all);
        if all.lines().filter_map(|line| line.split_once('@')).any(|(_, name)| clashes(name)) {
            return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
        }
        self.0.push(held::keep(listener)?);
        Ok(())
    }

    /// Releases the names in a forked child: they are the parent's alone.
    pub fn release(&mut self) {
        self.0.clear();
    }
}

fn writer((device, inode): Key) -> String {
    format!("mglru-pager/{device:x}/{inode:x}/writer")
}

fn readers((device, inode): Key) -> String {
    format!("mglru-pager/{device:x}/{inode:x}/reader/")
}

fn own_reader(key: Key) -> String {
    format!("{}{}", readers(key), std::process::id())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Calls until it succeeds: a test beside this one may fork, and its child holds a closed
    /// socket's name until it ends.
    fn once_free<T>(mut claim: impl FnMut() -> io::Result<T>) -> T {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match claim() {
                Ok(claimed) => return claimed,
                Err(error) if Instant::now() > deadline => panic!("never free: {error}"),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    #[test]
    fn a_writer_is_alone_and_readers_are_not() {
        // The pager owns the names' descriptors: nobody else closes them.
        mglru_pager::threads::as_pager(|| {
            let key = (u64::from(std::process::id()), 1);
            // Another process.
            let other = SocketAddr::from_abstract_name(format!("{}0", readers(key))).unwrap();
            let other = UnixListener::bind_addr(&other).unwrap();
            let mut claim = Claim::new(key, false).expect("both read");
            assert!(claim.be_writer(key).is_err(), "the other reads");
            drop(other);
            once_free(|| claim.be_writer(key));
            assert!(Claim::new(key, true).is_err());
            assert!(Claim::new((key.0, 2), true).is_ok(), "another file");
            claim.release();
            let writes = once_free(|| Claim::new(key, true));
            assert!(Claim::new(key, false).is_err(), "somebody writes");
            drop(writes);
            once_free(|| Claim::new(key, false));
        });
    }
}
