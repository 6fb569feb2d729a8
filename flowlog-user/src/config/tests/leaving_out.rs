//! What is kept of a text of which some tasks are left out.

use std::path::Path;

use super::pools::folder;
use crate::config::versions::Form;
use crate::config::{Outcome, migrations};

const THERE: &str = "apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs:\n- {name: B, filePath: /l/b}\n- {name: B2, filePath: \
                     /l/b2}\n";

const TEXT: &str = "flowLogs:
- name: A
  filePath: /l/a
  # KEEP1 end of A
- name: B
  filePath: /l/b
  # of B
# KEEP0 of C
- name: C
  filePath: /l/c
  includeFilters:
  - protocol: [tcp]
    # KEEP2
  # KEEP3 end of C
# about B2
- name: B2
  filePath: /l/b2

# KEEP4 between both

# about D, KEEP5
- name: D
  filePath: /l/d
# KEEP6 the end
";

#[test]
fn comments_of_a_task_that_stays_stay_with_it() {
    for indent in ["", "  ", "    "] {
        let list: String = TEXT
            .lines()
            .skip(1)
            .map(|line| if line.is_empty() { "\n".into() } else { format!("{indent}{line}\n") })
            .collect();
        let text = format!("flowLogs:\n{list}");
        let folder = folder(&[("h.yaml", &text), ("k.v1.yaml", THERE)]);
        let all = migrations(&[folder.path().join("h.yaml")], Form::V1, Path::new("/l")).unwrap();
        let Outcome::Convert { text, .. } = &all[0].outcome else { panic!("{all:?}") };
        // Each line of the kept ones, in their order, and none of the others.
        let mut lines = text.lines().skip_while(|line| !line.contains("name: A"));
        for line in TEXT.lines().skip(1).filter(|line| !line.is_empty()) {
            if ["B", "/l/b"].iter().any(|part| line.contains(part)) {
                assert!(!text.contains(line.trim()) || line.trim() == "# of B", "{line}: {text}");
            } else {
                let mut lines = lines.by_ref().filter(|line| !line.is_empty());
                assert_eq!(lines.next(), Some(&*format!("{indent}{line}")), "{text}");
            }
        }
        assert!(!text.contains("# of B") && !text.contains("about B2"), "{text}");
    }
}

/// Texts of the tasks a, b and c, of which b is left out; in each comment what becomes of it.
const OTHERS: [&str; 4] = [
    "# KEEP head
flowLogs: [
  # KEEP a
  {name: a, filePath: /l/a}, # KEEP beside a
  # KEEP b
  {name: B, filePath: /l/b}, # KEEP beside b
  # KEEP c
  {name: c, filePath: /l/c}, # KEEP beside c
  # KEEP end
]
# KEEP tail
",
    "# KEEP head
flowLogs:
# KEEP a
-
  name: a # KEEP beside a
  # KEEP inside a
  filePath: /l/a
# KEEP b
-
  # KEEP inside b
  name: B # KEEP beside b
  filePath: /l/b
# KEEP c
-
  name: c
  filePath: /l/c
# KEEP tail
",
    "# KEEP the licence
# KEEP of all

# LEAVE b
apiVersion: flowlog.io/v1alpha1
kind: FlowLog
metadata: {name: B} # LEAVE beside b
spec: {}
---
# KEEP a
apiVersion: flowlog.io/v1alpha1
kind: FlowLog
metadata: {name: a} # KEEP beside a
spec: {}
# KEEP tail
",
    "# KEEP head
flowLogs:
- name: a # KEEP beside a
  filePath: /l/a
# LEAVE b
- name: B # LEAVE beside b
  filePath: /l/b
# KEEP c
- {name: c, filePath: /l/c}
",
];

#[test]
fn each_comment_is_kept_or_said_to_be_left_out() {
    for text in OTHERS {
        // Where a draft writes.
        let there = if text.contains("kind:") { THERE.replace("/l/b}", "/l/B.log}") } else { THERE.into() };
        let folder = folder(&[("h.yaml", text), ("k.v1.yaml", &there)]);
        let all = migrations(&[folder.path().join("h.yaml")], Form::V1, Path::new("/l")).unwrap();
        let Outcome::Convert { text: new, .. } = &all[0].outcome else { panic!("{all:?}") };
        assert!(new.contains("name: ") && !new.contains("LEAVE"), "{new}");
        let lines =
            text.lines().zip(1..).filter_map(|(line, number)| Some((line.split_once('#')?.1, number)));
        let (kept, left): (Vec<_>, Vec<_>) = lines.partition(|(comment, _)| comment.contains("KEEP"));
        assert!(kept.iter().all(|(comment, _)| new.contains(&format!("#{comment}\n"))), "{new}");
        let told: Vec<_> = all[0].lost.iter().map(|lost| (lost.place.line, lost.message.clone())).collect();
        let numbers: Vec<String> = left.iter().map(|(_, number)| number.to_string()).collect();
        let message = format!(
            "the comments of the lines {} stand with tasks that are left out, and are left out with them",
            numbers.join(", ")
        );
        let expected: Vec<_> = left.first().map(|(_, number)| (*number, message)).into_iter().collect();
        assert_eq!(told, expected, "{text}");
    }
}
