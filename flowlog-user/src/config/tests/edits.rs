//! Random edits of a real folder: whatever happens to the files, the tasks are those of each file's last valid text.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use crate::config::Config;
use crate::limits::CONFIG_GONE_MS;
use crate::write::StateDir;

const GONE_NS: u64 = CONFIG_GONE_MS * 1_000_000;

/// Tasks of a file by name, each with a number that tells its versions apart.
type Content = BTreeMap<String, u32>;

#[derive(Clone, Debug)]
enum Edit {
    /// The file gets these tasks, by a rename or in place.
    Write(Vec<(u8, u32)>, bool),
    /// It gets a text that is not valid.
    Spoil(usize),
    /// Something else stands in its place.
    Replace(bool),
    Remove,
    /// The daemon starts again.
    Restart,
}

fn edit() -> impl Strategy<Value = (usize, Edit)> {
    let tasks = prop::collection::vec((0..4_u8, 1..9_u32), 0..4);
    let edit = prop_oneof![
        5 => (tasks, any::<bool>()).prop_map(|(tasks, moved)| Edit::Write(tasks, moved)),
        4 => (0..BAD.len()).prop_map(Edit::Spoil),
        1 => any::<bool>().prop_map(Edit::Replace),
        2 => Just(Edit::Remove),
        1 => Just(Edit::Restart),
    ];
    (0..3_usize, edit)
}

/// Texts that are not valid, of which none may be taken in part.
const BAD: [&[u8]; 10] = [
    b"",
    b"flowLogs: 7",
    b"flowLogs: [{name: x, filePath: /l/x}, {name: y}]",
    b"flowLogs: [{name: x, filePath: /l/x}, {name: x, filePath: /l/y}]",
    b"flowLogs:\n- {name: x, filePath: /l/x, rateLimt: 5}\n",
    b"flowLogs:\n\t- name: x\n",
    b"flowLogs:\n- {name: x, filePath: /l/",
    b"flowLogs: []\n# \xff\n",
    b"flowLogs: [{name: x, filePath: /l/x, includeFilters: [{source_port: [99999]}]}]",
    b"a: &a [1]\nb: [*a, *a",
];

fn text(content: &Content) -> String {
    if content.is_empty() {
        return "flowLogs: []\n".into();
    }
    let task = |(name, number): (&String, &u32)| {
        format!("- {{name: {name}, filePath: /l/{name}, rateLimit: {number}}}\n")
    };
    format!("flowLogs:\n{}", content.iter().map(task).collect::<String>())
}

/// Nothing stands there any more; nobody has looked meanwhile.
fn clear(path: &Path) {
    if path.is_dir() && !path.is_symlink() {
        fs::remove_dir(path).unwrap();
    } else {
        drop(fs::remove_file(path));
    }
}

fn running(config: &Config) -> Content {
    config.tasks().iter().map(|(name, task)| (name.clone(), task.spec.rate_limit.unwrap_or(0))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_tasks_are_those_of_the_last_valid_files(edits in prop::collection::vec(edit(), 1..25)) {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("tasks");
        fs::create_dir(&folder).unwrap();
        let state = Arc::new(StateDir::open(&parent.path().join("state")).unwrap());
        let start = || {
            let mut config = Config::new(vec![folder.clone()], Some(Arc::clone(&state)));
            config.start(1);
            config
        };
        let (mut config, mut valid, mut now_ns) = (start(), BTreeMap::<usize, Content>::new(), 1);
        for (number, edit) in edits {
            let file = folder.join(format!("{number}.yaml"));
            match edit.clone() {
                Edit::Write(tasks, moved) => {
                    // Names are each file's own: who has one that two files want is another test's.
                    let content: Content =
                        tasks.into_iter().map(|(task, version)| (format!("f{number}t{task}"), version)).collect();
                    let new = folder.join(".new");
                    clear(&file);
                    fs::write(if moved { &new } else { &file }, text(&content)).unwrap();
                    if moved {
                        fs::rename(new, &file).unwrap();
                    }
                    valid.insert(number, content);
                }
                Edit::Spoil(which) => {
                    clear(&file);
                    fs::write(&file, BAD[which]).unwrap();
                }
                Edit::Replace(by_folder) => {
                    clear(&file);
                    if by_folder { fs::create_dir(&file).unwrap() } else { symlink(&file, &file).unwrap() }
                }
                Edit::Remove => {
                    clear(&file);
                    valid.remove(&number);
                }
                Edit::Restart => config = start(),
            }
            // Gone is what stays away.
            for _ in 0..2 {
                config.look(now_ns, false);
                now_ns += GONE_NS;
            }
            config.unwritten().write().unwrap();
            let wanted: Content = valid.values().flatten().map(|(name, version)| (name.clone(), *version)).collect();
            prop_assert_eq!(running(&config), wanted, "after {:?} of {}", edit, number);
        }
    }
}
