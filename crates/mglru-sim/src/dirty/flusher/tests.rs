use super::*;

const SECOND: Nanos = 1_000_000_000;
const ROOT: MemcgId = MemcgId::ROOT;

fn flusher() -> Flusher {
    Flusher::new(&DirtySpec::default(), None)
}

fn dirty(files: &mut DirtyFiles, file: FileId, pages: std::ops::Range<u64>, now: Nanos) {
    pages.for_each(|page| {
        files.set(file, page, ROOT, now);
    });
}

fn write(files: &mut DirtyFiles, run: Run) {
    (run.page..run.page + run.pages).for_each(|page| assert!(files.clear(run.file, page)));
}

/// Writes all the flusher asks for while `above(dirty pages)`: (file, page, pages).
fn write_all(
    flusher: &mut Flusher,
    files: &mut DirtyFiles,
    now: Nanos,
    above: impl Fn(u64) -> bool,
) -> Vec<(FileId, u64, u64)> {
    let mut runs = Vec::new();
    loop {
        let over = above(files.total());
        let Some(run) = flusher.next(now, files, over) else { return runs };
        write(files, run);
        runs.push((run.file, run.page, run.pages));
    }
}

#[test]
fn nobody_wakes_it_nothing_is_written() {
    let (mut flusher, mut files) = (flusher(), DirtyFiles::new());
    dirty(&mut files, 0, 0..10, 0);
    assert!(!flusher.is_awake());
    assert_eq!(flusher.next(SECOND, &mut files, true), None);
}

#[test]
fn periodic_writes_what_is_older_than_thirty_seconds() {
    let (mut flusher, mut files) = (flusher(), DirtyFiles::new());
    dirty(&mut files, 4, 0..10, 3 * SECOND);
    dirty(&mut files, 2, 0..10, 6 * SECOND);
    let mut written = Vec::new();
    while flusher.next_tick() <= 40 * SECOND {
        let now = flusher.next_tick();
        flusher.tick(now);
        let runs = write_all(&mut flusher, &mut files, now, |_| false);
        written.extend(runs.into_iter().map(|(file, ..)| (now / SECOND, file)));
    }
    assert_eq!(written, [(35, 4), (40, 2)]);
    assert_eq!(flusher.wakeups(Reason::Periodic), 8);
}

#[test]
fn background_stops_below_the_threshold() {
    let (mut flusher, mut files) = (flusher(), DirtyFiles::new());
    dirty(&mut files, 0, 0..3_000, 0);
    flusher.wake(Reason::Background);
    let runs = write_all(&mut flusher, &mut files, 5, |dirty| dirty > 2_000);
    assert_eq!(runs, [(0, 0, 320), (0, 320, 320), (0, 640, 320), (0, 960, 64)]);
    assert!(!flusher.is_awake());
}

#[test]
fn background_goes_on_where_it_stopped() {
    let (mut flusher, mut files) = (flusher(), DirtyFiles::new());
    dirty(&mut files, 0, 0..1_000, 0);
    flusher.wake(Reason::Background);
    write_all(&mut flusher, &mut files, 5, |dirty| dirty > 700);
    dirty(&mut files, 0, 0..10, 6);
    flusher.wake(Reason::Background);
    let runs = write_all(&mut flusher, &mut files, 7, |_| true);
    assert_eq!(runs, [(0, 320, 320), (0, 640, 320), (0, 960, 40), (0, 0, 10)]);
}

#[test]
fn files_take_turns_by_chunks_oldest_first() {
    let (mut flusher, mut files) = (flusher(), DirtyFiles::new());
    dirty(&mut files, 1, 0..2_000, 20);
    dirty(&mut files, 2, 0..2_000, 10);
    flusher.wake(Reason::Vmscan);
    let runs = write_all(&mut flusher, &mut files, 30, |_| false);
    let mut visits: Vec<(FileId, u64)> = Vec::new();
    for (file, _, pages) in runs {
        match visits.last_mut() {
            Some((last, sum)) if *last == file => *sum += pages,
            _ => visits.push((file, pages)),
        }
    }
    assert_eq!(visits, [(2, 1_024), (1, 1_024), (2, 976), (1, 976)]);
    assert_eq!(files.total(), 0);
}

#[test]
fn pages_that_cannot_be_written_do_not_keep_it_busy() {
    for reason in REASONS {
        let (mut flusher, mut files) = (flusher(), DirtyFiles::new());
        dirty(&mut files, 0, 0..5_000, 0);
        flusher.wake(reason);
        let offered = std::iter::from_fn(|| flusher.next(31 * SECOND, &mut files, true));
        let offered: u64 = offered.map(|run| run.pages).sum();
        assert!((5_000..=10_000).contains(&offered), "{reason:?}: {offered}");
        assert!(!flusher.is_awake());
    }
}

#[test]
fn reclaim_has_all_written_that_is_dirty_when_it_asks() {
    let (mut flusher, mut files) = (flusher(), DirtyFiles::new());
    dirty(&mut files, 0, 0..100, 0);
    flusher.wake(Reason::Vmscan);
    let first = flusher.next(1, &mut files, false).unwrap();
    assert_eq!((first.pages, first.reason), (100, Reason::Vmscan));
    flusher.wake(Reason::Vmscan);
    write(&mut files, first);
    dirty(&mut files, 0, 200..300, 2);
    assert_eq!(flusher.next(3, &mut files, false), None, "woken while at work: no second pass");
    assert_eq!(flusher.wakeups(Reason::Vmscan), 2);
}

#[test]
fn sync_comes_first_and_covers_a_sync_asked_for_meanwhile() {
    let (mut flusher, mut files) = (flusher(), DirtyFiles::new());
    dirty(&mut files, 0, 0..5_000, 0);
    for reason in [Reason::Periodic, Reason::Background, Reason::Sync] {
        flusher.wake(reason);
    }
    let run = flusher.next(1, &mut files, false).unwrap();
    assert_eq!(run.reason, Reason::Sync);
    write(&mut files, run);
    dirty(&mut files, 1, 0..7, 2);
    flusher.wake(Reason::Sync);
    assert!(flusher.is_busy_with(Reason::Sync));
    write_all(&mut flusher, &mut files, 3, |_| false);
    assert_eq!(files.total(), 0);
    assert!(!flusher.is_busy_with(Reason::Sync));
}

#[test]
fn an_owner_s_flusher_leaves_other_files_alone() {
    let mut files = DirtyFiles::new();
    files.set(0, 0, MemcgId(1), 0);
    files.set(1, 0, MemcgId(2), 0);
    let mut flusher = Flusher::new(&DirtySpec::default(), Some(MemcgId(2)));
    flusher.wake(Reason::Vmscan);
    let runs = write_all(&mut flusher, &mut files, 1, |_| false);
    assert_eq!(runs, [(1, 0, 1)]);
}
