//! Truth files as text: those the program holds, and files of the user's, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use mglru_error::Error;

/// Holds the files of the source tree's `truth`, by the version they were measured on.
pub const SHIPPED: [(&str, &[u8]); 4] = [
    ("6.12.117", include_bytes!("../../../truth/6.12.117.jsonl.zst")),
    ("7.1.13", include_bytes!("../../../truth/7.1.13.jsonl.zst")),
    ("7.2.12", include_bytes!("../../../truth/7.2.12.jsonl.zst")),
    ("7.3.4", include_bytes!("../../../truth/7.3.4.jsonl.zst")),
];

/// Most bytes a file may unpack to.
const MOST_BYTES: u64 = 1 << 30;
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Holds the text of a truth file, with the name that messages give it.
#[derive(Clone, Debug)]
pub struct Text {
    /// Names the file's path, or `truth VERSION` where the program holds it.
    pub name: String,
    /// Holds its lines.
    pub text: String,
}

/// Reads the files, or all that the program holds where none is given.
///
/// # Errors
/// Names the file that cannot be read.
pub fn of(files: &[PathBuf]) -> Result<Vec<Text>, Error> {
    match files.is_empty() {
        true => SHIPPED.iter().map(|&(version, bytes)| held(version, bytes)).collect(),
        false => files.iter().map(|path| file(path)).collect(),
    }
}

/// Unpacks a file that the program holds.
///
/// # Errors
/// Never, unless the program is damaged.
pub fn held(version: &str, bytes: &[u8]) -> Result<Text, Error> {
    let name = format!("truth {version}");
    let text = unpacked(bytes).map_err(|e| Error::io(Path::new(&name), e))?;
    Ok(Text { name, text })
}

/// Reads a file.
///
/// # Errors
/// Names the file.
pub fn file(path: &Path) -> Result<Text, Error> {
    let text = File::open(path).and_then(|file| unpacked(BufReader::new(file)));
    let text = text.map_err(|e| Error::io(path, e))?;
    Ok(Text { name: path.display().to_string(), text })
}

/// The first bytes say how the file is compressed: a file may have any name.
fn unpacked(mut raw: impl BufRead) -> io::Result<String> {
    let mut head = Vec::new();
    raw.by_ref().take(ZSTD.len() as u64).read_to_end(&mut head)?;
    let whole = head.as_slice().chain(raw);
    match &head {
        head if head.starts_with(&ZSTD) => text(zstd::Decoder::with_buffer(whole)?),
        head if head.starts_with(&GZIP) => text(flate2::bufread::MultiGzDecoder::new(whole)),
        _ => text(whole),
    }
}

fn text(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let read = from.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    match read as u64 > MOST_BYTES {
        true => Err(io::Error::other("holds more than 1 GiB of text")),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mglru_lab::backend::kernel::version;
    use std::io::Write;

    fn read(name: &str, bytes: &[u8]) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let message = |e: Error| e.to_string().replace(&dir.path().display().to_string(), "");
        file(&path).map(|text| text.text).map_err(message)
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn a_file_is_read_whatever_its_name_and_compression() {
        let zstd = zstd::encode_all(&b"a\nb\n"[..], 19).unwrap();
        for bytes in [b"a\nb\n".to_vec(), zstd, gzip("a\nb\n"), [gzip("a\n"), gzip("b\n")].concat()]
        {
            assert_eq!(read("t.jsonl", &bytes).as_deref(), Ok("a\nb\n"), "{bytes:?}");
        }
        assert_eq!(read("t", b"").as_deref(), Ok(""));
        assert_eq!(read("t", b"a").as_deref(), Ok("a"));
    }

    #[test]
    fn a_damaged_file_is_one_line_with_its_name() {
        let zstd = zstd::encode_all(&b"a\nb\n"[..], 19).unwrap();
        let gzip = gzip("a\nb\n");
        for bytes in [&zstd[..zstd.len() - 2], &gzip[..gzip.len() - 3], &ZSTD, b"\xff\xfe\n"] {
            let message = read("t.jsonl.zst", bytes).unwrap_err();
            assert!(message.starts_with("/t.jsonl.zst: ") && !message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn every_file_of_the_source_tree_is_held_and_named_by_its_version() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../truth");
        let names = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name());
        let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        let files: Vec<&str> = names.iter().filter_map(|n| n.strip_suffix(".jsonl.zst")).collect();
        assert!(files.iter().all(|f| SHIPPED.iter().any(|(v, _)| v == f)), "{files:?}");
        assert!(SHIPPED.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() < 1 << 20);
        let mut runs = Vec::new();
        for (version, bytes) in SHIPPED {
            let found = crate::truth::load(&[held(version, bytes).unwrap()]).unwrap();
            assert!(found.iter().all(|run| version::of(&run.kernel) == version), "{version}");
            runs.push(found.len());
        }
        assert_eq!(runs, [383, 173, 175, 119]);
    }
}
