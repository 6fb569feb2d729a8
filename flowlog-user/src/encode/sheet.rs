//! Records as rows of columns, sorted by time: what Parquet and CSV are made of.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

use super::{csv, foreign, parquet, text};
use crate::record::Foreign;
use crate::record::columns::{COLUMNS, Cell, ColumnKind, cells};

/// Rows that are written together. Twice as many are held back and sorted, so that what is out of order by less than
/// this comes out in order; each group is sorted in any case.
const GROUP_ROWS: usize = 122_880;

/// Columns that flowlog's own records have: always there, so that all of its files have the same. Those that only
/// records of others have are there when one of the first rows has them.
pub(super) const OWN: [&str; 52] = [
    "kind",
    "time",
    "uuid",
    "emitter_name",
    "emitter_version",
    "verdict",
    "source_ip",
    "destination_ip",
    "ip_version",
    "protocol",
    "source_port",
    "destination_port",
    "tcp_flags",
    "icmp_type",
    "icmp_code",
    "source_identity",
    "source_labels",
    "destination_identity",
    "destination_labels",
    "flow_type",
    "node_name",
    "event_type",
    "event_sub_type",
    "traffic_direction",
    "trace_observation_point",
    "trace_reason",
    "is_reply",
    "interface_index",
    "interface_name",
    "summary",
    "event",
    "end_reason",
    "connection",
    "started",
    "first_seen",
    "last_seen",
    "packets",
    "bytes",
    "packets_total",
    "bytes_total",
    "midstream",
    "interfaces",
    "duplicate",
    "fragment",
    "rtt_ns",
    "vlan",
    "inner_vlan",
    "tunnel",
    "lost_source",
    "lost_records",
    "lost_first",
    "lost_last",
];

/// Beside them, of the records about the log itself.
pub(super) const OWN_NOTICES: [&str; 3] = ["state_change", "node_names", "message"];

/// What a late column's values are put into, as a JSON object.
pub(super) const OTHER: &str = "other";

/// What a sheet becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Apache Parquet, zstd inside.
    Parquet,
    /// RFC 4180, with a line of names first.
    Csv,
}

enum Writer {
    Parquet(Box<parquet::Parquet>),
    Csv(csv::Csv),
}

/// Rows on their way into a file.
pub struct Sheet {
    shape: Shape,
    rows: Rows,
    /// Columns by their place in the table of all, and what writes them; once the first rows are there.
    writer: Option<(Vec<usize>, Writer)>,
}

impl Sheet {
    /// Nothing yet.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self { shape, rows: Rows::default(), writer: None }
    }

    /// Takes a record.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn take(&mut self, event: &Foreign, out: &mut dyn Write) -> io::Result<()> {
        self.rows.add(event, self.writer.as_ref().map(|(columns, _)| columns.as_slice()));
        if self.rows.count >= 2 * GROUP_ROWS { self.write(GROUP_ROWS, out) } else { Ok(()) }
    }

    /// Writes what is left, and the file's end.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        while self.rows.count > 0 || self.writer.is_none() {
            self.write(GROUP_ROWS, out)?;
        }
        match self.writer.take() {
            Some((_, Writer::Parquet(mut parquet))) => parquet.finish(out),
            Some((_, Writer::Csv(_))) | None => Ok(()),
        }
    }

    /// Writes the first rows in order of time.
    fn write(&mut self, count: usize, out: &mut dyn Write) -> io::Result<()> {
        if self.writer.is_none() {
            let columns = self.rows.columns();
            let writer = match self.shape {
                Shape::Parquet => Writer::Parquet(Box::new(parquet::Parquet::new(&columns)?)),
                Shape::Csv => Writer::Csv(csv::Csv::new(&columns, out)?),
            };
            self.writer = Some((columns, writer));
        }
        let order = self.rows.order();
        let (now, later) = order.split_at(order.len().min(count));
        if let Some((columns, writer)) = &mut self.writer {
            match writer {
                Writer::Parquet(parquet) => parquet.group(&self.rows, columns, now, out)?,
                Writer::Csv(csv) => csv.group(&self.rows, columns, now, out)?,
            }
        }
        self.rows = self.rows.only(later);
        Ok(())
    }
}

/// A value as it is kept: texts by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Number(i64),
    Text(u32),
    /// From where to where in the list of texts of lists.
    Texts(u32, u32),
}

/// Rows by columns; most cells of most columns are empty.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) count: usize,
    /// By place in the table of all columns; the last one is [`OTHER`].
    cells: Vec<Vec<(u32, Kept)>>,
    times: Vec<(i64, u32)>,
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
    lists: Vec<u32>,
}

