//! The file system, as far as the page cache can see: how large its folios may be (spec §LF.1).

use mglru::Config;
use serde::{Deserialize, Serialize};

/// Largest folio of a file, as a power of two of pages: a page table of x86.
const LARGEST: u8 = 9;

/// Names the file system that files lie on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystem {
    /// Makes every folio of a file one page, whatever the kernel.
    #[default]
    Order0,
    /// Has large folios in kernels later than 6.12.
    Ext4,
    /// Has large folios in every kernel.
    Xfs,
}

impl FileSystem {
    /// Returns the largest folio under the rules of a kernel, as a power of two of pages.
    pub fn largest(self, config: &Config) -> u8 {
        match self {
            Self::Order0 => 0,
            Self::Ext4 if config.is_k612() => 0,
            Self::Ext4 | Self::Xfs => LARGEST,
        }
    }

    /// Tells whether every folio is one page.
    pub fn is_order0(&self) -> bool {
        *self == Self::Order0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ext4_has_large_folios_since_6_12_and_xfs_always() {
        let largest = |fs: FileSystem, variant| fs.largest(&Config::variant(variant).unwrap());
        for (variant, ext4) in [("k6.12", 0), ("k7.1", 9), ("k7.2", 9), ("k7.3", 9)] {
            assert_eq!(largest(FileSystem::Ext4, variant), ext4, "{variant}");
            assert_eq!(largest(FileSystem::Xfs, variant), 9, "{variant}");
            assert_eq!(largest(FileSystem::Order0, variant), 0, "{variant}");
        }
    }
}
