//! How flags become filters: as `hubble observe` combines them.
//!
//! A flag about one end, or about none, narrows both of two filters; one about either end narrows the left one at the
//! source and the right one at the destination. What remains equal is one filter. Values of a flag are alternatives,
//! different flags must all hold, and `--not` sends the next flag to the filters that must not hold.

use flowlog_user::record::Json;

use super::table::CONFLICTS;
use super::values;

/// One of the two filters under way: fields and their values, in the order in which they came.
#[derive(Clone, Debug, Default)]
struct Draft(Vec<(&'static str, Vec<Json>)>);

impl Draft {
    fn add(&mut self, field: &'static str, value: Json) {
        match self.0.iter_mut().find(|(known, _)| *known == field) {
            Some((_, values)) => values.push(value),
            None => self.0.push((field, vec![value])),
        }
    }

    fn texts(&self, field: &str) -> Vec<&str> {
        let values = self.0.iter().find(|(known, _)| *known == field).map(|(_, values)| values.as_slice());
        values
            .unwrap_or_default()
            .iter()
            .filter_map(|value| match value {
                Json::Text(text) => Some(&**text),
                _ => None,
            })
            .collect()
    }

    /// Puts namespaces before the names of one end's pods and services that have none; all pods where none are named.
    fn inside(&mut self, pods: &'static str, services: &'static str, namespaces: &[String]) {
        if namespaces.is_empty() {
            return;
        }
        if self.texts(pods).is_empty() && self.texts(services).is_empty() {
            self.add(pods, values::text(""));
        }
        for field in [pods, services] {
            let mut named = Vec::new();
            for name in self.texts(field) {
                if name.contains('/') {
                    named.push(values::text(name));
                } else {
                    named.extend(namespaces.iter().map(|space| values::text(&format!("{space}/{name}"))));
                }
            }
            if let Some((_, values)) = self.0.iter_mut().find(|(known, _)| *known == field) {
                *values = named;
            }
        }
    }

    /// As a `FlowFilter`, its fields in their order.
    fn filter(self) -> Json {
        let mut fields = self.0;
        fields.sort_by_key(|(field, _)| super::raw::order(field));
        Json::Map(
            fields
                .into_iter()
                .map(|(field, values)| match field {
                    CEL => (EXPERIMENTAL.into(), values::cel(values)),
                    field => (field.into(), Json::List(values)),
                })
                .collect(),
        )
    }
}

const CEL: &str = "cel_expression";
pub(super) const EXPERIMENTAL: &str = "experimental";
const SOURCE: (&str, &str) = ("source_pod", "source_service");
const DESTINATION: (&str, &str) = ("destination_pod", "destination_service");

/// The flags of one list, those to take or those to leave out.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracker {
    left: Draft,
    right: Draft,
    namespaces: [Vec<String>; 3],
    seen: Vec<&'static str>,
}

/// Which of [`Tracker::namespaces`].
const EITHER: usize = 0;
const FROM: usize = 1;
const TO: usize = 2;

impl Tracker {
    /// Takes a flag.
    pub(super) fn set(&mut self, flag: &'static str, value: &str) -> Result<(), String> {
        if !self.seen.contains(&flag) {
            self.seen.push(flag);
        }
        for group in CONFLICTS {
            let mut seen = group.iter().filter(|flag| self.seen.contains(flag));
            if let (Some(one), Some(other)) = (seen.next(), seen.next()) {
                return Err(format!("filters --{one} and --{other} cannot be combined"));
            }
        }
        self.take(flag, value).map_err(|what| format!("--{flag}: {what}"))?;
        self.check_namespaces()
    }

    fn both(&mut self, field: &'static str, value: Json) {
        self.left.add(field, value.clone());
        self.right.add(field, value);
    }

    fn ends(&mut self, source: &'static str, destination: &'static str, value: Json) {
        self.left.add(source, value.clone());
        self.right.add(destination, value);
    }

    fn namespace(&mut self, which: usize, name: &str) {
        if let Some(names) = self.namespaces.get_mut(which) {
            names.push(name.into());
        }
    }

    fn take(&mut self, flag: &'static str, value: &str) -> Result<(), String> {
        let text = || values::text(value);
        match flag {
            "namespace" => self.namespace(EITHER, value),
            "from-namespace" => self.namespace(FROM, value),
            "to-namespace" => self.namespace(TO, value),
            "all-namespaces" => self.namespace(EITHER, ""),
            "from-all-namespaces" => self.namespace(FROM, ""),
            "to-all-namespaces" => self.namespace(TO, ""),
            "uuid" => self.both("uuid", text()),
            "snat-ip" => self.both("source_ip_xlated", text()),
            "ipv4" => self.both("ip_version", values::ip_version("v4")),
            "ipv6" => self.both("ip_version", values::ip_version("v6")),
            "ip-version" => self.both("ip_version", values::ip_version(value)),
            "trace-id" => self.both("trace_id", text()),
            "ip-trace-id" => self.both("ip_trace_id", values::ip_trace_id(value)?),
            "verdict" => self.both("verdict", values::verdict(value)?),
            "drop-reason-desc" => self.both("drop_reason_desc", values::drop_reason(value)?),
            "http-status" => self.both("http_status_code", text()),
            "http-method" => self.both("http_method", text()),
            "http-path" => self.both("http_path", text()),
            "http-url" => self.both("http_url", text()),
            "http-header" => self.both("http_header", values::header(value)?),
            "type" => self.both("event_type", values::event_type(value)?),
            "protocol" => self.both("protocol", text()),
            "node-name" => self.both("node_name", text()),
            "node-label" => self.both("node_labels", text()),
            "tcp-flags" => self.both("tcp_flags", values::tcp_flags(value)?),
            "traffic-direction" => self.both("traffic_direction", values::direction(value)?),
            "interface" => self.both("interface", values::interface(value)),
            "encrypted" => self.both("encrypted", Json::Bool(true)),
            "unencrypted" => self.both("encrypted", Json::Bool(false)),
            "cel-expression" => self.both(CEL, text()),
            _ => self.take_ended(flag, value)?,
        }
        Ok(())
    }

    /// Flags that come in three: about either end, the source, the destination.
    fn take_ended(&mut self, flag: &'static str, value: &str) -> Result<(), String> {
        let (name, only) = match (flag.strip_prefix("from-"), flag.strip_prefix("to-")) {
            (Some(name), _) => (name, FROM),
            (_, Some(name)) => (name, TO),
            _ => (flag, EITHER),
        };
        let Some((_, source, destination)) = ENDED.iter().find(|(known, ..)| *known == name) else {
            return Err("no such filter".into());
        };
        let value = match name {
            "identity" => values::identity(value)?,
            "workload" => values::workload(value),
            _ => values::text(value),
        };
        match only {
            FROM => self.both(source, value),
            TO => self.both(destination, value),
            _ => self.ends(source, destination, value),
        }
        Ok(())
    }

    /// Namespaces that contradict each other can be meant by nobody.
    fn check_namespaces(&self) -> Result<(), String> {
        let [either, from, to] = &self.namespaces;
        for draft in [&self.left, &self.right] {
            for (spaces, (pods, services)) in
                [(either, SOURCE), (either, DESTINATION), (from, SOURCE), (to, DESTINATION)]
            {
                for name in draft.texts(pods).into_iter().chain(draft.texts(services)) {
                    if let Some((inside, _)) = name.split_once('/')
                        && let Some(space) =
                            spaces.iter().find(|space| !inside.is_empty() && *space != inside)
                    {
                        return Err(format!("namespace conflict: {space:?} does not contain {name:?}"));
                    }
                }
            }
            for (pods, services) in [SOURCE, DESTINATION] {
                for pod in draft.texts(pods).iter().filter_map(|pod| pod.split_once('/')) {
                    let differs =
                        |service: &&str| service.split_once('/').map_or("", |(space, _)| space) != pod.0;
                    if !pod.0.is_empty()
                        && let Some(service) =
                            draft.texts(services).into_iter().find(|service| differs(service))
                    {
                        return Err(format!(
                            "namespace of service {service:?} conflicts with pod {:?}",
                            pod.0
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The filters: none, one, or two of which one must hold.
    pub(super) fn filters(self) -> Vec<Json> {
        let Self { mut left, mut right, namespaces: [either, from, to], seen } = self;
        if seen.is_empty() {
            return Vec::new();
        }
        for draft in [&mut left, &mut right] {
            draft.inside(DESTINATION.0, DESTINATION.1, &to);
            draft.inside(SOURCE.0, SOURCE.1, &from);
        }
        left.inside(SOURCE.0, SOURCE.1, &either);
        right.inside(DESTINATION.0, DESTINATION.1, &either);
        let (left, right) = (left.filter(), right.filter());
        if left == right { vec![left] } else { vec![left, right] }
    }
}

/// Flag, field about the source, field about the destination.
const ENDED: [(&str, &str, &str); 9] = [
    ("ip", "source_ip", "destination_ip"),
    ("port", "source_port", "destination_port"),
    ("pod", "source_pod", "destination_pod"),
    ("service", "source_service", "destination_service"),
    ("fqdn", "source_fqdn", "destination_fqdn"),
    ("label", "source_label", "destination_label"),
    ("identity", "source_identity", "destination_identity"),
    ("workload", "source_workload", "destination_workload"),
    ("cluster", "source_cluster_name", "destination_cluster_name"),
];
