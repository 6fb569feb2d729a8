//! Levels by target, as a person writes them.

use tracing_subscriber::filter::{LevelFilter, Targets};

/// What all targets of ours begin with.
pub(super) const OURS: &str = "flowlog";

/// Parts of the library that have something to say.
const PARTS: [&str; 12] = [
    "capture", "clock", "config", "decode", "encode", "enrich", "filter", "pipeline", "read", "server",
    "task", "write",
];

/// A level, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directive {
    target: String,
    level: LevelFilter,
}

/// Reads `debug`, `capture=debug` or `aya=debug`.
pub(super) fn directive(text: &str) -> Result<Directive, String> {
    let (target, level) = text.split_once('=').unwrap_or((OURS, text));
    let level = level
        .parse()
        .map_err(|_| format!("`{level}` is no level; expected error, warn, info, debug, trace or off"))?;
    let target = match target {
        "" => return Err("a target is missing before `=`; write e.g. capture=debug".into()),
        "cli" => format!("{OURS}::cli"),
        part if PARTS.contains(&part) => format!("{OURS}_user::{part}"),
        other => other.to_owned(),
    };
    Ok(Directive { target, level })
}

/// Puts them over what there is.
pub(super) fn apply(targets: Targets, directives: &[Directive]) -> Targets {
    directives
        .iter()
        .fold(targets, |targets, directive| targets.with_target(directive.target.clone(), directive.level))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn levels_are_for_everything_of_ours_or_a_part_of_it() {
        let targets = Targets::new().with_default(LevelFilter::WARN).with_target(OURS, LevelFilter::INFO);
        let given = ["error", "write=trace", "cli=debug", "aya=off"].map(|text| directive(text).unwrap());
        let targets = apply(targets, &given);
        for (target, level, enabled) in [
            ("flowlog_user::write::writer", Level::TRACE, true),
            ("flowlog_user::capture::live", Level::WARN, false),
            ("flowlog_user::capture::live", Level::ERROR, true),
            ("flowlog::cli::run", Level::DEBUG, true),
            ("aya::programs", Level::ERROR, false),
            ("hyper", Level::WARN, true),
        ] {
            assert_eq!(targets.would_enable(target, &level), enabled, "{target} {level}");
        }
        for bad in ["loud", "capture=loud", "=debug"] {
            assert!(directive(bad).is_err(), "{bad}");
        }
    }
}
