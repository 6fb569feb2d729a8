use std::collections::VecDeque;
use std::io::Write;

use serde_json::Value;

use super::cat::{Limit, Output, Request, Summary};
use super::group::Group;
use super::layout::Layout;
use super::range::{TimeRange, seen_ns};
use super::sieve::{Look, Sieve};
use super::{Damage, Error, event};
use crate::record::Foreign;

/// Prints the lines that are wanted, and counts them.
pub(super) struct Printer {
    output: Output,
    range: TimeRange,
    sieve: Sieve,
    layout: Layout,
    limit: Limit,
    /// Flows printed, or held back.
    flows: usize,
    /// With [`Limit::Last`]: lines, their logs, and whether they are flows.
    held: VecDeque<(Vec<u8>, Option<String>, bool)>,
    rewritten: Vec<u8>,
    /// The event of the line, where it was looked at.
    event: Option<Foreign>,
}

impl Printer {
    pub(super) fn new(request: &Request) -> Self {
        Self {
            output: request.output,
            range: request.range,
            sieve: request.sieve.clone(),
            layout: Layout::new(request.output, request.convert.clone()),
            limit: request.limit,
            flows: 0,
            held: VecDeque::new(),
            rewritten: Vec::new(),
            event: None,
        }
    }

    /// Whether nothing more will be printed, whatever comes.
    pub(super) const fn is_done(&self) -> bool {
        matches!(self.limit, Limit::First(count) if self.flows >= count)
    }

    /// Takes the line that a group stands at. `stopped` is when its task stopped, if it had.
    pub(super) fn record(
        &mut self,
        group: &Group,
        with_log: bool,
        stopped: &mut Option<i64>,
        summary: &mut Summary,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let line = group.line.as_slice();
        let count = self.output == Output::Nothing;
        let mut value = None;
        if count || !self.range.is_open() {
            let parsed: Value = serde_json::from_slice(line).unwrap_or_default();
            // A line without any time cannot be told to be outside.
            if !seen_ns(&parsed).is_none_or(|(first, last)| self.range.overlaps(first, last)) {
                return Ok(());
            }
            value = Some(parsed);
        }
        let mut rewritten = std::mem::take(&mut self.rewritten);
        rewritten.clear();
        let line = match self.sieve.look(line, &mut rewritten) {
            Look::Leave => None,
            Look::Take => Some(line),
            Look::Rewritten => Some(rewritten.as_slice()),
            Look::Unknown(what) => {
                let (path, offset) = group.place();
                let what = format!("this line is no event: {what}");
                summary.damage.push(Damage { path, offset, end: offset, what });
                None
            }
        };
        let line = match line {
            Some(line) if self.output == Output::Converted => match event::event(line) {
                Ok(event) => {
                    self.event = Some(event);
                    Some(line)
                }
                Err(error) => {
                    let (path, offset) = group.place();
                    let what = format!("this line is no event: {error}");
                    summary.damage.push(Damage { path, offset, end: offset, what });
                    None
                }
            },
            other => other,
        };
        if let Some(line) = line {
            if let Some(value) = value.filter(|_| count) {
                summary.stats.count(&value, stopped);
            }
            let log = with_log.then_some(group.log.as_str());
            self.take(line, log, summary, out)?;
        }
        self.rewritten = rewritten;
        Ok(())
    }

    fn take(
        &mut self,
        line: &[u8],
        log: Option<&str>,
        summary: &mut Summary,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let is_flow = line.starts_with(b"{\"flow\"");
        self.flows += usize::from(is_flow);
        let Limit::Last(count) = self.limit else {
            summary.lines += 1;
            return self.print(line, log, out);
        };
        self.event = None;
        self.held.push_back((line.to_vec(), log.map(str::to_owned), is_flow));
        // What stands before the first flow that is printed is about others.
        while self.flows > count
            || self.held.front().is_some_and(|(.., is_flow)| !is_flow && self.flows >= count)
        {
            match self.held.pop_front() {
                Some((.., true)) => self.flows -= 1,
                Some(_) => {}
                None => break,
            }
        }
        Ok(())
    }

    fn print(&mut self, line: &[u8], log: Option<&str>, out: &mut dyn Write) -> Result<(), Error> {
        // Those that were held back were looked at before.
        let event = self.event.take();
        self.layout.print(line, log, event, out).map_err(Error::Output)
    }

    /// Prints what was held back. What comes later, to one that follows, is printed as it comes.
    pub(super) fn finish(&mut self, summary: &mut Summary, out: &mut dyn Write) -> Result<(), Error> {
        for (line, log, _) in std::mem::take(&mut self.held) {
            summary.lines += 1;
            self.print(&line, log.as_deref(), out)?;
        }
        if matches!(self.limit, Limit::Last(_)) {
            self.limit = Limit::None;
        }
        self.layout.finish(out).and_then(|()| out.flush()).map_err(Error::Output)
    }
}
