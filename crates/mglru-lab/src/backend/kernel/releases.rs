//! Debian's kernels by version: which there are, and how one comes into the cache.
//!
//! The suites list the image of older versions, but no longer its modules; the mirror still keeps
//! them, in the folder of those that are listed.

use std::fs;
use std::path::{Path, PathBuf};

use super::fetch::{Apt, HOMELESS, PARTS, mirror, step, unpack};
use super::fetched::{self, Fetched};
use crate::backend::kernel::version;
use mglru_carried::cache;

/// Suites that have kernels with multi-generational reclaim.
const SUITES: [&str; 5] =
    ["trixie", "trixie-backports", "bookworm-backports", "unstable", "experimental"];
/// Kernels for virtual machines: small, and with what a guest needs.
const IMAGES: &str = "^linux-image-[0-9.]+\\+deb.*-cloud-amd64$";
const ENDING: &str = "-cloud-amd64";
/// apt's program for single files.
const HELPER: &str = "/usr/lib/apt/apt-helper";
/// Where the mirror keeps modules, unless the suites say so themselves.
const POOL: &str = "pool/main/l/linux";

/// Lists the releases that Debian has, the newest first.
///
/// # Errors
/// The step that failed, with the last line it said.
pub fn known() -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    listed(&apt(folder.path(), true)?)
}

/// The releases of lists that were just fetched: apt does not fail where it could fetch none.
fn listed(apt: &Apt) -> Result<Vec<String>, String> {
    let found = releases(apt)?;
    match found.is_empty() {
        true => Err(format!("{}: no list of kernels came from this mirror", mirror()?)),
        false => Ok(found),
    }
}

/// Fetches the latest kernel of a version and returns its path. One that is there already stays.
///
/// # Errors
/// Debian has none, or the step that failed, with the last line it said.
pub fn fetch(wanted: &str) -> Result<Fetched, String> {
    let have = fetched::all();
    if let Some(kernel) = have.iter().find(|kernel| version::of(&kernel.release) == wanted) {
        return Ok(kernel.clone());
    }
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (apt, release) = found(folder.path(), wanted)?;
    if let Some(kernel) = have.into_iter().find(|kernel| kernel.release == release) {
        return Ok(kernel);
    }
    let packages = download(&apt, &release)?;
    let root = fetched::root(&release).ok_or(HOMELESS)?;
    unpack(&packages, &root)?;
    let there = fetched::all().into_iter().find(|kernel| kernel.image.starts_with(&root));
    there.ok_or_else(|| {
        let _ = fs::remove_dir_all(&root);
        format!("{release}: its packages hold no kernel")
    })
}

/// Finds the release of a version. Only what earlier lists do not have makes apt look again.
fn found<'a>(folder: &'a Path, wanted: &str) -> Result<(Apt<'a>, String), String> {
    let known = apt(folder, false)?;
    // The latest of several may be one that they do not know yet.
    if let Some(release) = releases(&known)?.into_iter().find(|r| version::of(r) == wanted) {
        return Ok((known, release));
    }
    let apt = apt(folder, true)?;
    let releases = listed(&apt)?;
    let is_it = |r: &&String| wanted == fetched::NEWEST || fetched::is_named(r, wanted);
    let release = releases.iter().find(is_it).cloned();
    release.map(|release| (apt, release)).ok_or_else(|| missing(wanted, &releases))
}

fn apt(folder: &Path, update: bool) -> Result<Apt<'_>, String> {
    // Kept, because a mirror sends what has changed only.
    let lists = cache().ok_or(HOMELESS)?.join("lists");
    let apt = Apt::of_suites(folder, &lists, &SUITES)?;
    if update {
        apt.update()?;
    }
    Ok(apt)
}

fn releases(apt: &Apt) -> Result<Vec<String>, String> {
    let stdout = apt.run("apt-cache", &["search", "--names-only", IMAGES])?;
    Ok(sorted(&stdout))
}

/// Releases in what apt found, the newest first.
fn sorted(stdout: &str) -> Vec<String> {
    let names = stdout.lines().filter_map(|line| line.split(' ').next()?.strip_prefix(PARTS[0]));
    let mut releases: Vec<String> = names.map(str::to_string).collect();
    releases.sort_by(|a, b| fetched::order(b).cmp(&fetched::order(a)));
    releases.dedup();
    releases
}

fn missing(wanted: &str, releases: &[String]) -> String {
    let mut versions: Vec<&str> = releases.iter().map(|release| version::of(release)).collect();
    versions.dedup();
    let near = mglru_error::did_you_mean(wanted, versions);
    format!("{wanted}: Debian has no such kernel{near}; mglru kernel list")
}

/// Holds what the index says of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Package {
    version: String,
    depends: String,
    /// Where it lies on the mirror.
    file: String,
}

/// Downloads all packages of a release.
fn download(apt: &Apt, release: &str) -> Result<Vec<PathBuf>, String> {
    let image = format!("{}{release}", PARTS[0]);
    let found = shown(apt, &image).into_iter().next();
    let about = found.ok_or_else(|| format!("{image}: this mirror has no such package"))?;
    let parts = [vec![(image, about.version.clone())], parts(&about.depends)].concat();
    parts.iter().map(|(name, version)| package(apt, name, version)).collect()
}

