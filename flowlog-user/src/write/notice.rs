//! Lines about the log itself, in Hubble's words and with Hubble's keys only, so that its client takes them silently.

use jiff::Timestamp;

use crate::record::json_string as string;

/// Records that did not reach the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) records: u64,
    pub(super) first_ns: i64,
    pub(super) last_ns: i64,
    pub(super) reason: String,
}

/// Lines of one task.
#[derive(Debug)]
pub(super) struct Notices {
    pub(super) task: String,
    pub(super) node: String,
}

impl Notices {
    /// A `lost_events` line and the `node_status` line that says what it is about.
    pub(super) fn loss(&self, place: &str, loss: &Loss, now_ns: i64) -> String {
        let (first, last) = (time(loss.first_ns), time(loss.last_ns));
        let Loss { records, reason, .. } = loss;
        let message = format!(
            "task {}: {records} records lost at the {place} from {first} to {last}: {reason}",
            self.task
        );
        format!(
            "{{\"lost_events\":{{\"source\":\"OBSERVER_EVENTS_QUEUE\",\"num_events_lost\":\"{records}\",\
             \"first\":\"{first}\",\"last\":\"{last}\"}},{}\n{}",
            self.end(now_ns),
            self.status("NODE_ERROR", &message, now_ns)
        )
    }

    /// A `node_status` line.
    pub(super) fn status(&self, state: &str, message: &str, now_ns: i64) -> String {
        format!(
            "{{\"node_status\":{{\"state_change\":\"{state}\",\"node_names\":[{}],\"message\":{}}},{}\n",
            string(&self.node),
            string(message),
            self.end(now_ns)
        )
    }

    fn end(&self, now_ns: i64) -> String {
        format!("\"node_name\":{},\"time\":\"{}\"}}", string(&self.node), time(now_ns))
    }
}

/// RFC 3339 in UTC with 0, 3, 6 or 9 digits, as protobuf's JSON has it.
pub(super) fn time(ns: i64) -> String {
    let digits = match ns {
        ns if ns % 1_000_000_000 == 0 => 0,
        ns if ns % 1_000_000 == 0 => 3,
        ns if ns % 1_000 == 0 => 6,
        _ => 9,
    };
    let at = Timestamp::from_nanosecond(i128::from(ns)).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{at:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_two_lines_with_hubbles_keys_only() {
        let notices = Notices { task: "a<b".into(), node: "east/n1".into() };
        let loss = Loss {
            records: 12,
            first_ns: 1_796_069_666_000_000_000,
            last_ns: 1_796_069_666_120_000_000,
            reason: "queue full".into(),
        };
        // Written by hand after protojson's rules: uint64 as a string, fields in the order of the proto.
        assert_eq!(
            notices.loss("queue", &loss, 1_796_069_667_000_000_500),
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
}
