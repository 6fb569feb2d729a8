//! Records about the log itself, in Hubble's words and with Hubble's fields only, so that its client takes them silently.

use super::{NoticeEncoder, Spec};
use crate::clock::wall_ns;
use crate::record::container;
use crate::record::schema::{
    Descriptor, EXPORT_EVENT, LOST_EVENT, LOST_EVENT_SOURCE, NODE_STATE, NODE_STATUS_EVENT,
};
use crate::record::{Foreign, Format, Message, Value, rfc3339 as time};

/// Records that did not reach the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) records: u64,
    pub(super) first_ns: i64,
    pub(super) last_ns: i64,
    pub(super) reason: String,
}

/// Records of one task.
#[derive(Debug)]
pub(super) struct Notices {
    pub(super) task: String,
    pub(super) node: String,
    pub(super) format: Format,
    pub(super) encoder: NoticeEncoder,
}

impl Notices {
    /// `lost_events`, and the `node_status` that says what it is about.
    pub(super) fn loss(&self, place: &str, loss: &Loss, now_ns: i64) -> Vec<u8> {
        let (first, last) = (time(loss.first_ns), time(loss.last_ns));
        let Loss { records, reason, .. } = loss;
        let message = format!(
            "task {}: {records} records lost at the {place} from {first} to {last}: {reason}",
            self.task
        );
        let source = LOST_EVENT_SOURCE.number_of("OBSERVER_EVENTS_QUEUE").unwrap_or(0);
        let lost = of(
            &LOST_EVENT,
            [
                ("source", Value::Int(source.into())),
                ("num_events_lost", Value::Uint(*records)),
                ("first", at(loss.first_ns)),
                ("last", at(loss.last_ns)),
            ],
        );
        let mut out = self.event("lost_events", lost, now_ns);
        out.extend_from_slice(&self.status("NODE_ERROR", &message, now_ns));
        out
    }

    /// `node_status`.
    pub(super) fn status(&self, state: &str, message: &str, now_ns: i64) -> Vec<u8> {
        let status = of(
            &NODE_STATUS_EVENT,
            [
                ("state_change", Value::Int(NODE_STATE.number_of(state).unwrap_or(0).into())),
                ("node_names", Value::List(vec![Value::Text(self.node.as_str().into())])),
                ("message", Value::Text(message.into())),
            ],
        );
        self.event("node_status", status, now_ns)
    }

    fn event(&self, kind: &str, event: Message, now_ns: i64) -> Vec<u8> {
        let node_name = Value::Text(self.node.as_str().into());
        let fields = [(kind, Value::Message(event)), ("node_name", node_name), ("time", at(now_ns))];
        let mut out = Vec::new();
        if let Some(event) = Foreign::new(of(&EXPORT_EVENT, fields)) {
            (self.encoder.0)(self.format, &event, &mut out);
        }
        out
    }
}

/// What a file's header says.
pub(super) fn header(spec: &Spec, notices: &Notices) -> Vec<u8> {
    let definition = serde_json::from_str(&spec.definition.0).unwrap_or(serde_json::Value::Null);
    let json = serde_json::json!({
        "format": match spec.format { Format::Json => "hubble-json", other => other.name() },
        "version": env!("CARGO_PKG_VERSION"),
        "node": notices.node,
        "task": spec.task,
        "definition": definition,
        "schema": spec.format.schema(),
        "clock": "unix time, UTC; index times are nanoseconds of [first_seen, last_seen]",
        "written": time(wall_ns()),
    });
    container::header(&json.to_string())
}

fn of<const N: usize>(of: &'static Descriptor, fields: [(&str, Value); N]) -> Message {
    Message::new(of, fields.into_iter().filter_map(|(name, value)| Some((of.field(name)?, value))).collect())
}

fn at(ns: i64) -> Value {
    Value::Time(ns.div_euclid(1_000_000_000), u32::try_from(ns.rem_euclid(1_000_000_000)).unwrap_or(0))
}

/// What tasks give.
#[cfg(test)]
pub(super) const ENCODER: NoticeEncoder = NoticeEncoder(crate::encode::notice);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_two_lines_with_hubbles_keys_only() {
        let format = Format::Json;
        let notices = Notices { task: "a<b".into(), node: "east/n1".into(), format, encoder: ENCODER };
        let loss = Loss {
            records: 12,
            first_ns: 1_796_069_666_000_000_000,
            last_ns: 1_796_069_666_120_000_000,
            reason: "queue full".into(),
        };
        // Written by hand after protojson's rules: uint64 as a string, fields in the order of the proto.
        assert_eq!(
            String::from_utf8(notices.loss("queue", &loss, 1_796_069_667_000_000_500)).unwrap(),
            concat!(
                r#"{"lost_events":{"source":"OBSERVER_EVENTS_QUEUE","num_events_lost":"12","first":"2026-11-30T20:14:26Z","#,
                r#""last":"2026-11-30T20:14:26.120Z"},"node_name":"east/n1","time":"2026-11-30T20:14:27.000000500Z"}"#,
                "\n",
                r#"{"node_status":{"state_change":"NODE_ERROR","node_names":["east/n1"],"message":"task a\u003cb: 12 records "#,
                r#"lost at the queue from 2026-11-30T20:14:26Z to 2026-11-30T20:14:26.120Z: queue full"},"#,
                r#""node_name":"east/n1","time":"2026-11-30T20:14:27.000000500Z"}"#,
                "\n"
            )
        );
    }
    /// What is said in the file is said in every format, with the same words.
    #[test]
    fn every_format_tells_of_losses() {
        let loss = Loss { records: 12, first_ns: 1, last_ns: 2_000, reason: "queue full".into() };
        let told = |format| {
            let notices = Notices { task: "t".into(), node: "n".into(), format, encoder: ENCODER };
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("f");
            std::fs::write(&file, notices.loss("queue", &loss, 5_000_000_000)).unwrap();
            let mut events = Vec::new();
            let mut counts = crate::read::Counts::default();
            crate::read::flows(&file, &mut counts, |event| events.push(event), |bad| panic!("{bad}"))
                .unwrap();
            events
        };
        let expected = told(Format::Json);
        assert_eq!(expected.len(), 2);
        assert!(expected[0].event().message("lost_events").is_some());
        for format in Format::ALL {
            assert_eq!(told(format), expected, "{format:?}");
        }
    }
}
