//! A folder whose files answer after a while, however much is asked for at once: a volume behind
//! a network. It is in the memory of this process and mounted by FUSE.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, TimeOrNow,
    WriteFlags,
};

use crate::steer::cgroupfs;

/// How long a page takes: as volumes of data centres do.
pub(super) const ANSWER: Duration = Duration::from_millis(1);
/// Asynchronous requests that the kernel passes on at a time.
const AT_ONCE: u16 = 256;
const TTL: Duration = Duration::from_secs(3600);
/// Past the page cache, and writes beside each other.
const OPEN: FopenFlags =
    FopenFlags::FOPEN_DIRECT_IO.union(FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);

/// The mounted folder; it goes when this is dropped.
pub(super) struct Remote {
    session: Option<BackgroundSession>,
    dir: tempfile::TempDir,
}

impl Remote {
    /// Mounts an empty one.
    pub(super) fn mount() -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let (tasks, due) = mpsc::channel();
        thread::Builder::new().name("remote".into()).spawn(move || answer(&due))?;
        let session = Session::new(Volume(tasks), dir.path(), &fuser::Config::default())?;
        Ok(Self { session: Some(session.spawn()?), dir })
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // A mount that cannot be taken down answers no more.
        self.session.take().map(BackgroundSession::umount_and_join);
    }
}

type Task = Box<dyn FnOnce(&mut Files) + Send>;

/// Does what is asked for, in order, each when its time has come.
fn answer(tasks: &Receiver<(Instant, Task)>) {
    let mut files = Files::default();
    for (due, task) in tasks {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        task(&mut files);
    }
}

#[derive(Default)]
struct Files {
    names: HashMap<OsString, u64>,
    contents: HashMap<u64, Vec<u8>>,
    last: u64,
}

impl Files {
    fn create(&mut self, name: OsString) -> FileAttr {
        self.last += 1;
        let ino = INodeNo::ROOT.0 + self.last;
        self.names.insert(name, ino);
        self.contents.insert(ino, Vec::new());
        attributes(ino, FileType::RegularFile, 0)
    }

    fn get(&self, ino: u64) -> Option<FileAttr> {
        if ino == INodeNo::ROOT.0 {
            return Some(attributes(ino, FileType::Directory, 0));
        }
        let content = self.contents.get(&ino)?;
        Some(attributes(ino, FileType::RegularFile, content.len() as u64))
    }

    fn find(&self, name: &OsStr) -> Option<FileAttr> {
        self.names.get(name).and_then(|&ino| self.get(ino))
    }

    /// Gone with its last name and its last user.
    fn forget(&mut self, ino: u64) {
        if !self.names.values().any(|&named| named == ino) {
            self.contents.remove(&ino);
        }
    }

    fn resize(&mut self, ino: u64, len: u64) {
        self.contents.entry(ino).and_modify(|content| content.resize(len as usize, 0));
    }

    fn read(&self, ino: u64, offset: u64, size: u32) -> &[u8] {
        let content = self.contents.get(&ino).map_or(&[][..], Vec::as_slice);
        let from = content.len().min(offset as usize);
        &content[from..content.len().min(from + size as usize)]
    }

    fn write(&mut self, ino: u64, offset: u64, data: &[u8]) {
        let Some(content) = self.contents.get_mut(&ino) else { return };
        let (from, to) = (offset as usize, offset as usize + data.len());
        content.resize(content.len().max(to), 0);
        content[from..to].copy_from_slice(data);
    }
}

fn attributes(ino: u64, kind: FileType, size: u64) -> FileAttr {
    let empty = cgroupfs::attributes(INodeNo(ino), kind, 0o700);
    FileAttr { size, blocks: size.div_ceil(512), ..empty }
}

/// Passes on the kernel's requests; the answers come from [`answer`].
struct Volume(Sender<(Instant, Task)>);

impl Volume {
    fn at_once(&self, task: impl FnOnce(&mut Files) + Send + 'static) {
        self.after(Duration::ZERO, task);
    }

    fn after(&self, wait: Duration, task: impl FnOnce(&mut Files) + Send + 'static) {
        self.0
            .send((Instant::now() + wait, Box::new(task)))
            .expect("it answers until this is gone");
    }
}

impl Filesystem for Volume {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // A kernel that allows less says how much: that will do.
        let _ = config.set_max_background(AT_ONCE);
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_os_string();
        self.at_once(move |files| match files.find(&name) {
            Some(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        });
    }

    fn forget(&self, _: &Request, ino: INodeNo, _: u64) {
        self.at_once(move |files| files.forget(ino.0));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.at_once(move |files| match files.get(ino.0) {
            Some(attributes) => reply.attr(&TTL, &attributes),
            None => reply.error(Errno::ENOENT),
        });
    }

    /// Keeps the length alone among all attributes.
    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        self.at_once(move |files| size.into_iter().for_each(|len| files.resize(ino.0, len)));
        self.getattr(request, ino, handle, reply);
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        name: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let name = name.to_os_string();
        self.at_once(move |files| {
            let attributes = files.create(name);
            reply.created(&TTL, &attributes, Generation(0), FileHandle(0), OPEN);
        });
    }

    fn unlink(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_os_string();
        self.at_once(move |files| {
            files.names.remove(&name);
            reply.ok();
        });
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), OPEN);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.after(ANSWER, move |files| reply.data(files.read(ino.0, offset, size)));
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let data = data.to_vec();
        self.after(ANSWER, move |files| {
            files.write(ino.0, offset, &data);
            reply.written(data.len() as u32);
        });
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lives_until_it_has_neither_name_nor_user() {
        let mut files = Files::default();
        let ino = files.create("a".into()).ino.0;
        files.write(ino, 2, &[7; 3]);
        assert_eq!(files.read(ino, 0, 9), [0, 0, 7, 7, 7]);
        assert_eq!(files.read(ino, 4, 1), [7]);
        assert!(files.read(ino, 6, 1).is_empty());
        files.forget(ino);
        assert_eq!(files.find(OsStr::new("a")).map(|file| file.size), Some(5));
        files.names.clear();
        assert!(files.get(ino).is_some(), "somebody has it open");
        files.forget(ino);
        assert!(files.get(ino).is_none() && files.read(ino, 0, 1).is_empty());
    }
}
