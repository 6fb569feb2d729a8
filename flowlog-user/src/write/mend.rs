//! The end of a file whose writer was killed: an open frame is closed, what is half there goes, and a last line says why.
//!
//! Nothing that can be read is lost, at no moment: what is cut off is no whole block or no whole record, and where whole
//! records stand in the block that has to go, the file is written anew beside itself and takes its own place.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

use zstd::stream::raw::{CParameter, Decoder, Encoder, InBuffer, Operation, OutBuffer};

use super::Error;
use super::folder::Folder;
use super::name::Names;
use super::notice::Notices;
use super::salvage::records_in;
use crate::record::Framing;
use crate::record::container::{
    FRAME_HEAD_BYTES_MAX, FRAME_MAGIC, SKIPPABLE_HEAD_BYTES, SKIPPABLE_MAGIC, TAIL_BYTES, block_head,
    frame_head, payload_len,
};
use crate::record::format::{Head, delimited_head, is_record};

/// A block's size at most, as the format has it.
const BLOCK_BYTES_MAX: usize = 128 << 10;
/// Blocks begin with a number of three bytes: bit 0 for the last one, two bits for the kind (0 is uncompressed).
const BLOCK_HEAD_BYTES: u64 = 3;
const CHECKSUM_BYTES: usize = 4;
/// Content of an open frame that is decoded; none of ours holds more than a fraction of it.
const CONTENT_BYTES_MAX: usize = 256 << 20;
const OUTPUT_BYTES: usize = 256 << 10;
/// Bytes that are read at a time where something is looked for from behind.
const LOOK_BYTES: u64 = 64 << 10;
/// Bytes of a file by which its kind of records is told.
const HEAD_BYTES: usize = 64 << 10;

/// What stands at a file's end.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// Frames, and an index: it was finished.
    Finished,
    /// Whole frames up to there; what follows is the beginning of one that holds nothing, or nothing.
    Whole(u64),
    /// A frame that begins at the first place, whose head ends at the second, and its whole blocks at the third; whether
    /// the last block is among them.
    Open { frame: u64, head: u64, blocks: u64, is_over: bool },
    /// Something else: nothing is touched.
    Foreign,
}

/// Mends a zstd file. Gives the file, which may be another one now, and whether its end was missing.
pub(super) fn mend_zstd(
    folder: &Folder,
    names: &Names,
    mode: u32,
    file: File,
) -> Result<(File, Mended), Error> {
    let failed = |error: io::Error| folder.io("mend", &names.live, error);
    let len = file.metadata().map_err(failed)?.len();
    let (end, content) = examine(&file, len).map_err(failed)?;
    match end {
        End::Finished => Ok((file, Mended::Nothing)),
        End::Foreign => Ok((file, Mended::Unreadable)),
        End::Whole(at) => {
            let mended = if at == len { Mended::Open } else { Mended::Cut };
            if at < len {
                file.set_len(at).map_err(failed)?;
            }
            Ok((file, mended))
        }
        End::Open { frame, head, blocks, is_over } => {
            let Some(content) = content else { return Ok((file, Mended::Unreadable)) };
            if content.text.is_empty() {
                file.set_len(frame).map_err(failed)?;
                return Ok((file, Mended::Cut));
            }
            let whole = whole_len(&content.text);
            if whole == content.text.len() {
                // Only what is no whole block goes, so that nothing is lost should this be the last moment too. Nothing
                // else does: behind the end there may be space set aside, of which others have none to give.
                if blocks < len {
                    file.set_len(blocks).map_err(failed)?;
                }
                let close =
                    closing(&[], content.text.as_slice(), content.has_checksum, is_over).map_err(failed)?;
                (&file).write_all(&close).map_err(failed)?;
                return Ok((file, Mended::Cut));
            }
            let file = rewrite(folder, names, mode, &file, (frame, head), &content, whole)?;
            Ok((file, Mended::Cut))
        }
    }
}

