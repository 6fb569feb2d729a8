use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::config::{Config, Watch};

/// What has come since the last call; events of a change are in the queue when the change's system call returns.
fn taken(watch: &mut Watch, config: &Config) -> Option<u128> {
    watch.take(|folder, name| config.concerns(folder, name)).map(|pause| pause.as_millis())
}

fn swap(folder: &Path, version: &str, text: &str) {
    fs::create_dir(folder.join(version)).unwrap();
    fs::write(folder.join(version).join("flowlogs.yaml"), text).unwrap();
    symlink(version, folder.join("..data_tmp")).unwrap();
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
}

#[test]
fn every_kind_of_change_is_told_and_strangers_are_not() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("tasks");
    fs::create_dir(&folder).unwrap();
    swap(&folder, "..1", "flowLogs: []\n");
    symlink("..data/flowlogs.yaml", folder.join("flowlogs.yaml")).unwrap();
    let mut config = Config::new(vec![folder.clone()], None);
    config.start(1);
    let mut watch = Watch::new().unwrap();
    assert!(watch.set(&config.folders()).is_empty());
    assert_eq!(taken(&mut watch, &config), None);

    swap(&folder, "..2", "flowLogs: [] # 2\n");
    assert_eq!(taken(&mut watch, &config), Some(10), "a swap");
    watch.set(&config.folders());
    fs::write(folder.join("..2/flowlogs.yaml"), "flowLogs: [] # 3\n").unwrap();
    assert_eq!(taken(&mut watch, &config), Some(10), "behind a link");

    let file = folder.join("b.yaml");
    let mut open = fs::File::create(&file).unwrap();
    std::io::Write::write_all(&mut open, b"flowLogs:").unwrap();
    assert_eq!(taken(&mut watch, &config), Some(60), "half written");
    fs::write(folder.join("other.yaml"), "x").unwrap();
    assert_eq!(taken(&mut watch, &config), Some(60), "half written beside one that is whole");
    drop(open);
    assert_eq!(taken(&mut watch, &config), Some(10), "closed");
    fs::remove_file(&file).unwrap();
    assert_eq!(taken(&mut watch, &config), Some(10), "removed");

    fs::write(parent.path().join("stranger.yaml"), "x").unwrap();
    assert_eq!(taken(&mut watch, &config), None, "beside the folder");
    fs::rename(&folder, parent.path().join("away")).unwrap();
    assert_eq!(taken(&mut watch, &config), Some(10), "moved away");
    watch.set(&config.folders());
    taken(&mut watch, &config);
    fs::create_dir(&folder).unwrap();
    assert_eq!(taken(&mut watch, &config), Some(25), "created again");
    watch.set(&config.folders());
    taken(&mut watch, &config);
    fs::write(folder.join("c.yaml"), "x").unwrap();
    assert_eq!(taken(&mut watch, &config), Some(10), "in the new folder");
}
