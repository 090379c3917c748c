use super::*;

fn cache() -> LeafCache {
    let params =
        WiredTigerParams { records: 24_000, cache_blocks: 100, ..WiredTigerParams::default() };
    LeafCache::new(&params, Rng::new(1, 0))
}

fn check(cache: &LeafCache) {
    let cached = cache.frames.iter().filter(|frame| frame.block != NONE).count();
    assert_eq!(cached + cache.free.len(), cache.frames.len());
    for (at, &frame) in cache.dirty.iter().enumerate() {
        assert_eq!(cache.frames[frame as usize].dirty as usize, at);
    }
    for (block, &frame) in cache.frame_of.iter().enumerate() {
        assert!(frame == NONE || cache.frames[frame as usize].block as usize == block);
    }
}

#[test]
fn limits_are_percentages() {
    let mut cache = cache();
    (0..80).for_each(|block| _ = cache.insert(block));
    assert!(!cache.is_too_full(Evictor::Worker));
    cache.insert(80);
    assert!(cache.is_too_full(Evictor::Worker) && !cache.is_too_full(Evictor::Client));
    (81..95).for_each(|block| _ = cache.insert(block));
    assert!(cache.is_too_full(Evictor::Client));
    (0..5).for_each(|frame| cache.set_dirty(frame));
    assert!(!cache.is_too_dirty(Evictor::Worker));
    (5..20).for_each(|frame| cache.set_dirty(frame));
    assert!(cache.is_too_dirty(Evictor::Worker) && cache.is_too_dirty(Evictor::Client));
}

#[test]
fn victims_are_old_and_of_the_right_kind() {
    let mut cache = cache();
    (0..100).for_each(|block| _ = cache.insert(block));
    (0..10).for_each(|frame| cache.set_dirty(frame));
    assert!(cache.evict_clean());
    let gone: Vec<u32> = (0..100).filter(|&block| !cache.is_cached(block)).collect();
    assert!(gone.len() == 1 && (10..45).contains(&gone[0]), "{gone:?}");
    let writing = cache.begin_eviction().unwrap();
    assert_eq!((writing.block, writing.frame), (0, 0));
    assert!(cache.is_cached(0));
    cache.end_write(writing);
    assert!(!cache.is_cached(0));
    check(&cache);
}

#[test]
fn a_block_used_while_it_is_written_stays() {
    let mut cache = cache();
    (0..2).for_each(|block| _ = cache.insert(block));
    (0..2).for_each(|frame| cache.set_dirty(frame));
    let writing = cache.begin_eviction().unwrap();
    cache.use_block(writing.block);
    assert!(!cache.frames[writing.frame as usize].is_clean(), "it could be dropped");
    cache.end_write(writing);
    assert!(cache.is_cached(writing.block));
    let kept = cache.begin_write(1 - writing.block).unwrap();
    cache.end_write(kept);
    assert!(cache.is_cached(kept.block) && cache.begin_write(kept.block).is_none());
    check(&cache);
}

#[test]
fn a_candidate_that_was_used_is_passed_over() {
    let mut cache = cache();
    (0..3).for_each(|block| _ = cache.insert(block));
    (0..3).for_each(|frame| cache.set_dirty(frame));
    cache.candidates.dirty = cache.aged([1, 0].into_iter());
    cache.use_block(0);
    assert_eq!(cache.begin_eviction().unwrap().block, 1);
}

#[test]
fn random_use_keeps_the_books() {
    let mut cache = cache();
    let mut rng = Rng::new(2, 0);
    for _ in 0..20_000 {
        let block = rng.below(1000) as u32;
        while !cache.has_free_frame() {
            if rng.below(4) > 0 {
                cache.evict_clean();
            } else if let Some(writing) = cache.begin_eviction() {
                cache.end_write(writing);
            }
        }
        let frame = cache.use_block(block).unwrap_or_else(|| cache.insert(block));
        match rng.below(8) {
            0 => cache.set_dirty(frame),
            1 => _ = cache.begin_write(block).map(|writing| cache.end_write(writing)),
            _ => {}
        }
    }
    check(&cache);
    assert!(cache.dirty_blocks().is_sorted());
}