/// What stands at a file's end, with what an open frame there holds; nothing of one that cannot be read.
type Ending = (End, Option<Content>);

/// Looks at a file's end. A power cut leaves zeros in place of what was not yet on the disk: where the file makes no sense
/// with those at its end, it is taken as cut off where they begin.
fn examine(file: &File, len: u64) -> io::Result<Ending> {
    let as_it_is = with_content(file, end(file, len)?)?;
    let makes_sense = match as_it_is {
        (End::Finished, _) | (End::Open { .. }, Some(_)) => true,
        // Zeros may stand in place of a last checksum.
        (End::Whole(_) | End::Open { .. } | End::Foreign, _) => false,
    };
    if makes_sense || ready(file, len.saturating_sub(1), 1, len)? != [0] {
        return Ok(as_it_is);
    }
    let cut = with_content(file, walk(file, 0, data_len(file, len)?)?)?;
    Ok(match cut {
        (End::Open { .. }, Some(_)) => cut,
        (End::Whole(at), _) if at > 0 => cut,
        _ => as_it_is,
    })
}

fn with_content(file: &File, end: End) -> io::Result<Ending> {
    let content = match &end {
        End::Open { frame, head, blocks, .. } => content(file, *frame, *head, *blocks)?,
        End::Finished | End::Whole(_) | End::Foreign => None,
    };
    Ok((end, content))
}

/// Where the zeros begin that stand at a file's end.
pub(super) fn data_len(file: &File, len: u64) -> io::Result<u64> {
    behind_last(file, len, |byte| byte != 0)
}

/// Behind the last byte that is of a kind, looked for from behind; 0 where there is none.
fn behind_last(file: &File, len: u64, is_it: impl Fn(u8) -> bool) -> io::Result<u64> {
    let mut at = len;
    while at > 0 {
        let from = at.saturating_sub(LOOK_BYTES);
        let bytes = ready(file, from, usize::try_from(at - from).unwrap_or(0), len)?;
        if let Some(found) = bytes.iter().rposition(|byte| is_it(*byte)) {
            return Ok(from + found as u64 + 1);
        }
        at = from;
    }
    Ok(0)
}

/// What was done to a file's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mended {
    /// Nothing: it was finished.
    Nothing,
    /// Nothing was half there, but the end was missing.
    Open,
    /// Something was half there.
    Cut,
    /// It cannot be read to its end, and is as it was.
    Unreadable,
}

/// Where the frame that begins at a place ends, and whether it has content; nothing where it is not whole.
pub(super) fn next_frame(file: &File, at: u64, len: u64) -> io::Result<Option<(u64, bool)>> {
    let head = ready(file, at, FRAME_HEAD_BYTES_MAX, len)?;
    if let Some(rest) = head.strip_prefix(&SKIPPABLE_MAGIC) {
        let size = rest.first_chunk::<4>().map(|size| u64::from(u32::from_le_bytes(*size)));
        let end = size.map(|size| at + SKIPPABLE_HEAD_BYTES as u64 + size);
        return Ok(end.filter(|end| *end <= len).map(|end| (end, false)));
    }
    let Some((head_len, has_checksum)) = frame_head(&head) else { return Ok(None) };
    let mut at = at + head_len as u64;
    while let Ok(head) = <[u8; 3]>::try_from(ready(file, at, 3, len)?.as_slice()) {
        let Some((is_last, size)) = block_head(head) else { return Ok(None) };
        at += BLOCK_HEAD_BYTES + size;
        if is_last {
            let end = at + if has_checksum { CHECKSUM_BYTES as u64 } else { 0 };
            return Ok((end <= len).then_some((end, true)));
        }
    }
    Ok(None)
}

/// What it takes to close the frame that begins there and ends with the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// Nothing: it has its end.
    Closed,
    /// These bytes; and the lines in it.
    Open(Vec<u8>, u64),
    /// It is not what was written.
    Foreign,
}

