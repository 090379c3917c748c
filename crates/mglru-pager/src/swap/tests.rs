use super::*;

fn page(of: impl Fn(usize) -> u8) -> Vec<u8> {
    (0..PAGE).map(of).collect()
}

fn noise(seed: u32) -> Vec<u8> {
    let mut x = seed | 1;
    page(|_| 0)
        .iter()
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            x as u8
        })
        .collect()
}

fn pooled(stored: Stored) -> (Slot, u64) {
    match stored {
        Stored::Pooled(slot, size) => (slot, size),
        other => panic!("not pooled: {other:?}"),
    }
}

#[test]
fn pages_come_back_as_they_went() {
    for codec in [Codec::Lz4, Codec::Zstd] {
        let swap = Swap::new(&SwapOptions { codec, ..SwapOptions::in_memory(1 << 20) }).unwrap();
        let (mut scratch, mut out) = (Vec::new(), vec![7; PAGE]);
        let text = page(|i| b"generation "[i % 11]);
        let (small, size) = pooled(swap.store(&text, MemcgId::ROOT, &mut scratch));
        assert!(size < 256, "{size} for a repeated word");
        let (raw, size) = pooled(swap.store(&noise(3), MemcgId::ROOT, &mut scratch));
        assert_eq!(size, PAGE as u64);
        assert_eq!(swap.load(small, &mut out, &mut scratch), Loaded::Content);
        assert_eq!(out, text);
        assert_eq!(swap.load(raw, &mut out, &mut scratch), Loaded::Content);
        assert_eq!(out, noise(3));
        assert_eq!(swap.free(raw), Some(PAGE as u64));
        assert_eq!(swap.store(&page(|_| 0), MemcgId::ROOT, &mut scratch), Stored::Zeros);
    }
}

#[test]
fn a_shared_slot_stays_until_its_last_owner_is_gone() {
    let swap = Swap::new(&SwapOptions::in_memory(1 << 20)).unwrap();
    let (mut scratch, mut out) = (Vec::new(), vec![7; PAGE]);
    let (slot, size) = pooled(swap.store(&noise(1), MemcgId::ROOT, &mut scratch));
    assert_eq!(swap.share(swap.share(slot)), slot);
    assert_eq!((swap.free(slot), swap.free(slot)), (None, None));
    let (other, _) = pooled(swap.store(&noise(2), MemcgId::ROOT, &mut scratch));
    assert_ne!(slot, other);
    assert_eq!(swap.load(slot, &mut out, &mut scratch), Loaded::Content);
    assert_eq!(out, noise(1));
    assert_eq!(swap.free(slot), Some(size));
}

/// A page of which `size` bytes do not compress.
fn part(seed: u32, size: usize) -> Vec<u8> {
    let mut page = noise(seed);
    page[size..].fill(0);
    page
}

#[test]
fn a_full_pool_overflows_to_the_file_and_then_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let options = SwapOptions::in_memory(16 << 10).with_file_in(dir.path(), 8192);
    let swap = Swap::new(&options).unwrap();
    let mut scratch = Vec::new();
    let (first, size) = pooled(swap.store(&part(1, 3000), MemcgId::ROOT, &mut scratch));
    assert!(size < 3300, "five to a chunk: {size}");
    for n in 2..6 {
        pooled(swap.store(&part(n, 3000), MemcgId::ROOT, &mut scratch));
    }
    let last = part(6, 3000);
    let Stored::ToWrite(slot) = swap.store(&last, MemcgId::ROOT, &mut scratch) else {
        panic!("to file")
    };
    swap.check(slot, &last).unwrap();
    let error = |page: &[u8]| swap.check(slot, page).unwrap_err().to_string();
    assert!(error(&noise(6)).ends_with("(its write is not over)"));
    swap.written(slot);
    assert!(
        error(&noise(6)).ends_with("block 0 of the swap file does not hold what was written there")
    );
    assert!(error(&page(|_| 0)).ends_with("(it is zeros)"));
    let Stored::ToWrite(other) = swap.store(&noise(6), MemcgId::ROOT, &mut scratch) else {
        panic!("to file")
    };
    assert_ne!(swap.offset(slot), swap.offset(other));
    assert_eq!(swap.store(&noise(7), MemcgId::ROOT, &mut scratch), Stored::Full);
    assert!(swap.why_full().ends_with("is full (8192 bytes)"));
    assert_eq!(swap.free(first), Some(size));
    pooled(swap.store(&part(8, 3000), MemcgId::ROOT, &mut scratch));
}

#[test]
fn what_does_not_compress_takes_no_room_of_the_pool_while_the_file_has_some() {
    let dir = tempfile::tempdir().unwrap();
    let options = SwapOptions::in_memory(16 << 10).with_file_in(dir.path(), 4096);
    let swap = Swap::new(&options).unwrap();
    let mut scratch = Vec::new();
    let Stored::ToWrite(_) = swap.store(&noise(1), MemcgId::ROOT, &mut scratch) else {
        panic!("to file")
    };
    assert_eq!(pooled(swap.store(&noise(2), MemcgId::ROOT, &mut scratch)).1, PAGE as u64);
}

#[test]
fn a_block_is_not_given_away_while_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let options = SwapOptions::in_memory(0).with_file_in(dir.path(), 4096);
    let swap = Swap::new(&options).unwrap();
    let mut scratch = Vec::new();
    let Stored::ToWrite(slot) = swap.store(&noise(1), MemcgId::ROOT, &mut scratch) else {
        panic!()
    };
    assert!(swap.is_being_written(slot));
    swap.free(slot);
    assert_eq!(swap.store(&noise(2), MemcgId::ROOT, &mut scratch), Stored::Full);
    swap.written(slot);
    assert!(!swap.is_being_written(slot), "it is free");
    let Stored::ToWrite(slot) = swap.store(&noise(2), MemcgId::ROOT, &mut scratch) else {
        panic!()
    };
    swap.written(slot);
    assert!(!swap.is_being_written(slot), "it is written");
}
