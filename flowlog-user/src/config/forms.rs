//! Which of several forms of a task counts, and what each task needs of other files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Sources;
use super::diff::{Others, Owned};
use super::document::Content;
use super::lineage::{Said, families};
use super::superseded::{self, Removed, Superseded};
use super::versions::{Form, Twin};
use crate::record::Pools;
use crate::task::Spec;
use crate::tree::Problem;

/// The tasks of all files, of each the newest form that can be.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// In the order of the files.
    pub(super) specs: Vec<(PathBuf, Vec<Arc<Spec>>)>,
    /// What there is beside.
    pub(super) forms: Forms,
    /// Newer forms that cannot be, so that an older one counts.
    pub(super) refused: Vec<(Owned, Vec<Problem>)>,
    /// Tasks that lack nothing but pools of which they had the addresses.
    pub(super) without_pools: BTreeSet<String>,
    /// What is allowed and worth knowing.
    pub(super) warnings: Vec<Problem>,
}

/// Of tasks that stand in several forms, by name and file.
#[derive(Debug, Default)]
pub(super) struct Forms {
    /// Older forms that do not count, by the one that does.
    twins: BTreeMap<(String, PathBuf), Vec<Twin>>,
    /// Newer forms of a definition.
    newer: BTreeMap<(String, PathBuf), Vec<(PathBuf, Form)>>,
    /// Every other form of one that counts.
    pub(super) others: Others,
    /// Tasks that older files have and their newer ones have not any more.
    removed: Removed,
}

/// Those of one definition.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FormsOf<'a> {
    twins: &'a [Twin],
    newer: &'a [(PathBuf, Form)],
    removed: &'a [(PathBuf, Vec<String>)],
}

impl Forms {
    pub(super) fn of(&self, task: &str, file: &Path) -> FormsOf<'_> {
        let key = (task.to_owned(), file.to_owned());
        FormsOf {
            twins: self.twins.get(&key).map_or(&[], Vec::as_slice),
            newer: self.newer.get(&key).map_or(&[], Vec::as_slice),
            removed: self.removed.get(file).map_or(&[], Vec::as_slice),
        }
    }

    /// Whether two files have forms of one task, one of which counts.
    pub(super) fn are_one(&self, task: &str, one: &Path, other: &Path) -> bool {
        let counts_beside = |counts: &Path, beside: &Path| {
            let others = self.others.get(&(task.to_owned(), counts.to_owned()));
            others.is_some_and(|others| others.iter().any(|other| *other.file == *beside))
        };
        counts_beside(one, other) || counts_beside(other, one)
    }
}

/// What becomes of a definition.
enum Verdict<'a> {
    Counts(Arc<Spec>),
    /// It does not, since this one does, in these files.
    Older {
        newer: &'a Arc<Spec>,
        form: Form,
        files: Vec<PathBuf>,
    },
    /// It would, and cannot be.
    Refused,
}

