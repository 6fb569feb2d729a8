//! A task file's text in another form: edited where that can be done, else written anew, and in any case read again and
//! compared before it is given to anybody.

use std::path::Path;
use std::sync::Arc;

use super::comments::Comments;
use super::layout::Layout;
use super::mark::{KEY, Mark};
use super::tree::file_path;
use super::{Form, edit, part, render, same, to_v1};
use crate::config::document::{self, Content, Holds};
use crate::config::raw::{self, Document};
use crate::config::resources::{self, LIST};
use crate::task::{Spec, is_hubbles_key, is_own_key};
use crate::tree::{Entry, Place, Problem, Problems, Tree, Value};

/// Makes a text of another form; `folder` is where tasks of the draft write, `mark` what the text will be said to be made
/// of, `only` the tasks that it is to hold where that is not all of them.
///
/// # Errors
/// What is wrong with the text, or what it says that the form has no place for.
pub(in crate::config) fn convert(
    file: &str,
    text: &str,
    to: Form,
    folder: &Path,
    mark: Option<&Mark>,
    only: Option<&[&str]>,
) -> Result<String, Vec<Problem>> {
    let mut problems = Problems::default();
    let mut content = document::read(file, text, Holds::Anything, folder, &mut problems);
    if !problems.errors.is_empty() {
        return Err(problems.errors);
    }
    if content.form == to {
        return Ok(text.to_owned());
    }
    if let Some(only) = only {
        content.tasks.retain(|spec| only.contains(&spec.name.as_str()));
        // Where its lines can be told from the others', a task's are kept as they are.
        let fewer = part::only(file, text, content.form, only).filter(|fewer| {
            let again = document::read(file, fewer, Holds::Anything, folder, &mut Problems::default());
            again.form == content.form && pairs(&content.tasks, &again.tasks)
        });
        if let Some(fewer) = fewer {
            return convert(file, &fewer, to, folder, mark, None);
        }
    }
    let documents = raw::parse(file, text).map_err(|problem| vec![problem])?;
    let trees = resources::all(&documents, &mut problems).unwrap_or_default();
    let newest = to_v1(&trees, content.form, folder, &mut problems).map(|newest| with_only(newest, only));
    fits(newest.as_ref(), to, folder, &mut problems);
    if !problems.errors.is_empty() {
        return Err(problems.errors);
    }
    let fails = |problem: &str| vec![Problem { place: Place::file(file), message: problem.into() }];
    let (Some(newest), Some(layout)) = (newest, Layout::new(text)) else {
        return Err(fails("cannot be converted: nothing is in it"));
    };
    let edited = match (content.form, to, trees.as_slice()) {
        _ if only.is_some() => None,
        (Form::Draft, Form::V1, _) => edit::from_draft(&layout, &documents, folder, mark),
        (Form::Draft, ..) | (_, Form::Draft, _) => None,
        (.., [root]) => edit::header(&layout, root, to, mark),
        _ => None,
    };
    let comments = only.is_none().then_some(&layout);
    let is_good = |candidate: &String| is_faithful(comments, &content, candidate, to, folder);
    if let Some(edited) = edited.filter(is_good) {
        return Ok(edited);
    }
    let written = write(&layout, &documents, &newest, to, mark);
    if is_good(&written) {
        return Ok(written);
    }
    Err(fails("cannot be converted without a loss; write the new form by hand"))
}

/// A document of v1 with these tasks only.
fn with_only(mut newest: Tree, only: Option<&[&str]>) -> Tree {
    let (Some(only), Value::Map(entries)) = (only, &mut newest.value) else { return newest };
    for entry in entries.iter_mut().filter(|entry| entry.key.eq_ignore_ascii_case("flowLogs")) {
        if let Value::List(tasks) = &mut entry.value.value {
            tasks.retain(|task| part::name(task).is_some_and(|name| only.contains(&name)));
        }
    }
    newest
}

