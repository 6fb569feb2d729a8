//! Which definitions of one name are forms of one task: those of one owner.

use std::path::Path;
use std::sync::Arc;

use super::files;
use super::versions::{Form, Mark, bare_stem};
use crate::task::Spec;

/// A task as a file says it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    pub(super) file: &'a Path,
    pub(super) form: Form,
    /// Of what the file was made.
    pub(super) mark: Option<&'a Mark>,
    pub(super) spec: &'a Arc<Spec>,
    /// Nothing is wrong with the file.
    pub(super) is_valid: bool,
}

impl Said<'_> {
    /// Whether it is a newer form of another: both write to the same filePath, or it descends from that one's file.
    fn is_newer_form_of(&self, older: &Self) -> bool {
        self.form > older.form
            && (self.spec.file.path == older.spec.file.path || self.descends_from(older.file))
    }

    /// Whether it stands beside a file and names that as the one of which it was made, or is called as that is
    /// (`web.v1.yaml` beside `web.yaml`).
    pub(super) fn descends_from(&self, older: &Path) -> bool {
        let names_it =
            || self.mark.is_some_and(|mark| older.file_name().is_some_and(|name| *name == *mark.file));
        let is_called_so = || bare_stem(self.file) == bare_stem(older);
        files::parent(self.file) == files::parent(older) && (names_it() || is_called_so())
    }
}

/// Divides the definitions of a name into those of one task each, the newest form first.
pub(super) fn families(all: Vec<Said<'_>>) -> Vec<Vec<Said<'_>>> {
    let mut families: Vec<Vec<Said<'_>>> = Vec::new();
    for one in all {
        let is_related = |other: &Said<'_>| one.is_newer_form_of(other) || other.is_newer_form_of(&one);
        let (own, rest): (Vec<_>, Vec<_>) =
            families.into_iter().partition(|family| family.iter().any(is_related));
        let mut family: Vec<Said<'_>> = own.into_iter().flatten().collect();
        family.push(one);
        families = rest;
        families.push(family);
    }
    families.iter_mut().for_each(|family| family.sort_by_key(|one| std::cmp::Reverse(one.form)));
    families
}
