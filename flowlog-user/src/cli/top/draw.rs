//! The page on a terminal.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table};

use super::keys::HELP;
use super::page::{PAIR_HEADS, TASK_HEADS, heads, pair_cells, task_cells};
use super::state::{Snapshot, State};

/// Lines of the head, and at most of what is wrong.
const HEAD: u16 = 2;
const WRONG_MAX: usize = 3;

/// Draws what is known.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State, interval: Duration) {
    let Some(now) = state.now() else { return };
    let wrong: Vec<&str> =
        state.error().into_iter().chain(now.wrong.iter().map(String::as_str)).take(WRONG_MAX).collect();
    let wrong_lines = u16::try_from(wrong.len()).unwrap_or(0);
    let areas = Layout::vertical([
        Constraint::Length(HEAD + wrong_lines),
        Constraint::Fill(3),
        Constraint::Fill(2),
        Constraint::Length(1),
    ]);
    let [top, tasks, pairs, keys] = areas.areas(frame.area());
    frame.render_widget(Paragraph::new(head(now, &wrong)), top);
    frame.render_widget(pair_table(now), pairs);
    let paused = if state.is_paused() { "paused; " } else { "" };
    let text = format!(
        "{paused}every {} s; sorted by {}; q ends, ? shows the keys",
        interval.as_secs_f64(),
        state.order().name()
    );
    frame.render_widget(Paragraph::new(text.dim()), keys);
    // As many as there is room for under the heads, from the first one that is wanted.
    let room = usize::from(tasks.height.saturating_sub(1)).max(1);
    let first = state.first.min(now.tasks.len().saturating_sub(room));
    frame.render_widget(task_table(now, first), tasks);
    if state.shows_help {
        help(frame);
    }
    state.first = first;
}

fn head<'a>(now: &Snapshot, wrong: &[&'a str]) -> Vec<Line<'a>> {
    let [title, counts] = heads(now);
    let health = if now.is_healthy { Color::Green } else { Color::Red };
    let lost = now.lost_packets > 0 || !now.closes;
    let mut lines = vec![
        Line::from(title).style(Style::new().fg(health).add_modifier(Modifier::BOLD)),
        if lost { Line::from(counts).fg(Color::Red) } else { Line::from(counts) },
    ];
    lines.extend(wrong.iter().map(|text| Line::from(*text).fg(Color::Red)));
    lines
}

const fn heading() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

fn task_table(now: &Snapshot, first: usize) -> Table<'static> {
    let rows = now.tasks.iter().skip(first).map(|task| {
        let row = Row::new(task_cells(task));
        let well = task.dropped == 0 && !task.state.chars().any(char::is_uppercase);
        if well { row } else { row.fg(Color::Red) }
    });
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(11),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(11),
        Constraint::Length(8),
        Constraint::Length(10),
    ];
    Table::new(rows, widths).header(Row::new(TASK_HEADS).style(heading()))
}

fn pair_table(now: &Snapshot) -> Table<'static> {
    let rows = now.pairs.iter().map(|pair| Row::new(pair_cells(pair)));
    let widths = [Constraint::Length(10), Constraint::Length(10), Constraint::Fill(1)];
    let mut heads = PAIR_HEADS.map(str::to_owned);
    if let Some(last) = heads.last_mut().filter(|_| !now.about_pairs.is_empty()) {
        *last = format!("{last} ({})", now.about_pairs);
    }
    Table::new(rows, widths).header(Row::new(heads).style(heading()))
}

/// The keys, over the rest.
fn help(frame: &mut Frame<'_>) {
    let lines: Vec<Line<'_>> =
        HELP.iter().map(|(key, what)| Line::from(format!(" {key:<16} {what} "))).collect();
    let width = lines.iter().map(Line::width).max().unwrap_or(0) + 2;
    let all = frame.area();
    let (width, height) = (
        u16::try_from(width).unwrap_or(u16::MAX).min(all.width),
        u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(all.height),
    );
    let area = Rect::new((all.width - width) / 2, (all.height - height) / 2, width, height);
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" keys ")), area);
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::keys::Act;
    use super::super::state::Order;
    use super::super::state::tests::told;
    use super::*;

    fn drawn(state: &mut State, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state, Duration::from_secs(2))).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let rows = buffer.content().chunks(usize::from(width));
        rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>()).collect()
    }

    #[test]
    fn everything_fits_on_80_by_24() {
        let began = Instant::now();
        let mut state = State::new(Order::Rate);
        state.take(Ok(told(1_000, 500, began)));
        state.take(Ok(told(1_600, 502, began + Duration::from_secs(2))));
        let page = drawn(&mut state, 80, 24);
        assert!(page[0].starts_with("flowlog 1 on n1: healthy"), "{page:#?}");
        assert!(page[2].starts_with("TASK "), "{page:#?}");
        assert!(page[3].starts_with("busy[2J ") && page[3].contains(" 300.0 "), "{page:#?}");
        assert!(page[4].contains("idle") && page[4].contains(" 9 "), "{page:#?}");
        assert!(page.iter().any(|row| row.contains("1.4 MiB") && row.contains("10.0.0.1 <-> 10.0.0.2")));
        assert!(page[23].contains("q ends"), "{page:#?}");
        state.act(Act::Help);
        assert!(drawn(&mut state, 80, 24).iter().any(|row| row.contains("sort the other way round")));
    }

    #[test]
    fn no_size_of_a_terminal_is_too_small() {
        let mut state = State::new(Order::Name);
        state.take(Ok(told(1, 1, Instant::now())));
        state.act(Act::Help);
        for (width, height) in [(1, 1), (3, 2), (20, 5), (500, 3), (2, 200)] {
            drawn(&mut state, width, height);
        }
    }
}
