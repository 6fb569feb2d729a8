//! `flowlog check`: the same for people and for programs, and exit codes that scripts can trust.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use flowlog_tests::daemon::binary;
use serde_json::Value;

fn check(path: &Path, more: &[&str]) -> Result<(Option<i32>, String)> {
    let output = Command::new(binary()).arg("check").arg(path).args(more).output()?;
    Ok((output.status.code(), String::from_utf8(output.stdout)?))
}

#[test]
fn valid_invalid_unreadable_and_strict() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("t.yaml");
    let cases: [(&str, &[&str], i32); 5] = [
        ("flowLogs:\n- {name: a, filePath: /l/a.log}\n", &[], 0),
        ("flowLogs:\n- {name: a, filepath: /l/a.log}\n", &[], 0),
        ("flowLogs:\n- {name: a, filepath: /l/a.log}\n", &["--strict"], 1),
        ("flowLogs:\n- {name: a, filePath: /l/a.log, nmae: b}\n", &[], 1),
        ("flowLogs:\n- {name: a, filePath: l/a.log}\n", &[], 1),
    ];
    for (text, more, code) in cases {
        std::fs::write(&file, text)?;
        for format in ["text", "json"] {
            let (found, said) = check(&file, &[more, &["-o", format]].concat())?;
            ensure!(found == Some(code), "{text} {more:?} {format}: {found:?} {said}");
            if format == "json" {
                let answer: Value = serde_json::from_str(&said)?;
                ensure!(answer["valid"] == (code == 0), "{answer}");
            }
        }
    }
    for format in ["text", "json"] {
        let (code, said) = check(&folder.path().join("none.yaml"), &["-o", format])?;
        ensure!(code == Some(2) && said.contains("none.yaml"), "{code:?} {said}");
    }
    Ok(())
}

#[test]
fn what_each_task_writes_and_where_each_error_stands() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("t.yaml");
    std::fs::write(
        &file,
        "flowLogs:\n- {name: a, filePath: /l/a.log, fileMaxSizeMb: 2, fileMaxBackups: 3}\n\
         - {name: b, filePath: /l/b.log, fileCompress: true, fileMode: \"0600\", end: 2030-01-01T00:00:00Z}\n",
    )?;
    let (_, said) = check(&file, &["-o", "json"])?;
    let answer: Value = serde_json::from_str(&said)?;
    let expected = [
        ("/tasks/0/live", Value::from("/l/a.log.zst")),
        ("/tasks/0/finished", "/l/a-*.log.zst".into()),
        ("/tasks/0/total_bytes_max", (8_u64 << 20).into()),
        ("/tasks/0/mode", "0640".into()),
        ("/tasks/1/live", "/l/b.log".into()),
        ("/tasks/1/finished", "/l/b-*.log.gz".into()),
        ("/tasks/1/compression", "gzip".into()),
        ("/tasks/1/mode", "0600".into()),
        ("/tasks/1/end", "2030-01-01T00:00:00Z".into()),
        ("/tasks/1/line", 3.into()),
        // 2 MB x 4 and, by default, 10 MB x 6.
        ("/total_bytes_max", (68_u64 << 20).into()),
    ];
    for (pointer, value) in expected {
        ensure!(answer.pointer(pointer) == Some(&value), "{pointer}: {answer}");
    }
    let (_, text) = check(&file, &[])?;
    for words in [
        "/l/a.log.zst, finished as a-*.log.zst (json, zstd)",
        "mode 0600",
        "together: at most 68.0 MiB on disk",
    ] {
        ensure!(text.contains(words), "{words} is not in {text}");
    }
    std::fs::write(&file, "flowLogs:\n- name: a\n  filePath: /l/a.log\n  includeFilter: []\n")?;
    let (_, said) = check(&file, &["-o", "json"])?;
    let answer: Value = serde_json::from_str(&said)?;
    let error = &answer["errors"][0];
    ensure!((&error["line"], &error["column"]) == (&4.into(), &3.into()), "{answer}");
    ensure!(error["key"] == "flowLogs[0].includeFilter" && said.contains("includeFilters"), "{answer}");
    Ok(())
}

/// What is taken otherwise than it is written, or opens a log to everybody, is told; stdout is below no folder.
#[test]
fn zeroes_open_modes_and_stdout() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("tasks.yaml");
    for (keys, told) in [
        ("filePath: stdout", None),
        ("filePath: /var/log/flowlog/a.log, fileMaxBackups: 0", Some("0 is taken as 5")),
        ("filePath: /var/log/flowlog/a.log, fileMaxSizeMb: 0", Some("0 is taken as 10")),
        ("filePath: /var/log/flowlog/a.log, fileMode: \"0666\"", Some("every user")),
        ("filePath: /var/log/flowlog/a.log, fileMode: \"0664\"", None),
    ] {
        std::fs::write(
            &path,
            format!("apiVersion: flowlog.io/v1\nkind: FlowLogs\nflowLogs:\n- {{name: a, {keys}}}\n"),
        )?;
        let (code, said) = check(&path, &["--strict"])?;
        ensure!(code == Some(i32::from(told.is_some())), "{keys}: {said}");
        ensure!(told.is_none_or(|told| said.contains(told)), "{keys}: {said}");
    }
    Ok(())
}
