//! A pager from outside: its socket, requests good and bad, and its end.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{MIB, pager};
use mglru_pager::control::{Client, is_stale};

#[test]
fn groups_are_made_limited_read_and_removed_through_the_socket() {
    let Some(pager) = pager(32 * MIB) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pager.sock");
    let control = pager.offer(&path).unwrap();
    let mut client = Client::connect(&path).unwrap();
    client.ask(&["mkdir", "/web"]).unwrap();
    client.ask(&["mkdir", "/web/cache"]).unwrap();
    client.set("/web/cache", "memory.max", "6M").unwrap();
    let group = pager.group("/web/cache").unwrap();
    assert_eq!(group.limit(mglru_pager::Limit::Max), Some(6 << 20));
    let mut map = group.map_anon(MIB).unwrap();
    map.fill(1);
    assert_eq!(client.subtree("/").unwrap(), ["/", "/web", "/web/cache"]);
    let stat = client.get("/web", "memory.stat").unwrap();
    assert!(stat.starts_with(&format!("anon {MIB}\n")), "{stat}");
    let errno = |client: &mut Client, fields: &[&str]| client.ask(fields).unwrap_err().errno();
    assert_eq!(errno(&mut client, &["rmdir", "/web"]), libc::EBUSY);
    assert_eq!(errno(&mut client, &["mkdir", "/web"]), libc::EEXIST);
    assert_eq!(errno(&mut client, &["mkdir", "/no/such"]), libc::ENOENT);
    assert_eq!(errno(&mut client, &["get", "/", "x"]), libc::ENOENT);
    assert_eq!(errno(&mut client, &["set", "/", "memory.max", "x"]), libc::EINVAL);
    assert_eq!(errno(&mut client, &["sing"]), libc::EINVAL);
    assert_eq!(errno(&mut client, &["set", "/", "memory.max", "1\t2"]), libc::EINVAL);
    drop(map);
    client.ask(&["rmdir", "/web/cache"]).unwrap();
    assert_eq!(client.children("/web").unwrap(), [""; 0]);
    drop(control);
    assert!(!path.exists() && client.get("/", "memory.max").is_err());
}

#[test]
fn garbage_does_not_stop_others_and_a_dead_socket_is_taken_over() {
    let Some(pager) = pager(32 * MIB) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pager.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(is_stale(&path), "nobody listens any more");
    let _control = pager.offer(&path).unwrap();
    assert!(!is_stale(&path) && pager.offer(&path).is_err(), "somebody answers");
    let mut silent = UnixStream::connect(&path).unwrap();
    silent.write_all(b"get\t/\tmemo").unwrap();
    let mut wild = UnixStream::connect(&path).unwrap();
    // It may be turned away before it has said all of it.
    let _ = wild.write_all(&[0xff; 64 << 10]);
    let mut rest = Vec::new();
    // Turned away, one way or the other.
    let _ = wild.read_to_end(&mut rest);
    assert!(rest.is_empty());
    let mut client = Client::connect(&path).unwrap();
    assert_eq!(client.get("/", "memory.max").unwrap(), "33554432\n");
    silent.write_all(b"ry.max\nls\t/\n").unwrap();
    let mut answer = [0; 19];
    silent.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"ok 9\n33554432\nok 0\n");
}

/// Does something as user `nobody`, in a thread of its own; `None`, with the reason: it cannot.
fn as_nobody<T: Send>(what: impl FnOnce() -> T + Send) -> Option<T> {
    const NOBODY: libc::uid_t = 65534;
    let done = std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            // SAFETY: takes numbers. The call itself changes this thread alone, which ends here.
            let changed = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
            (changed == 0).then(what)
        });
        there.join().unwrap()
    });
    if done.is_none() {
        println!("skipped: this user may not become another");
    }
    done
}

/// A name that nothing else has.
fn abstract_name(what: &str) -> PathBuf {
    format!("@mglru-test/{}/{what}", std::process::id()).into()
}

#[test]
fn other_users_are_refused_with_the_reason() {
    let Some(pager) = pager(32 * MIB) else { return };
    let path = abstract_name("turned-away");
    let control = pager.offer(&path).unwrap();
    let ask = || Client::connect(&path).and_then(|mut client| client.get("/", "memory.max"));
    assert_eq!(ask().unwrap(), "33554432\n");
    let Some(refused) = as_nobody(ask) else { return };
    let refused = refused.unwrap_err();
    // SAFETY: takes nothing.
    let own = unsafe { libc::geteuid() };
    let reason = format!("the program is user {own}'s: user 65534 may not steer it");
    assert_eq!((refused.errno(), refused.to_string()), (libc::EPERM, reason));
    assert_eq!(ask().unwrap(), "33554432\n", "it answers others all the same");
    drop(control);
    assert!(is_stale(&path), "the name went with it");
}

#[test]
fn what_another_user_offers_is_not_asked() {
    let path = abstract_name("not-asked");
    let name = path.to_str().unwrap().trim_start_matches('@');
    let bind = || UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap());
    let Some(_theirs) = as_nobody(bind) else { return };
    let refused = Client::connect(&path).unwrap_err().to_string();
    assert!(refused.starts_with("it is user 65534's, and user "), "{refused}");
}

#[test]
fn a_socket_in_a_folder_is_for_its_owner_alone() {
    let Some(pager) = pager(32 * MIB) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pager.sock");
    let _control = pager.offer(&path).unwrap();
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
}

/// It has the listening descriptor, but nobody in it answers.
#[test]
fn a_child_that_outlives_its_parent_does_not_keep_the_socket_alive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pager.sock");
    let program = "import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
if os.fork() == 0: sys.stdin.read(); os._exit(0)
";
    let mut python = Command::new("python3");
    python.args(["-c", program]).arg(&path).stdin(Stdio::piped());
    let Ok(mut parent) = python.spawn() else { return println!("skipped: no python3 here") };
    let _until_dropped = parent.stdin.take();
    assert!(parent.wait().unwrap().success());
    assert!(UnixStream::connect(&path).is_ok(), "the child holds it");
    assert!(is_stale(&path) && Client::connect(&path).is_err());
    let Some(pager) = pager(32 * MIB) else { return };
    let _control = pager.offer(&path).expect("it is taken over");
    assert!(Client::connect(&path).is_ok());
}
