//! Where things stand in a YAML text: what an edit that keeps everything else needs to know.

use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::config::escapes::masked;
use crate::tree::Place;

/// A text with the starts of its lines, and where its scalars are.
pub(super) struct Layout<'a> {
    pub(super) text: &'a str,
    /// Byte offset of each line's start.
    lines: Vec<usize>,
    /// First byte of each scalar and the byte after it, in order.
    scalars: Vec<(usize, usize)>,
}

impl<'a> Layout<'a> {
    /// `None` where the text is not YAML.
    pub(super) fn new(text: &'a str) -> Option<Self> {
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        let skipped = text.len() - body.len();
        // The parser counts characters.
        let offsets: Vec<usize> =
            body.char_indices().map(|(at, _)| at + skipped).chain([text.len()]).collect();
        let byte = |index: usize| offsets.get(index).copied().unwrap_or(text.len());
        let mut scalars = Vec::new();
        for event in Parser::new_from_str(&masked(body)) {
            let (event, span) = event.ok()?;
            if let Event::Scalar(value, style, ..) = event
                && !(value.is_empty() && matches!(style, ScalarStyle::Plain))
            {
                let (start, end) = (byte(span.start.index()), byte(span.end.index()));
                // The parser's end of a quoted one lies behind what follows it, comments too.
                scalars.push((start, quoted_end(text, start, style).unwrap_or(end)));
            }
        }
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        // The first line begins behind a byte order mark.
        Some(Self { text, lines: [skipped].into_iter().chain(starts).collect(), scalars })
    }

    /// Byte offset of a place.
    pub(super) fn at(&self, place: &Place) -> Option<usize> {
        let start = *self.lines.get(place.line.checked_sub(1)?)?;
        let (offset, _) = self.text.get(start..)?.char_indices().nth(place.column.checked_sub(1)?)?;
        Some(start + offset)
    }

    /// Byte offset of the start of a line, counted from 1; of the text's end behind the last one.
    pub(super) fn line(&self, number: usize) -> usize {
        number.checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or(self.text.len())
    }

    /// How many lines there are.
    pub(super) const fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// A line without its end.
    pub(super) fn line_text(&self, number: usize) -> &'a str {
        let text = self.text.get(self.line(number)..self.line(number + 1)).unwrap_or_default();
        text.trim_end_matches(['\n', '\r'])
    }

    /// The comments from one line to before another, each from its `#` to the end of its line.
    pub(super) fn comments(&self, from: usize, to: usize) -> Vec<&'a str> {
        (from..to.min(self.line_count() + 1)).filter_map(|number| self.comment(number)).collect()
    }

    /// All comments, each with its line and column, from 1.
    pub(super) fn placed_comments(&self) -> impl Iterator<Item = (usize, usize, &'a str)> + '_ {
        (1..=self.line_count()).filter_map(|number| {
            let comment = self.comment(number)?;
            let line = self.line_text(number);
            let before = line.get(..line.len() - comment.len()).unwrap_or_default();
            Some((number, before.chars().count() + 1, comment))
        })
    }

    /// The comment of a line.
    pub(super) fn comment(&self, number: usize) -> Option<&'a str> {
        let (start, line) = (self.line(number), self.line_text(number));
        let found = line.match_indices('#').map(|(at, _)| at).find(|at| {
            let before = line.get(..*at).unwrap_or_default();
            let parted = before.is_empty() || before.ends_with([' ', '\t']);
            parted && !self.in_scalar(start + at)
        });
        found.and_then(|at| line.get(at..))
    }

    fn in_scalar(&self, at: usize) -> bool {
        let after = self.scalars.partition_point(|(start, _)| *start <= at);
        after.checked_sub(1).and_then(|before| self.scalars.get(before)).is_some_and(|(_, end)| at < *end)
    }
}

/// The byte behind the closing quote of a scalar that begins at `start`.
fn quoted_end(text: &str, start: usize, style: ScalarStyle) -> Option<usize> {
    let quote = match style {
        ScalarStyle::DoubleQuoted => '"',
        ScalarStyle::SingleQuoted => '\'',
        _ => return None,
    };
    let mut characters = text.get(start..)?.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if c == '\\' && quote == '"' {
            characters.next();
        } else if c == quote {
            // Doubled, it stands for itself.
            if quote == '\'' && characters.peek().is_some_and(|(_, next)| *next == quote) {
                characters.next();
            } else {
                return Some(start + at + 1);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn comments_are_told_from_what_looks_like_one() {
        let text = "# one\na: b#c # two\nd: \"e # f\" #three\ng: |\n  # not one\n  text\n# four\nh: 'i\n  # neither'\nj: [k, # five\n  l]\n\
                    é: ü # six\nm: # seven\n  n\n";
        let layout = Layout::new(text).unwrap();
        let comments = layout.comments(1, layout.line_count() + 1);
        assert_eq!(comments, ["# one", "# two", "#three", "# four", "# five", "# six", "# seven"]);
    }
}
