//! Whether a file is the task's own: nothing else is ever deleted.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use serde_json::Value;

use super::folder::Folder;
use crate::record::container::{Index, TAIL_BYTES, payload_len};

/// Bytes of an index that are read at most.
const INDEX_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a first line that are read at most.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// One of them is in every line that flowlog or Hubble writes.
const EVENTS: [&str; 3] = ["flow", "node_status", "lost_events"];

/// Whether a file whose name fits is proved the task's own by what is in it: an index that names the task or, where
/// there is none, a record as its first line.
pub(super) fn is_own(folder: &Folder, name: &str, task: &str) -> bool {
    let Ok(mut file) = folder.open_own(name) else { return false };
    match index(&mut file) {
        Some(index) => index.task == task,
        None => file.rewind().is_ok() && begins_with_record(file),
    }
}

fn index(file: &mut File) -> Option<Index> {
    let mut tail = [0; TAIL_BYTES];
    file.seek(SeekFrom::End(-i64::try_from(TAIL_BYTES).ok()?)).ok()?;
    file.read_exact(&mut tail).ok()?;
    let len = payload_len(&tail).filter(|len| *len <= INDEX_BYTES_MAX)?;
    file.seek(SeekFrom::End(-i64::try_from(len).ok()?)).ok()?;
    let mut payload = Vec::new();
    file.read_to_end(&mut payload).ok()?;
    Index::parse(&payload)
}

fn begins_with_record(file: File) -> bool {
    let mut head = BufReader::new(file);
    let Ok(magic) = head.fill_buf() else { return false };
    let line = match magic {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => match zstd::stream::read::Decoder::with_buffer(head) {
            Ok(decoder) => first_line(decoder),
            Err(_) => return false,
        },
        [0x1f, 0x8b, ..] => first_line(flate2::bufread::MultiGzDecoder::new(head)),
        _ => first_line(head),
    };
    line.is_some_and(|line| is_record(&line))
}

fn first_line(from: impl Read) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(from.take(LINE_BYTES_MAX)).read_until(b'\n', &mut line).ok()?;
    Some(line)
}

fn is_record(line: &[u8]) -> bool {
    serde_json::from_slice::<Value>(line)
        .is_ok_and(|value| EVENTS.iter().any(|event| value.get(event).is_some()))
}
