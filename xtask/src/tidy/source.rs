//! A Rust file as the rules see it: code without comments and strings, and which lines are test code.

use std::collections::BTreeSet;

/// One file.
pub(crate) struct Source<'a> {
    /// Relative to the tree's root, with `/`.
    pub(crate) path: &'a str,
    /// As written.
    pub(crate) raw: Vec<&'a str>,
    /// The same lines with comments and the insides of strings blanked.
    pub(crate) code: Vec<String>,
    /// Lines inside `#[cfg(test)]` items; all of them in a test file.
    test: Vec<bool>,
}

impl<'a> Source<'a> {
    /// Reads a file; `all_test` when its parent declares it under `#[cfg(test)]`.
    pub(crate) fn new(path: &'a str, text: &'a str, all_test: bool) -> Self {
        let code: Vec<String> = blank(text).lines().map(str::to_owned).collect();
        let in_tests = all_test || path.starts_with("tests/") || path.contains("/tests/");
        let test = if in_tests { vec![true; code.len()] } else { test_lines(&code) };
        Self { path, raw: text.lines().collect(), code, test }
    }

    /// Lines of code with their numbers from 1, without test code.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.all_lines().filter(|(number, _)| !self.test.get(number - 1).copied().unwrap_or(false))
    }

    /// Lines of code with their numbers from 1.
    pub(crate) fn all_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.iter().enumerate().map(|(index, line)| (index + 1, line.as_str()))
    }
}

/// True where `word` stands alone, not as part of a longer name.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|s| s.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|s| s.chars().next());
        let ends_in_name = word.chars().next_back().is_some_and(name);
        let goes_on = ends_in_name && after.is_some_and(name);
        !before.is_some_and(name) && !goes_on
    })
}

/// Files that a parent declares as `#[cfg(test)] mod name;`.
pub(crate) fn test_files(files: &[(String, String)]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
        let mut after_attribute = false;
        for line in text.lines().map(str::trim) {
            let rest = line.strip_prefix("#[cfg(test)]").map(str::trim);
            let item = rest.unwrap_or(line);
            if (after_attribute || rest.is_some())
                && let Some(name) =
                    item.trim_start_matches("pub ").strip_prefix("mod ").and_then(|n| n.strip_suffix(';'))
            {
                let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
                let stem = file.trim_end_matches(".rs");
                let inside = if matches!(stem, "mod" | "lib" | "main") {
                    folder.to_owned()
                } else {
                    format!("{folder}/{stem}")
                };
                found.insert(format!("{inside}/{name}.rs"));
                found.insert(format!("{inside}/{name}/mod.rs"));
            }
            after_attribute = rest.is_some_and(str::is_empty) || (after_attribute && line.starts_with("#["));
        }
    }
    found
}

/// Marks the item after each `#[cfg(test)]`: to its closing brace, or to its semicolon.
fn test_lines(code: &[String]) -> Vec<bool> {
    let mut marks = vec![false; code.len()];
    let mut depth: Option<i64> = None;
    for (mark, line) in marks.iter_mut().zip(code) {
        if depth.is_none() && line.trim_start().starts_with("#[cfg(test)]") {
            depth = Some(0);
        }
        let Some(open) = depth.as_mut() else { continue };
        *mark = true;
        for c in line.chars() {
            match c {
                '{' => *open += 1,
                '}' => *open -= 1,
                _ => {}
            }
        }
        let ends = line.trim_end();
        if *open <= 0 && (ends.ends_with('}') || ends.ends_with(';')) {
            depth = None;
        }
    }
    marks
}

/// Blanks comments and the insides of strings and characters; line breaks stay where they are.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied();
    let mut out = String::with_capacity(text.len());
    let mut here = 0;
    while let Some(c) = at(here) {
        let end = match c {
            '/' if at(here + 1) == Some('/') => line_end(&chars, here),
            '/' if at(here + 1) == Some('*') => comment_end(&chars, here),
            '"' => string_end(&chars, here),
            'r' if !previous_is_name(&chars, here) => raw_string_end(&chars, here).unwrap_or(here),
            '\'' => character_end(&chars, here).unwrap_or(here),
            _ => here,
        };
        if end == here {
            out.push(c);
            here += 1;
            continue;
        }
        // A string keeps its quotes, so that the code around it still reads as code.
        let quoted = c != '/';
        for (index, inside) in (here..end).filter_map(|index| Some((index, at(index)?))) {
            let edge = quoted && (index == here || index + 1 == end);
            out.push(if inside == '\n' || edge { inside } else { ' ' });
        }
        here = end;
    }
    out
}

