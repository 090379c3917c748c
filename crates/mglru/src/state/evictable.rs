//! Which types may be evicted is read from the swappiness here.

use crate::types::{LruType, SWAPPINESS_ANON_ONLY};

/// Selects the types that may be evicted under a swappiness (spec §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evictable {
    /// Evicts files alone: swappiness 0.
    FileOnly,
    /// Evicts anonymous memory alone: swappiness 201.
    AnonOnly,
    /// Evicts both types in all other cases.
    Both,
}

impl Evictable {
    pub(crate) fn under(swappiness: u8) -> Self {
        match swappiness {
            0 => Self::FileOnly,
            SWAPPINESS_ANON_ONLY.. => Self::AnonOnly,
            _ => Self::Both,
        }
    }

    pub(crate) fn only(lru_type: LruType) -> Self {
        match lru_type {
            LruType::Anon => Self::AnonOnly,
            LruType::File => Self::FileOnly,
        }
    }

    /// Lists the types, anon first.
    pub(crate) fn types(self) -> impl DoubleEndedIterator<Item = LruType> {
        LruType::ALL.into_iter().filter(move |&t| self.includes(t))
    }

    pub(crate) fn includes(self, lru_type: LruType) -> bool {
        match self {
            Self::FileOnly => lru_type == LruType::File,
            Self::AnonOnly => lru_type == LruType::Anon,
            Self::Both => true,
        }
    }
}
