//! What the kernel under test has, and whether its CPU is a real one (`cargo xtask vm` runs the tests under emulation).

use std::io::Write;

/// Whether the CPU is emulated, so that no time that is measured means anything; the test then says why it leaves
/// this out. Written past libtest's capture, so that it is seen when the test passes, too.
#[must_use]
pub fn emulated(why: &str) -> bool {
    let emulated = std::env::var_os("FLOWLOG_EMULATED").is_some();
    if emulated {
        drop(writeln!(std::io::stderr(), "skipped under emulation: {why}"));
    }
    emulated
}

/// How many times longer than on a real CPU a time must be that a test cannot do without.
#[must_use]
pub fn pace() -> u32 {
    if std::env::var_os("FLOWLOG_EMULATED").is_some() { 20 } else { 1 }
}

/// Whether tests that have a long form run in it (`--long`).
#[must_use]
pub fn long() -> bool {
    std::env::var_os("FLOWLOG_TEST_LONG").is_some()
}

/// The running kernel's version: major and minor number; zeros when it does not say.
#[must_use]
pub fn kernel() -> (u32, u32) {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|n| n.parse().ok());
    numbers.next().zip(numbers.next()).unwrap_or_default()
}

/// The kinds of hook that the running kernel has, as `--hook` calls them. TCX came with 6.6.
#[must_use]
pub fn hooks() -> &'static [&'static str] {
    if kernel() >= (6, 6) { &["clsact", "tcx"] } else { &["clsact"] }
}
