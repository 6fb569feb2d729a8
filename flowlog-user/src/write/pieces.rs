use super::Chunk;
use crate::record::Framing;
use crate::record::format::{Head, delimited_head};

/// Bytes of a piece at most, unless a record is longer.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// Cuts a chunk between records.
pub(super) fn pieces(chunk: &Chunk) -> impl Iterator<Item = Chunk> + use<> {
    pieces_of(chunk, PIECE_BYTES_MAX)
}

/// The same into pieces of that many bytes at most.
pub(super) fn pieces_of(chunk: &Chunk, bytes_max: usize) -> impl Iterator<Item = Chunk> + use<> {
    let mut rest = chunk.clone();
    std::iter::from_fn(move || {
        if rest.records == 0 {
            return None;
        }
        let (at, records) = cut(&rest, bytes_max);
        let lines = rest.lines.split_to(at);
        let last = rest.lines.is_empty() || records >= rest.records;
        let piece = Chunk { lines, records: if last { rest.records } else { records }, ..rest.clone() };
        rest.records = if last { 0 } else { rest.records - records };
        Some(piece)
    })
}

/// Behind the last record that fits, or behind the first one; and how many records that are.
fn cut(chunk: &Chunk, bytes_max: usize) -> (usize, u32) {
    let (mut at, mut records) = (0, 0);
    while let Some(rest) = chunk.lines.get(at..).filter(|rest| !rest.is_empty()) {
        let len = match chunk.format.framing() {
            Framing::Lines => rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1),
            Framing::Delimited => match delimited_head(rest) {
                Head::Record(prefix, length) => Some(prefix + length),
                Head::Short | Head::None => None,
            },
        };
        let Some(len) = len.filter(|len| *len <= rest.len()) else {
            return (chunk.lines.len(), chunk.records);
        };
        if records > 0 && at + len > bytes_max {
            break;
        }
        (at, records) = (at + len, records + 1);
    }
    (at, records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_small_whole_records_and_together_the_chunk() {
        let line = |len: usize| "x".repeat(len - 1) + "\n";
        for lens in
            [vec![], vec![10], vec![1000; 200], vec![200_000, 10, 70_000, 65_535, 2, 65_536], vec![65_537; 3]]
        {
            let text: String = lens.iter().map(|len| line(*len)).collect();
            let records = u32::try_from(lens.len()).unwrap();
            let chunk = Chunk {
                format: crate::record::Format::Json,
                lines: text.clone().into(),
                records,
                first_ns: 1,
                last_ns: 2,
                seen_from_ns: 0,
            };
            let all: Vec<Chunk> = pieces(&chunk).collect();
            assert_eq!(all.iter().map(|piece| piece.records).sum::<u32>(), records, "{lens:?}");
            assert_eq!(
                all.iter().flat_map(|piece| piece.lines.to_vec()).collect::<Vec<u8>>(),
                text.as_bytes()
            );
            for piece in &all {
                let count = piece.lines.iter().filter(|byte| **byte == b'\n').count();
                assert!(count as u64 == u64::from(piece.records) && piece.lines.ends_with(b"\n"), "{lens:?}");
                assert!(piece.lines.len() <= PIECE_BYTES_MAX || piece.records == 1, "{lens:?}");
            }
        }
    }
}
