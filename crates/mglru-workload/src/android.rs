//! A phone (experiments E10, E11): apps are started one after the other, used for a while and left;
//! the oldest of those left are killed. Nothing of such runs is published but counters, so that the
//! whole model is an assumption; the sizes are the recipe's.
//!
//! An app has code and resources of its own and uses libraries that all share. A launch maps them,
//! goes over extents in an order of its own that is the same each time, and writes its memory; in
//! the foreground it goes over part of both, and a video app swipes: a swipe brings a clip in
//! memory and one in its cache file and drops the oldest of three. At the end of a sequence the
//! camera may be opened. Navigation and a voice assistant run all the time.
//!
//! Turns are taken by barriers: whose turn it is runs, the others stand at the barrier. Background
//! tasks run on their own.

mod app;
mod background;
mod camera;
mod params;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::error::WorkloadError;
use crate::op::{FileSpec, Layout, Op, RegionKind, RegionSpec, TaskId, TaskSpec};
use crate::pages::PAGE_BYTES;
use crate::rng::Rng;
use crate::script::Script;
use crate::string_hash::StringHash;

use app::App;
use background::Background;

pub use params::AndroidParams;

/// Regions of an app: memory, clips, its own file, the libraries.
const APP_REGIONS: u32 = 4;
/// Files before those of the apps: libraries, map tiles, log, music, clips, photo, camera, what
/// apps load and keep, what they show.
const SHARED_FILES: u32 = 9;
const LIBRARIES: u32 = 0;
const TILES: u32 = 1;
const LOG: u32 = 2;
const MUSIC: u32 = 3;
const CLIPS: u32 = 4;
const PHOTO: u32 = 5;
const CAMERA: u32 = 6;
const LOADED: u32 = 7;
const SHOWN: u32 = 8;
const CLASSES: [&str; 3] = ["launch", "camera", "setup"];
const LAUNCH: u8 = 0;
const CAMERA_START: u8 = 1;
const SETUP: u8 = 2;
/// Clips that a video app keeps.
const CLIPS_KEPT: u32 = 3;

/// Names the action of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Takes memory that stays.
    SetUp,
    Launch(u32),
    /// Takes memory by the camera's threads together.
    OpenCamera,
    /// Takes a photo with the camera, and closes it.
    Photo,
    Over,
}

/// Holds the state of a phone in use.
#[derive(Debug)]
pub struct Android {
    params: AndroidParams,
    apps: Vec<App>,
    background: Vec<Background>,
    /// The turn of every foreground task.
    turns: Vec<u32>,
    /// Apps in the background, the oldest first.
    cached: VecDeque<u32>,
    swipes: u32,
    /// Parts of uses so far.
    parts: u64,
    hash: StringHash,
}

