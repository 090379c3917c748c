//! Describes a phone and its use.

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};

/// Describes a phone and its use.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AndroidParams {
    /// Counts the apps, which are started in turn.
    pub apps: u32,
    /// Sets how many times all are started.
    pub rounds: u32,
    /// Counts the apps in the background that are not killed.
    pub keep: u32,
    /// Sets the median of an app's code and resources, pages.
    pub file_pages: u32,
    /// Sets the median of an app's memory, pages.
    pub memory_pages: u32,
    /// Counts the pages of the libraries that all apps share.
    pub library_pages: u32,
    /// Sets the median processor time of a launch, ns.
    pub launch_ns: u64,
    /// Sets how long an app is used after its launch, ns.
    pub foreground_ns: u64,
    /// Sets the time between leaving an app and starting the next, ns.
    pub gap_ns: u64,
    /// Counts the swipes of a video app while it is used; every third app is one.
    pub swipes: u32,
    /// Counts the pages in memory of a clip.
    pub clip_pages: u32,
    /// Counts the pages in the cache file of a clip.
    pub clip_file_pages: u32,
    /// Counts the pages that an app loads and writes to files while it is used: its cache, its
    /// data.
    pub loaded_pages: u32,
    /// Counts the pages of files that it shows while it is used, none of them twice: pictures,
    /// media.
    pub shown_pages: u32,
    /// Sets the share of its memory that each app in the background goes over while another is
    /// used, in thousandths: jobs, services, the collection of garbage.
    pub awake_per_mille: u32,
    /// Counts the pages of memory that navigation uses all the time.
    pub navigation_pages: u32,
    /// Counts the pages of memory that the voice assistant uses all the time.
    pub voice_pages: u32,
    /// Counts the pages of map tiles, and of music.
    pub tile_pages: u32,
    /// Says whether music is played.
    pub music: bool,
    /// Sets the period of background work, ns: a second of the phone.
    pub second_ns: u64,
    /// Counts the pages that are never given back: firmware, graphics, kernel.
    pub fixed_pages: u32,
    /// Counts the threads of the camera, opened after each round; 0: no camera.
    pub camera_threads: u32,
    /// Sets the size of the camera's buffers, which cannot be reclaimed, pages.
    pub camera_buffer_pages: u32,
    /// Sets the memory of the camera besides, pages; a photo takes as much again.
    pub camera_pages: u32,
    /// Sets the size of the camera's code and resources, pages.
    pub camera_file_pages: u32,
    /// Counts the pages of a photo.
    pub photo_pages: u32,
}

impl Default for AndroidParams {
    /// The moderate load, on a machine of 1 GiB.
    fn default() -> Self {
        Self {
            apps: 10,
            rounds: 60,
            keep: 6,
            file_pages: 24_000,
            memory_pages: 50_000,
            library_pages: 48_000,
            launch_ns: 640_000_000,
            foreground_ns: 5_000_000_000,
            gap_ns: 1_000_000_000,
            swipes: 0,
            clip_pages: 2_500,
            clip_file_pages: 600,
            loaded_pages: 0,
            shown_pages: 0,
            awake_per_mille: 0,
            navigation_pages: 30_000,
            voice_pages: 15_000,
            tile_pages: 262_144,
            music: false,
            second_ns: 1_000_000_000,
            fixed_pages: 0,
            camera_threads: 0,
            camera_buffer_pages: 0,
            camera_pages: 0,
            camera_file_pages: 0,
            photo_pages: 0,
        }
    }
}

impl AndroidParams {
    /// Returns the same apps and rounds on a smaller phone, as much faster, so that rates stay.
    pub fn scaled(&self, scale: f64) -> Self {
        let pages = |n: u32| (f64::from(n) * scale).round() as u32;
        let time = |ns: u64| (ns as f64 * scale).round() as u64;
        Self {
            file_pages: pages(self.file_pages).max(1),
            memory_pages: pages(self.memory_pages).max(1),
            library_pages: pages(self.library_pages).max(1),
            launch_ns: time(self.launch_ns),
            foreground_ns: time(self.foreground_ns),
            gap_ns: time(self.gap_ns),
            clip_pages: pages(self.clip_pages).max(1),
            clip_file_pages: pages(self.clip_file_pages).max(1),
            loaded_pages: pages(self.loaded_pages),
            shown_pages: pages(self.shown_pages),
            navigation_pages: pages(self.navigation_pages).max(1),
            voice_pages: pages(self.voice_pages).max(1),
            tile_pages: pages(self.tile_pages).max(1),
            second_ns: time(self.second_ns).max(1),
            fixed_pages: pages(self.fixed_pages),
            camera_buffer_pages: pages(self.camera_buffer_pages),
            camera_pages: pages(self.camera_pages),
            camera_file_pages: pages(self.camera_file_pages),
            photo_pages: pages(self.photo_pages),
            ..self.clone()
        }
    }

    /// Pages of a file of which each use of an app takes so many, or one page if none does.
    pub(super) fn in_all_uses(&self, pages: u32) -> u64 {
        (u64::from(self.apps) * u64::from(self.rounds) * u64::from(pages)).max(1)
    }

    /// Checks every number's range.
    ///
    /// # Errors
    /// Fails if a number is out of range; the error names its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        const MOST_PAGES: u32 = 1 << 22;
        in_range("android.apps", self.apps, 1, 1024)?;
        in_range("android.rounds", self.rounds, 1, 65_536)?;
        in_range("android.keep", self.keep, 1, 1024)?;
        in_range("android.second_ns", self.second_ns, 1, 1 << 50)?;
        in_range("android.camera_threads", self.camera_threads, 0, 1024)?;
        in_range("android.swipes", self.swipes, 0, 65_536)?;
        let at_least_one = [
            ("android.file_pages", self.file_pages),
            ("android.memory_pages", self.memory_pages),
            ("android.library_pages", self.library_pages),
            ("android.clip_pages", self.clip_pages),
            ("android.clip_file_pages", self.clip_file_pages),
            ("android.navigation_pages", self.navigation_pages),
            ("android.voice_pages", self.voice_pages),
            ("android.tile_pages", self.tile_pages),
        ];
        at_least_one
            .into_iter()
            .try_for_each(|(key, n)| in_range(key, n, 1, MOST_PAGES).map(drop))?;
        in_range("android.awake_per_mille", self.awake_per_mille, 0, 1000)?;
        let any = [
            ("android.loaded_pages", self.loaded_pages),
            ("android.shown_pages", self.shown_pages),
            ("android.fixed_pages", self.fixed_pages),
            ("android.camera_buffer_pages", self.camera_buffer_pages),
            ("android.camera_pages", self.camera_pages),
            ("android.camera_file_pages", self.camera_file_pages),
            ("android.photo_pages", self.photo_pages),
        ];
        any.into_iter().try_for_each(|(key, n)| in_range(key, n, 0, MOST_PAGES).map(drop))
    }
}
