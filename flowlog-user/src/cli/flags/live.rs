//! The filter flags of a live capture.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use super::{FilterArgs, Given, NOT};

const INTERFACE: &str = "interface";

/// The same flags where packets are captured: `--interface` says what is watched, so it takes globs and is no filter.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveFilterArgs {
    /// The filters.
    pub(crate) filters: FilterArgs,
    /// Globs of interfaces to watch.
    pub(crate) interfaces: Vec<String>,
    /// Globs of those to leave out.
    pub(crate) exclude: Vec<String>,
}

impl LiveFilterArgs {
    /// Takes the interfaces out of what was given.
    fn part(&mut self, given: Given) -> Given {
        let mut filters = Given::new();
        for (place, name, value) in given {
            if name != INTERFACE {
                filters.push((place, name, value));
            } else if filters.last().is_some_and(|(_, before, _)| *before == NOT) {
                filters.pop();
                self.exclude.push(value);
            } else {
                self.interfaces.push(value);
            }
        }
        filters
    }
}

impl Args for LiveFilterArgs {
    fn augment_args(command: Command) -> Command {
        FilterArgs::augment_args(command).mut_arg(INTERFACE, |arg| {
            arg.value_name("GLOB").help(
                "Interfaces to watch, instead of endpoints and uplinks by role; after --not, to leave out",
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LiveFilterArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut args = Self::default();
        let given = args.part(FilterArgs::given(matches));
        args.filters = FilterArgs::of(given, matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser, Debug)]
    struct Line {
        #[command(flatten)]
        live: LiveFilterArgs,
    }

    #[test]
    fn interfaces_are_watched_or_left_out_and_filter_nothing() {
        use clap::Parser;
        let line = [
            "test",
            "--not",
            "--port",
            "22",
            "--interface",
            "eth*",
            "--not",
            "--interface",
            "eth9",
            "--ip",
            "10.0.0.1",
        ];
        let live = Line::try_parse_from(line).unwrap().live;
        assert_eq!((live.interfaces, live.exclude), (vec!["eth*".to_owned()], vec!["eth9".to_owned()]));
        let list = |filters: &[flowlog_user::record::Json]| filters.iter().map(ToString::to_string).collect();
        let (allow, deny): (Vec<String>, Vec<String>) = (list(&live.filters.allow), list(&live.filters.deny));
        assert_eq!(allow, [r#"{"source_ip":["10.0.0.1"]}"#, r#"{"destination_ip":["10.0.0.1"]}"#]);
        assert_eq!(deny, [r#"{"source_port":["22"]}"#, r#"{"destination_port":["22"]}"#]);
        assert!(Line::try_parse_from(["test", "--interface", "a", "--not"]).is_err());
    }
}
