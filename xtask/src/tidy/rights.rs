//! Exclusive rights inside the daemon's crate: who may use what.

use super::Violation;
use super::layers;
use super::source::{Source, has_word};

/// aya.
pub(super) const AYA: &str = "aya-only-in-capture";
/// Compression.
pub(super) const ZSTD: &str = "zstd-only-in-write";
/// Creating, changing and removing files.
pub(super) const WRITE: &str = "write-only-in-write";
/// The YAML parser.
pub(super) const YAML: &str = "yaml-only-in-config";
/// The wall clock.
pub(super) const CLOCK: &str = "clock-only-in-clock";
/// Signals and the process's end.
pub(super) const SIGNALS: &str = "signals-only-in-main";
/// Errors without a type.
pub(super) const ANYHOW: &str = "anyhow-only-in-main";

struct Right {
    rule: &'static str,
    words: &'static [&'static str],
    parts: &'static [&'static str],
    remedy: &'static str,
}

const RIGHTS: &[Right] = &[
    Right {
        rule: AYA,
        words: &["aya::", "aya_log::", "aya_obj::", "use aya"],
        parts: &["capture"],
        remedy: "the kernel is reached through `capture` only",
    },
    Right {
        rule: ZSTD,
        words: &["zstd::", "zstd_safe::", "use zstd"],
        parts: &["write", "read"],
        remedy: "compression belongs to `write`, decompression to `read`",
    },
    Right {
        rule: WRITE,
        words: &[
            "File::create",
            "File::create_new",
            "OpenOptions",
            "fs::write",
            "fs::rename",
            "fs::copy",
            "fs::hard_link",
            "fs::remove_file",
            "fs::remove_dir",
            "fs::remove_dir_all",
            "fs::create_dir",
            "fs::create_dir_all",
            "fs::set_permissions",
            "DirBuilder",
            "OFlags::CREATE",
            "OFlags::WRONLY",
            "OFlags::RDWR",
            "renameat",
            "renameat_with",
            "unlinkat",
            "mkdirat",
        ],
        parts: &["write"],
        remedy: "files are written by `write` only",
    },
    Right {
        rule: YAML,
        words: &["saphyr::", "use saphyr"],
        parts: &["config"],
        remedy: "YAML is read by `config` only; take a `tree::Node`",
    },
    Right {
        rule: CLOCK,
        words: &[
            "SystemTime::now",
            "Utc::now",
            "Timestamp::now",
            "Zoned::now",
            "ClockId::Realtime",
            "ClockId::RealtimeCoarse",
            "CLOCK_REALTIME",
            "CLOCK_REALTIME_COARSE",
        ],
        parts: &["clock"],
        remedy: "wall time comes from `clock` only",
    },
    Right {
        rule: SIGNALS,
        words: &[
            "tokio::signal",
            "signal::unix",
            "signal::ctrl_c",
            "process::exit",
            "process::abort",
            "sigaction",
            "libc::signal",
        ],
        parts: &["main"],
        remedy: "signals and exit belong to `main`; return an error or take a stop flag",
    },
    Right {
        rule: ANYHOW,
        words: &["anyhow::", "use anyhow", "anyhow!", "bail!"],
        parts: &["main"],
        remedy: "a room has its own `thiserror` enum",
    },
];

/// Checks every line that is not test code.
pub(super) fn check(source: &Source<'_>, found: &mut Vec<Violation>) {
    let Some(part) = layers::part(source.path) else { return };
    for right in RIGHTS.iter().filter(|right| !right.parts.contains(&part)) {
        for (line, code) in source.lines() {
            if let Some(word) = right.words.iter().find(|word| has_word(code, word)) {
                let text = format!("`{part}` uses `{}`; {}", word.trim_end_matches(':'), right.remedy);
                found.push(Violation { path: source.path.to_owned(), line, rule: right.rule, text });
            }
        }
    }
}
