use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;

use super::frames::{Frames, holds_frame, is_skippable};
use super::input::Input;
use super::range::TimeRange;
use crate::record::container::{FRAME_MAGIC, Index};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const PIECE_BYTES: u64 = 64 << 10;

/// How a file is read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// What is wanted of it.
    pub(super) range: TimeRange,
    /// Still being written: that its end is missing is no damage.
    pub(super) growing: bool,
    /// Its name says that flowlog finished it.
    pub(super) named: bool,
    /// Also what a damaged frame may have altered.
    pub(super) doubtful: bool,
    /// What its name says that it holds.
    pub(super) says: Suffix,
}

/// How a file is compressed by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Suffix {
    /// It does not say.
    #[default]
    None,
    Zstd,
    Gzip,
}

impl Suffix {
    pub(super) fn of(path: &Path) -> Self {
        match path.extension().and_then(OsStr::to_str) {
            Some("zst") => Self::Zstd,
            Some("gz") => Self::Gzip,
            _ => Self::None,
        }
    }
}

/// What says that nothing of a content is altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Vouched {
    /// Nothing does.
    Nothing,
    /// Checksums of its parts: whether there were more parts is not known.
    Parts,
    /// One checksum of the whole.
    Whole,
}

/// What reading on gives.
pub(super) enum Piece {
    /// More text.
    Text,
    /// Nothing more, at least at the moment.
    End,
    /// Bytes that are no content; whether anything may follow.
    Damage { from: u64, to: u64, what: &'static str, more: bool },
    /// An index, which stands there.
    Index { at: u64, index: Index },
}

/// A file's content, decompressed by what its first bytes say.
pub(super) enum Content {
    /// Nothing has been read: an empty file may become anything.
    Unknown(Input),
    Zstd(Input, Box<Frames>),
    /// A member, and where it begins.
    Gzip(Box<GzDecoder<Input>>, u64),
    Plain(Input),
    /// What stood before the damage was given; nothing follows it. The damaged member begins there.
    Broken(Input, u64, &'static str),
}

impl Content {
    pub(super) const fn new(input: Input) -> Self {
        Self::Unknown(input)
    }