fn pairs(one: &[Arc<Spec>], other: &[Arc<Spec>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
}

/// Whether a text has the form, the same tasks and every comment of the old one.
fn is_faithful(
    layout: Option<&Layout<'_>>,
    content: &Content,
    candidate: &str,
    to: Form,
    folder: &Path,
) -> bool {
    let mut problems = Problems::default();
    let again = document::read("", candidate, Holds::Anything, folder, &mut problems);
    let kept = layout.is_none_or(|layout| missing(layout, candidate).is_empty());
    problems.errors.is_empty() && again.form == to && kept && pairs(&content.tasks, &again.tasks)
}

/// The lines of comments of a text that another has not.
fn missing(layout: &Layout<'_>, other: &str) -> Vec<usize> {
    let other = Layout::new(other);
    let mut there = other.as_ref().map(|other| other.comments(1, other.line_count() + 1)).unwrap_or_default();
    let mut is_missing = |comment: &str| {
        let found = there.iter().position(|other| other.trim_end() == comment.trim_end());
        found.map(|at| there.swap_remove(at)).is_none()
    };
    let all = layout.placed_comments().map(|(line, _, comment)| (line, comment));
    all.filter(|(_, comment)| is_missing(comment)).map(|(line, _)| line).collect()
}

/// What to say of comments that stand with tasks that are left out.
pub(super) fn comments_left_out(file: &str, text: &str, new: &str) -> Option<Problem> {
    let lines = missing(&Layout::new(text)?, new);
    let first = *lines.first()?;
    let place = Place { file: file.into(), line: first, column: 1, path: String::new() };
    let numbers = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let message = match lines.as_slice() {
        [_] => "the comment of this line stands with a task that is left out, and is left out with it".into(),
        _ => format!(
            "the comments of the lines {numbers} stand with tasks that are left out, and are left out with them"
        ),
    };
    Some(Problem { place, message })
}

/// Notes what a form has no place for.
fn fits(newest: Option<&Tree>, to: Form, folder: &Path, problems: &mut Problems) {
    for task in newest.map(tasks).unwrap_or_default() {
        for entry in entries(task) {
            let fits = match to {
                Form::V1 | Form::Hubble => true,
                Form::V1alpha1 => is_hubbles_key(&entry.key) || !is_own_key(&entry.key),
                Form::Draft => fits_draft(task, entry, folder),
            };
            if !fits {
                let message = format!(
                    "{to} has no place for this, so this file is not converted; convert a copy without it, or stay with the newer form"
                );
                problems.error(&entry.place, message);
            }
        }
    }
}

fn fits_draft(task: &Tree, entry: &Entry, folder: &Path) -> bool {
    match (draft_key(&entry.key), part::name(task)) {
        (Some(FILE_PATH), Some(name)) => {
            matches!(&entry.value.value, Value::Scalar { text, .. } if *text == file_path(name, folder))
        }
        (key, _) => key.is_some_and(|key| key != FILE_PATH),
    }
}

const NAME: &str = "name";
const FILE_PATH: &str = "filePath";

/// What the draft calls a key of ours, in whatever case that is written; the last is what it says by the name.
fn draft_key(key: &str) -> Option<&'static str> {
    let called = [
        (NAME, NAME),
        ("includeFilters", "filters"),
        ("excludeFilters", "excludeFilters"),
        ("fieldMask", "fieldMask"),
        ("end", "expiration"),
        (FILE_PATH, FILE_PATH),
    ];
    called.into_iter().find(|(ours, _)| ours.eq_ignore_ascii_case(key)).map(|(_, its)| its)
}

fn entries(tree: &Tree) -> &[Entry] {
    if let Value::Map(entries) = &tree.value { entries } else { &[] }
}

/// The entries of `flowLogs`.
fn tasks(newest: &Tree) -> &[Tree] {
    let list = entries(newest).iter().find(|entry| entry.key.eq_ignore_ascii_case("flowLogs"));
    match list.map(|entry| &entry.value.value) {
        Some(Value::List(tasks)) => tasks,
        _ => &[],
    }
}

