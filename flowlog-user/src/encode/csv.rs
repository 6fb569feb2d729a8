//! CSV as RFC 4180 has it, with a line of names first. Nothing stands for what is not there, lists are joined by `;`.

use std::io::{self, Write};

use super::sheet::{Kept, Rows, column};
use super::text;
use crate::record::columns::ColumnKind;

/// Rows as lines.
pub(super) struct Csv;

impl Csv {
    /// Writes the names.
    pub(super) fn new(columns: &[usize], out: &mut dyn Write) -> io::Result<Self> {
        let names: Vec<&str> = columns.iter().map(|at| column(*at).0).collect();
        write!(out, "{}\r\n", names.join(","))?;
        Ok(Self)
    }

    #[expect(clippy::unused_self, reason = "as the other writer of sheets")]
    pub(super) fn group(
        &self,
        rows: &Rows,
        columns: &[usize],
        order: &[u32],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut cells: Vec<_> =
            columns.iter().map(|at| (column(*at).1, rows.dense(*at, order).into_iter())).collect();
        let mut line = Vec::new();
        for _ in order {
            line.clear();
            for (at, (kind, cells)) in cells.iter_mut().enumerate() {
                if at > 0 {
                    line.push(b',');
                }
                if let Some(kept) = cells.next().flatten() {
                    cell(&mut line, *kind, kept, rows);
                }
            }
            line.extend_from_slice(b"\r\n");
            out.write_all(&line)?;
        }
        Ok(())
    }
}

fn cell(line: &mut Vec<u8>, kind: ColumnKind, kept: Kept, rows: &Rows) {
    match kept {
        Kept::Number(value) => match kind {
            ColumnKind::Bool => line.extend_from_slice(if value == 0 { b"false" } else { b"true" }),
            ColumnKind::Time => {
                let start = line.len();
                text::time(line, value);
                // As in JSON, without the quotes.
                line.remove(start);
                line.pop();
            }
            ColumnKind::Unsigned => text::number(line, value.cast_unsigned()),
            _ => text::number(line, value),
        },
        Kept::Text(number) => quoted(line, rows.text_of(number)),
        Kept::Texts(..) => quoted(line, &rows.texts_of(kept).collect::<Vec<_>>().join(";")),
    }
}

/// A text, in quotes where it needs them. One that a spreadsheet would take for a formula gets them too, and an
/// apostrophe: names of tasks and nodes come from others.
fn quoted(line: &mut Vec<u8>, text: &str) {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if !formula && !text.contains([',', '"', '\n', '\r']) && !text.starts_with(' ') {
        line.extend_from_slice(text.as_bytes());
        return;
    }
    line.push(b'"');
    if formula {
        line.push(b'\'');
    }
    line.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    line.push(b'"');
}
