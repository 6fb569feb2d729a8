use std::time::Duration;

use super::{plan, read, task};
use crate::record::fields::{Field, Mask};
use crate::record::{Event, Format};
use crate::task::{Cadence, Events};
use crate::write::{Compression, OnFull, Owner, Sync};

const MIB: u64 = 1024 * 1024;

#[test]
fn defaults_are_hubbles() {
    let spec = task("");
    assert_eq!(spec.name, "a");
    assert_eq!(spec.file.task, "a");
    assert_eq!(spec.file.path.to_str(), Some("/l/a.log"));
    assert_eq!((spec.file.size_bytes_max, spec.file.total_bytes_max), (10 * MIB, 60 * MIB));
    assert_eq!(spec.file.compression, Compression::Zstd { level: 1 });
    assert_eq!((spec.file.mode, spec.file.rotation_interval), (0o640, None));
    assert_eq!(spec.mask, Mask::ALL);
    assert_eq!(spec.cadence, Cadence { events: Events::ALL, update_interval: None });
    assert_eq!((spec.end, spec.description, spec.team), (None, None, None));
    assert_eq!(*spec.filter, crate::filter::Spec::default());
}

#[test]
fn zero_and_null_equal_absent() {
    let spec = task(
        "    fileMaxSizeMb: 0\n    fileMaxBackups: 0\n    end: null\n    fieldMask: ~\n    fileCompress:\n",
    );
    assert_eq!((spec.file.size_bytes_max, spec.file.total_bytes_max), (10 * MIB, 60 * MIB));
    assert_eq!((spec.end, spec.mask), (None, Mask::ALL));
    assert_eq!(spec.file.compression, Compression::Zstd { level: 1 });
}

#[test]
fn every_key_arrives() {
    let spec = task(
        "    description: why\n    team: us\n    fileMaxSizeMb: 3\n    fileMaxBackups: 2\n    compression: zstd\n    \
         compressionLevel: 7\n    fileRotationInterval: 1h30m\n    fileRotationAligned: true\n    fileMode: \"0640\"\n    events: [end, start]\n    end: \
         2026-03-14T10:26:54+01:00\n    fieldMask: [verdict]\n    fieldMaskExact: true\n",
    );
    assert_eq!((spec.description.as_deref(), spec.team.as_deref()), (Some("why"), Some("us")));
    assert_eq!((spec.file.size_bytes_max, spec.file.total_bytes_max), (3 * MIB, 9 * MIB));
    assert_eq!(spec.file.compression, Compression::Zstd { level: 7 });
    assert_eq!((spec.file.mode, spec.file.rotation_interval), (0o640, Some(Duration::from_secs(5_400))));
    assert!(spec.file.rotation_aligned && !task("").file.rotation_aligned);
    let events = Events::NONE.with(Event::Start).with(Event::End);
    assert_eq!(spec.cadence, Cadence { events, update_interval: None });
    // 2026-03-14T09:26:54Z by `date -u -d ... +%s`.
    assert_eq!(spec.end.unwrap().as_second(), 1_773_480_414);
    assert!(spec.mask.keep.has(Field::Verdict) && !spec.mask.keep.has(Field::Time));
}

#[test]
fn compression_in_hubbles_words_and_ours() {
    let table = [
        ("fileCompress: false", Compression::None),
        ("fileCompress: true", Compression::Gzip { level: 6 }),
        ("compression: none", Compression::None),
        ("compression: gzip", Compression::Gzip { level: 6 }),
        ("compression: zstd", Compression::Zstd { level: 1 }),
        ("compression: gzip\n    compressionLevel: 9", Compression::Gzip { level: 9 }),
        ("compressionLevel: 19", Compression::Zstd { level: 19 }),
        ("compression: gzip\n    fileCompress: true", Compression::Gzip { level: 6 }),
        ("compression: none\n    fileCompress: false", Compression::None),
    ];
    for (keys, expected) in table {
        assert_eq!(task(&format!("    {keys}\n")).file.compression, expected, "{keys}");
    }
}

#[test]
fn formats() {
    for format in Format::ALL {
        assert_eq!(task(&format!("    format: {}\n", format.name())).file.format, format);
    }
    assert_eq!(task("").file.format, Format::Json);
}

