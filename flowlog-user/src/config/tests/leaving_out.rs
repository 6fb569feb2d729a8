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