/// Looks how the frame that begins at `frame`, the last one of a file of `len` bytes, is to be closed.
pub(super) fn seal(file: &File, frame: u64, len: u64) -> io::Result<Seal> {
    let (head, is_over) = match walk(file, frame, len)? {
        End::Whole(at) if at == len => return Ok(Seal::Closed),
        End::Open { frame: at, head, blocks, is_over } if (at, blocks) == (frame, len) => (head, is_over),
        _ => return Ok(Seal::Foreign),
    };
    let Some(content) = content(file, frame, head, len)? else { return Ok(Seal::Foreign) };
    if content.text.is_empty() || whole_len(&content.text) != content.text.len() {
        return Ok(Seal::Foreign);
    }
    let framing = Framing::recognise(&content.text, true).unwrap_or_default();
    let bytes = closing(&[], &content.text, content.has_checksum, is_over)?;
    Ok(Seal::Open(bytes, records_in(framing, &content.text)))
}

/// Cuts half a record off a file of plain ones.
pub(super) fn mend_plain(file: &File) -> io::Result<Mended> {
    let len = file.metadata()?.len();
    let head = ready(file, 0, HEAD_BYTES, len)?;
    let whole = match Framing::recognise(&head, head.len() as u64 == len) {
        Some(Framing::Lines) if head.starts_with(b"{") => behind_last(file, len, |byte| byte == b'\n')?,
        Some(Framing::Delimited) => whole_delimited(file, len)?,
        _ => 0,
    };
    Ok(match whole {
        0 => Mended::Unreadable,
        whole if whole == len => Mended::Open,
        whole => {
            file.set_len(whole)?;
            Mended::Cut
        }
    })
}

/// Where the last whole record ends, by their lengths. Of one with a zero at its end it is looked whether it is one.
fn whole_delimited(file: &File, len: u64) -> io::Result<u64> {
    let (mut at, mut last) = (0, 0);
    while at < len {
        let Head::Record(prefix, length) = delimited_head(&ready(file, at, 3, len)?) else { break };
        let next = at + (prefix + length) as u64;
        if next > len {
            break;
        }
        (at, last) = (next, at);
    }
    let bytes = ready(file, last, usize::try_from(at - last).unwrap_or(0), len)?;
    let is_whole = match delimited_head(&bytes) {
        // Zeros behind it may begin within it.
        _ if ready(file, at, 1, len)? == [0] => false,
        Head::Record(prefix, _) => bytes.get(prefix..).is_some_and(is_record),
        Head::Short | Head::None => false,
    };
    Ok(if bytes.last() != Some(&0) || is_whole { at } else { last })
}

/// A last record for a file that got none.
pub(super) fn last_record(notices: &Notices, why: &str, at_ns: i64) -> Vec<u8> {
    notices.status("NODE_GONE", &format!("task {}: {why}", notices.task), at_ns)
}

/// Text as a frame of its own.
pub(super) fn frame(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1)?;
    encoder.include_checksum(true)?;
    encoder.write_all(text)?;
    encoder.finish()
}

/// Bytes of the whole records that a frame's content begins with.
fn whole_len(content: &[u8]) -> usize {
    match Framing::recognise(content, true) {
        Some(Framing::Delimited) => Framing::Delimited.whole_len(content),
        _ => Framing::Lines.whole_len(content),
    }
}

/// Walks over a file's frames by their heads alone.
fn end(file: &File, len: u64) -> io::Result<End> {
    let mut tail = [0; TAIL_BYTES];
    if let Some(start) = len.checked_sub(TAIL_BYTES as u64) {
        file.read_exact_at(&mut tail, start)?;
        if payload_len(&tail).is_some() {
            return Ok(End::Finished);
        }
    }
    walk(file, 0, len)
}

