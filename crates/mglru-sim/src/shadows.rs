//! Shadows in 31 bits: most pages that a machine knows of are not in its memory, and a shadow is
//! all that is left of them.
//!
//! A shadow says which group evicted the page and when. What many have in common (the lruvec, the
//! high part of the time) is kept once, as a context that lives as long as somebody uses it. If
//! there are more contexts than have a number, which takes as many lruvecs or billions of
//! evictions, shadows are kept whole and cost more: none is ever changed or lost.

use std::collections::BTreeMap;

use mglru::Shadow;
use slab::Slab;

/// Bits of a shadow's own.
const OWN_BITS: u32 = u16::BITS;
/// Contexts that have a number.
const MOST_CONTEXTS: usize = 1 << 14;
/// The rest is the number of a shadow that is kept whole.
const WHOLE: u32 = 1 << 30;

/// Holds a shadow in 31 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept(pub u32);

/// Holds the part that many shadows have in common.
#[derive(Clone, Copy, Debug)]
struct Context {
    common: u64,
    users: u64,
}

/// Holds all shadows of the machine.
#[derive(Clone, Debug, Default)]
pub struct Shadows {
    contexts: Slab<Context>,
    by_common: BTreeMap<u64, usize>,
    /// The context used last: a batch of evictions has one.
    latest: usize,
    whole: Slab<Shadow>,
}

impl Shadows {
    /// Keeps a shadow until it is taken.
    pub fn keep(&mut self, shadow: Shadow) -> Kept {
        let (common, own) = shadow.split();
        let Some(context) = self.context(common) else {
            return Kept(WHOLE | self.whole.insert(shadow) as u32);
        };
        self.contexts[context].users += 1;
        Kept((context as u32) << OWN_BITS | u32::from(own))
    }

    /// Gives a shadow back and forgets it.
    pub fn take(&mut self, kept: Kept) -> Shadow {
        if kept.0 & WHOLE != 0 {
            return self.whole.remove((kept.0 & !WHOLE) as usize);
        }
        let number = (kept.0 >> OWN_BITS) as usize;
        let context = &mut self.contexts[number];
        context.users -= 1;
        let Context { common, users } = *context;
        if users == 0 {
            self.contexts.remove(number);
            self.by_common.remove(&common);
        }
        Shadow::join(common, kept.0 as u16)
    }

    fn context(&mut self, common: u64) -> Option<usize> {
        if self.contexts.get(self.latest).is_some_and(|context| context.common == common) {
            return Some(self.latest);
        }
        let number = match self.by_common.get(&common) {
            Some(&number) => number,
            None if self.contexts.len() == MOST_CONTEXTS => return None,
            None => self.contexts.insert(Context { common, users: 0 }),
        };
        self.by_common.insert(common, number);
        self.latest = number;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use mglru_workload::rng::Rng;

    use super::*;

    #[test]
    fn shadows_come_back_as_they_were() {
        let mut rng = Rng::new(9, 0);
        let mut shadows = Shadows::default();
        let mut kept = Vec::new();
        for n in 0..100_000_u64 {
            // Times that grow, of four owners; now and then anything at all.
            let near = n << 20 | rng.below(4) << 1 | rng.below(2);
            let shadow = Shadow(if n % 50 == 0 { rng.next_u64() >> 1 } else { near });
            kept.push((shadows.keep(shadow), shadow));
            if rng.below(3) > 0 {
                let (kept, shadow) = kept.swap_remove(rng.below(kept.len() as u64) as usize);
                assert_eq!(shadows.take(kept), shadow);
            }
        }
        assert!(kept.iter().all(|(kept, _)| kept.0 >> 31 == 0));
        kept.into_iter().for_each(|(kept, shadow)| assert_eq!(shadows.take(kept), shadow));
        assert!(shadows.contexts.is_empty() && shadows.by_common.is_empty());
    }

    #[test]
    fn with_every_context_in_use_shadows_are_kept_whole() {
        let mut shadows = Shadows::default();
        let shadow = |n: usize| Shadow((n as u64) << 45 | 1 << 30 | 1);
        let kept: Vec<_> = (0..MOST_CONTEXTS + 2).map(|n| shadows.keep(shadow(n))).collect();
        assert_eq!((shadows.contexts.len(), shadows.whole.len()), (MOST_CONTEXTS, 2));
        assert_eq!(shadows.take(kept[5]), shadow(5));
        assert_eq!(shadows.keep(shadow(1 << 17)).0 & WHOLE, 0, "a number is free again");
        assert_eq!(shadows.take(kept[MOST_CONTEXTS + 1]), shadow(MOST_CONTEXTS + 1));
        assert_eq!(shadows.whole.len(), 1);
    }
}