impl Android {
    /// Creates a phone on which no app has been started.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn new(params: &AndroidParams, seed: u64) -> Result<Self, WorkloadError> {
        params.check()?;
        let rng = |lane: u32| Rng::new(seed, u64::from(lane));
        let tasks = params.apps + params.camera_threads;
        Ok(Self {
            apps: (0..params.apps).map(|app| App::new(params, app, rng(app))).collect(),
            background: background::all(params, |lane| rng(tasks + lane)),
            turns: vec![0; tasks as usize],
            cached: VecDeque::new(),
            swipes: 0,
            parts: 0,
            hash: StringHash::new(tasks as usize),
            params: params.clone(),
        })
    }

    fn turn(&self, turn: u32) -> Turn {
        let Some(turn) = turn.checked_sub(1) else { return Turn::SetUp };
        let camera = if self.params.camera_threads > 0 { 2 } else { 0 };
        let sequence = self.params.apps + camera;
        if turn >= sequence * self.params.rounds {
            return Turn::Over;
        }
        match turn % sequence {
            app if app < self.params.apps => Turn::Launch(app),
            at if at == self.params.apps => Turn::OpenCamera,
            _ => Turn::Photo,
        }
    }

    fn region_of(&self, app: u32) -> u32 {
        app * APP_REGIONS
    }

    /// Regions after those of the apps: buffers that cannot be reclaimed, the camera's memory, what
    /// it maps, memory that is never given back, then the background's.
    fn shared_region(&self, at: u32) -> u32 {
        self.params.apps * APP_REGIONS + at
    }

    fn set_up(&self, task: TaskId, out: &mut Vec<Op>) {
        if task == 0 {
            let region = self.shared_region(3);
            let fixed = 0..self.params.fixed_pages;
            out.extend(fixed.map(|page| Op::Touch { region, page, write: true }));
        }
    }

    /// The oldest apps in the background make room.
    fn kill_oldest(&mut self, out: &mut Vec<Op>) {
        while self.cached.len() > self.params.keep as usize {
            let oldest = self.cached.pop_front().expect("it is longer than nothing");
            let first = self.region_of(oldest);
            out.extend((first..first + APP_REGIONS).map(|region| Op::Unmap { region }));
        }
    }

    fn take_turn(&mut self, task: TaskId, turn: Turn, out: &mut Vec<Op>) {
        let main_camera = task == self.params.apps;
        match turn {
            Turn::SetUp => self.set_up(task, out),
            Turn::Launch(app) if app == task => self.launch(app, out),
            Turn::OpenCamera if task >= self.params.apps => self.open_camera(task, out),
            Turn::Photo if main_camera => self.take_photo(out),
            _ => {}
        }
    }

    fn add_regions(&self, layout: &mut Layout) {
        let params = &self.params;
        let file = |file| RegionKind::File { file, first_page: 0 };
        for (mm, app) in (0..).zip(&self.apps) {
            let clips = if params.swipes > 0 { params.clip_pages * CLIPS_KEPT } else { 1 };
            let kinds = [
                (RegionKind::Anon, app.memory),
                (RegionKind::Anon, clips),
                (file(SHARED_FILES + mm), app.own),
                (file(LIBRARIES), params.library_pages),
            ];
            let region =
                |(kind, pages)| RegionSpec { mapped: false, ..RegionSpec::plain(mm, kind, pages) };
            layout.regions.extend(kinds.map(region));
        }
        let camera = params.apps;
        let pages = [params.camera_buffer_pages, params.camera_pages];
        let own = pages.map(|pages| RegionSpec::plain(camera, RegionKind::Anon, pages.max(1)));
        let [buffers, memory] = own;
        layout.regions.push(RegionSpec { locked: true, mapped: false, ..buffers });
        layout.regions.push(RegionSpec { mapped: false, ..memory });
        let code = RegionSpec::plain(camera, file(CAMERA), params.camera_file_pages.max(1));
        layout.regions.push(RegionSpec { mapped: false, ..code });
        let fixed = RegionSpec::plain(camera + 1, RegionKind::Anon, params.fixed_pages.max(1));
        layout.regions.push(RegionSpec { locked: true, ..fixed });
    }

    fn add_files(&self, layout: &mut Layout) {
        let params = &self.params;
        let shared = [
            ("libraries", u64::from(params.library_pages)),
            ("tiles", u64::from(params.tile_pages)),
            ("log", 1024),
            ("music", u64::from(params.tile_pages)),
            ("clips", u64::from(CLIPS_KEPT * params.clip_file_pages.max(1))),
            ("photo", u64::from(params.photo_pages.max(1))),
            ("camera", u64::from(params.camera_file_pages.max(1))),
            ("loaded", params.in_all_uses(params.loaded_pages)),
            ("shown", params.in_all_uses(params.shown_pages)),
        ];
        let spec = |name: String, pages: u64| FileSpec { name, bytes: pages * PAGE_BYTES };
        layout.files.extend(shared.map(|(name, pages)| spec(name.to_owned(), pages)));
        let own = (0..).zip(&self.apps);
        layout.files.extend(own.map(|(n, app): (u32, _)| spec(format!("app{n}"), app.own.into())));
    }
}

impl Script for Android {
    fn layout(&self) -> Layout {
        let mut layout = Layout {
            classes: CLASSES.map(str::to_owned).to_vec(),
            phases: vec!["setup".to_owned(), "run".to_owned()],
            ..Layout::default()
        };
        self.add_files(&mut layout);
        self.add_regions(&mut layout);
        let task = |mm, background| TaskSpec { mm, group: None, node: None, background };
        let apps = self.params.apps;
        layout.tasks.extend((0..apps).map(|mm| task(mm, false)));
        layout.tasks.extend((0..self.params.camera_threads).map(|_| task(apps, false)));
        for (mm, background) in (apps + 1..).zip(&self.background) {
            layout.regions.push(RegionSpec::plain(mm, RegionKind::Anon, background.pages.max(1)));
            layout.tasks.push(task(mm, true));
        }
        layout
    }

    fn step(&mut self, task: TaskId, out: &mut Vec<Op>) {
        if let Some(at) = (task as usize).checked_sub(self.turns.len()) {
            let region = self.shared_region(4 + at as u32);
            return self.background[at].step(region, out);
        }
        let number = self.turns[task as usize];
        let turn = self.turn(number);
        if turn == Turn::Over {
            return out.push(Op::Done);
        }
        self.take_turn(task, turn, out);
        out.push(Op::Barrier { id: number });
        // Opening the camera ends when all of its threads are there.
        let opened = turn == Turn::OpenCamera && task == self.params.apps;
        out.extend(opened.then_some(Op::End { class: CAMERA_START }));
        out.extend((number == 0 && task == 0).then_some(Op::Mark { phase: 1 }));
        self.turns[task as usize] += 1;
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn total_ops(&self) -> u64 {
        let pages = u64::from(self.params.file_pages + self.params.memory_pages) * 2;
        u64::from(self.params.rounds * self.params.apps) * pages
    }
}
