//! Compressed traces through the whole reader: every kind of stream, whole, joined, padded, cut and
//! with junk behind it, and the kinds that are not read.

use std::io::Write;

use super::tests::{File, message, pages};

type Pack = fn(&[u8]) -> Vec<u8>;

/// Every kind of stream that is read, each with a checksum of its content.
pub(super) const PACKS: [(&str, Pack); 5] =
    [("gzip", gzip), ("zstd", zstd), ("xz", xz), ("bzip2", bzip2), ("lz4", lz4)];

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let info = lz4_flex::frame::FrameInfo::new().content_checksum(true);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A frame that zstd and lz4 skip.
fn skippable(content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap();
    [&[0x50, 0x2a, 0x4d, 0x18][..], &length.to_le_bytes(), content].concat()
}

/// As `u32le`, so that whatever is not recognised would be read as numbers.
fn records(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// 3000 requests, half of them and the other half.
fn halves() -> (Vec<u64>, Vec<u8>, Vec<u8>) {
    let numbers: Vec<u32> = (0..3000u32).map(|i| i.wrapping_mul(2_654_435_761) >> 12).collect();
    let (first, second) = numbers.split_at(1500);
    (numbers.iter().map(|&n| n.into()).collect(), records(first), records(second))
}

fn as_u32le(bytes: &[u8]) -> File {
    File::new("a.u32", bytes)
}

#[test]
fn members_are_joined() {
    let (numbers, first, second) = halves();
    for (name, pack) in PACKS {
        let joined = [pack(&first), pack(&[]), pack(&second)].concat();
        assert_eq!(pages(&as_u32le(&joined)), numbers, "{name}");
    }
}

#[test]
fn skippable_frames_are_skipped_wherever_they_stand() {
    let (numbers, first, second) = halves();
    for pack in [zstd, lz4] {
        let skip = skippable(&[7; 5]);
        let parts = [skip.clone(), skippable(&[]), pack(&first), skip.clone(), pack(&second), skip];
        assert_eq!(pages(&as_u32le(&parts.concat())), numbers);
        let text = message(&as_u32le(&[&parts[0], &pack(&first)[..], &parts[0][..9]].concat()));
        assert!(text.contains("truncated"), "{text}");
    }
    let text = message(&as_u32le(&[skippable(&[1, 2]), gzip(&first)].concat()));
    assert!(text.contains("trailing junk"), "{text}");
    assert!(message(&as_u32le(&skippable(&[1]))).contains("no requests"));
    assert!(message(&as_u32le(&skippable(&[1])[..6])).contains("truncated"));
}

#[test]
fn junk_behind_a_stream_is_refused() {
    let (_, first, _) = halves();
    for (name, pack) in PACKS {
        for junk in [&b"x"[..], b"0123456789abcdef", &[0, 0, 0, 1], &first] {
            let text = message(&as_u32le(&[&pack(&first), junk].concat()));
            assert!(text.contains(name) && text.contains("trailing junk"), "{text}");
        }
    }
}

#[test]
fn padding_is_read_as_its_own_program_reads_it() {
    let (numbers, first, second) = halves();
    let whole = [&first[..], &second].concat();
    for zeros in [1, 512, 1 << 20] {
        assert_eq!(pages(&as_u32le(&[gzip(&whole), vec![0; zeros]].concat())), numbers);
    }
    assert_eq!(pages(&as_u32le(&[xz(&first), vec![0; 8], xz(&second)].concat())), numbers);
    let refused = [
        [gzip(&first), vec![0; 8], gzip(&second)].concat(),
        [xz(&whole), vec![0; 6]].concat(),
        [zstd(&whole), vec![0; 8]].concat(),
        [bzip2(&whole), vec![0; 8]].concat(),
        [lz4(&whole), vec![0; 8]].concat(),
    ];
    for packed in refused {
        assert!(message(&as_u32le(&packed)).contains("trailing junk"));
    }
}

#[test]
fn a_stream_cut_anywhere_is_refused() {
    let (_, first, second) = halves();
    for (name, pack) in PACKS {
        let packed = [pack(&first), pack(&second)].concat();
        let ends = [0, pack(&first).len()];
        for cut in (4..packed.len()).step_by(13).chain(packed.len() - 12..packed.len()) {
            if !ends.contains(&cut) {
                let text = message(&as_u32le(&packed[..cut]));
                let is_refused = text.contains("truncated") || text.contains("trailing junk");
                assert!(is_refused, "{name} cut at {cut}: {text}");
            }
        }
    }
}

#[test]
fn lz4_cut_between_two_blocks_is_refused() {
    let many = records(&(0..200_000).collect::<Vec<u32>>());
    let packed = lz4(&many);
    // Magic number, descriptor of three bytes, then blocks behind their lengths.
    let length = u32::from_le_bytes(packed[7..11].try_into().unwrap()) as usize & 0x7fff_ffff;
    let text = message(&as_u32le(&packed[..11 + length]));
    assert!(text.contains("truncated"), "{text}");
}

#[test]
fn other_containers_are_named_whatever_the_format() {
    let zip = b"PK\x03\x04\x14\0\0\0\x08\0rest of the archive";
    let npy = b"\x93NUMPY\x01\0v\0{'descr': '<u4', 'fortran_order': False";
    let others: [(&[u8], &str); 4] = [
        (zip, "a zip archive"),
        (npy, "a numpy file"),
        (b"7z\xbc\xaf\x27\x1c\0\x04more", "a 7z archive"),
        (b"\xff\x06\0\0sNaPpY\0\x01\0", "a snappy stream"),
    ];
    for (bytes, what) in others {
        for name in ["a.u32", "a.oracleGeneral", "a.trc", "a.csv", "a"] {
            let text = message(&File::new(name, bytes));
            assert!(text.contains(&format!(": {what}, which is not read")), "{text}");
        }
        for (stream, pack) in PACKS {
            let text = message(&as_u32le(&pack(bytes)));
            assert!(text.contains(&format!("{what} inside {stream}")), "{text}");
        }
    }
    let text = message(&as_u32le(&gzip(&xz(&[1, 0, 0, 0]))));
    assert!(text.contains("xz stream inside gzip"), "{text}");
}

#[test]
fn a_name_that_says_compressed_is_held_to_it() {
    let (numbers, first, second) = halves();
    let whole = [first, second].concat();
    for suffix in ["zst", "gz", "xz", "bz2", "lz4", "br", "Z", "lzma"] {
        let text = message(&File::new(&format!("a.u32.{suffix}"), &whole));
        assert!(text.contains(&format!("named .{suffix}, but no compressed stream")), "{text}");
    }
    let mut damaged = zstd(&whole);
    damaged[0] ^= 0x10;
    message(&File::new("a.u32.zst", damaged));
    assert_eq!(pages(&File::new("a.u32.zst", xz(&whole))), numbers);
}

#[test]
fn text_is_no_binary_trace() {
    for name in ["a.u32", "a.oracleGeneral"] {
        let text = message(&File::new(name, "17\n18\n19\n20\n"));
        assert!(
            text.contains(": text, where ") && text.contains("guessed from the name"),
            "{text}"
        );
    }
}