impl Rows {
    fn add(&mut self, event: &Foreign, settled: Option<&[usize]>) {
        let row = u32::try_from(self.count).unwrap_or(u32::MAX);
        self.count += 1;
        self.cells.resize_with(COLUMNS.len() + 1, Vec::new);
        let mut other: Vec<u8> = Vec::new();
        let mut time = (i64::MIN, 0);
        for (at, cell) in cells(event) {
            let Some(column) = COLUMNS.get(at) else { continue };
            if let ("time", Cell::Time(seconds, nanoseconds)) = (column.name, &cell) {
                time = (*seconds, *nanoseconds);
            }
            if settled.is_some_and(|columns| !columns.contains(&at)) {
                other.push(if other.is_empty() { b'{' } else { b',' });
                text::string(&mut other, column.name);
                other.push(b':');
                super::flat::cell(&mut other, &cell);
                continue;
            }
            let kept = self.keep(&cell);
            self.put(at, row, kept);
        }
        if !other.is_empty() {
            other.push(b'}');
            let kept = Kept::Text(self.text(&String::from_utf8_lossy(&other)));
            self.put(COLUMNS.len(), row, kept);
        }
        self.times.push(time);
    }

    fn put(&mut self, at: usize, row: u32, kept: Kept) {
        if let Some(cells) = self.cells.get_mut(at) {
            cells.push((row, kept));
        }
    }

    fn keep(&mut self, cell: &Cell<'_>) -> Kept {
        match cell {
            Cell::Unsigned(value) => Kept::Number(value.cast_signed()),
            Cell::Signed(value) => Kept::Number(*value),
            Cell::Bool(value) => Kept::Number(i64::from(*value)),
            Cell::Time(seconds, nanoseconds) => {
                Kept::Number(seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(*nanoseconds)))
            }
            Cell::Text(text) => Kept::Text(self.text(text)),
            Cell::Json(spec, value) => Kept::Text(self.text(&foreign::json_text(spec, value))),
            Cell::Texts(texts) => {
                let from = self.lists.len();
                let texts: Vec<u32> = texts.iter().map(|text: &Cow<'_, str>| self.text(text)).collect();
                self.lists.extend(texts);
                let place = |at| u32::try_from(at).unwrap_or(u32::MAX);
                Kept::Texts(place(from), place(self.lists.len()))
            }
        }
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    /// The columns of a file that begins with these rows.
    fn columns(&self) -> Vec<usize> {
        let own = |at: &usize| {
            COLUMNS
                .get(*at)
                .is_some_and(|column| OWN.contains(&column.name) || OWN_NOTICES.contains(&column.name))
        };
        let seen = |at: &usize| self.cells.get(*at).is_some_and(|cells| !cells.is_empty());
        (0..COLUMNS.len()).filter(|at| own(at) || seen(at)).chain([COLUMNS.len()]).collect()
    }

    /// The rows in order of time; those of one moment as they came.
    fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..).take(self.count).collect();
        order.sort_by_key(|row| self.times.get(*row as usize));
        order
    }

    /// These rows alone.
    fn only(&self, order: &[u32]) -> Self {
        let mut rows = Self { count: order.len(), ..Self::default() };
        if order.is_empty() {
            return rows;
        }
        rows.times = order.iter().filter_map(|row| self.times.get(*row as usize).copied()).collect();
        for (at, _) in self.cells.iter().enumerate() {
            let dense = self.dense(at, order);
            let mut cells = Vec::new();
            for (row, kept) in (0..).zip(dense) {
                let Some(kept) = kept else { continue };
                let kept = match kept {
                    Kept::Number(_) => kept,
                    Kept::Text(number) => Kept::Text(rows.text(self.text_of(number))),
                    Kept::Texts(..) => {
                        let texts: Vec<u32> = self.texts_of(kept).map(|text| rows.text(text)).collect();
                        let from = u32::try_from(rows.lists.len()).unwrap_or(u32::MAX);
                        rows.lists.extend(texts);
                        Kept::Texts(from, u32::try_from(rows.lists.len()).unwrap_or(u32::MAX))
                    }
                };
                cells.push((row, kept));
            }
            rows.cells.push(cells);
        }
        rows
    }

    /// A column's cells in that order of rows.
    pub(super) fn dense(&self, at: usize, order: &[u32]) -> Vec<Option<Kept>> {
        let mut by_row = vec![None; self.count];
        for (row, kept) in self.cells.get(at).into_iter().flatten() {
            if let Some(place) = by_row.get_mut(*row as usize) {
                *place = Some(*kept);
            }
        }
        order.iter().map(|row| by_row.get(*row as usize).copied().flatten()).collect()
    }

    pub(super) fn text_of(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", |text| text)
    }

    pub(super) fn texts_of(&self, kept: Kept) -> impl Iterator<Item = &str> {
        let range = match kept {
            Kept::Texts(from, to) => from as usize..to as usize,
            Kept::Number(_) | Kept::Text(_) => 0..0,
        };
        self.lists.get(range).unwrap_or_default().iter().map(|number| self.text_of(*number))
    }
}

/// A column's name and what it holds.
pub(super) fn column(at: usize) -> (&'static str, ColumnKind) {
    COLUMNS.get(at).map_or((OTHER, ColumnKind::Json), |column| (column.name, column.kind))
}