/// Settles what depends on more than one file. Of several forms of a task the newest that can be counts; of several files
/// in one form each does, which somebody else has to decide, as about forms that are not one owner's. `in_force` gives what
/// is in force of a name, and whether it runs already.
pub(super) fn settle<'a, 'b>(
    files: impl Iterator<Item = (&'a Path, &'a Content, bool)> + Clone,
    sources: &Sources,
    pools: &Pools,
    in_force: impl Fn(&str) -> Option<(&'b Owned, bool)>,
) -> Settled {
    let mut by_name: BTreeMap<&str, Vec<Said<'a>>> = BTreeMap::new();
    for (file, content, is_valid) in files.clone() {
        let (form, mark) = (content.form, content.mark.as_ref().map(|(_, mark)| mark));
        for spec in &content.tasks {
            by_name.entry(&spec.name).or_default().push(Said { file, form, mark, spec, is_valid });
        }
    }
    let superseded = Superseded::new(files.clone());
    let mut settled = Settled { warnings: superseded.wrong.clone(), ..Settled::default() };
    let mut verdicts: HashMap<(&Path, &str), Verdict<'a>> = HashMap::new();
    for (name, all) in by_name {
        let in_force = in_force(name);
        let stays = |(owned, _): &(&Owned, bool)| all.iter().any(|said| *said.file == *owned.file);
        let is_said = in_force.as_ref().is_some_and(stays);
        for family in families(all) {
            let (family, removed) = superseded.living(family);
            for (said, newer) in removed {
                let warning = superseded::note(&mut settled.forms.removed, &said, newer);
                settled.warnings.push(warning);
            }
            let of_it =
                |(owned, _): &(&Owned, bool)| !is_said || family.iter().any(|said| *said.file == *owned.file);
            let in_force = in_force.filter(of_it);
            let mut judge = Judge { sources, pools, in_force, settled: &mut settled };
            judge.family(name, &family, &mut verdicts);
        }
    }
    for (file, content, _) in files {
        let (mut kept, mut twins) = (Vec::new(), Vec::new());
        for spec in &content.tasks {
            match verdicts.get(&(file, &*spec.name)) {
                Some(Verdict::Counts(resolved)) => kept.push(Arc::clone(resolved)),
                Some(Verdict::Older { newer, form, files }) => {
                    twins.push((files, Twin::new(file.to_owned(), content.form, spec, *form, newer)));
                }
                Some(Verdict::Refused) | None => {}
            }
        }
        for (files, mut twin) in twins {
            twin.needed_for = kept.iter().map(|spec| spec.name.clone()).collect();
            settled.warnings.extend(twin.warning.clone());
            for newer in files {
                let key = (twin.task.clone(), newer.clone());
                settled.forms.twins.entry(key).or_default().push(twin.clone());
            }
        }
        settled.warnings.extend(kept.iter().flat_map(|spec| spec.filter.vain(pools)));
        settled.specs.push((file.to_owned(), kept));
    }
    settled
}

/// Decides which form of a task counts.
struct Judge<'a> {
    sources: &'a Sources,
    pools: &'a Pools,
    /// What is in force of it, and whether it runs already.
    in_force: Option<(&'a Owned, bool)>,
    settled: &'a mut Settled,
}

impl Judge<'_> {
    fn family<'a>(
        &mut self,
        name: &str,
        family: &[Said<'a>],
        verdicts: &mut HashMap<(&'a Path, &'a str), Verdict<'a>>,
    ) {
        let before = self.in_force.map(|(owned, _)| Arc::clone(&owned.spec));
        let resolved: Vec<Arc<Spec>> =
            family.iter().map(|said| self.with_what_it_lacks(said, before.as_ref())).collect();
        let can_be = |(said, spec): (&Said<'_>, &Arc<Spec>)| {
            let stays = self.in_force.is_some_and(|(owned, runs)| {
                *owned.file == *said.file && (runs || self.lacks_other(said).is_empty())
            });
            (said.is_valid && (spec.unmet.is_empty() || stays)).then_some(said.form)
        };
        let counts = family.iter().zip(&resolved).find_map(can_be);
        let Some(counts) = counts.or(family.first().map(|said| said.form)) else { return };
        let those = || family.iter().zip(&resolved).filter(|(said, _)| said.form == counts);
        let files: Vec<PathBuf> = those().map(|(said, _)| said.file.to_owned()).collect();
        let Some((Said { spec: newest, .. }, _)) = those().next() else { return };
        for (said, spec) in family.iter().zip(&resolved) {
            let verdict = match said.form.cmp(&counts) {
                std::cmp::Ordering::Equal => {
                    if self.in_force.is_some() && !spec.unmet.is_empty() && self.lacks_other(said).is_empty()
                    {
                        self.settled.without_pools.insert(name.to_owned());
                    }
                    Verdict::Counts(Arc::clone(spec))
                }
                std::cmp::Ordering::Less => {
                    Verdict::Older { newer: newest, form: counts, files: files.clone() }
                }
                std::cmp::Ordering::Greater => {
                    let owned = Owned { spec: Arc::clone(spec), file: said.file.into() };
                    self.settled.refused.push((owned, spec.unmet.clone()));
                    Verdict::Refused
                }
            };
            verdicts.insert((said.file, &*said.spec.name), verdict);
        }
        if family.len() > 1 {
            self.note(name, family, &resolved, counts);
        }
    }

    /// Remembers which forms there are of a task.
    fn note(&mut self, name: &str, family: &[Said<'_>], resolved: &[Arc<Spec>], counts: Form) {
        let forms = &mut self.settled.forms;
        for said in family {
            let key = || (name.to_owned(), said.file.to_owned());
            let newer: Vec<_> = family.iter().filter(|other| other.form > said.form).collect();
            if !newer.is_empty() {
                forms.newer.insert(key(), newer.iter().map(|of| (of.file.to_owned(), of.form)).collect());
            }
            if said.form == counts {
                let others = family.iter().zip(resolved).filter(|(other, _)| other.form != counts);
                let owned = |(other, spec): (&Said<'_>, &Arc<Spec>)| Owned {
                    spec: Arc::clone(spec),
                    file: other.file.into(),
                };
                forms.others.insert(key(), others.map(owned).collect());
            }
        }
    }

    /// A task with the addresses of its pools, and with everything that it asks for in vain.
    fn with_what_it_lacks(&self, said: &Said<'_>, before: Option<&Arc<Spec>>) -> Arc<Spec> {
        let mut spec = resolved(said.spec, self.pools, before);
        let other = self.lacks_other(said);
        if !other.is_empty() {
            Arc::make_mut(&mut spec).unmet.extend(other);
        }
        spec
    }

    /// What it asks for in vain, pools apart.
    fn lacks_other(&self, Said { file, form, spec, .. }: &Said<'_>) -> Vec<Problem> {
        let mut lacks = Vec::new();
        if *form != Form::V1 && self.sources.refuse_older {
            let place = spec.place.clone();
            let how = match self.sources.unnamed(file, *form) {
                Some(newer) => unnamed(&newer),
                None => format!("run {}", self.sources.how_to_migrate(file, *form)),
            };
            let message = format!("this is {form}, and --no-convert was given; {how}");
            lacks.push(Problem { place, message });
        }
        if let Some(roots) = self.sources.roots.as_ref().filter(|_| !spec.file.is_stdout())
            && let Err(error) = roots.allow(&spec.name, &spec.file.path)
        {
            lacks.push(Problem { place: spec.path_place.clone(), message: error.to_string() });
        }
        lacks
    }
}

/// A task with the addresses of the pools that it names, and with the names that nobody defines.
fn resolved(spec: &Arc<Spec>, pools: &Pools, before: Option<&Arc<Spec>>) -> Arc<Spec> {
    if !spec.filter.names_pools() {
        return Arc::clone(spec);
    }
    let mut resolved = Spec::clone(spec);
    let before = before.map(|before| &*before.filter);
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

/// What to do where the file that migrating would write is there and nobody has named it.
fn unnamed(newer: &Path) -> String {
    format!(
        "{} is there beside it and not among the paths that were given, so it does not count: name it, too, or its folder",
        newer.display()
    )
}

/// Says it for a task of a file; `trouble`: what must be before the text that is in force is sure to be there at another
/// start, where it is not. `bad`: the file that migrating would write is there, and not valid.
pub(super) fn origin(
    file: &Path,
    content: &Content,
    trouble: Option<&str>,
    FormsOf { twins, newer, removed }: FormsOf<'_>,
    bad: Option<&Path>,
    sources: &Sources,
) -> Origin {
    let form = content.form;
    let mut parts = Vec::new();
    let read = match sources.refuse_older {
        false => format!("converted from {form} when it was read"),
        true => format!(
            "{form} is refused, since --no-convert was given: the task goes on as it was, until flowlog is started again"
        ),
    };
    if let Some((newer, its)) = newer.first() {
        parts.push(format!(
            "{read}; {} says it in {its} and is refused: correct that, and it counts; keep {} \
             until then",
            newer.display(),
            file.display()
        ));
    } else if let (true, Some(bad)) = (form != Form::V1, bad) {
        parts.push(format!(
            "{read}; {} beside it is not valid: correct that (or move it away and migrate \
             again), and keep {} until then",
            bad.display(),
            file.display()
        ));
    } else if let Some(newer) = sources.unnamed(file, form) {
        parts.push(format!("{read}; {}", unnamed(&newer)));
    } else if form != Form::V1 {
        let first = trouble.map(|trouble| format!("once {trouble}, ")).unwrap_or_default();
        parts.push(format!(
            "{read}; {first}{} writes {} beside it; with that in place, {}",
            sources.how_to_migrate(file, form),
            Form::V1,
            deletable(Form::V1)
        ));
    } else if twins.is_empty() {
        parts.extend(content.mark.as_ref().map(|(_, mark)| mark.said()));
    }
    parts.extend(twins.iter().map(|twin| of_twin(twin, form, trouble)));
    parts.extend(removed.iter().map(|(old, names)| superseded::removed(names, old, file)));
    Origin { form, message: parts.join("; ") }
}

/// What an older file says of the task, and when it may go.
fn of_twin(twin: &Twin, newer: Form, trouble: Option<&str>) -> String {
    let (older, form) = (twin.file.display(), twin.form);
    let names: Vec<String> = twin.needed_for.iter().map(|name| format!("`{name}`")).collect();
    let when = match (names.as_slice(), trouble) {
        ([], None) => deletable(newer),
        ([], Some(trouble)) => format!("keep it until {trouble}"),
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
