use super::Spec;
use crate::record::rules::Rules;

/// What tasks together want of the kernel: never less than each of them.
pub fn rules<'a>(specs: impl IntoIterator<Item = &'a Spec>) -> Rules {
    let mut rules = Rules::default();
    for spec in specs {
        spec.filter.lower(&mut rules);
    }
    rules
}