/// The same from a frame's beginning on, whatever stands at the end.
fn walk(file: &File, mut at: u64, len: u64) -> io::Result<End> {
    while at < len {
        let head = ready(file, at, FRAME_HEAD_BYTES_MAX, len)?;
        let begins =
            |magic: &[u8; 4]| head.starts_with(magic) || (head.len() < 4 && magic.starts_with(&head));
        if begins(&SKIPPABLE_MAGIC) {
            let skip = head.get(4..SKIPPABLE_HEAD_BYTES).and_then(|bytes| bytes.try_into().ok());
            let next =
                skip.map(|skip| at + SKIPPABLE_HEAD_BYTES as u64 + u64::from(u32::from_le_bytes(skip)));
            match next {
                Some(next) if next <= len => at = next,
                _ => return Ok(End::Whole(at)),
            }
            continue;
        }
        if !begins(&FRAME_MAGIC) {
            return Ok(End::Foreign);
        }
        let Some((head_len, has_checksum)) = frame_head(&head) else {
            // Too short to tell, or not one of ours.
            return Ok(if head.len() < FRAME_HEAD_BYTES_MAX { End::Whole(at) } else { End::Foreign });
        };
        let head_end = at + head_len as u64;
        if head_end > len {
            return Ok(End::Whole(at));
        }
        let mut blocks = head_end;
        loop {
            let open = |blocks, is_over| End::Open { frame: at, head: head_end, blocks, is_over };
            let head = ready(file, blocks, 3, len)?;
            let Ok(head) = <[u8; 3]>::try_from(head.as_slice()) else { return Ok(open(blocks, false)) };
            let Some((is_last, size)) = block_head(head) else { return Ok(End::Foreign) };
            let next = blocks + BLOCK_HEAD_BYTES + size;
            if next > len {
                return Ok(open(blocks, false));
            }
            blocks = next;
            if !is_last {
                continue;
            }
            let over = blocks + if has_checksum { CHECKSUM_BYTES as u64 } else { 0 };
            if over > len {
                return Ok(open(blocks, true));
            }
            at = over;
            break;
        }
    }
    Ok(End::Whole(at))
}

/// Up to `want` bytes from a place on.
fn ready(file: &File, at: u64, want: usize, len: u64) -> io::Result<Vec<u8>> {
    let there = usize::try_from(len.saturating_sub(at)).unwrap_or(want).min(want);
    let mut bytes = vec![0; there];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// What an open frame holds.
struct Content {
    text: Vec<u8>,
    /// Where each block ends, in the file and in the text.
    ends: Vec<(u64, usize)>,
    has_checksum: bool,
    /// Bytes of an uncompressed block at most.
    block_bytes_max: usize,
}

/// Decodes a frame's whole blocks; nothing where they are no frame of ours.
fn content(file: &File, frame: u64, head: u64, blocks: u64) -> io::Result<Option<Content>> {
    let head_bytes = ready(file, frame, FRAME_HEAD_BYTES_MAX, head)?;
    let Some((_, has_checksum)) = frame_head(&head_bytes) else { return Ok(None) };
    // A frame that says how much it holds cannot be closed earlier; ours never do.
    let descriptor = head_bytes.get(4).copied().unwrap_or(u8::MAX);
    if descriptor & 0b1110_0000 != 0 {
        return Ok(None);
    }
    let window = head_bytes.get(5).map_or(0, |byte| 1_usize << (10 + (byte >> 3)));
    let mut decoder = Decoder::new()?;
    let mut content = Content {
        text: Vec::new(),
        ends: Vec::new(),
        has_checksum,
        block_bytes_max: window.min(BLOCK_BYTES_MAX),
    };
    if !decode(
        &mut decoder,
        &ready(file, frame, usize::try_from(head - frame).unwrap_or(0), head)?,
        &mut content.text,
    ) {
        return Ok(None);
    }
    let mut at = head;
    while at < blocks {
        let bytes = ready(file, at, 3, blocks)?;
        let Some((_, size)) = <[u8; 3]>::try_from(bytes.as_slice()).ok().and_then(block_head) else {
            return Ok(None);
        };
        let end = at + BLOCK_HEAD_BYTES + size;
        let block = ready(file, at, usize::try_from(end - at).unwrap_or(0), blocks)?;
        if !decode(&mut decoder, &block, &mut content.text) || content.text.len() > CONTENT_BYTES_MAX {
            return Ok(None);
        }
        at = end;
        content.ends.push((at, content.text.len()));
    }
    Ok(Some(content))
}

/// Feeds the decoder; false where it finds damage.
fn decode(decoder: &mut Decoder<'_>, bytes: &[u8], text: &mut Vec<u8>) -> bool {
    let mut from = InBuffer::around(bytes);
    loop {
        text.reserve(OUTPUT_BYTES);
        let filled = text.len();
        let mut to = OutBuffer::around_pos(text, filled);
        if decoder.run(&mut from, &mut to).is_err() {
            return false;
        }
        if from.pos() == bytes.len() && text.len() < filled + OUTPUT_BYTES {
            return true;
        }
    }
}

/// What closes a frame that holds `text`, of which `rest` is still to come, uncompressed.
fn closing(rest: &[&[u8]], text: &[u8], has_checksum: bool, is_over: bool) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for block in rest {
        let size = u32::try_from(block.len()).unwrap_or(0) << 3;
        bytes.extend(size.to_le_bytes().iter().take(3));
        bytes.extend_from_slice(block);
    }
    if !is_over {
        bytes.extend([1, 0, 0]); // An empty block that is the last.
    }
    if has_checksum {
        bytes.extend(checksum(text)?);
    }
    Ok(bytes)
}

