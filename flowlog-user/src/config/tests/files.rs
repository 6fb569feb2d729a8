use std::fs;
use std::path::{Path, PathBuf};

use crate::config::{Error, load};

fn one(name: &str) -> String {
    format!("flowLogs:\n- {{name: {name}, filePath: /l/{name}}}\n")
}

fn names(paths: &[PathBuf]) -> Vec<String> {
    load(paths).unwrap().plan.tasks.into_iter().map(|task| task.spec.name).collect()
}

#[test]
fn everything_in_config_is_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "yaml") {
            let loaded = load(std::slice::from_ref(&path))
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(!loaded.plan.tasks.is_empty() && loaded.warnings.is_empty(), "{}", path.display());
            files += 1;
        }
    }
    assert!(files >= 2);
}

#[test]
fn a_folder_gives_its_files_and_one_level_of_subfolders_in_byte_order() {
    let folder = tempfile::tempdir().unwrap();
    for sub in ["team", "team/deeper", ".hidden"] {
        fs::create_dir(folder.path().join(sub)).unwrap();
    }
    let files = [
        ("b.yaml", "b"),
        ("Z.yml", "z"),
        ("c.json", "c"),
        ("team/d.yaml", "d"),
        ("team/deeper/e.yaml", "e"),
        (".hidden/f.yaml", "f"),
        (".g.yaml", "g"),
        ("notes.txt", "h"),
    ];
    for (file, name) in files {
        fs::write(folder.path().join(file), one(name)).unwrap();
    }
    assert_eq!(names(&[folder.path().into()]), ["z", "b", "c", "d"]);
}

#[test]
fn a_mounted_config_map_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let version = folder.path().join("..2026_01");
    fs::create_dir(&version).unwrap();
    fs::write(version.join("flowlogs.yaml"), one("a")).unwrap();
    std::os::unix::fs::symlink("..2026_01", folder.path().join("..data")).unwrap();
    std::os::unix::fs::symlink("..data/flowlogs.yaml", folder.path().join("flowlogs.yaml")).unwrap();
    assert_eq!(names(&[folder.path().into()]), ["a"]);
}

#[test]
fn names_are_unique_over_files() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("1.yaml"), folder.path().join("2.yaml"));
    fs::write(&first, one("a")).unwrap();
    fs::write(&second, "flowLogs:\n- {name: a, filePath: /l/other}\n").unwrap();
    let error = load(&[folder.path().into()]).unwrap_err();
    let (first, second) = (first.display(), second.display());
    let expected =
        format!("{second}:2:10: flowLogs[0].name: task name `a` is taken at {first}:2:10; choose another");
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, Error::Invalid(_)));
}

#[test]
fn what_cannot_be_read_is_said_beside_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let (gone, wrong, bytes) =
        (folder.path().join("a-gone.yaml"), folder.path().join("b.yaml"), folder.path().join("c.yaml"));
    fs::write(&wrong, "flowLogs: 7\n").unwrap();
    fs::write(&bytes, b"flowLogs: []\n# \xff\n").unwrap();
    let error = load(&[gone.clone(), wrong.clone(), bytes.clone()]).unwrap_err();
    let expected = format!(
        "{}: cannot be read: no such file or directory (os error 2); check the path\n{}:1:11: \
         flowLogs: expected a list, found `7`\n{}: line 2 is not UTF-8; save the file as UTF-8",
        gone.display(),
        wrong.display(),
        bytes.display()
    );
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, Error::Unreadable(_)));
}

#[test]
fn huge_files_and_empty_folders() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = load(&[folder.path().into()]).unwrap();
    assert_eq!(loaded.warnings.len(), 1);
    let path = folder.path().join("a.yaml");
    let file = fs::File::create(&path).unwrap();
    file.set_len((16 << 20) + 1).unwrap();
    let error = load(std::slice::from_ref(&path)).unwrap_err().to_string();
    let expected =
        format!("{}: the file has more than 16 MiB; split it into several in one folder", path.display());
    assert_eq!(error, expected);
}
