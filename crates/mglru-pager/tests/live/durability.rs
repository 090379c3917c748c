//! Errors of the store stick, surface, and never lose what is in memory.

use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::{MIB, PAGE, pager};
use mglru_pager::{Map, PagerError, Store};

/// A store in memory that fails on request.
#[derive(Default)]
struct Fickle {
    content: Mutex<Vec<u8>>,
    fails: AtomicBool,
    syncs: AtomicU32,
}

impl Fickle {
    fn new(len: usize) -> Arc<Self> {
        Arc::new(Self { content: Mutex::new(vec![5; len]), ..Self::default() })
    }

    fn answer(&self) -> io::Result<()> {
        let fails = self.fails.load(Ordering::Relaxed);
        if fails { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }
}

impl Store for Fickle {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.answer()?;
        let content = self.content.lock().unwrap();
        out.copy_from_slice(&content[offset as usize..][..out.len()]);
        Ok(())
    }

    fn write_at(&self, offset: u64, content: &[u8]) -> io::Result<()> {
        self.answer()?;
        self.content.lock().unwrap()[offset as usize..][..content.len()].copy_from_slice(content);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn a_failed_write_is_reported_once_and_the_page_stays_dirty() {
    let Some(pager) = pager(8 * MIB) else { return };
    let store = Fickle::new(MIB);
    // SAFETY: the store reads as it was written.
    let mut map = unsafe { pager.root().map(Map::store(store.clone(), MIB)) }.unwrap();
    map[3 * PAGE] = 9;
    store.fails.store(true, Ordering::Relaxed);
    let errno = |error: PagerError| match error {
        PagerError::Io(error) => error.raw_os_error(),
        other => panic!("{other}"),
    };
    assert_eq!(errno(map.flush().unwrap_err()), Some(5));
    assert_eq!(store.content.lock().unwrap()[3 * PAGE], 5);
    store.fails.store(false, Ordering::Relaxed);
    map.flush().unwrap();
    assert_eq!(store.content.lock().unwrap()[3 * PAGE], 9);
    assert_eq!(store.syncs.load(Ordering::Relaxed), 1, "only what was written is synced");
    map.flush().unwrap();
}

#[test]
fn a_failed_read_is_an_error_for_whoever_touches_the_page() {
    let Some(pager) = pager(8 * MIB) else { return };
    let store = Fickle::new(MIB);
    // SAFETY: the store reads as it was written.
    let mut map = unsafe { pager.root().map(Map::store(store.clone(), MIB)) }.unwrap();
    store.fails.store(true, Ordering::Relaxed);
    let mut sink = tempfile::tempfile().unwrap();
    let error = io::Write::write_all(&mut sink, &map[..PAGE]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(14), "EFAULT");
    store.fails.store(false, Ordering::Relaxed);
    assert_eq!(map[PAGE], 5, "other pages are well");
    map.discard_range(0..PAGE).unwrap();
    assert_eq!(map[0], 5, "and so is this one after another try");
}
