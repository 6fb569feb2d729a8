use std::fmt;

use super::{Filter, FlowFilter};
use crate::record::Facts;

/// Which clause of a task's filters decided about a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Taken: no include filter is there, so everything is.
    Everything,
    /// Taken: this include filter holds.
    Included(usize),
    /// Left: this exclude filter holds, whatever the include filters say.
    Excluded(usize),
    /// Left: this condition of `where` does not hold.
    Where(&'static str),
    /// Left: of each include filter, this field does not hold.
    NotIncluded(Vec<&'static str>),
}

impl Decision {
    /// Whether the task takes the record.
    #[must_use]
    pub const fn takes(&self) -> bool {
        matches!(self, Self::Everything | Self::Included(_))
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => f.write_str("there are no includeFilters, so everything is included"),
            Self::Included(at) => write!(f, "includeFilters[{at}] holds"),
            Self::Excluded(at) => write!(f, "excludeFilters[{at}] holds"),
            Self::Where(name) => write!(f, "where.{name} does not hold"),
            Self::NotIncluded(fields) => {
                for (at, field) in fields.iter().enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    write!(f, "{comma}includeFilters[{at}].{field} does not hold")?;
                }
                Ok(())
            }
        }
    }
}

impl Filter {
    /// Decides as [`Self::takes`] does, and says why.
    #[must_use]
    pub fn decide(&self, facts: &impl Facts) -> Decision {
        let holds = |filter: &FlowFilter| filter.matches(facts);
        if let Some(at) = self.0.exclude.iter().position(holds) {
            return Decision::Excluded(at);
        }
        if let Some(name) = self.0.conditions.failing(facts) {
            return Decision::Where(name);
        }
        if self.0.include.is_empty() {
            return Decision::Everything;
        }
        match self.0.include.iter().position(holds) {
            Some(at) => Decision::Included(at),
            None => {
                let failing = |filter: &FlowFilter| {
                    let matcher = filter.0.iter().find(|matcher| !matcher.matches(facts));
                    matcher.map_or("", super::Matcher::field)
                };
                Decision::NotIncluded(self.0.include.iter().map(failing).collect())
            }
        }
    }
}
