//! An app: its sizes, its launch, its use.

use super::{
    APP_REGIONS, Android, AndroidParams, CLIPS, CLIPS_KEPT, LAUNCH, LOADED, SETUP, SHARED_FILES,
    SHOWN,
};
use crate::gray_zipf::GrayZipf;
use crate::lognormal::lognormal;
use crate::op::Op;
use crate::pages::PAGE_BYTES;
use crate::permutation::Permutation;
use crate::rng::Rng;
use crate::string_hash::access;

/// Pages of an extent that is gone over at once.
const EXTENT: u32 = 27;
/// Spread of sizes, and of a launch's processor time.
const SIZE_SIGMA: f64 = 0.5;
const TIME_SIGMA: f64 = 0.3;
/// Part of an app's files that are libraries, and popularity of these.
const SHARED_PERCENT: u64 = 40;
const LIBRARY_THETA: f64 = 0.8;
/// Own extents that are read through a descriptor.
const READ_PERCENT: u64 = 15;
/// Files that a launch goes over, and memory it writes.
const LAUNCH_FILES_PERCENT: u32 = 45;
const LAUNCH_MEMORY_PERCENT: u32 = 50;
/// Files and memory that are gone over in the foreground.
const USE_PERCENT: u32 = 20;
/// Parts of the time in the foreground.
const USE_PARTS: u32 = 10;
/// Every so manieth app shows videos.
const VIDEO: u32 = 3;

/// An app.
#[derive(Debug)]
pub(super) struct App {
    rng: Rng,
    /// Pages of memory and of its own file.
    pub(super) memory: u32,
    pub(super) own: u32,
    launch_ns: u64,
    /// The pages that a launch goes over, the same each time.
    extents: Vec<Extent>,
}

#[derive(Clone, Copy, Debug)]
enum Extent {
    Library(u32),
    Mapped(u32),
    Read(u32),
}

impl App {
    pub(super) fn new(params: &AndroidParams, app: u32, mut rng: Rng) -> Self {
        let size = |rng: &mut Rng, median: u32| {
            (lognormal(rng, f64::from(median), SIZE_SIGMA) as u32).max(EXTENT)
        };
        let files = size(&mut rng, params.file_pages);
        let memory = size(&mut rng, params.memory_pages);
        let own = (u64::from(files) * (100 - SHARED_PERCENT) / 100).max(1) as u32;
        let launch_ns = lognormal(&mut rng, params.launch_ns as f64, TIME_SIGMA) as u64;
        let library = Extents::of(params.library_pages, 0);
        let popular = GrayZipf::new(u64::from(library.nr), LIBRARY_THETA);
        let mine = Extents::of(own, u64::from(app) + 1);
        let nr = (files * LAUNCH_FILES_PERCENT / 100).div_ceil(EXTENT);
        let extents = (0..nr).map(|at| {
            if rng.below(100) < SHARED_PERCENT {
                return Extent::Library(library.first(popular.draw(&mut rng)));
            }
            let first = mine.first(u64::from(at % mine.nr));
            match rng.below(100) < READ_PERCENT {
                true => Extent::Read(first),
                false => Extent::Mapped(first),
            }
        });
        let extents = extents.collect();
        Self { memory, own, launch_ns, extents, rng }
    }
}

/// The extents of a file, in an order of their own.
struct Extents {
    nr: u32,
    pages: u32,
    order: Permutation,
}

impl Extents {
    fn of(pages: u32, key: u64) -> Self {
        let nr = (pages / EXTENT).max(1);
        Self { nr, pages, order: Permutation::new(u64::from(nr), key) }
    }

    /// First page of an extent; the last ones of a file overlap.
    fn first(&self, at: u64) -> u32 {
        let first = self.order.at(at) as u32 * EXTENT;
        first.min(self.pages.saturating_sub(EXTENT))
    }
}

impl Android {
    /// An app is started, used and left.
    pub(super) fn launch(&mut self, app: u32, out: &mut Vec<Op>) {
        out.push(Op::End { class: SETUP });
        let was_cached = self.cached.iter().position(|&cached| cached == app);
        match was_cached {
            Some(at) => drop(self.cached.remove(at)),
            None => {
                let first = self.region_of(app);
                out.extend((first..first + APP_REGIONS).map(|region| Op::Map { region }));
            }
        }
        self.hash.add(app, access(app, u64::from(self.apps[app as usize].memory), true));
        self.start(app, out);
        out.push(Op::End { class: LAUNCH });
        self.use_app(app, out);
        self.cached.push_back(app);
        self.kill_oldest(out);
        out.extend([Op::Think { ns: self.params.gap_ns }, Op::End { class: SETUP }]);
    }

    /// Extents and memory alternate, with the processor's time between them.
    fn start(&self, app: u32, out: &mut Vec<Op>) {
        let region = self.region_of(app);
        let it = &self.apps[app as usize];
        let (nr, memory) = (it.extents.len() as u32, it.memory * LAUNCH_MEMORY_PERCENT / 100);
        let part = |at: u32| (u64::from(memory) * u64::from(at) / u64::from(nr)) as u32;
        for (at, &extent) in (0..).zip(&it.extents) {
            self.go_over(app, extent, out);
            let pages = part(at)..part(at + 1);
            out.extend(pages.map(|page| Op::Touch { region, page, write: true }));
            out.push(Op::Compute { ns: it.launch_ns / u64::from(nr) });
        }
    }

