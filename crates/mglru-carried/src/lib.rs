//! The guest program and the preload library that a release build carries, so that it works
//! without its source tree. A debug build carries neither: it builds them there on first use.

use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use mglru_pager::launch::{ENV_LIBRARY, installed_library};
use sha2::{Digest, Sha256};

use mglru_error::Error;

const GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest.zst"));
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.zst"));
/// Either is smaller unpacked, bytes.
const MOST: usize = 64 << 20;
/// Only its owner may write what is unpacked.
const MODE: u32 = 0o755;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Names the user's folder for what is fetched or unpacked; `None` where `HOME` is not set.
pub fn cache() -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("mglru"))
}

/// Unpacks the guest program, if this build carries it.
pub fn guest() -> Option<Vec<u8>> {
    unpacked(GUEST)
}

/// Lists where an installed file of this name may lie: beside the program, or in `../lib/mglru`.
pub fn places(name: &str) -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let Some(folder) = program.as_deref().and_then(Path::parent) else { return Vec::new() };
    vec![folder.join(name), folder.join("../lib/mglru").join(name)]
}

/// Finds the preload library, and unpacks the carried one into the user's cache if none is
/// installed: the loader takes files only. `None`: a debug build, whose launch builds it.
///
/// # Errors
/// The variable names none, or the cache cannot be used.
pub fn library() -> Result<Option<PathBuf>, Error> {
    if let Some(path) = installed_library().map_err(|e| Error::Request(e.to_string()))? {
        return Ok(Some(path));
    }
    let Some(bytes) = unpacked(LIBRARY) else { return Ok(None) };
    static UNPACKED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let path = UNPACKED.get_or_init(|| keep_in(cache(), &bytes));
    path.clone().map(Some).map_err(Error::Request)
}

fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    let bytes = (!packed.is_empty()).then(|| zstd::bulk::decompress(packed, MOST));
    bytes.map(|bytes| bytes.expect("the build compressed it"))
}

fn keep_in(cache: Option<PathBuf>, bytes: &[u8]) -> Result<PathBuf, String> {
    let refused = |why: String| format!("{why}; set {ENV_LIBRARY} to libmglru_preload.so");
    let folder = cache.ok_or_else(|| refused("HOME is not set".to_string()))?.join("lib");
    keep(&folder, bytes).map_err(|error| refused(format!("{}: {error}", folder.display())))
}

/// Writes the library whole, under a name that says its content, unless it is there already.
fn keep(folder: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    if folder.to_string_lossy().contains([' ', ':']) {
        return Err(io::Error::other("LD_PRELOAD takes no path with a space or colon"));
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // A user who can write the folder decides what the program runs.
    let meta = fs::metadata(folder)?;
    if meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(io::Error::other("other users may write there"));
    }
    let hash = Sha256::digest(bytes);
    let word: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(format!("libmglru_preload-{word}.so"));
    if fs::read(&path).is_ok_and(|there| there == bytes) {
        return Ok(path);
    }
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(Permissions::from_mode(MODE))?;
    file.persist(&path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_unpacked_once_and_again_when_it_was_changed() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("lib");
        let path = keep(&folder, b"code").unwrap();
        let first = fs::metadata(&path).unwrap();
        assert_eq!((first.len(), first.mode() & 0o777), (4, 0o755));
        assert_eq!(keep(&folder, b"code").unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), first.ino());
        fs::write(&path, "evil").unwrap();
        keep(&folder, b"code").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"code");
        assert_ne!(keep(&folder, b"other").unwrap(), path);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing half-written is left");
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("lib");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        let message = keep_in(Some(cache.path().into()), b"code").unwrap_err();
        assert!(
            message.ends_with(
                "/lib: other users may write there; set MGLRU_PRELOAD to \
            libmglru_preload.so"
            ),
            "{message}"
        );
        let message = keep_in(None, b"code").unwrap_err();
        assert_eq!(message, "HOME is not set; set MGLRU_PRELOAD to libmglru_preload.so");
        let spaced = cache.path().join("a b");
        assert!(keep(&spaced, b"code").unwrap_err().to_string().contains("LD_PRELOAD"));
    }

    #[test]
    fn what_was_compressed_comes_out_again_and_nothing_is_nothing() {
        let packed = zstd::bulk::compress(b"program", 3).unwrap();
        assert_eq!(unpacked(&packed), Some(b"program".to_vec()));
        assert_eq!(unpacked(b""), None);
        assert_eq!(guest().is_some(), !cfg!(debug_assertions), "a release build carries it");
    }
}
