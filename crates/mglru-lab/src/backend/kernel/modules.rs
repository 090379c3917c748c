//! Modules of a kernel, in the order they must be loaded. What each depends on is read from the
//! module itself, so that a folder straight out of a package, without depmod's tables, serves too.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};

/// Holds a module that is ready to be packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Holds the module's name, with underscores.
    pub name: String,
    /// Holds the ELF file, not compressed.
    pub bytes: Vec<u8>,
}

/// Returns the wanted modules and their dependencies, these first. Built-in ones are left out.
///
/// # Errors
/// Names a module that is neither there nor built in, or cannot be read.
pub fn ordered(dir: &Path, wanted: &[&str]) -> Result<Vec<Module>, String> {
    let known = Known::read(dir)?;
    let mut order = Vec::new();
    wanted.iter().try_for_each(|name| known.add(&plain(name), &mut order))?;
    Ok(order)
}

/// The folder's modules by name, and what is built in.
struct Known<'a> {
    dir: &'a Path,
    files: BTreeMap<String, PathBuf>,
    builtin: Vec<String>,
}

impl<'a> Known<'a> {
    fn read(dir: &'a Path) -> Result<Self, String> {
        let mut files = BTreeMap::new();
        let kernel = dir.join("kernel");
        collect(&kernel, &mut files).map_err(|e| {
            let hint = "a folder of modules is lib/modules/RELEASE, with kernel in it";
            format!("{}: {e}; {hint}", kernel.display())
        })?;
        let builtin = fs::read_to_string(dir.join("modules.builtin")).unwrap_or_default();
        let builtin = builtin.lines().filter_map(|line| name_of(Path::new(line))).collect();
        Ok(Self { dir, files, builtin })
    }

    fn add(&self, name: &str, order: &mut Vec<Module>) -> Result<(), String> {
        if order.iter().any(|module| module.name == name) || self.is_builtin(name) {
            return Ok(());
        }
        let missing = || {
            let fix = "make modules_install puts it there, or build it in (mglru kernel config)";
            format!("module {name}: not in {}; {fix}", self.dir.display())
        };
        let path = self.files.get(name).ok_or_else(missing)?;
        let at = |e: String| format!("{}: {e}", path.display());
        let bytes = unpacked(path).map_err(|e| at(e.to_string()))?;
        for needed in dependencies(&bytes).map_err(at)? {
            self.add(&needed, order)?;
        }
        order.push(Module { name: name.to_string(), bytes });
        Ok(())
    }

    fn is_builtin(&self, name: &str) -> bool {
        self.builtin.iter().any(|builtin| builtin == name)
    }
}

fn collect(dir: &Path, files: &mut BTreeMap<String, PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if let Some(name) = name_of(&path) {
            files.insert(name, path);
        }
    }
    Ok(())
}

/// `dm_delay` for `…/dm-delay.ko.xz`.
fn name_of(path: &Path) -> Option<String> {
    let (name, _) = path.file_name()?.to_str()?.split_once(".ko")?;
    Some(plain(name))
}

fn plain(name: &str) -> String {
    name.replace('-', "_")
}

fn unpacked(path: &Path) -> std::io::Result<Vec<u8>> {
    let packed = fs::File::open(path)?;
    let mut bytes = Vec::new();
    match path.extension().and_then(|e| e.to_str()) {
        Some("xz") => liblzma::read::XzDecoder::new(packed).read_to_end(&mut bytes)?,
        Some("zst") => zstd::stream::read::Decoder::new(packed)?.read_to_end(&mut bytes)?,
        Some("gz") => flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes)?,
        _ => std::io::BufReader::new(packed).read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}

/// Reads the list behind `depends=` in a module's information.
fn dependencies(module: &[u8]) -> Result<Vec<String>, String> {
    let file = object::File::parse(module).map_err(|_| "not a kernel module")?;
    let section = file.section_by_name(".modinfo").ok_or("not a kernel module")?;
    let info = section.data().map_err(|e| e.to_string())?;
    let lines = info.split(|byte| *byte == 0).filter_map(|line| std::str::from_utf8(line).ok());
    let lists = lines.filter_map(|line| line.strip_prefix("depends="));
    Ok(lists.flat_map(|list| list.split(',')).filter(|n| !n.is_empty()).map(plain).collect())
}

#[cfg(test)]
mod tests;
