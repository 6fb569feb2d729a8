use std::time::Duration;

use super::duration;
use crate::limits::AGGREGATION_INTERVAL_MS_MIN;
use crate::project;
use crate::record::fields::{self, Field, FieldSet, Mask};
use crate::tree::{Fields, Problems};

/// `fieldAggregate` and `aggregationInterval`: one line for all records that agree in some fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregation {
    /// The fields in which they must agree.
    pub common: Mask,
    /// How often the lines are written.
    pub interval: Duration,
}

/// Differs from record to record, so that nothing would ever be added up.
const SUMMED: [Field; 9] = [
    Field::ExtensionsFirstSeen,
    Field::ExtensionsLastSeen,
    Field::ExtensionsPackets,
    Field::ExtensionsBytes,
    Field::ExtensionsPacketsTotal,
    Field::ExtensionsBytesTotal,
    Field::ExtensionsRtt,
    Field::ExtensionsConnection,
    Field::ExtensionsStarted,
];

impl Aggregation {
    /// Reads both keys. As in Hubble, one without the other has no effect; `exact` keeps `node_name` out unless it is
    /// named.
    pub(super) fn read(fields: &Fields<'_>, exact: bool, problems: &mut Problems) -> Option<Self> {
        let interval = fields.entry("aggregationInterval");
        let interval = interval.and_then(|entry| match duration::parse(&entry.value) {
            Ok(interval) if interval.is_zero() => None,
            Ok(interval) if interval >= Duration::from_millis(AGGREGATION_INTERVAL_MS_MIN) => {
                Some((entry, interval))
            }
            Ok(_) => {
                let message = format!(
                    "expected at least {AGGREGATION_INTERVAL_MS_MIN}ms (or 0s for none), found {}",
                    entry.value.kind()
                );
                problems.error(&entry.value.place, message);
                None
            }
            Err(message) => {
                problems.error(&entry.value.place, message);
                None
            }
        });
        let paths = fields.entry("fieldAggregate");
        let named: Vec<_> = paths.iter().flat_map(|entry| entry.value.list(problems)).collect();
        let errors = problems.errors.len();
        let mask = project::read(paths.map(|entry| &entry.value), true, problems);
        for path in &named {
            let below = path.text(&mut Problems::default()).map_or(FieldSet::NONE, fields::below);
            if SUMMED.iter().any(|field| below.has(*field)) {
                let message = "differs from record to record, so nothing would be added up; of `extensions` name `event`, \
                               `end_reason`, `midstream`, `interfaces`, `duplicate` or `fragment`";
                problems.error(&path.place, message);
            }
        }
        match (paths.filter(|_| !named.is_empty()), interval) {
            (Some(entry), None) => {
                problems.warning(
                    &entry.place,
                    "has no effect without an aggregationInterval: every record is written",
                );
                None
            }
            (None, Some((entry, _))) => {
                problems.warning(
                    &entry.place,
                    "has no effect without fields in fieldAggregate: every record is written",
                );
                None
            }
            (Some(_), Some((_, interval))) if problems.errors.len() == errors => {
                Self::without_effect(fields, problems);
                Some(Self { common: common(mask, exact), interval })
            }
            _ => None,
        }
    }

    /// Keys that concern single records.
    fn without_effect(fields: &Fields<'_>, problems: &mut Problems) {
        if let Some(entry) = fields.entry("fieldMask")
            && matches!(&entry.value.value, crate::tree::Value::List(items) if !items.is_empty())
        {
            problems.warning(
                &entry.place,
                "has no effect on aggregated lines; they have the fields of fieldAggregate",
            );
        }
        if let Some(entry) = fields.entry("rateLimit") {
            problems.error(
                &entry.place,
                "aggregated lines come all at once, so a rate makes no sense; remove it",
            );
        }
    }
}

/// The mask without Hubble's own counts, with the node's name unless it is left out on purpose.
fn common(mut mask: Mask, exact: bool) -> Mask {
    let counts = fields::below("aggregate");
    mask.keep = mask.keep.without(counts);
    mask.named = mask.named.without(counts);
    if !exact {
        mask.keep = mask.keep.with(Field::NodeName);
    }
    mask
}
