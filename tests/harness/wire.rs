//! What sends that which needs unsafe code: buffers that become many packets, frames as they are, floods.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::netns::Netns;

/// Compiles it; a guest has no compiler and is given it.
///
/// # Errors
/// When there is no C compiler.
pub fn wire(folder: &Path) -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("FLOWLOG_WIRE") {
        return Ok(given.into());
    }
    let program = folder.join("wire");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("harness/wire.c");
    let status = Command::new("cc").args(["-O1", "-o"]).arg(&program).arg(source).status()?;
    ensure!(status.success(), "cc cannot compile wire.c");
    Ok(program)
}

/// Starts it in a host with a buffer on its standard input.
fn start(netns: &Netns, wire: &Path, words: &[&str], buffer: &[u8]) -> Result<Child> {
    let mut child = netns.command(wire.to_str().context("a plain path")?);
    let mut child =
        child.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().context("stdin is piped")?.write_all(buffer)?;
    Ok(child)
}

/// Waits until it has ended well; what it said.
fn end(child: Child, words: &[&str]) -> Result<String> {
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Sends a buffer as the words at the top of wire.c say.
///
/// # Errors
/// When the kernel does not take it.
pub fn send(netns: &Netns, wire: &Path, words: &[&str], buffer: &[u8]) -> Result<()> {
    end(start(netns, wire, words, buffer)?, words).map(drop)
}

/// What a flood was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flood {
    /// Frames that the stack was given.
    pub frames: u64,
    /// How long that took: of several CPUs the longest.
    pub took: Duration,
    /// What all CPUs together spent on it, others' work left out.
    pub cpu: Duration,
}

impl Flood {
    /// A CPU's nanoseconds for one frame, from the driver's end of the stack to where it is freed.
    #[must_use]
    pub fn ns(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e9 / self.frames as f64
    }

    /// Frames a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.frames as f64 / self.took.as_secs_f64()
    }
}

/// Gives a frame to the loopback device of a host again and again, each as a packet of its own that comes in, from each of
/// the first `cpus` CPUs at once for so long. `sources`: a power of two; with more than one, the UDP source port is any of
/// so many each time.
///
/// # Errors
/// When the kernel cannot do that (it can from 5.18 on).
pub fn flood(
    netns: &Netns,
    wire: &Path,
    frame: &[u8],
    (cpus, sources): (usize, u32),
    time: Duration,
) -> Result<Flood> {
    let (millis, mask) = (time.as_millis().to_string(), (sources - 1).to_string());
    let started: Vec<_> = (0..cpus)
        .map(|cpu| start(netns, wire, &["flood", &millis, &cpu.to_string(), &mask], frame))
        .collect::<Result<_>>()?;
    let mut sum = Flood::default();
    for child in started {
        let said = end(child, &["flood"])?;
        let numbers: Vec<u64> = said.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [frames, took, cpu] = numbers[..] else { anyhow::bail!("{said}") };
        sum.frames += frames;
        sum.took = sum.took.max(Duration::from_nanos(took));
        sum.cpu += Duration::from_nanos(cpu);
    }
    Ok(sum)
}
