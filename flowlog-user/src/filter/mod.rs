//! Room 4, filter: which records a task wants.
//!
//! In: a task's `includeFilters`, `excludeFilters` and `where` as a [`Spec`], and records. Out: yes or no. The language
//! is Hubble's `FlowFilter` with its exact semantics: values inside a field are alternatives, fields of a filter must
//! all match, filters of a list are alternatives, and no exclude filter may match. What never happens here: I/O,
//! allocation per flow, failure while matching; whatever can be wrong is found when the spec is read.
//!
//! To add a kind of match: a file beside `port` with `read` and `matches`, an arm in [`Matcher`], and one in `spec`. What
//! it needs to know of a record it asks of [`Facts`], which flows of ours and recorded ones answer alike.

mod address;
mod cel;
mod classifier;
mod condition;
mod decision;
mod enumeration;
mod event_type;
mod identity;
mod interface;
mod json;
mod label;
mod label_parser;
mod lower;
mod matcher;
mod name_pattern;
mod namespaced;
mod number;
mod pattern;
mod pool;
mod port;
mod protocol;
mod re2;
mod reply;
pub mod shape;
mod spec;
mod status_code;
mod tcp_flags;
mod text;
mod url;
mod workload;

pub use classifier::Classifier;
pub use condition::Conditions;
pub use decision::Decision;
pub use lower::Division;
pub use matcher::Matcher;
pub use pool::{PoolAddresses, is_pool_name};
pub use spec::{FIELDS, FlowFilter, NOT_RECORDED, Spec};

use std::sync::Arc;

use crate::record::{Facts, Flow, Node, Seen};

/// One task's filter, evaluated as it stands: what [`Classifier`] is measured by, and what recorded events pass.
#[derive(Clone, Debug)]
pub struct Filter(Arc<Spec>);

impl Filter {
    /// Compiles a spec. Cannot fail: [`Spec::read`] has checked everything.
    #[must_use]
    pub fn new(spec: &Arc<Spec>) -> Self {
        Self(Arc::clone(spec))
    }

    /// Whether the task wants the flow.
    #[must_use]
    pub fn matches(&self, flow: &Flow, node: &Node) -> bool {
        self.takes(&Seen { flow, node })
    }

    /// Whether the task wants a record, whatever it came from.
    #[must_use]
    pub fn takes(&self, facts: &impl Facts) -> bool {
        let any = |filters: &[FlowFilter]| filters.iter().any(|filter| filter.matches(facts));
        let Spec { include, exclude, conditions } = &*self.0;
        (include.is_empty() || any(include)) && !any(exclude) && conditions.hold(facts)
    }
}
