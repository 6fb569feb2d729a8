use crate::record::schema::{Descriptor, EXPORT_EVENT, Enumeration, Kind};

/// The number of an enum constant by its qualified name: `flow.Verdict.FORWARDED`, or without `flow.`, which is where
/// names are looked up.
pub(super) fn constant(name: &str) -> Option<i64> {
    let (of, value) = name.rsplit_once('.')?;
    let number =
        find(&EXPORT_EVENT, of).or_else(|| find(&EXPORT_EVENT, &format!("flow.{of}")))?.number_of(value)?;
    Some(number.into())
}

fn find(at: &'static Descriptor, name: &str) -> Option<&'static Enumeration> {
    at.fields.iter().find_map(|field| match field.kind {
        Kind::Enum(of) if of.name == name => Some(of),
        Kind::Message(of) => find(of, name),
        _ => None,
    })
}
