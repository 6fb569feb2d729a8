use super::Chunk;

/// Bytes of a piece at most, unless a record is longer.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// Cuts a chunk between records.
pub(super) fn pieces(chunk: &Chunk) -> impl Iterator<Item = Chunk> {
    let mut rest = chunk.clone();
    std::iter::from_fn(move || {
        if rest.records == 0 {
            return None;
        }
        let at = if rest.lines.len() > PIECE_BYTES_MAX { cut(&rest.lines) } else { rest.lines.len() };
        if at == rest.lines.len() {
            let last = Chunk { records: rest.records, ..rest.clone() };
            rest.records = 0;
            return Some(last);
        }
        let lines = rest.lines.split_to(at);
        let records = lines.iter().fold(0_u32, |count, byte| count + u32::from(*byte == b'\n'));
        rest.records = rest.records.saturating_sub(records);
        Some(Chunk { lines, records, ..rest.clone() })
    })
}

/// Behind the last record that fits, or behind the first one.
fn cut(lines: &[u8]) -> usize {
    let (fits, more) = lines.split_at(PIECE_BYTES_MAX.min(lines.len()));
    match fits.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => at + 1,
        None => more.iter().position(|byte| *byte == b'\n').map_or(lines.len(), |at| fits.len() + at + 1),
    }
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
            let chunk =
                Chunk { lines: text.clone().into(), records, first_ns: 1, last_ns: 2, seen_from_ns: 0 };
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
