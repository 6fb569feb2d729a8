use std::sync::Arc;

use jiff::Timestamp;

use super::{Aggregation, Cadence, file, keys};
use crate::record::fields::Mask;
use crate::tree::{Fields, Place, Problem, Problems, Tree, Value};
use crate::{filter, project, write};

/// Records a second of one task that are worth limiting.
pub(super) const RATE_MAX: u64 = 10_000_000;

/// One task as configured.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Unique over all files.
    pub name: String,
    /// Where the name stands.
    pub place: Place,
    /// What it is for, in its owner's words.
    pub description: Option<String>,
    /// Who owns it.
    pub team: Option<String>,
    /// Which records.
    pub filter: Arc<filter::Spec>,
    /// Which fields of them.
    pub mask: Mask,
    /// When.
    pub cadence: Cadence,
    /// It gets what the kernel drops too.
    pub drops: bool,
    /// Where to.
    pub file: write::Spec,
    /// Where `filePath` stands.
    pub path_place: Place,
    /// Whether records are added up, and how.
    pub aggregation: Option<Aggregation>,
    /// Records a second that are written at most.
    pub rate_limit: Option<u32>,
    /// Nothing is written before this moment.
    pub start: Option<Timestamp>,
    /// Nothing is written from this moment on.
    pub end: Option<Timestamp>,
    /// What it needs that is not there; with any of it it cannot run.
    pub unmet: Vec<Problem>,
}

/// Where a task is between its `start` and its `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its start is yet to come.
    Waiting,
    /// It is to run.
    Running,
    /// Its end has passed.
    Ended,
}

impl Spec {
    /// Reads an entry of `flowLogs`, noting everything that is wrong with it. `None` where name or path are not to be
    /// had; otherwise the spec is of use only when no error was noted.
    pub fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        if let Value::Null = tree.value {
            problems.error(&tree.place, "expected a task, found nothing; remove the line or write a task");
            return None;
        }
        let fields = keys::read(tree, problems);
        let name = name(tree, &fields, problems);
        if matches!(tree.value, Value::Map(_)) && fields.get("filePath").is_none() {
            problems.error(&tree.place, "filePath is required; add one");
        }
        let file = file::read(&fields, problems);
        let exact = fields.get("fieldMaskExact").and_then(|tree| tree.boolean(problems));
        let mut text = |key| fields.get(key).and_then(|tree| tree.text(problems)).map(str::to_owned);
        let (description, team) = (text("description"), text("team"));
        let filter = filter::Spec::read(
            fields.get("includeFilters"),
            fields.get("excludeFilters"),
            fields.get("where"),
            problems,
        );
        let mask = project::read(fields.get("fieldMask"), exact.unwrap_or(false), problems);
        let aggregation = Aggregation::read(&fields, exact.unwrap_or(false), problems);
        let (cadence, drops) = Cadence::read(&fields, problems);
        let drops = drops || filter.asks_for_drops();
        let rate_limit = fields.get("rateLimit").and_then(|tree| tree.integer(1, RATE_MAX, problems));
        let (start, end) = window(&fields, problems);
        let (name, place) = name?;
        Some(Self {
            description,
            team,
            filter: Arc::new(filter),
            mask,
            aggregation,
            cadence,
            drops,
            file: write::Spec { task: name.clone(), definition: file::definition(tree), ..file? },
            path_place: fields.get("filePath")?.place.clone(),
            rate_limit: rate_limit.and_then(|rate| u32::try_from(rate).ok()),
            start,
            end,
            unmet: Vec::new(),
            name,
            place,
        })
    }
}

impl Spec {
    /// Where the task is at that wall time (nanoseconds since the Unix epoch).
    #[must_use]
    pub fn phase(&self, now_ns: i64) -> Phase {
        let passed = |at: Option<Timestamp>| at.is_some_and(|at| at.as_nanosecond() <= i128::from(now_ns));
        match (passed(self.end), self.start.is_none() || passed(self.start)) {
            (true, _) => Phase::Ended,
            (false, true) => Phase::Running,
            (false, false) => Phase::Waiting,
        }
    }

    /// The first moment after `now_ns` at which [`Self::phase`] changes.
    #[must_use]
    pub fn next_phase_ns(&self, now_ns: i64) -> Option<i64> {
        [self.start, self.end]
            .into_iter()
            .flatten()
            .filter_map(|at| i64::try_from(at.as_nanosecond()).ok())
            .filter(|at_ns| *at_ns > now_ns)
            .min()
    }

    /// Which keys differ; where they stand does not matter.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        // Written out, so that a new member cannot be forgotten here.
        let Self {
            name: _,
            place: _,
            description,
            team,
            filter,
            mask,
            aggregation,
            cadence,
            drops,
            file,
            path_place: _,
            rate_limit,
            start,
            end,
            unmet: _,
        } = self;
        let pairs = [
            ("description", *description == other.description),
            ("team", *team == other.team),
            ("filters", *filter == other.filter),
            ("fieldMask", *mask == other.mask),
            ("fieldAggregate", *aggregation == other.aggregation),
            ("events", *cadence == other.cadence && *drops == other.drops),
            ("file", *file == other.file),
            ("rateLimit", *rate_limit == other.rate_limit),
            ("start", *start == other.start),
            ("end", *end == other.end),
        ];
        pairs.into_iter().filter(|(_, same)| !same).map(|(key, _)| key).collect()
    }
}

fn window(fields: &Fields<'_>, problems: &mut Problems) -> (Option<Timestamp>, Option<Timestamp>) {
    let mut read = |key| fields.get(key).and_then(|tree| timestamp(tree, problems));
    let (start, end) = (read("start"), read("end"));
    if let (Some(start), Some(end), Some(tree)) = (start, end, fields.get("start"))
        && start >= end
    {
        problems.error(
            &tree.place,
            format!("the task would end ({end}) before it starts; correct one of the two"),
        );
    }
    (start, end)
}

fn name(tree: &Tree, fields: &Fields<'_>, problems: &mut Problems) -> Option<(String, Place)> {
    let Some(value) = fields.get("name") else {
        if let Value::Map(_) = tree.value {
            problems.error(&tree.place, "name is required; add one");
        }
        return None;
    };
    let name = value.text(problems)?;
    if name.is_empty() {
        problems.error(&value.place, "name is required; expected one that is not empty");
        return None;
    }
    if name.contains(char::is_control) {
        problems.error(&value.place, "the name has a control character in it; remove it");
    }
    Some((name.to_owned(), value.place.clone()))
}

fn timestamp(tree: &Tree, problems: &mut Problems) -> Option<Timestamp> {
    let text = tree.text(problems)?;
    let timestamp = text.parse().ok().or_else(|| last_days(text));
    if timestamp.is_none() {
        let message = format!("expected a time such as 2026-12-31T23:59:59Z, found {}", tree.kind());
        problems.error(&tree.place, message);
    }
    timestamp
}

/// Go knows the last day of the year 9999, which is how people write "never"; jiff ends some hours before it, so that
/// every offset stays inside.
fn last_days(text: &str) -> Option<Timestamp> {
    let rest = text.strip_prefix("9999-12-3")?;
    format!("9998-12-3{rest}").parse::<Timestamp>().ok().map(|_| Timestamp::MAX)
}
