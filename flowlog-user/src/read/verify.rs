use std::fs::File;
use std::path::PathBuf;

use serde_json::Value;

use super::frames::index;
use super::group::{FLAT, STILL};
use super::input::Input;
use super::lines::{Lines, Step};
use super::range::TimeRange;
use super::sources::{Position, groups};
use super::{Damage, Error, event, protobuf};
use crate::record::Framing;
use crate::record::container::{FRAME_MAGIC, Index};

/// One of them is in every line that flowlog or Hubble writes.
const EVENTS: [&str; 5] = ["flow", "node_status", "lost_events", "agent_event", "debug_event"];

/// What became of one file's check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The file.
    pub path: PathBuf,
    /// Whole lines in it.
    pub lines: u64,
    /// Whether an index was found and agrees.
    pub indexed: bool,
    /// It is being written: an end in the midst of things is expected.
    pub live: bool,
    /// Everything that is wrong.
    pub damage: Vec<Damage>,
}

/// Checks whole files: frames, checksums, whole lines of JSON, and that the index agrees.
///
/// # Errors
/// A path that cannot be opened.
pub fn verify(paths: &[PathBuf]) -> Result<Vec<Verdict>, Error> {
    let mut verdicts = Vec::new();
    for source in groups(paths)?.into_iter().flatten() {
        let failed = |error| Error::Open { path: source.path.clone(), source: error };
        let live = matches!(source.position, Position::Live(_)) && !source.is_stdin();
        let mut input = if source.is_stdin() {
            Input::pipe(std::io::stdin())
        } else {
            Input::file(File::open(&source.path).map_err(failed)?)
        };
        let zstd = input.ready_for(FRAME_MAGIC.len()).map_err(failed)?.starts_with(&FRAME_MAGIC);
        let index = if zstd { index(&mut input).map_err(failed)? } else { None };
        let mut verdict = Verdict {
            path: source.path.clone(),
            lines: 0,
            indexed: index.is_some(),
            live,
            damage: Vec::new(),
        };
        // With an index it is finished, whatever its name.
        let lines = Lines::new(input, live && index.is_none(), TimeRange::default());
        let lines = if live || source.is_stdin() { lines } else { lines.named() };
        let ended = read(&mut verdict, lines, index.as_ref());
        if let Some(at) = ended.filter(|_| live && source.is_still()) {
            verdict.note(at, at, STILL.into());
        }
        verdicts.push(verdict);
    }
    Ok(verdicts)
}

/// Where the last frame begins when the file ends in the midst of something.
fn read(verdict: &mut Verdict, mut lines: Lines, index: Option<&Index>) -> Option<u64> {
    let mut line = Vec::new();
    let mut frames: Vec<(u64, u64)> = Vec::new();
    loop {
        match lines.next(&mut line) {
            Step::Line => {
                verdict.lines += 1;
                let at = lines.frame();
                if !is_record(&line, lines.framing()) {
                    verdict.note(at, at, "this line is no record".into());
                }
                match frames.last_mut() {
                    Some((offset, count)) if *offset == at => *count += 1,
                    _ => frames.push((at, 1)),
                }
            }
            Step::Damage(from, to, what) => verdict.note(from, to, what),
            Step::End => break,
        }
    }
    let amid = lines.is_amid().then(|| lines.frame());
    let Some(index) = index else { return amid };
    let told: Vec<_> = index.frames.iter().map(|frame| (frame.offset, frame.lines)).collect();
    if verdict.damage.is_empty() && told != frames {
        let at = told.iter().zip(&frames).find(|(a, b)| a != b).map_or(0, |(told, _)| told.0);
        verdict.indexed = false;
        verdict.note(
            at,
            at,
            format!("the index tells of {} frames and other records than are there", told.len()),
        );
    }
    amid
}

fn is_record(line: &[u8], framing: Framing) -> bool {
    if framing == Framing::Delimited {
        return protobuf::event(line).is_ok();
    }
    if line.starts_with(FLAT) {
        return event::event(line).is_ok();
    }
    serde_json::from_slice::<Value>(line)
        .is_ok_and(|value| EVENTS.iter().any(|event| value.get(event).is_some()))
}

impl Verdict {
    fn note(&mut self, offset: u64, end: u64, what: String) {
        self.damage.push(Damage { path: self.path.clone(), offset, end, what });
    }
}
