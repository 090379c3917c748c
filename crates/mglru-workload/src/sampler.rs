//! Where in a range of pages the next access goes: uniform, sequential or zipf.

use std::sync::Arc;

use crate::rng::Rng;
use crate::zipf_table::ZipfTable;

/// Draws page numbers from `[0, n)`.
#[derive(Clone, Debug)]
pub enum Sampler {
    /// Draws every page with the same probability.
    Uniform {
        /// Number of pages.
        n: u32,
    },
    /// Draws one page after the other, around and around; uses no random number.
    Sequential {
        /// Number of pages.
        n: u32,
        /// The page that comes next.
        next: u32,
    },
    /// Draws by the kernel measurements' zipf table.
    Zipf(Arc<ZipfTable>),
}

impl Sampler {
    /// Draws the next page.
    #[inline]
    pub fn draw(&mut self, rng: &mut Rng) -> u32 {
        match self {
            Self::Uniform { n } => rng.below(u64::from(*n)) as u32,
            Self::Sequential { n, next } => {
                let page = *next;
                *next = if page + 1 == *n { 0 } else { page + 1 };
                page
            }
            Self::Zipf(table) => table.draw(rng),
        }
    }
}

/// Tells whether an access is a write; draws a number only when both are possible.
#[inline]
pub fn is_write(rng: &mut Rng, per_mille: u64) -> bool {
    match per_mille {
        0 => false,
        1000.. => true,
        _ => rng.below(1000) < per_mille,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequential_wraps_and_draws_nothing() {
        let mut rng = Rng::new(1, 0);
        let mut sampler = Sampler::Sequential { n: 3, next: 2 };
        let pages: Vec<u32> = (0..5).map(|_| sampler.draw(&mut rng)).collect();
        assert_eq!(pages, [2, 0, 1, 2, 0]);
        assert_eq!(rng, Rng::new(1, 0));
    }

    #[test]
    fn certain_decisions_draw_nothing() {
        let mut rng = Rng::new(1, 0);
        assert!(!is_write(&mut rng, 0) && is_write(&mut rng, 1000));
        assert_eq!(rng, Rng::new(1, 0));
        let writes = (0..10_000).filter(|_| is_write(&mut rng, 250)).count();
        assert!((2_300..2_700).contains(&writes), "{writes}");
    }
}
