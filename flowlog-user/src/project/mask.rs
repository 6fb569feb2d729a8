use crate::record::fields::{self, FIELDS, Field, FieldSet, Mask};
use crate::tree::{self, Problems, Tree};

/// Why a path was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such path.
    #[error("unknown field `{path}`; {hint}")]
    Unknown {
        /// The path.
        path: String,
        /// What may be meant.
        hint: String,
    },
}

/// Compiles paths. No path at all is no mask. `exact` drops `time` and `node_name` unless they are named, as Hubble does.
///
/// # Errors
///
/// The first path that leads to no field.
pub fn compile(paths: &[&str], exact: bool) -> Result<Mask, Error> {
    if paths.is_empty() {
        return Ok(Mask::ALL);
    }
    let mut paths = paths.to_vec();
    paths.sort_unstable();
    paths.dedup();
    let mut mask = Mask { keep: FieldSet::NONE, named: FieldSet::NONE };
    for path in &paths {
        let leaves = resolve(path)?;
        mask.keep = mask.keep.union(leaves);
        // A path inside another path of the mask says nothing more.
        let absorbed = paths.iter().any(|other| is_below(path, other));
        if path.contains('.') && !absorbed {
            mask.named = mask.named.union(leaves);
        }
    }
    if !exact {
        mask.keep = mask.keep.with(Field::Time).with(Field::NodeName);
    }
    Ok(mask)
}

/// Compiles the paths of a `fieldMask`, noting every one that is wrong.
pub fn read(tree: Option<&Tree>, exact: bool, problems: &mut Problems) -> Mask {
    let mut paths = Vec::new();
    for item in tree.map_or(&[][..], |tree| tree.list(problems)) {
        let Some(path) = item.text(problems) else { continue };
        match resolve(path) {
            Ok(_) => paths.push(path),
            Err(error) => problems.error(&item.place, error.to_string()),
        }
    }
    compile(&paths, exact).unwrap_or(Mask::ALL)
}

fn resolve(path: &str) -> Result<FieldSet, Error> {
    let leaves = fields::below(path);
    if leaves.is_empty() {
        return Err(Error::Unknown { path: path.to_owned(), hint: nearest(path) });
    }
    Ok(leaves)
}

fn is_below(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.starts_with('.'))
}

/// The nearest path, messages included.
fn nearest(path: &str) -> String {
    let mut known: Vec<&str> = Vec::new();
    for (_, leaf) in FIELDS {
        let ends = leaf.match_indices('.').map(|(end, _)| end).chain([leaf.len()]);
        known.extend(ends.filter_map(|end| leaf.get(..end)));
    }
    known.dedup();
    tree::nearest(path, &known).map_or_else(
        || "expected a path of Hubble's flow such as `IP`, `l4` or `source.pod_name`".into(),
        |near| format!("did you mean `{near}`?"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(fields: &[Field]) -> FieldSet {
        fields.iter().fold(FieldSet::NONE, |set, field| set.with(*field))
    }

    #[test]
    fn no_path_is_no_mask() {
        assert_eq!(compile(&[], false), Ok(Mask::ALL));
        assert_eq!(compile(&[], true), Ok(Mask::ALL));
    }

    #[test]
    fn time_and_node_name_stay_unless_exact() {
        let exact = compile(&["verdict"], true).unwrap();
        assert_eq!(exact, Mask { keep: set(&[Field::Verdict]), named: FieldSet::NONE });
        let usual = compile(&["verdict"], false).unwrap();
        assert_eq!(usual.keep, set(&[Field::Verdict, Field::Time, Field::NodeName]));
    }

    #[test]
    fn a_path_into_a_message_names_it() {
        let mask = compile(&["interface.name", "verdict"], true).unwrap();
        assert_eq!(mask.keep, set(&[Field::InterfaceName, Field::Verdict]));
        assert_eq!(mask.named, set(&[Field::InterfaceName]));
    }

    #[test]
    fn a_whole_message_absorbs_its_fields_in_any_order() {
        for paths in [["interface", "interface.name"], ["interface.name", "interface"]] {
            let mask = compile(&paths, true).unwrap();
            assert_eq!(mask.keep, set(&[Field::InterfaceIndex, Field::InterfaceName]));
            assert_eq!(mask.named, FieldSet::NONE);
        }
    }

    #[test]
    fn a_message_inside_a_message_absorbs_and_is_named() {
        let mask = compile(&["trace_context.parent.trace_id", "trace_context.parent"], true).unwrap();
        assert_eq!(mask.named, set(&[Field::TraceContextTraceId]));
    }

    #[test]
    fn unknown_paths_name_the_nearest() {
        let table = [
            ("source.podname", "unknown field `source.podname`; did you mean `source.pod_name`?"),
            ("Source", "unknown field `Source`; did you mean `source`?"),
            (
                "l4.TCP.destinationPort",
                "unknown field `l4.TCP.destinationPort`; did you mean `l4.TCP.destination_port`?",
            ),
            (
                "l4.protocol",
                "unknown field `l4.protocol`; expected a path of Hubble's flow such as `IP`, `l4` or `source.pod_name`",
            ),
        ];
        for (path, message) in table {
            assert_eq!(compile(&["verdict", path], false).unwrap_err().to_string(), message);
        }
    }
}
