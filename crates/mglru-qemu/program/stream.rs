//! Collects entries and sends them: each message over a connection of its own, so that the
//! program's own descriptors keep their numbers and messages of several processes do not mix.

use std::io::Write;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::parent_id;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use crate::calls;
use crate::format::{BORN, FORK, HEAD_WORDS, MAGIC};
use crate::lock::Lock;
use crate::pages::NOW;

/// A message is sent when it has so many words.
const FULL: usize = 16_384;

static STREAM: Lock<Message> = Lock::new(Message { words: Vec::new(), sent: 0, closed: false });
static ADDRESS: OnceLock<String> = OnceLock::new();

/// Entries that were not sent yet.
struct Message {
    words: Vec<u64>,
    sent: u64,
    closed: bool,
}

impl Message {
    fn entry(&mut self, word: u64) {
        if self.words.is_empty() {
            let processes = [u64::from(std::process::id()), u64::from(parent_id())];
            self.words.extend([MAGIC, processes[0], processes[1], self.sent]);
        }
        self.words.extend([NOW.load(Ordering::Relaxed), word]);
    }

    fn payload(&mut self, kind: u8, bytes: &[u8]) {
        self.entry((bytes.len() as u64) << 8 | u64::from(kind));
        self.words.extend(bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        }));
    }

    fn send_if(&mut self, full: bool) {
        if full && self.words.len() > HEAD_WORDS {
            self.closed |= !self.closed && send(&self.words).is_none();
            self.sent += 1;
            self.words.clear();
        }
    }
}

/// Sends a message; `None`: nobody listens any more.
fn send(words: &[u64]) -> Option<()> {
    let address = SocketAddr::from_abstract_name(ADDRESS.get()?).ok()?;
    let mut to = UnixStream::connect_addr(&address).ok()?;
    // SAFETY: words are bytes.
    let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) };
    to.write_all(bytes).ok()
}

/// Begins to send to a socket of this name.
pub fn begin(address: &str) {
    let _ = ADDRESS.set(address.to_string());
    unsafe extern "C" {
        fn pthread_atfork(
            before: extern "C" fn(),
            parent: extern "C" fn(),
            child: extern "C" fn(),
        ) -> i32;
    }
    // SAFETY: the functions stay as long as the library, which is never unloaded.
    unsafe { pthread_atfork(before_fork, after_fork, born) };
}

/// Adds an access to a page.
#[cold]
#[inline(never)]
pub fn access(page: u64, kind: u8) {
    STREAM.with(|message| {
        message.entry(page << 8 | u64::from(kind));
        message.send_if(message.words.len() >= FULL);
    });
}

/// Adds an entry of numbers.
pub fn numbers<const N: usize>(kind: u8, numbers: [u64; N]) {
    let mut bytes = Vec::with_capacity(8 * N);
    numbers.iter().for_each(|number| bytes.extend(number.to_ne_bytes()));
    text(kind, &bytes);
}

/// Adds an entry of bytes.
pub fn text(kind: u8, bytes: &[u8]) {
    STREAM.with(|message| {
        message.payload(kind, bytes);
        message.send_if(message.words.len() >= FULL);
    });
}

/// Adds an entry of bytes, and sends all that waits.
pub fn last(kind: u8, bytes: &[u8]) {
    STREAM.with(|message| {
        message.payload(kind, bytes);
        message.send_if(true);
    });
}

extern "C" fn before_fork() {
    calls::STATE.close();
    last(FORK, &[]);
    STREAM.close();
}

extern "C" fn after_fork() {
    STREAM.open();
    calls::STATE.open();
}

extern "C" fn born() {
    STREAM.open();
    calls::STATE.open();
    STREAM.with(|message| message.sent = 0);
    last(BORN, &[]);
}