    fn go_over(&self, app: u32, extent: Extent, out: &mut Vec<Op>) {
        let (region, first) = match extent {
            Extent::Library(first) => (self.region_of(app) + 3, first),
            Extent::Mapped(first) => (self.region_of(app) + 2, first),
            Extent::Read(first) => {
                let pages = EXTENT.min(self.apps[app as usize].own - first);
                let (off, len) = (u64::from(first) * PAGE_BYTES, pages * PAGE_BYTES as u32);
                return out.push(Op::Read { file: SHARED_FILES + app, off, len });
            }
        };
        let end = match extent {
            Extent::Library(_) => self.params.library_pages,
            _ => self.apps[app as usize].own,
        };
        let pages = first..(first + EXTENT).min(end);
        out.extend(pages.map(|page| Op::Touch { region, page, write: false }));
    }

    fn use_app(&mut self, app: u32, out: &mut Vec<Op>) {
        let swipes = if app % VIDEO == 0 { self.params.swipes } else { 0 };
        for part in 0..USE_PARTS {
            self.look_around(app, out);
            self.grow(app, part, out);
            let due = swipes * (part + 1) / USE_PARTS - swipes * part / USE_PARTS;
            (0..due).for_each(|_| self.swipe(app, out));
            self.load_and_show(out);
            self.wake_others(out);
            out.push(Op::Think { ns: self.params.foreground_ns / u64::from(USE_PARTS) });
        }
    }

    /// One part of what is used in the foreground.
    fn look_around(&mut self, app: u32, out: &mut Vec<Op>) {
        let region = self.region_of(app);
        let it = &mut self.apps[app as usize];
        let written = u64::from((it.memory * LAUNCH_MEMORY_PERCENT / 100).max(1));
        for _ in 0..it.memory * USE_PERCENT / 100 / USE_PARTS {
            let page = it.rng.below(written) as u32;
            out.push(Op::Touch { region, page, write: true });
        }
        let nr = it.extents.len() as u64;
        let extents = (it.own * USE_PERCENT / 100 / USE_PARTS).div_ceil(EXTENT);
        let chosen: Vec<Extent> =
            (0..extents).map(|_| it.extents[it.rng.below(nr) as usize]).collect();
        chosen.into_iter().for_each(|extent| self.go_over(app, extent, out));
    }

    /// Writes, while the app is used, the memory that its launch did not write.
    fn grow(&self, app: u32, part: u32, out: &mut Vec<Op>) {
        let (region, memory) = (self.region_of(app), self.apps[app as usize].memory);
        let first = memory * LAUNCH_MEMORY_PERCENT / 100;
        let at = |part: u32| first + (memory - first) * part / USE_PARTS;
        let pages = at(part)..at(part + 1);
        out.extend(pages.map(|page| Op::Touch { region, page, write: true }));
    }

    /// Loads into new files, and shows pages that were never seen before.
    fn load_and_show(&mut self, out: &mut Vec<Op>) {
        let (at, parts) = (self.parts, u64::from(USE_PARTS));
        self.parts += 1;
        let bytes = |pages: u32| {
            let upto = |at: u64| u64::from(pages) * at / parts * PAGE_BYTES;
            (upto(at), (upto(at + 1) - upto(at)) as u32)
        };
        let (off, len) = bytes(self.params.loaded_pages);
        out.extend((len > 0).then_some(Op::Write { file: LOADED, off, len }));
        let (off, len) = bytes(self.params.shown_pages);
        out.extend((len > 0).then_some(Op::Read { file: SHOWN, off, len }));
    }

    /// Apps in the background are not idle.
    fn wake_others(&mut self, out: &mut Vec<Op>) {
        for &app in &self.cached {
            let region = self.region_of(app);
            let it = &mut self.apps[app as usize];
            let pages = u64::from(it.memory) * u64::from(self.params.awake_per_mille) / 1000;
            for _ in 0..pages / u64::from(USE_PARTS) {
                let page = it.rng.below(u64::from(it.memory)) as u32;
                out.push(Op::Touch { region, page, write: true });
            }
        }
    }

    /// The next clip takes the place of the oldest of three.
    fn swipe(&mut self, app: u32, out: &mut Vec<Op>) {
        let region = self.region_of(app) + 1;
        let clip = self.swipes % CLIPS_KEPT;
        self.swipes += 1;
        let (first, nr) = (clip * self.params.clip_pages, self.params.clip_pages);
        out.push(Op::Free { region, page: first, nr });
        out.extend((first..first + nr).map(|page| Op::Touch { region, page, write: true }));
        let bytes = u64::from(self.params.clip_file_pages) * PAGE_BYTES;
        let (file, off, len) = (CLIPS, u64::from(clip) * bytes, bytes as u32);
        out.extend([Op::Write { file, off, len }, Op::Read { file, off, len }]);
    }
}
