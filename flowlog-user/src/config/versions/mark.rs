use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use super::Form;
use crate::tree::{Key, Problems, Tree};

/// Of what a text was made: stands in the file as `convertedFrom`, so that it is done once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Name of the file, without its folder.
    pub file: String,
    /// Its form.
    pub form: Form,
    /// SHA-256 of its text, in hexadecimal digits.
    pub hash: String,
}

/// The key it stands under.
pub(in crate::config) const KEY: &str = "convertedFrom";
const OLDER: [Form; 3] = [Form::V1alpha1, Form::Draft, Form::Hubble];
const KEYS: &[&str] = &["file", "form", "hash"];

impl Mark {
    pub(in crate::config) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        let find =
            |key: &str| KEYS.iter().find(|name| **name == key).map_or(Key::Unknown, |name| Key::Known(name));
        let fields = tree.fields("key", KEYS, find, problems);
        let mut text = |key: &str| match fields.get(key) {
            Some(tree) => tree.text(problems).map(str::to_owned),
            None => {
                problems.error(&tree.place, format!("{key} is missing; add it or remove `{KEY}`"));
                None
            }
        };
        let (file, form, hash) = (text("file"), text("form"), text("hash"));
        let form = form?;
        let found = Form::ALL.into_iter().find(|one| one.name() == form);
        if found.is_none() {
            let place = fields.get("form").map_or(&tree.place, |form| &form.place);
            problems.unknown(place, "form", &form, &Form::ALL.map(Form::name));
        }
        let mark = Self { file: file?, form: found?, hash: hash? };
        let place = |key: &str| fields.get(key).map_or(&tree.place, |value| &value.place);
        if let Some(message) = mark.misnames(&tree.place.file) {
            problems.warning(place("file"), message);
        } else if mark.form == Form::V1 {
            let message = format!(
                "nothing is converted from v1; write which form {} had ({}), or remove `{KEY}`",
                mark.file,
                OLDER.map(Form::name).join(", ")
            );
            problems.warning(place("form"), message);
        }
        Some(mark)
    }

    /// What is wrong with the file that it names in `own`; then it says nothing of any file.
    fn misnames(&self, own: &str) -> Option<String> {
        let name = Path::new(&self.file).file_name();
        let is_name = name.is_some_and(|name| *name == *self.file);
        if !is_name {
            let name = name.map_or("web.yaml".into(), OsStr::to_string_lossy);
            return Some(format!(
                "expected the name of a file in the same folder, without a path, such as `{name}`, found `{}`; write that, or \
                 remove `{KEY}`",
                self.file
            ));
        }
        (Path::new(own).file_name() == name).then(|| {
            format!(
                "{} is this file itself; write the name of the one that it was made of, or remove `{KEY}`",
                self.file
            )
        })
    }
}

impl Mark {
    /// In a sentence.
    pub(in crate::config) fn said(&self) -> String {
        format!("made of {} ({}, SHA-256 {})", self.file, self.form, self.hash)
    }
}

impl fmt::Display for Mark {
    /// As a value of YAML and JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        write!(
            f,
            "{{\"file\": {}, \"form\": {}, \"hash\": {}}}",
            text(&self.file),
            text(self.form.name()),
            text(&self.hash)
        )
    }
}
