//! Tasks that name pools, as they are in force: with the addresses that the pools had. Kept in the state folder, so that a
//! pool that is gone at the next start changes as little as one that goes while the daemon runs.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::raw;
use crate::filter::PoolAddresses;
use crate::record::AddressSet;
use crate::task::Spec;
use crate::tree::{Place, Problems};

/// Tasks of a file as a text.
pub(super) fn text(file: &Path, specs: &[Arc<Spec>]) -> String {
    let tasks: Vec<Value> = specs
        .iter()
        .map(|spec| {
            let mut task = Map::new();
            let definition: Value = serde_json::from_str(&spec.file.definition.0).unwrap_or_default();
            task.insert("task".into(), definition);
            for (end, PoolAddresses { within, outside }) in spec.filter.pool_addresses() {
                let within = within.as_ref().map(ranges);
                task.insert(end.name().into(), json!({ "within": within, "outside": ranges(&outside) }));
            }
            task.into()
        })
        .collect();
    json!({ "file": file.to_string_lossy(), "tasks": tasks }).to_string()
}

fn ranges(set: &AddressSet) -> Vec<String> {
    set.ranges().map(|(first, last)| format!("{first}-{last}")).collect()
}

/// The tasks of such a text, with their file; those that cannot be read any more are left out.
pub(super) fn parse(bytes: &[u8]) -> Option<(PathBuf, Vec<Arc<Spec>>)> {
    let kept: Value = serde_json::from_slice(bytes).ok()?;
    let file = kept.get("file")?.as_str()?;
    let tasks = kept.get("tasks")?.as_array()?;
    Some((file.into(), tasks.iter().filter_map(|task| Some(Arc::new(spec(file, task)?))).collect()))
}

/// A task as it was kept.
pub(super) fn spec(file: &str, kept: &Value) -> Option<Spec> {
    let documents = raw::parse(file, &kept.get("task")?.to_string()).ok()?;
    let mut problems = Problems::default();
    let mut spec = Spec::read(documents.first()?.1.as_ref()?, &mut problems)?;
    if !problems.errors.is_empty() {
        return None;
    }
    // Where it stood is not known any more.
    (spec.place, spec.path_place) = (Place::file(file), Place::file(file));
    Arc::make_mut(&mut spec.filter).restore(|end| addresses(kept.get(end.name())?));
    Some(spec)
}

fn addresses(kept: &Value) -> Option<PoolAddresses> {
    let set = |list: &Value| -> Option<AddressSet> {
        let texts: Option<Vec<&str>> = list.as_array()?.iter().map(Value::as_str).collect();
        let range = |text: &str| -> Option<(IpAddr, IpAddr)> {
            let (first, last) = text.split_once('-')?;
            Some((first.parse().ok()?, last.parse().ok()?))
        };
        let ranges: Option<Vec<_>> = texts?.into_iter().map(range).collect();
        ranges.map(AddressSet::of_ranges)
    };
    let within = kept.get("within").filter(|within| !within.is_null());
    Some(PoolAddresses {
        within: match within {
            Some(within) => Some(set(within)?),
            None => None,
        },
        outside: set(kept.get("outside")?)?,
    })
}