/// Writes a file anew; each comment stands where what it belongs to does.
fn write(
    layout: &Layout<'_>,
    documents: &[Document],
    newest: &Tree,
    to: Form,
    mark: Option<&Mark>,
) -> String {
    let is_json = documents.iter().filter_map(|(_, root)| root.as_ref()).all(|root| {
        layout.at(&root.place).and_then(|at| layout.text.get(at..)).is_some_and(|rest| rest.starts_with('{'))
    });
    let trees = match (to, is_json) {
        (Form::Draft, true) => listed(newest, drafts(newest)),
        (Form::Draft, false) => drafts(newest),
        _ => vec![whole(newest, to, mark)],
    };
    if is_json {
        let comments = layout.comments(1, layout.line_count() + 1);
        let texts: String = trees.iter().map(|tree| render::json(tree) + "\n").collect();
        return comments.iter().map(|comment| format!("{}\n", comment.trim_end())).collect::<String>()
            + &texts;
    }
    let begins: Vec<usize> = documents.iter().skip(1).map(|(place, _)| place.line).collect();
    let mut comments = Comments::new(layout, &trees, &begins);
    let texts: Vec<String> = trees.iter().map(|tree| render::yaml(tree, 0, &mut comments)).collect();
    texts.join("---\n") + &comments.rest()
}

fn map(at: &Tree, entries: Vec<Entry>) -> Tree {
    Tree { place: at.place.clone(), value: Value::Map(entries) }
}

fn entry(at: &Tree, key: &str, value: Tree) -> Entry {
    Entry { key: key.into(), place: at.place.clone(), value }
}

fn word(at: &Tree, text: &str) -> Tree {
    Tree { place: at.place.clone(), value: Value::Scalar { text: text.into(), quoted: true } }
}

fn header(at: &Tree, of: Form) -> Vec<Entry> {
    of.header().map_or_else(Vec::new, |(version, kind)| {
        vec![entry(at, "apiVersion", word(at, version)), entry(at, "kind", word(at, kind))]
    })
}

/// A document of each task of its own.
fn drafts(newest: &Tree) -> Vec<Tree> {
    let draft = |task: &Tree| {
        let called = entries(task).iter().filter_map(|entry| Some((draft_key(&entry.key)?, entry)));
        let (name, spec): (Vec<_>, Vec<_>) =
            called.filter(|(key, _)| *key != FILE_PATH).partition(|(key, _)| *key == NAME);
        let renamed = |all: Vec<(&str, &Entry)>| -> Vec<Entry> {
            all.into_iter().map(|(key, entry)| Entry { key: key.into(), ..entry.clone() }).collect()
        };
        let mut whole = header(newest, Form::Draft);
        let parts = [("metadata", renamed(name)), ("spec", renamed(spec))];
        whole.extend(parts.map(|(key, part)| entry(newest, key, map(newest, part))));
        map(newest, whole)
    };
    tasks(newest).iter().map(draft).collect()
}

/// Several resources as one, which is what a text of JSON can hold.
fn listed(at: &Tree, resources: Vec<Tree>) -> Vec<Tree> {
    if resources.len() < 2 {
        return resources;
    }
    let items = Tree { place: at.place.clone(), value: Value::List(resources) };
    let header = [("apiVersion", word(at, "v1")), ("kind", word(at, LIST)), ("items", items)];
    vec![map(at, header.map(|(key, value)| entry(at, key, value)).into())]
}

/// All tasks under the header of a form.
fn whole(newest: &Tree, to: Form, mark: Option<&Mark>) -> Tree {
    let mut whole = header(newest, to);
    if let Some(mark) = mark {
        let pairs = [("file", mark.file.as_str()), ("form", mark.form.name()), ("hash", &mark.hash)];
        let pairs = pairs.map(|(key, value)| entry(newest, key, word(newest, value)));
        whole.push(entry(newest, KEY, map(newest, pairs.into())));
    }
    let rest =
        entries(newest).iter().filter(|entry| !matches!(entry.key.as_str(), "apiVersion" | "kind" | KEY));
    whole.extend(rest.cloned());
    map(newest, whole)
}
