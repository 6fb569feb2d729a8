//! Which of several forms of a task counts, and what each task needs of other files.

use std::collections::{BTreeMap, HashMap};
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
}

/// Settles what depends on more than one file.
pub(super) fn settle<'a>(
    files: impl Iterator<Item = (&'a Path, &'a Content)> + Clone,
    sources: &Sources,
    pools: &Pools,
) -> Settled {
    let mut newest: HashMap<&str, &Arc<Spec>> = HashMap::new();
    for spec in
        files.clone().filter(|(_, content)| content.form == Form::V1).flat_map(|(_, content)| &content.tasks)
    {
        newest.entry(&spec.name).or_insert(spec);
    }
    let mut settled = Settled::default();
    for (file, content) in files {
        let mut kept = Vec::new();
        for spec in &content.tasks {
            let older = content.form != Form::V1;
            if let Some(newer) = newest.get(spec.name.as_str()).filter(|_| older) {
                let twin = Twin::new(file.to_owned(), content.form, spec, newer);
                settled.twins.entry(spec.name.clone()).or_default().push(twin);
                continue;
            }
            let mut spec = resolved(spec, pools);
            if older && sources.refuse_older {
                let message = format!(
                    "this is {}, and --no-convert was given; run `flowlog migrate {} --write`",
                    content.form,
                    file.display()
                );
                let place = spec.place.clone();
                Arc::make_mut(&mut spec).unmet.push(Problem { place, message });
            }
            kept.push(spec);
        }
        settled.specs.push((file.to_owned(), kept));
    }
    settled
}

/// A task with the addresses of the pools that it names, and with the names that nobody defines.
fn resolved(spec: &Arc<Spec>, pools: &Pools) -> Arc<Spec> {
    if !spec.filter.names_pools() {
        return Arc::clone(spec);
    }
    let mut resolved = Spec::clone(spec);
    resolved.unmet = Arc::make_mut(&mut resolved.filter).resolve(pools);
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
const DELETABLE: &str = "it may be deleted once every node runs a flowlog that knows flowlog.io/v1 and none is to go back behind that";

/// Says it for a task of a file.
pub(super) fn origin(file: &Path, content: &Content, twins: &[Twin]) -> Origin {
    let form = content.form;
    let message = if form != Form::V1 {
        format!(
            "converted from {form} when it was read; `flowlog migrate {} --write` writes {} beside it; with that in place, {DELETABLE}",
            file.display(),
            Form::V1
        )
    } else if twins.is_empty() {
        content.mark.as_ref().map(Mark::said).unwrap_or_default()
    } else {
        let each = twins.iter().map(|twin| match &twin.difference {
            None => format!("{} says the same in {}; {DELETABLE}", twin.file.display(), twin.form),
            Some(difference) => format!(
                "{} says something else in {}, which does not count: {difference}; make them agree first, then {DELETABLE}",
                twin.file.display(),
                twin.form
            ),
        });
        each.collect::<Vec<_>>().join("; ")
    };
    Origin { form, message }
}
