//! What an arena's owner says and asks: how it will be used, and whether it could be written.

use std::io;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::Access;

/// How the arena will be used. Its owner sets it ([`ForOwner`](super::ForOwner)).
#[derive(Default)]
pub(super) struct Advised(AtomicU8);

impl Advised {
    pub(super) fn get(&self) -> Access {
        match self.0.load(Ordering::Relaxed) {
            1 => Access::Random,
            2 => Access::Sequential,
            _ => Access::Normal,
        }
    }

    pub(super) fn set(&self, access: Access) {
        self.0.store(access as u8, Ordering::Relaxed);
    }
}

/// The last I/O error, errno, or 0. The policy notes it, the owner takes it.
#[derive(Default)]
pub(super) struct Failure(AtomicU32);

impl Failure {
    pub(super) fn note(&self, error: &io::Error) {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        self.0.store(errno as u32, Ordering::Release);
    }

    pub(super) fn take(&self) -> Option<io::Error> {
        match self.0.swap(0, Ordering::AcqRel) {
            0 => None,
            errno => Some(io::Error::from_raw_os_error(errno as i32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_reported_once_and_advice_stays() {
        let failure = Failure::default();
        failure.note(&io::Error::from_raw_os_error(libc::ENOSPC));
        assert_eq!(failure.take().unwrap().raw_os_error(), Some(libc::ENOSPC));
        assert!(failure.take().is_none());
        let advised = Advised::default();
        assert_eq!(advised.get(), Access::Normal);
        for access in [Access::Random, Access::Sequential, Access::Normal] {
            advised.set(access);
            assert_eq!(advised.get(), access);
        }
    }
}
