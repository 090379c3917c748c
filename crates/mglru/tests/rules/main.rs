//! One behaviour a test, named for the rule it proves; the section of the specification is cited
//! at the head of each file.

mod aging;
mod budget;
mod bulk;
mod classic;
mod concurrency;
mod contig;
mod demotion;
mod dirty;
mod entry;
mod eviction;
mod folios;
mod groups;
mod kswapd;
mod measures;
mod mechanisms;
mod memcg_lru;
mod misport;
mod refaults;
mod releases;
mod throttling;
#[path = "../toy/toy.rs"]
mod toy;
mod window;
