use std::fs::File;
use std::io::{self, Read};

use flate2::bufread::MultiGzDecoder;

use super::frames::{Frames, holds_frame, is_skippable};
use super::input::Input;
use super::range::TimeRange;
use crate::record::container::FRAME_MAGIC;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const PIECE_BYTES: u64 = 64 << 10;

/// What reading on gives.
pub(super) enum Piece {
    /// More text.
    Text,
    /// Nothing more, at least at the moment.
    End,
    /// Bytes that are no content; whether anything may follow.
    Damage { from: u64, to: u64, what: &'static str, more: bool },
}

/// A file's content, decompressed by what its first bytes say.
pub(super) enum Content {
    /// Nothing has been read: an empty file may become anything.
    Unknown(Input, TimeRange),
    Zstd(Input, Box<Frames>),
    Gzip(Box<MultiGzDecoder<Input>>),
    Plain(Input),
}

impl Content {
    pub(super) const fn new(input: Input, range: TimeRange) -> Self {
        Self::Unknown(input, range)
    }

    fn input(&self) -> &Input {
        match self {
            Self::Unknown(input, _) | Self::Zstd(input, _) | Self::Plain(input) => input,
            Self::Gzip(decoder) => decoder.get_ref(),
        }
    }

    /// Bytes of the file that were read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.input().read_bytes
    }

    /// Where in the file the next byte stands.
    pub(super) fn offset(&self) -> u64 {
        self.input().offset()
    }

    /// Where in the file the text comes from: its frame, or the byte behind what was taken.
    pub(super) fn place(&self) -> u64 {
        match self {
            Self::Zstd(_, frames) => frames.text_frame,
            other => other.input().offset(),
        }
    }

    /// Whether a piece of compressed content has begun and not ended.
    pub(super) fn is_amid(&self) -> bool {
        matches!(self, Self::Zstd(_, frames) if frames.is_amid())
    }

    /// At the end: whether an index is missing. `named`: the file's name says that flowlog finished it.
    pub(super) fn lacks_index(&self, named: bool) -> bool {
        let Self::Zstd(_, frames) = self else { return false };
        !frames.is_indexed() && (frames.has_header || (named && !frames.is_foreign))
    }

    /// Whether text and file are the same bytes.
    pub(super) const fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// Appends more text. `growing`: an end in the midst of things is no damage.
    pub(super) fn more(&mut self, growing: bool, out: &mut Vec<u8>) -> io::Result<Piece> {
        if let Self::Unknown(input, _) = self {
            let head = input.ready_for(FRAME_MAGIC.len())?;
            if head.is_empty() || (growing && head.len() < FRAME_MAGIC.len()) {
                return Ok(Piece::End);
            }
            self.recognise()?;
        }
        match self {
            Self::Zstd(input, frames) => frames.more(input, growing, out),
            Self::Gzip(decoder) => match decoder.take(PIECE_BYTES).read_to_end(out) {
                Ok(0) => Ok(Piece::End),
                Ok(_) => Ok(Piece::Text),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && growing => Ok(Piece::End),
                Err(error) => {
                    let from = decoder.get_ref().offset();
                    let what = match error.kind() {
                        io::ErrorKind::UnexpectedEof => "the file ends within a gzip member",
                        _ => "the gzip member is damaged, and what follows cannot be told",
                    };
                    Ok(Piece::Damage { from, to: from, what, more: false })
                }
            },
            Self::Plain(input) => {
                if input.ready_for(1)?.is_empty() {
                    return Ok(Piece::End);
                }
                out.extend_from_slice(input.ready());
                input.take(usize::MAX);
                Ok(Piece::Text)
            }
            Self::Unknown(..) => Ok(Piece::End),
        }
    }

    fn recognise(&mut self) -> io::Result<()> {
        let nothing = Self::Plain(Input::pipe(io::empty()));
        let Self::Unknown(mut input, range) = std::mem::replace(self, nothing) else { return Ok(()) };
        let head = input.ready();
        // The very beginning may be what is damaged.
        let damaged = !head.starts_with(b"{") && !head.starts_with(&GZIP_MAGIC) && holds_frame(head);
        *self = if head.starts_with(&FRAME_MAGIC) || is_skippable(head) || damaged {
            let frames = Frames::new(&mut input, &range)?;
            Self::Zstd(input, Box::new(frames))
        } else if head.starts_with(&GZIP_MAGIC) {
            Self::Gzip(Box::new(MultiGzDecoder::new(input)))
        } else {
            Self::Plain(input)
        };
        Ok(())
    }
}

/// A file's text from beginning to end; damage is an error.
pub(super) struct Stream {
    content: Content,
    text: Vec<u8>,
    taken: usize,
}

impl Stream {
    pub(super) fn new(file: File) -> Self {
        Self { content: Content::new(Input::file(file), TimeRange::default()), text: Vec::new(), taken: 0 }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.taken >= self.text.len() {
            self.text.clear();
            self.taken = 0;
            match self.content.more(false, &mut self.text)? {
                Piece::Text => {}
                Piece::End => return Ok(0),
                Piece::Damage { from, what, .. } => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("damaged at byte {from}: {what}"),
                    ));
                }
            }
        }
        let n = self.text.get(self.taken..).unwrap_or_default().read(into)?;
        self.taken += n;
        Ok(n)
    }
}
