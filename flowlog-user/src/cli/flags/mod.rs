//! Hubble's filter flags, spelled and combined as `hubble observe` does; one module for every command that has them.

mod live;
mod raw;
mod table;
mod tracker;

#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use flowlog_user::filter::{Filter, Spec};
use flowlog_user::record::Json;

pub(crate) use live::LiveFilterArgs;
use table::{FLAGS, NOT};
use tracker::Tracker;

const ALLOWLIST: &str = "allowlist";
const DENYLIST: &str = "denylist";
const PRINT: &str = "print-raw-filters";
const HEADING: &str = "Filters (as hubble observe has them)";

/// Flags as they were given: the place of each, its name, its value.
type Given = Vec<(usize, &'static str, String)>;

/// What the filter flags ask for.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterArgs {
    allow: Vec<Json>,
    deny: Vec<Json>,
    spec: Spec,
    /// Only print the filters.
    pub(crate) print: bool,
}

impl FilterArgs {
    /// The filter; nothing when everything is wanted.
    #[must_use]
    pub(crate) fn filter(&self) -> Option<Filter> {
        (!self.allow.is_empty() || !self.deny.is_empty()).then(|| Filter::new(&Arc::new(self.spec.clone())))
    }

    /// The filters as YAML: `allowlist` and `denylist`.
    #[must_use]
    pub(crate) fn to_yaml(&self) -> String {
        raw::yaml(&self.allow, &self.deny)
    }

    /// The filters as a task takes them: `includeFilters` and `excludeFilters`.
    #[must_use]
    pub(crate) fn lists(&self) -> [&[Json]; 2] {
        [&self.allow, &self.deny]
    }

    /// What was given, in the order in which it stands.
    fn given(matches: &ArgMatches) -> Given {
        let mut given = Given::new();
        for flag in FLAGS {
            let values = matches.get_many::<String>(flag.name).into_iter().flatten();
            let places = matches.indices_of(flag.name).into_iter().flatten();
            given.extend(places.zip(values).map(|(place, value)| (place, flag.name, value.clone())));
        }
        given.sort_unstable();
        given
    }

    fn of(given: Given, matches: &ArgMatches) -> Result<Self, Error> {
        let raw = [ALLOWLIST, DENYLIST]
            .map(|name| matches.get_many::<String>(name).into_iter().flatten().cloned().collect());
        Self::combine(given.into_iter().map(|(_, name, value)| (name, value)), raw, matches.get_flag(PRINT))
            .map_err(|what| Error::raw(ErrorKind::ValueValidation, format!("{what}\n")))
    }

    /// Combines flags, in the order in which they stand.
    fn combine(
        flags: impl IntoIterator<Item = (&'static str, String)>,
        raw: [Vec<String>; 2],
        print: bool,
    ) -> Result<Self, String> {
        let (mut allow, mut deny, mut inverted) = (Tracker::default(), Tracker::default(), false);
        for (name, value) in flags {
            if name == NOT {
                if std::mem::replace(&mut inverted, true) {
                    return Err("two --not follow each other; each is for the next filter".into());
                }
                continue;
            }
            let list = if std::mem::take(&mut inverted) { &mut deny } else { &mut allow };
            list.set(name, &value)?;
        }
        if inverted {
            return Err("no filter follows the last --not".into());
        }
        let (mut allow, mut deny) = (allow.filters(), deny.filters());
        let [more, fewer] = raw;
        for text in more {
            allow.extend(raw::read(ALLOWLIST, &text)?);
        }
        for text in fewer {
            deny.extend(raw::read(DENYLIST, &text)?);
        }
        let spec = raw::compile(&allow, &deny)?;
        Ok(Self { allow, deny, spec, print })
    }
}

impl Args for FilterArgs {
    fn augment_args(command: Command) -> Command {
        let mut command = command;
        for flag in FLAGS {
            let mut arg = Arg::new(flag.name)
                .long(flag.name)
                .help(flag.help)
                .value_name(flag.value)
                .action(ArgAction::Append)
                .help_heading(HEADING);
            if let Some(short) = flag.short {
                arg = arg.short(short);
            }
            if let Some(alone) = flag.alone {
                arg = arg
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value(alone)
                    .hide_possible_values(true);
            }
            command = command.arg(arg);
        }
        for (name, help) in [
            (ALLOWLIST, "Take what one of these FlowFilters (JSON, one or more) takes"),
            (DENYLIST, "Leave out what one of these FlowFilters (JSON, one or more) takes"),
        ] {
            command = command.arg(
                Arg::new(name)
                    .long(name)
                    .help(help)
                    .value_name("JSON")
                    .action(ArgAction::Append)
                    .help_heading(HEADING),
            );
        }
        command.arg(
            Arg::new(PRINT)
                .long(PRINT)
                .help("Print these filters as JSON in YAML, as tasks and hubble take them, and end")
                .action(ArgAction::SetTrue)
                .help_heading(HEADING),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for FilterArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Self::of(Self::given(matches), matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
