//! What keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What a person asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// End it.
    Quit,
    /// Show or hide the keys.
    Help,
    /// Sort by the next column.
    Sort,
    /// Sort the other way round.
    Reverse,
    /// Stop, or go on, with looking.
    Pause,
    /// Move through the tasks by so many.
    Scroll(i32),
    /// To the first task.
    Home,
    /// To the last task.
    End,
    /// Look rarer.
    Slower,
    /// Look more often.
    Faster,
}

/// Every key with what it does, as the help shows it.
pub(super) const HELP: [(&str, &str); 8] = [
    ("q, Esc, Ctrl-C", "end"),
    ("?, h", "show or hide this"),
    ("s", "sort tasks by the next of: rate, name, dropped, disk"),
    ("r", "sort the other way round"),
    ("up, down, k, j", "move through the tasks; PgUp, PgDn by ten"),
    ("Home, End, g, G", "first task, last task"),
    ("p, space", "pause, go on"),
    ("+, -", "look half as often, twice as often"),
];

/// What a key asks for, if anything.
pub(super) fn act(key: KeyEvent) -> Option<Act> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return matches!(key.code, KeyCode::Char('c' | 'd')).then_some(Act::Quit);
    }
    Some(match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Act::Quit,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => Act::Help,
        KeyCode::Char('s') => Act::Sort,
        KeyCode::Char('r') => Act::Reverse,
        KeyCode::Char('p' | ' ') => Act::Pause,
        KeyCode::Up | KeyCode::Char('k') => Act::Scroll(-1),
        KeyCode::Down | KeyCode::Char('j') => Act::Scroll(1),
        KeyCode::PageUp => Act::Scroll(-10),
        KeyCode::PageDown => Act::Scroll(10),
        KeyCode::Home | KeyCode::Char('g') => Act::Home,
        KeyCode::End | KeyCode::Char('G') => Act::End,
        KeyCode::Char('+') => Act::Slower,
        KeyCode::Char('-') => Act::Faster,
        _ => return None,
    })
}
