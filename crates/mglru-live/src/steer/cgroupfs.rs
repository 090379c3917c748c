//! A pager's groups as a directory that looks like a cgroup's: programs written for cgroups read
//! and write it as it is. Every read and write is a request at the pager's socket; nothing is kept.

mod nodes;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, TimeOrNow, WriteFlags,
};
use mglru_pager::control::{Client, ControlError};
use mglru_pager::{GroupFile, files};

use nodes::{Node, Nodes};

/// Nothing is kept: groups come and go by other ways too.
const TTL: Duration = Duration::ZERO;

/// Mounts a pager's groups at a folder.
///
/// # Errors
/// FUSE is not to be had, or the folder is not.
pub fn mount(socket: PathBuf, at: &Path) -> io::Result<Session<impl Filesystem>> {
    let state =
        State { socket, client: None, nodes: Nodes::default(), open: HashMap::new(), next: 0 };
    let mut config = fuser::Config::default();
    config.mount_options = vec![
        MountOption::FSName("mglru".into()),
        MountOption::Subtype("mglru".into()),
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoExec,
    ];
    Session::new(Groups(Mutex::new(state)), at, &config)
}

struct Groups(Mutex<State>);

struct State {
    socket: PathBuf,
    /// Once there was something to ask.
    client: Option<Client>,
    nodes: Nodes,
    /// Contents of open files, as read when they were opened.
    open: HashMap<u64, Vec<u8>>,
    next: u64,
}

type Done<T> = Result<T, Errno>;

fn name_of(name: &OsStr) -> Done<&str> {
    name.to_str().ok_or(Errno::EINVAL)
}

fn file_of(group: &str, name: &str) -> Option<&'static GroupFile> {
    files().iter().find(|file| file.name == name && file.is_in(group))
}

impl State {
    /// Asks the pager; a connection that broke is made anew, once.
    fn ask(&mut self, fields: &[&str]) -> Done<String> {
        let mut answer = Err(ControlError::Io(io::ErrorKind::NotConnected.into()));
        for _ in 0..2 {
            if self.client.is_none() {
                self.client = Client::connect(&self.socket).ok();
            }
            let Some(client) = &mut self.client else { break };
            answer = client.ask(fields);
            match answer {
                Err(ControlError::Io(_)) => self.client = None,
                _ => break,
            }
        }
        answer.map_err(|error| Errno::from_i32(error.errno()))
    }

    fn children(&mut self, group: &str) -> Done<Vec<String>> {
        Ok(self.ask(&["ls", group])?.lines().map(str::to_string).collect())
    }

    fn group(&self, ino: INodeNo) -> Done<String> {
        match self.nodes.get(ino.0) {
            Some(Node { group, file: None }) => Ok(group.clone()),
            Some(_) => Err(Errno::ENOTDIR),
            None => Err(Errno::ENOENT),
        }
    }

    fn file(&self, ino: INodeNo) -> Done<(String, &'static GroupFile)> {
        match self.nodes.get(ino.0) {
            Some(Node { group, file: Some(file) }) => Ok((group.clone(), file)),
            Some(_) => Err(Errno::EISDIR),
            None => Err(Errno::ENOENT),
        }
    }

    fn lookup(&mut self, parent: INodeNo, name: &str) -> Done<FileAttr> {
        let group = self.group(parent)?;
        let children = self.children(&group)?;
        let node = match file_of(&group, name) {
            Some(file) => Node { group, file: Some(file) },
            None if children.iter().any(|child| child == name) => below(&group, name),
            None => return Err(Errno::ENOENT),
        };
        let ino = self.nodes.number(node);
        self.attributes(INodeNo(ino))
    }