    fn input(&self) -> &Input {
        match self {
            Self::Unknown(input) | Self::Zstd(input, _) | Self::Plain(input) | Self::Broken(input, ..) => {
                input
            }
            Self::Gzip(decoder, _) => decoder.get_ref(),
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

    /// Where the gzip member begins whose text comes, or came last.
    pub(super) const fn member(&self) -> Option<u64> {
        match self {
            Self::Gzip(_, start) | Self::Broken(_, start, _) => Some(*start),
            Self::Unknown(_) | Self::Zstd(..) | Self::Plain(_) => None,
        }
    }

    /// What says that nothing of it is altered.
    pub(super) const fn vouched(&self) -> Vouched {
        match self {
            Self::Zstd(_, frames) if frames.have_checksums => Vouched::Parts,
            Self::Gzip(_, 0) => Vouched::Whole,
            Self::Gzip(..) => Vouched::Parts,
            Self::Unknown(_) | Self::Zstd(..) | Self::Plain(_) | Self::Broken(..) => Vouched::Nothing,
        }
    }

    /// At an index: whether the header is missing that stands behind the first frame of every file of flowlog's.
    pub(super) fn lacks_header(&self) -> bool {
        matches!(self, Self::Zstd(_, frames) if !frames.has_header)
    }

    /// What the name says and the file does not hold.
    fn misnamed(&self, says: Suffix) -> Option<&'static str> {
        let head = self.input().ready();
        let is_json = head.trim_ascii_start().starts_with(b"{");
        let is_zeros = head.iter().all(|byte| *byte == 0);
        match (says, self) {
            (Suffix::Zstd, Self::Gzip(..)) => Some("the name says zstd, and the file holds gzip"),
            (Suffix::Gzip, Self::Zstd(..)) => Some("the name says gzip, and the file holds zstd"),
            (Suffix::Zstd, Self::Plain(_)) if is_json => {
                Some("the name says zstd, and the file holds lines of JSON that are not compressed")
            }
            (Suffix::Gzip, Self::Plain(_)) if is_json => {
                Some("the name says gzip, and the file holds lines of JSON that are not compressed")
            }
            (Suffix::Zstd, Self::Plain(_)) if is_zeros => {
                Some("the name says zstd, and the file holds zeros")
            }
            (Suffix::Gzip, Self::Plain(_)) if is_zeros => {
                Some("the name says gzip, and the file holds zeros")
            }
            (Suffix::Zstd, Self::Plain(_)) => {
                Some("the name says zstd, and the file holds neither zstd nor gzip nor lines of JSON")
            }
            (Suffix::Gzip, Self::Plain(_)) => {
                Some("the name says gzip, and the file holds neither gzip nor zstd nor lines of JSON")
            }
            _ => None,
        }
    }

    /// Whether text and file are the same bytes.
    pub(super) const fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// Appends more text.
    pub(super) fn more(&mut self, how: &Reading, out: &mut Vec<u8>) -> io::Result<Piece> {
        loop {
            if let Self::Unknown(input) = self {
                let head = input.ready_for(FRAME_MAGIC.len())?;
                if head.is_empty() || (how.growing && head.len() < FRAME_MAGIC.len()) {
                    return Ok(Piece::End);
                }
                let begins = input.offset() == 0;
                self.recognise(how)?;
                if let Some(what) = self.misnamed(how.says).filter(|_| begins) {
                    return Ok(Piece::Damage { from: 0, to: 0, what, more: true });
                }
            }
            match self {
                Self::Zstd(input, frames) => return frames.more(input, how, out),
                Self::Gzip(..) => {
                    if let Some(piece) = self.more_of_member(how, out)? {
                        return Ok(piece);
                    }
                }
                Self::Plain(input) => {
                    if input.ready_for(1)?.is_empty() {
                        return Ok(Piece::End);
                    }
                    out.extend_from_slice(input.ready());
                    input.take(usize::MAX);
                    return Ok(Piece::Text);
                }
                Self::Broken(input, from, what) => {
                    return Ok(Piece::Damage { from: *from, to: input.offset(), what, more: false });
                }
                Self::Unknown(_) => return Ok(Piece::End),
            }
        }
    }

    /// The same of a gzip member; `None` where something else follows it.
    fn more_of_member(&mut self, how: &Reading, out: &mut Vec<u8>) -> io::Result<Option<Piece>> {
        let Self::Gzip(decoder, start) = self else { return Ok(None) };
        let start = *start;
        let filled = out.len();
        let result = decoder.take(PIECE_BYTES).read_to_end(out);
        let what = match result {
            Ok(0) => {
                self.replace(|input| Ok(Self::Unknown(input)))?;
                return Ok(None);
            }
            Ok(_) => return Ok(Some(Piece::Text)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && how.growing => {
                return Ok(Some(if out.len() > filled { Piece::Text } else { Piece::End }));
            }
            Err(error) => match error.kind() {
                io::ErrorKind::UnexpectedEof => "the file ends within this gzip member, before its checksum",
                io::ErrorKind::InvalidInput => "the checksum of this gzip member does not fit",
                _ => "this gzip member is damaged, and what follows cannot be told",
            },
        };
        // What was decompressed before is given first.
        self.replace(|input| Ok(Self::Broken(input, start, what)))?;
        Ok((out.len() > filled).then_some(Piece::Text))
    }

    /// Becomes something else that reads on from the same place.
    fn replace(&mut self, by: impl FnOnce(Input) -> io::Result<Self>) -> io::Result<()> {
        let input = match std::mem::replace(self, Self::Plain(Input::pipe(io::empty()))) {
            Self::Unknown(input) | Self::Zstd(input, _) | Self::Plain(input) | Self::Broken(input, ..) => {
                input
            }
            Self::Gzip(decoder, _) => decoder.into_inner(),
        };
        *self = by(input)?;
        Ok(())
    }

    fn recognise(&mut self, how: &Reading) -> io::Result<()> {
        self.replace(|mut input| {
            let head = input.ready();
            // The very beginning may be what is damaged.
            let damaged = !head.starts_with(b"{") && !head.starts_with(&GZIP_MAGIC) && holds_frame(head);
            Ok(if head.starts_with(&FRAME_MAGIC) || is_skippable(head) || damaged {
                let frames = Frames::new(&mut input, how)?;
                Self::Zstd(input, Box::new(frames))
            } else if head.starts_with(&GZIP_MAGIC) {
                let start = input.offset();
                Self::Gzip(Box::new(GzDecoder::new(input)), start)
            } else {
                Self::Plain(input)
            })
        })
    }
}
