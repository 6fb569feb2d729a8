//! `flowlog top`: the running daemon, again and again; drawn on a terminal, as plain pages elsewhere.

mod draw;
mod keys;
mod page;
mod screen;
mod state;

use std::io::{IsTerminal, Write, stdin, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use jiff::SignedDuration;

use super::client::ServerArgs;
use super::session::{Ends, block_on};
use keys::Act;
use screen::Screen;
use state::{Order, Snapshot, State};

/// Arguments of `flowlog top`.
#[derive(Args, Debug)]
#[command(after_help = "\
On a terminal: q ends it, ? shows all keys. Elsewhere, and with --plain, a page is printed each interval; rates are over
the interval before. Who speaks most is counted from the daemon's table, only while somebody asks: connections that no
task wants are not in it.")]
pub(crate) struct TopArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Between two looks.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = super::duration)]
    interval: SignedDuration,
    /// Stop by itself after this time, e.g. 30s.
    #[arg(long = "for", value_name = "DURATION", value_parser = super::duration)]
    time: Option<SignedDuration>,
    /// By what tasks are sorted.
    #[arg(long, value_enum, default_value = "rate")]
    sort: Order,
    /// Print pages, also on a terminal.
    #[arg(long)]
    plain: bool,
}

/// Shortest interval: the daemon counts anew each second.
const INTERVAL_MIN: Duration = Duration::from_millis(200);
/// How long a page may be late after a key.
const FRAME: Duration = Duration::from_millis(50);

/// Shows the daemon until a key, a signal or `--for` says stop.
///
/// # Errors
/// No daemon answers at the beginning, or the terminal cannot be used.
pub(crate) fn top(arguments: &TopArgs) -> anyhow::Result<ExitCode> {
    let interval = Duration::try_from(arguments.interval)?.max(INTERVAL_MIN);
    block_on(async {
        if arguments.plain || !stdout().is_terminal() || !stdin().is_terminal() {
            plain(arguments, interval).await
        } else {
            drawn(arguments, interval).await
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn look(arguments: &TopArgs) -> anyhow::Result<Snapshot> {
    let status = arguments.server.ask("/status").await?;
    let talkers = arguments.server.ask("/talkers").await?;
    Snapshot::read(&status, &talkers, Instant::now())
}

async fn plain(arguments: &TopArgs, interval: Duration) -> anyhow::Result<()> {
    let mut ends = Ends::new()?;
    ends.after(arguments.time);
    let mut state = State::new(arguments.sort);
    state.take(Ok(look(arguments).await?));
    while !ends.come_within(interval).await {
        state.take(look(arguments).await);
        if let Err(error) = write!(stdout(), "{}", page::page(&state)) {
            // A reader that goes away ends it quietly.
            return if error.kind() == std::io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error.into()) };
        }
        if let Some(error) = state.error() {
            anyhow::bail!("{error}");
        }
    }
    Ok(())
}

async fn drawn(arguments: &TopArgs, interval: Duration) -> anyhow::Result<()> {
    let mut ends = Ends::new()?;
    ends.after(arguments.time);
    let mut state = State::new(arguments.sort);
    // Before the terminal is taken: a daemon that is not there is told like by any other command.
    state.take(Ok(look(arguments).await?));
    let mut screen = Screen::open()?;
    let (mut looked, mut interval) = (Instant::now(), interval);
    loop {
        screen.draw(|frame| draw::draw(frame, &mut state, interval))?;
        if ends.come_within(FRAME).await {
            return Ok(());
        }
        while let Some(act) = screen.key()? {
            match act {
                Act::Quit => return Ok(()),
                Act::Slower => interval = (interval * 2).min(Duration::from_secs(60)),
                Act::Faster => interval = (interval / 2).max(INTERVAL_MIN),
                act => state.act(act),
            }
        }
        if !state.is_paused() && looked.elapsed() >= interval {
            looked = Instant::now();
            state.take(look(arguments).await);
        }
    }
}