    fn attributes(&self, ino: INodeNo) -> Done<FileAttr> {
        let node = self.nodes.get(ino.0).ok_or(Errno::ENOENT)?;
        let (kind, perm) = match node.file {
            None => (FileType::Directory, 0o755),
            Some(file) => {
                let read = if file.is_readable() { 0o444 } else { 0 };
                (FileType::RegularFile, read | if file.is_writable() { 0o200 } else { 0 })
            }
        };
        Ok(attributes(ino, kind, perm))
    }

    fn make(&mut self, parent: INodeNo, name: &str) -> Done<FileAttr> {
        let group = self.group(parent)?;
        let node = below(&group, name);
        if file_of(&group, name).is_some() {
            return Err(Errno::EEXIST);
        }
        self.ask(&["mkdir", &node.group])?;
        let ino = self.nodes.number(node);
        self.attributes(INodeNo(ino))
    }

    fn remove(&mut self, parent: INodeNo, name: &str) -> Done<()> {
        let node = below(&self.group(parent)?, name);
        self.ask(&["rmdir", &node.group]).map(drop)
    }

    /// A read from the start is of the file as it is then; what follows is the same text.
    fn read(&mut self, ino: INodeNo, handle: u64, offset: u64, size: u32) -> Done<Vec<u8>> {
        if offset == 0 {
            let (group, file) = self.file(ino)?;
            let text = self.ask(&["get", &group, file.name])?;
            self.open.insert(handle, text.into_bytes());
        }
        let text = self.open.get(&handle).map_or(&[][..], Vec::as_slice);
        let from = text.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let to = text.len().min(from + size as usize);
        Ok(text[from..to].to_vec())
    }

    fn write(&mut self, ino: INodeNo, data: &[u8]) -> Done<u32> {
        let (group, file) = self.file(ino)?;
        let text = std::str::from_utf8(data).map_err(|_| Errno::EINVAL)?;
        self.ask(&["set", &group, file.name, text.trim()])?;
        Ok(data.len() as u32)
    }

    fn entries(&mut self, ino: INodeNo) -> Done<Vec<(u64, FileType, String)>> {
        let group = self.group(ino)?;
        let mut entries: Vec<_> =
            [".", ".."].map(|name| (ino.0, FileType::Directory, name.to_string())).into();
        for file in files().iter().filter(|file| file.is_in(&group)) {
            let node = Node { group: group.clone(), file: Some(file) };
            entries.push((self.nodes.number(node), FileType::RegularFile, file.name.to_string()));
        }
        for child in self.children(&group)? {
            let number = self.nodes.number(below(&group, &child));
            entries.push((number, FileType::Directory, child));
        }
        Ok(entries)
    }
}

fn below(group: &str, name: &str) -> Node {
    Node { group: format!("{}/{name}", group.trim_end_matches('/')), file: None }
}

/// Attributes of an empty file or folder that is this user's.
pub(crate) fn attributes(ino: INodeNo, kind: FileType, perm: u16) -> FileAttr {
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    FileAttr {
        ino,
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm,
        nlink: 1,
        uid: uid.as_raw(),
        gid: gid.as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

impl Groups {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Filesystem for Groups {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name_of(name).and_then(|name| self.state().lookup(parent, name)) {
            Ok(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.state().attributes(ino) {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    /// Truncation on opening is accepted, as the kernel's files do.
    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.state().attributes(ino) {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        match name_of(name).and_then(|name| self.state().make(parent, name)) {
            Ok(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match name_of(name).and_then(|name| self.state().remove(parent, name)) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let mut state = self.state();
        state.next += 1;
        reply.opened(FileHandle(state.next), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.state().read(ino, handle.0, offset, size) {
            Ok(data) => reply.data(&data),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.state().write(ino, data) {
            Ok(size) => reply.written(size),
            Err(errno) => reply.error(errno),
        }
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.state().open.remove(&handle.0);
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = match self.state().entries(ino) {
            Ok(entries) => entries,
            Err(errno) => return reply.error(errno),
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for (nth, (ino, kind, name)) in entries.into_iter().enumerate().skip(from) {
            if reply.add(INodeNo(ino), nth as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
