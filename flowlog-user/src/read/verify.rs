use std::fs::File;
use std::io;
use std::path::PathBuf;

use super::content::{Reading, Suffix, Vouched};
use super::frames::index;
use super::group::{STILL, not_opened};
use super::input::Input;
use super::lines::{Lines, Step};
use super::sources::{Position, Source, groups, identity_of};
use super::{Damage, Error, event, protobuf, shape};
use crate::record::Framing;
use crate::record::container::FRAME_MAGIC;

/// How often a folder is looked at whose files get other names meanwhile.
const LOOKS: usize = 100;

/// How far a file could be checked: what it would not show is not damage that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// All of it, by checksums and an index, or by one checksum of the whole.
    Whole,
    /// Its parts, by their checksums: that parts are missing would not show.
    Parts,
    /// Its lines, each for itself: that some are missing or altered would not show.
    Lines,
}

impl Checked {
    /// A name for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Parts => "parts",
            Self::Lines => "lines",
        }
    }
}

/// What became of one file's check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The file.
    pub path: PathBuf,
    /// Whole lines in it.
    pub lines: u64,
    /// Whether an index was found and agrees.
    pub indexed: bool,
    /// What could be checked.
    pub checked: Checked,
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
    let mut seen = Vec::new();
    for _ in 0..LOOKS {
        let mut found = false;
        for source in groups(paths)?.into_iter().flatten() {
            if source.identity.is_some() && seen.contains(&source.identity)
                || source.is_stdin() && !verdicts.is_empty()
            {
                continue;
            }
            found = true;
            let opened = (!source.is_stdin()).then(|| File::open(&source.path)).transpose();
            let file = match opened {
                // Finished, or deleted by its task, since the folder was listed.
                Err(error) if source.listed && error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) if source.listed => {
                    let mut verdict = nothing_yet(&source);
                    verdict.note(0, 0, not_opened(&error));
                    verdicts.push(verdict);
                    seen.push(source.identity);
                    continue;
                }
                opened => opened.map_err(|error| Error::Open { path: source.path.clone(), source: error })?,
            };
            // A live file's name may lead to another one by now: the one that was listed is found at the next look.
            let opened = file.as_ref().and_then(|file| file.metadata().ok());
            let identity = opened.map(|found| identity_of(&found));
            if identity.is_none() || !seen.contains(&identity) {
                verdicts.push(verdict(&source, file)?);
                seen.push(identity);
            }
        }
        // A file that gets its finished name while a folder is listed may be missing in the list.
        if !found {
            break;
        }
    }
    Ok(verdicts)
}

/// What is said of a file before anything of it is read.
fn nothing_yet(source: &Source) -> Verdict {
    Verdict {
        path: source.path.clone(),
        lines: 0,
        indexed: false,
        checked: Checked::Lines,
        live: matches!(source.position, Position::Live(_)) && !source.is_stdin(),
        damage: Vec::new(),
    }
}

fn verdict(source: &Source, file: Option<File>) -> Result<Verdict, Error> {
    let failed = |error| Error::Open { path: source.path.clone(), source: error };
    let stdin = source.is_stdin();
    let live = matches!(source.position, Position::Live(_)) && !stdin;
    let mut input = file.map_or_else(|| Input::pipe(io::stdin()), Input::file);
    let zstd = input.ready_for(FRAME_MAGIC.len()).map_err(failed)?.starts_with(&FRAME_MAGIC);
    // With an index it is finished, whatever its name.
    let growing = live && !(zstd && index(&mut input).map_err(failed)?.is_some());
    let says = if stdin { Suffix::None } else { Suffix::of(&source.path) };
    let how = Reading { growing, named: !live && !stdin, says, ..Reading::default() };
    let mut verdict = nothing_yet(source);
    let ended = read(&mut verdict, Lines::new(input, how));
    if let Some(at) = ended.filter(|_| live && source.is_still()) {
        verdict.note(at, at, STILL.into());
    }
    Ok(verdict)
}

/// Where the last frame begins when the file ends in the midst of something.
fn read(verdict: &mut Verdict, mut lines: Lines) -> Option<u64> {
    let mut line = Vec::new();
    loop {
        match lines.next(&mut line) {
            Step::Line => {
                verdict.lines += 1;
                let at = lines.frame();
                if !is_record(&line, lines.framing()) {
                    verdict.note(at, at, "this line is no record".into());
                }
            }
            Step::NoRecord(from, to, what) => verdict.note(from, to, what.into()),
            Step::Damage(from, to, what) => verdict.note(from, to, what),
            Step::End => break,
        }
    }
    verdict.indexed = lines.index_agrees;
    verdict.checked = match lines.vouched {
        Some(Vouched::Nothing) => Checked::Lines,
        Some(Vouched::Parts) if !lines.index_agrees => Checked::Parts,
        Some(Vouched::Parts | Vouched::Whole) => Checked::Whole,
        // Nothing was read: of a finished file that is damage, and a live one may be empty.
        None => Checked::Parts,
    };
    lines.is_amid().then(|| lines.frame())
}

fn is_record(line: &[u8], framing: Framing) -> bool {
    if framing == Framing::Delimited {
        return protobuf::event(line).is_ok();
    }
    // Fields that this version does not know make no line damaged: a newer one may have written them.
    shape::is_event(line) || event::event(line).is_ok()
}

impl Verdict {
    fn note(&mut self, offset: u64, end: u64, what: String) {
        Damage::note(&mut self.damage, Damage { path: self.path.clone(), offset, end, what });
    }
}
