//! A task file's text in another form: edited where that can be done, else written anew, and in any case read again and
//! compared before it is given to anybody.

use std::path::Path;
use std::sync::Arc;

use super::layout::Layout;
use super::mark::{KEY, Mark};
use super::tree::file_path;
use super::{Form, edit, render, same, to_v1};
use crate::config::document::{self, Content, Holds};
use crate::config::raw::{self, Document};
use crate::task::{Spec, is_hubbles_key, is_own_key};
use crate::tree::{Entry, Problem, Problems, Tree, Value};

/// Makes a text of another form; `folder` is where tasks of the draft write, `mark` what the text will be said to be made of.
///
/// # Errors
/// What is wrong with the text, or what it says that the form has no place for.
pub(in crate::config) fn convert(
    file: &str,
    text: &str,
    to: Form,
    folder: &Path,
    mark: Option<&Mark>,
) -> Result<String, Vec<Problem>> {
    let mut problems = Problems::default();
    let content = document::read(file, text, Holds::Anything, folder, &mut problems);
    if !problems.errors.is_empty() {
        return Err(problems.errors);
    }
    if content.form == to {
        return Ok(text.to_owned());
    }
    let documents = raw::parse(file, text).map_err(|problem| vec![problem])?;
    let roots: Vec<(usize, &Tree)> =
        documents.iter().filter_map(|(place, root)| Some((place.line, root.as_ref()?))).collect();
    let trees: Vec<&Tree> = roots.iter().map(|(_, root)| *root).collect();
    let newest = to_v1(&trees, content.form, folder, &mut problems);
    fits(newest.as_ref(), to, folder, &mut problems);
    if !problems.errors.is_empty() {
        return Err(problems.errors);
    }
    let fails =
        |problem: &str| vec![Problem { place: crate::tree::Place::file(file), message: problem.into() }];
    let (Some(newest), Some(layout)) = (newest, Layout::new(text)) else {
        return Err(fails("cannot be converted: nothing is in it"));
    };
    let edited = match (content.form, to, trees.as_slice()) {
        (Form::Draft, Form::V1, _) => edit::from_draft(&layout, &roots, folder, mark),
        (Form::Draft, ..) | (_, Form::Draft, _) => None,
        (.., [root]) => edit::header(&layout, root, to, mark),
        _ => None,
    };
    let is_good = |candidate: &String| is_faithful(&layout, &content, candidate, to, folder);
    if let Some(edited) = edited.filter(is_good) {
        return Ok(edited);
    }
    let written = write(&layout, &documents, &newest, to, mark);
    if is_good(&written) {
        return Ok(written);
    }
    Err(fails("cannot be converted without a loss; write the new form by hand"))
}

/// Whether a text has the form, the same tasks and every comment.
fn is_faithful(layout: &Layout<'_>, content: &Content, candidate: &str, to: Form, folder: &Path) -> bool {
    let mut problems = Problems::default();
    let again = document::read("", candidate, Holds::Anything, folder, &mut problems);
    let Some(after) = Layout::new(candidate) else { return false };
    let mut comments = after.comments(1, after.line_count() + 1);
    let kept = layout.comments(1, layout.line_count() + 1).into_iter().all(|comment| {
        let found = comments.iter().position(|other| other.trim_end() == comment.trim_end());
        found.map(|at| comments.swap_remove(at)).is_some()
    });
    let pairs = |one: &[Arc<Spec>], other: &[Arc<Spec>]| {
        one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
    };
    problems.errors.is_empty() && again.form == to && kept && pairs(&content.tasks, &again.tasks)
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
                let message = format!("{to} has no place for this; nothing is converted");
                problems.error(&entry.place, message);
            }
        }
    }
}

fn fits_draft(task: &Tree, entry: &Entry, folder: &Path) -> bool {
    let name = entries(task).iter().find(|entry| entry.key == "name").map(|entry| &entry.value.value);
    match (entry.key.as_str(), name) {
        ("filePath", Some(Value::Scalar { text: name, .. })) => {
            matches!(&entry.value.value, Value::Scalar { text, .. } if *text == file_path(name, folder))
        }
        (key, _) => matches!(key, "name" | "includeFilters" | "excludeFilters" | "fieldMask" | "end"),
    }
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

/// Writes a file anew; its comments stand above.
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
    let show = |tree: &Tree| if is_json { render::json(tree) + "\n" } else { render::yaml(tree, 0) };
    let comments = layout.comments(1, layout.line_count() + 1);
    let mut out: String = comments.iter().map(|comment| format!("{}\n", comment.trim_end())).collect();
    let map = |entries: Vec<Entry>| Tree { place: newest.place.clone(), value: Value::Map(entries) };
    let entry = |key: &str, value: Tree| Entry { key: key.into(), place: newest.place.clone(), value };
    let text = |text: &str| Tree {
        place: newest.place.clone(),
        value: Value::Scalar { text: text.into(), quoted: true },
    };
    let header = |of: Form| -> Vec<Entry> {
        of.header().map_or_else(Vec::new, |(version, kind)| {
            vec![entry("apiVersion", text(version)), entry("kind", text(kind))]
        })
    };
    if to == Form::Draft {
        for (at, task) in tasks(newest).iter().enumerate() {
            let all = entries(task);
            let name = all.iter().filter(|entry| entry.key == "name").cloned().collect();
            let spec =
                all.iter().filter(|entry| !matches!(entry.key.as_str(), "name" | "filePath")).map(|entry| {
                    let key = match entry.key.as_str() {
                        "includeFilters" => "filters",
                        "end" => "expiration",
                        same => same,
                    };
                    Entry { key: key.into(), ..entry.clone() }
                });
            let mut whole = header(to);
            whole.extend([entry("metadata", map(name)), entry("spec", map(spec.collect()))]);
            out += if at == 0 { "" } else { "---\n" };
            out += &show(&map(whole));
        }
        return out;
    }
    let mut whole = header(to);
    if let Some(mark) = mark {
        let pairs = [("file", mark.file.as_str()), ("form", mark.form.name()), ("hash", &mark.hash)];
        whole.push(entry(KEY, map(pairs.map(|(key, value)| entry(key, text(value))).into())));
    }
    let rest =
        entries(newest).iter().filter(|entry| !matches!(entry.key.as_str(), "apiVersion" | "kind" | KEY));
    whole.extend(rest.cloned());
    out + &show(&map(whole))
}
