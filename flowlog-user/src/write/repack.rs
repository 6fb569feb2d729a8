//! A slow task's file, put together anew when it is finished.
//!
//! What is flushed every second is readable every second, but a block of one record costs twice what it would among
//! others, and a frame of a few costs more. While a file is live that cannot be helped; when it is finished its frames
//! are read back and written as large ones.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

use super::encoder::Encoder;
use super::folder::Folder;
use super::live::{Book, Live};
use super::name::Names;
use super::owner::Ids;
use super::{Error, Spec};
use crate::limits::{FRAME_BYTES_MAX, REPACK_BYTES_MAX, REPACK_BYTES_MIN, REPACK_FLUSH_BYTES_MAX};
use crate::record::container::{Frame, Index};

/// Whether a file is small enough for it and was written in pieces small enough to gain by it.
pub(super) fn is_worth_it(book: &Book, live: &Live) -> bool {
    let frames = book.frames.len() as u64;
    frames > 0
        && book.frame.is_none()
        && live.bytes == live.whole_bytes
        && (REPACK_BYTES_MIN..=REPACK_BYTES_MAX).contains(&live.bytes)
        && book.text_bytes < book.writes.max(frames).saturating_mul(REPACK_FLUSH_BYTES_MAX)
        && book.writes > 1
}

/// Writes a live file anew and puts it, whole and synced, in the live file's place. On an error that one stays.
pub(super) fn repack(
    folder: &Folder,
    names: &Names,
    spec: &Spec,
    owner: Ids,
    (live, frames, header): (&Live, &[Frame], &[u8]),
) -> Result<Live, Error> {
    let unfinished = names.unfinished();
    folder.unlink(&unfinished)?;
    let mut file = folder.create_locked(&unfinished, spec.mode)?;
    let put = || -> io::Result<(Live, bool)> {
        owner.own(folder, &file, &unfinished).map_err(io::Error::other)?;
        let bytes = copy(&live.file, live.whole_bytes, spec, frames, header, &mut file)?;
        file.sync_all()?;
        let ours = folder.is(&names.live, &live.file);
        Ok((Live::of(file, bytes), ours))
    };
    let result = put().and_then(|(whole, ours)| {
        if !ours {
            return Err(io::Error::other("somebody else works on it"));
        }
        folder.replace(&unfinished, &names.live)?;
        Ok(whole)
    });
    result.map_err(|error| {
        // What is left of it is removed at the next start.
        let _ = folder.unlink(&unfinished);
        folder.io("put together", &names.live, error)
    })
}

/// The frames' content in larger frames, with header and index; gives the bytes written.
fn copy(
    from: &File,
    end: u64,
    spec: &Spec,
    frames: &[Frame],
    header: &[u8],
    to: &mut File,
) -> io::Result<u64> {
    let mut encoder = Encoder::new(spec.compression);
    let mut index = Index { task: spec.task.clone(), frames: Vec::new() };
    let mut written = 0;
    let mut open: Option<Frame> = None;
    let ends = frames.iter().skip(1).map(|frame| frame.offset).chain([end]);
    for (frame, end) in frames.iter().zip(ends) {
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(frame.offset)).map_err(io::Error::other)?];
        from.read_exact_at(&mut bytes, frame.offset)?;
        let mut text = Vec::new();
        zstd::stream::read::Decoder::with_buffer(&*bytes)?.read_to_end(&mut text)?;
        encoder.add(&text.into())?;
        let joined = open.get_or_insert(Frame { offset: written, lines: 0, ..*frame });
        joined.first_ns = joined.first_ns.min(frame.first_ns);
        joined.last_ns = joined.last_ns.max(frame.last_ns);
        joined.lines += frame.lines;
        if encoder.frame_bytes >= FRAME_BYTES_MAX {
            written += put(&mut encoder, open.take(), &mut index, header, to)?;
        }
    }
    written += put(&mut encoder, open.take(), &mut index, header, to)?;
    let index = index.to_bytes();
    to.write_all(&index)?;
    Ok(written + index.len() as u64)
}

fn put(
    encoder: &mut Encoder,
    frame: Option<Frame>,
    index: &mut Index,
    header: &[u8],
    to: &mut File,
) -> io::Result<u64> {
    let Some(frame) = frame else { return Ok(0) };
    encoder.end()?;
    if index.frames.is_empty() {
        encoder.out.extend_from_slice(header);
    }
    index.frames.push(frame);
    to.write_all(&encoder.out)?;
    let bytes = encoder.out.len() as u64;
    encoder.written();
    Ok(bytes)
}
