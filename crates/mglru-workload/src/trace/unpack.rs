//! Compressed streams, recognised by their first bytes and never by the file's name, decompressed
//! as they are read. A stream may have many members, one after the other; what follows the last
//! one must be nothing, or the padding that its own program writes.

use std::io::{self, BufRead, Read};

use super::container::{Container, HEAD_BYTES, is_magic, is_skippable, recognise};
use super::raw::{Bytes, Raw};

/// Back references of zstd's long mode may span 2 GiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 31;
/// Bytes of the longest magic number.
const MAGIC_BYTES: usize = XZ_MAGIC.len();
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];
const XZ_MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
const LZ4_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// A kind of compression that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
    Lz4,
}

impl Codec {
    /// All kinds.
    pub(super) const ALL: [Codec; 5] =
        [Codec::Gzip, Codec::Zstd, Codec::Xz, Codec::Bzip2, Codec::Lz4];

    /// Names the kind in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Codec::Gzip => "gzip",
            Codec::Zstd => "zstd",
            Codec::Xz => "xz",
            Codec::Bzip2 => "bzip2",
            Codec::Lz4 => "lz4",
        }
    }

    /// True if a member of this kind begins here.
    pub(super) fn begins(self, head: &[u8]) -> bool {
        match self {
            Codec::Gzip => head.starts_with(&GZIP_MAGIC),
            Codec::Zstd => head.starts_with(&ZSTD_MAGIC),
            Codec::Xz => is_magic(head, &XZ_MAGIC),
            // The last one is the size of a block.
            Codec::Bzip2 => matches!(head, [b'B', b'Z', b'h', b'1'..=b'9', ..]),
            Codec::Lz4 => head.starts_with(&LZ4_MAGIC),
        }
    }

    fn has_skippable(self) -> bool {
        matches!(self, Codec::Zstd | Codec::Lz4)
    }

    /// Zeros that may follow a member come in multiples of this; `None` if there may be none.
    fn padding(self) -> Option<u64> {
        match self {
            Codec::Gzip => Some(1),
            Codec::Xz => Some(4),
            _ => None,
        }
    }

    fn member(self, raw: Raw) -> io::Result<Box<dyn Member>> {
        Ok(match self {
            Codec::Gzip => Box::new(flate2::bufread::GzDecoder::new(raw)),
            Codec::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(raw)?.single_frame();
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Box::new(decoder)
            }
            Codec::Xz => Box::new(liblzma::bufread::XzDecoder::new(raw)),
            Codec::Bzip2 => Box::new(bzip2::bufread::BzDecoder::new(raw)),
            Codec::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(Endless(raw))),
        })
    }
}

/// Names the kind that a file turned out to be.
pub(super) enum Opened {
    /// Reads a bare trace.
    Plain(Raw),
    /// Reads a compressed trace.
    Packed(Unpacked),
    /// Names the kind of a file that is no trace.
    Foreign(&'static str),
}

/// Looks at the first bytes of a file.
pub(super) fn open(source: Bytes) -> io::Result<Opened> {
    let mut raw = Raw::new(source);
    let mut found = recognise(raw.peek(HEAD_BYTES)?);
    let skipped = found == Some(Container::Skippable);
    if skipped {
        skip_frames(&mut raw)?;
        found = recognise(raw.peek(HEAD_BYTES)?);
    }
    match found {
        Some(Container::Packed(codec)) if !skipped || codec.has_skippable() => {
            Ok(Opened::Packed(Unpacked { codec, member: Some(codec.member(raw)?) }))
        }
        _ if skipped && raw.fill_buf()?.is_empty() => Ok(Opened::Plain(raw)),
        _ if skipped => Err(junk()),
        Some(Container::Foreign(name)) => Ok(Opened::Foreign(name)),
        _ => Ok(Opened::Plain(raw)),
    }
}

/// The decompressed bytes of all members.
pub(super) struct Unpacked {
    codec: Codec,
    member: Option<Box<dyn Member>>,
}

impl Unpacked {
    /// Says how the bytes are compressed.
    pub(super) fn codec(&self) -> Codec {
        self.codec
    }
}

impl Read for Unpacked {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let nr = member.read(out)?;
            if nr > 0 || out.is_empty() {
                return Ok(nr);
            }
            let raw = self.member.take().map(Member::into_raw);
            self.member = raw.map(|raw| next(self.codec, raw)).transpose()?.flatten();
        }
        Ok(0)
    }
}

/// The member that follows; nothing at the end of the file.
fn next(codec: Codec, mut raw: Raw) -> io::Result<Option<Box<dyn Member>>> {
    if codec.has_skippable() {
        skip_frames(&mut raw)?;
    }
    let zeros = skip_zeros(codec, &mut raw)?;
    let head = raw.peek(MAGIC_BYTES)?;
    // Behind zeros, gzip reads no further member and xz does.
    if codec.begins(head) && (zeros == 0 || codec == Codec::Xz) {
        return Ok(Some(codec.member(raw)?));
    }
    if head.is_empty() { Ok(None) } else { Err(junk()) }
}

fn skip_zeros(codec: Codec, raw: &mut Raw) -> io::Result<u64> {
    let Some(unit) = codec.padding() else { return Ok(0) };
    let mut zeros = 0;
    loop {
        let data = raw.fill_buf()?;
        let nr = data.iter().take_while(|&&b| b == 0).count();
        if nr == 0 {
            return if zeros % unit == 0 { Ok(zeros) } else { Err(junk()) };
        }
        raw.consume(nr);
        zeros += nr as u64;
    }
}

/// Skips the frames that zstd and lz4 leave to others: a magic number, a length, as many bytes.
fn skip_frames(raw: &mut Raw) -> io::Result<()> {
    while is_skippable(raw.peek(4)?) {
        let [_, _, _, _, a, b, c, d] = *raw.peek(8)? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let length = 8 + u64::from(u32::from_le_bytes([a, b, c, d]));
        if raw.skip(length)? < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

fn junk() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "trailing junk after the end of the stream")
}

/// A decompressor of one member.
trait Member: Read + Send {
    /// Gives back the bytes behind the member.
    fn into_raw(self: Box<Self>) -> Raw;
}

impl Member for flate2::bufread::GzDecoder<Raw> {
    fn into_raw(self: Box<Self>) -> Raw {
        self.into_inner()
    }
}

impl Member for zstd::Decoder<'static, Raw> {
    fn into_raw(self: Box<Self>) -> Raw {
        self.finish()
    }
}

impl Member for liblzma::bufread::XzDecoder<Raw> {
    fn into_raw(self: Box<Self>) -> Raw {
        self.into_inner()
    }
}

impl Member for bzip2::bufread::BzDecoder<Raw> {
    fn into_raw(self: Box<Self>) -> Raw {
        self.into_inner()
    }
}

impl Member for lz4_flex::frame::FrameDecoder<Endless> {
    fn into_raw(self: Box<Self>) -> Raw {
        self.into_inner().0
    }
}

/// A source whose end is an error: the decoder of lz4 takes an end between two blocks for the end
/// of the frame.
struct Endless(Raw);

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.0.read(out)? {
            0 if !out.is_empty() => Err(io::Error::other(Truncated)),
            nr => Ok(nr),
        }
    }
}

/// The stream ends early.
#[derive(Debug, thiserror::Error)]
#[error("the stream ends early")]
struct Truncated;

/// True if an error means that the stream ends before its end mark.
pub(super) fn is_truncated(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
        || error.get_ref().is_some_and(|inner| inner.is::<Truncated>())
}
