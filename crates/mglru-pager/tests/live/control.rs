//! A pager from outside: its socket, requests good and bad, and its end.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

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
