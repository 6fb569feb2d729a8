//! Whether a file is the task's own: nothing else is ever deleted.
//!
//! A name is no proof. One of these is, and each names task and node, or stands in a file that only this task writes:
//! the header of a zstd file, with its checksum; the comment in a gzip member's head; the extended attribute that every
//! live file gets (file systems without any have none); the first record, where it says that flowlog made it on this
//! node. A file that shows none of them stays, e.g. an uncompressed one of records without `emitter` that was copied
//! from elsewhere.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;

use flate2::bufread::GzDecoder;
use serde_json::Value;

use super::folder::Folder;
use crate::record::container::{
    FRAME_HEAD_BYTES_MAX, FRAME_MAGIC, SKIPPABLE_HEAD_BYTES, SKIPPABLE_MAGIC, block_head, frame_head,
    header_is_intact, parse_header,
};

/// Bytes of a header that are read at most.
const HEADER_BYTES_MAX: u32 = 1 << 20;
/// Bytes of a first line that are read at most.
const LINE_BYTES_MAX: u64 = 1 << 20;
const BLOCK_HEAD_BYTES: u64 = 3;
const CHECKSUM_BYTES: u64 = 4;

/// Whether a file whose name fits is proved the task's own by what is in it.
pub(super) fn is_own(folder: &Folder, name: &str) -> bool {
    let Ok(file) = folder.open_own(name) else { return false };
    let mut magic = [0; 4];
    if file.read_exact_at(&mut magic, 0).is_err() {
        return false;
    }
    match magic {
        FRAME_MAGIC => match header(&file) {
            Some(header) => says(folder, &header),
            // Who was killed had not written it yet.
            None => folder.is_signed(&file),
        },
        [0x1f, 0x8b, ..] => {
            let gzip = GzDecoder::new(BufReader::new(&file));
            let comment = gzip.header().and_then(|header| serde_json::from_slice(header.comment()?).ok());
            comment.map_or_else(|| begins_with_own(folder, gzip), |comment: Value| says(folder, &comment))
        }
        _ => folder.is_signed(&file) || begins_with_own(folder, &file),
    }
}

/// Whether a header or a mark is this task's, on this node.
fn says(folder: &Folder, mark: &Value) -> bool {
    let is = |key, what: &str| mark.get(key).and_then(Value::as_str) == Some(what);
    is("task", &folder.task) && is("node", &folder.node)
}

/// The header of a zstd file, if it is whole: the skippable frame behind the first one.
fn header(file: &File) -> Option<Value> {
    let mut head = [0; FRAME_HEAD_BYTES_MAX];
    file.read_exact_at(&mut head, 0).ok()?;
    let (len, has_checksum) = frame_head(&head)?;
    let mut at = len as u64;
    loop {
        let mut head = [0; 3];
        file.read_exact_at(&mut head, at).ok()?;
        let (is_last, size) = block_head(head)?;
        at += BLOCK_HEAD_BYTES + size;
        if is_last {
            break;
        }
    }
    at += if has_checksum { CHECKSUM_BYTES } else { 0 };
    let mut head = [0; SKIPPABLE_HEAD_BYTES];
    file.read_exact_at(&mut head, at).ok()?;
    let len =
        head.strip_prefix(&SKIPPABLE_MAGIC).and_then(|len| len.try_into().ok()).map(u32::from_le_bytes)?;
    let mut payload = vec![0; usize::try_from(len.min(HEADER_BYTES_MAX)).ok()?];
    file.read_exact_at(&mut payload, at + SKIPPABLE_HEAD_BYTES as u64).ok()?;
    let json = parse_header(&payload).filter(|_| header_is_intact(&payload) == Some(true))?;
    serde_json::from_str(json).ok()
}

/// Whether the first line is a record that flowlog made on this node, or says so of the task.
fn begins_with_own(folder: &Folder, from: impl Read) -> bool {
    let mut line = Vec::new();
    let mut head = BufReader::new(from.take(LINE_BYTES_MAX));
    if head.read_until(b'\n', &mut line).is_err() {
        return false;
    }
    let Ok(record) = serde_json::from_slice::<Value>(&line) else { return false };
    let text = |pointer| record.pointer(pointer).and_then(Value::as_str);
    let node = text("/node_name").or_else(|| text("/flow/node_name"));
    let told = text("/node_status/message").or_else(|| text("/message"));
    let of_task = told.is_some_and(|told| told.starts_with(&format!("task {}:", folder.task)));
    node == Some(&*folder.node) && (text("/flow/emitter/name") == Some("flowlog") || of_task)
}
