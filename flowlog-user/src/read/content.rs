use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A file's content, decompressed by what its first bytes say.
pub(super) enum Content {
    Zstd(Box<zstd::stream::read::Decoder<'static, Counted>>),
    Gzip(Box<MultiGzDecoder<Counted>>),
    Plain(Counted),
}

impl Content {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let mut counted = Counted { inner: BufReader::with_capacity(64 << 10, file), offset: 0 };
        let head = counted.inner.fill_buf()?;
        // A skippable frame may come first: 0x184D2A5? in little endian.
        let skippable = matches!(head, [first, 0x2a, 0x4d, 0x18, ..] if first & 0xf0 == 0x50);
        if head.starts_with(&ZSTD_MAGIC) || skippable {
            return Ok(Self::Zstd(Box::new(zstd::stream::read::Decoder::with_buffer(counted)?)));
        }
        if head.starts_with(&GZIP_MAGIC) {
            return Ok(Self::Gzip(Box::new(MultiGzDecoder::new(counted))));
        }
        Ok(Self::Plain(counted))
    }

    /// Bytes of the file taken so far.
    pub(super) fn offset(&self) -> u64 {
        match self {
            Self::Zstd(decoder) => decoder.get_ref().offset,
            Self::Gzip(decoder) => decoder.get_ref().offset,
            Self::Plain(counted) => counted.offset,
        }
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Zstd(decoder) => decoder.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Plain(counted) => counted.read(buffer),
        }
    }
}

/// A buffered file that knows how far it has been taken.
pub(super) struct Counted {
    inner: BufReader<File>,
    offset: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.offset += n as u64;
        Ok(n)
    }
}

impl BufRead for Counted {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.offset += n as u64;
        self.inner.consume(n);
    }
}