/// Lists the packages that a kernel's image depends on, with the version: its binary, its modules.
fn parts(depends: &str) -> Vec<(String, String)> {
    let part = |text: &str| {
        let (name, rest) = text.trim().split_once(" (= ")?;
        let is_part = PARTS.iter().any(|part| name.starts_with(part));
        is_part.then(|| (name.to_string(), rest.trim_end_matches(')').to_string()))
    };
    depends.split([',', '|']).filter_map(part).collect()
}

/// Downloads a package: from the index, with its checksum, or else from where the mirror keeps it.
fn package(apt: &Apt, name: &str, version: &str) -> Result<PathBuf, String> {
    if shown(apt, name).iter().any(|listed| listed.version == version) {
        apt.run("apt-get", &["download", "-q", &format!("{name}={version}")])?;
    } else {
        let file = format!("{name}_{version}_amd64.deb");
        let url = format!("{}{}/{file}", mirror()?, folder(apt, name));
        let all = ["-oAPT::Sandbox::User=root", "download-file", &url, &file];
        apt.run(HELPER, &all)?;
    }
    let path = downloaded(apt.folder, name)?;
    let file = path.display().to_string();
    // An index that does not list it has no checksum: at least it is what it is called.
    let stdout = step("dpkg-deb", &["-f", &file, "Package", "Version"], apt.folder)?;
    match stdout.contains(&format!(": {name}\n")) && stdout.contains(&format!(": {version}\n")) {
        true => Ok(path),
        false => Err(format!("{name}: the mirror sent another package")),
    }
}

/// The file of a package: apt writes a `:` of its version as `%3a`.
fn downloaded(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let start = format!("{name}_");
    let mut paths = entries.filter(|e| e.file_name().to_string_lossy().starts_with(&start));
    let path = paths.next().map(|entry| entry.path());
    path.ok_or_else(|| format!("{name}: was not downloaded"))
}

/// Returns the folder in which the mirror keeps packages of a kind, read from those that are
/// listed.
fn folder(apt: &Apt, name: &str) -> String {
    let kind = PARTS.iter().find(|part| name.starts_with(**part)).unwrap_or(&PARTS[2]);
    let pattern = format!("^{kind}[0-9].*{ENDING}$");
    let listed = apt.run("apt-cache", &["search", "--names-only", &pattern]).unwrap_or_default();
    let first = listed.lines().next().and_then(|line| line.split(' ').next());
    let file = first.and_then(|name| shown(apt, name).into_iter().next()).map(|p| p.file);
    let folder = file.and_then(|file| Some(file.rsplit_once('/')?.0.to_string()));
    folder.unwrap_or_else(|| POOL.to_string())
}

/// All that the index has of a package; nothing where it only knows the name.
fn shown(apt: &Apt, name: &str) -> Vec<Package> {
    packages(&apt.run("apt-cache", &["show", name]).unwrap_or_default())
}

fn packages(index: &str) -> Vec<Package> {
    let package = |text: &str| {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_default().to_string()
        };
        Package { version: field("Version"), depends: field("Depends"), file: field("Filename") }
    };
    index.split("\n\n").map(package).filter(|package| !package.version.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_sorted_by_number() {
        let stdout = "linux-image-7.2.9+deb13-cloud-amd64 - Linux\n\
                    linux-image-7.2.12+deb13-cloud-amd64 - Linux\n\
                    linux-image-6.19.10+deb13-cloud-amd64 - Linux\n";
        let found = sorted(stdout);
        let versions: Vec<&str> = found.iter().map(|release| version::of(release)).collect();
        assert_eq!(versions, ["7.2.12", "7.2.9", "6.19.10"]);
        let message = missing("7.2.13", &found);
        assert!(
            message.starts_with("7.2.13: Debian has no such kernel (did you mean 7.2.12"),
            "{message}"
        );
    }

    #[test]
    fn parts_of_an_image_are_found_with_their_versions() {
        let depends = "dracut | initramfs-tools (>= 0.120), linux-base-7.1 (= 7.1-1), \
                       linux-binary-7.1.13+deb13-cloud-amd64 (= 7.1.13-1~bpo13+1), \
                       linux-modules-7.1.13+deb13-cloud-amd64 (= 7.1.13-1~bpo13+1)";
        let names: Vec<String> =
            parts(depends).into_iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(
            names,
            [
                "linux-binary-7.1.13+deb13-cloud-amd64=7.1.13-1~bpo13+1",
                "linux-modules-7.1.13+deb13-cloud-amd64=7.1.13-1~bpo13+1"
            ]
        );
        assert!(parts("kmod, initramfs-tools (>= 0.120) | linux-initramfs-tool").is_empty());
    }

    #[test]
    fn the_index_is_read_and_names_alone_are_none() {
        let index = "Package: a\nVersion: 1-2\nDepends: b (= 1)\nFilename: pool/a/a_1.deb\n\n\
                    Package: a\nVersion: 1-1\n\nN: nothing\n";
        let found = packages(index);
        assert_eq!((found.len(), found[0].file.as_str()), (2, "pool/a/a_1.deb"));
        assert!(packages("N: no packages found\n").is_empty());
    }
}
