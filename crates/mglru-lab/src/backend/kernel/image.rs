//! Which kernel is booted, and where its modules are.

use mglru_carried::cache;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::fetched;
use super::spec::KernelSpec;

/// Names the Debian package whose kernel is the default.
pub const PACKAGE: &str = "linux-image-6.12-cloud-amd64";
/// Release names of that package begin so.
const DEFAULT: &str = "6.12";

/// Where the boot sector is signed, and what the header after it is known by.
const SIGNATURE: usize = 0x1fe;
const MAGIC: &[u8] = b"HdrS";
/// Bytes up to the magic's end.
const HEADER: usize = 0x206;

/// Describes a kernel to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Holds the path of the bzImage.
    pub path: PathBuf,
    /// Names the folder of its modules; none: everything that it needs is built in.
    pub modules: Option<PathBuf>,
}

impl Image {
    /// Finds the kernel that a plan asks for.
    ///
    /// # Errors
    /// When it is not there, with the command that fetches the default.
    pub fn of(spec: &KernelSpec) -> Result<Self, String> {
        let (path, beside) = match &spec.image {
            Some(path) => {
                let path = located(path)?;
                (path.clone(), modules_beside(&path))
            }
            None => default().ok_or("no kernel to boot; `mglru doctor --install` fetches one")?,
        };
        if !path.is_file() {
            return Err(format!("{}: no kernel there", path.display()));
        }
        if !is_image(&path) {
            let problem = "is no kernel to boot: a bzImage, such as arch/x86/boot/bzImage";
            return Err(format!("{}: {problem}", path.display()));
        }
        let modules = spec.modules.clone().or(beside);
        match &modules {
            Some(dir) if !dir.is_dir() => Err(format!("{}: no modules there", dir.display())),
            _ => Ok(Self { path, modules }),
        }
    }
}

/// Tells a bzImage by its header, as x86's boot protocol has it.
fn is_image(path: &Path) -> bool {
    let mut header = [0; HEADER];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header[SIGNATURE..].starts_with(&[0x55, 0xaa]) && header.ends_with(MAGIC)
}

/// The fetched kernel, or one that is installed on this host.
fn default() -> Option<(PathBuf, Option<PathBuf>)> {
    let fetched = fetched_root().map(|root| root.join("boot"));
    let places = fetched.into_iter().chain([PathBuf::from("/boot")]);
    let mut images = places.flat_map(|dir| images_in(&dir));
    images.next().map(|path| (path.clone(), modules_beside(&path)))
}

/// Images of the default release in a folder, the latest first.
fn images_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_default = |path: &PathBuf| release(path).is_some_and(|r| r.starts_with(DEFAULT));
    let mut images: Vec<PathBuf> = entries.map(|e| e.path()).filter(is_default).collect();
    images.sort();
    images.reverse();
    images
}

fn release(image: &Path) -> Option<&str> {
    image.file_name()?.to_str()?.strip_prefix("vmlinuz-")
}

/// Finds the image that a path, a version or `newest` names. A file of that name counts first.
///
/// # Errors
/// It names a version that is not there.
pub fn located(named: &Path) -> Result<PathBuf, String> {
    let word = named.to_str().unwrap_or_default();
    let is_name = word == fetched::NEWEST || fetched::is_version(word);
    match is_name && !named.exists() {
        true => fetched::image(word),
        false => Ok(named.to_path_buf()),
    }
}

/// `ROOT/lib/modules/RELEASE` for `ROOT/boot/vmlinuz-RELEASE`, or where the image itself is, if
/// its modules are there.
fn modules_beside(image: &Path) -> Option<PathBuf> {
    if image.ends_with("vmlinuz") && image.parent()?.join("kernel").is_dir() {
        return image.parent().map(Path::to_path_buf);
    }
    let root = image.parent()?.parent()?;
    let release = release(image)?;
    let below = ["lib/modules", "usr/lib/modules"].map(|lib| root.join(lib).join(release));
    below.into_iter().find(|dir| dir.is_dir())
}

/// Returns the folder in which the default kernel is unpacked.
pub fn fetched_root() -> Option<PathBuf> {
    cache().map(|cache| cache.join("kernel"))
}

/// Returns the folder in which the newest kernel is unpacked.
pub fn newest_root() -> Option<PathBuf> {
    cache().map(|cache| cache.join("newest"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_beside_the_image() {
        let root = tempfile::tempdir().unwrap();
        let image = root.path().join("boot/vmlinuz-6.12.1-x");
        let modules = root.path().join("lib/modules/6.12.1-x");
        fs::create_dir_all(&modules).unwrap();
        fs::create_dir_all(image.parent().unwrap()).unwrap();
        let mut bytes = [0; HEADER];
        fs::write(&image, bytes).unwrap();
        let spec = KernelSpec { image: Some(image.clone()), ..KernelSpec::default() };
        let message = Image::of(&spec).unwrap_err();
        assert!(
            message.ends_with("bzImage") && message.contains("is no kernel to boot"),
            "{message}"
        );
        bytes[SIGNATURE..SIGNATURE + 2].copy_from_slice(&[0x55, 0xaa]);
        bytes[HEADER - MAGIC.len()..].copy_from_slice(MAGIC);
        fs::write(&image, bytes).unwrap();
        assert_eq!(Image::of(&spec), Ok(Image { path: image.clone(), modules: Some(modules) }));
        let merged = root.path().join("lib/modules/7.3.4");
        fs::create_dir_all(merged.join("kernel")).unwrap();
        assert_eq!(modules_beside(&merged.join("vmlinuz")), Some(merged));
        fs::write(root.path().join("boot/vmlinuz-5.10"), "").unwrap();
        fs::write(root.path().join("boot/vmlinuz-6.12.0"), "").unwrap();
        let first = images_in(&root.path().join("boot")).remove(0);
        assert_eq!(first, image);
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = KernelSpec { image: Some("no/bzImage".into()), ..KernelSpec::default() };
        assert_eq!(Image::of(&missing).unwrap_err(), "no/bzImage: no kernel there");
    }
}
