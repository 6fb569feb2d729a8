use std::io::{self, Write};

use super::cat::Output;
use super::convert::{Convert, Piece};
use super::table::Table;
use super::{compact, dict, event};
use crate::record::Foreign;

/// Lays out records one after the other: the same for what is read from files and what is seen live.
pub struct Layout {
    output: Output,
    convert: Convert,
    table: Table,
    /// Something was printed.
    begun: bool,
}

impl Layout {
    pub(super) fn new(output: Output, convert: Convert) -> Self {
        let table = Table::new(output.style());
        Self { output, convert, table, begun: false }
    }

    /// Of records that come one by one: each is printed at once, so that a table's columns begin with the widths that
    /// most flows need.
    #[must_use]
    pub fn live(output: Output) -> Self {
        Self { table: Table::live(output.style()), ..Self::new(output, Convert::default()) }
    }

    /// Prints a record's line, newline included. `log`: which log it is in, where there are several; `event`: the same
    /// as an event, where that is known already.
    pub(super) fn print(
        &mut self,
        line: &[u8],
        log: Option<&str>,
        event: Option<Foreign>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let first = !std::mem::replace(&mut self.begun, true);
        match self.output {
            Output::Json => out.write_all(line),
            Output::Table(_) => self.table.line(line, log, out),
            Output::Compact(style) => compact::line(line, style, out),
            Output::Dict(style) => dict::record(line, style, first, out),
            Output::Converted => {
                let event = event.or_else(|| event::event(line).ok());
                event.map_or(Ok(()), |event| self.convert.write(Piece::Record(&event), out))
            }
            Output::Nothing => Ok(()),
        }
    }

    /// Prints a record's line.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn line(&mut self, line: &[u8], out: &mut dyn Write) -> io::Result<()> {
        self.print(line, None, None, out)
    }

    /// Prints what is held back.
    pub(super) fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.output == Output::Converted {
            self.convert.write(Piece::End, out)?;
        }
        self.table.finish(out)
    }
}