#[test]
fn values_out_of_bounds_are_refused() {
    let table = [
        ("fileMaxSizeMb: 1048577", "expected a whole number from 0 to 1048576, found `1048577`"),
        ("fileMaxSizeMb: \"10\"", "expected a whole number from 0 to 1048576, found the string \"10\""),
        ("fileMaxBackups: 1.5", "expected a whole number from 0 to 1000000, found `1.5`"),
        ("compressionLevel: 0", "expected a whole number from 1 to 19, found `0`"),
        ("updateInterval: 999ms", "expected at least 1s, found `999ms`"),
        ("updateInterval: 30", "expected a duration such as 30s or 1h30m, found `30`"),
        ("fileRotationInterval: 0s", "expected at least 1s, found `0s`"),
        ("fileMode: \"0400\"", "\"0400\" would not let the owner write"),
        ("fileMode: \"0888\"", "expected permissions in octal such as \"0640\", found \"0888\""),
        ("fileMode: \"4755\"", "expected permissions in octal such as \"0640\", found \"4755\""),
        (
            "events: []",
            "expected one or more of start, update, end, drop; remove the key for the first three",
        ),
        ("end: 2026-03-14", "expected a time such as 2026-12-31T23:59:59Z, found `2026-03-14`"),
        ("fileCompress: yes", "expected true or false, found `yes`"),
        (
            "fieldAggregate: [verdikt]\n    aggregationInterval: 30s",
            "unknown field `verdikt`; did you mean `verdict`?",
        ),
        ("aggregationInterval: 30", "expected a duration such as 30s or 1h30m, found `30`"),
        ("aggregationInterval: 1ms", "expected at least 10ms (or 0s for none), found `1ms`"),
        (
            "fieldAggregate: [extensions.bytes]\n    aggregationInterval: 30s",
            "differs from record to record, so nothing would be added up; of `extensions` name `event`, `end_reason`, \
             `midstream`, `interfaces`, `duplicate` or `fragment`",
        ),
        (
            "fieldAggregate: [verdict]\n    aggregationInterval: 30s\n    rateLimit: 5",
            "aggregated lines come all at once, so a rate makes no sense; remove it",
        ),
        ("format: parquet", "unknown format `parquet`; expected one of json, flat, protobuf"),
        (
            "compression: gzip\n    compressionLevel: 10",
            "gzip's levels end at 9, found 10; choose a lower one",
        ),
        ("rateLimit: 0", "expected a whole number from 1 to 10000000, found `0`"),
        ("start: tomorrow", "expected a time such as 2026-12-31T23:59:59Z, found `tomorrow`"),
        (
            "start: 2026-03-14T09:26:54Z\n    end: 2026-03-14T09:26:54Z",
            "the task would end (2026-03-14T09:26:54Z) before it starts; correct one of the two",
        ),
        ("fileSync: always", "unknown fileSync `always`; expected one of none, frame, interval"),
        ("onFull: delete-oldest", "unknown onFull `delete-oldest`; did you mean `deleteOldest`?"),
        ("fileUser: \"a:b\"", "expected a name or a number, found the string \"a:b\""),
        ("fileMaxAge: 10ms", "expected at least 1s, found `10ms`"),
        ("fileMinFreePercent: 100", "expected a whole number from 0 to 99, found `100`"),
        (
            "fileMaxTotalMb: 9",
            "is less than fileMaxSizeMb, so no finished file could be kept; make it larger",
        ),
        ("priority: 1", "not served by this version yet; remove it"),
    ];
    for (keys, expected) in table {
        let text = format!("flowLogs:\n  - name: a\n    filePath: /l/a.log\n    {keys}\n");
        let messages: Vec<String> = read(&text).1.errors.into_iter().map(|error| error.message).collect();
        assert_eq!(messages, [expected], "{keys}");
    }
}

#[test]
fn paths_that_cannot_be_written_are_refused() {
    let table = [
        ("\"\"", "filePath is required; expected an absolute path"),
        ("/l/", "`/l/` names a folder; add the name of the file"),
        ("/l/../a", "`/l/../a` has a `..` in it; write the path without"),
        ("\"/l/{host}.log\"", "only {task}, {node} and {date} may stand in braces; write the rest out"),
        (
            "\"/l/{date}/a.log\"",
            "{date} can stand in the file's name only: all of a task's files are in one folder",
        ),
        ("\"/l/a\\nb\"", "the path has a control character in it; remove it"),
    ];
    for (path, expected) in table {
        let text = format!("flowLogs:\n  - name: a\n    filePath: {path}\n");
        let messages: Vec<String> = read(&text).1.errors.into_iter().map(|error| error.message).collect();
        assert_eq!(messages, [expected], "{path}");
    }
}