fn previous_is_name(chars: &[char], here: usize) -> bool {
    let before = here.checked_sub(1).and_then(|index| chars.get(index));
    // `br"..."` is a raw string too.
    before.is_some_and(|c| (c.is_alphanumeric() && *c != 'b') || *c == '_')
}

fn line_end(chars: &[char], here: usize) -> usize {
    chars.iter().skip(here).position(|c| *c == '\n').map_or(chars.len(), |length| here + length)
}

fn comment_end(chars: &[char], here: usize) -> usize {
    let mut depth = 0_u32;
    let mut index = here;
    while let Some(c) = chars.get(index) {
        match (c, chars.get(index + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                index += 1;
            }
            ('*', Some('/')) => {
                depth = depth.saturating_sub(1);
                index += 1;
            }
            _ => {}
        }
        index += 1;
        if depth == 0 {
            return index;
        }
    }
    chars.len()
}

fn string_end(chars: &[char], here: usize) -> usize {
    let mut index = here + 1;
    while let Some(c) = chars.get(index) {
        index += match c {
            '\\' => 2,
            '"' => return index + 1,
            _ => 1,
        };
    }
    chars.len()
}

fn raw_string_end(chars: &[char], here: usize) -> Option<usize> {
    let hashes = chars.iter().skip(here + 1).take_while(|c| **c == '#').count();
    if chars.get(here + 1 + hashes) != Some(&'"') {
        return None;
    }
    let mut index = here + 2 + hashes;
    while let Some(c) = chars.get(index) {
        let closing = chars.iter().skip(index + 1).take(hashes).filter(|c| **c == '#').count();
        if *c == '"' && closing == hashes {
            return Some(index + 1 + hashes);
        }
        index += 1;
    }
    Some(chars.len())
}

/// The end of a character literal; `None` for a lifetime.
fn character_end(chars: &[char], here: usize) -> Option<usize> {
    if chars.get(here + 1) == Some(&'\\') {
        let length = chars.iter().skip(here + 3).position(|c| *c == '\'')?;
        return Some(here + 4 + length);
    }
    (chars.get(here + 2) == Some(&'\'')).then_some(here + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_blanked() {
        let text = "let a = \"unsafe // x\"; // unsafe\n/* a /* b */ unsafe */ let c = '\\''; let d = '\"';\n\
                    let e = r#\"a \" unsafe\"#; fn f<'a>() {} /// doc unsafe\n";
        let code = blank(text);
        assert!(!code.contains("unsafe"), "{code}");
        assert!(code.contains("let d = ' ';") && code.contains("fn f<'a>() {}"), "{code}");
        assert_eq!(code.lines().count(), text.lines().count());
    }

    #[test]
    fn words_stand_alone() {
        assert!(has_word("unsafe { x }", "unsafe"));
        assert!(!has_word("is_unsafe()", "unsafe"));
        assert!(!has_word("unsafely()", "unsafe"));
        assert!(has_word("use zstd::Encoder", "zstd::"));
        assert!(!has_word("my_zstd::Encoder", "zstd::"));
    }

    #[test]
    fn test_items_are_known() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n#[cfg(test)]\nuse d;\nfn e() {}\n";
        let source = Source::new("x.rs", text, false);
        let kept: Vec<usize> = source.lines().map(|(number, _)| number).collect();
        assert_eq!(kept, [1, 7, 10]);
    }

    #[test]
    fn test_files_are_known_by_their_declaration() {
        let files = [("a/src/b.rs".to_owned(), "#[cfg(test)]\nmod probe;\n".to_owned())];
        assert!(test_files(&files).contains("a/src/b/probe.rs"));
        let files = [(
            "a/src/b/mod.rs".to_owned(),
            "#[cfg(test)]\n#[path = \"x\"]\nmod probe;\nmod real;\n".to_owned(),
        )];
        assert!(test_files(&files).contains("a/src/b/probe.rs"));
        assert!(!test_files(&files).contains("a/src/b/real.rs"));
    }
}
