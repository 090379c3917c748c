//! How pages are made small.

use crate::sys::PAGE;

/// A page is kept as it is unless it shrinks to this, bytes: the pool's next larger class.
const WORTH_IT: usize = PAGE - 64;
const ZSTD_LEVEL: i32 = 1;

/// Names a compressor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// Compresses fast: 8 us to pack, 2 us to unpack a page of program text.
    #[default]
    Lz4,
    /// Compresses to less, four times slower.
    Zstd,
}

/// Names the result of packing a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// Says that the scratch holds the packed page.
    Small,
    /// Says that the page does not compress.
    Raw,
}

impl Codec {
    /// Compresses a page into `scratch`.
    pub fn pack(self, page: &[u8], scratch: &mut Vec<u8>) -> Packed {
        scratch.resize(PAGE + 512, 0);
        let packed = match self {
            Self::Lz4 => lz4_flex::block::compress_into(page, scratch).ok(),
            Self::Zstd => {
                zstd::bulk::compress_to_buffer(page, scratch.as_mut_slice(), ZSTD_LEVEL).ok()
            }
        };
        match packed.filter(|n| *n <= WORTH_IT) {
            Some(n) => {
                scratch.truncate(n);
                Packed::Small
            }
            None => Packed::Raw,
        }
    }

    /// Unpacks into `page` what [`Self::pack`] made.
    ///
    /// # Panics
    /// If `packed` is not what [`Self::pack`] made: memory is corrupt.
    pub fn unpack(self, packed: &[u8], page: &mut [u8]) {
        let n = match self {
            Self::Lz4 => lz4_flex::block::decompress_into(packed, page).ok(),
            Self::Zstd => zstd::bulk::decompress_to_buffer(packed, page).ok(),
        };
        assert_eq!(n, Some(PAGE), "a page in the pool is corrupt");
    }
}

/// Tells whether a page holds nothing but zeros.
pub fn is_zeros(page: &[u8]) -> bool {
    page.chunks_exact(8).all(|word| word == [0; 8])
}
