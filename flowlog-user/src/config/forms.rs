//! Which of several forms of a task counts, and what each task needs of other files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Sources;
use super::document::Content;
use super::versions::{Form, Mark, Twin};
use crate::record::Pools;
use crate::task::Spec;
use crate::tree::Problem;

/// The tasks of all files, the newest form of each.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// In the order of the files.
    pub(super) specs: Vec<(PathBuf, Vec<Arc<Spec>>)>,
    /// By task: older forms that do not count.
    pub(super) twins: BTreeMap<String, Vec<Twin>>,
    /// Tasks that lack nothing but pools, with their files.
    pub(super) without_pools: BTreeSet<(PathBuf, String)>,
    /// What is allowed and worth knowing.
    pub(super) warnings: Vec<Problem>,
}

/// Settles what depends on more than one file. Of several forms of a task the newest counts, and of several files in one
/// form each, which somebody else has to decide. `before` gives what is in force of a task of a file.
pub(super) fn settle<'a>(
    files: impl Iterator<Item = (&'a Path, &'a Content)> + Clone,
    sources: &Sources,
    pools: &Pools,
    before: impl Fn(&Path, &str) -> Option<Arc<Spec>>,
) -> Settled {
    let mut newest: HashMap<&str, (Form, &Arc<Spec>)> = HashMap::new();
    for (_, content) in files.clone() {
        for spec in &content.tasks {
            let first = newest.entry(&spec.name).or_insert((content.form, spec));
            if first.0 < content.form {
                *first = (content.form, spec);
            }
        }
    }
    let mut settled = Settled::default();
    for (file, content) in files {
        let (form, mut kept, mut twins) = (content.form, Vec::new(), Vec::new());
        for spec in &content.tasks {
            match newest.get(spec.name.as_str()) {
                Some((newer, of)) if form < *newer => {
                    twins.push((&spec.name, Twin::new(file.to_owned(), form, spec, *newer, of)));
                }
                _ => kept.push(resolved(spec, pools, || before(file, &spec.name))),
            }
        }
        for (name, mut twin) in twins {
            twin.needed_for = kept.iter().map(|spec| spec.name.clone()).collect();
            settled.warnings.extend(twin.warning.clone());
            settled.twins.entry(name.clone()).or_default().push(twin);
        }
        for spec in &mut kept {
            settled.warnings.extend(spec.filter.vain(pools));
            if form != Form::V1 && sources.refuse_older {
                let (place, how) = (spec.place.clone(), sources.how_to_migrate(file, form));
                let message = format!("this is {form}, and --no-convert was given; run {how}");
                Arc::make_mut(spec).unmet.push(Problem { place, message });
            } else if !spec.unmet.is_empty() {
                settled.without_pools.insert((file.to_owned(), spec.name.clone()));
            }
        }
        settled.specs.push((file.to_owned(), kept));
    }
    settled
}

/// A task with the addresses of the pools that it names, and with the names that nobody defines.
fn resolved(spec: &Arc<Spec>, pools: &Pools, before: impl Fn() -> Option<Arc<Spec>>) -> Arc<Spec> {
    if !spec.filter.names_pools() {
        return Arc::clone(spec);
    }
    let mut resolved = Spec::clone(spec);
    let before = before();
    let before = before.as_ref().map(|before| &*before.filter);
    resolved.unmet = Arc::make_mut(&mut resolved.filter).resolve(pools, before);
    Arc::new(resolved)
}

/// From which form a task comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The form of the file that counts.
    pub form: Form,
    /// Other forms of it, and when an old file may be deleted; may be empty.
    pub message: String,
}

/// When a file in an older form may go.
fn deletable(newer: Form) -> String {
    format!(
        "it may be deleted once every node runs a flowlog that knows {newer} and none is to go back behind that"
    )
}

/// Says it for a task of a file; `is_valid`: what is in force is what stands in the file now.
pub(super) fn origin(
    file: &Path,
    content: &Content,
    is_valid: bool,
    twins: &[Twin],
    sources: &Sources,
) -> Origin {
    let form = content.form;
    let mut parts = Vec::new();
    if form != Form::V1 {
        let first = if is_valid { "" } else { "once its errors are corrected, " };
        parts.push(format!(
            "converted from {form} when it was read; {first}{} writes {} beside it; with that in place, {}",
            sources.how_to_migrate(file, form),
            Form::V1,
            deletable(Form::V1)
        ));
    } else if twins.is_empty() {
        parts.extend(content.mark.as_ref().map(Mark::said));
    }
    parts.extend(twins.iter().map(|twin| of_twin(twin, form, file, is_valid)));
    Origin { form, message: parts.join("; ") }
}

/// What an older file says of the task, and when it may go.
fn of_twin(twin: &Twin, newer: Form, file: &Path, is_valid: bool) -> String {
    let (older, form) = (twin.file.display(), twin.form);
    let names: Vec<String> = twin.needed_for.iter().map(|name| format!("`{name}`")).collect();
    let when = match (names.as_slice(), is_valid) {
        ([], true) => deletable(newer),
        ([], false) => format!("keep it until the errors of {} are corrected", file.display()),
        ([one], _) => format!("keep it for task {one}, which stands nowhere else"),
        (several, _) => format!("keep it for the tasks {}, which stand nowhere else", several.join(", ")),
    };
    match &twin.difference {
        None => format!("{older} says the same in {form}; {when}"),
        Some(difference) => format!(
            "{older} says something else in {form}, which does not count: {difference}; make them agree first, then {when}"
        ),
    }
}