/// The checksum that zstd would put behind this content: what it does put behind it.
fn checksum(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = Encoder::new(1)?;
    encoder.set_parameter(CParameter::ChecksumFlag(true))?;
    let mut out = Vec::with_capacity(OUTPUT_BYTES);
    let mut from = InBuffer::around(text);
    while from.pos() < text.len() {
        out.clear();
        encoder.run(&mut from, &mut OutBuffer::around(&mut out))?;
    }
    let mut tail = Vec::new();
    loop {
        out.clear();
        let left = encoder.finish(&mut OutBuffer::around(&mut out), true)?;
        tail.extend_from_slice(&out);
        if left == 0 {
            break;
        }
    }
    Ok(tail.split_off(tail.len().saturating_sub(CHECKSUM_BYTES)))
}

/// The file with the open frame's whole records, in the place of the file.
fn rewrite(
    folder: &Folder,
    names: &Names,
    mode: u32,
    file: &File,
    (frame, head): (u64, u64),
    content: &Content,
    whole: usize,
) -> Result<File, Error> {
    let unfinished = names.unfinished();
    let failed = |error: io::Error| folder.io("mend", &names.live, error);
    folder.unlink(&unfinished)?;
    let mut anew = folder.create_locked(&unfinished, mode)?;
    // Blocks up to the last one that ends within whole records stay as they are.
    let kept = content.ends.iter().rfind(|(_, end)| *end <= whole).copied();
    let (at, from) = kept.unwrap_or((head, 0));
    let at = if whole == 0 { frame } else { at };
    let put = |anew: &mut File| -> io::Result<()> {
        let mut reader = file.try_clone()?;
        io::Seek::rewind(&mut reader)?;
        io::copy(&mut reader.take(at), anew)?;
        if whole > 0 {
            let text = content.text.get(..whole).unwrap_or_default();
            let rest: Vec<&[u8]> =
                text.get(from..).unwrap_or_default().chunks(content.block_bytes_max.max(1)).collect();
            anew.write_all(&closing(&rest, text, content.has_checksum, false)?)?;
        }
        anew.sync_all()
    };
    put(&mut anew).map_err(failed)?;
    folder.replace(&unfinished, &names.live).map_err(|error| failed(error.into()))?;
    Ok(anew)
}
