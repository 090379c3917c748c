use super::*;

use std::io::Write;

use object::write::{Object as Elf, StandardSegment};
use object::{Architecture, BinaryFormat, Endianness, SectionKind};

/// A module that depends on others.
fn module(depends: &str) -> Vec<u8> {
    let mut elf = Elf::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let segment = elf.segment_name(StandardSegment::Data).to_vec();
    let section = elf.add_section(segment, b".modinfo".to_vec(), SectionKind::ReadOnlyData);
    let info = format!("license=GPL\0depends={depends}\0name=x\0");
    elf.append_section_data(section, info.as_bytes(), 1);
    elf.write().unwrap()
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let kernel = dir.path().join("kernel/drivers");
    fs::create_dir_all(&kernel).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(&module("dm-mod,ext4")).unwrap();
    fs::write(kernel.join("dm-delay.ko.xz"), xz.finish().unwrap()).unwrap();
    fs::write(kernel.join("dm-mod.ko.zst"), zstd::encode_all(&module("dax")[..], 1).unwrap())
        .unwrap();
    fs::write(kernel.join("dax.ko"), module("")).unwrap();
    fs::write(kernel.join("odd.ko"), "no ELF").unwrap();
    fs::write(kernel.join("lost.ko"), module("gone")).unwrap();
    fs::write(dir.path().join("modules.builtin"), "kernel/fs/ext4/ext4.ko\n").unwrap();
    dir
}

#[test]
fn dependencies_come_first_and_once_and_what_is_built_in_not_at_all() {
    let dir = folder();
    let order = ordered(dir.path(), &["dax", "dm-delay", "ext4", "dm_mod"]).unwrap();
    let names: Vec<&str> = order.iter().map(|module| module.name.as_str()).collect();
    assert_eq!(names, ["dax", "dm_mod", "dm_delay"]);
    assert_eq!(order[0].bytes, module(""));
}

#[test]
fn what_is_missing_or_broken_is_named() {
    let dir = folder();
    let error = |name: &str| ordered(dir.path(), &[name]).unwrap_err();
    let want = format!("module zram: not in {}; make modules_install", dir.path().display());
    assert!(error("zram").starts_with(&want), "{}", error("zram"));
    assert!(error("lost").starts_with("module gone: not in "), "{}", error("lost"));
    assert!(error("odd").ends_with("odd.ko: not a kernel module"), "{}", error("odd"));
    let nowhere = dir.path().join("nowhere");
    assert!(ordered(&nowhere, &[]).unwrap_err().contains("nowhere/kernel: "));
}
