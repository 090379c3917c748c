//! Kernels that lie on this host, found by version: those that were fetched, and its own.

use std::fs;
use std::path::{Path, PathBuf};

use super::image::{fetched_root, newest_root};
use crate::backend::kernel::version;
use mglru_carried::cache;

/// Names the newest kernel, in place of a version.
pub const NEWEST: &str = "newest";

/// Describes a kernel that can be booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Holds its release, such as `7.1.13+deb13-cloud-amd64`.
    pub release: String,
    /// Holds the path of its bzImage; the modules lie where they are searched for beside it.
    pub image: PathBuf,
}

/// Finds every kernel, the newest version first.
pub fn all() -> Vec<Fetched> {
    let kept = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
    let kept = kept.flatten().map(|entry| entry.path()).filter(|path| is_whole(path));
    let others = [fetched_root(), newest_root(), Some(PathBuf::from("/"))];
    let roots = kept.chain(others.into_iter().flatten());
    let mut found: Vec<Fetched> = roots.flat_map(|root| kernels_in(&root)).collect();
    found.sort_by(|a, b| order(&b.release).cmp(&order(&a.release)));
    found
}

/// Finds the image that `--kernel` names by version: the latest release of it, or of all.
///
/// # Errors
/// There is none, and the command that fetches one.
pub fn image(name: &str) -> Result<PathBuf, String> {
    among(&all(), name)
}

fn among(found: &[Fetched], name: &str) -> Result<PathBuf, String> {
    let fetch = match name {
        NEWEST => "mglru doctor --install".to_string(),
        version => format!("mglru kernel fetch {version}"),
    };
    let kernel = found.iter().find(|kernel| name == NEWEST || is_named(&kernel.release, name));
    kernel.map(|kernel| kernel.image.clone()).ok_or(format!("{name} is not there; {fetch}"))
}

/// Finds the newest kernel that was fetched; that of the host itself is none.
///
/// # Errors
/// There is none, and the command that fetches one.
pub fn newest() -> Result<PathBuf, String> {
    let root = newest_root().ok_or("HOME is not set")?;
    match kernels_in(&root).is_empty() {
        // A kernel fetched by version may be older than the one that `newest` means.
        true => Err("mglru doctor --install".to_string()),
        false => image(NEWEST),
    }
}

/// Tells whether a word is a version, or a release, and no path: `7.1`, `6.12.117+deb12`.
pub fn is_version(word: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || ".+~-".contains(c);
    word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.') && word.chars().all(known)
}

/// Tells whether a release is of a version: 7.1.13+deb13-cloud-amd64 is of 7.1 and of 7.1.13, and
/// is named by its own beginning.
pub fn is_named(release: &str, name: &str) -> bool {
    let rest = release.strip_prefix(name);
    let whole = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', '-', '~']));
    whole || version::is_of(version::of(release), name)
}

/// Returns the key that releases are sorted by.
pub fn order(release: &str) -> (Vec<u64>, &str) {
    (version::numbers(version::of(release)), release)
}

/// Names the folder in which a kernel that is asked for by version is unpacked.
pub fn root(release: &str) -> Option<PathBuf> {
    folder().map(|folder| folder.join(release))
}

fn folder() -> Option<PathBuf> {
    cache().map(|cache| cache.join("kernels"))
}

/// Half of a kernel, left by a program that was killed, has another name.
fn is_whole(path: &Path) -> bool {
    path.extension().is_none_or(|end| end != super::fetch::UNDER_WAY)
}

/// Kernels below a root: `boot/vmlinuz-RELEASE`, `usr/lib/modules/RELEASE/vmlinuz`.
fn kernels_in(root: &Path) -> Vec<Fetched> {
    let list = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten();
    let named = |entry: &fs::DirEntry| entry.file_name().to_str().map(str::to_string);
    let boot = list(root.join("boot")).filter_map(|entry| {
        let release = named(&entry)?.strip_prefix("vmlinuz-")?.to_string();
        Some(Fetched { release, image: entry.path() })
    });
    let modules = list(root.join("usr/lib/modules")).filter_map(|entry| {
        Some(Fetched { release: named(&entry)?, image: entry.path().join("vmlinuz") })
    });
    boot.chain(modules).filter(|kernel| kernel.image.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_by_prefix_and_the_latest_of_them_wins() {
        let dir = tempfile::tempdir().unwrap();
        let modules = dir.path().join("usr/lib/modules");
        for release in ["7.1.9+deb13-cloud", "7.1.13+deb13-cloud", "7.10.1+deb13-cloud"] {
            fs::create_dir_all(modules.join(release)).unwrap();
            fs::write(modules.join(release).join("vmlinuz"), "").unwrap();
        }
        fs::create_dir_all(modules.join("7.9.9-half")).unwrap();
        fs::create_dir_all(dir.path().join("boot")).unwrap();
        fs::write(dir.path().join("boot/vmlinuz-6.12.117+deb12"), "").unwrap();
        let mut found = kernels_in(dir.path());
        found.sort_by(|a, b| order(&b.release).cmp(&order(&a.release)));
        let image = |name: &str| among(&found, name).map(|p| p.display().to_string());
        assert!(image("7.1").unwrap().ends_with("7.1.13+deb13-cloud/vmlinuz"));
        assert!(image("7.1.9").unwrap().ends_with("7.1.9+deb13-cloud/vmlinuz"));
        assert!(image("7.1.9+deb13").unwrap().ends_with("7.1.9+deb13-cloud/vmlinuz"));
        assert!(image("newest").unwrap().ends_with("7.10.1+deb13-cloud/vmlinuz"));
        assert!(image("6.12").unwrap().ends_with("boot/vmlinuz-6.12.117+deb12"));
        assert_eq!(image("7.1.1").unwrap_err(), "7.1.1 is not there; mglru kernel fetch 7.1.1");
        assert!(image("7.9.9").is_err(), "a folder without an image is no kernel");
    }

    #[test]
    fn versions_are_read_from_paths() {
        assert!(is_version("7.1") && is_version("7.1.13+deb13-cloud-amd64"));
        assert!(!is_version("newest") && !is_version("7") && !is_version("a/7.1"));
        assert!(!is_version("bzImage-7.1"));
    }

    #[test]
    fn what_is_being_unpacked_is_no_kernel() {
        assert!(is_whole(Path::new("k/7.1.13+deb13-cloud-amd64")));
        assert!(!is_whole(Path::new("k/7.1.13+deb13-cloud-amd64.new")));
    }
}
