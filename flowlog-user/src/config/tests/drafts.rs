//! Resources of the first proposal: several in a file, and what people write beside them.

use super::versions::{DRAFT, content, equal, to, valid};
use crate::config::Form;

#[test]
fn each_comment_of_the_draft_stays_with_its_key() {
    let draft = "\
# team net
apiVersion: flowlog.io/v1alpha1 # first
kind: FlowLog
metadata:
  # short
  name: web # for incidents
spec: # all of it
  # what comes in
  filters: # both ways
  - destination_port: [\"443\"] # there
    # and the protocol
    protocol: [tcp]
  # and back
  - source_port: [\"443\"]
  # nobody needs
  excludeFilters: [{source_ip: [10.0.0.1]}] # us
  fieldMask:
  - IP # addresses
  # ports
  - l4
# to come
---
apiVersion: flowlog.io/v1alpha1
kind: FlowLog
metadata: {name: dns} # the resolver
spec: {filters: [{source_port: [\"53\"]}]} # answers
";
    // Comment, and the key or value that it stands above or beside.
    let pairs = [
        ("# for incidents", "web"),
        ("# what comes in", "Filters:"),
        ("# both ways", "ilters:"),
        ("# there", "443"),
        ("# and the protocol", "protocol:"),
        ("# and back", "source_port:"),
        ("# nobody needs", "excludeFilters:"),
        ("# addresses", "IP"),
        ("# ports", "l4"),
        ("# the resolver", "dns"),
    ];
    let holds = |text: &str, comment: &str, key: &str| {
        let lines: Vec<&str> = text.lines().collect();
        let at = lines
            .iter()
            .position(|line| line.contains(comment))
            .unwrap_or_else(|| panic!("{comment} in {text}"));
        // Above means: after other comments, if there are more.
        let line = lines[at..].iter().find(|line| !line.trim_start().starts_with('#')).unwrap();
        assert!(line.to_lowercase().contains(&key.to_lowercase()), "{comment} stands at `{line}` in\n{text}");
    };
    let v1 = to(draft, Form::V1);
    let back = to(&v1, Form::Draft);
    for text in [&v1, &back, &to(&back, Form::V1), &to(&v1, Form::Hubble)] {
        pairs.iter().for_each(|(comment, key)| holds(text, comment, key));
        for comment in ["# team net", "# first", "# short", "# all of it", "# us", "# to come", "# answers"] {
            assert_eq!(text.matches(comment).count(), 1, "{comment} in\n{text}");
        }
        assert!(text.starts_with("# team net\n"), "{text}");
    }
    assert!(equal(&valid(&back).tasks, &valid(draft).tasks));
}

#[test]
fn resources_may_come_in_a_list_as_kubectl_prints_them() {
    let item = |name: &str, spec: &str| {
        format!(
            "- apiVersion: flowlog.io/v1alpha1\n  kind: FlowLog\n  metadata:\n    annotations: {{a: b}}\n    creationTimestamp: \
             \"2026-11-30T10:00:00Z\"\n    name: {name}\n    resourceVersion: \"7\"\n    uid: 6f1c\n  spec:\n    # of {name}\n    \
             filters: {spec}\n  status: {{}}\n"
        )
    };
    for (version, kind) in [("v1", "List"), ("flowlog.io/v1alpha1", "FlowLogList")] {
        let (web, dns) =
            (item("web", "[{destination_port: [\"443\"]}]"), item("dns", "[{source_port: [\"53\"]}]"));
        let list = format!(
            "apiVersion: {version}\nitems:\n{web}{dns}kind: {kind}\nmetadata:\n  resourceVersion: \"\"\n"
        );
        let read = valid(&list);
        assert_eq!(read.form, Form::Draft);
        let alone = |name: &str, port: &str| {
            DRAFT
                .replace("web # for incidents", name)
                .replace("    - source_port: [\"443\"]\n", "")
                .replace("destination_port: [\"443\"]", port)
                .replace("  expiration: 2030-01-02T03:04:05Z\n", "")
        };
        let documents = format!(
            "{}---\n{}",
            alone("web", "destination_port: [\"443\"]"),
            alone("dns", "source_port: [\"53\"]")
        );
        assert!(equal(&read.tasks, &valid(&documents).tasks), "{documents}");
        let v1 = to(&list, Form::V1);
        assert!(
            equal(&read.tasks, &valid(&v1).tasks) && v1.contains("# of web") && v1.contains("# of dns"),
            "{v1}"
        );
        // An error has its place in the list.
        let said = content(&list.replace("source_port: [\"53\"]", "source_prot: [\"53\"]")).1.to_string();
        assert!(said.contains("items[1].spec.filters[0].source_prot: unknown filter field"), "{said}");
        let pool = format!(
            "apiVersion: {version}\nkind: {kind}\nitems:\n{web}- apiVersion: flowlog.io/v1\n  kind: AddressPool\n  metadata: {{name: a}}\n  spec: {{cidrs: [10.0.0.0/8]}}\n"
        );
        let said = content(&pool).1.to_string();
        assert!(said.contains("a task among pools; put tasks and pools into files of their own"), "{said}");
        let other = format!("kind: {kind}\nitems: [{{kind: ConfigMap}}]\n");
        let said = content(&other).1.to_string();
        assert_eq!(
            said,
            "t.yaml:2:9: items[0]: expected one of the kinds CiliumPodIPPool, AddressPool, FlowLog, found `ConfigMap`; remove it"
        );
        assert!(valid(&format!("kind: {kind}\nitems: []\n")).tasks.is_empty());
    }
}