#[test]
fn retention_is_hubbles_two_numbers_until_something_else_is_said() {
    let total = |keys: &str| task(&format!("    {keys}\n")).file.total_bytes_max;
    assert_eq!(total("fileMaxSizeMb: 7"), 42 << 20); // 7 x (5 + 1)
    assert_eq!(total("fileMaxTotalMb: 100"), 100 << 20);
    assert_eq!(total("fileMaxAge: 720h"), u64::MAX);
    assert_eq!(total("fileMinFreePercent: 10"), u64::MAX);
    assert_eq!(total("fileMaxAge: 720h\n    fileMaxBackups: 2"), 30 << 20);
    assert_eq!(total("fileMaxAge: 720h\n    fileMaxTotalMb: 50"), 50 << 20);
    let file = task(
        "    fileMaxAge: 36h\n    fileMinFreePercent: 5\n    fileUser: syslog\n    fileGroup: 4\n    \
                     fileSync: interval\n    onFull: deleteOldest\n",
    )
    .file;
    assert_eq!((file.age_max, file.free_percent_min), (Some(Duration::from_hours(36)), Some(5)));
    assert_eq!(file.owner, Owner { user: Some("syslog".into()), group: Some("4".into()) });
    assert_eq!((file.sync, file.on_full), (Sync::Interval, OnFull::DeleteOldest));
    assert!(file.definition.0.contains(r#""fileGroup":4"#), "{:?}", file.definition);
}

#[test]
fn tasks_of_one_rhythm_share_a_cadence() {
    let plan = plan(
        "flowLogs:\n- {name: a, filePath: /l/a, events: [end]}\n- {name: b, filePath: /l/b}\n- {name: c, filePath: /l/c, \
         events: [end], updateInterval: 5s}\n- {name: d, filePath: /l/d, updateInterval: 60s}\n- {name: e, filePath: /l/e, \
         updateInterval: 1m}\n",
    );
    let cadences: Vec<u8> = plan.tasks.iter().map(|task| task.cadence).collect();
    assert_eq!(cadences, [0, 1, 0, 2, 2]);
    assert_eq!(plan.cadences.len(), 3);
    assert_eq!(plan.cadences[2].update_interval, Some(Duration::from_secs(60)));
}

#[test]
fn aggregation_needs_both_of_hubbles_keys() {
    let of = |keys: &str| task(&format!("    {keys}\n")).aggregation;
    for nothing in [
        "fieldAggregate: []\n    aggregationInterval: 0s",
        "fieldAggregate: [IP]",
        "aggregationInterval: 30s",
    ] {
        assert_eq!(of(nothing), None, "{nothing}");
    }
    let aggregation = of("fieldAggregate: [IP, aggregate]\n    aggregationInterval: 30s").unwrap();
    assert_eq!(aggregation.interval, Duration::from_secs(30));
    let keeps = |field| aggregation.common.keep.has(field);
    assert!(keeps(Field::IpSource) && keeps(Field::NodeName) && !keeps(Field::Time));
    assert!(!keeps(Field::AggregateEgressFlowCount));
    let exact = of("fieldAggregate: [IP]\n    aggregationInterval: 30s\n    fieldMaskExact: true").unwrap();
    assert!(!exact.common.keep.has(Field::NodeName));
    let warned = |keys: &str| {
        let text = format!("flowLogs:\n  - name: a\n    filePath: /l/a.log\n    {keys}\n");
        read(&text).1.warnings.len()
    };
    assert_eq!(warned("fieldAggregate: [IP]"), 1);
    assert_eq!(warned("aggregationInterval: 30s"), 1);
    assert_eq!(warned("fieldAggregate: [IP]\n    aggregationInterval: 30s\n    fieldMask: [verdict]"), 1);
    assert_eq!(warned("fieldAggregate: []\n    aggregationInterval: 0s"), 0);
}
