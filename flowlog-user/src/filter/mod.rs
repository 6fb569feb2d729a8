//! Room 4, filter: which records a task wants.
//!
//! In: a task's `includeFilters` and `excludeFilters` as a [`Spec`], and decoded [`Flow`]s. Out: yes or no. The language
//! is Hubble's `FlowFilter` with its exact semantics: values inside a field are alternatives, fields of a filter must
//! all match, filters of a list are alternatives, and no exclude filter may match. What never happens here: I/O,
//! allocation per flow, failure while matching; whatever can be wrong is found when the spec is read.
//!
//! To add a kind of match: a file beside `port` with `read` and `matches`, an arm in [`Matcher`], and its name moved
//! from the list of those not served in `spec`.

mod address;
mod enumeration;
mod event_type;
mod identity;
mod interface;
mod json;
mod lower;
mod matcher;
mod port;
mod protocol;
mod reply;
mod spec;
mod tcp_flags;

pub use matcher::Matcher;
pub use spec::{FlowFilter, Spec};

use crate::record::{Flow, Node};

/// A compiled filter.
#[derive(Clone, Debug)]
pub struct Filter {
    include: Vec<FlowFilter>,
    exclude: Vec<FlowFilter>,
}

impl Filter {
    /// Compiles a spec. Cannot fail: [`Spec::read`] has checked everything.
    #[must_use]
    pub fn new(spec: &Spec) -> Self {
        Self { include: spec.include.clone(), exclude: spec.exclude.clone() }
    }

    /// Whether the task wants the flow.
    #[must_use]
    pub fn matches(&self, flow: &Flow, node: &Node) -> bool {
        let any = |filters: &[FlowFilter]| filters.iter().any(|filter| filter.matches(flow, node));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }
}
