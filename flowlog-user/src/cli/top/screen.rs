//! The terminal while it is drawn on: taken, and given back however it ends.

use std::io::{Stdout, Write, stdout};
use std::panic;
use std::time::Duration;

use anyhow::Context;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{Event, poll, read};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};

use super::keys::{Act, act};

/// Held as long as the terminal is drawn on.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal. A panic gives it back before it says what was wrong.
    ///
    /// # Errors
    /// It is no terminal that can be drawn on.
    pub(super) fn open() -> anyhow::Result<Self> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            restore();
            before(what);
        }));
        enable_raw_mode().context("this terminal cannot be drawn on; add --plain")?;
        let taken = execute!(stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match taken {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                restore();
                Err(error).context("this terminal cannot be drawn on; add --plain")
            }
        }
    }

    /// Draws a frame.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn draw(&mut self, page: impl FnOnce(&mut Frame<'_>)) -> anyhow::Result<()> {
        self.terminal.draw(page).context("the terminal cannot be drawn on")?;
        Ok(())
    }

    /// What a key that was pressed asks for; nothing when none was.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn key(&mut self) -> anyhow::Result<Option<Act>> {
        while poll(Duration::ZERO).context("the terminal cannot be read")? {
            if let Event::Key(key) = read().context("the terminal cannot be read")?
                && let Some(act) = act(key)
            {
                return Ok(Some(act));
            }
        }
        Ok(None)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back. When that fails there is no terminal any more.
fn restore() {
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = stdout().flush();
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Run by the next test, on a terminal of its own.
    #[test]
    #[ignore = "takes the terminal and panics"]
    fn panics_on_the_screen() {
        let _screen = Screen::open().unwrap();
        panic!("something broke");
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        let test = std::env::current_exe().unwrap();
        let line = format!(
            "{} --ignored --exact --nocapture cli::top::screen::tests::panics_on_the_screen; stty -a",
            test.display()
        );
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
        let said = String::from_utf8_lossy(&script.output().unwrap().stdout).into_owned();
        let at = |what: &str| said.find(what).unwrap_or_else(|| panic!("{what:?} is missing in {said:?}"));
        assert!(
            at("\x1b[?1049h") < at("\x1b[?1049l") && at("\x1b[?1049l") < at("something broke"),
            "{said:?}"
        );
        // As stty says of a terminal that is not raw.
        assert!(said.contains(" icanon") && said.contains(" echo "), "{said:?}");
    }
}
